/* examples/language_model/learn.h - the backward pass through a transformer: gradients of the loss. */
#ifndef LEARN_H
#define LEARN_H

#include "transformer.h"

/* The gradients of one rank, in memory of the rank. */
struct gradients {
    float *array[PARAMETERS]; /* each of the shape of the rank's slice */
    ditto_tensor tensor[PARAMETERS];

    /* Gradients of what flows through the layers. */
    float *dx, *dnormal, *dquery, *dattended, *dkey, *dvalue, *dgate, *dup, *logits;
    float *score, *outlook; /* scratch */
    void *memory;
};

/* Makes room for the gradients of a transformer that keeps its numbers. Must be ended by gradients_end. */
ditto_status gradients_begin(struct gradients *g, struct transformer *t);
ditto_status gradients_end(struct gradients *g, struct transformer *t);

/* Adds to *loss the cross-entropy of the rows, target[r] being the token that follows row r, in nats. Sets
 * the gradients to those of `scale` times this loss. The rows are all positions of all sequences. The
 * gradients of mirrored parameters are those of rank 0, and 0 on the other ranks, so the sum over all
 * replicas counts them once. Collective like transformer_forward. */
ditto_status learn(struct transformer *t, struct gradients *g, const struct row *row, const int32_t *target,
                   uint32_t rows, float scale, double *loss);

#endif
