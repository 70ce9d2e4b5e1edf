/* src/base/waiting/deadline.h - limits on waiting, which do not count time that the waiter did not have.
 *
 * A process may stop for a while: by SIGSTOP, in a debugger, suspended by a batch system, in a frozen cgroup,
 * with its virtual machine, or because other programs take all PUs. The threads that it waits for stopped,
 * too, so they are not late. A waiter with a limit therefore looks at the clock at least once a second. A
 * look that comes more than a second after it was due shows that the waiter could not run, and all time since
 * its last look is lost. Limits are times of a clock without lost time, dti_lived_ns.
 *
 * Lost time is one number for the process, because limits are shared: a thread that did not wait in a pause
 * keeps the limit of its run, and a function's limit is kept by other threads than the one that executes it.
 * Several waiters find the same pause. Each one makes the number at least what it was at its last look, plus
 * the time since then, so a pause is lost once. The number never falls, and so no limit becomes shorter.
 *
 * Nobody looks while no thread waits with a limit. A pause in which all threads computed is counted. The
 * clock without lost time may go back, so a difference of two of its times may be negative.
 *
 * tests/base/waiting/test_wait.c and tests/fault/test_stopped_process.c try this. */
#ifndef DTI_DEADLINE_H
#define DTI_DEADLINE_H

#include "base/platform.h"

/* A deadline that never passes. */
#define DTI_NEVER UINT64_MAX

/* Returns the time of dti_now_ns without the time that was lost. */
uint64_t dti_lived_ns(void);

/* The same for a time of dti_now_ns that has just been read. If the process is stopped between that reading
 * and this call, and another thread finds that, the result is too early by the time that was lost. */
uint64_t dti_lived_at(uint64_t now_ns);

/* A limit on waiting. The clock is read only when a thread really has to wait, because reading it costs as
 * much as a tenth of a barrier. */
struct dti_deadline {
    /* UINT32_MAX (DITTO_FOREVER) means that there is no limit. */
    uint32_t timeout_ms;

    /* The time of dti_lived_ns at which the limit ends. 0 means that it has not been computed yet. */
    uint64_t at_ns;
};

/* Returns the time of dti_lived_ns at which the limit ends, or DTI_NEVER if there is no limit. */
uint64_t dti_deadline_at(struct dti_deadline *deadline);

/* How one wait has looked at the clock. { 0 } when it begins. */
struct dti_look {
    uint64_t at_ns, due_ns; /* times of dti_now_ns: of the last look, and of the next one at the latest */
    uint64_t lost_ns;       /* what was lost until the last look */
};

/* Says that this thread, which waits, has executed work of others. The work was not lost time. */
void dti_look_worked(void);

/* Looks at the clock. Returns the time of dti_lived_ns. */
uint64_t dti_look(struct dti_look *look);

/* Returns until when (dti_now_ns) a waiter may sleep after a look: until its limit ends, at `deadline_ns` of
 * dti_lived_ns, but no longer than a second. DTI_NEVER if it has no limit, and then no look is late. */
uint64_t dti_look_until(struct dti_look *look, uint64_t deadline_ns);

/* The same as a number of milliseconds for poll(), at least 1. */
int dti_look_poll_ms(struct dti_look *look, uint64_t deadline_ns);

#endif
