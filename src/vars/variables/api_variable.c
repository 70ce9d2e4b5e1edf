/* src/vars/variables/api_variable.c - the public functions of include/ditto/variable.h. They check their
 * arguments and the context, and then call the functions of vars.h. */
#include "replicas/team/servers.h"
#include "replicas/team/turn.h"
#include "sync/hosts/cross.h"
#include "vars/parameters/parameter.h"
#include "vars/variables/copies.h"
#include "vars/variables/slices.h"
#include "vars/vars.h"

#include <string.h>

/* -- Creation -- */

static ditto_status check_enum(const ditto_variable_options *o, const char *field, int value, int least,
                               int most, const char *hint)
{
    if (value == 0 || (value >= least && value <= most))
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_RANGE,
                    "options->%s of the variable \"%.100s\" is %d, which is not a value of ditto_%s%s", field,
                    dti_variable_name(o), value, field, hint);
}

static ditto_status check_partitioner(const ditto_variable_options *o)
{
    const char *conflicting = o->synchronization == DITTO_ON_READ     ? "synchronization ON_READ"
                              : o->copies == DITTO_COPIES_PER_REPLICA ? "DITTO_COPIES_PER_REPLICA"
                              : o->colocate_with != NULL              ? "colocate_with"
                                                                      : NULL;
    DTI_TRY(dti_partitioner_check(&o->partitioner));
    if (o->partitioner.kind == DITTO_PARTITION_DEFAULT || conflicting == NULL)
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_INVALID,
        "the variable \"%.100s\" has a partitioner and %s: the partitioner decides where its parts "
        "are; leave one of the two out",
        dti_variable_name(o), conflicting);
}

static ditto_status check_slicing(const struct dti_team *team, const ditto_variable_options *o)
{
    const struct dti_storage *storage = dti_vars_storage(team);
    if (o->partitioner.kind != DITTO_PARTITION_BY_REPLICA)
        return DITTO_OK;
    if (storage->central || storage->parameters || dti_cross_has_hosts(team))
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "the variable \"%.100s\" is sliced by DITTO_PARTITION_BY_REPLICA, but %s: slices are for "
            "strategies of kind DITTO_MIRRORED on one host",
            dti_variable_name(o),
            storage->central      ? "central storage keeps one copy for all replicas"
            : storage->parameters ? "the strategy's parameters exist once, for all workers"
                                  : "the strategy has several hosts");
    if (o->aggregation == DITTO_AGGREGATE_ONLY_FIRST_REPLICA)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "the variable \"%.100s\" is sliced and aggregates by ONLY_FIRST_REPLICA, but replica 0 has "
            "one slice only: use SUM or MEAN",
            dti_variable_name(o));
    return DITTO_OK;
}

static ditto_status check_spec(const ditto_tensor *t, const ditto_variable_options *o)
{
    size_t bytes;
    DTI_TRY(dti_tensor_check(t, &bytes));
    if (t->data != NULL && o->initialize != NULL)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "both initial->data and options->initialize are given for the variable \"%.100s\": it has one "
            "initial value",
            dti_variable_name(o));
    if (o->aggregation == DITTO_AGGREGATE_MEAN && !dti_dtype_is_float(t->dtype))
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "options->aggregation of the variable \"%.100s\", which is of %s, is MEAN, whose result is "
            "not an integer: use a floating dtype or SUM",
            dti_variable_name(o), ditto_dtype_name(t->dtype));
    if (o->aggregation == DITTO_AGGREGATE_SUM || o->aggregation == DITTO_AGGREGATE_MEAN)
        return dti_rule_check(DTI_RULE_ADD, t->dtype);
    return DITTO_OK;
}

static ditto_status check_concurrency(const struct dti_team *team, const ditto_variable_options *o,
                                      ditto_dtype dtype)
{
    if (o->concurrency != DITTO_CONCURRENCY_DEFAULT && !dti_vars_storage(team)->parameters)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "options->concurrency of the variable \"%.100s\" is set, but its strategy is not of "
            "kind DITTO_PARAMETER_SERVER: leave it out, because replicas that work in step do not "
            "write at the same time",
            dti_variable_name(o));
    if (o->concurrency > DITTO_CONCURRENCY_LOCKED && dtype == DITTO_C128)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "the variable \"%.100s\" is of c128, whose elements cannot be read and written at "
                        "once: use DITTO_CONCURRENCY_LOCKED",
                        dti_variable_name(o));
    return DITTO_OK;
}

