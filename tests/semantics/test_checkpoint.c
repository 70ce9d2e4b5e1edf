/* tests/semantics/test_checkpoint.c - docs/semantics.md, "Checkpoints": rule 8.14. */
#include "support/as_hosts.h"
#include "support/checkpoints.h"
#include "support/support.h"

#include <ditto/checkpoint.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* Variables that differ in dtype, shape, synchronization and aggregation. One of them is in shards, and one
 * has no elements. */
#define KINDS 8
static const struct kind {
    const char *name;
    ditto_dtype dtype;
    uint32_t rank;
    size_t shape[2];
    ditto_synchronization synchronization;
    ditto_aggregation aggregation;
    size_t shards;
} kinds[KINDS] = {
    { "weights", DITTO_F32, 2, { 300, 7 }, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE, 0 },
    { "layer/bias", DITTO_F64, 1, { 17 }, DITTO_ON_WRITE, DITTO_AGGREGATE_MEAN, 0 },
    { "layer/table", DITTO_F32, 2, { 1000, 3 }, DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, 4 },
    { "seen", DITTO_I64, 0, { 0 }, DITTO_ON_READ, DITTO_AGGREGATE_SUM, 0 },
    { "mean", DITTO_F64, 1, { 5 }, DITTO_ON_READ, DITTO_AGGREGATE_MEAN, 0 },
    { "first", DITTO_F32, 1, { 6 }, DITTO_ON_READ, DITTO_AGGREGATE_ONLY_FIRST_REPLICA, 0 },
    { "flags", DITTO_BOOL, 1, { 9 }, DITTO_ON_WRITE, DITTO_AGGREGATE_ONLY_FIRST_REPLICA, 0 },
    { "nothing", DITTO_C64, 2, { 0, 4 }, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE, 0 },
};

static ditto_variable *make(ditto_strategy *s, const struct kind *k)
{
    ditto_tensor initial = { .dtype = k->dtype, .rank = k->rank };
    ditto_variable *v;
    memcpy(initial.shape, k->shape, k->rank * sizeof *k->shape);
    ditto_variable_options options = OPTIONS(
        variable, .name = k->name, .synchronization = k->synchronization, .aggregation = k->aggregation,
        .partitioner = (ditto_partitioner){ .kind = k->shards != 0 ? DITTO_PARTITION_FIXED
                                                                   : DITTO_PARTITION_DEFAULT,
                                            .num_shards = k->shards });
    assert_ok(ditto_variable_create(s, &initial, &options, &v));
    return v;
}

/* Fills an array with multiples of 12 below 100, or with 0 and 1 for DITTO_BOOL. The only variable of another
 * dtype has no elements. A restored MEAN has equal components. Their sum is a whole number that the dtype can
 * hold, so dividing it by their number is exact, and reading the variable gives the saved value. */
static void fill(const struct kind *k, size_t count, int seed, void *out)
{
    for (size_t i = 0; i < count; i++) {
        int x = ((int)(i * 5) + seed) % 8 * 12;
        switch (k->dtype) {
        case DITTO_F32:
            ((float *)out)[i] = (float)x;
            break;
        case DITTO_F64:
            ((double *)out)[i] = x;
            break;
        case DITTO_I64:
            ((int64_t *)out)[i] = x;
            break;
        default:
            ((unsigned char *)out)[i] = x % 24 != 0;
        }
    }
}

static void check(ditto_variable *v, const struct kind *k, int seed)
{
    static char found[32000], expected[32000];
    ditto_tensor spec = spec_of(v);
    size_t bytes = ditto_tensor_bytes(&spec);
    assert_ok(ditto_variable_read(v, found, bytes));
    fill(k, elements_in(&spec), seed, expected);
    assert_memory_equal(found, expected, bytes);
}

static void make_all(ditto_strategy *s, ditto_variable *v[KINDS])
{
    for (int i = 0; i < KINDS; i++)
        v[i] = make(s, &kinds[i]);
}

static void assign_all(ditto_variable *v[KINDS], int seed)
{
    static char value[32000];
    for (int i = 0; i < KINDS; i++) {
        ditto_tensor spec = spec_of(v[i]);
        fill(&kinds[i], elements_in(&spec), seed, value);
        assert_ok(ditto_variable_assign(v[i], DITTO_ASSIGN, value, ditto_tensor_bytes(&spec)));
    }
}

static void destroy_all(ditto_strategy *s, ditto_variable *v[KINDS])
{
    for (int i = 0; i < KINDS; i++)
        assert_ok(ditto_variable_destroy(v[i]));
    assert_ok(ditto_strategy_destroy(s));
}

