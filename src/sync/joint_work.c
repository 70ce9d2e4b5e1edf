/* src/sync/joint_work.c - collectives of the library's own: a barrier that compares calls, a result that all
 * replicas share, and joint work. */
#include "cluster/function.h"
#include "sync/algorithms/collective.h"
#include "sync/algorithms/other_hosts.h"
#include "sync/algorithms/slices.h"
#include "sync/meeting/access.h"
#include "sync/meeting/meeting.h"
#include "sync/sync.h"

#include <stdlib.h>

ditto_status dti_sync_meet(struct dti_replica *self, const struct dti_matched_call *same,
                           struct dti_deadline *deadline)
{
    struct dti_call call = { .name = same->name,
                             .object = same->object,
                             .count = same->arguments,
                             .root = DTI_NO_ROOT,
                             .pattern = DTI_PATTERN_NOTHING,
                             .hash = same->hash };
    struct dti_arrival arrival = { .call = &call };
    uint32_t seq;
    DTI_TRY(dti_check_outside_function(self, same->name));
    return same->each_host ? dti_meet(self, &arrival, deadline, &seq) : dti_barrier(self, &call, deadline);
}

ditto_status dti_share_result(struct dti_replica *self, const struct dti_shared_result *shared)
{
    struct dti_call call = { .name = shared->name,
                             .object = shared->object,
                             .count = shared->count,
                             .element_bytes = ditto_dtype_bytes(shared->dtype),
                             .root = shared->op != 0 ? DTI_NO_ROOT : 0,
                             .pattern = shared->op != 0 ? DTI_PATTERN_ALL_REDUCE : DTI_PATTERN_BROADCAST,
                             .dtype = (uint8_t)shared->dtype,
                             .op = (uint8_t)shared->op,
                             .hash = shared->hash,
                             .src = shared->op != 0 ? shared->src : shared->dst,
                             .dst = shared->dst };
    struct dti_deadline deadline = dti_replica_deadline(self, self->timeout_ms);
    DTI_TRY(dti_check_outside_function(self, shared->name));
    return dti_collective(self, &call, NULL, &deadline);
}

/* -- joint work -- */

uint64_t dti_sync_function(const struct dti_replica *self, const void *function)
{
    return self->sync->hosts == NULL ? (uint64_t)(uintptr_t)function : dti_function_hash(function);
}

struct joint_call {
    const struct dti_joint_work *request;
    const void *contributed[DITTO_MAX_REPLICAS];
};

static ditto_status work_with_access(struct dti_replica *self, uint32_t seq, void *context)
{
    struct joint_call *joint = context;
    for (uint32_t i = 0; i < self->num_replicas; i++)
        joint->contributed[i] = dti_call_of(self->sync, i, seq)->more;
    if (joint->request->calls)
        dti_access_end(self);
    return joint->request->work(self, joint->contributed, joint->request->context);
}

ditto_status dti_do_joint_work(struct dti_replica *self, const struct dti_joint_work *request)
{
    struct joint_call joint = { .request = request };
    struct dti_deadline deadline = dti_replica_deadline(self, self->timeout_ms);
    struct dti_call call = { .name = request->name,
                             .object = request->object,
                             .root = DTI_NO_ROOT,
                             .pattern = DTI_PATTERN_NOTHING,
                             .hash = request->hash,
                             .more = request->contributed };
    DTI_TRY(dti_check_outside_function(self, request->name));
    if (!request->each_host)
        DTI_TRY(dti_team_check_one_host(self->team, request->name));
    const char **calling = &dti_reported_state(self)->calling;
    struct dti_fenv saved = dti_fenv_enter();
    dti_call_begins(self, &call);
    *calling = request->calls ? request->name : NULL;
    ditto_status status = dti_collective_with_access(self, &call, work_with_access, &joint, &deadline);
    *calling = NULL;
    dti_call_ends(self, &call);
    dti_fenv_leave(saved);
    return status;
}

/* -- slices of all hosts -- */

struct slices_user {
    dti_use_slices *use;
    void *context;
};

static ditto_status use_slices(void *context, const struct dti_slices *const *of, uint32_t n)
{
    const struct slices_user *user = context;
    const ditto_slices **in = malloc(n * sizeof(void *));
    if (in == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the rows of %u replicas", n);
    for (uint32_t r = 0; r < n; r++)
        in[r] = &of[r]->in;
    ditto_status status = user->use(user->context, in, n);
    free(in);
    return status;
}

ditto_status dti_gather_slices(struct dti_replica *self, const struct dti_joint_work *request,
                               dti_use_slices *use, void *context)
{
    struct dti_slices own = { .in = *(const ditto_slices *)request->contributed };
    struct dti_call call = { .name = request->name,
                             .object = request->object,
                             .root = DTI_NO_ROOT,
                             .pattern = DTI_PATTERN_SLICES,
                             .dtype = (uint8_t)own.in.dtype,
                             .count = own.in.row_count,
                             .element_bytes = ditto_dtype_bytes(own.in.dtype),
                             .hash = request->hash,
                             .more = &own };
    struct dti_deadline deadline = dti_replica_deadline(self, self->timeout_ms);
    struct slices_user user = { use, context };
    DTI_TRY(dti_check_outside_function(self, request->name));
    struct dti_fenv saved = dti_fenv_enter();
    dti_call_begins(self, &call);
    ditto_status status = dti_slices_on_hosts(self, &call, use_slices, &user, &deadline);
    dti_call_ends(self, &call);
    dti_fenv_leave(saved);
    return status;
}
