/* tests/input/transforms/test_transforms.c - tests the rows of sources in memory and of transformations,
 * on one thread. */
#include "input/written_rows.h"

static ditto_dataset *joined(ditto_status (*join)(ditto_dataset *const *, uint32_t, ditto_dataset **),
                             ditto_dataset *a, ditto_dataset *b)
{
    ditto_dataset *inputs[2] = { a, b }, *d;
    assert_ok(join(inputs, 2, &d));
    assert_ok(ditto_dataset_destroy(a));
    assert_ok(ditto_dataset_destroy(b));
    return d;
}

static void ranges_count_up_and_down(void **state)
{
    ditto_dataset *d;
    assert_ok(ditto_dataset_from_range(3, 10, 3, &d));
    assert_rows(d, 3, 6, 9);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_from_range(2, -3, -2, &d));
    assert_rows(d, 2, 0, -2);
    assert_ok(ditto_dataset_destroy(d));
    /* The distance from start to stop does not fit into an int64_t. */
    assert_ok(ditto_dataset_from_range(INT64_MIN, INT64_MAX, INT64_MAX, &d));
    assert_rows(d, INT64_MIN, -1, INT64_MAX - 1);
    assert_ok(ditto_dataset_destroy(d));
    assert_status(ditto_dataset_from_range(0, 10, 0, &d), DITTO_ERR_RANGE);
    assert_status(ditto_dataset_from_range(0, 0, 1, &d), DITTO_ERR_INVALID);
    assert_status(ditto_dataset_from_range(0, 10, -1, &d), DITTO_ERR_INVALID);
}

static void rows_are_repeated_skipped_taken_and_sharded(void **state)
{
    ditto_dataset *d;
    d = then(range(0, 3), ditto_dataset_repeat, 2);
    assert_rows(d, 0, 1, 2, 0, 1, 2);
    d = then(then(d, ditto_dataset_skip, 2), ditto_dataset_take, 3);
    assert_rows(d, 2, 0, 1);
    assert_ok(ditto_dataset_destroy(d));
    ditto_dataset *eight = range(0, 8);
    assert_ok(ditto_dataset_shard(eight, 3, 1, &d));
    assert_ok(ditto_dataset_destroy(eight));
    assert_rows(d, 1, 4, 7);
    assert_ok(ditto_dataset_destroy(d));
}

static void behind_batch_take_skip_and_shard_count_in_batches(void **state)
{
    ditto_dataset *batched = then(range(0, 20), batch_of, 3), *d, *flat;
    ditto_element_spec spec;
    assert_ok(ditto_dataset_take(batched, 2, &d));
    assert_rows(d, 0, 1, 2, 3, 4, 5);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_skip(batched, 6, &d));
    assert_rows(d, 18, 19);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_shard(batched, 3, 1, &d));
    assert_rows(d, 3, 4, 5, 12, 13, 14);
    assert_ok(ditto_dataset_spec(d, &spec));
    assert_int_equal(spec.batch, 3);
    assert_ok(ditto_dataset_unbatch(d, &flat));
    assert_ok(ditto_dataset_spec(flat, &spec));
    assert_int_equal(spec.batch, 0);
    assert_status(ditto_dataset_unbatch(flat, &d), DITTO_ERR_INVALID);
    assert_ok(ditto_dataset_destroy(flat));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_destroy(batched));
    /* Each pass drops its own remainder. */
    d = then(then(range(0, 10), whole_batches_of, 4), ditto_dataset_repeat, 2);
    assert_rows(d, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7);
    assert_ok(ditto_dataset_destroy(d));
    /* Repeating an empty dataset ends. */
    d = then(then(range(0, 3), whole_batches_of, 4), ditto_dataset_repeat, DITTO_REPEAT_FOREVER);
    static struct rows none;
    assert_ok(list_rows(d, 0, &none));
    assert_int_equal(none.count, 0);
    assert_ok(ditto_dataset_destroy(d));
}

