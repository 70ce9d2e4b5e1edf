/* tests/vars/checkpoint/test_checkpointer_lifetime.c - what happens to a save or a restore if the process
 * forks, if its strategy or its variables are destroyed, or if a replica returns late. */
#include "replicas/jobs/jobs.h"
#include "replicas/team/stopping.h"
#include "vars/checkpoint/held_saves.h"

#include "replicas/team/team.h"

#include <ditto/optimizer.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* -- fork -- */

static int use_in_a_child(void *argument)
{
    struct saved *s = argument;
    REQUIRE(save(s, 2) == DITTO_ERR_FORKED);
    REQUIRE(strcmp(ditto_last_error()->function, "ditto_checkpointer_save") == 0);
    REQUIRE(ditto_checkpointer_wait(s->c) == DITTO_ERR_FORKED);
    REQUIRE(ditto_checkpoint_save(s->strategy, own_path("child.h5"), NULL) == DITTO_ERR_FORKED);
    REQUIRE(strcmp(ditto_last_error()->function, "ditto_checkpoint_save") == 0);
    REQUIRE(ditto_checkpointer_destroy(s->c) == DITTO_OK);
    return 0;
}

static int fork_during_a_save(void *unused)
{
    struct saved s;
    REQUIRE(begin(&s, "forked") == DITTO_OK);
    atomic_store(&holding, true);
    REQUIRE(save(&s, 1) == DITTO_OK);
    REQUIRE(await(&in_held_call, 1));
    REQUIRE(in_child(use_in_a_child, &s, SECONDS) == 0);
    atomic_store(&holding, false);
    REQUIRE(ditto_checkpointer_wait(s.c) == DITTO_OK);
    REQUIRE(is_whole("forked-1.h5"));
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_OK);
    return 0;
}

static void a_child_of_a_process_that_saves_gets_FORKED_and_does_not_wait(void **state)
{
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(fork_during_a_save, NULL, 3 * SECONDS), 0);
}

/* -- the strategy is destroyed during a save -- */

static int destroy_the_strategy_during_a_save(void *unused)
{
    struct saved s;
    REQUIRE(begin(&s, "gone") == DITTO_OK);
    atomic_store(&holding, true);
    REQUIRE(save(&s, 1) == DITTO_OK);
    REQUIRE(await(&in_held_call, 1));
    REQUIRE(ditto_variable_destroy(s.v) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(s.strategy) == DITTO_OK);
    atomic_store(&holding, false);
    REQUIRE(ditto_checkpointer_wait(s.c) == DITTO_OK);
    REQUIRE(is_whole("gone-1.h5"));
    REQUIRE(save(&s, 2) == DITTO_ERR_CONTEXT);
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_OK);
    return 0;
}

static void a_strategy_may_be_destroyed_while_its_checkpoint_is_written(void **state)
{
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(destroy_the_strategy_during_a_save, NULL, 3 * SECONDS), 0);
}

static void *save_once(void *argument)
{
    struct call *c = argument;
    c->status = ditto_checkpoint_save(c->saved->strategy, own_path("once.h5"), NULL);
    return NULL;
}

static int destroy_the_strategy_under_a_save(void *unused)
{
    struct saved s;
    struct call once = { &s, 0, DITTO_ERR_USER };
    pthread_t thread;
    REQUIRE(begin(&s, "under") == DITTO_OK);
    atomic_store(&holding, true);
    REQUIRE(pthread_create(&thread, NULL, save_once, &once) == 0);
    REQUIRE(await(&in_held_call, 1));
    REQUIRE(ditto_strategy_destroy(s.strategy) == DITTO_ERR_BUSY);
    atomic_store(&holding, false);
    REQUIRE(pthread_join(thread, NULL) == 0);
    REQUIRE(once.status == DITTO_OK && is_whole("once.h5"));
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(s.v) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(s.strategy) == DITTO_OK);
    return 0;
}

static void a_strategy_is_not_destroyed_during_a_save_of_another_thread(void **state)
{
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(destroy_the_strategy_under_a_save, NULL, 3 * SECONDS), 0);
}

/* -- variables are destroyed during a save or a restore -- */

static void *restore_once(void *argument)
{
    struct call *c = argument;
    c->status = ditto_checkpoint_restore(c->saved->strategy, own_path("before.h5"), NULL, NULL);
    return NULL;
}

static void *save_chosen_once(void *argument)
{
    struct call *c = argument;
    c->status = ditto_checkpoint_save(c->saved->strategy, own_path("chosen.h5"),
                                      &OPTIONS(checkpoint, .variables = &c->saved->v, .num_variables = 1));
    return NULL;
}

