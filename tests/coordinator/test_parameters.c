/* tests/coordinator/test_parameters.c - docs/semantics.md, "Parameter servers": reading and writing
 * parameters, and steps of optimizers on them (rules 12.1, 12.10 to 12.12). */
#include "support/support.h"
#include "vars/parameters/parameter.h"

#include <ditto/parameter.h>

#include <math.h>
#include <stdatomic.h>

#define ROWS  40
#define WIDTH 6

struct model {
    ditto_strategy *strategy;
    ditto_coordinator *coordinator;
    ditto_variable *table, *bias;
    ditto_optimizer *optimizer;
    _Atomic uint32_t num_made;
    ditto_variable *made[4];
    struct report report;
};

static void make_model(struct model *m, uint32_t workers, uint32_t replicas, size_t shards)
{
    ditto_tensor table = { .dtype = DITTO_F64, .rank = 2, .shape = { ROWS, WIDTH } },
                 bias = { .dtype = DITTO_F64, .rank = 1, .shape = { WIDTH } };
    memset(m, 0, sizeof *m);
    assert_ok(ditto_strategy_create(
        DITTO_PARAMETER_SERVER,
        &OPTIONS(strategy, .num_replicas = workers * replicas, .replicas_per_worker = replicas),
        &m->strategy));
    ditto_variable_options cut = OPTIONS(
        variable, .name = "table",
        .partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = shards });
    assert_ok(ditto_variable_create(m->strategy, &table, &cut, &m->table));
    assert_int_equal(properties_of(m->table).num_shards, shards);
    cut = (ditto_variable_options)DITTO_VARIABLE_OPTIONS_INIT;
    cut.name = "bias";
    assert_ok(ditto_variable_create(m->strategy, &bias, &cut, &m->bias));
    assert_ok(ditto_coordinator_create(m->strategy, NULL, &m->coordinator));
}

static void run_and_end(struct model *m, const char *name, int times)
{
    for (int i = 0; i < times; i++)
        assert_ok(ditto_coordinator_schedule(m->coordinator, name, NULL, NULL, NULL));
    ditto_status status = ditto_coordinator_join(m->coordinator);
    if (m->report.claimed)
        fail_msg("%s", m->report.first_failure);
    assert_ok(status);
}

static void destroy_model(struct model *m)
{
    assert_ok(ditto_coordinator_destroy(m->coordinator));
    assert_ok(ditto_optimizer_destroy(m->optimizer));
    assert_ok(ditto_variable_destroy(m->table));
    assert_ok(ditto_variable_destroy(m->bias));
    assert_ok(ditto_strategy_destroy(m->strategy));
}

static ditto_status update_copy(const ditto_tensor *copy, const ditto_tensor *arguments,
                                uint32_t num_arguments, void *user, ditto_tensor *result)
{
    return DITTO_OK;
}

/* -- cross-replica context -- */

static void rule_12_2_parameters_in_cross_replica_context(void **state)
{
    struct model m;
    double numbers[ROWS * WIDTH], found[ROWS * WIDTH], row[2 * WIDTH];
    char text[400];
    make_model(&m, 2, 1, 4);
    for (int i = 0; i < ROWS * WIDTH; i++)
        numbers[i] = i;
    assert_ok(ditto_variable_assign(m.table, DITTO_ASSIGN, numbers, sizeof numbers));
    assert_ok(ditto_variable_assign(m.table, DITTO_ASSIGN_ADD, numbers, sizeof numbers));
    assert_ok(ditto_variable_read(m.table, found, sizeof found));
    for (int i = 0; i < ROWS * WIDTH; i++)
        assert_true(found[i] == 2 * i);
    assert_ok(ditto_variable_lookup(m.table, (const int64_t[]){ 39, 3 }, 2, row, sizeof row));
    assert_true(row[0] == 2 * 39 * WIDTH && row[WIDTH] == 2 * 3 * WIDTH);
    int64_t rows[2] = { 5, 39 };
    ditto_slices slices = {
        .indices = rows, .values = numbers, .rows = 2, .row_count = WIDTH, .dtype = DITTO_F64
    };
    assert_ok(ditto_variable_scatter(m.table, DITTO_SCATTER_MAX, &slices));
    assert_ok(ditto_variable_scatter(m.table, DITTO_SCATTER_ADD, &slices));
    assert_int_equal(shard_of(m.table, 0).version, 4);
    assert_int_equal(shard_of(m.table, 1).version, 2);
    assert_int_equal(shard_of(m.table, 3).version, 4);
    assert_ok(ditto_variable_describe(m.table, text, sizeof text, NULL));
    assert_non_null(strstr(text, "a parameter"));
    ditto_value *of_variable;
    assert_null(shard_of(m.table, 0).data);
    assert_status(ditto_variable_value(m.bias, &of_variable), DITTO_ERR_UNSUPPORTED);
    assert_status(ditto_variable_update(m.bias, update_copy, NULL, NULL, 0, NULL, NULL),
                  DITTO_ERR_UNSUPPORTED);
    ditto_variable *refused;
    ditto_tensor t = { .dtype = DITTO_F64 };
    assert_status(
        ditto_variable_create(m.strategy, &t, &OPTIONS(variable, .synchronization = DITTO_ON_READ), &refused),
        DITTO_ERR_UNSUPPORTED);
    destroy_model(&m);
}

