/* src/cluster/header.c - exchanges headers, and says what came of it. See header.h. */
#include "base/errors/status.h"
#include "base/numbers/checksum.h"
#include "base/text/text.h"
#include "cluster/header_private.h"
#include "cluster/life_line.h"

#include <string.h>

/* A message that is not longer is sent without its receiver. This is the eager limit of Open MPI's shared
 * memory (btl_vader_eager_limit, 4096 with its own header), the smallest one of its networks. */
#define EAGER_BYTES 4000

/* -- receiving -- */

/* Returns true if the next message of the host is received now. */
static bool is_heard(const ditto_cluster *cluster, uint32_t host)
{
    const struct dti_headers *headers = cluster->headers;
    if (!headers->goes_in_steps || dti_header_step_from(cluster, host) != 0)
        return true;
    return headers->hears_all && !headers->peer[host].has_ended;
}

/* Begins to receive the next message of a host. */
static ditto_status receive(ditto_cluster *cluster, uint32_t host)
{
    struct dti_peer *peer = &cluster->headers->peer[host];
    peer->is_receiving = false;
    if (!is_heard(cluster, host))
        return DITTO_OK;
    DTI_TRY(dti_receive_header(cluster, host, peer->in[peer->next], peer->capacity, &peer->receive));
    peer->is_receiving = true;
    return DITTO_OK;
}

ditto_status dti_header_receive_all(ditto_cluster *cluster)
{
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++)
        if (h != cluster->wire.host && !cluster->headers->peer[h].is_receiving)
            DTI_TRY(receive(cluster, h));
    return DITTO_OK;
}

static bool is_terminated(const char *text, size_t bytes)
{
    return memchr(text, '\0', bytes) != NULL;
}

static bool is_host(const ditto_cluster *cluster, uint32_t host)
{
    return host < cluster->wire.num_hosts;
}

static bool are_last_words(const ditto_cluster *cluster, const struct dti_last_words *words, size_t bytes)
{
    return bytes == dti_last_bytes(cluster) && is_host(cluster, words->origin) &&
           dti_status_is_error(words->status) && is_terminated(words->message, sizeof words->message) &&
           is_terminated(words->call, sizeof words->call) &&
           ((words->one == DTI_NO_HOST && words->other == DTI_NO_HOST) ||
            (is_host(cluster, words->one) && is_host(cluster, words->other)));
}

/* Returns true if the message that has arrived has the form of one, whatever its sender has done. The headers
 * of a step are checked when they are added (header_steps.c). */
static bool is_sound(const ditto_cluster *cluster, const struct dti_peer *peer)
{
    const struct dti_header *header = dti_header_arrived(peer);
    size_t bytes = peer->receive.bytes;
    if (bytes < sizeof *header || !is_terminated(header->call_name, sizeof header->call_name))
        return false;
    switch ((enum dti_header_kind)header->kind) {
    case DTI_HEADER_LAST:
        return are_last_words(cluster, (const void *)(header + 1), bytes - sizeof *header);
    case DTI_HEADER_QUESTION:
        return cluster->headers->goes_in_steps && bytes == sizeof(struct dti_question);
    case DTI_HEADER_CALL:
    case DTI_HEADER_END:
        return cluster->headers->goes_in_steps || (header->block == 0 && bytes == dti_header_bytes(header));
    }
    return false;
}

/* Fails if the receive has failed, or if the message is not the next one. */
static ditto_status check(const ditto_cluster *cluster, uint32_t host)
{
    const struct dti_headers *headers = cluster->headers;
    const struct dti_peer *peer = &headers->peer[host];
    const struct dti_header *header = dti_header_arrived(peer);
    if (peer->receive.status != DITTO_OK)
        return DTI_FAIL(peer->receive.status, "the wire could not receive from host %u (%s)", host,
                        cluster->name[host]);
    if (!is_sound(cluster, peer))
        return DTI_FAIL(
            DITTO_ERR_SYSTEM,
            "the wire delivered a message of %zu bytes from host %u (%s) that is no header: it has "
            "damaged it",
            peer->receive.bytes, host, cluster->name[host]);
    bool is_next = header->number == peer->heard + 1;
    /* In steps, most hosts send this one no message in an exchange, and a host that fails sends its last
     * header instead. */
    if (headers->goes_in_steps && header->kind == DTI_HEADER_LAST)
        is_next = header->number > peer->heard;
    if (header->epoch == dti_cluster_epoch(cluster) && (is_next || header->kind == DTI_HEADER_QUESTION))
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_SYSTEM,
                    "the wire delivered message %llu of epoch %u from host %u (%s) where %llu of epoch %u "
                    "was next: it has lost or reordered messages",
                    (unsigned long long)header->number, header->epoch, host, cluster->name[host],
                    (unsigned long long)peer->heard + 1, dti_cluster_epoch(cluster));
}

