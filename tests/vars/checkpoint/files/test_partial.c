/* tests/vars/checkpoint/files/test_partial.c - saves and restores if there are other files at the path of
 * the checkpoint or in its folder, if system calls are refused, and if a file becomes too long. Such other
 * files are temporary files that killed processes have left, and files that are not regular. */
#include "support/support.h"

#include <ditto/checkpoint.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define ELEMENTS 20000
#define LEFT     ".0123456789abcdef.partial" /* the ending of a temporary file */
#define SECONDS  60                          /* the limit of a child process */

struct saved {
    ditto_strategy *strategy;
    ditto_variable *v;
};

static ditto_status begin(struct saved *s)
{
    ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { ELEMENTS } };
    DITTO_TRY(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 1), &s->strategy));
    return ditto_variable_create(s->strategy, &zeros, &OPTIONS(variable, .name = "v"), &s->v);
}

static ditto_status assign(const struct saved *s, float number)
{
    static float values[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = number;
    return ditto_variable_assign(s->v, DITTO_ASSIGN, values, sizeof values);
}

/* Returns the number that all elements are equal to. Returns -1 if they differ or cannot be read. */
static float look(const struct saved *s)
{
    static float values[ELEMENTS];
    if (ditto_variable_read(s->v, values, sizeof values) != DITTO_OK)
        return -1;
    for (int i = 0; i < ELEMENTS; i++)
        if (values[i] != values[0])
            return -1;
    return values[0];
}

static void end(const struct saved *s)
{
    assert_ok(ditto_variable_destroy(s->v));
    assert_ok(ditto_strategy_destroy(s->strategy));
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 ? st.st_mode & S_IFMT : 0;
}

static void remove_all(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rmdir(own_path(names[i])) != 0)
            unlink(own_path(names[i]));
}

/* -- files in the folder of the path. Earlier versions wrote to the file <path>.partial. -- */

static int save_beside_a_fifo(void *unused)
{
    struct saved s;
    REQUIRE(begin(&s) == DITTO_OK);
    REQUIRE(mkfifo(own_path("q.h5.partial"), 0600) == 0);
    REQUIRE(ditto_checkpoint_save(s.strategy, own_path("q.h5"), NULL) == DITTO_OK);
    REQUIRE(mode_of(own_path("q.h5.partial")) == S_IFIFO);
    REQUIRE(mode_of(own_path("q.h5")) == S_IFREG);
    return 0;
}

static void a_fifo_beside_the_path_does_not_prevent_a_save(void **state)
{
    assert_int_equal(in_child(save_beside_a_fifo, NULL, SECONDS), 0);
    empty_folder(own_folder);
}

static void a_link_beside_the_path_is_not_followed(void **state)
{
    struct saved s;
    struct stat st;
    assert_ok(begin(&s));
    put_file(own_folder, "/victim", "victim");
    assert_int_equal(symlink(own_path("victim"), own_path("q.h5.partial")), 0);
    assert_ok(ditto_checkpoint_save(s.strategy, own_path("q.h5"), NULL));
    assert_int_equal(stat(own_path("victim"), &st), 0);
    assert_int_equal(st.st_size, 6);
    assert_int_equal(mode_of(own_path("q.h5")), S_IFREG);
    empty_folder(own_folder);
    end(&s);
}

/* -- files at the path -- */

struct strange {
    const char *name, *kind;
    int system_errno;
};
static const struct strange strange[] = {
    { "fifo.h5", "is a FIFO", EEXIST },
    { "folder.h5", "is a directory", EISDIR },
    { "link.h5", "is a symbolic link", ELOOP },
    { "device.h5", "is a device", EEXIST },
};
#define STRANGE (sizeof strange / sizeof strange[0])

static void make_strange(void)
{
    assert_int_equal(mkfifo(own_path("fifo.h5"), 0600), 0);
    assert_int_equal(mkdir(own_path("folder.h5"), 0700), 0);
    assert_int_equal(symlink("nowhere", own_path("link.h5")), 0);
    (void)mknod(own_path("device.h5"), S_IFCHR | 0600, makedev(1, 3)); /* another /dev/null; only as root */
}

