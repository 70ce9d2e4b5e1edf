/* src/vars/checkpoint/files/contents.c - lists, checks, sorts and compares the contents of checkpoints; see
 * contents.h. */
#include "vars/checkpoint/files/contents.h"
#include "base/errors/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN_PREFIX "ditto_" /* the prefix of the library's own attributes */

static ditto_status no_memory(void)
{
    return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory for a checkpoint's list of contents");
}

struct dti_contents_entry *dti_contents_add(struct dti_contents *c, const char *name)
{
    char *copy = strdup(name);
    struct dti_contents_entry *entry = copy != NULL ? realloc(c->entry, (c->entries + 1) * sizeof *entry)
                                                    : NULL;
    if (entry == NULL) {
        free(copy);
        (void)no_memory();
        return NULL;
    }
    c->entry = entry;
    entry = &c->entry[c->entries++];
    *entry = (struct dti_contents_entry){ .name = copy };
    return entry;
}

ditto_status dti_contents_add_attribute(struct dti_contents *c, const ditto_attribute *attribute)
{
    ditto_attribute *grown = realloc(c->attribute, (c->attributes + 1) * sizeof *grown);
    if (grown == NULL)
        return no_memory();
    c->attribute = grown;
    ditto_attribute *copy = &c->attribute[c->attributes++];
    *copy = *attribute;
    copy->name = strdup(attribute->name);
    copy->text = attribute->kind == DITTO_ATTRIBUTE_TEXT ? strdup(attribute->text) : NULL;
    if (copy->name == NULL || (attribute->kind == DITTO_ATTRIBUTE_TEXT && copy->text == NULL))
        return no_memory();
    return DITTO_OK;
}

const struct dti_contents_entry *dti_contents_find(const struct dti_contents *c, const char *name)
{
    for (size_t i = 0; i < c->entries; i++)
        if (strcmp(c->entry[i].name, name) == 0)
            return &c->entry[i];
    return NULL;
}

void dti_contents_free(struct dti_contents *c)
{
    for (size_t i = 0; i < c->entries; i++)
        free(c->entry[i].name);
    for (size_t i = 0; i < c->attributes; i++) {
        free((void *)(uintptr_t)c->attribute[i].name); /* const for the user, but allocated here */
        free((void *)(uintptr_t)c->attribute[i].text);
    }
    free(c->entry);
    free(c->attribute);
    free(c->version);
    *c = (struct dti_contents){ .step = 0 };
}

/* -- Checking what is to be saved -- */

static ditto_status check_name(const char *name)
{
    const char *part = name;
    if (strlen(name) > DITTO_MAX_CHECKPOINT_NAME_BYTES)
        return DTI_FAIL(DITTO_ERR_INVALID, "the name \"%.100s...\" has %zu bytes: at most %d can be saved",
                        name, strlen(name), DITTO_MAX_CHECKPOINT_NAME_BYTES);
    for (int groups = 0;; groups++) {
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && *part == '.'))
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "a variable called \"%.100s\" can't be saved: between \"/\" there must be "
                            "something, and not \".\"",
                            name);
        if (part[length] == '\0')
            return DITTO_OK;
        if (groups == DITTO_MAX_CHECKPOINT_GROUPS)
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "the name \"%.100s...\" is in more than %d groups: use fewer \"/\" in it, "
                            "because readers of HDF5 take very long for that many",
                            name, DITTO_MAX_CHECKPOINT_GROUPS);
        part += length + 1;
    }
}

/* Checks names that are sorted by path. If other entries have the same name as an entry, or are in the folder
 * of that name, one of them comes directly after it. It is therefore enough to compare neighbours. */
static ditto_status check_names(struct dti_contents_entry *const *sorted, size_t entries)
{
    for (size_t i = 0; i < entries; i++) {
        const char *name = sorted[i]->name, *before = i > 0 ? sorted[i - 1]->name : NULL;
        DTI_TRY(check_name(name));
        if (before != NULL && strcmp(before, name) == 0)
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "two variables are called \"%.100s\": give each its own name to save them", name);
        size_t length = before != NULL ? strlen(before) : 0;
        if (before != NULL && strncmp(name, before, length) == 0 && name[length] == '/')
            return DTI_FAIL(
                DITTO_ERR_INVALID,
                "\"%.100s\" can't be saved beside \"%.100s\": a name is either a value or a folder", name,
                before);
    }
    return DITTO_OK;
}

