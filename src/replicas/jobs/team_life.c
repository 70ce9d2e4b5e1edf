/* src/replicas/jobs/team_life.c - creates and destroys teams. See team_life.h. */
#include "replicas/jobs/team_life.h"
#include "replicas/helpers/crew.h"
#include "replicas/helpers/remote_memory.h"
#include "replicas/jobs/jobs.h"
#include "replicas/jobs/jobs_private.h"
#include "replicas/machine/affinity.h"
#include "replicas/machine/limits.h"
#include "replicas/machine/thread.h"
#include "replicas/placement/placement.h"
#include "replicas/team/recorder.h"
#include "replicas/team/turn.h"

#include <stdlib.h>
#include <string.h>

/* A thread that may not spin yields before it sleeps, for DTI_YIELD_NS and YIELD_SHARER_NS for each of the
 * team's threads on a PU, on average, but at most for YIELD_MOST_NS. Each of them may then do some work in
 * the meantime. To sleep, and to be woken, costs more than a share of 100 us (docs/adr/0004-waiting.md). */
#define YIELD_SHARER_NS 100000u
#define YIELD_MOST_NS   1000000u

/* The first job of every replica. Binds its thread to its PU, and creates its arena there and its crew. */
static ditto_status prepare_replica(struct dti_replica *r, void *unused)
{
    struct dti_team *team = r->team;
    (void)unused;
    /* A caller that works as replica 0 keeps its memory policy. dti_cross_enter has bound it unless its PUs
     * are not allowed. That is an error here, and not in later runs. */
    if (r->index != 0 || team->options.caller_waits)
        DTI_TRY(dti_team_bind_thread(team, &r->mask));
    else if (team->options.pin)
        DTI_TRY(dti_pin_to(&r->mask));
    /* With helpers off, the thread may run on several PUs and so may leave its node. */
    bool floats = team->options.pin && dti_mask_count(&r->mask) > 1;
    DTI_TRY(dti_arena_create(r->pu.memory_node, floats ? r->pu.number : DTI_NO_PU,
                             team->options.strict_memory, &r->arena));
    return dti_crew_create(r, team->options.placement, &r->crew);
}

static ditto_status start_threads(struct dti_team *team, uint32_t *started)
{
    for (*started = team->options.caller_waits ? 0 : 1; *started < team->n; ++*started) {
        struct dti_replica *r = &team->replica[*started];
        int error_number = dti_thread_start(&r->thread, team->options.stack_bytes, dti_team_thread_main, r);
        if (error_number != 0)
            return dti_thread_refused(error_number, team->options.stack_bytes, "replica %u of %u", *started,
                                      team->n);
    }
    return DITTO_OK;
}

/* Returns true if the PU of device `device` also belongs to an earlier device of the replica. A replica's set
 * may contain a PU twice. */
static bool listed_before(const ditto_placement *placement, uint32_t replica, uint32_t device)
{
    uint32_t pu = dti_placement_pu(placement, replica, device)->is.number, d = 0;
    while (d < device && dti_placement_pu(placement, replica, d)->is.number != pu)
        d++;
    return d < device;
}

static void end_threads(struct dti_team *team, uint32_t started)
{
    dti_team_end_threads(team);
    for (uint32_t i = team->options.caller_waits ? 0 : 1; i < started; i++)
        pthread_join(team->replica[i].thread, NULL);
    if (!team->options.caller_waits)
        dti_crew_end_threads(team->replica[0].crew);
}

/* Calls `count` for the PU of each leader and each helper. With helpers off, it is called for all PUs of a
 * replica, because the leader may run on all of them, and so may the threads that the host starts there. If
 * threads are not bound, the PU is DTI_NO_PU. */
