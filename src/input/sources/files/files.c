/* src/input/sources/files/files.c - lists of files, and the descriptors that are open in the whole
 * process. */
#include "input/sources/files/files.h"
#include "base/errors/status.h"
#include "base/text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* -- the list -- */

/* Adds a file to the list. Checks it and gets its size. */
static ditto_status add(struct dti_files *files, const char *name)
{
    if ((files->count & (files->count - 1)) == 0) { /* the capacity doubles */
        size_t capacity = files->count != 0 ? 2 * (size_t)files->count : 1;
        struct dti_file *grown = realloc(files->file, capacity * sizeof *grown);
        if (grown == NULL)
            return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a list of files");
        files->file = grown;
    }
    struct dti_file *file = &files->file[files->count];
    *file = (struct dti_file){ .path = dti_absolute_name(name), .descriptor = -1 };
    if (file->path == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a file name");
    file->name = file->path + strlen(file->path) - strlen(name);
    files->count++;
    /* FIFOs, folders and devices are refused, because reading them may wait or they have no size. */
    struct stat about;
    if (stat(file->path, &about) != 0)
        return DTI_FAIL_ERRNO(errno == ENOENT || errno == ENOTDIR ? DITTO_ERR_NOT_FOUND : DITTO_ERR_IO, errno,
                              "%s", file->name);
    if (!S_ISREG(about.st_mode))
        return DTI_FAIL(DITTO_ERR_IO,
                        "%s is not a regular file, but it is read at several offsets, and more than once",
                        file->name);
    if (access(file->path, R_OK) != 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "%s", file->name);
    file->bytes = (uint64_t)about.st_size;
    file->inode = about.st_ino;
    file->written = about.st_mtim;
    return DITTO_OK;
}

/* -- the open files of the whole process -- */

static struct {
    pthread_mutex_t lock;

    /* The list of open files that no thread is reading, ordered by the time when they were read last. */
    struct dti_file *oldest, *newest;
    uint32_t count; /* of all open files */
} opened = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* These two functions also run before and after fork, so that a child process finds the lock free and the
 * list consistent. Files that other threads were reading stay open in the child until their list is freed. */
static void lock_opened(void)
{
    pthread_mutex_lock(&opened.lock);
}
static void unlock_opened(void)
{
    pthread_mutex_unlock(&opened.lock);
}
static void watch_forks(void)
{
    /* If this fails because there is no memory, a child process should not read files. */
    (void)pthread_atfork(lock_opened, unlock_opened, unlock_opened);
}

/* The caller of this function and of those below, up to open_file, holds the lock. */
static void remove_from_idle(struct dti_file *file)
{
    *(file->older != NULL ? &file->older->newer : &opened.oldest) = file->newer;
    *(file->newer != NULL ? &file->newer->older : &opened.newest) = file->older;
}

static void close_file(struct dti_file *file)
{
    close(file->descriptor);
    file->descriptor = -1;
    opened.count--;
}

/* Closes the file of the list that was read longest ago. Returns false if the list is empty. */
static bool close_oldest(void)
{
    struct dti_file *file = opened.oldest;
    if (file == NULL)
        return false;
    remove_from_idle(file);
    close_file(file);
    return true;
}

/* Returns 0, or errno. */
static int open_file(struct dti_file *file)
{
    while (opened.count >= DTI_FILES_OPEN && close_oldest())
        ;
    do
        /* O_NONBLOCK, because it may have become a FIFO. */
        file->descriptor = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (file->descriptor < 0 && (errno == EMFILE || errno == ENFILE) && close_oldest());
    if (file->descriptor < 0)
        return errno;
    opened.count++;
    return 0;
}

static void give_back(struct dti_file *file)
{
    lock_opened();
    if (--file->pins == 0) {
        file->older = opened.newest;
        file->newer = NULL;
        *(opened.newest != NULL ? &opened.newest->newer : &opened.oldest) = file;
        opened.newest = file;
        if (opened.count > DTI_FILES_OPEN)
            close_oldest();
    }
    unlock_opened();
}

/* -- making -- */

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct dti_file *)left)->name, ((const struct dti_file *)right)->name);
}

