/* src/cluster/transfer.c - sends, receives and waits on the wire of a cluster. See cluster.h. */
#include "base/errors/status.h"
#include "base/text/text.h"
#include "cluster/cluster.h"
#include "cluster/life_line.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* How often a wait polls before it reads the clock for the first time. A clock that is read after each poll
 * delays the moment at which a message is noticed: 8 bytes between two processes took 1.2 us
 * with it, and take 1.1. */
#define FIRST_POLLS 32

/* A wait polls for SPIN_NS, yields for YIELD_NS, and then naps, at first for NAP_LEAST_NS and at last for
 * NAP_MOST_NS. MPI has no wait that sleeps. */
#define SPIN_NS      UINT64_C(100000)
#define YIELD_NS     UINT64_C(1000000)
#define NAP_LEAST_NS 20000
#define NAP_MOST_NS  200000

/* How long the life line is waited for when the wire has failed. Its threads run late on a host that has more
 * threads than PUs. */
#define EXPLAIN_MS 2000

/* The most messages of a stopped run that a host takes from another one. A larger number is damage: this many
 * messages would have to be on their way at once. */
#define MOST_SCRAPS (UINT64_C(1) << 20)

enum { EVENTS = 32 };

void dti_cluster_poison(ditto_cluster *cluster)
{
    cluster->is_poisoned = true;
}

/* -- beginning -- */

ditto_status dti_fail_cluster_poisoned(const ditto_cluster *cluster)
{
    char hosts[300] = "";
    struct dti_text text = { hosts, sizeof hosts, 0 };
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++) {
        if (!cluster->traffic[h].is_silent)
            continue;
        dti_text_add(&text, "%s", text.length == 0 ? "" : ", ");
        dti_describe_host(cluster, h, &text);
    }
    return DTI_FAIL(DITTO_ERR_POISONED,
                    "%s did not answer: destroy the strategy and the cluster, and end the program without "
                    "finalizing its network",
                    text.length == 0 ? "a host of the cluster" : hosts);
}

/* Called when the wire has failed with `status`, which is recorded. Connections break when a process ends,
 * and the life line may notice that a little later. Returns LOST if it does. */
static ditto_status explain(ditto_cluster *cluster, ditto_status status)
{
    const struct timespec millisecond = { 0, 1000000 };
    for (uint32_t i = 0; i < EXPLAIN_MS && cluster->life_line != NULL && !dti_life_line_has_lost(cluster);
         i++)
        nanosleep(&millisecond, NULL);
    if (!dti_life_line_has_lost(cluster))
        return status;
    dti_cluster_poison(cluster);
    return dti_life_line_fail(cluster);
}

static uint32_t data_channel(const ditto_cluster *cluster)
{
    return 1 + dti_cluster_epoch(cluster) % (DITTO_WIRE_CHANNELS - 1);
}

/* Prepares a transfer, which end() ends. */
static ditto_status begin(ditto_cluster *cluster, struct dti_transfer *transfer, uint32_t host, bool is_send)
{
    if (dti_life_line_has_lost(cluster))
        return dti_life_line_fail(cluster);
    if (cluster->is_poisoned)
        return dti_fail_cluster_poisoned(cluster);
    if (dti_cluster_is_forked(cluster))
        return dti_cluster_check_thread(cluster);
    *transfer = (struct dti_transfer){ .is_unfinished = true, .is_send = is_send, .host = host };
    cluster->unfinished++;
    cluster->unfinished_sends += is_send;
    return DITTO_OK;
}

static ditto_status end(ditto_cluster *cluster, struct dti_transfer *transfer, ditto_status status)
{
    transfer->is_unfinished = false;
    transfer->status = status;
    cluster->unfinished--;
    cluster->unfinished_sends -= transfer->is_send;
    if (transfer->link != NULL) {
        *transfer->link = transfer->next;
        if (transfer->next != NULL)
            transfer->next->link = transfer->link;
        transfer->link = NULL;
    }
    return status;
}

/* Begins a send on a channel. A wire that fails has lost the host, for which there may be an explanation. */
static ditto_status send_on(ditto_cluster *cluster, uint32_t host, uint32_t channel, const void *data,
                            size_t bytes, struct dti_transfer *transfer)
{
    DTI_TRY(begin(cluster, transfer, host, true));
    ditto_status status = cluster->wire.send(cluster->wire.user, host, channel, data, bytes,
                                             (uint64_t)(uintptr_t)transfer);
    if (status != DITTO_OK)
        return explain(cluster, end(cluster, transfer, status));
    cluster->sent_messages++;
    cluster->sent_bytes += bytes;
    return DITTO_OK;
}

