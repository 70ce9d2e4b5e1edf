// A program in C++ as a user writes it.
#include <cstdio>
#include <ditto.hpp>

int main()
{
    ditto::strategy strategy(2);
    strategy.run([](ditto::replica self) {
        double x = self.id() + 1.0, mean = self.all_reduce(x * x, DITTO_MEAN);
        if (self.id() == 0)
            std::printf("mean square over %u replicas: %g\n", self.size(), mean);
    });
}
