/* src/base/errors/user_call.h - a function of the user's is left by returning from it, and in no other way.
 *
 * A C++ exception that leaves a user's function, or the unwinding of pthread_exit and pthread_cancel, would
 * leave locks held and other replicas waiting for ever. Therefore the library's frame that called the
 * function ends the process. It writes one line to stderr that says which function was left. An exception
 * then reaches std::terminate, while the stack that threw it is still there for the program's handler and for
 * a debugger. The other ways to unwind abort.
 *
 * The frame is marked in the unwind tables alone: its personality routine is the library's, and its
 * language-specific data is the text that names the function. A call that returns pays nothing for the
 * mark. */
#ifndef DTI_USER_CALL_H
#define DTI_USER_CALL_H

#include "base/errors/status.h"

#include <stdbool.h>

/* An attribute of the function that calls the user's. It gives that function a frame of its own, so that the
 * mark belongs to this one call. */
#define DTI_GUARDED __attribute__((noinline))

/* Before the call, once in a block. `function_` is a string literal that names the user's function: "the
 * function given to ...". */
#define DTI_GUARD(function_)                                 \
    const char *const guard_function_ = dti_public_function; \
    DTI_GUARD_FRAME(function_)

/* After the call. The user's function may have called public functions, and errors would name those. The asm
 * keeps the compiler from jumping to the user's function, which would leave no frame of ours. */
#define DTI_GUARD_END()                \
    __asm__ volatile("" ::: "memory"); \
    dti_public_function = guard_function_

#if defined(__ELF__) && !defined(__arm__) /* 32-bit ARM has unwind tables of another form */
#define DTI_GUARD_FRAME(function_)                                      \
    __asm__ volatile(".pushsection .rodata.dti_guard,\"a\",@progbits\n" \
                     ".Ldti_guard%=:\n"                                 \
                     "\t.asciz \"" function_ "\"\n"                     \
                     "\t.popsection\n"                                  \
                     "\t.cfi_personality 0x1b, dti_guard_personality\n" \
                     "\t.cfi_lsda 0x1b, .Ldti_guard%=" ::               \
                         : "memory")
#else
#define DTI_GUARD_FRAME(function_) ((void)0)
#endif

/* Noticing local memory of a function that has returned. */

/* Whether `data` lies in the calling thread's stack below the caller's frame. If so, it is a local array of a
 * function that has returned. The answer is false on a stack that is not the thread's own, such as a
 * coroutine's. */
#define DTI_IS_GONE(data) dti_is_gone_below(__builtin_frame_address(0), (data))
bool dti_is_gone_below(const void *frame, const void *data);

#endif
