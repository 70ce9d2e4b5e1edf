/* src/vars/variables/copies.c - plans, allocates, splits, reads and writes the physical copies of a variable;
 * see copies.h. */
#include "vars/variables/copies.h"
#include "replicas/helpers/remote_memory.h"
#include "replicas/jobs/jobs.h"
#include "replicas/team/stopping.h"
#include "sync/hosts/cross.h"
#include "vars/variables/slices.h"
#include "vars/vars.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static ditto_status allocate_arrays(ditto_variable *v, size_t pieces, size_t copies)
{
    v->piece = calloc(pieces, sizeof *v->piece);
    v->copies_of_piece = calloc(pieces, sizeof *v->copies_of_piece);
    v->copy = calloc(copies, sizeof *v->copy);
    v->copy_node = calloc(copies, sizeof *v->copy_node);
    v->copy_of = calloc(v->num_replicas, sizeof *v->copy_of);
    if (v->piece == NULL || v->copies_of_piece == NULL || v->copy == NULL || v->copy_node == NULL ||
        v->copy_of == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the copies of \"%s\"", v->name);
    for (size_t c = 0; c < copies; c++)
        v->copy_node[c] = DTI_OWN_NODE;
    return DITTO_OK;
}

/* -- Variables of one piece -- */

/* Returns the last replica on the node, or replica 0 if there is none. */
static uint32_t owner_on(const struct dti_team *team, uint32_t node)
{
    uint32_t i = dti_team_num_replicas(team) - 1;
    while (i > 0 && dti_team_replica(team, i)->pu.memory_node != node)
        i--;
    return i;
}

/* One copy for each NUMA node that has replicas. The first replica on the node owns it, and the others share
 * it. With v->own_copies, one copy for each replica. */
static void share_by_node(ditto_variable *v)
{
    for (uint32_t i = 0; i < v->num_replicas; i++) {
        uint32_t node = dti_team_replica(v->team, i)->pu.memory_node, c = 0;
        while (c < v->copies &&
               (v->own_copies || dti_team_replica(v->team, v->copy[c].owner)->pu.memory_node != node))
            c++;
        if (c == v->copies)
            v->copy[v->copies++] = (struct dti_copy){ .owner = i };
        v->copy_of[i] = c;
    }
}

static ditto_status plan_whole(ditto_variable *v, const ditto_variable *like)
{
    DTI_TRY(allocate_arrays(v, 1, v->num_replicas));
    v->pieces = 1;
    v->piece[0].count = v->count;
    if (like != NULL) {
        v->is_colocated = true;
        v->copies = like->copies;
        memcpy(v->copy_node, like->copy_node, v->copies * sizeof *v->copy_node);
        for (uint32_t i = 0; i < v->num_replicas; i++)
            v->copy_of[i] = like->copy_of[i];
        for (uint32_t c = 0; c < v->copies; c++)
            v->copy[c].owner = like->copy[c].owner;
    } else if (v->central) {
        v->copies = 1;
        v->copy[0].owner = owner_on(v->team, v->node);
        v->copy_node[0] = v->node;
    } else if (v->kind == &dti_parameter_kind) {
        v->copies = 1; /* on the node that dti_copies_assign_nodes assigns */
    } else {
        share_by_node(v);
    }
    v->copies_of_piece[0] = (struct dti_copy_set){ v->copies, v->copy };
    return DITTO_OK;
}

/* -- Variables of several pieces -- */

/* The nodes on which replicas have their memory form a list, in which each node stands once, in the order
 * of the first replica on it. Returns entry k of this list, or UINT32_MAX if the list has no such entry. */
static uint32_t node_number(const struct dti_team *team, uint32_t k)
{
    for (uint32_t i = 0; i < dti_team_num_replicas(team); i++) {
        uint32_t before = 0;
        while (before < i &&
               dti_team_replica(team, before)->pu.memory_node != dti_team_replica(team, i)->pu.memory_node)
            before++;
        if (before == i && k-- == 0)
            return dti_team_replica(team, i)->pu.memory_node;
    }
    return UINT32_MAX;
}

