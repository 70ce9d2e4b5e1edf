/* src/hosts/header.c - exchanges headers, and ends epochs. See header.h. */
#include "hosts/header.h"
#include "base/errors/status.h"
#include "base/text/text.h"

#include <stdlib.h>
#include <string.h>

#define CALL_NAME_BYTES 48
#define CALL_TEXT_BYTES 200
#define NO_HOST         UINT32_MAX
#define WITHDRAW_MS     1000

struct header {
    uint32_t epoch;
    uint32_t kind;
    uint64_t number;
    uint64_t digest;
    uint64_t call_number;
    char call_name[CALL_NAME_BYTES];
};
_Static_assert(sizeof(struct header) % 16 == 0, "a payload must be aligned for every dtype");

/* Follows a last header: why the host has ended the epoch. */
struct last_words {
    /* The host that failed by itself, which may be another one, whose error this host has taken over. */
    uint32_t origin;

    /* If calls differ: two hosts whose calls differ. Otherwise NO_HOST. */
    uint32_t one, other;

    int32_t status, replica, system_errno, user_code;
    char message[512];
    char call[CALL_TEXT_BYTES]; /* of this host, if calls differ */
    uint64_t completed;         /* the number of its last exchange that was EQUAL */
    struct dti_sent sent[];     /* [hosts] the data messages that it has sent to each host in this epoch */
};

/* What this host knows of another one. */
struct peer {
    /* Of this host's headers, by their number, and of its last one, which may follow before those are
     * sent. */
    struct dti_transfer send[2], send_last;

    struct dti_transfer receive;
    uint64_t heard;          /* the number of its last header that was taken, in this epoch */
    size_t in_bytes;         /* of that header */
    bool has_ended;          /* that header is its last one of this epoch */
    unsigned char *in[2];    /* by the number of the header */
    struct last_words *last; /* if has_ended */
};

struct dti_headers {
    uint64_t number;    /* of the last exchange */
    uint64_t completed; /* of the last exchange that was EQUAL */

    /* Set when an exchange was not EQUAL, or a call has failed over hosts. Until the end of the epoch nothing
     * can be agreed on any more, and every exchange fails with `error`. Its status is DITTO_OK if none was
     * given. */
    bool is_broken;
    ditto_error error;

    size_t capacity;
    unsigned char *out[2];
    size_t out_bytes;  /* of the last header */
    struct peer *peer; /* [hosts] */

    /* What this host will say in its last header, beside its error. */
    uint32_t origin, one, other;
    char call[CALL_TEXT_BYTES];
    unsigned char *out_last; /* the last header, whose buffer is not that of another one on its way */

    unsigned char *memory;
};

static size_t last_bytes(const ditto_cluster *cluster)
{
    return sizeof(struct last_words) + cluster->wire.num_hosts * sizeof(struct dti_sent);
}

