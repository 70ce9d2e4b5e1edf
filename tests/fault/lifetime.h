/* tests/fault/lifetime.h - functions that the tests of lifetimes share. They create objects of every kind,
 * and make calls on a variable and on its value. Each test runs in a child process, so nothing asserts. */
#ifndef LIFETIME_H
#define LIFETIME_H

#include "replicas/team/team.h"
#include "support/support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COUNTS = 4, CALLS_IN_TURN = 8, CALLS_OF_LOOKING = 3 };

/* The numbers of replicas with which tests are repeated. */
extern const uint32_t counts[COUNTS];

/* The objects that the functions call_... use, and the state of a thread that makes one of these calls while
 * another thread has the turn. */
struct waiting {
    ditto_strategy *strategy;
    ditto_variable *variable, *other;

    /* A value that refers to `variable`. */
    ditto_value *value;

    ditto_iterator *iterator;
    ditto_status (*call)(struct waiting *self);
    _Atomic int thread_id, may_begin, has_returned;
    ditto_status status, destroyed;
};

/* -- Creation and destruction. The functions that return bool return false after an error. -- */

/* Creates a mirrored strategy. A run_timeout_ms of 0 means no time limit. */
bool make(uint32_t replicas, ditto_caller caller, uint32_t run_timeout_ms, ditto_strategy **out);

/* Creates a mirrored variable of four elements of DITTO_F32, which are zero. */
bool make_variable(ditto_strategy *strategy, ditto_variable **out);

/* Creates an iterator over the rows 0, 1, ..., 999. Each batch of a replica has two rows. */
bool make_iterator(ditto_strategy *strategy, uint32_t flags, ditto_iterator **out);

/* Creates a strategy of two replicas, two variables, and the value of the first variable. */
bool make_all(struct waiting *w);

/* Destroys the objects of make_all. w->variable is NULL if it is destroyed already. */
bool drop_all(struct waiting *w);

/* Destroys the strategy, and tries again as long as the result is DITTO_ERR_BUSY. */
ditto_status destroy_when_idle(ditto_strategy *strategy);

/* Returns the status if it is an error. Otherwise it destroys `made` and returns the status of that. */
ditto_status drop_made(ditto_status status, ditto_value *made);

/* -- Functions that strategies run -- */

ditto_status nothing(ditto_replica *self, void *unused);

ditto_status look_at_argument(ditto_replica *self, void *unused);

/* The function of an update. It copies each argument into the variable. */
ditto_status keep_copy(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count, void *unused,
                       ditto_tensor *result);

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
ditto_status call_spec(struct waiting *w);
ditto_status call_local_results(struct waiting *w);

/* All functions of this section. */
extern ditto_status (*const calls_of_looking[CALLS_OF_LOOKING])(struct waiting *);

#endif
