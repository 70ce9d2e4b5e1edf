/* src/vars/optimizer/started_step.c - a step of an optimizer whose parts are started one by one.
 *
 * Each part is a started operation (sync/pending/pending.h), which reduces the gradients of some variables
 * into a target. Without clipping the target updates the variables. With clipping it stores the aggregated
 * gradients, and dti_step_finish does the rest of the step. The user's own rule is called in dti_step_finish
 * only, because a started operation may be worked on in any call that waits. The parts of such a step reduce
 * nothing. They are started all the same, so that the replicas' calls are compared. */
#include "base/numbers/checksum.h"
#include "vars/optimizer/optimizer.h"
#include "vars/registry/registry.h"
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>

struct part {
    struct dti_applying applying;
    struct dti_target target;
    uint64_t number; /* of the started operation */
};

/* The step of one replica. The threads of the default strategy share one step, as they share the variables:
 * each call has the turn, and its part is done when it returns. */
struct dti_started_step {
    bool is_started;

    /* The run in which the step was started. If the run has failed, the step was given up. It is not used in
     * the default strategy. */
    uint64_t run;

    struct dti_optimizer_step step;

    /* The number of variables that were given, and which of the optimizer's variables they are. */
    uint32_t given;
    bool *is_given;

    ditto_tensor *gradient; /* of each variable */
    ditto_list_item *list;  /* of each item of the optimizer */

    /* The parts that were started. The first `waited` of them have been waited for. There is room for one
     * part for each variable. */
    uint32_t parts, waited;
    struct part *part;
};

void dti_step_free(struct dti_started_step *s)
{
    if (s == NULL)
        return;
    free(s->is_given);
    free(s->gradient);
    free(s->list);
    free(s->part);
    free(s);
}

static bool is_default_strategy(const struct dti_replica *self)
{
    return dti_team_options(self->team)->plain;
}

/* Returns true if there is a step that was neither finished nor given up. A merge function cannot be called
 * while a step is open, so the run is never one around the present one. */
static bool is_open(const struct dti_replica *self, const struct dti_started_step *s)
{
    return s != NULL && s->is_started && (is_default_strategy(self) || s->run == dti_sync_run_number(self));
}

static struct dti_started_step *allocate(const ditto_optimizer *o)
{
    struct dti_started_step *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->is_given = calloc(o->count, sizeof *s->is_given);
    s->gradient = calloc(o->count, sizeof *s->gradient);
    s->list = calloc(o->items + 1, sizeof *s->list);
    s->part = calloc(o->count, sizeof *s->part);
    if (s->is_given != NULL && s->gradient != NULL && s->list != NULL && s->part != NULL)
        return s;
    dti_step_free(s);
    return NULL;
}

/* Begins a step. Its number is read here. That is no race, because the last step has ended, and this step
 * changes the number only in a part that every replica has started. */
static ditto_status begin_step(struct dti_replica *self, ditto_optimizer *o, double learning_rate)
{
    struct dti_started_step *s = o->started[self->index];
    int64_t steps = *(const int64_t *)o->iterations->copy[0].data;
    if (s == NULL)
        s = o->started[self->index] = allocate(o);
    if (s == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a started step of optimizer \"%s\"", o->name);
    s->is_started = true;
    s->run = dti_sync_run_number(self);
    s->given = s->parts = s->waited = 0;
    memset(s->is_given, 0, o->count * sizeof *s->is_given);
    struct dti_fenv saved = dti_fenv_enter();
    s->step = dti_optimizer_step_of(&o->options, learning_rate, steps + 1);
    dti_fenv_leave(saved);
    return DITTO_OK;
}

static ditto_status wait_for_oldest(struct dti_replica *self, struct dti_started_step *s)
{
    DTI_TRY(dti_target_reduction_wait(self, s->part[s->waited].number));
    s->waited++;
    return DITTO_OK;
}

/* Starts the operation of the next part, with the gradients in s->gradient. */
static ditto_status start_operation(struct dti_replica *self, ditto_optimizer *o, struct dti_started_step *s,
                                    uint32_t first, uint32_t count)
{
    static const ditto_list_item nothing = { .dtype = DITTO_F32 };
    bool calls = o->options.rule == DITTO_RULE_FUNCTION, clips = o->options.clip_norm > 0;
    struct part *part = &s->part[s->parts];
    size_t first_item = o->first_item[first], items = o->first_item[first + count] - first_item;
    part->applying = (struct dti_applying){
        .optimizer = o, .step = s->step, .gradient = s->gradient, .first_item = first_item
    };
    part->target = (struct dti_target){ .finish = clips ? dti_applying_keep : dti_applying_finish,
                                        .context = &part->applying,
                                        .copy_set = (clips ? o->no_copies : o->copies_of_item) + first_item };
    struct dti_target_reduction targeted = { .item = calls ? &nothing : s->list + first_item,
                                             .items = calls ? 1 : items,
                                             .op = o->options.op,
                                             .name = "ditto_apply_start",
                                             .object = o->name,
                                             .target = &part->target };
    memcpy(&targeted.hash, &s->step.learning_rate, sizeof targeted.hash);
    targeted.hash = dti_hash_word(targeted.hash ^ o->stamp, (uint64_t)first << 32 | count);
    dti_applying_fill(&part->applying, items, s->list + first_item);
    return dti_target_reduction_start(self, &targeted, &part->number);
}

