/* tests/input/distribute/test_forged_states.c - states of iterators that somebody else has made. Their hash
 * is right, and one of their numbers is not one that the dataset can have. They are refused as damaged,
 * before anything is read or a thread waits. */
#include "input/readers.h"

#include "base/numbers/checksum.h"
#include "base/types/bytes.h"

#include <ditto/distribute.h>

enum { HEAD_BYTES = 16, HASH_BYTES = 8, RECORDS = 64, RECORD_BYTES = 16 };

/* -- datasets -- */

static ditto_dataset *numbers(void)
{
    ditto_dataset *d;
    assert_ok(ditto_dataset_from_range(0, RECORDS, 1, &d));
    return d;
}

static ditto_dataset *some_numbers(void)
{
    ditto_dataset *all = numbers(), *behind, *some;
    assert_ok(ditto_dataset_skip(all, 2, &behind));
    assert_ok(ditto_dataset_take(behind, 60, &some));
    assert_ok(ditto_dataset_destroy(all));
    assert_ok(ditto_dataset_destroy(behind));
    return some;
}

static ditto_dataset *repeated(uint64_t passes)
{
    ditto_dataset *once = numbers(), *d;
    assert_ok(ditto_dataset_repeat(once, passes, &d));
    assert_ok(ditto_dataset_destroy(once));
    return d;
}
static ditto_dataset *twice(void)
{
    return repeated(2);
}
static ditto_dataset *for_ever(void)
{
    return repeated(DITTO_REPEAT_FOREVER);
}

static ditto_files file_of(const void *bytes, size_t length)
{
    static const char *path;
    path = write_bytes("rows", bytes, length);
    return (ditto_files){ .names = &path, .num_names = 1 };
}

static ditto_dataset *lines(void)
{
    char text[RECORDS * RECORD_BYTES];
    ditto_dataset *d;
    memset(text, 'a', sizeof text);
    for (size_t i = RECORD_BYTES - 1; i < sizeof text; i += RECORD_BYTES)
        text[i] = '\n';
    ditto_files files = file_of(text, sizeof text);
    assert_ok(ditto_dataset_from_text(&files, NULL, &d));
    return d;
}

static ditto_dataset *fixed(void)
{
    char bytes[RECORDS * RECORD_BYTES] = { 0 };
    ditto_tensor row = { .dtype = DITTO_U8, .rank = 1, .shape = { RECORD_BYTES } };
    ditto_dataset *d;
    ditto_files files = file_of(bytes, sizeof bytes);
    assert_ok(ditto_dataset_from_fixed(&files, &row, 1, NULL, &d));
    return d;
}

static ditto_dataset *tfrecords(void)
{
    static struct made made;
    char data[RECORD_BYTES] = { 0 };
    ditto_dataset *d;
    made.length = 0;
    for (int i = 0; i < RECORDS; i++) {
        add_number(&made, RECORD_BYTES, 8);
        add_number(&made, dti_crc32c_masked(dti_crc32c(made.bytes + made.length - 8, 8)), 4);
        add(&made, data, sizeof data);
        add_number(&made, dti_crc32c_masked(dti_crc32c(data, sizeof data)), 4);
    }
    ditto_files files = file_of(made.bytes, made.length);
    assert_ok(
        ditto_dataset_from_tfrecord(&files, &OPTIONS(tfrecord, .max_bytes = RECORD_BYTES, .trust = 1), &d));
    return d;
}

/* -- states -- */

static ditto_status take_batches(ditto_replica *self, void *user)
{
    ditto_batch batch;
    for (int i = 0; i < 3; i++)
        DITTO_TRY(ditto_next(self, user, &batch));
    return DITTO_OK;
}

/* The numbers of a state are counted from 0, or backwards from -1. Those at the front: */
enum { STEP = 5, SAME_STEP = 6, ROWS = 7, FIRST_ROW = 8 };

