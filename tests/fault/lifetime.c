/* tests/fault/lifetime.c - see lifetime.h. */
#include "fault/lifetime.h"

const uint32_t counts[COUNTS] = { 1, 2, 3, 8 };

/* -- Creation and destruction -- */

bool make(uint32_t replicas, ditto_caller caller, uint32_t run_timeout_ms, ditto_strategy **out)
{
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = replicas, .caller = caller);
    /* A run of a pinned strategy gives back the turn before its last system call, which restores the
     * affinity. During that call a waiting thread could take the turn and complete its own call. */
    options.pin = DITTO_PIN_NONE;
    options.run_timeout_ms = run_timeout_ms;
    return ditto_strategy_create(DITTO_MIRRORED, &options, out) == DITTO_OK;
}

bool make_variable(ditto_strategy *strategy, ditto_variable **out)
{
    float zeros[4] = { 0 };
    ditto_tensor initial = { .data = zeros, .dtype = DITTO_F32, .rank = 1, .shape = { 4 } };
    return ditto_variable_create(strategy, &initial, &OPTIONS(variable, .aggregation = DITTO_AGGREGATE_SUM),
                                 out) == DITTO_OK;
}

bool make_iterator(ditto_strategy *strategy, uint32_t flags, ditto_iterator **out)
{
    ditto_dataset *rows;
    ditto_input_options options = OPTIONS(
        input, .global_batch = 2 * (uint64_t)ditto_strategy_num_replicas(strategy), .flags = flags);
    if (ditto_dataset_from_range(0, 1000, 1, &rows) != DITTO_OK)
        return false;
    ditto_status status = ditto_strategy_iterate(strategy, rows, &options, out);
    (void)!ditto_dataset_destroy(rows);
    return status == DITTO_OK;
}

bool make_all(struct waiting *w)
{
    return make(2, DITTO_CALLER_DEFAULT, 0, &w->strategy) && make_variable(w->strategy, &w->variable) &&
           make_variable(w->strategy, &w->other) && ditto_variable_value(w->variable, &w->value) == DITTO_OK;
}

bool drop_all(struct waiting *w)
{
    return ditto_value_destroy(w->value) == DITTO_OK &&
           (w->variable == NULL || ditto_variable_destroy(w->variable) == DITTO_OK) &&
           ditto_variable_destroy(w->other) == DITTO_OK && ditto_strategy_destroy(w->strategy) == DITTO_OK;
}

ditto_status destroy_when_idle(ditto_strategy *strategy)
{
    ditto_status status;
    while ((status = ditto_strategy_destroy(strategy)) == DITTO_ERR_BUSY)
        sched_yield();
    return status;
}

ditto_status drop_made(ditto_status status, ditto_value *made)
{
    return status == DITTO_OK ? ditto_value_destroy(made) : status;
}

/* -- Functions that strategies run -- */

ditto_status nothing(ditto_replica *self, void *unused)
{
    return DITTO_OK;
}

ditto_status read_argument(ditto_replica *self, void *unused)
{
    ditto_tensor part;
    return ditto_argument(self, NULL, &part);
}

ditto_status copy_arguments(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                            void *unused, ditto_tensor *result)
{
    for (uint32_t k = 0; k < count; k++)
        memcpy(copy->data, arguments[k].data, 4 * sizeof(float));
    return DITTO_OK;
}

/* -- Calls that read w->value, after they have waited for their turn -- */

ditto_status call_assign_value(struct waiting *w)
{
    return ditto_variable_assign_value(w->other, DITTO_ASSIGN, w->value);
}

ditto_status call_update(struct waiting *w)
{
    const ditto_value *argument = w->value;
    return ditto_variable_update(w->other, copy_arguments, NULL, &argument, 1, NULL, NULL);
}

ditto_status call_run_values(struct waiting *w)
{
    return ditto_strategy_run_values(w->strategy, read_argument, NULL, w->value, NULL, NULL);
}

ditto_status call_run_nest(struct waiting *w)
{
    const ditto_value *member[2] = { w->value, w->value };
    ditto_value *nest;
    ditto_status status = ditto_strategy_nest(w->strategy, NULL, member, 2, &nest);
    if (status == DITTO_OK)
        status = ditto_strategy_run_values(w->strategy, nothing, NULL, nest, NULL, NULL);
    return drop_made(status, nest);
}

ditto_status call_reduce(struct waiting *w)
{
    ditto_value *made;
    ditto_status status = ditto_strategy_reduce(w->strategy, DITTO_MEAN, w->value, NULL, 0, &made);
    return drop_made(status, made);
}

ditto_status call_reduce_to(struct waiting *w)
{
    ditto_value *made;
    ditto_destination first = { .replica = 0 };
    ditto_status status = ditto_strategy_reduce_to(w->strategy, DITTO_MEAN,
                                                   (const ditto_value *[]){ w->value }, &first, 1, &made);
    return drop_made(status, made);
}

ditto_status call_broadcast_to(struct waiting *w)
{
    ditto_value *made;
    float one = 1;
    ditto_tensor tensor = { .data = &one, .dtype = DITTO_F32 };
    ditto_destination places = { .of = w->value };
    ditto_status status = ditto_strategy_broadcast_to(w->strategy, &tensor, places, &made);
    return drop_made(status, made);
}

ditto_status call_gather(struct waiting *w)
{
    ditto_value *made;
    ditto_status status = ditto_strategy_gather(w->strategy, w->value, 0, &made);
    return drop_made(status, made);
}

ditto_status (*const calls_in_turn[CALLS_IN_TURN])(struct waiting *) = {
    call_assign_value, call_update,    call_run_values,   call_run_nest,
    call_reduce,       call_reduce_to, call_broadcast_to, call_gather,
};

/* -- Calls that inspect w->value without taking the turn -- */

ditto_status call_component(struct waiting *w)
{
    ditto_tensor part;
    return ditto_value_component(w->value, 1, &part);
}

ditto_status call_info(struct waiting *w)
{
    ditto_value_properties properties = DITTO_VALUE_PROPERTIES_INIT;
    return ditto_value_info(w->value, &properties);
}

ditto_status call_local_results(struct waiting *w)
{
    ditto_value *part[2];
    uint32_t count = 0;
    ditto_status status = ditto_strategy_local_results(w->strategy, w->value, part, &count);
    for (uint32_t i = 0; status == DITTO_OK && i < count; i++)
        status = ditto_value_destroy(part[i]);
    return status;
}

ditto_status (*const calls_without_turn[CALLS_WITHOUT_TURN])(struct waiting *) = {
    call_component,
    call_info,
    call_local_results,
};