/* Each host has a folder of its own. Returns false if it has no files of a strategy over several hosts,
 * because only the first host writes them. */
static bool is_first(const ditto_strategy *s)
{
    return first_local(s) == 0;
}

static void rule_8_14_a_checkpoint_is_restored_with_any_number_of_replicas(void **state)
{
    for (size_t a = 0; a < replica_counts_length; a++)
        for (size_t b = 0; b < replica_counts_length; b++) {
            ditto_variable *v[KINDS];
            ditto_restore_status found;
            ditto_strategy *s = make_strategy(replica_counts[a], NULL);
            make_all(s, v);
            assign_all(v, 3);
            assert_ok(ditto_checkpoint_save(s, own_path("any.h5"), NULL));
            bool saved = is_first(s);
            destroy_all(s, v);
            if (!saved && replica_counts[b] < test_hosts())
                continue; /* this host would be alone, without the file */
            s = make_strategy(replica_counts[b], NULL);
            make_all(s, v);
            assert_ok(ditto_checkpoint_restore(s, own_path("any.h5"), NULL, &found));
            assert_int_equal(found.num_restored, KINDS);
            assert_int_equal(found.num_held + found.num_missing, 0);
            for (int i = 0; i < KINDS; i++)
                check(v[i], &kinds[i], 3);
            destroy_all(s, v);
        }
}

/* Checks what the test below has saved, and closes the file. */
static void check_entries(ditto_checkpoint *file)
{
    static float value[2100];
    ditto_checkpoint_entry entry;
    ditto_attribute a;
    assert_int_equal(contents_of(file).step, 41);
    assert_string_equal(contents_of(file).version, ditto_version());
    assert_int_equal(contents_of(file).num_entries, KINDS);
    for (int i = 0; i < KINDS; i++) {
        size_t e = 0;
        do
            assert_ok(ditto_checkpoint_get(file, e++, &entry));
        while (strcmp(entry.name, kinds[i].name) != 0);
        assert_int_equal(entry.spec.dtype, kinds[i].dtype);
        assert_int_equal(entry.spec.rank, kinds[i].rank);
        assert_memory_equal(entry.spec.shape, kinds[i].shape, kinds[i].rank * sizeof(size_t));
        assert_int_equal(entry.synchronization, kinds[i].synchronization);
        assert_int_equal(entry.aggregation, kinds[i].aggregation);
        assert_int_equal(entry.trainable, kinds[i].synchronization == DITTO_ON_WRITE);
    }
    assert_status(ditto_checkpoint_get(file, KINDS, &entry), DITTO_ERR_RANGE);
    a = attribute_of(file, "run");
    assert_string_equal(a.text, "first");
    a = attribute_of(file, "seed");
    assert_int_equal(a.integer, -7);
    a = attribute_of(file, "rate");
    assert_true(a.kind == DITTO_ATTRIBUTE_REAL && a.real == 0.1);
    assert_int_equal(contents_of(file).num_attributes, 3);
    assert_ok(ditto_checkpoint_read(file, "weights", value, sizeof value));
    assert_true(value[1] == 72); /* (5 + 1) % 8 * 12 */
    assert_status(ditto_checkpoint_read(file, "weights", value, 4), DITTO_ERR_SHAPE);
    assert_status(ditto_checkpoint_read(file, "weight", value, sizeof value), DITTO_ERR_NOT_FOUND);
    assert_ok(ditto_checkpoint_close(file));
}

static void rule_8_14_a_checkpoint_has_one_entry_per_variable_that_describes_it(void **state)
{
    ditto_variable *v[KINDS];
    ditto_checkpoint *file;
    const ditto_attribute attributes[] = { { "run", DITTO_ATTRIBUTE_TEXT, "first", 0, 0 },
                                           { "seed", DITTO_ATTRIBUTE_INTEGER, NULL, -7, 0 },
                                           { "rate", DITTO_ATTRIBUTE_REAL, NULL, 0, 0.1 } };
    ditto_strategy *s = make_strategy(3, NULL);
    make_all(s, v);
    assign_all(v, 1);
    assert_ok(ditto_checkpoint_save(
        s, own_path("entries.h5"),
        &OPTIONS(checkpoint, .step = 41, .attributes = attributes, .num_attributes = 3)));
    if (is_first(s)) {
        assert_ok(ditto_checkpoint_open(NULL, own_path("entries.h5"), &file));
        check_entries(file);
    }
    assert_ok(ditto_checkpoint_open(s, own_path("entries.h5"), &file));
    check_entries(file);
    destroy_all(s, v);
}

