// tests/cpp/test_training.cpp - datasets, optimizers, checkpoints and workers of the C++ headers: what they
// return, what they throw, and what they refuse.
#include <atomic>
#include <ditto.hpp>
#include <ditto/checkpoint.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>

static int failures;

#define CHECK(condition)                                                \
    do {                                                                \
        if (!(condition)) {                                             \
            std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            failures++;                                                 \
        }                                                               \
    } while (0)

static const std::uint32_t counts[] = { 1, 2, 3, 8 };

template <class Exception, class F> static std::string thrown(F &&function)
{
    try {
        function();
    } catch (const Exception &e) {
        return e.what();
    } catch (const std::exception &e) {
        return std::string("another exception: ") + e.what();
    }
    return "no exception";
}

static bool has(const std::string &text, const char *part)
{
    if (text.find(part) == std::string::npos)
        std::printf("\"%s\" is not in \"%s\"\n", part, text.c_str());
    return text.find(part) != std::string::npos;
}

static const std::filesystem::path folder = std::filesystem::temp_directory_path() / "ditto_cpp_training";

static std::string write_file(const char *name, const std::string &contents)
{
    std::string path = (folder / name).string();
    std::ofstream(path, std::ios::binary) << contents;
    return path;
}

// The first component of all rows, in order.
template <class T> static std::vector<T> rows_of(const ditto::dataset &rows)
{
    std::vector<T> all;
    rows.reduce([&](ditto::row row) { all.push_back(row.get<T>(0)[0]); });
    return all;
}

using numbers = std::vector<std::int64_t>;

// -- datasets --

static void transformations()
{
    auto ten = ditto::dataset::from_range(0, 10);
    CHECK(rows_of<std::int64_t>(ten).size() == 10);
    CHECK(rows_of<std::int64_t>(ten.skip(2).take(3)) == (numbers{ 2, 3, 4 }));
    CHECK(rows_of<std::int64_t>(ten.shard(4, 1)) == (numbers{ 1, 5, 9 }));
    CHECK(rows_of<std::int64_t>(ten.take(2).repeat(2)) == (numbers{ 0, 1, 0, 1 }));
    auto shuffled = rows_of<std::int64_t>(ten.shuffle(7));
    CHECK(shuffled != rows_of<std::int64_t>(ten));
    CHECK(std::accumulate(shuffled.begin(), shuffled.end(), std::int64_t(0)) == 45);
    CHECK(shuffled == rows_of<std::int64_t>(ten.shuffle(7, 0)));
    auto is_even = [](ditto::row row) { return row.get<std::int64_t>(0)[0] % 2 == 0; };
    CHECK(rows_of<std::int64_t>(ten.filter(is_even)) == (numbers{ 0, 2, 4, 6, 8 }));
    auto square = [](ditto::row in, ditto::new_row out) {
        auto x = static_cast<double>(in.get<std::int64_t>(0)[0]);
        out.get<double>(0)[0] = x * x;
        out.get<double>(0)[1] = -x;
    };
    auto squares = ten.map(square, { ditto::component<double>({ 2 }) });
    CHECK(squares.spec().component[0].dtype == DITTO_F64 && squares.spec().component[0].shape[0] == 2);
    CHECK(rows_of<double>(squares)[9] == 81.0);
    auto noise = [](ditto::row, ditto::new_row out, ditto_random *random) {
        std::uint64_t below = 0;
        ditto_random_below(random, 1000, &below, 1);
        out.get<std::int64_t>(0)[0] = static_cast<std::int64_t>(below);
    };
    CHECK(rows_of<std::int64_t>(ten.map(noise)) == rows_of<std::int64_t>(ten.map(noise)));
    auto more = ditto::dataset::from_range(100, 110);
    CHECK(rows_of<std::int64_t>(ditto::concatenate({ ten, more })).back() == 109);
    CHECK(rows_of<std::int64_t>(ditto::interleave({ ten, more }))[1] == 100);
    CHECK(ditto::zip({ ten, more }).spec().num_components == 2);
    std::vector<ditto::dataset> list;
    list.push_back(ten.take(1));
    list.push_back(more.take(1));
    CHECK(rows_of<std::int64_t>(ditto::concatenate(list)) == (numbers{ 0, 100 }));
    CHECK(ten.batch(4).spec().batch == 4 && ten.batch(4).unbatch().spec().batch == 0);
    CHECK(ten.batch(4, DITTO_BATCH_DROP_REMAINDER).prefetch(3).spec().batch == 4);
    // The function ends the loop.
    int seen = 0;
    ten.repeat().reduce([&](ditto::row) { return ++seen == 25 ? DITTO_END_OF_INPUT : DITTO_OK; });
    CHECK(seen == 25);
}

