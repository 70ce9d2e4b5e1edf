/* include/ditto/device.h - the logical devices of a replica of several PUs, and work on them.
 *
 * Logical device 0 is the replica's leader, the thread that runs the replica's function. Device i > 0 is a
 * helper thread, pinned to PU i of the replica (unless the strategy has DITTO_PIN_NONE). A replica has one
 * device if it has one PU, or if ditto_strategy_options.helpers is DITTO_SWITCH_OFF. The same calls then work
 * on that device alone. */
#ifndef DITTO_DEVICE_H
#define DITTO_DEVICE_H

#include <ditto/collective.h>
#include <ditto/replica.h>
#include <ditto/tensor.h>

DITTO_BEGIN

/* -- Functions on devices --
 *
 * The functions of this header are called in replica context, on the leader, at any time and without the
 * other replicas. A function that runs on a device, even on the leader, makes no call that takes `self` or a
 * strategy (DITTO_ERR_CONTEXT). So loops do not nest. A function says why it fails with
 * ditto_fail(NULL, ...). Its error stops the run, like an error of the leader's own function. */

/** Runs on one device.
 *
 *  @param device  number of the device
 *  @param user    the pointer that was given with the function
 *  @return DITTO_OK, or an error (below 0), which stops the run. A positive status counts as DITTO_OK */
typedef ditto_status (*ditto_device_fn)(uint32_t device, void *user);

/** Computes the part [begin, end) of a loop on one device.
 *
 *  @param begin   the first index
 *  @param end     the end, which is not included
 *  @param device  number of the device
 *  @param user    the pointer that was given with the function
 *  @return as in ditto_device_fn */
typedef ditto_status (*ditto_range_fn)(size_t begin, size_t end, uint32_t device, void *user);

/** Returns the number of devices of this replica, with the leader.
 *
 *  @param self  the calling replica
 *  @return the number, or 0 if `self` is not the calling thread's own replica, or inside a function on a
 *          device */
DITTO_API uint32_t ditto_num_logical_devices(const ditto_replica *self);

/** How the parts of a loop are assigned to devices. */
typedef enum ditto_schedule {
    /** Each device gets one contiguous part, the same one in each loop with the same bounds and grain. So the
     *  data that a device uses stays in its cache. */
    DITTO_SCHEDULE_STATIC = 0,

    /** A device that is free gets the next `grain` indices. This suits work of uneven length. */
    DITTO_SCHEDULE_DYNAMIC = 1,
} ditto_schedule;

/** Runs a loop on all devices of the replica, and waits until all have finished. Each index is executed once.
 *  A loop over the tiles of an array is one over the numbers of the tiles.
 *
 *  Each device first runs the functions that it was given before, so a loop is also a join. If a function
 *  fails on a device, parts that had not begun may not be executed.
 *
 *  @param self      the calling replica
 *  @param function  computes one part
 *  @param user      given to the function
 *  @param begin     the first index
 *  @param end       the end, which is not included
 *  @param grain     the fewest indices that are worth a call. Parts start at begin + k * grain. 0 means 1
 *                   with DITTO_SCHEDULE_STATIC, and 1/8 of a device's share with DITTO_SCHEDULE_DYNAMIC
 *  @param schedule  how parts are assigned to devices
 *  @return DITTO_OK, the first error that a function returned on a device, or one of:
 *  @retval DITTO_ERR_RANGE         `end` is below `begin`, or the schedule is unknown
 *  @retval DITTO_ERR_PEER_STOPPED  as in ditto_join
 *  @retval DITTO_ERR_DIVERGED      as in ditto_join
 *  @retval DITTO_ERR_INVALID       `self` or `function` is NULL
 *  @retval DITTO_ERR_CONTEXT       not called in replica context (for example in a function on a device), or
 *                                  `self` is not the calling thread's own replica of this run
 *  @retval DITTO_ERR_FORKED        called in a child process after fork, where the helpers do not exist
 *  @par Ordering
 *  Every part sees what the leader wrote before the call. After the call the leader sees what all parts
 *  wrote.
 *  @par Cost
 *  Two transfers of a cache line, as for ditto_strategy_run. DITTO_SCHEDULE_DYNAMIC adds one atomic addition
 *  for each part. Helpers that sleep, because they had no work for spin_us, must be woken. */
DITTO_API DITTO_NODISCARD ditto_status ditto_parallel_for(ditto_replica *self, ditto_range_fn function,
                                                          void *user, size_t begin, size_t end, size_t grain,
                                                          ditto_schedule schedule);

/** Computes the contribution of the indices [begin, end) to a reduction, on one device.
 *
 *  @param begin    the first index
 *  @param end      the end, which is not included. It is `begin` if the whole loop has no indices
 *  @param device   number of the device
 *  @param partial  [out] the contribution: all elements must be written. No other call uses this memory, and
 *                  it does not share a cache line with that of another call
 *  @param user     the pointer that was given with the function
 *  @return as in ditto_device_fn */
