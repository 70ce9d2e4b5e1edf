/* src/sync/known_calls.c - finds, prepares and keeps the calls of a replica. See known_calls.h. */
#include "sync/known_calls.h"
#include "base/types/types.h"
#include "replicas/team/context.h"
#include "sync/algorithms/collective.h"
#include "sync/call_arguments.h"
#include "sync/sync.h"

static bool is_equal(const struct dti_request *a, const struct dti_request *b)
{
    return a->name == b->name && a->src == b->src && a->dst == b->dst && a->count == b->count &&
           a->root == b->root && a->dtype == b->dtype && a->op == b->op;
}

/* Returns where a call with these arguments is kept. */
static struct dti_known_call *entry_of(const struct dti_replica *self, const struct dti_request *request)
{
    uint64_t word = (uint64_t)(uintptr_t)request->src + (uint64_t)(uintptr_t)request->dst * 3 +
                    (uint64_t)(uintptr_t)request->name * 5 + request->count * 7 + request->root;
    return &self->sync->state[self->id]
                .known->entry[word * 0x9e3779b97f4a7c15u >> 32 & (DTI_KNOWN_CALLS - 1)];
}

static ditto_status check(struct dti_arguments *a, const struct dti_request *q)
{
    size_t bytes;
    bool receives = q->root == a->replica->id;
    switch (q->pattern) {
    case DTI_PATTERN_NOTHING:
        return DITTO_OK;
    case DTI_PATTERN_REDUCE:
        DTI_TRY(dti_arguments_root(a, q->root));
        return dti_arguments_reduce(a, q->src, receives ? q->dst : NULL, q->count, receives ? q->count : 0,
                                    q->dtype, q->op);
    case DTI_PATTERN_BROADCAST:
        DTI_TRY(dti_arguments_root(a, q->root));
        /* The buffer is checked here, because the messages of dti_arguments_move would call it src. */
        DTI_TRY(dti_buffer_bytes(q->count, q->dtype, &bytes));
        DTI_TRY(dti_buffer_check(q->dst, bytes, q->dtype, "buffer"));
        return dti_arguments_move(a, q->dst, q->dst, q->count, q->count, q->dtype);
    case DTI_PATTERN_REDUCE_SCATTER:
        return dti_arguments_scatter(a, q->src, q->dst, q->count, NULL, q->dtype, q->op);
    case DTI_PATTERN_ALL_GATHER:
        return dti_arguments_gather(a, q->src, q->dst, q->count, NULL, q->dtype);
    default:
        return dti_arguments_reduce(a, q->src, q->dst, q->count, q->count, q->dtype, q->op);
    }
}

/* Keeps a call whose arguments have been checked. */
static void keep(struct dti_replica *self, const struct dti_request *request, const struct dti_call *call)
{
    const struct dti_sync *sync = self->sync;
    struct dti_known_call *known = entry_of(self, request);
    known->request = *request;
    known->call = *call;
    known->call.known = ++sync->state[self->id].known->last_number;
    known->call.digest = dti_call_digest(call);
    if (request->pattern != DTI_PATTERN_NOTHING)
        known->prepared = dti_prepare(sync, &sync->tuning.given, &known->call, NULL);
}

ditto_status dti_request_collective(ditto_replica *self, const struct dti_request *request,
                                    const ditto_reduce_options *options)
{
    struct dti_replica *replica;
    DTI_TRY(dti_self(self, &replica));
    DTI_TRY(dti_check_outside_function(replica, request->name));
    struct dti_known_call *known = entry_of(replica, request);
    if (options != NULL || !is_equal(&known->request, request)) {
        struct dti_arguments a;
        DTI_TRY(dti_arguments_begin(&a, self, request->name, request->pattern, options, 0));
        DTI_TRY(check(&a, request));
        if (options != NULL)
            return request->pattern == DTI_PATTERN_NOTHING
                       ? dti_barrier(replica, &a.call, &a.deadline)
                       : dti_collective(replica, &a.call, NULL, &a.deadline);
        keep(replica, request, &a.call);
    }
    struct dti_deadline deadline = dti_replica_deadline(replica, replica->timeout_ms);
    return request->pattern == DTI_PATTERN_NOTHING
               ? dti_barrier(replica, &known->call, &deadline)
               : dti_collective_prepared(replica, &known->prepared, NULL, &deadline);
}
