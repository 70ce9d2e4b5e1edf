/* src/sync/share.h - work on memory in cross context, by all replicas where that is faster, else by the calling thread. */
#ifndef DTI_SHARE_H
#define DTI_SHARE_H

#include "replicas/replicas.h"

/* Does items [first, end): any split of them gives the same result. In the default floating-point environment. */
typedef ditto_status dti_share_fn(size_t first, size_t end, void *context);

/* Cross context. All of `items`, each once; `bytes` are read or written in all, `grain` items stay together. The first
 * error. */
ditto_status dti_share(struct dti_team *team, size_t bytes, size_t items, size_t grain, dti_share_fn *work,
                       void *context);

#endif
