/* src/vars/registry/select_variables.c - lists the variables of a strategy and enters their gates; see
 * select_variables.h. */
#include "vars/registry/select_variables.h"
#include "replicas/team/turn.h"
#include "vars/registry/registry.h"
#include "vars/vars.h"

#include <errno.h>
#include <stdlib.h>

static ditto_status list(const struct dti_team *team, ditto_variable *const *chosen, size_t count,
                         ditto_variable **out)
{
    ditto_variable *first = dti_registry_first(team);
    if (chosen == NULL) {
        for (ditto_variable *v = first; v != NULL; v = v->next)
            *out++ = v;
        return DITTO_OK;
    }
    for (size_t i = 0; i < count; i++) {
        const ditto_variable *member = first;
        while (member != NULL && member != chosen[i])
            member = member->next;
        if (member == NULL)
            return DTI_FAIL(DITTO_ERR_CONTEXT, "variables[%zu] does not belong to this strategy", i);
        out[i] = chosen[i];
    }
    return DITTO_OK;
}

/* Enters the gates of the variables. The caller has the turn. The gates are open, because a gate is only shut
 * or closed by a thread that has the turn, and a variable whose gate is closed is no longer in the list. */
static ditto_status hold(ditto_variable *const *variable, size_t count, struct dti_gates *held)
{
    for (size_t i = 0; i < count; i++) {
        struct dti_gate *gate = &variable[i]->dependent.gate;
        if (!dti_gates_reserve(held))
            return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory to hold %zu variables", count);
        (void)dti_gate_enter(gate);
        dti_gates_add(held, gate);
    }
    return DITTO_OK;
}

/* Makes the list of variables. The gates are only entered if `gives_turn_back` is true, because the turn is
 * then given back while the variables are still used. If it is false, an outer call has the turn and keeps
 * it, so no variable can be destroyed meanwhile. */
static ditto_status choose(const struct dti_team *team, ditto_variable *const *chosen, size_t count,
                           bool gives_turn_back, ditto_variable ***out, struct dti_gates *held)
{
    ditto_variable **variable = malloc((count + 1) * sizeof(ditto_variable *));
    if (variable == NULL)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory to list %zu variables", count);
    ditto_status status = list(team, chosen, count, variable);
    if (status == DITTO_OK && gives_turn_back)
        status = hold(variable, count, held);
    if (status == DITTO_OK)
        *out = variable;
    else
        free(variable);
    return status;
}

ditto_status dti_select_variables(ditto_strategy *strategy, ditto_variable *const *chosen,
                                  size_t chosen_count, ditto_variable ***out, size_t *count,
                                  struct dti_gates *held)
{
    struct dti_team *team = dti_team_of(strategy);
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_KEEPS_AFFINITY));
    *count = chosen_count;
    if (chosen == NULL) {
        *count = 0;
        for (const ditto_variable *v = dti_registry_first(team); v != NULL; v = v->next)
            ++*count;
    }
    /* If this call did not take the turn, one around it has, so there is a frame below. A save of a
     * checkpointer, which took the turn itself, gives it back while it still uses the variables, to write the
     * file. */
    bool gives_turn_back = frame.has_turn || frame.below->has_turn;
    ditto_status status = choose(team, chosen, *count, gives_turn_back, out, held);
    dti_cross_leave(team, &frame);
    return status;
}
