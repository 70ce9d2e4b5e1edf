/* tests/input/distribute/test_failing_rows.c - tests which batches and then which error each replica gets
 * when a row fails, and what ends the waiting for another pipeline's batches. The expected batches are
 * computed from rules 9.6, 9.8 and 9.10 of docs/semantics.md. They are the same for any number of producers,
 * of batches in a queue, and of pipelines that share rows, and for any order of the threads. */
#include "input/written_rows.h"
#include "input/distribute/step_model.h"

#include <pthread.h>
#include <time.h>

enum { MOST_BATCHES = 64, MOST_OF_ALL = 64, SERVED = 4 };

static void rest_us(long us)
{
    nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

/* -- where a row fails -- */

/* An error while rows are chosen is found by all pipelines that share the rows. An error while batches are
 * filled is found only by the pipeline that delivers the row, which tells the others. */
enum where { IN_MAP, IN_FIELD, IN_FILTER, IN_GENERATOR };

static bool is_chosen(enum where where)
{
    return where == IN_FILTER || where == IN_GENERATOR;
}

/* Fails slowly, so that other producers and pipelines are usually ahead. */
static ditto_status fail_slowly(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                                void *row)
{
    *(int64_t *)out[0].data = *(const int64_t *)in[0].data;
    if (*(const int64_t *)in[0].data != *(const int64_t *)row)
        return DITTO_OK;
    rest_us(500);
    return DITTO_ERR_CORRUPT;
}

static ditto_status refuse_row(const ditto_tensor *in, void *row, int *keep)
{
    *keep = 1;
    return *(const int64_t *)in[0].data == *(const int64_t *)row ? DITTO_ERR_CORRUPT : DITTO_OK;
}

static ditto_status open_count(void *row, uint64_t pass, void **position)
{
    *position = calloc(1, sizeof(int64_t));
    return *position != NULL ? DITTO_OK : DITTO_ERR_NO_MEMORY;
}
static ditto_status count_to_failure(void *row, void *position, const ditto_tensor *out)
{
    int64_t *at = position;
    if (*at == *(const int64_t *)row)
        return DITTO_ERR_CORRUPT;
    *(int64_t *)out[0].data = (*at)++;
    return DITTO_OK;
}
static void close_count(void *row, void *position)
{
    free(position);
}

static ditto_dataset *make_generator(int64_t *row)
{
    ditto_dataset *d;
    ditto_generator g = { .struct_size = sizeof g,
                          .user = row,
                          .open = open_count,
                          .next = count_to_failure,
                          .close = close_count };
    assert_ok(ditto_dataset_from_generator(&g, &(ditto_tensor){ .dtype = DITTO_I64 }, 1, &d));
    return d;
}

static char *write_fields(int64_t length, int64_t row)
{
    char text[16 * MOST_OF_ALL] = "";
    for (int64_t i = 0; i < length; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), i == row ? "what\n" : "%lld\n",
                 (long long)i);
    return temporary_file(text);
}

static ditto_dataset *make_fields(char *name)
{
    ditto_csv_component component = { .num_columns = 1, .dtype = DITTO_I64 };
    ditto_dataset *d;
    assert_ok(
        ditto_dataset_from_csv(&(ditto_files){ (const char *[]){ name }, 1, 0 }, &component, 1, NULL, &d));
    return d;
}

/* Makes a dataset with a row that fails in a map or in a filter, and destroys the handle of the input. */
static ditto_dataset *failing(ditto_dataset *input, enum where where, int64_t *row)
{
    ditto_dataset *d;
    assert_ok(where == IN_MAP ? ditto_dataset_map(input, fail_slowly, row, NULL, &d)
                              : ditto_dataset_filter(input, refuse_row, row, &d));
    assert_ok(ditto_dataset_destroy(input));
    return d;
}

/* -- the batches of every replica -- */

struct batches {
    uint64_t count, size[MOST_BATCHES], rows;
    int64_t row[MOST_OF_ALL];
    ditto_status end;
    char message[512];
};
struct got {
    ditto_iterator *iterator;
    uint32_t slow; /* the replica that rests after each batch; N means none */
    struct batches replica[SERVED];
    struct report report;
};

