/* tests/coordinator/test_host_parameters.c - docs/semantics.md, "Parameter servers": parameters of several
 * hosts (rule 12.16). Each host is a thread. What happens if a host is lost is in test_lost_hosts.c. */
#include "support/hosts.h"

#include <dirent.h>
#include <ditto.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_HOSTS 8
#define ROWS       23
#define WIDTH      3

/* What a host has. Functions find that of their own host by the number of their worker. */
static struct model {
    ditto_strategy *strategy;
    ditto_variable *table, *bias;
    ditto_optimizer *optimizer;
    struct test_host *host;
} model[MOST_HOSTS];

/* What all hosts do. */
struct job {
    uint32_t replicas, each; /* of a host, and of a worker */
    ditto_concurrency concurrency;
    size_t shards;
    const ditto_optimizer_options *optimizer; /* or NULL */
    bool spares_host_1;                       /* which keeps no parameters */
    bool mirrors;                             /* each shard is on two hosts */
    bool sets_pu_aside;                       /* the last one of the process, for the server */
    ditto_status (*work)(struct model *m, ditto_coordinator *coordinator);
    ditto_status (*make_more)(const struct model *m); /* or NULL */
    ditto_status (*destroy_more)(const struct model *m);
};
static struct job job;

static struct model *model_of(ditto_replica *self)
{
    return &model[ditto_worker(self) / (job.replicas / job.each)];
}

/* -- making -- */

static ditto_status initialize(const ditto_tensor *shard, size_t first_row, void *user)
{
    double *value = shard->data;
    (void)user;
    for (size_t i = 0; i < shard->shape[0] * WIDTH; i++)
        value[i] = (double)(first_row * WIDTH + i);
    return DITTO_OK;
}

static ditto_status make_variables(struct model *m)
{
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_tensor table = { .dtype = DITTO_F64, .rank = 2, .shape = { ROWS, WIDTH } },
                 bias = { .dtype = DITTO_F64, .rank = 1, .shape = { WIDTH } };
    options.name = "bias";
    DITTO_TRY(ditto_variable_create(m->strategy, &bias, &options, &m->bias));
    options.name = "table";
    options.initialize = initialize;
    options.concurrency = job.concurrency;
    options.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = job.shards };
    DITTO_TRY(ditto_variable_create(m->strategy, &table, &options, &m->table));
    if (job.optimizer == NULL)
        return DITTO_OK;
    ditto_variable *both[] = { m->table, m->bias };
    return ditto_optimizer_create(both, 2, job.optimizer, &m->optimizer);
}

static ditto_status destroy_model(struct model *m)
{
    DITTO_TRY(ditto_optimizer_destroy(m->optimizer));
    DITTO_TRY(ditto_variable_destroy(m->table));
    DITTO_TRY(ditto_variable_destroy(m->bias));
    return ditto_strategy_destroy(m->strategy);
}

/* Finds the first and the last PU that this process may use. */
static void find_pus(uint32_t pus[2])
{
    cpu_set_t set;
    pus[0] = pus[1] = 0;
    CPU_ZERO(&set);
    (void)!sched_getaffinity(getpid(), sizeof set, &set);
    for (uint32_t pu = CPU_SETSIZE; pu-- > 0;)
        if (CPU_ISSET(pu, &set))
            pus[0] = pu;
    for (uint32_t pu = 0; pu < CPU_SETSIZE; pu++)
        if (CPU_ISSET(pu, &set))
            pus[1] = pu;
}

static ditto_status play_host(struct test_host *host)
{
    struct model *m = &model[host->host];
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_placement_options placement = DITTO_PLACEMENT_OPTIONS_INIT;
    uint32_t pus[2];
    ditto_coordinator *coordinator;
    *m = (struct model){ .host = host };
    find_pus(pus);
    placement.pus = pus;
    placement.num_pus = 1;
    options.num_replicas = job.replicas;
    options.replicas_per_worker = job.each;
    options.cluster = host->cluster;
    options.mirrors_parameters = job.mirrors ? DITTO_SWITCH_ON : DITTO_SWITCH_DEFAULT;
    if (job.sets_pu_aside) { /* the replicas are on the first one */
        options.placement_options = &placement;
        options.num_replicas = 0;
        options.has_server_pu = 1;
        options.server_pu = pus[1];
    }
    options.keeps_parameters = job.spares_host_1 && host->host == 1 ? DITTO_SWITCH_OFF : DITTO_SWITCH_DEFAULT;
    DITTO_TRY(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &m->strategy));
    DITTO_TRY(make_variables(m));
    if (job.make_more != NULL)
        DITTO_TRY(job.make_more(m));
    if (host->host != 0) {
        DITTO_TRY(ditto_serve(m->strategy, NULL, NULL));
        if (job.destroy_more != NULL)
            DITTO_TRY(job.destroy_more(m));
        return destroy_model(m);
    }
    DITTO_TRY(ditto_coordinator_create(m->strategy, NULL, &coordinator));
    ditto_status status = job.work(m, coordinator);
    DITTO_TRY(ditto_coordinator_destroy(coordinator)); /* also after a failure, because the others serve */
    if (job.destroy_more != NULL)
        DITTO_TRY(job.destroy_more(m));
    DITTO_TRY(destroy_model(m));
    return status;
}

