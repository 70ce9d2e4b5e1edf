/* tests/vars/checkpoint/test_failing_calls.c - saves and restores during which one call fails. Every call of
 * every kind is made to fail in turn. The error must name the function of the library and have the errno, and
 * must not report a corrupt file. The file must be the checkpoint that existed before, or the new one. The
 * next attempt must succeed. */
#include "vars/checkpoint/checkpoint_support.h"
#include "support/support.h"
#include "vars/registry/registry.h"

#include <ditto/checkpoint.h>

#include <signal.h>

#define MOST_CALLS  5000
#define NOT_SO_MANY 100 /* exit status of a child without a k-th call */
enum { VARIABLES = 6, ELEMENTS = 8, BYTES = 16 * ELEMENTS };

static const ditto_dtype dtypes[VARIABLES] = { DITTO_C64, DITTO_BOOL, DITTO_F16,
                                               DITTO_I64, DITTO_BF16, DITTO_C128 };

struct model {
    ditto_strategy *strategy;
    ditto_variable *variable[VARIABLES];
    uint16_t own[3]; /* the program's own data */
};

static void fill(unsigned char out[BYTES], int variable, int seed)
{
    for (int i = 0; i < BYTES; i++)
        out[i] = (unsigned char)(dtypes[variable] == DITTO_BOOL ? (i + seed) % 2
                                                                : 7 * i + 3 * seed + variable);
}

static ditto_status begin(struct model *m)
{
    DITTO_TRY(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 1), &m->strategy));
    for (int i = 0; i < VARIABLES; i++) {
        char name[20];
        ditto_tensor zeros = { .dtype = dtypes[i], .rank = 1, .shape = { ELEMENTS } };
        snprintf(name, sizeof name, i % 2 ? "v%d" : "group/v%d", i);
        DITTO_TRY(
            ditto_variable_create(m->strategy, &zeros, &OPTIONS(variable, .name = name), &m->variable[i]));
    }
    return DITTO_OK;
}

static ditto_status assign(struct model *m, int seed)
{
    unsigned char bytes[BYTES];
    for (int i = 0; i < VARIABLES; i++) {
        fill(bytes, i, seed);
        DITTO_TRY(ditto_variable_assign(m->variable[i], DITTO_ASSIGN, bytes,
                                        ELEMENTS * ditto_dtype_bytes(dtypes[i])));
    }
    return DITTO_OK;
}

static bool has(struct model *m, int seed)
{
    unsigned char bytes[BYTES], found[BYTES];
    bool same = true;
    for (int i = 0; same && i < VARIABLES; i++) {
        size_t count = ELEMENTS * ditto_dtype_bytes(dtypes[i]);
        fill(bytes, i, seed);
        same = ditto_variable_read(m->variable[i], found, count) == DITTO_OK &&
               memcmp(bytes, found, count) == 0;
    }
    return same;
}

static ditto_status save(struct model *m)
{
    ditto_attribute attribute = { .name = "note", .kind = DITTO_ATTRIBUTE_TEXT, .text = "text" };
    ditto_checkpoint_data data = {
        .name = "group/own", .tensor = { .data = m->own, .dtype = DITTO_U16, .rank = 1, .shape = { 3 } }
    };
    ditto_checkpoint_options options = OPTIONS(checkpoint, .attributes = &attribute, .num_attributes = 1,
                                               .data = &data, .num_data = 1);
    return ditto_checkpoint_save(m->strategy, own_path("kept.h5"), &options);
}

static ditto_status restore(struct model *m)
{
    return ditto_checkpoint_restore(m->strategy, own_path("kept.h5"), NULL, NULL);
}

/* Checks that an error names the function and has an errno, and that its status is not that of a corrupt
 * file. */
static int check_error(ditto_status status, enum calls kind, const char *function)
{
    const ditto_error *error = ditto_last_error();
    REQUIRE(status == DITTO_ERR_IO || status == DITTO_ERR_NO_MEMORY);
    REQUIRE((status == DITTO_ERR_NO_MEMORY) == (kind == CALLS_OF_MALLOC || kind == CALLS_OF_MMAP));
    REQUIRE(error->status == status);
    REQUIRE(strcmp(error->function, function) == 0);
    REQUIRE(error->system_errno != 0 || kind == CALLS_OF_LOST_WRITE); /* a lost write sets no errno */
    REQUIRE(error->message[0] != '\0');
    return 0;
}

struct
try {
    enum calls kind;
    long k;
    bool saves;
};