/* Notes who is in an exchange, which may be the next one. */
static void hear_question(struct dti_headers *headers, const struct dti_question *question)
{
    struct dti_question *heard = &headers->heard_question;
    if (question->header.number < heard->header.number)
        return;
    if (question->header.number > heard->header.number)
        *heard = (struct dti_question){ .header.number = question->header.number };
    for (size_t i = 0; i < sizeof heard->present / sizeof heard->present[0]; i++)
        heard->present[i] |= question->present[i];
}

ditto_status dti_header_take(ditto_cluster *cluster, uint32_t host)
{
    struct dti_headers *headers = cluster->headers;
    struct dti_peer *peer = &headers->peer[host];
    DTI_TRY(check(cluster, host));
    const struct dti_header *header = dti_header_arrived(peer);
    switch ((enum dti_header_kind)header->kind) {
    case DTI_HEADER_QUESTION:
        hear_question(headers, (const struct dti_question *)(const void *)header);
        break;
    case DTI_HEADER_LAST:
        memcpy(peer->last, header + 1, dti_last_bytes(cluster));
        peer->has_ended = true;
        peer->heard = 0;
        break;
    case DTI_HEADER_CALL:
    case DTI_HEADER_END:
        peer->heard++;
        peer->next ^= 1;
        if (headers->goes_in_steps) {
            peer->step = (const unsigned char *)header;
            peer->step_bytes = peer->receive.bytes;
        } else {
            peer->known[peer->heard % 2] = header;
            headers->have++;
        }
        break;
    }
    return receive(cluster, host);
}

/* -- sending -- */

void *dti_header_out(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    return headers->out[(headers->number + 1) % 2] + sizeof(struct dti_header);
}

/* Writes the header of the next exchange, whose payload has been written. */
static void write_header(ditto_cluster *cluster, const struct dti_intent *intent)
{
    struct dti_headers *headers = cluster->headers;
    size_t lines = (intent->payload_bytes + DTI_HEADER_LINE - 1) / DTI_HEADER_LINE;
    headers->digest = headers->runs == 0 ? intent->digest : dti_hash_word(intent->digest, headers->runs);
    struct dti_header *out = (struct dti_header *)(void *)headers->out[++headers->number % 2];
    *out = (struct dti_header){ .epoch = dti_cluster_epoch(cluster),
                                .kind = (uint8_t)intent->kind,
                                .payload_lines = (uint16_t)lines,
                                .number = headers->number,
                                .digest = headers->digest,
                                .call_number = intent->number };
    struct dti_text name = { out->call_name, sizeof out->call_name, 0 };
    if (intent->label != NULL)
        dti_text_add_name(&name, intent->name, intent->label);
    else
        strncpy(out->call_name, intent->name, sizeof out->call_name - 1);
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++)
        headers->peer[h].known[headers->number % 2] = NULL;
    headers->peer[cluster->wire.host].known[headers->number % 2] = out;
    headers->have = 1;
    headers->combine = dti_headers_can_combine(cluster) ? intent->combine : NULL;
    headers->context = intent->context;
    headers->out_at = 0;
    headers->out_bytes = headers->most_sent = dti_header_bytes(out);
}

static ditto_status send(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    if (headers->goes_in_steps)
        return dti_header_step_send(cluster);
    for (uint32_t step = 1; step < cluster->wire.num_hosts; step++) {
        uint32_t host = (cluster->wire.host + step) % cluster->wire.num_hosts;
        DTI_TRY(dti_send_header(cluster, host, headers->out[headers->number % 2], headers->out_bytes,
                                &headers->peer[host].send[headers->number % 2]));
    }
    return DITTO_OK;
}

