// include/ditto.hpp - ditto for C++17: handles, typed collectives on ranges, lambdas as functions of a run.
//
//     #include <ditto.hpp>
//     #include <cstdio>
//
//     int main()
//     {
//         ditto::strategy strategy(4);
//         strategy.run([](ditto::replica self) {
//             double mean = self.all_reduce(self.id() + 1.0, DITTO_MEAN);
//             if (self.id() == 0)
//                 std::printf("mean over %u replicas: %g\n", self.size(), mean);
//         });
//     }
//
// Datasets and batches are in ditto/input.hpp and optimizers in ditto/optimizer.hpp, which this header
// includes. It does not include ditto/checkpoint.hpp, because checkpoints need the library ditto-hdf5.
//
// Everything here is inline and calls the functions of ditto.h, whose pages say what each of them means,
// which errors it has, and what it costs. C functions and structs can be used beside it: `get()` of every
// object is the C handle, `call` gives their errors as this header does, and `make` wraps the objects that
// they create.
//
// Errors. An error of ditto is thrown as ditto::error, which has the whole ditto_error. In code that is built
// without exceptions (-fno-exceptions), or with DITTO_RESULTS defined, every function that can fail returns a
// ditto::result instead, which has the value or the error. The two kinds of code can be linked into one
// program.
//
// Exceptions on a replica. An exception that leaves a function of a run ends the run on all replicas, and
// comes out of `run` as it was thrown, on the caller's thread. If several replicas throw, it is one of
// theirs. Over several hosts, the other hosts throw ditto::error with DITTO_ERR_USER and the text of the
// exception. The same holds for the functions of merge_call, all_reduce_with, all_reduce_through, block_sum,
// parallel_for and parallel_reduce, which may be left by exceptions too.
#ifndef DITTO_HPP
#define DITTO_HPP

// A file that does not exist ends the compilation, so that no other messages hide this one.
#if __cplusplus < 201703L
#error "ditto.hpp needs C++17: compile with -std=c++17 or a later standard"
#include "ditto.hpp needs C++17"
#endif

#include <ditto.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory_resource>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif
#if defined(__cpp_lib_span)
#include <span>
#endif

#if defined(__cpp_exceptions) && !defined(DITTO_RESULTS)
#define DITTO_CPP_THROWS 1
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif
#else
#define DITTO_CPP_THROWS 0
#endif