static int try_restore(const struct try *t, struct model *m)
{
    REQUIRE(restore(m) == DITTO_OK); /* allocates everything that is allocated only once */
    REQUIRE(assign(m, 2) == DITTO_OK);
    fail_call(t->kind, t->k);
    ditto_status status = restore(m);
    bool failed = end_failing();
    if (status != DITTO_OK && check_error(status, t->kind, "ditto_checkpoint_restore") != 0)
        return 1;
    REQUIRE(has(m, status == DITTO_OK ? 1 : 2));
    REQUIRE(restore(m) == DITTO_OK);
    REQUIRE(has(m, 1));
    return failed ? 0 : NOT_SO_MANY;
}

static int try_save(const struct try *t, struct model *m)
{
    REQUIRE(save(m) == DITTO_OK);
    REQUIRE(assign(m, 2) == DITTO_OK);
    fail_call(t->kind, t->k);
    ditto_status status = save(m);
    bool failed = end_failing();
    if (status != DITTO_OK && check_error(status, t->kind, "ditto_checkpoint_save") != 0)
        return 1;
    /* Such calls are also made after the renaming. The file is closed, and the folder is flushed, which
     * opens it and allocates its path. */
    bool published = status == DITTO_OK || t->kind == CALLS_OF_FLUSH || t->kind == CALLS_OF_CLOSE ||
                     t->kind == CALLS_OF_OPEN || t->kind == CALLS_OF_MALLOC;
    REQUIRE(assign(m, 3) == DITTO_OK);
    REQUIRE(restore(m) == DITTO_OK);
    REQUIRE((status != DITTO_OK && has(m, 1)) || (published && has(m, 2)));
    REQUIRE(assign(m, 4) == DITTO_OK);
    REQUIRE(save(m) == DITTO_OK);
    REQUIRE(count_files(own_folder) == 1);
    REQUIRE(assign(m, 3) == DITTO_OK);
    REQUIRE(restore(m) == DITTO_OK);
    REQUIRE(has(m, 4));
    return failed ? 0 : NOT_SO_MANY;
}

/* Runs in a child process, so that a crash, an exit or a hang is detected. */
static int try_once(void *argument)
{
    const struct try *t = argument;
    struct model m = { .own = { 1, 2, 3 } };
    signal(SIGSEGV, SIG_DFL); /* a crash must end the child; cmocka's handler would continue in it */
    signal(SIGABRT, SIG_DFL);
    REQUIRE(begin(&m) == DITTO_OK);
    REQUIRE(assign(&m, 1) == DITTO_OK);
    if (!t->saves)
        REQUIRE(save(&m) == DITTO_OK);
    return t->saves ? try_save(t, &m) : try_restore(t, &m);
}

static void try_all(bool saves)
{
    for (int kind = 0; kind < KINDS_OF_CALLS; kind++) {
        long k = 1, bad = 0, first = 0;
        for (; k < MOST_CALLS; k++) {
            struct try t = { (enum calls)kind, k, saves };
            int code = in_child(try_once, &t, 60);
            if (code == NOT_SO_MANY)
                break;
            bad += code != 0;
            if (code != 0 && first == 0)
                first = k;
        }
        printf("  %s: %ld calls of %s, each failed once\n", saves ? "save" : "restore", k - 1,
               calls_names[kind]);
        if (bad != 0)
            fail_msg("%ld of them went wrong, the first was number %ld", bad, first);
        assert_true(k < MOST_CALLS); /* otherwise some calls were not tried */
    }
}

static void a_call_that_fails_once_during_a_restore_is_an_error_of_its_own_and_the_next_restore_works(
    void **state)
{
    if (SANITIZED)
        skip();
    try_all(false);
}

static void a_call_that_fails_once_during_a_save_leaves_a_whole_checkpoint_and_the_next_save_works(
    void **state)
{
    if (SANITIZED)
        skip();
    try_all(true);
}

/* -- values that wait for their variables -- */

enum { HELD = 3, MOST_NAMES = 100 };
static const char *const held_names[HELD] = { "a", "b/c", "d" };

static ditto_status create_held(ditto_strategy *strategy, ditto_variable *v[HELD])
{
    ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { ELEMENTS } };
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    for (int i = 0; i < HELD; i++) {
        options.name = held_names[i];
        DITTO_TRY(ditto_variable_create(strategy, &zeros, &options, &v[i]));
    }
    return DITTO_OK;
}

