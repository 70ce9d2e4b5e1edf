/* src/base/numbers/checksum.h - CRC-32C (Castagnoli: polynomial 0x1edc6f41, reflected), the checksum of
 * TFRecord. */
#ifndef DTI_CHECKSUM_H
#define DTI_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Any thread. Uses the processor's CRC-32C instruction if there is one. */
uint32_t dti_crc32c(const void *data, size_t bytes);

/* Any thread. Returns the same value, computed with tables on any processor. */
uint32_t dti_crc32c_tables(const void *data, size_t bytes);

/* Returns a checksum in the form in which TFRecord stores it. The form is changed so that checksums inside
 * checked data do not look like checksums. */
static inline uint32_t dti_crc32c_masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

#endif
