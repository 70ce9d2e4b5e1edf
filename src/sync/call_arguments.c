/* src/sync/call_arguments.c - checks the arguments of collectives. */
#include "sync/call_arguments.h"
#include "base/numbers/checksum.h"
#include "sync/algorithms/flow.h"
#include "sync/grouping/grouping.h"
#include "sync/kernels/local_reduction.h"
#include "sync/meeting/sync_state.h"
#include "sync/overlap.h"
#include "sync/sync.h"

static ditto_status check_label(const char *label)
{
    if (label == NULL || strlen(label) <= DITTO_MAX_LABEL_BYTES)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_RANGE, "the label \"%s\" has %zu bytes: the most is %d", label, strlen(label),
                    DITTO_MAX_LABEL_BYTES);
}

/* Adds a label to the hash of a call. The seed makes the empty label differ from none. */
static uint64_t hash_label(uint64_t hash, const char *label)
{
    return label == NULL ? hash : dti_hash_words(hash ^ DTI_HASH_SEED, label, strlen(label));
}

static ditto_status read_options(struct dti_arguments *a, const ditto_reduce_options *options, uint32_t flags)
{
    const ditto_reduce_options *defaults = &a->replica->sync->defaults;
    a->options = *defaults;
    a->options.timeout_ms = a->replica->timeout_ms;
    if (options != NULL) {
        ditto_reduce_options known;
        DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_reduce_options"));
        DTI_TRY(dti_flags_check(known.flags, flags, "flags"));
        if ((unsigned)known.implementation > DITTO_IMPLEMENTATION_HIERARCHICAL)
            return DTI_FAIL(DITTO_ERR_RANGE, "implementation = %d is not a value of its enum",
                            (int)known.implementation);
        a->options.flags = known.flags;
        if (known.timeout_ms != 0)
            a->options.timeout_ms = known.timeout_ms;
        if (known.bytes_per_pack != 0)
            a->options.bytes_per_pack = known.bytes_per_pack;
        if (known.implementation != DITTO_IMPLEMENTATION_DEFAULT)
            a->options.implementation = known.implementation;
        a->options.group = known.group;
        if (known.group != NULL)
            DTI_TRY(dti_group_member(a->replica, known.group, a->call.name, &a->replica));
        DTI_TRY(check_label(known.label));
        a->call.label = known.label;
        a->call.hash = hash_label(a->call.hash, known.label);
    }
    a->deadline = dti_replica_deadline(a->replica, a->options.timeout_ms);
    a->call.implementation = (uint8_t)a->options.implementation;
    return DITTO_OK;
}

ditto_status dti_check_outside_function(const struct dti_replica *r, const char *name)
{
    const char *calling = dti_reported_state(r)->calling;
    if (calling == NULL)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_CONTEXT,
                    "%s was called inside the function that was given to %s: the other replicas wait for the "
                    "result of that function, so it must not call ditto",
                    name, calling);
}

ditto_status dti_arguments_begin(struct dti_arguments *a, ditto_replica *self, const char *name,
                                 enum dti_pattern pattern, const ditto_reduce_options *options,
                                 uint32_t flags)
{
    DTI_TRY(dti_self(self, &a->replica));
    DTI_TRY(dti_check_outside_function(a->replica, name));
    a->call = (struct dti_call){ .name = name, .root = DTI_NO_ROOT, .pattern = (uint8_t)pattern };
    return read_options(a, options, flags);
}

ditto_status dti_arguments_root(struct dti_arguments *a, uint32_t root)
{
    uint32_t n = a->replica->all_replicas;
    if (root >= n)
        return DTI_FAIL(DITTO_ERR_RANGE, "root = %u is not a %s: they are 0 to %u", root,
                        a->options.group != NULL ? "rank of the group" : "replica", n - 1);
    a->call.root = root;
    return DITTO_OK;
}

