/* src/vars/parameters/ask_owners.c - asks the hosts that have shards of a parameter. See over_hosts.h. */
#include "base/numbers/checksum.h"
#include "hosts/questions.h"
#include "vars/optimizer/optimizer.h"
#include "vars/parameters/over_hosts.h"
#include "vars/parameters/parameter.h"
#include "vars/registry/registry.h"

#include <stdlib.h>
#include <string.h>

/* -- requests -- */

void dti_put_request(struct dti_bytes *to, const struct dti_parameter_request *request)
{
    dti_put_section(to, request, sizeof *request);
}

void dti_put_section(struct dti_bytes *to, const void *data, size_t bytes)
{
    static const char zeros[DTI_SECTION_BYTES];
    dti_bytes_put(to, data, bytes);
    dti_bytes_put(to, zeros, -bytes % DTI_SECTION_BYTES);
}

void dti_put_shards_of(struct dti_bytes *to, const ditto_variable *v, uint32_t host, const void *value)
{
    for (uint32_t i = 0; i < v->pieces; i++)
        if (v->host_of_piece[i] == host)
            dti_put_section(to, dti_shard_in(v, i, value), dti_shard_bytes(v, i));
}

/* -- asking -- */

/* The questions of one operation. */
struct asked {
    const struct dti_asking *asking; /* [count] */
    uint32_t count, hosts;
    struct dti_questions *questions;
    struct dti_asked_host *question; /* [count][hosts] */
    bool *has_begun;                 /* [count][hosts] */
    ditto_status status;             /* the first error, */
    ditto_error error;               /* and its record */
};

static void note(struct asked *a, const ditto_variable *v, ditto_status status)
{
    if (status == DITTO_OK || a->status != DITTO_OK)
        return;
    a->status = dti_where(status, "\"%s\"", v->name);
    a->error = *dti_error_get();
}

/* Sends the request to the owner h, or to it and the second host that has its shards. */
static ditto_status send(const struct asked *a, const struct dti_asking *asking, uint32_t h,
                         struct dti_bytes *request, struct dti_asked_host *question)
{
    const ditto_variable *v = asking->v;
    if (request->data != NULL)
        ((struct dti_parameter_request *)(void *)request->data)->owner = h;
    return v->is_paired ? dti_question_ask_pair(a->questions, h, v->owners->second[h], asking->changes,
                                                request, question)
                        : dti_question_ask(a->questions, h, request, question);
}

/* Asks the other owners of a variable, and if shards are mirrored, all of them. */
static void begin(struct asked *a, uint32_t k)
{
    const struct dti_asking *asking = &a->asking[k];
    const ditto_variable *v = asking->v;
    bool *has_begun = a->has_begun + (size_t)k * a->hosts;
    for (uint32_t i = 0; i < v->pieces; i++)
        has_begun[v->host_of_piece[i]] = true; /* it is to begin */
    for (uint32_t h = 0; h < a->hosts; h++) {
        struct dti_bytes request = { 0 };
        has_begun[h] = has_begun[h] && (v->is_paired || h != v->owners->own) &&
                       asking->put(asking->context, h, &request);
        if (!has_begun[h])
            continue;
        ditto_status status = send(a, asking, h, &request, &a->question[(size_t)k * a->hosts + h]);
        has_begun[h] = status == DITTO_OK;
        note(a, v, status);
    }
}

/* Waits for the answers. */
static void end(struct asked *a, uint32_t k)
{
    const struct dti_asking *asking = &a->asking[k];
    for (uint32_t h = 0; h < a->hosts; h++) {
        struct dti_bytes_reader answer;
        void *data;
        if (!a->has_begun[(size_t)k * a->hosts + h])
            continue;
        ditto_status status = dti_question_await(a->questions, &a->question[(size_t)k * a->hosts + h],
                                                 &answer, &data);
        if (status == DITTO_OK && asking->take != NULL)
            status = asking->take(asking->context, h, &answer);
        free(data);
        note(a, asking->v, status);
    }
}

