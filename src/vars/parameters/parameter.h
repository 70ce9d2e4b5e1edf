/* src/vars/parameters/parameter.h - parameters: variables of a parameter server strategy. Workers that do not
 * wait for each other read and write them at any time.
 *
 * A parameter exists once. Each of its pieces (shards) has a lock and a version. A thread that reads or
 * writes elements of a shard has its lock, so that the elements it reads belong to one version, and no update
 * is lost or applied in part. A thread has at most one of these locks at a time, and inside it calls nothing
 * that waits, except the function of an optimizer's own rule. Therefore locks cannot wait for each other in a
 * circle. Optimizers' slots of a parameter have the same pieces, and are guarded by the locks of the
 * parameter. */
#ifndef DTI_PARAMETER_H
#define DTI_PARAMETER_H

#include <ditto/slices.h>

#include "vars/vars.h"

#include <pthread.h>

struct dti_parameter_shard {
    alignas(DTI_CACHE_LINE_PAIR) pthread_mutex_t lock;

    /* The number of updates. It is written under the lock, and may be read without it. */
    _Atomic uint64_t version;
};

/* Allocates the shards of a variable whose pieces are known. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_parameter_make_shards(ditto_variable *v);
void dti_parameter_free_shards(ditto_variable *v);

static inline void dti_shard_lock(const ditto_variable *v, uint32_t piece)
{
    pthread_mutex_lock(&v->shard[piece].lock);
}

static inline void dti_shard_unlock(const ditto_variable *v, uint32_t piece)
{
    pthread_mutex_unlock(&v->shard[piece].lock);
}

static inline uint64_t dti_shard_version(const ditto_variable *v, uint32_t piece)
{
    /* acquire: pairs with the release in dti_shard_updated. A thread that sees a version and then takes the
     * lock sees the elements of this version or of a later one. */
    return atomic_load_explicit(&v->shard[piece].version, memory_order_acquire);
}

/* Counts an update of a shard. The caller has its lock. */
static inline void dti_shard_updated(const ditto_variable *v, uint32_t piece)
{
    /* release: as in dti_shard_version. The load is relaxed, because the lock orders the writers. */
    _Atomic uint64_t *version = &v->shard[piece].version;
    atomic_store_explicit(version, atomic_load_explicit(version, memory_order_relaxed) + 1,
                          memory_order_release);
}

/* Sets the version of a shard. The caller has its lock. */
static inline void dti_shard_set_version(const ditto_variable *v, uint32_t piece, uint64_t version)
{
    /* release: as in dti_shard_updated. */
    atomic_store_explicit(&v->shard[piece].version, version, memory_order_release);
}

/* Returns the version of a shard after a restore of `count` versions: its own, or the largest one if the
 * parameter now has another number of shards. */
static inline uint64_t dti_restored_version(const uint64_t *versions, size_t count, uint32_t pieces,
                                            uint32_t piece)
{
    uint64_t largest = 0;
    if (count == pieces)
        return versions[piece];
    for (size_t i = 0; i < count; i++)
        largest = versions[i] > largest ? versions[i] : largest;
    return largest;
}

/* Copies the elements of a parameter to dst, shard by shard, each between two updates. If versions is not
 * NULL, stores the version of each shard. Any thread that holds the variable. */
void dti_parameter_read(const ditto_variable *v, void *dst, uint64_t *versions);

/* Changes the elements of a parameter by the rule, one shard after the other. Any thread that holds the
 * variable. */
void dti_parameter_write(const ditto_variable *v, enum dti_rule rule, const void *value);

/* Copies a value to a new parameter, or to a new slot of one, before others know it. A parameter gets the
 * versions, as dti_restored_version says, or counts an update if there are none. A new slot changes no
 * version. */
void dti_parameter_fill(const ditto_variable *v, const void *value, const uint64_t *versions, size_t count);

/* -- parameter_rows.c: rows of a parameter, whose indices have been checked. A row number that the caller
 * changes meanwhile cannot lead outside of the parameter. Return NO_MEMORY. Any thread that holds the
 * variable. -- */

/* Changes rows by the rule, in the order of the slices, one shard after the other. */
ditto_status dti_parameter_scatter(const ditto_variable *v, enum dti_rule rule, const ditto_slices *slices);
/* Copies row indices[k] to rows[k], one shard after the other. */
ditto_status dti_parameter_lookup(const ditto_variable *v, const int64_t *indices, size_t count, void *rows);

#endif