static size_t round_up(size_t bytes)
{
    return (bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE;
}

/* -- receiving -- */

static unsigned char *in_of(struct peer *peer, uint64_t number)
{
    return peer->in[number % 2];
}

static const struct header *header_of(const struct peer *peer, uint64_t number)
{
    return (const struct header *)(const void *)peer->in[number % 2];
}

static ditto_status receive_next(ditto_cluster *cluster, uint32_t host)
{
    struct peer *peer = &cluster->headers->peer[host];
    return dti_receive_header(cluster, host, in_of(peer, peer->heard + 1), cluster->headers->capacity,
                              &peer->receive);
}

/* Returns true if a header has arrived that was not taken. */
static bool has_arrived(const struct peer *peer)
{
    return !peer->receive.is_unfinished;
}

/* Takes the header that has arrived, and begins to receive the next one. After a last header, this is the
 * first one of the next epoch. */
static ditto_status take(ditto_cluster *cluster, uint32_t host)
{
    struct peer *peer = &cluster->headers->peer[host];
    if (peer->receive.status != DITTO_OK)
        return DTI_FAIL(peer->receive.status, "the wire could not receive from host %u (%s)", host,
                        cluster->name[host]);
    const struct header *header = header_of(peer, peer->heard + 1);
    if (header->epoch != dti_cluster_epoch(cluster) || header->number != peer->heard + 1)
        return DTI_FAIL(
            DITTO_ERR_SYSTEM,
            "the wire delivered message %llu of epoch %u from host %u (%s) where %llu of epoch %u "
            "was next: it has lost or reordered messages",
            (unsigned long long)header->number, header->epoch, host, cluster->name[host],
            (unsigned long long)peer->heard + 1, dti_cluster_epoch(cluster));
    peer->heard++;
    peer->in_bytes = peer->receive.bytes;
    if (header->kind == DTI_HEADER_LAST) {
        memcpy(peer->last, header + 1, last_bytes(cluster));
        peer->has_ended = true;
        peer->heard = 0;
    }
    return receive_next(cluster, host);
}

/* -- an exchange -- */

void *dti_header_out(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    return headers->out[(headers->number + 1) % 2] + sizeof(struct header);
}

/* Sends the next header, whose payload has been written. */
static ditto_status send(ditto_cluster *cluster, uint32_t kind, const struct dti_intent *intent,
                         size_t payload_bytes)
{
    struct dti_headers *headers = cluster->headers;
    unsigned char *buffer = headers->out[++headers->number % 2];
    struct header *out = (struct header *)(void *)(kind == DTI_HEADER_LAST ? headers->out_last : buffer);
    *out = (struct header){ .epoch = dti_cluster_epoch(cluster), .kind = kind, .number = headers->number };
    if (intent != NULL) {
        out->digest = intent->digest;
        out->call_number = intent->number;
        strncpy(out->call_name, intent->name, sizeof out->call_name - 1);
    }
    headers->out_bytes = sizeof *out + payload_bytes;
    for (uint32_t step = 1; step < cluster->wire.num_hosts; step++) {
        uint32_t host = (cluster->wire.host + step) % cluster->wire.num_hosts;
        struct peer *peer = &headers->peer[host];
        DTI_TRY(
            dti_send_header(cluster, host, out, headers->out_bytes,
                            kind == DTI_HEADER_LAST ? &peer->send_last : &peer->send[headers->number % 2]));
    }
    return DITTO_OK;
}

struct exchange {
    ditto_cluster *cluster;
    bool failed;   /* a header could not be taken */
    bool has_last; /* a last header was taken */
};

static ditto_status fail_send(const ditto_cluster *cluster, uint32_t host)
{
    return DTI_FAIL(DITTO_ERR_SYSTEM, "the wire could not send to host %u (%s)", host, cluster->name[host]);
}

/* Takes the headers of this exchange that have arrived. Returns true if there is nothing to wait for. */
static bool exchange_is_over(void *argument)
{
    struct exchange *x = argument;
    struct dti_headers *headers = x->cluster->headers;
    bool over = true;
    for (uint32_t h = 0; h < x->cluster->wire.num_hosts; h++) {
        struct peer *peer = &headers->peer[h];
        if (h == x->cluster->wire.host)
            continue;
        if (peer->heard < headers->number && !peer->has_ended && has_arrived(peer) &&
            take(x->cluster, h) != DITTO_OK)
            x->failed = true;
        x->has_last |= peer->has_ended;
        /* The present header may still be on its way, but its predecessor's buffer is used next. */
        const struct dti_transfer *before = &peer->send[(headers->number + 1) % 2];
        x->failed |= before->status != DITTO_OK && fail_send(x->cluster, h) != DITTO_OK;
        over &= peer->heard == headers->number && !before->is_unfinished;
    }
    return over || x->failed || x->has_last;
}

static const struct header *own_header(const struct dti_headers *headers)
{
    return (const struct header *)(const void *)headers->out[headers->number % 2];
}

static const struct header *present_header(const ditto_cluster *cluster, uint32_t host)
{
    const struct dti_headers *headers = cluster->headers;
    return host == cluster->wire.host ? own_header(headers)
                                      : header_of(&headers->peer[host], headers->number);
}

/* Returns the lowest host whose intent differs from that of host 0, or NO_HOST. */
static uint32_t first_different(const ditto_cluster *cluster)
{
    const struct header *first = present_header(cluster, 0);
    for (uint32_t h = 1; h < cluster->wire.num_hosts; h++) {
        const struct header *other = present_header(cluster, h);
        if (other->kind != first->kind || other->digest != first->digest)
            return h;
    }
    return NO_HOST;
}

uint64_t dti_headers_number(const ditto_cluster *cluster)
{
    return cluster->headers->number;
}

void dti_headers_break(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    if (headers->error.status == DITTO_OK)
        headers->error = *dti_error_get();
    headers->is_broken = true;
}

/* The program has gone on after a call that failed, which other hosts know of. */
static enum dti_verdict fail_again(const struct dti_headers *headers)
{
    if (headers->error.status != DITTO_OK)
        dti_error_set(&headers->error);
    else
        DTI_FAIL(DITTO_ERR_DIVERGED, "a call over several hosts has failed before this one");
    return DTI_HEADERS_FAILED;
}

static enum dti_verdict exchange(ditto_cluster *cluster, const struct dti_intent *intent,
                                 struct dti_limits *limits)
{
    struct exchange x = { .cluster = cluster };
    if (send(cluster, intent->kind, intent, intent->payload_bytes) != DITTO_OK)
        return DTI_HEADERS_FAILED;
    enum dti_wait_end end = dti_cluster_wait(cluster, limits, exchange_is_over, &x);
    if (end == DTI_WAIT_FAILED || x.failed)
        return DTI_HEADERS_FAILED;
    if (x.has_last)
        return DTI_HEADERS_LAST;
    if (end != DTI_WAIT_HOLDS)
        return end == DTI_WAIT_LATE ? DTI_HEADERS_LATE : DTI_HEADERS_STOPPED;
    return first_different(cluster) == NO_HOST ? DTI_HEADERS_EQUAL : DTI_HEADERS_DIFFER;
}

enum dti_verdict dti_headers_exchange(ditto_cluster *cluster, const struct dti_intent *intent,
                                      struct dti_limits *limits)
{
    struct dti_headers *headers = cluster->headers;
    if (headers->is_broken)
        return fail_again(headers);
    enum dti_verdict verdict = exchange(cluster, intent, limits);
    if (verdict == DTI_HEADERS_EQUAL)
        headers->completed = headers->number;
    else
        headers->is_broken = true;
    return verdict;
}

/* Returns true if the host has ended the epoch without completing the last exchange. */
static bool has_given_up(const struct dti_headers *headers, const struct peer *peer)
{
    const struct last_words *last = (const void *)(header_of(peer, headers->number + 1) + 1);
    return has_arrived(peer) && peer->receive.status == DITTO_OK && peer->heard == headers->number &&
           header_of(peer, headers->number + 1)->kind == DTI_HEADER_LAST && last->completed < headers->number;
}

enum dti_verdict dti_headers_confirm(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    if (dti_cluster_progress(cluster) != DITTO_OK) {
        headers->is_broken = true;
        return DTI_HEADERS_FAILED;
    }
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++) {
        if (h != cluster->wire.host && has_given_up(headers, &headers->peer[h])) {
            headers->completed--;
            headers->is_broken = true;
            return DTI_HEADERS_LAST;
        }
    }
    return DTI_HEADERS_EQUAL;
}

