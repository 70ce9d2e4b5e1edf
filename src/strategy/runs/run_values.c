/* src/strategy/runs/run_values.c - runs with arguments and results. */
#include "base/numbers/checksum.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"
#include "strategy/runs/result.h"
#include "sync/hosts/cross.h"
#include "values/values.h"

#include <string.h>

/* -- arguments -- */

/* Checks that the components of an argument on this host have equal shapes. It is called if dynamic_batch is
 * OFF. */
static ditto_status check_batch(const ditto_value *v, const char *name)
{
    uint32_t first = dti_team_first_replica(v->strategy->base.team);
    for (uint32_t i = 1; v->kind == DITTO_VALUE_PER_REPLICA && i < v->strategy->base.num_replicas; i++)
        for (uint32_t d = 0; d < v->part[0].rank; d++)
            if (v->part[i].shape[d] != v->part[0].shape[d])
                return DTI_FAIL(
                    DITTO_ERR_SHAPE,
                    "dynamic_batch is OFF, but argument %s has %zu entries in dimension %u on replica %u, "
                    "and %zu on replica %u",
                    name, v->part[i].shape[d], d, first + i, v->part[0].shape[d], first);
    return DITTO_OK;
}

static ditto_status check_argument(const ditto_value *v, const ditto_strategy *strategy, bool dynamic,
                                   const char *name)
{
    DTI_TRY(dti_value_check_own(v, strategy, name));
    if (!dynamic)
        DTI_TRY(check_batch(v, name));
    for (uint32_t i = 0; i < v->members; i++)
        DTI_TRY(check_argument(v->member[i].value, strategy, dynamic, v->member[i].name));
    return DITTO_OK;
}

static uint64_t hash_shapes(const ditto_value *v, uint64_t hash)
{
    if (v->kind == DITTO_VALUE_PER_REPLICA)
        hash = dti_hash_bytes(hash, v->part[0].shape, v->part[0].rank * sizeof v->part[0].shape[0]);
    for (uint32_t i = 0; i < v->members; i++)
        hash = hash_shapes(v->member[i].value, hash);
    return hash;
}

/* Compares the shapes of the arguments of all hosts. It is called if dynamic_batch is OFF. */
static ditto_status compare_shapes(const ditto_value *arguments)
{
    struct dti_team *team = arguments->strategy->base.team;
    struct dti_cross_request request = { .name = "the shapes of a run's arguments" };
    uint64_t own = hash_shapes(arguments, DTI_HASH_SEED);
    const struct dti_gathered *all;
    if (!dti_cross_has_hosts(team))
        return DITTO_OK;
    DTI_TRY(dti_cross_gather(team, &request, &own, sizeof own, &all));
    for (uint32_t h = 1; h < dti_cross_hosts(team); h++)
        if (memcmp(all[h].data, all[0].data, sizeof own) != 0)
            return DTI_FAIL(DITTO_ERR_SHAPE,
                            "dynamic_batch is OFF, but the arguments of hosts 0 and %u differ in shape", h);
    return DITTO_OK;
}

/* -- the run -- */

static ditto_status run_and_collect(ditto_strategy *strategy, const struct dti_run_call *request,
                                    const ditto_run_options *options, uint64_t *steps_done,
                                    ditto_value **result)
{
    struct dti_run_call *call;
    ditto_status status = dti_run_in_turn(strategy, request, &call), collected = DITTO_OK;
    if (call == NULL)
        return status;
    if (request->step != NULL && status >= 0 && steps_done != NULL)
        *steps_done = call->done;
    if (status < 0 && (dti_team_is_poisoned(strategy->base.team) || dti_team_forked(strategy->base.team)))
        return status;
    if (status < 0 || !request->wanted)
        dti_results_give_back(strategy, call);
    else
        collected = dti_results_collect(strategy, call, options, result);
    return collected != DITTO_OK ? collected : status;
}

static ditto_status run_values(ditto_strategy *strategy, const struct dti_run_call *request,
                               const ditto_run_options *options, uint64_t *steps_done, ditto_value **result)
{
    struct dti_frame frame;
    DTI_LEAVES_GATES(held);
    if (request->values != NULL) {
        DTI_TRY(check_argument(request->values, strategy, options->dynamic_batch != DITTO_SWITCH_OFF,
                               "arguments"));
        DTI_TRY(dti_value_hold_variables(request->values, &held));
        if (options->dynamic_batch == DITTO_SWITCH_OFF)
            DTI_TRY(compare_shapes(request->values));
    }
    DTI_TRY(dti_cross_enter(strategy->base.team, &frame, DTI_CALLER_PINNED));
    ditto_status status = run_and_collect(strategy, request, options, steps_done, result);
    dti_cross_leave(strategy->base.team, &frame);
    return status;
}

ditto_status dti_strategy_run_values(ditto_strategy *strategy, const struct dti_run_call *request,
                                     const ditto_run_options *options, uint64_t *steps_done,
                                     ditto_value **result)
{
    uint64_t begin = dti_cross_begin(strategy->base.team);
    return dti_cross_tell(strategy->base.team, begin,
                          run_values(strategy, request, options, steps_done, result));
}

/* -- returning results -- */

static ditto_status check_name_fits(const struct dti_results *results, const char *name)
{
    const char *other = results->count != 0 ? results->result[0].name : name;
    bool alone = name[0] == '\0' || other[0] == '\0';
    if ((!alone && dti_name_is_number(name) == dti_name_is_number(other)) ||
        (alone && strcmp(name, other) == 0))
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_INVALID,
        "results \"%s\" and \"%s\": a function returns one without a name, or all with names, or all with "
        "numbers",
        other, name);
}

static ditto_status find_entry(struct dti_results *results, const char *name, struct dti_result **out)
{
    if (name[0] != '\0')
        DTI_TRY(dti_name_check(name));
    DTI_TRY(check_name_fits(results, name));
    for (uint32_t i = 0; i < results->count; i++)
        if (strcmp(results->result[i].name, name) == 0) {
            *out = &results->result[i];
            return DITTO_OK;
        }
    if (results->count == DITTO_MAX_RESULTS)
        return DTI_FAIL(DITTO_ERR_RANGE, "more than %d results", DITTO_MAX_RESULTS);
    *out = &results->result[results->count];
    memcpy((*out)->name, name, strlen(name) + 1); /* dti_name_check has checked the length */
    return DITTO_OK;
}

ditto_status dti_result_find(struct dti_replica *r, const char *name, struct dti_results **list,
                             struct dti_result **out)
{
    const struct dti_run_call *call = dti_current_run_call();
    if (call == NULL || !call->returns)
        return DTI_FAIL(DITTO_ERR_CONTEXT, "this run takes no results: use ditto_strategy_run_values");
    if (name != NULL && name[0] == '\0')
        return dti_name_check(name);
    *list = dti_pool_of(dti_team_strategy(r->team), r->index)->results[call->level];
    return find_entry(*list, name != NULL ? name : "", out);
}

void dti_result_set(struct dti_results *list, struct dti_result *result, struct dti_result *made)
{
    if (result == &list->result[list->count])
        list->count++;
    else
        dti_value_buffer_give(result->component);
    memcpy(made->name, result->name, sizeof made->name);
    *result = *made;
}