static ditto_status ask(struct asked *a)
{
    a->question = calloc((size_t)a->count * a->hosts, sizeof *a->question);
    a->has_begun = calloc((size_t)a->count * a->hosts, sizeof *a->has_begun);
    if (a->question == NULL || a->has_begun == NULL) {
        a->status = DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to ask %u hosts for %u variables", a->hosts,
                             a->count);
    } else {
        for (uint32_t k = 0; k < a->count; k++)
            begin(a, k);
        for (uint32_t k = 0; k < a->count; k++)
            if (!a->asking[k].v->is_paired)
                a->asking[k].own(a->asking[k].context);
        for (uint32_t k = 0; k < a->count; k++)
            end(a, k);
        if (a->status != DITTO_OK)
            dti_error_set(&a->error);
    }
    free(a->question);
    free(a->has_begun);
    return a->status;
}

static ditto_status fail_closed(const ditto_variable *v)
{
    return DTI_FAIL(
        DITTO_ERR_CONTEXT,
        "\"%s\" has shards on other hosts, which answer only while there is a coordinator: do this "
        "between ditto_coordinator_create and ditto_coordinator_destroy on host 0",
        v->name);
}

/* Returns true if this host has all shards of the variable. */
static bool has_all(const ditto_variable *v)
{
    uint32_t i = 0;
    while (v->host_of_piece != NULL && i < v->pieces && dti_owns_piece(v, i))
        i++;
    return v->host_of_piece == NULL || i == v->pieces;
}

ditto_status dti_ask_owners_of_all(const struct dti_asking *asking, uint32_t count)
{
    const struct dti_owners *owners = dti_vars_storage(asking->v->team)->owners;
    uint32_t k = 0;
    while (k < count && !asking[k].v->is_paired && has_all(asking[k].v))
        k++;
    if (k < count && dti_questions_are_open(owners->questions))
        return ask(&(struct asked){
            .asking = asking, .count = count, .hosts = owners->hosts, .questions = owners->questions });
    for (k = 0; k < count; k++)
        if (!asking[k].works_closed && !has_all(asking[k].v))
            return fail_closed(asking[k].v);
    for (k = 0; k < count; k++)
        asking[k].own(asking[k].context);
    return DITTO_OK;
}

ditto_status dti_ask_owners(const struct dti_asking *asking)
{
    return dti_ask_owners_of_all(asking, 1);
}

ditto_status dti_ask_host(const ditto_variable *v, uint32_t host, const struct dti_parameter_request *request,
                          ditto_status (*take)(void *context, uint32_t host, struct dti_bytes_reader *answer),
                          void *context)
{
    struct dti_questions *questions = dti_vars_storage(v->team)->owners->questions;
    struct dti_bytes bytes = { 0 };
    struct dti_bytes_reader answer;
    struct dti_asked_host question;
    void *data;
    dti_put_request(&bytes, request);
    DTI_TRY_OF(dti_question_ask(questions, host, &bytes, &question), "\"%s\"", v->name);
    ditto_status status = dti_question_await(questions, &question, &answer, &data);
    if (status == DITTO_OK)
        status = take(context, host, &answer);
    free(data);
    return status == DITTO_OK ? DITTO_OK : dti_where(status, "\"%s\"", v->name);
}

/* -- what hosts must have alike -- */

ditto_status dti_parameters_check_begun(const struct dti_team *team, const char *what)
{
    const struct dti_owners *owners = dti_vars_storage(team)->owners;
    if (owners == NULL || !dti_questions_are_open(owners->questions))
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_CONTEXT,
                    "over several hosts, all of them create the same %s: do this on each host before "
                    "ditto_coordinator_create and ditto_serve",
                    what);
}

ditto_status dti_parameters_check_ended(const struct dti_team *team, const char *what, const char *name)
{
    const struct dti_owners *owners = dti_vars_storage(team)->owners;
    if (owners == NULL || owners->second == NULL || dti_team_forked(team) ||
        !dti_questions_are_open(owners->questions))
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_BUSY,
                    "the %s \"%s\" is on two hosts (mirrors_parameters), which work on it: destroy it after "
                    "ditto_coordinator_destroy on host 0, and after ditto_serve on the others",
                    what, name);
}

static uint64_t digest_of_variable(uint64_t digest, const ditto_variable *v)
{
    digest = dti_hash_bytes(digest, v->name, strlen(v->name));
    digest = dti_hash_word(digest, v->stamp);
    digest = dti_hash_word(digest, (uint64_t)v->spec.dtype << 32 | v->spec.rank);
    for (uint32_t d = 0; d < v->spec.rank; d++)
        digest = dti_hash_word(digest, v->spec.shape[d]);
    digest = dti_hash_word(digest, (uint64_t)v->concurrency << 32 | v->pieces);
    for (uint32_t i = 0; i < v->pieces; i++)
        digest = dti_hash_word(digest, v->host_of_piece[i]);
    return digest;
}

