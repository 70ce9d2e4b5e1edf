/* bench/bound_forms.c - hand-written collectives for single cases. The fastest form of a row is its bound.
 *
 * All forms give the same guarantee about order as ditto: a replica returns only after all replicas have
 * called. All forms that may be the fastest belong here. If ditto or a peer is faster than all forms, one is
 * missing. */
#include "bound.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    SLOT_BYTES = 8192,
    SLOT_TEAM = 64,
    COPY_BYTES = 1 << 20,
    LARGE_SLOT_BYTES = 8 << 20,
    LEAST_STREAM = 1 << 10,
    SLOT_SHIFT = 384, /* so that the same offsets of all slots are not in the same set of a cache */
    STRIPE_BYTES = 16 << 10
};

/* -- between two meetings -- */

static inline void meet(const struct form *form, uint32_t id)
{
    form->ops.barrier((void *)(uintptr_t)form, id);
}

/* Each replica owns an index range, and makes that range of the result for all replicas. */
static void owners(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    const struct form *form = context;
    const char *in[WORK_MOST_REPLICAS];
    loops_sources(work, w, in);
    meet(form, id);
    loops_produce(form->variant, work, in, w, loops_share(work, id), id, true);
    meet(form, id);
}

/* The same with stripes. Each replica owns every n-th stripe, and not one range, of which a part may have
 * left the caches of the replica that wrote it. */
static void stripes(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    const struct form *form = context;
    const char *in[WORK_MOST_REPLICAS];
    loops_sources(work, w, in);
    meet(form, id);
    for (size_t at = id * (size_t)STRIPE_BYTES; at < work->bytes; at += work->replicas * (size_t)STRIPE_BYTES)
        loops_produce(form->variant, work, in, w,
                      loops_common((struct span){ at, at + STRIPE_BYTES }, (struct span){ 0, work->bytes }),
                      id, true);
    meet(form, id);
}

/* Each replica makes its own result. */
static void pull(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    const struct form *form = context;
    const char *in[WORK_MOST_REPLICAS];
    loops_sources(work, w, in);
    meet(form, id);
    loops_produce(form->variant, work, in, w, work_output(work, id), id, false);
    meet(form, id);
}

/* Each replica that has an input writes it to all replicas. */
static void push(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    const struct form *form = context;
    const char *in[WORK_MOST_REPLICAS];
    loops_sources(work, w, in);
    meet(form, id);
    loops_produce(form->variant, work, in, w, work_input(work, id), id, true);
    meet(form, id);
}

/* Each replica reads the first half of each part, and writes the second half of its own part to all. So data
 * moves in both directions at the same time. */
static void halves(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    const struct form *form = context;
    const char *in[WORK_MOST_REPLICAS];
    loops_sources(work, w, in);
    meet(form, id);
    for (uint32_t i = 0; i < work->replicas; i++) {
        uint32_t r = id + i < work->replicas ? id + i : id + i - work->replicas;
        struct span part = work_part(work, r), first = part;
        first.end = part.first = part.first + (part.end - part.first) / 128 * 64;
        loops_produce(form->variant, work, in, w, first, id, false);
        if (r == id)
            loops_produce(form->variant, work, in, w, part, id, true);
    }
    meet(form, id);
}

/* -- one meeting: messages are copied to slots, which are reused in the next but one meeting. Each replica
 *    reads its own message from its source, because others have taken the lines of its slot -- */

static alignas(128) char slots[SLOT_TEAM][2][SLOT_BYTES];

/* The slots of messages of more than SLOT_BYTES. Their pages are touched when they are used. */
static char *large_slots;

void bound_slots_open(const struct form *form, uint32_t replicas)
{
    size_t huge_page = (size_t)2 << 20, bytes = 2 * (size_t)replicas * LARGE_SLOT_BYTES + huge_page;
    if (form->most_bytes <= SLOT_BYTES || large_slots != NULL)
        return;
    large_slots = aligned_alloc(huge_page, bytes);
    if (large_slots == NULL) {
        perror("ditto-bench: the slots of large messages");
        exit(1);
    }
    madvise(large_slots, bytes, MADV_HUGEPAGE);
}

void bound_slots_close(void)
{
    free(large_slots);
    large_slots = NULL;
}

static char *large_slot(uint32_t id, uint32_t parity)
{
    return large_slots + (2 * (size_t)id + parity) * (LARGE_SLOT_BYTES + SLOT_SHIFT);
}

/* The loop of forms that read slots. In VARIANT_PLAIN, the sum of more than two inputs passes through a block
 * in the first-level cache, which is slow for small messages. */
