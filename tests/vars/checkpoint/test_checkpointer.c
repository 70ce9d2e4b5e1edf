/* tests/vars/checkpoint/test_checkpointer.c - calls that are made while a save waits in its fsync, or while a
 * restore waits in its read. The program defines fsync, pread and pthread_join itself, so that it can hold
 * threads there and knows where they are. */
#undef _FILE_OFFSET_BITS /* otherwise pread would be a macro for pread64, and both are defined here */
#include "replicas/team/team.h"
#include "support/support.h"
#include "support/support.h"

#include <ditto/checkpoint.h>
#include <ditto/optimizer.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ELEMENTS = 1000, SECONDS = 20 };

static _Atomic bool closed; /* while true, fsync and the read of a restore wait */
static _Atomic int at_gate; /* threads that are in fsync or in that read */
static _Atomic int joining; /* threads that are in pthread_join */

/* Only a restore reads this number of bytes at once. It waits there while `closed` is true. */
enum { HELD_BYTES = 4 * ELEMENTS };

#if !SANITIZED
static ssize_t read_at(int fd, void *to, size_t bytes, off_t offset)
{
    atomic_fetch_add(&at_gate, bytes == HELD_BYTES);
    while (bytes == HELD_BYTES && atomic_load(&closed))
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    atomic_fetch_sub(&at_gate, bytes == HELD_BYTES);
    return syscall(SYS_pread64, fd, to, bytes, offset);
}

/* A library calls the function by one of its two names. */
ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    return read_at(fd, to, bytes, offset);
}

ssize_t pread64(int fd, void *to, size_t bytes, off_t offset)
{
    return read_at(fd, to, bytes, offset);
}

int fsync(int fd)
{
    atomic_fetch_add(&at_gate, 1);
    while (atomic_load(&closed))
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    atomic_fetch_sub(&at_gate, 1);
    return (int)syscall(SYS_fsync, fd);
}

int pthread_join(pthread_t thread, void **result)
{
    static int (*real)(pthread_t, void **);
    if (real == NULL)
        real = (int (*)(pthread_t, void **))(uintptr_t)dlsym(RTLD_NEXT, "pthread_join");
    atomic_fetch_add(&joining, 1);
    int failed = real(thread, result);
    atomic_fetch_sub(&joining, 1);
    return failed;
}
#endif

static bool await(_Atomic int *count, int wanted)
{
    for (int i = 0; i < SECONDS * 1000; i++) {
        if (atomic_load(count) >= wanted)
            return true;
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    return false;
}

struct saved {
    ditto_strategy *strategy;
    ditto_variable *v;
    ditto_checkpointer *c;
};

static ditto_status begin_with(struct saved *s, const char *prefix, const ditto_strategy_options *options)
{
    ditto_variable_options named = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_checkpointer_options behind = DITTO_CHECKPOINTER_OPTIONS_INIT;
    ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { ELEMENTS } };
    named.name = "v";
    behind.background = 1;
    behind.prefix = prefix;
    behind.keep = UINT32_MAX;
    DITTO_TRY(ditto_strategy_create(DITTO_MIRRORED, options, &s->strategy));
    DITTO_TRY(ditto_variable_create(s->strategy, &zeros, &named, &s->v));
    return ditto_checkpointer_create(s->strategy, own_folder, &behind, &s->c);
}

static ditto_status begin(struct saved *s, const char *prefix)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    options.num_replicas = 2;
    return begin_with(s, prefix, &options);
}

static ditto_status save(const struct saved *s, int64_t step)
{
    ditto_checkpoint_options options = DITTO_CHECKPOINT_OPTIONS_INIT;
    options.step = step;
    return ditto_checkpointer_save(s->c, &options);
}

static bool is_whole(const char *name)
{
    ditto_checkpoint *file;
    if (ditto_checkpoint_open(own_path(name), &file) != DITTO_OK)
        return false;
    assert_ok(ditto_checkpoint_close(file));
    return true;
}

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
    (void)unused;
    REQUIRE(begin(&s, "forked") == DITTO_OK);
    atomic_store(&closed, true);
    REQUIRE(save(&s, 1) == DITTO_OK);
    REQUIRE(await(&at_gate, 1));
    REQUIRE(in_child(use_in_a_child, &s, SECONDS) == 0);
    atomic_store(&closed, false);
    REQUIRE(ditto_checkpointer_wait(s.c) == DITTO_OK);
    REQUIRE(is_whole("forked-1.h5"));
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_OK);
    return 0;
}

