/* src/replicas/helpers/crew.c - loops and functions on the devices of a replica. See crew.h. */
#include "replicas/helpers/crew.h"
#include "base/errors/user_call.h"
#include "replicas/machine/affinity.h"
#include "replicas/machine/thread.h"
#include "replicas/memory/arena.h"
#include "replicas/placement/placement.h"
#include "replicas/team/recorder.h"
#include "replicas/team/replica.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GO_EXIT 0u /* the loop number that ends the helpers */
#define GO_NONE 1u /* the loop number before the first loop */

/* Returns the event that is signalled to the helper of a device when it gets a function. A new loop is
 * signalled to DTI_EVERYONE. The leader waits for events whose numbers are the indices of devices. */
static uint32_t work_event(const struct dti_device *d)
{
    return d->crew->devices + d->index;
}

/* -- calls of the user's functions on a device, on helpers and on the leader -- */

struct call {
    const struct dti_device_task *task; /* NULL for a piece of `loop` */
    const struct dti_loop *loop;
    size_t begin, end;
};

static bool stopped(const struct dti_device *d)
{
    return dti_stopped(d->crew->replica->stop);
}

static DTI_GUARDED ditto_status call_function(const struct dti_device *d, const struct call *call)
{
    ditto_status status;
    DTI_GUARD("a function given to a logical device (ditto_on_logical_device, ditto_parallel_for, "
              "ditto_parallel_reduce)");
    if (call->task != NULL)
        status = call->task->function(d->index, call->task->argument);
    else
        status = call->loop->function(call->begin, call->end, d->index, call->loop->argument);
    DTI_GUARD_END();
    return status;
}

/* Returns false if the function was not called, because the run was stopped before, or if it failed, which
 * stops the run. */
static bool call_on(struct dti_device *d, const struct call *call)
{
    struct dti_frame frame; /* its mask of a kilobyte is not used, and not written */
    uint32_t serial = dti_this_thread()->errors;
    if (stopped(d))
        return false;
    const char *outer_function = dti_public_enter(call->task != NULL ? call->task->caller
                                                                     : call->loop->caller);
    struct dti_fenv saved = dti_frame_enter(&frame, DTI_CONTEXT_DEVICE, d->crew->replica, NULL);
    frame.device = d->index;
    ditto_status status = call_function(d, call);
    dti_frame_leave(&frame, saved);
    if (status < 0) {
        /* Keeps the first error for the leader and stops the run, as an error of the leader does. */
        struct dti_crew *crew = d->crew;
        if (!dti_wrote_record(status, serial))
            DTI_FAIL(
                status,
                "a function on logical device %u of replica %u returned %s (%d) without a message: set one "
                "with ditto_fail",
                d->index, crew->replica->id, ditto_status_name(status), (int)status);
        dti_stop_now(&crew->failed, dti_error_get(), 0); /* 0, because no runs nest here */
        dti_replica_stop(crew->replica);
    }
    dti_public_leave(&outer_function);
    return status >= 0;
}

/* Executes all functions in the ring of the device. If the run is stopped they are skipped, but count as
 * finished. */
static void drain(struct dti_device *d)
{
    /* relaxed: only the thread of the device, which is this thread, writes finished */
    uint32_t at = atomic_load_explicit(&d->finished, memory_order_relaxed);
    while (at != atomic_load_explicit(&d->submitted, memory_order_acquire)) { /* P1 */
        const struct dti_device_task *task = &d->ring[at % DTI_DEVICE_TASKS];
        if (!task->offered)
            call_on(d, &(struct call){ .task = task });
        else if (!stopped(d))
            (void)task->function(d->index, task->argument);
        atomic_store_explicit(&d->finished, ++at, memory_order_release); /* F0 */
        dti_wait_queue_signal(&d->crew->wait_queue, d->index);
    }
}

/* Runs the share that this device has of a loop. */
static void run_share(struct dti_device *d, const struct dti_loop *loop, uint32_t devices)
{
    size_t first, last;
    if (!loop->dynamic) {
        first = dti_loop_range_part(&loop->range, d->index, devices);
        last = dti_loop_range_part(&loop->range, d->index + 1, devices);
        struct call share = { .loop = loop,
                              .begin = dti_loop_range_start(&loop->range, first),
                              .end = dti_loop_range_start(&loop->range, last) };
        if (first < last)
            call_on(d, &share);
        return;
    }
    for (;;) {
        /* relaxed: the counter only hands out numbers. The data of the pieces is ordered by L0 -> L1 and E0
         * -> E1. */
        first = atomic_fetch_add_explicit(&d->crew->next, 1, memory_order_relaxed);
        struct call piece = { .loop = loop,
                              .begin = dti_loop_range_start(&loop->range, first),
                              .end = dti_loop_range_start(&loop->range, first + 1) };
        if (piece.begin >= piece.end || !call_on(d, &piece))
            return;
    }
}

