/* examples/language_model/weights.c - the weights of a model as variables of a strategy. */
#include "weights.h"
#include "arithmetic.h"

#include "lesson.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 4096 /* elements that are made at a time */ };

/* What initializes one variable. */
struct filling {
    const struct weight_source *source;
    const float *file; /* its elements in the file, or NULL */
    struct parameter_shape shape;
    enum parameter parameter;
};

/* Stores elements `first` to `first + count` of a parameter. Element k is made of the same random numbers
 * wherever it lies. */
static void make_elements(const struct filling *f, size_t first, size_t count, float *out)
{
    if (f->file != NULL || !f->shape.is_matrix) {
        for (size_t i = 0; i < count; i++)
            out[i] = f->file != NULL ? f->file[first + i] : 1;
        return;
    }
    double normal[PIECE + 2];
    ditto_random random = ditto_random_make(f->source->seed, (uint64_t)f->parameter);
    random.word = first / 2 * 4; /* two numbers are made of four words */
    ditto_random_normal_f64(&random, normal, count + first % 2);
    for (size_t i = 0; i < count; i++)
        out[i] = (float)(normal[first % 2 + i] * f->source->deviation);
}

static void store(const ditto_tensor *slice, size_t at, const float *elements, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice->dtype == DITTO_BF16)
            ((uint16_t *)slice->data)[at + i] = round_to_bf16(elements[i]);
        else
            ((float *)slice->data)[at + i] = elements[i];
}

/* Called for each slice, on the thread of a replica that has it, so that its pages lie on that one's node. */
static ditto_status fill(const ditto_tensor *slice, size_t first, void *user)
{
    const struct filling *f = user;
    size_t outer = 1, inner = 1, sliced = f->shape.sliced < 0 ? 0 : (size_t)f->shape.sliced;
    for (size_t i = 0; i < slice->rank; i++)
        *(i < sliced ? &outer : &inner) *= i == sliced ? 1 : slice->shape[i];
    size_t own = slice->shape[sliced] * inner, all = f->shape.extent[sliced] * inner;
    for (size_t o = 0; o < outer; o++)
        for (size_t at = 0; at < own; at += PIECE) {
            float elements[PIECE];
            size_t count = own - at < PIECE ? own - at : PIECE;
            make_elements(f, o * all + first * inner + at, count, elements);
            store(slice, o * own + at, elements, count);
        }
    return DITTO_OK;
}

static ditto_variable *create(ditto_strategy *strategy, ditto_grouping *tensor, struct filling *f)
{
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_tensor all = { .dtype = f->source->bf16 && f->shape.is_matrix ? DITTO_BF16 : DITTO_F32,
                         .rank = f->shape.rank };
    ditto_variable *variable;
    for (uint32_t i = 0; i < f->shape.rank; i++)
        all.shape[i] = f->shape.extent[i];
    options.name = f->shape.name;
    options.aggregation = DITTO_AGGREGATE_SUM;
    options.initialize = fill;
    options.initialize_user = f;
    if (f->shape.sliced >= 0) {
        options.partitioner.kind = DITTO_PARTITION_BY_REPLICA;
        options.slice_axis = (uint32_t)f->shape.sliced;
        options.slice_along = tensor;
    }
    check(ditto_variable_create(strategy, &all, &options, &variable));
    return variable;
}

void weights_check_division(const struct model_shape *shape, uint32_t tensor)
{
    const char *what = tensor > shape->kv_heads ? "key/value heads"
                       : tensor > shape->hidden ? "rows of the feed-forward part"
                                                : NULL;
    if (what == NULL)
        return;
    fprintf(stderr, "tensor is %u, but the model has only %u %s to divide: use at most as many ranks\n",
            tensor, tensor > shape->kv_heads ? shape->kv_heads : shape->hidden, what);
    exit(2);
}

struct weights weights_create(ditto_strategy *strategy, const struct model_shape *shape, uint32_t data,
                              uint32_t tensor, const struct weight_source *source)
{
    struct weights w = { .shape = *shape };
    const ditto_mesh_axis axes[] = { { "data", data }, { "tensor", tensor } };
    ditto_grouping *axis[2];
    check(ditto_strategy_mesh(strategy, axes, 2, axis));
    w.data = axis[0];
    w.tensor = axis[1];
    for (int p = 0; p < PARAMETERS; p++)
        w.array[p] = create(strategy, w.tensor,
                            &(struct filling){ .source = source,
                                               .file = source->file != NULL ? source->file->array[p] : NULL,
                                               .shape = parameter_shape(shape, (enum parameter)p),
                                               .parameter = (enum parameter)p });
    return w;
}

void weights_destroy(struct weights *w)
{
    for (int p = 0; p < PARAMETERS; p++)
        check(ditto_variable_destroy(w->array[p]));
    check(ditto_grouping_destroy(w->data));
    check(ditto_grouping_destroy(w->tensor));
}
