/* tests/base/waiting/test_wait.c - the claims of src/base/waiting/wait.h and deadline.h: no wake-up is lost,
 * and deadlines are kept, but do not count time in which the waiter could not run; and those of lock.h. */
#include "support/support.h"

#include "base/waiting/lock.h"
#include "base/waiting/wait.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#define ROUNDS 20000

/* Two threads hand a number to and fro. With an empty wait policy a thread sleeps as soon as it must wait,
 * so most hand-overs take a sleep and a wake-up. */
struct ping {
    struct dti_wait_queue queue;
    _Atomic uint32_t ball;
    struct dti_wait_policy wait_policy;
};
struct side {
    struct ping *ping;
    uint32_t me;
};
struct turn {
    struct ping *ping;
    uint32_t wanted;
};

static bool my_turn(void *argument)
{
    struct turn *t = argument;
    return atomic_load_explicit(&t->ping->ball, memory_order_acquire) == t->wanted;
}

static void *play(void *argument)
{
    struct side *side = argument;
    struct ping *p = side->ping;
    struct dti_wait_policy wait_policy = p->wait_policy; /* waiting changes it, so each thread has a copy */
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct turn turn = { p, 2 * i + side->me };
        struct dti_deadline deadline = { .timeout_ms = 60000 };
        if (!dti_wait(&p->queue, side->me, 1 - side->me, &wait_policy, &deadline, my_turn, &turn))
            return (void *)"a hand-over took a minute: a wake-up was lost";
        atomic_store_explicit(&p->ball, 2 * i + side->me + 1, memory_order_release);
        dti_wait_queue_signal(&p->queue, side->me);
    }
    return NULL;
}

static void play_on(enum dti_sleeps sleeps, struct dti_wait_policy wait_policy)
{
    struct ping ping = { .wait_policy = wait_policy };
    struct side sides[2] = { { &ping, 0 }, { &ping, 1 } };
    pthread_t other;
    void *complaint;
    assert_true(dti_wait_queue_init(&ping.queue, 2, sleeps));
    pthread_create(&other, NULL, play, &sides[1]);
    void *own = play(&sides[0]);
    pthread_join(other, &complaint);
    if (own != NULL || complaint != NULL)
        fail_msg("%s", (char *)(own != NULL ? own : complaint));
    assert_int_equal(atomic_load(&ping.queue.parked), 0);
    dti_wait_queue_free(&ping.queue);
}

static void play_with(struct dti_wait_policy wait_policy)
{
    play_on(DTI_SLEEPS_RARE, wait_policy);
    play_on(DTI_SLEEPS_OFTEN, wait_policy);
}

static void no_wake_up_is_lost_if_threads_sleep_at_once(void **state)
{
    play_with((struct dti_wait_policy){ 0 });
}

static void no_wake_up_is_lost_between_spinning_and_sleeping(void **state)
{
    play_with((struct dti_wait_policy){ .spin_ns = 2000 });
    play_with((struct dti_wait_policy){ .yield_ns = 2000 });
    play_with(dti_wait_policy_adapting());
}

static void no_wake_up_is_lost_without_membarrier(void **state)
{
    dti_fence_init();
    bool before = atomic_load(&dti_fence_is_asymmetric);
    atomic_store(&dti_fence_is_asymmetric, false);
    play_with((struct dti_wait_policy){ 0 });
    atomic_store(&dti_fence_is_asymmetric, before);
}

static bool never(void *unused)
{
    return false;
}

static void a_deadline_ends_the_wait(void **state)
{
    struct dti_wait_queue queue;
    struct dti_wait_policy asleep = { 0 };
    struct dti_deadline deadline = { .timeout_ms = 20 };
    assert_true(dti_wait_queue_init(&queue, 1, DTI_SLEEPS_RARE));
    uint64_t begin = dti_now_ns();
    assert_false(dti_wait(&queue, 0, DTI_EVERYONE, &asleep, &deadline, never, NULL));
    assert_true(dti_now_ns() - begin >= 20000000u);
    dti_wait_queue_free(&queue);
}

/* A thread that yields must look at the deadline too. Without that, this test would take 10 minutes. */
static void a_deadline_ends_yielding(void **state)
{
    struct dti_wait_queue queue;
    struct dti_wait_policy yields = { .yield_ns = 600000000000u };
    struct dti_deadline deadline = { .timeout_ms = 20 };
    assert_true(dti_wait_queue_init(&queue, 1, DTI_SLEEPS_RARE));
    assert_false(dti_wait(&queue, 0, DTI_EVERYONE, &yields, &deadline, never, NULL));
    dti_wait_queue_free(&queue);
}

#define SECOND UINT64_C(1000000000)

/* A waiter that has last looked so many seconds ago, and was to look again so many seconds ago. */
static struct dti_look looked(uint64_t seconds_ago, uint64_t due_ago, const struct dti_look *before)
{
    uint64_t now = dti_now_ns();
    return (struct dti_look){ .at_ns = now - seconds_ago * SECOND,
                              .due_ns = now - due_ago * SECOND,
                              .lost_ns = before->lost_ns };
}

static void a_pause_that_several_waiters_find_is_lost_once(void **state)
{
    struct dti_look before = { 0 };
    (void)dti_look(&before);
    struct dti_look first = looked(10, 9, &before), second = looked(8, 7, &before);
    struct dti_deadline deadline = { .timeout_ms = 5000 };
    uint64_t end = dti_deadline_at(&deadline);
    assert_true(dti_look(&first) < end - 14 * SECOND);
    assert_true(first.lost_ns >= before.lost_ns + 10 * SECOND);
    (void)dti_look(&second);
    assert_true(second.lost_ns == first.lost_ns);
    assert_true(dti_look_until(&first, end) == first.at_ns + SECOND);
}

