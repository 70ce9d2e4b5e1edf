/* tests/coordinator/test_host_workers.c - docs/semantics.md, "Parameter servers": workers on several hosts
 * (rule 12.15). Each host is a thread, or a process if it is to be lost. */
#include "support/free_ports.h"
#include "support/hosts.h"

#include <ditto.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const ditto_strategy_options *given_options;

/* What host 0 does with the coordinator. The strategy has `argument` replicas on each host. */
struct job {
    uint32_t replicas, each; /* of a host, and of a worker */
    ditto_status (*work)(struct test_host *host, ditto_strategy *strategy, ditto_coordinator *coordinator);
    ditto_serve_fn prepare;
};

static ditto_status make_workers(struct test_host *host, const struct job *job, ditto_strategy **out)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    if (given_options != NULL)
        options = *given_options;
    options.num_replicas = job->replicas;
    options.replicas_per_worker = job->each;
    options.cluster = host->cluster;
    return ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, out);
}

static ditto_status play_host(struct test_host *host)
{
    const struct job *job = host->argument;
    ditto_strategy *strategy;
    ditto_coordinator *coordinator;
    DITTO_TRY(make_workers(host, job, &strategy));
    CHECK(host, ditto_strategy_num_replicas(strategy) == host->hosts * job->replicas);
    CHECK(host, ditto_strategy_first_local_replica(strategy) == host->host * job->replicas);
    if (host->host != 0) {
        DITTO_TRY(ditto_serve(strategy, job->prepare, host));
        return ditto_strategy_destroy(strategy);
    }
    DITTO_TRY(ditto_coordinator_create(strategy, NULL, &coordinator));
    ditto_status status = job->prepare != NULL ? job->prepare(coordinator, host) : DITTO_OK;
    if (status == DITTO_OK)
        status = job->work(host, strategy, coordinator);
    DITTO_TRY(ditto_coordinator_destroy(coordinator)); /* also after a failure, because the others serve */
    DITTO_TRY(ditto_strategy_destroy(strategy));
    return status;
}

static void play(uint32_t hosts, struct job job)
{
    on_hosts_with_life_line(hosts, play_host, &job);
}

/* -- functions -- */

/* How many calls have begun, and how many must have before the first ones end. */
static _Atomic uint32_t begun, awaited;

/* The first calls wait for each other, so each worker executes one of them. */
static ditto_status give_worker(ditto_replica *self, void *user)
{
    (void)user;
    if (ditto_replica_id(self) == 0)
        atomic_fetch_add(&begun, 1);
    while (atomic_load(&begun) < atomic_load(&awaited))
        sleep_ms(1);
    return ditto_return_f64(self, NULL, ditto_worker(self));
}

static ditto_status twice(ditto_replica *self, void *user)
{
    ditto_tensor x;
    (void)user;
    DITTO_TRY(ditto_argument(self, NULL, &x));
    return ditto_return_f64(self, NULL, 2 * *(const double *)x.data);
}

static ditto_status fail_if_seven(ditto_replica *self, void *user)
{
    ditto_tensor x;
    (void)user;
    DITTO_TRY(ditto_argument(self, NULL, &x));
    return *(const double *)x.data == 7 ? ditto_fail(self, 77, "seven is refused") : DITTO_OK;
}

static ditto_status number_of(ditto_remote *remote, double *number)
{
    ditto_value *value;
    const ditto_value *of_replica_0;
    DITTO_TRY(ditto_remote_fetch(remote, &value));
    of_replica_0 = value;
    if (ditto_value_kind_of(value) == DITTO_VALUE_NEST) /* the worker has several replicas */
        DITTO_TRY(ditto_value_member(value, "0", &of_replica_0));
    DITTO_TRY(ditto_value_f64(of_replica_0, number));
    DITTO_TRY(ditto_value_destroy(value));
    return ditto_remote_destroy(remote);
}

static ditto_status schedule_number(ditto_strategy *strategy, ditto_coordinator *c, const char *name,
                                    double x, ditto_remote **out)
{
    ditto_tensor tensor = { .data = &x, .dtype = DITTO_F64 };
    ditto_value *argument;
    DITTO_TRY(ditto_strategy_value(strategy, &tensor, &argument));
    ditto_status status = ditto_coordinator_schedule(c, name, argument, NULL, out);
    DITTO_TRY(ditto_value_destroy(argument));
    return status;
}

