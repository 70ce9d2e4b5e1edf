/* tests/input/distribute/test_producers.c - tests in which context and in which floating-point environment
 * functions of datasets are called, that the default strategy's replica takes batches outside of runs, and
 * that rows behind an error are not delivered. */
#include "input/written_rows.h"

#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static void rest_us(long us)
{
    nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

static ditto_iterator *iterate(ditto_strategy *s, ditto_dataset *d, uint64_t global, uint32_t producers,
                               uint32_t flags)
{
    ditto_iterator *it = NULL;
    ditto_input_options options = OPTIONS(input, .global_batch = global, .num_producers = producers,
                                          .flags = flags, .buffer = 4);
    assert_ok(ditto_strategy_iterate(s, d, &options, &it));
    return it;
}

/* -- context -- */

/* The handles that a function of a dataset uses, and the statuses that its calls return. */
struct caller {
    ditto_strategy *strategy;
    ditto_variable *variable;
    _Atomic(ditto_iterator *) iterator;
    _Atomic int calls;
    ditto_status read, scope, create, run, destroy, next, barrier, save;
    char message[512];
};

static ditto_status do_nothing(ditto_replica *self, void *unused)
{
    return DITTO_OK;
}

static void call_everything(struct caller *c)
{
    float value[4];
    ditto_tensor t = { .data = value, .dtype = DITTO_F32, .rank = 1, .shape = { 4 } };
    ditto_variable *variable;
    ditto_value *batch;
    ditto_iterator *it;
    while ((it = atomic_load(&c->iterator)) == NULL) /* until ditto_strategy_iterate has returned */
        rest_us(100);
    c->barrier = ditto_barrier(ditto_get_replica_context(), NULL);
    c->scope = ditto_strategy_scope_enter(c->strategy);
    c->create = ditto_variable_create(c->strategy, &t, NULL, &variable);
    c->run = ditto_strategy_run(c->strategy, do_nothing, NULL);
    c->destroy = ditto_iterator_destroy(it);
    c->next = ditto_iterator_next(it, &batch);
    c->read = ditto_variable_read(c->variable, value, sizeof value);
    snprintf(c->message, sizeof c->message, "%s", ditto_last_error()->message);
    atomic_fetch_add(&c->calls, 1);
}

static ditto_status map_calls(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                              void *user)
{
    struct caller *c = user;
    call_everything(c);
    memcpy(out->data, in->data, sizeof(int64_t));
    return c->read;
}
static ditto_status filter_calls(const ditto_tensor *row, void *user, int *keep)
{
    struct caller *c = user;
    call_everything(c);
    *keep = 1;
    return c->read;
}
static ditto_status generator_calls(void *user, void *position, const ditto_tensor *row)
{
    struct caller *c = user;
    call_everything(c);
    *(int64_t *)row->data = 1;
    return c->read;
}

static ditto_status take_one(ditto_replica *self, void *it)
{
    ditto_batch b;
    return ditto_next(self, it, &b);
}

enum kind { MAP, FILTER, GENERATOR };
static ditto_status make_calling(enum kind kind, struct caller *c, ditto_dataset **out)
{
    ditto_tensor row = { .dtype = DITTO_I64 };
    ditto_dataset *rows;
    ditto_generator g = { .struct_size = sizeof g, .user = c, .next = generator_calls };
    if (kind == GENERATOR)
        return ditto_dataset_from_generator(&g, &row, 1, out);
    DITTO_TRY(ditto_dataset_from_range(0, 100000, 1, &rows));
    ditto_status status = kind == MAP ? ditto_dataset_map(rows, map_calls, c, NULL, out)
                                      : ditto_dataset_filter(rows, filter_calls, c, out);
    DITTO_TRY(ditto_dataset_destroy(rows));
    return status;
}

static int calls_of_a_dataset(void *kind)
{
    float zero[4] = { 0 };
    ditto_tensor initial = { .data = zero, .dtype = DITTO_F32, .rank = 1, .shape = { 4 } };
    struct caller c = { .calls = 0 };
    ditto_iterator *it;
    ditto_dataset *d;
    ditto_input_options io = OPTIONS(input, .global_batch = 8);
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 2), &c.strategy) ==
            DITTO_OK);
    REQUIRE(ditto_variable_create(c.strategy, &initial, NULL, &c.variable) == DITTO_OK);
    REQUIRE(make_calling(*(enum kind *)kind, &c, &d) == DITTO_OK);
    /* The iterator is destroyed without a run, or after a run that gets the error of the function. */
    for (int taken = 0; taken < 2; taken++) {
        atomic_store(&c.calls, 0);
        atomic_store(&c.iterator, NULL);
        REQUIRE(ditto_strategy_iterate(c.strategy, d, &io, &it) == DITTO_OK);
        atomic_store(&c.iterator, it);
        if (taken) {
            REQUIRE(ditto_strategy_run(c.strategy, take_one, it) == DITTO_ERR_CONTEXT);
            REQUIRE(strstr(ditto_last_error()->message, "in a function of a dataset") != NULL);
        }
        while (atomic_load(&c.calls) == 0)
            rest_us(100);
        ditto_status status;
        /* The iterator is busy while a function of the dataset is in a call on it, which will be refused. */
        while ((status = ditto_iterator_destroy(it)) == DITTO_ERR_BUSY)
            rest_us(100);
        REQUIRE(status == DITTO_OK);
        REQUIRE(c.read == DITTO_ERR_CONTEXT && c.scope == DITTO_ERR_CONTEXT && c.create == DITTO_ERR_CONTEXT);
        REQUIRE(c.run == DITTO_ERR_CONTEXT && c.destroy == DITTO_ERR_CONTEXT && c.next == DITTO_ERR_CONTEXT);
        REQUIRE(c.barrier == DITTO_ERR_CONTEXT);
        REQUIRE(strstr(c.message, "pass it through the user pointer") != NULL);
    }
    /* The strategy is destroyed before the iterator. It is busy while a function of the dataset is in a call
     * on it. */
    atomic_store(&c.calls, 0);
    atomic_store(&c.iterator, NULL);
    REQUIRE(ditto_strategy_iterate(c.strategy, d, &io, &it) == DITTO_OK);
    atomic_store(&c.iterator, it);
    while (atomic_load(&c.calls) == 0)
        rest_us(100);
    ditto_status status;
    while ((status = ditto_strategy_destroy(c.strategy)) == DITTO_ERR_BUSY)
        rest_us(100);
    REQUIRE(status == DITTO_OK);
    REQUIRE(ditto_iterator_destroy(it) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(c.variable) == DITTO_OK);
    REQUIRE(ditto_dataset_destroy(d) == DITTO_OK);
    return 0;
}

