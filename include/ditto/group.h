/* include/ditto/group.h - groups of replicas: rows and columns of a grid, the replicas of one package.
 *
 * docs/groups.md explains what groups are for, and docs/semantics.md has the rules. */
#ifndef DITTO_GROUP_H
#define DITTO_GROUP_H

#include <ditto/collective.h>

DITTO_BEGIN

/** @defgroup ditto_group Groups
 *
 *  A *grouping* divides the replicas of a strategy into groups, or some of them. It is made outside of runs,
 *  so all replicas have the same. In a run, a replica asks for its group, and gives it to collectives in
 *  ditto_reduce_options.group. Such a collective is one of the members of the group alone: roots, parts and
 *  partners are given by their ranks in the group, and results have the bits that a strategy of one host with
 *  as many replicas has. The groups of a grouping work at the same time, and do not wait for each other.
 *
 *  All members of a group make its calls in the same order. Groups that have no common member need no common
 *  order. Where the calls of several groups, or of a group and of the whole strategy, can never come together
 *  because replicas wait for each other in a circle, the run ends with DITTO_ERR_DIVERGED and a message that
 *  names each of these waits. An error, a time limit or a stop in a group ends the whole run.
 *  @{ */

/** A division of the replicas of a strategy into groups. */
typedef struct ditto_grouping ditto_grouping;

/** The color of a replica that is in no group. */
#define DITTO_NO_COLOR UINT32_MAX

/** One axis of a mesh. */
typedef struct ditto_mesh_axis {
    const char *name; /**< shown in messages; at most DITTO_MAX_LABEL_BYTES bytes */
    uint32_t extent;  /**< the number of places along the axis; at least 1 */
} ditto_mesh_axis;

/** The group of a replica. It belongs to the run in which it was asked for. */
typedef struct ditto_group {
    uint32_t index; /**< of the group in its grouping, from 0; DITTO_NO_COLOR if the replica is in none */
    uint32_t rank;  /**< of the replica in the group, from 0; DITTO_NO_REPLICA if it is in none */
    uint32_t size;  /**< the number of members; 0 if the replica is in no group */

    /** [size] The ids of the members by rank. Valid as long as the grouping. NULL if size is 0. */
    const uint32_t *replicas;

    uint64_t grouping; /**< for the library: which grouping it is */
    uint32_t slot;     /**< for the library: where the strategy keeps the grouping */
    uint32_t run;      /**< for the library: the run */
} ditto_group;

/** Divides the replicas into one group for each color, as MPI_Comm_split does.
 *
 *  @param strategy  the strategy; not the default strategy, and not one with parameter servers
 *  @param colors    [in]  [count] replicas with equal colors form a group. Groups are numbered by ascending
 *                   colors. DITTO_NO_COLOR: the replica is in no group
 *  @param keys      [in]  [count] the ranks of a group follow the keys, and among equal keys the ids. NULL:
 *                   the ids
 *  @param count     the strategy's number of replicas, those of all hosts
 *  @param out       [out] the grouping, which ditto_grouping_destroy frees
 *  @retval DITTO_OK                the grouping was made
 *  @retval DITTO_ERR_INVALID       strategy, colors or out is NULL; count is another number; no replica has a
 *                                  color
 *  @retval DITTO_ERR_UNSUPPORTED   a group has replicas on several hosts, or the strategy is of another kind
 *  @retval DITTO_ERR_CONTEXT       called inside a run
 *  @retval DITTO_ERR_NO_MEMORY     no memory; nothing was made
 *  @retval DITTO_ERR_FORKED        this is a child process, and the strategy was created before fork
 *  @retval DITTO_ERR_POISONED      the strategy may only be destroyed
 *  @par Thread safety
 *  Any thread may call it. It waits for a run that another thread has started.
 *  @par Cost
 *  Each member allocates its mailboxes near itself, and touches about 50 KiB. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_split(ditto_strategy *strategy, const uint32_t *colors,
                                                            const uint32_t *keys, uint32_t count,
                                                            ditto_grouping **out);

/** Arranges the replicas in a mesh, and makes a grouping for each axis.
 *
 *  Replica ids count through the mesh row by row: the last axis runs fastest. In a mesh of { "data", 2 } and
 *  { "tensor", 4 } the groups of "tensor" are the replicas 0 to 3 and 4 to 7, and those of "data" are 0 and
 *  4, 1 and 5, 2 and 6, 3 and 7. Nothing is reordered. Replicas are numbered node by node, so the members of
 *  a group are nearest to each other along the last axis. ditto_strategy_describe says how near.
 *
 *  @param strategy  as in ditto_strategy_split
 *  @param axes      [in]  [num_axes] the product of the extents is the strategy's number of replicas
 *  @param num_axes  at least 1
 *  @param out       [out] [num_axes] a grouping for each axis. Each is freed by itself
 *  @retval DITTO_ERR_INVALID  an argument or a name is NULL, or num_axes is 0
 *  @retval DITTO_ERR_RANGE    an extent is 0, a name is empty or too long, or the product is another number
 *  @return also the errors of ditto_strategy_split
 *  @par Thread safety
 *  As ditto_strategy_split. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_mesh(ditto_strategy *strategy,
                                                           const ditto_mesh_axis *axes, uint32_t num_axes,
                                                           ditto_grouping **out);

/** Frees a grouping. Its strategy may have ended before.
 *
 *  @param grouping  the grouping; NULL is ignored
 *  @retval DITTO_OK            it was freed, or is freed with its strategy, because a replica that has not
 *                              returned may use it
 *  @retval DITTO_ERR_BUSY      a run or another call of the strategy is active, or a variable is sliced along
 *                              the grouping; nothing was freed
 *  @retval DITTO_ERR_CONTEXT   called by a replica, inside a run
 *  @retval DITTO_ERR_FORKED    this is a child process, and the strategy was created before fork
 *  @par Thread safety
 *  Any thread may call it, once, but not while another one destroys the strategy. */
DITTO_API DITTO_NODISCARD ditto_status ditto_grouping_destroy(ditto_grouping *grouping);

/** Asks for the group of the calling replica.
 *
 *  @param self      the calling replica
 *  @param grouping  a grouping of its strategy
 *  @param out       [out] the group, for collectives of this run. In a run inside this one, which a function
 *                   of ditto_merge_call starts, the replica asks again. Where the replica is in no group,
 *                   size is 0
 *  @retval DITTO_OK           *out is set
 *  @retval DITTO_ERR_INVALID  an argument is NULL; the grouping is of another strategy, or was destroyed
 *  @retval DITTO_ERR_CONTEXT  self is not the calling thread's replica
 *  @par Cost
 *  No meeting. It looks through the groupings of the strategy and the groups of this one. */
DITTO_API DITTO_NODISCARD ditto_status ditto_group_of(ditto_replica *self, const ditto_grouping *grouping,
                                                      ditto_group *out);

/** @} */

DITTO_END

#endif
