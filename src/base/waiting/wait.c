/* src/base/waiting/wait.c - the part of waiting that is not inline. The argument is in wait.h. */
#include "base/waiting/wait.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { AWAKE = 0, SLEEPING = 1 };

bool dti_wait_queue_init(struct dti_wait_queue *queue, uint32_t waiters, enum dti_sleeps sleeps)
{
    dti_fence_init();
    queue->waiter = aligned_alloc(DTI_CACHE_LINE_PAIR, waiters * sizeof *queue->waiter);
    if (queue->waiter == NULL)
        return false;
    for (uint32_t i = 0; i < waiters; i++) {
        atomic_init(&queue->waiter[i].state, AWAKE);
        atomic_init(&queue->waiter[i].awaits, DTI_EVERYONE);
        atomic_init(&queue->waiter[i].woken_at_ns, 0);
    }
    atomic_init(&queue->parked, 0);
    queue->waiters = waiters;
    queue->sleeps = sleeps;
    return true;
}

void dti_wait_queue_free(struct dti_wait_queue *queue)
{
    free(queue->waiter);
    queue->waiter = NULL;
}

void dti_wait_queue_wake(struct dti_wait_queue *queue, uint32_t from)
{
    for (uint32_t i = 0; i < queue->waiters; i++) {
        struct dti_waiter *waiter = &queue->waiter[i];
        /* acquire: pairs with the release of SLEEPING (S0), so awaits has the value for this sleep. */
        if (atomic_load_explicit(&waiter->state, memory_order_acquire) != SLEEPING)
            continue;
        uint32_t awaits = atomic_load_explicit(&waiter->awaits, memory_order_relaxed);
        if (awaits != from && awaits != DTI_EVERYONE && from != DTI_EVERYONE)
            continue;
        /* W2. relaxed: the condition has its own order. Because of the exchange, only one waker makes a
         * system call. */
        if (atomic_exchange_explicit(&waiter->state, AWAKE, memory_order_relaxed) == SLEEPING) {
            /* relaxed: the sleeper only measures with it. */
            atomic_store_explicit(&waiter->woken_at_ns, dti_now_ns(), memory_order_relaxed);
            dti_futex_wake(&waiter->state);
        }
    }
}

/* Sleeps until the condition holds or the deadline passes, and tells the policy before each sleep. Returns
 * true if the condition holds. *wake_ns gets the time from the waker's call until this thread ran, or 0 if no
 * waker has called it. */
static bool sleep_until(struct dti_wait_queue *queue, uint32_t waiter_index, uint32_t awaits,
                        struct dti_wait_policy *wait_policy, struct dti_deadline *deadline,
                        struct dti_look *look, dti_condition *condition, void *argument, uint64_t *wake_ns)
{
    uint64_t deadline_ns = dti_deadline_at(deadline);
    struct dti_waiter *waiter = &queue->waiter[waiter_index];
    bool holds = false;
    /* relaxed: only this thread writes it, and a waker reads it after it has seen SLEEPING. */
    atomic_store_explicit(&waiter->awaits, awaits, memory_order_relaxed);
    /* relaxed: the fence below orders it. */
    atomic_fetch_add_explicit(&queue->parked, 1, memory_order_relaxed);
    for (;;) {
        /* relaxed: as its store in dti_wait_queue_wake. */
        atomic_store_explicit(&waiter->woken_at_ns, 0, memory_order_relaxed);
        /* S0. release: pairs with the acquire in dti_wait_queue_wake. */
        atomic_store_explicit(&waiter->state, SLEEPING, memory_order_release);
        /* Pairs with the fence in dti_wait_queue_signal. */
        if (queue->sleeps == DTI_SLEEPS_OFTEN)
            atomic_thread_fence(memory_order_seq_cst);
        else
            dti_fence_heavy();
        holds = condition(argument); /* S1 */
        if (holds || dti_look(look) >= deadline_ns)
            break;
        dti_wait_policy_before_sleep(wait_policy);
        dti_futex_sleep(&waiter->state, SLEEPING, dti_look_until(look, deadline_ns));
        holds = condition(argument);
        if (holds)
            break;
    }
    uint64_t woken_at_ns = atomic_load_explicit(&waiter->woken_at_ns, memory_order_relaxed);
    *wake_ns = woken_at_ns != 0 ? dti_now_ns() - woken_at_ns : 0;
    atomic_store_explicit(&waiter->state, AWAKE, memory_order_relaxed);
    atomic_fetch_sub_explicit(&queue->parked, 1, memory_order_relaxed);
    return holds;
}

/* Polls until `end_ns` (dti_now_ns) or the deadline. It looks at the clock rarely, because that costs as much
 * as a dozen polls. */
static bool spin(struct dti_look *look, uint64_t end_ns, struct dti_deadline *deadline,
                 dti_condition *condition, void *argument)
{
    uint64_t lived;
    do {
        for (uint32_t check = 0; check < 64; check++) {
            dti_pause();
            if (condition(argument))
                return true;
        }
        lived = dti_look(look);
    } while (look->at_ns < end_ns && lived < dti_deadline_at(deadline));
    return false;
}

static bool yield(struct dti_look *look, uint64_t end_ns, struct dti_deadline *deadline,
                  dti_condition *condition, void *argument, struct dti_wait_policy *wait_policy)
{
    uint64_t lived, longest = 0;
    bool holds;
    do {
        uint64_t begin = look->at_ns;
        sched_yield();
        lived = dti_look(look);
        longest = look->at_ns - begin > longest ? look->at_ns - begin : longest;
        holds = condition(argument);
    } while (!holds && look->at_ns < end_ns && lived < dti_deadline_at(deadline));
    struct rusage usage;
    if (dti_wait_policy_after_yield(wait_policy, longest) && getrusage(RUSAGE_THREAD, &usage) == 0)
        dti_wait_policy_learn_switches(wait_policy, (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw);
    return holds;
}

bool dti_wait_long(struct dti_wait_queue *queue, uint32_t waiter_index, uint32_t awaits,
                   struct dti_wait_policy *wait_policy, struct dti_deadline *deadline,
                   dti_condition *condition, void *argument)
{
    struct dti_look look = { 0 };
    (void)dti_look(&look);
    uint64_t begin = look.at_ns, budget = dti_wait_policy_spin_ns(wait_policy), wake_ns;
    if (budget != 0 && spin(&look, begin + budget, deadline, condition, argument)) {
        dti_wait_policy_after_spin(wait_policy, budget, look.at_ns - begin);
        return true;
    }
    uint64_t yields = dti_wait_policy_yield_ns(wait_policy);
    if (yields != 0 && yield(&look, look.at_ns + yields, deadline, condition, argument, wait_policy))
        return true;
    bool holds = sleep_until(queue, waiter_index, awaits, wait_policy, deadline, &look, condition, argument,
                             &wake_ns);
    dti_wait_policy_after_sleep(wait_policy, dti_now_ns() - begin, wake_ns);
    return holds;
}
