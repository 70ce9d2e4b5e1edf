/* tests/sync/plans/test_volume.c - what hosts would send to each other: every byte that is sent is received,
 * and the formulas of src/sync/plans/volume.h hold. */
#include "support/support.h"

#include "sync/plans/volume.h"

enum { MOST = 48 };

/* Ranges of hosts, and the tree over their replicas. */
struct cluster {
    uint32_t start[MOST + 1];
    struct dti_ranges ranges;
    struct dti_tree tree;
};

static void spread(struct cluster *c, uint32_t n, uint32_t hosts, uint32_t blocks)
{
    c->start[0] = 0;
    for (uint32_t h = 0; h < hosts; h++)
        c->start[h + 1] = c->start[h] + dti_ranges_share(n, hosts, h);
    c->ranges = (struct dti_ranges){ hosts, c->start };
    c->tree = (struct dti_tree){ n, blocks };
}

static struct dti_volume_size floats(size_t count)
{
    return (struct dti_volume_size){
        .count = count, .block_count = 1 << 18, .grain = 16, .element_bytes = 4, .accumulator_bytes = 4
    };
}

typedef struct dti_volume volume_fn(const struct dti_tree *tree, const struct dti_ranges *ranges,
                                    uint32_t host, const struct dti_volume_size *size);

static void expect_balance(volume_fn *volume, const struct cluster *c, const struct dti_volume_size *size)
{
    int64_t bytes = 0, messages = 0;
    for (uint32_t h = 0; h < c->ranges.hosts; h++) {
        struct dti_volume v = volume(&c->tree, &c->ranges, h, size);
        bytes += (int64_t)v.sent_bytes - (int64_t)v.received_bytes;
        messages += (int64_t)v.sent_messages - (int64_t)v.received_messages;
    }
    assert_int_equal(bytes, 0);
    assert_int_equal(messages, 0);
}

static void what_is_sent_is_received(void **state)
{
    uint64_t seed = test_seed(19);
    for (int trial = 0; trial < 300; trial++) {
        struct cluster c;
        uint32_t hosts = 1 + (uint32_t)(test_random(&seed) % MOST), n = hosts > 16 ? hosts : 16;
        n += (uint32_t)(test_random(&seed) % 200);
        spread(&c, n, hosts, (uint32_t)(test_random(&seed) % (n + 1)));
        struct dti_volume_size size = floats(test_random(&seed) % 2000000);
        if (trial % 2 == 1)
            size.element_bytes = 2; /* f16, whose accumulators are f32 */
        expect_balance(dti_volume_large, &c, &size);
        size.count %= 1000;
        expect_balance(dti_volume_small_direct, &c, &size);
        expect_balance(dti_volume_small_steps, &c, &size);
        spread(&c, n, 16, (uint32_t)(test_random(&seed) % (n + 1)));
        expect_balance(dti_volume_small_combined, &c, &size);
    }
}

static void a_host_that_is_one_part_sends_as_little_as_the_best_algorithm(void **state)
{
    for (uint32_t hosts = 2; hosts <= 32; hosts *= 2)
        for (uint32_t each = 1; each <= 100; each += 9) {
            struct cluster c;
            const struct dti_volume_size size = floats(1 << 20);
            uint64_t best = 2 * (uint64_t)size.count * 4 * (hosts - 1) / hosts;
            spread(&c, hosts * each, hosts, 0);
            assert_true(dti_volume_factor(&c.tree, &c.ranges) == 1);
            for (uint32_t h = 0; h < hosts; h++) {
                struct dti_volume v = dti_volume_large(&c.tree, &c.ranges, h, &size);
                assert_int_equal(v.sent_bytes, best);
                assert_int_equal(v.received_bytes, best);
                assert_int_equal(v.sent_messages, 4 * 2 * (hosts - 1)); /* four blocks */
            }
        }
}

