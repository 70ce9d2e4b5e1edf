/* tests/compat/test_compat.c - checks that the library reads files that an earlier build wrote.
 *
 * checkpoint.h5 contains mirrored, sharded and sync-on-read variables of four dtypes, a slot and the
 * number of steps of an SGD optimizer, attributes, and the state of an iterator. rest.txt contains the
 * rows that come after that state. placement.txt contains a placement on a synthetic machine. `test_compat
 * write FOLDER` writes the three files. New files are only added when a format gets a new version. They
 * then get new names, and the old files stay. */
#include "input/written_rows.h"

#include <ditto/checkpoint.h>

enum { STEPS_BEFORE = 3, MOST_STEPS = 64, MOST_ROWS = 64, MOST_REPLICAS = 3, BATCH = 6 };

static const char machine[] = "pack:2 [numa] core:4 pu:2";

static char *path_in(const char *folder, const char *file)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return path;
}

/* -- variables -- */

enum { WEIGHTS, BIAS, TABLE, SEEN, FLAGS, VARIABLES };
static const struct {
    const char *name;
    ditto_dtype dtype;
    uint32_t rank;
    size_t shape[2], shards;
    ditto_synchronization synchronization;
    ditto_aggregation aggregation;
} kinds[VARIABLES] = {
    [WEIGHTS] = { "layer/weights", DITTO_F32, 2, { 5, 3 }, 0, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE },
    [BIAS] = { "layer/bias", DITTO_F64, 1, { 7 }, 0, DITTO_ON_WRITE, DITTO_AGGREGATE_MEAN },
    [TABLE] = { "table", DITTO_F32, 2, { 11, 2 }, 3, DITTO_ON_WRITE, DITTO_AGGREGATE_SUM },
    [SEEN] = { "seen", DITTO_I64, 0, { 0 }, 0, DITTO_ON_READ, DITTO_AGGREGATE_SUM },
    [FLAGS] = { "flags", DITTO_BOOL, 1, { 9 }, 0, DITTO_ON_WRITE, DITTO_AGGREGATE_ONLY_FIRST_REPLICA },
};

/* Fills in the value of the variable or slot `which`, converted to its dtype. */
static void fill(const ditto_tensor *spec, int which, void *out)
{
    for (size_t i = 0; i < ditto_tensor_count(spec); i++) {
        int value = (int)(i * 7) % 10 - which;
        if (spec->dtype == DITTO_F32)
            ((float *)out)[i] = (float)value / 4;
        else if (spec->dtype == DITTO_F64)
            ((double *)out)[i] = (double)value / 8;
        else if (spec->dtype == DITTO_I64)
            ((int64_t *)out)[i] = 6 * value; /* 1, 2 or 3 replicas can share it equally */
        else
            ((unsigned char *)out)[i] = value % 2 != 0;
    }
}

/* The variables, and an optimizer of the first one, whose slot and number of steps are in `variable` too. */
enum { OPTIMIZER_VARIABLES = 2, ALL = VARIABLES + OPTIMIZER_VARIABLES };
struct model {
    ditto_variable *variable[ALL];
    ditto_optimizer *optimizer;
};

static struct model make_model(ditto_strategy *strategy)
{
    struct model m;
    for (int i = 0; i < VARIABLES; i++) {
        ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
        ditto_tensor initial = { .dtype = kinds[i].dtype, .rank = kinds[i].rank };
        memcpy(initial.shape, kinds[i].shape, kinds[i].rank * sizeof *kinds[i].shape);
        options.name = kinds[i].name;
        options.synchronization = kinds[i].synchronization;
        options.aggregation = kinds[i].aggregation;
        if (kinds[i].shards != 0)
            options.partitioner = (ditto_partitioner){ DITTO_PARTITION_FIXED, kinds[i].shards, 0 };
        assert_ok(ditto_variable_create(strategy, &initial, &options, &m.variable[i]));
    }
    ditto_optimizer_options options = DITTO_OPTIMIZER_OPTIONS_INIT;
    options.rule = DITTO_RULE_SGD;
    options.momentum = 0.5;
    assert_ok(ditto_optimizer_create(&m.variable[WEIGHTS], 1, &options, &m.optimizer));
    assert_ok(ditto_optimizer_slot(m.optimizer, 0, "momentum", &m.variable[VARIABLES]));
    assert_ok(ditto_optimizer_iterations(m.optimizer, &m.variable[VARIABLES + 1]));
    return m;
}

