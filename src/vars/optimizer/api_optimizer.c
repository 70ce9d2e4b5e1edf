/* src/vars/optimizer/api_optimizer.c - the public functions of include/ditto/optimizer.h. They check their
 * arguments and the context, and then call the functions of optimizer.h. */
#include "base/numbers/checksum.h"
#include "sync/hosts/cross.h"
#include "sync/kernels/local_reduction.h"
#include "vars/optimizer/optimizer.h"
#include "vars/variables/slices.h"
#include "vars/vars.h"

#include <math.h>
#include <string.h>

/* -- Cross context -- */

/* Returns the number that the user gave, or the default. If `has` is set, a given 0 means 0. */
static double or_else(int has, double given, double usual)
{
    return has != 0 || given != 0 ? given : usual;
}

/* Checks one of the arrays with a number for each variable. `what` is the name of the option. */
static ditto_status check_each(const char *what, const double *number, uint32_t count)
{
    for (uint32_t k = 0; number != NULL && k < count; k++)
        if (!(number[k] >= 0 && number[k] < INFINITY))
            return DTI_FAIL(DITTO_ERR_RANGE, "%s[%u] = %g: it must be at least 0 and finite", what, k,
                            number[k]);
    return DITTO_OK;
}

/* Checks the settings of single variables. */
static ditto_status check_settings(const ditto_optimizer_options *o, uint32_t count)
{
    bool descends = o->rule == DITTO_RULE_SGD || o->rule == DITTO_RULE_ADAM;
    if (o->rate_factors != NULL && !descends && o->rule != DITTO_RULE_FUNCTION)
        return DTI_FAIL(DITTO_ERR_INVALID, "rate_factors are set, but rule %d has no learning rate",
                        (int)o->rule);
    if (o->weight_decays != NULL && !descends)
        return DTI_FAIL(DITTO_ERR_INVALID, "weight_decays are set, but only SGD and ADAM have weight decay");
    if (o->weight_decays != NULL && o->weight_decay != 0)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "weight_decay = %g and weight_decays are both set: set the array alone, with a number "
            "for each variable",
            o->weight_decay);
    DTI_TRY(check_each("rate_factors", o->rate_factors, count));
    return check_each("weight_decays", o->weight_decays, count);
}

static ditto_status check_options(const ditto_optimizer_options *o)
{
    if (o->rule < DITTO_RULE_ASSIGN || o->rule > DITTO_RULE_FUNCTION)
        return DTI_FAIL(
            DITTO_ERR_RANGE,
            "rule = %d is not a value of ditto_rule: set options->rule, for example DITTO_RULE_SGD",
            (int)o->rule);
    if (o->op != DITTO_SUM && o->op != DITTO_MEAN)
        return DTI_FAIL(DITTO_ERR_RANGE,
                        "op = %d: use DITTO_SUM or DITTO_MEAN, not DITTO_AGGREGATE_SUM and the like",
                        (int)o->op);
    if (o->rule == DITTO_RULE_FUNCTION && o->function == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "the rule is a function, but options->function is NULL");
    if (o->has_max_staleness == 0 && o->max_staleness != 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "max_staleness is %lld, but has_max_staleness is 0: set both",
                        (long long)o->max_staleness);
    if (o->max_staleness < 0)
        return DTI_FAIL(DITTO_ERR_RANGE, "max_staleness = %lld: it must be at least 0",
                        (long long)o->max_staleness);
    if (o->num_slots > DITTO_MAX_OPTIMIZER_SLOTS)
        return DTI_FAIL(DITTO_ERR_RANGE, "num_slots = %u: at most %d", o->num_slots,
                        DITTO_MAX_OPTIMIZER_SLOTS);
    const struct {
        const char *name;
        double value, below;
    } numbers[] = { { "learning_rate", o->learning_rate, INFINITY },
                    { "momentum", o->momentum, 1 },
                    { "beta1", o->beta1, 1 },
                    { "beta2", o->beta2, 1 },
                    { "epsilon", o->epsilon, INFINITY },
                    { "weight_decay", o->weight_decay, INFINITY },
                    { "clip_norm", o->clip_norm, INFINITY } };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!(numbers[i].value >= 0 && numbers[i].value < numbers[i].below))
            return DTI_FAIL(DITTO_ERR_RANGE, "%s = %g: it must be at least 0 and %s", numbers[i].name,
                            numbers[i].value, numbers[i].below < INFINITY ? "below 1" : "finite");
    return DITTO_OK;
}

