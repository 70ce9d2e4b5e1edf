/* src/base/stack.h - noticing local memory of a function that has returned. */
#ifndef DTI_STACK_H
#define DTI_STACK_H

#include <stdbool.h>

/* Whether `data` lies in the calling thread's stack below the caller's frame. If so, it is a local array of a
 * function that has returned. The answer is false on a stack that is not the thread's own, such as a
 * coroutine's. */
#define DTI_IS_GONE(data) dti_is_gone_below(__builtin_frame_address(0), (data))
bool dti_is_gone_below(const void *frame, const void *data);

#endif
