/* src/sync/hosts/driver.c - calls functions on the thread that may use the wire.
 *
 * If the caller of run works as the first replica of this host, it is that replica's own thread. If the
 * caller only waits (DITTO_CALLER_WAITS), the replica posts the function, and the caller executes it where it
 * waits for the end of the run. A caller that has stopped to wait, because the time of the run is over,
 * executes nothing any more. Therefore the replica withdraws its function when the run has stopped, unless
 * the caller has begun.
 *
 * States NOTHING, POSTED, RUNNING, DONE. The replica changes NOTHING to POSTED, POSTED and DONE to NOTHING.
 *        The caller changes POSTED to RUNNING, and RUNNING to DONE. So either the caller begins, or the
 *        replica withdraws the function.
 * Edges  T0 -> T1  the function and its argument -> the caller that makes POSTED RUNNING
 *        T2 -> T3  what the function did -> the replica that sees DONE */
#include "replicas/jobs/jobs.h"
#include "replicas/team/stopping.h"
#include "sync/hosts/hosts.h"
#include "sync/hosts/started.h"
#include "sync/meeting/sync_state.h"

enum { NOTHING, POSTED, RUNNING, DONE };

static void execute(struct dti_hosts_task *task)
{
    uint32_t posted = POSTED;
    /* relaxed: only a look, which the exchange repeats. */
    if (atomic_load_explicit(&task->state, memory_order_relaxed) != POSTED ||
        !atomic_compare_exchange_strong_explicit(&task->state, &posted, RUNNING,
                                                 memory_order_acquire, /* T1 */
                                                 memory_order_relaxed))
        return;
    const char *outer = dti_public_enter(task->function);
    struct dti_fenv floating = dti_fenv_enter();
    task->status = task->work(task->call);
    task->error = *dti_error_get();
    dti_fenv_leave(floating);
    dti_public_leave(&outer);
    struct dti_wait_queue *queue = task->call->self->wait_queue;
    atomic_store_explicit(&task->state, DONE, memory_order_release); /* T2 */
    dti_wait_queue_signal(queue, DTI_EVERYONE);
    dti_look_worked();
}

/* Called by the thread that waits for the end of a run, whenever it looks at its condition. It works in the
 * name of the first replica. */
static void work_for_replicas(void *argument)
{
    struct dti_hosts *hosts = argument;
    int32_t outer_replica = dti_this_thread()->replica;
    dti_this_thread()->replica = (int32_t)hosts->first;
    execute(&hosts->task);
    dti_started_carry_out_ready(hosts);
    dti_this_thread()->replica = outer_replica;
}

/* Returns true if the caller has executed the function, or will never do so. */
static bool is_over(void *argument)
{
    struct dti_hosts_task *task = argument;
    uint32_t posted = POSTED;
    if (atomic_load_explicit(&task->state, memory_order_acquire) == DONE) /* T3 */
        return true;
    /* relaxed: nothing is published by a withdrawal. */
    return dti_stopped(task->call->self->stop) &&
           atomic_compare_exchange_strong_explicit(&task->state, &posted, NOTHING, memory_order_relaxed,
                                                   memory_order_relaxed);
}

/* The caller executes the function with the limits of this replica, so this wait needs none. */
static ditto_status post(const struct dti_hosts_call *c, ditto_status (*work)(const struct dti_hosts_call *c))
{
    struct dti_hosts_task *task = &c->hosts->task;
    struct dti_replica *self = c->self;
    struct dti_deadline none = { .timeout_ms = DITTO_FOREVER };
    task->call = c;
    task->work = work;
    task->function = dti_this_thread()->function;
    atomic_store_explicit(&task->state, POSTED, memory_order_release); /* T0 */
    dti_wait_queue_signal(self->wait_queue, DTI_EVERYONE);
    dti_wait(self->wait_queue, self->index, DTI_EVERYONE, &self->wait_policy, &none, is_over, task);
    /* relaxed, both: only this thread changes NOTHING and DONE. */
    if (atomic_load_explicit(&task->state, memory_order_relaxed) == NOTHING)
        return dti_team_stop_status(self->team);
    atomic_store_explicit(&task->state, NOTHING, memory_order_relaxed);
    if (task->status != DITTO_OK)
        dti_error_set(&task->error);
    return task->status;
}

ditto_status dti_hosts_drive(const struct dti_hosts_call *c,
                             ditto_status (*work)(const struct dti_hosts_call *c))
{
    if (c->self->index != 0)
        return DITTO_OK;
    return dti_team_options(c->self->team)->caller_waits ? post(c, work) : work(c);
}

void dti_hosts_attach(struct dti_hosts *hosts, struct dti_team *team)
{
    hosts->team = team;
    dti_team_set_poster_work(team, work_for_replicas, hosts);
    dti_failure_notices_begin(hosts);
}
