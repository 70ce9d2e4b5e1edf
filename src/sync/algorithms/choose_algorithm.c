/* src/sync/algorithms/choose_algorithm.c - see choose_algorithm.h. */
#include "sync/algorithms/choose_algorithm.h"
#include "replicas/team/team.h"
#include "sync/algorithms/flow.h"

static size_t list_bytes(const struct dti_call *call)
{
    size_t bytes = 0;
    for (size_t i = 0; i < call->count; i++)
        bytes += dti_item_bytes(&call->list[i]);
    return bytes;
}

static size_t parts_bytes(const struct dti_call *call, uint32_t n)
{
    size_t elements = 0;
    for (uint32_t i = 0; i < n; i++)
        elements += call->counts != NULL ? call->counts[i] : call->count;
    return elements * call->element_bytes;
}

DTI_KNOWS_PATTERNS(15);

struct dti_call_size dti_call_size_of(const struct dti_call *call, uint32_t n)
{
    size_t bytes = dti_call_has_items(call) ? list_bytes(call) : call->count * call->element_bytes,
           others = n - 1;
    switch ((enum dti_pattern)call->pattern) {
    case DTI_PATTERN_LIST:
        return (struct dti_call_size){ bytes, others * bytes, n * bytes };
    case DTI_PATTERN_REDUCE:
        return (struct dti_call_size){ bytes, others * bytes, bytes };
    case DTI_PATTERN_BROADCAST:
        return (struct dti_call_size){ bytes, bytes, others * bytes };
    case DTI_PATTERN_REDUCE_SCATTER: {
        size_t whole = parts_bytes(call, n);
        return (struct dti_call_size){ whole, others * bytes, whole };
    }
    case DTI_PATTERN_ALL_GATHER: {
        size_t whole = parts_bytes(call, n);
        return (struct dti_call_size){ bytes, whole, n * whole };
    }
    case DTI_PATTERN_GATHER:
        return (struct dti_call_size){ bytes, others * bytes, n * bytes };
    case DTI_PATTERN_SCATTER:
        return (struct dti_call_size){ n * bytes, bytes, n * bytes };
    case DTI_PATTERN_ALL_TO_ALL:
        return (struct dti_call_size){ n * bytes, others * bytes, n * n * bytes };
    default:
        return (struct dti_call_size){ bytes, others * bytes, n * bytes };
    }
}

static bool fits_mailboxes(const struct dti_sync *sync, const ditto_tuning *t, const struct dti_call *call,
                           const struct dti_call_size *size)
{
    uint32_t n = sync->num_replicas;
    bool combined_once = dti_meets_by_counter(sync, call);
    /* True if partial results are passed on from round to round. */
    bool carried = call->pattern == DTI_PATTERN_ALL_REDUCE && call->dtype != 0;
    size_t read = carried && (combined_once || n == 1) ? size->own : size->read;
    if (call->pattern == DTI_PATTERN_TARGET || size->own > DTI_PAYLOAD_BYTES || read > t->small_bytes)
        return false;
    return !carried || combined_once ||
           dti_partials_bytes(size->own * DTI_MOST_WIDENING, sync->most_parts[call->implementation]) <=
               DTI_PAYLOAD_BYTES;
}

/* Between two cores of a Zen 4, an all-reduce of 4 MiB took 411 us staged and 909 us otherwise. Longer
 * messages, which no cache holds, took up to three times as long staged. */
#define STAGED_MOST_BYTES ((size_t)4 << 20)

/* The same where an all-reduce gains nothing from staging. Between two threads of a core a broadcast of 512
 * KiB took 33 us staged and 54 us otherwise, and one of 2 MiB 151 and 41 us. */
#define STAGED_ONE_WAY_MOST_BYTES ((size_t)512 << 10)

/* A function of the user's does not combine staged values, because the next chunk would wait for it. Helpers
 * join the work on buffers, and not the work on chunks. */
static bool may_stage(const struct dti_sync *sync, const ditto_tuning *t, const struct dti_call *call,
                      size_t bytes)
{
    const struct dti_replica_state *state = sync->state;
    bool one_way = call->pattern == DTI_PATTERN_REDUCE || call->pattern == DTI_PATTERN_BROADCAST ||
                   call->pattern == DTI_PATTERN_GATHER || call->pattern == DTI_PATTERN_SCATTER ||
                   dti_call_scans(call);
    size_t least = one_way ? t->stage_one_way_bytes : t->stage_bytes,
           most = bytes < t->stage_bytes ? STAGED_ONE_WAY_MOST_BYTES : STAGED_MOST_BYTES;
    if (state[0].stage == NULL || bytes < least || bytes > most ||
        (bytes >= t->helper_bytes && (state[0].helper_work != NULL || state[1].helper_work != NULL)))
        return false;
    bool both_ways = call->pattern == DTI_PATTERN_ALL_REDUCE || call->pattern == DTI_PATTERN_REDUCE_SCATTER ||
                     call->pattern == DTI_PATTERN_ALL_GATHER || call->pattern == DTI_PATTERN_ALL_TO_ALL;
    return (one_way || both_ways) && call->dtype != 0 && call->counts == NULL &&
           call->implementation != DITTO_IMPLEMENTATION_HIERARCHICAL;
}

struct dti_algorithm_choice dti_choose_algorithm(const struct dti_sync *sync, const ditto_tuning *t,
                                                 const struct dti_call *call,
                                                 const struct dti_call_size *size)
{
    struct dti_algorithm_choice choice = { .algorithm = DTI_ALGORITHM_OWNERS,
                                           .streams = size->all >= t->stream_bytes,
                                           .fetches = size->all >= t->fetch_bytes };
    bool wants_groups = call->implementation == DITTO_IMPLEMENTATION_HIERARCHICAL ||
                        (call->implementation == DITTO_IMPLEMENTATION_DEFAULT &&
                         size->own >= t->hierarchical_bytes);
    if (may_stage(sync, t, call, size->own))
        choice.algorithm = DTI_ALGORITHM_STAGED;
    else if (fits_mailboxes(sync, t, call, size))
        choice.algorithm = DTI_ALGORITHM_MAILBOXES;
    else if (wants_groups && sync->groups.groups > 1 && !dti_call_moves_parts(call) && !dti_call_scans(call))
        choice.algorithm = DTI_ALGORITHM_GROUPS;
    return choice;
}

/* Returns the bytes that a reduction into a target writes. */
static size_t written_bytes(const struct dti_call *call, const struct dti_target *target)
{
    size_t bytes = 0;
    if (!dti_call_has_items(call))
        return call->count * call->element_bytes * target->copy_set[0].copies;
    for (size_t i = 0; i < call->count; i++)
        bytes += call->list[i].count * ditto_dtype_bytes(call->list[i].dtype) * target->copy_set[i].copies;
    return bytes;
}

struct dti_prepared_call dti_prepare_call(const struct dti_sync *sync, const ditto_tuning *tuning,
                                          const struct dti_call *call, const struct dti_target *target)
{
    struct dti_prepared_call prepared = { .call = call,
                                          .size = dti_call_size_of(call, (uint32_t)sync->tree.n) };
    if (target != NULL)
        prepared.size.all = written_bytes(call, target);
    prepared.choice = dti_choose_algorithm(sync, tuning, call, &prepared.size);
    if (sync->hosts != NULL)
        prepared.choice.algorithm = DTI_ALGORITHM_HOSTS;
    prepared.reduction = dti_flow_reduction(sync, call);
    return prepared;
}
