/* src/strategy/strategy.h - the conductor: what the files of this room share. No other room may include it. */
#ifndef DTI_STRATEGY_H
#define DTI_STRATEGY_H

#include <ditto/context.h>
#include <ditto/run.h>
#include <ditto/strategy.h>
#include <ditto/value.h>
#include <ditto/trace.h>

#include "input/input.h"
#include "replicas/replicas.h"
#include "values/buffer_pool.h"
#include "values/values.h"
#include "sync/sync.h"
#include "vars/vars.h"

/* What makes one kind of strategy another: a file per kind. */
struct dti_strategy_kind {
    ditto_kind kind;
    const char *name;
    /* What its options may not say; fills in what they leave open. */
    ditto_status (*check)(ditto_strategy_options *options);
    /* After placing: where variables go (base.variables). */
    ditto_status (*settle)(ditto_strategy *strategy, const ditto_strategy_options *options);
};
extern const struct dti_strategy_kind dti_mirrored_strategy, dti_central_strategy, dti_one_device_strategy,
    dti_default_strategy_kind;

/* What a run calls. In the strategy, not on the caller's stack: a replica that a poisoned run has left may still come
 * for it. */
struct dti_run_call {
    ditto_replica_fn function;
    void *argument;
    const ditto_value *values; /* arguments; NULL: none */
    bool returns;              /* the function may return results, */
    bool wanted;               /* and somebody wants them */
    uint32_t level;            /* runs around it */
    /* of run_steps: NULL function */
    ditto_step_fn step;
    ditto_iterator *iterator;
    bool same_batches;    /* a step with fewer rows is refused */
    uint64_t steps, done; /* done: replica 0's count */
};

/* What one replica brings to a merge_call or an update: written before the meeting, read by others after it. */
struct dti_merge_part {
    alignas(DTI_CACHE_LINE) const ditto_tensor *arguments;
    const char *name;    /* of the variable that it creates, or splits */
    ditto_tensor result; /* of an update of the copy that it owns; dtype 0: none */
};

struct ditto_strategy {
    struct dti_strategy_base base; /* first: see replicas/team.h */
    const struct dti_strategy_kind *kind;
    ditto_placement *placement;
    ditto_topology_counts machine;        /* what the process could use when the strategy was made */
    int32_t caller_node;                  /* where the thread was that made it; -1: unknown */
    struct dti_run_call call[DTI_LEVELS]; /* of the present runs; under the team's turn */
    struct dti_buffer_pool *pool;         /* [replicas] */
    struct dti_values *values;
    struct dti_merge_part *merging; /* [replicas] */
    ditto_strategy *next_left;      /* see strategy.c */
    /* Written in each run and merge_call, so on lines of its own. */
    alignas(DTI_CACHE_LINE_PAIR) uint32_t levels; /* how many runs are going on; whoever posts them */
    ditto_value
        *merged[DTI_LEVELS]; /* what the last merge function gave, until the next, or the end of the run */
};

/* Reads this machine and places the replicas as the options say. *out is the caller's. */
ditto_status dti_strategy_make_placement(const ditto_strategy_options *options,
                                         ditto_topology_counts *machine, ditto_placement **out);
ditto_status dti_strategy_create(const struct dti_strategy_kind *kind, const ditto_strategy_options *options,
                                 ditto_strategy **out);
const struct dti_strategy_kind *dti_strategy_kind_of(ditto_kind kind); /* NULL: none that can be created */
ditto_status dti_strategy_destroy(ditto_strategy *strategy);

/* FORKED, POISONED: then only destroy is allowed. */
ditto_status dti_strategy_check_usable(const ditto_strategy *strategy);

/* -- contexts -- */
ditto_status dti_scope_enter(ditto_strategy *strategy,
                             bool standing); /* standing: until it is cleared (set_default) */
ditto_status dti_scope_leave(ditto_strategy *strategy);
ditto_status dti_scope_clear_standing(void);
void dti_scope_forget(
    const struct dti_team *team); /* leaves this thread's scope of it, however often entered */
/* The one strategy that there always is: made when it is first needed. NULL, with a record: it could not be. */
ditto_strategy *dti_default_strategy(void);
bool dti_is_default(const ditto_strategy *strategy);
/* This thread's replica of the default strategy. NULL as above. */
struct dti_replica *dti_default_replica(void);
void dti_merge_forget_plain(void); /* what its last merge function gave on this thread */

/* -- runs -- */
ditto_status dti_strategy_run(ditto_strategy *strategy, ditto_replica_fn function, void *argument);
/* Between dti_cross_enter and leave: a job of the library's own, whose replicas meet; inside a run too. */
ditto_status dti_meeting_run(ditto_strategy *strategy, dti_job job, void *argument);
/* With values, results and steps as `wish` says. `reduce` names results that come back reduced. */
ditto_status dti_strategy_run_values(ditto_strategy *strategy, const struct dti_run_call *request,
                                     const ditto_run_options *options, uint64_t *steps_done,
                                     ditto_value **result);
/* The run that the calling replica is in; NULL: none (the default strategy's plain replica). */
const struct dti_run_call *dti_current_run_call(void);

/* -- reports -- */
ditto_status dti_strategy_info(ditto_strategy *strategy, uint32_t replica, ditto_replica_info *out);
ditto_status dti_strategy_device_info(ditto_strategy *strategy, uint32_t replica, uint32_t device,
                                      ditto_device_info *out);
ditto_status dti_strategy_describe(ditto_strategy *strategy, struct dti_text *text);

/* -- numbers -- */
/* SHAPE: it has not one element. UNSUPPORTED: complex. */
ditto_status dti_tensor_number(const ditto_tensor *tensor, double *out);
void dti_to_f64(double *out, ditto_dtype dtype, const void *in, size_t count); /* real dtypes */
/* Any dtype; infinities become the largest and the smallest integers. */
void dti_number_fill(ditto_dtype dtype, void *out, size_t count, float value);

/* Input as the conductor sees it. */

/* -- Cross context -- */
ditto_status dti_input_next_value(ditto_iterator *iterator,
                                  ditto_value **out); /* END_OF_INPUT: *out is not set */
/* Lines about the iterators of a strategy, with its turn taken. */
void dti_input_describe(const struct dti_team *team, struct dti_text *text);

/* What replicas have recorded. The team's turn is taken, and no run is going on. */

ditto_status dti_trace_times(const struct dti_team *team, uint32_t index, ditto_operation_times *out);
ditto_status dti_trace_statistics(const struct dti_team *team, struct dti_text *text);
ditto_status dti_trace_write(const struct dti_team *team, const char *path);

#endif
