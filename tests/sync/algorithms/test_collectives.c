/* tests/sync/algorithms/test_collectives.c - what include/ditto/collective.h promises of every operation,
 * with every algorithm: flat and hierarchical, in place and not, small and large, and with groups of several
 * sizes. The results have the bits of the documented tree. */
#include "support/support.h"

#include "replicas/team/team.h"
#include "sync/meeting/sync_state.h"

#include "sync/reference.h"

#include <sched.h>

enum kind {
    ALL_REDUCE,
    REDUCE,
    BROADCAST,
    SCAN,
    SCAN_EXCLUSIVE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_UNEVEN,
    ALL_GATHER,
    ALL_GATHER_UNEVEN,
    GATHER,
    GATHER_UNEVEN,
    SCATTER,
    SCATTER_UNEVEN,
    ALL_TO_ALL,
    ALL_TO_ALL_UNEVEN,
    KINDS
};

struct task {
    struct report report;
    enum kind kind;
    size_t count; /* the argument of the function */
    size_t counts[DITTO_MAX_REPLICAS];
    ditto_dtype dtype;
    ditto_op op;
    uint32_t root;
    bool in_place;
    bool started; /* the call is started and then waited for, if its kind can be */
    bool flush_to_zero;
    ditto_implementation implementation;
    uint32_t blocks; /* order_blocks of the strategy; 0 is one */
    uint64_t seed;
    void *result[DITTO_MAX_REPLICAS]; /* allocated by the test, compared after the run */
};

static bool has_parts(const struct task *t)
{
    return t->kind >= REDUCE_SCATTER;
}

static bool is_uneven(const struct task *t)
{
    return t->kind == REDUCE_SCATTER_UNEVEN || t->kind == ALL_GATHER_UNEVEN || t->kind == GATHER_UNEVEN ||
           t->kind == SCATTER_UNEVEN || t->kind == ALL_TO_ALL_UNEVEN;
}

static bool gathers(const struct task *t)
{
    return t->kind == ALL_GATHER || t->kind == ALL_GATHER_UNEVEN || t->kind == GATHER ||
           t->kind == GATHER_UNEVEN;
}

static bool scatters(const struct task *t)
{
    return t->kind == SCATTER || t->kind == SCATTER_UNEVEN;
}

static bool is_all_to_all(const struct task *t)
{
    return t->kind == ALL_TO_ALL || t->kind == ALL_TO_ALL_UNEVEN;
}

static bool scans(const struct task *t)
{
    return t->kind == SCAN || t->kind == SCAN_EXCLUSIVE;
}

static size_t part_of(const struct task *t, uint32_t i)
{
    return is_uneven(t) ? t->counts[i] : t->count;
}

/* Part k of a replica in an all-to-all. As many elements come from the other replica as go to it, so the call
 * may be in place. */
static size_t own_part_of(const struct task *t, uint32_t id, uint32_t k, uint32_t n)
{
    return part_of(t, (id + k) % n);
}

static size_t own_before(const struct task *t, uint32_t id, uint32_t k, uint32_t n)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < k; i++)
        sum += own_part_of(t, id, i, n);
    return sum;
}

static size_t before(const struct task *t, uint32_t i)
{
    size_t sum = 0;
    for (uint32_t k = 0; k < i; k++)
        sum += part_of(t, k);
    return sum;
}

/* The numbers of elements that replica i contributes and receives. */
static size_t brings(const struct task *t, uint32_t i, uint32_t n)
{
    if (gathers(t))
        return part_of(t, i);
    if (scatters(t) && i != t->root)
        return 0;
    return has_parts(t) ? before(t, n) : t->count;
}

static size_t receives(const struct task *t, uint32_t i, uint32_t n)
{
    if ((t->kind == GATHER || t->kind == GATHER_UNEVEN) && i != t->root)
        return 0;
    if (gathers(t) || is_all_to_all(t))
        return before(t, n);
    bool nothing = (t->kind == REDUCE && i != t->root) || (t->kind == SCAN_EXCLUSIVE && i == 0);
    return has_parts(t) ? part_of(t, i) : nothing ? 0 : t->count;
}

static void fill(const struct task *t, uint32_t replica, size_t count, void *data)
{
    for (size_t i = 0; i < count; i++)
        reference_fill(t->dtype, t->seed, replica, i, (char *)data + i * ditto_dtype_bytes(t->dtype));
}