namespace ditto
{
// The category of std::error_code for statuses of ditto.
inline const std::error_category &category() noexcept
{
    class statuses final : public std::error_category
    {
        const char *name() const noexcept override
        {
            return "ditto";
        }
        std::string message(int status) const override
        {
            switch (status) {
#define DITTO_SENTENCE(name, value, sentence) \
    case name:                                \
        return sentence;
                DITTO_STATUS_LIST(DITTO_SENTENCE)
#undef DITTO_SENTENCE
            default:
                return "unknown status";
            }
        }
    };
    static const statuses instance;
    return instance;
}

// The names of both kinds of code differ for the linker.
#if DITTO_CPP_THROWS
#define DITTO_CPP_SPACE throws
#else
#define DITTO_CPP_SPACE results
#endif
inline namespace DITTO_CPP_SPACE
{

// -- errors --

// An error of ditto, with all that the C functions say of it.
class error : public std::exception
{
  public:
    explicit error(const ditto_error &record) noexcept : record_(record) {}
    error(ditto_status status, const char *message) noexcept : record_()
    {
        record_.status = status;
        record_.replica = -1;
        record_.function = "";
        std::snprintf(record_.message, sizeof record_.message, "%s", message);
    }
    const char *what() const noexcept override
    {
        return record_.message;
    }
    ditto_status status() const noexcept
    {
        return record_.status;
    }
    const ditto_error &record() const noexcept
    {
        return record_;
    }
    std::error_code code() const noexcept;

  private:
    ditto_error record_;
};

inline std::error_code error::code() const noexcept
{
    return { static_cast<int>(status()), category() };
}

// A value, or the error because of which there is none.
template <class T> class [[nodiscard]] result
{
  public:
    result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
    result(error failure) : held_(std::in_place_index<1>, std::move(failure)) {}
    explicit operator bool() const noexcept
    {
        return held_.index() == 0;
    }
    // The value. Without one, the program ends with the message of the error.
    T &value() &
    {
        if (!*this) {
            std::fprintf(stderr, "ditto: %s\n", failure().what());
            std::abort();
        }
        return *std::get_if<0>(&held_);
    }
    T &&value() &&
    {
        return std::move(value());
    }
    T &operator*() &
    {
        return value();
    }
    T &&operator*() &&
    {
        return std::move(value());
    }
    T *operator->()
    {
        return &value();
    }
    // The error. There must be one.
    const error &failure() const
    {
        return *std::get_if<1>(&held_);
    }
    std::error_code code() const
    {
        return *this ? std::error_code() : failure().code();
    }

  private:
    std::variant<T, error> held_;
};

template <> class [[nodiscard]] result<void>
{
  public:
    result() = default;
    result(error failure) : held_(std::move(failure)) {}
    explicit operator bool() const noexcept
    {
        return !held_;
    }
    void value() const
    {
        if (held_) {
            std::fprintf(stderr, "ditto: %s\n", held_->what());
            std::abort();
        }
    }
    const error &failure() const
    {
        return *held_;
    }
    std::error_code code() const
    {
        return held_ ? held_->code() : std::error_code();
    }

  private:
    std::optional<error> held_;
};

// What a function that can fail returns: T, or a result<T> in code without exceptions.
#if DITTO_CPP_THROWS
template <class T> using outcome = T;
#else
template <class T> using outcome = result<T>;
#endif

namespace detail
{

// For statuses that a destructor cannot give.
inline void ignore(ditto_status) noexcept {}

// Gives a status as this header does. The record of this thread is that of the call.
inline outcome<void> done(ditto_status status)
{
#if DITTO_CPP_THROWS
    if (status < 0)
        throw error(*ditto_last_error());
#else
    if (status < 0)
        return error(*ditto_last_error());
    return {};
#endif
}

// Gives a status and the result of a call.
template <class T> outcome<T> give(ditto_status status, T value)
{
#if DITTO_CPP_THROWS
    if (status < 0)
        throw error(*ditto_last_error());
    return value;
#else
    if (status < 0)
        return error(*ditto_last_error());
    return result<T>(std::move(value));
#endif
}

#if DITTO_CPP_THROWS
// The first exception of several threads.
class first_exception
{
  public:
    // Keeps the exception that is being handled, unless there is one already, and fails with its text.
    ditto_status keep(ditto_replica *self) noexcept
    {
        std::exception_ptr current = std::current_exception();
        if (!claimed_.exchange(true)) {
            held_ = current;
            kept_.store(true, std::memory_order_release);
        }
        try {
            std::rethrow_exception(current);
        } catch (const error &e) {
            return ditto_fail(self, 0, "%s", e.what());
        } catch (const std::exception &e) {
            return ditto_fail(self, 0, "%s", e.what());
        } catch (...) {
            return ditto_fail(self, 0, "an exception that is no std::exception");
        }
    }
    bool kept() const noexcept
    {
        return kept_.load(std::memory_order_acquire);
    }
    [[noreturn]] void rethrow()
    {
        std::rethrow_exception(held_);
    }

  private:
    std::atomic<bool> claimed_{ false }, kept_{ false };
    std::exception_ptr held_;
};
#endif

// Returns true if the record of this thread is that of the error.
inline bool is_last(const error &e) noexcept
{
    const ditto_error *last = ditto_last_error();
    return last->status == e.status() && std::strcmp(last->message, e.what()) == 0;
}

template <class T> inline constexpr bool is_result = false;
template <class T> inline constexpr bool is_result<result<T>> = true;

// Returns the status of a function of the user's, which returns nothing, a status, or a result.
template <class F> ditto_status status_of(ditto_replica *self, F &&function)
{
    using returned = decltype(function());
    if constexpr (std::is_void_v<returned>) {
        function();
        return DITTO_OK;
    } else if constexpr (std::is_same_v<returned, ditto_status>) {
        return function();
    } else {
        static_assert(is_result<std::decay_t<returned>>,
                      "the function must return nothing, a ditto_status or a ditto::result<void>: "
                      "write values to a variable that it captures");
        returned r = function();
        if (r)
            return DITTO_OK;
        if (is_last(r.failure()) || r.failure().status() == DITTO_ERR_PEER_STOPPED)
            return r.failure().status();
        return ditto_fail(self, 0, "%s", r.failure().what());
    }
}

// True if a loop calls a copy of the callable, which lies on the stack of the calling thread. No store of the
// loop can change what such a copy has captured by value, so that the compiler keeps it in registers. The
// copy is const. A callable that can be called only if it is not const may change itself, and one that is
// large would fill the stack: loops call these in place.
template <class F, class... A> constexpr bool is_copied()
{
    if constexpr (std::is_object_v<F>)
        return std::is_trivially_copyable_v<F> && std::is_convertible_v<const F &, F> && sizeof(F) <= 1024 &&
               std::is_invocable_v<const F &, A...>;
    else
        return false;
}

// The object that a loop calls. It is made from a `local &`, so that a copy is one of a const callable.
template <bool copied, class F> using local = std::conditional_t<copied, const F, F &>;

// Calls a part of a loop. Only a function that needs it gets the number of the device.
template <class F>
decltype(auto) call_part(F &part, std::size_t first, std::size_t last, std::uint32_t device)
{
    if constexpr (std::is_invocable_v<F &, std::size_t, std::size_t>)
        return part(first, last);
    else
        return part(first, last, device);
}
// Asks only for the arguments that call_part gives. The question alone may make the compiler translate the
// body of a generic lambda, which need not be valid for others.
template <class F> constexpr bool part_is_copied()
{
    if constexpr (std::is_invocable_v<F &, std::size_t, std::size_t>)
        return is_copied<F, std::size_t, std::size_t>();
    else
        return is_copied<F, std::size_t, std::size_t, std::uint32_t>();
}

// A function of the user's, which C calls. Its exceptions wait here until the C function has returned.
template <class F> struct function {
    F *callable;
#if DITTO_CPP_THROWS
    first_exception exception;
#endif

    explicit function(F &f) : callable(&f) {}

    // `self` may be null, as in ditto_fail.
    template <class G> ditto_status guard(ditto_replica *self, G &&call) noexcept(!DITTO_CPP_THROWS)
    {
#if DITTO_CPP_THROWS
        try {
            return status_of(self, call);
#if defined(__GLIBCXX__)
        } catch (abi::__forced_unwind &) {
            throw; // a thread that is cancelled, or calls pthread_exit
#endif
        } catch (const error &e) {
            // That of the call that has just failed. The error of another replica is kept there.
            if (is_last(e) || e.status() == DITTO_ERR_PEER_STOPPED)
                return e.status();
            return exception.keep(self);
        } catch (...) {
            return exception.keep(self);
        }
#else
        return status_of(self, call);
#endif
    }

    // Gives the status of the C function.
    outcome<ditto_status> end(ditto_status status)
    {
#if DITTO_CPP_THROWS
        if (status == DITTO_ERR_USER && exception.kept())
            exception.rethrow();
#endif
        return give(status, status);
    }
};

} // namespace detail

// Calls a C function, and gives its error as this header does. Returns a status that is no error.
//     ditto::call(ditto_next, self.get(), iterator.get(), &batch);
template <class... P, class... A> outcome<ditto_status> call(ditto_status (*function)(P...), A &&...arguments)
{
    ditto_status status = function(std::forward<A>(arguments)...);
    return detail::give(status, status);
}

// -- elements --

// An f16 and a bf16, as bits.
struct float16 {
    std::uint16_t bits;
};
struct bfloat16 {
    std::uint16_t bits;
};

namespace detail
{
template <class T> constexpr ditto_dtype find_dtype()
{
    using E = std::remove_cv_t<T>;
    constexpr bool is_number = std::is_integral_v<E> && !std::is_same_v<E, char> &&
                               !std::is_same_v<E, wchar_t> && !std::is_same_v<E, char16_t> &&
                               !std::is_same_v<E, char32_t>
#if defined(__cpp_char8_t)
                               && !std::is_same_v<E, char8_t>
#endif
        ;
    if (std::is_same_v<E, float>)
        return DITTO_F32;
    if (std::is_same_v<E, double>)
        return DITTO_F64;
    if (std::is_same_v<E, float16>)
        return DITTO_F16;
    if (std::is_same_v<E, bfloat16>)
        return DITTO_BF16;
    if (std::is_same_v<E, std::complex<float>>)
        return DITTO_C64;
    if (std::is_same_v<E, std::complex<double>>)
        return DITTO_C128;
    if (std::is_same_v<E, bool>)
        return sizeof(bool) == 1 ? DITTO_BOOL : ditto_dtype{};
    if (is_number)
        switch (sizeof(E)) {
        case 1:
            return std::is_signed_v<E> ? DITTO_I8 : DITTO_U8;
        case 2:
            return std::is_signed_v<E> ? DITTO_I16 : DITTO_U16;
        case 4:
            return std::is_signed_v<E> ? DITTO_I32 : DITTO_U32;
        case 8:
            return std::is_signed_v<E> ? DITTO_I64 : DITTO_U64;
        default:
            break;
        }
    return ditto_dtype{};
}
} // namespace detail

// True if T is an element of ditto.
template <class T> inline constexpr bool is_element = detail::find_dtype<T>() != ditto_dtype{};

// The dtype of T.
template <class T> constexpr ditto_dtype dtype_of()
{
    static_assert(is_element<T>, "ditto has no dtype for this type: see ditto/dtype.h");
    return detail::find_dtype<T>();
}

// A range of elements that lie one behind the other.
template <class T> class span
{
  public:
    using element_type = T;
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::size_t N> constexpr span(T (&array)[N]) noexcept : data_(array), size_(N) {}
    // Anything with data() and size(): vectors, arrays, std::span, other spans.
    template <class C, class = std::enable_if_t<std::is_convertible_v<
                           std::remove_pointer_t<decltype(std::declval<C &>().data())> (*)[], T (*)[]>>>
    constexpr span(C &&range) noexcept : data_(range.data()), size_(range.size())
    {
    }
    constexpr T *data() const noexcept
    {
        return data_;
    }
    constexpr std::size_t size() const noexcept
    {
        return size_;
    }
    constexpr T *begin() const noexcept
    {
        return data_;
    }
    constexpr T *end() const noexcept
    {
        return data_ + size_;
    }
    constexpr T &operator[](std::size_t i) const noexcept
    {
        return data_[i];
    }
    constexpr span subspan(std::size_t first, std::size_t count) const noexcept
    {
        return { data_ + first, count };
    }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};
template <class C> span(C &&range) -> span<std::remove_pointer_t<decltype(std::declval<C &>().data())>>;
template <class T, std::size_t N> span(T (&)[N]) -> span<T>;
template <class T> span(T *, std::size_t) -> span<T>;

namespace detail
{

// The elements of a range: `decltype(elements(v))::element_type` is T, or const T.
template <class R> constexpr auto elements(R &&range) noexcept
{
    using pointer = decltype(std::data(range));
    return span<std::remove_pointer_t<pointer>>(std::data(range), std::size(range));
}
template <class R> using element_of = std::remove_pointer_t<decltype(std::data(std::declval<R &>()))>;

template <class It> struct is_contiguous : std::is_pointer<It> {
};
#if defined(__cpp_lib_concepts)
template <std::contiguous_iterator It>
requires(!std::is_pointer_v<It>) struct is_contiguous<It> : std::true_type {
};
#elif defined(__GLIBCXX__)
template <class T, class C> struct is_contiguous<__gnu_cxx::__normal_iterator<T *, C>> : std::true_type {
};
#elif defined(_LIBCPP_VERSION)
template <class T> struct is_contiguous<std::__wrap_iter<T *>> : std::true_type {
};
#endif

// Gives an error that is found here, and not by the library. `function` is the C function that is not called
// because of it. With the replica, the record says the same as that of an error of the C function.
template <class T>
outcome<T> fail(const char *function, const char *message, ditto_status status = DITTO_ERR_INVALID)
{
    ditto_context here = DITTO_CONTEXT_INIT;
    ditto_error record = ditto_error();
    record.status = status;
    record.replica = -1;
    record.function = function;
    if (ditto_get_context(&here) == DITTO_OK && here.kind == DITTO_CONTEXT_REPLICA && here.has_strategy)
        record.replica = static_cast<std::int32_t>(ditto_replica_id(ditto_get_replica_context()));
    std::snprintf(record.message, sizeof record.message, "%s", message);
#if DITTO_CPP_THROWS
    throw error(record);
#else
    return error(record);
#endif
}

// Fails as above, because two numbers do not belong together.
template <class T>
outcome<T> fail(const char *function, const char *message, std::size_t found, std::size_t other)
{
    char text[200];
    std::snprintf(text, sizeof text, "%s: %zu and %zu", message, found, other);
    return fail<T>(function, text);
}

// Ranges of operations that are started must not end with the statement.
template <class T> struct is_view : std::false_type {
};
template <class T> struct is_view<span<T>> : std::true_type {
};
#if defined(__cpp_lib_span)
template <class T, std::size_t N> struct is_view<std::span<T, N>> : std::true_type {
};
#endif
template <class R>
inline constexpr bool stays = std::is_lvalue_reference_v<R> || is_view<std::remove_cv_t<R>>::value;

// A parameter from which T is not deduced, so that a vector can be given for a span.
template <class T> struct identity {
    using type = T;
};

} // namespace detail

// The elements of [first, last), iterators of an array, a vector or a string.
//     self.all_reduce(ditto::elements(v.begin(), v.begin() + 10));
template <class It> auto elements(It first, It last) noexcept
{
    static_assert(detail::is_contiguous<It>::value, "the elements must lie one behind the other");
    using T = std::remove_reference_t<decltype(*first)>;
    std::size_t size = static_cast<std::size_t>(last - first);
    return span<T>(size != 0 ? &*first : nullptr, size);
}

// A tensor of the elements, which stay where they are. Without a shape it has one dimension. A shape has as
// many elements as the range.
template <class T> ditto_tensor tensor(span<T> elements, std::initializer_list<std::size_t> shape = {})
{
    ditto_tensor t = ditto_tensor();
    t.data = const_cast<std::remove_const_t<T> *>(elements.data());
    t.dtype = dtype_of<T>();
    t.rank = static_cast<std::uint32_t>(shape.size() != 0 ? shape.size() : 1);
    t.shape[0] = elements.size();
    std::copy_n(shape.begin(), std::min(shape.size(), std::size_t(DITTO_MAX_RANK)), t.shape);
    return t;
}
// A tensor of the elements of a vector, an array or another range, which must outlive it.
template <class C, class T = detail::element_of<C &>>
ditto_tensor tensor(C &range, std::initializer_list<std::size_t> shape = {})
{
    return tensor(span<T>(std::data(range), std::size(range)), shape);
}

// -- handles --

namespace detail
{
// True if a C object is gone after its destroy has returned an error.
template <class Object> bool is_gone_after(ditto_status status) noexcept
{
    return status == DITTO_ERR_POISONED;
}
// Over several hosts a strategy is also gone if the hosts could not agree on its end.
template <> inline bool is_gone_after<ditto_strategy>(ditto_status status) noexcept
{
    return status != DITTO_ERR_BUSY && status != DITTO_ERR_CONTEXT;
}
} // namespace detail

// Owns an object of ditto. It can be moved, and destroys the object when it ends. A destructor cannot give an
// error: if destroying fails, the object stays, and the message is the last error of the thread. Call
// destroy() where that matters.
template <class Object, ditto_status (*Destroy)(Object *)> class handle
{
  public:
    using object = Object;
    handle() noexcept = default;
    explicit handle(Object *owned) noexcept : owned_(owned) {}
    handle(handle &&other) noexcept : owned_(other.release()) {}
    handle &operator=(handle &&other) noexcept
    {
        if (this != &other) {
            end();
            owned_ = other.release();
        }
        return *this;
    }
    ~handle()
    {
        end();
    }

    Object *get() const noexcept
    {
        return owned_;
    }
    explicit operator bool() const noexcept
    {
        return owned_ != nullptr;
    }
    // Gives up the object, which the caller then owns.
    Object *release() noexcept
    {
        return std::exchange(owned_, nullptr);
    }
    // Destroys the object. After an error it is still there, except after DITTO_ERR_POISONED. A checkpointer
    // is there only after DITTO_ERR_BUSY and DITTO_ERR_CONTEXT.
    outcome<void> destroy()
    {
        ditto_status status = end();
        return detail::done(status);
    }

  private:
    ditto_status end() noexcept
    {
        ditto_status status = owned_ != nullptr ? Destroy(owned_) : DITTO_OK;
        if (status >= 0 || detail::is_gone_after<Object>(status))
            owned_ = nullptr;
        return status;
    }
    Object *owned_ = nullptr;
};

using cluster = handle<ditto_cluster, ditto_cluster_destroy>;
using grouping = handle<ditto_grouping, ditto_grouping_destroy>;
using queue = handle<ditto_queue, ditto_queue_destroy>;
using value = handle<ditto_value, ditto_value_destroy>;

// Calls a C function that creates an object, whose last parameter is the place for it.
//     auto ready = ditto::make<ditto::queue>(ditto_queue_create, &options);
template <class Handle, class... P, class... A>
outcome<Handle> make(ditto_status (*create)(P...), A &&...arguments)
{
    typename Handle::object *made = nullptr;
    ditto_status status = create(std::forward<A>(arguments)..., &made);
    return detail::give(status, Handle(status >= 0 ? made : nullptr));
}

// -- a replica --

class strategy_view;
class batch;     // ditto/input.hpp
class dataset;   // ditto/input.hpp
class iterator;  // ditto/input.hpp
class optimizer; // ditto/optimizer.hpp
class step;      // ditto/optimizer.hpp

// A variable of elements T. Created by a strategy.
template <class T> class variable : public handle<ditto_variable, ditto_variable_destroy>
{
  public:
    using handle<ditto_variable, ditto_variable_destroy>::handle;

    // The number of elements.
    std::size_t size() const
    {
        ditto_tensor spec = ditto_tensor();
        std::size_t size = ditto_variable_spec(get(), &spec) == DITTO_OK ? 1 : 0;
        for (std::uint32_t i = 0; i < spec.rank; i++)
            size *= spec.shape[i];
        return size;
    }
    // Outside of a run, and in merge functions.
    outcome<std::vector<T>> read() const
    {
        static_assert(!std::is_same_v<T, bool>,
                      "a std::vector<bool> has no elements: use ditto_variable_read");
        std::vector<T> values(size());
        ditto_status status = ditto_variable_read(get(), values.data(), values.size() * sizeof(T));
        return detail::give(status, std::move(values));
    }
    outcome<void> assign(span<const T> values)
    {
        return detail::done(
            ditto_variable_assign(get(), DITTO_ASSIGN, values.data(), values.size() * sizeof(T)));
    }
};

// A collective that was started. It must be waited for in the same run, and its ranges must stay until then.
// If an exception ends the function before, the run ends, and all buffers may be used when the operation's
// own destructor has returned.
class pending
{
  public:
    pending(ditto_replica *self, const ditto_pending &started) noexcept : self_(self), started_(started) {}
    pending(pending &&other) noexcept
        : self_(other.self_), started_(std::exchange(other.started_, ditto_pending()))
    {
    }
    pending &operator=(pending &&) = delete;
    ~pending()
    {
        // The run has stopped then, and no buffer is touched any more. Without exceptions, it is left because
        // a call has failed.
        if (started_.number == 0)
            return;
        ditto_status failed = ditto_last_error()->status;
        if (DITTO_CPP_THROWS || failed >= 0)
            failed = ditto_fail(
                self_, 0,
                "a started operation was left before it was waited for, by an exception or by "
                "mistake");
        detail::ignore(ditto_abandon(self_, failed));
    }
    outcome<void> wait(const ditto_reduce_options *options = nullptr)
    {
        return detail::done(ditto_wait(self_, &started_, options));
    }
    // Returns true if the operation is complete, and counts as waited for.
    outcome<bool> test()
    {
        ditto_status status = ditto_test(self_, &started_);
        return detail::give(status, status == DITTO_OK);
    }

  private:
    ditto_replica *self_;
    ditto_pending started_;
};

// Memory of a replica's arena, near its PUs, for containers of std::pmr. It belongs to the replica's own
// thread.
class arena final : public std::pmr::memory_resource
{
  public:
    explicit arena(ditto_replica *self) noexcept : self_(self) {}

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        void *memory = nullptr;
        if (ditto_alloc(self_, bytes, alignment, &memory) != DITTO_OK) {
#if DITTO_CPP_THROWS
            throw std::bad_alloc();
#else
            std::fprintf(stderr, "ditto: %s\n", ditto_last_error()->message);
            std::abort();
#endif
        }
        return memory;
    }
    void do_deallocate(void *memory, std::size_t, std::size_t) override
    {
        detail::ignore(ditto_free(self_, memory));
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
#if defined(__cpp_rtti)
        auto same = dynamic_cast<const arena *>(&other);
        return same != nullptr && same->self_ == self_;
#else
        return this == &other;
#endif
    }
    ditto_replica *self_;
};

// A tensor that a collective has made in memory of a replica, which it frees. It belongs to the replica's own
// thread, and must be gone before the replica's function returns.
class owned_tensor
{
  public:
    owned_tensor(ditto_replica *self, const ditto_tensor &made) noexcept : self_(self), made_(made) {}
    owned_tensor(owned_tensor &&other) noexcept
        : self_(other.self_), made_(std::exchange(other.made_, ditto_tensor()))
    {
    }
    owned_tensor &operator=(owned_tensor &&other) noexcept
    {
        std::swap(self_, other.self_);
        std::swap(made_, other.made_);
        return *this;
    }
    ~owned_tensor()
    {
        if (made_.data != nullptr)
            detail::ignore(ditto_free(self_, made_.data));
    }
    const ditto_tensor &get() const noexcept
    {
        return made_;
    }
    // T is the type of the tensor's dtype.
    template <class T> span<const T> elements() const noexcept
    {
        return span<const T>(static_cast<const T *>(made_.data), ditto_tensor_bytes(&made_) / sizeof(T));
    }

