/* src/sync/algorithms/choose_algorithm.h - chooses the algorithm of a collective, and prepares its call.
 *
 * The choice is a pure function of the call, the team and its tuning, so that all replicas choose the
 * same. */
#ifndef DTI_CHOOSE_ALGORITHM_H
#define DTI_CHOOSE_ALGORITHM_H

#include "sync/kernels/reduction.h"
#include "sync/meeting/sync_state.h"

struct dti_target;

enum dti_algorithm {
    /* One meeting. Payloads are in the mailboxes. Each replica reads what it needs from there, or, if the
     * replicas meet by counter, the last to arrive combines them for all. */
    DTI_ALGORITHM_MAILBOXES,

    /* Between two meetings, all replicas divide the indices. Each writes its own part to all destinations. */
    DTI_ALGORITHM_OWNERS,

    /* Between two meetings, the replicas of each group divide the indices, and groups exchange what they have
     * combined. If data is only moved, nothing is exchanged. Scans, gathers, scatters and all-to-alls do not
     * use it. */
    DTI_ALGORITHM_GROUPS,

    /* Two replicas. Each copies what the other one needs to staging memory. If an all-reduce
     * is in place on one of them, they proceed as with OWNERS (staged.c). */
    DTI_ALGORITHM_STAGED,

    /* Over several hosts (other_hosts.h). dti_prepare_call sets it, and dti_choose_algorithm does not. */
    DTI_ALGORITHM_HOSTS
};
/* How much a call moves, in bytes. */
struct dti_call_size {
    /* Bytes that one replica contributes. */
    size_t own;

    /* Bytes that one replica reads from others if it makes its result alone. For an all-gather, its own part
     * is counted too. */
    size_t read;

    /* Bytes that are written on all replicas together. */
    size_t all;
};

struct dti_call_size dti_call_size_of(const struct dti_call *call, uint32_t n);

struct dti_algorithm_choice {
    enum dti_algorithm algorithm;

    /* True if results may be written with non-temporal stores. */
    bool streams;

    /* True if a destination that is also a source is fetched for writing before it is read. */
    bool fetches;
};

/* `tuning` is sync->tuning.given, except while thresholds are measured. */
struct dti_algorithm_choice dti_choose_algorithm(const struct dti_sync *sync, const ditto_tuning *tuning,
                                                 const struct dti_call *call,
                                                 const struct dti_call_size *size);

/* A call with all that follows from it, the team and the tuning. */
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
