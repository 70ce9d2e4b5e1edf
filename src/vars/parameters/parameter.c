/* src/vars/parameters/parameter.c - reads and writes parameters, shard by shard; see parameter.h. */
#include "vars/parameters/parameter.h"
#include "vars/parameters/over_hosts.h"
#include "vars/parameters/parameter_values.h"

#include <stdlib.h>

ditto_status dti_parameter_make_shards(ditto_variable *v)
{
    v->shard = aligned_alloc(DTI_CACHE_LINE_PAIR, v->pieces * sizeof *v->shard);
    if (v->shard == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the locks of \"%s\", which has %u shards",
                        v->name, v->pieces);
    /* A lock is held for about a microsecond, so a thread that waits for it spins before it sleeps. Two
     * workers that push skewed rows took 38 ns for a row without it, and take 26 to 29 ns. */
    pthread_mutexattr_t spins;
    pthread_mutexattr_init(&spins);
    pthread_mutexattr_settype(&spins, PTHREAD_MUTEX_ADAPTIVE_NP);
    for (uint32_t i = 0; i < v->pieces; i++) {
        pthread_mutex_init(&v->shard[i].lock, &spins);
        atomic_init(&v->shard[i].version, 0);
    }
    pthread_mutexattr_destroy(&spins);
    v->access_bytes = dti_shard_access_bytes(v);
    return DITTO_OK;
}

void dti_parameter_free_shards(ditto_variable *v)
{
    for (uint32_t i = 0; v->shard != NULL && !v->borrows_shards && i < v->pieces; i++)
        pthread_mutex_destroy(&v->shard[i].lock);
    if (!v->borrows_shards)
        free(v->shard);
    v->shard = NULL;
}

void dti_reading_begin(const struct dti_reading *reading, const ditto_variable *v, uint32_t piece)
{
    if (!reading->is_free)
        dti_shard_lock(v, piece);
    if (reading->versions != NULL) /* before the elements, which without a lock may be newer */
        reading->versions[piece] = dti_shard_version(v, piece);
}

void dti_reading_end(const struct dti_reading *reading, const ditto_variable *v, uint32_t piece)
{
    if (!reading->is_free)
        dti_shard_unlock(v, piece);
}

void dti_shard_read(const ditto_variable *v, uint32_t piece, void *dst, const struct dti_reading *reading)
{
    dti_reading_begin(reading, v, piece);
    dti_shard_copy(v, dst, dti_shard_elements(v, piece), dti_shard_bytes(v, piece), !reading->is_free);
    dti_reading_end(reading, v, piece);
}

void dti_shard_write(const ditto_variable *v, uint32_t piece, enum dti_rule rule, const void *value)
{
    dti_shard_lock(v, piece);
    dti_shard_apply(v, rule, dti_shard_elements(v, piece), value, v->piece[piece].count);
    dti_shard_updated(v, piece);
    dti_shard_unlock(v, piece);
}

/* -- reading all -- */

struct read_call {
    const ditto_variable *v;
    void *dst;
    const struct dti_reading *reading;
};

static void read_own(void *context)
{
    const struct read_call *c = context;
    for (uint32_t i = 0; i < c->v->pieces; i++)
        if (dti_owns_piece(c->v, i))
            dti_shard_read(c->v, i, dti_shard_in(c->v, i, c->dst), c->reading);
}

static bool ask_to_read(void *context, uint32_t host, struct dti_bytes *request)
{
    const struct read_call *c = context;
    (void)host;
    dti_put_request(request, &(struct dti_parameter_request){
                                 .what = DTI_ASK_READ, .flag = c->reading->is_free, .number = c->v->stamp });
    return true;
}

/* The answer has the version and the elements of each shard. */
static ditto_status take_read(void *context, uint32_t host, struct dti_bytes_reader *answer)
{
    const struct read_call *c = context;
    for (uint32_t i = 0; i < c->v->pieces; i++) {
        uint64_t version;
        if (c->v->host_of_piece[i] != host)
            continue;
        dti_bytes_get(answer, &version, sizeof version);
        dti_bytes_get(answer, dti_shard_in(c->v, i, c->dst), dti_shard_bytes(c->v, i));
        if (c->reading->versions != NULL)
            c->reading->versions[i] = version;
    }
    return dti_bytes_reader_status(answer);
}

ditto_status dti_parameter_read(const ditto_variable *v, void *dst, const struct dti_reading *reading)
{
    struct read_call call = { v, dst, reading };
    return dti_ask_owners(&(struct dti_asking){
        .v = v, .own = read_own, .put = ask_to_read, .take = take_read, .context = &call });
}

/* -- the versions of all -- */

struct versions_call {
    const ditto_variable *v;
    uint64_t *versions;
    size_t capacity;
};

static void read_own_versions(void *context)
{
    const struct versions_call *c = context;
    for (uint32_t i = 0; i < c->v->pieces && i < c->capacity; i++)
        if (dti_owns_piece(c->v, i))
            c->versions[i] = dti_shard_version(c->v, i);
}

