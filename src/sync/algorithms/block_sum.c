/* src/sync/algorithms/block_sum.c - sums over fixed blocks of a global row.
 *
 * The sums of the blocks are combined along one tree. A block belongs to the replica that has its first
 * element. That replica reads the rest of the block from other replicas' buffers. Each replica sums its
 * blocks to the largest subtrees that they form. In the last meeting all replicas receive the sums of these
 * subtrees, and each combines them by itself. */
#include "sync/algorithms/block_sum.h"
#include "base/errors/user_call.h"
#include "replicas/memory/arena.h"
#include "replicas/team/stopping.h"
#include "replicas/team/team.h"
#include "sync/algorithms/collective.h"
#include "sync/algorithms/flow.h"
#include "sync/algorithms/other_hosts.h"
#include "sync/kernels/local_reduction.h"
#include "sync/meeting/access.h"
#include "sync/meeting/meeting.h"

#include <string.h>

#define BLOCK_BYTES ((size_t)DITTO_BLOCK_ELEMENTS * DTI_BLOCK_SUM_BYTES)

/* -- one block -- */

/* A dti_compute_elements of a dot product. A product is an element, and rounded as one. */
static ditto_status multiply(const struct dti_block_row *r, size_t first, size_t count, void *out)
{
    const struct dti_kernel *times = &(*r->self->sync->kernels)[r->dtype][DITTO_PROD];
    const char *left = r->factor[0] + first * r->reduction.element_bytes,
               *right = r->factor[1] + first * r->reduction.element_bytes;
    alignas(DTI_CACHE_LINE) float wide[2][DITTO_BLOCK_ELEMENTS];
    if (times->widen == NULL) {
        times->combine(out, left, right, count);
        return DITTO_OK;
    }
    times->widen(wide[0], left, count);
    times->widen(wide[1], right, count);
    times->combine(wide[0], wide[0], wide[1], count);
    times->narrow(out, wide[0], count);
    return DITTO_OK;
}

/* A dti_compute_elements that calls the user's function. The function may change the floating-point
 * environment, which is then set again. */
static DTI_GUARDED ditto_status call_function(const struct dti_block_row *r, size_t first, size_t count,
                                              void *out)
{
    DTI_GUARD("a function that computes elements (ditto_block_sum_with)");
    const char **calling = &dti_reported_state(r->self)->calling;
    *calling = "ditto_block_sum_with";
    ditto_status status = r->function(out, first, count, r->user);
    *calling = NULL;
    DTI_GUARD_END();
    dti_fenv_enter();
    return status;
}

/* As call_function, while this replica has access to other replicas' buffers. It does without while the
 * function runs, because a replica that gives up waiting must not wait for the function. */
static ditto_status call_function_outside(const struct dti_block_row *r, size_t first, size_t count,
                                          void *out)
{
    dti_access_end(r->self);
    ditto_status status = call_function(r, first, count, out);
    if (dti_access_begin(r->self) || status != DITTO_OK)
        return status;
    return dti_team_stop_status(r->self->team);
}

static void sum_block(struct dti_block_row *r, size_t block, void *sum)
{
    char *elements = r->self->sync->state[r->self->index].workspace.scratch, *wide = elements + BLOCK_BYTES;
    size_t total = r->start[r->n], first = block * DITTO_BLOCK_ELEMENTS;
    size_t end = total - first < DITTO_BLOCK_ELEMENTS ? total : first + DITTO_BLOCK_ELEMENTS;
    size_t bytes = r->reduction.element_bytes, count = end - first;
    uint32_t i = 0;
    /* Copies elements [first, end) of the row from the replicas that have them, or computes them. */
    for (char *out = elements; first < end && r->status == DITTO_OK;) {
        while (r->start[i + 1] <= first)
            i++;
        size_t upto = r->start[i + 1] < end ? r->start[i + 1] : end;
        if (i == r->self->rank && r->compute != NULL)
            r->status = r->compute(r, first - r->start[i], upto - first, out);
        else
            memcpy(out, r->data[i] + (first - r->start[i]) * bytes, (upto - first) * bytes);
        out += (upto - first) * bytes;
        first = upto;
    }
    if (r->status != DITTO_OK)
        return;
    if (r->reduction.kernel->widen != NULL) {
        r->reduction.kernel->widen(wide, elements, count);
        elements = wide;
    }
    dti_fold_rows(r->reduction.kernel, elements, count, 1, r->reduction.accumulator_bytes);
    memcpy(sum, elements, r->reduction.accumulator_bytes);
}

/* -- the tree over blocks -- */

