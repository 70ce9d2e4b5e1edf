/* tests/semantics/copies/split_variables.c - see split_variables.h. */
#include "semantics/copies/split_variables.h"
#include "support/as_hosts.h"

uint32_t nodes_of(const ditto_strategy *s)
{
    return num_local(s) > 1 ? 2 : 1;
}

ditto_variable *make(ditto_strategy *s, double start, ditto_aggregation how, ditto_copies copies)
{
    double values[COUNT];
    ditto_tensor t = { .data = values, .dtype = DITTO_F64, .rank = 1, .shape = { COUNT } };
    ditto_variable *v;
    for (int i = 0; i < COUNT; i++)
        values[i] = start;
    assert_ok(ditto_variable_create(s, &t, &OPTIONS(variable, .aggregation = how, .copies = copies), &v));
    return v;
}

const double *component(ditto_variable *v, uint32_t replica)
{
    const void *data;
    assert_ok(component_of(v, replica, &data));
    return data;
}

uint32_t count_copies(const ditto_strategy *s, ditto_variable *v)
{
    uint32_t copies = 0;
    for (uint32_t i = first_local(s); i < end_local(s); i++) {
        uint32_t before = first_local(s);
        while (before < i && component(v, before) != component(v, i))
            before++;
        copies += before == i;
    }
    return copies;
}

void expect_components(const ditto_strategy *s, ditto_variable *v, double first, double step)
{
    for (uint32_t r = first_local(s); r < end_local(s); r++)
        for (int i = 0; i < COUNT; i++)
            if (component(v, r)[i] != first + step * r)
                fail_msg("element %d of component %u is %g, not %g", i, r, component(v, r)[i],
                         first + step * r);
}

ditto_value *numbers_from(ditto_strategy *s, double first)
{
    double number[64];
    ditto_tensor t[64];
    ditto_value *value;
    for (uint32_t r = 0; r < 64; r++) {
        number[r] = first + r;
        t[r] = (ditto_tensor){ .data = &number[r], .dtype = DITTO_F64 };
    }
    assert_ok(ditto_strategy_value_from_tensors(s, t, 1, &value));
    return value;
}

ditto_value *ids_from_1(ditto_strategy *s)
{
    return numbers_from(s, first_local(s) + 1.0);
}

_Atomic uint32_t calls;

ditto_status add_argument(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count, void *user,
                          ditto_tensor *result)
{
    for (int i = 0; i < COUNT; i++)
        ((double *)copy->data)[i] += ((const double *)arguments[0].data)[arguments[0].rank == 0 ? 0 : i];
    calls++;
    return DITTO_OK;
}

ditto_status update_with(ditto_variable *v, const ditto_value *argument)
{
    calls = 0;
    return ditto_variable_update(v, add_argument, NULL, (const ditto_value *[]){ argument }, 1, NULL, NULL);
}

void split_from(ditto_strategy *s, ditto_variable *v, double first)
{
    ditto_value *numbers = numbers_from(s, first);
    assert_ok(update_with(v, numbers));
    assert_ok(ditto_value_destroy(numbers));
}

void split(ditto_strategy *s, ditto_variable *v)
{
    split_from(s, v, first_local(s) + 1.0);
}