static void files()
{
    std::string csv = write_file("rows.csv", "1,2,cat\n3,4,dog\n5,6,emu\n");
    auto rows = ditto::dataset::from_csv(csv, { ditto::csv_columns<float>(0, 2), ditto::csv_text(2, 8) });
    CHECK(rows_of<float>(rows) == (std::vector<float>{ 1, 3, 5 }));
    rows.take(1).reduce([](ditto::row row) { CHECK(row.get<std::uint8_t>(1)[0] == 'c'); });
    ditto_csv_options options = DITTO_CSV_OPTIONS_INIT;
    options.num_columns = 3;
    auto both = ditto::dataset::from_csv({ csv, csv }, { ditto::csv_columns<std::int32_t>(1) }, &options);
    CHECK(rows_of<std::int32_t>(both).size() == 6);
    auto found = ditto::dataset::from_csv(ditto::file_names::matching((folder / "*.csv").string()),
                                          { ditto::csv_columns<std::int32_t>(1) }, &options);
    CHECK(rows_of<std::int32_t>(found).size() == 3);
    CHECK(rows_of<std::uint8_t>(ditto::dataset::from_text(csv))[2] == '5');
    const float values[4] = { 1, 2, 3, 4 };
    std::string binary = write_file("rows.bin",
                                    std::string(reinterpret_cast<const char *>(values), sizeof values));
    CHECK(rows_of<float>(ditto::dataset::from_fixed(binary, { ditto::component<float>({ 2 }) })) ==
          (std::vector<float>{ 1, 3 }));
    CHECK(has(thrown<ditto::error>([] { ditto::dataset::from_npy({ "nowhere.npy" }); }), "nowhere.npy"));
    CHECK(has(thrown<ditto::error>([] { ditto::dataset::from_npy(ditto::file_names::matching("*")); }),
              "no pattern"));
    CHECK(has(thrown<ditto::error>([] { ditto::dataset::from_tfrecord("nowhere"); }), "nowhere"));
    CHECK(has(thrown<ditto::error>([&] { ditto::dataset::from_csv(csv, {}); }), "component"));
}

// A generator in C, whose position is a number.
static ditto_status open_numbers(void *, std::uint64_t, void **position)
{
    *position = new std::int64_t(0);
    return DITTO_OK;
}
static ditto_status next_number(void *, void *position, const ditto_tensor *row)
{
    auto &n = *static_cast<std::int64_t *>(position);
    if (n == 5)
        return DITTO_END_OF_INPUT;
    *static_cast<std::int64_t *>(row[0].data) = n++;
    return DITTO_OK;
}
static void close_numbers(void *, void *position)
{
    delete static_cast<std::int64_t *>(position);
}

static void generators()
{
    ditto_generator generator = DITTO_GENERATOR_INIT;
    generator.open = open_numbers;
    generator.next = next_number;
    generator.close = close_numbers;
    auto rows = ditto::dataset::from_generator(generator, { ditto::component<std::int64_t>() });
    CHECK(rows_of<std::int64_t>(rows) == (numbers{ 0, 1, 2, 3, 4 }));
}

// -- batches --