/* -- tests -- */

static ditto_status use_all_workers(struct test_host *host, ditto_strategy *strategy, ditto_coordinator *c)
{
    enum { FUNCTIONS = 200 };
    static ditto_remote *remote[FUNCTIONS];
    uint32_t workers = ditto_coordinator_num_workers(c);
    uint32_t *executed = calloc(workers, sizeof *executed), used = 0;
    int64_t of_host[8] = { 0 };
    (void)strategy;
    atomic_store(&begun, 0);
    atomic_store(&awaited, workers);
    for (int i = 0; i < FUNCTIONS; i++)
        DITTO_TRY(ditto_coordinator_schedule(c, "give_worker", NULL, NULL, &remote[i]));
    DITTO_TRY(ditto_coordinator_join(c));
    for (int i = 0; i < FUNCTIONS; i++) {
        double worker = -1;
        DITTO_TRY(number_of(remote[i], &worker));
        CHECK(host, worker >= 0 && worker < workers);
        executed[(uint32_t)worker]++;
    }
    for (uint32_t w = 0; w < workers; w++) {
        ditto_worker_info info = DITTO_WORKER_INFO_INIT;
        DITTO_TRY(ditto_coordinator_worker_info(c, w, &info));
        of_host[w / (workers / host->hosts)] += (int64_t)info.functions - executed[w];
        CHECK(host, !info.is_retired);
        used += executed[w] != 0;
    }
    CHECK(host, used == workers);
    /* Which of its workers executes a function is decided by the host. */
    for (uint32_t h = 0; h < host->hosts; h++)
        CHECK(host, of_host[h] == 0);
    free(executed);
    return DITTO_OK;
}

static void rule_12_15_workers_of_all_hosts(void **state)
{
    (void)state;
    assert_ok(ditto_function_register("give_worker", give_worker, NULL));
    play(2, (struct job){ 1, 1, use_all_workers, NULL });
    play(3, (struct job){ 2, 1, use_all_workers, NULL });
    play(2, (struct job){ 4, 2, use_all_workers, NULL });
    assert_ok(ditto_function_unregister("give_worker"));
}

static ditto_status send_numbers(struct test_host *host, ditto_strategy *strategy, ditto_coordinator *c)
{
    ditto_remote *remote[100];
    for (int i = 0; i < 100; i++)
        DITTO_TRY(schedule_number(strategy, c, "twice", i, &remote[i]));
    for (int i = 0; i < 100; i++) {
        double number = -1;
        DITTO_TRY(number_of(remote[i], &number));
        CHECK(host, number == 2 * i);
    }
    return ditto_coordinator_join(c);
}

static void rule_12_15_arguments_and_results(void **state)
{
    (void)state;
    assert_ok(ditto_function_register("twice", twice, NULL));
    play(2, (struct job){ 1, 1, send_numbers, NULL });
    play(3, (struct job){ 1, 1, send_numbers, NULL });
    assert_ok(ditto_function_unregister("twice"));
}

static ditto_status let_one_fail(struct test_host *host, ditto_strategy *strategy, ditto_coordinator *c)
{
    for (int round = 0; round < 10; round++) {
        ditto_remote *failed;
        DITTO_TRY(schedule_number(strategy, c, "fail_if_seven", 7, &failed));
        ditto_status status = ditto_coordinator_join(c);
        CHECK(host, status == DITTO_ERR_USER && ditto_last_error()->user_code == 77);
        CHECK(host, strstr(ditto_last_error()->message, "seven is refused") != NULL);
        CHECK(host, ditto_remote_destroy(failed) == DITTO_OK);
        for (int i = 0; i < 6; i++)
            DITTO_TRY(schedule_number(strategy, c, "fail_if_seven", i, NULL));
        DITTO_TRY(ditto_coordinator_join(c));
    }
    return DITTO_OK;
}

static void rule_12_15_errors_of_functions(void **state)
{
    (void)state;
    assert_ok(ditto_function_register("fail_if_seven", fail_if_seven, NULL));
    play(2, (struct job){ 1, 1, let_one_fail, NULL });
    assert_ok(ditto_function_unregister("fail_if_seven"));
}

/* Values of workers: each has its number, and adds 100 in each function. */
static _Thread_local ditto_per_worker *values_of_host[1];
static ditto_per_worker *values[8]; /* [hosts] */

