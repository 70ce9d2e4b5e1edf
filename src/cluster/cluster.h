/* src/cluster/cluster.h - the hosts of a cluster, and messages between them.
 *
 * The thread that drives the wire is called the driver. All functions here belong to it, unless their comment
 * says otherwise. They never block longer than the limits that they are given.
 *
 * Channel 0 carries headers (header.h), one after the other for the whole life of the cluster. The data of
 * collectives is on a channel that depends on the epoch. An epoch ends when a run is stopped: then each host
 * tells the others how many data messages it has sent them in it, and each takes exactly these. Therefore no
 * message of an old epoch is left on the wire when the next one begins (dti_cluster_drain). */
#ifndef DTI_CLUSTER_H
#define DTI_CLUSTER_H

#include <ditto/cluster.h>

#include "base/waiting/deadline.h"
#include "base/waiting/stop.h"
#include "cluster/ranges.h"

#include <pthread.h>

#define DTI_HOST_NAME_BYTES 64
#define DTI_NO_HOST         UINT32_MAX

/* A send or receive. Its address is its ticket on the wire, so it must stay where it is until it has
 * finished.
 */
struct dti_transfer {
    bool is_unfinished;
    bool is_send;
    ditto_status status; /* of a finished transfer */
    size_t bytes;        /* of the message of a finished receive */
    uint32_t host;       /* the other one */

    /* Only of a receive of data: how many receives of this host and epoch came before it, and its place in
     * the list of its host until it has finished. */
    uint64_t number;
    struct dti_transfer *next, **link;
};

/* The data messages that a host has sent to another one in an epoch. */
struct dti_sent {
    uint64_t messages;
    uint64_t most_bytes; /* of one message */
};

/* What this host has sent to another host, and received from it, in this epoch. Only data is counted. */
struct dti_traffic {
    struct dti_sent sent;
    uint64_t receives;            /* begun */
    struct dti_transfer *pending; /* receives that have not finished, in any order */

    /* The host did not send its last header when an epoch ended. */
    bool is_silent;
};

/* The beginning of memory that the wire may still use after its owner has failed. */
struct dti_kept {
    struct dti_kept *next;
};

/* What a host has measured (sync/hosts/measure_hosts.c). */
struct dti_measured_host {
    float header_us; /* until it has the headers of all hosts */
    float mb_per_s;  /* to the next host, while all hosts send */
};

struct dti_headers; /* header.h */

struct ditto_cluster {
    ditto_wire wire;
    pthread_t thread;                   /* that made the cluster */
    uint32_t process;                   /* that made it (fork.h) */
    char (*name)[DTI_HOST_NAME_BYTES];  /* [hosts] */
    const char **names;                 /* [hosts] the same */
    struct dti_traffic *traffic;        /* [hosts] */
    uint64_t unfinished;                /* transfers, */
    uint64_t unfinished_sends;          /* and how many of them are sends */
    uint64_t sent_messages, sent_bytes; /* in all, for descriptions and tests */
    _Atomic uint32_t epoch;             /* the driver changes it, and other threads compare it */
    struct dti_headers *headers;
    struct dti_life_line *life_line; /* NULL if there is none */

    /* The replicas of the strategy that uses the cluster. NULL if there is none. Set by
     * dti_life_line_set_ranges. */
    const struct dti_ranges *ranges;

    /* [hosts] NULL until the first strategy has measured it. */
    struct dti_measured_host *measured;

    /* Set when messages of a host that does not answer are outstanding. Nothing is sent any more, and the
     * memory of transfers is not freed. */
    bool is_poisoned;

    /* Memory that was not freed because of unfinished transfers, and the next cluster that was not. */
    struct dti_kept *kept;
    ditto_cluster *next_kept;
};

/* Any thread. relaxed: the number publishes nothing. */
static inline uint32_t dti_cluster_epoch(const ditto_cluster *cluster)
{
    return atomic_load_explicit(&cluster->epoch, memory_order_relaxed);
}