static ditto_status create(struct dti_team *team, const ditto_tensor *initial,
                           const ditto_variable_options *options, ditto_variable **out)
{
    ditto_variable_options known;
    DTI_TRY(dti_not_null(initial, "initial"));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_variable_options"));
    DTI_TRY(
        check_enum(&known, "synchronization", (int)known.synchronization, DITTO_ON_WRITE, DITTO_ON_READ, ""));
    DTI_TRY(check_enum(&known, "aggregation", (int)known.aggregation, DITTO_AGGREGATE_NONE,
                       DITTO_AGGREGATE_ONLY_FIRST_REPLICA,
                       ": use DITTO_AGGREGATE_SUM, not DITTO_SUM, and the like"));
    DTI_TRY(check_enum(&known, "copies", (int)known.copies, DITTO_COPIES_PER_REPLICA,
                       DITTO_COPIES_PER_REPLICA, ""));
    DTI_TRY(check_enum(&known, "concurrency", (int)known.concurrency, DITTO_CONCURRENCY_LOCKED,
                       DITTO_CONCURRENCY_FREE_READS, ""));
    DTI_TRY(check_enum(&known, "trainable", (int)known.trainable, DITTO_SWITCH_ON, DITTO_SWITCH_OFF, ""));
    DTI_TRY(check_partitioner(&known));
    DTI_TRY(check_spec(initial, &known));
    DTI_TRY(check_concurrency(team, &known, initial->dtype));
    DTI_TRY(check_slicing(team, &known));
    DTI_TRY(dti_context_check_cross(team));
    DTI_LEAVES_GATE(held_other, NULL);
    /* The result is ignored. If the other variable's strategy was destroyed, it has no team, and colocate()
     * refuses it. */
    if (known.colocate_with != NULL)
        (void)dti_dependent_hold(&known.colocate_with->dependent, &held_other);
    if (dti_vars_storage(team)->parameters && known.synchronization == DITTO_ON_READ)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "a sync-on-read parameter: parameters exist once. A value for each worker is made by "
                        "ditto_coordinator_values_from_function");
    if (dti_vars_storage(team)->central && known.synchronization == DITTO_ON_READ)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "a sync-on-read variable in central storage: it keeps one component, "
                        "and each replica would need its own");
    return dti_variable_create(team, initial, &known, out);
}

ditto_status ditto_variable_create(ditto_strategy *strategy, const ditto_tensor *initial,
                                   const ditto_variable_options *options, ditto_variable **out)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    struct dti_team *team = dti_team_of(strategy);
    uint64_t begin = dti_cross_begin(team);
    return dti_cross_tell(team, begin, create(team, initial, options, out));
}

ditto_status ditto_variable_destroy(ditto_variable *variable)
{
    DTI_ENTER();
    if (variable == NULL)
        return DITTO_OK;
    DTI_TRY(dti_context_check_outside("variable"));
    return dti_variable_destroy(variable);
}

ditto_status ditto_variable_spec(const ditto_variable *variable, ditto_tensor *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(variable, "variable"));
    DTI_TRY(dti_not_null(out, "out"));
    *out = variable->spec;
    return DITTO_OK;
}

static size_t num_shards(const ditto_variable *v)
{
    /* The parts of other slots are not shards. Those of a parameter's slot are. */
    return !v->optimizer_slot || v->shard != NULL ? v->pieces : 1;
}

static uint64_t generation(const ditto_variable *v)
{
    const struct dti_frame *top = dti_this_thread()->frame;
    if (top != NULL && top->kind == DTI_CONTEXT_REPLICA && top->team == v->team)
        /* relaxed: the number was written by this replica, or under the turn before this run. */
        return atomic_load_explicit(&v->generation[top->replica->index].count, memory_order_relaxed);
    uint64_t sum = v->shard != NULL ? dti_parameter_sum_of_versions(v) : 0;
    for (uint32_t i = 0; i < v->num_replicas; i++) /* relaxed: the numbers are only compared */
        sum += atomic_load_explicit(&v->generation[i].count, memory_order_relaxed);
    return sum;
}

ditto_status ditto_variable_info(const ditto_variable *v, ditto_variable_properties *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(v, "variable"));
    DTI_TRY(dti_result_check(out, "ditto_variable_properties"));
    ditto_variable_properties found = { .name = v->name,
                                        .trainable = v->trainable,
                                        .synchronization = v->mirrored ? DITTO_ON_WRITE : DITTO_ON_READ,
                                        .aggregation = v->aggregation,
                                        .num_shards = num_shards(v) };
    DTI_LEAVES_GATE(held, NULL);
    if (dti_dependent_hold(&v->dependent, &held)) {
        found.strategy = dti_team_strategy(v->team);
        found.generation = generation(v);
    }
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