static ditto_status call(ditto_replica *self, const struct task *t, const void *src, void *dst)
{
    ditto_pending pending;
    ditto_reduce_options o = OPTIONS(reduce, .implementation = t->implementation);
    /* Without options, a call that equals an earlier one is not checked again (known_calls.h). Replicas with
     * and without options must agree. */
    bool without = t->implementation == DITTO_IMPLEMENTATION_DEFAULT &&
                   (t->seed >> ditto_replica_id(self) % 64 & 1) != 0;
    const ditto_reduce_options *options = without ? NULL : &o;
    switch (t->kind) {
    case ALL_REDUCE:
        if (!t->started)
            return ditto_all_reduce(self, src, dst, t->count, t->dtype, t->op, options);
        DITTO_TRY(ditto_all_reduce_start(self, src, dst, t->count, t->dtype, t->op, options, &pending));
        return ditto_wait(self, &pending, NULL);
    case REDUCE:
        return ditto_reduce_to_root(self, src, dst, t->count, t->dtype, t->op, t->root, options);
    case BROADCAST:
        return ditto_broadcast_from_root(self, dst, t->count, t->dtype, t->root, options);
    case SCAN:
        return ditto_scan(self, src, dst, t->count, t->dtype, t->op, options);
    case SCAN_EXCLUSIVE:
        return ditto_scan_exclusive(self, src, dst, t->count, t->dtype, t->op, options);
    case REDUCE_SCATTER:
        if (!t->started)
            return ditto_reduce_scatter(self, src, dst, t->count, NULL, t->dtype, t->op, options);
        DITTO_TRY(ditto_reduce_scatter_start(self, src, dst, t->count, t->dtype, t->op, options, &pending));
        return ditto_wait(self, &pending, NULL);
    case REDUCE_SCATTER_UNEVEN:
        return ditto_reduce_scatter(self, src, dst, 0, t->counts, t->dtype, t->op, options);
    case ALL_GATHER:
        if (!t->started)
            return ditto_all_gather(self, src, dst, t->count, NULL, t->dtype, options);
        DITTO_TRY(ditto_all_gather_start(self, src, dst, t->count, t->dtype, options, &pending));
        return ditto_wait(self, &pending, NULL);
    case ALL_GATHER_UNEVEN:
        return ditto_all_gather(self, src, dst, 0, t->counts, t->dtype, options);
    case GATHER:
        return ditto_gather_to_root(self, src, dst, t->count, NULL, NULL, t->dtype, t->root, options);
    case GATHER_UNEVEN:
        return ditto_gather_to_root(self, src, dst, 0, t->counts, NULL, t->dtype, t->root, options);
    case SCATTER:
        return ditto_scatter_from_root(self, src, dst, t->count, NULL, NULL, t->dtype, t->root, options);
    case SCATTER_UNEVEN:
        return ditto_scatter_from_root(self, src, dst, 0, t->counts, NULL, t->dtype, t->root, options);
    case ALL_TO_ALL:
        if (!t->started)
            return ditto_all_to_all(self, src, dst, t->count, NULL, t->dtype, options);
        DITTO_TRY(ditto_all_to_all_start(self, src, dst, t->count, t->dtype, options, &pending));
        return ditto_wait(self, &pending, NULL);
    default: {
        uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
        size_t counts[DITTO_MAX_REPLICAS];
        for (uint32_t i = 0; i < n; i++)
            counts[i] = own_part_of(t, id, i, n);
        return ditto_all_to_all(self, src, dst, 0,
                                &(ditto_all_to_all_parts){ .src_counts = counts, .dst_counts = counts },
                                t->dtype, options);
    }
    }
}

/* The offsets of source and destination in the buffer of an operation in place. */
static void offsets_in_place(const struct task *t, uint32_t id, size_t *src, size_t *dst)
{
    bool has_root = t->kind >= GATHER, is_root = id == t->root;
    *src = gathers(t) && (!has_root || is_root) ? before(t, id) : 0;
    *dst = has_parts(t) && !gathers(t) && (!has_root || (is_root && scatters(t))) ? before(t, id) : 0;
}

/* Makes the call with the floating-point environment of the task, on which the results must not depend. */
static ditto_status call_in_environment(ditto_replica *self, struct task *t, const void *src, void *dst)
{
#if defined(__x86_64__)
    uint32_t mxcsr = __builtin_ia32_stmxcsr();
    if (t->flush_to_zero)
        __builtin_ia32_ldmxcsr((mxcsr | 0x8040u) ^ 0x2000u); /* denormals are 0, and it rounds down */
    uint32_t set = __builtin_ia32_stmxcsr() & 0xe040u;
    ditto_status status = call(self, t, src, dst);
    EXPECT(&t->report, (__builtin_ia32_stmxcsr() & 0xe040u) == set);
    __builtin_ia32_ldmxcsr(mxcsr);
    return status;
#else
    return call(self, t, src, dst);
#endif
}

