/* src/input/distribute/iterator.c - creates and destroys an iterator: pipelines, queues, producers. */
#include "input/distribute/iterator.h"
#include "input/input.h"
#include "replicas/jobs/jobs.h"
#include "replicas/memory/arena.h"
#include "replicas/team/servers.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"
#include "sync/hosts/cross.h"

#include <stdlib.h>
#include <string.h>

/* -- memory of the queues -- */

/* Computes the offset of each component in a slot's payload, and reduces the number of slots to fit
 * max_bytes. */
static ditto_status lay_out(struct ditto_iterator *it)
{
    const ditto_dataset *dataset = dti_iterator_dataset(it);
    uint64_t most_rows = 0;
    size_t ring_bytes, all_bytes;
    for (uint32_t i = 0; i < it->plan.local_pipelines; i++) {
        uint64_t batch_rows = dti_cut_most_of_batch(&it->pipeline[i].sequencer.o.cut);
        most_rows = batch_rows > most_rows ? batch_rows : most_rows;
    }
    if (!dti_dataset_layout(dataset, most_rows, it->offset, &it->payload_bytes))
        return DTI_FAIL(DITTO_ERR_RANGE, "a batch of %llu rows has more bytes than size_t can count",
                        (unsigned long long)most_rows);
    if (!dti_ring_bytes(1, it->payload_bytes, &ring_bytes) ||
        !dti_multiply(ring_bytes, it->num_replicas, &all_bytes))
        return DTI_FAIL(DITTO_ERR_RANGE, "%u batches have more bytes than size_t can count",
                        it->num_replicas);
    if (all_bytes > it->plan.max_bytes)
        return DTI_FAIL(DITTO_ERR_RANGE,
                        "max_bytes is %llu, but one batch for each of %u replicas takes %zu bytes",
                        (unsigned long long)it->plan.max_bytes, it->num_replicas, all_bytes);
    if (it->plan.slots > it->plan.max_bytes / all_bytes)
        it->plan.slots = (uint32_t)(it->plan.max_bytes / all_bytes);
    return dti_multiply(all_bytes, it->plan.slots, &all_bytes)
               ? DITTO_OK
               : DTI_FAIL(DITTO_ERR_RANGE,
                          "%u batches for each of %u replicas have more bytes than size_t can count",
                          it->plan.slots, it->num_replicas);
}

/* Allocates a replica's ring, slots and payload. Runs on the replica's own thread and uses its arena, except
 * with host_memory, where the caller runs it. */
static ditto_status allocate_ring(struct dti_replica *r, void *argument)
{
    struct ditto_iterator *it = argument;
    struct dti_consumer *c = &it->consumer[r->index];
    size_t bytes = 0;
    dti_ring_bytes(it->plan.slots, it->payload_bytes, &bytes); /* lay_out has checked it */
    if (it->plan.host_memory) {
        c->memory = aligned_alloc(DTI_CACHE_LINE_PAIR, (bytes + DTI_CACHE_LINE_PAIR - 1) /
                                                           DTI_CACHE_LINE_PAIR * DTI_CACHE_LINE_PAIR);
        if (c->memory == NULL)
            return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a queue of %zu bytes", bytes);
    } else
        DTI_TRY(dti_replica_alloc(r, bytes, DTI_CACHE_LINE_PAIR, &c->memory));
    dti_ring_init(&c->ring, it->plan.slots, it->payload_bytes, c->memory);
    return DITTO_OK;
}

/* Allocates all rings. With host_memory the caller does it, so the pages are on the caller's node. */
static ditto_status allocate_rings(struct ditto_iterator *it)
{
    if (!it->plan.host_memory) {
        ditto_status status = dti_team_run(it->team, allocate_ring, it, false);
        /* If the job failed, its stop is cleared. It used no collective, so sync has nothing to renew. */
        dti_team_renew(it->team);
        return status;
    }
    for (uint32_t r = 0; r < it->num_replicas; r++) {
        DTI_TRY(allocate_ring(dti_team_replica(it->team, r), it));
        memset(it->consumer[r].ring.slot[0].payload, 0, it->payload_bytes * it->plan.slots); /* first touch */
    }
    return DITTO_OK;
}

