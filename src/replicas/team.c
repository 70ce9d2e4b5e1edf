/* src/replicas/team.c - persistent threads, fork-join, stopping. The contracts are in team.h. */
#include "replicas/team.h"
#include "replicas/elsewhere.h"
#include "replicas/limits.h"
#include "replicas/load.h"
#include "replicas/pin.h"
#include "replicas/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GO_EXIT         0u     /* the run number that ends the threads */
#define GO_NONE         1u     /* before the first run */
#define GRACE_MS        1000u  /* after a run timeout: for those who only wait for the ones that are missing */
#define YIELD_NS        50000u /* how long a crowded thread yields before it sleeps, */
#define YIELD_SHARER_NS 5000u  /* and more for each thread it shares its PU with: each has its turn once */

/* -- the run of one replica -- */

struct dti_patience dti_team_patience(const struct dti_team *team, uint32_t pu, uint32_t *epoch)
{
    const struct dti_team_options *o = &team->options;
    *epoch = dti_load_epoch(); /* first: a change meanwhile is noticed next time */
    bool crowded = team->crowded || dti_load_crowded(o->pin ? pu : DTI_NO_PU, o->pus, o->cpu_quota);
    return (struct dti_patience){ .spin_ns = crowded ? 0 : (uint64_t)o->spin_us * 1000u,
                                  .yield_ns = crowded ? team->yield_ns : 0 };
}

static void set_patience(struct dti_replica *r)
{
    r->patience = dti_team_patience(r->team, r->pu.number, &r->load_epoch);
}

/* An error that the function returned without saying why, or whose record is of something else. */
static void ensure_record(struct dti_replica *r, ditto_status status, uint32_t serial_before)
{
    if (dti_error_serial == serial_before || dti_error_get()->status != status)
        DTI_FAIL(status, "replica %u's function returned %s (%d) without a message of its own", r->id,
                 ditto_status_name(status), (int)status);
}

/* Functions on devices that nobody has joined. */
static bool has_unjoined(const struct dti_replica *r)
{
    return r->crew != NULL && r->crew->outstanding;
}

static void work(struct dti_replica *r, uint32_t number)
{
    struct dti_team *team = r->team;
    if (r->load_epoch != dti_load_epoch())
        set_patience(r);
    dti_error_replica = (int32_t)r->id;
    uint32_t serial = dti_error_serial;
    ditto_status status = team->job(r, team->argument);
    if (status >= 0 && has_unjoined(r)) { /* functions on devices: their error is the function's */
        ditto_status joined = dti_crew_join(r);
        status = joined < 0 ? joined : status;
    }
    ditto_status news = status > 0 ? status : DITTO_OK;
    if (r->news != news) /* the poster watches this line: it is written as seldom as can be */
        r->news = news;
    if (status < 0) {
        ensure_record(r, status, serial);
        dti_team_stop(team);
        if (has_unjoined(r)) /* told already: only what has begun is awaited, because it may use this thread's memory */
            (void)dti_crew_join(r);
    }
    dti_error_replica = -1;
    if (team->crowded) /* release: pairs with the acquire of a waiter in a crowded meeting (src/sync/meeting.c) */
        atomic_fetch_add_explicit(&team->returned, 1, memory_order_release);
    atomic_store_explicit(&r->done, number, memory_order_release); /* D0 */
    dti_waitroom_signal(&team->room, r->id);
    /* Peers that wait for a meeting which this replica will not attend look again when a replica is gone. */
    dti_waitroom_signal(&team->room, DTI_AWAITS_MEETING(team));
}

struct go_wait {
    struct dti_team *team;
    uint32_t last;
};
static bool go_changed(void *argument)
{
    struct go_wait *w = argument;
    return atomic_load_explicit(&w->team->go, memory_order_acquire) != w->last; /* G1 */
}

static void *thread_main(void *argument)
{
    struct dti_replica *r = argument;
    struct dti_team *team = r->team;
    struct go_wait wait = { team, GO_NONE };
    char name[16];
    snprintf(name, sizeof name, "ditto-r%u", r->id);
    dti_thread_settle(name);
    r->tid = (int32_t)syscall(SYS_gettid);
    if (team->options.thread_start != NULL)
        team->options.thread_start(r->id, team->options.thread_user);
    set_patience(r);
    for (;;) {
        dti_wait(&team->room, r->id, DTI_AWAITS_GO(team), &r->patience,
                 &(struct dti_deadline){ .timeout_ms = DITTO_FOREVER }, go_changed, &wait);
        wait.last = atomic_load_explicit(&team->go, memory_order_acquire); /* G1 */
        if (wait.last == GO_EXIT)
            break;
        work(r, wait.last);
    }
    dti_crew_end_threads(r->crew); /* here, so that a leader who was given up on still sends its helpers home */
    if (team->options.thread_stop != NULL)
        team->options.thread_stop(r->id, team->options.thread_user);
    return NULL;
}

