/* tests/fuzz/fuzz_headers.c - the messages by which hosts agree (src/cluster/header.h), when those that
 * arrive are damaged. The wire returns what this host sends, as if all other hosts did the same. The input
 * changes some of these messages: every four bytes of it name a message, an offset, and what is done there.
 * */
#include "fuzz/fuzz.h"
#include "base/text/text.h"
#include "cluster/header.h"
#include "support/support.h"

const char *const fuzz_seeds[] = {
    "\x1f\x01\x01\x01", /* changes nothing */
    "\x01\x01\x04\x01", /* the kind of a header */
    "\x02\x01\x06\x01", /* the bytes behind it */
    "\x03\x01\x61\x02", /* in a last header */
    "\x08\x02\x61\x02\x09\x02\x71\x02",
    "\x04\x81\x21\x01", /* shorter */
    NULL,
};
const char *const fuzz_words[] = { "\x01", "\x7f", "\x81", "\xff", "\x03\x01", "\x04\x81", NULL };
unsigned long fuzz_accepted;

enum { MOST_HOSTS = 8, MOST_MESSAGES = 16, MOST_EVENTS = 512 };

struct message {
    unsigned char *data;
    size_t bytes;
};

struct receive {
    bool is_open;
    uint64_t ticket;
    void *data;
    size_t capacity;
};

/* What this host has sent to each other one on channel 0, and what it receives from it. */
static struct fuzz_wire {
    struct message sent[MOST_HOSTS][MOST_MESSAGES];
    uint32_t num_sent[MOST_HOSTS], num_taken[MOST_HOSTS];
    struct receive receive[MOST_HOSTS];
    ditto_wire_event event[MOST_EVENTS];
    size_t events, first_event;
    uint32_t delivered;
    const uint8_t *input;
    size_t input_bytes;
} wire;

static void add_event(uint64_t ticket, size_t bytes, ditto_status status)
{
    if (wire.events < MOST_EVENTS)
        wire.event[wire.events++] = (ditto_wire_event){ ticket, bytes, status };
}

/* Damages message number `delivered`. */
static void damage(struct message *m)
{
    for (size_t i = 0; i + 4 <= wire.input_bytes; i += 4) {
        const uint8_t *change = wire.input + i;
        size_t at = (size_t)((change[1] - 1) & 7) * 256 + change[2];
        if (change[0] % 32 != wire.delivered)
            continue;
        if (change[1] & 0x80)
            m->bytes = at < m->bytes ? at : m->bytes;
        else if (at < m->bytes)
            m->data[at] ^= change[3];
    }
}

static void deliver(uint32_t from)
{
    struct receive *r = &wire.receive[from];
    if (!r->is_open || wire.num_taken[from] == wire.num_sent[from])
        return;
    struct message *m = &wire.sent[from][wire.num_taken[from]++];
    if (wire.num_taken[from] == 1) { /* its greeting says who it is */
        memcpy(m->data + 16, &from, sizeof from);
    } else {
        wire.delivered++;
        damage(m);
    }
    bool fits = m->bytes <= r->capacity;
    if (fits)
        memcpy(r->data, m->data, m->bytes);
    r->is_open = false;
    add_event(r->ticket, fits ? m->bytes : 0, fits ? DITTO_OK : DITTO_ERR_RANGE);
}

static ditto_status wire_send(void *user, uint32_t to, uint32_t channel, const void *data, size_t bytes,
                              uint64_t ticket)
{
    if (channel != 0 || wire.num_sent[to] == MOST_MESSAGES)
        return DITTO_ERR_SYSTEM;
    struct message *m = &wire.sent[to][wire.num_sent[to]++];
    *m = (struct message){ malloc(bytes), bytes };
    if (m->data == NULL)
        abort();
    memcpy(m->data, data, bytes);
    add_event(ticket, bytes, DITTO_OK);
    deliver(to);
    return DITTO_OK;
}

