/* src/cluster/header_memory.c - the memory of headers, from the beginning of a cluster to its end. See
 * header.h. */
#include "base/errors/status.h"
#include "cluster/header_private.h"

#include <stdlib.h>
#include <string.h>

#define WITHDRAW_MS 1000

/* Directly, a header takes one message time and H - 1 messages from each host. In steps, it takes log2 H of
 * both. docs/adr/0029-headers-between-hosts.md has the figures. */
uint32_t dti_most_direct_hosts = 16;

static bool is_withdrawn(void *argument)
{
    ditto_cluster *cluster = argument;
    bool all = cluster->unfinished_sends == 0;
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++)
        all &= dti_withdraw(cluster, &cluster->headers->peer[h].receive);
    return all;
}

ditto_status dti_headers_withdraw(ditto_cluster *cluster)
{
    /* The wire may need to be driven before a receive is withdrawn, and the last header may be on its way. If
     * the time passes, that is no error. */
    struct dti_limits limits = { .deadline = { .timeout_ms = WITHDRAW_MS } };
    enum dti_wait_end end = dti_cluster_wait(cluster, &limits, is_withdrawn, cluster);
    return end == DTI_WAIT_FAILED ? dti_error_get()->status : DITTO_OK;
}

void dti_headers_free(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    if (headers == NULL)
        return;
    free(headers->peer);
    free(headers->memory);
    free(headers);
    cluster->headers = NULL;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Returns the most bytes of a message with the headers of `hosts` hosts. Each header has its payload, or the
 * payloads are combined into one. If calls differ, headers without a payload may follow the combined one. */
static size_t step_bytes(const ditto_cluster *cluster, uint32_t hosts)
{
    size_t each = sizeof(struct dti_header) + dti_header_payload(cluster);
    return larger(hosts * each, hosts * sizeof(struct dti_header) + DTI_HEADER_COMBINED_PAYLOAD);
}

/* Returns the most bytes of a message from a host. */
static size_t message_bytes(const ditto_cluster *cluster, uint32_t host)
{
    size_t header = sizeof(struct dti_header) + dti_header_payload(cluster),
           last = sizeof(struct dti_header) + dti_last_bytes(cluster);
    if (!cluster->headers->goes_in_steps)
        return larger(header, last);
    uint32_t sent = dti_header_step_from(cluster, host);
    return sent == 0 ? last : larger(step_bytes(cluster, sent), last);
}

/* Returns the bytes of the buffer in which this host's message grows. Combined messages stand behind each
 * other in it. */
static size_t out_bytes(const ditto_cluster *cluster)
{
    uint32_t hosts = cluster->wire.num_hosts, steps = 0;
    if (!cluster->headers->goes_in_steps)
        return sizeof(struct dti_header) + dti_header_payload(cluster);
    while (1u << steps < hosts)
        steps++;
    return step_bytes(cluster, hosts) + steps * (sizeof(struct dti_header) + DTI_HEADER_COMBINED_PAYLOAD);
}

/* Returns the next `bytes` of `memory`, or NULL if there is no memory yet. */
static unsigned char *place(unsigned char *memory, size_t *at, size_t bytes)
{
    unsigned char *placed = memory != NULL ? memory + *at : NULL;
    *at += (bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE;
    return placed;
}

/* Divides the memory among the buffers. Returns its size. */
static size_t lay_out(ditto_cluster *cluster, unsigned char *memory)
{
    struct dti_headers *headers = cluster->headers;
    uint32_t hosts = cluster->wire.num_hosts;
    size_t at = 0;
    for (int i = 0; i < 2; i++)
        headers->out[i] = place(memory, &at, out_bytes(cluster));
    headers->out_last = place(memory, &at, sizeof(struct dti_header) + dti_last_bytes(cluster));
    for (uint32_t h = 0; h < hosts; h++) {
        struct dti_peer *peer = &headers->peer[h];
        peer->capacity = message_bytes(cluster, h);
        for (int i = 0; i < 2 && h != cluster->wire.host; i++)
            peer->in[i] = place(memory, &at, peer->capacity);
        peer->last = (struct dti_last_words *)(void *)place(memory, &at, dti_last_bytes(cluster));
    }
    return at;
}

void dti_headers_allocate(ditto_cluster *cluster)
{
    uint32_t hosts = cluster->wire.num_hosts;
    struct dti_headers *headers = calloc(1, sizeof *headers);
    cluster->headers = headers;
    if (headers == NULL)
        return;
    headers->goes_in_steps = hosts > dti_most_direct_hosts;
    headers->peer = calloc(hosts, sizeof *headers->peer);
    size_t bytes = headers->peer != NULL ? lay_out(cluster, NULL) : 0;
    headers->memory = bytes != 0 ? aligned_alloc(DTI_CACHE_LINE, bytes) : NULL;
    if (headers->memory == NULL) {
        dti_headers_free(cluster);
        return;
    }
    memset(headers->memory, 0, bytes);
    (void)lay_out(cluster, headers->memory);
}

ditto_status dti_headers_begin(ditto_cluster *cluster)
{
    dti_header_begin_epoch(cluster);
    return dti_header_receive_all(cluster);
}