/* Plans one copy of each shard. dti_copies_assign_nodes assigns the nodes later. */
static ditto_status plan_shards(ditto_variable *v, size_t shards)
{
    size_t row_count = v->row_count;
    DTI_TRY(allocate_arrays(v, shards, shards));
    v->own_copies = false; /* each shard exists once */
    v->pieces = (uint32_t)shards;
    v->copies = (uint32_t)shards;
    for (uint32_t i = 0; i < v->pieces; i++) {
        size_t from = dti_partition_row(v->spec.shape[0], shards, i);
        v->piece[i] = (struct dti_variable_piece){
            from * row_count, (dti_partition_row(v->spec.shape[0], shards, i + 1) - from) * row_count
        };
        v->copies_of_piece[i] = (struct dti_copy_set){ 1, &v->copy[i] };
    }
    return DITTO_OK;
}

/* -- Sliced variables -- */

/* Plans the copies of all slices. The first replica of a NUMA node that has a slice owns a copy of it, and
 * the others on this node share it. */
static ditto_status plan_slices(ditto_variable *v)
{
    struct dti_slicing *s = v->slicing;
    const struct dti_slice_order *o = &v->order;
    uint32_t slices = o->slices;
    DTI_TRY(allocate_arrays(v, slices, v->num_replicas));
    v->pieces = slices;
    for (uint32_t k = 0; k < slices; k++) {
        struct dti_copy *own = &v->copy[v->copies];
        uint32_t copies = 0;
        size_t indices = dti_partition_row(o->extent, slices, k + 1) -
                         dti_partition_row(o->extent, slices, k);
        v->piece[k].first = k > 0 ? v->piece[k - 1].first + v->piece[k - 1].count : 0;
        v->piece[k].count = indices * (v->count / o->extent);
        for (uint32_t i = 0; i < v->num_replicas; i++) {
            uint32_t node = dti_team_replica(v->team, i)->pu.memory_node, c = 0;
            if (s->rank[i] != k)
                continue;
            while (c < copies && dti_team_replica(v->team, own[c].owner)->pu.memory_node != node)
                c++;
            if (c == copies)
                own[copies++] = (struct dti_copy){ .owner = i };
            v->copy_of[i] = v->copies + c;
        }
        v->copies_of_piece[k] = (struct dti_copy_set){ copies, own };
        v->copies += copies;
    }
    if (s->mirrors == NULL)
        return DITTO_OK;
    s->copy = calloc(v->copies, sizeof *s->copy);
    s->copies_of_piece = calloc((size_t)slices + 1, sizeof *s->copies_of_piece);
    return s->copy != NULL && s->copies_of_piece != NULL
               ? DITTO_OK
               : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the copies of \"%s\"", v->name);
}

/* In central storage all shards get its node. Otherwise the shards get the nodes of the replicas, one after
 * the other, and the sequence continues that of the shards of earlier variables. Parameters are dealt out in
 * this way also if they have one shard. */
void dti_copies_assign_nodes(ditto_variable *v, uint64_t shards_assigned)
{
    uint32_t nodes = 1;
    if ((v->pieces == 1 && v->kind != &dti_parameter_kind) || v->optimizer_slot || v->is_colocated ||
        v->slicing != NULL)
        return;
    const struct dti_storage *storage = dti_vars_storage(v->team);
    while (!v->central && !storage->parameters && node_number(v->team, nodes) != UINT32_MAX)
        nodes++;
    for (uint32_t i = 0; i < v->pieces; i++) {
        v->copy_node[i] = v->central ? v->node
                          : storage->parameters
                              ? storage->nodes[(shards_assigned + i) % storage->num_nodes]
                              : node_number(v->team, (uint32_t)((shards_assigned + i) % nodes));
        v->copy[i].owner = owner_on(v->team, v->copy_node[i]);
    }
}