static void a_child_of_a_process_that_saves_gets_FORKED_and_does_not_wait(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(fork_during_a_save, NULL, 3 * SECONDS), 0);
}

/* -- threads -- */

struct call {
    struct saved *saved;
    int64_t step; /* of the save, or -1 to wait */
    ditto_status status;
};

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
    (void)unused;
    REQUIRE(begin(&s, "busy") == DITTO_OK);
    atomic_store(&closed, true);
    REQUIRE(save(&s, 1) == DITTO_OK);
    REQUIRE(pthread_create(&thread, NULL, call_in_a_thread, &waits) == 0);
    REQUIRE(await(&joining, 1)); /* the thread is in its call */
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_ERR_BUSY);
    atomic_store(&closed, false);
    REQUIRE(pthread_join(thread, NULL) == 0);
    REQUIRE(waits.status == DITTO_OK);
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_OK);
    REQUIRE(is_whole("busy-1.h5"));
    return 0;
}

static void destroy_is_busy_while_another_thread_is_in_a_call(void **state)
{
    (void)state;
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
    (void)unused;
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
    (void)state;
    if (SANITIZED) /* this test does not hold threads, so it can run here to detect races */
        assert_int_equal(share_a_checkpointer(NULL), 0);
    else
        assert_int_equal(in_child(share_a_checkpointer, NULL, 3 * SECONDS), 0);
}

/* -- the strategy is destroyed during a save -- */

static int destroy_the_strategy_during_a_save(void *unused)
{
    struct saved s;
    (void)unused;
    REQUIRE(begin(&s, "gone") == DITTO_OK);
    atomic_store(&closed, true);
    REQUIRE(save(&s, 1) == DITTO_OK);
    REQUIRE(await(&at_gate, 1));
    REQUIRE(ditto_variable_destroy(s.v) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(s.strategy) == DITTO_OK);
    atomic_store(&closed, false);
    REQUIRE(ditto_checkpointer_wait(s.c) == DITTO_OK);
    REQUIRE(is_whole("gone-1.h5"));
    REQUIRE(save(&s, 2) == DITTO_ERR_CONTEXT);
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_OK);
    return 0;
}

static void a_strategy_may_be_destroyed_while_its_checkpoint_is_written(void **state)
{
    (void)state;
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
    (void)unused;
    REQUIRE(begin(&s, "under") == DITTO_OK);
    atomic_store(&closed, true);
    REQUIRE(pthread_create(&thread, NULL, save_once, &once) == 0);
    REQUIRE(await(&at_gate, 1));
    REQUIRE(ditto_strategy_destroy(s.strategy) == DITTO_ERR_BUSY);
    atomic_store(&closed, false);
    REQUIRE(pthread_join(thread, NULL) == 0);
    REQUIRE(once.status == DITTO_OK && is_whole("once.h5"));
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(s.v) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(s.strategy) == DITTO_OK);
    return 0;
}

