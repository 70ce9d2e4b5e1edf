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
    on_hosts_that_take_leave(hosts, play_host, &job);
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
    play(8, (struct job){ 8, 1, use_all_workers, NULL });
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

/* -- what is sent -- */

/* A function that keeps its worker until the test lets it go, and the number of that worker. */
static _Atomic uint32_t kept_worker;
static _Atomic bool lets_go;

static ditto_status keep_worker(ditto_replica *self, void *user)
{
    (void)user;
    atomic_store(&kept_worker, ditto_worker(self));
    while (!atomic_load(&lets_go))
        sleep_ms(1);
    return DITTO_OK;
}

/* Keeps worker 0 busy, so that other hosts execute all functions. */
static ditto_status keep_worker_0(ditto_coordinator *c)
{
    do {
        atomic_store(&lets_go, true);
        DITTO_TRY(ditto_coordinator_join(c));
        atomic_store(&lets_go, false);
        atomic_store(&kept_worker, UINT32_MAX);
        DITTO_TRY(ditto_coordinator_schedule(c, "keep_worker", NULL, NULL, NULL));
        while (atomic_load(&kept_worker) == UINT32_MAX)
            sleep_ms(1);
    } while (atomic_load(&kept_worker) != 0);
    return DITTO_OK;
}

enum { NOTHING, NEST, STATUS, ECHO, SLICES };

static const float six[6] = { 1, 2, 3, 4, 5, 6 };

static ditto_status return_nest(ditto_replica *self)
{
    ditto_tensor matrix = {
        .data = (void *)(uintptr_t)six, .dtype = DITTO_F32, .rank = 2, .shape = { 2, 3 }
    };
    ditto_tensor empty = { .dtype = DITTO_I64, .rank = 1, .shape = { 0 } };
    DITTO_TRY(ditto_return(self, "matrix", &matrix));
    DITTO_TRY(ditto_return(self, "empty", &empty));
    return ditto_return_f64(self, "worker", ditto_worker(self));
}

static ditto_status return_slices(ditto_replica *self)
{
    int64_t rows[2] = { 0, 2 };
    ditto_slices slices = {
        .values = (void *)(uintptr_t)six, .indices = rows, .dtype = DITTO_F32, .rows = 2, .row_count = 3
    };
    return ditto_return_slices(self, NULL, &slices, 3);
}

/* Returns what its argument "what" tells. */
static ditto_status return_as_told(ditto_replica *self, void *user)
{
    ditto_tensor what, bytes;
    (void)user;
    DITTO_TRY(ditto_argument(self, "what", &what));
    switch ((int)*(const double *)what.data) {
    case NEST:
        return return_nest(self);
    case STATUS:
        return DITTO_END_OF_INPUT;
    case ECHO:
        DITTO_TRY(ditto_argument(self, "bytes", &bytes));
        return ditto_return(self, NULL, &bytes);
    case SLICES:
        return return_slices(self);
    default:
        return DITTO_OK;
    }
}

static ditto_status schedule_told(ditto_strategy *strategy, ditto_coordinator *c, int told,
                                  const ditto_tensor *bytes, ditto_remote **out)
{
    double number = told;
    ditto_tensor what = { .data = &number, .dtype = DITTO_F64 };
    ditto_value *member[2], *nest;
    DITTO_TRY(ditto_strategy_value(strategy, &what, &member[0]));
    DITTO_TRY(ditto_strategy_value(strategy, bytes, &member[1]));
    DITTO_TRY(ditto_strategy_nest(strategy, (const char *[]){ "what", "bytes" },
                                  (const ditto_value *[]){ member[0], member[1] }, 2, &nest));
    ditto_status status = ditto_coordinator_schedule(c, "return_as_told", nest, NULL, out);
    DITTO_TRY(ditto_value_destroy(nest));
    DITTO_TRY(ditto_value_destroy(member[0]));
    DITTO_TRY(ditto_value_destroy(member[1]));
    return status;
}

static ditto_status check_nest(struct test_host *host, ditto_remote *remote)
{
    ditto_value *nest;
    const ditto_value *member;
    ditto_tensor tensor;
    double worker = 0;
    DITTO_TRY(ditto_remote_fetch(remote, &nest));
    DITTO_TRY(ditto_value_member(nest, "matrix", &member));
    DITTO_TRY(ditto_value_tensor(member, &tensor));
    CHECK(host, tensor.rank == 2 && tensor.shape[0] == 2 && tensor.shape[1] == 3 &&
                    memcmp(tensor.data, six, sizeof six) == 0);
    DITTO_TRY(ditto_value_member(nest, "empty", &member));
    DITTO_TRY(ditto_value_tensor(member, &tensor));
    CHECK(host, tensor.dtype == DITTO_I64 && tensor.rank == 1 && tensor.shape[0] == 0);
    DITTO_TRY(ditto_value_member(nest, "worker", &member));
    DITTO_TRY(ditto_value_f64(member, &worker));
    CHECK(host, worker == 1);
    return ditto_value_destroy(nest);
}

