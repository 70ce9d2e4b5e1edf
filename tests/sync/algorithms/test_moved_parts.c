/* tests/sync/algorithms/test_moved_parts.c - what include/ditto/collective.h promises of ditto_all_to_all,
 * ditto_gather_to_root and ditto_scatter_from_root beyond test_collectives.c: parts of different sizes at any
 * place, through mailboxes and from buffers, replicas in place beside others, and errors. */
#include "support/support.h"

#include <sched.h>

enum { MOST = 64, ROUNDS = 3 };

/* Equal on all replicas. */
struct trial {
    struct report report;
    uint64_t seed;
    size_t most_count;
    bool symmetric; /* as many elements go from i to j as from j to i, so replicas may be in place */
    bool with_offsets;
    uint32_t root;
    ditto_dtype dtype;
    ditto_implementation implementation;
};

/* Returns a number that depends on three others. */
static uint64_t number_of(const struct trial *t, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t state = t->seed ^ (a << 40 | b << 20 | c);
    (void)test_random(&state);
    return test_random(&state);
}

static size_t count_of(const struct trial *t, uint32_t from, uint32_t to)
{
    bool swap = t->symmetric && from > to;
    uint64_t number = number_of(t, swap ? to : from, swap ? from : to, 1);
    return number % 4 == 0 ? 0 : number % (t->most_count + 1);
}

static unsigned char byte_of(uint32_t from, uint32_t to, int round, size_t i)
{
    return (unsigned char)(from * 31 + to * 17 + (uint32_t)round * 13 + i * 7 + 1);
}

/* The parts of a buffer: their sizes, and where they are. */
struct layout {
    size_t counts[MOST], offsets[MOST], end;
};

/* Places the parts one after the other or, with offsets, in another order and with room between them. */
static void place(const struct trial *t, uint32_t id, uint32_t n, struct layout *l)
{
    uint32_t first = t->with_offsets ? (uint32_t)(number_of(t, id, 2, 2) % n) : 0;
    l->end = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = (first + k) % n;
        l->end += t->with_offsets ? number_of(t, id, i, 3) % 4 : 0;
        l->offsets[i] = l->end;
        l->end += l->counts[i];
    }
}

static void fill_part(const struct trial *t, unsigned char *buffer, const struct layout *l, uint32_t from,
                      uint32_t to, uint32_t part, int round)
{
    size_t element = ditto_dtype_bytes(t->dtype);
    for (size_t i = 0; i < l->counts[part] * element; i++)
        buffer[l->offsets[part] * element + i] = byte_of(from, to, round, i);
}

static bool is_filled(const struct trial *t, const unsigned char *buffer, const struct layout *l,
                      uint32_t from, uint32_t to, uint32_t part, int round)
{
    size_t element = ditto_dtype_bytes(t->dtype);
    for (size_t i = 0; i < l->counts[part] * element; i++)
        if (buffer[l->offsets[part] * element + i] != byte_of(from, to, round, i))
            return false;
    return true;
}

/* Returns true if all bytes outside of the parts are still 0x5a. */
static bool rest_is_kept(const struct trial *t, const unsigned char *buffer, const struct layout *l,
                         uint32_t n)
{
    size_t element = ditto_dtype_bytes(t->dtype);
    for (size_t at = 0; at < (l->end + 1) * element; at++) {
        bool in_part = false;
        for (uint32_t i = 0; i < n; i++)
            in_part |= at >= l->offsets[i] * element && at < (l->offsets[i] + l->counts[i]) * element;
        if (!in_part && buffer[at] != 0x5a)
            return false;
    }
    return true;
}

static unsigned char *make_buffer(const struct trial *t, const struct layout *l)
{
    size_t bytes = (l->end + 1) * ditto_dtype_bytes(t->dtype);
    unsigned char *buffer = malloc(bytes);
    memset(buffer, 0x5a, bytes);
    return buffer;
}

