/* src/base/numbers/fenv.h - the floating-point environment in which sums have the documented bits.
 *
 * The environment that ditto promises rounds to nearest, keeps denormals and has no traps. A caller may have
 * set another one, because flush-to-zero is common in numerical programs. If the environment is already the
 * promised one, entering it costs one register read. */
#ifndef DTI_FENV_H
#define DTI_FENV_H

#include <stdbool.h>
#include <stdint.h>

#if !defined(__x86_64__)
#include <fenv.h>
#endif

/* The floating-point environment of a thread. */
struct dti_fenv {
#if defined(__x86_64__)
    uint32_t mxcsr;
#else
    fenv_t environment;
#endif
};

#if defined(__x86_64__)

#define DTI_MXCSR_DEFAULT 0x1f80u
#define DTI_MXCSR_FLAGS   0x003fu /* exceptions that have happened, which stay as they are */

/* Returns the environment that the calling thread has now. */
static inline struct dti_fenv dti_fenv_current(void)
{
    return (struct dti_fenv){ __builtin_ia32_stmxcsr() };
}

/* Enters the promised environment. Returns the one that the thread had, for dti_fenv_leave. */
static inline struct dti_fenv dti_fenv_enter(void)
{
    struct dti_fenv saved = dti_fenv_current();
    if ((saved.mxcsr & ~DTI_MXCSR_FLAGS) != DTI_MXCSR_DEFAULT)
        __builtin_ia32_ldmxcsr(DTI_MXCSR_DEFAULT);
    return saved;
}

/* Enters the environment of another thread instead of the promised one. */
static inline struct dti_fenv dti_fenv_enter_as(struct dti_fenv other)
{
    struct dti_fenv saved = dti_fenv_current();
    if (((saved.mxcsr ^ other.mxcsr) & ~DTI_MXCSR_FLAGS) != 0)
        __builtin_ia32_ldmxcsr(other.mxcsr & ~DTI_MXCSR_FLAGS);
    return saved;
}

/* The same as dti_fenv_leave, after code that has called no function of the user's. The register, which is
 * slow to read, then still has what dti_fenv_enter has left in it. */
static inline void dti_fenv_leave_unchanged(struct dti_fenv saved)
{
    if ((saved.mxcsr & ~DTI_MXCSR_FLAGS) != DTI_MXCSR_DEFAULT)
        __builtin_ia32_ldmxcsr(saved.mxcsr);
}

static inline void dti_fenv_leave(struct dti_fenv saved)
{
    /* A user's function may have changed the register meanwhile, so its present value is compared. */
    if (((saved.mxcsr ^ __builtin_ia32_stmxcsr()) & ~DTI_MXCSR_FLAGS) != 0)
        __builtin_ia32_ldmxcsr(saved.mxcsr);
}

#else

static inline struct dti_fenv dti_fenv_current(void)
{
    struct dti_fenv current;
    fegetenv(&current.environment);
    return current;
}

static inline struct dti_fenv dti_fenv_enter(void)
{
    struct dti_fenv saved = dti_fenv_current();
    fesetenv(FE_DFL_ENV);
    return saved;
}

static inline struct dti_fenv dti_fenv_enter_as(struct dti_fenv other)
{
    struct dti_fenv saved = dti_fenv_current();
    fesetenv(&other.environment);
    return saved;
}

static inline void dti_fenv_leave(struct dti_fenv saved)
{
    fesetenv(&saved.environment);
}

static inline void dti_fenv_leave_unchanged(struct dti_fenv saved)
{
    dti_fenv_leave(saved);
}

#endif
#endif
