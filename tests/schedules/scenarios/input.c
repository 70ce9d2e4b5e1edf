/* tests/schedules/scenarios/input.c - iterators: their producers, their errors, and their end. */
#include "scenarios.h"

#include <ditto/distribute.h>
#include <ditto/source.h>
#include <ditto/transform.h>

#include <sched.h>
#include <stdatomic.h>

/* Two replicas get the squares of 0 to 9, 4 rows in each step. */
enum { ROWS = 10, REPLICAS = 2, PER_STEP = 4, BAD_ROW = 6 };
static ditto_dataset *dataset;
static ditto_iterator *iterator;
static bool has_bad_row;
static _Atomic uint32_t seen[ROWS];
static _Atomic bool inside; /* a replica has a batch */

static ditto_status square(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random, void *user)
{
    int64_t x = *(const int64_t *)in->data;
    (void)random, (void)user;
    *(int64_t *)out->data = x * x;
    return has_bad_row && x == BAD_ROW ? DITTO_ERR_USER : DITTO_OK;
}

static void two_and_a_dataset(void)
{
    ditto_dataset *numbers;
    two();
    EXPECT(ditto_dataset_from_range(0, ROWS, 1, &numbers) == DITTO_OK);
    EXPECT(ditto_dataset_map(numbers, square, NULL, NULL, &dataset) == DITTO_OK);
    EXPECT(ditto_dataset_destroy(numbers) == DITTO_OK);
}

static void iterate(uint32_t buffer, uint32_t producers, uint32_t pipelines, const void *state, size_t bytes)
{
    ditto_input_options o = DITTO_INPUT_OPTIONS_INIT;
    o.global_batch = PER_STEP;
    o.buffer = buffer;
    o.num_producers = producers;
    o.num_pipelines = pipelines;
    o.state = state;
    o.state_bytes = bytes;
    if (ditto_strategy_iterate(strategy, dataset, &o, &iterator) != DITTO_OK)
        fail("no iterator: %s", ditto_last_error()->message);
}
static void two_and_an_iterator(void)
{
    two_and_a_dataset();
    iterate(1, 2, 1, NULL, 0);
}

static void count_rows(const ditto_batch *batch)
{
    for (uint64_t i = 0; i < batch->rows; i++) {
        int64_t value = ((const int64_t *)batch->component[0].data)[i], x = 0;
        while (x * x < value)
            x++;
        EXPECT(x * x == value && x < ROWS);
        atomic_fetch_add_explicit(&seen[x], 1, memory_order_relaxed);
    }
    atomic_store_explicit(&inside, true, memory_order_release);
}

/* Takes up to `most` batches. Returns the status that has ended it. */
static ditto_status take(ditto_replica *self, uint32_t most)
{
    ditto_batch batch;
    ditto_status status = DITTO_OK;
    for (uint32_t step = 0; step < most && status == DITTO_OK; step++) {
        status = ditto_next(self, iterator, &batch);
        if (status == DITTO_OK)
            count_rows(&batch);
    }
    return status;
}
static ditto_status take_all(ditto_replica *self, void *unused)
{
    (void)unused;
    EXPECT(take(self, UINT32_MAX) == DITTO_END_OF_INPUT);
    return DITTO_OK;
}
static ditto_status take_one(ditto_replica *self, void *unused)
{
    (void)unused;
    return take(self, 1);
}

/* All rows before `end` have come once, and no others. */
static void expect_rows_before(uint32_t end)
{
    for (uint32_t i = 0; i < ROWS; i++)
        EXPECT(seen[i] == (i < end));
}
static void end_all(void)
{
    EXPECT(ditto_iterator_destroy(iterator) == DITTO_OK);
    EXPECT(ditto_dataset_destroy(dataset) == DITTO_OK);
    EXPECT(ditto_strategy_destroy(strategy) == DITTO_OK);
}

static void take_whole(uint32_t buffer, uint32_t producers, uint32_t pipelines)
{
    iterate(buffer, producers, pipelines, NULL, 0);
    run(take_all, NULL);
    expect_rows_before(ROWS);
    end_all();
}
static void iterators(void)
{
    take_whole(1, 2, 1);
}
static void iterators_without_prefetch(void)
{
    take_whole(DITTO_NO_PREFETCH, 1, 1);
}
static void two_pipelines(void)
{
    take_whole(1, 1, 2);
}

