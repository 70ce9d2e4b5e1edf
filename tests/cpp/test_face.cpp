// tests/cpp/test_face.cpp - ditto.hpp: what it returns, what it throws, and what it refuses.
#include <ditto.hpp>

#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>

static int failures;

#define CHECK(condition)                                                \
    do {                                                                \
        if (!(condition)) {                                             \
            std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            failures++;                                                 \
        }                                                               \
    } while (0)

static const std::uint32_t counts[] = { 1, 2, 3, 8 };

// -- types --

static_assert(ditto::dtype_of<float>() == DITTO_F32 && ditto::dtype_of<double>() == DITTO_F64);
static_assert(ditto::dtype_of<int>() == DITTO_I32 && ditto::dtype_of<unsigned long long>() == DITTO_U64);
static_assert(ditto::dtype_of<long>() == DITTO_I64 && ditto::dtype_of<signed char>() == DITTO_I8);
static_assert(ditto::dtype_of<std::complex<float>>() == DITTO_C64 && ditto::dtype_of<bool>() == DITTO_BOOL);
static_assert(ditto::dtype_of<ditto::bfloat16>() == DITTO_BF16);
static_assert(!ditto::is_element<char> && !ditto::is_element<std::string> && !ditto::is_element<long double>);
static_assert(!std::is_copy_constructible_v<ditto::strategy> && std::is_move_assignable_v<ditto::strategy>);
static_assert(!std::is_copy_constructible_v<ditto::variable<float>>);

// -- collectives --

// What a replica computes with: as one of all n, or with its rank as a member of a group.
struct seat {
    ditto::replica self;
    std::uint32_t n, id;
    const ditto_reduce_options *options;
};

// Replica i gives k + 1 elements to replica k.
static void move_parts(const seat &s)
{
    auto [self, n, id, o] = s;
    std::vector<std::uint32_t> src(2 * n), dst(2 * n);
    for (std::uint32_t k = 0; k < 2 * n; k++)
        src[k] = 1000 * id + k;
    self.all_to_all(src, dst, o);
    CHECK(dst[0] == 2 * id && dst[2 * n - 1] == 1000 * (n - 1) + 2 * id + 1);
    self.all_to_all(dst, dst, o); // in place, and back again
    CHECK(dst == src);
    if (o == nullptr) { /* 2 rows each become a column of 2 n rows */
        ditto::owned_tensor columns = self.all_to_all_tensor(ditto::tensor(src, { 2, n }), 1, 0);
        CHECK(columns.get().shape[0] == 2 * n && columns.get().shape[1] == 1);
        CHECK(columns.elements<std::uint32_t>()[2 * n - 1] == 1000 * (n - 1) + n + id);
        columns = self.all_to_all_tensor(columns.get(), 0, 1); // and back
        CHECK(columns.get().shape[0] == 2 &&
              std::equal(src.begin(), src.end(), columns.elements<std::uint32_t>().begin()));
        ditto::owned_tensor rows = self.all_gather_tensor(ditto::tensor(src, { 2, n }), 1);
        CHECK(rows.get().shape[1] == n * n &&
              rows.elements<std::uint32_t>()[n * n - 1] == 1000 * (n - 1) + n - 1);
    }
    std::vector<std::size_t> gives(n), takes(n, id + 1), counts(n);
    for (std::uint32_t k = 0; k < n; k++)
        counts[k] = gives[k] = k + 1;
    std::vector<std::uint32_t> more(n * (n + 1) / 2, id), received(n * (id + 1));
    self.all_to_all(more, gives, received, takes, o);
    CHECK(received[0] == 0 && received.back() == n - 1);
    std::vector<std::uint32_t> own(id + 1, id), all(id == n - 1 ? more.size() : 0);
    self.gather_to_root(own, all, n - 1, counts, o);
    CHECK(id != n - 1 || (all[0] == 0 && all[1 % all.size()] == 1 % n && all.back() == n - 1));
    own.assign(id + 1, 99);
    self.scatter_from_root(all, own, n - 1, counts, o);
    CHECK(own[0] == id && own.back() == id);
    std::vector<std::uint32_t> two(2, id), each(id == 0 ? 2 * n : 0);
    self.gather_to_root(two, each, 0, {}, o);
    CHECK(id != 0 || each.back() == n - 1);
    self.scatter_from_root(each, two, 0, {}, o);
    CHECK(two[1] == id);
}

