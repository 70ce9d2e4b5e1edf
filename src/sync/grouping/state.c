/* src/sync/grouping/state.c - makes, resets and frees the state of collectives. See state.h. */
#include "sync/grouping/state.h"
#include "replicas/memory/arena.h"
#include "replicas/team/team.h"
#include "sync/algorithms/exchange.h"
#include "sync/algorithms/helper_work.h"
#include "sync/hosts/started.h"
#include "sync/algorithms/known_calls.h"
#include "sync/pending/pending.h"

#include <stdlib.h>
#include <string.h>

/* Makes this replica's part of a plan. The list of representatives is in its own memory. */
static ditto_status make_route(struct dti_replica *r, const struct dti_rounds *rounds,
                               struct dti_rounds_view *route)
{
    route->rounds = rounds->rounds;
    for (uint32_t round = 0; round < rounds->rounds; round++) {
        struct dti_span siblings = dti_rounds_siblings(rounds, round, r->index);
        struct dti_round_view *view = &route->view[round];
        uint32_t *representative;
        view->count = (uint32_t)(siblings.end - siblings.first);
        view->own = dti_rounds_block(rounds, round, r->index) - (uint32_t)siblings.first;
        view->start = &rounds->start[round][siblings.first];
        if (rounds->rounds == 1) /* every replica watches all others */
            continue;
        if ((representative = dti_allocate_zeroed(r, view->count * sizeof *representative)) == NULL)
            return DITTO_ERR_NO_MEMORY;
        for (uint32_t b = 0; b < view->count; b++)
            representative[b] = dti_rounds_representative(rounds, round, (uint32_t)siblings.first + b,
                                                          r->index);
        view->representative = representative;
    }
    return DITTO_OK;
}

/* Returns NULL if there is no memory. It is not zeroed, so pages that are not used are not touched. */
static void *stage_memory(struct dti_replica *r)
{
    void *stage;
    return dti_replica_alloc(r, DTI_STAGE_BYTES, DTI_CACHE_LINE_PAIR, &stage) == DITTO_OK ? stage : NULL;
}

ditto_status dti_sync_state_allocate(struct dti_replica *r, struct dti_sync *sync)
{
    struct dti_replica_state *me = &sync->state[r->index];
    if ((me->mailbox = dti_allocate_zeroed(r, 2 * sync->most_rounds * sizeof *me->mailbox)) == NULL ||
        (me->announcement = dti_allocate_zeroed(r, 2 * sizeof *me->announcement)) == NULL ||
        (me->known_calls = dti_allocate_zeroed(r, sizeof *me->known_calls)) == NULL ||
        (me->own_payload = dti_allocate_zeroed(r, DTI_PAYLOAD_BYTES)) == NULL ||
        (r->all_replicas == 2 && sync->num_replicas == 2 && !sync->oversubscribed &&
         (me->stage = stage_memory(r)) == NULL) ||
        (sync->most_rounds > 1 && (me->partials = dti_allocate_zeroed(r, DTI_PAYLOAD_BYTES)) == NULL))
        return DITTO_ERR_NO_MEMORY;
    DTI_TRY(dti_workspace_make(r, &me->workspace));
    for (int i = 0; i <= DITTO_IMPLEMENTATION_HIERARCHICAL; i++)
        DTI_TRY(make_route(r, &sync->rounds[i], &me->route[i]));
    DTI_TRY(dti_exchange_buffers_make(r, sync));
    DTI_TRY(dti_helper_work_make(r, sync));
    return dti_pending_make(r, sync);
}

void dti_sync_state_free(struct dti_replica *r, struct dti_sync *sync)
{
    struct dti_replica_state *state = &sync->state[r->index];
    dti_arena_free_remote(r->arena, state->mailbox);
    dti_arena_free_remote(r->arena, state->announcement);
    dti_arena_free_remote(r->arena, state->known_calls);
    dti_arena_free_remote(r->arena, state->own_payload);
    dti_arena_free_remote(r->arena, state->partials);
    dti_arena_free_remote(r->arena, state->stage);
    dti_workspace_free(r, &state->workspace);
    for (int i = 0; i <= DITTO_IMPLEMENTATION_HIERARCHICAL; i++)
        for (uint32_t round = 0; round < state->route[i].rounds; round++)
            dti_arena_free_remote(r->arena, (void *)state->route[i].view[round].representative);
    dti_exchange_buffers_free(r, sync);
    dti_helper_work_free(r, sync);
    dti_arena_free_remote(r->arena, state->pending);
    dti_arena_free_remote(r->arena, state->payloads);
}

