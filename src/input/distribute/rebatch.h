/* src/input/distribute/rebatch.h - how a step's rows are shared out over the replicas. Pure. Rules: docs/semantics.md, "Datasets". */
#ifndef DTI_REBATCH_H
#define DTI_REBATCH_H

#include <stdbool.h>
#include <stdint.h>

/* How one of several pipelines cuts its rows. */
struct dti_cut {
    uint64_t global;    /* G: rows of a step of all pipelines together; with `each`: of one replica */
    uint32_t pipelines; /* W */
    uint32_t pipeline;  /* w */
    uint32_t replicas;  /* R: of each pipeline */
    bool even;          /* a step that lacks rows is shared out evenly, not filled up from replica 0 */
    bool each;          /* no rebatching: every replica gets `global` rows */
};

/* Rows of replica r in a full step of `global` rows over n replicas: floor(global / n), the first global mod n one more. */
uint64_t dti_rebatch_full(uint64_t global, uint32_t n, uint32_t r);

/* Rows of the pipeline's own replica j in a full step: pipeline w goes through the W * R sizes from place w * R on, R a step. */
uint64_t dti_cut_full(const struct dti_cut *cut, uint64_t step, uint32_t j);
/* Rows of the pipeline in a full step; of its largest step, and of its largest batch. RANGE is the caller's: with `each`, R * global may
 * overflow, then UINT64_MAX. */
uint64_t dti_cut_step(const struct dti_cut *cut, uint64_t step);
uint64_t dti_cut_most_of_step(const struct dti_cut *cut);
uint64_t dti_cut_most_of_batch(const struct dti_cut *cut);
/* Of a step that has only `rows`: how many are for replicas below j. dti_cut_before(j + 1) - dti_cut_before(j) are for replica j. */
uint64_t dti_cut_before(const struct dti_cut *cut, uint64_t step, uint64_t rows, uint32_t j);

#endif
