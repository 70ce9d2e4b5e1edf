/* src/vars/variables/partition.c - how the rows of a variable are cut into shards; see copies.h. */
#include "base/errors/status.h"
#include "vars/variables/copies.h"

#define SHARD_BYTES ((size_t)256 << 10) /* the default of `bytes` for MIN_SIZE */

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t at_least(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t divided_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

ditto_status dti_partitioner_check(const ditto_partitioner *p)
{
    if ((unsigned)p->kind > DITTO_PARTITION_BY_REPLICA)
        return DTI_FAIL(DITTO_ERR_RANGE, "partitioner.kind = %d is not a value of its enum", (int)p->kind);
    if (p->kind == DITTO_PARTITION_FIXED && p->num_shards == 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "a partitioner with a fixed number of shards needs at least one shard");
    if (p->kind == DITTO_PARTITION_MAX_SIZE && p->bytes == 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "a partitioner with a largest size needs a size of at least one byte");
    return DITTO_OK;
}

size_t dti_partition_shards(const ditto_partitioner *p, size_t rows, size_t row_bytes)
{
    size_t shards = 1, most = p->num_shards != 0 ? p->num_shards : SIZE_MAX;
    switch (p->kind) {
    case DITTO_PARTITION_DEFAULT:
    case DITTO_PARTITION_BY_REPLICA: /* slices.c cuts it */
        break;
    case DITTO_PARTITION_FIXED:
        shards = p->num_shards;
        break;
    case DITTO_PARTITION_MIN_SIZE: /* the product is the variable's size, which does not overflow */
        shards = divided_up(rows * row_bytes, p->bytes != 0 ? p->bytes : SHARD_BYTES);
        most = p->num_shards != 0 ? p->num_shards : 1;
        break;
    case DITTO_PARTITION_MAX_SIZE:
        shards = divided_up(rows, at_least(1, row_bytes != 0 ? p->bytes / row_bytes : rows));
        break;
    }
    return at_least(1, at_most(shards, at_most(most, rows)));
}

size_t dti_partition_row(size_t rows, size_t k, size_t i)
{
    return rows / k * i + at_most(i, rows % k);
}