static ditto_status check_attribute(const struct dti_contents *c, size_t i)
{
    const ditto_attribute *a = &c->attribute[i];
    if (*a->name == '\0' || strchr(a->name, '/') != NULL ||
        strncmp(a->name, OWN_PREFIX, sizeof OWN_PREFIX - 1) == 0)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "the attribute name \"%.100s\" must not be empty, contain \"/\" or begin with \"" OWN_PREFIX "\"",
            a->name);
    for (size_t k = 0; k < i; k++)
        if (strcmp(c->attribute[k].name, a->name) == 0)
            return DTI_FAIL(DITTO_ERR_INVALID, "two attributes are called \"%.100s\"", a->name);
    return DITTO_OK;
}

ditto_status dti_contents_check(const struct dti_contents *c)
{
    struct dti_contents_entry **sorted = dti_contents_sorted(c);
    if (sorted == NULL)
        return DITTO_ERR_NO_MEMORY;
    ditto_status status = check_names(sorted, c->entries);
    free(sorted);
    for (size_t i = 0; status == DITTO_OK && i < c->attributes; i++)
        status = check_attribute(c, i);
    return status;
}

/* -- The order of entries in a file -- */

/* Compares two paths. "/" comes before every other byte, so "a/b" comes before "a-b", as "a" comes before
 * "a-b". An entry "a" is therefore followed by all entries in the folder "a". */
static int compare_paths(const char *a, const char *b)
{
    while (*a == *b && *a != '\0') {
        a++;
        b++;
    }
    int left = *a == '/' ? 1 : *a == '\0' ? 0 : (unsigned char)*a + 1;
    int right = *b == '/' ? 1 : *b == '\0' ? 0 : (unsigned char)*b + 1;
    return left - right;
}

static int by_path(const void *left, const void *right)
{
    const struct dti_contents_entry *a = left, *b = right;
    return compare_paths(a->name, b->name);
}

static int pointers_by_path(const void *left, const void *right)
{
    return by_path(*(struct dti_contents_entry *const *)left, *(struct dti_contents_entry *const *)right);
}

void dti_contents_sort(struct dti_contents *c)
{
    if (c->entries > 1)
        qsort(c->entry, c->entries, sizeof *c->entry, by_path);
}

struct dti_contents_entry **dti_contents_sorted(const struct dti_contents *c)
{
    struct dti_contents_entry **sorted = malloc((c->entries + 1) * sizeof(struct dti_contents_entry *));
    if (sorted == NULL) {
        (void)no_memory();
        return NULL;
    }
    for (size_t i = 0; i < c->entries; i++)
        sorted[i] = &c->entry[i];
    qsort(sorted, c->entries, sizeof(struct dti_contents_entry *), pointers_by_path);
    return sorted;
}

static bool same_entry(const struct dti_contents_entry *a, const struct dti_contents_entry *b)
{
    bool same = strcmp(a->name, b->name) == 0 && a->spec.dtype == b->spec.dtype &&
                a->spec.rank == b->spec.rank && a->own == b->own && a->offset == b->offset;
    for (uint32_t i = 0; same && i < a->spec.rank; i++)
        same = a->spec.shape[i] == b->spec.shape[i];
    return same && (a->own || (a->synchronization == b->synchronization && a->aggregation == b->aggregation &&
                               a->trainable == b->trainable));
}

/* Compares two attributes. Real numbers are compared by their bits, so that a NaN is equal to itself. */
static bool same_attribute(const ditto_attribute *a, const ditto_attribute *b)
{
    uint64_t left, right;
    if (strcmp(a->name, b->name) != 0 || a->kind != b->kind)
        return false;
    switch (a->kind) {
    case DITTO_ATTRIBUTE_TEXT:
        return strcmp(a->text, b->text) == 0;
    case DITTO_ATTRIBUTE_INTEGER:
        return a->integer == b->integer;
    default:
        memcpy(&left, &a->real, sizeof left);
        memcpy(&right, &b->real, sizeof right);
        return left == right;
    }
}

ditto_status dti_contents_same(const struct dti_contents *planned, const struct dti_contents *found,
                               bool *out)
{
    bool same = planned->entries == found->entries && planned->attributes == found->attributes &&
                planned->step == found->step && strcmp(planned->version, found->version) == 0;
    struct dti_contents_entry **sorted = dti_contents_sorted(planned);
    if (sorted == NULL)
        return DITTO_ERR_NO_MEMORY;
    for (size_t i = 0; same && i < found->entries; i++)
        same = same_entry(sorted[i], &found->entry[i]);
    for (size_t i = 0; same && i < found->attributes; i++)
        same = same_attribute(&planned->attribute[i], &found->attribute[i]);
    free(sorted);
    *out = same;
    return DITTO_OK;
}

char *dti_versions_name(const char *name)
{
    size_t length = sizeof DTI_VERSIONS_FOLDER + strlen(name);
    char *joined = malloc(length);
    if (joined != NULL)
        snprintf(joined, length, DTI_VERSIONS_FOLDER "%s", name);
    return joined;
}
