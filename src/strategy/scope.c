/* src/strategy/scope.c - enters and leaves a strategy's scope on the calling thread. */
#include "replicas/machine/affinity.h"
#include "replicas/team/turn.h"
#include "strategy/strategy.h"

#include <stdlib.h>

static bool is_own_scope(const struct dti_frame *top, const struct dti_team *team)
{
    return top != NULL && top->kind == DTI_CONTEXT_CROSS && top->team == team && top->scope_depth > 0;
}

/* Returns true if ditto_set_default has entered the scope. ditto_strategy_scope_leave refuses to end such a
 * scope. */
static bool is_standing(const struct dti_frame *top)
{
    return top != NULL && top->standing;
}

/* -- threads that end while they have a standing scope -- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_thread_end;

static void end_standing(void *unused)
{
    (void)unused;
    while (is_standing(dti_this_thread()->frame))
        dti_frame_end_scope();
}

static void make_key(void)
{
    /* If this fails, a standing scope stays entered when its thread ends, like a scope that is never left. */
    pthread_key_create(&at_thread_end, end_standing);
}

static void watch_thread_end(void)
{
    pthread_once(&once, make_key);
    pthread_setspecific(at_thread_end, &once); /* any pointer except NULL will do */
}

static ditto_status pin(const struct dti_team *team, struct dti_frame *frame, bool *pinned)
{
    *pinned = dti_team_options(team)->pin && !dti_team_options(team)->caller_waits;
    if (!*pinned)
        return DITTO_OK;
    return dti_pin_if_allowed(&dti_team_replica(team, 0)->mask, &frame->saved, pinned);
}

ditto_status dti_scope_enter(ditto_strategy *strategy, bool standing)
{
    struct dti_team *team = strategy->base.team;
    DTI_TRY(dti_context_check_scope(team));
    DTI_TRY(dti_team_check_usable(team));
    if (is_own_scope(dti_this_thread()->frame, team)) {
        dti_this_thread()->frame->scope_depth++;
        return DITTO_OK;
    }
    bool pinned;
    struct dti_frame *frame = calloc(1, sizeof *frame);
    if (frame == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a scope");
    ditto_status status = pin(team, frame, &pinned);
    if (status != DITTO_OK) {
        free(frame);
        return status;
    }
    dti_team_scope_entered(team);
    dti_frame_push_cross(frame, team);
    frame->is_scope = true;
    frame->scope_depth = 1;
    frame->standing = standing;
    frame->pinned = pinned;
    if (standing)
        watch_thread_end();
    return DITTO_OK;
}

ditto_status dti_scope_leave(ditto_strategy *strategy)
{
    struct dti_frame *top = dti_this_thread()->frame;
    if (!is_own_scope(top, strategy->base.team))
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "this strategy's scope is not the one entered last on this thread: leave scopes in "
                        "the opposite order of entering, on the same thread");
    if (top->scope_depth == 1 && (top->standing || top->merges))
        return DTI_FAIL(DITTO_ERR_CONTEXT, "this scope was not entered with ditto_strategy_scope_enter: %s",
                        top->merges ? "it ends with the merge function" : "ditto_set_default(NULL) ends it");
    if (--top->scope_depth == 0)
        dti_frame_end_scope();
    return DITTO_OK;
}

ditto_status dti_scope_clear_standing(void)
{
    struct dti_frame *top = dti_this_thread()->frame;
    if (top == NULL)
        return DITTO_OK;
    if (!is_standing(top) || top->scope_depth != 1)
        return DTI_FAIL(DITTO_ERR_CONTEXT, "the default can only be set outside of scopes and runs: %s",
                        dti_context_exit_hint(top));
    dti_frame_end_scope();
    return DITTO_OK;
}

void dti_scope_forget(const struct dti_team *team)
{
    /* A merge function is in a scope too (is_own_scope), but its frame is on a stack and is not counted. */
    while (is_own_scope(dti_this_thread()->frame, team) && dti_this_thread()->frame->is_scope)
        dti_frame_end_scope();
}
