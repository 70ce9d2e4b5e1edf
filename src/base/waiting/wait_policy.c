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

/* The bounds of what is learned. A wake-up that takes longer than WAKE_MOST_NS has most likely waited for a
 * CPU that others use. */
#define WAKE_LEAST_NS (DTI_DEFAULT_SPIN_US * 1000u / SPIN_WAKES)
#define WAKE_MOST_NS  250000u

/* After a thread has spun for the time of so many wake-ups without a sleep, it sleeps earlier once, to learn
 * what a wake-up takes now. This costs a thousandth of that time. */
#define SLEEP_AFTER_WAKES 1000u

/* How often the kernel's counters are read at most. */
#define READ_EVERY_NS 10000000u

/* Others want the CPU if a thread waits for it for one part in CROWDED_PART of its time, and no longer if
 * that falls below one part in FREE_PART. Each wake-up may take WAKE_DELAY_NS even on an idle CPU. */
#define CROWDED_PART  5u
#define FREE_PART     10u
#define WAKE_DELAY_NS 100000u

/* A yield that takes longer than a time slice has let programs run that do not wait for anything. The kernel
 * puts a thread that yields behind all of them, but lets one that wakes up run soon. So the next waits sleep
 * at once, at first DTI_SPIN_EVERY of them, and twice as many after each yield that was long again. */
#define LONG_YIELD_NS 4000000u
#define MOST_AT_ONCE  1024u

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

uint64_t dti_wait_policy_spin_ns(const struct dti_wait_policy *p)
{
    bool tries_to_sleep = p->spun_ns > SLEEP_AFTER_WAKES * p->wake_ns;
    if (p->is_fixed || (p->long_waits % DTI_SPIN_EVERY == 0 && !p->crowded && !tries_to_sleep))
        return p->spin_ns;
    /* After waits for which spinning was in vain, a thread spins for a short time. */
    uint64_t ns = p->crowded || p->short_ns * 2 < DTI_SPIN_LEAST_NS ? DTI_SPIN_LEAST_NS : p->short_ns * 2;
    return ns < p->spin_ns ? ns : p->spin_ns;
}

/* Moves short_ns towards the length of a wait, by an eighth of the difference. */
static void learn_short(struct dti_wait_policy *p, uint64_t waited_ns)
{
    if (waited_ns > p->short_ns)
        p->short_ns += (waited_ns - p->short_ns) / 8;
    else
        p->short_ns -= (p->short_ns - waited_ns) / 8;
}

void dti_wait_policy_after_spin(struct dti_wait_policy *p, uint64_t budget_ns, uint64_t spun_ns)
{
    if (budget_ns == p->spin_ns)
        p->long_waits = 0;
    if (!p->adapts)
        return;
    p->spun_ns += spun_ns;
    learn_short(p, spun_ns);
}

uint64_t dti_wait_policy_yield_ns(struct dti_wait_policy *p)
{
    if (p->sleep_at_once == 0)
        return p->yield_ns;
    p->sleep_at_once--;
    return 0;
}

bool dti_wait_policy_after_yield(struct dti_wait_policy *p, uint64_t yield_ns)
{
    if (p->is_fixed || yield_ns < LONG_YIELD_NS)
        p->slept_at_once = 0;
    else if (p->slept_at_once < MOST_AT_ONCE)
        p->slept_at_once = p->slept_at_once != 0 ? 2 * p->slept_at_once : DTI_SPIN_EVERY;
    p->sleep_at_once = p->slept_at_once;
    return !p->is_fixed && ++p->yields % DTI_SPIN_EVERY == 0;
}

/* If none of the last yields has let another thread run, the thread has its CPU to itself, for example
 * because the replicas that share it have returned. Then a short spin notices a peer on another CPU sooner: a
 * barrier of a group of two in a strategy of four on two PUs took 70 to 78 ns instead of 131. */
void dti_wait_policy_learn_switches(struct dti_wait_policy *p, uint64_t switches)
{
    p->spin_ns = switches == p->switches ? DTI_SPIN_LEAST_NS : 0;
    p->switches = switches;
}

void dti_wait_policy_after_sleep(struct dti_wait_policy *p, uint64_t waited_ns, uint64_t wake_ns)
{
    bool was_long = waited_ns > p->spin_ns;
    p->long_waits = was_long ? p->long_waits + 1 : 0;
    if (!p->adapts)
        return;
    if (was_long)
        p->short_ns -= p->short_ns / 64; /* it is forgotten if there are no short waits any more */
    else
        learn_short(p, waited_ns > wake_ns ? waited_ns - wake_ns : 0);
    /* On a crowded CPU a wake-up says how long other threads run, and not what a wake-up costs. */
    if (wake_ns == 0 || p->crowded)
        return;
    /* Each wake-up moves wake_ns towards the median of all, by a sixteenth at most, so a single slow one has
     * no weight. */
    uint64_t step = p->wake_ns / 16;
    if (wake_ns > p->wake_ns && p->wake_ns < WAKE_MOST_NS)
        p->wake_ns += step;
    else if (wake_ns < p->wake_ns && p->wake_ns > WAKE_LEAST_NS)
        p->wake_ns -= step;
    p->spin_ns = SPIN_WAKES * p->wake_ns;
}

void dti_wait_policy_learn_delay(struct dti_wait_policy *p, uint64_t ran_ns, uint64_t delayed_ns,
                                 uint32_t sleeps)
{
    uint64_t of_wakes = (uint64_t)sleeps * WAKE_DELAY_NS;
    uint64_t by_others = delayed_ns > of_wakes ? delayed_ns - of_wakes : 0;
    p->crowded = by_others * (p->crowded ? FREE_PART : CROWDED_PART) > ran_ns + delayed_ns;
}

void dti_wait_policy_before_sleep(struct dti_wait_policy *p)
{
    if (!p->adapts)
        return;
    p->spun_ns = 0;
    p->sleeps++;
    uint64_t now = dti_now_ns(), ran = 0, delayed = 0;
    if (p->read_at_ns != 0 && now - p->read_at_ns < READ_EVERY_NS)
        return;
    int32_t tid = (int32_t)syscall(SYS_gettid);
    p->read_at_ns = now;
    if (!dti_run_delay_add(tid, &ran, &delayed))
        tid = 0;
    if (tid != 0 && tid == p->tid)
        dti_wait_policy_learn_delay(p, ran - p->ran_ns, delayed - p->delayed_ns, p->sleeps);
    p->tid = tid;
    p->ran_ns = ran;
    p->delayed_ns = delayed;
    p->sleeps = 0;
}
