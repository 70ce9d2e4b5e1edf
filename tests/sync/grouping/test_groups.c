/* tests/sync/grouping/test_groups.c - what include/ditto/group.h promises: who is in which group, that
 * collectives of a group have the bits of a strategy of that size, and that calls of groups which can never
 * come together are errors that name every wait. */
#include "support/support.h"

#include <pthread.h>
#include <stdatomic.h>

/* -- who is in which group -- */

struct places {
    struct report report;
    ditto_grouping *grouping;
    uint32_t index[64], rank[64], size[64]; /* by id, as the replicas see them */
};

static ditto_status note_place(ditto_replica *self, void *argument)
{
    struct places *p = argument;
    uint32_t id = ditto_replica_id(self);
    ditto_group group;
    EXPECT(&p->report, ditto_group_of(self, p->grouping, &group) == DITTO_OK);
    EXPECT(&p->report, group.size == 0 || group.replicas[group.rank] == id);
    for (uint32_t rank = 0; rank < group.size; rank++)
        EXPECT(&p->report, group.replicas[rank] < ditto_num_replicas(self));
    p->index[id] = group.index;
    p->rank[id] = group.rank;
    p->size[id] = group.size;
    return DITTO_OK;
}

static void rows_and_columns_of_a_mesh(void **state)
{
    ditto_strategy *strategy = make_strategy(12, NULL);
    static const ditto_mesh_axis axes[] = { { "z", 2 }, { "y", 3 }, { "x", 2 } };
    ditto_grouping *axis[3];
    assert_int_equal(ditto_strategy_mesh(strategy, axes, 3, axis), DITTO_OK);
    static const uint32_t stride[] = { 6, 2, 1 };
    for (int a = 0; a < 3; a++) {
        struct places p = { .grouping = axis[a] };
        run_all(strategy, note_place, &p, &p.report);
        for (uint32_t i = 0; i < 12; i++) {
            assert_int_equal(p.size[i], axes[a].extent);
            assert_int_equal(p.rank[i], i / stride[a] % axes[a].extent);
            for (uint32_t k = 0; k < 12; k++) {
                bool together = i - p.rank[i] * stride[a] == k - p.rank[k] * stride[a];
                assert_int_equal(p.index[i] == p.index[k], together);
            }
        }
    }
    char text[8192];
    assert_int_equal(ditto_strategy_describe(strategy, text, sizeof text, NULL), DITTO_OK);
    assert_non_null(strstr(text, "(\"y\"): 4 groups of at most 3 replicas, "));
    assert_int_equal(ditto_grouping_destroy(axis[1]), DITTO_OK);
    assert_int_equal(ditto_strategy_describe(strategy, text, sizeof text, NULL), DITTO_OK);
    assert_null(strstr(text, "\"y\""));
    assert_int_equal(ditto_grouping_destroy(axis[0]), DITTO_OK);
    assert_int_equal(ditto_strategy_destroy(strategy), DITTO_OK);
    assert_int_equal(ditto_grouping_destroy(axis[2]), DITTO_OK); /* after its strategy */
}

static void colors_and_keys(void **state)
{
    ditto_strategy *strategy = make_strategy(6, NULL);
    static const uint32_t colors[] = { 7, 3, DITTO_NO_COLOR, 7, 3, 7 }, keys[] = { 1, 5, 0, 1, 2, 0 };
    struct places p = { .grouping = NULL };
    assert_int_equal(ditto_strategy_split(strategy, colors, keys, 6, &p.grouping), DITTO_OK);
    run_all(strategy, note_place, &p, &p.report);
    static const uint32_t index[] = { 1, 0, DITTO_NO_COLOR, 1, 0, 1 }, size[] = { 3, 2, 0, 3, 2, 3 },
                          rank[] = { 1, 1, DITTO_NO_REPLICA, 2, 0, 0 };
    for (int i = 0; i < 6; i++) {
        assert_int_equal(p.index[i], index[i]);
        assert_int_equal(p.size[i], size[i]);
        assert_int_equal(p.rank[i], rank[i]);
    }
    assert_int_equal(ditto_grouping_destroy(p.grouping), DITTO_OK);
    assert_int_equal(ditto_grouping_destroy(NULL), DITTO_OK);
    assert_int_equal(ditto_strategy_destroy(strategy), DITTO_OK);
}

/* -- the bits of a strategy of that size -- */

enum { MOST = 9, LARGE = 9000 };

/* What a replica computes with, as a member of a group or of a strategy. */
struct seat {
    ditto_replica *self;
    const ditto_reduce_options *options;
    uint32_t rank, size;
    uint64_t random;
    size_t count;
    float *src, *dst; /* [size * count] */
};
typedef ditto_status operation(struct seat *s);