/* Frees the rings that are in arenas. */
static void free_rings(struct ditto_iterator *it)
{
    for (uint32_t i = 0; !it->plan.host_memory && it->consumer != NULL && i < it->num_replicas; i++)
        dti_arena_free_remote(dti_team_replica(it->team, i)->arena, it->consumer[i].memory);
}

/* -- pipelines -- */

static ditto_status make_pipelines(struct ditto_iterator *it)
{
    uint32_t each = it->plan.replicas_each, own = dti_team_first_replica(it->team);
    for (uint32_t i = 0; i < it->plan.local_pipelines; i++) {
        struct dti_pipeline *p = &it->pipeline[i];
        uint32_t w = it->plan.first_pipeline + i;
        /* The ids of the pipeline's replicas that are on this host. */
        uint32_t begin = w * each > own ? w * each : own;
        uint32_t end = (w + 1) * each < own + it->num_replicas ? (w + 1) * each : own + it->num_replicas;
        p->first_replica = begin - own;
        p->sequencer.o = (struct dti_sequencer_options){
            .pass = { .number = it->plan.pass,
                      .closing = &it->closing,
                      .shards = it->plan.sharing == DTI_SHARING_FILES ? it->plan.pipelines : 0,
                      .shard = w,
                      .first_stream = dti_team_first_stream(it->team) },
            .cut = dti_pipeline_cut(&it->plan, &it->summary[w], w),
            .ring = it->ring + p->first_replica,
            .progress = &it->progress,
            .first_served = begin - w * each,
            .served = end - begin,
        };
        /* Hosts that choose the same rows compare them. If pipelines share one order, all choose the same
         * rows, so the first one of each host is enough. Otherwise those are compared whose replicas are on
         * several hosts. */
        bool is_spread = begin > w * each || end < (w + 1) * each;
        p->sequencer.o.is_compared = dti_cross_agrees_on_runs(it->team) &&
                                     (p->sequencer.o.cut.arrangement == DTI_CUT_SHARED ? i == 0 : is_spread);
        for (uint32_t r = p->first_replica; r < p->first_replica + p->sequencer.o.served; r++)
            it->consumer[r].pipeline = it->consumer[r].failed_pipeline = p;
    }
    return lay_out(it);
}

static ditto_status open_in_context(struct ditto_iterator *it)
{
    struct dti_bytes_reader state;
    bool has_state = it->plan.state != NULL;
    if (has_state)
        DTI_TRY(dti_state_open(it, &state));
    for (uint32_t i = 0; i < it->plan.local_pipelines; i++) {
        struct dti_pipeline *p = &it->pipeline[i];
        struct dti_sequencer_options options = p->sequencer.o;
        options.slots = it->plan.slots;
        options.dataset = p->dataset;
        options.pass.number = it->plan.pass;
        DTI_TRY(dti_sequencer_init(&p->sequencer, &options));
        if (has_state)
            DTI_TRY(dti_state_read(it, p, &state));
        DTI_TRY(dti_order_init(p, it->plan.producers > 1 || it->plan.pipelines > 1));
    }
    if (!has_state)
        return DITTO_OK;
    state.failed |= state.at != state.end;
    return dti_bytes_reader_status(&state);
}

/* Opens generators and restores positions. This calls functions of the user, which later run on producers'
 * threads, so it runs in the same context. */
static ditto_status open_pipelines(struct ditto_iterator *it)
{
    struct dti_frame frame;
    struct dti_fenv saved = dti_frame_enter_input(&frame, it->team);
    ditto_status status = open_in_context(it);
    dti_frame_leave(&frame, saved);
    return status;
}

/* -- life -- */

