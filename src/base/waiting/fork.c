/* src/base/waiting/fork.c - see fork.h. */
#include "base/waiting/fork.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/* Holds the number if there is no page that the kernel clears. */
static _Atomic uint32_t plain_word;

/* The number that was given last. A child process counts on from its parent's value. */
static _Atomic uint32_t last;

/* True if a fork will be detected, by the page or by the handler. */
static bool is_watched;

_Atomic uint32_t *dti_process_word = &plain_word;

/* Returns NULL if the kernel refuses such a page. */
static _Atomic uint32_t *map_page_that_forks_clear(void)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, bytes, MADV_WIPEONFORK) == 0)
        return page;
    munmap(page, bytes);
    return NULL;
}

static void clear_in_child(void)
{
    /* relaxed: a child process begins with one thread. */
    atomic_store_explicit(&plain_word, 0, memory_order_relaxed);
}

static void watch_forks(void)
{
    int kept_errno = errno;
    _Atomic uint32_t *page = map_page_that_forks_clear();
    if (page != NULL)
        dti_process_word = page;
    is_watched = page != NULL || pthread_atfork(NULL, NULL, clear_in_child) == 0;
    errno = kept_errno;
}

uint32_t dti_process_number(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    if (!is_watched)
        return 0;
    /* All operations are relaxed, because the numbers are only compared and guard no other data. */
    uint32_t number = atomic_load_explicit(dti_process_word, memory_order_relaxed);
    if (number != 0)
        return number;
    uint32_t next = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    if (atomic_compare_exchange_strong_explicit(dti_process_word, &number, next, memory_order_relaxed,
                                                memory_order_relaxed))
        return next;
    return number; /* another thread was faster */
}
