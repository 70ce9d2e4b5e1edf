/* src/vars/parameters/shared_elements.c - the only places where the elements of a parameter's shard are read
 * and written; see parameter.h.
 *
 * Elements that threads access without a lock are copied to a tile, computed there by the same kernels as
 * others, and copied back. If only reads have no lock (FREE_READS), the writer reads them in place. Each
 * access of such a copy has 1, 2, 4 or 8 bytes, is aligned to them, and is a relaxed atomic access: an
 * element lies in one access, so it is never torn. The size is the same for all accesses to one address,
 * because it is a property of the variable (v->access_bytes). It divides the bytes of a row, so an access to
 * one row never touches another one. The accesses are relaxed, because nothing else is published by an
 * element. Versions are counted with release (dti_shard_updated). */
#include "vars/parameters/parameter.h"

#include <string.h>

/* The elements have the type of the variable's dtype elsewhere, so these types may alias. */
typedef uint8_t __attribute__((may_alias)) access_1;
typedef uint16_t __attribute__((may_alias)) access_2;
typedef uint32_t __attribute__((may_alias)) access_4;
typedef uint64_t __attribute__((may_alias)) access_8;

#define COPY_BY(type)                                                                                  \
    static void load_##type(char *dst, const char *elements, size_t bytes)                             \
    {                                                                                                  \
        for (size_t i = 0; i < bytes; i += sizeof(type)) {                                             \
            type bits = __atomic_load_n((const type *)(const void *)(elements + i), __ATOMIC_RELAXED); \
            memcpy(dst + i, &bits, sizeof bits);                                                       \
        }                                                                                              \
    }                                                                                                  \
    static void store_##type(char *elements, const char *src, size_t bytes)                            \
    {                                                                                                  \
        for (size_t i = 0; i < bytes; i += sizeof(type)) {                                             \
            type bits;                                                                                 \
            memcpy(&bits, src + i, sizeof bits);                                                       \
            __atomic_store_n((type *)(void *)(elements + i), bits, __ATOMIC_RELAXED);                  \
        }                                                                                              \
    }
COPY_BY(access_1)
COPY_BY(access_2)
COPY_BY(access_4)
COPY_BY(access_8)

static void load(const ditto_variable *v, void *dst, const char *elements, size_t bytes)
{
    switch (v->access_bytes) {
    case 1:
        load_access_1(dst, elements, bytes);
        break;
    case 2:
        load_access_2(dst, elements, bytes);
        break;
    case 4:
        load_access_4(dst, elements, bytes);
        break;
    default:
        load_access_8(dst, elements, bytes);
    }
}

static void store(const ditto_variable *v, char *elements, const void *src, size_t bytes)
{
    switch (v->access_bytes) {
    case 1:
        store_access_1(elements, src, bytes);
        break;
    case 2:
        store_access_2(elements, src, bytes);
        break;
    case 4:
        store_access_4(elements, src, bytes);
        break;
    default:
        store_access_8(elements, src, bytes);
    }
}

uint32_t dti_shard_access_bytes(const ditto_variable *v)
{
    size_t row_bytes = v->spec.rank > 0 && v->spec.shape[0] != 0 ? v->bytes / v->spec.shape[0] : v->bytes;
    uint32_t bytes = 8;
    while (row_bytes % bytes != 0)
        bytes /= 2;
    return bytes;
}

void dti_shard_copy(const ditto_variable *v, void *dst, const char *elements, size_t bytes, bool has_lock)
{
    if (!has_lock || v->concurrency == DITTO_CONCURRENCY_HOGWILD)
        load(v, dst, elements, bytes);
    else if (bytes != 0)
        memcpy(dst, elements, bytes);
}

