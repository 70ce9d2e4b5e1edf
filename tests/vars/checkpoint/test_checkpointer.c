/* tests/vars/checkpoint/test_checkpointer.c - calls of several threads on one checkpointer, and calls from
 * replicas and from functions of datasets. They take turns, or are refused. */
#include "vars/checkpoint/held_saves.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* -- threads -- */

static void *call_in_a_thread(void *argument)
{
    struct call *c = argument;
    c->status = c->step < 0 ? ditto_checkpointer_wait(c->saved->c) : save(c->saved, c->step);
    return NULL;
}

static int destroy_during_a_call(void *unused)
{
    struct saved s;
    struct call waits = { &s, -1, DITTO_ERR_USER };
    pthread_t thread;
    REQUIRE(begin(&s, "busy") == DITTO_OK);
    atomic_store(&holding, true);
    REQUIRE(save(&s, 1) == DITTO_OK);
    REQUIRE(pthread_create(&thread, NULL, call_in_a_thread, &waits) == 0);
    REQUIRE(await(&joining, 1)); /* the thread is in its call */
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_ERR_BUSY);
    atomic_store(&holding, false);
    REQUIRE(pthread_join(thread, NULL) == 0);
    REQUIRE(waits.status == DITTO_OK);
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_OK);
    REQUIRE(is_whole("busy-1.h5"));
    return 0;
}

static void destroy_is_busy_while_another_thread_is_in_a_call(void **state)
{
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(destroy_during_a_call, NULL, 3 * SECONDS), 0);
}

enum { THREADS = 4, ROUNDS = 10 };

static void *save_and_wait(void *argument)
{
    struct call *c = argument;
    for (int i = 0; i < ROUNDS && c->status == DITTO_OK; i++) {
        c->status = save(c->saved, c->step + i);
        if (c->status == DITTO_OK && i % 2 == 0)
            c->status = ditto_checkpointer_wait(c->saved->c);
    }
    return NULL;
}

static int share_a_checkpointer(void *unused)
{
    struct saved s;
    struct call call[THREADS];
    pthread_t thread[THREADS];
    char name[40];
    REQUIRE(begin(&s, "threads") == DITTO_OK);
    for (int i = 0; i < THREADS; i++) {
        call[i] = (struct call){ &s, 100 * i, DITTO_OK };
        REQUIRE(pthread_create(&thread[i], NULL, save_and_wait, &call[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(thread[i], NULL) == 0);
        REQUIRE(call[i].status == DITTO_OK);
    }
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_OK);
    for (int i = 0; i < THREADS * ROUNDS; i++) {
        snprintf(name, sizeof name, "threads-%d.h5", i / ROUNDS * 100 + i % ROUNDS);
        REQUIRE(is_whole(name));
    }
    REQUIRE(ditto_variable_destroy(s.v) == DITTO_OK && ditto_strategy_destroy(s.strategy) == DITTO_OK);
    return 0;
}

static void threads_that_share_a_checkpointer_take_turns(void **state)
{
    if (SANITIZED) /* this test does not hold threads, so it can run here to detect races */
        assert_int_equal(share_a_checkpointer(NULL), 0);
    else
        assert_int_equal(in_child(share_a_checkpointer, NULL, 3 * SECONDS), 0);
}

/* -- two saves -- */

static int save_during_a_save(void *unused)
{
    struct saved s;
    struct call second = { &s, 2, DITTO_ERR_USER };
    pthread_t thread;
    REQUIRE(begin(&s, "second") == DITTO_OK);
    atomic_store(&holding, true);
    REQUIRE(save(&s, 1) == DITTO_OK);
    REQUIRE(pthread_create(&thread, NULL, call_in_a_thread, &second) == 0);
    REQUIRE(await(&joining, 1));
    REQUIRE(atomic_load(&in_held_call) <= 1); /* only one file is written at a time */
    atomic_store(&holding, false);
    REQUIRE(pthread_join(thread, NULL) == 0);
    REQUIRE(second.status == DITTO_OK);
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_OK);
    REQUIRE(is_whole("second-1.h5") && is_whole("second-2.h5"));
    return 0;
}