static ditto_status hold_variable(const ditto_variable *v, struct dti_gates *held)
{
    struct dti_gate *gate = NULL;
    if (!dti_gates_reserve(held))
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for an optimizer");
    ditto_status status = dti_variable_hold(v, &gate);
    dti_gates_add(held, gate);
    return status;
}

static ditto_status check_variable(ditto_variable *const *variables, uint32_t k,
                                   const ditto_optimizer_options *o)
{
    const ditto_variable *v = variables[k];
    if (!v->mirrored)
        return DTI_FAIL(DITTO_ERR_INVALID, "\"%s\" is sync-on-read: an optimizer updates mirrored variables",
                        v->name);
    if (v->optimizer_slot)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "\"%s\" belongs to an optimizer: another optimizer cannot update it", v->name);
    if (v->team != variables[0]->team)
        return DTI_FAIL(DITTO_ERR_CONTEXT, "mixing strategies: \"%s\" belongs to another one than \"%s\"",
                        v->name, variables[0]->name);
    for (uint32_t i = 0; i < k; i++)
        if (variables[i] == v)
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "\"%s\" is listed twice, as variables %u and %u: list each once", v->name, i, k);
    if (v->shard == NULL && (o->accumulate > 1 || o->has_max_staleness != 0))
        return DTI_FAIL(DITTO_ERR_INVALID, "%s is set, but \"%s\" is no parameter: its replicas work in step",
                        o->accumulate > 1 ? "accumulate" : "max_staleness", v->name);
    const char *slots[DTI_OPTIMIZER_SLOT_NAMES];
    dti_optimizer_rule_slots(o, slots);
    const char *needs_lock = o->rule == DITTO_RULE_FUNCTION ? "a rule that is a function"
                             : slots[0] != NULL             ? "a rule with slots"
                             : o->accumulate > 1            ? "accumulate"
                                                            : NULL;
    if (v->concurrency == DITTO_CONCURRENCY_HOGWILD && needs_lock != NULL)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "%s for \"%s\", which has DITTO_CONCURRENCY_HOGWILD and therefore no lock: use SGD without "
            "momentum, ADD, SUB or ASSIGN, or create the variable with DITTO_CONCURRENCY_LOCKED",
            needs_lock, v->name);
    DTI_TRY(dti_optimizer_rule_check(o->rule, v->spec.dtype));
    DTI_TRY(dti_reduction_check(v->spec.dtype, o->op));
    if (o->clip_norm > 0 && v->spec.dtype != DITTO_F32 && v->spec.dtype != DITTO_F64)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "clipping of \"%s\", which is of %s: only f32 and f64 can be clipped", v->name,
                        ditto_dtype_name(v->spec.dtype));
    return DITTO_OK;
}

/* Compares what hosts must give alike. */
static ditto_status compare_hosts(ditto_variable *const *variables, uint32_t count,
                                  const ditto_optimizer_options *o)
{
    const double numbers[] = { o->learning_rate, o->momentum,     o->beta1,    o->beta2,
                               o->epsilon,       o->weight_decay, o->clip_norm };
    struct dti_team *team = variables[0]->team;
    uint64_t digest = dti_hash_bytes(DTI_HASH_SEED, numbers, sizeof numbers);
    if (!dti_cross_has_hosts(team))
        return DITTO_OK;
    digest = dti_hash_word(digest, (uint64_t)o->rule << 32 | (uint64_t)o->op << 8 | o->num_slots);
    for (uint32_t k = 0; k < count; k++)
        digest = dti_hash_word(digest, variables[k]->stamp);
    if (o->rate_factors != NULL)
        digest = dti_hash_bytes(digest, o->rate_factors, count * sizeof *o->rate_factors);
    if (o->weight_decays != NULL)
        digest = dti_hash_bytes(digest, o->weight_decays, count * sizeof *o->weight_decays);
    return dti_cross_compare(team, "ditto_optimizer_create", o->name, digest);
}

