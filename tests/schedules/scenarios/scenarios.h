/* tests/schedules/scenarios/scenarios.h - what the scenarios share: a strategy, and threads. */
#ifndef SCHEDULES_SCENARIOS_H
#define SCHEDULES_SCENARIOS_H

#include "../engine.h"

#include <ditto.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Replicas that have their PUs alone meet in rounds, and others by a counter. */
#define FOUR_PUS "pack:1 [numa] l3:1 core:4 pu:1"
#define TWO_PUS  "pack:1 [numa] l3:1 core:2 pu:1"

/* The strategy of the scenario, and its options. */
extern ditto_strategy *strategy;
ditto_strategy_options options_of(uint32_t replicas, const char *machine);
void make_strategy(const ditto_strategy_options *options);
void make_of(uint32_t replicas, const char *machine);

/* Strategies of two and three replicas, which do not spin. The calling thread is replica 0. */
void two(void);
void three(void);
void three_on_two_pus(void);

/* Executes a function on all replicas. It must succeed. */
void run(ditto_replica_fn function, void *argument);

/* A barrier. */
ditto_status meet(ditto_replica *self, void *unused);
void meet_or_be_poisoned(void);

/* Destroys the strategy. The second one also allows that it is poisoned (outcome 2, otherwise 1). */
void end_strategy(void);
void end_perhaps_poisoned(void);

/* Starts a thread, and joins it. */
pthread_t thread_of(void *(*body)(void *), void *argument);
void join(pthread_t thread);
void sleep_for(uint64_t ns);
/* The body of a thread that interrupts the strategy. */
void *interrupt(void *unused);

/* Functions that are late. They enter, wait until a thread lets all of them go, and leave, perhaps after the
 * strategy has ended. */
void late_enter(void);
void late_wait(void);
void late_leave(void);
pthread_t let_go_within(uint32_t ms);
/* Joins the thread, and waits until all functions have left. */
void await_late(pthread_t thread);

#endif