/* -- reading and writing -- */

/* Adds 1 to every element, and checks in a pull that the elements of each shard belong together. */
static ditto_status add_and_pull(ditto_replica *self, void *user)
{
    struct model *m = user;
    double ones[ROWS * WIDTH], pulled[ROWS * WIDTH];
    uint64_t versions[8];
    for (int i = 0; i < ROWS * WIDTH; i++)
        ones[i] = 1;
    EXPECT(&m->report, ditto_assign(self, m->table, DITTO_ASSIGN_ADD, ones) == DITTO_OK);
    EXPECT(&m->report, ditto_pull(self, m->table, &OPTIONS(pull, .versions = versions), pulled) == DITTO_OK);
    ditto_variable_properties of_table = DITTO_VARIABLE_PROPERTIES_INIT;
    EXPECT(&m->report, ditto_variable_info(m->table, &of_table) == DITTO_OK);
    for (size_t s = 0; s < of_table.num_shards; s++) {
        ditto_shard_info shard = DITTO_SHARD_INFO_INIT;
        EXPECT(&m->report, ditto_variable_shard(m->table, s, &shard) == DITTO_OK);
        for (size_t i = shard.first_row * WIDTH; i < (shard.first_row + shard.rows) * WIDTH; i++)
            EXPECT(&m->report, pulled[i] == (double)versions[s]);
    }
    return DITTO_OK;
}

static void rule_12_10_the_elements_of_a_shard_belong_to_one_version(void **state)
{
    struct model m;
    for (size_t k = 0; k < replica_counts_length; k++)
        for (size_t shards = 1; shards <= 8; shards *= 4) {
            double found[ROWS * WIDTH];
            int times = test_trials(300);
            make_model(&m, replica_counts[k], 1, shards);
            assert_ok(ditto_function_register("add_and_pull", add_and_pull, &m));
            run_and_end(&m, "add_and_pull", times);
            assert_ok(ditto_variable_read(m.table, found, sizeof found));
            for (int i = 0; i < ROWS * WIDTH; i++)
                assert_true(found[i] == times);
            destroy_model(&m);
        }
}

/* Pushes rows that depend on the number of the call, and looks some up. */
static ditto_status push_rows(ditto_replica *self, void *user)
{
    struct model *m = user;
    int64_t rows[5] = { 0, 39, 7, 7, 20 }, looked_up[3] = { 39, 7, 7 };
    double values[5 * WIDTH], found[3 * WIDTH];
    ditto_slices slices = {
        .indices = rows, .values = values, .rows = 5, .row_count = WIDTH, .dtype = DITTO_F64
    };
    for (int i = 0; i < 5 * WIDTH; i++)
        values[i] = 1;
    EXPECT(&m->report, ditto_scatter(self, m->table, DITTO_SCATTER_ADD, &slices) == DITTO_OK);
    EXPECT(&m->report, ditto_lookup(self, m->table, looked_up, 3, found) == DITTO_OK);
    for (int i = 1; i < WIDTH; i++)
        EXPECT(&m->report, found[i] == found[0] && found[WIDTH + i] == found[WIDTH]);
    EXPECT(&m->report, found[WIDTH] == found[2 * WIDTH] && fmod(found[WIDTH], 2) == 0);
    rows[1] = ROWS;
    EXPECT(&m->report, ditto_scatter(self, m->table, DITTO_SCATTER_ADD, &slices) == DITTO_ERR_RANGE);
    EXPECT(&m->report, ditto_lookup(self, m->table, rows, 2, found) == DITTO_ERR_RANGE);
    return DITTO_OK;
}

static void rule_12_11_no_update_of_rows_is_lost(void **state)
{
    struct model m;
    for (size_t k = 0; k < replica_counts_length; k++) {
        double found[ROWS * WIDTH];
        int times = test_trials(500);
        make_model(&m, replica_counts[k], 1, 5);
        assert_ok(ditto_function_register("push_rows", push_rows, &m));
        run_and_end(&m, "push_rows", times);
        assert_ok(ditto_variable_read(m.table, found, sizeof found));
        for (int row = 0; row < ROWS; row++)
            assert_true(found[row * WIDTH] == (row == 7                     ? 2 * times
                                               : row % 39 == 0 || row == 20 ? times
                                                                            : 0));
        destroy_model(&m);
    }
}