static void a_function_of_a_dataset_makes_no_call_of_a_strategy(void **state)
{
    for (enum kind kind = MAP; kind <= GENERATOR; kind++)
        assert_int_equal(in_child(calls_of_a_dataset, &kind, 60), 0); /* 124 means that it hangs */
}

static ditto_status generate_ones(void *user, void *position, const ditto_tensor *row)
{
    *(int64_t *)row->data = 1;
    return DITTO_OK;
}

/* A generator's save function is called while its iterator is saved. Here it saves the iterator again. */
static ditto_status save_saves(void *user, void *position, void *bytes, size_t size, size_t *length)
{
    struct caller *c = user;
    void *state;
    size_t state_bytes;
    c->save = ditto_iterator_save(atomic_load(&c->iterator), &state, &state_bytes);
    *length = 0;
    return c->save;
}

/* Is not called, but without it the generator could not be saved. */
static ditto_status restore_nothing(void *user, void *position, const void *bytes, size_t length)
{
    return DITTO_OK;
}
static int save_in_save(void *unused)
{
    ditto_tensor row = { .dtype = DITTO_I64 };
    struct caller c = { .calls = 0 };
    ditto_iterator *it;
    ditto_dataset *d;
    void *state;
    size_t bytes;
    ditto_generator g = { .struct_size = sizeof g,
                          .user = &c,
                          .next = generate_ones,
                          .save = save_saves,
                          .restore = restore_nothing };
    REQUIRE(ditto_strategy_create(DITTO_ONE_DEVICE, NULL, &c.strategy) == DITTO_OK);
    REQUIRE(ditto_dataset_from_generator(&g, &row, 1, &d) == DITTO_OK);
    REQUIRE(ditto_strategy_iterate(c.strategy, d, &OPTIONS(input, .global_batch = 2), &it) == DITTO_OK);
    atomic_store(&c.iterator, it);
    REQUIRE(ditto_iterator_save(it, &state, &bytes) == DITTO_ERR_CONTEXT);
    REQUIRE(c.save == DITTO_ERR_CONTEXT);
    REQUIRE(ditto_iterator_destroy(it) == DITTO_OK);
    REQUIRE(ditto_dataset_destroy(d) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(c.strategy) == DITTO_OK);
    return 0;
}
static void a_generators_save_does_not_save_its_iterator(void **state)
{
    assert_int_equal(in_child(save_in_save, NULL, 60), 0);
}

