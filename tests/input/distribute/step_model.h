/* tests/input/distribute/step_model.h - which rows each replica gets in which step, worked out from the rules of
 * docs/semantics.md (9.1 to 9.4 and 9.6) alone: what the library is compared with. */
#ifndef STEPS_H
#define STEPS_H

#include <stdbool.h>
#include <stdint.h>

enum { MOST_REPLICAS = 64 };

/* What is done with the last, partial step. */
enum last_step { LAST_FILLED, LAST_EVEN, LAST_STATIC, LAST_DROPPED, LAST_STEPS };

struct steps {
    /* -- What is asked for -- */
    uint64_t global;              /* G */
    uint32_t replicas, pipelines; /* N, W */
    bool
        shared; /* the pipelines share the rows of one input (DATA, or one pipeline); else each has its own */
    enum last_step last;
    uint64_t length[MOST_REPLICAS]; /* rows of the input of each pipeline; shared: of the first one's */

    /* -- The step that next_step has come to -- */
    uint64_t step;
    uint64_t given[MOST_REPLICAS]; /* rows of each pipeline's input that come before those of the next step */
    uint64_t first[MOST_REPLICAS]; /* number of each replica's first row in the input of its pipeline */
    uint64_t count[MOST_REPLICAS]; /* rows of each replica */
};

/* Goes to the first step, and to the next one: false when there is none. */
void begin_steps(struct steps *steps);
bool next_step(struct steps *steps);

#endif
