/* src/sync/sync.h - the door of sync: what vars and strategy may use of it. */
#ifndef DTI_SYNC_H
#define DTI_SYNC_H

#include <ditto/collective.h>

#include "replicas/replicas.h"

struct dti_sync; /* a team's collectives */

/* -- Cross context, no run going on; the caller is between dti_cross_enter and dti_cross_leave -- */
/* Sets team->sync. NO_MEMORY; UNSUPPORTED, RANGE: kernels. */
ditto_status dti_sync_create(struct dti_team *team, ditto_kernels kernels);
void dti_sync_renew(struct dti_team *team); /* after a run that was stopped, before the next */

/* -- Any thread, no run going on -- */
void dti_sync_destroy(struct dti_team *team); /* NULL state is allowed */

/* -- The replica's own thread: collective -- */

ditto_status dti_barrier(struct dti_replica *self, const char *name, struct dti_deadline *deadline);

ditto_status dti_all_reduce(struct dti_replica *self, const void *src, void *dst, size_t count, ditto_dtype dtype,
                            ditto_op op, struct dti_deadline *deadline);

/* Where results go that are not the callers' buffers. The owner of an index range calls store once for each of its tiles,
 * on its own thread: every index of [0, count) is stored exactly once in the whole strategy. */
struct dti_sink {
    void (*store)(void *context, size_t first, size_t count, const void *reduced);
    void *context;
};
/* Reduces src over all replicas into the sink; when it returns DITTO_OK all stores have happened and are seen. `name` and
 * `object` (a variable's own name, or NULL) say whose operation it is. op 0: no reduction, replica 0's values are stored. */
ditto_status dti_reduce_into(struct dti_replica *self, const void *src, size_t count, ditto_dtype dtype, ditto_op op,
                             const char *name, const char *object, const struct dti_sink *sink,
                             struct dti_deadline *deadline);

/* -- Pure: any thread, the caller in the default floating-point environment -- */

/* out = left op right, elementwise; `out` may be either. */
void dti_combine_two(ditto_dtype dtype, ditto_op op, void *out, const void *left, const void *right, size_t count);
/* dst = the tree over source[0..n), by the calling thread alone. dst overlaps no source. NO_MEMORY. */
ditto_status dti_reduce_here(ditto_dtype dtype, ditto_op op, const void *const *source, uint32_t n, size_t count,
                             void *dst);

/* INVALID, RANGE or UNSUPPORTED when dtype and op do not go together in a collective. */
ditto_status dti_reduction_check(ditto_dtype dtype, ditto_op op);

#endif
