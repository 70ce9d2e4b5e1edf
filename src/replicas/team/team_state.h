/* src/replicas/team/team_state.h - the team itself, for the files of team and jobs. */
#ifndef DTI_TEAM_STATE_H
#define DTI_TEAM_STATE_H

#include "base/waiting/stop.h"
#include "replicas/team/dependent.h"
#include "replicas/team/replica.h"
#include "replicas/team/team.h"

/* The number of depths of nested pauses for which a team has state. DTI_LEVELS allows fewer. */
#define DTI_PAUSES 10

struct dti_team {
    uint32_t n; /* of this host */
    uint32_t first, all;
    struct dti_replica *replica; /* [n] */
    struct dti_team_options options;

    /* The number of the team in its handles. */
    uint32_t number;

    /* True if threads of this team must share a PU, or if the CPU quota is below the number of its threads.
     * Threads of other strategies do not count. */
    bool oversubscribed;

    /* True when no run will follow and the threads must end. It is set once. All replicas poll it, so nothing
     * that changes is stored near it. */
    _Atomic bool ending;

    /* How long a thread of the team yields before it sleeps, if it may not spin (dti_team_wait_policy). */
    uint64_t yield_ns;

    /* The process that created the team. The team cannot be used in children of that process
     * (base/waiting/fork.h). */
    uint32_t process;

    /* The state of src/sync for runs that are not inside other runs. It is opaque here. */
    struct dti_sync *sync;

    /* Called when an error has ended the outermost run (dti_team_set_stop_report), or NULL. */
    void (*stop_report)(void *argument, const ditto_error *error);
    void *stop_report_argument;

    /* What a poster does while it waits (dti_team_set_poster_work), or NULL. */
    void (*poster_work)(void *argument);
    void *poster_argument;

    /* The strategy to which the team belongs. It is opaque here, and only compared. */
    struct ditto_strategy *strategy;

    /* Waiters 0 .. n-1 are the replicas. Waiter n is a poster that is not replica 0. */
    struct dti_wait_queue wait_queue;
    struct dti_stop stop;

    /* The deadline of the present run, or DTI_NEVER. `go` publishes it. */
    uint64_t run_deadline_ns;

    /* Set by a poster that gives up on a replica. It is read under `lock`, or relaxed as a hint. */
    _Atomic bool poisoned;

    /* See dti_team_interrupt: the number of its calls at present, and whether one has ended the run. */
    _Atomic uint32_t interrupts;
    _Atomic bool is_interrupted;

    /* See dti_team_give_up. */
    _Atomic bool is_given_up;

    /* The number of the last run that was not inside another run. Protected by `lock`. */
    uint64_t outermost;

    /* The number of scopes that have been entered on any thread and not left. */
    _Atomic uint32_t scopes;

    /* One word for each depth of pauses. It is not 0 if a replica refuses to pause. */
    _Atomic uint32_t refused[DTI_PAUSES];

    /* Protected by `lock`. */
    struct dti_dependent *dependents;

    /* The number of producers that iterators have started since the team was created, which is also the
     * number of the next producer. Protected by `lock`. */
    uint32_t producers;

    /* The registry of src/vars. Protected by `lock`, and opaque here. */
    struct dti_registry *variables;
    struct dti_team *servers; /* see dti_team_servers */
    uint32_t first_stream;    /* see dti_team_first_stream */

    /* See dti_team_set_in_use. Protected by `lock`. */
    bool (*is_in_use)(const void *argument);
    const void *in_use_argument;

    /* The turn: at most one cross call runs at a time. */
    pthread_mutex_t lock;

    /* Entered by cross calls, including those that still wait for their turn. */
    struct dti_gate gate;

    /* The number that was posted last. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t go;

    /* The number of the innermost run. relaxed, because `go` publishes it. */
    _Atomic uint64_t run;
    dti_job job;    /* plain, because `go` publishes it */
    void *argument; /* plain, because `go` publishes it */

    /* Used only with options.host_floating. Plain, because `go` publishes it. */
    struct dti_fenv host;

    /* The public function that posted the job. Errors of the replicas name it. */
    const char *function;

    /* The number of nested pauses in the present run. Only replica 0 uses it, or the poster if that is
     * another thread. It is not beside the members that other threads read, because every merge_call would
     * take their cache line from them. */
    alignas(DTI_CACHE_LINE_PAIR) uint32_t pauses;

    /* The number of the run that ended last. It is written by the threads that write `pauses`. */
    uint64_t ended;

    /* The number of the outermost run if dti_team_interrupt may end it, or DTI_GO_NONE. The poster writes
     * it. */
    _Atomic uint64_t interruptible;

    /* pause[k] is an enum dti_pause_state, and belongs to the run that is inside k pauses. */
    _Atomic uint32_t pause[DTI_PAUSES];

    /* The number of replicas that have returned from the present run. Only oversubscribed teams count them.
     * */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t returned;
};

/* A stop that belongs to no run, so that no poster of an inner run clears it. */
#define DTI_FROM_OUTSIDE UINT64_MAX

#define DTI_GO_NONE UINT64_C(0) /* the run number before the first run */

/* A handle is a number and not an address: the number of the team, the lower bits of the number of the run,
 * and the id of the replica. It is never NULL, because teams are numbered from 1. After 2^DTI_HANDLE_RUN_BITS
 * runs, an old handle is valid again. */
enum {
    DTI_HANDLE_ID_BITS = 10, /* DITTO_MAX_REPLICAS */
    DTI_HANDLE_RUN_BITS = sizeof(uintptr_t) > 4 ? 30 : 16,
    DTI_HANDLE_TEAM_BITS = 8 * sizeof(uintptr_t) - DTI_HANDLE_ID_BITS - DTI_HANDLE_RUN_BITS,
};
/* Returns true if a handle is that of a replica of this team, in any run. *replica is then its id. */
bool dti_team_owns_handle(const struct dti_team *team, const ditto_replica *self, uint32_t *replica);

/* The state of the pauses of a run: a pause may begin, a pause is going on, or a pause was refused. */
enum dti_pause_state { DTI_PAUSE_OPEN, DTI_PAUSE_BEGUN, DTI_PAUSE_DECLINED };

/* Returns true if a replica has returned from the last outermost run. The caller then sees all that the
 * replica did (D0 -> D1). */
bool dti_team_has_left(const struct dti_team *team, uint32_t replica);

#endif