static void batches(std::uint32_t n)
{
    ditto::strategy strategy(n);
    std::vector<double> x(60);
    std::iota(x.begin(), x.end(), 0.0);
    std::vector<std::int32_t> y(20, 1);
    auto rows = ditto::dataset::from_arrays({ ditto::tensor(x, { 20, 3 }), ditto::tensor(y) }).batch(8);
    auto steps = strategy.iterate(rows);
    CHECK(steps.spec().num_components == 2);
    strategy.run([&](ditto::replica self) {
        double sum = 0;
        std::uint64_t taken = 0;
        while (auto batch = self.next(steps)) {
            CHECK(batch->num_components() == 2 && batch->component<double>(0).size() == 3 * batch->rows());
            for (double value : batch->component<double>(0))
                sum += value;
            CHECK(batch->step() == taken++);
        }
        CHECK(taken == 3 && !self.next(steps));
        CHECK(self.all_reduce(sum) == 59.0 * 60 / 2);
    });
    CHECK(steps.stats().rows == 20);
    // All replicas at once, and a position to continue from.
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    options.pass = 3;
    auto whole = strategy.iterate(rows, &options);
    CHECK(whole.next());
    auto state = whole.save();
    options.state = state.data();
    options.state_bytes = state.size();
    auto rest = strategy.iterate(rows, &options);
    int left = 0;
    while (rest.next())
        left++;
    CHECK(left == 2);
    // A dataset for each pipeline, as lambdas make them.
    auto made = strategy.iterate_from_function([](const ditto_input_context &context) {
        return ditto::dataset::from_range(0, 10 * context.num_replicas).batch(1);
    });
    strategy.run([&](ditto::replica self) {
        int taken = 0;
        while (auto batch = self.next(made))
            taken++;
        CHECK(taken == 10);
    });
}

struct unusual : std::runtime_error {
    using std::runtime_error::runtime_error;
};

static void faults(std::uint32_t n)
{
    ditto::strategy strategy(n);
    auto rows = ditto::dataset::from_range(0, 100);
    auto fails = [](ditto::row in, ditto::new_row out) {
        if (in.get<std::int64_t>(0)[0] == 50)
            throw unusual("row 50 is wrong");
        out.get<std::int64_t>(0)[0] = 0;
    };
    auto wrong_type = [](ditto::row in, ditto::new_row) { (void)in.get<float>(0); };
    auto own_status = [](ditto::row, ditto::new_row) { return ditto_fail(nullptr, 0, "a status"); };
    auto odd = [](ditto::row) -> bool { throw 5; };
    auto no_second = [](ditto::row row) { return row.get<std::int64_t>(1).size() == 0; };
    auto no_seventeenth = [](ditto::row row) { return row.get<std::int64_t>(17).size() == 0; };
    auto run = [&](const ditto::dataset &input) {
        return thrown<ditto::error>([&] {
            auto steps = strategy.iterate(input.batch(10));
            strategy.run([&](ditto::replica self) {
                while (self.next(steps)) {
                }
            });
        });
    };
    CHECK(has(run(rows.map(fails)), "row 50 is wrong"));
    CHECK(has(run(rows.map(wrong_type)), "i64"));
    CHECK(has(run(rows.map(own_status)), "a status"));
    CHECK(has(run(rows.filter(odd)), "no std::exception"));
    CHECK(has(run(rows.filter(no_second)), "fewer components"));
    CHECK(has(run(rows.filter(no_seventeenth)), "fewer components"));
    // On the calling thread, exceptions keep their type.
    CHECK(has(thrown<unusual>([&] { rows.reduce([](ditto::row) { throw unusual("in reduce"); }); }),
              "in reduce"));
    auto refuses = [](const ditto_input_context &) -> ditto::dataset { throw unusual("no dataset"); };
    CHECK(has(thrown<unusual>([&] { strategy.iterate_from_function(refuses); }), "no dataset"));
    CHECK(has(thrown<ditto::error>([&] { rows.shard(0, 0); }), "shard"));
    CHECK(has(thrown<ditto::error>([&] { strategy.iterate(rows); }), "batch"));
    auto steps = strategy.iterate(rows.batch(10));
    CHECK(has(thrown<ditto::error>([&] {
                  strategy.run([&](ditto::replica self) {
                      auto batch = self.next(steps);
                      (void)batch->component<double>(0);
                  });
              }),
              "of dtype i64, and not of dtype f64"));
    CHECK(has(thrown<ditto::error>([&] {
                  strategy.run([&](ditto::replica self) {
                      auto batch = self.next(steps);
                      (void)batch->component<std::int64_t>(1);
                  });
              }),
              "fewer components"));
    strategy.destroy();
    CHECK(has(thrown<ditto::error>([&] { strategy.iterate(rows.batch(10)); }), "strategy"));
    CHECK(has(thrown<ditto::error>([&] { steps.next(); }), "destroyed"));
}

