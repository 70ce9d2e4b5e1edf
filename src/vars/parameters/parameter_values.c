/* src/vars/parameters/parameter_values.c - copies parameters and their slots, shard by shard; see
 * parameter_values.h. */
#include "vars/parameters/parameter_values.h"
#include "vars/parameters/parameter.h"

#include <stdlib.h>

/* What a restore does to the versions of the shards. */
enum restored { VERSIONS_STAY, VERSIONS_COUNT, VERSIONS_GIVEN };

/* Variables of a list that have the same locks: a parameter and its slots. */
struct shard_group {
    const struct dti_parameter_value *list;
    size_t count;

    /* That with the most pieces. A variable without elements may have fewer pieces than its parameter. */
    const ditto_variable *v;
    enum restored restored;
    uint64_t *versions; /* [num_versions] that were given, or that are to be stored */
    size_t num_versions;
};

static struct shard_group group_of(const struct dti_parameter_value *list, size_t count)
{
    struct shard_group g = { .list = list, .count = count, .v = list[0].variable };
    for (size_t i = 0; i < count; i++) {
        if (list[i].variable->pieces > g.v->pieces)
            g.v = list[i].variable;
        if (list[i].versions != NULL) {
            g.restored = VERSIONS_GIVEN;
            g.versions = list[i].versions;
            g.num_versions = list[i].num_versions;
        } else if (!list[i].variable->borrows_shards && g.restored == VERSIONS_STAY) {
            g.restored = VERSIONS_COUNT;
        }
    }
    return g;
}

static bool has_elements(const ditto_variable *v, uint32_t piece)
{
    return piece < v->pieces && dti_shard_bytes(v, piece) != 0;
}

static ditto_status save_shard(const struct shard_group *g, uint32_t piece)
{
    DTI_TRY(dti_shard_lock(g->v, piece));
    /* before the elements, for variables without locks (V1 in parameter.h) */
    if (g->versions != NULL)
        g->versions[piece] = dti_shard_version(g->v, piece);
    for (size_t i = 0; i < g->count; i++) {
        const ditto_variable *v = g->list[i].variable;
        if (has_elements(v, piece))
            dti_shard_copy(v, dti_shard_in(v, piece, g->list[i].value), dti_shard_elements(v, piece),
                           dti_shard_bytes(v, piece), true);
    }
    dti_shard_unlock(g->v, piece);
    return DITTO_OK;
}

static ditto_status restore_shard(const struct shard_group *g, uint32_t piece)
{
    DTI_TRY(dti_shard_lock(g->v, piece));
    for (size_t i = 0; i < g->count; i++) {
        const ditto_variable *v = g->list[i].variable;
        if (has_elements(v, piece))
            dti_shard_apply(v, DTI_RULE_ASSIGN, dti_shard_elements(v, piece),
                            dti_shard_in(v, piece, g->list[i].value), v->piece[piece].count);
    }
    if (g->restored == VERSIONS_GIVEN)
        dti_shard_set_version(g->v, piece,
                              dti_restored_version(g->versions, g->num_versions, g->v->pieces, piece));
    else if (g->restored == VERSIONS_COUNT)
        dti_shard_updated(g->v, piece, NULL);
    dti_shard_unlock(g->v, piece);
    return DITTO_OK;
}

/* A parameter and its slots have the same locks, and become neighbours. */
static int by_shards(const void *left, const void *right)
{
    uintptr_t a = (uintptr_t)((const struct dti_parameter_value *)left)->variable->shard;
    uintptr_t b = (uintptr_t)((const struct dti_parameter_value *)right)->variable->shard;
    return (a > b) - (a < b);
}

static ditto_status copy_all(struct dti_parameter_value *list, size_t count,
                             ditto_status (*copy)(const struct shard_group *g, uint32_t piece))
{
    if (count != 0)
        qsort(list, count, sizeof *list, by_shards);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && by_shards(&list[first], &list[end]) == 0;)
            end++;
        struct shard_group g = group_of(&list[first], end - first);
        for (uint32_t piece = 0; piece < g.v->pieces; piece++)
            DTI_TRY(copy(&g, piece));
    }
    return DITTO_OK;
}

ditto_status dti_parameters_save(struct dti_parameter_value *list, size_t count)
{
    return copy_all(list, count, save_shard);
}

ditto_status dti_parameters_restore(struct dti_parameter_value *list, size_t count)
{
    return copy_all(list, count, restore_shard);
}
