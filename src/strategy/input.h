/* src/strategy/input.h - input as the conductor sees it. */
#ifndef DTI_STRATEGY_INPUT_H
#define DTI_STRATEGY_INPUT_H

#include "strategy/strategy.h"

/* -- Cross context -- */
ditto_status dti_input_next_value(ditto_iterator *iterator, ditto_value **out); /* END_OF_INPUT: *out is not set */
/* Lines about the iterators of a strategy, with its turn taken. */
void dti_input_describe(const struct dti_team *team, struct dti_text *text);

#endif