  private:
    ditto_replica *self_;
    ditto_tensor made_;
};

// A replica, on its own thread, in a function of a run. It is copied freely, and owns nothing.
//
// Collectives take ranges: vectors, arrays, spans, and elements(first, last). A range that is read and one
// that is written have the same elements and, unless stated, the same size; otherwise DITTO_ERR_INVALID,
// before anything is sent. With one range they work in place. With options->group they are of this group
// alone: roots, parts and partners are then ranks in it, and its size stands for size().
class replica
{
  public:
    explicit replica(ditto_replica *self) noexcept : self_(self) {}
    ditto_replica *get() const noexcept
    {
        return self_;
    }
    std::uint32_t id() const noexcept
    {
        return ditto_replica_id(self_);
    }
    // The number of replicas, of all hosts.
    std::uint32_t size() const noexcept
    {
        return ditto_num_replicas(self_);
    }
    bool is_first_of_host() const noexcept
    {
        return ditto_replica_is_first_of_host(self_) != 0;
    }
    ditto::arena arena() const noexcept
    {
        return ditto::arena(self_);
    }
    // The group of this replica, for the options of collectives of this run. Its size is 0 if there is none.
    outcome<ditto_group> group(const grouping &all) const
    {
        ditto_group own = ditto_group();
        ditto_status status = ditto_group_of(self_, all.get(), &own);
        return detail::give(status, own);
    }

