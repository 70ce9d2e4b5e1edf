/* tests/schedules/scenarios/scenarios.c - strategies, threads, and functions that are late, for all
 * scenarios. */
#include "scenarios.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

ditto_strategy *strategy;

ditto_strategy_options options_of(uint32_t replicas, const char *machine)
{
    ditto_strategy_options o = DITTO_STRATEGY_OPTIONS_INIT;
    setenv("HWLOC_SYNTHETIC", machine, 1);
    o.num_replicas = replicas;
    o.has_spin_us = 1;
    o.timeout_ms = 20000; /* of the time of the schedules; nothing takes so long */
    return o;
}

void make_strategy(const ditto_strategy_options *options)
{
    if (ditto_strategy_create(DITTO_MIRRORED, options, &strategy) != DITTO_OK)
        fail("no strategy: %s", ditto_last_error()->message);
}

void make_of(uint32_t replicas, const char *machine)
{
    ditto_strategy_options o = options_of(replicas, machine);
    make_strategy(&o);
}

void two(void)
{
    make_of(2, FOUR_PUS);
}
void three(void)
{
    make_of(3, FOUR_PUS);
}
void three_on_two_pus(void)
{
    make_of(3, TWO_PUS);
}

void run(ditto_replica_fn function, void *argument)
{
    if (ditto_strategy_run(strategy, function, argument) != DITTO_OK)
        fail("run: %s", ditto_last_error()->message);
}

pthread_t thread_of(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, body, argument) == 0);
    return thread;
}

void join(pthread_t thread)
{
    EXPECT(pthread_join(thread, NULL) == 0);
}

void sleep_for(uint64_t ns)
{
    nanosleep(&(struct timespec){ .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) },
              NULL);
}

void *interrupt(void *unused)
{
    (void)unused;
    EXPECT(ditto_strategy_interrupt(strategy) == DITTO_OK);
    return NULL;
}

ditto_status meet(ditto_replica *self, void *unused)
{
    (void)unused;
    return ditto_barrier(self, NULL);
}

void meet_or_be_poisoned(void)
{
    ditto_status status = ditto_strategy_run(strategy, meet, NULL);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_POISONED);
}

void end_strategy(void)
{
    EXPECT(ditto_strategy_destroy(strategy) == DITTO_OK);
}

void end_perhaps_poisoned(void)
{
    ditto_status status = ditto_strategy_destroy(strategy);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_POISONED);
    W->outcomes |= status == DITTO_OK ? 1 : 2;
}

static _Atomic bool let_go;
static _Atomic uint32_t inside;

void late_enter(void)
{
    atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed);
}

void late_wait(void)
{
    while (!atomic_load_explicit(&let_go, memory_order_acquire))
        sleep_for(10000000);
}

void late_leave(void)
{
    atomic_fetch_sub_explicit(&inside, 1, memory_order_release);
}

static void *let_it_go(void *most_ms)
{
    for (uint64_t left = random_below((uint64_t)(uintptr_t)most_ms); left > 0; left--)
        sleep_for(1000000);
    atomic_store_explicit(&let_go, true, memory_order_release);
    return NULL;
}

pthread_t let_go_within(uint32_t ms)
{
    return thread_of(let_it_go, (void *)(uintptr_t)ms);
}

void await_late(pthread_t thread)
{
    join(thread);
    while (atomic_load_explicit(&inside, memory_order_acquire) != 0)
        sleep_for(1000000);
    for (int k = 0; k < 100; k++) /* their threads end, and use nothing that is gone */
        sleep_for(10000000);
}
