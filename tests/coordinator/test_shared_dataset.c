/* tests/coordinator/test_shared_dataset.c - docs/semantics.md, "Parameter servers": datasets that all workers
 * share (rule 12.9). */
#include "support/support.h"

#include <ditto/coordinator.h>
#include <ditto/source.h>
#include <ditto/transform.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_ROWS 100000

/* What the functions of a test share. */
struct shared_test {
    ditto_strategy *strategy;
    ditto_coordinator *coordinator;
    ditto_shared_dataset *shared;
    _Atomic uint32_t used[MOST_ROWS]; /* how often each row was used */
    _Atomic uint32_t batches, ends, errors;
    _Atomic uint64_t rows;
    uint64_t batch_rows, last_rows; /* of a batch */
    _Atomic int gate_is_open, at_gate;
};

static struct shared_test test;

static void begin_with(uint32_t workers, uint32_t replicas, uint32_t limit_ms, uint32_t attempts)
{
    memset(&test, 0, sizeof test);
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = workers * replicas,
                                             .replicas_per_worker = replicas, .run_timeout_ms = limit_ms);
    assert_ok(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &test.strategy));
    assert_ok(ditto_coordinator_create(test.strategy, &OPTIONS(coordinator, .max_attempts = attempts),
                                       &test.coordinator));
}

static void begin(uint32_t workers, uint32_t replicas)
{
    begin_with(workers, replicas, 0, 0);
}

static void end_shared(void)
{
    assert_ok(ditto_shared_dataset_destroy(test.shared));
    test.shared = NULL;
}

/* Destroys the shared dataset after its coordinator. */
static void end(void)
{
    assert_ok(ditto_coordinator_destroy(test.coordinator));
    if (test.shared != NULL) {
        void *saved;
        size_t bytes;
        assert_status(ditto_shared_dataset_save(test.shared, &saved, &bytes), DITTO_ERR_CONTEXT);
        end_shared();
    }
    assert_ok(ditto_strategy_destroy(test.strategy));
}

/* The rows 0, 1, ..., rows - 1 in batches. */
static ditto_dataset *numbers(uint64_t rows, uint64_t batch, uint32_t flags)
{
    ditto_dataset *all, *batched;
    assert_ok(ditto_dataset_from_range(0, (int64_t)rows, 1, &all));
    assert_ok(ditto_dataset_batch(all, batch, flags, &batched));
    assert_ok(ditto_dataset_destroy(all));
    test.batch_rows = batch;
    test.last_rows = rows % batch;
    return batched;
}

/* Replaces the shared dataset. */
static void share(ditto_dataset *dataset, const ditto_input_options *options)
{
    end_shared();
    assert_ok(ditto_coordinator_shared_dataset(test.coordinator, dataset, options, &test.shared));
    assert_ok(ditto_dataset_destroy(dataset));
}

static void schedule(const char *name, ditto_replica_fn function, int times)
{
    assert_ok(ditto_function_register(name, function, NULL));
    for (int i = 0; i < times; i++)
        assert_ok(ditto_coordinator_schedule(test.coordinator, name, NULL, NULL, NULL));
}

static void count_rows(const ditto_batch *batch)
{
    const int64_t *row = batch->component[0].data;
    for (uint64_t i = 0; i < batch->rows; i++)
        atomic_fetch_add(&test.used[row[i]], 1);
    atomic_fetch_add(&test.rows, batch->rows);
}

/* Takes one batch, and returns the status of the call. */
static ditto_status take_one(ditto_replica *self, void *user)
{
    ditto_batch batch;
    ditto_status status = ditto_shared_dataset_next(self, test.shared, &batch);
    if (status == DITTO_OK) {
        count_rows(&batch);
        atomic_fetch_add(&test.batches, 1);
        if (batch.num_components != 1 || batch.component[0].rank != 1 ||
            batch.component[0].shape[0] != batch.rows)
            return DITTO_ERR_CORRUPT;
    } else if (status == DITTO_END_OF_INPUT)
        atomic_fetch_add(&test.ends, 1);
    return status;
}

/* Takes batches until the end. */
static ditto_status take_all(ditto_replica *self, void *user)
{
    ditto_status status;
    while ((status = take_one(self, user)) == DITTO_OK)
        ;
    return status;
}

/* Checks that the rows from `first` to `behind` - 1 were used once each, and no others. */
static void assert_used_once(uint64_t first, uint64_t behind)
{
    for (uint64_t i = 0; i < MOST_ROWS; i++)
        if (atomic_load(&test.used[i]) != (i >= first && i < behind))
            fail_msg("row %llu was used %u times", (unsigned long long)i, atomic_load(&test.used[i]));
}