/* Saves with a checkpointer that does not write in the background. */
static void *save_to_folder_once(void *argument)
{
    struct call *c = argument;
    ditto_checkpointer *checkpointer;
    c->status = ditto_checkpointer_create(c->saved->strategy, own_folder,
                                          &OPTIONS(checkpointer, .prefix = "foreground"), &checkpointer);
    if (c->status == DITTO_OK)
        c->status = ditto_checkpointer_save(checkpointer, NULL);
    if (c->status == DITTO_OK)
        c->status = ditto_checkpointer_destroy(checkpointer);
    return NULL;
}

/* Tries to destroy a variable and an optimizer while `body`, which saves or restores, is held. */
static int destroy_under(void *(*body)(void *))
{
    struct saved s;
    struct call call = { &s, 0, DITTO_ERR_USER };
    pthread_t thread;
    ditto_optimizer *adam;
    ditto_variable *other, *slot;
    ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { 3 } };
    size_t before, after;
    REQUIRE(begin(&s, "variables") == DITTO_OK);
    REQUIRE(ditto_variable_create(s.strategy, &zeros, NULL, &other) == DITTO_OK);
    REQUIRE(ditto_strategy_variables(s.strategy, NULL, 0, &before) == DITTO_OK);
    REQUIRE(ditto_optimizer_create(&other, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_ADAM), &adam) ==
            DITTO_OK);
    REQUIRE(ditto_optimizer_slot(adam, 0, "m", &slot) == DITTO_OK);
    REQUIRE(ditto_checkpoint_save(s.strategy, own_path("before.h5"), NULL) == DITTO_OK);
    atomic_store(&holding, true);
    REQUIRE(pthread_create(&thread, NULL, body, &call) == 0);
    REQUIRE(await(&in_held_call, 1));
    REQUIRE(ditto_variable_destroy(s.v) == DITTO_ERR_BUSY);
    ditto_status of_optimizer = ditto_optimizer_destroy(adam);
    REQUIRE(of_optimizer == (body == save_chosen_once ? DITTO_OK : DITTO_ERR_BUSY));
    REQUIRE(of_optimizer == DITTO_OK || strstr(ditto_last_error()->message, "optimizer/m/Variable") != NULL);
    atomic_store(&holding, false);
    REQUIRE(pthread_join(thread, NULL) == 0);
    REQUIRE(call.status == DITTO_OK);
    REQUIRE(of_optimizer == DITTO_OK || ditto_optimizer_destroy(adam) == DITTO_OK);
    REQUIRE(ditto_strategy_variables(s.strategy, NULL, 0, &after) == DITTO_OK);
    REQUIRE(before == after); /* the slots were destroyed with their optimizer */
    REQUIRE(ditto_variable_destroy(s.v) == DITTO_OK && ditto_variable_destroy(other) == DITTO_OK);
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(s.strategy) == DITTO_OK);
    return 0;
}

static int destroy_under_a_save(void *unused)
{
    return destroy_under(save_once);
}

static int destroy_under_a_save_of_some(void *unused)
{
    return destroy_under(save_chosen_once);
}

static int destroy_under_a_save_to_a_folder(void *unused)
{
    return destroy_under(save_to_folder_once);
}

static int destroy_under_a_restore(void *unused)
{
    return destroy_under(restore_once);
}

static void variables_and_slots_are_not_destroyed_during_a_save_or_restore_of_another_thread(void **state)
{
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(destroy_under_a_save, NULL, 3 * SECONDS), 0);
    assert_int_equal(in_child(destroy_under_a_save_of_some, NULL, 3 * SECONDS), 0);
    assert_int_equal(in_child(destroy_under_a_save_to_a_folder, NULL, 3 * SECONDS), 0);
    assert_int_equal(in_child(destroy_under_a_restore, NULL, 3 * SECONDS), 0);
}

enum { COMING = 100 };

struct coming {
    ditto_strategy *strategy;
    _Atomic bool done;
    _Atomic int saves;

    /* True if the thread that saves must wait before its next save. */
    _Atomic bool must_wait;

    struct report report;
};

static ditto_status save_and_restore(struct coming *c)
{
    ditto_restore_options partial = DITTO_RESTORE_OPTIONS_INIT;
    partial.partial = 1; /* a variable may have been created since the save */
    EXPECT(&c->report, ditto_checkpoint_save(c->strategy, own_path("coming.h5"), NULL) == DITTO_OK);
    EXPECT(&c->report,
           ditto_checkpoint_restore(c->strategy, own_path("coming.h5"), &partial, NULL) == DITTO_OK);
    atomic_fetch_add(&c->saves, 1);
    return DITTO_OK;
}

