/* src/cluster/ranges.c - finds hosts and equal shares. Pure. */
#include "cluster/ranges.h"

uint32_t dti_ranges_host_of(const struct dti_ranges *ranges, uint32_t replica)
{
    uint32_t low = 0, high = ranges->hosts;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (ranges->start[middle] <= replica)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint32_t dti_ranges_share(uint32_t n, uint32_t hosts, uint32_t host)
{
    return n / hosts + (host < n % hosts);
}
