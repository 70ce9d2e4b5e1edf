/* tests/embed/thrown.cpp - checks the claims of src/base/errors/user_call.h. A function of the user that is
 * left by an exception or by pthread_exit ends the process, after one line on stderr that names the function.
 * An exception leads to std::terminate, also if the host has a handler around the call. Each attempt runs in
 * its own process. */
#include <ditto.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static bool by_exit; /* leave by pthread_exit instead of an exception */

static ditto_status leave()
{
    if (by_exit)
        pthread_exit(nullptr);
    throw std::runtime_error("thrown by a user's function");
}

static ditto_strategy *strategy;
static ditto_dataset *dataset;
static ditto_iterator *iterator;
static ditto_variable *variable;
static ditto_value *value;

static void must(ditto_status status)
{
    if (status != DITTO_OK) {
        std::printf("%s: %s\n", ditto_last_error()->function, ditto_last_error()->message);
        std::exit(3);
    }
}

static void make_strategy()
{
    ditto_strategy_options o = DITTO_STRATEGY_OPTIONS_INIT;
    o.num_replicas = 2;
    must(ditto_strategy_create(DITTO_MIRRORED, &o, &strategy));
}

static ditto_tensor scalar()
{
    ditto_tensor t = ditto_tensor();
    t.dtype = DITTO_F64;
    return t;
}

/* -- functions that a run calls -- */

static void run(ditto_replica_fn function)
{
    make_strategy();
    ditto_status status = ditto_strategy_run(strategy, function, nullptr);
    (void)status;
}

static ditto_status leaves_on_0(ditto_replica *self, void *)
{
    return ditto_replica_id(self) == 0 ? leave() : ditto_barrier(self, nullptr);
}
static void run_on_caller()
{
    run(leaves_on_0);
}

static ditto_status leaves_on_1(ditto_replica *self, void *)
{
    return ditto_replica_id(self) == 1 ? leave() : ditto_barrier(self, nullptr);
}
static void run_on_replica()
{
    run(leaves_on_1);
}

static ditto_status merge(ditto_strategy *, ditto_value *const *, uint32_t, void *, ditto_value **)
{
    return leave();
}
static ditto_status merges(ditto_replica *self, void *)
{
    return ditto_merge_call(self, merge, nullptr, nullptr, 0, nullptr);
}
static void merge_call()
{
    run(merges);
}

static ditto_status combine(void *, const void *, const void *, size_t, void *)
{
    return leave();
}
static ditto_status combines(ditto_replica *self, void *)
{
    double x = 1;
    return ditto_all_reduce_with(self, &x, &x, 1, sizeof x, combine, nullptr, nullptr);
}
static void all_reduce_with()
{
    run(combines);
}

static ditto_status change(void *, size_t, ditto_dtype, void *)
{
    return leave();
}
static ditto_status reduces_through(ditto_replica *self, void *)
{
    double x = 1;
    return ditto_all_reduce_through(self, &x, &x, 1, DITTO_F64, DITTO_SUM, change, nullptr, nullptr);
}
static void all_reduce_through()
{
    run(reduces_through);
}

static ditto_status compute(void *, size_t, size_t, void *)
{
    return leave();
}
static ditto_status computes(ditto_replica *self, void *)
{
    double x;
    return ditto_block_sum_with(self, compute, nullptr, &x, 1, DITTO_F64, nullptr);
}
static void block_sum_with()
{
    run(computes);
}

static ditto_status on_device(uint32_t, void *)
{
    return leave();
}
static ditto_status gives_to_device(ditto_replica *self, void *)
{
    DITTO_TRY(ditto_on_logical_device(self, 0, on_device, nullptr));
    return ditto_join(self);
}
static void logical_device()
{
    run(gives_to_device);
}

static ditto_status on_range(size_t, size_t, uint32_t, void *)
{
    return leave();
}
static ditto_status loops(ditto_replica *self, void *)
{
    return ditto_parallel_for(self, on_range, nullptr, 0, 10, 0, DITTO_SCHEDULE_STATIC);
}
static void parallel_for()
{
    run(loops);
}

/* -- functions that variables and values call -- */

static ditto_status initialize(const ditto_tensor *, size_t, void *)
{
    return leave();
}
static void variable_create()
{
    ditto_variable_options o = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_tensor t = scalar();
    make_strategy();
    o.initialize = initialize;
    must(ditto_variable_create(strategy, &t, &o, &variable));
}

static ditto_status on_copy(const ditto_tensor *, const ditto_tensor *, uint32_t, void *, ditto_tensor *)
{
    return leave();
}
static void variable_update()
{
    ditto_tensor t = scalar();
    make_strategy();
    must(ditto_variable_create(strategy, &t, nullptr, &variable));
    must(ditto_variable_update(variable, on_copy, nullptr, nullptr, 0, nullptr, nullptr));
}

