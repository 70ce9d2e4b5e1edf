/* src/replicas/team/context.c - the stack of contexts of each thread, and the errors of calls in a wrong
 * context. See context.h. */
#include "replicas/team/context.h"
#include "replicas/machine/affinity.h"
#include "replicas/team/team_state.h"

#include <stdlib.h>
#include <string.h>

void dti_frame_push(struct dti_frame *frame)
{
    frame->thread = dti_this_thread();
    frame->below = frame->thread->frame;
    frame->thread->frame = frame;
}

void dti_frame_pop(struct dti_frame *frame)
{
    /* A function inside this frame may have left scopes open. */
    struct dti_thread *thread = frame->thread;
    while (thread->frame != frame && thread->frame != NULL && thread->frame->is_scope)
        dti_frame_end_scope();
    thread->frame = frame->below;
}

void dti_frame_end_scope(void)
{
    struct dti_frame *scope = dti_this_thread()->frame;
    dti_this_thread()->frame = scope->below;
    if (scope->pinned)
        dti_affinity_restore(&scope->saved);
    dti_team_scope_left(scope->team); /* the last access to the team */
    free(scope);
}

/* Initialises all members except the mask, and except `below`. */
static void fill(struct dti_frame *frame, enum dti_context kind, struct dti_team *team)
{
    frame->kind = kind;
    frame->team = team;
    frame->replica = NULL;
    frame->self = NULL;
    frame->scope_depth = 0;
    frame->device = 0;
    frame->run = NULL;
    frame->object = NULL;
    frame->has_turn = frame->merges = frame->is_scope = frame->standing = frame->pinned = false;
}

void dti_frame_push_cross(struct dti_frame *frame, struct dti_team *team)
{
    fill(frame, DTI_CONTEXT_CROSS, team);
    dti_frame_push(frame);
}

/* The innermost one of this thread, or NULL. */
static _Thread_local const struct dti_same_context *same_top;

void dti_frame_push_same(struct dti_same_context *same, const struct dti_team *team)
{
    const struct dti_frame *top = dti_this_thread()->frame;
    struct dti_frame *frame = &same->frame;
    same->team = team;
    same->outer = same_top;
    same_top = same;
    fill(frame, DTI_CONTEXT_CROSS, NULL);
    if (top == NULL)
        return; /* no frame stands for the context outside all scopes and runs */
    frame->kind = top->kind;
    frame->team = top->team;
    frame->replica = top->replica;
    frame->self = top->self;
    frame->device = top->device;
    frame->run = top->run;
    frame->object = top->object;
    frame->merges = top->merges;
    dti_frame_push(frame);
}

void dti_frame_pop_same(struct dti_same_context *same)
{
    same_top = same->outer;
    if (same->frame.team != NULL) {
        dti_frame_pop(&same->frame);
        return;
    }
    while (dti_this_thread()->frame != NULL && !dti_this_thread()->frame->standing)
        dti_frame_end_scope();
    if (dti_this_thread()->frame != NULL)
        dti_this_thread()->frame->scope_depth = 1; /* it may have been entered again */
}

struct dti_fenv dti_frame_enter(struct dti_frame *frame, enum dti_context kind, struct dti_replica *replica,
                                const ditto_replica *self)
{
    fill(frame, kind, replica->team);
    frame->replica = replica;
    frame->self = self;
    dti_frame_push(frame);
    return replica->team->options.host_floating ? dti_fenv_enter_as(replica->team->host) : dti_fenv_enter();
}

struct dti_fenv dti_frame_enter_input(struct dti_frame *frame, struct dti_team *team)
{
    fill(frame, DTI_CONTEXT_INPUT, team);
    dti_frame_push(frame);
    return dti_fenv_enter();
}

void dti_frame_leave(struct dti_frame *frame, struct dti_fenv saved)
{
    dti_fenv_leave(saved);
    dti_frame_pop(frame);
}

const struct dti_mask *dti_context_saved_mask(void)
{
    const struct dti_mask *saved = NULL; /* that of the lowest frame which has one */
    for (const struct dti_frame *frame = dti_this_thread()->frame; frame != NULL; frame = frame->below)
        if (frame->pinned)
            saved = &frame->saved;
    return saved;
}

bool dti_context_is_of(const struct dti_team *team)
{
    const struct dti_frame *frame = dti_this_thread()->frame;
    const struct dti_same_context *same = same_top;
    while (frame != NULL && frame->team != team)
        frame = frame->below;
    while (same != NULL && same->team != team)
        same = same->outer;
    return frame != NULL || same != NULL;
}

