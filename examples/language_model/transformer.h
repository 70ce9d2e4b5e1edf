/* examples/language_model/transformer.h - one rank's part of a transformer.
 *
 * A call computes some rows. A row is one position of one sequence, and each rank has all of its elements
 * between the matrices. Inside a layer, a rank has its heads and its part of the feed-forward rows. The
 * matrix that leads back gives partial sums, so a layer has two all-reduces of dim elements a row, and
 * nothing else moves. */
#ifndef TRANSFORMER_H
#define TRANSFORMER_H

#include "arithmetic.h"
#include "weights.h"

struct row {
    uint32_t sequence, position;
    int32_t token;
};

struct transformer {
    ditto_replica *self;
    const struct weights *weights;
    ditto_group tensor, data;         /* the replica's groups */
    struct matrix matrix[PARAMETERS]; /* the own slices, of the first layer */
    uint32_t dim, head, queries;      /* queries: the query heads of a key/value head */
    uint32_t kv_heads, hidden, words; /* the own ones */
    uint32_t first_word;
    uint32_t sequences, positions, most_rows;

    /* True if the numbers of all layers are kept for the backward pass. Otherwise each layer overwrites those
     * of the layer before it. */
    bool keeps;

    /* The numbers on the way, in memory of the rank: see transformer_begin. */
    void *memory;
    float *x, *middle, *query, *attended, *score, *gate, *up, *key, *value, *angles, *wide, *narrow;
    double waited; /* the seconds in collectives */
};

/* Makes the part of the calling replica: room for some sequences of some positions, and for the rows of a
 * call. Must be ended by transformer_end, in the same run. */
ditto_status transformer_begin(struct transformer *t, ditto_replica *self, const struct weights *weights,
                               uint32_t sequences, uint32_t positions, uint32_t most_rows, bool keeps);
ditto_status transformer_end(struct transformer *t);

/* Looks up where the weights are. transformer_begin does it too. It is called again after a write of the
 * variables, also after a step of an optimizer. */
ditto_status transformer_find_weights(struct transformer *t);

/* Computes rows. Those of a sequence are in the order of their positions, and the positions before the first
 * one have been computed. Collective in the group along "tensor", whose ranks give the same rows. */
ditto_status transformer_forward(struct transformer *t, const struct row *row, uint32_t rows);

/* Stores the logits of some of these rows for the rank's own words: out is [count][words]. */
void transformer_logits(struct transformer *t, const uint32_t *which, uint32_t count, float *out);

/* The largest logit of a rank, or what was made of it. */
struct candidate {
    float value;
    int32_t token;
};

/* Chooses the best of the ranks' candidates for some rows. candidates is [ranks][count], of which the rank
 * has filled in its own part. best is [count], and equal on all ranks. Of equal ones the lowest token is
 * taken. */
ditto_status transformer_best(struct transformer *t, struct candidate *candidates, uint32_t count,
                              struct candidate *best);

/* Normalizes rows of dim elements. */
void transformer_normalize(const struct transformer *t, float *out, const float *x, const float *weight,
                           uint32_t rows);

/* Gives the next part of a block of memory, or only counts it if the block is NULL. */
float *next_part(float *block, size_t *used, size_t count);

/* Adds up a buffer over the ranks, and the time that it took. */
ditto_status transformer_add_up(struct transformer *t, float *buffer, size_t count);

/* The numbers of a layer: their part of an array with `each` elements a row. */
static inline float *layer_part(const struct transformer *t, float *array, uint32_t layer, size_t each)
{
    return array + (t->keeps ? (size_t)layer * t->most_rows * each : 0);
}

/* The own slice of a matrix in a layer. */
static inline struct matrix layer_matrix(const struct transformer *t, enum parameter p, uint32_t layer)
{
    struct matrix m = t->matrix[p];
    size_t before = (size_t)layer * m.outputs * m.inputs;
    m.data = (const char *)m.data + before * (m.bf16 ? sizeof(uint16_t) : sizeof(float));
    return m;
}

static inline const float *layer_norm(const struct transformer *t, enum parameter p, uint32_t layer)
{
    return (const float *)t->matrix[p].data + (size_t)layer * t->dim;
}

/* The keys or values of a sequence in a layer: [positions][kv_heads * head]. */
static inline float *kv_cache_of(const struct transformer *t, float *array, uint32_t layer, uint32_t sequence)
{
    return array + ((size_t)layer * t->sequences + sequence) * t->positions * t->kv_heads * t->head;
}

#endif
