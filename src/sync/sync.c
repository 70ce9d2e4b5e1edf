/* src/sync/sync.c - creates, resets and destroys the state of a team's collectives. */
#include "sync/sync.h"
#include "replicas/jobs/jobs.h"
#include "replicas/memory/arena.h"
#include "replicas/team/stopping.h"
#include "sync/algorithms/exchange.h"
#include "sync/algorithms/helper_work.h"
#include "sync/calibrate.h"
#include "sync/hosts/started.h"
#include "sync/known_calls.h"
#include "sync/pending/pending.h"

#include <stdlib.h>
#include <string.h>

/* Makes this replica's part of a plan. The list of representatives is in its own memory. */
static ditto_status make_route(struct dti_replica *r, const struct dti_rounds *rounds,
                               struct dti_rounds_view *route)
{
    route->rounds = rounds->rounds;
    for (uint32_t round = 0; round < rounds->rounds; round++) {
        struct dti_span siblings = dti_rounds_siblings(rounds, round, r->index);
        struct dti_round_view *view = &route->view[round];
        uint32_t *representative;
        view->count = (uint32_t)(siblings.end - siblings.first);
        view->own = dti_rounds_block(rounds, round, r->index) - (uint32_t)siblings.first;
        view->start = &rounds->start[round][siblings.first];
        if (rounds->rounds == 1) /* every replica watches all others */
            continue;
        if ((representative = dti_allocate_zeroed(r, view->count * sizeof *representative)) == NULL)
            return DITTO_ERR_NO_MEMORY;
        for (uint32_t b = 0; b < view->count; b++)
            representative[b] = dti_rounds_representative(rounds, round, (uint32_t)siblings.first + b,
                                                          r->index);
        view->representative = representative;
    }
    return DITTO_OK;
}

/* Returns NULL if there is no memory. It is not zeroed, so pages that are not used are not touched. */
static void *stage_memory(struct dti_replica *r)
{
    void *stage;
    return dti_replica_alloc(r, DTI_STAGE_BYTES, DTI_CACHE_LINE_PAIR, &stage) == DITTO_OK ? stage : NULL;
}

/* Runs on each replica's own thread, so that its mailboxes and scratch memory are on its node. */
static ditto_status allocate_state(struct dti_replica *r, void *argument)
{
    struct dti_sync *sync = argument;
    struct dti_replica_state *me = &sync->state[r->index];
    if ((me->mailbox = dti_allocate_zeroed(r, 2 * sync->most_rounds * sizeof *me->mailbox)) == NULL ||
        (me->announcement = dti_allocate_zeroed(r, 2 * sizeof *me->announcement)) == NULL ||
        (me->known_calls = dti_allocate_zeroed(r, sizeof *me->known_calls)) == NULL ||
        (me->own_payload = dti_allocate_zeroed(r, DTI_PAYLOAD_BYTES)) == NULL ||
        (r->all_replicas == 2 && sync->num_replicas == 2 && !sync->oversubscribed &&
         (me->stage = stage_memory(r)) == NULL) ||
        (sync->most_rounds > 1 && (me->partials = dti_allocate_zeroed(r, DTI_PAYLOAD_BYTES)) == NULL))
        return DITTO_ERR_NO_MEMORY;
    DTI_TRY(dti_workspace_make(r, &me->workspace));
    for (int i = 0; i <= DITTO_IMPLEMENTATION_HIERARCHICAL; i++)
        DTI_TRY(make_route(r, &sync->rounds[i], &me->route[i]));
    DTI_TRY(dti_exchange_buffers_make(r, sync));
    DTI_TRY(dti_helper_work_make(r, sync));
    return dti_pending_make(r, sync);
}

/* Frees what allocate_state has allocated, also if that has failed. The replica does not use it. */
static void free_state(struct dti_replica *r, struct dti_sync *sync)
{
    struct dti_replica_state *state = &sync->state[r->index];
    dti_arena_free_remote(r->arena, state->mailbox);
    dti_arena_free_remote(r->arena, state->announcement);
    dti_arena_free_remote(r->arena, state->known_calls);
    dti_arena_free_remote(r->arena, state->own_payload);
    dti_arena_free_remote(r->arena, state->partials);
    dti_arena_free_remote(r->arena, state->stage);
    dti_workspace_free(r, &state->workspace);
    for (int i = 0; i <= DITTO_IMPLEMENTATION_HIERARCHICAL; i++)
        for (uint32_t round = 0; round < state->route[i].rounds; round++)
            dti_arena_free_remote(r->arena, (void *)state->route[i].view[round].representative);
    dti_exchange_buffers_free(r, sync);
    dti_helper_work_free(r, sync);
    dti_arena_free_remote(r->arena, state->pending);
    dti_arena_free_remote(r->arena, state->payloads);
}