static void take_seat(const seat &s)
{
    auto [self, n, id, o] = s;
    double sum = n * (n + 1) / 2.0;
    CHECK(self.all_reduce(id + 1.0, DITTO_SUM, o) == sum);
    CHECK(self.all_reduce(id, DITTO_MAX, o) == n - 1);
    CHECK(self.broadcast(id + 7, n - 1, o) == n + 6);
    std::vector<double> in(100, id + 1.0), out(100);
    self.all_reduce(in, out, DITTO_SUM, o);
    CHECK(out[0] == sum && out[99] == sum);
    self.all_reduce(in, DITTO_MEAN, o);
    CHECK(in[50] == sum / n);
    float array[3] = { 1, 2, 3 };
    self.all_reduce(array, DITTO_SUM, o);
    CHECK(array[2] == 3.0f * static_cast<float>(n));
    std::array<int, 4> small{ 1, 2, 3, static_cast<int>(id) };
    self.broadcast(small, 0, o);
    CHECK(small[3] == 0);
    std::vector<long> tail{ 1, 2, 3, 4 };
    self.all_reduce(ditto::elements(tail.begin() + 2, tail.end()), DITTO_SUM, o);
    CHECK(tail[1] == 2 && tail[3] == 4L * n);
    std::vector<int> scattered(2 * n, 1), own(2);
    self.reduce_scatter(scattered, own, DITTO_SUM, o);
    CHECK(own[0] == static_cast<int>(n) && own[1] == static_cast<int>(n));
    std::vector<std::uint32_t> mine{ id, id }, all(2 * n);
    self.all_gather(mine, all, o);
    CHECK(all[0] == 0 && all[2 * n - 1] == n - 1);
    CHECK(self.all_gather(id, o).at(n - 1) == n - 1);
    move_parts(s);
    CHECK(self.block_dot(std::vector<double>(5, 2.0), std::vector<double>(5, 3.0), o) == 30.0 * n);
    CHECK(self.scan(id + 1, DITTO_SUM, o) == (id + 1) * (id + 2) / 2);
    CHECK(self.scan_exclusive(id + 1, 7, DITTO_SUM, o) == (id == 0 ? 7 : id * (id + 1) / 2));
    std::vector<double> ones(3, 1.0), places(3, -1.0);
    self.scan_exclusive(ones, places, DITTO_SUM, o);
    CHECK(places[2] == (id == 0 ? -1.0 : id));
    self.scan(ones, places, DITTO_MAX, o);
    CHECK(places[0] == 1.0);
    self.scan(ones, DITTO_SUM, o);
    CHECK(ones[2] == id + 1.0);
    ditto_reduce_options labelled = DITTO_REDUCE_OPTIONS_INIT;
    labelled.group = o != nullptr ? o->group : nullptr;
    labelled.label = "last";
    CHECK(self.all_gather(id, &labelled).at(n - 1) == n - 1);
    CHECK(self.block_dot(mine, mine, &labelled) == (n - 1) * n * (2 * n - 1) / 3);
    std::vector<double> at_root(5, 1.0);
    self.reduce(at_root, n - 1, DITTO_SUM, o);
    CHECK(id != n - 1 || at_root[4] == n);
    std::vector<std::complex<double>> complex(3, { 1, id + 0.0 });
    self.all_reduce(complex, DITTO_SUM, o);
    CHECK(complex[0].real() == n && complex[0].imag() == sum - n);
    std::vector<double> half(1000 / n * n, 2.0), part(1000 / n);
    self.reduce_scatter_start(half, part, DITTO_SUM, o).wait();
    std::vector<double> gathered(part.size() * n);
    self.all_gather_start(part, gathered, o).wait();
    CHECK(gathered.back() == 2.0 * n);
    self.all_to_all_start(half, half, o).wait(); // in place
    CHECK(half.back() == 2.0);
    self.barrier(o);
}

static void collectives(ditto::replica self)
{
    take_seat({ self, self.size(), self.id(), nullptr });
}

