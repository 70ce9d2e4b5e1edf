/* tests/sync/plans/test_plans.c - what src/sync/plans/rounds.h, groups.h, cost.h and choose_algorithm.h
 * promise, on invented machines of up to 256 replicas and 8 packages. Collectives that really run have the
 * counters of their plan. */
#include "cost.h"
#include "support/support.h"

#include "replicas/team/team_state.h"
#include "sync/algorithms/choose_algorithm.h"
#include "sync/kernels/reduction.h"
#include "sync/sync.h"

#include <math.h>

static const struct dti_costs costs = { { 50, 60, 90, 130 }, 10, 15 };

/* -- Rounds -- */

/* In each round, a replica receives what the representatives of its siblings know. After the last round it
 * knows the announcements of all replicas. */
static void expect_all_know_all(const struct dti_rounds *r)
{
    static bool knows[256][256], next[256][256];
    memset(knows, 0, sizeof knows);
    for (uint32_t i = 0; i < r->n; i++)
        knows[i][i] = true;
    for (uint32_t round = 0; round < r->rounds; round++) {
        memcpy(next, knows, sizeof knows);
        for (uint32_t i = 0; i < r->n; i++) {
            struct dti_span siblings = dti_rounds_siblings(r, round, i);
            bool own = false;
            for (size_t b = siblings.first; b < siblings.end; b++) {
                uint32_t representative = dti_rounds_representative(r, round, (uint32_t)b, i);
                assert_int_equal(dti_rounds_block(r, round, representative), b);
                own |= representative == i;
                for (uint32_t k = 0; k < r->n; k++)
                    next[i][k] |= knows[representative][k];
            }
            assert_true(own);
        }
        memcpy(knows, next, sizeof knows);
    }
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t k = 0; k < r->n; k++)
            assert_true(knows[i][k]);
}

static void expect_nested_cuts(const struct dti_rounds *r)
{
    assert_int_equal(r->blocks[0], r->n);
    assert_int_equal(r->blocks[r->rounds], 1);
    for (uint32_t cut = 0; cut <= r->rounds; cut++) {
        assert_int_equal(r->start[cut][0], 0);
        assert_int_equal(r->start[cut][r->blocks[cut]], r->n);
        for (uint32_t b = 0; b < r->blocks[cut]; b++) {
            assert_true(r->start[cut][b] < r->start[cut][b + 1]);
            /* A block begins where a block of the finer cut begins. */
            if (cut > 0)
                assert_int_equal(r->start[cut - 1][dti_rounds_block(r, cut - 1, r->start[cut][b])],
                                 r->start[cut][b]);
        }
    }
}

static void every_plan_brings_the_announcements_of_all_replicas_to_all(void **state)
{
    uint64_t seed = test_seed(5);
    for (int trial = test_trials(300); trial > 0; trial--) {
        struct dti_machine_shape shape = { .n = 1 + (uint32_t)(test_random(&seed) %
                                                               (trial % 6 != 0 ? 40 : 256)) };
        uint32_t near = test_random(&seed) % 3 == 0 ? 1 + (uint32_t)(test_random(&seed) % 9) : 0;
        /* The machine need not be one that can be built. */
        for (uint32_t i = 1; i < shape.n; i++)
            shape.border[i] = test_random(&seed) % 4 == 0 ? (uint8_t)(test_random(&seed) % DTI_DISTANCES) : 0;
        for (int i = 0; i <= DITTO_IMPLEMENTATION_HIERARCHICAL; i++) {
            struct dti_rounds r;
            assert_ok(dti_rounds_make(&shape, &costs, (ditto_implementation)i, near, &r));
            assert_true(r.rounds >= 1);
            assert_true(i != DITTO_IMPLEMENTATION_FLAT || r.rounds == 1);
            expect_nested_cuts(&r);
            expect_all_know_all(&r);
            dti_rounds_free(&r);
        }
    }
}

/* -- Predicted costs of large machines -- */

struct row {
    uint32_t n, packages, rounds;

    /* The maximum over all replicas of each counter. */
    struct dti_counters meeting, owners, exchange;

    /* The bytes that the replicas of a package read from and write to other packages. The package with the
     * most counts. */
    size_t link_flat, link_groups;

