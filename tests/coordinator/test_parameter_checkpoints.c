/* tests/coordinator/test_parameter_checkpoints.c - docs/semantics.md, "Parameter servers": checkpoints that
 * are saved and restored while workers push (rule 12.13). */
#include "support/checkpoints.h"
#include "support/support.h"

#include <ditto/checkpoint.h>
#include <ditto/parameter.h>

#include <math.h>
#include <stdatomic.h>
#include <unistd.h>

#define ROWS   40
#define WIDTH  6
#define COUNT  (ROWS * WIDTH)
#define SHARDS 8 /* most */

struct model {
    ditto_strategy *strategy;
    ditto_coordinator *coordinator;
    ditto_variable *table;
    ditto_optimizer *optimizer;
    size_t shards;
    _Atomic bool is_ending;
    _Atomic uint32_t pushes;
};

/* How the table of the present test is accessed. */
static ditto_concurrency concurrency;

/* A value and its slots are functions of the number of updates. */
static void count_updates(const ditto_rule_range *range, void *user)
{
    double *value = range->value, *once = range->slot[0], *twice = range->slot[1];
    for (size_t i = 0; i < range->count; i++) {
        value[i] += 1;
        once[i] += 1;
        twice[i] += 2;
    }
}

static ditto_optimizer_options counting(void)
{
    return OPTIONS(optimizer, .name = "rule", .rule = DITTO_RULE_FUNCTION, .function = count_updates,
                   .num_slots = 2);
}

static ditto_optimizer_options adam(void)
{
    return OPTIONS(optimizer, .name = "rule", .rule = DITTO_RULE_ADAM);
}

static void make_servers(struct model *m, uint32_t workers, uint32_t replicas)
{
    memset(m, 0, sizeof *m);
    assert_ok(ditto_strategy_create(
        DITTO_PARAMETER_SERVER,
        &OPTIONS(strategy, .num_replicas = workers * replicas, .replicas_per_worker = replicas),
        &m->strategy));
}

static void make_table(struct model *m, size_t shards)
{
    ditto_tensor table = { .dtype = DITTO_F64, .rank = 2, .shape = { ROWS, WIDTH } };
    ditto_variable_options cut = OPTIONS(
        variable, .name = "layer/table", .concurrency = concurrency,
        .partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = shards });
    assert_ok(ditto_variable_create(m->strategy, &table, &cut, &m->table));
    m->shards = shards;
}

static ditto_status push_until_the_end(ditto_replica *self, void *user)
{
    struct model *m = user;
    double ones[COUNT];
    ditto_tensor gradient = { .data = ones, .dtype = DITTO_F64, .rank = 2, .shape = { ROWS, WIDTH } };
    bool is_ending = false;
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    while (!is_ending) {
        DITTO_TRY(ditto_apply(self, m->optimizer, &gradient, NULL));
        atomic_fetch_add(&m->pushes, 1);
        /* The replicas of a worker make the same number of calls. */
        is_ending = atomic_load(&m->is_ending);
        uint8_t agreed = is_ending;
        DITTO_TRY(ditto_broadcast_from_root(self, &agreed, 1, DITTO_U8, 0, NULL));
        is_ending = agreed != 0;
    }
    return DITTO_OK;
}

/* Makes the model, whose workers push until end_pushing. */
static void begin_pushing(struct model *m, uint32_t workers, uint32_t replicas, size_t shards,
                          ditto_optimizer_options options)
{
    make_servers(m, workers, replicas);
    make_table(m, shards);
    assert_ok(ditto_optimizer_create(&m->table, 1, &options, &m->optimizer));
    assert_ok(ditto_coordinator_create(m->strategy, NULL, &m->coordinator));
    assert_ok(ditto_function_register("push", push_until_the_end, m));
    for (uint32_t i = 0; i < workers; i++)
        assert_ok(ditto_coordinator_schedule(m->coordinator, "push", NULL, NULL, NULL));
    while (atomic_load(&m->pushes) < 2u * workers)
        usleep(100);
}

