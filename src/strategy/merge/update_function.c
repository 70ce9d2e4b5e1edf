/* src/strategy/merge/update_function.c - calls the user's functions on the copies of a variable, in update
 * context. */
#include "base/errors/user_call.h"
#include "base/numbers/checksum.h"
#include "cluster/function.h"
#include "replicas/helpers/remote_memory.h"
#include "replicas/jobs/jobs.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"
#include "strategy/merge/merge.h"
#include "strategy/strategy.h"
#include "sync/hosts/cross.h"
#include "sync/meeting/access.h"
#include "values/make_value.h"
#include "values/values.h"
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>

/* Slices of dimension 0 are ranges of rows, as the whole is. Others are parts of rows. */
static ditto_status check_contiguous(const ditto_variable *v)
{
    if (v->slicing == NULL)
        return dti_variable_check_whole(v, "an update of");
    if (v->order.axis == 0)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                    "an update of \"%s\", which is sliced in dimension %u: use ditto_assign, or slice "
                    "dimension 0",
                    v->name, v->order.axis);
}

/* Returns the replica whose arguments are used for a shared copy. All copies of a slice get the same ones, so
 * they stay equal. */
static uint32_t giver_of(const ditto_variable *v, uint32_t replica)
{
    return v->slicing != NULL ? dti_slice_first_replica(v->slicing, replica) : 0;
}

/* Calls the function on one copy, on the thread of the copy's replica. *result refers to memory of the
 * function. Its dtype is 0 if there is no result. */
static DTI_GUARDED ditto_status call_function(struct dti_replica *r, ditto_variable *v,
                                              const struct dti_update_request *request,
                                              const ditto_tensor *arguments, ditto_tensor *result)
{
    ditto_tensor copy = v->spec;
    struct dti_frame frame;
    size_t bytes, first;
    if (v->slicing != NULL)
        copy = dti_slice_spec(v, v->slicing->rank[r->index], &first);
    copy.data = dti_variable_component(v, r->index);
    *result = (ditto_tensor){ .data = NULL };
    struct dti_fenv saved = dti_frame_enter(&frame, DTI_CONTEXT_UPDATE, r, NULL);
    frame.object = v;
    uint32_t serial = dti_this_thread()->errors;
    DTI_GUARD("the function of an update");
    ditto_status status = request->function(&copy, arguments, request->count, request->user, result);
    DTI_GUARD_END();
    dti_frame_leave(&frame, saved);
    DTI_TRY(dti_function_status(status, serial, "the function of an update of \"%s\"", v->name));
    if (result->dtype == 0)
        return DITTO_OK;
    if (DTI_IS_BELOW_FRAME(result->data))
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "the result of the update of \"%s\" is a local array of the function: give memory that "
            "stays valid after the function has returned",
            v->name);
    DTI_TRY(dti_tensor_check(result, &bytes));
    return dti_buffer_check(result->data, bytes, result->dtype, "the update's result");
}

/* -- cross-replica context -- */

struct updating {
    ditto_variable *variable;
    const struct dti_update_request *request;
    const ditto_value *const *arguments;
    ditto_value *results; /* NULL if results are ignored */

    /* A copy of each argument that was taken from the variable, because the function changes the component
     * on one replica while others read it. NULL for other arguments. */
    void *copied[DITTO_MAX_MERGE_ARGUMENTS];
};

static ditto_status check_argument(const ditto_value *argument)
{
    if (argument->kind == DITTO_VALUE_NEST || argument->kind == DITTO_VALUE_SLICES)
        return DTI_FAIL(DITTO_ERR_INVALID, "%s cannot be an argument of an update: give tensors",
                        dti_value_kind_text(argument->kind));
    return DITTO_OK;
}

/* Returns true if the argument may differ between replicas. The caller has the turn. */
static bool is_per_replica(const ditto_value *argument)
{
    if (argument->kind == DITTO_VALUE_VARIABLE)
        return !argument->variable->mirrored || dti_variable_may_differ(argument->variable);
    return argument->kind == DITTO_VALUE_PER_REPLICA;
}