    double meeting_ns;

    /* Every package is one subtree. */
    bool subtrees;
};

static void keep_most(struct dti_counters *most, const struct dti_counters *c)
{
    uint64_t *a = &most->hops_near;
    const uint64_t *b = &c->hops_near;
    for (size_t i = 0; i < sizeof *c / sizeof *a; i++)
        a[i] = b[i] > a[i] ? b[i] : a[i];
}

static struct row count_machine(uint32_t n, uint32_t packages, const struct dti_all_reduce_size *size)
{
    static struct dti_machine_shape shape;
    static struct dti_groups groups;
    struct row row = { .n = n, .packages = packages };
    struct dti_tree tree = { .n = n };
    size_t flat[8] = { 0 }, grouped[8] = { 0 };
    struct dti_rounds r;
    shape.n = n;
    for (uint32_t i = 1; i < n; i++) /* the replicas are spread evenly over the packages */
        shape.border[i] = (i - 1) * packages / n != i * packages / n ? DTI_DISTANCE_BEYOND_PACKAGE
                                                                     : DTI_DISTANCE_CACHE;
    dti_groups_make(&shape, &tree, 0, &groups);
    assert_int_equal(groups.groups, packages);
    assert_ok(dti_rounds_make(&shape, &costs, DITTO_IMPLEMENTATION_DEFAULT, 0, &r));
    for (uint32_t i = 0; i < n; i++) {
        struct dti_counters meeting = dti_cost_meeting(&r, &groups, i),
                            owners = dti_cost_owners(&groups, n, i, size);
        struct dti_counters exchange = dti_cost_exchange(&groups, &tree, i, size);
        keep_most(&row.meeting, &meeting);
        keep_most(&row.owners, &owners);
        keep_most(&row.exchange, &exchange);
        flat[groups.of[i]] += owners.read_far + owners.written_far;
        grouped[groups.of[i]] += exchange.read_far + exchange.written_far;
    }
    for (uint32_t p = 0; p < packages; p++) {
        row.link_flat = flat[p] > row.link_flat ? flat[p] : row.link_flat;
        row.link_groups = grouped[p] > row.link_groups ? grouped[p] : row.link_groups;
    }
    row.rounds = r.rounds;
    row.meeting_ns = dti_cost_rounds_ns(&r, &shape, &costs);
    row.subtrees = groups.most_parts == 1;
    dti_rounds_free(&r);
    return row;
}

static void print_row(const struct row *r, const struct dti_all_reduce_size *size)
{
    double n = (double)(size->count * size->element_bytes);
    print_message(
        "  %4u %4u %6u %5llu %5llu %9.0f   %8.2f %8.2f   %8.2f %8.2f  %s\n", r->n, r->packages, r->rounds,
        (unsigned long long)r->meeting.hops_near, (unsigned long long)r->meeting.hops_far, r->meeting_ns,
        (double)(r->owners.read_near + r->owners.read_far + r->owners.written_near + r->owners.written_far) /
            n,
        (double)(r->exchange.read_near + r->exchange.written_near) / n, (double)r->link_flat / n,
        (double)r->link_groups / n, r->subtrees ? "" : "packages are no subtrees");
}

