/* src/replicas/jobs/team_life.h - creates and destroys teams. Cross context. */
#ifndef DTI_TEAM_LIFE_H
#define DTI_TEAM_LIFE_H

#include "replicas/team/team.h"

ditto_status dti_team_create(const struct dti_team_options *options, struct dti_team **out);
/* Takes the turn, and shuts the gates of the team and of all its dependents. The caller then calls
 * dti_team_reopen or dti_team_destroy. Returns BUSY, and changes nothing, if another call has not
 * returned. */
ditto_status dti_team_close(struct dti_team *team);
void dti_team_reopen(struct dti_team *team);
/* Destroys a closed team, or in a child process any team. Joins all threads that can be joined. Returns
 * POISONED if some replicas never returned. Their threads and the memory of the team are then not freed. */
ditto_status dti_team_destroy(struct dti_team *team);
/* In a child process: subtracts the threads of a team that is destroyed, but not freed, from the load of the
 * PUs. They do not exist in the child. */
void dti_team_uncount(const struct dti_team *team);

#endif
