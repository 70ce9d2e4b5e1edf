/* src/sync/stream.h - copying past the caches. */
#ifndef DTI_STREAM_H
#define DTI_STREAM_H

#include "base/base.h"

#include <string.h>

/* memcpy with non-temporal stores of whole lines, where the processor has them: they are not read before they are written, and
 * what was cached is left alone. Only dti_stream_end makes them seen in order by others. */
void dti_stream(void *to, const void *from, size_t bytes);
/* After the last of them, before the store that says they are there. */
void dti_stream_end(void);

#endif