static ditto_status create(ditto_variable *const *variables, uint32_t count, const ditto_optimizer_options *o,
                           ditto_optimizer **out)
{
    DTI_TRY(dti_context_check_cross(variables[0]->team));
    DTI_TRY(compare_hosts(variables, count, o));
    ditto_optimizer *made;
    uint64_t stamp = dti_cross_stamp(variables[0]->team);
    DTI_TRY(dti_optimizer_create(variables, count, o, &made));
    made->stamp = stamp;
    /* Over several hosts, slots are told apart from others of the same names. */
    for (size_t i = 0; stamp != 0 && i < (size_t)made->count * made->slots; i++)
        made->slot[i]->stamp = dti_hash_word(stamp, i + 1);
    *out = made;
    return DITTO_OK;
}

ditto_status ditto_optimizer_create(ditto_variable *const *variables, uint32_t num_variables,
                                    const ditto_optimizer_options *options, ditto_optimizer **out)
{
    ditto_optimizer_options known;
    DTI_ENTER();
    DTI_TRY(dti_not_null(variables, "variables"));
    DTI_TRY(dti_not_null(options, "options"));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_optimizer_options"));
    if (num_variables == 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "an optimizer needs at least one variable");
    known.name = known.name != NULL ? known.name : "optimizer";
    known.op = known.op != 0 ? known.op : DITTO_SUM;
    known.learning_rate = or_else(known.has_learning_rate, known.learning_rate,
                                  known.rule == DITTO_RULE_SGD ? 0.01 : 0.001);
    known.beta1 = or_else(known.has_beta1, known.beta1, 0.9);
    known.beta2 = or_else(known.has_beta2, known.beta2, 0.999);
    known.epsilon = or_else(known.has_epsilon, known.epsilon, 1e-8);
    DTI_TRY(check_options(&known));
    DTI_TRY(check_settings(&known, num_variables));
    DTI_LEAVES_GATES(held);
    for (uint32_t k = 0; k < num_variables; k++) {
        DTI_TRY_OF(hold_variable(variables[k], &held), "variables[%u]", k);
        DTI_TRY(check_variable(variables, k, &known));
    }
    struct dti_team *team = variables[0]->team;
    uint64_t begin = dti_cross_begin(team);
    return dti_cross_tell(team, begin, create(variables, num_variables, &known, out));
}

ditto_status ditto_optimizer_destroy(ditto_optimizer *optimizer)
{
    DTI_ENTER();
    if (optimizer == NULL)
        return DITTO_OK;
    DTI_TRY(dti_context_check_outside("optimizer"));
    return dti_optimizer_destroy(optimizer);
}

ditto_status ditto_optimizer_info(const ditto_optimizer *o, ditto_optimizer_properties *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(o, "optimizer"));
    DTI_TRY(dti_result_check(out, "ditto_optimizer_properties"));
    ditto_optimizer_properties found = { .num_variables = o->count, .iterations = o->iterations };
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

ditto_status ditto_optimizer_slot(ditto_optimizer *o, uint32_t variable, const char *slot,
                                  ditto_variable **out)
{
    const char *name[DTI_OPTIMIZER_SLOT_NAMES];
    char names[200] = "none";
    struct dti_text text = { names, sizeof names, 0 };
    DTI_ENTER();
    DTI_TRY(dti_not_null(o, "optimizer"));
    DTI_LEAVES_GATE(held, NULL);
    /* The result is ignored, because the slots still exist after the strategy was destroyed. */
    (void)dti_dependent_hold(&o->dependent, &held);
    DTI_TRY(dti_not_null(slot, "slot"));
    DTI_TRY(dti_not_null(out, "out"));
    if (variable >= o->count)
        return DTI_FAIL(DITTO_ERR_RANGE, "variable %u does not exist: the optimizer has %u", variable,
                        o->count);
    dti_optimizer_rule_slots(&o->options, name);
    for (uint32_t s = 0; s < o->slots; s++) {
        if (strcmp(name[s], slot) == 0) {
            *out = o->slot[(size_t)variable * o->slots + s];
            return DITTO_OK;
        }
        dti_text_add(&text, "%s\"%s\"", s > 0 ? ", " : "", name[s]);
    }
    return DTI_FAIL(DITTO_ERR_NOT_FOUND, "there is no slot \"%s\": the slots are %s", slot, names);
}

