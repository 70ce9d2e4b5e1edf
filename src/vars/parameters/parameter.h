/* src/vars/parameters/parameter.h - parameters: variables of a parameter server strategy. Workers that do not
 * wait for each other read and write them at any time.
 *
 * A parameter exists once. Each of its pieces (shards) has a lock and a version. A thread that reads or
 * writes elements of a shard has its lock, so that the elements it reads belong to one version, and no update
 * is lost or applied in part. Of a variable with DITTO_CONCURRENCY_HOGWILD the same calls take no lock, and
 * of one with FREE_READS some reads take none. Such calls, and those that they may meet, access the elements
 * by relaxed atomic accesses (shared_elements.c). The shards of these variables are contiguous, so calls
 * without locks find a row without its shard, and functions may access all rows by one address (in_place). A
 * thread has at most one of these locks at a time, and inside it calls nothing that waits, except the
 * function of an optimizer's own rule. Therefore locks cannot wait for each other in a circle. Such a
 * function may never return, so waiting for a lock has a limit. Optimizers' slots of a parameter have the
 * same pieces, and are guarded by the locks of the parameter.
 *
 * The version of a shard is the number of its updates. With a lock, the holder counts it. Without locks, each
 * writer counts its own updates, so that writers share no cache line, and a thread that reads the version
 * adds them up. A restore sets a number to which the counts are added.
 *
 * Edges       V0 -> V1  An update of a shard writes its elements, and then counts the version (V0). A thread
 *             that reads the version (V1) and then the elements, with or without the lock, sees these or
 *             later ones. It reads the number of the last restore first, and then the counts. If it sees that
 *             number, it sees counts that are no smaller than those that the restore has subtracted, so the
 *             version is at least the restored one.
 * Model       tests/model/parameters.pml */
#ifndef DTI_PARAMETER_H
#define DTI_PARAMETER_H

#include <ditto/slices.h>

#include "base/waiting/lock.h"
#include "replicas/team/team.h"
#include "vars/vars.h"

struct dti_parameter_shard {
    alignas(DTI_CACHE_LINE_PAIR) struct dti_lock lock;

    /* The number of updates. It is written under the lock, and may be read without it. In a HOGWILD parameter
     * it is what is added to the counts, modulo 2^64, and only a restore, which has the turn, writes it. */
    _Atomic uint64_t version;
};

/* What a writer of a HOGWILD parameter has counted. The writers are the replicas of all workers, and the
 * thread that has the turn. Only the writer's thread writes it, and for a replica the thread of its worker
 * after the end of the function. */
struct dti_shard_counts {
    /* The next parameter in the list of dti_replica.in_place, if this one is in it (is_in_place). */
    alignas(DTI_CACHE_LINE_PAIR) ditto_variable *next_in_place;
    bool is_in_place;

    uint64_t calls; /* the number of calls that have written rows */
    struct {
        _Atomic uint64_t updates;
        uint64_t last_call; /* the number of the last call that has counted an update here */
    } shard[];              /* [pieces] */
};

/* Allocates the shards of a variable whose pieces are known. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_parameter_make_shards(ditto_variable *v);
void dti_parameter_free_shards(ditto_variable *v);

/* Records the error of a lock that another thread has had for too long. */
ditto_status dti_shard_fail_locked(const ditto_variable *v, uint32_t piece);

/* Stand around the accesses to a shard, except free reads. They take and release its lock, or do nothing
 * if the variable is HOGWILD. The first returns DITTO_ERR_TIMED_OUT if other threads have the lock for
 * timeout_ms of the strategy. */
static inline DITTO_NODISCARD ditto_status dti_shard_lock(const ditto_variable *v, uint32_t piece)
{
    if (v->concurrency == DITTO_CONCURRENCY_HOGWILD ||
        dti_lock_take(&v->shard[piece].lock, dti_team_options(v->team)->timeout_ms))
        return DITTO_OK;
    return dti_shard_fail_locked(v, piece);
}

static inline void dti_shard_unlock(const ditto_variable *v, uint32_t piece)
{
    if (v->concurrency != DITTO_CONCURRENCY_HOGWILD)
        dti_lock_release(&v->shard[piece].lock);
}

/* Returns what entry `writer` of a HOGWILD parameter's counts has. */
static inline struct dti_shard_counts *dti_shard_counts_at(const ditto_variable *v, uint32_t writer)
{
    return (struct dti_shard_counts *)(void *)((char *)v->counts + writer * v->counts_bytes);
}

/* Returns the counts of a replica of a worker, or of the thread that has the turn if `writer` is NULL. */
struct dti_shard_counts *dti_shard_counts_of(const ditto_variable *v, const struct dti_replica *writer);

/* Returns the updates that all writers of a HOGWILD parameter have counted. */
static inline uint64_t dti_shard_counted(const ditto_variable *v, uint32_t piece)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < v->num_writers; i++)
        /* acquire: V1, pairs with the release in dti_shard_count. */
        sum += atomic_load_explicit(&dti_shard_counts_at(v, i)->shard[piece].updates, memory_order_acquire);
    return sum;
}

static inline uint64_t dti_shard_version(const ditto_variable *v, uint32_t piece)
{
    /* acquire: V1, pairs with the releases in dti_shard_count and dti_shard_set_version. A thread that sees a
     * version and then reads, with or without the lock, sees the elements of this version or later ones. */
    uint64_t version = atomic_load_explicit(&v->shard[piece].version, memory_order_acquire);
    return v->counts != NULL ? version + dti_shard_counted(v, piece) : version;
}