static void parts_multiply_the_bytes_and_blocks_take_them_back(void **state)
{
    /* The most parts of a host, for 3 hosts of so many replicas. */
    static const uint32_t expected[][2] = {
        { 8, 4 }, { 16, 5 }, { 32, 6 }, { 64, 7 }, { 96, 7 }, { 128, 8 }
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        struct cluster c;
        uint32_t n = 3 * expected[i][0];
        const struct dti_volume_size size = floats(3 << 18);
        uint64_t most = 0, best = 2 * (uint64_t)size.count * 4 * 2 / 3;
        spread(&c, n, 3, 0);
        assert_true(dti_volume_factor(&c.tree, &c.ranges) == (expected[i][1] + 1) / 2.0);
        for (uint32_t h = 0; h < 3; h++) {
            struct dti_volume v = dti_volume_large(&c.tree, &c.ranges, h, &size);
            most = v.sent_bytes > most ? v.sent_bytes : most;
        }
        /* Slices of a block that is no multiple of 3 grains differ by a cache line. */
        assert_in_range(most, best * (expected[i][1] + 1) / 2 - 4096, best * (expected[i][1] + 1) / 2 + 4096);
        spread(&c, n, 3, 3);
        assert_true(dti_volume_factor(&c.tree, &c.ranges) == 1);
    }
}

static void partial_results_of_f16_are_twice_as_wide(void **state)
{
    struct cluster c;
    struct dti_volume_size size = floats(1 << 18);
    size.element_bytes = 2;
    spread(&c, 8, 4, 0);
    struct dti_volume v = dti_volume_large(&c.tree, &c.ranges, 1, &size);
    assert_int_equal(v.sent_bytes, ((uint64_t)size.count / 4) * 3 * (4 + 2));
    spread(&c, 4, 4, 0); /* a part of one replica is an element */
    v = dti_volume_large(&c.tree, &c.ranges, 1, &size);
    assert_int_equal(v.sent_bytes, ((uint64_t)size.count / 4) * 3 * (2 + 2));
}

static void small_messages_take_one_message_time_or_a_logarithm(void **state)
{
    struct cluster c;
    const struct dti_volume_size size = floats(10);
    for (uint32_t hosts = 1; hosts <= MOST; hosts++) {
        uint32_t steps = 0;
        while (1u << steps < hosts)
            steps++;
        spread(&c, 4 * hosts, hosts, hosts);
        struct dti_volume direct = dti_volume_small_direct(&c.tree, &c.ranges, 0, &size);
        struct dti_volume in_steps = dti_volume_small_steps(&c.tree, &c.ranges, 0, &size);
        assert_int_equal(direct.sent_messages, hosts - 1);
        assert_int_equal(direct.received_bytes, (hosts - 1) * 40);
        assert_int_equal(in_steps.sent_messages, steps);
        assert_int_equal(in_steps.received_bytes, (hosts - 1) * 40);
    }
}

static void blocks_that_are_parts_send_the_same_bytes_in_each_step(void **state)
{
    struct cluster c;
    const struct dti_volume_size size = floats(10);
    for (uint32_t hosts = 1, steps = 0; hosts <= 32; hosts *= 2, steps++) {
        spread(&c, 6 * hosts, hosts, 0);
        struct dti_volume v = dti_volume_small_combined(&c.tree, &c.ranges, hosts - 1, &size);
        assert_int_equal(v.sent_messages, steps);
        assert_int_equal(v.sent_bytes, steps * 40);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_is_received),
        cmocka_unit_test(a_host_that_is_one_part_sends_as_little_as_the_best_algorithm),
        cmocka_unit_test(parts_multiply_the_bytes_and_blocks_take_them_back),
        cmocka_unit_test(partial_results_of_f16_are_twice_as_wide),
        cmocka_unit_test(small_messages_take_one_message_time_or_a_logarithm),
        cmocka_unit_test(blocks_that_are_parts_send_the_same_bytes_in_each_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