static void play(uint32_t hosts, struct job what)
{
    job = what;
    on_hosts_with_life_line(hosts, play_host, NULL);
}

static ditto_status schedule(ditto_coordinator *c, const char *name, int times)
{
    for (int i = 0; i < times; i++)
        DITTO_TRY(ditto_coordinator_schedule(c, name, NULL, NULL, NULL));
    return ditto_coordinator_join(c);
}

/* -- reading and writing -- */

static ditto_status add_everywhere(ditto_replica *self, void *user)
{
    const struct model *m = model_of(self);
    double ones[ROWS * WIDTH];
    (void)user;
    for (int i = 0; i < ROWS * WIDTH; i++)
        ones[i] = 1;
    DITTO_TRY(ditto_assign_add(self, m->table, ones));
    return ditto_assign_add(self, m->bias, ones);
}

/* Each row is changed by whole numbers, so the elements of a shard of one version differ by whole rows. */
static ditto_status check_pull(ditto_replica *self, void *user)
{
    const struct model *m = model_of(self);
    double table[ROWS * WIDTH], rows[4 * WIDTH];
    const int64_t row[4] = { ROWS - 1, 0, 7, 7 };
    uint64_t versions[ROWS];
    ditto_pull_options options = DITTO_PULL_OPTIONS_INIT;
    (void)user;
    options.versions = versions;
    DITTO_TRY(ditto_pull(self, m->table, &options, table));
    for (size_t s = 0; s < ditto_variable_num_shards(m->table) && job.concurrency == DITTO_CONCURRENCY_LOCKED;
         s++) {
        size_t first, count;
        DITTO_TRY(ditto_variable_shard(m->table, s, &first, &count));
        for (size_t i = first * WIDTH; i < (first + count) * WIDTH; i++)
            CHECK(m->host, table[i] == (double)(i + versions[s]));
    }
    DITTO_TRY(ditto_pull_rows(self, m->table, row, 4, &options, rows));
    for (int k = 0; k < 4; k++) /* rows only grow */
        CHECK(m->host, rows[k * WIDTH + 1] >= table[row[k] * WIDTH + 1]);
    return ditto_lookup(self, m->table, row, 4, rows);
}

static ditto_status read_and_write(struct model *m, ditto_coordinator *c)
{
    enum { TIMES = 60 };
    double table[ROWS * WIDTH], bias[WIDTH], expected[ROWS * WIDTH];
    uint64_t versions[ROWS] = { 0 };
    DITTO_TRY(ditto_variable_read(m->table, table, sizeof table));
    for (int i = 0; i < ROWS * WIDTH; i++)
        CHECK(m->host, table[i] == i);
    for (int i = 0; i < TIMES; i++) {
        DITTO_TRY(ditto_coordinator_schedule(c, "add_everywhere", NULL, NULL, NULL));
        DITTO_TRY(ditto_coordinator_schedule(c, "check_pull", NULL, NULL, NULL));
    }
    DITTO_TRY(ditto_coordinator_join(c));
    DITTO_TRY(ditto_variable_read(m->table, table, sizeof table));
    DITTO_TRY(ditto_variable_read(m->bias, bias, sizeof bias));
    bool loses = job.concurrency == DITTO_CONCURRENCY_HOGWILD; /* updates, if they meet */
    for (int i = 0; i < ROWS * WIDTH; i++)
        CHECK(m->host,
              loses ? table[i] <= i + TIMES * (double)job.each : table[i] == i + TIMES * (double)job.each);
    for (int i = 0; i < WIDTH; i++)
        CHECK(m->host, bias[i] == TIMES * (double)job.each);
    DITTO_TRY(ditto_parameter_versions(m->table, versions, ROWS));
    for (size_t s = 0; s < ditto_variable_num_shards(m->table); s++)
        CHECK(m->host, versions[s] == TIMES * job.each);
    CHECK(m->host, ditto_variable_generation(m->bias) == TIMES * job.each);
    for (int i = 0; i < ROWS * WIDTH; i++)
        expected[i] = 2 * i;
    DITTO_TRY(ditto_variable_assign(m->table, expected, sizeof expected));
    DITTO_TRY(ditto_variable_read(m->table, table, sizeof table));
    CHECK(m->host, memcmp(table, expected, sizeof table) == 0);
    return DITTO_OK;
}

