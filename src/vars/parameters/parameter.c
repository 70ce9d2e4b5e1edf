/* src/vars/parameters/parameter.c - reads and writes parameters, shard by shard; see parameter.h. */
#include "vars/parameters/parameter.h"
#include "replicas/team/servers.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"
#include "vars/parameters/parameter_values.h"

#include <stdlib.h>
#include <string.h>

ditto_status dti_parameter_make_shards(ditto_variable *v)
{
    v->shard = aligned_alloc(DTI_CACHE_LINE_PAIR, v->pieces * sizeof *v->shard);
    if (v->shard == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the locks of \"%s\", which has %u shards",
                        v->name, v->pieces);
    for (uint32_t i = 0; i < v->pieces; i++)
        v->shard[i] = (struct dti_parameter_shard){ .version = 0 };
    v->access_bytes = dti_shard_access_bytes(v);
    if (v->pieces > 1) {
        v->shard_rows = v->spec.shape[0] / v->pieces;
        v->large_shards = v->spec.shape[0] % v->pieces;
    }
    if (v->concurrency != DITTO_CONCURRENCY_HOGWILD)
        return DITTO_OK;
    v->num_writers = dti_vars_storage(v->team)->num_writers + 1; /* the last is the thread with the turn */
    size_t one = sizeof *v->counts + v->pieces * sizeof v->counts->shard[0];
    v->counts_bytes = (one + DTI_CACHE_LINE_PAIR - 1) / DTI_CACHE_LINE_PAIR * DTI_CACHE_LINE_PAIR;
    v->counts = aligned_alloc(DTI_CACHE_LINE_PAIR, v->num_writers * v->counts_bytes);
    if (v->counts == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY,
                        "no memory for the counts of \"%s\", which has %u shards and %u writers", v->name,
                        v->pieces, v->num_writers);
    memset(v->counts, 0, v->num_writers * v->counts_bytes);
    return DITTO_OK;
}

void dti_parameter_free_shards(ditto_variable *v)
{
    if (!v->borrows_shards)
        free(v->shard);
    v->shard = NULL;
    free(v->counts);
    v->counts = NULL;
}

struct dti_shard_counts *dti_shard_counts_of(const ditto_variable *v, const struct dti_replica *writer)
{
    return dti_shard_counts_at(v, writer != NULL ? dti_team_first_stream(writer->team) + writer->index
                                                 : v->num_writers - 1);
}

/* -- in place -- */

char *dti_parameter_in_place(struct dti_replica *self, ditto_variable *v)
{
    struct dti_shard_counts *counts = dti_shard_counts_of(v, self);
    if (!counts->is_in_place) {
        counts->is_in_place = true;
        counts->next_in_place = self->in_place;
        self->in_place = v;
    }
    return dti_shard_elements(v, 0);
}

/* A replica of a poisoned worker has not returned, and may still use its list. */
void dti_parameters_end_function(const struct dti_team *worker)
{
    for (uint32_t i = 0; i < dti_team_num_replicas(worker) && !dti_team_is_poisoned(worker); i++) {
        struct dti_replica *r = dti_team_replica(worker, i);
        while (r->in_place != NULL) {
            const ditto_variable *v = r->in_place;
            struct dti_shard_counts *counts = dti_shard_counts_of(v, r);
            r->in_place = counts->next_in_place;
            counts->is_in_place = false;
            for (uint32_t piece = 0; piece < v->pieces; piece++)
                dti_shard_updated(v, piece, r);
        }
    }
}

ditto_status dti_shard_fail_locked(const ditto_variable *v, uint32_t piece)
{
    return DTI_FAIL(
        DITTO_ERR_TIMED_OUT,
        "another thread has had the lock of shard %u of \"%s\" for timeout_ms = %u ms: if the rule "
        "of its optimizer is a function, it may not have returned",
        piece, v->name, dti_team_options(v->team)->timeout_ms);
}

ditto_status dti_reading_begin(const struct dti_reading *reading, const ditto_variable *v, uint32_t piece)
{
    if (!reading->is_free)
        DTI_TRY(dti_shard_lock(v, piece));
    if (reading->versions != NULL) /* before the elements, which without a lock may be newer */
        reading->versions[piece] = dti_shard_version(v, piece);
    return DITTO_OK;
}

void dti_reading_end(const struct dti_reading *reading, const ditto_variable *v, uint32_t piece)
{
    if (!reading->is_free)
        dti_shard_unlock(v, piece);
}

ditto_status dti_shard_read(const ditto_variable *v, uint32_t piece, void *dst,
                            const struct dti_reading *reading)
{
    DTI_TRY(dti_reading_begin(reading, v, piece));
    dti_shard_copy(v, dst, dti_shard_elements(v, piece), dti_shard_bytes(v, piece), !reading->is_free);
    dti_reading_end(reading, v, piece);
    return DITTO_OK;
}

static ditto_status write_shard(const ditto_variable *v, const struct dti_replica *writer, uint32_t piece,
                                enum dti_rule rule, const void *value)
{
    DTI_TRY(dti_shard_lock(v, piece));
    dti_shard_apply(v, rule, dti_shard_elements(v, piece), value, v->piece[piece].count);
    dti_shard_updated(v, piece, writer);
    dti_shard_unlock(v, piece);
    return DITTO_OK;
}

/* -- all shards -- */

ditto_status dti_parameter_read(const ditto_variable *v, void *dst, const struct dti_reading *reading)
{
    for (uint32_t i = 0; i < v->pieces; i++)
        DTI_TRY(dti_shard_read(v, i, dti_shard_in(v, i, dst), reading));
    return DITTO_OK;
}

uint64_t dti_parameter_sum_of_versions(const ditto_variable *v)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < v->pieces; i++)
        sum += dti_shard_version(v, i);
    return sum;
}

/* Changes the elements of a parameter by the rule, one shard after the other. */
static ditto_status write_all(const ditto_variable *v, const struct dti_replica *writer, enum dti_rule rule,
                              const void *value)
{
    ditto_status status = DITTO_OK;
    struct dti_fenv saved = dti_fenv_enter();
    for (uint32_t i = 0; i < v->pieces && status == DITTO_OK; i++)
        status = write_shard(v, writer, i, rule, dti_shard_in(v, i, value));
    dti_fenv_leave(saved);
    return status;
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
    return write_all(v, self, rule, value);
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
    ditto_status status = write_all(v, NULL, rule, value);
    dti_cross_leave(v->team, &frame);
    return status;
}

const struct dti_variable_kind dti_parameter_kind = { "a parameter", write_in_replica, read_cross,
                                                      write_cross };
