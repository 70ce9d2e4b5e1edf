/* src/vars/optimizer/optimizer.h - an optimizer, which updates a list of variables and keeps its rule's state
 * in slots. */
#ifndef DTI_OPTIMIZER_H
#define DTI_OPTIMIZER_H

#include "replicas/team/dependent.h"
#include "sync/sync.h"
#include "vars/optimizer/optimizer_step.h"

/* An item of an update. It is one piece of one of the variables. */
struct dti_optimizer_item {
    uint32_t variable, piece;
};

/* The copy set of an item whose copies may differ. It is empty, because the target's `finish` function
 * updates each copy from that copy's own value. */
#define DTI_COPIES_WRITTEN_BY_FINISH ((struct dti_copy_set){ 0, NULL })

struct dti_started_step; /* started_step.c */

struct ditto_optimizer {
    /* Must be the first member. Through it the team notifies the optimizer of the strategy's end. */
    struct dti_dependent dependent;

    /* Defaults are filled in. options.name points to `name`. */
    ditto_optimizer_options options;

    char *name;
    uint64_t stamp;            /* as that of a variable */
    ditto_optimizer *next;     /* in the strategy's list of optimizers */
    uint32_t count;            /* of variables */
    ditto_variable **variable; /* [count] */

    /* [count * slots] The slots of variable k begin at index k * slots. */
    ditto_variable **slot;

    /* [count] The aggregated gradients, which are hidden variables and lie where slots lie. Without clipping
     * the elements of this array are NULL. Of parameters: the gradients that are gathered (accumulate), or
     * NULL. */
    ditto_variable **sum;

    /* [items] Of parameters: the calls since the last step of each item. They are as many as the gradients
     * that are gathered in it, except for calls that did not get the lock of its shard in time. */
    _Atomic uint32_t *gathered_in;

    /* Of parameters: the number of calls since the last step that was counted, under the lock of
     * `iterations`. */
    uint32_t gathered;

    /* Of parameters: how old the gradients of calls with read_steps were, as in ditto_staleness_counters.
     * Written under the lock of `iterations`, and read without it. */
    struct {
        _Atomic uint64_t calls, dropped, sum, largest, histogram[DITTO_HISTOGRAM_LENGTH];
    } staleness;

    uint32_t slots; /* of each variable */

    /* [count] The settings of each variable. Both are NULL if all variables have those of the options. */
    double *rate_factor, *weight_decay;
    double largest_factor; /* of the learning rate; 1 if there are none */

    /* The variable that counts the steps. Its team is NULL after the strategy was destroyed. */
    ditto_variable *iterations;

    /* The first team_items items are those of variables that are not sliced. All replicas reduce them
     * together. */
    size_t items, team_items;
    struct dti_optimizer_item *item; /* [items] */
    size_t *first_item;              /* [count + 1] The items of variable k begin at first_item[k]. */

    /* [sliced] The variables that are sliced. Those that are sliced along one grouping follow each other. */
    uint32_t *sliced_variable;
    uint32_t sliced;

    struct dti_copy_set *copies_of_item; /* [items] */
    struct dti_copy_set *no_copies;      /* [items], all empty */

    /* The index of the first item that has elements, or `items` if there is none. Without clipping and sliced
     * variables, the replica that updates the first element of this item also counts the step. Otherwise
     * replica 0 counts it. */
    size_t first_nonempty_item;

    /* [blocks] The sum of squares of each block, from which the norm is computed. */
    double *block_sum;

    size_t blocks; /* of all variables together */

    /* [replicas] The step that each replica has started, or NULL. Only the replica itself uses it, except in
     * cross-replica context. */
    struct dti_started_step **started;
    uint32_t replicas;
};

/* Returns the end of the sliced variables that are sliced along the same grouping as number i of them. */
uint32_t dti_optimizer_sliced_alike(const ditto_optimizer *o, uint32_t i);

/* One step of the optimizer, on one replica. */
struct dti_applying {
    ditto_optimizer *optimizer;
    struct dti_optimizer_step step;
    const ditto_tensor *gradient; /* [count], this replica's */

    /* The items that are reduced together begin with this one. */
    size_t first_item;
};

/* -- apply.c -- */

/* Fills in the list with this replica's gradients of items [first_item, first_item + count). */
void dti_applying_fill(const struct dti_applying *a, size_t count, ditto_list_item *list);

/* Counts a change of variables [first, first + count) and of their slots. */
void dti_optimizer_changes(const struct dti_replica *self, const ditto_optimizer *o, uint32_t first,
                           uint32_t count);

/* The `finish` of a target: updates elements of an item. */
dti_target_finish_fn dti_applying_finish;

/* Returns the step of the variable of an item: &a->step, or *own if variables differ in their settings. */
const struct dti_optimizer_step *dti_applying_step(const struct dti_applying *a, size_t item,
                                                   struct dti_optimizer_step *own);