// -- optimizers --

static void optimizers(std::uint32_t n)
{
    ditto::strategy strategy(n);
    auto weights = strategy.create_variable(std::vector<float>(6, 1.0f), { 2, 3 });
    auto bias = strategy.create_variable(std::vector<float>(2, 1.0f));
    ditto::optimizer optimizer(ditto::sgd(0.5, 0.9), weights, bias);
    CHECK(optimizer.size() == 2);
    auto step = [&](ditto::replica self) {
        std::vector<float> of_weights(6, 1.0f), of_bias(2, 2.0f);
        self.apply(optimizer, { ditto::tensor(of_weights, { 2, 3 }), ditto::tensor(of_bias) });
    };
    strategy.run(step);
    float sum = static_cast<float>(n);
    CHECK(weights.read() == std::vector<float>(6, 1 - 0.5f * sum));
    CHECK(bias.read() == std::vector<float>(2, 1 - sum));
    CHECK(optimizer.iterations() == 1);
    CHECK(optimizer.slot(0, "momentum") != nullptr);
    // The same step in parts.
    auto again = strategy.create_variable(std::vector<float>(6, 1.0f), { 2, 3 });
    auto other = strategy.create_variable(std::vector<float>(2, 1.0f));
    ditto_optimizer_options options = ditto::sgd(0.5, 0.9);
    options.name = "parts";
    ditto::optimizer parts(options, again, other);
    strategy.run([&](ditto::replica self) {
        std::vector<float> of_weights(6, 1.0f), of_bias(2, 2.0f);
        ditto::step whole = self.start_step(parts);
        whole.add(1, { ditto::tensor(of_bias) });
        whole.add(0, { ditto::tensor(of_weights, { 2, 3 }) });
        whole.finish();
    });
    CHECK(again.read() == weights.read() && other.read() == bias.read());
    // A step that an exception leaves behind, whose gradients end with the function.
    for (int i = 0; i < 10; i++)
        CHECK(has(thrown<unusual>([&] {
                      strategy.run([&](ditto::replica self) {
                          std::vector<float> of_bias(2, 2.0f);
                          ditto::step left = self.start_step(parts);
                          left.add(1, { ditto::tensor(of_bias) });
                          if (self.id() == self.size() - 1)
                              throw unusual("in a step");
                          self.barrier();
                      });
                  }),
                  "in a step"));
    double norm = 0;
    strategy.run([&](ditto::replica self) {
        std::vector<float> of_weights(6, 1.0f), of_bias(2, 0.0f);
        double found = 0;
        ditto_apply_options apply = DITTO_APPLY_OPTIONS_INIT;
        apply.norm = &found;
        self.apply(optimizer, { ditto::tensor(of_weights, { 2, 3 }), ditto::tensor(of_bias) }, &apply);
        if (self.id() == 0)
            norm = found;
    });
    CHECK(std::abs(norm - sum * std::sqrt(6.0)) < 1e-9 * norm);
    auto few = [&](ditto::replica self) {
        std::vector<float> of_weights(6);
        self.apply(optimizer, { ditto::tensor(of_weights, { 2, 3 }) });
    };
    CHECK(has(thrown<ditto::error>([&] { strategy.run(few); }), "optimizer: 1 and 2"));
    auto flat = [&](ditto::replica self) {
        std::vector<float> of_weights(6), of_bias(2);
        self.apply(optimizer, { ditto::tensor(of_weights), ditto::tensor(of_bias) });
    };
    CHECK(has(thrown<ditto::error>([&] { strategy.run(flat); }), "f32 [6]"));
    CHECK(
        has(thrown<ditto::error>([&] { ditto::optimizer twice(ditto::adam(), weights, weights); }), "twice"));
    CHECK(has(thrown<ditto::error>([&] { weights.destroy(); }), "optimizer"));
    CHECK(has(thrown<ditto::error>([&] { optimizer.slot(0, "m"); }), "momentum"));
}

// -- checkpoints --

