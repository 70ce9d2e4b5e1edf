/* tests/schedules/seams.c - what ditto gets instead of the system: threads, locks, futexes, fences, clocks,
 * placement, memory. A call that waits, wakes, or starts a thread is a step, before which others may run. */
#include "engine.h"
#include "sync/calibrate.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PLACE __builtin_return_address(0)
enum { PUS = 4 };

static void call(const char *name, const volatile void *address, void *place)
{
    step(CALL, address, 0, 0, 0, name, place);
}

/* -- waiting -- */

void seam_pause(void)
{
    step_back(PLACE);
}

int seam_sched_yield(void)
{
    step_back(PLACE);
    return 0;
}

static void futex_wait(const uint32_t *word, uint32_t expected, uint64_t until_ns, void *place)
{
    call("futex wait", word, place);
    if (W->now.is_free && random_below(W->policy.spurious_one_in) == 0)
        return;
    if (*word == expected)
        fiber_block(word, until_ns);
}

static void futex_wake(const void *word, uint32_t most, void *place)
{
    call("futex wake", word, place);
    fiber_wake(word, most);
}

long seam_syscall(long number, ...)
{
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_gettid)
        return 1000000 + (long)W->now.current;
    if (number == SYS_membarrier && W->scenario->no_membarrier) {
        errno = ENOSYS;
        return -1;
    }
    if (number == SYS_membarrier) {
        if (a[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED)
            fence_everyone(PLACE);
        return 0;
    }
    if (number != SYS_futex)
        return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    const struct timespec *until = (const struct timespec *)a[3];
    if (((int)a[1] & FUTEX_CMD_MASK) == FUTEX_WAKE)
        futex_wake((const void *)a[0], (uint32_t)a[2], PLACE);
    else
        futex_wait((const uint32_t *)a[0], (uint32_t)a[2],
                   until == NULL ? UINT64_MAX
                                 : (uint64_t)until->tv_sec * 1000000000u + (uint64_t)until->tv_nsec,
                   PLACE);
    return 0;
}

int seam_clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    call("clock", NULL, PLACE);
    step_found(W->now.now_ns);
    time->tv_sec = (time_t)(W->now.now_ns / 1000000000u);
    time->tv_nsec = (long)(W->now.now_ns % 1000000000u);
    return 0;
}

int seam_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    call("nanosleep", NULL, PLACE);
    fiber_block(time, W->now.now_ns + (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec);
    return 0;
}

int seam_getrusage(int who, struct rusage *usage)
{
    (void)who;
    memset(usage, 0, sizeof *usage);
    return 0;
}

/* -- threads: a pthread_t is the number of the fiber, counted from 1 -- */

int seam_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                        void *argument)
{
    int detached = PTHREAD_CREATE_JOINABLE;
    call("pthread_create", thread, PLACE);
    if (attributes != NULL)
        pthread_attr_getdetachstate(attributes, &detached);
    uint32_t number = is_refused() ? MOST_FIBERS : fiber_create(body, argument);
    if (number == MOST_FIBERS)
        return EAGAIN;
    W->now.fiber[number].detached = detached == PTHREAD_CREATE_DETACHED;
    plain_access(thread, sizeof *thread, true, PLACE);
    *thread = number + 1;
    return 0;
}

int seam_pthread_join(pthread_t thread, void **result)
{
    struct fiber *f = &W->now.fiber[thread - 1];
    call("pthread_join", f, PLACE);
    while (f->state != FINISHED)
        fiber_block(f, UINT64_MAX);
    clocks_add(&me()->before, &f->before);
    clocks_add(&me()->view, &f->view);
    if (result != NULL)
        *result = f->result;
    f->state = UNUSED;
    return 0;
}

int seam_pthread_detach(pthread_t thread)
{
    struct fiber *f = &W->now.fiber[thread - 1];
    call("pthread_detach", f, PLACE);
    f->detached = true;
    if (f->state == FINISHED)
        f->state = UNUSED;
    return 0;
}

pthread_t seam_pthread_self(void)
{
    return W->now.current + 1;
}

int seam_pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
    pthread_attr_init(attributes);
    return pthread_attr_setstack(attributes, MEMORY + HEAP_BYTES + (thread - 1) * STACK_BYTES + GUARD_BYTES,
                                 STACK_BYTES - GUARD_BYTES);
}

int seam_pthread_setname_np(pthread_t thread, const char *name)
{
    return (void)thread, (void)name, 0;
}
/* -- mutexes: the first word is 0 if it is free -- */