/* -- Cross context -- */

ditto_status dti_variable_hold(const ditto_variable *v, struct dti_gate **held)
{
    DTI_TRY(dti_not_null(v, "variable"));
    if (dti_dependent_hold(&v->dependent, held))
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_CONTEXT, "the strategy of \"%s\" has been destroyed, and its value with it",
                    v->name);
}

ditto_status dti_variable_hold_kept(const ditto_variable *v, struct dti_gates *held)
{
    struct dti_gate *gate = NULL;
    if (!dti_gates_reserve(held))
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to record that a call uses \"%s\"", v->name);
    bool exists = dti_dependent_hold(&v->dependent, &gate);
    dti_gates_add(held, gate);
    if (exists)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_CONTEXT,
                    "the value refers to the variable \"%s\", which has been destroyed, by itself or "
                    "with its strategy: create the value again from a variable that exists",
                    v->name);
}

ditto_status dti_variable_check_whole(const ditto_variable *v, const char *what)
{
    if (v->slicing != NULL)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "%s \"%s\": it is sliced, and each replica has its own slice (ditto_local_slice); "
                        "read or assign it as a whole in cross-replica context",
                        what, v->name);
    if (v->pieces == 1)
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_UNSUPPORTED,
        "%s \"%s\": it is cut into %u parts, which are not contiguous; look rows up, or read it as a "
        "whole in cross-replica context",
        what, v->name, v->pieces);
}

/* Returns the number of elements of a replica's component. */
static size_t count_of(const ditto_variable *v, const struct dti_replica *r)
{
    return v->slicing == NULL ? v->count : v->piece[v->slicing->rank[r->index]].count;
}

/* Sets *copy to the copy that the user's function works on, and *count to the number of its elements, if the
 * thread is in an update of this variable. Otherwise sets them to NULL and to those of the variable. Checks
 * that the buffer has this size. */
static ditto_status check_access(const ditto_variable *v, const void *buffer, size_t bytes, const char *name,
                                 void **copy, size_t *count)
{
    const struct dti_frame *top = dti_this_thread()->frame;
    bool in_update = top != NULL && top->kind == DTI_CONTEXT_UPDATE && top->object == v;
    *copy = in_update ? dti_variable_component(v, top->replica->index) : NULL;
    *count = in_update ? count_of(v, top->replica) : v->count;
    size_t expected = *count * ditto_dtype_bytes(v->spec.dtype);
    if (bytes != expected)
        return DTI_FAIL(DITTO_ERR_SHAPE, "%s\"%s\" has %zu bytes, but %s has %zu",
                        *count != v->count ? "the slice of " : "", v->name, expected, name, bytes);
    return dti_buffer_check(buffer, bytes, v->spec.dtype, name);
}

static ditto_status read(ditto_variable *v, void *dst, size_t bytes)
{
    void *copy;
    size_t count;
    DTI_TRY(check_access(v, dst, bytes, "dst", &copy, &count));
    if (copy != NULL) {
        memcpy(dst, copy, bytes);
        return DITTO_OK;
    }
    DTI_TRY(dti_context_check_cross(v->team));
    return v->kind->cross_read(v, dst);
}

ditto_status ditto_variable_read(ditto_variable *v, void *dst, size_t bytes)
{
    DTI_ENTER();
    DTI_HOLD_VARIABLE(v);
    uint64_t begin = dti_cross_begin(v->team);
    ditto_status status = read(v, dst, bytes);
    /* A mirrored variable is read without the other hosts. */
    return v->mirrored ? status : dti_cross_tell(v->team, begin, status);
}

ditto_status dti_assign_rule(ditto_assign_op op, ditto_dtype dtype, enum dti_rule *rule)
{
    static const enum dti_rule rules[] = {
        [DITTO_ASSIGN] = DTI_RULE_ASSIGN, [DITTO_ASSIGN_ADD] = DTI_RULE_ADD, [DITTO_ASSIGN_SUB] = DTI_RULE_SUB
    };
    if (op < DITTO_ASSIGN || op > DITTO_ASSIGN_SUB)
        return DTI_FAIL(DITTO_ERR_RANGE, "op = %d is not a value of ditto_assign_op", (int)op);
    *rule = rules[op];
    return dti_rule_check(*rule, dtype);
}

