/* src/sync/algorithms/exchange.c - groups combine, exchange and write. The argument is in exchange.h. */
#include "sync/algorithms/exchange.h"
#include "base/waiting/stop.h"
#include "replicas/memory/arena.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"
#include "sync/meeting/failure.h"

#include <string.h>

/* Returns the largest number of exchange ranges that a member of the group owns. */
static uint32_t most_ranges_of_member(const struct dti_groups *g, uint32_t group)
{
    uint32_t size = dti_groups_size(g, group);
    return (g->ranges + size - 1) / size;
}

ditto_status dti_exchange_buffers_make(struct dti_replica *self, struct dti_sync *sync)
{
    const struct dti_groups *g = &sync->groups;
    size_t block = sync->tuning.given.block_bytes;
    uint32_t num_buffers = most_ranges_of_member(g, g->of[self->index]);
    struct dti_exchange_buffers *exchange_buffers;
    if (g->groups == 1)
        return DITTO_OK;
    if ((exchange_buffers = dti_allocate_zeroed(self, num_buffers * sizeof *exchange_buffers)) == NULL)
        return DITTO_ERR_NO_MEMORY;
    sync->state[self->index].exchange_buffers = exchange_buffers;
    for (uint32_t i = 0; i < num_buffers; i++) {
        exchange_buffers[i].partials = dti_allocate_zeroed(self, 2 * (g->most_parts + 1) * block);
        if (exchange_buffers[i].partials == NULL)
            return DITTO_ERR_NO_MEMORY;
        exchange_buffers[i].results = exchange_buffers[i].partials + 2 * g->most_parts * block;
    }
    return DITTO_OK;
}

void dti_exchange_buffers_free(struct dti_replica *replica, struct dti_sync *sync)
{
    const struct dti_groups *g = &sync->groups;
    struct dti_exchange_buffers *exchange_buffers = sync->state[replica->index].exchange_buffers;
    for (uint32_t i = 0; exchange_buffers != NULL && i < most_ranges_of_member(g, g->of[replica->index]); i++)
        dti_arena_free_remote(replica->arena, exchange_buffers[i].partials);
    dti_arena_free_remote(replica->arena, exchange_buffers);
}

void dti_exchange_buffers_renew(struct dti_sync *sync, uint32_t replica)
{
    const struct dti_groups *g = &sync->groups;
    struct dti_exchange_buffers *exchange_buffers = sync->state[replica].exchange_buffers;
    for (uint32_t i = 0; exchange_buffers != NULL && i < most_ranges_of_member(g, g->of[replica]); i++) {
        /* Both are relaxed, because the go word of the next run publishes them. */
        atomic_store_explicit(&exchange_buffers[i].partial, 0, memory_order_relaxed);
        atomic_store_explicit(&exchange_buffers[i].result, 0, memory_order_relaxed);
    }
}

void dti_exchange_buffers_refresh(const struct dti_replica *self, uint32_t number,
                                  void (*refresh)(_Atomic uint64_t *word, uint32_t number))
{
    const struct dti_groups *g = &self->sync->groups;
    struct dti_exchange_buffers *exchange_buffers = self->sync->state[self->index].exchange_buffers;
    for (uint32_t i = 0; exchange_buffers != NULL && i < most_ranges_of_member(g, g->of[self->index]); i++) {
        refresh(&exchange_buffers[i].partial, number);
        refresh(&exchange_buffers[i].result, number);
    }
}

/* -- one exchange range -- */

struct exchange_range {
    struct dti_flow *flow;
    uint32_t timeout_ms;
    const struct dti_groups *groups;
    uint32_t index;  /* of the range */
    uint32_t group;  /* of this replica */
    uint32_t blocks; /* begun so far */
    size_t block_bytes;

    /* The subtrees of this replica's group. */
    uint32_t parts;
    struct dti_span part[DTI_TREE_PARTS];
};

/* A block is a part of one segment. Its number counts the blocks of the exchange range. */
struct block {
    struct dti_segment segment;
    struct dti_reduction reduction; /* of its segment */
    size_t first;                   /* element of the segment */
    size_t count;                   /* elements */
    uint32_t number;
};

static struct dti_exchange_buffers *buffers_of(const struct exchange_range *range, uint32_t group)
{
    uint32_t owner = dti_groups_owner(range->groups, group, range->index);
    return &range->flow->sync->state[owner]
                .exchange_buffers[range->index / dti_groups_size(range->groups, group)];
}

static unsigned char *partial_at(const struct exchange_range *range, uint32_t group, uint32_t block,
                                 uint32_t part)
{
    return buffers_of(range, group)->partials +
           (block % 2 * range->groups->most_parts + part) * range->block_bytes;
}