static ditto_status all_reduce(struct seat *s)
{
    return ditto_all_reduce(s->self, s->src, s->dst, s->count, DITTO_F32, DITTO_SUM, s->options);
}
static ditto_status all_reduce_in_place(struct seat *s)
{
    memcpy(s->dst, s->src, s->count * sizeof(float));
    return ditto_all_reduce(s->self, s->dst, s->dst, s->count, DITTO_F32, DITTO_MEAN, s->options);
}
static ditto_status bf16(struct seat *s)
{
    return ditto_all_reduce(s->self, s->src, s->dst, 2 * s->count, DITTO_BF16, DITTO_MAX, s->options);
}
static ditto_status list(struct seat *s)
{
    size_t half = s->count / 2;
    const ditto_list_item items[] = { { s->src, s->dst, half, DITTO_F32, NULL },
                                      { s->src + half, s->dst + half, s->count - half, DITTO_F32, NULL } };
    ditto_reduce_options options = *s->options;
    options.bytes_per_pack = 64;
    return ditto_all_reduce_list(s->self, items, 2, DITTO_SUM, &options);
}
static ditto_status weigh(void *out, const void *left, const void *right, size_t count, void *user)
{
    for (size_t i = 0; i < count; i++)
        ((float *)out)[i] = 0.7f * ((const float *)left)[i] - ((const float *)right)[i];
    return DITTO_OK;
}
static ditto_status with(struct seat *s)
{
    return ditto_all_reduce_with(s->self, s->src, s->dst, s->count, sizeof(float), weigh, NULL, s->options);
}
static ditto_status reduce(struct seat *s)
{
    return ditto_reduce_to_root(s->self, s->src, s->dst, s->count, DITTO_F32, DITTO_SUM, s->size - 1,
                                s->options);
}
static ditto_status broadcast(struct seat *s)
{
    memcpy(s->dst, s->src, s->count * sizeof(float));
    return ditto_broadcast_from_root(s->self, s->dst, s->count, DITTO_F32, s->size / 2, s->options);
}
static ditto_status reduce_scatter(struct seat *s)
{
    return ditto_reduce_scatter(s->self, s->src, s->dst, s->count, NULL, DITTO_F32, DITTO_SUM, s->options);
}
static void set_counts(const struct seat *s, size_t *counts)
{
    for (uint32_t i = 0; i < s->size; i++)
        counts[i] = s->count / (i + 1);
}
static ditto_status reduce_scatter_uneven(struct seat *s)
{
    size_t counts[MOST];
    set_counts(s, counts);
    return ditto_reduce_scatter(s->self, s->src, s->dst, 0, counts, DITTO_F32, DITTO_SUM, s->options);
}
static ditto_status all_gather(struct seat *s)
{
    return ditto_all_gather(s->self, s->src, s->dst, s->count, NULL, DITTO_F32, s->options);
}
static ditto_status all_gather_uneven(struct seat *s)
{
    size_t counts[MOST];
    set_counts(s, counts);
    return ditto_all_gather(s->self, s->src, s->dst, 0, counts, DITTO_F32, s->options);
}
static ditto_status slices(struct seat *s)
{
    int64_t rows[4] = { 3 + s->rank, 1, 2, 3 }, all[4 * MOST];
    size_t row = s->count / 4;
    ditto_slices in = { rows, s->src, 4, row, DITTO_F32 },
                 out = { all, s->dst, 4 * (size_t)s->size, row, DITTO_F32 };
    ditto_reduce_options options = *s->options;
    options.flags = DITTO_SLICES_MERGE;
    if (s->size * s->count < 4 * s->size * row || row == 0)
        return DITTO_OK;
    return ditto_all_reduce_slices(s->self, &in, &out, DITTO_MEAN, &options);
}
/* To the next rank, from the one before. */
static ditto_status exchange(struct seat *s)
{
    uint32_t before = (s->rank + s->size - 1) % s->size;
    ditto_exchange_part part[] = { { (s->rank + 1) % s->size, s->rank, s->src, NULL, s->count, 0, DITTO_F32 },
                                   { before, before, NULL, s->dst, 0, s->count, DITTO_F32 } };
    if (s->size == 1) /* gives to itself */
        part[0] = (ditto_exchange_part){ 0, 0, s->src, s->dst, s->count, s->count, DITTO_F32 };
    return ditto_exchange(s->self, part, s->size == 1 ? 1 : 2, s->options);
}
static ditto_status block_sum(struct seat *s)
{
    return ditto_block_sum(s->self, s->src, s->dst, s->count, DITTO_F32, s->options);
}
static ditto_status halve(void *buffer, size_t count, ditto_dtype dtype, void *user)
{
    for (size_t i = 0; i < count; i++)
        ((float *)buffer)[i] /= 2;
    return DITTO_OK;
}
static ditto_status through(struct seat *s)
{
    return ditto_all_reduce_through(s->self, s->src, s->dst, s->count, DITTO_F32, DITTO_SUM, halve, NULL,
                                    s->options);
}
static ditto_status all_to_all(struct seat *s)
{
    return ditto_all_to_all(s->self, s->src, s->dst, s->count, NULL, DITTO_F32, s->options);
}
static ditto_status all_to_all_uneven(struct seat *s)
{
    size_t parts[MOST]; /* what two ranks give to each other */
    for (uint32_t i = 0; i < s->size; i++)
        parts[i] = s->count / (1 + s->rank + i);
    return ditto_all_to_all(s->self, s->src, s->dst, 0,
                            &(ditto_all_to_all_parts){ .src_counts = parts, .dst_counts = parts }, DITTO_F32,
                            s->options);
}
static ditto_status gather(struct seat *s)
{
    return ditto_gather_to_root(s->self, s->src, s->dst, s->count, NULL, NULL, DITTO_F32, s->size - 1,
                                s->options);
}
static ditto_status gather_uneven(struct seat *s)
{
    size_t counts[MOST];
    set_counts(s, counts);
    return ditto_gather_to_root(s->self, s->src, s->dst, 0, counts, NULL, DITTO_F32, s->size / 2, s->options);
}
static ditto_status scatter(struct seat *s)
{
    return ditto_scatter_from_root(s->self, s->src, s->dst, s->count, NULL, NULL, DITTO_F32, s->size / 2,
                                   s->options);
}
static ditto_status scan(struct seat *s)
{
    return ditto_scan(s->self, s->src, s->dst, s->count, DITTO_F32, DITTO_SUM, s->options);
}
static ditto_status scan_exclusive(struct seat *s)
{
    return ditto_scan_exclusive(s->self, s->src, s->dst, s->count, DITTO_F32, DITTO_PROD, s->options);
}
static ditto_status scan_with(struct seat *s)
{
    return ditto_scan_with(s->self, s->src, s->dst, s->count, sizeof(float), weigh, NULL, 0, s->options);
}
static ditto_status started(struct seat *s)
{
    ditto_pending one, two, three, four;
    size_t half = s->count / 2;
    DITTO_TRY(ditto_all_reduce_start(s->self, s->src, s->dst, half, DITTO_F32, DITTO_SUM, s->options, &one));
    DITTO_TRY(ditto_reduce_scatter_start(s->self, s->src, s->dst + half, half / s->size, DITTO_F32, DITTO_SUM,
                                         s->options, &two));
    DITTO_TRY(ditto_all_gather_start(s->self, s->src, s->dst + s->count, 1 + half / s->size, DITTO_F32,
                                     s->options, &three));
    DITTO_TRY(ditto_all_to_all_start(s->self, s->src, s->dst + s->count + s->size + half, half / s->size,
                                     DITTO_F32, s->options, &four));
    DITTO_TRY(ditto_wait(s->self, &two, NULL));
    DITTO_TRY(ditto_wait(s->self, &four, NULL));
    DITTO_TRY(ditto_wait(s->self, &three, s->options));
    return ditto_wait(s->self, &one, NULL);
}

