/* src/sync/hosts/gather.h - gives data of each host to all hosts.
 *
 * This is how hosts share what is not a row of elements: counts, rows with indices, shapes, contents of
 * variables. Small data ride behind the headers. Larger data follow in messages from
 * each host to each other host. */
#ifndef DTI_SYNC_HOSTS_GATHER_H
#define DTI_SYNC_HOSTS_GATHER_H

#include "sync/hosts/hosts.h"

/* Behind a header stands the number of bytes, and then the data at a multiple of 16 bytes. */
#define DTI_RIDING_OFFSET 16

/* The data of one host, at a multiple of 16 bytes. */
struct dti_gathered {
    const unsigned char *data;
    size_t bytes;
};

/* The driver: exchanges headers and then data. `own` may change after the call. If the verdict is EQUAL, *out
 * is what each host has given, which stays valid until the next exchange of headers. If it is LATE, late[h]
 * is set for each host that has not answered. The other verdicts are those of dti_headers_exchange. FAILED
 * also means that there was no memory. The error is then in the record of this thread. */
enum dti_verdict dti_hosts_gather(struct dti_hosts *hosts, struct dti_intent *intent, const void *own,
                                  size_t bytes, struct dti_limits *limits, bool *late,
                                  const struct dti_gathered **out);

/* -- In a collective -- */

/* The driver, between two meetings of the replicas of this host: the same with the header of the call. An
 * error stops the run. */
ditto_status dti_hosts_gather_call(const struct dti_hosts_call *c, const void *own, size_t bytes,
                                   const struct dti_gathered **out);

/* -- In a cross call -- */

/* A cross call that all hosts make. */
struct dti_cross_request {
    const char *name;
    const char *object; /* the name of the variable or dataset, or NULL */
    uint64_t digest;    /* of what must be equal on all hosts */
};

/* Compares the calls of all hosts, and gives the data of each to all. `own` may be NULL if bytes is 0. Fails
 * with CONTEXT on a thread that may not use the wire, with DIVERGED if the calls differ, with TIMED_OUT, with
 * NO_MEMORY, and with the error of a host that has failed. The data stay valid until the next exchange of
 * headers. */
DTI_COMPANION ditto_status dti_cross_gather(struct dti_team *team, const struct dti_cross_request *request,
                                            const void *own, size_t bytes, const struct dti_gathered **out);

/* Returns true if the team has several hosts. Any thread. */
DTI_COMPANION bool dti_cross_has_hosts(const struct dti_team *team);
/* Returns the number of hosts, and that of this one. Any thread. */
DTI_COMPANION uint32_t dti_cross_hosts(const struct dti_team *team);
DTI_COMPANION uint32_t dti_cross_host(const struct dti_team *team);

/* Returns the epoch of the team's cluster, or 0 if it has one host. */
DTI_COMPANION uint32_t dti_cross_epoch(const struct dti_team *team);
/* Ends a cross call that began in `epoch` with a status of this host. If it has failed outside of a run, and
 * the other hosts have not been told, tells them, and returns the error of all hosts. */
DTI_COMPANION ditto_status dti_cross_tell(struct dti_team *team, uint32_t epoch, ditto_status status);

/* Ends a cross call in which each host has done something that may fail. Returns the status of this host, or
 * the error of another one. */
DTI_COMPANION ditto_status dti_cross_agree(struct dti_team *team, const char *name, ditto_status status);

/* Compares a cross call, in which no data move. Returns DITTO_OK at once if the team has one host. */
ditto_status dti_cross_compare(struct dti_team *team, const char *name, const char *object, uint64_t digest);

/* The same for a call whose argument must have the same bytes on all hosts. */
ditto_status dti_cross_compare_bytes(struct dti_team *team, const char *name, const char *object,
                                     const void *data, size_t bytes);

#endif
