/* src/vars/variables/variable.c - creates and destroys variables. Their copies are managed in copies.c. */
#include "base/errors/user_call.h"
#include "base/numbers/checksum.h"
#include "replicas/team/servers.h"
#include "replicas/team/turn.h"
#include "sync/hosts/cross.h"
#include "vars/parameters/parameter.h"
#include "vars/registry/registry.h"
#include "vars/variables/copies.h"
#include "vars/variables/slices.h"
#include "vars/variables/variable_rows.h"
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>

void dti_variable_keep(ditto_variable *v)
{
    /* relaxed: the caller already has a reference, or is in a call on the variable, so it cannot be freed
     * meanwhile. */
    atomic_fetch_add_explicit(&v->references, 1, memory_order_relaxed);
}

void dti_variable_drop(ditto_variable *v)
{
    /* acq_rel: pairs with itself, so that all uses through other references happen before the struct is
     * freed. */
    if (atomic_fetch_sub_explicit(&v->references, 1, memory_order_acq_rel) != 1)
        return;
    dti_parameter_free_shards(v);
    dti_copies_forget(v);
    free(v->generation);
    free(v->name);
    free(v);
}

/* -- Destroying -- */

static const char *name(const struct dti_dependent *dependent)
{
    return ((const ditto_variable *)dependent)->name;
}

/* Checks that no function of a worker may be using the parameter, and that no optimizer uses the variable.
 * After its strategy was destroyed, a variable may be destroyed before its optimizers. A slot may not,
 * because its optimizer owns it. */
static ditto_status check_users(const struct dti_dependent *dependent)
{
    const ditto_variable *v = (const ditto_variable *)dependent;
    if (v->shard != NULL && v->team != NULL && !v->optimizer_slot)
        DTI_TRY(dti_team_check_unused(v->team, "variable", v->name));
    uint32_t users = atomic_load_explicit(&v->users, memory_order_relaxed);
    if (users == 0 || (v->team == NULL && !v->optimizer_slot))
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_BUSY, "%u optimizer%s on \"%s\": destroy %s first", users,
                    users > 1 ? "s work" : " works", v->name, users > 1 ? "them" : "it");
}

static void leave(struct dti_dependent *dependent, enum dti_team_end end)
{
    ditto_variable *v = (ditto_variable *)dependent;
    if (!v->hidden)
        dti_registry_remove(v);
    if (end == DTI_TEAM_ENDS) /* in a child process, what a grouping has stays until the team ends */
        dti_slicing_leave(v);
    if (end != DTI_TEAM_IS_LEFT)
        dti_copies_free(v);
}

static void team_ends(struct dti_dependent *dependent, enum dti_team_end end)
{
    /* If the team is left to a replica that never returned, that replica may still use the variable, so the
     * variable stays unchanged. Otherwise the copies are freed together with the arenas. */
    if (end != DTI_TEAM_IS_LEFT)
        ((ditto_variable *)dependent)->team = NULL;
}

static void release(struct dti_dependent *dependent)
{
    dti_variable_drop((ditto_variable *)dependent);
}

static const struct dti_dependent_kind kind = {
    .what = "the variable",
    .name = name,
    .check = check_users,
    .leave = leave,
    .team_ends = team_ends,
    .release = release,
};

ditto_status dti_variable_destroy(ditto_variable *v)
{
    return dti_dependent_destroy(&v->dependent);
}

/* -- Creating -- */

static DTI_GUARDED ditto_status call_initializer(const ditto_variable *v, const ditto_variable_options *o,
                                                 const ditto_tensor *shard, size_t first_row)
{
    uint32_t serial = dti_this_thread()->errors;
    struct dti_same_context same;
    dti_frame_push_same(&same, v->team);
    DTI_GUARD("the initialize function of a variable");
    ditto_status status = o->initialize(shard, first_row, o->initialize_user);
    DTI_GUARD_END();
    dti_frame_pop_same(&same);
    status = status > 0 ? DITTO_ERR_USER : status; /* with a positive status there is no value */
    if (status != DITTO_OK && !dti_wrote_record(status, serial))
        DTI_FAIL(status, "the initializer of \"%s\" failed with %s", v->name, ditto_status_name(status));
    return status;
}

/* Gets the initial value, in one array for all copies. *value is the user's data, or *made, which the caller
 * frees. The user's function fills *made, in one call for each shard. */
