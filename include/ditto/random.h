/* include/ditto/random.h - random numbers that do not depend on threads: each is a function of a seed, a stream and its
 * place.
 *
 *     ditto_random random;
 *     DITTO_TRY(ditto_random_of(self, 42, &random));                 a stream of this replica's own
 *     ditto_random_f64(&random, weights, count);                     the same in every run
 *
 * A stream is words of 32 bits, numbered from 0; a call takes those that follow the ones taken before, as many as it
 * says. So a thread that begins with ditto_random_skip gets what one thread alone would have got there.
 *
 * Generator: Philox4x32-10, Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011; it
 * passes its authors' known answers (tests/base/numbers/test_random.c). 2^64 seeds, each of 2^64 streams of 2^64 words. Not
 * for secrets.
 *
 * All functions: any thread; a ditto_random is used by one thread at a time, and is a plain value: a copy goes the same
 * way again. Sizes in elements. No pointer may be NULL where there is something to write. Numbers do not depend on the calling thread's
 * floating-point environment, which is as before when a call returns. */
#ifndef DITTO_RANDOM_H
#define DITTO_RANDOM_H

#include <ditto/replica.h>

DITTO_BEGIN

/** Where one is in a stream. The fields are the library's. */
typedef struct ditto_random {
    uint64_t seed, stream, word;
} ditto_random;

/** The function itself: 128 random bits of a key and a counter. */
DITTO_API void ditto_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

/** The beginning of a stream; the same everywhere. Streams of replicas are those from 2^63 on. */
DITTO_API ditto_random ditto_random_make(uint64_t seed, uint64_t stream);
/** The beginning of the calling replica's own stream for this seed: stream 2^63 + its id. For numbers that are equal on
 *  all replicas use ditto_random_make. Replica context.  @retval DITTO_ERR_CONTEXT  self is not the thread's own
 *  @retval DITTO_ERR_INVALID  NULL */
DITTO_API DITTO_NODISCARD ditto_status ditto_random_of(ditto_replica *self, uint64_t seed, ditto_random *out);
/** Goes `words` on, as if they had been taken. Cost: none. */
DITTO_API void ditto_random_skip(ditto_random *random, uint64_t words);

/** Words as they are: one each. */
DITTO_API void ditto_random_u32(ditto_random *random, uint32_t *dst, size_t count);
/** Integers in [0, bound), bound > 0: two words each. Some are more frequent than others, by less than bound / 2^64. */
DITTO_API void ditto_random_below(ditto_random *random, uint64_t bound, uint64_t *dst, size_t count);
/** In [0, 1): multiples of 2^-24, one word each. */
DITTO_API void ditto_random_f32(ditto_random *random, float *dst, size_t count);
/** In [0, 1): multiples of 2^-53, two words each. */
DITTO_API void ditto_random_f64(ditto_random *random, double *dst, size_t count);
/** Of the normal distribution with mean 0 and variance 1, two words each, from the next word on whose number is a
 *  multiple of four: two at a time by Box and Muller (Ann. Math. Stat. 29(2), 1958). The logarithm, sine and cosine are
 *  ditto's own, so the bits are the same with every compiler, C library and processor. No number is further than 8.6 from
 *  0. An odd count leaves two words unused. */
DITTO_API void ditto_random_normal_f64(ditto_random *random, double *dst, size_t count);
/** The same, computed in f64 and rounded. */
DITTO_API void ditto_random_normal_f32(ditto_random *random, float *dst, size_t count);

DITTO_END
#endif
