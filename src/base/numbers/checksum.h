/* src/base/numbers/checksum.h - CRC-32C (Castagnoli: polynomial 0x1edc6f41, reflected), the checksum of
 * TFRecord, and hashes. */
#ifndef DTI_CHECKSUM_H
#define DTI_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns the CRC-32C of the data. It is computed by the processor's instruction if there is one. Any thread
 * may call it. */
uint32_t dti_crc32c(const void *data, size_t bytes);

/* Returns the same value, computed with tables. This works on every processor. Any thread may call it. */
uint32_t dti_crc32c_tables(const void *data, size_t bytes);

/* Returns a CRC in the masked form that TFRecord stores. The CRC of data that contains its own CRC would be
 * of little use, and masking avoids this. */
static inline uint32_t dti_crc32c_masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* FNV-1a (Fowler, Noll, Vo), 64 bits. It detects accidental damage and gives no other protection. `seed` is
 * DTI_HASH_SEED, or the hash of the bytes before these. These hashes are stored in files. */
#define DTI_HASH_SEED 0xcbf29ce484222325u
uint64_t dti_hash_bytes(uint64_t seed, const void *data, size_t bytes);

/* Adds a word to a hash that is never stored. It multiplies by an odd constant, which carries lower bits into
 * upper ones, and folds the upper bits into the lower ones. */
static inline uint64_t dti_hash_word(uint64_t seed, uint64_t word)
{
    uint64_t hash = (seed ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* Adds bytes to a hash that is never stored. */
static inline uint64_t dti_hash_words(uint64_t seed, const void *data, size_t bytes)
{
    const unsigned char *from = data;
    for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), from += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, from, sizeof word);
        seed = dti_hash_word(seed, word);
    }
    return dti_hash_bytes(dti_hash_word(seed, bytes), from, bytes);
}

#endif
