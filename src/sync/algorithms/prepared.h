/* src/sync/algorithms/prepared.h - a call together with what follows from the call and the team alone. */
#ifndef DTI_PREPARED_H
#define DTI_PREPARED_H

#include "sync/kernels/reduction.h"
#include "sync/plans/choose_algorithm.h"

struct dti_target;

struct dti_prepared {
    /* Neither moves nor changes as long as this struct is used. */
    const struct dti_call *call;

    struct dti_call_size size;
    struct dti_algorithm_choice choice;
    struct dti_reduction reduction; /* flow.h */
};

/* Any thread. `target` is NULL except for DTI_PATTERN_TARGET. */
struct dti_prepared dti_prepare(const struct dti_sync *sync, const ditto_tuning *tuning,
                                const struct dti_call *call, const struct dti_target *target);

#endif