/* -- questions -- */

/* Returns true if the host is in the present exchange, as far as this one knows. */
static bool is_present(const ditto_cluster *cluster, uint32_t host)
{
    const struct dti_headers *headers = cluster->headers;
    const struct dti_question *heard = &headers->heard_question;
    return headers->peer[host].known[headers->number % 2] != NULL || headers->peer[host].step != NULL ||
           (heard->header.number == headers->number && (heard->present[host / 64] >> host % 64 & 1) != 0);
}

/* Says who is in the present exchange, if this host knows more than it has said. */
static ditto_status tell_presence(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    struct dti_question question = {
        .header = *headers->peer[cluster->wire.host].known[headers->number % 2]
    };
    bool are_sent = true;
    question.header.kind = DTI_HEADER_QUESTION;
    question.header.payload_lines = 0;
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++) {
        question.present[h / 64] |= (uint64_t)is_present(cluster, h) << h % 64;
        are_sent &= !headers->peer[h].send_question.is_unfinished;
    }
    if (!are_sent || (headers->sent_question.header.number == headers->number &&
                      memcmp(headers->sent_question.present, question.present, sizeof question.present) == 0))
        return DITTO_OK;
    headers->sent_question = question;
    return dti_header_send_question(cluster);
}

/* Takes the questions that have arrived, and answers those that concern the present exchange. *any is set if
 * there are some. */
static ditto_status answer(ditto_cluster *cluster, bool *any)
{
    struct dti_headers *headers = cluster->headers;
    *any = false;
    if (!headers->goes_in_steps || headers->number == 0)
        return DITTO_OK;
    for (uint32_t place = 1; place < cluster->wire.num_hosts; place *= 2) {
        uint32_t h = dti_header_host_at(cluster, place);
        struct dti_peer *peer = &headers->peer[h];
        while (!peer->has_ended && dti_header_has_arrived(peer) && peer->receive.status == DITTO_OK &&
               dti_header_arrived(peer)->kind == DTI_HEADER_QUESTION) {
            DTI_TRY(dti_header_take(cluster, h));
            *any = true;
        }
    }
    bool is_asked = headers->heard_question.header.number == headers->number;
    return is_asked || headers->asks == headers->number ? tell_presence(cluster) : DITTO_OK;
}

/* -- an exchange -- */

struct exchange {
    ditto_cluster *cluster;
    bool failed;   /* a header could not be taken or sent */
    bool has_last; /* a last header was taken */
};

static ditto_status fail_send(const ditto_cluster *cluster, uint32_t host)
{
    return DTI_FAIL(DITTO_ERR_SYSTEM, "the wire could not send to host %u (%s)", host, cluster->name[host]);
}

/* Returns true if the message that has arrived from a host can be taken now. The others are of the next
 * exchange. */
static bool is_of_present(const struct dti_headers *headers, const struct dti_peer *peer)
{
    if (headers->goes_in_steps && peer->receive.status == DITTO_OK &&
        dti_header_arrived(peer)->kind == DTI_HEADER_LAST)
        return true;
    return peer->heard < headers->number;
}

/* Returns true if this host need not wait for what it has sent to another one. The present message may still
 * be on its way if it is short. A long one may move only while this host drives the wire, and the program may
 * compute for a long time after this call. The buffer of the message before is used next. */
static bool is_sent(const struct dti_headers *headers, const struct dti_peer *peer)
{
    return !peer->send[(headers->number + 1) % 2].is_unfinished &&
           (headers->most_sent <= EAGER_BYTES || !peer->send[headers->number % 2].is_unfinished);
}

