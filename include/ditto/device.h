/* include/ditto/device.h - a replica of several PUs: its logical devices, and the helpers that work there.
 *
 * Logical device 0 is the replica's leader, the thread that runs the replica's function; device i > 0 is a helper thread,
 * pinned to PU i of the replica. All functions here: replica context, the leader; each may be called by any replica at any
 * time, without the others. With DITTO_HELPERS_OFF, or one PU, a replica has one device and the same calls run on it alone.
 *
 * Functions that run on devices are plain code: inside them no call that takes `self` is allowed (DITTO_ERR_CONTEXT), on the
 * leader neither, because they may run on any thread; so loops do not nest. They say why they fail with
 * ditto_fail(NULL, ...). A failure stops the run like the leader's own. */
#ifndef DITTO_DEVICE_H
#define DITTO_DEVICE_H

#include <ditto/replica.h>
#include <ditto/tensor.h>

DITTO_BEGIN

/** Runs on one device. @return DITTO_OK; below 0: an error, which stops the run; news (> 0) counts as DITTO_OK */
typedef ditto_status (*ditto_device_fn)(uint32_t device, void *argument);
/** A piece of a loop, [begin, end), on one device. @return as above */
typedef ditto_status (*ditto_range_fn)(size_t begin, size_t end, uint32_t device, void *argument);

/** Devices of this replica, the leader included; 0 when self is not the calling thread's own. */
DITTO_API uint32_t ditto_num_logical_devices(const ditto_replica *self);

/** How the pieces of a loop go to devices. */
typedef enum ditto_schedule {
    DITTO_STATIC =
        0, /**< one contiguous piece per device, always the same ones: what a device touches stays in its cache */
    DITTO_DYNAMIC = 1, /**< pieces of `grain` as devices become free: for work of uneven length */
} ditto_schedule;

/** Runs function over [begin, end) on all devices of the replica, each index once, and waits for all. Functions given to
 *  devices before run first.
 *
 *  @param grain    pieces start at begin + k * grain: the fewest indices that are worth a call; 0: 1 when static,
 *                  1/8 of a device's share when dynamic
 *  @retval DITTO_ERR_RANGE         end < begin, or an unknown schedule
 *  @retval DITTO_ERR_PEER_STOPPED  another replica stopped the run; pieces not begun were left out
 *  @retval (the function's)        the first error of a device; pieces not begun may have been left out
 *  @retval DITTO_ERR_TIMED_OUT     as ditto_join
 *  @retval DITTO_ERR_INVALID       function is NULL
 *  @retval DITTO_ERR_CONTEXT       inside a device's function: loops do not nest; another replica's or an old handle
 *  @retval DITTO_ERR_FORKED        in a child process, where the helpers are not
 *  Ordering  what the leader wrote before, every piece sees; what pieces wrote, the leader sees after the call.
 *  Cost      two hand-overs of a cache line, like ditto_strategy_run; dynamic: one atomic addition a piece more. Helpers that
 *            have slept (no work for spin_us) need a wake-up. */
DITTO_API ditto_status ditto_parallel_for(ditto_replica *self, size_t begin, size_t end, size_t grain,
                                          ditto_schedule schedule, ditto_range_fn function, void *argument);

/** Gives a function to a device and returns at once. Functions of one device run in the order given; those of device 0 run
 *  in the next ditto_join, loop, or at the end of the replica's function. A device keeps up to 64: for more the call waits
 *  (on device 0 it runs them).
 *
 *  @param argument  stays the caller's; must live until a join has returned. With an error of the leader's function, what has
 *                   begun is still awaited before its frame is gone, what has not is left out
 *  @retval DITTO_ERR_RANGE         device is not below ditto_num_logical_devices
 *  @retval DITTO_ERR_INVALID       function is NULL
 *  @retval DITTO_ERR_PEER_STOPPED  the run is stopped, and so the function will not run; or a device's error: as ditto_join
 *  @retval DITTO_ERR_CONTEXT, DITTO_ERR_FORKED  as ditto_parallel_for
 *  Ordering  what the leader wrote before the call, the function sees; what it wrote, the leader sees after a join.
 *  Cost      a store; one hand-over of a cache line later it runs. A helper that sleeps needs a wake-up.
 *  Source    tf.distribute: experimental_logical_device. */
