// Conjugate gradients on a box of unknowns with a seven-point stencil, on replicas. The replicas divide the
// planes of the box among themselves.
//     ./cg-ditto 64 64 64 100 2
#include <ditto.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

// The planes of one replica. A field has one more plane below and above them, which belong to neighbours.
struct part {
    ditto::replica self;
    std::size_t plane, planes; // unknowns in a plane, and planes of this replica
    std::size_t width;         // unknowns in a row of a plane
};

using field = std::vector<double>;

static double sum_of_all(const part &p, double own)
{
    return p.self.all_reduce(own);
}

static double dot(const part &p, const field &a, const field &b)
{
    double sum = 0;
    for (std::size_t i = p.plane; i < (p.planes + 1) * p.plane; i++)
        sum += a[i] * b[i];
    return sum_of_all(p, sum);
}

// Gives the outermost planes to the neighbours, and takes theirs.
static void exchange_borders(const part &p, field &x)
{
    std::uint32_t id = p.self.id();
    std::vector<ditto_exchange_part> parts;
    double *first = x.data() + p.plane, *last = x.data() + p.planes * p.plane, *end = last + p.plane;
    auto plane = [&](double *at) { return ditto::elements(at, at + p.plane); };
    if (id > 0)
        parts.push_back(p.self.part(id - 1, id, plane(first), plane(first - p.plane)));
    if (id + 1 < p.self.size())
        parts.push_back(p.self.part(id + 1, id + 1, plane(last), plane(end)));
    p.self.exchange(parts);
}

// y = A x, where A has 6 on the diagonal and -1 for each of the six neighbours.
static void multiply(const part &p, field &x, field &y)
{
    exchange_borders(p, x);
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

static void report(const part &p, int iterations)
{
    auto begin = std::chrono::steady_clock::now();
    double residual = solve(p, iterations);
    std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    if (p.self.id() == 0)
        std::printf("%u parts: residual %a, %.0f us for an iteration\n", p.self.size(), residual,
                    time.count() / iterations);
}

int main(int argc, char **argv)
{
    std::size_t width = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 32;
    std::size_t height = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : width;
    std::size_t depth = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : width;
    int iterations = argc > 4 ? std::atoi(argv[4]) : 50;
    ditto::strategy strategy(argc > 5 ? std::atoi(argv[5]) : 2);
    strategy.run([&](ditto::replica self) {
        std::size_t plane = width * height;
        std::size_t planes = depth * (self.id() + 1) / self.size() - depth * self.id() / self.size();
        report({ self, plane, planes, width }, iterations);
    });
}