static void rule_12_16_reads_and_writes(void **state)
{
    (void)state;
    static const ditto_concurrency kinds[] = { DITTO_CONCURRENCY_LOCKED, DITTO_CONCURRENCY_HOGWILD,
                                               DITTO_CONCURRENCY_FREE_READS };
    assert_ok(ditto_function_register("add_everywhere", add_everywhere, NULL));
    assert_ok(ditto_function_register("check_pull", check_pull, NULL));
    for (int k = 0; k < 3; k++) {
        play(2, (struct job){ 1, 1, kinds[k], 1, .work = read_and_write });
        play(2, (struct job){ 2, 1, kinds[k], 5, .work = read_and_write });
        play(3, (struct job){ 2, 2, kinds[k], ROWS, .work = read_and_write });
    }
    play(3, (struct job){ 1, 1, DITTO_CONCURRENCY_LOCKED, 4, .spares_host_1 = true, .work = read_and_write });
    play(8, (struct job){ 8, 1, DITTO_CONCURRENCY_LOCKED, 16, .work = read_and_write });
    for (int k = 0; k < 3; k++) {
        play(2, (struct job){ 2, 1, kinds[k], 5, .mirrors = true, .work = read_and_write });
        play(3, (struct job){ 2, 2, kinds[k], ROWS, .mirrors = true, .work = read_and_write });
    }
    play(3, (struct job){ 1, 1, DITTO_CONCURRENCY_LOCKED, 4, .spares_host_1 = true, .mirrors = true,
                          .work = read_and_write });
    assert_ok(ditto_function_unregister("check_pull"));
    assert_ok(ditto_function_unregister("add_everywhere"));
}

/* -- a PU for the server -- */

/* Counts the threads that drive the network, and checks that they are on the PU that is set aside. */
static ditto_status check_postmen(struct model *m, ditto_coordinator *c)
{
    uint32_t pus[2], found = 0;
    DIR *threads = opendir("/proc/self/task");
    CHECK(m->host, threads != NULL);
    find_pus(pus);
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        char path[300], name[32] = "";
        cpu_set_t set;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *comm = fopen(path, "r");
        if (comm == NULL)
            continue; /* the thread has ended */
        (void)!fgets(name, sizeof name, comm);
        fclose(comm);
        if (strcmp(name, "ditto-post\n") != 0)
            continue;
        CPU_ZERO(&set);
        CHECK(m->host, sched_getaffinity((pid_t)atoi(entry->d_name), sizeof set, &set) == 0);
        CHECK(m->host, CPU_COUNT(&set) == 1 && CPU_ISSET(pus[1], &set));
        found++;
    }
    closedir(threads);
    CHECK(m->host, found == m->host->hosts);
    return read_and_write(m, c);
}

/* Calls that cannot be. */
static ditto_status misuse_server_pu(struct test_host *host)
{
    ditto_strategy *strategy;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_placement_options placement = DITTO_PLACEMENT_OPTIONS_INIT;
    uint32_t pus[2];
    find_pus(pus);
    placement.pus = pus;
    placement.num_pus = 1;
    options.cluster = host->cluster;
    options.placement_options = &placement;
    options.has_server_pu = 1;
    options.server_pu = pus[0];
    DITTO_TRY(expect(host, ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy),
                     DITTO_ERR_INVALID, "which replica 0 of this host uses"));
    options.server_pu = UINT32_MAX;
    DITTO_TRY(expect(host, ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy),
                     DITTO_ERR_RANGE, "not a PU that this process may use"));
    options.has_server_pu = 0;
    return expect(host, ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy), DITTO_ERR_INVALID,
                  "has_server_pu is 0");
}

static void rule_12_16_a_server_has_a_pu(void **state)
{
    (void)state;
    uint32_t pus[2];
    ditto_strategy *strategy;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    options.has_server_pu = 1;
    assert_status(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy), DITTO_ERR_INVALID);
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy), DITTO_ERR_INVALID);
    on_hosts_with_life_line(2, misuse_server_pu, NULL);
    find_pus(pus);
    if (pus[0] == pus[1])
        skip();
    assert_ok(ditto_function_register("add_everywhere", add_everywhere, NULL));
    assert_ok(ditto_function_register("check_pull", check_pull, NULL));
    play(2, (struct job){ 1, 1, DITTO_CONCURRENCY_LOCKED, 4, .sets_pu_aside = true, .work = check_postmen });
    assert_ok(ditto_function_unregister("check_pull"));
    assert_ok(ditto_function_unregister("add_everywhere"));
}

/* -- rows -- */

static ditto_status scatter_rows(ditto_replica *self, void *user)
{
    const struct model *m = model_of(self);
    double values[5 * WIDTH];
    int64_t row[5] = { 3, ROWS - 1, 3, 11, 0 };
    ditto_slices slices = { row, values, 5, WIDTH, DITTO_F64 };
    (void)user;
    for (int i = 0; i < 5 * WIDTH; i++)
        values[i] = i / WIDTH + 1;
    DITTO_TRY(ditto_scatter(self, m->table, DITTO_SCATTER_ADD, &slices));
    row[4] = ROWS;
    CHECK(m->host, ditto_scatter(self, m->table, DITTO_SCATTER_ADD, &slices) == DITTO_ERR_RANGE);
    return DITTO_OK;
}

static ditto_status use_rows(struct model *m, ditto_coordinator *c)
{
    enum { TIMES = 40 };
    double rows[5 * WIDTH], last[WIDTH] = { -1, -2, -3 };
    const int64_t row[5] = { 0, 3, 11, ROWS - 1, 1 }, changed[1] = { 11 };
    const int64_t sum[5] = { 5, 4, 4, 2, 0 };
    ditto_slices slices = { (int64_t *)(uintptr_t)changed, last, 1, WIDTH, DITTO_F64 };
    DITTO_TRY(schedule(c, "scatter_rows", TIMES));
    DITTO_TRY(ditto_variable_lookup(m->table, row, 5, rows, sizeof rows));
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < WIDTH; i++)
            CHECK(m->host, rows[k * WIDTH + i] == (double)(row[k] * WIDTH + i + TIMES * sum[k]));
    /* The last value of a row counts, in the order of the call. */
    DITTO_TRY(ditto_variable_scatter(m->table, DITTO_SCATTER_UPDATE, &slices));
    DITTO_TRY(ditto_variable_lookup(m->table, changed, 1, rows, sizeof last));
    CHECK(m->host, memcmp(rows, last, sizeof last) == 0);
    return DITTO_OK;
}

