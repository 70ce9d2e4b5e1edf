/* tests/fault/test_lifetime.c - what is destroyed while it is in use: strategies and variables under calls
 * that wait for their turn, values under calls on other threads, and strategies that a late replica still
 * uses. Each case runs in a child process, because memory that is freed too early crashes or hangs. */
#include "replicas/team/team.h"
#include "support/support.h"
#include "support/support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool make(uint32_t replicas, ditto_caller caller, uint32_t run_timeout_ms, ditto_strategy **out)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    options.replicas = replicas;
    options.placement_flags = DITTO_PLACEMENT_SHARE;
    options.caller = caller;
    options.pin = DITTO_PIN_NONE; /* after a call no system call lets another thread take its turn first */
    options.run_timeout_ms = run_timeout_ms;
    return ditto_strategy_create(DITTO_MIRRORED, &options, out) == DITTO_OK;
}

static bool make_variable(ditto_strategy *strategy, ditto_variable **out)
{
    float zeros[4] = { 0 };
    ditto_tensor initial = { .data = zeros, .dtype = DITTO_F32, .rank = 1, .shape = { 4 } };
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    options.aggregation = DITTO_AGGREGATE_SUM;
    return ditto_variable_create(strategy, &initial, &options, out) == DITTO_OK;
}

/* Batches of two rows for each replica, of one component: 0, 1, 2, ... */
static bool make_iterator(ditto_strategy *strategy, uint32_t flags, ditto_iterator **out)
{
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    ditto_dataset *rows;
    options.global_batch = 2 * (uint64_t)ditto_strategy_num_replicas(strategy);
    options.flags = flags;
    if (ditto_dataset_from_range(0, 1000, 1, &rows) != DITTO_OK)
        return false;
    ditto_status status = ditto_strategy_iterate(strategy, rows, &options, out);
    ditto_dataset_destroy(rows);
    return status == DITTO_OK;
}

static const uint32_t counts[] = { 1, 2, 3, 8 }; /* of replicas */
enum { COUNTS = sizeof counts / sizeof counts[0] };

/* -- calls that wait for their turn -- */

/* A thread that makes one call while the turn is somebody else's. */
struct waiting {
    ditto_strategy *strategy;
    ditto_variable *variable, *other;
    ditto_value *value; /* that is `variable` */
    ditto_iterator *iterator;
    ditto_status (*call)(struct waiting *self);
    _Atomic int thread_id, may_begin, has_returned;
    ditto_status status, destroyed;
};

static ditto_status nothing(ditto_replica *self, void *unused)
{
    (void)self, (void)unused;
    return DITTO_OK;
}

static ditto_status call_run(struct waiting *w)
{
    return ditto_strategy_run(w->strategy, nothing, NULL);
}

static ditto_status call_read(struct waiting *w)
{
    float copy[4];
    return ditto_variable_read(w->variable, copy, sizeof copy);
}

static ditto_status call_describe(struct waiting *w)
{
    char text[4096];
    return ditto_strategy_describe(w->strategy, text, sizeof text, NULL);
}

static void *call_and_return(void *argument)
{
    struct waiting *w = argument;
    atomic_store(&w->thread_id, (int)syscall(SYS_gettid));
    w->status = w->call(w);
    atomic_store(&w->has_returned, 1);
    return NULL;
}

/* A run that ends when the other thread waits for its turn; what follows comes before that
 * thread has got it. */
static ditto_status await_the_other(ditto_replica *self, void *argument)
{
    struct waiting *w = argument;
    if (ditto_replica_id(self) == 0)
        await_sleep(&w->thread_id);
    return DITTO_OK;
}

static int destroy_strategy_under(void *call)
{
    struct waiting w = { .call = *(ditto_status(**)(struct waiting *))call };
    pthread_t thread;
    REQUIRE(make(2, DITTO_CALLER_DEFAULT, 0, &w.strategy) && make_variable(w.strategy, &w.variable));
    REQUIRE(pthread_create(&thread, NULL, call_and_return, &w) == 0);
    REQUIRE(ditto_strategy_run(w.strategy, await_the_other, &w) == DITTO_OK);
    ditto_status status = ditto_strategy_destroy(w.strategy);
    REQUIRE(status == DITTO_ERR_BUSY || atomic_load(&w.has_returned));
    pthread_join(thread, NULL);
    REQUIRE(w.status == DITTO_OK);
    if (status == DITTO_ERR_BUSY)
        REQUIRE(ditto_strategy_destroy(w.strategy) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(w.variable) == DITTO_OK);
    return 0;
}

static void destroying_a_strategy_is_busy_while_a_call_waits_for_its_turn(void **state)
{
    static ditto_status (*const calls[])(struct waiting *) = { call_run, call_read, call_describe };
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        assert_int_equal(in_child(destroy_strategy_under, (void *)(uintptr_t)&calls[i], 60), 0);
}

static int destroy_variable_under(void *unused)
{
    struct waiting w = { .call = call_read };
    pthread_t thread;
    (void)unused;
    REQUIRE(make(2, DITTO_CALLER_DEFAULT, 0, &w.strategy) && make_variable(w.strategy, &w.variable));
    REQUIRE(pthread_create(&thread, NULL, call_and_return, &w) == 0);
    REQUIRE(ditto_strategy_run(w.strategy, await_the_other, &w) == DITTO_OK);
    ditto_status status = ditto_variable_destroy(w.variable);
    REQUIRE(status == DITTO_ERR_BUSY || atomic_load(&w.has_returned));
    pthread_join(thread, NULL);
    REQUIRE(w.status == DITTO_OK);
    if (status == DITTO_ERR_BUSY)
        REQUIRE(ditto_variable_destroy(w.variable) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(w.strategy) == DITTO_OK);
    return 0;
}

static void destroying_a_variable_is_busy_while_a_call_on_it_waits_for_its_turn(void **state)
{
    (void)state;
    assert_int_equal(in_child(destroy_variable_under, NULL, 60), 0);
}

/* -- values that are variables -- */

static ditto_status keep_copy(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                              void *unused, ditto_tensor *result)
{
    (void)unused, (void)result;
    for (uint32_t k = 0; k < count; k++)
        memcpy(copy->data, arguments[k].data, 4 * sizeof(float));
    return DITTO_OK;
}

static ditto_status look_at_argument(ditto_replica *self, void *unused)
{
    ditto_tensor part;
    (void)unused;
    return ditto_argument(self, NULL, &part);
}

static ditto_status drop_made(ditto_status status, ditto_value *made)
{
    return status == DITTO_OK ? ditto_value_destroy(made) : status;
}

static ditto_status call_assign_value(struct waiting *w)
{
    return ditto_variable_assign_value(w->other, w->value);
}

static ditto_status call_update(struct waiting *w)
{
    const ditto_value *argument = w->value;
    return ditto_variable_update(w->other, keep_copy, NULL, &argument, 1, NULL, NULL);
}

