/* tests/input/distribute/test_state.c - tests saved positions of iterators (docs/semantics.md, "Datasets",
 * 9.10). After a restore the rows are exactly those that would have come without it. */
#include "input/written_rows.h"
#include "support/as_hosts.h"

#include "input/dataset.h"

enum { MOST_STEPS = 3000, MOST_REPLICAS = 8, MOST_OF_BATCH = 24 };

/* The rows that each replica got in each step. */
struct record {
    struct report report;
    ditto_iterator *iterator;
    uint32_t n;

    /* Replicas return before this step. UINT64_MAX means at the end. */
    uint64_t stop_at;

    /* This replica takes one batch less. UINT32_MAX means none. */
    uint32_t laggard;
    struct column {
        uint64_t steps;
        uint64_t count[MOST_STEPS];
        int64_t row[MOST_STEPS][MOST_OF_BATCH];
    } of[MOST_REPLICAS];
};

static ditto_status consume(ditto_replica *self, void *argument)
{
    struct record *d = argument;
    uint32_t id = ditto_replica_id(self);
    ditto_batch b;
    ditto_status status = DITTO_OK;
    while (d->of[id].steps + (id == d->laggard) < d->stop_at &&
           (status = ditto_next(self, d->iterator, &b)) == DITTO_OK) {
        EXPECT(&d->report, b.step < MOST_STEPS && b.rows <= MOST_OF_BATCH && b.step == d->of[id].steps);
        memcpy(d->of[id].row[b.step], b.component[0].data, b.rows * sizeof(int64_t));
        d->of[id].count[b.step] = b.rows;
        d->of[id].steps++;
    }
    return status < 0 ? status : DITTO_OK;
}

static ditto_iterator *open_at(ditto_strategy *s, ditto_dataset *dataset, ditto_input_options options,
                               const char *state, size_t bytes)
{
    ditto_iterator *it;
    options.struct_size = sizeof options;
    options.state = state;
    options.state_bytes = bytes;
    assert_ok(ditto_strategy_iterate(s, dataset, &options, &it));
    return it;
}

static char *save(ditto_iterator *it, size_t *bytes)
{
    void *state;
    assert_ok(ditto_iterator_save(it, &state, bytes));
    return state;
}

static struct record *make_record(uint32_t n)
{
    struct record *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->n = n;
    r->stop_at = UINT64_MAX;
    r->laggard = UINT32_MAX;
    return r;
}

static void begin_at_the_steps_of(struct record *r, const struct record *other)
{
    for (uint32_t id = 0; id < r->n; id++)
        r->of[id].steps = other->of[id].steps;
}

/* Gives the record of each replica to all hosts. */
static ditto_status share(ditto_replica *self, void *argument)
{
    struct record *r = argument;
    struct column *all = malloc(r->n * sizeof *all);
    ditto_status status = all != NULL ? DITTO_OK : DITTO_ERR_NO_MEMORY;
    if (status == DITTO_OK)
        status = ditto_all_gather(self, &r->of[ditto_replica_id(self)], all, sizeof *all, NULL, DITTO_U8,
                                  NULL);
    if (status == DITTO_OK)
        status = ditto_barrier(self, NULL); /* all replicas of this host have given theirs */
    if (status == DITTO_OK && ditto_replica_is_first_of_host(self))
        memcpy(r->of, all, r->n * sizeof *all);
    free(all);
    return status;
}

static void take_until(ditto_strategy *s, struct record *r, uint64_t step)
{
    r->stop_at = step;
    run_all(s, consume, r, &r->report);
    if (is_spread(s))
        assert_ok(ditto_strategy_run(s, share, r));
}

/* Lists all rows of the steps from `first` on, in the order of steps and replicas. If pipelines share rows,
 * they must be the same for every N. */
static size_t flatten(const struct record *r, uint64_t first, int64_t *out)
{
    size_t count = 0;
    for (uint64_t step = first; step < r->of[0].steps; step++)
        for (uint32_t id = 0; id < r->n; id++)
            for (uint64_t i = 0; i < r->of[id].count[step]; i++)
                out[count++] = r->of[id].row[step][i];
    return count;
}

