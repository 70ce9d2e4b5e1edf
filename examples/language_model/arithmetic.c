/* examples/language_model/arithmetic.c - the arithmetic of a transformer, in plain serial C. */
#include "arithmetic.h"

#include <math.h>
#include <string.h>

/* The functions in which time is spent are compiled for several processors, and the program takes the version
 * of this one. All versions compute the same bits, if the file is compiled with -ffp-contract=off: otherwise
 * those with fused instructions round less often. Clang and sanitizers do not know enough of this. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define ON_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ON_EACH_PROCESSOR
#endif

/* A dot product is the sum of LANES partial sums. Partial sum k has the elements k, k + LANES, and so on.
 * SUMS dot products are computed at once, ROWS of them with the same weights. Derivatives add UNROLLED rows
 * in one pass over the result. */
enum { LANES = 8, SUMS = 8, ROWS = 4, UNROLLED = 4 };

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef uint32_t lane_words __attribute__((vector_size(LANES * sizeof(uint32_t))));

#define INLINE static inline __attribute__((always_inline))

INLINE void load(lanes *out, const float *from)
{
    memcpy(out, from, sizeof *out);
}

INLINE float widen(uint16_t bf16)
{
    uint32_t bits = (uint32_t)bf16 << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Loads LANES elements of a matrix, and one element. */
INLINE void load_weights(lanes *out, const struct matrix *w, bool bf16, size_t at)
{
    if (!bf16) {
        load(out, (const float *)w->data + at);
        return;
    }
    const uint16_t *from = (const uint16_t *)w->data + at;
    lane_words words = { from[0], from[1], from[2], from[3], from[4], from[5], from[6], from[7] };
    words <<= 16;
    memcpy(out, &words, sizeof *out);
}

INLINE float load_weight(const struct matrix *w, bool bf16, size_t at)
{
    return bf16 ? widen(((const uint16_t *)w->data)[at]) : ((const float *)w->data)[at];
}

/* Adds the partial sums in pairs that are half of the rest apart. */
INLINE float total(const lanes *sums)
{
    float sum[LANES];
    memcpy(sum, sums, sizeof sum);
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            sum[i] += sum[i + width];
    return sum[0];
}

/* Computes `outputs` x `rows` dot products, at most SUMS: of the outputs o, o + apart, and so on. Where each
 * weight has more to be done than a product with one f32, the processor fetches too little ahead, so the next
 * row is prefetched: a position of 1.1 B parameters in bf16 took 43 and 65 ms, and 55 and 82 ms without,
 * between two cores and two threads of one. */
INLINE void multiply_tile(float *out, size_t stride, const float *x, const struct matrix *w, bool bf16,
                          size_t o, size_t apart, const size_t outputs, const size_t rows)
{
    lanes sum[SUMS] = { { 0 } };
    size_t inputs = w->inputs, whole = inputs / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
#pragma GCC unroll 8
        for (size_t k = 0; k < outputs; k++) {
            lanes weight, element;
            size_t at = (o + k * apart) * inputs + i;
            if (rows > 1 || bf16)
                __builtin_prefetch((const char *)w->data + (at + inputs) * (bf16 ? 2 : 4), 0, 2);
            load_weights(&weight, w, bf16, at);
#pragma GCC unroll 8
            for (size_t r = 0; r < rows; r++) {
                load(&element, x + r * inputs + i);
                sum[k * rows + r] += weight * element;
            }
        }
    for (size_t k = 0; k < outputs; k++)
        for (size_t r = 0; r < rows; r++) {
            float dot = total(&sum[k * rows + r]);
            for (size_t i = whole; i < inputs; i++)
                dot += load_weight(w, bf16, (o + k * apart) * inputs + i) * x[r * inputs + i];
            out[r * stride + o + k * apart] = dot;
        }
}

/* Computes SUMS outputs of all rows. Each time the weights are in the cache after the first rows. */
INLINE void multiply_outputs(float *out, size_t stride, const float *x, size_t rows, const struct matrix *w,
                             bool bf16, size_t o, size_t apart)
{
    size_t r = 0;
    for (; r + ROWS <= rows; r += ROWS)
        for (size_t k = 0; k < SUMS; k += SUMS / ROWS)
            multiply_tile(out + r * stride, stride, x + r * w->inputs, w, bf16, o + k * apart, apart,
                          SUMS / ROWS, ROWS);
    for (; r < rows; r++)
        multiply_tile(out + r * stride, stride, x + r * w->inputs, w, bf16, o, apart, SUMS, 1);
}

/* The outputs of a tile are as far apart as they can be. So the processor reads the matrix in several long
 * streams, each of which it fetches ahead. With neighbours, whose rows are one stream, `ditto-bench generate`
 * of 15 M parameters took 3.4 ms instead of 2.0 on a Zen 4. They are an odd number of rows apart, because
 * lines that are a large power of two apart compete for the same places of the caches: 1.1 B took 70 ms, and
 * 83 ms with even numbers. */
INLINE void multiply_as(float *out, size_t stride, const float *x, size_t rows, const struct matrix *w,
                        bool bf16)
{
    size_t first = 0;
    while (w->outputs - first >= SUMS) {
        size_t apart = (w->outputs / SUMS - first / SUMS - 1) | 1;
        for (size_t o = first; o < first + apart; o++)
            multiply_outputs(out, stride, x, rows, w, bf16, o, apart);
        first += SUMS * apart;
    }
    for (; first < w->outputs; first++)
        for (size_t r = 0; r < rows; r++)
            multiply_tile(out + r * stride, stride, x + r * w->inputs, w, bf16, first, 0, 1, 1);
}

ON_EACH_PROCESSOR void multiply(float *out, size_t stride, const float *x, size_t rows,
                                const struct matrix *w)
{
    if (w->bf16)
        multiply_as(out, stride, x, rows, w, true);
    else
        multiply_as(out, stride, x, rows, w, false);
}

ON_EACH_PROCESSOR void add_scaled(float *restrict to, float scale, const float *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += scale * from[i];
}

/* to[i] += the sum of UNROLLED rows, each times its scale. */
INLINE void add_rows(float *restrict to, const float *scale, const float *restrict from, size_t stride,
                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += scale[0] * from[i] + scale[1] * from[stride + i] +
                 (scale[2] * from[2 * stride + i] + scale[3] * from[3 * stride + i]);
}

ON_EACH_PROCESSOR void add_transposed(float *dx, const float *dy, size_t rows, const struct matrix *w)
{
    const float *weights = w->data;
    size_t o = 0;
    for (; o + UNROLLED <= w->outputs; o += UNROLLED)
        for (size_t r = 0; r < rows; r++)
            add_rows(dx + r * w->inputs, dy + r * w->outputs + o, weights + o * w->inputs, w->inputs,
                     w->inputs);
    for (; o < w->outputs; o++)
        for (size_t r = 0; r < rows; r++)
            add_scaled(dx + r * w->inputs, dy[r * w->outputs + o], weights + o * w->inputs, w->inputs);
}

ON_EACH_PROCESSOR void add_outer(float *dw, const float *dy, const float *x, size_t rows, size_t outputs,
                                 size_t inputs)
{
    for (size_t o = 0; o < outputs; o++) {
        size_t r = 0;
        for (; r + UNROLLED <= rows; r += UNROLLED) {
            const float scale[UNROLLED] = { dy[r * outputs + o], dy[(r + 1) * outputs + o],
                                            dy[(r + 2) * outputs + o], dy[(r + 3) * outputs + o] };
            add_rows(dw + o * inputs, scale, x + r * inputs, inputs, inputs);
        }
        for (; r < rows; r++)
            add_scaled(dw + o * inputs, dy[r * outputs + o], x + r * inputs, inputs);
    }
}

void copy_row(float *out, const struct matrix *w, size_t row)
{
    for (size_t i = 0; i < w->inputs; i++)
        out[i] = load_weight(w, w->bf16, row * w->inputs + i);
}

uint16_t round_to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float dot(const float *x, const float *y, size_t count)
{
    float out;
    multiply_tile(&out, 0, x, &(struct matrix){ y, false, 1, count }, false, 0, 0, 1, 1);
    return out;
}

/* -- the other functions -- */

static float scale_of(const float *x, size_t count)
{
    return 1 / sqrtf(dot(x, x, count) / (float)count + 1e-5f);
}

void normalize(float *out, const float *x, const float *weight, size_t count)
{
    float scale = scale_of(x, count);
    for (size_t i = 0; i < count; i++)
        out[i] = x[i] * scale * weight[i];
}

void normalize_back(float *dx, float *dweight, const float *dout, const float *x, const float *weight,
                    size_t count)
{
    float scale = scale_of(x, count), sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += dout[i] * weight[i] * x[i];
        if (dweight != NULL)
            dweight[i] += dout[i] * x[i] * scale;
    }
    float along = sum * scale * scale * scale / (float)count;
    for (size_t i = 0; i < count; i++)
        dx[i] += dout[i] * weight[i] * scale - x[i] * along;
}

