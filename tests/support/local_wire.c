/* tests/support/local_wire.c - a wire between threads of one process. See local_wire.h. */
#include "support/local_wire.h"
#include "base/errors/status.h"
#include "base/waiting/futex.h"
#include "support/support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct message {
    struct message *next;
    uint32_t from, to, channel;
    uint64_t visible_ns;
    uint64_t ticket; /* of the send that finishes when the message is received, or 0 */
    size_t bytes;
    unsigned char data[];
};

struct receive {
    struct receive *next;
    uint32_t from, channel;
    void *data;
    size_t capacity;
    uint64_t ticket;
};

struct event {
    struct event *next;
    ditto_wire_event is;
};

struct local_host {
    struct local_network *network;
    uint32_t number;
    bool is_lost;
    struct receive *receives; /* in the order in which they began */
    struct event *events;
};

struct local_network {
    pthread_mutex_t lock;
    uint32_t hosts, delay_us;
    uint64_t seed;
    struct message *messages; /* in the order in which they were sent */
    struct local_host host[];
};

static void add_event(struct local_host *host, ditto_wire_event is)
{
    struct event **end = &host->events, *event = calloc(1, sizeof *event);
    while (*end != NULL)
        end = &(*end)->next;
    event->is = is;
    *end = event;
}

/* A message must not be visible before an earlier one of its pair and channel. */
static uint64_t visible_at(struct local_network *network, const struct message *message)
{
    uint64_t at = dti_now_ns();
    if (network->delay_us != 0)
        at += test_random(&network->seed) % (network->delay_us * UINT64_C(1000));
    for (const struct message *m = network->messages; m != NULL; m = m->next)
        if (m->from == message->from && m->to == message->to && m->channel == message->channel &&
            m->visible_ns > at)
            at = m->visible_ns;
    return at;
}

static ditto_status send(void *user, uint32_t to, uint32_t channel, const void *data, size_t bytes,
                         uint64_t ticket)
{
    struct local_host *host = user;
    struct local_network *network = host->network;
    struct message *message = calloc(1, sizeof *message + bytes), **end = &network->messages;
    *message = (struct message){ .from = host->number, .to = to, .channel = channel, .bytes = bytes };
    memcpy(message->data, data, bytes);
    pthread_mutex_lock(&network->lock);
    message->visible_ns = visible_at(network, message);
    bool at_once = network->delay_us == 0 || test_random(&network->seed) % 2 == 0;
    if (at_once || host->is_lost)
        add_event(host, (ditto_wire_event){ ticket, bytes, DITTO_OK });
    else
        message->ticket = ticket;
    while (*end != NULL)
        end = &(*end)->next;
    if (host->is_lost)
        free(message);
    else
        *end = message;
    pthread_mutex_unlock(&network->lock);
    return DITTO_OK;
}

static ditto_status receive(void *user, uint32_t from, uint32_t channel, void *data, size_t capacity,
                            uint64_t ticket)
{
    struct local_host *host = user;
    struct receive **end = &host->receives, *r = calloc(1, sizeof *r);
    *r = (struct receive){ NULL, from, channel, data, capacity, ticket };
    while (*end != NULL)
        end = &(*end)->next;
    *end = r;
    return DITTO_OK;
}

static ditto_status cancel(void *user, uint64_t ticket)
{
    struct local_host *host = user;
    for (struct receive **link = &host->receives; *link != NULL; link = &(*link)->next)
        if ((*link)->ticket == ticket) {
            struct receive *r = *link;
            *link = r->next;
            free(r);
            return DITTO_OK;
        }
    return DITTO_PENDING;
}

/* Finds the oldest message that a receive can take, if it is visible. */
static struct message **message_for(struct local_host *host, const struct receive *r, uint64_t now)
{
    for (struct message **link = &host->network->messages; *link != NULL; link = &(*link)->next)
        if ((*link)->to == host->number && (*link)->from == r->from && (*link)->channel == r->channel)
            return (*link)->visible_ns <= now ? link : NULL;
    return NULL;
}

static void deliver(struct local_host *host, const struct receive *r, const struct message *message)
{
    bool fits = message->bytes <= r->capacity;
    if (fits && message->bytes != 0)
        memcpy(r->data, message->data, message->bytes);
    add_event(host, (ditto_wire_event){ r->ticket, message->bytes, fits ? DITTO_OK : DITTO_ERR_RANGE });
    if (message->ticket != 0)
        add_event(&host->network->host[message->from],
                  (ditto_wire_event){ message->ticket, message->bytes, DITTO_OK });
}

static ditto_status progress(void *user, ditto_wire_event *events, size_t capacity, size_t *count)
{
    struct local_host *host = user;
    *count = 0;
    pthread_mutex_lock(&host->network->lock);
    uint64_t now = dti_now_ns();
    for (struct receive **link = &host->receives; *link != NULL;) {
        struct receive *r = *link;
        struct message **found = message_for(host, r, now), *message;
        if (found == NULL) {
            link = &r->next;
            continue;
        }
        message = *found;
        deliver(host, r, message);
        *found = message->next;
        *link = r->next;
        free(message);
        free(r);
    }
    while (host->events != NULL && *count < capacity) {
        struct event *event = host->events;
        events[(*count)++] = event->is;
        host->events = event->next;
        free(event);
    }
    pthread_mutex_unlock(&host->network->lock);
    return DITTO_OK;
}

struct local_network *local_network_make(uint32_t hosts, uint32_t delay_us, uint64_t seed)
{
    struct local_network *network = calloc(1, sizeof *network + hosts * sizeof network->host[0]);
    pthread_mutex_init(&network->lock, NULL);
    network->hosts = hosts;
    network->delay_us = delay_us;
    network->seed = seed;
    for (uint32_t h = 0; h < hosts; h++) {
        network->host[h].network = network;
        network->host[h].number = h;
    }
    return network;
}

void local_network_wire(struct local_network *network, uint32_t host, ditto_wire *out)
{
    *out = (ditto_wire)DITTO_WIRE_INIT;
    out->num_hosts = network->hosts;
    out->host = host;
    out->name = "threads of one process";
    out->user = &network->host[host];
    out->send = send;
    out->receive = receive;
    out->cancel = cancel;
    out->progress = progress;
}

void local_network_lose(struct local_network *network, uint32_t host)
{
    pthread_mutex_lock(&network->lock);
    network->host[host].is_lost = true;
    pthread_mutex_unlock(&network->lock);
}

size_t local_network_left(struct local_network *network)
{
    size_t left = 0;
    pthread_mutex_lock(&network->lock);
    for (const struct message *m = network->messages; m != NULL; m = m->next)
        left++;
    for (uint32_t h = 0; h < network->hosts; h++)
        for (const struct receive *r = network->host[h].receives; r != NULL; r = r->next)
            left++;
    pthread_mutex_unlock(&network->lock);
    return left;
}

void local_network_free(struct local_network *network)
{
    for (struct message *m = network->messages, *next; m != NULL; m = next) {
        next = m->next;
        free(m);
    }
    for (uint32_t h = 0; h < network->hosts; h++) {
        for (struct receive *r = network->host[h].receives, *next; r != NULL; r = next) {
            next = r->next;
            free(r);
        }
        for (struct event *e = network->host[h].events, *next; e != NULL; e = next) {
            next = e->next;
            free(e);
        }
    }
    pthread_mutex_destroy(&network->lock);
    free(network);
}
