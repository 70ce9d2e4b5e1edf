/* include/ditto/random.h - random numbers that depend on a seed, a stream and a position, and not on threads.
 *
 *     static ditto_status fill(ditto_replica *self, double *weights, size_t count)
 *     {
 *         ditto_random random;
 *         DITTO_TRY(ditto_random_of(self, 42, &random)); // the stream of this replica
 *         ditto_random_f64(&random, weights, count);     // the same numbers in every run
 *         return DITTO_OK;
 *     }
 *
 * A stream is a sequence of 32-bit words, numbered from 0. Each call takes the next words of the stream, as
 * many as its comment says. So a thread that first skips words gets the numbers that a single thread would
 * have got there. */
#ifndef DITTO_RANDOM_H
#define DITTO_RANDOM_H

#include <ditto/replica.h>

DITTO_BEGIN

/* -- Rules for all functions of this header --
 *
 * They may be called on any thread, except for ditto_random_of. A ditto_random is used by one thread at a
 * time. It is a plain value, so a copy produces the same numbers again. `dst` may be NULL only if `count` is
 * 0. Numbers do not depend on the floating-point modes of the calling thread (rounding, denormals, traps).
 * The modes are unchanged when a call returns.
 *
 * The generator is Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011. It passes its authors' known answers (tests/base/numbers/test_random.c). There are 2^64 seeds,
 * each with 2^64 streams of 2^64 words. The numbers are not suited for secrets. */

/** A position in a stream. Adding to `word` skips words, as if they had been taken. */
typedef struct ditto_random {
    uint64_t seed;   /**< the seed */
    uint64_t stream; /**< number of the stream */
    uint64_t word;   /**< number of the next word */
} ditto_random;

/** Returns the beginning of a stream. The stream is the same on every replica. Streams from 2^63 on are those
 *  of ditto_random_of.
 *
 *  @param seed    the seed
 *  @param stream  number of the stream
 *  @return the position of word 0 */
DITTO_API ditto_random ditto_random_make(uint64_t seed, uint64_t stream);

/** Returns the beginning of the calling replica's own stream, which has the number 2^63 + its id. In a
 *  function that a worker executes (ditto/coordinator.h), it is 2^63 + the worker's first_replica + the id.
 *  Which worker executes a function depends on timing. For numbers that are equal on all replicas, or that do
 *  not depend on the worker, use ditto_random_make.
 *
 *  @param self  the calling replica
 *  @param seed  the seed
 *  @param out   [out] the position of word 0
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_CONTEXT  `self` is not the calling thread's own replica
 *  @retval DITTO_ERR_INVALID  `self` or `out` is NULL */
DITTO_API DITTO_NODISCARD ditto_status ditto_random_of(ditto_replica *self, uint64_t seed, ditto_random *out);

/** Writes integers in [0, bound). A number takes two words. The probability of each integer differs from
 *  1 / bound by less than 2^-64.
 *
 *  @param random  the position
 *  @param bound   the bound. If it is 0, all numbers are 0
 *  @param dst     [out] array of `count` numbers
 *  @param count   number of elements
 *  @par Cost
 *  Time grows with `count`. Ten rounds of two multiplications each make four words. */
DITTO_API void ditto_random_below(ditto_random *random, uint64_t bound, uint64_t *dst, size_t count);

/** Writes multiples of 2^-53 in [0, 1). A number takes two words.
 *
 *  @param random  the position
 *  @param dst     [out] array of `count` numbers
 *  @param count   number of elements
 *  @par Cost
 *  Time grows with `count`. Ten rounds of two multiplications each make four words. */
DITTO_API void ditto_random_f64(ditto_random *random, double *dst, size_t count);

/** Writes numbers of the normal distribution with mean 0 and variance 1.
 *
 *  The call begins at a word whose number is a multiple of four, and skips up to three words for that. Each
 *  number takes two words. Numbers are made in pairs, so a call with an odd `count` takes two words more. No
 *  number is farther than 8.6 from 0. The logarithm, sine and cosine are ditto's own, so the bits are the
 *  same with every compiler, C library and processor.
 *
 *  @param random  the position
 *  @param dst     [out] array of `count` numbers
 *  @param count   number of elements
 *  @par Source
 *  Box and Muller, Ann. Math. Stat. 29(2), 1958.
 *  @par Cost
 *  Time grows with `count`. Two numbers take one logarithm, one square root, one sine and one cosine. */
DITTO_API void ditto_random_normal_f64(ditto_random *random, double *dst, size_t count);

DITTO_END
#endif