static inline void dti_shard_count(_Atomic uint64_t *updates)
{
    /* release: V0, pairs with the acquire of a thread that reads the version. The load is relaxed, because
     * the number has one writer at a time, which the lock or the turn orders. */
    atomic_store_explicit(updates, atomic_load_explicit(updates, memory_order_relaxed) + 1,
                          memory_order_release);
}

/* Counts an update of a shard. The caller has its lock, or the variable is HOGWILD. `writer` is the replica,
 * or NULL in a cross call. */
static inline void dti_shard_updated(const ditto_variable *v, uint32_t piece,
                                     const struct dti_replica *writer)
{
    dti_shard_count(v->counts != NULL ? &dti_shard_counts_of(v, writer)->shard[piece].updates
                                      : &v->shard[piece].version);
}

/* Sets the version of a shard. The caller is in a cross call, and has the lock. Updates that are counted
 * meanwhile come in addition. */
static inline void dti_shard_set_version(const ditto_variable *v, uint32_t piece, uint64_t version)
{
    if (v->counts != NULL)
        version -= dti_shard_counted(v, piece);
    /* release: as in dti_shard_count. It also publishes which counts this thread has seen. */
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

/* -- shared_elements.c: accesses to elements of a shard, between dti_shard_lock and dti_shard_unlock -- */

/* Returns the bytes of one access without a lock: 8, or fewer if the bytes of a row are no multiple of 8. */
uint32_t dti_shard_access_bytes(const ditto_variable *v);

/* Copies elements of a shard to dst. has_lock is false if the variable is HOGWILD, or in a free read, which
 * happens outside of dti_shard_lock. */
void dti_shard_copy(const ditto_variable *v, void *dst, const char *elements, size_t bytes, bool has_lock);

/* Computes elements [first, first + count) of a change: `new` from `old`, which may be the same memory. */
typedef void dti_shard_compute(const void *context, size_t first, size_t count, const void *old, void *new);

/* Changes `count` elements of a shard. The first of them lies at a multiple of access_bytes. If threads may
 * read or write without a lock, the elements are changed tile by tile. If they may write, the change of a
 * tile may be lost if another thread changes the same elements meanwhile. */
void dti_shard_change(const ditto_variable *v, char *elements, size_t count, dti_shard_compute *compute,
                      const void *context);
#define DTI_SHARD_TILE_BYTES 1024

/* Changes elements of a shard by a rule, in the same way. */
void dti_shard_apply(const ditto_variable *v, enum dti_rule rule, char *elements, const void *value,
                     size_t count);

/* How a parameter is read. */
struct dti_reading {
    bool is_free;       /* without locks, although the variable may have some */
    uint64_t *versions; /* [pieces] for the version of each shard, or NULL */
};

/* Stand around the copies from one shard. The first returns DITTO_ERR_TIMED_OUT. */
DITTO_NODISCARD ditto_status dti_reading_begin(const struct dti_reading *reading, const ditto_variable *v,
                                               uint32_t piece);
void dti_reading_end(const struct dti_reading *reading, const ditto_variable *v, uint32_t piece);

/* -- one shard. The functions that return a status return that of dti_shard_lock, here and below -- */

static inline char *dti_shard_elements(const ditto_variable *v, uint32_t piece)
{
    return v->copies_of_piece[piece].copy[0].data;
}
static inline size_t dti_shard_bytes(const ditto_variable *v, uint32_t piece)
{
    return v->piece[piece].count * ditto_dtype_bytes(v->spec.dtype);
}

/* Returns where the elements of a shard begin in a whole value of the variable. */
static inline char *dti_shard_in(const ditto_variable *v, uint32_t piece, const void *value)
{
    return (char *)(uintptr_t)value + v->piece[piece].first * ditto_dtype_bytes(v->spec.dtype);
}

/* Copies its elements to dst. */
DITTO_NODISCARD ditto_status dti_shard_read(const ditto_variable *v, uint32_t piece, void *dst,
                                            const struct dti_reading *reading);

/* -- all shards. Any thread that holds the variable -- */

/* Copies the elements of a parameter to dst, shard by shard, each between two updates if the reading is not
 * free. */
DITTO_NODISCARD ditto_status dti_parameter_read(const ditto_variable *v, void *dst,
                                                const struct dti_reading *reading);

/* Adds up the versions of all shards. */
uint64_t dti_parameter_sum_of_versions(const ditto_variable *v);

/* Lets the present function of the replica change the elements of a HOGWILD parameter at this address. When
 * the function has ended, this counts as an update of each shard (dti_parameters_end_function). */
char *dti_parameter_in_place(struct dti_replica *self, ditto_variable *v);

/* Copies a restored value to a parameter, or to a slot of one. Workers may use it meanwhile. A parameter gets
 * the versions, as dti_restored_version says, or counts an update if there are none. A slot changes no
 * version. */
DITTO_NODISCARD ditto_status dti_parameter_fill(ditto_variable *v, const void *value,
                                                const uint64_t *versions, size_t count);

/* -- parameter_rows.c: rows of a parameter, whose indices have been checked. A row number that the caller
 * changes meanwhile cannot lead outside of the parameter. Return NO_MEMORY and TIMED_OUT. Any thread that
 * holds the variable. -- */

/* Changes rows by the rule, in the order of the slices, with locks one shard after the other. `writer` is the
 * replica, or NULL in a cross call. */
ditto_status dti_parameter_scatter(const ditto_variable *v, const struct dti_replica *writer,
                                   enum dti_rule rule, const ditto_slices *slices);
/* Copies row indices[k] to rows[k], one shard after the other. Versions of shards without rows stay. */
ditto_status dti_parameter_lookup(const ditto_variable *v, const int64_t *indices, size_t count, void *rows,
                                  const struct dti_reading *reading);

#endif
