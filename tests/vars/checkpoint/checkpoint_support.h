/* tests/vars/checkpoint/checkpoint_support.h - makes the k-th call of a kind fail, and seals HDF5 files as
 * checkpoints. The calls of the whole program and of its libraries are counted, because the program defines
 * the functions itself (failing_calls.c). With sanitizers, which define the same functions, no call fails. */
#ifndef CHECKPOINT_SUPPORT_H
#define CHECKPOINT_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>

enum calls {
    CALLS_OF_MALLOC,      /* malloc, calloc, realloc, aligned_alloc: ENOMEM */
    CALLS_OF_OPEN,        /* EMFILE */
    CALLS_OF_STAT,        /* EIO */
    CALLS_OF_READ,        /* EIO */
    CALLS_OF_SHORT_READ,  /* reads half of the bytes */
    CALLS_OF_WRITE,       /* ENOSPC */
    CALLS_OF_SHORT_WRITE, /* writes half of the bytes */
    CALLS_OF_LOST_WRITE,  /* writes nothing, but reports success */
    CALLS_OF_RESERVE,     /* fallocate, ftruncate: ENOSPC */
    CALLS_OF_FLUSH,       /* EIO */
    CALLS_OF_CLOSE,       /* closes the file, and fails with EIO */
    CALLS_OF_LOCK,        /* ENOLCK */
    CALLS_OF_RENAME,      /* EIO */
    CALLS_OF_UNLINK,      /* EACCES */
    CALLS_OF_LIST,        /* readdir: EIO */
    CALLS_OF_MMAP,        /* ENOMEM */
    KINDS_OF_CALLS,
};
extern const char *const calls_names[KINDS_OF_CALLS];

/* Makes one call fail, which is the k-th call of the kind from now on, counted from 1. */
void fail_call(enum calls kind, long k);

/* Lets all calls succeed again. Returns true if a call has failed. */
bool end_failing(void);

/* Turns the bytes of an HDF5 file into a checkpoint whose user block and checksum are right. Overwrites only
 * the first 4096 bytes, which are the user block. */
void seal_bytes(unsigned char *bytes, size_t count);

/* Does the same to a file. */
void seal_file(const char *path);

#endif