static bool take(pthread_mutex_t *mutex, void *place)
{
    uint64_t free_word = 0;
    return atomic_compare_step(mutex, &free_word, 1, 4, memory_order_acquire, memory_order_relaxed, false,
                               place);
}

int seam_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
    (void)attributes;
    plain_access(mutex, sizeof *mutex, true, PLACE);
    memset(mutex, 0, sizeof *mutex);
    return 0;
}

int seam_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    plain_access(mutex, sizeof *mutex, true, PLACE);
    if (*(const uint32_t *)(const void *)mutex != 0)
        fail("a mutex is destroyed while it is locked");
    return 0;
}

int seam_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    return take(mutex, PLACE) ? 0 : EBUSY;
}

int seam_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    while (!take(mutex, PLACE))
        if (*(const uint32_t *)(const void *)mutex != 0)
            fiber_block(mutex, UINT64_MAX);
    return 0;
}

int seam_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    if (*(const uint32_t *)(const void *)mutex == 0)
        fail("a mutex is unlocked that is not locked");
    atomic_store_step(mutex, 0, 4, memory_order_release, PLACE);
    fiber_wake(mutex, MOST_FIBERS);
    return 0;
}

/* 0: not begun, 1: a thread calls the function, 2: done */
int seam_pthread_once(pthread_once_t *once, void (*function)(void))
{
    uint64_t found = 0;
    if (atomic_compare_step(once, &found, 1, 4, memory_order_acquire, memory_order_acquire, false, PLACE)) {
        function();
        atomic_store_step(once, 2, 4, memory_order_release, PLACE);
        return 0;
    }
    while (found != 2) {
        step_back(PLACE);
        found = atomic_load_step(once, 4, memory_order_acquire, PLACE);
    }
    return 0;
}

int seam_pthread_key_create(pthread_key_t *key, void (*end)(void *))
{
    call("pthread_key_create", key, PLACE);
    if (W->now.keys == MOST_KEYS)
        return EAGAIN;
    W->key_end[W->now.keys] = end;
    *key = W->now.keys++;
    return 0;
}

int seam_pthread_setspecific(pthread_key_t key, const void *value)
{
    W->now.fiber[W->now.current].key_value[key] = (void *)(uintptr_t)value;
    return 0;
}

void *seam_pthread_getspecific(pthread_key_t key)
{
    return W->now.fiber[W->now.current].key_value[key];
}

/* -- placement -- */

int seam_sched_getcpu(void)
{
    return (int)(W->now.current % PUS);
}
int seam_getcpu(unsigned *cpu, unsigned *node)
{
    *cpu = W->now.current % PUS;
    *node = 0;
    return 0;
}
int seam_sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set)
{
    return (void)pid, (void)bytes, (void)set, 0;
}
int seam_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    (void)pid;
    memset(set, 0, bytes);
    for (size_t i = 0; i < PUS; i++)
        CPU_SET_S(i, bytes, set);
    return 0;
}
long seam_mbind(void *at, unsigned long bytes, int mode, const unsigned long *mask, unsigned long bits,
                unsigned flags)
{
    return (void)at, (void)bytes, (void)mode, (void)mask, (void)bits, (void)flags, 0;
}
long seam_move_pages(int pid, unsigned long count, void **pages, const int *nodes, int *status, int flags)
{
    (void)pid, (void)pages, (void)nodes, (void)flags;
    memset(status, 0, count * sizeof *status);
    return 0;
}

/* -- memory -- */

void *seam_memset(void *to, int byte, size_t bytes)
{
    plain_access(to, bytes, true, PLACE);
    return memset(to, byte, bytes);
}

void *seam_memmove(void *to, const void *from, size_t bytes)
{
    plain_access(from, bytes, false, PLACE);
    plain_access(to, bytes, true, PLACE);
    return memmove(to, from, bytes);
}

/* Large copies are made in parts, between which others run. So what is torn shows. */
void *seam_memcpy(void *to, const void *from, size_t bytes)
{
    size_t done = 0;
    while (bytes - done > 256 && W->now.is_free && W->now.steps != 0 && random_below(2) == 0) {
        size_t part = 1 + random_below(bytes - done - 1);
        plain_access((const char *)from + done, part, false, PLACE);
        plain_access((char *)to + done, part, true, PLACE);
        memcpy((char *)to + done, (const char *)from + done, part);
        done += part;
        call("memcpy", to, PLACE);
    }
    plain_access((const char *)from + done, bytes - done, false, PLACE);
    plain_access((char *)to + done, bytes - done, true, PLACE);
    memcpy((char *)to + done, (const char *)from + done, bytes - done);
    return to;
}

