/* src/cluster/life_line.c - the thread that watches the connections between hosts. See life_line.h. */
#include "cluster/life_line.h"
#include "base/errors/status.h"
#include "base/text/text.h"
#include "base/waiting/futex.h"
#include "cluster/cluster.h"
#include "cluster/host_thread.h"
#include "cluster/socket.h"
#include "cluster/star.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* BEAT: the host lives. LEAVES: it destroys its cluster. LOST, LEFT: another one is lost, or has left. */
enum { NEWS_BEAT = 1, NEWS_LEAVES, NEWS_LEFT, NEWS_LOST, NEWS_NOTICE };

/* What is written to the eventfd, which adds it up. */
#define WAKES UINT64_C(1)
#define CUTS  (UINT64_C(1) << 32)
#define ENDS  (UINT64_C(1) << 48)

#define LEAVE_MS 1000

/* Beats in the time after which a silent host is lost. */
#define BEATS 10

uint32_t dti_life_line_silence_ms = 10000;

/* What a host says on a connection. */
struct news {
    uint32_t kind;
    uint32_t host;            /* of NEWS_LEFT and NEWS_LOST */
    uint64_t last;            /* of NEWS_LEAVES and NEWS_LEFT: position() of the host's last exchange */
    struct dti_notice notice; /* of NEWS_NOTICE */
};

struct connection {
    int fd; /* -1 if there is none, or the other host has left */
    uint32_t host;
    struct news news; /* of which `got` bytes have arrived */
    size_t got;
    uint64_t silent_ns; /* for how long nothing has arrived. Host 0 counts it */

    /* Bytes that the connection could not take yet. The thread sends them. Guarded by `sending`. */
    char *unsent;
    size_t unsent_bytes;
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
    bool *is_lost; /* [hosts] Only the thread uses it. */

    /* For hosts that have left, position() of the last exchange that each took part in. 0 for the others. */
    _Atomic uint64_t *left; /* [hosts] */
    _Atomic bool any_left;

    /* Only the thread uses them: when it last looked, and when it last said that this host lives. */
    uint64_t silence_ns, looked_ns, beat_ns;
    _Atomic uint32_t sleep_ms; /* of dti_life_line_suspend */

    /* Guards the members below, and `ranges` of the cluster while the thread describes a host. A thread that
     * holds it may take `sending`, and not the other way round. */
    pthread_mutex_t lock;
    void (*stop)(void *argument);
    void *argument;
    struct dti_listener *listeners;

    /* Guards what is sent, because other threads send notices. */
    pthread_mutex_t sending;
};

static void give_order(const struct dti_life_line *l, uint64_t order)
{
    (void)!write(l->end, &order, sizeof order);
}

/* -- a loss -- */

bool dti_life_line_has_lost(const ditto_cluster *cluster)
{
    const struct dti_life_line *l = cluster->life_line;
    /* relaxed: the number is all that is published. */
    return l != NULL && atomic_load_explicit(&l->lost, memory_order_relaxed) != 0;
}

static ditto_status fail_lost(const ditto_cluster *cluster, uint32_t host)
{
    const char *why = "its process has ended or was stopped, or its network does not answer";
    char name[DTI_HOST_NAME_BYTES + 64];
    struct dti_text text = { name, sizeof name, 0 };
    dti_describe_host(cluster, host, &text);
    if (host == cluster->wire.host)
        why = "it did not answer host 0 for too long, and the other hosts have gone on without it";
    /* relaxed: it only decides what the message says. */
    else if (atomic_load_explicit(&cluster->life_line->left[host], memory_order_relaxed) != 0)
        why = "it has destroyed its cluster";
    return DTI_FAIL(DITTO_ERR_LOST, "%s is gone: %s. Only destroy is allowed", name, why);
}

ditto_status dti_life_line_fail(const ditto_cluster *cluster)
{
    struct dti_life_line *l = cluster->life_line;
    pthread_mutex_lock(&l->lock);
    ditto_status status = fail_lost(cluster, atomic_load_explicit(&l->lost, memory_order_relaxed) - 1);
    pthread_mutex_unlock(&l->lock);
    return status;
}

/* Records the loss of a host. Returns true if it is the first one. */
static bool record_loss(struct dti_life_line *l, uint32_t host)
{
    uint32_t none = 0;
    /* relaxed: the number is all that is published. */
    return atomic_compare_exchange_strong_explicit(&l->lost, &none, host + 1, memory_order_relaxed,
                                                   memory_order_relaxed);
}

