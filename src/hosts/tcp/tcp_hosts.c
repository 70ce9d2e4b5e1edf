/* src/hosts/tcp/tcp_hosts.c - the list of hosts, and which one this is. See tcp_hosts.h. */
#include "hosts/tcp/tcp_hosts.h"
#include "base/errors/status.h"
#include "hosts/cluster.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define HIGHEST_PORT 65535u

ditto_status dti_tcp_add_host(struct dti_tcp_hosts *hosts, const char *name, size_t name_length,
                              uint32_t port)
{
    if (hosts->count == DTI_MAX_HOSTS)
        return DTI_FAIL(DITTO_ERR_RANGE, "the list has more than %u hosts", DTI_MAX_HOSTS);
    if (port == 0 || port > HIGHEST_PORT)
        return DTI_FAIL(DITTO_ERR_RANGE, "host %u has port %u: ports are 1 to %u", hosts->count, port,
                        HIGHEST_PORT);
    if (name_length == 0 || name_length >= DTI_TCP_NAME_BYTES)
        return DTI_FAIL(DITTO_ERR_INVALID, "the name of host %u has %zu characters: names have 1 to %d",
                        hosts->count, name_length, DTI_TCP_NAME_BYTES - 1);
    if ((hosts->count & (hosts->count - 1)) == 0) { /* the capacity is the next power of two */
        size_t capacity = hosts->count != 0 ? 2 * (size_t)hosts->count : 1;
        struct dti_tcp_host *longer = realloc(hosts->host, capacity * sizeof *longer);
        if (longer == NULL)
            return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a list of %zu hosts", capacity);
        hosts->host = longer;
    }
    struct dti_tcp_host *added = &hosts->host[hosts->count];
    *added = (struct dti_tcp_host){ .port = (uint16_t)port };
    memcpy(added->name, name, name_length);
    for (uint32_t h = 0; h < hosts->count; h++)
        if (hosts->host[h].port == added->port && strcmp(hosts->host[h].name, added->name) == 0)
            return DTI_FAIL(DITTO_ERR_INVALID, "%s:%u is listed twice, as host %u and host %u", added->name,
                            port, h, hosts->count);
    hosts->count++;
    return DITTO_OK;
}

void dti_tcp_hosts_free(struct dti_tcp_hosts *hosts)
{
    free(hosts->host);
    hosts->host = NULL;
}

/* -- the list -- */

static ditto_status fail_entry(const char *entry, size_t length)
{
    return DTI_FAIL(DITTO_ERR_INVALID,
                    "\"%.*s\" in the list of hosts is not NAME:PORT or [ADDRESS]:PORT, as in "
                    "\"node1:7000,node2:7000\"",
                    length < 100 ? (int)length : 100, entry);
}