static operation *const operations[] = { all_reduce,
                                         all_reduce_in_place,
                                         bf16,
                                         list,
                                         with,
                                         reduce,
                                         broadcast,
                                         reduce_scatter,
                                         all_gather,
                                         reduce_scatter_uneven,
                                         slices,
                                         exchange,
                                         all_gather_uneven,
                                         block_sum,
                                         through,
                                         started,
                                         all_to_all,
                                         all_to_all_uneven,
                                         gather,
                                         gather_uneven,
                                         scatter,
                                         scan,
                                         scan_exclusive,
                                         scan_with };
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static const size_t counts_tried[] = { 2, 40, 700, LARGE };
enum { COUNTS = sizeof counts_tried / sizeof counts_tried[0], CASES = OPERATIONS * COUNTS };

/* The results of a strategy or of groups: a hash for each size of a group, case and rank. */
struct hashes {
    struct report report;
    ditto_grouping *grouping; /* NULL: the whole strategy */
    ditto_implementation implementation;
    uint64_t of[MOST + 1][CASES][MOST];
};

static uint64_t hash_of(const void *data, size_t bytes)
{
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return hash;
}

static ditto_status try_case(struct hashes *h, struct seat *s, int number)
{
    s->count = counts_tried[number % COUNTS];
    size_t length = (s->size + 2) * s->count + s->size;
    s->src = malloc(length * sizeof(float));
    s->dst = calloc(length, sizeof(float));
    s->random = 1000 * s->rank + (uint64_t)number;
    for (size_t i = 0; i < length; i++)
        s->src[i] = (float)(int64_t)(test_random(&s->random) % 200001) / 1000 - 100;
    ditto_status status = operations[number / (int)COUNTS](s);
    h->of[s->size][number][s->rank] = hash_of(s->dst, length * sizeof(float));
    free(s->src);
    free(s->dst);
    return status;
}

static ditto_status compute_all(ditto_replica *self, void *argument)
{
    struct hashes *h = argument;
    ditto_reduce_options options = OPTIONS(reduce, .implementation = h->implementation);
    ditto_group group;
    struct seat s = { self, &options, ditto_replica_id(self), ditto_num_replicas(self), 0, 0, NULL, NULL };
    if (h->grouping != NULL) {
        DITTO_TRY(ditto_group_of(self, h->grouping, &group));
        options.group = &group;
        s.rank = group.rank;
        s.size = group.size;
    }
    for (int number = 0; number < (int)CASES && s.size != 0; number++)
        EXPECT(&h->report, try_case(h, &s, number) == DITTO_OK);
    return DITTO_OK;
}

static void compare(const struct hashes *groups, uint32_t size, ditto_implementation implementation)
{
    struct hashes *whole = calloc(1, sizeof *whole);
    whole->implementation = implementation;
    run_once(size, NULL, compute_all, whole, &whole->report);
    for (int number = 0; number < (int)CASES; number++)
        for (uint32_t rank = 0; rank < size; rank++)
            if (groups->of[size][number][rank] != whole->of[size][number][rank])
                fail_msg("group of %u, operation %d with %zu elements, rank %u: other bits", size,
                         number / (int)COUNTS, counts_tried[number % (int)COUNTS], rank);
    free(whole);
}

