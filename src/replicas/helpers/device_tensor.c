/* src/replicas/helpers/device_tensor.c - copies a tensor or its blocks to devices. See device_tensor.h. */
#include "replicas/helpers/device_tensor.h"
#include "replicas/helpers/crew.h"
#include "replicas/helpers/remote_memory.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"

#include <string.h>

struct copy {
    const ditto_tensor *from;
    const uint32_t *parts; /* NULL if the whole tensor is copied */
    ditto_tensor to;
    bool done;
};

static ditto_status copy_on_device(uint32_t device, void *argument)
{
    struct copy *c = argument;
    (void)device;
    if (c->parts != NULL)
        dti_split_copy(c->from, c->parts, &c->to);
    else if (c->from->data != NULL)
        memcpy(c->to.data, c->from->data, ditto_tensor_bytes(c->from));
    c->done = true;
    return DITTO_OK;
}

static ditto_status allocate_all(struct dti_replica *r, struct copy *copies, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        DTI_TRY(dti_device_alloc(r, copies[i].to.device, ditto_tensor_bytes(&copies[i].to), DTI_CACHE_LINE,
                                 &copies[i].to.data));
    return DITTO_OK;
}

/* All devices copy at the same time. Device 0 is asked last, because the leader executes its copy inside the
 * call. */
static ditto_status copy_all(struct dti_replica *r, struct copy *copies, uint32_t count)
{
    ditto_status status = DITTO_OK;
    for (uint32_t i = count; i-- > 0;)
        dti_crew_ask(r, copies[i].to.device, copy_on_device, &copies[i]);
    for (uint32_t i = 0; i < count; i++)
        dti_crew_await(r, copies[i].to.device);
    for (uint32_t i = 0; i < count && status == DITTO_OK; i++)
        if (!copies[i].done)
            status = dti_team_stop_status(r->team);
    return status;
}

ditto_status dti_devices_copy(struct dti_replica *r, const ditto_tensor *from, const uint32_t *parts,
                              uint32_t first_device, uint32_t count, ditto_tensor *out)
{
    void *memory;
    if (dti_replica_is_forked(r))
        return dti_fail_forked();
    DTI_TRY(dti_arena_alloc(r->arena, count * sizeof(struct copy), 0, &memory));
    struct copy *copies = memory;
    for (uint32_t i = 0; i < count; i++) {
        copies[i] = (struct copy){ from, parts, parts != NULL ? dti_split_block(from, parts, i) : *from,
                                   false };
        copies[i].to.data = NULL;
        copies[i].to.device = first_device + i;
    }
    ditto_status status = allocate_all(r, copies, count);
    if (status == DITTO_OK)
        status = copy_all(r, copies, count);
    for (uint32_t i = 0; i < count; i++) {
        if (status == DITTO_OK)
            out[i] = copies[i].to;
        else
            dti_replica_free(r, copies[i].to.data);
    }
    dti_arena_free(r->arena, copies);
    return status;
}