static ditto_status on_replica(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    size_t size = ditto_dtype_bytes(t->dtype), in = brings(t, id, n), out = receives(t, id, n), src_at = 0,
           dst_at = 0;
    bool one_buffer = t->in_place || t->kind == BROADCAST;
    size_t whole = in > out ? in : out;
    char *a = malloc((one_buffer ? whole : in) * size + 1), *b = one_buffer ? a : malloc(out * size + 1);
    if (one_buffer)
        offsets_in_place(t, id, &src_at, &dst_at);
    memset(a, 0x5a, (one_buffer ? whole : in) * size + 1);
    if (t->kind != BROADCAST || id == t->root)
        fill(t, id, in, a + src_at * size);
    char *kept = malloc(whole * size + 1);
    memcpy(kept, a, (one_buffer ? whole : in) * size);
    ditto_status status = call_in_environment(self, t, a + src_at * size, b + dst_at * size);
    memcpy(t->result[id], b + dst_at * size, out * size);
    if (status == DITTO_OK) { /* once more, with the same buffers */
        memset(b, 0x5a, (one_buffer ? whole : out) * size);
        memcpy(a, kept, (one_buffer ? whole : in) * size);
        status = call_in_environment(self, t, a + src_at * size, b + dst_at * size);
        EXPECT(&t->report, status != DITTO_OK || memcmp(t->result[id], b + dst_at * size, out * size) == 0);
    }
    /* The source is not written. */
    if (status == DITTO_OK && !one_buffer)
        EXPECT(&t->report, memcmp(kept, a, in * size) == 0);
    /* In place, the part of the source that is not the destination is not written. */
    if (status == DITTO_OK && t->in_place && out < in)
        EXPECT(&t->report, memcmp(kept, a, dst_at * size) == 0 &&
                               memcmp(kept + (dst_at + out) * size, a + (dst_at + out) * size,
                                      (in - dst_at - out) * size) == 0);
    if (!one_buffer)
        free(b);
    free(a);
    free(kept);
    return status;
}

static struct reference_tally tally;

static void expect_element(const struct task *t, uint32_t n, char *const *input, uint32_t replica, size_t i)
{
    size_t size = ditto_dtype_bytes(t->dtype);
    const char *found = (const char *)t->result[replica] + i * size;
    const void *source[DITTO_MAX_REPLICAS];
    char expected[16];
    if (t->kind == BROADCAST || gathers(t) || scatters(t) || is_all_to_all(t)) {
        uint32_t from = t->root;
        size_t at = scatters(t) ? before(t, replica) + i : i;
        if (gathers(t))
            for (from = 0; at >= part_of(t, from); from++)
                at -= part_of(t, from);
        if (is_all_to_all(t)) {
            for (from = 0; at >= own_part_of(t, replica, from, n); from++)
                at -= own_part_of(t, replica, from, n);
            at += own_before(t, from, replica, n);
        }
        if (memcmp(found, input[from] + at * size, size) != 0)
            fail_msg("kind %d of %u: element %zu of replica %u is not replica %u's", t->kind, n, i, replica,
                     from);
        return;
    }
    size_t at = has_parts(t) ? before(t, replica) + i : i;
    for (uint32_t r = 0; r < n; r++)
        source[r] = input[r] + at * size;
    uint32_t blocks = t->blocks > 1 ? t->blocks : 1, values = n;
    if (scans(t)) {
        reference_scan(t->dtype, t->op, source, n, blocks, replica, t->kind == SCAN_EXCLUSIVE, expected);
        values = replica + (t->kind == SCAN);
    } else {
        reference_reduce_blocks(t->dtype, t->op, source, n, blocks, expected);
    }
    if (!reference_same(t->dtype, expected, found))
        fail_msg("kind %d, %s %s of %u in %u blocks, implementation %d: element %zu of replica %u differs "
                 "from the tree",
                 t->kind, ditto_dtype_name(t->dtype), ditto_op_name(t->op), n, t->blocks, t->implementation,
                 i, replica);
    tally.differing_elements += reference_differs_from_left_fold(t->dtype, t->op, source, values, found);
}