static ditto_status wire_receive(void *user, uint32_t from, uint32_t channel, void *data, size_t capacity,
                                 uint64_t ticket)
{
    if (channel != 0)
        return DITTO_ERR_SYSTEM; /* there are no data messages, whatever a host says */
    wire.receive[from] = (struct receive){ true, ticket, data, capacity };
    deliver(from);
    return DITTO_OK;
}

static ditto_status wire_cancel(void *user, uint64_t ticket)
{
    for (uint32_t h = 0; h < MOST_HOSTS; h++)
        if (wire.receive[h].is_open && wire.receive[h].ticket == ticket) {
            wire.receive[h].is_open = false;
            return DITTO_OK;
        }
    return DITTO_PENDING;
}

static ditto_status wire_progress(void *user, ditto_wire_event *events, size_t capacity, size_t *count)
{
    for (*count = 0; *count < capacity && wire.first_event < wire.events;)
        events[(*count)++] = wire.event[wire.first_event++];
    return DITTO_OK;
}

/* Makes two calls, and ends the epoch with an error. Returns true if all hosts agree on all of this. */
static bool agree(ditto_cluster *cluster)
{
    struct dti_limits soon = { .deadline = { .timeout_ms = 5 } };
    struct dti_intent intent = { .kind = DTI_HEADER_CALL, .digest = 5, .name = "fuzz", .payload_bytes = 64 };
    for (int i = 0; i < 2; i++) {
        memset(dti_header_out(cluster), i, intent.payload_bytes);
        enum dti_verdict verdict = dti_headers_exchange(cluster, &intent, &soon);
        bool missing[DTI_MAX_HOSTS];
        char text[400];
        struct dti_text to = { text, sizeof text, 0 };
        dti_headers_list_missing(cluster, missing);
        dti_headers_describe(cluster, missing, &to);
        if (verdict == DTI_HEADERS_LAST)
            (void)dti_headers_fail_last(cluster);
        if (verdict == DTI_HEADERS_DIFFER)
            (void)dti_headers_fail_differ(cluster, "fuzz");
        if (verdict != DTI_HEADERS_EQUAL || dti_headers_confirm(cluster) != DTI_HEADERS_EQUAL)
            break;
    }
    bool in_time = dti_headers_number(cluster) == 2 && !dti_headers_are_broken(cluster);
    ditto_error error = { .status = DITTO_ERR_USER, .message = "fuzz" };
    struct dti_limits last = { .deadline = { .timeout_ms = 5 } };
    return dti_headers_close(cluster, &error, &last) == DITTO_OK && in_time &&
           strcmp(error.message, "fuzz") == 0;
}

static void forget_messages(void)
{
    for (uint32_t h = 0; h < MOST_HOSTS; h++)
        for (uint32_t i = 0; i < wire.num_sent[h]; i++)
            free(wire.sent[h][i].data);
    memset(&wire, 0, sizeof wire);
}

/* Returns true if the hosts agree. The wire forgets what is unfinished, so no memory need be kept for it. */
static bool try(uint32_t hosts)
{
    ditto_cluster *cluster;
    ditto_wire own = { .struct_size = sizeof own,
                       .num_hosts = hosts,
                       .host = hosts / 2,
                       .name = "fuzz",
                       .send = wire_send,
                       .receive = wire_receive,
                       .cancel = wire_cancel,
                       .progress = wire_progress };
    ditto_cluster_options options = { .struct_size = sizeof options,
                                      .timeout_ms = 5,
                                      .life_line = DITTO_SWITCH_OFF };
    if (ditto_cluster_create(&own, &options, &cluster) != DITTO_OK)
        abort(); /* greetings are not damaged */
    bool agreed = agree(cluster);
    while (cluster->kept != NULL) {
        struct dti_kept *next = cluster->kept->next;
        free(cluster->kept);
        cluster->kept = next;
    }
    cluster->is_poisoned = false;
    assert_ok(ditto_cluster_destroy(cluster));
    return agreed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dti_most_direct_hosts = 4;
    wire.input = data;
    wire.input_bytes = size;
    fuzz_accepted += try(2u << size % 3); /* 2 and 4 hosts directly, 8 in steps */
    forget_messages();
    return 0;
}