static ditto_status check_echo(struct test_host *host, ditto_strategy *strategy, ditto_coordinator *c,
                               uint64_t count)
{
    uint8_t *data = malloc(count + 1);
    ditto_tensor bytes = { .data = data, .dtype = DITTO_U8, .rank = 1, .shape = { count } }, back;
    ditto_remote *remote;
    ditto_value *value;
    for (uint64_t i = 0; i < count; i++)
        data[i] = (uint8_t)(i * 7 + i / 251);
    DITTO_TRY(schedule_told(strategy, c, ECHO, &bytes, &remote));
    DITTO_TRY(ditto_remote_fetch(remote, &value));
    DITTO_TRY(ditto_value_tensor(value, &back));
    CHECK(host, back.rank == 1 && back.shape[0] == count && memcmp(back.data, data, count) == 0);
    free(data);
    DITTO_TRY(ditto_value_destroy(value));
    return ditto_remote_destroy(remote);
}

static ditto_status send_everything(struct test_host *host, ditto_strategy *strategy, ditto_coordinator *c)
{
    ditto_tensor none = { .dtype = DITTO_U8, .rank = 1, .shape = { 0 } };
    ditto_remote *remote;
    ditto_value *value;
    DITTO_TRY(keep_worker_0(c));
    DITTO_TRY(schedule_told(strategy, c, NOTHING, &none, &remote));
    CHECK(host, ditto_remote_fetch(remote, &value) == DITTO_OK && value == NULL);
    DITTO_TRY(ditto_remote_destroy(remote));
    DITTO_TRY(schedule_told(strategy, c, NEST, &none, &remote));
    DITTO_TRY(check_nest(host, remote));
    DITTO_TRY(ditto_remote_destroy(remote));
    DITTO_TRY(schedule_told(strategy, c, STATUS, &none, &remote));
    CHECK(host, ditto_remote_fetch(remote, &value) == DITTO_END_OF_INPUT && value == NULL);
    DITTO_TRY(ditto_remote_destroy(remote));
    DITTO_TRY(check_echo(host, strategy, c, 0));
    DITTO_TRY(check_echo(host, strategy, c, UINT64_C(1) << 20));
    DITTO_TRY(check_echo(host, strategy, c, UINT64_C(5) << 20));
    /* Slices cannot be results, but results that nobody wants are not looked at. */
    DITTO_TRY(schedule_told(strategy, c, SLICES, &none, NULL));
    DITTO_TRY(schedule_told(strategy, c, SLICES, &none, &remote));
    DITTO_TRY(expect(host, ditto_remote_fetch(remote, &value), DITTO_ERR_INVALID, "host 1 (node1)"));
    DITTO_TRY(ditto_remote_destroy(remote));
    atomic_store(&lets_go, true);
    return expect(host, ditto_coordinator_join(c), DITTO_ERR_INVALID, "\"return_as_told\" on worker 1") ==
                   DITTO_OK
               ? ditto_coordinator_join(c)
               : DITTO_ERR_USER;
}

static void rule_12_15_what_is_sent(void **state)
{
    (void)state;
    assert_ok(ditto_function_register("keep_worker", keep_worker, NULL));
    assert_ok(ditto_function_register("return_as_told", return_as_told, NULL));
    play(2, (struct job){ 1, 1, send_everything, NULL });
    assert_ok(ditto_function_unregister("keep_worker"));
    assert_ok(ditto_function_unregister("return_as_told"));
}

/* -- reports while functions are sent -- */

static ditto_status observe(struct test_host *host, ditto_strategy *strategy, ditto_coordinator *c)
{
    static char text[16384];
    for (int i = 0; i < 30; i++) {
        ditto_coordinator_counters counters = DITTO_COORDINATOR_COUNTERS_INIT;
        for (int k = 0; k < 20; k++)
            DITTO_TRY(ditto_coordinator_schedule(c, "give_worker", NULL, NULL, NULL));
        DITTO_TRY(ditto_strategy_describe(strategy, text, sizeof text, NULL));
        CHECK(host, strstr(ditto_strategy_diagnose(strategy), "worker 5: ") != NULL);
        DITTO_TRY(ditto_coordinator_stats(c, &counters));
        CHECK(host, counters.num_workers == 6 && counters.num_retired == 0);
    }
    return ditto_coordinator_join(c);
}