/* Frees everything except queues in arenas, which belong to their replicas. */
static void release(struct ditto_iterator *it)
{
    uint32_t pipelines = it->pipeline != NULL ? it->plan.local_pipelines : 0;
    /* dti_sequencer_free calls `close` of generators that have not ended, which is a function of the user. */
    struct dti_frame frame;
    struct dti_fenv saved = dti_frame_enter_input(&frame, it->team);
    for (uint32_t w = 0; w < pipelines; w++)
        dti_sequencer_free(&it->pipeline[w].sequencer);
    dti_frame_leave(&frame, saved);
    for (uint32_t r = 0; it->plan.host_memory && it->consumer != NULL && r < it->num_replicas; r++)
        free(it->consumer[r].memory);
    dti_producers_free(it);
    for (uint32_t w = 0; w < pipelines; w++) {
        dti_dataset_release(it->pipeline[w].dataset);
        dti_order_free(&it->pipeline[w]);
    }
    dti_wait_queue_free(&it->wait_queue);
    free(it->summary);
    free(it->pipeline);
    free(it->progress.pipeline_progress);
    free(it->consumer);
    free((void *)it->ring);
    free(it);
}

static void stop_producers(struct ditto_iterator *it)
{
    dti_producers_stop(it);
    dti_progress_of_hosts_end(it);
}

static void stop(struct ditto_iterator *it, enum dti_team_end end)
{
    if (end != DTI_TEAM_IS_FORKED) {
        stop_producers(it);
        return;
    }
    /* In a child process the producers do not exist, and each may have been in the middle of a change when
     * the process was copied. For example, a pointer that it was about to replace may be freed already. So
     * nothing is freed that producers have used. */
    it->dependent.freed_by = DTI_FREED_BY_NOBODY;
    dti_producers_forget(it);
}

/* The user destroys the iterator while the team exists. The caller holds the turn, so no run is active that
 * needs the producers. */
static void leave(struct dti_dependent *dependent, enum dti_team_end end)
{
    struct ditto_iterator *it = (struct ditto_iterator *)dependent;
    stop(it, end);
    /* The rings must be freed here, while the caller holds the turn. After that the strategy and its arenas
     * may be destroyed at any time. They are not freed with DTI_TEAM_IS_LEFT, because a replica that never
     * returned may still take a batch, nor with DTI_TEAM_IS_FORKED (see stop). */
    if (end == DTI_TEAM_ENDS)
        free_rings(it);
}

static void team_ends(struct dti_dependent *dependent, enum dti_team_end end)
{
    struct ditto_iterator *it = (struct ditto_iterator *)dependent;
    stop(it, end);
    if (end != DTI_TEAM_IS_LEFT) /* otherwise a late replica may still use the iterator */
        it->team = NULL;         /* the queues are freed with the arenas */
}

static void release_dependent(struct dti_dependent *dependent)
{
    release((struct ditto_iterator *)dependent);
}

static const struct dti_dependent_kind kind = {
    .what = "the iterator",
    .leave = leave,
    .team_ends = team_ends,
    .release = release_dependent,
};

ditto_status dti_iterator_destroy(ditto_iterator *it)
{
    return dti_dependent_destroy(&it->dependent);
}

const ditto_iterator *dti_iterator_after(const struct dti_team *team, const ditto_iterator *before)
{
    return (const ditto_iterator *)dti_team_dependent_before(team, before == NULL ? NULL : &before->dependent,
                                                             &kind);
}

/* Allocates memory for `count` structs, all zero and aligned to DTI_CACHE_LINE_PAIR. */
static void *zeroed(size_t count, size_t bytes)
{
    size_t all_bytes;
    void *memory = dti_multiply(count, bytes, &all_bytes)
                       ? aligned_alloc(DTI_CACHE_LINE_PAIR, (all_bytes + DTI_CACHE_LINE_PAIR - 1) /
                                                                DTI_CACHE_LINE_PAIR * DTI_CACHE_LINE_PAIR)
                       : NULL;
    return memory != NULL ? memset(memory, 0, all_bytes) : NULL;
}