static void several_datasets_become_one(void **state)
{
    ditto_dataset *inputs[5], *d;
    d = joined(ditto_dataset_concatenate, range(0, 3), range(10, 12));
    assert_rows(d, 0, 1, 2, 10, 11);
    assert_ok(ditto_dataset_destroy(d));
    /* The example of interleave in the documentation of tf.data: five inputs of six equal rows, two at a
     * time, in blocks of 4. */
    for (int i = 0; i < 5; i++)
        inputs[i] = then(range(i + 1, i + 2), ditto_dataset_repeat, 6);
    assert_ok(ditto_dataset_interleave(inputs, 5, 2, 4, &d));
    assert_rows(d, 1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_interleave(inputs, 2, 0, 0, &d));
    assert_rows(d, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2);
    assert_ok(ditto_dataset_destroy(d));
    for (int i = 0; i < 5; i++)
        assert_ok(ditto_dataset_destroy(inputs[i]));
}

static ditto_status sum_both(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                             void *user)
{
    *(int64_t *)out[0].data = 100 * *(const int64_t *)in[0].data + *(const int64_t *)in[1].data;
    return DITTO_OK;
}

static void zipped_rows_have_the_components_of_both_and_end_with_the_shorter(void **state)
{
    ditto_tensor scalar = { .dtype = DITTO_I64 };
    ditto_element_spec spec;
    for (int longer = 0; longer < 2; longer++) {
        ditto_dataset *d = joined(ditto_dataset_zip, range(0, longer == 0 ? 9 : 3),
                                  range(5, longer == 1 ? 14 : 8)),
                      *sums;
        assert_ok(ditto_dataset_spec(d, &spec));
        assert_int_equal(spec.num_components, 2);
        assert_ok(
            ditto_dataset_map(d, sum_both, NULL, &OPTIONS(map, .row = &scalar, .num_components = 1), &sums));
        assert_ok(ditto_dataset_destroy(d));
        assert_rows(sums, 5, 106, 207);
        assert_ok(ditto_dataset_destroy(sums));
    }
}

static void filters_keep_the_rows_that_they_accept(void **state)
{
    ditto_dataset *d = then(range(0, 10), keep_residues, 3);
    assert_rows(d, 1, 2, 4, 5, 7, 8);
    assert_ok(ditto_dataset_destroy(d));
    static struct rows rows;
    d = then(range(0, 30000), keep_residues, 1); /* no row is kept */
    assert_ok(list_rows(d, 0, &rows));
    assert_int_equal(rows.count, 0);
    assert_ok(ditto_dataset_destroy(d));
}

/* Returns how many of `count` random numbers, which add_noise has added to the rows, are equal. */
static size_t equal_noise(const int64_t *a, const int64_t *b, size_t count)
{
    size_t equal = 0;
    for (size_t i = 0; i < count; i++)
        equal += a[i] % (1 << 20) == b[i] % (1 << 20);
    return equal;
}

/* Random numbers below 2^20 are seldom equal. The seeds are fixed, so the numbers are the same every time. */
static void random_maps_depend_on_seed_row_and_pass_alone(void **state)
{
    static struct rows first, again, other;
    ditto_dataset *d = then(range(0, 1000), add_noise, 5), *seed_6 = then(range(0, 1000), add_noise, 6),
                  *front = then(then(range(0, 1000), add_noise, 5), ditto_dataset_take, 10);
    assert_ok(list_rows(d, 0, &first));
    assert_ok(list_rows(d, 0, &again));
    assert_memory_equal(first.row, again.row, 1000 * sizeof(int64_t));
    assert_true(equal_noise(first.row, first.row + 1, 999) < 5); /* of two rows */
    assert_ok(list_rows(d, 1, &other));
    assert_true(equal_noise(first.row, other.row, 1000) < 5);
    assert_ok(list_rows(seed_6, 0, &other));
    assert_true(equal_noise(first.row, other.row, 1000) < 5);
    assert_ok(list_rows(front, 0, &again));
    assert_memory_equal(first.row, again.row, 10 * sizeof(int64_t));
    assert_ok(ditto_dataset_destroy(front));
    assert_ok(ditto_dataset_destroy(seed_6));
    assert_ok(ditto_dataset_destroy(d));
}

