/* tests/fault/test_stop.c - replicas that fail, return early, diverge or are late. Each case gives the
 * documented error, with a message about the cause. Unless the strategy is poisoned, it still works. Some
 * messages are printed as a user reads them. It also has calls in the wrong context, and a destroy call
 * during a run. */
#include "fault/late.h"
#include "replicas/team/stopping.h"
#include "support/support.h"
#include "vars/vars.h"

#include <stdatomic.h>

struct fault {
    struct report report;
    size_t count;     /* of elements in each all-reduce */
    uint32_t culprit; /* the replica that causes the fault */
    _Atomic int peer_stopped, diverged, timed_out;
};

/* The function of the other replicas. They call a collective until it fails, and count the status that it
 * returned. */
static ditto_status work_until_stopped(ditto_replica *self, struct fault *f)
{
    ditto_status status = DITTO_OK;
    void *memory;
    DITTO_TRY(ditto_alloc(self, f->count * sizeof(float) + 1, 0, &memory));
    memset(memory, 0, f->count * sizeof(float));
    for (int i = 0; i < 1000000 && status == DITTO_OK; i++)
        status = ditto_all_reduce(self, memory, memory, f->count, DITTO_F32, DITTO_SUM, NULL);
    /* Every later call fails, too. */
    EXPECT(&f->report,
           ditto_all_reduce(self, memory, memory, f->count, DITTO_F32, DITTO_SUM, NULL) == status ||
               status == DITTO_ERR_TIMED_OUT);
    EXPECT(&f->report, ditto_barrier(self, NULL) < 0);
    atomic_fetch_add(status == DITTO_ERR_PEER_STOPPED ? &f->peer_stopped
                     : status == DITTO_ERR_DIVERGED   ? &f->diverged
                                                      : &f->timed_out,
                     1);
    memset(memory, 0xff, f->count * sizeof(float)); /* no replica may still read it */
    DITTO_TRY(ditto_free(self, memory));
    return status;
}

static ditto_status one_fails(ditto_replica *self, void *argument)
{
    struct fault *f = argument;
    if (ditto_replica_id(self) != f->culprit)
        return work_until_stopped(self, f);
    float *own = calloc(f->count + 1, sizeof *own);
    ditto_status status = DITTO_OK;
    for (int i = 0; i < 50 && status == DITTO_OK; i++)
        status = ditto_all_reduce(self, own, own, f->count, DITTO_F32, DITTO_SUM, NULL);
    free(own);
    return status != DITTO_OK
               ? status
               : ditto_fail(self, 42, "the disk of replica %u is full", ditto_replica_id(self));
}

static ditto_status one_returns(ditto_replica *self, void *argument)
{
    struct fault *f = argument;
    float *own;
    if (ditto_replica_id(self) != f->culprit)
        return work_until_stopped(self, f);
    own = calloc(f->count + 1, sizeof *own);
    ditto_status status = ditto_all_reduce(self, own, own, f->count, DITTO_F32, DITTO_SUM, NULL);
    free(own);
    return status;
}

static ditto_status one_diverges(ditto_replica *self, void *argument)
{
    struct fault *f = argument;
    double other = 1;
    if (ditto_replica_id(self) != f->culprit)
        return work_until_stopped(self, f);
    ditto_status status = ditto_all_reduce(self, &other, &other, 1, DITTO_F64, DITTO_MAX, NULL);
    EXPECT(&f->report, status == DITTO_ERR_DIVERGED);
    return status;
}

static ditto_status one_is_late(ditto_replica *self, void *argument)
{
    struct fault *f = argument;
    if (ditto_replica_id(self) != f->culprit)
        return work_until_stopped(self, f);
    /* It waits until the others have timed out, which takes longer on a busy machine. */
    int others = (int)ditto_num_replicas(self) - 1;
    for (int ms = 0; f->timed_out + f->peer_stopped < others && ms < 60000; ms++)
        sleep_ms(1);
    return ditto_barrier(self, NULL) < 0 ? DITTO_OK : ditto_fail(self, 1, "the barrier should have failed");
}

