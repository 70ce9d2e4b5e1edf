/* src/vars/checkpoint/api_checkpoint.c - the public functions of include/ditto/checkpoint.h that work on one
 * file. */
#include "replicas/team/turn.h"
#include "sync/hosts/cross.h"
#include "vars/checkpoint/checkpoint.h"
#include "vars/checkpoint/hdf5/hdf5.h"
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Over several hosts all copy the values, because some are computed from the components of all, and the first
 * one writes the file. */
static ditto_status save(ditto_strategy *strategy, const char *path, const ditto_checkpoint_options *options)
{
    ditto_checkpoint_options known;
    struct dti_contents contents;
    struct dti_snapshot snapshot = { .bytes = 0 };
    ditto_variable **variable;
    struct dti_team *team = dti_team_of(strategy);
    DTI_TRY(dti_not_null(path, "path"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_checkpoint_options"));
    DTI_LEAVES_GATES(variables);
    DTI_TRY(dti_save_plan(strategy, &known, &contents, &variable, &variables));
    ditto_status status = dti_save_copy(&contents, variable, &snapshot, true);
    if (status == DITTO_OK && dti_cross_host(team) == 0)
        status = dti_save_write(&contents, path);
    dti_snapshot_free(&snapshot);
    dti_contents_free(&contents);
    free(variable);
    return dti_cross_agree(team, "the end of ditto_checkpoint_save", status);
}

ditto_status ditto_checkpoint_save(ditto_strategy *strategy, const char *path,
                                   const ditto_checkpoint_options *options)
{
    int before = errno;
    DTI_ENTER();
    DTI_TRY(dti_not_null(strategy, "strategy"));
    DTI_LEAVES_GATE(held, dti_strategy_hold(strategy));
    struct dti_team *team = dti_team_of(strategy);
    uint64_t begin = dti_cross_begin(team);
    return dti_keep_errno(before, dti_cross_tell(team, begin, save(strategy, path, options)));
}

/* -- Inspecting a file -- */

void dti_checkpoint_close(ditto_checkpoint *file)
{
    int before = errno;
    if (file == NULL)
        return;
    if (file->fd >= 0)
        close(file->fd); /* errors are ignored, because the file was only read */
    dti_contents_free(&file->contents);
    free(file);
    errno = before;
}

ditto_status dti_checkpoint_open(const char *path, ditto_checkpoint **out)
{
    uint64_t bytes = 0;
    ditto_checkpoint *file = calloc(1, sizeof *file);
    if (file == NULL)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory to open %s", DTI_SHOWN(path));
    (void)dti_path_shown(path, file->path);
    file->fd = -1;
    ditto_status status = dti_checkpoint_file_open(path, &file->fd, &bytes);
    if (status == DITTO_OK)
        status = dti_hdf5_list(file->fd, bytes, file->path, &file->contents);
    if (status == DITTO_OK)
        *out = file;
    else
        dti_checkpoint_close(file);
    return status;
}

ditto_status ditto_checkpoint_close(ditto_checkpoint *file)
{
    DTI_UNCANCELLED();
    dti_checkpoint_close(file);
    return DITTO_OK;
}

ditto_status ditto_checkpoint_info(const ditto_checkpoint *file, ditto_checkpoint_properties *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(file, "checkpoint"));
    DTI_TRY(dti_result_check(out, "ditto_checkpoint_properties"));
    const struct dti_contents *c = &file->contents;
    ditto_checkpoint_properties found = { .step = c->step,
                                          .version = c->version,
                                          .num_entries = c->entries,
                                          .attributes = c->attribute,
                                          .num_attributes = c->attributes };
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

ditto_status ditto_checkpoint_get(const ditto_checkpoint *file, size_t entry, ditto_checkpoint_entry *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(file, "checkpoint"));
    DTI_TRY(dti_not_null(out, "out"));
    if (entry >= file->contents.entries)
        return DTI_FAIL(DITTO_ERR_RANGE, "entry %zu does not exist: %s has %zu", entry, file->path,
                        file->contents.entries);
    const struct dti_contents_entry *e = &file->contents.entry[entry];
    *out = (ditto_checkpoint_entry){ e->name,        e->spec,      e->synchronization,
                                     e->aggregation, e->trainable, e->own };
    return DITTO_OK;
}

ditto_status ditto_checkpoint_read(ditto_checkpoint *file, const char *name, void *dst, size_t bytes)
{
    int before = errno;
    DTI_ENTER();
    DTI_TRY(dti_not_null(file, "checkpoint"));
    DTI_TRY(dti_not_null(name, "name"));
    const struct dti_contents_entry *entry = dti_contents_find(&file->contents, name);
    if (entry == NULL)
        return DTI_FAIL(DITTO_ERR_NOT_FOUND, "%s has no entry \"%.100s\"", file->path, name);
    if (ditto_tensor_bytes(&entry->spec) != bytes)
        return DTI_FAIL(DITTO_ERR_SHAPE, "\"%.100s\" has %zu bytes, but dst has %zu", name,
                        ditto_tensor_bytes(&entry->spec), bytes);
    DTI_TRY(dti_buffer_check(dst, bytes, entry->spec.dtype, "dst"));
    return dti_keep_errno(before, dti_checkpoint_file_read(file->fd, dst, bytes, entry->offset, file->path));
}

/* -- Restoring -- */

static ditto_status restore(ditto_strategy *strategy, const char *path, const ditto_restore_options *options,
                            ditto_restore_status *out)
{
    ditto_restore_options known;
    ditto_checkpoint *file;
    DTI_TRY(dti_not_null(path, "path"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_restore_options"));
    DTI_TRY(dti_checkpoint_open_on_hosts(dti_team_of(strategy), path, &file));
    ditto_status status = dti_restore(strategy, file, &known, out);
    dti_checkpoint_close(file);
    return status;
}

ditto_status ditto_checkpoint_restore(ditto_strategy *strategy, const char *path,
                                      const ditto_restore_options *options, ditto_restore_status *out)
{
    int before = errno;
    DTI_ENTER();
    DTI_TRY(dti_not_null(strategy, "strategy"));
    DTI_LEAVES_GATE(held, dti_strategy_hold(strategy));
    struct dti_team *team = dti_team_of(strategy);
    uint64_t begin = dti_cross_begin(team);
    return dti_keep_errno(before, dti_cross_tell(team, begin, restore(strategy, path, options, out)));
}

/* -- Of this process, or of the first host -- */

ditto_status ditto_checkpoint_open(ditto_strategy *strategy, const char *path, ditto_checkpoint **out)
{
    int before = errno;
    DTI_ENTER();
    if (strategy == NULL) {
        DTI_TRY(dti_not_null(path, "path"));
        DTI_TRY(dti_not_null(out, "out"));
        return dti_keep_errno(before, dti_checkpoint_open(path, out));
    }
    DTI_LEAVES_GATE(held, dti_strategy_hold(strategy));
    struct dti_team *team = dti_team_of(strategy);
    uint64_t begin = dti_cross_begin(team);
    ditto_status status = dti_not_null(path, "path");
    if (status == DITTO_OK)
        status = dti_not_null(out, "out");
    if (status == DITTO_OK)
        status = dti_checkpoint_open_on_hosts(team, path, out);
    return dti_keep_errno(before, dti_cross_tell(team, begin, status));
}

ditto_status ditto_checkpoint_latest(ditto_strategy *strategy, const char *folder, const char *prefix,
                                     char *path, size_t capacity, size_t *length, int64_t *step)
{
    int before = errno;
    DTI_ENTER();
    if (strategy == NULL)
        return dti_keep_errno(before, dti_checkpoint_latest(folder, prefix, path, capacity, length, step));
    DTI_LEAVES_GATE(held, dti_strategy_hold(strategy));
    struct dti_team *team = dti_team_of(strategy);
    uint64_t begin = dti_cross_begin(team);
    struct dti_text text = { path, capacity, 0 };
    struct dti_latest latest;
    ditto_status status = capacity != 0 ? dti_not_null(path, "path") : DITTO_OK;
    if (status == DITTO_OK)
        status = dti_checkpoint_latest_on_hosts(team, folder, prefix, &latest);
    if (status != DITTO_OK)
        return dti_keep_errno(before, dti_cross_tell(team, begin, status));
    dti_text_add(&text, "%s", latest.path);
    if (length != NULL)
        *length = text.length;
    if (step != NULL)
        *step = latest.step;
    return dti_keep_errno(before, DITTO_OK);
}
