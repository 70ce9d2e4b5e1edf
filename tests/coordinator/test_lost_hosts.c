/* tests/coordinator/test_lost_hosts.c - docs/semantics.md, "Parameter servers": what becomes of functions and
 * parameters if a host is lost, and checkpoints of parameters on several hosts (rules 12.13, 12.15, 12.16).
 * Each host is a process, and they are connected by TCP. */
#include "support/free_ports.h"
#include "support/support.h"

#include <arpa/inet.h>
#include <ditto.h>
#include <ditto/checkpoint.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HOSTS = 3, ROWS = 12, TIMEOUT_MS = 20000 };

static uint32_t run_timeout_ms; /* of functions, or 0 */
static bool mirrors;            /* each shard is on two hosts */
static char folder[SCRATCH_NAME], path[SCRATCH_NAME + 20];

/* What a process has. */
static struct model {
    ditto_cluster *cluster;
    ditto_strategy *strategy;
    ditto_variable *table;
    ditto_optimizer *optimizer;
} model;

static ditto_status make_model(const char *list, uint32_t host, ditto_switch keeps)
{
    ditto_tcp_options tcp = DITTO_TCP_OPTIONS_INIT;
    ditto_cluster_options cluster = DITTO_CLUSTER_OPTIONS_INIT;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_variable_options cut = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_optimizer_options rule = DITTO_OPTIMIZER_OPTIONS_INIT;
    ditto_tensor table = { .dtype = DITTO_F64, .rank = 1, .shape = { ROWS } };
    tcp.hosts = list;
    tcp.host = host;
    tcp.has_host = 1;
    cluster.timeout_ms = TIMEOUT_MS;
    DITTO_TRY(ditto_tcp_cluster(&tcp, &cluster, &model.cluster));
    options.cluster = model.cluster;
    options.num_replicas = 1;
    options.timeout_ms = TIMEOUT_MS;
    options.run_timeout_ms = run_timeout_ms;
    options.keeps_parameters = keeps;
    options.mirrors_parameters = mirrors ? DITTO_SWITCH_ON : DITTO_SWITCH_DEFAULT;
    DITTO_TRY(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &model.strategy));
    cut.name = "table";
    cut.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 4 };
    DITTO_TRY(ditto_variable_create(model.strategy, &table, &cut, &model.table));
    rule.rule = DITTO_RULE_SGD;
    rule.learning_rate = 1;
    rule.momentum = 0.5;
    return ditto_optimizer_create(&model.table, 1, &rule, &model.optimizer);
}

static ditto_status destroy_model(void)
{
    DITTO_TRY(ditto_optimizer_destroy(model.optimizer));
    DITTO_TRY(ditto_variable_destroy(model.table));
    DITTO_TRY(ditto_strategy_destroy(model.strategy));
    return ditto_cluster_destroy(model.cluster);
}

/* -- functions -- */

static ditto_status add_one(ditto_replica *self, void *user)
{
    double ones[ROWS];
    (void)user;
    for (int i = 0; i < ROWS; i++)
        ones[i] = 1;
    return ditto_assign_add(self, model.table, ones);
}

static ditto_status take_step(ditto_replica *self, void *user)
{
    double ones[ROWS];
    (void)user;
    for (int i = 0; i < ROWS; i++)
        ones[i] = -1;
    ditto_tensor gradient = { .data = ones, .dtype = DITTO_F64, .rank = 1, .shape = { ROWS } };
    return ditto_apply(self, model.optimizer, &gradient, NULL);
}

static ditto_status register_functions(void)
{
    DITTO_TRY(ditto_function_register("add_one", add_one, NULL));
    return ditto_function_register("take_step", take_step, NULL);
}

static void unregister_functions(void)
{
    assert_ok(ditto_function_unregister("add_one"));
    assert_ok(ditto_function_unregister("take_step"));
}

static void schedule(ditto_coordinator *c, const char *name, int times)
{
    for (int i = 0; i < times; i++)
        assert_ok(ditto_coordinator_schedule(c, name, NULL, NULL, NULL));
}

/* -- processes -- */

/* Serves in a new process, which exits with 0 if all is as expected. With `restores`, it restores first. */
static pid_t start_host(const char *list, uint32_t host, ditto_switch keeps, bool restores)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid != 0)
        return pid;
    if (make_model(list, host, keeps) != DITTO_OK || register_functions() != DITTO_OK)
        _exit(2);
    if (restores && ditto_checkpoint_restore(model.strategy, path, NULL, NULL) != DITTO_OK)
        _exit(3);
    if (ditto_serve(model.strategy, NULL, NULL) != DITTO_OK)
        _exit(destroy_model() == DITTO_OK ? 4 : 5);
    _exit(destroy_model() == DITTO_OK ? 0 : 5);
}

