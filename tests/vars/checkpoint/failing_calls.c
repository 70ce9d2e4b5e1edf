/* tests/vars/checkpoint/failing_calls.c - functions of the C library of which one call can be made to fail;
 * see checkpoint_support.h. Calls that do not fail are passed to the kernel or to glibc. */
#undef _FILE_OFFSET_BITS /* otherwise open would be a macro for open64, and both are defined here */
#include "vars/checkpoint/checkpoint_support.h"
#include "support/support.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const calls_names[KINDS_OF_CALLS] = {
    "malloc",      "open",  "stat",  "read",  "short read", "write",  "short write", "lost write",
    "reservation", "flush", "close", "flock", "rename",     "unlink", "readdir",     "mmap",
};

static _Atomic int failing = -1;
static _Atomic long left;

void fail_call(enum calls kind, long k)
{
    atomic_store(&left, k);
    atomic_store(&failing, (int)kind);
}

bool end_failing(void)
{
    atomic_store(&failing, -1);
    return atomic_load(&left) <= 0;
}

#if !SANITIZED

static bool fails(enum calls kind, int error)
{
    if (atomic_load(&failing) != (int)kind || atomic_fetch_sub(&left, 1) != 1)
        return false;
    errno = error;
    return true;
}

/* -- memory -- */

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    return fails(CALLS_OF_MALLOC, ENOMEM) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails(CALLS_OF_MALLOC, ENOMEM) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return fails(CALLS_OF_MALLOC, ENOMEM) ? NULL : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return fails(CALLS_OF_MALLOC, ENOMEM) ? NULL : __libc_memalign(alignment, bytes);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (fails(CALLS_OF_MMAP, ENOMEM))
        return MAP_FAILED;
    /* NOLINTNEXTLINE: the kernel returns an address */
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

/* -- files. A function that has two names is defined under both, because a library may call either. -- */

static int open_at(int folder, const char *path, int flags, va_list arguments)
{
    /* O_TMPFILE contains the bit of O_DIRECTORY, with which a folder is opened. */
    bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    int mode = has_mode ? va_arg(arguments, int) : 0;
    return fails(CALLS_OF_OPEN, EMFILE) ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define OPEN(name)                                          \
    int name(const char *path, int flags, ...)              \
    {                                                       \
        va_list arguments;                                  \
        va_start(arguments, flags);                         \
        int fd = open_at(AT_FDCWD, path, flags, arguments); \
        va_end(arguments);                                  \
        return fd;                                          \
    }
OPEN(open)
OPEN(open64)

static int stat_at(int folder, const char *path, struct stat *out, int flags)
{
    return fails(CALLS_OF_STAT, EIO) ? -1 : (int)syscall(SYS_newfstatat, folder, path, out, flags);
}

#define STATS(end)                                                                   \
    int stat##end(const char *path, struct stat##end *out)                           \
    {                                                                                \
        return stat_at(AT_FDCWD, path, (struct stat *)out, 0);                       \
    }                                                                                \
    int lstat##end(const char *path, struct stat##end *out)                          \
    {                                                                                \
        return stat_at(AT_FDCWD, path, (struct stat *)out, AT_SYMLINK_NOFOLLOW);     \
    }                                                                                \
    int fstat##end(int fd, struct stat##end *out)                                    \
    {                                                                                \
        return stat_at(fd, "", (struct stat *)out, AT_EMPTY_PATH);                   \
    }                                                                                \
    int fstatat##end(int folder, const char *path, struct stat##end *out, int flags) \
    {                                                                                \
        return stat_at(folder, path, (struct stat *)out, flags);                     \
    }
STATS()
STATS(64)

static ssize_t read_at(int fd, void *to, size_t bytes, off_t offset)
{
    if (fails(CALLS_OF_READ, EIO))
        return -1;
    return syscall(SYS_pread64, fd, to, bytes > 1 && fails(CALLS_OF_SHORT_READ, 0) ? bytes / 2 : bytes,
                   offset);
}

static ssize_t write_at(int fd, const void *from, size_t bytes, off_t offset)
{
    if (fails(CALLS_OF_WRITE, ENOSPC))
        return -1;
    if (fails(CALLS_OF_LOST_WRITE, 0))
        return (ssize_t)bytes;
    return syscall(SYS_pwrite64, fd, from, bytes > 1 && fails(CALLS_OF_SHORT_WRITE, 0) ? bytes / 2 : bytes,
                   offset);
}

static int ensure_capacity(int fd, int mode, off_t offset, off_t bytes)
{
    return fails(CALLS_OF_RESERVE, ENOSPC) ? -1 : (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

static int cut(int fd, off_t bytes)
{
    return fails(CALLS_OF_RESERVE, ENOSPC) ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

#define PLACED(end)                                                       \
    ssize_t pread##end(int fd, void *to, size_t bytes, off_t offset)      \
    {                                                                     \
        return read_at(fd, to, bytes, offset);                            \
    }                                                                     \
    ssize_t pwrite##end(int fd, const void *from, size_t bytes, off_t at) \
    {                                                                     \
        return write_at(fd, from, bytes, at);                             \
    }                                                                     \
    int fallocate##end(int fd, int mode, off_t offset, off_t bytes)       \
    {                                                                     \
        return ensure_capacity(fd, mode, offset, bytes);                  \
    }                                                                     \
    int ftruncate##end(int fd, off_t bytes)                               \
    {                                                                     \
        return cut(fd, bytes);                                            \
    }
PLACED()
PLACED(64)

int fsync(int fd)
{
    return fails(CALLS_OF_FLUSH, EIO) ? -1 : (int)syscall(SYS_fsync, fd);
}

int close(int fd)
{
    int closed = (int)syscall(SYS_close, fd);
    return fails(CALLS_OF_CLOSE, EIO) ? -1 : closed;
}

int flock(int fd, int operation)
{
    return fails(CALLS_OF_LOCK, ENOLCK) ? -1 : (int)syscall(SYS_flock, fd, operation);
}

int rename(const char *from, const char *to)
{
    return fails(CALLS_OF_RENAME, EIO) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path)
{
    return fails(CALLS_OF_UNLINK, EACCES) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

#define READDIR(end)                                                                             \
    struct dirent##end *readdir##end(DIR *folder)                                                \
    {                                                                                            \
        static struct dirent##end *(*next)(DIR *);                                               \
        if (next == NULL)                                                                        \
            next = (struct dirent##end * (*)(DIR *))(uintptr_t)dlsym(RTLD_NEXT, "readdir" #end); \
        return fails(CALLS_OF_LIST, EIO) ? NULL : next(folder);                                  \
    }
READDIR()
READDIR(64)

#endif