static ditto_status use_wrongly(ditto_replica *self, void *user)
{
    struct model *m = user;
    const void *read;
    void *component;
    double buffer[ROWS * WIDTH];
    ditto_variable *made;
    ditto_tensor t = { .dtype = DITTO_F64 };
    EXPECT(&m->report, ditto_read(self, m->bias, &read) == DITTO_ERR_CONTEXT);
    EXPECT(&m->report, strstr(ditto_last_error()->message, "ditto_pull") != NULL);
    EXPECT(&m->report, ditto_component(self, m->bias, &component) == DITTO_ERR_INVALID);
    EXPECT(&m->report, ditto_pull(self, m->bias, NULL, NULL) == DITTO_ERR_INVALID);
    EXPECT(&m->report, ditto_pull(self, NULL, NULL, buffer) == DITTO_ERR_INVALID);
    EXPECT(&m->report, ditto_pull(NULL, m->bias, NULL, buffer) == DITTO_ERR_INVALID);
    EXPECT(&m->report,
           ditto_update(self, m->bias, update_copy, NULL, NULL, 0, NULL) == DITTO_ERR_UNSUPPORTED);
    EXPECT(&m->report, ditto_variable_read(m->bias, buffer, sizeof(double) * WIDTH) == DITTO_ERR_CONTEXT);
    EXPECT(&m->report, ditto_variable_destroy(m->bias) == DITTO_ERR_CONTEXT);
    /* A variable of the worker's own strategy is not a parameter. */
    EXPECT(&m->report, ditto_create_variable(self, &t, NULL, &made) == DITTO_OK);
    EXPECT(&m->report, ditto_pull(self, made, NULL, buffer) == DITTO_ERR_INVALID);
    EXPECT(&m->report, ditto_read(self, made, &read) == DITTO_OK);
    m->made[m->num_made++] = made;
    return DITTO_OK;
}

static void rule_12_10_wrong_uses(void **state)
{
    struct model m, other;
    make_model(&m, 2, 1, 1);
    assert_ok(ditto_function_register("use_wrongly", use_wrongly, &m));
    run_and_end(&m, "use_wrongly", 4);
    for (int i = 0; i < 4; i++)
        assert_ok(ditto_variable_destroy(m.made[i]));
    /* Parameters of another strategy. */
    make_model(&other, 1, 1, 1);
    assert_ok(ditto_function_register("add_and_pull_foreign", add_and_pull, &m));
    assert_ok(ditto_coordinator_schedule(other.coordinator, "add_and_pull_foreign", NULL, NULL, NULL));
    assert_status(ditto_coordinator_join(other.coordinator), DITTO_ERR_USER);
    m.report.claimed = 0;
    destroy_model(&other);
    destroy_model(&m);
}

/* -- steps -- */

static void fill(double *gradient, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        gradient[i] = (double)(int64_t)(test_random(&seed) % 2001) / 1000 - 1;
}

struct step_numbers {
    uint64_t step;
    ditto_variable *table, *bias;
    ditto_optimizer *optimizer;
};

static ditto_status take_step(ditto_replica *self, void *user)
{
    struct step_numbers *n = user;
    double table[ROWS * WIDTH], bias[WIDTH], norm;
    ditto_tensor gradients[2] = {
        { .data = table, .dtype = DITTO_F64, .rank = 2, .shape = { ROWS, WIDTH } },
        { .data = bias, .dtype = DITTO_F64, .rank = 1, .shape = { WIDTH } },
    };
    fill(table, ROWS * WIDTH, n->step * 2 + 1);
    fill(bias, WIDTH, n->step * 2 + 2);
    n->step++;
    return ditto_apply(self, n->optimizer, gradients, &OPTIONS(apply, .norm = &norm));
}

static void make_variables(ditto_strategy *strategy, size_t shards, const ditto_optimizer_options *options,
                           struct step_numbers *n)
{
    ditto_tensor table = { .dtype = DITTO_F64, .rank = 2, .shape = { ROWS, WIDTH } },
                 bias = { .dtype = DITTO_F64, .rank = 1, .shape = { WIDTH } };
    *n = (struct step_numbers){ 0 };
    ditto_variable_options cut = OPTIONS(
        variable, .partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = shards });
    assert_ok(ditto_variable_create(strategy, &table, &cut, &n->table));
    assert_ok(ditto_variable_create(strategy, &bias, NULL, &n->bias));
    assert_ok(
        ditto_optimizer_create((ditto_variable *const[]){ n->table, n->bias }, 2, options, &n->optimizer));
}

static void read_all(const struct step_numbers *n, double *found)
{
    assert_ok(ditto_variable_read(n->table, found, ROWS * WIDTH * sizeof *found));
    assert_ok(ditto_variable_read(n->bias, found + ROWS * WIDTH, WIDTH * sizeof *found));
}

static void destroy_all(const struct step_numbers *n)
{
    assert_ok(ditto_optimizer_destroy(n->optimizer));
    assert_ok(ditto_variable_destroy(n->table));
    assert_ok(ditto_variable_destroy(n->bias));
}

