/* bench/language_model.h - the models that `ditto-bench generate` and its peer measure. */
#ifndef BENCH_LANGUAGE_MODEL_H
#define BENCH_LANGUAGE_MODEL_H

#include "../examples/language_model/model.h"

/* A model, whose weights are random, and the texts that it continues at once. */
struct generation {
    const char *name;
    struct model_shape shape;
    bool bf16;
    uint32_t batch;
};

enum { GENERATIONS = 6, GENERATED_POSITIONS = 4 /* those of a batch, over and over */, MOST_BATCH = 8 };

static const struct generation generations[GENERATIONS] = {
    { "15M", { 288, 768, 6, 6, 6, 32000, GENERATED_POSITIONS, true }, false, 1 },
    { "15M", { 288, 768, 6, 6, 6, 32000, GENERATED_POSITIONS, true }, false, 8 },
    { "110M", { 768, 2048, 12, 12, 12, 32000, GENERATED_POSITIONS, true }, false, 1 },
    { "110M", { 768, 2048, 12, 12, 12, 32000, GENERATED_POSITIONS, true }, false, 8 },
    { "1.1B", { 2048, 5632, 22, 32, 4, 32000, GENERATED_POSITIONS, true }, true, 1 },
    { "1.1B", { 2048, 5632, 22, 32, 4, 32000, GENERATED_POSITIONS, true }, true, 8 },
};

#endif
