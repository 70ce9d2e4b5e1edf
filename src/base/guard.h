/* src/base/guard.h - a function of the user's is left by returning from it, and in no other way.
 *
 * A C++ exception on its way out of a user's function, or the unwinding of pthread_exit and pthread_cancel,
 * would leave locks held and other replicas waiting for ever. The library's frame that called the function
 * therefore ends the process: it writes one line to stderr that says which function was left, and then an
 * exception goes to std::terminate, with the stack that threw still there for the host's handler and for a
 * debugger. Unwinding aborts.
 *
 * The frame is marked in the unwind tables alone: its personality routine is ours, and its language-specific
 * data is the text that names the function. A call that returns costs nothing for it. */
#ifndef DTI_GUARD_H
#define DTI_GUARD_H

/* Of the function that calls the user's. It has a frame of its own, so that the mark is of this one call. */
#define DTI_GUARDED __attribute__((noinline))

#if defined(__ELF__) && !defined(__arm__) /* 32-bit ARM has unwind tables of another form */

/* Before the call. `function_` is a string literal that names the user's function: "the function given to
 * ...". */
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

/* After the call: without it the compiler might jump to the user's function and leave no frame of ours. */
#define DTI_GUARD_END() __asm__ volatile("" ::: "memory")

#endif
