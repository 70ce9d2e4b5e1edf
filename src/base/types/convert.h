/* src/base/types/convert.h - converts elements to and from numbers, and elements of files into the form of
 * this machine. All functions are pure, except that dti_tensor_number records errors. */
#ifndef DTI_CONVERT_H
#define DTI_CONVERT_H

#include <ditto/tensor.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if the byte order of a file differs from the byte order of this machine. */
static inline bool dti_elements_differ(bool big_endian)
{
    return big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* Converts `bytes` bytes of elements in place, at any alignment. If `swap` is true, it reverses the bytes of
 * each element, or of each half of a complex number. A BOOL that is neither 0 nor 1 becomes 1, because
 * reading another value as _Bool is undefined behaviour. */
void dti_elements_arrange(void *data, size_t bytes, ditto_dtype dtype, bool swap);

/* Converts elements to f64. The dtype is any but the complex ones. */
void dti_to_f64(double *out, ditto_dtype dtype, const void *in, size_t count);

/* Sets *out to the only element of a tensor. Returns SHAPE if the tensor does not have exactly one element,
 * and UNSUPPORTED if its dtype is complex. */
ditto_status dti_tensor_number(const ditto_tensor *tensor, double *out);

/* Writes the lowest bytes of the value as an integer of 1, 2, 4 or 8 bytes. */
static inline void dti_integer_store(void *element, size_t bytes, uint64_t value)
{
    switch (bytes) {
    case 1:
        *(uint8_t *)element = (uint8_t)value;
        break;
    case 2:
        *(uint16_t *)element = (uint16_t)value;
        break;
    case 4:
        *(uint32_t *)element = (uint32_t)value;
        break;
    default:
        *(uint64_t *)element = value;
    }
}

/* Writes the value as an element of any dtype. For an integer dtype, the value is truncated, a value outside
 * its range becomes its largest or smallest integer, and NaN becomes 0. A BOOL is true if the value is above
 * 0. For a 16-bit floating-point dtype, the value is rounded to f32 first. */
void dti_number_store(ditto_dtype dtype, void *element, double value);

/* Writes the value to each element of an array. */
void dti_number_fill(ditto_dtype dtype, void *out, size_t count, double value);

#endif
