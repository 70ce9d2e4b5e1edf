/* src/vars/checkpoint/files/contents.h - the contents of a checkpoint without the bytes of its values. */
#ifndef DTI_CONTENTS_H
#define DTI_CONTENTS_H

#include <ditto/checkpoint.h>

#include <errno.h>
#include <stdbool.h>

/* Restores errno to `before` if the status is DITTO_OK. Returns the status. */
static inline ditto_status dti_keep_errno(int before, ditto_status status)
{
    if (status == DITTO_OK)
        errno = before;
    return status;
}

/* The value of a variable, or data of the program's own. */
struct dti_contents_entry {
    char *name;
    ditto_tensor spec;
    ditto_synchronization synchronization;
    ditto_aggregation aggregation;
    bool trainable;
    bool own; /* the program's own data, not a variable */

    /* Of a save: the parameter whose versions are the value, or NULL. The entry is one of the program's own
     * data. */
    const ditto_variable *versions_of;

    const void *data; /* the bytes to be saved, or NULL if the entry was read from a file */
    uint64_t offset;  /* in the file, or 0 if the entry has no bytes */
};

/* All contents of a checkpoint. */
struct dti_contents {
    int64_t step;
    char *version;
    struct dti_contents_entry *entry; /* [entries] */
    size_t entries;
    ditto_attribute *attribute; /* [attributes]; their names and texts are copies */
    size_t attributes;
};

/* Appends an entry with a copy of the name. Its other members are zero. Returns NULL, with an error recorded,
 * if there is no memory. */
struct dti_contents_entry *dti_contents_add(struct dti_contents *contents, const char *name);

/* Appends a copy of the attribute. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_contents_add_attribute(struct dti_contents *contents, const ditto_attribute *attribute);

/* Returns the entry of that name, or NULL. */
const struct dti_contents_entry *dti_contents_find(const struct dti_contents *contents, const char *name);
void dti_contents_free(struct dti_contents *contents);

/* Returns DITTO_ERR_INVALID if a name cannot be the name of a dataset, is too long or is in too many groups,
 * if two entries or two attributes have the same name, if the name of one entry is the folder of another, or
 * if an attribute has an invalid name. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_contents_check(const struct dti_contents *contents);

/* Sorts the entries by path, component by component, so that the entries of a group are adjacent. */
void dti_contents_sort(struct dti_contents *contents);

/* Returns pointers to the entries in the order of dti_contents_sort. The caller frees the array. Returns
 * NULL, with an error recorded, if there is no memory. */
struct dti_contents_entry **dti_contents_sorted(const struct dti_contents *contents);

/* Stores in *same whether `found`, which is sorted, has the same contents as `planned`, apart from the
 * values. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_contents_same(const struct dti_contents *planned, const struct dti_contents *found,
                               bool *same);

/* The folder of the entries that hold the versions of parameters, as arrays of u64. */
#define DTI_VERSIONS_FOLDER "ditto_versions/"

/* Returns the name of the entry with the versions of a parameter, which the caller frees, or NULL if there is
 * no memory. */
char *dti_versions_name(const char *name);

#endif
