/* src/replicas/jobs/jobs_private.h - how jobs are posted and executed, for the files of this folder. */
#ifndef DTI_JOBS_PRIVATE_H
#define DTI_JOBS_PRIVATE_H

#include "replicas/jobs/jobs.h"
#include "replicas/team/team_state.h"

void dti_team_set_job(struct dti_team *team, dti_job job, void *argument);
uint64_t dti_team_next_number(const struct dti_team *team);
void dti_team_post(struct dti_team *team, uint64_t number);
/* Returns true if the go number differs from the last one on which `replica` (a struct dti_replica) has
 * acted. */
bool dti_team_go_changed(void *replica);
/* Executes the posted job on this replica. */
void dti_team_work(struct dti_replica *r, uint64_t number);
/* The main function of a leader's thread. */
void *dti_team_thread_main(void *replica);
/* Ends the threads of leaders. Parked leaders end now, and the others end when they return. No run may
 * follow. */
void dti_team_end_threads(struct dti_team *team);
/* Writes the replicas that have not returned from run `number`, as "2, 5-7". A replica 0 that is the caller
 * of run is left out. */
void dti_team_list_missing(const struct dti_team *team, uint64_t number, char *buffer, size_t size);

#endif