/* Groups of 1, 2, 3 and 5 replicas that are spread over a strategy of 12, and one replica without a group. */
static void groups_have_the_bits_of_strategies(void **state)
{
    static const uint32_t colors[] = { 5, 2, 3, 5, 1, 5, DITTO_NO_COLOR, 3, 5, 2, 5, 3 },
                          keys[] = { 4, 0, 9, 2, 0, 3, 0, 8, 1, 1, 0, 7 };
    for (int i = 0; i <= DITTO_IMPLEMENTATION_HIERARCHICAL; i++) {
        struct hashes *h = calloc(1, sizeof *h);
        ditto_strategy *strategy = make_strategy(12, NULL);
        h->implementation = (ditto_implementation)i;
        assert_int_equal(ditto_strategy_split(strategy, colors, keys, 12, &h->grouping), DITTO_OK);
        run_all(strategy, compute_all, h, &h->report);
        run_all(strategy, compute_all, h, &h->report); /* a second run of the same groups */
        for (uint32_t size = 1; size <= 5; size++)
            if (size != 4)
                compare(h, size, h->implementation);
        assert_int_equal(ditto_grouping_destroy(h->grouping), DITTO_OK);
        assert_int_equal(ditto_strategy_destroy(strategy), DITTO_OK);
        free(h);
    }
}

/* -- groups do not wait for each other -- */

struct grid {
    struct report report;
    ditto_grouping *axis[2]; /* rows and columns of a grid of `width` columns */
    uint32_t width;
    int fault;
    int failed; /* what the run must return, DIVERGED or another status */
};

static ditto_grouping *const *make_grid(ditto_strategy *strategy, struct grid *g, uint32_t height,
                                        uint32_t width)
{
    ditto_mesh_axis axes[] = { { "columns", height }, { "rows", width } };
    g->width = width;
    /* The replicas of a row differ in their place along the last axis. */
    assert_int_equal(ditto_strategy_mesh(strategy, axes, 2, g->axis), DITTO_OK);
    return g->axis;
}

static void destroy_grid(ditto_strategy *strategy, const struct grid *g)
{
    for (int a = 0; a < 2; a++)
        assert_int_equal(ditto_grouping_destroy(g->axis[a]), DITTO_OK);
    assert_int_equal(ditto_strategy_destroy(strategy), DITTO_OK);
}

static ditto_status sum_in(ditto_replica *self, const ditto_group *group, int64_t value, int64_t *sum)
{
    return ditto_all_reduce(self, &value, sum, 1, DITTO_I64, DITTO_SUM, &OPTIONS(reduce, .group = group));
}

/* One row works alone, while the replicas of the others return. */
static ditto_status work_in_first_row(ditto_replica *self, void *argument)
{
    struct grid *g = argument;
    ditto_group row;
    EXPECT(&g->report, ditto_group_of(self, g->axis[1], &row) == DITTO_OK);
    for (int i = 0; i < 200 && row.index == 0; i++) {
        int64_t sum;
        EXPECT(&g->report, sum_in(self, &row, (int64_t)row.rank + i, &sum) == DITTO_OK);
        EXPECT(&g->report, sum == (int64_t)row.size * (row.size - 1) / 2 + (int64_t)row.size * i);
    }
    return DITTO_OK;
}

/* Rows, columns, and the team in turn. */
static ditto_status work_in_grid(ditto_replica *self, void *argument)
{
    struct grid *g = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    ditto_group row, column;
    EXPECT(&g->report, ditto_group_of(self, g->axis[1], &row) == DITTO_OK);
    EXPECT(&g->report, ditto_group_of(self, g->axis[0], &column) == DITTO_OK);
    for (int i = 0; i < 300; i++) {
        int64_t of_row, of_column, of_all, sum = 0;
        ditto_pending pending;
        EXPECT(&g->report, ditto_all_reduce_start(self, &(int64_t){ id }, &sum, 1, DITTO_I64, DITTO_SUM,
                                                  i % 3 == 0   ? NULL
                                                  : i % 3 == 1 ? &OPTIONS(reduce, .group = &row)
                                                               : &OPTIONS(reduce, .group = &column),
                                                  &pending) == DITTO_OK);
        EXPECT(&g->report, sum_in(self, &row, id, &of_row) == DITTO_OK);
        EXPECT(&g->report, sum_in(self, &column, of_row, &of_column) == DITTO_OK);
        EXPECT(&g->report, of_column == (int64_t)n * (n - 1) / 2);
        EXPECT(&g->report, sum_in(self, NULL, of_column, &of_all) == DITTO_OK);
        EXPECT(&g->report, of_all == n * of_column);
        EXPECT(&g->report, ditto_wait(self, &pending, NULL) == DITTO_OK);
        EXPECT(&g->report, i % 3 != 0 || sum == of_column);
        EXPECT(&g->report, i % 3 != 1 || sum == of_row);
    }
    return DITTO_OK;
}

static void groups_work_at_the_same_time(void **state)
{
    static const uint32_t sides[][2] = { { 1, 1 }, { 2, 1 }, { 1, 3 }, { 2, 2 }, { 2, 4 }, { 8, 8 } };
    for (size_t k = 0; k < sizeof sides / sizeof sides[0]; k++) {
        struct grid g = { .fault = 0 };
        ditto_strategy *strategy = make_strategy(sides[k][0] * sides[k][1], NULL);
        make_grid(strategy, &g, sides[k][0], sides[k][1]);
        run_all(strategy, work_in_first_row, &g, &g.report);
        run_all(strategy, work_in_grid, &g, &g.report);
        destroy_grid(strategy, &g);
    }
}

