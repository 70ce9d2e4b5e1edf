/* src/input/distribute/pipelines.c - what all hosts know of the pipelines. See pipelines.h. */
#include "input/distribute/pipelines.h"

#include <ditto/cluster.h>

#include "base/errors/status.h"
#include "base/numbers/checksum.h"
#include "replicas/team/team.h"
#include "sync/hosts/cross.h"

#include <stdlib.h>
#include <string.h>

/* -- what follows from the plan -- */

bool dti_plan_is_equal(const struct dti_input_plan *plan)
{
    return plan->global % (plan->pipelines * plan->replicas_each) == 0;
}

/* Returns true if all pipelines reach the end of their input in the same step. A short step is then the last
 * step of the whole input. If pipelines read different rows, or cut the same rows into steps of different
 * sizes, a step may be short in one pipeline only. */
static bool end_together(const struct dti_input_plan *plan)
{
    if (plan->pipelines == 1 || plan->sharing == DTI_SHARING_ROWS)
        return true;
    return !plan->from_function && plan->sharing == DTI_SHARING_NONE && dti_plan_is_equal(plan);
}

struct dti_cut dti_pipeline_cut(const struct dti_input_plan *plan, const struct dti_pipeline_summary *summary,
                                uint32_t pipeline)
{
    bool drops = end_together(plan) && (summary->is_infinite != 0 || summary->drops_remainder != 0);
    bool is_shared = plan->pipelines == 1 || plan->sharing == DTI_SHARING_ROWS;
    return (struct dti_cut){ .global = plan->from_function ? summary->batch_rows : plan->global,
                             .pipelines = plan->pipelines,
                             .pipeline = pipeline,
                             .replicas = plan->replicas_each,
                             .arrangement = plan->from_function ? DTI_CUT_EACH
                                            : is_shared         ? DTI_CUT_SHARED
                                                                : DTI_CUT_OWN,
                             .shorts = plan->is_static ? DTI_SHORT_NEVER
                                       : drops         ? DTI_SHORT_DROPPED
                                                       : DTI_SHORT_DELIVERED,
                             .even = plan->even };
}

bool dti_plan_needs_hosts(const struct dti_team *team, const struct dti_input_plan *plan)
{
    return dti_cross_has_hosts(team) && plan->pipelines > 1 && !end_together(plan);
}

/* -- summaries of all hosts -- */

static ditto_status summarize(const ditto_dataset *dataset, struct dti_pipeline_summary *out)
{
    uint64_t hash = dti_hash_word(DTI_HASH_SEED, dataset->components);
    for (uint32_t k = 0; k < dataset->components; k++) {
        const struct dti_row_component_spec *c = &dataset->component[k];
        hash = dti_hash_word(hash, (uint64_t)c->dtype << 32 | c->rank);
        hash = dti_hash_bytes(hash, c->shape, c->rank * sizeof c->shape[0]);
    }
    *out = (struct dti_pipeline_summary){ .components = hash,
                                          .batch_rows = dataset->batch_rows,
                                          .is_infinite = dataset->infinite,
                                          .drops_remainder = dataset->drop_remainder };
    return dti_dataset_fingerprint(dataset, &out->fingerprint);
}

/* Computes a number from all that must be equal on all hosts. Each dataset that a function makes is compared
 * later. */
static uint64_t digest_of(const struct dti_input_plan *plan, const struct dti_pipeline_summary *summary)
{
    const uint64_t numbers[] = { plan->global, plan->pass,          plan->pipelines, (uint64_t)plan->sharing,
                                 plan->even,   plan->from_function, plan->is_static, plan->state != NULL };
    uint64_t digest = dti_hash_bytes(DTI_HASH_SEED, numbers, sizeof numbers);
    return plan->from_function ? digest : dti_hash_word(digest, summary->fingerprint);
}

/* What a host gives to all: the pipelines that it has. Behind it are their summaries, and then the state of
 * host 0. */
struct summaries_head {
    uint32_t first, count;
    uint64_t state_bytes;
};

/* Takes over the summaries of one host. Fails if another one has told something else about a pipeline that
 * both have. */
