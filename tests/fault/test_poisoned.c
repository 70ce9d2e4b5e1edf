/* tests/fault/test_poisoned.c - poisoned strategies: a run has passed its time limit, and a replica's
 * function has not returned. An object that is destroyed in this state stays in memory. It is freed with the
 * strategy if that replica has returned by then. Otherwise it stays until the process ends. Each case runs in
 * a child process. */
#include "input/distribute/iterator.h"
#include "input/distribute/order.h"
#include "replicas/jobs/jobs.h"
#include "replicas/team/dependent.h"
#include "replicas/team/team.h"
#include "support/support.h"
#include "fault/late.h"
#include "fault/lifetime.h"

#include <stdatomic.h>

/* -- The time limit passes inside an inner run -- */

static _Atomic int inner_has_begun, inner_may_end, outer_may_end, inner_call_has_returned, outer_has_ended;
static _Atomic uint64_t inner_run;

/* Replica 1 waits. */
static ditto_status inner_waits(ditto_replica *self, void *strategy)
{
    if (ditto_replica_id(self) != 1)
        return DITTO_OK;
    atomic_store(&inner_run, dti_team_run_number(dti_team_of(strategy)));
    atomic_store(&inner_has_begun, 1);
    while (!atomic_load(&inner_may_end))
        sleep_ms(1);
    return DITTO_OK;
}

/* Returns true if replica 1 has returned from the inner run. It may also have returned from the outer run
 * since. */
static bool replica_1_left_inner(const ditto_strategy *strategy)
{
    const struct dti_team *team = dti_team_of(strategy);
    return atomic_load(&team->replica[1].done) == atomic_load(&inner_run) || dti_team_has_left(team, 1);
}

/* A merge function that stays after its inner run has returned. */
static ditto_status run_inside(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                               void *unused, ditto_value **result)
{
    ditto_status status = ditto_strategy_run(strategy, inner_waits, strategy);
    atomic_store(&inner_call_has_returned, 1);
    while (!atomic_load(&outer_may_end))
        sleep_ms(1);
    return status;
}

static ditto_status merge_and_end(ditto_replica *self, void *unused)
{
    ditto_status status = ditto_merge_call(self, run_inside, NULL, NULL, 0, NULL);
    atomic_fetch_add(&outer_has_ended, 1);
    return status;
}

/* Makes a strategy whose run is stopped while the replica is in the inner run. On a busy machine a short
 * limit may pass before that, and then a longer one is tried. */
static int stop_in_inner(ditto_replica_fn function, uint32_t replica, ditto_strategy **strategy)
{
    for (uint32_t limit_ms = 50; limit_ms <= LONGEST_LIMIT_MS; limit_ms *= 2) {
        REQUIRE(make(2, DITTO_CALLER_WAITS, limit_ms, strategy));
        REQUIRE(ditto_strategy_run(*strategy, function, NULL) == DITTO_ERR_TIMED_OUT);
        if (has_begun(*strategy, replica, &inner_has_begun))
            return 0;
        atomic_store(&outer_may_end, 1);
        REQUIRE(await_all_returned(*strategy));
        REQUIRE(ditto_strategy_destroy(*strategy) == DITTO_OK);
        atomic_store(&outer_may_end, 0);
        atomic_store(&outer_has_ended, 0);
    }
    return 1;
}

/* All replicas have completed the inner run, but replica 0 is still in its merge function. The strategy stays
 * in memory for it. */
static int destroy_after_the_inner_run(void *unused)
{
    ditto_strategy *strategy;
    spoil_freed_memory();
    long threads = count_threads();
    REQUIRE(stop_in_inner(merge_and_end, 1, &strategy) == 0);
    atomic_store(&inner_may_end, 1);
    while (!atomic_load(&inner_call_has_returned) || !replica_1_left_inner(strategy))
        sleep_ms(1);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_ERR_POISONED);
    /* Replica 1 may have returned from its function. */
    REQUIRE(atomic_load(&outer_has_ended) <= 1);
    atomic_store(&outer_may_end, 1);
    while (atomic_load(&outer_has_ended) < 2)
        sleep_ms(1);
    REQUIRE(await_threads(threads));
    return 0;
}

