// include/ditto/input.hpp - datasets, iterators and batches in C++. ditto.hpp includes it.
//
//     auto rows = ditto::dataset::from_csv("digits.csv", { ditto::csv_columns<float>(0, 64),
//                                                          ditto::csv_columns<std::int32_t>(64) });
//     auto batches = rows.shuffle().batch(32);
//     auto steps = strategy.iterate(batches);
//     strategy.run([&](ditto::replica self) {
//         while (auto batch = self.next(steps))
//             learn(batch->component<float>(0), batch->component<std::int32_t>(1));
//     });
//
// The rules are those of ditto/dataset.h and the C headers after it.
//
// Functions of datasets. The functions of map and filter run on threads of the library, long after the call,
// and several threads call one function at a time. So they are given by reference, and must outlive every
// dataset and iterator that uses them. An exception in one of them ends the input with an error that has the
// text of the exception. An exception in a function of reduce or iterate_from_function comes out of the call.
#ifndef DITTO_INPUT_HPP
#define DITTO_INPUT_HPP

#include <ditto.hpp>

#include <functional>
#include <initializer_list>
#include <memory>

namespace ditto
{
inline namespace DITTO_CPP_SPACE
{
namespace detail
{

// The elements of one of `count` components as elements T. `function` is named by the error.
template <class T>
outcome<span<T>> component_of(const char *function, const ditto_tensor *components, std::uint32_t count,
                              std::uint32_t index)
{
    using E = std::remove_const_t<T>;
    if (index >= count || components[index].dtype == 0)
        return fail<span<T>>(function, "the row has fewer components");
    const ditto_tensor &t = components[index];
    if (t.dtype != dtype_of<E>()) {
        char message[200];
        std::snprintf(message, sizeof message, "component %u has elements of dtype %s, and not of dtype %s",
                      index, ditto_dtype_name(t.dtype), ditto_dtype_name(dtype_of<E>()));
        return fail<span<T>>(function, message);
    }
    return span<T>(static_cast<T *>(t.data), ditto_tensor_bytes(&t) / sizeof(T));
}

// Calls a function on a thread of the library, where no exception may leave it.
template <class F> ditto_status call_in_dataset(F &&function) noexcept(!DITTO_CPP_THROWS)
{
#if DITTO_CPP_THROWS
    try {
        return status_of(nullptr, function);
#if defined(__GLIBCXX__)
    } catch (abi::__forced_unwind &) {
        throw; // a thread that is cancelled, or calls pthread_exit
#endif
    } catch (const error &e) {
        return is_last(e) ? e.status() : ditto_fail(nullptr, 0, "%s", e.what());
    } catch (const std::exception &e) {
        return ditto_fail(nullptr, 0, "%s", e.what());
    } catch (...) {
        return ditto_fail(nullptr, 0, "an exception that is no std::exception");
    }
#else
    return status_of(nullptr, function);
#endif
}

} // namespace detail

// -- rows --

// The components of a row that a function of a dataset reads. It is valid during the call.
class row
{
  public:
    explicit row(const ditto_tensor *components) noexcept : components_(components) {}
    // The elements of component `index`. DITTO_ERR_INVALID if the row does not have it, or if T is another
    // type than that of its elements.
    template <class T> outcome<span<const T>> get(std::uint32_t index) const
    {
        return detail::component_of<const T>("ditto::row::get", components_, DITTO_MAX_COMPONENTS, index);
    }

  private:
    const ditto_tensor *components_;
};

// The components of a row that the function of a map writes.
class new_row
{
  public:
    explicit new_row(const ditto_tensor *components) noexcept : components_(components) {}
    template <class T> outcome<span<T>> get(std::uint32_t index) const
    {
        return detail::component_of<T>("ditto::new_row::get", components_, DITTO_MAX_COMPONENTS, index);
    }

  private:
    const ditto_tensor *components_;
};

// A component of rows that are not there yet, for map and from_generator: its elements and its shape.
template <class T> ditto_tensor component(std::initializer_list<std::size_t> shape = {})
{
    ditto_tensor t = tensor(span<T>(nullptr, 0), shape);
    if (shape.size() == 0)
        t.rank = 0;
    return t;
}

// -- files --

// The names of files, which are read one after another.
class file_names
{
  public:
    file_names(const char *name) : names_(1, name) {}
    file_names(std::string name) : names_(1, std::move(name)) {}
    file_names(std::vector<std::string> names) : names_(std::move(names)) {}
    file_names(std::initializer_list<std::string> names) : names_(names) {}
    // The files that match a pattern (glob(7)).
    static file_names matching(std::string pattern)
    {
        file_names names(std::move(pattern));
        names.flags_ = DITTO_FILES_GLOB;
        return names;
    }

    // Calls function(const ditto_files *).
    template <class F> auto call(F &&function) const
    {
        std::vector<const char *> names;
        names.reserve(names_.size());
        for (const std::string &name : names_)
            names.push_back(name.c_str());
        ditto_files files{};
        files.names = names.data();
        files.num_names = static_cast<std::uint32_t>(names.size());
        files.flags = flags_;
        return function(&files);
    }

  private:
    std::vector<std::string> names_;
    std::uint32_t flags_ = 0;
};

// Consecutive columns of a CSV file that make one component.
template <class T> ditto_csv_component csv_columns(std::uint32_t first, std::uint32_t count = 1)
{
    ditto_csv_component c{};
    c.first_column = first;
    c.num_columns = count;
    c.dtype = dtype_of<T>();
    return c;
}

// A column of text, which becomes `bytes` elements of std::uint8_t, filled up with zeros.
inline ditto_csv_component csv_text(std::uint32_t column, std::uint32_t bytes)
{
    ditto_csv_component c = csv_columns<std::uint8_t>(column);
    c.text_bytes = bytes;
    return c;
}

// -- datasets --

// A list of rows. Transformations return a new dataset, and keep what they were made from alive.
class dataset : public handle<ditto_dataset, ditto_dataset_destroy>
{
  public:
    using handle<ditto_dataset, ditto_dataset_destroy>::handle;

    static outcome<dataset> from_range(std::int64_t start, std::int64_t stop, std::int64_t step = 1)
    {
        return make<dataset>(ditto_dataset_from_range, start, stop, step);
    }
    // Row i has element i of the first dimension of each array. The arrays must outlive the dataset.
    static outcome<dataset> from_arrays(const std::vector<ditto_tensor> &arrays)
    {
        return make<dataset>(ditto_dataset_from_arrays, arrays.data(), count(arrays));
    }
    // `row` has a ditto::component for each component.
    static outcome<dataset> from_generator(const ditto_generator &generator,
                                           const std::vector<ditto_tensor> &row)
    {
        return make<dataset>(ditto_dataset_from_generator, &generator, row.data(), count(row));
    }
    static outcome<dataset> from_text(const file_names &files, const ditto_text_options *options = nullptr)
    {
        return files.call(
            [&](const ditto_files *f) { return make<dataset>(ditto_dataset_from_text, f, options); });
    }
    static outcome<dataset> from_csv(const file_names &files,
                                     const std::vector<ditto_csv_component> &components,
                                     const ditto_csv_options *options = nullptr)
    {
        return files.call([&](const ditto_files *f) {
            return make<dataset>(ditto_dataset_from_csv, f, components.data(), count(components), options);
        });
    }
    static outcome<dataset> from_tfrecord(const file_names &files,
                                          const ditto_tfrecord_options *options = nullptr)
    {
        return files.call(
            [&](const ditto_files *f) { return make<dataset>(ditto_dataset_from_tfrecord, f, options); });
    }
    static outcome<dataset> from_fixed(const file_names &files, const std::vector<ditto_tensor> &row,
                                       const ditto_fixed_options *options = nullptr)
    {
        return files.call([&](const ditto_files *f) {
            return make<dataset>(ditto_dataset_from_fixed, f, row.data(), count(row), options);
        });
    }
    // One .npy file for each component.
    static outcome<dataset> from_npy(const file_names &files)
    {
        return files.call([](const ditto_files *f) {
            if (f->flags != 0)
                return detail::fail<dataset>("ditto_dataset_from_npy",
                                             "from_npy takes the names of files, and no pattern");
            return make<dataset>(ditto_dataset_from_npy, f->names, f->num_names);
        });
    }

    // Calls function(row in, new_row out), or function(row in, new_row out, ditto_random *), for each row.
    // Without options, the new rows are like the old ones.
    template <class F> outcome<dataset> map(F &&function, const ditto_map_options *options = nullptr) const
    {
        static_assert(std::is_lvalue_reference_v<F>,
                      "the function must outlive the dataset: give a variable");
        using callable = std::remove_reference_t<F>;
        auto one = [](const ditto_tensor *in, const ditto_tensor *out, ditto_random *random, void *user) {
            return detail::call_in_dataset([&] {
                auto &called = *static_cast<callable *>(user);
                if constexpr (std::is_invocable_v<callable &, row, new_row, ditto_random *>)
                    return called(row(in), new_row(out), random);
                else
                    return called(row(in), new_row(out));
            });
        };
        return make<dataset>(ditto_dataset_map, get(), one, address(function), options);
    }
    // Rows of other components than those of the input.
    template <class F>
    outcome<dataset> map(F &&function, const std::vector<ditto_tensor> &new_components,
                         std::uint64_t seed = 0) const
    {
        ditto_map_options options = DITTO_MAP_OPTIONS_INIT;
        options.row = new_components.data();
        options.num_components = count(new_components);
        options.seed = seed;
        return map(std::forward<F>(function), &options);
    }
    // Keeps the rows for which function(row) returns true. It returns bool, or result<bool>.
    template <class F> outcome<dataset> filter(F &&function) const
    {
        static_assert(std::is_lvalue_reference_v<F>,
                      "the function must outlive the dataset: give a variable");
        using callable = std::remove_reference_t<F>;
        auto one = [](const ditto_tensor *components, void *user, int *keep) {
            return detail::call_in_dataset([&] {
                result<bool> stays = (*static_cast<callable *>(user))(row(components));
                *keep = stays && *stays ? 1 : 0;
                return stays;
            });
        };
        return make<dataset>(ditto_dataset_filter, get(), one, address(function));
    }
    // All rows in a random order, or each row drawn from a buffer of the next `buffer_rows` rows.
    outcome<dataset> shuffle(std::uint64_t seed = 0, std::uint64_t buffer_rows = 0) const
    {
        ditto_shuffle_options options = DITTO_SHUFFLE_OPTIONS_INIT;
        options.seed = seed;
        options.buffer_rows = buffer_rows;
        return shuffle(&options);
    }
    outcome<dataset> shuffle(const ditto_shuffle_options *options) const
    {
        return make<dataset>(ditto_dataset_shuffle, get(), options);
    }
    outcome<dataset> repeat(std::uint64_t times = DITTO_REPEAT_FOREVER) const
    {
        return make<dataset>(ditto_dataset_repeat, get(), times);
    }
    outcome<dataset> take(std::uint64_t rows) const
    {
        return make<dataset>(ditto_dataset_take, get(), rows);
    }
    outcome<dataset> skip(std::uint64_t rows) const
    {
        return make<dataset>(ditto_dataset_skip, get(), rows);
    }
    outcome<dataset> shard(std::uint64_t num_shards, std::uint64_t index) const
    {
        return make<dataset>(ditto_dataset_shard, get(), num_shards, index);
    }
    // Global batches of that many rows, over all replicas.
    outcome<dataset> batch(std::uint64_t rows, std::uint32_t flags = 0) const
    {
        return make<dataset>(ditto_dataset_batch, get(), rows, flags);
    }
    outcome<dataset> unbatch() const
    {
        return make<dataset>(ditto_dataset_unbatch, get());
    }
    outcome<dataset> prefetch(std::uint64_t num_batches) const
    {
        return make<dataset>(ditto_dataset_prefetch, get(), num_batches);
    }

    outcome<ditto_element_spec> spec() const
    {
        ditto_element_spec out{};
        return detail::give(ditto_dataset_spec(get(), &out), out);
    }
    // Calls function(row) for all rows, in order, on this thread. It may return nothing, or a ditto_status.
    // DITTO_END_OF_INPUT ends the loop.
    template <class F> outcome<void> reduce(F &&function, std::uint64_t pass = 0) const
    {
        using callable = std::remove_reference_t<F>;
        detail::function<callable> f(function);
        auto one = [](const ditto_tensor *components, void *user) {
            auto &called = *static_cast<detail::function<callable> *>(user);
            return called.guard(nullptr, [&] { return (*called.callable)(row(components)); });
        };
        ditto_status status = ditto_dataset_reduce(get(), one, &f, pass);
#if DITTO_CPP_THROWS
        f.end(status);
#else
        return detail::done(status);
#endif
    }

  private:
    template <class C> static std::uint32_t count(const C &list)
    {
        return static_cast<std::uint32_t>(list.size());
    }
    template <class F> static void *address(F &function)
    {
        return const_cast<void *>(static_cast<const void *>(std::addressof(function)));
    }
};

// Several datasets: { a, b }, or a vector of them.
class dataset_list
{
  public:
    dataset_list(std::initializer_list<std::reference_wrapper<const dataset>> datasets)
    {
        for (const dataset &one : datasets)
            handles_.push_back(one.get());
    }
    dataset_list(const std::vector<dataset> &datasets)
    {
        for (const dataset &one : datasets)
            handles_.push_back(one.get());
    }
    ditto_dataset *const *data() const noexcept
    {
        return handles_.data();
    }
    std::uint32_t size() const noexcept
    {
        return static_cast<std::uint32_t>(handles_.size());
    }

  private:
    std::vector<ditto_dataset *> handles_;
};

// Rows that have the components of the rows of all datasets.
inline outcome<dataset> zip(const dataset_list &datasets)
{
    return make<dataset>(ditto_dataset_zip, datasets.data(), datasets.size());
}

// The rows of all datasets, one dataset after another.
inline outcome<dataset> concatenate(const dataset_list &datasets)
{
    return make<dataset>(ditto_dataset_concatenate, datasets.data(), datasets.size());
}

// The rows of all datasets in turns, `block` rows of each of the `cycle` datasets that are open at a time. 0
// means all of them.
inline outcome<dataset> interleave(const dataset_list &datasets, std::uint32_t cycle = 0,
                                   std::uint64_t block = 1)
{
    return make<dataset>(ditto_dataset_interleave, datasets.data(), datasets.size(), cycle, block);
}

// -- batches --

namespace detail
{
// The position that save(object, &state, &bytes) gives.
template <class T>
outcome<std::vector<unsigned char>> saved(ditto_status (*save)(T *, void **, std::size_t *), T *object)
{
    void *state = nullptr;
    std::size_t bytes = 0;
    ditto_status status = save(object, &state, &bytes);
    std::unique_ptr<void, void (*)(void *)> owned(status < 0 ? nullptr : state, ditto_state_free);
    auto *first = static_cast<const unsigned char *>(owned.get());
    return give(status, std::vector<unsigned char>(first, status < 0 ? first : first + bytes));
}
} // namespace detail

// One pass over a dataset. Made by strategy::iterate.
class iterator : public handle<ditto_iterator, ditto_iterator_destroy>
{
  public:
    using handle<ditto_iterator, ditto_iterator_destroy>::handle;

    outcome<ditto_element_spec> spec() const
    {
        ditto_element_spec out{};
        return detail::give(ditto_iterator_spec(get(), &out), out);
    }
    // The next batches of all replicas as one value, or none at the end of the input. Outside of runs.
    outcome<std::optional<value>> next() const
    {
        ditto_value *batches = nullptr;
        ditto_status status = ditto_iterator_next(get(), &batches);
        return detail::give(status, status == DITTO_OK ? std::optional<value>(batches) : std::nullopt);
    }
    // The position, for ditto_input_options.state.
    outcome<std::vector<unsigned char>> save() const
    {
        return detail::saved(ditto_iterator_save, get());
    }
    outcome<ditto_iterator_counters> stats(std::uint32_t replica = DITTO_ALL_REPLICAS) const
    {
        ditto_iterator_counters out = DITTO_ITERATOR_COUNTERS_INIT;
        return detail::give(ditto_iterator_stats(get(), replica, &out), out);
    }
};

// The rows of one replica in one step. It is a view, valid until the replica asks for its next batch.
class batch
{
  public:
    // 0 if this replica has no rows in this step. It takes part in the step's collectives all the same.
    std::uint64_t rows() const noexcept
    {
        return batch_.rows;
    }
    std::uint64_t step() const noexcept
    {
        return batch_.step;
    }
    std::uint32_t num_components() const noexcept
    {
        return batch_.num_components;
    }
    // The elements of component `index` of all rows, one row behind the other.
    template <class T> outcome<span<const T>> component(std::uint32_t index) const
    {
        return detail::component_of<const T>("ditto::batch::component", batch_.component,
                                             batch_.num_components, index);
    }
    const ditto_batch *get() const noexcept
    {
        return &batch_;
    }
    ditto_batch *get() noexcept
    {
        return &batch_;
    }

  private:
    // Written by ditto_next.
    ditto_batch batch_;
};

namespace detail
{
// The batch that next(self, object, &batch) gives, or none at the end of the input.
template <class T>
outcome<std::optional<batch>> next_batch(ditto_status (*next)(ditto_replica *, T *, ditto_batch *),
                                         ditto_replica *self, T *object)
{
    std::optional<batch> out(std::in_place);
    ditto_status status = next(self, object, out->get());
    if (status != DITTO_OK)
        out.reset();
#if DITTO_CPP_THROWS
    if (status < 0)
        throw error(*ditto_last_error());
    return out;
#else
    return give(status, std::move(out));
#endif
}
} // namespace detail

inline outcome<std::optional<batch>> replica::next(const iterator &steps) const
{
    return detail::next_batch(ditto_next, self_, steps.get());
}

inline outcome<iterator> strategy_view::iterate(const dataset &rows, const ditto_input_options *options) const
{
    return make<iterator>(ditto_strategy_iterate, strategy_, rows.get(), options);
}

template <class F>
outcome<iterator> strategy_view::iterate_from_function(F &&function, const ditto_input_options *options) const
{
    using callable = std::remove_reference_t<F>;
    detail::function<callable> f(function);
    auto one = [](const ditto_input_context *context, void *user, ditto_dataset **out) {
        auto &called = *static_cast<detail::function<callable> *>(user);
        return called.guard(nullptr, [&]() -> outcome<void> {
            outcome<dataset> made = (*called.callable)(*context);
#if DITTO_CPP_THROWS
            *out = made.release();
#else
            if (!made)
                return made.failure();
            *out = made->release();
            return {};
#endif
        });
    };
    ditto_iterator *made = nullptr;
    ditto_status status = ditto_strategy_iterate_from_function(strategy_, one, &f, options, &made);
#if DITTO_CPP_THROWS
    f.end(status);
    return iterator(made);
#else
    return detail::give(status, iterator(made));
#endif
}

inline outcome<iterator> strategy::iterate(const dataset &rows, const ditto_input_options *options) const
{
    return view().iterate(rows, options);
}

template <class F>
outcome<iterator> strategy::iterate_from_function(F &&function, const ditto_input_options *options) const
{
    return view().iterate_from_function(std::forward<F>(function), options);
}

} // namespace DITTO_CPP_SPACE
} // namespace ditto

#endif
