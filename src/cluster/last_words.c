/* src/cluster/last_words.c - ends epochs with the last headers of all hosts, and agrees on the error. See
 * header.h. */
#include "base/errors/status.h"
#include "base/text/text.h"
#include "cluster/header_private.h"
#include "cluster/life_line.h"

#include <string.h>

/* Sets *error to what a host has said in its last header. */
static void read_error(const struct dti_last_words *last, ditto_error *error)
{
    /* The function in the record is the one that this host is in. That of the other host is in the
     * message. */
    *error = (ditto_error){ .status = (ditto_status)last->status,
                            .replica = last->replica,
                            .system_errno = last->system_errno,
                            .user_code = last->user_code,
                            .function = dti_this_thread()->function };
    memcpy(error->message, last->message, sizeof error->message);
    error->message[sizeof error->message - 1] = '\0';
}

ditto_status dti_headers_fail_last(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    ditto_error error;
    uint32_t found = DTI_NO_HOST;
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++) {
        struct dti_peer *peer = &headers->peer[h];
        if (h == cluster->wire.host)
            continue;
        if (!peer->has_ended && dti_header_is_last(peer))
            DTI_TRY(dti_header_take(cluster, h));
        if (peer->has_ended && found == DTI_NO_HOST)
            found = h;
    }
    const struct dti_last_words *last = headers->peer[found].last;
    headers->origin = last->origin;
    read_error(last, &error);
    dti_error_set(&error);
    return error.status;
}

void dti_headers_take_over(ditto_cluster *cluster, uint32_t host)
{
    cluster->headers->origin = host;
}

/* -- the end of an epoch -- */

static struct dti_last_words *own_last(const struct dti_headers *headers)
{
    return (struct dti_last_words *)(void *)(headers->out_last + sizeof(struct dti_header));
}

struct ending {
    ditto_cluster *cluster;
    bool failed; /* a header could not be taken */
};

/* Takes all headers that have arrived. Returns true if all hosts have ended the epoch. */
static bool all_have_ended(void *argument)
{
    struct ending *x = argument;
    bool all = true;
    for (uint32_t h = 0; h < x->cluster->wire.num_hosts; h++) {
        struct dti_peer *peer = &x->cluster->headers->peer[h];
        if (h == x->cluster->wire.host)
            continue;
        while (!peer->has_ended && dti_header_has_arrived(peer) && !x->failed)
            x->failed = dti_header_take(x->cluster, h) != DITTO_OK;
        all &= peer->has_ended;
    }
    if (!all)
        dti_life_line_await(x->cluster, UINT64_MAX);
    return all || x->failed;
}

static const struct dti_last_words *last_of(const ditto_cluster *cluster, uint32_t host)
{
    const struct dti_headers *headers = cluster->headers;
    return host == cluster->wire.host ? own_last(headers) : headers->peer[host].last;
}

/* Sets *error to the error of all hosts. All of them do this with the same last headers. */
static void agree(const ditto_cluster *cluster, ditto_error *error)
{
    uint32_t first = 0;
    while (first + 1 < cluster->wire.num_hosts && last_of(cluster, first)->origin != first)
        first++;
    const struct dti_last_words *last = last_of(cluster, first);
    if (first != cluster->wire.host)
        read_error(last, error);
    /* A host that has failed for another reason has not written its call. */
    if (last->one == DTI_NO_HOST || last_of(cluster, last->one)->call[0] == '\0' ||
        last_of(cluster, last->other)->call[0] == '\0')
        return;
    char text[sizeof error->message];
    struct dti_text message = { text, sizeof text, 0 };
    /* The message says which calls the two hosts have made. */
    const struct dti_last_words *a = last_of(cluster, last->one), *b = last_of(cluster, last->other);
    bool same_run = a->runs == b->runs, same_text = strcmp(a->call, b->call) == 0;
    dti_describe_host(cluster, last->one, &message);
    dti_text_add(&message, " calls %s", a->call);
    if (!same_run)
        dti_text_add(&message, " after %llu runs", (unsigned long long)a->runs);
    dti_text_add(&message, ", but ");
    dti_describe_host(cluster, last->other, &message);
    dti_text_add(&message, " calls %s", b->call);
    if (!same_run)
        dti_text_add(&message, " after %llu", (unsigned long long)b->runs);
    else if (same_text)
        dti_text_add(&message,
                     " with other arguments (sizes of items, functions, options, or an object of the "
                     "same name)");
    dti_text_add(&message, ": every host must make the same calls");
    memcpy(error->message, text, sizeof text);
}

