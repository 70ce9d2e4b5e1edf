/* src/cluster/star.h - makes TCP connections between host 0 and all other hosts. */
#ifndef DTI_STAR_H
#define DTI_STAR_H

#include <ditto/status.h>

#include <stdbool.h>
#include <stdint.h>

struct ditto_cluster;

/* Connects each host with host 0. Every host calls it. On return fd[h] is the connection of this host with
 * host h, or -1. *all_connected, which is equal on all hosts, says whether every host has its connection.
 * Fails as dti_headers_exchange does, and on all hosts with SYSTEM if one has no descriptor left.
 * `lacks_descriptors` says that the caller has found that already. */
ditto_status dti_star_connect(struct ditto_cluster *cluster, uint32_t timeout_ms, bool lacks_descriptors,
                              int *fd, bool *all_connected);

#endif