static unsigned char *result_at(const struct exchange_range *range, uint32_t group, uint32_t block)
{
    return buffers_of(range, group)->results + block % 2 * range->block_bytes;
}

/* Finds the piece of a block that belongs to a group. In a reduce-scatter, the group of the replica that
 * receives the block has the whole block. Otherwise all groups have equal pieces. */
static void piece_of(const struct exchange_range *range, const struct block *b, uint32_t group, size_t *first,
                     size_t *end)
{
    const struct dti_groups *g = range->groups;
    if (range->flow->call->pattern == DTI_PATTERN_REDUCE_SCATTER) {
        *first = 0;
        *end = g->of[b->segment.to] == group ? b->count : 0;
    } else {
        dti_tree_part(b->count, g->groups, group, dti_flow_grain(range->flow), first, end);
    }
}

/* What a word of an owner's buffers announces. */
enum announced { PARTIALS, RESULTS };

static _Atomic uint64_t *word_of(const struct exchange_range *range, uint32_t group, enum announced what)
{
    struct dti_exchange_buffers *buffers = buffers_of(range, group);
    return what == PARTIALS ? &buffers->partial : &buffers->result;
}

static void announce(const struct exchange_range *range, enum announced what, uint32_t block)
{
    /* release: Q0 or R0. It publishes the partials or the results. */
    atomic_store_explicit(word_of(range, range->group, what), (uint64_t)range->flow->seq << 32 | (block + 1),
                          memory_order_release);
    dti_wait_queue_signal(range->flow->self->wait_queue, range->flow->self->place);
}

struct word_wait {
    const struct dti_team *team;
    _Atomic uint64_t *word;
    uint64_t at_least;
};
static bool is_announced(const struct word_wait *w)
{
    uint64_t word = atomic_load_explicit(w->word, memory_order_acquire); /* Q1 or R1 */
    return word >> 32 == w->at_least >> 32 && word >= w->at_least;
}
static bool word_ready(void *argument)
{
    const struct word_wait *w = argument;
    return is_announced(w) || dti_team_is_stopped(w->team);
}

/* Waits until all counterparts have announced their partials, or their results, of `block`. */
static ditto_status await_counterparts(const struct exchange_range *range, enum announced what,
                                       uint32_t block)
{
    struct dti_replica *self = range->flow->self;
    struct dti_team *team = self->team;
    struct dti_deadline deadline = dti_replica_deadline(self, range->timeout_ms);
    /* A combining function may have forked. The counterparts do not exist in the child process. */
    if (dti_replica_is_forked(self))
        return dti_fail_forked();
    for (uint32_t step = 1; step < range->groups->groups; step++) {
        uint32_t group = (range->group + step) % range->groups->groups;
        uint32_t peer = dti_groups_owner(range->groups, group, range->index);
        struct word_wait w = { team, word_of(range, group, what),
                               (uint64_t)range->flow->seq << 32 | (block + 1) };
        if (!dti_wait(self->wait_queue, self->place, dti_replica_peer(self, peer)->place, &self->wait_policy,
                      &deadline, word_ready, &w)) {
            char description[DTI_CALL_TEXT_BYTES], awaited[DTI_MISSING_TEXT_BYTES];
            struct dti_text mine = { description, sizeof description, 0 },
                            its = { awaited, sizeof awaited, 0 };
            dti_call_describe(range->flow->call,
                              atomic_load_explicit(&dti_reported_state(self)->number, memory_order_relaxed),
                              &mine);
            dti_text_add(&mine, "%s", range->flow->sync->group_text);
            dti_describe_replica(range->flow->sync, peer, &its);
            return dti_fail_late(self, &deadline, description, awaited);
        }
        if (!is_announced(&w))
            return dti_team_stop_status(team);
        range->flow->workspace->counters.hops_far++;
    }
    return DITTO_OK;
}

/* Step A. Combines this group's subtrees of a block in the owner's buffer of partials. A subtree of a single
 * replica is not copied. */
static ditto_status combine_own(struct exchange_range *range, struct block *b)
{
    struct dti_flow *flow = range->flow;
    struct dti_reduction *r = &b->reduction;
    uint32_t first = range->groups->start[range->group], end = range->groups->start[range->group + 1], far;
    size_t step = dti_tile_count(r), offset = b->first * r->element_bytes;
    char *scratch = (char *)flow->workspace->scratch + DTI_TILE_BYTES;
    struct dti_tree_value value[DITTO_MAX_REPLICAS];
    flow->reduction = *r;
    dti_flow_sources(flow, &b->segment, first, end, &far);
    for (size_t at = 0; at < b->count; at += step) {
        size_t count = b->count - at < step ? b->count - at : step;
        const struct dti_tree_value *next = value;
        for (uint32_t i = first; i < end; i++)
            value[i - first] = (struct dti_tree_value){
                i, i + 1, (const char *)flow->workspace->source[i - first] + offset + at * r->element_bytes
            };
        for (uint32_t p = 0; p < range->parts; p++) {
            if (range->part[p].end - range->part[p].first == 1) {
                next++;
                continue;
            }
            flow->workspace->counters.read_near += (range->part[p].end - range->part[p].first) * count *
                                                   r->element_bytes;
            dti_fold(r, range->part[p], &next, count,
                     partial_at(range, range->group, b->number, p) + at * r->accumulator_bytes, scratch);
        }
    }
    if (r->failed == DITTO_OK)
        announce(range, PARTIALS, b->number);
    return r->failed;
}

