/* src/strategy/strategy.h - the structs and functions that the files of the strategy module share. */
#ifndef DTI_STRATEGY_H
#define DTI_STRATEGY_H

#include <ditto/run.h>
#include <ditto/trace.h>

#include "replicas/team/replica.h"
#include "replicas/team/team.h"
#include "vars/vars.h"

/* A kind of strategy. */
struct dti_strategy_kind {
    ditto_strategy_kind kind;
    const char *name;

    /* True if the number of replicas must be 1. */
    bool has_one_replica;

    /* True if variables have one copy, on one node, which the options may name. */
    bool is_central;

    /* True if the replicas form workers, and variables are parameters. */
    bool has_workers;
};
extern const struct dti_strategy_kind dti_mirrored_strategy, dti_central_strategy, dti_one_device_strategy,
    dti_parameter_server_strategy, dti_default_strategy_kind;

/* The function that a run calls, with its arguments. It is stored in the strategy and not on the caller's
 * stack, because a replica that is still in a poisoned run may read it later. */
struct dti_run_call {
    ditto_replica_fn function;
    void *argument;
    const ditto_value *values; /* the arguments of the function, or NULL */
    bool returns;              /* the function may return results */
    bool wanted;               /* the caller takes the results */
    uint32_t level;            /* the number of runs that contain this one */

    /* For run_steps. `function` is NULL then. */
    ditto_step_fn step;
    ditto_iterator *iterator;
    bool same_batches; /* a step with fewer rows is an error */
    uint64_t steps;
    uint64_t done; /* the number of steps that replica 0 has made */
};

/* The part of one replica in a merge_call or an update. The replica writes each member before a meeting, and
 * other replicas read the member after that meeting. */
struct dti_merge_part {
    alignas(DTI_CACHE_LINE) const ditto_tensor *arguments;
    const char *name; /* the name of the variable that the replica creates */

    /* The result of an update of the copy that the replica owns. Its dtype is 0 if there is no result. */
    ditto_tensor result;
};

/* The workers and the parameter servers of a strategy (parameter_server.c). */
struct dti_workers {
    uint32_t count;            /* of workers */
    uint32_t replicas;         /* of each worker */
    ditto_strategy **strategy; /* [count] the mirrored strategy of each worker */
    ditto_placement **placed;  /* [count] their placements, until the strategies take them over */
    uint32_t limit_ms;         /* of a function, or DITTO_FOREVER */
    ditto_placement *servers;  /* where the threads of the parameter servers are */
    uint32_t num_nodes, *node; /* [num_nodes] the parameter nodes */

    /* The coordinator of the strategy, or NULL. */
    _Atomic(struct ditto_coordinator *) coordinator;

    /* Writes what the coordinator does (ditto_strategy_diagnose). Set before the first coordinator is. */
    void (*_Atomic diagnose)(const struct ditto_coordinator *coordinator, struct dti_text *text);
    char *diagnosis; /* the text, of diagnosis_bytes */
    size_t diagnosis_bytes;
};

struct ditto_strategy {
    struct dti_strategy_base base; /* must be the first member, see replicas/team/team.h */
    const struct dti_strategy_kind *kind;

    /* Of all replicas. If there are workers, the team of the strategy is that of the parameter servers, and
     * the replicas are in the teams of the workers. */
    ditto_placement *placement;
    struct dti_workers *workers; /* NULL with other kinds */

    /* [num_nodes] The NUMA nodes that hold variables, each once. The default strategy has none. */
    uint32_t num_nodes, *node;

    /* If this is the strategy of a worker that has a coordinator: the worker (src/coordinator). Set while no
     * function runs. */
    struct dti_function_worker *worker;
    uint64_t told_rows;      /* by dti_input_chosen_rows */
    struct dti_hosts *hosts; /* NULL if the strategy has one host */

    /* Numbers of packages, nodes, cores and PUs, and the CPU quota, when the strategy was made. */
    ditto_topology_counts machine;

    /* The NUMA node of the thread that made the strategy, or -1 if it is not known. */
    int32_t caller_node;
    struct dti_run_call call[DTI_LEVELS]; /* the current runs; protected by the turn */
    struct dti_merge_part *merging;       /* [replicas] */
    ditto_strategy *next_left;            /* see strategy.c */

    /* The number of current runs, which is used by the thread that posts them. It and `merged` are written in
     * each run and merge_call, and therefore have their own cache lines. */
    alignas(DTI_CACHE_LINE_PAIR) uint32_t levels;

    /* The result of the last merge function of each run. It is valid until the next merge_call, or the end of
     * the run. */
    ditto_value *merged[DTI_LEVELS];
};

/* Reads the topology of this machine and places the replicas as the options say. The caller owns *topology,
 * which may be set after an error too, and *out. */
ditto_status dti_strategy_make_placement(const struct dti_strategy_kind *kind,
                                         const ditto_strategy_options *options, ditto_topology **topology,
                                         ditto_placement **out);

/* -- parameter_server.c -- */

/* Checks the options for workers, and decides where the parameters are. The placement of the replicas is
 * known. Sets strategy->workers, also after an error of a later step. */
ditto_status dti_workers_plan(ditto_strategy *strategy, const ditto_strategy_options *options,
                              const ditto_topology *topology);
