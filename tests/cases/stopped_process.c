/* tests/cases/stopped_process.c - the process is stopped for 4 seconds (Ctrl-Z, a debugger, a suspended
 * machine) while replica 0 waits. The time limit of 2 seconds counts this time, although replica 1 needs
 * only one second of its own.
 *     stopped_process barrier | active | run | next     what is limited to 2 seconds */
#include "cases.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static ditto_iterator *iterator;

static void compute(void)
{
    double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
    while (seconds(CLOCK_THREAD_CPUTIME_ID) < begin + 1)
        ;
}

static ditto_status slow_copy(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                              void *user)
{
    (void)random, (void)user;
    compute();
    memcpy(out->data, in->data, sizeof(int64_t));
    return DITTO_OK;
}

static ditto_status wait_for_each_other(ditto_replica *self, void *unused)
{
    ditto_batch batch;
    (void)unused;
    if (iterator != NULL)
        return ditto_next(self, iterator, &batch);
    if (ditto_replica_id(self) == 1)
        compute();
    return ditto_barrier(self, NULL);
}

int main(int argc, char **argv)
{
    const char *in = argc > 1 ? argv[1] : "barrier";
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    ditto_dataset *range, *slow, *batches;
    options.num_replicas = 2;
    if (strcmp(in, "run") == 0)
        options.run_timeout_ms = 2000;
    else
        options.timeout_ms = 2000;
    options.wait = strcmp(in, "active") == 0 ? DITTO_WAIT_ACTIVE : DITTO_WAIT_DEFAULT;
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        sleep_ms(700);
        kill(parent, SIGSTOP);
        sleep_ms(4000);
        kill(parent, SIGCONT);
        _exit(0);
    }
    MUST(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    if (strcmp(in, "next") == 0) {
        MUST(ditto_dataset_from_range(0, 2, 1, &range));
        MUST(ditto_dataset_map(range, slow_copy, NULL, NULL, &slow));
        MUST(ditto_dataset_batch(slow, 2, 0, &batches));
        MUST(ditto_strategy_iterate(strategy, batches, NULL, &iterator));
    }
    ditto_status status = told(in, ditto_strategy_run(strategy, wait_for_each_other, NULL));
    waitpid(child, NULL, 0);
    return status == DITTO_OK ? RIGHT : WRONG;
}