static void count_load(const struct dti_team *team, void (*count)(uint32_t pu))
{
    if (team->options.plain || team->options.idle)
        return;
    for (uint32_t i = 0; i < team->n; i++)
        for (uint32_t d = 0; d < team->replica[i].pus; d++)
            if (team->options.helpers || !listed_before(team->options.placement, i, d))
                count(team->options.pin ? dti_placement_pu(team->options.placement, i, d)->is.number
                                        : DTI_NO_PU);
}

void dti_team_uncount(const struct dti_team *team)
{
    count_load(team, dti_load_remove);
}

uint32_t dti_team_threads_on(const struct dti_team *team, uint32_t pu)
{
    uint32_t threads = 0;
    for (uint32_t i = 0; i < team->n; i++)
        for (uint32_t d = 0; d < team->replica[i].pus; d++)
            threads += dti_placement_pu(team->options.placement, i, d)->is.number == pu &&
                       (team->options.helpers || !listed_before(team->options.placement, i, d));
    return threads;
}

/* Opens the gates of the dependents before `end` in the list, and of the team. Gates of dependents that the
 * user has destroyed stay closed. */
static void open_gates(struct dti_team *team, const struct dti_dependent *end)
{
    for (struct dti_dependent *d = team->dependents; d != end; d = d->next)
        if (!dti_gate_is_closed(&d->gate))
            dti_gate_open(&d->gate);
    dti_gate_open(&team->gate);
}

static bool shut_gates(struct dti_team *team)
{
    struct dti_dependent *d = team->dependents;
    if (!dti_gate_shut(&team->gate))
        return false;
    while (d != NULL && (dti_gate_is_closed(&d->gate) || dti_gate_shut(&d->gate)))
        d = d->next;
    if (d != NULL)
        open_gates(team, d);
    return d == NULL;
}

ditto_status dti_team_close(struct dti_team *team)
{
    if (pthread_mutex_trylock(&team->lock) == 0) {
        if (shut_gates(team))
            return DITTO_OK;
        pthread_mutex_unlock(&team->lock);
    }
    return DTI_FAIL(
        DITTO_ERR_BUSY,
        "a call on the strategy, or on something that was made with it, has not returned (on another "
        "thread, or on this one, from a function that the call was given): destroy it after that");
}

void dti_team_reopen(struct dti_team *team)
{
    open_gates(team, NULL);
    pthread_mutex_unlock(&team->lock);
}

static void close_gate(struct dti_gate *gate, enum dti_team_end end)
{
    if (end == DTI_TEAM_IS_FORKED)
        dti_gate_close_in_child(gate);
    else
        dti_gate_close(gate);
}

/* All dependents drop the team before any of those that the team frees is freed, because one may refer to
 * another. With DTI_TEAM_IS_LEFT they stay in the list, so that leak detectors find them. The gate of a
 * dependent is closed last, because the user may free the dependent as soon as it is closed. */
static void end_dependents(struct dti_team *team, enum dti_team_end end)
{
    struct dti_dependent *freed_here = NULL;
    for (struct dti_dependent *d = team->dependents, *next; d != NULL; d = next) {
        next = d->next;
        if (end != DTI_TEAM_IS_LEFT)
            dti_dependent_remove(d);
        if (d->kind->team_ends != NULL)
            d->kind->team_ends(d, end);
        if (d->freed_by == DTI_FREED_BY_DESTROY && end == DTI_TEAM_IS_LEFT)
            d->freed_by = DTI_FREED_BY_NOBODY;
        if (d->freed_by == DTI_FREED_BY_TEAM && end != DTI_TEAM_IS_LEFT) {
            d->next = freed_here;
            freed_here = d;
        }
        if (!dti_gate_is_closed(&d->gate))
            close_gate(&d->gate, end);
    }
    while (freed_here != NULL) {
        struct dti_dependent *d = freed_here;
        freed_here = d->next;
        d->kind->release(d);
    }
    close_gate(&team->gate, end);
}

