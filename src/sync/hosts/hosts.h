/* src/sync/hosts/hosts.h - the collectives of a strategy over several hosts.
 *
 * Every collective begins with a meeting of the replicas of this host, as without a cluster, or was started
 * by them (started.h). Then the driver, the thread that may use the wire, exchanges headers with the other
 * hosts (hosts/header.h), and the calls of all hosts are compared. A small message rides behind the headers
 * (small.c). A large one follows in blocks (large.c). A second meeting ends the collective on this host.
 *
 * A host combines its own replicas first. It passes on its *parts*, the largest complete subtrees of the tree
 * over all replicas that lie in its range, so the bits of the result are those of one host (plans/volume.h).
 * */
#ifndef DTI_SYNC_HOSTS_H
#define DTI_SYNC_HOSTS_H

#include "cluster/header.h"
#include "sync/hosts/failure_notices.h"
#include "sync/algorithms/choose_algorithm.h"

struct dti_flow;
struct dti_segment;
struct dti_target;
struct dti_large_buffers;  /* large.c */
struct dti_gathered;       /* gather.h */
struct dti_transfers;      /* transfers.h */
struct dti_hosts_exchange; /* exchange_on_hosts.c */

struct dti_hosts_call;

/* A function that a replica posts for the caller of the run (driver.c). */
struct dti_hosts_task {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t state;

    /* The replica writes these three, and the caller the other two. `state` publishes them. */
    const struct dti_hosts_call *call;
    ditto_status (*work)(const struct dti_hosts_call *call);
    const char *function; /* the public function that the replica is in */
    ditto_status status;
    ditto_error error;
};

/* The share of a strategy that this host has, and what it needs to work with the others. */
struct dti_hosts {
    ditto_cluster *cluster;

    /* The replicas of all hosts. */
    struct dti_ranges ranges;
    uint32_t first;         /* of this host */
    uint32_t most_replicas; /* of one host */

    /* The parts of all hosts, in ascending order. Those of host h are [part_start[h], part_start[h + 1]). */
    struct dti_span *part;
    uint32_t *part_start; /* [hosts + 1] */

    /* The most parts of any block of hosts that combine what they pass on, or 0 if hosts do not
     * (combined.c). */
    uint32_t most_block_parts;

    /* [hosts] What the driver reads from the headers of the hosts. */
    const unsigned char **data;

    /* [slots][2][parts] What a thread combines: the values, and their place in a tile. There is a slot for
     * each replica of this host, and one for a caller of runs that only waits (started.h). */
    struct dti_tree_value *values;

    /* [slots][DTI_LARGE_OFFSETS(hosts)] What a thread computes for the blocks of large.c. */
    size_t *offsets;

    /* [DTI_SMALL_ROW_BYTES] The results of a small collective. The driver writes them between the two
     * meetings, and the replicas read them before they arrive at their next meeting, and before they start an
     * operation. The results of a started operation are read by the driver itself. */
    unsigned char *small_results;

    /* NULL until a large collective needs them. */
    struct dti_large_buffers *large;

    /* NULL until hosts gather data (gather.h). [hosts] */
    struct dti_gathered *gathered;
    struct dti_transfers *gathering;

    /* While the first strategy of the cluster is made (measure_hosts.c). Otherwise NULL. */
    struct dti_transfers *measuring;
    struct dti_measured_host *measured;
    bool is_measured; /* by one of the hosts at least */

    /* NULL until replicas exchange parts (exchange_on_hosts.c). */
    struct dti_hosts_exchange *exchange;

    /* The limit for the end of a run, and for cross calls. */
    uint32_t timeout_ms;

    bool agrees; /* on the end of each run */

    struct dti_team *team;
    struct dti_failure_notices failures;

    struct dti_hosts_task task;

    /* The level of runs whose replicas have started operations last, for a caller that only waits. */
    _Atomic(struct dti_sync *) level;
};

/* Results of a small collective: those of one all-gather of the largest small messages of all replicas, or
 * less. */
#define DTI_SMALL_ROW_BYTES ((size_t)256 << 10)

/* Three offsets of each host, and of the end, in each of two blocks (large.c). */
#define DTI_LARGE_OFFSETS(hosts) (6 * ((hosts) + 1))

static inline uint32_t dti_hosts_count(const struct dti_hosts *hosts)
{
    return hosts->ranges.hosts;
}
static inline uint32_t dti_hosts_own(const struct dti_hosts *hosts)
{
    return hosts->cluster->wire.host;
}
static inline struct dti_tree_value *dti_hosts_values(const struct dti_hosts *hosts, uint32_t slot)
{
    return hosts->values + (size_t)2 * slot * hosts->part_start[hosts->ranges.hosts];
}
static inline uint32_t dti_hosts_parts(const struct dti_hosts *hosts, uint32_t host)
{
    return hosts->part_start[host + 1] - hosts->part_start[host];
}

/* -- The thread that made the cluster, no run is active -- */

