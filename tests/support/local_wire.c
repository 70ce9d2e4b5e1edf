/* tests/support/local_wire.c - a wire between threads, or forked processes. See local_wire.h. */
#include "support/local_wire.h"
#include "base/errors/status.h"
#include "base/waiting/futex.h"
#include "support/support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

/* Memory that forked processes have in common, at the same address. Blocks have the size of a power of two.
 * The first word of a free block is the next one. */
enum { SMALLEST = 6, CLASSES = 34 };
#define ARENA_BYTES ((size_t)2 << 30)
#define PAGE_BYTES  ((size_t)4096)

struct arena {
    size_t used;
    void *unused[CLASSES];
};

struct local_network {
    pthread_mutex_t lock;
    struct arena *arena; /* NULL if the hosts are threads */
    uint32_t hosts, delay_us;
    uint64_t seed;
    struct message *messages; /* in the order in which they were sent */
    struct local_host host[];
};

/* -- memory. The caller has the lock -- */

static int class_of(size_t bytes)
{
    int class = SMALLEST;
    while (((size_t)1 << class) < bytes)
        class ++;
    return class;
}

/* Returns memory that is zero. */
static void *take(const struct local_network *network, size_t bytes)
{
    struct arena *arena = network->arena;
    if (arena == NULL)
        return calloc(1, bytes);
    int class = class_of(bytes);
    void *block = arena->unused[class];
    if (block != NULL) {
        memcpy(&arena->unused[class], block, sizeof(void *));
    } else {
        block = (char *)arena + arena->used;
        arena->used += (size_t)1 << class;
        if (arena->used > ARENA_BYTES)
            abort();
    }
    return memset(block, 0, bytes);
}

static void give(const struct local_network *network, void *block, size_t bytes)
{
    struct arena *arena = network->arena;
    if (arena == NULL) {
        free(block);
        return;
    }
    memcpy(block, &arena->unused[class_of(bytes)], sizeof(void *));
    arena->unused[class_of(bytes)] = block;
}

static void give_message(const struct local_network *network, struct message *message)
{
    give(network, message, sizeof *message + message->bytes);
}

/* -- the wire -- */

static void add_event(struct local_host *host, ditto_wire_event is)
{
    struct event **end = &host->events, *event = take(host->network, sizeof *event);
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
    pthread_mutex_lock(&network->lock);
    struct message *message = take(network, sizeof *message + bytes), **end = &network->messages;
    *message = (struct message){ .from = host->number, .to = to, .channel = channel, .bytes = bytes };
    memcpy(message->data, data, bytes);
    message->visible_ns = visible_at(network, message);
    bool at_once = network->delay_us == 0 || test_random(&network->seed) % 2 == 0;
    if (at_once || host->is_lost)
        add_event(host, (ditto_wire_event){ ticket, bytes, DITTO_OK });
    else
        message->ticket = ticket;
    while (*end != NULL)
        end = &(*end)->next;
    if (host->is_lost)
        give_message(network, message);
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
        give_message(host->network, message);
        free(r);
    }
    while (host->events != NULL && *count < capacity) {
        struct event *event = host->events;
        events[(*count)++] = event->is;
        host->events = event->next;
        give(host->network, event, sizeof *event);
    }
    pthread_mutex_unlock(&host->network->lock);
    return DITTO_OK;
}

static void prepare(struct local_network *network, uint32_t hosts, uint32_t delay_us, uint64_t seed)
{
    network->hosts = hosts;
    network->delay_us = delay_us;
    network->seed = seed;
    for (uint32_t h = 0; h < hosts; h++) {
        network->host[h].network = network;
        network->host[h].number = h;
    }
}

struct local_network *local_network_make(uint32_t hosts, uint32_t delay_us, uint64_t seed)
{
    struct local_network *network = calloc(1, sizeof *network + hosts * sizeof network->host[0]);
    pthread_mutex_init(&network->lock, NULL);
    prepare(network, hosts, delay_us, seed);
    return network;
}

struct local_network *local_network_make_shared(uint32_t hosts, uint32_t delay_us, uint64_t seed)
{
    size_t bytes = sizeof(struct local_network) + hosts * sizeof(struct local_host);
    pthread_mutexattr_t shared;
    struct arena *arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED)
        return NULL;
    struct local_network *network = (struct local_network *)((char *)arena + PAGE_BYTES);
    arena->used = PAGE_BYTES + (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    network->arena = arena;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&network->lock, &shared);
    pthread_mutexattr_destroy(&shared);
    prepare(network, hosts, delay_us, seed);
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
    if (network->arena != NULL) {
        munmap(network->arena, ARENA_BYTES);
        return;
    }
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