DITTO_API ditto_status ditto_on_logical_device(ditto_replica *self, uint32_t device, ditto_device_fn function,
                                               void *argument);
/** Waits until all functions given to devices have returned. The end of the replica's function does the same.
 *  @retval DITTO_ERR_PEER_STOPPED  another replica stopped the run: functions not begun were left out. Those that have begun are
 *                                  awaited all the same, without a limit: they may use the leader's memory
 *  @retval (the function's)        the first error of a device
 *  @retval DITTO_ERR_TIMED_OUT     run_timeout_ms passed; on a caller that works as replica 0 alone, and late: when they returned
 *  @retval DITTO_ERR_CONTEXT, DITTO_ERR_FORKED  as ditto_parallel_for
 *  Cost  reads one line per device. */
DITTO_API ditto_status ditto_join(ditto_replica *self);

/** Cuts a tensor into equal blocks, one per device, each copied by its device into memory on that device's NUMA node. Waits
 *  for functions that were given to the devices before; their errors are told by ditto_join, not here.
 *
 *  @param tensor     stays the caller's
 *  @param parts      [num_parts] blocks along each dimension; devices take them in row-major order
 *  @param num_parts  the tensor's rank
 *  @param blocks     [out] [ditto_num_logical_devices] tensors, marked with their device; each one's data is freed with
 *                    ditto_free. Set only on DITTO_OK; on failure nothing is left
 *  @retval DITTO_ERR_SHAPE         num_parts is not the rank; a dimension is not divisible by its parts; the product of parts
 *                                  is not the number of devices (checked in this order)
 *  @retval DITTO_ERR_INVALID       a NULL; a tensor that makes no sense (dtype, rank, alignment)
 *  @retval DITTO_ERR_RANGE         the product of its dimensions overflows
 *  @retval DITTO_ERR_NO_MEMORY     on one of the nodes
 *  @retval DITTO_ERR_SYSTEM        DITTO_MEMORY_STRICT, and mbind is refused
 *  @retval DITTO_ERR_PEER_STOPPED  the run is stopped
 *  @retval DITTO_ERR_CONTEXT, DITTO_ERR_FORKED  as ditto_parallel_for
 *  Cost    one copy, in parallel; the first time on a node an arena more, a few hundred microseconds.
 *  Source  tf.distribute: experimental_split_to_logical_devices. */
DITTO_API DITTO_NODISCARD ditto_status ditto_split(ditto_replica *self, const ditto_tensor *tensor,
                                                   const uint32_t *parts, uint32_t num_parts,
                                                   ditto_tensor *blocks);
/** Gives every device a copy of the whole tensor, on its own node: like ditto_split, and with its errors, but for SHAPE.
 *  Source  tf.distribute: experimental_replicate_to_logical_devices. */
DITTO_API DITTO_NODISCARD ditto_status ditto_replicate(ditto_replica *self, const ditto_tensor *tensor,
                                                       ditto_tensor *copies);
/** Copies a tensor into memory on a device's NUMA node and marks it: `ditto_on_logical_device(self, placed.device, ...)`
 *  runs a function where it lies. The value is unchanged; a tensor that was never marked is on device 0.
 *  @param placed  [out] its data is freed with ditto_free
 *  @retval DITTO_ERR_RANGE  no such device
 *  @retval (others)         as ditto_split, but for SHAPE
 *  Source  tf.distribute: experimental_assign_to_logical_device. */
DITTO_API DITTO_NODISCARD ditto_status ditto_assign_to_logical_device(ditto_replica *self,
                                                                      const ditto_tensor *tensor,
                                                                      uint32_t device, ditto_tensor *placed);

DITTO_END
#endif