/* -- Replica context -- */

/* The gradient of a sliced variable is that of the replica's slice. */
static ditto_status check_gradient(const struct dti_replica *r, const ditto_variable *v,
                                   const ditto_tensor *gradient)
{
    size_t bytes;
    ditto_tensor slice;
    const ditto_tensor *spec = &v->spec;
    if (v->slicing != NULL) {
        slice = dti_slice_spec(v, v->slicing->rank[r->index], &bytes);
        spec = &slice;
    }
    if (!dti_spec_equal(spec, gradient))
        DTI_TRY(dti_tensor_check(gradient, &bytes));
    DTI_TRY(dti_spec_check(spec, v->name, gradient, "its gradient"));
    return dti_buffer_check(gradient->data, ditto_tensor_bytes(spec), v->spec.dtype, "a gradient's data");
}

static ditto_status check_norm(const ditto_optimizer *o)
{
    for (uint32_t k = 0; k < o->count; k++)
        if (o->variable[k]->spec.dtype != DITTO_F32 && o->variable[k]->spec.dtype != DITTO_F64)
            return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                            "options->norm is set, but \"%s\" is of %s: the norm of gradients is only "
                            "computed for f32 and f64",
                            o->variable[k]->name, ditto_dtype_name(o->variable[k]->spec.dtype));
    return DITTO_OK;
}

/* Replicas of mirrored variables work in step, so none of their gradients are old. */
static ditto_status check_for_parameters(const ditto_optimizer *o, const ditto_apply_options *options)
{
    if (o->iterations->shard != NULL || (options->has_read_steps == 0 && options->dropped == NULL))
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_INVALID,
                    "options->%s is set, but the variables are no parameters: leave it unset",
                    options->has_read_steps != 0 ? "has_read_steps" : "dropped");
}

static ditto_status read_options(const ditto_optimizer *o, const ditto_apply_options *options,
                                 ditto_apply_options *out)
{
    DTI_TRY(dti_options_copy(out, sizeof *out, options, "ditto_apply_options"));
    out->learning_rate = or_else(out->has_learning_rate, out->learning_rate, o->options.learning_rate);
    if (!(out->learning_rate >= 0 && out->learning_rate < INFINITY))
        return DTI_FAIL(DITTO_ERR_RANGE, "learning_rate = %g: it must be at least 0 and finite",
                        out->learning_rate);
    if (!isfinite(out->learning_rate * o->largest_factor))
        return DTI_FAIL(DITTO_ERR_RANGE,
                        "learning_rate = %g times the largest of rate_factors, %g, is infinite",
                        out->learning_rate, o->largest_factor);
    DTI_TRY(check_for_parameters(o, out));
    if (out->has_read_steps != 0 && out->read_steps < 0)
        return DTI_FAIL(DITTO_ERR_RANGE, "read_steps = %lld: it must be at least 0",
                        (long long)out->read_steps);
    if (o->options.has_max_staleness != 0 && out->has_read_steps == 0)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "the optimizer has max_staleness, but read_steps is not set: read ditto_optimizer_steps "
            "before the parameters are pulled");
    return out->norm != NULL ? check_norm(o) : DITTO_OK;
}

/* Stands at the beginning of each function that takes a step, or a part of one. */
#define USE_OPTIMIZER(self, r, o)                                                          \
    DTI_TRY(dti_self((self), &(r)));                                                       \
    DTI_TRY(dti_not_null((o), "optimizer"));                                               \
    DTI_LEAVES_GATE(held, NULL);                                                           \
    if (!dti_dependent_hold(&(o)->dependent, &held))                                       \
        return DTI_FAIL(DITTO_ERR_CONTEXT, "the optimizer's strategy has been destroyed"); \
    DTI_USE_OWN_VARIABLE((r), (o)->iterations)

