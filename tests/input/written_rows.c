/* tests/input/written_rows.c - see written_rows.h. */
#include "input/written_rows.h"

static ditto_status append(const ditto_tensor *row, void *state)
{
    struct rows *rows = state;
    if (rows->count == MOST_LISTED)
        return DITTO_END_OF_INPUT;
    rows->row[rows->count++] = *(const int64_t *)row[0].data;
    return DITTO_OK;
}

ditto_status list_rows(ditto_dataset *dataset, uint64_t pass, struct rows *out)
{
    out->count = 0;
    return ditto_dataset_reduce(dataset, append, out, pass);
}

void assert_rows_(ditto_dataset *dataset, const int64_t *expected, size_t count, const char *file, int line)
{
    static struct rows found;
    assert_ok(list_rows(dataset, 0, &found));
    for (size_t i = 0; i < count && i < found.count; i++)
        if (found.row[i] != expected[i])
            print_error("%s:%d: row %zu is %lld, expected %lld\n", file, line, i, (long long)found.row[i],
                        (long long)expected[i]);
    if (found.count != count || memcmp(found.row, expected, count * sizeof *expected) != 0)
        _fail(file, line);
}

ditto_dataset *range(int64_t start, int64_t stop)
{
    ditto_dataset *d;
    assert_ok(ditto_dataset_from_range(start, stop, 1, &d));
    return d;
}

ditto_dataset *then(ditto_dataset *input,
                    ditto_status (*transform)(ditto_dataset *, uint64_t, ditto_dataset **), uint64_t count)
{
    ditto_dataset *d;
    assert_ok(transform(input, count, &d));
    assert_ok(ditto_dataset_destroy(input));
    return d;
}

ditto_status batch_of(ditto_dataset *input, uint64_t count, ditto_dataset **out)
{
    return ditto_dataset_batch(input, count, 0, out);
}

ditto_status whole_batches_of(ditto_dataset *input, uint64_t count, ditto_dataset **out)
{
    return ditto_dataset_batch(input, count, DITTO_BATCH_DROP_REMAINDER, out);
}

ditto_status shuffle_by(ditto_dataset *input, uint64_t buffer, ditto_dataset **out)
{
    return ditto_dataset_shuffle(input, &OPTIONS(shuffle, .seed = buffer * 7 + 1, .buffer_rows = buffer),
                                 out);
}

static ditto_status is_no_multiple(const ditto_tensor *row, void *user, int *keep)
{
    *keep = *(const int64_t *)row[0].data % (int64_t)(uintptr_t)user != 0;
    return DITTO_OK;
}

ditto_status keep_residues(ditto_dataset *input, uint64_t modulus, ditto_dataset **out)
{
    return ditto_dataset_filter(input, is_no_multiple, (void *)(uintptr_t)modulus, out);
}

static ditto_status make_noise(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                               void *user)
{
    uint64_t noise;
    ditto_random_below(random, 1 << 20, &noise, 1);
    *(int64_t *)out[0].data = (int64_t)((uint64_t) * (const int64_t *)in[0].data << 20 | noise);
    return DITTO_OK;
}

ditto_status add_noise(ditto_dataset *input, uint64_t seed, ditto_dataset **out)
{
    return ditto_dataset_map(input, make_noise, NULL, &OPTIONS(map, .seed = seed), out);
}

/* -- a generator -- */

static ditto_status count_open(void *user, uint64_t pass, void **position)
{
    *position = calloc(1, sizeof(int64_t));
    return *position != NULL ? DITTO_OK : DITTO_ERR_NO_MEMORY;
}

static ditto_status count_next(void *user, void *position, const ditto_tensor *row)
{
    int64_t *at = position;
    if (*at == (int64_t)(uintptr_t)user)
        return DITTO_END_OF_INPUT;
    *(int64_t *)row[0].data = (*at)++;
    return DITTO_OK;
}

static void count_close(void *user, void *position)
{
    free(position);
}

static ditto_status count_save(void *user, void *position, void *bytes, size_t size, size_t *length)
{
    *length = sizeof(int64_t);
    if (size != 0)
        memcpy(bytes, position, size < sizeof(int64_t) ? size : sizeof(int64_t));
    return DITTO_OK;
}

static ditto_status count_restore(void *user, void *position, const void *bytes, size_t length)
{
    memcpy(position, bytes, length);
    return DITTO_OK;
}