    outcome<void> barrier(const ditto_reduce_options *options = nullptr) const
    {
        return detail::done(ditto_barrier(self_, options));
    }

    // In place.
    template <class R, class = std::enable_if_t<is_element<detail::element_of<R>>>>
    outcome<void> all_reduce(R &&range, ditto_op op = DITTO_SUM,
                             const ditto_reduce_options *options = nullptr) const
    {
        auto e = detail::elements(range);
        return detail::done(ditto_all_reduce(self_, e.data(), e.data(), e.size(),
                                             dtype_of<detail::element_of<R>>(), op, options));
    }
    template <class S, class D, class = std::enable_if_t<is_element<detail::element_of<S>>>,
              class = detail::element_of<D>>
    outcome<void> all_reduce(const S &src, D &&dst, ditto_op op = DITTO_SUM,
                             const ditto_reduce_options *options = nullptr) const
    {
        return moved("ditto_all_reduce", src, dst, 1, 1, [&](auto s, auto d, ditto_dtype dtype) {
            return ditto_all_reduce(self_, s.data(), d.data(), s.size(), dtype, op, options);
        });
    }
    // One element, whose result is returned.
    template <class T, class = std::enable_if_t<is_element<T>>, class = void>
    outcome<T> all_reduce(T element, ditto_op op = DITTO_SUM,
                          const ditto_reduce_options *options = nullptr) const
    {
        ditto_status status = ditto_all_reduce(self_, &element, &element, 1, dtype_of<T>(), op, options);
        return detail::give(status, element);
    }
    // In place, with a function T(const T &left, const T &right), in the order of replicas. T is any type
    // that can be copied byte by byte. A small function may be copied, as in parallel_for.
    template <class R, class F>
    outcome<void> all_reduce_with(R &&range, F &&combine, const ditto_reduce_options *options = nullptr) const
    {
        return combined(range, combine, [&](auto e, ditto_combine_fn each, void *user) {
            return ditto_all_reduce_with(self_, e.data(), e.data(), e.size(), sizeof(*e.data()), each, user,
                                         options);
        });
    }
    // What the replicas up to this one have together: in place, from one range to another, of one element.
    template <class R, class = std::enable_if_t<is_element<detail::element_of<R>>>>
    outcome<void> scan(R &&range, ditto_op op = DITTO_SUM,
                       const ditto_reduce_options *options = nullptr) const
    {
        auto e = detail::elements(range);
        return detail::done(
            ditto_scan(self_, e.data(), e.data(), e.size(), dtype_of<detail::element_of<R>>(), op, options));
    }
    template <class S, class D, class = std::enable_if_t<is_element<detail::element_of<S>>>,
              class = detail::element_of<D>>
    outcome<void> scan(const S &src, D &&dst, ditto_op op = DITTO_SUM,
                       const ditto_reduce_options *options = nullptr) const
    {
        return moved("ditto_scan", src, dst, 1, 1, [&](auto s, auto d, ditto_dtype dtype) {
            return ditto_scan(self_, s.data(), d.data(), s.size(), dtype, op, options);
        });
    }
    template <class T, class = std::enable_if_t<is_element<T>>, class = void>
    outcome<T> scan(T element, ditto_op op = DITTO_SUM, const ditto_reduce_options *options = nullptr) const
    {
        ditto_status status = ditto_scan(self_, &element, &element, 1, dtype_of<T>(), op, options);
        return detail::give(status, element);
    }
    // What the replicas before this one have together. There are none before replica 0. Its dst is left as it
    // is, and the function of one element returns `none` there.
    template <class S, class D, class = std::enable_if_t<is_element<detail::element_of<S>>>,
              class = detail::element_of<D>>
    outcome<void> scan_exclusive(const S &src, D &&dst, ditto_op op = DITTO_SUM,
                                 const ditto_reduce_options *options = nullptr) const
    {
        return moved("ditto_scan_exclusive", src, dst, 1, 1, [&](auto s, auto d, ditto_dtype dtype) {
            return ditto_scan_exclusive(self_, s.data(), d.data(), s.size(), dtype, op, options);
        });
    }
    template <class T, class = std::enable_if_t<is_element<T>>, class = void>
    outcome<T> scan_exclusive(T element, std::common_type_t<T> none, ditto_op op = DITTO_SUM,
                              const ditto_reduce_options *options = nullptr) const
    {
        ditto_status status = ditto_scan_exclusive(self_, &element, &none, 1, dtype_of<T>(), op, options);
        return detail::give(status, none);
    }
    // In place, with a function as in all_reduce_with. Replica 0 of an exclusive scan keeps its elements.
    template <class R, class F>
    outcome<void> scan_with(R &&range, F &&combine, const ditto_reduce_options *options = nullptr) const
    {
        return scanned(range, combine, 0, options);
    }
    template <class R, class F>
    outcome<void> scan_exclusive_with(R &&range, F &&combine,
                                      const ditto_reduce_options *options = nullptr) const
    {
        return scanned(range, combine, 1, options);
    }
    // In place. The function of replica 0 is called with the combined array, as void(T *first, T *last), and
    // all replicas receive what it leaves there.
    template <class R, class F>
    outcome<void> all_reduce_through(R &&range, F &&through, ditto_op op = DITTO_SUM,
                                     const ditto_reduce_options *options = nullptr) const
    {
        using T = detail::element_of<R>;
        using callable = std::remove_reference_t<F>;
        auto e = detail::elements(range);
        detail::function<callable> f(through);
        auto pass = [](void *buffer, std::size_t count, ditto_dtype, void *user) {
            auto &called = *static_cast<detail::function<callable> *>(user);
            T *first = static_cast<T *>(buffer);
            return called.guard(nullptr, [&] { (*called.callable)(first, first + count); });
        };
        return ended(f, ditto_all_reduce_through(self_, e.data(), e.data(), e.size(), dtype_of<T>(), op, pass,
                                                 &f, options));
    }
    // The result is on the root alone. In place.
    template <class R>
    outcome<void> reduce(R &&range, std::uint32_t root, ditto_op op = DITTO_SUM,
                         const ditto_reduce_options *options = nullptr) const
    {
        auto e = detail::elements(range);
        return detail::done(ditto_reduce_to_root(self_, e.data(), e.data(), e.size(),
                                                 dtype_of<detail::element_of<R>>(), op, root, options));
    }
    template <class R, class = std::enable_if_t<is_element<detail::element_of<R>>>>
    outcome<void> broadcast(R &&range, std::uint32_t root,
                            const ditto_reduce_options *options = nullptr) const
    {
        auto e = detail::elements(range);
        return detail::done(ditto_broadcast_from_root(self_, e.data(), e.size(),
                                                      dtype_of<detail::element_of<R>>(), root, options));
    }
    template <class T, class = std::enable_if_t<is_element<T>>, class = void>
    outcome<T> broadcast(T element, std::uint32_t root, const ditto_reduce_options *options = nullptr) const
    {
        ditto_status status = ditto_broadcast_from_root(self_, &element, 1, dtype_of<T>(), root, options);
        return detail::give(status, element);
    }
    // src has size() times as many elements as dst.
    template <class S, class D>
    outcome<void> reduce_scatter(const S &src, D &&dst, ditto_op op = DITTO_SUM,
                                 const ditto_reduce_options *options = nullptr) const
    {
        return moved("ditto_reduce_scatter", src, dst, 1, participants(options),
                     [&](auto s, auto d, ditto_dtype dtype) {
                         return ditto_reduce_scatter(self_, s.data(), d.data(), d.size(), nullptr, dtype, op,
                                                     options);
                     });
    }
    // dst has size() times as many elements as src.
    template <class S, class D, class = detail::element_of<D>>
    outcome<void> all_gather(const S &src, D &&dst, const ditto_reduce_options *options = nullptr) const
    {
        return moved(
            "ditto_all_gather", src, dst, participants(options), 1, [&](auto s, auto d, ditto_dtype dtype) {
                return ditto_all_gather(self_, s.data(), d.data(), s.size(), nullptr, dtype, options);
            });
    }
    // src and dst have size() parts of equal size. Part k of src goes to replica k. They may be one range.
    template <class S, class D>
    outcome<void> all_to_all(const S &src, D &&dst, const ditto_reduce_options *options = nullptr) const
    {
        std::uint32_t n = participants(options);
        if (n != 0 && std::size(src) % n != 0)
            return detail::fail<void>("ditto_all_to_all", parts, std::size(src), n);
        return moved("ditto_all_to_all", src, dst, 1, 1, [&](auto s, auto d, ditto_dtype dtype) {
            return ditto_all_to_all(self_, s.data(), d.data(), s.size() / std::max(n, 1u), nullptr, dtype,
                                    options);
        });
    }
    // The same with parts of different sizes, one after the other.
    template <class S, class D>
    outcome<void> all_to_all(const S &src, span<const std::size_t> src_counts, D &&dst,
                             span<const std::size_t> dst_counts,
                             const ditto_reduce_options *options = nullptr) const
    {
        std::uint32_t n = participants(options);
        if (n != 0 && (!add_up(src_counts, n, std::size(src)) || !add_up(dst_counts, n, std::size(dst))))
            return detail::fail<void>("ditto_all_to_all", counted, std::size(src), std::size(dst));
        ditto_all_to_all_parts given = ditto_all_to_all_parts();
        given.src_counts = src_counts.data();
        given.dst_counts = dst_counts.data();
        return moved("ditto_all_to_all", src, dst, 0, 0, [&](auto s, auto d, ditto_dtype dtype) {
            return ditto_all_to_all(self_, s.data(), d.data(), 0, &given, dtype, options);
        });
    }
    // Concatenates the tensors of all replicas along an axis.
    outcome<owned_tensor> all_gather_tensor(const ditto_tensor &src, std::uint32_t axis) const
    {
        ditto_tensor made = ditto_tensor();
        ditto_status status = ditto_all_gather_tensor(self_, &src, axis, &made);
        return detail::give(status, owned_tensor(self_, made));
    }
    // Splits each tensor along one axis, and concatenates the parts from all replicas along another.
    outcome<owned_tensor> all_to_all_tensor(const ditto_tensor &src, std::uint32_t split_axis,
                                            std::uint32_t concat_axis) const
    {
        ditto_tensor made = ditto_tensor();
        ditto_status status = ditto_all_to_all_tensor(self_, &src, split_axis, concat_axis, &made);
        return detail::give(status, owned_tensor(self_, made));
    }
    // The root receives the elements of all replicas in dst, which on others may be empty. Without counts,
    // all replicas have equally many. With counts, which are equal on all replicas, replica k has counts[k].
    template <class S, class D>
    outcome<void> gather_to_root(const S &src, D &&dst, std::uint32_t root,
                                 span<const std::size_t> counts = {},
                                 const ditto_reduce_options *options = nullptr) const
    {
        if (!parts_fit(counts, std::size(src), root, std::size(dst), options))
            return detail::fail<void>("ditto_gather_to_root", counted, std::size(src), std::size(dst));
        return moved("ditto_gather_to_root", src, dst, 0, 0, [&](auto s, auto d, ditto_dtype dtype) {
            return ditto_gather_to_root(self_, s.data(), d.data(), s.size(),
                                        counts.size() != 0 ? counts.data() : nullptr, nullptr, dtype, root,
                                        options);
        });
    }
    // Each replica receives its part of the root's src, which on others may be empty. Counts as above.
    template <class S, class D>
    outcome<void> scatter_from_root(const S &src, D &&dst, std::uint32_t root,
                                    span<const std::size_t> counts = {},
                                    const ditto_reduce_options *options = nullptr) const
    {
        if (!parts_fit(counts, std::size(dst), root, std::size(src), options))
            return detail::fail<void>("ditto_scatter_from_root", counted, std::size(src), std::size(dst));
        return moved("ditto_scatter_from_root", src, dst, 0, 0, [&](auto s, auto d, ditto_dtype dtype) {
            return ditto_scatter_from_root(self_, s.data(), d.data(), d.size(),
                                           counts.size() != 0 ? counts.data() : nullptr, nullptr, dtype, root,
                                           options);
        });
    }
    // The dot product over the elements of all replicas, whose bits do not depend on their number.
    template <class A, class B>
    outcome<std::remove_const_t<detail::element_of<const A>>> block_dot(
        const A &x, const B &y, const ditto_reduce_options *options = nullptr) const
    {
        using T = std::remove_const_t<detail::element_of<const A>>;
        static_assert(std::is_same_v<T, std::remove_const_t<detail::element_of<const B>>>,
                      "both factors have the same elements");
        T sum{};
        if (std::size(x) != std::size(y))
            return detail::fail<T>("ditto_block_dot", "the factors of a dot product have different sizes",
                                   std::size(x), std::size(y));
        ditto_status status = ditto_block_dot(self_, std::data(x), std::data(y), &sum, std::size(x),
                                              dtype_of<T>(), options);
        return detail::give(status, sum);
    }
    // The sum of `count` elements of type T for each replica, which the function T(std::size_t i) computes.
    // It must return the same element whenever it is called with the same number. A small function may be
    // copied, as in parallel_for.
    template <class T, class F>
    outcome<T> block_sum(std::size_t count, F &&element, const ditto_reduce_options *options = nullptr) const
    {
        using callable = std::remove_reference_t<F>;
        using local = detail::local<detail::is_copied<callable, std::size_t>(), callable>;
        detail::function<callable> f(element);
        T sum{};
        auto compute = [](void *out, std::size_t first, std::size_t elements, void *user) {
            auto &called = *static_cast<detail::function<callable> *>(user);
            return called.guard(nullptr, [&] {
                local own = static_cast<local &>(*called.callable);
                for (std::size_t i = 0; i < elements; i++)
                    static_cast<T *>(out)[i] = own(first + i);
            });
        };
        return ended(f, ditto_block_sum_with(self_, compute, &f, &sum, count, dtype_of<T>(), options), sum);
    }
    // One element of each replica.
    template <class T>
    outcome<std::vector<T>> all_gather(T element, const ditto_reduce_options *options = nullptr) const
    {
        static_assert(!std::is_same_v<T, bool>, "a std::vector<bool> has no elements: gather std::uint8_t");
        std::vector<T> all(participants(options));
        ditto_status status = ditto_all_gather(self_, &element, all.data(), 1, nullptr, dtype_of<T>(),
                                               options);
        return detail::give(status, std::move(all));
    }

