/* tests/hosts/test_host_cross_faults.c - cross calls that fail on one host fail on all hosts, with one error,
 * and the next call works. */
#include "support/host_programs.h"
#include "vars/registry/registry.h"

#include <unistd.h>

enum { COUNT = 100, TRIALS = 3 };

/* A variable, whose values are read and written between the failures. */
static ditto_status make(struct test_host *host, ditto_strategy **strategy, ditto_variable **v)
{
    DITTO_TRY(make_host_strategy(host, 2, &OPTIONS(strategy, .timeout_ms = 20000), strategy));
    return program_variable(*strategy, "v", DITTO_ON_READ, DITTO_AGGREGATE_SUM, DITTO_F32, COUNT, NULL, v);
}

static ditto_status add_ones(ditto_replica *self, void *argument)
{
    float ones[COUNT];
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    return ditto_assign(self, argument, DITTO_ASSIGN_ADD, ones);
}

/* All hosts run, and read the sum of their components. */
static ditto_status works(struct test_host *host, ditto_strategy *strategy, ditto_variable *v)
{
    float zeros[COUNT] = { 0 }, found[COUNT];
    DITTO_TRY(ditto_variable_assign(v, DITTO_ASSIGN, zeros, sizeof zeros));
    DITTO_TRY(ditto_strategy_run(strategy, add_ones, v));
    DITTO_TRY(ditto_variable_read(v, found, sizeof found));
    CHECK(host, found[0] == 2.0f * (float)host->hosts && found[COUNT - 1] == found[0]);
    return DITTO_OK;
}

static ditto_status end(ditto_strategy *strategy, ditto_variable *v)
{
    DITTO_TRY(ditto_variable_destroy(v));
    return ditto_strategy_destroy(strategy);
}

/* A fault, after which all calls work. It is tried several times. */
typedef ditto_status fault_fn(struct test_host *host, ditto_strategy *strategy, ditto_variable *v);

static ditto_status try_fault(struct test_host *host)
{
    fault_fn *const *fault = host->argument;
    ditto_strategy *strategy;
    ditto_variable *v;
    DITTO_TRY(make(host, &strategy, &v));
    for (int i = 0; i < TRIALS; i++) {
        DITTO_TRY((*fault)(host, strategy, v));
        DITTO_TRY(works(host, strategy, v));
    }
    return end(strategy, v);
}

static void try_faults(fault_fn *const *faults, size_t count)
{
    for (size_t i = 0; i < count; i++)
        on_hosts(3, 100, try_fault, (void *)(uintptr_t)&faults[i]);
}

/* -- arguments that differ -- */

static ditto_status assigns_other_bytes(struct test_host *host, ditto_strategy *strategy, ditto_variable *v)
{
    float value[COUNT] = { 0 };
    value[7] = host->host == 1;
    return expect(host, ditto_variable_assign(v, DITTO_ASSIGN, value, sizeof value), DITTO_ERR_DIVERGED,
                  "calls ditto_variable_assign of \"v\"");
}

static ditto_status assigns_by_another_operation(struct test_host *host, ditto_strategy *strategy,
                                                 ditto_variable *v)
{
    float value[COUNT] = { 0 };
    ditto_assign_op op = host->host == 1 ? DITTO_ASSIGN_ADD : DITTO_ASSIGN;
    return expect(host, ditto_variable_assign(v, op, value, sizeof value), DITTO_ERR_DIVERGED,
                  "calls ditto_variable_assign of \"v\"");
}

static ditto_status creates_another_shape(struct test_host *host, ditto_strategy *strategy, ditto_variable *v)
{
    ditto_variable *w;
    ditto_status status = program_variable(strategy, "w", DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_F32,
                                           host->host == 2 ? 11 : 10, NULL, &w);
    return expect(host, status, DITTO_ERR_DIVERGED, "ditto_variable_create of \"w\"");
}