static void release(struct dti_team *team)
{
    dti_trace_forget(team);
    for (uint32_t i = 0; i < team->n; i++) {
        dti_crew_free(team->replica[i].crew);
        dti_remote_memory_free(team->replica[i].remote_memory);
        dti_arena_destroy(team->replica[i].arena);
    }
    dti_wait_queue_free(&team->wait_queue);
    pthread_mutex_destroy(&team->lock);
    free(team->replica);
    free(team);
}

static void init_replicas(struct dti_team *team, const ditto_placement *placement)
{
    static const uint64_t never = DTI_NEVER;
    for (uint32_t i = 0; i < team->n; i++) {
        struct dti_replica *r = &team->replica[i];
        atomic_init(&r->done, DTI_GO_NONE);
        r->outcome = DITTO_OK;
        r->run = r->seen = DTI_GO_NONE;
        r->depth = 0;
        r->index = i;
        r->place = i;
        r->rank = r->id = team->first + i;
        r->team = team;
        r->of_team = r;
        r->num_replicas = team->n;
        r->all_replicas = team->all;
        r->stop = &team->stop;
        r->wait_queue = &team->wait_queue;
        r->timeout_ms = team->options.timeout_ms;
        r->process = team->process;
        r->run_deadline_ns = i == 0 && !team->options.caller_waits ? &team->run_deadline_ns : &never;
        r->arena = NULL;
        r->pu = dti_placement_leader(placement, i)->is;
        r->pus = placement->blocks[i].count;
        r->crew = NULL;
        r->remote_memory = NULL;
        r->in_place = NULL;
        r->sync = NULL;
        r->tracer = r->traced = NULL;
        dti_mask_clear(&r->mask);
        for (uint32_t d = 0; d < (team->options.helpers ? 1 : r->pus); d++)
            dti_mask_add(&r->mask, dti_placement_pu(placement, i, d)->is.number);
        r->wait_policy = r->rest_policy = dti_team_wait_policy(team, r->pu.number, &r->load_epoch);
        r->tid = -1;
    }
}

/* Returns true if two threads of the team must share a PU, or if the CPU quota is below the number of
 * threads. Stores that number in *threads. */
static bool is_oversubscribed(const struct dti_team_options *options, uint32_t *threads)
{
    const ditto_placement *p = options->placement;
    bool shared = options->helpers && p->shared;
    *threads = 0;
    for (uint32_t r = 0; r < p->replicas; r++)
        *threads += options->helpers ? p->blocks[r].count : 1;
    /* Two leaders on one PU have consecutive ids, because ids follow the mesh. */
    for (uint32_t r = 1; r < p->replicas && !options->helpers; r++)
        shared |= dti_placement_leader(p, r) == dti_placement_leader(p, r - 1);
    return shared || (options->cpu_quota > 0 && options->cpu_quota < *threads);
}

/* The number of teams that this process has created. */
static _Atomic uint32_t teams;

static struct dti_team *allocate(const struct dti_team_options *options)
{
    uint32_t n = options->placement->replicas, threads = 0;
    struct dti_team *team = aligned_alloc(DTI_CACHE_LINE_PAIR, sizeof *team);
    if (team == NULL)
        return NULL;
    memset(team, 0, sizeof *team);
    team->options = *options;
    team->n = n;
    team->first = options->first_replica;
    team->all = options->all_replicas != 0 ? options->all_replicas : n;
    /* relaxed: the numbers only have to differ */
    team->number = 1 + atomic_fetch_add_explicit(&teams, 1, memory_order_relaxed) %
                           ((1u << DTI_HANDLE_TEAM_BITS) - 1);
    team->oversubscribed = is_oversubscribed(options, &threads);
    team->yield_ns = DTI_YIELD_NS + YIELD_SHARER_NS * (threads / (options->pus != 0 ? options->pus : 1));
    team->yield_ns = team->yield_ns < YIELD_MOST_NS ? team->yield_ns : YIELD_MOST_NS;
    pthread_mutex_init(&team->lock, NULL);
    dti_stop_init(&team->stop);
    atomic_init(&team->go, DTI_GO_NONE);
    atomic_init(&team->run, DTI_GO_NONE);
    atomic_init(&team->poisoned, false);
    team->process = dti_process_number();
    team->replica = aligned_alloc(DTI_CACHE_LINE_PAIR, n * sizeof *team->replica);
    enum dti_sleeps sleeps = team->oversubscribed || options->wait == DITTO_WAIT_PASSIVE ? DTI_SLEEPS_OFTEN
                                                                                         : DTI_SLEEPS_RARE;
    if (team->process == 0 || team->replica == NULL ||
        !dti_wait_queue_init(&team->wait_queue, n + 1, sleeps)) {
        team->n = 0; /* no replica has been set up */
        release(team);
        return NULL;
    }
    init_replicas(team, options->placement);
    return team;
}

