/* examples/language_model/learn.c - the backward pass through a transformer: gradients of the loss. */
#include "learn.h"

#include "lesson.h"

#include <math.h>
#include <string.h>

static size_t heads_of(const struct transformer *t)
{
    return (size_t)t->kv_heads * t->queries;
}

/* What a rank knows of the probabilities of a row. */
struct outlook {
    float top, sum; /* the largest of its logits, and the sum of exp(logit - top) */
    float target;   /* the logit of the target, or -INFINITY on other ranks */
};
enum { OUTLOOK = sizeof(struct outlook) / sizeof(float) };

/* Divides the memory, and returns how many elements it needs. */
static size_t divide(struct gradients *g, const struct transformer *t, float *block)
{
    size_t used = 0, rows = t->most_rows, own = heads_of(t) * t->head, kv = (size_t)t->kv_heads * t->head;
    for (int p = 0; p < PARAMETERS; p++) {
        g->array[p] = next_part(block, &used, ditto_tensor_bytes(&g->tensor[p]) / sizeof(float));
        g->tensor[p].data = g->array[p];
    }
    g->dx = next_part(block, &used, rows * t->dim);
    g->dnormal = next_part(block, &used, rows * t->dim);
    g->dquery = next_part(block, &used, rows * own);
    g->dattended = next_part(block, &used, rows * own);
    g->dkey = next_part(block, &used, rows * kv);
    g->dvalue = next_part(block, &used, rows * kv);
    g->dgate = next_part(block, &used, rows * t->hidden);
    g->dup = next_part(block, &used, rows * t->hidden);
    g->logits = next_part(block, &used, rows * t->words);
    g->score = next_part(block, &used, t->positions);
    g->outlook = next_part(block, &used, t->tensor.size * rows * OUTLOOK);
    return used;
}

ditto_status gradients_begin(struct gradients *g, struct transformer *t)
{
    size_t first;
    *g = (struct gradients){ 0 };
    for (int p = 0; p < PARAMETERS; p++)
        DITTO_TRY(ditto_local_slice(t->self, t->weights->array[p], &g->tensor[p], &first));
    DITTO_TRY(ditto_alloc(t->self, divide(g, t, NULL) * sizeof(float), 128, &g->memory));
    divide(g, t, g->memory);
    return DITTO_OK;
}

ditto_status gradients_end(struct gradients *g, struct transformer *t)
{
    return ditto_free(t->self, g->memory);
}

/* -- the loss -- */

static struct outlook look(const float *logit, uint32_t words, uint32_t first_word, int32_t target)
{
    struct outlook o = { -INFINITY, 0, -INFINITY };
    for (uint32_t w = 0; w < words; w++)
        o.top = logit[w] > o.top ? logit[w] : o.top;
    for (uint32_t w = 0; w < words; w++)
        o.sum += expf(logit[w] - o.top);
    if ((uint32_t)target - first_word < words)
        o.target = logit[(uint32_t)target - first_word];
    return o;
}

static struct outlook join(const struct outlook *of_rank, size_t stride, uint32_t ranks)
{
    struct outlook all = { -INFINITY, 0, -INFINITY };
    for (uint32_t k = 0; k < ranks; k++) {
        all.top = fmaxf(all.top, of_rank[k * stride].top);
        all.target = fmaxf(all.target, of_rank[k * stride].target);
    }
    for (uint32_t k = 0; k < ranks; k++)
        all.sum += of_rank[k * stride].sum * expf(of_rank[k * stride].top - all.top);
    return all;
}

/* Turns the logits of the rows into their gradients: the probability, less 1 for the target. Each rank has
 * the logits of its words, so the ranks tell each other three numbers a row. */
