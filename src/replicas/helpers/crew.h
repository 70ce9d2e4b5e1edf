/* src/replicas/helpers/crew.h - a replica's helpers: threads on its other PUs, which work for its leader.
 *
 * Two ways to work: a *loop* that all devices run at once, fork and join, posted with one store that all helpers see; and
 * *functions* given to one device, which it runs in order from a ring of its own.
 *
 * Invariants  I1  only the leader posts. It changes the loop's description when every helper has done the loop before,
 *                 and a slot of a ring when the function in it has finished: posted - finished <= DTI_DEVICE_TASKS.
 *             I2  a helper that sees loop g has first run all functions posted before g.
 * Edges       L0 -> L1  the leader's loop -> every helper that sees the new go number; also what was posted before it
 *             E0 -> E1  a helper's pieces -> the leader that sees its done number
 *             P0 -> P1  a function in the ring -> the helper that sees posted
 *             F0 -> F1  a function's effects, and its slot -> the leader that sees finished
 * Stopping    a function or piece that has begun is always awaited: it may use the leader's memory. When the run is stopped
 *             those not begun are left out, and count as finished.
 * Model       tests/model/crew.pml (spin). */
#ifndef DTI_CREW_H
#define DTI_CREW_H

#include <ditto/device.h>

#include "base/base.h"
#include "replicas/placement/placement.h"
#include "replicas/helpers/loop_range.h"
#include "base/waiting/stop.h"

#include <pthread.h>

#define DTI_DEVICE_TASKS 64 /* functions that a device keeps */

struct dti_replica;

struct dti_device_task {
    ditto_device_fn function;
    void *argument;
    const char *caller; /* the public function that posted it, which its errors name */
};

/* A device: its helper's words and the leader's, on lines of their own. Entry 0 is the leader's own ring. */
struct dti_device {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t done; /* number of the last loop that it finished */
    _Atomic uint32_t finished;                          /* functions */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t submitted;
    struct dti_device_task ring[DTI_DEVICE_TASKS]; /* plain, published by posted */
    /* constant while the threads run */
    alignas(DTI_CACHE_LINE_PAIR) struct dti_crew *crew;
    uint32_t index;
    ditto_pu pu;
    struct dti_wait_policy wait_policy; /* the helper's own */
    uint32_t load_epoch;
    int32_t tid, cpu; /* read back; -1: unknown */
    pthread_t thread;
};

struct dti_loop {
    ditto_range_fn function;
    void *argument;
    struct dti_loop_range range;
    size_t dynamic;     /* 0 or 1; so wide that there is no padding */
    const char *caller; /* the public function that posted it */
};

struct dti_crew {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t go; /* number of the loop posted last */
    struct dti_loop loop;                             /* plain, published by go */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic size_t next; /* piece of a dynamic loop */
    struct dti_stop failed; /* the first error of a device, until the leader has told it */
    /* constant while the threads run */
    alignas(DTI_CACHE_LINE_PAIR) struct dti_replica *replica;
    uint32_t devices;                 /* the leader included */
    uint32_t started;                 /* devices that have a thread, entry 0 counted */
    struct dti_device *device;        /* [devices] */
    struct dti_wait_queue wait_queue; /* seats: devices */
    /* the leader's own */
    alignas(DTI_CACHE_LINE_PAIR) bool outstanding; /* the user has given functions since the last join */
};

/* -- The leader, when its team is made -- */
/* Starts the replica's helpers, if it has any, and waits until they are pinned. *out is set as soon as there is something
 * to end, also when the status is an error: SYSTEM (a thread refused, or not to be pinned), NO_MEMORY. */
ditto_status dti_crew_create(struct dti_replica *replica, const ditto_placement *placement,
                             struct dti_crew **out);

/* -- The leader, in its function; with one device everything runs on the leader -- */
ditto_status dti_crew_loop(struct dti_replica *replica, const struct dti_loop *loop);
ditto_status dti_crew_submit(struct dti_replica *replica, uint32_t device, ditto_device_fn function,
                             void *argument);
ditto_status dti_crew_join(struct dti_replica *replica);

/* The library's own functions, which return DITTO_OK and tell how it went through their argument: given after what the device
 * has already, awaited by themselves, so that errors of the user's functions stay for the user's join. A stopped run may
 * leave them out: the argument then says nothing. Device 0 runs them at once. */
void dti_crew_ask(struct dti_replica *replica, uint32_t device, ditto_device_fn function, void *argument);
void dti_crew_await(struct dti_replica *replica, uint32_t device);
/* Offers function(device, argument) to every helper that has nothing to do, and returns; false: there is none. When, and whether,
 * they run it is theirs: it must be good at any later time, and do nothing if it comes too late. */
bool dti_crew_offer(struct dti_replica *replica, ditto_device_fn function, void *argument);

/* -- The leader, when its thread ends; whoever destroys the team, for a leader that has no thread of its own -- */
void dti_crew_end_threads(struct dti_crew *crew); /* NULL is allowed */
/* -- Any thread, after that -- */
void dti_crew_free(struct dti_crew *crew); /* NULL is allowed */

#endif