static void on_range_of_rule(const ditto_rule_range *, void *)
{
    leave();
}
static ditto_status applies(ditto_replica *self, void *optimizer)
{
    double gradient = 1;
    ditto_tensor t = scalar();
    t.data = &gradient;
    return ditto_apply(self, static_cast<ditto_optimizer *>(optimizer), &t, nullptr);
}
static void rule()
{
    ditto_optimizer_options o = DITTO_OPTIMIZER_OPTIONS_INIT;
    ditto_tensor t = scalar();
    ditto_optimizer *optimizer;
    make_strategy();
    must(ditto_variable_create(strategy, &t, nullptr, &variable));
    o.rule = DITTO_RULE_FUNCTION;
    o.function = on_range_of_rule;
    o.learning_rate = 1;
    must(ditto_optimizer_create(&variable, 1, &o, &optimizer));
    must(ditto_strategy_run(strategy, applies, optimizer));
}

static ditto_status component(uint32_t, uint32_t, void *, ditto_tensor *)
{
    return leave();
}
static void value_from_function()
{
    make_strategy();
    must(ditto_strategy_value_from_function(strategy, component, nullptr, &value));
}

/* -- functions that the input calls, on a producer's thread or on the caller's -- */

static void take()
{
    make_strategy();
    must(ditto_dataset_batch(dataset, 4, 0, &dataset));
    must(ditto_strategy_iterate(strategy, dataset, nullptr, &iterator));
    must(ditto_iterator_next(iterator, &value));
}

static ditto_status map(const ditto_tensor *, const ditto_tensor *, ditto_random *, void *)
{
    return leave();
}
static void dataset_map()
{
    ditto_map_options o = DITTO_MAP_OPTIONS_INIT;
    must(ditto_dataset_from_range(0, 8, 1, &dataset));
    must(ditto_dataset_map(dataset, map, nullptr, &o, &dataset));
    take();
}

static ditto_status filter(const ditto_tensor *, void *, int *)
{
    return leave();
}
static void dataset_filter()
{
    must(ditto_dataset_from_range(0, 8, 1, &dataset));
    must(ditto_dataset_filter(dataset, filter, nullptr, &dataset));
    take();
}

/* The function of the generator that leaves. The others succeed. */
enum generator_function { OPEN, NEXT, SAVE, RESTORE, CLOSE };
static generator_function leaving;

static ditto_status call(generator_function function)
{
    return function == leaving ? leave() : DITTO_OK;
}
static ditto_status open_rows(void *, uint64_t, void **)
{
    return call(OPEN);
}
static ditto_status next_row(void *, void *, const ditto_tensor *row)
{
    *static_cast<double *>(row[0].data) = 1;
    return call(NEXT);
}
static ditto_status save_rows(void *, void *, void *, size_t, size_t *length)
{
    *length = 0;
    return call(SAVE);
}
static ditto_status restore_rows(void *, void *, const void *, size_t)
{
    return call(RESTORE);
}
static void close_rows(void *, void *)
{
    (void)call(CLOSE);
}

/* Calls all functions of a generator. */
template <generator_function function> static void generator()
{
    ditto_generator g = DITTO_GENERATOR_INIT;
    ditto_input_options o = DITTO_INPUT_OPTIONS_INIT;
    ditto_tensor t = scalar();
    void *state;
    leaving = function;
    g.open = open_rows;
    g.next = next_row;
    g.save = save_rows;
    g.restore = restore_rows;
    g.close = close_rows;
    must(ditto_dataset_from_generator(&g, &t, 1, &dataset));
    take();
    must(ditto_iterator_save(iterator, &state, &o.state_bytes));
    o.state = state;
    must(ditto_iterator_destroy(iterator));
    must(ditto_strategy_iterate(strategy, dataset, &o, &iterator));
}

static ditto_status fold(const ditto_tensor *, void *)
{
    return leave();
}
static void dataset_reduce()
{
    must(ditto_dataset_from_range(0, 8, 1, &dataset));
    must(ditto_dataset_reduce(dataset, fold, nullptr, 0));
}

static ditto_status make_dataset(const ditto_input_context *, void *, ditto_dataset **)
{
    return leave();
}
static void dataset_function()
{
    make_strategy();
    must(ditto_strategy_iterate_from_function(strategy, make_dataset, nullptr, nullptr, &iterator));
}

static ditto_status step(ditto_replica *, const ditto_batch *, void *)
{
    return leave();
}
static void run_steps()
{
    make_strategy();
    must(ditto_dataset_from_range(0, 8, 1, &dataset));
    must(ditto_dataset_batch(dataset, 4, 0, &dataset));
    must(ditto_strategy_iterate(strategy, dataset, nullptr, &iterator));
    must(ditto_strategy_run_steps(strategy, step, nullptr, iterator, 2, nullptr, nullptr, nullptr));
}

/* -- other functions -- */

static void on_start_or_stop(uint32_t, void *)
{
    leave();
}
static void thread_start()
{
    ditto_strategy_options o = DITTO_STRATEGY_OPTIONS_INIT;
    o.num_replicas = 2;
    o.thread_start = on_start_or_stop;
    must(ditto_strategy_create(DITTO_MIRRORED, &o, &strategy));
    pause();
}