static ditto_status assign_own_id(ditto_replica *self, void *argument)
{
    double mine = (double)ditto_replica_id(self);
    return ditto_assign(self, argument, DITTO_ASSIGN, &mine);
}

static void rule_8_14_sync_on_read_saves_the_result_of_a_cross_read_and_restores_by_rule_8_11(void **state)
{
    static const struct kind sum = { "sum", DITTO_F64, 0, { 0 }, DITTO_ON_READ, DITTO_AGGREGATE_SUM, 0 };
    static const struct kind mirrored = {
        "sum", DITTO_F64, 0, { 0 }, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE, 0
    };
    double value;
    const void *component;
    ditto_strategy *s = make_strategy(4, NULL);
    ditto_variable *v = make(s, &sum);
    assert_ok(ditto_strategy_run(s, assign_own_id, v)); /* 0 + 1 + 2 + 3 */
    assert_ok(ditto_checkpoint_save(s, own_path("sum.h5"), NULL));
    assert_ok(ditto_variable_destroy(v));
    v = make(s, &mirrored); /* restores into a mirrored variable, and then back into a sync-on-read one */
    assert_ok(ditto_checkpoint_restore(s, own_path("sum.h5"), NULL, NULL));
    assert_ok(ditto_variable_read(v, &value, sizeof value));
    assert_true(value == 6);
    assert_ok(ditto_checkpoint_save(s, own_path("sum.h5"), NULL));
    assert_ok(ditto_variable_destroy(v));
    v = make(s, &sum);
    assert_ok(ditto_checkpoint_restore(s, own_path("sum.h5"), NULL, NULL));
    for (uint32_t i = first_local(s); i < end_local(s); i++) {
        assert_ok(component_of(v, i, &component));
        assert_true(*(const double *)component == 1.5);
    }
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(s));
}

static ditto_status set_own(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                            void *user, ditto_tensor *result)
{
    *(double *)copy->data = *(const double *)arguments[0].data;
    return DITTO_OK;
}

static ditto_status split_by_update(ditto_replica *self, void *variable)
{
    double mine = ditto_replica_id(self) + 1.0;
    return ditto_update(self, variable, set_own, NULL, &(ditto_tensor){ .data = &mine, .dtype = DITTO_F64 },
                        1, NULL);
}

/* Sets the component of replica i to i + 1. Over several hosts this is one update outside of a run, because
 * ditto_update is not supported there. */
static void split(ditto_strategy *s, ditto_variable *v)
{
    double mine[3];
    ditto_tensor tensor[3];
    ditto_value *each;
    if (test_hosts() == 1) {
        assert_ok(ditto_strategy_run(s, split_by_update, v));
        return;
    }
    for (uint32_t i = 0; i < num_local(s); i++) {
        mine[i] = first_local(s) + i + 1.0;
        tensor[i] = (ditto_tensor){ .data = &mine[i], .dtype = DITTO_F64 };
    }
    assert_ok(ditto_strategy_value_from_tensors(s, tensor, 1, &each));
    assert_ok(ditto_variable_update(v, set_own, NULL, (const ditto_value *[]){ each }, 1, NULL, NULL));
    assert_ok(ditto_value_destroy(each));
}

static void rule_8_14_a_split_variable_saves_its_first_component_and_is_restored_to_all(void **state)
{
    static const struct kind weight = { "w", DITTO_F64, 0, { 0 }, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE, 0 };
    const void *component[3];
    double value;
    /* Both span all hosts, which then restore the file of the first host. */
    ditto_strategy *s = make_strategy(3, NULL),
                   *other = make_strategy(test_hosts() > 2 ? test_hosts() : 2, NULL);
    ditto_variable *v = make(s, &weight), *w;
    split(s, v);
    assert_ok(ditto_checkpoint_save(s, own_path("split.h5"), NULL));
    for (int round = 0; round < 2; round++) { /* in the second round the components differ again */
        assert_ok(ditto_checkpoint_restore(s, own_path("split.h5"), NULL, NULL));
        for (uint32_t i = first_local(s); i < end_local(s); i++) {
            assert_ok(component_of(v, i, &component[i]));
            assert_true(*(const double *)component[i] == 1);
            assert_true(i == first_local(s) || component[i] != component[i - 1]);
        }
        split(s, v);
        for (uint32_t i = first_local(s); i < end_local(s); i++)
            assert_true(*(const double *)component[i] == i + 1);
    }
    w = make(other, &weight); /* its copies may be shared */
    assert_ok(ditto_checkpoint_restore(other, own_path("split.h5"), NULL, NULL));
    assert_ok(ditto_variable_read(w, &value, sizeof value));
    assert_true(value == 1);
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_variable_destroy(w));
    assert_ok(ditto_strategy_destroy(s));
    assert_ok(ditto_strategy_destroy(other));
}