static ditto_status take_all(ditto_replica *self, void *argument)
{
    struct got *g = argument;
    uint32_t id = ditto_replica_id(self);
    struct batches *taken = &g->replica[id];
    ditto_batch b;
    while ((taken->end = ditto_next(self, g->iterator, &b)) == DITTO_OK) {
        EXPECT(&g->report,
               taken->count < MOST_BATCHES && taken->rows + b.rows <= MOST_OF_ALL && b.step == taken->count);
        memcpy(taken->row + taken->rows, b.component[0].data, b.rows * sizeof(int64_t));
        taken->size[taken->count++] = b.rows;
        taken->rows += b.rows;
        if (id == g->slow)
            rest_us(50);
    }
    if (taken->end < 0)
        snprintf(taken->message, sizeof taken->message, "%s", ditto_last_error()->message);
    EXPECT(&g->report, ditto_next(self, g->iterator, &b) == taken->end); /* the same status again */
    EXPECT(&g->report, taken->end >= 0 || strcmp(taken->message, ditto_last_error()->message) == 0);
    return DITTO_OK;
}

/* What the replicas must get. */
struct expectation {
    struct batches replica[SERVED];
    char error[200]; /* a part of the message, which names the row that fails */
    char what[200];  /* the case, for the message of a failed comparison */
};

static void give(struct batches *to, int64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        to->row[to->rows++] = first + (int64_t)i;
    to->size[to->count++] = count;
}

/* Adds the batch of `count` rows from `first` on. If row `bad` is one of them, the batch ends before it. With
 * static shapes there is no batch then. */
static void give_up_to(struct batches *to, int64_t first, uint64_t count, int64_t bad, bool is_static)
{
    bool fails = bad >= first && bad < first + (int64_t)count;
    to->end = fails ? DITTO_ERR_CORRUPT : DITTO_OK;
    if (!fails)
        give(to, first, count);
    else if (!is_static && bad > first)
        give(to, first, (uint64_t)(bad - first));
}

static void compare(const struct got *found, const struct expectation *expected, uint32_t replicas)
{
    const char *message = NULL;
    for (uint32_t r = 0; r < replicas; r++) {
        const struct batches *f = &found->replica[r], *e = &expected->replica[r];
        bool same = f->count == e->count && f->rows == e->rows && f->end == e->end &&
                    memcmp(f->size, e->size, e->count * sizeof e->size[0]) == 0 &&
                    memcmp(f->row, e->row, e->rows * sizeof e->row[0]) == 0;
        if (!same)
            fail_msg("%s: replica %u got %llu rows in %llu batches, then %s; expected %llu rows in %llu "
                     "batches, then %s",
                     expected->what, r, (unsigned long long)f->rows, (unsigned long long)f->count,
                     ditto_status_name(f->end), (unsigned long long)e->rows, (unsigned long long)e->count,
                     ditto_status_name(e->end));
        if (f->end < 0 && message != NULL)
            assert_string_equal(f->message, message); /* all replicas get the same error */
        if (f->end < 0 && strstr(f->message, expected->error) == NULL)
            fail_msg("%s: \"%s\" is not in \"%s\"", expected->what, expected->error, f->message);
        if (f->end < 0)
            message = f->message;
    }
}

/* `number` selects how many batches a queue holds. */
static ditto_input_options options_of(const struct steps *s, uint32_t producers, uint64_t number)
{
    static const uint32_t buffer[] = { DITTO_NO_PREFETCH, 1, 2, 8 };
    ditto_input_options options = OPTIONS(
        input, .global_batch = s->last == LAST_DROPPED ? 0 : s->global, .num_pipelines = s->pipelines,
        .partial = s->last == LAST_EVEN ? DITTO_PARTIAL_EVEN : DITTO_PARTIAL_DEFAULT,
        .flags = s->last == LAST_STATIC ? DITTO_INPUT_STATIC : 0, .num_producers = producers,
        .buffer = buffer[number % 4]);
    return options;
}