const void *dti_header_in(const ditto_cluster *cluster, uint32_t host, size_t *bytes)
{
    const struct dti_headers *headers = cluster->headers;
    const struct header *header = present_header(cluster, host);
    if (bytes != NULL)
        *bytes = (host == cluster->wire.host ? headers->out_bytes : headers->peer[host].in_bytes) -
                 sizeof *header;
    return header + 1;
}

/* Returns true if a last header has arrived that was not taken, or if the receive has failed. */
static bool is_last_waiting(const struct peer *peer)
{
    return has_arrived(peer) &&
           (peer->receive.status != DITTO_OK || header_of(peer, peer->heard + 1)->kind == DTI_HEADER_LAST);
}

bool dti_headers_end_early(const ditto_cluster *cluster)
{
    const struct dti_headers *headers = cluster->headers;
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++) {
        const struct peer *peer = &headers->peer[h];
        if (h != cluster->wire.host && (peer->has_ended || is_last_waiting(peer)))
            return true;
    }
    return false;
}

/* -- errors -- */

ditto_status dti_headers_fail_differ(ditto_cluster *cluster, const char *call)
{
    struct dti_headers *headers = cluster->headers;
    headers->one = 0;
    headers->other = first_different(cluster);
    strncpy(headers->call, call, sizeof headers->call - 1);
    return DTI_FAIL(DITTO_ERR_DIVERGED, "hosts 0 and %u make different calls; this one makes %s",
                    headers->other, call);
}

/* Sets *error to what a host has said in its last header. */
static void read_error(const struct last_words *last, ditto_error *error)
{
    /* The function in the record is the one that this host is in. That of the other host is in the
     * message. */
    *error = (ditto_error){ .status = (ditto_status)last->status,
                            .replica = last->replica,
                            .system_errno = last->system_errno,
                            .user_code = last->user_code,
                            .function = dti_public_function };
    memcpy(error->message, last->message, sizeof error->message);
    error->message[sizeof error->message - 1] = '\0';
}

ditto_status dti_headers_fail_last(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    ditto_error error;
    uint32_t found = NO_HOST;
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++) {
        struct peer *peer = &headers->peer[h];
        if (h == cluster->wire.host)
            continue;
        if (!peer->has_ended && is_last_waiting(peer))
            DTI_TRY(take(cluster, h));
        if (peer->has_ended && found == NO_HOST)
            found = h;
    }
    const struct last_words *last = headers->peer[found].last;
    headers->origin = last->origin;
    read_error(last, &error);
    dti_error_set(&error);
    return error.status;
}

