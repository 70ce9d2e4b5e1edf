/* src/input/distribute/input_plan.c - checks the options, makes the plan, and gives each pipeline its
 * dataset. */
#include "base/errors/user_call.h"
#include "input/distribute/pipelines.h"
#include "replicas/team/team.h"

#include <stdlib.h>

#define DEFAULT_BUFFER 2u
#define MOST_PRODUCERS 1024u
#define MOST_BUFFER    65536u

/* -- options -- */

static ditto_status check_ranges(const ditto_input_options *o)
{
    const struct {
        const char *name;
        uint32_t value, most;
    } bounded[] = { { "partial", (uint32_t)o->partial, DITTO_PARTIAL_EVEN },
                    { "shard", (uint32_t)o->shard, DITTO_SHARD_OFF },
                    { "replication", (uint32_t)o->replication, DITTO_REPLICATION_PER_REPLICA },
                    { "num_producers", o->num_producers, MOST_PRODUCERS },
                    { "buffer", o->buffer == DITTO_NO_PREFETCH ? 0 : o->buffer, MOST_BUFFER } };
    for (size_t i = 0; i < sizeof bounded / sizeof bounded[0]; i++)
        if (bounded[i].value > bounded[i].most)
            return DTI_FAIL(DITTO_ERR_RANGE, "%s is %u: at most %u", bounded[i].name, bounded[i].value,
                            bounded[i].most);
    if ((o->state == NULL) != (o->state_bytes == 0))
        return DTI_FAIL(DITTO_ERR_INVALID, "state_bytes is %zu, but state is %p: set both or none",
                        o->state_bytes, o->state);
    return dti_flags_check(o->flags, DITTO_INPUT_STATIC | DITTO_INPUT_HOST_MEMORY, "flags");
}

/* Makes the part of the plan that is the same for both functions that make an iterator. */
static ditto_status begin(const struct dti_team *team, const ditto_input_options *o, uint32_t pipelines,
                          struct dti_input_plan *plan)
{
    if (pipelines > dti_team_all_replicas(team) || dti_team_all_replicas(team) % pipelines != 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "num_pipelines is %u, which does not divide the %u replicas",
                        pipelines, dti_team_all_replicas(team));
    uint32_t each = dti_team_all_replicas(team) / pipelines, first = dti_team_first_replica(team) / each,
             behind_last = (dti_team_first_replica(team) + dti_team_num_replicas(team) - 1) / each + 1;
    *plan = (struct dti_input_plan){
        .pass = o->pass,
        .max_bytes = o->max_bytes != 0 ? o->max_bytes : UINT64_MAX,
        .pipelines = pipelines,
        .replicas_each = each,
        .first_pipeline = first,
        .local_pipelines = behind_last - first,
        .producers = o->num_producers != 0 ? o->num_producers
                                           : dti_producers_default(team, behind_last - first),
        .is_static = (o->flags & DITTO_INPUT_STATIC) != 0,
        .host_memory = (o->flags & DITTO_INPUT_HOST_MEMORY) != 0,
        .state = o->state,
        .state_bytes = o->state_bytes,
    };
    return DITTO_OK;
}

/* Computes the number of slots from the options and the dataset. */
static void set_slots(const ditto_dataset *dataset, const ditto_input_options *o, struct dti_input_plan *plan)
{
    uint64_t buffer = o->buffer != 0           ? o->buffer
                      : dataset->prefetch != 0 ? dataset->prefetch
                                               : DEFAULT_BUFFER;
    /* One slot more, for the batch in use. */
    plan->slots = (uint32_t)(buffer == DITTO_NO_PREFETCH ? 1 : buffer + 1);
}

/* -- one dataset for all pipelines -- */

ditto_status dti_input_plan_distribute(const struct dti_team *team, ditto_dataset *dataset,
                                       const ditto_input_options *o, struct dti_input_plan *plan,
                                       ditto_dataset ***datasets)
{
    DTI_TRY(check_ranges(o));
    if (dataset->batch_rows == 0 && o->global_batch == 0)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "the dataset has no batches: batch it first (ditto_dataset_batch), or set global_batch");
    if (dataset->batch_rows != 0 && o->global_batch != 0 && dataset->batch_rows != o->global_batch)
        return DTI_FAIL(DITTO_ERR_INVALID, "the dataset is batched by %llu rows, but global_batch is %llu",
                        (unsigned long long)dataset->batch_rows, (unsigned long long)o->global_batch);
    if (o->replication == DITTO_REPLICATION_PER_REPLICA)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "replication is DITTO_REPLICATION_PER_REPLICA, but there is one dataset: use "
                        "ditto_strategy_iterate_from_function, or as many pipelines as replicas");
    DTI_TRY(begin(team, o, o->num_pipelines != 0 ? o->num_pipelines : 1, plan));
    bool shard_files = o->shard == DITTO_SHARD_FILE, automatic = o->shard <= DITTO_SHARD_AUTO;
    if (shard_files && dataset->files == 0)
        return DTI_FAIL(DITTO_ERR_NOT_FOUND, "shard is FILE, but the dataset is read from no file");
    if (shard_files && !dataset->by_file && plan->pipelines > 1)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "shard is FILE, but rows are counted across files (take, skip, shard, zip, DROP_REMAINDER), "
            "or do not all come from files: use DITTO_SHARD_DATA");
    shard_files |= automatic && dataset->by_file && dataset->files >= plan->pipelines;
    plan->sharing = plan->pipelines == 1 || o->shard == DITTO_SHARD_OFF ? DTI_SHARING_NONE
                    : shard_files                                       ? DTI_SHARING_FILES
                                                                        : DTI_SHARING_ROWS;
    plan->global = o->global_batch != 0 ? o->global_batch : dataset->batch_rows;
    plan->even = o->partial == DITTO_PARTIAL_EVEN;
    set_slots(dataset, o, plan);
    *datasets = malloc(plan->local_pipelines * sizeof(ditto_dataset *));
    if (*datasets == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u pipelines", plan->local_pipelines);
    for (uint32_t w = 0; w < plan->local_pipelines; w++) {
        (*datasets)[w] = dataset;
        dti_dataset_retain(dataset);
    }
    return DITTO_OK;
}

