/* include/ditto/placement.h - which PUs each replica gets.
 *
 * These functions start no thread and read nothing of the machine on which they run. They work on any
 * topology, also on that of another machine. */
#ifndef DITTO_PLACEMENT_H
#define DITTO_PLACEMENT_H

#include <ditto/topology.h>

DITTO_BEGIN

/** Largest number of replicas of one strategy. */
#define DITTO_MAX_REPLICAS 1024

/** How many replicas each NUMA node gets. With either policy fast kinds of cores are used before slower ones,
 *  SMT siblings are used last, and ids go node by node. The bits of a result do not depend on the policy. */
typedef enum ditto_placement_policy {
    DITTO_PLACEMENT_DEFAULT = 0, /**< DITTO_PLACEMENT_SPREAD */
    DITTO_PLACEMENT_SPREAD = 1,  /**< equal numbers, where possible. This is the default */
    DITTO_PLACEMENT_COMPACT = 2, /**< all cores of a node are used before those of the next */
} ditto_placement_policy;

/** The part of the machine that one replica spans. */
typedef enum ditto_span {
    /** The box that ditto_placement_options.shape describes, or one PU without a shape. This is the
     *  default. */
    DITTO_SPAN_DEFAULT = 0,

    DITTO_SPAN_PU = 1,   /**< one PU */
    DITTO_SPAN_CORE = 2, /**< all usable PUs of a core */
    DITTO_SPAN_LLC = 3,  /**< all usable PUs of a last-level cache */

    /** All usable PUs of a NUMA node. Of a node that belongs to several packages, its part in one package. */
    DITTO_SPAN_NUMA_NODE = 4,

    DITTO_SPAN_PACKAGE = 5, /**< all usable PUs of a package */
    DITTO_SPAN_MACHINE = 6, /**< all usable PUs */
} ditto_span;

/** Options of a placement. A field that is 0 has its default.
 *
 *  The PUs of a replica are given in one of four ways: explicitly (`pus`), as a part of the machine
 *  (`span`), by their number (`pus_per_replica`), or as a box of the mesh (`shape` and `stride`). More than
 *  one of them is DITTO_ERR_INVALID. A shape [a, b, c, d] gives each replica a box of a packages x b nodes x
 *  c cores x d PUs. With a stride [p, q, r, s] the coordinates of the box are p, q, r, s apart, and boxes of
 *  other replicas fill the gaps. For example, with a stride of 2 on cores one replica has the even cores of a
 *  block, and the next has the odd ones. All arrays are read only during the call. */
typedef struct ditto_placement_options {
    size_t struct_size; /**< set by DITTO_PLACEMENT_OPTIONS_INIT */

    /** Number of replicas. 0 means num_pus with `pus`, as many as there are parts of the machine with `span`,
     *  as described there with `pus_per_replica`, and 1 otherwise. With `pus` it must be 0 or num_pus, or,
     *  with set_sizes, the number of sets. */
    uint32_t num_replicas;

    ditto_placement_policy policy; /**< ignored with `pus` */
    ditto_span span;               /**< the part of the machine that each replica gets */

    /** Array of shape_rank extents, each at least 1. NULL means all 1. */
    const int64_t *shape;

    uint32_t shape_rank; /**< DITTO_MESH_RANK, or 0 without `shape` */

    /** Array of stride_rank distances, each at least 1. NULL means all 1. */
    const int64_t *stride;

    uint32_t stride_rank; /**< DITTO_MESH_RANK, or 0 without `stride` */

    /** Array of num_pus operating-system numbers of PUs, one set after another. Each set makes a replica,
     *  whose leader gets the first PU of the set. */
    const uint32_t *pus;

    uint32_t num_pus; /**< length of `pus` */

    /** Array of `num_replicas` numbers, each at least 1: the number of PUs in each set. NULL means 1 for
     *  all. */
    const uint32_t *set_sizes;

    uint32_t flags; /**< DITTO_PLACEMENT_... bits */

    /** The number of PUs of each replica, at most that of the PUs. 0 means that it is not given.
     *
     *  The PUs of each NUMA node are cut into sets of this size in the order of the mesh, the first PUs of
     *  cores before their siblings. What is left over of all nodes makes further sets, which come last.
     *  Without num_replicas there is one replica for each set that needs no SMT sibling or, if every set
     *  needs one, for each set that starts on the first PU of a core, and fewer under a CPU quota. */
    uint32_t pus_per_replica;
} ditto_placement_options;

/** Initial value of ditto_placement_options. */
#define DITTO_PLACEMENT_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_placement_options)

/** Flag: replicas share PUs if there are too few for all. A PU may be listed in `pus` more than once. */
#define DITTO_PLACEMENT_SHARE 1u

/** Flag: only the first PU of each core is used, as if the mesh had one PU in each core. Not allowed with
 *  `pus`. */
#define DITTO_PLACEMENT_NO_SMT 2u

/** The position of one logical device of one replica. */
typedef struct ditto_placed_device {
    uint32_t replica; /**< id of the replica */
    uint32_t device;  /**< number of the device. 0 is the leader thread */

    /** Number of logical devices of this placement on this PU, with this one. */
    uint32_t num_sharers;

    ditto_pu pu; /**< the PU */
} ditto_placed_device;

/** Replicas and their PUs. It never changes, so any thread may read it. */
typedef struct ditto_placement ditto_placement;

/* -- Building -- */