static void rule_12_9_each_row_is_used_once(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        for (uint32_t replicas = 1; replicas <= 3; replicas++) {
            uint32_t workers = replica_counts[k];
            uint64_t rows = (uint64_t)test_trials(1000) + 3;
            if (workers * replicas > 8)
                continue;
            begin(workers, replicas);
            share(numbers(rows, 7, 0), NULL);
            int batches = (int)((rows + 6) / 7);
            schedule("take_one", take_one, batches + 5);
            assert_status(ditto_coordinator_join(test.coordinator), DITTO_END_OF_INPUT);
            assert_used_once(0, rows);
            assert_int_equal(atomic_load(&test.batches), (uint32_t)batches * replicas);
            assert_int_equal(atomic_load(&test.ends), 5 * replicas);
            end();
        }
}

static void rule_12_9_functions_may_take_many_batches(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        begin(replica_counts[k], 1);
        for (int pass = 0; pass < 3; pass++) {
            memset(test.used, 0, sizeof test.used);
            share(numbers(5000, 10, 0), NULL);
            schedule("take_all", take_all, (int)replica_counts[k]);
            assert_status(ditto_coordinator_join(test.coordinator), DITTO_END_OF_INPUT);
            assert_used_once(0, 5000);
            end_shared();
        }
        end();
    }
}

/* Each replica says which rows it got, by the first one and their number. */
static _Atomic uint64_t first_of[3], rows_of[3];

static ditto_status take_part(ditto_replica *self, void *user)
{
    ditto_batch batch;
    DITTO_TRY(ditto_shared_dataset_next(self, test.shared, &batch));
    uint32_t id = ditto_replica_id(self);
    atomic_store(&rows_of[id], batch.rows);
    atomic_store(&first_of[id], batch.rows > 0 ? *(uint64_t *)batch.component[0].data : 999);
    return batch.step == 0 || batch.step == 1 ? DITTO_OK : DITTO_ERR_CORRUPT;
}

static void rule_12_9_replicas_of_a_worker_divide_a_batch(void **state)
{
    for (int even = 0; even <= 1; even++) {
        begin(1, 3);
        share(numbers(12, 8, 0),
              &OPTIONS(input, .partial = even ? DITTO_PARTIAL_EVEN
                                              : DITTO_PARTIAL_DEFAULT)); /* 3, 3 and 2 rows, then 4 */
        schedule("take_part", take_part, 1);
        assert_ok(ditto_coordinator_join(test.coordinator));
        const uint64_t first[] = { 0, 3, 6 }, rows[] = { 3, 3, 2 };
        for (int r = 0; r < 3; r++) {
            assert_int_equal(atomic_load(&first_of[r]), first[r]);
            assert_int_equal(atomic_load(&rows_of[r]), rows[r]);
        }
        schedule("take_part", take_part, 1);
        assert_ok(ditto_coordinator_join(test.coordinator));
        const uint64_t short_rows[2][3] = { { 3, 1, 0 }, { 2, 1, 1 } };
        for (int r = 0; r < 3; r++)
            assert_int_equal(atomic_load(&rows_of[r]), short_rows[even][r]);
        end();
    }
}

static ditto_status take_on_replica_0(ditto_replica *self, void *user)
{
    return ditto_replica_id(self) == 0 ? take_one(self, user) : DITTO_OK;
}

static void rule_12_9_replicas_call_it_equally_often(void **state)
{
    begin(2, 2);
    share(numbers(100, 10, 0), NULL);
    schedule("take_on_replica_0", take_on_replica_0, 1);
    assert_status(ditto_coordinator_join(test.coordinator), DITTO_ERR_DIVERGED);
    assert_message("equally often");
    memset(test.used, 0, sizeof test.used);
    schedule("take_one", take_one, 20); /* the batch is lost */
    assert_status(ditto_coordinator_join(test.coordinator), DITTO_END_OF_INPUT);
    assert_used_once(10, 100);
    end();
}