typedef ditto_status (*ditto_partial_fn)(size_t begin, size_t end, uint32_t device, void *partial,
                                         void *user);

/** Runs a loop on all devices of the replica, and combines what its parts contribute, for example a sum.
 *
 *  The loop is cut into at most 256 parts of equal size, whose number depends only on `begin`, `end` and
 *  `grain`. The contributions are combined in a fixed order: of m of them, number j + ceil(m / 2) is combined
 *  with number j, and this is repeated until one is left. The bits of the result therefore do not depend on
 *  the number of devices, nor on which device computes which part. Otherwise it is like ditto_parallel_for
 *  with DITTO_SCHEDULE_STATIC.
 *
 *  @param self      the calling replica
 *  @param function  computes the contribution of one part
 *  @param user      given to the function
 *  @param begin     the first index
 *  @param end       the end, which is not included
 *  @param grain     parts have a multiple of so many indices, except the last one. 0 means 1
 *  @param dtype     dtype of the contributions and the result
 *  @param op        how they are combined; any but DITTO_MEAN
 *  @param count     number of elements of a contribution, and of the result, at least 1
 *  @param result    [out] shape [count]; set only on DITTO_OK
 *  @return DITTO_OK, the first error that a function returned on a device, an error of ditto_parallel_for,
 *          or:
 *  @retval DITTO_ERR_UNSUPPORTED  the dtype has no such op; DITTO_MEAN: use DITTO_SUM and divide
 *  @retval DITTO_ERR_INVALID      a pointer is NULL, or `result` is misaligned; the dtype is unknown
 *  @retval DITTO_ERR_RANGE        `end` is below `begin`; the op is unknown; count is 0 or too large
 *  @retval DITTO_ERR_NO_MEMORY    the contributions need more than 16 KiB, and the replica's arena has no
 *                                 memory for them
 *  @par Cost
 *  As ditto_parallel_for, a call of the function for each part, and on the leader the combining of at most
 *  256 contributions. */
DITTO_API DITTO_NODISCARD ditto_status ditto_parallel_reduce(ditto_replica *self, ditto_partial_fn function,
                                                             void *user, size_t begin, size_t end,
                                                             size_t grain, ditto_dtype dtype, ditto_op op,
                                                             size_t count, void *result);

/** Gives a function to a device and returns at once.
 *
 *  The functions of one device run in the order in which they were given. Those of device 0 run in the next
 *  join. If 64 functions of the device have not finished, the call waits for the oldest one. On device 0 it
 *  runs them all.
 *
 *  @param self      the calling replica
 *  @param device    number of the device
 *  @param function  the function
 *  @param user      given to the function
 *  @return DITTO_OK, the error of a function on a device that has failed, as in ditto_join, or one of:
 *  @retval DITTO_ERR_RANGE         there is no such device
 *  @retval DITTO_ERR_INVALID       `self` or `function` is NULL
 *  @retval DITTO_ERR_PEER_STOPPED  as in ditto_join. The function will not run
 *  @retval DITTO_ERR_DIVERGED      as in ditto_join. The function will not run
 *  @retval DITTO_ERR_CONTEXT       as in ditto_parallel_for
 *  @retval DITTO_ERR_FORKED        as in ditto_parallel_for
 *  @par Ownership
 *  The caller keeps `user` valid until a join has returned. If the join is that at the end of the replica's
 *  function, `user` must not point to a local variable of that function. If the replica's function returns an
 *  error, only functions that have begun are awaited, and the others are not executed.
 *  @par Ordering
 *  The function sees what the leader wrote before the call. After a join the leader sees what the function
 *  wrote.
 *  @par Cost
 *  The call takes one store. The function starts one transfer of a cache line later. A helper that sleeps
 *  must be woken.
 *  @par Source
 *  tf.distribute: experimental_logical_device. */
DITTO_API DITTO_NODISCARD ditto_status ditto_on_logical_device(ditto_replica *self, uint32_t device,
                                                               ditto_device_fn function, void *user);

/** Waits until all functions that were given to devices have returned. A loop, a merge call and the end of
 *  the replica's function do the same. All of these are joins.
 *
 *  @param self  the calling replica
 *  @return DITTO_OK, the first error that a function returned on a device, or one of:
 *  @retval DITTO_ERR_PEER_STOPPED  the run is stopped, by an error or because run_timeout_ms has passed.
 *                                  Functions that had not begun were not executed. The call has waited
 *                                  without a limit for those that had begun, because they may use the
 *                                  leader's memory
 *  @retval DITTO_ERR_DIVERGED      instead of DITTO_ERR_PEER_STOPPED, if the run was stopped with this error
 *  @retval DITTO_ERR_INVALID       `self` is NULL
 *  @retval DITTO_ERR_CONTEXT       as in ditto_parallel_for
 *  @retval DITTO_ERR_FORKED        as in ditto_parallel_for
 *  @par Cost
 *  One cache line is read for each device. */
