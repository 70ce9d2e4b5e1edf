/* src/replicas/team/team.h - the team: N persistent, pinned threads that run one job at a time, as fork and join.
 *
 * Runs nest: while all replicas pause inside a run (pause.c), replica 0's thread may post jobs of its own,
 * which the others do where they wait. So there is one run at a time that can go on, the innermost, and one
 * stop word is enough.
 *
 * Invariants  I1  every go number is posted once (64 bits do not wrap: 2^32 posts take minutes); `run` is the
 *                 number of the innermost run, and differs from every done of a replica that is still in it.
 *             I2  job and argument change only when all replicas have seen the go number before: they have
 *                 done it, or they have met since.
 * Edges       G0 -> G1  the poster's job -> every replica that sees the new go number; also the end of a
 *                       pause
 *             D0 -> D1  a replica's job -> the poster that sees its done number
 * Ending      by a word of its own, ending: the end of a poisoned team may come while replica 0 still posts
 * Progress    run returns when every job has returned; with a run timeout it may give up on some (poisoned).
 * Model       tests/model/pause.pml */
#ifndef DTI_TEAM_H
#define DTI_TEAM_H

#include <ditto/strategy.h>

#include "base/base.h"
#include "replicas/memory/arena.h"
#include "replicas/team/context.h"
#include "replicas/helpers/crew.h"
#include "replicas/placement/placement.h"
#include "base/waiting/stop.h"

#include <pthread.h>

#define DTI_PAUSES  10   /* in each other, at most */
#define DTI_HANDLES 4096 /* runs after which a stale `self` would look fresh again */

struct dti_replica {
    /* Written by the replica alone, watched by the poster and by peers that wait for it. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t done; /* number of the last run that it finished */
    ditto_status outcome; /* plain, published by done: > 0 if its function returned news */
    /* Constant while the team runs, but for patience: written by the replica itself at the start of a run. */
    alignas(DTI_CACHE_LINE_PAIR) uint32_t id;
    struct dti_team *team;
    struct dti_arena *arena;
    ditto_pu pu;  /* of its leader */
    uint32_t pus; /* that it spans */
    struct dti_crew *crew;
    struct dti_sync *sync; /* src/sync's state of the run that it is in */
    struct dti_tracer *tracer,
        *traced; /* recorder.h: NULL unless it is being traced; what was recorded, until it is forgotten */
    struct dti_remote_memory *remote_memory; /* memory of other nodes, for its devices there; NULL: none */
    struct dti_wait_policy wait_policy;
    uint32_t load_epoch; /* that patience was made for */
    uint32_t depth;      /* pauses around the run that it is in */
    uint64_t seen;       /* the last go number that it has acted on */
    int32_t tid, cpu;    /* read back; -1: unknown */
    pthread_t thread;
    struct dti_mask mask;      /* where its leader may run: its first PU; all of them when helpers are off */
    char handles[DTI_HANDLES]; /* addresses only: run r's `self` is the address of handles[r % DTI_HANDLES] */
};

struct dti_team_options {
    const ditto_placement *placement; /* stays the caller's, for as long as the team lives */
    uint32_t pus;                     /* that the process may use */
    double cpu_quota;                 /* 0: none */
    bool caller_waits, pin, strict_memory, helpers;
    /* True for the default strategy. Its one thread is the host's, and does not count as load. */
    bool plain;
    /* The user's functions run in the floating-point environment of the thread that calls run. */
    bool host_floating;
    uint32_t timeout_ms, run_timeout_ms, spin_us; /* DITTO_FOREVER: no limit */
    size_t stack_bytes;
    void (*thread_start)(uint32_t replica, void *user);
    void (*thread_stop)(uint32_t replica, void *user);
    void *thread_user;
};

/* How a team ends. */
enum dti_team_end {
    DTI_TEAM_ENDS,
    DTI_TEAM_IS_FORKED, /* in a child process: its threads are not there */
    DTI_TEAM_IS_LEFT,   /* poisoned: a replica that never returned may still use all that it has */
};

struct dti_dependent;

/* What its kind makes of the end of a dependent. A function that is NULL has nothing to do. */
struct dti_dependent_kind {
    /* For messages of its destroy: "the variable", and its name if it has one. */
    const char *what;
    const char *(*name)(const struct dti_dependent *self);

    /* An error: something else needs it, so it is not destroyed. With the turn, or after the team's end. */
    ditto_status (*check)(const struct dti_dependent *self);

    /* The user destroys it while the team is there. It leaves the lists that it is in, and gives back what
     * it has in replicas' arenas, unless the team IS_LEFT. With the turn, and behind its closed gate. */
    void (*leave)(struct dti_dependent *self, enum dti_team_end end);