/* -- calls that can never come together -- */

enum {
    CIRCLE_OF_FOUR,
    ROW_AND_TEAM,
    STARTED_AND_TEAM,
    RETURNED,
    OTHER_CALL,
    OTHER_ROOT,
    COUNTS_DIFFER,
    FAULTS
};

static const char *const words[FAULTS] = {
    [CIRCLE_OF_FOUR] = "\"rows\"",
    [ROW_AND_TEAM] = "in group 0 of \"rows\"",
    [STARTED_AND_TEAM] = "for the start of ditto_all_reduce_start #1 in group 0 of \"rows\"",
    [RETURNED] = "returned from its function",
    [OTHER_CALL] = "in group 0 of \"rows\"",
    [OTHER_ROOT] = "root 1",
    [COUNTS_DIFFER] = "2 x i64",
};

static ditto_status misbehave(ditto_replica *self, void *argument)
{
    struct grid *g = argument;
    uint32_t id = ditto_replica_id(self), x = id % g->width, y = id / g->width;
    int64_t buffer[4] = { 0 }, sum;
    ditto_group row, column;
    ditto_pending pending;
    EXPECT(&g->report, ditto_group_of(self, g->axis[1], &row) == DITTO_OK);
    EXPECT(&g->report, ditto_group_of(self, g->axis[0], &column) == DITTO_OK);
    ditto_reduce_options of_row = OPTIONS(reduce, .group = &row, .timeout_ms = 60000),
                         of_column = OPTIONS(reduce, .group = &column, .timeout_ms = 60000);
    DITTO_TRY(sum_in(self, &row, 1, &sum));
    switch (g->fault) {
    case CIRCLE_OF_FOUR: /* 0 waits for 1 in its row, 1 for 3 in its column, 3 for 2, and 2 for 0 */
        DITTO_TRY(ditto_barrier(self, (x + y) % 2 == 0 ? &of_row : &of_column));
        return ditto_barrier(self, (x + y) % 2 == 0 ? &of_column : &of_row);
    case ROW_AND_TEAM:
        return ditto_barrier(self, id == 0 ? &of_row : NULL);
    case STARTED_AND_TEAM:
        if (id != 0)
            return ditto_barrier(self, NULL);
        DITTO_TRY(ditto_all_reduce_start(self, buffer, buffer, 4, DITTO_I64, DITTO_SUM, &of_row, &pending));
        return ditto_abandon(self, ditto_wait(self, &pending, NULL));
    case RETURNED:
        return id == 1 ? DITTO_OK : ditto_barrier(self, &of_row);
    case OTHER_CALL:
        return id == 1 ? ditto_barrier(self, &of_row) : sum_in(self, &row, 1, &sum);
    case OTHER_ROOT:
        return ditto_broadcast_from_root(self, buffer, 4, DITTO_I64, id == 1, &of_row);
    default:
        return ditto_all_reduce(self, buffer, buffer, id == 1 ? 2 : 4, DITTO_I64, DITTO_SUM, &of_row);
    }
}

static void try_faults(uint32_t height, uint32_t width, const ditto_strategy_options *options)
{
    struct grid g = { .fault = 0 };
    ditto_strategy *strategy = make_strategy(height * width, options);
    make_grid(strategy, &g, height, width);
    /* A grid of one row has no circle of four. */
    for (g.fault = height == 1 ? ROW_AND_TEAM : CIRCLE_OF_FOUR; g.fault < FAULTS; g.fault++) {
        ditto_status status = ditto_strategy_run(strategy, misbehave, &g);
        const char *message = ditto_last_error()->message;
        if (status != DITTO_ERR_DIVERGED || strstr(message, words[g.fault]) == NULL)
            fail_msg("fault %d: %s: %s", g.fault, ditto_status_name(status), message);
        if (g.fault == CIRCLE_OF_FOUR && height == 2 && width == 2)
            for (int i = 0; i < 4; i++) { /* every link */
                char link[40];
                snprintf(link, sizeof link, "waits for replica %d in", i);
                assert_non_null(strstr(message, link));
            }
        print_message("  %s\n", message);
        run_all(strategy, work_in_grid, &g, &g.report);
    }
    destroy_grid(strategy, &g);
}

static void circles_and_other_faults_are_named(void **state)
{
    try_faults(2, 2, NULL);
    try_faults(2, 2, &OPTIONS(strategy, .wait = DITTO_WAIT_PASSIVE));
    try_faults(4, 2, &OPTIONS(strategy, .stack_bytes = 128 << 10)); /* the smallest stack */
    try_faults(1, 2, NULL); /* on PUs of their own, where there are two */
}

/* -- waits that last long, for several operations -- */

/* What the replicas of slow_starters do. */
enum { MISSED_CIRCLE, GONE_FURTHER };

struct slow {
    struct report report;
    ditto_grouping *grouping[3];
    int which;
};

static float operands[4][2][DITTO_MAX_PENDING + 2];

