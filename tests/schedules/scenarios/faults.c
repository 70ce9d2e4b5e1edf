/* tests/schedules/scenarios/faults.c - programs with faults. The engine must find each of them. */
#include "scenarios.h"

#include "base/waiting/futex.h"

#include <stdatomic.h>

static struct {
    alignas(8) uint32_t left, right; /* in one word of the shadow */
} neighbours;
static _Atomic uint32_t flag;
static char *volatile shared;

static void in_two_threads(void *(*one)(void *), void (*other)(void))
{
    pthread_t thread = thread_of(one, NULL);
    other();
    join(thread);
}

static void *read_left(void *unused)
{
    (void)unused;
    EXPECT(neighbours.left < 2);
    return NULL;
}
static void write_both(void)
{
    neighbours.left = 1;
    atomic_store_explicit(&flag, 1, memory_order_relaxed);
    neighbours.right = 1;
}
static void race_beside_another_write(void)
{
    in_two_threads(read_left, write_both);
}

/* The reader finds the flag, but the relaxed store does not order what was written before. */
static void *read_after_flag(void *unused)
{
    (void)unused;
    if (atomic_load_explicit(&flag, memory_order_acquire) == 1)
        EXPECT(neighbours.left == 1);
    return NULL;
}
static void write_before_flag(void)
{
    neighbours.left = 1;
    atomic_store_explicit(&flag, 1, memory_order_relaxed);
}
static void relaxed_publication(void)
{
    in_two_threads(read_after_flag, write_before_flag);
}

static void *use_and_leave(void *unused)
{
    (void)unused;
    EXPECT(shared[0] == 0);
    atomic_store_explicit(&flag, 1, memory_order_relaxed);
    return NULL;
}
static void free_when_left(void)
{
    while (atomic_load_explicit(&flag, memory_order_acquire) == 0)
        seam_pause();
    free(shared);
}
static void free_without_order(void)
{
    shared = calloc(1, 8);
    in_two_threads(use_and_leave, free_when_left);
}

static void use_of_freed_memory(void)
{
    shared = calloc(1, 8);
    free(shared);
    shared[0] = 1;
}

static pthread_mutex_t mutexes[2];
static void *lock_forwards(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutexes[0]);
    pthread_mutex_lock(&mutexes[1]);
    pthread_mutex_unlock(&mutexes[1]);
    pthread_mutex_unlock(&mutexes[0]);
    return NULL;
}
static void lock_backwards(void)
{
    pthread_mutex_lock(&mutexes[1]);
    pthread_mutex_lock(&mutexes[0]);
    pthread_mutex_unlock(&mutexes[0]);
    pthread_mutex_unlock(&mutexes[1]);
}
static void deadlock(void)
{
    in_two_threads(lock_forwards, lock_backwards);
}

static void *store_without_waking(void *unused)
{
    (void)unused;
    atomic_store_explicit(&flag, 1, memory_order_release);
    return NULL;
}
static void sleep_until_flag(void)
{
    while (atomic_load_explicit(&flag, memory_order_acquire) == 0)
        dti_futex_sleep(&flag, 0, dti_now_ns() + 1000000000);
}
static void missing_wake(void)
{
    in_two_threads(store_without_waking, sleep_until_flag);
}

static _Thread_local int own;
static int *_Atomic pointer;
static int *plain_pointer;
static void *use_pointer(void *unused)
{
    (void)unused;
    if (atomic_load_explicit(&pointer, memory_order_acquire) != NULL)
        EXPECT(plain_pointer != NULL);
    return NULL;
}
static void publish_own(void)
{
    plain_pointer = &own;
    atomic_store_explicit(&pointer, plain_pointer, memory_order_release);
}
static void thread_local_of_another(void)
{
    in_two_threads(use_pointer, publish_own);
}

const struct scenario fault_scenarios[] = {
    { .name = "race_beside_another_write", .body = race_beside_another_write, .fault = "a race" },
    { .name = "relaxed_publication", .body = relaxed_publication, .fault = "a race" },
    { .name = "free_without_order", .body = free_without_order, .fault = "a race" },
    { .name = "use_of_freed_memory", .body = use_of_freed_memory, .fault = "1 bytes" },
    { .name = "deadlock", .body = deadlock, .fault = "all fibers wait" },
    { .name = "missing_wake", .body = missing_wake, .fault = "all fibers sleep" },
    { .name = "thread_local_of_another",
      .body = thread_local_of_another,
      .fault = "fiber 1 reads a pointer" },
    { 0 },
};
