/* src/replicas/stop.c - ending a run early. */
#include "replicas/stop.h"

#include <sched.h>

void dti_stop_init(struct dti_stop *stop)
{
    atomic_init(&stop->stopped, 0);
    atomic_init(&stop->claimed, 0);
}

bool dti_stop_now(struct dti_stop *stop, const ditto_error *error)
{
    /* relaxed: only decides who writes; the record is published by stopped */
    if (atomic_exchange_explicit(&stop->claimed, 1, memory_order_relaxed) != 0) {
        while (!dti_stopped(stop)) /* the winner is writing: its error is what this caller will tell */
            sched_yield();
        return false;
    }
    stop->error = *error;
    atomic_store_explicit(&stop->stopped, 1, memory_order_release); /* X0 */
    return true;
}

void dti_stop_renew(struct dti_stop *stop)
{
    /* relaxed: the next run's go word publishes both to the replicas */
    atomic_store_explicit(&stop->stopped, 0, memory_order_relaxed);
    atomic_store_explicit(&stop->claimed, 0, memory_order_relaxed);
}
