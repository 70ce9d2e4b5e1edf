/* examples/language_model/weights.h - the weights of a model as variables of a strategy.
 *
 * Matrices are sliced along the axis "tensor" of a mesh, as in Shoeybi et al. 2019: each rank has some heads,
 * some rows of the feed-forward part, and some words of the classifier. All else is mirrored. */
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include "model.h"

#include <ditto.h>

/* Where the first values come from. */
struct weight_source {
    const struct model_file *file; /* NULL for random numbers, which do not depend on the slicing */
    uint64_t seed;                 /* of the random numbers */
    float deviation;
    bool bf16; /* matrices are bf16, otherwise f32 */
};

struct weights {
    struct model_shape shape;
    ditto_grouping *tensor, *data; /* the axes of the mesh */
    ditto_variable *array[PARAMETERS];
};

/* Ends the program with a message if a model cannot be divided over so many ranks. */
void weights_check_division(const struct model_shape *shape, uint32_t tensor);

/* Creates a mesh of data x tensor replicas, and the variables. */
struct weights weights_create(ditto_strategy *strategy, const struct model_shape *shape, uint32_t data,
                              uint32_t tensor, const struct weight_source *source);
void weights_destroy(struct weights *w);

#endif
