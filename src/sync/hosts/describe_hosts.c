/* src/sync/hosts/describe_hosts.c - describes the hosts of a strategy. */
#include "base/text/text.h"
#include "sync/hosts/hosts.h"
#include "sync/plans/volume.h"

/* A table of so many hosts is written in full. */
#define MOST_HOSTS 16

void dti_hosts_describe(const struct dti_hosts *hosts, const struct dti_tree *tree, struct dti_text *text)
{
    const ditto_cluster *cluster = hosts->cluster;
    uint32_t count = dti_hosts_count(hosts);
    dti_text_add(text, "%u replicas on %u hosts, over %s%s\n", dti_ranges_replicas(&hosts->ranges), count,
                 cluster->wire.name,
                 cluster->life_line != NULL ? ""
                                            : "; without a life line, a host that is gone is noticed late");
    for (uint32_t h = 0; h < count; h++) {
        if (h >= MOST_HOSTS && h != dti_hosts_own(hosts))
            continue;
        dti_text_add(text, "  ");
        dti_describe_host(cluster, h, text);
        dti_text_add(text, "%s", h == dti_hosts_own(hosts) ? ", this one" : "");
        if (cluster->measured != NULL)
            dti_text_add(text, ": %.1f us for headers, %.0f MB/s to host %u",
                         (double)cluster->measured[h].header_us, (double)cluster->measured[h].mb_per_s,
                         (h + 1) % count);
        dti_text_add(text, "\n");
    }
    if (count > MOST_HOSTS)
        dti_text_add(text, "  and so on\n");
    struct dti_tree in_blocks = { tree->n, count };
    double factor = dti_volume_factor(tree, &hosts->ranges),
           better = dti_volume_factor(&in_blocks, &hosts->ranges);
    if (factor > 1)
        dti_text_add(text, "a host sends up to %.2f times the least bytes for a large message", factor);
    if (factor > better)
        dti_text_add(text, ", and %.2f times with order_blocks = %u, which changes the bits", better, count);
    if (factor > 1)
        dti_text_add(text, "\n");
}
