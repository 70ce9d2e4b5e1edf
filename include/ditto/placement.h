/* include/ditto/placement.h - which PUs each replica gets. Pure: no thread, no system call, works on any topology. */
#ifndef DITTO_PLACEMENT_H
#define DITTO_PLACEMENT_H

#include <ditto/topology.h>

DITTO_BEGIN

#define DITTO_MAX_REPLICAS 1024 /* of one strategy */

/** How many replicas each NUMA node gets. Ids are numbered node by node either way, so the order of reduction, and with it
 *  every bit, does not depend on the policy. */
typedef enum ditto_policy {
    DITTO_SPREAD = 0,  /**< the default: nodes get equal numbers, as far as they have room */
    DITTO_COMPACT = 1, /**< fill a node before the next is used */
} ditto_policy;

/** What one replica spans, by name. */
typedef enum ditto_per {
    DITTO_PER_SHAPE = 0, /**< the default: what `shape` says, one PU without it */
    DITTO_PER_PU = 1,
    DITTO_PER_CORE = 2,      /**< all usable PUs of a core */
    DITTO_PER_LLC = 3,       /**< of a last-level cache */
    DITTO_PER_NUMA_NODE = 4, /**< of a node (of its part in a package, if it reaches into several) */
    DITTO_PER_PACKAGE = 5,
    DITTO_PER_MACHINE = 6,
} ditto_per;

/** One of three ways, in this order of precedence: explicit sets (`pus`), a name (`per`), a shape on the mesh (`shape`).
 *
 *  A shape [a, b, c, d] gives each replica a box of a packages x b nodes x c cores x d PUs; a stride [p, q, r, s] sets
 *  the box's coordinates p, q, r, s apart, and the gaps are filled by the boxes of other replicas: stride 2 on cores gives
 *  one replica the even cores of a block, the next the odd ones. */
typedef struct ditto_placement_options {
    size_t struct_size; /**< set by DITTO_PLACEMENT_OPTIONS_INIT */
    uint32_t replicas;  /**< 0: with `pus` what it lists, with `per` as many as there are, with `shape` one */
    ditto_policy policy; /**< not used with `pus` */
    ditto_per per;       /**< not with `shape` or `pus` */
    const int64_t *
        shape; /**< [shape_rank], each at least 1; NULL: all ones. All arrays are read during the call only */
    uint32_t shape_rank;   /**< DITTO_MESH_RANK */
    const int64_t *stride; /**< [stride_rank], each at least 1; NULL: all ones */
    uint32_t stride_rank;  /**< DITTO_MESH_RANK */
    const uint32_t *
        pus; /**< explicit PUs, operating-system numbers, set after set; the first of a set is the leader's */
    uint32_t num_pus; /**< entries of `pus` */
    const uint32_t
        *set_sizes; /**< [replicas] entries of `pus` that each replica gets, at least 1; NULL: one each */
    uint32_t flags; /**< DITTO_PLACEMENT_* */
} ditto_placement_options;
#define DITTO_PLACEMENT_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_placement_options)
#define DITTO_PLACEMENT_SHARE \
    1u /**< more replicas than places share them; a PU may stand in `pus` more than once */
#define DITTO_PLACEMENT_NO_SMT 2u /**< only the first PU of each core is used; not with `pus` */

/** One logical device of one replica: device 0 is the PU of its leader thread. */
typedef struct ditto_place {
    uint32_t replica, device;
    uint32_t sharers; /**< logical devices of this placement on this PU, this one included */
    ditto_pu pu;
} ditto_place;

/** Replicas and their PUs. Immutable: any thread may read it. */
typedef struct ditto_placement ditto_placement;