static void rule_12_15_reports_while_functions_are_sent(void **state)
{
    (void)state;
    assert_ok(ditto_function_register("give_worker", give_worker, NULL));
    atomic_store(&awaited, 0);
    play(3, (struct job){ 2, 1, observe, NULL });
    assert_ok(ditto_function_unregister("give_worker"));
}

/* -- late functions -- */

static _Atomic bool is_late, is_released, has_ended;
static ditto_shared_dataset *shared_dataset;

/* On another host it is late, and on host 0 it waits until it is. */
static ditto_status be_late_elsewhere(ditto_replica *self, void *user)
{
    bool is_elsewhere = ditto_worker(self) != 0;
    (void)user;
    if (is_elsewhere)
        atomic_store(&is_late, true);
    while (!atomic_load(is_elsewhere ? &is_released : &is_late))
        sleep_ms(1);
    if (is_elsewhere)
        atomic_store(&has_ended, true);
    return ditto_return_f64(self, NULL, ditto_worker(self));
}

/* The late worker has no part in the shared dataset of host 0. */
static ditto_status check_late(struct test_host *host, ditto_coordinator *c)
{
    ditto_remote *remote[2];
    ditto_worker_info info = DITTO_WORKER_INFO_INIT;
    for (int i = 0; i < 2; i++)
        DITTO_TRY(ditto_coordinator_schedule(c, "be_late_elsewhere", NULL, NULL, &remote[i]));
    DITTO_TRY(ditto_coordinator_join(c));
    for (int i = 0; i < 2; i++) {
        double worker = 1;
        DITTO_TRY(number_of(remote[i], &worker));
        CHECK(host, worker == 0);
    }
    DITTO_TRY(ditto_coordinator_worker_info(c, 1, &info));
    CHECK(host, info.is_retired);
    return DITTO_OK;
}

/* The function ends late, but before the coordinator does. */
static ditto_status let_one_be_late(struct test_host *host, ditto_strategy *strategy, ditto_coordinator *c)
{
    ditto_dataset *rows, *dataset;
    (void)strategy;
    DITTO_TRY(ditto_dataset_from_range(0, 100, 1, &rows));
    DITTO_TRY(ditto_dataset_batch(rows, 10, 0, &dataset));
    DITTO_TRY(ditto_coordinator_shared_dataset(c, dataset, NULL, &shared_dataset));
    ditto_status status = check_late(host, c);
    atomic_store(&is_released, true);
    while (atomic_load(&is_late) && !atomic_load(&has_ended))
        sleep_ms(1);
    DITTO_TRY(ditto_dataset_destroy(dataset));
    DITTO_TRY(ditto_dataset_destroy(rows));
    return status;
}

static void rule_12_15_a_function_is_late(void **state)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    (void)state;
    options.run_timeout_ms = SANITIZED ? 1000 : 200;
    given_options = &options;
    assert_ok(ditto_function_register("be_late_elsewhere", be_late_elsewhere, NULL));
    play(2, (struct job){ 1, 1, let_one_be_late, NULL });
    assert_ok(ditto_shared_dataset_destroy(shared_dataset));
    given_options = NULL;
    assert_ok(ditto_function_unregister("be_late_elsewhere"));
}

/* -- calls that cannot be -- */

static ditto_strategy *strategies[2]; /* [hosts] */

/* What the coordinator of ditto_serve does not do. */
static ditto_status misuse_in_prepare(ditto_coordinator *coordinator, void *user)
{
    struct test_host *host = user;
    ditto_status context = DITTO_ERR_CONTEXT;
    ditto_dataset *dataset;
    ditto_shared_dataset *shared;
    int done;
    if (host->host == 0)
        return DITTO_OK;
    DITTO_TRY(ditto_dataset_from_range(0, 10, 1, &dataset));
    DITTO_TRY(expect(host, ditto_coordinator_schedule(coordinator, "give_worker", NULL, NULL, NULL), context,
                     "host 0 schedules"));
    DITTO_TRY(expect(host, ditto_coordinator_join(coordinator), context, "host 0 schedules"));
    DITTO_TRY(expect(host, ditto_coordinator_done(coordinator, &done), context, "host 0 schedules"));
    DITTO_TRY(expect(host, ditto_coordinator_shared_dataset(coordinator, dataset, NULL, &shared), context,
                     "per-worker"));
    DITTO_TRY(expect(host, ditto_coordinator_destroy(coordinator), context, "ditto_serve destroys it"));
    DITTO_TRY(expect(host, ditto_serve(strategies[host->host], NULL, NULL), DITTO_ERR_BUSY, "coordinator"));
    return ditto_dataset_destroy(dataset);
}