static ditto_status call_run_values(struct waiting *w)
{
    return ditto_strategy_run_values(w->strategy, look_at_argument, NULL, w->value, NULL, NULL);
}

static ditto_status call_run_nest(struct waiting *w)
{
    const ditto_value *member[2] = { w->value, w->value };
    ditto_value *nest;
    ditto_status status = ditto_strategy_nest(w->strategy, NULL, member, 2, &nest);
    if (status == DITTO_OK)
        status = ditto_strategy_run_values(w->strategy, nothing, NULL, nest, NULL, NULL);
    return drop_made(status, nest);
}

static ditto_status call_reduce(struct waiting *w)
{
    ditto_value *made;
    ditto_status status = ditto_strategy_reduce(w->strategy, DITTO_MEAN, w->value, NULL, 0, &made);
    return drop_made(status, made);
}

static ditto_status call_reduce_to(struct waiting *w)
{
    ditto_value *made;
    ditto_places first = { .replica = 0 };
    ditto_status status = ditto_strategy_reduce_to(w->strategy, DITTO_MEAN, w->value, first, &made);
    return drop_made(status, made);
}

static ditto_status call_broadcast_to(struct waiting *w)
{
    ditto_value *made;
    float one = 1;
    ditto_tensor tensor = { .data = &one, .dtype = DITTO_F32 };
    ditto_places places = { .of = w->value };
    ditto_status status = ditto_strategy_broadcast_to(w->strategy, &tensor, places, &made);
    return drop_made(status, made);
}

static ditto_status call_gather(struct waiting *w)
{
    ditto_value *made;
    ditto_status status = ditto_strategy_gather(w->strategy, w->value, 0, &made);
    return drop_made(status, made);
}

static ditto_status (*const calls_in_turn[])(struct waiting *) = {
    call_assign_value, call_update,    call_run_values,   call_run_nest,
    call_reduce,       call_reduce_to, call_broadcast_to, call_gather,
};
enum { CALLS_IN_TURN = sizeof calls_in_turn / sizeof *calls_in_turn };

static ditto_status call_create_beside(struct waiting *w)
{
    float zeros[4] = { 0 };
    ditto_variable *made;
    ditto_tensor initial = { .data = zeros, .dtype = DITTO_F32, .rank = 1, .shape = { 4 } };
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    options.colocate_with = w->variable;
    options.aggregation = DITTO_AGGREGATE_SUM;
    ditto_status status = ditto_variable_create(w->strategy, &initial, &options, &made);
    return status == DITTO_OK ? ditto_variable_destroy(made) : status;
}

static ditto_status call_component(struct waiting *w)
{
    ditto_tensor part;
    return ditto_value_component(w->value, 1, &part);
}

static ditto_status call_spec(struct waiting *w)
{
    ditto_tensor spec;
    return ditto_value_element_spec(w->value, &spec);
}

static ditto_status call_local_results(struct waiting *w)
{
    ditto_value *part[2];
    uint32_t count = 0;
    ditto_status status = ditto_strategy_local_results(w->strategy, w->value, part, &count);
    for (uint32_t i = 0; status == DITTO_OK && i < count; i++)
        status = ditto_value_destroy(part[i]);
    return status;
}

static ditto_status (*const calls_of_looking[])(struct waiting *) = { call_component, call_spec,
                                                                      call_local_results };
enum { CALLS_OF_LOOKING = sizeof calls_of_looking / sizeof *calls_of_looking };

static bool make_all(struct waiting *w)
{
    return make(2, DITTO_CALLER_DEFAULT, 0, &w->strategy) && make_variable(w->strategy, &w->variable) &&
           make_variable(w->strategy, &w->other) && ditto_variable_value(w->variable, &w->value) == DITTO_OK;
}

/* The variable may be destroyed already. */
static bool drop_all(struct waiting *w)
{
    return ditto_value_destroy(w->value) == DITTO_OK &&
           (w->variable == NULL || ditto_variable_destroy(w->variable) == DITTO_OK) &&
           ditto_variable_destroy(w->other) == DITTO_OK && ditto_strategy_destroy(w->strategy) == DITTO_OK;
}

static int destroy_variable_of_value_under(void *call)
{
    struct waiting w = { .call = *(ditto_status(**)(struct waiting *))call };
    pthread_t thread;
    REQUIRE(make_all(&w));
    REQUIRE(pthread_create(&thread, NULL, call_and_return, &w) == 0);
    REQUIRE(ditto_strategy_run(w.strategy, await_the_other, &w) == DITTO_OK);
    ditto_status status = ditto_variable_destroy(w.variable);
    REQUIRE(status == DITTO_ERR_BUSY || atomic_load(&w.has_returned));
    if (status == DITTO_OK)
        w.variable = NULL;
    pthread_join(thread, NULL);
    REQUIRE(w.status == DITTO_OK);
    REQUIRE(drop_all(&w));
    return 0;
}

static void destroying_a_variable_is_busy_while_a_call_on_its_value_waits_for_its_turn(void **state)
{
    (void)state;
    for (size_t i = 0; i < CALLS_IN_TURN; i++)
        assert_int_equal(in_child(destroy_variable_of_value_under, (void *)(uintptr_t)&calls_in_turn[i], 60),
                         0);
}

static void destroying_a_variable_is_busy_while_one_is_created_beside_it(void **state)
{
    (void)state;
    assert_int_equal(in_child(destroy_variable_of_value_under,
                              &(ditto_status(*)(struct waiting *)){ call_create_beside }, 60),
                     0);
}

static ditto_status call_all(struct waiting *w)
{
    for (size_t i = 0; i < CALLS_OF_LOOKING + CALLS_IN_TURN; i++) {
        ditto_status status =
            i < CALLS_OF_LOOKING ? calls_of_looking[i](w) : calls_in_turn[i - CALLS_OF_LOOKING](w);
        if (status != DITTO_ERR_CONTEXT)
            return DITTO_ERR_USER;
    }
    return DITTO_ERR_CONTEXT;
}

/* The turn is this thread's own here: no gate tells whether a variable is there. */
static ditto_status destroy_and_call(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                     void *argument, ditto_value **result)
{
    struct waiting *w = argument;
    ditto_value *made;
    (void)strategy, (void)arguments, (void)count, (void)result;
    if (ditto_variable_destroy(w->variable) != DITTO_OK)
        return DITTO_ERR_USER;
    w->variable = NULL;
    if (call_component(w) != DITTO_ERR_CONTEXT || call_assign_value(w) != DITTO_ERR_CONTEXT)
        return DITTO_ERR_USER;
    ditto_status status = ditto_strategy_reduce(w->strategy, DITTO_MEAN, w->value, NULL, 0, &made);
    return status == DITTO_ERR_CONTEXT ? DITTO_OK : DITTO_ERR_USER;
}