static void end_pushing(struct model *m)
{
    atomic_store(&m->is_ending, true);
    assert_ok(ditto_coordinator_join(m->coordinator));
    assert_ok(ditto_function_unregister("push"));
}

static void destroy_model(struct model *m)
{
    assert_ok(ditto_coordinator_destroy(m->coordinator));
    assert_ok(ditto_optimizer_destroy(m->optimizer));
    assert_ok(ditto_variable_destroy(m->table));
    assert_ok(ditto_strategy_destroy(m->strategy));
}

/* -- what a checkpoint has -- */

struct saved {
    double value[COUNT], slot[2][COUNT];
    uint64_t version[SHARDS];
};

static void read_saved(const char *path, const char *const *slot, size_t shards, struct saved *s)
{
    ditto_checkpoint *file;
    assert_ok(ditto_checkpoint_open(NULL, path, &file));
    assert_ok(ditto_checkpoint_read(file, "layer/table", s->value, sizeof s->value));
    for (int k = 0; k < 2; k++)
        assert_ok(ditto_checkpoint_read(file, slot[k], s->slot[k], sizeof s->slot[k]));
    assert_ok(
        ditto_checkpoint_read(file, "ditto_versions/layer/table", s->version, shards * sizeof *s->version));
    assert_ok(ditto_checkpoint_close(file));
}

static const char *const counting_slots[2] = { "rule/slot0/layer/table", "rule/slot1/layer/table" };
static const char *const adam_slots[2] = { "rule/m/layer/table", "rule/v/layer/table" };

/* Calls the function with the first element and the end of each shard. */
static void for_each_shard(const struct model *m, const struct saved *s,
                           void (*check)(const struct saved *s, size_t shard, size_t first, size_t end))
{
    for (size_t k = 0; k < m->shards; k++) {
        ditto_shard_info shard = shard_of(m->table, k);
        check(s, k, shard.first_row * WIDTH, (shard.first_row + shard.rows) * WIDTH);
    }
}

static void check_counts(const struct saved *s, size_t shard, size_t first, size_t end)
{
    double updates = (double)s->version[shard];
    for (size_t i = first; i < end; i++)
        assert_true(s->value[i] == updates && s->slot[0][i] == updates && s->slot[1][i] == 2 * updates);
}

/* All gradients are 1, so the moments of Adam are 1 - b^k after k updates. */
static void check_moments(const struct saved *s, size_t shard, size_t first, size_t end)
{
    double updates = (double)s->version[shard];
    for (size_t i = first; i < end; i++) {
        assert_true(s->value[i] == s->value[first]);
        assert_true(fabs(s->slot[0][i] - (1 - pow(0.9, updates))) < 1e-9);
        assert_true(fabs(s->slot[1][i] - (1 - pow(0.999, updates))) < 1e-9);
    }
}

/* -- saving -- */

static void rule_12_13_a_save_has_each_shard_at_one_version(void **state)
{
    const uint32_t shapes[][3] = { { 1, 1, 2 }, { 2, 1, 1 }, { 3, 1, SHARDS }, { 8, 1, 3 }, { 2, 2, 5 } };
    char path[SCRATCH_NAME];
    scratch_name(path, "parameters");
    close(mkstemp(path));
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        struct model m;
        struct saved saved;
        begin_pushing(&m, shapes[k][0], shapes[k][1], shapes[k][2], counting());
        for (int i = 0; i < test_trials(30); i++) {
            assert_ok(ditto_checkpoint_save(m.strategy, path, NULL));
            read_saved(path, counting_slots, m.shards, &saved);
            for_each_shard(&m, &saved, check_counts);
        }
        end_pushing(&m);
        destroy_model(&m);
    }
    assert_int_equal(unlink(path), 0);
}