static ditto_status fail_in_prepare(ditto_coordinator *coordinator, void *user)
{
    (void)coordinator, (void)user;
    return ditto_fail(NULL, 12, "nothing is prepared");
}

/* All hosts get the error of one, and can try again. */
static ditto_status prepare_wrongly(struct test_host *host)
{
    struct job job = { 1, 1, NULL, NULL };
    ditto_strategy *strategy;
    ditto_coordinator *coordinator;
    DITTO_TRY(make_workers(host, &job, &strategy));
    strategies[host->host] = strategy;
    for (int i = 0; i < 2; i++) {
        ditto_serve_fn prepare = host->host == 1 ? fail_in_prepare : NULL;
        ditto_status status = host->host == 0 ? ditto_coordinator_create(strategy, NULL, &coordinator)
                                              : ditto_serve(strategy, prepare, host);
        DITTO_TRY(expect(host, status, DITTO_ERR_USER, "nothing is prepared"));
    }
    if (host->host != 0) {
        DITTO_TRY(ditto_serve(strategy, misuse_in_prepare, host));
    } else {
        DITTO_TRY(ditto_coordinator_create(strategy, NULL, &coordinator));
        DITTO_TRY(ditto_coordinator_destroy(coordinator));
    }
    return ditto_strategy_destroy(strategy);
}

static void rule_12_15_what_cannot_be_prepared(void **state)
{
    (void)state;
    assert_ok(ditto_function_register("give_worker", give_worker, NULL));
    on_hosts_that_take_leave(2, prepare_wrongly, NULL);
    assert_ok(ditto_function_unregister("give_worker"));
}

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
    on_hosts_that_take_leave(2, misuse, NULL);
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

/* Of the processes that are begun next. */
static uint32_t workers_of_process = 1, run_timeout_ms, timeout_ms = TIMEOUT_MS;

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

/* On host 0 it returns when another host is lost, and elsewhere never. */
static _Atomic bool is_killed;

static ditto_status wait_for_a_loss(ditto_replica *self, void *user)
{
    (void)user;
    while (!atomic_load(&is_killed))
        sleep_ms(1);
    return ditto_return_f64(self, NULL, ditto_worker(self));
}

/* On another host it never returns. */
static ditto_status stay_elsewhere(ditto_replica *self, void *user)
{
    (void)user;
    while (ditto_worker(self) != 0)
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status begin_process(const char *list, uint32_t number, ditto_cluster **cluster,
                                  ditto_strategy **strategy)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    DITTO_TRY(make_process_cluster(list, number, cluster));
    options.cluster = *cluster;
    options.num_replicas = workers_of_process;
    options.timeout_ms = timeout_ms;
    options.run_timeout_ms = run_timeout_ms;
    DITTO_TRY(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, strategy));
    DITTO_TRY(ditto_function_register("wait_for_a_loss", wait_for_a_loss, NULL));
    DITTO_TRY(ditto_function_register("stay_elsewhere", stay_elsewhere, NULL));
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

static void unregister_functions(void)
{
    assert_ok(ditto_function_unregister("stay_elsewhere"));
    assert_ok(ditto_function_unregister("give_worker"));
    assert_ok(ditto_function_unregister("wait_for_a_loss"));
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
    unregister_functions();
}

/* A process that is host 1, and what this one has as host 0. */
struct two_hosts {
    pid_t pid;
    ditto_cluster *cluster;
    ditto_strategy *strategy;
    ditto_coordinator *c;
};

/* Host 0 has one worker. `expected` is what ditto_serve returns. */
static void begin_two_hosts(struct two_hosts *two, uint32_t workers_of_host_1, ditto_status expected)
{
    char list[2 * 24];
    list_free_ports(2, list, sizeof list);
    atomic_store(&is_killed, false);
    atomic_store(&awaited, 0);
    two->pid = fork();
    if (two->pid == 0) {
        workers_of_process = workers_of_host_1;
        _exit(serve_as(list, 1, expected));
    }
    assert_ok(begin_process(list, 0, &two->cluster, &two->strategy));
    assert_ok(ditto_coordinator_create(two->strategy, NULL, &two->c));
}

