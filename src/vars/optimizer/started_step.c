/* src/vars/optimizer/started_step.c - a step of an optimizer whose parts are started one by one.
 *
 * Each part is a started operation (sync/pending/pending.h), which reduces the gradients of some variables
 * into a target. Without clipping the target updates the variables. With clipping it stores the aggregated
 * gradients, and dti_step_finish does the rest of the step. The user's own rule is called in dti_step_finish
 * only, because a started operation may be worked on in any call that waits. Its parts reduce nothing, so
 * that the replicas' calls are still compared. */
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

/* The step of one replica. */
struct dti_started_step {
    /* The replica that has started the step, or NULL if there is no step. For the default strategy each
     * thread is a replica. */
    const struct dti_replica *replica;

    /* The run in which it was started. If the run has failed, the step was given up. */
    uint64_t run;

    struct dti_optimizer_step step;
    uint32_t given;         /* variables whose part was started */
    bool *is_given;         /* [variables] */
    ditto_tensor *gradient; /* [variables] */
    ditto_list_item *list;  /* [items] */
    uint32_t parts;
    uint32_t waited;   /* parts, the oldest first */
    struct part *part; /* [variables], the capacity */
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

/* Returns true if the replica has a step that neither it nor a failed run has ended. */
static bool is_open(const struct dti_replica *self, const struct dti_started_step *s)
{
    return s != NULL && s->replica != NULL && dti_sync_is_in_run(self, s->run);
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
static ditto_status begin(struct dti_replica *self, ditto_optimizer *o, double learning_rate)
{
    struct dti_started_step *s = o->started[self->id];
    int64_t steps = *(const int64_t *)o->iterations->copy[0].data;
    if (s == NULL)
        s = o->started[self->id] = allocate(o);
    if (s == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a started step of optimizer \"%s\"", o->name);
    s->replica = self;
    s->run = dti_sync_run_number(self);
    s->given = s->parts = s->waited = 0;
    memset(s->is_given, 0, o->count * sizeof *s->is_given);
    struct dti_fenv saved = dti_fenv_enter();
    s->step = dti_optimizer_step_of(&o->options, learning_rate, steps + 1);
    dti_fenv_leave(saved);
    return DITTO_OK;
}

/* Checks that the call goes on with the replica's step, in the same run and on the same thread. */
static ditto_status check_step(const struct dti_replica *self, const ditto_optimizer *o)
{
    const struct dti_started_step *s = o->started[self->id];
    if (s->run != dti_sync_run_number(self))
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "a step of optimizer \"%s\" was started in the run around this one: finish it first",
                        o->name);
    if (s->replica != self)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "another thread has started a step of optimizer \"%s\": finish it there", o->name);
    return DITTO_OK;
}

static ditto_status check_part(const struct dti_started_step *s, const ditto_optimizer *o, uint32_t first,
                               uint32_t count, double learning_rate)
{
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
    size_t begin = o->first_item[first], items = o->first_item[first + count] - begin;
    part->applying = (struct dti_applying){
        .optimizer = o, .step = s->step, .gradient = s->gradient, .first_item = begin
    };
    part->target = (struct dti_target){ .finish = clips ? dti_applying_keep : dti_applying_finish,
                                        .context = &part->applying,
                                        .copy_set = (clips ? o->no_copies : o->copies_of_item) + begin };
    struct dti_target_reduction targeted = { .item = calls ? &nothing : s->list + begin,
                                             .items = calls ? 1 : items,
                                             .op = o->options.op,
                                             .name = "ditto_apply_start",
                                             .object = o->name,
                                             .target = &part->target };
    memcpy(&targeted.hash, &s->step.learning_rate, sizeof targeted.hash);
    targeted.hash = dti_hash_word(targeted.hash, (uint64_t)first << 32 | count);
    dti_applying_fill(&part->applying, items, s->list + begin);
    return dti_target_reduction_start(self, &targeted, &part->number);
}

ditto_status dti_step_start(struct dti_replica *self, ditto_optimizer *o, uint32_t first, uint32_t count,
                            const ditto_tensor *gradients, double learning_rate)
{
    bool begins = !is_open(self, o->started[self->id]);
    if (begins)
        DTI_TRY(begin(self, o, learning_rate));
    struct dti_started_step *s = o->started[self->id];
    DTI_TRY(check_step(self, o));
    DTI_TRY(check_part(s, o, first, count, learning_rate));
    while (s->waited < s->parts && dti_started_is_oldest(self, s->part[s->waited].number))
        DTI_TRY(wait_for_oldest(self, s));
    memcpy(&s->gradient[first], gradients, count * sizeof *gradients);
    ditto_status status = start_operation(self, o, s, first, count);
    if (status != DITTO_OK) {
        s->replica = begins ? NULL : self;
        return status;
    }
    s->parts++;
    s->given += count;
    memset(&s->is_given[first], true, count);
    dti_optimizer_changes(self, o, first, count);
    /* In the default strategy each thread has a team of its own, and another thread may destroy the optimizer
     * before the step is finished. No operation may be left then that uses its memory. */
    return self->team != o->iterations->team ? wait_for_oldest(self, s) : DITTO_OK;
}

static ditto_status check_complete(const ditto_optimizer *o, const struct dti_started_step *s)
{
    uint32_t k = 0;
    if (s->given == o->count)
        return DITTO_OK;
    while (s->is_given[k])
        k++;
    return DTI_FAIL(
        DITTO_ERR_INVALID,
        "the gradients of %u of %u variables were given to this step, and that of \"%s\" was not: "
        "call ditto_apply_start for it first",
        s->given, o->count, o->variable[k]->name);
}

ditto_status dti_step_finish(struct dti_replica *self, ditto_optimizer *o, double *norm)
{
    struct dti_started_step *s = o->started[self->id];
    double gradient_norm = 0;
    if (!is_open(self, s))
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "no step of optimizer \"%s\" was started in this run: call ditto_apply_start first",
                        o->name);
    DTI_TRY(check_step(self, o));
    DTI_TRY(check_complete(o, s));
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
    s->replica = NULL;
    return DITTO_OK;
}

/* -- what a started step forbids -- */

ditto_status dti_step_check_none(const struct dti_replica *self, const ditto_optimizer *o)
{
    if (!is_open(self, o->started[self->id]))
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_INVALID,
                    "a step of optimizer \"%s\" has been started: call ditto_apply_finish first", o->name);
}

ditto_status dti_step_check_variable(const struct dti_replica *self, const ditto_variable *v)
{
    const ditto_optimizer *o = *dti_registry_optimizers(v->team);
    for (; o != NULL; o = o->next) {
        if (!is_open(self, o->started[self->id]))
            continue;
        for (uint32_t k = 0; k < o->count; k++)
            if (o->variable[k] == v && o->started[self->id]->is_given[k])
                return DTI_FAIL(DITTO_ERR_INVALID,
                                "\"%s\" is being updated by a step of optimizer \"%s\", which has been "
                                "started: call ditto_apply_finish first",
                                v->name, o->name);
    }
    return DITTO_OK;
}

bool dti_step_is_open(const ditto_optimizer *o)
{
    const struct dti_team *team = o->iterations->team;
    for (uint32_t i = 0; dti_team_pauses(team) != 0 && i < o->replicas; i++)
        if (o->started[i] != NULL && is_open(dti_team_replica(team, i), o->started[i]))
            return true;
    return false;
}
