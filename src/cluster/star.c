/* src/cluster/star.c - makes TCP connections between host 0 and all other hosts. See star.h.
 *
 * All hosts tell each other over the wire where they are. Each host but 0 adds two random tokens: it shows
 * one to host 0, and host 0 must answer with the other one, so no other program can take the place of either.
 * Host 0 listens on those of its addresses from which the system would send to the other hosts, and on no
 * other: on the loopback address alone if all hosts are on its machine. It tells the others these addresses,
 * and they try them one after the other. Then all hosts tell each other whether they are connected.
 *
 * A host that has no connection after CONNECT_MS gives up, because packets to an address that a firewall
 * protects are lost without an answer. Host 0 waits for all pending connections together, so one that is
 * silent delays no other. */
#include "cluster/star.h"
#include "base/errors/status.h"
#include "base/numbers/checksum.h"
#include "cluster/header.h"
#include "cluster/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_MS     5000
#define ADDRESS_MS     1500
#define MOST_ADDRESSES 16
#define MOST_OTHERS    64 /* connections that wait at a time, beside those of the hosts */

struct token {
    unsigned char byte[16];
};

/* An address of a host. The port is set if host 0 listens there. It is in network byte order, like the
 * bytes. */
struct address {
    sa_family_t family; /* AF_INET or AF_INET6 */
    uint16_t port;
    uint32_t scope;
    unsigned char bytes[16];
};

struct address_list {
    uint32_t count;
    struct address address[MOST_ADDRESSES];
};

/* Where a host is. Hosts with the same boot and network have the same loopback address. */
struct machine {
    char boot[40];
    uint64_t network; /* the network namespace */
};

/* What a host says to all others. Host 0 has no tokens. */
struct presentation {
    struct token shows, awaits; /* what this host shows to host 0, and what it awaits as an answer */
    uint32_t has_tokens;
    struct machine machine;
    struct address_list addresses;
};

/* What a host says first on its connection. */
struct hello {
    struct token token;
    uint32_t host;
};

/* How the connecting went on a host. */
struct outcome {
    uint32_t connected;
    uint32_t lacks_descriptors;
};

/* -- small parts -- */

/* Takes the same time whichever bytes differ, so that no attacker can find a token byte by byte. */
static bool are_equal(const struct token *a, const struct token *b)
{
    unsigned differ = 0;
    for (size_t i = 0; i < sizeof a->byte; i++)
        differ |= (unsigned)(a->byte[i] ^ b->byte[i]);
    return differ == 0;
}

static bool make_token(struct token *token)
{
    return getrandom(token->byte, sizeof token->byte, 0) == (ssize_t)sizeof token->byte;
}

/* Called after a system call has failed. */
static void note_failure(struct outcome *outcome)
{
    if (errno == EMFILE || errno == ENFILE)
        outcome->lacks_descriptors = 1;
}

static void find_machine(struct machine *machine, struct outcome *outcome)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    struct stat network;
    *machine = (struct machine){ .network = 0 };
    if (file != NULL) {
        (void)!fread(machine->boot, 1, sizeof machine->boot - 1, file);
        fclose(file);
    } else {
        note_failure(outcome);
    }
    if (stat("/proc/self/ns/net", &network) == 0)
        machine->network = network.st_ino;
}

/* In some sandboxes a host does not know where it is. */
static bool knows_machine(const struct presentation *p)
{
    return p->machine.boot[0] != '\0' && p->machine.network != 0;
}

static bool is_same_machine(const struct presentation *a, const struct presentation *b)
{
    return knows_machine(a) && memcmp(&a->machine, &b->machine, sizeof a->machine) == 0;
}

static bool is_same_address(const struct address *a, const struct address *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static bool has_address(const struct address_list *list, const struct address *a)
{
    uint32_t i = 0;
    while (i < list->count && !is_same_address(&list->address[i], a))
        i++;
    return i < list->count;
}

static void add_address(struct address_list *list, const struct address *a)
{
    if (list->count < MOST_ADDRESSES && !has_address(list, a))
        list->address[list->count++] = *a;
}

/* Returns the length of the system's form of an address. */
static socklen_t to_system(const struct address *a, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (a->family == AF_INET) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)out;
        *v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = a->port };
        memcpy(&v4->sin_addr, a->bytes, sizeof v4->sin_addr);
        return sizeof *v4;
    }
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)out;
    *v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = a->port, .sin6_scope_id = a->scope };
    memcpy(&v6->sin6_addr, a->bytes, sizeof v6->sin6_addr);
    return sizeof *v6;
}

