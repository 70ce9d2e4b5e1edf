/* tests/hosts/test_host_faults.c - failures on one host end the run on all hosts, with one error, and the
 * next run works. */
#include "base/waiting/stop.h"
#include "cluster/life_line.h"
#include "replicas/team/context.h"
#include "replicas/team/replica.h"
#include "support/hosts.h"

#include <unistd.h>

/* Runs the function, which must fail on all hosts as described, and then a run that works. */
struct failing {
    ditto_replica_fn function;
    ditto_status status;
    const char *text;
    uint32_t timeout_ms;
};

static ditto_status fails_and_goes_on(struct test_host *host)
{
    const struct failing *f = host->argument;
    ditto_strategy *strategy;
    DITTO_TRY(make_host_strategy(host, 2, &OPTIONS(strategy, .timeout_ms = f->timeout_ms), &strategy));
    for (int i = 0; i < 3; i++) {
        DITTO_TRY(expect(host, ditto_strategy_run(strategy, f->function, host), f->status, f->text));
        DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
    }
    return ditto_strategy_destroy(strategy);
}

static void fail_on_all_hosts(uint32_t hosts, struct failing failing)
{
    on_hosts(hosts, 200, fails_and_goes_on, &failing);
}

/* -- a function that fails -- */

static ditto_status fails_on_replica_3(ditto_replica *self, void *argument)
{
    double x = 1;
    DITTO_TRY(ditto_all_reduce(self, &x, &x, 1, DITTO_F64, DITTO_SUM, NULL));
    if (ditto_replica_id(self) == 3)
        return ditto_fail(self, 7, "the third replica has had enough");
    return ditto_all_reduce(self, &x, &x, 1, DITTO_F64, DITTO_SUM, NULL);
}

static void an_error_of_one_replica_is_returned_on_all_hosts(void **state)
{
    fail_on_all_hosts(2, (struct failing){ fails_on_replica_3, DITTO_ERR_USER, "has had enough", 0 });
    fail_on_all_hosts(3, (struct failing){ fails_on_replica_3, DITTO_ERR_USER, "has had enough", 0 });
}

static ditto_status combine_that_fails(void *out, const void *left, const void *right, size_t count,
                                       void *user)
{
    const double *a = left, *b = right;
    double *o = out;
    for (size_t i = 0; i < count; i++)
        o[i] = a[i] + b[i];
    if (*(uint32_t *)user == 1 && a[0] > 60000)
        return ditto_fail(NULL, 9, "cannot combine");
    return DITTO_OK;
}

static ditto_status fails_while_data_are_on_the_wire(ditto_replica *self, void *argument)
{
    struct test_host *host = argument;
    enum { COUNT = 400000 };
    void *memory;
    DITTO_TRY(ditto_alloc(self, COUNT * sizeof(double), 64, &memory));
    double *x = memory;
    for (size_t i = 0; i < COUNT; i++)
        x[i] = (double)(i / 4);
    ditto_status status = ditto_all_reduce_with(self, x, x, COUNT, sizeof *x, combine_that_fails, &host->host,
                                                NULL);
    ditto_status freed = ditto_free(self, memory);
    return status != DITTO_OK ? status : freed;
}

/* The function of host 1 fails in the block that it computes while host 0 waits for the sums. */
static ditto_status computes_nothing(void *out, size_t first, size_t count, void *user)
{
    memset(out, 0, count * sizeof(double));
    if (*(const uint32_t *)user == 1 && first >= DITTO_BLOCK_ELEMENTS)
        return ditto_fail(NULL, 9, "cannot compute");
    return DITTO_OK;
}

static ditto_status fails_to_compute(ditto_replica *self, void *argument)
{
    struct test_host *host = argument;
    double sum;
    return ditto_block_sum_with(self, computes_nothing, &host->host, &sum, 5000, DITTO_F64, NULL);
}

static ditto_status changes_nothing(void *buffer, size_t count, ditto_dtype dtype, void *user)
{
    return ditto_fail(NULL, 9, "cannot pass it on");
}

static ditto_status fails_on_the_way_through(ditto_replica *self, void *argument)
{
    double x = 1;
    return ditto_all_reduce_through(self, &x, &x, 1, DITTO_F64, DITTO_SUM, changes_nothing, NULL, NULL);
}