/* Checks that the variable can be updated. If an argument may differ between replicas, makes sure that each
 * replica has its own copy, unless the variable is sliced. Copies the arguments that are components of the
 * variable. The caller has the turn. */
static ditto_status prepare(struct updating *u)
{
    ditto_variable *v = u->variable;
    bool may_differ = false;
    for (uint32_t k = 0; v->slicing == NULL && k < u->request->count; k++)
        may_differ |= is_per_replica(u->arguments[k]);
    if (may_differ)
        DTI_TRY(dti_variable_check_each(v));
    DTI_TRY(check_contiguous(v));
    /* Before the split, so that nothing has changed if there is no memory. */
    for (uint32_t k = 0; k < u->request->count; k++)
        DTI_TRY(dti_inspect_copy_component(u->arguments[k], v, &u->copied[k]));
    return may_differ && v->mirrored ? dti_variable_split(v) : DITTO_OK;
}

static ditto_status keep_result(const struct updating *u, uint32_t replica, const ditto_tensor *result)
{
    void *data;
    size_t bytes = ditto_tensor_bytes(result);
    ditto_tensor *part = &u->results->part[replica];
    *part = *result;
    part->device = 0;
    DTI_TRY(dti_value_buffer_take(dti_pool_of(dti_team_strategy(u->variable->team), replica), bytes,
                                  &u->results->component[replica], &data));
    if (bytes != 0)
        memcpy(data, result->data, bytes);
    part->data = data;
    return DITTO_OK;
}

static ditto_status call_on_copy(struct dti_replica *r, void *context)
{
    const struct updating *u = context;
    ditto_tensor arguments[DITTO_MAX_MERGE_ARGUMENTS], result;
    if (u->results != NULL)
        u->results->part[r->index] = (ditto_tensor){ .data = NULL };
    dti_changed(u->variable, r->index);
    if (!dti_owns_copy(u->variable, r->index))
        return DITTO_OK;
    const struct dti_slicing *slicing = u->variable->slicing;
    uint32_t giver = slicing != NULL ? dti_slice_first_replica(slicing, r->index) : r->index;
    for (uint32_t k = 0; k < u->request->count; k++) {
        DTI_TRY(dti_inspect_component(u->arguments[k], giver, &arguments[k]));
        if (u->copied[k] != NULL)
            arguments[k].data = u->copied[k];
    }
    DTI_TRY(call_function(r, u->variable, u->request, arguments, &result));
    return u->results != NULL && result.dtype != 0 ? keep_result(u, r->index, &result) : DITTO_OK;
}

/* Gives each replica the result of the copy that it uses. Checks that there is one for all copies or for
 * none, and that they are alike. */
static ditto_status complete(const ditto_variable *v, ditto_value *results, bool *any)
{
    uint32_t n = v->num_replicas, first_replica = dti_team_first_replica(v->team);
    const ditto_tensor *first = &results->part[v->copy[0].owner];
    *any = first->dtype != 0;
    for (uint32_t i = 0; i < n; i++) {
        const ditto_tensor *used = &results->part[dti_copy_of(v, i)->owner];
        if ((used->dtype != 0) != *any)
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "the update gave a result for some copies of \"%s\" and none for others: return "
                            "one for all copies, or for none",
                            v->name);
        if (*any)
            DTI_TRY(dti_check_alike(first, first_replica, used, first_replica + i));
        results->part[i] = *used;
    }
    return DITTO_OK;
}

/* Compares the function and the arguments. Of those that may differ between replicas, it compares only what
 * they are. */
