/* examples/network.h - the arithmetic of the lesson: a network 64-64-10 with one gradient, in plain serial C.
 * It knows nothing of replicas: that is the point of the lesson. */
#ifndef NETWORK_H
#define NETWORK_H

#include <stddef.h>
#include <stdint.h>

enum { INPUTS = 64, HIDDEN = 64, CLASSES = 10 };

/* All parameters, in one block so that one all-reduce serves them all. */
struct network {
    float hidden_weight[HIDDEN][INPUTS], hidden_bias[HIDDEN];
    float class_weight[CLASSES][HIDDEN], class_bias[CLASSES];
};
enum { PARAMETERS = sizeof(struct network) / sizeof(float) };

/* Small random weights, zero biases. */
void network_initialize(struct network *network, uint64_t seed);

/* Adds to *gradient the gradient of `scale` * cross-entropy over the rows; returns the sum of their (unscaled) losses.
 * pixel: [rows][INPUTS] in 0..16; label: [rows] in 0..CLASSES-1. gradient may be NULL: then only the losses and *correct,
 * the number of rows whose largest output is their label. */
double network_learn(const struct network *network, const float *pixel, const int32_t *label, size_t rows,
                     float scale, struct network *gradient, int64_t *correct);

/* 64-bit FNV-1a of some bytes. */
uint64_t hash_bytes(const void *bytes, size_t count);

#endif
