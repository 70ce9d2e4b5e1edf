/* src/strategy/runs/next_value.c - takes batches as distributed values, and describes the iterators of a
 * strategy. */
#include "input/input.h"
#include "replicas/team/turn.h"
#include "strategy/strategy.h"
#include "sync/hosts/cross.h"
#include "sync/hosts/hosts.h"
#include "sync/sync.h"
#include "values/make_value.h"
#include "values/values.h"

#include <stdlib.h>
#include <string.h>

/* -- values -- */

struct value_take {
    ditto_iterator *iterator;
    ditto_batch *batch;             /* [replicas] */
    _Atomic uint32_t num_with_rows; /* replicas that have got a batch */
};

/* Finds the next batch of this replica. If the replica's queue has ended or failed, the replica gets a batch
 * without rows. The end or error is not lost, because dti_iterator_end returns it when no replica has rows
 * any more. */
static ditto_status peek_own(struct dti_replica *r, void *argument)
{
    struct value_take *t = argument;
    ditto_error kept = *dti_error_get();
    ditto_status status = dti_iterator_next(r, t->iterator, &t->batch[r->index], false);
    if (status == DITTO_OK)
        /* relaxed: it is read after the job, whose end orders it (D0 -> D1 of team.h) */
        atomic_fetch_add_explicit(&t->num_with_rows, 1, memory_order_relaxed);
    else if (!dti_iterator_has_ended(t->iterator, r->index))
        return status;
    else {
        dti_error_set(&kept);
        dti_iterator_describe_empty(t->iterator, &t->batch[r->index]);
    }
    return DITTO_OK;
}

/* Finds the next batches of all replicas. *has_rows says whether one of them has rows. */
static ditto_status peek_all(ditto_strategy *strategy, ditto_iterator *iterator, ditto_batch *batch,
                             uint32_t *has_rows)
{
    struct value_take taking = { iterator, batch, 0 };
    struct dti_team *team = strategy->base.team;
    /* In a merge function, notices concern the run around it. */
    struct dti_hosts *hosts = dti_team_pauses(team) == 0 ? strategy->hosts : NULL;
    DTI_TRY(dti_sync_run_begins(team));
    DTI_TRY(dti_hosts_run_begins(hosts));
    ditto_status status = dti_sync_run_job(team, peek_own, &taking);
    status = dti_hosts_run_ended(hosts, status);
    dti_sync_run_ended(team);
    DTI_TRY(status);
    *has_rows = atomic_load_explicit(&taking.num_with_rows, memory_order_relaxed) != 0;
    return DITTO_OK;
}

/* The same over all hosts. A step exists on all hosts if it exists on one. Otherwise all return the end of
 * the input, or the error of a host whose input has failed. If pipelines have one order of rows, such an
 * error ends the input of all. */
static ditto_status peek_hosts(ditto_strategy *strategy, ditto_iterator *iterator, ditto_batch *batch)
{
    struct dti_team *team = strategy->base.team;
    struct dti_cross_request request = { .name = "ditto_iterator_next",
                                         .digest = dti_iterator_number(iterator) };
    const struct dti_gathered *all;
    struct {
        uint32_t has_rows, has_failed;
    } own = { 0, 0 }, theirs;
    bool has_rows = false, has_failed = false;
    DTI_TRY(peek_all(strategy, iterator, batch, &own.has_rows));
    if (!dti_cross_has_hosts(team))
        return own.has_rows ? DITTO_OK : dti_iterator_end(iterator);
    own.has_failed = dti_iterator_has_failed_in_order(iterator);
    DTI_TRY(dti_cross_gather(team, &request, &own, sizeof own, &all));
    for (uint32_t h = 0; h < dti_cross_hosts(team); h++) {
        memcpy(&theirs, all[h].data, sizeof theirs);
        has_rows |= theirs.has_rows != 0;
        has_failed |= theirs.has_failed != 0;
    }
    if (has_rows && !has_failed)
        return DITTO_OK;
    return dti_cross_agree(team, "the end of an iterator", dti_iterator_end(iterator));
}

/* Makes a value of component k of all batches. Each replica copies its part, because the slots of the queue
 * are reused. */
static ditto_status make_component(ditto_strategy *strategy, const ditto_batch *batch, uint32_t k,
                                   ditto_tensor *part, ditto_value **out)
{
    ditto_value *value;
    for (uint32_t r = 0; r < strategy->base.num_replicas; r++)
        part[r] = batch[r].component[k];
    DTI_TRY(dti_value_make(strategy, DITTO_VALUE_PER_REPLICA, &value));
    return dti_value_finish(value, dti_make_from_tensors(value, part, 1), out);
}

