/* src/sync/api_collective.c - the public functions of include/ditto/collective.h and include/ditto/scan.h. */
#include <ditto/scan.h>

#include "base/numbers/checksum.h"
#include "base/types/types.h"
#include "replicas/team/context.h"
#include "sync/algorithms/collective.h"
#include "sync/algorithms/flow.h"
#include "sync/call_arguments.h"
#include "sync/grouping/grouping.h"
#include "sync/algorithms/known_calls.h"
#include "sync/overlap.h"
#include "sync/sync.h"

/* -- known calls -- */

/* Returns NULL if there is none. The search begins with the entry that was used last and goes on in the order
 * in which calls were kept, because programs repeat their calls in one order. */
static struct dti_known_call *find(struct dti_known_calls *known, const struct dti_collective_arguments *b,
                                   const char *label)
{
    for (uint32_t k = 0; k < DTI_KNOWN_CALLS; k++) {
        uint32_t i = (known->last + k) % DTI_KNOWN_CALLS;
        const struct dti_collective_arguments *a = &known->entry[i].arguments;
        if (a->src == b->src && a->dst == b->dst && a->count == b->count && a->name == b->name &&
            a->root == b->root && a->dtype == b->dtype && a->op == b->op &&
            dti_text_same(known->entry[i].call.label, label)) {
            known->last = i;
            return &known->entry[i];
        }
    }
    return NULL;
}

/* Of an exclusive scan, replica 0 receives nothing. */
static bool receives_prefix(const struct dti_replica *replica, enum dti_pattern pattern)
{
    return pattern != DTI_PATTERN_SCAN_EXCLUSIVE || replica->index > 0;
}

static ditto_status check_scan_hosts(const struct dti_replica *replica, const char *name)
{
    if (replica->sync->hosts == NULL)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                    "%s works on one host only, and this strategy has several: gather the values with "
                    "ditto_all_gather, and combine them on each replica",
                    name);
}

DTI_KNOWS_PATTERNS(15);

static ditto_status check(struct dti_arguments *out, const struct dti_collective_arguments *given)
{
    size_t bytes;
    bool receives = given->root == out->replica->rank;
    switch (given->pattern) {
    case DTI_PATTERN_ALL_REDUCE:
        return dti_arguments_reduce(out, given->src, given->dst, given->count, given->count, given->dtype,
                                    given->op);
    case DTI_PATTERN_REDUCE:
        DTI_TRY(dti_arguments_root(out, given->root));
        return dti_arguments_reduce(out, given->src, receives ? given->dst : NULL, given->count,
                                    receives ? given->count : 0, given->dtype, given->op);
    case DTI_PATTERN_BROADCAST:
        DTI_TRY(dti_arguments_root(out, given->root));
        /* The buffer is checked here, because the messages of dti_arguments_move would call it src. */
        DTI_TRY(dti_buffer_bytes(given->count, given->dtype, &bytes));
        DTI_TRY(dti_buffer_check(given->dst, bytes, given->dtype, "buffer"));
        return dti_arguments_move(out, given->dst, given->dst, given->count, given->count, given->dtype);
    case DTI_PATTERN_REDUCE_SCATTER:
        return dti_arguments_scatter(out, given->src, given->dst, given->count, NULL, given->dtype,
                                     given->op);
    case DTI_PATTERN_ALL_GATHER:
        return dti_arguments_gather(out, given->src, given->dst, given->count, NULL, given->dtype);
    case DTI_PATTERN_GATHER:
    case DTI_PATTERN_SCATTER:
        DTI_TRY(dti_arguments_root(out, given->root));
        return dti_arguments_parts(out, given->src, given->dst, given->count, given->dtype);
    case DTI_PATTERN_ALL_TO_ALL:
        return dti_arguments_parts(out, given->src, given->dst, given->count, given->dtype);
    case DTI_PATTERN_SCAN:
    case DTI_PATTERN_SCAN_EXCLUSIVE:
        DTI_TRY(check_scan_hosts(out->replica, given->name));
        if (given->op == DITTO_MEAN)
            return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                            "MEAN in %s: each replica receives a combination of another number of values. "
                            "Use SUM and divide",
                            given->name);
        receives = receives_prefix(out->replica, given->pattern);
        return dti_arguments_reduce(out, given->src, receives ? given->dst : NULL, given->count,
                                    receives ? given->count : 0, given->dtype, given->op);
    default: /* DTI_PATTERN_NOTHING. No other pattern comes here. */
        return DITTO_OK;
    }
}