static void rule_12_13_adam_is_saved_while_three_workers_push(void **state)
{
    char path[SCRATCH_NAME];
    scratch_name(path, "parameters");
    struct model m;
    struct saved saved;
    close(mkstemp(path));
    begin_pushing(&m, 3, 1, 4, adam());
    for (int i = 0; i < test_trials(30); i++) {
        assert_ok(ditto_checkpoint_save(m.strategy, path, NULL));
        read_saved(path, adam_slots, m.shards, &saved);
        for_each_shard(&m, &saved, check_moments);
    }
    end_pushing(&m);
    destroy_model(&m);
    assert_int_equal(unlink(path), 0);
}

static void rule_12_13_a_checkpointer_saves_in_the_background(void **state)
{
    char folder[SCRATCH_NAME], path[SCRATCH_NAME + 20];
    struct model m;
    struct saved saved;
    ditto_checkpointer *checkpointer;
    ditto_checkpoint_options what = DITTO_CHECKPOINT_OPTIONS_INIT;
    assert_non_null(mkdtemp(scratch_name(folder, "parameters")));
    begin_pushing(&m, 3, 1, 4, counting());
    assert_ok(ditto_checkpointer_create(
        m.strategy, folder, &OPTIONS(checkpointer, .background = 1, .prefix = "c"), &checkpointer));
    for (what.step = 1; what.step <= 5; what.step++) {
        assert_ok(ditto_checkpointer_save(checkpointer, &what));
        assert_ok(ditto_checkpointer_wait(checkpointer));
        assert_ok(ditto_checkpoint_latest(NULL, folder, "c", path, sizeof path, NULL, NULL));
        read_saved(path, counting_slots, m.shards, &saved);
        for_each_shard(&m, &saved, check_counts);
        assert_int_equal(unlink(path), 0);
    }
    assert_ok(ditto_checkpointer_destroy(checkpointer));
    end_pushing(&m);
    destroy_model(&m);
    assert_int_equal(rmdir(folder), 0);
}

/* Only the slots are chosen, and only the parameter. */
static void rule_12_13_chosen_parameters_are_saved(void **state)
{
    char path[SCRATCH_NAME];
    scratch_name(path, "parameters");
    struct model m;
    double slot[2][COUNT];
    uint64_t version[3];
    ditto_variable *chosen[2];
    ditto_checkpoint *file;
    close(mkstemp(path));
    begin_pushing(&m, 2, 1, 3, counting());
    for (uint32_t k = 0; k < 2; k++)
        assert_ok(ditto_optimizer_slot(m.optimizer, 0, k == 0 ? "slot0" : "slot1", &chosen[k]));
    ditto_checkpoint_options options = OPTIONS(checkpoint, .variables = chosen, .num_variables = 2);
    assert_ok(ditto_checkpoint_save(m.strategy, path, &options));
    assert_ok(ditto_checkpoint_open(NULL, path, &file));
    assert_int_equal(contents_of(file).num_entries, 2);
    for (int k = 0; k < 2; k++)
        assert_ok(ditto_checkpoint_read(file, counting_slots[k], slot[k], sizeof slot[k]));
    assert_ok(ditto_checkpoint_close(file));
    for (size_t s = 0; s < 3; s++) {
        size_t first = shard_of(m.table, s).first_row * WIDTH, count = shard_of(m.table, s).rows * WIDTH;
        for (size_t i = first; i < first + count; i++)
            assert_true(slot[0][i] == slot[0][first] && slot[1][i] == 2 * slot[0][i]);
    }
    options.variables = &m.table;
    options.num_variables = 1;
    assert_ok(ditto_checkpoint_save(m.strategy, path, &options));
    assert_ok(ditto_checkpoint_open(NULL, path, &file));
    assert_int_equal(contents_of(file).num_entries, 2);
    assert_ok(ditto_checkpoint_read(file, "ditto_versions/layer/table", version, sizeof version));
    assert_ok(ditto_checkpoint_close(file));
    end_pushing(&m);
    destroy_model(&m);
    assert_int_equal(unlink(path), 0);
}

