/* src/base/platform.h - C11 atomics, cache lines, processor features, and the pause of a spin loop. */
#ifndef DTI_PLATFORM_H
#define DTI_PLATFORM_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of bytes that move between cores together. */
#define DTI_CACHE_LINE 64

/* Words that different threads write stay this many bytes apart, because the adjacent-line prefetcher fetches
 * pairs of cache lines. */
#define DTI_CACHE_LINE_PAIR 128

/* The number of bytes of a huge page. */
#define DTI_HUGE_PAGE_BYTES ((size_t)2 << 20)

static inline void dti_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    /* `yield` does nothing on most cores. `isb` takes about as long as the pause instruction of x86. */
    __asm__ volatile("isb");
#endif
}

/* Requests exclusive ownership of the cache lines of [to, to + bytes). This is a hint and changes no data.
 *
 * Stores to lines that another core owns wait for one another, but requests for lines do not. When 2 replicas
 * store 8 KiB into two buffers of other replicas, this takes 4.3 us without the requests and 2.1 us with
 * them.
 *
 * On x86 the instruction is written as assembler code. __builtin_prefetch would become a prefetch for
 * reading, unless the compiler targets a processor that has prefetchw, and the store would then request the
 * line a second time. All processors of interest have prefetchw, and on the others it does nothing. */
static inline void dti_fetch_to_write(const void *to, size_t bytes)
{
    const char *at = (const char *)to - (uintptr_t)to % DTI_CACHE_LINE;
    for (size_t i = 0; i < (uintptr_t)to % DTI_CACHE_LINE + bytes; i += DTI_CACHE_LINE)
#if defined(__x86_64__)
        __asm__ volatile("prefetchw %0" : : "m"(at[i]));
#else
        __builtin_prefetch(at + i, 1);
#endif
}

/* Marks a function or variable that libditto exports for companion libraries of the same version
 * (libditto-hdf5). Programs must not use it. src/ditto.map lists these symbols under DITTO_PRIVATE. */
#define DTI_COMPANION __attribute__((visibility("default")))

/* The processor features that the library uses. */
struct dti_cpu {
    bool avx2;

    /* AVX-512 with the byte, double-word and vector-length extensions (BW, DQ, VL). Servers have had these
     * since 2017. */
    bool avx512;

    /* The processor has a CRC-32C instruction (SSE 4.2, or ARMv8 if the compiler targets it). */
    bool crc32c;
};

/* Returns the features of this processor whose registers the operating system saves. Each call asks the
 * processor, which is cheap. Any thread may call it. */
static inline struct dti_cpu dti_cpu_features(void)
{
    struct dti_cpu cpu = { 0 };
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    cpu.avx2 = __builtin_cpu_supports("avx2") != 0;
    cpu.avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                 __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
    cpu.crc32c = __builtin_cpu_supports("sse4.2") != 0;
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
    /* The compiler targets processors that have the instruction, so there is nothing to ask. */
    cpu.crc32c = true;
#endif
    return cpu;
}

/* Stands before a loop. It promises that no iteration needs the result of another one, because the arrays of
 * the loop are equal or disjoint. */
#if defined(__clang__)
#define DTI_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define DTI_INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
