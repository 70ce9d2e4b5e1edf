/* src/sync/api_exchange.c - the public function of include/ditto/exchange.h, and collectives that move parts
 * of different sizes. */
#include "base/numbers/checksum.h"
#include "sync/algorithms/neighbours.h"
#include "sync/call_arguments.h"
#include "sync/meeting/sync_state.h"
#include "sync/overlap.h"
#include "sync/sync.h"

static ditto_status check_part(const struct dti_replica *r, const ditto_exchange_part *part)
{
    size_t src_bytes, dst_bytes;
    if (part->replica >= r->all_replicas)
        return DTI_FAIL(DITTO_ERR_RANGE, "%s %u does not exist: they are 0 to %u",
                        r == r->of_team ? "replica" : "rank", part->replica, r->all_replicas - 1);
    if (!dti_dtype_valid(part->dtype))
        return DTI_FAIL(DITTO_ERR_INVALID, "%d is not a dtype: use one of DITTO_DTYPE_LIST",
                        (int)part->dtype);
    DTI_TRY(dti_buffer_bytes(part->src_count, part->dtype, &src_bytes));
    DTI_TRY(dti_buffer_bytes(part->dst_count, part->dtype, &dst_bytes));
    DTI_TRY(dti_buffer_check(part->src, src_bytes, part->dtype, "src"));
    return dti_buffer_check(part->dst, dst_bytes, part->dtype, "dst");
}

static ditto_status check_parts(struct dti_replica *r, const ditto_exchange_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        DTI_TRY_OF(check_part(r, &parts[i]), "part %zu of %zu", i, count);
        for (size_t k = 0; k < i; k++)
            if (parts[k].replica == parts[i].replica && parts[k].tag == parts[i].tag)
                return DTI_FAIL(DITTO_ERR_INVALID,
                                "parts %zu and %zu are both for %s %u and tag %u: give each its own tag", k,
                                i, r == r->of_team ? "replica" : "rank", parts[i].replica, parts[i].tag);
    }
    return DITTO_OK;
}

/* Returns a hash of everything that is checked. */
static uint64_t identity_of(const ditto_exchange_part *parts, size_t count, bool may_be_in_place)
{
    uint64_t hash = dti_hash_word(count, may_be_in_place ? 2 : 1);
    for (size_t i = 0; i < count; i++) {
        const ditto_exchange_part *p = &parts[i];
        hash = dti_hash_word(hash, (uint64_t)p->replica << 32 | p->tag);
        hash = dti_hash_word(hash, (uint64_t)(uintptr_t)p->src);
        hash = dti_hash_word(hash, (uint64_t)(uintptr_t)p->dst);
        hash = dti_hash_word(hash, p->src_count);
        hash = dti_hash_word(hash, p->dst_count);
        hash = dti_hash_word(hash, (unsigned)p->dtype);
    }
    return hash;
}

/* Checks parts, unless equal ones have been checked. Those of a call that moves parts are each in order. */
static ditto_status check_once(struct dti_replica *r, const ditto_exchange_part *parts, size_t count,
                               bool moves_parts)
{
    struct dti_checked_exchanges *checked = &r->sync->state[r->index].checked_exchanges;
    uint64_t identity = identity_of(parts, count, moves_parts);
    for (int i = 0; i < DTI_CHECKED_EXCHANGES; i++)
        if (checked->identity[i] == identity)
            return DITTO_OK;
    if (!moves_parts)
        DTI_TRY(check_parts(r, parts, count));
    DTI_TRY(dti_check_exchange(r, parts, count, moves_parts));
    checked->identity[checked->next++ % DTI_CHECKED_EXCHANGES] = identity;
    return DITTO_OK;
}

ditto_status ditto_exchange(ditto_replica *self, const ditto_exchange_part *parts, size_t num_parts,
                            const ditto_reduce_options *options)
{
    struct dti_arguments a;
    DTI_ENTER_QUICKLY();
    DTI_TRY(dti_arguments_begin(&a, self, "ditto_exchange", DTI_PATTERN_NOTHING, options, 0));
    if (num_parts != 0)
        DTI_TRY(dti_not_null(parts, "parts"));
    DTI_TRY(check_once(a.replica, parts, num_parts, false));
    struct dti_exchange_list list = { parts, num_parts, NULL };
    return dti_exchange_parts(a.replica, &a.call, &list, &a.deadline);
}

ditto_status dti_move_uneven_parts(struct dti_arguments *a, const void *src, void *dst,
                                   const ditto_all_to_all_parts *sizes, ditto_dtype dtype)
{
    ditto_exchange_part parts[DITTO_MAX_REPLICAS];
    struct dti_exchange_list list = { .part = parts, .name = a->call.name };
    ditto_all_to_all_parts of = *sizes;
    bool has_root = a->call.root != DTI_NO_ROOT;
    if (of.src_counts == NULL || of.dst_counts == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "%s",
                        has_root ? "counts is NULL, but offsets is not: give both, or offsets = NULL"
                                 : "src_counts or dst_counts of parts is NULL: give both, or parts = NULL");
    if (!dti_dtype_valid(dtype))
        return DTI_FAIL(DITTO_ERR_INVALID, "%d is not a dtype: use one of DITTO_DTYPE_LIST", (int)dtype);
    a->call.dtype = (uint8_t)dtype;
    a->call.element_bytes = ditto_dtype_bytes(dtype);
    if (has_root) {
        DTI_TRY(dti_arguments_counts(a, of.src_counts));
    } else {
        a->call.whole = a->replica->all_replicas;
        a->call.hash = dti_hash_word(a->call.hash, a->call.whole);
    }
    if (has_root && a->call.root != a->replica->rank)
        of.src_offsets = of.dst_offsets = NULL;
    a->call.src = src;
    a->call.dst = dst;
    DTI_TRY(dti_exchange_list_parts(a->replica, &a->call, &of, parts, &list.parts));
    DTI_TRY(check_once(a->replica, parts, list.parts, true));
    /* They belong to parts, of which several may be empty. */
    a->call.src = a->call.dst = NULL;
    return dti_exchange_parts(a->replica, &a->call, &list, &a->deadline);
}
