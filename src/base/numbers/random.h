/* src/base/numbers/random.h - the words that all random numbers are made of. */
#ifndef DTI_RANDOM_H
#define DTI_RANDOM_H

#include <ditto/random.h>

#include <stdint.h>

/* Computes Philox4x32-10: 128 random bits from a key and a counter. */
void dti_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

/* Writes the next words of the stream. */
void dti_random_words(ditto_random *random, uint32_t *dst, size_t count);

#endif
