/* src/vars/variable.c - making a variable: which copies there are, where they lie, what they start with. */
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>

/* Where components cannot differ they share a copy per NUMA node, which the node's first replica owns. */
static void plan_copies(ditto_variable *v, const ditto_variable *like)
{
    const struct dti_team *team = v->team;
    if (like != NULL) {
        v->copies = like->copies;
        for (uint32_t i = 0; i < team->n; i++) {
            v->copy[i].owner = like->copy[i].owner;
            v->copy_of[i] = like->copy_of[i];
        }
        return;
    }
    if (v->central) { /* of a replica on that node if there is one */
        v->copies = 1;
        for (uint32_t i = team->n; i-- > 0;)
            if (team->replica[i].pu.memory_node == v->node)
                v->copy[0].owner = i;
        return;
    }
    for (uint32_t i = 0; i < team->n; i++) {
        uint32_t c = 0;
        while (c < v->copies &&
               !(!v->own_copies && team->replica[v->copy[c].owner].pu.memory_node == team->replica[i].pu.memory_node))
            c++;
        if (c == v->copies)
            v->copy[v->copies++] = (struct dti_copy){ .owner = i };
        v->copy_of[i] = c;
    }
}

struct placing {
    ditto_variable *v;
    const void *value;
};

/* On each replica's own thread: its copy in its arena, touched there. */
static ditto_status place_copy(struct dti_replica *r, void *argument)
{
    const struct placing *p = argument;
    struct dti_copy *copy = &p->v->copy[p->v->copy_of[r->id]];
    if (copy->owner != r->id)
        return DITTO_OK;
    if (p->v->central)
        DTI_TRY(dti_node_alloc(r, p->v->node, p->v->bytes, DTI_LINE, &copy->data));
    else
        DTI_TRY(dti_replica_alloc(r, p->v->bytes, DTI_LINE, &copy->data));
    if (p->value != NULL)
        memcpy(copy->data, p->value, p->v->bytes);
    else
        memset(copy->data, 0, p->v->bytes);
    return DITTO_OK;
}

static void orphan(struct dti_dependent *dependent, bool threads_live)
{
    ditto_variable *v = (ditto_variable *)dependent;
    (void)threads_live;
    v->team = NULL; /* the copies go with the arenas */
    v->copies = 0;
}

/* The initial value, evaluated once: the caller's data, or what its function makes. */
static ditto_status evaluate(const ditto_variable *v, const ditto_tensor *initial, const ditto_variable_options *o,
                             const void **value, void **made)
{
    *made = NULL;
    *value = initial->data;
    if (o->initialize == NULL || v->bytes == 0)
        return DITTO_OK;
    *made = aligned_alloc(DTI_LINE, (v->bytes + DTI_LINE - 1) / DTI_LINE * DTI_LINE);
    if (*made == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the initial value of \"%s\"", v->name);
    ditto_tensor target = v->spec;
    target.data = *made;
    uint32_t serial = dti_error_serial;
    DTI_NO_EXCEPTION(returned);
    ditto_status status = o->initialize(&target, o->initialize_user);
    returned = true;
    status = status > 0 ? DITTO_ERR_USER : status; /* news is no value */
    if (status != DITTO_OK && (dti_error_serial == serial || dti_error_get()->status != status))
        DTI_FAIL(status, "the initializer of \"%s\" failed with %s", v->name, ditto_status_name(status));
    *value = *made;
    return status;
}

static ditto_status fill_in(ditto_variable *v, const ditto_tensor *initial, const ditto_variable_options *o)
{
    const void *value;
    void *made;
    struct dti_frame frame;
    ditto_status status = evaluate(v, initial, o, &value, &made);
    if (status == DITTO_OK)
        status = dti_cross_enter(v->team, &frame, DTI_CALLER_PINNED);
    if (status == DITTO_OK) {
        plan_copies(v, o->colocate_with);
        struct placing placing = { v, value };
        status = dti_team_run(v->team, place_copy, &placing, DITTO_FOREVER);
        dti_team_renew(v->team); /* placing uses no collective: nothing else has to be renewed */
        if (status == DITTO_OK)
            dti_dependent_add(v->team, &v->dependent);
        else
            for (uint32_t i = 0; i < v->copies; i++)
                dti_replica_free_remote(&v->team->replica[v->copy[i].owner], v->copy[i].data);
        dti_cross_leave(v->team, &frame);
    }
    free(made);
    return status;
}

static void release(ditto_variable *v)
{
    free(v->name);
    free(v->copy);
    free(v->copy_of);
    free(v);
}

/* As it shares its copies, or has its own. */
static ditto_status colocate(ditto_variable *v, const ditto_variable *like)
{
    if (like->team != v->team)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "\"%s\" is to lie with \"%s\", which is of another strategy, or of one that "
                        "was destroyed",
                        v->name, like->name);
    if (v->own_copies && !like->own_copies && v->team->n > 1)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "\"%s\" needs a copy for each replica, but \"%s\", with which it is to lie, shares its copies",
                        v->name, like->name);
    v->own_copies = like->own_copies;
    return DITTO_OK;
}

ditto_status dti_variable_create(const struct dti_strategy_base *base, const ditto_tensor *initial,
                                 const ditto_variable_options *o, ditto_variable **out)
{
    struct dti_team *team = base->team;
    ditto_variable *v = calloc(1, sizeof *v);
    if (v != NULL) {
        v->name = strdup(dti_variable_name(o));
        v->copy = calloc(team->n, sizeof *v->copy);
        v->copy_of = calloc(team->n, sizeof *v->copy_of);
        if (v->name == NULL || v->copy == NULL || v->copy_of == NULL) {
            release(v);
            v = NULL;
        }
    }
    if (v == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a variable");
    v->dependent.orphan = orphan;
    v->team = team;
    v->central = base->central;
    v->node = base->parameter_node;
    v->mirrored = o->synchronization != DITTO_ON_READ;
    v->kind = v->mirrored ? &dti_mirrored_kind : &dti_sync_on_read_kind;
    v->spec = *initial;
    v->spec.data = NULL;
    v->count = ditto_tensor_count(initial);
    v->bytes = ditto_tensor_bytes(initial);
    v->aggregation = o->aggregation != DITTO_AGGREGATE_DEFAULT ? o->aggregation : DITTO_AGGREGATE_NONE;
    v->own_copies = !v->central &&
                    (!v->mirrored || v->aggregation == DITTO_AGGREGATE_NONE || o->copies == DITTO_COPIES_PER_REPLICA);
    v->trainable = o->trainable != DITTO_TRAINABLE_DEFAULT ? o->trainable == DITTO_TRAINABLE_ON : v->mirrored;
    ditto_status status = o->colocate_with != NULL ? colocate(v, o->colocate_with) : DITTO_OK;
    if (status == DITTO_OK)
        status = fill_in(v, initial, o);
    if (status != DITTO_OK) {
        release(v);
        return status;
    }
    *out = v;
    return DITTO_OK;
}

void dti_variable_destroy(ditto_variable *v)
{
    struct dti_team *team = v->team;
    if (team != NULL) {
        bool forked = dti_team_forked(team); /* then the lock may be held by a thread that is not there */
        bool taken = !forked && dti_team_take_turn(team);
        dti_dependent_remove(team, &v->dependent);
        for (uint32_t i = 0; i < v->copies && !team->poisoned; i++) /* a stuck replica may still read them */
            dti_replica_free_remote(&team->replica[v->copy[i].owner], v->copy[i].data);
        dti_team_give_turn(team, taken);
    }
    release(v);
}
