/* tests/hosts/test_host_collectives.c - collectives over several hosts have the bits of one host. */
#include "support/hosts.h"

#define MOST_REPLICAS 12
#define RESULT_BYTES  ((size_t)8 << 20)

enum { KINDS = 19 };

/* What each replica has received in all calls, one result after the other. */
struct results {
    unsigned char *bytes[MOST_REPLICAS];
    size_t used[MOST_REPLICAS];
};

struct trial {
    uint64_t seed;
    int calls;
    struct results results;
    const uint32_t *replicas; /* of each host */
    uint32_t order_blocks;
    ditto_caller caller;
    struct report *report;
};

/* Of the values, sums and products of any order are different, and none is a NaN. */
static void fill(unsigned char *bytes, size_t count, ditto_dtype dtype, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) {
        double x = 1.0 + (double)(test_random(&seed) % 1000) / 997.0;
        switch (dtype) {
        case DITTO_F32:
            ((float *)(void *)bytes)[i] = (float)x;
            break;
        case DITTO_F64:
            ((double *)(void *)bytes)[i] = x;
            break;
        case DITTO_BF16: /* 1 to 2, with all 7 bits */
            ((uint16_t *)(void *)bytes)[i] = (uint16_t)(0x3f80 + test_random(&seed) % 128);
            break;
        case DITTO_F16:
            ((uint16_t *)(void *)bytes)[i] = (uint16_t)(0x3c00 + test_random(&seed) % 1024);
            break;
        default:
            ((int8_t *)bytes)[i] = (int8_t)test_random(&seed);
        }
    }
}

/* Equal on all replicas. */
struct choice {
    int kind;
    ditto_dtype dtype;
    ditto_op op;
    size_t count;
    uint32_t root;
    bool in_place;
    size_t counts[MOST_REPLICAS];
};

static struct choice choose(uint64_t *seed, uint32_t n)
{
    static const ditto_dtype dtypes[] = { DITTO_F32, DITTO_F64, DITTO_BF16, DITTO_F16, DITTO_I8 };
    static const size_t sizes[] = { 0, 1, 3, 17, 100, 511, 1000, 5000, 40000 };
    struct choice c = { .kind = (int)(test_random(seed) % KINDS) };
    c.dtype = dtypes[test_random(seed) % 5];
    c.op = c.dtype != DITTO_I8 && test_random(seed) % 3 == 0 ? DITTO_MEAN : DITTO_SUM;
    c.count = sizes[test_random(seed) % 9];
    c.root = (uint32_t)(test_random(seed) % n);
    c.in_place = test_random(seed) % 2 == 0;
    for (uint32_t i = 0; i < n; i++)
        c.counts[i] = test_random(seed) % 3 == 0 ? 0 : test_random(seed) % (c.count + 1);
    return c;
}

/* Keeps the order: the result is not that of another tree. */
static ditto_status append(void *out, const void *left, const void *right, size_t count, void *user)
{
    const double *a = left, *b = right;
    double *o = out;
    for (size_t i = 0; i < count; i++)
        o[i] = a[i] * 0.75 + b[i];
    return DITTO_OK;
}

static void keep(struct results *results, uint32_t id, const void *bytes, size_t count)
{
    if (results->used[id] + count > RESULT_BYTES)
        count = 0;
    memcpy(results->bytes[id] + results->used[id], bytes, count);
    results->used[id] += count;
}

/* Elements of five bytes, of which the larger one is kept, byte by byte. */
static ditto_status larger_bytes(void *out, const void *left, const void *right, size_t count, void *user)
{
    const unsigned char *a = left, *b = right;
    unsigned char *o = out;
    for (size_t i = 0; i < 5 * count; i++)
        o[i] = a[i] > b[i] ? a[i] : b[i];
    return DITTO_OK;
}

/* A ditto_through_fn that changes the bytes of the combined array, and a ditto_elements_fn. */
static ditto_status invert(void *buffer, size_t count, ditto_dtype dtype, void *user)
{
    unsigned char *bytes = buffer;
    for (size_t i = 0; i < count * ditto_dtype_bytes(dtype); i++)
        bytes[i] = (unsigned char)~bytes[i];
    return DITTO_OK;
}

static ditto_status computed(void *out, size_t first, size_t count, void *user)
{
    double *x = out;
    for (size_t i = 0; i < count; i++)
        x[i] = 1.0 / (double)(first + i + *(const uint32_t *)user + 1);
    return DITTO_OK;
}

/* Starts two operations. Replicas wait for them in different orders, some of them after another collective.
 */
