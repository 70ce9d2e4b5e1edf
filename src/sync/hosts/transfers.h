/* src/sync/hosts/transfers.h - messages of one call that are under way together, and the memory of their
 * data.
 *
 * The wire reads and writes this memory alone, and never a buffer of the user's, because a call may fail
 * while messages are under way. All functions here belong to the driver. */
#ifndef DTI_SYNC_HOSTS_TRANSFERS_H
#define DTI_SYNC_HOSTS_TRANSFERS_H

#include "cluster/header.h"

struct dti_transfers {
    struct dti_kept kept; /* first */
    struct dti_transfer *item;
    size_t count, most;
    unsigned char *memory; /* at a cache line */
    size_t capacity;
};

/* Returns the number of messages that carry so many bytes. */
size_t dti_transfers_of(size_t bytes);

/* Makes room for the messages and data of a call, when those of the last one have finished. Fails with
 * NO_MEMORY. */
ditto_status dti_transfers_reserve(struct dti_transfers *t, size_t bytes, size_t messages);

/* Begin to send data to a host, and to receive data from it, in as many messages as they need. The memory is
 * that of the transfers. */
ditto_status dti_transfers_send(ditto_cluster *cluster, struct dti_transfers *t, uint32_t host,
                                const unsigned char *data, size_t bytes);
ditto_status dti_transfers_receive(ditto_cluster *cluster, struct dti_transfers *t, uint32_t host,
                                   unsigned char *data, size_t bytes);

/* Waits until all messages have arrived. The verdict is EQUAL if they have, and otherwise as that of
 * dti_headers_exchange. If it is LATE, late[h] is set for each host whose messages are missing. */
enum dti_verdict dti_transfers_await(ditto_cluster *cluster, struct dti_transfers *t,
                                     struct dti_limits *limits, bool *late);

struct dti_transfers *dti_transfers_make(void);
/* Frees the transfers, which may be NULL. Those of a poisoned cluster are kept. */
void dti_transfers_free(ditto_cluster *cluster, struct dti_transfers *t);

#endif