/* The rows before the one that cannot be computed are delivered, and then its error. */
static ditto_status take_until_error(ditto_replica *self, void *unused)
{
    (void)unused;
    EXPECT(take(self, UINT32_MAX) == DITTO_ERR_USER);
    EXPECT(take(self, 1) == DITTO_ERR_USER);
    return DITTO_OK;
}
static void failing_input(void)
{
    has_bad_row = true;
    iterate(1, 2, 1, NULL, 0);
    run(take_until_error, NULL);
    expect_rows_before(BAD_ROW);
    end_all();
}

/* A step, a saved position, and the steps that are left from there. */
static ditto_status one_step(ditto_replica *self, const ditto_batch *batch, void *unused)
{
    (void)self, (void)unused;
    count_rows(batch);
    return DITTO_OK;
}
static void continued_input(void)
{
    void *state;
    size_t bytes;
    uint64_t done;
    EXPECT(ditto_strategy_run_steps(strategy, one_step, NULL, iterator, 1, NULL, &done, NULL) == DITTO_OK);
    EXPECT(ditto_iterator_save(iterator, &state, &bytes) == DITTO_OK);
    EXPECT(ditto_iterator_destroy(iterator) == DITTO_OK);
    expect_rows_before(PER_STEP);
    iterate(1, 1, 1, state, bytes);
    ditto_state_free(state);
    run(take_all, NULL);
    expect_rows_before(ROWS);
    end_all();
}

/* Batches of all replicas as values, and results of runs with them. */
static ditto_status sum_rows(ditto_replica *self, void *unused)
{
    ditto_tensor rows;
    double sum = 0;
    (void)unused;
    EXPECT(ditto_argument(self, NULL, &rows) == DITTO_OK);
    for (size_t i = 0; i < rows.shape[0]; i++)
        sum += (double)((const int64_t *)rows.data)[i];
    return ditto_return_f64(self, NULL, sum);
}
static void values_of_input(void)
{
    ditto_value *rows, *sums;
    double sum = 0, all = 0;
    ditto_status status;
    while ((status = ditto_iterator_next(iterator, &rows)) == DITTO_OK) {
        EXPECT(ditto_strategy_run_values(strategy, sum_rows, NULL, rows, NULL, &sums) == DITTO_OK);
        EXPECT(ditto_strategy_reduce_f64(strategy, DITTO_SUM, sums, &sum) == DITTO_OK);
        EXPECT(ditto_value_destroy(rows) == DITTO_OK && ditto_value_destroy(sums) == DITTO_OK);
        all += sum;
    }
    EXPECT(status == DITTO_END_OF_INPUT && all == 285);
    end_all();
}

/* Memory or a thread is refused: the iterator exists and has all rows, or nothing is left of it. */
static void refused_iterators(void)
{
    ditto_input_options o = DITTO_INPUT_OPTIONS_INIT;
    size_t blocks = W->now.blocks;
    o.global_batch = PER_STEP;
    o.num_producers = 2;
    ditto_status status = ditto_strategy_iterate(strategy, dataset, &o, &iterator);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_NO_MEMORY || status == DITTO_ERR_SYSTEM);
    if (status == DITTO_OK) {
        W->policy.refuse = 0;
        run(take_all, NULL);
        expect_rows_before(ROWS);
        EXPECT(ditto_iterator_destroy(iterator) == DITTO_OK);
    }
    EXPECT(W->now.blocks == blocks);
    W->outcomes |= status == DITTO_OK ? 1 : status == DITTO_ERR_NO_MEMORY ? 2 : 4;
}

/* -- ends that others wait for -- */

/* The producers wait until there is space, or make rows, when the iterator is destroyed. */
static void destroyed_input(void)
{
    run(take_one, NULL);
    expect_rows_before(PER_STEP);
    end_all();
}

/* A replica fails while the other one may wait for its batch. */
static ditto_status take_and_fail(ditto_replica *self, void *unused)
{
    (void)unused;
    if (ditto_replica_id(self) == 1)
        return ditto_fail(self, 9, "it fails");
    ditto_status status = take(self, UINT32_MAX);
    EXPECT(status == DITTO_ERR_PEER_STOPPED);
    return status;
}
static void failing_taker(void)
{
    EXPECT(ditto_strategy_run(strategy, take_and_fail, NULL) == DITTO_ERR_USER);
    run(meet, NULL);
    end_all();
}

