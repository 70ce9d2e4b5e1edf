/* src/sync/plans/choose_algorithm.h - by which way a collective goes: a pure function of the call, the team and its tuning, so that all replicas
 * choose the same. */
#ifndef DTI_CHOOSE_ALGORITHM_H
#define DTI_CHOOSE_ALGORITHM_H

#include "sync/sync_state.h"

enum dti_algorithm {
    DTI_ALGORITHM_MAILBOXES, /* payloads ride in the lines of one meeting; everyone takes what it needs from there */
    DTI_ALGORITHM_OWNERS, /* between two meetings: all replicas divide the indices, each writes its own to all destinations */
    DTI_ALGORITHM_GROUPS, /* between two meetings: groups of near replicas divide the indices, swapping what they have combined */
    DTI_ALGORITHMS
};
extern const char *const dti_algorithm_names[DTI_ALGORITHMS];

/* How much a call moves, in bytes. */
struct dti_call_size {
    size_t own;  /* that a replica brings */
    size_t read; /* that a replica reads of others to get its result, if it makes it alone */
    size_t all;  /* that are written on all replicas together */
};
struct dti_call_size dti_call_size_of(const struct dti_call *call, uint32_t n);

struct dti_algorithm_choice {
    enum dti_algorithm algorithm;
    bool streams;
};
struct dti_algorithm_choice dti_choose_algorithm(const struct dti_sync *sync, const struct dti_call *call,
                                                 const struct dti_call_size *size);

#endif