static ditto_status makes_another_call(struct test_host *host, ditto_strategy *strategy, ditto_variable *v)
{
    float value[COUNT] = { 0 };
    ditto_status status = host->host == 1 ? ditto_variable_read(v, value, sizeof value)
                                          : ditto_strategy_run(strategy, add_ones, v);
    return expect(host, status, DITTO_ERR_DIVERGED, "the same calls");
}

static ditto_status iterates_other_rows(struct test_host *host, ditto_strategy *strategy, ditto_variable *v)
{
    ditto_dataset *rows, *batches;
    ditto_iterator *iterator;
    float values[COUNT] = { 0 };
    values[3] = host->host == 1;
    ditto_tensor data = { .data = values, .dtype = DITTO_F32, .rank = 1, .shape = { COUNT } };
    DITTO_TRY(ditto_dataset_from_arrays(&data, 1, &rows));
    DITTO_TRY(ditto_dataset_batch(rows, host->host == 2 ? 20 : 10, 0, &batches));
    DITTO_TRY(expect(host, ditto_strategy_iterate(strategy, batches, NULL, &iterator), DITTO_ERR_DIVERGED,
                     "ditto_strategy_iterate"));
    DITTO_TRY(ditto_dataset_destroy(batches));
    DITTO_TRY(ditto_dataset_destroy(rows));
    return DITTO_OK;
}

static ditto_status return_name(ditto_replica *self, void *argument)
{
    return ditto_return_f64(self, argument, 1);
}

static ditto_status reduces_otherwise(struct test_host *host, ditto_strategy *strategy, ditto_variable *v)
{
    ditto_value *results, *reduced;
    bool odd = host->host == 1;
    ditto_result_op request = { .name = odd ? "b" : "a", .op = DITTO_SUM };
    ditto_status status = ditto_strategy_run_values(strategy, return_name, odd ? "b" : "a", NULL,
                                                    &OPTIONS(run, .reduce = &request, .num_reduce = 1),
                                                    &results);
    DITTO_TRY(expect(host, status, DITTO_ERR_DIVERGED, "the results of a run"));
    DITTO_TRY(works(host, strategy, v));
    DITTO_TRY(ditto_strategy_run_values(strategy, return_name, "a", NULL, NULL, &results));
    DITTO_TRY(expect(host,
                     ditto_strategy_reduce(strategy, odd ? DITTO_MAX : DITTO_SUM, results, NULL, 0, &reduced),
                     DITTO_ERR_DIVERGED, "ditto_strategy_reduce"));
    DITTO_TRY(ditto_value_destroy(results));
    return DITTO_OK;
}

/* Two variables that agree in all but their names. */
static ditto_status reduces_another_variable(struct test_host *host, ditto_strategy *strategy,
                                             ditto_variable *v)
{
    ditto_variable *other;
    ditto_value *value, *reduced;
    DITTO_TRY(program_variable(strategy, "other", DITTO_ON_READ, DITTO_AGGREGATE_SUM, DITTO_F32, COUNT, NULL,
                               &other));
    DITTO_TRY(ditto_variable_value(host->host == 1 ? other : v, &value));
    DITTO_TRY(expect(host, ditto_strategy_reduce(strategy, DITTO_SUM, value, NULL, 0, &reduced),
                     DITTO_ERR_DIVERGED, "ditto_strategy_reduce of \"other\""));
    DITTO_TRY(works(host, strategy, v));
    /* Nests whose members agree in all but their names. */
    const char *name = host->host == 1 ? "accuracy" : "loss";
    ditto_value *nest, *own;
    DITTO_TRY(ditto_value_destroy(value));
    DITTO_TRY(ditto_variable_value(v, &own));
    DITTO_TRY(ditto_strategy_nest(strategy, &name, (const ditto_value *[]){ own }, 1, &nest));
    DITTO_TRY(expect(host, ditto_strategy_reduce(strategy, DITTO_SUM, nest, NULL, 0, &reduced),
                     DITTO_ERR_DIVERGED, "ditto_strategy_reduce of \"v\""));
    DITTO_TRY(ditto_value_destroy(nest));
    DITTO_TRY(ditto_value_destroy(own));
    return ditto_variable_destroy(other);
}