// The order of the function is that of the replicas.
struct range {
    std::uint32_t first, last;
};
static void functions(ditto::replica self)
{
    std::vector<range> r(10, { self.id(), self.id() });
    self.all_reduce_with(r, [](const range &a, const range &b) {
        CHECK(a.last + 1 == b.first);
        return range{ a.first, b.last };
    });
    CHECK(r[9].first == 0 && r[9].last == self.size() - 1);
    auto join = [](const range &a, const range &b) {
        CHECK(a.last + 1 == b.first);
        return range{ a.first, b.last };
    };
    std::vector<range> inclusive(10, { self.id(), self.id() }), exclusive = inclusive;
    self.scan_with(inclusive, join);
    CHECK(inclusive[9].first == 0 && inclusive[9].last == self.id());
    self.scan_exclusive_with(exclusive, join);
    CHECK(exclusive[9].first == 0 && exclusive[9].last == (self.id() == 0 ? 0 : self.id() - 1));
    std::vector<double> v(10, 1.0);
    self.all_reduce_through(v, [&](double *first, double *last) {
        CHECK(self.id() == 0 && last - first == 10);
        for (; first < last; first++)
            *first *= 3;
    });
    CHECK(v[0] == 3.0 * self.size() && v[9] == 3.0 * self.size());
    CHECK(self.block_sum<double>(2000, [](std::size_t i) { return i + 0.5; }) == 2e6 * self.size());
    const std::vector<float> matrix(6, 2.0f);
    int array[] = { 1, 2, 3 };
    CHECK(ditto::tensor(matrix, { 2, 3 }).shape[1] == 3 && ditto::tensor(matrix).dtype == DITTO_F32);
    ditto::span whole(matrix);
    ditto::span some(array, 2), all(array);
    CHECK(ditto::tensor(array).shape[0] == 3 && whole.size() == 6 && some.size() == 2 && all[2] == 3);
    std::vector<int> touched(1000);
    self.parallel_for(
        0, touched.size(),
        [&](std::size_t first, std::size_t last) {
            for (std::size_t i = first; i < last; i++)
                touched[i]++;
        },
        10);
    CHECK(std::count(touched.begin(), touched.end(), 1) == 1000);
    std::uint32_t n = self.size();
    int calls = 0;
    self.merge_call([&](ditto::strategy_view strategy) {
        CHECK(strategy.size() == n);
        calls++;
    });
    CHECK(calls == (self.id() == 0 ? 1 : 0));
}

// -- loops --

static std::vector<int> *visited;
static void visit(std::size_t first, std::size_t last)
{
    for (std::size_t i = first; i < last; i++)
        (*visited)[i]++;
}

// What the loop has called last.
static std::atomic<const void *> called_at;
struct small_body {
    int *sums;
    void operator()(std::size_t first, std::size_t last, std::uint32_t device) const
    {
        sums[device] += static_cast<int>(last - first);
        called_at = this;
    }
};
struct large_body {
    char bytes[4096];
    void operator()(std::size_t, std::size_t) const
    {
        called_at = this;
    }
};
struct changing_body {
    std::atomic<std::size_t> *sum;
    const void *last;
    void operator()(std::size_t first, std::size_t end)
    {
        *sum += end - first;
        called_at = last = this;
    }
};

// A copy of it loses the number of calls.
struct counting_body {
    mutable int calls;
    void operator()(std::size_t, std::size_t) const
    {
        calls++;
    }
    double operator()(std::size_t) const
    {
        calls++;
        return 1;
    }
    int operator()(const int &left, const int &right) const
    {
        calls++;
        return left + right;
    }
};
// A copy can be made only explicitly, or from an object that is const.
struct explicit_body {
    explicit_body() = default;
    explicit explicit_body(const explicit_body &) = default;
    void operator()(std::size_t, std::size_t) const
    {
        called_at = this;
    }
};
struct greedy_body {
    greedy_body() = default;
    greedy_body(const greedy_body &) = default;
    template <class T> greedy_body(T &) = delete;
    void operator()(std::size_t, std::size_t) const
    {
        called_at = this;
    }
};
// Its calls differ in what they are.
struct two_bodies {
    bool without_device;
    void operator()(std::size_t, std::size_t)
    {
        without_device = true;
    }
    void operator()(std::size_t, std::size_t, std::uint32_t) const {}
};
struct two_results {
    int operator()(std::size_t, std::size_t)
    {
        return 1;
    }
    double operator()(std::size_t, std::size_t) const
    {
        return 1.5;
    }
};