static void a_second_save_waits_for_the_first(void **state)
{
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(save_during_a_save, NULL, 3 * SECONDS), 0);
}

/* -- the folder -- */

/* Creates a checkpointer for a folder that does not exist. Returns true if the folder is created, and the
 * last folder that is flushed is `parent`, which has the name of the new folder. */
static bool flushes_parent(ditto_strategy *strategy, const char *folder, const char *parent)
{
    struct stat st;
    ditto_checkpointer *c;
    if (stat(parent, &st) != 0 || access(folder, F_OK) == 0)
        return false;
    atomic_store(&last_flushed, 0);
    if (ditto_checkpointer_create(strategy, folder, NULL, &c) != DITTO_OK)
        return false;
    bool flushed = atomic_load(&last_flushed) == st.st_ino;
    return ditto_checkpointer_destroy(c) == DITTO_OK && rmdir(folder) == 0 && flushed;
}

static int create_folders(void *unused)
{
    static const char *const ends[] = { "", "/", "///" };
    ditto_strategy *strategy;
    char path[200];
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, NULL, &strategy) == DITTO_OK);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/made%s", own_folder, ends[i]);
        REQUIRE(flushes_parent(strategy, path, own_folder));
        snprintf(path, sizeof path, "%s///made%s", own_folder, ends[i]);
        REQUIRE(flushes_parent(strategy, path, own_folder));
    }
    REQUIRE(chdir(own_folder) == 0);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "made%s", ends[i]);
        REQUIRE(flushes_parent(strategy, path, "."));
    }
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    return 0;
}

static void the_parent_of_a_created_folder_is_flushed_also_if_the_path_ends_with_a_slash(void **state)
{
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(create_folders, NULL, 3 * SECONDS), 0);
}

/* A save after a chdir goes to the folder of the checkpointer, and a relative name does not make it remove
 * the checkpoints of another folder. */
static int save_after_chdir(void *unused)
{
    struct saved s;
    REQUIRE(chdir(own_folder) == 0);
    REQUIRE(mkdir("there", 0700) == 0 && mkdir("there/moved", 0700) == 0);
    REQUIRE(begin(&s, "before") == DITTO_OK);
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_OK);
    ditto_checkpointer_options options = DITTO_CHECKPOINTER_OPTIONS_INIT;
    options.keep = 1;
    options.prefix = "moved";
    REQUIRE(ditto_checkpointer_create(s.strategy, "moved", &options, &s.c) == DITTO_OK);
    REQUIRE(chdir("there") == 0);
    REQUIRE(close(open("moved/moved-1.h5", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0);
    REQUIRE(save(&s, 1) == DITTO_OK && save(&s, 2) == DITTO_OK);
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_OK);
    REQUIRE(access("moved/moved-1.h5", F_OK) == 0 && access("moved/moved-2.h5", F_OK) != 0);
    REQUIRE(access("../moved/moved-2.h5", F_OK) == 0 && access("../moved/moved-1.h5", F_OK) != 0);
    REQUIRE(remove("moved/moved-1.h5") == 0 && rmdir("moved") == 0 && chdir("..") == 0);
    REQUIRE(rmdir("there") == 0 && remove("moved/moved-2.h5") == 0 && rmdir("moved") == 0);
    REQUIRE(ditto_variable_destroy(s.v) == DITTO_OK && ditto_strategy_destroy(s.strategy) == DITTO_OK);
    return 0;
}

static void a_relative_folder_is_that_of_the_creation(void **state)
{
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(save_after_chdir, NULL, 3 * SECONDS), 0);
}

/* -- calls of a thread that has the turn -- */

/* The calls of a function of value_from_function, which has the turn, and of another thread, whose save waits
 * for the turn meanwhile. */
struct beside {
    struct saved saved;
    _Atomic int saver_id, may_save, called;
    ditto_status saver, wait, save, destroy;
};

