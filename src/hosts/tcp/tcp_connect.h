/* src/hosts/tcp/tcp_connect.h - connects each host with each other one by TCP. */
#ifndef DTI_TCP_CONNECT_H
#define DTI_TCP_CONNECT_H

#include "hosts/tcp/tcp_hosts.h"

/* Sets fd[h] to the connection with host h. Sockets do not block. Returns an error of ditto_tcp_cluster, and
 * then all connections are closed. */
ditto_status dti_tcp_connect(const struct dti_tcp_hosts *hosts, const char *secret, uint32_t timeout_ms,
                             int *fd);

#endif