static void copies_of_functions(ditto::replica self)
{
    std::vector<int> touched(1000);
    auto count = [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; i++)
            touched[i]++;
    };
    // The body is valid for two arguments only.
    self.parallel_for(0, touched.size(), [&](auto... bounds) { count(bounds...); });
    CHECK(std::count(touched.begin(), touched.end(), 1) == 1000);
    explicit_body in_place;
    self.parallel_for(0, 10, in_place, 10);
    CHECK(called_at == &in_place);
    greedy_body copied;
    self.parallel_for(0, 10, copied, 10);
    CHECK(called_at != &copied);
    two_bodies two{ false };
    self.parallel_for(0, 10, two, 10);
    CHECK(two.without_device);
    CHECK(self.parallel_reduce(0, 10, two_results{}, DITTO_SUM, 10) == 1.5);

    counting_body counting{ 0 };
    self.parallel_for(0, 10, counting, 10);
    CHECK(counting.calls == 0);
    self.parallel_for(0, 10, std::ref(counting), 10);
    CHECK(counting.calls == 1);
    counting.calls = 0;
    CHECK(self.block_sum<double>(10, std::ref(counting)) == 10 * self.size());
    CHECK(counting.calls >= 10);
    auto part = [calls = 0](std::size_t, std::size_t) mutable { return ++calls; };
    CHECK(self.parallel_reduce(0, 10, std::ref(part), DITTO_SUM, 10) == 1);
    CHECK(self.parallel_reduce(0, 10, std::ref(part), DITTO_SUM, 10) == 2);
}

static void loops(ditto::replica self)
{
    std::uint32_t devices = self.num_logical_devices();
    std::vector<int> sums(devices), touched(1000);
    small_body small{ sums.data() };
    self.parallel_for(0, 1000, small);
    CHECK(std::accumulate(sums.begin(), sums.end(), 0) == 1000 && called_at != &small);
    CHECK(devices == 1 || sums[devices - 1] > 0);
    // A callable that is large, or may change, is called in place.
    const large_body large{};
    self.parallel_for(0, 1000, large);
    CHECK(called_at == &large);
    std::atomic<std::size_t> sum{ 0 };
    changing_body changing{ &sum, nullptr };
    self.parallel_for(0, 1000, changing, 1000);
    CHECK(sum == 1000 && called_at == &changing && changing.last == &changing);
    std::function<void(std::size_t, std::size_t)> stored = [&](std::size_t first, std::size_t last) {
        sum += last - first;
    };
    self.parallel_for(0, 1000, stored);
    CHECK(sum == 2000);
    std::size_t turns = 0;
    self.parallel_for(
        0, 10, [turns, &sum](std::size_t, std::size_t) mutable { sum = ++turns; }, 10);
    CHECK(sum == 1);
    visited = &touched;
    self.parallel_for(0, touched.size(), visit);
    self.parallel_for(0, touched.size(), &visit);
    CHECK(std::count(touched.begin(), touched.end(), 2) == 1000);

    auto numbers = [](std::size_t first, std::size_t last) {
        double part = 0;
        for (std::size_t i = first; i < last; i++)
            part += static_cast<double>(i);
        return part;
    };
    CHECK(self.parallel_reduce(0, 1001, numbers) == 500500.0);
    CHECK(self.parallel_reduce(0, 1001, numbers, DITTO_SUM, 100) == 500500.0);
    CHECK(self.parallel_reduce(7, 7, numbers) == 0.0);
    CHECK(self.parallel_reduce(
              0, 1000, [](std::size_t, std::size_t last) { return last; }, DITTO_MAX) == 1000);
    CHECK(self.parallel_reduce(
        0, 1000, [=](std::size_t, std::size_t, std::uint32_t device) { return device < devices; },
        DITTO_AND));

    auto current = ditto::current_replica();
    CHECK(current && current->get() == self.get() && current->id() == self.id());
    std::atomic<int> replicas{ 0 };
    self.parallel_for(0, devices,
                      [&](std::size_t, std::size_t) { replicas += ditto::current_replica() ? 1 : 0; });
    CHECK(replicas == 0);
    self.merge_call([](ditto::strategy_view) { CHECK(!ditto::current_replica()); });
}