static ditto_status compare_hosts(const struct updating *u)
{
    struct dti_team *team = u->variable->team;
    ditto_tensor tensor;
    if (!dti_cross_has_hosts(team))
        return DITTO_OK;
    uint64_t digest = dti_hash_word(dti_function_hash((const void *)(uintptr_t)u->request->function),
                                    u->request->count ^ u->variable->stamp);
    digest = dti_hash_word(digest, u->results != NULL);
    for (uint32_t k = 0; k < u->request->count; k++) {
        bool differs = is_per_replica(u->arguments[k]);
        DTI_TRY(dti_inspect_component(u->arguments[k], 0, &tensor));
        digest = dti_hash_word(digest, (uint64_t)tensor.dtype << 32 | (uint64_t)differs << 16 | tensor.rank);
        if (differs)
            continue;
        digest = dti_hash_bytes(digest, tensor.data, ditto_tensor_bytes(&tensor));
        digest = dti_hash_bytes(digest, tensor.shape, tensor.rank * sizeof tensor.shape[0]);
    }
    return dti_cross_compare(team, "ditto_variable_update", u->variable->name, digest);
}

/* Over several hosts: checks that all have results, or none, and that they are alike. */
static ditto_status compare_results(const ditto_variable *v, const ditto_value *results, bool any)
{
    struct dti_cross_request request = { "ditto_variable_update", v->name, v->stamp };
    const ditto_tensor *first = &results->part[0];
    uint32_t own[3] = { any, any ? (uint32_t)first->dtype : 0, any ? first->rank : 0 };
    const struct dti_gathered *all;
    if (!dti_cross_has_hosts(v->team))
        return DITTO_OK;
    DTI_TRY(dti_cross_gather(v->team, &request, own, sizeof own, &all));
    for (uint32_t h = 1; h < dti_cross_hosts(v->team); h++)
        if (memcmp(all[h].data, all[0].data, sizeof own) != 0)
            return DTI_FAIL(
                DITTO_ERR_INVALID,
                "the update gave results of another dtype or rank, or none, for copies of \"%s\" on "
                "host %u than on host 0: return one for all copies, or for none",
                v->name, h);
    return DITTO_OK;
}

static ditto_status call_on_all_copies(struct updating *u)
{
    struct dti_team *team = u->variable->team;
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_PINNED));
    /* Hosts compare their calls when nothing but the function can fail any more. */
    ditto_status status = prepare(u);
    if (status == DITTO_OK)
        status = compare_hosts(u);
    if (status == DITTO_OK) {
        status = dti_team_run(team, call_on_copy, u, false);
        dti_team_renew(team); /* is enough, because the job uses no collectives */
    }
    status = dti_cross_agree(team, "the end of ditto_variable_update", status);
    dti_cross_leave(team, &frame);
    for (uint32_t k = 0; k < u->request->count; k++)
        free(u->copied[k]);
    return status;
}

ditto_status dti_update_cross(ditto_variable *v, const struct dti_update_request *request,
                              const ditto_value *const *arguments, ditto_value **results)
{
    struct updating u = { .variable = v, .request = request, .arguments = arguments };
    bool any = false;
    DTI_LEAVES_GATES(held);
    for (uint32_t k = 0; k < request->count; k++) {
        DTI_TRY(dti_value_hold_item(arguments[k], dti_team_strategy(v->team), "arguments", k, &held));
        DTI_TRY_OF(check_argument(arguments[k]), "arguments[%u]", k);
    }
    if (results == NULL)
        return call_on_all_copies(&u);
    DTI_TRY(dti_value_make(dti_team_strategy(v->team), DITTO_VALUE_PER_REPLICA, &u.results));
    ditto_status status = call_on_all_copies(&u);
    if (status == DITTO_OK)
        status = complete(v, u.results, &any);
    if (status == DITTO_OK)
        status = compare_results(v, u.results, any);
    if (status == DITTO_OK && any) {
        *results = u.results;
        return DITTO_OK;
    }
    dti_value_drop(u.results);
    if (status == DITTO_OK)
        *results = NULL;
    return status;
}

