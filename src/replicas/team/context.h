/* src/replicas/team/context.h - which context a thread is in, as a stack of frames per thread. */
#ifndef DTI_CONTEXT_H
#define DTI_CONTEXT_H

#include <ditto/replica.h>

#include "base/errors/status.h"
#include "base/numbers/fenv.h"
#include "replicas/machine/mask.h"

struct dti_team;
struct dti_replica;

enum dti_context {
    DTI_CONTEXT_CROSS,
    DTI_CONTEXT_REPLICA,

    /* Inside a function of a logical device, on a helper or on the leader. */
    DTI_CONTEXT_DEVICE,

    /* Inside the function of an update, on the thread of the replica whose copy is updated. */
    DTI_CONTEXT_UPDATE,

    /* Around calls of the functions of an iterator's datasets, on the iterator's producer threads and when
     * it is created, saved or destroyed. A call that waits for this thread may have the strategy's turn, so
     * every call of a strategy is refused in this context. */
    DTI_CONTEXT_INPUT,
};

/* A frame lives where it was pushed (on a stack, or in a scope's allocation) until it is popped. */
struct dti_frame {
    enum dti_context kind;

    /* The team of the scope or run. It also identifies the strategy. In input context it is NULL if an
     * iterator is destroyed after its strategy. */
    struct dti_team *team;

    /* Set in replica, device and update context. */
    struct dti_replica *replica;

    /* In replica context: the handle that is valid on this thread now. */
    const ditto_replica *self;

    /* The number of times that the scope was entered. */
    uint32_t scope_depth;

    /* In device context: the index of the device in its replica. */
    uint32_t device;

    /* In replica context: the state that src/strategy keeps for the run. It is opaque here. */
    void *run;

    /* In update context: the variable that is updated. It is opaque here. */
    const void *object;

    /* True for a cross call that took the team's turn. */
    bool has_turn;

    /* True for a merge function. It is in the scope of the strategy of the run. */
    bool merges;

    /* True for a scope. Its frame is allocated, and counted in team->scopes. */
    bool is_scope;

    /* True for a scope without an end (ditto_set_default). */
    bool standing;

    /* True if `saved` holds the affinity that the thread had before. */
    bool pinned;
    struct dti_mask saved;
    struct dti_frame *below;

    /* The state of the thread that has pushed this frame. */
    struct dti_thread *thread;
};

/* -- The calling thread's own stack -- */
void dti_frame_push(struct dti_frame *frame);
/* Pops `frame`, which is the top frame unless scopes were left open above it. Those end too. */
void dti_frame_pop(struct dti_frame *frame);
/* Leaves the scope that is the top frame, regardless of how often it was entered. */
void dti_frame_end_scope(void);

/* Pushes cross context of a team. The frame need not be initialised. */
void dti_frame_push_cross(struct dti_frame *frame, struct dti_team *team);

/* A function of the user that is in the context of the call that calls it, and not in one of its own. */
struct dti_same_context {
    struct dti_frame frame;

    /* The team of the call. It differs from the frame's team if the thread is in another context. */
    const struct dti_team *team;
    const struct dti_same_context *outer;
};

/* Surround such a function, which a call on `team` calls. Scopes that the function has entered end with it,
 * except one of ditto_set_default. It cannot leave a scope that the thread was in before. In such a scope the
 * call has entered no gate (dti_team_hold_itself), so the strategy could be destroyed under it. `same` need
 * not be initialised. */
void dti_frame_push_same(struct dti_same_context *same, const struct dti_team *team);
void dti_frame_pop_same(struct dti_same_context *same);

/* Called before a function of the user on the thread of a replica or of a device. Enters the context of the
 * function and its floating-point environment, which is the one that ditto promises, or the host's if the
 * strategy's options say so (dti_team_run). Returns the environment that dti_frame_leave restores. The
 * frame need not be initialised. */
struct dti_fenv dti_frame_enter(struct dti_frame *frame, enum dti_context kind, struct dti_replica *replica,
                                const ditto_replica *self);
void dti_frame_leave(struct dti_frame *frame, struct dti_fenv saved);
/* The same before code that calls functions of datasets, for an iterator of this team, or of a team that has
 * been destroyed if it is NULL. */
struct dti_fenv dti_frame_enter_input(struct dti_frame *frame, struct dti_team *team);

/* Returns the affinity that the host gave this thread if a scope or run has changed it, else NULL. */
DTI_COMPANION const struct dti_mask *dti_context_saved_mask(void);

/* Both find the replica of a handle. They return CONTEXT if the handle belongs to another replica or to an
 * earlier run, or if the thread runs no replica. For a handle that is NULL they return INVALID, or CONTEXT in
 * cross-replica context and in functions of datasets. `self` is compared, and never dereferenced, so a stale
 * handle cannot crash. dti_self is the fast path, and calls dti_self_refuse for every handle that is not the
 * one of the top frame. */
ditto_status dti_self_refuse(const ditto_replica *self, struct dti_replica **out);
static inline ditto_status dti_self(const ditto_replica *self, struct dti_replica **out)
{
    const struct dti_frame *top = dti_this_thread()->frame;
    if (__builtin_expect(top != NULL && top->self == self && self != NULL, 1)) {
        *out = top->replica;
        return DITTO_OK;
    }
    /* `out` itself is not passed on, so that the caller's pointer can stay in a register. */
    struct dti_replica *plain;
    DTI_TRY(dti_self_refuse(self, &plain));
    *out = plain;
    return DITTO_OK;
}

/* The same for public functions that return no status and are too short for DTI_ENTER. They return the
 * replica, or NULL with an error recorded, which names `function`. */
struct dti_replica *dti_self_refuse_in(const char *function, const ditto_replica *self);
static inline struct dti_replica *dti_self_in(const char *function, const ditto_replica *self)
{
    const struct dti_frame *top = dti_this_thread()->frame;
    if (__builtin_expect(top != NULL && top->self == self && self != NULL, 1))
        return top->replica;
    return dti_self_refuse_in(function, self);
}

/* Returns the part of a message that says how the thread can leave its present context. */
const char *dti_context_exit_hint(const struct dti_frame *top);

/* Checks that a `what` may be destroyed on this thread. Returns CONTEXT in a function of a dataset, and on
 * the thread of a replica. Each replica of a run has the turn, so two of them could change the team's list of
 * dependents at the same time. The default strategy's replica may destroy it. */
DTI_COMPANION ditto_status dti_context_check_outside(const char *what);
/* Returns CONTEXT inside a function of a dataset, which may not wait for anything for which a run may wait.
 * In a child process it may wait. */
DTI_COMPANION ditto_status dti_context_check_not_input(const char *what);

/* Returns true if a frame of this thread is of `team`, or if a call on `team` executes a function of the user
 * in the caller's context. The frame need not be the top frame. */
bool dti_context_is_of(const struct dti_team *team);

/* Checks that this thread may make a cross call on `team`. Returns CONTEXT on a replica's thread, in the
 * function of an update or of a dataset, and in the scope of another strategy. A scope or run of the default
 * strategy does not count. */
ditto_status dti_context_check_cross(const struct dti_team *team);
/* Returns true if it would return DITTO_OK. Leaves the last error as it is. */
bool dti_context_may_cross(const struct dti_team *team);
/* Checks that this thread may enter the scope of `team`. In addition to the above, the default strategy's
 * scope is refused inside the scope of another strategy. */
ditto_status dti_context_check_scope(const struct dti_team *team);

#endif
