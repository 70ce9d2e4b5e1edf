/* src/base/observe.c - see observe.h. */
#include "base/observe.h"

_Atomic bool dti_usage_on;
static _Atomic(struct dti_usage *) usage_list;

void dti_usage_count(struct dti_usage *usage, const char *name)
{
    /* relaxed: calls is only a number, and listed only decides which thread adds the count to the list. */
    atomic_fetch_add_explicit(&usage->calls, 1, memory_order_relaxed);
    if (atomic_load_explicit(&usage->listed, memory_order_relaxed) != 0 ||
        atomic_exchange_explicit(&usage->listed, 1, memory_order_relaxed) != 0)
        return;
    usage->name = name;
    usage->next = atomic_load_explicit(&usage_list, memory_order_relaxed);
    /* release: publishes name and next to dti_usage_first. */
    while (!atomic_compare_exchange_weak_explicit(&usage_list, &usage->next, usage, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

struct dti_usage *dti_usage_first(void)
{
    /* acquire: pairs with the release in dti_usage_count. */
    return atomic_load_explicit(&usage_list, memory_order_acquire);
}