static ditto_status merge(ditto_replica *self, void *argument)
{
    return ditto_merge_call(self, destroy_and_call, argument, NULL, 0, NULL);
}

static int use_value_of_destroyed(void *in_merge)
{
    struct waiting w = { .call = NULL };
    ditto_value *part[2], *nest, *again;
    const ditto_value *found, *both[2];
    ditto_tensor tensor;
    uint32_t count;
    REQUIRE(make_all(&w));
    both[0] = both[1] = w.value;
    REQUIRE(ditto_strategy_local_results(w.strategy, w.value, part, &count) == DITTO_OK && count == 2);
    REQUIRE(ditto_strategy_nest(w.strategy, NULL, both, 2, &nest) == DITTO_OK);
    if (*(bool *)in_merge)
        REQUIRE(ditto_strategy_run(w.strategy, merge, &w) == DITTO_OK);
    else
        REQUIRE(ditto_variable_destroy(w.variable) == DITTO_OK);
    w.variable = NULL;
    REQUIRE(call_all(&w) == DITTO_ERR_CONTEXT);
    REQUIRE(strstr(ditto_last_error()->message, "which has been destroyed") != NULL);
    /* A component lies in a copy that is no more. */
    REQUIRE(ditto_value_tensor(part[1], &tensor) == DITTO_ERR_CONTEXT);
    both[0] = part[1], both[1] = part[0];
    REQUIRE(ditto_strategy_regroup(w.strategy, both, 0, &again) == DITTO_ERR_CONTEXT);
    /* What is not looked at is handed on as before. */
    REQUIRE(ditto_value_member(nest, "1", &found) == DITTO_OK && found == w.value);
    REQUIRE(ditto_value_destroy(part[0]) == DITTO_OK && ditto_value_destroy(part[1]) == DITTO_OK);
    REQUIRE(ditto_value_destroy(nest) == DITTO_OK);
    REQUIRE(drop_all(&w));
    return 0;
}

static void a_value_of_a_variable_that_was_destroyed_is_refused(void **state)
{
    (void)state;
    assert_int_equal(in_child(use_value_of_destroyed, &(bool){ false }, 60), 0);
    assert_int_equal(in_child(use_value_of_destroyed, &(bool){ true }, 60), 0);
}

static void *call_until_it_is_gone(void *argument)
{
    struct waiting *w = argument;
    do {
        w->status = w->call(w);
        atomic_store(&w->has_returned, 1);
    } while (w->status == DITTO_OK);
    return NULL;
}

static int destroy_under_callers(void *call)
{
    for (int round = 0; round < 10; round++) {
        struct waiting w = { .call = *(ditto_status(**)(struct waiting *))call };
        pthread_t thread;
        ditto_status status;
        REQUIRE(make_all(&w));
        REQUIRE(pthread_create(&thread, NULL, call_until_it_is_gone, &w) == 0);
        while (!atomic_load(&w.has_returned))
            sleep_ms(1);
        while ((status = ditto_variable_destroy(w.variable)) == DITTO_ERR_BUSY)
            ;
        REQUIRE(status == DITTO_OK);
        w.variable = NULL;
        pthread_join(thread, NULL);
        REQUIRE(w.status == DITTO_ERR_CONTEXT);
        REQUIRE(drop_all(&w));
    }
    return 0;
}

static void calls_on_a_value_see_its_variable_or_that_it_is_gone(void **state)
{
    (void)state;
    for (size_t i = 0; i < CALLS_OF_LOOKING; i++)
        assert_int_equal(in_child(destroy_under_callers, (void *)(uintptr_t)&calls_of_looking[i], 60), 0);
    assert_int_equal(
        in_child(destroy_under_callers, &(ditto_status(*)(struct waiting *)){ call_assign_value }, 60), 0);
    assert_int_equal(in_child(destroy_under_callers, &(ditto_status(*)(struct waiting *)){ call_reduce }, 60),
                     0);
}

/* -- a thread's replica of the default strategy, which is in no run -- */

static _Atomic int is_inside, may_return;

