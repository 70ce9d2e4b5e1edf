/* tests/cases/value_during_updates.c - one thread reduces the value of a variable, while runs update the
 * variable with arguments that differ by replica. Whether its copies may differ is read without a lock, which
 * ThreadSanitizer reports if the library is compiled with it. */
#include "cases.h"

#include <pthread.h>

static ditto_strategy *strategy;
static ditto_variable *variable;

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

static void *reduce(void *unused)
{
    ditto_value *value, *reduced;
    for (int i = 0; i < 300; i++) {
        MUST(ditto_variable_value(variable, &value));
        MUST(ditto_strategy_reduce(strategy, DITTO_MEAN, value, NULL, 0, &reduced));
        MUST(ditto_value_destroy(reduced));
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
    if (pthread_create(&reader, NULL, reduce, NULL) != 0)
        return NOT_TRIED;
    for (int i = 0; i < 100; i++) {
        MUST(ditto_strategy_run(strategy, update, NULL));
        if (i % 3 == 0)
            MUST(ditto_variable_assign(variable, DITTO_ASSIGN, &zero, sizeof zero));
    }
    pthread_join(reader, NULL);
    MUST(ditto_variable_destroy(variable));
    MUST(ditto_strategy_destroy(strategy));
    return RIGHT;
}
