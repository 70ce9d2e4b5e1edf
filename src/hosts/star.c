/* src/hosts/star.c - makes TCP connections between host 0 and all other hosts. See star.h.
 *
 * Host 0 listens, and tells the others over the wire at which addresses, and a random token. Each of them
 * tries the addresses one after the other, shows the token, and waits for an answer. Then all hosts tell each
 * other whether they are connected. A host that has no connection after CONNECT_MS gives up, because packets
 * to an address that a firewall protects are lost without an answer. */
#include "hosts/star.h"
#include "base/errors/status.h"
#include "base/numbers/checksum.h"
#include "hosts/header.h"
#include "hosts/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_MS     5000
#define ADDRESS_MS     1500
#define MOST_ADDRESSES 16

struct address {
    sa_family_t family;
    uint16_t unused;
    uint32_t scope;
    unsigned char bytes[16];
};

/* What host 0 says to the others. */
struct invitation {
    unsigned char token[16];
    char boot[40]; /* equal in all processes of a machine */
    uint32_t addresses;
    uint16_t port; /* 0 if host 0 cannot listen */
    uint16_t unused;
    struct address address[MOST_ADDRESSES];
};

/* What a host says first on its connection. */
struct hello {
    unsigned char token[16];
    uint32_t host;
};

/* -- small parts -- */

static void read_boot(char boot[40])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    memset(boot, 0, 40);
    if (file == NULL)
        return;
    (void)!fread(boot, 1, 39, file);
    fclose(file);
}

/* -- host 0 -- */

static void list_addresses(struct invitation *out)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0)
        return;
    for (const struct ifaddrs *a = all; a != NULL && out->addresses < MOST_ADDRESSES; a = a->ifa_next) {
        struct address *to = &out->address[out->addresses];
        if (a->ifa_addr == NULL || (a->ifa_flags & IFF_UP) == 0 || (a->ifa_flags & IFF_LOOPBACK) != 0)
            continue;
        if (a->ifa_addr->sa_family == AF_INET) {
            const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)a->ifa_addr;
            *to = (struct address){ .family = AF_INET };
            memcpy(to->bytes, &v4->sin_addr, sizeof v4->sin_addr);
            out->addresses++;
        } else if (a->ifa_addr->sa_family == AF_INET6) {
            const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)a->ifa_addr;
            if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
                continue; /* its scope has no meaning on another host */
            *to = (struct address){ .family = AF_INET6, .scope = v6->sin6_scope_id };
            memcpy(to->bytes, &v6->sin6_addr, sizeof v6->sin6_addr);
            out->addresses++;
        }
    }
    freeifaddrs(all);
}

/* Listens on all interfaces, because host 0 does not know through which one the others come. Returns -1 if
 * that is not possible. */
static int begin_to_listen(uint32_t hosts, struct invitation *out)
{
    struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_addr = in6addr_any };
    struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_addr = { .s_addr = htonl(INADDR_ANY) } };
    socklen_t length = sizeof any;
    int off = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    } else { /* a machine without IPv6 */
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        memcpy(&any, &any4, sizeof any4);
        length = sizeof any4;
    }
    if (fd < 0)
        return -1;
    if (getrandom(out->token, sizeof out->token, 0) != (ssize_t)sizeof out->token ||
        bind(fd, (struct sockaddr *)(void *)&any, length) != 0 || listen(fd, (int)hosts) != 0 ||
        getsockname(fd, (struct sockaddr *)(void *)&any, &length) != 0) {
        close(fd);
        return -1;
    }
    out->port = any.sin6_port; /* at the same place in both kinds of address */
    list_addresses(out);
    return fd;
}

/* Lets one connection in, if it shows the token. */
static void let_in(const ditto_cluster *cluster, int listening, const struct invitation *invitation, int *fd,
                   uint32_t *count)
{
    struct dti_deadline soon = { .timeout_ms = ADDRESS_MS };
    struct hello hello;
    int accepted = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted < 0)
        return;
    unsigned char yes = 1;
    if (!dti_socket_receive(accepted, &hello, sizeof hello, &soon) ||
        memcmp(hello.token, invitation->token, sizeof hello.token) != 0 || hello.host == 0 ||
        hello.host >= cluster->wire.num_hosts || fd[hello.host] >= 0 ||
        !dti_socket_send(accepted, &yes, 1, &soon)) {
        close(accepted);
        return;
    }
    dti_socket_set_options(accepted);
    dti_socket_limit_unacknowledged(accepted);
    fd[hello.host] = accepted;
    ++*count;
}