static ditto_status start_two(ditto_replica *self, const struct choice *c, const void *src,
                              unsigned char *dst)
{
    size_t bytes = ditto_dtype_bytes(c->dtype);
    uint32_t id = ditto_replica_id(self);
    ditto_pending first, second;
    DITTO_TRY(ditto_all_reduce_start(self, src, dst, c->count / 2, c->dtype, c->op, NULL, &first));
    DITTO_TRY(ditto_all_reduce_start(self, src, dst + c->count / 2 * bytes, c->count - c->count / 2, c->dtype,
                                     c->op, NULL, &second));
    if (id % 3 == 0)
        DITTO_TRY(ditto_wait(self, &second, NULL));
    if (id % 3 == 1)
        while (ditto_test(self, &first) != DITTO_OK)
            ;
    DITTO_TRY(ditto_barrier(self, NULL));
    if (id % 3 != 1)
        DITTO_TRY(ditto_wait(self, &first, NULL));
    return id % 3 != 0 ? ditto_wait(self, &second, NULL) : DITTO_OK;
}

/* Gives a third of the elements to each neighbour, and the last third to a replica far away. Tags are the
 * numbers of the borders. */
static ditto_status exchange(ditto_replica *self, const struct choice *c, const unsigned char *src,
                             unsigned char *dst)
{
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    size_t third = c->count / 3, bytes = third * ditto_dtype_bytes(c->dtype);
    const uint32_t partner[3] = { (id + 1) % n, (id + n - 1) % n, n - 1 - id };
    const uint32_t tag[3] = { id, (id + n - 1) % n, n };
    ditto_exchange_part parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = (ditto_exchange_part){ .replica = partner[i],
                                          .tag = tag[i],
                                          .dtype = c->dtype,
                                          .src = src + (size_t)i * bytes,
                                          .src_count = third,
                                          .dst = dst + (size_t)i * bytes,
                                          .dst_count = third };
    return ditto_exchange(self, parts, 3, NULL);
}

static ditto_status reduce_rows(ditto_replica *self, const struct choice *c, unsigned char *src,
                                unsigned char *dst)
{
    enum { ROW = 4, ROWS = 60 };
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    int64_t indices[ROWS], *merged = (int64_t *)(void *)dst;
    float *values = (float *)(void *)(dst + ROWS * n * sizeof *merged);
    size_t rows = c->counts[id] % ROWS;
    for (size_t i = 0; i < rows; i++)
        indices[i] = (int64_t)((i * 7 + id) % 23);
    fill(src, rows * ROW, DITTO_F32, id + c->count);
    ditto_slices in = { indices, src, rows, ROW, DITTO_F32 },
                 out = { merged, values, ROWS * n, ROW, DITTO_F32 };
    return ditto_all_reduce_slices(self, &in, &out, c->in_place ? DITTO_MEAN : DITTO_SUM,
                                   &OPTIONS(reduce, .flags = c->in_place ? DITTO_SLICES_MERGE : 0));
}

/* Calls that move parts: 15 and 16 with a root, 17 and 18 from each replica to each. Those in place are so on
 * some replicas. In an uneven all-to-all, as many elements go to a replica as come from it. */
static ditto_status move_parts(ditto_replica *self, const struct choice *c, unsigned char *src,
                               unsigned char *dst, size_t *received)
{
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    size_t bytes = ditto_dtype_bytes(c->dtype), counts[MOST_REPLICAS], whole = 0;
    bool uneven = c->root % 2 == 0, is_root = id == c->root;
    ditto_pending pending;
    for (uint32_t i = 0; i < n; i++)
        whole += counts[i] = uneven ? c->counts[i] : c->count;
    const size_t *given = uneven ? counts : NULL;
    if (c->kind == 15) {
        *received = is_root ? whole * bytes : 0;
        return ditto_gather_to_root(self, src, dst, c->count, given, NULL, c->dtype, c->root, NULL);
    }
    if (c->kind == 16) {
        *received = counts[id] * bytes;
        return ditto_scatter_from_root(self, src, dst, c->count, given, NULL, c->dtype, c->root, NULL);
    }
    uneven = uneven && c->kind == 17;
    *received = (uneven ? whole : c->count * n) * bytes;
    for (uint32_t i = 0; i < n; i++)
        counts[i] = c->counts[(id + i) % n];
    if (c->in_place && id % 3 != 0) {
        memcpy(dst, src, *received);
        src = dst;
    }
    if (c->kind == 17)
        return ditto_all_to_all(
            self, src, dst, c->count,
            uneven ? &(ditto_all_to_all_parts){ .src_counts = counts, .dst_counts = counts } : NULL, c->dtype,
            NULL);
    DITTO_TRY(ditto_all_to_all_start(self, src, dst, c->count, c->dtype, NULL, &pending));
    return ditto_wait(self, &pending, NULL);
}

