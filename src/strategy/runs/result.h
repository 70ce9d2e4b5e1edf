/* src/strategy/runs/result.h - what replicas' functions give back, and how it becomes values. */
#ifndef DTI_RESULT_H
#define DTI_RESULT_H

#include "strategy/strategy.h"

/* -- The replica's own thread -- */
void dti_results_again(struct dti_replica *r,
                       const struct dti_run_call *call); /* a further step: of results the last count */

/* A place for a result of this name; it counts from dti_result_done on. CONTEXT, INVALID, RANGE. */
ditto_status dti_result_reserve(struct dti_replica *r, const char *name, ditto_value_kind kind,
                                struct dti_results **list, struct dti_result **out);
void dti_result_done(struct dti_results *list, const struct dti_result *result);

/* -- The poster, in turn, when all replicas have returned -- */
/* Results of a run that went well, as one value, or *out NULL. DIVERGED, INVALID, NO_MEMORY; else as reduce. Results
 * that do not end in the value are given back. */
ditto_status dti_results_collect(ditto_strategy *strategy, const struct dti_run_call *call,
                                 const ditto_run_options *options, ditto_value **out);
void dti_results_give_back(ditto_strategy *strategy, const struct dti_run_call *call);

/* Between dti_cross_enter and leave: the run that `wish` describes. *call is where it stands, good until the next on
 * its level. */
ditto_status dti_run_in_turn(ditto_strategy *strategy, const struct dti_run_call *request,
                             struct dti_run_call **call);

#endif