/* repeat(2) uses passes 0 and 1 of its input in pass 0, and passes 2 and 3 in pass 1. */
static void a_repeated_dataset_uses_its_own_passes(void **state)
{
    static struct rows once, twice;
    ditto_dataset *d = then(range(0, 100), shuffle_by, 0), *repeated;
    assert_ok(ditto_dataset_repeat(d, 2, &repeated));
    for (uint64_t pass = 0; pass < 4; pass++) {
        assert_ok(list_rows(d, pass, &once));
        assert_ok(list_rows(repeated, pass / 2, &twice));
        assert_int_equal(twice.count, 200);
        assert_memory_equal(once.row, twice.row + pass % 2 * 100, 100 * sizeof(int64_t));
    }
    assert_ok(ditto_dataset_destroy(repeated));
    assert_ok(ditto_dataset_destroy(d));
}

static ditto_status add_hundred(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                                void *user)
{
    *(int64_t *)out[0].data = *(const int64_t *)in[0].data + 100;
    return DITTO_OK;
}

/* Rows are read together. If one of them fails, they are read again one by one. The second map must be
 * applied only to rows that its input has written. */
static void rows_before_one_that_fails_are_reduced(void **state)
{
    static struct rows rows;
    ditto_dataset *d = range(0, 10), *failing, *mapped, *filtered;
    assert_ok(ditto_dataset_map(d, fail_on_row, (void *)7, NULL, &failing));
    assert_ok(ditto_dataset_map(failing, add_hundred, NULL, NULL, &mapped));
    assert_ok(keep_residues(mapped, 103, &filtered)); /* drops the row 103 */
    for (int with_filter = 0; with_filter < 2; with_filter++) {
        assert_status(list_rows(with_filter ? filtered : mapped, 0, &rows), DITTO_ERR_CORRUPT);
        assert_int_equal(rows.count, 7 - with_filter);
        for (int64_t i = 0; i < (int64_t)rows.count; i++)
            assert_int_equal(rows.row[i], 100 + i + (with_filter && i >= 3));
    }
    assert_ok(ditto_dataset_destroy(filtered));
    assert_ok(ditto_dataset_destroy(mapped));
    assert_ok(ditto_dataset_destroy(failing));
    assert_ok(ditto_dataset_destroy(d));
}

/* The 2^64 - 128 bytes of a row can be counted, but not the bytes of the memory that it needs. */
static void a_row_that_no_memory_holds_is_refused(void **state)
{
    static struct rows rows;
    const size_t half = ((size_t)1 << 63) - 128;
    ditto_tensor row[3] = { { .dtype = DITTO_U8, .rank = 1, .shape = { half } },
                            { .dtype = DITTO_U8, .rank = 1, .shape = { half } },
                            { .dtype = DITTO_U8, .rank = 1, .shape = { 128 } } };
    ditto_dataset *d = range(0, 3), *mapped;
    assert_ok(
        ditto_dataset_map(d, fail_on_row, NULL, &OPTIONS(map, .row = row, .num_components = 3), &mapped));
    assert_status(list_rows(mapped, 0, &rows), DITTO_ERR_NO_MEMORY);
    assert_message("no memory for the values of 1 rows");
    assert_ok(ditto_dataset_destroy(mapped));
    assert_ok(ditto_dataset_destroy(d));
}

static void a_shuffle_without_limit_reaches_every_order(void **state)
{
    unsigned seen[24] = { 0 };
    ditto_dataset *d = then(range(0, 4), shuffle_by, 0);
    static struct rows rows;
    for (uint64_t pass = 0; pass < 24000; pass++) {
        unsigned number = 0;
        assert_ok(list_rows(d, pass, &rows));
        for (int i = 0; i < 4; i++) /* the number of this order among all 24 */
            for (int j = i + 1; j < 4; j++)
                number += (rows.row[j] < rows.row[i]) * (unsigned[]){ 6, 2, 1, 0 }[i];
        seen[number]++;
    }
    double chi = 0;
    for (int i = 0; i < 24; i++)
        chi += ((double)seen[i] - 1000) * ((double)seen[i] - 1000) / 1000;
    /* There are 23 degrees of freedom, and a larger value has a probability of 1 in 26000. The seeds are
     * fixed, so the value is the same every time. */
    assert_true(chi < 60);
    assert_ok(ditto_dataset_destroy(d));
}

/* -- failures -- */