static void rule_12_9_the_last_batch(void **state)
{
    ditto_dataset *rows, *batched;
    begin(2, 1);
    share(numbers(25, 10, DITTO_BATCH_DROP_REMAINDER), NULL);
    schedule("take_all", take_all, 2);
    assert_status(ditto_coordinator_join(test.coordinator), DITTO_END_OF_INPUT);
    assert_used_once(0, 20);
    memset(test.used, 0, sizeof test.used);
    ditto_input_options options = OPTIONS(input, .flags = DITTO_INPUT_STATIC);
    share(numbers(25, 10, 0), &options);
    schedule("take_all", take_all, 2);
    assert_status(ditto_coordinator_join(test.coordinator), DITTO_END_OF_INPUT);
    assert_used_once(0, 20);
    memset(test.used, 0, sizeof test.used);
    options.flags = 0;
    options.global_batch = 10;
    assert_ok(ditto_dataset_from_range(0, 25, 1, &rows));
    share(rows, &options);
    schedule("take_all", take_all, 2);
    assert_status(ditto_coordinator_join(test.coordinator), DITTO_END_OF_INPUT);
    assert_used_once(0, 25);
    /* A dataset that has no end gives as many batches as are asked for. */
    assert_ok(ditto_dataset_from_range(0, 10, 1, &rows));
    assert_ok(ditto_dataset_repeat(rows, DITTO_REPEAT_FOREVER, &batched));
    assert_ok(ditto_dataset_destroy(rows));
    memset(test.used, 0, sizeof test.used);
    share(batched, &options);
    schedule("take_one", take_one, 100);
    assert_ok(ditto_coordinator_join(test.coordinator));
    for (int i = 0; i < 10; i++)
        assert_int_equal(atomic_load(&test.used[i]), 100);
    end();
}

/* -- positions -- */

static void rule_12_9_a_position_has_what_was_not_taken(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_dataset *all, *shuffled, *batched;
        void *saved;
        size_t bytes;
        begin(replica_counts[k], 1);
        assert_ok(ditto_dataset_from_range(0, 1000, 1, &all));
        assert_ok(ditto_dataset_shuffle(all, &OPTIONS(shuffle, .buffer_rows = 50), &shuffled));
        assert_ok(ditto_dataset_batch(shuffled, 10, 0, &batched));
        assert_ok(ditto_coordinator_shared_dataset(test.coordinator, batched, NULL, &test.shared));
        schedule("take_one", take_one, 37);
        assert_ok(ditto_coordinator_join(test.coordinator));
        assert_ok(ditto_shared_dataset_save(test.shared, &saved, &bytes));
        for (int again = 0; again < 2; again++) {
            ditto_coordinator *c = test.coordinator;
            end_shared();
            assert_ok(ditto_coordinator_shared_dataset(
                c, batched, &OPTIONS(input, .state = saved, .state_bytes = bytes), &test.shared));
            schedule("take_all", take_all, (int)replica_counts[k]);
            assert_status(ditto_coordinator_join(c), DITTO_END_OF_INPUT);
        }
        for (int i = 0; i < 1000; i++) { /* once in the first pass, or twice from the state */
            uint32_t used = atomic_load(&test.used[i]);
            assert_true(used == 1 || used == 2);
        }
        assert_int_equal(atomic_load(&test.rows), 370 + 2 * 630);
        ditto_state_free(saved);
        assert_ok(ditto_dataset_destroy(batched));
        assert_ok(ditto_dataset_destroy(shuffled));
        assert_ok(ditto_dataset_destroy(all));
        end();
    }
}

/* A save while workers take batches has a whole number of them, from one point in the order of batches on. */
static void rule_12_9_saves_while_workers_take_batches(void **state)
{
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    for (int i = 0; i < test_trials(20); i++) {
        begin(3, 1);
        ditto_dataset *dataset = numbers(20000, 10, 0);
        assert_ok(ditto_coordinator_shared_dataset(test.coordinator, dataset, NULL, &test.shared));
        schedule("take_all", take_all, 3);
        void *saved;
        size_t bytes;
        while (atomic_load(&test.batches) < (uint32_t)(10 * i))
            sleep_ms(1);
        assert_ok(ditto_shared_dataset_save(test.shared, &saved, &bytes));
        assert_status(ditto_coordinator_join(test.coordinator), DITTO_END_OF_INPUT);
        assert_used_once(0, 20000);
        memset(test.used, 0, sizeof test.used);
        atomic_store(&test.rows, 0);
        options.state = saved;
        options.state_bytes = bytes;
        share(dataset, &options);
        schedule("take_all", take_all, 3);
        assert_status(ditto_coordinator_join(test.coordinator), DITTO_END_OF_INPUT);
        assert_true(atomic_load(&test.rows) <= 20000 - 100 * (uint64_t)i);
        assert_int_equal(atomic_load(&test.rows) % 10, 0);
        assert_used_once(20000 - atomic_load(&test.rows), 20000);
        ditto_state_free(saved);
        end();
    }
}

