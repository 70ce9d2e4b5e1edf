/* src/strategy/gather.h - components laid side by side along an axis. Pure. */
#ifndef DTI_GATHER_H
#define DTI_GATHER_H

#include <ditto/tensor.h>

/* In this order: SHAPE scalars, SHAPE ranks, RANGE axis, SHAPE another dimension. Data is not looked at. */
ditto_status dti_gather_check(const ditto_tensor *part, uint32_t n, uint32_t axis);
/* What comes out, without data. RANGE: more than memory has. */
ditto_status dti_gather_shape(const ditto_tensor *part, uint32_t n, uint32_t axis, ditto_tensor *whole);
/* One part, after `before` entries along the axis. */
void dti_gather_copy(const ditto_tensor *part, uint32_t axis, size_t before, const ditto_tensor *whole);

#endif