/* -- run -- */

static uint32_t poster_seat(const struct dti_team *team)
{
    return team->options.caller_waits ? team->n : 0;
}

static void post(struct dti_team *team, uint32_t number)
{
    atomic_store_explicit(&team->go, number, memory_order_release); /* G0 */
    dti_waitroom_signal(&team->room, DTI_AWAITS_GO(team));
}

struct done_wait {
    const struct dti_replica *replica;
    uint32_t number;
};
static bool is_done(void *argument)
{
    struct done_wait *w = argument;
    return atomic_load_explicit(&w->replica->done, memory_order_acquire) == w->number; /* D1 */
}

/* Waits for all; false when the deadline came first. */
static bool join(struct dti_team *team, uint32_t number, struct dti_deadline *deadline)
{
    static const struct dti_patience asleep = { 0, 0 };
    bool waits = team->options.caller_waits;
    for (uint32_t i = waits ? 0 : 1; i < team->n; i++) {
        struct done_wait w = { &team->replica[i], number };
        if (!dti_wait(&team->room, poster_seat(team), i, waits ? &asleep : &team->replica[0].patience, deadline,
                      is_done, &w))
            return false;
    }
    return true;
}

/* The replicas that have not returned, as "2, 5". */
static void list_missing(const struct dti_team *team, uint32_t number, char *buffer, size_t size)
{
    struct dti_text text = { buffer, size, 0 };
    buffer[0] = '\0';
    for (uint32_t i = 0; i < team->n; i++) {
        struct done_wait w = { &team->replica[i], number };
        if (!(i == 0 && !team->options.caller_waits) && !is_done(&w))
            dti_text_add(&text, "%s%u", text.length != 0 ? ", " : "", i);
    }
}

/* The run timeout has come: stop those who wait, and give up on those who do not return. */
static void give_up(struct dti_team *team, uint32_t number)
{
    char missing[256];
    list_missing(team, number, missing, sizeof missing);
    DTI_FAIL(DITTO_ERR_TIMED_OUT, "run_timeout_ms = %u passed, and these replicas had not returned: %s",
             team->options.run_timeout_ms, missing);
    dti_team_stop(team);
    team->poisoned = !join(team, number, &(struct dti_deadline){ .timeout_ms = GRACE_MS });
}

/* The run's error into the caller's record. The stop record itself stays as it was published. */
static ditto_status tell_error(const struct dti_team *team, uint32_t number)
{
    ditto_error error = team->stop.error;
    if (team->poisoned) {
        char missing[256];
        struct dti_text text = { error.message, sizeof error.message, strlen(error.message) };
        list_missing(team, number, missing, sizeof missing);
        dti_text_add(&text, "; replicas %s still run: the strategy is poisoned, only destroy is allowed", missing);
    }
    dti_error_set(&error);
    return error.status;
}

ditto_status dti_team_run(struct dti_team *team, dti_job job, void *argument, uint32_t timeout_ms)
{
    uint32_t number = dti_team_run_number(team) + 1;
    number += number == GO_EXIT;
    struct dti_deadline deadline = { .timeout_ms = timeout_ms };
    /* The replicas watch this line: mostly only go changes in it. */
    if (team->job != job || team->argument != argument) {
        team->job = job;
        team->argument = argument;
    }
    if (team->crowded) /* relaxed: all are parked, and go publishes it */
        atomic_store_explicit(&team->returned, 0, memory_order_relaxed);
    team->run_deadline_ns = dti_deadline_at(&deadline);
    post(team, number);
    if (!team->options.caller_waits) {
        const char *function = dti_public_function; /* the replica's own calls are over then */
        work(&team->replica[0], number);
        dti_public_function = function;
    }
    /* Replica 0's function may have forked, and this be the child: nobody else is here to be joined. */
    if (dti_team_forked(team))
        return dti_fail_forked();
    if (!join(team, number, &deadline))
        give_up(team, number);
    if (dti_stopped(&team->stop))
        return tell_error(team, number);
    for (uint32_t i = 0; i < team->n; i++)
        if (team->replica[i].news != DITTO_OK)
            return team->replica[i].news;
    return DITTO_OK;
}

