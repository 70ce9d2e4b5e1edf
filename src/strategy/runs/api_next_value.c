/* src/strategy/runs/api_next_value.c - the functions of include/ditto/distribute.h that return values. They
 * check their arguments. */
#include "input/input.h"
#include "strategy/strategy.h"

ditto_status ditto_iterator_next(ditto_iterator *iterator, ditto_value **out)
{
    DTI_ENTER();
    DTI_HOLD_ITERATOR(iterator);
    DTI_TRY(dti_not_null(out, "out"));
    return dti_input_next_value(iterator, out);
}
