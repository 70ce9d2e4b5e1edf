/* src/replicas/helpers/remote_memory.c - see remote_memory.h. */
#include "replicas/helpers/remote_memory.h"
#include "replicas/helpers/crew.h"
#include "replicas/machine/affinity.h"
#include "replicas/team/stopping.h"
#include "replicas/team/team.h"

#include <stdlib.h>

struct dti_remote_memory {
    uint32_t node;

    /* NULL until it is needed for the first time. */
    struct dti_arena *arena;
    struct dti_remote_memory *next;
};

/* Returns the entry of the node, which it adds if there is none. Returns NULL if there is no memory. */
static struct dti_remote_memory *find(struct dti_replica *r, uint32_t node)
{
    struct dti_remote_memory *at = r->remote_memory;
    while (at != NULL && at->node != node)
        at = at->next;
    if (at == NULL && (at = calloc(1, sizeof *at)) != NULL) {
        *at = (struct dti_remote_memory){ .node = node, .next = r->remote_memory };
        r->remote_memory = at;
    }
    return at;
}

struct allocation_request {
    struct dti_remote_memory *where;
    size_t bytes, alignment;
    bool strict;

    /* True when the device's thread has tried to allocate. `status` is then its result. */
    bool tried;
    void *memory;
    ditto_status status;
    ditto_error error; /* of the device's thread */
};

/* Runs on the device's thread, which touches the ranges that it maps. Only one device at a time uses an
 * arena, because the leader waits for each. The function always returns DITTO_OK, because a failure must not
 * stop the run. The leader gets the status from the request. */
static ditto_status allocate_on_device(uint32_t device, void *argument)
{
    struct allocation_request *w = argument;
    (void)device;
    w->tried = true;
    w->status = DITTO_OK;
    if (w->where->arena == NULL)
        w->status = dti_arena_create(w->where->node, DTI_NO_PU, w->strict, &w->where->arena);
    if (w->status == DITTO_OK)
        w->status = dti_arena_alloc(w->where->arena, w->bytes, w->alignment, &w->memory);
    if (w->status != DITTO_OK)
        w->error = *dti_error_get();
    return DITTO_OK;
}

ditto_status dti_device_alloc(struct dti_replica *r, uint32_t device, size_t bytes, size_t alignment,
                              void **out)
{
    uint32_t node = r->crew->device[device].pu.memory_node;
    if (node == r->pu.memory_node)
        return dti_arena_alloc(r->arena, bytes, alignment, out);
    struct allocation_request request = { .where = find(r, node),
                                          .bytes = bytes,
                                          .alignment = alignment,
                                          .strict = dti_team_options(r->team)->strict_memory };
    if (request.where == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for an arena on NUMA node %u", node);
    dti_crew_ask(r, device, allocate_on_device, &request);
    dti_crew_await(r, device);
    if (!request.tried)
        return dti_team_stop_status(r->team);
    if (request.status != DITTO_OK)
        dti_error_set(&request.error);
    *out = request.memory;
    return request.status;
}

static ditto_status arena_on(struct dti_replica *r, uint32_t node, struct dti_arena **out)
{
    *out = r->arena;
    if (node == r->pu.memory_node)
        return DITTO_OK;
    struct dti_remote_memory *where = find(r, node);
    if (where == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for an arena on NUMA node %u", node);
    if (where->arena == NULL)
        DTI_TRY(dti_arena_create(node, DTI_NO_PU, dti_team_options(r->team)->strict_memory, &where->arena));
    *out = where->arena;
    return DITTO_OK;
}

ditto_status dti_node_alloc(struct dti_replica *r, uint32_t node, size_t bytes, size_t alignment, void **out)
{
    struct dti_arena *arena;
    DTI_TRY(arena_on(r, node, &arena));
    return dti_arena_alloc(arena, bytes, alignment, out);
}

ditto_status dti_node_bind(struct dti_replica *r, uint32_t node, void *memory, size_t bytes)
{
    struct dti_arena *arena;
    DTI_TRY(arena_on(r, node, &arena));
    return dti_arena_bind(arena, memory, bytes);
}

static struct dti_arena *arena_of(const struct dti_replica *r, const void *memory)
{
    for (const struct dti_remote_memory *at = r->remote_memory; at != NULL; at = at->next)
        if (at->arena != NULL && dti_arena_has(at->arena, memory))
            return at->arena;
    return r->arena;
}

void dti_replica_free_remote(struct dti_replica *r, void *memory)
{
    dti_arena_free_remote(arena_of(r, memory), memory);
}

void dti_replica_free(struct dti_replica *r, void *memory)
{
    struct dti_arena *arena = arena_of(r, memory);
    if (arena == r->arena)
        dti_arena_free(arena, memory);
    else
        dti_arena_free_remote(arena, memory);
}

void dti_remote_memory_inspect(const struct dti_remote_memory *list, struct dti_arena_report *sum)
{
    for (; list != NULL; list = list->next)
        if (list->arena != NULL) {
            struct dti_arena_report one = dti_arena_inspect(list->arena);
            sum->mapped_bytes += one.mapped_bytes;
            sum->resident_pages += one.resident_pages;
            sum->remote_pages += one.remote_pages;
        }
}

void dti_remote_memory_free(struct dti_remote_memory *list)
{
    while (list != NULL) {
        struct dti_remote_memory *next = list->next;
        dti_arena_destroy(list->arena);
        free(list);
        list = next;
    }
}
