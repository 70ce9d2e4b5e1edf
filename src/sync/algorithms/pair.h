/* src/sync/algorithms/pair.h - an all-reduce of two replicas, between its two meetings. */
#ifndef DTI_PAIR_H
#define DTI_PAIR_H

#include "replicas/team/replica.h"
#include "sync/algorithms/choose_algorithm.h"

/* Combines `count` elements of two sources into one or two destinations in one pass. The kernel has no
 * `divide`, and does not widen if there is one destination. A destination may be a source, if there are two.
 * If `fetches` is true, destinations are fetched for writing before the sources are read. */
void dti_combine_pair(const struct dti_kernel *kernel, size_t element_bytes, char *const to[],
                      uint32_t destinations, const char *const from[2], size_t count, bool fetches);

/* Returns true if each of two replicas should compute the whole result for itself, and not one half for both.
 * Both compare the same addresses, so they decide the same. The calls are an all-reduce or a scan. */
bool dti_each_computes_whole(const struct dti_call *one, const struct dti_call *other,
                             const struct dti_kernel *kernel);

/* Computes this replica's part of the results of meeting `seq`. Returns false, without doing anything,
 * unless it is an all-reduce of two replicas with a kernel, without MEAN and streams, and without helpers
 * if it has at least helper_bytes. The replica has access to the other one's buffers. */
bool dti_all_reduce_pair(struct dti_replica *self, const struct dti_prepared_call *prepared, uint32_t seq);

#endif
