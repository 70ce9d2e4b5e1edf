/* tests/schedules/world.c - the memory of the program under test: how it is found, saved and restored.
 *
 * Restoring costs a copy of the pages that have changed. The hooks of plain and atomic accesses and the seams
 * see all writes to the heap but those of the C library, whose results (texts) are never read back. Stacks
 * and global variables are copied whole. */
#include "engine.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SAVED_MEMORY  ((char *)0x110000000000)
#define SAVED_GLOBALS (SAVED_MEMORY + MEMORY_BYTES)
enum { MOST_GLOBALS_BYTES = 4 << 20 };

static void *map(void *at, size_t bytes)
{
    void *found = mmap(at, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (found != at) {
        fprintf(stderr, "schedules: %zu bytes at %p cannot be mapped\n", bytes, at);
        exit(2);
    }
    return found;
}

/* Finds the executable's variables that may change, and its thread-locals. */
static int look_at_executable(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    uintptr_t read_only_end = 0;
    (void)bytes, (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
            read_only_end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    W->code = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + p->p_vaddr, end = begin + p->p_memsz;
        if (p->p_type == PT_LOAD && (p->p_flags & PF_W) != 0) {
            begin = begin > read_only_end ? begin : (read_only_end + PAGE - 1) / PAGE * PAGE;
            W->globals = (char *)begin;
            W->globals_bytes = end - begin;
        }
        if (p->p_type == PT_TLS) {
            W->tls_block = info->dlpi_tls_data;
            W->tls_bytes = p->p_memsz;
            W->tls_image = (const void *)begin;
            W->tls_image_bytes = p->p_filesz;
        }
    }
    return 1; /* the executable comes first */
}

void world_begin(void)
{
    map(W, sizeof *W);
    map(MEMORY, MEMORY_BYTES);
    map(SAVED_MEMORY, MEMORY_BYTES + MOST_GLOBALS_BYTES);
    /* The lowest part of each stack is not accessible, so that no fiber writes to the stack of another. */
    for (uint32_t f = 0; f < MOST_FIBERS; f++)
        mprotect(MEMORY + HEAP_BYTES + (size_t)f * STACK_BYTES, GUARD_BYTES, PROT_NONE);
    dl_iterate_phdr(look_at_executable, NULL);
    if (W->globals_bytes > MOST_GLOBALS_BYTES || W->tls_bytes > MOST_TLS_BYTES) {
        fprintf(stderr, "schedules: %zu bytes of variables and %zu of thread-locals are too many\n",
                W->globals_bytes, W->tls_bytes);
        exit(2);
    }
}

void world_touch(const volatile void *at, size_t bytes)
{
    if (!is_in_memory(at) || bytes == 0)
        return;
    size_t first = (size_t)((const volatile char *)at - MEMORY) / PAGE;
    size_t last = ((size_t)((const volatile char *)at - MEMORY) + bytes - 1) / PAGE;
    for (size_t page = first; page <= last; page++)
        W->dirty[page] = 1;
}

static char *stack_end(uint32_t fiber)
{
    return MEMORY + HEAP_BYTES + (size_t)(fiber + 1) * STACK_BYTES;
}

static void copy_stacks(const struct schedule *s, char *to, const char *from)
{
    for (uint32_t f = 0; f < MOST_FIBERS; f++)
        if (s->fiber[f].state != UNUSED && s->fiber[f].begun) {
            size_t first = (size_t)(s->fiber[f].stack_used - MEMORY), end = (size_t)(stack_end(f) - MEMORY);
            memcpy(to + first, from + first, end - first);
        }
}

static void forget_accesses(void)
{
    for (uint32_t i = 1; i <= W->now.cells; i++)
        W->shadow[W->touched_granule[i]] = 0;
    W->now.cells = W->now.histories = 0;
}

/* Everything that was done before happens before all schedules. */
void world_save(void)
{
    struct clocks all = { { 0 } };
    for (uint32_t f = 0; f < MOST_FIBERS; f++)
        clocks_add(&all, &W->now.fiber[f].before);
    forget_accesses();
    for (uint32_t f = 0; f < MOST_FIBERS; f++) {
        struct fiber *fiber = &W->now.fiber[f];
        fiber->before = fiber->view = all;
        memset(fiber->stale, 0, sizeof fiber->stale);
        fiber->has_fence = false;
        fiber->seq_cst_fence_at = 0;
        count_step(f); /* the next step is one of the schedules */
    }
    W->now.seq_cst = all;
    W->now.steps = W->now.switches = W->now.requests = 0;
    W->saved = W->now;
    memcpy(SAVED_MEMORY, MEMORY, W->now.heap_end);
    copy_stacks(&W->now, SAVED_MEMORY, MEMORY);
    memcpy(SAVED_GLOBALS, W->globals, W->globals_bytes);
    memcpy(W->saved_tls, W->tls, sizeof W->tls);
    memcpy(W->saved_allocated, W->allocated, sizeof W->allocated);
    memset(W->dirty, 0, sizeof W->dirty);
}

void world_restore(void)
{
    size_t pages = (W->now.heap_end + PAGE - 1) / PAGE;
    forget_accesses();
    for (size_t page = 0; page < pages; page++)
        if (W->dirty[page] != 0) {
            memcpy(MEMORY + page * PAGE, SAVED_MEMORY + page * PAGE, PAGE);
            W->dirty[page] = 0;
        }
    memcpy(W->allocated, W->saved_allocated, W->now.heap_end / 128 + 8);
    W->now = W->saved;
    copy_stacks(&W->now, MEMORY, SAVED_MEMORY);
    memcpy(W->globals, SAVED_GLOBALS, W->globals_bytes);
    for (uint32_t f = 0; f < MOST_FIBERS; f++)
        if (W->now.fiber[f].state != UNUSED)
            memcpy(W->tls[f], W->saved_tls[f], W->tls_bytes);
}