static void rule_12_9_states_that_do_not_fit(void **state)
{
    ditto_shared_dataset *none = NULL;
    void *saved;
    size_t bytes;
    begin(1, 1);
    ditto_dataset *ten = numbers(100, 10, 0), *five = numbers(100, 5, 0), *fewer = numbers(99, 10, 0);
    assert_ok(ditto_coordinator_shared_dataset(test.coordinator, ten, NULL, &test.shared));
    assert_ok(ditto_shared_dataset_save(test.shared, &saved, &bytes));
    ditto_input_options options = OPTIONS(input, .state = saved, .state_bytes = bytes);
    assert_status(ditto_coordinator_shared_dataset(test.coordinator, five, &options, &none),
                  DITTO_ERR_INVALID);
    assert_status(ditto_coordinator_shared_dataset(test.coordinator, fewer, &options, &none),
                  DITTO_ERR_INVALID);
    assert_message("another dataset");
    options.pass = 3;
    assert_status(ditto_coordinator_shared_dataset(test.coordinator, ten, &options, &none),
                  DITTO_ERR_INVALID);
    assert_message("pass");
    options.pass = 0;
    for (size_t length = 1; length < bytes; length++) {
        options.state_bytes = length;
        assert_status(ditto_coordinator_shared_dataset(test.coordinator, ten, &options, &none),
                      DITTO_ERR_CORRUPT);
    }
    options.state_bytes = 0;
    assert_status(ditto_coordinator_shared_dataset(test.coordinator, ten, &options, &none),
                  DITTO_ERR_INVALID);
    options.state_bytes = bytes;
    for (size_t i = 0; i < bytes; i++) {
        ((unsigned char *)saved)[i] ^= 1;
        assert_status(ditto_coordinator_shared_dataset(test.coordinator, ten, &options, &none),
                      DITTO_ERR_CORRUPT);
        ((unsigned char *)saved)[i] ^= 1;
    }
    assert_null(none);
    ditto_state_free(saved);
    assert_ok(ditto_dataset_destroy(ten));
    assert_ok(ditto_dataset_destroy(five));
    assert_ok(ditto_dataset_destroy(fewer));
    end();
}

/* -- errors -- */

static ditto_status fail_at_500(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                                void *user)
{
    if (*(const int64_t *)in[0].data == 500)
        return ditto_fail(NULL, 5, "row 500 cannot be read");
    *(int64_t *)out[0].data = *(const int64_t *)in[0].data;
    return DITTO_OK;
}

static ditto_status take_and_count_errors(ditto_replica *self, void *user)
{
    ditto_batch batch;
    ditto_error before = *ditto_last_error();
    ditto_status status = ditto_shared_dataset_next(self, test.shared, &batch);
    if (status == DITTO_OK)
        count_rows(&batch);
    if (status == DITTO_OK && strcmp(ditto_last_error()->message, before.message) != 0)
        return ditto_fail(self, 1, "a call that succeeds has changed the last error");
    atomic_fetch_add(status < 0 ? &test.errors : &test.ends, status != DITTO_OK);
    return status < 0 && status != DITTO_ERR_USER ? status : DITTO_OK;
}

static ditto_dataset *failing_numbers(void)
{
    ditto_dataset *rows, *mapped, *batched;
    assert_ok(ditto_dataset_from_range(0, 1000, 1, &rows));
    assert_ok(ditto_dataset_map(rows, fail_at_500, NULL, NULL, &mapped));
    assert_ok(ditto_dataset_batch(mapped, 10, 0, &batched));
    assert_ok(ditto_dataset_destroy(rows));
    assert_ok(ditto_dataset_destroy(mapped));
    return batched;
}

static void rule_12_9_an_error_of_the_input(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        void *saved;
        size_t bytes;
        begin(replica_counts[k], 1);
        share(failing_numbers(), NULL);
        schedule("take_and_count_errors", take_and_count_errors, 200);
        assert_ok(ditto_coordinator_join(test.coordinator));
        for (int i = 0; i < 500; i++)
            assert_int_equal(atomic_load(&test.used[i]), 1);
        for (int i = 500; i < 510; i++) /* the batch of the row is not delivered */
            assert_int_equal(atomic_load(&test.used[i]), 0);
        /* Workers may come to the end before one finds the error. */
        assert_true(atomic_load(&test.errors) + atomic_load(&test.ends) >= 200 - 99);
        assert_true(atomic_load(&test.errors) >= 1);
        assert_status(ditto_shared_dataset_save(test.shared, &saved, &bytes), DITTO_ERR_USER);
        assert_message("row 500 cannot be read");
        schedule("take_one", take_one, 1);
        assert_status(ditto_coordinator_join(test.coordinator), DITTO_ERR_USER);
        assert_message("row 500 cannot be read");
        end();
    }
}

