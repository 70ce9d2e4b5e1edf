/* src/replicas/memory/arena.h - memory of one NUMA node, from a private jemalloc arena. */
#ifndef DTI_ARENA_H
#define DTI_ARENA_H

#include <ditto/strategy.h>

#include <stdbool.h>

/* An arena belongs to one replica. */
struct dti_arena;

/* -- The owning thread, or a helper of the replica while the owning thread waits for it -- */

/* Makes the arena on a NUMA node. `touch_pu` matters if only first touch places pages. It is a PU of the
 * node, to which a thread is bound while it touches new pages, or DTI_NO_PU. With DTI_NO_PU pages are on the
 * node of the thread that touches them. The bookkeeping of jemalloc for the arena comes from the first range
 * of the arena, so it is on the node too.
 *   DITTO_ERR_NO_MEMORY  the system refuses a range (RLIMIT_AS), or jemalloc refuses the arena
 *   DITTO_ERR_SYSTEM     `strict` is true and the kernel refuses mbind */
ditto_status dti_arena_create(uint32_t node_os, uint32_t touch_pu, bool strict, struct dti_arena **out);

/* Allocates uninitialised memory. `alignment` is a power of two or 0. The arena's thread cache is used, so
 * there is usually no lock. The only error is DITTO_ERR_NO_MEMORY. */
ditto_status dti_arena_alloc(struct dti_arena *arena, size_t bytes, size_t alignment, void **out);

/* Ties the pages of [memory, memory + bytes), which belong to a mapping of the caller's, to the node of the
 * arena, except a page that begins before `memory`. Does nothing if only first touch places pages. The only
 * error is DITTO_ERR_SYSTEM, if the arena is strict and the kernel refuses mbind. */
ditto_status dti_arena_bind(struct dti_arena *arena, void *memory, size_t bytes);

/* `memory` may be NULL. */
void dti_arena_free(struct dti_arena *arena, void *memory);

/* -- Any thread -- */

/* Frees memory without the arena's thread cache, which other threads than the owner may not use. `memory` may
 * be NULL. */
void dti_arena_free_remote(struct dti_arena *arena, void *memory);

/* Returns true if the address is in a range of the arena. */
bool dti_arena_has(const struct dti_arena *arena, const void *memory);
ditto_binding dti_arena_binding(const struct dti_arena *arena);

struct dti_arena_report {
    uint64_t mapped_bytes, resident_pages, remote_pages;
    int32_t first_page_node; /* -1 if it is unknown */
};

/* Asks the kernel for the node of each resident page (move_pages). It is slow, and made for reports. */
struct dti_arena_report dti_arena_inspect(const struct dti_arena *arena);

/* -- Any thread, when the owner has finished -- */

/* Frees the arena and all memory allocated from it. `arena` may be NULL. */
void dti_arena_destroy(struct dti_arena *arena);

#endif
