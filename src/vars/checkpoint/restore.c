/* src/vars/checkpoint/restore.c - restores variables from a file. All entries are matched and read before the
 * first value is written. */
#include "replicas/team/turn.h"
#include "sync/hosts/cross.h"
#include "vars/checkpoint/checkpoint.h"
#include "vars/parameters/parameter_values.h"
#include "vars/registry/registry.h"
#include "vars/registry/select_variables.h"
#include "vars/vars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A value that is being restored. */
struct restored_value {
    const struct dti_contents_entry *entry;
    ditto_variable *variable; /* NULL if it does not exist yet */
    void *value;

    /* [num_versions] The versions of the shards of a parameter, or NULL. */
    uint64_t *versions;
    size_t num_versions;
};

struct restoring {
    ditto_strategy *strategy;
    ditto_checkpoint *file;
    const ditto_restore_options *options;

    /* [num_variables] The variables that the user has chosen, or all of the strategy. */
    ditto_variable **variable;

    size_t num_variables;
    struct restored_value *value; /* [num_values] */
    size_t num_values;
    ditto_restore_status result;
};

static ditto_status no_memory(void)
{
    return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory to restore a checkpoint");
}

static ditto_status check_fit(const ditto_variable *v, const struct dti_contents_entry *entry,
                              const char *path)
{
    char what[256];
    if (!v->mirrored && v->aggregation == DITTO_AGGREGATE_NONE)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "\"%.100s\" is sync-on-read without aggregation: nothing can be restored to it",
                        entry->name);
    snprintf(what, sizeof what, "the value in %.200s (from which nothing was restored)", path);
    return dti_spec_check(&v->spec, entry->name, &entry->spec, what);
}

/* Sets *out to the variable of this name, or to NULL if there is none. Returns DITTO_ERR_INVALID if two
 * variables have the name. */
static ditto_status find_variable(const struct restoring *r, const char *name, ditto_variable **out)
{
    *out = NULL;
    for (size_t i = 0; i < r->num_variables; i++) {
        if (strcmp(r->variable[i]->name, name) != 0)
            continue;
        if (*out != NULL)
            return DTI_FAIL(DITTO_ERR_INVALID, "two variables are called \"%.100s\": give each its own name",
                            name);
        *out = r->variable[i];
    }
    return DITTO_OK;
}

/* Finds the variable of each entry of the file. Entries of the program's own data are skipped. If the user
 * has chosen variables, entries without a variable are skipped too. */
static ditto_status match_entries(struct restoring *r)
{
    const struct dti_contents *c = &r->file->contents;
    r->value = calloc(c->entries + 1, sizeof *r->value);
    if (r->value == NULL)
        return no_memory();
    for (size_t i = 0; i < c->entries; i++) {
        ditto_variable *v;
        if (c->entry[i].own)
            continue;
        DTI_TRY(find_variable(r, c->entry[i].name, &v));
        if (v == NULL && r->options->variables != NULL)
            continue;
        if (v != NULL)
            DTI_TRY(check_fit(v, &c->entry[i], r->file->path));
        r->value[r->num_values++] = (struct restored_value){ .entry = &c->entry[i], .variable = v };
        *(v != NULL ? &r->result.num_restored : &r->result.num_held) += 1;
    }
    return DITTO_OK;
}

/* A message contains the first names and the number of the others, because all names of a large model would
 * not fit. */
#define NAMES_LISTED 3

/* Counts the variables for which the file has no entry. An entry of the program's own data is not the value
 * of a variable that has its name. */
static ditto_status find_missing(struct restoring *r)
{
    char names[300] = "";
    struct dti_text text = { names, sizeof names, 0 };
    for (size_t i = 0; i < r->num_variables; i++) {
        const char *name = r->variable[i]->name;
        const struct dti_contents_entry *entry = dti_contents_find(&r->file->contents, name);
        if (entry != NULL && !entry->own)
            continue;
        if (r->result.num_missing < NAMES_LISTED)
            dti_text_add(&text, strlen(name) > 60 ? "%s\"%.60s...\"" : "%s\"%s\"",
                         r->result.num_missing > 0 ? ", " : "", name);
        r->result.num_missing++;
    }
    if (r->result.num_missing == 0 || r->options->partial)
        return DITTO_OK;
    if (r->result.num_missing > NAMES_LISTED)
        dti_text_add(&text, " and %zu more", r->result.num_missing - NAMES_LISTED);
    return DTI_FAIL(
        DITTO_ERR_NOT_FOUND,
        "%s does not have %s; nothing was restored (set options->partial to leave such variables unchanged)",
        r->file->path, names);
}