/* Returns true and stores the sum of the blocks of `span` if that sum is available. If it returns false,
 * sum_span asks for the two halves of the span. */
typedef bool find_sum(void *context, struct dti_span span, void *sum);

static void sum_span(const struct dti_block_row *r, struct dti_span span, find_sum *find, void *context,
                     void *sum)
{
    alignas(DTI_BLOCK_SUM_BYTES) char right[DTI_BLOCK_SUM_BYTES];
    if (find(context, span, sum))
        return;
    size_t middle = dti_tree_split(span.first, span.end);
    sum_span(r, (struct dti_span){ span.first, middle }, find, context, sum);
    sum_span(r, (struct dti_span){ middle, span.end }, find, context, right);
    if (r->status == DITTO_OK) /* otherwise there are no sums */
        r->reduction.kernel->combine(sum, sum, right, 1);
}

static bool find_block_sum(void *context, struct dti_span span, void *sum)
{
    if (span.end - span.first != 1)
        return false;
    sum_block(context, span.first, sum);
    return true;
}

/* Returns the number of blocks that belong to replicas with lower ids. */
static size_t blocks_before(const struct dti_block_row *r, uint32_t replica)
{
    size_t element = r->start[replica];
    return element / DITTO_BLOCK_ELEMENTS + (element % DITTO_BLOCK_ELEMENTS != 0);
}

ditto_status dti_block_row_append(size_t *start, uint32_t replica, size_t count)
{
    if (__builtin_add_overflow(start[replica], count, &start[replica + 1]))
        return DTI_FAIL(DITTO_ERR_RANGE, "the elements of replicas 0 to %u are more than a size_t can count",
                        replica);
    return DITTO_OK;
}

uint32_t dti_block_row_subtrees(const struct dti_block_row *r, uint32_t replica, struct dti_span *part)
{
    struct dti_span own_blocks = { blocks_before(r, replica), blocks_before(r, replica + 1) };
    struct dti_tree tree = { .n = blocks_before(r, r->n) };
    return dti_tree_subtrees(&tree, own_blocks, part);
}

ditto_status dti_block_row_sum_own(struct dti_block_row *r)
{
    struct dti_span part[DTI_BLOCK_PARTS];
    r->parts = dti_block_row_subtrees(r, r->self->rank, part);
    for (uint32_t p = 0; p < r->parts && r->status == DITTO_OK; p++)
        sum_span(r, part[p], find_block_sum, r, r->part + p * r->reduction.accumulator_bytes);
    return r->status;
}

/* A walk over the subtrees of all replicas, in order. The present subtrees, part[next] to part[parts - 1],
 * belong to the replica before `replica`, and `sums` are those of that replica. */
struct cursor {
    const struct dti_block_row *row;
    dti_block_sums_of *sums_of;
    void *context;
    const unsigned char *sums;
    uint32_t replica, next, parts;
    struct dti_span part[DTI_BLOCK_PARTS];
};

static bool find_part_sum(void *context, struct dti_span span, void *sum)
{
    struct cursor *c = context;
    size_t bytes = c->row->reduction.accumulator_bytes;
    while (c->next == c->parts) {
        c->parts = dti_block_row_subtrees(c->row, c->replica, c->part);
        c->sums = c->sums_of(c->context, c->row, c->replica++, c->parts);
        c->next = 0;
    }
    if (c->part[c->next].first != span.first || c->part[c->next].end != span.end)
        return false;
    memcpy(sum, c->sums + c->next++ * bytes, bytes);
    return true;
}

void dti_block_row_finish(const struct dti_block_row *r, dti_block_sums_of *sums_of, void *context, void *dst)
{
    struct cursor c = { .row = r, .sums_of = sums_of, .context = context };
    size_t blocks = blocks_before(r, r->n);
    alignas(DTI_BLOCK_SUM_BYTES) char sum[DTI_BLOCK_SUM_BYTES];
    if (blocks == 0) {
        memset(dst, 0, r->reduction.element_bytes);
        return;
    }
    sum_span(r, (struct dti_span){ 0, blocks }, find_part_sum, &c, sum);
    dti_finish(&r->reduction, 1, sum, sum, 1, dst);
}

/* -- on one host -- */

/* Where each replica's elements begin in the row, and where they are in memory. */
struct places {
    size_t start[DITTO_MAX_REPLICAS + 1];
    const char *data[DITTO_MAX_REPLICAS];
};

/* What a replica brings to the first meeting. */
struct own_elements {
    size_t count;
    const void *values;
};

struct own_sums {
    struct dti_block_row *row;
    struct places *places;
    struct own_elements elements;
    struct dti_arrival arrivals[2];
};

