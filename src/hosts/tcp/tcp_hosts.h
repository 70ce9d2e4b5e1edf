/* src/hosts/tcp/tcp_hosts.h - finds out which hosts a cluster over TCP has: from a list, or from what a
 * launcher has written into the environment. Opens no connections. */
#ifndef DTI_TCP_HOSTS_H
#define DTI_TCP_HOSTS_H

#include <ditto/tcp.h>

#include <stdbool.h>

#define DTI_TCP_NAME_BYTES 256

struct dti_tcp_host {
    char name[DTI_TCP_NAME_BYTES]; /* a name or an address */
    uint16_t port;
};

struct dti_tcp_hosts {
    uint32_t count;
    uint32_t own;              /* the number of this host */
    uint64_t job;              /* dti_launcher_job, if a launcher has told the hosts; else 0 */
    struct dti_tcp_host *host; /* [count] */
};

/* Fills in *out, which dti_tcp_hosts_free releases, also after an error. Returns an error of
 * ditto_tcp_cluster. */
ditto_status dti_tcp_find_hosts(const ditto_tcp_options *options, struct dti_tcp_hosts *out);
void dti_tcp_hosts_free(struct dti_tcp_hosts *hosts);

/* Reads a list like "node1:7000,[::1]:7001". */
ditto_status dti_tcp_read_list(const char *list, struct dti_tcp_hosts *out);

/* Adds a host. Returns INVALID for a name that is empty, too long, or listed with the same port before; RANGE
 * for a port that cannot be, or too many hosts; NO_MEMORY. */
ditto_status dti_tcp_add_host(struct dti_tcp_hosts *hosts, const char *name, size_t name_length,
                              uint32_t port);

/* -- launcher.c -- */

/* What a launcher has told this process. */
struct dti_launched {
    uint32_t size;    /* 0 if there was none */
    uint32_t rank;    /* of this process */
    bool one_machine; /* all processes are on this machine */
};

/* Returns INVALID if a variable cannot be read. */
ditto_status dti_launcher_read(struct dti_launched *out);

/* Returns a hash of what distinguishes this job of a launcher from others, or 0 if nothing does. */
uint64_t dti_launcher_job(void);

/* Adds the hosts that the launcher has started, with ports from base_port on, or computed ones if base_port
 * is 0. */
ditto_status dti_launcher_hosts(const struct dti_launched *launched, uint32_t base_port,
                                struct dti_tcp_hosts *out);

/* Reads a variable of the environment that is a number up to `most`. Returns DITTO_PENDING if it is not
 * set. */
ditto_status dti_environment_number(const char *variable, uint32_t most, uint32_t *out);

#endif
