/* src/vars/parameters/parameter_values.c - copies parameters and their slots, shard by shard; see
 * parameter_values.h. */
#include "vars/parameters/parameter_values.h"
#include "vars/parameters/parameter.h"

#include <stdlib.h>

/* -- one shard -- */

size_t dti_group_bytes(const ditto_variable *v, uint32_t piece)
{
    return piece < v->pieces ? dti_shard_bytes(v, piece) : 0;
}

uint64_t dti_group_save_shard(const struct dti_parameter_group *g, uint32_t piece, dti_parameter_place *place,
                              void *context)
{
    dti_shard_lock(g->v, piece);
    /* before the elements, for variables without locks (V1 in parameter.h) */
    uint64_t version = dti_shard_version(g->v, piece);
    for (size_t i = 0; i < g->count; i++) {
        const ditto_variable *v = g->list[i].variable;
        if (dti_group_bytes(v, piece) != 0)
            dti_shard_copy(v, place(context, &g->list[i], piece), dti_shard_elements(v, piece),
                           dti_shard_bytes(v, piece), true);
    }
    dti_shard_unlock(g->v, piece);
    return version;
}

void dti_group_restore_shard(const struct dti_parameter_group *g, uint32_t piece, dti_parameter_place *place,
                             void *context)
{
    dti_shard_lock(g->v, piece);
    for (size_t i = 0; i < g->count; i++) {
        const ditto_variable *v = g->list[i].variable;
        if (dti_group_bytes(v, piece) != 0)
            dti_shard_apply(v, DTI_RULE_ASSIGN, dti_shard_elements(v, piece),
                            place(context, &g->list[i], piece), v->piece[piece].count);
    }
    if (g->restored == DTI_VERSIONS_GIVEN)
        dti_shard_set_version(g->v, piece,
                              dti_restored_version(g->versions, g->num_versions, g->v->pieces, piece));
    else if (g->restored == DTI_VERSIONS_COUNT)
        dti_shard_updated(g->v, piece);
    dti_shard_unlock(g->v, piece);
}

/* -- all shards of a group -- */

static char *place_in_value(void *context, const struct dti_parameter_value *value, uint32_t piece)
{
    (void)context;
    return dti_shard_in(value->variable, piece, value->value);
}

static struct dti_parameter_group group_of(const struct dti_parameter_value *list, size_t count)
{
    struct dti_parameter_group g = { .list = list, .count = count, .v = list[0].variable };
    for (size_t i = 0; i < count; i++) {
        if (list[i].variable->pieces > g.v->pieces)
            g.v = list[i].variable;
        if (list[i].versions != NULL) {
            g.restored = DTI_VERSIONS_GIVEN;
            g.versions = list[i].versions;
            g.num_versions = list[i].num_versions;
        } else if (!list[i].variable->borrows_shards && g.restored == DTI_VERSIONS_STAY) {
            g.restored = DTI_VERSIONS_COUNT;
        }
    }
    return g;
}

static void put_group(struct dti_bytes *to, const struct dti_parameter_group *g, enum dti_ask what)
{
    dti_put_request(to,
                    &(struct dti_parameter_request){
                        .what = what, .flag = g->restored, .count = g->count, .versions = g->num_versions });
    for (size_t i = 0; i < g->count; i++)
        dti_put_section(to, &g->list[i].variable->stamp, sizeof g->list[i].variable->stamp);
}

/* -- saving -- */

static void save_own(void *context)
{
    const struct dti_parameter_group *g = context;
    for (uint32_t piece = 0; piece < g->v->pieces; piece++) {
        if (!dti_owns_piece(g->v, piece))
            continue;
        uint64_t version = dti_group_save_shard(g, piece, place_in_value, NULL);
        if (g->restored == DTI_VERSIONS_GIVEN) /* they are taken here */
            ((uint64_t *)(uintptr_t)g->versions)[piece] = version;
    }
}

static bool ask_to_save(void *context, uint32_t host, struct dti_bytes *request)
{
    (void)host;
    put_group(request, context, DTI_ASK_SAVE);
    return true;
}

static ditto_status take_saved(void *context, uint32_t host, struct dti_bytes_reader *answer)
{
    const struct dti_parameter_group *g = context;
    for (uint32_t piece = 0; piece < g->v->pieces; piece++) {
        uint64_t version;
        if (g->v->host_of_piece[piece] != host)
            continue;
        dti_bytes_get(answer, &version, sizeof version);
        if (g->restored == DTI_VERSIONS_GIVEN)
            ((uint64_t *)(uintptr_t)g->versions)[piece] = version;
        for (size_t i = 0; i < g->count; i++)
            if (dti_group_bytes(g->list[i].variable, piece) != 0)
                dti_bytes_get(answer, place_in_value(NULL, &g->list[i], piece),
                              dti_group_bytes(g->list[i].variable, piece));
    }
    return dti_bytes_reader_status(answer);
}

static ditto_status save_group(struct dti_parameter_group *g)
{
    return dti_ask_owners(&(struct dti_asking){
        .v = g->v, .own = save_own, .put = ask_to_save, .take = take_saved, .context = g });
}

/* -- restoring -- */

static void restore_own(void *context)
{
    const struct dti_parameter_group *g = context;
    for (uint32_t piece = 0; piece < g->v->pieces; piece++)
        if (dti_owns_piece(g->v, piece))
            dti_group_restore_shard(g, piece, place_in_value, NULL);
}

static bool ask_to_restore(void *context, uint32_t host, struct dti_bytes *request)
{
    const struct dti_parameter_group *g = context;
    put_group(request, g, DTI_ASK_RESTORE);
    dti_put_section(request, g->versions, g->num_versions * sizeof *g->versions);
    for (uint32_t piece = 0; piece < g->v->pieces; piece++)
        for (size_t i = 0; g->v->host_of_piece[piece] == host && i < g->count; i++)
            if (dti_group_bytes(g->list[i].variable, piece) != 0)
                dti_put_section(request, place_in_value(NULL, &g->list[i], piece),
                                dti_group_bytes(g->list[i].variable, piece));
    return true;
}

static ditto_status restore_group(struct dti_parameter_group *g)
{
    return dti_ask_owners(&(struct dti_asking){
        .v = g->v, .own = restore_own, .put = ask_to_restore, .context = g, .works_closed = true });
}

/* -- all groups of a list -- */

/* A parameter and its slots have the same locks, and become neighbours. */
static int by_shards(const void *left, const void *right)
{
    uintptr_t a = (uintptr_t)((const struct dti_parameter_value *)left)->variable->shard;
    uintptr_t b = (uintptr_t)((const struct dti_parameter_value *)right)->variable->shard;
    return (a > b) - (a < b);
}

static ditto_status copy_all(struct dti_parameter_value *list, size_t count,
                             ditto_status (*copy)(struct dti_parameter_group *g))
{
    size_t end;
    if (count == 0)
        return DITTO_OK;
    qsort(list, count, sizeof *list, by_shards);
    for (size_t first = 0; first < count; first = end) {
        for (end = first + 1; end < count && by_shards(&list[first], &list[end]) == 0;)
            end++;
        struct dti_parameter_group g = group_of(&list[first], end - first);
        DTI_TRY(copy(&g));
    }
    return DITTO_OK;
}

ditto_status dti_parameters_save(struct dti_parameter_value *list, size_t count)
{
    return copy_all(list, count, save_group);
}

ditto_status dti_parameters_restore(struct dti_parameter_value *list, size_t count)
{
    return copy_all(list, count, restore_group);
}