static void a_wait_without_a_limit_loses_nothing(void **state)
{
    struct dti_look before = { 0 };
    (void)dti_look(&before);
    struct dti_look look = looked(20, 19, &before);
    assert_true(dti_look_until(&look, DTI_NEVER) == DTI_NEVER); /* slept, and a signal wakes it */
    (void)dti_look(&look);
    assert_true(look.lost_ns == before.lost_ns);
}

static void work_for_others_is_not_lost(void **state)
{
    struct dti_look before = { 0 };
    (void)dti_look(&before);
    struct dti_look look = looked(20, 19, &before);
    dti_look_worked();
    (void)dti_look(&look);
    assert_true(look.lost_ns == before.lost_ns);
}

static void a_look_in_time_loses_nothing(void **state)
{
    struct dti_look before = { 0 };
    (void)dti_look(&before);
    struct dti_look look = looked(20, 0, &before); /* computed meanwhile, but was to look only now */
    (void)dti_look(&look);
    assert_true(look.lost_ns == before.lost_ns);
}

static void a_wait_is_woken_once_a_second_at_most(void **state)
{
    struct dti_wait_queue queue;
    struct dti_wait_policy asleep = { 0 };
    struct dti_deadline deadline = { .timeout_ms = 2500 };
    struct rusage begin, end;
    assert_true(dti_wait_queue_init(&queue, 1, DTI_SLEEPS_RARE));
    assert_int_equal(getrusage(RUSAGE_THREAD, &begin), 0);
    assert_false(dti_wait(&queue, 0, DTI_EVERYONE, &asleep, &deadline, never, NULL));
    assert_int_equal(getrusage(RUSAGE_THREAD, &end), 0);
    /* Three sleeps, and what membarrier may add. */
    assert_in_range(end.ru_nvcsw - begin.ru_nvcsw, 1, 6);
    dti_wait_queue_free(&queue);
}

/* Threads take a lock in turn. Thread 0 gives up after a while, at once, or never. */
struct locked {
    struct dti_lock lock;
    uint64_t counter, taken[4]; /* the counter is guarded by the lock */
};
struct locker {
    struct locked *locked;
    uint32_t me;
};

static void *take_often(void *argument)
{
    struct locker *l = argument;
    struct locked *s = l->locked;
    for (uint32_t i = 0; i < ROUNDS / 4; i++)
        if (dti_lock_take(&s->lock, l->me == 0 ? i % 3 : UINT32_MAX)) {
            s->taken[l->me]++;
            s->counter++;
            if (i % 64 == l->me)
                sched_yield(); /* others find the lock held */
            dti_lock_release(&s->lock);
        }
    return NULL;
}

static void a_lock_has_one_holder_and_forgets_no_waiter(void **state)
{
    struct locked s = { 0 };
    struct locker locker[4];
    pthread_t thread[4];
    for (uint32_t i = 0; i < 4; i++) {
        locker[i] = (struct locker){ &s, i };
        pthread_create(&thread[i], NULL, take_often, &locker[i]);
    }
    for (uint32_t i = 0; i < 4; i++)
        pthread_join(thread[i], NULL); /* hangs if a waiter is forgotten */
    assert_int_equal(s.taken[1], ROUNDS / 4);
    assert_int_equal(s.counter, s.taken[0] + s.taken[1] + s.taken[2] + s.taken[3]);
    assert_int_equal(atomic_load(&s.lock.word), DTI_LOCK_FREE);
}

static void *hold_often(void *lock)
{
    for (int i = 0; i < 25 && dti_lock_take(lock, UINT32_MAX); i++) {
        sleep_ms(50);
        dti_lock_release(lock);
    }
    return NULL;
}

/* Others take the lock first for more than the limit, but none of them has it for long. */
static void the_limit_of_a_lock_is_for_each_holder(void **state)
{
    struct dti_lock lock = { 0 };
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, hold_often, &lock);
    sleep_ms(20);
    for (int i = 0; i < 3; i++) {
        assert_true(dti_lock_take(&lock, 1500));
        dti_lock_release(&lock);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
}

static void a_lock_is_awaited_until_the_limit(void **state)
{
    struct dti_lock lock = { 0 };
    assert_true(dti_lock_take(&lock, 0));
    uint64_t begin = dti_now_ns();
    assert_false(dti_lock_take(&lock, 20));
    assert_true(dti_now_ns() - begin >= 20000000u);
    dti_lock_release(&lock);
    assert_true(dti_lock_take(&lock, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_wake_up_is_lost_if_threads_sleep_at_once),
        cmocka_unit_test(no_wake_up_is_lost_between_spinning_and_sleeping),
        cmocka_unit_test(no_wake_up_is_lost_without_membarrier),
        cmocka_unit_test(a_deadline_ends_the_wait),
        cmocka_unit_test(a_deadline_ends_yielding),
        cmocka_unit_test(a_pause_that_several_waiters_find_is_lost_once),
        cmocka_unit_test(a_wait_without_a_limit_loses_nothing),
        cmocka_unit_test(work_for_others_is_not_lost),
        cmocka_unit_test(a_look_in_time_loses_nothing),
        cmocka_unit_test(a_wait_is_woken_once_a_second_at_most),
        cmocka_unit_test(a_lock_has_one_holder_and_forgets_no_waiter),
        cmocka_unit_test(the_limit_of_a_lock_is_for_each_holder),
        cmocka_unit_test(a_lock_is_awaited_until_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
