/* src/hosts/transfer.c - sends, receives and waits on the wire of a cluster. See cluster.h. */
#include "base/errors/status.h"
#include "hosts/cluster.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* A wait polls for SPIN_NS, yields for YIELD_NS, and then naps, at first for NAP_LEAST_NS and at last for
 * NAP_MOST_NS. MPI has no wait that sleeps. */
#define SPIN_NS      UINT64_C(100000)
#define YIELD_NS     UINT64_C(1000000)
#define NAP_LEAST_NS 20000
#define NAP_MOST_NS  200000

enum { EVENTS = 32 };

void dti_cluster_poison(ditto_cluster *cluster)
{
    cluster->is_poisoned = true;
}

/* -- beginning -- */

ditto_status dti_fail_cluster_poisoned(void)
{
    return DTI_FAIL(DITTO_ERR_POISONED, "a host of the cluster did not answer: destroy the strategy and the "
                                        "cluster, and end the program without finalizing its network");
}

static uint32_t data_channel(const ditto_cluster *cluster)
{
    return 1 + cluster->epoch % (DITTO_WIRE_CHANNELS - 1);
}

/* Prepares a transfer, which finish() or abandon() ends. */
static ditto_status begin(ditto_cluster *cluster, struct dti_transfer *transfer, bool is_data)
{
    if (cluster->is_poisoned)
        return dti_fail_cluster_poisoned();
    *transfer = (struct dti_transfer){ .is_unfinished = true, .is_data = is_data };
    cluster->unfinished++;
    return DITTO_OK;
}

static ditto_status abandon(ditto_cluster *cluster, struct dti_transfer *transfer, ditto_status status)
{
    transfer->is_unfinished = false;
    cluster->unfinished--;
    return status;
}

static ditto_status send_on(ditto_cluster *cluster, uint32_t host, uint32_t channel, const void *data,
                            size_t bytes, struct dti_transfer *transfer)
{
    ditto_status status = cluster->wire.send(cluster->wire.user, host, channel, data, bytes,
                                             (uint64_t)(uintptr_t)transfer);
    if (status != DITTO_OK)
        return abandon(cluster, transfer, status);
    cluster->sent_messages++;
    cluster->sent_bytes += bytes;
    return DITTO_OK;
}

ditto_status dti_send(ditto_cluster *cluster, uint32_t host, const void *data, size_t bytes,
                      struct dti_transfer *transfer)
{
    DTI_TRY(begin(cluster, transfer, true));
    DTI_TRY(send_on(cluster, host, data_channel(cluster), data, bytes, transfer));
    cluster->traffic[host].sent++;
    return DITTO_OK;
}

ditto_status dti_send_header(ditto_cluster *cluster, uint32_t host, const void *data, size_t bytes,
                             struct dti_transfer *transfer)
{
    DTI_TRY(begin(cluster, transfer, false));
    return send_on(cluster, host, 0, data, bytes, transfer);
}

/* Finished receives are unlinked before the list is used, so that an event costs no search. */
static void unlink_finished(struct dti_traffic *traffic)
{
    struct dti_transfer **link = &traffic->pending;
    while (*link != NULL)
        if ((*link)->is_unfinished)
            link = &(*link)->next;
        else
            *link = (*link)->next;
}

ditto_status dti_receive(ditto_cluster *cluster, uint32_t host, void *data, size_t capacity,
                         struct dti_transfer *transfer)
{
    struct dti_traffic *traffic = &cluster->traffic[host];
    unlink_finished(traffic); /* `transfer` may be one of them */
    DTI_TRY(begin(cluster, transfer, true));
    ditto_status status = cluster->wire.receive(cluster->wire.user, host, data_channel(cluster), data,
                                                capacity, (uint64_t)(uintptr_t)transfer);
    if (status != DITTO_OK)
        return abandon(cluster, transfer, status);
    transfer->number = traffic->receives++;
    transfer->next = traffic->pending;
    traffic->pending = transfer;
    return DITTO_OK;
}

ditto_status dti_receive_header(ditto_cluster *cluster, uint32_t host, void *data, size_t capacity,
                                struct dti_transfer *transfer)
{
    DTI_TRY(begin(cluster, transfer, false));
    ditto_status status = cluster->wire.receive(cluster->wire.user, host, 0, data, capacity,
                                                (uint64_t)(uintptr_t)transfer);
    return status == DITTO_OK ? DITTO_OK : abandon(cluster, transfer, status);
}

/* -- finishing -- */

ditto_status dti_cluster_progress(ditto_cluster *cluster)
{
    ditto_wire_event event[EVENTS];
    size_t count;
    do {
        DTI_TRY(cluster->wire.progress(cluster->wire.user, event, EVENTS, &count));
        for (size_t i = 0; i < count; i++) {
            /* NOLINTNEXTLINE(performance-no-int-to-ptr): the ticket is the address of the transfer */
            struct dti_transfer *transfer = (struct dti_transfer *)(uintptr_t)event[i].ticket;
            transfer->bytes = event[i].bytes;
            transfer->status = event[i].status;
            transfer->is_unfinished = false;
            cluster->unfinished--;
        }
    } while (count == EVENTS);
    return DITTO_OK;
}