DITTO_API DITTO_NODISCARD ditto_status ditto_join(ditto_replica *self);

/* -- Tensors on devices --
 *
 * Each device makes its own copy, after the functions that it was given before. Device 0 is the exception: it
 * copies at once, and its functions still wait afterwards. If one of these functions fails, the next join
 * returns its error. The call that copies returns DITTO_ERR_PEER_STOPPED if a copy was not made. */

/** Divides a tensor into equal blocks, one for each device. Each device copies its block to memory on its own
 *  NUMA node.
 *
 *  @param self       the calling replica
 *  @param tensor     the tensor
 *  @param parts      array of num_parts numbers: how many blocks there are along each dimension. The devices
 *                    take the blocks in row-major order. It may be NULL if num_parts is 0
 *  @param num_parts  the rank of the tensor
 *  @param blocks     [out] array of ditto_num_logical_devices tensors, each with the number of its device;
 *                    set only on DITTO_OK
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_SHAPE         num_parts is not the rank, or a dimension is not divisible by its number
 *                                  of parts, or that number is 0, or the product of the parts is not the
 *                                  number of devices
 *  @retval DITTO_ERR_INVALID       a pointer is NULL, or the dtype, rank or alignment of the tensor is
 *                                  invalid
 *  @retval DITTO_ERR_RANGE         the tensor has more than PTRDIFF_MAX bytes (a dimension of 0 counts as 1)
 *  @retval DITTO_ERR_NO_MEMORY     a node has no more memory
 *  @retval DITTO_ERR_SYSTEM        the strategy has DITTO_MEMORY_STRICT, and mbind is refused
 *  @retval DITTO_ERR_PEER_STOPPED  the run is stopped
 *  @retval DITTO_ERR_DIVERGED      the run was stopped with this error
 *  @retval DITTO_ERR_CONTEXT       as in ditto_parallel_for
 *  @retval DITTO_ERR_FORKED        as in ditto_parallel_for
 *  @par Ownership
 *  `tensor` stays the caller's. The caller frees the data of each block with ditto_free. After an error
 *  nothing is allocated.
 *  @par Cost
 *  One copy, made in parallel. The first call for a node also creates an arena, which takes a few hundred
 *  microseconds.
 *  @par Source
 *  tf.distribute: experimental_split_to_logical_devices. */
DITTO_API DITTO_NODISCARD ditto_status ditto_split(ditto_replica *self, const ditto_tensor *tensor,
                                                   const uint32_t *parts, uint32_t num_parts,
                                                   ditto_tensor *blocks);

/** Copies a whole tensor to every device. Each copy is on the NUMA node of its device.
 *
 *  @param self    the calling replica
 *  @param tensor  the tensor
 *  @param copies  [out] array of ditto_num_logical_devices tensors, each with the number of its device; set
 *                 only on DITTO_OK
 *  @return DITTO_OK, or an error of ditto_split other than DITTO_ERR_SHAPE
 *  @par Ownership
 *  As in ditto_split.
 *  @par Source
 *  tf.distribute: experimental_replicate_to_logical_devices.
 *  @par Cost
 *  One copy for each device. */
DITTO_API DITTO_NODISCARD ditto_status ditto_replicate(ditto_replica *self, const ditto_tensor *tensor,
                                                       ditto_tensor *copies);

/** Copies a tensor to memory on the NUMA node of a device. The copy has the number of the device.
 *
 *  `ditto_on_logical_device(self, placed.device, ...)` then runs a function near the data. A tensor to which
 *  no device was assigned has the number 0.
 *
 *  @param self    the calling replica
 *  @param tensor  the tensor
 *  @param device  number of the device
 *  @param placed  [out] the copy; set only on DITTO_OK
 *  @return DITTO_OK, an error of ditto_split other than DITTO_ERR_SHAPE, or:
 *  @retval DITTO_ERR_RANGE  there is no such device, or as in ditto_split
 *  @par Ownership
 *  The caller frees the data of the copy with ditto_free.
 *  @par Source
 *  tf.distribute: experimental_assign_to_logical_device.
 *  @par Cost
 *  One copy. */
DITTO_API DITTO_NODISCARD ditto_status ditto_assign_to_logical_device(ditto_replica *self,
                                                                      const ditto_tensor *tensor,
                                                                      uint32_t device, ditto_tensor *placed);

DITTO_END
#endif