/* What all hosts of a strategy must agree on. */
struct dti_hosts_request {
    uint32_t replicas;     /* of this host */
    uint32_t order_blocks; /* as given */
    uint32_t timeout_ms;
    bool agrees;      /* on the end of each run */
    bool is_measured; /* this host has measured the cluster. Set by dti_hosts_make */
    uint64_t options; /* a hash of all other options that must be equal */
};

/* Makes the state. All hosts call it with the same options, and learn how many replicas each has. If `status`
 * is an error of this host, which is in the record of this thread, all hosts return it. Otherwise fails on
 * all hosts with INVALID if options differ, with RANGE if there are too many replicas or order_blocks is too
 * large, with BUSY if another strategy uses the cluster, and otherwise as dti_headers_exchange does, after
 * the epoch has ended. */
ditto_status dti_hosts_make(ditto_cluster *cluster, const struct dti_hosts_request *request,
                            ditto_status status, struct dti_hosts **out);
/* Called when the team exists: its caller works for the first replica where it waits. */
void dti_hosts_attach(struct dti_hosts *hosts, struct dti_team *team);

/* Lets go of the cluster, which another strategy may then use. Called when the memory of the strategy is kept
 * because a replica may still use it. `hosts` may be NULL. */
void dti_hosts_leave(struct dti_hosts *hosts);
/* Frees the state. `hosts` may be NULL. */
void dti_hosts_free(struct dti_hosts *hosts);

/* Ends the epoch with the error of this thread's record, outside of a run. Returns the error of all hosts,
 * which is then in the record. */
ditto_status dti_hosts_close(ditto_cluster *cluster, uint32_t timeout_ms);

/* Records the error of a verdict that is not EQUAL, outside of a run. `call` describes the call. */
ditto_status dti_hosts_record(const struct dti_hosts *hosts, enum dti_verdict verdict, const char *call);

/* Exchanges headers outside of a run. The payload has been written. After an error the epoch has ended, and
 * the error of all hosts is in the record of this thread. */
ditto_status dti_hosts_exchange(const struct dti_hosts *hosts, const struct dti_intent *intent);

/* measure_hosts.c. Allocates what measuring needs, unless the cluster has been measured. */
ditto_status dti_hosts_prepare_measuring(struct dti_hosts *hosts);
/* All hosts call it. Fails as dti_hosts_exchange does. */
ditto_status dti_hosts_measure(struct dti_hosts *hosts);

/* Records TIMED_OUT: host h did not answer if late[h] is set. */
ditto_status dti_hosts_record_late(const struct dti_hosts *hosts, const bool *late, const char *call);

/* Agrees with all hosts on the end of the creation of a strategy, of a run, or of a strategy, which has ended
 * on this host with `status`. Returns the status of all hosts: the error of the lowest host that has failed,
 * or the positive status of the lowest host that has one, or DITTO_OK. An error is in the record of this
 * thread. If a host does not answer, returns its own error or TIMED_OUT, and the cluster is poisoned. */
ditto_status dti_hosts_agree(struct dti_hosts *hosts, const char *what, ditto_status status);

/* The same for the end of a run. Each host adds a note of `bytes` bytes, which all hosts read afterwards. If
 * the hosts do not agree on the end of runs, returns the status of this host, and its error after all hosts
 * have been told of it. */
#define DTI_HOSTS_NOTE_BYTES 2048 /* at most */
ditto_status dti_hosts_end_run(struct dti_hosts *hosts, ditto_status status, const void *note, size_t bytes);
/* Returns the note of a host, which is aligned for every type, and its bytes. */
const void *dti_hosts_note(const struct dti_hosts *hosts, uint32_t host, size_t *bytes);

/* Writes which hosts there are, and how much large messages send between them. */
struct dti_text;
void dti_hosts_describe(const struct dti_hosts *hosts, const struct dti_tree *tree, struct dti_text *text);

void dti_hosts_exchange_free(ditto_cluster *cluster, struct dti_hosts_exchange *exchange);

/* -- for the files of this folder -- */

/* A collective, as one replica sees it. */
struct dti_hosts_call {
    struct dti_replica *self;
    struct dti_hosts *hosts;
    const struct dti_call *call;
    struct dti_flow *flow;
    uint64_t number; /* of the collective in the run, for messages */
    uint32_t timeout_ms;
    void *step;       /* of large.c */
    uint32_t slot;    /* whose values and offsets the thread uses */
    uint64_t started; /* the number of a started operation (started.h), or 0 */
};

/* Describes a collective of this replica, whose first meeting is over. */
void dti_hosts_call_begin(struct dti_hosts_call *c, struct dti_replica *self, const struct dti_call *call,
                          const struct dti_deadline *deadline);
ditto_status dti_hosts_execute(struct dti_replica *self, const struct dti_prepared_call *prepared,
                               const struct dti_target *target, struct dti_deadline *deadline);