/* Reads an entry into memory that is allocated for it. */
static ditto_status read_entry(const struct restoring *r, const struct dti_contents_entry *entry, void **out)
{
    size_t bytes = ditto_tensor_bytes(&entry->spec);
    *out = aligned_alloc(DTI_CACHE_LINE, bytes / DTI_CACHE_LINE * DTI_CACHE_LINE + DTI_CACHE_LINE);
    if (*out == NULL)
        return no_memory();
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): match_entries sets the entry of each value */
    return dti_checkpoint_file_read(r->file->fd, *out, bytes, entry->offset, r->file->path);
}

/* Reads the versions of a parameter, if the file has them. */
static ditto_status read_versions(const struct restoring *r, struct restored_value *value)
{
    void *versions = NULL;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): match_entries sets the entry of each value */
    char *name = dti_versions_name(value->entry->name);
    if (name == NULL)
        return no_memory();
    const struct dti_contents_entry *entry = dti_contents_find(&r->file->contents, name);
    free(name);
    if (entry == NULL || !entry->own || entry->spec.dtype != DITTO_U64 || entry->spec.rank != 1 ||
        entry->spec.shape[0] == 0)
        return DITTO_OK;
    ditto_status status = read_entry(r, entry, &versions);
    value->versions = versions;
    value->num_versions = entry->spec.shape[0];
    return status;
}

/* Stores the values without a variable, all of them or, if a host has not come so far, none. */
static ditto_status hold_values(const struct restoring *r)
{
    size_t count = 0;
    struct dti_named_value *held = malloc((r->num_values + 1) * sizeof *held);
    if (held == NULL)
        return no_memory();
    for (size_t i = 0; i < r->num_values; i++) {
        const struct restored_value *m = &r->value[i];
        if (m->variable != NULL)
            continue;
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): match_entries sets the entry of each value */
        held[count] = (struct dti_named_value){ .name = m->entry->name,
                                                .value = m->entry->spec,
                                                .versions = m->versions,
                                                .num_versions = m->num_versions };
        held[count++].value.data = m->value;
    }
    ditto_status status = dti_restore_values(r->strategy, held, count);
    free(held);
    return status;
}

/* Writes the values. If it fails, nothing has changed, with two exceptions: over several hosts, and if the
 * lock of a parameter's shard could not be taken, a part may have been written. Values without a variable are
 * stored first, because storing them may run out of memory. After that nothing else can fail: assigning to
 * existing variables allocates nothing, and the thread already has the turn and is pinned. Hosts have the
 * same values, those of one file, so they need not be compared. */
static ditto_status write_values(const struct restoring *r, struct dti_parameter_value *list)
{
    struct dti_team *team = dti_team_of(r->strategy);
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_PINNED));
    ditto_status status = hold_values(r);
    for (size_t i = 0; i < r->num_values && status == DITTO_OK; i++) {
        ditto_variable *v = r->value[i].variable;
        if (v != NULL && !dti_is_parameter(v))
            status = v->kind->cross_write(v, DTI_RULE_ASSIGN, r->value[i].value);
    }
    size_t count = 0; /* counts parameters and their slots, which are written together */
    for (size_t i = 0; i < r->num_values; i++)
        if (r->value[i].variable != NULL && dti_is_parameter(r->value[i].variable))
            list[count++] = (struct dti_parameter_value){ .variable = r->value[i].variable,
                                                          .value = r->value[i].value,
                                                          .versions = r->value[i].versions,
                                                          .num_versions = r->value[i].num_versions };
    if (status == DITTO_OK)
        status = dti_parameters_restore(list, count);
    dti_cross_leave(team, &frame);
    return status;
}

static ditto_status restore(struct restoring *r)
{
    DTI_LEAVES_GATES(held);
    DTI_TRY(dti_select_variables(r->strategy, r->options->variables, r->options->num_variables, &r->variable,
                                 &r->num_variables, &held));
    DTI_TRY(match_entries(r));
    DTI_TRY(find_missing(r));
    for (size_t i = 0; i < r->num_values; i++) {
        DTI_TRY(read_entry(r, r->value[i].entry, &r->value[i].value));
        if (r->value[i].variable == NULL || dti_has_versions(r->value[i].variable))
            DTI_TRY(read_versions(r, &r->value[i]));
    }
    struct dti_parameter_value *list = malloc((r->num_values + 1) * sizeof *list);
    ditto_status status = list != NULL ? write_values(r, list) : no_memory();
    free(list);
    return status;
}

ditto_status dti_restore(ditto_strategy *strategy, ditto_checkpoint *file,
                         const ditto_restore_options *options, ditto_restore_status *result)
{
    struct restoring r = { .strategy = strategy, .file = file, .options = options };
    ditto_status status = restore(&r);
    for (size_t i = 0; i < r.num_values; i++) {
        free(r.value[i].value);
        free(r.value[i].versions);
    }
    free(r.value);
    free(r.variable);
    if (status == DITTO_OK && result != NULL)
        *result = r.result;
    return status;
}