static ditto_status exchange_all(ditto_replica *self, void *argument)
{
    struct trial *t = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    bool in_place = t->symmetric && number_of(t, id, 5, 5) % 2 == 0;
    struct layout from, to;
    for (uint32_t i = 0; i < n; i++) {
        from.counts[i] = count_of(t, id, i);
        to.counts[i] = count_of(t, i, id);
    }
    place(t, id, n, &from);
    place(t, in_place ? id : id + n, n, &to);
    unsigned char *src = make_buffer(t, &from), *dst = in_place ? src : make_buffer(t, &to);
    const ditto_all_to_all_parts parts = { from.counts, t->with_offsets ? from.offsets : NULL, to.counts,
                                           t->with_offsets ? to.offsets : NULL };
    ditto_reduce_options o = OPTIONS(reduce, .implementation = t->implementation);
    ditto_status status = DITTO_OK;
    bool right = true;
    for (int round = 0; round < ROUNDS && status == DITTO_OK; round++) {
        for (uint32_t i = 0; i < n; i++)
            fill_part(t, src, &from, id, i, i, round);
        status = ditto_all_to_all(self, src, dst, 0, &parts, t->dtype, &o);
        for (uint32_t i = 0; i < n && status == DITTO_OK; i++)
            right &= is_filled(t, dst, &to, i, id, i, round) &&
                     (in_place || is_filled(t, src, &from, id, i, i, round));
    }
    right &= rest_is_kept(t, dst, &to, n);
    free(src);
    if (!in_place)
        free(dst);
    EXPECT(&t->report, status != DITTO_OK || right);
    return status;
}

/* The root of a gather, and then of a scatter, has its parts at the places of a layout, and its own part in
 * place or not. */
static ditto_status gather_and_scatter(ditto_replica *self, void *argument)
{
    struct trial *t = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    bool is_root = id == t->root, in_place = is_root && t->symmetric;
    struct layout all, own = { .counts = { count_of(t, id, n) } };
    for (uint32_t i = 0; i < n; i++)
        all.counts[i] = count_of(t, i, n);
    place(t, t->root, n, &all);
    own.end = own.counts[0];
    unsigned char *many = make_buffer(t, &all), *one = make_buffer(t, &own);
    unsigned char *mine = in_place ? many + all.offsets[id] * ditto_dtype_bytes(t->dtype) : one;
    const size_t *offsets = t->with_offsets && is_root ? all.offsets : NULL;
    ditto_status status = DITTO_OK;
    bool right = true;
    for (int round = 0; round < ROUNDS && status == DITTO_OK; round++) {
        fill_part(t, mine, &own, id, n, 0, round);
        status = ditto_gather_to_root(self, mine, is_root ? many : NULL, 0, all.counts, offsets, t->dtype,
                                      t->root, NULL);
        for (uint32_t i = 0; is_root && status == DITTO_OK && i < n; i++) {
            right &= is_filled(t, many, &all, i, n, i, round);
            fill_part(t, many, &all, n, i, i, round);
        }
        if (status == DITTO_OK)
            status = ditto_scatter_from_root(self, is_root ? many : NULL, mine, 0, all.counts, offsets,
                                             t->dtype, t->root, NULL);
        right &= status != DITTO_OK || is_filled(t, mine, &own, n, id, 0, round);
    }
    right &= rest_is_kept(t, many, &all, is_root ? n : 0);
    free(many);
    free(one);
    EXPECT(&t->report, status != DITTO_OK || right);
    return status;
}

static void try_trials(ditto_strategy *strategy, uint64_t *seed)
{
    static const size_t counts[] = { 1, 8, 60, 700, 5000 };
    uint32_t n = ditto_strategy_num_replicas(strategy);
    for (int trial = 0; trial < test_trials(n > 8 ? 12 : 40); trial++) {
        struct trial t = { .seed = test_random(seed),
                           .most_count = counts[test_random(seed) % (n > 8 ? 3 : 5)],
                           .symmetric = test_random(seed) % 2 == 0,
                           .with_offsets = test_random(seed) % 2 == 0,
                           .root = (uint32_t)(test_random(seed) % n),
                           .dtype = test_random(seed) % 2 == 0 ? DITTO_U8 : DITTO_F64,
                           .implementation = (ditto_implementation)(trial % 3) };
        run_all(strategy, exchange_all, &t, &t.report);
        run_all(strategy, gather_and_scatter, &t, &t.report);
    }
}

