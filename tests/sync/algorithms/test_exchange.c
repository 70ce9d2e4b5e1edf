/* tests/sync/algorithms/test_exchange.c - what include/ditto/exchange.h promises: each replica receives what
 * its partners give, through mailboxes and from buffers, and parts that do not fit together are errors. */
#include "support/support.h"

#include <sched.h>

/* -- random graphs -- */

enum { MOST = 64, TAGS = 3, ROUNDS = 6 };

/* Pairs exchange if a random number says so. All replicas compute the same numbers. */
struct graph {
    struct report report;
    uint64_t seed;
    size_t most_count;
    uint32_t one_in; /* how rarely a pair exchanges */
    ditto_implementation implementation;
};

/* Returns a number that depends on the giver, the receiver and the tag. */
static uint64_t number_of(const struct graph *g, uint32_t from, uint32_t to, uint32_t tag)
{
    uint64_t state = g->seed ^ ((uint64_t)from << 40 | (uint64_t)to << 20 | tag);
    (void)test_random(&state);
    return test_random(&state);
}

/* The parts of two replicas exist or not, in both directions alike. */
static bool is_edge(const struct graph *g, uint32_t a, uint32_t b, uint32_t tag)
{
    return number_of(g, a < b ? a : b, a < b ? b : a, 100 + tag) % g->one_in == 0;
}

static ditto_dtype dtype_of(const struct graph *g, uint32_t a, uint32_t b, uint32_t tag)
{
    return number_of(g, a < b ? a : b, a < b ? b : a, 200 + tag) % 2 == 0 ? DITTO_U8 : DITTO_F64;
}

static size_t count_of(const struct graph *g, uint32_t from, uint32_t to, uint32_t tag)
{
    return number_of(g, from, to, tag) % (g->most_count + 1);
}

static unsigned char byte_of(uint32_t from, uint32_t to, uint32_t tag, int round, size_t i)
{
    return (unsigned char)(from * 31 + to * 17 + tag * 7 + (uint32_t)round * 13 + i);
}

static void fill(unsigned char *to, size_t bytes, uint32_t giver, uint32_t receiver, uint32_t tag, int round)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = byte_of(giver, receiver, tag, round, i);
}

static bool is_filled(const unsigned char *from, size_t bytes, uint32_t giver, uint32_t receiver,
                      uint32_t tag, int round)
{
    for (size_t i = 0; i < bytes; i++)
        if (from[i] != byte_of(giver, receiver, tag, round, i))
            return false;
    return true;
}

/* Lists the parts of a replica, in an order that depends on it, with buffers of their own. */
static size_t list_parts(const struct graph *g, uint32_t id, uint32_t n, ditto_exchange_part *part)
{
    size_t parts = 0;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t tag = 0; tag < TAGS; tag++) {
            uint32_t other = (k + id) % n;
            if (!is_edge(g, id, other, tag))
                continue;
            ditto_dtype dtype = dtype_of(g, id, other, tag);
            size_t out = count_of(g, id, other, tag), in = count_of(g, other, id, tag);
            part[parts++] = (ditto_exchange_part){ .replica = other,
                                                   .tag = tag,
                                                   .src = malloc(out * ditto_dtype_bytes(dtype) + 1),
                                                   .dst = malloc(in * ditto_dtype_bytes(dtype) + 1),
                                                   .src_count = out,
                                                   .dst_count = in,
                                                   .dtype = dtype };
        }
    return parts;
}

/* Between rounds there is nothing but the exchange: a source is overwritten as soon as the call returns. */
static ditto_status exchange_on_graph(ditto_replica *self, void *argument)
{
    struct graph *g = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    ditto_exchange_part *part = calloc(MOST * TAGS, sizeof *part);
    size_t parts = list_parts(g, id, n, part);
    ditto_reduce_options options = OPTIONS(reduce, .implementation = g->implementation);
    ditto_status status = DITTO_OK;
    for (int round = 0; round < ROUNDS && status == DITTO_OK; round++) {
        for (size_t i = 0; i < parts; i++)
            fill((unsigned char *)(uintptr_t)part[i].src,
                 part[i].src_count * ditto_dtype_bytes(part[i].dtype), id, part[i].replica, part[i].tag,
                 round);
        status = ditto_exchange(self, part, parts, &options);
        for (size_t i = 0; i < parts && status == DITTO_OK; i++)
            if (!is_filled(part[i].dst, part[i].dst_count * ditto_dtype_bytes(part[i].dtype), part[i].replica,
                           id, part[i].tag, round)) {
                report_failure(&g->report, __FILE__, __LINE__, "replica %u, round %d: part %zu is wrong", id,
                               round, i);
                status = DITTO_ERR_USER;
            }
    }
    for (size_t i = 0; i < parts; i++) {
        free((void *)(uintptr_t)part[i].src);
        free(part[i].dst);
    }
    free(part);
    return status;
}

