/* src/replicas/team/team_private.h - what team.c (runs) and team_life.c (making and ending) share; nobody else includes it. */
#ifndef DTI_TEAM_PRIVATE_H
#define DTI_TEAM_PRIVATE_H

#include "replicas/team/team.h"

#define DTI_GO_NONE UINT64_C(0) /* the run number before the first run */

void dti_team_set_job(struct dti_team *team, dti_job job, void *argument);
uint64_t dti_team_next_number(const struct dti_team *team);
void dti_team_post(struct dti_team *team, uint64_t number);
/* Of the pauses of a run: one may begin; it goes on; it was refused. */
enum dti_pause_state { DTI_PAUSE_OPEN, DTI_PAUSE_BEGUN, DTI_PAUSE_DECLINED };
bool dti_team_go_changed(void *replica); /* since what it has seen */
bool dti_team_is_ending(const struct dti_team *team);
void dti_team_work(struct dti_replica *r, uint64_t number); /* the posted job, on this replica */
void *dti_team_thread_main(void *replica);                  /* the body of a leader's thread */
void dti_team_end_threads(
    struct dti_team *team); /* no run will follow: parked leaders end, others when they return */
/* Whether a replica has returned from the last outermost run. If so, the caller sees all that the replica did
 * (D0 -> D1). */
bool dti_team_has_left(const struct dti_team *team, uint32_t replica);
/* The replicas that have not returned from run `number`, as "2, 5-7". */
void dti_team_list_missing(const struct dti_team *team, uint64_t number, char *buffer, size_t size);

#endif