/* Reads the entry [entry, end), without spaces around it. */
static ditto_status read_entry(const char *entry, const char *end, struct dti_tcp_hosts *out)
{
    const char *name = entry, *name_end = NULL;
    uint32_t port = 0;
    if (entry < end && *entry == '[') { /* an IPv6 address has colons of its own */
        name = entry + 1;
        name_end = memchr(name, ']', (size_t)(end - name));
    } else {
        name_end = memchr(entry, ':', (size_t)(end - entry));
    }
    const char *digit = name_end != NULL && *name_end == ']' ? name_end + 1 : name_end;
    if (name_end == NULL || name_end == name || end - digit < 2 || end - digit > 6 || *digit != ':')
        return fail_entry(entry, (size_t)(end - entry));
    for (digit++; digit < end; digit++) {
        if (*digit < '0' || *digit > '9')
            return fail_entry(entry, (size_t)(end - entry));
        port = 10 * port + (uint32_t)(*digit - '0');
    }
    return dti_tcp_add_host(out, name, (size_t)(name_end - name), port);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

ditto_status dti_tcp_read_list(const char *list, struct dti_tcp_hosts *out)
{
    for (const char *entry = list;; entry++) {
        size_t length = strcspn(entry, ",");
        const char *first = entry, *end = entry + length;
        while (first < end && is_space(*first))
            first++;
        while (end > first && is_space(end[-1]))
            end--;
        DTI_TRY(read_entry(first, end, out));
        entry += length;
        if (*entry == '\0')
            return DITTO_OK;
    }
}

/* -- which host this is -- */

/* Debian's /etc/hosts gives the machine's own name an address like 127.0.1.1, which no interface lists. */
static bool is_loopback(const struct sockaddr *address)
{
    return address->sa_family == AF_INET &&
           ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
}

/* Returns true if an interface of this machine has the address. */
static bool is_own_address(const struct ifaddrs *interfaces, const struct sockaddr *address)
{
    if (is_loopback(address))
        return true;
    for (const struct ifaddrs *i = interfaces; i != NULL; i = i->ifa_next) {
        if (i->ifa_addr == NULL || i->ifa_addr->sa_family != address->sa_family)
            continue;
        if (address->sa_family == AF_INET &&
            memcmp(&((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr,
                   &((const struct sockaddr_in *)(const void *)address)->sin_addr,
                   sizeof(struct in_addr)) == 0)
            return true;
        if (address->sa_family == AF_INET6 &&
            memcmp(&((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr,
                   &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
                   sizeof(struct in6_addr)) == 0)
            return true;
    }
    return false;
}

static bool is_this_machine(const struct ifaddrs *interfaces, const char *name)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    bool is_own = false;
    if (getaddrinfo(name, NULL, &hints, &found) != 0)
        return false;
    for (const struct addrinfo *a = found; a != NULL && !is_own; a = a->ai_next)
        is_own = is_own_address(interfaces, a->ai_addr);
    freeaddrinfo(found);
    return is_own;
}

static ditto_status find_own_by_name(struct dti_tcp_hosts *hosts)
{
    struct ifaddrs *interfaces = NULL;
    uint32_t matches = 0;
    (void)getifaddrs(&interfaces);
    for (uint32_t h = 0; h < hosts->count; h++)
        if (is_this_machine(interfaces, hosts->host[h].name)) {
            hosts->own = h;
            matches++;
        }
    freeifaddrs(interfaces);
    if (matches == 1)
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_INVALID,
        "%u of the %u listed hosts name this machine, so it is not known which one this process is: "
        "set ditto_tcp_options.host, or DITTO_HOST in the environment",
        matches, hosts->count);
}

static ditto_status find_own(const ditto_tcp_options *options, const struct dti_launched *launched,
                             struct dti_tcp_hosts *hosts)
{
    const char *source = "ditto_tcp_options.host";
    ditto_status status = DITTO_OK;
    hosts->own = options->host;
    if (options->has_host == 0) {
        source = "DITTO_HOST";
        status = dti_environment_number(source, UINT32_MAX, &hosts->own);
    }
    if (status == DITTO_PENDING && launched->size == hosts->count) {
        hosts->own = launched->rank;
        return DITTO_OK;
    }
    if (status == DITTO_PENDING)
        return hosts->count == 1 ? DITTO_OK : find_own_by_name(hosts);
    if (status == DITTO_OK && hosts->own >= hosts->count)
        return DTI_FAIL(DITTO_ERR_RANGE, "%s is %u, but the list has %u hosts, which are numbered from 0",
                        source, hosts->own, hosts->count);
    return status;
}

ditto_status dti_tcp_find_hosts(const ditto_tcp_options *options, struct dti_tcp_hosts *out)
{
    struct dti_launched launched = { 0 };
    const char *list = options->hosts != NULL ? options->hosts : getenv("DITTO_HOSTS");
    uint32_t port = options->port;
    *out = (struct dti_tcp_hosts){ 0 };
    if (list == NULL || options->has_host == 0)
        DTI_TRY(dti_launcher_read(&launched));
    if (port > HIGHEST_PORT)
        return DTI_FAIL(DITTO_ERR_RANGE, "ditto_tcp_options.port is %u: ports are 1 to %u", port,
                        HIGHEST_PORT);
    if (port == 0 && dti_environment_number("DITTO_PORT", HIGHEST_PORT, &port) < 0)
        return dti_error_get()->status;
    if (list != NULL)
        DTI_TRY(dti_tcp_read_list(list, out));
    else if (launched.size > 1)
        DTI_TRY(dti_launcher_hosts(&launched, port, out));
    else
        DTI_TRY(dti_tcp_add_host(out, "localhost", strlen("localhost"), port != 0 ? port : 1));
    return find_own(options, &launched, out);
}