    // Started, and waited for later.
    template <class S, class D>
    outcome<pending> all_reduce_start(S &&src, D &&dst, ditto_op op = DITTO_SUM,
                                      const ditto_reduce_options *options = nullptr) const
    {
        static_assert(detail::stays<S> && detail::stays<D>, "the ranges must outlive the operation");
        return started("ditto_all_reduce_start", src, dst, 1, 1,
                       [&](auto s, auto d, ditto_dtype dtype, ditto_pending *out) {
                           return ditto_all_reduce_start(self_, s.data(), d.data(), s.size(), dtype, op,
                                                         options, out);
                       });
    }
    template <class S, class D>
    outcome<pending> reduce_scatter_start(S &&src, D &&dst, ditto_op op = DITTO_SUM,
                                          const ditto_reduce_options *options = nullptr) const
    {
        static_assert(detail::stays<S> && detail::stays<D>, "the ranges must outlive the operation");
        return started("ditto_reduce_scatter_start", src, dst, 1, participants(options),
                       [&](auto s, auto d, ditto_dtype dtype, ditto_pending *out) {
                           return ditto_reduce_scatter_start(self_, s.data(), d.data(), d.size(), dtype, op,
                                                             options, out);
                       });
    }
    template <class S, class D>
    outcome<pending> all_gather_start(S &&src, D &&dst, const ditto_reduce_options *options = nullptr) const
    {
        static_assert(detail::stays<S> && detail::stays<D>, "the ranges must outlive the operation");
        return started("ditto_all_gather_start", src, dst, participants(options), 1,
                       [&](auto s, auto d, ditto_dtype dtype, ditto_pending *out) {
                           return ditto_all_gather_start(self_, s.data(), d.data(), s.size(), dtype, options,
                                                         out);
                       });
    }