/* Returns true in a child process if the frame's team was created before fork. In input context there may be
 * no team (context.h). */
static bool is_forked(const struct dti_frame *frame)
{
    return frame->team != NULL && dti_team_forked(frame->team);
}

/* Returns true if a frame is in input context. In a child process the answer is false, because the strategy
 * cannot be used there and no thread waits for the thread that forked. */
static bool is_input(const struct dti_frame *frame)
{
    return frame != NULL && frame->kind == DTI_CONTEXT_INPUT && !is_forked(frame);
}

ditto_status dti_self_refuse(const ditto_replica *self, struct dti_replica **out)
{
    const struct dti_frame *top = dti_this_thread()->frame;
    uint32_t owner;
    if (top == NULL && self != NULL && self == dti_this_thread()->plain_self) {
        *out = dti_this_thread()->plain_replica;
        return DITTO_OK;
    }
    if (is_input(top))
        return DTI_FAIL(
            DITTO_ERR_CONTEXT,
            "inside a function of a dataset (a map, a filter or a generator), which does not run on the "
            "thread of a replica: pass what it needs through its user pointer");
    if (self == NULL && top != NULL && top->kind == DTI_CONTEXT_CROSS)
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "self is NULL, as it is in cross-replica context: call this inside run");
    if (self == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "self is NULL: pass the handle that the replica's function was given");
    if (top != NULL && top->kind == DTI_CONTEXT_DEVICE)
        return DTI_FAIL(
            DITTO_ERR_CONTEXT,
            "inside a function of logical device %u of replica %u, where no call takes self and loops do "
            "not nest: let the leader call it outside, and pass what the function needs",
            top->device, top->replica->id);
    if (top != NULL && top->kind == DTI_CONTEXT_UPDATE)
        return DTI_FAIL(
            DITTO_ERR_CONTEXT,
            "inside the function of an update, or in one that initializes a slice, which may only read and "
            "write the copy that it was given: call it outside, and pass what the function needs");
    if (top != NULL && top->merges)
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "inside a merge function, which is in cross-replica context: call the "
                        "ditto_strategy_ and ditto_variable_ forms");
    if (top == NULL || top->kind != DTI_CONTEXT_REPLICA)
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "this thread runs no replica: a handle is valid only on the thread of the function "
                        "that received it, until that function returns");
    if (!dti_team_owns_handle(top->replica->team, self, &owner))
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "the handle belongs to another strategy than this thread, which is replica %u: pass "
                        "the handle that this run's function was given",
                        top->replica->id);
    if (owner != top->replica->index)
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "the handle is another replica's (replica %u's): this thread is replica %u and must "
                        "pass its own",
                        owner, top->replica->id);
    return DTI_FAIL(DITTO_ERR_CONTEXT,
                    "the handle is of an earlier run: use the one that this run's function was given");
}

struct dti_replica *dti_self_refuse_in(const char *function, const ditto_replica *self)
{
    const char *outer = dti_public_enter(function);
    struct dti_replica *plain = NULL;
    (void)!dti_self_refuse(self, &plain);
    dti_public_leave(&outer);
    return plain;
}

/* Returns the name of the function that a replica calls instead of `function`, or NULL if there is none. */
static const char *replica_form(const char *function)
{
    static const char *const forms[][2] = {
        { "ditto_strategy_gather", "ditto_all_gather_tensor" },
        { "ditto_strategy_reduce", "ditto_all_reduce" },
        { "ditto_strategy_reduce_f64", "ditto_all_reduce" },
        { "ditto_strategy_reduce_to", "ditto_reduce_to_root" },
        { "ditto_strategy_broadcast_to", "ditto_broadcast_from_root" },
        { "ditto_strategy_merge_slices", "ditto_all_reduce_slices" },
        { "ditto_variable_create", "ditto_create_variable" },
        { "ditto_variable_read", "ditto_read (of a parameter ditto_pull)" },
        { "ditto_variable_assign", "ditto_assign" },
        { "ditto_variable_scatter", "ditto_scatter" },
        { "ditto_variable_lookup", "ditto_lookup" },
        { "ditto_variable_update", "ditto_update" },
        { "ditto_iterator_next", "ditto_next" },
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strcmp(forms[i][0], function) == 0)
            return forms[i][1];
    return NULL;
}