static ditto_status write(ditto_variable *v, ditto_assign_op op, const void *value, size_t bytes)
{
    enum dti_rule rule;
    void *copy;
    size_t count;
    DTI_TRY(check_access(v, value, bytes, "value", &copy, &count));
    DTI_TRY(dti_assign_rule(op, v->spec.dtype, &rule));
    if (copy != NULL) {
        struct dti_fenv saved = dti_fenv_enter();
        dti_rule_apply(rule, v->spec.dtype, copy, copy, value, count);
        dti_fenv_leave(saved);
        return DITTO_OK;
    }
    DTI_TRY(dti_context_check_cross(v->team));
    DTI_TRY(dti_variable_compare(v, rule, value, bytes));
    return v->kind->cross_write(v, rule, value);
}

ditto_status ditto_variable_assign(ditto_variable *v, ditto_assign_op op, const void *value, size_t bytes)
{
    DTI_ENTER();
    DTI_HOLD_VARIABLE(v);
    uint64_t begin = dti_cross_begin(v->team);
    return dti_cross_tell(v->team, begin, write(v, op, value, bytes));
}

ditto_status ditto_variable_shard(const ditto_variable *v, size_t shard, ditto_shard_info *out)
{
    DTI_ENTER();
    DTI_HOLD_VARIABLE(v);
    DTI_TRY(dti_result_check(out, "ditto_shard_info"));
    if (shard >= num_shards(v))
        return DTI_FAIL(DITTO_ERR_RANGE, "shard %zu does not exist: \"%s\" has %zu", shard, v->name,
                        num_shards(v));
    if (v->slicing != NULL) {
        size_t first;
        ditto_tensor slice = dti_slice_spec(v, (uint32_t)shard, &first);
        ditto_shard_info of_slice = { .first_row = first,
                                      .rows = slice.shape[v->order.axis],
                                      .data = dti_nearest(v, (uint32_t)shard, 0) };
        dti_result_store(out, &of_slice, sizeof of_slice);
        return DITTO_OK;
    }
    /* A variable of one shard may be a scalar, or have rows without elements, which must not lead to a
     * division by 0. */
    bool is_one_shard = num_shards(v) == 1;
    size_t all_rows = v->spec.rank > 0 ? v->spec.shape[0] : 1;
    ditto_shard_info found = { .first_row = is_one_shard ? 0 : v->piece[shard].first / v->row_count,
                               .rows = is_one_shard ? all_rows : v->piece[shard].count / v->row_count };
    if (v->shard != NULL)
        found.version = dti_shard_version(v, (uint32_t)shard);
    else if (!v->optimizer_slot || v->pieces == 1)
        found.data = dti_nearest(v, (uint32_t)shard, 0);
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

/* -- Replica context -- */

static ditto_status check_strategy(const struct dti_replica *r, const ditto_variable *v)
{
    if (dti_team_servers(r->team) == v->team)
        return DTI_FAIL(
            DITTO_ERR_CONTEXT,
            "\"%s\" is a parameter, which other workers change at any time: copy its elements with "
            "ditto_pull or ditto_lookup, and change them with ditto_apply, ditto_assign or "
            "ditto_scatter, or create it with DITTO_CONCURRENCY_HOGWILD or FREE_READS to read it in place",
            v->name);
    if (dti_team_strategy(v->team) != dti_team_strategy(r->team))
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "mixing strategies: \"%s\" belongs to another strategy than replica %u", v->name,
                        r->id);
    return DITTO_OK;
}

ditto_status dti_variable_hold_own(const struct dti_replica *r, const ditto_variable *v,
                                   struct dti_gate **held)
{
    DTI_TRY(dti_variable_hold(v, held));
    return check_strategy(r, v);
}

/* Says whether the variable is a parameter of the replica's worker. No gate is entered, because no parameter
 * is destroyed while a function of a worker is executed (dti_team_check_unused), and because all workers
 * would write to the gate in each call.
 *
 * relaxed: see the comment on `team` in struct dti_dependent. The strategy cannot end meanwhile. */
static bool is_own_parameter(const struct dti_replica *r, const ditto_variable *v)
{
    const struct dti_team *servers = dti_team_servers(r->team);
    return servers != NULL && v != NULL &&
           atomic_load_explicit(&v->dependent.team, memory_order_relaxed) == servers;
}

