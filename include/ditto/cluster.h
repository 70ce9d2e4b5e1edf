/* include/ditto/cluster.h - several hosts that one strategy spans, and how bytes get from one to another.
 *
 * A *host* is one process of a program that runs on several machines, or on several sockets of one. All hosts
 * run the same program and make the same calls in the same order. A *wire* moves bytes between them.
 * ditto/mpi.h has a wire over MPI, which makes the cluster with one call. A program that has another network
 * fills in a ditto_wire itself. docs/cluster.md says which calls all hosts make together, and which concern
 * one host alone. */
#ifndef DITTO_CLUSTER_H
#define DITTO_CLUSTER_H

#include <ditto/status.h>

DITTO_BEGIN

/** @defgroup ditto_cluster Clusters
 *  The hosts of a program, and the wire between them.
 *  @{ */

/** The hosts of a program. It is TensorFlow's cluster resolver. */
typedef struct ditto_cluster ditto_cluster;

/** The largest number of bytes in one message of a wire. */
#define DITTO_WIRE_MOST_BYTES ((size_t)1 << 30)

/** Channels of a wire are numbered from 0 to DITTO_WIRE_CHANNELS - 1. */
#define DITTO_WIRE_CHANNELS 32768u

/** The functions of a wire may only be called by the thread that made the cluster. */
#define DITTO_WIRE_ONE_THREAD UINT32_C(1)

/** `destroy` of a wire may be called while sends and receives are unfinished. Afterwards the wire does not
 *  touch their memory. */
#define DITTO_WIRE_ENDS_TRANSFERS UINT32_C(2)

/** A send or a receive that a wire has finished. */
typedef struct ditto_wire_event {
    uint64_t ticket;     /**< the number that the send or receive was given */
    size_t bytes;        /**< the length of the message */
    ditto_status status; /**< DITTO_OK, or an error, for example DITTO_ERR_SYSTEM */
} ditto_wire_event;

/** Moves messages between hosts. All functions return at once. One thread at a time calls them.
 *
 *  The messages that one host sends to another on one channel arrive in the order in which they were sent. A
 *  receive takes the oldest message of its host and channel that no earlier receive has taken. Messages of
 *  different hosts or channels may overtake each other. Nothing is lost or duplicated.
 *
 *  A send or receive begins with a ticket, a number that no unfinished one has. `progress` returns an event
 *  for each that has finished. The memory of a message must not be changed until then, and that of a receive
 *  must not be read. A function that fails sets an error record with a message (ditto_fail). */
typedef struct ditto_wire {
    size_t struct_size; /**< set by DITTO_WIRE_INIT */
    uint32_t num_hosts; /**< number of hosts, 1 to 1024 */
    uint32_t host;      /**< the number of this host, from 0 */
    uint32_t flags;     /**< 0, or DITTO_WIRE_ONE_THREAD, DITTO_WIRE_ENDS_TRANSFERS, or both, combined by | */

    /** The name of the wire, for descriptions: "Open MPI 4.1.4". */
    const char *name;

    /** The first argument of the functions. */
    void *user;

    /** Begins to send a message to another host. */
    ditto_status (*send)(void *user, uint32_t to, uint32_t channel, const void *data, size_t bytes,
                         uint64_t ticket);

    /** Begins to receive a message from another host, of at most `capacity` bytes. A longer message ends in
     *  an event with DITTO_ERR_RANGE. */
    ditto_status (*receive)(void *user, uint32_t from, uint32_t channel, void *data, size_t capacity,
                            uint64_t ticket);

    /** Withdraws a receive. Returns DITTO_OK if it has taken no message and will not finish, or DITTO_PENDING
     *  if it has taken a message and will finish, or has finished. */
    ditto_status (*cancel)(void *user, uint64_t ticket);

    /** Does what is necessary for messages to move, and stores up to `capacity` events in `events` and their
     *  number in *count. Every send and receive has one event, unless it was cancelled. */
    ditto_status (*progress)(void *user, ditto_wire_event *events, size_t capacity, size_t *count);

    /** Frees the wire. No send or receive is unfinished, unless the wire has DITTO_WIRE_ENDS_TRANSFERS. May
     *  be NULL. */
    void (*destroy)(void *user);
} ditto_wire;

/** Initial value of ditto_wire. */
#define DITTO_WIRE_INIT DITTO_OPTIONS_INIT(ditto_wire)

/** Options of ditto_cluster_create. Start from DITTO_CLUSTER_OPTIONS_INIT. */
typedef struct ditto_cluster_options {
    size_t struct_size; /**< set by DITTO_CLUSTER_OPTIONS_INIT */

    /** Milliseconds that ditto_cluster_create waits for the other hosts. 0 means 60000, and DITTO_FOREVER
     *  means that there is no limit. */
    uint32_t timeout_ms;

    /** The name of this host in messages and descriptions. NULL means the name that the system gives it. */
    const char *name;

    /** Whether the hosts also connect by TCP, so that the end of a process is noticed at once. OFF: it is
     *  only noticed when a time limit has passed. A process that does not run for 10 seconds, while host 0
     *  does, counts as ended. All hosts give the same value. If connections are not possible, the cluster
     *  works without them (ditto_cluster_properties). */
    ditto_switch life_line;
} ditto_cluster_options;

