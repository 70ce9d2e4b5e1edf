/* examples/network.h - the arithmetic of lesson 5 and of train_digits.c: a network with 64 inputs, 64 hidden
 * units and 10 outputs, in plain serial C. It does not use ditto. */
#ifndef NETWORK_H
#define NETWORK_H

#include <stddef.h>
#include <stdint.h>

enum { INPUTS = 64, HIDDEN = 64, CLASSES = 10 };

/* All parameters in one block, so that one call can reduce all of them. */
struct network {
    float hidden_weight[HIDDEN][INPUTS], hidden_bias[HIDDEN];
    float class_weight[CLASSES][HIDDEN], class_bias[CLASSES];
};
enum { PARAMETERS = sizeof(struct network) / sizeof(float) };

/* Returns the path of the digits, from the folder of the examples or from that of ditto's sources. */
const char *digits_path(void);

/* Sets small random weights, and biases of zero. */
void network_initialize(struct network *network, uint64_t seed);

/* Adds the gradient of `scale` times the cross-entropy of the rows to *gradient. Adds the number of rows
 * whose largest output is their label to *correct. Returns the sum of the losses, without the scale. `pixel`
 * has shape [rows][INPUTS] with values 0..16, and `label` has shape [rows] with values 0..CLASSES-1. If
 * gradient is NULL, no gradient is computed. */
double network_learn(const struct network *network, const float *pixel, const int32_t *label, size_t rows,
                     float scale, struct network *gradient, int64_t *correct);

/* Returns the 64-bit FNV-1a hash of `count` bytes. */
uint64_t hash_bytes(const void *bytes, size_t count);

#endif