static ditto_status start_one(ditto_replica *self, int number, const ditto_reduce_options *options,
                              ditto_pending *pending)
{
    uint32_t id = ditto_replica_id(self);
    return ditto_all_reduce_start(self, &operands[id][0][number], &operands[id][1][number], 1, DITTO_F32,
                                  DITTO_SUM, options, &pending[number]);
}

static ditto_status wait_from(ditto_replica *self, int first, int last, ditto_pending *pending)
{
    for (int k = first; k <= last; k++)
        DITTO_TRY(ditto_wait(self, &pending[k], NULL));
    return DITTO_OK;
}

/* Replica 0 waits for two operations, of which replica 1 starts one and then waits for replica 0. */
static ditto_status miss_circle(ditto_replica *self, const ditto_reduce_options *in, ditto_pending *pending)
{
    DITTO_TRY(start_one(self, 1, in, pending));
    if (ditto_replica_id(self) != 0) {
        DITTO_TRY(ditto_barrier(self, NULL));
        return ditto_wait(self, &pending[1], NULL);
    }
    DITTO_TRY(start_one(self, 2, in, pending));
    DITTO_TRY(ditto_wait(self, &pending[2], NULL));
    return ditto_wait(self, &pending[1], NULL);
}

/* A correct program. Replica 1 waits for the last of many operations. Replica 2 starts one more, in the place
 * of the first of them, and waits for replica 0, which waits for replica 1, which waits for replica 3. */
static ditto_status go_further(ditto_replica *self, const ditto_reduce_options *in,
                               const ditto_reduce_options *with_1, const ditto_reduce_options *with_2,
                               ditto_pending *pending)
{
    enum { LAST = DITTO_MAX_PENDING };
    switch (ditto_replica_id(self)) {
    case 0:
        DITTO_TRY(ditto_barrier(self, with_1));
        return ditto_barrier(self, with_2);
    case 1:
        for (int k = 1; k <= LAST; k++)
            DITTO_TRY(start_one(self, k, in, pending));
        DITTO_TRY(ditto_wait(self, &pending[LAST], NULL));
        DITTO_TRY(ditto_barrier(self, with_1));
        DITTO_TRY(wait_from(self, 1, LAST - 1, pending));
        DITTO_TRY(start_one(self, LAST + 1, in, pending));
        return ditto_wait(self, &pending[LAST + 1], NULL);
    case 2:
        for (int k = 1; k <= LAST; k++)
            DITTO_TRY(start_one(self, k, in, pending));
        DITTO_TRY(ditto_wait(self, &pending[1], NULL));
        DITTO_TRY(start_one(self, LAST + 1, in, pending));
        DITTO_TRY(ditto_barrier(self, with_2));
        return wait_from(self, 2, LAST + 1, pending);
    default:
        sleep_ms(60);
        for (int k = 1; k < LAST; k++)
            DITTO_TRY(start_one(self, k, in, pending));
        DITTO_TRY(wait_from(self, 1, LAST - 1, pending));
        sleep_ms(200);
        DITTO_TRY(start_one(self, LAST, in, pending));
        DITTO_TRY(start_one(self, LAST + 1, in, pending));
        return wait_from(self, LAST, LAST + 1, pending);
    }
}

static ditto_status slow_starters(ditto_replica *self, void *argument)
{
    struct slow *s = argument;
    ditto_group group[3];
    ditto_reduce_options in[3];
    ditto_pending pending[DITTO_MAX_PENDING + 2];
    for (int k = 0; k < 3; k++) {
        EXPECT(&s->report, ditto_group_of(self, s->grouping[k], &group[k]) == DITTO_OK);
        in[k] = OPTIONS(reduce, .group = &group[k]);
    }
    if (s->which == MISSED_CIRCLE && ditto_replica_id(self) > 1)
        return ditto_barrier(self, NULL);
    if (s->which == MISSED_CIRCLE && ditto_replica_id(self) == 1)
        sleep_ms(100); /* replica 0 has published its wait for the first operation */
    return ditto_abandon(self, s->which == MISSED_CIRCLE ? miss_circle(self, &in[1], pending)
                                                         : go_further(self, &in[0], &in[1], &in[2], pending));
}

static void waits_are_published_as_they_are(void **state)
{
    static const uint32_t none = DITTO_NO_COLOR;
    const uint32_t colors[3][4] = { { none, 0, 0, 0 }, { 0, 0, none, none }, { 0, none, 0, none } };
    ditto_strategy *strategy = make_strategy(4, &OPTIONS(strategy, .timeout_ms = 60000));
    struct slow s = { .which = MISSED_CIRCLE };
    for (int k = 0; k < 3; k++)
        assert_int_equal(ditto_strategy_split(strategy, colors[k], NULL, 4, &s.grouping[k]), DITTO_OK);
    assert_int_equal(ditto_strategy_run(strategy, slow_starters, &s), DITTO_ERR_DIVERGED);
    assert_message("for the start of ditto_all_reduce_start #2 in the group of color 0 of split 1");
    s.which = GONE_FURTHER;
    run_all(strategy, slow_starters, &s, &s.report);
    for (int k = 0; k < 3; k++)
        assert_int_equal(ditto_grouping_destroy(s.grouping[k]), DITTO_OK);
    assert_int_equal(ditto_strategy_destroy(strategy), DITTO_OK);
}

/* -- bad input -- */

