/* Lesson 13: groups of replicas. The replicas are the places of a grid. Each has one block of three matrices,
 * and computes its block of the product A B. What it needs of A is in the blocks of its row, and what it
 * needs of B in those of its column. So rows and columns are groups, and each block is broadcast in one of
 * them (SUMMA: van de Geijn, Watts, Concurrency 9(4), 1997).
 *
 *     build/examples/13_groups [REPLICAS] */
#include "lesson.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The length of the sides of a block of the result, and the number of columns of A and rows of B that are
 * broadcast at a time. */
enum { SIDE = 24, PANEL = 8 };

/* A grid of `height` rows and `width` columns of replicas. A has height * SIDE rows, B has width * SIDE
 * columns, and the inner length is height * width panels. */
struct product {
    uint32_t height, width;
    ditto_grouping *axis[2];
    _Atomic int wrong;
};

/* Whole numbers, so that every order of additions has the same result. */
static double a_at(size_t row, size_t column)
{
    return (double)((row * 7 + column * 3) % 11);
}
static double b_at(size_t row, size_t column)
{
    return (double)((row * 5 + column * 2) % 13);
}

/* c += a b, where a is [SIDE][PANEL] and b is [PANEL][SIDE]. */
static void multiply(const double *a, const double *b, double *c)
{
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < PANEL; k++)
            for (int j = 0; j < SIDE; j++)
                c[i * SIDE + j] += a[i * PANEL + k] * b[k * SIDE + j];
}

static void fill(double *out, double (*at)(size_t, size_t), size_t row, size_t rows, size_t column,
                 size_t columns)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < columns; k++)
            out[i * columns + k] = at(row + i, column + k);
}

static ditto_status compute_block(ditto_replica *self, void *argument)
{
    struct product *p = argument;
    double a[SIDE * PANEL], b[PANEL * SIDE], c[SIDE * SIDE] = { 0 };
    ditto_group column, row;
    ditto_reduce_options in_row = DITTO_REDUCE_OPTIONS_INIT, in_column = in_row;
    /* A replica's rank in its row is the number of its column, and the other way round. */
    DITTO_TRY(ditto_group_of(self, p->axis[0], &column));
    DITTO_TRY(ditto_group_of(self, p->axis[1], &row));
    in_row.group = &row;
    in_column.group = &column;
    size_t top = (size_t)column.rank * SIDE, left = (size_t)row.rank * SIDE, panels = p->height * p->width;
    for (size_t k = 0; k < panels; k++) {
        /* Each column of replicas has `height` panels of A, and each row of replicas has `width` of B. */
        uint32_t a_owner = (uint32_t)(k / p->height), b_owner = (uint32_t)(k / p->width);
        if (row.rank == a_owner)
            fill(a, a_at, top, SIDE, k * PANEL, PANEL);
        if (column.rank == b_owner)
            fill(b, b_at, k * PANEL, PANEL, left, SIDE);
        DITTO_TRY(ditto_broadcast_from_root(self, a, SIDE * PANEL, DITTO_F64, a_owner, &in_row));
        DITTO_TRY(ditto_broadcast_from_root(self, b, PANEL * SIDE, DITTO_F64, b_owner, &in_column));
        multiply(a, b, c);
    }
    for (size_t i = 0; i < SIDE; i++)
        for (size_t j = 0; j < SIDE; j++) {
            double sum = 0;
            for (size_t k = 0; k < panels * PANEL; k++)
                sum += a_at(top + i, k) * b_at(k, left + j);
            p->wrong += c[i * SIDE + j] != sum;
        }
    return DITTO_OK;
}

int main(int argc, char **argv)
{
    struct product p = { .height = 1 };
    ditto_strategy *strategy = strategy_of_words(argc, argv);
    uint32_t n = ditto_strategy_num_replicas(strategy);
    for (uint32_t side = 1; side * side <= n; side++)
        p.height = n % side == 0 ? side : p.height;
    p.width = n / p.height;
    ditto_mesh_axis axes[] = { { "columns", p.height }, { "rows", p.width } };
    check(ditto_strategy_mesh(strategy, axes, 2, p.axis));
    check(ditto_strategy_run(strategy, compute_block, &p));
    printf(
        "a grid of %u x %u replicas has multiplied matrices of %u x %u and %u x %u: %d elements are wrong\n",
        p.height, p.width, p.height * SIDE, n * PANEL, n * PANEL, p.width * SIDE, p.wrong);
    for (int i = 0; i < 2; i++)
        check(ditto_grouping_destroy(p.axis[i]));
    check(ditto_strategy_destroy(strategy));
    return p.wrong != 0;
}