static void await_host(pid_t pid, bool is_killed)
{
    int code;
    assert_int_equal(waitpid(pid, &code, 0), pid);
    if (is_killed)
        assert_true(WIFSIGNALED(code));
    else
        assert_int_equal(WIFEXITED(code) ? WEXITSTATUS(code) : -1, 0);
}

/* -- tests -- */

/* A host without parameters is killed. Nothing is lost, and each update counts, at least once. */
static void rule_12_16_a_host_without_parameters_is_lost(void **state)
{
    enum { TIMES = 400 };
    (void)state;
    char list[HOSTS * 24];
    ditto_coordinator *c;
    double table[ROWS];
    list_free_ports(HOSTS, list, sizeof list);
    pid_t first = start_host(list, 1, DITTO_SWITCH_OFF, false),
          second = start_host(list, 2, DITTO_SWITCH_DEFAULT, false);
    assert_ok(make_model(list, 0, DITTO_SWITCH_DEFAULT));
    assert_ok(register_functions());
    assert_ok(ditto_coordinator_create(model.strategy, NULL, &c));
    schedule(c, "add_one", TIMES / 2);
    kill(first, SIGKILL);
    schedule(c, "add_one", TIMES / 2);
    assert_ok(ditto_coordinator_join(c));
    assert_ok(ditto_variable_read(model.table, table, sizeof table));
    for (int i = 0; i < ROWS; i++) /* one function at most was being executed on the host */
        assert_true(table[i] == TIMES || table[i] == TIMES + 1);
    assert_ok(ditto_coordinator_destroy(c));
    assert_ok(destroy_model());
    unregister_functions();
    await_host(first, true);
    await_host(second, false);
}

/* A host with shards that another host has, too, is killed. Nothing is lost, and each update is applied once,
 * except those of the function that was being executed on the host. */
static void lose_mirrored(uint32_t victim, int when, bool both)
{
    enum { TIMES = 300 };
    char list[HOSTS * 24];
    ditto_coordinator *c;
    double table[ROWS];
    uint64_t versions[4], least = UINT64_MAX;
    pid_t pid[HOSTS];
    mirrors = true;
    list_free_ports(HOSTS, list, sizeof list);
    for (uint32_t h = 1; h < HOSTS; h++)
        pid[h] = start_host(list, h, DITTO_SWITCH_DEFAULT, false);
    assert_ok(make_model(list, 0, DITTO_SWITCH_DEFAULT));
    assert_ok(register_functions());
    assert_ok(ditto_coordinator_create(model.strategy, NULL, &c));
    schedule(c, "add_one", when);
    kill(pid[victim], SIGKILL);
    schedule(c, "add_one", TIMES - when);
    assert_ok(ditto_coordinator_join(c));
    assert_ok(ditto_variable_read(model.table, table, sizeof table));
    for (int i = 0; i < ROWS; i++)
        assert_true(table[i] == TIMES || table[i] == TIMES + 1);
    assert_ok(ditto_parameter_versions(model.table, versions, 4));
    for (int s = 0; s < 4; s++) {
        assert_true(versions[s] == (uint64_t)table[3 * s]);
        least = versions[s] < least ? versions[s] : least;
    }
    schedule(c, "take_step", 10); /* the slots are there, too */
    assert_ok(ditto_coordinator_join(c));
    assert_ok(ditto_parameter_versions(model.table, versions, 4));
    assert_true(versions[0] >= least + 10);
    if (both) { /* the shards of hosts 1 and 2 are gone */
        kill(pid[3 - victim], SIGKILL);
        await_host(pid[3 - victim], true);
        ditto_status status = DITTO_OK;
        while (status == DITTO_OK)
            status = ditto_variable_read(model.table, table, sizeof table);
        assert_int_equal(status, DITTO_ERR_LOST);
        schedule(c, "add_one", 1);
        assert_status(ditto_coordinator_join(c), DITTO_ERR_LOST);
    }
    assert_ok(ditto_coordinator_destroy(c));
    assert_ok(destroy_model());
    unregister_functions();
    for (uint32_t h = 1; h < HOSTS; h++)
        if (!both || h == victim)
            await_host(pid[h], h == victim);
    mirrors = false;
}

static void rule_12_17_a_mirrored_host_is_lost(void **state)
{
    (void)state;
    lose_mirrored(1, 0, false);
    lose_mirrored(1, 150, true);
    lose_mirrored(2, 20, true);
    lose_mirrored(2, 299, false);
}

