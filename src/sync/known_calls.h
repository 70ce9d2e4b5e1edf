/* src/sync/known_calls.h - collectives whose arguments equal those of an earlier call.
 *
 * A program makes a few collectives again and again, with the same buffers. The checks of their arguments and
 * the choice of an algorithm took half of the time of an all-reduce of 8 bytes (docs/adr/0026). Each replica
 * therefore keeps its last calls, with all that follows from them. What can change between two equal calls is
 * looked at in each of them: the context of the caller, a stop, the time limits, and the floating-point
 * environment. The replicas compare their calls at the meeting, as always. */
#ifndef DTI_KNOWN_CALLS_H
#define DTI_KNOWN_CALLS_H

#include "sync/algorithms/prepared.h"

/* The arguments of a collective of one buffer, or of one pair of buffers. */
struct dti_request {
    const char *name; /* of the public function, a constant string */
    const void *src;
    void *dst;
    size_t count;
    uint32_t root; /* DTI_NO_ROOT if there is none */
    enum dti_pattern pattern;
    ditto_dtype dtype;
    ditto_op op; /* 0 if there is none */
};

/* A power of two. Programs with more calls in their loop prepare some of them each time. */
#define DTI_KNOWN_CALLS 8

struct dti_known_call {
    struct dti_request request;
    struct dti_call call;
    struct dti_prepared prepared;
};

struct dti_known_calls {
    uint64_t last_number;
    struct dti_known_call entry[DTI_KNOWN_CALLS];
};

/* Checks the arguments, unless the replica has made an equal call with the default options before, and
 * executes the collective. Must be called on the replica's own thread, by a public function that has set its
 * name. Fails as ditto_all_reduce and the other functions of ditto/collective.h do. */
ditto_status dti_request_collective(ditto_replica *self, const struct dti_request *request,
                                    const ditto_reduce_options *options);

#endif