static void rule_8_14_a_variable_without_its_own_name_or_value_is_refused(void **state)
{
    static const struct kind first = { "a", DITTO_F32, 0, { 0 }, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE, 0 };
    static const struct {
        struct kind second;
        const char *says;
    } refused[] = {
        { { "a", DITTO_F32, 0, { 0 }, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE, 0 },
          "two variables are called \"a\"" },
        { { "b", DITTO_F32, 0, { 0 }, DITTO_ON_READ, DITTO_AGGREGATE_NONE, 0 },
          "\"b\" is sync-on-read without aggregation" },
        { { "a/b/c", DITTO_F32, 0, { 0 }, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE, 0 },
          "\"a/b/c\" can't be saved beside \"a\"" },
        { { "x//y", DITTO_F32, 0, { 0 }, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE, 0 },
          "\"x//y\" can't be saved" },
        { { "./y", DITTO_F32, 0, { 0 }, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE, 0 }, "\"./y\" can't be saved" },
    };
    int before = count_files(own_folder);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        ditto_strategy *s = make_strategy(2, NULL);
        ditto_variable *a = make(s, &first), *b = make(s, &refused[i].second);
        ditto_checkpoint_options options = DITTO_CHECKPOINT_OPTIONS_INIT;
        assert_status(ditto_checkpoint_save(s, own_path("refused.h5"), NULL), DITTO_ERR_INVALID);
        assert_message(refused[i].says);
        assert_string_equal(ditto_last_error()->function, "ditto_checkpoint_save");
        assert_int_equal(count_files(own_folder), before);
        options.variables = &a; /* the first variable can be saved alone */
        options.num_variables = 1;
        assert_ok(ditto_checkpoint_save(s, own_path("refused.h5"), &options));
        unlink(own_path("refused.h5"));
        assert_ok(ditto_variable_destroy(a));
        assert_ok(ditto_variable_destroy(b));
        /* There is no variable to save. */
        assert_status(ditto_checkpoint_save(s, own_path("refused.h5"), NULL), DITTO_ERR_INVALID);
        assert_ok(ditto_strategy_destroy(s));
    }
}

static void rule_8_14_a_value_is_held_until_its_variable_is_created(void **state)
{
    ditto_variable *v[KINDS];
    ditto_restore_status found;
    char names[400];
    size_t count;
    ditto_tensor transposed = { .dtype = DITTO_F32, .rank = 2, .shape = { 7, 300 } };
    ditto_variable *bad;
    ditto_strategy *s = make_strategy(2, NULL);
    make_all(s, v);
    assign_all(v, 6);
    assert_ok(ditto_checkpoint_save(s, own_path("held.h5"), NULL));
    destroy_all(s, v);
    s = make_strategy(3, NULL);
    assert_ok(ditto_checkpoint_restore(s, own_path("held.h5"), NULL, &found));
    assert_int_equal(found.num_held, KINDS);
    ditto_variable_options options = OPTIONS(variable, .name = kinds[0].name);
    assert_status(ditto_variable_create(s, &transposed, &options, &bad), DITTO_ERR_SHAPE);
    assert_message("\"weights\" is f32 [7, 300], but the value that was restored for it is f32 [300, 7]");
    transposed.dtype = DITTO_F64;
    assert_status(ditto_variable_create(s, &transposed, &options, &bad), DITTO_ERR_INVALID);
    for (int i = 0; i < KINDS - 2; i++) {
        v[i] = make(s, &kinds[i]);
        check(v[i], &kinds[i], 6);
    }
    assert_ok(ditto_strategy_held_values(s, names, sizeof names, NULL, &count));
    assert_int_equal(count, 2);
    assert_string_equal(names, "flags\nnothing\n");
    for (int i = KINDS - 2; i < KINDS; i++) {
        v[i] = make(s, &kinds[i]);
        check(v[i], &kinds[i], 6);
    }
    assert_ok(ditto_strategy_held_values(s, NULL, 0, NULL, &count));
    assert_int_equal(count, 0);
    destroy_all(s, v);
}