static void remove_strange(void)
{
    for (size_t i = 0; i < STRANGE; i++)
        remove_all(&strange[i].name, 1);
}

static int save_to_strange(void *unused)
{
    struct saved s;
    REQUIRE(begin(&s) == DITTO_OK);
    for (size_t i = 0; i < STRANGE; i++) {
        const char *path = own_path(strange[i].name);
        mode_t before = mode_of(path);
        int files = count_files(own_folder);
        if (before == 0)
            continue; /* only root can create a device */
        REQUIRE(ditto_checkpoint_save(s.strategy, path, NULL) == DITTO_ERR_IO);
        REQUIRE(ditto_last_error()->system_errno == strange[i].system_errno);
        REQUIRE(strstr(ditto_last_error()->message, strange[i].kind) != NULL);
        REQUIRE(mode_of(path) == before);
        REQUIRE(count_files(own_folder) == files);
    }
    return 0;
}

static void a_save_replaces_regular_files_only(void **state)
{
    make_strange();
    assert_int_equal(in_child(save_to_strange, NULL, SECONDS), 0);
    remove_strange();
}

static int restore_strange(void *unused)
{
    struct saved s;
    REQUIRE(begin(&s) == DITTO_OK);
    for (size_t i = 0; i < STRANGE; i++) {
        const char *path = own_path(strange[i].name);
        bool link = mode_of(path) == S_IFLNK;
        if (mode_of(path) == 0)
            continue;
        ditto_status status = ditto_checkpoint_restore(s.strategy, path, NULL, NULL);
        REQUIRE(status == (link ? DITTO_ERR_NOT_FOUND : DITTO_ERR_CORRUPT));
        REQUIRE(link || strstr(ditto_last_error()->message, strange[i].kind) != NULL);
        REQUIRE(strcmp(ditto_last_error()->function, "ditto_checkpoint_restore") == 0);
    }
    return 0;
}

static void a_restore_opens_regular_files_only(void **state)
{
    make_strange();
    assert_int_equal(in_child(restore_strange, NULL, SECONDS), 0);
    remove_strange();
}

static void a_link_to_a_checkpoint_is_restored(void **state)
{
    struct saved s;
    assert_ok(begin(&s));
    assert_ok(assign(&s, 5));
    assert_ok(ditto_checkpoint_save(s.strategy, own_path("real.h5"), NULL));
    assert_int_equal(symlink("real.h5", own_path("latest.h5")), 0);
    assert_ok(assign(&s, 6));
    assert_ok(ditto_checkpoint_restore(s.strategy, own_path("latest.h5"), NULL, NULL));
    assert_true(look(&s) == 5);
    empty_folder(own_folder);
    end(&s);
}

/* -- several saves at once -- */

enum { SAVERS = 4, SAVES = 40 };

static int save_often(float number)
{
    struct saved s;
    REQUIRE(begin(&s) == DITTO_OK);
    REQUIRE(assign(&s, number) == DITTO_OK);
    for (int i = 0; i < SAVES; i++)
        REQUIRE(ditto_checkpoint_save(s.strategy, own_path("shared.h5"), NULL) == DITTO_OK);
    return 0;
}