static ditto_status initial_value(uint32_t worker, uint32_t workers, void *user, ditto_tensor *out)
{
    static _Thread_local double number;
    (void)workers, (void)user;
    number = worker;
    *out = (ditto_tensor){ .data = &number, .dtype = DITTO_F64 };
    return DITTO_OK;
}

static ditto_status make_values(ditto_coordinator *coordinator, void *user)
{
    struct test_host *host = user;
    (void)values_of_host;
    return ditto_coordinator_values_from_function(coordinator, initial_value, NULL, &values[host->host]);
}

static ditto_status add_hundred(ditto_replica *self, void *user)
{
    const uint32_t *each = user; /* workers of a host */
    ditto_tensor value;
    DITTO_TRY(ditto_worker_value(self, values[ditto_worker(self) / *each], &value));
    double *number = value.data;
    *number += 100;
    return ditto_return_f64(self, NULL, (uint32_t)*number % 100 == ditto_worker(self));
}

static ditto_status use_values(struct test_host *host, ditto_strategy *strategy, ditto_coordinator *c)
{
    (void)strategy;
    for (int i = 0; i < 50; i++) {
        ditto_remote *remote;
        double is_right = 0;
        DITTO_TRY(ditto_coordinator_schedule(c, "add_hundred", NULL, NULL, &remote));
        DITTO_TRY(number_of(remote, &is_right));
        CHECK(host, is_right == 1);
    }
    return DITTO_OK;
}

static void rule_12_15_values_of_workers(void **state)
{
    (void)state;
    static uint32_t each = 2;
    assert_ok(ditto_function_register("add_hundred", add_hundred, &each));
    play(2, (struct job){ 2, 1, use_values, make_values });
    assert_ok(ditto_function_unregister("add_hundred"));
}

/* -- calls that cannot be -- */

static ditto_status misuse(struct test_host *host)
{
    struct job job = { 1, 1, NULL, NULL };
    ditto_strategy *strategy;
    ditto_coordinator *coordinator;
    DITTO_TRY(make_workers(host, &job, &strategy));
    if (host->host == 0)
        DITTO_TRY(expect(host, ditto_serve(strategy, NULL, NULL), DITTO_ERR_CONTEXT, "host 0"));
    else
        DITTO_TRY(expect(host, ditto_coordinator_create(strategy, NULL, &coordinator), DITTO_ERR_CONTEXT,
                         "ditto_serve"));
    return ditto_strategy_destroy(strategy);
}

static void rule_12_15_calls_that_cannot_be(void **state)
{
    (void)state;
    on_hosts_with_life_line(2, misuse, NULL);
    ditto_strategy *strategy;
    assert_ok(ditto_strategy_create(DITTO_PARAMETER_SERVER, NULL, &strategy));
    assert_status(ditto_serve(strategy, NULL, NULL), DITTO_ERR_CONTEXT);
    assert_ok(ditto_strategy_destroy(strategy));
    assert_ok(ditto_strategy_create(DITTO_MIRRORED, NULL, &strategy));
    assert_status(ditto_serve(strategy, NULL, NULL), DITTO_ERR_INVALID);
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- hosts that are lost: processes over TCP -- */

enum { LOST_HOSTS = 3, TIMEOUT_MS = 20000 };

static ditto_status make_process_cluster(const char *list, uint32_t number, ditto_cluster **out)
{
    ditto_tcp_options tcp = DITTO_TCP_OPTIONS_INIT;
    ditto_cluster_options options = DITTO_CLUSTER_OPTIONS_INIT;
    tcp.hosts = list;
    tcp.host = number;
    tcp.has_host = 1;
    options.timeout_ms = TIMEOUT_MS;
    return ditto_tcp_cluster(&tcp, &options, out);
}

static ditto_status begin_process(const char *list, uint32_t number, ditto_cluster **cluster,
                                  ditto_strategy **strategy)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    DITTO_TRY(make_process_cluster(list, number, cluster));
    options.cluster = *cluster;
    options.num_replicas = 1;
    options.timeout_ms = TIMEOUT_MS;
    DITTO_TRY(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, strategy));
    return ditto_function_register("give_worker", give_worker, NULL);
}

