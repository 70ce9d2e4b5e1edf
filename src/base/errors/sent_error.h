/* src/base/errors/sent_error.h - statuses and errors as bytes, for other hosts. */
#ifndef DTI_SENT_ERROR_H
#define DTI_SENT_ERROR_H

#include "base/text/bytes.h"

/* Writes a status, and if it is an error, the error record of this thread. The bytes are a multiple of 8. */
void dti_bytes_put_status(struct dti_bytes *to, ditto_status status);

/* Reads what dti_bytes_put_status has written. If the status is an error, it becomes that of this thread.
 * `host` is the number and `name` the name of the host that sent it. Returns the status, or CORRUPT if the
 * bytes cannot be read. */
ditto_status dti_bytes_get_status(struct dti_bytes_reader *from, uint32_t host, const char *name);

#endif