static ditto_status find_loss(struct transformer *t, struct gradients *g, const int32_t *target,
                              uint32_t rows, float scale, double *loss)
{
    struct outlook *all = (void *)g->outlook, *own = all + (size_t)t->tensor.rank * rows; /* [ranks][rows] */
    ditto_reduce_options options = DITTO_REDUCE_OPTIONS_INIT;
    options.group = &t->tensor;
    for (uint32_t r = 0; r < rows; r++)
        own[r] = look(g->logits + (size_t)r * t->words, t->words, t->first_word, target[r]);
    double begin = seconds();
    DITTO_TRY(ditto_all_gather(t->self, own, all, (size_t)rows * OUTLOOK, NULL, DITTO_F32, &options));
    t->waited += seconds() - begin;
    for (uint32_t r = 0; r < rows; r++) {
        struct outlook whole = join(all + r, rows, t->tensor.size);
        float *logit = g->logits + (size_t)r * t->words;
        *loss += (double)logf(whole.sum) + (double)whole.top - (double)whole.target;
        for (uint32_t w = 0; w < t->words; w++)
            logit[w] = scale * (expf(logit[w] - whole.top) / whole.sum -
                                (float)((uint32_t)target[r] == t->first_word + w));
    }
    return DITTO_OK;
}

/* -- the layers, from the last to the first -- */

/* Adds the derivative of the normalization of each row to dx. Rank 0 has the gradient of the weights. */
static void normalize_rows_back(const struct transformer *t, struct gradients *g, enum parameter p,
                                uint32_t layer, const float *x, uint32_t rows)
{
    float *dweight = t->tensor.rank == 0 ? g->array[p] + (size_t)layer * t->dim : NULL;
    for (size_t at = 0; at < (size_t)rows * t->dim; at += t->dim)
        normalize_back(g->dx + at, dweight, g->dnormal + at, x + at, layer_norm(t, p, layer), t->dim);
}

/* The derivative of a matrix, whose inputs were x: adds to dx and to the gradient of the matrix. */
static void multiply_back(struct transformer *t, struct gradients *g, enum parameter p, uint32_t layer,
                          float *dx, const float *dy, const float *x, uint32_t rows)
{
    struct matrix m = layer_matrix(t, p, layer);
    add_transposed(dx, dy, rows, &m);
    add_outer(g->array[p] + (size_t)layer * m.outputs * m.inputs, dy, x, rows, m.outputs, m.inputs);
}

static ditto_status feed_half_back(struct transformer *t, struct gradients *g, uint32_t layer, uint32_t rows)
{
    size_t count = (size_t)rows * t->hidden, width = (size_t)rows * t->dim;
    const float *gate = layer_part(t, t->gate, layer, t->hidden),
                *up = layer_part(t, t->up, layer, t->hidden),
                *middle = layer_part(t, t->middle, layer, t->dim);
    for (size_t i = 0; i < count; i++)
        t->narrow[i] = silu(gate[i]) * up[i];
    memset(g->dup, 0, count * sizeof(float)); /* of the products, before they are divided */
    multiply_back(t, g, DOWN, layer, g->dup, g->dx, t->narrow, rows);
    for (size_t i = 0; i < count; i++) {
        float d = g->dup[i];
        g->dup[i] = d * silu(gate[i]);
        g->dgate[i] = d * up[i] * silu_slope(gate[i]);
    }
    transformer_normalize(t, t->wide, middle, layer_norm(t, FEED_NORM, layer), rows); /* it was not kept */
    memset(g->dnormal, 0, width * sizeof(float));
    multiply_back(t, g, GATE, layer, g->dnormal, g->dgate, t->wide, rows);
    multiply_back(t, g, UP, layer, g->dnormal, g->dup, t->wide, rows);
    DITTO_TRY(transformer_add_up(t, g->dnormal, width));
    normalize_rows_back(t, g, FEED_NORM, layer, middle, rows);
    return DITTO_OK;
}

/* The derivative of the attention of one row, with all own heads. The gradients of keys and values are of the
 * rows of its sequence. */
