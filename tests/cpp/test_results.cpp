// tests/cpp/test_results.cpp - ditto.hpp in code without exceptions. Linked together with code that has them.
#include <ditto.hpp>

static_assert(!DITTO_CPP_THROWS);

#define CHECK(condition)                                                \
    do {                                                                \
        if (!(condition)) {                                             \
            std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            failures++;                                                 \
        }                                                               \
    } while (0)

int with_exceptions(); // test_results_other.cpp

int main()
{
    int failures = with_exceptions();
    auto made = ditto::strategy::create(ditto::strategy::with(3));
    CHECK(made);
    ditto::strategy strategy = *std::move(made);
    auto status = strategy.run([&](ditto::replica self) -> ditto::result<void> {
        auto sum = self.all_reduce(self.id() + 1.0);
        if (!sum)
            return sum.failure();
        if (*sum != 6)
            return ditto::error(DITTO_ERR_USER, "another sum");
        return self.barrier();
    });
    CHECK(status && *status == DITTO_OK);
    auto failed = strategy.run([](ditto::replica self) -> ditto::result<void> {
        auto sum = self.all_reduce(1.0, DITTO_XOR);
        return sum ? ditto::result<void>() : sum.failure();
    });
    CHECK(!failed && failed.failure().status() == DITTO_ERR_UNSUPPORTED &&
          failed.code() == DITTO_ERR_UNSUPPORTED);
    CHECK(!ditto::strategy::create(ditto::strategy::with(1000000)));
    auto v = strategy.create_variable(std::vector<int>{ 1, 2, 3 });
    CHECK(v && v->read() && v->read().value() == (std::vector<int>{ 1, 2, 3 }));
    CHECK(v->assign(std::vector<int>{ 1 }).code() == DITTO_ERR_SHAPE);
    CHECK(strategy.destroy() && v->assign(std::vector<int>{ 1, 2, 3 }).code() == DITTO_ERR_CONTEXT);
    CHECK(v->destroy());
    std::printf("%d failures\n", failures);
    return failures != 0;
}