static void rule_12_12_one_worker_has_the_bits_of_one_replica(void **state)
{
    const struct {
        ditto_rule rule;
        double momentum, decay, clip;
    } tries[] = { { DITTO_RULE_SGD, 0, 0, 0 },  { DITTO_RULE_SGD, 0.9, 0.01, 0 },
                  { DITTO_RULE_ADAM, 0, 0, 0 }, { DITTO_RULE_ADAM, 0, 0.1, 3 },
                  { DITTO_RULE_ADD, 0, 0, 0 },  { DITTO_RULE_ADAM, 0, 0, 1e9 } };
    for (size_t k = 0; k < sizeof tries / sizeof tries[0]; k++)
        for (size_t shards = 1; shards <= 7; shards += 3) {
            double expected[(ROWS + 1) * WIDTH], found[(ROWS + 1) * WIDTH];
            ditto_strategy *mirrored = make_strategy(1, NULL), *servers;
            ditto_coordinator *c;
            struct step_numbers n;
            ditto_optimizer_options options = OPTIONS(
                optimizer, .rule = tries[k].rule, .momentum = tries[k].momentum,
                .weight_decay = tries[k].decay, .clip_norm = tries[k].clip);
            make_variables(mirrored, 1, &options, &n);
            for (int i = 0; i < 20; i++)
                assert_ok(ditto_strategy_run(mirrored, take_step, &n));
            read_all(&n, expected);
            destroy_all(&n);
            assert_ok(ditto_strategy_destroy(mirrored));
            assert_ok(ditto_strategy_create(DITTO_PARAMETER_SERVER, &OPTIONS(strategy, .num_replicas = 1),
                                            &servers));
            make_variables(servers, shards, &options, &n);
            assert_ok(ditto_coordinator_create(servers, NULL, &c));
            assert_ok(ditto_function_register("take_step", take_step, &n));
            for (int i = 0; i < 20; i++)
                assert_ok(ditto_coordinator_schedule(c, "take_step", NULL, NULL, NULL));
            assert_ok(ditto_coordinator_join(c));
            read_all(&n, found);
            assert_memory_equal(found, expected, sizeof found);
            ditto_variable *iterations, *slot;
            int64_t steps;
            if (tries[k].rule == DITTO_RULE_ADAM) {
                double moments[ROWS * WIDTH];
                assert_ok(ditto_optimizer_slot(n.optimizer, 0, "v", &slot));
                assert_int_equal(properties_of(slot).num_shards, shards);
                assert_int_equal(shard_of(slot, 0).version, 20);
                assert_ok(ditto_variable_read(slot, moments, sizeof moments));
                assert_true(moments[0] > 0);
            }
            iterations = iterations_of(n.optimizer);
            assert_ok(ditto_variable_read(iterations, &steps, sizeof steps));
            assert_int_equal(steps, 20);
            assert_ok(ditto_coordinator_destroy(c));
            destroy_all(&n);
            assert_ok(ditto_strategy_destroy(servers));
            assert_ok(ditto_function_unregister("take_step"));
        }
}

/* The slot of a parameter with shards has the same shards, whatever its parameter allows at the same time. */
static void rows_of_a_slot_are_in_the_shards_of_its_parameter(void **state)
{
    static const size_t num_shards[] = { 1, 3, 7 };
    int64_t indices[] = { ROWS - 1, 0, 5, 20 };
    for (int k = 0; k < 6; k++) {
        ditto_strategy *servers;
        ditto_variable *table, *slot;
        ditto_optimizer *optimizer;
        double rows[4 * WIDTH], found[4 * WIDTH];
        ditto_tensor zeros = { .dtype = DITTO_F64, .rank = 2, .shape = { ROWS, WIDTH } };
        ditto_variable_options cut = OPTIONS(
            variable, .concurrency = k % 2 == 0 ? DITTO_CONCURRENCY_LOCKED : DITTO_CONCURRENCY_FREE_READS,
            .partitioner = { .kind = DITTO_PARTITION_FIXED, .num_shards = num_shards[k / 2] });
        assert_ok(
            ditto_strategy_create(DITTO_PARAMETER_SERVER, &OPTIONS(strategy, .num_replicas = 2), &servers));
        assert_ok(ditto_variable_create(servers, &zeros, &cut, &table));
        assert_ok(ditto_optimizer_create(
            &table, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_SGD, .momentum = 0.9), &optimizer));
        assert_ok(ditto_optimizer_slot(optimizer, 0, "momentum", &slot));
        for (int i = 0; i < 4 * WIDTH; i++)
            rows[i] = i + 1;
        for (int count = 1; count <= 4; count += 3) { /* one row is not sorted */
            size_t bytes = (size_t)count * WIDTH * sizeof *rows;
            ditto_slices slices = { .indices = indices,
                                    .values = rows,
                                    .rows = (size_t)count,
                                    .row_count = WIDTH,
                                    .dtype = DITTO_F64 };
            assert_ok(ditto_variable_scatter(slot, DITTO_SCATTER_UPDATE, &slices));
            assert_ok(ditto_variable_lookup(slot, indices, (size_t)count, found, bytes));
            assert_memory_equal(found, rows, bytes);
        }
        assert_ok(ditto_optimizer_destroy(optimizer));
        assert_ok(ditto_variable_destroy(table));
        assert_ok(ditto_strategy_destroy(servers));
    }
}

