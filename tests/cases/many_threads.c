/* tests/cases/many_threads.c - each thread that takes memory of the default strategy gets an arena of its
 * own, and jemalloc has 4095. The next thread gets an error that names limits of the system. */
#include "cases.h"

#include <pthread.h>

enum { THREADS = 4200 };

static pthread_barrier_t all;
static _Atomic int failed;

static void *allocate(void *unused)
{
    ditto_replica *self = ditto_get_replica_context();
    void *memory;
    (void)unused;
    if ((self == NULL || ditto_alloc(self, 64, 64, &memory) != DITTO_OK) && failed++ == 0)
        told("the first thread without memory", ditto_last_error()->status);
    pthread_barrier_wait(&all);
    return NULL;
}

int main(void)
{
    static pthread_t thread[THREADS];
    pthread_attr_t small;
    pthread_barrier_init(&all, NULL, THREADS);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], &small, allocate, NULL) != 0)
            return NOT_TRIED;
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    printf("%d of %d threads got no memory\n", failed, THREADS);
    return failed == 0 ? RIGHT : WRONG;
}