static void end_two_hosts(const struct two_hosts *two, ditto_status expected)
{
    assert_int_equal(ditto_coordinator_destroy(two->c), expected);
    assert_ok(ditto_strategy_destroy(two->strategy));
    assert_ok(ditto_cluster_destroy(two->cluster));
    unregister_functions();
}

static void kill_host_1(const struct two_hosts *two)
{
    int code;
    kill(two->pid, SIGKILL);
    assert_int_equal(waitpid(two->pid, &code, 0), two->pid);
    atomic_store(&is_killed, true);
}

/* The functions of a lost host may be given to its other workers, which does not count as an attempt. */
static void rule_12_15_a_host_with_many_workers_is_lost(void **state)
{
    (void)state;
    for (int trial = 0; trial < test_trials(5); trial++) {
        struct two_hosts two;
        ditto_remote *remote[12];
        int count = trial % 2 == 0 ? 4 : 12; /* some workers of host 1 are idle, or none */
        begin_two_hosts(&two, 8, DITTO_OK);
        for (int i = 0; i < count; i++)
            assert_ok(ditto_coordinator_schedule(two.c, "wait_for_a_loss", NULL, NULL, &remote[i]));
        sleep_ms(20);
        kill_host_1(&two);
        for (int i = 0; i < count; i++) {
            double worker = 1;
            assert_ok(number_of(remote[i], &worker));
            assert_true(worker == 0);
        }
        assert_ok(ditto_coordinator_join(two.c));
        end_two_hosts(&two, DITTO_OK);
    }
}

/* A host that is stopped is not lost. Its functions are late, and destroy does not wait for it for ever. */
static void rule_12_15_a_host_is_stopped(void **state)
{
    struct two_hosts two;
    ditto_remote *remote[2];
    (void)state;
    run_timeout_ms = SANITIZED ? 1000 : 300;
    timeout_ms = SANITIZED ? 5000 : 2000;
    begin_two_hosts(&two, 1, DITTO_OK);
    kill(two.pid, SIGSTOP);
    for (int i = 0; i < 2; i++)
        assert_ok(ditto_coordinator_schedule(two.c, "give_worker", NULL, NULL, &remote[i]));
    for (int i = 0; i < 2; i++) {
        double worker = 1;
        assert_ok(number_of(remote[i], &worker));
        assert_true(worker == 0);
    }
    end_two_hosts(&two, DITTO_ERR_TIMED_OUT);
    kill_host_1(&two);
    run_timeout_ms = 0;
    timeout_ms = TIMEOUT_MS;
}

/* The memory of a function that never returns on host 1 is not that of host 0. */
static void rule_12_15_a_function_never_returns(void **state)
{
    struct two_hosts two;
    ditto_worker_info info = DITTO_WORKER_INFO_INIT;
    int code;
    (void)state;
    run_timeout_ms = SANITIZED ? 1000 : 300;
    begin_two_hosts(&two, 1, DITTO_ERR_POISONED);
    while (!info.is_retired) {
        assert_ok(ditto_coordinator_schedule(two.c, "stay_elsewhere", NULL, NULL, NULL));
        assert_ok(ditto_coordinator_join(two.c));
        assert_ok(ditto_coordinator_worker_info(two.c, 1, &info));
    }
    end_two_hosts(&two, DITTO_OK);
    assert_int_equal(waitpid(two.pid, &code, 0), two.pid);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
    run_timeout_ms = 0;
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
        cmocka_unit_test(rule_12_15_a_host_with_many_workers_is_lost),
        cmocka_unit_test(rule_12_15_a_host_is_stopped),
        cmocka_unit_test(rule_12_15_a_function_never_returns),
        cmocka_unit_test(rule_12_15_host_0_is_lost),
        cmocka_unit_test(rule_12_15_workers_of_all_hosts),
        cmocka_unit_test(rule_12_15_arguments_and_results),
        cmocka_unit_test(rule_12_15_errors_of_functions),
        cmocka_unit_test(rule_12_15_values_of_workers),
        cmocka_unit_test(rule_12_15_calls_that_cannot_be),
        cmocka_unit_test(rule_12_15_what_is_sent),
        cmocka_unit_test(rule_12_15_reports_while_functions_are_sent),
        cmocka_unit_test(rule_12_15_a_function_is_late),
        cmocka_unit_test(rule_12_15_what_cannot_be_prepared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