static void *save_until_done(void *argument)
{
    struct coming *c = argument;
    while (!atomic_load(&c->done) && save_and_restore(c) == DITTO_OK)
        while (atomic_load(&c->must_wait))
            sleep_ms(1);
    return NULL;
}

/* Destroys a variable or an optimizer when the other thread is between two calls. That thread is in a call
 * most of the time. On one CPU this thread may run only while the other one sleeps in a call. After many
 * refusals the other thread therefore waits between two calls. */
static ditto_status destroy_when_free(struct coming *c, ditto_variable *v, ditto_optimizer *o)
{
    enum { MANY = 10000 };
    ditto_status status;
    for (int refusals = 0;; refusals++) {
        status = v != NULL ? ditto_variable_destroy(v) : ditto_optimizer_destroy(o);
        if (status != DITTO_ERR_BUSY)
            break;
        if (refusals == MANY)
            atomic_store(&c->must_wait, true);
        sched_yield();
    }
    atomic_store(&c->must_wait, false);
    return status;
}

static int come_and_go(struct coming *c)
{
    ditto_strategy *strategy = c->strategy;
    ditto_variable *v[COMING];
    ditto_optimizer *adam;
    ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { 16 } };
    char name[20];
    for (int i = 0; i < COMING; i++) {
        snprintf(name, sizeof name, "v%d", i);
        REQUIRE(ditto_variable_create(strategy, &zeros, &OPTIONS(variable, .name = name), &v[i]) == DITTO_OK);
    }
    REQUIRE(ditto_optimizer_create(v, COMING, &OPTIONS(optimizer, .rule = DITTO_RULE_ADAM), &adam) ==
            DITTO_OK);
    REQUIRE(destroy_when_free(c, NULL, adam) == DITTO_OK);
    for (int i = 0; i < COMING; i++)
        REQUIRE(destroy_when_free(c, v[i], NULL) == DITTO_OK);
    return 0;
}

static int come_and_go_under_saves(void *unused)
{
    struct coming c = { .done = false };
    ditto_tensor zeros = { .dtype = DITTO_F32 };
    ditto_variable *stays;
    pthread_t thread;
    size_t left;
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 1), &c.strategy) ==
            DITTO_OK);
    REQUIRE(ditto_variable_create(c.strategy, &zeros, NULL, &stays) == DITTO_OK);
    REQUIRE(pthread_create(&thread, NULL, save_until_done, &c) == 0);
    while (!c.report.claimed && atomic_load(&c.saves) < test_trials(50))
        REQUIRE(come_and_go(&c) == 0);
    atomic_store(&c.done, true);
    REQUIRE(pthread_join(thread, NULL) == 0);
    if (c.report.claimed)
        fprintf(stderr, "%s\n", c.report.first_failure);
    REQUIRE(!c.report.claimed);
    REQUIRE(ditto_strategy_variables(c.strategy, NULL, 0, &left) == DITTO_OK && left == 1);
    REQUIRE(ditto_variable_destroy(stays) == DITTO_OK && ditto_strategy_destroy(c.strategy) == DITTO_OK);
    return 0;
}

static void variables_are_created_and_destroyed_while_another_thread_saves_and_restores(void **state)
{
    if (SANITIZED)
        assert_int_equal(come_and_go_under_saves(NULL), 0);
    else
        assert_int_equal(in_child(come_and_go_under_saves, NULL, 3 * SECONDS), 0);
}

/* -- a replica that returns after the time limit of its run -- */

enum order { STRATEGY_FIRST, CHECKPOINTER_FIRST, STRATEGY_ALONE, ORDERS };

struct late {
    struct saved saved;
    _Atomic int has_begun, may_go_on, has_ended;
    ditto_status save, wait;
};

/* What save_of_a_late_replica returns if the limit of the run passed before save_late began. */
enum { STOPPED_TOO_EARLY = 77 };

static void save_late(struct late *l)
{
    atomic_store(&l->has_begun, 1);
    while (!atomic_load(&l->may_go_on))
        sleep_ms(1);
    l->save = save(&l->saved, 1);
    l->wait = ditto_checkpointer_wait(l->saved.c);
    atomic_store(&l->has_ended, 1);
}

