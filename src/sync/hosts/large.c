/* src/sync/hosts/large.c - large collectives over hosts, in blocks.
 *
 * The elements of a call are a row of blocks. A block is a list of pieces, each a range of elements of one
 * segment, and each piece has a slice for each host (slice_of). For block b all hosts take these steps:
 *   A  The replicas combine the parts of this host, in the buffer of partials. The driver sends the parts of
 *      slice j to host j.
 *   B  When the parts of the own slice have come from all hosts, the replicas combine and finish it, in the
 *      buffer of results. The driver sends it to the hosts that need it.
 *   C  When all slices have come, the replicas write the block to their destinations. If the call has a
 *      target, the replicas of each host compute what they write by its `finish`, so that all hosts change
 *      what belongs to the target (the slots of an optimizer) alike.
 * If elements are only moved, A is left out, and the host of the source has the whole block as its slice.
 *
 * A started operation is carried out by the driver, and replicas that wait take shares of its steps
 * (started.h). Otherwise the replicas of a host meet between the steps. A of block b + 1 comes before B of
 * block b, so the wire carries one block while the replicas work on another.
 *
 * Elements of a single replica of this host stay where they are for the own slice (stays).
 *
 * Invariants  I1  All buffers exist twice, and block b uses number b % 2. The driver waits for the sends of a
 *                 block before its buffers are used again.
 *             I2  Between two hosts, messages are sent and received in the same order: partials of block 0,
 *                 then for each block b the partials of b + 1 and the results of b.
 *             I3  In place, a source is overwritten in step C of its block. All replicas have finished B
 *                 then, which is the last step that reads it.
 * Source      Reduce-scatter and all-gather: Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005. */
#include "base/errors/status.h"
#include "base/waiting/stop.h"
#include "replicas/team/stopping.h"
#include "replicas/team/team.h"
#include "sync/algorithms/collective.h"
#include "sync/algorithms/flow.h"
#include "sync/hosts/hosts.h"
#include "sync/hosts/started.h"
#include "sync/meeting/access.h"
#include "sync/pending/pending.h"

#include <stdlib.h>
#include <string.h>

/* The most pieces of a block, and the bytes of its accumulators. The slice of a host is at least
 * SLICE_BYTES. */
#define BLOCK_PIECES 32
#define BLOCK_BYTES  ((size_t)1 << 20)
#define SLICE_BYTES  ((size_t)64 << 10)

/* What the data of one part of a slice may have more than an equal share of the block. A block of several
 * pieces has elements of a dtype. Of each piece a slice is rounded up to a cache line of elements, whose
 * accumulators are at most twice as large, and then to 16 bytes. A block of large elements has one piece, and
 * its slices differ by one element. */
#define SLACK_BYTES (DTI_TILE_BYTES + BLOCK_PIECES * (2 * (size_t)DTI_CACHE_LINE + 16))

struct piece {
    struct dti_segment segment;
    struct dti_reduction reduction; /* of its segment */
    size_t first, count;            /* elements of the segment */
};

struct hosts_block {
    uint32_t number;
    uint32_t pieces;
    struct piece piece[BLOCK_PIECES];

    /* [hosts + 1] Where the data of each host begin in the three buffers. */
    size_t *partials, *incoming, *results;
};

/* What the driver has begun for one block and one host. */
struct host_transfers {
    struct dti_transfer send_partials, receive_partials, send_results, receive_results;
};

struct dti_large_buffers {
    struct dti_kept kept;       /* first */
    unsigned char *partials[2]; /* own parts: of each host's slice, of each part, of each piece */
    unsigned char *incoming[2]; /* parts of the own slice: of each other host, of each part, of each piece */
    unsigned char *results[2];  /* the block: of each host's slice, of each piece */
    struct host_transfers *transfers[2]; /* [hosts] */
    unsigned char *memory;
};

/* A collective, as one thread works on it. */
struct large {
    const struct dti_hosts_call *c;
    const struct dti_hosts *hosts;
    struct dti_large_buffers *buffers;
    uint32_t own; /* host */

    /* Which share of a step this thread does, and of how many. */
    uint32_t share, shares;
};

typedef ditto_status large_step(const struct large *l, const struct hosts_block *b);

/* The walk over the blocks. */
struct hosts_walk {
    struct large l;
    struct dti_flow ahead;
    struct dti_segment segment;
    size_t at; /* of the segment */
    bool more;
    uint32_t blocks;

