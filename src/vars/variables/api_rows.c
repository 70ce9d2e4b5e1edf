/* src/vars/variables/api_rows.c - the public functions of include/ditto/rows.h. They check their arguments
 * and the context, and then call the functions of variable_rows.h. */
#include "base/numbers/checksum.h"
#include "replicas/team/turn.h"
#include "sync/hosts/cross.h"
#include "vars/variables/variable_rows.h"
#include "vars/vars.h"

#include <ditto/rows.h>

static const enum dti_rule rule_of[] = {
    [DITTO_SCATTER_ADD] = DTI_RULE_ADD,       [DITTO_SCATTER_SUB] = DTI_RULE_SUB,
    [DITTO_SCATTER_MUL] = DTI_RULE_MUL,       [DITTO_SCATTER_DIV] = DTI_RULE_DIV,
    [DITTO_SCATTER_MIN] = DTI_RULE_MIN,       [DITTO_SCATTER_MAX] = DTI_RULE_MAX,
    [DITTO_SCATTER_UPDATE] = DTI_RULE_ASSIGN,
};

static ditto_status check_rows(const ditto_variable *v)
{
    if (v->spec.rank == 0)
        return DTI_FAIL(DITTO_ERR_SHAPE, "\"%s\" is a scalar and has no rows", v->name);
    return DITTO_OK;
}

static ditto_status check_op(const ditto_variable *v, ditto_scatter_op op, enum dti_rule *rule)
{
    if (op < DITTO_SCATTER_ADD || op > DITTO_SCATTER_UPDATE)
        return DTI_FAIL(DITTO_ERR_RANGE, "op = %d is not a value of ditto_scatter_op", (int)op);
    *rule = rule_of[op];
    return dti_rule_check(*rule, v->spec.dtype);
}

static ditto_status check_slices(const ditto_variable *v, const ditto_slices *s)
{
    size_t bytes;
    DTI_TRY(dti_not_null(s, "slices"));
    DTI_TRY(check_rows(v));
    if (s->dtype != v->spec.dtype)
        return DTI_FAIL(DITTO_ERR_INVALID, "slices of %s for \"%s\", which is of %s",
                        ditto_dtype_name(s->dtype), v->name, ditto_dtype_name(v->spec.dtype));
    size_t expected_count = v->spec.shape[0] != 0 ? v->row_count : s->row_count;
    if (s->row_count != expected_count)
        return DTI_FAIL(DITTO_ERR_SHAPE, "slices with rows of %zu elements for \"%s\", whose rows have %zu",
                        s->row_count, v->name, expected_count);
    if (!dti_multiply(s->rows, expected_count, &bytes))
        return DTI_FAIL(DITTO_ERR_RANGE, "%zu rows of %zu elements have more bytes than size_t can count",
                        s->rows, expected_count);
    DTI_TRY(dti_buffer_bytes(bytes, s->dtype, &bytes));
    DTI_TRY(dti_buffer_check(s->values, bytes, s->dtype, "slices->values"));
    DTI_TRY(dti_buffer_bytes(s->rows, DITTO_I64, &bytes));
    return dti_buffer_check(s->indices, bytes, DITTO_I64, "slices->indices");
}

static ditto_status check_kind(const ditto_variable *v)
{
    if (v->mirrored)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                    "\"%s\" is sync-on-read: indexed updates are for mirrored variables", v->name);
}

/* A slice has rows only if the first dimension is sliced. */
static ditto_status check_sliced_rows(const ditto_variable *v)
{
    if (v->slicing == NULL || v->order.axis == 0)
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_UNSUPPORTED,
        "an indexed update of \"%s\", which is sliced in dimension %u: rows of each slice are parts "
        "of rows; use ditto_assign, or slice dimension 0",
        v->name, v->order.axis);
}

/* Refuses min, max and update of rows if the variable aggregates by SUM or MEAN (ditto/rows.h). A parameter
 * aggregates nothing. */
static ditto_status check_aggregation(const ditto_variable *v, ditto_scatter_op op)
{
    if (op < DITTO_SCATTER_MIN || v->shard != NULL ||
        (v->aggregation != DITTO_AGGREGATE_SUM && v->aggregation != DITTO_AGGREGATE_MEAN))
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_UNSUPPORTED,
        "min, max and update of rows of \"%s\", which aggregates by %s: create it with ONLY_FIRST_REPLICA",
        v->name, v->aggregation == DITTO_AGGREGATE_SUM ? "SUM" : "MEAN");
}

