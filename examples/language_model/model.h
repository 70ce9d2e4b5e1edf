/* examples/language_model/model.h - the shape of a model, and the files that hold one.
 *
 * The model is a transformer of the Llama family (Touvron et al. 2023) with rotary positions (Su et al.
 * 2021), a gated feed-forward part (Shazeer 2020) and groups of query heads that share keys and values
 * (Ainslie et al. 2023). The file is that of llama2.c, version 0. */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model_shape {
    uint32_t dim;    /* elements of the vector that runs through the layers */
    uint32_t hidden; /* rows of the feed-forward part */
    uint32_t layers;
    uint32_t heads;    /* of queries; each has dim / heads elements */
    uint32_t kv_heads; /* of keys and values; each is shared by heads / kv_heads query heads */
    uint32_t vocabulary, positions;
    bool own_classifier; /* false if the classifier is the embedding */
};

/* The arrays of a model, in the order of the file. */
enum parameter {
    EMBEDDING,
    ATTENTION_NORM,
    QUERY,
    KEY,
    VALUE,
    OUTPUT,
    FEED_NORM,
    GATE, /* w1 in most descriptions */
    DOWN, /* w2 */
    UP,   /* w3 */
    FINAL_NORM,
    CLASSIFIER,
    PARAMETERS
};

/* The extents of an array. Matrices have a row for each output. Rows and columns that belong to heads are
 * counted in groups of heads that share a key head, because such a group is not divided. */
struct parameter_shape {
    const char *name;
    uint32_t rank;
    uint32_t extent[4];
    int sliced;     /* the dimension that is sliced over the ranks, or -1 if each rank has all */
    size_t inputs;  /* the length of a row of the matrix, over the last dimensions */
    bool is_matrix; /* false for the weights of a normalization */
};

struct parameter_shape parameter_shape(const struct model_shape *shape, enum parameter p);

/* Returns the number of elements of an array. */
size_t parameter_count(const struct model_shape *shape, enum parameter p);

/* Returns a sentence that says why no model has this shape, or NULL. */
const char *model_shape_fault(const struct model_shape *shape);

struct model_file {
    struct model_shape shape;
    const float *array[PARAMETERS]; /* the pages of the file, which the system reads when they are touched */
};

/* Opens a file, and looks at all of it. Ends the program with a message if the file is none of a model, or
 * is damaged. Nothing has been allocated then. The file must not be shortened while it is used. */
struct model_file model_open(const char *path);

/* Writes a model. `array` has the elements of each parameter, and the classifier if it is not shared. Returns
 * false if the file cannot be written, and errno says why. */
bool model_write(const char *path, const struct model_shape *shape, const float *const *array);

/* Returns the bytes of a file, which the caller frees. Ends the program with a message if it cannot be
 * read. */
char *read_whole_file(const char *path, size_t *bytes);

/* Ends the program with status 2 and a message about a file, or about what `path` names otherwise. */
void refuse_file(const char *path, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

#endif