    template <class S, class D>
    outcome<pending> all_to_all_start(S &&src, D &&dst, const ditto_reduce_options *options = nullptr) const
    {
        static_assert(detail::stays<S> && detail::stays<D>, "the ranges must outlive the operation");
        std::uint32_t n = participants(options);
        if (n != 0 && std::size(src) % n != 0)
            return detail::fail<pending>("ditto_all_to_all_start", parts, std::size(src), n);
        return started("ditto_all_to_all_start", src, dst, 1, 1,
                       [&](auto s, auto d, ditto_dtype dtype, ditto_pending *out) {
                           return ditto_all_to_all_start(self_, s.data(), d.data(),
                                                         s.size() / std::max(n, 1u), dtype, options, out);
                       });
    }

    // Gives parts to other replicas and takes theirs. `part` makes one.
    outcome<void> exchange(span<const ditto_exchange_part> parts,
                           const ditto_reduce_options *options = nullptr) const
    {
        return detail::done(ditto_exchange(self_, parts.data(), parts.size(), options));
    }
    template <class S, class D>
    static ditto_exchange_part part(std::uint32_t partner, std::uint32_t tag, S &&src, D &&dst)
    {
        static_assert(detail::stays<S> && detail::stays<D>, "the ranges must outlive the exchange");
        auto s = detail::elements(src);
        auto d = detail::elements(dst);
        static_assert(std::is_same_v<std::remove_const_t<detail::element_of<S>>, detail::element_of<D>>,
                      "both ranges of a part have the same elements");
        ditto_exchange_part p = ditto_exchange_part();
        p.replica = partner;
        p.tag = tag;
        p.src = s.data();
        p.src_count = s.size();
        p.dst = d.data();
        p.dst_count = d.size();
        p.dtype = dtype_of<detail::element_of<D>>();
        return p;
    }

    // The number of PUs that loops use. A function on one of them gets its number, from 0.
    std::uint32_t num_logical_devices() const noexcept
    {
        return ditto_num_logical_devices(self_);
    }
    // Calls function(first, last), or function(first, last, device), for parts of [begin, end), on the PUs of
    // this replica. A small function that is copied byte by byte, as most lambdas are, is copied for each
    // part. The copy is const, and changes of `mutable` members are lost with it; std::ref(function) is
    // called in place. Capture by value what the loop reads (docs/cpp.md, "Loops").
    template <class F>
    outcome<void> parallel_for(std::size_t begin, std::size_t end, F &&body, std::size_t grain = 1,
                               ditto_schedule schedule = ditto_schedule()) const
    {
        using callable = std::remove_reference_t<F>;
        using local = detail::local<detail::part_is_copied<callable>(), callable>;
        detail::function<callable> f(body);
        auto part = [](std::size_t first, std::size_t last, std::uint32_t device, void *user) {
            auto &called = *static_cast<detail::function<callable> *>(user);
            return called.guard(nullptr, [&] {
                local own = static_cast<local &>(*called.callable);
                return detail::call_part(own, first, last, device);
            });
        };
        return ended(f, ditto_parallel_for(self_, part, &f, begin, end, grain, schedule));
    }
    // Runs a loop as parallel_for does, with a function that returns an element for each part. The elements
    // are combined by the op, which may not be DITTO_MEAN, in an order that depends only on `begin`, `end`
    // and `grain`. If the loop has no indices, the function is called once, with an empty part.
    template <class F>
    auto parallel_reduce(std::size_t begin, std::size_t end, F &&body, ditto_op op = DITTO_SUM,
                         std::size_t grain = 1) const
    {
        using callable = std::remove_reference_t<F>;
        using local = detail::local<detail::part_is_copied<callable>(), callable>;
        using T = std::decay_t<decltype(detail::call_part(std::declval<local &>(), begin, end, 0u))>;
        detail::function<callable> f(body);
        T all{};
        auto part = [](std::size_t first, std::size_t last, std::uint32_t device, void *partial, void *user) {
            auto &called = *static_cast<detail::function<callable> *>(user);
            return called.guard(nullptr, [&] {
                local own = static_cast<local &>(*called.callable);
                *static_cast<T *>(partial) = detail::call_part(own, first, last, device);
            });
        };
        ditto_status status = ditto_parallel_reduce(self_, part, &f, begin, end, grain, dtype_of<T>(), op, 1,
                                                    &all);
        return ended(f, status, all);
    }

    // The present values of a variable, as this replica sees them: of a sliced one those of its slice. They
    // are valid until it is changed. Those of a parameter with DITTO_CONCURRENCY_HOGWILD or FREE_READS are
    // valid until the worker's function ends, and change meanwhile.
    template <class T> outcome<span<const T>> read(const variable<T> &v) const
    {
        const void *data = nullptr;
        ditto_tensor slice = ditto_tensor();
        ditto_status status = ditto_read(self_, v.get(), &data);
        if (status == DITTO_ERR_UNSUPPORTED && ditto_local_slice(self_, v.get(), &slice, nullptr) == DITTO_OK)
            return span<const T>(static_cast<const T *>(slice.data), ditto_tensor_bytes(&slice) / sizeof(T));
        return detail::give(status, span<const T>(static_cast<const T *>(data), status < 0 ? 0 : v.size()));
    }
    // The replica's own component of a sync-on-read variable, or all elements of a parameter with
    // DITTO_CONCURRENCY_HOGWILD, to be changed in place. Valid until the run or the worker's function ends.
    template <class T> outcome<span<T>> component(const variable<T> &v) const
    {
        void *data = nullptr;
        ditto_status status = ditto_component(self_, v.get(), &data);
        return detail::give(status, span<T>(static_cast<T *>(data), status < 0 ? 0 : v.size()));
    }
    template <class T>
    outcome<void> assign(const variable<T> &v, span<const typename detail::identity<T>::type> values) const
    {
        return written(v, DITTO_ASSIGN, values);
    }
    template <class T>
    outcome<void> assign_add(const variable<T> &v,
                             span<const typename detail::identity<T>::type> values) const
    {
        return written(v, DITTO_ASSIGN_ADD, values);
    }
    template <class T>
    outcome<void> assign_sub(const variable<T> &v,
                             span<const typename detail::identity<T>::type> values) const
    {
        return written(v, DITTO_ASSIGN_SUB, values);
    }