static void rule_12_16_rows(void **state)
{
    (void)state;
    assert_ok(ditto_function_register("scatter_rows", scatter_rows, NULL));
    play(2, (struct job){ 1, 1, DITTO_CONCURRENCY_LOCKED, 1, .work = use_rows });
    play(3, (struct job){ 1, 1, DITTO_CONCURRENCY_LOCKED, 7, .work = use_rows });
    play(3, (struct job){ 2, 1, DITTO_CONCURRENCY_FREE_READS, ROWS, .work = use_rows });
    play(3, (struct job){ 2, 1, DITTO_CONCURRENCY_LOCKED, 7, .mirrors = true, .work = use_rows });
    assert_ok(ditto_function_unregister("scatter_rows"));
}

/* -- steps of optimizers -- */

static double found_table[2][ROWS * WIDTH], found_slot[2][ROWS * WIDTH], found_bias[2][WIDTH];
static int found; /* which of the two is found now */
static const char *slot_name = "m";

/* The gradients depend on the values. */
static ditto_status take_step(ditto_replica *self, void *user)
{
    const struct model *m = model_of(self);
    double table[ROWS * WIDTH], bias[WIDTH], norm;
    ditto_apply_options options = DITTO_APPLY_OPTIONS_INIT;
    (void)user;
    DITTO_TRY(ditto_pull(self, m->table, NULL, table));
    DITTO_TRY(ditto_pull(self, m->bias, NULL, bias));
    for (int i = 0; i < ROWS * WIDTH; i++)
        table[i] = 0.25 * table[i] - bias[i % WIDTH];
    for (int i = 0; i < WIDTH; i++)
        bias[i] = 1 - bias[i];
    ditto_tensor gradients[2] = { { .data = table, .dtype = DITTO_F64, .rank = 2, .shape = { ROWS, WIDTH } },
                                  { .data = bias, .dtype = DITTO_F64, .rank = 1, .shape = { WIDTH } } };
    options.norm = &norm;
    return ditto_apply(self, m->optimizer, gradients, &options);
}

static ditto_status take_steps(struct model *m, ditto_coordinator *c)
{
    ditto_variable *slot;
    int64_t steps = 0;
    for (int i = 0; i < 12; i++) /* one after the other, so that the results do not depend on timing */
        DITTO_TRY(schedule(c, "take_step", 1));
    DITTO_TRY(ditto_variable_read(m->table, found_table[found], sizeof found_table[0]));
    DITTO_TRY(ditto_variable_read(m->bias, found_bias[found], sizeof found_bias[0]));
    DITTO_TRY(ditto_optimizer_slot(m->optimizer, 0, slot_name, &slot));
    DITTO_TRY(ditto_variable_read(slot, found_slot[found], sizeof found_slot[0]));
    DITTO_TRY(ditto_optimizer_iterations(m->optimizer, &slot));
    DITTO_TRY(ditto_variable_read(slot, &steps, sizeof steps));
    CHECK(m->host, steps == 12 / (int64_t)(job.optimizer->accumulate > 1 ? job.optimizer->accumulate : 1));
    return DITTO_OK;
}

static bool mirrors; /* the shards, over several hosts */

/* The bits are those of one host. */
static void compare_steps(const ditto_optimizer_options *options, uint32_t hosts, uint32_t replicas,
                          uint32_t each, size_t shards)
{
    found = 0;
    play(1, (struct job){ each, each, DITTO_CONCURRENCY_LOCKED, shards, options, .work = take_steps });
    found = 1;
    play(hosts, (struct job){ replicas, each, DITTO_CONCURRENCY_LOCKED, shards, options, .mirrors = mirrors,
                              .work = take_steps });
    assert_memory_equal(found_table[0], found_table[1], sizeof found_table[0]);
    assert_memory_equal(found_bias[0], found_bias[1], sizeof found_bias[0]);
    assert_memory_equal(found_slot[0], found_slot[1], sizeof found_slot[0]);
    assert_true(found_table[0][4] != 4);
}

/* A rule of the program, with a slot, that calls what it must not. */
static _Atomic int not_refused;

static void own_rule(const ditto_rule_range *range, void *user)
{
    const double *gradient = range->gradient;
    double *value = range->value, *slot = range->slot[0], numbers[WIDTH];
    ditto_variable *bias = model[0].bias;
    (void)user;
    for (size_t i = 0; i < range->count; i++) {
        slot[i] = 0.5 * slot[i] + gradient[i];
        value[i] -= 0.01 * (double)range->step * slot[i];
    }
    if (bias != NULL && ditto_variable_read(bias, numbers, sizeof numbers) != DITTO_ERR_CONTEXT)
        atomic_fetch_add(&not_refused, 1);
}