static ditto_status is_interrupted_on_host_1(ditto_replica *self, void *argument)
{
    const struct test_host *host = argument;
    DITTO_TRY(ditto_barrier(self, NULL));
    if (host->host == 1)
        DITTO_TRY(ditto_strategy_interrupt(ditto_get_strategy()));
    for (;;)
        DITTO_TRY(ditto_barrier(self, NULL));
}

static void a_run_that_is_interrupted_on_one_host_ends_on_all(void **state)
{
    fail_on_all_hosts(3, (struct failing){ is_interrupted_on_host_1, DITTO_ERR_CANCELLED, "interrupted", 0 });
}

static void functions_that_fail_end_the_run_on_all_hosts(void **state)
{
    for (uint32_t hosts = 2; hosts <= 3; hosts++) {
        fail_on_all_hosts(hosts, (struct failing){ fails_to_compute, DITTO_ERR_USER, "cannot compute", 0 });
        fail_on_all_hosts(
            hosts, (struct failing){ fails_on_the_way_through, DITTO_ERR_USER, "cannot pass it on", 0 });
    }
}

static void messages_of_a_stopped_run_are_taken(void **state)
{
    fail_on_all_hosts(
        2, (struct failing){ fails_while_data_are_on_the_wire, DITTO_ERR_USER, "cannot combine", 0 });
    fail_on_all_hosts(
        3, (struct failing){ fails_while_data_are_on_the_wire, DITTO_ERR_USER, "cannot combine", 0 });
}

/* -- calls that differ -- */

static ditto_status calls_another_function_on_host_1(ditto_replica *self, void *argument)
{
    const struct test_host *host = argument;
    float x = 1;
    DITTO_TRY(ditto_barrier(self, NULL));
    return host->host == 1 ? ditto_broadcast_from_root(self, &x, 1, DITTO_F32, 0, NULL)
                           : ditto_all_reduce(self, &x, &x, 1, DITTO_F32, DITTO_SUM, NULL);
}

static void another_call_on_one_host_is_diverged_on_all(void **state)
{
    fail_on_all_hosts(
        3, (struct failing){ calls_another_function_on_host_1, DITTO_ERR_DIVERGED,
                             "host 0 (node0, replicas 0-1) calls ditto_all_reduce #2 (1 x f32, SUM), but "
                             "host 1 (node1, replicas 2-3) calls ditto_broadcast_from_root #2",
                             0 });
}

static ditto_status gives_another_count_on_host_2(ditto_replica *self, void *argument)
{
    const struct test_host *host = argument;
    static const float zeros[100000];
    static _Thread_local float dst[100000];
    return ditto_all_reduce(self, zeros, dst, host->host == 2 ? 100000 : 99999, DITTO_F32, DITTO_SUM, NULL);
}

static void another_count_on_one_host_is_diverged_on_all(void **state)
{
    fail_on_all_hosts(
        3, (struct failing){ gives_another_count_on_host_2, DITTO_ERR_DIVERGED, "100000 x f32", 0 });
}

static ditto_status returns_early_on_host_1(ditto_replica *self, void *argument)
{
    const struct test_host *host = argument;
    return host->host == 1 ? DITTO_OK : ditto_barrier(self, NULL);
}

static void a_host_that_returns_early_is_diverged_on_all(void **state)
{
    fail_on_all_hosts(
        2, (struct failing){ returns_early_on_host_1, DITTO_ERR_DIVERGED, "the end of the run", 0 });
}

/* -- hosts that are late or gone -- */

/* Both replicas of host 1 are late. If one of them waited for the other, its error would count too. They come
 * 200 ms after the others have given up. The others then wait for them for 1000 ms, which is enough on a busy
 * machine, too. */
static ditto_status comes_late_on_host_1(ditto_replica *self, void *argument)
{
    const struct test_host *host = argument;
    DITTO_TRY(ditto_barrier(self, NULL));
    if (host->host == 1)
        usleep(1200000);
    return ditto_barrier(self, NULL);
}

static void a_late_host_is_named_by_all(void **state)
{
    fail_on_all_hosts(
        3, (struct failing){ comes_late_on_host_1, DITTO_ERR_TIMED_OUT,
                             "for host 1 (node1, replicas 2-3) (last heard of in ditto_barrier #1)", 1000 });
}

