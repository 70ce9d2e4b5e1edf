/* src/hosts/tcp/tcp_wire.c - a wire over TCP (ditto/tcp.h): messages on the connections between hosts.
 *
 * A message is a frame (channel and length) and its bytes. Frames of one connection arrive in order, so the
 * messages of one host do, too. A frame takes the oldest receive of its channel. If there is none, the
 * message is kept in memory until one comes.
 *
 * A host that destroys its wire says so with a last frame. After that, receives from it stay unfinished, as
 * if it were silent. If a connection breaks without this frame, messages that have arrived are still
 * received, and all other sends and receives of this host end with LOST. */
#include "base/errors/status.h"
#include "base/types/types.h"
#include "hosts/cluster.h"
#include "hosts/socket.h"
#include "hosts/tcp/tcp_connect.h"
#include "hosts/tcp/tcp_hosts.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_MS 60000u

/* Bytes of a connection that are read ahead. A larger rest of a message is read into its own memory. */
#define READ_AHEAD 16384u

/* How many bytes a connection may move before the others have their turn. */
#define BUDGET ((size_t)1 << 20)

/* How long a host that destroys its wire waits until the others have read everything. */
#define LEAVE_MS 1000

/* How many connections one look at them reports. */
enum { READY = 64 };

struct frame {
    uint64_t bytes;
    uint32_t channel;
    uint32_t magic; /* FRAME_MAGIC */
};
#define FRAME_MAGIC UINT32_C(0x6f746964)

/* The channel of the last frame. */
#define LEAVING UINT32_MAX

/* A send or receive of the cluster, or a message that came before its receive. */
struct item {
    struct item *next;
    uint64_t ticket;
    uint32_t channel;
    bool is_early;  /* a message without a receive, whose bytes are in `data` of its own */
    bool is_wanted; /* an early message whose receive came while its bytes still arrived */
    size_t bytes;   /* of the message; of a receive that waits, its capacity */
    size_t done;    /* bytes that have been sent, with those of the frame, or have arrived */
    char *data;
    struct frame frame;   /* of a send */
    struct item *receive; /* of an early message that is wanted */
};

struct list {
    struct item *first, **end;
};

struct peer {
    int fd;             /* -1 if there is no connection any more */
    bool waits_to_send; /* the connection is watched for room */
    bool cannot_send;   /* a send has failed, perhaps in the middle of a message */
    bool has_left;      /* the last frame has come */
    struct list sends, receives, early;

    /* The message that arrives now: its frame, of which `framed` bytes are there, and where its bytes go. */
    struct frame frame;
    size_t framed;
    struct item *arriving; /* NULL: between messages, or a message that is too long and dropped */
    size_t to_drop;

    char *buffer; /* [READ_AHEAD] bytes that were read: those from `first` to `last` are new */
    size_t first, last;
};

struct tcp_wire {
    uint32_t hosts;
    int poll; /* an epoll instance with all connections */
    struct peer *peer;

    /* Events that `progress` has not returned yet. There is always room for those of all unfinished sends and
     * receives. */
    ditto_wire_event *event;
    size_t events, first_event, event_capacity;
    size_t unfinished;
};

/* -- lists and events -- */