static ditto_status stay_inside(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                                void *unused, ditto_tensor *result)
{
    (void)copy, (void)arguments, (void)count, (void)unused, (void)result;
    atomic_store(&is_inside, 1);
    while (!atomic_load(&may_return))
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status call_update_here(struct waiting *w)
{
    return ditto_update(ditto_get_replica_context(), w->variable, stay_inside, NULL, NULL, 0, NULL);
}

static int destroy_under_update(void *unused)
{
    struct waiting w = { .strategy = ditto_get_strategy(), .call = call_update_here };
    pthread_t thread;
    (void)unused;
    REQUIRE(make_variable(w.strategy, &w.variable));
    REQUIRE(pthread_create(&thread, NULL, call_and_return, &w) == 0);
    while (!atomic_load(&is_inside))
        sleep_ms(1);
    REQUIRE(ditto_variable_destroy(w.variable) == DITTO_ERR_BUSY);
    atomic_store(&may_return, 1);
    pthread_join(thread, NULL);
    REQUIRE(w.status == DITTO_OK);
    REQUIRE(ditto_variable_destroy(w.variable) == DITTO_OK);
    return 0;
}

struct applying {
    ditto_optimizer *optimizer;
    ditto_status status;
};

static void stay_in_rule(const ditto_rule_range *range, void *unused)
{
    (void)range, (void)unused;
    atomic_store(&is_inside, 1);
    while (!atomic_load(&may_return))
        sleep_ms(1);
}

static void *apply(void *argument)
{
    struct applying *a = argument;
    float ones[4] = { 1, 1, 1, 1 };
    ditto_tensor gradient = { .data = ones, .dtype = DITTO_F32, .rank = 1, .shape = { 4 } };
    a->status = ditto_apply(ditto_get_replica_context(), a->optimizer, &gradient, NULL);
    return NULL;
}

static int destroy_under_apply(void *unused)
{
    struct applying a = { .optimizer = NULL };
    ditto_variable *variable;
    ditto_optimizer_options options = DITTO_OPTIMIZER_OPTIONS_INIT;
    pthread_t thread;
    (void)unused;
    options.rule = DITTO_RULE_FUNCTION;
    options.function = stay_in_rule;
    options.slots = 1;
    REQUIRE(make_variable(ditto_get_strategy(), &variable));
    REQUIRE(ditto_optimizer_create(&variable, 1, &options, &a.optimizer) == DITTO_OK);
    REQUIRE(pthread_create(&thread, NULL, apply, &a) == 0);
    while (!atomic_load(&is_inside))
        sleep_ms(1);
    REQUIRE(ditto_optimizer_destroy(a.optimizer) == DITTO_ERR_BUSY);
    atomic_store(&may_return, 1);
    pthread_join(thread, NULL);
    REQUIRE(a.status == DITTO_OK);
    REQUIRE(ditto_optimizer_destroy(a.optimizer) == DITTO_OK && ditto_variable_destroy(variable) == DITTO_OK);
    return 0;
}

static void destroying_is_busy_while_a_replica_of_the_default_strategy_is_in_a_call(void **state)
{
    (void)state;
    assert_int_equal(in_child(destroy_under_update, NULL, 60), 0);
    assert_int_equal(in_child(destroy_under_apply, NULL, 60), 0);
}

/* -- iterators -- */

struct iterating {
    ditto_iterator *iterator;
    _Atomic int looks, may_end;
    _Atomic int wrong; /* statuses that are neither OK nor, of next, CONTEXT */
};

/* Its spec is there also when the strategy has gone. */
static void *look_at_iterator(void *argument)
{
    struct iterating *i = argument;
    while (!atomic_load(&i->may_end)) {
        uint32_t components = 0;
        ditto_tensor spec[DITTO_MAX_COMPONENTS];
        ditto_batch batch;
        if (ditto_iterator_element_spec(i->iterator, &components, spec) != DITTO_OK || components != 1)
            atomic_fetch_add(&i->wrong, 1);
        if (ditto_next(ditto_get_replica_context(), i->iterator, &batch) != DITTO_ERR_CONTEXT)
            atomic_fetch_add(&i->wrong, 1);
        atomic_fetch_add(&i->looks, 1);
    }
    return NULL;
}

static int destroy_under_iterators(void *unused)
{
    (void)unused;
    for (int round = 0; round < 20; round++) {
        ditto_strategy *strategy;
        struct iterating i = { .iterator = NULL };
        pthread_t thread;
        ditto_status status;
        REQUIRE(make(2, DITTO_CALLER_DEFAULT, 0, &strategy) && make_iterator(strategy, 0, &i.iterator));
        REQUIRE(pthread_create(&thread, NULL, look_at_iterator, &i) == 0);
        while (atomic_load(&i.looks) == 0)
            sleep_ms(1);
        while ((status = ditto_strategy_destroy(strategy)) == DITTO_ERR_BUSY)
            ;
        REQUIRE(status == DITTO_OK);
        for (int looks = atomic_load(&i.looks); atomic_load(&i.looks) < looks + 2;)
            sleep_ms(1);
        atomic_store(&i.may_end, 1);
        pthread_join(thread, NULL);
        REQUIRE(atomic_load(&i.wrong) == 0);
        REQUIRE(ditto_iterator_destroy(i.iterator) == DITTO_OK);
    }
    return 0;
}

static void calls_on_iterators_see_their_strategy_or_that_it_is_gone(void **state)
{
    (void)state;
    assert_int_equal(in_child(destroy_under_iterators, NULL, 120), 0);
}

static ditto_status ignore_batch(ditto_replica *self, const ditto_batch *batch, void *unused)
{
    (void)self, (void)batch, (void)unused;
    return DITTO_OK;
}

static ditto_status call_steps(struct waiting *w)
{
    while (!atomic_load(&w->may_begin)) /* without sleeping, which it does in the call alone */
        sched_yield();
    return ditto_strategy_run_steps(w->strategy, w->iterator, 3, ignore_batch, NULL, NULL, NULL, NULL);
}

/* A merge function has the turn, so the other thread waits for it, whatever is destroyed here. */
static ditto_status destroy_under_the_other(ditto_strategy *strategy, ditto_value *const *arguments,
                                            uint32_t count, void *user, ditto_value **result)
{
    struct waiting *w = user;
    (void)strategy, (void)arguments, (void)count, (void)result;
    atomic_store(&w->may_begin, 1);
    if (!await_sleep(&w->thread_id))
        return DITTO_ERR_USER;
    w->destroyed = ditto_iterator_destroy(w->iterator);
    return DITTO_OK;
}

static ditto_status merge_and_destroy(ditto_replica *self, void *w)
{
    return ditto_merge_call(self, destroy_under_the_other, w, NULL, 0, NULL);
}

static int destroy_iterator_under(void *replicas)
{
    struct waiting w = { .call = call_steps };
    pthread_t thread;
    spoil_freed_memory();
    REQUIRE(make(*(const uint32_t *)replicas, DITTO_CALLER_DEFAULT, 0, &w.strategy));
    REQUIRE(make_iterator(w.strategy, 0, &w.iterator));
    REQUIRE(pthread_create(&thread, NULL, call_and_return, &w) == 0);
    REQUIRE(ditto_strategy_run(w.strategy, merge_and_destroy, &w) == DITTO_OK);
    pthread_join(thread, NULL);
    REQUIRE(w.destroyed == DITTO_ERR_BUSY && w.status == DITTO_OK);
    REQUIRE(ditto_iterator_destroy(w.iterator) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(w.strategy) == DITTO_OK);
    return 0;
}

static void destroying_an_iterator_is_busy_while_run_steps_waits_for_its_turn(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNTS; i++)
        assert_int_equal(in_child(destroy_iterator_under, (void *)(uintptr_t)&counts[i], 60), 0);
}

/* -- handles that outlive the strategy, used inside a run of the next one -- */

/* The next strategy's team may lie where that of the one before did. */
struct stale {
    ditto_variable *variable;
    ditto_iterator *iterator;
    ditto_value *value;
    ditto_status read, generation, taken, looked, crossed;
};

static ditto_status use_stale_across(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                     void *argument, ditto_value **result)
{
    struct stale *s = argument;
    float copy[4];
    (void)strategy, (void)arguments, (void)count, (void)result;
    s->crossed = ditto_variable_read(s->variable, copy, sizeof copy);
    return DITTO_OK;
}

static ditto_status use_stale(ditto_replica *self, void *argument)
{
    struct stale *s = argument;
    const void *data;
    ditto_batch batch;
    ditto_tensor part;
    if (ditto_replica_id(self) == 1) {
        s->read = ditto_read(self, s->variable, &data);
        s->generation = ditto_generation(self, s->variable) == 0 ? ditto_last_error()->status : DITTO_OK;
        s->taken = ditto_next(self, s->iterator, &batch);
        s->looked = ditto_local(self, s->value, &part);
    }
    return ditto_merge_call(self, use_stale_across, s, NULL, 0, NULL);
}

