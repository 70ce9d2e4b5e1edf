// include/ditto/coordinator.hpp - workers that do not wait for each other, in C++. ditto.hpp includes it. The
// rules are those of ditto/coordinator.h and ditto/parameter.h.
//
//     ditto::strategy strategy(ditto::strategy::with(4), DITTO_PARAMETER_SERVER);
//     auto weights = strategy.create_variable(std::vector<float>(100));
//     auto step = [&](ditto::replica self) {
//         std::vector<float> pulled = self.pull(weights);
//         self.assign_add(weights, correction(pulled));
//     };
//     ditto::function_name name("step", step);
//     ditto::coordinator coordinator(strategy);
//     for (int i = 0; i < 1000; i++)
//         coordinator.schedule("step");
//     coordinator.join();
#ifndef DITTO_COORDINATOR_HPP
#define DITTO_COORDINATOR_HPP

#include <ditto.hpp>

#include <memory>

namespace ditto
{
inline namespace DITTO_CPP_SPACE
{

// -- functions with names --

// Registers function(replica) under a name, until it ends. The function is given by reference, and must stay
// until all functions that were scheduled with its name have ended. An exception in it becomes an error that
// has the text of the exception. If two objects register the same function under one name, the first that
// ends takes the name back.
class function_name
{
  public:
    function_name() noexcept = default;
    function_name(function_name &&other) noexcept : name_(std::move(other.name_))
    {
        other.name_.clear();
    }
    function_name &operator=(function_name &&) = delete;
    ~function_name()
    {
        if (!name_.empty())
            detail::ignore(ditto_function_unregister(name_.c_str()));
    }
    template <class F> static outcome<function_name> create(const char *name, F &function)
    {
        static_assert(!std::is_function_v<F>,
                      "give a variable, for example a lambda that calls the function");
        auto call = [](ditto_replica *self, void *user) {
            return detail::call_in_dataset([&] { return (*static_cast<F *>(user))(replica(self)); });
        };
        void *user = const_cast<void *>(static_cast<const void *>(std::addressof(function)));
        function_name made;
        made.name_ = name;
        ditto_status status = ditto_function_register(name, call, user);
        if (status < 0)
            made.name_.clear();
        return detail::give(status, std::move(made));
    }
#if DITTO_CPP_THROWS
    template <class F> function_name(const char *name, F &function) : function_name(create(name, function)) {}
#endif

  private:
    std::string name_;
};

// -- the queue and its workers --

// The result of a scheduled function.
class remote : public handle<ditto_remote, ditto_remote_destroy>
{
  public:
    using handle<ditto_remote, ditto_remote_destroy>::handle;

    // Waits for the end of the function. Its results, or an empty handle if it gave none.
    outcome<value> fetch() const
    {
        ditto_value *results = nullptr;
        ditto_status status = ditto_remote_fetch(get(), &results);
        return detail::give(status, value(results));
    }
    // Waits for the end of the function, and returns its only result, which is one number.
    outcome<double> number() const
    {
        ditto_value *results = nullptr;
        double out = 0;
        ditto_status status = ditto_remote_fetch(get(), &results);
        if (status >= 0)
            status = ditto_value_f64(results, &out);
        detail::ignore(ditto_value_destroy(results));
        return detail::give(status, out);
    }
    bool is_ready() const noexcept
    {
        int done = 0;
        detail::ignore(ditto_remote_test(get(), &done));
        return done != 0;
    }
    // Cancels the function if no worker has begun it. Returns false if it is not cancelled.
    bool cancel() const noexcept
    {
        return ditto_remote_cancel(get()) == DITTO_OK;
    }
};

// A dataset that all workers share. Made by coordinator::share.
class shared_dataset : public handle<ditto_shared_dataset, ditto_shared_dataset_destroy>
{
  public:
    using handle<ditto_shared_dataset, ditto_shared_dataset_destroy>::handle;

    // Takes a batch, in a scheduled function. None at the end of the input.
    outcome<std::optional<batch>> next(replica self) const
    {
        return detail::next_batch(ditto_shared_dataset_next, self.get(), get());
    }
    // The position, for ditto_input_options.state.
    outcome<std::vector<unsigned char>> save() const
    {
        return detail::saved(ditto_shared_dataset_save, get());
    }
};

// The queue of a strategy, and its workers.
class coordinator : public handle<ditto_coordinator, ditto_coordinator_destroy>
{
  public:
    using handle<ditto_coordinator, ditto_coordinator_destroy>::handle;
    coordinator() noexcept = default;

    static outcome<coordinator> create(strategy_view strategy,
                                       const ditto_coordinator_options *options = nullptr)
    {
        return make<coordinator>(ditto_coordinator_create, strategy.get(), options);
    }
#if DITTO_CPP_THROWS
    explicit coordinator(strategy_view strategy, const ditto_coordinator_options *options = nullptr)
        : coordinator(create(strategy, options))
    {
    }
#endif

    // The number of workers.
    std::uint32_t size() const noexcept
    {
        ditto_coordinator_counters out = DITTO_COORDINATOR_COUNTERS_INIT;
        detail::ignore(ditto_coordinator_stats(get(), &out));
        return out.num_workers;
    }
    // Puts a function into the queue, and discards its results.
    outcome<void> schedule(const char *name, const ditto_value *arguments = nullptr) const
    {
        return detail::done(ditto_coordinator_schedule(get(), name, arguments, nullptr, nullptr));
    }
    // The same with one number, which the function reads with ditto_argument(self.get(), nullptr, &tensor).
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    outcome<void> schedule(const char *name, T number) const
    {
        return detail::done(schedule_number(name, number, nullptr));
    }
    // The same for a function whose results are fetched later.
    outcome<remote> call(const char *name, const ditto_value *arguments = nullptr) const
    {
        ditto_remote *made = nullptr;
        ditto_status status = ditto_coordinator_schedule(get(), name, arguments, nullptr, &made);
        return detail::give(status, remote(made));
    }
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    outcome<remote> call(const char *name, T number) const
    {
        ditto_remote *made = nullptr;
        ditto_status status = schedule_number(name, number, &made);
        return detail::give(status, remote(made));
    }
    // Waits until the queue is empty and all functions have ended. Returns DITTO_OK, or the positive status
    // of a function whose results were discarded, for example DITTO_END_OF_INPUT.
    outcome<ditto_status> join() const
    {
        return ditto::call(ditto_coordinator_join, get());
    }
    // Ends the calls of other threads that wait for functions.
    outcome<void> interrupt() const
    {
        return detail::done(ditto_coordinator_interrupt(get()));
    }
    outcome<bool> is_done() const
    {
        int done = 0;
        ditto_status status = ditto_coordinator_done(get(), &done);
        return detail::give(status, done != 0);
    }
    // Begins a pass over a dataset that the workers share.
    outcome<shared_dataset> share(const dataset &rows, const ditto_input_options *options = nullptr) const
    {
        return make<shared_dataset>(ditto_coordinator_shared_dataset, get(), rows.get(), options);
    }
    // What the queue and all workers have done.
    outcome<ditto_coordinator_counters> stats() const
    {
        ditto_coordinator_counters out = DITTO_COORDINATOR_COUNTERS_INIT;
        return detail::give(ditto_coordinator_stats(get(), &out), out);
    }
    outcome<ditto_worker_info> worker(std::uint32_t index) const
    {
        ditto_worker_info info = DITTO_WORKER_INFO_INIT;
        ditto_status status = ditto_coordinator_worker_info(get(), index, &info);
        return detail::give(status, info);
    }

  private:
    template <class T> ditto_status schedule_number(const char *name, T &number, ditto_remote **out) const
    {
        ditto_schedule_options options = DITTO_SCHEDULE_OPTIONS_INIT;
        ditto_tensor tensor = {};
        tensor.data = &number;
        tensor.dtype = dtype_of<T>();
        options.argument = &tensor;
        return ditto_coordinator_schedule(get(), name, nullptr, &options, out);
    }
};

} // namespace DITTO_CPP_SPACE
} // namespace ditto

#endif
