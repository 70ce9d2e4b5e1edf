/* src/sync/meeting/workspace.c - memory of a replica for collectives. See sync_state.h. */
#include "replicas/memory/arena.h"
#include "sync/meeting/sync_state.h"

#include <string.h>

void *dti_allocate_zeroed(struct dti_replica *r, size_t bytes)
{
    void *memory;
    if (dti_replica_alloc(r, bytes, DTI_CACHE_LINE_PAIR, &memory) != DITTO_OK)
        return NULL;
    return memset(memory, 0, bytes); /* first touch */
}

ditto_status dti_workspace_make(struct dti_replica *r, struct dti_workspace *workspace)
{
    uint32_t n = r->num_replicas;
    if ((workspace->source = dti_allocate_zeroed(r, n * sizeof *workspace->source)) == NULL ||
        (workspace->destination = dti_allocate_zeroed(r, n * sizeof *workspace->destination)) == NULL)
        return DITTO_ERR_NO_MEMORY;
    /* The scratch memory is not zeroed, so that only the pages that are used are touched. */
    return dti_replica_alloc(r, DTI_WORKSPACE_BYTES, DTI_CACHE_LINE_PAIR, &workspace->scratch);
}

void dti_workspace_free(struct dti_replica *r, struct dti_workspace *workspace)
{
    dti_arena_free_remote(r->arena, workspace->source);
    dti_arena_free_remote(r->arena, workspace->destination);
    dti_arena_free_remote(r->arena, workspace->scratch);
}