    // Copies a parameter, in a function of a worker. The elements of a shard belong to one version, unless
    // options->lock is DITTO_SWITCH_OFF.
    template <class T>
    outcome<void> pull(const variable<T> &v, span<T> dst, const ditto_pull_options *options = nullptr) const
    {
        if (dst.size() != v.size())
            return detail::fail<void>("ditto_pull",
                                      "the range does not have as many elements as the variable", dst.size(),
                                      v.size());
        return detail::done(ditto_pull(self_, v.get(), options, dst.data()));
    }
    template <class T>
    outcome<std::vector<T>> pull(const variable<T> &v, const ditto_pull_options *options = nullptr) const
    {
        static_assert(!std::is_same_v<T, bool>, "a std::vector<bool> has no elements: use ditto_pull");
        std::vector<T> values(v.size());
        ditto_status status = ditto_pull(self_, v.get(), options, values.data());
        return detail::give(status, std::move(values));
    }
    // The number of the worker whose function this replica executes, or UINT32_MAX.
    std::uint32_t worker() const noexcept
    {
        return ditto_worker(self_);
    }

    // Pauses all replicas, and calls function(strategy_view) once on each host.
    template <class F> outcome<void> merge_call(F &&function) const;

    // The next batch of this replica, or none at the end of the input. It is valid until the next call.
    //     while (auto batch = self.next(steps))
    outcome<std::optional<batch>> next(const iterator &steps) const;

    // One step of an optimizer, with this replica's gradients of its variables, each of the variable's shape.
    //     self.apply(optimizer, { ditto::tensor(of_weights, { 64, 10 }), ditto::tensor(of_biases) });
    outcome<void> apply(const optimizer &optimizer, std::initializer_list<ditto_tensor> gradients,
                        const ditto_apply_options *options = nullptr) const;
    outcome<void> apply(const optimizer &optimizer, span<const ditto_tensor> gradients,
                        const ditto_apply_options *options = nullptr) const;
    // A step whose parts are given one after another.
    step start_step(const optimizer &optimizer) const;

  private:
    template <class F> static outcome<void> ended(detail::function<F> &f, ditto_status status)
    {
#if DITTO_CPP_THROWS
        f.end(status);
#else
        (void)f;
        return detail::done(status);
#endif
    }
    // Ends a call that gives an element.
    template <class F, class T>
    static outcome<T> ended(detail::function<F> &f, ditto_status status, const T &given)
    {
#if DITTO_CPP_THROWS
        f.end(status);
        return given;
#else
        (void)f;
        return detail::give(status, given);
#endif
    }
    template <class S, class D> static bool fits(const S &src, D &dst, std::size_t more, std::size_t less)
    {
        using from = detail::element_of<const S>;
        static_assert(
            std::is_same_v<std::remove_const_t<from>, detail::element_of<D>>,
            "both ranges of a collective have the same elements, and the second one can be written");
        return more == 0 || less == 0 || std::size(src) * more == std::size(dst) * less;
    }
    // The number of replicas that make a call. It is 0 for a replica that is not in the group that it gives:
    // then no sizes are compared, because the C function refuses the call.
    std::uint32_t participants(const ditto_reduce_options *options) const noexcept
    {
        return options != nullptr && options->group != nullptr ? options->group->size : size();
    }
    static constexpr const char *sizes =
        "the sizes of the two ranges must be equal, or in a reduce-scatter and an all-gather one of them as "
        "many times the other one as there are replicas in the call";
    static constexpr const char
        *parts = "a range does not consist of equal parts, one for each replica in the call";
    static constexpr const char
        *counted = "the sizes of the two ranges, or the counts, do not belong together";
    static bool add_up(span<const std::size_t> counts, std::uint32_t n, std::size_t whole)
    {
        std::size_t sum = 0;
        for (std::size_t count : counts)
            sum += count;
        return counts.size() == n && sum == whole;
    }
    // For a collective with a root, which has the parts of all replicas in a range of `whole` elements.
    bool parts_fit(span<const std::size_t> counts, std::size_t own, std::uint32_t root, std::size_t whole,
                   const ditto_reduce_options *options) const
    {
        bool in_group = options != nullptr && options->group != nullptr;
        std::uint32_t n = participants(options), rank = in_group ? options->group->rank : id();
        bool is_root = rank == root;
        if (n == 0)
            return true;
        if (counts.size() == 0)
            return !is_root || own * n == whole;
        return counts.size() == n && counts[rank] == own && (!is_root || add_up(counts, n, whole));
    }
    template <class S, class D, class C>
    outcome<void> moved(const char *function, const S &src, D &dst, std::size_t more, std::size_t less,
                        C &&collective) const
    {
        if (!fits(src, dst, more, less))
            return detail::fail<void>(function, sizes, std::size(src), std::size(dst));
        return detail::done(
            collective(detail::elements(src), detail::elements(dst), dtype_of<detail::element_of<D>>()));
    }
    // Calls collective(elements, function, user) with a ditto_combine_fn that calls `combine`.
    template <class R, class F, class C> outcome<void> combined(R &range, F &combine, C &&collective) const
    {
        using T = detail::element_of<R>;
        static_assert(std::is_trivially_copyable_v<T>, "elements are copied byte by byte");
        using local = detail::local<detail::is_copied<F, const T &, const T &>(), F>;
        detail::function<F> f(combine);
        auto each = [](void *out, const void *left, const void *right, std::size_t count, void *user) {
            auto &called = *static_cast<detail::function<F> *>(user);
            return called.guard(nullptr, [&] {
                local own = static_cast<local &>(*called.callable);
                for (std::size_t i = 0; i < count; i++)
                    static_cast<T *>(out)[i] = own(static_cast<const T *>(left)[i],
                                                   static_cast<const T *>(right)[i]);
            });
        };
        return ended(f, collective(detail::elements(range), each, &f));
    }
    template <class R, class F>
    outcome<void> scanned(R &range, F &combine, int exclusive, const ditto_reduce_options *options) const
    {
        return combined(range, combine, [&](auto e, ditto_combine_fn each, void *user) {
            return ditto_scan_with(self_, e.data(), e.data(), e.size(), sizeof(*e.data()), each, user,
                                   exclusive, options);
        });
    }
    template <class S, class D, class C>
    outcome<pending> started(const char *function, const S &src, D &dst, std::size_t more, std::size_t less,
                             C &&collective) const
    {
        ditto_pending out = ditto_pending();
        if (!fits(src, dst, more, less))
            return detail::fail<pending>(function, sizes, std::size(src), std::size(dst));
        ditto_status status = collective(detail::elements(src), detail::elements(dst),
                                         dtype_of<detail::element_of<D>>(), &out);
        return detail::give(status, pending(self_, out));
    }
    // The number of elements that this replica has of a variable, which are fewer if it is sliced.
    template <class T> std::size_t own_size(const variable<T> &v) const
    {
        ditto_tensor slice = ditto_tensor();
        bool is_slice = ditto_local_slice(self_, v.get(), &slice, nullptr) == DITTO_OK;
        return is_slice ? ditto_tensor_bytes(&slice) / sizeof(T) : v.size();
    }
    template <class T>
    outcome<void> written(const variable<T> &v, ditto_assign_op op, span<const T> values) const
    {
        if (values.size() != own_size(v))
            return detail::fail<void>("ditto_assign",
                                      "the values are not as many as the elements of the variable",
                                      values.size(), own_size(v));
        return detail::done(ditto_assign(self_, v.get(), op, values.data()));
    }

    ditto_replica *self_;
};

// Returns the replica of the calling thread. Inside a run it is `self`; on a thread that is in no strategy,
// that of the default strategy. Elsewhere there is none, for example in a merge function and in functions on
// devices (ditto/context.h).
inline std::optional<replica> current_replica() noexcept
{
    ditto_replica *self = ditto_get_replica_context();
    return self != nullptr ? std::optional<replica>(self) : std::nullopt;
}

// -- a strategy --

// A strategy that somebody else owns.
class strategy_view
{
  public:
    strategy_view(ditto_strategy *strategy) noexcept : strategy_(strategy) {}
    ditto_strategy *get() const noexcept
    {
        return strategy_;
    }
    // The number of replicas, of all hosts.
    std::uint32_t size() const noexcept
    {
        return ditto_strategy_num_replicas(strategy_);
    }

    // Calls function(replica) on each replica, and waits until all have returned. It may return nothing, a
    // ditto_status, or a result<void>. Returns DITTO_OK, or the positive status that the replicas returned.
    template <class F> outcome<ditto_status> run(F &&function) const
    {
        using callable = std::remove_reference_t<F>;
        detail::function<callable> f(function);
        auto on_replica = [](ditto_replica *self, void *user) {
            auto &called = *static_cast<detail::function<callable> *>(user);
            return called.guard(self, [&] { return (*called.callable)(replica(self)); });
        };
        return f.end(ditto_strategy_run(strategy_, on_replica, &f));
    }

