/* src/vars/checkpoint/parameter_values.c - copies parameters and their slots, shard by shard; see
 * parameter_values.h. */
#include "vars/checkpoint/parameter_values.h"
#include "vars/parameters/parameter.h"
#include "vars/vars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool dti_is_parameter(const ditto_variable *v)
{
    return v->shard != NULL;
}

bool dti_has_versions(const ditto_variable *v)
{
    return v->shard != NULL && !v->optimizer_slot;
}

char *dti_versions_name(const char *name)
{
    size_t length = sizeof DTI_VERSIONS_FOLDER + strlen(name);
    char *joined = malloc(length);
    if (joined != NULL)
        snprintf(joined, length, DTI_VERSIONS_FOLDER "%s", name);
    return joined;
}

/* A parameter and its slots have the same locks, and become neighbours. */
static int by_shards(const void *left, const void *right)
{
    uintptr_t a = (uintptr_t)((const struct dti_parameter_value *)left)->variable->shard;
    uintptr_t b = (uintptr_t)((const struct dti_parameter_value *)right)->variable->shard;
    return (a > b) - (a < b);
}

/* Copies the elements of a shard. A variable without elements may have fewer pieces than its parameter. */
static void copy_piece(const struct dti_parameter_value *p, uint32_t piece, bool saves)
{
    const ditto_variable *v = p->variable;
    size_t element_bytes = ditto_dtype_bytes(v->spec.dtype);
    if (piece >= v->pieces || v->piece[piece].count == 0)
        return;
    char *elements = v->copies_of_piece[piece].copy[0].data;
    char *value = p->value + v->piece[piece].first * element_bytes;
    if (saves)
        dti_shard_copy(v, value, elements, v->piece[piece].count * element_bytes, true);
    else
        dti_shard_apply(v, DTI_RULE_ASSIGN, elements, value, v->piece[piece].count);
}

/* What is done to each shard of a parameter, under its lock. */
static void save_version(const struct dti_parameter_value *with_versions, uint32_t piece)
{
    if (with_versions != NULL)
        with_versions->versions[piece] = dti_shard_version(with_versions->variable, piece);
}

static void restore_version(const ditto_variable *v, const struct dti_parameter_value *with_versions,
                            uint32_t piece)
{
    if (with_versions == NULL)
        dti_shard_updated(v, piece);
    else
        dti_shard_set_version(
            v, piece,
            dti_restored_version(with_versions->versions, with_versions->num_versions, v->pieces, piece));
}

/* Copies a parameter and its slots, which are the `count` elements of the list. */
static void copy_group(const struct dti_parameter_value *list, size_t count, bool saves)
{
    const ditto_variable *v = list[0].variable;
    const struct dti_parameter_value *with_versions = NULL;
    for (size_t i = 0; i < count; i++) {
        if (list[i].versions != NULL)
            with_versions = &list[i];
        if (list[i].variable->pieces > v->pieces)
            v = list[i].variable;
    }
    for (uint32_t piece = 0; piece < v->pieces; piece++) {
        dti_shard_lock(v, piece);
        if (saves) /* before the elements, for variables without locks (V1 in parameter.h) */
            save_version(with_versions, piece);
        for (size_t i = 0; i < count; i++)
            copy_piece(&list[i], piece, saves);
        if (!saves)
            restore_version(v, with_versions, piece);
        dti_shard_unlock(v, piece);
    }
}

static void copy_all(struct dti_parameter_value *list, size_t count, bool saves)
{
    size_t end;
    if (count == 0)
        return;
    qsort(list, count, sizeof *list, by_shards);
    for (size_t first = 0; first < count; first = end) {
        for (end = first + 1; end < count && by_shards(&list[first], &list[end]) == 0;)
            end++;
        copy_group(&list[first], end - first, saves);
    }
}

void dti_parameters_save(struct dti_parameter_value *list, size_t count)
{
    copy_all(list, count, true);
}

void dti_parameters_restore(struct dti_parameter_value *list, size_t count)
{
    copy_all(list, count, false);
}
