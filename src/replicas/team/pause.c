/* src/replicas/team/pause.c - pauses inside runs. Argued in pause.h. */
#include "replicas/team/pause.h"
#include "replicas/team/team_private.h"

static _Atomic uint32_t *state_of(const struct dti_replica *r)
{
    return &r->team->pause[r->depth];
}

void dti_pause_announce(struct dti_replica *self)
{
    dti_fetch_to_write(&self->team->go, DTI_CACHE_LINE); /* the others have it since they looked last */
}

bool dti_pause_begin(struct dti_replica *self)
{
    atomic_store_explicit(state_of(self), DTI_PAUSE_BEGUN,
                          memory_order_relaxed); /* U0; ordered by the fence */
    dti_fence_light();
    if (atomic_load_explicit(&self->team->refused[self->depth], memory_order_acquire) == 0) { /* V1 */
        self->depth++;
        self->team->pauses++;
        return true;
    }
    atomic_store_explicit(state_of(self), DTI_PAUSE_DECLINED, memory_order_release);
    dti_wait_queue_signal(&self->team->wait_queue, DTI_AWAITS_GO(self->team));
    return false;
}

void dti_pause_end(struct dti_replica *self)
{
    struct dti_team *team = self->team;
    team->pauses--;
    self->depth--;
    if (team->poisoned) {
        /* A run inside this pause was given up. A replica may still be about to look at its job, which
         * therefore stays. The outer run is stopped, so the other replicas leave when they have done what
         * they have begun, as if the pause had been declined. */
        atomic_store_explicit(state_of(self), DTI_PAUSE_DECLINED, memory_order_release); /* E0 */
        dti_wait_queue_signal(&team->wait_queue, DTI_AWAITS_GO(team));
        return;
    }
    /* The end of the pause is posted like a job, but there is nothing to do. All other replicas wait in
     * dti_pause_serve, and have done every job that came before. */
    dti_team_set_job(team, NULL, NULL);
    self->seen = dti_team_next_number(team);
    dti_team_post(team, self->seen);
    atomic_store_explicit(state_of(self), DTI_PAUSE_OPEN, memory_order_release); /* E0 */
}

/* Something to do, or nothing any more, because the run is stopped. */
static bool is_called(void *argument)
{
    const struct dti_replica *r = argument;
    return dti_team_go_changed(argument) || dti_team_is_ending(r->team) ||
           (dti_stopped(&r->team->stop) &&
            atomic_load_explicit(state_of(r), memory_order_relaxed) != DTI_PAUSE_BEGUN); /* looked at again */
}

/* There will be no pause, and none has ended. */
static bool refuse(struct dti_replica *self)
{
    atomic_store_explicit(&self->team->refused[self->depth], 1,
                          memory_order_release); /* V0; the fence orders it */
    dti_fence_heavy();
    return atomic_load_explicit(state_of(self), memory_order_acquire) != DTI_PAUSE_BEGUN && /* U1, E1 */
           !dti_team_go_changed(self);
}

bool dti_pause_serve(struct dti_replica *self)
{
    struct dti_team *team = self->team;
    struct dti_deadline never = { .timeout_ms = DITTO_FOREVER };
    for (;;) {
        /* an inner run's function forked, and no thread of this child will post a job */
        if (dti_team_forked(team))
            return false;
        dti_wait(&team->wait_queue, self->id, DTI_AWAITS_GO(team), &self->wait_policy, &never, is_called,
                 self);
        uint64_t number = atomic_load_explicit(&team->go, memory_order_acquire); /* G1 */
        if (number == self->seen) {
            if (dti_team_is_ending(team) || refuse(self))
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

void dti_pause_refuse(struct dti_replica *self)
{
    /* Without replica 0 no pause begins. If the run goes on, then this replica never announced itself at the
     * meeting, because it is in a child process, or inside a function that may call no collective. No pause
     * can begin without it either. */
    if (self->id != 0 && !dti_team_forked(self->team) && dti_stopped(&self->team->stop))
        (void)dti_pause_serve(self);
}