static ditto_status make_value(ditto_strategy *strategy, const ditto_batch *batch, ditto_tensor *part,
                               ditto_value **out)
{
    ditto_value *nest, *member;
    char name[16];
    ditto_status status = DITTO_OK;
    if (batch[0].num_components == 1)
        return make_component(strategy, batch, 0, part, out);
    DTI_TRY(dti_value_make(strategy, DITTO_VALUE_NEST, &nest));
    for (uint32_t k = 0; k < batch[0].num_components && status == DITTO_OK; k++) {
        dti_number_name(name, k);
        status = make_component(strategy, batch, k, part, &member);
        if (status == DITTO_OK)
            status = dti_nest_add(nest, name, member);
    }
    return dti_value_finish(nest, status, out);
}

/* Takes the batches only when their value is made. If a replica's wait times out, or memory is refused, the
 * next call therefore finds the same batches. */
static ditto_status take_all(ditto_strategy *strategy, ditto_iterator *iterator, ditto_batch *batch,
                             ditto_tensor *part, ditto_value **out)
{
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(strategy->base.team, &frame, DTI_CALLER_PINNED));
    ditto_status status = peek_hosts(strategy, iterator, batch);
    if (status == DITTO_OK)
        status = make_value(strategy, batch, part, out);
    if (status == DITTO_OK) {
        status = dti_cross_agree(strategy->base.team, "the end of ditto_iterator_next", status);
        if (status != DITTO_OK) {
            dti_value_drop(*out);
            *out = NULL;
        }
    }
    for (uint32_t r = 0; r < strategy->base.num_replicas && status == DITTO_OK; r++)
        dti_iterator_take_peeked(iterator, r);
    dti_cross_leave(strategy->base.team, &frame);
    return status;
}

static ditto_status check_across(const struct dti_team *team)
{
    const struct dti_frame *top = dti_this_thread()->frame;
    if (top != NULL && top->kind == DTI_CONTEXT_REPLICA && top->team == team)
        return DTI_FAIL(
            DITTO_ERR_CONTEXT,
            "called on replica %u's thread, but this takes the batches of all replicas: inside a run each "
            "replica takes its own with ditto_next, of an iterator that is used in this way alone",
            top->replica->id);
    return dti_context_check_cross(team);
}

static ditto_status next_value(ditto_strategy *strategy, ditto_iterator *iterator, ditto_value **out)
{
    uint32_t n = strategy->base.num_replicas;
    DTI_TRY(check_across(strategy->base.team));
    DTI_TRY(dti_iterator_claim(iterator, DTI_USE_CROSS));
    ditto_batch *batch = malloc(n * sizeof *batch);
    ditto_tensor *part = malloc(n * sizeof *part);
    ditto_status status = batch != NULL && part != NULL
                              ? take_all(strategy, iterator, batch, part, out)
                              : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the batches of %u replicas", n);
    free(batch);
    free(part);
    return status;
}

ditto_status dti_input_next_value(ditto_iterator *iterator, ditto_value **out)
{
    struct dti_team *team = dti_iterator_team(iterator);
    uint64_t begin = dti_cross_begin(team);
    return dti_cross_tell(team, begin, next_value(dti_team_strategy(team), iterator, out));
}

/* -- reports -- */

static double percent(uint64_t part, uint64_t whole)
{
    return whole != 0 ? 100.0 * (double)part / (double)whole : 0;
}

void dti_input_describe(const struct dti_team *team, struct dti_text *text)
{
    uint32_t number = 0;
    for (const ditto_iterator *it = NULL; (it = dti_iterator_after(team, it)) != NULL; number++) {
        ditto_iterator_counters s;
        dti_iterator_stats(it, DITTO_ALL_REPLICAS, &s);
        double seconds = (double)s.elapsed_ns / 1e9;
        uint64_t replicas_ns = s.elapsed_ns * s.num_replicas, producers_ns = s.elapsed_ns * s.num_producers;
        dti_text_add(
            text,
            "iterator %u: step %llu, %.0f rows/s, %.1f MB/s; replicas waited %.0f %% of the time, %u "
            "producer%s %.0f %%; "
            "%u of %u batches ready, %.1f MiB\n",
            number, (unsigned long long)s.steps, (double)s.rows / seconds, (double)s.bytes / seconds / 1e6,
            percent(s.consumer_wait_ns, replicas_ns), s.num_producers, s.num_producers == 1 ? "" : "s",
            percent(s.producer_wait_ns, producers_ns), s.depth, s.num_replicas * s.num_slots,
            (double)s.queue_bytes / (1 << 20));
    }
}