/* Fills in `range` for elements [first, *end) of an item, except the members that the step sets. The
 * elements of each slot must be contiguous, so *end is reduced to the end of the piece of a slot if that
 * comes first. */
void dti_applying_range(const struct dti_applying *a, size_t item, size_t first, size_t *end,
                        ditto_rule_range *range);

/* Computes the new values of elements [first, first + count) of an item from those of a replica's component,
 * and from the aggregated gradient in `tile`. `out` may be the component. */
void dti_applying_step_all(const struct dti_applying *a, uint32_t replica, size_t item, size_t first,
                           size_t count, const void *tile, void *out);

/* Updates elements [first, end) of an item whose components may differ. Each copy is updated from its own
 * value, all with the same gradient, which begins with element `first`. The slots change once. */
void dti_apply_to_each(const struct dti_applying *a, size_t item, size_t first, size_t end,
                       const void *gradient);

/* Takes one step. Collective, called on the replica's own thread. The arguments have been checked. If norm is
 * not NULL, the global norm of the aggregated gradients, before clipping, is stored there. */
ditto_status dti_apply(struct dti_replica *self, ditto_optimizer *o, const ditto_tensor *gradients,
                       double learning_rate, double *norm);

/* -- slice_step.c -- */

/* Reduces the gradients of the sliced variables over the replicas that mirror their slices, and updates the
 * slices, or with clipping stores the sums. Without clipping it also counts the step. Collective. */
ditto_status dti_apply_slices(struct dti_replica *self, struct dti_applying *a);

/* -- clip.c -- */

/* The `finish` of a target without copies: stores elements of the aggregated gradients in the optimizer's
 * `sum`. */
dti_target_finish_fn dti_applying_keep;

/* The rest of a step with clipping by the global norm: computes the norm of the stored gradients, and then
 * updates the variables. Collective. */
ditto_status dti_apply_kept(struct dti_replica *self, struct dti_applying *a, double *norm);

/* Computes the norm of the aggregated gradients without storing them. It has the same bits as with clipping.
 * Collective. */
ditto_status dti_measure_norm(struct dti_replica *self, struct dti_applying *a, double *norm);

/* Computes the norm of gradients that are already aggregated, on one replica alone. It has the same bits as
 * dti_measure_norm. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_norm_of_gradients(struct dti_replica *self, const ditto_optimizer *o,
                                   const ditto_tensor *gradients, double *norm);

/* Multiplies values of f32 or f64 by the factor of clipping. */
void dti_scale_gradient(ditto_dtype dtype, double factor, void *values, size_t count);

/* -- parameter_step.c -- */

/* Returns the number of steps. Of parameters it is read under the lock. */
ditto_status dti_optimizer_steps(const ditto_optimizer *o, int64_t *steps);

/* Reads how old the gradients were. Any thread */
void dti_optimizer_staleness(const ditto_optimizer *o, ditto_staleness_counters *out);

/* Takes one step on parameters. Collective among the replicas of the worker alone. The arguments have been
 * checked. */
ditto_status dti_parameter_step(struct dti_replica *self, ditto_optimizer *o, const ditto_tensor *gradients,
                                const ditto_apply_options *options);

/* -- started_step.c: a step whose parts are started one by one -- */

/* Starts the part of a step that updates variables [first, first + count). Collective. The arguments have
 * been checked. `gradients` are those of these variables. Other errors: those of ditto_apply_start. */
ditto_status dti_step_start(struct dti_replica *self, ditto_optimizer *o, uint32_t first, uint32_t count,
                            const ditto_tensor *gradients, double learning_rate);

/* Waits for all parts, and clips and updates if the optimizer clips. Collective. */
ditto_status dti_step_finish(struct dti_replica *self, ditto_optimizer *o, double *norm);

/* Returns INVALID if the replica has started a step of the optimizer and not finished it. */
ditto_status dti_step_check_none(const struct dti_replica *self, const ditto_optimizer *o);

/* Returns INVALID if the replica has started a step of another optimizer that updates one of the variables
 * [first, first + count) of o, and not finished it. */
ditto_status dti_step_check_others(const struct dti_replica *self, const ditto_optimizer *o, uint32_t first,
                                   uint32_t count);

/* Frees the step of a replica, or does nothing if it is NULL. */
void dti_step_free(struct dti_started_step *s);

/* -- optimizer.c -- */

/* Creates an optimizer. Cross context. The arguments have been checked. The errors are those of
 * ditto_optimizer_create. */
ditto_status dti_optimizer_create(ditto_variable *const *variables, uint32_t count,
                                  const ditto_optimizer_options *options, ditto_optimizer **out);

/* Destroys the optimizer. Returns DITTO_ERR_BUSY if a call on it or on one of its slots has not
 * returned. */
ditto_status dti_optimizer_destroy(ditto_optimizer *o);

/* Allocates the sums of squares that the norm is computed from. Returns DITTO_ERR_NO_MEMORY. In clip.c. */
ditto_status dti_clip_make(ditto_optimizer *o);

#endif