/* -- one dataset for each pipeline -- */

/* Checks that the dataset has batches, and that its rows have the same components as those of the first
 * pipeline of this host. */
static ditto_status check_alike(const ditto_dataset *first, uint32_t first_pipeline,
                                const ditto_dataset *dataset, uint32_t pipeline)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the function returned a dataset or failed */
    if (dataset->batch_rows == 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the dataset of pipeline %u has no batches: batch it first, by rows of one replica",
                        pipeline);
    char first_name[32], name[32];
    dti_text_add(&(struct dti_text){ first_name, sizeof first_name, 0 }, "pipeline %u", first_pipeline);
    dti_text_add(&(struct dti_text){ name, sizeof name, 0 }, "pipeline %u", pipeline);
    return dti_dataset_check_alike(first, first_name, dataset, name);
}

static DTI_GUARDED ditto_status make_one(const struct dti_team *team, ditto_dataset_fn function, void *user,
                                         const ditto_input_context *context, ditto_dataset **out)
{
    uint32_t serial = dti_this_thread()->errors;
    struct dti_same_context same;
    *out = NULL;
    dti_frame_push_same(&same, team);
    DTI_GUARD("a function that makes datasets (ditto_strategy_iterate_from_function)");
    ditto_status status = function(context, user, out);
    DTI_GUARD_END();
    dti_frame_pop_same(&same);
    if (status == DITTO_OK && *out == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the function that makes datasets returned DITTO_OK but no dataset, for pipeline %u",
                        context->pipeline);
    if (status == DITTO_OK)
        return DITTO_OK;
    *out = NULL; /* a function that failed may have destroyed the dataset that it left here */
    if (status < 0 && dti_this_thread()->errors != serial)
        return status; /* the function has recorded the cause */
    return dti_fail_user(status, serial, "ditto_strategy_iterate_from_function", NULL, NULL);
}

ditto_status dti_input_plan_from_function(const struct dti_team *team, ditto_dataset_fn function, void *user,
                                          const ditto_input_options *o, struct dti_input_plan *plan,
                                          ditto_dataset ***datasets)
{
    DTI_TRY(check_ranges(o));
    const char *set = o->global_batch != 0                  ? "global_batch"
                      : o->partial != DITTO_PARTIAL_DEFAULT ? "partial"
                      : o->shard != DITTO_SHARD_DEFAULT     ? "shard"
                                                            : NULL;
    if (set != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "%s is set, but datasets of a function are neither rebatched nor sharded", set);
    bool each = o->replication == DITTO_REPLICATION_PER_REPLICA;
    if (each && o->num_pipelines != 0 && o->num_pipelines != dti_team_all_replicas(team))
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "replication is DITTO_REPLICATION_PER_REPLICA, but num_pipelines is %u, and there "
                        "are %u replicas",
                        o->num_pipelines, dti_team_all_replicas(team));
    DTI_TRY(begin(team, o,
                  each                    ? dti_team_all_replicas(team)
                  : o->num_pipelines != 0 ? o->num_pipelines
                                          : 1,
                  plan));
    plan->from_function = true;
    *datasets = calloc(plan->local_pipelines, sizeof(ditto_dataset *));
    ditto_status status = *datasets != NULL ? DITTO_OK
                                            : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u pipelines",
                                                       plan->local_pipelines);
    for (uint32_t i = 0; i < plan->local_pipelines && status == DITTO_OK; i++) {
        uint32_t w = plan->first_pipeline + i;
        status = make_one(team, function, user,
                          &(ditto_input_context){ plan->pipelines, w, dti_team_all_replicas(team) },
                          &(*datasets)[i]);
        if (status == DITTO_OK)
            status = check_alike((*datasets)[0], plan->first_pipeline, (*datasets)[i], w);
    }
    if (status != DITTO_OK) {
        for (uint32_t i = 0; *datasets != NULL && i < plan->local_pipelines; i++)
            dti_dataset_release((*datasets)[i]);
        free(*datasets);
        return status;
    }
    set_slots((*datasets)[0], o, plan);
    return DITTO_OK;
}