static void rule_12_9_calls_that_cannot_be(void **state)
{
    ditto_shared_dataset *none = NULL;
    ditto_dataset *rows;
    ditto_batch batch;
    begin(2, 1);
    assert_ok(ditto_dataset_from_range(0, 100, 1, &rows));
    assert_status(ditto_coordinator_shared_dataset(test.coordinator, rows, NULL, &none), DITTO_ERR_INVALID);
    assert_message("no batches");
    ditto_input_options options = OPTIONS(input, .global_batch = 10);
    uint32_t *const numbers_of_threads[] = { &options.buffer, &options.num_producers,
                                             &options.num_pipelines };
    for (size_t i = 0; i < sizeof numbers_of_threads / sizeof numbers_of_threads[0]; i++) {
        *numbers_of_threads[i] = 2;
        assert_status(ditto_coordinator_shared_dataset(test.coordinator, rows, &options, &none),
                      DITTO_ERR_INVALID);
        assert_message("themselves");
        *numbers_of_threads[i] = 0;
    }
    options.flags = DITTO_INPUT_HOST_MEMORY;
    assert_status(ditto_coordinator_shared_dataset(test.coordinator, rows, &options, &none),
                  DITTO_ERR_INVALID);
    options.flags = 1u << 30;
    assert_true(ditto_coordinator_shared_dataset(test.coordinator, rows, &options, &none) < 0);
    options.flags = 0;
    options.partial = (ditto_partial_policy)9;
    assert_status(ditto_coordinator_shared_dataset(test.coordinator, rows, &options, &none), DITTO_ERR_RANGE);
    options.partial = DITTO_PARTIAL_DEFAULT;
    options.global_batch = UINT64_MAX / 2;
    assert_status(ditto_coordinator_shared_dataset(test.coordinator, rows, &options, &none), DITTO_ERR_RANGE);
    options.global_batch = 10;
    options.buffer = DITTO_NO_PREFETCH;
    assert_ok(ditto_coordinator_shared_dataset(test.coordinator, rows, &options, &test.shared));
    assert_status(ditto_coordinator_shared_dataset(test.coordinator, NULL, NULL, &none), DITTO_ERR_INVALID);
    assert_status(ditto_coordinator_shared_dataset(test.coordinator, rows, &options, NULL),
                  DITTO_ERR_INVALID);
    assert_status(ditto_shared_dataset_next(NULL, test.shared, &batch), DITTO_ERR_INVALID);
    assert_null(none);
    assert_ok(ditto_dataset_destroy(rows));
    end();
}

static ditto_status call_from_inside(ditto_replica *self, void *user)
{
    ditto_shared_dataset *other;
    void *saved;
    size_t bytes;
    if (ditto_shared_dataset_next(self, test.shared, NULL) != DITTO_ERR_INVALID ||
        ditto_shared_dataset_next(self, NULL, NULL) != DITTO_ERR_INVALID)
        return ditto_fail(self, 1, "next");
    if (ditto_shared_dataset_save(test.shared, &saved, &bytes) != DITTO_ERR_CONTEXT)
        return ditto_fail(self, 2, "save");
    if (ditto_shared_dataset_destroy(test.shared) != DITTO_ERR_CONTEXT)
        return ditto_fail(self, 3, "destroy");
    if (ditto_coordinator_shared_dataset(test.coordinator, user, NULL, &other) != DITTO_ERR_CONTEXT)
        return ditto_fail(self, 4, "create");
    return DITTO_OK;
}