    // A variable with these values. Without a shape it has one dimension.
    template <class T>
    outcome<variable<T>> create_variable(span<const T> initial, std::initializer_list<std::size_t> shape = {},
                                         const ditto_variable_options *options = nullptr) const
    {
        std::size_t size = 1;
        for (std::size_t length : shape)
            size *= length;
        if (shape.size() > DITTO_MAX_RANK || (shape.size() != 0 && size != initial.size()))
            return detail::fail<variable<T>>(
                "ditto_variable_create",
                "the shape of a variable does not have as many elements as its value", size, initial.size());
        ditto_tensor t = tensor(initial, shape);
        ditto_variable *made = nullptr;
        ditto_status status = ditto_variable_create(strategy_, &t, options, &made);
        return detail::give(status, variable<T>(status >= 0 ? made : nullptr));
    }
    template <class T>
    outcome<variable<T>> create_variable(const std::vector<T> &initial,
                                         std::initializer_list<std::size_t> shape = {},
                                         const ditto_variable_options *options = nullptr) const
    {
        return create_variable(span<const T>(initial), shape, options);
    }

    // Starts a pass over a dataset. Replicas take their batches with replica::next.
    outcome<iterator> iterate(const dataset &rows, const ditto_input_options *options = nullptr) const;
    // Starts a pass over datasets that function(const ditto_input_context &) makes, one for each pipeline.
    template <class F>
    outcome<iterator> iterate_from_function(F &&function, const ditto_input_options *options = nullptr) const;

    // One group for each color, with ranks in the order of the keys, or of the ids if there are none.
    outcome<grouping> split(span<const std::uint32_t> colors, span<const std::uint32_t> keys = {}) const
    {
        if (keys.size() != 0 && keys.size() != colors.size())
            return detail::fail<grouping>("ditto_strategy_split", "the keys are not as many as the colors",
                                          keys.size(), colors.size());
        return make<grouping>(ditto_strategy_split, strategy_, colors.data(),
                              keys.size() != 0 ? keys.data() : nullptr,
                              static_cast<std::uint32_t>(colors.size()));
    }
    // A grouping for each axis of a mesh of replicas, whose last axis runs fastest.
    //     auto axes = strategy.mesh({ { "data", 2 }, { "tensor", 4 } });
    template <std::size_t N> outcome<std::array<grouping, N>> mesh(const ditto_mesh_axis (&axes)[N]) const
    {
        ditto_grouping *made[N] = {};
        std::array<grouping, N> of_axes;
        ditto_status status = ditto_strategy_mesh(strategy_, axes, N, made);
        for (std::size_t i = 0; i < N && status >= 0; i++)
            of_axes[i] = grouping(made[i]);
        return detail::give(status, std::move(of_axes));
    }

    // Ends the present run, from another thread.
    outcome<void> interrupt() const
    {
        return detail::done(ditto_strategy_interrupt(strategy_));
    }

    // What ditto_strategy_describe writes.
    outcome<std::string> describe() const
    {
        std::size_t length = 0;
        ditto_status status = ditto_strategy_describe(strategy_, nullptr, 0, &length);
        std::string text(length + 1, '\0');
        if (status >= 0)
            status = ditto_strategy_describe(strategy_, text.data(), text.size(), &length);
        text.resize(std::min(length, text.size() - 1));
        return detail::give(status, std::move(text));
    }

  private:
    ditto_strategy *strategy_;
};

// A strategy.
class strategy : public handle<ditto_strategy, ditto_strategy_destroy>
{
  public:
    using handle<ditto_strategy, ditto_strategy_destroy>::handle;
    strategy() noexcept = default;

    static outcome<strategy> create(const ditto_strategy_options &options,
                                    ditto_strategy_kind kind = DITTO_MIRRORED)
    {
        ditto_strategy *made = nullptr;
        // Options of another version would be misread.
        int major = 0, minor = 0;
        if (std::sscanf(ditto_version(), "%d.%d", &major, &minor) != 2 || major != DITTO_VERSION_MAJOR ||
            minor != DITTO_VERSION_MINOR) {
            char message[200];
            std::snprintf(message, sizeof message,
                          "the program was compiled with headers of ditto %d.%d, but runs with libditto %s",
                          DITTO_VERSION_MAJOR, DITTO_VERSION_MINOR, ditto_version());
            return detail::fail<strategy>("ditto_strategy_create", message);
        }
        ditto_status status = ditto_strategy_create(kind, &options, &made);
        return detail::give(status, strategy(status >= 0 ? made : nullptr));
    }

#if DITTO_CPP_THROWS
    explicit strategy(const ditto_strategy_options &options, ditto_strategy_kind kind = DITTO_MIRRORED)
        : strategy(create(options, kind))
    {
    }
    // Mirrored, on this host.
    template <class N, class = std::enable_if_t<std::is_integral_v<N>>>
    explicit strategy(N num_replicas) : strategy(with(checked(num_replicas)))
    {
    }
#endif

    // Options with a number of replicas.
    static ditto_strategy_options with(std::uint32_t num_replicas)
    {
        ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
        options.num_replicas = num_replicas;
        return options;
    }

    strategy_view view() const noexcept
    {
        return strategy_view(get());
    }
    operator strategy_view() const noexcept
    {
        return view();
    }
    std::uint32_t size() const noexcept
    {
        return view().size();
    }
    template <class F> outcome<ditto_status> run(F &&function) const
    {
        return view().run(std::forward<F>(function));
    }
    template <class T>
    outcome<variable<T>> create_variable(const std::vector<T> &initial,
                                         std::initializer_list<std::size_t> shape = {},
                                         const ditto_variable_options *options = nullptr) const
    {
        return view().create_variable(initial, shape, options);
    }
    template <class T>
    outcome<variable<T>> create_variable(span<const T> initial, std::initializer_list<std::size_t> shape = {},
                                         const ditto_variable_options *options = nullptr) const
    {
        return view().create_variable(initial, shape, options);
    }
    outcome<iterator> iterate(const dataset &rows, const ditto_input_options *options = nullptr) const;
    template <class F>
    outcome<iterator> iterate_from_function(F &&function, const ditto_input_options *options = nullptr) const;
    outcome<grouping> split(span<const std::uint32_t> colors, span<const std::uint32_t> keys = {}) const
    {
        return view().split(colors, keys);
    }
    template <std::size_t N> outcome<std::array<grouping, N>> mesh(const ditto_mesh_axis (&axes)[N]) const
    {
        return view().mesh(axes);
    }
    outcome<void> interrupt() const
    {
        return view().interrupt();
    }
    outcome<std::string> describe() const
    {
        return view().describe();
    }

#if DITTO_CPP_THROWS
  private:
    // A number that is no std::uint32_t is refused as it is, and not as what would be left of it.
    template <class N> static std::uint32_t checked(N num_replicas)
    {
        if (num_replicas > N(0) ? static_cast<std::uintmax_t>(num_replicas) > UINT32_MAX
                                : num_replicas != N(0))
            detail::fail<void>("ditto_strategy_create",
                               (std::to_string(num_replicas) + " replicas: a strategy has at most " +
                                std::to_string(DITTO_MAX_REPLICAS))
                                   .c_str(),
                               DITTO_ERR_RANGE);
        return static_cast<std::uint32_t>(num_replicas);
    }
#endif
};

template <class F> outcome<void> replica::merge_call(F &&function) const
{
    using callable = std::remove_reference_t<F>;
    detail::function<callable> f(function);
    auto merge = [](ditto_strategy *strategy, ditto_value *const *, std::uint32_t, void *user,
                    ditto_value **) {
        auto &called = *static_cast<detail::function<callable> *>(user);
        return called.guard(nullptr, [&] { return (*called.callable)(strategy_view(strategy)); });
    };
    return ended(f, ditto_merge_call(self_, merge, &f, nullptr, 0, nullptr));
}

} // namespace DITTO_CPP_SPACE
} // namespace ditto

// Statuses are error codes: std::error_code code = DITTO_ERR_INVALID;
template <> struct std::is_error_code_enum<ditto_status> : std::true_type {
};
inline std::error_code make_error_code(ditto_status status) noexcept
{
    return { static_cast<int>(status), ditto::category() };
}

#include <ditto/input.hpp>
#include <ditto/optimizer.hpp>

#include <ditto/coordinator.hpp>

#endif
