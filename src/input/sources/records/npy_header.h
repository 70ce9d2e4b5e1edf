/* src/input/sources/records/npy_header.h - parses the beginning of a .npy file. All functions are pure. The
 * format is described in NumPy, "numpy.lib.format". */
#ifndef DTI_NPY_HEADER_H
#define DTI_NPY_HEADER_H

#include <ditto/tensor.h>

#include "base/text/text.h"

/* The largest accepted header text. Headers of arrays of numbers have about 120 bytes. */
#define DTI_NPY_HEADER_BYTES 65536

/* The most bytes that are before the header text. */
#define DTI_NPY_PREFIX_BYTES 12

struct dti_npy_header {
    ditto_tensor spec;
    bool swap;    /* the bytes of elements are in the other order than in memory */
    bool fortran; /* Fortran order */
    size_t data_offset;
};

/* Finds the header text, which is bytes [*start, *end) of the file. `bytes` has the first `length` bytes of
 * the file. These are DTI_NPY_PREFIX_BYTES, or all bytes if the file has fewer. Returns the errors of
 * dti_npy_parse. */
ditto_status dti_npy_measure(const char *bytes, size_t length, size_t *start, size_t *end,
                             struct dti_text *why);

/* Parses the header text and sets everything except data_offset. Returns DITTO_ERR_CORRUPT or
 * DITTO_ERR_UNSUPPORTED. It records no error, but writes the cause to `why`. */
ditto_status dti_npy_parse(const char *text, size_t length, struct dti_npy_header *out, struct dti_text *why);

#endif
