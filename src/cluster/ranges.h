/* src/cluster/ranges.h - which host has which replicas. Pure.
 *
 * The hosts of a cluster are numbered from 0. Each has a range of replica ids, one host after the other, and
 * at least one replica. */
#ifndef DTI_RANGES_H
#define DTI_RANGES_H

#include <stdint.h>

/* The limits of a cluster. */
#define DTI_MAX_HOSTS            1024u
#define DTI_MAX_CLUSTER_REPLICAS 65536u

struct dti_ranges {
    uint32_t hosts;

    /* [hosts + 1] Host h has replicas [start[h], start[h + 1]). start[0] is 0. */
    const uint32_t *start;
};

static inline uint32_t dti_ranges_replicas(const struct dti_ranges *r)
{
    return r->start[r->hosts];
}

/* Returns the host of a replica, which must exist. */
uint32_t dti_ranges_host_of(const struct dti_ranges *ranges, uint32_t replica);

/* Returns how many of n replicas host `host` has if they are spread evenly. The first n mod hosts hosts have
 * one more than the others. */
uint32_t dti_ranges_share(uint32_t n, uint32_t hosts, uint32_t host);

#endif