ditto_status dti_team_create(const struct dti_team_options *options, struct dti_team **out)
{
    struct dti_frame frame;
    uint32_t started = 0;
    struct dti_team *team = allocate(options);
    if (team == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a team of %u replicas",
                        options->placement->replicas);
    count_load(team, dti_load_add);
    ditto_status status = start_threads(team, &started);
    if (status == DITTO_OK)
        status = dti_cross_enter(team, &frame, DTI_CALLER_PINNED);
    if (status == DITTO_OK) {
        status = dti_team_run(team, prepare_replica, NULL, false);
        dti_cross_leave(team, &frame);
    }
    if (status != DITTO_OK) {
        end_threads(team, started);
        count_load(team, dti_load_remove);
        release(team);
        return status;
    }
    *out = team;
    return DITTO_OK;
}

/* Destroys a poisoned team. Ends the threads that are parked, and leaves the other threads and all memory
 * that they may use as they are. */
static ditto_status abandon(struct dti_team *team)
{
    char missing[256];
    /* The outermost run decides, because a replica that has returned from a run inside it is still in its
     * function. */
    dti_team_list_missing(team, team->outermost, missing, sizeof missing);
    bool returned[DITTO_MAX_REPLICAS] = { false };
    for (uint32_t i = 0; i < team->n; i++)
        returned[i] = dti_team_has_left(team, i);
    dti_team_end_threads(team); /* also ends a thread that returns later */
    for (uint32_t i = team->options.caller_waits ? 0 : 1; i < team->n; i++)
        if (returned[i])
            pthread_join(team->replica[i].thread, NULL);
        else
            pthread_detach(team->replica[i].thread);
    if (!team->options.caller_waits) /* replica 0 is this thread, so it has returned */
        dti_crew_end_threads(team->replica[0].crew);
    return DTI_FAIL(DITTO_ERR_POISONED,
                    "destroyed, but replicas %s never returned: their threads still run, and the strategy's "
                    "memory is not freed",
                    missing);
}

ditto_status dti_team_destroy(struct dti_team *team)
{
    enum dti_team_end end = dti_team_forked(team) ? DTI_TEAM_IS_FORKED
                            : team->poisoned      ? DTI_TEAM_IS_LEFT
                                                  : DTI_TEAM_ENDS;
    struct dti_frame frame; /* for a cross call that has the turn */
    dti_frame_push_cross(&frame, team);
    frame.has_turn = true;
    end_dependents(team, end);
    count_load(team, dti_load_remove);
    dti_frame_pop(&frame);
    if (end == DTI_TEAM_IS_LEFT) {
        ditto_status status = abandon(team);
        /* From here on, calls on objects that a late replica creates return POISONED. */
        pthread_mutex_unlock(&team->lock);
        return status;
    }
    /* In a child process there are no threads to end, and the lock may be held by a thread that does not
     * exist. */
    if (end == DTI_TEAM_ENDS) {
        end_threads(team, team->n);
        pthread_mutex_unlock(&team->lock);
    }
    release(team);
    return DITTO_OK;
}
