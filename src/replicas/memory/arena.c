/* src/replicas/memory/arena.c - a jemalloc arena whose extent hooks tie its ranges to a NUMA node.
 *
 * A range is one mapping with one mbind. jemalloc requests ranges of growing sizes and keeps them until the
 * arena is destroyed (opt.retain), so there are few ranges, however many allocations there are. If the
 * address-space limit refuses a range, jemalloc requests one of the size that it really needs. Ranges are
 * mapped with MAP_NORESERVE, so they use address space, and get pages when they are touched.
 *
 * If the kernel refuses mbind (as the default seccomp profile of containers does), it places a page on the
 * node of the thread that touches it first. The thread that maps a range, nearly always the owner, then
 * touches all of it before jemalloc can use any of it. Ranges then grow to at most 2 MiB, unless an
 * allocation needs more. Pages are never returned to the kernel, because the next thread that touches such a
 * page would place it anew. These ranges are whole huge pages. Without its own memory policy, a range and its
 * neighbour may be one mapping for the kernel. A huge page that the first touch of one range gets could
 * otherwise reach into the next range, which may belong to another node. */
#include "replicas/memory/arena.h"
#include "base/errors/status.h"
#include "replicas/machine/affinity.h"
#include "replicas/machine/numa_node.h"

#include <errno.h>
#include <jemalloc/jemalloc.h>
#include <numaif.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Functions of the private copy of jemalloc (rename_jemalloc.sh). */
void *dti_je_mallocx(size_t size, int flags);
void dti_je_dallocx(void *memory, int flags);
int dti_je_mallctl(const char *name, void *old, size_t *old_length, void *new, size_t new_length);

/* Options of the private jemalloc. The symbol is weak in jemalloc, so this definition is used, and the host's
 * MALLOC_CONF is not read. Automatic thread caches are off, because each thread that frees memory would get
 * one. There is one automatic arena, which only has jemalloc's own bookkeeping. */
const char *dti_je_malloc_conf = "tcache:false,narenas:1,background_thread:false,abort_conf:false";

/* The size of a huge page. With first touch, the sizes and addresses of ranges are multiples of it. */
#define TOUCH_CHUNK_BYTES ((size_t)2 << 20)

/* The number of arenas of jemalloc, which keeps two of them for itself. */
#define JEMALLOC_ARENAS 4095
#define MOST_ARENAS     (JEMALLOC_ARENAS - 2)

struct dti_node_range {
    void *start;
    size_t bytes;
};

struct dti_arena {
    /* This is the first member, because jemalloc passes its address to the hooks. */
    extent_hooks_t hooks;
    uint32_t node_os;

    /* The PU on which first touch must happen, or DTI_NO_PU for the PU on which the thread runs. */
    uint32_t touch_pu;
    bool strict;
    unsigned index, tcache;

    /* A ditto_binding. relaxed: reports read it, and it guards no other data. */
    _Atomic int binding;

    /* The errno of the last range that the system refused, for messages. relaxed: the owner reads the number
     * of its own call, or that of another refusal of the same arena. */
    _Atomic int refused_errno;

    /* Guards the ranges, because the bookkeeping of a free on another thread may map a range too. */
    pthread_mutex_t lock;
    struct dti_node_range *ranges;
    size_t ranges_count, ranges_capacity;
};

/* -- hooks -- */

/* Ties a new range to the node. Returns false, and sets the binding to FIRST_TOUCH, if the kernel refuses
 * mbind. */
static bool bind_range(struct dti_arena *a, void *start, size_t bytes)
{
    unsigned long mask[(DTI_MAX_NODES + 63) / 64] = { 0 };
    int requested = a->strict ? DITTO_BINDING_BOUND : DITTO_BINDING_PREFERRED;
    if (a->node_os < DTI_MAX_NODES)
        mask[a->node_os / 64] = 1ul << a->node_os % 64;
    if (a->node_os < DTI_MAX_NODES &&
        mbind(start, bytes, a->strict ? MPOL_BIND : MPOL_PREFERRED, mask, DTI_MAX_NODES, 0) == 0) {
        atomic_store_explicit(&a->binding, requested, memory_order_relaxed);
        return true;
    }
    atomic_store_explicit(&a->binding, DITTO_BINDING_FIRST_TOUCH, memory_order_relaxed);
    return false;
}