/* Returns a number that grows with the epoch, and in an epoch with the exchange. It is not 0. */
static uint64_t position(const ditto_cluster *cluster, uint64_t number)
{
    uint64_t most = (UINT64_C(1) << 40) - 1;
    return (dti_cluster_epoch(cluster) + UINT64_C(1)) << 40 | (number < most ? number : most);
}

void dti_life_line_await(const ditto_cluster *cluster, uint64_t number)
{
    struct dti_life_line *l = cluster->life_line;
    /* acquire: pairs with the release in note_leave. */
    if (l == NULL || !atomic_load_explicit(&l->any_left, memory_order_acquire))
        return;
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++) {
        uint64_t last = atomic_load_explicit(&l->left[h], memory_order_relaxed);
        if (last != 0 && last < position(cluster, number))
            (void)record_loss(l, h);
    }
}

void dti_life_line_set_ranges(ditto_cluster *cluster, const struct dti_ranges *ranges)
{
    /* In a child process there is no thread of the life line, which may have held the lock at the fork. */
    struct dti_life_line *l = dti_cluster_is_forked(cluster) ? NULL : cluster->life_line;
    if (l != NULL)
        pthread_mutex_lock(&l->lock);
    cluster->ranges = ranges;
    if (l != NULL)
        pthread_mutex_unlock(&l->lock);
}

void dti_life_line_watch(ditto_cluster *cluster, void (*stop)(void *argument), void *argument)
{
    struct dti_life_line *l = cluster->life_line;
    if (l == NULL || dti_cluster_is_forked(cluster))
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = stop;
    l->argument = argument;
    pthread_mutex_unlock(&l->lock);
}

/* -- sending. `sending` is held, unless the thread of the life line does not run -- */

/* Keeps bytes for the thread. If there is no memory for them, the connection is given up, because half a
 * message would make all later ones unreadable. */
static void keep_unsent(struct connection *c, const char *data, size_t bytes)
{
    char *longer = realloc(c->unsent, c->unsent_bytes + bytes);
    if (longer == NULL) {
        (void)shutdown(c->fd, SHUT_RDWR);
        return;
    }
    memcpy(longer + c->unsent_bytes, data, bytes);
    c->unsent = longer;
    c->unsent_bytes += bytes;
}

/* Sends as much as the connection takes now. Returns the number of bytes. A broken connection takes all, and
 * is noticed where it is read. */
