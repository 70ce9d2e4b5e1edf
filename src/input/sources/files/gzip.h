/* src/input/sources/files/gzip.h - reads the contents of gzip files (RFC 1952) from front to back. If a
 * file has several members, their contents follow one another. */
#ifndef DTI_GZIP_H
#define DTI_GZIP_H

#include "input/sources/files/files.h"

struct dti_gzip;

/* Returns DITTO_ERR_UNSUPPORTED if the library was built without zlib. */
ditto_status dti_gzip_check(void);

/* Makes a reader that is before the first byte of file 0. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_gzip_open(struct dti_files *files, const _Atomic uint32_t *closing, struct dti_gzip **out);
void dti_gzip_close(struct dti_gzip *gzip); /* NULL is allowed */

/* Moves the reader to the first byte of the file. */
void dti_gzip_start(struct dti_gzip *gzip, uint32_t file);

/* Reads the next `bytes` of the contents. *got is less only at their end. Returns DITTO_ERR_CORRUPT if the
 * file is damaged, cut off, or has something else after the last member. The message names the offset in
 * the file and in the contents. Also returns DITTO_ERR_IO and DITTO_ERR_CLOSED. */
ditto_status dti_gzip_read(struct dti_gzip *gzip, void *to, size_t bytes, size_t *got);

/* Returns the offset in the contents of the next byte. */
uint64_t dti_gzip_offset(const struct dti_gzip *gzip);

#endif
