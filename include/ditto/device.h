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
 *  @retval DITTO_ERR_CONTEXT       inside a device's function: loops do not nest
 *  Ordering  what the leader wrote before, every piece sees; what pieces wrote, the leader sees after the call.
 *  Cost      two hand-overs of a cache line, like ditto_strategy_run; dynamic: one atomic addition a piece more. Helpers that
 *            have slept (no work for spin_us) need a wake-up. */
DITTO_API ditto_status ditto_parallel_for(ditto_replica *self, size_t begin, size_t end, size_t grain,
                                          ditto_schedule schedule, ditto_range_fn function, void *argument);

/** Gives a function to a device and returns at once. Functions of one device run in the order given; those of device 0 run
 *  in the next ditto_join, loop, or at the end of the replica's function. A device keeps up to 64: for more the call waits
 *  (on device 0 it runs them).
 *  @retval DITTO_ERR_RANGE  device is not below ditto_num_logical_devices */
DITTO_API ditto_status ditto_on_logical_device(ditto_replica *self, uint32_t device, ditto_device_fn function,
                                               void *argument);
/** Waits until all functions given to devices have returned. The end of the replica's function does the same.
 *  @retval DITTO_ERR_PEER_STOPPED  another replica stopped the run: functions not begun were left out
 *  @retval (the function's)        the first error of a device */
DITTO_API ditto_status ditto_join(ditto_replica *self);

/** Cuts a tensor into equal blocks, one per device, each copied by its device into memory on that device's NUMA node.
 *  @param parts      [num_parts] blocks along each dimension; devices take them in row-major order
 *  @param num_parts  the tensor's rank
 *  @param blocks     [out] [ditto_num_logical_devices] tensors, marked with their device; each one's data is freed with
 *                    ditto_free. Set only on DITTO_OK
 *  @retval DITTO_ERR_SHAPE      num_parts is not the rank; a dimension is not divisible by its parts; the product of parts is
 *                               not the number of devices (checked in this order)
 *  @retval DITTO_ERR_NO_MEMORY
 *  Cost  one copy, in parallel. */
DITTO_API DITTO_NODISCARD ditto_status ditto_split(ditto_replica *self, const ditto_tensor *tensor,
                                                   const uint32_t *parts, uint32_t num_parts, ditto_tensor *blocks);
/** Gives every device a copy of the whole tensor, on its own node; like ditto_split otherwise. */
DITTO_API DITTO_NODISCARD ditto_status ditto_replicate(ditto_replica *self, const ditto_tensor *tensor,
                                                       ditto_tensor *copies);
/** Copies a tensor into memory on a device's NUMA node and marks it: `ditto_on_logical_device(self, placed.device, ...)`
 *  runs a function where it lies. The value is unchanged; a tensor that was never marked is on device 0.
 *  @param placed  [out] its data is freed with ditto_free
 *  @retval DITTO_ERR_RANGE  no such device */
DITTO_API DITTO_NODISCARD ditto_status ditto_assign_to_logical_device(ditto_replica *self, const ditto_tensor *tensor,
                                                                      uint32_t device, ditto_tensor *placed);

DITTO_END
#endif
