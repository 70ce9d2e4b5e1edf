/* tests/fault/lifetime.h - functions that the tests of lifetimes share. They create strategies, variables
 * and iterators, and make calls on the value of a variable. They do not assert, because most of their tests
 * run in a child process. */
#ifndef LIFETIME_H
#define LIFETIME_H

#include "replicas/team/team.h"
#include "support/support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COUNTS = 4, CALLS_IN_TURN = 8, CALLS_WITHOUT_TURN = 3 };

/* The numbers of replicas with which tests are repeated. */
extern const uint32_t counts[COUNTS];

/* The objects that the functions call_... use, and the state of another thread that makes one of these
 * calls. */
struct waiting {
    ditto_strategy *strategy;
    ditto_variable *variable, *other;

    /* A value that refers to `variable`. */
    ditto_value *value;

    ditto_iterator *iterator;
    ditto_status (*call)(struct waiting *self);
    _Atomic int thread_id, may_begin, has_returned;

    /* Not 0 if a thread that repeats its call must not begin another one. */
    _Atomic int must_wait;

    /* The status of the call, and that of the destroy call beside it. If the call is repeated, `status` is
     * that of the last call, and first_status that of the first. */
    ditto_status status, destroy_status, first_status;
};

/* -- Creation and destruction. The functions that return bool return false after an error. -- */

/* Creates a mirrored strategy that is not pinned. If run_timeout_ms is 0, runs have no time limit. */
bool make(uint32_t replicas, ditto_caller caller, uint32_t run_timeout_ms, ditto_strategy **out);

/* Creates a mirrored variable of four elements of DITTO_F32, which are zero. */
bool make_variable(ditto_strategy *strategy, ditto_variable **out);

/* Creates an iterator over the rows 0, 1, ..., 999. Each full batch of a replica has two rows. */
bool make_iterator(ditto_strategy *strategy, uint32_t flags, ditto_iterator **out);

/* Creates a strategy of two replicas, two variables, and the value of the first variable. */
bool make_all(struct waiting *w);

/* Destroys the objects of make_all. w->variable is NULL if it has been destroyed before. */
bool drop_all(struct waiting *w);

/* Destroys the strategy, and tries again as long as the result is DITTO_ERR_BUSY. */
ditto_status destroy_when_idle(ditto_strategy *strategy);

/* If `status` is DITTO_OK, destroys `made` and returns the status of that. Otherwise returns `status`. */
ditto_status drop_made(ditto_status status, ditto_value *made);

/* -- Functions that strategies run -- */

ditto_status nothing(ditto_replica *self, void *unused);

ditto_status read_argument(ditto_replica *self, void *unused);

/* The function of an update. It copies each argument into the variable. */
ditto_status copy_arguments(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                            void *unused, ditto_tensor *result);

/* -- Calls that read w->value, after they have waited for their turn -- */

ditto_status call_assign_value(struct waiting *w);
ditto_status call_update(struct waiting *w);
ditto_status call_run_values(struct waiting *w);

/* Passes a nest of w->value to ditto_strategy_run_values. */
ditto_status call_run_nest(struct waiting *w);

ditto_status call_reduce(struct waiting *w);
ditto_status call_reduce_to(struct waiting *w);
ditto_status call_broadcast_to(struct waiting *w);
ditto_status call_gather(struct waiting *w);

/* All functions of this section. */
extern ditto_status (*const calls_in_turn[CALLS_IN_TURN])(struct waiting *);

/* -- Calls that inspect w->value without taking the turn -- */

ditto_status call_component(struct waiting *w);
ditto_status call_info(struct waiting *w);
ditto_status call_local_results(struct waiting *w);

/* All functions of this section. */
extern ditto_status (*const calls_without_turn[CALLS_WITHOUT_TURN])(struct waiting *);

#endif