/* Restores fit.h5, which fails with a message that contains `says`. Checks that all variables except v[1]
 * still have the values of `seed`, and that no value is held. */
static void restore_nothing(ditto_strategy *s, ditto_variable *v[KINDS], int seed, ditto_status expected,
                            const char *says)
{
    size_t num_held;
    assert_status(ditto_checkpoint_restore(s, own_path("fit.h5"), NULL, NULL), expected);
    assert_message(says);
    for (int i = 0; i < KINDS; i++)
        if (i != 1)
            check(v[i], &kinds[i], seed);
    assert_ok(ditto_strategy_held_values(s, NULL, 0, NULL, &num_held));
    assert_int_equal(num_held, 0);
}

static void rule_8_14_if_an_entry_does_not_fit_or_is_missing_nothing_is_restored(void **state)
{
    ditto_variable *v[KINDS], *more;
    ditto_restore_options partial = DITTO_RESTORE_OPTIONS_INIT, chosen = DITTO_RESTORE_OPTIONS_INIT;
    ditto_restore_status found;
    struct kind other = kinds[1];
    ditto_strategy *s = make_strategy(2, NULL);
    make_all(s, v);
    assign_all(v, 6);
    assert_ok(ditto_checkpoint_save(s, own_path("fit.h5"), NULL));
    assign_all(v, 2);
    assert_ok(ditto_variable_destroy(v[1]));
    other.shape[0] = 18;
    v[1] = make(s, &other);
    restore_nothing(s, v, 2, DITTO_ERR_SHAPE, "\"layer/bias\" is f64 [18], but the value in ");
    other.shape[0] = 17;
    other.dtype = DITTO_F32;
    assert_ok(ditto_variable_destroy(v[1]));
    v[1] = make(s, &other);
    restore_nothing(s, v, 2, DITTO_ERR_INVALID, "\"layer/bias\" is f32 [17], but the value in ");
    assert_ok(ditto_variable_destroy(v[1])); /* its entry has no variable now */
    other.name = "unheard of";
    more = make(s, &other);
    restore_nothing(s, v, 2, DITTO_ERR_NOT_FOUND, "does not have \"unheard of\"");
    v[1] = make(s, &kinds[1]);
    chosen.variables = v;
    chosen.num_variables = 1;
    assert_ok(ditto_checkpoint_restore(s, own_path("fit.h5"), &chosen, &found));
    assert_int_equal(found.num_restored, 1);
    assert_int_equal(found.num_held, 0);
    check(v[0], &kinds[0], 6);
    for (int i = 2; i < KINDS; i++)
        check(v[i], &kinds[i], 2);
    partial.partial = 1;
    assert_ok(ditto_checkpoint_restore(s, own_path("fit.h5"), &partial, &found));
    assert_int_equal(found.num_missing, 1);
    for (int i = 0; i < KINDS; i++)
        check(v[i], &kinds[i], 6);
    assert_ok(ditto_variable_destroy(more));
    destroy_all(s, v);
}

/* The program's own data in a file is not the value of a variable that has the same name. */
static void rule_8_14_data_is_not_restored_to_a_variable_of_its_name(void **state)
{
    ditto_variable *v[KINDS];
    ditto_restore_status found;
    double table[17] = { 1, 2, 3 };
    ditto_checkpoint_data data = {
        .name = "table", .tensor = { .data = table, .dtype = DITTO_F64, .rank = 1, .shape = { 17 } }
    };
    struct kind other = kinds[1];
    ditto_strategy *s = make_strategy(2, NULL);
    make_all(s, v);
    assign_all(v, 6);
    assert_ok(
        ditto_checkpoint_save(s, own_path("fit.h5"), &OPTIONS(checkpoint, .data = &data, .num_data = 1)));
    other.name = data.name;
    ditto_variable *more = make(s, &other);
    fill(&other, 17, 2, table);
    assert_ok(ditto_variable_assign(more, DITTO_ASSIGN, table, sizeof table));
    assign_all(v, 2);
    assert_status(ditto_checkpoint_restore(s, own_path("fit.h5"), NULL, NULL), DITTO_ERR_NOT_FOUND);
    assert_message("does not have \"table\"");
    for (int i = 0; i < KINDS; i++)
        check(v[i], &kinds[i], 2);
    check(more, &other, 2);
    assert_ok(ditto_checkpoint_restore(s, own_path("fit.h5"), &OPTIONS(restore, .partial = 1), &found));
    assert_int_equal(found.num_restored, KINDS);
    assert_int_equal(found.num_missing, 1);
    assert_int_equal(found.num_held, 0);
    for (int i = 0; i < KINDS; i++)
        check(v[i], &kinds[i], 6);
    check(more, &other, 2);
    assert_ok(ditto_variable_destroy(more));
    destroy_all(s, v);
}

