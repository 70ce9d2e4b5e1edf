/* src/base/atomics.h - C11 atomics, cache lines, and the pause of a spin loop. */
#ifndef DTI_ATOMICS_H
#define DTI_ATOMICS_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DTI_LINE 64 /* bytes that move between cores together */
#define DTI_LINE_PAIR \
    128 /* the adjacent-line prefetcher fetches pairs: words of different writers stay this far apart */

static inline void dti_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* `yield` is a nop on most cores; isb waits about as long as x86's pause */
#endif
}

#endif