/* Keeps a call whose arguments have been checked, in place of the oldest one. */
static struct dti_known_call *keep(const struct dti_replica *self,
                                   const struct dti_collective_arguments *arguments,
                                   const struct dti_call *call)
{
    const struct dti_sync *sync = self->sync;
    struct dti_known_calls *known = sync->state[self->index].known_calls;
    known->last = (uint32_t)(known->number++ % DTI_KNOWN_CALLS);
    struct dti_known_call *entry = &known->entry[known->last];
    entry->arguments = *arguments;
    entry->call = *call;
    if (call->label != NULL) /* the length has been checked */
        entry->call.label = memcpy(entry->label, call->label, strlen(call->label) + 1);
    entry->call.known_number = known->number;
    entry->call.digest = dti_call_digest(call);
    if (arguments->pattern != DTI_PATTERN_NOTHING)
        entry->prepared = dti_prepare_call(sync, &sync->tuning.given, &entry->call, NULL);
    return entry;
}

/* Returns true if the options give no more than a label and a group. */
static bool give_label_or_group(const ditto_reduce_options *o)
{
    return o->struct_size == sizeof *o && o->flags == 0 && o->timeout_ms == 0 && o->bytes_per_pack == 0 &&
           o->implementation == DITTO_IMPLEMENTATION_DEFAULT;
}

/* Checks the arguments, unless the replica has made an equal call with the default options before, and
 * executes the collective. */
static ditto_status collective_of(ditto_replica *self, const struct dti_collective_arguments *arguments,
                                  const ditto_reduce_options *options)
{
    struct dti_replica *replica;
    DTI_TRY(dti_self(self, &replica));
    DTI_TRY(dti_check_outside_function(replica, arguments->name));
    bool keeps = options == NULL || give_label_or_group(options);
    if (keeps && options != NULL && options->group != NULL) /* each group keeps its own calls */
        DTI_TRY(dti_group_member(replica, options->group, arguments->name, &replica));
    struct dti_known_calls *known = replica->sync->state[replica->index].known_calls;
    struct dti_known_call *entry = NULL;
    if (keeps)
        entry = find(known, arguments, options != NULL ? options->label : NULL);
    if (entry == NULL) {
        struct dti_arguments a;
        DTI_TRY(dti_arguments_begin(&a, self, arguments->name, arguments->pattern, options, 0));
        DTI_TRY(check(&a, arguments));
        if (!keeps)
            return arguments->pattern == DTI_PATTERN_NOTHING
                       ? dti_barrier(a.replica, &a.call, &a.deadline)
                       : dti_collective(a.replica, &a.call, NULL, &a.deadline);
        entry = keep(replica, arguments, &a.call);
    }
    struct dti_deadline deadline = dti_replica_deadline(replica, replica->timeout_ms);
    return arguments->pattern == DTI_PATTERN_NOTHING
               ? dti_barrier(replica, &entry->call, &deadline)
               : dti_collective_prepared(replica, &entry->prepared, NULL, &deadline);
}

/* -- barrier -- */

ditto_status ditto_barrier(ditto_replica *self, const ditto_reduce_options *options)
{
    struct dti_collective_arguments arguments = { .name = "ditto_barrier",
                                                  .root = DTI_NO_ROOT,
                                                  .pattern = DTI_PATTERN_NOTHING };
    DTI_ENTER_QUICKLY();
    return collective_of(self, &arguments, options);
}

/* -- all-reduce -- */

ditto_status ditto_all_reduce(ditto_replica *self, const void *src, void *dst, size_t count,
                              ditto_dtype dtype, ditto_op op, const ditto_reduce_options *options)
{
    struct dti_collective_arguments arguments = { .name = "ditto_all_reduce",
                                                  .src = src,
                                                  .dst = dst,
                                                  .count = count,
                                                  .root = DTI_NO_ROOT,
                                                  .pattern = DTI_PATTERN_ALL_REDUCE,
                                                  .dtype = dtype,
                                                  .op = op };
    DTI_ENTER_QUICKLY();
    return collective_of(self, &arguments, options);
}