static size_t try_to_send(const struct connection *c, const void *data, size_t bytes)
{
    ssize_t sent;
    do
        sent = send(c->fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent >= 0 ? (size_t)sent : errno == EAGAIN || errno == EWOULDBLOCK ? 0 : bytes;
}

static void say(struct connection *c, const struct news *news)
{
    if (c->fd < 0)
        return;
    size_t sent = c->unsent_bytes == 0 ? try_to_send(c, news, sizeof *news) : 0;
    if (sent < sizeof *news)
        keep_unsent(c, (const char *)news + sent, sizeof *news - sent);
}

static void say_rest(struct connection *c)
{
    size_t sent = try_to_send(c, c->unsent, c->unsent_bytes);
    c->unsent_bytes -= sent;
    memmove(c->unsent, c->unsent + sent, c->unsent_bytes);
}

/* Says it to all hosts that this one is connected with, except one. */
static void say_to_all(struct dti_life_line *l, const struct news *news, uint32_t except)
{
    bool rest = false;
    pthread_mutex_lock(&l->sending);
    for (uint32_t i = 0; i < l->connections; i++)
        if (l->connection[i].host != except) {
            say(&l->connection[i], news);
            rest |= l->connection[i].unsent_bytes > 0;
        }
    pthread_mutex_unlock(&l->sending);
    if (rest)
        give_order(l, WAKES);
}

/* -- notices -- */

void dti_life_line_tell(ditto_cluster *cluster, const struct dti_notice *notice)
{
    struct news news = { .kind = NEWS_NOTICE, .notice = *notice };
    news.notice.from = cluster->wire.host;
    say_to_all(cluster->life_line, &news, cluster->wire.host);
}

void dti_life_line_listen(ditto_cluster *cluster, struct dti_listener *listener)
{
    struct dti_life_line *l = cluster->life_line;
    pthread_mutex_lock(&l->lock);
    listener->next = l->listeners;
    l->listeners = listener;
    pthread_mutex_unlock(&l->lock);
}

void dti_life_line_ignore(ditto_cluster *cluster, struct dti_listener *listener)
{
    struct dti_life_line *l = cluster->life_line;
    pthread_mutex_lock(&l->lock);
    struct dti_listener **link = &l->listeners;
    while (*link != NULL && *link != listener)
        link = &(*link)->next;
    if (*link != NULL)
        *link = listener->next;
    pthread_mutex_unlock(&l->lock);
}

static void hear(struct dti_life_line *l, const struct dti_notice *notice)
{
    pthread_mutex_lock(&l->lock);
    for (struct dti_listener *i = l->listeners; i != NULL; i = i->next)
        if (i->subject == notice->subject)
            i->hear(i, notice);
    pthread_mutex_unlock(&l->lock);
}

/* -- the thread -- */

static void lose(struct dti_life_line *l, uint32_t host)
{
    /* Host 0 tells of each lost host. A host whose connection with host 0 breaks may also be told. */
    if (l->is_lost[host])
        return;
    l->is_lost[host] = true;
    if (l->cluster->wire.host == 0)
        say_to_all(l, &(struct news){ .kind = NEWS_LOST, .host = host }, DTI_NO_HOST);
    if (!record_loss(l, host))
        return;
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
    free(c->unsent);
    c->unsent = NULL;
    c->unsent_bytes = 0;
}

/* The same, while other threads may send. */
static void hang_up(struct dti_life_line *l, struct connection *c)
{
    pthread_mutex_lock(&l->sending);
    close_connection(c);
    pthread_mutex_unlock(&l->sending);
}

/* A host has left, and takes part in nothing that is still to come. */
static void note_leave(struct dti_life_line *l, uint32_t host, uint64_t last)
{
    /* relaxed: the flag below publishes it. Once the flag is set, a waiting host reads each one again. */
    atomic_store_explicit(&l->left[host], last != 0 ? last : 1, memory_order_relaxed);
    /* release: pairs with the acquire in dti_life_line_await. */
    atomic_store_explicit(&l->any_left, true, memory_order_release);
    if (l->cluster->wire.host == 0)
        say_to_all(l, &(struct news){ .kind = NEWS_LEFT, .host = host, .last = last }, host);
}

/* Hears what a host has said. Another host may have said anything: what is unknown is dropped. */
static void hear_news(struct dti_life_line *l, struct connection *c, const struct news *news)
{
    bool is_host_0 = l->cluster->wire.host == 0;
    uint32_t hosts = l->cluster->wire.num_hosts;
    switch (news->kind) {
    case NEWS_LEAVES:
        hang_up(l, c);
        note_leave(l, c->host, news->last);
        break;
    case NEWS_LEFT: /* only host 0 says this, and that a host is lost */
        if (!is_host_0 && news->host < hosts)
            note_leave(l, news->host, news->last);
        break;
    case NEWS_LOST:
        if (!is_host_0 && news->host < hosts)
            lose(l, news->host);
        break;
    case NEWS_NOTICE:
        if (news->notice.from >= hosts || (is_host_0 && news->notice.from != c->host))
            break;
        if (is_host_0)
            say_to_all(l, news, c->host);
        hear(l, &news->notice);
        break;
    default: /* NEWS_BEAT */
        break;
    }
}

/* Reads from a connection that has something to read, or is closed. */
static void listen_to(struct dti_life_line *l, struct connection *c)
{
    ssize_t got = recv(c->fd, (char *)&c->news + c->got, sizeof c->news - c->got, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        hang_up(l, c);
        lose(l, c->host);
        return;
    }
    c->got += (size_t)got;
    if (c->got < sizeof c->news)
        return;
    c->got = 0;
    c->silent_ns = 0;
    hear_news(l, c, &c->news);
}

/* Returns true if the thread must end. */
static bool obey(struct dti_life_line *l)
{
    uint64_t orders = 0;
    (void)!read(l->end, &orders, sizeof orders);
    /* relaxed: the time is all that is published. */
    uint32_t sleep_ms = atomic_exchange_explicit(&l->sleep_ms, 0, memory_order_relaxed);
    if (sleep_ms != 0)
        nanosleep(&(struct timespec){ sleep_ms / 1000, sleep_ms % 1000 * 1000000L }, NULL);
    for (uint32_t i = 0; orders % ENDS >= CUTS && i < l->connections; i++)
        if (l->connection[i].fd >= 0)
            hang_up(l, &l->connection[i]);
    return orders >= ENDS;
}

/* Sets what the thread waits for. */
static void prepare_poll(struct dti_life_line *l)
{
    pthread_mutex_lock(&l->sending);
    for (uint32_t i = 0; i < l->connections; i++)
        l->polled[i] = (struct pollfd){ .fd = l->connection[i].fd,
                                        .events = l->connection[i].unsent_bytes > 0 ? POLLIN | POLLOUT
                                                                                    : POLLIN };
    pthread_mutex_unlock(&l->sending);
    l->polled[l->connections] = (struct pollfd){ .fd = l->end, .events = POLLIN };
}

static void attend_to(struct dti_life_line *l, uint32_t i)
{
    struct connection *c = &l->connection[i];
    if ((l->polled[i].revents & POLLOUT) != 0 && c->fd >= 0) {
        pthread_mutex_lock(&l->sending);
        say_rest(c);
        pthread_mutex_unlock(&l->sending);
    }
    if ((l->polled[i].revents & ~POLLOUT) != 0 && c->fd >= 0)
        listen_to(l, c);
}

/* Every host but 0 says that it lives, and host 0 counts for how long each one is silent. If host 0 was
 * suspended, it does not know who else was: of the time since it last looked, no more than two beats
 * count. */
static void keep_time(struct dti_life_line *l)
{
    uint64_t now = dti_now_ns(), beat = l->silence_ns / BEATS, since = now - l->looked_ns;
    l->looked_ns = now;
    if (l->cluster->wire.host != 0) {
        if (now - l->beat_ns >= beat) {
            l->beat_ns = now;
            say_to_all(l, &(struct news){ .kind = NEWS_BEAT }, DTI_NO_HOST);
        }
        return;
    }
    for (uint32_t i = 0; i < l->connections; i++) {
        struct connection *c = &l->connection[i];
        if (c->fd < 0)
            continue;
        c->silent_ns += since < 2 * beat ? since : 2 * beat;
        if (c->silent_ns > l->silence_ns) {
            lose(l, c->host); /* tells that host, too */
            hang_up(l, c);
        }
    }
}

static void *watch(void *argument)
{
    struct dti_life_line *l = argument;
    dti_this_thread()->function = "the life line";
    l->looked_ns = l->beat_ns = dti_now_ns();
    for (;;) {
        prepare_poll(l);
        int ready = poll(l->polled, l->connections + 1, (int)(l->silence_ns / BEATS / 1000000) + 1);
        if (ready > 0 && l->polled[l->connections].revents != 0 && obey(l))
            return NULL;
        for (uint32_t i = 0; ready > 0 && i < l->connections; i++)
            attend_to(l, i);
        keep_time(l);
    }
}

/* -- life -- */

static void release(struct dti_life_line *l)
{
    for (uint32_t i = 0; l->connection != NULL && i < l->connections; i++)
        if (l->connection[i].fd >= 0)
            close_connection(&l->connection[i]);
    if (l->end >= 0)
        close(l->end);
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->sending);
    free(l->connection);
    free(l->polled);
    free(l->is_lost);
    free(l->left);
    free(l);
}