/* The last error of a folder that glob could not read. */
static _Thread_local int folder_error;

/* glob calls this for each of them, and stops if it returns 1. As in a shell, folders that do not exist or
 * may not be read have no files. Any other error would leave out files without an error. */
static int note_folder(const char *folder, int error_number)
{
    (void)folder;
    if (error_number == ENOENT || error_number == ENOTDIR)
        return 0;
    folder_error = error_number;
    return error_number != EACCES;
}

static bool close_any(void)
{
    lock_opened();
    bool closed = close_oldest();
    unlock_opened();
    return closed;
}

static ditto_status add_matches(struct dti_files *files, const char *pattern)
{
    glob_t found;
    int result;
    do {
        found = (glob_t){ 0 };
        folder_error = 0;
        result = glob(pattern, GLOB_NOSORT, note_folder, &found);
        if (result != 0)
            globfree(&found);
    } while (result == GLOB_ABORTED && (folder_error == EMFILE || folder_error == ENFILE) && close_any());
    if (result == GLOB_NOMATCH && folder_error == 0)
        return DTI_FAIL(DITTO_ERR_NOT_FOUND, "no file matches %s", pattern);
    if (result == GLOB_NOSPACE)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the files that match %s", pattern);
    if (result != 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, folder_error, "%s: a folder can't be searched", pattern);
    ditto_status status = DITTO_OK;
    uint32_t first = files->count;
    for (size_t i = 0; i < found.gl_pathc && status == DITTO_OK; i++)
        status = add(files, found.gl_pathv[i]);
    globfree(&found);
    /* Sorted by bytes and not by the locale, because the order of rows must not depend on the user's
     * language. */
    if (files->count > first)
        qsort(files->file + first, files->count - first, sizeof *files->file, by_name);
    return status;
}

ditto_status dti_files_create(struct dti_files *files, const ditto_files *names)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    *files = (struct dti_files){ 0 };
    pthread_once(&once, watch_forks);
    for (uint32_t i = 0; i < names->num_names; i++) {
        if (names->names[i] == NULL || names->names[i][0] == '\0')
            return DTI_FAIL(DITTO_ERR_INVALID, "files->names[%u] is NULL or empty", i);
        DTI_TRY(names->flags & DITTO_FILES_GLOB ? add_matches(files, names->names[i])
                                                : add(files, names->names[i]));
    }
    return DITTO_OK;
}

void dti_files_free(struct dti_files *files)
{
    lock_opened();
    for (uint32_t i = 0; i < files->count; i++) {
        struct dti_file *file = &files->file[i];
        if (file->descriptor < 0)
            continue;
        if (file->pins == 0) /* otherwise, after fork, a thread of the parent process was reading it */
            remove_from_idle(file);
        close_file(file);
    }
    unlock_opened();
    for (uint32_t i = 0; i < files->count; i++)
        free(files->file[i].path);
    free(files->file);
}

/* -- reading -- */

/* Makes sure that the file is open and stays open until give_back. */
static ditto_status take_descriptor(struct dti_files *files, uint32_t number, int *descriptor)
{
    struct dti_file *file = &files->file[number];
    int error_number = 0;
    lock_opened();
    if (file->descriptor < 0)
        error_number = open_file(file);
    else if (file->pins == 0)
        remove_from_idle(file);
    file->pins += error_number == 0;
    unlock_opened();
    if (error_number != 0)
        return DTI_FAIL_ERRNO(error_number == ENOENT ? DITTO_ERR_NOT_FOUND : DITTO_ERR_IO, error_number, "%s",
                              file->path);
    *descriptor = file->descriptor; /* it does not change until give_back */
    return DITTO_OK;
}

/* The numbers of inodes are not kept by FAT, and by some file systems of FUSE and some servers of SMB. They
 * may change when the kernel has forgotten the file. */
