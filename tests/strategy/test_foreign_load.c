/* tests/strategy/test_foreign_load.c - a description says if other programs use the PUs of a replica. */
#include "support/support.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_S = 60 };

static ditto_status compute(ditto_replica *self, void *unused)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < 100);
    return DITTO_OK;
}

/* Starts a process that always uses a PU. */
static pid_t start_busy_process(uint32_t pu)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        cpu_set_t set;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        CPU_ZERO(&set);
        CPU_SET(pu, &set);
        if (sched_setaffinity(0, sizeof set, &set) != 0)
            _exit(1);
        for (;;)
            ;
    }
    return child;
}

static void a_description_says_that_other_programs_use_a_pu(void **state)
{
    char text[4000];
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    time_t end = time(NULL) + LIMIT_S;
    if (access("/proc/self/schedstat", R_OK) != 0)
        skip();
    options.caller = DITTO_CALLER_WAITS; /* the replica has a thread of its own */
    ditto_strategy *s = make_strategy(1, &options);
    assert_ok(ditto_strategy_replica_info(s, 0, 0, &info));
    assert_true(info.cpu >= 0);
    pid_t child = start_busy_process((uint32_t)info.cpu);
    do {
        assert_ok(ditto_strategy_run(s, compute, NULL));
        assert_ok(ditto_strategy_describe(s, text, sizeof text, NULL));
    } while (strstr(text, "time for PUs that other threads used") == NULL && time(NULL) < end);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_non_null(strstr(text, "time for PUs that other threads used"));
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_description_says_that_other_programs_use_a_pu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
