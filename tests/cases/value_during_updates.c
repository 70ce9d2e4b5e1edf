/* tests/cases/value_during_updates.c - one thread reduces and takes apart the value of a variable, while runs
 * update it with arguments that differ by replica, and assignments make it equal again. */
#include "cases.h"

#include <pthread.h>

static ditto_strategy *strategy;
static ditto_variable *variable;
static int refused;

static ditto_status add_one(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t num_arguments,
                            void *user, ditto_tensor *result)
{
    (void)arguments, (void)num_arguments, (void)user, (void)result;
    *(float *)copy->data += 1;
    return DITTO_OK;
}

static ditto_status update(ditto_replica *self, void *unused)
{
    float own = 1;
    (void)unused;
    return ditto_update(self, variable, add_one, NULL, &(ditto_tensor){ .data = &own, .dtype = DITTO_F32 }, 1,
                        NULL);
}

static void *read_values(void *unused)
{
    ditto_value *value, *reduced, *result[3];
    uint32_t num_results;
    for (int i = 0; i < 300; i++) {
        if (ditto_variable_value(variable, &value) != DITTO_OK)
            continue;
        if (ditto_strategy_reduce(strategy, DITTO_MEAN, value, NULL, 0, &reduced) == DITTO_OK)
            MUST(ditto_value_destroy(reduced));
        else if (refused++ == 0)
            told("reduce", ditto_last_error()->status);
        if (ditto_strategy_local_results(strategy, value, result, &num_results) == DITTO_OK)
            while (num_results > 0)
                MUST(ditto_value_destroy(result[--num_results]));
        MUST(ditto_value_destroy(value));
    }
    return unused;
}

int main(void)
{
    pthread_t reader;
    float zero = 0;
    strategy = mirrored(3);
    MUST(ditto_variable_create(strategy, &(ditto_tensor){ .data = &zero, .dtype = DITTO_F32 }, NULL,
                               &variable));
    if (pthread_create(&reader, NULL, read_values, NULL) != 0)
        return NOT_TRIED;
    for (int i = 0; i < 100; i++) {
        MUST(ditto_strategy_run(strategy, update, NULL));
        if (i % 3 == 0)
            MUST(ditto_variable_assign(variable, DITTO_ASSIGN, &zero, sizeof zero));
    }
    pthread_join(reader, NULL);
    MUST(ditto_variable_destroy(variable));
    MUST(ditto_strategy_destroy(strategy));
    printf("%d reductions were refused\n", refused);
    return refused == 0 ? RIGHT : WRONG;
}