/* Stores the subtrees of all groups in order, at element `at` of the block. */
static void gather_values(const struct exchange_range *range, const struct block *b, size_t at,
                          struct dti_tree_value *value)
{
    const struct dti_reduction *r = &b->reduction;
    struct dti_span part[DTI_TREE_PARTS];
    for (uint32_t g = 0; g < range->groups->groups; g++) {
        struct dti_span members = { range->groups->start[g], range->groups->start[g + 1] };
        uint32_t parts = dti_tree_subtrees(&range->flow->sync->tree, members, part);
        for (uint32_t p = 0; p < parts; p++) {
            const char *data = part[p].end - part[p].first == 1
                                   ? dti_flow_source(range->flow, &b->segment, (uint32_t)part[p].first) +
                                         (b->first + at) * r->element_bytes
                                   : (const char *)partial_at(range, g, b->number, p) +
                                         at * r->accumulator_bytes;
            *value++ = (struct dti_tree_value){ part[p].first, part[p].end, data };
        }
    }
}

/* Adds to the counters the bytes that combining `count` elements reads from the groups. */
static void count_values(const struct exchange_range *range, const struct block *b, size_t count)
{
    struct dti_span part[DTI_TREE_PARTS];
    for (uint32_t g = 0; g < range->groups->groups; g++) {
        struct dti_span members = { range->groups->start[g], range->groups->start[g + 1] };
        uint32_t parts = dti_tree_subtrees(&range->flow->sync->tree, members, part);
        uint64_t *counter = g == range->group ? &range->flow->workspace->counters.read_near
                                              : &range->flow->workspace->counters.read_far;
        for (uint32_t p = 0; p < parts; p++)
            *counter += count * (part[p].end - part[p].first == 1 ? b->reduction.element_bytes
                                                                  : b->reduction.accumulator_bytes);
    }
}

/* Step B. Combines this group's piece of a block over all groups, and rounds it. */
static ditto_status combine_piece(struct exchange_range *range, struct block *b)
{
    struct dti_flow *flow = range->flow;
    struct dti_reduction *r = &b->reduction;
    const struct dti_target *target = flow->target;
    size_t first, end, step = dti_tile_count(r);
    char *tile = flow->workspace->scratch, *scratch = tile + DTI_TILE_BYTES;
    DTI_TRY(await_counterparts(range, PARTIALS, b->number));
    flow->reduction = *r;
    piece_of(range, b, range->group, &first, &end);
    count_values(range, b, end - first);
    for (size_t at = first; at < end; at += step) {
        struct dti_tree_value value[DITTO_MAX_REPLICAS];
        const struct dti_tree_value *next = value;
        size_t count = end - at < step ? end - at : step;
        unsigned char *out = result_at(range, range->group, b->number) + (at - first) * r->element_bytes;
        gather_values(range, b, at, value);
        const void *sum = dti_fold(r, (struct dti_span){ 0, flow->sync->tree.n }, &next, count, tile,
                                   scratch);
        if (r->failed != DITTO_OK)
            return r->failed;
        dti_finish(r, flow->sync->tree.n, sum, tile, count, out);
        if (target != NULL && target->calls)
            dti_flow_suspend_access(flow);
        if (target != NULL && target->finish != NULL)
            target->finish(target->context, flow->self->index, b->segment.index, b->first + at, count, out,
                           out);
        if (target != NULL && target->calls && !dti_flow_resume_access(flow))
            return flow->reduction.failed;
    }
    if (r->failed == DITTO_OK)
        announce(range, RESULTS, b->number);
    return r->failed;
}

/* Step C. Copies all pieces of a block to the destinations of this group. */
static ditto_status write_block(struct exchange_range *range, struct block *b)
{
    struct dti_flow *flow = range->flow;
    uint32_t far;
    DTI_TRY(await_counterparts(range, RESULTS, b->number));
    flow->reduction = b->reduction;
    uint32_t destinations = dti_flow_destinations(flow, &b->segment, range->groups->start[range->group],
                                                  range->groups->start[range->group + 1], &far);
    for (uint32_t g = 0; destinations != 0 && g < range->groups->groups; g++) {
        size_t first, end, bytes;
        piece_of(range, b, g, &first, &end);
        bytes = (end - first) * b->reduction.element_bytes;
        *(g == range->group ? &flow->workspace->counters.read_near
                            : &flow->workspace->counters.read_far) += bytes;
        dti_flow_write(flow, result_at(range, g, b->number), b->first + first, end - first, destinations,
                       far);
    }
    return DITTO_OK;
}

