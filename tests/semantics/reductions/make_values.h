/* tests/semantics/reductions/make_values.h - per-replica values for tests of reductions: vectors of different
 * lengths, and slices. */
#ifndef MAKE_VALUES_H
#define MAKE_VALUES_H

#include "support/as_hosts.h"
#include "support/support.h"

/* Returns a per-replica value of f64 vectors. Replica r has rows[r] elements. The elements of all replicas
 * are 0, 1, 2, ... in order. */
ditto_value *counting(ditto_strategy *strategy, const size_t *rows);

/* Returns true if this host has the replica. */
bool has_replica(const ditto_strategy *strategy, uint32_t replica);

/* A list of axes that holds only axis 0. */
extern const int32_t axis_0[1];

/* Returns a value of slices for a strategy of three replicas. Replica r has the rows r and 1, of two elements
 * each, with the values 10 r + 1, 10 r + 2 and so on. */
ditto_value *make_slices(ditto_strategy *strategy, size_t dense_rows);

#endif
