/* tests/fault/test_user_functions.c - functions that the user gives to a collective, an optimizer, an update,
 * a merge_call, a variable or an iterator, and that make forbidden calls, fail, or take longer than the time
 * limits. Each case runs in a child process with a time limit. */
#include "fault/late.h"
#include "support/support.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool make(uint32_t replicas, const ditto_strategy_options *given, ditto_strategy **out)
{
    ditto_strategy_options options = *given;
    options.num_replicas = replicas;
    return ditto_strategy_create(DITTO_MIRRORED, &options, out) == DITTO_OK;
}

/* -- Calls inside a function that combines -- */

/* Numbers of elements with which a collective has one meeting and two meetings. */
enum { SMALL = 4, LARGE = 65536 };

struct inner_call {
    uint32_t caller;
    size_t count;
    ditto_status (*call)(ditto_replica *self);
    _Atomic int status; /* of the inner call */
    _Atomic int called;
};

/* The `user` argument of a replica's combining function. */
struct combining {
    ditto_replica *self;
    struct inner_call *inner;
};

static ditto_status combine_and_call(void *out, const void *left, const void *right, size_t count, void *user)
{
    struct combining *combining = user;
    for (size_t i = 0; i < count; i++)
        ((int *)out)[i] = ((const int *)left)[i] + ((const int *)right)[i];
    if (ditto_replica_id(combining->self) == combining->inner->caller) {
        atomic_store(&combining->inner->status, combining->inner->call(combining->self));
        atomic_store(&combining->inner->called, 1);
    }
    return DITTO_OK;
}

static ditto_status combine_all(ditto_replica *self, void *argument)
{
    struct combining combining = { self, argument };
    int *memory = calloc(2 * combining.inner->count, sizeof *memory);
    ditto_status status = ditto_all_reduce_with(self, memory, memory + combining.inner->count,
                                                combining.inner->count, sizeof *memory, combine_and_call,
                                                &combining, NULL);
    free(memory);
    return status;
}

static int call_inside_a_combining_function(void *argument)
{
    struct inner_call *inner = argument;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    REQUIRE(make(2, &options, &strategy));
    REQUIRE(ditto_strategy_run(strategy, combine_all, inner) == DITTO_OK);
    REQUIRE(!atomic_load(&inner->called) || atomic_load(&inner->status) == DITTO_ERR_CONTEXT);
    /* With small messages, the replica that arrives last may combine alone. */
    REQUIRE(atomic_load(&inner->called) || inner->count == SMALL);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    return 0;
}

static void a_combining_function_may_start_no_collective_on_any_replica(void **state)
{
    static ditto_status (*const calls[])(ditto_replica *) = { call_merge, call_create, call_barrier };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (uint32_t caller = 0; caller < 2; caller++)
            for (int large = 0; large < 2; large++) {
                struct inner_call inner = { caller, large ? LARGE : SMALL, calls[i], 0, 0 };
                assert_int_equal(in_child(call_inside_a_combining_function, &inner, 60), 0);
            }
}

/* -- Functions that combine and fail -- */

struct failing_function {
    ditto_status returned; /* by the function, on each replica */
    struct report report;
};

static ditto_status fail_to_combine(void *out, const void *left, const void *right, size_t count, void *user)
{
    const struct failing_function *f = user;
    return f->returned;
}

static ditto_status combine_in_vain(ditto_replica *self, void *argument)
{
    struct failing_function *f = argument;
    int *memory = calloc(2 * LARGE, sizeof *memory);
    (void)!ditto_fail(self, 1, "an error before");
    ditto_status status = ditto_all_reduce_with(self, memory, memory + LARGE, LARGE, sizeof *memory,
                                                fail_to_combine, f, NULL);
    free(memory);
    const ditto_error *error = ditto_last_error();
    ditto_status expected = f->returned > 0 ? DITTO_ERR_USER : f->returned;
    EXPECT(&f->report, status == expected || status == DITTO_ERR_PEER_STOPPED);
    EXPECT(&f->report, error->status == status && strcmp(error->function, "ditto_all_reduce_with") == 0);
    EXPECT(&f->report, error->replica == (int32_t)ditto_replica_id(self));
    EXPECT(&f->report, strstr(error->message, "the function given to ditto_all_reduce_with") != NULL);
    return status;
}

