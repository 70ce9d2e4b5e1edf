/* bench/word_pairs.h - the inner loop of word2vec, which workers of ditto and plain threads execute. */
#ifndef WORD_PAIRS_H
#define WORD_PAIRS_H

#include <math.h>
#include <stdint.h>

/* A word has a row of each table. A function trains PAIRS pairs, each with NEGATIVE random words. A worker
 * gets WORD_FUNCTIONS of them on average. With 8, workers waited for the last one for up to an eighth of the
 * time, and two took 1.21 of the time of threads instead of 1.04. */
enum { WORDS = 30000, WORD_WIDTH = 100, NEGATIVE = 5, PAIRS = 1000, WORD_FUNCTIONS = 64 };

/* Draws a word. Low numbers are more frequent, as those of words in a text. */
static inline uint64_t draw_word(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t level = *state >> 60; /* 0 to 15 */
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % (level < 14 ? (uint64_t)2 << level : WORDS);
}

/* Skip-gram with negative sampling (Mikolov, Sutskever, Chen, Corrado, Dean, NIPS 2013), as word2vec computes
 * it: one row of `input` and NEGATIVE + 1 rows of `output` are read and changed in place for each pair. The
 * accesses are plain, so threads race for elements. */
static inline void train_word_pairs(float *input, float *output, uint64_t *state)
{
    for (int pair = 0; pair < PAIRS; pair++) {
        float *word = input + draw_word(state) * WORD_WIDTH, change[WORD_WIDTH] = { 0 };
        for (int k = 0; k <= NEGATIVE; k++) {
            float *other = output + draw_word(state) * WORD_WIDTH, product = 0;
            for (int i = 0; i < WORD_WIDTH; i++)
                product += word[i] * other[i];
            float step = 0.025f * ((k == 0) - 1 / (1 + expf(-product)));
            for (int i = 0; i < WORD_WIDTH; i++)
                change[i] += step * other[i];
            for (int i = 0; i < WORD_WIDTH; i++)
                other[i] += step * word[i];
        }
        for (int i = 0; i < WORD_WIDTH; i++)
            word[i] += change[i];
    }
}

#endif