static void run_and_compare(ditto_strategy *strategy, struct task *t)
{
    uint32_t n = ditto_strategy_num_replicas(strategy);
    size_t size = ditto_dtype_bytes(t->dtype);
    char *input[DITTO_MAX_REPLICAS];
    size_t differing = tally.differing_elements;
    for (uint32_t r = 0; r < n; r++)
        t->result[r] = malloc(receives(t, r, n) * size + 1);
    run_all(strategy, on_replica, t, &t->report);
    for (uint32_t r = 0; r < n; r++) {
        input[r] = malloc(brings(t, r, n) * size + 1);
        fill(t, r, brings(t, r, n), input[r]);
    }
    for (uint32_t r = 0; r < n; r++) {
        /* All replicas have the same bits. */
        if (r > 0 && !has_parts(t) && !scans(t) && t->kind != REDUCE) {
            assert_memory_equal(t->result[r], t->result[0], receives(t, r, n) * size);
            continue;
        }
        for (size_t i = 0; i < receives(t, r, n); i++)
            expect_element(t, n, input, r, i);
        tally.elements += receives(t, r, n);
    }
    tally.cases++;
    tally.differing_cases += tally.differing_elements != differing;
    for (uint32_t r = 0; r < n; r++) {
        free(input[r]);
        free(t->result[r]);
    }
}

static void choose_type(struct task *t, uint64_t *seed)
{
    do {
        t->dtype = (ditto_dtype)(1 + test_random(seed) % DTI_NUM_DTYPES);
        t->op = (ditto_op)(1 + test_random(seed) % DITTO_XOR);
    } while (!reference_has(t->dtype, t->op) || (scans(t) && t->op == DITTO_MEAN));
    /* At least half of the tasks are sums of floats, whose bits depend on the order. */
    if (test_random(seed) % 2 == 0) {
        t->dtype = test_random(seed) % 2 == 0 ? DITTO_F32 : DITTO_BF16;
        t->op = DITTO_SUM;
    }
}

static struct task random_task(uint32_t n, uint64_t *seed)
{
    static const size_t counts[] = { 0, 1, 2, 5, 16, 33, 130, 500, 1025, 3000, 9001 };
    struct task t = { .kind = (enum kind)(test_random(seed) % KINDS),
                      .root = (uint32_t)(test_random(seed) % n) };
    size_t limit = n > 12 ? 6 : sizeof counts / sizeof counts[0];
    t.count = counts[test_random(seed) % limit] / (has_parts(&t) && n > 3 ? 3 : 1);
    t.count /= is_all_to_all(&t) && n > 3 ? 3 : 1;
    for (uint32_t i = 0; i < n; i++)
        t.counts[i] = test_random(seed) % 3 == 0 ? 0 : test_random(seed) % (2 * t.count + 2);
    choose_type(&t, seed);
    t.in_place = test_random(seed) % 2 == 0;
    t.implementation = (ditto_implementation)(test_random(seed) % 3);
    t.flush_to_zero = test_random(seed) % 4 == 0;
    t.seed = test_random(seed);
    return t;
}

/* A strategy whose groups have `near` replicas, or the groups of this machine if `near` is 0. The kernels,
 * streaming stores, placement and limit of small messages depend on `near` too. They must not change the
 * results. With groups of four all replicas share one PU. */
static ditto_strategy *make_tuned(uint32_t n, uint32_t near, uint32_t blocks)
{
    ditto_placement_options placing = DITTO_PLACEMENT_OPTIONS_INIT;
    uint32_t pus[DITTO_MAX_REPLICAS];
    ditto_tuning tuning = { .struct_size = sizeof tuning,
                            .near_replicas = near,
                            .block_bytes = 4096,
                            .stream_bytes = near % 2 == 1 ? 1 : 0 };
    tuning.small_bytes = near == 2 ? 1 : 0; /* 1: mailboxes hold no payload of more than a byte */
    ditto_strategy_options options = OPTIONS(strategy, .tuning = &tuning, .order_blocks = blocks,
                                             .kernels = near == 3 ? DITTO_KERNELS_PORTABLE
                                                                  : DITTO_KERNELS_DEFAULT);
    if (near == 4) {
        pus[0] = (uint32_t)sched_getcpu();
        for (uint32_t i = 1; i < n; i++)
            pus[i] = pus[0];
        placing.pus = pus;
        placing.num_pus = n;
        placing.flags = DITTO_PLACEMENT_SHARE;
    } else {
        placing.num_replicas = n;
        placing.policy = near % 3 == 1 ? DITTO_PLACEMENT_COMPACT : DITTO_PLACEMENT_SPREAD;
    }
    options.placement_options = &placing;
    return make_strategy(n, &options);
}

