/* src/base/numbers/random.c - the functions of include/ditto/random.h except ditto_random_of. Pure. */
#include "base/numbers/random.h"
#include "base/numbers/elementary.h"
#include "base/numbers/fenv.h"

#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide; /* an extension of gcc and clang */

#define ROUNDS         10
#define WORDS_OF_BLOCK 4

/* Normal numbers are made in pieces of at most this many pairs, so that the loop can be vectorised. */
#define MOST_PAIRS 32

/* One round of Philox. It makes two products, swaps their halves, and mixes them with the key. The constants
 * are those of the paper, table 2. */
static void mix(uint32_t c[4], const uint32_t key[2])
{
    uint64_t product0 = UINT64_C(0xD2511F53) * c[0], product2 = UINT64_C(0xCD9E8D57) * c[2];
    uint32_t first = (uint32_t)(product2 >> 32) ^ c[1] ^ key[0],
             third = (uint32_t)(product0 >> 32) ^ c[3] ^ key[1];
    c[0] = first;
    c[1] = (uint32_t)product2;
    c[2] = third;
    c[3] = (uint32_t)product0;
}

void dti_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k[2] = { key[0], key[1] }, c[4] = { counter[0], counter[1], counter[2], counter[3] };
    for (int round = 0; round < ROUNDS; round++) {
        mix(c, k);
        /* The keys are Weyl sequences of the golden ratio and of sqrt(3) - 1. */
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    for (int i = 0; i < 4; i++)
        out[i] = c[i];
}

ditto_random ditto_random_make(uint64_t seed, uint64_t stream)
{
    return (ditto_random){ .seed = seed, .stream = stream };
}

void dti_random_words(ditto_random *random, uint32_t *dst, size_t count)
{
    uint32_t words[WORDS_OF_BLOCK];
    uint32_t key[2] = { (uint32_t)random->seed, (uint32_t)(random->seed >> 32) };
    for (size_t i = 0; i < count;) {
        uint64_t block = random->word / WORDS_OF_BLOCK;
        uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)random->stream,
                                (uint32_t)(random->stream >> 32) };
        dti_philox(key, counter, words);
        for (uint64_t k = random->word % WORDS_OF_BLOCK; k < WORDS_OF_BLOCK && i < count; k++, random->word++)
            dst[i++] = words[k];
    }
}

void ditto_random_below(ditto_random *random, uint64_t bound, uint64_t *dst, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t words[2];
        dti_random_words(random, words, 2);
        dst[i] = (uint64_t)((wide)((uint64_t)words[1] << 32 | words[0]) * bound >> 64);
    }
}

/* NOLINTBEGIN(clang-analyzer-core.*): the analyser does not see that elements are written before they are
 * read */
void ditto_random_f64(ditto_random *random, double *dst, size_t count)
{
    uint32_t words[64];
    while (count != 0) {
        size_t piece = count < 32 ? count : 32;
        dti_random_words(random, words, 2 * piece);
        for (size_t i = 0; i < piece; i++)
            *dst++ = (double)(((uint64_t)words[2 * i + 1] << 32 | words[2 * i]) >> 11) * 0x1p-53;
        count -= piece;
    }
}

void ditto_random_normal_f64(ditto_random *random, double *dst, size_t count)
{
    double uniform[2 * MOST_PAIRS], normal[2 * MOST_PAIRS];
    struct dti_fenv saved = dti_fenv_enter();
    /* The rest of a block that has been used in part is skipped. */
    random->word = (random->word + WORDS_OF_BLOCK - 1) / WORDS_OF_BLOCK * WORDS_OF_BLOCK;
    for (size_t i = 0, piece; i < count; i += piece) {
        size_t pairs = count - i < 2 * MOST_PAIRS ? (count - i + 1) / 2 : MOST_PAIRS;
        piece = count - i < 2 * pairs ? count - i : 2 * pairs;
        ditto_random_f64(random, uniform, 2 * pairs);
        for (size_t k = 0; k < pairs; k++) { /* each pair of numbers comes from one block of the generator */
            double sine, cosine;
            double radius = sqrt(-2 * dti_log(1 - uniform[2 * k])); /* 1 - u is exact, and above 0 */
            dti_sin_cos_of_turns(uniform[2 * k + 1], &sine, &cosine);
            normal[2 * k] = radius * cosine;
            normal[2 * k + 1] = radius * sine;
        }
        /* cppcheck-suppress uninitvar; the loop has written at least `piece` numbers */
        memcpy(dst + i, normal, piece * sizeof *dst);
    }
    dti_fenv_leave(saved);
}

/* NOLINTEND(clang-analyzer-core.*) */