/* fd[h] is the connection with host h, or -1. On failure the descriptors stay the caller's. */
static struct dti_life_line *allocate(ditto_cluster *cluster, const int *fd)
{
    struct dti_life_line *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->cluster = cluster;
    l->end = -1;
    l->silence_ns = dti_life_line_silence_ms * UINT64_C(1000000);
    l->connection = calloc(cluster->wire.num_hosts, sizeof *l->connection);
    l->polled = calloc((size_t)cluster->wire.num_hosts + 1, sizeof *l->polled);
    l->is_lost = calloc(cluster->wire.num_hosts, sizeof *l->is_lost);
    l->left = calloc(cluster->wire.num_hosts, sizeof *l->left);
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->sending, NULL);
    if (l->connection == NULL || l->polled == NULL || l->is_lost == NULL || l->left == NULL) {
        release(l);
        return NULL;
    }
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++)
        if (fd[h] >= 0)
            l->connection[l->connections++] = (struct connection){ .fd = fd[h], .host = h };
    return l;
}

/* Starts the thread, whose eventfd is `end`. On failure the descriptors stay the caller's. */
static struct dti_life_line *start(ditto_cluster *cluster, const int *fd, int end)
{
    struct dti_life_line *l = allocate(cluster, fd);
    if (l == NULL)
        return NULL;
    l->end = end;
    if (dti_host_thread_start(&l->thread, "ditto-life", watch, l) == 0)
        return l;
    l->end = -1;
    l->connections = 0;
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
    /* Made first: if there is no descriptor left for it, all hosts must know. */
    int end = eventfd(0, EFD_CLOEXEC);
    bool lacks_descriptors = end < 0 && (errno == EMFILE || errno == ENFILE);
    ditto_status status = dti_star_connect(cluster, timeout_ms, lacks_descriptors, fd, &all_connected);
    if (end >= 0 && all_connected && status == DITTO_OK)
        cluster->life_line = start(cluster, fd, end);
    if (end >= 0 && cluster->life_line == NULL)
        close(end);
    for (uint32_t h = 0; cluster->life_line == NULL && h < hosts; h++) {
        struct connection c = { .fd = fd[h], .host = h };
        if (c.fd < 0)
            continue;
        /* This host has no memory for its thread, but it is not lost. */
        say(&c, &(struct news){ .kind = NEWS_LEAVES });
        close_connection(&c);
    }
    free(fd);
    return status;
}