/** Places replicas on the mesh of `topology`.
 *
 *  With a name or a shape, a node's places are taken in the order of the mesh; places that start on a core's first PU come
 *  before those on SMT siblings. Inside a replica the first PUs of its cores come before their siblings. An irregular mesh
 *  (a cpuset cuts into it, nodes differ) is filled with whole boxes first; if more replicas are asked for, PUs that are left
 *  over are taken in order, and such a replica may reach across nodes.
 *
 *  @param options  NULL: one replica of one PU
 *  @param out      the caller's to destroy; does not refer to `topology` afterwards
 *  @retval DITTO_ERR_RANGE    more replicas than DITTO_MAX_REPLICAS, or than places without DITTO_PLACEMENT_SHARE (the message
 *                             gives the largest number); shape or stride below 1, or shape x stride beyond the mesh; a PU
 *                             that is not there or not allowed; a PU twice without DITTO_PLACEMENT_SHARE; an unknown
 *                             enum
 *  @retval DITTO_ERR_SHAPE    a rank that is not DITTO_MESH_RANK
 *  @retval DITTO_ERR_INVALID  NULL; contradicting options; an unknown flag
 *  @retval DITTO_ERR_NO_MEMORY
 *  Cost  PUs x log PUs steps; 1024 replicas on 8 x 64 x 2: below a millisecond.
 *  Source  tf.tpu.experimental.DeviceAssignment.build. */
DITTO_API DITTO_NODISCARD ditto_status ditto_placement_build(const ditto_topology *topology,
                                                             const ditto_placement_options *options,
                                                             ditto_placement **out);
/** NULL is allowed. */
DITTO_API void ditto_placement_destroy(ditto_placement *placement);

/** Number of replicas; 0 for NULL. */
DITTO_API uint32_t ditto_placement_replicas(const ditto_placement *placement);
/** Logical devices of a replica: its PUs; 0 for NULL or where there is no such replica. */
DITTO_API uint32_t ditto_placement_devices(const ditto_placement *placement, uint32_t replica);
/** @retval DITTO_ERR_RANGE  no such replica or device */
DITTO_API ditto_status ditto_placement_get(const ditto_placement *placement, uint32_t replica,
                                           uint32_t device, ditto_place *out);

/** The replicas whose leader is on a NUMA node (operating-system number).
 *  @param replicas  [out] *count ids, ascending; the placement's own memory
 *  @retval DITTO_ERR_NOT_FOUND  no replica is there */
DITTO_API ditto_status ditto_placement_lookup_replicas(const ditto_placement *placement, uint32_t numa_node,
                                                       const uint32_t **replicas, uint32_t *count);

/** Levels of the machine, near to far. */
typedef enum ditto_level {
    DITTO_LEVEL_LLC = 0,
    DITTO_LEVEL_NODE = 1,
    DITTO_LEVEL_PACKAGE = 2,
} ditto_level;
#define DITTO_LEVELS 3

/** Groups of replicas at a level: their leaders share a last-level cache, a NUMA node (its part in a package, if it reaches
 *  into several), a package. 0 for NULL or an unknown
 *  level. Groups of nodes and packages are ranges of ids; a cache that reaches across nodes may not be. */
DITTO_API uint32_t ditto_placement_groups(const ditto_placement *placement, ditto_level level);
/** The members of a group. @param replicas  [out] *count ids, ascending; the placement's own memory
 *  @retval DITTO_ERR_RANGE  no such level or group */
DITTO_API ditto_status ditto_placement_members(const ditto_placement *placement, ditto_level level,
                                               uint32_t group, const uint32_t **replicas, uint32_t *count);

/** Writes the placement as text that ditto_placement_read takes: a first line "ditto-placement 1", a line "check N" that
 *  tells the hardware apart, a line "replica I: PUs" for each replica, the leader's PU first, and "end".
 *  @param buffer  may be NULL when size is 0
 *  @param length  [out] of the whole text without its terminator; more than size - 1 means that it was cut */
DITTO_API ditto_status ditto_placement_write(const ditto_placement *placement, char *buffer, size_t size,
                                             size_t *length);
/** Reads such a text back, on the same machine or a recording of it. Lines may end in CR LF; "check" may be left out in a
 *  text written by hand.
 *  Replicas are numbered node by node, as ditto_placement_build does, whatever their numbers in a text written by hand;
 *  they may share PUs.
 *
 *  @param text  [length], need not be terminated
 *  @retval DITTO_ERR_CORRUPT  it is no such text; the message gives the line
 *  @retval DITTO_ERR_RANGE    a PU that is not in the topology; too many replicas or PUs
 *  @retval DITTO_ERR_INVALID  NULL; or "check" says that the text was written for other hardware */
DITTO_API DITTO_NODISCARD ditto_status ditto_placement_read(const ditto_topology *topology, const char *text,
                                                            size_t length, ditto_placement **out);

DITTO_END
#endif
