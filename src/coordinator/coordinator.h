/* src/coordinator/coordinator.h - a coordinator: the queue of functions, a thread for each worker, and the
 * calls that wait for them.
 *
 * A function is pushed once. It is *finished* once: by the worker that has executed or skipped it, or by a
 * call that gives it up. Each worker counts the functions that it has finished on a line of its own. All
 * functions have ended if the sum of these counts is the number of pushes. The counts are read first: they
 * are never larger than the number of pushes, so if they reach it, nothing is left.
 *
 * Invariants  I1  A worker that sleeps has its bit in `idle`, and looked at the queue after it set the bit.
 *                 A push that comes later sees the bit, clears it, and wakes the worker. (Both accesses of
 *                 each side are sequentially consistent; function_queue.h.)
 *             I2  The state of a worker is MAKING or RUNNING from before its function begins until it has
 *                 ended. A worker that is late loses this state to the thread that retires it
 *                 (compare-and-swap). That thread then owns the function: it puts it back, or finishes it.
 *                 The worker notices it when its function returns, and finishes nothing.
 *             I3  An error is recorded before the function that failed is finished. A call that finds all
 *                 functions finished therefore sees it.
 *             I4  A thread reads `failures` before it pushes a function, and a worker reads it after it has
 *                 popped that function. The push and the pop are ordered by the slot of the queue, so the
 *                 worker reads the same number or a later one. If it cancels the function, it is because of
 *                 a failure that the thread did not know, and of which it is told (schedule.c).
 *
 * tests/model/functions.pml has the first three, with the queue. */
#ifndef DTI_COORDINATOR_H
#define DTI_COORDINATOR_H

#include <ditto/coordinator.h>

#include "base/waiting/gate.h"
#include "base/waiting/wait.h"
#include "coordinator/function_queue.h"
#include "coordinator/functions.h"
#include "strategy/strategy.h"

#include <pthread.h>

struct dti_bytes;

/* How many calls of a coordinator may wait at a time without polling. */
#define DTI_CALLERS 32

/* Every so many functions, the depth of the queue is looked at. To look at it moves a cache line from the
 * workers to the thread that schedules and back, which would slow short functions down. */
#define DTI_DEPTH_EVERY 16u

/* A worker with a function first makes the per-worker objects that it lacks. This is not time of the
 * function. */
enum dti_worker_state { DTI_WORKER_FREE, DTI_WORKER_RUNNING, DTI_WORKER_RETIRED, DTI_WORKER_MAKING };

/* How far a thread, or any thread at all, has been told what became of functions. */
struct dti_told {
    uint64_t failures; /* as in struct ditto_coordinator, and even */
    uint64_t silent;
};

struct dti_function_worker {
    /* The number of functions that it has finished. Only the worker writes it. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t finished;
    _Atomic uint64_t functions, busy_ns, iterators; /* as in ditto_worker_info */

    /* The time without a function, as one number, so that a thread that reads it finds it complete. While
     * the worker has a function, this is twice the time. While it has none, this is twice the difference of
     * the time and the moment, plus 1, so that the time is (idle >> 1) + now, modulo 2^63. */
    _Atomic uint64_t idle;
    _Atomic uint64_t reported_idle; /* the longest time without a function that was reported */

    /* The name of the function that it executes, or has executed last, for reports: 8 characters in each
     * word. The worker writes it while its state is FREE. A report reads the state before and after the name,
     * and the state has another number after each function, so if both are equal and not FREE, the name is
     * that of this function: a report that reads a word of a later one then also reads the FREE before it. */
    _Atomic uint64_t name[(DITTO_MAX_FUNCTION_NAME_BYTES + 1) / 8];

    /* A number that grows with each function, times 4, plus an enum dti_worker_state. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t state;

    /* When what the state says began, or the function that ran last (dti_lived_ns). */
    _Atomic uint64_t began_at_ns;
    struct dti_scheduled current; /* the function that runs; belongs to the owner of the state */

    /* What an idle worker polls: somebody has taken its bit out of `idle`. It has a line of its own, so that
     * idle workers do not slow down those that push and pop functions. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic bool is_woken;
    struct dti_wait_queue wait;
    struct dti_wait_policy wait_policy;
    uint32_t index;
    ditto_strategy *strategy;
    struct ditto_coordinator *coordinator;

    /* That of the coordinator when the worker last made what it lacked. 0 if it must try again. Only the
     * worker's thread and its replicas use it. */
    _Atomic uint64_t per_worker_serial;

    /* The present function has asked for a batch of a shared dataset. */
    _Atomic bool has_taken;

    pthread_t thread;
    bool is_started;
    ditto_status start_status; /* of the thread's first steps; valid when has_begun */
    ditto_error start_error;
    _Atomic bool has_begun, has_left;
};