static struct ditto_iterator *allocate(struct dti_team *team, ditto_dataset **dataset,
                                       const struct dti_input_plan *plan,
                                       struct dti_pipeline_summary *summary)
{
    struct ditto_iterator *it = zeroed(1, sizeof *it);
    bool needs_hosts = dti_plan_needs_hosts(team, plan);
    if (it == NULL) {
        free(summary);
        return NULL;
    }
    it->summary = summary;
    it->dependent.kind = &kind;
    it->team = team;
    it->num_replicas = dti_team_num_replicas(team);
    it->all_replicas = dti_team_all_replicas(team);
    it->number = dti_cross_stamp(team);
    it->plan = *plan;
    it->producers = plan->local_pipelines * plan->producers;
    it->begin_ns = dti_now_ns();
    it->progress = (struct dti_pipelines_progress){
        .first = needs_hosts ? 0 : plan->first_pipeline,
        .count = needs_hosts ? plan->pipelines : plan->local_pipelines,
        .all_or_none = plan->is_static,
        .end_at_error = plan->is_static || plan->sharing == DTI_SHARING_ROWS,
        .pipeline_progress = zeroed(plan->pipelines, sizeof *it->progress.pipeline_progress)
    };
    for (uint32_t w = 0; it->progress.pipeline_progress != NULL && w < plan->pipelines; w++)
        atomic_init(&it->progress.pipeline_progress[w].error_point, DTI_NO_POINT);
    it->pipeline = zeroed(plan->local_pipelines, sizeof *it->pipeline);
    it->producer = zeroed(it->producers, sizeof *it->producer);
    it->consumer = zeroed(dti_team_num_replicas(team), sizeof *it->consumer);
    it->ring = calloc(dti_team_num_replicas(team), sizeof(struct dti_ring *));
    for (uint32_t i = 0; it->pipeline != NULL && i < plan->local_pipelines; i++) {
        it->pipeline[i].dataset = dataset[i];
        dti_dataset_retain(dataset[i]);
    }
    if (it->progress.pipeline_progress == NULL || it->pipeline == NULL || it->producer == NULL ||
        it->consumer == NULL || it->ring == NULL ||
        !dti_wait_queue_init(&it->wait_queue, it->producers, DTI_SLEEPS_OFTEN)) {
        release(it);
        return NULL;
    }
    for (uint32_t r = 0; r < dti_team_num_replicas(team); r++)
        it->ring[r] = &it->consumer[r].ring;
    return it;
}

static ditto_status start(struct ditto_iterator *it)
{
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(it->team, &frame,
                            it->plan.host_memory ? DTI_CALLER_KEEPS_AFFINITY : DTI_CALLER_PINNED));
    ditto_status status = allocate_rings(it);
    if (status == DITTO_OK)
        status = dti_producers_prepare(it);
    if (status == DITTO_OK && dti_plan_needs_hosts(it->team, &it->plan))
        status = dti_progress_of_hosts_begin(it);
    if (status == DITTO_OK)
        status = dti_producers_start(it);
    if (status == DITTO_OK)
        dti_dependent_add(it->team, &it->dependent);
    else {
        ditto_error kept = *dti_error_get();
        stop_producers(it);
        free_rings(it);
        dti_error_set(&kept);
    }
    dti_cross_leave(it->team, &frame);
    return status;
}

