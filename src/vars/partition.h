/* src/vars/partition.h - how the rows of a variable are cut into shards. Pure. */
#ifndef DTI_PARTITION_H
#define DTI_PARTITION_H

#include <ditto/variable.h>

/* RANGE: an unknown kind. INVALID: a number that must not be 0. */
ditto_status dti_partitioner_check(const ditto_partitioner *partitioner);
/* Shards of a variable of `rows` rows of row_bytes each; at least 1, and no more than there are rows. */
size_t dti_partition_shards(const ditto_partitioner *partitioner, size_t rows, size_t row_bytes);
/* The first row of shard i of k: the first rows mod k have one more. i = k: rows. */
size_t dti_partition_row(size_t rows, size_t k, size_t i);

#endif
