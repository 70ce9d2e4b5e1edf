/* src/sync/meeting/failure.c - describes the missing replicas, and returns the errors about them. See
 * failure.h.
 *
 * Any thread may read the label of a replica's last collective, while the replica replaces it by that of
 * another one. The label is therefore a seqlock (Boehm, MSPC 2012). Its version consists of the number of the
 * run and that of the collective, so no version comes twice.
 * Edges       B0 -> B1  The replica stores 0 as the version, then the words of the label. A reader that sees
 *                       such a word sees 0, or a later version, when it reads the version again.
 *             B2 -> B3  The replica stores the words, then the version. A reader that sees the version sees
 *                       the words.
 * Therefore   a reader that has found the same version twice has its label. No side waits. */
#include "sync/meeting/failure.h"
#include "replicas/team/stopping.h"
#include "replicas/team/team.h"

#include <string.h>

enum { MOST_DESCRIBED = 3, LABEL_WORDS = DTI_LABEL_BYTES / sizeof(uint64_t) };

static uint64_t version_of(const struct dti_replica_state *state, uint32_t number)
{
    return atomic_load_explicit(&state->run, memory_order_relaxed) << 32 | number;
}

void dti_label_call(struct dti_replica_state *me, uint32_t number, const char *label)
{
    uint64_t word[LABEL_WORDS] = { 0 };
    memcpy(word, label, strlen(label)); /* the length has been checked */
    atomic_store_explicit(&me->labelled, 0, memory_order_relaxed);
    for (int i = 0; i < LABEL_WORDS; i++)
        atomic_store_explicit(&me->label[i], word[i], memory_order_release);            /* B0 */
    atomic_store_explicit(&me->labelled, version_of(me, number), memory_order_release); /* B2 */
}

/* Writes for example 'ditto_all_reduce "loss" #7', where `name` and `number` are those of the replica's last
 * collective. */
static void describe_last_call(const struct dti_replica_state *state, const char *name, uint32_t number,
                               struct dti_text *text)
{
    uint64_t word[LABEL_WORDS], version = version_of(state, number);
    bool has = atomic_load_explicit(&state->labelled, memory_order_acquire) == version; /* B3 */
    for (int i = 0; i < LABEL_WORDS; i++)
        word[i] = atomic_load_explicit(&state->label[i], memory_order_acquire); /* B1 */
    has = has && atomic_load_explicit(&state->labelled, memory_order_relaxed) == version;
    dti_text_add_name(text, name, has ? (const char *)word : NULL);
    dti_text_add(text, " #%u", number);
}

/* Returns true if no other replica has begun a later run. If it returns false, the last call of `replica`
 * belongs to an earlier run. */
static bool is_in_last_run(const struct dti_sync *sync, uint32_t replica)
{
    sync = sync->whole;
    uint64_t own_run = atomic_load_explicit(&sync->state[replica].run, memory_order_relaxed);
    uint32_t i = 0;
    while (i < sync->num_replicas &&
           atomic_load_explicit(&sync->state[i].run, memory_order_relaxed) <= own_run)
        i++;
    return i == sync->num_replicas;
}

void dti_describe_place(const struct dti_sync *sync, uint32_t replica, struct dti_text *text)
{
    const struct dti_replica *r = &sync->replica[replica];
    const struct dti_replica_state *state = &sync->whole->state[r->place];
    /* All loads are relaxed, because the values may change meanwhile. The name may be that of the call before
     * the one that has the number and the label. */
    const char *name = atomic_load_explicit(&state->name, memory_order_relaxed);
    uint32_t number = atomic_load_explicit(&state->number, memory_order_relaxed);
    bool returned = dti_replica_returned(r);
    bool is_inside = !returned && atomic_load_explicit(&state->finished, memory_order_relaxed) != number;
    if (returned)
        dti_text_add(text, "returned from its function; ");
    if (name != NULL && is_in_last_run(sync, r->place)) {
        dti_text_add(text, is_inside ? "in " : "last in ");
        describe_last_call(state, name, number, text);
    } else {
        dti_text_add(text, "in no collective yet");
    }
}

void dti_describe_replica(const struct dti_sync *sync, uint32_t replica, struct dti_text *text)
{
    dti_text_add(text, "replica %u (", sync->replica[replica].id);
    dti_describe_place(sync, replica, text);
    dti_text_add(text, ")");
}

uint32_t dti_describe_missing(const struct dti_sync *sync, dti_is_missing *is_missing, uint64_t number,
                              struct dti_text *text)
{
    /* Each replica is checked once, because it may come meanwhile. */
    bool missing[DITTO_MAX_REPLICAS], of_team[DITTO_MAX_REPLICAS] = { false };
    uint32_t n = sync->num_replicas, count = 0, described = 0;
    for (uint32_t i = 0; i < n; i++) {
        missing[i] = is_missing(sync, i, number);
        of_team[sync->replica[i].place] = missing[i];
        count += missing[i];
    }
    if (count > MOST_DESCRIBED) {
        dti_text_add(text, "replicas ");
        dti_text_add_set(text, of_team, sync->whole->num_replicas, dti_team_first_replica(sync->team));
        dti_text_add(text, ", the first of them ");
    }
    for (uint32_t i = 0; i < n && described < MOST_DESCRIBED; i++)
        if (missing[i]) {
            dti_text_add(text, "%s", described++ != 0 ? ", " : "");
            dti_describe_replica(sync, i, text);
        }
    return count;
}

ditto_status dti_fail_left(struct dti_replica *self, const char *waits_in, const char *awaited)
{
    DTI_FAIL(DITTO_ERR_DIVERGED, "replica %u waits in %s for %s: every %s must make the same calls", self->id,
             waits_in, awaited, dti_participant(self->sync));
    dti_replica_stop(self);
    return dti_team_stop_status(self->team);
}

ditto_status dti_fail_late(struct dti_replica *self, const struct dti_deadline *deadline,
                           const char *waits_in, const char *awaited)
{
    if (dti_deadline_is_of_run(self, deadline))
        DTI_FAIL(DITTO_ERR_TIMED_OUT, "run_timeout_ms = %u passed while replica %u waited in %s for %s",
                 dti_team_options(self->team)->run_timeout_ms, self->id, waits_in, awaited);
    else
        DTI_FAIL(DITTO_ERR_TIMED_OUT, "replica %u waited %u ms in %s for %s", self->id, deadline->timeout_ms,
                 waits_in, awaited);
    ditto_error own_error = *dti_error_get();
    dti_replica_stop_late(self, deadline);
    dti_error_set(&own_error);
    return DITTO_ERR_TIMED_OUT;
}