static void rule_12_16_steps_have_the_bits_of_one_host(void **state)
{
    (void)state;
    ditto_optimizer_options adam = DITTO_OPTIMIZER_OPTIONS_INIT;
    adam.rule = DITTO_RULE_ADAM;
    assert_ok(ditto_function_register("take_step", take_step, NULL));
    compare_steps(&adam, 2, 1, 1, 3);
    compare_steps(&adam, 3, 2, 2, 7);
    adam.accumulate = 3;
    adam.clip_norm = 2;
    adam.rate_factors = (const double[]){ 0.5, 2 };
    compare_steps(&adam, 3, 1, 1, 5);
    compare_steps(&adam, 2, 6, 3, 1);
    ditto_optimizer_options own = DITTO_OPTIMIZER_OPTIONS_INIT;
    own.rule = DITTO_RULE_FUNCTION;
    own.function = own_rule;
    own.num_slots = 1;
    slot_name = "slot0";
    compare_steps(&own, 3, 1, 1, 6);
    mirrors = true;
    compare_steps(&own, 3, 1, 1, 6);
    slot_name = "m";
    compare_steps(&adam, 3, 2, 2, 5);
    mirrors = false;
    assert_int_equal(atomic_load(&not_refused), 0);
    assert_ok(ditto_function_unregister("take_step"));
}

static _Atomic int failed_steps; /* of replicas of host 0 */

static ditto_status fail_to_step(ditto_replica *self, void *user)
{
    const struct model *m = model_of(self);
    static const double zeros[ROWS * WIDTH];
    (void)user;
    ditto_tensor gradients[2] = {
        { .data = (void *)(uintptr_t)zeros, .dtype = DITTO_F64, .rank = 2, .shape = { ROWS, WIDTH } },
        { .data = (void *)(uintptr_t)zeros, .dtype = DITTO_F64, .rank = 1, .shape = { WIDTH } }
    };
    if (m->host->host != 0)
        return DITTO_OK;
    CHECK(m->host, ditto_apply(self, m->optimizer, gradients, NULL) == DITTO_ERR_NOT_FOUND);
    atomic_fetch_add(&failed_steps, 1);
    return DITTO_OK;
}

/* Host 1, which is a thread of this process, has no optimizer any more. One of the replicas asks it. */
static ditto_status fail_to_take_steps(struct model *m, ditto_coordinator *c)
{
    (void)m;
    DITTO_TRY(ditto_optimizer_destroy(model[1].optimizer));
    model[1].optimizer = NULL;
    while (atomic_load(&failed_steps) < 3 * 2)
        DITTO_TRY(schedule(c, "fail_to_step", 2));
    return DITTO_OK;
}

/* If a replica of a worker fails, the others return its error. */
static void rule_12_16_all_replicas_fail(void **state)
{
    (void)state;
    ditto_optimizer_options sgd = DITTO_OPTIMIZER_OPTIONS_INIT;
    sgd.rule = DITTO_RULE_SGD;
    assert_ok(ditto_function_register("fail_to_step", fail_to_step, NULL));
    play(2, (struct job){ 2, 2, DITTO_CONCURRENCY_LOCKED, 4, &sgd, .work = fail_to_take_steps });
    assert_ok(ditto_function_unregister("fail_to_step"));
}

static ditto_status step_or_drop(ditto_replica *self, void *user)
{
    const struct model *m = model_of(self);
    static const double zeros[ROWS * WIDTH];
    ditto_apply_options options = DITTO_APPLY_OPTIONS_INIT;
    int dropped;
    (void)user;
    ditto_tensor gradients[2] = {
        { .data = (void *)(uintptr_t)zeros, .dtype = DITTO_F64, .rank = 2, .shape = { ROWS, WIDTH } },
        { .data = (void *)(uintptr_t)zeros, .dtype = DITTO_F64, .rank = 1, .shape = { WIDTH } }
    };
    options.has_read_steps = 1;
    options.dropped = &dropped;
    DITTO_TRY(ditto_optimizer_steps(self, m->optimizer, &options.read_steps));
    options.read_steps -= options.read_steps > 0; /* every second step is too old for max_staleness = 0 */
    DITTO_TRY(ditto_apply(self, m->optimizer, gradients, &options));
    return ditto_return_f64(self, NULL, dropped);
}

static ditto_status count_dropped(struct model *m, ditto_coordinator *c)
{
    ditto_staleness_counters counters = DITTO_STALENESS_COUNTERS_INIT;
    DITTO_TRY(schedule(c, "step_or_drop", 1)); /* the first one is step 1 */
    DITTO_TRY(schedule(c, "step_or_drop", 20));
    DITTO_TRY(ditto_optimizer_staleness(m->optimizer, &counters));
    CHECK(m->host, counters.calls == 21 && counters.dropped == 20);
    return DITTO_OK;
}