struct failing {
    int64_t at;
    ditto_status with;
    int opened, closed;
};
static ditto_status fail_open(void *user, uint64_t pass, void **position)
{
    ((struct failing *)user)->opened++;
    *position = calloc(1, sizeof(int64_t));
    return DITTO_OK;
}
static ditto_status fail_next(void *user, void *position, const ditto_tensor *row)
{
    const struct failing *f = user;
    int64_t *at = position;
    if (*at == f->at)
        return f->with;
    *(int64_t *)row[0].data = (*at)++;
    return DITTO_OK;
}
static void fail_close(void *user, void *position)
{
    ((struct failing *)user)->closed++;
    free(position);
}
static ditto_dataset *failing_generator(struct failing *f)
{
    ditto_dataset *d;
    ditto_generator g = {
        .struct_size = sizeof g, .user = f, .open = fail_open, .next = fail_next, .close = fail_close
    };
    assert_ok(ditto_dataset_from_generator(&g, &(ditto_tensor){ .dtype = DITTO_I64 }, 1, &d));
    return d;
}

static void a_generator_that_fails_loses_no_row_before_it(void **state)
{
    static struct rows rows;
    struct failing f = { .at = 10000, .with = DITTO_ERR_USER };
    for (int kind = 0; kind < 5; kind++) {
        ditto_dataset *d = failing_generator(&f);
        if (kind == 1)
            d = then(d, shuffle_by, 50);
        if (kind == 2)
            d = then(d, keep_residues, 20000);
        if (kind == 3)
            d = then(d, batch_of, 7);
        if (kind == 4)
            d = joined(ditto_dataset_zip, d, range(0, 20000));
        assert_status(list_rows(d, 0, &rows), DITTO_ERR_USER);
        assert_message("a generator (next)");
        assert_int_equal(rows.count, kind == 2 ? 9999 : 10000);
        assert_ok(ditto_dataset_destroy(d));
    }
    f.with = DITTO_END_OF_INPUT;
    ditto_dataset *d = then(failing_generator(&f), ditto_dataset_repeat, 3);
    assert_ok(list_rows(d, 0, &rows));
    assert_int_equal(rows.count, 30000);
    assert_ok(ditto_dataset_destroy(d));
    assert_int_equal(f.opened, f.closed);
}

static ditto_status stop_at_once(const ditto_tensor *row, void *state)
{
    return DITTO_END_OF_INPUT;
}

static ditto_status fail_on_five(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                                 void *user)
{
    *(int64_t *)out->data = *(const int64_t *)in->data;
    return *(const int64_t *)in->data == 5 ? DITTO_ERR_IO : DITTO_OK;
}

/* Several rows are chosen and read together, so a later one may have failed. */
static void a_reduction_that_stops_before_an_error_leaves_no_error(void **state)
{
    struct failing f = { .at = 5, .with = DITTO_ERR_USER };
    ditto_dataset *numbers = range(0, 10), *d;
    ditto_error before = *ditto_last_error();
    assert_ok(ditto_dataset_map(numbers, fail_on_five, NULL, NULL, &d));
    assert_ok(ditto_dataset_destroy(numbers));
    assert_ok(ditto_dataset_reduce(d, stop_at_once, NULL, 0));
    assert_string_equal(ditto_last_error()->message, before.message);
    assert_ok(ditto_dataset_destroy(d));
    for (int is_shuffled = 0; is_shuffled < 2; is_shuffled++) {
        d = is_shuffled ? then(failing_generator(&f), shuffle_by, 3) : failing_generator(&f);
        assert_ok(ditto_dataset_reduce(d, stop_at_once, NULL, 0));
        assert_string_equal(ditto_last_error()->message, before.message);
        assert_ok(ditto_dataset_destroy(d));
    }
}

static ditto_status refuse_open(void *user, uint64_t pass, void **position)
{
    return DITTO_ERR_USER;
}

static void an_input_that_cannot_be_opened_fails_after_the_rows_of_those_before_it(void **state)
{
    static struct rows rows;
    ditto_dataset *bad, *inputs[2], *d;
    ditto_generator g = { .struct_size = sizeof g, .open = refuse_open, .next = fail_next };
    assert_ok(ditto_dataset_from_generator(&g, &(ditto_tensor){ .dtype = DITTO_I64 }, 1, &bad));
    inputs[0] = range(0, 4);
    inputs[1] = bad;
    assert_ok(ditto_dataset_concatenate(inputs, 2, &d));
    assert_status(list_rows(d, 0, &rows), DITTO_ERR_USER);
    assert_message("a generator (open)");
    assert_int_equal(rows.count, 4);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_destroy(inputs[0]));
    assert_ok(ditto_dataset_destroy(bad));
}

