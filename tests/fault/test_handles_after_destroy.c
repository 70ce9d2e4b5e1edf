/* tests/fault/test_handles_after_destroy.c - calls with a handle whose object, or whose strategy, is being
 * destroyed or has been destroyed. A call that needs the contents either completes before the destruction, or
 * is refused. The object itself can always be destroyed. Each case runs in a child process, with one
 * exception for sanitizers. */
#include "replicas/team/dependent.h"
#include "support/single_step.h"
#include "support/support.h"
#include "fault/lifetime.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* -- Values of a variable that has been destroyed -- */

/* Returns DITTO_ERR_CONTEXT if all calls on w->value do. */
static ditto_status call_all(struct waiting *w)
{
    for (size_t i = 0; i < CALLS_WITHOUT_TURN + CALLS_IN_TURN; i++) {
        ditto_status status = i < CALLS_WITHOUT_TURN ? calls_without_turn[i](w)
                                                     : calls_in_turn[i - CALLS_WITHOUT_TURN](w);
        if (status != DITTO_ERR_CONTEXT)
            return DITTO_ERR_USER;
    }
    return DITTO_ERR_CONTEXT;
}

/* A merge function. Its thread has the turn, and so its calls enter no gates of objects that exist. Its calls
 * on the value of the destroyed variable must be refused nevertheless. */
static ditto_status destroy_and_call(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                     void *argument, ditto_value **result)
{
    struct waiting *w = argument;
    ditto_value *made;
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
    /* The memory of a component belonged to a copy of the variable. */
    REQUIRE(ditto_value_tensor(part[1], &tensor) == DITTO_ERR_CONTEXT);
    both[0] = part[1], both[1] = part[0];
    REQUIRE(ditto_strategy_regroup(w.strategy, both, 0, &again) == DITTO_ERR_CONTEXT);
    /* A call that does not read the contents still accepts the value. */
    REQUIRE(ditto_value_member(nest, "1", &found) == DITTO_OK && found == w.value);
    REQUIRE(ditto_value_destroy(part[0]) == DITTO_OK && ditto_value_destroy(part[1]) == DITTO_OK);
    REQUIRE(ditto_value_destroy(nest) == DITTO_OK);
    REQUIRE(drop_all(&w));
    return 0;
}

static void a_value_of_a_variable_that_was_destroyed_is_refused(void **state)
{
    assert_int_equal(in_child(use_value_of_destroyed, &(bool){ false }, 60), 0);
    assert_int_equal(in_child(use_value_of_destroyed, &(bool){ true }, 60), 0);
}

/* -- Calls on a value, while another thread destroys its variable -- */

static void *call_until_refused(void *argument)
{
    struct waiting *w = argument;
    w->first_status = w->status = w->call(w);
    atomic_store(&w->has_returned, 1);
    while (w->status == DITTO_OK) {
        while (atomic_load(&w->must_wait))
            sleep_ms(1);
        w->status = w->call(w);
    }
    return NULL;
}

/* Destroys the variable when the other thread is between two calls. On one CPU this thread may run only while
 * the other one sleeps in a call. After many refusals the other thread therefore waits before its next
 * call. */
static ditto_status destroy_between_calls(struct waiting *w)
{
    enum { MANY = 10000 };
    ditto_status status;
    for (int refusals = 0; (status = ditto_variable_destroy(w->variable)) == DITTO_ERR_BUSY; refusals++) {
        if (refusals == MANY)
            atomic_store(&w->must_wait, 1);
        sched_yield();
    }
    atomic_store(&w->must_wait, 0);
    return status;
}

static int destroy_under_callers(void *call)
{
    for (int round = 0; round < 10; round++) {
        struct waiting w = { .call = *(ditto_status(**)(struct waiting *))call };
        pthread_t thread;
        REQUIRE(make_all(&w));
        REQUIRE(pthread_create(&thread, NULL, call_until_refused, &w) == 0);
        while (!atomic_load(&w.has_returned))
            sleep_ms(1);
        REQUIRE(destroy_between_calls(&w) == DITTO_OK);
        w.variable = NULL;
        pthread_join(thread, NULL);
        REQUIRE(w.first_status == DITTO_OK && w.status == DITTO_ERR_CONTEXT);
        REQUIRE(drop_all(&w));
    }
    return 0;
}

