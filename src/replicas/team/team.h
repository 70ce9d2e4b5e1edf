/* src/replicas/team/team.h - the team: N persistent, pinned threads that run one job at a time.
 *
 * A run is a fork and join. Runs nest. While all replicas pause inside a run (pause.c), replica 0's thread
 * may post further jobs, and the other replicas execute these jobs where they wait. Only the innermost run
 * can make progress, so one stop word is enough. The thread that posts a job is called the poster.
 *
 * Invariants  I1  Every go number is posted once. The numbers have 64 bits and do not wrap (2^32 posts
 *                 already take minutes). `run` is the number of the innermost run. It differs from the done
 *                 number of every replica that is still in that run.
 *             I2  Job and argument change only after all replicas have seen the previous go number. At that
 *                 time they have finished its job, or they have met since.
 * Edges       G0 -> G1  The poster writes the job and posts the go number. Every replica that sees the new
 *                       number sees the job. The end of a pause is posted in the same way.
 *             D0 -> D1  A replica stores its done number after its job. The poster that sees the number sees
 *                       the effects of the job.
 * Ending      The word `ending` ends the threads. It is separate from `go`, because a poisoned team may be
 *             ended while replica 0 still posts.
 * Progress    A run returns when every job has returned. With a run timeout it may give up on some replicas,
 *             and the team is then poisoned.
 * Model       tests/model/pause.pml */
#ifndef DTI_TEAM_H
#define DTI_TEAM_H

#include <ditto/strategy.h>

#include "base/types/types.h"
#include "base/waiting/gate.h"
#include "base/waiting/wait.h"
#include "replicas/team/context.h"

#include <pthread.h>

/* How deeply runs may be nested. */
#define DTI_LEVELS 8

struct dti_replica;

struct dti_team_options {
    /* Of a strategy over several hosts: the id of the first replica of this host, and the number of replicas
     * of all hosts. 0 and 0 mean that there is one host. */
    uint32_t first_replica;
    uint32_t all_replicas;

    /* Owned by the caller. It must live as long as the team. */
    const ditto_placement *placement;
    uint32_t pus;     /* the number of PUs that the process may use */
    double cpu_quota; /* in CPUs; 0 if there is none */
    bool caller_waits;
    bool pin;
    bool strict_memory;
    bool helpers;

    /* True if its threads work only in cross calls of the program, in between sleep, and do not count as
     * load: the parameter servers of a strategy. */
    bool idle;

    /* True for the default strategy. Its one thread is the host's, and does not count as load. */
    bool plain;

    /* The user's functions run in the floating-point environment of the thread that calls run. */
    bool host_floating;

    /* DITTO_FOREVER in a timeout means that there is no limit. */
    uint32_t timeout_ms;
    uint32_t run_timeout_ms;

    /* How threads wait. If has_spin_us is set, `wait` is DITTO_WAIT_DEFAULT, and they spin for spin_us. */
    ditto_wait_policy wait;
    uint32_t spin_us;
    bool has_spin_us;

    size_t stack_bytes;
    void (*thread_start)(uint32_t replica, void *user);
    void (*thread_stop)(uint32_t replica, void *user);
    void *thread_user;
};

typedef ditto_status (*dti_job)(struct dti_replica *replica, void *argument);

/* The events for which a waiter of the team's wait queue can wait, beside the ids of replicas. Producers
 * signal DTI_AWAITS_INPUT. Consumers wait for DTI_EVERYONE, which includes it. */
#define DTI_AWAITS_GO(num_replicas)      (num_replicas)
#define DTI_AWAITS_MEETING(num_replicas) ((num_replicas) + 1)
#define DTI_AWAITS_INPUT(num_replicas)   ((num_replicas) + 2)

/* -- What other modules may ask of a team. Any thread -- */
/* Constant from the creation of the team to its end. */
/* The replicas of this host: their number, and the id of the first one. */
uint32_t dti_team_num_replicas(const struct dti_team *team);
uint32_t dti_team_first_replica(const struct dti_team *team);
/* The number of replicas of all hosts. */
uint32_t dti_team_all_replicas(const struct dti_team *team);
/* Stores the index of a replica of this host in *index. Fails with RANGE if there is no replica of this id,
 * or if it is on another host. */
