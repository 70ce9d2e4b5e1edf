// include/ditto/optimizer.hpp - optimizers in C++. ditto.hpp includes it. The rules are those of
// ditto/optimizer.h.
//
//     ditto::optimizer optimizer(ditto::sgd(0.1), weights, biases);
//     strategy.run([&](ditto::replica self) {
//         self.apply(optimizer, { ditto::tensor(of_weights, { 64, 10 }), ditto::tensor(of_biases) });
//     });
#ifndef DITTO_OPTIMIZER_HPP
#define DITTO_OPTIMIZER_HPP

#include <ditto.hpp>

namespace ditto
{
inline namespace DITTO_CPP_SPACE
{

// -- optimizers --

// Options of an optimizer with the rule DITTO_RULE_SGD.
inline ditto_optimizer_options sgd(double learning_rate, double momentum = 0)
{
    ditto_optimizer_options options = DITTO_OPTIMIZER_OPTIONS_INIT;
    options.rule = DITTO_RULE_SGD;
    options.learning_rate = learning_rate;
    options.has_learning_rate = 1;
    options.momentum = momentum;
    return options;
}

// Options of an optimizer with the rule DITTO_RULE_ADAM.
inline ditto_optimizer_options adam(double learning_rate = 0.001)
{
    ditto_optimizer_options options = DITTO_OPTIMIZER_OPTIONS_INIT;
    options.rule = DITTO_RULE_ADAM;
    options.learning_rate = learning_rate;
    options.has_learning_rate = 1;
    return options;
}

// Updates variables from gradients. It must end before its variables do, so declare them first.
class optimizer : public handle<ditto_optimizer, ditto_optimizer_destroy>
{
  public:
    using handle<ditto_optimizer, ditto_optimizer_destroy>::handle;
    optimizer() noexcept = default;

    template <class... T>
    static outcome<optimizer> create(const ditto_optimizer_options &options, const variable<T> &...variables)
    {
        ditto_variable *const list[] = { variables.get()... };
        return make<optimizer>(ditto_optimizer_create, list, static_cast<std::uint32_t>(sizeof...(T)),
                               &options);
    }
#if DITTO_CPP_THROWS
    template <class T, class... More>
    explicit optimizer(const ditto_optimizer_options &options, const variable<T> &first,
                       const variable<More> &...more)
        : optimizer(create(options, first, more...))
    {
    }
#endif

    // The number of variables.
    std::uint32_t size() const noexcept
    {
        return info().num_variables;
    }
    // The number of steps so far. Outside of runs.
    outcome<std::int64_t> iterations() const
    {
        std::int64_t steps = 0;
        ditto_status status = ditto_variable_read(info().iterations, &steps, sizeof steps);
        return detail::give(status, steps);
    }
    // How old the gradients of steps on parameters were.
    outcome<ditto_staleness_counters> staleness() const
    {
        ditto_staleness_counters out = DITTO_STALENESS_COUNTERS_INIT;
        return detail::give(ditto_optimizer_staleness(get(), &out), out);
    }
    // The numbers that the rule keeps for the elements of a variable, for example "m". They belong to the
    // optimizer.
    outcome<ditto_variable *> slot(std::uint32_t variable, const char *name) const
    {
        ditto_variable *out = nullptr;
        ditto_status status = ditto_optimizer_slot(get(), variable, name, &out);
        return detail::give(status, out);
    }

  private:
    ditto_optimizer_properties info() const noexcept
    {
        ditto_optimizer_properties found = DITTO_OPTIMIZER_PROPERTIES_INIT;
        detail::ignore(ditto_optimizer_info(get(), &found));
        return found;
    }
};

inline outcome<void> replica::apply(const optimizer &optimizer, span<const ditto_tensor> gradients,
                                    const ditto_apply_options *options) const
{
    if (gradients.size() != optimizer.size())
        return detail::fail<void>("ditto_apply",
                                  "the gradients are not as many as the variables of the optimizer",
                                  gradients.size(), optimizer.size());
    return detail::done(ditto_apply(self_, optimizer.get(), gradients.data(), options));
}

inline outcome<void> replica::apply(const optimizer &optimizer, std::initializer_list<ditto_tensor> gradients,
                                    const ditto_apply_options *options) const
{
    return apply(optimizer, span<const ditto_tensor>(gradients.begin(), gradients.size()), options);
}

// A step whose parts are given one after another, so that the gradients of the last layers are aggregated
// while those of the first ones are still computed. It must be finished in the same run, and the gradients
// must stay until then. If an exception or an error ends the function before, the run ends, and the gradients
// may be freed when the step's own destructor has returned. So declare the step after the gradients.
//     ditto::step step = self.start_step(optimizer);
//     step.add(1, { ditto::tensor(of_biases) });
//     step.add(0, { ditto::tensor(of_weights, { 64, 10 }) });
//     step.finish();
class step
{
  public:
    step(ditto_replica *self, ditto_optimizer *optimizer) noexcept : self_(self), optimizer_(optimizer) {}
    step(step &&other) noexcept
        : self_(other.self_), optimizer_(other.optimizer_), open_(std::exchange(other.open_, false))
    {
    }
    step &operator=(step &&) = delete;
    ~step()
    {
        if (!open_)
            return;
        ditto_status failed = ditto_last_error()->status;
        if (DITTO_CPP_THROWS || failed >= 0)
            failed = ditto_fail(self_, 0,
                                "a step of an optimizer was left before it was finished, by an exception or "
                                "by mistake");
        detail::ignore(ditto_abandon(self_, failed));
    }
    // The gradients of the variables from number `first` on.
    outcome<void> add(std::uint32_t first, std::initializer_list<ditto_tensor> gradients,
                      const ditto_apply_options *options = nullptr)
    {
        ditto_status status = ditto_apply_start(self_, optimizer_, first,
                                                static_cast<std::uint32_t>(gradients.size()),
                                                gradients.begin(), options);
        open_ = open_ || status >= 0;
        return detail::done(status);
    }
    outcome<void> finish(const ditto_apply_options *options = nullptr)
    {
        ditto_status status = ditto_apply_finish(self_, optimizer_, options);
        open_ = open_ && status < 0;
        return detail::done(status);
    }

  private:
    ditto_replica *self_;
    ditto_optimizer *optimizer_;
    bool open_ = false;
};

inline step replica::start_step(const optimizer &optimizer) const
{
    return step(self_, optimizer.get());
}

} // namespace DITTO_CPP_SPACE
} // namespace ditto

#endif
