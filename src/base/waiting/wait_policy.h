/* src/base/waiting/wait_policy.h - for how long a thread polls a condition before it sleeps.
 *
 * A thread that spins notices the condition at once, but uses its CPU. A thread that sleeps pays a wake-up,
 * which took 45 to 75 us on a virtual machine with AMD Zen 3 (ditto-bench wait). A policy that adapts learns
 * four things:
 *
 * - How long a wake-up takes here. A thread spins for some of them (SPIN_WAKES in wait_policy.c). A wait that
 *   lasts longer is made little longer by one wake-up.
 * - Whether spinning has been in vain. After a wait that was longer than the time for which the thread spins,
 *   the next waits spin for a short time only.
 * - How long that short time must be. It is twice the typical length of the waits that were short enough to
 *   spin, so that a thread whose waits are long and short in turn still spins in the short ones.
 * - Whether other threads want the CPU. The kernel counts for how long a thread was ready to run but had no
 *   CPU. If that is a fifth of its time, the thread spins for DTI_SPIN_LEAST_NS only. Its spinning would
 *   use up the time slices which it needs for its work, while those for which it waits have no CPU either.
 *
 * The functions here are arithmetic on durations that the caller has measured, except
 * dti_wait_policy_before_sleep. Only the thread that waits uses its policy, so nothing is atomic. */
#ifndef DTI_WAIT_POLICY_H
#define DTI_WAIT_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* How long a thread spins before it sleeps, if nothing else says it. A policy that adapts begins with it. */
#define DTI_DEFAULT_SPIN_US 50u

/* How long a thread spins if spinning is not likely to pay. */
#define DTI_SPIN_LEAST_NS 3000u

/* After waits for which spinning was in vain, every DTI_SPIN_EVERY-th wait spins for the full time again. */
#define DTI_SPIN_EVERY 16u

struct dti_wait_policy {
    /* How long to poll with the pause instruction. If the policy adapts, this changes. A policy that yields
     * begins with 0, and spins for DTI_SPIN_LEAST_NS while no other thread wants the CPU. */
    uint64_t spin_ns;

    /* How long to poll with sched_yield, so that other threads of the same CPU run between two polls. */
    uint64_t yield_ns;

    /* True if every wait spins for spin_ns, because the user has chosen this time. */
    bool is_fixed;

    /* The number of consecutive waits that took longer than spin_ns, for which spinning was in vain. If it is
     * not 0, the next waits spin for a short time only. Every DTI_SPIN_EVERY-th wait spins for spin_ns
     * again, because a thread that sleeps cannot distinguish a long wait from a short one with a slow
     * wake-up. This was measured with ditto-bench skew, where peers are 200 us late. A broadcast of 1 MiB
     * whose root is late by about spin_ns takes 75 us, and took 104 us before. */
    uint32_t long_waits;

    /* The number of waits that have yielded, and how often the kernel had taken the CPU from the thread when
     * it last looked. */
    uint32_t yields;
    uint64_t switches;

    /* How many of the next waits sleep without yielding, and how many that was after the last long yield. */
    uint32_t sleep_at_once, slept_at_once;

    /* True if the policy learns. The members from here on are used only then. */
    bool adapts;

    /* True if other threads want the CPU. */
    bool crowded;

    /* The median of the times from a waker's call until the sleeper runs. */
    uint64_t wake_ns;

    /* The typical length of the waits that were not longer than spin_ns. */
    uint64_t short_ns;

    /* For how long the thread has spun in all waits since its last sleep. */
    uint64_t spun_ns;

    /* The number of sleeps since the kernel's counters were read. */
    uint32_t sleeps;

    /* When the kernel's counters were read last, or could not be read. 0 if neither has happened yet. */
    uint64_t read_at_ns;

    /* What they said, and of which thread, because different threads may call run as replica 0. `tid` is 0 if
     * they were not read. */
    int32_t tid;
    uint64_t ran_ns, delayed_ns;
};

/* Returns a policy that adapts, and has learned nothing yet. */
struct dti_wait_policy dti_wait_policy_adapting(void);

/* Replaces a policy by another one, but keeps what it has learned if both adapt. */
void dti_wait_policy_replace(struct dti_wait_policy *policy, struct dti_wait_policy other);

/* Returns for how long the next wait spins. */
uint64_t dti_wait_policy_spin_ns(const struct dti_wait_policy *policy);

/* A wait has ended while the thread spun, after spun_ns of the budget_ns for which it would have spun. */
void dti_wait_policy_after_spin(struct dti_wait_policy *policy, uint64_t budget_ns, uint64_t spun_ns);

/* Returns for how long the next wait yields after it has spun. */
uint64_t dti_wait_policy_yield_ns(struct dti_wait_policy *policy);

/* A wait has yielded. yield_ns is the time of its longest call of sched_yield. Returns true if the policy
 * wants to learn how often the thread has been switched out. */
bool dti_wait_policy_after_yield(struct dti_wait_policy *policy, uint64_t yield_ns);

/* Learns how often the kernel has switched from this thread to another one since it began. */
void dti_wait_policy_learn_switches(struct dti_wait_policy *policy, uint64_t switches);

/* The thread sleeps now. Reads the kernel's counters, at most every 10 ms. This takes about 10 us. */
void dti_wait_policy_before_sleep(struct dti_wait_policy *policy);

/* A wait that was too long for spinning has ended. waited_ns is the time of the whole wait. wake_ns is the
 * time from the waker's call until the thread ran, or 0 if no waker has called it. */
void dti_wait_policy_after_sleep(struct dti_wait_policy *policy, uint64_t waited_ns, uint64_t wake_ns);

/* Learns from the kernel's counters: in a time in which the thread slept so many times, it ran for ran_ns,
 * and was ready but had no CPU for delayed_ns. */
void dti_wait_policy_learn_delay(struct dti_wait_policy *policy, uint64_t ran_ns, uint64_t delayed_ns,
                                 uint32_t sleeps);

#endif