static int use_stale_handles(void *unused)
{
    (void)unused;
    for (int round = 0; round < 20; round++) {
        ditto_strategy *strategy;
        struct stale s = { .variable = NULL };
        REQUIRE(make(2, DITTO_CALLER_DEFAULT, 0, &strategy) && make_variable(strategy, &s.variable));
        REQUIRE(make_iterator(strategy, 0, &s.iterator) &&
                ditto_variable_value(s.variable, &s.value) == DITTO_OK);
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
        REQUIRE(make(2, DITTO_CALLER_DEFAULT, 0, &strategy));
        REQUIRE(ditto_strategy_run(strategy, use_stale, &s) == DITTO_OK);
        REQUIRE(s.read == DITTO_ERR_CONTEXT && s.generation == DITTO_ERR_CONTEXT);
        REQUIRE(s.taken == DITTO_ERR_CONTEXT && s.looked == DITTO_ERR_CONTEXT &&
                s.crossed == DITTO_ERR_CONTEXT);
        REQUIRE(ditto_value_destroy(s.value) == DITTO_OK && ditto_iterator_destroy(s.iterator) == DITTO_OK);
        REQUIRE(ditto_variable_destroy(s.variable) == DITTO_OK &&
                ditto_strategy_destroy(strategy) == DITTO_OK);
    }
    return 0;
}

static void handles_of_a_destroyed_strategy_are_refused_inside_a_run_of_the_next_one(void **state)
{
    (void)state;
    assert_int_equal(in_child(use_stale_handles, NULL, 120), 0);
}

/* -- handles that outlive the strategy, used while it goes -- */

struct lookers {
    ditto_variable *variable;
    ditto_value *value;
    ditto_iterator *iterator;
    _Atomic int ready;
    _Atomic int wrong; /* statuses that are neither OK nor CONTEXT */
};

static void *look_until_it_is_gone(void *argument)
{
    struct lookers *l = argument;
    ditto_status read, spec;
    do {
        float copy[4];
        ditto_tensor tensor;
        ditto_batch batch;
        if (ditto_next(ditto_get_replica_context(), l->iterator, &batch) != DITTO_ERR_CONTEXT)
            atomic_fetch_add(&l->wrong, 1); /* this thread is a replica of the default strategy */
        read = ditto_variable_read(l->variable, copy, sizeof copy);
        spec = ditto_value_component(l->value, 1, &tensor);
        (void)ditto_variable_generation(l->variable); /* 0 when it is gone */
        atomic_store(&l->ready, 1);
        if ((read != DITTO_OK && read != DITTO_ERR_CONTEXT) ||
            (spec != DITTO_OK && spec != DITTO_ERR_CONTEXT))
            atomic_fetch_add(&l->wrong, 1);
    } while (read == DITTO_OK || spec == DITTO_OK);
    return NULL;
}

static int destroy_under_lookers(void *unused)
{
    (void)unused;
    for (int round = 0; round < 20; round++) {
        ditto_strategy *strategy;
        struct lookers l = { .variable = NULL };
        pthread_t thread;
        float one = 1;
        ditto_tensor part[2] = { { .data = &one, .dtype = DITTO_F32 }, { .data = &one, .dtype = DITTO_F32 } };
        REQUIRE(make(2, DITTO_CALLER_DEFAULT, 0, &strategy) && make_variable(strategy, &l.variable));
        REQUIRE(ditto_strategy_value_from_tensors(strategy, part, 1, &l.value) == DITTO_OK);
        REQUIRE(make_iterator(strategy, 0, &l.iterator));
        REQUIRE(pthread_create(&thread, NULL, look_until_it_is_gone, &l) == 0);
        while (!atomic_load(&l.ready))
            sleep_ms(1);
        ditto_status status;
        while ((status = ditto_strategy_destroy(strategy)) == DITTO_ERR_BUSY)
            ;
        REQUIRE(status == DITTO_OK);
        pthread_join(thread, NULL);
        REQUIRE(atomic_load(&l.wrong) == 0);
        REQUIRE(ditto_iterator_destroy(l.iterator) == DITTO_OK);
        REQUIRE(ditto_value_destroy(l.value) == DITTO_OK && ditto_variable_destroy(l.variable) == DITTO_OK);
    }
    return 0;
}

static void calls_on_variables_values_and_iterators_see_their_strategy_or_that_it_is_gone(void **state)
{
    (void)state;
    assert_int_equal(in_child(destroy_under_lookers, NULL, 120), 0);
}

/* -- poisoned inside an inner run -- */

static _Atomic int inner_may_end, outer_may_end, inner_is_done, outer_has_ended;

static ditto_status inner_waits(ditto_replica *self, void *unused)
{
    (void)unused;
    while (ditto_replica_id(self) == 1 && !atomic_load(&inner_may_end))
        sleep_ms(1);
    return DITTO_OK;
}

/* Returns from the inner run, and stays in the function around it. */
static ditto_status run_inside(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                               void *unused, ditto_value **result)
{
    (void)arguments, (void)count, (void)unused, (void)result;
    ditto_status status = ditto_strategy_run(strategy, inner_waits, NULL);
    atomic_store(&inner_is_done, 1);
    while (!atomic_load(&outer_may_end))
        sleep_ms(1);
    return status;
}

static ditto_status merge_and_end(ditto_replica *self, void *unused)
{
    (void)unused;
    ditto_status status = ditto_merge_call(self, run_inside, NULL, NULL, 0, NULL);
    atomic_fetch_add(&outer_has_ended, 1);
    return status;
}

/* All replicas have done the inner run, and none has returned from its function: the strategy is left to
 * them. */
static int destroy_after_the_inner_run(void *unused)
{
    ditto_strategy *strategy;
    (void)unused;
    long threads = count_threads();
    REQUIRE(make(2, DITTO_CALLER_WAITS, 50, &strategy));
    REQUIRE(ditto_strategy_run(strategy, merge_and_end, NULL) == DITTO_ERR_TIMED_OUT);
    atomic_store(&inner_may_end, 1);
    while (!atomic_load(&inner_is_done))
        sleep_ms(1);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_ERR_POISONED);
    REQUIRE(atomic_load(&outer_has_ended) <=
            1); /* replica 1 may serve no more; replica 0 is in its function */
    atomic_store(&outer_may_end, 1);
    for (int i = 0; i < 1000 && count_threads() > threads; i++)
        sleep_ms(10);
    REQUIRE(count_threads() <= threads + 1 && atomic_load(&outer_has_ended) == 2);
    return 0;
}

/* The inner run itself has not ended: destroy does not wait for the replica that is done with it and sleeps
 * in its own function. */
static ditto_status stay_in_inner(ditto_replica *self, void *unused)
{
    (void)unused;
    while (ditto_replica_id(self) == 0 && !atomic_load(&inner_may_end))
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status run_stuck(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                              void *unused, ditto_value **result)
{
    (void)arguments, (void)count, (void)unused, (void)result;
    return ditto_strategy_run(strategy, stay_in_inner, NULL);
}

static ditto_status merge_and_stay(ditto_replica *self, void *unused)
{
    (void)unused;
    ditto_status status = ditto_merge_call(self, run_stuck, NULL, NULL, 0, NULL);
    while (ditto_replica_id(self) == 1 && !atomic_load(&outer_may_end))
        sleep_ms(1);
    return status;
}

static int destroy_during_the_inner_run(void *unused)
{
    ditto_strategy *strategy;
    (void)unused;
    long threads = count_threads();
    REQUIRE(make(2, DITTO_CALLER_WAITS, 50, &strategy));
    REQUIRE(ditto_strategy_run(strategy, merge_and_stay, NULL) == DITTO_ERR_TIMED_OUT);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_ERR_POISONED); /* and returns: nobody lets it go on */
    REQUIRE(strstr(ditto_last_error()->message, "replicas 0, 1 never returned") != NULL);
    atomic_store(&inner_may_end, 1);
    atomic_store(&outer_may_end, 1);
    for (int i = 0; i < 1000 && count_threads() > threads; i++)
        sleep_ms(10);
    REQUIRE(count_threads() <= threads + 1);
    return 0;
}