    /* The team ends before it. It forgets the team, unless that IS_LEFT. With the turn, while its gate is
     * still shut. */
    void (*team_ends)(struct dti_dependent *self, enum dti_team_end end);

    /* Frees its own memory. Any thread. */
    void (*release)(struct dti_dependent *self);
};

/* Who frees a dependent. */
enum dti_freed_by {
    /* The destroy that the user calls, before or after the team's end. */
    DTI_FREED_BY_DESTROY,

    /* The end of the team. The user has destroyed it while the team was poisoned, so that a replica that
     * never returned might still use it; or it is one of the library's own, of which the user knows nothing.
     * If the team IS_LEFT, it stays with the team. */
    DTI_FREED_BY_TEAM,

    /* It stays until the process ends. The team that it lives on was left to a replica that never returned,
     * or a thread that is not in this child process may have been changing it. */
    DTI_FREED_BY_NOBODY,
};

/* Something that lives on a team and must let go of it before it is destroyed: a variable, an optimizer, an
 * iterator, a checkpointer, the values. Zero but for kind, and for freed_by where that is the team, before it
 * is added.
 *
 * freed_by is written with the turn, or while the gate is shut (by the thread that shut it). A destroy reads
 * it behind its own change, or when it has found the gate closed: the acquire of dti_gate_enter is O1 there,
 * and the release of dti_gate_close O0. */
struct dti_dependent {
    const struct dti_dependent_kind *kind;
    enum dti_freed_by freed_by;
    struct dti_dependent *next, **before;
    struct dti_gate gate; /* of cross calls on it; closed when it is destroyed, and when the team ends */
    /* The team that it was added to. NULL once it has left the team, because a later one may lie at the same
     * address. Outside the gate it is compared alone, with the teams whose turn the calling thread has.
     * relaxed: if the team is one of those, the thread had the turn before and sees that the dependent was
     * added; and if it is an earlier one at the address, its end came before the creation of the later one,
     * and is seen. */
    _Atomic(struct dti_team *) team;
};

typedef ditto_status (*dti_job)(struct dti_replica *replica, void *argument);

struct dti_team {
    uint32_t n;
    struct dti_replica *replica; /* [n] */
    struct dti_team_options options;
    bool crowded; /* by itself: PUs shared among its replicas, or a quota below their number */
    _Atomic bool
        ending; /* no run will follow, threads end: set once. All watch it, so nothing near it changes */
    uint64_t yield_ns; /* how long a crowded replica yields before it sleeps */
    uint32_t process;  /* the process that made it; the team is dead in children of that (base/fork.h) */
    struct dti_sync
        *sync; /* src/sync's state for this team, of runs that are not inside others; opaque here */
    struct ditto_strategy *strategy;  /* whose team it is; opaque here, compared alone */
    struct dti_wait_queue wait_queue; /* seats: replicas 0 .. n-1, and n for a poster that is not replica 0 */
    struct dti_stop stop;
    uint64_t run_deadline_ns;             /* of the present run; DTI_NEVER: none. Published by go */
    _Atomic bool poisoned;                /* set by a poster that gives up; otherwise read under lock */
    uint64_t outermost;                   /* number of the last run that was not inside another; under lock */
    _Atomic uint32_t scopes;              /* entered on any thread and not left */
    _Atomic uint32_t refused[DTI_PAUSES]; /* not 0: somebody will not pause */
    struct dti_dependent *dependents;     /* under lock */
    uint32_t producers; /* of its iterators, since it was made: the next one's number. The turn's */
    struct dti_registry *variables; /* src/vars'; under lock; opaque here */
    pthread_mutex_t lock;           /* one cross call at a time */
    struct dti_gate gate;           /* for cross calls, also those that wait for their turn */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t go; /* number posted last */
    _Atomic uint64_t run;                             /* the innermost run's; relaxed: published by go */
    dti_job job;                                      /* plain, published by go */
    void *argument;
    struct dti_fenv host; /* with options.host_floating; plain, published by go */
    const char *function; /* the public function that posted the job, which errors of its replicas name */
    /* How many pauses are going on in each other, of the present run: replica 0's own; else of whoever posts. Beside what others read
     * it cost them a line in each merge_call. */
    alignas(DTI_CACHE_LINE_PAIR) uint32_t pauses;
    uint64_t ended;                     /* number of the run that ended last; written by the same threads */
    _Atomic uint32_t pause[DTI_PAUSES]; /* enum dti_pause_state, of the run that is inside as many pauses */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t
        returned; /* of the present run; counted in crowded teams alone */
};

/* What a seat of the room can await, beside the ids of replicas. */
#define DTI_AWAITS_GO(team)      ((team)->n)
#define DTI_AWAITS_MEETING(team) ((team)->n + 1)
#define DTI_AWAITS_INPUT(team)   ((team)->n + 2) /* signalled by producers; consumers await everyone */