ditto_status dti_variable_use(struct dti_replica *r, const ditto_variable *v, struct dti_variable_use *use)
{
    use->has_frame = false;
    if (is_own_parameter(r, v))
        return dti_replica_is_forked(r) ? dti_fail_forked() : DITTO_OK;
    DTI_TRY(dti_variable_hold(v, &use->gate));
    if (v->team == r->team) /* in a run of the variable's strategy, which has the turn */
        return atomic_load_explicit(&v->users, memory_order_relaxed) != 0 ? dti_step_check_variable(r, v)
                                                                          : DITTO_OK;
    DTI_TRY(check_strategy(r, v));
    /* This is a thread's replica of the default strategy. Without a gate it has the turn already, because it
     * is in a function of the user that another of these calls executes. */
    if (use->gate == NULL)
        return DITTO_OK;
    DTI_TRY(dti_cross_enter(v->team, &use->frame, DTI_CALLER_KEEPS_AFFINITY));
    use->has_frame = true;
    /* Functions of the user that the call executes stay in replica context. */
    use->frame.kind = DTI_CONTEXT_REPLICA;
    use->frame.replica = r;
    use->frame.self = dti_this_thread()->plain_self;
    return DITTO_OK;
}

void dti_variable_leave(struct dti_variable_use *use)
{
    if (use->has_frame)
        dti_cross_leave(use->frame.team, &use->frame);
    dti_gate_leave(use->gate);
}

ditto_status ditto_read(ditto_replica *self, const ditto_variable *variable, const void **data)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    if (is_own_parameter(r, variable) && variable->concurrency != DITTO_CONCURRENCY_LOCKED) {
        if (dti_replica_is_forked(r))
            return dti_fail_forked();
        DTI_TRY(dti_not_null(data, "data"));
        *data = dti_shard_elements(variable, 0);
        return DITTO_OK;
    }
    DTI_HOLD_OWN_VARIABLE(r, variable);
    DTI_TRY(dti_not_null(data, "data"));
    DTI_TRY(dti_variable_check_whole(variable, "to read"));
    *data = dti_variable_component(variable, r->index);
    return DITTO_OK;
}

ditto_status ditto_local_slice(ditto_replica *self, const ditto_variable *variable, ditto_tensor *out,
                               size_t *first)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    size_t found = 0;
    DTI_TRY(dti_self(self, &r));
    DTI_HOLD_OWN_VARIABLE(r, variable);
    DTI_TRY(dti_not_null(out, "out"));
    if (variable->slicing == NULL)
        DTI_TRY(dti_variable_check_whole(variable, "the slice of"));
    ditto_tensor slice = variable->slicing == NULL
                             ? variable->spec
                             : dti_slice_spec(variable, variable->slicing->rank[r->index], &found);
    slice.data = dti_variable_component(variable, r->index);
    *out = slice;
    if (first != NULL)
        *first = found;
    return DITTO_OK;
}

ditto_status ditto_component(ditto_replica *self, ditto_variable *variable, void **data)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_USE_OWN_VARIABLE(r, variable);
    DTI_TRY(dti_not_null(data, "data"));
    if (variable->concurrency == DITTO_CONCURRENCY_HOGWILD) {
        *data = dti_parameter_in_place(r, variable);
        return DITTO_OK;
    }
    if (variable->shard != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "\"%s\" is a parameter that is changed under locks: use ditto_scatter, ditto_assign "
                        "or ditto_apply, or create it with DITTO_CONCURRENCY_HOGWILD to change it in place",
                        variable->name);
    if (variable->mirrored)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "\"%s\" is %s: its components cannot be changed one by one: use ditto_assign or a "
                        "similar function",
                        variable->name, variable->central ? "in central storage" : "mirrored");
    dti_changed(variable, r->index);
    *data = dti_variable_component(variable, r->index);
    return DITTO_OK;
}

ditto_status ditto_assign(ditto_replica *self, ditto_variable *v, ditto_assign_op op, const void *value)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    enum dti_rule rule;
    DTI_TRY(dti_self(self, &r));
    DTI_USE_OWN_VARIABLE(r, v);
    DTI_TRY(
        dti_buffer_check(value, count_of(v, r) * ditto_dtype_bytes(v->spec.dtype), v->spec.dtype, "value"));
    DTI_TRY(dti_assign_rule(op, v->spec.dtype, &rule));
    return v->kind->write(r, v, rule, value);
}