static void rule_8_14_two_variables_of_one_name_do_not_disturb_a_restore_of_others(void **state)
{
    ditto_variable *v[KINDS], *twins[2];
    ditto_restore_status found;
    struct kind other = kinds[1];
    ditto_strategy *s = make_strategy(2, NULL);
    make_all(s, v);
    assign_all(v, 6);
    assert_ok(ditto_checkpoint_save(s, own_path("fit.h5"), NULL));
    assign_all(v, 2);
    other.name = "twin";
    twins[0] = make(s, &other);
    twins[1] = make(s, &other);
    restore_nothing(s, v, 2, DITTO_ERR_NOT_FOUND, "does not have \"twin\", \"twin\"");
    assert_ok(ditto_checkpoint_restore(s, own_path("fit.h5"),
                                       &OPTIONS(restore, .variables = v, .num_variables = KINDS), &found));
    assert_int_equal(found.num_restored, KINDS);
    for (int i = 0; i < KINDS; i++)
        check(v[i], &kinds[i], 6);
    assign_all(v, 2);
    assert_ok(ditto_variable_destroy(twins[0]));
    assert_ok(ditto_variable_destroy(twins[1]));
    twins[0] = make(s, &kinds[1]); /* a second variable of a name that the file has */
    restore_nothing(s, v, 2, DITTO_ERR_INVALID, "two variables are called \"layer/bias\"");
    assert_ok(ditto_variable_destroy(twins[0]));
    destroy_all(s, v);
}

/* -- folders --
 *
 * Over several hosts only the first one has the files. */

static void save_steps(ditto_strategy *s, ditto_variable *v[KINDS], int background)
{
    ditto_checkpoint_options what = DITTO_CHECKPOINT_OPTIONS_INIT;
    ditto_checkpointer *c;
    char path[200];
    int64_t step;
    ditto_checkpointer_options options = OPTIONS(checkpointer, .keep = 3, .background = background,
                                                 .prefix = background ? "behind" : "now");
    assert_ok(ditto_checkpointer_create(s, own_folder, &options, &c));
    assert_status(ditto_checkpoint_latest(NULL, own_folder, options.prefix, path, sizeof path, NULL, &step),
                  DITTO_ERR_NOT_FOUND);
    assert_status(ditto_checkpoint_latest(s, own_folder, options.prefix, path, sizeof path, NULL, &step),
                  DITTO_ERR_NOT_FOUND);
    for (what.step = 8; what.step <= 12; what.step++) { /* alphabetically, 10 comes before 8 */
        assign_all(v, (int)what.step);
        assert_ok(ditto_checkpointer_save(c, &what));
        assign_all(v, 0); /* does not change the values that are being written */
    }
    assert_ok(ditto_checkpointer_wait(c));
    assert_int_equal(count_files(own_folder), is_first(s) ? 3 : 0);
    if (is_first(s)) {
        assert_ok(ditto_checkpoint_latest(NULL, own_folder, options.prefix, path, sizeof path, NULL, &step));
        assert_int_equal(step, 12);
    }
    step = 0;
    assert_ok(ditto_checkpoint_latest(s, own_folder, options.prefix, path, sizeof path, NULL, &step));
    assert_int_equal(step, 12);
    for (int64_t k = 10; k <= 12; k++) {
        snprintf(path, sizeof path, "%s/%s-%d.h5", own_folder, options.prefix, (int)k);
        assert_ok(ditto_checkpoint_restore(s, path, NULL, NULL));
        for (int i = 0; i < KINDS; i++)
            check(v[i], &kinds[i], (int)k);
        unlink(path);
    }
    what.step = -1;
    assert_status(ditto_checkpointer_save(c, &what), DITTO_ERR_RANGE);
    assert_ok(ditto_checkpointer_destroy(c));
}