ditto_status dti_copies_plan(ditto_variable *v, const ditto_variable *like)
{
    size_t shards = 1;
    if (v->slicing != NULL)
        return plan_slices(v);
    if (v->spec.rank > 0 && v->count != 0 && like == NULL)
        shards = dti_partition_shards(&v->partitioner, v->spec.shape[0], v->bytes / v->spec.shape[0]);
    if (shards > UINT32_MAX)
        return DTI_FAIL(DITTO_ERR_RANGE, "\"%s\" in %zu shards: at most %u", v->name, shards, UINT32_MAX);
    return shards > 1 ? plan_shards(v, shards) : plan_whole(v, like);
}

ditto_status dti_copies_plan_optimizer_slot(ditto_variable *v, const struct dti_optimizer_slot_piece *piece,
                                            size_t pieces)
{
    if (pieces == 0)
        return plan_whole(v, NULL); /* the variable has no elements */
    DTI_TRY(allocate_arrays(v, pieces, pieces));
    v->pieces = (uint32_t)pieces;
    v->copies = (uint32_t)pieces;
    for (uint32_t i = 0; i < v->pieces; i++) {
        v->piece[i] = (struct dti_variable_piece){ piece[i].first, piece[i].count };
        v->copy[i].owner = piece[i].replica;
        v->copies_of_piece[i] = (struct dti_copy_set){ 1, &v->copy[i] };
    }
    return DITTO_OK;
}

uint32_t dti_variable_piece_of(const ditto_variable *v, size_t element)
{
    uint32_t low = 0, high = v->pieces;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        *(element < v->piece[middle].first ? &high : &low) = middle;
    }
    return low;
}

/* -- Memory -- */

static void advise_huge_pages(void *data, size_t bytes)
{
    if (bytes >= DTI_HUGE_PAGE_BYTES) /* a hint, which must be given before the first touch */
        (void)madvise(data, bytes / DTI_HUGE_PAGE_BYTES * DTI_HUGE_PAGE_BYTES, MADV_HUGEPAGE);
}

static void fill(void *data, const void *value, size_t bytes)
{
    if (value != NULL && bytes != 0)
        memcpy(data, value, bytes);
    else
        memset(data, 0, bytes);
}

/* Allocates a copy on the node and fills it with `value`, or with zeros if value is NULL. It runs on the
 * owner's thread, so that pages that are placed by their first touch lie on the owner's node. */
static ditto_status make_copy(struct dti_replica *r, uint32_t node, size_t bytes, const void *value,
                              void **out)
{
    void *data;
    DTI_TRY(dti_node_alloc(r, node, bytes,
                           bytes >= DTI_HUGE_PAGE_BYTES ? DTI_HUGE_PAGE_BYTES : DTI_CACHE_LINE, &data));
    advise_huge_pages(data, bytes);
    fill(data, value, bytes);
    *out = data;
    return DITTO_OK;
}

/* Maps the memory of all shards of a parameter that is accessed without locks. Functions reach all rows by
 * one address then, and calls without locks find a row without its shard. */
static ditto_status map_block(ditto_variable *v)
{
    size_t bytes = v->bytes + DTI_HUGE_PAGE_BYTES;
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                       0);
    if (block == MAP_FAILED)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, errno,
                              "%zu bytes for the shards of \"%s\": the system refused to map memory; look at "
                              "RLIMIT_AS (ulimit -v), vm.max_map_count and vm.overcommit_memory",
                              bytes, v->name);
    v->block = block;
    v->block_bytes = bytes;
    v->block_elements = (char *)(((uintptr_t)block + DTI_HUGE_PAGE_BYTES - 1) / DTI_HUGE_PAGE_BYTES *
                                 DTI_HUGE_PAGE_BYTES);
    advise_huge_pages(v->block_elements, v->bytes);
    return DITTO_OK;
}

static void unmap_block(ditto_variable *v)
{
    if (v->block != NULL)
        munmap(v->block, v->block_bytes);
    v->block = NULL;
}