static void calls_on_a_value_succeed_until_its_variable_is_destroyed(void **state)
{
    for (size_t i = 0; i < CALLS_WITHOUT_TURN; i++)
        assert_int_equal(in_child(destroy_under_callers, (void *)(uintptr_t)&calls_without_turn[i], 60), 0);
    assert_int_equal(
        in_child(destroy_under_callers, &(ditto_status(*)(struct waiting *)){ call_assign_value }, 60), 0);
    assert_int_equal(in_child(destroy_under_callers, &(ditto_status(*)(struct waiting *)){ call_reduce }, 60),
                     0);
}

/* -- Calls on an iterator, while another thread destroys its strategy -- */

struct iterating {
    ditto_iterator *iterator;
    _Atomic int rounds, may_end;
    _Atomic int wrong; /* the number of unexpected results */
};

/* The spec can always be read. ditto_next is always refused, because this thread has a replica of the default
 * strategy alone. */
static void *look_at_iterator(void *argument)
{
    struct iterating *i = argument;
    while (!atomic_load(&i->may_end)) {
        ditto_element_spec spec;
        ditto_batch batch;
        if (ditto_iterator_spec(i->iterator, &spec) != DITTO_OK || spec.num_components != 1)
            atomic_fetch_add(&i->wrong, 1);
        if (ditto_next(ditto_get_replica_context(), i->iterator, &batch) != DITTO_ERR_CONTEXT)
            atomic_fetch_add(&i->wrong, 1);
        atomic_fetch_add(&i->rounds, 1);
    }
    return NULL;
}

static int destroy_under_iterators(void *unused)
{
    for (int round = 0; round < 20; round++) {
        ditto_strategy *strategy;
        struct iterating i = { .iterator = NULL };
        pthread_t thread;
        ditto_status status;
        REQUIRE(make(2, DITTO_CALLER_DEFAULT, 0, &strategy) && make_iterator(strategy, 0, &i.iterator));
        REQUIRE(pthread_create(&thread, NULL, look_at_iterator, &i) == 0);
        while (atomic_load(&i.rounds) == 0)
            sleep_ms(1);
        while ((status = ditto_strategy_destroy(strategy)) == DITTO_ERR_BUSY)
            ;
        REQUIRE(status == DITTO_OK);
        /* At least one round begins after the destruction. */
        for (int rounds = atomic_load(&i.rounds); atomic_load(&i.rounds) < rounds + 2;)
            sleep_ms(1);
        atomic_store(&i.may_end, 1);
        pthread_join(thread, NULL);
        REQUIRE(atomic_load(&i.wrong) == 0);
        REQUIRE(ditto_iterator_destroy(i.iterator) == DITTO_OK);
    }
    return 0;
}

static void the_spec_of_an_iterator_can_be_read_while_its_strategy_is_destroyed_and_after(void **state)
{
    assert_int_equal(in_child(destroy_under_iterators, NULL, 120), 0);
}

/* -- Handles of a strategy that has been destroyed, used inside a run of the next one -- */

/* Objects of the destroyed strategy, and the status of each call on them. The allocator may give the next
 * strategy's team the address of the previous one. */
struct stale {
    ditto_variable *variable;
    ditto_iterator *iterator;
    ditto_value *value;
    ditto_status read_status, next_status, local_status, cross_read_status;
    bool is_unowned;
};

static ditto_status use_stale_across(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                     void *argument, ditto_value **result)
{
    struct stale *s = argument;
    float copy[4];
    s->cross_read_status = ditto_variable_read(s->variable, copy, sizeof copy);
    return DITTO_OK;
}

static ditto_status use_stale(ditto_replica *self, void *argument)
{
    struct stale *s = argument;
    const void *data;
    ditto_batch batch;
    ditto_tensor part;
    if (ditto_replica_id(self) == 1) {
        s->read_status = ditto_read(self, s->variable, &data);
        ditto_variable_properties properties = DITTO_VARIABLE_PROPERTIES_INIT;
        DITTO_TRY(ditto_variable_info(s->variable, &properties));
        s->is_unowned = properties.strategy == NULL && properties.generation == 0;
        s->next_status = ditto_next(self, s->iterator, &batch);
        s->local_status = ditto_local(self, s->value, &part);
    }
    return ditto_merge_call(self, use_stale_across, s, NULL, 0, NULL);
}