static void latency_grows_with_the_logarithm_and_bytes_do_not_grow(void **state)
{
    /* 16 MiB. The blocks are so large that their borders hardly matter. */
    const struct dti_all_reduce_size size = { 4 << 20, 4, 4, 1 << 20 };
    const double bytes = (double)(size.count * size.element_bytes);
    double fewest_ns[4] = { 0 }; /* a meeting of the fewest replicas */
    print_message(
        "  replicas, packages | a meeting: rounds, lines near, lines far, ns | bytes / message: a core flat, "
        "a core in\n"
        "  groups | a package's link flat, in groups\n");
    for (uint32_t p = 0; p < 4; p++) {
        uint32_t packages = 1u << p;
        for (uint32_t n = packages * 2 > 2 ? packages * 2 : 2; n <= 256; n *= 2) {
            struct row r = count_machine(n, packages, &size);
            double log2n = log2(n);
            print_row(&r, &size);
            /* Each doubling adds at most a constant to the time and to the cache lines waited for. */
            assert_true((double)(r.meeting.hops_near + r.meeting.hops_far) <= 4 * log2n + 4);
            fewest_ns[p] = fewest_ns[p] == 0 ? r.meeting_ns : fewest_ns[p];
            assert_true(r.meeting_ns <= fewest_ns[p] + 60 * log2n);
            /* A core reads and writes two bytes in all for each byte of the message. `ideal` is the traffic
             * of a package with the others. */
            double ideal = packages == 1 ? 0 : 2 * bytes * (packages - 1) / packages;
            double core = (double)(r.owners.read_near + r.owners.read_far + r.owners.written_near +
                                   r.owners.written_far);
            assert_true(fabs(core / bytes - 2) < 0.01);
            if (packages > 1) {
                assert_true(r.subtrees); /* because all numbers are powers of two */
                assert_true(fabs((double)r.link_groups - ideal) < 0.01 * bytes);
                assert_true((double)(r.exchange.written_near) <= 1.01 * bytes);
                assert_true((double)(r.exchange.read_near) <= (1.01 + 2.0 * packages / n) * bytes);
            }
        }
    }
    static const uint32_t odd[][2] = { { 6, 2 },  { 12, 4 },  { 24, 3 }, { 48, 6 },
                                       { 96, 8 }, { 100, 4 }, { 250, 7 } };
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        struct row r = count_machine(odd[i][0], odd[i][1], &size);
        print_row(&r, &size);
        assert_true((double)(r.meeting.hops_near + r.meeting.hops_far) <= 4 * log2(odd[i][0]) + 4);
    }
}

/* -- Predicted times, compared with other algorithms. The table is in docs/performance.md. -- */

/* Bytes per nanosecond of a core, of the memory of a node, and of a link between packages. The figures are
 * those of a recent server. */
static const struct dti_bandwidths bandwidths = { 12, 150, 40 };

/* All replicas add to one counter, whose cache line moves from neighbour to neighbour. Then all of them read
 * the line that releases them. */
static double counter_ns(uint32_t n, uint32_t packages)
{
    double far = packages > 1 ? costs.hop_ns[DTI_DISTANCE_BEYOND_PACKAGE] : costs.hop_ns[DTI_DISTANCE_CACHE];
    return (n - packages) * costs.hop_ns[DTI_DISTANCE_CACHE] +
           (packages - 1) * costs.hop_ns[DTI_DISTANCE_BEYOND_PACKAGE] + far +
           n * costs.hop_ns[DTI_DISTANCE_CACHE] / costs.overlap;
}

/* Rounds in which pairs of replicas exchange. From a distance of a package on, every pair is in two
 * packages. */
static double rounds_of_two_ns(uint32_t n, uint32_t packages)
{
    double ns = 0;
    for (uint32_t step = 1; step < n; step *= 2)
        ns += dti_round_ns(&costs, step >= n / packages ? DTI_DISTANCE_BEYOND_PACKAGE : DTI_DISTANCE_CACHE,
                           2);
    return ns;
}

/* The time of messages so large that latencies hardly matter. The slowest of core, memory and link
 * decides. */
static double moved_ns(double core_bytes, double link_bytes, uint32_t n, uint32_t packages)
{
    double core = core_bytes / bandwidths.core, node = core_bytes * n / packages / bandwidths.node;
    double link = link_bytes / bandwidths.link;
    return core > node ? (core > link ? core : link) : node > link ? node : link;
}

/* A ring. Each replica passes a part to its neighbour 2 (n - 1) times, combining in the first half of them
 * and copying in the second. This takes five accesses for each byte. */
static double ring_ns(double bytes, uint32_t n, uint32_t packages)
{
    double share = (double)(n - 1) / n;
    return moved_ns(5 * bytes * share, packages > 1 ? 2 * bytes * share : 0, n, packages) +
           2 * (n - 1) *
               dti_round_ns(&costs, packages > 1 ? DTI_DISTANCE_BEYOND_PACKAGE : DTI_DISTANCE_CACHE, 2);
}

/* A memory segment that all ranks map. The data is copied into it, combined there by owners, and copied out.
 * This takes six accesses for each byte. */
