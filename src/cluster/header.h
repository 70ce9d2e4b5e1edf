/* src/cluster/header.h - headers, by which all hosts compare their calls and agree on errors.
 *
 * Before hosts do anything together, the header of each reaches all others. A header says what the host is
 * about to do: a call, with its digest, or the end of a run. A small message of the call rides behind it.
 * Headers are numbered in each epoch, and number k of every host belongs to one exchange. Up to 16 hosts send
 * them to each other directly. On more hosts, a message carries the headers of several hosts, in log2 H steps
 * (header_steps.c).
 *
 * Every host gets the same headers of an exchange, so every host comes to the same verdict:
 *   all equal        The call begins, or the run has ended on all hosts.
 *   calls differ     DIVERGED on all hosts.
 *   one is the last  A host has failed, and all hosts fail with its error.
 * In steps, a host that fails in the middle of an exchange may end it on some hosts, while others have
 * finished it and fail in the next one.
 * A host that fails, in an exchange or at any other time, sends its *last* header of the epoch: its error,
 * and the number of data messages that it has sent. It then takes the headers of every other host until it
 * has its last one. When it has all of them it knows all errors, as every host does, and the error of the
 * lowest host that failed by itself is that of all. Then the data messages are drained, and the next epoch
 * begins.
 *
 * In steps, a host that waits does not hear of most hosts directly. After half of its time it sends a
 * *question*, which says who is in the exchange as far as it knows, to the hosts to which it sends steps.
 * Those that are in the exchange add what they know, and pass it on. So the error names the hosts that are
 * late, and not those that wait for them.
 *
 * Invariants  I1  For each other host there is at most one receive of a message at any time. The message with
 *                 number k is received into buffer k % 2, and its receive begins when number k - 1 has been
 *                 taken. So a last header is noticed also while a host waits for data
 *                 (dti_headers_end_early). In steps, a host receives only from those that send it steps,
 *                 until it ends the epoch. It learns of the last header of another host from one of
 *                 them, because every host that has heard of a last header sends its own one to all.
 *             I2  No host sends number k + 1 before it has taken number k of all hosts, unless number k + 1
 *                 is its last. So a host is ahead of another one by at most one header.
 *             I3  A host sends one last header in each epoch, directly to all hosts, and then nothing until
 *                 it has those of all hosts.
 * Edges       none: hosts share nothing but messages
 * Model       tests/model/hosts.pml, steps.pml */
#ifndef DTI_HEADER_H
#define DTI_HEADER_H

#include "cluster/cluster.h"

/* The most bytes that any number of hosts can send behind a header. */
#define DTI_HEADER_PAYLOAD 4096

/* Returns the most bytes behind a header of this cluster. They are more if there are few hosts, because each
 * host has two buffers for each other one. */
static inline size_t dti_header_payload(const ditto_cluster *cluster)
{
    size_t bytes = ((size_t)256 << 10) / cluster->wire.num_hosts / DTI_CACHE_LINE * DTI_CACHE_LINE;
    return bytes < DTI_HEADER_PAYLOAD ? DTI_HEADER_PAYLOAD : bytes < 65536 ? bytes : 65536;
}

/* The most bytes behind a header if hosts combine what they pass on (struct dti_intent). */
#define DTI_HEADER_COMBINED_PAYLOAD ((size_t)32 << 10)

enum dti_header_kind { DTI_HEADER_CALL = 1, DTI_HEADER_END, DTI_HEADER_LAST, DTI_HEADER_QUESTION };

/* Combines the payloads of two neighbouring blocks of hosts: `low` of the hosts [first, first + hosts), and
 * `high` of as many behind them. Writes the payload of both to `out`, and returns its bytes. */
typedef size_t dti_header_combine_fn(void *context, uint32_t first, uint32_t hosts, const void *low,
                                     const void *high, void *out);

/* What a host is about to do. */
struct dti_intent {
    enum dti_header_kind kind; /* CALL or END */

    /* Must be equal on all hosts. */
    uint64_t digest;

    /* The name of the call, its label or NULL, and its number in the run, for messages. */
    const char *name;
    const char *label;
    uint64_t number;

    /* The bytes that ride behind the header. The caller has written them to dti_header_out. */
    size_t payload_bytes;

    /* NULL if each host gets the payload of every other one. Otherwise hosts combine what they pass on, if
     * dti_headers_can_combine is true, and each gets the combined payload of all, whichever host it asks
     * dti_header_in for. The same on all hosts whose digest is the same. */
    dti_header_combine_fn *combine;
    void *context;
};

enum dti_verdict {
    DTI_HEADERS_EQUAL,

    /* Calls differ. The caller fails with DIVERGED. */
    DTI_HEADERS_DIFFER,

    /* A host has sent its last header. */
    DTI_HEADERS_LAST,

