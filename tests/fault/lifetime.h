/* tests/fault/lifetime.h - what the tests of lifetimes share: objects of all kinds, and threads that wait inside of calls. */
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

/* -- calls that wait for their turn -- */

/* A thread that makes one call while the turn is somebody else's. */
struct waiting {
    ditto_strategy *strategy;
    ditto_variable *variable, *other;
    ditto_value *value; /* that is `variable` */
    ditto_iterator *iterator;
    ditto_status (*call)(struct waiting *self);
    _Atomic int thread_id, may_begin, has_returned;
    ditto_status status, destroyed;
};

bool make(uint32_t replicas, ditto_caller caller, uint32_t run_timeout_ms, ditto_strategy **out);

bool make_variable(ditto_strategy *strategy, ditto_variable **out);

/* Batches of two rows for each replica, of one component: 0, 1, 2, ... */
bool make_iterator(ditto_strategy *strategy, uint32_t flags, ditto_iterator **out);

extern const uint32_t counts[COUNTS]; /* of replicas */

ditto_status nothing(ditto_replica *self, void *unused);

/* -- values that are variables -- */
ditto_status keep_copy(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count, void *unused,
                       ditto_tensor *result);

ditto_status look_at_argument(ditto_replica *self, void *unused);

ditto_status drop_made(ditto_status status, ditto_value *made);

ditto_status call_assign_value(struct waiting *w);

ditto_status call_update(struct waiting *w);

ditto_status call_run_values(struct waiting *w);

ditto_status call_run_nest(struct waiting *w);

ditto_status call_reduce(struct waiting *w);

ditto_status call_reduce_to(struct waiting *w);

ditto_status call_broadcast_to(struct waiting *w);

ditto_status call_gather(struct waiting *w);

extern ditto_status (*const calls_in_turn[CALLS_IN_TURN])(struct waiting *);

ditto_status call_component(struct waiting *w);

ditto_status call_spec(struct waiting *w);

ditto_status call_local_results(struct waiting *w);

extern ditto_status (*const calls_of_looking[CALLS_OF_LOOKING])(struct waiting *);

bool make_all(struct waiting *w);

/* The variable may be destroyed already. */
bool drop_all(struct waiting *w);

ditto_status destroy_when_idle(ditto_strategy *strategy);

#endif