static ditto_status fail_on_500(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                                void *user)
{
    *(int64_t *)out[0].data = *(const int64_t *)in[0].data;
    return *(const int64_t *)in[0].data == 500 ? DITTO_ERR_CORRUPT : DITTO_OK;
}
static ditto_status refuse_500(const ditto_tensor *row, void *user, int *keep)
{
    *keep = 1;
    return *(const int64_t *)row[0].data == 500 ? DITTO_ERR_USER : DITTO_OK;
}

static void a_function_that_fails_is_named_with_the_row(void **state)
{
    static struct rows rows;
    ditto_dataset *d, *source = range(0, 1000), *filtered;
    assert_ok(ditto_dataset_map(source, fail_on_500, NULL, NULL, &d));
    assert_status(list_rows(d, 0, &rows), DITTO_ERR_CORRUPT);
    assert_message("a map returned DITTO_ERR_CORRUPT on row 500 of a range");
    assert_int_equal(rows.count, 500);
    assert_ok(ditto_dataset_filter(d, refuse_500, NULL, &filtered)); /* the map comes first */
    assert_status(list_rows(filtered, 0, &rows), DITTO_ERR_CORRUPT);
    assert_int_equal(rows.count, 500);
    assert_ok(ditto_dataset_destroy(filtered));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_filter(source, refuse_500, NULL, &d));
    assert_status(list_rows(d, 0, &rows), DITTO_ERR_USER);
    assert_message("a filter returned DITTO_ERR_USER on row 500 of a range");
    assert_int_equal(rows.count, 500);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_destroy(source));
}

static void wrong_arguments_are_refused_by_transformations(void **state)
{
    ditto_dataset *d = range(0, 10), *batched = then(range(0, 10), batch_of, 2), *out, *zipped[9];
    ditto_tensor deep = { .dtype = DITTO_F32, .rank = DITTO_MAX_RANK };
    ditto_generator g = DITTO_GENERATOR_INIT;
    assert_status(ditto_dataset_shuffle(batched, NULL, &out), DITTO_ERR_UNSUPPORTED);
    assert_status(ditto_dataset_filter(batched, refuse_500, NULL, &out), DITTO_ERR_UNSUPPORTED);
    assert_message("filter after batch");
    assert_status(ditto_dataset_concatenate((ditto_dataset *[]){ d, batched }, 2, &out),
                  DITTO_ERR_UNSUPPORTED);
    assert_status(ditto_dataset_zip((ditto_dataset *[]){ d, batched }, 2, &out), DITTO_ERR_INVALID);
    assert_status(ditto_dataset_zip((ditto_dataset *[]){ d, NULL }, 2, &out), DITTO_ERR_INVALID);
    assert_status(ditto_dataset_zip((ditto_dataset *[]){ d }, 0, &out), DITTO_ERR_INVALID);
    assert_status(ditto_dataset_zip(NULL, 2, &out), DITTO_ERR_INVALID);
    for (int i = 0; i < 9; i++)
        assert_ok(ditto_dataset_zip((ditto_dataset *[]){ d, d }, 2, &zipped[i]));
    assert_status(ditto_dataset_zip(zipped, 9, &out), DITTO_ERR_INVALID);
    assert_message("18 components");
    assert_status(ditto_dataset_concatenate((ditto_dataset *[]){ d, zipped[0] }, 2, &out), DITTO_ERR_INVALID);
    for (int i = 0; i < 9; i++)
        assert_ok(ditto_dataset_destroy(zipped[i]));
    assert_status(ditto_dataset_shard(d, 3, 3, &out), DITTO_ERR_RANGE);
    assert_message("index is 3");
    assert_status(ditto_dataset_shard(d, 0, 0, &out), DITTO_ERR_RANGE);
    assert_message("num_shards is 0");
    assert_status(ditto_dataset_prefetch(d, 0, &out), DITTO_ERR_RANGE);
    assert_status(ditto_dataset_map(d, NULL, NULL, NULL, &out), DITTO_ERR_INVALID);
    ditto_map_options map = OPTIONS(map, .num_components = 1);
    assert_status(ditto_dataset_map(d, fail_on_500, NULL, &map, &out), DITTO_ERR_INVALID);
    map.row = &deep;
    assert_status(ditto_dataset_map(d, fail_on_500, NULL, &map, &out), DITTO_ERR_INVALID);
    assert_message("rank 8");
    assert_status(ditto_dataset_from_generator(&g, &deep, 1, &out), DITTO_ERR_INVALID);
    assert_message("next is NULL");
    g.next = fail_next;
    assert_status(ditto_dataset_from_generator(&g, &deep, 0, &out), DITTO_ERR_INVALID);
    assert_status(ditto_dataset_reduce(d, NULL, NULL, 0), DITTO_ERR_INVALID);
    assert_status(ditto_dataset_reduce(NULL, NULL, NULL, 0), DITTO_ERR_INVALID);
    assert_status(ditto_dataset_spec(d, NULL), DITTO_ERR_INVALID);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_destroy(batched));
}