static void a_strategy_is_not_destroyed_during_a_save_of_another_thread(void **state)
{
    (void)state;
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
    ditto_checkpoint_options options = DITTO_CHECKPOINT_OPTIONS_INIT;
    options.variables = &c->saved->v;
    options.num_variables = 1;
    c->status = ditto_checkpoint_save(c->saved->strategy, own_path("chosen.h5"), &options);
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
    ditto_optimizer_options rule = DITTO_OPTIMIZER_OPTIONS_INIT;
    ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { 3 } };
    size_t before, after;
    rule.rule = DITTO_RULE_ADAM;
    REQUIRE(begin(&s, "variables") == DITTO_OK);
    REQUIRE(ditto_variable_create(s.strategy, &zeros, NULL, &other) == DITTO_OK);
    REQUIRE(ditto_strategy_variables(s.strategy, NULL, 0, &before) == DITTO_OK);
    REQUIRE(ditto_optimizer_create(&other, 1, &rule, &adam) == DITTO_OK);
    REQUIRE(ditto_optimizer_slot(adam, 0, "m", &slot) == DITTO_OK);
    REQUIRE(ditto_checkpoint_save(s.strategy, own_path("before.h5"), NULL) == DITTO_OK);
    atomic_store(&closed, true);
    REQUIRE(pthread_create(&thread, NULL, body, &call) == 0);
    REQUIRE(await(&at_gate, 1));
    REQUIRE(ditto_variable_destroy(s.v) == DITTO_ERR_BUSY);
    ditto_status of_optimizer = ditto_optimizer_destroy(adam);
    REQUIRE(of_optimizer == (body == save_chosen_once ? DITTO_OK : DITTO_ERR_BUSY));
    REQUIRE(of_optimizer == DITTO_OK || strstr(ditto_last_error()->message, "optimizer/m/Variable") != NULL);
    atomic_store(&closed, false);
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
    (void)unused;
    return destroy_under(save_once);
}

static int destroy_under_a_save_of_some(void *unused)
{
    (void)unused;
    return destroy_under(save_chosen_once);
}

static int destroy_under_a_restore(void *unused)
{
    (void)unused;
    return destroy_under(restore_once);
}

static void variables_and_slots_are_not_destroyed_during_a_save_or_restore_of_another_thread(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(destroy_under_a_save, NULL, 3 * SECONDS), 0);
    assert_int_equal(in_child(destroy_under_a_save_of_some, NULL, 3 * SECONDS), 0);
    assert_int_equal(in_child(destroy_under_a_restore, NULL, 3 * SECONDS), 0);
}

enum { COMING = 100 };

struct coming {
    ditto_strategy *strategy;
    _Atomic bool done;
    _Atomic int saves;
    struct report report;
};

static ditto_status save_and_restore(struct coming *c)
{
    ditto_restore_options partial = DITTO_RESTORE_OPTIONS_INIT;
    partial.partial = 1; /* a variable may have been created since the save */
    EXPECT(&c->report, ditto_checkpoint_save(c->strategy, own_path("coming.h5"), NULL) == DITTO_OK);
    EXPECT(&c->report,
           ditto_checkpoint_restore(c->strategy, own_path("coming.h5"), &partial, NULL) == DITTO_OK);
    EXPECT(&c->report, ditto_strategy_drop_held_values(c->strategy) == DITTO_OK);
    atomic_fetch_add(&c->saves, 1);
    return DITTO_OK;
}

static void *save_until_done(void *argument)
{
    struct coming *c = argument;
    while (!atomic_load(&c->done) && save_and_restore(c) == DITTO_OK)
        ;
    return NULL;
}

/* Destroys a variable or an optimizer when the other thread is between two calls. That thread is in a call
 * most of the time. */
static ditto_status destroy_when_free(ditto_variable *v, ditto_optimizer *o)
{
    for (;;) {
        ditto_status status = v != NULL ? ditto_variable_destroy(v) : ditto_optimizer_destroy(o);
        if (status != DITTO_ERR_BUSY)
            return status;
        sched_yield();
    }
}

static int come_and_go(ditto_strategy *strategy)
{
    ditto_variable *v[COMING];
    ditto_optimizer *adam;
    ditto_optimizer_options rule = DITTO_OPTIMIZER_OPTIONS_INIT;
    ditto_variable_options named = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { 16 } };
    char name[20];
    rule.rule = DITTO_RULE_ADAM;
    named.name = name;
    for (int i = 0; i < COMING; i++) {
        snprintf(name, sizeof name, "v%d", i);
        REQUIRE(ditto_variable_create(strategy, &zeros, &named, &v[i]) == DITTO_OK);
    }
    REQUIRE(ditto_optimizer_create(v, COMING, &rule, &adam) == DITTO_OK);
    REQUIRE(destroy_when_free(NULL, adam) == DITTO_OK);
    for (int i = 0; i < COMING; i++)
        REQUIRE(destroy_when_free(v[i], NULL) == DITTO_OK);
    return 0;
}