static void try_graphs(ditto_strategy *strategy, uint64_t *seed)
{
    static const size_t counts[] = { 0, 1, 8, 60, 5000 };
    uint32_t n = ditto_strategy_num_replicas(strategy);
    for (int trial = 0; trial < test_trials(20); trial++) {
        struct graph g = { .seed = test_random(seed),
                           .most_count = counts[test_random(seed) % 5],
                           .one_in = 1 + (uint32_t)(test_random(seed) % (n > 8 ? 40 : 4)),
                           .implementation = (ditto_implementation)(trial % 3) };
        run_all(strategy, exchange_on_graph, &g, &g.report);
    }
}

static void every_replica_receives_what_its_partners_give(void **state)
{
    uint64_t seed = test_seed(91);
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        try_graphs(strategy, &seed);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void replicas_on_one_pu_exchange_too(void **state)
{
    uint32_t pus[3];
    uint64_t seed = test_seed(92);
    pus[0] = pus[1] = pus[2] = (uint32_t)sched_getcpu();
    ditto_placement_options placing = OPTIONS(placement, .pus = pus, .num_pus = 3,
                                              .flags = DITTO_PLACEMENT_SHARE);
    ditto_strategy *strategy = make_strategy(3, &OPTIONS(strategy, .placement_options = &placing));
    try_graphs(strategy, &seed);
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- a ring, also of one and of two replicas, whose neighbours on both sides are the same -- */

struct ring {
    struct report report;
    size_t length; /* of a row */
};

/* Border i is between replica i and the next one. */
static ditto_status go_round(ditto_replica *self, void *argument)
{
    struct ring *ring = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    uint32_t above = (id + n - 1) % n, below = (id + 1) % n;
    float *row[4];
    for (int k = 0; k < 4; k++)
        row[k] = calloc(ring->length, sizeof(float));
    /* Rows 1 and 2 are this replica's own, and 0 and 3 are copies of its neighbours'. With itself, a replica
     * exchanges src and dst of one part. */
    ditto_exchange_part part[] = {
        { above, above, row[1], n == 1 ? row[3] : row[0], ring->length, ring->length, DITTO_F32 },
        { below, n == 1 ? 1 : id, row[2], n == 1 ? row[0] : row[3], ring->length, ring->length, DITTO_F32 },
    };
    ditto_status status = DITTO_OK;
    bool right = true;
    for (int step = 0; step < 50 && status == DITTO_OK && right; step++) {
        for (size_t i = 0; i < ring->length; i++) {
            row[1][i] = (float)(4 * id + 1) + (float)step;
            row[2][i] = (float)(4 * id + 2) + (float)step;
        }
        status = ditto_exchange(self, part, 2, NULL);
        for (size_t i = 0; i < ring->length; i += ring->length - 1)
            right &= row[0][i] == (float)(4 * above + 2) + (float)step &&
                     row[3][i] == (float)(4 * below + 1) + (float)step;
    }
    for (int k = 0; k < 4; k++)
        free(row[k]);
    DITTO_TRY(status);
    EXPECT(&ring->report, right);
    return DITTO_OK;
}

/* Two rows of 504 floats, with 64 bytes beside them, fit 4 KiB exactly. */
static void neighbours_on_a_ring_have_each_others_rows(void **state)
{
    static const size_t lengths[] = { 2, 140, 503, 504, 505, 9800 };
    for (size_t k = 0; k < replica_counts_length; k++)
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            struct ring ring = { .length = lengths[i] };
            run_once(replica_counts[k], NULL, go_round, &ring, &ring.report);
        }
}

/* -- parts that do not fit together -- */

enum fault { NO_PART, OTHER_TAG, OTHER_COUNT, OTHER_DTYPE, FAULTS };

struct mistake {
    struct report report;
    enum fault fault;
    size_t count;
};

/* Replica 1 makes a mistake in its part for replica 0. The other replicas have no parts. */
static ditto_status make_mistake(ditto_replica *self, void *argument)
{
    const struct mistake *m = argument;
    uint32_t id = ditto_replica_id(self);
    double *memory = calloc(2 * m->count, sizeof *memory);
    ditto_exchange_part part = { 1 - id % 2, 7, memory, memory + m->count, m->count, m->count, DITTO_F64 };
    if (id == 1 && m->fault == OTHER_TAG)
        part.tag = 8;
    if (id == 1 && m->fault == OTHER_COUNT)
        part.src_count--;
    if (id == 1 && m->fault == OTHER_DTYPE)
        part.dtype = DITTO_I64;
    ditto_status status = ditto_exchange(self, &part, id > 1 || (id == 1 && m->fault == NO_PART) ? 0 : 1,
                                         NULL);
    memset(memory, 0xff, 2 * m->count * sizeof *memory); /* nobody reads it any more */
    free(memory);
    return status;
}

static void parts_that_do_not_fit_stop_the_run(void **state)
{
    static const char *const words[] = { [NO_PART] = "replica 1 has no such part",
                                         [OTHER_TAG] = "has no such part",
                                         [OTHER_COUNT] = "replica 1 gives ",
                                         [OTHER_DTYPE] = "x i64" }; /* in one place or the other */
    for (uint32_t n = 2; n <= 3; n++)
        for (size_t count = 10; count <= 1000; count *= 100) {
            ditto_strategy *strategy = make_strategy(n, NULL);
            for (int fault = 0; fault < FAULTS; fault++) {
                struct mistake m = { .fault = (enum fault)fault, .count = count };
                assert_status(ditto_strategy_run(strategy, make_mistake, &m), DITTO_ERR_DIVERGED);
                assert_message(words[fault]);
                assert_message("in ditto_exchange");
                struct ring ring = { .length = 3 };
                run_all(strategy, go_round, &ring, &ring.report);
            }
            assert_ok(ditto_strategy_destroy(strategy));
        }
}

/* -- wrong arguments -- */

struct wrong {
    struct report report;
};

static ditto_status pass_wrong_parts(ditto_replica *self, void *argument)
{
    struct wrong *w = argument;
    double a[8], b[8];
    uint32_t n = ditto_num_replicas(self);
    const ditto_exchange_part good = { n - 1, 0, a, b, 8, 8, DITTO_F64 };
    ditto_exchange_part part[2] = { good, good };
    EXPECT(&w->report, ditto_exchange(self, NULL, 1, NULL) == DITTO_ERR_INVALID);
    EXPECT(&w->report, ditto_exchange(self, part, 2, NULL) == DITTO_ERR_INVALID);
    EXPECT(&w->report, strstr(ditto_last_error()->message, "give each its own tag") != NULL);
    part[0].replica = n;
    EXPECT(&w->report, ditto_exchange(self, part, 1, NULL) == DITTO_ERR_RANGE);
    part[0] = good;
    part[0].dtype = (ditto_dtype)0;
    EXPECT(&w->report, ditto_exchange(self, part, 1, NULL) == DITTO_ERR_INVALID);
    part[0] = good;
    part[0].src = NULL;
    EXPECT(&w->report, ditto_exchange(self, part, 1, NULL) == DITTO_ERR_INVALID);
    part[0] = good;
    part[0].dst = (char *)b + 1;
    EXPECT(&w->report, ditto_exchange(self, part, 1, NULL) == DITTO_ERR_INVALID);
    part[0] = good;
    part[0].dst = a + 4;
    EXPECT(&w->report, ditto_exchange(self, part, 1, NULL) == DITTO_ERR_INVALID);
    EXPECT(&w->report, strstr(ditto_last_error()->message, "overlaps") != NULL);
    part[0] = good;
    part[1] = (ditto_exchange_part){ n - 1, 1, NULL, b + 7, 0, 1, DITTO_F64 };
    EXPECT(&w->report, ditto_exchange(self, part, 2, NULL) == DITTO_ERR_INVALID);
    part[0].src_count = SIZE_MAX;
    EXPECT(&w->report, ditto_exchange(self, part, 1, NULL) == DITTO_ERR_RANGE);
    /* Checks are left out only for equal parts. */
    const ditto_exchange_part fine = { ditto_replica_id(self), 0, a, b, 8, 8, DITTO_F64 };
    DITTO_TRY(ditto_exchange(self, &fine, 1, NULL));
    part[0] = fine;
    part[0].dst_count = 8 + ((size_t)1 << 61);
    EXPECT(&w->report, ditto_exchange(self, part, 1, NULL) == DITTO_ERR_RANGE);
    part[0] = fine;
    part[0].dtype = (ditto_dtype)(DITTO_F64 | 0x800);
    EXPECT(&w->report, ditto_exchange(self, part, 1, NULL) == DITTO_ERR_INVALID);
    part[0] = fine;
    part[0].src = NULL;
    EXPECT(&w->report, ditto_exchange(self, part, 1, NULL) == DITTO_ERR_INVALID);
    part[0] = fine;
    part[0].dst = a;
    EXPECT(&w->report, ditto_exchange(self, part, 1, NULL) == DITTO_ERR_INVALID);
    part[0] = fine;
    part[0].replica = n;
    EXPECT(&w->report, ditto_exchange(self, part, 1, NULL) == DITTO_ERR_RANGE);
    return ditto_exchange(self, NULL, 0, NULL);
}

static void wrong_parts_are_errors_and_the_run_continues(void **state)
{
    for (uint32_t n = 1; n <= 3; n++) {
        struct wrong w = { 0 };
        run_once(n, NULL, pass_wrong_parts, &w, &w.report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_replica_receives_what_its_partners_give),
        cmocka_unit_test(replicas_on_one_pu_exchange_too),
        cmocka_unit_test(neighbours_on_a_ring_have_each_others_rows),
        cmocka_unit_test(parts_that_do_not_fit_stop_the_run),
        cmocka_unit_test(wrong_parts_are_errors_and_the_run_continues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