/* Checks each buffer by itself. */
static ditto_status check_buffers(const void *src, size_t src_count, const void *dst, size_t dst_count,
                                  ditto_dtype dtype)
{
    size_t src_bytes, dst_bytes;
    DTI_TRY(dti_buffer_bytes(src_count, dtype, &src_bytes));
    DTI_TRY(dti_buffer_bytes(dst_count, dtype, &dst_bytes));
    DTI_TRY(dti_buffer_check(src, src_bytes, dtype, "src"));
    return dti_buffer_check(dst, dst_bytes, dtype, "dst");
}

ditto_status dti_arguments_move(struct dti_arguments *a, const void *src, void *dst, size_t src_count,
                                size_t dst_count, ditto_dtype dtype)
{
    /* If the replicas have parts, add_parts sets the count, and the caller checks for overlap. */
    bool has_parts = dti_flow_shape(&a->call)->cuts_src || dti_flow_shape(&a->call)->cuts_dst;
    DTI_TRY(check_buffers(src, src_count, dst, dst_count, dtype));
    a->call.src = src;
    a->call.dst = dst;
    a->call.dtype = (uint8_t)dtype;
    a->call.element_bytes = ditto_dtype_bytes(dtype);
    if (has_parts)
        return DITTO_OK;
    a->call.count = src_count;
    return dti_check_overlap(dst, dst_count * a->call.element_bytes, src, src_count * a->call.element_bytes,
                             dst);
}

ditto_status dti_arguments_reduce(struct dti_arguments *a, const void *src, void *dst, size_t src_count,
                                  size_t dst_count, ditto_dtype dtype, ditto_op op)
{
    DTI_TRY(dti_reduction_check(dtype, op));
    a->call.op = (uint8_t)op;
    return dti_arguments_move(a, src, dst, src_count, dst_count, dtype);
}

/* -- a part for each replica -- */

/* Numbers of elements. */
struct parts {
    size_t whole;  /* of all replicas */
    size_t own;    /* of this replica */
    size_t before; /* of the replicas with lower ids */
};

static ditto_status add_parts(struct dti_arguments *a, size_t count, const size_t *counts, struct parts *out)
{
    uint32_t n = a->replica->all_replicas;
    a->call.count = count;
    a->call.counts = counts;
    *out = (struct parts){ .own = counts != NULL ? counts[a->replica->rank] : count };
    for (uint32_t i = 0; i < n; i++) {
        size_t part = counts != NULL ? counts[i] : count;
        out->before += i < a->replica->rank ? part : 0;
        if (__builtin_add_overflow(out->whole, part, &out->whole))
            return DTI_FAIL(DITTO_ERR_RANGE,
                            "the parts of %u replicas have more elements than a size_t can count", n);
        a->call.count = part > a->call.count ? part : a->call.count;
        if (counts != NULL)
            a->call.hash = dti_hash_word(a->call.hash, part);
    }
    return DITTO_OK;
}

ditto_status dti_arguments_scatter(struct dti_arguments *a, const void *src, void *dst, size_t count,
                                   const size_t *counts, ditto_dtype dtype, ditto_op op)
{
    struct parts p;
    DTI_TRY(add_parts(a, count, counts, &p));
    DTI_TRY(dti_arguments_reduce(a, src, dst, p.whole, p.own, dtype, op));
    return dti_check_overlap(src, p.whole * a->call.element_bytes, dst, p.own * a->call.element_bytes,
                             (const char *)src + p.before * a->call.element_bytes);
}

ditto_status dti_arguments_gather(struct dti_arguments *a, const void *src, void *dst, size_t count,
                                  const size_t *counts, ditto_dtype dtype)
{
    struct parts p;
    DTI_TRY(add_parts(a, count, counts, &p));
    DTI_TRY(dti_arguments_move(a, src, dst, p.own, p.whole, dtype));
    return dti_check_overlap(dst, p.whole * a->call.element_bytes, src, p.own * a->call.element_bytes,
                             (const char *)dst + p.before * a->call.element_bytes);
}

ditto_status dti_arguments_counts(struct dti_arguments *a, const size_t *counts)
{
    struct parts p;
    return add_parts(a, 0, counts, &p);
}

