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

/* -- all shards of a group. Other hosts are asked for each of their shards, for all of them at once -- */

struct shard_of_group {
    const struct dti_parameter_group *g;
    uint32_t piece;
};

static bool is_on(const struct shard_of_group *s, uint32_t host)
{
    return s->g->v->host_of_piece[s->piece] == host;
}

static void put_request(struct dti_bytes *to, const struct shard_of_group *s, enum dti_ask what)
{
    const struct dti_parameter_group *g = s->g;
    struct dti_parameter_request request = {
        .what = what, .flag = g->restored, .count = g->count, .piece = s->piece
    };
    if (what == DTI_ASK_RESTORE && g->restored == DTI_VERSIONS_GIVEN)
        request.version = dti_restored_version(g->versions, g->num_versions, g->v->pieces, s->piece);
    dti_put_request(to, &request);
    for (size_t i = 0; i < g->count; i++)
        dti_put_section(to, &g->list[i].variable->stamp, sizeof g->list[i].variable->stamp);
}

/* Asks with the functions of `how`, whose context is a shard. */
static ditto_status ask_for_all_shards(const struct dti_parameter_group *g, const struct dti_asking *how)
{
    if (g->v->host_of_piece == NULL) { /* over one host nothing is allocated, so nothing fails */
        for (uint32_t piece = 0; piece < g->v->pieces; piece++)
            how->own(&(struct shard_of_group){ g, piece });
        return DITTO_OK;
    }
    struct dti_asking *asking = calloc(g->v->pieces, sizeof *asking);
    struct shard_of_group *shard = calloc(g->v->pieces, sizeof *shard);
    ditto_status status = DITTO_OK;
    if (asking == NULL || shard == NULL)
        status = DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the %u shards of \"%s\"", g->v->pieces,
                          g->v->name);
    for (uint32_t piece = 0; status == DITTO_OK && piece < g->v->pieces; piece++) {
        shard[piece] = (struct shard_of_group){ g, piece };
        asking[piece] = *how;
        asking[piece].v = g->v;
        asking[piece].context = &shard[piece];
    }
    if (status == DITTO_OK)
        status = dti_ask_owners_of_all(asking, g->v->pieces);
    free(asking);
    free(shard);
    return status;
}

/* -- saving -- */

/* The versions of a group that is saved are taken here. */
static void keep_version(const struct shard_of_group *s, uint64_t version)
{
    if (s->g->restored == DTI_VERSIONS_GIVEN)
        ((uint64_t *)(uintptr_t)s->g->versions)[s->piece] = version;
}

static void save_own(void *context)
{
    const struct shard_of_group *s = context;
    if (dti_owns_piece(s->g->v, s->piece))
        keep_version(s, dti_group_save_shard(s->g, s->piece, place_in_value, NULL));
}

static bool ask_to_save(void *context, uint32_t host, struct dti_bytes *request)
{
    if (!is_on(context, host))
        return false;
    put_request(request, context, DTI_ASK_SAVE);
    return true;
}

static ditto_status take_saved(void *context, uint32_t host, struct dti_bytes_reader *answer)
{
    const struct shard_of_group *s = context;
    const struct dti_parameter_group *g = s->g;
    uint64_t version;
    (void)host;
    dti_bytes_get(answer, &version, sizeof version);
    keep_version(s, version);
    for (size_t i = 0; i < g->count; i++)
        if (dti_group_bytes(g->list[i].variable, s->piece) != 0)
            dti_bytes_get(answer, place_in_value(NULL, &g->list[i], s->piece),
                          dti_group_bytes(g->list[i].variable, s->piece));
    return dti_bytes_reader_status(answer);
}

static ditto_status save_group(struct dti_parameter_group *g)
{
    return ask_for_all_shards(
        g, &(struct dti_asking){ .own = save_own, .put = ask_to_save, .take = take_saved });
}

/* -- restoring -- */

static void restore_own(void *context)
{
    const struct shard_of_group *s = context;
    if (dti_owns_piece(s->g->v, s->piece))
        dti_group_restore_shard(s->g, s->piece, place_in_value, NULL);
}

static bool ask_to_restore(void *context, uint32_t host, struct dti_bytes *request)
{
    const struct shard_of_group *s = context;
    const struct dti_parameter_group *g = s->g;
    if (!is_on(s, host))
        return false;
    put_request(request, s, DTI_ASK_RESTORE);
    for (size_t i = 0; i < g->count; i++)
        if (dti_group_bytes(g->list[i].variable, s->piece) != 0)
            dti_put_section(request, place_in_value(NULL, &g->list[i], s->piece),
                            dti_group_bytes(g->list[i].variable, s->piece));
    return true;
}

static ditto_status restore_group(struct dti_parameter_group *g)
{
    return ask_for_all_shards(
        g, &(struct dti_asking){
               .own = restore_own, .put = ask_to_restore, .changes = true, .works_closed = true });
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