static ditto_status evaluate(const ditto_variable *v, const ditto_tensor *initial,
                             const ditto_variable_options *o, const void **value, void **made)
{
    *made = NULL;
    *value = initial->data;
    if (o->initialize == NULL || v->bytes == 0 || v->slicing != NULL)
        return DITTO_OK;
    *made = aligned_alloc(DTI_CACHE_LINE, (v->bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE);
    if (*made == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the initial value of \"%s\"", v->name);
    *value = *made;
    for (uint32_t i = 0; i < v->pieces; i++) {
        ditto_tensor shard = v->spec;
        shard.data = (char *)*made + v->piece[i].first * ditto_dtype_bytes(v->spec.dtype);
        if (v->pieces > 1)
            shard.shape[0] = v->piece[i].count / v->row_count;
        DTI_TRY(call_initializer(v, o, &shard, v->pieces > 1 ? v->piece[i].first / v->row_count : 0));
    }
    return DITTO_OK;
}

/* Calls the user's function for a slice, on the thread of a replica that has it. */
static ditto_status initialize_slice(struct dti_replica *r, const ditto_variable *v, uint32_t slice,
                                     void *data, const void *user)
{
    struct dti_frame frame;
    size_t first;
    ditto_tensor tensor = dti_slice_spec(v, slice, &first);
    tensor.data = data;
    struct dti_fenv saved = dti_frame_enter(&frame, DTI_CONTEXT_UPDATE, r, NULL);
    frame.object = v;
    ditto_status status = call_initializer(v, user, &tensor, first);
    dti_frame_leave(&frame, saved);
    return status;
}

/* Allocates the variable's copies and adds the variable to the lists. A value that was restored before the
 * variable was created replaces the initial value. It is dropped when all hosts have come so far, so that a
 * creation that fails does not lose it. The caller has the turn. */
static ditto_status allocate_and_add(ditto_variable *v, const void *value, const ditto_variable_options *o)
{
    const struct dti_waiting_value *waiting = v->hidden ? NULL : dti_waiting_value_find(v->team, v->name);
    if (waiting != NULL)
        DTI_TRY(dti_waiting_value_check(waiting, v));
    dti_copies_assign_nodes(v, *dti_registry_shards_assigned(v->team));
    bool by_slices = v->slicing != NULL && o->initialize != NULL && v->bytes != 0;
    DTI_TRY(dti_copies_allocate(v, value, by_slices ? initialize_slice : NULL, o));
    ditto_status status = DITTO_OK;
    if (waiting != NULL && v->shard != NULL)
        status = dti_parameter_fill(v, waiting->value, waiting->versions, waiting->num_versions);
    else if (waiting != NULL)
        status = v->kind->cross_write(v, DTI_RULE_ASSIGN, waiting->value);
    /* Another host may have no memory for it. Slots wait for the end of their optimizer's creation. A host
     * that failed above tells the others in dti_cross_tell. */
    if (status == DITTO_OK && !v->optimizer_slot)
        status = dti_cross_agree(v->team, "the end of ditto_variable_create", DITTO_OK);
    if (status != DITTO_OK) {
        dti_copies_free(v);
        return status;
    }
    if (!v->optimizer_slot)
        dti_waiting_value_drop(v->team, v->name);
    dti_dependent_add(v->team, &v->dependent);
    if (!v->hidden)
        dti_registry_add(v);
    if ((v->pieces > 1 || v->shard != NULL) && !v->optimizer_slot && v->slicing == NULL)
        *dti_registry_shards_assigned(v->team) += v->pieces;
    return DITTO_OK;
}

static ditto_status fill_in(ditto_variable *v, const void *value, const ditto_variable_options *o)
{
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(v->team, &frame, DTI_CALLER_PINNED));
    ditto_status status = allocate_and_add(v, value, o);
    dti_cross_leave(v->team, &frame);
    return status;
}

/* Plans the copies of a variable that is colocated with `like`, and gets copies as `like` has them. But if
 * the variable needs a copy for each replica and `like` has shared copies, it gets its own. Then `like` must
 * be splittable, because after a split its copies lie where those of the variable lie. The caller has the
 * turn. */