static void destroy_model(struct model *m)
{
    assert_ok(ditto_optimizer_destroy(m->optimizer));
    for (int i = 0; i < VARIABLES; i++)
        assert_ok(ditto_variable_destroy(m->variable[i]));
}

/* -- rows -- */

static ditto_dataset *make_dataset(void)
{
    return then(then(then(range(0, 57), shuffle_by, 10), add_noise, 3), batch_of, BATCH);
}

struct taking {
    struct report report;
    ditto_iterator *iterator;
    uint64_t steps; /* the largest number of steps of each replica */
    uint64_t rows[MOST_STEPS][MOST_REPLICAS];
    int64_t row[MOST_STEPS][MOST_REPLICAS][BATCH];
    uint64_t taken[MOST_REPLICAS];
};

static ditto_status take(ditto_replica *self, void *user)
{
    struct taking *t = user;
    uint32_t id = ditto_replica_id(self);
    for (uint64_t step = 0; step < t->steps; step++) {
        ditto_batch batch;
        ditto_status status = ditto_next(self, t->iterator, &batch);
        if (status != DITTO_OK)
            return status < 0 ? status : DITTO_OK;
        EXPECT(&t->report, step < MOST_STEPS && batch.rows <= BATCH);
        memcpy(t->row[step][id], batch.component[0].data, batch.rows * sizeof(int64_t));
        t->rows[step][id] = batch.rows;
        t->taken[id] = step + 1;
    }
    return DITTO_OK;
}

static void open_iterator(ditto_strategy *strategy, ditto_dataset *dataset, const void *state, size_t bytes,
                          struct taking *t)
{
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    options.state = state;
    options.state_bytes = bytes;
    memset(t, 0, sizeof *t);
    assert_ok(ditto_strategy_iterate(strategy, dataset, &options, &t->iterator));
}

/* Takes all remaining rows. Lists them in the order of the steps, and within a step in the order of the
 * replicas. Returns the number of rows. */
static size_t list_rest(ditto_strategy *strategy, struct taking *t, int64_t *out)
{
    size_t count = 0;
    t->steps = MOST_STEPS;
    run_all(strategy, take, t, &t->report);
    for (uint64_t step = 0; step < t->taken[0]; step++)
        for (uint32_t id = 0; id < ditto_strategy_num_replicas(strategy); id++)
            for (uint64_t i = 0; i < t->rows[step][id]; i++)
                out[count++] = t->row[step][id][i];
    return count;
}

/* -- the tests -- */

static const char folder[] = "tests/compat";

static void *read_data(ditto_checkpoint *checkpoint, const char *name, size_t *bytes)
{
    for (size_t i = 0; i < ditto_checkpoint_num_entries(checkpoint); i++) {
        ditto_checkpoint_entry entry;
        assert_ok(ditto_checkpoint_get(checkpoint, i, &entry));
        if (strcmp(entry.name, name) != 0)
            continue;
        *bytes = ditto_tensor_bytes(&entry.spec);
        void *data = malloc(*bytes);
        assert_non_null(data);
        assert_ok(ditto_checkpoint_read(checkpoint, name, data, *bytes));
        return data;
    }
    fail_msg("the checkpoint has no entry \"%s\"", name);
    return NULL;
}