static ditto_status count_call(const ditto_tensor *copy, const ditto_tensor *arguments,
                               uint32_t num_arguments, void *user, ditto_tensor *result)
{
    *(int *)user += 1; /* one replica a host */
    return DITTO_OK;
}

/* Which argument of an update is per-replica differs. No function is called. */
static ditto_status updates_otherwise(struct test_host *host)
{
    ditto_strategy *strategy;
    ditto_variable *v;
    ditto_value *plain, *each;
    double one = 1;
    int calls = 0;
    ditto_tensor t = { .data = &one, .dtype = DITTO_F64 };
    DITTO_TRY(make_host_strategy(host, 1, NULL, &strategy));
    DITTO_TRY(
        program_variable(strategy, "w", DITTO_ON_WRITE, DITTO_AGGREGATE_NONE, DITTO_F64, COUNT, NULL, &v));
    DITTO_TRY(ditto_strategy_value(strategy, &t, &plain));
    DITTO_TRY(ditto_strategy_value_from_tensors(strategy, &t, 1, &each));
    for (int i = 0; i < TRIALS; i++) {
        const ditto_value *arguments[2] = { plain, each }, *exchanged[2] = { each, plain };
        DITTO_TRY(expect(host,
                         ditto_variable_update(v, count_call, &calls, host->host == 1 ? exchanged : arguments,
                                               2, NULL, NULL),
                         DITTO_ERR_DIVERGED, "ditto_variable_update"));
        CHECK(host, calls == 0);
    }
    DITTO_TRY(ditto_variable_update(v, count_call, &calls, (const ditto_value *[]){ each }, 1, NULL, NULL));
    CHECK(host, calls == 1);
    DITTO_TRY(ditto_value_destroy(plain));
    DITTO_TRY(ditto_value_destroy(each));
    return end(strategy, v);
}

static ditto_status reduces_to_another_replica(struct test_host *host, ditto_strategy *strategy,
                                               ditto_variable *v)
{
    ditto_value *slices, *reduced;
    int64_t index = 3;
    float row[2] = { 1, 2 };
    const ditto_slices own = { &index, row, 1, 2, DITTO_F32 }, of_both[2] = { own, own };
    DITTO_TRY(ditto_strategy_value_from_slices(strategy, of_both, 0, &slices));
    ditto_destination to = { .replica = host->host == 1 };
    DITTO_TRY(expect(
        host,
        ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ slices }, &to, 1, &reduced),
        DITTO_ERR_DIVERGED, "ditto_strategy_reduce_to"));
    DITTO_TRY(ditto_value_destroy(slices));
    return DITTO_OK;
}

static void arguments_that_differ_are_diverged_on_all(void **state)
{
    static fault_fn *const faults[] = {
        assigns_other_bytes,        assigns_by_another_operation, creates_another_shape,
        makes_another_call,         iterates_other_rows,          reduces_otherwise,
        reduces_to_another_replica, reduces_another_variable,
    };
    try_faults(faults, sizeof faults / sizeof faults[0]);
    on_hosts(3, 100, updates_otherwise, NULL);
}

/* -- errors of one host -- */

static ditto_status gives_a_wrong_size(struct test_host *host, ditto_strategy *strategy, ditto_variable *v)
{
    float value[COUNT] = { 0 };
    size_t bytes = host->host == 1 ? 4 : sizeof value;
    DITTO_TRY(expect(host, ditto_variable_read(v, value, bytes), DITTO_ERR_SHAPE, "has 400 bytes, but dst"));
    DITTO_TRY(expect(host, ditto_variable_assign(v, DITTO_ASSIGN, value, bytes), DITTO_ERR_SHAPE,
                     "has 400 bytes, but value"));
    return DITTO_OK;
}

static ditto_status refuse(const ditto_tensor *value, size_t first_row, void *user)
{
    return ditto_fail(NULL, 3, "no initial value today");
}

