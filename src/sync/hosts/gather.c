/* src/sync/hosts/gather.c - gives data of each host to all hosts. See gather.h. */
#include "sync/hosts/gather.h"
#include "base/errors/status.h"
#include "sync/hosts/transfers.h"

#include <stdlib.h>
#include <string.h>

static size_t round_up(size_t bytes)
{
    return (bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE;
}

static ditto_status make_buffers(struct dti_hosts *hosts)
{
    if (hosts->gathered == NULL)
        hosts->gathered = calloc((size_t)dti_hosts_count(hosts) + 1, sizeof *hosts->gathered);
    if (hosts->gathering == NULL)
        hosts->gathering = dti_transfers_make();
    if (hosts->gathered == NULL || hosts->gathering == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for data of %u hosts", dti_hosts_count(hosts));
    return DITTO_OK;
}

/* Makes room for the data of all hosts, whose sizes are known, and sets where they are. */
static ditto_status make_room(struct dti_hosts *hosts)
{
    struct dti_gathered *of = hosts->gathered;
    size_t bytes = 0, messages = 0, own = dti_transfers_of(of[dti_hosts_own(hosts)].bytes);
    for (uint32_t h = 0; h < dti_hosts_count(hosts); h++) {
        bytes += round_up(of[h].bytes);
        messages += h == dti_hosts_own(hosts) ? 0 : dti_transfers_of(of[h].bytes) + own;
    }
    DTI_TRY(dti_transfers_reserve(hosts->gathering, bytes, messages));
    unsigned char *at = hosts->gathering->memory;
    for (uint32_t h = 0; h < dti_hosts_count(hosts); at += round_up(of[h++].bytes))
        of[h].data = at;
    return DITTO_OK;
}

/* Exchanges the data of all hosts in messages. */
static enum dti_verdict move(struct dti_hosts *hosts, const void *own_data, struct dti_limits *limits,
                             bool *late)
{
    struct dti_transfers *t = hosts->gathering;
    const struct dti_gathered *of = hosts->gathered;
    uint32_t count = dti_hosts_count(hosts), own = dti_hosts_own(hosts);
    if (make_room(hosts) != DITTO_OK)
        return DTI_HEADERS_FAILED;
    if (of[own].bytes != 0)
        memcpy(t->memory + (of[own].data - t->memory), own_data, of[own].bytes);
    for (uint32_t step = 1; step < count; step++) {
        uint32_t h = (own + step) % count;
        if (dti_transfers_receive(hosts->cluster, t, h, t->memory + (of[h].data - t->memory), of[h].bytes) !=
                DITTO_OK ||
            dti_transfers_send(hosts->cluster, t, h, of[own].data, of[own].bytes) != DITTO_OK)
            return DTI_HEADERS_FAILED;
    }
    return dti_transfers_await(hosts->cluster, t, limits, late);
}

enum dti_verdict dti_hosts_gather(struct dti_hosts *hosts, struct dti_intent *intent, const void *own,
                                  size_t bytes, struct dti_limits *limits, bool *late,
                                  const struct dti_gathered **out)
{
    unsigned char *payload = dti_header_out(hosts->cluster);
    uint64_t announced = bytes;
    size_t most = dti_header_payload(hosts->cluster) - DTI_RIDING_OFFSET; /* that ride */
    bool all_ride = true;
    if (make_buffers(hosts) != DITTO_OK)
        return DTI_HEADERS_FAILED;
    memcpy(payload, &announced, sizeof announced);
    if (bytes != 0 && bytes <= most)
        memcpy(payload + DTI_RIDING_OFFSET, own, bytes);
    intent->payload_bytes = DTI_RIDING_OFFSET + (bytes <= most ? bytes : 0);
    enum dti_verdict verdict = dti_headers_exchange(hosts->cluster, intent, limits);
    if (verdict == DTI_HEADERS_LATE)
        dti_headers_list_missing(hosts->cluster, late);
    if (verdict != DTI_HEADERS_EQUAL)
        return verdict;
    for (uint32_t h = 0; h < dti_hosts_count(hosts); h++) {
        const unsigned char *in = dti_header_in(hosts->cluster, h);
        memcpy(&announced, in, sizeof announced);
        hosts->gathered[h] = (struct dti_gathered){ in + DTI_RIDING_OFFSET, announced };
        all_ride &= announced <= most;
    }
    *out = hosts->gathered;
    return all_ride ? DTI_HEADERS_EQUAL : move(hosts, own, limits, late);
}