static ditto_status count_up(ditto_replica *self, void *argument)
{
    struct report *report = argument;
    int64_t one = 1;
    /* The time limit of the strategy may be short. */
    DITTO_TRY(
        ditto_all_reduce(self, &one, &one, 1, DITTO_I64, DITTO_SUM, &OPTIONS(reduce, .timeout_ms = 120000)));
    EXPECT(report, one == ditto_num_replicas(self));
    return DITTO_OK;
}

/* Tries one fault on the first and on the last replica, with small and large messages and with 2 to
 * most_replicas replicas. The next run must work each time. */
static void try_fault(ditto_replica_fn function, ditto_status expected, uint32_t timeout_ms,
                      uint32_t most_replicas, const char *text, ditto_caller caller)
{
    static const size_t counts[] = { 1, 20000 };
    for (size_t k = 1; k < replica_counts_length && replica_counts[k] <= most_replicas; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *strategy = make_strategy(
            n, &OPTIONS(strategy, .timeout_ms = timeout_ms, .caller = caller));
        for (size_t c = 0; c < 2; c++)
            for (uint32_t culprit = 0; culprit < n; culprit += n - 1) {
                struct fault f = { .count = counts[c], .culprit = culprit };
                ditto_status status = ditto_strategy_run(strategy, function, &f);
                if (f.report.first_failure[0] != '\0')
                    fail_msg("%s", f.report.first_failure);
                assert_status(status, expected);
                assert_message(text);
                if (n == 3 && c == 1 && culprit == n - 1)
                    print_message("  %s: %s\n", ditto_status_name(status), ditto_last_error()->message);
                /* All replicas detect it, so none has DITTO_ERR_PEER_STOPPED. */
                if (expected == DITTO_ERR_DIVERGED)
                    assert_true(f.diverged == (int)n - 1);
                /* On a busy machine another replica may not have come yet, and is named too. */
                if (expected == DITTO_ERR_TIMED_OUT) {
                    char words[60];
                    snprintf(words, sizeof words, "replica %u (in no collective yet)", culprit);
                    assert_message(" for replica ");
                    assert_message(words);
                }
                if (expected == DITTO_ERR_USER) {
                    assert_true(f.peer_stopped == (int)n - 1);
                    assert_int_equal(ditto_last_error()->replica, culprit);
                    assert_int_equal(ditto_last_error()->user_code, 42);
                }
                struct report next = { 0 };
                run_all(strategy, count_up, &next, &next);
            }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void a_replica_that_fails_stops_the_others_and_run_returns_its_error(void **state)
{
    try_fault(one_fails, DITTO_ERR_USER, 0, 64, "the disk of replica", DITTO_CALLER_DEFAULT);
    try_fault(one_fails, DITTO_ERR_USER, 0, 8, "the disk of replica", DITTO_CALLER_WAITS);
}

static void a_replica_that_returns_while_others_wait_has_diverged(void **state)
{
    try_fault(one_returns, DITTO_ERR_DIVERGED, 0, 64, "returned from its function", DITTO_CALLER_DEFAULT);
    try_fault(one_returns, DITTO_ERR_DIVERGED, 0, 8, "returned from its function", DITTO_CALLER_WAITS);
}

static void replicas_that_make_different_calls_have_diverged(void **state)
{
    try_fault(one_diverges, DITTO_ERR_DIVERGED, 0, 64, "(1 x f64, MAX)", DITTO_CALLER_DEFAULT);
}

static void a_late_replica_is_named(void **state)
{
    try_fault(one_is_late, DITTO_ERR_TIMED_OUT, 300, 3, "waited 300 ms in ditto_all_reduce",
              DITTO_CALLER_DEFAULT);
}

/* -- Work of replica 0 before a meeting -- */

/* Replica 0 works for longer than timeout_ms before it arrives at a meeting of the call, and the others
 * arrive a little later than that. No replica then waits for as long as timeout_ms. run_timeout_ms is set,
 * because replica 0 then computes its deadlines when it does not wait yet. */
struct early_work {
    ditto_status (*call)(ditto_replica *self, struct early_work *work);
    ditto_variable *variable;
    uint32_t timeout_ms;
    _Atomic int has_worked;
};

enum { ARRIVES_LATER_MS = 20 };

/* Set on the thread of replica 0 until it has worked, and on the other threads until they have waited. */
static _Thread_local struct early_work *own_work, *own_wait;

static void work_long(void)
{
    struct early_work *work = own_work;
    if (work == NULL)
        return;
    own_work = NULL;
    sleep_ms(work->timeout_ms + work->timeout_ms / 2);
    atomic_store(&work->has_worked, 1);
}

static void arrive_later(void)
{
    struct early_work *work = own_wait;
    if (work == NULL)
        return;
    own_wait = NULL;
    while (atomic_load(&work->has_worked) == 0)
        sleep_ms(1);
    sleep_ms(ARRIVES_LATER_MS);
}

/* The linker replaces these functions of the library (meson.build). Work of replica 0 takes place in the
 * first two. The others arrive later because of the third one, which they call after the pause of an
 * update. */
ditto_status __real_dti_variable_split(ditto_variable *v);
ditto_status __wrap_dti_variable_split(ditto_variable *v);
ditto_status __wrap_dti_variable_split(ditto_variable *v)
{
    work_long();
    return __real_dti_variable_split(v);
}

ditto_status __real_dti_replica_alloc(struct dti_replica *r, size_t bytes, size_t alignment, void **out);
ditto_status __wrap_dti_replica_alloc(struct dti_replica *r, size_t bytes, size_t alignment, void **out);
ditto_status __wrap_dti_replica_alloc(struct dti_replica *r, size_t bytes, size_t alignment, void **out)
{
    work_long();
    return __real_dti_replica_alloc(r, bytes, alignment, out);
}

ditto_status __real_dti_variable_check_whole(const ditto_variable *v, const char *what);
ditto_status __wrap_dti_variable_check_whole(const ditto_variable *v, const char *what);
ditto_status __wrap_dti_variable_check_whole(const ditto_variable *v, const char *what)
{
    arrive_later();
    return __real_dti_variable_check_whole(v, what);
}

static ditto_status work_on_device(uint32_t device, void *unused)
{
    work_long();
    return DITTO_OK;
}

static ditto_status merge_nothing(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                  void *unused, ditto_value **result)
{
    return DITTO_OK;
}

/* The function on device 0 runs in the join of the merge_call. */
static ditto_status merge_after_a_device(ditto_replica *self, struct early_work *work)
{
    if (ditto_replica_id(self) == 0)
        DITTO_TRY(ditto_on_logical_device(self, 0, work_on_device, NULL));
    arrive_later();
    return ditto_merge_call(self, merge_nothing, NULL, NULL, 0, NULL);
}

static ditto_status change_nothing(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                                   void *unused, ditto_tensor *result)
{
    return DITTO_OK;
}

/* Replica 0 splits the copies in a pause of the update. */
static ditto_status update_after_a_split(ditto_replica *self, struct early_work *work)
{
    float mine = 1;
    ditto_tensor t = { .data = &mine, .dtype = DITTO_F32 };
    return ditto_update(self, work->variable, change_nothing, NULL, &t, 1, NULL);
}

/* The value is the variable itself, so replica 0 copies it first. */
static ditto_status add_after_a_copy(ditto_replica *self, struct early_work *work)
{
    const void *own_copy;
    DITTO_TRY(ditto_read(self, work->variable, &own_copy));
    arrive_later();
    return ditto_assign(self, work->variable, DITTO_ASSIGN_ADD, own_copy);
}

static ditto_status work_early(ditto_replica *self, void *argument)
{
    struct early_work *work = argument;
    *(ditto_replica_id(self) == 0 ? &own_work : &own_wait) = work;
    ditto_status status = work->call(self, work);
    own_work = own_wait = NULL;
    return status;
}

/* On a busy machine the others may arrive too late. The test then tries again with a longer limit. */
static void try_early_work(ditto_status (*call)(ditto_replica *, struct early_work *),
                           ditto_aggregation aggregation)
{
    for (uint32_t n = 2; n <= 3; n++)
        for (uint32_t timeout_ms = 100;; timeout_ms *= 4) {
            struct early_work work = { .call = call, .timeout_ms = timeout_ms };
            float zero = 0;
            ditto_tensor initial = { .data = &zero, .dtype = DITTO_F32 };
            ditto_strategy *strategy = make_strategy(
                n, &OPTIONS(strategy, .timeout_ms = timeout_ms, .run_timeout_ms = 10 * LONGEST_LIMIT_MS));
            assert_ok(ditto_variable_create(strategy, &initial,
                                            &OPTIONS(variable, .aggregation = aggregation), &work.variable));
            ditto_status status = ditto_strategy_run(strategy, work_early, &work);
            assert_int_equal(atomic_load(&work.has_worked), 1);
            if (status != DITTO_ERR_TIMED_OUT || timeout_ms > 5000)
                assert_status(status, DITTO_OK);
            assert_ok(ditto_variable_destroy(work.variable));
            assert_ok(ditto_strategy_destroy(strategy));
            if (status == DITTO_OK)
                break;
        }
}

static void the_time_limit_of_a_meeting_begins_after_the_work_before_it(void **state)
{
    try_early_work(merge_after_a_device, DITTO_AGGREGATE_NONE);
    try_early_work(update_after_a_split, DITTO_AGGREGATE_NONE);
    try_early_work(add_after_a_copy, DITTO_AGGREGATE_ONLY_FIRST_REPLICA);
}

static ditto_status fail_without_message(ditto_replica *self, void *argument)
{
    return ditto_replica_id(self) == 1 ? DITTO_ERR_IO : DITTO_OK;
}

static void an_error_without_a_message_gets_one(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    assert_status(ditto_strategy_run(strategy, fail_without_message, NULL), DITTO_ERR_IO);
    assert_message("replica 1's function returned DITTO_ERR_IO");
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status return_end_of_input(ditto_replica *self, void *argument)
{
    return ditto_replica_id(self) == 0 ? DITTO_OK : DITTO_END_OF_INPUT;
}

static void a_positive_status_is_no_error(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    assert_int_equal(ditto_strategy_run(strategy, return_end_of_input, NULL), DITTO_END_OF_INPUT);
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- A replica that is late for a merge_call, while its last peer arrives -- */

/* Replica 1 has waited too long in the meeting of a merge_call. Before it stops the run, the others arrive,
 * and the merge function begins a run inside. */
struct late_merge {
    ditto_strategy *strategy;
    bool inner_fails; /* and not because of replica 1 */
    bool merge_fails; /* with its own error, after it has handled that of the inner run */
    uint32_t timeout_ms;
    _Atomic int is_late, inner_has_begun, inner_has_failed, num_left;
    ditto_status status[3]; /* of the merge_call on each replica */
    bool names_the_merge[3];
};

static _Thread_local struct late_merge *own_merge;

/* The linker replaces this function of the library (meson.build). */
void __real_dti_replica_stop_late(const struct dti_replica *r, const struct dti_deadline *deadline);
void __wrap_dti_replica_stop_late(const struct dti_replica *r, const struct dti_deadline *deadline);
void __wrap_dti_replica_stop_late(const struct dti_replica *r, const struct dti_deadline *deadline)
{
    struct late_merge *m = own_merge;
    if (m != NULL) {
        atomic_store(&m->is_late, 1);
        /* On a busy machine another replica may be late too. Then no inner run begins. */
        while (atomic_load(m->inner_fails ? &m->inner_has_failed : &m->inner_has_begun) == 0 &&
               atomic_load(&m->num_left) == 0 && !dti_team_is_stopped(r->team))
            sleep_ms(1);
        while (m->inner_fails && atomic_load(&m->inner_has_failed) != 0 && !dti_team_is_stopped(r->team))
            sleep_ms(1);
    }
    __real_dti_replica_stop_late(r, deadline);
}

static ditto_status inner_of_late_merge(ditto_replica *self, void *argument)
{
    struct late_merge *m = argument;
    if (ditto_replica_id(self) != 0)
        return DITTO_OK;
    atomic_store(&m->inner_has_begun, 1);
    if (m->inner_fails) {
        atomic_store(&m->inner_has_failed, 1);
        return ditto_fail(self, 5, "the inner run fails");
    }
    while (!dti_team_is_stopped(dti_team_of(m->strategy)))
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status return_at_once(ditto_replica *self, void *unused)
{
    return DITTO_OK;
}

/* Handles the error of the inner run. */
static ditto_status run_in_late_merge(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                      void *user, ditto_value **result)
{
    const struct late_merge *m = user;
    (void)!ditto_strategy_run(strategy, inner_of_late_merge, user);
    return m->merge_fails ? DITTO_ERR_IO : DITTO_OK;
}

static ditto_status run_nothing(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                void *unused, ditto_value **result)
{
    return ditto_strategy_run(strategy, return_at_once, NULL);
}

static ditto_status merge_before(ditto_replica *self, void *unused)
{
    return ditto_merge_call(self, run_nothing, NULL, NULL, 0, NULL);
}

static ditto_status merge_late(ditto_replica *self, void *argument)
{
    struct late_merge *m = argument;
    uint32_t id = ditto_replica_id(self);
    if (id == 1)
        own_merge = m;
    while (id != 1 && atomic_load(&m->is_late) == 0)
        sleep_ms(1);
    m->status[id] = ditto_merge_call(self, run_in_late_merge, m, NULL, 0, NULL);
    m->names_the_merge[id] = strstr(ditto_last_error()->message, "DITTO_ERR_IO") != NULL;
    own_merge = NULL;
    atomic_fetch_add(&m->num_left, 1);
    return DITTO_OK; /* handles the error, too */
}

static void try_late_merge(uint32_t n, bool inner_fails, bool merge_fails)
{
    bool begun = false;
    for (uint32_t timeout_ms = 50; !begun; timeout_ms *= 2) {
        struct late_merge m = { .inner_fails = inner_fails, .merge_fails = merge_fails };
        char late[60];
        assert_true(timeout_ms <= LONGEST_LIMIT_MS);
        m.strategy = make_strategy(n, &OPTIONS(strategy, .timeout_ms = timeout_ms));
        /* The first inner run makes the state of inner runs on every replica, so replica 0 cannot begin it
         * alone. It is repeated on a busy machine. */
        ditto_status status = DITTO_ERR_TIMED_OUT;
        for (int tries = 0; status == DITTO_ERR_TIMED_OUT && tries < 100; tries++)
            status = ditto_strategy_run(m.strategy, merge_before, NULL);
        assert_status(status, DITTO_OK);
        status = ditto_strategy_run(m.strategy, merge_late, &m);
        begun = atomic_load(&m.inner_has_begun) != 0;
        snprintf(late, sizeof late, "replica 1 waited %u ms in ditto_merge_call", timeout_ms);
        for (uint32_t i = 0; begun && i < n; i++) {
            ditto_status of_merge = i == 0 ? DITTO_ERR_IO : DITTO_ERR_PEER_STOPPED;
            assert_int_equal(m.status[i], merge_fails   ? of_merge
                                          : inner_fails ? DITTO_OK
                                          : i == 1      ? DITTO_ERR_TIMED_OUT
                                                        : DITTO_ERR_PEER_STOPPED);
            assert_int_equal(m.names_the_merge[i], merge_fails);
        }
        assert_status(status, !begun || !inner_fails ? DITTO_ERR_TIMED_OUT
                              : merge_fails          ? DITTO_ERR_IO
                                                     : DITTO_OK);
        if (begun && !inner_fails)
            assert_message(late);
        assert_ok(ditto_strategy_destroy(m.strategy));
    }
}

static void a_replica_that_is_late_for_a_merge_call_does_not_stop_a_run_inside_it(void **state)
{
    for (uint32_t n = 2; n <= 3; n++) {
        try_late_merge(n, false, false);
        /* The run inside has ended, so nothing stops the outer run. */
        try_late_merge(n, true, false);
        /* The merge function stops it, and its error is the one that replica 1 gets. */
        try_late_merge(n, true, true);
    }
}

/* -- Time limits of runs -- */

static _Atomic int release_stuck;

static ditto_status one_is_stuck(ditto_replica *self, void *argument)
{
    if (ditto_replica_id(self) == 1)
        while (atomic_load(&release_stuck) == 0)
            sleep_ms(1);
    return ditto_replica_id(self) == 1 ? DITTO_OK : ditto_barrier(self, NULL);
}

/* Runs in a child process, because a poisoned strategy keeps its memory, which a leak checker would
 * report. */
static int poison(void *caller)
{
    ditto_strategy *strategy;
    struct report report = { 0 };
    char limit[50];
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = 3);
    /* As replica 0, the caller waits in a barrier. The time limit of the run then ends the barrier. */
    options.caller = *(ditto_caller *)caller;
    long threads = count_threads();
    for (options.run_timeout_ms = 50;; options.run_timeout_ms *= 2) {
        REQUIRE(options.run_timeout_ms <= LONGEST_LIMIT_MS);
        REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy) == DITTO_OK);
        REQUIRE(ditto_strategy_run(strategy, one_is_stuck, NULL) == DITTO_ERR_TIMED_OUT);
        REQUIRE(strstr(ditto_last_error()->message, "the strategy is poisoned") != NULL);
        if (strstr(ditto_last_error()->message, "replicas 1 still run: the strategy is poisoned") != NULL)
            break;
        /* On a busy machine another replica was late, too. */
        atomic_store(&release_stuck, 1);
        REQUIRE(await_all_returned(strategy));
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
        atomic_store(&release_stuck, 0);
    }
    printf("  %s\n", ditto_last_error()->message);
    snprintf(limit, sizeof limit, "run_timeout_ms = %u passed", options.run_timeout_ms);
    REQUIRE(strstr(ditto_last_error()->message, limit) != NULL);
    REQUIRE(ditto_strategy_run(strategy, count_up, &report) == DITTO_ERR_POISONED);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_ERR_POISONED);
    printf("  %s\n", ditto_last_error()->message);
    REQUIRE(strstr(ditto_last_error()->message, "replicas 1 never returned") != NULL);
    REQUIRE(strcmp(ditto_last_error()->function, "ditto_strategy_destroy") == 0);
    atomic_store(&release_stuck, 1);
    REQUIRE(await_threads(threads)); /* the stuck thread ends when its function returns */
    return 0;
}

static void a_replica_that_never_returns_poisons_the_strategy(void **state)
{
    for (int caller = DITTO_CALLER_IS_REPLICA_0; caller <= DITTO_CALLER_WAITS; caller++)
        assert_int_equal(in_child(poison, &(ditto_caller){ (ditto_caller)caller }, 240), 0);
}

enum { OTHERS = 2, VALUE = 77 };

static _Atomic int merge_has_begun, num_left, value_has_changed;

static ditto_status merge_stuck(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                void *unused, ditto_value **result)
{
    const int *value[OTHERS];
    for (uint32_t i = 0; i < OTHERS; i++) {
        ditto_tensor part;
        DITTO_TRY(ditto_value_component(arguments[0], 1 + i, &part));
        value[i] = part.data;
    }
    atomic_store(&merge_has_begun, 1);
    while (atomic_load(&release_stuck) == 0)
        sleep_ms(1);
    for (uint32_t i = 0; i < OTHERS; i++)
        if (*value[i] != VALUE)
            atomic_store(&value_has_changed, 1);
    return DITTO_OK;
}

static ditto_status all_merge(ditto_replica *self, void *unused)
{
    int *value = malloc(sizeof *value);
    ditto_tensor argument = { .data = value, .dtype = DITTO_I32 };
    *value = VALUE;
    ditto_status status = ditto_merge_call(self, merge_stuck, NULL, &argument, 1, NULL);
    *value = 0;
    free(value);
    atomic_fetch_add(&num_left, 1);
    return status;
}

/* The strategy is destroyed before the pause ends. The replicas that wait in the pause stay there until the
 * merge function has returned, because it may use their arguments. Then they end. */
static int destroy_in_a_pause(void *unused)
{
    ditto_strategy *strategy;
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = 3, .caller = DITTO_CALLER_WAITS);
    long threads = count_threads();
    for (options.run_timeout_ms = 50;; options.run_timeout_ms *= 2) {
        REQUIRE(options.run_timeout_ms <= LONGEST_LIMIT_MS);
        REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy) == DITTO_OK);
        REQUIRE(ditto_strategy_run(strategy, all_merge, NULL) == DITTO_ERR_TIMED_OUT);
        if (has_begun(strategy, 0, &merge_has_begun))
            break;
        REQUIRE(await_all_returned(strategy));
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
        atomic_store(&num_left, 0);
    }
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_ERR_POISONED);
    printf("  %s\n", ditto_last_error()->message);
    /* Gives the replicas time to leave, which would be wrong. If they need more, the test shows nothing. */
    for (int ms = 0; ms < 200 && atomic_load(&num_left) < OTHERS; ms++)
        sleep_ms(1);
    REQUIRE(atomic_load(&num_left) == 0);
    atomic_store(&release_stuck, 1);
    REQUIRE(await_threads(threads));
    REQUIRE(atomic_load(&num_left) == 1 + OTHERS && atomic_load(&value_has_changed) == 0);
    return 0;
}