/* Places a shard in the block. A page that two shards share is on the node of either of them. It runs on the
 * owner's thread, as make_copy does. */
static ditto_status place_in_block(struct dti_replica *r, const ditto_variable *v, uint32_t piece,
                                   uint32_t node, const void *value, void **out)
{
    size_t element_bytes = ditto_dtype_bytes(v->spec.dtype), bytes = v->piece[piece].count * element_bytes;
    char *data = v->block_elements + v->piece[piece].first * element_bytes;
    DTI_TRY(dti_node_bind(r, node, data, bytes));
    fill(data, value, bytes);
    *out = data;
    return DITTO_OK;
}

struct placing {
    ditto_variable *v;
    const char *value; /* all elements, or NULL: zeros */

    /* Fills in a slice on the thread of its first copy's owner. NULL if there is no such function. */
    dti_slice_filler *fills;
    const void *user;
};

/* Allocates the copies of one replica, on that replica's thread. A copy lies in the replica's arena, or in an
 * arena of the node that was assigned to the copy. */
static ditto_status allocate_own(struct dti_replica *r, void *argument)
{
    const struct placing *p = argument;
    const ditto_variable *v = p->v;
    size_t element_bytes = ditto_dtype_bytes(v->spec.dtype);
    for (uint32_t i = 0; i < v->pieces; i++)
        for (uint32_t c = 0; c < v->copies_of_piece[i].copies; c++) {
            size_t index = (size_t)(&v->copies_of_piece[i].copy[c] - v->copy);
            if (v->copy[index].owner != r->index)
                continue;
            uint32_t node = v->copy_node[index] != DTI_OWN_NODE ? v->copy_node[index] : r->pu.memory_node;
            bool in_order = v->order.slices == 0 || v->order.axis == 0;
            const char *value = p->value != NULL && in_order ? p->value + v->piece[i].first * element_bytes
                                                             : NULL;
            void **data = &v->copy[index].data;
            DTI_TRY(v->block != NULL ? place_in_block(r, v, i, node, value, data)
                                     : make_copy(r, node, v->piece[i].count * element_bytes, value, data));
            if (p->fills != NULL && c == 0)
                DTI_TRY(p->fills(r, v, i, *data, p->user));
        }
    return DITTO_OK;
}

/* Copies slices that a function has filled in to their other copies, on the threads of these. */
static ditto_status fill_other_copies(struct dti_replica *r, void *argument)
{
    const struct placing *p = argument;
    const ditto_variable *v = p->v;
    for (uint32_t i = 0; i < v->pieces; i++)
        for (uint32_t c = 1; c < v->copies_of_piece[i].copies; c++)
            if (v->copies_of_piece[i].copy[c].owner == r->index)
                memcpy(v->copies_of_piece[i].copy[c].data, v->copies_of_piece[i].copy[0].data,
                       v->piece[i].count * ditto_dtype_bytes(v->spec.dtype));
    return DITTO_OK;
}

ditto_status dti_copies_allocate(ditto_variable *v, const void *value, dti_slice_filler *fills,
                                 const void *user)
{
    struct placing placing = { v, value, fills, user };
    if (v->pieces > 1 && v->concurrency != DITTO_CONCURRENCY_LOCKED)
        DTI_TRY(map_block(v));
    ditto_status status = dti_team_run(v->team, allocate_own, &placing, false);
    if (status == DITTO_OK && fills != NULL)
        status = dti_team_run(v->team, fill_other_copies, &placing, false);
    dti_team_renew(v->team); /* the job has no collectives, so dti_sync_run_ended is not needed */
    if (status != DITTO_OK)
        dti_copies_free(v);
    else if (v->slicing != NULL)
        dti_slicing_see_copies(v);
    if (status == DITTO_OK && value != NULL && v->slicing != NULL && v->order.axis != 0)
        dti_copies_write(v, DTI_RULE_ASSIGN, 0, v->count, value);
    return status;
}