/* Returns true if all elements of all variables have this number. */
static bool have(ditto_variable *const v[HELD], float number)
{
    float found[ELEMENTS];
    for (int i = 0; i < HELD; i++) {
        if (ditto_variable_read(v[i], found, sizeof found) != DITTO_OK)
            return false;
        for (int k = 0; k < ELEMENTS; k++)
            if (found[k] != number)
                return false;
    }
    return true;
}

/* Saves the variables, all of whose elements are 7. */
static ditto_status save_held(const ditto_strategy_options *options)
{
    float sevens[ELEMENTS];
    ditto_strategy *strategy;
    ditto_variable *v[HELD];
    for (int k = 0; k < ELEMENTS; k++)
        sevens[k] = 7;
    DITTO_TRY(ditto_strategy_create(DITTO_MIRRORED, options, &strategy));
    DITTO_TRY(create_held(strategy, v));
    for (int i = 0; i < HELD; i++)
        DITTO_TRY(ditto_variable_assign(v[i], DITTO_ASSIGN, sevens, sizeof sevens));
    DITTO_TRY(ditto_checkpoint_save(strategy, own_path("kept.h5"), NULL));
    for (int i = 0; i < HELD; i++)
        DITTO_TRY(ditto_variable_destroy(v[i]));
    return ditto_strategy_destroy(strategy);
}

/* Holds values of the same names, all of whose elements are 5, and one of another name. Their order is not
 * that of the file. */
static ditto_status hold_others(ditto_strategy *strategy)
{
    float fives[ELEMENTS];
    struct dti_named_value value[HELD + 1];
    for (int k = 0; k < ELEMENTS; k++)
        fives[k] = 5;
    for (int i = 0; i <= HELD; i++)
        value[i] = (struct dti_named_value){
            .name = i < HELD ? held_names[HELD - 1 - i] : "other",
            .value = { .data = fives, .dtype = DITTO_F32, .rank = 1, .shape = { ELEMENTS } },
        };
    return dti_restore_values(strategy, value, HELD + 1);
}

struct hold {
    long k;
    bool others; /* earlier values of the same names are held */
};

static int hold_once(void *argument)
{
    const struct hold *h = argument;
    ditto_strategy *strategy;
    ditto_variable *v[HELD];
    char before[MOST_NAMES], after[MOST_NAMES];
    size_t held;
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = 1);
    signal(SIGSEGV, SIG_DFL);
    signal(SIGABRT, SIG_DFL);
    REQUIRE(save_held(&options) == DITTO_OK);
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy) == DITTO_OK);
    REQUIRE(!h->others || hold_others(strategy) == DITTO_OK);
    REQUIRE(ditto_strategy_held_values(strategy, before, sizeof before, NULL, NULL) == DITTO_OK);
    fail_call(CALLS_OF_MALLOC, h->k);
    ditto_status status = ditto_checkpoint_restore(strategy, own_path("kept.h5"), NULL, NULL);
    bool failed = end_failing();
    if (status != DITTO_OK && check_error(status, CALLS_OF_MALLOC, "ditto_checkpoint_restore") != 0)
        return 1;
    REQUIRE(ditto_strategy_held_values(strategy, after, sizeof after, NULL, &held) == DITTO_OK);
    REQUIRE(status == DITTO_OK ? held == (h->others ? HELD + 1 : HELD) : strcmp(before, after) == 0);
    REQUIRE(create_held(strategy, v) == DITTO_OK);
    REQUIRE(have(v, status == DITTO_OK ? 7 : h->others ? 5 : 0));
    REQUIRE(ditto_checkpoint_restore(strategy, own_path("kept.h5"), NULL, NULL) == DITTO_OK);
    REQUIRE(have(v, 7));
    for (int i = 0; i < HELD; i++)
        REQUIRE(ditto_variable_destroy(v[i]) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    return failed ? 0 : NOT_SO_MANY;
}

static void a_restore_without_memory_leaves_the_held_values_as_they_were(void **state)
{
    if (SANITIZED)
        skip();
    for (int others = 0; others < 2; others++) {
        int code = 0;
        for (long k = 1; code == 0; k++) {
            struct hold h = { k, others != 0 };
            assert_true(k < MOST_CALLS);
            code = in_child(hold_once, &h, 60);
        }
        assert_int_equal(code, NOT_SO_MANY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_call_that_fails_once_during_a_restore_is_an_error_of_its_own_and_the_next_restore_works),
        cmocka_unit_test(
            a_call_that_fails_once_during_a_save_leaves_a_whole_checkpoint_and_the_next_save_works),
        cmocka_unit_test(a_restore_without_memory_leaves_the_held_values_as_they_were),
    };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