static void every_part_comes_to_its_place(void **state)
{
    uint64_t seed = test_seed(461);
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        try_trials(strategy, &seed);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void replicas_on_one_pu_move_parts_too(void **state)
{
    uint32_t pus[3];
    uint64_t seed = test_seed(462);
    pus[0] = pus[1] = pus[2] = (uint32_t)sched_getcpu();
    ditto_placement_options placing = OPTIONS(placement, .pus = pus, .num_pus = 3,
                                              .flags = DITTO_PLACEMENT_SHARE);
    ditto_strategy *strategy = make_strategy(3, &OPTIONS(strategy, .placement_options = &placing));
    try_trials(strategy, &seed);
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- equal parts, with some replicas in place -- */

struct equal {
    struct report report;
    size_t count;
    uint32_t in_place; /* bit i: replica i is */
    bool started;
};

static ditto_status transpose(ditto_replica *self, void *argument)
{
    struct equal *e = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    int32_t *src = malloc((n * e->count + 1) * sizeof *src), *dst = src;
    if ((e->in_place >> id & 1) == 0)
        dst = malloc((n * e->count + 1) * sizeof *dst);
    ditto_status status = DITTO_OK;
    bool right = true;
    for (int round = 0; round < ROUNDS && status == DITTO_OK; round++) {
        ditto_pending pending;
        for (size_t i = 0; i < n * e->count; i++)
            src[i] = (int32_t)((size_t)round + 1000000 * id + i);
        status = e->started ? ditto_all_to_all_start(self, src, dst, e->count, DITTO_I32, NULL, &pending)
                            : ditto_all_to_all(self, src, dst, e->count, NULL, DITTO_I32, NULL);
        if (e->started && status == DITTO_OK)
            status = ditto_wait(self, &pending, NULL);
        for (size_t i = 0; i < n * e->count && status == DITTO_OK; i++)
            right &= dst[i] ==
                     (int32_t)((size_t)round + 1000000 * (i / e->count) + id * e->count + i % e->count);
    }
    status = ditto_abandon(self, status);
    if (dst != src)
        free(dst);
    free(src);
    EXPECT(&e->report, status != DITTO_OK || right);
    return status;
}

static void some_replicas_may_be_in_place(void **state)
{
    static const size_t counts[] = { 1, 7, 400, 9001, 70001 };
    for (uint32_t n = 1; n <= 4; n++)
        for (int staged = 0; staged < 2; staged++) {
            size_t from = staged != 0 ? 1 : DITTO_NEVER_BYTES;
            ditto_tuning tuning = { .struct_size = sizeof tuning,
                                    .stage_bytes = from,
                                    .stage_one_way_bytes = from };
            ditto_strategy *strategy = make_strategy(n, &OPTIONS(strategy, .tuning = &tuning));
            for (int c = 0; c < 5; c++)
                for (uint32_t in_place = 0; in_place < 1u << n; in_place++)
                    for (int started = 0; started < 2; started++) {
                        struct equal e = { .count = counts[c],
                                           .in_place = in_place,
                                           .started = started != 0 };
                        run_all(strategy, transpose, &e, &e.report);
                    }
            assert_ok(ditto_strategy_destroy(strategy));
        }
}

/* -- parts that do not fit together -- */

enum mistake {
    ALL_TO_ALL_COUNT,
    ALL_TO_ALL_DTYPE,
    ONLY_ONE_HAS_PARTS,
    GATHER_COUNT,
    SCATTER_COUNT,
    MISTAKES
};

struct wrong {
    struct report report;
    enum mistake mistake;
    size_t count;
};

/* Replica 1 makes a mistake. */
static ditto_status make_mistake(ditto_replica *self, void *argument)
{
    const struct wrong *w = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    size_t src_counts[MOST], dst_counts[MOST], most = n * w->count;
    double *src = calloc(most, sizeof *src), *dst = calloc(most, sizeof *dst);
    bool odd = id == 1;
    for (uint32_t i = 0; i < n; i++)
        src_counts[i] = dst_counts[i] = w->count;
    const ditto_all_to_all_parts parts = { .src_counts = src_counts, .dst_counts = dst_counts };
    ditto_status status;
    switch (w->mistake) {
    case ALL_TO_ALL_COUNT:
        src_counts[0] -= odd;
        status = ditto_all_to_all(self, src, dst, 0, &parts, DITTO_F64, NULL);
        break;
    case ALL_TO_ALL_DTYPE:
        status = ditto_all_to_all(self, src, dst, 0, &parts, odd ? DITTO_I64 : DITTO_F64, NULL);
        break;
    case ONLY_ONE_HAS_PARTS:
        status = ditto_all_to_all(self, src, dst, w->count, odd ? &parts : NULL, DITTO_F64, NULL);
        break;
    case GATHER_COUNT:
        src_counts[0] -= odd;
        status = ditto_gather_to_root(self, src, dst, 0, src_counts, NULL, DITTO_F64, 0, NULL);
        break;
    default:
        src_counts[0] -= odd;
        status = ditto_scatter_from_root(self, src, dst, 0, src_counts, NULL, DITTO_F64, 0, NULL);
    }
    memset(src, 0xff, most * sizeof *src); /* no other replica reads it any more */
    free(src);
    free(dst);
    return status;
}

static void parts_that_do_not_fit_stop_the_run_and_are_named(void **state)
{
    static const char *const words[][3] = {
        [ALL_TO_ALL_COUNT] = { "replica 0 expects ",
                               " x f64 of replica 1 in ditto_all_to_all, but replica 1 gives ",
                               "src_counts" },
        [ALL_TO_ALL_DTYPE] = { "replica 0 calls ditto_all_to_all", "parts of f64", "parts of i64" },
        [ONLY_ONE_HAS_PARTS] = { "replica 0 calls ditto_all_to_all", " x f64)", "parts of f64)" },
        [GATHER_COUNT] = { "replica 0 calls ditto_gather_to_root", "but replica 1", "(counts[0]: " },
        [SCATTER_COUNT] = { "replica 0 calls ditto_scatter_from_root", "but replica 1", "(counts[0]: " },
    };
    for (uint32_t n = 2; n <= 3; n++)
        for (size_t count = 10; count <= 1000; count *= 100) {
            ditto_strategy *strategy = make_strategy(n, NULL);
            for (int mistake = 0; mistake < MISTAKES; mistake++) {
                struct wrong w = { .mistake = (enum mistake)mistake, .count = count };
                struct equal next = { .count = 3 };
                assert_status(ditto_strategy_run(strategy, make_mistake, &w), DITTO_ERR_DIVERGED);
                for (int i = 0; i < 3; i++)
                    assert_message(words[mistake][i]);
                run_all(strategy, transpose, &next, &next.report);
            }
            assert_ok(ditto_strategy_destroy(strategy));
        }
}

struct sharing {
    double *buffer;
    bool scatters;
};

static ditto_status share_a_destination(ditto_replica *self, void *argument)
{
    const struct sharing *s = argument;
    double *src = calloc(20000, sizeof *src);
    ditto_status status = s->scatters ? ditto_scatter_from_root(self, src, s->buffer, 10000, NULL, NULL,
                                                                DITTO_F64, 0, NULL)
                                      : ditto_all_to_all(self, src, s->buffer, 10000, NULL, DITTO_F64, NULL);
    free(src);
    return status;
}

static void a_destination_that_two_replicas_share_is_refused(void **state)
{
    ditto_tuning tuning = { .struct_size = sizeof tuning, .stage_one_way_bytes = DITTO_NEVER_BYTES };
    ditto_strategy *strategy = make_strategy(2, &OPTIONS(strategy, .tuning = &tuning));
    for (int scatters = 0; scatters < 2; scatters++) {
        struct sharing s = { calloc(20000, sizeof *s.buffer), scatters != 0 };
        assert_status(ditto_strategy_run(strategy, share_a_destination, &s), DITTO_ERR_INVALID);
        assert_message("give the same destination");
        free(s.buffer);
    }
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- wrong arguments -- */

#define REFUSED(call, status, words)                                            \
    do {                                                                        \
        EXPECT(&w->report, (call) == (status));                                 \
        EXPECT(&w->report, strstr(ditto_last_error()->message, words) != NULL); \
    } while (0)

static ditto_status pass_wrong_arguments(ditto_replica *self, void *argument)
{
    struct wrong *w = argument;
    double a[16] = { 0 }, b[16];
    uint32_t n = ditto_num_replicas(self), id = ditto_replica_id(self);
    size_t ones[4] = { 1, 1, 1, 1 }, twos[4] = { 2, 2, 2, 2 }, same[4] = { 3, 3, 3, 3 },
           far[4] = { SIZE_MAX, 0, 0, 0 }, many[4] = { SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX };
    const ditto_all_to_all_parts no_counts = { NULL, NULL, ones, NULL }, onto = { ones, NULL, ones, same },
                                 too_far = { ones, far, ones, NULL }, too_many = { many, NULL, ones, NULL },
                                 uneven = { ones, NULL, twos, NULL };
    REFUSED(ditto_all_to_all(self, a, b, 0, &no_counts, DITTO_F64, NULL), DITTO_ERR_INVALID, "src_counts");
    REFUSED(ditto_all_to_all(self, a, b, 0, &onto, DITTO_F64, NULL), DITTO_ERR_INVALID, "overlaps");
    REFUSED(ditto_all_to_all(self, a, a, 0, &uneven, DITTO_F64, NULL), DITTO_ERR_INVALID, "overlaps");
    REFUSED(ditto_all_to_all(self, a, b, 0, &too_far, DITTO_F64, NULL), DITTO_ERR_RANGE, "part 0 of src");
    REFUSED(ditto_all_to_all(self, a, b, 0, &too_many, DITTO_F64, NULL), DITTO_ERR_RANGE, "part 0 of src");
    REFUSED(ditto_all_to_all(self, NULL, b, 0, &uneven, DITTO_F64, NULL), DITTO_ERR_INVALID, "src is NULL");
    REFUSED(ditto_all_to_all(self, a, (char *)b + 1, 0, &uneven, DITTO_F64, NULL), DITTO_ERR_INVALID, "dst");
    REFUSED(ditto_all_to_all(self, a, b, 0, &uneven, (ditto_dtype)99, NULL), DITTO_ERR_INVALID, "dtype");
    REFUSED(ditto_all_to_all(self, a, a + 1, 2, NULL, DITTO_F64, NULL), DITTO_ERR_INVALID, "overlap");
    REFUSED(ditto_all_to_all(self, a, NULL, 1, NULL, DITTO_F64, NULL), DITTO_ERR_INVALID, "dst is NULL");
    REFUSED(ditto_all_to_all(self, a, b, SIZE_MAX / n, NULL, DITTO_F64, NULL), DITTO_ERR_RANGE, "");
    REFUSED(ditto_gather_to_root(self, a, b, 1, NULL, same, DITTO_F64, 0, NULL), DITTO_ERR_INVALID,
            "counts is NULL");
    REFUSED(ditto_gather_to_root(self, a, b, 1, NULL, NULL, DITTO_F64, n, NULL), DITTO_ERR_RANGE, "root");
    REFUSED(ditto_gather_to_root(self, a, b, 0, ones, NULL, DITTO_F64, UINT32_MAX, NULL), DITTO_ERR_RANGE,
            "root");
    REFUSED(ditto_scatter_from_root(self, a, b, 1, NULL, NULL, DITTO_F64, UINT32_MAX, NULL), DITTO_ERR_RANGE,
            "root");
    REFUSED(ditto_scatter_from_root(self, a, b, 0, many, NULL, DITTO_F64, 0, NULL), DITTO_ERR_RANGE, "");
    if (id == 0) {
        /* Only the root's buffer and offsets are looked at. */
        REFUSED(ditto_gather_to_root(self, a, b, 0, ones, same, DITTO_F64, 0, NULL), DITTO_ERR_INVALID,
                "overlaps");
        REFUSED(ditto_gather_to_root(self, b + 1, b, 0, twos, NULL, DITTO_F64, 0, NULL), DITTO_ERR_INVALID,
                "overlap");
        REFUSED(ditto_gather_to_root(self, b + 1, b, 2, NULL, NULL, DITTO_F64, 0, NULL), DITTO_ERR_INVALID,
                "overlap");
        REFUSED(ditto_gather_to_root(self, a, NULL, 1, NULL, NULL, DITTO_F64, 0, NULL), DITTO_ERR_INVALID,
                "dst is NULL");
        REFUSED(ditto_scatter_from_root(self, b, b + 1, 2, NULL, NULL, DITTO_F64, 0, NULL), DITTO_ERR_INVALID,
                "overlap");
        REFUSED(ditto_scatter_from_root(self, NULL, b, 1, NULL, NULL, DITTO_F64, 0, NULL), DITTO_ERR_INVALID,
                "src is NULL");
    }
    /* Parts of a source may overlap. */
    DITTO_TRY(ditto_scatter_from_root(self, a, b, 0, twos, id == 0 ? same : NULL, DITTO_F64, 0, NULL));
    return ditto_all_to_all(self, NULL, NULL, 0, NULL, DITTO_F64, NULL);
}

static void wrong_arguments_are_errors_and_the_run_continues(void **state)
{
    for (uint32_t n = 2; n <= 4; n++) {
        struct wrong w = { .mistake = MISTAKES };
        run_once(n, NULL, pass_wrong_arguments, &w, &w.report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_comes_to_its_place),
        cmocka_unit_test(replicas_on_one_pu_move_parts_too),
        cmocka_unit_test(some_replicas_may_be_in_place),
        cmocka_unit_test(parts_that_do_not_fit_stop_the_run_and_are_named),
        cmocka_unit_test(a_destination_that_two_replicas_share_is_refused),
        cmocka_unit_test(wrong_arguments_are_errors_and_the_run_continues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
