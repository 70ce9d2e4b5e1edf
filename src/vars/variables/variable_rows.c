/* src/vars/variables/variable_rows.c - indexed updates and lookup of rows.
 *
 * In an update by all replicas, each replica checks all indices itself, so all replicas find the same error.
 * Then the rows of the variable are divided among the replicas. Each replica goes through the slices of all
 * replicas in the order of their concatenation, and applies those that change its rows. If the variable
 * aggregates by ONLY_FIRST_REPLICA, only the slices of replica 0 are checked and applied. Therefore the
 * slices of a row are applied in order, and no row has two writers. */
#include "vars/variables/variable_rows.h"
#include "replicas/team/turn.h"
#include "sync/hosts/cross.h"
#include "sync/kernels/local_reduction.h"
#include "sync/kernels/tree.h"
#include "sync/sync.h"
#include "vars/parameters/parameter.h"
#include "vars/variables/slices.h"
#include "vars/vars.h"

#include <string.h>

struct scattering {
    ditto_variable *v;
    enum dti_rule rule;
    uint32_t divisor; /* the values are divided by it */

    /* The replica whose copy is changed, or DTI_EVERYONE to change all copies. */
    uint32_t only_replica;

    const ditto_slices *const *slices_of; /* [sources] */
    uint32_t sources;
    size_t rows;      /* of the variable, or of the one copy that is changed */
    size_t row_count; /* the number of elements of a row */
    size_t row_bytes;

    /* The status of check_all, which is equal on all replicas. */
    ditto_status check_status;
};

static size_t rows_of(const ditto_variable *v)
{
    return v->spec.shape[0];
}

static void begin(struct scattering *s, ditto_variable *v, enum dti_rule rule)
{
    *s = (struct scattering){ .v = v, .rule = rule, .divisor = 1, .only_replica = DTI_EVERYONE };
    s->rows = rows_of(v);
    s->row_count = v->row_count;
    s->row_bytes = s->row_count * ditto_dtype_bytes(v->spec.dtype);
}

static ditto_status fail_index(const ditto_variable *v, size_t rows, int64_t index, size_t k,
                               const char *what)
{
    return DTI_FAIL(
        DITTO_ERR_RANGE, "%s %zu has the index %lld, but %s\"%s\" has rows 0 to %lld; nothing was written",
        what, k, (long long)index, rows != rows_of(v) ? "the slice of " : "", v->name, (long long)rows - 1);
}

static bool is_row(size_t rows, int64_t index)
{
    return index >= 0 && (size_t)index < rows;
}

/* Writes whose slice an error is about. Only errors need the text, whose time is that of several rows. */
static const char *whose(const struct scattering *s, uint32_t source, char text[40])
{
    struct dti_text to = { text, 40, 0 };
    dti_text_add(&to, s->sources > 1 ? "replica %u's slice" : "slice", source);
    return text;
}

static ditto_status check_all(const struct scattering *s)
{
    char text[40];
    for (uint32_t i = 0; i < s->sources; i++) {
        const ditto_slices *slices = s->slices_of[i];
        for (size_t k = 0; k < slices->rows; k++) {
            int64_t index = slices->indices[k];
            if (!is_row(s->rows, index))
                return fail_index(s->v, s->rows, index, k, whose(s, i, text));
        }
        if (s->rule == DTI_RULE_DIV &&
            dti_has_integer_zero(slices->dtype, slices->values, slices->rows * s->row_count))
            return DTI_FAIL(DITTO_ERR_INVALID, "%s: an integer divided by 0; nothing was written",
                            whose(s, i, text));
    }
    return DITTO_OK;
}

/* Changes elements [first, end) of the copies that s->only_replica selects. */
static void write(const struct scattering *s, size_t first, size_t end, const void *value)
{
    if (s->only_replica == DTI_EVERYONE) {
        dti_copies_write(s->v, s->rule, first, end, value);
        return;
    }
    char *at = (char *)dti_variable_component(s->v, s->only_replica) +
               first * ditto_dtype_bytes(s->v->spec.dtype);
    dti_rule_apply(s->rule, s->v->spec.dtype, at, at, value, end - first);
}

static void apply_row(const struct scattering *s, size_t index, const char *values)
{
    alignas(DTI_CACHE_LINE) char tile[1024];
    size_t element_bytes = ditto_dtype_bytes(s->v->spec.dtype), tile_count = sizeof tile / element_bytes;
    if (s->divisor == 1) {
        write(s, index * s->row_count, (index + 1) * s->row_count, values);
        return;
    }
    for (size_t at = 0; at < s->row_count; at += tile_count) {
        size_t count = s->row_count - at < tile_count ? s->row_count - at : tile_count;
        dti_divide(s->v->spec.dtype, tile, values + at * element_bytes, count, s->divisor);
        write(s, index * s->row_count + at, index * s->row_count + at + count, tile);
    }
}

/* Applies the slices that change rows [first, end). An index that the user has changed since it was checked
 * cannot lead to a write outside the variable, because it is compared here again. */
static void apply_rows(const struct scattering *s, size_t first, size_t end)
{
    for (uint32_t i = 0; i < s->sources; i++)
        for (size_t k = 0; k < s->slices_of[i]->rows; k++) {
            size_t index = (size_t)s->slices_of[i]->indices[k];
            if (index >= first && index < end)
                apply_row(s, index, (const char *)s->slices_of[i]->values + k * s->row_bytes);
        }
}

/* -- Parameters -- */

/* Applies the slices of one caller to a parameter. Not collective. */
static ditto_status scatter_parameter(const struct scattering *s, const struct dti_replica *writer)
{
    DTI_TRY(check_all(s));
    return dti_parameter_scatter(s->v, writer, s->rule, s->slices_of[0]);
}

/* -- Replica context -- */