const char *dti_context_exit_hint(const struct dti_frame *top)
{
    return top->kind != DTI_CONTEXT_CROSS ? "call it after run has returned"
           : top->merges                  ? "call it after run has returned"
           : top->standing                ? "ditto_set_default(NULL) ends it"
           : top->is_scope                ? "leave it first (ditto_strategy_scope_leave)"
                                          : "call it after the other strategy's call has returned";
}

static bool may_cross(const struct dti_frame *top, const struct dti_team *team)
{
    if (top == NULL || (top->kind == DTI_CONTEXT_CROSS && top->team == team))
        return true;
    /* A function of a dataset forked, and this is the child process. The call itself finds that the strategy
     * cannot be used here. */
    if (top->kind == DTI_CONTEXT_INPUT && is_forked(top))
        return true;
    if (top->kind == DTI_CONTEXT_UPDATE || is_input(top))
        return false;
    /* The scope or run belongs to a strategy that cannot be used in this child process, or to the default
     * strategy. Neither prevents the call. Only input context may have no team. */
    return top->team != NULL && top->team != team && (dti_team_forked(top->team) || top->team->options.plain);
}

bool dti_context_may_cross(const struct dti_team *team)
{
    return may_cross(dti_this_thread()->frame, team);
}

/* Says why this thread may not make a cross call. */
static ditto_status fail_cross(const struct dti_frame *top)
{
    if (top->kind == DTI_CONTEXT_UPDATE)
        return DTI_FAIL(
            DITTO_ERR_CONTEXT,
            "called in the function of an update, or in one that initializes a slice, which may only read "
            "and write the copy that it was given");
    /* This is refused for iterators of the default strategy too, because the thread that waits for the
     * iterator may have the turn of another strategy. */
    if (is_input(top))
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "called in a function of a dataset, where no call of a strategy works: the strategy "
                        "may be waiting for this thread. Read what the function needs before the iterator is "
                        "made, and pass it through the user pointer");
    if (top->kind == DTI_CONTEXT_DEVICE)
        return DTI_FAIL(
            DITTO_ERR_CONTEXT,
            "called in a function of logical device %u of replica %u, but this needs cross-replica context: "
            "call it after run has returned",
            top->device, top->replica->id);
    if (top->kind != DTI_CONTEXT_CROSS) {
        const char *form = replica_form(dti_this_thread()->function);
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "called on replica %u's thread, but this needs cross-replica context: "
                        "%s%scall it after run has returned (or in merge_call)",
                        top->replica->id, form != NULL ? form : "",
                        form != NULL ? " is the form for replicas: use it, or " : "");
    }
    return DTI_FAIL(DITTO_ERR_CONTEXT,
                    "mixing strategies: this thread is in the scope of another strategy; %s",
                    dti_context_exit_hint(top));
}

ditto_status dti_context_check_cross(const struct dti_team *team)
{
    return may_cross(dti_this_thread()->frame, team) ? DITTO_OK : fail_cross(dti_this_thread()->frame);
}

ditto_status dti_context_check_scope(const struct dti_team *team)
{
    const struct dti_frame *top = dti_this_thread()->frame;
    if (team->options.plain && top != NULL && top->team != NULL && !top->team->options.plain)
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "the default strategy's scope cannot be entered inside another strategy's: %s, and "
                        "the thread is in the default strategy again",
                        dti_context_exit_hint(top));
    return dti_context_check_cross(team);
}

ditto_status dti_context_check_not_input(const char *what)
{
    if (!is_input(dti_this_thread()->frame))
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_CONTEXT,
        "a call of %s in a function of a dataset (a map, a filter or a generator), on a thread that makes "
        "batches: call it outside",
        what);
}

ditto_status dti_context_check_outside(const char *what)
{
    const struct dti_frame *top = dti_this_thread()->frame;
    if (is_input(top))
        return DTI_FAIL(
            DITTO_ERR_CONTEXT,
            "destroying the %s in a function of a dataset (a map, a filter or a generator), on a thread "
            "that makes batches: do it outside",
            what);
    if (top != NULL && top->kind != DTI_CONTEXT_CROSS && top->kind != DTI_CONTEXT_INPUT &&
        !top->team->options.plain)
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "destroying the %s on replica %u's thread: do it after run has returned", what,
                        top->replica->id);
    return DITTO_OK;
}
