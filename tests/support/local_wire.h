/* tests/support/local_wire.h - a wire between threads of one process, or between forked processes, each of
 * which plays a host.
 *
 * Messages wait for a random time before they can be received. Those of one pair of hosts and one channel
 * stay in order, and all others overtake each other. A send finishes at once, or when its message has been
 * received, as the seed decides. */
#ifndef DTI_LOCAL_WIRE_H
#define DTI_LOCAL_WIRE_H

#include <ditto/cluster.h>

struct local_network;

/* Makes a network. Messages are delayed by up to delay_us. */
struct local_network *local_network_make(uint32_t hosts, uint32_t delay_us, uint64_t seed);
/* The same between processes that the caller forks afterwards. Returns NULL if there is no memory. */
struct local_network *local_network_make_shared(uint32_t hosts, uint32_t delay_us, uint64_t seed);
void local_network_free(struct local_network *network);

/* Fills in the wire of one host. It is freed with the network. */
void local_network_wire(struct local_network *network, uint32_t host, ditto_wire *out);

/* From now on nothing that a host sends arrives, as if it had lost its network. */
void local_network_lose(struct local_network *network, uint32_t host);

/* Returns how many messages, or receives, no one has taken. */
size_t local_network_left(struct local_network *network);

#endif