void dti_copies_free(ditto_variable *v)
{
    for (uint32_t c = 0; c < v->copies; c++) {
        if (v->block == NULL)
            dti_replica_free_remote(dti_team_replica(v->team, v->copy[c].owner), v->copy[c].data);
        v->copy[c].data = NULL;
    }
    unmap_block(v);
}

/* -- Splits -- */

bool dti_variable_is_splittable(const ditto_variable *v)
{
    return v->mirrored && !v->optimizer_slot && !v->central && v->pieces == 1 && v->slicing == NULL &&
           v->aggregation == DITTO_AGGREGATE_NONE;
}

ditto_status dti_variable_check_each(const ditto_variable *v)
{
    if (v->own_copies || dti_team_all_replicas(v->team) == 1 || dti_variable_is_splittable(v))
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_INVALID,
                    "an update of \"%s\" in which each replica has its own arguments needs a copy for each "
                    "replica, but %s",
                    v->name,
                    v->optimizer_slot ? "it belongs to an optimizer and exists once"
                    : v->pieces > 1   ? "it is cut into shards, which exist once"
                    : v->central      ? "central storage keeps one copy for all"
                                      : "it aggregates, so that its replicas may share copies: create it "
                                        "with DITTO_COPIES_PER_REPLICA, or without aggregation");
}

struct splitting {
    const ditto_variable *v;

    /* The new copies of the replicas that do not own the copy that they use. NULL for the others, which keep
     * theirs. */
    void *made[DITTO_MAX_REPLICAS];
};

static ditto_status make_own_copy(struct dti_replica *r, void *argument)
{
    struct splitting *s = argument;
    if (dti_owns_copy(s->v, r->index))
        return DITTO_OK;
    return make_copy(r, r->pu.memory_node, s->v->bytes, dti_variable_component(s->v, r->index),
                     &s->made[r->index]);
}

/* Over several hosts: returns the error of a host that has no memory for its copies, on all hosts. */
static ditto_status agree_on_memory(const ditto_variable *v, ditto_status status)
{
    struct dti_cross_request request = { .name = "the split of copies", v->name, v->stamp };
    ditto_error error = *dti_error_get();
    const struct dti_gathered *all;
    if (!dti_cross_has_hosts(v->team))
        return status;
    DTI_TRY(dti_cross_gather(v->team, &request, &status, sizeof status, &all));
    for (uint32_t h = 0; h < dti_cross_hosts(v->team); h++) {
        ditto_status theirs;
        memcpy(&theirs, all[h].data, sizeof theirs);
        if (theirs != DITTO_OK && status == DITTO_OK)
            return DTI_FAIL(theirs, "host %u could not make a copy of \"%s\", %zu bytes, for each replica", h,
                            v->name, v->bytes);
    }
    if (status != DITTO_OK)
        dti_error_set(&error);
    return status;
}

static ditto_status split(ditto_variable *v)
{
    struct splitting splitting = { .v = v };
    ditto_status status = dti_team_run(v->team, make_own_copy, &splitting, false);
    dti_team_renew(v->team); /* see dti_copies_allocate */
    status = agree_on_memory(v, status);
    if (status != DITTO_OK) {
        for (uint32_t i = 0; i < v->num_replicas; i++)
            dti_replica_free_remote(dti_team_replica(v->team, i), splitting.made[i]);
        return status;
    }
    /* All copies have been allocated. Each replica now uses its new copy as its component. */
    uint32_t copies = v->copies;
    for (uint32_t i = 0; i < v->num_replicas; i++) {
        if (dti_owns_copy(v, i))
            continue;
        v->copy[copies] = (struct dti_copy){ i, splitting.made[i] };
        /* release: pairs with the acquire in dti_copy_of. */
        atomic_store_explicit(&v->copy_of[i], copies++, memory_order_release);
    }
    v->copies_of_piece[0].copies = copies;
    /* relaxed: a thread that loops over the copies has the turn, or is a replica, which gets this store with
     * its next job or with the end of the pause. Other threads only estimate the amount of work by it. */
    atomic_store_explicit(&v->copies, copies, memory_order_relaxed);
    v->own_copies = true;
    return DITTO_OK;
}