void dti_sync_state_reset(struct dti_sync *sync)
{
    /* All stores are relaxed, because all replicas are parked and the go word of the next run publishes
     * them. */
    atomic_store_explicit(&sync->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&sync->release, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < sync->num_replicas; i++) {
        struct dti_replica_state *state = &sync->state[i];
        state->seq = 0;
        atomic_store_explicit(&state->run, 0, memory_order_relaxed);
        atomic_store_explicit(&state->number, 0, memory_order_relaxed);
        atomic_store_explicit(&state->finished, 0, memory_order_relaxed);
        atomic_store_explicit(&state->name, NULL, memory_order_relaxed);
        atomic_store_explicit(&state->accessing, 0, memory_order_relaxed);
        for (uint32_t k = 0; k < 2 * sync->most_rounds; k++)
            atomic_store_explicit(&state->mailbox[k].word, 0, memory_order_relaxed);
        dti_exchange_buffers_renew(sync, i);
        dti_pending_renew(state);
    }
    dti_started_renew(sync);
}

/* Returns the largest number of subtrees that a block passes on to the next round. */
static uint32_t most_parts(const struct dti_tree *tree, const struct dti_rounds *rounds)
{
    struct dti_span parts[DTI_TREE_PARTS];
    uint32_t most = 0;
    for (uint32_t cut = 1; cut < rounds->rounds; cut++)
        for (uint32_t b = 0; b < rounds->blocks[cut]; b++) {
            struct dti_span block = { rounds->start[cut][b], rounds->start[cut][b + 1] };
            uint32_t found = dti_tree_subtrees(tree, block, parts);
            most = found > most ? found : most;
        }
    return most;
}

ditto_status dti_sync_state_plan(struct dti_sync *sync)
{
    uint32_t near = sync->tuning.given.near_replicas;
    for (int i = 0; i <= DITTO_IMPLEMENTATION_HIERARCHICAL; i++) {
        struct dti_rounds *rounds = &sync->rounds[i];
        DTI_TRY(dti_rounds_make(&sync->shape, &sync->tuning.costs, (ditto_implementation)i, near, rounds));
        sync->most_parts[i] = most_parts(&sync->tree, rounds);
        sync->most_rounds = rounds->rounds > sync->most_rounds ? rounds->rounds : sync->most_rounds;
    }
    dti_groups_make(&sync->shape, &sync->tree, near, &sync->groups);
    return DITTO_OK;
}

void dti_sync_state_release(struct dti_sync *sync)
{
    for (int i = 0; i <= DITTO_IMPLEMENTATION_HIERARCHICAL; i++)
        dti_rounds_free(&sync->rounds[i]);
    dti_started_free(sync);
    free(sync->result);
    free(sync->diagnosis);
    free(sync->state); /* mailboxes and scratch memory are freed with the arenas */
    free(sync);
}

ditto_status dti_sync_state_make(struct dti_team *team, struct dti_replica *replica, uint32_t n,
                                 const struct dti_sync *like, struct dti_sync **out)
{
    struct dti_sync *sync = aligned_alloc(DTI_CACHE_LINE_PAIR, sizeof *sync);
    if (sync != NULL) {
        memset(sync, 0, sizeof *sync);
        sync->team = team;
        sync->replica = replica;
        sync->whole = sync;
        sync->num_replicas = n;
        sync->oversubscribed = dti_team_is_oversubscribed(team);
        sync->state = aligned_alloc(DTI_CACHE_LINE_PAIR, n * sizeof *sync->state);
        sync->result = aligned_alloc(DTI_CACHE_LINE_PAIR, DTI_PAYLOAD_BYTES);
        sync->diagnosis = malloc(dti_diagnosis_bytes(n));
        if (sync->state != NULL && sync->result != NULL && sync->diagnosis != NULL) {
            memset(sync->state, 0, n * sizeof *sync->state);
            for (uint32_t i = 0; i < n; i++)
                sync->state[i].reported = &sync->state[i];
            if (like != NULL) {
                sync->groupings = like->groupings;
                sync->kernels = like->kernels;
                sync->defaults = like->defaults;
                sync->tuning = like->tuning;
                sync->small_started = like->small_started;
            }
            *out = sync;
            return DITTO_OK;
        }
        dti_sync_state_release(sync);
    }
    return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the collectives of %u replicas", n);
}
