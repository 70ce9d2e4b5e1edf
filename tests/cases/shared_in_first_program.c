/* tests/cases/shared_in_first_program.c - replicas write their parts of an array of the program, meet in a
 * barrier, and read the part of a neighbour. ThreadSanitizer in the program reports races, because it does
 * not see the orders of a library that was compiled without it. */
#include "cases.h"

static double part[2][1000];

static ditto_status sum_of_neighbour(ditto_replica *self, void *out)
{
    uint32_t id = ditto_replica_id(self);
    double sum = 0;
    for (int i = 0; i < 1000; i++)
        part[id][i] = (int)id + i;
    DITTO_TRY(ditto_barrier(self, NULL));
    for (int i = 0; i < 1000; i++)
        sum += part[!id][i];
    DITTO_TRY(ditto_all_reduce(self, &sum, &sum, 1, DITTO_F64, DITTO_SUM, NULL));
    if (id == 0)
        *(double *)out = sum;
    return DITTO_OK;
}

int main(void)
{
    double sum = 0;
    ditto_strategy *strategy = mirrored(2);
    MUST(ditto_strategy_run(strategy, sum_of_neighbour, &sum));
    MUST(ditto_strategy_destroy(strategy));
    printf("sum: %g\n", sum);
    return sum == 1000000 ? RIGHT : WRONG;
}