/* -- helpers -- */

struct work_wait {
    struct dti_device *device;
    uint32_t last;
};
static bool has_work(void *argument)
{
    const struct work_wait *w = argument;
    /* relaxed: no other data is read here. helper_main and drain read both words again, with L1 and P1. */
    return atomic_load_explicit(&w->device->crew->go, memory_order_relaxed) != w->last ||
           atomic_load_explicit(&w->device->submitted, memory_order_relaxed) !=
               atomic_load_explicit(&w->device->finished, memory_order_relaxed);
}

static void *helper_main(void *argument)
{
    struct dti_device *d = argument;
    struct dti_crew *crew = d->crew;
    struct dti_replica *r = crew->replica;
    const struct dti_team_options *o = dti_team_options(r->team);
    struct work_wait wait = { d, GO_NONE };
    char name[16];
    snprintf(name, sizeof name, "ditto-r%u.%u", r->id, d->index);
    dti_thread_begin(name);
    dti_this_thread()->replica = (int32_t)r->id;
    d->tid = (int32_t)syscall(SYS_gettid);
    dti_thread_hook(o->thread_start, r->id, o->thread_user);
    for (;;) {
        if (d->load_epoch != dti_load_epoch())
            dti_wait_policy_replace(&d->wait_policy,
                                    dti_team_wait_policy(r->team, d->pu.number, &d->load_epoch));
        dti_wait(&crew->wait_queue, d->index, work_event(d), &d->wait_policy,
                 &(struct dti_deadline){ .timeout_ms = DITTO_FOREVER }, has_work, &wait);
        /* L1. It is read before the ring (I2). */
        uint32_t go = atomic_load_explicit(&crew->go, memory_order_acquire);
        drain(d);
        if (go == GO_EXIT)
            break;
        if (go != wait.last) {
            wait.last = go;
            run_share(d, &crew->loop, crew->devices);
            atomic_store_explicit(&d->done, go, memory_order_release); /* E0 */
            dti_wait_queue_signal(&crew->wait_queue, d->index);
        }
        /* A function has forked, and this is the child process. See dti_team_thread_main. */
        if (dti_replica_is_forked(r))
            return NULL;
    }
    dti_thread_hook(o->thread_stop, r->id, o->thread_user);
    return NULL;
}

/* -- the leader -- */

struct device_wait {
    const struct dti_device *device;
    uint32_t number;
};
static bool loop_is_done(void *argument)
{
    const struct device_wait *w = argument;
    return atomic_load_explicit(&w->device->done, memory_order_acquire) == w->number; /* E1 */
}
/* Returns true if `finished` has reached `number` or passed it. */
static bool task_is_finished(void *argument)
{
    const struct device_wait *w = argument;
    uint32_t finished = atomic_load_explicit(&w->device->finished, memory_order_acquire); /* F1 */
    return (int32_t)(finished - w->number) >= 0;
}

/* Waits for a device. The wait has no limit, because a function that has begun may use the leader's memory
 * and must return. A caller that works as replica 0 stops the run when its time limit has passed, and then
 * waits on. The stop lets its peers leave, and functions that have not begun are skipped. The leader's own
 * share of a loop may have forked. In the child process there are no helpers, and this function returns at
 * once. */
static void await(struct dti_replica *r, uint32_t device, dti_condition *condition, uint32_t number)
{
    struct dti_crew *crew = r->crew;
    if (dti_replica_is_forked(r))
        return;
    struct device_wait w = { &crew->device[device], number };
    struct dti_deadline limit = dti_replica_deadline(r, DITTO_FOREVER),
                        none = { .timeout_ms = DITTO_FOREVER };
    if (condition(&w))
        return;
    uint64_t since = dti_trace_wait(r);
    bool in_time = dti_wait(&crew->wait_queue, 0, device, &r->wait_policy, &limit, condition, &w);
    dti_trace_waited(r, since);
    if (in_time)
        return;
    DTI_FAIL(DITTO_ERR_TIMED_OUT,
             "run_timeout_ms = %u passed, and logical device %u of replica %u had not returned",
             dti_team_options(r->team)->run_timeout_ms, device, r->id);
    dti_replica_stop_late(r, &limit);
    dti_wait(&crew->wait_queue, 0, device, &r->wait_policy, &none, condition, &w);
}

/* Returns FORKED in a child process, in which there are no helpers. */
static ditto_status check_not_forked(struct dti_replica *r)
{
    if (!dti_replica_is_forked(r))
        return DITTO_OK;
    r->crew->outstanding = false;
    return dti_fail_forked();
}

