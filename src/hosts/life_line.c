/* src/hosts/life_line.c - the thread that watches the connections between hosts. See life_line.h. */
#include "hosts/life_line.h"
#include "base/errors/status.h"
#include "base/text/text.h"
#include "hosts/cluster.h"
#include "hosts/star.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NEWS_LEAVES = 1, NEWS_LOST };

/* What is written to the eventfd. */
#define ENDS UINT64_C(1)
#define CUTS (UINT64_C(1) << 32)

/* What a host says on a connection. */
struct news {
    uint32_t kind;
    uint32_t host; /* that is lost */
};

struct connection {
    int fd; /* -1 if there is none, or the other host has left */
    uint32_t host;
    struct news news; /* of which `got` bytes have arrived */
    size_t got;
};

struct dti_life_line {
    ditto_cluster *cluster;
    struct connection *connection; /* [connections]: all other hosts, or host 0 alone */
    uint32_t connections;
    struct pollfd *polled; /* [connections + 1], the last one is `end` */
    int end;               /* an eventfd that ends the thread, or cuts the connections */
    pthread_t thread;

    /* The lost host and 1, or 0. The first one counts. */
    _Atomic uint32_t lost;

    /* Guards the members below, and `ranges` of the cluster while the thread describes a host. */
    pthread_mutex_t lock;
    void (*stop)(void *argument);
    void *argument;
};

/* -- a loss -- */

bool dti_life_line_has_lost(const ditto_cluster *cluster)
{
    const struct dti_life_line *l = cluster->life_line;
    /* relaxed: the number is all that is published. */
    return l != NULL && atomic_load_explicit(&l->lost, memory_order_relaxed) != 0;
}

static ditto_status fail_lost(const ditto_cluster *cluster, uint32_t host)
{
    char name[DTI_HOST_NAME_BYTES + 64];
    struct dti_text text = { name, sizeof name, 0 };
    dti_describe_host(cluster, host, &text);
    return DTI_FAIL(
        DITTO_ERR_LOST,
        "%s is gone: its process has ended, or its network does not answer. Only destroy is allowed", name);
}

ditto_status dti_life_line_fail(const ditto_cluster *cluster)
{
    struct dti_life_line *l = cluster->life_line;
    pthread_mutex_lock(&l->lock);
    ditto_status status = fail_lost(cluster, atomic_load_explicit(&l->lost, memory_order_relaxed) - 1);
    pthread_mutex_unlock(&l->lock);
    return status;
}

void dti_life_line_set_ranges(ditto_cluster *cluster, const struct dti_ranges *ranges)
{
    struct dti_life_line *l = cluster->life_line;
    if (l != NULL)
        pthread_mutex_lock(&l->lock);
    cluster->ranges = ranges;
    if (l != NULL)
        pthread_mutex_unlock(&l->lock);
}

void dti_life_line_watch(ditto_cluster *cluster, void (*stop)(void *argument), void *argument)
{
    struct dti_life_line *l = cluster->life_line;
    if (l == NULL)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = stop;
    l->argument = argument;
    pthread_mutex_unlock(&l->lock);
}

/* -- the thread -- */