/* Replica 0 waits. */
static ditto_status stay_in_inner(ditto_replica *self, void *unused)
{
    if (ditto_replica_id(self) == 0)
        atomic_store(&inner_has_begun, 1);
    while (ditto_replica_id(self) == 0 && !atomic_load(&inner_may_end))
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status run_stuck(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                              void *unused, ditto_value **result)
{
    return ditto_strategy_run(strategy, stay_in_inner, NULL);
}

static ditto_status merge_and_stay(ditto_replica *self, void *unused)
{
    ditto_status status = ditto_merge_call(self, run_stuck, NULL, NULL, 0, NULL);
    while (ditto_replica_id(self) == 1 && !atomic_load(&outer_may_end))
        sleep_ms(1);
    return status;
}

/* Replica 0 waits in the inner run, so this run has not ended. Replica 1 has completed it and waits in its
 * merge_call. The destruction of the strategy ends this merge_call, and replica 1 then waits in its
 * function. */
static int destroy_during_the_inner_run(void *unused)
{
    ditto_strategy *strategy;
    spoil_freed_memory();
    long threads = count_threads();
    REQUIRE(stop_in_inner(merge_and_stay, 0, &strategy) == 0);
    /* The call returns, although both replicas still wait. */
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_ERR_POISONED);
    REQUIRE(strstr(ditto_last_error()->message, "replicas 0, 1 never returned") != NULL);
    atomic_store(&inner_may_end, 1);
    atomic_store(&outer_may_end, 1);
    REQUIRE(await_threads(threads));
    return 0;
}

static void a_strategy_that_was_poisoned_inside_an_inner_run_stays_in_memory_for_its_replicas(void **state)
{
    assert_int_equal(in_child(destroy_after_the_inner_run, NULL, 240), 0);
    assert_int_equal(in_child(destroy_during_the_inner_run, NULL, 240), 0);
}

/* -- A merge function of a run that passed its time limit changes the list of dependents -- */

static _Atomic int is_leaving, may_leave, was_destroyed;

static void leave_slowly(struct dti_dependent *dependent, enum dti_team_end end)
{
    atomic_store(&is_leaving, 1);
    while (!atomic_load(&may_leave))
        sleep_ms(1);
}

static void release_nothing(struct dti_dependent *dependent) {}

static const struct dti_dependent_kind slow_to_leave = {
    .what = "the slow dependent",
    .leave = leave_slowly,
    .release = release_nothing,
};

static ditto_status destroy_the_slow_one(ditto_strategy *strategy, ditto_value *const *arguments,
                                         uint32_t count, void *dependent, ditto_value **result)
{
    ditto_status status = dti_dependent_destroy(dependent);
    atomic_store(&was_destroyed, 1);
    return status;
}

static ditto_status merge_the_slow_one(ditto_replica *self, void *dependent)
{
    return ditto_merge_call(self, destroy_the_slow_one, dependent, NULL, 0, NULL);
}

static int destroy_beside_a_change_of_the_list(void *unused)
{
    /* Static, because the replica may use it after this function has returned. */
    static struct dti_dependent slow;
    ditto_strategy *strategy;
    ditto_status status;
    spoil_freed_memory();
    for (uint32_t limit_ms = 50;; limit_ms *= 2) {
        REQUIRE(limit_ms <= LONGEST_LIMIT_MS);
        slow = (struct dti_dependent){ .kind = &slow_to_leave };
        REQUIRE(make(2, DITTO_CALLER_WAITS, limit_ms, &strategy));
        REQUIRE(dti_watch(strategy, &slow) == DITTO_OK);
        REQUIRE(ditto_strategy_run(strategy, merge_the_slow_one, &slow) == DITTO_ERR_TIMED_OUT);
        if (has_begun(strategy, 0, &is_leaving))
            break;
        REQUIRE(await_all_returned(strategy));
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    }
    REQUIRE(!atomic_load(&was_destroyed));
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_ERR_BUSY);
    atomic_store(&may_leave, 1);
    while (!atomic_load(&was_destroyed))
        sleep_ms(1);
    status = destroy_when_idle(strategy);
    /* DITTO_OK if all replicas have returned by now. */
    REQUIRE(status == DITTO_OK || status == DITTO_ERR_POISONED);
    return 0;
}

static void destroying_a_poisoned_strategy_is_busy_while_a_late_function_changes_its_dependents(void **state)
{
    assert_int_equal(in_child(destroy_beside_a_change_of_the_list, NULL, 240), 0);
}

/* -- Handles of a poisoned strategy -- */

enum handle { ITERATOR, OPTIMIZER, VARIABLE, VALUE, GROUPING, HANDLES };

struct late_case {
    uint32_t replicas;

    /* True if the strategy is destroyed before its handles. */
    bool strategy_first;

    /* Options of the iterator. */
    uint32_t flags;

    /* The handle whose memory is watched. */
    enum handle watched;
    uint32_t run_timeout_ms;
};

/* The result of a case whose late replica had not begun before the time limit. */
enum { STOPPED_TOO_EARLY = 77 };

