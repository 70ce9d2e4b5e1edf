/* src/sync/sync.c - a team's collectives: made, renewed, freed. */
#include "sync/sync.h"
#include "sync/meeting.h"
#include "sync/tree.h"

#include <stdlib.h>
#include <string.h>

#define SCRATCH_BYTES (DTI_SCRATCH_BYTES + DTI_TILE_BYTES)

/* On each replica's own thread, so that its lines and scratch lie on its node. */
static ditto_status settle(struct dti_replica *r, void *argument)
{
    struct dti_sync *sync = argument;
    struct dti_attendee *me = &sync->attendee[r->id];
    void *memory;
    DTI_TRY(dti_replica_alloc(r, 2 * sizeof *me->line, DTI_LINE_PAIR, &memory));
    memset(memory, 0, 2 * sizeof *me->line); /* first touch */
    me->line = memory;
    DTI_TRY(dti_replica_alloc(r, r->team->n * sizeof *me->sources, DTI_LINE_PAIR, &memory));
    me->sources = memory;
    return dti_replica_alloc(r, SCRATCH_BYTES, DTI_LINE_PAIR, &me->scratch);
}

static void begin(struct dti_sync *sync)
{
    /* relaxed throughout: all replicas are parked, the next run's go word publishes this */
    atomic_store_explicit(&sync->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&sync->release, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < sync->team->n; i++) {
        struct dti_attendee *a = &sync->attendee[i];
        a->seq = 0;
        atomic_store_explicit(&a->last_seq, 0, memory_order_relaxed);
        atomic_store_explicit(&a->last_name, NULL, memory_order_relaxed);
        atomic_store_explicit(&a->inside, 0, memory_order_relaxed);
        for (int parity = 0; parity < 2; parity++)
            atomic_store_explicit(&a->line[parity].word, 0, memory_order_relaxed);
    }
}

ditto_status dti_sync_create(struct dti_team *team, ditto_kernels kernels)
{
    dti_kernel_table *table;
    DTI_TRY(dti_kernels_choose(kernels, &table));
    struct dti_sync *sync = aligned_alloc(DTI_LINE_PAIR, sizeof *sync);
    struct dti_attendee *attendee = aligned_alloc(DTI_LINE_PAIR, team->n * sizeof *attendee);
    unsigned char *result = aligned_alloc(DTI_LINE_PAIR, 2 * (size_t)DTI_SMALL_BYTES);
    if (sync == NULL || attendee == NULL || result == NULL) {
        free(sync);
        free(attendee);
        free(result);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the collectives of %u replicas", team->n);
    }
    memset(sync, 0, sizeof *sync);
    memset(attendee, 0, team->n * sizeof *attendee);
    sync->team = team;
    sync->attendee = attendee;
    sync->kernels = table;
    sync->result[0] = result;
    sync->result[1] = result + DTI_SMALL_BYTES;
    team->sync = sync;
    DTI_TRY(dti_team_run(team, settle, sync,
                         DITTO_FOREVER)); /* on failure the strategy destroys the team, and us with it */
    begin(sync);
    return DITTO_OK;
}

void dti_sync_renew(struct dti_team *team)
{
    begin(team->sync);
}

void dti_sync_destroy(struct dti_team *team)
{
    if (team->sync == NULL)
        return;
    free(team->sync->result[0]);
    free(team->sync->attendee); /* lines and scratch go with the arenas */
    free(team->sync);
    team->sync = NULL;
}