ditto_status dti_team_index(const struct dti_team *team, uint32_t id, uint32_t *index);
/* Returns UNSUPPORTED if the strategy has several hosts: `what` works on one host only. */
ditto_status dti_team_check_one_host(const struct dti_team *team, const char *what);
/* Returns UNSUPPORTED if the team is that of parameter servers, whose workers do not work in step. */
ditto_status dti_team_check_in_step(const struct dti_team *team);
struct dti_replica *dti_team_replica(const struct dti_team *team, uint32_t index);
const struct dti_team_options *dti_team_options(const struct dti_team *team);
bool dti_team_is_oversubscribed(const struct dti_team *team);
struct dti_wait_queue *dti_team_wait_queue(struct dti_team *team);
struct dti_gate *dti_team_gate(struct dti_team *team);
/* Returns true if the address is that of a replica of the team. The replica is not read. */
bool dti_team_has_replica(const struct dti_team *team, const void *replica);

/* Returns true if the innermost run has been stopped. */
bool dti_team_is_stopped(const struct dti_team *team);
/* Returns true if the team is oversubscribed and a replica has returned from the present run. Other teams do
 * not count returns, and the answer is false. */
bool dti_team_any_returned(const struct dti_team *team);
/* Returns the number of nested pauses in the present run. Called on the poster's thread. */
uint32_t dti_team_pauses(const struct dti_team *team);
/* Returns true if the team is poisoned. The answer is only a hint unless the calling thread has the turn. */
bool dti_team_is_poisoned(const struct dti_team *team);
/* Called when something outside the team that never returned may still use its memory. The calling thread has
 * the turn. */
void dti_team_poison(struct dti_team *team);
/* Called when all replicas of a poisoned team have returned after all. The calling thread has the turn. */
void dti_team_clear_poison(struct dti_team *team);

/* These count the scopes of the team that are entered, on all threads. */
void dti_team_scope_entered(struct dti_team *team);
void dti_team_scope_left(struct dti_team *team);
bool dti_team_has_scopes(const struct dti_team *team);

/* -- What other modules keep on a team. Each is set before other threads know the team, or under the turn
 * -- */
ditto_strategy *dti_team_strategy(const struct dti_team *team);
void dti_team_set_strategy(struct dti_team *team, ditto_strategy *strategy);
struct dti_sync *dti_team_sync(const struct dti_team *team);
void dti_team_set_sync(struct dti_team *team, struct dti_sync *sync);
struct dti_registry *dti_team_variables(const struct dti_team *team);
void dti_team_set_variables(struct dti_team *team, struct dti_registry *variables);
/* For the team of a worker: the team of the parameter servers, whose variables its replicas may use. NULL for
 * other teams. It outlives the team of the worker. */
struct dti_team *dti_team_servers(const struct dti_team *team);
void dti_team_set_servers(struct dti_team *team, struct dti_team *servers);
/* For the team of parameter servers: is_in_use(argument) says whether functions of workers may be using the
 * variables. NULL means that none is. */
void dti_team_set_in_use(struct dti_team *team, bool (*is_in_use)(const void *argument),
                         const void *argument);
/* Returns BUSY if functions of workers may be using `what`, whose name is `name`. The caller has the turn. */
ditto_status dti_team_check_unused(const struct dti_team *team, const char *what, const char *name);
/* Numbers the producers that iterators start. The calling thread has the turn. */
uint32_t dti_team_number_producer(struct dti_team *team);
/* A poster that is not replica 0 calls work(argument) whenever it looks whether a run has ended. A thread
 * that has work for it signals the wait queue (DTI_EVERYONE). Set once, before other threads know the
 * strategy. */
void dti_team_set_poster_work(struct dti_team *team, void (*work)(void *argument), void *argument);
/* Sets what is called when an error has ended the outermost run, by the thread that brought it. The function
 * must not wait. It is not called for dti_team_stop_all. NULL means nothing. */
void dti_team_set_stop_report(struct dti_team *team, void (*report)(void *argument, const ditto_error *error),
                              void *argument);

/* The part of a strategy that the modules below src/strategy see. The struct of src/strategy begins with
 * it. */