static bool keeps_inodes(int descriptor)
{
    struct statfs about;
    static const unsigned kinds[] = { 0x4d44, 0x2011bab0, 0x65735546, 0xff534d42, 0xfe534d42 };
    if (fstatfs(descriptor, &about) != 0)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if ((unsigned)about.f_type == kinds[i])
            return false;
    return true;
}

/* Checks after a read that the open file is what it was when the list was made. A file that another one has
 * replaced is found when it is opened, and one that was written when it is read. A file system with a coarse
 * clock may not show a write in the same few milliseconds as the one before. */
static ditto_status check_unchanged(const struct dti_file *file, int descriptor, const char *what,
                                    uint64_t number)
{
    struct stat now;
    char row[64] = "";
    const char *change = NULL;
    if (fstat(descriptor, &now) != 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "%s", file->path);
    uint64_t bytes = (uint64_t)now.st_size;
    if (bytes != file->bytes)
        change = bytes < file->bytes ? "it became shorter" : "it became longer";
    else if (now.st_mtim.tv_sec != file->written.tv_sec || now.st_mtim.tv_nsec != file->written.tv_nsec)
        change = "it was written";
    else if (now.st_ino != file->inode && keeps_inodes(descriptor))
        change = "another file was given its name";
    if (change == NULL)
        return DITTO_OK;
    if (what != NULL)
        dti_text_add(&(struct dti_text){ row, sizeof row, 0 }, ": %s %llu", what, (unsigned long long)number);
    return DTI_FAIL(DITTO_ERR_IO,
                    "%s%s: %s after the dataset was made (%llu bytes then, %llu now): make the dataset again",
                    file->path, row, change, (unsigned long long)file->bytes, (unsigned long long)bytes);
}

/* `what` is NULL if the message should name no row. */
static ditto_status read_bytes(struct dti_files *files, uint32_t file, uint64_t offset, void *to,
                               size_t bytes, size_t *got, const char *what, uint64_t number)
{
    int descriptor;
    *got = 0;
    DTI_TRY(take_descriptor(files, file, &descriptor));
    ssize_t more = 1;
    while (*got < bytes && more != 0) {
        more = pread(descriptor, (char *)to + *got, bytes - *got, (off_t)(offset + *got));
        if (more < 0 && errno != EINTR)
            break;
        *got += more > 0 ? (size_t)more : 0;
    }
    ditto_status status = DITTO_OK;
    if (more < 0)
        status = DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "%s: reading at offset %llu", files->file[file].name,
                                (unsigned long long)(offset + *got));
    else
        status = check_unchanged(&files->file[file], descriptor, what, number);
    give_back(&files->file[file]);
    return status;
}

ditto_status dti_files_read(struct dti_files *files, uint32_t file, uint64_t offset, void *to, size_t bytes,
                            size_t *got)
{
    return read_bytes(files, file, offset, to, bytes, got, NULL, 0);
}

ditto_status dti_files_read_all(struct dti_files *files, uint32_t file, uint64_t offset, void *to,
                                size_t bytes, const char *what, uint64_t number)
{
    size_t got;
    DTI_TRY(read_bytes(files, file, offset, to, bytes, &got, what, number));
    if (got < bytes)
        return DTI_FAIL(DITTO_ERR_IO, "%s: %s %llu: the file ends at offset %llu", files->file[file].name,
                        what, (unsigned long long)number, (unsigned long long)(offset + got));
    return DITTO_OK;
}

void dti_files_want(struct dti_files *files, uint32_t file, uint64_t offset, uint64_t bytes)
{
    int descriptor;
    if (take_descriptor(files, file, &descriptor) != DITTO_OK)
        return;
    posix_fadvise(descriptor, (off_t)offset, (off_t)bytes, POSIX_FADV_WILLNEED);
    give_back(&files->file[file]);
}

uint32_t dti_files_next(const struct dti_files *files, uint32_t first, uint32_t number_of_first,
                        uint32_t shards, uint32_t shard)
{
    while (first < files->count && shards > 1 && (number_of_first + first) % shards != shard)
        first++;
    return first;
}
