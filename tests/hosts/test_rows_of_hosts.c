/* tests/hosts/test_rows_of_hosts.c - hosts that choose other rows of the same input are found when a run ends
 * (src/input/distribute/rows_of_hosts.h). */
#include "support/hosts.h"

#include <stdatomic.h>
#include <unistd.h>

enum { ROWS = 40, BATCH = 6 };

/* How the rows of one host differ from those of the others. */
struct source {
    uint32_t host, other; /* this host, and the one that differs */
    int64_t row;          /* the row that differs there, or -1 */
    int64_t rows;         /* so many on that host, or ROWS */
    bool fails;           /* that row is an error there */

    /* If not NULL, the rows of a step are given when so many steps have been taken. */
    atomic_int *taken;
};

static bool is_other(const struct source *s)
{
    return s->host == s->other;
}

/* -- sources -- */

static ditto_status open_rows(void *user, uint64_t pass, void **position)
{
    *position = calloc(1, sizeof(int64_t));
    return DITTO_OK;
}

static ditto_status next_row(void *user, void *position, const ditto_tensor *row)
{
    const struct source *s = user;
    int64_t *next = position, rows = is_other(s) ? s->rows : ROWS;
    if (*next == rows)
        return DITTO_END_OF_INPUT;
    if (s->fails && *next == s->row && is_other(s))
        return ditto_fail(NULL, 3, "row 15 is missing");
    for (int i = 0; s->taken != NULL && *next / BATCH > atomic_load(s->taken) && i < 30000; i++)
        usleep(1000);
    *(int64_t *)row->data = *next == s->row && is_other(s) ? -1 : *next;
    ++*next;
    return DITTO_OK;
}

static void close_rows(void *user, void *position)
{
    free(position);
}

static ditto_status generate(struct source *s, ditto_dataset **out)
{
    ditto_generator g = {
        .struct_size = sizeof g, .user = s, .open = open_rows, .next = next_row, .close = close_rows
    };
    return ditto_dataset_from_generator(&g, &(ditto_tensor){ .dtype = DITTO_I64 }, 1, out);
}

static ditto_status keeps(const ditto_tensor *row, void *user, int *keep)
{
    const struct source *s = user;
    *keep = !is_other(s) || *(const int64_t *)row->data != s->row;
    return DITTO_OK;
}

static ditto_status filter(struct source *s, ditto_dataset **out)
{
    ditto_dataset *rows;
    DITTO_TRY(ditto_dataset_from_range(0, ROWS, 1, &rows));
    DITTO_TRY(ditto_dataset_filter(rows, keeps, s, out));
    return ditto_dataset_destroy(rows);
}

typedef ditto_status make_fn(struct source *s, ditto_dataset **out);

/* -- runs -- */

struct taking {
    ditto_iterator *iterator;
    uint64_t most; /* steps of each replica */
};

/* Each replica takes its rows and no host meets another one. */
static ditto_status take(ditto_replica *self, void *argument)
{
    const struct taking *t = argument;
    ditto_batch batch;
    ditto_status status = DITTO_OK;
    for (uint64_t i = 0; i < t->most && status == DITTO_OK; i++)
        status = ditto_next(self, t->iterator, &batch);
    return status == DITTO_END_OF_INPUT ? DITTO_OK : status;
}

static ditto_status take_steps(ditto_strategy *strategy, ditto_iterator *it, uint64_t most)
{
    return ditto_strategy_run(strategy, take, &(struct taking){ .iterator = it, .most = most });
}

static ditto_status iterate(ditto_strategy *strategy, ditto_dataset *rows, uint32_t pipelines,
                            ditto_iterator **out)
{
    ditto_input_options options = OPTIONS(input, .global_batch = BATCH, .num_pipelines = pipelines,
                                          .shard = pipelines > 1 ? DITTO_SHARD_DATA : DITTO_SHARD_DEFAULT);
    return ditto_strategy_iterate(strategy, rows, &options, out);
}

/* A strategy with two replicas on each host, and a dataset. */
static ditto_status begin(struct test_host *host, make_fn *make, struct source *s, ditto_strategy **strategy,
                          ditto_dataset **rows)
{
    DITTO_TRY(make_host_strategy(host, 2, NULL, strategy));
    return make(s, rows);
}

static ditto_status end(ditto_strategy *strategy, ditto_dataset *rows)
{
    DITTO_TRY(ditto_dataset_destroy(rows));
    return ditto_strategy_destroy(strategy);
}