static ditto_status plan_colocated(ditto_variable *v, const ditto_variable *like)
{
    if (v->own_copies && !like->own_copies && dti_team_all_replicas(v->team) > 1 &&
        !dti_variable_is_splittable(like))
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "\"%s\" needs a copy for each replica, but \"%s\", with which it is colocated, shares its copies",
            v->name, like->name);
    if (like->pieces > 1)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "\"%s\" is colocated with \"%s\", which is cut into %u parts: give \"%s\" "
                        "the same partitioner instead",
                        v->name, like->name, like->pieces, v->name);
    if (v->own_copies && !like->own_copies)
        return dti_copies_plan(v, NULL);
    v->own_copies = like->own_copies;
    return dti_copies_plan(v, like);
}

static ditto_status colocate(ditto_variable *v, const ditto_variable *like)
{
    struct dti_frame frame;
    if (like->team != v->team)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "\"%s\" is colocated with \"%s\", which belongs to another strategy, or to one that was "
            "destroyed",
            v->name, like->name);
    /* The turn is needed, so that `like` is not split meanwhile. */
    DTI_TRY(dti_cross_enter(v->team, &frame, DTI_CALLER_KEEPS_AFFINITY));
    ditto_status status = plan_colocated(v, like);
    dti_cross_leave(v->team, &frame);
    return status;
}

static ditto_status slice(ditto_variable *v, const ditto_variable_options *o)
{
    struct dti_frame frame;
    /* The turn is needed, so that the grouping is not destroyed meanwhile. */
    DTI_TRY(dti_cross_enter(v->team, &frame, DTI_CALLER_PINNED));
    ditto_status status = dti_slicing_make(v, o);
    dti_cross_leave(v->team, &frame);
    return status;
}

/* Allocates the variable and sets all fields that follow from the options. It has no copies yet. */
static ditto_variable *describe(struct dti_team *team, const ditto_tensor *spec,
                                const ditto_variable_options *o)
{
    ditto_variable *v = calloc(1, sizeof *v);
    if (v == NULL)
        return NULL;
    v->name = strdup(dti_variable_name(o));
    v->generation = aligned_alloc(alignof(struct dti_generation),
                                  dti_team_num_replicas(team) * sizeof *v->generation);
    atomic_init(&v->references, 1);
    if (v->name == NULL || v->generation == NULL) {
        dti_variable_drop(v);
        return NULL;
    }
    for (uint32_t i = 0; i < dti_team_num_replicas(team); i++)
        atomic_init(&v->generation[i].count, 0);
    v->dependent.kind = &kind;
    v->team = team;
    v->num_replicas = dti_team_num_replicas(team);
    v->central = dti_vars_storage(team)->central;
    v->node = dti_vars_storage(team)->node;
    v->mirrored = o->synchronization != DITTO_ON_READ;
    v->kind = dti_vars_storage(team)->parameters                  ? &dti_parameter_kind
              : o->partitioner.kind == DITTO_PARTITION_BY_REPLICA ? &dti_sliced_kind
              : v->mirrored                                       ? &dti_mirrored_kind
                                                                  : &dti_sync_on_read_kind;
    v->spec = *spec;
    v->spec.data = NULL;
    v->count = dti_tensor_count(spec);
    v->bytes = ditto_tensor_bytes(spec);
    v->row_count = spec->rank > 0 && spec->shape[0] != 0 ? v->count / spec->shape[0] : 0;
    v->aggregation = o->aggregation != DITTO_AGGREGATE_DEFAULT ? o->aggregation : DITTO_AGGREGATE_NONE;
    v->wants_copies = o->copies == DITTO_COPIES_PER_REPLICA;
    v->own_copies = !v->central && v->kind != &dti_parameter_kind && (!v->mirrored || v->wants_copies);
    v->trainable = o->trainable != DITTO_SWITCH_DEFAULT ? o->trainable == DITTO_SWITCH_ON : v->mirrored;
    v->partitioner = o->partitioner;
    v->concurrency = o->concurrency != DITTO_CONCURRENCY_DEFAULT ? o->concurrency : DITTO_CONCURRENCY_LOCKED;
    return v;
}

/* Compares the creation on all hosts. *value becomes the value of the first host, which stays valid until the
 * next cross call. */