float silu(float z)
{
    return z / (1 + expf(-z));
}

float silu_slope(float z)
{
    float s = 1 / (1 + expf(-z));
    return s * (1 + z * (1 - s));
}

void find_angles(float *angles, size_t position, size_t head)
{
    for (size_t i = 0; i < head; i += 2) {
        double angle = (double)position / pow(10000, (double)i / (double)head);
        angles[i] = (float)cos(angle);
        angles[i + 1] = (float)sin(angle);
    }
}

void rotate(float *x, const float *angles, size_t heads, size_t head, bool backwards)
{
    for (size_t h = 0; h < heads; h++, x += head)
        for (size_t i = 0; i < head; i += 2) {
            float a = x[i], b = x[i + 1], c = angles[i], s = backwards ? -angles[i + 1] : angles[i + 1];
            x[i] = a * c - b * s;
            x[i + 1] = a * s + b * c;
        }
}

void attend(float *out, float *weight, const float *query, const struct kv_cache *r, size_t head)
{
    float scale = 1 / sqrtf((float)head), top = -INFINITY, sum = 0;
    for (size_t p = 0; p < r->positions; p++) {
        weight[p] = dot(query, r->key + p * r->stride, head) * scale;
        top = weight[p] > top ? weight[p] : top;
    }
    for (size_t p = 0; p < r->positions; p++) {
        weight[p] = expf(weight[p] - top);
        sum += weight[p];
    }
    memset(out, 0, head * sizeof *out);
    for (size_t p = 0; p < r->positions; p++) {
        weight[p] /= sum;
        add_scaled(out, weight[p], r->value + p * r->stride, head);
    }
}

void attend_back(float *dquery, float *dkey, float *dvalue, const float *dout, const float *weight,
                 const float *query, const struct kv_cache *r, size_t head, float *scratch)
{
    float scale = 1 / sqrtf((float)head), mean = 0;
    for (size_t p = 0; p < r->positions; p++) {
        scratch[p] = dot(dout, r->value + p * r->stride, head);
        mean += weight[p] * scratch[p];
        add_scaled(dvalue + p * r->stride, weight[p], dout, head);
    }
    for (size_t p = 0; p < r->positions; p++) {
        float slope = weight[p] * (scratch[p] - mean) * scale;
        add_scaled(dquery, slope, r->key + p * r->stride, head);
        add_scaled(dkey + p * r->stride, slope, query, head);
    }
}
