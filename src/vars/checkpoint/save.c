/* src/vars/checkpoint/save.c - plans a checkpoint, copies the values, and writes the file; see
 * checkpoint.h. */
#include "replicas/team/turn.h"
#include "sync/hosts/cross.h"
#include "vars/checkpoint/checkpoint.h"
#include "vars/checkpoint/hdf5/hdf5.h"
#include "vars/parameters/parameter_values.h"
#include "vars/registry/select_variables.h"
#include "vars/vars.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* -- Planning -- */

static ditto_status add_entry(struct dti_contents *contents, const ditto_variable *v)
{
    struct dti_contents_entry *entry = dti_contents_add(contents, v->name);
    if (entry == NULL)
        return DITTO_ERR_NO_MEMORY;
    entry->spec = v->spec;
    entry->synchronization = v->mirrored ? DITTO_ON_WRITE : DITTO_ON_READ;
    entry->aggregation = v->aggregation;
    entry->trainable = v->trainable;
    if (entry->synchronization == DITTO_ON_READ && entry->aggregation == DITTO_AGGREGATE_NONE)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "\"%.100s\" is sync-on-read without aggregation, so it has no value to be saved: "
                        "create it with SUM, MEAN or ONLY_FIRST_REPLICA, or choose what is saved",
                        entry->name);
    return DITTO_OK;
}

/* The versions are an array of u64, one for each shard. */
static ditto_status add_versions(struct dti_contents *contents, const ditto_variable *v)
{
    char *name = dti_versions_name(v->name);
    if (name == NULL)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory for a checkpoint");
    struct dti_contents_entry *entry = dti_contents_add(contents, name);
    free(name);
    if (entry == NULL)
        return DITTO_ERR_NO_MEMORY;
    entry->spec = (ditto_tensor){ .dtype = DITTO_U64, .rank = 1, .shape = { v->pieces } };
    entry->synchronization = DITTO_ON_WRITE;
    entry->aggregation = DITTO_AGGREGATE_NONE;
    entry->own = true;
    entry->versions_of = v;
    return DITTO_OK;
}

static ditto_status add_data(struct dti_contents *contents, const ditto_checkpoint_data *data)
{
    size_t bytes;
    DTI_TRY(dti_not_null(data->name, "the name of data"));
    if (strncmp(data->name, DTI_VERSIONS_FOLDER, sizeof DTI_VERSIONS_FOLDER - 1) == 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "data cannot be called \"%.100s\", because \"" DTI_VERSIONS_FOLDER
                        "\" is the folder of the versions of parameters: give it another name",
                        data->name);
    DTI_TRY(dti_tensor_check(&data->tensor, &bytes));
    DTI_TRY(dti_buffer_check(data->tensor.data, bytes, data->tensor.dtype, data->name));
    struct dti_contents_entry *entry = dti_contents_add(contents, data->name);
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
        return DTI_FAIL(DITTO_ERR_RANGE, "attributes[%zu].kind = %d is not a value of its enum", i,
                        (int)a->kind);
    if (a->kind != DITTO_ATTRIBUTE_TEXT)
        return DITTO_OK;
    DTI_TRY(dti_not_null(a->text, "an attribute's text"));
    if (strlen(a->text) > DITTO_MAX_ATTRIBUTE_BYTES)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "the attribute \"%.100s\" has %zu bytes: at most %d: save a longer one as a variable of u8",
            a->name, strlen(a->text), DITTO_MAX_ATTRIBUTE_BYTES);
    return DITTO_OK;
}

static ditto_status fill_contents(struct dti_contents *c, ditto_variable *const *variable, size_t count,
                                  const ditto_checkpoint_options *o)
{
    c->step = o->step;
    c->version = strdup(ditto_version());
    if (c->version == NULL)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory for a checkpoint");
    for (size_t i = 0; i < count; i++)
        DTI_TRY(add_entry(c, variable[i]));
    for (size_t i = 0; i < count; i++)
        if (dti_has_versions(variable[i]))
            DTI_TRY(add_versions(c, variable[i]));
    for (size_t i = 0; i < o->num_data; i++)
        DTI_TRY(add_data(c, &o->data[i]));
    for (size_t i = 0; i < o->num_attributes; i++) {
        DTI_TRY(check_attribute(&o->attributes[i], i));
        DTI_TRY(dti_contents_add_attribute(c, &o->attributes[i]));
    }
    return dti_contents_check(c);
}