static int use_stale_handles(void *unused)
{
    for (int round = 0; round < 20; round++) {
        ditto_strategy *strategy;
        struct stale s = { .variable = NULL };
        REQUIRE(make(2, DITTO_CALLER_DEFAULT, 0, &strategy) && make_variable(strategy, &s.variable));
        REQUIRE(make_iterator(strategy, 0, &s.iterator) &&
                ditto_variable_value(s.variable, &s.value) == DITTO_OK);
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
        REQUIRE(make(2, DITTO_CALLER_DEFAULT, 0, &strategy));
        REQUIRE(ditto_strategy_run(strategy, use_stale, &s) == DITTO_OK);
        REQUIRE(s.read_status == DITTO_ERR_CONTEXT && s.is_unowned);
        REQUIRE(s.next_status == DITTO_ERR_CONTEXT && s.local_status == DITTO_ERR_CONTEXT &&
                s.cross_read_status == DITTO_ERR_CONTEXT);
        REQUIRE(ditto_value_destroy(s.value) == DITTO_OK && ditto_iterator_destroy(s.iterator) == DITTO_OK);
        REQUIRE(ditto_variable_destroy(s.variable) == DITTO_OK &&
                ditto_strategy_destroy(strategy) == DITTO_OK);
    }
    return 0;
}

static void handles_of_a_destroyed_strategy_are_refused_inside_a_run_of_the_next_one(void **state)
{
    assert_int_equal(in_child(use_stale_handles, NULL, 120), 0);
}

/* -- Calls on variables and values, while another thread destroys their strategy -- */

struct lookers {
    ditto_variable *variable;
    ditto_value *value;
    ditto_iterator *iterator;
    _Atomic int ready;
    _Atomic int wrong; /* the number of unexpected results */
};

static void *look_until_refused(void *argument)
{
    struct lookers *l = argument;
    ditto_status read, component;
    do {
        float copy[4];
        ditto_tensor tensor;
        ditto_batch batch;
        /* This thread has a replica of the default strategy alone, so the iterator is refused. */
        if (ditto_next(ditto_get_replica_context(), l->iterator, &batch) != DITTO_ERR_CONTEXT)
            atomic_fetch_add(&l->wrong, 1);
        read = ditto_variable_read(l->variable, copy, sizeof copy);
        component = ditto_value_component(l->value, 1, &tensor);
        ditto_variable_properties properties = DITTO_VARIABLE_PROPERTIES_INIT;
        if (ditto_variable_info(l->variable, &properties) != DITTO_OK)
            atomic_fetch_add(&l->wrong, 1);
        /* The strategy is destroyed only after the first round. */
        if (atomic_load(&l->ready) == 0 && (read != DITTO_OK || component != DITTO_OK))
            atomic_fetch_add(&l->wrong, 1);
        atomic_store(&l->ready, 1);
        if ((read != DITTO_OK && read != DITTO_ERR_CONTEXT) ||
            (component != DITTO_OK && component != DITTO_ERR_CONTEXT))
            atomic_fetch_add(&l->wrong, 1);
    } while (read == DITTO_OK || component == DITTO_OK);
    return NULL;
}

static int destroy_under_lookers(void *unused)
{
    for (int round = 0; round < 20; round++) {
        ditto_strategy *strategy;
        struct lookers l = { .variable = NULL };
        pthread_t thread;
        float one = 1;
        ditto_tensor part[2] = { { .data = &one, .dtype = DITTO_F32 }, { .data = &one, .dtype = DITTO_F32 } };
        REQUIRE(make(2, DITTO_CALLER_DEFAULT, 0, &strategy) && make_variable(strategy, &l.variable));
        REQUIRE(ditto_strategy_value_from_tensors(strategy, part, 1, &l.value) == DITTO_OK);
        REQUIRE(make_iterator(strategy, 0, &l.iterator));
        REQUIRE(pthread_create(&thread, NULL, look_until_refused, &l) == 0);
        while (!atomic_load(&l.ready))
            sleep_ms(1);
        ditto_status status;
        while ((status = ditto_strategy_destroy(strategy)) == DITTO_ERR_BUSY)
            sched_yield();
        REQUIRE(status == DITTO_OK);
        pthread_join(thread, NULL);
        REQUIRE(atomic_load(&l.wrong) == 0);
        REQUIRE(ditto_iterator_destroy(l.iterator) == DITTO_OK);
        REQUIRE(ditto_value_destroy(l.value) == DITTO_OK && ditto_variable_destroy(l.variable) == DITTO_OK);
    }
    return 0;
}

static void calls_on_variables_and_values_succeed_until_their_strategy_is_destroyed(void **state)
{
    assert_int_equal(in_child(destroy_under_lookers, NULL, 120), 0);
}