/* Called by the leader when no function of the user runs on a device. Returns the first error of a device, or
 * the reason why the run was stopped. Returns FORKED in a child process (see await). */
static ditto_status outcome(struct dti_replica *r)
{
    struct dti_crew *crew = r->crew;
    crew->outstanding = false;
    if (dti_replica_is_forked(r))
        return dti_fail_forked();
    if (dti_stopped(&crew->failed)) {
        ditto_error error = crew->failed.error;
        dti_stop_reset(&crew->failed);
        dti_error_set(&error);
        return error.status;
    }
    return dti_stopped(r->stop) ? dti_team_stop_status(r->team) : DITTO_OK;
}

static ditto_status run_loop(struct dti_replica *r, const struct dti_loop *loop)
{
    struct dti_crew *crew = r->crew;
    DTI_TRY(check_not_forked(r));
    /* The leader runs a loop of one piece itself, because handing it over would cost more. */
    if (crew->devices == 1 || dti_loop_range_pieces(&loop->range) <= 1) {
        DTI_TRY(dti_crew_join(r));
        atomic_store_explicit(&crew->next, 0, memory_order_relaxed);
        run_share(&crew->device[0], loop, 1);
        return outcome(r);
    }
    /* relaxed: only this thread posts, and all helpers have seen the last loop (I1) */
    uint32_t go = atomic_load_explicit(&crew->go, memory_order_relaxed) + 1;
    go += go == GO_EXIT;
    /* Helpers poll this cache line for `go`, so an equal loop is not stored again. */
    if (memcmp(&crew->loop, loop, sizeof *loop) != 0)
        crew->loop = *loop;
    if (loop->dynamic)
        atomic_store_explicit(&crew->next, 0, memory_order_relaxed); /* published by go */
    atomic_store_explicit(&crew->go, go, memory_order_release);      /* L0 */
    dti_wait_queue_signal(&crew->wait_queue, DTI_EVERYONE);
    drain(&crew->device[0]);
    run_share(&crew->device[0], loop, crew->devices);
    for (uint32_t i = 1; i < crew->devices; i++)
        await(r, i, loop_is_done, go);
    return outcome(r);
}

ditto_status dti_crew_loop(struct dti_replica *r, const struct dti_loop *loop)
{
    dti_trace_begin(r, DTI_TRACE_LOOP, loop->caller, NULL);
    ditto_status status = run_loop(r, loop);
    dti_trace_end(r, 0);
    return status;
}

/* Puts a function into the ring of the device. Waits if the ring is full. */
static void put(struct dti_replica *r, uint32_t device, const struct dti_device_task *task)
{
    struct dti_device *d = &r->crew->device[device];
    /* relaxed: only this thread writes it */
    uint32_t submitted = atomic_load_explicit(&d->submitted, memory_order_relaxed);
    struct device_wait wait = { d, submitted + 1 - DTI_DEVICE_TASKS };
    if (device == 0 && !task_is_finished(&wait))
        drain(d);
    else if (device != 0)
        await(r, device, task_is_finished, wait.number); /* F1: the entry is free */
    d->ring[submitted % DTI_DEVICE_TASKS] = *task;
    atomic_store_explicit(&d->submitted, submitted + 1, memory_order_release); /* P0 */
    if (device != 0)
        dti_wait_queue_signal(&r->crew->wait_queue, work_event(d));
}

ditto_status dti_crew_submit(struct dti_replica *r, uint32_t device, ditto_device_fn function, void *argument)
{
    struct dti_crew *crew = r->crew;
    DTI_TRY(check_not_forked(r));
    if (device >= crew->devices)
        return DTI_FAIL(DITTO_ERR_RANGE, "logical device %u does not exist: replica %u has %u%s", device,
                        r->id, crew->devices,
                        crew->devices == 1 && r->pus > 1 ? ", because its helpers are off" : "");
    if (dti_stopped(r->stop)) /* the function would never run */
        return dti_crew_join(r);
    put(r, device, &(struct dti_device_task){ function, argument, .caller = dti_this_thread()->function });
    crew->outstanding = true;
    return DITTO_OK;
}

void dti_crew_ask(struct dti_replica *r, uint32_t device, ditto_device_fn function, void *argument)
{
    if (device == 0)
        (void)function(0, argument);
    else
        put(r, device,
            &(struct dti_device_task){ function, argument, .caller = dti_this_thread()->function });
}

void dti_crew_await(struct dti_replica *r, uint32_t device)
{
    if (device > 0) /* relaxed: only this thread writes it */
        await(r, device, task_is_finished,
              atomic_load_explicit(&r->crew->device[device].submitted, memory_order_relaxed));
}

