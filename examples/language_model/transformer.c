/* examples/language_model/transformer.c - one rank's part of a transformer. */
#include "transformer.h"

#include "lesson.h"

#include <string.h>

float *next_part(float *block, size_t *used, size_t count)
{
    float *part = block != NULL ? block + *used : NULL;
    *used += (count + 31) / 32 * 32; /* whole pairs of cache lines */
    return part;
}

/* Divides the memory, and returns how many elements it needs. */
static size_t divide(struct transformer *t, float *block)
{
    size_t used = 0, rows = t->most_rows, layers = t->weights->shape.layers, kept = t->keeps ? layers : 1,
           heads = (size_t)t->kv_heads * t->queries, kv = (size_t)t->kv_heads * t->head,
           kv_cache = layers * t->sequences * t->positions * kv;
    t->x = next_part(block, &used,
                     (kept + 1) * rows * t->dim); /* what enters each layer, and leaves the last */
    t->middle = next_part(block, &used, kept * rows * t->dim); /* between its two halves */
    t->query = next_part(block, &used, kept * rows * heads * t->head);
    t->attended = next_part(block, &used, kept * rows * heads * t->head);
    t->score = next_part(block, &used, t->keeps ? kept * rows * heads * t->positions : t->positions);
    t->gate = next_part(block, &used, kept * rows * t->hidden);
    t->up = next_part(block, &used, kept * rows * t->hidden);
    t->key = next_part(block, &used, kv_cache);
    t->value = next_part(block, &used, kv_cache);
    t->angles = next_part(block, &used, rows * t->head);
    t->wide = next_part(block, &used, rows * t->dim); /* rows of dim elements that are not kept */
    t->narrow = next_part(block, &used, rows * (t->hidden > kv ? t->hidden : kv)); /* and of a rank's part */
    return used;
}

ditto_status transformer_find_weights(struct transformer *t)
{
    ditto_tensor slice;
    size_t first;
    for (int p = 0; p < PARAMETERS; p++) {
        DITTO_TRY(ditto_local_slice(t->self, t->weights->array[p], &slice, &first));
        struct parameter_shape shape = parameter_shape(&t->weights->shape, (enum parameter)p);
        size_t layers = p == EMBEDDING || p == CLASSIFIER || p == FINAL_NORM ? 1 : t->weights->shape.layers;
        struct matrix *m = &t->matrix[p];
        *m = (struct matrix){ slice.data, slice.dtype == DITTO_BF16, 1, 1 };
        m->inputs = shape.inputs;
        if (p == OUTPUT || p == DOWN) /* sliced along its inputs */
            m->inputs = p == OUTPUT ? slice.shape[2] * slice.shape[3] : slice.shape[2];
        m->outputs = 1;
        for (uint32_t i = 0; i < slice.rank; i++)
            m->outputs *= slice.shape[i];
        m->outputs /= layers * m->inputs;
        if (p == CLASSIFIER)
            t->first_word = (uint32_t)first;
    }
    return DITTO_OK;
}

ditto_status transformer_begin(struct transformer *t, ditto_replica *self, const struct weights *weights,
                               uint32_t sequences, uint32_t positions, uint32_t most_rows, bool keeps)
{
    const struct model_shape *s = &weights->shape;
    *t = (struct transformer){ .self = self,
                               .weights = weights,
                               .dim = s->dim,
                               .head = s->dim / s->heads,
                               .queries = s->heads / s->kv_heads,
                               .sequences = sequences,
                               .positions = positions,
                               .most_rows = most_rows,
                               .keeps = keeps };
    DITTO_TRY(ditto_group_of(self, weights->tensor, &t->tensor));
    DITTO_TRY(ditto_group_of(self, weights->data, &t->data));
    DITTO_TRY(transformer_find_weights(t));
    t->kv_heads = (uint32_t)t->matrix[KEY].outputs / t->head;
    t->hidden = (uint32_t)t->matrix[GATE].outputs;
    t->words = (uint32_t)t->matrix[CLASSIFIER].outputs;
    DITTO_TRY(ditto_alloc(self, divide(t, NULL) * sizeof(float), 128, &t->memory));
    divide(t, t->memory);
    return DITTO_OK;
}

ditto_status transformer_end(struct transformer *t)
{
    return ditto_free(t->self, t->memory);
}

ditto_status transformer_add_up(struct transformer *t, float *buffer, size_t count)
{
    ditto_reduce_options options = DITTO_REDUCE_OPTIONS_INIT;
    options.group = &t->tensor;
    double begin = seconds();
    DITTO_TRY(ditto_all_reduce(t->self, buffer, buffer, count, DITTO_F32, DITTO_SUM, &options));
    t->waited += seconds() - begin;
    return DITTO_OK;
}

void transformer_normalize(const struct transformer *t, float *out, const float *x, const float *weight,
                           uint32_t rows)
{
    for (uint32_t r = 0; r < rows; r++)
        normalize(out + (size_t)r * t->dim, x + (size_t)r * t->dim, weight, t->dim);
}

/* Computes the keys or values of the rows, and stores each where its sequence remembers it. */
static void remember(struct transformer *t, enum parameter p, uint32_t layer, const struct row *row,
                     uint32_t rows)
{
    size_t width = (size_t)t->kv_heads * t->head;
    struct matrix m = layer_matrix(t, p, layer);
    multiply(t->narrow, m.outputs, t->wide, rows, &m);
    for (uint32_t r = 0; r < rows; r++) {
        float *to = kv_cache_of(t, p == KEY ? t->key : t->value, layer, row[r].sequence) +
                    row[r].position * width;
        memcpy(to, t->narrow + r * width, width * sizeof *to);
        if (p == KEY)
            rotate(to, t->angles + (size_t)r * t->head, t->kv_heads, t->head, false);
    }
}

