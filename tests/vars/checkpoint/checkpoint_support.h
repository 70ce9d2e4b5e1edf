/* tests/vars/checkpoint/checkpoint_support.h - the k-th call of a kind fails, in the whole program: its
 * libraries too, for the program defines the functions itself. Not with sanitizers, which define them too. */
#ifndef FAILING_CALLS_H
#define FAILING_CALLS_H

#include <stdbool.h>
#include <stddef.h>

enum calls {
    CALLS_OF_MALLOC, /* and of its relatives: ENOMEM */
    CALLS_OF_OPEN,   /* EMFILE */
    CALLS_OF_STAT,   /* EIO */
    CALLS_OF_READ,   /* EIO */
    CALLS_OF_SHORT_READ,
    CALLS_OF_WRITE, /* ENOSPC */
    CALLS_OF_SHORT_WRITE,
    CALLS_OF_LOST_WRITE, /* says that all was written, and writes nothing */
    CALLS_OF_RESERVE,    /* fallocate, ftruncate: ENOSPC */
    CALLS_OF_FLUSH,      /* EIO */
    CALLS_OF_CLOSE,      /* closes, and gives EIO */
    CALLS_OF_LOCK,       /* ENOLCK */
    CALLS_OF_RENAME,     /* EIO */
    CALLS_OF_UNLINK,     /* EACCES */
    CALLS_OF_LIST,       /* readdir: EIO */
    CALLS_OF_MMAP,       /* ENOMEM */
    KINDS_OF_CALLS,
};
extern const char *const calls_names[KINDS_OF_CALLS];

/* The k-th call from now on, counted from 1, fails, once. */
void fail_call(enum calls kind, long k);
/* None fails any more. True: one has failed. */
bool end_failing(void);

/* Turns an HDF5 file into something that passes the check of a checkpoint's
 * outside. */

/* Puts magic, format, length and checksum into the first 4096 bytes of `bytes`, which are the user block. */
void seal_bytes(unsigned char *bytes, size_t count);

/* The same for a file. */
void seal_file(const char *path);

#endif