static ditto_status wait_for_gate(ditto_replica *self, void *user)
{
    atomic_fetch_add(&test.at_gate, 1);
    while (!atomic_load(&test.gate_is_open))
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status take_outside(ditto_replica *self, void *user)
{
    ditto_batch batch;
    EXPECT((struct report *)user, ditto_shared_dataset_next(self, test.shared, &batch) == DITTO_ERR_CONTEXT);
    return DITTO_OK;
}

static void rule_12_9_contexts(void **state)
{
    static struct report report;
    begin(2, 1);
    ditto_dataset *dataset = numbers(100, 10, 0);
    assert_ok(ditto_coordinator_shared_dataset(test.coordinator, dataset, NULL, &test.shared));
    assert_ok(ditto_function_register("call_from_inside", call_from_inside, dataset));
    assert_ok(ditto_coordinator_schedule(test.coordinator, "call_from_inside", NULL, NULL, NULL));
    assert_ok(ditto_coordinator_join(test.coordinator));
    run_once(2, NULL, take_outside, &report, &report);
    schedule("wait_for_gate", wait_for_gate, 1);
    assert_status(ditto_shared_dataset_destroy(test.shared), DITTO_ERR_BUSY);
    assert_message("ditto_coordinator_join");
    atomic_store(&test.gate_is_open, 1);
    assert_ok(ditto_coordinator_join(test.coordinator));
    end_shared();
    assert_ok(ditto_dataset_destroy(dataset));
    end();
}

/* -- an error of choosing, rows that are read once -- */

struct counter {
    int64_t next, behind, fails_at;
};

static ditto_status open_counter(void *user, uint64_t pass, void **position)
{
    struct counter *c = malloc(sizeof *c);
    if (c == NULL)
        return DITTO_ERR_NO_MEMORY;
    *c = *(struct counter *)user;
    c->next = 1000 * (int64_t)pass;
    *position = c;
    return DITTO_OK;
}

static ditto_status next_number(void *user, void *position, const ditto_tensor *row)
{
    struct counter *c = position;
    if (c->next == c->fails_at)
        return ditto_fail(NULL, 6, "the generator fails");
    if (c->next == c->behind)
        return DITTO_END_OF_INPUT;
    *(int64_t *)row->data = c->next++;
    return DITTO_OK;
}

static void close_counter(void *user, void *position)
{
    free(position);
}

static ditto_status save_counter(void *user, void *position, void *bytes, size_t capacity, size_t *length)
{
    *length = sizeof(struct counter);
    if (capacity >= *length)
        memcpy(bytes, position, *length);
    return DITTO_OK;
}

static ditto_status restore_counter(void *user, void *position, const void *bytes, size_t length)
{
    if (length != sizeof(struct counter))
        return DITTO_ERR_CORRUPT;
    memcpy(position, bytes, length);
    return DITTO_OK;
}

static ditto_dataset *generated_by(ditto_status (*next)(void *, void *, const ditto_tensor *),
                                   struct counter *counter, uint64_t batch)
{
    ditto_tensor row = { .dtype = DITTO_I64 };
    ditto_dataset *rows, *batched;
    ditto_generator generator = { .struct_size = sizeof generator,
                                  .user = counter,
                                  .open = open_counter,
                                  .next = next,
                                  .close = close_counter,
                                  .save = save_counter,
                                  .restore = restore_counter };
    assert_ok(ditto_dataset_from_generator(&generator, &row, 1, &rows));
    assert_ok(ditto_dataset_batch(rows, batch, 0, &batched));
    assert_ok(ditto_dataset_destroy(rows));
    return batched;
}

static ditto_dataset *generated(struct counter *counter, uint64_t batch)
{
    return generated_by(next_number, counter, batch);
}

static void rule_12_9_rows_before_an_error_are_delivered(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct counter counter = { .behind = 1000, .fails_at = 255 };
        begin(replica_counts[k], 1);
        share(generated(&counter, 10), NULL);
        schedule("take_and_count_errors", take_and_count_errors, 50);
        assert_ok(ditto_coordinator_join(test.coordinator));
        assert_used_once(0, 255);
        assert_int_equal(atomic_load(&test.errors), 50 - 26);
        schedule("take_one", take_one, 1);
        assert_status(ditto_coordinator_join(test.coordinator), DITTO_ERR_USER);
        assert_message("the generator fails");
        end();
    }
}

static void rule_12_9_passes_of_a_generator(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct counter counter = { .behind = 1500, .fails_at = -1 };
        ditto_input_options options = OPTIONS(input, .pass = 1);
        void *saved;
        size_t bytes;
        begin(replica_counts[k], 1);
        ditto_dataset *dataset = generated(&counter, 10);
        assert_ok(ditto_coordinator_shared_dataset(test.coordinator, dataset, &options, &test.shared));
        schedule("take_one", take_one, 20);
        assert_ok(ditto_coordinator_join(test.coordinator));
        assert_used_once(1000, 1200);
        assert_ok(ditto_shared_dataset_save(test.shared, &saved, &bytes));
        options.pass = 0;
        options.state = saved;
        options.state_bytes = bytes;
        share(dataset, &options);
        schedule("take_all", take_all, (int)replica_counts[k]);
        assert_status(ditto_coordinator_join(test.coordinator), DITTO_END_OF_INPUT);
        assert_used_once(1000, 1500);
        ditto_state_free(saved);
        end();
    }
}

/* -- workers that are lost -- */

static _Atomic int is_first, late_was_refused;

/* The first execution takes two batches, uses none, and is late. On a busy machine it may be late before it
 * has taken them. */
