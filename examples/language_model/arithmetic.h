/* examples/language_model/arithmetic.h - the arithmetic of a transformer, in plain serial C. It does not use
 * ditto.
 *
 * Each element of a result is computed in a fixed order, which depends on the lengths of the rows alone. So a
 * position has the same bits with any other positions beside it. */
#ifndef ARITHMETIC_H
#define ARITHMETIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A matrix with a row for each output. */
struct matrix {
    const void *data; /* [outputs][inputs] */
    bool bf16;        /* otherwise f32 */
    size_t outputs, inputs;
};

/* out[r][o] = sum over i of w[o][i] x[r][i]. x is [rows][inputs], and row r of out is at out + r * stride. */
void multiply(float *out, size_t stride, const float *x, size_t rows, const struct matrix *w);

/* The two halves of the derivative of multiply, for a matrix of f32:
 * dx[r][i] += sum over o of dy[r][o] w[o][i], and dw[o][i] += sum over r of dy[r][o] x[r][i]. */
void add_transposed(float *dx, const float *dy, size_t rows, const struct matrix *w);
void add_outer(float *dw, const float *dy, const float *x, size_t rows, size_t outputs, size_t inputs);

/* to[i] += scale * from[i]. */
void add_scaled(float *to, float scale, const float *from, size_t count);

/* Copies a row of a matrix as f32. */
void copy_row(float *out, const struct matrix *w, size_t row);

/* Rounds to bf16, to nearest even. */
uint16_t round_to_bf16(float x);

/* out = x / sqrt(mean(x^2) + 1e-5) * weight, and its derivative: dx += ..., dweight += ... unless it is
 * NULL. */
void normalize(float *out, const float *x, const float *weight, size_t count);
void normalize_back(float *dx, float *dweight, const float *dout, const float *x, const float *weight,
                    size_t count);

/* silu(z) = z / (1 + exp(-z)), and its derivative. */
float silu(float z);
float silu_slope(float z);

/* Rotary position embedding (RoPE): stores the cosine and the sine of the angle of each pair of a head at a
 * position. angles is [head]. */
void find_angles(float *angles, size_t position, size_t head);

/* Rotates the pairs of some heads. backwards undoes it. */
void rotate(float *x, const float *angles, size_t heads, size_t head, bool backwards);

/* The KV cache of one head, which has the keys and values of the positions so far: element i of position p
 * is at [p * stride + i]. */
struct kv_cache {
    const float *key, *value;
    size_t stride, positions;
};

/* Attention of one query head, which has `head` elements: out is the weighted sum of the values. `weight` is
 * [positions], and receives the weights. */
void attend(float *out, float *weight, const float *query, const struct kv_cache *r, size_t head);

/* The derivative of attend. Adds to dquery, and to dkey and dvalue, which lie like the keys and values.
 * `scratch` is [positions]. */
void attend_back(float *dquery, float *dkey, float *dvalue, const float *dout, const float *weight,
                 const float *query, const struct kv_cache *r, size_t head, float *scratch);

#endif