/* The calls that are not a collective of one buffer. *received gets the number of bytes of the result. */
static ditto_status make_other_call(ditto_replica *self, const struct choice *c, unsigned char *src,
                                    unsigned char *dst, size_t *received)
{
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    size_t bytes = ditto_dtype_bytes(c->dtype);
    *received = c->count * bytes;
    switch (c->kind) {
    case 9:
        return start_two(self, c, src, dst);
    case 10:
        *received = 0;
        memset(dst, 0, c->count * bytes);
        DITTO_TRY(exchange(self, c, src, dst));
        *received = c->count / 3 * 3 * bytes;
        return DITTO_OK;
    case 11:
        memset(dst, 0, (size_t)60 * n * 24);
        DITTO_TRY(reduce_rows(self, c, src, dst));
        *received = (size_t)60 * n * 24;
        return DITTO_OK;
    case 12:
        *received = 8;
        memset(dst, 0, 8);
        if (c->root % 2 == 0)
            return ditto_block_sum_with(self, computed, &id, dst, c->counts[id], DITTO_F64, NULL);
        return c->in_place ? ditto_block_dot(self, src, src, dst, c->counts[id], c->dtype, NULL)
                           : ditto_block_sum(self, src, dst, c->counts[id], c->dtype, NULL);
    case 13:
        return ditto_all_reduce_through(self, src, dst, c->count, c->dtype, c->op, invert, NULL, NULL);
    case 15:
    case 16:
    case 17:
    case 18:
        return move_parts(self, c, src, dst, received);
    default:
        *received = c->count * 5;
        fill(src, c->count * 5, DITTO_I8, c->count + id);
        return ditto_all_reduce_with(self, src, dst, c->count, 5, larger_bytes, NULL, NULL);
    }
}

static ditto_status make_call(ditto_replica *self, struct trial *trial, const struct choice *c, uint64_t seed)
{
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    size_t bytes = ditto_dtype_bytes(c->dtype), whole = c->count * n, uneven = 0;
    void *memory;
    for (uint32_t i = 0; i < n; i++)
        uneven += c->counts[i];
    whole = whole > uneven ? whole : uneven;
    whole = whole > 180 * n ? whole : 180 * n; /* for reduce_rows */
    DITTO_TRY(ditto_alloc(self, 2 * (whole + 1) * 8, 64, &memory));
    unsigned char *src = memory, *dst = c->in_place ? src : src + (whole + 1) * 8;
    size_t received = c->count;
    ditto_status status = DITTO_OK;
    fill(src, whole, c->dtype, seed + id * 7919);
    switch (c->kind) {
    case 0:
    case 1:
        status = ditto_all_reduce(self, src, dst, c->count, c->dtype, c->op, NULL);
        break;
    case 2:
        status = ditto_reduce_to_root(self, src, dst, c->count, c->dtype, c->op, c->root, NULL);
        received = id == c->root ? c->count : 0;
        break;
    case 3:
        dst = src;
        status = ditto_broadcast_from_root(self, src, c->count, c->dtype, c->root, NULL);
        break;
    case 4:
        dst = src + (whole + 1) * 8;
        status = ditto_reduce_scatter(self, src, dst, c->count, NULL, c->dtype, c->op, NULL);
        break;
    case 5:
        dst = src + (whole + 1) * 8;
        status = ditto_all_gather(self, src, dst, c->count, NULL, c->dtype, NULL);
        received = c->count * n;
        break;
    case 6:
        dst = src + (whole + 1) * 8;
        if (c->in_place) {
            status = ditto_all_gather(self, src, dst, 0, c->counts, c->dtype, NULL);
            received = uneven;
        } else {
            status = ditto_reduce_scatter(self, src, dst, 0, c->counts, c->dtype, c->op, NULL);
            received = c->counts[id];
        }
        break;
    case 7: {
        ditto_list_item items[3] = { { src, dst, c->count / 2, c->dtype, NULL },
                                     { src + c->count / 2 * bytes, dst + c->count / 2 * bytes, 0, c->dtype,
                                       NULL },
                                     { src + c->count / 2 * bytes, dst + c->count / 2 * bytes,
                                       c->count - c->count / 2, c->dtype, NULL } };
        status = ditto_all_reduce_list(self, items, 3, c->op, NULL);
        break;
    }
    case 8:
        fill(src, c->count, DITTO_F64, seed + id);
        bytes = sizeof(double);
        status = ditto_all_reduce_with(self, src, dst, c->count, sizeof(double), append, NULL, NULL);
        break;
    default:
        dst = src + (whole + 1) * 8;
        bytes = 1;
        status = make_other_call(self, c, src, dst, &received);
    }
    if (status == DITTO_OK)
        keep(&trial->results, id, dst, received * bytes);
    ditto_status freed = ditto_free(self, memory);
    return status != DITTO_OK ? status : freed;
}