static bool is_connected(struct dti_life_line *l)
{
    bool is = false;
    pthread_mutex_lock(&l->sending);
    for (uint32_t i = 0; i < l->connections; i++)
        is |= l->connection[i].fd >= 0;
    pthread_mutex_unlock(&l->sending);
    return is;
}

void dti_life_line_cut(ditto_cluster *cluster)
{
    give_order(cluster->life_line, CUTS);
    while (is_connected(cluster->life_line))
        sched_yield();
}

void dti_life_line_suspend(ditto_cluster *cluster, uint32_t ms)
{
    /* relaxed: the time is all that is published. */
    atomic_store_explicit(&cluster->life_line->sleep_ms, ms, memory_order_relaxed);
    give_order(cluster->life_line, WAKES);
}

/* Waits until the connection is ready, at most until the deadline. */
static bool is_ready(const struct connection *c, short events, struct dti_deadline *deadline)
{
    (void)dti_deadline_at(deadline); /* one limit for all connections */
    return c->fd >= 0 && dti_socket_wait(c->fd, events, deadline);
}

/* Says to all hosts that this one leaves, and waits until they have closed their ends, at most LEAVE_MS. A
 * connection that is closed while it has bytes to read is reset, and then the other host may lose what it was
 * told. */
static void take_leave(struct dti_life_line *l, uint64_t last)
{
    struct dti_deadline deadline = { .timeout_ms = LEAVE_MS };
    char rest[512];
    for (uint32_t i = 0; i < l->connections; i++)
        say(&l->connection[i], &(struct news){ .kind = NEWS_LEAVES, .last = last });
    for (uint32_t i = 0; i < l->connections; i++) {
        struct connection *c = &l->connection[i];
        while (c->unsent_bytes > 0 && is_ready(c, POLLOUT, &deadline))
            say_rest(c);
        if (c->fd >= 0)
            (void)shutdown(c->fd, SHUT_WR);
    }
    for (uint32_t i = 0; i < l->connections; i++)
        while (is_ready(&l->connection[i], POLLIN, &deadline) &&
               recv(l->connection[i].fd, rest, sizeof rest, MSG_DONTWAIT) > 0)
            ;
}

void dti_life_line_end(ditto_cluster *cluster, uint64_t number)
{
    struct dti_life_line *l = cluster->life_line;
    if (l == NULL)
        return;
    if (!dti_cluster_is_forked(cluster)) { /* the thread is in the parent process */
        give_order(l, ENDS);
        pthread_join(l->thread, NULL);
        take_leave(l, position(cluster, number));
    }
    /* The thread may have been changing these at the fork. */
    for (uint32_t i = 0; dti_cluster_is_forked(cluster) && i < l->connections; i++)
        l->connection[i].unsent = NULL;
    cluster->life_line = NULL;
    release(l);
}
