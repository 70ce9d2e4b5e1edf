/* src/vars/variables/copies.h - which physical copies a variable has, and where they lie. */
#ifndef DTI_COPIES_H
#define DTI_COPIES_H

#include "vars/vars.h"

#include <ditto/variable.h>

struct dti_optimizer_slot_piece {
    size_t first, count;
    uint32_t replica;
    uint32_t variable; /* of those that stand in a row; not looked at here */
};
/* A variable of zeros whose pieces lie with given replicas. name NULL: hidden. Errors: as dti_variable_create. */
ditto_status dti_optimizer_slot_create(const struct dti_strategy_base *base, const char *name,
                                       const ditto_tensor *spec, const struct dti_optimizer_slot_piece *piece,
                                       size_t pieces, ditto_variable **out);

/* Which copies there will be; nothing lies anywhere yet. NO_MEMORY. */
ditto_status dti_copies_plan(ditto_variable *v, const ditto_variable *like);
ditto_status dti_copies_plan_optimizer_slot(ditto_variable *v, const struct dti_optimizer_slot_piece *piece,
                                            size_t pieces);

/* -- Cross context, entered -- */
/* The nodes of shards: `dealt` shards of the strategy's variables have one already. */
void dti_copies_assign_nodes(ditto_variable *v, uint64_t shards_assigned);
/* Each copy on its owner's thread, with its part of `value`, or zeros. */
ditto_status dti_copies_allocate(ditto_variable *v, const void *value);
void dti_copies_free(ditto_variable *v);   /* any thread, the team alive and not poisoned */
void dti_copies_forget(ditto_variable *v); /* the plan itself */

/* How the rows of a variable are cut into shards. Pure. */

/* RANGE: an unknown kind. INVALID: a number that must not be 0. */
ditto_status dti_partitioner_check(const ditto_partitioner *partitioner);
/* Shards of a variable of `rows` rows of row_bytes each; at least 1, and no more than there are rows. */
size_t dti_partition_shards(const ditto_partitioner *partitioner, size_t rows, size_t row_bytes);
/* The first row of shard i of k: the first rows mod k have one more. i = k: rows. */
size_t dti_partition_row(size_t rows, size_t k, size_t i);

#endif