ditto_status counted_up_to(uint64_t count, bool can_be_saved, ditto_dataset **out)
{
    ditto_generator g = { .struct_size = sizeof g,
                          .user = (void *)(uintptr_t)count,
                          .open = count_open,
                          .next = count_next,
                          .close = count_close,
                          .save = can_be_saved ? count_save : NULL,
                          .restore = can_be_saved ? count_restore : NULL };
    return ditto_dataset_from_generator(&g, &(ditto_tensor){ .dtype = DITTO_I64 }, 1, out);
}

/* -- random datasets -- */

static ditto_dataset *random_source(uint64_t *random, uint64_t rows, bool held)
{
    ditto_dataset *inputs[3], *d;
    if (held && test_random(random) % 2 == 0) {
        assert_ok(counted_up_to(rows, true, &d));
        return d;
    }
    switch (test_random(random) % 4) {
    case 0: /* interleave */
        for (int i = 0; i < 3; i++)
            inputs[i] = range((int64_t)(i * 1000), (int64_t)(i * 1000 + (int)(rows / 3) + i));
        assert_ok(ditto_dataset_interleave(inputs, 3, 1 + (uint32_t)(test_random(random) % 3),
                                           1 + test_random(random) % 4, &d));
        break;
    case 1: /* concatenate */
        for (int i = 0; i < 3; i++)
            inputs[i] = i == 1 && held ? NULL : range(0, (int64_t)(rows / 3));
        if (inputs[1] == NULL)
            assert_ok(counted_up_to(rows / 3, true, &inputs[1]));
        assert_ok(ditto_dataset_concatenate(inputs, 3, &d));
        break;
    case 2: /* zip */
        for (int i = 0; i < 3; i++)
            inputs[i] = range(i, (int64_t)rows + 2 * i);
        assert_ok(ditto_dataset_zip(inputs, 3, &d));
        break;
    default:
        return range(0, (int64_t)rows);
    }
    for (int i = 0; i < 3; i++)
        assert_ok(ditto_dataset_destroy(inputs[i]));
    return d;
}

static ditto_status every(ditto_dataset *input, uint64_t number, ditto_dataset **out)
{
    return ditto_dataset_shard(input, number, number / 2, out);
}

ditto_dataset *random_dataset(uint64_t *random, uint64_t rows, bool held)
{
    ditto_dataset *d = random_source(random, rows, held);
    for (uint64_t left = test_random(random) % 5; left > 0; left--) {
        uint64_t number = 2 + test_random(random) % 20;
        ditto_element_spec spec;
        assert_ok(ditto_dataset_spec(d, &spec));
        switch (test_random(random) % 7) {
        case 0:
            d = then(d, shuffle_by, number * 3);
            break;
        case 1:
            d = then(d, keep_residues, number);
            break;
        case 2:
            d = spec.num_components == 1 ? then(d, add_noise, number) : d;
            break;
        case 3:
            d = then(d, ditto_dataset_repeat, 1 + number % 3);
            break;
        case 4:
            d = then(d, ditto_dataset_skip, number);
            break;
        case 5:
            d = then(d, ditto_dataset_take, rows);
            break;
        default:
            d = then(d, every, 1 + number % 3);
            break;
        }
    }
    return d;
}

ditto_status one_leaves(ditto_replica *self, void *argument)
{
    struct leaving *l = argument;
    ditto_batch b;
    ditto_status status;
    for (int taken = 0; (status = ditto_next(self, l->iterator, &b)) == DITTO_OK; taken++)
        if (ditto_replica_id(self) == l->leaver && taken == 3)
            return l->fails ? ditto_fail(self, 3, "enough") : DITTO_OK;
    return l->end[ditto_replica_id(self)] = status;
}

void assert_others_stopped(const struct leaving *l, uint32_t n)
{
    for (uint32_t r = 0; r < n; r++)
        if (r != l->leaver && l->end[r] != DITTO_ERR_PEER_STOPPED &&
            (l->fails || l->end[r] != DITTO_ERR_DIVERGED))
            fail_msg("replica %u left, and replica %u got %s", l->leaver, r, ditto_status_name(l->end[r]));
}

ditto_status fail_on_row(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random, void *user)
{
    *(int64_t *)out[0].data = *(const int64_t *)in[0].data;
    return *(const int64_t *)in[0].data == (int64_t)(uintptr_t)user ? DITTO_ERR_CORRUPT : DITTO_OK;
}