struct ditto_coordinator {
    ditto_strategy *strategy;
    struct dti_workers *workers;
    uint32_t process;
    uint32_t max_attempts;
    uint32_t timeout_ms;
    uint64_t limit_ns;           /* of a function, or DTI_NEVER */
    uint64_t making_limit_ns;    /* of what a worker makes before it, or DTI_NEVER */
    _Atomic uint32_t references; /* the program's handle, results, and each thread */
    struct dti_gate gate;
    uint32_t count;                     /* of workers */
    struct dti_function_worker *worker; /* [count] */
    uint32_t workers_made;              /* those whose wait queue exists */
    struct dti_function_queue queue;
    uint64_t began_ns; /* when the coordinator was created */

    /* What schedule has seen of the queue, at one of DTI_DEPTH_EVERY functions. Written by threads that
     * schedule. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t largest_depth;
    _Atomic uint64_t depth_histogram[DITTO_HISTOGRAM_LENGTH];

    /* A bit for each worker that is idle. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t *idle; /* [count / 64, rounded up] */

    alignas(DTI_CACHE_LINE_PAIR) _Atomic bool is_ending;

    /* Twice the number of failures, minus 1 until the last one is settled (schedule.c): meanwhile no function
     * is begun, and those in the queue are cancelled. Changes under the lock. */
    _Atomic uint64_t failures;

    /* The functions that returned a positive status, and had no handle, which would tell it: their number
     * times 2^32, plus the last status. */
    _Atomic uint64_t silent;
    _Atomic uint64_t positive, cancelled; /* as in ditto_coordinator_counters */
    _Atomic uint32_t retired;             /* the number of retired workers */
    _Atomic uint32_t num_returned;        /* functions that retired workers gave back */
    _Atomic uint64_t given_up;            /* functions that no worker finished */
    _Atomic uint64_t per_worker_serial;   /* how often a per-worker object was added */

    pthread_mutex_t lock;                /* of the members from here on */
    struct ditto_per_worker *per_worker; /* the newest one */
    ditto_error error[2];                /* of failure k at k % 2: of the function that failed first */
    uint64_t cancelled_before;           /* the functions that were cancelled before the last failure */
    struct dti_told told;                /* what any thread was told last */
    struct dti_scheduled *returned;      /* [count] a stack */
    struct ditto_shared_dataset *shared; /* the newest one */

    /* Calls that wait. */
    struct dti_wait_queue callers;
    struct dti_wait_policy caller_policy[DTI_CALLERS];
    _Atomic uint32_t callers_used; /* a bit for each waiter that a call uses */
    _Atomic uint32_t interrupts;   /* calls of ditto_coordinator_interrupt; a call that sees a new one ends */
};

/* -- coordinator.c -- */
ditto_status dti_coordinator_create(ditto_strategy *strategy, const ditto_coordinator_options *options,
                                    struct ditto_coordinator **out);
ditto_status dti_coordinator_destroy(struct ditto_coordinator *c);
void dti_coordinator_keep(struct ditto_coordinator *c);
void dti_coordinator_drop(struct ditto_coordinator *c);
/* Says whether a function is in the queue or being executed, also a late one. */
bool dti_coordinator_is_in_use(const struct ditto_coordinator *c);

/* -- schedule.c: calls of the program. They are in the gate of the coordinator. -- */
ditto_status dti_schedule(struct ditto_coordinator *c, const char *name, const ditto_value *arguments,
                          const ditto_schedule_options *options, struct ditto_remote **out);
ditto_status dti_join(struct ditto_coordinator *c);
ditto_status dti_done(struct ditto_coordinator *c, bool *done);
/* Waits until the result is final. Returns TIMED_OUT. */
ditto_status dti_wait_for_remote(struct ditto_coordinator *c, const struct ditto_remote *remote);

/* -- observe_workers.c: any thread -- */
void dti_worker_observe(const struct dti_function_worker *w, ditto_worker_info *out);
/* Reads the name of the function that the worker executes. Returns false if it executes none, or has begun
 * another one meanwhile. */
bool dti_worker_executes(const struct dti_function_worker *w, char name[DITTO_MAX_FUNCTION_NAME_BYTES + 1]);
void dti_coordinator_observe(const struct ditto_coordinator *c, ditto_coordinator_counters *out);
/* Writes a line about the queue and one about each worker. Takes no lock. */
void dti_coordinator_diagnose(const struct ditto_coordinator *c, struct dti_text *text);
/* Says that schedule has pushed the function with this ticket. */
void dti_depth_seen(struct ditto_coordinator *c, uint64_t ticket);

/* -- late_workers.c: workers whose function takes too long. Any thread. They do not change the error record
 * of the calling thread -- */
/* Retires the workers whose functions are late. */
void dti_retire_late(struct ditto_coordinator *c);
/* Retires the worker if it has a function, because destroy has waited for too long. */
void dti_retire_at_end(struct ditto_coordinator *c, struct dti_function_worker *w);
/* Takes a function that was given back. */
bool dti_take_returned(struct ditto_coordinator *c, struct dti_scheduled *item);
/* Returns when the first function that runs now will be late, or DTI_NEVER. */
uint64_t dti_next_limit(const struct ditto_coordinator *c);
/* Says whether dti_retire_late would retire a worker now. */
bool dti_is_any_late(const struct ditto_coordinator *c);