/* A replica returns, and no further row can come for the other one. */
static ditto_status take_or_return(ditto_replica *self, void *unused)
{
    (void)unused;
    if (ditto_replica_id(self) == 1)
        return DITTO_OK;
    EXPECT(take(self, UINT32_MAX) == DITTO_ERR_DIVERGED);
    return DITTO_OK;
}
static void early_return(void)
{
    EXPECT(ditto_strategy_run(strategy, take_or_return, NULL) == DITTO_ERR_DIVERGED);
    run(take_all, NULL);
    expect_rows_before(ROWS);
    end_all();
}

/* An interrupted run may have taken some batches, and no row comes twice. */
static ditto_status take_or_be_interrupted(ditto_replica *self, void *unused)
{
    (void)unused;
    ditto_status status = take(self, UINT32_MAX);
    return status == DITTO_END_OF_INPUT ? DITTO_OK : status;
}
static void interrupted_input(void)
{
    pthread_t other = thread_of(interrupt, NULL);
    ditto_status status = ditto_strategy_run(strategy, take_or_be_interrupted, NULL);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_CANCELLED);
    join(other);
    status = ditto_strategy_run(strategy, take_all, NULL);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_POISONED);
    for (uint32_t i = 0; i < ROWS; i++)
        EXPECT(seen[i] <= 1);
    EXPECT(ditto_iterator_destroy(iterator) == DITTO_OK);
    end_perhaps_poisoned();
}
static void *watch(void *unused)
{
    ditto_iterator_counters c = DITTO_ITERATOR_COUNTERS_INIT;
    (void)unused;
    for (int k = 0; k < 3; k++)
        EXPECT(ditto_iterator_stats(iterator, (uint32_t)k % 3 == 2 ? DITTO_ALL_REPLICAS : (uint32_t)k, &c) ==
                   DITTO_OK &&
               c.rows <= ROWS);
    return NULL;
}
static void watched_input(void)
{
    pthread_t other = thread_of(watch, NULL);
    run(take_all, NULL);
    join(other);
    expect_rows_before(ROWS);
    end_all();
}

/* Destroying waits for the run that uses it, or is refused as long as that lasts. */
static void *run_take_all(void *unused)
{
    (void)unused;
    run(take_all, NULL);
    return NULL;
}
static void input_destroyed_beside_a_run(void)
{
    pthread_t other = thread_of(run_take_all, NULL);
    ditto_status status;
    while (!atomic_load_explicit(&inside, memory_order_acquire))
        sched_yield();
    while ((status = ditto_iterator_destroy(iterator)) == DITTO_ERR_BUSY)
        sched_yield();
    EXPECT(status == DITTO_OK);
    expect_rows_before(ROWS); /* the run has ended */
    join(other);
    iterator = NULL;
    end_all();
}

const struct scenario input_scenarios[] = {
    { .name = "iterators", .setup = two_and_a_dataset, .body = iterators },
    { .name = "iterators_without_prefetch", .setup = two_and_a_dataset, .body = iterators_without_prefetch },
    { .name = "two_pipelines", .setup = two_and_a_dataset, .body = two_pipelines },
    { .name = "failing_input", .setup = two_and_a_dataset, .body = failing_input },
    { .name = "continued_input", .setup = two_and_an_iterator, .body = continued_input },
    { .name = "refused_iterators",
      .setup = two_and_a_dataset,
      .body = refused_iterators,
      .may_refuse = true,
      .outcomes = 7 },
    { .name = "values_of_input", .setup = two_and_an_iterator, .body = values_of_input },
    { .name = "destroyed_input", .setup = two_and_an_iterator, .body = destroyed_input },
    { .name = "failing_taker", .setup = two_and_an_iterator, .body = failing_taker },
    { .name = "early_return", .setup = two_and_an_iterator, .body = early_return },
    { .name = "interrupted_input", .setup = two_and_an_iterator, .body = interrupted_input },
    { .name = "watched_input", .setup = two_and_an_iterator, .body = watched_input },
    { .name = "input_destroyed_beside_a_run",
      .setup = two_and_an_iterator,
      .body = input_destroyed_beside_a_run },
    { 0 },
};