static ditto_status take_across(ditto_replica *self, void *it)
{
    ditto_value *value;
    return ditto_iterator_next(it, &value);
}
static void rule_9_9_inside_a_run_the_message_points_to_ditto_next(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *d = range(0, 10);
    ditto_iterator *it = iterate(s, d, 4, 1, 0);
    assert_status(ditto_strategy_run(s, take_across, it), DITTO_ERR_CONTEXT);
    assert_message("takes its own with ditto_next");
    assert_ok(ditto_iterator_destroy(it));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- close -- */

/* The calls that `close` of a generator makes, with their results. */
struct closing {
    ditto_strategy *plain; /* the default strategy */
    ditto_strategy *other;
    ditto_variable *variable; /* of `other` */
    ditto_strategy *current;  /* the result of ditto_get_strategy */
    int closed;
    bool is_replica;
    ditto_context_kind context;
    double quotient;
    ditto_status scope, plain_scope, run, read, destroy;
};

static ditto_status generate_for_ever(void *user, void *position, const ditto_tensor *row)
{
    *(int64_t *)row->data = 1;
    return DITTO_OK;
}

static double third_of(double x)
{
    volatile double y = x;
    return y / 3;
}

static void close_calls(void *user, void *position)
{
    struct closing *c = user;
    float value;
    c->closed++;
    c->quotient = third_of(2);
    c->context = context_here().kind;
    c->is_replica = ditto_get_replica_context() != NULL;
    c->current = ditto_get_strategy();
    c->scope = ditto_strategy_scope_enter(c->other);
    c->plain_scope = ditto_strategy_scope_enter(c->plain);
    c->run = ditto_strategy_run(c->other, do_nothing, NULL);
    c->read = ditto_variable_read(c->variable, &value, sizeof value);
    c->destroy = ditto_strategy_destroy(c->other);
}

/* The iterator is destroyed before its strategy or after it, outside of scopes or in the scope of another
 * strategy, by a thread that rounds upwards. */
static void try_close(uint32_t n, uint32_t pipelines, bool strategy_first, bool in_scope)
{
    ditto_strategy *s = make_strategy(n, NULL);
    ditto_tensor scalar = { .dtype = DITTO_F32 };
    struct closing c = { .plain = ditto_get_strategy(), .other = make_strategy(1, NULL) };
    double exact = third_of(2);
    ditto_dataset *d;
    ditto_iterator *it;
    assert_ok(ditto_variable_create(c.other, &scalar, NULL, &c.variable));
    ditto_generator g = {
        .struct_size = sizeof g, .user = &c, .next = generate_for_ever, .close = close_calls
    };
    assert_ok(ditto_dataset_from_generator(&g, &(ditto_tensor){ .dtype = DITTO_I64 }, 1, &d));
    assert_ok(ditto_strategy_iterate(s, d, &OPTIONS(input, .global_batch = 2 * n, .num_pipelines = pipelines),
                                     &it));
    assert_ok(ditto_strategy_run(s, take_one, it));
    if (strategy_first)
        assert_ok(ditto_strategy_destroy(s));
    assert_int_equal(c.closed, 0);
    if (in_scope)
        assert_ok(ditto_strategy_scope_enter(c.other));
    int rounding = fegetround();
    fesetround(FE_UPWARD);
    ditto_status destroyed = ditto_iterator_destroy(it);
    int left = fegetround();
    fesetround(rounding);
    assert_ok(destroyed);
    assert_int_equal(left, FE_UPWARD);
    assert_true(ditto_get_strategy() == (in_scope ? c.other : c.plain));
    if (in_scope)
        assert_ok(ditto_strategy_scope_leave(c.other));
    assert_int_equal(c.closed, pipelines);
    assert_true(c.quotient == exact);
    assert_true(c.context == DITTO_CONTEXT_NONE && !c.is_replica &&
                c.current == (strategy_first ? c.plain : s));
    assert_true(c.scope == DITTO_ERR_CONTEXT && c.plain_scope == DITTO_ERR_CONTEXT);
    assert_true(c.run == DITTO_ERR_CONTEXT && c.read == DITTO_ERR_CONTEXT && c.destroy == DITTO_ERR_CONTEXT);
    if (!strategy_first)
        assert_ok(ditto_strategy_destroy(s));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_variable_destroy(c.variable));
    assert_ok(ditto_strategy_destroy(c.other));
}

