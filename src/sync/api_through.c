/* src/sync/api_through.c - ditto_all_reduce_through: an all-reduce in whose middle replica 0 calls a function
 * of the user's.
 *
 * It is a reduction to replica 0, the function, and a broadcast from replica 0, under one name. The function
 * runs between the two, when no replica has access to another one's buffers. */
#include "base/errors/user_call.h"
#include "base/numbers/checksum.h"
#include "base/numbers/fenv.h"
#include "sync/algorithms/collective.h"
#include "sync/call_arguments.h"
#include "sync/sync.h"

static DTI_GUARDED ditto_status call_function(const struct dti_arguments *a, void *buffer,
                                              ditto_through_fn through, void *user)
{
    DTI_GUARD("a function that changes a combined array (ditto_all_reduce_through)");
    ditto_status status = through(buffer, a->call.count, (ditto_dtype)a->call.dtype, user);
    DTI_GUARD_END();
    return status;
}

static ditto_status pass(const struct dti_arguments *a, void *buffer, ditto_through_fn through, void *user)
{
    struct dti_replica_state *me = dti_reported_state(a->replica);
    uint32_t serial = dti_this_thread()->errors;
    struct dti_fenv saved = dti_fenv_enter();
    me->calling = a->call.name;
    dti_reopen_call(me); /* messages of replicas that wait say that this one is in the call */
    ditto_status status = call_function(a, buffer, through, user);
    dti_finish_call(me);
    me->calling = NULL;
    dti_fenv_leave(saved);
    return status == DITTO_OK ? DITTO_OK : dti_fail_function(a->replica, &a->call, status, serial);
}

ditto_status ditto_all_reduce_through(ditto_replica *self, const void *src, void *dst, size_t count,
                                      ditto_dtype dtype, ditto_op op, ditto_through_fn through, void *user,
                                      const ditto_reduce_options *options)
{
    struct dti_arguments a;
    DTI_ENTER_QUICKLY();
    DTI_TRY(dti_arguments_begin(&a, self, "ditto_all_reduce_through", DTI_PATTERN_REDUCE, options, 0));
    if (through == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "through is NULL: give the function that replica 0 calls with the combined array");
    DTI_TRY(dti_arguments_reduce(&a, src, dst, count, count, dtype, op));
    DTI_TRY(dti_arguments_root(&a, 0));
    a.call.hash = dti_hash_word(a.call.hash, dti_sync_function(a.replica, (const void *)(uintptr_t)through));
    if (a.replica->rank != 0)
        a.call.dst = NULL;
    DTI_TRY(dti_collective(a.replica, &a.call, NULL, &a.deadline));
    if (a.replica->rank == 0)
        DTI_TRY(pass(&a, dst, through, user));
    a.call.pattern = DTI_PATTERN_BROADCAST;
    a.call.op = 0;
    a.call.src = dst;
    a.call.dst = dst;
    a.deadline = dti_replica_deadline(a.replica, a.options.timeout_ms);
    return dti_collective(a.replica, &a.call, NULL, &a.deadline);
}
