/* src/base/errors/user_call.h - ends the process when a user's function is left in another way than by
 * returning.
 *
 * A C++ exception that leaves a user's function, or the unwinding of pthread_exit and pthread_cancel, would
 * leave locks held and other replicas waiting for ever. Therefore the library's frame that called the
 * function ends the process, on ELF systems other than 32-bit ARM. It writes one line to stderr that names
 * the function that was left. An exception then reaches std::terminate, while the stack that threw it still
 * exists for the program's handler and for a debugger. The other ways to unwind call abort.
 *
 * The frame is marked only in the unwind tables. Its personality routine is the library's, and its
 * language-specific data is the text that names the function. A call that returns pays nothing for the
 * mark. */
#ifndef DTI_USER_CALL_H
#define DTI_USER_CALL_H

#include "base/errors/status.h"

#include <stdbool.h>

/* An attribute of the function that calls the user's function. It gives that function a frame of its own, so
 * that the mark belongs to this one call. */
#define DTI_GUARDED __attribute__((noinline))

/* Stands before the call, once in a block. `function_` is a string literal that names the user's function,
 * such as "the function given to ...". */
#define DTI_GUARD(function_)                                 \
    const char *const guard_function_ = dti_public_function; \
    DTI_GUARD_FRAME(function_)

/* Stands after the call. It restores the name of the public function, because the user's function may have
 * called other public functions. The asm prevents a tail call of the user's function, which would leave no
 * frame of the library. */
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

/* True if `data` is in the calling thread's stack below the caller's frame. It is then a local variable of a
 * function that has returned. The answer is false on a stack that is not the thread's own, such as the stack
 * of a coroutine. */
#define DTI_IS_BELOW_FRAME(data) dti_is_below_frame(__builtin_frame_address(0), (data))
bool dti_is_below_frame(const void *frame, const void *data);

#endif