static enum variant slot_variant(const struct work *work)
{
    return work->replicas == 2 ? VARIANT_PLAIN : VARIANT_REGISTERS;
}

/* In VARIANT_AHEAD, prefetches the lines to which the next message will be written. Other replicas have read
 * them in the last meeting but one. */
static void fetch_next(const struct form *form, const char *next_slot, size_t bytes)
{
    for (size_t at = 0; form->variant == VARIANT_AHEAD && at < bytes; at += 64)
        fetch_to_write(next_slot + at);
}

/* Copies to a slot what other replicas need of an input. A part of a sum that a replica makes alone, its part
 * for itself, and the last input of a scan are read from the source. */
static void copy_to_slot(const struct form *form, const struct work *work, uint32_t id, char *slot,
                         const char *src)
{
    enum bench_kind kind = bench_facts[work->kind].like;
    struct span input = work_input(work, id), own = work_output(work, id),
                part[2] = { input, { input.end, input.end } };
    if (kind == BENCH_GATHER && id == work->root)
        return;
    if (kind == BENCH_SCATTER || kind == BENCH_ALL_TO_ALL)
        own = work_part(work, id);
    if ((kind == BENCH_REDUCE || kind == BENCH_REDUCE_SCATTER || kind == BENCH_SCATTER ||
         kind == BENCH_ALL_TO_ALL) &&
        own.end > own.first && input.end > input.first) {
        part[0].end = own.first;
        part[1].first = own.end;
    }
    if (work_scans(kind) && id + 1 == work->replicas)
        part[0].end = part[0].first;
    for (int i = 0; i < 2; i++)
        if (form->variant == VARIANT_STREAM)
            loops_copy(VARIANT_STREAM, slot, src, part[i]);
        else
            memcpy(slot + part[i].first, src + part[i].first, part[i].end - part[i].first);
}

static void in_slots(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    const struct form *form = context;
    uint32_t parity = (bound_episode[id].count + 1) & 1;
    bool large = form->most_bytes > SLOT_BYTES;
    struct span input = work_input(work, id);
    char *own_slot = large ? large_slot(id, parity) : slots[id][parity];
    const char *in[SLOT_TEAM];
    copy_to_slot(form, work, id, own_slot, w[id].src);
    if (form->variant == VARIANT_DEMOTE)
        demote(own_slot + input.first, input.end - input.first);
    for (uint32_t r = 0; r < work->replicas; r++)
        in[r] = r == id ? w[id].src : large ? large_slot(r, parity) : slots[r][parity];
    meet(form, id);
    loops_produce(slot_variant(work), work, in, w, work_output(work, id), id, false);
    fetch_next(form, slots[id][parity ^ 1] + input.first, input.end - input.first);
}

/* The same in chunks. Each chunk has a flag in its last line, so the first chunk is read while the last one
 * is copied. */
enum { CHUNK_BYTES = 496, CHUNKS = SLOT_BYTES / CHUNK_BYTES + 1 };
static struct chunk {
    alignas(CHUNK_BYTES + 16) char bytes[CHUNK_BYTES];
    _Atomic uint32_t word;
} chunks[SLOT_TEAM][2][CHUNKS];

static struct span chunk_span(const struct work *work, size_t k)
{
    return loops_common((struct span){ 0, work->bytes },
                        (struct span){ k * CHUNK_BYTES, (k + 1) * CHUNK_BYTES });
}

