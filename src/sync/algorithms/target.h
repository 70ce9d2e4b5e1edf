/* src/sync/algorithms/target.h - destinations of a reduction that are not the callers' buffers. */
#ifndef DTI_TARGET_H
#define DTI_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory that receives results, in the arena of one replica. */
struct dti_copy {
    uint32_t owner; /* the replica whose arena holds it */
    void *data;
};

/* The destinations of one item. */
struct dti_copy_set {
    /* If 0, results are written nowhere, and `finish` keeps them. */
    uint32_t copies;

    const struct dti_copy *copy;
};

/* Processes a tile of results before it is written. Elements [first, first + count) of the item are in
 * `tile`, which may be overwritten. The function writes its result to `out`, which is the tile itself or
 * an address in the only copy that the calling thread writes. The function is called once on each host for
 * each element, on any thread of any of its replicas. If the values of replica 0 are used as they are (op
 * 0), it may be called once in each group of replicas that has copies, for the copies of that group. */
typedef void dti_target_finish_fn(void *context, uint32_t replica, size_t item, size_t first, size_t count,
                                  void *tile, void *out);

/* Destinations that are not the callers' buffers. */
struct dti_target {
    dti_target_finish_fn *finish; /* may be NULL */
    void *context;
    const struct dti_copy_set *copy_set; /* [items] */

    /* True if `finish` calls a function of the user's, which may take any time. The replica then gives up its
     * access to other replicas' buffers (access.h) while `finish` runs, and `finish` runs on replicas' own
     * threads only. It must touch no buffer but the tile and memory of the strategy. */
    bool calls;
};

/* Gets elements of an item, and the replica that calls `finish` for them (dti_target_owners). */
typedef void dti_target_owner_fn(void *context, size_t item, size_t first, size_t count, uint32_t replica);

#endif
