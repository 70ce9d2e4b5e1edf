/* src/input/sources/files/gzip.h - the contents of gzip files (RFC 1952), from front to back. A file may have several members: their contents
 * follow one another. */
#ifndef DTI_GZIP_H
#define DTI_GZIP_H

#include "input/dataset.h"
#include "input/sources/files/files.h"

struct dti_gzip;

/* UNSUPPORTED where the library was built without zlib. */
ditto_status dti_gzip_check(void);

/* NO_MEMORY. It stands before the first byte of file 0. */
ditto_status dti_gzip_open(struct dti_files *files, const _Atomic uint32_t *closing, struct dti_gzip **out);
void dti_gzip_close(struct dti_gzip *gzip);                /* NULL is allowed */
void dti_gzip_start(struct dti_gzip *gzip, uint32_t file); /* goes to its first byte */
/* The next `bytes` of the contents; *got is less only at their end. CORRUPT: damaged, cut off, or something behind the last member,
 * naming both offsets. IO, CLOSED. */
ditto_status dti_gzip_read(struct dti_gzip *gzip, void *to, size_t bytes, size_t *got);
uint64_t dti_gzip_offset(const struct dti_gzip *gzip); /* of the next byte in the contents */

#endif