static void *save_beside_the_function(void *argument)
{
    struct beside *b = argument;
    atomic_store(&b->saver_id, (int)syscall(SYS_gettid));
    /* The thread does not sleep here, so await_sleep returns only when it sleeps in the call of save. */
    while (!atomic_load(&b->may_save))
        sched_yield();
    b->saver = save(&b->saved, 1);
    return NULL;
}

static ditto_status call_with_the_turn(uint32_t replica, uint32_t num_replicas, void *user,
                                       ditto_tensor *component)
{
    static const float zero = 0;
    struct beside *b = user;
    *component = (ditto_tensor){ .data = (void *)(uintptr_t)&zero, .dtype = DITTO_F32 };
    if (replica != 0)
        return DITTO_OK;
    atomic_store(&b->may_save, 1);
    if (!await_sleep(&b->saver_id))
        return DITTO_ERR_USER;
    b->wait = ditto_checkpointer_wait(b->saved.c);
    b->save = save(&b->saved, 2);
    b->destroy = ditto_checkpointer_destroy(b->saved.c);
    atomic_store(&b->called, 1);
    return DITTO_OK;
}

static int call_beside_a_save(void *argument)
{
    struct beside b = { .called = 0 };
    ditto_value *value;
    pthread_t thread;
    REQUIRE(begin_with(&b.saved, "turn", &OPTIONS(strategy, .num_replicas = *(const uint32_t *)argument)) ==
            DITTO_OK);
    REQUIRE(pthread_create(&thread, NULL, save_beside_the_function, &b) == 0);
    REQUIRE(ditto_strategy_value_from_function(b.saved.strategy, call_with_the_turn, &b, &value) == DITTO_OK);
    REQUIRE(pthread_join(thread, NULL) == 0);
    REQUIRE(atomic_load(&b.called) && b.wait == DITTO_OK && b.save == DITTO_OK && b.saver == DITTO_OK);
    REQUIRE(b.destroy == DITTO_ERR_BUSY); /* the other thread is in its call */
    REQUIRE(ditto_checkpointer_wait(b.saved.c) == DITTO_OK);
    REQUIRE(is_whole("turn-1.h5") && is_whole("turn-2.h5"));
    REQUIRE(ditto_value_destroy(value) == DITTO_OK && ditto_checkpointer_destroy(b.saved.c) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(b.saved.v) == DITTO_OK &&
            ditto_strategy_destroy(b.saved.strategy) == DITTO_OK);
    return 0;
}

static void a_save_that_waits_for_the_turn_does_not_hold_up_calls_of_the_thread_that_has_it(void **state)
{
    for (size_t i = 0; i < REPLICA_COUNTS; i++) {
        uint32_t replicas = counts_of_replicas[i];
        /* The result is 124 if the child hangs. */
        assert_int_equal(in_child(call_beside_a_save, &replicas, 3 * SECONDS), 0);
    }
}

/* -- replicas -- */

struct owned {
    struct report report;
    ditto_checkpointer *c[8]; /* [replicas] one for each replica */
};

static ditto_status destroy_own(ditto_replica *self, void *argument)
{
    struct owned *o = argument;
    DITTO_TRY(ditto_barrier(self, NULL)); /* the replicas destroy at the same time */
    EXPECT(&o->report, ditto_checkpointer_destroy(o->c[ditto_replica_id(self)]) == DITTO_ERR_CONTEXT);
    EXPECT(&o->report,
           strstr(ditto_last_error()->message, "destroying the checkpointer on replica ") != NULL);
    return DITTO_OK;
}

static ditto_status destroy_first(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                  void *argument, ditto_value **result)
{
    struct owned *o = argument;
    return ditto_checkpointer_destroy(o->c[0]);
}

static ditto_status destroy_in_merge(ditto_replica *self, void *argument)
{
    return ditto_merge_call(self, destroy_first, argument, NULL, 0, NULL);
}