static void in_chunks(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    uint32_t e = ++bound_episode[id].count;
    size_t count = (work->bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
    const char *in[SLOT_TEAM];
    (void)context;
    for (size_t k = 0; k < count; k++) {
        struct chunk *chunk = &chunks[id][e & 1][k];
        struct span s = loops_common(chunk_span(work, k), work_input(work, id));
        memcpy(chunk->bytes + (s.first - k * CHUNK_BYTES) * (s.end > s.first), w[id].src + s.first,
               s.end - s.first);
        atomic_store_explicit(&chunk->word, e, memory_order_release);
    }
    for (size_t k = 0; k < count; k++) {
        for (uint32_t r = 0; r < work->replicas; r++) {
            struct chunk *chunk = &chunks[r][e & 1][k];
            /* The address where the source would begin if it were contiguous. */
            in[r] = r == id ? w[id].src : (const char *)((uintptr_t)chunk->bytes - k * CHUNK_BYTES);
            if (r == id) /* its line, too, may have moved to another replica */
                continue;
            while (atomic_load_explicit(&chunk->word, memory_order_acquire) != e)
                if (bound_team.oversubscribed)
                    sched_yield();
        }
        loops_produce(slot_variant(work), work, in, w,
                      loops_common(chunk_span(work, k), work_output(work, id)), id, false);
    }
}

/* The message begins in the line of the flag. If it has at most 48 bytes, only this one line moves from each
 * replica. */
static struct payload_slot {
    alignas(128) _Atomic uint32_t word;
    alignas(16) char payload[SLOT_BYTES];
} payload_slots[SLOT_TEAM][2];

static void with_payloads(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    const struct form *form = context;
    uint32_t e = ++bound_episode[id].count, team = bound_team.size;
    struct span input = work_input(work, id);
    struct payload_slot *own_slot = &payload_slots[id][e & 1];
    const char *in[SLOT_TEAM];
    memcpy(own_slot->payload + input.first, w[id].src + input.first, input.end - input.first);
    atomic_store_explicit(&own_slot->word, e, memory_order_release);
    if (form->variant == VARIANT_DEMOTE)
        demote(own_slot, 16 + input.end);
    for (uint32_t r = 0; r < team; r++) {
        in[r] = r == id ? w[id].src : payload_slots[r][e & 1].payload;
        if (r == id) /* its line, too, may have moved to another replica */
            continue;
        while (atomic_load_explicit(&payload_slots[r][e & 1].word, memory_order_acquire) != e)
            if (bound_team.oversubscribed)
                sched_yield();
            else
                PAUSE();
    }
    loops_produce(slot_variant(work), work, in, w, work_output(work, id), id, false);
    fetch_next(form, (const char *)&payload_slots[id][(e + 1) & 1], 16 + input.end);
}

/* -- two meetings and slots: each replica makes a share of the result in its slot and in its own result, and
 *    copies the other shares from the slots of their owners. So no replica writes to a line of another one,
 *    which would have to be fetched to be written and fetched back to be read -- */

static void make_share_in_slot(const struct form *form, uint32_t id, const struct work *work,
                               struct worker *w, const char *const *in, uint32_t parity)
{
    uint32_t n = work->replicas;
    char *const out[2] = { w[id].dst, large_slot(id, parity) };
    meet(form, id);
    loops_sum(form->variant, work->dtype, out, 2, in, n, loops_share(work, id));
    meet(form, id);
    for (uint32_t i = 1; i < n; i++) {
        uint32_t r = id + i < n ? id + i : id + i - n;
        loops_copy(form->variant, w[id].dst, large_slot(r, parity), loops_share(work, r));
    }
}

/* Slots are written after a meeting to which all replicas have come from their last copy, so one slot of a
 * replica is enough. */
static void shares(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    const char *in[WORK_MOST_REPLICAS];
    loops_sources(work, w, in);
    make_share_in_slot(context, id, work, w, in, 0);
}

/* The same after a copy of all inputs to slots. While a replica copies its next input, others may still read
 * its slot of this one. So two slots are used in turn. This form has two meetings, and any other meeting
 * between two of these makes each slot free. */
static void two_copies(void *context, uint32_t id, const struct work *work, struct worker *w)
{
    uint32_t parity = bound_episode[id].count / 2 & 1;
    const char *in[SLOT_TEAM];
    loops_copy(VARIANT_PLAIN, large_slot(id, parity), w[id].src, work_input(work, id));
    for (uint32_t r = 0; r < work->replicas; r++)
        in[r] = r == id ? w[id].src : large_slot(r, parity);
    make_share_in_slot(context, id, work, w, in, parity);
}

/* -- the table -- */

enum {
    BARRIER = 1u << BENCH_BARRIER,
    FORK = 1u << BENCH_RUN | 1u << BENCH_PARALLEL_FOR,
    ALL_REDUCE = 1u << BENCH_ALL_REDUCE,
    GATHER = 1u << BENCH_ALL_GATHER,
    BROADCAST = 1u << BENCH_BROADCAST,
    SCATTER = 1u << BENCH_REDUCE_SCATTER,
    REDUCE = 1u << BENCH_REDUCE,
    TO_ROOT = 1u << BENCH_GATHER,
    FROM_ROOT = 1u << BENCH_SCATTER,
    TRANSPOSE = 1u << BENCH_ALL_TO_ALL,
    MOVED = TO_ROOT | FROM_ROOT | TRANSPOSE,
    SCANS = 1u << BENCH_SCAN | 1u << BENCH_SCAN_EXCLUSIVE,
    EVERY = ALL_REDUCE | GATHER | BROADCAST | SCATTER | REDUCE | MOVED | SCANS,
    SHARED = ALL_REDUCE | BROADCAST | REDUCE | SCANS, /* owners can make ranges of the result */
    MIDDLE = 8 * 1024,
    LARGE = 256 * 1024,
};

#define ALONE      .for_own_pus = true
#define SHARED_PUS .for_shared_pus = true
const struct form bound_forms[] = {
    /* Barriers. Those that are listed for a collective are also used with a loop between two of them. */
    { "flags", { flags_barrier, owners }, BARRIER | FORK | SHARED, ALONE },
    { "eager", { eager_barrier, owners }, BARRIER | SHARED, ALONE },
    { "eager-ahead", { eager_ahead_barrier, owners }, BARRIER | SHARED, ALONE },
    { "exchange", { exchange_barrier, owners }, BARRIER, ALONE },
    { "one-line", { one_line_barrier, owners }, BARRIER, .most_team = 16, ALONE },
    { "rounds", { rounds_barrier, owners }, BARRIER, .least_team = 3, ALONE },
    { "demote", { demote_barrier, owners }, BARRIER | SHARED, VARIANT_DEMOTE, ALONE },
    { "yield", { yield_barrier, owners }, BARRIER | FORK | SHARED, SHARED_PUS },
    { "flags-yield", { flags_yield_barrier, owners }, BARRIER | ALL_REDUCE, SHARED_PUS },
    /* Forms with one meeting. */
    { "rider",
      { flags_barrier, with_payloads },
      EVERY,
      .most_bytes = SLOT_BYTES,
      .most_team = SLOT_TEAM,
      ALONE },
    { "rider-demote",
      { demote_barrier, with_payloads },
      EVERY,
      VARIANT_DEMOTE,
      0,
      SLOT_BYTES,
      .most_team = SLOT_TEAM,
      ALONE },
    { "rider-yield",
      { yield_barrier, with_payloads },
      EVERY,
      .most_bytes = SLOT_BYTES,
      .most_team = SLOT_TEAM,
      SHARED_PUS },
    { "slots", { eager_barrier, in_slots }, EVERY, .most_bytes = SLOT_BYTES, .most_team = SLOT_TEAM, ALONE },
    { "slots-demote",
      { demote_barrier, in_slots },
      EVERY,
      VARIANT_DEMOTE,
      0,
      SLOT_BYTES,
      .most_team = SLOT_TEAM,
      ALONE },
    { "rider-ahead",
      { flags_barrier, with_payloads },
      EVERY,
      VARIANT_AHEAD,
      0,
      SLOT_BYTES,
      .most_team = SLOT_TEAM,
      ALONE },
    { "slots-ahead",
      { eager_ahead_barrier, in_slots },
      EVERY,
      VARIANT_AHEAD,
      0,
      SLOT_BYTES,
      .most_team = SLOT_TEAM,
      ALONE },
    { "chunks",
      { eager_barrier, in_chunks },
      EVERY & ~TRANSPOSE,
      .most_bytes = SLOT_BYTES,
      .most_team = SLOT_TEAM,
      ALONE },
    { "slots-yield",
      { yield_barrier, in_slots },
      EVERY,
      .most_bytes = SLOT_BYTES,
      .most_team = SLOT_TEAM,
      SHARED_PUS },
    { "copies",
      { eager_barrier, in_slots },
      ALL_REDUCE,
      VARIANT_PLAIN,
      SLOT_BYTES,
      COPY_BYTES,
      .most_team = SLOT_TEAM,
      ALONE },
    { "copies-stream",
      { eager_barrier, in_slots },
      EVERY,
      VARIANT_STREAM,
      LEAST_STREAM,
      LARGE_SLOT_BYTES,
      .most_team = SLOT_TEAM,
      ALONE },
    /* Forms with slots and two meetings. */
    { "shares",
      { eager_barrier, shares },
      ALL_REDUCE,
      VARIANT_PLAIN,
      0,
      LARGE_SLOT_BYTES,
      .most_team = SLOT_TEAM,
      ALONE },
    { "shares-ahead",
      { eager_ahead_barrier, shares },
      ALL_REDUCE,
      VARIANT_REGISTERS_AHEAD,
      0,
      LARGE_SLOT_BYTES,
      .most_team = SLOT_TEAM,
      ALONE },
    { "two-copies",
      { eager_barrier, two_copies },
      ALL_REDUCE,
      VARIANT_PLAIN,
      0,
      LARGE_SLOT_BYTES,
      .most_team = SLOT_TEAM,
      ALONE },
    /* Forms in which replicas read, or write, all of a result. */
    { "everyone", { eager_barrier, pull }, ALL_REDUCE, ALONE, .out_of_place = true },
    { "everyone-ahead",
      { eager_ahead_barrier, pull },
      ALL_REDUCE,
      VARIANT_REGISTERS_AHEAD,
      ALONE,
      .out_of_place = true },
    { "everyone-yield", { yield_barrier, pull }, ALL_REDUCE, SHARED_PUS, .out_of_place = true },
    { "pull", { eager_barrier, pull }, EVERY & ~ALL_REDUCE, ALONE },
    { "pull-flags", { flags_barrier, pull }, EVERY & ~ALL_REDUCE, ALONE },
    { "pull-yield", { yield_barrier, pull }, EVERY & ~ALL_REDUCE, SHARED_PUS },
    { "pull-ahead", { eager_barrier, pull }, EVERY & ~ALL_REDUCE, VARIANT_AHEAD, ALONE },
    { "push", { eager_barrier, push }, BROADCAST | GATHER | TO_ROOT, ALONE },
    { "push-demote", { demote_barrier, push }, BROADCAST | GATHER | TO_ROOT, VARIANT_DEMOTE, ALONE },
    { "push-yield", { yield_barrier, push }, BROADCAST | GATHER | TO_ROOT, SHARED_PUS },
    { "halves", { eager_barrier, halves }, GATHER, ALONE },
    { "wide", { flags_barrier, owners }, ALL_REDUCE, VARIANT_WIDE, .least_team = 8, .most_team = 8, ALONE },
    { "wide-yield",
      { yield_barrier, owners },
      ALL_REDUCE,
      VARIANT_WIDE,
      .least_team = 8,
      .most_team = 8,
      SHARED_PUS },
    /* Other loops for large messages. */
    { "ahead", { eager_barrier, owners }, SHARED, VARIANT_AHEAD, ALONE },
    { "two-ahead", { eager_barrier, owners }, ALL_REDUCE | REDUCE, VARIANT_TWO_AHEAD, .most_team = 2, ALONE },
    { "registers", { eager_barrier, owners }, ALL_REDUCE | REDUCE, VARIANT_REGISTERS, ALONE },
    { "registers-ahead",
      { eager_ahead_barrier, owners },
      ALL_REDUCE | REDUCE,
      VARIANT_REGISTERS_AHEAD,
      ALONE },
    { "registers-yield", { yield_barrier, owners }, ALL_REDUCE | REDUCE, VARIANT_REGISTERS, SHARED_PUS },
    { "pull-registers", { eager_barrier, pull }, SCATTER | REDUCE | SCANS, VARIANT_REGISTERS, ALONE },
    { "pull-registers-ahead",
      { eager_ahead_barrier, pull },
      SCATTER | REDUCE | SCANS,
      VARIANT_REGISTERS_AHEAD,
      ALONE },
    { "stripes", { eager_barrier, stripes }, ALL_REDUCE | REDUCE, VARIANT_REGISTERS, MIDDLE, ALONE },
    { "stripes-ahead",
      { eager_ahead_barrier, stripes },
      ALL_REDUCE | REDUCE,
      VARIANT_REGISTERS_AHEAD,
      MIDDLE,
      ALONE },
    { "half", { eager_barrier, owners }, ALL_REDUCE | REDUCE, VARIANT_HALF, ALONE },
    { "pull-half", { eager_barrier, pull }, SCATTER | REDUCE | SCANS, VARIANT_HALF, ALONE },
    { "blocks", { flags_barrier, owners }, ALL_REDUCE | REDUCE, VARIANT_BLOCKS, MIDDLE, ALONE },
    { "pull-blocks", { flags_barrier, pull }, SCATTER | SCANS, VARIANT_BLOCKS, MIDDLE, ALONE },
    { "stream", { eager_barrier, owners }, SHARED, VARIANT_STREAM, LARGE, ALONE },
    { "stream-ahead", { eager_barrier, owners }, SHARED, VARIANT_STREAM_AHEAD, LARGE, ALONE },
    { "pull-stream",
      { eager_barrier, pull },
      GATHER | BROADCAST | SCATTER | MOVED | SCANS,
      VARIANT_STREAM,
      LARGE,
      ALONE },
    { "push-stream", { eager_barrier, push }, GATHER | TO_ROOT, VARIANT_STREAM, LARGE, ALONE },
};
const uint32_t bound_form_count = sizeof bound_forms / sizeof bound_forms[0];

bool form_does(const struct form *form, const struct work *work)
{
    /* Replica 1 would overwrite what replica 2 reads. */
    if (work_scans(work->kind) && work->in_place && work->replicas > 2 && form->ops.collective == pull)
        return false;
    return (form->kinds >> bench_facts[work->kind].like & 1u) != 0 && work->bytes >= form->least_bytes &&
           (form->most_bytes == 0 || work->bytes <= form->most_bytes) &&
           !(form->out_of_place && work->in_place) && loops_can(work);
}