static void close_of_a_generator_runs_in_the_context_of_functions_of_datasets(void **state)
{
    static const uint32_t counts[] = { 1, 2, 8, 64 };
    for (int k = 0; k < 4; k++)
        for (int how = 0; how < 4; how++) {
            try_close(counts[k], 1, how % 2, how / 2);
            if (counts[k] > 1)
                try_close(counts[k], 2, how % 2, how / 2);
        }
}

/* -- the default strategy -- */

static void take_all_outside(ditto_iterator *it, int64_t rows)
{
    ditto_replica *self = ditto_get_replica_context();
    ditto_batch b;
    ditto_iterator_counters stats = DITTO_ITERATOR_COUNTERS_INIT;
    int64_t row = 0;
    for (uint64_t step = 0; row < rows; step++) {
        assert_ok(ditto_next(self, it, &b));
        assert_int_equal(b.step, step);
        assert_int_equal(b.rows, rows - row < 4 ? rows - row : 4);
        for (uint64_t i = 0; i < b.rows; i++)
            assert_int_equal(((const int64_t *)b.component[0].data)[i], row++);
    }
    for (int i = 0; i < 2; i++)
        assert_status(ditto_next(self, it, &b), DITTO_END_OF_INPUT);
    assert_ok(ditto_iterator_stats(it, ditto_replica_id(self), &stats));
}

struct in_default {
    ditto_iterator *iterator;
    int64_t sum;
    struct report report;
};
static ditto_status take_in_run(ditto_replica *self, void *argument)
{
    struct in_default *d = argument;
    ditto_batch b;
    EXPECT(&d->report, ditto_next(self, d->iterator, &b) == DITTO_OK);
    d->sum += *(const int64_t *)b.component[0].data;
    return DITTO_OK;
}
static void *take_on_another_thread(void *argument)
{
    struct in_default *d = argument;
    (void)take_in_run(ditto_get_replica_context(), d);
    return NULL;
}