void dti_team_renew(struct dti_team *team)
{
    dti_stop_renew(&team->stop);
}

uint32_t dti_team_run_number(const struct dti_team *team)
{
    /* relaxed: the poster wrote it itself, a replica in a run has acquired it already */
    return atomic_load_explicit(&team->go, memory_order_relaxed);
}

/* -- stopping -- */

void dti_team_stop(struct dti_team *team)
{
    if (dti_stop_now(&team->stop, dti_error_get()))
        dti_waitroom_signal(&team->room, DTI_EVERYONE);
}

ditto_status dti_team_stop_status(const struct dti_team *team)
{
    const ditto_error *first = &team->stop.error;
    if (first->status == DITTO_ERR_DIVERGED)
        return DTI_FAIL(DITTO_ERR_DIVERGED, "%s", first->message);
    if (first->replica < 0)
        return DTI_FAIL(DITTO_ERR_PEER_STOPPED, "the run was stopped with %s: %.300s", ditto_status_name(first->status),
                        first->message);
    return DTI_FAIL(DITTO_ERR_PEER_STOPPED, "replica %d stopped the run with %s: %.300s", (int)first->replica,
                    ditto_status_name(first->status), first->message);
}

bool dti_team_all_returned(const struct dti_team *team)
{
    for (uint32_t i = 0; i < team->n; i++)
        if (!dti_replica_returned(&team->replica[i]))
            return false;
    return true;
}

bool dti_replica_returned(const struct dti_replica *r)
{
    return atomic_load_explicit(&r->done, memory_order_acquire) == dti_team_run_number(r->team); /* D1 */
}

const ditto_replica *dti_replica_handle(const struct dti_replica *r)
{
    return (const ditto_replica *)(const void *)&r->handles[dti_team_run_number(r->team) % DTI_HANDLES];
}

bool dti_replica_owns_handle(const struct dti_replica *r, const ditto_replica *self)
{
    return (uintptr_t)self >= (uintptr_t)r->handles && (uintptr_t)self < (uintptr_t)r->handles + DTI_HANDLES;
}

ditto_status dti_replica_alloc(struct dti_replica *r, size_t bytes, size_t alignment, void **out)
{
    return dti_arena_alloc(r->arena, bytes, alignment, out);
}

/* -- cross calls -- */

ditto_status dti_fail_forked(void)
{
    return DTI_FAIL(DITTO_ERR_FORKED,
                    "the strategy was made before fork and is dead in this child process: destroy it and "
                    "create another");
}

static bool in_scope(const struct dti_team *team)
{
    return dti_frame_top != NULL && dti_frame_top->team == team;
}

ditto_status dti_cross_enter(struct dti_team *team, struct dti_frame *frame, enum dti_caller_place place)
{
    DTI_TRY(dti_context_check_cross(team));
    if (dti_team_forked(team))
        return dti_fail_forked();
    frame->kind = DTI_CONTEXT_CROSS;
    frame->team = team;
    frame->replica = NULL;
    frame->self = NULL;
    frame->entries = 0;
    frame->pinned = place == DTI_CALLER_PINNED && !in_scope(team) && team->options.pin && !team->options.caller_waits;
    pthread_mutex_lock(&team->lock);
    ditto_status status = DITTO_OK;
    if (team->poisoned)
        status =
            DTI_FAIL(DITTO_ERR_POISONED, "an earlier run left a replica that never returned: destroy the strategy");
    else if (frame->pinned) {
        status = dti_affinity_get(&frame->saved);
        if (status == DITTO_OK)
            status = dti_pin_to(&team->replica[0].mask);
    }
    if (status != DITTO_OK) {
        pthread_mutex_unlock(&team->lock);
        return status;
    }
    dti_frame_push(frame);
    return DITTO_OK;
}

void dti_cross_leave(struct dti_team *team, struct dti_frame *frame)
{
    dti_frame_pop(frame);
    pthread_mutex_unlock(&team->lock);
    if (frame->pinned)
        dti_affinity_restore(&frame->saved);
}

/* -- dependents -- */