static void every_operation_gives_the_bits_of_the_tree_with_every_algorithm(void **state)
{
    static const uint32_t replicas[] = { 1, 2, 3, 5, 6, 7, 8, 12, 64 };
    uint64_t seed = test_seed(4711);
    for (size_t k = 0; k < sizeof replicas / sizeof replicas[0] && replicas[k] <= most_replicas(); k++)
        for (uint32_t near = 0; near <= 5 && near <= replicas[k]; near++) {
            uint32_t blocks = near == 0 ? 0 : 1 + (uint32_t)(test_random(&seed) % replicas[k]);
            ditto_strategy *strategy = make_tuned(replicas[k], near, blocks);
            assert_ok(ditto_strategy_scope_enter(strategy));
            for (int trial = 0; trial < test_trials(replicas[k] > 12 ? 40 : 150); trial++) {
                struct task t = random_task(replicas[k], &seed);
                t.started = trial % 3 == 0;
                t.blocks = blocks;
                run_and_compare(strategy, &t);
            }
            assert_ok(ditto_strategy_scope_leave(strategy));
            assert_ok(ditto_strategy_destroy(strategy));
        }
    print_message("%zu of %zu cases and %zu of %zu elements differ from a left fold\n", tally.differing_cases,
                  tally.cases, tally.differing_elements, tally.elements);
    assert_true(tally.differing_elements > 0);
}

