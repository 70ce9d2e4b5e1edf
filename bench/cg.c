/* bench/cg.c - conjugate gradients on a grid, as a program that computes and meets, see work.h.
 *
 * The matrix is the Laplacian of a grid of 32 x 32 points in each plane (7-point stencil, zeros around the
 * grid). Each replica has neighbouring planes. In an iteration it reads the next planes of its neighbours,
 * and meets them three times: for two sums of all replicas, and before the next iteration reads
 * neighbours' planes. Every CG_RESTART iterations it begins anew, because the residual would become 0, and
 * this is not measured. Source: Hestenes, Stiefel, J. Res. NBS 49, 1952. */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 32, PLANE = SIDE * SIDE, CG_RESTART = 32 };

/* The part of one replica. */
struct cg {
    const struct work *work;
    struct worker *workers;
    uint32_t id;
    const struct contender_ops *ops;
    void *context;
    size_t count; /* of points */
    double *x, *r, *p, *q;
    double rr; /* the square of the residual's norm */
    struct program_times seconds;
};

/* The scalar that each replica adds up. */
static struct worker scalar[WORK_MOST_REPLICAS];
static const double zeros[PLANE];

void (*cg_exchange)(uint32_t id, const double *own, size_t length, double *halo, size_t count);

size_t cg_buffer_bytes(const struct work *work)
{
    return 4 * work->bytes + 2 * PLANE * sizeof(double); /* vectors, and planes of neighbours */
}

static double *vector(const struct work *work, const struct worker *w, int index)
{
    return (double *)(void *)(w->src + (size_t)index * work->bytes);
}

static struct cg part_of(const struct work *work, struct worker *workers, uint32_t id,
                         const struct contender_ops *ops, void *context)
{
    struct worker *w = &workers[id];
    return (struct cg){ .work = work,
                        .workers = workers,
                        .id = id,
                        .ops = ops,
                        .context = context,
                        .count = work->bytes / sizeof(double),
                        .x = vector(work, w, 0),
                        .r = vector(work, w, 1),
                        .p = vector(work, w, 2),
                        .q = vector(work, w, 3) };
}

/* -- operations -- */

/* Adds up a number of all replicas. */
static double add_up(struct cg *c, double value)
{
    struct work sum = { .kind = BENCH_ALL_REDUCE,
                        .replicas = c->work->replicas,
                        .bytes = sizeof value,
                        .dtype = DITTO_F64,
                        .op = DITTO_SUM,
                        .in_place = true,
                        .in_processes = c->work->in_processes };
    double begin = now_seconds();
    scalar[c->id].src = scalar[c->id].dst = (char *)&value;
    c->ops->collective(c->context, c->id, &sum, scalar);
    c->seconds.operations += now_seconds() - begin;
    return value;
}

/* Makes the neighbours' next planes of p readable. */
static void exchange(struct cg *c)
{
    double begin = now_seconds();
    if (cg_exchange != NULL)
        cg_exchange(c->id, c->p, c->count, vector(c->work, &c->workers[c->id], 4), PLANE);
    else
        c->ops->barrier(c->context, c->id);
    c->seconds.operations += now_seconds() - begin;
}

/* Returns the plane below the first one of this replica, or above the last one. */
static const double *neighbour(const struct cg *c, bool above)
{
    if (c->id == (above ? c->work->replicas - 1 : 0))
        return zeros;
    if (cg_exchange != NULL)
        return vector(c->work, &c->workers[c->id], 4) + (above ? PLANE : 0);
    const double *p = vector(c->work, &c->workers[above ? c->id + 1 : c->id - 1], 2);
    return above ? p : p + c->count - PLANE;
}

/* -- arithmetic -- */

static double dot(const double *a, const double *b, size_t count)
{
    double sum[8] = { 0 }; /* independent sums, so that the additions need not wait for each other */
    for (size_t i = 0; i < count; i += 8)
        for (size_t k = 0; k < 8; k++)
            sum[k] += a[i + k] * b[i + k];
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

/* q = A p in one row of a plane. The rows next to it are zeros at the edge of the grid. */
static void multiply_row(double *restrict q, const double *p, const double *south, const double *north,
                         const double *below, const double *above)
{
    for (size_t i = 0; i < SIDE; i++) {
        double west = i > 0 ? p[i - 1] : 0, east = i + 1 < SIDE ? p[i + 1] : 0;
        q[i] = 6 * p[i] - (west + east) - (south[i] + north[i]) - (below[i] + above[i]);
    }
}

static void multiply(const struct cg *c)
{
    size_t planes = c->count / PLANE;
    for (size_t z = 0; z < planes; z++) {
        const double *p = c->p + z * PLANE;
        const double *below = z > 0 ? p - PLANE : neighbour(c, false);
        const double *above = z + 1 < planes ? p + PLANE : neighbour(c, true);
        for (size_t y = 0; y < SIDE; y++)
            multiply_row(c->q + z * PLANE + y * SIDE, p + y * SIDE, y > 0 ? p + (y - 1) * SIDE : zeros,
                         y + 1 < SIDE ? p + (y + 1) * SIDE : zeros, below + y * SIDE, above + y * SIDE);
    }
}

/* Ends the program if a sum is not what it should be. All numbers of the first iteration are whole, and so
 * are their sums, up to 2^53. */
static void expect(const struct cg *c, const char *what, double found, double expected)
{
    if (found == expected)
        return;
    fprintf(stderr, "bench: cg: %s of replica %u is %g, not %g\n", what, c->id, found, expected);
    exit(1);
}

static void restart(struct cg *c)
{
    double begin = now_seconds(), operations = c->seconds.operations;
    for (size_t i = 0; i < c->count; i++) {
        c->x[i] = 0;
        c->r[i] = c->p[i] = 1;
    }
    c->rr = add_up(c, dot(c->r, c->r, c->count));
    expect(c, "the square of the residual", c->rr, (double)c->count * c->work->replicas);
    c->seconds.restarts += now_seconds() - begin;
    c->seconds.operations = operations;
}

/* Returns the sum of all elements of A p if p is 1 everywhere: the number of the grid's outer faces. */
static double faces(const struct cg *c)
{
    return 2 * PLANE + 4 * SIDE * (double)(c->count / PLANE * c->work->replicas);
}

static void iterate(struct cg *c, bool is_first)
{
    exchange(c);
    multiply(c);
    double pq = add_up(c, dot(c->p, c->q, c->count)), alpha = c->rr / pq;
    if (is_first)
        expect(c, "the product", pq, faces(c));
    for (size_t i = 0; i < c->count; i++) {
        c->x[i] += alpha * c->p[i];
        c->r[i] -= alpha * c->q[i];
    }
    double before = c->rr;
    c->rr = add_up(c, dot(c->r, c->r, c->count));
    double beta = c->rr / before;
    for (size_t i = 0; i < c->count; i++)
        c->p[i] = c->r[i] + beta * c->p[i];
}

struct program_times cg_run(const struct work *work, struct worker *workers, uint32_t id,
                            const struct contender_ops *ops, void *context)
{
    struct cg c = part_of(work, workers, id, ops, context);
    for (uint64_t rep = 0; rep < work->reps; rep++) {
        if (rep % CG_RESTART == 0)
            restart(&c);
        iterate(&c, rep % CG_RESTART == 0);
    }
    return c.seconds;
}