static uint64_t number_at(const char *state, size_t bytes, int at)
{
    struct dti_bytes_reader from = { state + HEAD_BYTES, state + bytes - HASH_BYTES, false };
    for (int i = 0; i < at; i++)
        dti_bytes_get_u64(&from);
    return dti_bytes_get_u64(&from);
}

/* Takes three steps, and saves a state that has rows which are chosen and not taken. */
static void save_after_steps(ditto_strategy *strategy, ditto_dataset *rows, void **state, size_t *bytes)
{
    ditto_iterator *iterator;
    assert_ok(ditto_strategy_iterate(strategy, rows, &OPTIONS(input, .global_batch = 4), &iterator));
    assert_ok(ditto_strategy_run(strategy, take_batches, iterator));
    assert_ok(ditto_iterator_save(iterator, state, bytes));
    for (int tries = 0; number_at(*state, *bytes, ROWS) == 0; tries++) {
        assert_true(tries < 60000);
        ditto_state_free(*state);
        sleep_ms(1);
        assert_ok(ditto_iterator_save(iterator, state, bytes));
    }
    assert_ok(ditto_iterator_destroy(iterator));
}

static struct dti_bytes replace(const char *state, size_t bytes, long at, uint64_t value)
{
    struct dti_bytes_reader all = { state + HEAD_BYTES, state + bytes - HASH_BYTES, false }, from = all;
    struct dti_bytes to = { 0 };
    long count = 0;
    for (; all.at < all.end; count++)
        dti_bytes_get_u64(&all);
    dti_bytes_put(&to, state, HEAD_BYTES);
    for (long i = 0; i < count; i++) {
        uint64_t number = dti_bytes_get_u64(&from);
        dti_bytes_put_u64(&to, i == (at < 0 ? at + count : at) ? value : number);
    }
    uint64_t hash = dti_hash_bytes(DTI_HASH_SEED, to.data, to.length);
    dti_bytes_put(&to, &hash, sizeof hash);
    return to;
}

static const struct {
    const char *what;
    ditto_dataset *(*make)(void);
    long at;
    uint64_t value;
} forgeries[] = {
    { "nothing", numbers, STEP, 3 },
    { "a step whose product with the replicas exceeds 64 bits", numbers, STEP, UINT64_C(1) << 63 },
    { "a row of a range", numbers, FIRST_ROW, RECORDS },
    { "the next row of a range", numbers, -1, RECORDS + 1 },
    { "more rows to skip", for_ever, -4, UINT64_C(1) << 32 },
    { "an endless pass that ends", for_ever, -5, 7 },
    { "a pass that never ends", twice, -5, 3 },
    { "no pass", twice, -5, 0 },
    { "a pass that is over", twice, -6, 2 },
    { "more rows to take", some_numbers, -8, 61 },
    { "rows to take without end", numbers, -1, UINT64_MAX },
    { "the length of a line", lines, FIRST_ROW + 1, 1 << 30 },
    { "another file", lines, FIRST_ROW + 1, UINT64_C(1) << 32 },
    { "the offset of a line", lines, FIRST_ROW, UINT64_C(1) << 63 },
    { "the offset of the next line", lines, -2, UINT64_C(1) << 63 },
    { "the length of a record", fixed, FIRST_ROW + 1, RECORD_BYTES + 1 },
    { "the offset of a record", fixed, FIRST_ROW, 1 },
    { "the next record", fixed, -1, RECORDS + 1 },
    { "the length of a TFRecord", tfrecords, FIRST_ROW + 1, RECORD_BYTES + 1 },
};