void dti_headers_take_over(ditto_cluster *cluster, uint32_t host)
{
    cluster->headers->origin = host;
}

void dti_headers_list_missing(const ditto_cluster *cluster, bool *missing)
{
    const struct dti_headers *headers = cluster->headers;
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++)
        missing[h] = h != cluster->wire.host && headers->peer[h].heard != headers->number;
}

void dti_headers_describe(const ditto_cluster *cluster, const bool *late, struct dti_text *text)
{
    const char *between = "";
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++) {
        const struct peer *peer = &cluster->headers->peer[h];
        if (!late[h])
            continue;
        dti_text_add(text, "%s", between);
        between = ", ";
        dti_describe_host(cluster, h, text);
        if (peer->heard == 0) {
            dti_text_add(text, " (in no call of this run yet)");
        } else {
            const struct header *last = header_of(peer, peer->heard);
            dti_text_add(text, " (last heard of in %s #%llu)", last->call_name,
                         (unsigned long long)last->call_number);
        }
    }
}

ditto_status dti_headers_fail_late(ditto_cluster *cluster, const char *call, uint32_t timeout_ms)
{
    bool missing[DTI_MAX_HOSTS];
    char hosts[300] = "";
    struct dti_text text = { hosts, sizeof hosts, 0 };
    dti_headers_list_missing(cluster, missing);
    dti_headers_describe(cluster, missing, &text);
    return DTI_FAIL(DITTO_ERR_TIMED_OUT, "host %u waited %u ms in %s for %s", cluster->wire.host, timeout_ms,
                    call, hosts);
}

/* -- the end of an epoch -- */

static struct last_words *own_last(const struct dti_headers *headers)
{
    return (struct last_words *)(void *)(headers->out_last + sizeof(struct header));
}

static void write_last(ditto_cluster *cluster, const ditto_error *error)
{
    struct dti_headers *headers = cluster->headers;
    struct last_words *last = own_last(headers);
    memset(last, 0, last_bytes(cluster));
    last->origin = headers->origin;
    last->one = headers->one;
    last->other = headers->other;
    last->status = error->status;
    last->completed = headers->completed;
    last->replica = error->replica;
    last->system_errno = error->system_errno;
    last->user_code = error->user_code;
    memcpy(last->message, error->message, sizeof last->message);
    memcpy(last->call, headers->call, sizeof last->call);
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++)
        last->sent[h] = cluster->traffic[h].sent;
}

/* Takes all headers that have arrived. Returns true if all hosts have ended the epoch. */
static bool all_have_ended(void *argument)
{
    struct exchange *x = argument;
    bool all = true;
    for (uint32_t h = 0; h < x->cluster->wire.num_hosts; h++) {
        struct peer *peer = &x->cluster->headers->peer[h];
        if (h == x->cluster->wire.host)
            continue;
        while (!peer->has_ended && has_arrived(peer) && !x->failed)
            x->failed = take(x->cluster, h) != DITTO_OK;
        all &= peer->has_ended;
    }
    return all || x->failed;
}

static const struct last_words *last_of(const ditto_cluster *cluster, uint32_t host)
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
    const struct last_words *last = last_of(cluster, first);
    if (first != cluster->wire.host)
        read_error(last, error);
    /* A host that has failed for another reason has not written its call. */
    if (last->one == NO_HOST || last_of(cluster, last->one)->call[0] == '\0' ||
        last_of(cluster, last->other)->call[0] == '\0')
        return;
    char text[sizeof error->message];
    struct dti_text message = { text, sizeof text, 0 };
    dti_describe_host(cluster, last->one, &message);
    dti_text_add(&message, " calls %s, but ", last_of(cluster, last->one)->call);
    dti_describe_host(cluster, last->other, &message);
    bool same_text = strcmp(last_of(cluster, last->one)->call, last_of(cluster, last->other)->call) == 0;
    dti_text_add(&message, " calls %s%s: every host must make the same calls",
                 last_of(cluster, last->other)->call,
                 same_text ? " with other arguments (sizes of items, functions, options, or an object of the "
                             "same name)"
                           : "");
    memcpy(error->message, text, sizeof text);
}

static void begin_epoch(struct dti_headers *headers, uint32_t hosts, uint32_t host)
{
    headers->number = headers->completed = 0;
    headers->is_broken = false;
    headers->error.status = DITTO_OK;
    headers->origin = host;
    headers->one = headers->other = NO_HOST;
    memset(headers->call, 0, sizeof headers->call);
    for (uint32_t h = 0; h < hosts; h++) {
        headers->peer[h].has_ended = false;
        /* Sends that failed belong to the epoch that has ended. */
        for (int i = 0; i < 2; i++)
            headers->peer[h].send[i].status = DITTO_OK;
    }
}