/* -- limits of a wait -- */

struct dti_limits {
    struct dti_deadline deadline;

    /* The wait also ends when this run stops. May be NULL. */
    const struct dti_stop *stop;

    /* The wait is also late when *given_up is `number`. May be NULL. */
    const _Atomic uint64_t *given_up;
    uint64_t number;
};

/* Returns true if the wait was given up. */
bool dti_is_given_up(const struct dti_limits *limits);

enum dti_wait_end {
    DTI_WAIT_HOLDS,   /* the condition holds */
    DTI_WAIT_LATE,    /* the deadline has passed */
    DTI_WAIT_STOPPED, /* the run has stopped */
    DTI_WAIT_FAILED,  /* the wire has failed, and the error is recorded */
};

/* Drives the wire until the condition holds. Polls without a pause for some time, then yields, then naps. */
enum dti_wait_end dti_cluster_wait(ditto_cluster *cluster, struct dti_limits *limits,
                                   bool (*condition)(void *argument), void *argument);

/* Drives the wire once. Fails if the wire fails. */
ditto_status dti_cluster_progress(ditto_cluster *cluster);

/* -- messages -- */

/* Begin to send to a host, and to receive from it. Fail if the wire does, if the cluster is poisoned, or in a
 * forked child process. */
ditto_status dti_send(ditto_cluster *cluster, uint32_t host, const void *data, size_t bytes,
                      struct dti_transfer *transfer);
ditto_status dti_receive(ditto_cluster *cluster, uint32_t host, void *data, size_t capacity,
                         struct dti_transfer *transfer);

/* The same for headers. */
ditto_status dti_send_header(ditto_cluster *cluster, uint32_t host, const void *data, size_t bytes,
                             struct dti_transfer *transfer);
ditto_status dti_receive_header(ditto_cluster *cluster, uint32_t host, void *data, size_t capacity,
                                struct dti_transfer *transfer);

/* Withdraws a receive if it has not finished. Returns true if it has finished now. */
bool dti_withdraw(ditto_cluster *cluster, struct dti_transfer *receive);

/* Takes all data messages of this epoch that hosts have sent: sent[h] is what host h has counted for this
 * host. Withdraws receives that will find no message, waits until all own sends have finished, and
 * begins the next epoch. Returns TIMED_OUT, and poisons the cluster, if a message does not come before the
 * limit. */
ditto_status dti_cluster_drain(ditto_cluster *cluster, const struct dti_sent *sent,
                               struct dti_limits *limits);

/* Keeps memory that the wire may still use, instead of freeing it. */
void dti_cluster_keep_memory(ditto_cluster *cluster, struct dti_kept *memory);

/* Nothing is sent any more, and the memory of unfinished transfers stays. */
void dti_cluster_poison(ditto_cluster *cluster);

/* Returns POISONED. The message names the hosts that are silent. */
ditto_status dti_fail_cluster_poisoned(const ditto_cluster *cluster);

/* Keeps a cluster reachable that is not freed. */
void dti_cluster_keep(ditto_cluster *cluster);

/* -- texts. Any thread -- */

struct dti_text;
/* Writes for example "host 2 (node17, replicas 64-95)". */
void dti_describe_host(const ditto_cluster *cluster, uint32_t host, struct dti_text *text);

/* Returns true in a child process of the one that made the cluster. The wire belongs to the parent. */
bool dti_cluster_is_forked(const ditto_cluster *cluster);

/* Checks that the calling thread may drive the wire. Returns CONTEXT if it may not, and FORKED in a child
 * process. */
ditto_status dti_cluster_check_thread(const ditto_cluster *cluster);
/* The same, and returns LOST if a host is lost, and POISONED if the cluster is poisoned. */
ditto_status dti_cluster_check_usable(const ditto_cluster *cluster);

#endif