/* Returns the number of items in the next pack. A pack ends when it has more bytes than the limit (semantics
 * 6.3). */
static size_t pack_length(const ditto_list_item *list, size_t length, size_t limit)
{
    size_t items = 0, bytes = 0;
    while (items < length && (limit == 0 || items == 0 || bytes <= limit)) {
        bytes += list[items].count * ditto_dtype_bytes(list[items].dtype);
        items++;
    }
    return items;
}

ditto_status ditto_all_reduce_list(ditto_replica *self, const ditto_list_item *items, size_t num_items,
                                   ditto_op op, const ditto_reduce_options *options)
{
    struct dti_arguments a;
    DTI_ENTER_QUICKLY();
    DTI_TRY(dti_arguments_begin(&a, self, "ditto_all_reduce_list", DTI_PATTERN_LIST, options, 0));
    DTI_TRY(dti_arguments_list(&a, items, num_items, op));
    size_t done = 0;
    do { /* runs once for an empty list, which is a barrier */
        a.call.list = items + done;
        a.call.before = done;
        a.call.count = pack_length(items + done, num_items - done, a.options.bytes_per_pack);
        if (done > 0) /* each meeting has its own deadline */
            a.deadline = dti_replica_deadline(a.replica, a.options.timeout_ms);
        DTI_TRY(dti_collective(a.replica, &a.call, NULL, &a.deadline));
        done += a.call.count;
    } while (done < num_items);
    return DITTO_OK;
}

/* A collective that combines by a function of the program. */
static ditto_status combine_with(ditto_replica *self, const struct dti_collective_arguments *given,
                                 size_t element_bytes, const struct dti_combine_call *function,
                                 const ditto_reduce_options *options)
{
    struct dti_arguments a;
    const void *src = given->src;
    size_t count = given->count, bytes;
    DTI_TRY(dti_arguments_begin(&a, self, given->name, given->pattern, options, 0));
    bool receives = receives_prefix(a.replica, given->pattern);
    void *dst = receives ? given->dst : NULL;
    if (dti_call_scans(&a.call))
        DTI_TRY(check_scan_hosts(a.replica, given->name));
    if (function->combine == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "combine is NULL: give the function that combines two elements");
    if (element_bytes < 1 || element_bytes > DTI_TILE_BYTES)
        return DTI_FAIL(DITTO_ERR_RANGE, "element_bytes = %zu is outside 1 to %d", element_bytes,
                        DTI_TILE_BYTES);
    if (!dti_multiply(count, element_bytes, &bytes))
        return DTI_FAIL(DITTO_ERR_RANGE, "%zu elements of %zu bytes are more than a size_t can count", count,
                        element_bytes);
    /* The alignment is that of the caller's type. The size does not tell it: {double; int} has 16 bytes and
     * is aligned to 8. */
    if (bytes != 0) {
        DTI_TRY(dti_not_null(src, "src"));
        if (receives)
            DTI_TRY(dti_not_null(dst, "dst"));
    }
    DTI_TRY(dti_check_overlap(src, bytes, dst, bytes, src));
    a.call.src = src;
    a.call.dst = dst;
    a.call.count = count;
    a.call.element_bytes = element_bytes;
    a.call.more = function;
    a.call.hash = dti_hash_word(a.call.hash,
                                dti_sync_function(a.replica, (const void *)(uintptr_t)function->combine));
    const char **calling = &dti_reported_state(a.replica)->calling;
    *calling = a.call.name;
    ditto_status status = dti_collective(a.replica, &a.call, NULL, &a.deadline);
    *calling = NULL;
    return status;
}

ditto_status ditto_all_reduce_with(ditto_replica *self, const void *src, void *dst, size_t count,
                                   size_t element_bytes, ditto_combine_fn combine, void *user,
                                   const ditto_reduce_options *options)
{
    struct dti_combine_call function = { combine, user };
    struct dti_collective_arguments arguments = { .name = "ditto_all_reduce_with",
                                                  .src = src,
                                                  .dst = dst,
                                                  .count = count,
                                                  .pattern = DTI_PATTERN_ALL_REDUCE };
    DTI_ENTER_QUICKLY();
    return combine_with(self, &arguments, element_bytes, &function, options);
}