static void let_all_in(const ditto_cluster *cluster, int listening, const struct invitation *invitation,
                       int *fd)
{
    struct dti_deadline deadline = { .timeout_ms = CONNECT_MS };
    uint32_t count = 1;
    (void)dti_deadline_at(&deadline); /* one limit for all hosts */
    while (listening >= 0 && count < cluster->wire.num_hosts && dti_socket_wait(listening, POLLIN, &deadline))
        let_in(cluster, listening, invitation, fd, &count);
}

/* -- the other hosts -- */

static int connect_to(const ditto_cluster *cluster, const struct invitation *invitation,
                      const struct address *a, const struct dti_deadline *deadline)
{
    struct dti_deadline soon = { .timeout_ms = ADDRESS_MS };
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = invitation->port };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
                               .sin6_port = invitation->port,
                               .sin6_scope_id = a->scope };
    bool is_v4 = a->family == AF_INET;
    int failed = 0, fd = socket(a->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t length = sizeof failed;
    struct hello hello = { .host = cluster->wire.host };
    unsigned char yes = 0;
    if (fd < 0)
        return -1;
    memcpy(&v4.sin_addr, a->bytes, sizeof v4.sin_addr);
    memcpy(&v6.sin6_addr, a->bytes, sizeof v6.sin6_addr);
    memcpy(hello.token, invitation->token, sizeof hello.token);
    int begun = connect(fd, is_v4 ? (struct sockaddr *)(void *)&v4 : (struct sockaddr *)(void *)&v6,
                        is_v4 ? sizeof v4 : sizeof v6);
    bool connected = (begun == 0 || errno == EINPROGRESS) && dti_socket_wait(fd, POLLOUT, &soon) &&
                     getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &length) == 0 && failed == 0;
    /* Host 0 lets in one host after the other, so its answer may come much later. */
    if (connected && dti_socket_send(fd, &hello, sizeof hello, deadline) &&
        dti_socket_receive(fd, &yes, 1, deadline) && yes == 1) {
        dti_socket_set_options(fd);
        dti_socket_limit_unacknowledged(fd);
        return fd;
    }
    close(fd);
    return -1;
}

static int connect_to_host_0(const ditto_cluster *cluster, const struct invitation *invitation)
{
    struct address here = { .family = AF_INET, .bytes = { 127, 0, 0, 1 } };
    char boot[40];
    int fd = -1;
    struct dti_deadline deadline = { .timeout_ms = CONNECT_MS };
    uint64_t end = dti_deadline_at(&deadline);
    read_boot(boot);
    if (invitation->port == 0)
        return -1;
    if (memcmp(boot, invitation->boot, sizeof boot) == 0)
        fd = connect_to(cluster, invitation, &here, &deadline);
    for (uint32_t i = 0; fd < 0 && i < invitation->addresses && i < MOST_ADDRESSES && dti_now_ns() < end; i++)
        fd = connect_to(cluster, invitation, &invitation->address[i], &deadline);
    return fd;
}

/* -- both -- */

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

ditto_status dti_star_connect(ditto_cluster *cluster, uint32_t timeout_ms, int *fd, bool *all_connected)
{
    struct invitation invitation = { .port = 0 };
    uint32_t hosts = cluster->wire.num_hosts;
    int listening = -1;
    _Static_assert(sizeof invitation <= DTI_HEADER_PAYLOAD, "an invitation rides behind a header");
    for (uint32_t h = 0; h < hosts; h++)
        fd[h] = -1;
    if (cluster->wire.host == 0) {
        read_boot(invitation.boot);
        listening = begin_to_listen(hosts, &invitation);
        memcpy(dti_header_out(cluster), &invitation, sizeof invitation);
    }
    ditto_status status = exchange(cluster, cluster->wire.host == 0 ? sizeof invitation : 0, timeout_ms);
    if (status == DITTO_OK && cluster->wire.host == 0) {
        let_all_in(cluster, listening, &invitation, fd);
    } else if (status == DITTO_OK) {
        memcpy(&invitation, dti_header_in(cluster, 0), sizeof invitation);
        fd[0] = connect_to_host_0(cluster, &invitation);
    }
    if (listening >= 0)
        close(listening);
    if (status != DITTO_OK)
        return status;
    uint32_t connected = 0;
    for (uint32_t h = 0; h < hosts; h++)
        connected += fd[h] >= 0;
    memcpy(dti_header_out(cluster), &connected, sizeof connected);
    /* Another host may have tried for CONNECT_MS. */
    timeout_ms = timeout_ms < UINT32_MAX - CONNECT_MS ? timeout_ms + CONNECT_MS : timeout_ms;
    DTI_TRY(exchange(cluster, sizeof connected, timeout_ms));
    *all_connected = true;
    for (uint32_t h = 0; h < hosts; h++) {
        memcpy(&connected, dti_header_in(cluster, h), sizeof connected);
        *all_connected &= connected == (h == 0 ? hosts - 1 : 1);
    }
    return DITTO_OK;
}
