/* src/sync/hosts/started.c - the driver carries out started operations. See started.h. */
#include "sync/hosts/started.h"
#include "base/waiting/stop.h"
#include "replicas/jobs/jobs.h"
#include "sync/algorithms/flow.h"
#include "sync/algorithms/other_hosts.h"
#include "sync/hosts/hosts.h"
#include "sync/meeting/access.h"
#include "sync/pending/pending.h"

#include <stdlib.h>
#include <string.h>

/* -- life -- */

ditto_status dti_started_make(struct dti_sync *sync)
{
    uint32_t n = sync->num_replicas;
    if (sync->hosts == NULL)
        return DITTO_OK;
    struct dti_started *s = aligned_alloc(DTI_CACHE_LINE_PAIR, sizeof *s);
    if (s != NULL) {
        memset(s, 0, sizeof *s);
        sync->started = s;
        s->workspace.source = calloc(n, sizeof *s->workspace.source);
        s->workspace.destination = calloc(n, sizeof *s->workspace.destination);
        s->workspace.scratch = aligned_alloc(DTI_CACHE_LINE_PAIR, DTI_WORKSPACE_BYTES);
        if (s->workspace.source != NULL && s->workspace.destination != NULL && s->workspace.scratch != NULL)
            return DITTO_OK;
    }
    dti_started_free(sync);
    return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for operations that are started over several hosts");
}

void dti_started_free(struct dti_sync *sync)
{
    struct dti_started *s = sync->started;
    if (s == NULL)
        return;
    free(s->workspace.source);
    free(s->workspace.destination);
    free(s->workspace.scratch);
    free(s);
    sync->started = NULL;
}

void dti_started_renew(struct dti_sync *sync)
{
    struct dti_started *s = sync->started;
    if (s == NULL)
        return;
    /* relaxed: the go word of the next run publishes the stores. */
    atomic_store_explicit(&s->given_up, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < DITTO_MAX_PENDING; i++)
        atomic_store_explicit(&s->announced[i], 0, memory_order_relaxed);
    /* release: a driver that sees the 0 sees that the entries are empty. It looks during a run inside a run,
     * whose state the first replica renews. */
    atomic_store_explicit(&s->carried, 0, memory_order_release);
}

/* -- workers -- */

static bool caller_drives(const struct dti_sync *sync)
{
    return dti_team_options(sync->team)->caller_waits;
}

/* A caller that only waits works in the name of the first replica of this host. */
static struct dti_worker driving_worker(struct dti_sync *sync)
{
    struct dti_replica *first = dti_team_replica(sync->team, 0);
    if (!caller_drives(sync))
        return (struct dti_worker){ first, sync, &sync->state[0].workspace, 0 };
    return (struct dti_worker){ first, sync, &sync->started->workspace, sync->num_replicas };
}

void dti_started_share(const struct dti_hosts_call *c, dti_step_share_fn *share, void *argument)
{
    struct dti_sync *sync = c->flow->sync;
    struct dti_worker worker = driving_worker(sync);
    dti_share_step(&sync->started->step, sync->num_replicas, share, argument, &worker, c->self->wait_queue);
}

/* -- an operation -- */

/* A caller that only waits has no limit of its own, but that of the run. */
void dti_started_set_limits(const struct dti_hosts_call *c, struct dti_limits *limits)
{
    const struct dti_sync *sync = c->flow->sync;
    if (caller_drives(sync))
        limits->deadline = dti_team_run_deadline(sync->team);
    limits->given_up = &sync->started->given_up;
    limits->number = c->started;
}

struct dti_replica *dti_started_waiter(const struct dti_hosts_call *c, struct dti_deadline *deadline)
{
    struct dti_sync *sync = c->flow->sync;
    struct dti_started *s = sync->started;
    if (atomic_load_explicit(&s->given_up, memory_order_acquire) != c->started) /* L1 */
        return c->self;
    /* relaxed, all: L1 has read what was stored before. */
    *deadline = (struct dti_deadline){
        .timeout_ms = atomic_load_explicit(&s->given_up_ms, memory_order_relaxed),
        .at_ns = atomic_load_explicit(&s->given_up_at_ns, memory_order_relaxed)
    };
    return dti_team_replica(sync->team, atomic_load_explicit(&s->given_up_by, memory_order_relaxed));
}

