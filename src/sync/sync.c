/* src/sync/sync.c - creates, resets and destroys the state of a team's collectives. */
#include "sync/sync.h"
#include "replicas/jobs/jobs.h"
#include "replicas/memory/arena.h"
#include "replicas/team/stopping.h"
#include "sync/calibrate.h"
#include "sync/grouping/grouping.h"
#include "sync/grouping/state.h"
#include "sync/hosts/started.h"
#include "sync/pending/pending.h"

#include <stdlib.h>

static ditto_status allocate(struct dti_replica *r, void *argument)
{
    return dti_sync_state_allocate(r, argument);
}

/* Makes the plans and what they need in the memory of the replicas. */
static ditto_status plan_and_allocate(struct dti_sync *sync)
{
    DTI_TRY(dti_sync_state_plan(sync));
    DTI_TRY(dti_team_run(sync->team, allocate, sync, false));
    dti_sync_state_reset(sync);
    return DITTO_OK;
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
    DTI_TRY(dti_sync_state_make(team, dti_team_replica(team, 0), dti_team_num_replicas(team), NULL, &sync));
    dti_team_set_sync(team, sync);
    for (uint32_t i = 0; i < sync->num_replicas; i++)
        use(dti_team_replica(team, i), sync);

    DTI_TRY(dti_groupings_make(&sync->groupings));
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
                   given.fetch_bytes == 0 || given.stage_bytes == 0 || given.stage_one_way_bytes == 0)) {
        DTI_TRY(dti_measure_thresholds(sync, &found.given, &in_time));
        sync->tuning.given = given;
        dti_tuning_fill(&sync->tuning.given, &found.given);
        /* The numbers are kept for later strategies, unless near_replicas or order_blocks has changed the
         * plans, replicas share PUs, or the machine was busy. */
        if (given.near_replicas == 0 && usual_order && !sync->oversubscribed && in_time)
            dti_tuning_keep(&sync->shape, &found);
        dti_sync_state_reset(
            sync); /* so that messages and ditto_strategy_diagnose do not name the measurements */
    }
    sync->hosts = options->hosts;
    /* From here on the tree is that of the replicas of all hosts. */
    sync->tree = (struct dti_tree){ .n = dti_team_all_replicas(team), .blocks = options->order_blocks };
    return dti_started_make(sync);
}

void dti_sync_describe_groupings(const struct dti_team *team, struct dti_text *text)
{
    dti_groupings_describe(dti_team_sync(team), text);
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
    DTI_TRY(dti_sync_state_make(team, outer->replica, outer->num_replicas, outer, &inner));
    inner->shape = outer->shape;
    inner->tree = outer->tree;
    inner->hosts = outer->hosts;
    ditto_status status = plan_and_allocate(inner);
    if (status == DITTO_OK)
        status = dti_started_make(inner);
    if (status != DITTO_OK) {
        /* A program may handle the error and try again any number of times, so nothing is left to the end of
         * the arenas. All replicas have finished the job. */
        for (uint32_t i = 0; i < inner->num_replicas && !dti_team_forked(team); i++)
            dti_sync_state_free(dti_team_replica(team, i), inner);
        dti_sync_state_release(inner);
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
    if (status == DITTO_OK)
        status = dti_groupings_go_in(dti_team_replica(team, 0)->sync->inner, dti_team_pauses(team));
    if (status != DITTO_OK)
        dti_team_renew(team); /* clears the stop of the job that has failed */
    return status;
}

void dti_sync_run_ended(struct dti_team *team)
{
    if (!dti_team_is_stopped(team) || dti_team_is_poisoned(team))
        return;
    uint32_t level = dti_team_pauses(team);
    struct dti_sync *sync = level == 0 ? dti_team_sync(team) : dti_team_replica(team, 0)->sync->inner;
    dti_sync_state_reset(sync);
    dti_groupings_reset(sync->groupings, level);
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

/* The rest of dti_sync_function_returned, for a replica that has started operations or steps. It is apart, so
 * that the room for a message is not made in every run. */
static __attribute__((noinline)) ditto_status end_operations(struct dti_replica *self, ditto_status status,
                                                             uint32_t serial)
{
    char oldest[DTI_CALL_TEXT_BYTES] = "";
    const char *wait = NULL;
    const struct dti_replica_state *me = dti_replica_state_of(self);
    uint32_t open = dti_pending_open(self, oldest, &wait);
    if (open == 0 && me->open_steps == 0)
        return status;
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
                          self->id, open, open > 1 ? "s" : "", oldest, wait);
    return dti_pending_abandon(self, status);
}

ditto_status dti_sync_function_returned(struct dti_replica *self, ditto_status status, uint32_t serial)
{
    const struct dti_replica_state *me = dti_replica_state_of(self);
    if (me->pending->num_open == 0 && me->open_steps == 0 && me->next_started == NULL)
        return status;
    return end_operations(self, status, serial);
}

void dti_sync_destroy(struct dti_team *team)
{
    struct dti_sync *sync = dti_team_sync(team); /* the outermost one, because no run is active */
    dti_team_set_sync(team, NULL);
    if (sync != NULL)
        dti_groupings_free(sync->groupings);
    while (sync != NULL) {
        struct dti_sync *inner = sync->inner;
        dti_sync_state_release(sync);
        sync = inner;
    }
}