/* Gradients of ones for the table, and of `of_bias` for the bias. */
struct gradients {
    double table[ROWS * WIDTH], bias[WIDTH];
    ditto_tensor tensor[2];
};

static void set_gradients(struct gradients *g, double of_bias)
{
    g->tensor[0] = (ditto_tensor){
        .data = g->table, .dtype = DITTO_F64, .rank = 2, .shape = { ROWS, WIDTH }
    };
    g->tensor[1] = (ditto_tensor){ .data = g->bias, .dtype = DITTO_F64, .rank = 1, .shape = { WIDTH } };
    for (int i = 0; i < ROWS * WIDTH; i++)
        g->table[i] = 1;
    for (int i = 0; i < WIDTH; i++)
        g->bias[i] = of_bias;
}

/* Workers with an optimizer, and a function that they execute. */
struct training {
    ditto_strategy *strategy;
    ditto_coordinator *coordinator;
    struct step_numbers n;
    const char *name;
};

static void begin_training(struct training *t, uint32_t workers, uint32_t replicas,
                           const ditto_optimizer_options *rule, const char *name, ditto_replica_fn function,
                           uint32_t timeout_ms)
{
    t->name = name;
    assert_ok(ditto_strategy_create(DITTO_PARAMETER_SERVER,
                                    &OPTIONS(strategy, .num_replicas = workers * replicas,
                                             .replicas_per_worker = replicas, .timeout_ms = timeout_ms),
                                    &t->strategy));
    make_variables(t->strategy, 5, rule, &t->n);
    assert_ok(ditto_coordinator_create(t->strategy, NULL, &t->coordinator));
    assert_ok(ditto_function_register(name, function, &t->n));
}

static void train(const struct training *t, int times)
{
    for (int i = 0; i < times; i++)
        assert_ok(ditto_coordinator_schedule(t->coordinator, t->name, NULL, NULL, NULL));
    assert_ok(ditto_coordinator_join(t->coordinator));
}

static void end_training(struct training *t)
{
    assert_ok(ditto_coordinator_destroy(t->coordinator));
    destroy_all(&t->n);
    assert_ok(ditto_strategy_destroy(t->strategy));
    assert_ok(ditto_function_unregister(t->name));
}

static ditto_status push_ones(ditto_replica *self, void *user)
{
    struct step_numbers *n = user;
    struct gradients g;
    set_gradients(&g, ditto_replica_id(self));
    return ditto_apply(self, n->optimizer, g.tensor, NULL);
}

static void rule_12_12_steps_of_many_workers_are_all_applied(void **state)
{
    const uint32_t shapes[][2] = { { 2, 1 }, { 3, 1 }, { 8, 1 }, { 2, 2 }, { 2, 3 }, { 1, 8 } };
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        uint32_t workers = shapes[k][0], replicas = shapes[k][1];
        int times = test_trials(200);
        double found[(ROWS + 1) * WIDTH];
        struct training t;
        begin_training(&t, workers, replicas, &OPTIONS(optimizer, .rule = DITTO_RULE_ADD), "push_ones",
                       push_ones, 0);
        train(&t, times);
        read_all(&t.n, found);
        for (int i = 0; i < ROWS * WIDTH; i++)
            assert_true(found[i] == (double)times * replicas);
        for (int i = 0; i < WIDTH; i++)
            assert_true(found[ROWS * WIDTH + i] == times * (replicas * (replicas - 1) / 2.0));
        end_training(&t);
    }
}

/* -- gathering, and gradients that are too old -- */

/* Pushes gradients that are said to come from step `step`. */
static ditto_status push_from_step(ditto_replica *self, void *user)
{
    struct step_numbers *n = user;
    struct gradients g;
    int dropped = -1;
    int64_t steps;
    double norm = -1;
    set_gradients(&g, 2);
    DITTO_TRY(ditto_optimizer_steps(self, n->optimizer, &steps));
    ditto_apply_options options = OPTIONS(apply, .read_steps = (int64_t)n->step, .has_read_steps = 1,
                                          .dropped = &dropped, .norm = &norm);
    DITTO_TRY(ditto_apply(self, n->optimizer, g.tensor, &options));
    DITTO_TRY(ditto_return_f64(self, "steps", (double)steps));
    DITTO_TRY(ditto_return_f64(self, "norm", norm));
    return ditto_return_f64(self, "dropped", dropped);
}

