/* tests/cases/names_are_kept.c - a name is registered with other data and taken back, again and again. No
 * entry is freed, and each registration goes through all that there ever were. */
#include "cases.h"

#include <malloc.h>

static ditto_status nothing(ditto_replica *self, void *unused)
{
    (void)self, (void)unused;
    return DITTO_OK;
}

int main(void)
{
    static char data[20000];
    size_t before = mallinfo2().uordblks;
    double begin = seconds(CLOCK_MONOTONIC), half = 0;
    for (int i = 0; i < 20000; i++) {
        MUST(ditto_function_register("step", nothing, &data[i]));
        MUST(ditto_function_unregister("step"));
        if (i == 10000)
            half = seconds(CLOCK_MONOTONIC);
    }
    size_t kept = mallinfo2().uordblks - before;
    printf("first half %.2f s, second half %.2f s, %zu bytes are kept\n", half - begin,
           seconds(CLOCK_MONOTONIC) - half, kept);
    return kept < 20000 ? RIGHT : WRONG;
}