/* -- One thread destroys an object while another destroys its strategy -- */

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
    /* It does not sleep, so that the calls of both threads begin close to each other. */
    while (!atomic_load(&b->may_go))
        sched_yield();
    atomic_store(&b->has_begun, 1);
    b->status = ditto_optimizer_destroy(b->optimizer);
    atomic_store(&b->has_returned, 1);
    return NULL;
}

/* A dependent of the test, which is added last. A strategy notifies its dependents of its end, beginning with
 * the one that was added last. */
struct first_notified {
    struct dti_dependent dependent;
    struct beside *beside;
};

/* Lets the other thread begin its destroy call. The call must not return before this function does, because
 * all gates are shut. */
static void let_the_other_begin(struct dti_dependent *dependent, enum dti_team_end end)
{
    struct beside *b = ((struct first_notified *)dependent)->beside;
    atomic_store(&b->may_go, 1);
    while (!atomic_load(&b->has_begun))
        sleep_ms(1);
    sleep_ms(10); /* a call that does not wait for the gates would return in this time */
    b->returned_early = atomic_load(&b->has_returned);
}

static const struct dti_dependent_kind optimizer_case_kind = {
    .what = "the dependent notified first",
    .team_ends = let_the_other_begin,
};

/* The destruction of the optimizer begins during that of the strategy, and must not complete before the
 * strategy has notified its dependents. */
static int destroy_between(void *replicas)
{
    struct beside b = { .optimizer = NULL };
    struct first_notified notified = { .dependent = { .kind = &optimizer_case_kind }, .beside = &b };
    ditto_strategy *strategy;
    ditto_variable *variable;
    pthread_t thread;
    spoil_freed_memory();
    REQUIRE(make(*(const uint32_t *)replicas, DITTO_CALLER_DEFAULT, 0, &strategy));
    REQUIRE(make_variable(strategy, &variable));
    REQUIRE(ditto_optimizer_create(&variable, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_ADAM),
                                   &b.optimizer) == DITTO_OK);
    REQUIRE(dti_watch(strategy, &notified.dependent) == DITTO_OK);
    watch_free(b.optimizer);
    REQUIRE(pthread_create(&thread, NULL, destroy_the_optimizer, &b) == 0);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    pthread_join(thread, NULL);
    REQUIRE(b.status == DITTO_OK && !b.returned_early && was_freed());
    REQUIRE(ditto_variable_destroy(variable) == DITTO_OK);
    return 0;
}

/* Two threads destroy the optimizer and the strategy at the same time. The delay between them grows from
 * round to round. */