static void play_loops()
{
    auto outside = ditto::current_replica();
    CHECK(outside && outside->id() == 0 && outside->size() == 1);
    ditto_topology *topology = nullptr;
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    ditto::call(ditto_topology_create, nullptr, &topology);
    ditto::call(ditto_topology_count, topology, &counts);
    ditto::call(ditto_topology_destroy, topology);
    auto options = ditto::strategy::with(1);
    ditto::strategy(options).run(loops);
    ditto::strategy(options).run(copies_of_functions);
    ditto::strategy(2).run([](ditto::replica self) {
        counting_body counting{ 0 };
        int one[] = { 1 };
        self.all_reduce_with(one, std::ref(counting));
        CHECK(one[0] == 2 && self.all_reduce(counting.calls) > 0);
    });
    options.pus_per_replica = std::min(counts.pus, 4u);
    ditto::strategy wide(options);
    wide.run(loops);
    wide.run([&](ditto::replica self) { CHECK(self.num_logical_devices() == options.pus_per_replica); });
}

static void started(ditto::replica self)
{
    std::vector<double> in(1000, 1.0), out(1000);
    ditto::pending a = self.all_reduce_start(in, out);
    std::vector<double> nothing;
    ditto::pending barrier = self.all_reduce_start(nothing, nothing);
    barrier.wait();
    while (!a.test())
        ;
    CHECK(out[999] == self.size());
}

static void borders(ditto::replica self)
{
    std::uint32_t n = self.size(), left = (self.id() + n - 1) % n, right = (self.id() + 1) % n;
    std::vector<float> to_left(3, static_cast<float>(self.id()) + 0.5f),
        to_right(3, static_cast<float>(self.id()) + 0.25f), from_left(3), from_right(3);
    const ditto_exchange_part parts[] = { ditto::replica::part(left, left, to_left, from_left),
                                          ditto::replica::part(right, self.id(), to_right, from_right) };
    self.exchange(parts);
    CHECK(from_left[0] == static_cast<float>(left) + 0.25f &&
          from_right[2] == static_cast<float>(right) + 0.5f);
}

static void memory(ditto::replica self)
{
    ditto::arena arena = self.arena();
    std::pmr::vector<double> v(1000, 1.0, &arena);
    v.resize(5000, 2.0);
    self.all_reduce(v);
    CHECK(v[0] == self.size() && v[4999] == 2.0 * self.size());
}

static void play_collectives()
{
    for (std::uint32_t n : counts) {
        ditto::strategy strategy(n);
        CHECK(strategy.size() == n);
        for (auto function : { collectives, functions, started, memory })
            strategy.run(function);
        if (n > 2)
            strategy.run(borders);
    }
}

// -- variables and handles --

static void variables()
{
    ditto::strategy strategy(3);
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    options.aggregation = DITTO_AGGREGATE_SUM;
    auto v = strategy.create_variable(std::vector<float>{ 1, 2, 3, 4, 5, 6 }, { 2, 3 }, &options);
    CHECK(v.size() == 6);
    strategy.run([&](ditto::replica self) {
        std::vector<float> delta(6, 1.0f);
        self.assign_add(v, delta);
        CHECK(self.read(v)[5] == 9.0f);
    });
    CHECK(v.read()[0] == 4.0f);
    v.assign(std::vector<float>(6, 0.5f));
    CHECK(v.read() == std::vector<float>(6, 0.5f));
    ditto::variable<float> moved = std::move(v);
    CHECK(!v && moved && moved.read()[1] == 0.5f);
    moved.destroy();
    CHECK(!moved);
    CHECK(strategy.describe().find("3 replicas") != std::string::npos);
    strategy.interrupt(); // there is no run
    CHECK(strategy.run([](ditto::replica) { return DITTO_END_OF_INPUT; }) == DITTO_END_OF_INPUT);
    // Over several hosts a strategy is destroyed, and this is returned. It must not be destroyed twice.
    CHECK(ditto::detail::is_gone_after<ditto_strategy>(DITTO_ERR_LOST));
    CHECK(ditto::detail::is_gone_after<ditto_strategy>(DITTO_ERR_DIVERGED));
    CHECK(!ditto::detail::is_gone_after<ditto_strategy>(DITTO_ERR_BUSY));
    ditto_queue_options queue_options = DITTO_QUEUE_OPTIONS_INIT;
    queue_options.num_slots = 4;
    queue_options.num_producers = 1;
    auto queue = ditto::make<ditto::queue>(ditto_queue_create, &queue_options);
    CHECK(queue.get() != nullptr);
}

// -- errors --

