/* tests/cases/forged_step.c - a state of an iterator has the step 2^63. Continuing from it never returns. */
#include "forge.h"

int main(void)
{
    ditto_dataset *range;
    MUST(ditto_dataset_from_range(0, 64, 1, &range));
    return continue_forged(range, &(struct forgery){ 5, (uint64_t)1 << 63 }, 1);
}