struct guests {
    struct report report;
    ditto_strategy *strategy;
    ditto_grouping *mine, *foreign;
    const ditto_grouping *destroyed;
    ditto_group kept, of_foreign;
    _Atomic int in_run, may_return;
};

static ditto_status keep_group(ditto_replica *self, void *argument)
{
    struct guests *g = argument;
    return ditto_group_of(self, g->mine, ditto_replica_id(self) == 0 ? &g->kept : &(ditto_group){ 0 });
}

static ditto_status keep_foreign(ditto_replica *self, void *argument)
{
    struct guests *g = argument;
    return ditto_group_of(self, g->foreign,
                          ditto_replica_id(self) == 0 ? &g->of_foreign : &(ditto_group){ 0 });
}

static ditto_status barrier_of(ditto_replica *self, const ditto_group *group)
{
    return ditto_barrier(self, &OPTIONS(reduce, .group = group));
}

static ditto_status give_bad_groups(ditto_replica *self, void *argument)
{
    struct guests *g = argument;
    ditto_group group, other;
    EXPECT(&g->report, ditto_group_of(self, NULL, &group) == DITTO_ERR_INVALID);
    EXPECT(&g->report, ditto_group_of(self, g->mine, NULL) == DITTO_ERR_INVALID);
    EXPECT(&g->report, ditto_group_of(NULL, g->mine, &group) == DITTO_ERR_INVALID);
    EXPECT(&g->report, ditto_group_of(self, g->foreign, &group) == DITTO_ERR_INVALID);
    EXPECT(&g->report, ditto_group_of(self, g->destroyed, &group) == DITTO_ERR_INVALID);
    EXPECT(&g->report, barrier_of(self, &(ditto_group){ 0 }) == DITTO_ERR_INVALID);
    EXPECT(&g->report, barrier_of(self, &g->kept) == DITTO_ERR_INVALID); /* of the run before */
    EXPECT(&g->report, barrier_of(self, &g->of_foreign) == DITTO_ERR_INVALID);
    EXPECT(&g->report, ditto_group_of(self, g->mine, &group) == DITTO_OK);
    other = group;
    other.index = 1 - group.index;
    EXPECT(&g->report, barrier_of(self, &other) == DITTO_ERR_INVALID);
    EXPECT(&g->report, strstr(ditto_last_error()->message, "is not a member of group") != NULL);
    other.index = 77;
    EXPECT(&g->report, barrier_of(self, &other) == DITTO_ERR_INVALID);
    float x = 0;
    EXPECT(&g->report, ditto_broadcast_from_root(self, &x, 1, DITTO_F32, 2,
                                                 &OPTIONS(reduce, .group = &group)) == DITTO_ERR_RANGE);
    EXPECT(&g->report, ditto_strategy_split(g->strategy, &(uint32_t){ 0 }, NULL, 1,
                                            &(ditto_grouping *){ NULL }) != DITTO_OK);
    EXPECT(&g->report, ditto_grouping_destroy(g->mine) == DITTO_ERR_CONTEXT);
    EXPECT(&g->report, barrier_of(self, &group) == DITTO_OK);
    return DITTO_OK;
}

static ditto_status stay(ditto_replica *self, void *argument)
{
    struct guests *g = argument;
    atomic_fetch_add(&g->in_run, 1);
    while (!atomic_load(&g->may_return))
        sleep_ms(1);
    return DITTO_OK;
}

static void *run_stay(void *argument)
{
    struct guests *g = argument;
    return (void *)(intptr_t)ditto_strategy_run(g->strategy, stay, g);
}