/* -- scans -- */

ditto_status ditto_scan(ditto_replica *self, const void *src, void *dst, size_t count, ditto_dtype dtype,
                        ditto_op op, const ditto_reduce_options *options)
{
    struct dti_collective_arguments arguments = { .name = "ditto_scan",
                                                  .src = src,
                                                  .dst = dst,
                                                  .count = count,
                                                  .root = DTI_NO_ROOT,
                                                  .pattern = DTI_PATTERN_SCAN,
                                                  .dtype = dtype,
                                                  .op = op };
    DTI_ENTER_QUICKLY();
    return collective_of(self, &arguments, options);
}

ditto_status ditto_scan_exclusive(ditto_replica *self, const void *src, void *dst, size_t count,
                                  ditto_dtype dtype, ditto_op op, const ditto_reduce_options *options)
{
    struct dti_collective_arguments arguments = { .name = "ditto_scan_exclusive",
                                                  .src = src,
                                                  .dst = dst,
                                                  .count = count,
                                                  .root = DTI_NO_ROOT,
                                                  .pattern = DTI_PATTERN_SCAN_EXCLUSIVE,
                                                  .dtype = dtype,
                                                  .op = op };
    DTI_ENTER_QUICKLY();
    return collective_of(self, &arguments, options);
}

ditto_status ditto_scan_with(ditto_replica *self, const void *src, void *dst, size_t count,
                             size_t element_bytes, ditto_combine_fn combine, void *user, int exclusive,
                             const ditto_reduce_options *options)
{
    struct dti_combine_call function = { combine, user };
    struct dti_collective_arguments arguments = {
        .name = "ditto_scan_with", .src = src, .dst = dst, .count = count
    };
    arguments.pattern = exclusive ? DTI_PATTERN_SCAN_EXCLUSIVE : DTI_PATTERN_SCAN;
    DTI_ENTER_QUICKLY();
    return combine_with(self, &arguments, element_bytes, &function, options);
}

/* -- with a root -- */

ditto_status ditto_reduce_to_root(ditto_replica *self, const void *src, void *dst, size_t count,
                                  ditto_dtype dtype, ditto_op op, uint32_t root,
                                  const ditto_reduce_options *options)
{
    struct dti_collective_arguments arguments = { .name = "ditto_reduce_to_root",
                                                  .src = src,
                                                  .dst = dst,
                                                  .count = count,
                                                  .root = root,
                                                  .pattern = DTI_PATTERN_REDUCE,
                                                  .dtype = dtype,
                                                  .op = op };
    DTI_ENTER_QUICKLY();
    return collective_of(self, &arguments, options);
}

ditto_status ditto_broadcast_from_root(ditto_replica *self, void *buffer, size_t count, ditto_dtype dtype,
                                       uint32_t root, const ditto_reduce_options *options)
{
    struct dti_collective_arguments arguments = { .name = "ditto_broadcast_from_root",
                                                  .src = buffer,
                                                  .dst = buffer,
                                                  .count = count,
                                                  .root = root,
                                                  .pattern = DTI_PATTERN_BROADCAST,
                                                  .dtype = dtype };
    DTI_ENTER_QUICKLY();
    return collective_of(self, &arguments, options);
}

/* -- in parts -- */

ditto_status ditto_reduce_scatter(ditto_replica *self, const void *src, void *dst, size_t count,
                                  const size_t *counts, ditto_dtype dtype, ditto_op op,
                                  const ditto_reduce_options *options)
{
    struct dti_collective_arguments arguments = { .name = "ditto_reduce_scatter",
                                                  .src = src,
                                                  .dst = dst,
                                                  .count = count,
                                                  .root = DTI_NO_ROOT,
                                                  .pattern = DTI_PATTERN_REDUCE_SCATTER,
                                                  .dtype = dtype,
                                                  .op = op };
    struct dti_arguments a;
    DTI_ENTER_QUICKLY();
    if (counts == NULL)
        return collective_of(self, &arguments, options);
    DTI_TRY(dti_arguments_begin(&a, self, arguments.name, arguments.pattern, options, 0));
    DTI_TRY(dti_arguments_scatter(&a, src, dst, 0, counts, dtype, op));
    return dti_collective(a.replica, &a.call, NULL, &a.deadline);
}