/* -- replica context -- */

/* Copies a result to memory of this replica. */
static ditto_status copy_result(struct dti_replica *r, const ditto_tensor *from, ditto_tensor *to)
{
    void *data;
    size_t bytes = ditto_tensor_bytes(from);
    DTI_TRY(dti_replica_alloc(r, bytes, DTI_CACHE_LINE, &data));
    if (bytes != 0)
        memcpy(data, from->data, bytes);
    *to = *from;
    to->data = data;
    to->device = 0;
    return DITTO_OK;
}

/* Calls the function on the copy that this replica owns, if it owns one. The result is stored in
 * merging[r->index], where other replicas read it. */
static ditto_status call_on_own_copy(struct dti_replica *r, ditto_variable *v,
                                     const struct dti_update_request *request, const ditto_tensor *arguments)
{
    struct dti_merge_part *merging = dti_team_strategy(r->team)->merging, *mine = &merging[r->index];
    ditto_tensor result = { .data = NULL };
    dti_changed(v, r->index);
    /* Other replicas read may_differ only in later calls. */
    if (r->index == 0 && v->mirrored && v->own_copies)
        dti_variable_set_may_differ(v);
    if (dti_owns_copy(v, r->index)) {
        bool own = v->own_copies || dti_cross_has_hosts(r->team); /* receive_arguments */
        const ditto_tensor *used = own ? arguments : merging[giver_of(v, r->index)].arguments;
        DTI_TRY(call_function(r, v, request, used, &result));
        if (result.dtype != 0)
            DTI_TRY(copy_result(r, &result, &mine->result));
    }
    if (result.dtype == 0)
        mine->result = result;
    return DITTO_OK;
}

/* Copies a result that is in the memory of another replica. That replica may leave the call if the run is
 * stopped. Between dti_access_begin and dti_access_end it does not free the result. */
static ditto_status copy_theirs(struct dti_replica *r, const ditto_tensor *from, ditto_tensor *to)
{
    if (!dti_access_begin(r))
        return dti_team_stop_status(r->team);
    ditto_status status = copy_result(r, from, to);
    dti_access_end(r);
    return status;
}

/* Stops the run and returns the error. An update that fails on one replica cannot be completed on the
 * others. */
static ditto_status fail_update(struct dti_replica *r, ditto_status status)
{
    dti_replica_stop(r);
    return dti_leave_collective(r, status);
}

static bool any_result(const ditto_variable *v)
{
    bool any = false;
    for (uint32_t c = 0; c < v->copies; c++)
        any |= dti_team_strategy(v->team)->merging[v->copy[c].owner].result.dtype != 0;
    return any;
}

/* Gets the result for this replica from the owner of its copy. A further meeting of the replicas of this
 * host makes sure that the owners keep their results until all have copied them. Other hosts may have no
 * results. */
static ditto_status share_result(struct dti_replica *r, const ditto_variable *v,
                                 const struct dti_matched_call *matched, ditto_tensor *result)
{
    struct dti_merge_part *merging = dti_team_strategy(r->team)->merging;
    const ditto_tensor *theirs = &merging[dti_copy_of(v, r->index)->owner].result;
    ditto_tensor own_result = { .data = NULL };
    if (!any_result(v)) {
        if (result != NULL)
            *result = own_result;
        return DITTO_OK;
    }
    if (dti_owns_copy(v, r->index))
        own_result = *theirs;
    else if (result != NULL && theirs->dtype != 0) {
        ditto_status copied = copy_theirs(r, theirs, &own_result);
        if (copied != DITTO_OK)
            return fail_update(r, copied);
    }
    /* Copying a result may take any time, so the time limit of the meeting begins after it. */
    struct dti_deadline deadline = dti_replica_deadline(r, r->timeout_ms);
    struct dti_matched_call copied_all = *matched;
    copied_all.each_host = true;
    ditto_status status = dti_sync_meet(r, &copied_all, &deadline); /* after an error no replica reads them */
    if (status == DITTO_OK && result != NULL)
        *result = own_result;
    else
        dti_replica_free(r, own_result.data);
    return status;
}