static void bad_input_is_refused(void **state)
{
    struct guests g = { .strategy = make_strategy(4, NULL) };
    ditto_strategy *other = make_strategy(2, NULL);
    static const uint32_t colors[] = { 0, 0, 1, 1 };
    static const uint32_t none[] = { DITTO_NO_COLOR, DITTO_NO_COLOR, DITTO_NO_COLOR, DITTO_NO_COLOR };
    ditto_grouping *gone, *axis[2];
    assert_int_equal(ditto_strategy_split(NULL, colors, NULL, 4, &gone), DITTO_ERR_INVALID);
    assert_int_equal(ditto_strategy_split(g.strategy, NULL, NULL, 4, &gone), DITTO_ERR_INVALID);
    assert_int_equal(ditto_strategy_split(g.strategy, colors, NULL, 4, NULL), DITTO_ERR_INVALID);
    assert_int_equal(ditto_strategy_split(g.strategy, colors, NULL, 3, &gone), DITTO_ERR_INVALID);
    assert_non_null(strstr(ditto_last_error()->message, "count = 3, but the strategy has 4 replicas"));
    assert_int_equal(ditto_strategy_split(g.strategy, none, NULL, 4, &gone), DITTO_ERR_INVALID);
    assert_int_equal(ditto_strategy_split(ditto_get_strategy(), &(uint32_t){ 0 }, NULL, 1, &gone),
                     DITTO_ERR_UNSUPPORTED);
    const ditto_mesh_axis wrong[] = { { "a", 3 }, { "b", 2 } }, zero[] = { { "a", 4 }, { "b", 0 } },
                          nameless[] = { { NULL, 4 } }, huge[] = { { "a", UINT32_MAX }, { "b", UINT32_MAX } };
    assert_int_equal(ditto_strategy_mesh(g.strategy, wrong, 2, axis), DITTO_ERR_RANGE);
    assert_int_equal(ditto_strategy_mesh(g.strategy, zero, 2, axis), DITTO_ERR_RANGE);
    assert_int_equal(ditto_strategy_mesh(g.strategy, huge, 2, axis), DITTO_ERR_RANGE);
    assert_int_equal(ditto_strategy_mesh(g.strategy, nameless, 1, axis), DITTO_ERR_INVALID);
    assert_int_equal(ditto_strategy_mesh(g.strategy, wrong, 0, axis), DITTO_ERR_INVALID);
    assert_int_equal(ditto_strategy_split(g.strategy, colors, NULL, 4, &g.mine), DITTO_OK);
    assert_int_equal(ditto_strategy_split(g.strategy, colors, NULL, 4, &gone), DITTO_OK);
    assert_int_equal(ditto_strategy_split(other, colors, NULL, 2, &g.foreign), DITTO_OK);
    g.destroyed = gone;
    assert_int_equal(ditto_grouping_destroy(gone), DITTO_OK);
    run_all(other, keep_foreign, &g, &g.report);
    run_all(g.strategy, keep_group, &g, &g.report);
    run_all(g.strategy, give_bad_groups, &g, &g.report);

    pthread_t runner;
    void *status;
    assert_int_equal(pthread_create(&runner, NULL, run_stay, &g), 0);
    while (atomic_load(&g.in_run) == 0)
        sleep_ms(1);
    assert_int_equal(ditto_grouping_destroy(g.mine), DITTO_ERR_BUSY);
    atomic_store(&g.may_return, 1);
    pthread_join(runner, &status);
    assert_int_equal((intptr_t)status, DITTO_OK);
    assert_int_equal(ditto_grouping_destroy(g.mine), DITTO_OK);
    assert_int_equal(ditto_strategy_destroy(g.strategy), DITTO_OK);
    assert_int_equal(ditto_grouping_destroy(g.foreign), DITTO_OK);
    assert_int_equal(ditto_strategy_destroy(other), DITTO_OK);
}

/* -- runs inside runs -- */

static ditto_status work_inside(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                void *user, ditto_value **result)
{
    struct grid *g = user;
    ditto_grouping *gone;
    static const uint32_t colors[] = { 0, 0, 0, 0 };
    EXPECT(&g->report, ditto_strategy_split(strategy, colors, NULL, 4, &gone) == DITTO_ERR_CONTEXT);
    EXPECT(&g->report, ditto_grouping_destroy(g->axis[0]) == DITTO_ERR_BUSY);
    return ditto_strategy_run(strategy, work_in_grid, g);
}

/* An operation that was started in a group outside stays open over the inner run. */
static ditto_status merge_and_work(ditto_replica *self, void *argument)
{
    struct grid *g = argument;
    ditto_group row;
    ditto_pending pending;
    int64_t sum, one = 1;
    for (int i = 0; i < 3; i++) {
        EXPECT(&g->report, ditto_group_of(self, g->axis[1], &row) == DITTO_OK);
        EXPECT(&g->report, ditto_all_reduce_start(self, &one, &sum, 1, DITTO_I64, DITTO_SUM,
                                                  &OPTIONS(reduce, .group = &row), &pending) == DITTO_OK);
        EXPECT(&g->report, ditto_merge_call(self, work_inside, g, NULL, 0, NULL) == DITTO_OK);
        EXPECT(&g->report, ditto_wait(self, &pending, NULL) == DITTO_OK && sum == (int64_t)row.size);
        EXPECT(&g->report, barrier_of(self, &row) == DITTO_OK);
    }
    return DITTO_OK;
}

/* Returns with an operation of a group that nobody waits for. */
static ditto_status forget(ditto_replica *self, void *argument)
{
    struct grid *g = argument;
    static int64_t in[4], out[4];
    ditto_group row;
    ditto_pending pending;
    uint32_t id = ditto_replica_id(self);
    EXPECT(&g->report, ditto_group_of(self, g->axis[1], &row) == DITTO_OK);
    return ditto_all_reduce_start(self, &in[id], &out[id], 1, DITTO_I64, DITTO_SUM,
                                  &OPTIONS(reduce, .group = &row), &pending);
}

static void groups_in_runs_inside_runs(void **state)
{
    struct grid g = { .fault = 0 };
    ditto_strategy *strategy = make_strategy(4, NULL);
    make_grid(strategy, &g, 2, 2);
    run_all(strategy, merge_and_work, &g, &g.report);
    assert_int_equal(ditto_strategy_run(strategy, forget, &g), DITTO_ERR_INVALID);
    assert_non_null(strstr(ditto_last_error()->message, "ditto_all_reduce_start #1 in group"));
    run_all(strategy, merge_and_work, &g, &g.report);
    destroy_grid(strategy, &g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_columns_of_a_mesh),
        cmocka_unit_test(colors_and_keys),
        cmocka_unit_test(groups_have_the_bits_of_strategies),
        cmocka_unit_test(groups_work_at_the_same_time),
        cmocka_unit_test(circles_and_other_faults_are_named),
        cmocka_unit_test(waits_are_published_as_they_are),
        cmocka_unit_test(bad_input_is_refused),
        cmocka_unit_test(groups_in_runs_inside_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
