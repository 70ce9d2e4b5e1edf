/* src/replicas/team/team_private.h - declarations that only team.c, team_life.c and pause.c share. */
#ifndef DTI_TEAM_PRIVATE_H
#define DTI_TEAM_PRIVATE_H

#include "replicas/team/team.h"

#define DTI_GO_NONE UINT64_C(0) /* the run number before the first run */

void dti_team_set_job(struct dti_team *team, dti_job job, void *argument);
uint64_t dti_team_next_number(const struct dti_team *team);
void dti_team_post(struct dti_team *team, uint64_t number);
/* The state of the pauses of a run: a pause may begin, a pause is going on, or a pause was refused. */
enum dti_pause_state { DTI_PAUSE_OPEN, DTI_PAUSE_BEGUN, DTI_PAUSE_DECLINED };
/* Whether the go number differs from the last one on which `replica` (a struct dti_replica) has acted. */
bool dti_team_go_changed(void *replica);
bool dti_team_is_ending(const struct dti_team *team);
/* Executes the posted job on this replica. */
void dti_team_work(struct dti_replica *r, uint64_t number);
/* The main function of a leader's thread. */
void *dti_team_thread_main(void *replica);
/* No run will follow. Parked leaders end now, and the others end when they return. */
void dti_team_end_threads(struct dti_team *team);
/* Whether a replica has returned from the last outermost run. If so, the caller sees all that the replica did
 * (D0 -> D1). */
bool dti_team_has_left(const struct dti_team *team, uint32_t replica);
/* Writes the replicas that have not returned from run `number`, as "2, 5-7". */
void dti_team_list_missing(const struct dti_team *team, uint64_t number, char *buffer, size_t size);

#endif