/* Steps on parameters are not started in parts, because they wait for no other worker. */
static ditto_status check_in_parts(const ditto_optimizer *o)
{
    if (o->sliced != 0)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "a step in parts on sliced variables: take whole steps (ditto_apply), or make an optimizer "
            "for each part");
    if (o->iterations->shard == NULL)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                    "a step in parts on parameters: an optimizer of a parameter server strategy takes whole "
                    "steps (ditto_apply), or make an optimizer for each part");
}

/* Checks the gradients of variables [first, first + count). */
static ditto_status check_gradients(const struct dti_replica *r, const ditto_optimizer *o, uint32_t first,
                                    uint32_t count, const ditto_tensor *gradients)
{
    DTI_TRY(dti_not_null(gradients, "gradients"));
    for (uint32_t k = 0; k < count; k++)
        DTI_TRY_OF(check_gradient(r, o->variable[first + k], &gradients[k]), "gradients[%u]", k);
    return DITTO_OK;
}

ditto_status ditto_optimizer_steps(ditto_replica *self, ditto_optimizer *o, int64_t *steps)
{
    struct dti_replica *r;
    DTI_ENTER_QUICKLY();
    USE_OPTIMIZER(self, r, o);
    DTI_TRY(dti_not_null(steps, "steps"));
    return dti_optimizer_steps(o, steps);
}

ditto_status ditto_optimizer_staleness(const ditto_optimizer *o, ditto_staleness_counters *out)
{
    ditto_staleness_counters found;
    DTI_ENTER();
    DTI_TRY(dti_not_null(o, "optimizer"));
    DTI_TRY(dti_result_check(out, "ditto_staleness_counters"));
    dti_optimizer_staleness(o, &found);
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

ditto_status ditto_apply(ditto_replica *self, ditto_optimizer *o, const ditto_tensor *gradients,
                         const ditto_apply_options *options)
{
    ditto_apply_options known;
    struct dti_replica *r;
    DTI_ENTER_QUICKLY();
    USE_OPTIMIZER(self, r, o);
    DTI_TRY(read_options(o, options, &known));
    DTI_TRY(check_gradients(r, o, 0, o->count, gradients));
    if (o->iterations->shard != NULL)
        return dti_parameter_step(r, o, gradients, &known);
    DTI_TRY(dti_step_check_none(r, o));
    DTI_TRY(dti_step_check_others(r, o, 0, o->count));
    return dti_apply(r, o, gradients, known.learning_rate, known.norm);
}

ditto_status ditto_apply_start(ditto_replica *self, ditto_optimizer *o, uint32_t first,
                               uint32_t num_variables, const ditto_tensor *gradients,
                               const ditto_apply_options *options)
{
    ditto_apply_options known;
    struct dti_replica *r;
    DTI_ENTER_QUICKLY();
    USE_OPTIMIZER(self, r, o);
    DTI_TRY(check_in_parts(o));
    DTI_TRY(read_options(o, options, &known));
    if (known.norm != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "options->norm is set, but only ditto_apply_finish can return the norm");
    if (num_variables == 0 || first >= o->count || num_variables > o->count - first)
        return DTI_FAIL(
            DITTO_ERR_RANGE,
            "first = %u and num_variables = %u: the optimizer has %u variables, and a part has at "
            "least one",
            first, num_variables, o->count);
    DTI_TRY(check_gradients(r, o, first, num_variables, gradients));
    return dti_step_start(r, o, first, num_variables, gradients, known.learning_rate);
}

ditto_status ditto_apply_finish(ditto_replica *self, ditto_optimizer *o, const ditto_apply_options *options)
{
    ditto_apply_options known;
    struct dti_replica *r;
    DTI_ENTER_QUICKLY();
    USE_OPTIMIZER(self, r, o);
    DTI_TRY(check_in_parts(o));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_apply_options"));
    DTI_TRY(check_for_parameters(o, &known));
    if (known.learning_rate != 0 || known.has_learning_rate != 0)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "options->learning_rate is set, but the step was started with its learning rate: give "
            "it to ditto_apply_start");
    if (known.norm != NULL)
        DTI_TRY(check_norm(o));
    return dti_step_finish(r, o, known.norm);
}