ditto_status dti_iterator_create(struct dti_team *team, ditto_dataset **dataset,
                                 const struct dti_input_plan *plan, struct dti_pipeline_summary *summary,
                                 ditto_iterator **out)
{
    struct ditto_iterator *it = allocate(team, dataset, plan, summary);
    if (it == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for an iterator");
    ditto_status status = make_pipelines(it);
    if (status == DITTO_OK)
        status = open_pipelines(it);
    if (status == DITTO_OK)
        status = start(it);
    if (status != DITTO_OK) {
        ditto_error kept = *dti_error_get();
        release(it);
        dti_error_set(&kept);
        return status;
    }
    *out = it;
    return DITTO_OK;
}

/* -- queries -- */

uint64_t dti_iterator_number(const ditto_iterator *iterator)
{
    return iterator->number;
}

struct dti_team *dti_iterator_team(const ditto_iterator *iterator)
{
    return iterator->team;
}

uint64_t dti_iterator_full_rows(const ditto_iterator *it, uint32_t replica, uint64_t step)
{
    const struct dti_pipeline *p = it->consumer[replica].pipeline;
    return dti_cut_full(&p->sequencer.o.cut, step, p->sequencer.o.first_served + replica - p->first_replica);
}

void dti_iterator_spec(const ditto_iterator *it, ditto_element_spec *out)
{
    const ditto_dataset *d = dti_iterator_dataset(it);
    struct dti_cut cut = dti_pipeline_cut(&it->plan, &it->summary[0], 0);
    uint64_t rows = dti_cut_most_of_batch(&cut);
    bool equal = it->plan.from_function || dti_plan_is_equal(&it->plan);
    memset(out, 0, sizeof *out);
    /* With static shapes, all pipelines end with the first one. Otherwise they end with the last one. */
    out->infinite = it->plan.is_static;
    for (uint32_t w = 0; w < it->plan.pipelines; w++) {
        cut = dti_pipeline_cut(&it->plan, &it->summary[w], w);
        equal = equal && dti_cut_most_of_batch(&cut) == rows && cut.shorts != DTI_SHORT_DELIVERED;
        int infinite = it->summary[w].is_infinite != 0;
        out->infinite = it->plan.is_static ? out->infinite && infinite : out->infinite || infinite;
        if (it->plan.from_function)
            out->batch += dti_cut_most_of_step(&cut);
    }
    if (!it->plan.from_function)
        out->batch = it->plan.global; /* the sum of the batches of all replicas in every full step */
    out->num_components = d->components;
    for (uint32_t k = 0; k < d->components; k++) {
        const struct dti_row_component_spec *spec = &d->component[k];
        out->component[k] = (ditto_tensor){ .dtype = spec->dtype, .rank = spec->rank + 1 };
        out->component[k].shape[0] = equal ? (size_t)rows : DITTO_ANY_SIZE;
        memcpy(&out->component[k].shape[1], spec->shape, spec->rank * sizeof spec->shape[0]);
    }
}

/* -- statistics -- */

static uint64_t load(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed); /* it may be out of date at once */
}

void dti_iterator_stats(const ditto_iterator *it, uint32_t replica, ditto_iterator_counters *out)
{
    size_t bytes = 0;
    bool all = replica == DITTO_ALL_REPLICAS;
    dti_ring_bytes(it->plan.slots, it->payload_bytes, &bytes);
    *out = (ditto_iterator_counters){ .elapsed_ns = dti_now_ns() - it->begin_ns,
                                      .queue_bytes = bytes * (all ? it->num_replicas : 1),
                                      .num_replicas = all ? it->num_replicas : 1,
                                      .num_pipelines = it->plan.pipelines,
                                      .num_producers = it->producers,
                                      .num_slots = it->plan.slots };
    for (uint32_t r = all ? 0 : replica; r < (all ? it->num_replicas : replica + 1); r++) {
        const struct dti_consumer *c = &it->consumer[r];
        /* `ready` is stored after `taken`, so it is loaded first. The loads are relaxed, so taken may be the
         * smaller one nevertheless. */
        uint64_t ready = load(&c->ready), taken = load(&c->taken);
        out->steps = taken > out->steps ? taken : out->steps;
        out->rows += load(&c->rows);
        out->bytes += load(&c->bytes);
        out->num_ready += ready;
        out->num_waited += taken > ready ? taken - ready : 0;
        out->consumer_wait_ns += load(&c->wait_ns);
        for (uint64_t t = taken; t < taken + it->plan.slots; t++)
            out->depth += dti_ring_is_filled(&c->ring, t);
    }
    for (uint32_t i = 0; i < it->producers; i++) {
        const struct dti_producer *p = &it->producer[i];
        if (!all && p->group != it->consumer[replica].group)
            continue;
        out->producer_wait_ns += load(&p->waiting_ns);
        out->filling_ns += load(&p->filling_ns);
    }
    for (uint32_t i = 0; i < it->plan.local_pipelines; i++)
        if (all || &it->pipeline[i] == it->consumer[replica].pipeline)
            out->choosing_ns += load(&it->pipeline[i].sequencer.choosing_ns);
}