ditto_status dti_send(ditto_cluster *cluster, uint32_t host, const void *data, size_t bytes,
                      struct dti_transfer *transfer)
{
    struct dti_sent *sent = &cluster->traffic[host].sent;
    DTI_TRY(send_on(cluster, host, data_channel(cluster), data, bytes, transfer));
    sent->messages++;
    sent->most_bytes = bytes > sent->most_bytes ? bytes : sent->most_bytes;
    return DITTO_OK;
}

ditto_status dti_send_header(ditto_cluster *cluster, uint32_t host, const void *data, size_t bytes,
                             struct dti_transfer *transfer)
{
    return send_on(cluster, host, 0, data, bytes, transfer);
}

static ditto_status receive_on(ditto_cluster *cluster, uint32_t host, uint32_t channel, void *data,
                               size_t capacity, struct dti_transfer *transfer)
{
    DTI_TRY(begin(cluster, transfer, host, false));
    ditto_status status = cluster->wire.receive(cluster->wire.user, host, channel, data, capacity,
                                                (uint64_t)(uintptr_t)transfer);
    return status == DITTO_OK ? DITTO_OK : explain(cluster, end(cluster, transfer, status));
}

ditto_status dti_receive(ditto_cluster *cluster, uint32_t host, void *data, size_t capacity,
                         struct dti_transfer *transfer)
{
    struct dti_traffic *traffic = &cluster->traffic[host];
    DTI_TRY(receive_on(cluster, host, data_channel(cluster), data, capacity, transfer));
    transfer->number = traffic->receives++;
    transfer->link = &traffic->pending;
    transfer->next = traffic->pending;
    if (transfer->next != NULL)
        transfer->next->link = &transfer->next;
    traffic->pending = transfer;
    return DITTO_OK;
}

ditto_status dti_receive_header(ditto_cluster *cluster, uint32_t host, void *data, size_t capacity,
                                struct dti_transfer *transfer)
{
    return receive_on(cluster, host, 0, data, capacity, transfer);
}

/* -- finishing -- */

/* Drives the wire, and ends the transfers that it has finished. Returns the error of the wire. */
static ditto_status take_events(ditto_cluster *cluster, bool *any_failed)
{
    ditto_wire_event event[EVENTS];
    size_t count;
    *any_failed = false;
    do {
        DTI_TRY(cluster->wire.progress(cluster->wire.user, event, EVENTS, &count));
        for (size_t i = 0; i < count; i++) {
            /* NOLINTNEXTLINE(performance-no-int-to-ptr): the ticket is the address of the transfer */
            struct dti_transfer *transfer = (struct dti_transfer *)(uintptr_t)event[i].ticket;
            transfer->bytes = event[i].bytes;
            (void)end(cluster, transfer, event[i].status);
            *any_failed |= event[i].status != DITTO_OK;
        }
    } while (count == EVENTS);
    return DITTO_OK;
}

ditto_status dti_cluster_progress(ditto_cluster *cluster)
{
    bool any_failed;
    ditto_status status = take_events(cluster, &any_failed);
    if (status != DITTO_OK)
        return explain(cluster, status);
    /* If no host is lost, those who wait for the transfer find its status. */
    return any_failed ? explain(cluster, DITTO_OK) : DITTO_OK;
}

bool dti_withdraw(ditto_cluster *cluster, struct dti_transfer *receive)
{
    if (receive->is_unfinished &&
        cluster->wire.cancel(cluster->wire.user, (uint64_t)(uintptr_t)receive) == DITTO_OK)
        (void)end(cluster, receive, DITTO_OK);
    return !receive->is_unfinished;
}

void dti_cluster_keep_memory(ditto_cluster *cluster, struct dti_kept *memory)
{
    memory->next = cluster->kept;
    cluster->kept = memory;
}

/* -- waiting -- */

static void nap(uint64_t *length_ns)
{
    struct timespec time = { 0, (long)*length_ns };
    nanosleep(&time, NULL);
    *length_ns = 2 * *length_ns < NAP_MOST_NS ? 2 * *length_ns : NAP_MOST_NS;
}

bool dti_is_given_up(const struct dti_limits *limits)
{
    /* relaxed: it is read again, with acquire, when the error is described (sync/hosts/started.h, L1). */
    return limits->given_up != NULL &&
           atomic_load_explicit(limits->given_up, memory_order_relaxed) == limits->number;
}