static ditto_status be_late_once(ditto_replica *self, void *user)
{
    ditto_batch batch;
    ditto_status status = DITTO_OK;
    if (!atomic_exchange(&is_first, 0))
        return take_one(self, user);
    for (int i = 0; i < 2 && status == DITTO_OK; i++)
        status = ditto_shared_dataset_next(self, test.shared, &batch);
    DITTO_TRY(wait_for_gate(self, user));
    if (status == DITTO_OK)
        status = ditto_shared_dataset_next(self, test.shared, &batch);
    atomic_store(&late_was_refused, status == DITTO_ERR_TIMED_OUT ? 1 : -1);
    return DITTO_OK;
}

static void rule_12_9_batches_of_a_late_function_are_taken_again(void **state)
{
    for (int generates = 0; generates <= 1; generates++) {
        struct counter counter = { .behind = 1000, .fails_at = -1 };
        begin_with(2, 1, SANITIZED ? 3000 : 500, 0);
        share(generates ? generated(&counter, 10) : numbers(1000, 10, 0), NULL);
        atomic_store(&is_first, 1);
        atomic_store(&late_was_refused, 0);
        /* The others begin later, or they could leave no second batch. */
        schedule("be_late_once", be_late_once, 1);
        while (atomic_load(&test.at_gate) == 0)
            sleep_ms(1);
        schedule("be_late_once", be_late_once, 99);
        ditto_status joined = ditto_coordinator_join(test.coordinator);
        assert_true(joined == DITTO_OK || joined == DITTO_END_OF_INPUT);
        /* A function may have come to the end before the late one was noticed. */
        schedule("be_late_once", be_late_once, 2);
        assert_status(ditto_coordinator_join(test.coordinator), DITTO_END_OF_INPUT);
        assert_used_once(0, 1000);
        assert_int_equal(atomic_load(&test.batches), 100);
        atomic_store(&test.gate_is_open, 1);
        while (atomic_load(&late_was_refused) == 0)
            sleep_ms(1);
        assert_int_equal(atomic_load(&late_was_refused), 1);
        ditto_worker_info info = DITTO_WORKER_INFO_INIT;
        for (uint32_t w = 0; w < 2; w++)
            do
                assert_ok(ditto_coordinator_worker_info(test.coordinator, w, &info));
            while (info.is_busy);
        end_shared();
        end();
    }
}

static ditto_status take_and_wait(ditto_replica *self, void *user)
{
    ditto_batch batch;
    DITTO_TRY(ditto_shared_dataset_next(self, test.shared, &batch));
    return wait_for_gate(self, user);
}

/* A batch that no function in time has used is in the position, also if no worker takes it again. */
static void rule_12_9_a_position_has_batches_of_lost_workers(void **state)
{
    void *saved;
    size_t bytes;
    begin_with(2, 1, SANITIZED ? 3000 : 500, 1);
    ditto_dataset *dataset = numbers(100, 10, 0);
    assert_ok(ditto_coordinator_shared_dataset(test.coordinator, dataset, NULL, &test.shared));
    schedule("take_and_wait", take_and_wait, 1);
    assert_status(ditto_coordinator_join(test.coordinator), DITTO_ERR_TIMED_OUT);
    assert_ok(ditto_shared_dataset_save(test.shared, &saved, &bytes));
    ditto_shared_dataset *of_late_function = test.shared;
    test.shared = NULL;
    share(dataset, &OPTIONS(input, .state = saved, .state_bytes = bytes));
    schedule("take_all", take_all, 1);
    assert_status(ditto_coordinator_join(test.coordinator), DITTO_END_OF_INPUT);
    assert_used_once(0, 100);
    atomic_store(&test.gate_is_open, 1);
    ditto_state_free(saved);
    ditto_worker_info info = DITTO_WORKER_INFO_INIT;
    for (uint32_t w = 0; w < 2; w++)
        do
            assert_ok(ditto_coordinator_worker_info(test.coordinator, w, &info));
        while (info.is_busy);
    end();
    assert_ok(ditto_shared_dataset_destroy(of_late_function));
}

static ditto_status next_behind_gate(void *user, void *position, const ditto_tensor *row)
{
    DITTO_TRY(wait_for_gate(NULL, NULL));
    return next_number(user, position, row);
}

