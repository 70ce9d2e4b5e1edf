/* src/hosts/tcp/tcp_connect.c - connects the hosts of a cluster over TCP. See tcp_connect.h.
 *
 * Each host but the last one listens on its port. It connects to all hosts with lower numbers, and then lets
 * in those with higher ones. Host 0 lets hosts in at once, so host 1 gets its answer from it, and lets in the
 * others, and so on, so there is no deadlock. The system keeps connections until a host lets them in. A host
 * that has not been started yet refuses connections, so they are tried again until the time limit. */
#include "hosts/tcp/tcp_connect.h"
#include "base/errors/status.h"
#include "base/numbers/checksum.h"
#include "base/text/text.h"
#include "hosts/cluster.h"
#include "hosts/socket.h"

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* How long one attempt to connect may take, and how long a process that has connected may say nothing. */
#define ATTEMPT_MS 3000
#define SILENT_MS  1000
#define RETRY_NS   20000000

/* What a host says first on a connection. Numbers are little-endian, so that hosts of different byte orders
 * understand each other well enough to say so. */
struct tcp_hello {
    char magic[8]; /* "ditto 1\n": the version of this protocol */
    uint64_t secret;
    uint64_t list; /* a hash of all names and ports, and of the launcher's job */
    uint32_t num_hosts;
    uint32_t from, to;
    uint32_t unused;
};

/* What the other host answers. */
enum answer { ANSWER_NONE, ANSWER_WELCOME, ANSWER_OTHER_SECRET, ANSWER_OTHER_LIST, ANSWER_TWICE };

struct connecting {
    const struct dti_tcp_hosts *hosts;
    uint64_t secret, list;
    struct dti_deadline deadline;
    uint32_t timeout_ms;
    int listening;
    int *fd;

    /* How a host was refused last, for the message if not all come. */
    char refused[200];
};

static struct tcp_hello hello_to(const struct connecting *c, uint32_t host)
{
    struct tcp_hello hello = { .secret = htole64(c->secret),
                               .list = htole64(c->list),
                               .num_hosts = htole32(c->hosts->count),
                               .from = htole32(c->hosts->own),
                               .to = htole32(host) };
    memcpy(hello.magic, "ditto 1\n", sizeof hello.magic);
    return hello;
}

/* Returns a limit of `ms`, or the end of the whole limit if that is earlier. */
static struct dti_deadline soon(const struct connecting *c, uint32_t ms)
{
    struct dti_deadline limit = { .timeout_ms = ms }, whole = c->deadline;
    return dti_deadline_at(&limit) < dti_deadline_at(&whole) ? limit : whole;
}

/* -- addresses -- */

/* Finds the addresses of a host. For listening, they are those of all interfaces. */
static ditto_status find_addresses(const struct dti_tcp_host *host, bool listens, struct addrinfo **out)
{
    char port[8];
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_NUMERICSERV | (listens ? AI_PASSIVE : 0) };
    snprintf(port, sizeof port, "%u", host->port);
    int code = getaddrinfo(listens ? NULL : host->name, port, &hints, out);
    if (code == EAI_MEMORY)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the addresses of %s", host->name);
    if (code != 0)
        return DTI_FAIL(DITTO_ERR_SYSTEM, "the name %s in the list of hosts has no address: %s", host->name,
                        gai_strerror(code));
    return DITTO_OK;
}

static ditto_status begin_to_listen(struct connecting *c)
{
    const struct dti_tcp_host *own = &c->hosts->host[c->hosts->own];
    struct addrinfo *addresses;
    int on = 1, off = 0, failed = 0;
    DTI_TRY(find_addresses(own, true, &addresses));
    /* An IPv6 socket also takes IPv4 connections, so it is tried first. A machine may have no IPv6. */
    const int families[] = { AF_INET6, AF_INET };
    for (int k = 0; k < 2 && c->listening < 0; k++)
        for (const struct addrinfo *a = addresses; a != NULL && c->listening < 0; a = a->ai_next) {
            if (a->ai_family != families[k])
                continue;
            int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            if (fd < 0) {
                failed = errno;
                continue;
            }
            (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
            if (a->ai_family == AF_INET6)
                (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
            if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, (int)c->hosts->count) == 0) {
                c->listening = fd;
            } else {
                failed = errno;
                close(fd);
            }
        }
    freeaddrinfo(addresses);
    if (c->listening >= 0)
        return DITTO_OK;
    return DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, failed,
                          "host %u cannot listen on its port, %u (%s): if another program uses it, give it "
                          "another one in the list of hosts",
                          c->hosts->own, own->port, own->name);
}

/* -- hosts with lower numbers -- */