/** Assigns PUs of a topology to replicas.
 *
 *  Unless PUs are given, sets that start on the first PU of a core are taken on all nodes before sets that
 *  start on SMT siblings. Of these, sets of fast kinds of cores are taken before those that have a core of a
 *  slower kind, and those of a node in the order of the mesh. Within a replica, the first PUs of its cores
 *  come before their siblings. If the mesh is irregular, because a cpuset excludes PUs or nodes
 *  differ, complete boxes are taken first. If more replicas are wanted, the remaining PUs are taken in order,
 *  and such a replica may span several nodes.
 *
 *  Replicas are numbered in the order of their leaders' PUs in the mesh. This holds for `pus` too, whatever
 *  the order of the sets.
 *
 *  @param topology  the machine
 *  @param options   the options. NULL means one replica of one PU
 *  @param out       [out] the placement. It does not refer to `topology` afterwards; set only on DITTO_OK
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_RANGE        one of these:
 *      - There are more than DITTO_MAX_REPLICAS replicas.
 *      - There are more replicas than PU sets, without DITTO_PLACEMENT_SHARE, or there is no PU set. The
 *        message has the number of sets.
 *      - An element of set_sizes, shape or stride is below 1, or shape x stride is larger than the mesh in a
 *        dimension.
 *      - pus_per_replica is larger than the number of PUs.
 *      - A PU does not exist or is not allowed, or is listed twice without DITTO_PLACEMENT_SHARE.
 *      - An enum value is unknown.
 *  @retval DITTO_ERR_SHAPE        `shape` or `stride` is set, and its rank is not DITTO_MESH_RANK
 *  @retval DITTO_ERR_INVALID      a required pointer is NULL, struct_size is wrong, options contradict one
 *                                 another, or a flag is unknown
 *  @retval DITTO_ERR_UNSUPPORTED  options of a newer version have a field set that this version does not know
 *  @retval DITTO_ERR_NO_MEMORY    memory was refused
 *  @par Thread safety
 *  Any thread may call it.
 *  @par Ownership
 *  The caller destroys the placement with ditto_placement_destroy.
 *  @par Cost
 *  1024 replicas on a mesh of 8 x 64 x 2 take less than a millisecond.
 *  @par Source
 *  tf.tpu.experimental.DeviceAssignment.build. */
DITTO_API DITTO_NODISCARD ditto_status ditto_placement_create(const ditto_topology *topology,
                                                              const ditto_placement_options *options,
                                                              ditto_placement **out);

/** Destroys a placement.
 *
 *  @param placement  the placement, or NULL
 *  @return DITTO_OK
 *  @par Cost
 *  Frees the placement. */
DITTO_API DITTO_NODISCARD ditto_status ditto_placement_destroy(ditto_placement *placement);

/* -- Reading a placement --
 *
 * Any thread may call the functions. Those that return a status return DITTO_ERR_INVALID if an argument is
 * NULL. */

/** Returns the number of replicas.
 *
 *  @param placement  the placement
 *  @return the number, or 0 if `placement` is NULL */
DITTO_API uint32_t ditto_placement_num_replicas(const ditto_placement *placement);

/** Returns the number of logical devices of a replica, which is the number of its PUs.
 *
 *  @param placement  the placement
 *  @param replica    id of the replica
 *  @return the number, or 0 if `placement` is NULL or there is no such replica */
DITTO_API uint32_t ditto_placement_num_devices(const ditto_placement *placement, uint32_t replica);

/** Returns the position of a logical device.
 *
 *  @param placement  the placement
 *  @param replica    id of the replica
 *  @param device     number of the device
 *  @param out        [out] the position
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_RANGE  there is no such replica or device */
DITTO_API DITTO_NODISCARD ditto_status ditto_placement_get(const ditto_placement *placement, uint32_t replica,
                                                           uint32_t device, ditto_placed_device *out);

/* -- Placements as text. Any thread may call the functions. -- */

/** Writes a placement as text for ditto_placement_read.
 *
 *  The lines are "ditto-placement 1", then "check N", where N identifies the hardware, then "replica I: PUs"
 *  for each replica, and then "end". PUs are a list without spaces, such as 2,0 or 0-3,8, with the leader's
 *  PU first.
 *
 *  @param placement  the placement
 *  @param buffer     [out] memory for the text; may be NULL if `capacity` is 0
 *  @param capacity   length of `buffer` in bytes
 *  @param length     [out] the length of the whole text, without its terminator; may be NULL. Unless it is
 *                    less than `capacity`, the text in `buffer` is cut
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_INVALID  `placement` is NULL, or `buffer` is NULL and `capacity` is not 0
 *  @par Cost
 *  Writes one text. */
DITTO_API DITTO_NODISCARD ditto_status ditto_placement_write(const ditto_placement *placement, char *buffer,
                                                             size_t capacity, size_t *length);

/** Makes a placement from a text, on the machine for which it was written or on a recording of that machine.
 *
 *  Lines may end in CR LF. A text that was written by hand may have no line "check". The numbers in its lines
 *  count up from 0, but replicas are numbered as ditto_placement_create does it. Replicas may share PUs.
 *
 *  @param topology  the machine
 *  @param text      the text. It need not be terminated
 *  @param length    length of the text in bytes
 *  @param out       [out] the placement; set only on DITTO_OK
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_CORRUPT    the text has another format. The message has the line
 *  @retval DITTO_ERR_RANGE      a PU is not in the topology, there are more than DITTO_MAX_REPLICAS replicas,
 *                               or a replica has more than 8192 PUs
 *  @retval DITTO_ERR_INVALID    a pointer is NULL, or the text was written for other hardware ("check")
 *  @retval DITTO_ERR_NO_MEMORY  memory was refused
 *  @par Ownership
 *  The caller destroys the placement with ditto_placement_destroy.
 *  @par Cost
 *  Reads one text, and compares it with the machine. */
DITTO_API DITTO_NODISCARD ditto_status ditto_placement_read(const ditto_topology *topology, const char *text,
                                                            size_t length, ditto_placement **out);

DITTO_END
#endif