ditto_status dti_step_start(struct dti_replica *self, ditto_optimizer *o, uint32_t first, uint32_t count,
                            const ditto_tensor *gradients, double learning_rate)
{
    bool begins = !is_open(self, o->started[self->index]);
    DTI_TRY(dti_check_outside_function(self, "ditto_apply_start"));
    DTI_TRY(dti_step_check_others(self, o, first, count));
    if (begins)
        DTI_TRY(begin_step(self, o, learning_rate));
    struct dti_started_step *s = o->started[self->index];
    if (s->step.learning_rate != learning_rate)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "learning_rate = %g, but this step was started with %g: all parts of a step have the "
                        "same",
                        learning_rate, s->step.learning_rate);
    for (uint32_t k = first; k < first + count; k++)
        if (s->is_given[k])
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "the gradient of variable %u, \"%s\", was given to this step already: call "
                            "ditto_apply_finish before the next step",
                            k, o->variable[k]->name);
    memcpy(&s->gradient[first], gradients, count * sizeof *gradients);
    ditto_status status = start_operation(self, o, s, first, count);
    if (status != DITTO_OK) {
        if (begins)
            s->is_started = false;
        return status;
    }
    if (begins && !is_default_strategy(self))
        dti_sync_step_begins(self);
    s->parts++;
    s->given += count;
    memset(&s->is_given[first], true, count);
    dti_optimizer_changes(self, o, first, count);
    /* In the default strategy each thread has a team of its own, and another thread may go on with the step,
     * or destroy the optimizer. No operation may be left then that uses its memory. */
    return is_default_strategy(self) ? wait_for_oldest(self, s) : DITTO_OK;
}

ditto_status dti_step_finish(struct dti_replica *self, ditto_optimizer *o, double *norm)
{
    struct dti_started_step *s = o->started[self->index];
    double gradient_norm = 0;
    DTI_TRY(dti_check_outside_function(self, "ditto_apply_finish"));
    if (!is_open(self, s))
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "no step of optimizer \"%s\" was started in this run: call ditto_apply_start first",
                        o->name);
    for (uint32_t k = 0; s->given < o->count && k < o->count; k++)
        if (!s->is_given[k])
            return DTI_FAIL(
                DITTO_ERR_INVALID,
                "the gradients of %u of %u variables were given to this step, and that of \"%s\" was not: "
                "call ditto_apply_start for it first",
                s->given, o->count, o->variable[k]->name);
    while (s->waited < s->parts)
        DTI_TRY(wait_for_oldest(self, s));
    struct dti_applying applying = { .optimizer = o, .step = s->step, .gradient = s->gradient };
    if (o->options.rule == DITTO_RULE_FUNCTION) {
        DTI_TRY(dti_apply(self, o, s->gradient, s->step.learning_rate, norm));
    } else {
        struct dti_fenv saved = dti_fenv_enter();
        ditto_status status = o->options.clip_norm > 0 ? dti_apply_kept(self, &applying, &gradient_norm)
                              : norm != NULL           ? dti_measure_norm(self, &applying, &gradient_norm)
                                                       : DITTO_OK;
        dti_fenv_leave(saved);
        DTI_TRY(status);
        if (norm != NULL)
            *norm = gradient_norm;
    }
    s->is_started = false;
    if (!is_default_strategy(self))
        dti_sync_step_ends(self);
    return DITTO_OK;
}

/* -- what a started step forbids -- */

ditto_status dti_step_check_none(const struct dti_replica *self, const ditto_optimizer *o)
{
    if (!is_open(self, o->started[self->index]))
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_INVALID,
                    "a step of optimizer \"%s\" has been started: call ditto_apply_finish first", o->name);
}

static bool has_slot(const ditto_optimizer *o, uint32_t k, const ditto_variable *v)
{
    for (uint32_t s = 0; s < o->slots; s++)
        if (o->slot[(size_t)k * o->slots + s] == v)
            return true;
    return false;
}

/* Checks that v is neither one of the variables that were given to a started step of o, nor a slot of one. */
static ditto_status check_not_given(const struct dti_replica *self, const ditto_optimizer *o,
                                    const ditto_variable *v)
{
    const struct dti_started_step *s = o->started[self->index];
    for (uint32_t k = 0; is_open(self, s) && k < o->count; k++)
        if (s->is_given[k] && (o->variable[k] == v || (v->optimizer_slot && has_slot(o, k, v))))
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "\"%s\" is being updated by a step of optimizer \"%s\", which has been started: "
                            "call ditto_apply_finish first",
                            v->name, o->name);
    return DITTO_OK;
}

ditto_status dti_step_check_variable(const struct dti_replica *self, const ditto_variable *v)
{
    const ditto_optimizer *o = *dti_registry_optimizers(v->team);
    for (; o != NULL; o = o->next)
        DTI_TRY(check_not_given(self, o, v));
    return DITTO_OK;
}

ditto_status dti_step_check_others(const struct dti_replica *self, const ditto_optimizer *o, uint32_t first,
                                   uint32_t count)
{
    const ditto_optimizer *other = *dti_registry_optimizers(o->iterations->team);
    for (; other != NULL; other = other->next)
        for (uint32_t k = first;
             other != o && is_open(self, other->started[self->index]) && k < first + count; k++)
            DTI_TRY(check_not_given(self, other, o->variable[k]));
    return DITTO_OK;
}

ditto_status dti_step_check_no_step(const struct dti_replica *self, const char *what)
{
    if (is_default_strategy(self)) /* parts are done when their calls return */
        return DITTO_OK;
    for (const ditto_optimizer *o = *dti_registry_optimizers(self->team); o != NULL; o = o->next)
        if (is_open(self, o->started[self->index]))
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "%s while a step of optimizer \"%s\" is started: call ditto_apply_finish first",
                            what, o->name);
    return DITTO_OK;
}