static ditto_status fail_refused(const struct connecting *c, uint32_t host, enum answer answer)
{
    const char *why = answer == ANSWER_OTHER_SECRET
                          ? "it was given another secret (ditto_tcp_options.secret, DITTO_SECRET)"
                      : answer == ANSWER_OTHER_LIST ? "it has another list of hosts, or another number in it"
                                                    : "another process has connected as this host before";
    return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "host %u (%s:%u) does not let in host %u of %u: %s", host,
                    c->hosts->host[host].name, c->hosts->host[host].port, c->hosts->own, c->hosts->count,
                    why);
}

/* Tries one address. Returns the connection, or -1 with *failed. */
static int try_address(const struct connecting *c, const struct addrinfo *a, int *failed)
{
    struct dti_deadline limit = soon(c, ATTEMPT_MS);
    socklen_t length = sizeof *failed;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        *failed = errno;
        return -1;
    }
    *failed = connect(fd, a->ai_addr, a->ai_addrlen) == 0 || errno == EINPROGRESS ? 0 : errno;
    if (*failed == 0 && !dti_socket_wait(fd, POLLOUT, &limit))
        *failed = ETIMEDOUT;
    if (*failed == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, failed, &length) != 0)
        *failed = errno;
    if (*failed != 0) {
        close(fd);
        return -1;
    }
    dti_socket_set_options(fd, DTI_WIRE_TRIES);
    return fd;
}

/* Says hello on a new connection. The host answers when it has itself connected to all lower hosts. Returns
 * ANSWER_NONE if the connection breaks, or after the limit. */
static enum answer introduce(const struct connecting *c, uint32_t host, int fd,
                             const struct dti_deadline *limit)
{
    struct tcp_hello hello = hello_to(c, host);
    unsigned char answer = ANSWER_NONE;
    if (!dti_socket_send(fd, &hello, sizeof hello, limit) || !dti_socket_receive(fd, &answer, 1, limit))
        return ANSWER_NONE;
    return answer <= ANSWER_TWICE ? (enum answer)answer : ANSWER_NONE;
}

static ditto_status connect_once(struct connecting *c, uint32_t host, const struct addrinfo *addresses,
                                 int *failed)
{
    for (const struct addrinfo *a = addresses; a != NULL; a = a->ai_next) {
        /* Something else may listen at one of several addresses, and say nothing. */
        struct dti_deadline limit = a->ai_next != NULL ? soon(c, ATTEMPT_MS) : c->deadline;
        int fd = try_address(c, a, failed);
        enum answer answer = fd >= 0 ? introduce(c, host, fd, &limit) : ANSWER_NONE;
        if (answer == ANSWER_WELCOME) {
            c->fd[host] = fd;
            return DITTO_OK;
        }
        if (fd >= 0)
            close(fd);
        if (answer != ANSWER_NONE)
            return fail_refused(c, host, answer);
    }
    return DITTO_PENDING;
}

static ditto_status connect_to(struct connecting *c, uint32_t host)
{
    const struct timespec pause = { 0, RETRY_NS };
    struct addrinfo *addresses;
    int failed = 0;
    DTI_TRY(find_addresses(&c->hosts->host[host], false, &addresses));
    ditto_status status = connect_once(c, host, addresses, &failed);
    while (status == DITTO_PENDING && dti_now_ns() < dti_deadline_at(&c->deadline)) {
        nanosleep(&pause, NULL);
        status = connect_once(c, host, addresses, &failed);
    }
    freeaddrinfo(addresses);
    if (status != DITTO_PENDING)
        return status;
    return DTI_FAIL_ERRNO(
        DITTO_ERR_TIMED_OUT, failed,
        "host %u of %u could not connect to host %u (%s:%u) within %u ms: start the program "
        "there, or correct the list of hosts (DITTO_HOSTS; DITTO_PORT if a launcher tells them)",
        c->hosts->own, c->hosts->count, host, c->hosts->host[host].name, c->hosts->host[host].port,
        c->timeout_ms);
}

/* -- hosts with higher numbers -- */

