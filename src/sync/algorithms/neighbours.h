/* src/sync/algorithms/neighbours.h - replicas give data to each other (ditto_exchange). */
#ifndef DTI_NEIGHBOURS_H
#define DTI_NEIGHBOURS_H

#include <ditto/exchange.h>

#include "sync/meeting/call.h"

struct dti_replica;
struct dti_deadline;

/* The parts of one replica. While the call lasts, its partners may read them. */
struct dti_exchange_list {
    const ditto_exchange_part *part;
    size_t parts;
};

/* Copies what the partner gives to this replica, if its part is equal. Otherwise stops the run and returns
 * DIVERGED. `theirs` are the parts of the partner, to whose buffers the replica has access. */
ditto_status dti_exchange_take(struct dti_replica *self, const ditto_exchange_part *part,
                               const struct dti_exchange_list *theirs);

/* The collective of ditto_exchange. The parts have been checked. The call has the pattern
 * DTI_PATTERN_NOTHING. Must be called on the replica's own thread. */
ditto_status dti_exchange_parts(struct dti_replica *self, struct dti_call *call,
                                const struct dti_exchange_list *list, struct dti_deadline *deadline);

#endif
