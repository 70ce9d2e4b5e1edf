// bench/cpp_cost.cpp - what the C++ face costs over the C calls.
//     build/bench/cpp-cost [REPLICAS]
// The two take turns, each with batches of calls that differ in nothing else. The figures are medians of the
// quotients of neighbouring batches. The bound is 1. Loops show what it costs to capture by reference.
#include "../examples/command_line.h"

#include <ditto.hpp>

#include <chrono>
#include <cmath>

namespace
{

constexpr int batches = 201, calls = 2000;

// What a C program does with a status.
void must(ditto_status status)
{
    if (status < 0)
        std::abort();
}

double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class F> double seconds(F &&call)
{
    double begin = now();
    for (int i = 0; i < calls; i++)
        call();
    return (now() - begin) / calls;
}

template <class C, class P> void compare(ditto::replica self, const char *name, C &&c, P &&cpp)
{
    std::vector<double> quotient(batches), ns(batches);
    for (int i = 0; i < batches; i++) {
        double first = seconds(c), second = seconds(cpp);
        quotient[i] = second / first;
        ns[i] = first * 1e9;
    }
    std::sort(quotient.begin(), quotient.end());
    std::sort(ns.begin(), ns.end());
    if (self.id() == 0)
        std::printf("%-24s C %8.1f ns, C++ / C %.3f\n", name, ns[batches / 2], quotient[batches / 2]);
}

void measure(ditto::replica self)
{
    double in = 1, out = 0;
    std::vector<float> src(512, 1.0f), dst(512);
    compare(
        self, "all-reduce of a double",
        [&] { must(ditto_all_reduce(self.get(), &in, &out, 1, DITTO_F64, DITTO_SUM, nullptr)); },
        [&] { out = self.all_reduce(in); });
    compare(
        self, "all-reduce of 2 KiB",
        [&] {
            ditto::call(ditto_all_reduce, self.get(), src.data(), dst.data(), src.size(), DITTO_F32,
                        DITTO_SUM, nullptr);
        },
        [&] { self.all_reduce(src, dst); });
    compare(
        self, "barrier", [&] { must(ditto_barrier(self.get(), nullptr)); }, [&] { self.barrier(); });
}

// A loop over cells of a list, such as those of LULESH. Between several stores to a double it reads numbers
// that are the same for all cells.
struct cells {
    double *pressure;
    const double *energy, *volume;
    const std::uint32_t *list;
    double cut, most, least;
};

inline void set_pressure(double &pressure, double energy, double volume, const double &cut,
                         const double &most, const double &least)
{
    pressure = energy * 0.5;
    if (std::fabs(pressure) < cut)
        pressure = 0;
    if (volume >= most)
        pressure = 0;
    if (pressure < least)
        pressure = least;
}

// In C, the function of a part copies what it reads into local variables.
ditto_status set_pressures(std::size_t first, std::size_t last, std::uint32_t, void *user)
{
    const cells c = *static_cast<cells *>(user);
    for (std::size_t i = first; i < last; i++)
        set_pressure(c.pressure[i], c.energy[i], c.volume[c.list[i]], c.cut, c.most, c.least);
    return DITTO_OK;
}

void measure_loops(ditto::replica self)
{
    constexpr std::size_t count = 1024;
    std::vector<double> pressures(count), energies(count), volumes(count, 1);
    std::vector<std::uint32_t> places(count);
    for (std::size_t i = 0; i < count; i++) {
        energies[i] = static_cast<double>(i % 3) - 1;
        places[i] = static_cast<std::uint32_t>(i * 7 % count);
    }
    double *pressure = pressures.data(), cut = 1e-7, most = 1e9, least = -1e3;
    const double *energy = energies.data(), *volume = volumes.data();
    const std::uint32_t *list = places.data();
    cells all = { pressure, energy, volume, list, cut, most, least };
    auto c = [&] {
        must(ditto_parallel_for(self.get(), set_pressures, &all, 0, count, 1, DITTO_SCHEDULE_STATIC));
    };
    compare(self, "loop, captures by value", c, [&] {
        self.parallel_for(0, count, [=](std::size_t first, std::size_t last) {
            for (std::size_t i = first; i < last; i++)
                set_pressure(pressure[i], energy[i], volume[list[i]], cut, most, least);
        });
    });
    compare(self, "loop, by reference", c, [&] {
        self.parallel_for(0, count, [&](std::size_t first, std::size_t last) {
            for (std::size_t i = first; i < last; i++)
                set_pressure(pressure[i], energy[i], volume[list[i]], cut, most, least);
        });
    });
}

} // namespace

int main(int argc, char **argv)
{
    static const command_row rows[] = {
        { nullptr, "REPLICAS", "how many replicas make the calls: 1 to 1024 (default: 2)" },
        {},
    };
    command_line line = command_line_of("[REPLICAS]", "Measures what the C++ face costs over the C calls.",
                                        rows, argc, argv);
    std::uint32_t replicas = 2;
    while (command_next(&line) >= 0)
        replicas = static_cast<std::uint32_t>(command_number(&line, 1, DITTO_MAX_REPLICAS));
    try {
        ditto::strategy strategy(replicas);
        strategy.run(measure);
        strategy.run(measure_loops);
        double quotient[101];
        ditto_replica_fn nothing = [](ditto_replica *, void *) { return DITTO_OK; };
        for (double &q : quotient) {
            double c = seconds([&] { must(ditto_strategy_run(strategy.get(), nothing, nullptr)); });
            q = seconds([&] { strategy.run([](ditto::replica) {}); }) / c;
        }
        std::sort(std::begin(quotient), std::end(quotient));
        std::printf("%-24s C++ / C %.3f\n", "run", quotient[50]);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
