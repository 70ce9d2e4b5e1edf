/* src/base/stack.c - see stack.h. */
#include "base/stack.h"

#include <pthread.h>
#include <stdint.h>

#define LARGEST ((uintptr_t)1 << 30) /* bytes of a stack that are looked at; most data is farther away */

/* The bounds of the calling thread's stack. `high` is 0 until they have been read. */
static _Thread_local uintptr_t low, high;

static void find_bounds(void)
{
    pthread_attr_t attributes;
    void *start;
    size_t size;
    low = high = 1;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &start, &size) == 0) {
        low = (uintptr_t)start;
        high = low + size;
    }
    pthread_attr_destroy(&attributes);
}

bool dti_is_gone_below(const void *frame, const void *data)
{
    uintptr_t here = (uintptr_t)frame, at = (uintptr_t)data;
    if (at >= here || here - at > LARGEST) /* stacks grow downwards */
        return false;
    if (high == 0)
        find_bounds();
    return here >= low && here < high && at >= low;
}