ditto_status dti_arguments_parts(struct dti_arguments *a, const void *src, void *dst, size_t count,
                                 ditto_dtype dtype)
{
    const struct dti_call *call = &a->call;
    const struct dti_flow_shape *shape = dti_flow_shape(call);
    bool is_root = call->root == a->replica->rank, gives = is_root || shape->from != DTI_END_ROOT,
         takes = is_root || shape->to != DTI_END_ROOT;
    struct parts p;
    DTI_TRY(add_parts(a, count, NULL, &p));
    size_t src_count = shape->cuts_src ? p.whole : p.own, dst_count = shape->cuts_dst ? p.whole : p.own;
    src_count = gives ? src_count : 0;
    dst_count = takes ? dst_count : 0;
    src = gives ? src : NULL;
    dst = takes ? dst : NULL;
    DTI_TRY(dti_arguments_move(a, src, dst, src_count, dst_count, dtype));
    size_t src_bytes = src_count * call->element_bytes, dst_bytes = dst_count * call->element_bytes,
           before = is_root ? p.before * call->element_bytes : 0;
    return shape->cuts_dst ? dti_check_overlap(dst, dst_bytes, src, src_bytes, (const char *)dst + before)
                           : dti_check_overlap(src, src_bytes, dst, dst_bytes, (const char *)src + before);
}

/* -- lists -- */

static ditto_status check_item(const ditto_list_item *item, ditto_op op)
{
    DTI_TRY(dti_reduction_check(item->dtype, op));
    DTI_TRY(check_label(item->label));
    DTI_TRY(check_buffers(item->src, item->count, item->dst, item->count, item->dtype));
    size_t bytes = item->count * ditto_dtype_bytes(item->dtype);
    return dti_check_overlap(item->dst, bytes, item->src, bytes, item->dst);
}

/* Checks all items. *hash gets a hash of what must be equal on all replicas. */
static ditto_status check_list(struct dti_replica *self, const ditto_list_item *list, size_t length,
                               ditto_op op, uint64_t *hash)
{
    size_t total = 0;
    *hash = length;
    for (size_t i = 0; i < length; i++) {
        DTI_TRY_OF(check_item(&list[i], op), "item %zu of %zu", i, length);
        if (__builtin_add_overflow(total, list[i].count * ditto_dtype_bytes(list[i].dtype), &total))
            return DTI_FAIL(DITTO_ERR_RANGE,
                            "item %zu of %zu: the list has more bytes than a size_t can count", i, length);
        *hash = dti_hash_word(*hash, list[i].count << 8 | (unsigned)list[i].dtype);
        *hash = hash_label(*hash, list[i].label);
    }
    return dti_check_list(self, list, length);
}

/* Returns a hash of everything that check_list reads. Two odd multipliers, so that addresses of which one is
 * a shifted copy of the other give different words. */
static uint64_t identity_of(const ditto_list_item *list, size_t length, ditto_op op)
{
    uint64_t hash = dti_hash_word(length, (uint64_t)op);
    for (size_t i = 0; i < length; i++) {
        hash = dti_hash_word(hash, (uint64_t)(uintptr_t)list[i].src +
                                       (uint64_t)(uintptr_t)list[i].dst * 0xff51afd7ed558ccdu +
                                       (list[i].count << 8 | (unsigned)list[i].dtype) * 0xc4ceb9fe1a85ec53u);
        hash = hash_label(hash, list[i].label); /* the text, which may change while its address does not */
    }
    return hash;
}

ditto_status dti_arguments_list(struct dti_arguments *a, const ditto_list_item *list, size_t length,
                                ditto_op op)
{
    struct dti_checked_list *checked = &a->replica->sync->state[a->replica->index].checked_list;
    if (length != 0)
        DTI_TRY(dti_not_null(list, "items"));
    uint64_t identity = identity_of(list, length, op);
    if (identity != checked->identity) {
        uint64_t hash;
        DTI_TRY(check_list(a->replica, list, length, op, &hash));
        *checked = (struct dti_checked_list){ identity, hash };
    }
    a->call.hash = dti_hash_word(a->call.hash, checked->hash);
    a->call.hash = dti_hash_word(a->call.hash, a->options.bytes_per_pack);
    a->call.op = (uint8_t)op;
    a->call.whole = length;
    a->call.list = list;
    return DITTO_OK;
}