static void rule_12_16_old_gradients(void **state)
{
    (void)state;
    ditto_optimizer_options sgd = DITTO_OPTIMIZER_OPTIONS_INIT;
    sgd.rule = DITTO_RULE_SGD;
    sgd.has_max_staleness = 1;
    assert_ok(ditto_function_register("step_or_drop", step_or_drop, NULL));
    play(3, (struct job){ 1, 1, DITTO_CONCURRENCY_LOCKED, 3, &sgd, .work = count_dropped });
    assert_ok(ditto_function_unregister("step_or_drop"));
}

/* -- small variables, and those of other types -- */

enum { SMALL = 6 };
static ditto_variable *small[MOST_HOSTS][SMALL], *beside[MOST_HOSTS];
static ditto_optimizer *adding[MOST_HOSTS];
static const ditto_tensor small_spec[SMALL] = {
    { .dtype = DITTO_F16, .rank = 1, .shape = { 7 } },
    { .dtype = DITTO_F64 },
    { .dtype = DITTO_F32, .rank = 1, .shape = { 0 } },
    { .dtype = DITTO_C128, .rank = 1, .shape = { 5 } },
    { .dtype = DITTO_F32, .rank = 2, .shape = { 5, 0 } },
    { .dtype = DITTO_BF16, .rank = 2, .shape = { 5, 3 } },
};

static ditto_status make_small(const struct model *m)
{
    ditto_variable **v = small[m->host->host];
    ditto_optimizer_options add = DITTO_OPTIMIZER_OPTIONS_INIT;
    for (int k = 0; k < SMALL; k++) {
        ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
        if (small_spec[k].dtype != DITTO_C128) /* which is always locked */
            options.concurrency = job.concurrency;
        if (small_spec[k].rank > 0)
            options.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 3 };
        DITTO_TRY(ditto_variable_create(m->strategy, &small_spec[k], &options, &v[k]));
    }
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    options.colocate_with = v[1];
    DITTO_TRY(ditto_variable_create(m->strategy, &small_spec[1], &options, &beside[m->host->host]));
    add.rule = DITTO_RULE_ADD;
    ditto_variable *all[SMALL + 1] = { beside[m->host->host] };
    memcpy(all + 1, v, SMALL * sizeof(ditto_variable *));
    return ditto_optimizer_create(all, SMALL + 1, &add, &adding[m->host->host]);
}

static ditto_status destroy_small(const struct model *m)
{
    DITTO_TRY(ditto_optimizer_destroy(adding[m->host->host]));
    DITTO_TRY(ditto_variable_destroy(beside[m->host->host]));
    for (int k = 0; k < SMALL; k++)
        DITTO_TRY(ditto_variable_destroy(small[m->host->host][k]));
    return DITTO_OK;
}

/* The bytes are those of small numbers in every type, so sums are exact, and equal those of one host. */
static ditto_status add_small(ditto_replica *self, void *user)
{
    const struct model *m = model_of(self);
    _Alignas(16) unsigned char value[SMALL][80] = { { 0 } };
    const int64_t row[2] = { 4, 0 };
    ditto_tensor gradient[SMALL + 1];
    double one = 1;
    (void)user;
    gradient[0] = small_spec[1];
    gradient[0].data = &one;
    for (int k = 0; k < SMALL; k++) {
        ditto_variable *v = small[m->host->host][k];
        gradient[k + 1] = small_spec[k];
        gradient[k + 1].data = value[k];
        for (size_t i = 1; i < ditto_tensor_bytes(&small_spec[k]); i += 2)
            value[k][i] = 0x3c; /* 1.0 in f16 */
        DITTO_TRY(ditto_assign_add(self, v, value[k]));
        DITTO_TRY(ditto_pull(self, v, NULL, value[k]));
        if (small_spec[k].rank > 0 && small_spec[k].shape[0] >= 5)
            DITTO_TRY(ditto_lookup(self, v, row, 2, value[k]));
    }
    memset(value, 0, sizeof value);
    return ditto_apply(self, adding[m->host->host], gradient, NULL);
}

static unsigned char found_small[2][SMALL][80];

static ditto_status use_small(struct model *m, ditto_coordinator *c)
{
    double one = 1, two = 2;
    uint64_t versions[3];
    char text[200];
    DITTO_TRY(schedule(c, "add_small", 9));
    for (int k = 0; k < SMALL; k++) {
        DITTO_TRY(
            ditto_variable_read(small[0][k], found_small[found][k], ditto_tensor_bytes(&small_spec[k])));
        DITTO_TRY(ditto_parameter_versions(small[0][k], versions, 3));
        for (size_t i = 0; i < ditto_variable_num_shards(small[0][k]); i++)
            CHECK(m->host, versions[i] == 18);
        DITTO_TRY(ditto_variable_describe(small[0][k], text, sizeof text, NULL));
    }
    DITTO_TRY(ditto_variable_read(beside[0], &two, sizeof two));
    CHECK(m->host, two == 9);
    two = 2;
    DITTO_TRY(ditto_variable_assign(small[0][1], &one, sizeof one));
    DITTO_TRY(ditto_variable_assign(beside[0], &two, sizeof two));
    DITTO_TRY(ditto_variable_read(small[0][1], &two, sizeof two));
    CHECK(m->host, two == 1);
    DITTO_TRY(ditto_variable_describe(small[0][1], text, sizeof text, NULL));
    const char *place = strstr(text, "host/NUMA node");
    char other[200];
    DITTO_TRY(ditto_variable_describe(beside[0], other, sizeof other, NULL));
    CHECK(m->host, place == NULL || strstr(other, place) != NULL);
    return DITTO_OK;
}

