/* Lesson 2: collectives. Each replica contributes a part, and all replicas receive the same result, with the
 * same bits.
 *
 *     build/examples/02_all_reduce [REPLICAS] */
#include "lesson.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TERMS = 1000000, LENGTH = 4096 };

/* Adds every N-th term of pi^2 / 6 = 1 + 1/4 + 1/9 + ..., where N is the number of replicas. */
static double partial_sum(uint32_t id, uint32_t replicas)
{
    double sum = 0;
    for (int64_t k = TERMS - id; k > 0; k -= replicas)
        sum += 1.0 / ((double)k * (double)k);
    return sum;
}

static ditto_status add_up(ditto_replica *self, void *result)
{
    uint32_t id = ditto_replica_id(self), replicas = ditto_num_replicas(self);
    double sum = partial_sum(id, replicas), largest = sum;
    /* In place: the buffer is both the source and the destination. */
    DITTO_TRY(ditto_all_reduce(self, &sum, &sum, 1, DITTO_F64, DITTO_SUM, NULL));
    DITTO_TRY(ditto_all_reduce(self, &largest, &largest, 1, DITTO_F64, DITTO_MAX, NULL));
    if (ditto_replica_is_first_of_host(self))
        printf("pi is about %.6f; the largest part was %.6f\n", sqrt(6 * sum), largest);
    ((double *)result)[id] = sum;
    return DITTO_OK;
}

/* A collective may be started now and waited for later. A replica that waits in any collective works on
 * it meanwhile. */
static ditto_status overlap(ditto_replica *self, void *unused)
{
    float gradient[LENGTH], mean[LENGTH];
    double other_work = 0;
    ditto_pending pending;
    (void)unused;
    for (int i = 0; i < LENGTH; i++)
        gradient[i] = (float)ditto_replica_id(self);
    DITTO_TRY(ditto_all_reduce_start(self, gradient, mean, LENGTH, DITTO_F32, DITTO_MEAN, NULL, &pending));
    for (int i = 1; i < 10000; i++)
        other_work += 1.0 / i;
    ditto_status status = ditto_wait(self, &pending, NULL);
    /* After an error, other replicas may still use the local arrays of this function. So it must not simply
     * return. */
    if (status != DITTO_OK)
        return ditto_abandon(self, status);
    if (ditto_replica_is_first_of_host(self))
        printf("the mean of the replicas' ids is %g (and meanwhile: %.3f)\n", (double)mean[LENGTH - 1],
               other_work);
    return DITTO_OK;
}

int main(int argc, char **argv)
{
    ditto_strategy *strategy = strategy_of_words(argc, argv);
    double *result = calloc(ditto_strategy_num_replicas(strategy), sizeof *result); /* by id */
    if (result == NULL)
        return 1;
    check(ditto_strategy_run(strategy, add_up, result));
    ditto_strategy_properties on = DITTO_STRATEGY_PROPERTIES_INIT;
    check(ditto_strategy_info(strategy, &on));
    uint32_t first = on.first_local_replica;
    for (uint32_t i = first; i < first + on.num_local_replicas; i++)
        if (memcmp(&result[i], &result[first], sizeof result[0]) != 0)
            return fprintf(stderr, "replica %u has other bits\n", i), 1;
    printf("all replicas have the same bits\n");
    check(ditto_strategy_run(strategy, overlap, NULL));
    check(ditto_strategy_destroy(strategy));
    free(result);
    return 0;
}