static int come_and_go_under_saves(void *unused)
{
    struct coming c = { .done = false };
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_tensor zeros = { .dtype = DITTO_F32 };
    ditto_variable *stays;
    pthread_t thread;
    size_t left;
    (void)unused;
    options.num_replicas = 1;
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &options, &c.strategy) == DITTO_OK);
    REQUIRE(ditto_variable_create(c.strategy, &zeros, NULL, &stays) == DITTO_OK);
    REQUIRE(pthread_create(&thread, NULL, save_until_done, &c) == 0);
    while (!c.report.claimed && atomic_load(&c.saves) < test_trials(50))
        REQUIRE(come_and_go(c.strategy) == 0);
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
    (void)state;
    if (SANITIZED)
        assert_int_equal(come_and_go_under_saves(NULL), 0);
    else
        assert_int_equal(in_child(come_and_go_under_saves, NULL, 3 * SECONDS), 0);
}

/* -- two saves -- */

static int save_during_a_save(void *unused)
{
    struct saved s;
    struct call second = { &s, 2, DITTO_ERR_USER };
    pthread_t thread;
    (void)unused;
    REQUIRE(begin(&s, "second") == DITTO_OK);
    atomic_store(&closed, true);
    REQUIRE(save(&s, 1) == DITTO_OK);
    REQUIRE(pthread_create(&thread, NULL, call_in_a_thread, &second) == 0);
    REQUIRE(await(&joining, 1));
    REQUIRE(atomic_load(&at_gate) <= 1); /* only one file is written at a time */
    atomic_store(&closed, false);
    REQUIRE(pthread_join(thread, NULL) == 0);
    REQUIRE(second.status == DITTO_OK);
    REQUIRE(ditto_checkpointer_destroy(s.c) == DITTO_OK);
    REQUIRE(is_whole("second-1.h5") && is_whole("second-2.h5"));
    return 0;
}

static void a_second_save_waits_for_the_first(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(save_during_a_save, NULL, 3 * SECONDS), 0);
}

static const uint32_t counts[] = { 1, 2, 3, 8 }; /* numbers of replicas */
enum { COUNTS = sizeof counts / sizeof counts[0] };

/* -- functions of datasets -- */

enum kind { MAP, FILTER, GENERATOR, KINDS };

/* The calls that a function of a dataset makes, with their results. Meanwhile the save of another thread
 * waits for the turn. A run has the turn, and waits for the rows of the function. */
struct inside {
    struct saved saved;
    _Atomic int saver_id, may_save, may_call, calls;
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
    if (atomic_fetch_add(&i->calls, 1) != 0)
        return DITTO_OK;
    i->create = ditto_checkpointer_create(i->saved.strategy, own_path("never"), &options, &other);
    keep_message(i->message[0]);
    i->save = save(&i->saved, 2);
    keep_message(i->message[1]);
    i->wait = ditto_checkpointer_wait(i->saved.c);
    keep_message(i->message[2]);
    i->destroy = ditto_checkpointer_destroy(i->saved.c);
    keep_message(i->message[3]);
    i->once = ditto_checkpoint_save(i->saved.strategy, own_path("never.h5"), NULL);
    return DITTO_OK;
}

static ditto_status map_inside(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                               void *user)
{
    (void)random;
    memcpy(out->data, in->data, sizeof(int64_t));
    return call_inside(user);
}

static ditto_status filter_inside(const ditto_tensor *row, void *user, int *keep)
{
    (void)row;
    *keep = 1;
    return call_inside(user);
}

static ditto_status generate_inside(void *user, void *position, const ditto_tensor *row)
{
    (void)position;
    *(int64_t *)row->data = 1;
    return call_inside(user);
}