static void attend_row_back(struct transformer *t, struct gradients *g, uint32_t layer, const struct row *row,
                            size_t r, size_t first_row)
{
    size_t heads = heads_of(t), width = (size_t)t->kv_heads * t->head;
    const float *query = layer_part(t, t->query, layer, heads * t->head) + r * heads * t->head,
                *key = kv_cache_of(t, t->key, layer, row->sequence),
                *value = kv_cache_of(t, t->value, layer, row->sequence);
    for (size_t h = 0; h < heads; h++) {
        size_t shared = h / t->queries * t->head, own = (r * heads + h) * t->head;
        attend_back(g->dquery + own, g->dkey + first_row * width + shared,
                    g->dvalue + first_row * width + shared, g->dattended + own,
                    layer_part(t, t->score, layer, heads * t->positions) + (r * heads + h) * t->positions,
                    query + h * t->head,
                    &(struct kv_cache){ key + shared, value + shared, width, row->position + 1u }, t->head,
                    g->score);
    }
}

static ditto_status attention_half_back(struct transformer *t, struct gradients *g, uint32_t layer,
                                        const struct row *row, uint32_t rows)
{
    size_t heads = heads_of(t), own = rows * heads * t->head, kv = (size_t)t->kv_heads * t->head,
           width = (size_t)rows * t->dim;
    const float *x = layer_part(t, t->x, layer, t->dim);
    memset(g->dattended, 0, own * sizeof(float));
    memset(g->dquery, 0, own * sizeof(float));
    memset(g->dkey, 0, rows * kv * sizeof(float));
    memset(g->dvalue, 0, rows * kv * sizeof(float));
    multiply_back(t, g, OUTPUT, layer, g->dattended, g->dx,
                  layer_part(t, t->attended, layer, heads * t->head), rows);
    for (size_t r = 0; r < rows; r++)
        attend_row_back(t, g, layer, &row[r], r, r - row[r].position);
    for (size_t r = 0; r < rows; r++) {
        rotate(g->dquery + r * heads * t->head, t->angles + r * t->head, heads, t->head, true);
        rotate(g->dkey + r * kv, t->angles + r * t->head, t->kv_heads, t->head, true);
    }
    transformer_normalize(t, t->wide, x, layer_norm(t, ATTENTION_NORM, layer), rows);
    memset(g->dnormal, 0, width * sizeof(float));
    multiply_back(t, g, QUERY, layer, g->dnormal, g->dquery, t->wide, rows);
    multiply_back(t, g, KEY, layer, g->dnormal, g->dkey, t->wide, rows);
    multiply_back(t, g, VALUE, layer, g->dnormal, g->dvalue, t->wide, rows);
    DITTO_TRY(transformer_add_up(t, g->dnormal, width));
    normalize_rows_back(t, g, ATTENTION_NORM, layer, x, rows);
    return DITTO_OK;
}

ditto_status learn(struct transformer *t, struct gradients *g, const struct row *row, const int32_t *target,
                   uint32_t rows, float scale, double *loss)
{
    const uint32_t layers = t->weights->shape.layers;
    const float *last = layer_part(t, t->x, layers, t->dim);
    for (int p = 0; p < PARAMETERS; p++)
        memset(g->array[p], 0, ditto_tensor_bytes(&g->tensor[p]));
    DITTO_TRY(transformer_forward(t, row, rows));
    transformer_normalize(t, t->wide, last, layer_norm(t, FINAL_NORM, 0), rows);
    multiply(g->logits, t->words, t->wide, rows, &t->matrix[CLASSIFIER]);
    DITTO_TRY(find_loss(t, g, target, rows, scale, loss));
    memset(g->dnormal, 0, (size_t)rows * t->dim * sizeof(float));
    multiply_back(t, g, CLASSIFIER, 0, g->dnormal, g->logits, t->wide, rows);
    DITTO_TRY(transformer_add_up(t, g->dnormal, (size_t)rows * t->dim));
    memset(g->dx, 0, (size_t)rows * t->dim * sizeof(float));
    normalize_rows_back(t, g, FINAL_NORM, 0, last, rows);
    for (uint32_t layer = layers; layer-- > 0;) {
        DITTO_TRY(feed_half_back(t, g, layer, rows));
        DITTO_TRY(attention_half_back(t, g, layer, row, rows));
    }
    if (t->tensor.rank == 0)
        for (size_t r = 0; r < rows; r++)
            add_scaled(g->array[EMBEDDING] + (size_t)row[r].token * t->dim, 1, g->dx + r * t->dim, t->dim);
    return DITTO_OK;
}
