/* src/input/dataset.c - the life of a dataset: counted references along a chain of inputs. */
#include "input/input.h"

#include <stdlib.h>
#include <string.h>

void *dti_dataset_new(size_t bytes, const struct dti_dataset_kind *kind, ditto_dataset *input)
{
    ditto_dataset *d = calloc(1, bytes);
    if (d == NULL) {
        DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a dataset");
        return NULL;
    }
    atomic_init(&d->references, 1);
    d->kind = kind;
    d->input = input;
    d->source = d;
    if (input != NULL) {
        /* relaxed: whoever takes a reference has one, or the right to use the handle */
        atomic_fetch_add_explicit(&input->references, 1, memory_order_relaxed);
        d->source = input->source;
        d->components = input->components;
        memcpy(d->component, input->component, sizeof d->component);
        d->batch_rows = input->batch_rows;
        d->drop_remainder = input->drop_remainder;
        d->infinite = input->infinite;
    }
    return d;
}

void dti_dataset_release(ditto_dataset *d)
{
    while (d != NULL) {
        /* acq_rel: release gives up what this thread did with it, acquire takes over what others did, before freeing */
        if (atomic_fetch_sub_explicit(&d->references, 1, memory_order_acq_rel) != 1)
            return;
        ditto_dataset *input = d->input;
        if (d->kind->free != NULL)
            d->kind->free(d);
        free(d);
        d = input;
    }
}
