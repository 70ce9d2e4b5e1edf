/* src/replicas/helpers/api_device.c - the functions of include/ditto/device.h. They check their arguments and
 * then call. */
#include "base/types/types.h"
#include "replicas/helpers/crew.h"
#include "replicas/helpers/device_tensor.h"
#include "replicas/team/context.h"
#include "replicas/team/replica.h"

uint32_t ditto_num_logical_devices(const ditto_replica *self)
{
    const struct dti_replica *r = dti_self_in("ditto_num_logical_devices", self);
    return r != NULL ? r->crew->devices : 0;
}

/* Returns the grain of a loop for which the caller gave none. A dynamic loop gets about 8 pieces per device,
 * so that all devices finish at about the same time. */
static size_t default_grain(size_t length, uint32_t devices, ditto_schedule schedule)
{
    size_t share = length / devices / 8;
    return schedule == DITTO_SCHEDULE_DYNAMIC && share > 1 ? share : 1;
}

ditto_status ditto_parallel_for(ditto_replica *self, ditto_range_fn function, void *user, size_t begin,
                                size_t end, size_t grain, ditto_schedule schedule)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    if (function == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "function is NULL: give the function that is called for every piece");
    if (end < begin)
        return DTI_FAIL(DITTO_ERR_RANGE, "the loop ends at %zu, before it begins at %zu", end, begin);
    if (schedule != DITTO_SCHEDULE_STATIC && schedule != DITTO_SCHEDULE_DYNAMIC)
        return DTI_FAIL(DITTO_ERR_RANGE,
                        "%d is not a schedule: use DITTO_SCHEDULE_STATIC or DITTO_SCHEDULE_DYNAMIC",
                        (int)schedule);
    struct dti_loop loop = { .function = function,
                             .argument = user,
                             .range = { begin, end, grain },
                             .dynamic = schedule == DITTO_SCHEDULE_DYNAMIC,
                             .caller = dti_this_thread()->function };
    if (grain == 0)
        loop.range.grain = default_grain(end - begin, r->crew->devices, schedule);
    return dti_crew_loop(r, &loop);
}

/* -- functions -- */

ditto_status ditto_on_logical_device(ditto_replica *self, uint32_t device, ditto_device_fn function,
                                     void *user)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    if (function == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "function is NULL: give the function that the device calls");
    return dti_crew_submit(r, device, function, user);
}

ditto_status ditto_join(ditto_replica *self)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    return dti_crew_join(r);
}

/* -- tensors on devices -- */

static ditto_status check_tensor(const ditto_tensor *tensor, const void *out, const char *out_name)
{
    size_t bytes;
    DTI_TRY(dti_not_null(tensor, "tensor"));
    DTI_TRY(dti_not_null(out, out_name));
    DTI_TRY(dti_tensor_check(tensor, &bytes));
    return dti_buffer_check(tensor->data, bytes, tensor->dtype, "tensor.data");
}

ditto_status ditto_split(ditto_replica *self, const ditto_tensor *tensor, const uint32_t *parts,
                         uint32_t num_parts, ditto_tensor *blocks)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_TRY(check_tensor(tensor, blocks, "blocks"));
    if (num_parts > 0)
        DTI_TRY(dti_not_null(parts, "parts"));
    DTI_TRY(dti_split_check(tensor, parts, num_parts, r->crew->devices));
    static const uint32_t none[1] = { 0 }; /* a scalar has no dimension to cut */
    return dti_devices_copy(r, tensor, num_parts > 0 ? parts : none, 0, r->crew->devices, blocks);
}

ditto_status ditto_replicate(ditto_replica *self, const ditto_tensor *tensor, ditto_tensor *copies)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_TRY(check_tensor(tensor, copies, "copies"));
    return dti_devices_copy(r, tensor, NULL, 0, r->crew->devices, copies);
}

ditto_status ditto_assign_to_logical_device(ditto_replica *self, const ditto_tensor *tensor, uint32_t device,
                                            ditto_tensor *placed)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_TRY(check_tensor(tensor, placed, "placed"));
    if (device >= r->crew->devices)
        return DTI_FAIL(DITTO_ERR_RANGE, "logical device %u does not exist: replica %u has %u", device, r->id,
                        r->crew->devices);
    return dti_devices_copy(r, tensor, NULL, device, 1, placed);
}