static void take_and_compare(ditto_strategy *strategy, const struct steps *s, ditto_dataset *d,
                             const ditto_input_options *options, const struct expectation *expected)
{
    static struct got found;
    memset(&found, 0, sizeof found);
    found.slow = (uint32_t)(s->global % (s->replicas + 1));
    assert_ok(ditto_strategy_iterate(strategy, d, options, &found.iterator));
    run_all(strategy, take_all, &found, &found.report);
    compare(&found, expected, s->replicas);
    assert_ok(ditto_iterator_destroy(found.iterator));
}

/* -- pipelines that share rows -- */

/* Computes the expected batches by the rules of one pipeline that serves all replicas. The batches before the
 * row that fails, in the order of steps and replicas, are delivered. If it fails
 * when rows are chosen, a short step in front of it is delivered too, except with static shapes. */
static void expect_shared(const struct steps *asked, enum where where, int64_t row, struct batches *expected)
{
    struct steps s = *asked;
    ditto_status end = is_chosen(where) ? DITTO_ERR_CORRUPT : DITTO_END_OF_INPUT;
    if (is_chosen(where)) {
        s.length[0] = (uint64_t)row;
        s.last = s.last == LAST_DROPPED ? LAST_FILLED : s.last;
    }
    memset(expected, 0, SERVED * sizeof *expected);
    begin_steps(&s);
    for (bool failed = false; !failed && next_step(&s);)
        for (uint32_t r = 0; r < s.replicas && !failed; r++) {
            give_up_to(&expected[r], (int64_t)s.first[r], s.count[r], is_chosen(where) ? -1 : row,
                       s.last == LAST_STATIC);
            failed = expected[r].end < 0;
            end = failed ? expected[r].end : end;
        }
    for (uint32_t r = 0; r < s.replicas; r++)
        expected[r].end = end;
}

static void try_shared(ditto_strategy *strategy, const struct steps *s, enum where where, int64_t row,
                       uint32_t producers, uint64_t number)
{
    struct expectation expected;
    char *name = where == IN_FIELD ? write_fields((int64_t)s->length[0], row) : NULL;
    ditto_input_options options = options_of(s, producers, number);
    options.shard = s->pipelines > 1 ? DITTO_SHARD_DATA : DITTO_SHARD_DEFAULT;
    ditto_dataset *d = where == IN_FIELD       ? make_fields(name)
                       : where == IN_GENERATOR ? make_generator(&row)
                                               : failing(range(0, (int64_t)s->length[0]), where, &row);
    if (s->last == LAST_DROPPED)
        d = then(d, whole_batches_of, s->global);
    if (where == IN_FIELD) /* lines are counted from 1 */
        snprintf(expected.error, sizeof expected.error, "%s:%lld:", name, (long long)row + 1);
    else
        snprintf(expected.error, sizeof expected.error, "on row %lld of a %s", (long long)row,
                 where == IN_GENERATOR ? "generator" : "range");
    snprintf(expected.what, sizeof expected.what,
             "row %lld of %llu fails in %d, G = %llu, N = %u, W = %u, last %d, %u producers, buffer %u",
             (long long)row, (unsigned long long)s->length[0], (int)where, (unsigned long long)s->global,
             s->replicas, s->pipelines, (int)s->last, producers, options.buffer);
    expect_shared(s, where, row, expected.replica);
    take_and_compare(strategy, s, d, &options, &expected);
    assert_ok(ditto_dataset_destroy(d));
    if (name != NULL)
        forget_file(name);
}

/* Tries every row (with DITTO_TEST_SHORT every fifth), all rules for the last step, and several numbers of
 * pipelines and producers. */
