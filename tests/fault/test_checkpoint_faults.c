/* tests/fault/test_checkpoint_faults.c - checkpoints that are truncated, damaged or foreign, and saves that
 * meet a full disk, a missing permission or a kill. A file that is refused changes no variable, and after a
 * failed save the previous checkpoint can still be loaded. */
#include "support/support.h"

#include <ditto/checkpoint.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Later versions of the HDF5 library have other functions under the same names. */
#define H5_USE_110_API
#include <hdf5.h>

#include "vars/checkpoint/checkpoint_support.h"

#define ELEMENTS 3000

/* Two variables. All their elements have the same number, by which a checkpoint is recognised. */
struct saved {
    ditto_strategy *strategy;
    ditto_variable *v[2];
};

static ditto_status assign(const struct saved *s, float number)
{
    static float values[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = number;
    for (int k = 0; k < 2; k++)
        DITTO_TRY(ditto_variable_assign(s->v[k], DITTO_ASSIGN, values, sizeof values));
    return DITTO_OK;
}

/* Returns the number that all elements have, or -1 if they differ or cannot be read. */
static float look(const struct saved *s)
{
    static float values[2][ELEMENTS];
    for (int k = 0; k < 2; k++)
        if (ditto_variable_read(s->v[k], values[k], sizeof values[k]) != DITTO_OK)
            return -1;
    for (int i = 0; i < 2 * ELEMENTS; i++)
        if (values[i / ELEMENTS][i % ELEMENTS] != values[0][0])
            return -1;
    return values[0][0];
}

static ditto_status begin(struct saved *s, uint32_t replicas)
{
    static const char *const names[] = { "a", "b/c" };
    ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { ELEMENTS } };
    DITTO_TRY(
        ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = replicas), &s->strategy));
    for (int k = 0; k < 2; k++)
        DITTO_TRY(ditto_variable_create(s->strategy, &zeros, &OPTIONS(variable, .name = names[k]), &s->v[k]));
    return DITTO_OK;
}

static void end(struct saved *s)
{
    assert_ok(ditto_variable_destroy(s->v[0]));
    assert_ok(ditto_variable_destroy(s->v[1]));
    assert_ok(ditto_strategy_destroy(s->strategy));
}

/* -- Damaged files -- */

static void write_file(const char *path, const unsigned char *bytes, size_t count)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    assert_int_equal(write(fd, bytes, count), count);
    close(fd);
}

/* Expects that restoring `path` fails with one of two statuses and a message that has the path, and does not
 * change the variables, whose elements are 7. */
static void expect_refused(const struct saved *s, const char *path, ditto_status one, ditto_status other)
{
    ditto_status status = ditto_checkpoint_restore(s->strategy, path, NULL, NULL);
    if (status != one && status != other)
        fail_msg("%s gave %s: %s", path, ditto_status_name(status), ditto_last_error()->message);
    assert_non_null(strstr(ditto_last_error()->message, path));
    assert_true(look(s) == 7);
}

static void cut_and_flipped_files_are_refused(void **state)
{
    struct saved s;
    unsigned char *bytes;
    uint64_t random = test_seed(61);
    int trials = test_trials(1000);
    assert_ok(begin(&s, 2));
    assert_ok(assign(&s, 3));
    assert_ok(ditto_checkpoint_save(s.strategy, own_path("good.h5"), NULL));
    size_t count = read_file(own_path("good.h5"), &bytes);
    assert_ok(assign(&s, 7));
    for (int i = 0; i < trials; i++) {
        write_file(own_path("cut.h5"), bytes, test_random(&random) % count);
        expect_refused(&s, own_path("cut.h5"), DITTO_ERR_CORRUPT, DITTO_ERR_CORRUPT);
        size_t at = test_random(&random) % count;
        unsigned char flip = (unsigned char)(1 + test_random(&random) % 255);
        bytes[at] ^= flip;
        write_file(own_path("flipped.h5"), bytes, count);
        /* DITTO_ERR_UNSUPPORTED if the byte belongs to the number of the format. */
        expect_refused(&s, own_path("flipped.h5"), DITTO_ERR_CORRUPT, DITTO_ERR_UNSUPPORTED);
        bytes[at] ^= flip;
    }
    /* Flips one bit of each of the first 64 bytes. They hold all numbers of the user block, and the
     * checksum. */
    for (size_t at = 0; at < 64; at++) {
        bytes[at] ^= (unsigned char)(1 << at % 8);
        write_file(own_path("flipped.h5"), bytes, count);
        expect_refused(&s, own_path("flipped.h5"), DITTO_ERR_CORRUPT, DITTO_ERR_UNSUPPORTED);
        bytes[at] ^= (unsigned char)(1 << at % 8);
    }
    write_file(own_path("flipped.h5"), bytes, count);
    assert_ok(ditto_checkpoint_restore(s.strategy, own_path("flipped.h5"), NULL, NULL));
    assert_true(look(&s) == 3);
    printf("  %d truncations, %d flips of a file of %zu bytes: all refused, nothing restored\n", trials,
           trials + 64, count);
    free(bytes);
    end(&s);
}