/* -- restoring -- */

static void read_versions(const struct model *m, uint64_t *version)
{
    for (size_t i = 0; i < m->shards; i++)
        version[i] = shard_of(m->table, i).version;
}

static void read_model(const struct model *m, const char *const *name, struct saved *s)
{
    ditto_variable *slot;
    assert_ok(ditto_variable_read(m->table, s->value, sizeof s->value));
    for (uint32_t k = 0; k < 2; k++) {
        assert_ok(ditto_optimizer_slot(m->optimizer, 0, name[k], &slot));
        assert_ok(ditto_variable_read(slot, s->slot[k], sizeof s->slot[k]));
    }
    read_versions(m, s->version);
}

static uint64_t largest(const uint64_t *version, size_t count)
{
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++)
        most = version[i] > most ? version[i] : most;
    return most;
}

static void check_restored(const struct model *m, const struct saved *saved, size_t saved_shards)
{
    struct saved found;
    read_model(m, (const char *const[]){ "slot0", "slot1" }, &found);
    assert_memory_equal(found.value, saved->value, sizeof found.value);
    assert_memory_equal(found.slot, saved->slot, sizeof found.slot);
    for (size_t s = 0; s < m->shards; s++)
        assert_int_equal(found.version[s], m->shards == saved_shards ? saved->version[s]
                                                                     : largest(saved->version, saved_shards));
}

/* The variables are created before the restore, or take over the values that it holds. */
static void restore_into(const char *path, uint32_t workers, size_t shards, bool before,
                         const struct saved *saved, size_t saved_shards)
{
    struct model m;
    ditto_optimizer_options options = counting();
    make_servers(&m, workers, 1);
    if (!before)
        assert_ok(ditto_checkpoint_restore(m.strategy, path, NULL, NULL));
    make_table(&m, shards);
    assert_ok(ditto_optimizer_create(&m.table, 1, &options, &m.optimizer));
    if (before)
        assert_ok(ditto_checkpoint_restore(m.strategy, path, NULL, NULL));
    check_restored(&m, saved, saved_shards);
    assert_ok(ditto_optimizer_destroy(m.optimizer));
    assert_ok(ditto_variable_destroy(m.table));
    assert_ok(ditto_strategy_destroy(m.strategy));
}

static void rule_12_13_a_checkpoint_fits_other_workers_and_shards(void **state)
{
    char path[SCRATCH_NAME];
    scratch_name(path, "parameters");
    struct model m;
    struct saved saved;
    close(mkstemp(path));
    begin_pushing(&m, 3, 1, 4, counting());
    assert_ok(ditto_checkpoint_save(m.strategy, path, NULL));
    end_pushing(&m);
    destroy_model(&m);
    read_saved(path, counting_slots, 4, &saved);
    const uint32_t workers[] = { 1, 2, 3, 8 };
    const size_t shards[] = { 4, 1, 4, SHARDS };
    for (size_t k = 0; k < 4; k++) {
        restore_into(path, workers[k], shards[k], true, &saved, 4);
        restore_into(path, workers[k], shards[k], false, &saved, 4);
    }
    assert_int_equal(unlink(path), 0);
}

/* Each shard is restored together with its slots, between two updates. */
static void rule_12_13_a_restore_while_workers_push(void **state)
{
    char path[SCRATCH_NAME];
    scratch_name(path, "parameters");
    struct model m;
    struct saved found;
    close(mkstemp(path));
    begin_pushing(&m, 3, 1, 4, counting());
    assert_ok(ditto_checkpoint_save(m.strategy, path, NULL));
    for (int i = 0; i < test_trials(30); i++)
        assert_ok(ditto_checkpoint_restore(m.strategy, path, NULL, NULL));
    end_pushing(&m);
    read_model(&m, (const char *const[]){ "slot0", "slot1" }, &found);
    for_each_shard(&m, &found, check_counts);
    destroy_model(&m);
    assert_int_equal(unlink(path), 0);
}

