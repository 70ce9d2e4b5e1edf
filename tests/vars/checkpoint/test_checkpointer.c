/* tests/vars/checkpoint/test_checkpointer.c - a save in the background, held at its fsync, meets what else
 * may be called. The program defines fsync and pthread_join itself, so that it knows where the threads
 * are. */
#include "support.h"

#include <ditto/checkpoint.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ELEMENTS = 1000, SECONDS = 20 };

static _Atomic bool closed; /* the gate */
static _Atomic int at_gate; /* threads that wait before their fsync */
static _Atomic int joining; /* threads that wait for another one's end */

#if !SANITIZED
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

static ditto_status begin(struct saved *s, const char *prefix)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_variable_options named = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_checkpointer_options behind = DITTO_CHECKPOINTER_OPTIONS_INIT;
    ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { ELEMENTS } };
    options.replicas = 2;
    named.name = "v";
    behind.background = 1;
    behind.prefix = prefix;
    behind.keep = UINT32_MAX;
    DITTO_TRY(ditto_strategy_create(DITTO_MIRRORED, &options, &s->strategy));
    DITTO_TRY(ditto_variable_create(s->strategy, &zeros, &named, &s->v));
    return ditto_checkpointer_create(s->strategy, own_folder, &behind, &s->c);
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
    ditto_checkpoint_close(file);
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

static void a_child_of_a_process_that_saves_is_told_so_and_waits_for_nobody(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(fork_during_a_save, NULL, 3 * SECONDS), 0);
}

/* -- threads -- */

struct call {
    struct saved *saved;
    int64_t step; /* -1: waits */
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
    REQUIRE(await(&joining, 1)); /* it is in its call */
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
    if (SANITIZED) /* it needs no gate, and races are looked for here */
        assert_int_equal(share_a_checkpointer(NULL), 0);
    else
        assert_int_equal(in_child(share_a_checkpointer, NULL, 3 * SECONDS), 0);
}

/* -- the strategy goes, and another save comes -- */

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

static void a_strategy_may_go_while_its_checkpoint_is_written(void **state)
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

static void a_strategy_does_not_go_under_a_save_of_another_thread(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(destroy_the_strategy_under_a_save, NULL, 3 * SECONDS), 0);
}

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
    REQUIRE(atomic_load(&at_gate) <= 1); /* one is written at a time */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_of_a_process_that_saves_is_told_so_and_waits_for_nobody),
        cmocka_unit_test(destroy_is_busy_while_another_thread_is_in_a_call),
        cmocka_unit_test(threads_that_share_a_checkpointer_take_turns),
        cmocka_unit_test(a_strategy_may_go_while_its_checkpoint_is_written),
        cmocka_unit_test(a_strategy_does_not_go_under_a_save_of_another_thread),
        cmocka_unit_test(a_second_save_waits_for_the_first),
    };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
