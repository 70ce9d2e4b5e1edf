/* src/vars/checkpoint/contents.h - what a checkpoint holds, beside the bytes of its values. */
#ifndef DTI_CONTENTS_H
#define DTI_CONTENTS_H

#include <ditto/checkpoint.h>

#include <errno.h>
#include <stdbool.h>

/* errno stays as it was where nothing went wrong. */
static inline ditto_status dti_keep_errno(int before, ditto_status status)
{
    if (status == DITTO_OK)
        errno = before;
    return status;
}

/* A variable's value, as it is saved; or data of the program's own. */
struct dti_contents_entry {
    char *name;
    ditto_tensor spec;
    ditto_synchronization synchronization;
    ditto_aggregation aggregation;
    bool trainable;
    bool own;         /* the program's data, no variable's */
    const void *data; /* to be saved */
    uint64_t offset;  /* in the file; 0: it has no bytes */
};

struct dti_contents {
    int64_t step;
    char *version;
    struct dti_contents_entry *entry; /* [entries] */
    size_t entries;
    ditto_attribute *attribute; /* [attributes], with names and texts of their own */
    size_t attributes;
};

/* Grows by one, zeroed; NULL: no memory, with its message. */
struct dti_contents_entry *dti_contents_add(struct dti_contents *contents, const char *name);
/* A copy. NO_MEMORY. */
ditto_status dti_contents_add_attribute(struct dti_contents *contents, const ditto_attribute *attribute);
const struct dti_contents_entry *dti_contents_find(const struct dti_contents *contents,
                                                   const char *name); /* NULL: it has none */
void dti_contents_free(struct dti_contents *contents);

/* INVALID: a name that can't be a dataset's, or is too long; two of one name, one in the folder of another; a bad
 * attribute. */
ditto_status dti_contents_check(const struct dti_contents *contents);

/* Sorts the entries by their paths: part by part, so that what is in a group stands together. */
void dti_contents_sort(struct dti_contents *contents);

/* The entries in that order: free it. NULL: no memory, with its message. */
struct dti_contents_entry **dti_contents_sorted(const struct dti_contents *contents);

/* Does `found`, which is sorted, hold the same as `planned`, values excepted? NO_MEMORY. */
ditto_status dti_contents_same(const struct dti_contents *planned, const struct dti_contents *found,
                               bool *same);

#endif
