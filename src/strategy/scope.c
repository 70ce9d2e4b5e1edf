/* src/strategy/scope.c - entering and leaving a strategy's scope on the calling thread. */
#include "strategy/strategy.h"

#include <stdlib.h>

static bool is_own_scope(const struct dti_frame *top, const struct dti_team *team)
{
    return top != NULL && top->kind == DTI_CONTEXT_CROSS && top->team == team && top->entries > 0;
}

ditto_status dti_scope_enter(ditto_strategy *strategy)
{
    struct dti_team *team = strategy->base.team;
    DTI_TRY(dti_context_check_cross(team));
    if (dti_team_forked(team))
        return dti_fail_forked();
    if (team->poisoned)
        return DTI_FAIL(DITTO_ERR_POISONED, "an earlier run left a replica that never returned: destroy the strategy");
    if (is_own_scope(dti_frame_top, team)) {
        dti_frame_top->entries++;
        return DITTO_OK;
    }
    struct dti_frame *frame = calloc(1, sizeof *frame);
    if (frame == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a scope");
    *frame = (struct dti_frame){ .kind = DTI_CONTEXT_CROSS, .team = team, .entries = 1 };
    if (team->options.pin && !team->options.caller_waits) {
        ditto_status status = dti_affinity_get(&frame->saved);
        if (status == DITTO_OK)
            status = dti_pin_to(&team->replica[0].mask);
        if (status != DITTO_OK) {
            free(frame);
            return status;
        }
        frame->pinned = true;
    }
    /* relaxed: see dti_strategy_destroy */
    atomic_fetch_add_explicit(&strategy->scopes, 1, memory_order_relaxed);
    dti_frame_push(frame);
    return DITTO_OK;
}

ditto_status dti_scope_leave(ditto_strategy *strategy)
{
    struct dti_frame *top = dti_frame_top;
    if (!is_own_scope(top, strategy->base.team))
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "this strategy's scope is not the one entered last on this thread: leave scopes in "
                        "the opposite order of entering, on the same thread");
    if (--top->entries > 0)
        return DITTO_OK;
    dti_frame_pop(top);
    if (top->pinned)
        dti_affinity_restore(&top->saved);
    atomic_fetch_sub_explicit(&strategy->scopes, 1, memory_order_relaxed); /* see dti_strategy_destroy */
    free(top);
    return DITTO_OK;
}

void dti_scope_forget(const struct dti_team *team)
{
    while (is_own_scope(dti_frame_top, team)) {
        struct dti_frame *top = dti_frame_top;
        dti_frame_pop(top);
        if (top->pinned)
            dti_affinity_restore(&top->saved);
        free(top);
    }
}