static void helpers_do_not_change_the_bits(void **state)
{
    static const uint32_t devices[] = { 2, 3, 8 };
    uint64_t seed = test_seed(77);
    for (int k = 0; k < 3; k++) {
        ditto_tuning tuning = { .struct_size = sizeof tuning, .helper_bytes = 1 };
        ditto_strategy *strategy = make_wide_strategy(2 + (uint32_t)k, devices[k],
                                                      &OPTIONS(strategy, .tuning = &tuning));
        for (int trial = 0; trial < test_trials(60); trial++) {
            struct task t = random_task(2 + (uint32_t)k, &seed);
            t.count = trial % 3 == 0 ? 60000 : t.count; /* several pieces */
            t.started = trial % 4 == 0;
            run_and_compare(strategy, &t);
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* The groups are the packages of the replicas if there are several, or else their nodes, or else their
 * caches. */
static uint32_t expected_groups(ditto_strategy *strategy)
{
    uint32_t number[3] = { 1, 1, 1 }, before[3] = { 0 };
    for (uint32_t i = 0; i < ditto_strategy_num_replicas(strategy); i++) {
        ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
        assert_ok(ditto_strategy_replica_info(strategy, i, 0, &info));
        uint32_t here[3] = { info.planned.pu.package, info.planned.pu.memory_node, info.planned.pu.llc };
        for (int k = 0; k < 3; k++) {
            number[k] += i > 0 && here[k] != before[k];
            before[k] = here[k];
        }
    }
    return number[0] > 1 ? number[0] : number[1] > 1 ? number[1] : number[2];
}

/* The groups come from the topology of this machine. The test matters on machines with several nodes
 * (tests/numa). */
static void groups_of_this_machine_do_not_change_the_bits(void **state)
{
    uint64_t seed = test_seed(31);
    for (uint32_t n = 2; n <= 8; n *= 2) {
        ditto_strategy *strategy = make_strategy(n, NULL);
        uint32_t groups = dti_team_sync(dti_team_of(strategy))->groups.groups;
        assert_int_equal(groups, expected_groups(strategy));
        assert_ok(ditto_strategy_scope_enter(strategy));
        /* Few trials, because an emulated machine with more CPUs than its host is slow. */
        for (uint32_t trial = 0; trial < 120 / n; trial++) {
            struct task t = random_task(n, &seed);
            t.implementation = trial % 4 == 0 ? DITTO_IMPLEMENTATION_FLAT : DITTO_IMPLEMENTATION_HIERARCHICAL;
            t.started = trial % 5 == 0;
            run_and_compare(strategy, &t);
        }
        assert_ok(ditto_strategy_scope_leave(strategy));
        print_message("  %u replicas in %u groups: the bits of the tree\n", n, groups);
        assert_ok(ditto_strategy_destroy(strategy));
    }
    print_message("%zu cases\n", tally.cases);
}

/* -- Lists, user functions, slices and block sums with the groups of this machine. Sums of small integers are
 * exact. -- */

enum { WIDTH = 3000 };

static ditto_status add_all(void *out, const void *left, const void *right, size_t count, void *user)
{
    for (size_t i = 0; i < count; i++)
        ((float *)out)[i] = ((const float *)left)[i] + ((const float *)right)[i];
    return DITTO_OK;
}

static ditto_status reduce_otherwise(ditto_replica *self, void *argument)
{
    struct report *r = argument;
    uint32_t n = ditto_num_replicas(self), id = ditto_replica_id(self);
    float a[WIDTH], b[WIDTH], dense[4 * 8] = { 0 }, all = (float)(n * (n + 1) / 2), sum;
    int64_t rows[2] = { id % 4, 3 };
    ditto_slices in = { rows, a, 2, 8, DITTO_F32 };
    for (int i = 0; i < WIDTH; i++)
        a[i] = (float)(id + 1);
    ditto_list_item item[2] = { { a, b, 1000, DITTO_F32, NULL },
                                { a + 1000, b + 1000, WIDTH - 1000, DITTO_F32, NULL } };
    ditto_reduce_options o = OPTIONS(reduce, .implementation = DITTO_IMPLEMENTATION_HIERARCHICAL);
    DITTO_TRY(ditto_all_reduce_list(self, item, 2, DITTO_SUM, &o));
    EXPECT(r, b[0] == all && b[999] == all && b[1000] == all && b[WIDTH - 1] == all);
    memset(b, 0, sizeof b);
    DITTO_TRY(ditto_all_reduce_with(self, a, b, WIDTH, sizeof *a, add_all, NULL, &o));
    EXPECT(r, b[0] == all && b[WIDTH - 1] == all);
    DITTO_TRY(add_slices_to_dense(self, &in, dense, 4, DITTO_SUM, &o));
    float last = all;
    for (uint32_t i = 3; i < n; i += 4)
        last += (float)(i + 1);
    EXPECT(r, dense[3 * 8] == last && dense[3 * 8 + 7] == last);
    DITTO_TRY(ditto_block_sum(self, a, &sum, WIDTH, DITTO_F32, &o));
    EXPECT(r, sum == all * WIDTH);
    return DITTO_OK;
}

static void lists_functions_slices_and_block_sums_work_with_groups(void **state)
{
    for (uint32_t n = 2; n <= 8; n *= 2) {
        struct report report = { 0 };
        ditto_strategy *strategy = make_strategy(n, NULL);
        for (int i = 0; i < 5; i++)
            run_all(strategy, reduce_otherwise, &report, &report);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* All replicas have one source, which replica 0 writes as soon as its own call has returned. */
struct shared_source {
    struct report report;
    float source[512];
};

static ditto_status share_source(ditto_replica *self, void *argument)
{
    struct shared_source *s = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    float out[512];
    for (int round = 1; round <= test_trials(20000); round++)
        for (size_t count = 1; count <= 512; count *= 512) {
            float expected = (float)(round % 1000) + (count == 1 ? 0.5f : 0);
            for (size_t i = 0; id == 0 && i < count; i++)
                s->source[i] = expected;
            DITTO_TRY(ditto_barrier(self, NULL));
            DITTO_TRY(ditto_all_reduce(self, s->source, out, count, DITTO_F32, DITTO_SUM, NULL));
            /* Replica 0 has begun to write other numbers when a slower replica comes here. */
            EXPECT(&s->report, out[0] == expected * (float)n && out[count - 1] == expected * (float)n);
        }
    return DITTO_OK;
}

static void a_shared_source_may_be_written_when_the_own_call_has_returned(void **state)
{
    for (uint32_t n = 1; n <= 3; n++) {
        struct shared_source s = { 0 };
        run_once(n, NULL, share_source, &s, &s.report);
    }
}

/* With an argument, only the tests for emulated machines run. */
int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_of_this_machine_do_not_change_the_bits),
        cmocka_unit_test(lists_functions_slices_and_block_sums_work_with_groups),
        cmocka_unit_test(every_operation_gives_the_bits_of_the_tree_with_every_algorithm),
        cmocka_unit_test(helpers_do_not_change_the_bits),
        cmocka_unit_test(a_shared_source_may_be_written_when_the_own_call_has_returned),
    };
    const struct CMUnitTest in_guest[] = { tests[0], tests[1] };
    return count > 1 ? cmocka_run_group_tests(in_guest, NULL, NULL)
                     : cmocka_run_group_tests(tests, NULL, NULL);
}