static ditto_status loses_host_1(struct test_host *host)
{
    ditto_strategy *strategy;
    DITTO_TRY(make_host_strategy(host, 1, &OPTIONS(strategy, .timeout_ms = 300), &strategy));
    DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
    if (host->host == 1)
        local_network_lose(host->network, 1);
    ditto_status status = ditto_strategy_run(strategy, sum_of_ids, host->report);
    if (host->host != 1)
        DITTO_TRY(expect(host, status, DITTO_ERR_TIMED_OUT, "for host 1 (node1, replica 1)"));
    CHECK(host, status != DITTO_OK);
    /* Host 1 gets the messages of the others, and fails as they do. It notices later that nobody answers. */
    status = ditto_strategy_run(strategy, sum_of_ids, host->report);
    CHECK(host, status == (host->host == 1 ? DITTO_ERR_TIMED_OUT : DITTO_ERR_POISONED));
    CHECK(host, ditto_strategy_run(strategy, sum_of_ids, host->report) == DITTO_ERR_POISONED);
    CHECK(host, ditto_strategy_destroy(strategy) == DITTO_OK);
    return DITTO_OK;
}

static void a_host_that_is_gone_poisons_the_cluster(void **state)
{
    on_hosts_that_fail(3, 0, loses_host_1, NULL);
}

/* -- the life line -- */

/* The first replica of host 1 ends like a process that is killed, while the others wait: the replicas of the
 * other hosts for the first one of their host, which waits for host 1. */
static ditto_status dies_on_host_1(ditto_replica *self, void *argument)
{
    struct test_host *host = argument;
    DITTO_TRY(ditto_barrier(self, NULL));
    if (host->host == 1 && ditto_replica_is_first_of_host(self)) {
        local_network_lose(host->network, 1);
        dti_life_line_cut(host->cluster);
        return ditto_fail(self, 1, "the process of this host has ended");
    }
    return ditto_barrier(self, NULL);
}

static ditto_status computes_while_host_1_dies(ditto_replica *self, void *argument)
{
    struct test_host *host = argument;
    DITTO_TRY(ditto_barrier(self, NULL));
    if (host->host == 1 && ditto_replica_is_first_of_host(self)) {
        local_network_lose(host->network, 1);
        dti_life_line_cut(host->cluster);
        return ditto_fail(self, 1, "the process of this host has ended");
    }
    /* The first replica computes until the thread of the life line has stopped the run. */
    struct dti_replica *r;
    DITTO_TRY(dti_self(self, &r));
    for (int i = 0; i < 30000 && host->host == 0 && r->index == 0 && !dti_stopped(r->stop); i++)
        usleep(1000);
    return ditto_barrier(self, NULL);
}

static ditto_status loses_a_process(struct test_host *host, ditto_replica_fn function)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    options.timeout_ms = 2000; /* the test takes this long, because host 1 waits for it */
    ditto_cluster_properties on = DITTO_CLUSTER_PROPERTIES_INIT;
    CHECK(host, ditto_cluster_info(host->cluster, &on) == DITTO_OK && on.has_life_line == 1);
    DITTO_TRY(make_host_strategy(host, 2, &options, &strategy));
    DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
    ditto_status status = ditto_strategy_run(strategy, function, host);
    if (host->host != 1) {
        DITTO_TRY(expect(host, status, DITTO_ERR_LOST, "host 1 (node1, replicas 2-3) is gone"));
        DITTO_TRY(
            expect(host, ditto_strategy_run(strategy, sum_of_ids, host->report), DITTO_ERR_LOST, "is gone"));
    }
    CHECK(host, ditto_strategy_destroy(strategy) == DITTO_OK);
    return DITTO_OK;
}

static ditto_status loses_a_waiting_process(struct test_host *host)
{
    return loses_a_process(host, dies_on_host_1);
}

static ditto_status loses_a_process_while_it_computes(struct test_host *host)
{
    return loses_a_process(host, computes_while_host_1_dies);
}

static void a_process_that_ends_is_noticed_by_all(void **state)
{
    on_hosts_with_life_line(3, loses_a_waiting_process, NULL);
    on_hosts_with_life_line(3, loses_a_process_while_it_computes, NULL);
}

/* -- leaving -- */

static ditto_status leaves(struct test_host *host)
{
    ditto_strategy *strategy;
    DITTO_TRY(make_host_strategy(host, 2, NULL, &strategy));
    DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
    return ditto_strategy_destroy(strategy);
}