/* Resets what runs leave behind. */
static void reset(struct dti_sync *sync)
{
    /* All stores are relaxed, because all replicas are parked and the go word of the next run publishes
     * them. */
    atomic_store_explicit(&sync->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&sync->release, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < sync->num_replicas; i++) {
        struct dti_replica_state *state = &sync->state[i];
        state->seq = 0;
        atomic_store_explicit(&state->run, 0, memory_order_relaxed);
        atomic_store_explicit(&state->number, 0, memory_order_relaxed);
        atomic_store_explicit(&state->finished, 0, memory_order_relaxed);
        atomic_store_explicit(&state->name, NULL, memory_order_relaxed);
        atomic_store_explicit(&state->accessing, 0, memory_order_relaxed);
        for (uint32_t k = 0; k < 2 * sync->most_rounds; k++)
            atomic_store_explicit(&state->mailbox[k].word, 0, memory_order_relaxed);
        dti_exchange_buffers_renew(sync, i);
        dti_pending_renew(state);
    }
    dti_started_renew(sync);
}

/* Returns the largest number of subtrees that a block passes on to the next round. */
static uint32_t most_parts(const struct dti_tree *tree, const struct dti_rounds *rounds)
{
    struct dti_span parts[DTI_TREE_PARTS];
    uint32_t most = 0;
    for (uint32_t cut = 1; cut < rounds->rounds; cut++)
        for (uint32_t b = 0; b < rounds->blocks[cut]; b++) {
            struct dti_span block = { rounds->start[cut][b], rounds->start[cut][b + 1] };
            uint32_t found = dti_tree_subtrees(tree, block, parts);
            most = found > most ? found : most;
        }
    return most;
}

/* Makes the plans and what they need in the memory of the replicas. */
static ditto_status plan_and_allocate(struct dti_sync *sync)
{
    uint32_t near = sync->tuning.given.near_replicas;
    for (int i = 0; i <= DITTO_IMPLEMENTATION_HIERARCHICAL; i++) {
        struct dti_rounds *rounds = &sync->rounds[i];
        DTI_TRY(dti_rounds_make(&sync->shape, &sync->tuning.costs, (ditto_implementation)i, near, rounds));
        sync->most_parts[i] = most_parts(&sync->tree, rounds);
        sync->most_rounds = rounds->rounds > sync->most_rounds ? rounds->rounds : sync->most_rounds;
    }
    dti_groups_make(&sync->shape, &sync->tree, near, &sync->groups);
    DTI_TRY(dti_team_run(sync->team, allocate_state, sync, false));
    reset(sync);
    return DITTO_OK;
}

static void release(struct dti_sync *sync)
{
    for (int i = 0; i <= DITTO_IMPLEMENTATION_HIERARCHICAL; i++)
        dti_rounds_free(&sync->rounds[i]);
    dti_started_free(sync);
    free(sync->result);
    free(sync->diagnosis);
    free(sync->state); /* mailboxes and scratch memory are freed with the arenas */
    free(sync);
}

static ditto_status allocate(struct dti_team *team, struct dti_sync **out)
{
    struct dti_sync *sync = aligned_alloc(DTI_CACHE_LINE_PAIR, sizeof *sync);
    if (sync != NULL) {
        memset(sync, 0, sizeof *sync);
        sync->team = team;
        sync->num_replicas = dti_team_num_replicas(team);
        sync->oversubscribed = dti_team_is_oversubscribed(team);
        sync->state = aligned_alloc(DTI_CACHE_LINE_PAIR, dti_team_num_replicas(team) * sizeof *sync->state);
        sync->result = aligned_alloc(DTI_CACHE_LINE_PAIR, DTI_PAYLOAD_BYTES);
        sync->diagnosis = malloc(dti_diagnosis_bytes(dti_team_num_replicas(team)));
        if (sync->state != NULL && sync->result != NULL && sync->diagnosis != NULL) {
            memset(sync->state, 0, dti_team_num_replicas(team) * sizeof *sync->state);
            *out = sync;
            return DITTO_OK;
        }
        release(sync);
    }
    return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the collectives of %u replicas",
                    dti_team_num_replicas(team));
}

