/* src/replicas/pause.c - replica 0 works alone inside a run; the others wait, and serve the runs that it posts. */
#include "replicas/team_inside.h"

void dti_pause_announce(struct dti_replica *self)
{
    dti_fetch_to_write(&self->team->go, DTI_LINE); /* the others have it since they looked last */
}

void dti_pause_begin(struct dti_replica *self)
{
    self->team->pauses++;
}

void dti_pause_end(struct dti_replica *self)
{
    struct dti_team *team = self->team;
    team->pauses--;
    dti_team_set_job(team, NULL,
                     NULL); /* posted like a job, and none. All others serve, and have done what came before */
    self->seen = dti_team_next_number(team);
    dti_team_post(team, self->seen);
}

void dti_pause_serve(struct dti_replica *self)
{
    for (uint32_t number; number = dti_team_await_go(self), self->team->job != NULL;)
        dti_team_work(self, number);
}