/* What the rooms below strategy see of a strategy. The struct of src/strategy begins with it. */
struct dti_strategy_base {
    struct dti_team *team;
    bool central;            /* variables have one copy, */
    uint32_t parameter_node; /* on this NUMA node */
};
static inline const struct dti_strategy_base *dti_base_of(const ditto_strategy *strategy)
{
    return (const struct dti_strategy_base *)(const void *)strategy;
}
static inline struct dti_team *dti_team_of(const ditto_strategy *strategy)
{
    return dti_base_of(strategy)->team;
}

/* -- Cross context -- */
ditto_status dti_team_create(const struct dti_team_options *options, struct dti_team **out);
/* Takes the turn, and shuts the gates of the team and of all objects that live on it. dti_team_reopen or
 * dti_team_destroy follows. BUSY: a call is in, and nothing has changed. */
ditto_status dti_team_close(struct dti_team *team);
void dti_team_reopen(struct dti_team *team);
/* Destroys a closed team, or in a child process any team. All threads that can be joined are joined.
 * POISONED: some replicas never returned, and their threads and the team's memory stay. */
ditto_status dti_team_destroy(struct dti_team *team);
static inline bool dti_team_forked(const struct dti_team *team)
{
    return dti_process_differs(team->process);
}
ditto_status dti_fail_forked(void);   /* FORKED, with its message */
ditto_status dti_fail_poisoned(void); /* POISONED, with the message of a call on a poisoned strategy */

/* A cross call: checks context, fork and poison, takes the team's turn and, if it wants to run a job, pins the caller
 * to replica 0's PU (in a scope it is there already). `frame` is the caller's, for leave.
 * Errors: CONTEXT, FORKED, POISONED, SYSTEM; then there is nothing to leave. */
enum dti_caller_binding { DTI_CALLER_KEEPS_AFFINITY, DTI_CALLER_PINNED };
ditto_status dti_cross_enter(struct dti_team *team, struct dti_frame *frame, enum dti_caller_binding binding);
void dti_cross_leave(struct dti_team *team, struct dti_frame *frame);

/* Between enter and leave: job(replica, argument) on every replica's thread; the caller is replica 0 unless
 * it waits. Returns the first error, with its record in the caller's thread; else the news of the replica of
 * lowest id; else OK. When a replica failed, the stop stays set, so that the modules above can renew their
 * state. They then call dti_team_renew, which clears the stop of the run that ended last. A stop of an outer
 * run stays. timeout_ms (DITTO_FOREVER: none; the library's own jobs always end): see dti_team_destroy. */
ditto_status dti_team_run(struct dti_team *team, dti_job job, void *argument, uint32_t timeout_ms);
void dti_team_renew(struct dti_team *team);
/* Called before a job that calls functions of the user's. If the strategy's options say so, they run in the
 * calling thread's floating-point environment. Functions of a run inside another have that of the outermost
 * run. */
static inline void dti_team_note_host(struct dti_team *team)
{
    if (team->options.host_floating && team->pauses == 0)
        team->host = dti_fenv_current();
}
/* Is the calling thread inside a run or another cross call of the team? */
bool dti_team_has_turn(const struct dti_team *team);
/* The cross calls' turn, for what needs nothing else of dti_cross_enter. False: it was this thread's already. */
bool dti_team_take_turn(struct dti_team *team);
void dti_team_give_turn(struct dti_team *team, bool taken);

/* -- dependents -- */
/* With the turn, or before anybody else knows the team. */
void dti_dependent_add(struct dti_team *team, struct dti_dependent *dependent);
void dti_dependent_remove(struct dti_dependent *dependent);
/* Ends a dependent whose user destroys it: before the team, behind it, in a child process, or with a poisoned
 * team. BUSY: another thread is in a call on it. Other errors are those of its check. After an error nothing
 * has changed. Any context in which a thread may wait for the turn. */
DTI_COMPANION ditto_status dti_dependent_destroy(struct dti_dependent *dependent);
/* For libraries that stand beside this one: adds a dependent, in turn. CONTEXT, FORKED, POISONED: nothing was
 * added. */
DTI_COMPANION ditto_status dti_watch(ditto_strategy *strategy, struct dti_dependent *dependent);
/* For them too: DTI_HOLD_STRATEGY, which gives the gate to leave, or NULL; and the same for what was added.
 * False: its strategy has been destroyed. */
DTI_COMPANION struct dti_gate *dti_strategy_hold(ditto_strategy *strategy);
DTI_COMPANION bool dti_dependent_hold(const struct dti_dependent *dependent, struct dti_gate **held);

uint64_t dti_team_run_number(const struct dti_team *team);

