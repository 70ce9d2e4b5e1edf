/* src/sync/known_calls.c - finds, prepares and keeps the calls of a replica. See known_calls.h. */
#include "sync/known_calls.h"
#include "base/types/types.h"
#include "replicas/team/context.h"
#include "sync/algorithms/collective.h"
#include "sync/call_arguments.h"
#include "sync/sync.h"

static bool is_equal(const struct dti_collective_arguments *a, const struct dti_collective_arguments *b)
{
    return a->src == b->src && a->dst == b->dst && a->count == b->count && a->name == b->name &&
           a->root == b->root && a->dtype == b->dtype && a->op == b->op;
}

/* Returns NULL if there is none. The search begins with the entry that was used last and goes on in the order
 * in which calls were kept, because programs repeat their calls in one order. */
static struct dti_known_call *find(struct dti_known_calls *known,
                                   const struct dti_collective_arguments *arguments)
{
    for (uint32_t k = 0; k < DTI_KNOWN_CALLS; k++) {
        uint32_t i = (known->last + k) % DTI_KNOWN_CALLS;
        if (is_equal(&known->entry[i].arguments, arguments)) {
            known->last = i;
            return &known->entry[i];
        }
    }
    return NULL;
}

DTI_KNOWS_PATTERNS(10);

static ditto_status check(struct dti_arguments *out, const struct dti_collective_arguments *given)
{
    size_t bytes;
    bool receives = given->root == out->replica->id;
    switch (given->pattern) {
    case DTI_PATTERN_ALL_REDUCE:
        return dti_arguments_reduce(out, given->src, given->dst, given->count, given->count, given->dtype,
                                    given->op);
    case DTI_PATTERN_REDUCE:
        DTI_TRY(dti_arguments_root(out, given->root));
        return dti_arguments_reduce(out, given->src, receives ? given->dst : NULL, given->count,
                                    receives ? given->count : 0, given->dtype, given->op);
    case DTI_PATTERN_BROADCAST:
        DTI_TRY(dti_arguments_root(out, given->root));
        /* The buffer is checked here, because the messages of dti_arguments_move would call it src. */
        DTI_TRY(dti_buffer_bytes(given->count, given->dtype, &bytes));
        DTI_TRY(dti_buffer_check(given->dst, bytes, given->dtype, "buffer"));
        return dti_arguments_move(out, given->dst, given->dst, given->count, given->count, given->dtype);
    case DTI_PATTERN_REDUCE_SCATTER:
        return dti_arguments_scatter(out, given->src, given->dst, given->count, NULL, given->dtype,
                                     given->op);
    case DTI_PATTERN_ALL_GATHER:
        return dti_arguments_gather(out, given->src, given->dst, given->count, NULL, given->dtype);
    default: /* DTI_PATTERN_NOTHING. No other pattern comes here. */
        return DITTO_OK;
    }
}

/* Keeps a call whose arguments have been checked, in place of the oldest one. */
static struct dti_known_call *keep(const struct dti_replica *self,
                                   const struct dti_collective_arguments *arguments,
                                   const struct dti_call *call)
{
    const struct dti_sync *sync = self->sync;
    struct dti_known_calls *known = sync->state[self->index].known_calls;
    known->last = (uint32_t)(known->number++ % DTI_KNOWN_CALLS);
    struct dti_known_call *entry = &known->entry[known->last];
    entry->arguments = *arguments;
    entry->call = *call;
    entry->call.known_number = known->number;
    entry->call.digest = dti_call_digest(call);
    if (arguments->pattern != DTI_PATTERN_NOTHING)
        entry->prepared = dti_prepare_call(sync, &sync->tuning.given, &entry->call, NULL);
    return entry;
}

ditto_status dti_collective_of(ditto_replica *self, const struct dti_collective_arguments *arguments,
                               const ditto_reduce_options *options)
{
    struct dti_replica *replica;
    DTI_TRY(dti_self(self, &replica));
    DTI_TRY(dti_check_outside_function(replica, arguments->name));
    struct dti_known_calls *known = replica->sync->state[replica->index].known_calls;
    struct dti_known_call *entry = options == NULL ? find(known, arguments) : NULL;
    if (entry == NULL) {
        struct dti_arguments a;
        DTI_TRY(dti_arguments_begin(&a, self, arguments->name, arguments->pattern, options, 0));
        DTI_TRY(check(&a, arguments));
        if (options != NULL)
            return arguments->pattern == DTI_PATTERN_NOTHING
                       ? dti_barrier(replica, &a.call, &a.deadline)
                       : dti_collective(replica, &a.call, NULL, &a.deadline);
        entry = keep(replica, arguments, &a.call);
    }
    struct dti_deadline deadline = dti_replica_deadline(replica, replica->timeout_ms);
    return arguments->pattern == DTI_PATTERN_NOTHING
               ? dti_barrier(replica, &entry->call, &deadline)
               : dti_collective_prepared(replica, &entry->prepared, NULL, &deadline);
}