static ditto_status take_over(const struct dti_gathered *from, uint32_t host, uint32_t *known,
                              struct dti_pipeline_summary *all)
{
    struct summaries_head head;
    memcpy(&head, from->data, sizeof head);
    for (uint32_t i = 0; i < head.count; i++) {
        struct dti_pipeline_summary found;
        uint32_t w = head.first + i;
        memcpy(&found, from->data + sizeof head + i * sizeof found, sizeof found);
        if (w < *known && memcmp(&found, &all[w], sizeof found) != 0)
            return DTI_FAIL(
                DITTO_ERR_DIVERGED,
                "pipeline %u serves replicas of host %u and of hosts before it, but their datasets "
                "differ: the function must make the same one on all of them",
                w, host);
        if (w > 0 && found.components != all[0].components)
            return DTI_FAIL(
                DITTO_ERR_INVALID,
                "the rows of pipeline %u, on host %u, have other components than those of pipeline 0", w,
                host);
        all[w] = found;
        *known = w < *known ? *known : w + 1;
    }
    return DITTO_OK;
}

/* The state of host 0 counts, because hosts may have read it from different files. */
static ditto_status take_state(const struct dti_gathered *from_host_0, struct dti_input_plan *plan)
{
    struct summaries_head head;
    memcpy(&head, from_host_0->data, sizeof head);
    if (plan->state == NULL)
        return DITTO_OK;
    plan->state_of_host_0 = malloc(head.state_bytes);
    if (plan->state_of_host_0 == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a state of %llu bytes",
                        (unsigned long long)head.state_bytes);
    memcpy(plan->state_of_host_0,
           from_host_0->data + sizeof head + head.count * sizeof(struct dti_pipeline_summary),
           head.state_bytes);
    plan->state = plan->state_of_host_0;
    plan->state_bytes = head.state_bytes;
    return DITTO_OK;
}

static ditto_status give(struct dti_team *team, const struct dti_input_plan *plan, uint64_t digest,
                         const struct dti_pipeline_summary *own, const struct dti_gathered **out)
{
    struct dti_cross_request request = { "ditto_strategy_iterate", "a dataset", digest };
    struct summaries_head head = { plan->first_pipeline, plan->local_pipelines, 0 };
    struct dti_bytes given = { 0 };
    if (dti_cross_host(team) == 0)
        head.state_bytes = plan->state_bytes;
    dti_bytes_put(&given, &head, sizeof head);
    dti_bytes_put(&given, own, head.count * sizeof *own);
    dti_bytes_put(&given, plan->state, head.state_bytes);
    ditto_status status = dti_bytes_status(&given);
    if (status == DITTO_OK)
        status = dti_cross_gather(team, &request, given.data, given.length, out);
    dti_bytes_free(&given);
    return status;
}

static ditto_status exchange(struct dti_team *team, struct dti_input_plan *plan, uint64_t digest,
                             struct dti_pipeline_summary *all)
{
    const struct dti_gathered *gathered;
    uint32_t known = 0;
    ditto_status status = give(team, plan, digest, &all[plan->first_pipeline], &gathered);
    for (uint32_t h = 0; status == DITTO_OK && h < dti_cross_hosts(team); h++)
        status = take_over(&gathered[h], h, &known, all);
    return status == DITTO_OK ? take_state(&gathered[0], plan) : status;
}

ditto_status dti_pipelines_agree(struct dti_team *team, ditto_dataset *const *dataset,
                                 struct dti_input_plan *plan, struct dti_pipeline_summary **out)
{
    if (dti_plan_needs_hosts(team, plan) && !dti_cross_has_life_line(team))
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "%u pipelines read different rows, so hosts must tell each other over the life line which "
            "steps exist, and this cluster has none: allow it (ditto_cluster_options.life_line), or use "
            "DITTO_SHARD_DATA or one pipeline",
            plan->pipelines);
    struct dti_pipeline_summary *all = calloc(plan->pipelines, sizeof *all);
    if (all == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u pipelines", plan->pipelines);
    ditto_status status = DITTO_OK;
    for (uint32_t i = 0; i < plan->local_pipelines && status == DITTO_OK; i++) {
        struct dti_pipeline_summary *own = &all[plan->first_pipeline + i];
        if (i > 0 && dataset[i] == dataset[i - 1])
            *own = own[-1];
        else
            status = summarize(dataset[i], own);
    }
    if (status == DITTO_OK && dti_cross_has_hosts(team))
        status = exchange(team, plan, digest_of(plan, &all[plan->first_pipeline]), all);
    if (status != DITTO_OK) {
        free(all);
        return status;
    }
    /* With a function, the queues have room for the largest batches. */
    for (uint32_t w = 0; plan->from_function && w < plan->pipelines; w++)
        plan->global = all[w].batch_rows > plan->global ? all[w].batch_rows : plan->global;
    *out = all;
    return DITTO_OK;
}
