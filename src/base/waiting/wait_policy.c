/* src/base/waiting/wait_policy.c - see wait_policy.h. */
#include "base/waiting/wait_policy.h"
#include "base/waiting/futex.h"
#include "base/waiting/run_delay.h"

#include <sys/syscall.h>
#include <unistd.h>

/* How many wake-ups long a thread spins. With 8 and a wake-up of 45 us, ditto-bench wait spins in waits of
 * 200 us, where a wake-up would be a tenth of the time, and sleeps in waits of 1000 us, where spinning would
 * use 1.6 times the CPU time. */
#define SPIN_WAKES 8u

/* The bounds of what is learned. A wake-up that takes longer than the last one waits for a CPU that others
 * use. */
#define WAKE_LEAST_NS (DTI_DEFAULT_SPIN_US * 1000u / SPIN_WAKES)
#define WAKE_MOST_NS  250000u

/* After a thread has spun for the time of so many wake-ups without a sleep, it sleeps earlier once, to learn
 * what a wake-up takes now. This costs a thousandth of that time. */
#define SLEEP_AFTER_WAKES 1000u

/* How often the kernel's counters are read at most. */
#define READ_EVERY_NS 10000000u

/* Others want the CPU if a thread waits for it for one part in so many of its time. Each wake-up may take
 * WAKE_DELAY_NS even on an idle CPU. */
#define CROWDED_PART  5u
#define WAKE_DELAY_NS 100000u

struct dti_wait_policy dti_wait_policy_adapting(void)
{
    return (struct dti_wait_policy){ .adapts = true,
                                     .spin_ns = DTI_DEFAULT_SPIN_US * 1000u,
                                     .wake_ns = WAKE_LEAST_NS };
}

void dti_wait_policy_replace(struct dti_wait_policy *policy, struct dti_wait_policy other)
{
    if (!policy->adapts || !other.adapts)
        *policy = other;
}

bool dti_wait_policy_spins_in_full(const struct dti_wait_policy *p)
{
    return p->long_waits % DTI_SPIN_EVERY == 0 && !p->crowded && p->spun_ns <= SLEEP_AFTER_WAKES * p->wake_ns;
}

void dti_wait_policy_after_spin(struct dti_wait_policy *p, bool spun_in_full, uint64_t spun_ns)
{
    if (spun_in_full)
        p->long_waits = 0;
    if (p->adapts)
        p->spun_ns += spun_ns;
}

/* Moves wake_ns towards the median of all wake-ups. Each one changes it by a sixteenth at most, so a single
 * slow one has no weight. */
static void learn_wake(struct dti_wait_policy *p, uint64_t took_ns)
{
    uint64_t step = p->wake_ns / 16;
    if (took_ns > p->wake_ns && p->wake_ns < WAKE_MOST_NS)
        p->wake_ns += step;
    else if (took_ns < p->wake_ns && p->wake_ns > WAKE_LEAST_NS)
        p->wake_ns -= step;
    p->spin_ns = SPIN_WAKES * p->wake_ns;
}

void dti_wait_policy_after_sleep(struct dti_wait_policy *p, uint64_t waited_ns, uint64_t wake_ns)
{
    p->long_waits = waited_ns > p->spin_ns ? p->long_waits + 1 : 0;
    if (!p->adapts)
        return;
    p->spun_ns = 0;
    p->sleeps++;
    /* On a crowded CPU a wake-up says how long other threads run, and not what a wake-up costs. */
    if (wake_ns != 0 && !p->crowded)
        learn_wake(p, wake_ns);
}

void dti_wait_policy_learn_delay(struct dti_wait_policy *p, uint64_t ran_ns, uint64_t delayed_ns,
                                 uint32_t sleeps)
{
    uint64_t of_wakes = (uint64_t)sleeps * WAKE_DELAY_NS;
    uint64_t by_others = delayed_ns > of_wakes ? delayed_ns - of_wakes : 0;
    p->crowded = by_others * CROWDED_PART > ran_ns + delayed_ns;
}

void dti_wait_policy_before_sleep(struct dti_wait_policy *p)
{
    uint64_t now = p->adapts ? dti_now_ns() : 0, ran = 0, delayed = 0;
    if (!p->adapts || now - p->read_at_ns < READ_EVERY_NS ||
        !dti_run_delay_add((int32_t)syscall(SYS_gettid), &ran, &delayed))
        return;
    if (p->read_at_ns != 0)
        dti_wait_policy_learn_delay(p, ran - p->ran_ns, delayed - p->delayed_ns, p->sleeps);
    p->read_at_ns = now;
    p->ran_ns = ran;
    p->delayed_ns = delayed;
    p->sleeps = 0;
}
