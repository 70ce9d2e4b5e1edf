/* src/sync/hosts/transfers.c - messages of one call that are under way together. See transfers.h. */
#include "sync/hosts/transfers.h"
#include "base/errors/status.h"

#include <stdlib.h>
#include <string.h>

/* Data are cut into messages of at most this many bytes, because MPI counts bytes in an int. */
#define MESSAGE_BYTES ((size_t)256 << 20)

size_t dti_transfers_of(size_t bytes)
{
    return (bytes + MESSAGE_BYTES - 1) / MESSAGE_BYTES;
}

ditto_status dti_transfers_reserve(struct dti_transfers *t, size_t bytes, size_t messages)
{
    t->count = 0;
    if (bytes > t->capacity) {
        free(t->memory);
        t->memory = aligned_alloc(DTI_CACHE_LINE,
                                  (bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE);
        t->capacity = t->memory != NULL ? bytes : 0;
    }
    if (messages > t->most) {
        free(t->item);
        t->item = calloc(messages, sizeof *t->item);
        t->most = t->item != NULL ? messages : 0;
    }
    if (bytes > t->capacity || messages > t->most)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %zu bytes to and from other hosts", bytes);
    return DITTO_OK;
}

ditto_status dti_transfers_send(ditto_cluster *cluster, struct dti_transfers *t, uint32_t host,
                                const unsigned char *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += MESSAGE_BYTES) {
        size_t left = bytes - at;
        DTI_TRY(dti_send(cluster, host, data + at, left < MESSAGE_BYTES ? left : MESSAGE_BYTES,
                         &t->item[t->count]));
        t->count++;
    }
    return DITTO_OK;
}

ditto_status dti_transfers_receive(ditto_cluster *cluster, struct dti_transfers *t, uint32_t host,
                                   unsigned char *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += MESSAGE_BYTES) {
        size_t left = bytes - at;
        DTI_TRY(dti_receive(cluster, host, data + at, left < MESSAGE_BYTES ? left : MESSAGE_BYTES,
                            &t->item[t->count]));
        t->count++;
    }
    return DITTO_OK;
}

struct transfers_wait {
    ditto_cluster *cluster;
    const struct dti_transfers *transfers;
};
static bool is_over(void *argument)
{
    const struct transfers_wait *w = argument;
    size_t i = 0;
    while (i < w->transfers->count && !w->transfers->item[i].is_unfinished)
        i++;
    return i == w->transfers->count || dti_headers_end_early(w->cluster);
}

enum dti_verdict dti_transfers_await(ditto_cluster *cluster, struct dti_transfers *t,
                                     struct dti_limits *limits, bool *late)
{
    struct transfers_wait w = { cluster, t };
    bool any = false;
    enum dti_wait_end end = dti_cluster_wait(cluster, limits, is_over, &w);
    if (end == DTI_WAIT_FAILED)
        return DTI_HEADERS_FAILED;
    memset(late, 0, cluster->wire.num_hosts * sizeof *late);
    for (size_t i = 0; i < t->count; i++) {
        late[t->item[i].host] |= t->item[i].is_unfinished;
        any |= t->item[i].is_unfinished;
        if (t->item[i].is_unfinished || t->item[i].status == DITTO_OK)
            continue;
        DTI_FAIL(DITTO_ERR_SYSTEM, "the wire could not exchange data with host %u (%s)", t->item[i].host,
                 cluster->name[t->item[i].host]);
        return DTI_HEADERS_FAILED;
    }
    if (!any)
        return DTI_HEADERS_EQUAL;
    return end == DTI_WAIT_HOLDS  ? DTI_HEADERS_LAST
           : end == DTI_WAIT_LATE ? DTI_HEADERS_LATE
                                  : DTI_HEADERS_STOPPED;
}

struct dti_transfers *dti_transfers_make(void)
{
    struct dti_transfers *t = calloc(1, sizeof *t);
    if (t == NULL)
        DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for messages to other hosts");
    return t;
}

void dti_transfers_free(ditto_cluster *cluster, struct dti_transfers *t)
{
    if (t == NULL)
        return;
    if (cluster->is_poisoned) {
        dti_cluster_keep_memory(cluster, &t->kept);
        return;
    }
    free(t->item);
    free(t->memory);
    free(t);
}
