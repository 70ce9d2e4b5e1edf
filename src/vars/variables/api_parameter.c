/* src/vars/variables/api_parameter.c - the public functions of include/ditto/parameter.h. They check their
 * arguments and the context. */
#include "vars/parameters/parameter.h"
#include "vars/variables/variable_rows.h"

#include <ditto/parameter.h>

/* Copies the options of a pull, and checks them. */
static ditto_status check(const ditto_variable *v, const ditto_pull_options *options,
                          ditto_pull_options *known)
{
    if (v->shard == NULL)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "\"%s\" is no parameter: its strategy is not of kind DITTO_PARAMETER_SERVER, so read it "
            "with ditto_read",
            v->name);
    DTI_TRY(dti_options_copy(known, sizeof *known, options, "ditto_pull_options"));
    if ((int)known->lock < DITTO_SWITCH_DEFAULT || known->lock > DITTO_SWITCH_OFF)
        return DTI_FAIL(DITTO_ERR_RANGE, "options->lock = %d is not a value of ditto_switch",
                        (int)known->lock);
    if (known->lock == DITTO_SWITCH_OFF && v->concurrency == DITTO_CONCURRENCY_LOCKED)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "options->lock is OFF, but \"%s\" can only be read with its locks: create it with "
                        "DITTO_CONCURRENCY_FREE_READS (a slot of an optimizer always has locks)",
                        v->name);
    if (known->lock == DITTO_SWITCH_ON && v->concurrency == DITTO_CONCURRENCY_HOGWILD)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "options->lock is ON, but \"%s\" has DITTO_CONCURRENCY_HOGWILD and therefore no "
                        "locks: leave the option out, or create it with DITTO_CONCURRENCY_FREE_READS",
                        v->name);
    return DITTO_OK;
}

ditto_status ditto_pull(ditto_replica *self, const ditto_variable *variable,
                        const ditto_pull_options *options, void *dst)
{
    ditto_pull_options known;
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_USE_OWN_VARIABLE(r, variable);
    DTI_TRY(check(variable, options, &known));
    DTI_TRY(dti_buffer_check(dst, variable->bytes, variable->spec.dtype, "dst"));
    struct dti_reading reading = { known.lock == DITTO_SWITCH_OFF, known.versions };
    return dti_parameter_read(variable, dst, &reading);
}

ditto_status ditto_pull_rows(ditto_replica *self, const ditto_variable *variable, const int64_t *indices,
                             size_t count, const ditto_pull_options *options, void *rows)
{
    ditto_pull_options known;
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_USE_OWN_VARIABLE(r, variable);
    DTI_TRY(check(variable, options, &known));
    if (variable->spec.rank == 0)
        return DTI_FAIL(DITTO_ERR_SHAPE, "\"%s\" is a scalar and has no rows", variable->name);
    if (count == 0)
        return DITTO_OK;
    DTI_TRY(dti_buffer_check(indices, sizeof *indices, DITTO_I64, "indices"));
    DTI_TRY(dti_buffer_check(rows, variable->count != 0, variable->spec.dtype, "rows"));
    DTI_TRY(dti_rows_check(variable, indices, count));
    struct dti_reading reading = { known.lock == DITTO_SWITCH_OFF, known.versions };
    return dti_parameter_lookup(variable, indices, count, rows, &reading);
}
