/* tests/base/waiting/test_wait.c - the claims of src/base/waiting/wait.h: no wake-up is lost, and deadlines
 * are kept. */
#include "support/support.h"

#include "base/waiting/wait.h"

#include <pthread.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_wake_up_is_lost_if_threads_sleep_at_once),
        cmocka_unit_test(no_wake_up_is_lost_between_spinning_and_sleeping),
        cmocka_unit_test(no_wake_up_is_lost_without_membarrier),
        cmocka_unit_test(a_deadline_ends_the_wait),
        cmocka_unit_test(a_deadline_ends_yielding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
