/* src/sync/algorithms/neighbours.h - replicas give data to each other: ditto_exchange, and collectives that
 * move parts of different sizes. */
#ifndef DTI_NEIGHBOURS_H
#define DTI_NEIGHBOURS_H

#include <ditto/exchange.h>

#include "replicas/team/replica.h"
#include "sync/meeting/call.h"

/* The parts of one replica. While the call lasts, its partners may read them. */
struct dti_exchange_list {
    const ditto_exchange_part *part;
    size_t parts;

    /* The public function, for messages. NULL for ditto_exchange, whose parts have tags. */
    const char *name;
};

/* Lists what a replica gives and receives in a call that moves parts (dti_call_moves_parts), as parts of an
 * exchange. Returns their number. `sizes` is NULL if all parts have call->count elements. If there is a root,
 * its two sides are equal, and the offsets are those of the root, or NULL. `out` is [n]. A part in place has
 * one buffer. Fails with INVALID or RANGE, which is not possible without sizes. */
ditto_status dti_exchange_list_parts(const struct dti_replica *self, const struct dti_call *call,
                                     const ditto_all_to_all_parts *sizes, ditto_exchange_part *out,
                                     size_t *parts);

/* Copies what the partner gives to this replica, if its part fits to `part` of this replica's list. Otherwise
 * stops the run and returns DIVERGED. `theirs` are the parts of the partner, to whose buffers the replica has
 * access. If one of the two parts is in place, each of the two replicas exchanges one half of them. */
ditto_status dti_exchange_take(struct dti_replica *self, const struct dti_exchange_list *list,
                               const ditto_exchange_part *part, const struct dti_exchange_list *theirs);

/* Exchanges the elements of two pairs of buffers: `to` gets those of `from`, and `other_to` those of
 * `other_from`, where `to` may be `other_from`, and `other_to` may be `from`. */
void dti_swap_parts(void *to, const void *from, void *other_to, const void *other_from, size_t bytes);

/* The collective of ditto_exchange. The parts have been checked. The call has the pattern
 * DTI_PATTERN_NOTHING, or moves parts. Must be called on the replica's own thread. */
ditto_status dti_exchange_parts(struct dti_replica *self, struct dti_call *call,
                                const struct dti_exchange_list *list, struct dti_deadline *deadline);

#endif