template <class Exception, class F> static std::string thrown(F &&function)
{
    try {
        function();
    } catch (const Exception &e) {
        return e.what();
    } catch (...) {
        return "another exception";
    }
    return "no exception";
}
static bool has(const std::string &text, const char *part)
{
    if (text.find(part) == std::string::npos)
        std::printf("\"%s\" is not in \"%s\"\n", part, text.c_str());
    return text.find(part) != std::string::npos;
}

struct unusual {
    int code;
};

static void errors(std::uint32_t n)
{
    ditto::strategy strategy(n);
    std::uint32_t last = n - 1;
    // An exception of each kind, on the first, the last, and all replicas.
    for (std::uint32_t who : { 0u, last, n })
        for (int i = 0; i < 3; i++) {
            auto fails = [&](ditto::replica self) {
                if (who == n || self.id() == who)
                    throw std::out_of_range("as it should");
                self.barrier();
            };
            CHECK(has(thrown<std::out_of_range>([&] { strategy.run(fails); }), "as it should"));
            strategy.run(collectives);
        }
    int code = 0;
    try {
        strategy.run([&](ditto::replica self) {
            if (self.id() == last)
                throw unusual{ 7 };
            self.barrier();
        });
    } catch (const unusual &u) {
        code = u.code;
    }
    CHECK(code == 7);
    // Errors of ditto, whole.
    try {
        strategy.run([&](ditto::replica self) {
            std::vector<double> v(10);
            self.all_reduce(v, DITTO_XOR);
        });
        CHECK(!"no exception");
    } catch (const ditto::error &e) {
        CHECK(e.status() == DITTO_ERR_UNSUPPORTED && e.code() == DITTO_ERR_UNSUPPORTED);
        CHECK(std::strcmp(e.record().function, "ditto_all_reduce") == 0 && e.record().replica >= 0);
    }
    auto unequal = [](ditto::replica self) {
        std::vector<double> in(10), out(9);
        self.all_reduce(in, out);
    };
    CHECK(has(thrown<ditto::error>([&] { strategy.run(unequal); }), "sizes of the two ranges"));
    try {
        strategy.run(unequal);
    } catch (const ditto::error &e) {
        CHECK(std::strcmp(e.record().function, "ditto_all_reduce") == 0 && e.record().replica >= 0);
    }
    auto wrong_counts = [](ditto::replica self) {
        std::vector<double> v(10);
        std::vector<std::size_t> counts(self.size(), 11);
        self.all_to_all(v, counts, v, counts);
    };
    CHECK(
        has(thrown<ditto::error>([&] { strategy.run(wrong_counts); }), "the counts, do not belong together"));
    // Numbers of replicas that no std::uint32_t holds.
    CHECK(has(thrown<ditto::error>([] { ditto::strategy(-1); }), "-1 replicas: a strategy has at most 1024"));
    CHECK(has(thrown<ditto::error>([] { ditto::strategy(1LL << 33); }), "8589934592 replicas"));
    if (n > 1)
        CHECK(has(thrown<ditto::error>([&] {
                      strategy.run([](ditto::replica self) {
                          std::vector<int> v(self.id() == 0 ? 3 : 4);
                          self.all_reduce(v);
                      });
                  }),
                  "4 x i32"));
    // A function of the user that handles an error goes on with its own.
    CHECK(has(thrown<std::runtime_error>([&] {
                  strategy.run([](ditto::replica self) {
                      try {
                          self.all_reduce(1.0, DITTO_AND);
                      } catch (const ditto::error &e) {
                          throw std::runtime_error(std::string("handled: ") + e.what());
                      }
                  });
              }),
              "handled: "));
    // In the other functions.
    auto combine = [](ditto::replica self) {
        std::vector<double> v(10, 1.0);
        self.all_reduce_with(v, [](double, double) -> double { throw std::length_error("in combine"); });
    };
    if (n > 1)
        CHECK(has(thrown<std::length_error>([&] { strategy.run(combine); }), "in combine"));
    auto through = [](ditto::replica self) {
        double x[1] = { 1 };
        self.all_reduce_through(x, [](double *, double *) { throw std::length_error("on the way"); });
    };
    CHECK(has(thrown<std::length_error>([&] { strategy.run(through); }), "on the way"));
    auto sum = [](ditto::replica self) {
        return self.block_sum<float>(10, [](std::size_t) -> float { throw std::length_error("in a sum"); });
    };
    CHECK(has(thrown<std::length_error>([&] { strategy.run([&](ditto::replica self) { sum(self); }); }),
              "in a sum"));
    auto loop = [](ditto::replica self) {
        self.parallel_for(0, 10, [](std::size_t, std::size_t) { throw std::length_error("in a loop"); });
    };
    CHECK(has(thrown<std::length_error>([&] { strategy.run(loop); }), "in a loop"));
    auto reduce = [](ditto::replica self) {
        self.parallel_reduce(0, 10, [](std::size_t first, std::size_t) -> double {
            if (first > 0)
                throw std::length_error("in a reduction");
            return 0;
        });
    };
    CHECK(has(thrown<std::length_error>([&] { strategy.run(reduce); }), "in a reduction"));
    auto mean = [](ditto::replica self) {
        self.parallel_reduce(
            0, 10, [](std::size_t, std::size_t) { return 1.0; }, DITTO_MEAN);
    };
    CHECK(has(thrown<ditto::error>([&] { strategy.run(mean); }), "MEAN"));
    auto merge = [](ditto::replica self) {
        self.merge_call([](ditto::strategy_view) { throw std::length_error("in a merge function"); });
    };
    CHECK(has(thrown<std::length_error>([&] { strategy.run(merge); }), "in a merge function"));
    // Started operations that an exception leaves behind.
    auto leaves = [&](ditto::replica self) {
        std::vector<double> in(100000), out(100000);
        auto pending = self.all_reduce_start(in, out);
        if (self.id() == last)
            throw std::out_of_range("left");
        pending.wait();
    };
    for (int i = 0; i < 20; i++)
        CHECK(has(thrown<std::out_of_range>([&] { strategy.run(leaves); }), "left"));
    auto forgets = [](ditto::replica self) {
        std::vector<double> in(10), out(10);
        auto pending = self.all_reduce_start(in, out);
    };
    CHECK(has(thrown<ditto::error>([&] { strategy.run(forgets); }), "left before it was waited for"));
    auto swaps = [&](ditto::replica self) {
        ditto_reduce_options options = DITTO_REDUCE_OPTIONS_INIT;
        options.label = self.id() == last ? "accuracy" : "loss";
        self.all_reduce(1.0, DITTO_MEAN, &options);
    };
    if (n > 1)
        CHECK(has(thrown<ditto::error>([&] { strategy.run(swaps); }), "ditto_all_reduce \"accuracy\" #1"));
    strategy.run(collectives);
}

