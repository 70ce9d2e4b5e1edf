/* include/ditto/exchange.h - replicas give data to each other: the borders of a grid, rows of a matrix.
 *
 * The function is collective, in replica context. The rules of ditto/collective.h hold. */
#ifndef DITTO_EXCHANGE_H
#define DITTO_EXCHANGE_H

#include <ditto/collective.h>

DITTO_BEGIN

/** What a replica gives to one other replica, its partner, and what it receives from it. */
typedef struct ditto_exchange_part {
    /** The id of the partner. A replica that names itself copies its own src to its own dst. */
    uint32_t replica;

    /** Distinguishes the parts of two replicas that have several. A part belongs to the part of the partner
     *  that has the same tag and names the calling replica. In a grid, the tag is the number of the border
     *  between the two. */
    uint32_t tag;

    const void *src; /**< [in]  shape [src_count]: what the partner receives. May be NULL if src_count is 0 */
    void *dst;       /**< [out] shape [dst_count]: what the partner gives. May be NULL if dst_count is 0 */
    size_t src_count;  /**< number of elements, the dst_count of the partner's part */
    size_t dst_count;  /**< number of elements, the src_count of the partner's part */
    ditto_dtype dtype; /**< dtype of the elements, equal in both parts */
} ditto_exchange_part;

/** Exchanges data between pairs of replicas.
 *
 *  Every replica calls it, also one that has no partner. Each of its parts belongs to exactly one part of its
 *  partner, with the same tag. When the call returns, the destinations of this replica hold what its partners
 *  have given, and no replica reads its sources any more. A destination must not overlap a buffer of another
 *  replica. This is not checked.
 *
 *      // Replica i has rows 1 to 100 of a grid, and in rows 0 and 101 copies of its neighbours' rows. Border
 *      // i is between replicas i and i + 1.
 *      ditto_status fetch_borders(ditto_replica *self, double grid[102][64])
 *      {
 *          uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
 *          ditto_exchange_part part[2];
 *          size_t parts = 0;
 *          if (id > 0)
 *              part[parts++] = (ditto_exchange_part){ id - 1, id - 1, grid[1], grid[0], 64, 64, DITTO_F64 };
 *          if (id + 1 < n)
 *              part[parts++] = (ditto_exchange_part){ id + 1, id, grid[100], grid[101], 64, 64, DITTO_F64 };
 *          return ditto_exchange(self, part, parts, NULL);
 *      }
 *
 *  @param self       the calling replica
 *  @param parts      [num_parts] the parts, in any order; NULL if there are none. No two have the same
 *                    partner and tag. Read only during the call
 *  @param num_parts  number of parts; may differ between replicas
 *  @param options    NULL for the defaults; read only during the call
 *  @return DITTO_OK, an error of ditto_all_reduce, or one of:
 *  @retval DITTO_ERR_INVALID    `parts` or a buffer is NULL, a buffer is not aligned to its elements, a dtype
 *                               is not one of DITTO_DTYPE_LIST, two parts have the same partner and tag, or a
 *                               destination overlaps another buffer of this replica. The run continues
 *  @retval DITTO_ERR_RANGE      there is no such replica, or a buffer has more bytes than a size_t can count.
 *                               The run continues
 *  @retval DITTO_ERR_DIVERGED   the part of a partner is missing, or has another number of elements or
 *                               another dtype. The run is stopped
 *  @retval DITTO_ERR_NO_MEMORY  the replica's arena has no memory to check the buffers. The run continues
 *  @par Thread safety
 *  Only the thread of the replica may call it.
 *  @par Cost
 *  Each replica has a message of 16 bytes, 24 bytes for each part, and the elements that it gives. If all
 *  messages fit 4 KiB, the call takes one meeting and two copies, else two meetings and one copy. Each
 *  replica reads one cache line of every other one. The buffers are checked only if the parts differ from
 *  those of the last four calls.
 *  @par Source
 *  MPI_Neighbor_alltoallw, MPI 3.1, section 7.6. */
DITTO_API DITTO_NODISCARD ditto_status ditto_exchange(ditto_replica *self, const ditto_exchange_part *parts,
                                                      size_t num_parts, const ditto_reduce_options *options);

DITTO_END
#endif
