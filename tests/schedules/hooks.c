/* tests/schedules/hooks.c - the functions that -fsanitize=thread calls: one before each plain access, and one
 * instead of each atomic access. The compiler names one for each size, hence the macros. */
#include "engine.h"

#define PLACE __builtin_return_address(0)

void __tsan_init(void) {}
void __tsan_func_entry(void *caller)
{
    (void)caller;
}
void __tsan_func_exit(void) {}
void __tsan_read_range(void *at, size_t bytes)
{
    plain_access(at, bytes, false, PLACE);
}
void __tsan_write_range(void *at, size_t bytes)
{
    plain_access(at, bytes, true, PLACE);
}
void __tsan_atomic_thread_fence(int order)
{
    fence_step(order, PLACE);
}
void __tsan_atomic_signal_fence(int order)
{
    (void)order; /* it orders nothing between threads */
}

#define PLAIN(aligned, bytes)                     \
    void __tsan_##aligned##read##bytes(void *at)  \
    {                                             \
        plain_access(at, bytes, false, PLACE);    \
    }                                             \
    void __tsan_##aligned##write##bytes(void *at) \
    {                                             \
        plain_access(at, bytes, true, PLACE);     \
    }
PLAIN(, 1)
PLAIN(, 2)
PLAIN(, 4)
PLAIN(, 8)
PLAIN(, 16)
PLAIN(unaligned_, 2)
PLAIN(unaligned_, 4)
PLAIN(unaligned_, 8)
PLAIN(unaligned_, 16)

static uint64_t set(uint64_t value, uint64_t operand)
{
    return (void)value, operand;
}
static uint64_t add(uint64_t value, uint64_t operand)
{
    return value + operand;
}
static uint64_t subtract(uint64_t value, uint64_t operand)
{
    return value - operand;
}
static uint64_t and (uint64_t value, uint64_t operand)
{
    return value & operand;
}
static uint64_t or (uint64_t value, uint64_t operand)
{
    return value | operand;
}

#define CHANGE(type, name, change)                                                      \
    type __tsan_atomic##name(volatile type *at, type operand, int order)                \
    {                                                                                   \
        return (type)atomic_change_step(at, operand, sizeof *at, order, PLACE, change); \
    }
#define COMPARE(type, name, is_weak)                                                                      \
    int __tsan_atomic##name(volatile type *at, type *expected, type desired, int order, int failure)      \
    {                                                                                                     \
        uint64_t value = *expected;                                                                       \
        bool done = atomic_compare_step(at, &value, desired, sizeof *at, order, failure, is_weak, PLACE); \
        *expected = (type)value;                                                                          \
        return done;                                                                                      \
    }
#define ATOMIC(bits, type)                                                     \
    type __tsan_atomic##bits##_load(const volatile type *at, int order)        \
    {                                                                          \
        return (type)atomic_load_step(at, sizeof *at, order, PLACE);           \
    }                                                                          \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order) \
    {                                                                          \
        atomic_store_step(at, value, sizeof *at, order, PLACE);                \
    }                                                                          \
    CHANGE(type, bits##_exchange, set)                                         \
    CHANGE(type, bits##_fetch_add, add)                                        \
    CHANGE(type, bits##_fetch_sub, subtract)                                   \
    CHANGE(type, bits##_fetch_and, and)                                        \
    CHANGE(type, bits##_fetch_or, or)                                          \
    COMPARE(type, bits##_compare_exchange_strong, false)                       \
    COMPARE(type, bits##_compare_exchange_weak, true)
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