static void a_strategy_that_was_poisoned_inside_an_inner_run_is_left_to_its_replicas(void **state)
{
    (void)state;
    assert_int_equal(in_child(destroy_after_the_inner_run, NULL, 60), 0);
    assert_int_equal(in_child(destroy_during_the_inner_run, NULL, 60), 0);
}

/* -- destroyed by one thread while another destroys the strategy -- */

struct beside {
    ditto_optimizer *optimizer;
    ditto_iterator *iterator;
    _Atomic int ready, may_go, has_begun, has_returned;
    ditto_status status;
    bool returned_early;
};

static void *destroy_the_optimizer(void *argument)
{
    struct beside *b = argument;
    atomic_store(&b->ready, 1);
    while (!atomic_load(&b->may_go))
        ;
    atomic_store(&b->has_begun, 1);
    b->status = ditto_optimizer_destroy(b->optimizer);
    atomic_store(&b->has_returned, 1);
    return NULL;
}

/* What the test puts among the things that a strategy tells of its end, the youngest of them first. */
struct told {
    struct dti_dependent dependent;
    struct beside *beside;
};

/* The other thread gets a moment, in which it must wait: all gates are shut. */
static void let_the_other_begin(struct dti_dependent *dependent, enum dti_team_end end)
{
    struct beside *b = ((struct told *)dependent)->beside;
    (void)end;
    atomic_store(&b->may_go, 1);
    while (!atomic_load(&b->has_begun))
        sleep_ms(1);
    sleep_ms(10);
    b->returned_early = atomic_load(&b->has_returned);
}

static const struct dti_dependent_kind first_notified = { .what = "the one told first",
                                                          .team_ends = let_the_other_begin };

static ditto_status destroy_when_idle(ditto_strategy *strategy)
{
    ditto_status status;
    while ((status = ditto_strategy_destroy(strategy)) == DITTO_ERR_BUSY)
        ;
    return status;
}

/* The optimizer's destroy begins while the strategy's is at work, and ends behind it. */
static int destroy_between(void *replicas)
{
    ditto_optimizer_options adam = DITTO_OPTIMIZER_OPTIONS_INIT;
    struct beside b = { .optimizer = NULL };
    struct told told = { .dependent = { .kind = &first_notified }, .beside = &b };
    ditto_strategy *strategy;
    ditto_variable *variable;
    pthread_t thread;
    adam.rule = DITTO_RULE_ADAM;
    spoil_freed_memory();
    REQUIRE(make(*(const uint32_t *)replicas, DITTO_CALLER_DEFAULT, 0, &strategy));
    REQUIRE(make_variable(strategy, &variable));
    REQUIRE(ditto_optimizer_create(&variable, 1, &adam, &b.optimizer) == DITTO_OK);
    REQUIRE(dti_watch(strategy, &told.dependent) == DITTO_OK);
    watch_free(b.optimizer);
    REQUIRE(pthread_create(&thread, NULL, destroy_the_optimizer, &b) == 0);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    pthread_join(thread, NULL);
    REQUIRE(b.status == DITTO_OK && !b.returned_early && was_freed());
    REQUIRE(ditto_variable_destroy(variable) == DITTO_OK);
    return 0;
}

static int destroy_both(void *replicas)
{
    for (int round = 0; round < test_trials(100); round++) {
        ditto_optimizer_options adam = DITTO_OPTIMIZER_OPTIONS_INIT;
        struct beside b = { .optimizer = NULL };
        ditto_strategy *strategy;
        ditto_variable *variable;
        pthread_t thread;
        adam.rule = DITTO_RULE_ADAM;
        REQUIRE(make(*(const uint32_t *)replicas, DITTO_CALLER_DEFAULT, 0, &strategy));
        REQUIRE(make_variable(strategy, &variable));
        REQUIRE(ditto_optimizer_create(&variable, 1, &adam, &b.optimizer) == DITTO_OK);
        watch_free(b.optimizer);
        REQUIRE(pthread_create(&thread, NULL, destroy_the_optimizer, &b) == 0);
        while (!atomic_load(&b.ready))
            sleep_ms(0);
        atomic_store(&b.may_go, 1);
        for (volatile int spin = 0; spin < round * 200; spin++)
            ;
        REQUIRE(destroy_when_idle(strategy) == DITTO_OK);
        pthread_join(thread, NULL);
        REQUIRE(b.status == DITTO_OK && was_freed());
        REQUIRE(ditto_variable_destroy(variable) == DITTO_OK);
    }
    return 0;
}

static void an_optimizer_is_destroyed_beside_its_strategy(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNTS; i++) {
        void *replicas = (void *)(uintptr_t)&counts[i];
        assert_int_equal(in_child(destroy_between, replicas, 60), 0);
        /* A sanitizer tells of races and leaks when the program ends. */
        assert_int_equal(SANITIZED ? destroy_both(replicas) : in_child(destroy_both, replicas, 120), 0);
    }
}

/* A function of a dataset that returns when the iterator's destroy has, or has had a while to. */
static ditto_status hold_the_producer(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                                      void *argument)
{
    struct beside *b = argument;
    (void)random;
    atomic_store(&b->ready, 1);
    while (!atomic_load(&b->has_begun))
        sleep_ms(1);
    for (int i = 0; i < 100 && !atomic_load(&b->has_returned); i++)
        sleep_ms(1);
    memcpy(out->data, in->data, sizeof(int64_t));
    return DITTO_OK;
}

static void *destroy_the_iterator(void *argument)
{
    struct beside *b = argument;
    while (!atomic_load(&b->may_go))
        sleep_ms(1);
    atomic_store(&b->has_begun, 1);
    while ((b->status = ditto_iterator_destroy(b->iterator)) == DITTO_ERR_BUSY)
        ;
    atomic_store(&b->has_returned, 1);
    return NULL;
}

static void let_the_other_go(struct dti_dependent *dependent, enum dti_team_end end)
{
    (void)end;
    atomic_store(&((struct told *)dependent)->beside->may_go, 1);
}

static const struct dti_dependent_kind before_the_iterator = { .what = "the one told first",
                                                               .team_ends = let_the_other_go };

