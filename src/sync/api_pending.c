/* src/sync/api_pending.c - the public functions of include/ditto/pending.h. */
#include "replicas/team/team.h"
#include "sync/call_arguments.h"
#include "sync/grouping/grouping.h"
#include "sync/pending/pending.h"
#include "sync/sync.h"

static ditto_status start(struct dti_arguments *a, ditto_pending *out)
{
    uint64_t number;
    DTI_TRY(dti_pending_start(a->replica, &a->call, NULL, &a->deadline, &number));
    *out = (ditto_pending){ .number = number,
                            .replica = a->replica,
                            .run = (uint32_t)dti_team_run_number(a->replica->team) };
    return DITTO_OK;
}

ditto_status ditto_all_reduce_start(ditto_replica *self, const void *src, void *dst, size_t count,
                                    ditto_dtype dtype, ditto_op op, const ditto_reduce_options *options,
                                    ditto_pending *out)
{
    struct dti_arguments a;
    DTI_ENTER_QUICKLY();
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_arguments_begin(&a, self, "ditto_all_reduce_start", DTI_PATTERN_ALL_REDUCE, options, 0));
    DTI_TRY(dti_arguments_reduce(&a, src, dst, count, count, dtype, op));
    return start(&a, out);
}

ditto_status ditto_reduce_scatter_start(ditto_replica *self, const void *src, void *dst, size_t count,
                                        ditto_dtype dtype, ditto_op op, const ditto_reduce_options *options,
                                        ditto_pending *out)
{
    struct dti_arguments a;
    DTI_ENTER_QUICKLY();
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(
        dti_arguments_begin(&a, self, "ditto_reduce_scatter_start", DTI_PATTERN_REDUCE_SCATTER, options, 0));
    DTI_TRY(dti_arguments_scatter(&a, src, dst, count, NULL, dtype, op));
    return start(&a, out);
}

ditto_status ditto_all_gather_start(ditto_replica *self, const void *src, void *dst, size_t count,
                                    ditto_dtype dtype, const ditto_reduce_options *options,
                                    ditto_pending *out)
{
    struct dti_arguments a;
    DTI_ENTER_QUICKLY();
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_arguments_begin(&a, self, "ditto_all_gather_start", DTI_PATTERN_ALL_GATHER, options, 0));
    DTI_TRY(dti_arguments_gather(&a, src, dst, count, NULL, dtype));
    return start(&a, out);
}

ditto_status ditto_all_to_all_start(ditto_replica *self, const void *src, void *dst, size_t count,
                                    ditto_dtype dtype, const ditto_reduce_options *options,
                                    ditto_pending *out)
{
    struct dti_arguments a;
    DTI_ENTER_QUICKLY();
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_arguments_begin(&a, self, "ditto_all_to_all_start", DTI_PATTERN_ALL_TO_ALL, options, 0));
    DTI_TRY(dti_arguments_parts(&a, src, dst, count, dtype));
    return start(&a, out);
}

/* Returns the number of the operation in *number, if the handle belongs to a replica of the team and is open,
 * and in *of the replica or its copy in the group of the operation. */
static ditto_status check_handle(struct dti_replica *self, const ditto_pending *pending, uint64_t *number,
                                 struct dti_replica **of)
{
    DTI_TRY(dti_not_null(pending, "pending"));
    *number = pending->number;
    if (pending->number == 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the handle is empty: the operation has been waited for already, or was never "
                        "started");
    /* The pointer is only compared, because the handle may be of a destroyed strategy. */
    bool of_team = dti_team_has_replica(self->team, pending->replica), in_group = false;
    *of = pending->replica == self ? self : dti_group_copy(self, pending->replica, &in_group);
    if (*of == NULL)
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "the handle is another %s: this thread is replica %u and waits for its own",
                        of_team || in_group ? "replica's" : "strategy's", self->id);
    if (pending->run != (uint32_t)dti_team_run_number(self->team))
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "the handle is of an earlier run: operations are waited for in the run that "
                        "started them");
    if (dti_replica_state_of(*of)->pending->open[*number % DITTO_MAX_PENDING] != *number)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "operation #%llu is not open: it has been waited for, or abandoned",
                        (unsigned long long)dti_number_in_run(*of, *number));
    return DITTO_OK;
}

ditto_status ditto_wait(ditto_replica *self, ditto_pending *pending, const ditto_reduce_options *options)
{
    struct dti_arguments a;
    struct dti_replica *of;
    uint64_t number;
    ditto_reduce_options own;
    DTI_ENTER_QUICKLY();
    if (options != NULL) { /* the operation knows its group */
        DTI_TRY(dti_options_copy(&own, sizeof own, options, "ditto_reduce_options"));
        own.group = NULL;
        options = &own;
    }
    DTI_TRY(dti_arguments_begin(&a, self, "ditto_wait", DTI_PATTERN_NOTHING, options, 0));
    DTI_TRY(check_handle(a.replica->of_team, pending, &number, &of));
    DTI_TRY(dti_pending_wait(of, number, &a.deadline));
    pending->number = 0;
    return DITTO_OK;
}

ditto_status ditto_test(ditto_replica *self, ditto_pending *pending)
{
    uint64_t number;
    DTI_ENTER_QUICKLY();
    struct dti_replica *r, *of;
    DTI_TRY(dti_self(self, &r));
    DTI_TRY(dti_check_outside_function(r, "ditto_test"));
    DTI_TRY(check_handle(r, pending, &number, &of));
    DTI_TRY(dti_pending_wait(of, number, NULL));
    pending->number = 0;
    return DITTO_OK;
}

ditto_status ditto_abandon(ditto_replica *self, ditto_status status)
{
    char oldest[DTI_CALL_TEXT_BYTES];
    const char *wait;
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_TRY(dti_check_outside_function(r, "ditto_abandon"));
    uint32_t open = dti_pending_open(r, oldest, &wait);
    if (open == 0)
        return status;
    if (status >= 0)
        status = DTI_FAIL(DITTO_ERR_INVALID,
                          "status is not an error, but this replica has %u pending operation%s, the oldest "
                          "is %s: wait for each with %s",
                          open, open > 1 ? "s" : "", oldest, wait);
    else if (dti_error_get()->status != status)
        DTI_FAIL(status, "replica %u gave up %u pending operation%s (%s)", r->id, open, open > 1 ? "s" : "",
                 ditto_status_name(status));
    return dti_pending_abandon(r, status);
}
