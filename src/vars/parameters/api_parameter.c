/* src/vars/parameters/api_parameter.c - the public functions of include/ditto/parameter.h. They check their
 * arguments and the context. */
#include "vars/parameters/parameter.h"

#include <ditto/parameter.h>

static ditto_status check_parameter(const ditto_variable *v)
{
    if (v->shard != NULL)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_INVALID,
                    "\"%s\" is no parameter: its strategy is not of kind DITTO_PARAMETER_SERVER, so read it "
                    "with ditto_read",
                    v->name);
}

ditto_status ditto_pull(ditto_replica *self, const ditto_variable *variable,
                        const ditto_pull_options *options, void *dst)
{
    ditto_pull_options known;
    DTI_ENTER();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_USE_OWN_VARIABLE(r, variable);
    DTI_TRY(check_parameter(variable));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_pull_options"));
    DTI_TRY(dti_buffer_check(dst, variable->bytes, variable->spec.dtype, "dst"));
    dti_parameter_read(variable, dst, known.versions);
    return DITTO_OK;
}

ditto_status ditto_parameter_versions(const ditto_variable *variable, uint64_t *versions, size_t capacity)
{
    DTI_ENTER();
    DTI_HOLD_VARIABLE(variable);
    DTI_TRY(check_parameter(variable));
    if (capacity > 0)
        DTI_TRY(dti_not_null(versions, "versions"));
    for (uint32_t i = 0; i < variable->pieces && i < capacity; i++)
        versions[i] = dti_shard_version(variable, i);
    return DITTO_OK;
}