static void foreign_files_are_refused(void **state)
{
    struct saved s;
    unsigned char *bytes;
    assert_ok(begin(&s, 2));
    assert_ok(assign(&s, 7));
    assert_ok(ditto_checkpoint_save(s.strategy, own_path("good.h5"), NULL));
    size_t count = read_file(own_path("good.h5"), &bytes);
    put_file(own_folder, "/empty.h5", "");
    expect_refused(&s, own_path("empty.h5"), DITTO_ERR_CORRUPT, DITTO_ERR_CORRUPT);
    write_file(own_path("plain.h5"), bytes + 4096, count - 4096); /* valid HDF5, but no checkpoint */
    expect_refused(&s, own_path("plain.h5"), DITTO_ERR_CORRUPT, DITTO_ERR_CORRUPT);
    assert_message("is not a checkpoint of ditto");
    bytes[8] = 2; /* a later version of the format */
    write_file(own_path("newer.h5"), bytes, count);
    expect_refused(&s, own_path("newer.h5"), DITTO_ERR_UNSUPPORTED, DITTO_ERR_UNSUPPORTED);
    assert_message("has format 2, and this version reads up to 1");
    free(bytes);
    assert_int_equal(mkfifo(own_path("fifo.h5"), 0600), 0);
    expect_refused(&s, own_path("fifo.h5"), DITTO_ERR_CORRUPT, DITTO_ERR_CORRUPT);
    expect_refused(&s, own_folder, DITTO_ERR_CORRUPT, DITTO_ERR_CORRUPT);
    expect_refused(&s, own_path("nothing.h5"), DITTO_ERR_NOT_FOUND, DITTO_ERR_NOT_FOUND);
    expect_refused(&s, own_path("good.h5/x"), DITTO_ERR_NOT_FOUND, DITTO_ERR_NOT_FOUND);
    end(&s);
}

/* Writes a checkpoint with a valid checksum, after `spoil`, if it is not NULL, has changed its contents. */
static void seal(void (*spoil)(hid_t file, hid_t set), const char *name)
{
    double zero = 0;
    int64_t step = 1;
    hid_t creation = H5Pcreate(H5P_FILE_CREATE), scalar = H5Screate(H5S_SCALAR), text = H5Tcopy(H5T_C_S1);
    H5Pset_userblock(creation, 4096);
    H5Tset_size(text, 8);
    hid_t file = H5Fcreate(own_path(name), H5F_ACC_TRUNC, creation, H5P_DEFAULT);
    hid_t set = H5Dcreate2(file, "a", H5T_NATIVE_DOUBLE, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &zero);
    const struct {
        hid_t object;
        const char *name, *text;
    } words[] = { { file, "ditto_version", "0.1.0" },
                  { set, "dtype", "f64" },
                  { set, "synchronization", "ON_READ" },
                  { set, "aggregation", "SUM" } };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char word[8] = "";
        snprintf(word, sizeof word, "%s", words[i].text);
        hid_t a = H5Acreate2(words[i].object, words[i].name, text, scalar, H5P_DEFAULT, H5P_DEFAULT);
        H5Awrite(a, text, word);
        H5Aclose(a);
    }
    int8_t trainable = 0;
    hid_t a = H5Acreate2(set, "trainable", H5T_NATIVE_INT8, scalar, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, H5T_NATIVE_INT8, &trainable);
    H5Aclose(a);
    a = H5Acreate2(file, "ditto_step", H5T_NATIVE_INT64, scalar, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, H5T_NATIVE_INT64, &step);
    H5Aclose(a);
    if (spoil != NULL)
        spoil(file, set);
    H5Dclose(set);
    H5Fclose(file);
    H5Tclose(text);
    H5Sclose(scalar);
    H5Pclose(creation);
    seal_file(own_path(name));
}