static ditto_status count_a_row(const ditto_tensor *row, void *user)
{
    ++*(int *)user;
    return DITTO_OK;
}

static ditto_status write_nothing(void *user, void *position, const ditto_tensor *row)
{
    return DITTO_OK;
}

static ditto_status forget_row(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                               void *user)
{
    *(unsigned char *)out[0].data = 1;
    return DITTO_OK;
}

/* The bytes of the two components fit into a size_t, but not with the padding behind each of them. A map
 * makes the rows small, so that memory for its results can be allocated. Only the generator needs the large
 * row. */
static void a_row_that_is_larger_than_any_memory_is_refused(void **state)
{
    ditto_tensor huge = { .dtype = DITTO_U8, .rank = 1, .shape = { PTRDIFF_MAX } };
    ditto_dataset *d, *small;
    int rows = 0;
    ditto_generator g = { .struct_size = sizeof g, .next = write_nothing };
    assert_ok(ditto_dataset_from_generator(&g, (ditto_tensor[]){ huge, huge }, 2, &d));
    assert_ok(ditto_dataset_map(
        d, forget_row, NULL, &OPTIONS(map, .row = &(ditto_tensor){ .dtype = DITTO_U8 }, .num_components = 1),
        &small));
    assert_status(ditto_dataset_reduce(small, count_a_row, &rows, 0), DITTO_ERR_NO_MEMORY);
    assert_int_equal(rows, 0);
    assert_ok(ditto_dataset_destroy(small));
    assert_ok(ditto_dataset_destroy(d));
}

static void a_chain_of_datasets_has_a_limit(void **state)
{
    ditto_dataset *d = range(0, 2), *more;
    for (int i = 1; i < 1000; i++)
        d = then(d, ditto_dataset_skip, 0);
    assert_rows(d, 0, 1);
    assert_status(ditto_dataset_skip(d, 0, &more), DITTO_ERR_RANGE);
    assert_message("at most 999");
    assert_ok(ditto_dataset_destroy(d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_count_up_and_down),
        cmocka_unit_test(rows_are_repeated_skipped_taken_and_sharded),
        cmocka_unit_test(behind_batch_take_skip_and_shard_count_in_batches),
        cmocka_unit_test(several_datasets_become_one),
        cmocka_unit_test(zipped_rows_have_the_components_of_both_and_end_with_the_shorter),
        cmocka_unit_test(filters_keep_the_rows_that_they_accept),
        cmocka_unit_test(random_maps_depend_on_seed_row_and_pass_alone),
        cmocka_unit_test(a_repeated_dataset_uses_its_own_passes),
        cmocka_unit_test(rows_before_one_that_fails_are_reduced),
        cmocka_unit_test(a_row_that_no_memory_holds_is_refused),
        cmocka_unit_test(a_shuffle_without_limit_reaches_every_order),
        cmocka_unit_test(a_generator_that_fails_loses_no_row_before_it),
        cmocka_unit_test(a_reduction_that_stops_before_an_error_leaves_no_error),
        cmocka_unit_test(an_input_that_cannot_be_opened_fails_after_the_rows_of_those_before_it),
        cmocka_unit_test(a_function_that_fails_is_named_with_the_row),
        cmocka_unit_test(wrong_arguments_are_refused_by_transformations),
        cmocka_unit_test(a_chain_of_datasets_has_a_limit),
        cmocka_unit_test(a_row_that_is_larger_than_any_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
