/* src/vars/parameters/answer.c - does to own shards what other hosts ask for. See over_hosts.h. */
#include "base/errors/status.h"
#include "vars/optimizer/optimizer.h"
#include "vars/parameters/over_hosts.h"
#include "vars/parameters/parameter.h"
#include "vars/parameters/parameter_values.h"
#include "vars/registry/registry.h"

#include <stdlib.h>
#include <string.h>

/* A request that is being read. */
struct answering {
    struct dti_team *team;
    const struct dti_parameter_request *request;
    const char *at, *end; /* of the sections */
    struct dti_bytes *answer;
};

static ditto_status fail_corrupt(const char *what)
{
    return DTI_FAIL(DITTO_ERR_CORRUPT, "a request of another host %s", what);
}

/* Returns the next `bytes` bytes, or NULL if there are fewer. */
static const void *take(struct answering *a, size_t bytes)
{
    size_t padded = bytes + -bytes % DTI_SECTION_BYTES;
    const void *section = a->at;
    if (padded < bytes || padded > (size_t)(a->end - a->at))
        return NULL;
    a->at += padded;
    return section;
}

/* Returns true if the shard is asked for. */
static bool is_asked(const struct answering *a, const ditto_variable *v, uint32_t piece)
{
    return v->host_of_piece[piece] == a->request->owner && dti_owns_piece(v, piece);
}

/* Returns the variable, whose gate is entered. */
static ditto_status hold(const struct answering *a, uint64_t number, ditto_variable **out,
                         struct dti_gate **held)
{
    *out = (ditto_variable *)dti_registry_hold_numbered(a->team, DTI_NUMBERED_VARIABLE, number, held);
    return *out != NULL
               ? DITTO_OK
               : DTI_FAIL(DITTO_ERR_NOT_FOUND, "the variable was destroyed on the host that has its shards");
}

/* -- reading and writing -- */

static ditto_status read_shards(const struct answering *a, const ditto_variable *v)
{
    for (uint32_t i = 0; i < v->pieces; i++) {
        const struct dti_reading reading = { .is_free = a->request->flag != 0 };
        uint64_t version;
        if (!is_asked(a, v, i))
            continue;
        char *room = dti_bytes_room(a->answer, sizeof version + dti_shard_bytes(v, i));
        if (room == NULL)
            return dti_bytes_status(a->answer);
        dti_reading_begin(&reading, v, i);
        version = dti_shard_version(v, i); /* before the elements, as in dti_reading_begin */
        dti_shard_copy(v, room + sizeof version, dti_shard_elements(v, i), dti_shard_bytes(v, i),
                       !reading.is_free);
        dti_reading_end(&reading, v, i);
        memcpy(room, &version, sizeof version);
    }
    return DITTO_OK;
}

static ditto_status give_versions(const struct answering *a, const ditto_variable *v)
{
    for (uint32_t i = 0; i < v->pieces; i++) {
        uint64_t version = dti_shard_version(v, i);
        if (is_asked(a, v, i))
            dti_bytes_put(a->answer, &version, sizeof version);
    }
    return DITTO_OK;
}

static ditto_status write_shards(struct answering *a, const ditto_variable *v)
{
    DTI_TRY(dti_rule_check((enum dti_rule)a->request->flag, v->spec.dtype));
    for (uint32_t i = 0; i < v->pieces; i++) {
        if (!is_asked(a, v, i))
            continue;
        const void *value = take(a, dti_shard_bytes(v, i));
        if (value == NULL)
            return fail_corrupt("has fewer elements than its shards");
        dti_shard_write(v, i, (enum dti_rule)a->request->flag, value);
    }
    return DITTO_OK;
}

/* -- rows -- */

/* Takes the numbers of rows, all of which exist. */
static ditto_status take_rows(struct answering *a, const ditto_variable *v, const int64_t **numbers)
{
    uint64_t count = a->request->count;
    *numbers = count <= SIZE_MAX / sizeof **numbers ? take(a, count * sizeof **numbers) : NULL;
    if (*numbers == NULL || v->spec.rank == 0)
        return fail_corrupt("has fewer rows than it says");
    for (uint64_t k = 0; k < count; k++)
        if ((uint64_t)(*numbers)[k] >= v->spec.shape[0])
            return fail_corrupt("names a row that does not exist");
    return DITTO_OK;
}

static size_t row_bytes_of(const ditto_variable *v)
{
    return v->spec.shape[0] != 0 ? v->bytes / v->spec.shape[0] : 0;
}

