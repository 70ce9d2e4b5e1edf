/* src/replicas/jobs/pause.c - pauses inside runs. See pause.h. */
#include "replicas/jobs/pause.h"
#include "replicas/jobs/jobs_private.h"

static _Atomic uint32_t *state_of(const struct dti_replica *r)
{
    return &r->team->pause[r->depth];
}

void dti_pause_announce(struct dti_replica *self)
{
    dti_fetch_to_write(&self->team->go, DTI_CACHE_LINE); /* the others have polled this cache line */
}

bool dti_pause_begin(struct dti_replica *self)
{
    /* U0; the fence orders it before V1 */
    atomic_store_explicit(state_of(self), DTI_PAUSE_BEGUN, memory_order_relaxed);
    dti_fence_light();
    if (atomic_load_explicit(&self->team->refused[self->depth], memory_order_acquire) == 0) { /* V1 */
        self->depth++;
        self->team->pauses++;
        return true;
    }
    atomic_store_explicit(state_of(self), DTI_PAUSE_DECLINED, memory_order_release);
    dti_wait_queue_signal(&self->team->wait_queue, DTI_AWAITS_GO(self->num_replicas));
    return false;
}

void dti_pause_end(struct dti_replica *self)
{
    struct dti_team *team = self->team;
    team->pauses--;
    self->depth--;
    if (team->poisoned) {
        /* A run inside this pause was given up. A replica may be about to read the job of that run, so the
         * job is not changed. The outer run is stopped. The other replicas leave it when they have finished
         * the jobs that they have begun, as if the pause had been declined. This replica has executed its
         * part of each job that it has posted, and must not take one for its next. */
        self->seen = dti_team_next_number(team) - 1;
        atomic_store_explicit(state_of(self), DTI_PAUSE_DECLINED, memory_order_release); /* E0 */
        dti_wait_queue_signal(&team->wait_queue, DTI_AWAITS_GO(team->n));
        return;
    }
    /* The end of the pause is posted as a job that is NULL. All other replicas wait in dti_pause_serve, and
     * have finished every earlier job. */
    dti_team_set_job(team, NULL, NULL);
    self->seen = dti_team_next_number(team);
    dti_team_post(team, self->seen);
    atomic_store_explicit(state_of(self), DTI_PAUSE_OPEN, memory_order_release); /* E0 */
    /* A replica may have taken the end of the pause, failed in its next meeting and come to dti_pause_refuse
     * before E0. It sleeps until the pause is no longer begun. */
    dti_wait_queue_signal(&team->wait_queue, DTI_AWAITS_GO(team->n));
}

/* Returns true if a serving replica has a job to execute, or may leave because the run is stopped. The end of
 * the team is no reason to leave. A team that ends inside a pause is poisoned and its run is stopped, but
 * replica 0 may still use the memory of the others, until it ends the pause. */
static bool is_called(void *argument)
{
    const struct dti_replica *r = argument;
    return dti_team_go_changed(argument) ||
           /* relaxed: `refuse` reads the state again */
           (dti_stopped(&r->team->stop) &&
            atomic_load_explicit(state_of(r), memory_order_relaxed) != DTI_PAUSE_BEGUN);
}

/* Refuses the pause. Returns true if this replica may leave: no pause will begin, and none has ended
 * meanwhile. */
static bool refuse(struct dti_replica *self)
{
    /* V0; the fence orders it before U1 */
    atomic_store_explicit(&self->team->refused[self->depth], 1, memory_order_release);
    dti_fence_heavy();
    return atomic_load_explicit(state_of(self), memory_order_acquire) != DTI_PAUSE_BEGUN && /* U1, E1 */
           !dti_team_go_changed(self);
}

bool dti_pause_serve(struct dti_replica *self)
{
    struct dti_team *team = self->team;
    struct dti_deadline never = { .timeout_ms = DITTO_FOREVER };
    for (;;) {
        /* The function of an inner run has forked. No thread of this child process will post a job. */
        if (dti_team_forked(team))
            return false;
        dti_wait(&team->wait_queue, self->index, DTI_AWAITS_GO(team->n), &self->wait_policy, &never,
                 is_called, self);
        uint64_t number = atomic_load_explicit(&team->go, memory_order_acquire); /* G1 */
        if (number == self->seen) {
            if (refuse(self))
                return false;
            continue;
        }
        self->seen = number;
        if (team->job == NULL)
            return true;
        self->depth++;
        dti_team_work(self, number);
        self->depth--;
    }
}

bool dti_pause_refuse(struct dti_replica *self)
{
    /* No pause begins without replica 0. If the run goes on, this replica never arrived at the meeting,
     * because it is in a child process or inside a function that may call no collective. Then no pause can
     * begin without it either. */
    return self->index != 0 && !dti_team_forked(self->team) && dti_stopped(&self->team->stop) &&
           dti_pause_serve(self);
}
