/* src/replicas/team/team.h - the team: N persistent, pinned threads that run one job at a time.
 *
 * This header has what everybody may ask of a team, and what other modules keep on it. Cross calls are in
 * turn.h, errors that end runs in stopping.h, jobs in jobs/jobs.h, and the life of a team in
 * jobs/team_life.h. */
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
struct dti_replica *dti_team_replica(const struct dti_team *team, uint32_t index);
const struct dti_team_options *dti_team_options(const struct dti_team *team);
bool dti_team_is_oversubscribed(const struct dti_team *team);
struct dti_wait_queue *dti_team_wait_queue(struct dti_team *team);
struct dti_gate *dti_team_gate(struct dti_team *team);
/* Returns true if the address is that of a replica of the team. The replica is not read. */
bool dti_team_has_replica(const struct dti_team *team, const void *replica);

/* Returns true if the team is oversubscribed and a replica has returned from the present run. Other teams do
 * not count returns, and the answer is false. */
bool dti_team_any_returned(const struct dti_team *team);
/* Returns the number of nested pauses in the present run. Called on the poster's thread. */
uint32_t dti_team_pauses(const struct dti_team *team);
/* Returns the number of the innermost run. */
uint64_t dti_team_run_number(const struct dti_team *team);

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
/* Numbers the producers that iterators start. The calling thread has the turn. */
uint32_t dti_team_number_producer(struct dti_team *team);

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

bool dti_team_forked(const struct dti_team *team);
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

#endif