static void processes_that_save_to_one_path_leave_a_whole_checkpoint_at_any_time(void **state)
{
    pid_t child[SAVERS];
    int status, running = SAVERS, looks = 0;
    struct saved s;
    for (int i = 0; i < SAVERS; i++) {
        child[i] = fork();
        if (child[i] == 0)
            _exit(save_often((float)(i + 1)));
        assert_true(child[i] > 0);
    }
    assert_ok(begin(&s));
    while (running > 0) {
        if (waitpid(-1, &status, WNOHANG) > 0) {
            running--;
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        if (access(own_path("shared.h5"), F_OK) != 0)
            continue;
        assert_ok(ditto_checkpoint_restore(s.strategy, own_path("shared.h5"), NULL, NULL));
        assert_true(look(&s) >= 1 && look(&s) <= SAVERS);
        looks++;
    }
    printf("  %d processes, %d saves each, %d looks: each a whole checkpoint\n", SAVERS, SAVES, looks);
    assert_int_equal(count_files(own_folder), 1);
    empty_folder(own_folder);
    end(&s);
}

/* -- files that killed processes left, and long names -- */

static void files_that_killed_processes_left_are_removed_and_files_being_written_stay(void **state)
{
    struct saved s;
    ditto_checkpointer *c;
    assert_ok(begin(&s));
    put_file(own_folder, "/q.h5" LEFT, "left");
    put_file(own_folder, "/other.h5" LEFT, "left by a save to another path");
    assert_ok(ditto_checkpoint_save(s.strategy, own_path("q.h5"), NULL));
    assert_int_not_equal(access(own_path("q.h5" LEFT), F_OK), 0);
    assert_int_equal(access(own_path("other.h5" LEFT), F_OK), 0);
    put_file(own_folder, "/q.h5" LEFT, "being written");
    put_file(own_folder, "/checkpoint-7.h5" LEFT, "being written");
    put_file(own_folder, "/checkpoint-8.h5" LEFT, "left");
    put_file(own_folder, "/checkpoint-9.h5.partial", "left by an earlier version");
    put_file(own_folder, "/checkpoint-10.h5.notes.partial", "somebody else's");
    int writing[] = { open(own_path("q.h5" LEFT), O_RDWR), open(own_path("checkpoint-7.h5" LEFT), O_RDWR) };
    for (int i = 0; i < 2; i++)
        assert_int_equal(flock(writing[i], LOCK_EX | LOCK_NB), 0);
    assert_ok(ditto_checkpoint_save(s.strategy, own_path("q.h5"), NULL));
    assert_ok(ditto_checkpointer_create(s.strategy, own_folder, NULL, &c));
    assert_int_equal(access(own_path("q.h5" LEFT), F_OK), 0);
    assert_int_equal(access(own_path("checkpoint-7.h5" LEFT), F_OK), 0);
    assert_int_not_equal(access(own_path("checkpoint-8.h5" LEFT), F_OK), 0);
    assert_int_not_equal(access(own_path("checkpoint-9.h5.partial"), F_OK), 0);
    assert_int_equal(access(own_path("checkpoint-10.h5.notes.partial"), F_OK), 0);
    assert_ok(ditto_checkpointer_destroy(c));
    close(writing[0]);
    close(writing[1]);
    empty_folder(own_folder);
    end(&s);
}

static void names_as_long_as_the_file_system_allows_can_be_saved_to(void **state)
{
    struct saved s;
    char name[NAME_MAX + 1], path[NAME_MAX + 100];
    assert_ok(begin(&s));
    memset(name, 'n', NAME_MAX);
    name[NAME_MAX] = '\0';
    snprintf(path, sizeof path, "%s/%s", own_folder, name);
    assert_ok(ditto_checkpoint_save(s.strategy, path, NULL));
    assert_ok(ditto_checkpoint_restore(s.strategy, path, NULL, NULL));
    assert_int_equal(count_files(own_folder), 1);
    unlink(path);
    end(&s);
}

/* -- folders -- */

static void only_regular_files_and_links_to_them_are_checkpoints_of_a_folder(void **state)
{
    struct saved s;
    ditto_checkpointer *c;
    ditto_checkpoint_options what = DITTO_CHECKPOINT_OPTIONS_INIT;
    static const char *const names[] = { "checkpoint-50.h5", "checkpoint-60.h5", "checkpoint-70.h5" };
    char path[200];
    int64_t step;
    assert_ok(begin(&s));
    assert_int_equal(mkdir(own_path(names[0]), 0700), 0);
    assert_int_equal(mkfifo(own_path(names[1]), 0600), 0);
    assert_int_equal(symlink("nowhere", own_path(names[2])), 0);
    assert_status(ditto_checkpoint_latest(NULL, own_folder, NULL, path, sizeof path, NULL, &step),
                  DITTO_ERR_NOT_FOUND);
    assert_ok(ditto_checkpoint_save(s.strategy, own_path("other.h5"), NULL));
    assert_int_equal(symlink("other.h5", own_path("checkpoint-7.h5")), 0);
    assert_ok(ditto_checkpoint_latest(NULL, own_folder, NULL, path, sizeof path, NULL, &step));
    assert_int_equal(step, 7);
    assert_ok(ditto_checkpointer_create(s.strategy, own_folder, &OPTIONS(checkpointer, .keep = 1), &c));
    for (what.step = 8; what.step < 10; what.step++)
        assert_ok(ditto_checkpointer_save(c, &what));
    assert_ok(ditto_checkpoint_latest(NULL, own_folder, NULL, path, sizeof path, NULL, &step));
    assert_int_equal(step, 9);
    /* The link has been removed with the other old checkpoints. The file that it referred to is left. */
    assert_int_equal(count_files(own_folder), 5);
    assert_int_equal(access(own_path("other.h5"), F_OK), 0);
    assert_int_equal(readlink(own_path("checkpoint-7.h5"), path, sizeof path), -1);
    what.step = 60;
    assert_status(ditto_checkpointer_save(c, &what), DITTO_ERR_IO);
    assert_message("is a FIFO");
    assert_ok(ditto_checkpointer_destroy(c));
    remove_all(names, 3);
    empty_folder(own_folder);
    end(&s);
}

/* -- refused system calls -- */

static int save_without(const uint32_t *numbers, size_t count, int error_number, ditto_status expected)
{
    struct saved s;
    REQUIRE(begin(&s) == DITTO_OK);
    REQUIRE(assign(&s, 1) == DITTO_OK);
    REQUIRE(ditto_checkpoint_save(s.strategy, own_path("q.h5"), NULL) == DITTO_OK);
    REQUIRE(assign(&s, 2) == DITTO_OK);
    REQUIRE(refuse_system_calls_with(numbers, count, error_number));
    REQUIRE(ditto_checkpoint_save(s.strategy, own_path("q.h5"), NULL) == expected);
    REQUIRE(expected == DITTO_OK || ditto_last_error()->system_errno == error_number);
    REQUIRE(count_files(own_folder) == 1);
    REQUIRE(ditto_checkpoint_restore(s.strategy, own_path("q.h5"), NULL, NULL) == DITTO_OK);
    REQUIRE(look(&s) == (expected == DITTO_OK ? 2 : 1));
    return 0;
}

static int without_locks(void *unused)
{
    return save_without((const uint32_t[]){ SYS_flock, SYS_fallocate }, 2, EPERM, DITTO_OK);
}

static int with_interrupted_reservations(void *unused)
{
    return save_without((const uint32_t[]){ SYS_fallocate }, 1, EINTR, DITTO_OK);
}

static int without_renames(void *unused)
{
    return save_without((const uint32_t[]){ SYS_rename, SYS_renameat, SYS_renameat2 }, 3, EPERM,
                        DITTO_ERR_IO);
}

static void a_file_system_without_locks_and_reservation_is_saved_to(void **state)
{
    assert_int_equal(in_child(without_locks, NULL, SECONDS), 0);
}

static void a_save_ends_although_every_reservation_is_interrupted(void **state)
{
    assert_int_equal(in_child(with_interrupted_reservations, NULL, SECONDS), 0);
}

static void a_file_system_that_does_not_rename_is_an_error_and_keeps_the_old_one(void **state)
{
    assert_int_equal(in_child(without_renames, NULL, SECONDS), 0);
}

/* SIGXFSZ, which comes with EFBIG, has its default action here, so it would end the process. */
static int save_too_much(void *background)
{
    struct saved s;
    struct rlimit small = { 9000, 9000 };
    ditto_checkpointer *c;
    sigset_t pending;
    REQUIRE(begin(&s) == DITTO_OK);
    REQUIRE(assign(&s, 1) == DITTO_OK);
    REQUIRE(ditto_checkpoint_save(s.strategy, own_path("q.h5"), NULL) == DITTO_OK);
    REQUIRE(ditto_checkpointer_create(s.strategy, own_folder,
                                      &OPTIONS(checkpointer, .background = background != NULL),
                                      &c) == DITTO_OK);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    REQUIRE(ditto_checkpoint_save(s.strategy, own_path("q.h5"), NULL) == DITTO_ERR_IO);
    REQUIRE(ditto_last_error()->system_errno == EFBIG);
    ditto_status status = ditto_checkpointer_save(c, NULL);
    REQUIRE((background != NULL ? ditto_checkpointer_wait(c) : status) == DITTO_ERR_IO);
    REQUIRE(ditto_last_error()->system_errno == EFBIG);
    REQUIRE(strcmp(ditto_last_error()->function,
                   background != NULL ? "ditto_checkpointer_wait" : "ditto_checkpointer_save") == 0);
    REQUIRE(sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 0);
    REQUIRE(count_files(own_folder) == 1);
    REQUIRE(ditto_checkpoint_restore(s.strategy, own_path("q.h5"), NULL, NULL) == DITTO_OK);
    return 0;
}

static void a_file_beyond_the_size_limit_is_an_error_and_no_signal(void **state)
{
    assert_int_equal(in_child(save_too_much, NULL, SECONDS), 0);
    assert_int_equal(in_child(save_too_much, own_folder, SECONDS), 0);
}

/* -- messages -- */

static void variables_that_a_file_lacks_are_counted_and_the_first_are_named(void **state)
{
    enum { MANY = 40 };
    ditto_variable *v[MANY];
    struct saved s;
    assert_ok(begin(&s));
    assert_ok(ditto_checkpoint_save(s.strategy, own_path("q.h5"), NULL));
    for (int i = 0; i < MANY; i++) {
        char name[60];
        ditto_tensor scalar = { .dtype = DITTO_F32 };
        snprintf(name, sizeof name, "a_layer_with_a_long_name/and_a_weight_of_it_%02d", i);
        assert_ok(ditto_variable_create(s.strategy, &scalar, &OPTIONS(variable, .name = name), &v[i]));
    }
    assert_status(ditto_checkpoint_restore(s.strategy, own_path("q.h5"), NULL, NULL), DITTO_ERR_NOT_FOUND);
    assert_message("weight_of_it_00\", ");
    assert_message(
        " and 37 more; nothing was restored (set options->partial to leave such variables unchanged)");
    for (int i = 0; i < MANY; i++)
        assert_ok(ditto_variable_destroy(v[i]));
    end(&s);
}

static void errors_name_the_function_that_was_called(void **state)
{
    struct saved s;
    assert_ok(begin(&s));
    assert_status(ditto_checkpoint_restore(s.strategy, own_path("none.h5"), NULL, NULL), DITTO_ERR_NOT_FOUND);
    assert_string_equal(ditto_last_error()->function, "ditto_checkpoint_restore");
    assert_int_equal(ditto_last_error()->system_errno, ENOENT);
    assert_status(ditto_checkpoint_restore(s.strategy, NULL, NULL, NULL), DITTO_ERR_INVALID);
    assert_string_equal(ditto_last_error()->function, "ditto_checkpoint_restore");
    assert_status(ditto_checkpoint_save(s.strategy, own_path("none/q.h5"), NULL), DITTO_ERR_IO);
    assert_string_equal(ditto_last_error()->function, "ditto_checkpoint_save");
    assert_int_equal(ditto_last_error()->system_errno, ENOENT);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fifo_beside_the_path_does_not_prevent_a_save),
        cmocka_unit_test(a_link_beside_the_path_is_not_followed),
        cmocka_unit_test(a_save_replaces_regular_files_only),
        cmocka_unit_test(a_restore_opens_regular_files_only),
        cmocka_unit_test(a_link_to_a_checkpoint_is_restored),
        cmocka_unit_test(processes_that_save_to_one_path_leave_a_whole_checkpoint_at_any_time),
        cmocka_unit_test(files_that_killed_processes_left_are_removed_and_files_being_written_stay),
        cmocka_unit_test(names_as_long_as_the_file_system_allows_can_be_saved_to),
        cmocka_unit_test(only_regular_files_and_links_to_them_are_checkpoints_of_a_folder),
        cmocka_unit_test(a_file_system_without_locks_and_reservation_is_saved_to),
        cmocka_unit_test(a_save_ends_although_every_reservation_is_interrupted),
        cmocka_unit_test(a_file_system_that_does_not_rename_is_an_error_and_keeps_the_old_one),
        cmocka_unit_test(a_file_beyond_the_size_limit_is_an_error_and_no_signal),
        cmocka_unit_test(variables_that_a_file_lacks_are_counted_and_the_first_are_named),
        cmocka_unit_test(errors_name_the_function_that_was_called),
    };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