/* Touches each page of a range. The calling thread is bound to touch_pu meanwhile, if there is one. */
static void touch(const struct dti_arena *a, void *start, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct dti_mask before, target;
    bool moved = false;
    if (a->touch_pu != DTI_NO_PU && dti_affinity_try_get(&before)) {
        dti_mask_clear(&target);
        dti_mask_add(&target, a->touch_pu);
        moved = dti_pin_try_to(&target);
    }
    for (size_t at = 0; at < bytes; at += page)
        ((volatile char *)start)[at] = 0;
    if (moved)
        dti_affinity_restore(&before);
}

/* Tries mbind before the first range is made, because ranges for first touch are made in another way. */
static void ask_for_mbind(struct dti_arena *a)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int kept_errno = errno;
    void *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                        0);
    if (memory != MAP_FAILED) {
        (void)bind_range(a, memory, page);
        munmap(memory, page);
    }
    errno = kept_errno;
}

static bool is_first_touch(const struct dti_arena *a)
{
    return atomic_load_explicit(&a->binding, memory_order_relaxed) == DITTO_BINDING_FIRST_TOUCH;
}

static bool record_range(struct dti_arena *a, void *start, size_t bytes)
{
    bool done = true;
    pthread_mutex_lock(&a->lock);
    if (a->ranges_count == a->ranges_capacity) {
        size_t capacity = a->ranges_capacity != 0 ? 2 * a->ranges_capacity : 8;
        /* This is the host's realloc, which does not use the arena. */
        struct dti_node_range *grown = realloc(a->ranges, capacity * sizeof *grown);
        if (grown != NULL) {
            a->ranges = grown;
            a->ranges_capacity = capacity;
        }
        done = grown != NULL;
    }
    if (done)
        a->ranges[a->ranges_count++] = (struct dti_node_range){ start, bytes };
    pthread_mutex_unlock(&a->lock);
    return done;
}

/* Maps `bytes` bytes at a multiple of `alignment`. It maps more than that, and unmaps the two ends. Returns
 * NULL and sets errno if the system refuses. */
static void *map_aligned(size_t bytes, size_t alignment)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), slack = alignment > page ? alignment - page : 0, padded;
    if (__builtin_add_overflow(bytes, slack, &padded)) {
        errno = ENOMEM;
        return NULL;
    }
    char *raw = mmap(NULL, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                     0);
    if (raw == MAP_FAILED)
        return NULL;
    char *start = (char *)(((uintptr_t)raw + slack) / alignment * alignment);
    if (start > raw)
        munmap(raw, (size_t)(start - raw));
    if (start + bytes < raw + padded)
        munmap(start + bytes, (size_t)(raw + padded - (start + bytes)));
    return start;
}

static void *hook_alloc(extent_hooks_t *hooks, void *wanted, size_t bytes, size_t alignment, bool *zero,
                        bool *commit, unsigned index)
{
    struct dti_arena *a = (struct dti_arena *)hooks;
    int kept_errno = errno;
    size_t mapped = bytes;
    (void)index;
    if (is_first_touch(a)) {
        mapped = (bytes + TOUCH_CHUNK_BYTES - 1) / TOUCH_CHUNK_BYTES * TOUCH_CHUNK_BYTES;
        alignment = alignment > TOUCH_CHUNK_BYTES ? alignment : TOUCH_CHUNK_BYTES;
    }
    /* Growing in place is not supported. */
    void *start = wanted == NULL ? map_aligned(mapped, alignment) : NULL;
    if (start != NULL && !record_range(a, start, mapped)) {
        munmap(start, mapped);
        errno = ENOMEM;
        start = NULL;
    }
    if (start != NULL) {
        if (!bind_range(a, start, mapped))
            touch(a, start, mapped);
        *zero = *commit = true; /* new anonymous pages are both */
    } else if (wanted == NULL) {
        atomic_store_explicit(&a->refused_errno, errno, memory_order_relaxed);
    }
    errno = kept_errno;
    return start;
}

/* Refuses to free an extent, by returning true. Extents are kept until the arena is destroyed. */
static bool hook_dalloc(extent_hooks_t *hooks, void *start, size_t bytes, bool committed, unsigned index)
{
    return (void)hooks, (void)start, (void)bytes, (void)committed, (void)index, true;
}

/* Does nothing, because dti_arena_destroy unmaps all ranges. */
static void hook_destroy(extent_hooks_t *hooks, void *start, size_t bytes, bool committed, unsigned index)
{
    (void)hooks, (void)start, (void)bytes, (void)committed, (void)index;
}

