/* src/base/platform.h - C11 atomics, cache lines, and the pause of a spin loop. */
#ifndef DTI_PLATFORM_H
#define DTI_PLATFORM_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DTI_CACHE_LINE 64 /* bytes that move between cores together */
#define DTI_CACHE_LINE_PAIR \
    128 /* the adjacent-line prefetcher fetches pairs: words of different writers stay this far apart */

static inline void dti_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* `yield` is a nop on most cores; isb waits about as long as x86's pause */
#endif
}

/* Asks for the lines of [to, to + bytes) as their only owner. Stores to lines that another core has wait for one another, requests
 * do not: 2 replicas, 8 KiB into two other buffers, 4.3 us without, 2.1 with. A hint. Through the built-in it would be a request to
 * read, and cost a second one, unless the compiler is told of a processor that has the instruction; all that matter do, for
 * the others it is a no-op. */
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

/* What libditto shows to libraries of its own version that stand beside it (libditto-hdf5), and to nobody
 * else: src/ditto.map lists it once more. */

#define DTI_COMPANION __attribute__((visibility("default")))

/* What the processor can do. */

struct dti_cpu {
    bool avx2,
        avx512; /* avx512: with the byte, double-word and vector-length extensions that servers have had since 2017 */
    bool crc32c; /* an instruction for it that this library was compiled to use: SSE 4.2, or that of ARMv8 */
};
/* Any thread; asked of the processor (and of the operating system's saved state) at each call: cheap, no state. */
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
    cpu.crc32c = true; /* the compiler was told so, and uses it on its own */
#endif
    return cpu;
}

/* Before a loop: no iteration needs the result of another one, because its arrays are equal or disjoint. */
#if defined(__clang__)
#define DTI_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define DTI_INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