static uint64_t digest_of_optimizer(uint64_t digest, const ditto_optimizer *o)
{
    const double numbers[] = {
        o->options.learning_rate, o->options.momentum,         o->options.beta1,
        o->options.beta2,         o->options.epsilon,          o->options.weight_decay,
        o->options.clip_norm,     (double)o->options.rule,     (double)o->options.op,
        (double)o->slots,         o->options.nesterov ? 1 : 0, (double)o->options.accumulate
    };
    digest = dti_hash_bytes(digest, o->name, strlen(o->name));
    digest = dti_hash_word(digest, o->stamp);
    for (uint32_t k = 0; k < o->count; k++)
        digest = dti_hash_word(digest, o->variable[k]->stamp);
    digest = dti_hash_bytes(digest, numbers, sizeof numbers);
    digest = dti_hash_word(digest,
                           o->options.has_max_staleness ? (uint64_t)o->options.max_staleness : UINT64_MAX);
    if (o->rate_factor != NULL) {
        digest = dti_hash_bytes(digest, o->rate_factor, o->count * sizeof *o->rate_factor);
        digest = dti_hash_bytes(digest, o->weight_decay, o->count * sizeof *o->weight_decay);
    }
    return digest;
}

/* Adds the shards of a variable that this host has as the first, or as the second host of a pair. */
static void add_shards(struct dti_parameters_digest *digest, const ditto_variable *v)
{
    for (uint32_t i = 0; i < v->pieces; i++) {
        if (!dti_owns_piece(v, i))
            continue;
        uint64_t *sum = v->host_of_piece[i] == v->owners->own ? &digest->first : &digest->second;
        *sum = dti_hash_word(*sum, dti_shard_version(v, i));
        *sum = dti_hash_words(*sum, dti_shard_elements(v, i), dti_shard_bytes(v, i));
    }
}

ditto_status dti_parameters_digest(struct dti_team *team, struct dti_parameters_digest *out)
{
    struct dti_frame frame;
    struct dti_parameters_digest digest = { DTI_HASH_SEED, DTI_HASH_SEED, DTI_HASH_SEED };
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_KEEPS_AFFINITY));
    for (const ditto_variable *v = dti_registry_first(team); v != NULL; v = v->next) {
        digest.made = digest_of_variable(digest.made, v);
        if (v->is_paired)
            add_shards(&digest, v);
    }
    for (const ditto_optimizer *o = *dti_registry_optimizers(team); o != NULL; o = o->next)
        digest.made = digest_of_optimizer(digest.made, o);
    dti_cross_leave(team, &frame);
    *out = digest;
    return DITTO_OK;
}

static ditto_status compare_shards(const struct dti_owners *owners, const ditto_cluster *cluster,
                                   const struct dti_parameters_digest *digests)
{
    for (uint32_t s = 0; owners->second != NULL && s < owners->servers; s++) {
        uint32_t first = owners->host[s], second = owners->second[first];
        if (digests[first].first != digests[second].second)
            return DTI_FAIL(
                DITTO_ERR_INVALID,
                "hosts %u (%s) and %u (%s) have other values in the shards that are mirrored on both: give "
                "all hosts the same initial values, and write variables on all hosts alike before the "
                "coordinator",
                first, ditto_cluster_host_name(cluster, first), second,
                ditto_cluster_host_name(cluster, second));
    }
    return DITTO_OK;
}

ditto_status dti_parameters_compare(const struct dti_team *team, const ditto_cluster *cluster,
                                    const struct dti_parameters_digest *digests)
{
    const struct dti_owners *owners = dti_vars_storage(team)->owners;
    for (uint32_t h = 1; h < owners->hosts; h++)
        if (digests[h].made != digests[0].made)
            return DTI_FAIL(
                DITTO_ERR_INVALID,
                "host %u (%s) has other variables or optimizers than host 0: all hosts create the same "
                "ones, in the same order, with the same options, before the coordinator",
                h, ditto_cluster_host_name(cluster, h));
    return compare_shards(owners, cluster, digests);
}
