/* src/sync/share.c - divides work on memory between all replicas, see sync.h. */
#include "replicas/jobs/jobs.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"
#include "sync/kernels/tree.h"
#include "sync/sync.h"

/* With at least this many bytes for each replica, waking the replicas is faster than working alone
 * (ditto-bench reduce, which measures both by size). */
#define LEAST_BYTES ((size_t)64 << 10)

struct sharing {
    dti_share_fn *work;
    void *context;
    size_t items, grain;
};

static ditto_status work_on_share(struct dti_replica *r, void *argument)
{
    const struct sharing *s = argument;
    size_t first, end;
    dti_tree_part(s->items, r->num_replicas, r->index, s->grain, &first, &end);
    struct dti_fenv saved = dti_fenv_enter();
    ditto_status status = first < end ? s->work(first, end, s->context) : DITTO_OK;
    dti_fenv_leave(saved);
    return status;
}

/* Takes the strategy's turn, because a run may be writing the memory that is read here. */
static ditto_status work_alone(struct dti_team *team, const struct sharing *s)
{
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_KEEPS_AFFINITY));
    struct dti_fenv saved = dti_fenv_enter();
    ditto_status status = s->work(0, s->items, s->context);
    dti_fenv_leave(saved);
    dti_cross_leave(team, &frame);
    return status;
}

ditto_status dti_share(struct dti_team *team, size_t bytes, size_t items, size_t grain, dti_share_fn *work,
                       void *context)
{
    struct sharing sharing = { work, context, items, grain };
    struct dti_frame frame;
    DTI_TRY(dti_context_check_cross(team));
    if (dti_team_forked(team))
        return dti_fail_forked();
    if (items == 0)
        return DITTO_OK;
    if (dti_team_num_replicas(team) == 1 || items <= grain ||
        bytes / dti_team_num_replicas(team) < LEAST_BYTES)
        return work_alone(team, &sharing);
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_PINNED));
    ditto_status status = dti_team_run(team, work_on_share, &sharing, false);
    dti_team_renew(team); /* the job uses no collective, so nothing else has to be reset */
    dti_cross_leave(team, &frame);
    return status;
}
