/* bench/peers/pools.cc - functions that pools of threads execute. The file is compiled with oneTBB
 * (WITH_TBB), whose arena has as many threads as there are workers, and with Taskflow, whose executor has.
 * The calling thread only schedules, and waits. */
#include "../function_work.h"
#include "protocol.h"

#include <atomic>
#include <cstdint>
#include <sched.h>
#include <unistd.h>

#ifdef WITH_TBB
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#else
#include <taskflow/taskflow.hpp>
#endif

static cpu_set_t allowed; // at the start

// Binds the calling thread to one of the PUs.
static void bind_to(uint32_t index)
{
    uint32_t seen = 0, usable = static_cast<uint32_t>(CPU_COUNT(&allowed));
    cpu_set_t one;
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ == index % usable)
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

// Returns the number of the calling worker. At its first call a worker gets its number and its PU.
static uint32_t this_worker()
{
    static std::atomic<uint32_t> workers{ 0 };
    thread_local uint32_t number = UINT32_MAX;
    if (number == UINT32_MAX) {
        number = workers++;
        bind_to(number);
    }
    return number;
}

static void empty_function()
{
    this_worker();
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

static void compute_on_worker()
{
    this_worker();
    compute_function();
}

static void sleep_on_worker()
{
    sleep_function(this_worker());
}

#ifdef WITH_TBB
class pool
{
  public:
    // The calling thread is one of the threads that global_control counts, and has no place in the arena.
    explicit pool(uint32_t workers)
        : threads(oneapi::tbb::global_control::max_allowed_parallelism, workers + 1),
          arena(static_cast<int>(workers), 0)
    {
    }
    void schedule(void (*function)())
    {
        arena.enqueue(group.defer(function));
    }
    void join()
    {
        group.wait();
    } // not in the arena, where the calling thread would execute functions

  private:
    oneapi::tbb::global_control threads;
    oneapi::tbb::task_arena arena;
    oneapi::tbb::task_group group;
};
#else
class pool
{
  public:
    explicit pool(uint32_t workers) : executor(workers) {}
    void schedule(void (*function)())
    {
        executor.silent_async(function);
    }
    void join()
    {
        executor.wait_for_all();
    }

  private:
    tf::Executor executor;
};
#endif

// Returns nullptr if a pool of threads has no such row.
static void (*function_of(int row))()
{
    switch (row) {
    case FUNCTIONS_EMPTY:
        return empty_function;
    case FUNCTIONS_COMPUTE:
        return compute_on_worker;
    case FUNCTIONS_UNEVEN:
        return sleep_on_worker;
    default:
        return nullptr;
    }
}

static const timing cannot = { -1, 0, 0 };

static timing measure(pool &pool, const order &order)
{
    void (*function)() = function_of(order.row);
    if (function == nullptr)
        return cannot;
    double begin = now_seconds();
    for (uint64_t i = 0; i < order.work.reps; i++)
        pool.schedule(function);
    pool.join();
    return { now_seconds() - begin, 0, 0 };
}

int main(int count, char **word)
{
    uint32_t workers = count > 1 ? static_cast<uint32_t>(atoi(word[1])) : 2;
    sched_getaffinity(0, sizeof allowed, &allowed);
    pool pool(workers);
    if (workers == 1) // as in functions.c
        bind_to(1);
    printf("hello %d\n", static_cast<int>(getpid()));
    fflush(stdout);
    for (;;) {
        order order = read_order(stdin);
        if (order.what == ORDER_END)
            return 0;
        answer(order.what == ORDER_FUNCTIONS ? measure(pool, order) : cannot, nullptr, 0, 0);
    }
}
