/* src/sync/hosts/cross.h - cross calls that all hosts of a strategy make together.
 *
 * A cross call over several hosts compares what the hosts were given (dti_cross_compare), or gives data of
 * each host to all (dti_cross_gather). The public function calls dti_cross_begin first, and ends with
 * dti_cross_tell. So an error of one host, wherever it happened in the call, is that of all. With one host
 * these functions do nothing, but dti_cross_gather may only be called if dti_cross_has_hosts. */
#ifndef DTI_SYNC_HOSTS_CROSS_H
#define DTI_SYNC_HOSTS_CROSS_H

#include <ditto/status.h>

#include "base/platform.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dti_team;

/* The data of one host, at a multiple of 16 bytes. */
struct dti_gathered {
    const unsigned char *data;
    size_t bytes;
};

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
/* Returns true if the team has several hosts, which agree on the end of each run. */
bool dti_cross_agrees_on_runs(const struct dti_team *team);
/* Returns the number of hosts, and that of this one. Any thread. */
uint32_t dti_cross_hosts(const struct dti_team *team);
DTI_COMPANION uint32_t dti_cross_host(const struct dti_team *team);

/* Returns the cluster of the hosts, or NULL if the team has one host. Any thread. */
struct ditto_cluster *dti_cross_cluster(const struct dti_team *team);
bool dti_cross_has_life_line(const struct dti_team *team);

/* Begins a cross call. Returns what dti_cross_tell needs. */
DTI_COMPANION uint64_t dti_cross_begin(const struct dti_team *team);
/* Returns a number that no other cross call has, and that is the same on all hosts after a call of
 * dti_cross_gather. Objects of one name are told apart by it. Returns 0 if the team has one host. */
uint64_t dti_cross_stamp(const struct dti_team *team);

/* Notes that a run inside a run has failed on this host, which the other hosts do not know. Even if its merge
 * function handles the error, the outer run ends with it on all hosts. */
void dti_cross_inner_run_failed(struct dti_team *team);

/* Ends a cross call with a status of this host. If it has failed outside of a run, and the other hosts
 * have not been told, tells them, and returns the error of all hosts. If it has failed in a merge function
 * after it has met the other hosts, the run ends with this error on all hosts. */
DTI_COMPANION ditto_status dti_cross_tell(struct dti_team *team, uint64_t begin, ditto_status status);

/* Ends a cross call in which each host has done something that may fail. Returns the status of this host, or
 * the error of another one. */
DTI_COMPANION ditto_status dti_cross_agree(struct dti_team *team, const char *name, ditto_status status);

/* Compares a cross call, in which no data move. Returns DITTO_OK at once if the team has one host. */
ditto_status dti_cross_compare(struct dti_team *team, const char *name, const char *object, uint64_t digest);

#endif
