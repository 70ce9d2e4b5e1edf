/* examples/launch_tcp.c - a program on one host, or on several that are connected by TCP: those that
 * DITTO_HOSTS lists, or that a launcher has started. See launch.h. */
#include "launch.h"

#include <stdio.h>
#include <stdlib.h>

static ditto_cluster *cluster;

void join_hosts(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    ditto_status status = ditto_tcp_cluster(NULL, NULL, &cluster);
    if (status != DITTO_OK)
        leave_after_error(status);
}

ditto_cluster *hosts(void)
{
    return cluster;
}

bool is_first_host(void)
{
    return ditto_cluster_host(cluster) == 0;
}

int leave_hosts(int code)
{
    ditto_status status = ditto_cluster_destroy(cluster);
    return code != 0 ? code : status != DITTO_OK;
}

void leave_after_error(ditto_status status)
{
    const ditto_error *error = ditto_last_error();
    fprintf(stderr, "%s: %s: %s\n", error->function, ditto_status_name(status), error->message);
    exit(1);
}
