/* bench/hand_over.c - see hand_over.h. */
#include "hand_over.h"
#include "bound.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

enum { TRIES = 5, TRIPS = 40, ALL_TRIPS = TRIES * TRIPS + 1 };

/* The line that the caller writes, and the line of the answer. */
static struct {
    alignas(128) _Atomic uint32_t there;
    alignas(128) _Atomic uint32_t back;
} line;

static struct {
    pthread_t thread;
    sem_t awake;
    bool runs, end;
} partner;

static void wait_for(_Atomic uint32_t *word, uint32_t value)
{
    /* acquire: pairs with the release of the other thread. */
    while (atomic_load_explicit(word, memory_order_acquire) != value)
        PAUSE();
}

/* Answers all trips of a reading, and sleeps until the next one. */
static void *answer(void *unused)
{
    (void)unused;
    pin_to_part(1, 2);
    for (;;) {
        sem_wait(&partner.awake);
        if (partner.end)
            return NULL;
        for (uint32_t trip = 1; trip <= ALL_TRIPS; trip++) {
            wait_for(&line.there, trip);
            atomic_store_explicit(&line.back, trip, memory_order_release);
        }
    }
}

static void make_trip(uint32_t trip)
{
    atomic_store_explicit(&line.there, trip, memory_order_release);
    wait_for(&line.back, trip);
}

/* Returns the seconds of the fastest try. The first trip wakes the partner, and is not measured. */
static double fastest_try(void)
{
    double fastest = 1e9;
    uint32_t trip = 1;
    /* relaxed: the semaphore publishes both. */
    atomic_store_explicit(&line.there, 0, memory_order_relaxed);
    atomic_store_explicit(&line.back, 0, memory_order_relaxed);
    sem_post(&partner.awake);
    make_trip(trip++);
    for (int try = 0; try < TRIES; try++) {
        double begin = now_seconds();
        for (int i = 0; i < TRIPS; i++)
            make_trip(trip++);
        double seconds = now_seconds() - begin;
        fastest = seconds < fastest ? seconds : fastest;
    }
    return fastest;
}

void hand_over_open(void)
{
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    pin_to_part(0, 2); /* the first call reads the PUs of the process */
    sched_setaffinity(0, sizeof before, &before);
    if (CPU_COUNT(&before) > 1)
        partner.runs = sem_init(&partner.awake, 0, 0) == 0 &&
                       pthread_create(&partner.thread, NULL, answer, NULL) == 0;
}

double hand_over_ns(void)
{
    cpu_set_t before;
    if (!partner.runs)
        return 0;
    sched_getaffinity(0, sizeof before, &before);
    pin_to_part(0, 2);
    double seconds = fastest_try();
    sched_setaffinity(0, sizeof before, &before);
    return seconds * 1e9 / (2 * TRIPS);
}

uint64_t stolen_ticks(void)
{
    unsigned long long stolen = 0;
    FILE *file = fopen("/proc/stat", "r");
    if (file == NULL)
        return 0;
    /* user, nice, system, idle, iowait, irq, softirq, steal */
    if (fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &stolen) != 1)
        stolen = 0;
    fclose(file);
    return stolen;
}

void hand_over_close(void)
{
    if (!partner.runs)
        return;
    partner.end = true;
    sem_post(&partner.awake);
    pthread_join(partner.thread, NULL);
    partner.runs = false;
}