ditto_status ditto_scatter(ditto_replica *self, ditto_variable *v, ditto_scatter_op op,
                           const ditto_slices *slices)
{
    enum dti_rule rule;
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_USE_OWN_VARIABLE(r, v);
    DTI_TRY(check_kind(v));
    DTI_TRY(check_op(v, op, &rule));
    DTI_TRY(check_slices(v, slices));
    DTI_TRY(check_sliced_rows(v));
    if (v->shard == NULL && v->aggregation == DITTO_AGGREGATE_NONE)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "\"%s\" has no aggregation, so the replicas' slices cannot become one update: create it with "
            "DITTO_AGGREGATE_SUM, MEAN or ONLY_FIRST_REPLICA to say how to aggregate",
            v->name);
    DTI_TRY(check_aggregation(v, op));
    return dti_scatter_in_replica(r, v, rule, slices);
}

ditto_status ditto_lookup(ditto_replica *self, const ditto_variable *v, const int64_t *indices, size_t count,
                          void *rows)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_USE_OWN_VARIABLE(r, v);
    DTI_TRY(check_rows(v));
    if (v->slicing != NULL)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "rows of \"%s\", which is sliced: a replica in a run has its own slice "
                        "(ditto_local_slice), and others may write theirs; move rows by a collective",
                        v->name);
    if (count == 0)
        return DITTO_OK;
    DTI_TRY(dti_buffer_check(indices, sizeof *indices, DITTO_I64, "indices"));
    DTI_TRY(dti_buffer_check(rows, v->count != 0, v->spec.dtype, "rows"));
    return dti_lookup(v, r->index, indices, count, rows);
}

static ditto_status scatter(ditto_variable *v, ditto_scatter_op op, const ditto_slices *slices)
{
    enum dti_rule rule;
    DTI_TRY(check_kind(v));
    DTI_TRY(check_op(v, op, &rule));
    DTI_TRY(check_slices(v, slices));
    DTI_TRY(check_sliced_rows(v));
    DTI_TRY(check_aggregation(v, op));
    const struct dti_frame *top = dti_this_thread()->frame;
    bool in_update_of_it = top != NULL && top->kind == DTI_CONTEXT_UPDATE && top->object == v;
    if (in_update_of_it)
        return dti_scatter_copy(v, top->replica->index, rule, slices);
    DTI_TRY(dti_context_check_cross(v->team));
    if (dti_cross_has_hosts(v->team)) {
        size_t bytes = slices->rows * slices->row_count * ditto_dtype_bytes(slices->dtype);
        uint64_t digest = dti_hash_bytes(DTI_HASH_SEED, slices->indices,
                                         slices->rows * sizeof *slices->indices);
        digest = dti_hash_bytes(digest, slices->values, bytes);
        DTI_TRY(dti_cross_compare(v->team, "ditto_variable_scatter", v->name,
                                  dti_hash_word(digest, (uint64_t)op ^ v->stamp)));
    }
    return dti_scatter_cross(v, rule, slices);
}

ditto_status ditto_variable_scatter(ditto_variable *v, ditto_scatter_op op, const ditto_slices *slices)
{
    DTI_ENTER();
    DTI_HOLD_VARIABLE(v);
    uint64_t begin = dti_cross_begin(v->team);
    return dti_cross_tell(v->team, begin, scatter(v, op, slices));
}

ditto_status ditto_variable_lookup(ditto_variable *v, const int64_t *indices, size_t count, void *rows,
                                   size_t bytes)
{
    struct dti_frame frame;
    size_t needed;
    DTI_ENTER();
    DTI_HOLD_VARIABLE(v);
    DTI_TRY(check_rows(v));
    if (!v->mirrored)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "rows of \"%s\", which is sync-on-read: read it as a whole, which aggregates",
                        v->name);
    size_t row_bytes = v->row_count * ditto_dtype_bytes(v->spec.dtype);
    if (!dti_multiply(count, row_bytes, &needed) || needed != bytes)
        return DTI_FAIL(DITTO_ERR_SHAPE, "%zu rows of \"%s\" have %zu bytes each, but `rows` has %zu in all",
                        count, v->name, row_bytes, bytes);
    DTI_TRY(dti_buffer_check(rows, bytes, v->spec.dtype, "rows"));
    DTI_TRY(dti_buffer_check(indices, count, DITTO_I64, "indices"));
    DTI_TRY(dti_cross_enter(v->team, &frame, DTI_CALLER_KEEPS_AFFINITY));
    ditto_status status = dti_lookup(v, 0, indices, count, rows);
    dti_cross_leave(v->team, &frame);
    return status;
}
