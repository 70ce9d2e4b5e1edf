/* src/hosts/header_steps.c - headers that reach all hosts in log2 H steps.
 *
 * Hosts are a ring. In step s a host has the headers of 2^s hosts, from its own one upwards. It sends them to
 * the host that is 2^s below, and adds those that come from the host 2^s above. The last step moves only
 * what is missing. So each host sends and receives log2 H messages (rounded up), instead of H - 1 (Bruck et
 * al., IEEE TPDS 8(11), 1997). The message grows in the buffer of the exchange, and what is sent is always
 * its beginning. */
#include "base/errors/status.h"
#include "hosts/header_private.h"

#include <string.h>

/* Returns the distance from this host up to another one. */
static uint32_t distance_to(const ditto_cluster *cluster, uint32_t host)
{
    uint32_t hosts = cluster->wire.num_hosts;
    return (host + hosts - cluster->wire.host) % hosts;
}

/* Returns the number of headers that a host with `have` of them sends next. */
static uint32_t step_count(const ditto_cluster *cluster, uint32_t have)
{
    uint32_t left = cluster->wire.num_hosts - have;
    return left < have ? left : have;
}

uint32_t dti_header_step_from(const ditto_cluster *cluster, uint32_t host)
{
    uint32_t distance = distance_to(cluster, host);
    bool is_power_of_two = distance != 0 && (distance & (distance - 1)) == 0;
    return is_power_of_two ? step_count(cluster, distance) : 0;
}

bool dti_header_step_is_next(const ditto_cluster *cluster, uint32_t host)
{
    return distance_to(cluster, host) == cluster->headers->have;
}

static const struct dti_header *header_at(const unsigned char *message, size_t at)
{
    return (const struct dti_header *)(const void *)(message + at);
}

/* Returns the bytes of the first headers of the own message. */
static size_t bytes_of(const struct dti_headers *headers, uint32_t count)
{
    size_t bytes = 0;
    if (count == headers->have)
        return headers->out_bytes;
    for (uint32_t i = 0; i < count; i++)
        bytes += dti_header_bytes(header_at(headers->out[headers->number % 2], bytes));
    return bytes;
}

ditto_status dti_header_step_send(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    uint32_t hosts = cluster->wire.num_hosts;
    if (headers->have == hosts)
        return DITTO_OK;
    uint32_t to = (cluster->wire.host + hosts - headers->have) % hosts;
    return dti_send_header(cluster, to, headers->out[headers->number % 2],
                           bytes_of(headers, step_count(cluster, headers->have)),
                           &headers->peer[to].send[headers->number % 2]);
}

/* Returns true if the message has this number of headers of the present exchange, and nothing else. */
static bool is_whole(const ditto_cluster *cluster, const unsigned char *message, size_t bytes, uint32_t count)
{
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct dti_header *header = header_at(message, at);
        if (bytes - at < sizeof *header || dti_header_bytes(header) > bytes - at ||
            dti_header_bytes(header) > sizeof *header + dti_header_payload(cluster) ||
            header->number != cluster->headers->number || header->epoch != dti_cluster_epoch(cluster))
            return false;
        at += dti_header_bytes(header);
    }
    return at == bytes;
}

ditto_status dti_header_step_add(ditto_cluster *cluster, uint32_t host)
{
    struct dti_headers *headers = cluster->headers;
    struct dti_peer *peer = &headers->peer[host];
    const unsigned char *message = (const unsigned char *)dti_header_arrived(peer);
    unsigned char *to = headers->out[headers->number % 2] + headers->out_bytes;
    uint32_t count = dti_header_step_from(cluster, host);
    if (!is_whole(cluster, message, peer->receive.bytes, count))
        return DTI_FAIL(DITTO_ERR_SYSTEM,
                        "the wire delivered a message from host %u (%s) that is not %u headers of exchange "
                        "%llu: it has damaged it",
                        host, cluster->name[host], count, (unsigned long long)headers->number);
    memcpy(to, message, peer->receive.bytes);
    headers->out_bytes += peer->receive.bytes;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t of = (host + i) % cluster->wire.num_hosts;
        headers->peer[of].known[headers->number % 2] = (const struct dti_header *)(const void *)to;
        to += dti_header_bytes(headers->peer[of].known[headers->number % 2]);
    }
    headers->have += count;
    return dti_header_step_send(cluster);
}
