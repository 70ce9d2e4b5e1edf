// include/ditto/checkpoint.hpp - checkpoints in C++. The rules are those of ditto/checkpoint.h. Programs that
// include it link the library ditto-hdf5.
//
//     ditto::checkpointer saves(strategy, "checkpoints");
//     saves.save(step);
//     ...
//     if (auto newest = ditto::latest_checkpoint("checkpoints"))
//         ditto::restore(strategy, newest->path);
#ifndef DITTO_CHECKPOINT_HPP
#define DITTO_CHECKPOINT_HPP

#include <ditto.hpp>
#include <ditto/checkpoint.h>

namespace ditto
{
inline namespace DITTO_CPP_SPACE
{

// -- saving and restoring --

// Options of a save with a step.
inline ditto_checkpoint_options at_step(std::int64_t step)
{
    ditto_checkpoint_options options = DITTO_CHECKPOINT_OPTIONS_INIT;
    options.step = step;
    return options;
}

// Writes all variables of the strategy, or what the options say.
inline outcome<void> save(strategy_view strategy, const std::string &path,
                          const ditto_checkpoint_options *options = nullptr)
{
    return detail::done(ditto_checkpoint_save(strategy.get(), path.c_str(), options));
}

// Writes the values of a file to the variables of the same names.
inline outcome<ditto_restore_status> restore(strategy_view strategy, const std::string &path,
                                             const ditto_restore_options *options = nullptr)
{
    ditto_restore_status done{};
    ditto_status status = ditto_checkpoint_restore(strategy.get(), path.c_str(), options, &done);
    return detail::give(status, done);
}

// -- one file --

// An open checkpoint.
class checkpoint : public handle<ditto_checkpoint, ditto_checkpoint_close>
{
  public:
    using handle<ditto_checkpoint, ditto_checkpoint_close>::handle;

    static outcome<checkpoint> open(const std::string &path)
    {
        return make<checkpoint>(ditto_checkpoint_open, nullptr, path.c_str());
    }
    std::int64_t step() const noexcept
    {
        return info().step;
    }
    std::size_t num_entries() const noexcept
    {
        return info().num_entries;
    }
    // Entry `index`. Its name is valid until the checkpoint is closed.
    outcome<ditto_checkpoint_entry> entry(std::size_t index) const
    {
        ditto_checkpoint_entry out{};
        ditto_status status = ditto_checkpoint_get(get(), index, &out);
        return detail::give(status, out);
    }
    outcome<ditto_attribute> attribute(const std::string &name) const
    {
        const ditto_checkpoint_properties found = info();
        for (std::size_t i = 0; i < found.num_attributes; i++)
            if (name == found.attributes[i].name)
                return found.attributes[i];
        return detail::fail<ditto_attribute>("ditto_checkpoint_info",
                                             "the checkpoint has no attribute of this name");
    }
    // The elements of an entry. Another type than that of the entry is DITTO_ERR_INVALID.
    template <class T> outcome<std::vector<T>> read(const std::string &name) const
    {
        static_assert(!std::is_same_v<T, bool>,
                      "a std::vector<bool> has no elements: use ditto_checkpoint_read");
        for (std::size_t i = 0; i < num_entries(); i++) {
            ditto_checkpoint_entry found{};
            detail::ignore(ditto_checkpoint_get(get(), i, &found));
            if (name != found.name)
                continue;
            if (found.spec.dtype != dtype_of<T>())
                return detail::fail<std::vector<T>>("ditto_checkpoint_read",
                                                    "the entry of the checkpoint has another dtype");
            return read_as<T>(name, ditto_tensor_bytes(&found.spec) / sizeof(T));
        }
        return read_as<T>(name, 0); // fails: there is no such entry
    }

  private:
    ditto_checkpoint_properties info() const noexcept
    {
        ditto_checkpoint_properties out = DITTO_CHECKPOINT_PROPERTIES_INIT;
        detail::ignore(ditto_checkpoint_info(get(), &out));
        return out;
    }
    template <class T> outcome<std::vector<T>> read_as(const std::string &name, std::size_t count) const
    {
        std::vector<T> values(count);
        ditto_status status = ditto_checkpoint_read(get(), name.c_str(), values.data(), count * sizeof(T));
        return detail::give(status, std::move(values));
    }
};

// -- a folder of checkpoints --

namespace detail
{
// The error may be that of the last save.
template <> inline bool is_gone_after<ditto_checkpointer>(ditto_status status) noexcept
{
    return status != DITTO_ERR_BUSY && status != DITTO_ERR_CONTEXT;
}
} // namespace detail

// Saves checkpoints to a folder and keeps the newest ones.
class checkpointer : public handle<ditto_checkpointer, ditto_checkpointer_destroy>
{
  public:
    using handle<ditto_checkpointer, ditto_checkpointer_destroy>::handle;

    static outcome<checkpointer> create(strategy_view strategy, const std::string &folder,
                                        const ditto_checkpointer_options *options = nullptr)
    {
        return make<checkpointer>(ditto_checkpointer_create, strategy.get(), folder.c_str(), options);
    }
#if DITTO_CPP_THROWS
    checkpointer(strategy_view strategy, const std::string &folder,
                 const ditto_checkpointer_options *options = nullptr)
        : checkpointer(create(strategy, folder, options))
    {
    }
#endif
    outcome<void> save(std::int64_t step)
    {
        ditto_checkpoint_options options = at_step(step);
        return save(&options);
    }
    outcome<void> save(const ditto_checkpoint_options *options)
    {
        return detail::done(ditto_checkpointer_save(get(), options));
    }
    // Waits until no file is being written.
    outcome<void> wait()
    {
        return detail::done(ditto_checkpointer_wait(get()));
    }
};

// A file of a folder of checkpoints.
struct checkpoint_file {
    std::string path;
    std::int64_t step;
};

namespace detail
{
// Calls find(path, capacity, length, step) with memory that is large enough.
template <class F> outcome<std::optional<checkpoint_file>> find_checkpoint(F &&find)
{
    checkpoint_file file{ std::string(256, '\0'), 0 };
    std::size_t length = 0;
    ditto_status status = find(&file.path[0], file.path.size(), &length, &file.step);
    while (status == DITTO_OK && length >= file.path.size()) { // a newer file may have come in between
        file.path.assign(length + 1, '\0');
        status = find(&file.path[0], file.path.size(), &length, &file.step);
    }
    if (status == DITTO_ERR_NOT_FOUND)
        return std::optional<checkpoint_file>();
    file.path.resize(status == DITTO_OK ? length : 0);
    return give(status, std::optional<checkpoint_file>(std::move(file)));
}
} // namespace detail

// The checkpoint with the highest step in a folder, or none.
inline outcome<std::optional<checkpoint_file>> latest_checkpoint(const std::string &folder,
                                                                 const char *prefix = nullptr)
{
    return detail::find_checkpoint(
        [&](char *path, std::size_t capacity, std::size_t *length, std::int64_t *step) {
            return ditto_checkpoint_latest(nullptr, folder.c_str(), prefix, path, capacity, length, step);
        });
}

// The same in a folder of the first host. All hosts get the path and the step.
inline outcome<std::optional<checkpoint_file>> latest_checkpoint(strategy_view strategy,
                                                                 const std::string &folder,
                                                                 const char *prefix = nullptr)
{
    return detail::find_checkpoint([&](char *path, std::size_t capacity, std::size_t *length,
                                       std::int64_t *step) {
        return ditto_checkpoint_latest(strategy.get(), folder.c_str(), prefix, path, capacity, length, step);
    });
}

} // namespace DITTO_CPP_SPACE
} // namespace ditto

#endif