/* Fresh memory holds what was there before, unless it was asked for as zeros. */
static void *spoil(void *block, size_t bytes)
{
    if (block != NULL) {
        world_touch(block, bytes);
        memset(block, 0xa5, bytes);
    }
    return block;
}

void *seam_malloc(size_t bytes)
{
    return spoil(heap_allocate(bytes, 16), bytes);
}

void *seam_aligned_alloc(size_t alignment, size_t bytes)
{
    return spoil(heap_allocate(bytes, alignment), bytes);
}

void *seam_calloc(size_t count, size_t each)
{
    void *block = each != 0 && count > HEAP_BYTES / each ? NULL : heap_allocate(count * each, 16);
    if (block != NULL) {
        plain_access(block, count * each, true, PLACE);
        memset(block, 0, count * each);
    } else {
        errno = ENOMEM;
    }
    return block;
}

void seam_free(void *block)
{
    if (is_in_memory(block))
        heap_free(block, PLACE);
    else
        free(block); /* the C library, or hwloc, has allocated it */
}

void *seam_realloc(void *block, size_t bytes)
{
    void *larger = seam_malloc(bytes);
    if (larger == NULL || block == NULL)
        return larger;
    size_t before = heap_block_bytes(block);
    seam_memcpy(larger, block, before < bytes ? before : bytes);
    heap_free(block, PLACE);
    return larger;
}

char *seam_strdup(const char *text)
{
    char *copy = heap_allocate(strlen(text) + 1, 16);
    return copy == NULL ? NULL : seam_memcpy(copy, text, strlen(text) + 1);
}

void *seam_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (file >= 0)
        return mmap(at, bytes, protection, flags, file, offset);
    void *block = heap_allocate(bytes, PAGE);
    return block == NULL ? MAP_FAILED : block;
}

int seam_munmap(void *at, size_t bytes)
{
    if (!is_in_memory(at))
        return munmap(at, bytes);
    heap_free(at, PLACE);
    return 0;
}

/* The functions of jemalloc that src/replicas/memory/arena.c calls: arenas are created, and destroyed with
 * all that they have. */
int dti_je_mallctl(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes)
{
    unsigned arena;
    (void)new, (void)new_bytes;
    if (old != NULL)
        memset(old, 0, *old_bytes);
    if (strcmp(name, "arenas.create") == 0) {
        if (W->now.arenas + 1 == MOST_ARENAS)
            return EAGAIN;
        *(unsigned *)old = ++W->now.arenas;
    } else if (strstr(name, ".destroy") != NULL && sscanf(name, "arena.%u", &arena) == 1) {
        heap_free_arena(arena);
    }
    return 0;
}
void *dti_je_malloc(size_t bytes)
{
    return seam_malloc(bytes);
}
void *dti_je_mallocx(size_t bytes, int flags)
{
    uint32_t arena = (uint32_t)(flags >> 20) - 1; /* MALLOCX_ARENA */
    void *block = heap_allocate_in(arena, bytes, (size_t)1 << (flags & 63));
    return (flags & 0x40) != 0 ? block : spoil(block, bytes); /* MALLOCX_ZERO */
}
void dti_je_dallocx(void *block, int flags)
{
    (void)flags;
    heap_free(block, PLACE);
}

/* -- calibration: nothing is measured -- */

ditto_status __wrap_dti_measure_hops(struct dti_team *team, const struct dti_machine_shape *shape,
                                     struct dti_costs *costs)
{
    return (void)team, (void)shape, (void)costs, DITTO_OK;
}
ditto_status __wrap_dti_measure_thresholds(struct dti_sync *sync, ditto_tuning *tuning, bool *in_time)
{
    (void)sync, (void)tuning;
    *in_time = true;
    return DITTO_OK;
}

/* -- product code that is replaced at link time -- */

/* The kernel's account of how long a thread has waited for a PU. */
bool __wrap_dti_run_delay_add(int32_t tid, uint64_t *ran_ns, uint64_t *delayed_ns)
{
    (void)tid;
    *ran_ns += W->now.now_ns / 2;
    *delayed_ns += W->now.is_free ? random_below(1000000) : 0;
    return true;
}

/* Streaming stores are instructions that the compiler does not report. */
void __wrap_dti_stream(void *to, const void *from, size_t bytes)
{
    seam_memcpy(to, from, bytes);
}
