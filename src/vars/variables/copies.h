/* src/vars/variables/copies.h - the physical copies of a variable and the NUMA nodes that they lie on. */
#ifndef DTI_COPIES_H
#define DTI_COPIES_H

#include <ditto/variable.h>

struct dti_replica;
struct dti_team;

/* A range of elements of an optimizer's slot. */
struct dti_optimizer_slot_piece {
    size_t first, count;
    uint32_t replica;  /* the replica in whose arena it lies */
    uint32_t variable; /* an index that only the optimizer uses */
};

/* Creates a variable whose pieces lie with the given replicas. Its elements are zeros, or the value that was
 * restored under its name before. If name is NULL, the variable is hidden. `guard` is the variable that the
 * slot belongs to, or NULL: if it is a parameter, its locks guard the slot too. The errors are those of
 * dti_variable_create. */
ditto_status dti_optimizer_slot_create(struct dti_team *team, const ditto_variable *guard, const char *name,
                                       const ditto_tensor *spec, const struct dti_optimizer_slot_piece *piece,
                                       size_t pieces, ditto_variable **out);

/* Determines the copies that the variable will have, without allocating them. If `like` is not NULL, the
 * variable gets the same copies as that variable. Returns DITTO_ERR_NO_MEMORY, or DITTO_ERR_RANGE if there
 * are too many shards. */
ditto_status dti_copies_plan(ditto_variable *v, const ditto_variable *like);

/* Determines the copies of an optimizer's slot, one for each of the given pieces. Returns
 * DITTO_ERR_NO_MEMORY. */
ditto_status dti_copies_plan_optimizer_slot(ditto_variable *v, const struct dti_optimizer_slot_piece *piece,
                                            size_t pieces);

/* -- Cross context, between dti_cross_enter and dti_cross_leave -- */

/* Assigns a node to each shard. shards_assigned is the number of shards of the strategy's earlier
 * variables. */
void dti_copies_assign_nodes(ditto_variable *v, uint64_t shards_assigned);

/* Fills in a slice, whose elements begin at `data`, on the thread of a replica that has it. */
typedef ditto_status dti_slice_filler(struct dti_replica *r, const ditto_variable *v, uint32_t slice,
                                      void *data, const void *user);

/* Allocates each copy on its owner's thread, and fills it with its part of `value`, or with zeros if `value`
 * is NULL, or by the function. */
ditto_status dti_copies_allocate(ditto_variable *v, const void *value, dti_slice_filler *fills,
                                 const void *user);

/* Frees the memory of the copies. Any thread may call it while the team exists and is not poisoned. */
void dti_copies_free(ditto_variable *v);

/* Frees the arrays that a plan has allocated, and memory that is in no arena. Any thread may call it. */
void dti_copies_forget(ditto_variable *v);

/* -- Pure functions: how the rows of a variable are cut into shards -- */

/* Returns DITTO_ERR_RANGE if the kind is unknown, and DITTO_ERR_INVALID if a number is 0 that must not be
 * 0. */
ditto_status dti_partitioner_check(const ditto_partitioner *partitioner);

/* Returns the number of shards of a variable of `rows` rows of row_bytes each. It is at least 1. It is at
 * most `rows`, unless that is 0. */
size_t dti_partition_shards(const ditto_partitioner *partitioner, size_t rows, size_t row_bytes);

/* Returns the first row of shard i of k shards. The first (rows mod k) shards have one more row than the
 * others. For i = k it returns `rows`. */
size_t dti_partition_row(size_t rows, size_t k, size_t i);

#endif
