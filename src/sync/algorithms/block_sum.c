/* src/sync/algorithms/block_sum.c - sums over fixed blocks of a global row.
 *
 * The sums of the blocks are combined along one tree. A block belongs to the replica that has its first
 * element. That replica reads the rest of the block from other replicas' buffers. Each replica sums its
 * blocks to the largest subtrees that they form. In a last meeting all replicas receive the sums of these
 * subtrees, and each combines them by itself. */
#include "sync/algorithms/collective.h"
#include "sync/algorithms/flow.h"
#include "sync/meeting/meeting.h"

#include <string.h>

/* The largest number of subtrees of a span of blocks, which is two for each bit of a size_t. */
#define MOST_PARTS 128

/* The number of bytes of the largest accumulator. */
#define MOST_BYTES  16
#define BLOCK_BYTES ((size_t)DITTO_BLOCK_ELEMENTS * MOST_BYTES)

/* The row, as one replica sees it. */
struct row {
    /* The replica's elements. Other replicas read these two members. */
    const char *values;
    size_t count;

    struct dti_reduction reduction;
    struct dti_replica *self;

    /* Where each replica's elements begin in the row. */
    size_t start[DITTO_MAX_REPLICAS + 1];

    /* The struct row of each replica. */
    const struct row *of[DITTO_MAX_REPLICAS];

    /* The number of this replica's subtrees of blocks. */
    uint32_t parts;

    /* The sums of these subtrees. */
    alignas(MOST_BYTES) unsigned char part[MOST_PARTS * MOST_BYTES];
};

/* -- one block -- */

/* Copies elements [first, end) of the row from the replicas that have them. */
static void collect(const struct row *r, size_t first, size_t end, char *out)
{
    size_t bytes = r->reduction.element_bytes;
    uint32_t i = 0;
    while (first < end) {
        while (r->start[i + 1] <= first)
            i++;
        size_t upto = r->start[i + 1] < end ? r->start[i + 1] : end;
        memcpy(out, r->of[i]->values + (first - r->start[i]) * bytes, (upto - first) * bytes);
        out += (upto - first) * bytes;
        first = upto;
    }
}

static void sum_block(const struct row *r, size_t block, void *sum)
{
    char *elements = r->self->sync->state[r->self->index].workspace.scratch, *wide = elements + BLOCK_BYTES;
    size_t total = r->start[r->self->num_replicas], first = block * DITTO_BLOCK_ELEMENTS;
    size_t end = total - first < DITTO_BLOCK_ELEMENTS ? total : first + DITTO_BLOCK_ELEMENTS;
    collect(r, first, end, elements);
    if (r->reduction.kernel->widen != NULL) {
        r->reduction.kernel->widen(wide, elements, end - first);
        elements = wide;
    }
    dti_fold_rows(r->reduction.kernel, elements, end - first, 1, r->reduction.accumulator_bytes);
    memcpy(sum, elements, r->reduction.accumulator_bytes);
}

/* -- the tree over blocks -- */

/* Returns true and stores the sum of the blocks of `span` if that sum is available. If it returns false,
 * sum_span asks for the two halves of the span. */
typedef bool find_sum(void *context, struct dti_span span, void *sum);

