/* examples/network.c - a network with one hidden layer: its outputs, its loss and its gradient. */
#include "network.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

const char *digits_path(void)
{
    return access("data/digits.csv", R_OK) == 0 ? "data/digits.csv" : "examples/data/digits.csv";
}

/* Computes e^x for x <= 0. The expf of the C library may round differently on different processors. This
 * function uses only IEEE additions, multiplications and divisions, and functions whose results are exact.
 * The trained weights therefore have the same bits on all processors. */
static float exp_of_negative(float x)
{
    if (x < -80.0f)
        return 0.0f;
    float halvings = floorf(x * -1.4426950f),
          rest = x + halvings * 0.69314718f; /* x = rest - halvings * ln 2 */
    float sum = 1.0f, term = 1.0f;
    for (int i = 1; i <= 9; i++) {
        term *= rest / (float)i;
        sum += term;
    }
    return ldexpf(sum, -(int)halvings); /* exact */
}

/* Computes ln x for x > 0, with the same bits on all processors. Only the reported loss uses it. It writes x
 * as m * 2^e and uses the series of artanh. */
static double log_of(double x)
{
    int exponent;
    double m = frexp(x, &exponent), t = (m - 1.0) / (m + 1.0), square = t * t, sum = 0.0, power = t;
    for (int i = 1; i <= 31; i += 2) {
        sum += power / i;
        power *= square;
    }
    return 2.0 * sum + exponent * 0.693147180559945309;
}

void network_initialize(struct network *network, uint64_t seed)
{
    float *weight = (float *)network;
    memset(network, 0, sizeof *network);
    for (size_t i = 0; i < PARAMETERS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
        float uniform = (float)(seed >> 40) * 0x1p-23f - 1.0f;     /* in [-1, 1) */
        weight[i] = uniform * 0.15f;
    }
    memset(network->hidden_bias, 0, sizeof network->hidden_bias);
    memset(network->class_bias, 0, sizeof network->class_bias);
}

static void forward(const struct network *n, const float *x, float *hidden, float *output)
{
    for (int h = 0; h < HIDDEN; h++) {
        float sum = n->hidden_bias[h];
        for (int i = 0; i < INPUTS; i++)
            sum += n->hidden_weight[h][i] * x[i];
        hidden[h] = sum > 0.0f ? sum : 0.0f;
    }
    for (int c = 0; c < CLASSES; c++) {
        float sum = n->class_bias[c];
        for (int h = 0; h < HIDDEN; h++)
            sum += n->class_weight[c][h] * hidden[h];
        output[c] = sum;
    }
}

/* Replaces the outputs by probabilities, and returns the index of the largest. */
static int softmax(float *output)
{
    int best = 0;
    float total = 0.0f;
    for (int c = 1; c < CLASSES; c++)
        best = output[c] > output[best] ? c : best;
    float largest = output[best];
    for (int c = 0; c < CLASSES; c++)
        total += output[c] = exp_of_negative(output[c] - largest);
    for (int c = 0; c < CLASSES; c++)
        output[c] /= total;
    return best;
}

/* Adds the gradient of one row to *g. slope[c] is the derivative of the scaled loss of the row with respect
 * to output c. */
static void backward(const struct network *n, const float *x, const float *hidden, const float *slope,
                     struct network *g)
{
    float hidden_slope[HIDDEN] = { 0 };
    for (int c = 0; c < CLASSES; c++) {
        g->class_bias[c] += slope[c];
        for (int h = 0; h < HIDDEN; h++) {
            g->class_weight[c][h] += slope[c] * hidden[h];
            hidden_slope[h] += slope[c] * n->class_weight[c][h];
        }
    }
    for (int h = 0; h < HIDDEN; h++) {
        if (hidden[h] <= 0.0f)
            continue;
        g->hidden_bias[h] += hidden_slope[h];
        for (int i = 0; i < INPUTS; i++)
            g->hidden_weight[h][i] += hidden_slope[h] * x[i];
    }
}

double network_learn(const struct network *network, const float *pixel, const int32_t *label, size_t rows,
                     float scale, struct network *gradient, int64_t *correct)
{
    double loss = 0.0;
    for (size_t row = 0; row < rows; row++) {
        /* `output` first has the outputs, then their probabilities, and at last the slopes for backward(). */
        float x[INPUTS], hidden[HIDDEN], output[CLASSES];
        for (int i = 0; i < INPUTS; i++)
            x[i] = pixel[row * INPUTS + (size_t)i] / 16.0f;
        forward(network, x, hidden, output);
        *correct += softmax(output) == label[row];
        float probability = output[label[row]];
        loss -= log_of(probability > 1e-30f ? probability : 1e-30f);
        if (gradient == NULL)
            continue;
        for (int c = 0; c < CLASSES; c++)
            output[c] = (output[c] - (c == label[row] ? 1.0f : 0.0f)) * scale;
        backward(network, x, hidden, output, gradient);
    }
    return loss;
}

uint64_t hash_bytes(const void *bytes, size_t count)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    return hash;
}