static void the_newest_checkpoints_of_a_folder_are_kept(void **state)
{
    ditto_variable *v[KINDS];
    ditto_checkpointer *c;
    remove_own_folder(NULL);
    assert_int_equal(mkdir(own_folder, 0700), 0);
    ditto_strategy *s = make_strategy(2, NULL);
    make_all(s, v);
    save_steps(s, v, 0);
    save_steps(s, v, 1);
    ditto_checkpointer_options options = OPTIONS(checkpointer, .prefix = "a/b");
    assert_status(ditto_checkpointer_create(s, own_folder, &options, &c), DITTO_ERR_INVALID);
    assert_status(ditto_checkpointer_create(s, "/proc/none/here", NULL, &c), DITTO_ERR_IO);
    options.prefix = "back";
    options.keep = 1;
    assert_ok(ditto_checkpointer_create(s, own_folder, &options, &c));
    ditto_checkpoint_options back = OPTIONS(checkpoint, .step = 500);
    assert_ok(ditto_checkpointer_save(c, &back));
    back.step = 50; /* the file that was just saved is kept, although its step is lower */
    assert_ok(ditto_checkpointer_save(c, &back));
    assert_int_equal(count_files(own_folder), is_first(s) ? 2 : 0);
    assert_int_equal(access(own_path("back-50.h5"), F_OK), is_first(s) ? 0 : -1);
    unlink(own_path("back-50.h5"));
    unlink(own_path("back-500.h5"));
    assert_ok(ditto_checkpointer_destroy(c));
    put_file(own_folder, "/checkpoint-3.h5.partial", "left by a killed process");
    put_file(own_folder, "/checkpoint-x.h5.partial", "somebody else's");
    assert_ok(ditto_checkpointer_create(s, own_folder, NULL, &c));
    assert_int_equal(count_files(own_folder), is_first(s) ? 1 : 2);
    errno = 77;
    assert_ok(ditto_checkpointer_wait(c));
    assert_int_equal(errno, 77);
    destroy_all(s, v);
    assert_status(ditto_checkpointer_save(c, NULL), DITTO_ERR_CONTEXT); /* the strategy is destroyed */
    assert_ok(ditto_checkpointer_destroy(c));
}

/* -- optimizers -- */

#define ROWS 1001
struct training {
    struct report report;
    ditto_optimizer *optimizer;
    ditto_variable *w;
};

static ditto_status step(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    void *data;
    DITTO_TRY(ditto_alloc(self, ROWS * sizeof(float), 64, &data));
    /* The sum of these whole numbers over all replicas is equal for 1, 2, 4 and 8 replicas. */
    for (int i = 0; i < ROWS; i++)
        ((float *)data)[i] = (float)(i % 13 - 6) * (float)(8 / ditto_num_replicas(self));
    ditto_tensor gradient = spec_of(t->w);
    gradient.data = data;
    DITTO_TRY(ditto_apply(self, t->optimizer, &gradient, NULL));
    return ditto_free(self, data);
}

static void begin(ditto_strategy *s, struct training *t)
{
    ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { ROWS } };
    assert_ok(ditto_variable_create(s, &zeros, &OPTIONS(variable, .name = "w"), &t->w));
    assert_ok(ditto_optimizer_create(&t->w, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_ADAM), &t->optimizer));
}

static void end(ditto_strategy *s, struct training *t)
{
    assert_ok(ditto_optimizer_destroy(t->optimizer));
    assert_ok(ditto_variable_destroy(t->w));
    assert_ok(ditto_strategy_destroy(s));
}

static void training_continues_from_a_checkpoint_with_the_same_bits(void **state)
{
    static float whole[ROWS], resumed[ROWS];
    struct training t = { .w = NULL };
    ditto_strategy *s = make_strategy(4, NULL);
    begin(s, &t);
    for (int k = 0; k < 10; k++) {
        if (k == 5)
            assert_ok(ditto_checkpoint_save(s, own_path("adam.h5"), NULL));
        run_all(s, step, &t, &t.report);
    }
    assert_ok(ditto_variable_read(t.w, whole, sizeof whole));
    end(s, &t);
    for (uint32_t n = 1; n <= 8; n *= 2) {
        if (n < test_hosts() && test_host() != 0)
            continue; /* this host would be alone, without the file */
        s = make_strategy(n, NULL);
        if (n == 2) /* restores before the variables are created, and otherwise after */
            assert_ok(ditto_checkpoint_restore(s, own_path("adam.h5"), NULL, NULL));
        begin(s, &t);
        if (n != 2)
            assert_ok(ditto_checkpoint_restore(s, own_path("adam.h5"), NULL, NULL));
        for (int k = 5; k < 10; k++)
            run_all(s, step, &t, &t.report);
        assert_ok(ditto_variable_read(t.w, resumed, sizeof resumed));
        assert_memory_equal(whole, resumed, sizeof whole);
        end(s, &t);
    }
}

