/* bench/loops.h - the hand-written loops of bounds and of the OpenMP peer. A loop makes a range of the result
 * of a collective from the inputs, and writes it to the replicas that receive it. Loops handle no errors and
 * do not synchronize. */
#ifndef LOOPS_H
#define LOOPS_H

#include "work.h"

/* What a thread does between two looks at a word of another one. */
#if defined(__x86_64__)
#include <immintrin.h>
#define PAUSE() _mm_pause()
#else
#define PAUSE() __asm__ volatile("" ::: "memory")
#endif

/* Prefetches a line for writing. It is assembler code, because __builtin_prefetch is a prefetch for reading
 * if the compiler may not assume that the processor has prefetchw. */
static inline void fetch_to_write(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

/* How a loop reads and writes. */
enum variant {
    /* Ordinary stores. Two inputs are added in registers, in one pass. */
    VARIANT_PLAIN,

    /* The same, but f32 is added with vectors of half the length. */
    VARIANT_HALF,

    /* Eight inputs are added in registers, in one pass, and written to eight results. */
    VARIANT_WIDE,

    /* Inputs are added in a block in the first-level cache, which is then copied with ordinary stores. */
    VARIANT_BLOCKS,

    /* Streaming stores, which bypass the caches. */
    VARIANT_STREAM,

    /* The lines of the next block are prefetched while this block is added up. */
    VARIANT_AHEAD,

    /* Streaming stores, and the inputs of the next block are prefetched. */
    VARIANT_STREAM_AHEAD,

    /* Like VARIANT_PLAIN. The lines of the results are prefetched before they are written. */
    VARIANT_TWO_AHEAD,

    /* All inputs are added in registers, a few vectors at a time, which are then written to one result after
     * the other. */
    VARIANT_REGISTERS,

    /* The same. The lines of the results are prefetched for writing before they are read or written. */
    VARIANT_REGISTERS_AHEAD,

    /* Lines that other replicas will read are moved out of the caches of this core. */
    VARIANT_DEMOTE,
};
bool variant_exists(enum variant variant); /* on this CPU */

/* Returns whether the loops can do the work. They can do SUM of f32, f64, i32 and bf16, and copies of any
 * dtype. */
bool loops_can(const struct work *work);

/* Returns the range of the result that replica `id` owns. It begins at a cache line, and all lines are whole
 * except perhaps the last of the result. */
struct span loops_share(const struct work *work, uint32_t id);

/* Returns the intersection of two ranges. */
struct span loops_common(struct span a, struct span b);

/* Makes bytes `s` of the result from in[replicas], and writes them to replica `me`, or, if `everyone` is
 * true, to all replicas that receive them. Offsets in an input are those in the source of that replica. */
void loops_produce(enum variant variant, const struct work *work, const char *const *in,
                   struct worker *workers, struct span s, uint32_t me, bool everyone);

/* Adds bytes `s` of `ins` inputs, and writes the sums to `outs` results.
 * An input may be one of the results. */
void loops_sum(enum variant variant, ditto_dtype dtype, char *const *out, uint32_t outs,
               const char *const *in, uint32_t ins, struct span s);

/* Copies bytes `s`. */
void loops_copy(enum variant variant, char *out, const char *in, struct span s);

/* Sets `in` to the sources of all replicas. */
void loops_sources(const struct work *work, const struct worker *workers, const char **in);

/* The part of replica `id` in a collective, which it does between two barriers. If results are whole, each
 * replica makes the range that it owns for all replicas that receive it. In an all-gather, each replica
 * writes its part to all others, and in a gather to the root. In a reduce-scatter, a scatter and an
 * all-to-all, each replica makes its own result. */
void loops_collective(const struct work *work, struct worker *workers, uint32_t id);

/* Moves lines to the cache that all cores share. It does nothing if the CPU has no such instruction. */
void demote(const void *bytes, size_t count);

#endif
