/* src/input/sources/records/npy_header.h - the beginning of a .npy file: pure functions of its bytes (format: NumPy, "numpy.lib.format"). */
#ifndef DTI_NPY_HEADER_H
#define DTI_NPY_HEADER_H

#include <ditto/tensor.h>

#include "base/base.h"

#define DTI_NPY_HEADER_BYTES 65536 /* of text at most; of arrays of numbers it has about 120 */
#define DTI_NPY_PREFIX_BYTES 12    /* that are before it, at most */

struct dti_npy_header {
    ditto_tensor spec;
    bool swap, fortran;
    size_t data_offset;
};

/* How long the header is: its text is [*start, *end) of the file. `bytes` of the file are there, DTI_NPY_PREFIX_BYTES
 * or all that it has. CORRUPT, UNSUPPORTED: as dti_npy_parse. */
ditto_status dti_npy_measure(const char *bytes, size_t length, size_t *start, size_t *end,
                             struct dti_text *why);
/* The text's meaning; all but data_offset. CORRUPT, UNSUPPORTED: `why` says why, nothing is recorded. */
ditto_status dti_npy_parse(const char *text, size_t length, struct dti_npy_header *out, struct dti_text *why);

#endif