static void a_poisoned_strategy_can_be_destroyed_while_a_merge_function_runs(void **state)
{
    assert_int_equal(in_child(destroy_in_a_pause, NULL, 240), 0);
}

/* The replica returns after the time limit of the run, and before the strategy is destroyed. */
static int return_after_the_limit(void *unused)
{
    ditto_strategy *strategy;
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 2, .run_timeout_ms = 50),
                                  &strategy) == DITTO_OK);
    REQUIRE(ditto_strategy_run(strategy, one_is_stuck, NULL) == DITTO_ERR_TIMED_OUT);
    atomic_store(&release_stuck, 1);
    REQUIRE(await_all_returned(strategy));
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    return 0;
}

static void a_poisoned_strategy_whose_replicas_have_returned_is_destroyed_completely(void **state)
{
    assert_int_equal(in_child(return_after_the_limit, NULL, 180), 0);
}

/* Replica 1 returns when the run has been stopped. */
static ditto_status late_but_comes(ditto_replica *self, void *argument)
{
    const struct dti_team *team = dti_team_of(argument);
    for (int ms = 0; ditto_replica_id(self) == 1 && !dti_team_is_stopped(team) && ms < 60000; ms++)
        sleep_ms(1);
    return DITTO_OK;
}

static void a_run_that_is_late_but_returns_is_timed_out_and_not_poisoned(void **state)
{
    struct report report = { 0 };
    bool works = false;
    for (int tries = 1; !works; tries++) {
        /* On a busy machine replica 1 may return only after that time, or the second run may be late. */
        assert_true(tries <= 20);
        /* The strategy is poisoned only when a quarter of this time more has passed. */
        ditto_strategy *strategy = make_strategy(2, &OPTIONS(strategy, .run_timeout_ms = 4000));
        assert_status(ditto_strategy_run(strategy, late_but_comes, strategy), DITTO_ERR_TIMED_OUT);
        if (strstr(ditto_last_error()->message, "poisoned") == NULL) {
            ditto_status next = ditto_strategy_run(strategy, count_up, &report);
            works = next == DITTO_OK;
            assert_true(works || next == DITTO_ERR_TIMED_OUT);
        }
        assert_string_equal(report.first_failure, "");
        assert_true(await_all_returned(strategy));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- Calls in the wrong context -- */

static ditto_status misuse(ditto_replica *self, void *argument)
{
    void **both = argument;
    ditto_strategy *strategy = both[0];
    struct report *report = both[1];
    EXPECT(report, ditto_strategy_run(strategy, count_up, report) == DITTO_ERR_CONTEXT);
    EXPECT(report, strstr(ditto_last_error()->message, "cross-replica context") != NULL);
    EXPECT(report, ditto_strategy_destroy(strategy) == DITTO_ERR_CONTEXT);
    EXPECT(report, ditto_strategy_scope_enter(strategy) == DITTO_ERR_CONTEXT);
    return ditto_barrier(self, NULL);
}

static void run_and_destroy_inside_run_are_refused(void **state)
{
    struct report report = { 0 };
    ditto_strategy *strategy = make_strategy(3, NULL);
    void *both[] = { strategy, &report };
    run_all(strategy, misuse, both, &report);
    assert_ok(ditto_strategy_destroy(strategy));
}

static void *destroy_from_outside(void *strategy)
{
    ditto_status status = ditto_strategy_destroy(strategy);
    return (void *)(intptr_t)status;
}

static _Atomic int inside_run, may_end;

static ditto_status wait_inside(ditto_replica *self, void *argument)
{
    atomic_store(&inside_run, 1);
    while (atomic_load(&may_end) == 0)
        sleep_ms(1);
    return DITTO_OK;
}

static void *run_on_another_thread(void *strategy)
{
    return (void *)(intptr_t)ditto_strategy_run(strategy, wait_inside, NULL);
}

static void destroy_during_a_run_is_busy_and_changes_nothing(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    pthread_t runner, destroyer;
    void *result;
    pthread_create(&runner, NULL, run_on_another_thread, strategy);
    while (atomic_load(&inside_run) == 0)
        sleep_ms(1);
    pthread_create(&destroyer, NULL, destroy_from_outside, strategy);
    pthread_join(destroyer, &result);
    assert_int_equal((intptr_t)result, DITTO_ERR_BUSY);
    atomic_store(&may_end, 1);
    pthread_join(runner, &result);
    assert_int_equal((intptr_t)result, DITTO_OK);
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replica_that_fails_stops_the_others_and_run_returns_its_error),
        cmocka_unit_test(a_replica_that_returns_while_others_wait_has_diverged),
        cmocka_unit_test(replicas_that_make_different_calls_have_diverged),
        cmocka_unit_test(a_late_replica_is_named),
        cmocka_unit_test(the_time_limit_of_a_meeting_begins_after_the_work_before_it),
        cmocka_unit_test(a_replica_that_is_late_for_a_merge_call_does_not_stop_a_run_inside_it),
        cmocka_unit_test(an_error_without_a_message_gets_one),
        cmocka_unit_test(a_positive_status_is_no_error),
        cmocka_unit_test(a_replica_that_never_returns_poisons_the_strategy),
        cmocka_unit_test(a_poisoned_strategy_can_be_destroyed_while_a_merge_function_runs),
        cmocka_unit_test(a_poisoned_strategy_whose_replicas_have_returned_is_destroyed_completely),
        cmocka_unit_test(a_run_that_is_late_but_returns_is_timed_out_and_not_poisoned),
        cmocka_unit_test(run_and_destroy_inside_run_are_refused),
        cmocka_unit_test(destroy_during_a_run_is_busy_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
