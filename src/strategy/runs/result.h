/* src/strategy/runs/result.h - runs, whose functions return results that become values. */
#ifndef DTI_RESULT_H
#define DTI_RESULT_H

#include "strategy/strategy.h"
#include "values/buffer_pool.h"

/* -- The replica's own thread -- */
/* Drops the results of the previous step. Only the results of the last step of a run count. */
void dti_results_again(struct dti_replica *r, const struct dti_run_call *call);

/* Finds the entry that has this name, or names the first unused entry. An earlier result of this name stays
 * as it is until dti_result_set. Returns DITTO_ERR_CONTEXT, DITTO_ERR_INVALID or DITTO_ERR_RANGE. */
ditto_status dti_result_find(struct dti_replica *r, const char *name, struct dti_results **list,
                             struct dti_result **out);

/* Puts `made` into an entry of dti_result_find. The entry keeps its name. The buffer of an earlier result is
 * given back. */
void dti_result_set(struct dti_results *list, struct dti_result *result, struct dti_result *made);

/* -- The thread that posted the run. It has the turn, and all replicas have returned. -- */
/* Makes one value of the results of a successful run, or sets *out to NULL if there are none. Buffers that
 * do not become part of the value are given back. Returns DITTO_ERR_DIVERGED, DITTO_ERR_INVALID,
 * DITTO_ERR_NO_MEMORY, or an error of dti_reduce_value. */
ditto_status dti_results_collect(ditto_strategy *strategy, const struct dti_run_call *call,
                                 const ditto_run_options *options, ditto_value **out);

/* Drops the results of a run, and gives all their buffers back. */
void dti_results_give_back(ditto_strategy *strategy, const struct dti_run_call *call);

/* -- Between dti_cross_enter and dti_cross_leave -- */
/* Makes the run that `request` describes. *call is set to the strategy's copy of the request, which is valid
 * until the next run on the same level. It is NULL if the run did not begin. */
ditto_status dti_run_in_turn(ditto_strategy *strategy, const struct dti_run_call *request,
                             struct dti_run_call **call);

#endif
