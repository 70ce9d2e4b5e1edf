/* src/base/waiting/deadline.c - see deadline.h. */
#include "base/waiting/deadline.h"
#include "base/waiting/futex.h"

#define LOOK_EVERY_NS 1000000000u
#define LATE_NS       1000000000u

/* relaxed, everywhere: the number orders no other data, and a thread that reads an old value has a limit that
 * is longer. */
static _Atomic uint64_t lost_ns;

static uint64_t lost(void)
{
    return atomic_load_explicit(&lost_ns, memory_order_relaxed);
}

uint64_t dti_lived_at(uint64_t now_ns)
{
    return now_ns - lost();
}

uint64_t dti_lived_ns(void)
{
    return dti_lived_at(dti_now_ns());
}

uint64_t dti_deadline_at(struct dti_deadline *deadline)
{
    /* It has been computed before, or a caller with its own limit has set it. */
    if (deadline->at_ns != 0)
        return deadline->at_ns;
    if (deadline->timeout_ms == UINT32_MAX)
        return DTI_NEVER;
    deadline->at_ns = dti_lived_ns() + (uint64_t)deadline->timeout_ms * 1000000u;
    return deadline->at_ns;
}

static void lose_at_least(uint64_t ns)
{
    uint64_t before = lost();
    while (before < ns && !atomic_compare_exchange_weak_explicit(&lost_ns, &before, ns, memory_order_relaxed,
                                                                 memory_order_relaxed))
        ;
}

/* This thread has worked since its last look. */
static _Thread_local bool has_worked;

void dti_look_worked(void)
{
    has_worked = true;
}

uint64_t dti_look(struct dti_look *look)
{
    uint64_t now = dti_now_ns();
    if (__builtin_expect(look->at_ns != 0 && now > look->due_ns + LATE_NS, 0) && !has_worked)
        lose_at_least(look->lost_ns + (now - look->at_ns));
    has_worked = false;
    *look = (struct dti_look){ .at_ns = now, .due_ns = now + LOOK_EVERY_NS, .lost_ns = lost() };
    return now - look->lost_ns;
}

uint64_t dti_look_until(struct dti_look *look, uint64_t deadline_ns)
{
    if (deadline_ns == DTI_NEVER) {
        look->at_ns = 0; /* no look is due */
        return DTI_NEVER;
    }
    if (deadline_ns + look->lost_ns < look->due_ns)
        look->due_ns = deadline_ns + look->lost_ns;
    return look->due_ns;
}

int dti_look_poll_ms(struct dti_look *look, uint64_t deadline_ns)
{
    uint64_t until = dti_look_until(look, deadline_ns);
    return until == DTI_NEVER ? -1 : until <= look->at_ns ? 1 : (int)((until - look->at_ns) / 1000000) + 1;
}