/* Takes the headers of this exchange that have arrived. Returns true if there is nothing to wait for. */
static bool exchange_is_over(void *argument)
{
    struct exchange *x = argument;
    ditto_cluster *cluster = x->cluster;
    struct dti_headers *headers = cluster->headers;
    uint32_t hosts = cluster->wire.num_hosts;
    bool are_sent = true, any;
    x->failed |= answer(cluster, &any) != DITTO_OK;
    /* In steps, only with the hosts of the steps, in their order. */
    for (uint32_t place = 1; place < hosts; place = headers->goes_in_steps ? 2 * place : place + 1) {
        uint32_t h = dti_header_host_at(cluster, place), to = dti_header_host_before(cluster, place);
        struct dti_peer *peer = &headers->peer[h];
        if (!peer->has_ended && dti_header_has_arrived(peer) && is_of_present(headers, peer))
            x->failed |= dti_header_take(cluster, h) != DITTO_OK;
        if (dti_header_step_is_next(cluster, h))
            x->failed |= dti_header_step_add(cluster, h) != DITTO_OK;
        /* In steps, a host that has finished this exchange has sent all that others need of it, so that they
         * finish it, too. */
        x->has_last |= peer->has_ended && peer->last->finished < headers->number;
        x->failed |= headers->peer[to].send[(headers->number + 1) % 2].status != DITTO_OK &&
                     fail_send(cluster, to) != DITTO_OK;
        are_sent &= is_sent(headers, &headers->peer[to]);
    }
    if (headers->have == hosts)
        headers->finished = headers->number;
    else
        dti_life_line_await(cluster, headers->number);
    return (headers->have == hosts && are_sent) || x->failed || x->has_last;
}

/* How long answers are awaited when a wait was given up, so that no half of its time is left. */
#define ANSWERS_MS 200

/* Waits until the exchange is over. In steps, a host that waits for another one does not know whether that
 * one waits itself. So after half of its time it says who is in the exchange, as far as it knows, and so does
 * every host that hears this and is in the exchange, until nobody learns anything new. */
static enum dti_wait_end wait_for_headers(struct exchange *x, struct dti_limits *limits)
{
    if (!x->cluster->headers->goes_in_steps)
        return dti_cluster_wait(x->cluster, limits, exchange_is_over, x);
    struct dti_limits half = *limits;
    uint64_t end_ns = dti_deadline_at(&limits->deadline), now_ns = dti_lived_ns();
    if (end_ns != DTI_NEVER || limits->given_up != NULL) {
        if (end_ns != DTI_NEVER)
            half.deadline.at_ns = now_ns < end_ns ? now_ns + (end_ns - now_ns) / 2 : end_ns;
        enum dti_wait_end end = dti_cluster_wait(x->cluster, &half, exchange_is_over, x);
        if (end != DTI_WAIT_LATE)
            return end;
        x->cluster->headers->asks = x->cluster->headers->number;
        if (dti_is_given_up(limits)) {
            struct dti_limits answers = { .deadline = { .timeout_ms = ANSWERS_MS }, .stop = limits->stop };
            return dti_cluster_wait(x->cluster, &answers, exchange_is_over, x);
        }
    }
    return dti_cluster_wait(x->cluster, limits, exchange_is_over, x);
}

static const struct dti_header *present_header(const ditto_cluster *cluster, uint32_t host)
{
    const struct dti_headers *headers = cluster->headers;
    return headers->peer[host].known[headers->number % 2];
}

/* Returns the lowest host whose intent differs from that of host 0, or DTI_NO_HOST. */
static uint32_t first_different(const ditto_cluster *cluster)
{
    const struct dti_header *first = present_header(cluster, 0);
    for (uint32_t h = 1; h < cluster->wire.num_hosts; h++) {
        const struct dti_header *other = present_header(cluster, h);
        if (other->kind != first->kind || other->digest != first->digest)
            return h;
    }
    return DTI_NO_HOST;
}

uint64_t dti_headers_number(const ditto_cluster *cluster)
{
    return cluster->headers->number;
}

bool dti_headers_are_broken(const ditto_cluster *cluster)
{
    return cluster->headers->is_broken;
}

void dti_headers_run_ends(ditto_cluster *cluster)
{
    cluster->headers->runs++;
}

void dti_headers_break(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    if (headers->error.status == DITTO_OK)
        headers->error = *dti_error_get();
    headers->is_broken = true;
}