/* -- waiting -- */

static void nap(uint64_t *length_ns)
{
    struct timespec time = { 0, (long)*length_ns };
    nanosleep(&time, NULL);
    *length_ns = 2 * *length_ns < NAP_MOST_NS ? 2 * *length_ns : NAP_MOST_NS;
}

enum dti_wait_end dti_cluster_wait(ditto_cluster *cluster, struct dti_limits *limits,
                                   bool (*condition)(void *argument), void *argument)
{
    uint64_t begin_ns = 0, nap_ns = NAP_LEAST_NS;
    for (;;) {
        if (dti_cluster_progress(cluster) != DITTO_OK)
            return DTI_WAIT_FAILED;
        if (condition(argument))
            return DTI_WAIT_HOLDS;
        if (limits->stop != NULL && dti_stopped(limits->stop))
            return DTI_WAIT_STOPPED;
        uint64_t now = dti_now_ns();
        begin_ns = begin_ns != 0 ? begin_ns : now;
        if (now >= dti_deadline_at(&limits->deadline))
            return DTI_WAIT_LATE;
        if (now - begin_ns < SPIN_NS)
            dti_pause();
        else if (now - begin_ns < YIELD_NS)
            sched_yield();
        else
            nap(&nap_ns);
    }
}

/* -- the end of an epoch -- */

static bool all_finished(void *argument)
{
    const ditto_cluster *cluster = argument;
    bool finished = true;
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++) {
        unlink_finished(&cluster->traffic[h]);
        finished = finished && cluster->traffic[h].pending == NULL;
    }
    return finished;
}

/* Withdraws the receives that no message will match. A host's messages match its receives in order. */
static void withdraw(ditto_cluster *cluster, struct dti_traffic *traffic, uint64_t sent)
{
    for (struct dti_transfer *t = traffic->pending; t != NULL; t = t->next)
        if (t->is_unfinished && t->number >= sent &&
            cluster->wire.cancel(cluster->wire.user, (uint64_t)(uintptr_t)t) == DITTO_OK)
            (void)abandon(cluster, t, DITTO_OK);
}

/* A message that nobody wants. */
struct scrap {
    struct dti_transfer transfer;
    struct scrap *next;
    unsigned char data[];
};

/* Begins to receive the messages of a host for which no receive has begun. */
static ditto_status take_rest(ditto_cluster *cluster, uint32_t host, uint64_t sent, struct scrap **scraps)
{
    while (cluster->traffic[host].receives < sent) {
        struct scrap *scrap = malloc(sizeof *scrap + DTI_DATA_BYTES);
        if (scrap == NULL)
            return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to take the messages of a stopped run");
        scrap->next = *scraps;
        *scraps = scrap;
        DTI_TRY(dti_receive(cluster, host, scrap->data, DTI_DATA_BYTES, &scrap->transfer));
    }
    return DITTO_OK;
}

struct sends_wait {
    ditto_cluster *cluster;
    uint64_t headers; /* receives of headers, which are always unfinished */
};
static bool sends_finished(void *argument)
{
    const struct sends_wait *w = argument;
    return w->cluster->unfinished <= w->headers;
}

static ditto_status drain(ditto_cluster *cluster, const uint64_t *sent, struct dti_limits *limits,
                          struct scrap **scraps)
{
    uint32_t hosts = cluster->wire.num_hosts;
    for (uint32_t h = 0; h < hosts; h++) {
        unlink_finished(&cluster->traffic[h]);
        withdraw(cluster, &cluster->traffic[h], sent[h]);
        DTI_TRY(take_rest(cluster, h, sent[h], scraps));
    }
    struct sends_wait sends = { cluster, hosts - 1 };
    enum dti_wait_end end = dti_cluster_wait(cluster, limits, all_finished, cluster);
    if (end == DTI_WAIT_HOLDS)
        end = dti_cluster_wait(cluster, limits, sends_finished, &sends);
    if (end == DTI_WAIT_LATE)
        return DTI_FAIL(DITTO_ERR_TIMED_OUT, "messages of a stopped run did not arrive in time");
    return end == DTI_WAIT_HOLDS ? DITTO_OK : dti_error_get()->status;
}

ditto_status dti_cluster_drain(ditto_cluster *cluster, const uint64_t *sent, struct dti_limits *limits)
{
    struct scrap *scraps = NULL;
    ditto_status status = drain(cluster, sent, limits, &scraps);
    if (status != DITTO_OK) {
        dti_cluster_poison(cluster);
        cluster->kept = scraps; /* the wire may still write into them */
        return status;
    }
    while (scraps != NULL) {
        struct scrap *scrap = scraps;
        scraps = scrap->next;
        free(scrap);
    }
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++)
        cluster->traffic[h] = (struct dti_traffic){ 0 };
    cluster->epoch++;
    return DITTO_OK;
}
