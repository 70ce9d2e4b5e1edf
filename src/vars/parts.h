/* src/vars/parts.h - one value in n parts that add up to it. Pure; runs in the default floating-point environment. */
#ifndef DTI_PARTS_H
#define DTI_PARTS_H

#include <ditto/dtype.h>

#include <stdint.h>

/* part[k] = part i of value[k]: floating value / n (the sum may differ in the last place); integers in equal parts, the
 * remainder one each to the first, so that the sum is exact. Of a dtype that has a SUM; `part` does not overlap `value`. */
void dti_part_of(ditto_dtype dtype, const void *value, uint32_t i, uint32_t n, void *part, size_t count);

#endif
