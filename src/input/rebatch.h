/* src/input/rebatch.h - how a step's rows are shared out over the replicas. Pure. Rules: docs/semantics.md, section 9. */
#ifndef DTI_REBATCH_H
#define DTI_REBATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Rows of replica r in a full step of `global` rows over n replicas: floor(global / n), the first global mod n one more. */
uint64_t dti_rebatch_full(uint64_t global, uint32_t n, uint32_t r);
/* Rows of replica r in a step that has only `rows` <= global: filled up from replica 0, or shared out evenly. */
uint64_t dti_rebatch_share(uint64_t rows, uint64_t global, uint32_t n, uint32_t r, bool even);

#endif
