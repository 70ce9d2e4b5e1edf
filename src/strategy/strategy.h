/* src/strategy/strategy.h - the conductor: what the files of this room share. No other room may include it. */
#ifndef DTI_STRATEGY_H
#define DTI_STRATEGY_H

#include <ditto/strategy.h>

#include "replicas/replicas.h"
#include "sync/sync.h"

/* What a run calls. In the strategy, not on the caller's stack: a replica that a poisoned run has left may still come
 * for it. */
struct dti_run_call {
    ditto_replica_fn function;
    void *argument;
};

struct ditto_strategy {
    struct dti_strategy_base base; /* first: see replicas/team.h */
    ditto_kind kind;
    ditto_placement *placement;
    ditto_topology_counts machine; /* what the process could use when the strategy was made */
    _Atomic uint32_t scopes;       /* entered on any thread and not left */
    struct dti_run_call call;      /* of the present run; under the team's turn */
};

/* Reads this machine and places the replicas as the options say. *out is the caller's. */
ditto_status dti_strategy_place(const ditto_strategy_options *options, ditto_topology_counts *machine,
                                ditto_placement **out);
ditto_status dti_strategy_create(ditto_kind kind, const ditto_strategy_options *options, ditto_strategy **out);
ditto_status dti_strategy_destroy(ditto_strategy *strategy);
ditto_status dti_scope_enter(ditto_strategy *strategy);
ditto_status dti_scope_leave(ditto_strategy *strategy);
void dti_scope_forget(const struct dti_team *team); /* leaves this thread's scope of it, however often entered */
ditto_status dti_strategy_run(ditto_strategy *strategy, ditto_replica_fn function, void *argument);
ditto_status dti_strategy_info(ditto_strategy *strategy, uint32_t replica, ditto_replica_info *out);
ditto_status dti_strategy_device_info(ditto_strategy *strategy, uint32_t replica, uint32_t device,
                                      ditto_device_info *out);
ditto_status dti_strategy_describe(ditto_strategy *strategy, struct dti_text *text);

#endif
