/* tests/hosts/test_host_checkpoints.c - checkpoints of a strategy over several hosts are those of one host.
 */
#include "support/host_programs.h"

#include <ditto/checkpoint.h>

#include <unistd.h>

enum { COUNT = 5000 };

static ditto_status change(ditto_replica *self, void *argument)
{
    ditto_variable *const *v = argument;
    float value[COUNT];
    for (int i = 0; i < COUNT; i++)
        value[i] = (float)(i % 10) + (float)ditto_replica_id(self);
    DITTO_TRY(ditto_assign(self, v[0], DITTO_ASSIGN_ADD, value));
    return ditto_assign(self, v[1], DITTO_ASSIGN_ADD, value);
}

/* The file of several hosts has the bytes of that of one host, because it says nothing of hosts. */
static ditto_status note_file(ditto_strategy *strategy, struct program *p, const char *path)
{
    static char bytes[200000];
    FILE *file = properties_of_strategy(strategy).first_local_replica == 0 ? fopen(path, "rb") : NULL;
    if (file == NULL)
        return DITTO_OK;
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    note_cross(strategy, p, bytes, length);
    return DITTO_OK;
}

/* Only the first host has a path to the file. */
static const char *path_of(ditto_strategy *strategy, const struct program *p, char *path, size_t size)
{
    snprintf(path, size, "%s/a",
             properties_of_strategy(strategy).first_local_replica == 0 ? p->folder : "/nowhere");
    return path;
}

static ditto_status note_values(ditto_strategy *strategy, struct program *p, ditto_variable *const *v)
{
    float found[COUNT];
    for (int k = 0; k < 2; k++) {
        DITTO_TRY(ditto_variable_read(v[k], found, sizeof found));
        note_cross(strategy, p, found, sizeof found);
    }
    return DITTO_OK;
}

static ditto_status save_and_restore(ditto_strategy *strategy, struct program *p)
{
    ditto_variable *v[2];
    char path[200];
    DITTO_TRY(
        program_variable(strategy, "m", DITTO_ON_WRITE, DITTO_AGGREGATE_MEAN, DITTO_F32, COUNT, NULL, &v[0]));
    DITTO_TRY(
        program_variable(strategy, "s", DITTO_ON_READ, DITTO_AGGREGATE_SUM, DITTO_F32, COUNT, NULL, &v[1]));
    DITTO_TRY(ditto_strategy_run(strategy, change, v));
    DITTO_TRY(ditto_checkpoint_save(strategy, path_of(strategy, p, path, sizeof path), NULL));
    DITTO_TRY(note_file(strategy, p, path));
    DITTO_TRY(ditto_strategy_run(strategy, change, v));
    DITTO_TRY(ditto_checkpoint_restore(strategy, path, NULL, NULL));
    DITTO_TRY(note_values(strategy, p, v));
    for (int k = 0; k < 2; k++)
        DITTO_TRY(ditto_variable_destroy(v[k]));
    return DITTO_OK;
}

static void the_first_host_writes_and_reads_the_file(void **state)
{
    play_everywhere(save_and_restore);
}

/* -- a checkpointer -- */

static ditto_status save_many(ditto_strategy *strategy, struct program *p)
{
    ditto_variable *v[2];
    ditto_checkpointer *checkpointer;
    ditto_checkpoint *file;
    ditto_checkpoint_options saving = DITTO_CHECKPOINT_OPTIONS_INIT;
    char folder[200], path[300], *name;
    float found[COUNT];
    int64_t step;
    (void)path_of(strategy, p, folder, sizeof folder);
    DITTO_TRY(
        program_variable(strategy, "m", DITTO_ON_WRITE, DITTO_AGGREGATE_MEAN, DITTO_F32, COUNT, NULL, &v[0]));
    DITTO_TRY(
        program_variable(strategy, "s", DITTO_ON_READ, DITTO_AGGREGATE_SUM, DITTO_F32, COUNT, NULL, &v[1]));
    DITTO_TRY(
        ditto_checkpointer_create(strategy, folder, &OPTIONS(checkpointer, .background = 1), &checkpointer));
    for (saving.step = 1; saving.step <= 8; saving.step++) {
        DITTO_TRY(ditto_strategy_run(strategy, change, v));
        DITTO_TRY(ditto_checkpointer_save(checkpointer, &saving));
    }
    DITTO_TRY(ditto_checkpointer_wait(checkpointer));
    DITTO_TRY(ditto_checkpoint_latest(strategy, folder, NULL, path, sizeof path, NULL, &step));
    note_cross(strategy, p, &step, sizeof step);
    name = strrchr(path, '/');
    if (name == NULL)
        return ditto_fail(NULL, 1, "the path \"%s\" has no folder", path);
    note_cross(strategy, p, name, strlen(name));
    DITTO_TRY(ditto_checkpoint_open(strategy, path, &file));
    DITTO_TRY(ditto_checkpoint_read(file, "m", found, sizeof found));
    note_cross(strategy, p, found, sizeof found);
    DITTO_TRY(ditto_checkpoint_close(file));
    DITTO_TRY(ditto_checkpointer_destroy(checkpointer));
    for (int k = 0; k < 2; k++)
        DITTO_TRY(ditto_variable_destroy(v[k]));
    return DITTO_OK;
}

static void a_checkpointer_writes_on_the_first_host(void **state)
{
    play_everywhere(save_many);
}

/* -- errors -- */

static ditto_status expect_status(ditto_status found, ditto_status expected, const char *text)
{
    if (found == expected && strstr(ditto_last_error()->message, text) != NULL)
        return DITTO_OK;
    return ditto_fail(NULL, 1, "%s instead of %s: %.300s", ditto_status_name(found),
                      ditto_status_name(expected), ditto_last_error()->message);
}

static ditto_status fail_to_read_and_write(ditto_strategy *strategy, struct program *p)
{
    ditto_variable *v;
    char path[200];
    float zeros[COUNT] = { 0 };
    DITTO_TRY(
        program_variable(strategy, "m", DITTO_ON_WRITE, DITTO_AGGREGATE_MEAN, DITTO_F32, COUNT, NULL, &v));
    for (int i = 0; i < 3; i++) {
        DITTO_TRY(expect_status(ditto_checkpoint_restore(strategy, "/nowhere/at/all", NULL, NULL),
                                DITTO_ERR_NOT_FOUND, "/nowhere/at/all"));
        DITTO_TRY(expect_status(ditto_checkpoint_save(strategy, "/nowhere/at/all", NULL), DITTO_ERR_IO,
                                "/nowhere/at"));
        DITTO_TRY(ditto_checkpoint_save(strategy, path_of(strategy, p, path, sizeof path), NULL));
        DITTO_TRY(ditto_variable_assign(v, DITTO_ASSIGN, zeros, sizeof zeros));
    }
    note_cross(strategy, p, zeros, sizeof zeros);
    return ditto_variable_destroy(v);
}

static void an_error_of_the_first_host_is_returned_by_all(void **state)
{
    play_everywhere(fail_to_read_and_write);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_host_writes_and_reads_the_file),
        cmocka_unit_test(a_checkpointer_writes_on_the_first_host),
        cmocka_unit_test(an_error_of_the_first_host_is_returned_by_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