void dti_dependent_add(struct dti_team *team, struct dti_dependent *dependent)
{
    dependent->before = &team->dependents;
    dependent->next = team->dependents;
    if (dependent->next != NULL)
        dependent->next->before = &dependent->next;
    team->dependents = dependent;
}

void dti_dependent_remove(struct dti_team *team, struct dti_dependent *dependent)
{
    (void)team; /* whose lock the caller holds */
    *dependent->before = dependent->next;
    if (dependent->next != NULL)
        dependent->next->before = dependent->before;
}

/* -- create and destroy -- */

/* The first job of every replica: on its PU, with its arena there. */
static ditto_status settle(struct dti_replica *r, void *unused)
{
    struct dti_team *team = r->team;
    (void)unused;
    if (r->id != 0 ||
        team->options.caller_waits) /* a caller has been pinned by dti_cross_enter, and keeps its policy */
        DTI_TRY(dti_team_settle_thread(team, &r->mask));
    r->cpu = team->options.pin ? sched_getcpu() : -1;
    bool floats = team->options.pin && dti_mask_count(&r->mask) > 1; /* helpers off: it may leave its node */
    DTI_TRY(
        dti_arena_create(r->pu.memory_node, floats ? r->pu.number : DTI_NO_PU, team->options.strict_memory, &r->arena));
    return dti_crew_create(r, team->options.placement, &r->crew);
}

ditto_status dti_team_settle_thread(const struct dti_team *team, const struct dti_mask *mask)
{
    if (!team->options.pin)
        return DITTO_OK;
    DTI_TRY(dti_pin_to(mask));
    dti_policy_drop();
    return DITTO_OK;
}

static ditto_status start_threads(struct dti_team *team, uint32_t *started)
{
    for (*started = team->options.caller_waits ? 0 : 1; *started < team->n; ++*started) {
        struct dti_replica *r = &team->replica[*started];
        int failed = dti_thread_start(&r->thread, team->options.stack_bytes, thread_main, r);
        if (failed != 0)
            return dti_thread_refused(failed, team->options.stack_bytes, "replica %u of %u", *started, team->n);
    }
    return DITTO_OK;
}

/* A PU may stand twice in a replica's set. */
static bool listed_before(const ditto_placement *placement, uint32_t replica, uint32_t device)
{
    uint32_t pu = dti_placement_pu(placement, replica, device)->is.number, d = 0;
    while (d < device && dti_placement_pu(placement, replica, d)->is.number != pu)
        d++;
    return d < device;
}

static void end_threads(struct dti_team *team, uint32_t started)
{
    post(team, GO_EXIT);
    for (uint32_t i = team->options.caller_waits ? 0 : 1; i < started; i++)
        pthread_join(team->replica[i].thread, NULL);
    if (!team->options.caller_waits)
        dti_crew_end_threads(team->replica[0].crew);
}

/* Every thread on every PU that it may run on: one for each leader and helper; with helpers off a leader may run on all PUs of
 * its replica, and so will the threads that the host starts there. */