/* Applies the slices of all replicas to this replica's share of the rows. */
static ditto_status apply_share(struct scattering *s, const struct dti_replica *self)
{
    size_t first, end;
    s->check_status = check_all(s);
    if (s->check_status != DITTO_OK)
        return DITTO_OK;
    dti_tree_part(rows_of(s->v), self->num_replicas, self->index, 1, &first, &end);
    apply_rows(s, first, end);
    return DITTO_OK;
}

static uint32_t sources_of(const ditto_variable *v, uint32_t replicas)
{
    return v->aggregation == DITTO_AGGREGATE_ONLY_FIRST_REPLICA ? 1 : replicas;
}

static ditto_status scatter(struct dti_replica *self, const void *const *contributed, void *context)
{
    struct scattering *s = context;
    const ditto_slices *of[DITTO_MAX_REPLICAS];
    s->sources = sources_of(s->v, self->num_replicas);
    for (uint32_t i = 0; i < s->sources; i++)
        of[i] = contributed[i];
    s->slices_of = of;
    ditto_status status = apply_share(s, self);
    s->slices_of = NULL;
    return status;
}

/* The same over several hosts. Each of them changes its own copies by the slices of all replicas. */
struct scattering_on_hosts {
    struct scattering *s;
    struct dti_replica *self;
};

static ditto_status scatter_gathered(void *context, const ditto_slices *const *of, uint32_t n)
{
    const struct scattering_on_hosts *all = context;
    all->s->sources = sources_of(all->s->v, n);
    all->s->slices_of = of;
    return apply_share(all->s, all->self);
}

ditto_status dti_scatter_in_replica(struct dti_replica *self, ditto_variable *v, enum dti_rule rule,
                                    const ditto_slices *slices)
{
    static const char *const names[] = {
        [DTI_RULE_ASSIGN] = "ditto_scatter (UPDATE)", [DTI_RULE_ADD] = "ditto_scatter (ADD)",
        [DTI_RULE_SUB] = "ditto_scatter (SUB)",       [DTI_RULE_MUL] = "ditto_scatter (MUL)",
        [DTI_RULE_DIV] = "ditto_scatter (DIV)",       [DTI_RULE_MIN] = "ditto_scatter (MIN)",
        [DTI_RULE_MAX] = "ditto_scatter (MAX)"
    };
    struct scattering s;
    struct dti_joint_work joint = { .name = names[rule],
                                    .object = v->name,
                                    .hash = v->stamp,
                                    .contributed = slices,
                                    .work = scatter,
                                    .context = &s };
    begin(&s, v, rule);
    if (v->shard != NULL) {
        s.slices_of = &slices;
        s.sources = 1;
        return scatter_parameter(&s, self);
    }
    s.divisor = v->aggregation == DITTO_AGGREGATE_MEAN ? dti_variable_mirrors(v) : 1;
    dti_changed(v, self->index);
    struct scattering_on_hosts all = { &s, self };
    DTI_TRY(dti_cross_has_hosts(self->team) ? dti_gather_slices(self, &joint, scatter_gathered, &all)
                                            : dti_do_joint_work(self, &joint));
    return s.check_status;
}

/* -- Cross-replica context -- */

static ditto_status scatter_range(size_t first, size_t end, void *context)
{
    const struct scattering *s = context;
    if (first == 0)
        dti_all_changed(s->v);
    apply_rows(s, first, end);
    return DITTO_OK;
}

ditto_status dti_scatter_cross(ditto_variable *v, enum dti_rule rule, const ditto_slices *slices)
{
    struct scattering s;
    begin(&s, v, rule);
    s.slices_of = &slices;
    s.sources = 1;
    if (v->shard != NULL) {
        struct dti_frame frame;
        DTI_TRY(dti_cross_enter(v->team, &frame, DTI_CALLER_KEEPS_AFFINITY));
        ditto_status status = scatter_parameter(&s, NULL);
        dti_cross_leave(v->team, &frame);
        return status;
    }
    DTI_TRY(check_all(&s));
    return dti_share(v->team, slices->rows * s.row_bytes, rows_of(v), 1, scatter_range, &s);
}

ditto_status dti_scatter_copy(ditto_variable *v, uint32_t replica, enum dti_rule rule,
                              const ditto_slices *slices)
{
    struct scattering s;
    size_t first;
    begin(&s, v, rule);
    s.slices_of = &slices;
    s.sources = 1;
    s.only_replica = replica;
    if (v->slicing != NULL)
        s.rows = dti_slice_spec(v, v->slicing->rank[replica], &first).shape[0];
    DTI_TRY(check_all(&s));
    struct dti_fenv saved = dti_fenv_enter();
    apply_rows(&s, 0, s.rows);
    dti_fenv_leave(saved);
    return DITTO_OK;
}

/* -- Lookup -- */

ditto_status dti_rows_check(const ditto_variable *v, const int64_t *indices, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        int64_t index = indices[k];
        if (!is_row(rows_of(v), index))
            return fail_index(v, rows_of(v), index, k, "entry");
    }
    return DITTO_OK;
}

ditto_status dti_lookup(const ditto_variable *v, uint32_t replica, const int64_t *indices, size_t count,
                        void *rows)
{
    size_t row_count = v->row_count, row_bytes = row_count * ditto_dtype_bytes(v->spec.dtype);
    DTI_TRY(dti_rows_check(v, indices, count));
    if (v->shard != NULL)
        return dti_parameter_lookup(v, indices, count, rows, &(struct dti_reading){ .versions = NULL });
    for (size_t k = 0; k < count; k++)
        dti_copies_read(v, replica, (size_t)indices[k] * row_count, ((size_t)indices[k] + 1) * row_count,
                        (char *)rows + k * row_bytes);
    return DITTO_OK;
}
