/* src/sync/hosts/gather.h - gives data of each host to all hosts.
 *
 * This is how hosts share what is not a row of elements: counts, rows with indices, shapes, contents of
 * variables. Small data ride behind the headers. Larger data follow in messages from
 * each host to each other host. */
#ifndef DTI_SYNC_HOSTS_GATHER_H
#define DTI_SYNC_HOSTS_GATHER_H

#include "sync/hosts/cross.h"
#include "sync/hosts/hosts.h"

/* Behind a header stands the number of bytes, and then the data at a multiple of 16 bytes. */
#define DTI_RIDING_OFFSET 16

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

#endif