static enum dti_verdict exchange(ditto_cluster *cluster, const struct dti_intent *intent,
                                 struct dti_limits *limits)
{
    struct exchange x = { .cluster = cluster };
    write_header(cluster, intent);
    if (send(cluster) != DITTO_OK)
        return DTI_HEADERS_FAILED;
    enum dti_wait_end end = wait_for_headers(&x, limits);
    if (end == DTI_WAIT_FAILED || x.failed)
        return DTI_HEADERS_FAILED;
    if (x.has_last)
        return DTI_HEADERS_LAST;
    if (end != DTI_WAIT_HOLDS)
        return end == DTI_WAIT_LATE ? DTI_HEADERS_LATE : DTI_HEADERS_STOPPED;
    return first_different(cluster) == DTI_NO_HOST ? DTI_HEADERS_EQUAL : DTI_HEADERS_DIFFER;
}

enum dti_verdict dti_headers_exchange(ditto_cluster *cluster, const struct dti_intent *intent,
                                      struct dti_limits *limits)
{
    struct dti_headers *headers = cluster->headers;
    if (headers->is_broken) {
        /* The program has gone on after a call that failed, which other hosts know of. */
        if (headers->error.status != DITTO_OK)
            dti_error_set(&headers->error);
        else
            DTI_FAIL(DITTO_ERR_DIVERGED, "a call over several hosts has failed before this one");
        return DTI_HEADERS_FAILED;
    }
    enum dti_verdict verdict = exchange(cluster, intent, limits);
    if (verdict == DTI_HEADERS_EQUAL)
        headers->completed = headers->number;
    else
        headers->is_broken = true;
    return verdict;
}

/* Returns true if the host has ended the epoch without completing the last exchange. */
static bool has_given_up(const struct dti_headers *headers, const struct dti_peer *peer)
{
    const struct dti_last_words *arrived = (const void *)(dti_header_arrived(peer) + 1);
    if (peer->has_ended)
        return peer->last->completed < headers->number;
    return dti_header_is_last(peer) && peer->receive.status == DITTO_OK &&
           arrived->completed < headers->number;
}

enum dti_verdict dti_headers_confirm(ditto_cluster *cluster)
{
    struct dti_headers *headers = cluster->headers;
    /* Questions may stand in front of a last header. */
    for (bool any = true; any;) {
        if (dti_cluster_progress(cluster) != DITTO_OK || answer(cluster, &any) != DITTO_OK) {
            headers->is_broken = true;
            return DTI_HEADERS_FAILED;
        }
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

const void *dti_header_in(const ditto_cluster *cluster, uint32_t host)
{
    return present_header(cluster, host) + 1;
}

bool dti_headers_end_early(ditto_cluster *cluster)
{
    const struct dti_headers *headers = cluster->headers;
    bool any;
    (void)answer(cluster, &any); /* if the wire has failed, the driver finds out by itself */
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++) {
        const struct dti_peer *peer = &headers->peer[h];
        if (h != cluster->wire.host && (peer->has_ended || dti_header_is_last(peer)))
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

void dti_headers_list_missing(const ditto_cluster *cluster, bool *missing)
{
    const struct dti_headers *headers = cluster->headers;
    bool any = false;
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++) {
        missing[h] = !is_present(cluster, h);
        any |= missing[h];
    }
    /* All hosts may be in the exchange, and a step, or the end of a send, still be late. */
    for (uint32_t h = 0; h < cluster->wire.num_hosts && !any; h++)
        missing[h] = headers->peer[h].known[headers->number % 2] == NULL ||
                     headers->peer[h].send[headers->number % 2].is_unfinished;
}

void dti_headers_describe(const ditto_cluster *cluster, const bool *late, struct dti_text *text)
{
    const struct dti_headers *headers = cluster->headers;
    const char *between = "";
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++) {
        if (!late[h])
            continue;
        dti_text_add(text, "%s", between);
        between = ", ";
        dti_describe_host(cluster, h, text);
        const struct dti_header *last = headers->peer[h].known[headers->number % 2];
        if (last == NULL && headers->number > 1)
            last = headers->peer[h].known[(headers->number - 1) % 2];
        if (last == NULL)
            dti_text_add(text, " (in no call of this run yet)");
        else
            dti_text_add(text, " (last heard of in %s #%llu)", last->call_name,
                         (unsigned long long)last->call_number);
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