/* Returns true if a host has connected, and its connection is not known to be broken. */
static bool is_connected(const struct connecting *c, uint32_t host)
{
    char byte;
    if (c->fd[host] < 0)
        return false;
    ssize_t got = recv(c->fd[host], &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

static enum answer judge(const struct connecting *c, const struct tcp_hello *hello)
{
    uint32_t from = le32toh(hello->from);
    if (le64toh(hello->secret) != c->secret)
        return ANSWER_OTHER_SECRET;
    if (le64toh(hello->list) != c->list || le32toh(hello->num_hosts) != c->hosts->count ||
        le32toh(hello->to) != c->hosts->own || from <= c->hosts->own || from >= c->hosts->count)
        return ANSWER_OTHER_LIST;
    return is_connected(c, from) ? ANSWER_TWICE : ANSWER_WELCOME;
}

/* Keeps the connection of a host. If an earlier one is broken, the host has been started again. */
static void keep(struct connecting *c, uint32_t host, int fd)
{
    if (c->fd[host] >= 0)
        close(c->fd[host]);
    c->fd[host] = fd;
    dti_socket_set_options(fd, DTI_WIRE_TRIES);
}

/* Says to a process that has connected whether it is let in. A connection that says something else than a
 * host does is closed. */
static void answer_to(struct connecting *c, int fd)
{
    static const char *const reasons[] = { "", "", "another secret", "another list of hosts, or number",
                                           "the number of a host that has connected" };
    struct dti_deadline limit = soon(c, SILENT_MS);
    struct tcp_hello hello, expected = hello_to(c, 0);
    if (!dti_socket_receive(fd, &hello, sizeof hello, &limit) ||
        memcmp(hello.magic, expected.magic, sizeof hello.magic) != 0) {
        close(fd);
        return;
    }
    enum answer answer = judge(c, &hello);
    unsigned char said = (unsigned char)answer;
    bool is_told = dti_socket_send(fd, &said, 1, &limit);
    if (answer == ANSWER_WELCOME && is_told) {
        keep(c, le32toh(hello.from), fd);
        return;
    }
    if (answer != ANSWER_WELCOME)
        snprintf(c->refused, sizeof c->refused, "; a process that says it is host %u of %u was refused: %s",
                 le32toh(hello.from), le32toh(hello.num_hosts), reasons[answer]);
    close(fd);
}

static ditto_status let_in(struct connecting *c)
{
    int fd = accept4(c->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), failed = errno;
    if (fd >= 0)
        answer_to(c, fd);
    else if (failed == EMFILE || failed == ENFILE || failed == ENOBUFS || failed == ENOMEM)
        return DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, failed, "host %u cannot take the connection of another host",
                              c->hosts->own);
    return DITTO_OK; /* also if the connection was broken before it was taken */
}

static ditto_status fail_missing(const struct connecting *c)
{
    bool missing[DTI_MAX_HOSTS] = { false };
    char set[200];
    struct dti_text text = { set, sizeof set, 0 };
    for (uint32_t h = c->hosts->own + 1; h < c->hosts->count; h++)
        missing[h] = c->fd[h] < 0;
    dti_text_add_set(&text, missing, c->hosts->count, 0);
    return DTI_FAIL(
        DITTO_ERR_TIMED_OUT,
        "host %u of %u waited %u ms on port %u, and these hosts have not connected: %s. Start the "
        "program there, or correct the list of hosts%s",
        c->hosts->own, c->hosts->count, c->timeout_ms, c->hosts->host[c->hosts->own].port, set, c->refused);
}

static ditto_status let_all_in(struct connecting *c)
{
    for (;;) {
        uint32_t missing = 0;
        for (uint32_t h = c->hosts->own + 1; h < c->hosts->count; h++)
            missing += c->fd[h] < 0;
        if (missing == 0)
            return DITTO_OK;
        if (!dti_socket_wait(c->listening, POLLIN, &c->deadline))
            return fail_missing(c);
        DTI_TRY(let_in(c));
    }
}

/* -- all -- */

static uint64_t hash_of_list(const struct dti_tcp_hosts *hosts)
{
    uint64_t hash = hosts->job;
    for (uint32_t h = 0; h < hosts->count; h++) {
        const unsigned char port[2] = { (unsigned char)(hosts->host[h].port >> 8),
                                        (unsigned char)hosts->host[h].port };
        hash = dti_hash_bytes(hash, hosts->host[h].name, strlen(hosts->host[h].name) + 1);
        hash = dti_hash_bytes(hash, port, sizeof port);
    }
    return hash;
}

static ditto_status connect_all(struct connecting *c)
{
    if (c->hosts->own + 1 < c->hosts->count)
        DTI_TRY(begin_to_listen(c));
    for (uint32_t h = 0; h < c->hosts->own; h++)
        DTI_TRY(connect_to(c, h));
    return let_all_in(c);
}

ditto_status dti_tcp_connect(const struct dti_tcp_hosts *hosts, const char *secret, uint32_t timeout_ms,
                             int *fd)
{
    struct connecting c = { .hosts = hosts,
                            .secret = dti_hash_bytes(DTI_HASH_SEED, secret, strlen(secret)),
                            .list = hash_of_list(hosts),
                            .deadline = { .timeout_ms = timeout_ms },
                            .timeout_ms = timeout_ms,
                            .listening = -1,
                            .fd = fd };
    (void)dti_deadline_at(&c.deadline);
    for (uint32_t h = 0; h < hosts->count; h++)
        fd[h] = -1;
    ditto_status status = connect_all(&c);
    if (c.listening >= 0)
        close(c.listening);
    for (uint32_t h = 0; h < hosts->count && status != DITTO_OK; h++)
        if (fd[h] >= 0)
            close(fd[h]);
    return status;
}