static void a_checkpointer_is_destroyed_in_a_merge_function_but_not_by_a_replica(void **state)
{
    for (size_t i = 0; i < REPLICA_COUNTS; i++) {
        struct owned o = { .c = { NULL } };
        uint32_t replicas = counts_of_replicas[i];
        ditto_strategy *strategy = make_strategy(replicas, NULL);
        for (uint32_t k = 0; k < replicas; k++) {
            char prefix[20];
            snprintf(prefix, sizeof prefix, "replica_%u", k);
            assert_ok(ditto_checkpointer_create(strategy, own_folder,
                                                &OPTIONS(checkpointer, .prefix = prefix), &o.c[k]));
        }
        run_all(strategy, destroy_own, &o, &o.report);
        run_all(strategy, destroy_in_merge, &o, &o.report);
        for (uint32_t k = 1; k < replicas; k++)
            assert_ok(ditto_checkpointer_destroy(o.c[k]));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- functions of datasets -- */

enum kind { MAP, FILTER, GENERATOR, KINDS };

/* The calls that a function of a dataset makes, with their results. Meanwhile a run has the turn and waits
 * for the rows of the function, and the save of another thread waits for the turn. */
struct inside {
    struct saved saved;
    _Atomic int saver_id, may_save, may_call, calls;

    /* True when the first call of the function has made its calls of the checkpointer. */
    _Atomic bool called;

    /* The results of the calls. `once` is that of ditto_checkpoint_save, and `saver` that of the other
     * thread's save. */
    ditto_status create, save, wait, once, destroy, saver;

    char message[4][512];
};

static void keep_message(char *message)
{
    snprintf(message, 512, "%s", ditto_last_error()->message);
}

static ditto_status call_inside(struct inside *i)
{
    ditto_checkpointer_options options = DITTO_CHECKPOINTER_OPTIONS_INIT;
    ditto_checkpointer *other;
    while (!atomic_load(&i->may_call))
        sleep_ms(1);
    if (atomic_fetch_add(&i->calls, 1) != 0) {
        /* Another producer makes the calls. The run lasts until they are made, because it waits for this
         * row. */
        while (!atomic_load(&i->called))
            sleep_ms(1);
        return DITTO_OK;
    }
    i->create = ditto_checkpointer_create(i->saved.strategy, own_path("never"), &options, &other);
    keep_message(i->message[0]);
    i->save = save(&i->saved, 2);
    keep_message(i->message[1]);
    i->wait = ditto_checkpointer_wait(i->saved.c);
    keep_message(i->message[2]);
    i->destroy = ditto_checkpointer_destroy(i->saved.c);
    keep_message(i->message[3]);
    i->once = ditto_checkpoint_save(i->saved.strategy, own_path("never.h5"), NULL);
    atomic_store(&i->called, true);
    return DITTO_OK;
}

static ditto_status map_inside(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                               void *user)
{
    memcpy(out->data, in->data, sizeof(int64_t));
    return call_inside(user);
}

static ditto_status filter_inside(const ditto_tensor *row, void *user, int *keep)
{
    *keep = 1;
    return call_inside(user);
}

static ditto_status generate_inside(void *user, void *position, const ditto_tensor *row)
{
    *(int64_t *)row->data = 1;
    return call_inside(user);
}

static ditto_status make_calling(enum kind kind, struct inside *i, ditto_dataset **out)
{
    ditto_tensor row = { .dtype = DITTO_I64 };
    ditto_dataset *rows;
    ditto_generator generator = { .struct_size = sizeof generator, .user = i, .next = generate_inside };
    if (kind == GENERATOR)
        return ditto_dataset_from_generator(&generator, &row, 1, out);
    DITTO_TRY(ditto_dataset_from_range(0, 1000, 1, &rows));
    ditto_status status = kind == MAP ? ditto_dataset_map(rows, map_inside, i, NULL, out)
                                      : ditto_dataset_filter(rows, filter_inside, i, out);
    DITTO_TRY(ditto_dataset_destroy(rows));
    return status;
}

static void *save_beside_the_run(void *argument)
{
    struct inside *i = argument;
    atomic_store(&i->saver_id, (int)syscall(SYS_gettid));
    /* The thread does not sleep here, so await_sleep returns only when it sleeps in the call of save. */
    while (!atomic_load(&i->may_save))
        sched_yield();
    i->saver = save(&i->saved, 1);
    return NULL;
}

struct taking {
    struct inside *inside;
    ditto_iterator *iterator;
};

static ditto_status take_one(ditto_replica *self, void *argument)
{
    const struct taking *t = argument;
    ditto_batch batch;
    if (ditto_replica_id(self) == 0) {
        atomic_store(&t->inside->may_save, 1);
        if (!await_sleep(&t->inside->saver_id))
            return DITTO_ERR_USER;
        atomic_store(&t->inside->may_call, 1);
    }
    return ditto_next(self, t->iterator, &batch);
}

struct calling {
    enum kind kind;
    uint32_t replicas;
};

static int call_in_a_function_of_a_dataset(void *argument)
{
    const struct calling *c = argument;
    struct inside i = { .calls = 0 };
    struct taking t = { .inside = &i };
    ditto_dataset *calling;
    pthread_t thread;
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = c->replicas);
    ditto_input_options input = OPTIONS(input, .global_batch = c->replicas);
    REQUIRE(begin_with(&i.saved, "inside", &options) == DITTO_OK);
    REQUIRE(make_calling(c->kind, &i, &calling) == DITTO_OK);
    REQUIRE(ditto_strategy_iterate(i.saved.strategy, calling, &input, &t.iterator) == DITTO_OK);
    REQUIRE(pthread_create(&thread, NULL, save_beside_the_run, &i) == 0);
    REQUIRE(ditto_strategy_run(i.saved.strategy, take_one, &t) == DITTO_OK);
    pthread_join(thread, NULL);
    REQUIRE(i.saver == DITTO_OK && ditto_checkpointer_wait(i.saved.c) == DITTO_OK && is_whole("inside-1.h5"));
    REQUIRE(atomic_load(&i.called));
    REQUIRE(i.create == DITTO_ERR_CONTEXT && i.save == DITTO_ERR_CONTEXT && i.wait == DITTO_ERR_CONTEXT);
    REQUIRE(i.destroy == DITTO_ERR_CONTEXT && i.once == DITTO_ERR_CONTEXT);
    for (int k = 0; k < 3; k++)
        REQUIRE(strstr(i.message[k], "a call of the checkpointer in a function of a dataset") != NULL);
    REQUIRE(strstr(i.message[3], "destroying the checkpointer in a function of a dataset") != NULL);
    REQUIRE(access(own_path("never"), F_OK) != 0 && access(own_path("never.h5"), F_OK) != 0);
    REQUIRE(ditto_iterator_destroy(t.iterator) == DITTO_OK);
    REQUIRE(ditto_dataset_destroy(calling) == DITTO_OK);
    REQUIRE(ditto_checkpointer_destroy(i.saved.c) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(i.saved.v) == DITTO_OK &&
            ditto_strategy_destroy(i.saved.strategy) == DITTO_OK);
    return 0;
}

static void a_function_of_a_dataset_makes_no_call_of_a_checkpointer(void **state)
{
    for (enum kind kind = MAP; kind < KINDS; kind++)
        for (size_t i = 0; i < REPLICA_COUNTS; i++) {
            struct calling c = { kind, counts_of_replicas[i] };
            /* The result is 124 if the child hangs. */
            assert_int_equal(in_child(call_in_a_function_of_a_dataset, &c, 3 * SECONDS), 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(destroy_is_busy_while_another_thread_is_in_a_call),
        cmocka_unit_test(threads_that_share_a_checkpointer_take_turns),
        cmocka_unit_test(a_second_save_waits_for_the_first),
        cmocka_unit_test(a_relative_folder_is_that_of_the_creation),
        cmocka_unit_test(the_parent_of_a_created_folder_is_flushed_also_if_the_path_ends_with_a_slash),
        cmocka_unit_test(a_save_that_waits_for_the_turn_does_not_hold_up_calls_of_the_thread_that_has_it),
        cmocka_unit_test(a_checkpointer_is_destroyed_in_a_merge_function_but_not_by_a_replica),
        cmocka_unit_test(a_function_of_a_dataset_makes_no_call_of_a_checkpointer),
    };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
