/* src/vars/optimizer/optimizer.c - creates and destroys optimizers. An optimizer has items, which are the
 * pieces of its variables, slots, and a variable that counts the steps. Each piece of a slot is in the arena
 * of the replica that updates it. */
#include "vars/optimizer/optimizer.h"
#include "replicas/team/servers.h"
#include "replicas/team/turn.h"
#include "sync/hosts/cross.h"
#include "vars/registry/registry.h"
#include "vars/variables/copies.h"
#include "vars/vars.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- items -- */

/* Returns the copies to which the reduction of the gradients writes the new values of an item. */
static struct dti_copy_set copies_of(const ditto_optimizer *o, const struct dti_optimizer_item *item)
{
    const ditto_variable *v = o->variable[item->variable];
    return dti_variable_may_differ(v) ? DTI_COPIES_WRITTEN_BY_FINISH : v->copies_of_piece[item->piece];
}

uint32_t dti_optimizer_sliced_alike(const ditto_optimizer *o, uint32_t i)
{
    const ditto_grouping *along = o->variable[o->sliced_variable[i]]->slicing->along;
    while (i < o->sliced && o->variable[o->sliced_variable[i]]->slicing->along == along)
        i++;
    return i;
}

/* Lists the sliced variables, by the groupings along which they are sliced. */
static void list_sliced(ditto_optimizer *o)
{
    for (uint32_t k = 0; k < o->count; k++) {
        bool is_first = o->variable[k]->slicing != NULL;
        for (uint32_t i = 0; i < o->sliced; i++)
            is_first = is_first && o->sliced_variable[i] != k;
        for (uint32_t i = k; is_first && i < o->count; i++)
            if (o->variable[i]->slicing != NULL &&
                o->variable[i]->slicing->along == o->variable[k]->slicing->along)
                o->sliced_variable[o->sliced++] = i;
    }
}

