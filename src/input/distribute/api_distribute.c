/* src/input/distribute/api_distribute.c - the functions of include/ditto/distribute.h, which check their
 * arguments. The functions that make values are in src/strategy/runs/api_next_value.c. */
#include "input/distribute/iterator.h"
#include "input/input.h"
#include "replicas/team/servers.h"
#include "replicas/team/turn.h"
#include "sync/hosts/cross.h"

#include <stdlib.h>

/* Distributes `dataset`, or if it is NULL the datasets that the function of the user returns. */
static ditto_status create(struct dti_team *team, ditto_dataset *dataset, ditto_dataset_fn function,
                           void *user, const ditto_input_options *options, ditto_iterator **out)
{
    ditto_input_options known;
    struct dti_input_plan plan;
    ditto_dataset **datasets = NULL;
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_input_options"));
    DTI_TRY(dti_context_check_cross(team));
    if (dataset != NULL)
        DTI_TRY(dti_input_plan_distribute(team, dataset, &known, &plan, &datasets));
    else
        DTI_TRY(dti_input_plan_from_function(team, function, user, &known, &plan, &datasets));
    ditto_iterator *made = NULL;
    struct dti_pipeline_summary *summary = NULL;
    ditto_status status = dti_pipelines_agree(team, datasets, &plan, &summary);
    if (status == DITTO_OK)
        status = dti_iterator_create(team, datasets, &plan, summary, &made);
    if (status == DITTO_OK) { /* a host that has failed tells the others in dti_cross_tell */
        status = dti_cross_agree(team, "the end of ditto_strategy_iterate", DITTO_OK);
        if (status != DITTO_OK)
            (void)dti_iterator_destroy(made);
    }
    if (status == DITTO_OK)
        *out = made;
    for (uint32_t i = 0; i < plan.local_pipelines; i++)
        dti_dataset_release(datasets[i]);
    free(datasets);
    free(plan.state_of_host_0);
    return status;
}

ditto_status ditto_strategy_iterate(ditto_strategy *strategy, ditto_dataset *dataset,
                                    const ditto_input_options *options, ditto_iterator **out)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    struct dti_team *team = dti_team_of(strategy);
    uint64_t begin = dti_cross_begin(team);
    ditto_status status = dti_not_null(dataset, "dataset");
    if (status == DITTO_OK)
        status = create(team, dataset, NULL, NULL, options, out);
    return dti_cross_tell(team, begin, status);
}

ditto_status ditto_strategy_iterate_from_function(ditto_strategy *strategy, ditto_dataset_fn function,
                                                  void *user, const ditto_input_options *options,
                                                  ditto_iterator **out)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    struct dti_team *team = dti_team_of(strategy);
    uint64_t begin = dti_cross_begin(team);
    ditto_status status = function != NULL ? create(team, NULL, function, user, options, out)
                                           : dti_fail_null("function");
    return dti_cross_tell(team, begin, status);
}

ditto_status ditto_input_per_replica_batch(const ditto_input_context *context, uint64_t global_batch,
                                           uint64_t *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(context, "context"));
    DTI_TRY(dti_not_null(out, "out"));
    if (context->num_replicas == 0 || global_batch == 0 || global_batch % context->num_replicas != 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "a global batch of %llu rows cannot be divided into equal batches for %u replicas",
                        (unsigned long long)global_batch, context->num_replicas);
    *out = global_batch / context->num_replicas;
    return DITTO_OK;
}

ditto_status ditto_iterator_destroy(ditto_iterator *iterator)
{
    DTI_ENTER();
    if (iterator == NULL)
        return DITTO_OK;
    DTI_TRY(dti_context_check_outside("iterator"));
    return dti_iterator_destroy(iterator);
}

ditto_status ditto_next(ditto_replica *self, ditto_iterator *iterator, ditto_batch *out)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_HOLD_ITERATOR(iterator);
    DTI_TRY(dti_not_null(out, "out"));
    struct dti_team *team = iterator->team;
    if (team != r->team && !dti_team_options(r->team)->plain)
        return DTI_FAIL(
            DITTO_ERR_CONTEXT,
            "mixing strategies: the iterator belongs to another strategy than replica %u, which asks for its "
            "batch",
            r->id);
    if (team != r->team && !dti_team_options(team)->plain)
        return DTI_FAIL(
            DITTO_ERR_CONTEXT,
            "mixing strategies: self is the default strategy's, but the iterator belongs to another one: "
            "call ditto_next inside a run of that strategy, or ditto_iterator_next outside");
    DTI_TRY(dti_iterator_claim(iterator, DTI_USE_REPLICAS));
    /* Outside of runs each thread has a replica of its own, with a team of its own. An iterator of the
     * default strategy (`plain`) belongs to that strategy's team, whose one replica all threads share, so the
     * two teams differ here. */
    return team == r->team ? dti_iterator_next(r, iterator, out, true)
                           : dti_iterator_next_outside(iterator, out);
}

ditto_status ditto_iterator_spec(const ditto_iterator *iterator, ditto_element_spec *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(iterator, "iterator"));
    DTI_LEAVES_GATE(held, NULL);
    dti_iterator_hold_alone(iterator, &held);
    DTI_TRY(dti_not_null(out, "out"));
    dti_iterator_spec(iterator, out);
    return DITTO_OK;
}

ditto_status ditto_iterator_stats(const ditto_iterator *iterator, uint32_t replica,
                                  ditto_iterator_counters *out)
{
    DTI_ENTER();
    DTI_HOLD_ITERATOR(iterator);
    DTI_TRY(dti_result_check(out, "ditto_iterator_counters"));
    uint32_t n = dti_team_num_replicas(dti_iterator_team(iterator));
    if (replica != DITTO_ALL_REPLICAS && replica >= n)
        return DTI_FAIL(DITTO_ERR_RANGE, "replica %u does not exist: the strategy has %u", replica, n);
    ditto_iterator_counters found;
    dti_iterator_stats(iterator, replica, &found);
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

static ditto_status save(ditto_iterator *iterator, void **state, size_t *bytes)
{
    struct dti_team *team = dti_iterator_team(iterator);
    struct dti_bytes written = { 0 };
    struct dti_frame frame;
    DTI_TRY(dti_not_null((const void *)state, "state"));
    DTI_TRY(dti_not_null(bytes, "bytes"));
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_KEEPS_AFFINITY));
    ditto_status status = dti_iterator_save(iterator, &written);
    dti_cross_leave(team, &frame);
    if (status != DITTO_OK) {
        dti_bytes_free(&written);
        return status;
    }
    *state = written.data;
    *bytes = written.length;
    return DITTO_OK;
}

ditto_status ditto_iterator_save(ditto_iterator *iterator, void **state, size_t *bytes)
{
    DTI_ENTER();
    DTI_HOLD_ITERATOR(iterator);
    uint64_t begin = dti_cross_begin(dti_iterator_team(iterator));
    return dti_cross_tell(dti_iterator_team(iterator), begin, save(iterator, state, bytes));
}

void ditto_state_free(void *state)
{
    free(state);
}