static void rule_12_9_a_save_does_not_wait_for_ever(void **state)
{
    struct counter counter = { .behind = 10, .fails_at = -1 };
    ditto_status joined;
    void *saved;
    size_t bytes;
    memset(&test, 0, sizeof test);
    assert_ok(ditto_strategy_create(
        DITTO_PARAMETER_SERVER, &OPTIONS(strategy, .num_replicas = 2, .timeout_ms = 100), &test.strategy));
    assert_ok(ditto_coordinator_create(test.strategy, NULL, &test.coordinator));
    share(generated_by(next_behind_gate, &counter, 10), NULL);
    schedule("take_one", take_one, 1);
    while (atomic_load(&test.at_gate) == 0)
        sleep_ms(1);
    assert_status(ditto_shared_dataset_save(test.shared, &saved, &bytes), DITTO_ERR_TIMED_OUT);
    assert_message("timeout_ms = 100");
    atomic_store(&test.gate_is_open, 1);
    while ((joined = ditto_coordinator_join(test.coordinator)) == DITTO_ERR_TIMED_OUT)
        ;
    assert_ok(joined);
    assert_used_once(0, 10);
    assert_ok(ditto_shared_dataset_save(test.shared, &saved, &bytes));
    ditto_state_free(saved);
    end();
}

static int destroy_before_late(void *unused)
{
    begin_with(1, 1, SANITIZED ? 500 : 100, 1);
    share(numbers(100, 10, 0), NULL);
    schedule("take_and_wait", take_and_wait, 1);
    while (atomic_load(&test.at_gate) == 0)
        sleep_ms(1);
    REQUIRE(ditto_shared_dataset_destroy(test.shared) == DITTO_ERR_BUSY);
    REQUIRE(ditto_coordinator_join(test.coordinator) < 0);
    REQUIRE(ditto_shared_dataset_destroy(test.shared) == DITTO_ERR_BUSY); /* the late function still runs */
    REQUIRE(ditto_coordinator_destroy(test.coordinator) == DITTO_ERR_POISONED);
    REQUIRE(ditto_strategy_destroy(test.strategy) == DITTO_ERR_POISONED);
    atomic_store(&test.gate_is_open, 1);
    return 0;
}

static void rule_12_9_a_late_function_keeps_its_batch(void **state)
{
    assert_int_equal(in_child(destroy_before_late, NULL, 100), 0);
}

static ditto_status fork_and_take(ditto_replica *self, void *user)
{
    ditto_batch batch;
    int ended;
    pid_t child = fork();
    if (child == 0)
        _exit(ditto_shared_dataset_next(self, test.shared, &batch) == DITTO_ERR_FORKED ? 0 : 1);
    if (child < 0 || waitpid(child, &ended, 0) != child || ended != 0)
        return ditto_fail(self, 7, "a child process took a batch");
    return DITTO_OK;
}

static int use_in_child(void *unused)
{
    void *saved;
    size_t bytes;
    REQUIRE(ditto_shared_dataset_save(test.shared, &saved, &bytes) == DITTO_ERR_FORKED);
    REQUIRE(ditto_shared_dataset_destroy(test.shared) == DITTO_OK);
    REQUIRE(ditto_coordinator_destroy(test.coordinator) == DITTO_OK);
    return 0;
}

static void rule_12_9_child_processes(void **state)
{
    if (SANITIZED)
        skip();
    begin(2, 1);
    share(numbers(100, 10, 0), NULL);
    schedule("fork_and_take", fork_and_take, 1);
    assert_ok(ditto_coordinator_join(test.coordinator));
    assert_int_equal(in_child(use_in_child, NULL, 100), 0);
    schedule("take_all", take_all, 1);
    assert_status(ditto_coordinator_join(test.coordinator), DITTO_END_OF_INPUT);
    assert_used_once(0, 100);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_12_9_each_row_is_used_once),
        cmocka_unit_test(rule_12_9_functions_may_take_many_batches),
        cmocka_unit_test(rule_12_9_replicas_of_a_worker_divide_a_batch),
        cmocka_unit_test(rule_12_9_replicas_call_it_equally_often),
        cmocka_unit_test(rule_12_9_the_last_batch),
        cmocka_unit_test(rule_12_9_a_position_has_what_was_not_taken),
        cmocka_unit_test(rule_12_9_saves_while_workers_take_batches),
        cmocka_unit_test(rule_12_9_states_that_do_not_fit),
        cmocka_unit_test(rule_12_9_an_error_of_the_input),
        cmocka_unit_test(rule_12_9_calls_that_cannot_be),
        cmocka_unit_test(rule_12_9_contexts),
        cmocka_unit_test(rule_12_9_rows_before_an_error_are_delivered),
        cmocka_unit_test(rule_12_9_passes_of_a_generator),
        cmocka_unit_test(rule_12_9_batches_of_a_late_function_are_taken_again),
        cmocka_unit_test(rule_12_9_a_position_has_batches_of_lost_workers),
        cmocka_unit_test(rule_12_9_a_save_does_not_wait_for_ever),
        cmocka_unit_test(rule_12_9_a_late_function_keeps_its_batch),
        cmocka_unit_test(rule_12_9_child_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