/* Returns pages to the kernel. They read as zero afterwards, and the range keeps its memory policy. The
 * result true means that this was not done. */
static bool hook_purge(extent_hooks_t *hooks, void *start, size_t bytes, size_t offset, size_t length,
                       unsigned index)
{
    struct dti_arena *a = (struct dti_arena *)hooks;
    int kept_errno = errno;
    (void)bytes, (void)index;
    if (is_first_touch(a))
        return true;
    bool failed = madvise((char *)start + offset, length, MADV_DONTNEED) != 0;
    errno = kept_errno;
    return failed;
}

static bool hook_split(extent_hooks_t *hooks, void *start, size_t bytes, size_t a, size_t b, bool committed,
                       unsigned index)
{
    return (void)hooks, (void)start, (void)bytes, (void)a, (void)b, (void)committed, (void)index, false;
}

static bool hook_merge(extent_hooks_t *hooks, void *a, size_t a_bytes, void *b, size_t b_bytes,
                       bool committed, unsigned index)
{
    return (void)hooks, (void)a, (void)a_bytes, (void)b, (void)b_bytes, (void)committed, (void)index, false;
}

static const extent_hooks_t hooks_table = {
    .alloc = hook_alloc,
    .dalloc = hook_dalloc,
    .destroy = hook_destroy,
    .purge_forced = hook_purge,
    .split = hook_split,
    .merge = hook_merge,
    /* The hooks for commit, decommit and lazy purge are NULL, which means that they are not supported. */
};

/* -- arena -- */

static void control(unsigned index, const char *what, void *new, size_t new_bytes)
{
    char name[64];
    snprintf(name, sizeof name, "arena.%u.%s", index, what);
    dti_je_mallctl(name, NULL, NULL, new, new_bytes); /* fails only if the arena does not exist */
}

/* Returns true if jemalloc has given out all its arenas. It counts arenas that were destroyed, and gives them
 * out before new ones. */
static bool all_arenas_are_used(void)
{
    unsigned arenas = 0;
    size_t length = sizeof arenas;
    return dti_je_mallctl("arenas.narenas", &arenas, &length, NULL, 0) == 0 && arenas >= JEMALLOC_ARENAS;
}

ditto_status dti_arena_create(uint32_t node_os, uint32_t touch_pu, bool strict, struct dti_arena **out)
{
    struct dti_arena *a = calloc(1, sizeof *a);
    int refused_errno;
    if (a == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for an arena");
    a->hooks = hooks_table;
    a->node_os = node_os;
    a->touch_pu = touch_pu;
    a->strict = strict;
    atomic_init(&a->binding, DITTO_BINDING_UNKNOWN);
    atomic_init(&a->refused_errno, 0);
    pthread_mutex_init(&a->lock, NULL);
    ask_for_mbind(a);
    extent_hooks_t *hooks = &a->hooks;
    size_t length = sizeof a->index;
    if (dti_je_mallctl("arenas.create", &a->index, &length, &hooks, sizeof(void *)) != 0)
        goto undo_arena;
    length = sizeof a->tcache;
    if (dti_je_mallctl("tcache.create", &a->tcache, &length, NULL, 0) != 0)
        goto undo_index;
    /* Keeps the ranges small if they must be touched at once. */
    size_t most = TOUCH_CHUNK_BYTES;
    if (is_first_touch(a))
        control(a->index, "retain_grow_limit", &most, sizeof most);
    if (strict && is_first_touch(a)) {
        dti_arena_destroy(a);
        return DTI_FAIL(DITTO_ERR_SYSTEM,
                        "strict memory on NUMA node %u: the kernel refuses mbind (a container's seccomp "
                        "profile?), so nothing can be bound; use DITTO_MEMORY_PREFERRED",
                        node_os);
    }
    *out = a;
    return DITTO_OK;
undo_index:
    control(a->index, "destroy", NULL, 0);
undo_arena:
    refused_errno = atomic_load_explicit(&a->refused_errno, memory_order_relaxed);
    for (size_t i = 0; i < a->ranges_count; i++)
        munmap(a->ranges[i].start, a->ranges[i].bytes);
    pthread_mutex_destroy(&a->lock);
    free(a->ranges);
    free(a);
    if (refused_errno == 0 && all_arenas_are_used())
        return DTI_FAIL(DITTO_ERR_NO_MEMORY,
                        "no arena on NUMA node %u: the process has memory for %d replicas and threads that "
                        "use the default strategy, which is the most; end some threads, or do not call "
                        "functions of replicas on all of them",
                        node_os, MOST_ARENAS);
    return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, refused_errno,
                          "no arena on NUMA node %u: the system refused to map memory; look at RLIMIT_AS "
                          "(ulimit -v) and vm.max_map_count",
                          node_os);
}