ditto_status dti_variable_split(ditto_variable *v)
{
    if (!v->own_copies && dti_team_all_replicas(v->team) > 1)
        DTI_TRY(split(v));
    dti_variable_set_may_differ(v);
    return DITTO_OK;
}

static void note_difference(ditto_variable *v, bool may_differ)
{
    if (dti_variable_may_differ(v) == may_differ)
        return;
    atomic_store_explicit(&v->may_differ, may_differ, memory_order_relaxed);
    dti_optimizers_see_copies(v);
}

void dti_variable_set_may_differ(ditto_variable *v)
{
    note_difference(v, dti_team_all_replicas(v->team) > 1 && v->count != 0);
}

void dti_variable_set_equal(ditto_variable *v)
{
    note_difference(v, false);
}

void dti_copies_forget(ditto_variable *v)
{
    dti_slicing_free(v->slicing);
    unmap_block(v); /* if the team has ended before the variable */
    free(v->piece);
    free(v->copies_of_piece);
    free(v->copy);
    free(v->copy_node);
    free(v->copy_of);
}

/* -- Reading and writing -- */

/* Reduces [*first, *end) to the part that lies in a piece. Returns false if that part is empty. */
static bool cut(const struct dti_variable_piece *piece, size_t *first, size_t *end)
{
    size_t piece_end = piece->first + piece->count;
    *first = *first > piece->first ? *first : piece->first;
    *end = *end < piece_end ? *end : piece_end;
    return *first < *end;
}

void dti_pieces_write(const ditto_variable *v, enum dti_rule rule, size_t first, size_t end,
                      const void *value)
{
    size_t element_bytes = ditto_dtype_bytes(v->spec.dtype);
    for (uint32_t i = first < end ? dti_variable_piece_of(v, first) : v->pieces;
         i < v->pieces && v->piece[i].first < end; i++) {
        size_t from = first, to = end;
        for (uint32_t c = 0; cut(&v->piece[i], &from, &to) && c < v->copies_of_piece[i].copies; c++) {
            char *at = (char *)v->copies_of_piece[i].copy[c].data +
                       (from - v->piece[i].first) * element_bytes;
            dti_rule_apply(rule, v->spec.dtype, at, at, (const char *)value + (from - first) * element_bytes,
                           to - from);
        }
    }
}

void dti_pieces_read(const ditto_variable *v, uint32_t replica, size_t first, size_t end, void *dst)
{
    size_t element_bytes = ditto_dtype_bytes(v->spec.dtype);
    for (uint32_t i = first < end ? dti_variable_piece_of(v, first) : v->pieces;
         i < v->pieces && v->piece[i].first < end; i++) {
        size_t from = first, to = end;
        if (cut(&v->piece[i], &from, &to))
            memcpy((char *)dst + (from - first) * element_bytes,
                   dti_nearest(v, i, replica) + (from - v->piece[i].first) * element_bytes,
                   (to - from) * element_bytes);
    }
}

void dti_copies_write(const ditto_variable *v, enum dti_rule rule, size_t first, size_t end,
                      const void *value)
{
    size_t element_bytes = ditto_dtype_bytes(v->spec.dtype), at;
    for (size_t from = first, count; from < end; from += count) {
        count = dti_slice_run(v, from, end, &at);
        dti_pieces_write(v, rule, at, at + count, (const char *)value + (from - first) * element_bytes);
    }
}

void dti_copies_read(const ditto_variable *v, uint32_t replica, size_t first, size_t end, void *dst)
{
    size_t element_bytes = ditto_dtype_bytes(v->spec.dtype), at;
    for (size_t from = first, count; from < end; from += count) {
        count = dti_slice_run(v, from, end, &at);
        dti_pieces_read(v, replica, at, at + count, (char *)dst + (from - first) * element_bytes);
    }
}
