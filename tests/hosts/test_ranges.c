/* tests/hosts/test_ranges.c - which host has which replicas. */
#include "support/support.h"

#include "cluster/ranges.h"

static void every_replica_is_in_the_range_of_its_host(void **state)
{
    uint64_t seed = test_seed(3);
    for (int trial = 0; trial < 200; trial++) {
        uint32_t start[41] = { 0 }, hosts = 1 + (uint32_t)(test_random(&seed) % 40);
        for (uint32_t h = 0; h < hosts; h++)
            start[h + 1] = start[h] + 1 + (uint32_t)(test_random(&seed) % 9);
        struct dti_ranges ranges = { hosts, start };
        for (uint32_t r = 0; r < dti_ranges_replicas(&ranges); r++) {
            uint32_t host = dti_ranges_host_of(&ranges, r);
            assert_true(host < hosts && start[host] <= r && r < start[host + 1]);
        }
    }
}

static void shares_are_even_and_the_first_hosts_have_the_rest(void **state)
{
    for (uint32_t n = 1; n <= 70; n++)
        for (uint32_t hosts = 1; hosts <= n; hosts++) {
            uint32_t sum = 0;
            for (uint32_t h = 0; h < hosts; h++) {
                uint32_t share = dti_ranges_share(n, hosts, h);
                assert_true(share == n / hosts || (share == n / hosts + 1 && h < n % hosts));
                sum += share;
            }
            assert_int_equal(sum, n);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_replica_is_in_the_range_of_its_host),
        cmocka_unit_test(shares_are_even_and_the_first_hosts_have_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