/* A small operation: the driver writes the results to all destinations of this host. */
static ditto_status small(const struct dti_hosts_call *c)
{
    struct dti_flow *flow = c->flow;
    struct dti_segment segment;
    const unsigned char *result = c->hosts->small_results;
    DTI_TRY(dti_hosts_small(c));
    for (bool more = dti_flow_begin(flow, &segment); more; more = dti_flow_next(flow, &segment)) {
        struct dti_segment here = segment; /* as the flow of this host numbers its replicas */
        uint32_t far;
        if (segment.count != 0 &&
            (segment.to == DTI_ALL || dti_hosts_of(c->hosts, segment.to) == dti_hosts_own(c->hosts))) {
            here.to -= here.to != DTI_ALL ? c->hosts->first : 0;
            uint32_t destinations = dti_flow_destinations(flow, &here, 0, c->self->num_replicas, &far);
            dti_flow_write(flow, result, 0, segment.count, destinations, far);
        }
        result += dti_small_bytes(segment.count * flow->reduction.element_bytes);
    }
    return DITTO_OK;
}

static ditto_status execute(const struct dti_worker *worker, uint64_t number, uint32_t timeout_ms)
{
    struct dti_replica *self = worker->self;
    const struct dti_sync *sync = worker->sync;
    const struct dti_pending_operation *operation = dti_pending_operation_of(sync, 0, number);
    struct dti_flow flow = { .self = self,
                             .sync = worker->sync,
                             .me = &worker->sync->state[0],
                             .workspace = worker->workspace,
                             .call = &operation->call,
                             .target = operation->target,
                             .pending_number = number };
    struct dti_hosts_call c = { .self = self,
                                .hosts = sync->hosts,
                                .call = &operation->call,
                                .flow = &flow,
                                .number = number - sync->state[0].started_before,
                                .timeout_ms = timeout_ms,
                                .slot = worker->slot,
                                .started = number };
    flow.reduction = dti_flow_reduction(sync, flow.call);
    if (dti_call_moves_parts(flow.call))
        return dti_hosts_move_started(&c);
    return dti_hosts_is_small(&c) ? small(&c) : dti_hosts_large(&c);
}

/* Carries out an operation that all replicas of this host have announced. The driver has access. */
static ditto_status carry_out(struct dti_sync *sync, uint64_t number, uint32_t timeout_ms)
{
    struct dti_started *s = sync->started;
    struct dti_worker worker = driving_worker(sync);
    /* relaxed: only tells who waits too long that the driver is here. */
    atomic_store_explicit(&s->running, number, memory_order_relaxed);
    struct dti_fenv saved = dti_fenv_enter();
    ditto_status status = execute(&worker, number, timeout_ms);
    dti_fenv_leave(saved);
    if (status == DITTO_OK)
        atomic_store_explicit(&s->carried, number, memory_order_release); /* C0 */
    atomic_store_explicit(&s->running, 0, memory_order_relaxed);
    dti_wait_queue_signal(worker.self->wait_queue, DTI_EVERYONE);
    return status;
}

/* -- replicas -- */

void dti_started_announced(struct dti_replica *self, uint64_t number)
{
    struct dti_sync *sync = self->sync;
    struct dti_hosts *hosts = sync->hosts;
    _Atomic uint32_t *announced = &sync->started->announced[number % DITTO_MAX_PENDING];
    /* relaxed: the levels of runs begin and end in meetings, so all replicas are on one. The words of the
     * entries publish the operation, and the level too. */
    if (atomic_load_explicit(&hosts->level, memory_order_relaxed) != sync)
        atomic_store_explicit(&hosts->level, sync, memory_order_release);
    if (atomic_fetch_add_explicit(announced, 1, memory_order_relaxed) + 1 < self->num_replicas)
        return;
    /* relaxed: the entry is used again when all replicas have consumed this operation. */
    atomic_store_explicit(announced, 0, memory_order_relaxed);
    /* The driver may sleep, whatever it waits for. */
    dti_wait_queue_signal(self->wait_queue, DTI_EVERYONE);
}

static bool is_carried(const struct dti_started *s, uint64_t number)
{
    return atomic_load_explicit(&s->carried, memory_order_acquire) >= number; /* C1 */
}