static void count_load(const struct dti_team *team, void (*count)(uint32_t pu))
{
    for (uint32_t i = 0; i < team->n; i++)
        for (uint32_t d = 0; d < team->replica[i].pus; d++)
            if (team->options.helpers || !listed_before(team->options.placement, i, d))
                count(team->options.pin ? dti_placement_pu(team->options.placement, i, d)->is.number : DTI_NO_PU);
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

static void orphan_dependents(struct dti_team *team, bool threads_live)
{
    while (team->dependents != NULL) {
        struct dti_dependent *dependent = team->dependents;
        dti_dependent_remove(team, dependent);
        dependent->orphan(dependent, threads_live);
    }
}

static void release(struct dti_team *team)
{
    for (uint32_t i = 0; i < team->n; i++) {
        dti_crew_free(team->replica[i].crew);
        dti_elsewhere_free(team->replica[i].elsewhere);
        dti_arena_destroy(team->replica[i].arena);
    }
    dti_waitroom_free(&team->room);
    if (team->alive != NULL)
        munmap((void *)(uintptr_t)team->alive, sizeof *team->alive);
    pthread_mutex_destroy(&team->lock);
    free(team->replica);
    free(team);
}

/* A page that the kernel zeroes in a child process: noticed however the fork was made, atfork handlers run or not. */
static const uint32_t *map_alive(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint32_t *alive = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (alive == MAP_FAILED)
        return NULL;
    madvise(alive, page, MADV_WIPEONFORK);
    *alive = 1;
    return alive;
}

static void init_replicas(struct dti_team *team, const ditto_placement *placement)
{
    for (uint32_t i = 0; i < team->n; i++) {
        struct dti_replica *r = &team->replica[i];
        atomic_init(&r->done, GO_NONE);
        r->news = DITTO_OK;
        r->id = i;
        r->team = team;
        r->arena = NULL;
        r->pu = dti_placement_leader(placement, i)->is;
        r->pus = placement->blocks[i].count;
        r->crew = NULL;
        r->elsewhere = NULL;
        dti_mask_clear(&r->mask);
        for (uint32_t d = 0; d < (team->options.helpers ? 1 : r->pus); d++)
            dti_mask_add(&r->mask, dti_placement_pu(placement, i, d)->is.number);
        set_patience(r);
        r->tid = r->cpu = -1;
    }
}

/* By itself: two of its threads must share a PU, or the quota is below their number. */
static bool is_crowded(const struct dti_team_options *options, uint32_t *threads)
{
    const ditto_placement *p = options->placement;
    bool shared = options->helpers && p->shared;
    *threads = 0;
    for (uint32_t r = 0; r < p->replicas; r++)
        *threads += options->helpers ? p->blocks[r].count : 1;
    for (uint32_t r = 1; r < p->replicas && !options->helpers; r++) /* leaders; ids follow the mesh */
        shared |= dti_placement_leader(p, r) == dti_placement_leader(p, r - 1);
    return shared || (options->cpu_quota > 0 && options->cpu_quota < *threads);
}

static struct dti_team *allocate(const struct dti_team_options *options)
{
    uint32_t n = options->placement->replicas, threads = 0;
    struct dti_team *team = aligned_alloc(DTI_LINE_PAIR, sizeof *team);
    if (team == NULL)
        return NULL;
    memset(team, 0, sizeof *team);
    team->options = *options;
    team->n = n;
    team->crowded = is_crowded(options, &threads);
    team->yield_ns = YIELD_NS + YIELD_SHARER_NS * (threads / (options->pus != 0 ? options->pus : 1));
    pthread_mutex_init(&team->lock, NULL);
    dti_stop_init(&team->stop);
    atomic_init(&team->go, GO_NONE);
    team->alive = map_alive();
    team->replica = aligned_alloc(DTI_LINE_PAIR, n * sizeof *team->replica);
    if (team->alive == NULL || team->replica == NULL || !dti_waitroom_init(&team->room, n + 1)) {
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
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a team of %u replicas", options->placement->replicas);
    count_load(team, dti_load_add);
    ditto_status status = start_threads(team, &started);
    if (status == DITTO_OK)
        status = dti_cross_enter(team, &frame, DTI_CALLER_PINNED);
    if (status == DITTO_OK) {
        status = dti_team_run(team, settle, NULL, DITTO_FOREVER);
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

/* A poisoned team: ends the threads that are parked, leaves the others and all memory that they may touch. */
static ditto_status abandon(struct dti_team *team)
{
    char missing[256];
    uint32_t number = dti_team_run_number(team);
    list_missing(team, number, missing, sizeof missing);
    bool returned[DITTO_MAX_REPLICAS] = { false };
    for (uint32_t i = 0; i < team->n; i++)
        returned[i] = dti_replica_returned(&team->replica[i]);
    post(team, GO_EXIT); /* a thread that returns after all ends too */
    for (uint32_t i = team->options.caller_waits ? 0 : 1; i < team->n; i++)
        if (returned[i])
            pthread_join(team->replica[i].thread, NULL);
        else
            pthread_detach(team->replica[i].thread);
    if (!team->options.caller_waits) /* it is here, so it has returned */
        dti_crew_end_threads(team->replica[0].crew);
    return DTI_FAIL(DITTO_ERR_POISONED,
                    "destroyed, but replicas %s never returned: their threads and the strategy's memory "
                    "are left to them",
                    missing);
}

ditto_status dti_team_destroy(struct dti_team *team)
{
    bool forked = dti_team_forked(team);
    orphan_dependents(team, !forked);
    count_load(team, dti_load_remove);
    if (team->poisoned && !forked)
        return abandon(team);
    if (!forked) /* in a child there are no threads to end */
        end_threads(team, team->n);
    release(team);
    return DITTO_OK;
}