/* A single replica gets a thread of its own, so that the run can return before it. */
static bool make_late(uint32_t replicas, uint32_t run_timeout_ms, ditto_strategy **out)
{
    return make(replicas, replicas == 1 ? DITTO_CALLER_WAITS : DITTO_CALLER_DEFAULT, run_timeout_ms, out);
}

/* The last replica is late. */
static bool is_late(const ditto_replica *self)
{
    return ditto_replica_id(self) == ditto_num_replicas(self) - 1;
}

/* Waits until the producers have filled a batch for the replica. */
static void await_batch(ditto_iterator *iterator, uint32_t replica)
{
    while (dti_order_next_delivery(iterator, replica) == DTI_NEXT_DELIVERY_NONE)
        sleep_ms(1);
}

struct late {
    ditto_variable *variable;
    ditto_optimizer *optimizer;
    ditto_iterator *iterator;
    const ditto_value *value;
    ditto_grouping *grouping;
    _Atomic int has_begun, may_go_on, has_ended;
    ditto_status assign_status, apply_status, argument_status, next_status, group_status;

    /* The number of rows of the batch, and the first of them. */
    uint64_t rows;
    int64_t first_row;
};

static ditto_status come_late(ditto_replica *self, void *argument)
{
    struct late *l = argument;
    float ones[4] = { 1, 1, 1, 1 };
    ditto_batch batch;
    ditto_tensor part;
    if (!is_late(self))
        return DITTO_OK;
    atomic_store(&l->has_begun, 1);
    while (!atomic_load(&l->may_go_on))
        sleep_ms(1);
    l->assign_status = ditto_assign(self, l->variable, DITTO_ASSIGN, ones);
    part = (ditto_tensor){ .data = ones, .dtype = DITTO_F32, .rank = 1, .shape = { 4 } };
    l->apply_status = ditto_apply(self, l->optimizer, &part, NULL);
    l->argument_status = ditto_argument(self, NULL, &part);
    ditto_group group;
    ditto_reduce_options in_group = DITTO_REDUCE_OPTIONS_INIT;
    in_group.group = &group;
    l->group_status = ditto_group_of(self, l->grouping, &group);
    if (l->group_status == DITTO_OK)
        l->group_status = ditto_barrier(self, &in_group);
    l->next_status = ditto_next(self, l->iterator, &batch);
    if (l->next_status == DITTO_OK) {
        l->rows = batch.rows;
        l->first_row = *(const int64_t *)batch.component[0].data;
    }
    atomic_store(&l->has_ended, 1);
    return l->assign_status;
}

static int use_handles_late(void *argument)
{
    /* Static, because the replica may use it after this function has returned. */
    static struct late l;
    const struct late_case *c = argument;
    ditto_strategy *strategy;
    float one = 1;
    ditto_tensor part[8];
    ditto_value *value;
    spoil_freed_memory();
    for (uint32_t i = 0; i < c->replicas; i++)
        part[i] = (ditto_tensor){ .data = &one, .dtype = DITTO_F32 };
    REQUIRE(make_late(c->replicas, c->run_timeout_ms, &strategy) && make_variable(strategy, &l.variable));
    REQUIRE(make_iterator(strategy, c->flags, &l.iterator));
    REQUIRE(ditto_strategy_value_from_tensors(strategy, part, 1, &value) == DITTO_OK);
    REQUIRE(ditto_optimizer_create(&l.variable, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_ADAM),
                                   &l.optimizer) == DITTO_OK);
    REQUIRE(ditto_strategy_split(strategy, (uint32_t[8]){ 0 }, NULL, c->replicas, &l.grouping) == DITTO_OK);
    await_batch(l.iterator, c->replicas - 1);
    REQUIRE(ditto_strategy_run_values(strategy, come_late, &l, value, NULL, NULL) == DITTO_ERR_TIMED_OUT);
    if (!has_begun(strategy, c->replicas - 1, &l.has_begun))
        return STOPPED_TOO_EARLY;
    if (c->strategy_first)
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_ERR_POISONED);
    const void *const handle[HANDLES] = { l.iterator, l.optimizer, l.variable, value, l.grouping };
    watch_free(handle[c->watched]);
    REQUIRE(ditto_iterator_destroy(l.iterator) == DITTO_OK);
    REQUIRE(ditto_optimizer_destroy(l.optimizer) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(l.variable) == DITTO_OK);
    REQUIRE(ditto_value_destroy(value) == DITTO_OK);
    REQUIRE(ditto_grouping_destroy(l.grouping) == DITTO_OK);
    REQUIRE(!was_freed());
    atomic_store(&l.may_go_on, 1);
    while (!atomic_load(&l.has_ended))
        sleep_ms(1);
    REQUIRE(l.assign_status == DITTO_ERR_PEER_STOPPED && l.apply_status == DITTO_ERR_PEER_STOPPED);
    REQUIRE(l.group_status == DITTO_ERR_PEER_STOPPED);
    /* The argument was destroyed. Only a crash would be an error. */
    REQUIRE(l.argument_status == DITTO_OK || l.argument_status == DITTO_ERR_NOT_FOUND ||
            l.argument_status == DITTO_ERR_CONTEXT);
    /* The batch has the replica's own two rows of the first global batch. */
    REQUIRE(l.next_status == DITTO_OK && l.rows == 2);
    REQUIRE(l.first_row == 2 * (int64_t)(c->replicas - 1));
    if (!c->strategy_first) {
        /* All replicas have returned, so the destruction also frees what the late replica could use. */
        REQUIRE(await_all_returned(strategy));
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK && was_freed());
    }
    return 0;
}