ditto_status dti_save_plan(ditto_strategy *strategy, const ditto_checkpoint_options *o,
                           struct dti_contents *contents, ditto_variable ***variable, struct dti_gates *held)
{
    size_t count;
    *contents = (struct dti_contents){ .step = 0 };
    if (o->num_attributes != 0)
        DTI_TRY(dti_not_null(o->attributes, "attributes"));
    if (o->num_data != 0)
        DTI_TRY(dti_not_null(o->data, "data"));
    DTI_TRY(dti_select_variables(strategy, o->variables, o->num_variables, variable, &count, held));
    ditto_status status = count + o->num_data != 0
                              ? fill_contents(contents, *variable, count, o)
                              : DTI_FAIL(
                                    DITTO_ERR_INVALID,
                                    "a checkpoint of no variables and no data: there is nothing to save");
    if (status != DITTO_OK) {
        dti_contents_free(contents);
        free(*variable);
    }
    return status;
}

/* -- Values -- */

static size_t padded(size_t bytes)
{
    return (bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE;
}

static ditto_status ensure_capacity(struct dti_snapshot *s, size_t bytes)
{
    if (bytes <= s->bytes)
        return DITTO_OK;
    bytes = (bytes + DTI_HUGE_PAGE_BYTES - 1) / DTI_HUGE_PAGE_BYTES * DTI_HUGE_PAGE_BYTES;
    dti_snapshot_free(s);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, errno, "no memory for a copy of %zu bytes to be saved",
                              bytes);
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

static bool is_copied(const struct dti_contents_entry *entry, bool in_place)
{
    if (entry->versions_of != NULL)
        return true;
    return entry->own ? !in_place : entry->data == NULL;
}

/* Returns where the versions of a variable are copied to, or NULL if the checkpoint does not have them. */
static uint64_t *versions_of(const struct dti_contents *c, const ditto_variable *v)
{
    for (size_t i = 0; dti_has_versions(v) && i < c->entries; i++)
        if (c->entry[i].versions_of == v)
            return (uint64_t *)(uintptr_t)c->entry[i].data; /* in the snapshot */
    return NULL;
}

/* Copies the parameters and their slots to the places in the snapshot that their entries name. */
static ditto_status copy_parameters(const struct dti_contents *c, ditto_variable *const *variable,
                                    struct dti_team *team)
{
    size_t count = 0;
    struct dti_frame frame;
    struct dti_parameter_value *list = malloc((c->entries + 1) * sizeof *list);
    if (list == NULL)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory to copy parameters");
    for (size_t i = 0; i < c->entries; i++)
        if (!c->entry[i].own && dti_is_parameter(variable[i]))
            list[count++] = (struct dti_parameter_value){ .variable = variable[i],
                                                          .value = (char *)(uintptr_t)c->entry[i].data,
                                                          .versions = versions_of(c, variable[i]) };
    ditto_status status = dti_cross_enter(team, &frame, DTI_CALLER_KEEPS_AFFINITY);
    if (status == DITTO_OK) {
        status = dti_parameters_save(list, count);
        dti_cross_leave(team, &frame);
    }
    free(list);
    return status;
}

/* The first entries are the variables, in the order of `variable`. The program's own data follow them. */
ditto_status dti_save_copy(struct dti_contents *c, ditto_variable *const *variable,
                           struct dti_snapshot *snapshot, bool in_place)
{
    size_t bytes = 0, at = 0;
    for (size_t i = 0; i < c->entries; i++) {
        if (!c->entry[i].own) {
            /* Only a value that is contiguous in memory of the first host can be written from there. That of
             * a sync-on-read variable is computed from its components, so it has no address. */
            const ditto_variable *v = variable[i];
            bool stays = in_place && c->entry[i].synchronization == DITTO_ON_WRITE && v->shard == NULL &&
                         v->pieces == 1 && dti_cross_host(v->team) == 0;
            c->entry[i].data = stays ? dti_variable_component(v, 0) : NULL;
        }
        bytes += is_copied(&c->entry[i], in_place) ? padded(ditto_tensor_bytes(&c->entry[i].spec)) : 0;
    }
    DTI_TRY(ensure_capacity(snapshot, bytes));
    for (size_t i = 0; i < c->entries; i++) {
        if (!is_copied(&c->entry[i], in_place))
            continue;
        bytes = ditto_tensor_bytes(&c->entry[i].spec);
        /* Parameters and their versions are copied together, below. */
        if (!c->entry[i].own && !dti_is_parameter(variable[i]))
            DTI_TRY(DTI_OWN(ditto_variable_read(variable[i], snapshot->memory + at, bytes)));
        else if (c->entry[i].own && c->entry[i].versions_of == NULL && bytes != 0)
            memcpy(snapshot->memory + at, c->entry[i].data, bytes);
        c->entry[i].data = snapshot->memory + at;
        at += padded(bytes);
    }
    /* All variables of a strategy are parameters, or none is. */
    bool has_parameters = c->entries != 0 && !c->entry[0].own && dti_is_parameter(variable[0]);
    return has_parameters ? copy_parameters(c, variable, variable[0]->team) : DITTO_OK;
}

/* -- The file -- */

/* Compares the file that was written with the planned contents. It checks the checksum, and then reads the
 * contents as a restore would. */
static ditto_status read_back(const struct dti_contents *c, int fd, const char *path)
{
    struct dti_contents found = { .step = 0 };
    uint64_t bytes = 0;
    bool same = false;
    ditto_status status = dti_checkpoint_file_check(fd, path, &bytes);
    if (status == DITTO_OK)
        status = dti_hdf5_list(fd, bytes, path, &found);
    if (status == DITTO_OK)
        status = dti_contents_same(c, &found, &same);
    dti_contents_free(&found);
    if (status == DITTO_ERR_CORRUPT || status == DITTO_ERR_UNSUPPORTED || (status == DITTO_OK && !same))
        return DTI_FAIL(DITTO_ERR_IO,
                        "%s: the bytes that were written are different when they are read back (a device "
                        "that loses bytes, or variables that were written during the save); the previous "
                        "checkpoint is unchanged",
                        path);
    return status;
}

static ditto_status write_file(const struct dti_contents *c, const struct dti_skeleton *skeleton, int fd,
                               const char *path)
{
    size_t extents = 1;
    struct dti_file_extent *extent = malloc((c->entries + 1) * sizeof *extent);
    if (extent == NULL)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory to write %s", path);
    extent[0] = (struct dti_file_extent){ DTI_USER_BLOCK, skeleton->bytes, skeleton->size };
    for (size_t i = 0; i < c->entries; i++)
        if (c->entry[i].offset != 0)
            extent[extents++] = (struct dti_file_extent){ c->entry[i].offset, c->entry[i].data,
                                                          ditto_tensor_bytes(&c->entry[i].spec) };
    ditto_status status = dti_checkpoint_file_fill(fd, path, skeleton->file_bytes, extent, extents);
    free(extent);
    return status == DITTO_OK ? read_back(c, fd, path) : status;
}

static ditto_status write_checkpoint(struct dti_contents *c, const char *path)
{
    struct dti_partial partial;
    struct dti_skeleton skeleton;
    DTI_TRY(dti_hdf5_lay_out(c, &skeleton));
    ditto_status status = dti_partial_create(path, &partial);
    if (status == DITTO_OK) {
        status = write_file(c, &skeleton, partial.fd, DTI_SHOWN(path));
        if (status == DITTO_OK)
            status = dti_partial_publish(&partial, path);
        else
            dti_partial_discard(&partial);
    }
    free(skeleton.bytes);
    return status;
}

/* Blocks SIGXFSZ during the save. A write beyond the largest file size that the process may create then fails
 * with EFBIG, and the signal does not end the process. */
ditto_status dti_save_write(struct dti_contents *c, const char *path)
{
    sigset_t too_large, before, pending;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    int failed = pthread_sigmask(SIG_BLOCK, &too_large, &before);
    if (failed != 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, failed, "blocking SIGXFSZ to write %s", DTI_SHOWN(path));
    bool was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    ditto_status status = write_checkpoint(c, path);
    if (!was_pending && sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1)
        /* The signal came from this save, so it is removed before signals are unblocked. */
        (void)sigtimedwait(&too_large, NULL, &(struct timespec){ .tv_sec = 0 });
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}