/* -- walking over the blocks of an exchange range -- */

struct block_walk {
    /* A copy, because the walk is ahead of the steps and sets its own reduction. */
    struct dti_flow flow;

    struct dti_segment segment;

    /* The exchange range has the grains [from, to). The segment begins at grain `base`. */
    size_t from;
    size_t to;
    size_t base;

    /* The elements of this range in the present segment that are in earlier blocks. */
    size_t at;

    size_t block_bytes;
    bool more;
};

static void begin_blocks(struct block_walk *walk, struct exchange_range *range)
{
    *walk = (struct block_walk){ .flow = *range->flow, .block_bytes = range->block_bytes };
    dti_tree_part(dti_flow_all_grains(range->flow), range->groups->ranges, range->index, 1, &walk->from,
                  &walk->to);
    walk->more = dti_flow_begin(&walk->flow, &walk->segment);
}

/* Sets *b to the next block. Returns false if the exchange range has no more blocks. */
static bool next_block(struct block_walk *walk, struct exchange_range *range, struct block *b)
{
    for (; walk->more; walk->base += dti_flow_grains(&walk->flow, &walk->segment),
                       walk->more = dti_flow_next(&walk->flow, &walk->segment), walk->at = 0) {
        size_t grain = dti_flow_grain(&walk->flow), grains = dti_flow_grains(&walk->flow, &walk->segment);
        size_t from = walk->from > walk->base ? walk->from - walk->base : 0,
               to = walk->to > walk->base ? walk->to - walk->base : 0;
        /* The elements [first, end) of the present segment belong to the exchange range. */
        size_t first = (from < grains ? from * grain : walk->segment.count) + walk->at,
               end = to < grains ? to * grain : walk->segment.count;
        if (first >= end)
            continue;
        size_t step = walk->block_bytes / walk->flow.reduction.accumulator_bytes;
        step = step > grain ? step / grain * grain : step;
        *b = (struct block){ walk->segment, walk->flow.reduction, first,
                             end - first < step ? end - first : step, range->blocks++ };
        walk->at += b->count;
        return true;
    }
    return false;
}

ditto_status dti_flow_exchange(struct dti_flow *flow, uint32_t timeout_ms)
{
    const struct dti_groups *g = &flow->sync->groups;
    struct exchange_range range = { .flow = flow,
                                    .timeout_ms = timeout_ms,
                                    .groups = g,
                                    .group = g->of[flow->self->index],
                                    .block_bytes = flow->sync->tuning.given.block_bytes };
    flow->streams = false; /* a block is small, and in the cache because it has just been read */
    struct dti_span members = { g->start[range.group], g->start[range.group + 1] };
    range.parts = dti_tree_subtrees(&flow->sync->tree, members, range.part);
    for (range.index = flow->self->index - g->start[range.group]; range.index < g->ranges;
         range.index += dti_groups_size(g, range.group)) {
        range.blocks = 0;
        struct block_walk ahead;
        struct block now, next;
        begin_blocks(&ahead, &range);
        bool more = next_block(&ahead, &range, &now);
        if (more)
            DTI_TRY(combine_own(&range, &now));
        while (more) {
            DTI_TRY(combine_piece(&range, &now));
            more = next_block(&ahead, &range, &next);
            if (more)
                DTI_TRY(combine_own(&range, &next));
            DTI_TRY(write_block(&range, &now));
            now = next;
        }
    }
    return DITTO_OK;
}

void dti_exchange_owners(const struct dti_flow *flow, dti_target_owner_fn *report, void *context)
{
    const struct dti_groups *g = &flow->sync->groups;
    struct dti_flow own_flow = *flow;
    struct exchange_range range = { .flow = &own_flow,
                                    .groups = g,
                                    .block_bytes = flow->sync->tuning.given.block_bytes };
    for (range.index = 0; range.index < g->ranges; range.index++) {
        struct block_walk ahead;
        struct block b;
        begin_blocks(&ahead, &range);
        while (next_block(&ahead, &range, &b)) {
            own_flow.reduction = b.reduction;
            for (uint32_t group = 0; group < g->groups; group++) {
                size_t first, end;
                piece_of(&range, &b, group, &first, &end);
                if (first < end)
                    report(context, b.segment.index, b.first + first, end - first,
                           dti_groups_owner(g, group, range.index));
            }
        }
    }
}
