/* Lesson 3: variables. A mirrored variable is written by all replicas together and is equal on all of them. A
 * sync-on-read variable has its own component on each replica. The components are combined when it is read in
 * cross-replica context.
 *
 *     build/examples/03_variables [REPLICAS] */
#include "lesson.h"

#include <stdio.h>

struct variables {
    ditto_variable *weight; /* mirrored: all replicas write it together */
    ditto_variable *seen;   /* sync-on-read: each replica has its own component */
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
    /* Each replica passes a value. The mean of all values is added once. The replicas wait for each other
     * here. */
    DITTO_TRY(ditto_assign(self, v->weight, DITTO_ASSIGN_ADD, &id));
    /* Only this replica's component changes. It waits for no other replica, so the call costs little more
     * than an addition. */
    for (int i = 0; i < 1000; i++)
        DITTO_TRY(ditto_assign(self, v->seen, DITTO_ASSIGN_ADD, &one));
    /* Returns a pointer to the nearest copy. */
    DITTO_TRY(ditto_read(self, v->weight, &weight));
    if (ditto_replica_is_first_of_host(self))
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
    ditto_strategy *strategy = strategy_of_words(argc, argv);
    struct variables v = { create(strategy, "weight", 1.0, DITTO_ON_WRITE, DITTO_AGGREGATE_MEAN),
                           create(strategy, "seen", 0.0, DITTO_ON_READ, DITTO_AGGREGATE_SUM) };
    check(ditto_strategy_run(strategy, step, &v));
    printf("outside: weight is %g (1 + the mean of the ids), seen is %g (the sum of all components)\n",
           read(v.weight), read(v.seen));

    double ten = 10;
    /* Distributes 10 over the components, so that their sum is 10. */
    check(ditto_variable_assign(v.seen, DITTO_ASSIGN, &ten, sizeof ten));
    printf("seen, assigned 10, reads as %g\n", read(v.seen));

    check(ditto_variable_destroy(v.weight));
    check(ditto_variable_destroy(v.seen));
    check(ditto_strategy_destroy(strategy));
    return 0;
}