/* Without locks, a save has elements that single updates have written, and a restore loses nothing else. */
static void rule_12_13_saves_and_restores_without_locks(void **state)
{
    char path[SCRATCH_NAME];
    scratch_name(path, "parameters");
    struct model m;
    double value[COUNT];
    ditto_checkpoint *file;
    ditto_optimizer_options sgd = OPTIONS(optimizer, .rule = DITTO_RULE_SGD, .learning_rate = 1);
    close(mkstemp(path));
    concurrency = DITTO_CONCURRENCY_HOGWILD;
    begin_pushing(&m, 3, 1, 4, sgd);
    concurrency = DITTO_CONCURRENCY_DEFAULT;
    for (int i = 0; i < test_trials(30); i++) {
        assert_ok(ditto_checkpoint_save(m.strategy, path, NULL));
        uint32_t most = atomic_load(&m.pushes) + 3; /* each worker may be in a push */
        assert_ok(ditto_checkpoint_open(NULL, path, &file));
        assert_ok(ditto_checkpoint_read(file, "layer/table", value, sizeof value));
        assert_ok(ditto_checkpoint_close(file));
        for (int k = 0; k < COUNT; k++)
            assert_true(value[k] == floor(value[k]) && value[k] <= 0 && -value[k] <= most);
        assert_ok(ditto_checkpoint_restore(m.strategy, path, NULL, NULL));
    }
    end_pushing(&m);
    destroy_model(&m);
    assert_int_equal(unlink(path), 0);
}

/* A mirrored strategy has no versions, and its checkpoint has none. */
/* Adds 1 in place to an element of each shard that only this worker writes. */
static ditto_status count_in_place(ditto_replica *self, void *user)
{
    struct model *m = user;
    void *elements;
    DITTO_TRY(ditto_component(self, m->table, &elements));
    for (size_t s = 0; s < m->shards; s++) {
        ditto_shard_info shard = DITTO_SHARD_INFO_INIT;
        DITTO_TRY(ditto_variable_shard(m->table, s, &shard));
        _Atomic double *own = (_Atomic double *)elements + shard.first_row * WIDTH + ditto_worker(self);
        atomic_store_explicit(own, atomic_load_explicit(own, memory_order_relaxed) + 1, memory_order_relaxed);
    }
    atomic_fetch_add(&m->pushes, 1);
    return DITTO_OK;
}

static void count_times(struct model *m, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        assert_ok(ditto_coordinator_schedule(m->coordinator, "count_in_place", NULL, NULL, NULL));
}

/* Checks that each shard has all functions that its version counts, and at most `more` others. */
static void check_sums(const struct model *m, const double *value, const uint64_t *version, double more)
{
    for (size_t s = 0; s < m->shards; s++) {
        const double *row = value + shard_of(m->table, s).first_row * WIDTH;
        double sum = row[0] + row[1] + row[2];
        assert_true(sum >= (double)version[s] && sum <= (double)version[s] + more);
    }
}