void dti_header_begin_epoch(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    headers->number = headers->completed = headers->finished = headers->asks = headers->runs = 0;
    headers->is_broken = headers->hears_all = false;
    headers->error.status = DITTO_OK;
    headers->origin = cluster->wire.host;
    headers->one = headers->other = DTI_NO_HOST;
    memset(headers->call, 0, sizeof headers->call);
    headers->heard_question.header.number = headers->sent_question.header.number = 0;
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++) {
        struct dti_peer *peer = &headers->peer[h];
        peer->has_ended = false;
        peer->step = NULL;
        /* Sends that failed belong to the epoch that has ended. */
        for (int i = 0; i < 2; i++) {
            peer->send[i].status = DITTO_OK;
            peer->known[i] = NULL;
        }
    }
}

/* Sends the last header, whose words have been written, to all other hosts. */
static ditto_status send_last(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    struct dti_header *out = (struct dti_header *)(void *)headers->out_last;
    *out = (struct dti_header){ .epoch = dti_cluster_epoch(cluster),
                                .kind = DTI_HEADER_LAST,
                                .number = ++headers->number };
    for (uint32_t step = 1; step < cluster->wire.num_hosts; step++) {
        uint32_t host = (cluster->wire.host + step) % cluster->wire.num_hosts;
        DTI_TRY(dti_send_header(cluster, host, out, sizeof *out + dti_last_bytes(cluster),
                                &headers->peer[host].send_last));
    }
    return DITTO_OK;
}

/* Waits for the last headers of all hosts, and drains the data. */
static ditto_status end_epoch(ditto_cluster *cluster, struct dti_limits *limits)
{
    struct dti_headers *headers = cluster->headers;
    struct ending x = { .cluster = cluster };
    uint32_t hosts = cluster->wire.num_hosts, host = cluster->wire.host;
    enum dti_wait_end end = dti_cluster_wait(cluster, limits, all_have_ended, &x);
    for (uint32_t h = 0; h < hosts && end == DTI_WAIT_LATE; h++)
        cluster->traffic[h].is_silent = h != host && !headers->peer[h].has_ended;
    if (end != DTI_WAIT_HOLDS || x.failed)
        return DITTO_ERR_POISONED;
    struct dti_sent sent[DTI_MAX_HOSTS] = { 0 };
    for (uint32_t h = 0; h < hosts; h++)
        if (h != host)
            sent[h] = headers->peer[h].last->sent[host];
    ditto_status status = dti_cluster_drain(cluster, sent, limits);
    for (uint32_t h = 0; status == DITTO_OK && h < hosts; h++)
        status = headers->peer[h].send_last.status;
    return status == DITTO_OK ? DITTO_OK : DITTO_ERR_POISONED;
}

ditto_status dti_headers_close(ditto_cluster *cluster, ditto_error *error, struct dti_limits *limits)
{
    struct dti_headers *headers = cluster->headers;
    uint32_t host = cluster->wire.host;
    /* The other hosts may have heard of the failure when this one did, and their replicas may compute as long
     * as a replica may be late. */
    if (headers->origin != host && limits->deadline.timeout_ms < DITTO_FOREVER / 2)
        limits->deadline.timeout_ms *= 2;
    struct dti_last_words *last = own_last(headers);
    memset(last, 0, dti_last_bytes(cluster));
    last->origin = headers->origin;
    last->one = headers->one;
    last->other = headers->other;
    last->status = error->status;
    last->runs = headers->runs;
    last->completed = headers->completed;
    last->finished = headers->finished;
    last->replica = error->replica;
    last->system_errno = error->system_errno;
    last->user_code = error->user_code;
    memcpy(last->message, error->message, sizeof last->message);
    memcpy(last->call, headers->call, sizeof last->call);
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++)
        last->sent[h] = cluster->traffic[h].sent;
    headers->hears_all = true;
    ditto_status status = dti_header_receive_all(cluster);
    if (status == DITTO_OK)
        status = send_last(cluster);
    if (status == DITTO_OK)
        status = end_epoch(cluster, limits);
    if (status != DITTO_OK) {
        dti_cluster_poison(cluster);
        /* All that this host may know is that another one has failed. That one has said why. */
        if (headers->origin != host && headers->peer[headers->origin].has_ended)
            read_error(headers->peer[headers->origin].last, error);
        return DITTO_ERR_POISONED;
    }
    agree(cluster, error);
    dti_header_begin_epoch(cluster);
    return DITTO_OK;
}