void dti_arena_destroy(struct dti_arena *a)
{
    if (a == NULL)
        return;
    dti_je_mallctl("tcache.destroy", NULL, NULL, &a->tcache, sizeof a->tcache);
    control(a->index, "destroy", NULL, 0);
    for (size_t i = 0; i < a->ranges_count; i++)
        munmap(a->ranges[i].start, a->ranges[i].bytes);
    pthread_mutex_destroy(&a->lock);
    free(a->ranges);
    free(a);
}

ditto_status dti_arena_alloc(struct dti_arena *a, size_t bytes, size_t alignment, void **out)
{
    int flags = MALLOCX_ARENA(a->index) | MALLOCX_TCACHE(a->tcache);
    if (alignment > 1)
        flags |= MALLOCX_LG_ALIGN(__builtin_ctzll(alignment));
    void *memory = bytes < PTRDIFF_MAX ? dti_je_mallocx(bytes != 0 ? bytes : 1, flags) : NULL;
    if (memory == NULL)
        return DTI_FAIL_ERRNO(
            DITTO_ERR_NO_MEMORY, atomic_load_explicit(&a->refused_errno, memory_order_relaxed),
            "%zu bytes on NUMA node %u: the system refused to map memory; look at RLIMIT_AS "
            "(ulimit -v), vm.max_map_count and vm.overcommit_memory",
            bytes, a->node_os);
    *out = memory;
    return DITTO_OK;
}

ditto_status dti_arena_bind(struct dti_arena *a, void *memory, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = (uintptr_t)memory + bytes;
    uintptr_t first = ((uintptr_t)memory + page - 1) / page * page;
    if (first >= end || is_first_touch(a) || bind_range(a, (void *)first, end - first) || !a->strict)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_SYSTEM, "strict memory on NUMA node %u: the kernel refuses mbind of %zu bytes",
                    a->node_os, bytes);
}

void dti_arena_free(struct dti_arena *a, void *memory)
{
    if (memory != NULL)
        dti_je_dallocx(memory, MALLOCX_TCACHE((int)a->tcache));
}

void dti_arena_free_remote(struct dti_arena *a, void *memory)
{
    (void)a; /* jemalloc finds the arena of a block by its address */
    if (memory != NULL)
        dti_je_dallocx(memory, MALLOCX_TCACHE_NONE);
}

bool dti_arena_has(const struct dti_arena *arena, const void *memory)
{
    struct dti_arena *a = (struct dti_arena *)arena; /* for the lock */
    bool found = false;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->ranges_count && !found; i++)
        found = (uintptr_t)memory - (uintptr_t)a->ranges[i].start < a->ranges[i].bytes;
    pthread_mutex_unlock(&a->lock);
    return found;
}

ditto_binding dti_arena_binding(const struct dti_arena *a)
{
    return (ditto_binding)atomic_load_explicit(&a->binding, memory_order_relaxed);
}

static void inspect_range(const struct dti_arena *a, const struct dti_node_range *range,
                          struct dti_arena_report *report)
{
    enum { BATCH = 512 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = range->bytes / page;
    report->mapped_bytes += range->bytes;
    for (size_t from = 0; from < pages; from += BATCH) {
        void *address[BATCH];
        int node[BATCH];
        size_t count = pages - from < BATCH ? pages - from : BATCH;
        for (size_t i = 0; i < count; i++)
            address[i] = (char *)range->start + (from + i) * page;
        if (dti_pages_nodes(address, node, count) != 0)
            return;
        for (size_t i = 0; i < count; i++) {
            if (node[i] < 0)
                continue;
            report->resident_pages++;
            report->remote_pages += (uint32_t)node[i] != a->node_os;
            if (report->first_page_node < 0)
                report->first_page_node = node[i];
        }
    }
}

struct dti_arena_report dti_arena_inspect(const struct dti_arena *arena)
{
    struct dti_arena *a = (struct dti_arena *)arena; /* for the lock */
    struct dti_arena_report report = { .first_page_node = -1 };
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->ranges_count; i++)
        inspect_range(a, &a->ranges[i], &report);
    pthread_mutex_unlock(&a->lock);
    return report;
}
