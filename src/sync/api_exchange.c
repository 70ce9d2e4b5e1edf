/* src/sync/api_exchange.c - the public function of include/ditto/exchange.h. */
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
        return DTI_FAIL(DITTO_ERR_RANGE, "replica %u does not exist: replicas are 0 to %u", part->replica,
                        r->all_replicas - 1);
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
                                "parts %zu and %zu are both for replica %u and tag %u: give each its own tag",
                                k, i, parts[i].replica, parts[i].tag);
    }
    return dti_check_exchange(r, parts, count);
}

/* Returns a hash of everything that check_parts reads. */
static uint64_t identity_of(const ditto_exchange_part *parts, size_t count)
{
    uint64_t hash = dti_hash_word(count, 1);
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

ditto_status ditto_exchange(ditto_replica *self, const ditto_exchange_part *parts, size_t num_parts,
                            const ditto_reduce_options *options)
{
    struct dti_arguments a;
    DTI_ENTER_QUICKLY();
    DTI_TRY(dti_arguments_begin(&a, self, "ditto_exchange", DTI_PATTERN_NOTHING, options, 0));
    if (num_parts != 0)
        DTI_TRY(dti_not_null(parts, "parts"));
    struct dti_checked_exchanges *checked = &a.replica->sync->state[a.replica->index].checked_exchanges;
    uint64_t identity = identity_of(parts, num_parts);
    bool is_checked = false;
    for (int i = 0; i < DTI_CHECKED_EXCHANGES; i++)
        is_checked |= checked->identity[i] == identity;
    if (!is_checked) {
        DTI_TRY(check_parts(a.replica, parts, num_parts));
        checked->identity[checked->next++ % DTI_CHECKED_EXCHANGES] = identity;
    }
    struct dti_exchange_list list = { parts, num_parts };
    return dti_exchange_parts(a.replica, &a.call, &list, &a.deadline);
}