static void rule_1_7_the_default_strategys_replica_takes_batches_outside_a_run(void **state)
{
    ditto_strategy *s = ditto_get_strategy();
    ditto_dataset *d = range(0, 10), *bad;
    ditto_batch b;
    ditto_value *value;
    for (uint32_t producers = 1; producers < 3; producers++) {
        ditto_iterator *it = iterate(s, d, 4, producers, 0);
        take_all_outside(it, 10);
        /* The batches are already taken with ditto_next. */
        assert_status(ditto_iterator_next(it, &value), DITTO_ERR_CONTEXT);
        assert_ok(ditto_iterator_destroy(it));
    }
    /* Inside a run, outside of runs and on another thread, batches come from the same queue. */
    struct in_default own = { .iterator = iterate(s, d, 1, 1, 0) };
    pthread_t thread;
    run_all(s, take_in_run, &own, &own.report);
    assert_ok(take_in_run(ditto_get_replica_context(), &own));
    pthread_create(&thread, NULL, take_on_another_thread, &own);
    pthread_join(thread, NULL);
    run_all(s, take_in_run, &own, &own.report);
    assert_string_equal(own.report.first_failure, "");
    assert_int_equal(own.sum, 0 + 1 + 2 + 3);
    assert_ok(ditto_iterator_destroy(own.iterator));
    /* An error of the input is returned again and again, and does not stay in the strategy. */
    assert_ok(ditto_dataset_map(d, fail_on_row, (void *)5, NULL, &bad));
    ditto_iterator *it = iterate(s, bad, 4, 1, 0);
    assert_ok(ditto_next(ditto_get_replica_context(), it, &b));
    assert_ok(ditto_next(ditto_get_replica_context(), it, &b));
    assert_int_equal(b.rows, 1);
    for (int again = 0; again < 2; again++) {
        assert_status(ditto_next(ditto_get_replica_context(), it, &b), DITTO_ERR_CORRUPT);
        assert_message("row 5");
    }
    assert_ok(ditto_strategy_run(s, do_nothing, NULL));
    assert_ok(ditto_iterator_destroy(it));
    assert_ok(ditto_dataset_destroy(bad));
    /* The batches of a strategy's iterator may be taken only by the replicas of this strategy. */
    ditto_strategy *real = make_strategy(2, NULL);
    it = iterate(real, d, 4, 1, 0);
    assert_status(ditto_next(ditto_get_replica_context(), it, &b), DITTO_ERR_CONTEXT);
    assert_message("inside a run of that strategy, or ditto_iterator_next");
    assert_ok(ditto_iterator_destroy(it));
    assert_ok(ditto_strategy_destroy(real));
    assert_ok(ditto_dataset_destroy(d));
}

/* -- floating point -- */

#if defined(__x86_64__)
#define FLUSH_TO_ZERO 0x8040u
static unsigned modes(void)
{
    return __builtin_ia32_stmxcsr() & ~0x3fu;
}
static void set_modes(unsigned modes)
{
    __builtin_ia32_ldmxcsr(modes);
}
#define ROUND_UP 0x4000u
#define CONTRACT 0x1f80u
static const unsigned other_modes[] = { CONTRACT, CONTRACT | FLUSH_TO_ZERO, CONTRACT | ROUND_UP,
                                        CONTRACT | FLUSH_TO_ZERO | ROUND_UP };
#define OTHER_MODES 4

static ditto_status compute(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random, void *user)
{
    volatile double x = (double)*(const int64_t *)in->data + 1, tiny = 1e-310;
    double *y = out->data, normal;
    ditto_random_normal_f64(random, &normal, 1);
    y[0] = x / 3;
    y[1] = tiny * x;
    y[2] = normal;
    y[3] = (double)modes();
    if (user != NULL) /* the function changes the environment */
        set_modes(CONTRACT | ROUND_UP);
    return DITTO_OK;
}

enum { COMPUTED = 24 };
struct computed {
    ditto_iterator *iterator;
    double row[COMPUTED][4];
    struct report report;
};
static ditto_status keep_computed(ditto_replica *self, void *argument)
{
    struct computed *c = argument;
    ditto_batch b;
    uint64_t at = 0;
    ditto_status status;
    while ((status = ditto_next(self, c->iterator, &b)) == DITTO_OK) {
        EXPECT(&c->report, at + b.rows <= COMPUTED);
        memcpy(c->row[at], b.component[0].data, b.rows * sizeof c->row[0]);
        at += b.rows;
    }
    EXPECT(&c->report, status == DITTO_END_OF_INPUT && at == COMPUTED);
    return DITTO_OK;
}

static void rows_do_not_depend_on_the_callers_floating_point_environment(void **state)
{
    static struct computed first, now;
    ditto_strategy *s = make_strategy(1, NULL);
    ditto_tensor row = { .dtype = DITTO_F64, .rank = 1, .shape = { 4 } };
    ditto_dataset *numbers = range(0, COMPUTED), *d;
    unsigned before = modes();
    ditto_map_options options = OPTIONS(map, .row = &row, .num_components = 1);
    for (uint32_t spoils = 0; spoils < 2; spoils++) {
        assert_ok(ditto_dataset_map(numbers, compute, spoils ? &row : NULL, &options, &d));
        for (int m = 0; m < OTHER_MODES; m++) {
            memset(&now, 0, sizeof now);
            set_modes(other_modes[m]);
            now.iterator = iterate(s, d, 1, 1, 0);
            unsigned after = modes();
            set_modes(before);
            assert_int_equal(after, other_modes[m]);
            run_all(s, keep_computed, &now, &now.report);
            assert_ok(ditto_iterator_destroy(now.iterator));
            if (spoils == 0 && m == 0)
                first = now;
            assert_memory_equal(now.row, first.row, sizeof first.row);
            assert_true(now.row[0][3] == CONTRACT);
        }
        assert_ok(ditto_dataset_destroy(d));
    }
    assert_ok(ditto_dataset_destroy(numbers));
    assert_ok(ditto_strategy_destroy(s));
}

