/* src/strategy/runs/result.c - compares the results that the replicas of a run have returned, and makes
 * values of them. */
#include "base/numbers/checksum.h"
#include "strategy/runs/result.h"
#include "sync/hosts/cross.h"
#include "values/reductions/reductions.h"
#include "values/values.h"
#include "vars/vars.h"

#include <string.h>

void dti_results_again(struct dti_replica *r, const struct dti_run_call *call)
{
    if (call->returns)
        dti_results_drop(dti_pool_of(dti_team_strategy(r->team), r->index)->results[call->level]);
}

static struct dti_results *results_of(const ditto_strategy *strategy, const struct dti_run_call *call,
                                      uint32_t replica)
{
    return dti_pool_of(strategy, replica)->results[call->level];
}

void dti_results_give_back(ditto_strategy *strategy, const struct dti_run_call *call)
{
    for (uint32_t i = 0; i < strategy->base.num_replicas; i++)
        dti_results_drop(results_of(strategy, call, i));
}

/* -- comparing the results of replicas -- */

static const char *shown_name(const struct dti_result *result)
{
    return result->name[0] != '\0' ? result->name : "without name";
}

/* Returns a replica's result of that name, or NULL if there is none. It looks at index `expected` first,
 * because replicas usually return their results in the same order. */
static struct dti_result *find(struct dti_results *results, const char *name, uint32_t expected)
{
    if (expected < results->count && strcmp(results->result[expected].name, name) == 0)
        return &results->result[expected];
    for (uint32_t i = 0; i < results->count; i++)
        if (strcmp(results->result[i].name, name) == 0)
            return &results->result[i];
    return NULL;
}

static ditto_status fail_missing(const struct dti_result *result, uint32_t has, uint32_t has_not)
{
    return DTI_FAIL(DITTO_ERR_DIVERGED,
                    "replica %u returned the result %s, but replica %u did not: every replica must return "
                    "the same results",
                    has, shown_name(result), has_not);
}

static ditto_status check_same_set(const struct dti_results *first, uint32_t first_replica,
                                   struct dti_results *theirs, uint32_t replica)
{
    for (uint32_t i = 0; i < first->count; i++)
        if (find(theirs, first->result[i].name, i) == NULL)
            return fail_missing(&first->result[i], first_replica, replica);
    for (uint32_t i = 0; i < theirs->count && theirs->count > first->count; i++)
        if (find((struct dti_results *)(uintptr_t)first, theirs->result[i].name, i) == NULL)
            return fail_missing(&theirs->result[i], replica, first_replica);
    return DITTO_OK;
}

#define RESULT_TEXT_BYTES 160

/* Describes the properties of a result that must agree on all replicas. */
static void describe(const struct dti_result *result, char buffer[RESULT_TEXT_BYTES])
{
    struct dti_text text = { buffer, RESULT_TEXT_BYTES, 0 };
    const ditto_tensor *t = &result->tensor;
    if (result->kind == DITTO_VALUE_VARIABLE)
        dti_text_add(&text, "the variable \"%s\"", result->variable->name);
    else if (result->kind == DITTO_VALUE_SLICES)
        dti_text_add(&text, "slices of %s with rows of %zu elements, dense_rows = %zu",
                     ditto_dtype_name(t->dtype), t->shape[1], result->dense_rows);
    else
        dti_text_add(&text, "%s of %s, rank %u", dti_value_kind_text(result->kind),
                     ditto_dtype_name(t->dtype), t->rank);
}

static ditto_status check_same_kind(const struct dti_result *a, uint32_t first_replica,
                                    const struct dti_result *b, uint32_t replica)
{
    bool same = a->kind == b->kind && a->variable == b->variable;
    if (same && a->kind != DITTO_VALUE_VARIABLE)
        same = a->tensor.dtype == b->tensor.dtype && a->tensor.rank == b->tensor.rank;
    if (same && a->kind == DITTO_VALUE_SLICES)
        same = a->tensor.shape[1] == b->tensor.shape[1] && a->dense_rows == b->dense_rows;
    if (same)
        return DITTO_OK;
    char first[RESULT_TEXT_BYTES], theirs[RESULT_TEXT_BYTES];
    describe(a, first);
    describe(b, theirs);
    return DTI_FAIL(DITTO_ERR_DIVERGED, "the result %s is %s from replica %u, but %s from replica %u: %s",
                    shown_name(a), first, first_replica, theirs, replica,
                    a->kind == DITTO_VALUE_VARIABLE && b->kind == DITTO_VALUE_VARIABLE
                        ? "every replica must return the same variable"
                        : "the components of one value must agree in this");
}

