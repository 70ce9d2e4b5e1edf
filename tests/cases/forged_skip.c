/* tests/cases/forged_skip.c - a state of a repeated dataset says that 2^32 rows are to be skipped, although
 * ditto_dataset_repeat skips none. It is accepted, and the run ends by its time limit. */
#include "forge.h"

int main(void)
{
    ditto_dataset *range, *forever;
    MUST(ditto_dataset_from_range(0, 20, 1, &range));
    MUST(ditto_dataset_repeat(range, DITTO_REPEAT_FOREVER, &forever));
    /* The last numbers are rows to skip, rows to take, whether the pass has given a row, and those of the
     * range: its next row. */
    return continue_forged(forever, &(struct forgery){ -4, (uint64_t)1 << 32 }, 1);
}