static void list_init(struct list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static void append(struct list *list, struct item *item)
{
    item->next = NULL;
    *list->end = item;
    list->end = &item->next;
}

/* Returns the link to the first item of a channel, or to NULL. */
static struct item **find_channel(struct list *list, uint32_t channel)
{
    struct item **link = &list->first;
    while (*link != NULL && ((*link)->channel != channel || (*link)->is_wanted))
        link = &(*link)->next;
    return link;
}

static struct item *take(struct list *list, struct item **link)
{
    struct item *item = *link;
    *link = item->next;
    if (item->next == NULL)
        list->end = link;
    return item;
}

/* Makes room for the event of one more send or receive. */
static bool reserve_event(struct tcp_wire *w)
{
    size_t waiting = w->events - w->first_event;
    if (w->first_event != 0 && waiting != 0)
        memmove(w->event, w->event + w->first_event, waiting * sizeof *w->event);
    w->first_event = 0;
    w->events = waiting;
    if (waiting + w->unfinished < w->event_capacity)
        return true;
    size_t capacity = w->event_capacity != 0 ? 2 * w->event_capacity : 64;
    ditto_wire_event *larger = realloc(w->event, capacity * sizeof *larger);
    if (larger == NULL)
        return false;
    w->event = larger;
    w->event_capacity = capacity;
    return true;
}

static void add_event(struct tcp_wire *w, uint64_t ticket, size_t bytes, ditto_status status)
{
    w->event[w->events++] = (ditto_wire_event){ .ticket = ticket, .bytes = bytes, .status = status };
    w->unfinished--;
}

static struct item *new_item(uint32_t channel, size_t bytes)
{
    struct item *item = calloc(1, sizeof *item);
    if (item != NULL) {
        item->channel = channel;
        item->bytes = bytes;
    }
    return item;
}

/* Returns a new send or receive, or NULL without memory for it or its event. */
static struct item *new_transfer(struct tcp_wire *w, uint32_t channel, size_t bytes, uint64_t ticket)
{
    struct item *item = reserve_event(w) ? new_item(channel, bytes) : NULL;
    if (item != NULL) {
        item->ticket = ticket;
        w->unfinished++;
    }
    return item;
}

/* -- sending -- */

static void watch(const struct tcp_wire *w, uint32_t host, bool for_room)
{
    struct peer *p = &w->peer[host];
    struct epoll_event event = { .events = for_room ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.u32 = host };
    if (p->fd >= 0 && p->waits_to_send != for_room && epoll_ctl(w->poll, EPOLL_CTL_MOD, p->fd, &event) == 0)
        p->waits_to_send = for_room;
}

static void end_send(struct tcp_wire *w, struct peer *p, ditto_status status)
{
    struct item *item = take(&p->sends, &p->sends.first);
    add_event(w, item->ticket, item->bytes, status);
    free(item);
}

/* Ends the message whose bytes have begun to arrive, and will not all come. */
static void end_broken_message(struct tcp_wire *w, struct peer *p)
{
    struct item *item = p->arriving, *receive = item;
    p->arriving = NULL;
    if (item == NULL)
        return;
    if (item->is_early) {
        struct item **link = &p->early.first;
        while (*link != item)
            link = &(*link)->next;
        receive = take(&p->early, link)->receive;
        free(item->data);
        free(item);
    }
    if (receive != NULL)
        add_event(w, receive->ticket, 0, DITTO_ERR_LOST);
    free(receive);
}

/* A child process may have copies of the socket, so closing it is not enough. */
static void close_socket(const struct tcp_wire *w, struct peer *p)
{
    if (p->fd < 0)
        return;
    (void)epoll_ctl(w->poll, EPOLL_CTL_DEL, p->fd, NULL);
    (void)shutdown(p->fd, SHUT_RDWR);
    close(p->fd);
    p->fd = -1;
}

static void end_receives(struct tcp_wire *w, struct peer *p)
{
    while (p->receives.first != NULL) {
        struct item *receive = take(&p->receives, &p->receives.first);
        add_event(w, receive->ticket, 0, DITTO_ERR_LOST);
        free(receive);
    }
}

static void end_sends(struct tcp_wire *w, struct peer *p)
{
    while (p->sends.first != NULL)
        end_send(w, p, DITTO_ERR_LOST);
}

/* The connection is closed: nothing more can be sent or received. */
static void close_peer(struct tcp_wire *w, struct peer *p)
{
    close_socket(w, p);
    end_sends(w, p);
    end_broken_message(w, p);
    if (!p->has_left)
        end_receives(w, p);
}

/* A send has failed. What the other host has sent before can still be read, so the connection is only closed
 * where it is read. A message may be incomplete, so no other one can follow. */
static void give_up_sending(struct tcp_wire *w, struct peer *p)
{
    p->cannot_send = true;
    (void)shutdown(p->fd, SHUT_WR);
    end_sends(w, p);
}

/* Sends as much as the connection takes, at most about BUDGET bytes. */
static void send_some(struct tcp_wire *w, uint32_t host)
{
    struct peer *p = &w->peer[host];
    for (size_t all = 0; p->fd >= 0 && p->sends.first != NULL && all < BUDGET;) {
        struct item *item = p->sends.first;
        size_t framed = item->done < sizeof item->frame ? item->done : sizeof item->frame,
               done = item->done - framed;
        struct iovec parts[2] = { { (char *)&item->frame + framed, sizeof item->frame - framed },
                                  { item->bytes != 0 ? item->data + done : NULL, item->bytes - done } };
        struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
        ssize_t sent = sendmsg(p->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
            give_up_sending(w, p);
        if (sent < 0)
            break;
        all += (size_t)sent;
        item->done += (size_t)sent;
        if (item->done == sizeof item->frame + item->bytes)
            end_send(w, p, DITTO_OK);
    }
    watch(w, host, p->sends.first != NULL);
}

static ditto_status wire_send(void *user, uint32_t to, uint32_t channel, const void *data, size_t bytes,
                              uint64_t ticket)
{
    struct tcp_wire *w = user;
    struct peer *p = &w->peer[to];
    if (bytes > DITTO_WIRE_MOST_BYTES)
        return DTI_FAIL(DITTO_ERR_RANGE, "a message of %zu bytes: a wire carries at most %zu", bytes,
                        DITTO_WIRE_MOST_BYTES);
    struct item *item = new_transfer(w, channel, bytes, ticket);
    if (item == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a message to host %u", to);
    item->data = (char *)(uintptr_t)data; /* it is only read */
    item->frame = (struct frame){ .bytes = bytes, .channel = channel, .magic = FRAME_MAGIC };
    bool is_first = p->sends.first == NULL;
    append(&p->sends, item);
    if (p->fd < 0 || p->cannot_send)
        end_sends(w, p);
    else if (is_first)
        send_some(w, to);
    return DITTO_OK;
}

/* -- receiving -- */

/* Ends a receive with a message of so many bytes, whose data is in place. */
static void end_receive(struct tcp_wire *w, struct item *receive, size_t bytes)
{
    add_event(w, receive->ticket, bytes, DITTO_OK);
    free(receive);
}

/* Gives a message that came early, and is complete, to its receive. */
static void give_early(struct tcp_wire *w, struct item *receive, struct item *early)
{
    if (early->bytes > receive->bytes) {
        add_event(w, receive->ticket, early->bytes, DITTO_ERR_RANGE);
        free(receive);
    } else {
        if (early->bytes != 0)
            memcpy(receive->data, early->data, early->bytes);
        end_receive(w, receive, early->bytes);
    }
    free(early->data);
    free(early);
}

static ditto_status wire_receive(void *user, uint32_t from, uint32_t channel, void *data, size_t capacity,
                                 uint64_t ticket)
{
    struct tcp_wire *w = user;
    struct peer *p = &w->peer[from];
    struct item *receive = new_transfer(w, channel, capacity, ticket),
                **early = find_channel(&p->early, channel);
    if (receive == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a message from host %u", from);
    receive->data = data;
    if (*early == NULL) {
        append(&p->receives, receive);
    } else if (*early == p->arriving) {
        (*early)->is_wanted = true;
        (*early)->receive = receive;
    } else {
        give_early(w, receive, take(&p->early, early));
    }
    if (p->fd < 0 && !p->has_left)
        end_receives(w, p);
    return DITTO_OK;
}

static ditto_status wire_cancel(void *user, uint64_t ticket)
{
    struct tcp_wire *w = user;
    for (uint32_t h = 0; h < w->hosts; h++)
        for (struct item **link = &w->peer[h].receives.first; *link != NULL; link = &(*link)->next)
            if ((*link)->ticket == ticket) {
                free(take(&w->peer[h].receives, link));
                w->unfinished--;
                return DITTO_OK;
            }
    return DITTO_PENDING;
}

/* A frame is complete: finds where the bytes of its message go. Returns false if the connection carries
 * something else, or there is no memory. */
static bool begin_message(struct tcp_wire *w, struct peer *p)
{
    struct item **receive = find_channel(&p->receives, p->frame.channel);
    if (p->frame.magic != FRAME_MAGIC || p->frame.bytes > DITTO_WIRE_MOST_BYTES)
        return false;
    if (p->frame.channel == LEAVING) {
        p->has_left = true;
        p->to_drop = 0;
        return true;
    }
    size_t bytes = p->frame.bytes;
    if (*receive != NULL && (*receive)->bytes >= bytes) {
        p->arriving = take(&p->receives, receive);
        p->arriving->bytes = bytes;
        return true;
    }
    if (*receive != NULL) { /* too long for its receive, so it is dropped */
        struct item *refused = take(&p->receives, receive);
        add_event(w, refused->ticket, bytes, DITTO_ERR_RANGE);
        free(refused);
        p->to_drop = bytes;
        return true;
    }
    struct item *early = new_item(p->frame.channel, bytes);
    if (early == NULL || (bytes != 0 && (early->data = malloc(bytes)) == NULL)) {
        free(early);
        return false;
    }
    early->is_early = true;
    append(&p->early, early);
    p->arriving = early;
    return true;
}

/* The bytes of the message are complete. */
static void end_message(struct tcp_wire *w, struct peer *p)
{
    struct item *item = p->arriving;
    p->arriving = NULL;
    p->framed = 0;
    if (item == NULL)
        return;
    if (!item->is_early) {
        end_receive(w, item, item->bytes);
    } else if (item->is_wanted) {
        struct item **link = &p->early.first;
        while (*link != item)
            link = &(*link)->next;
        give_early(w, item->receive, take(&p->early, link));
    }
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Uses the bytes that were read ahead. Returns false if the connection must be closed. */
static bool use_ahead(struct tcp_wire *w, struct peer *p)
{
    while (p->first < p->last ||
           (p->framed == sizeof p->frame && p->arriving != NULL && p->arriving->done == p->arriving->bytes)) {
        size_t count = p->last - p->first;
        if (p->framed < sizeof p->frame) {
            count = least(count, sizeof p->frame - p->framed);
            memcpy((char *)&p->frame + p->framed, p->buffer + p->first, count);
            p->framed += count;
            p->first += count;
            if (p->framed == sizeof p->frame && !begin_message(w, p))
                return false;
        } else if (p->arriving != NULL) {
            count = least(count, p->arriving->bytes - p->arriving->done);
            if (count != 0)
                memcpy(p->arriving->data + p->arriving->done, p->buffer + p->first, count);
            p->arriving->done += count;
            p->first += count;
        } else {
            count = least(count, p->to_drop);
            p->to_drop -= count;
            p->first += count;
        }
        if (p->framed == sizeof p->frame &&
            (p->arriving != NULL ? p->arriving->done == p->arriving->bytes : p->to_drop == 0))
            end_message(w, p);
    }
    p->first = p->last = 0;
    return true;
}

/* Reads once, into the message that arrives if its rest is long, else ahead. Returns what recv does. */
static ssize_t read_once(struct peer *p)
{
    struct item *item = p->arriving;
    size_t rest = item != NULL && p->framed == sizeof p->frame ? item->bytes - item->done : 0;
    bool is_direct = rest > READ_AHEAD;
    ssize_t got = is_direct ? recv(p->fd, item->data + item->done, rest, MSG_DONTWAIT)
                            : recv(p->fd, p->buffer, READ_AHEAD, MSG_DONTWAIT);
    if (got > 0 && is_direct)
        item->done += (size_t)got;
    else if (got > 0)
        p->last = (size_t)got;
    return got;
}

/* Reads what has arrived from a host, at most about BUDGET bytes. */
static void read_some(struct tcp_wire *w, struct peer *p)
{
    for (size_t all = 0; p->fd >= 0 && all < BUDGET;) {
        ssize_t got = read_once(p);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (got <= 0 || !use_ahead(w, p)) {
            close_peer(w, p);
            return;
        }
        all += (size_t)got;
        if ((size_t)got < READ_AHEAD)
            return; /* this was all, most likely; the next look will tell */
    }
}

static ditto_status wire_progress(void *user, ditto_wire_event *events, size_t capacity, size_t *count)
{
    struct tcp_wire *w = user;
    struct epoll_event ready[READY];
    int found = epoll_wait(w->poll, ready, READY, 0);
    *count = 0;
    for (int i = 0; i < found; i++) {
        uint32_t host = ready[i].data.u32;
        if ((ready[i].events & EPOLLOUT) != 0)
            send_some(w, host);
        if ((ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
            read_some(w, &w->peer[host]);
    }
    while (*count < capacity && w->first_event < w->events)
        events[(*count)++] = w->event[w->first_event++];
    return DITTO_OK;
}

/* -- making a cluster -- */

static void free_list(struct list *list)
{
    while (list->first != NULL) {
        struct item *item = take(list, &list->first);
        if (item->is_early) {
            free(item->receive);
            free(item->data);
        }
        free(item);
    }
}

/* Says to the other hosts that this one leaves, and waits until they have read everything. A connection that
 * is closed while it has bytes to read is reset, and then the other host may lose what it was sent. */
static void take_leave(const struct tcp_wire *w)
{
    const struct frame last = { .channel = LEAVING, .magic = FRAME_MAGIC };
    struct dti_deadline deadline = { .timeout_ms = LEAVE_MS };
    char rest[512];
    (void)dti_deadline_at(&deadline);
    for (uint32_t h = 0; h < w->hosts; h++) {
        const struct peer *p = &w->peer[h];
        if (p->fd < 0)
            continue;
        /* A host that gives up in the middle of a message is lost to the other one. */
        if (p->sends.first == NULL && !p->cannot_send)
            (void)dti_socket_send(p->fd, &last, sizeof last, &deadline);
        (void)shutdown(p->fd, SHUT_WR);
    }
    for (uint32_t h = 0; h < w->hosts; h++)
        while (w->peer[h].fd >= 0 && dti_socket_wait(w->peer[h].fd, POLLIN, &deadline) &&
               recv(w->peer[h].fd, rest, sizeof rest, MSG_DONTWAIT) > 0)
            ;
}

static void wire_destroy(void *user)
{
    struct tcp_wire *w = user;
    if (w->peer != NULL)
        take_leave(w);
    for (uint32_t h = 0; w->peer != NULL && h < w->hosts; h++) {
        struct peer *p = &w->peer[h];
        close_socket(w, p);
        if (p->arriving != NULL && !p->arriving->is_early)
            free(p->arriving);
        free_list(&p->sends);
        free_list(&p->receives);
        free_list(&p->early);
        free(p->buffer);
    }
    if (w->poll >= 0)
        close(w->poll);
    free(w->peer);
    free(w->event);
    free(w);
}

static ditto_status fail_memory(uint32_t hosts)
{
    return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the connections of %u hosts", hosts);
}

static ditto_status prepare(struct tcp_wire *w)
{
    for (uint32_t h = 0; h < w->hosts; h++) {
        struct peer *p = &w->peer[h];
        p->fd = -1;
        list_init(&p->sends);
        list_init(&p->receives);
        list_init(&p->early);
    }
    w->poll = epoll_create1(EPOLL_CLOEXEC);
    if (w->poll < 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, errno, "epoll_create1 failed");
    for (uint32_t h = 0; h < w->hosts; h++) {
        w->peer[h].buffer = malloc(READ_AHEAD);
        if (w->peer[h].buffer == NULL)
            return fail_memory(w->hosts);
    }
    return DITTO_OK;
}

static ditto_status make_wire(uint32_t hosts, struct tcp_wire **out)
{
    struct tcp_wire *w = calloc(1, sizeof *w);
    if (w == NULL)
        return fail_memory(hosts);
    w->hosts = hosts;
    w->poll = -1;
    w->peer = calloc(hosts, sizeof *w->peer);
    ditto_status status = w->peer != NULL ? prepare(w) : fail_memory(hosts);
    if (status == DITTO_OK)
        *out = w;
    else
        wire_destroy(w);
    return status;
}

static ditto_status connect_wire(struct tcp_wire *w, const struct dti_tcp_hosts *hosts, const char *secret,
                                 uint32_t timeout_ms)
{
    int fd[DTI_MAX_HOSTS];
    DTI_TRY(dti_tcp_connect(hosts, secret, timeout_ms, fd));
    ditto_status status = DITTO_OK;
    for (uint32_t h = 0; h < hosts->count; h++) {
        struct epoll_event event = { .events = EPOLLIN, .data.u32 = h };
        w->peer[h].fd = fd[h];
        if (fd[h] >= 0 && epoll_ctl(w->poll, EPOLL_CTL_ADD, fd[h], &event) != 0)
            status = DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, errno, "epoll_ctl failed");
    }
    return status;
}

/* Makes the cluster of hosts that are known. */
static ditto_status make_cluster(const struct dti_tcp_hosts *hosts, const char *secret,
                                 const ditto_cluster_options *options, ditto_cluster **out)
{
    uint32_t timeout_ms = options->timeout_ms != 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
    ditto_wire wire = DITTO_WIRE_INIT;
    struct tcp_wire *w;
    DTI_TRY(make_wire(hosts->count, &w));
    ditto_status status = connect_wire(w, hosts, secret, timeout_ms);
    wire.num_hosts = hosts->count;
    wire.host = hosts->own;
    wire.flags = DITTO_WIRE_ENDS_TRANSFERS;
    wire.name = "TCP";
    wire.user = w;
    wire.send = wire_send;
    wire.receive = wire_receive;
    wire.cancel = wire_cancel;
    wire.progress = wire_progress;
    wire.destroy = wire_destroy;
    if (status == DITTO_OK)
        status = DTI_OWN(ditto_cluster_create(&wire, options, out));
    if (status != DITTO_OK)
        wire_destroy(w);
    return status;
}

ditto_status ditto_tcp_cluster(const ditto_tcp_options *tcp, const ditto_cluster_options *options,
                               ditto_cluster **out)
{
    ditto_tcp_options known;
    ditto_cluster_options of_cluster;
    struct dti_tcp_hosts hosts;
    DTI_ENTER();
    DTI_TRY(dti_options_copy(&known, sizeof known, tcp, "ditto_tcp_options"));
    DTI_TRY(dti_options_copy(&of_cluster, sizeof of_cluster, options, "ditto_cluster_options"));
    DTI_TRY(dti_not_null(out, "out"));
    const char *secret = known.secret != NULL ? known.secret : getenv("DITTO_SECRET");
    ditto_status status = dti_tcp_find_hosts(&known, &hosts);
    if (status == DITTO_OK)
        status = make_cluster(&hosts, secret != NULL ? secret : "", &of_cluster, out);
    dti_tcp_hosts_free(&hosts);
    return status;
}