static void rule_12_13_changes_in_place_are_saved_and_restored(void **state)
{
    char path[SCRATCH_NAME];
    scratch_name(path, "parameters");
    close(mkstemp(path));
    for (size_t shards = 1; shards <= SHARDS; shards += SHARDS - 1) {
        struct model m;
        double value[COUNT];
        uint64_t version[SHARDS];
        ditto_checkpoint *file;
        uint32_t times = (uint32_t)test_trials(3000);
        make_servers(&m, 3, 1);
        concurrency = DITTO_CONCURRENCY_HOGWILD;
        make_table(&m, shards);
        concurrency = DITTO_CONCURRENCY_DEFAULT;
        assert_ok(ditto_coordinator_create(m.strategy, NULL, &m.coordinator));
        assert_ok(ditto_function_register("count_in_place", count_in_place, &m));
        count_times(&m, times);
        for (bool done = false; !done;) {
            done = atomic_load(&m.pushes) == times;
            if (done)
                assert_ok(ditto_coordinator_join(m.coordinator));
            assert_ok(ditto_checkpoint_save(m.strategy, path, NULL));
            assert_ok(ditto_checkpoint_open(NULL, path, &file));
            assert_ok(ditto_checkpoint_read(file, "layer/table", value, sizeof value));
            assert_ok(
                ditto_checkpoint_read(file, "ditto_versions/layer/table", version, shards * sizeof *version));
            assert_ok(ditto_checkpoint_close(file));
            check_sums(&m, value, version, done ? 0 : times);
        }
        /* A restore beside functions sets the version, to which theirs are added, and may lose changes. */
        count_times(&m, times);
        assert_ok(ditto_checkpoint_restore(m.strategy, path, NULL, NULL));
        assert_ok(ditto_coordinator_join(m.coordinator));
        for (size_t s = 0; s < shards; s++)
            assert_in_range(shard_of(m.table, s).version, times, 2 * times);
        assert_ok(ditto_checkpoint_restore(m.strategy, path, NULL, NULL));
        count_times(&m, 5);
        assert_ok(ditto_coordinator_join(m.coordinator));
        assert_ok(ditto_variable_read(m.table, value, sizeof value));
        for (size_t s = 0; s < shards; s++) {
            version[s] = shard_of(m.table, s).version;
            assert_int_equal(version[s], times + 5);
        }
        check_sums(&m, value, version, 0);
        assert_ok(ditto_function_unregister("count_in_place"));
        destroy_model(&m);
    }
    assert_int_equal(unlink(path), 0);
}

static void rule_12_13_checkpoints_of_mirrored_variables(void **state)
{
    char path[SCRATCH_NAME];
    scratch_name(path, "parameters");
    struct model m, mirrored = { .shards = 4 };
    struct saved found;
    ditto_optimizer_options options = counting();
    ditto_checkpoint *file;
    close(mkstemp(path));
    begin_pushing(&m, 2, 1, 4, counting());
    assert_ok(ditto_checkpoint_save(m.strategy, path, NULL));
    end_pushing(&m);
    assert_ok(
        ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 2), &mirrored.strategy));
    make_table(&mirrored, 4);
    assert_ok(ditto_optimizer_create(&mirrored.table, 1, &options, &mirrored.optimizer));
    assert_ok(ditto_checkpoint_restore(mirrored.strategy, path, NULL, NULL));
    assert_ok(ditto_checkpoint_save(mirrored.strategy, path, NULL));
    assert_ok(ditto_checkpoint_open(NULL, path, &file));
    assert_int_equal(contents_of(file).num_entries, 4); /* with rule/iterations */
    assert_ok(ditto_checkpoint_close(file));
    uint64_t before[4];
    read_versions(&m, before);
    assert_ok(ditto_checkpoint_restore(m.strategy, path, NULL, NULL));
    read_versions(&m, found.version);
    for (int s = 0; s < 4; s++)
        assert_int_equal(found.version[s], before[s] + 1);
    assert_ok(ditto_optimizer_destroy(mirrored.optimizer));
    assert_ok(ditto_variable_destroy(mirrored.table));
    assert_ok(ditto_strategy_destroy(mirrored.strategy));
    destroy_model(&m);
    assert_int_equal(unlink(path), 0);
}

