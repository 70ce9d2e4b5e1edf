/* src/strategy/merge/create_variable.c - ditto_create_variable, in which all replicas of a run create one
 * variable. See include/ditto/variable.h. */
#include "strategy/merge/merge.h"
#include "strategy/strategy.h"
#include "values/values.h"
#include "vars/vars.h"

#include <string.h>

/* The arguments of the first replica of this host. */
struct creating {
    const ditto_tensor *initial;
    const ditto_variable_options *options;
};

/* Checks that all replicas create the same variable. Their initial values may differ, because that of the
 * first replica is used. */
static ditto_status check_alike(const ditto_strategy *strategy)
{
    const struct dti_merge_part *part = strategy->merging;
    char theirs[DTI_SPEC_TEXT_BYTES], first[DTI_SPEC_TEXT_BYTES];
    uint32_t first_replica = dti_team_first_replica(strategy->base.team);
    for (uint32_t i = 1; i < strategy->base.num_replicas; i++) {
        bool same_name = strcmp(part[i].name, part[0].name) == 0;
        if (same_name && dti_spec_equal(part[i].arguments, part[0].arguments))
            continue;
        dti_spec_text(part[i].arguments, theirs);
        dti_spec_text(part[0].arguments, first);
        return DTI_FAIL(DITTO_ERR_DIVERGED,
                        "replica %u creates the variable \"%s\"%s%s, replica %u creates \"%s\"%s%s: all "
                        "replicas must create the same variables in the same order",
                        first_replica + i, part[i].name, same_name ? ", " : "", same_name ? theirs : "",
                        first_replica, part[0].name, same_name ? ", " : "", same_name ? first : "");
    }
    return DITTO_OK;
}

/* A merge function. */
static ditto_status create(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                           void *user, ditto_value **result)
{
    const struct creating *c = user;
    ditto_variable *variable;
    (void)arguments;
    (void)count;
    DTI_TRY(check_alike(strategy));
    DTI_TRY(DTI_OWN(ditto_variable_create(strategy, c->initial, c->options, &variable)));
    ditto_status status = dti_value_make_variable(strategy, variable, result);
    if (status != DITTO_OK)
        (void)DTI_OWN(ditto_variable_destroy(variable));
    return status;
}

ditto_status ditto_create_variable(ditto_replica *self, const ditto_tensor *initial,
                                   const ditto_variable_options *options, ditto_variable **out)
{
    ditto_variable_options known; /* a copy, because options may be NULL, and the name is read below */
    struct creating creating = { initial, &known };
    struct dti_merge merge = { "ditto_create_variable", create, &creating, 0, false, NULL };
    const ditto_value *made;
    size_t bytes;
    DTI_ENTER();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_TRY(dti_not_null(initial, "initial"));
    DTI_TRY(dti_tensor_check(initial, &bytes));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_variable_options"));
    known.struct_size = sizeof known;
    /* Outside of runs the replica is that of the default strategy, so there is nothing to compare. */
    if (dti_current_run_call() != NULL)
        dti_team_strategy(r->team)->merging[r->index].name = dti_variable_name(&known);
    DTI_TRY(dti_merge_call(r, &merge, initial, &made));
    *out = made->variable;
    return DITTO_OK;
}