bool dti_crew_offer(struct dti_replica *r, ditto_device_fn function, void *argument)
{
    bool offered = false;
    for (uint32_t i = 1; r->crew != NULL && i < r->crew->devices; i++) {
        const struct dti_device *d = &r->crew->device[i];
        /* relaxed: only this thread writes submitted. A helper that looks busy by mistake only gets no
         * offer. */
        if (atomic_load_explicit(&d->submitted, memory_order_relaxed) !=
            atomic_load_explicit(&d->finished, memory_order_relaxed))
            continue;
        put(r, i, &(struct dti_device_task){ function, argument, .offered = true });
        offered = true;
    }
    return offered;
}

ditto_status dti_crew_join(struct dti_replica *r)
{
    struct dti_crew *crew = r->crew;
    DTI_TRY(check_not_forked(r));
    if (crew->outstanding) {
        dti_trace_begin(r, DTI_TRACE_LOOP, "join", NULL);
        drain(&crew->device[0]);
        for (uint32_t i = 1; i < crew->devices; i++)
            dti_crew_await(r, i);
        dti_trace_end(r, 0);
    }
    return outcome(r);
}

/* -- creation and destruction -- */

static ditto_status prepare_helper(uint32_t device, void *argument)
{
    struct dti_device *d = argument;
    struct dti_mask mask;
    (void)device;
    dti_mask_clear(&mask);
    dti_mask_add(&mask, d->pu.number);
    return dti_team_bind_thread(d->crew->replica->team, &mask);
}

static ditto_status start_helpers(struct dti_crew *crew)
{
    struct dti_replica *r = crew->replica;
    while (crew->started < crew->devices) {
        uint32_t index = crew->started;
        struct dti_device *d = &crew->device[index];
        int error_number = dti_thread_start(&d->thread, dti_team_options(r->team)->stack_bytes, helper_main,
                                            d);
        if (error_number != 0)
            return dti_thread_refused(error_number, dti_team_options(r->team)->stack_bytes,
                                      "helper %u of %u of replica %u", index, crew->devices - 1, r->id);
        /* The thread is counted before anything else can fail, because dti_crew_end_threads joins only
         * counted threads. */
        crew->started++;
        DTI_TRY(dti_crew_submit(r, index, prepare_helper, d));
    }
    return dti_crew_join(r);
}

ditto_status dti_crew_create(struct dti_replica *r, const ditto_placement *placement, struct dti_crew **out)
{
    uint32_t devices = dti_team_options(r->team)->helpers ? r->pus : 1;
    void *memory, *device;
    /* The crew is in the replica's arena, and therefore on its node. It is freed with the arena. */
    DTI_TRY(dti_arena_alloc(r->arena, sizeof(struct dti_crew), DTI_CACHE_LINE_PAIR, &memory));
    DTI_TRY(dti_arena_alloc(r->arena, devices * sizeof(struct dti_device), DTI_CACHE_LINE_PAIR, &device));
    struct dti_crew *crew = memory;
    memset(crew, 0, sizeof *crew);
    memset(device, 0, devices * sizeof(struct dti_device));
    crew->replica = r;
    crew->devices = devices;
    crew->started = 1;
    crew->device = device;
    atomic_init(&crew->go, GO_NONE);
    atomic_init(&crew->next, 0);
    dti_stop_init(&crew->failed);
    if (!dti_wait_queue_init(&crew->wait_queue, devices, dti_team_wait_queue(r->team)->sleeps))
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the %u devices of replica %u", devices, r->id);
    for (uint32_t i = 0; i < crew->devices; i++) {
        struct dti_device *d = &crew->device[i];
        atomic_init(&d->done, GO_NONE);
        atomic_init(&d->finished, 0);
        atomic_init(&d->submitted, 0);
        d->crew = crew;
        d->index = i;
        d->pu = dti_placement_pu(placement, crew->replica->index, i)->is;
        d->wait_policy = dti_team_wait_policy(crew->replica->team, d->pu.number, &d->load_epoch);
        d->tid = -1;
    }
    *out = crew; /* from here on the team ends it, even if the call fails */
    return start_helpers(crew);
}

void dti_crew_end_threads(struct dti_crew *crew)
{
    if (crew == NULL)
        return;
    atomic_store_explicit(&crew->go, GO_EXIT, memory_order_release); /* L0 */
    dti_wait_queue_signal(&crew->wait_queue, DTI_EVERYONE);
    for (uint32_t i = 1; i < crew->started; i++)
        pthread_join(crew->device[i].thread, NULL);
    crew->started = 1;
}

void dti_crew_free(struct dti_crew *crew)
{
    if (crew != NULL)
        dti_wait_queue_free(&crew->wait_queue);
}
