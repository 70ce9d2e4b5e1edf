/* src/sync/hosts/measure_hosts.c - measures what messages between hosts cost, for descriptions.
 *
 * The first strategy of a cluster measures two things on each host: how long it takes until the headers of
 * all hosts are there, which every small collective pays, and how fast data go to the next host while all
 * hosts send. No plan depends on the result. */
#include "base/errors/status.h"
#include "base/numbers/checksum.h"
#include "sync/hosts/hosts.h"
#include "sync/hosts/transfers.h"

#include <stdlib.h>
#include <string.h>

enum { EXCHANGES = 6, MESSAGES = 2 };

#define MESSAGE_BYTES ((size_t)1 << 20)

static ditto_status exchange(struct dti_hosts *hosts, const struct dti_measured_host *payload)
{
    struct dti_intent intent = { .kind = DTI_HEADER_CALL,
                                 .digest = dti_hash_bytes(DTI_HASH_SEED, "measure", 7),
                                 .name = "ditto_strategy_create" };
    if (payload != NULL) {
        memcpy(dti_header_out(hosts->cluster), payload, sizeof *payload);
        intent.payload_bytes = sizeof *payload;
    }
    return dti_hosts_exchange(hosts, &intent);
}

ditto_status dti_hosts_prepare_measuring(struct dti_hosts *hosts)
{
    ditto_cluster *cluster = hosts->cluster;
    if (cluster->measured != NULL)
        return DITTO_OK;
    struct dti_transfers *t = hosts->measuring = dti_transfers_make();
    hosts->measured = calloc(dti_hosts_count(hosts), sizeof *hosts->measured);
    if (t == NULL || hosts->measured == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to measure the network");
    DTI_TRY(dti_transfers_reserve(t, 2 * MESSAGE_BYTES, 2));
    memset(t->memory, 1, 2 * MESSAGE_BYTES); /* first touch */
    return DITTO_OK;
}

/* Sends a message to the next host, and takes that of the one before. */
static ditto_status pass_on(struct dti_hosts *hosts)
{
    uint32_t count = dti_hosts_count(hosts), own = dti_hosts_own(hosts);
    struct dti_transfers *t = hosts->measuring;
    struct dti_limits limits = { .deadline = { .timeout_ms = hosts->timeout_ms } };
    bool late[DTI_MAX_HOSTS];
    t->count = 0;
    DTI_TRY(dti_transfers_receive(hosts->cluster, t, (own + count - 1) % count, t->memory + MESSAGE_BYTES,
                                  MESSAGE_BYTES));
    DTI_TRY(dti_transfers_send(hosts->cluster, t, (own + 1) % count, t->memory, MESSAGE_BYTES));
    enum dti_verdict verdict = dti_transfers_await(hosts->cluster, t, &limits, late);
    return verdict == DTI_HEADERS_LATE ? dti_hosts_record_late(hosts, late, "ditto_strategy_create")
                                       : dti_hosts_record(hosts, verdict, "ditto_strategy_create");
}

ditto_status dti_hosts_measure(struct dti_hosts *hosts)
{
    struct dti_measured_host own = { 0 };
    /* Also if an error has ended the measuring on some hosts before, which then have no result. */
    if (hosts->is_measured)
        return DITTO_OK;
    /* The fastest counts: the others were disturbed, or waited for a host that was late. */
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < EXCHANGES; i++) {
        uint64_t begin = dti_now_ns();
        DTI_TRY(exchange(hosts, NULL));
        uint64_t took = dti_now_ns() - begin;
        least = took < least ? took : least;
    }
    own.header_us = (float)((double)least / 1000);
    least = UINT64_MAX;
    for (int i = 0; i < MESSAGES; i++) {
        DTI_TRY(exchange(hosts, NULL)); /* all begin together */
        uint64_t begin = dti_now_ns();
        if (pass_on(hosts) != DITTO_OK)
            return dti_hosts_close(hosts->cluster, hosts->timeout_ms);
        uint64_t took = dti_now_ns() - begin;
        least = took < least ? took : least;
    }
    own.mb_per_s = (float)((double)MESSAGE_BYTES * 1000 / (double)(least + 1));
    DTI_TRY(exchange(hosts, &own));
    for (uint32_t h = 0; h < dti_hosts_count(hosts); h++)
        memcpy(&hosts->measured[h], dti_header_in(hosts->cluster, h), sizeof own);
    hosts->cluster->measured = hosts->measured;
    hosts->measured = NULL;
    dti_transfers_free(hosts->cluster, hosts->measuring);
    hosts->measuring = NULL;
    return DITTO_OK;
}
