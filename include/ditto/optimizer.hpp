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
        return ditto_optimizer_num_variables(get());
    }
    // The number of steps so far. Outside of runs.
    outcome<std::int64_t> iterations() const
    {
        std::int64_t steps = 0;
        ditto_variable *counter = nullptr;
        ditto_status status = ditto_optimizer_iterations(get(), &counter);
        if (status >= 0)
            status = ditto_variable_read(counter, &steps, sizeof steps);
        return detail::give(status, steps);
    }
    // The numbers that the rule keeps for the elements of a variable, for example "m". They belong to the
    // optimizer.
    outcome<ditto_variable *> slot(std::uint32_t variable, const char *name) const
    {
        ditto_variable *out = nullptr;
        ditto_status status = ditto_optimizer_slot(get(), variable, name, &out);
        return detail::give(status, out);
    }
};

inline outcome<void> replica::apply(const optimizer &optimizer, span<const ditto_tensor> gradients,
                                    const ditto_apply_options *options) const
{
    if (gradients.size() != optimizer.size())
        return detail::fail<void>("the gradients are not as many as the variables of the optimizer");
    return detail::done(ditto_apply(self_, optimizer.get(), gradients.data(), options));
}

inline outcome<void> replica::apply(const optimizer &optimizer, std::initializer_list<ditto_tensor> gradients,
                                    const ditto_apply_options *options) const
{
    return apply(optimizer, span<const ditto_tensor>(gradients.begin(), gradients.size()), options);
}

inline outcome<void> replica::apply_start(const optimizer &optimizer, std::uint32_t first,
                                          std::initializer_list<ditto_tensor> gradients,
                                          const ditto_apply_options *options) const
{
    return detail::done(ditto_apply_start(self_, optimizer.get(), first,
                                          static_cast<std::uint32_t>(gradients.size()), gradients.begin(),
                                          options));
}

inline outcome<void> replica::apply_finish(const optimizer &optimizer,
                                           const ditto_apply_options *options) const
{
    return detail::done(ditto_apply_finish(self_, optimizer.get(), options));
}

} // namespace DITTO_CPP_SPACE
} // namespace ditto

#endif
