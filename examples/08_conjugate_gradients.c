/* Lesson 8: conjugate gradients for Poisson's equation on a square. Each replica stores only its own rows of
 * the grid, and copies of the rows beside them, which ditto_exchange brings. The bits of ditto_block_dot do
 * not depend on how the elements are divided over replicas. So the number of iterations and all bits of the
 * residual are the same for each number of replicas.
 *
 *     build/examples/08_conjugate_gradients [REPLICAS ...] */
#include "command_line.h"
#include "launch.h"
#include "lesson.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SIDE = 256, MOST_ITERATIONS = 2000, MOST_RUNS = 64 };

struct problem {
    int iterations;
    double residual;
};

/* The rows of the vectors that one replica stores. */
struct part {
    ditto_replica *self;
    size_t count; /* the number of cells */
    double *x, *r, *p, *q;

    /* The rows before and after this replica's rows of p are p - SIDE and p + count. At the border of the
     * square they are zero. */
    ditto_exchange_part neighbour[2];
    size_t neighbours;
};

static ditto_status dot(struct part *g, const double *a, const double *b, double *sum)
{
    return ditto_block_dot(g->self, a, b, sum, g->count, DITTO_F64, NULL);
}

/* Computes q = A p with the five-point stencil. */
static void apply(struct part *g)
{
    for (size_t y = 0; y < g->count / SIDE; y++) {
        const double *p = g->p + y * SIDE, *up = p - SIDE, *down = p + SIDE;
        for (size_t x = 0; x < SIDE; x++)
            g->q[y * SIDE + x] = 4 * p[x] - (x > 0 ? p[x - 1] : 0) - (x + 1 < SIDE ? p[x + 1] : 0) - up[x] -
                                 down[x];
    }
}

static ditto_status iterate(struct part *g, struct problem *problem)
{
    double rr, next_rr, pq, first_rr;
    int k = 0;
    DITTO_TRY(dot(g, g->r, g->r, &rr));
    for (first_rr = rr; k < MOST_ITERATIONS && rr > 1e-20 * first_rr; k++) {
        DITTO_TRY(ditto_exchange(g->self, g->neighbour, g->neighbours, NULL));
        apply(g);
        DITTO_TRY(dot(g, g->p, g->q, &pq));
        for (size_t i = 0; i < g->count; i++) {
            g->x[i] += rr / pq * g->p[i];
            g->r[i] -= rr / pq * g->q[i];
        }
        DITTO_TRY(dot(g, g->r, g->r, &next_rr));
        for (size_t i = 0; i < g->count; i++)
            g->p[i] = g->r[i] + next_rr / rr * g->p[i];
        rr = next_rr;
    }
    if (ditto_replica_is_first_of_host(g->self)) {
        problem->iterations = k;
        problem->residual = sqrt(rr);
    }
    return DITTO_OK;
}

static ditto_status solve(ditto_replica *self, void *problem)
{
    uint32_t id = ditto_replica_id(self), replicas = ditto_num_replicas(self);
    size_t first = (size_t)SIDE * id / replicas * SIDE,
           count = (size_t)SIDE * (id + 1) / replicas * SIDE - first;
    void *memory; /* for four vectors and two rows, on this replica's NUMA node */
    size_t bytes = (4 * count + 2 * SIDE) * sizeof(double);
    DITTO_TRY(ditto_alloc(self, bytes, 64, &memory));
    double *x = memset(memory, 0, bytes);
    struct part g = {
        .self = self, .count = count, .x = x, .r = x + count, .q = x + 2 * count, .p = x + 3 * count + SIDE
    };
    /* Border i is between replicas i and i + 1. */
    if (id > 0)
        g.neighbour[g.neighbours++] = (ditto_exchange_part){ id - 1, id - 1, g.p,      g.p - SIDE,
                                                             SIDE,   SIDE,   DITTO_F64 };
    if (id + 1 < replicas)
        g.neighbour[g.neighbours++] = (ditto_exchange_part){ id + 1, id,   g.p + count - SIDE, g.p + count,
                                                             SIDE,   SIDE, DITTO_F64 };
    for (size_t i = 0; i < count; i++) /* the right-hand side */
        g.r[i] = g.p[i] = sin(0.001 * (double)(first + i));
    DITTO_TRY(iterate(&g, problem));
    return ditto_free(self, memory);
}

/* Solves the problem with a number of replicas, and prints a row of the table. */
static struct problem solve_with(uint32_t replicas)
{
    static struct problem problem;
    memset(&problem, 0, sizeof problem);
    ditto_strategy *strategy = strategy_of(replicas);
    double began = seconds();
    check(ditto_strategy_run(strategy, solve, &problem));
    double us = 1e6 * (seconds() - began) / problem.iterations;
    check(ditto_strategy_destroy(strategy));
    if (is_first_host())
        printf("%8u  %10d  %.6e = %-22a  %14.1f\n", replicas, problem.iterations, problem.residual,
               problem.residual, us);
    return problem;
}

int main(int argc, char **argv)
{
    static const struct command_row rows[] = {
        { NULL, "REPLICAS...", "how many replicas each run has: 1 to 256 (default: 1 2 3 8)" },
        { 0 },
    };
    struct command_line line = command_line_of(
        "[REPLICAS ...]", "Lesson 8 of ditto: conjugate gradients, with the same bits for each number.", rows,
        argc, argv);
    uint32_t replicas[MOST_RUNS] = { 1, 2, 3, 8 };
    int runs = 0;
    for (; command_next(&line) >= 0; runs++) {
        if (runs == MOST_RUNS)
            command_refuse(&line, "%s is one number too many: there are at most %d", line.value, MOST_RUNS);
        replicas[runs] = (uint32_t)command_number(&line, 1, SIDE);
    }
    runs = runs > 0 ? runs : 4;
    /* 08_conjugate_gradients-openmpi and -mpich are this program on several hosts. */
    join_hosts(&argc, &argv);
    if (is_first_host())
        printf("replicas  iterations  residual = its bits                    us per iteration\n");
    struct problem first = solve_with(replicas[0]);
    for (int i = 1; i < runs; i++) {
        struct problem next = solve_with(replicas[i]);
        if (next.iterations != first.iterations || next.residual != first.residual)
            return printf("with %u replicas the result has other bits\n", replicas[i]), 1;
    }
    if (is_first_host())
        printf("the same bits for all\n");
    return leave_hosts(0);
}
