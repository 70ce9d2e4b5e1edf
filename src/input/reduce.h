/* src/input/reduce.h - going through a dataset on the calling thread. */
#ifndef DTI_INPUT_REDUCE_H
#define DTI_INPUT_REDUCE_H

#include "input/dataset.h"

ditto_status dti_reduce(ditto_dataset *dataset, ditto_reduce_fn function, void *state, uint64_t pass);

#endif