#define CALLS(X)                                                  \
    X(ditto_checkpoint_save, (NULL, NULL, NULL))                  \
    X(ditto_checkpoint_open, (NULL, "/nowhere/x.h5", &file))      \
    X(ditto_checkpoint_get, (NULL, 0, NULL))                      \
    X(ditto_checkpoint_info, (NULL, NULL))                        \
    X(ditto_checkpoint_read, (NULL, NULL, NULL, 0))               \
    X(ditto_checkpoint_restore, (s, "/nowhere/x.h5", NULL, NULL)) \
    X(ditto_checkpointer_create, (NULL, NULL, NULL, NULL))        \
    X(ditto_checkpointer_save, (NULL, NULL))                      \
    X(ditto_checkpointer_wait, (NULL))                            \
    X(ditto_checkpoint_latest, (NULL, NULL, NULL, NULL, 0, NULL, NULL))

static void errors_name_the_function_that_was_called(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_checkpoint *file;
    char wrong[1000] = "";
#define TRY(name, arguments)                                                                 \
    if (name arguments >= 0 || strcmp(ditto_last_error()->function, #name) != 0)             \
        snprintf(wrong + strlen(wrong), sizeof wrong - strlen(wrong), "%s, not " #name "; ", \
                 ditto_last_error()->function);
    CALLS(TRY)
#undef TRY
    assert_string_equal(wrong, "");
    assert_ok(ditto_strategy_destroy(s));
}

/* Returns 0 if the status is DITTO_ERR_IO and the last error names the function and the file. Otherwise
 * prints the error and returns -1. */
static int check_error(ditto_status status, const char *function, const char *file)
{
    const ditto_error *error = ditto_last_error();
    if (status == DITTO_ERR_IO && strcmp(error->function, function) == 0 &&
        strstr(error->message, file) != NULL)
        return 0;
    print_error("status %d of %s: %s\n", (int)status, error->function, error->message);
    return -1;
}

static void an_error_of_a_background_save_names_the_call_that_returns_it(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_variable *v = make(s, &kinds[0]);
    ditto_checkpointer *c;
    int wrong = 0;
    char folder[200];
    snprintf(folder, sizeof folder, "%s", own_path("taken_away"));
    assert_ok(ditto_checkpointer_create(s, folder, &OPTIONS(checkpointer, .background = 1), &c));
    assert_int_equal(rmdir(folder), is_first(s) ? 0 : -1);
    ditto_checkpoint_options what = OPTIONS(checkpoint, .step = 1);
    assert_ok(ditto_checkpointer_save(c, &what)); /* its thread fails, because the folder is removed */
    wrong |= check_error(ditto_checkpointer_wait(c), "ditto_checkpointer_wait", "checkpoint-1.h5");
    what.step = 2;
    assert_ok(ditto_checkpointer_save(c, &what));
    wrong |= check_error(ditto_checkpointer_save(c, &what), "ditto_checkpointer_save", "checkpoint-2.h5");
    what.step = 3;
    assert_ok(ditto_checkpointer_save(c, &what));
    wrong |= check_error(ditto_checkpointer_destroy(c), "ditto_checkpointer_destroy", "checkpoint-3.h5");
    assert_int_equal(wrong, 0);
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_name_the_function_that_was_called),
        cmocka_unit_test(an_error_of_a_background_save_names_the_call_that_returns_it),
        cmocka_unit_test(rule_8_14_a_checkpoint_is_restored_with_any_number_of_replicas),
        cmocka_unit_test(rule_8_14_a_checkpoint_has_one_entry_per_variable_that_describes_it),
        cmocka_unit_test(rule_8_14_sync_on_read_saves_the_result_of_a_cross_read_and_restores_by_rule_8_11),
        cmocka_unit_test(rule_8_14_a_split_variable_saves_its_first_component_and_is_restored_to_all),
        cmocka_unit_test(rule_8_14_a_variable_without_its_own_name_or_value_is_refused),
        cmocka_unit_test(rule_8_14_a_value_is_held_until_its_variable_is_created),
        cmocka_unit_test(rule_8_14_if_an_entry_does_not_fit_or_is_missing_nothing_is_restored),
        cmocka_unit_test(rule_8_14_data_is_not_restored_to_a_variable_of_its_name),
        cmocka_unit_test(rule_8_14_two_variables_of_one_name_do_not_disturb_a_restore_of_others),
        cmocka_unit_test(the_newest_checkpoints_of_a_folder_are_kept),
        cmocka_unit_test(training_continues_from_a_checkpoint_with_the_same_bits),
    };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