struct csv_bits {
    uint32_t bits[4];
    ditto_iterator *iterator;
};
static ditto_status keep_bits(ditto_replica *self, void *argument)
{
    struct csv_bits *c = argument;
    ditto_batch b;
    DITTO_TRY(ditto_next(self, c->iterator, &b));
    memcpy(c->bits, b.component[0].data, sizeof c->bits);
    return DITTO_OK;
}

static void numbers_in_files_do_not_depend_on_the_callers_floating_point_environment(void **state)
{
    static const uint32_t expected[4] = { 0x000116c2, 0x3dcccccd, 0x40533333, 0xc0f66666 };
    char *name = temporary_file("1e-40,0.1,3.3,-7.7\n");
    ditto_csv_component component = { .num_columns = 4, .dtype = DITTO_F32 };
    ditto_strategy *s = make_strategy(1, NULL);
    unsigned before = modes();
    for (int m = 0; m < OTHER_MODES; m++) {
        struct csv_bits c = { { 0 }, NULL };
        ditto_dataset *d;
        set_modes(other_modes[m]);
        ditto_status made = ditto_dataset_from_csv(&(ditto_files){ (const char *[]){ name }, 1, 0 },
                                                   &component, 1, NULL, &d);
        if (made == DITTO_OK)
            c.iterator = iterate(s, d, 1, 1, 0);
        set_modes(before);
        assert_ok(made);
        assert_ok(ditto_strategy_run(s, keep_bits, &c));
        assert_memory_equal(c.bits, expected, sizeof expected);
        assert_ok(ditto_iterator_destroy(c.iterator));
        assert_ok(ditto_dataset_destroy(d));
    }
    assert_ok(ditto_strategy_destroy(s));
    forget_file(name);
}

struct reduced {
    double row[COMPUTED][4];
    size_t rows;
    unsigned seen;
};
static ditto_status reduce_row(const ditto_tensor *row, void *state)
{
    struct reduced *r = state;
    memcpy(r->row[r->rows++], row[0].data, sizeof r->row[0]);
    r->seen = modes();
    return DITTO_OK;
}

static void reduce_and_random_numbers_leave_the_callers_environment_as_it_was(void **state)
{
    static struct reduced first, now;
    ditto_tensor row = { .dtype = DITTO_F64, .rank = 1, .shape = { 4 } };
    ditto_dataset *numbers = range(0, COMPUTED), *d;
    unsigned before = modes();
    double normal[OTHER_MODES][33];
    assert_ok(ditto_dataset_map(numbers, compute, NULL, &OPTIONS(map, .row = &row, .num_components = 1), &d));
    for (int m = 0; m < OTHER_MODES; m++) {
        ditto_random random = ditto_random_make(7, 1);
        memset(&now, 0, sizeof now);
        set_modes(other_modes[m]);
        ditto_status reduced = ditto_dataset_reduce(d, reduce_row, &now, 0);
        unsigned after_reduce = modes();
        ditto_random_normal_f64(&random, normal[m], 33);
        unsigned after_random = modes();
        set_modes(before);
        assert_ok(reduced);
        assert_int_equal(after_reduce, other_modes[m]);
        assert_int_equal(after_random, other_modes[m]);
        assert_int_equal(now.seen, CONTRACT);
        if (m == 0)
            first = now;
        assert_memory_equal(now.row, first.row, sizeof first.row);
        assert_memory_equal(normal[m], normal[0], sizeof normal[0]);
    }
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_destroy(numbers));
}
#endif

