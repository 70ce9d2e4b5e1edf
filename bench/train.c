/* bench/train.c - steps of training a network by gradient descent, as a program that computes and meets, see
 * work.h.
 *
 * The network is that of examples/train_digits.c with another number of hidden units: 64 inputs, HIDDEN
 * rectified units, 10 outputs with softmax and cross-entropy. Each replica has its own rows. In a step it
 * computes the gradients of its rows, all replicas add them up in one all-reduce, and each replica updates
 * its own copy of the weights, so that all copies stay equal. */
#include "work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 64, OUTPUTS = 10, ROWS = 32, TRAIN_RESTART = 64 };
#define RATE 0.05f

/* The weights, or their gradients. */
struct parameters {
    float *w1; /* [INPUTS][hidden] */
    float *b1; /* [hidden] */
    float *w2; /* [hidden][OUTPUTS] */
    float *b2; /* [OUTPUTS] */
};

/* The part of one replica. */
struct train {
    const struct work *work;
    uint32_t id;
    const struct contender_ops *ops;
    void *context;
    size_t hidden;
    struct parameters weights, gradients;
    float *active, *back; /* [ROWS][hidden] */
    float input[ROWS][INPUTS];
    int label[ROWS];
    float loss, first_loss; /* of this step, and of the first one */
    struct program_times seconds;
};

/* The gradients of each replica, which the collectives use. */
static struct worker shared[WORK_MOST_REPLICAS];

static size_t hidden_of(const struct work *work)
{
    return (work->bytes / sizeof(float) - OUTPUTS - 1) / (INPUTS + 1 + OUTPUTS);
}

static size_t parameter_count(size_t hidden)
{
    return hidden * (INPUTS + 1 + OUTPUTS) + OUTPUTS;
}

size_t train_buffer_bytes(const struct work *work)
{
    return 2 * work->bytes + 2 * ROWS * hidden_of(work) * sizeof(float);
}

static struct parameters parameters_at(float *at, size_t hidden)
{
    return (struct parameters){ at, at + INPUTS * hidden, at + (INPUTS + 1) * hidden,
                                at + (INPUTS + 1 + OUTPUTS) * hidden };
}

static float next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (float)(1 << 24) - 0.5f;
}

/* Makes the rows of a replica. The label is the position of the largest of the first ten inputs. */
static void make_rows(struct train *t)
{
    uint32_t random = t->id + 1;
    for (int b = 0; b < ROWS; b++) {
        t->label[b] = 0;
        for (int k = 0; k < INPUTS; k++) {
            t->input[b][k] = next_random(&random);
            if (k < OUTPUTS && t->input[b][k] > t->input[b][t->label[b]])
                t->label[b] = k;
        }
    }
}

/* Sets the weights, equally on all replicas. */
static void restart(struct train *t)
{
    uint32_t random = 7;
    float *w = t->weights.w1;
    double begin = now_seconds();
    for (size_t i = 0; i < parameter_count(t->hidden); i++)
        w[i] = 0.2f * next_random(&random);
    t->seconds.restarts += now_seconds() - begin;
}

static void forward(struct train *t, int b)
{
    float *h = t->active + (size_t)b * t->hidden;
    memcpy(h, t->weights.b1, t->hidden * sizeof *h);
    for (size_t k = 0; k < INPUTS; k++)
        for (size_t j = 0; j < t->hidden; j++)
            h[j] += t->input[b][k] * t->weights.w1[k * t->hidden + j];
    for (size_t j = 0; j < t->hidden; j++)
        h[j] = h[j] > 0 ? h[j] : 0;
}

/* Sets the derivative of the loss by the outputs of a row. */
static void derive_outputs(struct train *t, int b, float derivative[OUTPUTS])
{
    const float *h = t->active + (size_t)b * t->hidden;
    float sum = 0, most = -INFINITY;
    memcpy(derivative, t->weights.b2, OUTPUTS * sizeof(float));
    for (size_t j = 0; j < t->hidden; j++)
        for (int o = 0; o < OUTPUTS; o++)
            derivative[o] += h[j] * t->weights.w2[j * OUTPUTS + (size_t)o];
    for (int o = 0; o < OUTPUTS; o++)
        most = derivative[o] > most ? derivative[o] : most;
    for (int o = 0; o < OUTPUTS; o++)
        sum += derivative[o] = expf(derivative[o] - most);
    for (int o = 0; o < OUTPUTS; o++)
        derivative[o] /= sum;
    t->loss -= logf(derivative[t->label[b]]) / ROWS;
    derivative[t->label[b]] -= 1;
}