/* Takes shares of the operation that the driver carries out. */
static void help(struct dti_replica *self)
{
    struct dti_started *s = self->sync->started;
    if (!dti_has_shares(&s->step) || !dti_access_begin(self))
        return;
    struct dti_worker worker = { self, self->sync, &self->sync->state[self->index].workspace, self->index };
    dti_take_shares(&s->step, &worker);
    dti_access_end(self);
}

bool dti_started_work_on(struct dti_replica *self, uint64_t number)
{
    struct dti_sync *sync = self->sync;
    const struct dti_pending_ring *ring = sync->state[self->index].pending;
    if (is_carried(sync->started, number))
        return true;
    if (self->index != 0 || caller_drives(sync)) {
        help(self);
        return is_carried(sync->started, number);
    }
    if (!dti_access_begin(self))
        return false;
    ditto_error kept = *dti_error_get();
    ditto_status status = carry_out(sync, number,
                                    ring->deadline != NULL ? ring->deadline->timeout_ms : self->timeout_ms);
    dti_access_end(self);
    /* The run has been stopped with the error. This call may wait for another operation, which has ended. */
    if (status != DITTO_OK)
        dti_error_set(&kept);
    return status == DITTO_OK;
}

bool dti_started_give_up(struct dti_replica *self, uint64_t number, const struct dti_deadline *deadline)
{
    struct dti_started *s = self->sync->started;
    if (s == NULL) /* there is one host */
        return false;
    for (uint32_t i = 0; i < self->num_replicas; i++)
        if (!dti_has_started(self->sync, i, number))
            return false;
    if (!caller_drives(self->sync) && atomic_load_explicit(&s->running, memory_order_relaxed) != number &&
        !is_carried(s, number))
        return false;
    /* relaxed, all: if several replicas give up, the limit of one of them is reported. */
    atomic_store_explicit(&s->given_up_ms, deadline->timeout_ms, memory_order_relaxed);
    atomic_store_explicit(&s->given_up_at_ns, deadline->at_ns, memory_order_relaxed);
    atomic_store_explicit(&s->given_up_by, self->index, memory_order_relaxed);
    uint64_t before = atomic_load_explicit(&s->given_up, memory_order_relaxed);
    while (before < number && !atomic_compare_exchange_weak_explicit(&s->given_up, &before, number,
                                                                     memory_order_release, /* L0 */
                                                                     memory_order_relaxed))
        ;
    dti_wait_queue_signal(self->wait_queue, DTI_EVERYONE);
    return true;
}

/* -- a caller that only waits -- */

/* Returns true if all replicas have announced the same operation. If they differ, those that wait for it stop
 * the run. */
static bool is_ready(const struct dti_sync *sync, uint64_t number)
{
    const struct dti_pending_operation *first = dti_pending_operation_of(sync, 0, number);
    for (uint32_t i = 0; i < sync->num_replicas; i++) {
        const struct dti_pending_operation *other = dti_pending_operation_of(sync, i, number);
        /* dti_has_started reads the word with acquire (P1) */
        if (!dti_has_started(sync, i, number) || !dti_call_same(&first->call, &other->call))
            return false;
    }
    return true;
}

/* Carries out the next operation if it is ready. It is looked for with access, so that the run of the
 * replicas that have announced it has not ended, and its state has not been renewed. */
static bool carry_out_next(struct dti_sync *sync)
{
    struct dti_started *s = sync->started;
    ditto_status status = DITTO_PENDING;
    if (!dti_access_begin_on(&sync->caller_accessing, dti_team_replica(sync->team, 0)->stop))
        return false;
    /* acquire: pairs with the release in dti_started_renew, before which the entries were cleared. */
    uint64_t number = atomic_load_explicit(&s->carried, memory_order_acquire) + 1;
    if (is_ready(sync, number)) {
        const char *outer = dti_public_enter(dti_pending_operation_of(sync, 0, number)->call.name);
        status = carry_out(sync, number, DITTO_FOREVER);
        dti_public_leave(&outer);
        dti_look_worked();
    }
    dti_access_end_on(&sync->caller_accessing);
    return status == DITTO_OK;
}

void dti_started_carry_out_ready(struct dti_hosts *hosts)
{
    struct dti_sync *sync = atomic_load_explicit(&hosts->level, memory_order_acquire);
    /* relaxed: only a look. */
    while (
        sync != NULL &&
        dti_has_started(sync, 0, atomic_load_explicit(&sync->started->carried, memory_order_relaxed) + 1) &&
        carry_out_next(sync))
        ;
}
