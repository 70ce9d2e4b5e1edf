/* A program as a user writes it. */
#include <ditto.h>
#include <stdio.h>

static ditto_status mean_square(ditto_replica *self, void *unused)
{
    double x = ditto_replica_id(self) + 1.0, y = x * x;
    (void)unused;
    DITTO_TRY(ditto_all_reduce(self, &y, &y, 1, DITTO_F64, DITTO_MEAN, NULL));
    if (ditto_replica_id(self) == 0)
        printf("mean square over %u replicas: %g\n", ditto_num_replicas(self), y);
    return DITTO_OK;
}

int main(void)
{
    ditto_strategy *strategy;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    options.num_replicas = 2;
    if (ditto_strategy_create(DITTO_MIRRORED, &options, &strategy) != DITTO_OK ||
        ditto_strategy_run(strategy, mean_square, NULL) != DITTO_OK)
        return fprintf(stderr, "%s\n", ditto_last_error()->message), 1;
    return ditto_strategy_destroy(strategy) == DITTO_OK ? 0 : 1;
}