static void hosts_that_leave_are_not_lost(void **state)
{
    for (int i = 0; i < test_trials(20); i++)
        on_hosts_with_life_line(4, leaves, NULL);
}

/* -- creation -- */

static ditto_status creates_with_other_options(struct test_host *host)
{
    ditto_strategy *strategy, *second;
    ditto_strategy_options options = OPTIONS(strategy, .timeout_ms = host->host == 1 ? 5000 : 6000);
    DITTO_TRY(expect(host, make_host_strategy(host, 1, &options, &strategy), DITTO_ERR_INVALID,
                     "timeout_ms is 6000 on host 0, but 5000 on host 1 (node1)"));
    options = (ditto_strategy_options)DITTO_STRATEGY_OPTIONS_INIT;
    options.order_blocks = host->host + 1;
    DITTO_TRY(expect(host, make_host_strategy(host, 1, &options, &strategy), DITTO_ERR_INVALID,
                     "order_blocks is 1"));
    options.order_blocks = 4;
    DITTO_TRY(
        expect(host, make_host_strategy(host, 1, &options, &strategy), DITTO_ERR_RANGE, "order_blocks = 4"));
    options.order_blocks = 0;
    options.stack_bytes = host->host == 1 ? 1024 : 0;
    DITTO_TRY(expect(host, make_host_strategy(host, 1, &options, &strategy), DITTO_ERR_RANGE,
                     "stack_bytes = 1024"));
    options.stack_bytes = 0;
    DITTO_TRY(make_host_strategy(host, 1, &options, &strategy));
    DITTO_TRY(
        expect(host, make_host_strategy(host, 1, &options, &second), DITTO_ERR_BUSY, "another strategy"));
    CHECK(host, ditto_cluster_destroy(host->cluster) == DITTO_ERR_BUSY);
    CHECK(host, ditto_strategy_num_replicas(strategy) == 3 &&
                    properties_of_strategy(strategy).num_local_replicas == 1 &&
                    properties_of_strategy(strategy).first_local_replica == host->host);
    DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
    return ditto_strategy_destroy(strategy);
}

static void creation_fails_on_all_hosts_or_on_none(void **state)
{
    on_hosts(3, 100, creates_with_other_options, NULL);
}

/* -- kinds that have one home -- */

static ditto_status makes_others(struct test_host *host)
{
    static const ditto_strategy_kind kinds[] = { DITTO_CENTRAL_STORAGE, DITTO_ONE_DEVICE,
                                                 DITTO_PARAMETER_SERVER };
    ditto_strategy *strategy = NULL;
    ditto_strategy_options options = OPTIONS(strategy, .cluster = host->cluster, .num_replicas = 1);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        DITTO_TRY(expect(host, ditto_strategy_create(kinds[i], &options, &strategy), DITTO_ERR_UNSUPPORTED,
                         "leave options->cluster NULL"));
    CHECK(host, strategy == NULL);
    DITTO_TRY(make_host_strategy(host, 1, NULL, &strategy));
    return ditto_strategy_destroy(strategy);
}

static void rule_12_15_workers_are_on_one_host(void **state)
{
    on_hosts(2, 0, makes_others, NULL);
    on_hosts(3, 0, makes_others, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_of_one_replica_is_returned_on_all_hosts),
        cmocka_unit_test(messages_of_a_stopped_run_are_taken),
        cmocka_unit_test(a_run_that_is_interrupted_on_one_host_ends_on_all),
        cmocka_unit_test(functions_that_fail_end_the_run_on_all_hosts),
        cmocka_unit_test(another_call_on_one_host_is_diverged_on_all),
        cmocka_unit_test(another_count_on_one_host_is_diverged_on_all),
        cmocka_unit_test(a_host_that_returns_early_is_diverged_on_all),
        cmocka_unit_test(a_late_host_is_named_by_all),
        cmocka_unit_test(a_host_that_is_gone_poisons_the_cluster),
        cmocka_unit_test(a_process_that_ends_is_noticed_by_all),
        cmocka_unit_test(hosts_that_leave_are_not_lost),
        cmocka_unit_test(creation_fails_on_all_hosts_or_on_none),
        cmocka_unit_test(rule_12_15_workers_are_on_one_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