static void checkpoints(std::uint32_t n)
{
    std::filesystem::path place = folder / "saves";
    std::filesystem::remove_all(place);
    CHECK(!ditto::latest_checkpoint(place.string()));
    std::vector<float> found(5);
    std::vector<double> table{ 1, 2, 3 };
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    options.name = "weights";
    {
        ditto::strategy strategy(n);
        auto weights = strategy.create_variable(std::vector<float>{ 1, 2, 3, 4, 5 }, {}, &options);
        ditto::checkpointer saves(strategy, place.string());
        saves.save(10);
        ditto_checkpoint_options save = ditto::at_step(20);
        ditto_checkpoint_data data = { "table", ditto::tensor(table) };
        save.data = &data;
        save.num_data = 1;
        saves.save(&save);
        saves.wait();
        saves.destroy();
        CHECK(has(thrown<ditto::error>([&] { ditto::save(strategy, "/nowhere/file.h5"); }), "/nowhere"));
    }
    {
        // The error of a save in the background comes out of destroy, once.
        ditto::strategy strategy(n);
        auto weights = strategy.create_variable(std::vector<float>(5), {}, &options);
        ditto_checkpointer_options in_background = DITTO_CHECKPOINTER_OPTIONS_INIT;
        in_background.background = 1;
        ditto::checkpointer saves(strategy, (folder / "gone").string(), &in_background);
        std::filesystem::remove_all(folder / "gone");
        saves.save(1);
        CHECK(has(thrown<ditto::error>([&] { saves.destroy(); }), "gone"));
        CHECK(!saves);
    }
    auto newest = ditto::latest_checkpoint(place.string());
    CHECK(newest && newest->step == 20 && has(newest->path, "checkpoint-20.h5"));
    ditto::strategy strategy(n + 1);
    CHECK(ditto::latest_checkpoint(strategy, place.string())->path == newest->path);
    auto weights = strategy.create_variable(std::vector<float>(5), {}, &options);
    CHECK(ditto::restore(strategy, newest->path).num_restored == 1);
    CHECK(weights.read() == (std::vector<float>{ 1, 2, 3, 4, 5 }));
    auto file = ditto::checkpoint::open(newest->path);
    CHECK(file.step() == 20 && file.num_entries() == 2);
    CHECK(file.read<double>("table") == table && file.read<float>("weights")[4] == 5.0f);
    CHECK(has(thrown<ditto::error>([&] { (void)file.read<int>("table"); }), "another dtype"));
    CHECK(has(thrown<ditto::error>([&] { (void)file.read<int>("chair"); }), "chair"));
    CHECK(has(thrown<ditto::error>([&] { file.entry(7); }), "7"));
    CHECK(has(thrown<ditto::error>([&] { ditto::checkpoint::open("nowhere.h5"); }), "nowhere.h5"));
    auto other = strategy.create_variable(std::vector<float>(5));
    CHECK(has(thrown<ditto::error>([&] { ditto::restore(strategy, newest->path); }), "does not have"));
}

// -- workers that do not wait for each other --

// All workers take the rows 0 to 99 from one dataset, half of them from a saved position.
static void share_rows(const ditto::coordinator &coordinator)
{
    auto rows = ditto::dataset::from_range(0, 100).batch(10);
    ditto::shared_dataset shared = coordinator.share(rows);
    std::atomic<std::int64_t> sum = 0;
    auto take = [&](ditto::replica self) {
        if (auto batch = shared.next(self))
            for (std::int64_t row : batch->component<std::int64_t>(0))
                sum += row;
    };
    ditto::function_name name("take", take);
    for (int i = 0; i < 5; i++)
        coordinator.schedule("take");
    CHECK(coordinator.join() == DITTO_OK);
    coordinator.interrupt(); // nobody waits
    CHECK(sum == 49 * 50 / 2);
    std::vector<unsigned char> state = shared.save();
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    options.state = state.data();
    options.state_bytes = state.size();
    shared = coordinator.share(rows, &options);
    for (int i = 0; i < 7; i++)
        coordinator.schedule("take");
    coordinator.join();
    CHECK(sum == 99 * 100 / 2);
    CHECK(has(thrown<ditto::error>([&] { coordinator.share(ditto::dataset::from_range(0, 9)); }), "batch"));
}