/* -- end_function.c: how functions end. Any thread -- */
/* True from a failure until it is settled. */
static inline bool dti_has_failed(const struct ditto_coordinator *c)
{
    /* acquire: pairs with the release in dti_function_failed. */
    return (atomic_load_explicit(&c->failures, memory_order_acquire) & 1) != 0;
}
/* Says that the function of this thread's error record has failed. The first one counts. */
void dti_function_failed(struct ditto_coordinator *c);
/* Drops the arguments and the result of a function that has ended. */
void dti_scheduled_drop(struct dti_scheduled *item);
/* Counts a function that returned a positive status. */
void dti_function_was_positive(struct ditto_coordinator *c, const struct dti_scheduled *item,
                               ditto_status status);
/* Drops a function that no worker executes any more, and counts it as finished. */
void dti_finish_given_up(struct ditto_coordinator *c, struct dti_scheduled *item);
/* Cancels and finishes all functions that no worker has begun. The error record of the calling thread
 * stays. */
void dti_cancel_queued(struct ditto_coordinator *c);
/* Wakes an idle worker if there is one. */
void dti_wake_worker(struct ditto_coordinator *c);
void dti_wake_all_workers(struct ditto_coordinator *c);
/* True if all functions that were pushed have been finished. */
bool dti_all_finished(const struct ditto_coordinator *c);
uint64_t dti_finished(const struct ditto_coordinator *c);
static inline bool dti_has_function(uint64_t state)
{
    return (state & 3) == DTI_WORKER_RUNNING || (state & 3) == DTI_WORKER_MAKING;
}
static inline bool dti_all_retired(const struct ditto_coordinator *c)
{
    return atomic_load_explicit(&c->retired, memory_order_acquire) == c->count;
}
static inline void dti_signal_callers(struct ditto_coordinator *c)
{
    dti_wait_queue_signal(&c->callers, DTI_EVERYONE);
}

/* -- worker.c -- */
void *dti_worker_main(void *worker);

/* -- per_worker.c -- */
ditto_status dti_per_worker_values(struct ditto_coordinator *c, ditto_value_fn function, void *user,
                                   struct ditto_per_worker **out);
ditto_status dti_per_worker_datasets(struct ditto_coordinator *c, ditto_dataset_fn function, void *user,
                                     const ditto_input_options *options, struct ditto_per_worker **out);
/* Returns BUSY if functions are in the queue or being executed. */
ditto_status dti_per_worker_destroy(struct ditto_per_worker *p);
/* Says whether the worker must make something before its next function. Called on the thread of the worker,
 * as the next one. */
bool dti_per_worker_lacks(const struct dti_function_worker *w);
/* Makes what the worker does not have yet. Outside of functions. What cannot be made is an error of the
 * functions that ask for it. */
void dti_per_worker_make(struct dti_function_worker *w);
/* Says why the worker does not have its own. Called on the thread of a replica of the worker. */
ditto_status dti_per_worker_fail(const struct ditto_per_worker *p, struct dti_function_worker *w);
/* Frees all per-worker objects. If `lost` is true, a worker may still use them, and nothing is freed. */
void dti_per_worker_free(struct ditto_coordinator *c, bool lost);
const ditto_tensor *dti_per_worker_value_of(const struct ditto_per_worker *p,
                                            const struct dti_function_worker *w);
ditto_iterator *dti_per_worker_iterator_of(const struct ditto_per_worker *p,
                                           const struct dti_function_worker *w);
struct ditto_coordinator *dti_per_worker_coordinator(const struct ditto_per_worker *p);

/* -- shared_dataset.c -- */
ditto_status dti_shared_dataset_create(struct ditto_coordinator *c, ditto_dataset *dataset,
                                       const ditto_input_options *options, struct ditto_shared_dataset **out);
/* Returns BUSY if functions are in the queue or being executed. */
ditto_status dti_shared_dataset_destroy(struct ditto_shared_dataset *s);
ditto_status dti_shared_dataset_save(struct ditto_shared_dataset *s, struct dti_bytes *to);
struct ditto_coordinator *dti_shared_dataset_coordinator(const struct ditto_shared_dataset *s);
/* The coordinator is destroyed. Frees all but the handles of the program. If `lost` is true, a worker may
 * still use them, and nothing is freed. */
void dti_shared_datasets_detach(struct ditto_coordinator *c, bool lost);
/* Says whether the coordinator has been destroyed. */
bool dti_shared_dataset_is_detached(const struct ditto_shared_dataset *s);
/* Frees the handle after this. */
void dti_shared_dataset_free_detached(struct ditto_shared_dataset *s);
/* Takes the next batch. Called on the thread of a replica of the worker. */
ditto_status dti_shared_dataset_next(struct dti_replica *r, struct dti_function_worker *w,
                                     struct ditto_shared_dataset *s, ditto_batch *out);
/* The worker's function has ended in time with `status`. Returns this status, or DIVERGED. */
ditto_status dti_shared_datasets_end_function(struct dti_function_worker *w, ditto_status status);
/* The worker has been retired. The batches of its function are taken again. Any thread */
void dti_shared_datasets_give_back(struct dti_function_worker *w);

#endif