void dti_shard_change(const ditto_variable *v, char *elements, size_t count, dti_shard_compute *compute,
                      const void *context)
{
    alignas(DTI_CACHE_LINE) char tile[DTI_SHARD_TILE_BYTES];
    size_t element_bytes = ditto_dtype_bytes(v->spec.dtype), most = sizeof tile / element_bytes;
    bool others_write = v->concurrency == DITTO_CONCURRENCY_HOGWILD;
    if (v->concurrency == DITTO_CONCURRENCY_LOCKED) {
        compute(context, 0, count, elements, elements);
        return;
    }
    for (size_t at = 0, part; at < count; at += part) {
        char *changed = elements + at * element_bytes;
        part = count - at < most ? count - at : most;
        if (others_write)
            load(v, tile, changed, part * element_bytes);
        /* With FREE_READS only this thread writes, so it may read the elements in place. */
        compute(context, at, part, others_write ? tile : changed, tile);
        store(v, changed, tile, part * element_bytes);
    }
}

struct by_rule {
    enum dti_rule rule;
    ditto_dtype dtype;
    const char *value;
};

static void compute_by_rule(const void *context, size_t first, size_t count, const void *old, void *new)
{
    const struct by_rule *r = context;
    dti_rule_apply(r->rule, r->dtype, new, old, r->value + first * ditto_dtype_bytes(r->dtype), count);
}

/* -- sums, word by word -- */

/* ADD and SUB of f32 and f64, which most pushes are, are computed in registers. Through a tile, wide loads
 * would follow narrow stores, which the processor cannot forward: pushes took a third longer. */
static void add_f32(char *elements, const char *value, size_t bytes, float sign)
{
    for (size_t i = 0; i < bytes; i += sizeof(access_8)) {
        access_8 *word = (access_8 *)(void *)(elements + i);
        access_8 bits = __atomic_load_n(word, __ATOMIC_RELAXED);
        float sum[2], added[2];
        memcpy(sum, &bits, sizeof sum);
        memcpy(added, value + i, sizeof added);
        sum[0] += sign * added[0];
        sum[1] += sign * added[1];
        memcpy(&bits, sum, sizeof bits);
        __atomic_store_n(word, bits, __ATOMIC_RELAXED);
    }
}

static void add_f64(char *elements, const char *value, size_t bytes, double sign)
{
    for (size_t i = 0; i < bytes; i += sizeof(access_8)) {
        access_8 *word = (access_8 *)(void *)(elements + i);
        access_8 bits = __atomic_load_n(word, __ATOMIC_RELAXED);
        double sum, added;
        memcpy(&sum, &bits, sizeof sum);
        memcpy(&added, value + i, sizeof added);
        sum += sign * added;
        memcpy(&bits, &sum, sizeof bits);
        __atomic_store_n(word, bits, __ATOMIC_RELAXED);
    }
}

/* Returns false if the sum must be computed in a tile. */
static bool add_in_words(const ditto_variable *v, enum dti_rule rule, char *elements, const void *value,
                         size_t count)
{
    double sign = rule == DTI_RULE_SUB ? -1 : 1;
    if (v->concurrency != DITTO_CONCURRENCY_HOGWILD || v->access_bytes != sizeof(access_8) ||
        (rule != DTI_RULE_ADD && rule != DTI_RULE_SUB))
        return false;
    if (v->spec.dtype == DITTO_F32)
        add_f32(elements, value, count * sizeof(float), (float)sign);
    else if (v->spec.dtype == DITTO_F64)
        add_f64(elements, value, count * sizeof(double), sign);
    else
        return false;
    return true;
}

void dti_shard_apply(const ditto_variable *v, enum dti_rule rule, char *elements, const void *value,
                     size_t count)
{
    struct by_rule r = { rule, v->spec.dtype, value };
    if (v->concurrency == DITTO_CONCURRENCY_LOCKED) /* as dti_shard_change would, without the indirect call */
        dti_rule_apply(rule, v->spec.dtype, elements, elements, value, count);
    else if (!add_in_words(v, rule, elements, value, count))
        dti_shard_change(v, elements, count, compute_by_rule, &r);
}