static void assert_same_from(const struct record *a, const struct record *b, uint64_t first)
{
    static int64_t rows[2][MOST_LISTED];
    size_t count = flatten(a, first, rows[0]);
    assert_int_equal(flatten(b, first, rows[1]), count);
    assert_memory_equal(rows[0], rows[1], count * sizeof(int64_t));
}

static void end_record(struct record *r)
{
    assert_ok(ditto_iterator_destroy(r->iterator));
    free(r);
}

/* Saves the position of `whole`, and makes `rest` from this state on `other`, which may be the same strategy.
 * Both must take the same rows from there on. */
static void go_on_twice(ditto_strategy *s, struct record *whole, ditto_strategy *other, struct record *rest,
                        ditto_dataset *d, ditto_input_options options)
{
    uint64_t cut = whole->of[0].steps;
    size_t bytes;
    char *saved = save(whole->iterator, &bytes);
    rest->iterator = open_at(other, d, options, saved, bytes);
    for (uint32_t id = 0; id < rest->n; id++)
        rest->of[id].steps = cut;
    take_until(s, whole, UINT64_MAX);
    take_until(other, rest, UINT64_MAX);
    assert_same_from(whole, rest, cut);
    ditto_state_free(saved);
}

static void the_rows_after_a_restore_are_those_that_would_have_come(void **state)
{
    static const uint32_t replicas[] = { 1, 2, 3, 8 };
    uint64_t random = test_seed(20260921);
    ditto_strategy *strategy[4];
    for (int i = 0; i < 4; i++)
        strategy[i] = make_strategy(replicas[i], NULL);
    for (int trial = 0; trial < test_trials(150); trial++) {
        ditto_dataset *d = random_dataset(&random, 100 + test_random(&random) % 200, trial % 2 == 1);
        int from = (int)(test_random(&random) % 4), to = (int)(test_random(&random) % 4);
        ditto_input_options options = { .struct_size = sizeof options,
                                        .global_batch = 1 + test_random(&random) % 20,
                                        .pass = test_random(&random) % 3 };
        struct record *whole = make_record(replicas[from]), *first = make_record(replicas[from]),
                      *rest = make_record(replicas[to]);
        whole->iterator = open_at(strategy[from], d, options, NULL, 0);
        take_until(strategy[from], whole, UINT64_MAX);
        uint64_t cut = whole->of[0].steps != 0 ? test_random(&random) % (whole->of[0].steps + 2) : 0;
        options.num_producers = 1 + (uint32_t)(test_random(&random) % 3);
        first->iterator = open_at(strategy[from], d, options, NULL, 0);
        take_until(strategy[from], first, cut);
        size_t bytes;
        char *saved = save(first->iterator, &bytes);
        options.pass = 0;
        options.buffer = test_random(&random) % 2 ? 1 : 5;
        rest->iterator = open_at(strategy[to], d, options, saved, bytes);
        for (uint32_t id = 0; id < rest->n; id++)
            rest->of[id].steps = first->of[0].steps;
        take_until(strategy[to], rest, UINT64_MAX);
        assert_same_from(whole, rest, first->of[0].steps);
        take_until(strategy[from], first, UINT64_MAX); /* saving has no effect on the rows */
        assert_same_from(whole, first, 0);
        struct record *all[] = { whole, first, rest };
        for (int i = 0; i < 3; i++)
            end_record(all[i]);
        ditto_state_free(saved);
        assert_ok(ditto_dataset_destroy(d));
    }
    for (int i = 0; i < 4; i++)
        assert_ok(ditto_strategy_destroy(strategy[i]));
}

/* The number of replicas may change to any that the pipelines can serve. The rows of a step are those of
 * the global batch, for any number of replicas. */
