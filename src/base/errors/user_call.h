/* src/base/errors/user_call.h - ends the process when an exception, pthread_exit or pthread_cancel leaves a
 * user's function. A longjmp out of it is not detected.
 *
 * A C++ exception that leaves a user's function, or the unwinding of pthread_exit and pthread_cancel, would
 * leave locks held and other replicas waiting for ever. Therefore the library's frame that called the
 * function ends the process, on ELF systems other than 32-bit ARM. It writes one line to stderr that names
 * the function that was left. An exception then reaches std::terminate, while the stack that threw it still
 * exists for the program's handler and for a debugger. If pthread_exit or pthread_cancel unwinds the stack,
 * the personality routine calls abort.
 *
 * There is one exception. Nobody waits for a function whose run was given up: run_timeout_ms passed,
 * ditto_strategy_interrupt was called, or the coordinator of a late worker was destroyed. If its thread is
 * unwound by pthread_exit, it sleeps until the process ends. An interpreter of Python that ends does this to
 * its threads.
 *
 * The frame is marked only in the unwind tables. Its personality routine is the library's, and its
 * language-specific data is the text that names the function. A call that returns pays nothing for the
 * mark. */
#ifndef DTI_USER_CALL_H
#define DTI_USER_CALL_H

#include "base/errors/status.h"

#include <stdbool.h>

/* Returns true if the run of the function that this thread executes was given up. In
 * src/replicas/team/stopping.c. */
bool dti_function_is_given_up(void);

/* An attribute of the library's function that calls the user's function. It prevents that this function is
 * inlined, so that its frame, and therefore the mark, belongs to nothing but this call. */
#define DTI_GUARDED __attribute__((noinline))

/* Stands before the call. A function has one entry in the unwind tables, so the macro may stand in it only
 * once. `function_` is a string literal that names the user's function,
 * such as "the function given to ...". */
#define DTI_GUARD(function_)                                                \
    const char *const guard_public_function_ = dti_this_thread()->function; \
    DTI_GUARD_FRAME(function_)

/* Stands after the call. It restores the name of the public function, because the user's function may have
 * called other public functions. The asm prevents a tail call of the user's function, which would leave no
 * frame of the library. */
#define DTI_GUARD_END()                \
    __asm__ volatile("" ::: "memory"); \
    dti_this_thread()->function = guard_public_function_

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

/* True if `data` is in the calling thread's stack, below the address of the caller's frame and at most 1 GiB
 * away from it. It is then a local variable of the caller, or of a function that has returned. The answer is
 * false on a stack that is not the thread's own, such as the stack of a coroutine, and if the bounds of the
 * stack cannot be read. */
#define DTI_IS_BELOW_FRAME(data) dti_is_below_frame(__builtin_frame_address(0), (data))
bool dti_is_below_frame(const void *frame, const void *data);

#endif
