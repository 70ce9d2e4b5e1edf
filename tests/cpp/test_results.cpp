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

static int train()
{
    int failures = 0;
    auto strategy = ditto::strategy::create(ditto::strategy::with(2));
    auto v = strategy->create_variable(std::vector<float>{ 1, 1 });
    auto optimizer = ditto::optimizer::create(ditto::sgd(0.5), *v);
    auto rows = ditto::dataset::from_range(0, 10);
    auto fails = [](ditto::row, ditto::new_row) { return ditto_fail(nullptr, 0, "no row"); };
    auto wrong = rows->map(fails)->batch(2);
    auto batches = rows->batch(4);
    auto steps = strategy->iterate(*batches);
    CHECK(optimizer && steps && wrong);
    auto status = strategy->run([&](ditto::replica self) -> ditto::result<void> {
        for (;;) {
            auto batch = self.next(*steps);
            if (!batch)
                return batch.failure();
            if (!*batch)
                return {};
            auto numbers = (*batch)->component<std::int64_t>(0);
            std::vector<float> gradient(2, static_cast<float>(numbers->size()));
            auto applied = self.apply(*optimizer, { ditto::tensor(gradient) });
            if (!applied)
                return applied;
        }
    });
    CHECK(status && v->read().value() == std::vector<float>(2, 1 - 0.5f * 10));
    auto of_wrong = strategy->iterate(*wrong);
    auto failed = strategy->run([&](ditto::replica self) -> ditto::result<void> {
        auto batch = self.next(*of_wrong);
        return batch ? ditto::result<void>() : batch.failure();
    });
    CHECK(!failed && std::strstr(failed.failure().what(), "no row") != nullptr);
    auto from_function = strategy->iterate_from_function(
        [](const ditto_input_context &) { return ditto::dataset::from_range(0, 10); });
    CHECK(!from_function && from_function.code() == DITTO_ERR_INVALID); /* not batched */
    CHECK(!ditto::dataset::from_range(0, 10)->shard(0, 0));
    auto even = [](ditto::row row) -> ditto::result<bool> {
        auto number = row.get<std::int64_t>(0);
        return number ? ditto::result<bool>((*number)[0] % 2 == 0) : number.failure();
    };
    auto floats = [](ditto::row row) -> ditto::result<bool> {
        auto number = row.get<float>(0);
        return number ? ditto::result<bool>(true) : number.failure();
    };
    int kept = 0;
    auto counts = [&](ditto::row) { kept++; };
    CHECK(rows->filter(even)->reduce(counts) && kept == 5);
    CHECK(!rows->filter(floats)->reduce(counts));
    CHECK(optimizer->destroy());
    return failures;
}

static int gather_in_groups(const ditto::strategy &strategy)
{
    int failures = 0;
    auto axes = strategy.mesh({ { "row", 1 }, { "column", 3 } });
    CHECK(axes && strategy.mesh({ { "row", 2 } }).code() == DITTO_ERR_RANGE);
    auto alone = strategy.run([&](ditto::replica self) -> ditto::result<void> {
        auto group = self.group((*axes)[0]);
        if (!group)
            return group.failure();
        ditto_reduce_options options = DITTO_REDUCE_OPTIONS_INIT;
        options.group = &*group;
        auto all = self.all_gather(self.id(), &options);
        return all ? *all == std::vector<std::uint32_t>{ self.id() }
                         ? ditto::result<void>()
                         : ditto::error(DITTO_ERR_USER, "another group")
                   : all.failure();
    });
    CHECK(alone);
    return failures;
}

int main()
{
    int failures = with_exceptions() + train();
    auto made = ditto::strategy::create(ditto::strategy::with(3));
    CHECK(made);
    ditto::strategy strategy = *std::move(made);
    auto status = strategy.run([&](ditto::replica self) -> ditto::result<void> {
        auto sum = self.all_reduce(self.id() + 1.0);
        if (!sum)
            return sum.failure();
        if (*sum != 6)
            return ditto::error(DITTO_ERR_USER, "another sum");
        auto indices = self.parallel_reduce(0, 9,
                                            [](std::size_t first, std::size_t last) { return last - first; });
        auto mean = self.parallel_reduce(
            0, 9, [](std::size_t, std::size_t) { return 1.0; }, DITTO_MEAN);
        if (!indices || *indices != 9 || mean.code() != DITTO_ERR_UNSUPPORTED)
            return ditto::error(DITTO_ERR_USER, "another reduction");
        return self.barrier();
    });
    CHECK(status && *status == DITTO_OK);
    auto failed = strategy.run([](ditto::replica self) -> ditto::result<void> {
        auto sum = self.all_reduce(1.0, DITTO_XOR);
        return sum ? ditto::result<void>() : sum.failure();
    });
    CHECK(!failed && failed.failure().status() == DITTO_ERR_UNSUPPORTED &&
          failed.code() == DITTO_ERR_UNSUPPORTED);
    failures += gather_in_groups(strategy);
    CHECK(!ditto::strategy::create(ditto::strategy::with(1000000)));
    auto v = strategy.create_variable(std::vector<int>{ 1, 2, 3 });
    CHECK(v && v->read() && v->read().value() == (std::vector<int>{ 1, 2, 3 }));
    CHECK(v->assign(std::vector<int>{ 1 }).code() == DITTO_ERR_SHAPE);
    CHECK(strategy.destroy() && v->assign(std::vector<int>{ 1, 2, 3 }).code() == DITTO_ERR_CONTEXT);
    CHECK(v->destroy());
    std::printf("%d failures\n", failures);
    return failures != 0;
}
