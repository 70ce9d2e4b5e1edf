/* src/cluster/header_steps.c - headers that reach all hosts in log2 H steps.
 *
 * Every host sees each other one at a place, and itself at place 0. If H is a power of two, hosts are the
 * corners of a cube, and the place is the exclusive or of both numbers. Otherwise they are a ring, and the
 * place is the distance upwards. In step s a host has the headers of the places 0 to 2^s - 1. It gets as many
 * more from the host at place 2^s, which has them in the same order, and sends its own ones to the host that
 * sees it at that place. The last step in a ring moves only what is missing. So each host sends and receives
 * log2 H messages (rounded up), instead of H - 1 (Bruck et al., IEEE TPDS 8(11), 1997; Thakur et al., IJHPCA
 * 19(1), 2005, for the cube).
 *
 * The message grows in the buffer of the exchange, and what is sent is the beginning of the message.
 *
 * In a cube, the hosts of a message are an aligned block of 2^s hosts, and the message that comes next is
 * from the block beside it. If the call combines (struct dti_intent), the headers of both are replaced by
 * one, and their payloads by one, which stand behind the old message in the buffer, because that one may
 * still be on its way. So a message stays as long as a payload, instead of growing with the number of hosts.
 * If calls differ, nobody reads payloads, and headers are passed on without them. */
#include "base/errors/status.h"
#include "cluster/header_private.h"

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

bool dti_headers_can_combine(const ditto_cluster *cluster)
{
    return cluster->headers->goes_in_steps && is_power_of_two(cluster->wire.num_hosts);
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

/* Returns the message of this host in the present exchange. */
static unsigned char *own_message(const struct dti_headers *headers)
{
    return headers->out[headers->number % 2] + headers->out_at;
}

/* Returns the bytes of the first headers of the own message. */
static size_t bytes_of(const struct dti_headers *headers, uint32_t count)
{
    size_t bytes = 0;
    if (count == headers->have)
        return headers->out_bytes;
    for (uint32_t i = 0; i < count; i++) /* in a ring, each header stands for one host */
        bytes += dti_header_bytes(header_at(own_message(headers), bytes));
    return bytes;
}

ditto_status dti_header_step_send(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    if (headers->have == cluster->wire.num_hosts)
        return DITTO_OK;
    uint32_t to = dti_header_host_before(cluster, headers->have);
    size_t bytes = bytes_of(headers, step_count(cluster, headers->have));
    headers->most_sent = bytes > headers->most_sent ? bytes : headers->most_sent;
    return dti_send_header(cluster, to, own_message(headers), bytes,
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

/* Returns true if a header has no longer payload than the call of this host allows. That of another call is
 * not read. */
static bool has_room(const ditto_cluster *cluster, const struct dti_header *header)
{
    size_t most = cluster->headers->combine != NULL ? DTI_HEADER_COMBINED_PAYLOAD
                                                    : dti_header_payload(cluster);
    return header->digest != cluster->headers->digest || dti_header_bytes(header) <= sizeof *header + most;
}

/* Returns true if the message has the headers of `count` hosts in the present exchange, and nothing else. */
static bool is_whole(const ditto_cluster *cluster, const unsigned char *message, size_t bytes, uint32_t count)
{
    const struct dti_headers *headers = cluster->headers;
    size_t at = 0;
    for (uint32_t hosts = 0; hosts < count;) {
        const struct dti_header *header = header_at(message, at);
        if (bytes - at < sizeof *header || dti_header_bytes(header) > bytes - at ||
            memchr(header->call_name, '\0', sizeof header->call_name) == NULL ||
            header->number != headers->number || header->epoch != dti_cluster_epoch(cluster) ||
            !has_room(cluster, header) || header->block > 16 || hosts + (1u << header->block) > count)
            return false;
        hosts += 1u << header->block;
        at += dti_header_bytes(header);
    }
    return at == bytes;
}

/* Returns true if all headers of the message are of the call that this host makes. */
static bool is_same_call(const struct dti_headers *headers, const unsigned char *message, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += dti_header_bytes(header_at(message, at)))
        if (header_at(message, at)->digest != headers->digest)
            return false;
    return true;
}

/* Adds the headers of a message to that of this host. Without their payloads, if nobody reads them. */
static void append(ditto_cluster *cluster, uint32_t host, const unsigned char *message, size_t bytes)
{
    struct dti_headers *headers = cluster->headers;
    bool is_read = headers->combine == NULL && is_same_call(headers, message, bytes);
    uint32_t place = 0;
    for (size_t at = 0; at < bytes; at += dti_header_bytes(header_at(message, at))) {
        struct dti_header *to = (struct dti_header *)(void *)(own_message(headers) + headers->out_bytes);
        memcpy(to, message + at, is_read ? dti_header_bytes(header_at(message, at)) : sizeof *to);
        if (!is_read)
            to->payload_lines = 0;
        headers->out_bytes += dti_header_bytes(to);
        for (uint32_t end = place + (1u << to->block); place < end; place++)
            headers->peer[host_at(cluster, host, place)].known[headers->number % 2] = to;
    }
}

/* Returns true if the message of a block of hosts can be combined with that of this one. */
static bool combines(const struct dti_headers *headers, const unsigned char *message, uint32_t count)
{
    const struct dti_header *own = header_at(own_message(headers), 0), *other = header_at(message, 0);
    return headers->combine != NULL && 1u << own->block == headers->have && 1u << other->block == count &&
           other->kind == own->kind && other->digest == own->digest;
}

/* Replaces the message of this host by one header of both blocks, which have `count` hosts each. */
static void combine(ditto_cluster *cluster, uint32_t host, const unsigned char *message, uint32_t count)
{
    struct dti_headers *headers = cluster->headers;
    uint32_t first = cluster->wire.host & ~(2 * count - 1);
    const struct dti_header *own = header_at(own_message(headers), 0), *other = header_at(message, 0);
    const struct dti_header *low = host > cluster->wire.host ? own : other, *high = low == own ? other : own;
    headers->out_at += headers->out_bytes;
    struct dti_header *both = (struct dti_header *)(void *)own_message(headers);
    *both = *own;
    both->block++;
    size_t bytes = headers->combine(headers->context, first, count, low + 1, high + 1, both + 1);
    both->payload_lines = (uint16_t)((bytes + DTI_HEADER_LINE - 1) / DTI_HEADER_LINE);
    headers->out_bytes = dti_header_bytes(both);
    for (uint32_t h = first; h < first + 2 * count; h++)
        headers->peer[h].known[headers->number % 2] = both;
}

ditto_status dti_header_step_add(ditto_cluster *cluster, uint32_t host)
{
    struct dti_headers *headers = cluster->headers;
    struct dti_peer *peer = &headers->peer[host];
    const unsigned char *message = peer->step;
    uint32_t count = dti_header_step_from(cluster, host);
    peer->step = NULL;
    if (!is_whole(cluster, message, peer->step_bytes, count))
        return DTI_FAIL(DITTO_ERR_SYSTEM,
                        "the wire delivered a message from host %u (%s) that is not %u headers of exchange "
                        "%llu: it has damaged it",
                        host, cluster->name[host], count, (unsigned long long)headers->number);
    if (combines(headers, message, count))
        combine(cluster, host, message, count);
    else
        append(cluster, host, message, peer->step_bytes);
    headers->have += count;
    return dti_header_step_send(cluster);
}