static void sum_span(const struct row *r, struct dti_span span, find_sum *find, void *context, void *sum)
{
    alignas(MOST_BYTES) char right[MOST_BYTES];
    if (find(context, span, sum))
        return;
    size_t middle = dti_tree_split(span.first, span.end);
    sum_span(r, (struct dti_span){ span.first, middle }, find, context, sum);
    sum_span(r, (struct dti_span){ middle, span.end }, find, context, right);
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
static size_t blocks_before(const struct row *r, uint32_t replica)
{
    size_t element = r->start[replica];
    return element / DITTO_BLOCK_ELEMENTS + (element % DITTO_BLOCK_ELEMENTS != 0);
}

static uint32_t subtrees_of(const struct row *r, uint32_t replica, struct dti_span *part)
{
    struct dti_span own_blocks = { blocks_before(r, replica), blocks_before(r, replica + 1) };
    struct dti_tree tree = { .n = blocks_before(r, r->self->num_replicas) };
    return dti_tree_subtrees(&tree, own_blocks, part);
}

static ditto_status sum_own(struct dti_replica *self, uint32_t seq, void *context)
{
    struct row *r = context;
    struct dti_span part[MOST_PARTS];
    r->start[0] = 0;
    for (uint32_t i = 0; i < self->num_replicas; i++) {
        r->of[i] = dti_call_of(self->sync, i, seq)->more;
        /* The sum cannot overflow, because all elements are in one address space. */
        r->start[i + 1] = r->start[i] + r->of[i]->count;
    }
    r->parts = subtrees_of(r, self->index, part);
    for (uint32_t p = 0; p < r->parts; p++)
        sum_span(r, part[p], find_block_sum, r, r->part + p * r->reduction.accumulator_bytes);
    return DITTO_OK;
}

/* A walk over the subtrees of all replicas, in order. Their sums are in the mailboxes of meeting seq. The
 * present subtrees, part[next] to part[parts - 1], belong to the replica before `replica`. */
struct cursor {
    const struct row *row;
    uint32_t seq, replica, next, parts;
    struct dti_span part[MOST_PARTS];
};

static bool find_part_sum(void *context, struct dti_span span, void *sum)
{
    struct cursor *c = context;
    struct dti_sync *sync = c->row->self->sync;
    size_t bytes = c->row->reduction.accumulator_bytes;
    while (c->next == c->parts) {
        c->parts = subtrees_of(c->row, c->replica++, c->part);
        c->next = 0;
    }
    if (c->part[c->next].first != span.first || c->part[c->next].end != span.end)
        return false;
    memcpy(sum, dti_mailbox_of(sync, c->replica - 1, c->seq, 0)->payload + c->next++ * bytes, bytes);
    return true;
}

static ditto_status sum_all(struct row *r, const struct dti_call *call, struct dti_deadline *deadline)
{
    /* The arrival has more bytes than the inline payload, so that readers find the sums at the same place. */
    size_t bytes = r->parts * r->reduction.accumulator_bytes;
    struct dti_arrival arrival = { .call = call,
                                   .payload = r->part,
                                   .payload_bytes = bytes > DTI_INLINE_PAYLOAD_BYTES
                                                        ? bytes
                                                        : DTI_INLINE_PAYLOAD_BYTES + 1,
                                   .goes_on = true };
    arrival.next_bytes = arrival.payload_bytes;
    struct cursor c = { .row = r };
    size_t blocks = blocks_before(r, r->self->num_replicas);
    alignas(MOST_BYTES) char sum[MOST_BYTES];
    *deadline = dti_replica_deadline(r->self, deadline->timeout_ms);
    DTI_TRY(dti_meet(r->self, &arrival, deadline, &c.seq));
    if (blocks == 0) {
        memset(call->dst, 0, call->element_bytes);
        return DITTO_OK;
    }
    sum_span(r, (struct dti_span){ 0, blocks }, find_part_sum, &c, sum);
    dti_finish(&r->reduction, 1, sum, sum, 1, call->dst);
    return DITTO_OK;
}

ditto_status dti_block_sum(struct dti_replica *self, const struct dti_call *call, size_t count,
                           struct dti_deadline *deadline)
{
    struct row row = {
        .values = call->src, .count = count, .reduction = dti_flow_reduction(self->sync, call), .self = self
    };
    struct dti_call own_call = *call;
    struct dti_fenv saved = dti_fenv_enter();
    own_call.more = &row;
    dti_call_begins(self, call);
    ditto_status status = dti_collective_with_access(self, &own_call, sum_own, &row, deadline);
    if (status == DITTO_OK)
        status = sum_all(&row, &own_call, deadline);
    dti_call_ends(self, call);
    dti_fenv_leave(saved);
    return status;
}