static void rule_12_13_the_folder_of_versions_is_not_for_data(void **state)
{
    char path[SCRATCH_NAME];
    scratch_name(path, "parameters");
    struct model m;
    uint64_t number = 1;
    ditto_checkpoint_data data = { .name = "ditto_versions/layer/table",
                                   .tensor = { .data = &number, .dtype = DITTO_U64 } };
    close(mkstemp(path));
    make_servers(&m, 2, 1);
    ditto_checkpoint_options options = OPTIONS(checkpoint, .data = &data, .num_data = 1);
    assert_status(ditto_checkpoint_save(m.strategy, path, &options), DITTO_ERR_INVALID);
    assert_message("another name");
    data.name = "ditto_versions";
    assert_ok(ditto_checkpoint_save(m.strategy, path, &options));
    assert_ok(ditto_strategy_destroy(m.strategy));
    assert_int_equal(unlink(path), 0);
}

static _Atomic bool rule_hangs;

static void hang(const ditto_rule_range *range, void *user)
{
    atomic_store(&rule_hangs, true);
    for (;;)
        usleep(100000);
}

static ditto_status push_once(ditto_replica *self, void *user)
{
    double ones[COUNT] = { 1 };
    return ditto_apply(
        self, *(ditto_optimizer **)user,
        &(ditto_tensor){ .data = ones, .dtype = DITTO_F64, .rank = 2, .shape = { ROWS, WIDTH } }, NULL);
}

/* A worker has the lock of a shard for ever. */
static int save_beside_hanging_rule(void *path)
{
    struct model m = { .shards = 1 };
    ditto_optimizer_options options = OPTIONS(optimizer, .rule = DITTO_RULE_FUNCTION, .function = hang);
    REQUIRE(ditto_strategy_create(DITTO_PARAMETER_SERVER,
                                  &OPTIONS(strategy, .num_replicas = 1, .timeout_ms = 300),
                                  &m.strategy) == DITTO_OK);
    make_table(&m, 1);
    REQUIRE(ditto_optimizer_create(&m.table, 1, &options, &m.optimizer) == DITTO_OK);
    REQUIRE(ditto_checkpoint_save(m.strategy, path, NULL) == DITTO_OK);
    REQUIRE(ditto_coordinator_create(m.strategy, NULL, &m.coordinator) == DITTO_OK);
    REQUIRE(ditto_function_register("push_once", push_once, &m.optimizer) == DITTO_OK);
    REQUIRE(ditto_coordinator_schedule(m.coordinator, "push_once", NULL, NULL, NULL) == DITTO_OK);
    while (!atomic_load(&rule_hangs))
        usleep(100);
    REQUIRE(ditto_checkpoint_save(m.strategy, path, NULL) == DITTO_ERR_TIMED_OUT);
    REQUIRE(strstr(ditto_last_error()->message, "\"layer/table\"") != NULL);
    REQUIRE(ditto_checkpoint_restore(m.strategy, path, NULL, NULL) == DITTO_ERR_TIMED_OUT);
    REQUIRE(ditto_coordinator_destroy(m.coordinator) == DITTO_ERR_POISONED);
    return 0;
}

static void rule_12_13_a_save_beside_a_rule_that_hangs(void **state)
{
    char path[SCRATCH_NAME];
    scratch_name(path, "parameters");
    close(mkstemp(path));
    assert_int_equal(in_child(save_beside_hanging_rule, path, 60), 0);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_12_13_a_save_has_each_shard_at_one_version),
        cmocka_unit_test(rule_12_13_adam_is_saved_while_three_workers_push),
        cmocka_unit_test(rule_12_13_a_checkpointer_saves_in_the_background),
        cmocka_unit_test(rule_12_13_chosen_parameters_are_saved),
        cmocka_unit_test(rule_12_13_a_checkpoint_fits_other_workers_and_shards),
        cmocka_unit_test(rule_12_13_a_restore_while_workers_push),
        cmocka_unit_test(rule_12_13_saves_and_restores_without_locks),
        cmocka_unit_test(rule_12_13_changes_in_place_are_saved_and_restored),
        cmocka_unit_test(rule_12_13_checkpoints_of_mirrored_variables),
        cmocka_unit_test(rule_12_13_the_folder_of_versions_is_not_for_data),
        cmocka_unit_test(rule_12_13_a_save_beside_a_rule_that_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
