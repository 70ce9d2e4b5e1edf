/* src/vars/optimizer/optimizer_loops.c - the arithmetic of ditto/optimizer.h's rules. Compiled once for each instruction set, with DTI_OPTIMIZER_LOOPS naming
 * the table that comes out (src/meson.build). No step depends on another element, and nothing is fused: all tables give the same
 * bits (tests/semantics/test_optimizer.c). */
#include "vars/optimizer/optimizer_step.h"

#include <math.h>

/* Each array is another one, or the same from its first element on (optimizer_step.h). */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* The loops of one floating type. Numbers of the step are rounded to it once, outside. `new` may be `old` or the gradient. */
#define LOOPS(type, root)                                                                               \
    static void descend_##type(const struct dti_optimizer_step *s, const ditto_rule_range *range,       \
                               const void *old, void *new)                                              \
    {                                                                                                   \
        const type *x = old, *g = range->gradient, rate = (type)s->learning_rate;                       \
        type *y = new;                                                                                  \
        INDEPENDENT for (size_t i = 0; i < range->count; i++)                                           \
        {                                                                                               \
            y[i] = x[i] - rate * g[i];                                                                  \
        }                                                                                               \
    }                                                                                                   \
    static void momentum_##type(const struct dti_optimizer_step *s, const ditto_rule_range *range,      \
                                const void *old, void *new)                                             \
    {                                                                                                   \
        const type *x = old, *g = range->gradient;                                                      \
        const type rate = (type)s->learning_rate, momentum = (type)s->options->momentum;                \
        type *y = new, *m = range->slot[0];                                                             \
        INDEPENDENT for (size_t i = 0; i < range->count; i++)                                           \
        {                                                                                               \
            m[i] = momentum * m[i] - rate * g[i];                                                       \
            y[i] = x[i] + m[i];                                                                         \
        }                                                                                               \
    }                                                                                                   \
    static void nesterov_##type(const struct dti_optimizer_step *s, const ditto_rule_range *range,      \
                                const void *old, void *new)                                             \
    {                                                                                                   \
        const type *x = old, *g = range->gradient;                                                      \
        const type rate = (type)s->learning_rate, momentum = (type)s->options->momentum;                \
        type *y = new, *m = range->slot[0];                                                             \
        INDEPENDENT for (size_t i = 0; i < range->count; i++)                                           \
        {                                                                                               \
            m[i] = momentum * m[i] - rate * g[i];                                                       \
            y[i] = x[i] + (momentum * m[i] - rate * g[i]);                                              \
        }                                                                                               \
    }                                                                                                   \
    static void adapt_##type(const struct dti_optimizer_step *s, const ditto_rule_range *range,         \
                             const void *old, void *new)                                                \
    {                                                                                                   \
        const type *x = old, *g = range->gradient, b1 = (type)s->options->beta1,                        \
                   b2 = (type)s->options->beta2;                                                        \
        const type c1 = (type)(1 - s->options->beta1), c2 = (type)(1 - s->options->beta2);              \
        const type rate = (type)s->rate1, scale = (type)s->scale2, epsilon = (type)s->options->epsilon; \
        type *y = new, *m = range->slot[0], *v = range->slot[1];                                        \
        INDEPENDENT for (size_t i = 0; i < range->count; i++)                                           \
        {                                                                                               \
            m[i] = b1 * m[i] + c1 * g[i];                                                               \
            v[i] = b2 * v[i] + c2 * g[i] * g[i];                                                        \
            y[i] = x[i] - rate * m[i] / (root(v[i]) * scale + epsilon);                                 \
        }                                                                                               \
    }                                                                                                   \
    static void decay_##type(const struct dti_optimizer_step *s, const ditto_rule_range *range,         \
                             const void *old, void *new)                                                \
    {                                                                                                   \
        const type *x = old, part = (type)(s->learning_rate * s->options->weight_decay);                \
        type *y = new;                                                                                  \
        INDEPENDENT for (size_t i = 0; i < range->count; i++)                                           \
        {                                                                                               \
            y[i] = x[i] - part * x[i];                                                                  \
        }                                                                                               \
    }
LOOPS(float, sqrtf)
LOOPS(double, sqrt)

const struct dti_optimizer_loops DTI_OPTIMIZER_LOOPS = { .descend = { descend_float, descend_double },
                                                         .momentum = { momentum_float, momentum_double },
                                                         .nesterov = { nesterov_float, nesterov_double },
                                                         .adapt = { adapt_float, adapt_double },
                                                         .decay = { decay_float, decay_double } };
