/* src/base/guard.h - a function of the user's is left by returning from it, and in no other way.
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
#ifndef DTI_GUARD_H
#define DTI_GUARD_H

/* An attribute of the function that calls the user's. It gives that function a frame of its own, so that the
 * mark belongs to this one call. */
#define DTI_GUARDED __attribute__((noinline))

#if defined(__ELF__) && !defined(__arm__) /* 32-bit ARM has unwind tables of another form */

/* Stands before the call. `function_` is a string literal that names the user's function, as in "the function
 * given to ...". */
#define DTI_GUARD(function_)                                            \
    __asm__ volatile(".pushsection .rodata.dti_guard,\"a\",@progbits\n" \
                     ".Ldti_guard%=:\n"                                 \
                     "\t.asciz \"" function_ "\"\n"                     \
                     "\t.popsection\n"                                  \
                     "\t.cfi_personality 0x1b, dti_guard_personality\n" \
                     "\t.cfi_lsda 0x1b, .Ldti_guard%=" ::               \
                         : "memory")
#else
#define DTI_GUARD(function_) ((void)0)
#endif

/* Stands after the call. Without it the compiler might jump to the user's function, and leave no frame of the
 * library. */
#define DTI_GUARD_END() __asm__ volatile("" ::: "memory")

#endif