static double segment_ns(double bytes, const struct row *r)
{
    return moved_ns(6 * bytes, (double)r->link_flat, r->n, r->packages) + 3 * r->meeting_ns;
}

static void predicted_collectives_are_faster_than_other_algorithms_and_meetings_hardly_slower(void **state)
{
    static const uint32_t machines[][2] = { { 2, 1 },   { 8, 1 },  { 64, 1 },  { 16, 2 }, { 64, 2 },
                                            { 128, 2 }, { 64, 4 }, { 256, 4 }, { 64, 8 }, { 256, 8 } };
    const struct dti_all_reduce_size size = { 16 << 20, 4, 4, 1 << 20 };
    const double bytes = (double)(size.count * size.element_bytes);
    print_message("| replicas | packages | meeting, ns: ditto | rounds of two | a counter | 64 MiB, ms: "
                  "ditto | its owners | "
                  "its groups | a ring | through a segment |\n"
                  "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        uint32_t n = machines[i][0], packages = machines[i][1];
        struct row r = count_machine(n, packages, &size);
        double owners = dti_cost_ns(&r.owners, 2 * r.meeting_ns, n / packages, &bandwidths, &costs);
        double groups = dti_cost_ns(&r.exchange, 2 * r.meeting_ns, n / packages, &bandwidths, &costs);
        double ditto = packages > 1 && groups < owners ? groups : owners, two = rounds_of_two_ns(n, packages);
        double counter = counter_ns(n, packages), ring = ring_ns(bytes, n, packages),
               segment = segment_ns(bytes, &r);
        print_message("| %u | %u | %.0f | %.0f | %.0f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", n, packages,
                      r.meeting_ns, two, counter, ditto / 1e6, owners / 1e6, groups / 1e6, ring / 1e6,
                      segment / 1e6);
        assert_true(r.meeting_ns <= 1.001 * two && r.meeting_ns <= 1.3 * counter);
        assert_true(ditto < ring && ditto < segment);
    }
}

/* -- The counters of collectives that really run -- */

struct counting {
    struct report report;
    size_t count;
    ditto_implementation implementation;
    struct dti_counters before[64];
};

static ditto_status reduce_once(ditto_replica *self, void *argument)
{
    struct counting *c = argument;
    float *data = calloc(c->count + 1, sizeof *data);
    ditto_status status = ditto_all_reduce(self, data, data, c->count, DITTO_F32, DITTO_SUM,
                                           &OPTIONS(reduce, .implementation = c->implementation));
    free(data);
    return status;
}

static struct dti_counters sum(struct dti_counters a, const struct dti_counters *b, int times)
{
    uint64_t *x = &a.hops_near;
    const uint64_t *y = &b->hops_near;
    for (size_t i = 0; i < sizeof a / sizeof *x; i++)
        x[i] += (uint64_t)(int64_t)times * y[i];
    return a;
}

static void expect_counters(ditto_strategy *strategy, ditto_implementation implementation, size_t count,
                            bool print)
{
    struct dti_team *team = dti_team_of(strategy);
    struct dti_sync *sync = team->sync;
    struct counting c = { .count = count, .implementation = implementation };
    const struct dti_all_reduce_size size = { count, 4, 4, sync->tuning.given.block_bytes };
    bool groups = implementation == DITTO_IMPLEMENTATION_HIERARCHICAL && sync->groups.groups > 1;
    for (uint32_t i = 0; i < team->n; i++)
        c.before[i] = sync->state[i].workspace.counters;
    run_all(strategy, reduce_once, &c, &c.report);
    for (uint32_t i = 0; i < team->n; i++) {
        struct dti_counters found = sum(sync->state[i].workspace.counters, &c.before[i], -1);
        struct dti_counters meeting = dti_cost_meeting(&sync->rounds[implementation], &sync->groups, i);
        struct dti_counters expected = groups ? dti_cost_exchange(&sync->groups, &sync->tree, i, &size)
                                              : dti_cost_owners(&sync->groups, team->n, i, &size);
        expected = sum(expected, &meeting, 2);
        if (print && i == 0)
            print_message("  %4u %4u %-12s %8zu   %6llu %6llu %12llu %12llu   %6llu %6llu %12llu %12llu\n",
                          team->n, sync->groups.groups, groups ? "groups" : "owners", count * 4,
                          (unsigned long long)(expected.hops_near + expected.hops_far),
                          (unsigned long long)expected.hops_far,
                          (unsigned long long)(expected.read_near + expected.written_near),
                          (unsigned long long)(expected.read_far + expected.written_far),
                          (unsigned long long)(found.hops_near + found.hops_far),
                          (unsigned long long)found.hops_far,
                          (unsigned long long)(found.read_near + found.written_near),
                          (unsigned long long)(found.read_far + found.written_far));
        assert_memory_equal(&found, &expected, sizeof found);
    }
}