/* -- one result of all replicas -- */

static void take_part(ditto_value *value, uint32_t replica, struct dti_result *result)
{
    value->part[replica] = result->tensor;
    value->index[replica] = result->index;
    value->component[replica] = result->component;
    result->component = NULL; /* the value owns it now */
}

static ditto_status take_result(ditto_strategy *strategy, const struct dti_run_call *call, uint32_t at,
                                ditto_value **out)
{
    struct dti_result *first = &results_of(strategy, call, 0)->result[at];
    ditto_value *value;
    if (first->kind == DITTO_VALUE_VARIABLE)
        return dti_value_make_variable(strategy, first->variable, out);
    DTI_TRY(dti_value_make(strategy, first->kind, &value));
    value->dense_rows = first->dense_rows;
    for (uint32_t i = 0; i < strategy->base.num_replicas; i++)
        take_part(value, i, find(results_of(strategy, call, i), first->name, at));
    *out = value;
    return DITTO_OK;
}

static ditto_status take_reduced(ditto_strategy *strategy, const struct dti_run_call *call, uint32_t at,
                                 const ditto_run_options *options, ditto_value **out)
{
    const char *name = results_of(strategy, call, 0)->result[at].name;
    for (uint32_t i = 0; i < options->num_reduce; i++) {
        const ditto_result_op *request = &options->reduce[i];
        ditto_value *each;
        if (strcmp(request->name != NULL ? request->name : "", name) != 0)
            continue;
        DTI_TRY(take_result(strategy, call, at, &each));
        ditto_status status = dti_reduce_value(strategy, request->op, each, NULL, 0, out);
        dti_value_drop(each);
        DTI_TRY_OF(status, "options->reduce[%u]", i);
        return DITTO_OK;
    }
    return take_result(strategy, call, at, out);
}

/* -- all results -- */

static ditto_status check_requests(const struct dti_results *results, const ditto_run_options *options)
{
    for (uint32_t i = 0; i < options->num_reduce; i++) {
        const char *name = options->reduce[i].name != NULL ? options->reduce[i].name : "";
        if (find((struct dti_results *)(uintptr_t)results, name, 0) == NULL)
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "the result %s%s%s is to be reduced, but no replica returned it",
                            name[0] != '\0' ? "\"" : "without name", name, name[0] != '\0' ? "\"" : "");
    }
    return DITTO_OK;
}

/* Checks that numbered results have the numbers 0 to count - 1, and adds them in this order. */
static ditto_status collect_numbered(ditto_strategy *strategy, const struct dti_run_call *call,
                                     const ditto_run_options *options, ditto_value *nest)
{
    struct dti_results *first = results_of(strategy, call, 0);
    char name[16];
    for (uint32_t k = 0; k < first->count; k++) {
        ditto_value *member;
        dti_number_name(name, k);
        struct dti_result *result = find(first, name, k);
        if (result == NULL)
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "the result \"%s\" was never returned, but %u numbered ones were: numbers "
                            "go from 0 on without a gap",
                            name, first->count);
        DTI_TRY(take_reduced(strategy, call, (uint32_t)(result - first->result), options, &member));
        DTI_TRY(dti_nest_add(nest, name, member));
    }
    return DITTO_OK;
}

/* Over several hosts: the names of all results, in the order of replica 0. */
struct result_names {
    char name[DITTO_MAX_RESULTS][DITTO_MAX_RESULT_NAME_BYTES + 1];
};

static ditto_status collect_named(ditto_strategy *strategy, const struct dti_run_call *call,
                                  const ditto_run_options *options, const struct result_names *names,
                                  ditto_value *nest)
{
    struct dti_results *first = results_of(strategy, call, 0);
    for (uint32_t k = 0; k < first->count; k++) {
        ditto_value *member;
        uint32_t at = names != NULL ? (uint32_t)(find(first, names->name[k], k) - first->result) : k;
        DTI_TRY(take_reduced(strategy, call, at, options, &member));
        DTI_TRY(dti_nest_add(nest, first->result[at].name, member));
    }
    return DITTO_OK;
}