static ditto_status make_calls(ditto_replica *self, void *argument)
{
    struct trial *trial = argument;
    uint64_t seed = trial->seed;
    for (int i = 0; i < trial->calls; i++) {
        struct choice c = choose(&seed, ditto_num_replicas(self));
        DITTO_TRY(make_call(self, trial, &c, seed));
        if (i % 3 == 0)
            DITTO_TRY(ditto_barrier(self, NULL));
    }
    return DITTO_OK;
}

static ditto_status calls_on_host(struct test_host *host)
{
    struct trial *trial = host->argument;
    ditto_strategy *strategy;
    DITTO_TRY(make_host_strategy(
        host, trial->replicas[host->host],
        &OPTIONS(strategy, .order_blocks = trial->order_blocks, .caller = trial->caller), &strategy));
    DITTO_TRY(ditto_strategy_run(strategy, make_calls, trial));
    DITTO_TRY(ditto_strategy_run(strategy, make_calls, trial));
    return ditto_strategy_destroy(strategy);
}

static void make_results(struct results *results)
{
    for (int i = 0; i < MOST_REPLICAS; i++) {
        results->bytes[i] = calloc(1, RESULT_BYTES);
        results->used[i] = 0;
    }
}

static void free_results(struct results *results)
{
    for (int i = 0; i < MOST_REPLICAS; i++)
        free(results->bytes[i]);
}

static void compare_with_one_host(uint32_t hosts, const uint32_t *replicas, uint32_t order_blocks,
                                  uint32_t delay_us, ditto_caller caller)
{
    struct report report = { 0 };
    struct trial spread = { .seed = test_seed(5) + hosts,
                            .calls = test_trials(40),
                            .replicas = replicas,
                            .order_blocks = order_blocks,
                            .caller = caller,
                            .report = &report },
                 alone = spread;
    uint32_t n = 0;
    for (uint32_t h = 0; h < hosts; h++)
        n += replicas[h];
    make_results(&spread.results);
    make_results(&alone.results);
    on_hosts(hosts, delay_us, calls_on_host, &spread);
    ditto_strategy *strategy = make_strategy(n, &OPTIONS(strategy, .order_blocks = order_blocks));
    run_all(strategy, make_calls, &alone, &report);
    run_all(strategy, make_calls, &alone, &report);
    assert_ok(ditto_strategy_destroy(strategy));
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(spread.results.used[i], alone.results.used[i]);
        assert_memory_equal(spread.results.bytes[i], alone.results.bytes[i], alone.results.used[i]);
    }
    free_results(&spread.results);
    free_results(&alone.results);
}

static void two_hosts_of_one_replica(void **state)
{
    compare_with_one_host(2, (const uint32_t[]){ 1, 1 }, 0, 0, DITTO_CALLER_DEFAULT);
}

static void three_hosts_whose_parts_are_several(void **state)
{
    compare_with_one_host(3, (const uint32_t[]){ 2, 2, 2 }, 0, 50, DITTO_CALLER_DEFAULT);
}

static void hosts_of_different_sizes(void **state)
{
    compare_with_one_host(4, (const uint32_t[]){ 1, 3, 2, 1 }, 0, 100, DITTO_CALLER_DEFAULT);
}

static void eight_hosts_of_different_sizes(void **state)
{
    compare_with_one_host(8, (const uint32_t[]){ 1, 1, 2, 1, 1, 3, 2, 1 }, 0, 0, DITTO_CALLER_DEFAULT);
}

static void blocks_that_are_hosts(void **state)
{
    compare_with_one_host(3, (const uint32_t[]){ 3, 3, 3 }, 3, 0, DITTO_CALLER_DEFAULT);
}

static void callers_that_wait_drive_the_wire(void **state)
{
    compare_with_one_host(2, (const uint32_t[]){ 2, 1 }, 0, 20, DITTO_CALLER_WAITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_hosts_of_one_replica), cmocka_unit_test(three_hosts_whose_parts_are_several),
        cmocka_unit_test(hosts_of_different_sizes), cmocka_unit_test(eight_hosts_of_different_sizes),
        cmocka_unit_test(blocks_that_are_hosts),    cmocka_unit_test(callers_that_wait_drive_the_wire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