static ditto_status call_in_default_strategy(struct dti_replica *r, ditto_variable *v,
                                             const struct dti_update_request *request,
                                             const ditto_tensor *arguments, ditto_tensor *result)
{
    ditto_tensor found, copy = { .data = NULL };
    dti_changed(v, r->index);
    DTI_TRY(call_function(r, v, request, arguments, &found));
    if (result != NULL && found.dtype != 0)
        DTI_TRY(copy_result(r, &found, &copy));
    if (result != NULL)
        *result = copy;
    return DITTO_OK;
}

/* -- splitting shared copies before the first update in which each replica has its own arguments -- */

/* A merge function. If there is not enough memory, it returns DITTO_OK, so that the run continues. Each
 * replica then finds that the copies are still shared. */
static ditto_status split_in_pause(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                   void *user, ditto_value **result)
{
    ditto_variable *v = user;
    struct dti_team *team = strategy->base.team;
    struct dti_frame frame;
    (void)arguments, (void)count, (void)result;
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_PINNED));
    ditto_status status = dti_variable_split(v);
    dti_cross_leave(team, &frame);
    return status == DITTO_ERR_NO_MEMORY ? DITTO_OK : status;
}

/* Gives each replica its own copy of a variable whose aggregation is DITTO_AGGREGATE_NONE. Returns
 * DITTO_ERR_NO_MEMORY on all replicas if there is no memory for these copies. */
static ditto_status split_in_run(struct dti_replica *r, ditto_variable *v)
{
    struct dti_merge merge = {
        .name = "ditto_update", .function = split_in_pause, .user = v, .no_result = true, .object = v->name
    };
    DTI_TRY(dti_variable_check_each(v));
    DTI_TRY(dti_merge_call(r, &merge, NULL, NULL));
    if (v->own_copies)
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_NO_MEMORY,
        "no memory for a copy of \"%s\", %zu bytes, for each replica: nothing was updated, and the copies "
        "are shared as before",
        v->name, v->bytes);
}

/* An argument on the way to other hosts. */
struct argument_head {
    uint64_t shape[DITTO_MAX_RANK], bytes;
    uint32_t dtype, rank;
};

/* Gives the bytes that replica 0 has in `data` to all replicas. */
static ditto_status share_bytes(struct dti_replica *r, const ditto_variable *v, void *data, size_t bytes)
{
    struct dti_shared_result shared = {
        .name = "ditto_update", .object = v->name, .dst = data, .count = bytes, .dtype = DITTO_U8
    };
    return bytes != 0 ? dti_share_result(r, &shared) : DITTO_OK;
}