enum dti_wait_end dti_cluster_wait(ditto_cluster *cluster, struct dti_limits *limits,
                                   bool (*condition)(void *argument), void *argument)
{
    uint64_t begin_ns = 0, nap_ns = NAP_LEAST_NS;
    struct dti_look look = { 0 };
    for (uint32_t polls = 0;; polls++) {
        if (dti_cluster_progress(cluster) != DITTO_OK)
            return DTI_WAIT_FAILED;
        if (condition(argument))
            return DTI_WAIT_HOLDS;
        if (dti_life_line_has_lost(cluster)) {
            dti_cluster_poison(cluster);
            (void)dti_life_line_fail(cluster);
            return DTI_WAIT_FAILED;
        }
        if (limits->stop != NULL && dti_stopped(limits->stop))
            return DTI_WAIT_STOPPED;
        if (dti_is_given_up(limits))
            return DTI_WAIT_LATE;
        if (polls < FIRST_POLLS)
            continue;
        if (dti_look(&look) >= dti_deadline_at(&limits->deadline))
            return DTI_WAIT_LATE;
        begin_ns = begin_ns != 0 ? begin_ns : look.at_ns;
        if (look.at_ns - begin_ns < SPIN_NS)
            dti_pause();
        else if (look.at_ns - begin_ns < YIELD_NS)
            sched_yield();
        else
            nap(&nap_ns);
    }
}

/* -- the end of an epoch -- */

static bool all_finished(void *argument)
{
    const ditto_cluster *cluster = argument;
    bool finished = cluster->unfinished_sends == 0;
    for (uint32_t h = 0; finished && h < cluster->wire.num_hosts; h++)
        finished = cluster->traffic[h].pending == NULL;
    return finished;
}

/* A message that no call of this host wants. */
struct scrap {
    struct dti_kept kept; /* first */
    struct dti_transfer transfer;
    struct scrap *next;
    unsigned char data[];
};

/* Begins to receive the messages of a host for which no receive has begun. */
static ditto_status take_rest(ditto_cluster *cluster, uint32_t host, const struct dti_sent *sent,
                              struct scrap **scraps)
{
    uint64_t missing = sent->messages - cluster->traffic[host].receives;
    if (sent->messages > cluster->traffic[host].receives && missing > MOST_SCRAPS)
        return DTI_FAIL(DITTO_ERR_SYSTEM,
                        "host %u (%s) says that it has sent %llu messages more than were taken", host,
                        cluster->name[host], (unsigned long long)missing);
    while (cluster->traffic[host].receives < sent->messages) {
        size_t most = SIZE_MAX - sizeof(struct scrap);
        struct scrap *scrap = sent->most_bytes <= most ? malloc(sizeof *scrap + sent->most_bytes) : NULL;
        if (scrap == NULL)
            return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to take the messages of a stopped run");
        scrap->transfer.is_unfinished = false;
        scrap->next = *scraps;
        *scraps = scrap;
        DTI_TRY(dti_receive(cluster, host, scrap->data, sent->most_bytes, &scrap->transfer));
    }
    return DITTO_OK;
}

static ditto_status drain(ditto_cluster *cluster, const struct dti_sent *sent, struct dti_limits *limits,
                          struct scrap **scraps)
{
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++) {
        /* Withdraws the receives that no message will match. A host's messages match its receives in
         * order. */
        for (struct dti_transfer *t = cluster->traffic[h].pending, *next; t != NULL; t = next) {
            next = t->next;
            if (t->number >= sent[h].messages)
                (void)dti_withdraw(cluster, t);
        }
        DTI_TRY(take_rest(cluster, h, &sent[h], scraps));
    }
    switch (dti_cluster_wait(cluster, limits, all_finished, cluster)) {
    case DTI_WAIT_HOLDS:
        return DITTO_OK;
    case DTI_WAIT_LATE:
    case DTI_WAIT_STOPPED:
        return DTI_FAIL(DITTO_ERR_TIMED_OUT, "messages of a stopped run did not arrive in time");
    case DTI_WAIT_FAILED:
        break;
    }
    return dti_error_get()->status;
}

ditto_status dti_cluster_drain(ditto_cluster *cluster, const struct dti_sent *sent, struct dti_limits *limits)
{
    struct scrap *scraps = NULL;
    ditto_status status = drain(cluster, sent, limits, &scraps);
    if (status != DITTO_OK)
        dti_cluster_poison(cluster);
    while (scraps != NULL) {
        struct scrap *scrap = scraps;
        scraps = scrap->next;
        if (scrap->transfer.is_unfinished)
            dti_cluster_keep_memory(cluster, &scrap->kept);
        else
            free(scrap);
    }
    if (status != DITTO_OK)
        return status;
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++)
        cluster->traffic[h] = (struct dti_traffic){ 0 };
    atomic_store_explicit(&cluster->epoch, dti_cluster_epoch(cluster) + 1, memory_order_relaxed);
    return DITTO_OK;
}