static ditto_status cannot_initialize(struct test_host *host, ditto_strategy *strategy, ditto_variable *v)
{
    ditto_variable *w;
    ditto_tensor spec = { .dtype = DITTO_F32, .rank = 1, .shape = { 5 } };
    return expect(
        host,
        ditto_variable_create(strategy, &spec, &OPTIONS(variable, .name = "w", .initialize = refuse), &w),
        DITTO_ERR_USER, "no initial value today");
}

/* Holds ones until a variable of the name is created. All hosts call it. */
static ditto_status hold(ditto_strategy *strategy, const char *name, size_t count)
{
    float ones[COUNT];
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    struct dti_named_value value = {
        .name = name, .value = { .data = ones, .dtype = DITTO_F32, .rank = 1, .shape = { count } }
    };
    return dti_restore_values(strategy, &value, 1);
}

/* The value that is held on host 1 for a variable or a slot does not fit. The others have created theirs when
 * they hear of it. */
static ditto_status keeps_held_values(struct test_host *host, ditto_strategy *strategy, ditto_variable *v)
{
    ditto_variable *w, *momentum;
    ditto_optimizer *optimizer;
    ditto_optimizer_options sgd = OPTIONS(optimizer, .name = "o", .rule = DITTO_RULE_SGD, .momentum = 0.5);
    float zeros[COUNT] = { 0 }, found[COUNT];
    ditto_tensor initial = { .data = zeros, .dtype = DITTO_F32, .rank = 1, .shape = { COUNT } };
    ditto_variable_options called_w = OPTIONS(variable, .name = "w");
    size_t fits = host->host == 1 ? 5 : COUNT;
    DITTO_TRY(hold(strategy, "w", fits));
    DITTO_TRY(hold(strategy, "o/momentum/w", fits));
    DITTO_TRY(expect(host, ditto_variable_create(strategy, &initial, &called_w, &w), DITTO_ERR_SHAPE,
                     "the value that was restored for it"));
    DITTO_TRY(hold(strategy, host->host == 1 ? "w" : "other", COUNT));
    DITTO_TRY(ditto_variable_create(strategy, &initial, &called_w, &w));
    DITTO_TRY(ditto_variable_read(w, found, sizeof found));
    CHECK(host, found[0] == 1 && found[COUNT - 1] == 1);
    DITTO_TRY(expect(host, ditto_optimizer_create(&w, 1, &sgd, &optimizer), DITTO_ERR_SHAPE,
                     "the value that was restored for it"));
    DITTO_TRY(hold(strategy, host->host == 1 ? "o/momentum/w" : "other", COUNT));
    DITTO_TRY(ditto_optimizer_create(&w, 1, &sgd, &optimizer));
    DITTO_TRY(ditto_optimizer_slot(optimizer, 0, "momentum", &momentum));
    DITTO_TRY(ditto_variable_read(momentum, found, sizeof found));
    CHECK(host, found[0] == 1 && found[COUNT - 1] == 1);
    DITTO_TRY(ditto_optimizer_destroy(optimizer));
    return ditto_variable_destroy(w);
}

static ditto_status fails_on_host_1(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                    void *user, ditto_value **result)
{
    const struct test_host *host = user;
    double sum;
    DITTO_TRY(ditto_strategy_reduce_f64(strategy, DITTO_SUM, arguments[0], &sum));
    if (host->host == 1)
        return ditto_fail(NULL, 4, "host 1 does not merge");
    return ditto_strategy_reduce_f64(strategy, DITTO_SUM, arguments[0], &sum);
}

/* Goes on after the error of a call, which all hosts have noticed. */
static ditto_status goes_on(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                            void *user, ditto_value **result)
{
    (void)fails_on_host_1(strategy, arguments, count, user, result);
    return DITTO_OK;
}

/* All hosts get an error, and go on as if there were none. */
static ditto_status reduces_other_ops(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                      void *user, ditto_value **result)
{
    const struct test_host *host = user;
    double x;
    ditto_status status = ditto_strategy_reduce_f64(strategy, host->host == 1 ? DITTO_MAX : DITTO_SUM,
                                                    arguments[0], &x);
    CHECK(host, status == DITTO_ERR_DIVERGED);
    status = ditto_strategy_reduce_f64(strategy, DITTO_SUM, arguments[0], &x);
    CHECK(host, status == DITTO_ERR_DIVERGED);
    return DITTO_OK;
}

