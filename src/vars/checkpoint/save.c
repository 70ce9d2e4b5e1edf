/* src/vars/checkpoint/save.c - see save.h. */
#include "vars/checkpoint/save.h"
#include "base/base.h"
#include "vars/checkpoint/choose.h"
#include "vars/checkpoint/file.h"
#include "vars/checkpoint/hdf5.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MARGIN     ((uint64_t)1 << 20) /* of HDF5's own in a file, and 4 KiB for each variable */
#define HUGE_BYTES ((size_t)2 << 20)

/* -- planning -- */

static ditto_status add_entry(struct dti_contents *contents, const ditto_variable *v)
{
    struct dti_entry *entry = dti_contents_add(contents, ditto_variable_name(v));
    if (entry == NULL)
        return DITTO_ERR_NO_MEMORY;
    entry->spec = ditto_variable_spec(v);
    entry->synchronization = ditto_variable_synchronization(v);
    entry->aggregation = ditto_variable_aggregation(v);
    entry->trainable = ditto_variable_is_trainable(v);
    if (entry->synchronization == DITTO_ON_READ && entry->aggregation == DITTO_AGGREGATE_NONE)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "\"%s\" is sync-on-read without aggregation, so it has no value to be saved: create it with SUM, MEAN "
            "or ONLY_FIRST_REPLICA, or choose what is saved",
            entry->name);
    return DITTO_OK;
}

static ditto_status add_data(struct dti_contents *contents, const ditto_checkpoint_data *data)
{
    size_t bytes;
    DTI_TRY(dti_not_null(data->name, "the name of data"));
    DTI_TRY(dti_tensor_check(&data->tensor, &bytes));
    DTI_TRY(dti_buffer_check(data->tensor.data, bytes, data->tensor.dtype, data->name));
    struct dti_entry *entry = dti_contents_add(contents, data->name);
    if (entry == NULL)
        return DITTO_ERR_NO_MEMORY;
    entry->spec = data->tensor;
    entry->spec.data = NULL;
    entry->synchronization = DITTO_ON_WRITE;
    entry->aggregation = DITTO_AGGREGATE_NONE;
    entry->own = true;
    entry->data = data->tensor.data;
    return DITTO_OK;
}

static ditto_status check_attribute(const ditto_attribute *a, size_t i)
{
    DTI_TRY(dti_not_null(a->name, "an attribute's name"));
    if (a->kind < DITTO_ATTRIBUTE_TEXT || a->kind > DITTO_ATTRIBUTE_REAL)
        return DTI_FAIL(DITTO_ERR_RANGE, "attributes[%zu].kind = %d is no value of its enum", i, (int)a->kind);
    if (a->kind != DITTO_ATTRIBUTE_TEXT)
        return DITTO_OK;
    DTI_TRY(dti_not_null(a->text, "an attribute's text"));
    if (strlen(a->text) > DITTO_ATTRIBUTE_BYTES)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the attribute \"%.100s\" has %zu bytes: at most %d; a longer one is a variable of u8", a->name,
                        strlen(a->text), DITTO_ATTRIBUTE_BYTES);
    return DITTO_OK;
}

static ditto_status fill_contents(struct dti_contents *c, ditto_variable *const *variable, size_t count,
                                  const ditto_checkpoint_options *o)
{
    c->step = o->step;
    c->version = strdup(ditto_version());
    if (c->version == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a checkpoint");
    for (size_t i = 0; i < count; i++)
        DTI_TRY(add_entry(c, variable[i]));
    for (size_t i = 0; i < o->num_data; i++)
        DTI_TRY(add_data(c, &o->data[i]));
    for (size_t i = 0; i < o->num_attributes; i++) {
        DTI_TRY(check_attribute(&o->attributes[i], i));
        DTI_TRY(dti_contents_add_attribute(c, &o->attributes[i]));
    }
    return dti_contents_check(c);
}

ditto_status dti_save_plan(ditto_strategy *strategy, const ditto_checkpoint_options *o, struct dti_contents *contents,
                           ditto_variable ***variable)
{
    size_t count;
    *contents = (struct dti_contents){ .step = 0 };
    if (o->num_attributes != 0)
        DTI_TRY(dti_not_null(o->attributes, "attributes"));
    if (o->num_data != 0)
        DTI_TRY(dti_not_null(o->data, "data"));
    DTI_TRY(dti_choose_variables(strategy, o->variables, o->num_variables, variable, &count));
    ditto_status status =
        count + o->num_data != 0
            ? fill_contents(contents, *variable, count, o)
            : DTI_FAIL(DITTO_ERR_INVALID, "a checkpoint of no variables and no data: there is nothing to save");
    if (status != DITTO_OK) {
        dti_contents_free(contents);
        free(*variable);
    }
    return status;
}

/* -- values -- */

static size_t padded(size_t bytes)
{
    return (bytes + DTI_LINE - 1) / DTI_LINE * DTI_LINE;
}

static ditto_status make_room(struct dti_snapshot *s, size_t bytes)
{
    if (bytes <= s->bytes)
        return DITTO_OK;
    bytes = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    dti_snapshot_free(s);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, errno, "no memory for a copy of %zu bytes to be saved", bytes);
    (void)madvise(memory, bytes, MADV_HUGEPAGE); /* a hint */
    *s = (struct dti_snapshot){ memory, bytes };
    return DITTO_OK;
}

