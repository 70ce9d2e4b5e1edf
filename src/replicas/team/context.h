/* src/replicas/team/context.h - which context a thread is in: a stack of frames per thread. */
#ifndef DTI_CONTEXT_H
#define DTI_CONTEXT_H

#include <ditto/replica.h>

#include "base/base.h"
#include "replicas/machine/affinity.h"

struct dti_team;
struct dti_replica;

enum dti_context {
    DTI_CONTEXT_CROSS,
    DTI_CONTEXT_REPLICA,
    DTI_CONTEXT_DEVICE, /* inside a function of a logical device, on a helper or on the leader */
    DTI_CONTEXT_UPDATE, /* inside the function of an update, on the thread of the copy's replica */
    /* Around calls of the functions of an iterator's datasets: on its producers' threads, and when its
     * position is saved. A call that waits for this thread may have the strategy's turn, so every call of a
     * strategy is refused here. */
    DTI_CONTEXT_INPUT,
};

/* Lives where it was pushed (a stack, or a scope's allocation) until it is popped. */
struct dti_frame {
    enum dti_context kind;
    struct dti_team *team;       /* whose scope or run this is; also the identity of its strategy */
    struct dti_replica *replica; /* in replica and device context */
    const ditto_replica *self;   /* in replica context: the handle that is good on this thread now */
    uint32_t scope_depth;        /* how often the scope was entered */
    uint32_t device;             /* in device context: which of the replica's devices */
    void *run;                   /* in replica context: strategy's own of the run, opaque here */
    const void *object;          /* in update context: the variable at hand, opaque here */
    bool has_turn;               /* of a cross call: it took the team's turn */
    bool merges;                 /* of a merge function: the scope that it is in is the run's */
    bool is_scope;               /* allocated, and counted in team->scopes */
    bool standing;               /* a scope without an end: ditto_set_default */
    bool pinned;                 /* saved holds the affinity from before */
    struct dti_mask saved;
    struct dti_frame *below;
};

/* -- The calling thread's own stack -- */
extern _Thread_local struct dti_frame *dti_frame_top; /* NULL: no scope, no run */
void dti_frame_push(struct dti_frame *frame);
void dti_frame_pop(struct dti_frame *frame); /* the top one, and scopes that were left open above it */
void dti_frame_end_scope(void); /* the top one is a scope: leaves it, however often it was entered */

/* Pushes cross context of a team. The frame needs no initialising. */
void dti_frame_push_cross(struct dti_frame *frame, struct dti_team *team);

/* Stands before a call of the user's function on the thread of a replica or of a device. Enters the
 * function's context and its floating-point environment: the one that ditto promises, or the host's if the
 * strategy's options say so (dti_team_note_host). Returns the environment that dti_frame_leave restores. The
 * frame needs no initialising. */
struct dti_fenv dti_frame_enter(struct dti_frame *frame, enum dti_context kind, struct dti_replica *replica,
                                const ditto_replica *self);
void dti_frame_leave(struct dti_frame *frame, struct dti_fenv saved);
/* The same before code that calls functions of datasets, for an iterator of this team. */
struct dti_fenv dti_frame_enter_input(struct dti_frame *frame, struct dti_team *team);

/* The affinity that the host gave this thread, if a scope or run has changed it; else NULL. */
DTI_COMPANION const struct dti_mask *dti_context_saved_mask(void);

/* The replica of the default strategy that a thread outside of everything is: made by strategy when it is asked for. */
extern _Thread_local struct dti_replica *dti_plain_replica;
extern _Thread_local const ditto_replica *dti_plain_self;

/* The replica behind a handle, or NULL with CONTEXT recorded: another replica's handle, one of an earlier run, one on a
 * thread that runs no replica. `self` is compared, never followed, so a stale one can't crash. */
struct dti_replica *dti_self_refuse(const ditto_replica *self);
static inline struct dti_replica *dti_self(const ditto_replica *self)
{
    const struct dti_frame *top = dti_frame_top;
    if (__builtin_expect(top != NULL && top->self == self && self != NULL, 1))
        return top->replica;
    return dti_self_refuse(self);
}

/* The same for public functions that return no status and are too short for DTI_ENTER. An error names
 * `function`. */
struct dti_replica *dti_self_refuse_in(const char *function, const ditto_replica *self);
static inline struct dti_replica *dti_self_in(const char *function, const ditto_replica *self)
{
    const struct dti_frame *top = dti_frame_top;
    if (__builtin_expect(top != NULL && top->self == self && self != NULL, 1))
        return top->replica;
    return dti_self_refuse_in(function, self);
}

/* Words for messages that say how the context ends that a thread is in. */
const char *dti_context_exit_hint(const struct dti_frame *top);

/* Destroying a `what`: refused on a replica's thread (CONTEXT), where the run that it would wait for is its own. */
ditto_status dti_context_check_outside(const char *what);
/* CONTEXT inside a function of a dataset, which may not wait for anything for which a run may wait. In a
 * child process it may. */
DTI_COMPANION ditto_status dti_context_check_not_input(const char *what);

/* A cross call on `team`: refused on a replica's thread, in an update, and in the scope of another strategy (CONTEXT).
 * The default strategy's scope and run are as none. */
ditto_status dti_context_check_cross(const struct dti_team *team);
/* Entering its scope: also the default strategy's inside a real one is refused. */
ditto_status dti_context_check_scope(const struct dti_team *team);

#endif
