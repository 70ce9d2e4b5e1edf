/* src/coordinator/encoded.h - functions, their arguments and their results as bytes, for other hosts. */
#ifndef DTI_ENCODED_H
#define DTI_ENCODED_H

#include <ditto/coordinator.h>

#include "base/text/bytes.h"
#include "coordinator/copied.h"

/* What is sent for a function: its name, whether its results are wanted, and its arguments. */
void dti_encode_function(struct dti_bytes *to, const char *name, bool wanted,
                         const struct dti_copied *arguments);
/* *arguments becomes a new copy, or NULL. Returns CORRUPT, or NO_MEMORY. */
ditto_status dti_decode_function(const void *data, size_t bytes, char name[DITTO_MAX_FUNCTION_NAME_BYTES + 1],
                                 bool *wanted, struct dti_copied **arguments);

/* What is sent back: the status, with the error record of this thread if it is an error, and the results,
 * which may be NULL. */
void dti_encode_result(struct dti_bytes *to, ditto_status status, const struct dti_copied *result);
/* Returns the status, and if it is an error, sets the error record of this thread. `host` is the number and
 * `name` the name of the host that sent it. Returns CORRUPT or NO_MEMORY if the result cannot be read. */
ditto_status dti_decode_result(const void *data, size_t bytes, uint32_t host, const char *name,
                               struct dti_copied **result);

#endif