static void the_counters_of_a_collective_are_those_of_its_plan(void **state)
{
    static const uint32_t replicas[] = { 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64 };
    print_message("  replica 0 of | planned: lines, far ones, bytes near, far | counted\n");
    for (size_t k = 0; k < sizeof replicas / sizeof replicas[0] && replicas[k] <= most_replicas(); k++)
        for (uint32_t near = 1; near <= 8 && near < replicas[k]; near = near * 2 + (near == 2)) {
            ditto_tuning tuning = { .struct_size = sizeof tuning,
                                    .near_replicas = near,
                                    .small_bytes = 1,
                                    .block_bytes = 4096,
                                    .stage_bytes = DITTO_NEVER_BYTES,
                                    .stage_one_way_bytes = DITTO_NEVER_BYTES };
            ditto_strategy *strategy = make_strategy(replicas[k], &OPTIONS(strategy, .tuning = &tuning));
            bool print = near == 1 || near == 5;
            expect_counters(strategy, DITTO_IMPLEMENTATION_FLAT, 1000, false);
            expect_counters(strategy, DITTO_IMPLEMENTATION_FLAT, 50001, print);
            expect_counters(strategy, DITTO_IMPLEMENTATION_HIERARCHICAL, 1000, false);
            expect_counters(strategy, DITTO_IMPLEMENTATION_HIERARCHICAL, 50001, print);
            assert_ok(ditto_strategy_destroy(strategy));
        }
}

/* -- The choice of the algorithm -- */

/* Replicas pass partial results on in mailboxes. These are accumulators, which may be larger than elements,
 * and the block of a replica may have several. */
static void expect_partial_results_fit(const struct dti_sync *sync, ditto_dtype dtype,
                                       ditto_implementation implementation, bool *small, bool *large)
{
    struct dti_reduction reduction = dti_reduction_of(sync->kernels, dtype, DITTO_SUM);
    const ditto_tuning tuning = { .small_bytes = SIZE_MAX, .hierarchical_bytes = SIZE_MAX };
    for (size_t count = 1; count <= DTI_PAYLOAD_BYTES; count++) {
        struct dti_call call = { .pattern = DTI_PATTERN_ALL_REDUCE,
                                 .dtype = (uint8_t)dtype,
                                 .op = DITTO_SUM,
                                 .count = count,
                                 .element_bytes = (uint32_t)reduction.element_bytes,
                                 .implementation = (uint8_t)implementation };
        struct dti_call_size size = dti_call_size_of(&call, sync->num_replicas);
        if (dti_choose_algorithm(sync, &tuning, &call, &size).algorithm != DTI_ALGORITHM_MAILBOXES) {
            *large = true;
            continue;
        }
        *small = true;
        assert_true(dti_partials_bytes(count * reduction.accumulator_bytes,
                                       sync->most_parts[implementation]) <= DTI_PAYLOAD_BYTES);
    }
}