static void rule_12_16_small_variables_of_all_types(void **state)
{
    (void)state;
    static const ditto_concurrency kinds[] = { DITTO_CONCURRENCY_LOCKED, DITTO_CONCURRENCY_FREE_READS };
    assert_ok(ditto_function_register("add_small", add_small, NULL));
    /* The scalar is on host 1, if there is one. */
    for (int k = 0; k < 2; k++)
        for (uint32_t hosts = 1; hosts <= 3; hosts++) {
            found = hosts > 1;
            play(hosts, (struct job){ 1, 1, kinds[k], 3, .work = use_small, .make_more = make_small,
                                      .destroy_more = destroy_small });
            assert_memory_equal(found_small[0], found_small[found], sizeof found_small[0]);
            if (hosts == 1)
                continue;
            play(hosts, (struct job){ 1, 1, kinds[k], 3, .mirrors = true, .work = use_small,
                                      .make_more = make_small, .destroy_more = destroy_small });
            assert_memory_equal(found_small[0], found_small[found], sizeof found_small[0]);
        }
    assert_ok(ditto_function_unregister("add_small"));
}

/* -- calls that cannot be -- */

static ditto_status fail_to_read(ditto_replica *self, void *user)
{
    const struct model *m = model_of(self);
    double table[ROWS * WIDTH];
    (void)user;
    return ditto_pull(self, m->table, NULL, table);
}

static ditto_status create_late(struct model *m, ditto_coordinator *c)
{
    ditto_tensor one = { .dtype = DITTO_F64 };
    ditto_optimizer_options sgd = DITTO_OPTIMIZER_OPTIONS_INIT;
    ditto_variable *v;
    ditto_optimizer *o;
    sgd.rule = DITTO_RULE_SGD;
    DITTO_TRY(expect(m->host, ditto_variable_create(m->strategy, &one, NULL, &v), DITTO_ERR_CONTEXT,
                     "all of them create the same variables"));
    DITTO_TRY(expect(m->host, ditto_optimizer_create(&m->bias, 1, &sgd, &o), DITTO_ERR_CONTEXT,
                     "all of them create the same optimizers"));
    /* What this host has destroyed, others do not find. */
    DITTO_TRY(schedule(c, "fail_to_read", 10));
    DITTO_TRY(ditto_variable_destroy(m->table));
    m->table = NULL;
    for (int i = 0; i < 20; i++)
        (void)!ditto_coordinator_schedule(c, "fail_to_read", NULL, NULL, NULL);
    ditto_status status = ditto_coordinator_join(c);
    CHECK(m->host, status == DITTO_ERR_NOT_FOUND || status == DITTO_ERR_INVALID);
    return DITTO_OK;
}

static ditto_status misuse(struct test_host *host)
{
    struct model *m = &model[host->host];
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    double table[ROWS * WIDTH], bias[WIDTH] = { 1, 2, 3 };
    ditto_tensor one = { .dtype = DITTO_F64 };
    ditto_coordinator *c;
    ditto_variable *odd = NULL;
    options.num_replicas = 1;
    options.cluster = host->cluster;
    options.keeps_parameters = DITTO_SWITCH_OFF;
    *m = (struct model){ .host = host };
    DITTO_TRY(expect(host, ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &m->strategy),
                     DITTO_ERR_INVALID, "keeps_parameters is OFF on all 2 hosts"));
    options.mirrors_parameters = DITTO_SWITCH_ON;
    options.keeps_parameters = host->host == 0 ? DITTO_SWITCH_OFF : DITTO_SWITCH_ON;
    DITTO_TRY(expect(host, ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &m->strategy),
                     DITTO_ERR_INVALID, "host 1 alone keeps parameters"));
    options.mirrors_parameters = host->host == 0 ? DITTO_SWITCH_ON : DITTO_SWITCH_OFF;
    DITTO_TRY(expect(host, ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &m->strategy),
                     DITTO_ERR_INVALID, "mirrors_parameters"));
    options.mirrors_parameters = DITTO_SWITCH_DEFAULT;
    options.keeps_parameters = DITTO_SWITCH_DEFAULT;
    DITTO_TRY(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &m->strategy));
    DITTO_TRY(make_variables(m));
    DITTO_TRY(expect(host, ditto_variable_read(m->table, table, sizeof table), DITTO_ERR_CONTEXT,
                     "shards on other hosts"));
    DITTO_TRY(ditto_variable_assign(m->table, table, sizeof table)); /* on all hosts */
    DITTO_TRY(ditto_variable_assign(m->bias, bias, sizeof bias));
    if (host->host == 1)
        DITTO_TRY(ditto_variable_create(m->strategy, &one, NULL, &odd));
    DITTO_TRY(expect(host,
                     host->host == 0 ? ditto_coordinator_create(m->strategy, NULL, &c)
                                     : ditto_serve(m->strategy, NULL, NULL),
                     DITTO_ERR_INVALID, "other variables or optimizers"));
    DITTO_TRY(ditto_variable_destroy(odd));
    return destroy_model(m);
}

