/* src/sync/algorithms/prepared_call.h - a call with all that follows from it, the team and the tuning. */
#ifndef DTI_PREPARED_CALL_H
#define DTI_PREPARED_CALL_H

#include "sync/algorithms/choose_algorithm.h"
#include "sync/kernels/reduction.h"

struct dti_target;

struct dti_prepared_call {
    /* Neither moves nor changes as long as this struct is used. */
    const struct dti_call *call;

    struct dti_call_size size;
    struct dti_algorithm_choice choice;

    /* How the elements are combined (dti_flow_reduction). */
    struct dti_reduction reduction;
};

/* Any thread. `target` is NULL except for DTI_PATTERN_TARGET. */
struct dti_prepared_call dti_prepare_call(const struct dti_sync *sync, const ditto_tuning *tuning,
                                          const struct dti_call *call, const struct dti_target *target);

#endif
