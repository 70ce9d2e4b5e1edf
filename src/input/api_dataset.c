/* src/input/api_dataset.c - the functions of include/ditto/dataset.h, which check their arguments. */
#include "base/errors/status.h"
#include "base/types/types.h"
#include "input/dataset.h"

#include <string.h>

ditto_status ditto_dataset_spec(const ditto_dataset *dataset, ditto_element_spec *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(dataset, "dataset"));
    DTI_TRY(dti_not_null(out, "out"));
    memset(out, 0, sizeof *out);
    out->num_components = dataset->components;
    dti_row_tensors(dataset, (void *[DITTO_MAX_COMPONENTS]){ NULL }, out->component);
    out->batch = dataset->batch_rows;
    out->infinite = dataset->infinite;
    return DITTO_OK;
}

ditto_status ditto_dataset_reduce(ditto_dataset *dataset, ditto_reduce_fn function, void *user, uint64_t pass)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(dataset, "dataset"));
    if (function == NULL)
        return dti_fail_null("function");
    return dti_reduce(dataset, function, user, pass);
}

ditto_status ditto_dataset_destroy(ditto_dataset *dataset)
{
    DTI_UNCANCELLED();
    dti_dataset_release(dataset);
    return DITTO_OK;
}
