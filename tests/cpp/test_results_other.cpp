// tests/cpp/test_results_other.cpp - the part of test_results.cpp that has exceptions.
#include <ditto.hpp>

static_assert(DITTO_CPP_THROWS);

int with_exceptions();
int with_exceptions()
{
    try {
        ditto::strategy strategy(2);
        strategy.run([](ditto::replica self) { self.all_reduce(1.0, DITTO_XOR); });
    } catch (const ditto::error &e) {
        return e.status() != DITTO_ERR_UNSUPPORTED;
    }
    return 1;
}
