/* src/replicas/load.c - process-wide counts of ditto's threads.
 * All orders are relaxed: the counts steer waiting, nothing is read through them, and a stale one costs only time. */
#include "replicas/load.h"
#include "base/base.h"
#include "replicas/pin.h"

static _Atomic uint16_t on_pu[DTI_MAX_PUS];
static _Atomic uint32_t floating, all, epoch;

uint32_t dti_load_epoch(void)
{
    return atomic_load_explicit(&epoch, memory_order_relaxed);
}

uint32_t dti_load_on(uint32_t pu)
{
    return atomic_load_explicit(&on_pu[pu], memory_order_relaxed);
}

void dti_load_add(uint32_t pu)
{
    atomic_fetch_add_explicit(&epoch, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&all, 1, memory_order_relaxed);
    if (pu == DTI_NO_PU)
        atomic_fetch_add_explicit(&floating, 1, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&on_pu[pu], 1, memory_order_relaxed);
}

void dti_load_remove(uint32_t pu)
{
    atomic_fetch_add_explicit(&epoch, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&all, 1, memory_order_relaxed);
    if (pu == DTI_NO_PU)
        atomic_fetch_sub_explicit(&floating, 1, memory_order_relaxed);
    else
        atomic_fetch_sub_explicit(&on_pu[pu], 1, memory_order_relaxed);
}

bool dti_load_crowded(uint32_t pu, uint32_t pus, double cpu_quota)
{
    uint32_t threads = atomic_load_explicit(&all, memory_order_relaxed);
    bool shared = pu != DTI_NO_PU && atomic_load_explicit(&on_pu[pu], memory_order_relaxed) > 1;
    bool crowd = atomic_load_explicit(&floating, memory_order_relaxed) > 0 && threads > pus;
    return shared || crowd || (cpu_quota > 0 && cpu_quota < threads);
}