static ditto_status merges(ditto_replica *self, ditto_merge_fn function, void *argument)
{
    double x = 1;
    ditto_tensor one = { .data = &x, .dtype = DITTO_F64 };
    DITTO_TRY(ditto_merge_call(self, function, argument, &one, 1, NULL));
    return ditto_barrier(self, NULL);
}

static ditto_status merge_failing(ditto_replica *self, void *argument)
{
    return merges(self, fails_on_host_1, argument);
}

static ditto_status merge_going_on(ditto_replica *self, void *argument)
{
    return merges(self, goes_on, argument);
}

static ditto_status merge_swallowing(ditto_replica *self, void *argument)
{
    double x = 1;
    ditto_tensor one = { .data = &x, .dtype = DITTO_F64 };
    return ditto_merge_call(self, reduces_other_ops, argument, &one, 1, NULL);
}

static ditto_status merge_functions_fail(struct test_host *host, ditto_strategy *strategy, ditto_variable *v)
{
    DITTO_TRY(expect(host, ditto_strategy_run(strategy, merge_failing, host), DITTO_ERR_USER,
                     "host 1 does not merge"));
    DITTO_TRY(works(host, strategy, v));
    /* Host 1 comes to the barrier while the others are in a reduction. */
    ditto_status status = ditto_strategy_run(strategy, merge_going_on, host);
    DITTO_TRY(expect(host, status, DITTO_ERR_DIVERGED, "the same calls"));
    DITTO_TRY(works(host, strategy, v));
    status = ditto_strategy_run(strategy, merge_swallowing, host);
    return expect(host, status, DITTO_ERR_DIVERGED, "the same calls");
}

/* The others have given up when host 1 comes. It learns that, although their headers say that all is well. */
static ditto_status comes_late(struct test_host *host)
{
    ditto_strategy *strategy;
    ditto_variable *v;
    float ones[COUNT], found[COUNT];
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    DITTO_TRY(make_host_strategy(host, 2, &OPTIONS(strategy, .timeout_ms = 2500), &strategy));
    DITTO_TRY(
        program_variable(strategy, "v", DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_F32, COUNT, NULL, &v));
    if (host->host == 1)
        sleep(4);
    DITTO_TRY(expect(host, ditto_variable_assign(v, DITTO_ASSIGN, ones, sizeof ones), DITTO_ERR_TIMED_OUT,
                     "waited 2500 ms"));
    DITTO_TRY(ditto_variable_read(v, found, sizeof found));
    CHECK(host, found[0] == 0);
    return end(strategy, v);
}

/* A map, which fails on host 1 alone. */
static ditto_status fail_late(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                              void *user)
{
    const struct test_host *host = user;
    int64_t row = *(const int64_t *)in[0].data;
    if (host->host == 1 && row >= 30)
        return ditto_fail(NULL, 6, "host 1 cannot read row %d", (int)row);
    *(int64_t *)out[0].data = row;
    return DITTO_OK;
}

static ditto_status take_all(ditto_replica *self, void *argument)
{
    ditto_batch batch;
    ditto_status status;
    int64_t sum = 0;
    while ((status = ditto_next(self, argument, &batch)) == DITTO_OK) {
        for (uint64_t i = 0; i < batch.rows; i++)
            sum += ((const int64_t *)batch.component[0].data)[i];
        DITTO_TRY(ditto_all_reduce(self, &sum, &sum, 1, DITTO_I64, DITTO_MAX, NULL));
    }
    return status == DITTO_END_OF_INPUT ? DITTO_OK : status;
}

