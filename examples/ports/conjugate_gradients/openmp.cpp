// Conjugate gradients on a box of unknowns with a seven-point stencil, with loops of OpenMP. It is here for
// its time: its sums are added in another order, so its residual has other bits.
//     OMP_NUM_THREADS=2 ./cg-openmp 64 64 64 100
#include <omp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

// A field has one more plane below and above the box, whose elements stay 0.
struct part {
    std::size_t plane, planes; // unknowns in a plane, and planes
    std::size_t width;         // unknowns in a row of a plane
};

using field = std::vector<double>;

static double dot(const part &p, const field &a, const field &b)
{
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (std::size_t i = p.plane; i < (p.planes + 1) * p.plane; i++)
        sum += a[i] * b[i];
    return sum;
}

// y = A x, where A has 6 on the diagonal and -1 for each of the six neighbours.
static void multiply(const part &p, field &x, field &y)
{
#pragma omp parallel for schedule(static)
    for (std::size_t k = 1; k <= p.planes; k++)
        for (std::size_t j = 0; j < p.plane; j += p.width)
            for (std::size_t i = 0; i < p.width; i++) {
                std::size_t at = k * p.plane + j + i;
                double sum = 6 * x[at] - x[at - p.plane] - x[at + p.plane];
                if (i > 0)
                    sum -= x[at - 1];
                if (i + 1 < p.width)
                    sum -= x[at + 1];
                if (j > 0)
                    sum -= x[at - p.width];
                if (j + p.width < p.plane)
                    sum -= x[at + p.width];
                y[at] = sum;
            }
}

// Adds factor * b to a, or, if it scales, sets a to factor * a + b.
static void add(const part &p, field &a, double factor, const field &b, bool scales)
{
#pragma omp parallel for schedule(static)
    for (std::size_t i = p.plane; i < (p.planes + 1) * p.plane; i++)
        a[i] = scales ? factor * a[i] + b[i] : a[i] + factor * b[i];
}

// Returns the square of the residual after so many iterations.
static double solve(const part &p, int iterations)
{
    std::size_t length = (p.planes + 2) * p.plane;
    field x(length), r(length), d(length), q(length);
    for (std::size_t i = p.plane; i < (p.planes + 1) * p.plane; i++)
        r[i] = d[i] = 1;
    double old = dot(p, r, r);
    for (int k = 0; k < iterations; k++) {
        multiply(p, d, q);
        double alpha = old / dot(p, d, q);
        add(p, x, alpha, d, false);
        add(p, r, -alpha, q, false);
        double now = dot(p, r, r);
        add(p, d, now / old, r, true);
        old = now;
    }
    return old;
}

int main(int argc, char **argv)
{
    std::size_t width = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 32;
    std::size_t height = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : width;
    std::size_t depth = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : width;
    int iterations = argc > 4 ? std::atoi(argv[4]) : 50;
    part p{ width * height, depth, width };
    auto begin = std::chrono::steady_clock::now();
    double residual = solve(p, iterations);
    std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    std::printf("%d parts: residual %a, %.0f us for an iteration\n", omp_get_max_threads(), residual,
                time.count() / iterations);
}