/* Checks that all replicas of this host have returned results of the same names and kinds. */
static ditto_status check_host(const ditto_strategy *strategy, const struct dti_run_call *call)
{
    const struct dti_results *first = results_of(strategy, call, 0);
    uint32_t first_replica = dti_team_first_replica(strategy->base.team);
    for (uint32_t i = 1; i < strategy->base.num_replicas; i++)
        DTI_TRY(check_same_set(first, first_replica, results_of(strategy, call, i), first_replica + i));
    for (uint32_t k = 0; k < first->count; k++)
        for (uint32_t i = 1; i < strategy->base.num_replicas; i++)
            DTI_TRY(check_same_kind(&first->result[k], first_replica,
                                    find(results_of(strategy, call, i), first->result[k].name, k),
                                    first_replica + i));
    return DITTO_OK;
}

/* Returns a hash of what must be equal in a result of all hosts. */
static uint64_t hash_of(const struct dti_result *result)
{
    uint64_t hash = dti_hash_bytes(DTI_HASH_SEED, result->name, strlen(result->name) + 1);
    hash = dti_hash_word(hash, (uint64_t)result->kind);
    if (result->kind == DITTO_VALUE_VARIABLE)
        return dti_hash_word(hash, result->variable->stamp);
    hash = dti_hash_word(hash, (uint64_t)result->tensor.dtype << 32 | result->tensor.rank);
    return result->kind == DITTO_VALUE_SLICES
               ? dti_hash_word(hash, result->tensor.shape[1] ^ (uint64_t)result->dense_rows << 32)
               : hash;
}

/* Compares the results of all hosts, which may come in any order, and how they are reduced. Then
 * `names` has them in the order of the first host. */
static ditto_status compare_hosts(const ditto_strategy *strategy, const struct dti_results *results,
                                  const ditto_run_options *options, struct result_names *names)
{
    struct dti_team *team = strategy->base.team;
    struct dti_cross_request request = { .name = "the results of a run", .digest = results->count };
    const struct dti_gathered *all;
    for (uint32_t i = 0; i < results->count; i++) {
        memcpy(names->name[i], results->result[i].name, sizeof names->name[i]);
        request.digest += hash_of(&results->result[i]); /* in any order */
    }
    for (uint32_t i = 0; i < options->num_reduce; i++) {
        const char *name = options->reduce[i].name != NULL ? options->reduce[i].name : "";
        request.digest = dti_hash_word(dti_hash_bytes(request.digest, name, strlen(name) + 1),
                                       options->reduce[i].op);
    }
    size_t bytes = results->count * sizeof names->name[0];
    DTI_TRY(dti_cross_gather(team, &request, names, dti_cross_host(team) == 0 ? bytes : 0, &all));
    if (bytes != 0)
        memcpy(names, all[0].data, bytes);
    return DITTO_OK;
}

static ditto_status collect(ditto_strategy *strategy, const struct dti_run_call *call,
                            const ditto_run_options *options, ditto_value **out)
{
    struct dti_results *first = results_of(strategy, call, 0);
    struct result_names names, *in_order = NULL;
    ditto_value *nest;
    DTI_TRY(check_host(strategy, call));
    bool no_step = call->step != NULL && call->done == 0;
    if (!no_step)
        DTI_TRY(check_requests(first, options));
    if (dti_cross_has_hosts(strategy->base.team)) {
        DTI_TRY(compare_hosts(strategy, first, options, &names));
        in_order = &names;
    }
    if (first->count == 0) {
        *out = NULL;
        return DITTO_OK;
    }
    if (first->result[0].name[0] == '\0')
        return take_reduced(strategy, call, 0, options, out);
    DTI_TRY(dti_value_make(strategy, DITTO_VALUE_NEST, &nest));
    ditto_status status = dti_name_is_number(first->result[0].name)
                              ? collect_numbered(strategy, call, options, nest)
                              : collect_named(strategy, call, options, in_order, nest);
    return dti_value_finish(nest, status, out);
}

ditto_status dti_results_collect(ditto_strategy *strategy, const struct dti_run_call *call,
                                 const ditto_run_options *options, ditto_value **out)
{
    ditto_status status = collect(strategy, call, options, out);
    dti_results_give_back(strategy, call);
    return status;
}
