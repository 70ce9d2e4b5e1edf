/* tests/cases/affinity_of_openmp.c - with OMP_PROC_BIND=true, OpenMP binds the main thread to one PU before
 * main begins. The default strategy then has one replica, on a machine with more cores. */
#include "cases.h"

#include <sched.h>

int main(void)
{
    ditto_strategy *strategy;
    cpu_set_t usable;
    MUST(sched_getaffinity(0, sizeof usable, &usable));
    if (CPU_COUNT(&usable) < 2)
        return NOT_TRIED;
    /* The thread is bound as OpenMP does it, so that the case needs no OpenMP. */
    int here = sched_getcpu();
    CPU_ZERO(&usable);
    CPU_SET((size_t)here, &usable);
    MUST(sched_setaffinity(0, sizeof usable, &usable));
    MUST(ditto_strategy_create(DITTO_MIRRORED, NULL, &strategy));
    uint32_t replicas = ditto_strategy_num_replicas(strategy);
    char text[4096];
    MUST(ditto_strategy_describe(strategy, text, sizeof text, NULL));
    printf("replicas: %u\n%s", replicas, text);
    MUST(ditto_strategy_destroy(strategy));
    return replicas > 1 ? RIGHT : WRONG;
}