/* Serves, and returns the exit code of the process. */
static int serve_as(const char *list, uint32_t number, ditto_status expected)
{
    ditto_cluster *cluster;
    ditto_strategy *strategy;
    if (begin_process(list, number, &cluster, &strategy) != DITTO_OK)
        return 2;
    if (ditto_serve(strategy, NULL, NULL) != expected)
        return 3;
    (void)!ditto_strategy_destroy(strategy);
    (void)!ditto_cluster_destroy(cluster);
    return 0;
}

/* Host 1 is killed while functions are executed. All of them end nevertheless. */
static void rule_12_15_a_host_is_lost(void **state)
{
    (void)state;
    char list[LOST_HOSTS * 24];
    pid_t pid[LOST_HOSTS];
    ditto_cluster *cluster;
    ditto_strategy *strategy;
    ditto_coordinator *c;
    int code;
    list_free_ports(LOST_HOSTS, list, sizeof list);
    for (uint32_t h = 1; h < LOST_HOSTS; h++) {
        pid[h] = fork();
        if (pid[h] == 0)
            _exit(serve_as(list, h, DITTO_OK));
    }
    atomic_store(&awaited, 0);
    assert_ok(begin_process(list, 0, &cluster, &strategy));
    assert_ok(ditto_coordinator_create(strategy, NULL, &c));
    for (int round = 0; round < 2; round++) {
        ditto_remote *remote[300];
        for (int i = 0; i < 300; i++) {
            assert_ok(ditto_coordinator_schedule(c, "give_worker", NULL, NULL, &remote[i]));
            if (round == 0 && i == 150)
                kill(pid[1], SIGKILL);
        }
        assert_ok(ditto_coordinator_join(c));
        for (int i = 0; i < 300; i++) {
            double worker = -1;
            assert_ok(number_of(remote[i], &worker));
            assert_true(worker == 0 || worker == 2 || (round == 0 && worker == 1));
        }
    }
    ditto_worker_info info = DITTO_WORKER_INFO_INIT;
    while (!info.is_retired) { /* when it gets a function, which it may not have got so far */
        assert_ok(ditto_coordinator_schedule(c, "give_worker", NULL, NULL, NULL));
        assert_ok(ditto_coordinator_join(c));
        assert_ok(ditto_coordinator_worker_info(c, 1, &info));
    }
    assert_ok(ditto_coordinator_destroy(c));
    assert_ok(ditto_strategy_destroy(strategy));
    assert_ok(ditto_cluster_destroy(cluster));
    assert_int_equal(waitpid(pid[1], &code, 0), pid[1]);
    assert_int_equal(waitpid(pid[2], &code, 0), pid[2]);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
    assert_ok(ditto_function_unregister("give_worker"));
}

static int be_host_0_and_die(const char *list)
{
    ditto_cluster *cluster;
    ditto_strategy *strategy;
    ditto_coordinator *c;
    if (begin_process(list, 0, &cluster, &strategy) != DITTO_OK ||
        ditto_coordinator_create(strategy, NULL, &c) != DITTO_OK)
        return 1;
    sleep_ms(50);
    raise(SIGKILL);
    return 1;
}

static void rule_12_15_host_0_is_lost(void **state)
{
    (void)state;
    char list[LOST_HOSTS * 24];
    pid_t pid[LOST_HOSTS];
    int code;
    list_free_ports(LOST_HOSTS, list, sizeof list);
    for (uint32_t h = 0; h < LOST_HOSTS; h++) {
        pid[h] = fork();
        if (pid[h] == 0)
            _exit(h == 0 ? be_host_0_and_die(list) : serve_as(list, h, DITTO_ERR_LOST));
    }
    for (uint32_t h = 0; h < LOST_HOSTS; h++) {
        assert_int_equal(waitpid(pid[h], &code, 0), pid[h]);
        assert_true(h == 0 ? WIFSIGNALED(code) : WIFEXITED(code) && WEXITSTATUS(code) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_12_15_a_host_is_lost), /* before there are threads */
        cmocka_unit_test(rule_12_15_host_0_is_lost),        cmocka_unit_test(rule_12_15_workers_of_all_hosts),
        cmocka_unit_test(rule_12_15_arguments_and_results), cmocka_unit_test(rule_12_15_errors_of_functions),
        cmocka_unit_test(rule_12_15_values_of_workers),     cmocka_unit_test(rule_12_15_calls_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
