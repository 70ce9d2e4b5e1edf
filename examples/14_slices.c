/* Lesson 14: variables that are sliced over replicas. A matrix maps points to outputs, and has too many rows
 * for one replica. So each replica has some of the rows, in memory of its own node, and learns these: it
 * computes their outputs, and the gradient of its slice. Outside of runs the matrix is whole.
 *
 *     build/examples/14_slices [REPLICAS] */
#include "lesson.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 1024, COLUMNS = 8, POINTS = 32, STEPS = 200 };

/* The matrix that is to be found, and the points. */
static float wanted(size_t row, size_t column)
{
    return (float)((row * 5 + column * 3) % 17) / 17;
}
static float point(int number, int column)
{
    return cosf(3.14159265f * ((float)number + 0.5f) * (float)column / POINTS);
}

struct learning {
    ditto_variable *matrix; /* [ROWS, COLUMNS], sliced along its rows */
    ditto_optimizer *optimizer;
};

/* Adds the gradient of the squares of the errors of some rows. */
static void add_gradient(const float *row, size_t rows, size_t first, float *gradient)
{
    for (size_t r = 0; r < rows; r++, row += COLUMNS, gradient += COLUMNS)
        for (int p = 0; p < POINTS; p++) {
            float error = 0;
            for (int c = 0; c < COLUMNS; c++)
                error += (row[c] - wanted(first + r, (size_t)c)) * point(p, c);
            for (int c = 0; c < COLUMNS; c++)
                gradient[c] += error * point(p, c);
        }
}

static ditto_status learn(ditto_replica *self, void *argument)
{
    struct learning *l = argument;
    ditto_tensor slice, gradient;
    size_t first;
    void *memory;
    DITTO_TRY(ditto_local_slice(self, l->matrix, &slice, &first)); /* this replica's rows */
    DITTO_TRY(ditto_alloc(self, ditto_tensor_bytes(&slice), 64, &memory));
    gradient = slice; /* it has the shape of the slice */
    gradient.data = memory;
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < slice.shape[0] * COLUMNS; i++)
            ((float *)memory)[i] = 0;
        add_gradient(slice.data, slice.shape[0], first, memory);
        DITTO_TRY(ditto_apply(self, l->optimizer, &gradient, NULL)); /* no rows of others move */
    }
    return ditto_free(self, memory);
}

/* Fills a slice with its first values, on the thread of the replica that has it. */
static ditto_status begin(const ditto_tensor *slice, size_t first, void *user)
{
    (void)first, (void)user;
    for (size_t i = 0; i < slice->shape[0] * slice->shape[1]; i++)
        ((float *)slice->data)[i] = 0.5f;
    return DITTO_OK;
}

int main(int argc, char **argv)
{
    struct learning l;
    ditto_strategy *strategy = strategy_of_words(argc, argv);
    const ditto_tensor shape = { .dtype = DITTO_F32, .rank = 2, .shape = { ROWS, COLUMNS } };
    ditto_variable_options sliced = DITTO_VARIABLE_OPTIONS_INIT;
    sliced.name = "matrix";
    sliced.aggregation = DITTO_AGGREGATE_SUM;
    sliced.initialize = begin;
    sliced.partitioner.kind = DITTO_PARTITION_BY_REPLICA;
    sliced.slice_axis = 0;     /* rows. 1 would slice columns */
    sliced.slice_along = NULL; /* over all replicas. It may be an axis of a mesh (lesson 13) */
    check(ditto_variable_create(strategy, &shape, &sliced, &l.matrix));
    ditto_optimizer_options options = DITTO_OPTIMIZER_OPTIONS_INIT;
    options.rule = DITTO_RULE_SGD;
    options.learning_rate = 0.02;
    options.momentum = 0.9; /* the momentum is sliced in the same way */
    check(ditto_optimizer_create(&l.matrix, 1, &options, &l.optimizer));
    check(ditto_strategy_run(strategy, learn, &l));

    char description[256];
    check(ditto_variable_describe(l.matrix, description, sizeof description, NULL));
    printf("%s\n", description);
    static float found[ROWS][COLUMNS];
    float furthest = 0;
    check(ditto_variable_read(l.matrix, found, sizeof found)); /* the whole */
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < COLUMNS; c++)
            furthest = fmaxf(furthest, fabsf(found[r][c] - wanted(r, c)));
    printf("after %d steps the furthest element is %.4f from what it should be\n", STEPS, (double)furthest);
    check(ditto_optimizer_destroy(l.optimizer));
    check(ditto_variable_destroy(l.matrix));
    check(ditto_strategy_destroy(strategy));
    return furthest < 0.01f ? 0 : 1;
}