/* The strategy's destroy waits for the producer, whose function waits for the iterator's destroy on another
 * thread. */
static int destroy_iterator_beside(void *replicas)
{
    struct beside b = { .iterator = NULL };
    struct told told = { .dependent = { .kind = &before_the_iterator }, .beside = &b };
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    ditto_strategy *strategy;
    ditto_dataset *rows, *held;
    pthread_t thread;
    options.global_batch = 8;
    REQUIRE(make(*(const uint32_t *)replicas, DITTO_CALLER_DEFAULT, 0, &strategy));
    REQUIRE(ditto_dataset_from_range(0, 1000, 1, &rows) == DITTO_OK);
    REQUIRE(ditto_dataset_map(rows, hold_the_producer, &b, NULL, &held) == DITTO_OK);
    REQUIRE(ditto_strategy_iterate(strategy, held, &options, &b.iterator) == DITTO_OK);
    REQUIRE(dti_watch(strategy, &told.dependent) == DITTO_OK);
    watch_free(b.iterator);
    REQUIRE(pthread_create(&thread, NULL, destroy_the_iterator, &b) == 0);
    while (!atomic_load(&b.ready))
        sleep_ms(1);
    REQUIRE(destroy_when_idle(strategy) == DITTO_OK);
    pthread_join(thread, NULL);
    REQUIRE(b.status == DITTO_OK && was_freed());
    ditto_dataset_destroy(held);
    ditto_dataset_destroy(rows);
    return 0;
}

static void an_iterator_is_destroyed_beside_its_strategy(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNTS; i++)
        assert_int_equal(in_child(destroy_iterator_beside, (void *)(uintptr_t)&counts[i], 60), 0);
}

/* -- a merge function of a run that was given up changes the list of its strategy's objects -- */

static _Atomic int is_leaving, may_leave, has_left;

static void leave_slowly(struct dti_dependent *dependent, enum dti_team_end end)
{
    (void)dependent, (void)end;
    atomic_store(&is_leaving, 1);
    while (!atomic_load(&may_leave))
        sleep_ms(1);
}

static void release_nothing(struct dti_dependent *dependent)
{
    (void)dependent;
}

static const struct dti_dependent_kind slow_to_leave = { .what = "the slow one",
                                                         .leave = leave_slowly,
                                                         .release = release_nothing };

static ditto_status destroy_the_slow_one(ditto_strategy *strategy, ditto_value *const *arguments,
                                         uint32_t count, void *dependent, ditto_value **result)
{
    (void)strategy, (void)arguments, (void)count, (void)result;
    ditto_status status = dti_dependent_destroy(dependent);
    atomic_store(&has_left, 1);
    return status;
}

static ditto_status merge_the_slow_one(ditto_replica *self, void *dependent)
{
    return ditto_merge_call(self, destroy_the_slow_one, dependent, NULL, 0, NULL);
}

static int destroy_beside_a_change_of_the_list(void *unused)
{
    static struct dti_dependent slow = { .kind =
                                             &slow_to_leave }; /* for ever: the replica may still use it */
    ditto_strategy *strategy;
    ditto_status status;
    (void)unused;
    REQUIRE(make(2, DITTO_CALLER_WAITS, 50, &strategy));
    REQUIRE(dti_watch(strategy, &slow) == DITTO_OK);
    REQUIRE(ditto_strategy_run(strategy, merge_the_slow_one, &slow) == DITTO_ERR_TIMED_OUT);
    REQUIRE(atomic_load(&is_leaving) && !atomic_load(&has_left));
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_ERR_BUSY);
    atomic_store(&may_leave, 1);
    while (!atomic_load(&has_left))
        sleep_ms(1);
    status = destroy_when_idle(strategy);
    REQUIRE(status == DITTO_OK || status == DITTO_ERR_POISONED); /* as its replicas have returned by now */
    return 0;
}

static void destroying_a_poisoned_strategy_is_busy_while_a_late_function_changes_its_list(void **state)
{
    (void)state;
    assert_int_equal(in_child(destroy_beside_a_change_of_the_list, NULL, 60), 0);
}

/* -- handles of a poisoned strategy -- */

/* The last replica of several; a single one is late while its caller waits. */
struct late_case {
    uint32_t replicas;
    bool strategy_first; /* is it destroyed first, or its handles? */
    uint32_t flags;      /* of the iterator */
};

static bool make_late(uint32_t replicas, ditto_strategy **out)
{
    return make(replicas, replicas == 1 ? DITTO_CALLER_WAITS : DITTO_CALLER_DEFAULT, 50, out);
}

static bool is_late(const ditto_replica *self)
{
    return ditto_replica_id(self) == ditto_num_replicas(self) - 1;
}

static bool await_all_returned(ditto_strategy *strategy)
{
    for (int i = 0; i < 6000; i++, sleep_ms(10))
        if (dti_team_all_returned(dti_team_of(strategy)))
            return true;
    return false;
}

struct late {
    ditto_variable *variable;
    ditto_optimizer *optimizer;
    ditto_iterator *iterator;
    const ditto_value *value;
    _Atomic int may_go_on, has_ended;
    ditto_status assigned, applied, returned, taken;
    uint64_t rows;
    int64_t row;
};

static ditto_status come_late(ditto_replica *self, void *argument)
{
    struct late *l = argument;
    float ones[4] = { 1, 1, 1, 1 };
    ditto_batch batch;
    ditto_tensor part;
    if (!is_late(self))
        return DITTO_OK;
    while (!atomic_load(&l->may_go_on))
        sleep_ms(1);
    l->assigned = ditto_assign(self, l->variable, ones);
    part = (ditto_tensor){ .data = ones, .dtype = DITTO_F32, .rank = 1, .shape = { 4 } };
    l->applied = ditto_apply(self, l->optimizer, &part, NULL);
    l->returned = ditto_argument(self, NULL, &part);
    l->taken = ditto_next(self, l->iterator, &batch);
    if (l->taken == DITTO_OK) {
        l->rows = batch.rows;
        l->row = *(const int64_t *)batch.component[0].data;
    }
    atomic_store(&l->has_ended, 1);
    return l->assigned;
}