static ditto_status make_items(ditto_optimizer *o)
{
    for (uint32_t k = 0; k < o->count; k++)
        o->items += o->variable[k]->pieces;
    o->item = calloc(o->items, sizeof *o->item);
    o->copies_of_item = calloc(o->items, sizeof *o->copies_of_item);
    o->no_copies = calloc(o->items, sizeof *o->no_copies);
    o->first_item = calloc(o->count + 1, sizeof *o->first_item);
    o->sliced_variable = calloc(o->count, sizeof *o->sliced_variable);
    o->gathered_in = calloc(o->items, sizeof *o->gathered_in);
    o->replicas = o->variable[0]->num_replicas;
    o->started = calloc(o->replicas, sizeof(struct dti_started_step *));
    if (o->item == NULL || o->gathered_in == NULL || o->copies_of_item == NULL || o->no_copies == NULL ||
        o->first_item == NULL || o->sliced_variable == NULL || o->started == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for an optimizer of %u variables", o->count);
    size_t at = 0;
    for (int sliced = 0; sliced < 2; sliced++)
        for (uint32_t k = 0; k < o->count; k++) {
            if ((o->variable[k]->slicing != NULL) != (sliced != 0))
                continue;
            o->first_item[k] = at;
            for (uint32_t p = 0; p < o->variable[k]->pieces; p++, at++) {
                o->item[at] = (struct dti_optimizer_item){ k, p };
                o->copies_of_item[at] = copies_of(o, &o->item[at]);
            }
            o->team_items += sliced != 0 ? 0 : o->variable[k]->pieces;
        }
    o->first_item[o->count] = at;
    list_sliced(o);
    while (o->first_nonempty_item < o->items && o->variable[o->item[o->first_nonempty_item].variable]
                                                        ->piece[o->item[o->first_nonempty_item].piece]
                                                        .count == 0)
        o->first_nonempty_item++;
    return DITTO_OK;
}

/* -- slots -- */

/* The division of all variables into ranges, each with the replica that updates it. */
struct division {
    const ditto_optimizer *optimizer;
    struct dti_optimizer_slot_piece *piece; /* [capacity], sorted by variable */
    size_t pieces, capacity;
    bool out_of_memory;
};

static bool ensure_capacity(struct division *d)
{
    if (d->pieces < d->capacity)
        return true;
    size_t capacity = d->capacity * 2 + 64;
    struct dti_optimizer_slot_piece *grown = realloc(d->piece, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    d->piece = grown;
    d->capacity = capacity;
    return true;
}

static bool follows(const struct dti_optimizer_slot_piece *a, const struct dti_optimizer_slot_piece *b)
{
    return a->variable == b->variable && a->replica == b->replica && a->first + a->count == b->first;
}

/* Adds a range to the division. If the range directly follows the one that was added before it, in the same
 * variable and on the same replica, that one is made longer. */
static void add_range(void *context, size_t item, size_t first, size_t count, uint32_t replica)
{
    struct division *d = context;
    const struct dti_optimizer_item *i = &d->optimizer->item[item];
    struct dti_optimizer_slot_piece piece = {
        first + d->optimizer->variable[i->variable]->piece[i->piece].first, count, replica, i->variable
    };
    if (d->pieces > 0 && follows(&d->piece[d->pieces - 1], &piece)) {
        d->piece[d->pieces - 1].count += count;
        return;
    }
    d->out_of_memory |= !ensure_capacity(d);
    if (!d->out_of_memory)
        d->piece[d->pieces++] = piece;
}

/* The slots of a parameter have its pieces, each beside the shard that it belongs to. */
static ditto_status divide_as_shards(const ditto_optimizer *o, struct division *d)
{
    *d = (struct division){ .optimizer = o };
    for (size_t i = 0; i < o->items && !d->out_of_memory; i++) {
        const ditto_variable *v = o->variable[o->item[i].variable];
        d->out_of_memory = !ensure_capacity(d);
        if (!d->out_of_memory)
            d->piece[d->pieces++] = (struct dti_optimizer_slot_piece){
                v->piece[o->item[i].piece].first, v->piece[o->item[i].piece].count,
                v->copies_of_piece[o->item[i].piece].copy[0].owner, o->item[i].variable
            };
    }
    return d->out_of_memory
               ? DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for an optimizer of %u variables", o->count)
               : DITTO_OK;
}

/* What a report of owners in a group of replicas that mirror a slice is about. */
struct slice_division {
    struct division *division;
    const uint32_t *variable; /* those of the list */
    const ditto_grouping *mirrors;
    uint32_t slice;
};

static void add_range_of_slice(void *context, size_t item, size_t first, size_t count, uint32_t member)
{
    const struct slice_division *s = context;
    size_t of_all = s->division->optimizer->first_item[s->variable[item]] + s->slice;
    add_range(s->division, of_all, first, count, s->mirrors->replica[s->mirrors->start[s->slice] + member]);
}

/* Divides slice `slice` of the given variables, which are sliced along one grouping, among the replicas that
 * mirror it. */
static void divide_slice(struct division *d, const uint32_t *variable, uint32_t count, uint32_t slice,
                         ditto_list_item *list)
{
    const ditto_optimizer *o = d->optimizer;
    const struct dti_slicing *s = o->variable[variable[0]]->slicing;
    uint32_t owner = 0;
    while (s->rank[owner] != slice)
        owner++;
    for (uint32_t i = 0; i < count; i++) {
        const ditto_variable *v = o->variable[variable[i]];
        list[i] = (ditto_list_item){ .count = v->piece[slice].count, .dtype = v->spec.dtype };
        if (s->mirrors == NULL && list[i].count != 0)
            add_range(d, o->first_item[variable[i]] + slice, 0, list[i].count, owner);
    }
    struct dti_target_reduction targeted = { .item = list, .items = count, .op = o->options.op };
    struct slice_division slices = { d, variable, s->mirrors, slice };
    if (s->mirrors != NULL)
        dti_target_owners(s->mirrors->level[0].sync[slice], &targeted, add_range_of_slice, &slices);
}

static int by_variable(const void *left, const void *right)
{
    const struct dti_optimizer_slot_piece *a = left, *b = right;
    if (a->variable != b->variable)
        return a->variable < b->variable ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static void divide_slices(struct division *d, ditto_list_item *list)
{
    const ditto_optimizer *o = d->optimizer;
    for (uint32_t i = 0, next; i < o->sliced; i = next) {
        const ditto_variable *v = o->variable[o->sliced_variable[i]];
        next = dti_optimizer_sliced_alike(o, i);
        for (uint32_t slice = 0; slice < v->pieces; slice++)
            divide_slice(d, &o->sliced_variable[i], next - i, slice, list);
    }
    if (o->sliced != 0 && d->pieces != 0)
        qsort(d->piece, d->pieces, sizeof *d->piece, by_variable);
}

static ditto_status divide(const ditto_optimizer *o, struct division *d)
{
    if (o->variable[0]->shard != NULL)
        return divide_as_shards(o, d);
    ditto_list_item *list = calloc(o->items, sizeof *list);
    *d = (struct division){ .optimizer = o, .out_of_memory = list == NULL };
    for (size_t i = 0; list != NULL && i < o->items; i++) {
        const ditto_variable *v = o->variable[o->item[i].variable];
        list[i] = (ditto_list_item){ .count = v->piece[o->item[i].piece].count, .dtype = v->spec.dtype };
    }
    struct dti_target_reduction targeted = { .item = list, .items = o->team_items, .op = o->options.op };
    if (list != NULL && o->team_items != 0)
        dti_target_owners(dti_team_sync(o->iterations->team), &targeted, add_range, d);
    if (list != NULL)
        divide_slices(d, list);
    free(list);
    return d->out_of_memory
               ? DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for an optimizer of %u variables", o->count)
               : DITTO_OK;
}

/* Returns "name/slot/variable", or "name/slot" if variable is empty. The caller frees it. Returns NULL if
 * there is no memory. */
static char *join(const char *name, const char *slot, const char *variable)
{
    size_t length = strlen(name) + strlen(slot) + strlen(variable) + 3;
    char *joined = malloc(length);
    if (joined != NULL)
        snprintf(joined, length, "%s/%s%s%s", name, slot, *variable != '\0' ? "/" : "", variable);
    return joined;
}

/* Creates a slot for variable k. If `slot`, its name, is NULL, the slot is hidden from the user. */
static ditto_status make_slot(const ditto_optimizer *o, const struct division *d, uint32_t k,
                              const char *slot, ditto_variable **out)
{
    const ditto_variable *v = o->variable[k];
    size_t first = 0, pieces = 0;
    char *name = slot != NULL ? join(o->name, slot, v->name) : NULL;
    if (slot != NULL && name == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a slot of \"%s\"", v->name);
    while (first < d->pieces && d->piece[first].variable != k)
        first++;
    while (first + pieces < d->pieces && d->piece[first + pieces].variable == k)
        pieces++;
    ditto_status status = dti_optimizer_slot_create(v->team, v, name, &v->spec, d->piece + first, pieces,
                                                    out);
    free(name);
    return status;
}

static ditto_status make_slots_of(ditto_optimizer *o, const struct division *d)
{
    const char *name[DTI_OPTIMIZER_SLOT_NAMES];
    dti_optimizer_rule_slots(&o->options, name);
    for (uint32_t k = 0; k < o->count; k++) {
        for (uint32_t s = 0; s < o->slots; s++)
            DTI_TRY(make_slot(o, d, k, name[s], &o->slot[k * o->slots + s]));
        bool gathers = o->variable[0]->shard != NULL ? o->options.accumulate > 1 : o->options.clip_norm > 0;
        if (gathers)
            DTI_TRY(make_slot(o, d, k, NULL, &o->sum[k]));
    }
    return DITTO_OK;
}

static ditto_status make_slots(ditto_optimizer *o)
{
    struct division division;
    ditto_status status = divide(o, &division);
    if (status == DITTO_OK)
        status = make_slots_of(o, &division);
    free(division.piece);
    return status;
}

static ditto_status make_iterations(ditto_optimizer *o)
{
    ditto_tensor spec = { .dtype = DITTO_I64 };
    struct dti_optimizer_slot_piece whole = { .count = 1 };
    char *name = join(o->name, "iterations", "");
    if (name == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for an optimizer");
    ditto_status status = dti_optimizer_slot_create(o->variable[0]->team, NULL, name, &spec, &whole, 1,
                                                    &o->iterations);
    free(name);
    return status;
}

/* -- life -- */

/* Destroys the optimizer's own variables. A thread that has the handle of a slot may still begin a call on
 * the slot, so this waits until such calls have ended. They are short, because a save or a restore no longer
 * finds the slot. */
static void destroy_variables(ditto_variable **variable, size_t count)
{
    ditto_error kept = *dti_error_get();
    for (size_t i = 0; variable != NULL && i < count; i++)
        if (variable[i] != NULL) {
            atomic_store_explicit(&variable[i]->users, 0,
                                  memory_order_relaxed); /* it was only used by this optimizer */
            while (dti_variable_destroy(variable[i]) == DITTO_ERR_BUSY)
                sched_yield();
        }
    dti_error_set(&kept);
}

static const char *name_of(const struct dti_dependent *dependent)
{
    return ((const ditto_optimizer *)dependent)->name;
}

static ditto_status check_slot(const ditto_variable *v, bool is_closed)
{
    const struct dti_gate *gate = &v->dependent.gate;
    if (is_closed ? dti_gate_is_empty(gate) : dti_gate_calls(gate) == 0)
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_BUSY,
        "a call on \"%s\" has not returned (or one that saves or restores it): destroy its optimizer "
        "when the call has returned",
        v->name);
}

/* Returns DITTO_ERR_BUSY if a call is in the gate of a slot or of `iterations`, because that variable cannot
 * be destroyed yet. */
static ditto_status check_slots(const struct dti_dependent *dependent)
{
    const ditto_optimizer *o = (const ditto_optimizer *)dependent;
    /* relaxed: entering the optimizer's gate (O1 in gate.h) orders it. When a team ends, its dependents lose
     * their team, the newest first, and so the optimizer before its slots. Therefore the optimizer's own team
     * is read. After the end of the team the gates are closed, and refused calls may still be in them. */
    const struct dti_team *team = atomic_load_explicit(&dependent->team, memory_order_relaxed);
    /* In a child process the gates may count calls of threads that do not exist there. */
    bool is_closed = team == NULL;
    if (!is_closed && dti_team_forked(team))
        return DITTO_OK;
    if (!is_closed)
        DTI_TRY(dti_team_check_unused(team, "optimizer", o->name));
    for (size_t i = 0; i < (size_t)o->count * o->slots; i++)
        DTI_TRY(check_slot(o->slot[i], is_closed));
    return check_slot(o->iterations, is_closed);
}

static void unregister(ditto_variable *v)
{
    dti_registry_remove(v);
    v->hidden = true;
}

/* Removes the optimizer from the strategy's list, unless a replica that has not returned may go through the
 * list (dti_step_check_no_step), and subtracts it from the number of users of each of its
 * variables. The caller has the turn. The slots are removed from the list of variables here, so that no save
 * selects them. They are destroyed later, without the turn. */
static void leave(struct dti_dependent *dependent, enum dti_team_end end)
{
    ditto_optimizer *o = (ditto_optimizer *)dependent, **at = dti_registry_optimizers(o->iterations->team);
    while (*at != o)
        at = &(*at)->next;
    if (end != DTI_TEAM_IS_LEFT)
        *at = o->next;
    for (uint32_t k = 0; k < o->count; k++)
        atomic_fetch_sub_explicit(&o->variable[k]->users, 1, memory_order_relaxed);
    for (size_t i = 0; i < (size_t)o->count * o->slots; i++)
        unregister(o->slot[i]);
    unregister(o->iterations);
}

static void release(struct dti_dependent *dependent)
{
    ditto_optimizer *o = (ditto_optimizer *)dependent;
    destroy_variables(o->slot, (size_t)o->count * o->slots);
    destroy_variables(o->sum, o->count);
    for (uint32_t i = 0; o->started != NULL && i < o->replicas; i++)
        dti_step_free(o->started[i]);
    destroy_variables(&o->iterations, 1);
    free(o->started);
    free(o->block_sum);
    free(o->first_item);
    free(o->sliced_variable);
    free((void *)o->gathered_in);
    free(o->item);
    free(o->copies_of_item);
    free(o->no_copies);
    free(o->slot);
    free(o->sum);
    free(o->variable);
    free(o->rate_factor);
    free(o->weight_decay);
    free(o->name);
    free(o);
}

static const struct dti_dependent_kind kind = {
    .what = "the optimizer",
    .name = name_of,
    .check = check_slots,
    .leave = leave,
    .release = release,
};

/* Allocates and fills the settings of each variable, if the options have them. Returns false if there is no
 * memory. */
static bool copy_settings(ditto_optimizer *o)
{
    const double *factors = o->options.rate_factors, *decays = o->options.weight_decays;
    o->options.rate_factors = o->options.weight_decays = NULL; /* the caller's */
    o->largest_factor = 1;
    if (factors == NULL && decays == NULL)
        return true;
    o->rate_factor = calloc(o->count, sizeof *o->rate_factor);
    o->weight_decay = calloc(o->count, sizeof *o->weight_decay);
    if (o->rate_factor == NULL || o->weight_decay == NULL)
        return false;
    for (uint32_t k = 0; k < o->count; k++) {
        o->rate_factor[k] = factors != NULL ? factors[k] : 1;
        o->largest_factor = fmax(o->largest_factor, o->rate_factor[k]);
        o->weight_decay[k] = decays != NULL ? decays[k] : o->options.weight_decay;
    }
    return true;
}

static ditto_optimizer *allocate(ditto_variable *const *variables, uint32_t count,
                                 const ditto_optimizer_options *options)
{
    const char *name[DTI_OPTIMIZER_SLOT_NAMES];
    ditto_optimizer *o = calloc(1, sizeof *o);
    if (o == NULL)
        return NULL;
    dti_optimizer_rule_slots(options, name);
    while (name[o->slots] != NULL)
        o->slots++;
    o->dependent.kind = &kind;
    o->options = *options;
    o->count = count;
    o->name = strdup(options->name);
    o->variable = calloc(count, sizeof(ditto_variable *));
    o->slot = calloc((size_t)count * o->slots + 1, sizeof(ditto_variable *));
    o->sum = calloc(count, sizeof(ditto_variable *));
    if (o->name == NULL || o->variable == NULL || o->slot == NULL || o->sum == NULL || !copy_settings(o)) {
        release(&o->dependent);
        return NULL;
    }
    o->options.name = o->name;
    memcpy(o->variable, variables, count * sizeof(ditto_variable *));
    return o;
}

/* Checks that no other optimizer of the strategy has the same name. Slots are found by their names, which
 * begin with the optimizer's name. The caller has the turn. */
static ditto_status check_name(const ditto_optimizer *o)
{
    const ditto_optimizer *other = *dti_registry_optimizers(o->variable[0]->team);
    while (other != NULL && strcmp(other->name, o->name) != 0)
        other = other->next;
    if (other == NULL)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_INVALID,
                    "the strategy has an optimizer called \"%s\" already, and both would call their slots "
                    "\"%s/...\": give this one another options->name",
                    o->name, o->name);
}

/* Makes all parts of the optimizer. It takes the turn, so that no variable is destroyed meanwhile. The values
 * that were restored for its slots are dropped when all hosts have come so far, so that a creation that fails
 * does not lose them. */
static ditto_status make(ditto_optimizer *o)
{
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(o->variable[0]->team, &frame, DTI_CALLER_PINNED));
    ditto_status status = check_name(o);
    if (status == DITTO_OK)
        status = make_items(o);
    if (status == DITTO_OK)
        status = make_iterations(o);
    if (status == DITTO_OK)
        status = make_slots(o);
    if (status == DITTO_OK)
        status = dti_clip_make(o);
    if (status == DITTO_OK) /* a host that has failed tells the others in dti_cross_tell */
        status = dti_cross_agree(o->iterations->team, "the end of ditto_optimizer_create", DITTO_OK);
    if (status == DITTO_OK) {
        struct dti_team *team = o->iterations->team;
        ditto_optimizer **first = dti_registry_optimizers(team);
        dti_dependent_add(team, &o->dependent);
        o->next = *first;
        *first = o;
        for (uint32_t k = 0; k < o->count; k++)
            atomic_fetch_add_explicit(&o->variable[k]->users, 1, memory_order_relaxed);
        for (size_t i = 0; i < (size_t)o->count * o->slots; i++)
            dti_waiting_value_drop(team, o->slot[i]->name);
        dti_waiting_value_drop(team, o->iterations->name);
    }
    dti_cross_leave(o->variable[0]->team, &frame);
    return status;
}

ditto_status dti_optimizer_create(ditto_variable *const *variables, uint32_t count,
                                  const ditto_optimizer_options *options, ditto_optimizer **out)
{
    ditto_optimizer *o = allocate(variables, count, options);
    if (o == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for an optimizer of %u variables", count);
    ditto_status status = make(o);
    if (status != DITTO_OK)
        release(&o->dependent); /* it is in no list, because make() adds it last */
    else
        *out = o;
    return status;
}

void dti_optimizers_see_copies(const ditto_variable *v)
{
    for (ditto_optimizer *o = *dti_registry_optimizers(v->team); o != NULL; o = o->next)
        for (size_t i = 0; i < o->items; i++)
            if (o->variable[o->item[i].variable] == v)
                o->copies_of_item[i] = copies_of(o, &o->item[i]);
}

ditto_status dti_optimizer_destroy(ditto_optimizer *o)
{
    return dti_dependent_destroy(&o->dependent);
}
