/* bench/samples.c - medians of samples, see samples.h. */
#include "samples.h"

#include <stdio.h>
#include <stdlib.h>

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void sort_samples(double *sample, uint32_t count)
{
    qsort(sample, count, sizeof *sample, compare);
}

double median_of(double *sample, uint32_t count)
{
    sort_samples(sample, count);
    return sample[count / 2];
}

void must(ditto_status status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "ditto-bench: %s: %s\n", ditto_status_name(status), ditto_last_error()->message);
    exit(1);
}
