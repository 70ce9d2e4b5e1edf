/* src/input/distribute/rebatch.h - decides which steps exist and how the rows of a step are divided among the
 * replicas. All functions are pure. docs/semantics.md, "Datasets", has the rules. */
#ifndef DTI_REBATCH_H
#define DTI_REBATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Which rows the steps of a pipeline consist of. */
enum dti_arrangement {
    /* All pipelines choose the same rows, G in each step. Each pipeline delivers the rows of its own
     * replicas. */
    DTI_CUT_SHARED,

    /* Every pipeline chooses its own rows. It cycles through the list of the sizes of all N replicas, R sizes
     * in each step, and begins with the sizes of its own replicas. */
    DTI_CUT_OWN,

    /* Every pipeline chooses its own rows, and every replica gets `global` rows in each step. */
    DTI_CUT_EACH,
};

/* What happens to a step for which a pipeline has too few rows. */
enum dti_short_step {
    /* The step is delivered with the rows that are there. */
    DTI_SHORT_DELIVERED,

    /* The step is dropped at the end of the input. If an error of the input follows it, it is delivered. */
    DTI_SHORT_DROPPED,

    /* The step and all later steps of all pipelines are dropped, even if an error of the input follows. */
    DTI_SHORT_NEVER,
};

/* How a pipeline cuts its rows into steps. */
struct dti_cut {
    /* G, the rows of a step of all pipelines together. With DTI_CUT_EACH, the rows of one replica. */
    uint64_t global;
    uint32_t pipelines; /* W */
    uint32_t pipeline;  /* w */
    uint32_t replicas;  /* R, of each pipeline */
    enum dti_arrangement arrangement;
    enum dti_short_step shorts;

    /* True if the rows of a short step are divided evenly. If false, each replica gets as many as in a full
     * step, in the order of the replicas, until none are left. */
    bool even;
};

/* Returns the rows of replica r in a full step of `global` rows over n replicas: floor(global / n), and one
 * more for the first global mod n replicas. */
uint64_t dti_rebatch_full(uint64_t global, uint32_t n, uint32_t r);

/* Returns the rows of the pipeline's own replica j in a full step. */
uint64_t dti_cut_full(const struct dti_cut *cut, uint64_t step, uint32_t j);

/* Returns the rows that the pipeline chooses for a full step. With DTI_CUT_OWN and G < N this may be 0 in
 * some steps. */
uint64_t dti_cut_step(const struct dti_cut *cut, uint64_t step);

/* The first function returns the most rows that the pipeline chooses for a step, and the second the most rows
 * that one replica gets. With DTI_CUT_EACH, R * global may overflow. The first result is then UINT64_MAX, and
 * creating the iterator fails. */
uint64_t dti_cut_most_of_step(const struct dti_cut *cut);
uint64_t dti_cut_most_of_batch(const struct dti_cut *cut);

/* The pipeline has chosen `rows` rows for a step. Returns the number, from 0 on, of the first row of its own
 * replica j. The rows of replica j end where those of replica j + 1 begin. */
uint64_t dti_cut_before(const struct dti_cut *cut, uint64_t step, uint64_t rows, uint32_t j);

/* Returns true if the step exists because of this pipeline.
 *   want    the rows of a full step
 *   got     the rows that the input had for it
 *   failed  the input has an error after these rows
 *   more    the input has rows after the step, which matters only if want is 0, and not with
 *           DTI_SHORT_NEVER */
bool dti_cut_exists(const struct dti_cut *cut, uint64_t want, uint64_t got, bool failed, bool more);

/* What a pipeline's replicas get in a step, as far as the progress of all pipelines decides it. */
enum dti_step_existence {
    /* Some pipelines have not reached the step. */
    DTI_STEP_EXISTENCE_UNKNOWN,

    /* The step exists, and the pipeline has cut it. */
    DTI_STEP_EXISTS_WITH_ROWS,

    /* The step exists because other pipelines have rows for it. The replicas get batches of 0 rows. */
    DTI_STEP_EXISTS_EMPTY,

    /* The step does not exist. The replicas have come to the end. */
    DTI_STEP_EXISTS_NOT,
};

/* Decides whether a step exists. Of `pipelines` pipelines, `with` have cut it and `without` have ended before
 * it.
 *   own          this pipeline has cut it
 *   all_or_none  all pipelines must have cut the step, otherwise one is enough (true for DTI_SHORT_NEVER).
 *                If it is true, the result is unknown until all have reached the step, because one of them
 *                may reach an error there */
enum dti_step_existence dti_cut_existence(bool all_or_none, uint32_t pipelines, uint32_t with,
                                          uint32_t without, bool own);

#endif