/* Returns the host that has a replica. */
static inline uint32_t dti_hosts_of(const struct dti_hosts *hosts, uint32_t replica)
{
    return dti_ranges_host_of(&hosts->ranges, replica);
}

/* Returns the bytes of one element of a part: those of a single replica are not widened. */
static inline size_t dti_part_bytes(struct dti_span part, const struct dti_reduction *r)
{
    return part.end - part.first == 1 ? r->element_bytes : r->accumulator_bytes;
}

/* Combines the own parts of elements [first, first + count) of a segment, and stores those of part p in
 * out[p]. A part of one replica is left out if its out[p] is NULL. The calling thread has access to the
 * sources of this host. */
void dti_hosts_combine_parts(const struct dti_hosts_call *c, const struct dti_segment *segment, size_t first,
                             size_t count, unsigned char *const *out);

/* A dti_header_combine_fn for headers without payloads. */
size_t dti_hosts_combine_nothing(void *context, uint32_t first, uint32_t hosts, const void *low,
                                 const void *high, void *out);

/* Returns the bytes that the data of a segment take behind a header, and among the results. */
static inline size_t dti_small_bytes(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* dst = `count` elements of the parts of all hosts, combined and rounded. value[k].data is part k of all
 * hosts. */
void dti_hosts_finish(const struct dti_hosts_call *c, size_t count, const struct dti_tree_value *value,
                      unsigned char *dst);

/* The header of a call, and the limits of a wait for other hosts in it. */
struct dti_intent dti_hosts_intent(const struct dti_hosts_call *c);
struct dti_limits dti_hosts_limits(const struct dti_hosts_call *c);

/* The driver: exchanges headers. The payload has been written to dti_header_out. Fails with the error of this
 * call on all hosts, and stops the run. `combine`, whose context is the call, may be NULL (header.h). */
ditto_status dti_hosts_begin(const struct dti_hosts_call *c, size_t payload_bytes,
                             dti_header_combine_fn *combine);

/* Stops the run because of a verdict that is not EQUAL. If it is LATE, late[h] is set for the hosts that are.
 * Returns the error. */
ditto_status dti_hosts_fail_verdict(const struct dti_hosts_call *c, enum dti_verdict verdict,
                                    const struct dti_limits *limits, const bool *late);

/* The driver: stops the run because a wait on the wire has ended in `end`, which is not LATE, or because
 * another host has failed. Returns the error. */
ditto_status dti_hosts_fail_wait(const struct dti_hosts_call *c, enum dti_wait_end end);
/* The same if the limit of the wait has passed. late[h] is set if the wait was for host h. */
ditto_status dti_hosts_fail_late(const struct dti_hosts_call *c, const struct dti_limits *limits,
                                 const bool *late);

/* small.c. Returns true if a call is small: the result depends on the call and on the hosts only. */
bool dti_hosts_is_small(const struct dti_hosts_call *c);
/* The driver, between the two meetings, or in a started operation. */
ditto_status dti_hosts_small(const struct dti_hosts_call *c);
/* Each replica, after the second meeting. */
void dti_hosts_small_results(const struct dti_hosts_call *c);

/* combined.c. Returns the most parts of a block of hosts, if hosts can combine what they pass on, otherwise
 * 0. */
uint32_t dti_hosts_block_parts(const struct dti_hosts *hosts, const struct dti_tree *tree);
/* Returns true if hosts combine the small messages of a call on their way: the result depends on the call and
 * on the hosts only. `most` is the most bytes behind a header. */
bool dti_hosts_combines(const struct dti_hosts_call *c, size_t most);
/* A dti_header_combine_fn. The context is the call. */
size_t dti_hosts_combine_blocks(void *context, uint32_t first, uint32_t blocks, const void *low,
                                const void *high, void *out);
/* Writes the results of all segments from what all hosts have combined. */
void dti_hosts_combined_results(const struct dti_hosts_call *c, const unsigned char *data,
                                unsigned char *result);

/* exchange_on_hosts.c. The driver carries out a started operation that moves parts. */
ditto_status dti_hosts_move_started(const struct dti_hosts_call *c);

/* large.c. Every replica, between the first and the last meeting, or the driver in a started operation. */
ditto_status dti_hosts_large(const struct dti_hosts_call *c);
void dti_large_buffers_free(struct dti_large_buffers *buffers);
void dti_large_buffers_keep(ditto_cluster *cluster, struct dti_large_buffers *buffers);

/* Meets the other replicas of this host. Those that wait for the driver need no limit, because the driver has
 * one, and stops the run when it has passed. The first replica may wait for another one that computes, so it
 * has the limit of the call. */
ditto_status dti_hosts_meet(const struct dti_hosts_call *c);

/* Calls `work` on the thread that may drive the wire. Every replica calls this function; all but the first
 * one of the host return at once. */
ditto_status dti_hosts_drive(const struct dti_hosts_call *c,
                             ditto_status (*work)(const struct dti_hosts_call *c));

#endif