static ditto_status sum_own(struct dti_replica *self, uint32_t seq, void *context)
{
    struct own_sums *own = context;
    struct places *places = own->places;
    places->start[0] = 0;
    for (uint32_t i = 0; i < self->num_replicas; i++) {
        struct own_elements of;
        memcpy(&of, dti_mailbox_of(self->sync, i, seq, 0)->inline_payload, sizeof of);
        places->data[i] = of.values;
        DTI_TRY(dti_block_row_append(places->start, i, of.count));
    }
    own->row->start = places->start;
    own->row->data = places->data;
    DTI_TRY(dti_block_row_sum_own(own->row));
    own->arrivals[1].payload = own->row->part;
    own->arrivals[1].payload_bytes = own->row->parts * own->row->reduction.accumulator_bytes;
    return DITTO_OK;
}

/* The sums are in the mailboxes of the last meeting. */
struct last_meeting {
    const struct dti_call *call;
    uint32_t seq;
};

static const unsigned char *sums_in_mailbox(void *context, const struct dti_block_row *r, uint32_t replica,
                                            uint32_t parts)
{
    const struct last_meeting *last = context;
    return dti_mailbox_payload(dti_mailbox_of(r->self->sync, replica, last->seq, 0), last->call,
                               parts * r->reduction.accumulator_bytes);
}

static ditto_status sum_here(struct dti_block_row *row, const struct dti_call *call,
                             struct dti_deadline *deadline)
{
    struct places places;
    struct own_sums own = { .row = row, .places = &places, .elements = { row->count, row->values } };
    own.arrivals[0].payload = &own.elements;
    own.arrivals[0].payload_bytes = sizeof own.elements;
    struct last_meeting last = { .call = call };
    DTI_TRY(dti_collective_with_results(row->self, call, sum_own, &own, own.arrivals, deadline, &last.seq));
    dti_block_row_finish(row, sums_in_mailbox, &last, call->dst);
    return DITTO_OK;
}

/* Computes the elements that other replicas may need. They exist until all replicas have met again, or left.
 */
static ditto_status make_head(struct dti_block_row *row, const struct dti_call *call)
{
    size_t count = row->count < DITTO_BLOCK_ELEMENTS ? row->count : DITTO_BLOCK_ELEMENTS - 1;
    uint32_t serial = dti_this_thread()->errors;
    void *head;
    ditto_status status = dti_replica_alloc(row->self, DITTO_BLOCK_ELEMENTS * row->reduction.element_bytes,
                                            DTI_CACHE_LINE, &head);
    if (status == DITTO_OK) {
        row->values = head;
        if (count != 0)
            status = row->function != NULL ? call_function(row, 0, count, head)
                                           : multiply(row, 0, count, head);
    }
    if (status == DITTO_OK)
        return DITTO_OK;
    return dti_leave_collective(row->self, dti_fail_function(row->self, call, status, serial));
}

static ditto_status sum(struct dti_block_row *row, const struct dti_call *call, struct dti_deadline *deadline)
{
    struct dti_replica *self = row->self;
    ditto_status status = row->compute != NULL ? make_head(row, call) : DITTO_OK;
    /* The function may have taken long, and only the wait for other replicas counts. If the run has a limit,
     * the deadline is a fixed time already (dti_replica_deadline). */
    if (row->function != NULL)
        *deadline = dti_replica_deadline(self, deadline->timeout_ms);
    if (status == DITTO_OK)
        status = self->sync->hosts == NULL ? sum_here(row, call, deadline)
                                           : dti_block_sum_on_hosts(row, call, deadline);
    if (row->compute != NULL)
        dti_arena_free(self->arena, (void *)(uintptr_t)row->values);
    return status;
}

ditto_status dti_block_sum(struct dti_replica *self, const struct dti_call *call,
                           const struct dti_block_elements *elements, struct dti_deadline *deadline)
{
    struct dti_block_row row = { .count = elements->count,
                                 .factor = { call->src, elements->factor },
                                 .function = elements->function,
                                 .user = elements->user,
                                 .dtype = call->dtype,
                                 .reduction = dti_flow_reduction(self->sync, call),
                                 .self = self,
                                 .n = self->all_replicas };
    if (elements->function != NULL)
        row.compute = call_function_outside;
    else if (elements->factor != NULL)
        row.compute = multiply;
    else
        row.values = call->src;
    struct dti_call own_call = *call;
    struct dti_fenv saved = dti_fenv_enter();
    own_call.more = &row;
    dti_call_begins(self, call);
    ditto_status status = sum(&row, &own_call, deadline);
    dti_call_ends(self, call);
    dti_fenv_leave(saved);
    return status;
}