static int use_handles_late(void *argument)
{
    static struct late l; /* for ever: the replica may still use it */
    const struct late_case *c = argument;
    ditto_strategy *strategy;
    float one = 1;
    ditto_tensor part[8];
    ditto_value *value;
    spoil_freed_memory();
    for (uint32_t i = 0; i < c->replicas; i++)
        part[i] = (ditto_tensor){ .data = &one, .dtype = DITTO_F32 };
    REQUIRE(make_late(c->replicas, &strategy) && make_variable(strategy, &l.variable));
    REQUIRE(make_iterator(strategy, c->flags, &l.iterator));
    REQUIRE(ditto_strategy_value_from_tensors(strategy, part, 1, &value) == DITTO_OK);
    ditto_optimizer_options adam = DITTO_OPTIMIZER_OPTIONS_INIT;
    adam.rule = DITTO_RULE_ADAM;
    REQUIRE(ditto_optimizer_create(&l.variable, 1, &adam, &l.optimizer) == DITTO_OK);
    REQUIRE(ditto_strategy_run_values(strategy, come_late, &l, value, NULL, NULL) == DITTO_ERR_TIMED_OUT);
    if (c->strategy_first)
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_ERR_POISONED);
    watch_free(l.iterator);
    REQUIRE(ditto_iterator_destroy(l.iterator) == DITTO_OK);
    REQUIRE(ditto_optimizer_destroy(l.optimizer) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(l.variable) == DITTO_OK);
    REQUIRE(ditto_value_destroy(value) == DITTO_OK);
    REQUIRE(!was_freed());
    atomic_store(&l.may_go_on, 1);
    for (int i = 0; i < 6000 && !atomic_load(&l.has_ended); i++)
        sleep_ms(10);
    REQUIRE(atomic_load(&l.has_ended));
    REQUIRE(l.assigned == DITTO_ERR_PEER_STOPPED && l.applied == DITTO_ERR_PEER_STOPPED);
    REQUIRE(l.taken == DITTO_OK || l.taken == DITTO_ERR_PEER_STOPPED);
    REQUIRE(l.returned == DITTO_OK || l.returned == DITTO_ERR_NOT_FOUND || l.returned == DITTO_ERR_CONTEXT);
    REQUIRE(l.taken == DITTO_OK && l.rows == 2); /* a batch was there: its own two rows of the first */
    REQUIRE(l.row == 2 * (int64_t)(c->replicas - 1));
    if (!c->strategy_first) { /* then nothing is left */
        REQUIRE(await_all_returned(strategy));
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK && was_freed());
    }
    return 0;
}

static void handles_of_a_poisoned_strategy_stay_for_the_replica_that_is_late(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNTS; i++)
        for (int strategy_first = 0; strategy_first < 2; strategy_first++) {
            struct late_case c = { counts[i], strategy_first != 0, i % 2 != 0 ? DITTO_INPUT_HOST_MEMORY : 0 };
            assert_int_equal(in_child(use_handles_late, &c, 120), 0);
        }
}

/* -- values of a poisoned run -- */

struct merging {
    _Atomic(ditto_value *) merged;
    _Atomic int may_go_on;
};

static ditto_status merge_a_value(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                  void *user, ditto_value **result)
{
    struct merging *m = user;
    float one = 1;
    ditto_tensor part[8];
    (void)arguments, (void)count;
    for (uint32_t i = 0; i < ditto_strategy_num_replicas(strategy); i++)
        part[i] = (ditto_tensor){ .data = &one, .dtype = DITTO_F32 };
    DITTO_TRY(ditto_strategy_value_from_tensors(strategy, part, 1, result));
    atomic_store(&m->merged, *result);
    return DITTO_OK;
}

static ditto_status merge_and_come_late(ditto_replica *self, void *argument)
{
    struct merging *m = argument;
    DITTO_TRY(ditto_merge_call(self, merge_a_value, m, NULL, 0, NULL));
    DITTO_TRY(ditto_return_f64(self, NULL, 1));
    while (is_late(self) && !atomic_load(&m->may_go_on))
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status run_the_merging(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                    void *user, ditto_value **result)
{
    ditto_value *inner = NULL;
    (void)arguments, (void)count, (void)result;
    return ditto_strategy_run_values(strategy, merge_and_come_late, user, NULL, NULL, &inner);
}

static ditto_status merge_inside(ditto_replica *self, void *argument)
{
    return ditto_merge_call(self, run_the_merging, argument, NULL, 0, NULL);
}

/* A run that is inside another has a place of its own for what its merge functions give. */
struct merging_case {
    uint32_t replicas;
    ditto_replica_fn function;
};

static int drop_what_a_poisoned_run_merged(void *argument)
{
    static struct merging m; /* for ever: the replica may still use it */
    const struct merging_case *c = argument;
    ditto_value *const nothing = (ditto_value *)&m;
    ditto_value *result = nothing;
    ditto_strategy *strategy;
    spoil_freed_memory();
    REQUIRE(make_late(c->replicas, &strategy));
    REQUIRE(ditto_strategy_run_values(strategy, c->function, &m, NULL, NULL, &result) == DITTO_ERR_TIMED_OUT);
    REQUIRE(result == nothing && atomic_load(&m.merged) != NULL);
    watch_free(atomic_load(&m.merged));
    atomic_store(&m.may_go_on, 1);
    REQUIRE(await_all_returned(strategy));
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    REQUIRE(was_freed());
    return 0;
}

static void what_a_poisoned_run_merged_goes_with_its_strategy(void **state)
{
    static const ditto_replica_fn functions[] = { merge_and_come_late, merge_inside };
    (void)state;
    for (size_t i = 0; i < COUNTS; i++)
        for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
            struct merging_case c = { counts[i], functions[k] };
            assert_int_equal(in_child(drop_what_a_poisoned_run_merged, &c, 60), 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(destroying_a_strategy_is_busy_while_a_call_waits_for_its_turn),
        cmocka_unit_test(destroying_a_variable_is_busy_while_a_call_on_it_waits_for_its_turn),
        cmocka_unit_test(destroying_a_variable_is_busy_while_a_call_on_its_value_waits_for_its_turn),
        cmocka_unit_test(destroying_a_variable_is_busy_while_one_is_created_beside_it),
        cmocka_unit_test(a_value_of_a_variable_that_was_destroyed_is_refused),
        cmocka_unit_test(calls_on_a_value_see_its_variable_or_that_it_is_gone),
        cmocka_unit_test(destroying_is_busy_while_a_replica_of_the_default_strategy_is_in_a_call),
        cmocka_unit_test(calls_on_iterators_see_their_strategy_or_that_it_is_gone),
        cmocka_unit_test(destroying_an_iterator_is_busy_while_run_steps_waits_for_its_turn),
        cmocka_unit_test(calls_on_variables_values_and_iterators_see_their_strategy_or_that_it_is_gone),
        cmocka_unit_test(handles_of_a_destroyed_strategy_are_refused_inside_a_run_of_the_next_one),
        cmocka_unit_test(a_strategy_that_was_poisoned_inside_an_inner_run_is_left_to_its_replicas),
        cmocka_unit_test(an_optimizer_is_destroyed_beside_its_strategy),
        cmocka_unit_test(an_iterator_is_destroyed_beside_its_strategy),
        cmocka_unit_test(destroying_a_poisoned_strategy_is_busy_while_a_late_function_changes_its_list),
        cmocka_unit_test(handles_of_a_poisoned_strategy_stay_for_the_replica_that_is_late),
        cmocka_unit_test(what_a_poisoned_run_merged_goes_with_its_strategy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
