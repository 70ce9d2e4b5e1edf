/* tests/embed/hangs.c - a program that hangs, because its replica 1 is late. tests/embed/gdb.sh looks at
 * it. */
#include <ditto.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

static atomic_int released;
void hangs_here(void);

static ditto_status work(ditto_replica *self, void *user)
{
    (void)user;
    while (ditto_replica_id(self) == 1 && !released)
        sched_yield();
    return ditto_barrier(self, NULL);
}

/* gdb stops the program here. */
__attribute__((noinline)) void hangs_here(void)
{
    __asm__ volatile("" ::: "memory");
}

static void *watch(void *user)
{
    ditto_strategy *strategy = user;
    while (strstr(ditto_strategy_diagnose(strategy), "replica 0: in ditto_barrier") == NULL)
        sched_yield();
    hangs_here();
    released = 1;
    return NULL;
}

int main(void)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    pthread_t watcher;
    options.num_replicas = 2;
    if (ditto_strategy_create(DITTO_MIRRORED, &options, &strategy) != DITTO_OK ||
        pthread_create(&watcher, NULL, watch, strategy) != 0)
        return 1;
    ditto_status status = ditto_strategy_run(strategy, work, NULL);
    pthread_join(watcher, NULL);
    return status == DITTO_OK && ditto_strategy_destroy(strategy) == DITTO_OK ? 0 : 1;
}