// -- groups --

// All collectives in the group of a replica along each axis.
static void groups_of_a_mesh()
{
    ditto::strategy strategy(6);
    auto axes = strategy.mesh({ { "data", 2 }, { "tensor", 3 } });
    CHECK(strategy.describe().find("(\"tensor\"): 2 groups of at most 3") != std::string::npos);
    strategy.run([&](ditto::replica self) {
        for (auto &axis : axes) {
            ditto_group group = self.group(axis);
            bool is_tensor = &axis == &axes[1];
            CHECK(group.size == (is_tensor ? 3 : 2));
            CHECK(group.rank == (is_tensor ? self.id() % 3 : self.id() / 3));
            CHECK(group.replicas[group.rank] == self.id());
            ditto_reduce_options options = DITTO_REDUCE_OPTIONS_INIT;
            options.group = &group;
            take_seat({ self, group.size, group.rank, &options });
        }
    });
    CHECK(has(thrown<ditto::error>([&] {
                  strategy.mesh({ { "data", 2 }, { "tensor", 4 } });
              }),
              "multiply to 8, but the strategy has 6 replicas"));
    axes[0].destroy();
    CHECK(strategy.describe().find("\"data\"") == std::string::npos);
    CHECK(has(
        thrown<ditto::error>([&] { strategy.run([&](ditto::replica self) { (void)self.group(axes[0]); }); }),
        "grouping is NULL"));
}