/* -- rows behind an error -- */

struct failing {
    int64_t row;
};

/* Fails slowly, so that other producers are usually ahead. */
static ditto_status fail_slowly(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                                void *user)
{
    struct failing *f = user;
    if (*(const int64_t *)in->data == f->row) {
        rest_us(3000);
        return DITTO_ERR_CORRUPT;
    }
    *(int64_t *)out->data = *(const int64_t *)in->data;
    return DITTO_OK;
}

enum { MOST_OF_REPLICA = 100 };
struct gathered {
    ditto_iterator *iterator;
    struct {
        int64_t row[MOST_OF_REPLICA];
        uint64_t rows;
        ditto_status end;
        char message[512];
    } replica[4];
    struct report report;
};
static ditto_status gather_rows(ditto_replica *self, void *argument)
{
    struct gathered *g = argument;
    uint32_t id = ditto_replica_id(self);
    ditto_batch b;
    ditto_status status;
    while ((status = ditto_next(self, g->iterator, &b)) == DITTO_OK) {
        EXPECT(&g->report, g->replica[id].rows + b.rows <= MOST_OF_REPLICA);
        memcpy(g->replica[id].row + g->replica[id].rows, b.component[0].data, b.rows * sizeof(int64_t));
        g->replica[id].rows += b.rows;
    }
    g->replica[id].end = status;
    snprintf(g->replica[id].message, sizeof g->replica[id].message, "%s", ditto_last_error()->message);
    EXPECT(&g->report, ditto_next(self, g->iterator, &b) == status); /* the same status again */
    return DITTO_OK;
}

/* Row `row` of `length` rows fails. In any order of the threads, all rows before it must be delivered, and
 * none behind it. With static shapes the rows of its own batch are not delivered either. */
static void fails_at(ditto_strategy *s, uint32_t n, int64_t length, int64_t row, uint64_t global,
                     uint32_t producers, uint32_t flags)
{
    static struct gathered g;
    struct failing failing = { .row = row };
    ditto_dataset *rows = range(0, length), *d;
    /* Rows are delivered in multiples of this number. With static shapes N divides G, and no batch is
     * smaller. */
    int64_t unit = flags & DITTO_INPUT_STATIC ? (int64_t)global / n : 1;
    int64_t given = row / unit * unit;
    bool seen[4 * MOST_OF_REPLICA] = { false };
    uint64_t all = 0;
    char text[64];
    memset(&g, 0, sizeof g);
    assert_ok(ditto_dataset_map(rows, fail_slowly, &failing, NULL, &d));
    assert_ok(ditto_dataset_destroy(rows));
    g.iterator = iterate(s, d, global, producers, flags);
    run_all(s, gather_rows, &g, &g.report);
    snprintf(text, sizeof text, "on row %lld", (long long)row);
    for (uint32_t r = 0; r < n; r++) {
        assert_int_equal(g.replica[r].end, DITTO_ERR_CORRUPT);
        assert_non_null(strstr(g.replica[r].message, text));
        for (uint64_t i = 0; i < g.replica[r].rows; i++) {
            int64_t delivered = g.replica[r].row[i];
            assert_true(delivered >= 0 && delivered < given && !seen[delivered]);
            seen[delivered] = true;
        }
        all += g.replica[r].rows;
    }
    assert_int_equal(all, given);
    assert_ok(ditto_iterator_destroy(g.iterator));
    assert_ok(ditto_dataset_destroy(d));
}

static void rule_9_10_rows_behind_an_error_are_not_delivered(void **state)
{
    static const uint64_t global[] = { 1, 2, 4, 7 };
    uint64_t random = test_seed(925);
    for (uint32_t n = 1; n <= 4; n++) {
        ditto_strategy *s = make_strategy(n, NULL);
        for (int trial = test_trials(100); trial > 0; trial--) {
            int64_t length = 1 + (int64_t)(test_random(&random) % 60);
            int64_t row = (int64_t)(test_random(&random) % (uint64_t)length);
            fails_at(s, n, length, row, global[trial % 4], 1 + (uint32_t)(test_random(&random) % 4), 0);
        }
        fails_at(s, n, 40, 39, 4, 3, 0); /* the last row, when the end is already known */
        assert_ok(ditto_strategy_destroy(s));
    }
}