static size_t round_up(size_t bytes)
{
    return (bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE;
}

/* Over several hosts: gives the arguments of replica 0 to every replica, in *memory, which the caller frees.
 * Collective. */
static ditto_status receive_arguments(struct dti_replica *r, const ditto_variable *v, uint32_t count,
                                      const ditto_tensor *own, ditto_tensor *out, void **memory)
{
    struct argument_head head[DITTO_MAX_MERGE_ARGUMENTS];
    size_t bytes = 0;
    for (uint32_t k = 0; k < count; k++) {
        head[k] = (struct argument_head){ .bytes = ditto_tensor_bytes(&own[k]),
                                          .dtype = (uint32_t)own[k].dtype,
                                          .rank = own[k].rank };
        for (uint32_t d = 0; d < own[k].rank; d++)
            head[k].shape[d] = own[k].shape[d];
    }
    DTI_TRY(share_bytes(r, v, head, count * sizeof head[0]));
    for (uint32_t k = 0; k < count; k++)
        bytes += round_up(head[k].bytes);
    ditto_status status = dti_replica_alloc(r, bytes, DTI_CACHE_LINE, memory);
    if (status != DITTO_OK)
        return fail_update(r, status);
    unsigned char *at = *memory;
    for (uint32_t k = 0; k < count; at += round_up(head[k++].bytes)) {
        out[k] = (ditto_tensor){ .data = at, .dtype = (ditto_dtype)head[k].dtype, .rank = head[k].rank };
        for (uint32_t d = 0; d < head[k].rank; d++)
            out[k].shape[d] = head[k].shape[d];
        if (r->id == 0 && head[k].bytes != 0)
            memcpy(at, own[k].data, head[k].bytes);
        DTI_TRY(share_bytes(r, v, at, head[k].bytes));
    }
    return DITTO_OK;
}

/* Calls the function on the own copy, over several hosts with the arguments that all must share. */
static ditto_status update_own_copy(struct dti_replica *r, ditto_variable *v,
                                    const struct dti_update_request *request, const ditto_tensor *arguments)
{
    ditto_tensor received[DITTO_MAX_MERGE_ARGUMENTS];
    void *memory = NULL;
    if (v->own_copies || !dti_cross_has_hosts(r->team) || request->count == 0)
        return call_on_own_copy(r, v, request, arguments);
    ditto_status status = receive_arguments(r, v, request->count, arguments, received, &memory);
    if (status == DITTO_OK)
        status = call_on_own_copy(r, v, request, received);
    dti_replica_free(r, memory);
    return status;
}

static bool needs_split(const ditto_variable *v)
{
    return v->mirrored && v->aggregation == DITTO_AGGREGATE_NONE && !v->own_copies && v->slicing == NULL &&
           dti_team_all_replicas(v->team) > 1;
}

ditto_status dti_update_in_replica(struct dti_replica *r, ditto_variable *v,
                                   const struct dti_update_request *request, const ditto_tensor *arguments,
                                   ditto_tensor *result)
{
    struct dti_matched_call matched = {
        .name = "ditto_update",
        .object = v->name,
        .arguments = request->count,
        .hash = v->stamp ^ dti_sync_function(r, (const void *)(uintptr_t)request->function)
    };
    if (needs_split(v))
        DTI_TRY(split_in_run(r, v));
    DTI_TRY(check_contiguous(v));
    if (dti_current_run_call() == NULL)
        return call_in_default_strategy(r, v, request, arguments, result);
    /* The result of the previous update must stay until all replicas have met, because a slower replica may
     * still read it. */
    dti_team_strategy(r->team)->merging[r->index].arguments = arguments;
    /* Splitting may take any time, so the time limit of the meeting begins after it. */
    struct dti_deadline deadline = dti_replica_deadline(r, r->timeout_ms);
    DTI_TRY(dti_sync_meet(r, &matched, &deadline));
    /* If copies are shared, each owner of a copy calls the function with the arguments of replica 0, or of
     * the first replica that has the slice, which must not leave the call meanwhile. Otherwise each replica
     * uses its own arguments, so no replica has to wait for the functions of others, which may take any time.
     */
    bool borrows = !v->own_copies && !dti_cross_has_hosts(r->team) && r->index != giver_of(v, r->index) &&
                   dti_owns_copy(v, r->index) && request->count != 0;
    if (borrows && !dti_access_begin(r))
        return dti_leave_collective(r, dti_team_stop_status(r->team));
    ditto_status status = update_own_copy(r, v, request, arguments);
    if (borrows)
        dti_access_end(r);
    if (status != DITTO_OK)
        return fail_update(r, status);
    deadline = dti_replica_deadline(r, r->timeout_ms);
    status = dti_sync_meet(r, &matched, &deadline);
    if (status != DITTO_OK) {
        /* No other replica reads this replica's result any more. */
        dti_replica_free(r, dti_team_strategy(r->team)->merging[r->index].result.data);
        return status;
    }
    return share_result(r, v, &matched, result);
}
