/* src/strategy/runs/run_on_hosts.h - begins and ends the runs of a strategy over several hosts. */
#ifndef DTI_RUN_ON_HOSTS_H
#define DTI_RUN_ON_HOSTS_H

#include "strategy/strategy.h"

/* -- The caller of a run, which has the turn -- */

/* Called before the replicas execute the function of a run, also if there is one host. If it fails, the run
 * must not begin. If the run is the outermost one and another host has failed already, it fails with the
 * error of all hosts. */
ditto_status dti_run_begins_on_hosts(ditto_strategy *strategy);

/* Called over several hosts, when the replicas of this host have returned from an outermost run with a
 * status. Returns the status of all hosts, or that of this one if ditto_strategy_options.run_agreement is
 * off. Returns DIVERGED on all hosts if two of them have chosen different rows of the same input. */
ditto_status dti_run_ends_on_hosts(ditto_strategy *strategy, ditto_status status);

#endif
