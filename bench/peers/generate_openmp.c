/* bench/peers/generate_openmp.c - the peer of `ditto-bench generate`: the same loops with OpenMP.
 *
 * Each thread has the same part of the outputs of every matrix. All threads read all inputs, which are
 * shared, so there is a barrier after each matrix whose outputs others read: four in a layer. */
#include "protocol.h"

#include "../language_model.h"

#include "../../examples/language_model/arithmetic.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS = 64 };

/* The part of a thread: rows `first` to `first + outputs` of a matrix, of all layers. */
struct part {
    struct matrix matrix;
    size_t first;
};

struct thread {
    struct part part[PARAMETERS];
    float *query, *key, *value; /* of the own heads; keys and values of all layers and positions */
    float *normal, *score;      /* scratch */
};

static struct thread thread[MOST_THREADS];
static const struct generation *model;
static float *x, *attended, *inside, *logits; /* shared: [batch][...] */
static float ones[1 << 13];
static volatile float sink;

static float *room(size_t count)
{
    float *array = aligned_alloc(128, (count * sizeof *array + 127) / 128 * 128);
    if (array == NULL)
        exit(1);
    memset(array, 0, count * sizeof *array);
    return array;
}

/* Makes the rows of a thread, which writes them first. `unit` rows are not divided. */
static void make_part(struct thread *t, enum parameter p, size_t rows, size_t unit, uint32_t id,
                      uint32_t threads)
{
    bool bf16 = model->bf16;
    size_t units = rows / unit, first = units * id / threads, end = units * (id + 1) / threads,
           inputs = parameter_shape(&model->shape, p).inputs,
           layers = p == CLASSIFIER ? 1 : model->shape.layers, count = layers * (end - first) * unit * inputs;
    void *data = room(bf16 ? (count + 1) / 2 : count);
    uint32_t random = 1 + id;
    for (size_t i = 0; i < count; i++) {
        random = random * 1664525u + 1013904223u;
        float element = ((float)(random >> 8) / (float)(1 << 24) - 0.5f) * 0.07f;
        if (bf16)
            ((uint16_t *)data)[i] = round_to_bf16(element);
        else
            ((float *)data)[i] = element;
    }
    t->part[p] = (struct part){ { data, bf16, (end - first) * unit, inputs }, first * unit };
}

static void make(struct thread *t, uint32_t id, uint32_t threads)
{
    const struct model_shape *s = &model->shape;
    size_t head = s->dim / s->heads, group = s->heads / s->kv_heads * head;
    make_part(t, QUERY, s->dim, group, id, threads);
    make_part(t, KEY, s->kv_heads * head, head, id, threads);
    make_part(t, VALUE, s->kv_heads * head, head, id, threads);
    make_part(t, OUTPUT, s->dim, 1, id, threads);
    make_part(t, GATE, s->hidden, 1, id, threads);
    make_part(t, UP, s->hidden, 1, id, threads);
    make_part(t, DOWN, s->dim, 1, id, threads);
    make_part(t, CLASSIFIER, s->vocabulary, 1, id, threads);
    size_t kv_cache = (size_t)s->layers * GENERATED_POSITIONS * model->batch * t->part[KEY].matrix.outputs;
    t->query = room(model->batch * t->part[QUERY].matrix.outputs);
    t->key = room(kv_cache);
    t->value = room(kv_cache);
    t->normal = room((size_t)model->batch * s->dim);
    t->score = room(GENERATED_POSITIONS);
}

static void forget(struct thread *t)
{
    for (int p = 0; p < PARAMETERS; p++)
        free((void *)t->part[p].matrix.data);
    free(t->query);
    free(t->key);
    free(t->value);
    free(t->normal);
    free(t->score);
    memset(t, 0, sizeof *t);
}

static struct matrix of_layer(const struct thread *t, enum parameter p, uint32_t layer)
{
    struct matrix m = t->part[p].matrix;
    m.data = (const char *)m.data + layer * m.outputs * m.inputs * (m.bf16 ? 2 : 4);
    return m;
}

static void normalize_all(struct thread *t)
{
    for (uint32_t b = 0; b < model->batch; b++)
        normalize(t->normal + (size_t)b * model->shape.dim, x + (size_t)b * model->shape.dim, ones,
                  model->shape.dim);
}

