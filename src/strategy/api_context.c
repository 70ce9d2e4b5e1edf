/* src/strategy/api_context.c - the functions of include/ditto/context.h. */
#include "replicas/team/turn.h"
#include "strategy/strategy.h"
#include "vars/vars.h"

#include <ditto/context.h>

/* Returns the team of the scope, run or iterator that the thread is in. Returns NULL outside of all of them,
 * and for an iterator whose strategy was destroyed. */
static const struct dti_team *current_team(void)
{
    return dti_this_thread()->frame != NULL ? dti_this_thread()->frame->team : NULL;
}

ditto_strategy *ditto_get_strategy(void)
{
    DTI_ENTER();
    ditto_strategy *strategy;
    const struct dti_team *team = current_team();
    if (team != NULL)
        return dti_team_strategy(team);
    return dti_default_strategy(&strategy) == DITTO_OK ? strategy : NULL;
}

ditto_replica *ditto_get_replica_context(void)
{
    DTI_ENTER();
    const struct dti_frame *top = dti_this_thread()->frame;
    if (top == NULL) {
        const struct dti_replica *plain = dti_default_replica();
        return plain != NULL ? (ditto_replica *)(uintptr_t)dti_this_thread()->plain_self : NULL;
    }
    return top->kind == DTI_CONTEXT_REPLICA ? (ditto_replica *)(uintptr_t)top->self : NULL;
}

static ditto_context_kind kind_of(const struct dti_frame *top)
{
    if (top == NULL || top->kind == DTI_CONTEXT_REPLICA)
        return DITTO_CONTEXT_REPLICA;
    return top->kind == DTI_CONTEXT_CROSS    ? DITTO_CONTEXT_CROSS_REPLICA
           : top->kind == DTI_CONTEXT_UPDATE ? DITTO_CONTEXT_UPDATE
                                             : DITTO_CONTEXT_NONE;
}

ditto_status ditto_get_context(ditto_context *out)
{
    DTI_ENTER();
    DTI_TRY(dti_result_check(out, "ditto_context"));
    const struct dti_team *team = current_team();
    ditto_context found = { .kind = kind_of(dti_this_thread()->frame),
                            .has_strategy = team != NULL && !dti_is_default(dti_team_strategy(team)),
                            .update_replica = DITTO_NO_REPLICA };
    if (found.kind == DITTO_CONTEXT_UPDATE)
        found.update_replica = dti_this_thread()->frame->replica->id;
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

ditto_status ditto_set_default(ditto_strategy *strategy)
{
    DTI_ENTER();
    if (strategy == NULL)
        return dti_scope_clear_standing();
    /* DTI_HOLD_STRATEGY would not enter the gate inside a scope of the strategy. But this function may end
     * that scope. */
    DTI_LEAVES_GATE(held, NULL);
    (void)dti_team_hold(dti_team_of(strategy), dti_team_gate(dti_team_of(strategy)), &held);
    DTI_TRY(dti_team_check_usable(strategy->base.team));
    DTI_TRY(dti_scope_clear_standing());
    return dti_scope_enter(strategy, true);
}
