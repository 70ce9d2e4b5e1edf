/* tests/semantics/reductions/make_values.c - see make_values.h. */
#include "semantics/reductions/make_values.h"

ditto_value *counting(ditto_strategy *strategy, const size_t *rows)
{
    uint32_t n = ditto_strategy_num_replicas(strategy);
    size_t total = 0;
    static double numbers[65536];
    ditto_tensor *t = calloc(n, sizeof *t);
    ditto_value *value;
    for (uint32_t r = 0; r < n; r++) {
        t[r] = (ditto_tensor){ .data = numbers + total, .dtype = DITTO_F64, .rank = 1, .shape = { rows[r] } };
        for (size_t i = 0; i < rows[r]; i++, total++)
            numbers[total] = (double)total;
    }
    assert_ok(ditto_strategy_value_from_tensors(strategy, t + first_local(strategy), 1, &value));
    free(t);
    return value;
}

bool has_replica(const ditto_strategy *strategy, uint32_t replica)
{
    return replica >= first_local(strategy) && replica < end_local(strategy);
}

const int32_t axis_0[1] = { 0 };

ditto_value *make_slices(ditto_strategy *strategy, size_t dense_rows)
{
    static int64_t indices[3][2] = { { 0, 1 }, { 1, 1 }, { 2, 1 } };
    static double values[3][4] = { { 1, 2, 3, 4 }, { 11, 12, 13, 14 }, { 21, 22, 23, 24 } };
    ditto_slices slices[3];
    ditto_value *value;
    for (int r = 0; r < 3; r++)
        slices[r] = (ditto_slices){ indices[r], values[r], 2, 2, DITTO_F64 };
    assert_ok(ditto_strategy_value_from_slices(strategy, slices + first_local(strategy), dense_rows, &value));
    return value;
}
