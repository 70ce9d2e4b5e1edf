/* tests/support/hosts.h - plays a cluster in one process: each host is a thread with a cluster of its own. */
#ifndef SUPPORT_HOSTS_H
#define SUPPORT_HOSTS_H

#include "support/local_wire.h"
#include "support/support.h"

/* One host, on its own thread. */
struct test_host {
    uint32_t host, hosts;
    ditto_cluster *cluster; /* of this host */
    struct local_network *network;
    struct report *report; /* a host records failures, and never asserts */
    void *argument;
    bool life_line;
};

typedef ditto_status test_host_fn(struct test_host *host);

/* Calls the function on each of `hosts` hosts, between which messages take up to delay_us. The function
 * destroys its strategies. Fails the test if it fails on a host, if the cluster cannot be destroyed, or if
 * messages are left on the wire. */
void on_hosts(uint32_t hosts, uint32_t delay_us, test_host_fn *function, void *argument);

/* The same for functions that leave messages behind, because a host is lost. Clusters may be poisoned. */
void on_hosts_that_fail(uint32_t hosts, uint32_t delay_us, test_host_fn *function, void *argument);

/* As on_hosts, with a life line. */
void on_hosts_that_take_leave(uint32_t hosts, test_host_fn *function, void *argument);

/* As on_hosts_that_fail, with a life line. */
void on_hosts_with_life_line(uint32_t hosts, test_host_fn *function, void *argument);

/* Creates the strategy of one host, with `replicas` replicas. NULL options are the defaults. */
ditto_status make_host_strategy(struct test_host *host, uint32_t replicas,
                                const ditto_strategy_options *options, ditto_strategy **out);

/* A function of a run: adds the numbers of all replicas, and checks the sum. `report` is a struct report. */
ditto_status sum_of_ids(ditto_replica *self, void *report);

/* Checks a condition on a host. */
#define CHECK(host, condition) EXPECT((host)->report, condition)

/* Checks that a host has got this status, with a message that contains the text. Fails otherwise. */
ditto_status expect(struct test_host *host, ditto_status found, ditto_status expected, const char *text);

#endif
