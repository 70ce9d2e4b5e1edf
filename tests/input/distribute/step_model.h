/* tests/input/distribute/step_model.h - computes which rows each replica gets in which step, only from the
 * rules of docs/semantics.md (9.1 to 9.4 and 9.6). Tests compare the library with it. */
#ifndef STEP_MODEL_H
#define STEP_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum { MOST_REPLICAS = 64 };

/* What happens to the last, partial step. */
enum last_step { LAST_FILLED, LAST_EVEN, LAST_STATIC, LAST_DROPPED, LAST_STEPS };

struct steps {
    /* -- the case, set by the caller -- */
    uint64_t global;              /* G */
    uint32_t replicas, pipelines; /* N, W */

    /* True if the pipelines share the rows of one input (DATA, or one pipeline). Otherwise each has its own
     * input. */
    bool shared;
    enum last_step last;

    /* The rows of the input of each pipeline. If `shared`, only the first is used. */
    uint64_t length[MOST_REPLICAS];

    /* -- the current step -- */
    uint64_t step;

    /* The rows of each pipeline's input that come before those of the next step. */
    uint64_t given[MOST_REPLICAS];

    /* The number of each replica's first row in the input of its pipeline. */
    uint64_t first[MOST_REPLICAS];
    uint64_t count[MOST_REPLICAS]; /* rows of each replica */
};

/* begin_steps sets the position in front of the first step. With LAST_DROPPED it also shortens the lengths to
 * multiples of G. next_step goes to the next step, and returns false if there is none. */
void begin_steps(struct steps *steps);
bool next_step(struct steps *steps);

#endif
