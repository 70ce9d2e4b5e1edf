/* src/vars/optimizer/optimizer_loops_of_type.h - the loops of ditto/optimizer.h's rules for one floating
 * type.
 *
 * optimizer_loops.c includes this file once for each type, after it has defined NAME (f32), TYPE (float)
 * and SQUARE_ROOT (sqrtf). There is no include guard, because the file is included several times. The
 * numbers of the step are rounded to TYPE once, outside of the loops. `new` may be `old` or the gradient. */
#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)
#define OF(name)    JOIN(NAME, name)

static void OF(descend)(const struct dti_optimizer_step *s, const ditto_rule_range *range, const void *old,
                        void *new)
{
    const TYPE *x = old, *g = range->gradient, rate = (TYPE)s->learning_rate;
    TYPE *y = new;
    DTI_INDEPENDENT
    for (size_t i = 0; i < range->count; i++)
        y[i] = x[i] - rate * g[i];
}

static void OF(momentum)(const struct dti_optimizer_step *s, const ditto_rule_range *range, const void *old,
                         void *new)
{
    const TYPE *x = old, *g = range->gradient;
    const TYPE rate = (TYPE)s->learning_rate, momentum = (TYPE)s->options->momentum;
    TYPE *y = new, *m = range->slot[0];
    DTI_INDEPENDENT
    for (size_t i = 0; i < range->count; i++) {
        m[i] = momentum * m[i] - rate * g[i];
        y[i] = x[i] + m[i];
    }
}

static void OF(nesterov)(const struct dti_optimizer_step *s, const ditto_rule_range *range, const void *old,
                         void *new)
{
    const TYPE *x = old, *g = range->gradient;
    const TYPE rate = (TYPE)s->learning_rate, momentum = (TYPE)s->options->momentum;
    TYPE *y = new, *m = range->slot[0];
    DTI_INDEPENDENT
    for (size_t i = 0; i < range->count; i++) {
        m[i] = momentum * m[i] - rate * g[i];
        y[i] = x[i] + (momentum * m[i] - rate * g[i]);
    }
}

/* Adam. */
static void OF(adapt)(const struct dti_optimizer_step *s, const ditto_rule_range *range, const void *old,
                      void *new)
{
    const TYPE *x = old, *g = range->gradient, b1 = (TYPE)s->options->beta1, b2 = (TYPE)s->options->beta2;
    const TYPE c1 = (TYPE)(1 - s->options->beta1), c2 = (TYPE)(1 - s->options->beta2);
    const TYPE rate = (TYPE)s->rate1, scale = (TYPE)s->scale2, epsilon = (TYPE)s->options->epsilon;
    TYPE *y = new, *m = range->slot[0], *v = range->slot[1];
    DTI_INDEPENDENT
    for (size_t i = 0; i < range->count; i++) {
        m[i] = b1 * m[i] + c1 * g[i];
        v[i] = b2 * v[i] + c2 * g[i] * g[i];
        y[i] = x[i] - rate * m[i] / (SQUARE_ROOT(v[i]) * scale + epsilon);
    }
}

static void OF(decay)(const struct dti_optimizer_step *s, const ditto_rule_range *range, const void *old,
                      void *new)
{
    const TYPE *x = old, part = (TYPE)(s->learning_rate * s->weight_decay);
    TYPE *y = new;
    DTI_INDEPENDENT
    for (size_t i = 0; i < range->count; i++)
        y[i] = x[i] - part * x[i];
}

#undef NAME
#undef TYPE
#undef SQUARE_ROOT