/* The last replica saves late. */
static ditto_status come_late(ditto_replica *self, void *argument)
{
    if (ditto_replica_id(self) == ditto_num_replicas(self) - 1)
        save_late(argument);
    return DITTO_OK;
}

/* Replica 0's thread saves late, in cross-replica context. */
static ditto_status merge_late(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                               void *user, ditto_value **result)
{
    save_late(user);
    return DITTO_OK;
}

static ditto_status merge_and_come_late(ditto_replica *self, void *argument)
{
    return ditto_merge_call(self, merge_late, argument, NULL, 0, NULL);
}

struct late_case {
    uint32_t replicas;
    bool merges;
    enum order order;
    uint32_t run_timeout_ms;
};

static int save_of_a_late_replica(void *argument)
{
    /* This is static, because the replica may still use it after this function has returned. */
    static struct late l;
    const struct late_case *c = argument;
    ditto_status expected = c->order != STRATEGY_ALONE ? DITTO_ERR_BUSY /* the checkpointer was destroyed */
                            : c->merges                ? DITTO_ERR_POISONED
                                                       : DITTO_ERR_CONTEXT;
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = c->replicas,
                                             .caller = DITTO_CALLER_WAITS,
                                             .run_timeout_ms = c->run_timeout_ms);
    spoil_freed_memory();
    REQUIRE(begin_with(&l.saved, "late", &options) == DITTO_OK);
    REQUIRE(ditto_strategy_run(l.saved.strategy, c->merges ? merge_and_come_late : come_late, &l) ==
            DITTO_ERR_TIMED_OUT);
    if (!atomic_load(&l.has_begun))
        return STOPPED_TOO_EARLY;
    watch_free(l.saved.c);
    if (c->order != CHECKPOINTER_FIRST)
        REQUIRE(ditto_strategy_destroy(l.saved.strategy) == DITTO_ERR_POISONED);
    if (c->order != STRATEGY_ALONE)
        REQUIRE(ditto_checkpointer_destroy(l.saved.c) == DITTO_OK);
    REQUIRE(!was_freed());
    atomic_store(&l.may_go_on, 1);
    for (int i = 0; i < SECONDS * 1000 && !atomic_load(&l.has_ended); i++)
        sleep_ms(1);
    REQUIRE(atomic_load(&l.has_ended) && !was_freed());
    REQUIRE(l.save == expected);
    REQUIRE(l.wait == (c->order != STRATEGY_ALONE ? DITTO_ERR_BUSY : DITTO_OK));
    if (c->order == STRATEGY_ALONE)
        REQUIRE(ditto_checkpointer_destroy(l.saved.c) == DITTO_OK);
    if (c->order == CHECKPOINTER_FIRST) { /* then everything can still be freed */
        for (int i = 0; i < SECONDS * 1000 && !dti_team_all_returned(dti_team_of(l.saved.strategy)); i++)
            sleep_ms(1);
        REQUIRE(ditto_strategy_destroy(l.saved.strategy) == DITTO_OK && was_freed());
    }
    return 0;
}

/* On a busy machine a short limit may pass before save_late begins. Then a longer one is tried. */
static int run_late_case(struct late_case c)
{
    int result = STOPPED_TOO_EARLY;
    for (c.run_timeout_ms = 50; result == STOPPED_TOO_EARLY && c.run_timeout_ms <= SECONDS * 1000;
         c.run_timeout_ms *= 4)
        result = in_child(save_of_a_late_replica, &c, 3 * SECONDS);
    return result;
}

static void a_checkpointer_of_a_poisoned_strategy_stays_for_the_replica_that_is_late(void **state)
{
    for (enum order order = STRATEGY_FIRST; order < ORDERS; order++)
        for (int merges = 0; merges < 2; merges++)
            for (size_t i = 0; i < REPLICA_COUNTS; i++)
                assert_int_equal(
                    run_late_case((struct late_case){ counts_of_replicas[i], merges != 0, order, 0 }), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_of_a_process_that_saves_gets_FORKED_and_does_not_wait),
        cmocka_unit_test(a_strategy_may_be_destroyed_while_its_checkpoint_is_written),
        cmocka_unit_test(a_strategy_is_not_destroyed_during_a_save_of_another_thread),
        cmocka_unit_test(variables_and_slots_are_not_destroyed_during_a_save_or_restore_of_another_thread),
        cmocka_unit_test(variables_are_created_and_destroyed_while_another_thread_saves_and_restores),
        cmocka_unit_test(a_checkpointer_of_a_poisoned_strategy_stays_for_the_replica_that_is_late),
    };
    dti_grace_least_ms = 20;
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