static void workers(std::uint32_t n)
{
    ditto::strategy strategy(ditto::strategy::with(n), DITTO_PARAMETER_SERVER);
    auto weights = strategy.create_variable(std::vector<double>{ 1, 2, 3 });
    auto step = [&](ditto::replica self) {
        std::vector<double> pulled = self.pull(weights);
        CHECK(pulled.size() == 3 && self.worker() < n);
        self.assign_add(weights, std::vector<double>(3, 1.0));
    };
    auto sum = [&](ditto::replica self) {
        std::vector<double> pulled(3);
        ditto_pull_options with_locks = DITTO_PULL_OPTIONS_INIT;
        with_locks.lock = DITTO_SWITCH_ON;
        self.pull<double>(weights, pulled, &with_locks);
        return ditto_return_f64(self.get(), nullptr, std::accumulate(pulled.begin(), pulled.end(), 0.0));
    };
    auto fault = [](ditto::replica) { throw std::out_of_range("no such row"); };
    auto negate = [](ditto::replica self) {
        ditto_tensor x;
        ditto::call(ditto_argument, self.get(), nullptr, &x);
        return ditto_return_f64(self.get(), nullptr, -*static_cast<double *>(x.data));
    };
    const auto misfit = [&](ditto::replica self) {
        std::vector<double> two(2);
        self.pull<double>(weights, two);
    };
    ditto_variable_options hogwild = DITTO_VARIABLE_OPTIONS_INIT;
    hogwild.concurrency = DITTO_CONCURRENCY_HOGWILD;
    auto table = strategy.create_variable(std::vector<double>{ 1, 2, 3, 4 }, { 2, 2 }, &hogwild);
    auto in_place = [&](ditto::replica self) {
        auto elements = self.component(table);
        elements[3] += 0.5;
        CHECK(elements.size() == 4 && self.read(table).data() == elements.data());
        CHECK(has(thrown<ditto::error>([&] { self.component(weights); }), "HOGWILD"));
    };
    ditto::function_name in_place_name("in_place", in_place);
    ditto::function_name names[] = {
        { "step", step }, { "sum", sum }, { "fault", fault }, { "misfit", misfit }, { "negate", negate }
    };
    CHECK(has(thrown<ditto::error>([&] { ditto::function_name again("step", sum); }), "step"));
    {
        ditto::coordinator coordinator(strategy);
        CHECK(coordinator.size() == n && coordinator.is_done());
        for (int i = 0; i < 100; i++)
            coordinator.schedule("step");
        coordinator.join();
        CHECK(weights.read() == (std::vector<double>{ 101, 102, 103 }));
        ditto::remote remote = coordinator.call("sum");
        CHECK(remote.number() == 306 && remote.is_ready() && !remote.cancel());
        CHECK(remote.fetch() && !coordinator.call("step").fetch());
        std::uint64_t done = 0;
        for (std::uint32_t i = 0; i < n; i++)
            done += coordinator.worker(i).functions;
        CHECK(done == 102 && coordinator.stats().functions == 102 && coordinator.stats().depth == 0);
        coordinator.schedule("negate", 1.0);
        CHECK(coordinator.call("negate", 2.5).number() == -2.5);
        share_rows(coordinator);
        for (int i = 0; i < 3; i++)
            CHECK(coordinator.call("in_place").fetch().get() == nullptr);
        CHECK(table.read() == (std::vector<double>{ 1, 2, 3, 5.5 }));
        coordinator.schedule("fault");
        CHECK(has(thrown<ditto::error>([&] { coordinator.join(); }), "no such row"));
        coordinator.schedule("misfit");
        CHECK(has(thrown<ditto::error>([&] { coordinator.join(); }), "as many elements"));
        CHECK(has(thrown<ditto::error>([&] { coordinator.schedule("nothing"); }), "nothing"));
        CHECK(has(thrown<ditto::error>([&] { coordinator.worker(n); }), "worker"));
    }
    ditto::strategy mirrored(n);
    CHECK(has(thrown<ditto::error>([&] { ditto::coordinator wrong(mirrored); }), "DITTO_PARAMETER_SERVER"));
}

int main()
{
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    transformations();
    files();
    generators();
    for (std::uint32_t n : counts) {
        batches(n);
        faults(n);
        optimizers(n);
        checkpoints(n);
        workers(n);
    }
    std::filesystem::remove_all(folder);
    std::printf("%d failures\n", failures);
    return failures != 0;
}