/** Initial value of ditto_cluster_options. */
#define DITTO_CLUSTER_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_cluster_options)

/** Makes a cluster. Every host calls it. The hosts tell each other their names, and compare the version of
 *  ditto and the byte order.
 *
 *  @param wire     the wire. The struct is copied
 *  @param options  NULL for the defaults
 *  @param out      [out] the cluster; set only on DITTO_OK
 *  @retval DITTO_OK             out is set
 *  @retval DITTO_ERR_INVALID    an argument or a function of the wire is NULL, or a struct_size is not set;
 *                               hosts give different values of life_line
 *  @retval DITTO_ERR_RANGE      the wire's num_hosts or host is out of range
 *  @retval DITTO_ERR_UNSUPPORTED  a host has another version of ditto, another byte order, or another number
 *                               of hosts; the message names it. All hosts that were reached return this error
 *  @retval DITTO_ERR_TIMED_OUT  a host has not answered; the message names the hosts that have not
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for the cluster, or a host has none for its headers; the
 *                               message names it
 *  @retval DITTO_ERR_SYSTEM     a host has no file descriptor left for the life line; the message names it
 *  @return or an error of the wire
 *  @par Thread safety
 *  With DITTO_WIRE_ONE_THREAD, only the calling thread may use the cluster and its strategies in
 *  cross-replica context.
 *  @par Ownership
 *  On DITTO_OK the cluster owns the wire, and destroys it. On failure the wire stays the caller's.
 *  @par Cost
 *  Four messages to and from each other host, a TCP connection of each host with host 0, and a thread that
 *  sleeps. Host 0 listens until all hosts are connected, at the addresses by which they reach it. The ends of
 *  a connection show each other random tokens, which went over the wire before. */
DITTO_API DITTO_NODISCARD ditto_status ditto_cluster_create(const ditto_wire *wire,
                                                            const ditto_cluster_options *options,
                                                            ditto_cluster **out);

/** Destroys a cluster.
 *
 *  @param cluster  the cluster; NULL is allowed
 *  @retval DITTO_OK            the cluster and its wire are destroyed
 *  @retval DITTO_ERR_BUSY      a strategy uses the cluster: destroy it first. The cluster stays
 *  @retval DITTO_ERR_INVALID   over MPI: MPI was finalized before. The cluster is destroyed, but its memory
 *                              is not freed
 *  @retval DITTO_ERR_POISONED  a message to or from a host that did not answer is unfinished. The cluster is
 *                              destroyed, but the memory of the message and the wire are not freed. A wire
 *                              with DITTO_WIRE_ENDS_TRANSFERS is freed, and the call returns DITTO_OK
 *  @par Cost
 *  Tells the other hosts, closes the connection of the life line, and ends its thread. */
DITTO_API DITTO_NODISCARD ditto_status ditto_cluster_destroy(ditto_cluster *cluster);

/** What a cluster is. */
typedef struct ditto_cluster_properties {
    size_t struct_size; /**< set by DITTO_CLUSTER_PROPERTIES_INIT */
    uint32_t num_hosts; /**< number of hosts */
    uint32_t host;      /**< number of this host, from 0. Host 0 is TensorFlow's chief */

    /** Array of num_hosts names, valid as long as the cluster. */
    const char *const *names;

    /** 1 if the end of a process is noticed at once (ditto_cluster_options.life_line), otherwise 0. */
    int has_life_line;
} ditto_cluster_properties;

/** Initial value of ditto_cluster_properties. */
#define DITTO_CLUSTER_PROPERTIES_INIT DITTO_OPTIONS_INIT(ditto_cluster_properties)

/** Says what a cluster is.
 *
 *  @param cluster  the cluster; NULL means one host without a name
 *  @param out      [out] start from DITTO_CLUSTER_PROPERTIES_INIT
 *  @retval DITTO_OK           out is set
 *  @retval DITTO_ERR_INVALID  out is NULL, or its struct_size is not set
 *  @par Thread safety
 *  Any thread may call it. */
DITTO_API DITTO_NODISCARD ditto_status ditto_cluster_info(const ditto_cluster *cluster,
                                                          ditto_cluster_properties *out);

/** Returns this host's share of a number of replicas, as even as possible. The first hosts have one replica
 *  more if the number is not a multiple of the number of hosts.
 *
 *  @param cluster       the cluster; NULL means one host
 *  @param num_replicas  number of replicas of all hosts
 *  @return the number of replicas for ditto_strategy_options.num_replicas on this host; 0 if there are more
 *          hosts than replicas
 *  @par Thread safety
 *  Any thread may call it. */
DITTO_API uint32_t ditto_cluster_share(const ditto_cluster *cluster, uint32_t num_replicas);

/** @} */

DITTO_END
#endif