static void pipelines_continue_together(void **state)
{
    static const uint32_t replicas[] = { 4, 8, 4 };
    uint64_t random = test_seed(7);
    ditto_strategy *s = make_strategy(4, NULL), *wide = make_strategy(8, NULL);
    for (int trial = 0; trial < test_trials(90); trial++) {
        ditto_dataset *d = random_dataset(&random, 300, trial % 2 == 1);
        ditto_input_options options = { .struct_size = sizeof options,
                                        .global_batch = 1 + test_random(&random) % 12,
                                        .num_pipelines = 1u << trial % 3,
                                        .partial = trial % 5 == 0 ? DITTO_PARTIAL_EVEN : DITTO_PARTIAL_FILL };
        uint32_t n = replicas[trial / 3 % 3];
        ditto_strategy *other = n == 8 ? wide : s;
        struct record *whole = make_record(4), *rest = make_record(n);
        whole->iterator = open_at(s, d, options, NULL, 0);
        take_until(s, whole, 2 + test_random(&random) % 10);
        go_on_twice(s, whole, other, rest, d, options);
        end_record(whole);
        end_record(rest);
        assert_ok(ditto_dataset_destroy(d));
    }
    assert_ok(ditto_strategy_destroy(s));
    assert_ok(ditto_strategy_destroy(wide));
}

/* Makes rows (i, [i + 1, i + 2]) from a file of numbers. They are records of three numbers at a stride of
 * one number. */
static ditto_status overlapping(const char *name, ditto_dataset **out)
{
    const ditto_tensor row[2] = { { .dtype = DITTO_I64 }, { .dtype = DITTO_I64, .rank = 1, .shape = { 2 } } };
    return ditto_dataset_from_fixed(&(ditto_files){ &name, 1, 0 }, row, 2,
                                    &OPTIONS(fixed, .stride_bytes = sizeof(int64_t)), out);
}

static void rows_that_overlap_in_their_file_continue(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL), *other = make_strategy(2, NULL);
    int64_t numbers[302];
    for (int64_t i = 0; i < 302; i++)
        numbers[i] = i;
    char *name = temporary_bytes((const char *)numbers, sizeof numbers);
    for (uint64_t cut = 0; cut < 30; cut += 7)
        for (uint64_t buffer = 1; buffer < 60; buffer += 40)
            for (uint32_t pipelines = 1; pipelines <= 2; pipelines++) {
                ditto_input_options options = { .struct_size = sizeof options,
                                                .global_batch = 11,
                                                .num_pipelines = pipelines,
                                                .shard = DITTO_SHARD_DATA };
                struct record *whole = make_record(4), *rest = make_record(2);
                ditto_dataset *d;
                bool seen[300] = { false };
                assert_ok(overlapping(name, &d));
                d = then(d, shuffle_by, buffer);
                whole->iterator = open_at(s, d, options, NULL, 0);
                take_until(s, whole, cut);
                assert_true(whole->of[0].steps == cut);
                go_on_twice(s, whole, other, rest, d, options);
                for (uint64_t step = 0; step < whole->of[0].steps; step++)
                    for (uint32_t id = 0; id < 4; id++)
                        for (uint64_t i = 0; i < whole->of[id].count[step]; i++) {
                            int64_t row = whole->of[id].row[step][i];
                            assert_true(row >= 0 && row < 300 && !seen[row]);
                            seen[row] = true;
                        }
                for (int i = 0; i < 300; i++)
                    assert_true(seen[i]);
                end_record(whole);
                end_record(rest);
                assert_ok(ditto_dataset_destroy(d));
            }
    forget_file(name);
    assert_ok(ditto_strategy_destroy(s));
    assert_ok(ditto_strategy_destroy(other));
}

