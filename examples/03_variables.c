/* Lesson 3: variables. A mirrored one is equal on all replicas when it has been written; of a sync-on-read one each
 * replica has its own component, and they become one when it is read from outside.
 *
 *     build/examples/03_variables [REPLICAS] */
#include "lesson.h"

#include <stdio.h>

struct variables {
    ditto_variable *weight; /* mirrored: written together */
    ditto_variable *seen;   /* sync-on-read: written alone */
};

static ditto_variable *create(ditto_strategy *strategy, const char *name, double start,
                              ditto_synchronization synchronization, ditto_aggregation aggregation)
{
    ditto_tensor initial = { .data = &start, .dtype = DITTO_F64 }; /* rank 0: a scalar */
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_variable *variable;
    options.name = name;
    options.synchronization = synchronization;
    options.aggregation = aggregation;
    check(ditto_variable_create(strategy, &initial, &options, &variable));
    return variable;
}

static ditto_status step(ditto_replica *self, void *argument)
{
    struct variables *v = argument;
    double id = ditto_replica_id(self), one = 1;
    const void *weight;
    /* All replicas give a value; their MEAN is added, once. They meet here. */
    DITTO_TRY(ditto_assign_add(self, v->weight, &id));
    /* Only this replica's component changes: no meeting, the price of an addition. */
    for (int i = 0; i < 1000; i++)
        DITTO_TRY(ditto_assign_add(self, v->seen, &one));
    /* The nearest copy, as it lies there. */
    DITTO_TRY(ditto_read(self, v->weight, &weight));
    if (ditto_replica_id(self) == 0)
        printf("inside: weight is %g\n", *(const double *)weight);
    return DITTO_OK;
}

static double read(ditto_variable *variable)
{
    double value;
    check(ditto_variable_read(variable, &value, sizeof value));
    return value;
}

int main(int argc, char **argv)
{
    ditto_strategy *strategy = make_strategy(argc, argv);
    struct variables v = { create(strategy, "weight", 1.0, DITTO_ON_WRITE, DITTO_AGGREGATE_MEAN),
                           create(strategy, "seen", 0.0, DITTO_ON_READ, DITTO_AGGREGATE_SUM) };
    check(ditto_strategy_run(strategy, step, &v));
    printf("outside: weight is %g (1 + the mean of the ids), seen is %g (the sum of all components)\n",
           read(v.weight), read(v.seen));

    double ten = 10;
    check(ditto_variable_assign(v.seen, &ten,
                                sizeof ten)); /* spread over the components, so that it reads as 10 */
    printf("seen, assigned 10, reads as %g\n", read(v.seen));

    check(ditto_variable_destroy(v.weight));
    check(ditto_variable_destroy(v.seen));
    check(ditto_strategy_destroy(strategy));
    return 0;
}
