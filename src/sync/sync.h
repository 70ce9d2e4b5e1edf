/* src/sync/sync.h - the door of sync: what vars and strategy may use of it. */
#ifndef DTI_SYNC_H
#define DTI_SYNC_H

#include <ditto/collective.h>
#include <ditto/tuning.h>

#include "replicas/replicas.h"
#include "sync/meeting/access.h"
#include "sync/kernels/kernel.h"
#include "sync/kernels/tree.h"

struct dti_sync; /* a team's collectives */

struct dti_sync_options {
    ditto_kernels kernels;
    const ditto_tuning *tuning;    /* NULL: none given */
    ditto_reduce_options defaults; /* of calls that do not say: bytes_per_pack, implementation */
};

/* -- Cross context, no run going on; the caller is between dti_cross_enter and dti_cross_leave -- */
/* Sets team->sync. NO_MEMORY; UNSUPPORTED, RANGE: kernels; INVALID, RANGE: tuning. */
ditto_status dti_sync_create(struct dti_team *team, const struct dti_sync_options *options);
void dti_sync_renew(struct dti_team *team); /* of the run that was stopped, before the next on its level */
/* -- Replica 0's own thread, in a pause -- */
/* A run inside the run has collectives of its own, so that what is open outside stays as it is. Made when they are
 * first needed, and kept. NO_MEMORY. */
ditto_status dti_sync_make_inner(struct dti_team *team);

/* -- Any thread, no run going on -- */
void dti_sync_destroy(struct dti_team *team); /* NULL state is allowed */

/* -- The replica's own thread -- */
/* Around its function of a run inside a run. */
void dti_sync_go_in(struct dti_replica *self);
void dti_sync_go_out(struct dti_replica *self);
/* Called before the function of a run, the user's or the library's own. Collectives are then numbered from 1
 * again. */
void dti_sync_function_begins(struct dti_replica *self);
/* When its function has returned `status`: INVALID if it has left started operations open, unless it failed itself;
 * else `status`. Then the run is stopped, and when this returns no peer is at this replica's buffers. `serial`:
 * dti_error_serial before the function was called. */
ditto_status dti_sync_function_returned(struct dti_replica *self, ditto_status status, uint32_t serial);

/* -- The replica's own thread: collective -- */

/* A call that all replicas must make alike. */
struct dti_matched_call {
    const char *name;   /* the public function's */
    const char *object; /* the variable's own name, or NULL */
    size_t arguments;   /* how many tensors are given */
    uint64_t hash;      /* of everything else that must agree, such as the function */
};
/* A barrier that waits until all replicas have made the call, and compares their calls. */
ditto_status dti_sync_meet(struct dti_replica *self, const struct dti_matched_call *same,
                           struct dti_deadline *deadline);

/* An all-gather under a public function's name. It takes `count` elements of each replica, or counts[i] of
 * replica i. */
struct dti_gathering {
    const char *name;
    const void *src;
    void *dst;
    size_t count;
    const size_t *counts; /* [n], or NULL */
    ditto_dtype dtype;
    bool is_internal; /* the elements are the library's own, so messages leave their number out */
};
ditto_status dti_all_gather(ditto_replica *self, const struct dti_gathering *gathering,
                            const ditto_reduce_options *options);

