/* tests/cases/reductions_in_other_order.c - replica 0 reduces a loss and then an accuracy, and replica 1 the
 * accuracy and then the loss. The calls are alike, so each mean is one of a loss and an accuracy. Two
 * variables, and the members of a list, can be exchanged in the same way. */
#include "cases.h"

static ditto_variable *variable[2];

static ditto_status of_buffers(ditto_replica *self, void *out)
{
    double value[2] = { 0.5, 90 };
    uint32_t first = ditto_replica_id(self);
    DITTO_TRY(ditto_all_reduce(self, &value[first], &value[first], 1, DITTO_F64, DITTO_MEAN, NULL));
    DITTO_TRY(ditto_all_reduce(self, &value[!first], &value[!first], 1, DITTO_F64, DITTO_MEAN, NULL));
    if (first == 0)
        *(double *)out = value[0];
    return DITTO_OK;
}

static ditto_status of_variables(ditto_replica *self, void *unused)
{
    double value[2] = { 0.5, 90 };
    uint32_t first = ditto_replica_id(self);
    (void)unused;
    DITTO_TRY(ditto_assign(self, variable[first], DITTO_ASSIGN, &value[first]));
    return ditto_assign(self, variable[!first], DITTO_ASSIGN, &value[!first]);
}

static ditto_status of_lists(ditto_replica *self, void *out)
{
    double value[2] = { 0.5, 90 };
    uint32_t first = ditto_replica_id(self);
    ditto_list_item items[] = { { &value[first], &value[first], 1, DITTO_F64 },
                                { &value[!first], &value[!first], 1, DITTO_F64 } };
    DITTO_TRY(ditto_all_reduce_list(self, items, 2, DITTO_MEAN, NULL));
    if (first == 0)
        *(double *)out = value[0];
    return DITTO_OK;
}

int main(void)
{
    ditto_strategy *strategy = mirrored(2);
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    double buffer = 0.5, list = 0.5, read = 0.5;
    options.aggregation = DITTO_AGGREGATE_MEAN;
    for (int i = 0; i < 2; i++)
        MUST(ditto_variable_create(strategy, &(ditto_tensor){ .dtype = DITTO_F64 }, &options, &variable[i]));
    told("buffers", ditto_strategy_run(strategy, of_buffers, &buffer));
    if (told("variables", ditto_strategy_run(strategy, of_variables, NULL)) == DITTO_OK)
        MUST(ditto_variable_read(variable[0], &read, sizeof read));
    told("lists", ditto_strategy_run(strategy, of_lists, &list));
    printf("mean loss of buffers %g, of variables %g, of lists %g, and not 0.5\n", buffer, read, list);
    MUST(ditto_strategy_destroy(strategy));
    return buffer == 0.5 && read == 0.5 && list == 0.5 ? RIGHT : WRONG;
}
