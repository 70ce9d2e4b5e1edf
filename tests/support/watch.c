/* tests/support/watch.c - see support.h. */
#include "support/support.h"

#include <stdatomic.h>
#include <stddef.h>

static const void *_Atomic watched;
static _Atomic bool freed;

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
    if (memory != NULL && memory == atomic_load(&watched))
        atomic_store(&freed, true);
    __real_free(memory);
}

void watch_free(const void *memory)
{
    atomic_store(&watched, NULL);
    atomic_store(&freed, false);
    atomic_store(&watched, memory);
}

bool was_freed(void)
{
    return atomic_load(&freed);
}
