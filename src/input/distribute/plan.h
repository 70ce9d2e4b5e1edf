/* src/input/distribute/plan.h - from a caller's options to what an iterator is made for. */
#ifndef DTI_PLAN_H
#define DTI_PLAN_H

#include "input/distribute/iterator.h"

/* One dataset for all pipelines: makes the plan, and a dataset [plan->pipelines] for each, whose references are the caller's. */
ditto_status dti_plan_distribute(const struct dti_team *team, ditto_dataset *dataset,
                                 const ditto_input_options *options, struct dti_plan *plan, ditto_dataset ***datasets);
/* The same, of datasets that a function makes. */
ditto_status dti_plan_from_function(const struct dti_team *team, ditto_dataset_fn function, void *user,
                                    const ditto_input_options *options, struct dti_plan *plan,
                                    ditto_dataset ***datasets);

#endif
