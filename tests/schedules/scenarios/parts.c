/* tests/schedules/scenarios/parts.c - the parts by themselves: wait queues, gates, locks, the stop word. */
#include "scenarios.h"

#include "base/waiting/gate.h"
#include "base/waiting/lock.h"
#include "base/waiting/stop.h"
#include "base/waiting/wait.h"

/* -- A wait queue: two threads wait for the third, and each for the other -- */

static struct dti_wait_queue queue;
static _Atomic uint32_t stage[3];
static uint32_t written[3];

static void make_queue(void)
{
    EXPECT(dti_wait_queue_init(&queue, 3, DTI_SLEEPS_RARE));
}
static void make_queue_of_sleepers(void)
{
    EXPECT(dti_wait_queue_init(&queue, 3, DTI_SLEEPS_OFTEN));
}

struct awaited {
    uint32_t thread, number;
};
static bool has_come(void *argument)
{
    const struct awaited *a = argument;
    return atomic_load_explicit(&stage[a->thread], memory_order_acquire) >= a->number;
}

/* Thread 0 goes through the stages, and the others follow. After a stage all see everything that was written
 * before it. */
static void *follow(void *argument)
{
    uint32_t me = (uint32_t)(uintptr_t)argument;
    struct dti_wait_policy never_spins = { .is_fixed = true };
    for (uint32_t k = 1; k <= 2; k++) {
        for (uint32_t other = 0; other < 3; other++) {
            struct awaited a = { other, other < me ? k : k - 1 };
            struct dti_deadline none = { .timeout_ms = DITTO_FOREVER };
            if (other == me)
                continue;
            EXPECT(dti_wait(&queue, me, other, &never_spins, &none, has_come, &a));
            EXPECT(written[other] >= a.number);
        }
        written[me] = k;
        atomic_store_explicit(&stage[me], k, memory_order_release);
        dti_wait_queue_signal(&queue, me);
        while (me != 2 && atomic_load_explicit(&stage[2], memory_order_acquire) < k)
            seam_pause();
    }
    return NULL;
}

static void followers(void)
{
    pthread_t a = thread_of(follow, (void *)1), b = thread_of(follow, (void *)2);
    follow((void *)0);
    join(a);
    join(b);
}

/* -- A gate: a call either is refused, or finds the object as long as it is in -- */

static struct dti_gate gate;
static int *object;
static uint32_t tries;

static void *use(void *unused)
{
    (void)unused;
    if (dti_gate_enter(&gate))
        EXPECT(*object == 7);
    dti_gate_leave(&gate);
    return NULL;
}

static void *destroy(void *unused)
{
    (void)unused;
    if (!dti_gate_shut(&gate))
        return NULL;
    int *freed = object;
    *freed = 0;
    if (tries++ % 2 == 0) { /* the first time it stays */
        *freed = 7;
        dti_gate_open(&gate);
        return NULL;
    }
    dti_gate_close(&gate);
    free(freed);
    return NULL;
}

static void gates(void)
{
    object = malloc(sizeof *object);
    EXPECT(object != NULL);
    *object = 7;
    pthread_t a = thread_of(use, NULL), b = thread_of(use, NULL);
    destroy(NULL);
    destroy(NULL);
    join(a);
    join(b);
}

/* -- A lock: one holder, and what it has written is seen by the next one. Each holds it for so long that the
 * others sleep -- */

static struct dti_lock lock;
static int guarded, in_turn;

static void *take_turns(void *unused)
{
    (void)unused;
    for (int i = 0; i < 2; i++) {
        EXPECT(dti_lock_take(&lock, DITTO_FOREVER));
        EXPECT(in_turn == 0);
        in_turn = 1;
        guarded++;
        for (int k = 0; k < 60; k++)
            seam_pause();
        in_turn = 0;
        dti_lock_release(&lock);
    }
    return NULL;
}

static void locks(void)
{
    guarded = 0;
    pthread_t a = thread_of(take_turns, NULL), b = thread_of(take_turns, NULL);
    take_turns(NULL);
    join(a);
    join(b);
    EXPECT(guarded == 6);
}

/* -- The stop word: the first error counts, and every thread that sees the stop can read it -- */

static struct dti_stop stop;
static _Atomic uint32_t first_errors;

static void *stop_it(void *argument)
{
    ditto_error error = { .status = (ditto_status)(uintptr_t)argument };
    strcpy(error.message, "an error");
    if (dti_stop_now(&stop, &error, 1))
        atomic_fetch_add_explicit(&first_errors, 1, memory_order_relaxed);
    EXPECT(dti_stopped(&stop));
    EXPECT(stop.error.status == 1 || stop.error.status == 2);
    EXPECT(strcmp(stop.error.message, "an error") == 0);
    return NULL;
}

static void stops(void)
{
    dti_stop_init(&stop);
    pthread_t a = thread_of(stop_it, (void *)1), b = thread_of(stop_it, (void *)2);
    while (!dti_stopped(&stop))
        seam_pause();
    EXPECT(stop.run == 1);
    join(a);
    join(b);
    EXPECT(first_errors == 1);
}

const struct scenario part_scenarios[] = {
    { .name = "wait_queue", .setup = make_queue, .body = followers },
    { .name = "wait_queue_of_sleepers", .setup = make_queue_of_sleepers, .body = followers },
    { .name = "wait_queue_without_membarrier",
      .setup = make_queue,
      .body = followers,
      .no_membarrier = true },
    { .name = "gate", .body = gates },
    { .name = "lock", .body = locks },
    { .name = "stop_word", .body = stops },
    { 0 },
};
