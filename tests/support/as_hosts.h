/* tests/support/as_hosts.h - runs the tests of a program on several hosts.
 *
 * If DITTO_TEST_HOSTS is 2 or more, each test of cmocka_run_group_tests runs in as many processes, each of
 * which plays a host. make_strategy then makes strategies over all of them, with the same replicas in all, if
 * each host gets at least one. So a test counts the calls, and looks at the components, of this host alone
 * (first_local, end_local). Each host checks what it sees, and a failure of one fails the test.
 *
 * Messages move through shared memory. A program that is linked with as_ranks.c is started by mpirun instead.
 * Each of its ranks is a host, and all of them run the same tests in the same order.
 *
 * A test that cannot do so is listed with one_host_test and the reason. */
#ifndef SUPPORT_AS_HOSTS_H
#define SUPPORT_AS_HOSTS_H

#include "support/support.h"

/* In place of cmocka_unit_test. */
#define one_host_test(function, reason)                              \
    {                                                                \
#function, (function), NULL, NULL, (void *)(uintptr_t)reason \
    }

#undef cmocka_run_group_tests
#define cmocka_run_group_tests(tests, setup, teardown) \
    run_tests_as_hosts(#tests, (tests), sizeof(tests) / sizeof((tests)[0]), (setup), (teardown))
int run_tests_as_hosts(const char *group, const struct CMUnitTest *tests, size_t count,
                       CMFixtureFunction setup, CMFixtureFunction teardown);

/* What a program with ranks knows: their number, which one this is, and how to make a cluster of them. Only
 * such programs have these functions (as_ranks.c). */
struct test_ranks {
    uint32_t count, rank;
    ditto_status (*make_cluster)(const ditto_cluster_options *options, ditto_cluster **out);
};
void join_ranks(struct test_ranks *ranks) __attribute__((weak));
void leave_ranks(void) __attribute__((weak));

/* Returns the number of hosts that this process is one of. */
uint32_t test_hosts(void);
/* Returns the number of this one. */
uint32_t test_host(void);

/* Return the first replica of this host, the number after its last one, and how many there are. */
static inline uint32_t first_local(const ditto_strategy *strategy)
{
    return properties_of_strategy(strategy).first_local_replica;
}
static inline uint32_t num_local(const ditto_strategy *strategy)
{
    return properties_of_strategy(strategy).num_local_replicas;
}
static inline uint32_t end_local(const ditto_strategy *strategy)
{
    return first_local(strategy) + num_local(strategy);
}
/* Returns true if the strategy has replicas on several hosts. */
static inline bool is_spread(const ditto_strategy *strategy)
{
    return num_local(strategy) < ditto_strategy_num_replicas(strategy);
}

/* Completes the options of a strategy of n replicas on all hosts. Changes nothing with one host. */
void spread_over_hosts(uint32_t n, ditto_strategy_options *options);

#endif
