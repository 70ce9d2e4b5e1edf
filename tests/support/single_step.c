/* tests/support/single_step.c - see single_step.h. */
#include "support/single_step.h"

#if SINGLE_STEPS

#include <signal.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100

static _Thread_local struct {
    bool stepping, held;
    unsigned long left;
    void (*hold)(void *argument);
    void *argument;
} this_thread;

static void step(int signal, siginfo_t *info, void *context)
{
    ucontext_t *thread = context;
    if (this_thread.stepping && this_thread.left > 0 && --this_thread.left > 0)
        return;
    thread->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    if (!this_thread.stepping) /* the function has returned */
        return;
    this_thread.stepping = false;
    this_thread.held = true;
    this_thread.hold(this_thread.argument);
}

void hold_after(unsigned long steps, void (*hold)(void *argument), void *argument)
{
    struct sigaction action = { .sa_sigaction = step, .sa_flags = SA_SIGINFO };
    assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
    this_thread.left = steps;
    this_thread.hold = hold;
    this_thread.argument = argument;
    this_thread.held = false;
    this_thread.stepping = true;
    /* The first 128 bytes below the stack pointer are the red zone, where the compiler may keep values. */
    __asm__ volatile("subq $128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; addq $128, %%rsp" ::
                         : "memory", "cc");
}

bool dont_hold(void)
{
    /* If the trap flag is still set, the handler clears it at the next instruction. */
    this_thread.stepping = false;
    return this_thread.held;
}

bool call_and_hold(unsigned long steps, void (*function)(void *argument), void (*hold)(void *argument),
                   void *argument)
{
    hold_after(steps, hold, argument);
    function(argument);
    return dont_hold();
}

#endif