/* Returns the options of the team of the parameter servers. */
ditto_strategy_options dti_server_options(const ditto_strategy_options *options);
/* Creates the strategies of the workers. The team of the servers exists. */
ditto_status dti_workers_make(ditto_strategy *strategy, const ditto_strategy_options *options);
/* Writes what the coordinator and its workers do at present. Takes no lock. */
const char *dti_workers_diagnose(struct dti_workers *workers);
/* Takes the turns of all workers, for a call that holds the turn of the strategy. taken[i] is given to
 * dti_workers_give_turns. Returns BUSY if functions are in the queue or being executed. */
ditto_status dti_workers_take_turns(const ditto_strategy *strategy, bool *taken);
void dti_workers_give_turns(const ditto_strategy *strategy, const bool *taken);
/* Destroys the strategies of the workers. Returns POISONED if a replica never returned. */
ditto_status dti_workers_destroy(ditto_strategy *strategy);
/* Frees what dti_workers_plan has allocated. NULL is allowed. */
void dti_workers_free(struct dti_workers *workers);
/* Writes a table of the workers, and what the plan says about a replica. */
void dti_workers_describe(const ditto_strategy *strategy, struct dti_text *text);
ditto_status dti_workers_info(const ditto_strategy *strategy, uint32_t replica, uint32_t device,
                              ditto_replica_info *out);

/* Reads a number from a variable of the environment. If the variable is not set, the number stays as it is.
 * Fails with INVALID if the value is no number from `least` to `most`. `what` says in the message what the
 * number is, for example "milliseconds". */
ditto_status dti_environment_number(const char *name, int64_t least, int64_t most, const char *what,
                                    int64_t *number);
/* Reads one of `words` from a variable of the environment, and sets its index. If the variable is not set,
 * the index stays as it is. Fails with INVALID if the value is none of the words. */
ditto_status dti_environment_word(const char *name, const char *const *words, int num_words, int *index);

/* Sets `wait`, `spin_us` and `has_spin_us` from the options and the environment. Fails with RANGE or
 * INVALID if one of them is not valid, or if they contradict each other. */
ditto_status dti_waiting_read(const ditto_strategy_options *options, struct dti_team_options *out);

/* Writes a line that says how the threads of a team wait. */
void dti_waiting_describe(const struct dti_team *team, struct dti_text *text);

ditto_status dti_strategy_create(const struct dti_strategy_kind *kind, const ditto_strategy_options *options,
                                 ditto_strategy **out);
/* Creates a strategy on one host with the given placement, which it takes over, also if it fails. The options
 * have been checked. */
ditto_status dti_strategy_create_placed(const struct dti_strategy_kind *kind,
                                        const ditto_strategy_options *options,
                                        const ditto_topology_counts *machine, ditto_placement *placement,
                                        ditto_strategy **out);
/* Returns NULL if the kind cannot be created. */
const struct dti_strategy_kind *dti_strategy_kind_of(ditto_strategy_kind kind);
ditto_status dti_strategy_destroy(ditto_strategy *strategy);

/* -- contexts -- */
/* Enters the strategy's scope on this thread. A standing scope, which ditto_set_default enters, lasts until
 * dti_scope_clear_standing ends it. */
ditto_status dti_scope_enter(ditto_strategy *strategy, bool standing);
ditto_status dti_scope_leave(ditto_strategy *strategy);
ditto_status dti_scope_clear_standing(void);
/* Ends the scopes of the team that this thread entered last, even if they were entered several times. */
void dti_scope_forget(const struct dti_team *team);
/* Finds the default strategy, which is made when it is first needed. */
ditto_status dti_default_strategy(ditto_strategy **out);
bool dti_is_default(const ditto_strategy *strategy);
/* Returns this thread's replica of the default strategy. If that fails, returns NULL and records an error. */
struct dti_replica *dti_default_replica(void);
/* Drops the result of this thread's last merge function in the default strategy. */
void dti_merge_forget_plain(void);

/* -- runs -- */
ditto_status dti_strategy_run(ditto_strategy *strategy, ditto_replica_fn function, void *argument);
/* Makes the run that `request` describes, with arguments, results and steps. options->reduce names the
 * results that are returned reduced. */
ditto_status dti_strategy_run_values(ditto_strategy *strategy, const struct dti_run_call *request,
                                     const ditto_run_options *options, uint64_t *steps_done,
                                     ditto_value **result);
/* Returns the run that the calling replica is in. Returns NULL for a thread's replica of the default
 * strategy. */
const struct dti_run_call *dti_current_run_call(void);

/* -- reports -- */
ditto_status dti_strategy_info(ditto_strategy *strategy, uint32_t replica, uint32_t device,
                               ditto_replica_info *out);
ditto_status dti_strategy_describe(ditto_strategy *strategy, struct dti_text *text);

/* -- input, in cross-replica context -- */
/* Takes the next batch of each replica as a value. Does not set *out if it returns DITTO_END_OF_INPUT. */
ditto_status dti_input_next_value(ditto_iterator *iterator, ditto_value **out);
/* Writes a line about each iterator of the strategy. The caller has the turn. */
void dti_input_describe(const struct dti_team *team, struct dti_text *text);

/* -- traces, which replicas have recorded. The caller has the turn, and no run is active. --
 *
 * The first function returns the sums of one operation, the second writes a table of all sums, and the third
 * writes all events that were kept to a file. They return NOT_FOUND if nothing was recorded. */
ditto_status dti_trace_times(const ditto_strategy *strategy, uint32_t index, ditto_operation_counters *out);
ditto_status dti_trace_statistics(const ditto_strategy *strategy, struct dti_text *text);
ditto_status dti_trace_write(const ditto_strategy *strategy, const char *path);

#endif