/* Waits for the last headers of all hosts, and drains the data. */
static ditto_status end_epoch(ditto_cluster *cluster, struct dti_limits *limits)
{
    struct dti_headers *headers = cluster->headers;
    struct exchange x = { .cluster = cluster };
    uint32_t hosts = cluster->wire.num_hosts, host = cluster->wire.host;
    if (dti_cluster_wait(cluster, limits, all_have_ended, &x) != DTI_WAIT_HOLDS || x.failed) {
        for (uint32_t h = 0; h < hosts; h++)
            cluster->traffic[h].is_silent = h != host && !headers->peer[h].has_ended;
        return DITTO_ERR_POISONED;
    }
    struct dti_sent *sent = calloc(hosts, sizeof *sent);
    if (sent == NULL)
        return DITTO_ERR_POISONED;
    for (uint32_t h = 0; h < hosts; h++)
        if (h != host)
            sent[h] = headers->peer[h].last->sent[host];
    ditto_status status = dti_cluster_drain(cluster, sent, limits);
    free(sent);
    for (uint32_t h = 0; status == DITTO_OK && h < hosts; h++)
        status = headers->peer[h].send_last.status;
    return status == DITTO_OK ? DITTO_OK : DITTO_ERR_POISONED;
}

ditto_status dti_headers_close(ditto_cluster *cluster, ditto_error *error, struct dti_limits *limits)
{
    struct dti_headers *headers = cluster->headers;
    uint32_t hosts = cluster->wire.num_hosts, host = cluster->wire.host;
    write_last(cluster, error);
    ditto_status status = send(cluster, DTI_HEADER_LAST, NULL, last_bytes(cluster));
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
    begin_epoch(headers, hosts, host);
    return DITTO_OK;
}

/* -- life -- */

static bool is_withdrawn(void *argument)
{
    ditto_cluster *cluster = argument;
    bool all = cluster->unfinished_sends == 0;
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++)
        all &= dti_withdraw(cluster, &cluster->headers->peer[h].receive);
    return all;
}

void dti_headers_withdraw(ditto_cluster *cluster)
{
    /* The wire may need to be driven before a receive is withdrawn, and the last header may be on its way. */
    struct dti_limits limits = { { .timeout_ms = WITHDRAW_MS }, NULL };
    (void)dti_cluster_wait(cluster, &limits, is_withdrawn, cluster);
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

/* Divides `memory` among the buffers. Without memory, returns its size. */
static size_t lay_out(const ditto_cluster *cluster, struct dti_headers *headers, unsigned char *memory)
{
    size_t last = round_up(last_bytes(cluster)), at = 0;
    for (int i = 0; i < 2; i++, at += headers->capacity)
        headers->out[i] = memory + at;
    headers->out_last = memory + at;
    at += round_up(sizeof(struct header)) + last;
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++) {
        struct peer *peer = &headers->peer[h];
        for (int i = 0; i < 2; i++, at += headers->capacity)
            peer->in[i] = memory + at;
        peer->last = (struct last_words *)(void *)(memory + at);
        at += last;
    }
    return at;
}

ditto_status dti_headers_make(ditto_cluster *cluster)
{
    uint32_t hosts = cluster->wire.num_hosts, host = cluster->wire.host;
    size_t payload = dti_header_payload(cluster),
           most = last_bytes(cluster) > payload ? last_bytes(cluster) : payload;
    struct dti_headers *headers = calloc(1, sizeof *headers);
    cluster->headers = headers;
    if (headers != NULL) {
        headers->capacity = round_up(sizeof(struct header) + most);
        headers->peer = calloc(hosts, sizeof *headers->peer);
        size_t bytes = 2 * headers->capacity + round_up(sizeof(struct header)) +
                       round_up(last_bytes(cluster)) +
                       hosts * (2 * headers->capacity + round_up(last_bytes(cluster)));
        headers->memory = aligned_alloc(DTI_CACHE_LINE, bytes);
        if (headers->peer != NULL && headers->memory != NULL) {
            memset(headers->memory, 0, bytes);
            (void)lay_out(cluster, headers, headers->memory);
            begin_epoch(headers, hosts, host);
            for (uint32_t h = 0; h < hosts; h++)
                if (h != host)
                    DTI_TRY(receive_next(cluster, h));
            return DITTO_OK;
        }
    }
    return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the headers of %u hosts", hosts);
}