/* Memory near a replica that results go to. */
struct dti_copy {
    uint32_t owner; /* the replica whose arena it lies in */
    void *data;
};
/* Where the results of one item go. */
struct dti_copy_set {
    uint32_t copies; /* 0: nowhere, `finish` keeps them */
    const struct dti_copy *copy;
};
/* Where results go that are not the callers' buffers. */
struct dti_target {
    /* What is done to each tile before it is written, once in the whole strategy for every element, on whatever replica's
     * thread: `tile` holds elements [first, first + count) of the item, and may be written; the result goes to `out`, which is the
     * tile, or where one copy lies. Where replica 0's values are taken as they are (op 0) it is done once in every group of
     * replicas, for the copies there. NULL: nothing. */
    void (*finish)(void *context, uint32_t replica, size_t item, size_t first, size_t count, void *tile,
                   void *out);
    void *context;
    const struct dti_copy_set *copy_set; /* [items] */
    /* `finish` calls a function of the user's, which may take any time. So `finish` is called outside
     * (access.h), on replicas' own threads alone, and touches no buffer but the tile and memory of the
     * strategy's own. */
    bool calls;
};
/* A reduction into a target: every item over all replicas. All but the items' src is the same on all replicas. */
struct dti_target_reduction {
    const ditto_list_item *item; /* [items] src, count, dtype; dst is not used */
    size_t items;                /* at least 1 */
    ditto_op op;                 /* 0: no reduction, replica 0's values are taken */
    const char *name,
        *object;   /* whose operation it is: a public function's, on a variable's own name, or NULL */
    uint64_t hash; /* of what else must agree */
    const struct dti_target *target;
};
/* When it returns DITTO_OK all copies are written and are seen. Errors: as a collective's. */
ditto_status dti_target_reduction(struct dti_replica *self, const struct dti_target_reduction *targeted,
                                  struct dti_deadline *deadline);
/* Which replica does `finish` for which elements: each range once, ascending. Any context; what memory near its owner is for. */
typedef void dti_target_owner_fn(void *context, size_t item, size_t first, size_t count, uint32_t replica);
void dti_target_owners(const struct dti_team *team, const struct dti_target_reduction *targeted,
                       dti_target_owner_fn *range, void *context);

/* All meet; each works while all are there, and sees what the others brought; all meet again. What `work` returns other than
 * DITTO_OK ends the run. */
struct dti_joint_work {
    const char *name, *object;
    uint64_t hash;       /* of what must agree */
    const void *brought; /* this replica's, for all to look at */
    /* `work` calls a function of the user's, and does not look at `brought`. So `work` is called outside
     * (access.h). */
    bool calls;
    ditto_status (*work)(struct dti_replica *self, const void *const *brought, void *context);
    void *context;
};
ditto_status dti_do_joint_work(struct dti_replica *self, const struct dti_joint_work *together,
                               struct dti_deadline *deadline);

/* -- Pure: any thread, the caller in the default floating-point environment -- */

/* The arithmetic of a pair that has passed dti_reduction_check. */
static inline const struct dti_kernel *dti_kernel_of(ditto_dtype dtype, ditto_op op)
{
    return &(*dti_kernels_best())[dtype][op];
}
/* out = left op right, elementwise; `out` may be either. */
void dti_combine_two(ditto_dtype dtype, ditto_op op, void *out, const void *left, const void *right,
                     size_t count);
/* out = value / divisor, elementwise, rounded once: floating and complex numbers. `out` may be `value`. */
void dti_divide(ditto_dtype dtype, void *out, const void *value, size_t count, uint32_t divisor);
/* dst = the tree over source[0..n), by the calling thread alone. dst overlaps no source. NO_MEMORY. */
ditto_status dti_reduce_local(ditto_dtype dtype, ditto_op op, const void *const *source, uint32_t n,
                              size_t count, void *dst);

/* INVALID, RANGE or UNSUPPORTED when dtype and op do not go together in a collective. */
ditto_status dti_reduction_check(ditto_dtype dtype, ditto_op op);

/* Work on memory in cross context, by all replicas where that is faster, else by the calling thread. */

/* Does items [first, end): any split of them gives the same result. In the default floating-point environment. */
typedef ditto_status dti_share_fn(size_t first, size_t end, void *context);

/* Cross context. All of `items`, each once; `bytes` are read or written in all, `grain` items stay together. The first
 * error. */
ditto_status dti_share(struct dti_team *team, size_t bytes, size_t items, size_t grain, dti_share_fn *work,
                       void *context);

#endif
