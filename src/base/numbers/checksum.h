/* src/base/numbers/checksum.h - CRC-32C (Castagnoli: polynomial 0x1edc6f41, reflected), the checksum of TFRecord files. */
#ifndef DTI_CHECKSUM_H
#define DTI_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Any thread. By the processor's own instruction where it has one. */
uint32_t dti_crc32c(const void *data, size_t bytes);
/* The same from tables, on any processor. */
uint32_t dti_crc32c_tables(const void *data, size_t bytes);

/* As TFRecord keeps them: a checksum of bytes that hold checksums should not look like one. */
static inline uint32_t dti_crc32c_masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

#endif