    DTI_HEADERS_LATE,    /* the deadline has passed */
    DTI_HEADERS_STOPPED, /* the run of this host has stopped */
    DTI_HEADERS_FAILED,  /* the wire has failed, and the error is recorded */
};

/* On more hosts than this, headers go in steps. Tests lower it, before any cluster is made. */
extern uint32_t dti_most_direct_hosts;

/* -- The driver -- */

/* Allocates the headers. Without memory for them, cluster->headers stays NULL. */
void dti_headers_allocate(ditto_cluster *cluster);
/* Begins to receive. Fails as the wire does. */
ditto_status dti_headers_begin(ditto_cluster *cluster);
/* Withdraws the receives, before the cluster is destroyed. Fails if the wire does. */
ditto_status dti_headers_withdraw(ditto_cluster *cluster);
void dti_headers_free(ditto_cluster *cluster);

/* Returns true if hosts can combine what they pass on: headers go in steps, and the hosts are a cube. */
bool dti_headers_can_combine(const ditto_cluster *cluster);

/* Returns where the payload of the next header is written: dti_header_payload bytes, or
 * DTI_HEADER_COMBINED_PAYLOAD if payloads are combined. It is aligned for every dtype. */
void *dti_header_out(ditto_cluster *cluster);

/* Sends the header of this host, and waits for those of all others. After any verdict but EQUAL, only
 * dti_headers_close can follow in this epoch, and every further exchange fails. */
enum dti_verdict dti_headers_exchange(ditto_cluster *cluster, const struct dti_intent *intent,
                                      struct dti_limits *limits);

/* After an exchange that was EQUAL, outside of a run: returns LAST if another host is known to have given it
 * up, because this one was late. That host has returned an error, so this one must too. */
enum dti_verdict dti_headers_confirm(ditto_cluster *cluster);

/* Returns the number of the last exchange, which is the same on all hosts after it. */
uint64_t dti_headers_number(const ditto_cluster *cluster);

/* Notes that a run of this host has ended, whose end the hosts do not agree on. Calls of later runs then
 * differ from those of this one. A new epoch begins with run 0 on all hosts. */
void dti_headers_run_ends(ditto_cluster *cluster);

/* Notes the error of this thread's record, with which a call over hosts has failed. Nothing can be agreed on
 * any more before the end of the epoch: if the program goes on nevertheless, each exchange fails with this
 * error. The first error counts. */
void dti_headers_break(ditto_cluster *cluster);

/* Returns true if nothing can be agreed on before the end of the epoch. */
bool dti_headers_are_broken(const ditto_cluster *cluster);

/* Returns the payload of a host's header in the last exchange. It stays until the next exchange begins. That
 * of this host is what it has sent, unless payloads were combined: then each is the combined payload of all.
 * */
const void *dti_header_in(const ditto_cluster *cluster, uint32_t host);

/* Returns true if a host has sent its last header after the last exchange, or if the wire has failed. A host
 * that waits for data polls this. */
bool dti_headers_end_early(ditto_cluster *cluster);

/* -- errors. Each of these functions records an error -- */

/* After DTI_HEADERS_DIFFER. `call` describes the call of this host. The record of the thread says that calls
 * differ; which ones is known after dti_headers_close. */
ditto_status dti_headers_fail_differ(ditto_cluster *cluster, const char *call);

/* After DTI_HEADERS_LAST or dti_headers_end_early: records the error of that host, or of the wire. */
ditto_status dti_headers_fail_last(ditto_cluster *cluster);

/* Notes that the error with which this host ends the epoch is that of `host`, whose last header has not come
 * yet. The error that all hosts agree on is then not the one of this host. */
void dti_headers_take_over(ditto_cluster *cluster, uint32_t host);

/* After DTI_HEADERS_LATE. Outside of a run: TIMED_OUT, naming the hosts whose header has not come. `call`
 * describes the call. */
ditto_status dti_headers_fail_late(ditto_cluster *cluster, const char *call, uint32_t timeout_ms);

/* Sets missing[h] if the header of host h in this exchange has not come. */
void dti_headers_list_missing(const ditto_cluster *cluster, bool *missing);
/* Writes the hosts h for which late[h] is set, with the calls in which they were last heard of. */
void dti_headers_describe(const ditto_cluster *cluster, const bool *late, struct dti_text *text);

/* -- the end of an epoch -- */

/* Ends the epoch with an error. Every host calls it, each with its own error, or with that of another host
 * that dti_headers_fail_last has recorded. Sends the last header, takes those of all hosts, drains the data,
 * and begins the next epoch. Then *error is the error of all hosts. Returns DITTO_OK. If a host does not
 * answer before the limit, returns POISONED, and the cluster is poisoned. Then *error is what the host has
 * said whose error this one has taken over, or else stays as it was. If this host has taken over an error,
 * the limit is doubled. */
ditto_status dti_headers_close(ditto_cluster *cluster, ditto_error *error, struct dti_limits *limits);

#endif