/* Each replica has a pipeline, or all have the same one. */
static void stay_apart(uint32_t pipelines, const char *message)
{
    ditto_strategy *s = make_strategy(3, NULL), *other = make_strategy(6, NULL);
    ditto_dataset *d = then(range(0, 200), shuffle_by, 11);
    ditto_input_options options = { .struct_size = sizeof options,
                                    .global_batch = 7,
                                    .num_pipelines = pipelines,
                                    .shard = DITTO_SHARD_DATA };
    ditto_iterator *it;
    for (uint32_t laggard = 0; laggard < 3; laggard++) {
        struct record *whole = make_record(3), *rest = make_record(3);
        whole->iterator = open_at(s, d, options, NULL, 0);
        whole->laggard = laggard;
        take_until(s, whole, 9);
        size_t bytes;
        char *saved = save(whole->iterator, &bytes);
        rest->iterator = open_at(s, d, options, saved, bytes);
        begin_at_the_steps_of(rest, whole);
        whole->laggard = UINT32_MAX;
        take_until(s, whole, UINT64_MAX);
        take_until(s, rest, UINT64_MAX);
        for (uint64_t step = 9; step < whole->of[0].steps; step++)
            for (uint32_t id = 0; id < 3; id++)
                assert_memory_equal(whole->of[id].row[step], rest->of[id].row[step],
                                    sizeof whole->of[id].row[step]);
        assert_memory_equal(whole->of[laggard].row[8], rest->of[laggard].row[8],
                            sizeof whole->of[laggard].row[8]);
        assert_int_equal(rest->of[laggard].steps, whole->of[laggard].steps);
        options.state = saved;
        options.state_bytes = bytes;
        assert_status(ditto_strategy_iterate(other, d, &options, &it), DITTO_ERR_INVALID);
        assert_message(message);
        options.state = NULL;
        options.state_bytes = 0;
        end_record(whole);
        end_record(rest);
        ditto_state_free(saved);
    }
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
    assert_ok(ditto_strategy_destroy(other));
}

static void replicas_at_different_steps_stay_apart(void **state)
{
    stay_apart(1, "different numbers of batches");
}

static void pipelines_at_different_steps_stay_apart(void **state)
{
    stay_apart(3, "different steps");
}

