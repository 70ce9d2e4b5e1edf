/* tests/cases/mean_of_empty_axis.c - the mean of integers over an axis without elements has 2^61 results of
 * f64. Their size is computed without a check: it exceeds size_t, and the program crashes. */
#include "cases.h"

int main(void)
{
    ditto_strategy *strategy = mirrored(2);
    ditto_tensor empty = { .dtype = DITTO_I8, .rank = 2, .shape = { (size_t)1 << 61, 0 } };
    ditto_value *value, *mean;
    MUST(ditto_strategy_value_from_tensors(strategy, (ditto_tensor[]){ empty, empty }, 1, &value));
    ditto_status status = told("reduce",
                               ditto_strategy_reduce(strategy, DITTO_MEAN, value, &(int32_t){ 1 }, 1, &mean));
    MUST(ditto_value_destroy(value));
    MUST(ditto_strategy_destroy(strategy));
    return status < 0 ? RIGHT : WRONG;
}
