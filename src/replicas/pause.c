/* src/replicas/pause.c - replica 0 works alone inside a run; the others wait, and serve the runs that it posts. */
#include "replicas/team_inside.h"

void dti_pause_announce(struct dti_replica *self)
{
    dti_fetch_to_write(&self->team->go, DTI_LINE); /* the others have it since they looked last */
}

/* Whether there is a pause: one compare-and-swap decides between its beginning and a refusal. True: so it is. Acquire: whoever finds
 * it open again after a pause has ended also finds the end (dti_pause_end's release). */
static bool decide(struct dti_team *team, uint32_t decision)
{
    uint32_t found = DTI_PAUSE_OPEN;
    return atomic_compare_exchange_strong_explicit(&team->pause, &found, decision, memory_order_acq_rel,
                                                   memory_order_acquire) ||
           found == decision;
}

bool dti_pause_begin(struct dti_replica *self)
{
    if (!decide(self->team, DTI_PAUSE_BEGUN))
        return false;
    self->team->pauses++;
    return true;
}

void dti_pause_end(struct dti_replica *self)
{
    struct dti_team *team = self->team;
    team->pauses--;
    dti_team_set_job(team, NULL, NULL); /* posted like a job, and none. All others serve, and have done what came before */
    self->seen = dti_team_next_number(team);
    dti_team_post_unless_home(team, self->seen);
    atomic_store_explicit(&team->pause, DTI_PAUSE_OPEN, memory_order_release); /* to decide() */
    dti_waitroom_signal(&team->room, DTI_AWAITS_GO(team));
}

/* Something to do, or nothing any more: it was refused, or may be, because the run is stopped. */
static bool is_called(void *argument)
{
    const struct dti_replica *r = argument;
    uint32_t pause = atomic_load_explicit(&r->team->pause, memory_order_relaxed); /* decide() looks again */
    return dti_team_go_changed(argument) || pause == DTI_PAUSE_REFUSED ||
           (pause == DTI_PAUSE_OPEN && dti_stopped(&r->team->stop));
}

bool dti_pause_serve(struct dti_replica *self)
{
    struct dti_team *team = self->team;
    struct dti_deadline never = { .timeout_ms = DITTO_FOREVER };
    for (;;) {
        dti_wait(&team->room, self->id, DTI_AWAITS_GO(team), &self->patience, &never, is_called, self);
        if (dti_team_go_changed(self)) {
            if (dti_team_is_sent_home(team)) /* left for this thread's own loop to see, when the function has returned */
                return false;
            uint32_t number = dti_team_await_go(self);
            if (team->job == NULL)
                return true;
            dti_team_work(self, number);
        } else if (decide(team, DTI_PAUSE_REFUSED)) {
            dti_waitroom_signal(&team->room, DTI_AWAITS_GO(team));
            if (!dti_team_go_changed(self)) /* else a pause had ended before: its end is still to be seen */
                return false;
        }
    }
}

void dti_pause_refuse(struct dti_replica *self)
{
    if (self->id != 0) {
        (void)dti_pause_serve(self); /* the run is stopped: that refuses, or serves what has begun */
        return;
    }
    (void)decide(self->team, DTI_PAUSE_REFUSED);
    dti_waitroom_signal(&self->team->room, DTI_AWAITS_GO(self->team));
}