/* Attends with the own heads. Keys and values of a layer are [batch][positions][own key heads]. */
static void attention(struct thread *t, uint32_t layer, uint32_t position)
{
    const struct model_shape *s = &model->shape;
    size_t head = s->dim / s->heads, queries = s->heads / s->kv_heads;
    struct matrix q = of_layer(t, QUERY, layer), k = of_layer(t, KEY, layer), v = of_layer(t, VALUE, layer);
    size_t width = k.outputs, stride = GENERATED_POSITIONS * width,
           at = (size_t)layer * model->batch * stride + position * width;
    float angles[256];
    find_angles(angles, position, head);
    multiply(t->query, q.outputs, t->normal, model->batch, &q);
    multiply(t->key + at, stride, t->normal, model->batch, &k);
    multiply(t->value + at, stride, t->normal, model->batch, &v);
    for (uint32_t b = 0; b < model->batch; b++) {
        float *query = t->query + b * q.outputs, *key = t->key + at + b * stride,
              *value = t->value + at + b * stride;
        rotate(query, angles, q.outputs / head, head, false);
        rotate(key, angles, width / head, head, false);
        for (size_t h = 0; h < q.outputs / head; h++) {
            size_t shared = h / queries * head;
            attend(attended + b * s->dim + t->part[QUERY].first + h * head, t->score, query + h * head,
                   &(struct kv_cache){ key - position * width + shared, value - position * width + shared,
                                       width, position + 1u },
                   head);
        }
    }
}

/* Adds the product of a matrix to the own elements of x. */
static void add_product(struct thread *t, enum parameter p, uint32_t layer, const float *from)
{
    struct matrix m = of_layer(t, p, layer);
    size_t dim = model->shape.dim, first = t->part[p].first;
    multiply(t->normal + first, dim, from, model->batch, &m);
    for (uint32_t b = 0; b < model->batch; b++)
        for (size_t i = first; i < first + m.outputs; i++)
            x[b * dim + i] += t->normal[b * dim + i];
}

static void feed(struct thread *t, uint32_t layer, float *up)
{
    struct matrix gate = of_layer(t, GATE, layer), m = of_layer(t, UP, layer);
    size_t hidden = model->shape.hidden, first = t->part[GATE].first;
    multiply(inside + first, hidden, t->normal, model->batch, &gate);
    multiply(up + first, hidden, t->normal, model->batch, &m);
    for (uint32_t b = 0; b < model->batch; b++)
        for (size_t i = b * hidden + first; i < b * hidden + first + gate.outputs; i++)
            inside[i] = silu(inside[i]) * up[i];
}

/* Finds the largest of the own logits. */
static void choose(struct thread *t)
{
    struct matrix m = t->part[CLASSIFIER].matrix;
    size_t first = t->part[CLASSIFIER].first;
    multiply(logits + first, model->shape.vocabulary, t->normal, model->batch, &m);
    for (uint32_t b = 0; b < model->batch; b++) {
        float best = -INFINITY;
        for (size_t i = first; i < first + m.outputs; i++)
            best = fmaxf(best, logits[(size_t)b * model->shape.vocabulary + i]);
        sink = best;
    }
}

static void position_of_each(struct thread *t, uint32_t position, float *up)
{
#pragma omp single
    for (size_t i = 0; i < (size_t)model->batch * model->shape.dim; i++)
        x[i] = (float)((i + position) % 64) / 64 - 0.5f;
    for (uint32_t layer = 0; layer < model->shape.layers; layer++) {
        normalize_all(t);
        attention(t, layer, position);
#pragma omp barrier
        add_product(t, OUTPUT, layer, attended);
#pragma omp barrier
        normalize_all(t);
        feed(t, layer, up);
#pragma omp barrier
        add_product(t, DOWN, layer, inside);
#pragma omp barrier
    }
    normalize_all(t);
    choose(t);
#pragma omp barrier
}

static double generate(int number, unsigned long positions, uint32_t threads)
{
    static int made = -1;
    static float *up;
    if (number != made) {
        for (uint32_t i = 0; i < threads; i++)
            forget(&thread[i]);
        free(x), free(attended), free(inside), free(up), free(logits);
        model = &generations[made = number];
        x = room((size_t)model->batch * model->shape.dim);
        attended = room((size_t)model->batch * model->shape.dim);
        inside = room((size_t)model->batch * model->shape.hidden);
        up = room((size_t)model->batch * model->shape.hidden);
        logits = room((size_t)model->batch * model->shape.vocabulary);
#pragma omp parallel
        make(&thread[omp_get_thread_num()], (uint32_t)omp_get_thread_num(), threads);
    }
    double begin = 0;
#pragma omp parallel
    {
#pragma omp barrier
#pragma omp master
        begin = now_seconds();
        for (unsigned long i = 0; i < positions; i++)
            position_of_each(&thread[omp_get_thread_num()], (uint32_t)i, up);
    }
    return now_seconds() - begin;
}

int main(int count, char **word)
{
    uint32_t threads = count > 1 ? (uint32_t)atoi(word[1]) : 2;
    omp_set_dynamic(0);
    omp_set_num_threads((int)threads);
    for (size_t i = 0; i < sizeof ones / sizeof ones[0]; i++)
        ones[i] = 1;
    printf("hello %d\n", (int)getpid());
    fflush(stdout);
    for (;;) {
        struct order order = read_order(stdin);
        if (order.what == ORDER_END)
            return 0;
        bool can = order.what == ORDER_FUNCTIONS && order.row < GENERATIONS && threads <= MOST_THREADS;
        printf("%.12g 0 0\n", can ? generate(order.row, (unsigned long)order.work.reps, threads) : -1.0);
        fflush(stdout);
    }
}
