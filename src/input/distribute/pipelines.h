/* src/input/distribute/pipelines.h - which pipelines there are, on which hosts, and what all hosts know of
 * them. */
#ifndef DTI_PIPELINES_H
#define DTI_PIPELINES_H

#include <ditto/distribute.h>

#include "input/dataset.h"
#include "input/distribute/rebatch.h"

#include <stdbool.h>

struct dti_team;

/* How several pipelines share one dataset. Saved states contain these numbers. */
enum dti_sharing {
    /* Every pipeline reads all of its dataset. Also used if there is one pipeline. */
    DTI_SHARING_NONE = 0,

    /* Every pipeline reads its own files. */
    DTI_SHARING_FILES = 1,

    /* All pipelines choose the same rows, and each delivers those of its replicas. */
    DTI_SHARING_ROWS = 2,
};

/* The caller's options, with all defaults replaced by values, and what follows from them. */
struct dti_input_plan {
    /* G. With from_function, the largest number of rows of a replica's batch. */
    uint64_t global;
    uint64_t pass, max_bytes;
    uint32_t pipelines;
    uint32_t replicas_each; /* of each pipeline, on all hosts */

    /* The pipelines that serve replicas of this host. */
    uint32_t first_pipeline, local_pipelines;
    uint32_t slots;     /* of each ring */
    uint32_t producers; /* of each pipeline */
    enum dti_sharing sharing;

    /* True if the rows of an incomplete step are divided evenly (DITTO_PARTIAL_EVEN). */
    bool even;

    /* True if the datasets come from a function, and their batches are those of one replica
     * (DTI_CUT_EACH). */
    bool from_function;

    bool is_static, host_memory; /* flags of the options */
    const void *state;
    size_t state_bytes;
    void *state_of_host_0;   /* set by dti_pipelines_agree over several hosts. Its caller frees it */
    uint32_t state_replicas; /* number of replicas of the iterator that saved the state */
};

/* What is known of each pipeline on all hosts. Its bytes are sent. */
struct dti_pipeline_summary {
    uint64_t fingerprint; /* of its dataset */
    uint64_t components;  /* a hash of their dtypes and shapes */
    uint64_t batch_rows;
    uint32_t is_infinite;
    uint32_t drops_remainder;
};

/* Returns how a pipeline cuts its rows into steps. */
struct dti_cut dti_pipeline_cut(const struct dti_input_plan *plan, const struct dti_pipeline_summary *summary,
                                uint32_t pipeline);

/* Returns true if all replicas get equally many rows of a full step, because N divides G. */
bool dti_plan_is_equal(const struct dti_input_plan *plan);

/* Returns true if the progress of pipelines of other hosts decides which steps exist on this host. False if
 * pipelines share rows, or all have equally many. */
bool dti_plan_needs_hosts(const struct dti_team *team, const struct dti_input_plan *plan);

/* Sets *out to the summaries of all pipelines. `dataset` are those of this host. Over several hosts, all of
 * them call it: it compares their plans, and gives each host's summaries, and the state of host 0, to all.
 * Sets plan->global if datasets come from a function. The caller frees *out. Returns DIVERGED if hosts
 * differ, INVALID if rows of two pipelines have other components, UNSUPPORTED if a life line is missing,
 * NO_MEMORY, and the errors of dti_cross_gather. */
ditto_status dti_pipelines_agree(struct dti_team *team, ditto_dataset *const *dataset,
                                 struct dti_input_plan *plan, struct dti_pipeline_summary **out);

/* Returns the number of producers of each pipeline if the program has not set it, for `pipelines` pipelines
 * on this host. */
uint32_t dti_producers_default(const struct dti_team *team, uint32_t pipelines);

/* -- input_plan.c -- */

/* Makes the plan for one dataset. On success sets *datasets to an array [plan->local_pipelines] with the
 * dataset of each pipeline of this host. The caller owns the array and its references. */
ditto_status dti_input_plan_distribute(const struct dti_team *team, ditto_dataset *dataset,
                                       const ditto_input_options *options, struct dti_input_plan *plan,
                                       ditto_dataset ***datasets);

/* The same for datasets that a function makes. */
ditto_status dti_input_plan_from_function(const struct dti_team *team, ditto_dataset_fn function, void *user,
                                          const ditto_input_options *options, struct dti_input_plan *plan,
                                          ditto_dataset ***datasets);

#endif
