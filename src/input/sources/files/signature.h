/* src/input/sources/files/signature.h - recognises by its first bytes a file that is not what a source reads,
 * such as a compressed file or an error page. A source calls this when it cannot read a row, and puts the
 * result into its message. Sources of text also look at the first bytes of each file. */
#ifndef DTI_SIGNATURE_H
#define DTI_SIGNATURE_H

#include "input/sources/files/files.h"

#include <stdbool.h>

/* The number of first bytes that are looked at. */
#define DTI_SIGNATURE_BYTES 64

/* Returns what a file is that begins with these bytes, and what to do, as in "a zip archive: unpack it".
 * Returns NULL if they are none of the known signatures. If `in_text` is true, it recognises only what no
 * text begins with. Pure. */
const char *dti_signature_find(const char *bytes, size_t length, bool in_text);

/* Reads the first bytes of a file and calls dti_signature_find. Returns NULL also if they cannot be read. The
 * thread's error record does not change, so the result can be added to the message of another error. */
const char *dti_signature_of_file(struct dti_files *files, uint32_t file);

#endif