static double member_f64(const ditto_value *value, const char *name)
{
    const ditto_value *member;
    double number;
    assert_ok(ditto_value_member(value, name, &member));
    assert_ok(ditto_value_f64(member, &number));
    return number;
}

static void rule_12_12_gradients_are_gathered(void **state)
{
    const uint32_t shapes[][2] = { { 1, 1 }, { 2, 1 }, { 3, 1 }, { 8, 1 }, { 2, 3 } };
    for (size_t k = 0; k < 2 * sizeof shapes / sizeof shapes[0]; k++) {
        uint32_t workers = shapes[k / 2][0], replicas = shapes[k / 2][1];
        bool mean = k % 2 != 0;
        double found[(ROWS + 1) * WIDTH];
        ditto_variable *iterations;
        struct training t;
        int64_t steps;
        ditto_optimizer_options adding = OPTIONS(optimizer, .rule = DITTO_RULE_ADD,
                                                 .op = mean ? DITTO_MEAN : DITTO_SUM, .accumulate = 3);
        begin_training(&t, workers, replicas, &adding, "push_ones", push_ones, 0);
        train(&t, 20); /* six steps, and two gradients that wait for a third */
        read_all(&t.n, found);
        assert_true(found[0] == (mean ? 6 : 18 * replicas) && found[ROWS * WIDTH - 1] == found[0]);
        assert_int_equal(shard_of(t.n.table, 4).version, 6);
        iterations = iterations_of(t.n.optimizer);
        assert_ok(ditto_variable_read(iterations, &steps, sizeof steps));
        assert_int_equal(steps, 6);
        end_training(&t);
    }
}

static _Atomic int has_given_up;

/* Pushes ones, and notes that replica 1 gives up, because replica 0 is late or its own wait had a limit. */
static ditto_status push_or_note(ditto_replica *self, void *user)
{
    ditto_status status = push_ones(self, user);
    if (status < 0 && ditto_replica_id(self) == 1)
        atomic_store(&has_given_up, 1);
    return status;
}

/* Replica 0 cannot take a number until replica 1 has given up. Its gradients count as those of other calls,
 * in each shard. */
static void rule_12_12_a_call_that_fails_leaves_no_shard_behind(void **state)
{
    ditto_optimizer_options adding = OPTIONS(optimizer, .rule = DITTO_RULE_ADD, .accumulate = 3);
    struct training t;
    ditto_value *value;
    ditto_remote *remote;
    int64_t steps;
    begin_training(&t, 1, 2, &adding, "push_or_note", push_or_note, SANITIZED ? 2000 : 500);
    train(&t, 1);
    ditto_variable *iterations = iterations_of(t.n.optimizer);
    atomic_store(&has_given_up, 0);
    assert_ok(dti_shard_lock(iterations, 0));
    assert_ok(ditto_coordinator_schedule(t.coordinator, "push_or_note", NULL, NULL, &remote));
    while (!atomic_load(&has_given_up))
        sleep_ms(1);
    dti_shard_unlock(iterations, 0);
    for (int done = 0; !done; sleep_ms(1))
        assert_ok(ditto_remote_test(remote, &done));
    assert_status(ditto_remote_fetch(remote, &value), DITTO_ERR_TIMED_OUT);
    assert_status(ditto_coordinator_join(t.coordinator), DITTO_ERR_TIMED_OUT);
    assert_ok(ditto_remote_destroy(remote));
    train(&t, 19);
    assert_ok(ditto_variable_read(iterations, &steps, sizeof steps));
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(shard_of(t.n.table, i).version, steps);
    end_training(&t);
}

static ditto_optimizer_options with_max_staleness(int64_t max_staleness)
{
    return OPTIONS(optimizer, .rule = DITTO_RULE_ADD, .max_staleness = max_staleness, .has_max_staleness = 1);
}

static void rule_12_12_old_gradients_are_dropped(void **state)
{
    double found[(ROWS + 1) * WIDTH];
    ditto_optimizer_options two = with_max_staleness(2);
    struct training t;
    begin_training(&t, 2, 1, &two, "push_from_step", push_from_step, 0);
    for (int i = 0; i < 6; i++) { /* all from step 0: ages 0, 1 and 2 are applied */
        ditto_remote *remote;
        ditto_value *value;
        assert_ok(ditto_coordinator_schedule(t.coordinator, "push_from_step", NULL, NULL, &remote));
        assert_ok(ditto_remote_fetch(remote, &value));
        assert_true(member_f64(value, "dropped") == (i > 2));
        assert_true(member_f64(value, "steps") == (i < 3 ? i : 3));
        assert_true(member_f64(value, "norm") == sqrt(ROWS * WIDTH + 4 * WIDTH));
        assert_ok(ditto_value_destroy(value));
        assert_ok(ditto_remote_destroy(remote));
    }
    read_all(&t.n, found);
    assert_true(found[0] == 3 && found[ROWS * WIDTH] == 6);
    /* A step that does not say what its gradients come from. */
    assert_ok(ditto_function_register("take_step", take_step, &t.n));
    assert_ok(ditto_coordinator_schedule(t.coordinator, "take_step", NULL, NULL, NULL));
    assert_status(ditto_coordinator_join(t.coordinator), DITTO_ERR_INVALID);
    assert_message("read_steps");
    assert_ok(ditto_function_unregister("take_step"));
    t.n.step = (uint64_t)INT64_MIN;
    assert_ok(ditto_coordinator_schedule(t.coordinator, "push_from_step", NULL, NULL, NULL));
    assert_status(ditto_coordinator_join(t.coordinator), DITTO_ERR_RANGE);
    end_training(&t);
}

