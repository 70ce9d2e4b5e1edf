/* include/ditto/tcp.h - clusters over TCP, without MPI.
 *
 *     DITTO_HOSTS=node1:7000,node2:7000 DITTO_HOST=0 program   # on node1
 *     DITTO_HOSTS=node1:7000,node2:7000 DITTO_HOST=1 program   # on node2
 *
  * It is for machines without MPI. On a network that is faster than TCP, use MPI (ditto/mpi.h). */
#ifndef DITTO_TCP_H
#define DITTO_TCP_H

#include <ditto/cluster.h>

DITTO_BEGIN

/** @defgroup ditto_tcp Clusters over TCP
 *
 *  Each process is a host. All hosts know the list of all, and each knows its number in it. docs/cluster.md
 *  has examples.
 *  @{ */

/** Which hosts there are. Start from DITTO_TCP_OPTIONS_INIT. */
typedef struct ditto_tcp_options {
    size_t struct_size; /**< set by DITTO_TCP_OPTIONS_INIT */

    /** The hosts in the order of their numbers, as in "node1:7000,node2:7000,[fd00::3]:7000": for each the
     *  name or address by which the others reach it, and the port on which it listens. The same on all
     *  hosts. NULL means the environment variable DITTO_HOSTS. If that is not set either, the hosts are the
     *  processes that a launcher has started: srun on any machines, mpirun or mpiexec on one machine. If
     *  there was no launcher, there is one host. A host that has another list is not let in. */
    const char *hosts;

    /** The number of this host, if has_host is not 0. Otherwise it is DITTO_HOST of the environment, or the
     *  number that a launcher gave the process, or that of the one host in the list whose name is one of this
     *  machine. */
    uint32_t host;
    int has_host; /**< not 0: `host` is used */

    /** The port of the first host of each machine if mpirun, mpiexec or srun tells the hosts; the next ones
     *  have the ports behind it. 0 means DITTO_PORT of the environment, or a port that is computed from the
     *  job. */
    uint32_t port;

    /** A word that hosts must show to be let in. NULL means DITTO_SECRET of the environment, or none. It
     *  keeps programs apart, and is sent as a checksum. It does not protect against an attacker who can read
     *  the network. */
    const char *secret;
} ditto_tcp_options;

/** Initial value of ditto_tcp_options: everything from the environment. */
#define DITTO_TCP_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_tcp_options)

/** Connects the hosts by TCP, and makes a cluster of them. Every host calls it.
 *
 *  @param tcp      which hosts there are; NULL means what the environment says
 *  @param options  NULL for the defaults
 *  @param out      [out] the cluster; set only on DITTO_OK
 *  @return DITTO_OK, an error of ditto_cluster_create, or one of:
  *  @retval DITTO_ERR_INVALID    the list of hosts, or a number or port in the environment, cannot be read; a
 *                               host is listed twice; it is not known which host this is; the launcher does
 *                               not say on which machines the others are
 *  @retval DITTO_ERR_RANGE      more than 1024 hosts; `host` is not in the list; a port is above 65535
 *  @retval DITTO_ERR_UNSUPPORTED  a host does not let this one in, because its list or secret differs
 *  @retval DITTO_ERR_SYSTEM     this host cannot listen on its port, or a name has no address
  *  @retval DITTO_ERR_TIMED_OUT  a host cannot be reached, or has not connected, within options->timeout_ms;
 *                               the message names it. ditto_cluster_create then has as much time again
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for the connections
 *  @par Thread safety
 *  Any one thread at a time may use the cluster and its strategies in cross-replica context.
 *  @par Ownership
 *  The caller gives the cluster to ditto_cluster_destroy. The strings of the options are not kept.
 *  @par Cost
 *  A connection to each other host, and what ditto_cluster_create costs. A message that arrives before it is
 *  asked for is kept in memory. */
DITTO_API DITTO_NODISCARD ditto_status ditto_tcp_cluster(const ditto_tcp_options *tcp,
                                                         const ditto_cluster_options *options,
                                                         ditto_cluster **out);

/** @} */

DITTO_END
#endif