static bool from_system(const struct sockaddr *from, struct address *out)
{
    *out = (struct address){ .family = from->sa_family };
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)from;
        memcpy(out->bytes, &v4->sin_addr, sizeof v4->sin_addr);
        out->port = v4->sin_port;
        return true;
    }
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)from;
    if (from->sa_family != AF_INET6)
        return false;
    memcpy(out->bytes, &v6->sin6_addr, sizeof v6->sin6_addr);
    out->port = v6->sin6_port;
    out->scope = v6->sin6_scope_id;
    return !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr); /* its scope has no meaning on another host */
}

static void find_addresses(struct address_list *out, struct outcome *outcome)
{
    struct ifaddrs *all = NULL;
    struct address found;
    if (getifaddrs(&all) != 0) {
        note_failure(outcome);
        return;
    }
    for (const struct ifaddrs *a = all; a != NULL; a = a->ifa_next)
        if (a->ifa_addr != NULL && (a->ifa_flags & IFF_UP) != 0 && (a->ifa_flags & IFF_LOOPBACK) == 0 &&
            from_system(a->ifa_addr, &found))
            add_address(out, &found);
    freeifaddrs(all);
}

static int make_socket(sa_family_t family, int type, struct outcome *outcome)
{
    int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        note_failure(outcome);
    return fd;
}

static void set_options(int fd)
{
    dti_socket_set_options(fd);
    dti_socket_limit_unacknowledged(fd);
}

/* All hosts call it. */
static ditto_status exchange(ditto_cluster *cluster, size_t payload_bytes, uint32_t timeout_ms)
{
    struct dti_limits limits = { .deadline = { .timeout_ms = timeout_ms } };
    struct dti_intent intent = { .kind = DTI_HEADER_CALL,
                                 .digest = DTI_HASH_SEED,
                                 .name = "ditto_cluster_create",
                                 .payload_bytes = payload_bytes };
    switch (dti_headers_exchange(cluster, &intent, &limits)) {
    case DTI_HEADERS_EQUAL:
        return DITTO_OK;
    case DTI_HEADERS_LATE:
        return dti_headers_fail_late(cluster, intent.name, timeout_ms);
    case DTI_HEADERS_LAST:
        return dti_headers_fail_last(cluster);
    case DTI_HEADERS_DIFFER:
        return dti_headers_fail_differ(cluster, intent.name);
    case DTI_HEADERS_STOPPED:
    case DTI_HEADERS_FAILED:
        break;
    }
    return dti_error_get()->status;
}

/* -- host 0 -- */

static const struct address loopback = { .family = AF_INET, .bytes = { 127, 0, 0, 1 } };

/* Adds the address from which the system would send to `there`. Nothing is sent. */
static void add_source(const struct address *there, struct address_list *sources, struct outcome *outcome)
{
    struct address to = *there, source;
    struct sockaddr_storage system;
    to.port = htons(9); /* any */
    int fd = make_socket(to.family, SOCK_DGRAM, outcome);
    if (fd < 0)
        return;
    socklen_t length = to_system(&to, &system);
    if (connect(fd, (struct sockaddr *)&system, length) == 0) {
        length = sizeof system;
        if (getsockname(fd, (struct sockaddr *)&system, &length) == 0 &&
            from_system((struct sockaddr *)&system, &source))
            add_address(sources, &source);
    }
    close(fd);
}

/* The tokens of a host. */
struct expected {
    struct token shows, awaits;
    bool is_there;
};

/* Reads what the other hosts have said: their tokens, and where they are. Lists the addresses by which they
 * reach this one. An address that another machine has, too, leads back to this host, and is left out. */
