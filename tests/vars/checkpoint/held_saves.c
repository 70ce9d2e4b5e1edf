/* tests/vars/checkpoint/held_saves.c - see held_saves.h. */
#undef _FILE_OFFSET_BITS /* otherwise pread would be a macro for pread64, and both are defined here */
#include "vars/checkpoint/held_saves.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Atomic bool holding;
_Atomic int in_held_call;
_Atomic uint64_t last_flushed;
_Atomic int joining;

/* Only a restore reads this number of bytes at once. It waits there while `holding` is true. */
enum { HELD_BYTES = 4 * ELEMENTS };

#if !SANITIZED
static ssize_t read_at(int fd, void *to, size_t bytes, off_t offset)
{
    atomic_fetch_add(&in_held_call, bytes == HELD_BYTES);
    while (bytes == HELD_BYTES && atomic_load(&holding))
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    atomic_fetch_sub(&in_held_call, bytes == HELD_BYTES);
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
    struct stat st;
    if (fstat(fd, &st) == 0)
        atomic_store(&last_flushed, st.st_ino);
    atomic_fetch_add(&in_held_call, 1);
    while (atomic_load(&holding))
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    atomic_fetch_sub(&in_held_call, 1);
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

bool await(_Atomic int *count, int wanted)
{
    for (int i = 0; i < SECONDS * 1000; i++) {
        if (atomic_load(count) >= wanted)
            return true;
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    return false;
}

ditto_status begin_with(struct saved *s, const char *prefix, const ditto_strategy_options *options)
{
    ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { ELEMENTS } };
    DITTO_TRY(ditto_strategy_create(DITTO_MIRRORED, options, &s->strategy));
    DITTO_TRY(ditto_variable_create(s->strategy, &zeros, &OPTIONS(variable, .name = "v"), &s->v));
    return ditto_checkpointer_create(
        s->strategy, own_folder,
        &OPTIONS(checkpointer, .background = 1, .prefix = prefix, .keep = UINT32_MAX), &s->c);
}

ditto_status begin(struct saved *s, const char *prefix)
{
    return begin_with(s, prefix, &OPTIONS(strategy, .num_replicas = 2));
}

ditto_status save(const struct saved *s, int64_t step)
{
    return ditto_checkpointer_save(s->c, &OPTIONS(checkpoint, .step = step));
}

bool is_whole(const char *name)
{
    ditto_checkpoint *file;
    if (ditto_checkpoint_open(NULL, own_path(name), &file) != DITTO_OK)
        return false;
    assert_ok(ditto_checkpoint_close(file));
    return true;
}

const uint32_t counts_of_replicas[REPLICA_COUNTS] = { 1, 2, 3, 8 };
