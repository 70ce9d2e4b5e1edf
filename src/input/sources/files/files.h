/* src/input/sources/files/files.h - a list of files that many threads read, with few of them open at a time. */
#ifndef DTI_FILES_H
#define DTI_FILES_H

#include <ditto/source.h>

#include "base/base.h"

/* At a time, of all lists of the process, whoever was read from last; more only while more are being read from at this moment. */
#define DTI_FILES_OPEN 64u

struct dti_file {
    char *name;
    uint64_t bytes; /* when the list was made */
    /* Under one lock of the process. */
    int descriptor;                 /* -1: not open. Read without the lock by who has a pin */
    uint32_t pins;                  /* threads that read from it now */
    struct dti_file *older, *newer; /* among those that are open and not read from */
};

struct dti_files {
    struct dti_file *file; /* [count] */
    uint32_t count;
};

/* -- Making -- */
/* Names, or what patterns match; every file is looked at. Errors: source.h, "For every source of files". */
ditto_status dti_files_create(struct dti_files *files, const ditto_files *names);
void dti_files_free(struct dti_files *files); /* zeroed is allowed */

/* -- Any thread -- */
/* Reads up to `bytes` at `offset`; *got is less only at the end of the file. IO, NOT_FOUND, with errno. */
ditto_status dti_files_read(struct dti_files *files, uint32_t file, uint64_t offset, void *to, size_t bytes,
                            size_t *got);
/* The same, where all of it must be there: IO when the file has become shorter, which names the place: "line", 7. */
ditto_status dti_files_read_all(struct dti_files *files, uint32_t file, uint64_t offset, void *to,
                                size_t bytes, const char *what, uint64_t number);
/* The kernel may fetch what lies there. A hint. */
void dti_files_want(struct dti_files *files, uint32_t file, uint64_t offset, uint64_t bytes);
/* The first file from `first` on, in steps, of those that a pass over them reads (struct dti_pass); count: none. */
uint32_t dti_files_next(const struct dti_files *files, uint32_t first, uint32_t number_of_first,
                        uint32_t shards, uint32_t shard);

#endif