static ditto_status give_dropped(ditto_replica *self, void *user)
{
    double gradient = 0;
    int dropped = 0;
    ditto_tensor t = { .data = &gradient, .dtype = DITTO_F64 };
    ditto_apply_options options = OPTIONS(apply, .dropped = &dropped);
    assert_status(ditto_apply(self, user, &t, &options), DITTO_ERR_INVALID);
    assert_message("dropped");
    assert_status(ditto_apply_finish(self, user, &options), DITTO_ERR_INVALID);
    assert_message("dropped");
    return DITTO_OK;
}

/* Replicas that work in step gather no gradients and have no old ones. */
static void rule_12_12_only_parameters_have_old_gradients(void **state)
{
    ditto_strategy *mirrored = make_strategy(1, NULL);
    ditto_optimizer_options adding = with_max_staleness(2);
    ditto_optimizer *optimizer;
    ditto_variable *variable;
    ditto_tensor t = { .dtype = DITTO_F64 };
    assert_ok(ditto_variable_create(mirrored, &t, NULL, &variable));
    assert_status(ditto_optimizer_create(&variable, 1, &adding, &optimizer), DITTO_ERR_INVALID);
    adding.has_max_staleness = 0;
    assert_status(ditto_optimizer_create(&variable, 1, &adding, &optimizer), DITTO_ERR_INVALID);
    adding.max_staleness = 0;
    adding.accumulate = 2;
    assert_status(ditto_optimizer_create(&variable, 1, &adding, &optimizer), DITTO_ERR_INVALID);
    assert_message("accumulate");
    adding.accumulate = 0;
    assert_ok(ditto_optimizer_create(&variable, 1, &adding, &optimizer));
    assert_ok(ditto_strategy_run(mirrored, give_dropped, optimizer));
    assert_ok(ditto_optimizer_destroy(optimizer));
    assert_ok(ditto_variable_destroy(variable));
    assert_ok(ditto_strategy_destroy(mirrored));
}

static ditto_status start_parts(ditto_replica *self, void *user)
{
    struct step_numbers *n = user;
    double bias[WIDTH] = { 0 };
    ditto_tensor gradient = { .data = bias, .dtype = DITTO_F64, .rank = 1, .shape = { WIDTH } };
    return ditto_apply_start(self, n->optimizer, 1, 1, &gradient, NULL);
}