/* Row 15 is in the third step, and the others are equal. */
static ditto_status finds_row_15(struct test_host *host, make_fn *make, uint32_t pipelines, const char *name)
{
    struct source s = { .host = host->host, .other = 1, .row = 15, .rows = ROWS };
    ditto_strategy *strategy;
    ditto_dataset *rows;
    ditto_iterator *it;
    DITTO_TRY(begin(host, make, &s, &strategy, &rows));
    for (int i = 0; i < test_trials(3); i++) {
        DITTO_TRY(iterate(strategy, rows, pipelines, &it));
        DITTO_TRY(take_steps(strategy, it, 1));
        DITTO_TRY(take_steps(strategy, it, 1));
        DITTO_TRY(
            expect(host, take_steps(strategy, it, 1), DITTO_ERR_DIVERGED,
                   "host 0 (node0, replicas 0-1) and host 1 (node1, replicas 2-3) have chosen different "
                   "rows of the dataset ("));
        CHECK(host, strstr(ditto_last_error()->message, name) != NULL);
        CHECK(host, strstr(ditto_last_error()->message, "in steps 0 to 2") != NULL);
        DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report)); /* it takes no rows */
        DITTO_TRY(expect(host, take_steps(strategy, it, 1), DITTO_ERR_DIVERGED, "in steps 0 to 3"));
        DITTO_TRY(ditto_iterator_destroy(it));
        DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
    }
    return end(strategy, rows);
}

static ditto_status finds_a_generated_row(struct test_host *host)
{
    return finds_row_15(host, generate, 1, "(generator, pass 0)");
}

static ditto_status finds_a_filtered_row(struct test_host *host)
{
    DITTO_TRY(finds_row_15(host, filter, 1, "(filter of range, pass 0)"));
    return finds_row_15(host, filter, host->hosts, "(filter of range, pass 0)");
}

static void a_generator_that_gives_another_row_on_one_host_is_found(void **state)
{
    on_hosts(2, 0, finds_a_generated_row, NULL);
    on_hosts(3, 50, finds_a_generated_row, NULL);
}

static void a_filter_that_drops_another_row_on_one_host_is_found(void **state)
{
    on_hosts(2, 50, finds_a_filtered_row, NULL);
    on_hosts(3, 0, finds_a_filtered_row, NULL);
}

/* The input of a host ends after some steps. */
struct early {
    uint32_t host;
    int64_t steps;
    const char *text;
};

static ditto_status ends_early(struct test_host *host)
{
    const struct early *early = host->argument;
    struct source s = { .host = host->host, .other = early->host, .row = -1, .rows = early->steps * BATCH };
    ditto_strategy *strategy;
    ditto_dataset *rows;
    ditto_iterator *it;
    DITTO_TRY(begin(host, generate, &s, &strategy, &rows));
    DITTO_TRY(iterate(strategy, rows, 1, &it));
    DITTO_TRY(expect(host, take_steps(strategy, it, UINT64_MAX), DITTO_ERR_DIVERGED, early->text));
    DITTO_TRY(ditto_iterator_destroy(it));
    return end(strategy, rows);
}

static void input_that_ends_early_on_one_host_is_found(void **state)
{
    static const struct early early[] = { { 0, 2, "in steps 0 to 2" },
                                          { 1, 2, "in steps 0 to 2" },
                                          { 0, 0, "in steps 0 to 0" },
                                          { 1, 0, "in steps 0 to 0" } };
    for (size_t i = 0; i < sizeof early / sizeof early[0]; i++) {
        on_hosts(2, 0, ends_early, (void *)(uintptr_t)&early[i]);
        on_hosts(3, 50, ends_early, (void *)(uintptr_t)&early[i]);
    }
}

/* A row that one host cannot give is an error of its own. */
static ditto_status fails_to_give(struct test_host *host)
{
    struct source s = { .host = host->host, .other = 1, .row = 15, .rows = ROWS, .fails = true };
    ditto_strategy *strategy;
    ditto_dataset *rows;
    ditto_iterator *it;
    DITTO_TRY(begin(host, generate, &s, &strategy, &rows));
    for (int i = 0; i < test_trials(5); i++) {
        ditto_status status = DITTO_OK;
        DITTO_TRY(iterate(strategy, rows, 1, &it));
        for (int step = 0; step < ROWS / BATCH && status == DITTO_OK; step++)
            status = take_steps(strategy, it, 1);
        DITTO_TRY(expect(host, status, DITTO_ERR_USER, "row 15 is missing"));
        DITTO_TRY(ditto_iterator_destroy(it));
    }
    return end(strategy, rows);
}

static void a_row_that_one_host_cannot_give_is_its_error(void **state)
{
    on_hosts(2, 0, fails_to_give, NULL);
    on_hosts(3, 50, fails_to_give, NULL);
}

