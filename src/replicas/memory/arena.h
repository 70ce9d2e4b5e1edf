/* src/replicas/memory/arena.h - memory of one NUMA node: a private jemalloc arena over ranges tied to the node. */
#ifndef DTI_ARENA_H
#define DTI_ARENA_H

#include <ditto/strategy.h> /* ditto_binding */

#include "replicas/machine/mask.h"

struct dti_arena; /* belongs to one replica */

/* -- The owning thread -- */

/* Makes the arena, for a thread that is bound to the node, or, where it may leave it, one that first touch binds to `touch_pu`
 * meanwhile (DTI_NO_PU: not needed); jemalloc's own bookkeeping for it comes from its first range, so that lies on the node too.
 * Errors: NO_MEMORY (the system gives no range: RLIMIT_AS), SYSTEM (jemalloc refused). */
ditto_status dti_arena_create(uint32_t node_os, uint32_t touch_pu, bool strict, struct dti_arena **out);

/* Uninitialised memory; `alignment` a power of two or 0. The owner uses its thread cache, without lock. NO_MEMORY. */
ditto_status dti_arena_alloc(struct dti_arena *arena, size_t bytes, size_t alignment, void **out);
void dti_arena_free(struct dti_arena *arena, void *memory); /* NULL is allowed */

/* -- Any thread -- */

/* What another thread gives back: past the owner's thread cache. NULL is allowed. */
void dti_arena_free_remote(struct dti_arena *arena, void *memory);
bool dti_arena_has(const struct dti_arena *arena,
                   const void *memory); /* is it one of the arena's addresses? */
ditto_binding dti_arena_binding(const struct dti_arena *arena);

struct dti_arena_report {
    uint64_t mapped_bytes, resident_pages, remote_pages;
    int32_t first_page_node; /* -1: unknown */
};
/* Asks the kernel for the node of each resident page (move_pages). For reports. */
struct dti_arena_report dti_arena_inspect(const struct dti_arena *arena);

/* -- Any thread, when the owner has finished -- */
void dti_arena_destroy(struct dti_arena *arena); /* and everything allocated from it. NULL is allowed */

#endif