static void rule_12_12_steps_in_parts_are_refused(void **state)
{
    ditto_strategy *strategy;
    ditto_coordinator *c;
    struct step_numbers n;
    assert_ok(
        ditto_strategy_create(DITTO_PARAMETER_SERVER, &OPTIONS(strategy, .num_replicas = 2), &strategy));
    make_variables(strategy, 2, &OPTIONS(optimizer, .rule = DITTO_RULE_ADD), &n);
    assert_ok(ditto_coordinator_create(strategy, NULL, &c));
    assert_ok(ditto_function_register("start_parts", start_parts, &n));
    assert_ok(ditto_coordinator_schedule(c, "start_parts", NULL, NULL, NULL));
    assert_status(ditto_coordinator_join(c), DITTO_ERR_UNSUPPORTED);
    assert_ok(ditto_coordinator_destroy(c));
    destroy_all(&n);
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- a rule that never returns -- */

static _Atomic int rule_hangs, use_has_ended;
static ditto_status used[6];

/* Adds the gradient, but hangs in the table. */
static void hang(const ditto_rule_range *range, void *user)
{
    double *value = range->value;
    const double *gradient = range->gradient;
    if (range->count > WIDTH) { /* a part of the table */
        atomic_store(&rule_hangs, 1);
        for (;;)
            sleep_ms(100);
    }
    for (size_t i = 0; i < range->count; i++)
        value[i] += gradient[i];
}

/* Calls what needs the lock of the table's shard. */
static ditto_status use_locked(ditto_replica *self, void *user)
{
    struct step_numbers *n = user;
    double table[ROWS * WIDTH] = { 0 }, bias[WIDTH] = { 1 };
    int64_t row = 0;
    ditto_slices slices = {
        .rows = 1, .row_count = WIDTH, .dtype = DITTO_F64, .indices = &row, .values = table
    };
    ditto_tensor gradients[2] = {
        { .data = table, .dtype = DITTO_F64, .rank = 2, .shape = { ROWS, WIDTH } },
        { .data = bias, .dtype = DITTO_F64, .rank = 1, .shape = { WIDTH } },
    };
    used[0] = ditto_pull(self, n->table, NULL, table);
    used[1] = ditto_pull_rows(self, n->table, &row, 1, NULL, table);
    used[2] = ditto_lookup(self, n->table, &row, 1, table);
    used[3] = ditto_assign(self, n->table, DITTO_ASSIGN, table);
    used[4] = ditto_scatter(self, n->table, DITTO_SCATTER_ADD, &slices);
    used[5] = ditto_apply(self, n->optimizer, gradients, NULL);
    atomic_store(&use_has_ended, 1);
    return DITTO_OK;
}

/* The table has one shard, and the thread that is in the rule has its lock. */
static int use_hanging_rule(void *unused)
{
    static struct step_numbers n;
    ditto_strategy *strategy;
    ditto_coordinator *c;
    double table[ROWS * WIDTH] = { 0 }, bias[WIDTH];
    int64_t row = 0;
    ditto_slices slices = {
        .rows = 1, .row_count = WIDTH, .dtype = DITTO_F64, .indices = &row, .values = table
    };
    REQUIRE(ditto_strategy_create(DITTO_PARAMETER_SERVER,
                                  &OPTIONS(strategy, .num_replicas = 2, .timeout_ms = 300),
                                  &strategy) == DITTO_OK);
    make_variables(strategy, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_FUNCTION, .function = hang), &n);
    REQUIRE(ditto_coordinator_create(strategy, NULL, &c) == DITTO_OK);
    REQUIRE(ditto_function_register("take_step", take_step, &n) == DITTO_OK);
    REQUIRE(ditto_function_register("use_locked", use_locked, &n) == DITTO_OK);
    REQUIRE(ditto_coordinator_schedule(c, "take_step", NULL, NULL, NULL) == DITTO_OK);
    while (!atomic_load(&rule_hangs))
        sleep_ms(1);
    REQUIRE(ditto_variable_read(n.table, table, sizeof table) == DITTO_ERR_TIMED_OUT);
    REQUIRE(strstr(ditto_last_error()->message, "the lock of shard 0") != NULL);
    REQUIRE(ditto_variable_assign(n.table, DITTO_ASSIGN, table, sizeof table) == DITTO_ERR_TIMED_OUT);
    REQUIRE(ditto_variable_lookup(n.table, &row, 1, table, WIDTH * sizeof *table) == DITTO_ERR_TIMED_OUT);
    REQUIRE(ditto_variable_scatter(n.table, DITTO_SCATTER_ADD, &slices) == DITTO_ERR_TIMED_OUT);
    REQUIRE(ditto_variable_read(n.bias, bias, sizeof bias) == DITTO_OK); /* its lock is free */
    REQUIRE(ditto_coordinator_schedule(c, "use_locked", NULL, NULL, NULL) == DITTO_OK);
    while (!atomic_load(&use_has_ended))
        sleep_ms(1);
    for (int i = 0; i < 6; i++)
        REQUIRE(used[i] == DITTO_ERR_TIMED_OUT);
    REQUIRE(ditto_variable_read(n.bias, bias, sizeof bias) == DITTO_OK);
    REQUIRE(bias[0] == 1); /* the step has updated the other variable */
    REQUIRE(ditto_coordinator_destroy(c) == DITTO_ERR_POISONED);
    return 0;
}

static void rule_12_11_waiting_for_a_rule_has_a_limit(void **state)
{
    assert_int_equal(in_child(use_hanging_rule, NULL, 60), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_12_2_parameters_in_cross_replica_context),
        cmocka_unit_test(rule_12_10_the_elements_of_a_shard_belong_to_one_version),
        cmocka_unit_test(rule_12_11_no_update_of_rows_is_lost),
        cmocka_unit_test(rule_12_10_wrong_uses),
        cmocka_unit_test(rule_12_12_one_worker_has_the_bits_of_one_replica),
        cmocka_unit_test(rule_12_12_steps_of_many_workers_are_all_applied),
        cmocka_unit_test(rule_12_12_gradients_are_gathered),
        cmocka_unit_test(rule_12_12_a_call_that_fails_leaves_no_shard_behind),
        cmocka_unit_test(rule_12_12_old_gradients_are_dropped),
        cmocka_unit_test(rule_12_12_only_parameters_have_old_gradients),
        cmocka_unit_test(rows_of_a_slot_are_in_the_shards_of_its_parameter),
        cmocka_unit_test(rule_12_12_steps_in_parts_are_refused),
        cmocka_unit_test(rule_12_11_waiting_for_a_rule_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