static void say(const struct connection *c, uint32_t kind, uint32_t host)
{
    struct news news = { kind, host };
    /* A connection that is full or broken has no reader, who will notice it in another way. */
    if (c->fd >= 0)
        (void)!send(c->fd, &news, sizeof news, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void lose(struct dti_life_line *l, uint32_t host)
{
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong_explicit(&l->lost, &none, host + 1, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    for (uint32_t i = 0; l->cluster->wire.host == 0 && i < l->connections; i++)
        if (l->connection[i].host != host)
            say(&l->connection[i], NEWS_LOST, host);
    pthread_mutex_lock(&l->lock);
    if (l->stop != NULL) {
        (void)fail_lost(l->cluster, host);
        l->stop(l->argument);
    }
    pthread_mutex_unlock(&l->lock);
}

static void close_connection(struct connection *c)
{
    close(c->fd);
    c->fd = -1;
}

/* Reads from a connection that has something to read, or is closed. */
static void listen_to(struct dti_life_line *l, struct connection *c)
{
    ssize_t got = recv(c->fd, (char *)&c->news + c->got, sizeof c->news - c->got, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        close_connection(c);
        lose(l, c->host);
        return;
    }
    c->got += (size_t)got;
    if (c->got < sizeof c->news)
        return;
    c->got = 0;
    if (c->news.kind == NEWS_LEAVES)
        close_connection(c);
    else if (c->news.kind == NEWS_LOST && c->news.host < l->cluster->wire.num_hosts)
        lose(l, c->news.host);
}

/* Returns true if the thread must end. */
static bool obey(struct dti_life_line *l)
{
    uint64_t orders = 0;
    (void)!read(l->end, &orders, sizeof orders);
    for (uint32_t i = 0; orders >= CUTS && i < l->connections; i++)
        if (l->connection[i].fd >= 0)
            close_connection(&l->connection[i]);
    return orders % CUTS != 0;
}

static void *watch(void *argument)
{
    struct dti_life_line *l = argument;
    pthread_setname_np(pthread_self(), "ditto-life");
    dti_public_function = "the life line";
    for (;;) {
        for (uint32_t i = 0; i < l->connections; i++)
            l->polled[i] = (struct pollfd){ .fd = l->connection[i].fd, .events = POLLIN };
        l->polled[l->connections] = (struct pollfd){ .fd = l->end, .events = POLLIN };
        if (poll(l->polled, l->connections + 1, -1) < 0)
            continue; /* a signal */
        if (l->polled[l->connections].revents != 0 && obey(l))
            return NULL;
        for (uint32_t i = 0; i < l->connections; i++)
            if (l->polled[i].revents != 0 && l->connection[i].fd >= 0)
                listen_to(l, &l->connection[i]);
    }
}

/* -- life -- */

static void release(struct dti_life_line *l)
{
    for (uint32_t i = 0; l->connection != NULL && i < l->connections; i++)
        if (l->connection[i].fd >= 0)
            close(l->connection[i].fd);
    if (l->end >= 0)
        close(l->end);
    pthread_mutex_destroy(&l->lock);
    free(l->connection);
    free(l->polled);
    free(l);
}

/* Starts the thread with all signals blocked. fd[h] is the connection with host h, or -1. */
static struct dti_life_line *start(ditto_cluster *cluster, const int *fd)
{
    struct dti_life_line *l = calloc(1, sizeof *l);
    sigset_t all, before;
    if (l == NULL)
        return NULL;
    l->cluster = cluster;
    l->end = eventfd(0, EFD_CLOEXEC);
    l->connection = calloc(cluster->wire.num_hosts, sizeof *l->connection);
    l->polled = calloc((size_t)cluster->wire.num_hosts + 1, sizeof *l->polled);
    pthread_mutex_init(&l->lock, NULL);
    if (l->end < 0 || l->connection == NULL || l->polled == NULL) {
        release(l);
        return NULL;
    }
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++)
        if (fd[h] >= 0)
            l->connection[l->connections++] = (struct connection){ .fd = fd[h], .host = h };
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&l->thread, NULL, watch, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed == 0)
        return l;
    l->connections = 0; /* the caller closes them */
    release(l);
    return NULL;
}

ditto_status dti_life_line_make(ditto_cluster *cluster, uint32_t timeout_ms)
{
    uint32_t hosts = cluster->wire.num_hosts;
    bool all_connected = false;
    int *fd = malloc(hosts * sizeof *fd);
    if (fd == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for connections of %u hosts", hosts);
    ditto_status status = dti_star_connect(cluster, timeout_ms, fd, &all_connected);
    if (all_connected && status == DITTO_OK)
        cluster->life_line = start(cluster, fd);
    for (uint32_t h = 0; cluster->life_line == NULL && h < hosts; h++) {
        struct connection c = { .fd = fd[h], .host = h };
        if (c.fd < 0)
            continue;
        /* This host has no memory for its thread, but it is not lost. */
        say(&c, NEWS_LEAVES, cluster->wire.host);
        close_connection(&c);
    }
    free(fd);
    return status;
}

void dti_life_line_cut(ditto_cluster *cluster)
{
    uint64_t orders = CUTS;
    (void)!write(cluster->life_line->end, &orders, sizeof orders);
}

void dti_life_line_end(ditto_cluster *cluster)
{
    struct dti_life_line *l = cluster->life_line;
    uint64_t orders = ENDS;
    if (l == NULL)
        return;
    if (!dti_cluster_is_forked(cluster)) { /* the thread is in the parent process */
        (void)!write(l->end, &orders, sizeof orders);
        pthread_join(l->thread, NULL);
        for (uint32_t i = 0; i < l->connections; i++)
            say(&l->connection[i], NEWS_LEAVES, cluster->wire.host);
    }
    cluster->life_line = NULL;
    release(l);
}