/* Attends with all own heads of a row. */
static void attend_row(struct transformer *t, uint32_t layer, const struct row *row, uint32_t r)
{
    size_t heads = (size_t)t->kv_heads * t->queries, width = (size_t)t->kv_heads * t->head;
    float *query = layer_part(t, t->query, layer, heads * t->head) + r * heads * t->head,
          *out = layer_part(t, t->attended, layer, heads * t->head) + r * heads * t->head;
    const float *key = kv_cache_of(t, t->key, layer, row->sequence),
                *value = kv_cache_of(t, t->value, layer, row->sequence);
    rotate(query, t->angles + (size_t)r * t->head, heads, t->head, false);
    for (size_t h = 0; h < heads; h++) {
        size_t shared = h / t->queries * t->head;
        float *score = t->score;
        if (t->keeps)
            score = layer_part(t, score, layer, heads * t->positions) + (r * heads + h) * t->positions;
        attend(out + h * t->head, score, query + h * t->head,
               &(struct kv_cache){ key + shared, value + shared, width, row->position + 1u }, t->head);
    }
}

/* Adds a product to what entered, over all ranks: out = x + m y. */
static ditto_status add_product(struct transformer *t, float *out, const float *x, const float *y,
                                uint32_t rows, struct matrix m)
{
    size_t count = (size_t)rows * t->dim;
    multiply(t->wide, t->dim, y, rows, &m);
    DITTO_TRY(transformer_add_up(t, t->wide, count));
    for (size_t i = 0; i < count; i++)
        out[i] = x[i] + t->wide[i];
    return DITTO_OK;
}

static ditto_status attention_half(struct transformer *t, uint32_t layer, const struct row *row,
                                   uint32_t rows)
{
    size_t heads = (size_t)t->kv_heads * t->queries;
    const float *x = layer_part(t, t->x, layer, t->dim);
    struct matrix m = layer_matrix(t, QUERY, layer);
    transformer_normalize(t, t->wide, x, layer_norm(t, ATTENTION_NORM, layer), rows);
    multiply(layer_part(t, t->query, layer, heads * t->head), m.outputs, t->wide, rows, &m);
    remember(t, KEY, layer, row, rows);
    remember(t, VALUE, layer, row, rows);
    for (uint32_t r = 0; r < rows; r++)
        attend_row(t, layer, &row[r], r);
    return add_product(t, layer_part(t, t->middle, layer, t->dim), x,
                       layer_part(t, t->attended, layer, heads * t->head), rows,
                       layer_matrix(t, OUTPUT, layer));
}

static ditto_status feed_half(struct transformer *t, uint32_t layer, uint32_t rows)
{
    float *gate = layer_part(t, t->gate, layer, t->hidden), *up = layer_part(t, t->up, layer, t->hidden);
    const float *middle = layer_part(t, t->middle, layer, t->dim);
    struct matrix m = layer_matrix(t, GATE, layer);
    transformer_normalize(t, t->wide, middle, layer_norm(t, FEED_NORM, layer), rows);
    multiply(gate, t->hidden, t->wide, rows, &m);
    m = layer_matrix(t, UP, layer);
    multiply(up, t->hidden, t->wide, rows, &m);
    for (size_t i = 0; i < (size_t)rows * t->hidden; i++)
        t->narrow[i] = silu(gate[i]) * up[i];
    return add_product(t, layer_part(t, t->x, layer + 1, t->dim), middle, t->narrow, rows,
                       layer_matrix(t, DOWN, layer));
}

ditto_status transformer_forward(struct transformer *t, const struct row *row, uint32_t rows)
{
    for (uint32_t r = 0; r < rows; r++) {
        copy_row(t->x + (size_t)r * t->dim, &t->matrix[EMBEDDING], (size_t)row[r].token);
        find_angles(t->angles + (size_t)r * t->head, row[r].position, t->head);
    }
    for (uint32_t layer = 0; layer < t->weights->shape.layers; layer++) {
        DITTO_TRY(attention_half(t, layer, row, rows));
        DITTO_TRY(feed_half(t, layer, rows));
    }
    return DITTO_OK;
}

void transformer_logits(struct transformer *t, const uint32_t *which, uint32_t count, float *out)
{
    const float *x = layer_part(t, t->x, t->weights->shape.layers, t->dim);
    for (uint32_t k = 0; k < count; k++)
        normalize(t->wide + (size_t)k * t->dim, x + (size_t)which[k] * t->dim, t->matrix[FINAL_NORM].data,
                  t->dim);
    multiply(out, t->words, t->wide, count, &t->matrix[CLASSIFIER]);
}

ditto_status transformer_best(struct transformer *t, struct candidate *candidates, uint32_t count,
                              struct candidate *best)
{
    ditto_reduce_options options = DITTO_REDUCE_OPTIONS_INIT;
    options.group = &t->tensor;
    double begin = seconds();
    DITTO_TRY(ditto_all_gather(t->self, candidates + (size_t)t->tensor.rank * count, candidates, count, NULL,
                               DITTO_U64, &options));
    t->waited += seconds() - begin;
    for (uint32_t k = 0; k < count; k++) {
        best[k] = candidates[k];
        for (uint32_t rank = 1; rank < t->tensor.size; rank++)
            if (candidates[(size_t)rank * count + k].value > best[k].value)
                best[k] = candidates[(size_t)rank * count + k];
    }
    return DITTO_OK;
}
