/* src/vars/optimizer/optimizer.h - an optimizer: its variables as one row of items, and what its rule remembers of them. */
#ifndef DTI_OPTIMIZER_H
#define DTI_OPTIMIZER_H

#include "vars/optimizer/optimizer_step.h"
#include "vars/vars.h"

/* An item of an update: a piece of one of the variables. */
struct dti_optimizer_item {
    uint32_t variable, piece;
};

/* Of an item whose copies may differ: `finish` writes each of them from its own value. */
#define DTI_COPIES_WRITTEN_BY_FINISH ((struct dti_copy_set){ 0, NULL })

struct ditto_optimizer {
    struct dti_dependent dependent;  /* first; tells when the strategy goes */
    ditto_optimizer_options options; /* without zeros that stand for defaults; its name is the object's own */
    char *name;
    ditto_optimizer *next; /* of its strategy */
    uint32_t count;
    ditto_variable **variable; /* [count] */
    ditto_variable **slot;     /* [count * slots] of variable k the slots k * slots and following */
    ditto_variable *
        *sum; /* [count] with clipping: the aggregated gradients, as slots lie; no user sees them */
    uint32_t slots;
    ditto_variable *iterations; /* alive as long as the strategy is */
    size_t items;
    struct dti_optimizer_item *item;                 /* [items] */
    struct dti_copy_set *copies_of_item, *no_copies; /* [items] */
    size_t ticking; /* the first item that has elements; its first one counts the step. items: none has */
    double *block;  /* for the norm: a sum of squares for each block of each variable */
    size_t blocks;
};

/* One step, as one replica takes it. */
struct dti_applying {
    ditto_optimizer *optimizer;
    struct dti_optimizer_step step;
    const ditto_tensor *gradient; /* [count] */
};
/* What a rule is given of elements [first, end) of an item, but for the gradient; at most to the end of the slots' piece: *end is cut there. */
void dti_applying_range(const struct dti_applying *a, size_t item, size_t first, size_t *end,
                        ditto_rule_range *range);

/* Elements [first, end) of an item whose components may differ. Each copy is changed from its own value, with
 * the same gradient, which begins with element `first`. The slots change once. */
void dti_apply_to_each(const struct dti_applying *a, size_t item, size_t first, size_t end,
                       const void *gradient);

/* The replica's own thread: collective. The arguments have been checked. norm NULL: not wanted. */
ditto_status dti_apply(struct dti_replica *self, ditto_optimizer *o, const ditto_tensor *gradients,
                       double learning_rate, double *norm);
ditto_status dti_apply_clipped(struct dti_replica *self, struct dti_applying *a,
                               const struct dti_target_reduction *targeted, struct dti_deadline *deadline,
                               double *norm); /* clip.c */
/* The norm of the aggregated gradients, which nobody keeps. The same bits as with clipping. clip.c */
ditto_status dti_measure_norm(struct dti_replica *self, struct dti_applying *a, struct dti_deadline *deadline,
                              double *norm);

/* Cross context. Arguments checked; errors as ditto_optimizer_create. */
ditto_status dti_optimizer_create(ditto_variable *const *variables, uint32_t count,
                                  const ditto_optimizer_options *options, ditto_optimizer **out);
ditto_status dti_optimizer_destroy(ditto_optimizer *o); /* BUSY: another thread is in a call on it */
/* Where optimizers write depends on whether the components of a variable may differ, and that has changed. With
 * the turn, while no replica is in ditto_apply. */
void dti_optimizers_see_copies(const ditto_variable *v);

/* Clipping by the global norm: the aggregated gradient is kept, measured, and then applied. */

ditto_status dti_clip_make(ditto_optimizer *o); /* room for sums of squares. NO_MEMORY */

#endif
