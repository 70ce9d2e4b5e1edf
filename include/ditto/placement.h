/* include/ditto/placement.h - which PUs each replica gets. Pure: no thread, no system call, works on any topology. */
#ifndef DITTO_PLACEMENT_H
#define DITTO_PLACEMENT_H

#include <ditto/topology.h>

DITTO_BEGIN

#define DITTO_MAX_REPLICAS 1024 /* of one strategy */

/** How many replicas each NUMA node gets. Ids are numbered node by node either way, so the order of reduction, and with it
 *  every bit, does not depend on the policy. */
typedef enum ditto_policy {
    DITTO_SPREAD = 0,  /**< the default: nodes get equal numbers, as far as they have cores */
    DITTO_COMPACT = 1, /**< fill a node before the next is used */
} ditto_policy;

typedef struct ditto_placement_options {
    size_t struct_size;  /**< set by DITTO_PLACEMENT_OPTIONS_INIT */
    uint32_t replicas;   /**< 0: min(cores, ceil(CPU quota)), or one per entry of `pus`; more than PUs: they share */
    ditto_policy policy; /**< not used with `pus` */
    const uint32_t *pus; /**< explicit PUs, operating-system numbers, one a replica; read only during the call */
    uint32_t num_pus;    /**< entries of `pus`; 0: choose by policy */
    uint32_t flags;      /**< DITTO_PLACEMENT_* */
} ditto_placement_options;
#define DITTO_PLACEMENT_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_placement_options)
#define DITTO_PLACEMENT_SHARE        1u /**< a PU may stand in `pus` more than once */

/** Where one replica goes. */
typedef struct ditto_place {
    uint32_t replica;
    uint32_t package;   /**< logical index, 0.. */
    uint32_t numa_node; /**< operating-system number, as `numactl --hardware` prints it */
    uint32_t core;      /**< logical index in the machine */
    uint32_t pu;        /**< operating-system number, as `taskset` takes it */
    uint32_t sharers;   /**< replicas of this placement on that PU, this one included */
} ditto_place;

/** A list of places in replica order. Immutable. */
typedef struct ditto_placement ditto_placement;

/** Places replicas: first one per core, then on SMT siblings, then sharing PUs round robin.
 *
 *  @param options  NULL: as many replicas as cores, spread
 *  @param out      the caller's to destroy; does not refer to `topology` afterwards
 *  @retval DITTO_ERR_RANGE    more than DITTO_MAX_REPLICAS; a PU that is not there or not allowed; a PU twice without
 *                             DITTO_PLACEMENT_SHARE; an unknown policy
 *  @retval DITTO_ERR_INVALID  NULL; `replicas` and `num_pus` both set and different; an unknown flag
 *  @retval DITTO_ERR_NO_MEMORY
 *  Cost  replicas x nodes steps. */
DITTO_API DITTO_NODISCARD ditto_status ditto_placement_build(const ditto_topology *topology,
                                                             const ditto_placement_options *options,
                                                             ditto_placement **out);
/** NULL is allowed. */
DITTO_API void ditto_placement_destroy(ditto_placement *placement);

/** Number of replicas; 0 for NULL. */
DITTO_API uint32_t ditto_placement_replicas(const ditto_placement *placement);
/** @retval DITTO_ERR_RANGE  no such replica */
DITTO_API ditto_status ditto_placement_get(const ditto_placement *placement, uint32_t replica, ditto_place *out);

DITTO_END
#endif