static ditto_status look_up(struct answering *a, const ditto_variable *v)
{
    const int64_t *numbers;
    DTI_TRY(take_rows(a, v, &numbers));
    uint64_t *versions = calloc(v->pieces, sizeof *versions);
    if (versions == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the versions of %u shards", v->pieces);
    size_t bytes = a->request->count * row_bytes_of(v), before = a->answer->length, own = 0;
    for (uint32_t i = 0; i < v->pieces; i++)
        own += is_asked(a, v, i) ? sizeof *versions : 0;
    char *room = dti_bytes_room(a->answer, own + bytes);
    ditto_status status = dti_bytes_status(a->answer);
    if (room != NULL)
        status = dti_parameter_lookup_own(
            v, numbers, a->request->count, room + own,
            &(struct dti_reading){ .is_free = a->request->flag != 0, .versions = versions });
    for (uint32_t i = 0; room != NULL && i < v->pieces; i++)
        if (is_asked(a, v, i)) {
            memcpy(a->answer->data + before, &versions[i], sizeof versions[i]);
            before += sizeof versions[i];
        }
    free(versions);
    return status;
}

static ditto_status scatter(struct answering *a, const ditto_variable *v)
{
    ditto_slices slices = { .rows = a->request->count, .dtype = v->spec.dtype };
    const int64_t *numbers;
    DTI_TRY(dti_rule_check((enum dti_rule)a->request->flag, v->spec.dtype));
    DTI_TRY(take_rows(a, v, &numbers));
    slices.row_count = v->spec.shape[0] != 0 ? v->count / v->spec.shape[0] : 0;
    if (a->request->count * row_bytes_of(v) > (size_t)(a->end - a->at))
        return fail_corrupt("has fewer rows than it says");
    slices.indices = (int64_t *)(uintptr_t)numbers;
    slices.values = (void *)(uintptr_t)a->at;
    return dti_parameter_scatter_own(v, (enum dti_rule)a->request->flag, &slices);
}

/* -- a parameter and its slots -- */

/* Where the sections, or the answer, go on. */
static char *next_place(void *context, const struct dti_parameter_value *value, uint32_t piece)
{
    char **at = context, *place = *at;
    size_t bytes = dti_group_bytes(value->variable, piece);
    *at += bytes;
    return place;
}

static char *next_section(void *context, const struct dti_parameter_value *value, uint32_t piece)
{
    return (char *)(uintptr_t)take(context, dti_group_bytes(value->variable, piece));
}

static size_t bytes_of_group(const struct dti_parameter_group *g, uint32_t piece, bool sections)
{
    size_t sum = 0;
    for (size_t i = 0; i < g->count; i++) {
        size_t bytes = dti_group_bytes(g->list[i].variable, piece);
        sum += bytes + (sections ? -bytes % DTI_SECTION_BYTES : 0);
    }
    return sum;
}

static ditto_status save_shard(struct answering *a, const struct dti_parameter_group *g, uint32_t piece)
{
    uint64_t version;
    char *room = dti_bytes_room(a->answer, sizeof version + bytes_of_group(g, piece, false));
    if (room == NULL)
        return dti_bytes_status(a->answer);
    char *at = room + sizeof version;
    version = dti_group_save_shard(g, piece, next_place, &at);
    memcpy(room, &version, sizeof version);
    return DITTO_OK;
}

static ditto_status restore_shard(struct answering *a, struct dti_parameter_group *g, uint32_t piece)
{
    g->restored = (enum dti_restored)a->request->flag;
    g->versions = &a->request->version;
    g->num_versions = 1;
    if (bytes_of_group(g, piece, true) > (size_t)(a->end - a->at))
        return fail_corrupt("has fewer elements than its shard");
    dti_group_restore_shard(g, piece, next_section, a);
    return DITTO_OK;
}

/* Fills the list with the variables that are named, which have the same locks. */
static ditto_status list_group(struct answering *a, struct dti_parameter_value *list,
                               struct dti_parameter_group *g, struct dti_gates *held)
{
    *g = (struct dti_parameter_group){ .list = list, .count = a->request->count };
    for (uint64_t i = 0; i < g->count; i++) {
        struct dti_gate *gate = NULL;
        const uint64_t *number = take(a, sizeof *number);
        if (number == NULL)
            return fail_corrupt("names fewer variables than it says");
        if (!dti_gates_reserve(held))
            return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a request of another host");
        ditto_status status = hold(a, *number, &list[i].variable, &gate);
        dti_gates_add(held, gate);
        DTI_TRY(status);
        if (list[i].variable->shard != list[0].variable->shard)
            return fail_corrupt("names variables that do not belong together");
        if (g->v == NULL || list[i].variable->pieces > g->v->pieces)
            g->v = list[i].variable;
    }
    return DITTO_OK;
}

static ditto_status use_group(struct answering *a)
{
    struct dti_parameter_group g;
    DTI_LEAVES_GATES(held);
    if (a->request->count == 0 || a->request->count > (size_t)(a->end - a->at) / DTI_SECTION_BYTES)
        return fail_corrupt("names fewer variables than it says");
    struct dti_parameter_value *list = calloc(a->request->count, sizeof *list);
    if (list == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a request of another host");
    ditto_status status = list_group(a, list, &g, &held);
    uint64_t piece = a->request->piece;
    if (status == DITTO_OK && (piece >= g.v->pieces || !dti_owns_piece(g.v, (uint32_t)piece)))
        status = fail_corrupt("names a shard that this host does not have");
    if (status == DITTO_OK)
        status = a->request->what == DTI_ASK_SAVE ? save_shard(a, &g, (uint32_t)piece)
                                                  : restore_shard(a, &g, (uint32_t)piece);
    free(list);
    return status;
}

/* -- steps of optimizers -- */

static ditto_status step(struct answering *a, ditto_optimizer *o)
{
    const struct dti_parameter_request *r = a->request;
    if (r->count >= o->count)
        return fail_corrupt("names a variable that its optimizer does not have");
    const ditto_variable *v = o->variable[r->count];
    const char *gradients = a->at;
    for (uint32_t i = 0; i < v->pieces; i++)
        if (is_asked(a, v, i) && take(a, dti_shard_bytes(v, i)) == NULL)
            return fail_corrupt("has fewer elements than its shards");
    dti_optimizer_step_own(o, (uint32_t)r->count,
                           &(struct dti_step_of_variable){ .owner = (uint32_t)r->owner,
                                                           .number = r->steps,
                                                           .learning_rate = r->rate,
                                                           .factor = r->factor,
                                                           .gradients = gradients });
    return DITTO_OK;
}

static ditto_status take_number(const struct answering *a, ditto_optimizer *o)
{
    int64_t number = dti_optimizer_take_number(o, a->request->flag != 0, a->request->steps);
    dti_bytes_put(a->answer, &number, sizeof number);
    return DITTO_OK;
}

/* -- all -- */

static ditto_status use_optimizer(struct answering *a)
{
    DTI_LEAVES_GATE(held, NULL);
    ditto_optimizer *o = (ditto_optimizer *)dti_registry_hold_numbered(a->team, DTI_NUMBERED_OPTIMIZER,
                                                                       a->request->number, &held);
    if (o == NULL)
        return DTI_FAIL(DITTO_ERR_NOT_FOUND, "the optimizer was destroyed on the host that has its shards");
    return a->request->what == DTI_ASK_STEP ? step(a, o) : take_number(a, o);
}

static ditto_status use_variable(struct answering *a)
{
    ditto_variable *v;
    DTI_LEAVES_GATE(held, NULL);
    DTI_TRY(hold(a, a->request->number, &v, &held));
    switch (a->request->what) {
    case DTI_ASK_READ:
        return read_shards(a, v);
    case DTI_ASK_VERSIONS:
        return give_versions(a, v);
    case DTI_ASK_WRITE:
        return write_shards(a, v);
    case DTI_ASK_LOOKUP:
        return look_up(a, v);
    default:
        return scatter(a, v);
    }
}

ditto_status dti_parameters_answer(void *team, const void *request, size_t bytes, struct dti_bytes *answer)
{
    struct answering a = {
        .team = team, .at = request, .end = (const char *)request + bytes, .answer = answer
    };
    a.request = take(&a, sizeof *a.request);
    if (a.request == NULL || a.request->what > DTI_ASK_NUMBER)
        return fail_corrupt("is of no kind that this host knows");
    /* A rule that is a function of the program must not call the strategy, whose answer it would wait for. */
    struct dti_frame frame;
    struct dti_fenv saved = dti_frame_enter_input(&frame, team);
    ditto_status status = a.request->what == DTI_ASK_SAVE || a.request->what == DTI_ASK_RESTORE
                              ? use_group(&a)
                          : a.request->what == DTI_ASK_STEP || a.request->what == DTI_ASK_NUMBER
                              ? use_optimizer(&a)
                              : use_variable(&a);
    dti_frame_leave(&frame, saved);
    return status;
}