struct dti_strategy_base {
    struct dti_team *team;
    uint32_t num_replicas; /* of this host */

    /* The state of src/values. It is opaque here. */
    struct dti_values *values;
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
/* Takes the turn, and shuts the gates of the team and of all its dependents. The caller then calls
 * dti_team_reopen or dti_team_destroy. Returns BUSY, and changes nothing, if another call has not
 * returned. */
ditto_status dti_team_close(struct dti_team *team);
void dti_team_reopen(struct dti_team *team);
/* Destroys a closed team, or in a child process any team. Joins all threads that can be joined. Returns
 * POISONED if some replicas never returned. Their threads and the memory of the team are then not freed. */
ditto_status dti_team_destroy(struct dti_team *team);
/* In a child process: subtracts the threads of a team that is destroyed, but not freed, from the load of the
 * PUs. They do not exist in the child. */
void dti_team_uncount(const struct dti_team *team);
bool dti_team_forked(const struct dti_team *team);
/* Returns FORKED with its message. */
ditto_status dti_fail_forked(void);
/* Returns POISONED with the message of a call on a poisoned strategy. */
ditto_status dti_fail_poisoned(void);
/* Returns FORKED or POISONED if the strategy of the team may only be destroyed. This is an early check, which
 * is repeated when a call takes the turn. */
ditto_status dti_team_check_usable(const struct dti_team *team);

/* Begins a cross call. Checks the context, and that the team is neither forked nor poisoned, and takes the
 * turn. With DTI_CALLER_PINNED, which is for calls that run a job, it also pins the caller to replica 0's PU,
 * unless the caller is in a scope and therefore pinned already. The caller provides `frame`, and passes it to
 * dti_cross_leave. A caller that does not work as replica 0, or whose strategy binds no threads, is not
 * pinned. Errors: CONTEXT, FORKED, POISONED, SYSTEM. After an error the caller must not call
 * dti_cross_leave. */
enum dti_caller_binding { DTI_CALLER_KEEPS_AFFINITY, DTI_CALLER_PINNED };
DTI_COMPANION ditto_status dti_cross_enter(struct dti_team *team, struct dti_frame *frame,
                                           enum dti_caller_binding binding);
DTI_COMPANION void dti_cross_leave(struct dti_team *team, struct dti_frame *frame);

/* Runs job(replica, argument) on the thread of every replica. Called between dti_cross_enter and
 * dti_cross_leave. The caller works as replica 0, unless the option caller_waits is set. If the option
 * host_floating is set, functions of the user that the job calls have the floating-point environment of the
 * calling thread. In a job inside a run they have that of the run.
 * Returns the first error, and writes its record in the calling thread. Without an error it returns the
 * positive status of the replica with the lowest id that returned one, or DITTO_OK.
 * After an error the stop stays set, so that the modules above can renew their state. They then call
 * dti_team_renew, which clears the stop of the run that ended last. A stop of an outer run stays. timeout_ms
 * is DITTO_FOREVER for all jobs except runs of the user. If the limit passes and a replica does not
 * return, the team is poisoned (see dti_team_destroy). */
ditto_status dti_team_run(struct dti_team *team, dti_job job, void *argument, uint32_t timeout_ms);
void dti_team_renew(struct dti_team *team);
/* Returns true if the calling thread is inside a run or another cross call of the team. */
bool dti_team_has_turn(const struct dti_team *team);
/* Takes the turn, for callers that need nothing else of dti_cross_enter. Returns false if the calling thread
 * had the turn already. The result is passed to dti_team_give_turn. */
bool dti_team_take_turn(struct dti_team *team);
/* Does the same, but does not wait. Returns false if another thread has the turn. */
bool dti_team_try_turn(struct dti_team *team, bool *taken);
void dti_team_give_turn(struct dti_team *team, bool taken);

/* For companion libraries: does the work of DTI_HOLD_STRATEGY. Returns the gate that the caller must leave,
 * or NULL. */
DTI_COMPANION struct dti_gate *dti_strategy_hold(ditto_strategy *strategy);

uint64_t dti_team_run_number(const struct dti_team *team);

/* Returns the number of threads of the team on a PU. These are leaders and helpers, or, with helpers off, the
 * leaders that may run there. */
uint32_t dti_team_threads_on(const struct dti_team *team, uint32_t pu);
/* Returns how a thread on a PU should wait. The answer is valid as long as dti_load_epoch() returns
 * *epoch. */
struct dti_wait_policy dti_team_wait_policy(const struct dti_team *team, uint32_t pu, uint32_t *epoch);
/* Called by every thread that the team starts, in its first job. It binds the thread and drops a memory
 * policy that the thread inherited. If the host places the threads (options.pin is false), it does nothing.
 * Errors: SYSTEM. */
ditto_status dti_team_bind_thread(const struct dti_team *team, const struct dti_mask *mask);

/* Enters the gate of the team or of one of its dependents. *held is the gate to leave. It is not set if this
 * thread is inside a run or another call of the team, because that call holds the gate already. Therefore a
 * function of a poisoned run that never returns does not keep the strategy from being destroyed. Returns
 * false if the gate is closed, and also then *held is the gate to leave. `team` is only compared. */
static inline bool dti_team_hold(const struct dti_team *team, struct dti_gate *gate, struct dti_gate **held)
{
    const struct dti_frame *top = dti_frame_top;
    if (top != NULL && dti_team_has_turn(team))
        return true;
    /* The thread that has shut the gates may be waiting for this producer, so the producer must not wait for
     * them. */
    *held = gate;
    return top != NULL && top->kind == DTI_CONTEXT_INPUT ? dti_gate_try(gate) : dti_gate_enter(gate);
}
/* dti_team_hold for the gate of the team itself. */
void dti_team_enter_gate(struct dti_team *team, struct dti_gate **held);

/* Holds the team for a public function. A thread in the scope of the strategy does not enter the gate,
 * because no strategy is destroyed while its scope is entered on any thread. */
static inline void dti_team_hold_itself(struct dti_team *team, struct dti_gate **held)
{
    const struct dti_frame *top = dti_frame_top;
    if (top == NULL || top->team != team || !top->is_scope)
        dti_team_enter_gate(team, held);
}
/* The first statement of a public function that takes a strategy in cross-replica context. NULL is refused
 * with INVALID. Any other strategy is not destroyed before the function returns. Passing a strategy that has
 * already been destroyed is an error of the caller, and is not detected. */
#define DTI_HOLD_STRATEGY(strategy)                \
    DTI_TRY(dti_not_null((strategy), "strategy")); \
    DTI_LEAVES_GATE(held_strategy_, NULL);         \
    dti_team_hold_itself(dti_team_of(strategy), &held_strategy_)

/* -- Any thread -- */
/* Ends all runs with the error record of the calling thread, which is no replica, or with an error that came
 * first. A poster of an inner run cannot clear the stop. Wakes every sleeper. */
void dti_team_stop_all(struct dti_team *team);
/* The poster, after the outermost run: returns false if it was stopped by dti_team_stop_all, or by an error
 * of a run inside it that could not be cleared any more. */
bool dti_team_stop_is_own(const struct dti_team *team);
/* Ends all runs with the error record of the calling thread, because run_timeout_ms has passed. The first
 * error counts. The poster of an inner run cannot clear the stop. Wakes every sleeper. */
void dti_team_expire(struct dti_team *team);
/* Returns PEER_STOPPED with the first error in its message, and the replica that failed if there is one. If
 * the first error was DIVERGED it returns DIVERGED, because that error concerns all replicas. In a child
 * process it returns FORKED. */
ditto_status dti_team_stop_status(const struct dti_team *team);
/* Returns true if an error of this replica was the first one. The caller has seen the stop. */
bool dti_replica_was_first(const struct dti_replica *r);
/* Returns the error that stopped the run, which is then in the record of this thread, if this replica was the
 * first one. Otherwise the same as dti_team_stop_status. */
ditto_status dti_replica_stop_status(const struct dti_replica *r);
/* The thread that has posted the present run. Returns the limit of the run. */
struct dti_deadline dti_team_run_deadline(const struct dti_team *team);
/* Returns true if all replicas have returned from the last outermost run. Having returned from a run inside
 * it is not enough. */
bool dti_team_all_returned(const struct dti_team *team);

#endif