static void partial_results_fit_the_mailboxes(void **state)
{
    ditto_tuning tuning = DITTO_TUNING_INIT;
    tuning.near_replicas = 3; /* a group of 3 replicas has two partial results */
    ditto_strategy *strategy = make_strategy(7, &OPTIONS(strategy, .tuning = &tuning));
    const struct dti_sync *sync = dti_team_of(strategy)->sync;
    assert_true(sync->most_parts[DITTO_IMPLEMENTATION_HIERARCHICAL] > 1);
    for (int dtype = 1; dtype <= DTI_NUM_DTYPES; dtype++)
        for (int i = DITTO_IMPLEMENTATION_FLAT; i <= DITTO_IMPLEMENTATION_HIERARCHICAL; i++) {
            bool small = false, large = false;
            if (dti_reduction_of(sync->kernels, (ditto_dtype)dtype, DITTO_SUM).kernel == NULL)
                continue;
            expect_partial_results_fit(sync, (ditto_dtype)dtype, (ditto_implementation)i, &small, &large);
            assert_true(small && (large || ditto_dtype_bytes((ditto_dtype)dtype) == 1));
        }
    assert_ok(ditto_strategy_destroy(strategy));
}

/* Without this choice, the tests of staging would pass by way of the other algorithms. */
static void two_replicas_with_pus_of_their_own_stage(void **state)
{
    ditto_tuning tuning = { .struct_size = sizeof tuning, .stage_bytes = 4096, .stage_one_way_bytes = 8192 };
    ditto_strategy *strategy = make_strategy(2, &OPTIONS(strategy, .tuning = &tuning));
    const struct dti_sync *sync = dti_team_sync(dti_team_of(strategy));
    static const struct {
        size_t count; /* of f32 */
        ditto_implementation implementation;
        bool staged;
        uint8_t pattern; /* 0: all-reduce */
    } calls[] = { { 1023, DITTO_IMPLEMENTATION_DEFAULT, false, 0 },
                  { 1024, DITTO_IMPLEMENTATION_DEFAULT, true, 0 },
                  { 1024, DITTO_IMPLEMENTATION_HIERARCHICAL, false, 0 },
                  { 1 << 20, DITTO_IMPLEMENTATION_FLAT, true, 0 },
                  { (1 << 20) + 1, DITTO_IMPLEMENTATION_DEFAULT, false, 0 },
                  { 1024, DITTO_IMPLEMENTATION_DEFAULT, false, DTI_PATTERN_BROADCAST },
                  { 2048, DITTO_IMPLEMENTATION_DEFAULT, true, DTI_PATTERN_BROADCAST },
                  { 2048, DITTO_IMPLEMENTATION_DEFAULT, true, DTI_PATTERN_SCAN } };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct dti_call call = { .pattern = calls[i].pattern != 0 ? calls[i].pattern : DTI_PATTERN_ALL_REDUCE,
                                 .dtype = DITTO_F32,
                                 .op = DITTO_SUM,
                                 .count = calls[i].count,
                                 .element_bytes = sizeof(float),
                                 .implementation = (uint8_t)calls[i].implementation };
        struct dti_call_size size = dti_call_size_of(&call, 2);
        bool staged = dti_choose_algorithm(sync, &sync->tuning.given, &call, &size).algorithm ==
                      DTI_ALGORITHM_STAGED;
        assert_int_equal(staged, calls[i].staged && !sync->oversubscribed);
    }
    /* Where an all-reduce is not staged, a broadcast is up to 512 KiB. */
    ditto_tuning one_way = sync->tuning.given;
    one_way.stage_bytes = DITTO_NEVER_BYTES;
    for (size_t more = 0; more < 2; more++) {
        struct dti_call call = { .pattern = DTI_PATTERN_BROADCAST,
                                 .dtype = DITTO_F32,
                                 .count = (128 << 10) + more,
                                 .element_bytes = sizeof(float) };
        struct dti_call_size size = dti_call_size_of(&call, 2);
        bool staged = dti_choose_algorithm(sync, &one_way, &call, &size).algorithm == DTI_ALGORITHM_STAGED;
        assert_int_equal(staged, more == 0 && !sync->oversubscribed);
    }
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plan_brings_the_announcements_of_all_replicas_to_all),
        cmocka_unit_test(latency_grows_with_the_logarithm_and_bytes_do_not_grow),
        cmocka_unit_test(predicted_collectives_are_faster_than_other_algorithms_and_meetings_hardly_slower),
        cmocka_unit_test(the_counters_of_a_collective_are_those_of_its_plan),
        cmocka_unit_test(partial_results_fit_the_mailboxes),
        cmocka_unit_test(two_replicas_with_pus_of_their_own_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