    /* Two blocks, by their numbers. */
    struct hosts_block block[2];

    /* For a step that runs on the driver. */
    const struct hosts_block *driven;
};

/* -- slices and places -- */

static bool is_combined(const struct piece *piece)
{
    return piece->segment.from == DTI_ALL;
}

/* Finds the slice of a piece that host `host` finishes: elements [*first, *end) of the piece. */
static void slice_of(const struct large *l, const struct piece *piece, uint32_t host, size_t *first,
                     size_t *end)
{
    const struct dti_segment *s = &piece->segment;
    size_t bytes = piece->reduction.element_bytes,
           grain = bytes < DTI_CACHE_LINE ? DTI_CACHE_LINE / bytes : 1;
    if (is_combined(piece) && s->to == DTI_ALL) {
        dti_tree_part(piece->count, dti_hosts_count(l->hosts), host, grain, first, end);
        return;
    }
    uint32_t owner = dti_hosts_of(l->hosts, is_combined(piece) ? s->to : s->from);
    *first = 0;
    *end = owner == host ? piece->count : 0;
}

static size_t slice_count(const struct large *l, const struct piece *piece, uint32_t host)
{
    size_t first, end;
    slice_of(l, piece, host, &first, &end);
    return end - first;
}

/* Data of the next piece or part begin at a multiple of 16 bytes. */
static size_t round_up(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* The bytes of one part of a host's slice of the pieces before `pieces`. */
static size_t part_bytes(const struct large *l, const struct hosts_block *b, uint32_t pieces, uint32_t host,
                         struct dti_span part)
{
    size_t bytes = 0;
    for (uint32_t k = 0; k < pieces; k++)
        if (is_combined(&b->piece[k]))
            bytes += round_up(slice_count(l, &b->piece[k], host) *
                              dti_part_bytes(part, &b->piece[k].reduction));
    return bytes;
}

/* The bytes of all parts that host `from` has of the slice of host `to`. */
static size_t partials_bytes(const struct large *l, const struct hosts_block *b, uint32_t from, uint32_t to)
{
    size_t bytes = 0;
    for (uint32_t p = l->hosts->part_start[from]; p < l->hosts->part_start[from + 1]; p++)
        bytes += part_bytes(l, b, b->pieces, to, l->hosts->part[p]);
    return bytes;
}

static size_t results_bytes(const struct large *l, const struct hosts_block *b, uint32_t pieces,
                            uint32_t host)
{
    size_t bytes = 0;
    for (uint32_t k = 0; k < pieces; k++)
        bytes += round_up(slice_count(l, &b->piece[k], host) * b->piece[k].reduction.element_bytes);
    return bytes;
}

static unsigned char *partials_for(const struct large *l, const struct hosts_block *b, uint32_t host)
{
    return l->buffers->partials[b->number % 2] + b->partials[host];
}

static unsigned char *incoming_from(const struct large *l, const struct hosts_block *b, uint32_t host)
{
    return l->buffers->incoming[b->number % 2] + b->incoming[host];
}

static unsigned char *results_of(const struct large *l, const struct hosts_block *b, uint32_t host)
{
    return l->buffers->results[b->number % 2] + b->results[host];
}

/* -- walking over blocks -- */

/* The bytes of a host's slice of a block that all hosts finish together, which are whole cache lines. */
static size_t slice_bytes(size_t hosts)
{
    size_t bytes = hosts > 1 ? BLOCK_BYTES / hosts / DTI_CACHE_LINE * DTI_CACHE_LINE : BLOCK_BYTES;
    return bytes > SLICE_BYTES ? bytes : SLICE_BYTES;
}

/* The bytes of a block, which are equal on all hosts. If one host finishes all of it, that host receives the
 * parts of all others, so the block is smaller. */
static size_t block_bytes(const struct hosts_walk *w)
{
    size_t hosts = dti_hosts_count(w->l.hosts), slice = slice_bytes(hosts);
    if (w->segment.from != DTI_ALL)
        return BLOCK_BYTES;
    return w->segment.to == DTI_ALL ? hosts * slice : slice;
}

/* Adds elements of the present segment to a block that has `bytes` already. Returns their bytes, or 0 if none
 * fits. */
static size_t add_piece(struct hosts_walk *w, struct hosts_block *b, size_t bytes, size_t most)
{
    const struct dti_reduction *r = &w->ahead.reduction;
    size_t width = r->accumulator_bytes, grain = width < DTI_CACHE_LINE ? DTI_CACHE_LINE / width : 1,
           room = (most - bytes) / width / grain * grain, left = w->segment.count - w->at;
    if (room == 0 || left == 0)
        return 0;
    struct piece *piece = &b->piece[b->pieces++];
    *piece = (struct piece){ w->segment, *r, w->at, left < room ? left : room };
    w->at += piece->count;
    return piece->count * width;
}

static bool next_block(struct hosts_walk *w)
{
    struct hosts_block *b = &w->block[w->blocks % 2];
    size_t bytes = 0, most = block_bytes(w);
    b->number = w->blocks;
    b->pieces = 0;
    while (w->more && b->pieces < BLOCK_PIECES) {
        bytes += add_piece(w, b, bytes, most);
        if (w->at != w->segment.count)
            break;
        w->more = dti_flow_next(&w->ahead, &w->segment);
        w->at = 0;
    }
    /* Finds the offsets of a block whose pieces are known. */
    b->partials[0] = b->incoming[0] = b->results[0] = 0;
    for (uint32_t h = 0; h < dti_hosts_count(w->l.hosts); h++) {
        b->partials[h + 1] = b->partials[h] + partials_bytes(&w->l, b, w->l.own, h);
        b->incoming[h + 1] = b->incoming[h] + (h != w->l.own ? partials_bytes(&w->l, b, h, w->l.own) : 0);
        b->results[h + 1] = b->results[h] + results_bytes(&w->l, b, b->pieces, h);
    }
    w->blocks += b->pieces != 0;
    return b->pieces != 0;
}

/* -- the steps of the replicas -- */

/* Finds this thread's share of `count` elements. */
static void share_of(const struct large *l, const struct piece *piece, size_t count, size_t *first,
                     size_t *end)
{
    size_t bytes = piece->reduction.element_bytes,
           grain = bytes < DTI_CACHE_LINE ? DTI_CACHE_LINE / bytes : 1;
    dti_tree_part(count, l->shares, l->share, grain, first, end);
}

/* Returns true if a part is one replica of this host, and the slice is this host's. Its elements are read
 * from their source in step B, and not copied before. A function of the user's gets memory of the strategy
 * only. */
static bool stays(const struct large *l, const struct piece *piece, uint32_t host, struct dti_span part)
{
    return host == l->own && part.end - part.first == 1 && piece->reduction.function == NULL;
}

/* Step A, for one piece and the slice of one host. */
static void combine_for(const struct large *l, const struct hosts_block *b, uint32_t k, uint32_t host)
{
    const struct piece *piece = &b->piece[k];
    const struct dti_hosts *hosts = l->hosts;
    unsigned char *out[DTI_TREE_PARTS], *at = partials_for(l, b, host);
    size_t first, end, from, to;
    slice_of(l, piece, host, &first, &end);
    share_of(l, piece, end - first, &from, &to);
    if (from == to)
        return;
    for (uint32_t p = 0; p < dti_hosts_parts(hosts, l->own); p++) {
        struct dti_span part = hosts->part[hosts->part_start[l->own] + p];
        out[p] = stays(l, piece, host, part)
                     ? NULL
                     : at + part_bytes(l, b, k, host, part) + from * dti_part_bytes(part, &piece->reduction);
        at += part_bytes(l, b, b->pieces, host, part);
    }
    l->c->flow->reduction = piece->reduction;
    dti_hosts_combine_parts(l->c, &piece->segment, piece->first + first + from, to - from, out);
}

static ditto_status step_a(const struct large *l, const struct hosts_block *b)
{
    for (uint32_t k = 0; k < b->pieces; k++)
        for (uint32_t h = 0; is_combined(&b->piece[k]) && h < dti_hosts_count(l->hosts); h++) {
            combine_for(l, b, k, h);
            if (l->c->flow->reduction.failed != DITTO_OK)
                return l->c->flow->reduction.failed;
        }
    return DITTO_OK;
}

/* Sets the places of all parts of this replica's share of the own slice of a piece. The share begins at
 * element `from` of the slice, and the slice at element `first` of the segment. */
static void find_parts(const struct large *l, const struct hosts_block *b, uint32_t k, size_t first,
                       size_t from, struct dti_tree_value *value)
{
    const struct dti_hosts *hosts = l->hosts;
    const struct piece *piece = &b->piece[k];
    for (uint32_t h = 0; h < dti_hosts_count(hosts); h++) {
        unsigned char *at = h == l->own ? partials_for(l, b, l->own) : incoming_from(l, b, h);
        for (uint32_t p = hosts->part_start[h]; p < hosts->part_start[h + 1]; p++) {
            struct dti_span part = hosts->part[p];
            const void *data = at + part_bytes(l, b, k, l->own, part) +
                               from * dti_part_bytes(part, &piece->reduction);
            if (stays(l, piece, h, part))
                data = dti_flow_source(l->c->flow, &piece->segment, (uint32_t)part.first - hosts->first) +
                       (first + from) * piece->reduction.element_bytes;
            value[p] = (struct dti_tree_value){ part.first, part.end, data };
            at += part_bytes(l, b, b->pieces, l->own, part);
        }
    }
}

static ditto_status step_b(const struct large *l, const struct hosts_block *b)
{
    struct dti_flow *flow = l->c->flow;
    struct dti_tree_value *value = dti_hosts_values(l->hosts, l->c->slot);
    for (uint32_t k = 0; k < b->pieces; k++) {
        const struct piece *piece = &b->piece[k];
        size_t first, end, from, to;
        slice_of(l, piece, l->own, &first, &end);
        share_of(l, piece, end - first, &from, &to);
        if (from == to)
            continue;
        unsigned char *out = results_of(l, b, l->own) + results_bytes(l, b, k, l->own) +
                             from * piece->reduction.element_bytes;
        flow->reduction = piece->reduction;
        if (is_combined(piece)) {
            find_parts(l, b, k, piece->first + first, from, value);
            dti_hosts_finish(l->c, to - from, value, out);
        } else {
            size_t bytes = piece->reduction.element_bytes;
            memcpy(out,
                   dti_flow_source(flow, &piece->segment, piece->segment.from - l->hosts->first) +
                       (piece->first + first + from) * bytes,
                   (to - from) * bytes);
        }
        if (flow->reduction.failed != DITTO_OK)
            return flow->reduction.failed;
    }
    return DITTO_OK;
}

/* Returns true if this host has destinations of a piece. */
static bool is_wanted(const struct large *l, const struct piece *piece)
{
    return piece->segment.to == DTI_ALL || dti_hosts_of(l->hosts, piece->segment.to) == l->own;
}

/* Writes elements to all destinations of this host, beginning at element `first` of the segment. */
static void write_elements(const struct large *l, const struct piece *piece, const unsigned char *elements,
                           size_t first, size_t count, uint32_t destinations, uint32_t far)
{
    struct dti_flow *flow = l->c->flow;
    const struct dti_target *target = flow->target;
    size_t bytes = flow->reduction.element_bytes, step = DTI_TILE_BYTES / bytes;
    char *tile = flow->workspace->scratch;
    if (target == NULL || target->finish == NULL) {
        dti_flow_write(flow, elements, first, count, destinations, far);
        return;
    }
    for (size_t at = 0; at < count; at += step) {
        size_t length = count - at < step ? count - at : step;
        memcpy(tile, elements + at * bytes, length * bytes);
        if (target->calls)
            dti_flow_suspend_access(flow);
        target->finish(target->context, l->c->self->index, piece->segment.index, first + at, length, tile,
                       tile);
        if (target->calls && !dti_flow_resume_access(flow))
            return;
        dti_flow_write(flow, tile, first + at, length, destinations, far);
    }
}

static ditto_status step_c(const struct large *l, const struct hosts_block *b)
{
    struct dti_flow *flow = l->c->flow;
    for (uint32_t k = 0; k < b->pieces; k++) {
        const struct piece *piece = &b->piece[k];
        struct dti_segment here = piece->segment; /* as the flow of this host numbers its replicas */
        uint32_t far;
        if (!is_wanted(l, piece))
            continue;
        here.to -= here.to != DTI_ALL ? l->hosts->first : 0;
        flow->reduction = piece->reduction;
        uint32_t destinations = dti_flow_destinations(flow, &here, 0, l->c->self->num_replicas, &far);
        for (uint32_t h = 0; h < dti_hosts_count(l->hosts); h++) {
            size_t first, end, from, to;
            slice_of(l, piece, h, &first, &end);
            share_of(l, piece, end - first, &from, &to);
            const unsigned char *result = results_of(l, b, h) + results_bytes(l, b, k, h);
            if (from != to)
                write_elements(l, piece, result + from * piece->reduction.element_bytes,
                               piece->first + first + from, to - from, destinations, far);
            if (flow->reduction.failed != DITTO_OK)
                return flow->reduction.failed;
        }
    }
    return DITTO_OK;
}

/* -- the steps of the driver -- */

static bool sends_results(const struct hosts_block *b)
{
    return b->piece[0].segment.to == DTI_ALL; /* the segments of a call have equal destinations */
}

static ditto_status begin_partials(const struct large *l, const struct hosts_block *b)
{
    struct host_transfers *transfers = l->buffers->transfers[b->number % 2];
    ditto_cluster *cluster = l->hosts->cluster;
    for (uint32_t step = 1; step < dti_hosts_count(l->hosts); step++) {
        uint32_t h = (l->own + step) % dti_hosts_count(l->hosts);
        size_t out = b->partials[h + 1] - b->partials[h], in = b->incoming[h + 1] - b->incoming[h];
        transfers[h] = (struct host_transfers){ 0 }; /* those of the block before the last are over */
        if (in != 0)
            DTI_TRY(dti_receive(cluster, h, incoming_from(l, b, h), in, &transfers[h].receive_partials));
        if (out != 0)
            DTI_TRY(dti_send(cluster, h, partials_for(l, b, h), out, &transfers[h].send_partials));
    }
    return DITTO_OK;
}

static ditto_status receive_results(const struct large *l, const struct hosts_block *b)
{
    struct host_transfers *transfers = l->buffers->transfers[b->number % 2];
    for (uint32_t h = 0; h < dti_hosts_count(l->hosts); h++) {
        size_t in = b->results[h + 1] - b->results[h];
        if (h != l->own && in != 0 && sends_results(b))
            DTI_TRY(
                dti_receive(l->hosts->cluster, h, results_of(l, b, h), in, &transfers[h].receive_results));
    }
    return DITTO_OK;
}

static ditto_status send_results(const struct large *l, const struct hosts_block *b)
{
    struct host_transfers *transfers = l->buffers->transfers[b->number % 2];
    size_t out = b->results[l->own + 1] - b->results[l->own];
    for (uint32_t step = 1; out != 0 && sends_results(b) && step < dti_hosts_count(l->hosts); step++) {
        uint32_t h = (l->own + step) % dti_hosts_count(l->hosts);
        DTI_TRY(dti_send(l->hosts->cluster, h, results_of(l, b, l->own), out, &transfers[h].send_results));
    }
    return DITTO_OK;
}

struct block_wait {
    const struct dti_hosts *hosts;
    const struct host_transfers *transfers;
    bool results; /* waits for all transfers of the block, else for the partials from other hosts */
};

static bool is_late(const struct block_wait *w, uint32_t host)
{
    const struct host_transfers *t = &w->transfers[host];
    return t->receive_partials.is_unfinished ||
           (w->results && (t->send_partials.is_unfinished || t->send_results.is_unfinished ||
                           t->receive_results.is_unfinished));
}

static bool transfers_over(void *argument)
{
    const struct block_wait *w = argument;
    uint32_t host = 0;
    while (host < dti_hosts_count(w->hosts) && !is_late(w, host))
        host++;
    return host == dti_hosts_count(w->hosts) || dti_headers_end_early(w->hosts->cluster);
}

static bool has_failed(const struct host_transfers *t)
{
    return t->receive_partials.status != DITTO_OK || t->send_partials.status != DITTO_OK ||
           t->receive_results.status != DITTO_OK || t->send_results.status != DITTO_OK;
}

static ditto_status await(const struct large *l, const struct hosts_block *b, bool results)
{
    struct block_wait w = { l->hosts, l->buffers->transfers[b->number % 2], results };
    struct dti_limits limits = dti_hosts_limits(l->c);
    enum dti_wait_end end = dti_cluster_wait(l->hosts->cluster, &limits, transfers_over, &w);
    bool late[DTI_MAX_HOSTS], over = true;
    if (end == DTI_WAIT_STOPPED || end == DTI_WAIT_FAILED)
        return dti_hosts_fail_wait(l->c, end);
    for (uint32_t h = 0; h < dti_hosts_count(l->hosts); h++) {
        late[h] = is_late(&w, h);
        over &= !late[h];
        if (!late[h] && has_failed(&w.transfers[h])) {
            DTI_FAIL(DITTO_ERR_SYSTEM, "the wire could not exchange data with host %u (%s)", h,
                     l->hosts->cluster->name[h]);
            return dti_hosts_fail_wait(l->c, DTI_WAIT_FAILED);
        }
    }
    if (over)
        return DITTO_OK;
    return end == DTI_WAIT_LATE ? dti_hosts_fail_late(l->c, &limits, late) : dti_hosts_fail_wait(l->c, end);
}

/* Allocates the buffers when the first large collective needs them. Every host does so in the same call. */
static ditto_status make_buffers(struct dti_hosts *hosts)
{
    size_t count = dti_hosts_count(hosts), parts = hosts->part_start[count],
           own = dti_hosts_parts(hosts, dti_hosts_own(hosts)), slice = slice_bytes(count);
    size_t block = count * slice > BLOCK_BYTES ? count * slice : BLOCK_BYTES,
           partials = own * (block + count * SLACK_BYTES), incoming = (parts - own) * (slice + SLACK_BYTES),
           bytes = partials + incoming + block + count * SLACK_BYTES;
    bytes = (bytes + DTI_CACHE_LINE_PAIR - 1) / DTI_CACHE_LINE_PAIR * DTI_CACHE_LINE_PAIR;
    struct dti_large_buffers *buffers = calloc(1, sizeof *buffers);
    if (buffers == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for messages between hosts");
    buffers->memory = aligned_alloc(DTI_CACHE_LINE_PAIR, 2 * bytes);
    bool complete = buffers->memory != NULL;
    for (size_t i = 0; complete && i < 2; i++) {
        unsigned char *at = buffers->memory + i * bytes;
        buffers->transfers[i] = calloc(count + 1, sizeof *buffers->transfers[i]);
        buffers->partials[i] = at;
        buffers->incoming[i] = at + partials;
        buffers->results[i] = at + partials + incoming;
        complete = buffers->transfers[i] != NULL;
    }
    if (!complete) {
        dti_large_buffers_free(buffers);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for messages between %zu hosts (%zu bytes)", count,
                        2 * bytes);
    }
    hosts->large = buffers;
    return DITTO_OK;
}

void dti_large_buffers_free(struct dti_large_buffers *buffers)
{
    if (buffers == NULL)
        return;
    free(buffers->transfers[0]);
    free(buffers->transfers[1]);
    free(buffers->memory);
    free(buffers);
}

void dti_large_buffers_keep(ditto_cluster *cluster, struct dti_large_buffers *buffers)
{
    if (buffers != NULL)
        dti_cluster_keep_memory(cluster, &buffers->kept);
}

/* -- a collective -- */

static ditto_status drive_begin(const struct dti_hosts_call *c)
{
    DTI_TRY(dti_hosts_begin(c, 0, dti_hosts_combine_nothing));
    if (c->hosts->large == NULL && make_buffers(c->hosts) != DITTO_OK)
        return dti_hosts_fail_wait(c, DTI_WAIT_FAILED);
    return DITTO_OK;
}

static struct hosts_walk *walk_of(const struct dti_hosts_call *c)
{
    return c->step;
}

/* The wire is busy with the partials of one block while the replicas combine the next one. */
static ditto_status drive_first(const struct dti_hosts_call *c)
{
    struct hosts_walk *w = walk_of(c);
    if (begin_partials(&w->l, w->driven) != DITTO_OK)
        return dti_hosts_fail_wait(c, DTI_WAIT_FAILED);
    return DITTO_OK;
}

static ditto_status drive_before_b(const struct dti_hosts_call *c)
{
    struct hosts_walk *w = walk_of(c);
    const struct hosts_block *b = w->driven, *next = &w->block[(b->number + 1) % 2];
    if ((next->number == b->number + 1 && next->pieces != 0 && begin_partials(&w->l, next) != DITTO_OK) ||
        receive_results(&w->l, b) != DITTO_OK)
        return dti_hosts_fail_wait(c, DTI_WAIT_FAILED);
    return await(&w->l, b, false);
}

static ditto_status drive_after_b(const struct dti_hosts_call *c)
{
    struct hosts_walk *w = walk_of(c);
    if (send_results(&w->l, w->driven) != DITTO_OK)
        return dti_hosts_fail_wait(c, DTI_WAIT_FAILED);
    return await(&w->l, w->driven, true);
}

/* A step of a started operation. */
struct shared {
    const struct large *l;
    large_step *step;
    const struct hosts_block *b;
};

/* A dti_step_share_fn. The target, if there is one, is that of the replica in whose name the thread works. */
static void do_share(void *argument, const struct dti_worker *worker, uint32_t share)
{
    const struct shared *shared = argument;
    const struct large *l = shared->l;
    const struct dti_pending_operation *operation = dti_pending_operation_of(
        worker->sync, worker->self->index, l->c->started);
    struct dti_flow flow = *l->c->flow;
    struct dti_hosts_call c = *l->c;
    flow.self = worker->self;
    flow.me = &worker->sync->state[worker->self->index];
    flow.workspace = worker->workspace;
    flow.call = &operation->call;
    flow.target = operation->target;
    c.self = worker->self;
    c.call = &operation->call;
    c.flow = &flow;
    c.slot = worker->slot;
    struct large own = {
        .c = &c, .hosts = l->hosts, .buffers = l->buffers, .own = l->own, .share = share, .shares = l->shares
    };
    (void)shared->step(&own, shared->b); /* it calls no function of the user's, so it does not fail */
}

/* Calls a step of this replica, with access to the buffers of the others. */
static ditto_status perform(const struct large *l, large_step *step, const struct hosts_block *b)
{
    struct dti_replica *self = l->c->self;
    uint32_t serial = dti_this_thread()->errors;
    if (l->c->started != 0) {
        struct shared shared = { l, step, b };
        dti_started_share(l->c, do_share, &shared);
        return DITTO_OK;
    }
    if (!dti_access_begin(self))
        return dti_leave_collective(self, dti_team_stop_status(self->team));
    ditto_status status = step(l, b);
    dti_access_end(self);
    if (status == DITTO_OK)
        return DITTO_OK;
    if (!dti_stopped(self->stop))
        status = dti_fail_function(self, l->c->call, status, serial);
    return dti_leave_collective(self, status);
}

/* The driver does its part of a step. All replicas meet before it and after it, unless the driver carries out
 * a started operation. */
static ditto_status drive(struct hosts_walk *w, const struct hosts_block *b,
                          ditto_status (*work)(const struct dti_hosts_call *c))
{
    w->driven = b;
    if (w->l.c->started != 0)
        return work(w->l.c);
    DTI_TRY(dti_hosts_meet(w->l.c));
    DTI_TRY(dti_hosts_drive(w->l.c, work));
    return dti_hosts_meet(w->l.c);
}

ditto_status dti_hosts_large(const struct dti_hosts_call *given)
{
    struct dti_hosts_call c = *given;
    struct hosts_walk w = { .l = { .c = &c,
                                   .hosts = c.hosts,
                                   .own = dti_hosts_own(c.hosts),
                                   .share = c.self->index,
                                   .shares = c.self->num_replicas },
                            .ahead = *c.flow };
    size_t hosts = dti_hosts_count(c.hosts);
    for (size_t i = 0; i < 2; i++) {
        size_t *offsets = c.hosts->offsets + DTI_LARGE_OFFSETS(hosts) * c.slot + 3 * i * (hosts + 1);
        w.block[i].partials = offsets;
        w.block[i].incoming = offsets + hosts + 1;
        w.block[i].results = offsets + 2 * (hosts + 1);
    }
    c.step = &w;
    bool started = c.started != 0;
    DTI_TRY(started ? drive_begin(&c) : dti_hosts_drive(&c, drive_begin));
    if (!started)
        DTI_TRY(dti_hosts_meet(&c));
    w.l.buffers = c.hosts->large;
    w.more = dti_flow_begin(&w.ahead, &w.segment);
    bool more = next_block(&w);
    if (more) {
        DTI_TRY(perform(&w.l, step_a, &w.block[0]));
        DTI_TRY(drive(&w, &w.block[0], drive_first));
    }
    for (uint32_t number = 0; more; number++) {
        const struct hosts_block *now = &w.block[number % 2];
        w.block[(number + 1) % 2].pieces = 0;
        more = next_block(&w);
        if (more)
            DTI_TRY(perform(&w.l, step_a, &w.block[(number + 1) % 2]));
        DTI_TRY(drive(&w, now, drive_before_b));
        DTI_TRY(perform(&w.l, step_b, now));
        DTI_TRY(drive(&w, now, drive_after_b));
        DTI_TRY(perform(&w.l, step_c, now));
    }
    return started ? DITTO_OK : dti_hosts_meet(&c);
}