static void rows_and_errors_do_not_depend_on_the_number_of_pipelines(enum where where)
{
    static const uint64_t global[] = { 1, 2, 3, 4, 7, 8 };
    uint64_t random = test_seed(961 + (uint64_t)where);
    int64_t every = test_is_short() ? 5 : 1, length = 19;
    for (uint32_t replicas = 2; replicas <= SERVED; replicas += 2) {
        ditto_strategy *strategy = make_strategy(replicas, NULL);
        for (uint32_t pipelines = 1; pipelines <= replicas; pipelines *= 2)
            for (uint32_t producers = 1; producers <= 3; producers++)
                for (int last = 0; last < LAST_STEPS; last++)
                    for (int64_t row = (int64_t)(test_random(&random) % (uint64_t)every); row < length;
                         row += every) {
                        struct steps s = { .global = global[test_random(&random) % 6],
                                           .replicas = replicas,
                                           .pipelines = pipelines,
                                           .shared = true,
                                           .last = (enum last_step)last,
                                           .length = { (uint64_t)length } };
                        try_shared(strategy, &s, where, row, producers, test_random(&random));
                    }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void rule_9_6_a_map_that_fails_ends_all_pipelines_at_its_row(void **state)
{
    rows_and_errors_do_not_depend_on_the_number_of_pipelines(IN_MAP);
}
static void rule_9_6_a_field_that_is_no_number_ends_all_pipelines_at_its_row(void **state)
{
    rows_and_errors_do_not_depend_on_the_number_of_pipelines(IN_FIELD);
}
static void rule_9_6_a_filter_that_fails_ends_all_pipelines_at_its_row(void **state)
{
    rows_and_errors_do_not_depend_on_the_number_of_pipelines(IN_FILTER);
}
static void rule_9_6_a_generator_that_fails_ends_all_pipelines_at_its_row(void **state)
{
    rows_and_errors_do_not_depend_on_the_number_of_pipelines(IN_GENERATOR);
}

/* -- pipelines that read different rows -- */

/* Each pipeline reads one file. The rows of file w are 1000 w + i. */
struct of_files {
    struct steps steps;
    enum where where;

    /* The row that fails is number `row` of this pipeline's file. */
    uint32_t pipeline;
    int64_t row;
};

/* Returns the rows that pipeline w has in the model's current step, if the step is full. */
static uint64_t full_step(const struct steps *s, uint32_t w)
{
    uint64_t per_pipeline = s->replicas / s->pipelines, first = (w + s->step) * per_pipeline, rows = 0;
    for (uint64_t place = first; place < first + per_pipeline; place++)
        rows += s->global / s->replicas + (place % s->replicas < s->global % s->replicas);
    return rows;
}

/* Returns whether pipeline w has rows for the model's current step. If G < N and it gets no rows in this
 * step, returns whether it has rows later. `before` is the number of rows that it has given in earlier
 * steps. */
static bool has_own(const struct steps *s, uint32_t w, uint64_t before)
{
    return full_step(s, w) == 0 ? before < s->length[w] : s->given[w] > before;
}

/* With static shapes the pass ends for all pipelines at the row that fails. Otherwise the other pipelines
 * continue with their own rows. Behind the error, a pipeline gets the error instead of its first batch
 * without rows, or instead of the end. */
static void expect_own(const struct of_files *o, struct batches *expected)
{
    struct steps s = o->steps;
    uint32_t per_pipeline = s.replicas / s.pipelines;
    bool is_static = s.last == LAST_STATIC, failed = false;
    if (is_chosen(o->where))
        s.length[o->pipeline] = (uint64_t)o->row;
    memset(expected, 0, SERVED * sizeof *expected);
    begin_steps(&s);
    for (;;) {
        uint64_t before[MOST_REPLICAS];
        memcpy(before, s.given, sizeof before);
        /* `lacks` is true if the pipeline has given all its rows before the one that fails. */
        bool exists = next_step(&s),
             lacks = is_chosen(o->where) && before[o->pipeline] == s.length[o->pipeline];
        failed |= lacks && !exists && !is_static;
        if (!exists)
            break;
        for (uint32_t r = 0; r < s.replicas; r++) {
            uint32_t w = r / per_pipeline;
            failed |= lacks && w == o->pipeline && !is_static;
            int64_t bad = w == o->pipeline && !is_chosen(o->where) ? o->row : -1;
            struct batches *given = &expected[r];
            bool behind = failed && (is_static || w == o->pipeline || !has_own(&s, w, before[w]));
            if (given->end != DITTO_OK || behind) {
                given->end = DITTO_ERR_CORRUPT;
                continue;
            }
            uint64_t at = given->rows;
            give_up_to(given, (int64_t)s.first[r], s.count[r], bad, is_static);
            for (; at < given->rows; at++)
                given->row[at] += 1000 * (int64_t)w;
            failed |= given->end < 0;
        }
    }
    /* With static shapes the pass has failed if it ended because that pipeline has no full step left. */
    if (is_chosen(o->where) && is_static)
        failed = s.length[o->pipeline] - s.given[o->pipeline] < full_step(&s, o->pipeline);
    for (uint32_t r = 0; r < s.replicas; r++)
        expected[r].end = failed ? DITTO_ERR_CORRUPT : DITTO_END_OF_INPUT;
}

static void try_own(ditto_strategy *strategy, const struct of_files *o, uint32_t producers, uint64_t number)
{
    const struct steps *s = &o->steps;
    struct expectation expected;
    int64_t bad = 1000 * (int64_t)o->pipeline + o->row;
    ditto_input_options options = options_of(s, producers, number);
    char *name[SERVED];
    ditto_dataset *d;
    for (uint32_t w = 0; w < s->pipelines; w++) {
        int64_t row[MOST_OF_ALL];
        for (uint64_t i = 0; i < s->length[w]; i++)
            row[i] = 1000 * (int64_t)w + (int64_t)i;
        name[w] = temporary_bytes((const char *)row, s->length[w] * sizeof row[0]);
    }
    assert_ok(ditto_dataset_from_fixed(&(ditto_files){ (const char *const *)name, s->pipelines, 0 },
                                       &(ditto_tensor){ .dtype = DITTO_I64 }, 1, NULL, &d));
    d = failing(d, o->where, &bad);
    options.shard = DITTO_SHARD_FILE;
    snprintf(expected.error, sizeof expected.error, "on %s: record %lld at offset %lld", name[o->pipeline],
             (long long)o->row + 1, 8 * (long long)o->row); /* records are counted from 1 */
    snprintf(expected.what, sizeof expected.what,
             "row %lld of pipeline %u (%llu) fails in %d, G = %llu, N = %u, W = %u, last %d, %u producers",
             (long long)o->row, o->pipeline, (unsigned long long)s->length[o->pipeline], (int)o->where,
             (unsigned long long)s->global, s->replicas, s->pipelines, (int)s->last, producers);
    expect_own(o, expected.replica);
    take_and_compare(strategy, s, d, &options, &expected);
    assert_ok(ditto_dataset_destroy(d));
    for (uint32_t w = 0; w < s->pipelines; w++)
        forget_file(name[w]);
}

static void rule_9_10_no_pipeline_over_files_ends_as_if_there_were_no_error(void **state)
{
    uint64_t random = test_seed(962);
    ditto_strategy *strategy = make_strategy(SERVED, NULL);
    for (int trial = test_trials(600); trial > 0; trial--) {
        struct of_files o = { .steps = { .global = 1 + test_random(&random) % 9,
                                         .replicas = SERVED,
                                         .pipelines = test_random(&random) % 2 ? 2 : 4,
                                         .last = (enum last_step)(test_random(&random) % LAST_DROPPED) },
                              .where = test_random(&random) % 2 ? IN_MAP : IN_FILTER };
        for (uint32_t w = 0; w < o.steps.pipelines; w++)
            o.steps.length[w] = 1 + test_random(&random) % 15;
        o.pipeline = (uint32_t)(test_random(&random) % o.steps.pipelines);
        o.row = (int64_t)(test_random(&random) % o.steps.length[o.pipeline]);
        try_own(strategy, &o, 1 + (uint32_t)(trial % 3), test_random(&random));
    }
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- what ends the waiting for another pipeline's batches -- */

struct waiting {
    ditto_iterator *iterator;

    /* The expected status of the run. It decides what replica 0 does. */
    ditto_status expected_run;
    ditto_status expected_last; /* of replica 1 */
    _Atomic ditto_status last;  /* the last status that replica 1 got */
};

/* Replica 1 takes all batches that it can get. Replica 0 takes one, and then leaves or fails. If the run must
 * end with the timeout, replica 0 takes none, because its own wait for a late producer could end first. */
static ditto_status wait_for_other(ditto_replica *self, void *argument)
{
    struct waiting *w = argument;
    ditto_batch b;
    ditto_status status;
    if (ditto_replica_id(self) == 0) {
        if (w->expected_run != DITTO_ERR_TIMED_OUT)
            DITTO_TRY(ditto_next(self, w->iterator, &b));
        for (int ms = 0; w->expected_run == DITTO_ERR_TIMED_OUT && w->last == DITTO_OK && ms < 60000; ms++)
            sleep_ms(1);
        return w->expected_run == DITTO_ERR_USER ? ditto_fail(self, 1, "enough") : DITTO_OK;
    }
    while ((status = ditto_next(self, w->iterator, &b)) == DITTO_OK)
        ;
    w->last = status;
    return status;
}

/* Runs in a child process with a time limit, because a wrong library would wait for ever. */
static int wait_in_child(void *argument)
{
    const struct waiting *asked = argument;
    for (uint32_t producers = 1; producers <= 2; producers++) {
        struct waiting w = *asked;
        ditto_strategy *s;
        ditto_dataset *d;
        ditto_strategy_options so = OPTIONS(strategy, .num_replicas = 2,
                                            .timeout_ms = w.expected_run == DITTO_ERR_TIMED_OUT ? 300 : 0);
        REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &so, &s) == DITTO_OK);
        REQUIRE(ditto_dataset_from_range(0, 1000000000, 1, &d) == DITTO_OK);
        REQUIRE(ditto_strategy_iterate(
                    s, d, &OPTIONS(input, .global_batch = 2, .num_pipelines = 2, .num_producers = producers),
                    &w.iterator) == DITTO_OK);
        ditto_status status = ditto_strategy_run(s, wait_for_other, &w);
        REQUIRE(status == w.expected_run);
        REQUIRE(w.expected_run != DITTO_ERR_DIVERGED ||
                strstr(ditto_last_error()->message, "replica 0 has returned") != NULL);
        REQUIRE(w.last == w.expected_last);
        REQUIRE(ditto_iterator_destroy(w.iterator) == DITTO_OK);
        REQUIRE(ditto_dataset_destroy(d) == DITTO_OK);
        REQUIRE(ditto_strategy_destroy(s) == DITTO_OK);
    }
    return 0;
}

static void rule_9_9_a_replica_that_has_left_is_named_to_other_pipelines(void **state)
{
    assert_int_equal(
        in_child(wait_in_child,
                 &(struct waiting){ .expected_run = DITTO_ERR_DIVERGED, .expected_last = DITTO_ERR_DIVERGED },
                 60),
        0);
}
static void waiting_for_another_pipeline_ends_with_the_timeout(void **state)
{
    assert_int_equal(in_child(wait_in_child,
                              &(struct waiting){ .expected_run = DITTO_ERR_TIMED_OUT,
                                                 .expected_last = DITTO_ERR_TIMED_OUT },
                              60),
                     0);
}
static void waiting_for_another_pipeline_ends_with_the_run(void **state)
{
    assert_int_equal(
        in_child(wait_in_child,
                 &(struct waiting){ .expected_run = DITTO_ERR_USER, .expected_last = DITTO_ERR_PEER_STOPPED },
                 60),
        0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_9_6_a_map_that_fails_ends_all_pipelines_at_its_row),
        cmocka_unit_test(rule_9_6_a_field_that_is_no_number_ends_all_pipelines_at_its_row),
        cmocka_unit_test(rule_9_6_a_filter_that_fails_ends_all_pipelines_at_its_row),
        cmocka_unit_test(rule_9_6_a_generator_that_fails_ends_all_pipelines_at_its_row),
        cmocka_unit_test(rule_9_10_no_pipeline_over_files_ends_as_if_there_were_no_error),
        cmocka_unit_test(rule_9_9_a_replica_that_has_left_is_named_to_other_pipelines),
        cmocka_unit_test(waiting_for_another_pipeline_ends_with_the_timeout),
        cmocka_unit_test(waiting_for_another_pipeline_ends_with_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