// Calls of a replica that is in no group, which the C functions refuse whatever the sizes are.
static void replicas_without_a_group()
{
    ditto::strategy strategy(3);
    const std::vector<std::uint32_t> colors{ 5, DITTO_NO_COLOR, 5 }, keys{ 1, 0, 0 };
    ditto::grouping pair = strategy.split(colors, keys), others = strategy.split(colors);
    others = std::move(pair);
    CHECK(!pair && others);
    using call = void (*)(ditto::replica, std::vector<int> &, const ditto_reduce_options *);
    static const call calls[] = {
        [](ditto::replica self, std::vector<int> &v, const ditto_reduce_options *o) {
            self.all_gather(v, v, o);
        },
        [](ditto::replica self, std::vector<int> &, const ditto_reduce_options *o) {
            (void)self.all_gather(1, o);
        },
        [](ditto::replica self, std::vector<int> &v, const ditto_reduce_options *o) {
            self.reduce_scatter(v, v, DITTO_SUM, o);
        },
        [](ditto::replica self, std::vector<int> &v, const ditto_reduce_options *o) {
            self.all_to_all(v, v, o);
        },
        [](ditto::replica self, std::vector<int> &v, const ditto_reduce_options *o) {
            self.all_to_all_start(v, v, o).wait();
        },
        [](ditto::replica self, std::vector<int> &v, const ditto_reduce_options *o) {
            const std::size_t counts[] = { 7 };
            self.all_to_all(v, counts, v, counts, o);
        },
        [](ditto::replica self, std::vector<int> &v, const ditto_reduce_options *o) {
            self.gather_to_root(v, v, 0, {}, o);
        },
    };
    for (call function : calls)
        CHECK(has(thrown<ditto::error>([&] {
                      strategy.run([&](ditto::replica self) {
                          ditto_group group = self.group(others);
                          ditto_reduce_options options = DITTO_REDUCE_OPTIONS_INIT;
                          options.group = &group;
                          std::vector<int> v(5);
                          if (group.size == 0)
                              function(self, v, &options);
                          else
                              CHECK(group.rank == (self.id() == 0 ? 1 : 0));
                      });
                  }),
                  "the replica is in no group of its grouping"));
    CHECK(has(thrown<ditto::error>([&] {
                  (void)strategy.split(colors, { keys.data(), 2 });
              }),
              "the keys are not as many as the colors: 2 and 3"));
}

// -- objects and threads --

static void bad_input()
{
    CHECK(has(thrown<ditto::error>([] { ditto::strategy(1000000u); }), "1000000"));
    ditto::strategy strategy(2);
    auto v = strategy.create_variable(std::vector<float>(4));
    CHECK(has(thrown<ditto::error>([&] { v.assign(std::vector<float>(3)); }), "bytes"));
    auto too_large = [&] { strategy.create_variable(std::vector<double>(4), { 1000, 1000 }); };
    CHECK(has(thrown<ditto::error>(too_large), "as many elements"));
    CHECK(has(thrown<ditto::error>([&] {
                  strategy.run([&](ditto::replica self) {
                      std::vector<float> three(3);
                      self.assign(v, three);
                  });
              }),
              "as many"));
    // A strategy that is in use, and objects after the end of their strategy.
    CHECK(has(thrown<ditto::error>([&] {
                  strategy.run([&](ditto::replica self) {
                      if (self.id() == 0)
                          strategy.destroy();
                  });
              }),
              "cross-replica context"));
    CHECK(strategy.get() != nullptr);
    strategy.destroy();
    CHECK(strategy.get() == nullptr);
    CHECK(has(thrown<ditto::error>([&] { v.read(); }), "destroyed"));
    CHECK(has(thrown<ditto::error>([&] { strategy.run([](ditto::replica) {}); }), "strategy"));
    v.destroy();
    std::error_code code = DITTO_ERR_TIMED_OUT;
    CHECK(std::string(code.category().name()) == "ditto" && !code.message().empty());
}

// Threads with strategies of their own.
static void threads()
{
    std::vector<std::thread> all;
    for (int i = 0; i < 3; i++)
        all.emplace_back([] {
            ditto::strategy strategy(2);
            for (int k = 0; k < 20; k++)
                CHECK(has(thrown<std::out_of_range>([&] {
                              strategy.run([](ditto::replica self) {
                                  if (self.id() == 1)
                                      throw std::out_of_range("of this thread");
                                  self.barrier();
                              });
                          }),
                          "of this thread"));
        });
    for (auto &thread : all)
        thread.join();
}

int main()
{
    play_collectives();
    groups_of_a_mesh();
    replicas_without_a_group();
    play_loops();
    variables();
    for (std::uint32_t n : counts)
        errors(n);
    bad_input();
    threads();
    std::printf("%d failures\n", failures);
    return failures != 0;
}