static void read_presentations(const ditto_cluster *cluster, struct expected *expected,
                               struct address_list *ways, struct outcome *outcome)
{
    struct presentation own, theirs;
    memcpy(&own, dti_header_in(cluster, 0), sizeof own);
    for (uint32_t h = 1; h < cluster->wire.num_hosts; h++) {
        memcpy(&theirs, dti_header_in(cluster, h), sizeof theirs);
        expected[h] = (struct expected){ theirs.shows, theirs.awaits, theirs.has_tokens == 1 };
        if (is_same_machine(&own, &theirs)) {
            add_address(ways, &loopback);
            continue;
        }
        bool is_other = knows_machine(&own) && knows_machine(&theirs);
        for (uint32_t i = 0; i < theirs.addresses.count && i < MOST_ADDRESSES; i++)
            if (!is_other || !has_address(&own.addresses, &theirs.addresses.address[i]))
                add_source(&theirs.addresses.address[i], ways, outcome);
    }
}

/* Listens on the address, and sets its port. Returns -1 if that is not possible. The system keeps as many
 * connections as it can until they are accepted, so that those of other programs leave room for hosts. */
static int listen_on(struct address *a, struct outcome *outcome)
{
    struct sockaddr_storage system;
    a->port = 0;
    int fd = make_socket(a->family, SOCK_STREAM, outcome);
    if (fd < 0)
        return -1;
    socklen_t length = to_system(a, &system);
    if (bind(fd, (struct sockaddr *)&system, length) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, (struct sockaddr *)&system, &length) != 0 ||
        !from_system((struct sockaddr *)&system, a)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* A connection that has not shown its token yet. */
struct pending {
    int fd;
    size_t got; /* bytes of `hello` */
    struct hello hello;
    uint64_t until_ns;
};

/* Accepts the connections of the other hosts, on host 0. */
struct acceptor {
    struct expected *expected; /* [hosts] */
    uint32_t hosts;
    int listening[MOST_ADDRESSES];
    uint32_t num_listening;
    struct pending *pending; /* [capacity] the oldest one first */
    struct pollfd *polled;   /* [MOST_ADDRESSES + capacity] */
    uint32_t count, capacity;
    int *fd;            /* [hosts] of the hosts that are in */
    uint32_t connected; /* how many that are */
    struct outcome *outcome;
};

static void drop(struct acceptor *a, uint32_t i)
{
    if (a->pending[i].fd >= 0)
        close(a->pending[i].fd);
    a->count--;
    memmove(&a->pending[i], &a->pending[i + 1], (a->count - i) * sizeof a->pending[0]);
}

/* Lets a host in if it shows its token, which is accepted once. */
static void accept_host(struct acceptor *a, struct pending *p)
{
    uint32_t host = p->hello.host;
    if (host == 0 || host >= a->hosts || a->fd[host] >= 0)
        return;
    const struct expected *expected = &a->expected[host];
    if (!expected->is_there || !are_equal(&p->hello.token, &expected->shows) ||
        send(p->fd, &expected->awaits, sizeof expected->awaits, MSG_NOSIGNAL) !=
            (ssize_t)sizeof expected->awaits)
        return;
    set_options(p->fd);
    a->fd[host] = p->fd;
    a->connected++;
    p->fd = -1;
}

/* Reads from a pending connection. Returns false if it is done with. */
static bool read_hello(struct acceptor *a, struct pending *p)
{
    ssize_t got = recv(p->fd, (char *)&p->hello + p->got, sizeof p->hello - p->got, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
        return true;
    if (got <= 0)
        return false;
    p->got += (size_t)got;
    if (p->got < sizeof p->hello)
        return true;
    /* A host that has given up waiting for this connection tries again with the same token. */
    char more;
    if (recv(p->fd, &more, sizeof more, MSG_PEEK | MSG_DONTWAIT) != 0)
        accept_host(a, p);
    return false;
}

/* Reads from all pending connections, and drops those that are done with or have been silent for too long. */
static void read_all(struct acceptor *a)
{
    uint64_t now = dti_lived_ns();
    for (uint32_t i = a->count; i-- > 0;)
        if (!read_hello(a, &a->pending[i]) || now >= a->pending[i].until_ns)
            drop(a, i);
}

/* Accepts what has come. If there is no room for another connection, the oldest one that has not said its
 * token makes room. A host that is dropped tries again. There is a limit, because connections may come
 * faster than they are accepted. */
static void accept_some(struct acceptor *a, int listening)
{
    for (uint32_t n = 0; n < a->capacity; n++) {
        int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        bool is_full = fd < 0 && (errno == EMFILE || errno == ENFILE) && a->count > 0;
        if (fd < 0 && !is_full) {
            note_failure(a->outcome);
            return;
        }
        if (is_full || a->count == a->capacity)
            read_all(a);
        if (a->count > 0 && (is_full || a->count == a->capacity))
            drop(a, 0);
        if (fd >= 0)
            a->pending[a->count++] = (struct pending){
                .fd = fd, .until_ns = dti_lived_ns() + ADDRESS_MS * UINT64_C(1000000)
            };
    }
}

static void accept_all(struct acceptor *a)
{
    struct dti_look look = { 0 };
    uint64_t end = dti_lived_ns() + CONNECT_MS * UINT64_C(1000000);
    while (a->connected + 1 < a->hosts && a->num_listening > 0 && !a->outcome->lacks_descriptors &&
           dti_look(&look) < end) {
        for (uint32_t i = 0; i < a->num_listening; i++)
            a->polled[i] = (struct pollfd){ .fd = a->listening[i], .events = POLLIN };
        for (uint32_t i = 0; i < a->count; i++)
            a->polled[a->num_listening + i] = (struct pollfd){ .fd = a->pending[i].fd, .events = POLLIN };
        (void)poll(a->polled, a->num_listening + a->count, 100);
        read_all(a);
        for (uint32_t i = 0; i < a->num_listening; i++)
            if (a->polled[i].revents != 0)
                accept_some(a, a->listening[i]);
    }
    while (a->count > 0)
        drop(a, a->count - 1);
}

/* Listens, says where, and lets the hosts in. */
static ditto_status invite(ditto_cluster *cluster, uint32_t timeout_ms, int *fd, struct outcome *outcome)
{
    struct address_list ways = { .count = 0 };
    struct acceptor a = { .hosts = cluster->wire.num_hosts, .fd = fd, .outcome = outcome };
    a.capacity = a.hosts + MOST_OTHERS;
    a.expected = calloc(a.hosts, sizeof *a.expected);
    a.pending = calloc(a.capacity, sizeof *a.pending);
    a.polled = calloc(MOST_ADDRESSES + a.capacity, sizeof *a.polled);
    if (a.expected != NULL && a.pending != NULL && a.polled != NULL)
        read_presentations(cluster, a.expected, &ways, outcome);
    for (uint32_t i = 0; i < ways.count;) {
        a.listening[a.num_listening] = listen_on(&ways.address[i], outcome);
        if (a.listening[a.num_listening] >= 0) {
            a.num_listening++;
            i++;
        } else {
            ways.address[i] = ways.address[--ways.count];
        }
    }
    memcpy(dti_header_out(cluster), &ways, sizeof ways);
    ditto_status status = exchange(cluster, sizeof ways, timeout_ms);
    if (status == DITTO_OK)
        accept_all(&a);
    for (uint32_t i = 0; i < a.num_listening; i++)
        close(a.listening[i]);
    free(a.expected);
    free(a.pending);
    free(a.polled);
    outcome->connected = a.connected;
    return status;
}

/* -- the other hosts -- */

static int connect_to(const ditto_cluster *cluster, const struct presentation *own, const struct address *a,
                      struct outcome *outcome)
{
    struct dti_deadline soon = { .timeout_ms = ADDRESS_MS };
    struct hello hello = { .token = own->shows, .host = cluster->wire.host };
    struct sockaddr_storage system;
    struct token answer;
    int failed = 0, fd = make_socket(a->family, SOCK_STREAM, outcome);
    socklen_t length = to_system(a, &system), failed_length = sizeof failed;
    if (fd < 0)
        return -1;
    (void)dti_deadline_at(&soon); /* one limit for all steps */
    int begun = connect(fd, (struct sockaddr *)&system, length);
    if ((begun == 0 || errno == EINPROGRESS) && dti_socket_wait(fd, POLLOUT, &soon) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &failed_length) == 0 && failed == 0 &&
        dti_socket_send(fd, &hello, sizeof hello, &soon) &&
        dti_socket_receive(fd, &answer, sizeof answer, &soon) && are_equal(&answer, &own->awaits)) {
        set_options(fd);
        return fd;
    }
    close(fd);
    return -1;
}

static int try_all(const ditto_cluster *cluster, const struct presentation *own,
                   const struct address_list *ways, uint64_t end, struct outcome *outcome)
{
    int fd = -1;
    for (uint32_t i = 0; fd < 0 && i < ways->count && dti_lived_ns() < end; i++)
        if (ways->address[i].family == AF_INET || ways->address[i].family == AF_INET6)
            fd = connect_to(cluster, own, &ways->address[i], outcome);
    return fd;
}

static ditto_status accept_invitation(ditto_cluster *cluster, const struct presentation *own,
                                      uint32_t timeout_ms, int *fd, struct outcome *outcome)
{
    struct address_list ways;
    DTI_TRY(exchange(cluster, 0, timeout_ms));
    memcpy(&ways, dti_header_in(cluster, 0), sizeof ways);
    struct dti_look look = { 0 };
    uint64_t end = dti_lived_ns() + CONNECT_MS * UINT64_C(1000000);
    bool can_try = own->has_tokens && ways.count > 0 && ways.count <= MOST_ADDRESSES;
    while (can_try && *fd < 0 && dti_look(&look) < end && !outcome->lacks_descriptors) {
        *fd = try_all(cluster, own, &ways, end, outcome);
        if (*fd < 0)
            nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    outcome->connected = *fd >= 0;
    return DITTO_OK;
}

/* -- both -- */

/* Says to all hosts whether this one has its connections. *all_connected, and the error, are equal on all. */
static ditto_status compare_outcomes(ditto_cluster *cluster, uint32_t timeout_ms, const struct outcome *own,
                                     bool *all_connected)
{
    uint32_t hosts = cluster->wire.num_hosts;
    struct outcome outcome;
    memcpy(dti_header_out(cluster), own, sizeof *own);
    /* Another host may have tried for that long. */
    uint32_t more_ms = CONNECT_MS + ADDRESS_MS;
    timeout_ms = timeout_ms < UINT32_MAX - more_ms ? timeout_ms + more_ms : timeout_ms;
    DTI_TRY(exchange(cluster, sizeof *own, timeout_ms));
    *all_connected = true;
    for (uint32_t h = 0; h < hosts; h++) {
        memcpy(&outcome, dti_header_in(cluster, h), sizeof outcome);
        if (outcome.lacks_descriptors)
            return DTI_FAIL(DITTO_ERR_SYSTEM,
                            "host %u has no file descriptor left for the life line, which needs %u there: "
                            "raise the limit (ulimit -n), or switch the option life_line off on all hosts",
                            h, h == 0 ? hosts + MOST_ADDRESSES : 2);
        *all_connected &= outcome.connected == (h == 0 ? hosts - 1 : 1);
    }
    return DITTO_OK;
}

ditto_status dti_star_connect(ditto_cluster *cluster, uint32_t timeout_ms, bool lacks_descriptors, int *fd,
                              bool *all_connected)
{
    struct presentation own = { .has_tokens = 0 };
    struct outcome outcome = { .lacks_descriptors = lacks_descriptors };
    bool is_host_0 = cluster->wire.host == 0;
    _Static_assert(sizeof own <= DTI_HEADER_PAYLOAD, "a presentation rides behind a header");
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++)
        fd[h] = -1;
    find_machine(&own.machine, &outcome);
    find_addresses(&own.addresses, &outcome);
    own.has_tokens = !is_host_0 && make_token(&own.shows) && make_token(&own.awaits);
    memcpy(dti_header_out(cluster), &own, sizeof own);
    DTI_TRY(exchange(cluster, sizeof own, timeout_ms));
    DTI_TRY(is_host_0 ? invite(cluster, timeout_ms, fd, &outcome)
                      : accept_invitation(cluster, &own, timeout_ms, &fd[0], &outcome));
    return compare_outcomes(cluster, timeout_ms, &outcome, all_connected);
}