static ditto_status share_value(ditto_variable *v, const ditto_variable_options *o, const void **value)
{
    uint64_t digest = dti_hash_word(DTI_HASH_SEED, (uint64_t)v->spec.dtype << 32 | v->spec.rank);
    const struct dti_gathered *all;
    for (uint32_t d = 0; d < v->spec.rank; d++)
        digest = dti_hash_word(digest, v->spec.shape[d]);
    digest = dti_hash_word(digest,
                           (uint64_t)v->aggregation << 32 | (uint64_t)v->mirrored << 8 | v->trainable);
    digest = dti_hash_word(digest, (uint64_t)v->partitioner.kind << 32 | v->pieces);
    digest = dti_hash_word(digest, (uint64_t)o->concurrency << 32 | (uint64_t)o->copies);
    digest = dti_hash_word(digest, o->colocate_with != NULL ? o->colocate_with->stamp : 0);
    struct dti_cross_request request = { "ditto_variable_create", v->name, digest };
    bool gives = dti_team_first_replica(v->team) == 0 && *value != NULL;
    DTI_TRY(dti_cross_gather(v->team, &request, *value, gives ? v->bytes : 0, &all));
    *value = all[0].bytes != 0 ? all[0].data : NULL;
    v->stamp = dti_cross_stamp(v->team);
    return DITTO_OK;
}

ditto_status dti_variable_compare(const ditto_variable *v, enum dti_rule rule, const void *data, size_t bytes)
{
    if (!dti_cross_has_hosts(v->team))
        return DITTO_OK;
    uint64_t digest = dti_hash_bytes(dti_hash_word(DTI_HASH_SEED, rule), data, bytes);
    return dti_cross_compare(v->team, dti_this_thread()->function, v->name, dti_hash_word(digest, v->stamp));
}

static ditto_status make(ditto_variable *v, const ditto_tensor *initial, const ditto_variable_options *o)
{
    const void *value = NULL;
    void *made = NULL;
    ditto_status status = DITTO_OK;
    if (v->kind == &dti_sliced_kind)
        DTI_TRY(slice(v, o));
    DTI_TRY(o->colocate_with != NULL ? colocate(v, o->colocate_with) : dti_copies_plan(v, NULL));
    if (v->kind == &dti_parameter_kind)
        DTI_TRY(dti_parameter_make_shards(v));
    if (dti_team_first_replica(v->team) == 0)
        status = evaluate(v, initial, o, &value, &made);
    if (status == DITTO_OK && dti_cross_has_hosts(v->team))
        status = share_value(v, o, &value);
    if (status == DITTO_OK)
        status = fill_in(v, value, o);
    free(made);
    return status;
}

/* Drops a variable that could not be made. */
static void give_up(ditto_variable *v)
{
    if (v->slicing != NULL) {
        bool took_turn = dti_team_take_turn(v->team);
        dti_slicing_leave(v);
        dti_team_give_turn(v->team, took_turn);
    }
    dti_variable_drop(v);
}

ditto_status dti_variable_create(struct dti_team *team, const ditto_tensor *initial,
                                 const ditto_variable_options *o, ditto_variable **out)
{
    ditto_variable *v = describe(team, initial, o);
    if (v == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a variable");
    ditto_status status = make(v, initial, o);
    if (status == DITTO_OK)
        *out = v;
    else
        give_up(v);
    return status;
}

ditto_status dti_optimizer_slot_create(struct dti_team *team, const ditto_variable *guard, const char *name,
                                       const ditto_tensor *spec, const struct dti_optimizer_slot_piece *piece,
                                       size_t pieces, ditto_variable **out)
{
    ditto_variable_options options = { .name = name, .trainable = DITTO_SWITCH_OFF };
    ditto_variable *v = describe(team, spec, &options);
    if (v == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a variable");
    v->optimizer_slot = true;
    atomic_init(&v->users, 1); /* the optimizer, so that nothing else can destroy the slot */
    v->hidden = name == NULL;
    v->own_copies = false;
    if (guard != NULL)
        v->order = guard->order;
    ditto_status status = dti_copies_plan_optimizer_slot(v, piece, pieces);
    if (status == DITTO_OK && v->kind == &dti_parameter_kind) {
        v->borrows_shards = guard != NULL;
        for (uint32_t i = 0; v->borrows_shards && i < v->pieces; i++)
            v->copy_node[i] = guard->copy_node[i];
        if (v->borrows_shards) {
            v->shard = guard->shard;
            v->shard_rows = guard->shard_rows;
            v->large_shards = guard->large_shards;
            v->access_bytes = guard->access_bytes;
        } else {
            status = dti_parameter_make_shards(v);
        }
    }
    if (status == DITTO_OK)
        status = fill_in(v, NULL, &options);
    if (status == DITTO_OK)
        *out = v;
    else
        dti_variable_drop(v);
    return status;
}