static void rule_9_10_with_static_shapes_the_batch_of_an_error_is_not_given(void **state)
{
    uint64_t random = test_seed(926);
    for (uint32_t n = 1; n <= 4; n++) {
        ditto_strategy *s = make_strategy(n, NULL);
        for (int trial = test_trials(60); trial > 0; trial--) {
            uint64_t global = n * (1 + test_random(&random) % 3);
            int64_t steps = 1 + (int64_t)(test_random(&random) % 12), length = steps * (int64_t)global;
            int64_t row = (int64_t)(test_random(&random) % (uint64_t)length);
            fails_at(s, n, length, row, global, 1 + (uint32_t)(test_random(&random) % 4), DITTO_INPUT_STATIC);
        }
        assert_ok(ditto_strategy_destroy(s));
    }
}

/* -- a replica that leaves while batches are delivered in the order of rows -- */

static ditto_status leave_early(ditto_replica *self, void *it)
{
    ditto_batch b;
    ditto_status status = DITTO_OK;
    for (int i = 0; status == DITTO_OK && (ditto_replica_id(self) != 1 || i < 2); i++)
        status = ditto_next(self, it, &b);
    return status == DITTO_END_OF_INPUT ? DITTO_OK : status;
}
/* Replica 1 leaves. With one pipeline the others wait for their own batches, and with DATA for its batches,
 * which come before theirs. With OFF they need to know whether its pipeline has rows for a step. With static
 * shapes this is so in every step, and otherwise at their own end. */
static void a_replica_that_leaves_is_named_for_every_cause_of_waiting(void **state)
{
    static const struct {
        uint32_t pipelines;
        ditto_shard_policy shard;
    } sharing[] = { { 1, DITTO_SHARD_DEFAULT }, { 3, DITTO_SHARD_DATA }, { 3, DITTO_SHARD_OFF } };
    for (uint32_t producers = 1; producers <= 3; producers++)
        for (size_t i = 0; i < sizeof sharing / sizeof sharing[0]; i++)
            for (uint32_t flags = 0; flags <= DITTO_INPUT_STATIC; flags += DITTO_INPUT_STATIC) {
                ditto_strategy *s = make_strategy(3, &OPTIONS(strategy, .timeout_ms = 60000));
                ditto_dataset *d = range(0, 3000);
                ditto_iterator *it;
                ditto_input_options how = OPTIONS(input, .global_batch = 3, .num_producers = producers,
                                                  .num_pipelines = sharing[i].pipelines,
                                                  .shard = sharing[i].shard, .flags = flags, .buffer = 4);
                assert_ok(ditto_strategy_iterate(s, d, &how, &it));
                assert_status(ditto_strategy_run(s, leave_early, it), DITTO_ERR_DIVERGED);
                assert_message("replica 1 has returned");
                assert_ok(ditto_iterator_destroy(it));
                assert_ok(ditto_dataset_destroy(d));
                assert_ok(ditto_strategy_destroy(s));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_of_a_dataset_makes_no_call_of_a_strategy),
        cmocka_unit_test(a_generators_save_does_not_save_its_iterator),
        cmocka_unit_test(close_of_a_generator_runs_in_the_context_of_functions_of_datasets),
        cmocka_unit_test(rule_9_9_inside_a_run_the_message_points_to_ditto_next),
        cmocka_unit_test(rule_1_7_the_default_strategys_replica_takes_batches_outside_a_run),
#if defined(__x86_64__)
        cmocka_unit_test(rows_do_not_depend_on_the_callers_floating_point_environment),
        cmocka_unit_test(numbers_in_files_do_not_depend_on_the_callers_floating_point_environment),
        cmocka_unit_test(reduce_and_random_numbers_leave_the_callers_environment_as_it_was),
#endif
        cmocka_unit_test(rule_9_10_rows_behind_an_error_are_not_delivered),
        cmocka_unit_test(rule_9_10_with_static_shapes_the_batch_of_an_error_is_not_given),
        cmocka_unit_test(a_replica_that_leaves_is_named_for_every_cause_of_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