/* Adds the gradients of a row. */
static void backward(struct train *t, int b, const float derivative[OUTPUTS])
{
    const float *h = t->active + (size_t)b * t->hidden;
    float *back = t->back + (size_t)b * t->hidden;
    const struct parameters *w = &t->weights, *g = &t->gradients;
    for (int o = 0; o < OUTPUTS; o++)
        g->b2[o] += derivative[o];
    for (size_t j = 0; j < t->hidden; j++) {
        float sum = 0;
        for (size_t o = 0; o < OUTPUTS; o++) {
            g->w2[j * OUTPUTS + o] += h[j] * derivative[o];
            sum += w->w2[j * OUTPUTS + o] * derivative[o];
        }
        back[j] = h[j] > 0 ? sum : 0;
    }
    for (size_t j = 0; j < t->hidden; j++)
        g->b1[j] += back[j];
    for (size_t k = 0; k < INPUTS; k++)
        for (size_t j = 0; j < t->hidden; j++)
            g->w1[k * t->hidden + j] += t->input[b][k] * back[j];
}

static void step(struct train *t)
{
    size_t count = parameter_count(t->hidden);
    float derivative[OUTPUTS], *w = t->weights.w1, *g = t->gradients.w1;
    struct work sum = *t->work;
    sum.kind = BENCH_ALL_REDUCE;
    sum.bytes = (count + 1) * sizeof(float);
    memset(g, 0, count * sizeof *g);
    g[count] = 1; /* its sum is the number of replicas, which is checked */
    t->loss = 0;
    for (int b = 0; b < ROWS; b++) {
        forward(t, b);
        derive_outputs(t, b, derivative);
        backward(t, b, derivative);
    }
    double begin = now_seconds();
    t->ops->collective(t->context, t->id, &sum, shared);
    t->seconds.operations += now_seconds() - begin;
    if (g[count] != (float)t->work->replicas || !isfinite(t->loss)) {
        fprintf(stderr, "bench: train: replica %u: the sum is %g, and the loss %g\n", t->id, (double)g[count],
                (double)t->loss);
        exit(1);
    }
    float rate = RATE / (float)(ROWS * t->work->replicas);
    for (size_t i = 0; i < count; i++)
        w[i] -= rate * g[i];
}

struct program_times train_run(const struct work *work, struct worker *workers, uint32_t id,
                               const struct contender_ops *ops, void *context)
{
    static _Thread_local struct train t;
    size_t hidden = hidden_of(work);
    float *memory = (float *)(void *)workers[id].src;
    t = (struct train){ .work = work,
                        .id = id,
                        .ops = ops,
                        .context = context,
                        .hidden = hidden,
                        .gradients = parameters_at(memory, hidden),
                        .weights = parameters_at(memory + work->bytes / sizeof(float), hidden),
                        .active = memory + 2 * work->bytes / sizeof(float),
                        .back = memory + 2 * work->bytes / sizeof(float) + ROWS * hidden };
    shared[id].src = shared[id].dst = workers[id].src;
    make_rows(&t);
    for (uint64_t rep = 0; rep < work->reps; rep++) {
        uint64_t number = rep % TRAIN_RESTART;
        if (number == 0)
            restart(&t);
        step(&t);
        t.first_loss = number == 0 ? t.loss : t.first_loss;
        if (number == TRAIN_RESTART - 1 && t.loss >= t.first_loss) {
            fprintf(stderr, "bench: train: the loss of replica %u is %g, and was %g\n", id, (double)t.loss,
                    (double)t.first_loss);
            exit(1);
        }
    }
    return t.seconds;
}