static void handles_of_a_poisoned_strategy_stay_in_memory_while_a_replica_is_late(void **state)
{
    for (size_t i = 0; i < COUNTS; i++)
        for (int strategy_first = 0; strategy_first < 2; strategy_first++)
            for (int watched = 0; watched < HANDLES; watched++) {
                struct late_case c = { counts[i], strategy_first != 0,
                                       i % 2 != 0 ? DITTO_INPUT_HOST_MEMORY : 0, (enum handle)watched, 50 };
                int result;
                while ((result = in_child(use_handles_late, &c, 240)) == STOPPED_TOO_EARLY &&
                       (c.run_timeout_ms *= 2) <= LONGEST_LIMIT_MS)
                    ;
                assert_int_equal(result, 0);
            }
}

/* -- Values of a poisoned run -- */

struct merging {
    _Atomic(ditto_value *) merged;
    _Atomic int is_held, may_go_on;
};

static ditto_status merge_a_value(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                  void *user, ditto_value **result)
{
    struct merging *m = user;
    float one = 1;
    ditto_tensor part[8];
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
    if (is_late(self))
        atomic_store(&m->is_held, 1);
    while (is_late(self) && !atomic_load(&m->may_go_on))
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status run_the_merging(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                    void *user, ditto_value **result)
{
    ditto_value *inner = NULL;
    return ditto_strategy_run_values(strategy, merge_and_come_late, user, NULL, NULL, &inner);
}

static ditto_status merge_inside(ditto_replica *self, void *argument)
{
    return ditto_merge_call(self, run_the_merging, argument, NULL, 0, NULL);
}

/* Each level of nested runs keeps the result of its last merge function. The outermost level and an inner
 * level are both tested. */
struct merging_case {
    uint32_t replicas;
    ditto_replica_fn function;
};

static int destroy_with_a_merged_value(void *argument)
{
    /* Static, because the replica may use it after this function has returned. */
    static struct merging m;
    const struct merging_case *c = argument;
    ditto_value *const untouched = (ditto_value *)&m;
    ditto_value *result = untouched;
    ditto_strategy *strategy;
    spoil_freed_memory();
    for (uint32_t limit_ms = 50;; limit_ms *= 2) {
        REQUIRE(limit_ms <= LONGEST_LIMIT_MS);
        REQUIRE(make_late(c->replicas, limit_ms, &strategy));
        REQUIRE(ditto_strategy_run_values(strategy, c->function, &m, NULL, NULL, &result) ==
                DITTO_ERR_TIMED_OUT);
        if (has_begun(strategy, c->replicas - 1, &m.is_held))
            break;
        REQUIRE(await_all_returned(strategy));
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    }
    REQUIRE(result == untouched && atomic_load(&m.merged) != NULL);
    watch_free(atomic_load(&m.merged));
    atomic_store(&m.may_go_on, 1);
    REQUIRE(await_all_returned(strategy));
    REQUIRE(!was_freed());
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    REQUIRE(was_freed());
    return 0;
}

static void values_of_a_poisoned_runs_merge_functions_are_freed_with_the_strategy(void **state)
{
    static const ditto_replica_fn functions[] = { merge_and_come_late, merge_inside };
    for (size_t i = 0; i < COUNTS; i++)
        for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
            struct merging_case c = { counts[i], functions[k] };
            assert_int_equal(in_child(destroy_with_a_merged_value, &c, 240), 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_strategy_that_was_poisoned_inside_an_inner_run_stays_in_memory_for_its_replicas),
        cmocka_unit_test(destroying_a_poisoned_strategy_is_busy_while_a_late_function_changes_its_dependents),
        cmocka_unit_test(handles_of_a_poisoned_strategy_stay_in_memory_while_a_replica_is_late),
        cmocka_unit_test(values_of_a_poisoned_runs_merge_functions_are_freed_with_the_strategy),
    };
    dti_grace_least_ms = 20;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