static ditto_status make_calling(enum kind kind, struct inside *i, ditto_dataset **out)
{
    ditto_generator generator = DITTO_GENERATOR_INIT;
    ditto_tensor row = { .dtype = DITTO_I64 };
    ditto_dataset *rows;
    generator.user = i;
    generator.next = generate_inside;
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
    while (!atomic_load(&i->may_save)) /* does not sleep, so that it sleeps only in the call */
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
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_input_options input = DITTO_INPUT_OPTIONS_INIT;
    struct inside i = { .calls = 0 };
    struct taking t = { .inside = &i };
    ditto_dataset *calling;
    pthread_t thread;
    options.num_replicas = c->replicas;
    input.global_batch = c->replicas;
    REQUIRE(begin_with(&i.saved, "inside", &options) == DITTO_OK);
    REQUIRE(make_calling(c->kind, &i, &calling) == DITTO_OK);
    REQUIRE(ditto_strategy_iterate(i.saved.strategy, calling, &input, &t.iterator) == DITTO_OK);
    REQUIRE(pthread_create(&thread, NULL, save_beside_the_run, &i) == 0);
    REQUIRE(ditto_strategy_run(i.saved.strategy, take_one, &t) == DITTO_OK);
    pthread_join(thread, NULL);
    REQUIRE(i.saver == DITTO_OK && ditto_checkpointer_wait(i.saved.c) == DITTO_OK && is_whole("inside-1.h5"));
    REQUIRE(atomic_load(&i.calls) > 0);
    REQUIRE(i.create == DITTO_ERR_CONTEXT && i.save == DITTO_ERR_CONTEXT && i.wait == DITTO_ERR_CONTEXT);
    REQUIRE(i.destroy == DITTO_ERR_CONTEXT && i.once == DITTO_ERR_CONTEXT);
    for (int k = 0; k < 4; k++)
        REQUIRE(strstr(i.message[k], "a call of the checkpointer in a function of a dataset") != NULL);
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
    (void)state;
    for (enum kind kind = MAP; kind < KINDS; kind++)
        for (size_t i = 0; i < COUNTS; i++) {
            struct calling c = { kind, counts[i] };
            /* The result is 124 if the child hangs. */
            assert_int_equal(in_child(call_in_a_function_of_a_dataset, &c, SECONDS), 0);
        }
}

/* -- a replica that never returned in time -- */

enum order { STRATEGY_FIRST, CHECKPOINTER_FIRST, STRATEGY_ALONE, ORDERS };

struct late {
    struct saved saved;
    _Atomic int has_begun, may_go_on, has_ended;
    ditto_status save, wait;
};

/* What save_of_a_late_replica returns if the run's limit passed before the function was reached that is
 * late. */
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
    (void)strategy, (void)arguments, (void)count, (void)result;
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
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_status expected = c->order != STRATEGY_ALONE ? DITTO_ERR_BUSY /* the checkpointer was destroyed */
                            : c->merges                ? DITTO_ERR_POISONED
                                                       : DITTO_ERR_CONTEXT;
    options.num_replicas = c->replicas;
    options.caller = DITTO_CALLER_WAITS;
    options.run_timeout_ms = c->run_timeout_ms;
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

/* On a busy machine a short limit passes before the replicas have met. Then a longer one is tried. */
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
    (void)state;
    for (enum order order = STRATEGY_FIRST; order < ORDERS; order++)
        for (int merges = 0; merges < 2; merges++)
            for (size_t i = 0; i < COUNTS; i++)
                assert_int_equal(run_late_case((struct late_case){ counts[i], merges != 0, order, 0 }), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_of_a_process_that_saves_gets_FORKED_and_does_not_wait),
        cmocka_unit_test(destroy_is_busy_while_another_thread_is_in_a_call),
        cmocka_unit_test(threads_that_share_a_checkpointer_take_turns),
        cmocka_unit_test(a_strategy_may_be_destroyed_while_its_checkpoint_is_written),
        cmocka_unit_test(a_strategy_is_not_destroyed_during_a_save_of_another_thread),
        cmocka_unit_test(variables_and_slots_are_not_destroyed_during_a_save_or_restore_of_another_thread),
        cmocka_unit_test(variables_are_created_and_destroyed_while_another_thread_saves_and_restores),
        cmocka_unit_test(a_second_save_waits_for_the_first),
        cmocka_unit_test(a_function_of_a_dataset_makes_no_call_of_a_checkpointer),
        cmocka_unit_test(a_checkpointer_of_a_poisoned_strategy_stays_for_the_replica_that_is_late),
    };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