/* Threads of the team on a PU: leaders and helpers; with helpers off, leaders that may run there. */
uint32_t dti_team_threads_on(const struct dti_team *team, uint32_t pu);
/* How a thread on a PU should wait, as long as *epoch is the load's. */
struct dti_wait_policy dti_team_wait_policy(const struct dti_team *team, uint32_t pu, uint32_t *epoch);
/* What every thread of the team does first: binds itself, unless the host places threads, and then drops a memory
 * policy that it inherited. SYSTEM. */
ditto_status dti_team_settle_thread(const struct dti_team *team, const struct dti_mask *mask);

/* Enters the gate of the team or of an object that lives on it. *held is the gate to leave. It is NULL if
 * this thread is inside a run or another call of the team, because that call holds the gate already.
 * Therefore a function of a poisoned run that never returns does not keep the strategy from being destroyed.
 * Returns false if the gate is closed. `team` is only compared. */
static inline bool dti_team_hold(const struct dti_team *team, struct dti_gate *gate, struct dti_gate **held)
{
    const struct dti_frame *top = dti_frame_top;
    if (top != NULL && dti_team_has_turn(team))
        return true;
    /* The thread that has shut the gates may be waiting for this producer, so the producer must not wait for
     * them. */
    bool open = top != NULL && top->kind == DTI_CONTEXT_INPUT ? dti_gate_try(gate) : dti_gate_enter(gate);
    *held = open ? gate : NULL;
    return open;
}
/* The same for the team's own gate. A thread in the strategy's scope need not enter it: no strategy is destroyed
 * while its scope is entered on any thread. */
static inline void dti_team_hold_itself(struct dti_team *team, struct dti_gate **held)
{
    const struct dti_frame *top = dti_frame_top;
    if (top == NULL || top->team != team || !top->is_scope)
        (void)dti_team_hold(team, &team->gate, held);
}
/* Stands first in a public function that takes a strategy in cross-replica context. NULL is INVALID. Any
 * other strategy is not destroyed before the function returns. Passing a strategy that has already been
 * destroyed is an error of the caller, and is not detected. */
#define DTI_HOLD_STRATEGY(strategy)                \
    DTI_TRY(dti_not_null((strategy), "strategy")); \
    DTI_LEAVES_GATE(held_strategy_, NULL);         \
    dti_team_hold_itself(dti_team_of(strategy), &held_strategy_)

/* -- The replica's own thread -- */
/* Of an error that the user's function returned: a record with a message, unless it has written one since then. */
void dti_replica_ensure_record(const struct dti_replica *replica, ditto_status status,
                               uint32_t serial_before);
const ditto_replica *dti_replica_handle(const struct dti_replica *replica); /* good for the present run */
ditto_status dti_replica_alloc(struct dti_replica *replica, size_t bytes, size_t alignment, void **out);

/* -- Any thread -- */
/* Ends the innermost run with the calling thread's error record; the first one wins. Wakes every sleeper. */
void dti_team_stop(struct dti_team *team);
/* The same when run_timeout_ms has passed: ends all runs, and no inner run's poster can clear it. */
void dti_team_expire(struct dti_team *team);
/* PEER_STOPPED with a message that names the failed replica; DIVERGED stays DIVERGED: it concerns all. */
ditto_status dti_team_stop_status(const struct dti_team *team);
/* Whether all replicas have returned from the last outermost run. Having returned from a run inside it is not
 * enough. */
bool dti_team_all_returned(const struct dti_team *team);
/* The limit of a wait on this replica. A caller that works as replica 0 must not wait past the end of its own run. */
static inline struct dti_deadline dti_replica_deadline(const struct dti_replica *replica, uint32_t timeout_ms)
{
    struct dti_deadline deadline = { .timeout_ms = timeout_ms };
    const struct dti_team *team = replica->team;
    if (replica->id == 0 && team->run_deadline_ns != DTI_NEVER && !team->options.caller_waits) {
        uint64_t own = dti_deadline_at(&deadline);
        deadline.at_ns = team->run_deadline_ns < own ? team->run_deadline_ns : own;
    }
    return deadline;
}
/* A wait until this deadline is as long as its run may be: then that is what messages name. */
static inline bool dti_deadline_is_of_run(const struct dti_replica *replica,
                                          const struct dti_deadline *deadline)
{
    return replica->team->run_deadline_ns != DTI_NEVER && deadline->at_ns == replica->team->run_deadline_ns;
}
/* Ends the run with the calling thread's error record, because a wait on this replica has reached its
 * deadline. If that is the deadline of the outermost run, it ends all runs. */
void dti_replica_stop_late(const struct dti_replica *replica, const struct dti_deadline *deadline);
bool dti_replica_returned(const struct dti_replica *replica); /* from the innermost run's function */
bool dti_replica_owns_handle(const struct dti_replica *replica, const ditto_replica *self);

#endif