/* Edge        V0 -> V1  A replica has found the state complete, and shows it. ditto_strategy_diagnose, on any
 *                       thread, sees what it shows, and a complete state. It stays as long as the team. */
static void use(struct dti_replica *self, struct dti_sync *sync)
{
    self->sync = sync;
    atomic_store_explicit(&self->shown_sync, sync, memory_order_release); /* V0 */
}

ditto_status dti_sync_create(struct dti_team *team, const struct dti_sync_options *options)
{
    struct dti_sync *sync;
    struct dti_tuning found = dti_tuning_usual;
    ditto_tuning given;
    bool in_time;
    /* On failure the strategy destroys the team, and the team's collectives with it. */
    DTI_TRY(allocate(team, &sync));
    dti_team_set_sync(team, sync);
    for (uint32_t i = 0; i < sync->num_replicas; i++)
        use(dti_team_replica(team, i), sync);

    DTI_TRY(dti_kernels_choose(options->kernels, &sync->kernels));
    dti_machine_shape_of_placement(dti_team_options(team)->placement, &sync->shape);
    sync->defaults = options->defaults;
    /* What is measured below is done by the replicas of this host alone, also if there are others. */
    sync->tree = (struct dti_tree){ .n = sync->num_replicas,
                                    .blocks = options->hosts == NULL ? options->order_blocks : 0 };
    DTI_TRY(dti_tuning_read(options->tuning, &given));
    sync->small_started = given.small_bytes != 0 ? given.small_bytes : DTI_PAYLOAD_BYTES;

    /* A given number has priority, then one that this process has measured before, then the usual one. */
    bool usual_order = options->order_blocks <= 1;
    bool known = !sync->oversubscribed && usual_order && dti_tuning_find(&sync->shape, &found);
    if (!known)
        DTI_TRY(dti_measure_hops(team, &sync->shape, &found.costs));
    sync->tuning = (struct dti_tuning){ given, found.costs };
    dti_tuning_fill(&sync->tuning.given, &found.given);
    DTI_TRY(plan_and_allocate(sync));

    /* Measures the thresholds if one of them was not given. The other fields are never measured. */
    if (!known && (given.small_bytes == 0 || given.stream_bytes == 0 || given.hierarchical_bytes == 0 ||
                   given.fetch_bytes == 0 || given.stage_bytes == 0)) {
        DTI_TRY(dti_measure_thresholds(sync, &found.given, &in_time));
        sync->tuning.given = given;
        dti_tuning_fill(&sync->tuning.given, &found.given);
        /* The numbers are kept for later strategies, unless near_replicas or order_blocks has changed the
         * plans, replicas share PUs, or the machine was busy. */
        if (given.near_replicas == 0 && usual_order && !sync->oversubscribed && in_time)
            dti_tuning_keep(&sync->shape, &found);
        reset(sync); /* so that messages and ditto_strategy_diagnose do not name the measurements */
    }
    sync->hosts = options->hosts;
    /* From here on the tree is that of the replicas of all hosts. */
    sync->tree = (struct dti_tree){ .n = dti_team_all_replicas(team), .blocks = options->order_blocks };
    return dti_started_make(sync);
}

const struct dti_tree *dti_team_tree(const struct dti_team *team)
{
    return &dti_team_sync(team)->tree; /* that of runs inside a run is the same */
}

/* Makes the state for runs inside the present one, if there is none. It has the options and the tuning of the
 * outer run, and nothing is measured. */
static ditto_status make_inner(struct dti_team *team)
{
    struct dti_sync *outer = dti_team_replica(team, 0)->sync, *inner;
    if (outer->inner != NULL)
        return DITTO_OK;
    DTI_TRY(allocate(team, &inner));
    inner->kernels = outer->kernels;
    inner->shape = outer->shape;
    inner->tree = outer->tree;
    inner->hosts = outer->hosts;
    inner->defaults = outer->defaults;
    inner->tuning = outer->tuning;
    inner->small_started = outer->small_started;
    ditto_status status = plan_and_allocate(inner);
    if (status == DITTO_OK)
        status = dti_started_make(inner);
    if (status != DITTO_OK) {
        /* A program may handle the error and try again any number of times, so nothing is left to the end of
         * the arenas. All replicas have finished the job. */
        for (uint32_t i = 0; i < inner->num_replicas && !dti_team_forked(team); i++)
            free_state(dti_team_replica(team, i), inner);
        release(inner);
        return status;
    }
    inner->outer = outer;
    outer->inner = inner;
    return DITTO_OK;
}