static void rule_12_16_calls_that_cannot_be(void **state)
{
    (void)state;
    job = (struct job){ 1, 1, DITTO_CONCURRENCY_LOCKED, 4, .work = NULL };
    on_hosts_with_life_line(2, misuse, NULL);
    assert_ok(ditto_function_register("fail_to_read", fail_to_read, NULL));
    play(2, (struct job){ 1, 1, DITTO_CONCURRENCY_LOCKED, 4, .work = create_late });
    assert_ok(ditto_function_unregister("fail_to_read"));
    ditto_strategy *strategy;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    options.keeps_parameters = DITTO_SWITCH_OFF;
    assert_status(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy), DITTO_ERR_INVALID);
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy), DITTO_ERR_INVALID);
}

/* A variable that is on two hosts is not destroyed while they work. */
static ditto_status destroy_early(struct model *m, ditto_coordinator *c)
{
    (void)c;
    DITTO_TRY(expect(m->host, ditto_variable_destroy(m->table), DITTO_ERR_BUSY, "after ditto_serve"));
    return expect(m->host, ditto_variable_destroy(m->bias), DITTO_ERR_BUSY, "on two hosts");
}

/* One host has changed a variable, and the others have not. */
static ditto_status write_alone(struct test_host *host)
{
    struct model *m = &model[host->host];
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    double bias[WIDTH] = { 1, 2, 3 };
    ditto_coordinator *c;
    *m = (struct model){ .host = host };
    options.num_replicas = 1;
    options.cluster = host->cluster;
    options.mirrors_parameters = DITTO_SWITCH_ON;
    DITTO_TRY(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &m->strategy));
    DITTO_TRY(make_variables(m));
    if (host->host == host->hosts - 1)
        DITTO_TRY(ditto_variable_assign(m->bias, bias, sizeof bias));
    ditto_status status = host->host == 0 ? ditto_coordinator_create(m->strategy, NULL, &c)
                                          : ditto_serve(m->strategy, NULL, NULL);
    DITTO_TRY(expect(host, status, DITTO_ERR_INVALID, "have other values in the shards"));
    return destroy_model(m);
}

static void rule_12_17_calls_that_cannot_be(void **state)
{
    (void)state;
    play(2, (struct job){ 1, 1, DITTO_CONCURRENCY_LOCKED, 4, .mirrors = true, .work = destroy_early });
    on_hosts_with_life_line(2, write_alone, NULL);
}

/* What the optimizers of two hosts may not differ in. */
static const struct {
    ditto_rule rule;
    ditto_op op;
    int nesterov;
    double momentum;
} settings[] = { { DITTO_RULE_SGD, DITTO_SUM, 0, 0.5 },
                 { DITTO_RULE_SGD, DITTO_SUM, 1, 0.5 },
                 { DITTO_RULE_SGD, DITTO_MEAN, 0, 0.5 },
                 { DITTO_RULE_SGD, DITTO_SUM, 0, 0.25 },
                 { DITTO_RULE_ADAM, DITTO_SUM, 0, 0 } };

static ditto_status make_different(struct test_host *host)
{
    const size_t *which = host->argument;
    struct model *m = &model[host->host];
    size_t own = host->host == 0 ? 0 : *which;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_optimizer_options optimizer = DITTO_OPTIMIZER_OPTIONS_INIT;
    ditto_coordinator *c;
    options.num_replicas = 1;
    options.cluster = host->cluster;
    optimizer.rule = settings[own].rule;
    optimizer.op = settings[own].op;
    optimizer.nesterov = settings[own].nesterov;
    optimizer.momentum = settings[own].momentum;
    *m = (struct model){ .host = host };
    DITTO_TRY(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &m->strategy));
    DITTO_TRY(make_variables(m));
    DITTO_TRY(ditto_optimizer_create(&m->table, 1, &optimizer, &m->optimizer));
    ditto_status status = host->host == 0 ? ditto_coordinator_create(m->strategy, NULL, &c)
                                          : ditto_serve(m->strategy, NULL, NULL);
    DITTO_TRY(expect(host, status, DITTO_ERR_INVALID, "other variables or optimizers"));
    return destroy_model(m);
}

static void rule_12_16_optimizers_differ(void **state)
{
    (void)state;
    job = (struct job){ 1, 1, DITTO_CONCURRENCY_LOCKED, 4, .work = NULL };
    for (size_t k = 1; k < sizeof settings / sizeof settings[0]; k++)
        on_hosts_with_life_line(2, make_different, &k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_12_16_reads_and_writes),
        cmocka_unit_test(rule_12_16_rows),
        cmocka_unit_test(rule_12_16_steps_have_the_bits_of_one_host),
        cmocka_unit_test(rule_12_16_all_replicas_fail),
        cmocka_unit_test(rule_12_16_old_gradients),
        cmocka_unit_test(rule_12_16_small_variables_of_all_types),
        cmocka_unit_test(rule_12_16_calls_that_cannot_be),
        cmocka_unit_test(rule_12_16_a_server_has_a_pu),
        cmocka_unit_test(rule_12_17_calls_that_cannot_be),
        cmocka_unit_test(rule_12_16_optimizers_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