static void add_own_versions(void *context)
{
    const struct versions_call *c = context;
    for (uint32_t i = 0; i < c->v->pieces; i++)
        if (dti_owns_piece(c->v, i))
            *c->versions += dti_shard_version(c->v, i);
}

static bool ask_for_versions(void *context, uint32_t host, struct dti_bytes *request)
{
    const struct versions_call *c = context;
    (void)host;
    dti_put_request(request,
                    &(struct dti_parameter_request){ .what = DTI_ASK_VERSIONS, .number = c->v->stamp });
    return true;
}

static ditto_status take_versions(void *context, uint32_t host, struct dti_bytes_reader *answer)
{
    const struct versions_call *c = context;
    for (uint32_t i = 0; i < c->v->pieces; i++) {
        uint64_t version;
        if (c->v->host_of_piece[i] != host)
            continue;
        dti_bytes_get(answer, &version, sizeof version);
        if (i < c->capacity)
            c->versions[i] = version;
    }
    return dti_bytes_reader_status(answer);
}

ditto_status dti_parameter_versions(const ditto_variable *v, uint64_t *versions, size_t capacity)
{
    struct versions_call call = { v, versions, capacity };
    return dti_ask_owners(&(struct dti_asking){
        .v = v, .own = read_own_versions, .put = ask_for_versions, .take = take_versions, .context = &call });
}

static ditto_status add_versions(void *context, uint32_t host, struct dti_bytes_reader *answer)
{
    const struct versions_call *c = context;
    for (uint32_t i = 0; i < c->v->pieces; i++) {
        uint64_t version = 0;
        if (c->v->host_of_piece[i] == host)
            dti_bytes_get(answer, &version, sizeof version);
        *c->versions += version;
    }
    return dti_bytes_reader_status(answer);
}

ditto_status dti_parameter_sum_of_versions(const ditto_variable *v, uint64_t *sum)
{
    struct versions_call call = { v, sum, 0 };
    return dti_ask_owners(&(struct dti_asking){
        .v = v, .own = add_own_versions, .put = ask_for_versions, .take = add_versions, .context = &call });
}

/* -- writing all -- */

struct write_call {
    const ditto_variable *v;
    enum dti_rule rule;
    const void *value;
};

static void write_own(void *context)
{
    const struct write_call *c = context;
    struct dti_fenv saved = dti_fenv_enter();
    for (uint32_t i = 0; i < c->v->pieces; i++)
        if (dti_owns_piece(c->v, i))
            dti_shard_write(c->v, i, c->rule, dti_shard_in(c->v, i, c->value));
    dti_fenv_leave(saved);
}

static bool ask_to_write(void *context, uint32_t host, struct dti_bytes *request)
{
    const struct write_call *c = context;
    dti_put_request(request, &(struct dti_parameter_request){
                                 .what = DTI_ASK_WRITE, .flag = (uint32_t)c->rule, .number = c->v->stamp });
    dti_put_shards_of(request, c->v, host, c->value);
    return true;
}

ditto_status dti_parameter_write(const ditto_variable *v, enum dti_rule rule, const void *value)
{
    struct write_call call = { v, rule, value };
    return dti_ask_owners(&(struct dti_asking){ .v = v,
                                                .own = write_own,
                                                .put = ask_to_write,
                                                .context = &call,
                                                .changes = true,
                                                .works_closed = true });
}

ditto_status dti_parameter_fill(ditto_variable *v, const void *value, const uint64_t *versions, size_t count)
{
    struct dti_parameter_value one = { .variable = v,
                                       .value = (char *)(uintptr_t)value,
                                       .versions = v->optimizer_slot ? NULL : (uint64_t *)(uintptr_t)versions,
                                       .num_versions = count };
    return dti_parameters_restore(&one, 1);
}

/* -- As a kind of variable -- */

/* Not collective, also if the worker has several replicas. */
static ditto_status write_in_replica(struct dti_replica *self, ditto_variable *v, enum dti_rule rule,
                                     const void *value)
{
    (void)self;
    return dti_parameter_write(v, rule, value);
}

static ditto_status read_cross(ditto_variable *v, void *dst)
{
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(v->team, &frame, DTI_CALLER_KEEPS_AFFINITY));
    ditto_status status = dti_parameter_read(v, dst, &(struct dti_reading){ .versions = NULL });
    dti_cross_leave(v->team, &frame);
    return status;
}

static ditto_status write_cross(ditto_variable *v, enum dti_rule rule, const void *value)
{
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(v->team, &frame, DTI_CALLER_KEEPS_AFFINITY));
    ditto_status status = dti_parameter_write(v, rule, value);
    dti_cross_leave(v->team, &frame);
    return status;
}

const struct dti_variable_kind dti_parameter_kind = { "a parameter", write_in_replica, read_cross,
                                                      write_cross };