/* Over hosts, replicas at different steps are refused only if they have the same pipeline. */
static void a_pipeline_of_several_hosts_is_saved_at_one_step(void **state)
{
    uint32_t n = test_hosts() > 1 ? test_hosts() : 2;
    ditto_strategy *s = make_strategy(n, NULL);
    ditto_dataset *d = range(0, 200);
    struct record *r = make_record(n);
    void *saved;
    size_t bytes;
    r->iterator = open_at(s, d, (ditto_input_options){ .global_batch = 10 }, NULL, 0);
    r->laggard = 0;
    take_until(s, r, 5);
    if (is_spread(s)) {
        assert_status(ditto_iterator_save(r->iterator, &saved, &bytes), DITTO_ERR_UNSUPPORTED);
        assert_message("have taken 4 to 5 batches");
    } else
        ditto_state_free(save(r->iterator, &bytes));
    end_record(r);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

static void a_state_belongs_to_its_dataset(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *d = then(range(0, 200), shuffle_by, 11), *others[5];
    ditto_input_options options = { .struct_size = sizeof options, .global_batch = 8 };
    struct record *r = make_record(2);
    ditto_iterator *it;
    size_t bytes;
    r->iterator = open_at(s, d, options, NULL, 0);
    take_until(s, r, 3);
    char *saved = save(r->iterator, &bytes);
    options.state = saved;
    options.state_bytes = bytes;
    others[0] = then(range(0, 201), shuffle_by, 11);
    others[1] = then(range(0, 200), shuffle_by, 12);
    others[2] = range(0, 200);
    others[3] = then(then(range(0, 200), shuffle_by, 11), ditto_dataset_repeat, 2);
    others[4] = then(then(range(0, 200), shuffle_by, 11), batch_of, 8);
    for (int i = 0; i < 5; i++) {
        assert_status(ditto_strategy_iterate(s, others[i], &options, &it), DITTO_ERR_INVALID);
        assert_message("another dataset");
        assert_ok(ditto_dataset_destroy(others[i]));
    }
    options.global_batch = 9;
    assert_status(ditto_strategy_iterate(s, d, &options, &it), DITTO_ERR_INVALID);
    assert_message("8 rows in a global batch, but now there are 9");
    options.global_batch = 8;
    options.num_pipelines = 2;
    assert_status(ditto_strategy_iterate(s, d, &options, &it), DITTO_ERR_INVALID);
    options.num_pipelines = 0;
    options.pass = 4;
    assert_status(ditto_strategy_iterate(s, d, &options, &it), DITTO_ERR_INVALID);
    options.pass = 0;
    for (size_t cut = 1; cut < bytes; cut++) {
        options.state_bytes = cut;
        assert_status(ditto_strategy_iterate(s, d, &options, &it), DITTO_ERR_CORRUPT);
    }
    options.state_bytes = bytes;
    for (size_t at = 0; at < bytes; at++) {
        saved[at] ^= (char)(1 << at % 8);
        assert_status(ditto_strategy_iterate(s, d, &options, &it), DITTO_ERR_CORRUPT);
        saved[at] ^= (char)(1 << at % 8);
    }
    void *none;
    assert_status(ditto_iterator_save(r->iterator, NULL, &bytes), DITTO_ERR_INVALID);
    assert_status(ditto_iterator_save(r->iterator, &none, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_iterator_save(NULL, &none, &bytes), DITTO_ERR_INVALID);
    end_record(r);
    ditto_state_free(saved);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

/* Loads row number `row` of a dataset as from a state. */
static ditto_status load(ditto_dataset *d, uint64_t row)
{
    struct dti_bytes bytes = { 0 };
    uint64_t word;
    dti_bytes_put_u64(&bytes, row);
    struct dti_bytes_reader from = { bytes.data, bytes.data + bytes.length, false };
    ditto_status status = dti_row_load(d, &word, &from);
    assert_true(status != DITTO_OK || word == row);
    dti_bytes_free(&bytes);
    return status;
}

static void rows_that_the_source_does_not_have_are_refused(void **state)
{
    int32_t numbers[9] = { 0 };
    ditto_tensor array = { .data = numbers, .dtype = DITTO_I32, .rank = 1, .shape = { 9 } };
    ditto_dataset *d[2] = { range(100, 109) };
    assert_ok(ditto_dataset_from_arrays(&array, 1, &d[1]));
    for (int i = 0; i < 2; i++) {
        assert_ok(load(d[i], 0));
        assert_ok(load(d[i], 8));
        assert_status(load(d[i], 9), DITTO_ERR_CORRUPT);
        assert_status(load(d[i], UINT64_MAX), DITTO_ERR_CORRUPT);
        assert_ok(ditto_dataset_destroy(d[i]));
    }
}

static ditto_status fail_on_7(const ditto_tensor *row, void *user, int *keep)
{
    *keep = 1;
    return *(const int64_t *)row[0].data == 7 ? DITTO_ERR_CORRUPT : DITTO_OK;
}

static void an_iterator_that_cannot_be_saved_returns_an_error(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *d, *failing, *source = range(0, 100);
    ditto_iterator *it;
    size_t bytes;
    void *saved;
    ditto_input_options options = { .struct_size = sizeof options, .global_batch = 4 };
    assert_ok(counted_up_to(100, false, &d));
    it = open_at(s, d, options, NULL, 0);
    assert_status(ditto_iterator_save(it, &saved, &bytes), DITTO_ERR_UNSUPPORTED);
    assert_message("save and restore");
    assert_ok(ditto_iterator_destroy(it));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_filter(source, fail_on_7, NULL, &failing));
    struct record *r = make_record(2);
    r->iterator = open_at(s, failing, options, NULL, 0);
    assert_status(ditto_strategy_run(s, consume, r), DITTO_ERR_CORRUPT);
    /* There is no position to continue from. */
    assert_status(ditto_iterator_save(r->iterator, &saved, &bytes), DITTO_ERR_CORRUPT);
    assert_message("row 7 of a range");
    end_record(r);
    it = open_at(s, source, options, NULL, 0);
    assert_ok(ditto_strategy_destroy(s));
    assert_status(ditto_iterator_save(it, &saved, &bytes), DITTO_ERR_CONTEXT);
    assert_ok(ditto_iterator_destroy(it));
    assert_ok(ditto_dataset_destroy(failing));
    assert_ok(ditto_dataset_destroy(source));
}

struct until {
    int64_t next;
};
static ditto_status until_30(void *user, void *position, const ditto_tensor *row)
{
    struct until *u = user;
    *(int64_t *)row[0].data = u->next++;
    return u->next > 30 ? DITTO_ERR_USER : DITTO_OK;
}
static ditto_status until_save(void *user, void *position, void *bytes, size_t size, size_t *length)
{
    *length = sizeof(struct until);
    if (size == sizeof(struct until))
        memcpy(bytes, user, size);
    return DITTO_OK;
}
static ditto_status until_restore(void *user, void *position, const void *bytes, size_t length)
{
    memcpy(user, bytes, length);
    return DITTO_OK;
}

/* The error is met while rows before it still wait in the buffer of a shuffle, or for a whole batch. The
 * iterator cannot be saved then, because a restored one would end without the error. */
static void an_error_that_waits_behind_a_buffer_is_not_saved_as_an_end(void **state)
{
    ditto_strategy *s = make_strategy(1, NULL);
    for (int how = 0; how < 2; how++) {
        struct until u = { 0 };
        ditto_dataset *d;
        ditto_input_options options = { .struct_size = sizeof options,
                                        .global_batch = how == 0 ? 4 : 0,
                                        .num_producers = 1 };
        void *saved;
        size_t bytes;
        ditto_generator g = { .struct_size = sizeof g,
                              .user = &u,
                              .next = until_30,
                              .save = until_save,
                              .restore = until_restore };
        assert_ok(ditto_dataset_from_generator(&g, &(ditto_tensor){ .dtype = DITTO_I64 }, 1, &d));
        d = how == 0 ? then(d, shuffle_by, 20) : then(d, whole_batches_of, 16);
        struct record *r = make_record(1);
        r->iterator = open_at(s, d, options, NULL, 0);
        take_until(s, r, how == 0 ? 3 : 1);
        ditto_status status = DITTO_OK;
        /* Saving succeeds until the producer has met the error. */
        for (int i = 0; i < 60000 && status == DITTO_OK; i++) {
            status = ditto_iterator_save(r->iterator, &saved, &bytes);
            if (status == DITTO_OK) {
                ditto_state_free(saved);
                sleep_ms(1);
            }
        }
        assert_int_equal(status, DITTO_ERR_USER);
        assert_message("a generator (next)");
        end_record(r);
        assert_ok(ditto_dataset_destroy(d));
    }
    assert_ok(ditto_strategy_destroy(s));
}

static _Atomic int is_in_next, may_end;

static ditto_status next_that_waits(void *user, void *position, const ditto_tensor *row)
{
    (void)user, (void)position, (void)row;
    is_in_next = 1;
    while (!may_end)
        sleep_ms(1);
    return DITTO_END_OF_INPUT;
}

static void a_save_does_not_wait_for_ever(void **state)
{
    ditto_strategy *s = make_strategy(1, &OPTIONS(strategy, .timeout_ms = 100));
    ditto_generator g = { .struct_size = sizeof g, .next = next_that_waits };
    ditto_dataset *d;
    void *saved;
    size_t bytes;
    assert_ok(ditto_dataset_from_generator(&g, &(ditto_tensor){ .dtype = DITTO_I64 }, 1, &d));
    d = then(d, whole_batches_of, 16);
    ditto_iterator *it = open_at(s, d, OPTIONS(input, .num_producers = 1), NULL, 0);
    while (!is_in_next)
        sleep_ms(1);
    assert_status(ditto_iterator_save(it, &saved, &bytes), DITTO_ERR_TIMED_OUT);
    assert_message("a producer has chosen rows for more than timeout_ms = 100 ms");
    may_end = 1;
    ditto_status status;
    while ((status = ditto_iterator_save(it, &saved, &bytes)) == DITTO_ERR_TIMED_OUT)
        ;
    assert_ok(status);
    ditto_state_free(saved);
    assert_ok(ditto_iterator_destroy(it));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

/* A step may exist only because a pipeline that gets no rows in it has rows for a later step. A restored
 * iterator must know of these rows, although no replica has taken them. */
static void steps_that_exist_are_there_after_a_restore(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    for (int64_t length = 15; length < 24; length += test_is_short() ? 3 : 1)
        for (uint64_t cut = 6; cut < 10; cut++)
            for (int how = 0; how < 4; how++) {
                ditto_dataset *d = range(0, length);
                ditto_input_options options = { .struct_size = sizeof options,
                                                .global_batch = 2,
                                                .num_pipelines = 2,
                                                .shard = how / 2 % 2 ? DITTO_SHARD_DATA : DITTO_SHARD_OFF,
                                                .flags = how % 2 ? 0 : DITTO_INPUT_STATIC };
                struct record *whole = make_record(4), *rest = make_record(4);
                size_t bytes;
                whole->iterator = open_at(s, d, options, NULL, 0);
                take_until(s, whole, cut);
                uint64_t at = whole->of[0].steps;
                char *saved = save(whole->iterator, &bytes);
                rest->iterator = open_at(s, d, options, saved, bytes);
                begin_at_the_steps_of(rest, whole);
                take_until(s, whole, UINT64_MAX);
                take_until(s, rest, UINT64_MAX);
                assert_int_equal(rest->of[0].steps, whole->of[0].steps);
                assert_same_from(whole, rest, at);
                end_record(whole);
                end_record(rest);
                ditto_state_free(saved);
                assert_ok(ditto_dataset_destroy(d));
            }
    assert_ok(ditto_strategy_destroy(s));
}

/* States of an earlier version, in which each pipeline of DATA read every W-th row. They were saved after
 * two steps of range(0, 50) with G = 6 and N = 4. */
static const unsigned char of_one_pipeline[] = { 0x44, 0x49, 0x54, 0x54, 0x4f, 0x49, 0x54, 0x32, 0xfe,
                                                 0x27, 0x0b, 0xf7, 0x46, 0x46, 0xc1, 0x10, 0x01, 0x06,
                                                 0x04, 0x00, 0x00, 0x02, 0x01, 0x00, 0x0c, 0xc0, 0x9b,
                                                 0xc2, 0x8b, 0x43, 0x0e, 0x75, 0x91 };
static const unsigned char of_all_rows[] = { 0x44, 0x49, 0x54, 0x54, 0x4f, 0x49, 0x54, 0x32, 0xc0, 0xff,
                                             0x64, 0xe1, 0xde, 0xc8, 0x28, 0x18, 0x02, 0x06, 0x04, 0x00,
                                             0x00, 0x02, 0x01, 0x00, 0x06, 0x02, 0x01, 0x00, 0x06, 0xdc,
                                             0x78, 0x4a, 0xbe, 0x40, 0x28, 0xc7, 0xc8 };
static const unsigned char of_every_second_row[] = { 0x44, 0x49, 0x54, 0x54, 0x4f, 0x49, 0x54, 0x32, 0x2f,
                                                     0xed, 0xdd, 0xa4, 0xb1, 0x5c, 0xf3, 0x62, 0x02, 0x06,
                                                     0x04, 0x00, 0x00, 0x02, 0x01, 0x00, 0x01, 0x00, 0x0b,
                                                     0x02, 0x01, 0x00, 0x00, 0x00, 0x0c, 0x29, 0xe9, 0x91,
                                                     0x00, 0x6e, 0xcb, 0x0f, 0x15 };

static void older_states_continue_if_the_rules_are_the_same(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    ditto_iterator *it;
    ditto_dataset *d = range(0, 50);
    const struct {
        const unsigned char *state;
        size_t bytes;
        uint32_t pipelines;
        ditto_shard_policy shard;
    } kept[] = { { of_one_pipeline, sizeof of_one_pipeline, 1, DITTO_SHARD_AUTO },
                 { of_one_pipeline, sizeof of_one_pipeline, 1, DITTO_SHARD_DATA },
                 { of_all_rows, sizeof of_all_rows, 2, DITTO_SHARD_OFF } };
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        ditto_input_options options = { .struct_size = sizeof options,
                                        .global_batch = 6,
                                        .num_pipelines = kept[i].pipelines,
                                        .shard = kept[i].shard };
        struct record *whole = make_record(4), *rest = make_record(4);
        if (is_spread(s) && kept[i].pipelines > 1) {
            options.state = kept[i].state;
            options.state_bytes = kept[i].bytes;
            assert_status(ditto_strategy_iterate(s, d, &options, &it), DITTO_ERR_UNSUPPORTED);
            assert_message("on one host only");
            options.state = NULL;
            options.state_bytes = 0;
            free(whole);
            free(rest);
            continue;
        }
        whole->iterator = open_at(s, d, options, NULL, 0);
        rest->iterator = open_at(s, d, options, (const char *)kept[i].state, kept[i].bytes);
        for (uint32_t id = 0; id < 4; id++)
            rest->of[id].steps = 2;
        take_until(s, whole, UINT64_MAX);
        take_until(s, rest, UINT64_MAX);
        assert_int_equal(rest->of[0].steps, whole->of[0].steps);
        assert_same_from(whole, rest, 2);
        end_record(whole);
        end_record(rest);
    }
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

static void states_of_pipelines_that_shared_rows_in_another_way_are_refused(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    ditto_dataset *d = range(0, 50);
    ditto_iterator *it;
    size_t bytes;
    ditto_input_options options = { .struct_size = sizeof options,
                                    .global_batch = 6,
                                    .num_pipelines = 2,
                                    .state = of_every_second_row,
                                    .state_bytes = sizeof of_every_second_row };
    assert_status(ditto_strategy_iterate(s, d, &options, &it), DITTO_ERR_INVALID);
    assert_message("divided them row by row, as DITTO_SHARD_DATA did in an earlier version");
    options.shard = DITTO_SHARD_OFF;
    assert_status(ditto_strategy_iterate(s, d, &options, &it), DITTO_ERR_INVALID);
    assert_message("another dataset");
    options.shard = DITTO_SHARD_DATA;
    options.state = NULL;
    options.state_bytes = 0;
    it = open_at(s, d, options, NULL, 0);
    options.state = save(it, &bytes);
    options.state_bytes = bytes;
    assert_ok(ditto_iterator_destroy(it));
    options.shard = DITTO_SHARD_OFF;
    assert_status(ditto_strategy_iterate(s, d, &options, &it), DITTO_ERR_INVALID);
    assert_message("divide the rows of each global batch, but now they each read all rows of a dataset");
    options.num_pipelines = 1;
    assert_status(ditto_strategy_iterate(s, d, &options, &it), DITTO_ERR_INVALID);
    assert_message("2 pipelines, but now there are 1");
    ditto_state_free((void *)(uintptr_t)options.state);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rows_after_a_restore_are_those_that_would_have_come),
        cmocka_unit_test(pipelines_continue_together),
        cmocka_unit_test(an_error_that_waits_behind_a_buffer_is_not_saved_as_an_end),
        cmocka_unit_test(steps_that_exist_are_there_after_a_restore),
        cmocka_unit_test(rows_that_overlap_in_their_file_continue),
        one_host_test(replicas_at_different_steps_stay_apart,
                      "over hosts a pipeline of several of them is saved at one step"),
        cmocka_unit_test(pipelines_at_different_steps_stay_apart),
        cmocka_unit_test(a_pipeline_of_several_hosts_is_saved_at_one_step),
        cmocka_unit_test(older_states_continue_if_the_rules_are_the_same),
        cmocka_unit_test(states_of_pipelines_that_shared_rows_in_another_way_are_refused),
        cmocka_unit_test(a_state_belongs_to_its_dataset),
        cmocka_unit_test(rows_that_the_source_does_not_have_are_refused),
        cmocka_unit_test(an_iterator_that_cannot_be_saved_returns_an_error),
        cmocka_unit_test(a_save_does_not_wait_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