void dti_snapshot_free(struct dti_snapshot *s)
{
    if (s->memory != NULL)
        munmap(s->memory, s->bytes);
    *s = (struct dti_snapshot){ .bytes = 0 };
}

/* Where the value lies in one row, and is nobody's part of it; NULL: nowhere. */
static const void *row_of(ditto_variable *v, const struct dti_entry *entry)
{
    const void *data;
    bool one = entry->synchronization == DITTO_ON_WRITE && ditto_variable_component(v, 0, &data) == DITTO_OK;
    return one ? data : NULL;
}

static bool is_copied(const struct dti_entry *entry, bool where_they_lie)
{
    return entry->own ? !where_they_lie : entry->data == NULL;
}

/* Variables are the first entries, in their order; data come behind them. */
ditto_status dti_save_copy(struct dti_contents *c, ditto_variable *const *variable, struct dti_snapshot *snapshot,
                           bool where_they_lie)
{
    size_t bytes = 0, at = 0;
    const char *function = dti_public_function;
    for (size_t i = 0; i < c->entries; i++) {
        if (!c->entry[i].own)
            c->entry[i].data = where_they_lie ? row_of(variable[i], &c->entry[i]) : NULL;
        bytes += is_copied(&c->entry[i], where_they_lie) ? padded(ditto_tensor_bytes(&c->entry[i].spec)) : 0;
    }
    DTI_TRY(make_room(snapshot, bytes));
    for (size_t i = 0; i < c->entries; i++) {
        if (!is_copied(&c->entry[i], where_they_lie))
            continue;
        bytes = ditto_tensor_bytes(&c->entry[i].spec);
        if (c->entry[i].own && bytes != 0)
            memcpy(snapshot->memory + at, c->entry[i].data, bytes);
        else if (!c->entry[i].own)
            DTI_TRY(ditto_variable_read(variable[i], snapshot->memory + at, bytes));
        c->entry[i].data = snapshot->memory + at;
        at += padded(bytes);
    }
    dti_public_function = function;
    return DITTO_OK;
}

/* -- the file -- */

static int by_offset(const void *left, const void *right)
{
    const struct dti_extent *a = left, *b = right;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static ditto_status complete(const struct dti_contents *c, const char *partial, const char *path)
{
    size_t extents = 0;
    struct dti_extent *extent = malloc((c->entries + 1) * sizeof *extent);
    if (extent == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to write %s", path);
    for (size_t i = 0; i < c->entries; i++)
        if (c->entry[i].offset != 0)
            extent[extents++] =
                (struct dti_extent){ c->entry[i].offset, c->entry[i].data, ditto_tensor_bytes(&c->entry[i].spec) };
    qsort(extent, extents, sizeof *extent, by_offset);
    ditto_status status = dti_file_complete(partial, path, extent, extents);
    free(extent);
    return status;
}

static ditto_status write_partial(struct dti_contents *c, const char *partial, const char *path)
{
    uint64_t bytes = MARGIN;
    for (size_t i = 0; i < c->entries; i++)
        bytes += ditto_tensor_bytes(&c->entry[i].spec) + DTI_USER_BLOCK;
    DTI_TRY(dti_file_has_room(partial, bytes)); /* HDF5 does not fail well for want of room */
    DTI_TRY(dti_hdf5_create(partial, c));
    return complete(c, partial, path);
}

ditto_status dti_save_write(struct dti_contents *c, const char *path)
{
    char *partial = dti_partial_name(path);
    if (partial == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a path");
    ditto_status status = write_partial(c, partial, path);
    if (status != DITTO_OK)
        (void)unlink(partial); /* what stands there is of no use to anybody */
    free(partial);
    return status;
}
