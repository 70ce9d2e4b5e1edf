/* tests/semantics/copies/split_variables.h - variables whose replicas share copies on two memory nodes, and
 * updates that split these copies. */
#ifndef SPLIT_VARIABLES_H
#define SPLIT_VARIABLES_H

#include "support/support.h"

enum { COUNT = 300 }; /* elements of a variable */

/* Returns on how many nodes the replicas of this host are if the strategy is one of make_on_two_nodes. */
uint32_t nodes_of(const ditto_strategy *s);

/* Creates a variable of COUNT elements of DITTO_F64, which are `start`. */
ditto_variable *make(ditto_strategy *s, double start, ditto_aggregation how, ditto_copies copies);

/* Returns the elements that a replica reads. */
const double *component(ditto_variable *v, uint32_t replica);

/* Returns how many copies the replicas of this host have. */
uint32_t count_copies(const ditto_strategy *s, ditto_variable *v);

/* Fails the test if the elements of replica r are not first + step * r, for each replica of this host. */
void expect_components(const ditto_strategy *s, ditto_variable *v, double first, double step);

/* Returns a value with a scalar for each replica of this host: first, first + 1, ... */
ditto_value *numbers_from(ditto_strategy *s, double first);

/* Returns a value with a scalar for each replica: 1, 2, 3, ... on all hosts together. */
ditto_value *ids_from_1(ditto_strategy *s);

/* The number of calls of add_argument. */
extern _Atomic uint32_t calls;

/* An update function that adds its argument, a scalar or an array, to the elements of the copy. */
ditto_status add_argument(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count, void *user,
                          ditto_tensor *result);

/* Updates the variable outside of a run with add_argument. It sets `calls` to 0 before. */
ditto_status update_with(ditto_variable *v, const ditto_value *argument);

/* Adds r + 1 to the component of replica r, so that all components differ. */
void split(ditto_strategy *s, ditto_variable *v);

/* Adds first, first + 1, ... to the components of the replicas of this host. */
void split_from(ditto_strategy *s, ditto_variable *v, double first);

#endif