static int destroy_both(void *replicas)
{
    for (int round = 0; round < test_trials(100); round++) {
        struct beside b = { .optimizer = NULL };
        ditto_strategy *strategy;
        ditto_variable *variable;
        pthread_t thread;
        REQUIRE(make(*(const uint32_t *)replicas, DITTO_CALLER_DEFAULT, 0, &strategy));
        REQUIRE(make_variable(strategy, &variable));
        REQUIRE(ditto_optimizer_create(&variable, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_ADAM),
                                       &b.optimizer) == DITTO_OK);
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

static void an_optimizer_can_be_destroyed_while_its_strategy_is(void **state)
{
    for (size_t i = 0; i < COUNTS; i++) {
        void *replicas = (void *)(uintptr_t)&counts[i];
        assert_int_equal(in_child(destroy_between, replicas, 60), 0);
        /* Sanitizers report when a program ends normally, so the test runs in this process for them. */
        assert_int_equal(SANITIZED ? destroy_both(replicas) : in_child(destroy_both, replicas, 120), 0);
    }
}

/* A function of a dataset. It waits until the destroy call of the iterator begins, and then 100 ms longer,
 * unless that call returns before. */
static ditto_status hold_the_producer(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                                      void *argument)
{
    struct beside *b = argument;
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
    atomic_store(&((struct first_notified *)dependent)->beside->may_go, 1);
}

static const struct dti_dependent_kind iterator_case_kind = {
    .what = "the dependent notified first",
    .team_ends = let_the_other_go,
};

/* The destruction of the strategy waits for the producer. The producer's function waits until another thread
 * destroys the iterator. */
static int destroy_iterator_beside(void *replicas)
{
    struct beside b = { .iterator = NULL };
    struct first_notified notified = { .dependent = { .kind = &iterator_case_kind }, .beside = &b };
    ditto_strategy *strategy;
    ditto_dataset *rows, *held;
    pthread_t thread;
    REQUIRE(make(*(const uint32_t *)replicas, DITTO_CALLER_DEFAULT, 0, &strategy));
    REQUIRE(ditto_dataset_from_range(0, 1000, 1, &rows) == DITTO_OK);
    REQUIRE(ditto_dataset_map(rows, hold_the_producer, &b, NULL, &held) == DITTO_OK);
    REQUIRE(ditto_strategy_iterate(strategy, held, &OPTIONS(input, .global_batch = 8), &b.iterator) ==
            DITTO_OK);
    REQUIRE(dti_watch(strategy, &notified.dependent) == DITTO_OK);
    watch_free(b.iterator);
    REQUIRE(pthread_create(&thread, NULL, destroy_the_iterator, &b) == 0);
    while (!atomic_load(&b.ready))
        sleep_ms(1);
    REQUIRE(destroy_when_idle(strategy) == DITTO_OK);
    pthread_join(thread, NULL);
    REQUIRE(b.status == DITTO_OK && was_freed());
    REQUIRE(ditto_dataset_destroy(held) == DITTO_OK);
    REQUIRE(ditto_dataset_destroy(rows) == DITTO_OK);
    return 0;
}

static void an_iterator_can_be_destroyed_while_its_strategy_is(void **state)
{
    for (size_t i = 0; i < COUNTS; i++)
        assert_int_equal(in_child(destroy_iterator_beside, (void *)(uintptr_t)&counts[i], 60), 0);
}

/* -- Calls that are refused after the end of their strategy, while another thread destroys their object -- */

/* The name is found in the message of a refused call, unless the variable was freed before. */
static bool make_named(ditto_strategy *strategy, ditto_variable **out)
{
    float zero = 0;
    ditto_tensor initial = { .data = &zero, .dtype = DITTO_F32 };
    return ditto_variable_create(
               strategy, &initial,
               &OPTIONS(variable, .name = "the name of the variable that a call refuses to read"),
               out) == DITTO_OK;
}

static bool is_refused_by_name(ditto_variable *variable)
{
    float number;
    return ditto_variable_read(variable, &number, sizeof number) == DITTO_ERR_CONTEXT &&
           strstr(ditto_last_error()->message, "\"the name of the variable that a call refuses to read\"");
}

static int destroy_with_a_call_inside(void *unused)
{
    ditto_strategy *strategy;
    ditto_variable *variable;
    spoil_freed_memory();
    REQUIRE(make(1, DITTO_CALLER_DEFAULT, 0, &strategy) && make_named(strategy, &variable));
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    struct dti_gate *gate = NULL; /* this is how a call begins */
    REQUIRE(!dti_dependent_hold((struct dti_dependent *)(void *)variable, &gate));
    REQUIRE(ditto_variable_destroy(variable) == DITTO_ERR_BUSY);
    REQUIRE(is_refused_by_name(variable));
    REQUIRE(gate != NULL);
    dti_gate_leave(gate);
    REQUIRE(ditto_variable_destroy(variable) == DITTO_OK);
    return 0;
}

static int destroy_an_optimizer_with_a_call_inside(void *unused)
{
    ditto_strategy *strategy;
    ditto_variable *variable, *slot;
    ditto_optimizer *optimizer;
    REQUIRE(make(1, DITTO_CALLER_DEFAULT, 0, &strategy) && make_named(strategy, &variable));
    REQUIRE(ditto_optimizer_create(&variable, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_ADAM), &optimizer) ==
            DITTO_OK);
    REQUIRE(ditto_optimizer_slot(optimizer, 0, "m", &slot) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    struct dti_gate *gate = NULL;
    REQUIRE(!dti_dependent_hold((struct dti_dependent *)(void *)slot, &gate));
    REQUIRE(ditto_optimizer_destroy(optimizer) == DITTO_ERR_BUSY);
    REQUIRE(gate != NULL);
    dti_gate_leave(gate);
    REQUIRE(ditto_optimizer_destroy(optimizer) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(variable) == DITTO_OK);
    return 0;
}

static void after_its_strategy_an_optimizer_is_busy_while_a_refused_call_is_in_a_slot(void **state)
{
    assert_int_equal(in_child(destroy_an_optimizer_with_a_call_inside, NULL, 60), 0);
}

static void after_its_strategy_a_variable_is_busy_while_a_refused_call_is_in_it(void **state)
{
    assert_int_equal(in_child(destroy_with_a_call_inside, NULL, 60), 0);
}

#if SINGLE_STEPS
/* The call enters the gate within its first EACH instructions. Each of them is tried. Of the later ones, most
 * of which write the message, one in SOME is tried. */
enum { VARIABLES = 500, EACH = 400, SOME = 97 };

struct refused {
    ditto_variable *variable;
    unsigned long steps;
    _Atomic int is_held, may_continue;
    bool was_held, was_refused;
};

static void read_variable(void *argument)
{
    struct refused *r = argument;
    r->was_refused = is_refused_by_name(r->variable);
}

static void hold_reader(void *argument)
{
    struct refused *r = argument;
    atomic_store(&r->is_held, 1);
    while (!atomic_load(&r->may_continue))
        nanosleep(&(struct timespec){ .tv_nsec = 10000 }, NULL);
}

static void *read_and_hold(void *argument)
{
    struct refused *r = argument;
    float number;
    /* A first refusal, so that the steps that follow do not include the first call of any function. */
    if (ditto_variable_read(NULL, &number, sizeof number) != DITTO_ERR_INVALID)
        return NULL;
    r->was_held = call_and_hold(r->steps, read_variable, hold_reader, r);
    atomic_store(&r->is_held, 1); /* also if it was not held, so that no thread waits for ever */
    return NULL;
}

/* Holds the call after r->steps instructions, and destroys its variable meanwhile. A call that has not yet
 * entered the gate may not run beside the destroy, so the variable is then destroyed later. Sets *has_entered
 * if the call was in the gate. */
static int destroy_beside_held(struct refused *r, bool *has_entered)
{
    pthread_t thread;
    ditto_status status = DITTO_ERR_BUSY;
    const struct dti_gate *gate = &((struct dti_dependent *)(void *)r->variable)->gate;
    REQUIRE(pthread_create(&thread, NULL, read_and_hold, r) == 0);
    while (!atomic_load(&r->is_held))
        nanosleep(&(struct timespec){ .tv_nsec = 10000 }, NULL);
    bool is_inside = dti_gate_calls(gate) != 0;
    *has_entered |= is_inside;
    if (*has_entered)
        status = ditto_variable_destroy(r->variable);
    REQUIRE(status == (is_inside || !*has_entered ? DITTO_ERR_BUSY : DITTO_OK));
    atomic_store(&r->may_continue, 1);
    pthread_join(thread, NULL);
    REQUIRE(r->was_refused);
    REQUIRE(status == DITTO_OK || ditto_variable_destroy(r->variable) == DITTO_OK);
    return 0;
}

static int destroy_at_every_point(void *unused)
{
    bool has_entered = false, was_held = true;
    spoil_freed_memory();
    for (unsigned long steps = 1; was_held;) {
        ditto_strategy *strategy;
        ditto_variable *variable[VARIABLES];
        REQUIRE(make(1, DITTO_CALLER_DEFAULT, 0, &strategy));
        for (int i = 0; i < VARIABLES; i++)
            REQUIRE(make_named(strategy, &variable[i]));
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
        for (int i = 0; i < VARIABLES; i++) {
            struct refused r = { .variable = variable[i], .steps = steps };
            if (!was_held) {
                REQUIRE(ditto_variable_destroy(variable[i]) == DITTO_OK);
                continue;
            }
            steps += steps < EACH ? 1 : SOME;
            REQUIRE(destroy_beside_held(&r, &has_entered) == 0);
            was_held = r.was_held;
        }
    }
    REQUIRE(has_entered);
    return 0;
}

static void after_its_strategy_a_variable_is_destroyed_safely_beside_a_refused_call(void **state)
{
    assert_int_equal(in_child(destroy_at_every_point, NULL, 300), 0);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_of_a_variable_that_was_destroyed_is_refused),
        cmocka_unit_test(calls_on_a_value_succeed_until_its_variable_is_destroyed),
        cmocka_unit_test(the_spec_of_an_iterator_can_be_read_while_its_strategy_is_destroyed_and_after),
        cmocka_unit_test(calls_on_variables_and_values_succeed_until_their_strategy_is_destroyed),
        cmocka_unit_test(handles_of_a_destroyed_strategy_are_refused_inside_a_run_of_the_next_one),
        cmocka_unit_test(an_optimizer_can_be_destroyed_while_its_strategy_is),
        cmocka_unit_test(an_iterator_can_be_destroyed_while_its_strategy_is),
        cmocka_unit_test(after_its_strategy_a_variable_is_busy_while_a_refused_call_is_in_it),
        cmocka_unit_test(after_its_strategy_an_optimizer_is_busy_while_a_refused_call_is_in_a_slot),
#if SINGLE_STEPS
        cmocka_unit_test(after_its_strategy_a_variable_is_destroyed_safely_beside_a_refused_call),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