static void thread_stop()
{
    ditto_strategy_options o = DITTO_STRATEGY_OPTIONS_INIT;
    o.num_replicas = 2;
    o.thread_stop = on_start_or_stop;
    must(ditto_strategy_create(DITTO_MIRRORED, &o, &strategy));
    must(ditto_strategy_destroy(strategy));
}

static void drop(void *, void *)
{
    leave();
}
static void queue_drop()
{
    ditto_queue_options o = DITTO_QUEUE_OPTIONS_INIT;
    ditto_queue *queue;
    o.num_slots = 2;
    o.drop = drop;
    must(ditto_queue_create(&o, &queue));
    must(ditto_queue_put(queue, 0, &o, 0, 0));
    must(ditto_queue_destroy(queue));
}

static const char of_generator[] =
    "ditto: a function of a generator (ditto_dataset_from_generator) was left by ";

static const struct {
    const char *name;
    void (*body)();
    const char *line;
} tries[] = {
    { "run, on the calling thread", run_on_caller,
      "ditto: a function given to a run on replica 0 was left by " },
    { "run, on a replica's thread", run_on_replica,
      "ditto: a function given to a run on replica 1 was left by " },
    { "run_steps", run_steps, "ditto: a function given to a run on replica " },
    { "merge_call", merge_call, "ditto: a merge function on replica 0 was left by " },
    { "all_reduce_with", all_reduce_with,
      "ditto: a function that combines (ditto_all_reduce_with, ditto_scan_with) on replica " },
    { "all_reduce_through", all_reduce_through,
      "ditto: a function that changes a combined array (ditto_all_reduce_through) on replica 0 was left "
      "by " },
    { "block_sum_with", block_sum_with,
      "ditto: a function that computes elements (ditto_block_sum_with) on replica " },
    { "on_logical_device", logical_device, "ditto: a function given to a logical device " },
    { "parallel_for", parallel_for, "ditto: a function given to a logical device " },
    { "variable_create", variable_create, "ditto: the initialize function of a variable " },
    { "variable_update", variable_update, "ditto: the function of an update " },
    { "apply", rule, "ditto: the function of an optimizer's own rule " },
    { "value_from_function", value_from_function, "ditto: a function that makes components " },
    { "map", dataset_map, "ditto: the function of a map (ditto_dataset_map) was left by " },
    { "filter", dataset_filter, "ditto: the function of a filter (ditto_dataset_filter) was left by " },
    { "open of a generator", generator<OPEN>, of_generator },
    { "next of a generator", generator<NEXT>, of_generator },
    { "save of a generator", generator<SAVE>, of_generator },
    { "restore of a generator", generator<RESTORE>, of_generator },
    { "close of a generator", generator<CLOSE>, of_generator },
    { "dataset_reduce", dataset_reduce, "ditto: the function given to ditto_dataset_reduce was left by " },
    { "iterate_from_function", dataset_function, "ditto: a function that makes datasets " },
    { "thread_start", thread_start, "ditto: a thread_start or thread_stop function " },
    { "thread_stop", thread_stop, "ditto: a thread_start or thread_stop function " },
    { "queue", queue_drop, "ditto: the drop function of a queue was left by " },
};

/* The host's handler, in which the exception must still be available. */
static void on_terminate()
{
    try {
        std::rethrow_exception(std::current_exception());
    } catch (const std::exception &e) {
        std::fprintf(stderr, "terminated: %s\n", e.what());
    }
    std::abort();
}

static void try_in_child(void (*body)())
{
    struct rlimit none = { 0, 0 };
    setrlimit(RLIMIT_CORE, &none);
    std::set_terminate(on_terminate);
    alarm(60);
    try {
        body();
    } catch (...) {
        std::fprintf(stderr, "the host's handler got it\n");
    }
    std::exit(0);
}

/* Runs the function in a child process. Returns the text that the child writes to stderr, and stores its exit
 * status. */
static std::string outcome(void (*body)(), int *status)
{
    int ends[2];
    char buffer[1000];
    std::string text;
    if (pipe(ends) != 0)
        return "no pipe";
    std::fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        try_in_child(body);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
        text.append(buffer, static_cast<size_t>(got));
    close(ends[0]);
    waitpid(child, status, 0);
    return text;
}

static bool try_one(size_t i)
{
    int status = 0;
    std::string text = outcome(tries[i].body, &status);
    bool line = text.compare(0, std::strlen(tries[i].line), tries[i].line) == 0 &&
                text.find(by_exit ? "was left by pthread_exit" : "was left by an exception") !=
                    std::string::npos &&
                text.find(by_exit ? "return from it instead" : "catch it inside and return an error") !=
                    std::string::npos;
    bool ended = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    bool terminated = text.find("\nterminated: thrown by a user's function\n") != std::string::npos;
    if (line && ended && terminated == !by_exit)
        return true;
    std::printf("%s, by %s: %s %d, stderr: \"%s\"\n", tries[i].name,
                by_exit ? "pthread_exit" : "an exception", WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), text.c_str());
    return false;
}

int main()
{
    bool good = true;
    for (int way = 0; way < 2; way++) {
        by_exit = way == 1;
        for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++)
            good &= try_one(i);
    }
    return good ? 0 : 1;
}
