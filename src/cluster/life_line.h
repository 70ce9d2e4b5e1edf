/* src/cluster/life_line.h - notices that a process of the cluster has ended or does not run, and carries
 * short messages.  The hosts form a star of TCP connections with host 0 in the middle, beside the wire. On
 * each host one thread sleeps until a connection has news. If a process ends without taking leave, the system
 * closes its connection. A process that is stopped, or whose network is cut, sends nothing any more, also no
 * beats. Host 0 alone decides that another host is lost: at the end of its connection at once, and otherwise
 * when it was silent for dti_life_line_silence_ms, of which host 0 counts only the time in which it ran
 * itself. It tells all hosts, also the one that is lost. A host whose connection with host 0 ends has lost
 * host 0. The thread then records the loss, and stops the run of this host, so that also replicas that wait
 * for each other learn of it while no thread is driving the wire.  A host that is slow is not silent.
 * Deadlines are for such hosts. If connections cannot be made, because a firewall forbids them, the cluster
 * works without a life line.  Host 0 listens only until all hosts have connected, at the addresses by which
 * they reach it. The two ends of a connection show each other random tokens that went over the wire (star.c).
 * */
#ifndef DTI_LIFE_LINE_H
#define DTI_LIFE_LINE_H

#include <ditto/status.h>

#include <stdbool.h>
#include <stdint.h>

struct ditto_cluster;
struct dti_life_line;

/* After how many milliseconds of silence a host is lost. Tests lower it, before any cluster is made. */
extern uint32_t dti_life_line_silence_ms;

/* The subject of notices about failures (sync/hosts/failure_notices.c). Other subjects are greater. */
#define DTI_SUBJECT_FAILURE 0

/* A short message to all other hosts, beside the wire. It arrives also while no thread drives the wire. */
struct dti_notice {
    uint64_t subject; /* what it is about: the same number on all hosts */
    uint32_t kind;    /* of a notice about this subject */
    uint32_t from;    /* the host that sends it, which dti_life_line_tell fills in */
    uint64_t word[3]; /* what the subject makes of them */
};

/* Gets the notices about a subject. */
struct dti_listener {
    uint64_t subject;

    /* Called by the thread of the life line. It may send notices, and must not wait. */
    void (*hear)(struct dti_listener *listener, const struct dti_notice *notice);
    struct dti_listener *next;
};

/* Connects the hosts. Every host calls it, when headers can be exchanged. Returns DITTO_OK also if there will
 * be no life line. Fails as dti_star_connect does. */
ditto_status dti_life_line_make(struct ditto_cluster *cluster, uint32_t timeout_ms);

/* Takes leave of the other hosts, and ends the thread. `number` is that of the last exchange. */
void dti_life_line_end(struct ditto_cluster *cluster, uint64_t number);

/* Returns true if a host is lost. Any thread. */
bool dti_life_line_has_lost(const struct ditto_cluster *cluster);

/* Records that a host is lost, and which. Returns DITTO_ERR_LOST. Any thread. */
ditto_status dti_life_line_fail(const struct ditto_cluster *cluster);

/* Called again and again by a host that waits for headers of exchange `number` of this epoch. If another host
 * has left before this exchange, its header never comes: records that the host is lost. */
void dti_life_line_await(const struct ditto_cluster *cluster, uint64_t number);

/* Sets what is called, on the thread of the life line, when a host is lost. The error is in the record of
 * that thread. The function must not wait. After a call, the function that was set before is not called any
 * more. NULL means nothing. */
void dti_life_line_watch(struct ditto_cluster *cluster, void (*stop)(void *argument), void *argument);

/* Sets which replicas the hosts have, while no other thread describes a host. */
struct dti_ranges;
void dti_life_line_set_ranges(struct ditto_cluster *cluster, const struct dti_ranges *ranges);

/* Sends a notice to all other hosts. Those of one host arrive in order. A host without a listener for the
 * subject drops it. Never waits. Any thread, while there is a life line. */
void dti_life_line_tell(struct ditto_cluster *cluster, const struct dti_notice *notice);

/* Begin and end to listen. After dti_life_line_ignore, `hear` is not called any more. Any thread that is not
 * in `hear`, while there is a life line. */
void dti_life_line_listen(struct ditto_cluster *cluster, struct dti_listener *listener);
void dti_life_line_ignore(struct ditto_cluster *cluster, struct dti_listener *listener);

/* Closes the connections without taking leave, as if the process had ended. Returns when they are closed. Not
 * on the thread of the life line. */
void dti_life_line_cut(struct ditto_cluster *cluster);

/* The thread of the life line neither hears nor says anything for some time, as if the process were
 * suspended. */
void dti_life_line_suspend(struct ditto_cluster *cluster, uint32_t ms);

#endif