static ditto_status input_fails(struct test_host *host, ditto_strategy *strategy, ditto_variable *v)
{
    ditto_dataset *rows, *mapped, *batches;
    ditto_iterator *iterator;
    DITTO_TRY(ditto_dataset_from_range(0, 100, 1, &rows));
    DITTO_TRY(ditto_dataset_map(rows, fail_late, host, NULL, &mapped));
    DITTO_TRY(ditto_dataset_batch(mapped, 10, 0, &batches));
    DITTO_TRY(ditto_strategy_iterate(strategy, batches, NULL, &iterator));
    DITTO_TRY(expect(host, ditto_strategy_run(strategy, take_all, iterator), DITTO_ERR_USER,
                     "host 1 cannot read row"));
    DITTO_TRY(ditto_iterator_destroy(iterator));
    DITTO_TRY(ditto_dataset_destroy(batches));
    DITTO_TRY(ditto_dataset_destroy(mapped));
    DITTO_TRY(ditto_dataset_destroy(rows));
    return DITTO_OK;
}

static ditto_status add_one_to_all(const ditto_tensor *copy, const ditto_tensor *arguments,
                                   uint32_t num_arguments, void *user, ditto_tensor *result)
{
    for (size_t i = 0; i < elements_in(copy); i++)
        ((float *)copy->data)[i] += 1;
    return DITTO_OK;
}

/* A slot is cut into the parts of the replicas that update it, and only one in one piece can be updated. Host
 * 0 has one replica. */
static ditto_status updates_a_slot(struct test_host *host)
{
    enum { MANY = 100000 };
    ditto_strategy *strategy;
    ditto_variable *v, *slot;
    ditto_optimizer *optimizer;
    static float found[3][MANY];
    DITTO_TRY(make_host_strategy(host, host->host == 0 ? 1 : 3, NULL, &strategy));
    DITTO_TRY(
        program_variable(strategy, "w", DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_F32, MANY, NULL, &v));
    DITTO_TRY(ditto_optimizer_create(&v, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_SGD, .momentum = 0.5),
                                     &optimizer));
    DITTO_TRY(ditto_optimizer_slot(optimizer, 0, "momentum", &slot));
    for (int i = 0; i < TRIALS; i++) {
        DITTO_TRY(expect(host, ditto_variable_update(slot, add_one_to_all, NULL, NULL, 0, NULL, NULL),
                         DITTO_ERR_UNSUPPORTED, "an update of"));
        DITTO_TRY(ditto_variable_read(slot, found[host->host], sizeof found[0]));
        CHECK(host, found[host->host][0] == 0 && found[host->host][MANY - 1] == 0);
    }
    DITTO_TRY(ditto_optimizer_destroy(optimizer));
    return end(strategy, v);
}

/* A value that is the same for all replicas is read without the other hosts, and so are its errors. */
static ditto_status reads_alone(struct test_host *host)
{
    ditto_strategy *strategy;
    ditto_variable *v;
    ditto_value *plain;
    double one = 1, found = 0;
    ditto_tensor t = { .data = &one, .dtype = DITTO_F64 };
    DITTO_TRY(make(host, &strategy, &v));
    DITTO_TRY(ditto_strategy_value(strategy, &t, &plain));
    if (host->host == 1) {
        CHECK(host, ditto_strategy_reduce_f64(strategy, DITTO_SUM, plain, &found) == DITTO_ERR_INVALID);
        DITTO_TRY(ditto_strategy_reduce_f64(strategy, DITTO_MEAN, plain, &found));
        CHECK(host, found == 1);
    }
    DITTO_TRY(works(host, strategy, v));
    DITTO_TRY(ditto_value_destroy(plain));
    return end(strategy, v);
}

static void an_error_of_one_host_is_that_of_all(void **state)
{
    static fault_fn *const faults[] = { gives_a_wrong_size, cannot_initialize, keeps_held_values,
                                        merge_functions_fail, input_fails };
    try_faults(faults, sizeof faults / sizeof faults[0]);
    on_hosts(3, 100, updates_a_slot, NULL);
    on_hosts(3, 100, reads_alone, NULL);
    on_hosts(3, 100, comes_late, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_that_differ_are_diverged_on_all),
        cmocka_unit_test(an_error_of_one_host_is_that_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