/* Replaces an attribute of one element by an attribute of `count` zeros. */
static void put_many(hid_t object, const char *name, hid_t type, size_t bytes, hsize_t count)
{
    void *values = calloc(count, bytes);
    hid_t space = H5Screate_simple(1, &count, NULL);
    H5Adelete(object, name);
    hid_t a = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, type, values);
    H5Aclose(a);
    H5Sclose(space);
    free(values);
}

static void spoil_step(hid_t file, hid_t set)
{
    put_many(file, "ditto_step", H5T_NATIVE_INT64, 8, 4000);
}
static void spoil_trainable(hid_t file, hid_t set)
{
    put_many(set, "trainable", H5T_NATIVE_INT64, 8, 4000);
}
static void spoil_version(hid_t file, hid_t set)
{
    hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 8);
    put_many(file, "ditto_version", text, 8, 4000);
    H5Tclose(text);
}
static void spoil_dtype(hid_t file, hid_t set)
{
    hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 8);
    put_many(set, "dtype", text, 8, 1); /* an empty text */
    H5Tclose(text);
}
static void lose_aggregation(hid_t file, hid_t set)
{
    H5Adelete(set, "aggregation");
}
static void add_set_of_rank_9(hid_t file, hid_t set)
{
    hsize_t shape[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    hid_t space = H5Screate_simple(9, shape, NULL);
    H5Dclose(H5Dcreate2(file, "b", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
}

static void files_with_a_valid_checksum_and_wrong_contents_are_refused(void **state)
{
    static void (*const spoils[])(hid_t, hid_t) = { spoil_step,  spoil_trainable,  spoil_version,
                                                    spoil_dtype, lose_aggregation, add_set_of_rank_9 };
    struct saved s;
    ditto_checkpoint *file;
    double value;
    assert_ok(begin(&s, 2));
    assert_ok(assign(&s, 7));
    for (size_t i = 0; i < sizeof spoils / sizeof spoils[0]; i++) {
        seal(spoils[i], "spoilt.h5");
        expect_refused(&s, own_path("spoilt.h5"), DITTO_ERR_CORRUPT, DITTO_ERR_CORRUPT);
    }
    seal(NULL, "sound.h5");
    assert_ok(ditto_checkpoint_open(NULL, own_path("sound.h5"), &file));
    assert_ok(ditto_checkpoint_read(file, "a", &value, sizeof value));
    assert_ok(ditto_checkpoint_close(file));
    end(&s);
}

/* -- Checkpoints that cannot be written -- */

/* Saves a checkpoint, and tries to save another after `limit` has left too little space for it. Runs in a
 * child process, because `limit` cannot be undone. */
static int save_twice(const char *where, int (*limit)(const char *where))
{
    struct saved s;
    char path[200];
    snprintf(path, sizeof path, "%s/room.h5", where);
    REQUIRE(begin(&s, 2) == DITTO_OK);
    REQUIRE(assign(&s, 7) == DITTO_OK);
    REQUIRE(ditto_checkpoint_save(s.strategy, path, NULL) == DITTO_OK);
    int files = count_files(where);
    REQUIRE(limit(where) == 0);
    REQUIRE(assign(&s, 8) == DITTO_OK);
    REQUIRE(ditto_checkpoint_save(s.strategy, path, NULL) == DITTO_ERR_IO);
    printf("  %s\n", ditto_last_error()->message);
    REQUIRE(strstr(ditto_last_error()->message, path) != NULL);
    REQUIRE(count_files(where) <= files + 1); /* `limit` may have written one file */
    REQUIRE(ditto_checkpoint_restore(s.strategy, path, NULL, NULL) == DITTO_OK);
    REQUIRE(look(&s) == 7);
    return 0;
}

static int limit_files(const char *where)
{
    struct rlimit small = { 9000, 9000 };
    signal(SIGXFSZ, SIG_IGN);
    return setrlimit(RLIMIT_FSIZE, &small);
}

static int too_large(void *unused)
{
    return save_twice(own_folder, limit_files);
}

static void a_limit_on_file_sizes_keeps_the_old_checkpoint(void **state)
{
    assert_int_equal(in_child(too_large, NULL, 60), 0);
}

#define NO_MOUNT 77

static int fill_disk(const char *where)
{
    static char block[4096];
    char path[200];
    snprintf(path, sizeof path, "%s/filler", where);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    while (fd >= 0 && write(fd, block, sizeof block) > 0)
        continue;
    return fd < 0 || close(fd) != 0;
}

static int full_disk(void *unused)
{
    char disk[100];
    snprintf(disk, sizeof disk, "%s/disk", own_folder);
    if (mkdir(disk, 0700) != 0 || mount("tmpfs", disk, "tmpfs", 0, "size=2m") != 0)
        return NO_MOUNT;
    int failed = save_twice(disk, fill_disk);
    umount(disk);
    return failed;
}

static void a_full_disk_keeps_the_old_checkpoint(void **state)
{
    int found = in_child(full_disk, NULL, 60);
    rmdir(own_path("disk"));
    if (found == NO_MOUNT) {
        printf("  this process may not mount a small file system\n");
        skip();
    }
    assert_int_equal(found, 0);
}

static int forbid(const char *where)
{
    return chmod(where, 0555) != 0 || (geteuid() == 0 && setuid(65534) != 0);
}

static int read_only_folder(void *unused)
{
    struct saved s;
    char inner[100], path[120];
    snprintf(inner, sizeof inner, "%s/closed", own_folder);
    snprintf(path, sizeof path, "%s/room.h5", inner);
    REQUIRE(mkdir(inner, 0755) == 0);
    REQUIRE(begin(&s, 2) == DITTO_OK);
    REQUIRE(assign(&s, 7) == DITTO_OK);
    REQUIRE(ditto_checkpoint_save(s.strategy, path, NULL) == DITTO_OK);
    REQUIRE(chmod(path, 0444) == 0);
    REQUIRE(forbid(inner) == 0);
    REQUIRE(assign(&s, 8) == DITTO_OK);
    REQUIRE(ditto_checkpoint_save(s.strategy, path, NULL) == DITTO_ERR_IO);
    REQUIRE(ditto_last_error()->system_errno == EACCES);
    REQUIRE(ditto_checkpoint_restore(s.strategy, path, NULL, NULL) == DITTO_OK);
    REQUIRE(look(&s) == 7);
    return 0;
}

static void a_read_only_folder_keeps_the_old_checkpoint(void **state)
{
    assert_int_equal(in_child(read_only_folder, NULL, 60), 0);
    chmod(own_path("closed"), 0755);
    empty_folder(own_path("closed"));
    rmdir(own_path("closed"));
}

static int fail_behind(void *unused)
{
    struct saved s;
    ditto_checkpointer *c;
    REQUIRE(begin(&s, 2) == DITTO_OK);
    REQUIRE(ditto_checkpointer_create(s.strategy, own_folder,
                                      &OPTIONS(checkpointer, .background = 1, .prefix = "behind"),
                                      &c) == DITTO_OK);
    REQUIRE(limit_files(own_folder) == 0);
    /* The first call only copies the variables. The second one returns the error of the first checkpoint. */
    REQUIRE(ditto_checkpointer_save(c, NULL) == DITTO_OK);
    REQUIRE(ditto_checkpointer_save(c, NULL) == DITTO_ERR_IO);
    REQUIRE(strstr(ditto_last_error()->message, "behind-0.h5") != NULL);
    REQUIRE(ditto_checkpointer_save(c, NULL) == DITTO_OK);
    REQUIRE(ditto_checkpointer_wait(c) == DITTO_ERR_IO);
    REQUIRE(ditto_checkpointer_wait(c) == DITTO_OK); /* the error is returned once */
    REQUIRE(ditto_checkpointer_save(c, NULL) == DITTO_OK);
    REQUIRE(ditto_checkpointer_destroy(c) == DITTO_ERR_IO);
    return 0;
}

static void an_error_in_the_background_is_reported_once(void **state)
{
    assert_int_equal(in_child(fail_behind, NULL, 60), 0);
}

/* -- Processes that are killed -- */

/* Saves the steps 1, 2, 3 and so on until it is killed. Stores in *told the last step that is on the disk, or
 * 0 if the first one is still being written. */
static void save_for_ever(int background, _Atomic int64_t *told)
{
    struct saved s;
    ditto_checkpointer *c;
    ditto_checkpoint_options what = DITTO_CHECKPOINT_OPTIONS_INIT;
    if (begin(&s, 2) != DITTO_OK ||
        ditto_checkpointer_create(s.strategy, own_folder,
                                  &OPTIONS(checkpointer, .keep = 2, .background = background),
                                  &c) != DITTO_OK)
        _exit(1);
    for (what.step = 1;; what.step++) {
        if (assign(&s, (float)what.step) != DITTO_OK || ditto_checkpointer_save(c, &what) != DITTO_OK)
            _exit(2);
        /* In the background, a save returns when the previous step is on the disk. */
        atomic_store(told, background ? what.step - 1 : what.step);
    }
}

/* Starts a process that saves for ever, and kills it after so many microseconds. They begin when the process
 * has reported a step, or, if `early` is set, at once. Returns the last step that it reported, or -1. */
static int64_t kill_after(int background, bool early, unsigned microseconds)
{
    _Atomic int64_t *told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(told != MAP_FAILED);
    atomic_store(told, -1);
    pid_t child = fork();
    int status;
    if (child == 0)
        save_for_ever(background, told);
    assert_true(child > 0);
    for (int i = 0; i < 12000 && !early && atomic_load(told) < 0; i++)
        sleep_ms(10);
    nanosleep(&(struct timespec){ .tv_nsec = (long)microseconds * 1000 }, NULL);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    int64_t last = atomic_load(told);
    munmap((void *)told, 4096);
    return last;
}

static void a_killed_process_leaves_a_complete_checkpoint(void **state)
{
    struct saved s;
    uint64_t random = test_seed(62);
    int kills = test_trials(50), found = 0, with_third_file = 0;
    for (int i = 0; i < kills; i++) {
        char path[200];
        int64_t step;
        /* At the fork this process has no strategy, because the child would not have its threads. */
        empty_folder(own_folder);
        int64_t told = kill_after(i % 2, i % 5 == 4, (unsigned)(20000 + test_random(&random) % 180000));
        /* The third file is being written, or the oldest has not been removed yet. */
        with_third_file += count_files(own_folder) > 2;
        ditto_status status = ditto_checkpoint_latest(NULL, own_folder, NULL, path, sizeof path, NULL, &step);
        /* The process may be killed before the first file has its final name. */
        if (status == DITTO_ERR_NOT_FOUND && told <= 0)
            continue;
        assert_ok(status);
        assert_true(step >= told);
        assert_ok(begin(&s, 3));
        assert_ok(ditto_checkpoint_restore(s.strategy, path, NULL, NULL));
        assert_true(look(&s) == (float)step);
        end(&s);
        found++;
    }
    printf("  %d kills: %d left checkpoints, of which the newest was complete; %d left a third file\n", kills,
           found, with_third_file);
    assert_true(found > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_and_flipped_files_are_refused),
        cmocka_unit_test(foreign_files_are_refused),
        cmocka_unit_test(files_with_a_valid_checksum_and_wrong_contents_are_refused),
        cmocka_unit_test(a_limit_on_file_sizes_keeps_the_old_checkpoint),
        cmocka_unit_test(a_full_disk_keeps_the_old_checkpoint),
        cmocka_unit_test(a_read_only_folder_keeps_the_old_checkpoint),
        cmocka_unit_test(an_error_in_the_background_is_reported_once),
        cmocka_unit_test(a_killed_process_leaves_a_complete_checkpoint),
    };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