/* The generator waits, on a producer, for what the program does after the run. */
static ditto_status gives_after_the_run(struct test_host *host)
{
    atomic_int taken = 0;
    struct source s = { .host = host->host, .other = UINT32_MAX, .row = -1, .rows = ROWS, .taken = &taken };
    ditto_strategy *strategy;
    ditto_dataset *rows;
    ditto_iterator *it;
    DITTO_TRY(begin(host, generate, &s, &strategy, &rows));
    DITTO_TRY(iterate(strategy, rows, 1, &it));
    for (int step = 0; step < ROWS / BATCH; step++) {
        atomic_store(&taken, step);
        DITTO_TRY(take_steps(strategy, it, 1));
    }
    atomic_store(&taken, ROWS);
    DITTO_TRY(ditto_iterator_destroy(it));
    return end(strategy, rows);
}

static void a_generator_may_wait_for_the_end_of_a_run(void **state)
{
    on_hosts(2, 0, gives_after_the_run, NULL);
}

/* Replicas of the hosts need not take equally many steps in one run. */
static ditto_status takes_at_its_own_pace(struct test_host *host)
{
    struct source s = { .host = host->host, .other = UINT32_MAX, .row = -1, .rows = ROWS };
    ditto_strategy *strategy;
    ditto_dataset *rows;
    ditto_iterator *it;
    DITTO_TRY(begin(host, generate, &s, &strategy, &rows));
    for (int i = 0; i < test_trials(10); i++) {
        DITTO_TRY(iterate(strategy, rows, 1, &it));
        for (uint64_t k = 0; k < 6; k++)
            DITTO_TRY(take_steps(strategy, it, (host->host + k) % 3));
        DITTO_TRY(take_steps(strategy, it, UINT64_MAX));
        DITTO_TRY(ditto_iterator_destroy(it));
    }
    return end(strategy, rows);
}

static void equal_rows_are_found_equal_at_any_pace(void **state)
{
    on_hosts(2, 0, takes_at_its_own_pace, NULL);
    on_hosts(3, 50, takes_at_its_own_pace, NULL);
}

enum { ITERATORS = 70 };

static ditto_status take_of_each(ditto_replica *self, void *argument)
{
    ditto_iterator *const *it = argument;
    for (int i = 0; i < ITERATORS; i++)
        DITTO_TRY(take(self, &(struct taking){ .iterator = it[i], .most = 3 }));
    return DITTO_OK;
}

/* More iterators have news than a note has room for. The rest is told at the end of the next run. */
static ditto_status finds_one_of_many(struct test_host *host, int which)
{
    struct source s = { .host = host->host, .other = 1, .row = 15, .rows = ROWS };
    ditto_strategy *strategy;
    ditto_dataset *rows, *others;
    ditto_iterator *it[ITERATORS];
    DITTO_TRY(begin(host, filter, &s, &strategy, &rows));
    DITTO_TRY(ditto_dataset_from_range(0, ROWS, 1, &others));
    for (int i = 0; i < ITERATORS; i++)
        DITTO_TRY(iterate(strategy, i == which ? rows : others, 1, &it[i]));
    ditto_status status = ditto_strategy_run(strategy, take_of_each, it);
    if (status == DITTO_OK)
        status = ditto_strategy_run(strategy, sum_of_ids, host->report);
    DITTO_TRY(expect(host, status, DITTO_ERR_DIVERGED, "(filter of range"));
    DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
    for (int i = 0; i < ITERATORS; i++)
        DITTO_TRY(ditto_iterator_destroy(it[i]));
    DITTO_TRY(ditto_dataset_destroy(others));
    return end(strategy, rows);
}

static ditto_status uses_many_iterators(struct test_host *host)
{
    DITTO_TRY(finds_one_of_many(host, 0));
    return finds_one_of_many(host, ITERATORS - 1);
}

static void each_of_many_iterators_is_compared(void **state)
{
    on_hosts(2, 0, uses_many_iterators, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_generator_that_gives_another_row_on_one_host_is_found),
        cmocka_unit_test(a_filter_that_drops_another_row_on_one_host_is_found),
        cmocka_unit_test(input_that_ends_early_on_one_host_is_found),
        cmocka_unit_test(a_row_that_one_host_cannot_give_is_its_error),
        cmocka_unit_test(a_generator_may_wait_for_the_end_of_a_run),
        cmocka_unit_test(equal_rows_are_found_equal_at_any_pace),
        cmocka_unit_test(each_of_many_iterators_is_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
