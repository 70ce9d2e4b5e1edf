/* src/sync/kernels/stream.c - copies with SSE2's non-temporal stores, which every x86-64 processor has. */
#include "sync/kernels/kernel.h"

#include <stdint.h>

#if defined(__x86_64__)
#include <emmintrin.h>

#define LINE 64

/* Wider registers make no difference, because the speed is limited by the lines that are written to
 * memory. */
static void stream_lines(char *to, const char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += LINE) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(from + i));
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(from + i + 16));
        __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(from + i + 32));
        __m128i d = _mm_loadu_si128((const __m128i *)(const void *)(from + i + 48));
        _mm_stream_si128((__m128i *)(void *)(to + i), a);
        _mm_stream_si128((__m128i *)(void *)(to + i + 16), b);
        _mm_stream_si128((__m128i *)(void *)(to + i + 32), c);
        _mm_stream_si128((__m128i *)(void *)(to + i + 48), d);
    }
}

void dti_stream(void *to, const void *from, size_t bytes)
{
    size_t head = (LINE - (uintptr_t)to % LINE) % LINE;
    head = head < bytes ? head : bytes;
    size_t lines = (bytes - head) / LINE * LINE;
    memcpy(to, from, head);
    stream_lines((char *)to + head, (const char *)from + head, lines);
    memcpy((char *)to + head + lines, (const char *)from + head + lines, bytes - head - lines);
}

void dti_stream_end(void)
{
    /* Non-temporal stores are weakly ordered, and the release that follows does not order them. */
    _mm_sfence();
}
#else
void dti_stream(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

void dti_stream_end(void) {}
#endif