static void variables_and_slots_are_restored(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= MOST_REPLICAS; n++) {
        ditto_strategy *strategy = make_strategy(n, NULL);
        struct model m = make_model(strategy);
        ditto_restore_status found;
        assert_ok(ditto_checkpoint_restore(strategy, path_in(folder, "checkpoint.h5"), NULL, &found));
        assert_int_equal(found.num_restored, ALL);
        assert_int_equal(found.num_held, 0);
        for (int i = 0; i < ALL; i++) {
            char value[256], expected[256];
            ditto_tensor spec = spec_of(m.variable[i]);
            size_t bytes = ditto_tensor_bytes(&spec);
            assert_ok(ditto_variable_read(m.variable[i], value, bytes));
            fill(&spec, i, expected);
            assert_memory_equal(value, expected, bytes);
        }
        destroy_model(&m);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void properties_of_variables_are_read(void **state)
{
    ditto_checkpoint *checkpoint;
    int found = 0;
    (void)state;
    assert_ok(ditto_checkpoint_open(path_in(folder, "checkpoint.h5"), &checkpoint));
    for (size_t i = 0; i < ditto_checkpoint_num_entries(checkpoint); i++) {
        ditto_checkpoint_entry entry;
        assert_ok(ditto_checkpoint_get(checkpoint, i, &entry));
        for (int k = 0; k < VARIABLES; k++) {
            if (strcmp(entry.name, kinds[k].name) != 0)
                continue;
            assert_int_equal(entry.synchronization, kinds[k].synchronization);
            assert_int_equal(entry.aggregation, kinds[k].aggregation);
            assert_int_equal(entry.trainable, kinds[k].synchronization == DITTO_ON_WRITE);
            assert_int_equal(entry.is_data, 0);
            found++;
        }
    }
    assert_int_equal(found, VARIABLES);
    assert_ok(ditto_checkpoint_close(checkpoint));
}

static void attributes_are_read(void **state)
{
    ditto_checkpoint *checkpoint;
    ditto_attribute attribute;
    (void)state;
    assert_ok(ditto_checkpoint_open(path_in(folder, "checkpoint.h5"), &checkpoint));
    assert_int_equal(ditto_checkpoint_step(checkpoint), STEPS_BEFORE);
    assert_string_equal(ditto_checkpoint_version(checkpoint), "0.1.0");
    assert_ok(ditto_checkpoint_attribute(checkpoint, "rate", &attribute));
    assert_int_equal(attribute.kind, DITTO_ATTRIBUTE_REAL);
    assert_true(attribute.real == 0.0625);
    assert_ok(ditto_checkpoint_attribute(checkpoint, "words", &attribute));
    assert_string_equal(attribute.text, "written by an earlier version");
    assert_ok(ditto_checkpoint_close(checkpoint));
}

static void an_iterator_continues_from_the_saved_state(void **state)
{
    static int64_t expected[MOST_ROWS], found[MOST_ROWS * MOST_REPLICAS];
    static struct taking taking;
    ditto_checkpoint *checkpoint;
    size_t bytes = 0, count = 0;
    (void)state;
    FILE *file = fopen(path_in(folder, "rest.txt"), "r");
    assert_non_null(file);
    for (long long row; count < MOST_ROWS && fscanf(file, "%lld", &row) == 1; count++)
        expected[count] = row;
    fclose(file);
    assert_ok(ditto_checkpoint_open(path_in(folder, "checkpoint.h5"), &checkpoint));
    void *saved = read_data(checkpoint, "input", &bytes);
    for (uint32_t n = 1; n <= MOST_REPLICAS; n++) {
        ditto_strategy *strategy = make_strategy(n, NULL);
        ditto_dataset *dataset = make_dataset();
        open_iterator(strategy, dataset, saved, bytes, &taking);
        assert_int_equal(list_rest(strategy, &taking, found), count);
        assert_memory_equal(found, expected, count * sizeof *found);
        assert_ok(ditto_iterator_destroy(taking.iterator));
        assert_ok(ditto_dataset_destroy(dataset));
        assert_ok(ditto_strategy_destroy(strategy));
    }
    free(saved);
    assert_ok(ditto_checkpoint_close(checkpoint));
}

static ditto_topology *make_machine(void)
{
    ditto_topology_options options = DITTO_TOPOLOGY_OPTIONS_INIT;
    ditto_topology *topology;
    options.synthetic = machine;
    assert_ok(ditto_topology_create(&options, &topology));
    return topology;
}

static size_t read_text(const char *file_name, char *text, size_t capacity)
{
    FILE *file = fopen(path_in(folder, file_name), "r");
    assert_non_null(file);
    size_t length = fread(text, 1, capacity, file);
    fclose(file);
    return length;
}

static void a_placement_is_read_and_written_without_a_change(void **state)
{
    char text[4096], again[4096];
    size_t length = read_text("placement.txt", text, sizeof text), again_length;
    ditto_topology *topology = make_machine();
    ditto_placement *placement;
    (void)state;
    assert_ok(ditto_placement_read(topology, text, length, &placement));
    assert_int_equal(ditto_placement_num_replicas(placement), 4);
    assert_int_equal(ditto_placement_num_devices(placement, 3), 4);
    assert_ok(ditto_placement_write(placement, again, sizeof again, &again_length));
    assert_int_equal(again_length, length);
    assert_memory_equal(again, text, length);
    assert_ok(ditto_placement_destroy(placement));
    assert_ok(ditto_topology_destroy(topology));
}

/* -- writing the files -- */

static void write_placement(const char *to)
{
    char text[4096];
    size_t length;
    ditto_placement_options options = DITTO_PLACEMENT_OPTIONS_INIT;
    ditto_placement *placement;
    ditto_topology *topology = make_machine();
    static const int64_t two_cores[DITTO_MESH_RANK] = { 1, 1, 2, 2 };
    options.num_replicas = 4;
    options.shape = two_cores;
    options.shape_rank = DITTO_MESH_RANK;
    assert_ok(ditto_placement_create(topology, &options, &placement));
    assert_ok(ditto_placement_write(placement, text, sizeof text, &length));
    FILE *file = fopen(path_in(to, "placement.txt"), "w");
    assert_true(file != NULL && fwrite(text, 1, length, file) == length && fclose(file) == 0);
    assert_ok(ditto_placement_destroy(placement));
    assert_ok(ditto_topology_destroy(topology));
}

static void save_checkpoint(ditto_strategy *strategy, const char *to, void *state, size_t bytes)
{
    ditto_checkpoint_options options = DITTO_CHECKPOINT_OPTIONS_INIT;
    ditto_attribute attribute[] = {
        { .name = "rate", .kind = DITTO_ATTRIBUTE_REAL, .real = 0.0625 },
        { .name = "words", .kind = DITTO_ATTRIBUTE_TEXT, .text = "written by an earlier version" },
    };
    ditto_checkpoint_data data = { "input",
                                   { .data = state, .dtype = DITTO_U8, .rank = 1, .shape = { bytes } } };
    options.step = STEPS_BEFORE;
    options.attributes = attribute;
    options.num_attributes = 2;
    options.data = &data;
    options.num_data = 1;
    assert_ok(ditto_checkpoint_save(strategy, path_in(to, "checkpoint.h5"), &options));
}

static void write_all(const char *to)
{
    static struct taking taking;
    static int64_t rest[MOST_ROWS];
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_dataset *dataset = make_dataset();
    struct model m = make_model(strategy);
    void *state;
    size_t bytes;
    for (int i = 0; i < ALL; i++) {
        char value[256];
        ditto_tensor spec = spec_of(m.variable[i]);
        fill(&spec, i, value);
        assert_ok(ditto_variable_assign(m.variable[i], value, ditto_tensor_bytes(&spec)));
    }
    open_iterator(strategy, dataset, NULL, 0, &taking);
    taking.steps = STEPS_BEFORE;
    run_all(strategy, take, &taking, &taking.report);
    assert_ok(ditto_iterator_save(taking.iterator, &state, &bytes));
    save_checkpoint(strategy, to, state, bytes);
    ditto_state_free(state);
    size_t count = list_rest(strategy, &taking, rest);
    FILE *file = fopen(path_in(to, "rest.txt"), "w");
    assert_non_null(file);
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%lld\n", (long long)rest[i]);
    assert_int_equal(fclose(file), 0);
    write_placement(to);
    destroy_model(&m);
    assert_ok(ditto_iterator_destroy(taking.iterator));
    assert_ok(ditto_dataset_destroy(dataset));
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_and_slots_are_restored),
        cmocka_unit_test(properties_of_variables_are_read),
        cmocka_unit_test(attributes_are_read),
        cmocka_unit_test(an_iterator_continues_from_the_saved_state),
        cmocka_unit_test(a_placement_is_read_and_written_without_a_change),
    };
    if (argc == 3 && strcmp(argv[1], "write") == 0) {
        write_all(argv[2]);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
