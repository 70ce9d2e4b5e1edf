/* src/input/distribute/rebatch.h - which steps there are, and how the rows of a step are shared out over the
 * replicas. Pure. Rules: docs/semantics.md, "Datasets". */
#ifndef DTI_REBATCH_H
#define DTI_REBATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Whose rows the steps of a pipeline are made of. */
enum dti_arrangement {
    /* All pipelines choose the same rows, G in each step, and each pipeline delivers the part of its own
     * replicas. */
    DTI_CUT_SHARED,

    /* Every pipeline chooses rows of its own. It goes through the list of the sizes of all N replicas, R
     * sizes in each step, and begins with the sizes of its own replicas. */
    DTI_CUT_OWN,

    /* Every pipeline chooses rows of its own, and every replica gets `global` rows in each step. */
    DTI_CUT_EACH,
};

/* What becomes of a step for which a pipeline has too few rows. */
enum dti_short_step {
    /* The step is delivered with the rows that are there. */
    DTI_SHORT_DELIVERED,

    /* The step is dropped at the end of the input. In front of an error of the input it is delivered. */
    DTI_SHORT_DROPPED,

    /* The step is dropped, in front of an error too, and with it every later step of all pipelines. */
    DTI_SHORT_NEVER,
};

/* How one of several pipelines cuts its rows. */
struct dti_cut {
    uint64_t global;    /* G: rows of a step of all pipelines together; with DTI_CUT_EACH: of one replica */
    uint32_t pipelines; /* W */
    uint32_t pipeline;  /* w */
    uint32_t replicas;  /* R: of each pipeline */
    enum dti_arrangement arrangement;
    enum dti_short_step shorts;
    bool even; /* a step that lacks rows is shared out evenly, not filled up from replica 0 */
};

/* Rows of replica r in a full step of `global` rows over n replicas: floor(global / n), the first global mod n one more. */
uint64_t dti_rebatch_full(uint64_t global, uint32_t n, uint32_t r);

/* Rows of the pipeline's own replica j in a full step. */
uint64_t dti_cut_full(const struct dti_cut *cut, uint64_t step, uint32_t j);

/* Rows that the pipeline chooses for a full step. With DTI_CUT_OWN it is 0 in some steps where G < N. */
uint64_t dti_cut_step(const struct dti_cut *cut, uint64_t step);

/* The most rows that the pipeline chooses for a step, and the most that one replica gets. With DTI_CUT_EACH R
 * * global may overflow: UINT64_MAX. Raising RANGE is left to the caller. */
uint64_t dti_cut_most_of_step(const struct dti_cut *cut);
uint64_t dti_cut_most_of_batch(const struct dti_cut *cut);

/* Of `rows` rows that the pipeline has chosen for a step: the number of the first one of its own replica j,
 * from 0 on. The rows of replica j end where those of replica j + 1 begin. */
uint64_t dti_cut_before(const struct dti_cut *cut, uint64_t step, uint64_t rows, uint32_t j);

/* Whether the step exists on the account of this pipeline.
 *   want, got  rows of a full step, and rows that the input had for it
 *   failed     reading the input has failed
 *   more       the input has rows behind the step. It only counts where want is 0, and not with
 *              DTI_SHORT_NEVER */
bool dti_cut_exists(const struct dti_cut *cut, uint64_t want, uint64_t got, bool failed, bool more);

/* What a pipeline's replicas get in a step, by what is known of all pipelines. */
enum dti_step_existence {
    DTI_STEP_EXISTENCE_UNKNOWN, /* some pipelines have to come to this step first */
    DTI_STEP_EXISTS_WITH_ROWS,  /* the step exists, and the pipeline has cut it */
    DTI_STEP_EXISTS_EMPTY,      /* the step exists because others have rows for it: batches of 0 rows */
    DTI_STEP_EXISTS_NOT,        /* the step does not exist: the end */
};

/* Of `pipelines` pipelines, `with` have cut the step and `without` have ended before it.
 *   own          this pipeline has cut it
 *   all_or_none  a step exists if all pipelines have cut it (DTI_SHORT_NEVER), else if any has. Whether it
 *                exists is said when all have come to it: one of them may come to an error there */
enum dti_step_existence dti_cut_existence(bool all_or_none, uint32_t pipelines, uint32_t with,
                                          uint32_t without, bool own);

#endif