static void a_combining_function_that_fails_on_several_replicas_is_an_error_on_each(void **state)
{
    static const ditto_status returned[] = { 7, DITTO_END_OF_INPUT, DITTO_ERR_IO };
    for (uint32_t n = 2; n <= 3; n++) {
        ditto_strategy *strategy = make_strategy(n, NULL);
        for (int i = 0; i < test_trials(500); i++) {
            struct failing_function f = { .returned = returned[i % 3] };
            ditto_status status = ditto_strategy_run(strategy, combine_in_vain, &f);
            assert_string_equal(f.report.first_failure, "");
            assert_status(status, f.returned > 0 ? DITTO_ERR_USER : f.returned);
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- Calls inside functions that change variables -- */

/* The replica whose function runs on this thread. */
static _Thread_local ditto_replica *mine;

static _Atomic int rule_status, rule_was_called;

/* If true, the first call of the optimizer's function on replica 1 does not return. */
static _Atomic bool rule_stays;

/* The function of an optimizer. Its first call on replica 1 calls a barrier, or does not return. */
static void rule_that_calls(const ditto_rule_range *range, void *unused)
{
    float *value = range->value;
    const float *gradient = range->gradient;
    for (size_t i = 0; i < range->count; i++)
        value[i] -= gradient[i];
    if (mine == NULL || ditto_replica_id(mine) != 1 || atomic_exchange(&rule_was_called, 1) != 0)
        return;
    while (atomic_load(&rule_stays))
        sleep_ms(1);
    atomic_store(&rule_status, ditto_barrier(mine, NULL));
}

static ditto_status apply_once(ditto_replica *self, void *optimizer)
{
    float *gradients = calloc(LARGE, sizeof *gradients);
    ditto_tensor gradient = { .data = gradients, .dtype = DITTO_F32, .rank = 1, .shape = { LARGE } };
    mine = self;
    ditto_status status = ditto_apply(self, optimizer, &gradient, NULL);
    mine = NULL;
    memset(gradients, 0xff, LARGE * sizeof *gradients); /* no replica may still read it */
    free(gradients);
    return status;
}

static ditto_optimizer *make_optimizer(ditto_strategy *strategy, double clip_norm)
{
    static float zeros[LARGE];
    ditto_tensor initial = { .data = zeros, .dtype = DITTO_F32, .rank = 1, .shape = { LARGE } };
    ditto_variable *variable;
    ditto_optimizer *optimizer;
    ditto_optimizer_options rule = OPTIONS(optimizer, .rule = DITTO_RULE_FUNCTION,
                                           .function = rule_that_calls, .clip_norm = clip_norm);
    if (ditto_variable_create(strategy, &initial, &OPTIONS(variable, .aggregation = DITTO_AGGREGATE_SUM),
                              &variable) != DITTO_OK ||
        ditto_optimizer_create(&variable, 1, &rule, &optimizer) != DITTO_OK)
        return NULL;
    return optimizer;
}

static int call_inside_an_optimizer(void *clip_norm)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    REQUIRE(make(2, &options, &strategy));
    ditto_optimizer *optimizer = make_optimizer(strategy, *(double *)clip_norm);
    REQUIRE(optimizer != NULL);
    REQUIRE(ditto_strategy_run(strategy, apply_once, optimizer) == DITTO_OK);
    REQUIRE(atomic_load(&rule_was_called) == 1 && atomic_load(&rule_status) == DITTO_ERR_CONTEXT);
    return 0;
}

static void an_optimizers_function_may_start_no_collective(void **state)
{
    assert_int_equal(in_child(call_inside_an_optimizer, &(double){ 0 }, 60), 0);
    assert_int_equal(in_child(call_inside_an_optimizer, &(double){ 1 }, 60), 0);
}

static ditto_status update_that_calls(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                                      void *user, ditto_tensor *result)
{
    return ditto_barrier(*(ditto_replica **)user, NULL);
}

static ditto_status update_once(ditto_replica *self, void *variable)
{
    return ditto_update(self, variable, update_that_calls, &self, NULL, 0, NULL);
}

static int call_inside_an_update(void *unused)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    ditto_variable *variable;
    float zero = 0;
    ditto_tensor initial = { .data = &zero, .dtype = DITTO_F32 };
    REQUIRE(make(2, &options, &strategy));
    REQUIRE(ditto_variable_create(strategy, &initial, &OPTIONS(variable, .copies = DITTO_COPIES_PER_REPLICA),
                                  &variable) == DITTO_OK);
    REQUIRE(ditto_strategy_run(strategy, update_once, variable) == DITTO_ERR_CONTEXT);
    return 0;
}

static void the_function_of_an_update_may_start_no_collective(void **state)
{
    assert_int_equal(in_child(call_inside_an_update, NULL, 60), 0);
}

/* -- Results of updates that are not completed -- */

enum { RESULT_BYTES = 16 << 20, UPDATES = 5 };

struct result_case {
    uint32_t replicas;
    ditto_copies copies;
    ditto_variable *variable;
};

static ditto_status give_much(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                              void *fails, ditto_tensor *result)
{
    static char much[RESULT_BYTES];
    *result = (ditto_tensor){ .data = much, .dtype = DITTO_U8, .rank = 1, .shape = { RESULT_BYTES } };
    return *(const bool *)fails ? DITTO_ERR_USER : DITTO_OK;
}

/* If replicas share copies, the last replica has no memory for its component of the result. If each replica
 * has a copy, the function fails on the last one, when the others already have a result. */
static ditto_status update_in_vain(ditto_replica *self, void *argument)
{
    static const uint32_t refused[] = { SYS_mmap };
    static _Atomic int is_refused;
    const struct result_case *c = argument;
    bool last = ditto_replica_id(self) == c->replicas - 1,
         fails = last && c->copies == DITTO_COPIES_PER_REPLICA;
    ditto_tensor result;
    if (last && !fails && atomic_exchange(&is_refused, 1) == 0 && !refuse_system_calls(refused, 1))
        return DITTO_ERR_UNSUPPORTED;
    return ditto_update(self, c->variable, give_much, &fails, NULL, 0, &result);
}

static int keep_no_result(void *argument)
{
    struct result_case *c = argument;
    ditto_strategy *strategy;
    float zero = 0;
    ditto_tensor initial = { .data = &zero, .dtype = DITTO_F32 };
    long before = 0;
    ditto_variable_options variable_options = OPTIONS(variable, .aggregation = DITTO_AGGREGATE_SUM,
                                                      .copies = c->copies);
    /* The filter of system calls is set on the thread of a replica, and must not apply to this thread. */
    REQUIRE(make(c->replicas, &OPTIONS(strategy, .caller = DITTO_CALLER_WAITS), &strategy));
    REQUIRE(ditto_variable_create(strategy, &initial, &variable_options, &c->variable) == DITTO_OK);
    for (int i = 0; i <= UPDATES; i++) {
        ditto_status status = ditto_strategy_run(strategy, update_in_vain, c);
        if (status == DITTO_ERR_UNSUPPORTED)
            return 77;
        REQUIRE(status == (c->copies == DITTO_COPIES_PER_REPLICA ? DITTO_ERR_USER : DITTO_ERR_NO_MEMORY));
        if (i == 0)
            before = resident_kib();
    }
    /* A leak would be one result for each of the UPDATES updates. */
    REQUIRE(resident_kib() - before < 2 * (RESULT_BYTES >> 10));
    REQUIRE(ditto_variable_destroy(c->variable) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    return 0;
}

static void an_update_that_fails_keeps_no_memory(void **state)
{
    static const uint32_t counts[] = { 2, 3, 8 };
    if (SANITIZED)
        skip(); /* a sanitizer keeps freed memory for a while */
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int each = 0; each < 2; each++) {
            struct result_case c = { counts[i], each ? DITTO_COPIES_PER_REPLICA : DITTO_COPIES_DEFAULT,
                                     NULL };
            int code = in_child(keep_no_result, &c, 60);
            if (code == 77)
                skip();
            assert_int_equal(code, 0);
        }
}

/* -- Functions that take longer than the time limits -- */

struct slow {
    size_t count;
    _Atomic int has_begun, may_end;
};

static ditto_status combine_slowly(void *out, const void *left, const void *right, size_t count, void *user)
{
    struct slow *slow = user;
    for (size_t i = 0; i < count; i++)
        ((int *)out)[i] = ((const int *)left)[i] + ((const int *)right)[i];
    if (mine == NULL || ditto_replica_id(mine) != 1)
        return DITTO_OK;
    atomic_store(&slow->has_begun, 1);
    while (!atomic_load(&slow->may_end))
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status combine_all_slowly(ditto_replica *self, void *argument)
{
    struct slow *slow = argument;
    int *memory = calloc(2 * slow->count, sizeof *memory);
    mine = self;
    ditto_status status = ditto_all_reduce_with(self, memory, memory + slow->count, slow->count,
                                                sizeof *memory, combine_slowly, slow, NULL);
    mine = NULL;
    /* No replica may still read or write it. */
    memset(memory, 0xff, 2 * slow->count * sizeof *memory);
    free(memory);
    return status;
}

static ditto_strategy_options limited(ditto_caller caller, uint32_t timeout_ms)
{
    return OPTIONS(strategy, .timeout_ms = timeout_ms, .run_timeout_ms = 3 * timeout_ms, .caller = caller);
}

/* The run returns although the user's function has not. When the function returns later, its replica touches
 * no buffer of another one. */
static int outlast_the_limits(void *argument)
{
    struct slow *slow = argument;
    long threads = count_threads();
    for (int caller = DITTO_CALLER_IS_REPLICA_0; caller <= DITTO_CALLER_WAITS; caller++) {
        ditto_strategy *strategy;
        uint32_t limit_ms = 100;
        atomic_store(&slow->may_end, 0);
        atomic_store(&slow->has_begun, 0);
        for (int tries = 1;; tries++) {
            ditto_strategy_options options = limited((ditto_caller)caller, limit_ms);
            REQUIRE(tries <= 100 && limit_ms <= LONGEST_LIMIT_MS);
            REQUIRE(make(2, &options, &strategy));
            ditto_status status = ditto_strategy_run(strategy, combine_all_slowly, slow);
            if (has_begun(strategy, 1, &slow->has_begun)) {
                REQUIRE(status == DITTO_ERR_TIMED_OUT);
                break;
            }
            /* The function has not begun on replica 1. Either a limit passed before, or replica 0 arrived
             * last and combined alone. */
            REQUIRE(status == DITTO_ERR_TIMED_OUT || (status == DITTO_OK && slow->count == SMALL));
            limit_ms *= status == DITTO_OK ? 1 : 2;
            REQUIRE(await_all_returned(strategy));
            REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
        }
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_ERR_POISONED);
        atomic_store(&slow->may_end, 1);
        REQUIRE(await_threads(threads));
    }
    return 0;
}

static void a_combining_function_that_does_not_return_is_not_waited_for(void **state)
{
    assert_int_equal(in_child(outlast_the_limits, &(struct slow){ .count = SMALL }, 240), 0);
    assert_int_equal(in_child(outlast_the_limits, &(struct slow){ .count = LARGE }, 240), 0);
}

static int outlast_the_limits_in_an_optimizer(void *clip_norm)
{
    atomic_store(&rule_stays, true);
    for (uint32_t limit_ms = 100; limit_ms <= LONGEST_LIMIT_MS; limit_ms *= 2) {
        ditto_strategy_options options = limited(DITTO_CALLER_IS_REPLICA_0, limit_ms);
        ditto_strategy *strategy;
        REQUIRE(make(2, &options, &strategy));
        ditto_optimizer *optimizer = make_optimizer(strategy, *(double *)clip_norm);
        REQUIRE(optimizer != NULL);
        REQUIRE(ditto_strategy_run(strategy, apply_once, optimizer) == DITTO_ERR_TIMED_OUT);
        /* The message shows that the run did not wait for the function. */
        bool poisoned = strstr(ditto_last_error()->message, "the strategy is poisoned") != NULL;
        if (has_begun(strategy, 1, &rule_was_called)) {
            REQUIRE(poisoned);
            return 0;
        }
    }
    return 1; /* the function was never called before the time limit */
}

static void an_optimizers_function_that_does_not_return_is_not_waited_for(void **state)
{
    assert_int_equal(in_child(outlast_the_limits_in_an_optimizer, &(double){ 0 }, 240), 0);
    assert_int_equal(in_child(outlast_the_limits_in_an_optimizer, &(double){ 1 }, 240), 0);
}

/* -- Time limits that pass inside a pause -- */

static ditto_status keep_working(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                 void *unused, ditto_value **result)
{
    float x = 0;
    ditto_tensor part[3] = { { .data = &x, .dtype = DITTO_F32 },
                             { .data = &x, .dtype = DITTO_F32 },
                             { .data = &x, .dtype = DITTO_F32 } };
    /* Each value is made in a small inner job. When the job has ended, its stop is cleared. A stop by the
     * time limit of the run must not be cleared with it. */
    for (;;) {
        ditto_value *value;
        DITTO_TRY(ditto_strategy_value_from_tensors(strategy, part, 1, &value));
        DITTO_TRY(ditto_value_destroy(value));
    }
}

static ditto_status merge_without_end(ditto_replica *self, void *unused)
{
    return ditto_merge_call(self, keep_working, NULL, NULL, 0, NULL);
}

static int expire_in_a_pause(void *replicas)
{
    ditto_strategy *strategy;
    ditto_strategy_options options = OPTIONS(strategy, .run_timeout_ms = 2, .caller = DITTO_CALLER_WAITS);
    REQUIRE(make(*(uint32_t *)replicas, &options, &strategy));
    for (int i = 0; i < test_trials(600); i++) {
        REQUIRE(ditto_strategy_run(strategy, merge_without_end, NULL) == DITTO_ERR_TIMED_OUT);
        if (strstr(ditto_last_error()->message, "poisoned") == NULL)
            continue;
        /* On a busy machine a replica may return only after the run has given up on it. */
        (void)!ditto_strategy_destroy(strategy);
        REQUIRE(make(*(uint32_t *)replicas, &options, &strategy));
    }
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    return 0;
}

static void a_time_limit_that_passes_in_a_pause_is_never_lost(void **state)
{
    for (uint32_t replicas = 1; replicas <= 3; replicas++)
        assert_int_equal(in_child(expire_in_a_pause, &replicas, 180), 0);
}

/* The status of the inner run, which the time limit has ended. The merge function handles this error, but the
 * outer run is late nevertheless. */
static _Atomic int inner_status;
enum { NOT_RUN = 1000 }; /* no status */

static ditto_status inner_outlasts(ditto_replica *self, void *strategy)
{
    while (ditto_replica_id(self) == 1 && !dti_team_is_stopped(dti_team_of(strategy)))
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status handle_inner(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                 void *unused, ditto_value **result)
{
    atomic_store(&inner_status, ditto_strategy_run(strategy, inner_outlasts, strategy));
    return DITTO_OK;
}

static ditto_status merge_then_meet(ditto_replica *self, void *unused)
{
    DITTO_TRY(ditto_merge_call(self, handle_inner, NULL, NULL, 0, NULL));
    return ditto_barrier(self, NULL);
}

static int handle_a_late_inner_run(void *caller)
{
    ditto_strategy *strategy;
    ditto_strategy_options options = OPTIONS(strategy, .run_timeout_ms = 50,
                                             .caller = *(ditto_caller *)caller);
    REQUIRE(make(2, &options, &strategy));
    for (int runs = 0; runs < 5;) {
        atomic_store(&inner_status, NOT_RUN);
        REQUIRE(ditto_strategy_run(strategy, merge_then_meet, NULL) == DITTO_ERR_TIMED_OUT);
        bool poisoned = strstr(ditto_last_error()->message, "poisoned") != NULL;
        REQUIRE(await_all_returned(strategy));
        int inner = atomic_load(&inner_status);
        REQUIRE(inner == DITTO_ERR_TIMED_OUT || inner == NOT_RUN);
        if (!poisoned && inner != NOT_RUN) {
            runs++;
            continue;
        }
        /* On a busy machine the limit may pass before the inner run begins, or a replica may return only
         * after the run has given up on it. */
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
        options.run_timeout_ms *= 2;
        REQUIRE(options.run_timeout_ms <= LONGEST_LIMIT_MS);
        REQUIRE(make(2, &options, &strategy));
    }
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    return 0;
}

static void a_time_limit_that_passes_in_an_inner_run_is_an_error_of_the_outer_run(void **state)
{
    for (int caller = DITTO_CALLER_IS_REPLICA_0; caller <= DITTO_CALLER_WAITS; caller++)
        assert_int_equal(in_child(handle_a_late_inner_run, &(ditto_caller){ (ditto_caller)caller }, 240), 0);
}

/* -- Functions that end the scope of their caller, and then destroy the strategy -- */

struct leaving {
    ditto_strategy *strategy;
    bool is_default; /* the scope is one of ditto_set_default */
    ditto_status left, destroyed;
};

static void leave_and_destroy(struct leaving *l)
{
    l->left = l->is_default ? ditto_set_default(NULL) : ditto_strategy_scope_leave(l->strategy);
    l->destroyed = ditto_strategy_destroy(l->strategy);
}

static ditto_status initialize_and_leave(const ditto_tensor *value, size_t first_row, void *user)
{
    *(double *)value->data = 0;
    leave_and_destroy(user);
    return DITTO_OK;
}

static ditto_status make_dataset_and_leave(const ditto_input_context *context, void *user,
                                           ditto_dataset **out)
{
    ditto_dataset *rows;
    leave_and_destroy(user);
    DITTO_TRY(ditto_dataset_from_range(0, 8, 1, &rows));
    ditto_status status = ditto_dataset_batch(rows, 2, 0, out);
    DITTO_TRY(ditto_dataset_destroy(rows));
    return status;
}

static int leave_in_a_function(void *is_default)
{
    ditto_strategy_options none = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_tensor initial = { .dtype = DITTO_F64 };
    struct leaving l = { .is_default = *(bool *)is_default };
    ditto_variable *variable;
    ditto_iterator *iterator;
    spoil_freed_memory();
    REQUIRE(make(2, &none, &l.strategy));
    REQUIRE((l.is_default ? ditto_set_default(l.strategy) : ditto_strategy_scope_enter(l.strategy)) ==
            DITTO_OK);
    REQUIRE(
        ditto_variable_create(l.strategy, &initial,
                              &OPTIONS(variable, .initialize = initialize_and_leave, .initialize_user = &l),
                              &variable) == DITTO_OK);
    REQUIRE(l.left == DITTO_ERR_CONTEXT && l.destroyed == DITTO_ERR_CONTEXT);
    REQUIRE(ditto_strategy_iterate_from_function(l.strategy, make_dataset_and_leave, &l, NULL, &iterator) ==
            DITTO_OK);
    REQUIRE(l.left == DITTO_ERR_CONTEXT && l.destroyed == DITTO_ERR_CONTEXT);
    REQUIRE((l.is_default ? ditto_set_default(NULL) : ditto_strategy_scope_leave(l.strategy)) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(l.strategy) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(variable) == DITTO_OK && ditto_iterator_destroy(iterator) == DITTO_OK);
    return 0;
}

static void a_function_cannot_end_the_scope_of_its_caller(void **state)
{
    assert_int_equal(in_child(leave_in_a_function, &(bool){ false }, 60), 0);
    assert_int_equal(in_child(leave_in_a_function, &(bool){ true }, 60), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_combining_function_may_start_no_collective_on_any_replica),
        cmocka_unit_test(a_combining_function_that_fails_on_several_replicas_is_an_error_on_each),
        cmocka_unit_test(an_optimizers_function_may_start_no_collective),
        cmocka_unit_test(the_function_of_an_update_may_start_no_collective),
        cmocka_unit_test(an_update_that_fails_keeps_no_memory),
        cmocka_unit_test(a_combining_function_that_does_not_return_is_not_waited_for),
        cmocka_unit_test(an_optimizers_function_that_does_not_return_is_not_waited_for),
        cmocka_unit_test(a_time_limit_that_passes_in_a_pause_is_never_lost),
        cmocka_unit_test(a_time_limit_that_passes_in_an_inner_run_is_an_error_of_the_outer_run),
        cmocka_unit_test(a_function_cannot_end_the_scope_of_its_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
