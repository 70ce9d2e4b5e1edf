/* tests/support/as_hosts.c - runs the tests of a program in several processes. See as_hosts.h. */
#include "support/as_hosts.h"
#include "cluster/header.h"
#include "support/local_wire.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Strategies that exist at a time, each with a cluster of its own. */
enum {
    MOST_HOSTS = 8,
    MOST_CLUSTERS = 4,
    DELAY_US = 30,
    TIMEOUT_MS = 20000,
    LIMIT_MS = 120000,
    GRACE_MS = 1000
};

static uint32_t hosts = 1, host;
static struct test_ranks ranks; /* zeros if the hosts are not ranks of MPI */
static struct local_network *network[MOST_CLUSTERS];
static ditto_cluster *cluster[MOST_CLUSTERS];

uint32_t test_hosts(void)
{
    return hosts;
}

uint32_t test_host(void)
{
    return host;
}

/* -- a host -- */

static ditto_status make_cluster(uint32_t i, const ditto_cluster_options *options)
{
    ditto_wire wire;
    if (ranks.count != 0)
        return ranks.make_cluster(options, &cluster[i]);
    local_network_wire(network[i], host, &wire);
    return ditto_cluster_create(&wire, options, &cluster[i]);
}

/* Returns a cluster that no strategy uses. It is the same one on all hosts, because they make and destroy
 * strategies in the same order. */
static ditto_cluster *free_cluster(void)
{
    uint32_t i = 0;
    while (i < MOST_CLUSTERS && cluster[i] != NULL && cluster[i]->ranges != NULL)
        i++;
    if (i == MOST_CLUSTERS)
        fail_msg("more than %d strategies at a time", MOST_CLUSTERS);
    if (cluster[i] == NULL && make_cluster(i, &OPTIONS(cluster, .timeout_ms = TIMEOUT_MS)) != DITTO_OK)
        fail_msg("no cluster of %u hosts: %s", hosts, ditto_last_error()->message);
    return cluster[i];
}

void spread_over_hosts(uint32_t n, ditto_strategy_options *options)
{
    if (hosts == 1 || n < hosts || options->cluster != NULL || options->placement_options != NULL)
        return;
    options->cluster = free_cluster();
    options->num_replicas = ditto_cluster_share(options->cluster, n);
    if (options->timeout_ms == 0)
        options->timeout_ms = TIMEOUT_MS;
}

/* Runs a test on this host. */
static bool play(const char *group, const struct CMUnitTest *test, CMFixtureFunction setup,
                 CMFixtureFunction teardown)
{
    struct CMUnitTest one = *test;
    int failed = _cmocka_run_group_tests(group, &one, 1, setup, teardown);
    for (uint32_t i = 0; i < MOST_CLUSTERS; i++) {
        failed += cluster[i] != NULL && ditto_cluster_destroy(cluster[i]) != DITTO_OK;
        cluster[i] = NULL;
    }
    fflush(NULL);
    return failed == 0;
}

/* -- all hosts -- */

/* Waits for one of the processes, at most so long after one has failed. Returns its number, or -1. */
static int await_one(const pid_t *pids, uint32_t count, bool one_has_failed, int *status)
{
    int limit_ms = one_has_failed ? GRACE_MS : LIMIT_MS;
    for (int waited = 0; waited < limit_ms; waited++) {
        for (uint32_t h = 0; h < count; h++)
            if (pids[h] > 0 && waitpid(pids[h], status, WNOHANG) == pids[h])
                return (int)h;
        sleep_ms(1);
    }
    return -1;
}

static bool await_all(pid_t *pids, uint32_t count)
{
    bool failed = false;
    for (uint32_t left = count; left > 0; left--) {
        int status = 0, h = await_one(pids, count, failed, &status);
        failed |= h < 0;
        if (h < 0)
            break;
        pids[h] = 0;
        failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    for (uint32_t h = 0; h < count; h++) {
        if (pids[h] <= 0)
            continue;
        kill(pids[h], SIGKILL);
        waitpid(pids[h], NULL, 0);
    }
    return !failed;
}

static void print_file(FILE *file, uint32_t of_host)
{
    char line[1000];
    rewind(file);
    while (fgets(line, sizeof line, file) != NULL)
        printf("host %u: %s", of_host, line);
}

static bool play_on_all(const char *group, const struct CMUnitTest *test, CMFixtureFunction setup,
                        CMFixtureFunction teardown)
{
    pid_t pids[MOST_HOSTS];
    FILE *output[MOST_HOSTS];
    for (uint32_t i = 0; i < MOST_CLUSTERS; i++)
        network[i] = local_network_make_shared(hosts, DELAY_US, 17 + i);
    fflush(NULL);
    for (uint32_t h = 0; h < hosts; h++) {
        output[h] = tmpfile();
        pids[h] = fork();
        if (pids[h] == 0) {
            host = h;
            dup2(fileno(output[h]), STDOUT_FILENO);
            dup2(fileno(output[h]), STDERR_FILENO);
            _exit(!play(group, test, setup, teardown));
        }
    }
    bool passed = await_all(pids, hosts);
    for (uint32_t h = 0; h < hosts; h++) {
        if (!passed)
            print_file(output[h], h);
        fclose(output[h]);
    }
    for (uint32_t i = 0; i < MOST_CLUSTERS; i++)
        local_network_free(network[i]);
    return passed;
}

int run_tests_as_hosts(const char *group, const struct CMUnitTest *tests, size_t count,
                       CMFixtureFunction setup, CMFixtureFunction teardown)
{
    const char *given = getenv("DITTO_TEST_HOSTS");
    int failed = 0, left_out = 0;
    hosts = given != NULL ? (uint32_t)atoi(given) : 1;
    if (join_ranks != NULL) {
        join_ranks(&ranks);
        hosts = ranks.count;
        host = ranks.rank;
    }
    if (hosts <= 1 || hosts > MOST_HOSTS) {
        hosts = 1;
        return _cmocka_run_group_tests(group, tests, count, setup, teardown);
    }
    for (size_t i = 0; i < count; i++) {
        if (tests[i].initial_state != NULL) {
            printf("%s: one host: %s\n", tests[i].name, (const char *)tests[i].initial_state);
            left_out++;
            continue;
        }
        bool passed = ranks.count != 0 ? play(group, &tests[i], setup, teardown)
                                       : play_on_all(group, &tests[i], setup, teardown);
        printf("%s: %u hosts: %s\n", tests[i].name, hosts, passed ? "OK" : "FAILED");
        failed += !passed;
    }
    printf("%d tests on %u hosts, %d failed, %d of one host alone\n", (int)count - left_out, hosts, failed,
           left_out);
    if (leave_ranks != NULL)
        leave_ranks();
    return failed;
}
