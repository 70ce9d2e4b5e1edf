/* tests/watch.h - whether something was given back to the allocator. The linker puts this free before the C
 * library's, in the test program and in what it links statically. */
#ifndef WATCH_H
#define WATCH_H

#include <stdbool.h>

/* From now on this address is watched, and no other. The handle itself: the first free of it counts. */
void watch_free(const void *memory);
bool was_freed(void);

#endif
