/* src/hosts/header_steps.c - headers that reach all hosts in log2 H steps.
 *
 * Every host sees each other one at a place, and itself at place 0. If H is a power of two, hosts are the
 * corners of a cube, and the place is the exclusive or of both numbers. Otherwise they are a ring, and the
 * place is the distance upwards. In step s a host has the headers of the places 0 to 2^s - 1. It gets as many
 * more from the host at place 2^s, which has them in the same order, and sends its own ones to the host that
 * sees it at that place. The last step in a ring moves only what is missing. So each host sends and receives
 * log2 H messages (rounded up), instead of H - 1 (Bruck et al., IEEE TPDS 8(11), 1997; Thakur et al., IJHPCA
 * 19(1), 2005, for the cube).
 *
 * The message grows in the buffer of the exchange, and what is sent is always its beginning. */
#include "base/errors/status.h"
#include "hosts/header_private.h"

#include <string.h>

static bool is_power_of_two(uint32_t x)
{
    return x != 0 && (x & (x - 1)) == 0;
}

/* Returns the host at a place as seen from `from`. */
static uint32_t host_at(const ditto_cluster *cluster, uint32_t from, uint32_t place)
{
    uint32_t hosts = cluster->wire.num_hosts;
    return is_power_of_two(hosts) ? from ^ place : (from + place) % hosts;
}

uint32_t dti_header_host_at(const ditto_cluster *cluster, uint32_t place)
{
    return host_at(cluster, cluster->wire.host, place);
}

uint32_t dti_header_host_before(const ditto_cluster *cluster, uint32_t place)
{
    uint32_t hosts = cluster->wire.num_hosts, host = cluster->wire.host;
    return is_power_of_two(hosts) ? host ^ place : (host + hosts - place) % hosts;
}

/* Returns the place of another host as seen from this one. */
static uint32_t place_of(const ditto_cluster *cluster, uint32_t host)
{
    uint32_t hosts = cluster->wire.num_hosts, own = cluster->wire.host;
    return is_power_of_two(hosts) ? host ^ own : (host + hosts - own) % hosts;
}

/* Returns the number of headers that a host with `have` of them sends next. */
static uint32_t step_count(const ditto_cluster *cluster, uint32_t have)
{
    uint32_t left = cluster->wire.num_hosts - have;
    return left < have ? left : have;
}

uint32_t dti_header_step_from(const ditto_cluster *cluster, uint32_t host)
{
    uint32_t place = place_of(cluster, host);
    return is_power_of_two(place) ? step_count(cluster, place) : 0;
}

bool dti_header_step_is_next(const ditto_cluster *cluster, uint32_t host)
{
    const struct dti_headers *headers = cluster->headers;
    return headers->peer[host].step != NULL && place_of(cluster, host) == headers->have;
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
    if (headers->have == cluster->wire.num_hosts)
        return DITTO_OK;
    uint32_t to = dti_header_host_before(cluster, headers->have);
    return dti_send_header(cluster, to, headers->out[headers->number % 2],
                           bytes_of(headers, step_count(cluster, headers->have)),
                           &headers->peer[to].send[headers->number % 2]);
}

ditto_status dti_header_send_question(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    for (uint32_t place = 1; place < cluster->wire.num_hosts; place *= 2) {
        uint32_t to = dti_header_host_before(cluster, place);
        DTI_TRY(dti_send_header(cluster, to, &headers->sent_question, sizeof headers->sent_question,
                                &headers->peer[to].send_question));
    }
    return DITTO_OK;
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
    const unsigned char *message = peer->step;
    size_t bytes = peer->step_bytes;
    unsigned char *to = headers->out[headers->number % 2] + headers->out_bytes;
    uint32_t count = dti_header_step_from(cluster, host);
    peer->step = NULL;
    if (!is_whole(cluster, message, bytes, count))
        return DTI_FAIL(DITTO_ERR_SYSTEM,
                        "the wire delivered a message from host %u (%s) that is not %u headers of exchange "
                        "%llu: it has damaged it",
                        host, cluster->name[host], count, (unsigned long long)headers->number);
    memcpy(to, message, bytes);
    headers->out_bytes += bytes;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t of = host_at(cluster, host, i);
        headers->peer[of].known[headers->number % 2] = (const struct dti_header *)(const void *)to;
        to += dti_header_bytes(headers->peer[of].known[headers->number % 2]);
    }
    headers->have += count;
    return dti_header_step_send(cluster);
}