ditto_status dti_all_gather(ditto_replica *self, const struct dti_gathering *g,
                            const ditto_reduce_options *options)
{
    struct dti_arguments a;
    DTI_TRY(dti_arguments_begin(&a, self, g->name, DTI_PATTERN_ALL_GATHER, options, 0));
    DTI_TRY(dti_arguments_gather(&a, g->src, g->dst, g->count, g->counts, g->dtype));
    a.call.is_internal = g->is_internal;
    return dti_collective(a.replica, &a.call, NULL, &a.deadline);
}

ditto_status ditto_all_gather(ditto_replica *self, const void *src, void *dst, size_t count,
                              const size_t *counts, ditto_dtype dtype, const ditto_reduce_options *options)
{
    struct dti_collective_arguments arguments = { .name = "ditto_all_gather",
                                                  .src = src,
                                                  .dst = dst,
                                                  .count = count,
                                                  .root = DTI_NO_ROOT,
                                                  .pattern = DTI_PATTERN_ALL_GATHER,
                                                  .dtype = dtype };
    DTI_ENTER_QUICKLY();
    if (counts == NULL)
        return collective_of(self, &arguments, options);
    return dti_all_gather(
        self,
        &(struct dti_gathering){
            .name = arguments.name, .src = src, .dst = dst, .counts = counts, .dtype = dtype },
        options);
}

/* -- parts that are moved -- */

/* `sizes` is NULL if all parts have count elements. */
static ditto_status move_parts(ditto_replica *self, const struct dti_collective_arguments *given,
                               const ditto_all_to_all_parts *sizes, const ditto_reduce_options *options)
{
    struct dti_arguments a;
    if (sizes == NULL)
        return collective_of(self, given, options);
    DTI_TRY(dti_arguments_begin(&a, self, given->name, given->pattern, options, 0));
    if (given->pattern != DTI_PATTERN_ALL_TO_ALL)
        DTI_TRY(dti_arguments_root(&a, given->root));
    return dti_move_uneven_parts(&a, given->src, given->dst, sizes, given->dtype);
}

ditto_status ditto_gather_to_root(ditto_replica *self, const void *src, void *dst, size_t count,
                                  const size_t *counts, const size_t *offsets, ditto_dtype dtype,
                                  uint32_t root, const ditto_reduce_options *options)
{
    struct dti_collective_arguments arguments = { .name = "ditto_gather_to_root",
                                                  .src = src,
                                                  .dst = dst,
                                                  .count = count,
                                                  .root = root,
                                                  .pattern = DTI_PATTERN_GATHER,
                                                  .dtype = dtype };
    const ditto_all_to_all_parts sizes = { counts, offsets, counts, offsets };
    DTI_ENTER_QUICKLY();
    return move_parts(self, &arguments, counts != NULL || offsets != NULL ? &sizes : NULL, options);
}

ditto_status ditto_scatter_from_root(ditto_replica *self, const void *src, void *dst, size_t count,
                                     const size_t *counts, const size_t *offsets, ditto_dtype dtype,
                                     uint32_t root, const ditto_reduce_options *options)
{
    struct dti_collective_arguments arguments = { .name = "ditto_scatter_from_root",
                                                  .src = src,
                                                  .dst = dst,
                                                  .count = count,
                                                  .root = root,
                                                  .pattern = DTI_PATTERN_SCATTER,
                                                  .dtype = dtype };
    const ditto_all_to_all_parts sizes = { counts, offsets, counts, offsets };
    DTI_ENTER_QUICKLY();
    return move_parts(self, &arguments, counts != NULL || offsets != NULL ? &sizes : NULL, options);
}

ditto_status ditto_all_to_all(ditto_replica *self, const void *src, void *dst, size_t count,
                              const ditto_all_to_all_parts *parts, ditto_dtype dtype,
                              const ditto_reduce_options *options)
{
    struct dti_collective_arguments arguments = { .name = "ditto_all_to_all",
                                                  .src = src,
                                                  .dst = dst,
                                                  .count = count,
                                                  .root = DTI_NO_ROOT,
                                                  .pattern = DTI_PATTERN_ALL_TO_ALL,
                                                  .dtype = dtype };
    DTI_ENTER_QUICKLY();
    return move_parts(self, &arguments, parts, options);
}
