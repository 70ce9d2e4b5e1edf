/* src/replicas/helpers/crew.h - the crew of a replica: its leader, and helper threads on its other PUs.
 *
 * Helpers work in two ways. A *loop* is run by all devices at once, as fork and join. The leader posts it
 * with one store that all helpers see. A *function* is given to one device, which executes its functions in
 * order from its own ring.
 *
 * Invariants  I1  Only the leader posts. It changes the description of the loop only after every helper has
 *                 finished the previous loop, and an entry of a ring only after the function in it has
 *                 finished. Therefore submitted - finished <= DTI_DEVICE_TASKS.
 *             I2  A helper executes all functions that were submitted before loop g, and then its share of
 *                 loop g.
 * Edges       L0 -> L1  The leader writes the loop and stores the go number. Every helper that sees the new
 *                       number sees the loop, and everything that was submitted before it.
 *             E0 -> E1  A helper executes its pieces and stores its done number. The leader that sees the
 *                       number sees their effects.
 *             P0 -> P1  The leader writes a function into the ring and stores `submitted`. The helper that
 *                       sees the count sees the function.
 *             F0 -> F1  A helper executes a function and stores `finished`. The leader that sees the count
 *                       sees the effects of the function, and may use its entry again.
 * Stopping    A function or piece that has begun is always awaited, because it may use the leader's memory.
 *             When the run is stopped, those that have not begun are skipped, and count as finished.
 * Model       tests/model/crew.pml (spin). */
#ifndef DTI_CREW_H
#define DTI_CREW_H

#include <ditto/device.h>
#include <ditto/placement.h>

#include "base/waiting/stop.h"
#include "base/waiting/wait.h"
#include "replicas/helpers/loop_range.h"

#include <pthread.h>

#define DTI_DEVICE_TASKS 64 /* the number of entries in the ring of a device */

struct dti_replica;

struct dti_device_task {
    ditto_device_fn function;
    void *argument;

    /* The public function that submitted it. Errors name it. */
    const char *caller;

    /* True for a function that was offered (dti_crew_offer). It may run after its run has ended, so it gets
     * no context, because the next run may be changing what a context is made of. */
    bool offered;
};

/* A device. The words that its helper writes and those that the leader writes are on separate cache lines.
 * Device 0 is the leader itself, which has a ring but no helper. */
struct dti_device {
    /* The number of the last loop that the helper finished. Not used for device 0. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t done;

    /* The number of functions that have finished. */
    _Atomic uint32_t finished;

    /* The number of functions that the leader has submitted. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t submitted;

    /* Plain, because `submitted` publishes it. */
    struct dti_device_task ring[DTI_DEVICE_TASKS];

    /* The members from here on are constant while the threads run, except the helper's wait_policy and
     * load_epoch. */
    alignas(DTI_CACHE_LINE_PAIR) struct dti_crew *crew;
    uint32_t index;
    ditto_pu pu;

    /* How the helper waits, computed for load_epoch. Only the helper uses these two while it runs. */
    struct dti_wait_policy wait_policy;
    uint32_t load_epoch;

    /* The kernel's number of the helper's thread. -1 for device 0. */
    int32_t tid;
    pthread_t thread;
};

struct dti_loop {
    ditto_range_fn function;
    void *argument;
    struct dti_loop_range range;

    /* 0 or 1. The type is size_t so that the struct has no padding and can be compared with memcmp. */
    size_t dynamic;
    const char *caller; /* the public function that posted it */
};

struct dti_crew {
    /* The number of the loop that was posted last. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t go;

    /* Plain, because `go` publishes it. */
    struct dti_loop loop;

    /* The next piece of a dynamic loop. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic size_t next;

    /* The first error of a device, until the leader has returned it. */
    struct dti_stop failed;

    /* The members from here on are constant while the threads run. */
    alignas(DTI_CACHE_LINE_PAIR) struct dti_replica *replica;
    uint32_t devices; /* including the leader */

    /* The number of devices that have a thread, including the leader. */
    uint32_t started;
    struct dti_device *device;        /* [devices] */
    struct dti_wait_queue wait_queue; /* one waiter for each device */

    /* Used only by the leader. True if the user has submitted functions since the last join. */
    alignas(DTI_CACHE_LINE_PAIR) bool outstanding;
};

/* -- The leader, when its team is created -- */
/* Starts the helpers of the replica, if it has any, and waits until they are pinned. *out is set as soon as
 * there is something to end, also if the call then fails. Errors: SYSTEM (a thread could not be created or
 * pinned), RANGE (the stack size is not possible), NO_MEMORY. */
ditto_status dti_crew_create(struct dti_replica *replica, const ditto_placement *placement,
                             struct dti_crew **out);

/* -- The leader, in its function. With one device everything runs on the leader -- */
ditto_status dti_crew_loop(struct dti_replica *replica, const struct dti_loop *loop);
ditto_status dti_crew_submit(struct dti_replica *replica, uint32_t device, ditto_device_fn function,
                             void *argument);
ditto_status dti_crew_join(struct dti_replica *replica);

/* These two are for internal functions, which return DITTO_OK and report their result in their argument.
 * dti_crew_ask queues such a function after the functions that the device already has. On device 0 it
 * executes the function at once. dti_crew_await waits until a device has finished all its functions. It is
 * separate from dti_crew_join, so that errors of the user's functions are kept for the user's join. A stopped
 * run may skip the function. The argument is then unchanged. */
void dti_crew_ask(struct dti_replica *replica, uint32_t device, ditto_device_fn function, void *argument);
void dti_crew_await(struct dti_replica *replica, uint32_t device);
/* Submits function(device, argument) to every idle helper, and returns without waiting. Returns false if
 * there is no idle helper. A helper may run the function much later, or never. The function must therefore
 * check whether the work still exists, and return without touching anything if it does not. It has no
 * context, cannot fail, and sets the floating-point environment itself. */
bool dti_crew_offer(struct dti_replica *replica, ditto_device_fn function, void *argument);

/* -- The leader, when its thread ends. For a leader without a thread of the library, the thread that destroys
 * the team -- */
void dti_crew_end_threads(struct dti_crew *crew); /* NULL is allowed */
/* -- Any thread, after that -- */
void dti_crew_free(struct dti_crew *crew); /* NULL is allowed */

#endif