/* Breaks the connection of this host with the host that listens on a port. */
static ditto_status break_connection(ditto_replica *self, void *port)
{
    (void)self;
    if (ditto_worker(self) != 2)
        return DITTO_OK;
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_in peer = { 0 };
        socklen_t bytes = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0 && peer.sin_family == AF_INET &&
            ntohs(peer.sin_port) == *(uint16_t *)port)
            shutdown(fd, SHUT_RDWR);
    }
    return DITTO_OK;
}

/* The connection between hosts 1 and 2 breaks, and both of them live. Host 2 resigns, so for all others it is
 * lost, and they go on with the shards of both. */
static void rule_12_17_a_connection_breaks(void **state)
{
    enum { TIMES = 300 };
    (void)state;
    char list[HOSTS * 24];
    ditto_coordinator *c;
    ditto_worker_info info = DITTO_WORKER_INFO_INIT;
    double table[ROWS], before[ROWS]; /* a function of host 2 may have been executed in part */
    mirrors = true;
    list_free_ports(HOSTS, list, sizeof list);
    uint16_t port = (uint16_t)atoi(strchr(strchr(strchr(list, ':') + 1, ':'), ':') + 1);
    assert_ok(ditto_function_register("break_connection", break_connection, &port));
    pid_t first = start_host(list, 1, DITTO_SWITCH_DEFAULT, false),
          second = start_host(list, 2, DITTO_SWITCH_DEFAULT, false);
    assert_ok(make_model(list, 0, DITTO_SWITCH_DEFAULT));
    assert_ok(register_functions());
    assert_ok(ditto_coordinator_create(model.strategy, NULL, &c));
    while (!info.is_retired) {
        schedule(c, "add_one", 1);
        schedule(c, "break_connection", HOSTS);
        assert_ok(ditto_coordinator_join(c));
        assert_ok(ditto_coordinator_worker_info(c, 2, &info));
    }
    assert_ok(ditto_variable_read(model.table, before, sizeof before));
    schedule(c, "add_one", TIMES);
    assert_ok(ditto_coordinator_join(c));
    assert_ok(ditto_variable_read(model.table, table, sizeof table));
    for (int i = 0; i < ROWS; i++)
        assert_true(table[i] == before[i] + TIMES);
    assert_ok(ditto_coordinator_destroy(c));
    assert_ok(destroy_model());
    unregister_functions();
    assert_ok(ditto_function_unregister("break_connection"));
    await_host(first, false);
    int code;
    assert_int_equal(waitpid(second, &code, 0), second);
    assert_int_equal(WIFEXITED(code) ? WEXITSTATUS(code) : -1, 4); /* ditto_serve has failed */
    mirrors = false;
}

/* A host without parameters is stopped while it executes a function. Another one executes it again. */
static void rule_12_16_a_host_is_stopped(void **state)
{
    enum { TIMES = 100 };
    (void)state;
    char list[2 * 24];
    ditto_coordinator *c;
    ditto_worker_info info = DITTO_WORKER_INFO_INIT;
    double table[ROWS];
    run_timeout_ms = 1000;
    list_free_ports(2, list, sizeof list);
    pid_t other = start_host(list, 1, DITTO_SWITCH_OFF, false);
    assert_ok(make_model(list, 0, DITTO_SWITCH_DEFAULT));
    assert_ok(register_functions());
    assert_ok(ditto_coordinator_create(model.strategy, NULL, &c));
    schedule(c, "add_one", TIMES);
    assert_int_equal(kill(other, SIGSTOP), 0);
    while (!info.is_retired) { /* its worker gets a function, which does not end */
        schedule(c, "add_one", 1);
        assert_ok(ditto_coordinator_join(c));
        assert_ok(ditto_coordinator_worker_info(c, 1, &info));
    }
    assert_ok(ditto_variable_read(model.table, table, sizeof table));
    for (int i = 0; i < ROWS; i++)
        assert_true(table[i] >= TIMES + 1);
    assert_int_equal(kill(other, SIGCONT), 0);
    assert_ok(ditto_coordinator_destroy(c));
    assert_ok(destroy_model());
    unregister_functions();
    await_host(other, false);
    run_timeout_ms = 0;
}

