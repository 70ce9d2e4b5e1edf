/* src/sync/algorithms/helper_work.c - pieces of a replica's part, for its helpers. See helper_work.h. */
#include "sync/algorithms/helper_work.h"
#include "replicas/helpers/crew.h"
#include "replicas/memory/arena.h"
#include "replicas/team/team.h"

#include <sched.h>

/* The size of a piece. It takes about ten microseconds, which is long compared with a claim. */
#define PIECE_BYTES ((size_t)64 << 10)
#define MOST_PIECES 0xffffu

struct dti_helper_work {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t claim; /* pieces << 16 | next piece */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t done;  /* pieces of the present part */

    /* The description of the part. It is plain, because `claim` publishes it. */
    alignas(DTI_CACHE_LINE_PAIR) struct dti_flow flow;
    size_t from, to;
    uint32_t group_first, group_end;
    struct dti_workspace *workspace; /* [devices], element 0 is not used */
};

ditto_status dti_helper_work_make(struct dti_replica *self, struct dti_sync *sync)
{
    uint32_t devices = self->crew != NULL ? self->crew->devices : 1;
    struct dti_helper_work *helper_work;
    if (devices == 1)
        return DITTO_OK;
    if ((helper_work = dti_allocate_zeroed(self, sizeof *helper_work)) == NULL)
        return DITTO_ERR_NO_MEMORY;
    sync->state[self->index].helper_work = helper_work;
    if ((helper_work->workspace = dti_allocate_zeroed(self, devices * sizeof(struct dti_workspace))) == NULL)
        return DITTO_ERR_NO_MEMORY;
    for (uint32_t d = 1; d < devices; d++)
        DTI_TRY(dti_workspace_make(self, &helper_work->workspace[d]));
    return DITTO_OK;
}

void dti_helper_work_free(struct dti_replica *replica, struct dti_sync *sync)
{
    struct dti_helper_work *helper_work = sync->state[replica->index].helper_work;
    if (helper_work == NULL)
        return;
    for (uint32_t d = 1; helper_work->workspace != NULL && d < replica->crew->devices; d++)
        dti_workspace_free(replica, &helper_work->workspace[d]);
    dti_arena_free_remote(replica->arena, helper_work->workspace);
    dti_arena_free_remote(replica->arena, helper_work);
}

/* Claims pieces and works on them until all are claimed. */
static void work(struct dti_helper_work *helper_work, struct dti_workspace *workspace)
{
    /* acquire: A1. This holds for each of the loads from which a claim can follow. */
    uint32_t claim = atomic_load_explicit(&helper_work->claim, memory_order_acquire);
    for (;;) {
        uint32_t pieces = claim >> 16, next = claim & 0xffff;
        size_t from, to;
        if (next >= pieces)
            return;
        if (!atomic_compare_exchange_weak_explicit(&helper_work->claim, &claim, claim + 1,
                                                   memory_order_acquire, memory_order_acquire))
            continue;
        /* A copy, because each thread has its own present segment. */
        struct dti_flow flow = helper_work->flow;
        flow.workspace = workspace;
        dti_tree_part(helper_work->to - helper_work->from, pieces, next, 1, &from, &to);
        dti_flow_range(&flow, helper_work->from + from, helper_work->from + to, helper_work->group_first,
                       helper_work->group_end);
        atomic_fetch_add_explicit(&helper_work->done, 1, memory_order_release); /* B0 */
        claim = atomic_load_explicit(&helper_work->claim, memory_order_acquire);
    }
}

static ditto_status help(uint32_t device, void *argument)
{
    struct dti_helper_work *helper_work = argument;
    struct dti_fenv saved = dti_fenv_enter();
    work(helper_work, &helper_work->workspace[device]);
    dti_fenv_leave(saved);
    return DITTO_OK;
}

bool dti_helper_work_range(struct dti_flow *flow, size_t from, size_t to, uint32_t group_first,
                           uint32_t group_end)
{
    struct dti_helper_work *helper_work = flow->me->helper_work;
    size_t bytes = (to - from) * DTI_CACHE_LINE;
    /* Functions of the user's are called on this thread only. They are called without access to other
     * replicas' buffers (access.h), and a helper cannot give up that access by itself. */
    bool calls = flow->reduction.function != NULL || (flow->target != NULL && flow->target->calls);
    if (helper_work == NULL || flow->from_mailboxes || calls || bytes < flow->sync->tuning.given.helper_bytes)
        return false;
    size_t pieces = bytes / PIECE_BYTES < MOST_PIECES ? bytes / PIECE_BYTES + 1 : MOST_PIECES;
    helper_work->flow = *flow;
    helper_work->from = from;
    helper_work->to = to;
    helper_work->group_first = group_first;
    helper_work->group_end = group_end;
    atomic_store_explicit(&helper_work->done, 0, memory_order_relaxed); /* relaxed: `claim` publishes it */
    atomic_store_explicit(&helper_work->claim, (uint32_t)pieces << 16, memory_order_release); /* A0 */
    dti_crew_offer(flow->self, help, helper_work);
    work(helper_work, flow->workspace);
    /* acquire: B1. The wait is bounded, because all pieces that are not done have been begun. If a
     * function of the user's has forked, there are no helpers in the child process. */
    while (atomic_load_explicit(&helper_work->done, memory_order_acquire) != pieces &&
           !dti_replica_is_forked(flow->self))
        if (flow->self->wait_policy.spin_ns != 0)
            dti_pause();
        else
            sched_yield();
    return true;
}
