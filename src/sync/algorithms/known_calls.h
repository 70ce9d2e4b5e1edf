/* src/sync/algorithms/known_calls.h - collectives whose arguments equal those of an earlier call.
 *
 * A program makes a few collectives again and again, with the same buffers. With one replica, the checks of
 * their arguments and the choice of an algorithm took half of the time of an all-reduce of 8 bytes. Each
 * replica therefore keeps its last calls, with everything that follows from them. A call that equals a kept
 * one is *known*. The context of the caller, a stop, the time limits and the floating-point environment may
 * change between two equal calls, so they are looked at in each call. So is the text of a label, because its
 * address may be that of another text before. The replicas compare their calls at the meeting, as always. The
 * code is in api_collective.c. */
#ifndef DTI_KNOWN_CALLS_H
#define DTI_KNOWN_CALLS_H

#include "sync/algorithms/choose_algorithm.h"

/* The arguments of a collective of one buffer, or of one pair of buffers. */
struct dti_collective_arguments {
    const char *name; /* of the public function, a constant string. Each name has one pattern. */
    const void *src;
    void *dst;
    size_t count;
    uint32_t root; /* DTI_NO_ROOT if there is none */
    enum dti_pattern pattern;
    ditto_dtype dtype;
    ditto_op op; /* 0 if there is none */
};

/* The number of calls that are kept. The oldest is replaced. A program with more calls in its loop prepares
 * all of them each time. */
#define DTI_KNOWN_CALLS 8

struct dti_known_call {
    struct dti_collective_arguments arguments;
    struct dti_call call;
    struct dti_prepared_call prepared;

    /* The text of call.label, if the call has a label. */
    char label[DTI_LABEL_BYTES];
};

struct dti_known_calls {
    /* The number of calls that have been kept, which is also the number of the last one. */
    uint64_t number;

    /* The entry that was used last. */
    uint32_t last;
    struct dti_known_call entry[DTI_KNOWN_CALLS];
};

#endif