/* A host lacks the name of a function. The next functions work. */
static void rule_12_15_a_name_is_missing(void **state)
{
    (void)state;
    char list[2 * 24];
    ditto_coordinator *c;
    ditto_status status = DITTO_OK;
    list_free_ports(2, list, sizeof list);
    pid_t other = start_host(list, 1, DITTO_SWITCH_DEFAULT, false);
    assert_ok(make_model(list, 0, DITTO_SWITCH_DEFAULT));
    assert_ok(register_functions());
    assert_ok(ditto_function_register("only_here", add_one, NULL));
    assert_ok(ditto_coordinator_create(model.strategy, NULL, &c));
    while (status == DITTO_OK) {
        assert_ok(ditto_coordinator_schedule(c, "only_here", NULL, NULL, NULL));
        status = ditto_coordinator_join(c);
    }
    assert_int_equal(status, DITTO_ERR_NOT_FOUND);
    assert_non_null(strstr(ditto_last_error()->message, "host 1"));
    assert_non_null(strstr(ditto_last_error()->message, "only_here"));
    schedule(c, "add_one", 10);
    assert_ok(ditto_coordinator_join(c));
    assert_ok(ditto_coordinator_destroy(c));
    assert_ok(destroy_model());
    assert_ok(ditto_function_unregister("only_here"));
    unregister_functions();
    await_host(other, false);
}

/* A host with parameters is killed. Its shards are lost to all. A new cluster of two hosts goes on from the
 * last checkpoint. */
static void rule_12_16_parameters_are_lost_and_restored(void **state)
{
    (void)state;
    char list[HOSTS * 24], again[HOSTS * 24];
    ditto_coordinator *c;
    ditto_variable *iterations;
    double table[ROWS], after[ROWS];
    int64_t steps = 0;
    list_free_ports(HOSTS, list, sizeof list);
    list_free_ports(2, again, sizeof again);
    assert_non_null(mkdtemp(scratch_name(folder, "lost-hosts")));
    snprintf(path, sizeof path, "%s/model", folder);
    pid_t first = start_host(list, 1, DITTO_SWITCH_DEFAULT, false),
          second = start_host(list, 2, DITTO_SWITCH_DEFAULT, false),
          later = start_host(again, 1, DITTO_SWITCH_DEFAULT, true);
    assert_ok(make_model(list, 0, DITTO_SWITCH_DEFAULT));
    assert_ok(register_functions());
    assert_ok(ditto_coordinator_create(model.strategy, NULL, &c));
    schedule(c, "take_step", 50);
    assert_ok(ditto_checkpoint_save(model.strategy, path, NULL)); /* while functions are executed */
    schedule(c, "take_step", 50);
    assert_ok(ditto_coordinator_join(c));
    assert_ok(ditto_checkpoint_save(model.strategy, path, NULL));
    assert_ok(ditto_variable_read(model.table, table, sizeof table));

    kill(first, SIGKILL);
    await_host(first, true);
    schedule(c, "take_step", 1);
    assert_status(ditto_coordinator_join(c), DITTO_ERR_LOST);
    assert_status(ditto_variable_read(model.table, after, sizeof after), DITTO_ERR_LOST);
    assert_non_null(strstr(ditto_last_error()->message, "host 1"));
    assert_status(ditto_checkpoint_save(model.strategy, path, NULL), DITTO_ERR_LOST); /* the file stays */
    assert_ok(ditto_coordinator_destroy(c));
    assert_ok(destroy_model());
    await_host(second, false);

    assert_ok(make_model(again, 0, DITTO_SWITCH_DEFAULT));
    assert_ok(ditto_checkpoint_restore(model.strategy, path, NULL, NULL));
    assert_ok(ditto_coordinator_create(model.strategy, NULL, &c));
    assert_ok(ditto_variable_read(model.table, after, sizeof after));
    assert_memory_equal(table, after, sizeof table);
    schedule(c, "take_step", 1);
    assert_ok(ditto_coordinator_join(c));
    assert_ok(ditto_variable_read(model.table, after, sizeof after));
    for (int i = 0; i < ROWS; i++) /* the momentum, of about 2, was restored too */
        assert_true(after[i] > table[i] + 1.9 && after[i] < table[i] + 2.1);
    assert_ok(ditto_optimizer_iterations(model.optimizer, &iterations));
    assert_ok(ditto_variable_read(iterations, &steps, sizeof steps));
    assert_int_equal(steps, 101);
    assert_ok(ditto_checkpoint_restore(model.strategy, path, NULL,
                                       NULL)); /* this host restores the shards of both */
    assert_ok(ditto_variable_read(model.table, after, sizeof after));
    assert_memory_equal(table, after, sizeof table);
    assert_ok(ditto_coordinator_destroy(c));
    assert_ok(destroy_model());
    unregister_functions();
    await_host(later, false);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { /* processes are started before there are threads */
                                        cmocka_unit_test(rule_12_16_a_host_without_parameters_is_lost),
                                        cmocka_unit_test(rule_12_17_a_mirrored_host_is_lost),
                                        cmocka_unit_test(rule_12_17_a_connection_breaks),
                                        cmocka_unit_test(rule_12_16_a_host_is_stopped),
                                        cmocka_unit_test(rule_12_15_a_name_is_missing),
                                        cmocka_unit_test(rule_12_16_parameters_are_lost_and_restored)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
