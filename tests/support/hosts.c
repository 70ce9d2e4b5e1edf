/* tests/support/hosts.c - plays a cluster in one process. See hosts.h. */
#include "support/hosts.h"

#include <pthread.h>

struct host_thread {
    pthread_t thread;
    struct test_host host;
    test_host_fn *function;
    ditto_status destroyed;
};

static void *host_main(void *argument)
{
    struct host_thread *t = argument;
    ditto_wire wire;
    local_network_wire(t->host.network, t->host.host, &wire);
    char name[32];
    snprintf(name, sizeof name, "node%u", t->host.host);
    ditto_cluster_options options = OPTIONS(
        cluster, .name = name, .life_line = t->host.life_line ? DITTO_SWITCH_ON : DITTO_SWITCH_OFF);
    if (ditto_cluster_create(&wire, &options, &t->host.cluster) != DITTO_OK) {
        report_failure(t->host.report, __FILE__, __LINE__, "host %u: %s", t->host.host,
                       ditto_last_error()->message);
        return NULL;
    }
    ditto_status status = t->function(&t->host);
    if (status != DITTO_OK)
        report_failure(t->host.report, __FILE__, __LINE__, "host %u: %s: %s", t->host.host,
                       ditto_status_name(status), ditto_last_error()->message);
    t->destroyed = ditto_cluster_destroy(t->host.cluster);
    return NULL;
}

static void play(uint32_t hosts, uint32_t delay_us, test_host_fn *function, void *argument, bool may_fail,
                 bool life_line)
{
    struct report report = { 0 };
    struct host_thread *threads = calloc(hosts, sizeof *threads);
    struct local_network *network = local_network_make(hosts, delay_us, test_seed(17));
    for (uint32_t h = 0; h < hosts; h++) {
        threads[h].function = function;
        threads[h].host = (struct test_host){ .host = h,
                                              .hosts = hosts,
                                              .network = network,
                                              .report = &report,
                                              .argument = argument,
                                              .life_line = life_line };
        pthread_create(&threads[h].thread, NULL, host_main, &threads[h]);
    }
    ditto_status destroyed = DITTO_OK;
    for (uint32_t h = 0; h < hosts; h++) {
        pthread_join(threads[h].thread, NULL);
        destroyed = threads[h].destroyed != DITTO_OK ? threads[h].destroyed : destroyed;
    }
    size_t left = local_network_left(network);
    if (destroyed == DITTO_OK) /* a poisoned cluster keeps its wire */
        local_network_free(network);
    free(threads);
    assert_string_equal(report.first_failure, "");
    if (!may_fail) {
        assert_int_equal(destroyed, DITTO_OK);
        assert_int_equal(left, 0);
    }
}

void on_hosts(uint32_t hosts, uint32_t delay_us, test_host_fn *function, void *argument)
{
    play(hosts, delay_us, function, argument, false, false);
}

void on_hosts_that_fail(uint32_t hosts, uint32_t delay_us, test_host_fn *function, void *argument)
{
    play(hosts, delay_us, function, argument, true, false);
}

void on_hosts_that_take_leave(uint32_t hosts, test_host_fn *function, void *argument)
{
    play(hosts, 0, function, argument, false, true);
}

void on_hosts_with_life_line(uint32_t hosts, test_host_fn *function, void *argument)
{
    play(hosts, 0, function, argument, true, true);
}

ditto_status make_host_strategy(struct test_host *host, uint32_t replicas,
                                const ditto_strategy_options *options, ditto_strategy **out)
{
    ditto_strategy_options known = DITTO_STRATEGY_OPTIONS_INIT;
    if (options != NULL)
        known = *options;
    known.num_replicas = replicas;
    known.cluster = host->cluster;
    return ditto_strategy_create(DITTO_MIRRORED, &known, out);
}

ditto_status expect(struct test_host *host, ditto_status found, ditto_status expected, const char *text)
{
    if (found == expected && strstr(ditto_last_error()->message, text) != NULL)
        return DITTO_OK;
    report_failure(host->report, __FILE__, __LINE__, "host %u: %s instead of %s: %s", host->host,
                   ditto_status_name(found), ditto_status_name(expected), ditto_last_error()->message);
    return DITTO_ERR_USER;
}

ditto_status sum_of_ids(ditto_replica *self, void *argument)
{
    struct report *report = argument;
    double x = ditto_replica_id(self);
    uint32_t n = ditto_num_replicas(self);
    DITTO_TRY(ditto_all_reduce(self, &x, &x, 1, DITTO_F64, DITTO_SUM, NULL));
    EXPECT(report, x == n * (n - 1) / 2.0);
    return DITTO_OK;
}