void dti_sync_go_in(struct dti_replica *self)
{
    use(self, self->sync->inner);
}

void dti_sync_go_out(struct dti_replica *self)
{
    use(self, self->sync->outer);
}

ditto_status dti_sync_inner_run_begins(struct dti_team *team)
{
    if (dti_team_pauses(team) == DTI_LEVELS)
        return DTI_FAIL(DITTO_ERR_RANGE, "a run inside %d runs: runs can't be nested deeper", DTI_LEVELS);
    ditto_status status = make_inner(team);
    if (status != DITTO_OK)
        dti_team_renew(team); /* clears the stop of the job that has failed */
    return status;
}

void dti_sync_run_ended(struct dti_team *team)
{
    if (!dti_team_is_stopped(team) || dti_team_is_poisoned(team))
        return;
    reset(dti_team_pauses(team) == 0 ? dti_team_sync(team) : dti_team_replica(team, 0)->sync->inner);
    dti_team_renew(team);
}

void dti_sync_function_begins(struct dti_replica *self)
{
    dti_number_run(dti_replica_state_of(self), dti_team_run_number(self->team));
}

void dti_sync_step_begins(struct dti_replica *self)
{
    dti_replica_state_of(self)->open_steps++;
}

void dti_sync_step_ends(struct dti_replica *self)
{
    dti_replica_state_of(self)->open_steps--;
}

uint64_t dti_sync_run_number(const struct dti_replica *self)
{
    return atomic_load_explicit(&dti_replica_state_of(self)->run, memory_order_relaxed);
}

/* A job of the library in which replicas meet. */
struct meeting_job {
    dti_job job;
    void *argument;
    bool is_inner;
};

static ditto_status do_meeting_job(struct dti_replica *r, void *argument)
{
    const struct meeting_job *m = argument;
    if (m->is_inner)
        dti_sync_go_in(r);
    dti_sync_function_begins(r);
    ditto_status status = m->job(r, m->argument);
    if (m->is_inner)
        dti_sync_go_out(r);
    return status;
}

ditto_status dti_sync_run_job(struct dti_team *team, dti_job job, void *argument)
{
    struct meeting_job meeting = { job, argument, dti_team_pauses(team) != 0 };
    return dti_team_run(team, do_meeting_job, &meeting, false);
}

ditto_status dti_sync_run(struct dti_team *team, dti_job job, void *argument)
{
    DTI_TRY(dti_sync_run_begins(team));
    ditto_status status = dti_sync_run_job(team, job, argument);
    dti_sync_run_ended(team);
    return status;
}

ditto_status dti_sync_function_returned(struct dti_replica *self, ditto_status status, uint32_t serial)
{
    char oldest[DTI_CALL_TEXT_BYTES] = "";
    uint64_t number;
    const struct dti_replica_state *me = dti_replica_state_of(self);
    if (me->pending->num_open == 0 && me->open_steps == 0)
        return status;
    uint32_t open = dti_pending_open(self, &number);
    if (open != 0)
        dti_pending_name(self, number, oldest);
    if (status < 0)
        dti_replica_ensure_record(self, status, serial);
    else if (open == 0)
        status = DTI_FAIL(
            DITTO_ERR_INVALID,
            "replica %u's function returned with a step that ditto_apply_start has started: end "
            "it with ditto_apply_finish",
            self->id);
    else
        status = DTI_FAIL(DITTO_ERR_INVALID,
                          "replica %u's function returned with %u pending operation%s, the oldest is %s: "
                          "wait for each with %s",
                          self->id, open, open > 1 ? "s" : "", oldest,
                          dti_pending_wait_function(self, number));
    return dti_pending_abandon(self, status);
}

void dti_sync_destroy(struct dti_team *team)
{
    struct dti_sync *sync = dti_team_sync(team); /* the outermost one, because no run is active */
    dti_team_set_sync(team, NULL);
    while (sync != NULL) {
        struct dti_sync *inner = sync->inner;
        release(sync);
        sync = inner;
    }
}
