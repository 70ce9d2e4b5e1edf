/* src/replicas/team/servers.h - the team of parameter servers of a strategy whose workers do not wait
 * for each other. */
#ifndef DTI_SERVERS_H
#define DTI_SERVERS_H

#include "base/errors/status.h"

#include <stdbool.h>

struct dti_team;

/* Returns UNSUPPORTED if the team is that of parameter servers, whose workers do not work in step. */
ditto_status dti_team_check_in_step(const struct dti_team *team);
/* For the team of a worker: the team of the parameter servers, whose variables its replicas may use. NULL for
 * other teams. It outlives the team of the worker. */
struct dti_team *dti_team_servers(const struct dti_team *team);
/* For the team of a worker: the number of the replicas of all workers before it. 0 for other teams. The
 * random numbers of its replicas, and the orders of its unseeded datasets, begin there, so that they differ
 * from those of other workers. */
uint32_t dti_team_first_stream(const struct dti_team *team);
void dti_team_set_servers(struct dti_team *team, struct dti_team *servers, uint32_t first_stream);
/* For the team of parameter servers: is_in_use(argument) says whether functions of workers may be using the
 * variables. NULL means that none is. */
void dti_team_set_in_use(struct dti_team *team, bool (*is_in_use)(const void *argument),
                         const void *argument);
/* Returns BUSY if functions of workers may be using `what`, whose name is `name`. The caller has the turn. */
ditto_status dti_team_check_unused(const struct dti_team *team, const char *what, const char *name);

#endif