static void forged_numbers_are_refused(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    for (size_t i = 0; i < sizeof forgeries / sizeof forgeries[0]; i++) {
        ditto_dataset *rows = forgeries[i].make();
        ditto_iterator *iterator;
        void *saved;
        size_t bytes;
        save_after_steps(strategy, rows, &saved, &bytes);
        struct dti_bytes forged = replace(saved, bytes, forgeries[i].at, forgeries[i].value);
        ditto_status status = ditto_strategy_iterate(
            strategy, rows,
            &OPTIONS(input, .global_batch = 4, .state = forged.data, .state_bytes = forged.length),
            &iterator);
        if (status != (i == 0 ? DITTO_OK : DITTO_ERR_CORRUPT))
            fail_msg("%s: %s", forgeries[i].what, ditto_status_name(status));
        if (status == DITTO_OK)
            assert_ok(ditto_iterator_destroy(iterator));
        dti_bytes_free(&forged);
        ditto_state_free(saved);
        assert_ok(ditto_dataset_destroy(rows));
    }
    assert_ok(ditto_strategy_destroy(strategy));
}

/* The steps of a state are compared with what the strategy has only if steps can have such numbers. */
static void a_wrong_step_is_damage_for_any_number_of_replicas(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL), *other = make_strategy(3, NULL);
    ditto_dataset *rows = numbers();
    ditto_iterator *iterator;
    void *saved;
    size_t bytes;
    save_after_steps(strategy, rows, &saved, &bytes);
    struct dti_bytes forged = replace(saved, bytes, STEP, UINT64_C(1) << 63);
    assert_status(ditto_strategy_iterate(
                      other, rows,
                      &OPTIONS(input, .global_batch = 4, .state = forged.data, .state_bytes = forged.length),
                      &iterator),
                  DITTO_ERR_CORRUPT);
    dti_bytes_free(&forged);
    ditto_state_free(saved);
    assert_ok(ditto_dataset_destroy(rows));
    assert_ok(ditto_strategy_destroy(strategy));
    assert_ok(ditto_strategy_destroy(other));
}

/* Replicas of one pipeline that are at different steps: the first step is that of one of them, and none is
 * further ahead than a queue is long. */
static void steps_of_replicas_are_compared(void **state)
{
    static const uint64_t steps[][3] = {
        { 3, 3, 4 }, { 3, 4, 4 }, { 3, 2, 4 }, { 3, 3, 3 + (1 << 20) + 1 }, { 3, 3, UINT64_MAX }
    };
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_dataset *rows = numbers();
    ditto_iterator *iterator;
    void *saved;
    size_t bytes;
    save_after_steps(strategy, rows, &saved, &bytes);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct dti_bytes_reader from = { (char *)saved + HEAD_BYTES, (char *)saved + bytes - HASH_BYTES,
                                         false };
        struct dti_bytes to = { 0 };
        dti_bytes_put(&to, saved, HEAD_BYTES);
        for (int k = 0; k < STEP; k++)
            dti_bytes_put_u64(&to, dti_bytes_get_u64(&from));
        dti_bytes_put_u64(&to, steps[i][0]);
        dti_bytes_put_u64(&to, false);
        dti_bytes_put_u64(&to, steps[i][1]);
        dti_bytes_put_u64(&to, steps[i][2]);
        dti_bytes_get_u64(&from), dti_bytes_get_u64(&from); /* the two numbers in whose place these are */
        dti_bytes_put(&to, from.at, (size_t)(from.end - from.at));
        uint64_t hash = dti_hash_bytes(DTI_HASH_SEED, to.data, to.length);
        dti_bytes_put(&to, &hash, sizeof hash);
        assert_status(ditto_strategy_iterate(
                          strategy, rows,
                          &OPTIONS(input, .global_batch = 4, .state = to.data, .state_bytes = to.length),
                          &iterator),
                      i == 0 ? DITTO_OK : DITTO_ERR_CORRUPT);
        if (i == 0)
            assert_ok(ditto_iterator_destroy(iterator));
        dti_bytes_free(&to);
    }
    ditto_state_free(saved);
    assert_ok(ditto_dataset_destroy(rows));
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forged_numbers_are_refused),
        cmocka_unit_test(a_wrong_step_is_damage_for_any_number_of_replicas),
        cmocka_unit_test(steps_of_replicas_are_compared),
    };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
