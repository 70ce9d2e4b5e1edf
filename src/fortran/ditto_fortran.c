/* src/fortran/ditto_fortran.c - the C part of the Fortran modules.
 *
 * Arrays come as descriptors, which say where the elements are, of which type they are, and how they lie. So
 * one function serves arrays of every kind and rank, and no array is copied on the way. The file is compiled
 * together with the modules, against the ISO_Fortran_binding.h of the program's Fortran compiler, because
 * descriptors differ between compilers. The functions are called by the modules alone. */
#include <ISO_Fortran_binding.h>
#include <ditto.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ditto_status ditto_f_create(const ditto_strategy_options *options, int kind, ditto_strategy **out);
ditto_status ditto_f_all_reduce(ditto_replica *self, const CFI_cdesc_t *src, const CFI_cdesc_t *dst, int op,
                                const CFI_cdesc_t *label, const ditto_group *group, ditto_pending *out);
ditto_status ditto_f_reduce(ditto_replica *self, const CFI_cdesc_t *x, int root, int op,
                            const CFI_cdesc_t *label, const ditto_group *group);
ditto_status ditto_f_broadcast(ditto_replica *self, const CFI_cdesc_t *x, int root, const CFI_cdesc_t *label,
                               const ditto_group *group);
ditto_status ditto_f_reduce_scatter(ditto_replica *self, const CFI_cdesc_t *src, const CFI_cdesc_t *dst,
                                    int op, const CFI_cdesc_t *label, const ditto_group *group,
                                    ditto_pending *out);
ditto_status ditto_f_all_gather(ditto_replica *self, const CFI_cdesc_t *src, const CFI_cdesc_t *dst,
                                const CFI_cdesc_t *label, const ditto_group *group, ditto_pending *out);
ditto_status ditto_f_all_to_all(ditto_replica *self, const CFI_cdesc_t *src, const CFI_cdesc_t *dst,
                                const CFI_cdesc_t *src_counts, const CFI_cdesc_t *dst_counts,
                                const CFI_cdesc_t *label, const ditto_group *group, ditto_pending *out);
ditto_status ditto_f_gather_to_root(ditto_replica *self, const CFI_cdesc_t *src, const CFI_cdesc_t *dst,
                                    const CFI_cdesc_t *counts, int root, const CFI_cdesc_t *label,
                                    const ditto_group *group);
ditto_status ditto_f_scatter_from_root(ditto_replica *self, const CFI_cdesc_t *src, const CFI_cdesc_t *dst,
                                       const CFI_cdesc_t *counts, int root, const CFI_cdesc_t *label,
                                       const ditto_group *group);
ditto_status ditto_f_scan(ditto_replica *self, const CFI_cdesc_t *src, const CFI_cdesc_t *dst, int op,
                          const CFI_cdesc_t *label, const ditto_group *group, int exclusive);
ditto_status ditto_f_part(const CFI_cdesc_t *src, const CFI_cdesc_t *dst, ditto_exchange_part *part);
ditto_status ditto_f_exchange(ditto_replica *self, const ditto_exchange_part *parts, size_t num_parts,
                              const CFI_cdesc_t *label, const ditto_group *group);
ditto_status ditto_f_barrier(ditto_replica *self, const CFI_cdesc_t *label, const ditto_group *group);
ditto_status ditto_f_block_dot(ditto_replica *self, const CFI_cdesc_t *x, const CFI_cdesc_t *y,
                               const CFI_cdesc_t *sum, const CFI_cdesc_t *label, const ditto_group *group);
ditto_status ditto_f_variable_create(ditto_strategy *strategy, const CFI_cdesc_t *initial, const char *name,
                                     const int *synchronization, const int *aggregation, const int *shards,
                                     ditto_variable **out);
ditto_status ditto_f_write(ditto_variable *variable, const CFI_cdesc_t *x, int op,
                           ditto_replica *const *self);
ditto_status ditto_f_lookup(ditto_variable *variable, const CFI_cdesc_t *rows, const CFI_cdesc_t *x,
                            ditto_replica *const *self);
ditto_status ditto_f_scatter(ditto_variable *variable, int op, const CFI_cdesc_t *rows, const CFI_cdesc_t *x,
                             ditto_replica *const *self);
ditto_status ditto_f_all_reduce_through(ditto_replica *self, const CFI_cdesc_t *x, int op,
                                        ditto_through_fn function, void *user, const CFI_cdesc_t *label,
                                        const ditto_group *group);
ditto_status ditto_f_block_sum(ditto_replica *self, const CFI_cdesc_t *x, const CFI_cdesc_t *sum,
                               const CFI_cdesc_t *label, const ditto_group *group);
ditto_status ditto_f_block_sum_with(ditto_replica *self, ditto_elements_fn function, void *user, int *dtype,
                                    size_t count, const CFI_cdesc_t *sum, const CFI_cdesc_t *label,
                                    const ditto_group *group);
ditto_status ditto_f_mesh(ditto_strategy *strategy, const char *const *names, const uint32_t *extents,
                          uint32_t num_axes, ditto_grouping **out);
void ditto_f_tensor(const CFI_cdesc_t *x, ditto_tensor *view);
ditto_status ditto_f_elements(const ditto_tensor *view, const CFI_cdesc_t *x);
ditto_status ditto_f_check_views(const char *procedure, const ditto_tensor *views, size_t num_views);
const char *ditto_f_message(void);
ditto_status ditto_f_fail(ditto_replica *self, int32_t code, const char *text);

const char *ditto_f_message(void)
{
    return ditto_last_error()->message;
}

/* ditto_fail without a format, because Fortran cannot call functions with a variable number of arguments. */
ditto_status ditto_f_fail(ditto_replica *self, int32_t code, const char *text)
{
    return ditto_fail(self, code, "%s", text);
}

/* -- arrays -- */

/* The elements of an array. */
struct elements {
    void *data;
    size_t count;
    ditto_dtype dtype;
};

/* Types that C knows by several names have one number each, so these are in the order in which they are
 * looked for. */
static ditto_dtype dtype_of(const CFI_cdesc_t *x)
{
    static const struct {
        CFI_type_t type;
        ditto_dtype dtype;
    } types[] = { { CFI_type_float, DITTO_F32 },         { CFI_type_double, DITTO_F64 },
                  { CFI_type_float_Complex, DITTO_C64 }, { CFI_type_double_Complex, DITTO_C128 },
                  { CFI_type_int8_t, DITTO_I8 },         { CFI_type_int16_t, DITTO_I16 },
                  { CFI_type_int32_t, DITTO_I32 },       { CFI_type_int64_t, DITTO_I64 },
                  { CFI_type_Bool, DITTO_BOOL } };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].type == x->type)
            return types[i].dtype;
    return (ditto_dtype)0;
}

/* gfortran has the kind of a type in the upper bits of its number. flang gives logicals other than
 * logical(c_bool) numbers of integers that it gives to no integer. */
static bool is_text(const CFI_cdesc_t *x)
{
#ifdef CFI_type_Character
    return x->type >= 0 && (x->type & CFI_type_mask) == CFI_type_Character;
#else
    return x->type == CFI_type_char;
#endif
}

static bool is_logical(const CFI_cdesc_t *x)
{
#ifdef CFI_type_Logical
    return x->type >= 0 && (x->type & CFI_type_mask) == CFI_type_Logical;
#else
    return x->type == CFI_type_Bool || x->type == CFI_type_int_least16_t ||
           x->type == CFI_type_int_least32_t || x->type == CFI_type_int_least64_t;
#endif
}

static ditto_status wrong(const char *procedure, const char *what, const char *why)
{
    char text[300];
    snprintf(text, sizeof text, "%s: %s %s", procedure, what, why);
    return ditto_fail(NULL, 0, "%s", text);
}

/* Dimensions of one element, and arrays of one element or none, lie together wherever they are. That of the
 * compiler's library may say otherwise, and refuses scalars with -fcheck=bounds. */
static bool is_contiguous(const CFI_cdesc_t *x, size_t count)
{
    CFI_index_t next = (CFI_index_t)x->elem_len;
    for (CFI_rank_t i = 0; count > 1 && i < x->rank; i++) {
        if (x->dim[i].extent != 1 && x->dim[i].sm != next)
            return false;
        next *= x->dim[i].extent;
    }
    return true;
}

/* What a procedure does with elements. Those that are only moved may be logicals and characters too, whose
 * bytes are moved. */
enum element_use { COMPUTED, MOVED };

/* Finds the elements of an array, or fails. `what` begins the message, for example "the source". */
static ditto_status find_for(enum element_use use, const char *procedure, const CFI_cdesc_t *x,
                             const char *what, struct elements *out)
{
    *out = (struct elements){ x->base_addr, 1, dtype_of(x) };
    if (x->rank > 0 && x->dim[x->rank - 1].extent == -1)
        return wrong(procedure, what,
                     "is a dummy argument of assumed size, x(*), whose size nobody knows: pass x(1:n)");
    for (CFI_rank_t i = 0; i < x->rank; i++)
        out->count *= x->dim[i].extent > 0 ? (size_t)x->dim[i].extent : 0;
    size_t count = out->count;
    /* gfortran 12 gives the length of the whole text with a part of it, as in text(2:3), and none with an
     * expression. Both cannot be arrays. */
    if (use == MOVED && x->rank == 0 && is_text(x))
        return wrong(procedure, what,
                     "is one text, whose length is not known: use broadcast_text, or an array of texts");
    if (out->dtype == (ditto_dtype)0 && use == MOVED && (is_text(x) || is_logical(x))) {
        out->dtype = DITTO_U8;
        out->count *= x->elem_len;
    }
    if (out->dtype == (ditto_dtype)0)
        return wrong(
            procedure, what,
            "is of a type that ditto does not know: it knows real and complex of 4 and 8 bytes a "
            "number, integer of 1, 2, 4 and 8 bytes, and logical(c_bool); broadcast, all_gather and others "
            "that only move elements also take other logicals, and characters");
    if (out->data == NULL && x->rank == 1 && out->count == 0 && x->attribute == CFI_attribute_other)
        return DITTO_OK; /* [real ::] */
    if (out->data == NULL)
        return wrong(procedure, what, "is not allocated, or not associated");
    if (!is_contiguous(x, count))
        return wrong(procedure, what,
                     "is not contiguous, and would have to be copied: pass an array whose elements lie one "
                     "behind the other, for example a(:, k) and not a(k, :)");
    return DITTO_OK;
}

static ditto_status find(const char *procedure, const CFI_cdesc_t *x, const char *what, struct elements *out)
{
    return find_for(COMPUTED, procedure, x, what, out);
}

/* Finds the elements of two arrays of one type. */
static ditto_status find_pair(enum element_use use, const char *procedure, const CFI_cdesc_t *src,
                              const CFI_cdesc_t *dst, struct elements *s, struct elements *d)
{
    bool in_place = use == COMPUTED && src->base_addr == dst->base_addr;
    DITTO_TRY(find_for(use, procedure, src, in_place ? "the array" : "the source", s));
    DITTO_TRY(find_for(use, procedure, dst, "the destination", d));
    if (src->type == dst->type && src->elem_len == dst->elem_len)
        return DITTO_OK;
    return wrong(procedure, "the destination", "is of another type, or length of text, than the source");
}

/* The same. The first array has `more` elements for `less` of the second. */
static ditto_status find_both(enum element_use use, const char *procedure, const CFI_cdesc_t *src,
                              const CFI_cdesc_t *dst, size_t more, size_t less, struct elements *s,
                              struct elements *d)
{
    ditto_status status = find_pair(use, procedure, src, dst, s, d);
    if (status == DITTO_OK && s->count * less != d->count * more)
        return wrong(procedure, "the destination",
                     "has a size that does not belong to that of the source: equal, or as many "
                     "times larger or smaller as there are replicas");
    return status;
}

/* -- views of arrays -- */

/* Fortran's first dimension is the one whose elements lie together, which is the last one of a tensor. */
static ditto_status view(const char *procedure, const CFI_cdesc_t *x, const char *what, ditto_tensor *out)
{
    struct elements e;
    DITTO_TRY(find(procedure, x, what, &e));
    if (x->rank > DITTO_MAX_RANK)
        return wrong(procedure, what, "has more than 8 dimensions");
    *out = (ditto_tensor){ .data = e.data, .dtype = e.dtype, .rank = (uint32_t)x->rank };
    for (CFI_rank_t i = 0; i < x->rank; i++)
        out->shape[x->rank - 1 - i] = x->dim[i].extent > 0 ? (size_t)x->dim[i].extent : 0;
    return DITTO_OK;
}

/* A refused array has no dtype. The message stays, for ditto_f_check_views. */
void ditto_f_tensor(const CFI_cdesc_t *x, ditto_tensor *out)
{
    if (view("tensor_of", x, "the array", out) != DITTO_OK)
        *out = (ditto_tensor){ .data = NULL };
}

ditto_status ditto_f_check_views(const char *procedure, const ditto_tensor *views, size_t num_views)
{
    char reason[200];
    for (size_t i = 0; i < num_views; i++) {
        if (views[i].dtype != (ditto_dtype)0)
            continue;
        const char *last = strstr(ditto_last_error()->message, "tensor_of: ");
        snprintf(reason, sizeof reason, "is not there%s%s", last != NULL ? ": " : ": give tensor_of(x)",
                 last != NULL ? last : "");
        return wrong(procedure, "a view of an array", reason);
    }
    return DITTO_OK;
}

/* Copies the elements of a view to an array. `why` is the end of the message if they do not fit. */
static ditto_status copy_elements(const char *procedure, const ditto_tensor *from, const CFI_cdesc_t *x,
                                  const char *why)
{
    struct elements e;
    DITTO_TRY(find(procedure, x, "the array", &e));
    if (from->dtype != e.dtype || ditto_tensor_bytes(from) != e.count * ditto_dtype_bytes(e.dtype))
        return wrong(procedure, "the array", why);
    if (e.count != 0)
        memcpy(e.data, from->data, ditto_tensor_bytes(from));
    return DITTO_OK;
}

ditto_status ditto_f_elements(const ditto_tensor *from, const CFI_cdesc_t *x)
{
    return copy_elements("elements_of", from, x, "has another type or size than the view");
}

/* -- collectives -- */

/* The options of a call, and the text of its label. */
struct given_options {
    ditto_reduce_options options;
    char text[256];
};

/* Returns NULL if there is no label and no group. Blanks at the end of a label do not count. What is too long
 * for a label is too long if it is cut, too. */
static const ditto_reduce_options *options_of(const CFI_cdesc_t *label, const ditto_group *group,
                                              struct given_options *out)
{
    if (label == NULL && group == NULL)
        return NULL;
    out->options = (ditto_reduce_options)DITTO_REDUCE_OPTIONS_INIT;
    out->options.group = group;
    if (label == NULL)
        return &out->options;
    const char *text = label->base_addr;
    size_t length = label->elem_len;
    while (length > 0 && text[length - 1] == ' ')
        length--;
    length = length < sizeof out->text ? length : sizeof out->text - 1;
    memcpy(out->text, text, length);
    out->text[length] = '\0';
    out->options.label = out->text;
    return &out->options;
}

/* The number of replicas that make a call, and the caller's number among them. */
static size_t members(const ditto_replica *self, const ditto_group *group)
{
    return group != NULL ? group->size : ditto_num_replicas(self);
}

static uint32_t member(const ditto_replica *self, const ditto_group *group)
{
    return group != NULL ? group->rank : ditto_replica_id(self);
}

ditto_status ditto_f_barrier(ditto_replica *self, const CFI_cdesc_t *label, const ditto_group *group)
{
    struct given_options given;
    return ditto_barrier(self, options_of(label, group, &given));
}

ditto_status ditto_f_exchange(ditto_replica *self, const ditto_exchange_part *parts, size_t num_parts,
                              const CFI_cdesc_t *label, const ditto_group *group)
{
    struct given_options given;
    return ditto_exchange(self, parts, num_parts, options_of(label, group, &given));
}

/* With `out`, this one and the two that follow start an operation. */
ditto_status ditto_f_all_reduce(ditto_replica *self, const CFI_cdesc_t *src, const CFI_cdesc_t *dst, int op,
                                const CFI_cdesc_t *label, const ditto_group *group, ditto_pending *out)
{
    struct elements s, d;
    struct given_options given;
    DITTO_TRY(find_both(COMPUTED, out != NULL ? "start_all_reduce" : "all_reduce", src, dst, 1, 1, &s, &d));
    if (out != NULL)
        return ditto_all_reduce_start(self, s.data, d.data, s.count, s.dtype, (ditto_op)op,
                                      options_of(label, group, &given), out);
    return ditto_all_reduce(self, s.data, d.data, s.count, s.dtype, (ditto_op)op,
                            options_of(label, group, &given));
}

ditto_status ditto_f_reduce_scatter(ditto_replica *self, const CFI_cdesc_t *src, const CFI_cdesc_t *dst,
                                    int op, const CFI_cdesc_t *label, const ditto_group *group,
                                    ditto_pending *out)
{
    struct elements s, d;
    struct given_options given;
    DITTO_TRY(find_both(COMPUTED, out != NULL ? "start_reduce_scatter" : "reduce_scatter", src, dst,
                        members(self, group), 1, &s, &d));
    if (out != NULL)
        return ditto_reduce_scatter_start(self, s.data, d.data, d.count, d.dtype, (ditto_op)op,
                                          options_of(label, group, &given), out);
    return ditto_reduce_scatter(self, s.data, d.data, d.count, NULL, d.dtype, (ditto_op)op,
                                options_of(label, group, &given));
}

ditto_status ditto_f_all_gather(ditto_replica *self, const CFI_cdesc_t *src, const CFI_cdesc_t *dst,
                                const CFI_cdesc_t *label, const ditto_group *group, ditto_pending *out)
{
    struct elements s, d;
    struct given_options given;
    DITTO_TRY(find_both(MOVED, out != NULL ? "start_all_gather" : "all_gather", src, dst, 1,
                        members(self, group), &s, &d));
    if (out != NULL)
        return ditto_all_gather_start(self, s.data, d.data, s.count, s.dtype,
                                      options_of(label, group, &given), out);
    return ditto_all_gather(self, s.data, d.data, s.count, NULL, s.dtype, options_of(label, group, &given));
}

/* Checks that there is a size of a part for each replica, and that they add up to the elements of an array.
 * If there are no sizes, the parts are equal. */
static ditto_status check_counts(size_t n, const char *procedure, const char *what, const CFI_cdesc_t *counts,
                                 size_t elements)
{
    size_t sum = 0;
    if (counts != NULL && counts->dim[0].extent != (CFI_index_t)n)
        return wrong(procedure, "counts", "has another size than there are replicas");
    for (size_t i = 0; counts != NULL && i < n; i++)
        sum += ((const size_t *)counts->base_addr)[i];
    if (counts != NULL ? sum == elements : n == 0 || elements % n == 0) /* a call without members fails */
        return DITTO_OK;
    return wrong(procedure, what,
                 counts != NULL ? "has not as many elements as its parts together"
                                : "has elements that are no equal parts, one for each replica");
}

/* Texts have no counts, because their elements are moved as bytes. With `out` it starts an operation. */
ditto_status ditto_f_all_to_all(ditto_replica *self, const CFI_cdesc_t *src, const CFI_cdesc_t *dst,
                                const CFI_cdesc_t *src_counts, const CFI_cdesc_t *dst_counts,
                                const CFI_cdesc_t *label, const ditto_group *group, ditto_pending *out)
{
    const char *procedure = out != NULL ? "start_all_to_all" : "all_to_all";
    struct elements s, d;
    struct given_options given;
    bool uneven = src_counts != NULL && dst_counts != NULL;
    size_t n = members(self, group);
    if ((src_counts == NULL) != (dst_counts == NULL))
        return wrong(procedure, "one of the counts", "is missing: give both, or none");
    DITTO_TRY(find_both(uneven ? COMPUTED : MOVED, procedure, src, dst, !uneven, !uneven, &s, &d));
    DITTO_TRY(check_counts(n, procedure, "the source", src_counts, s.count));
    DITTO_TRY(check_counts(n, procedure, "the destination", dst_counts, d.count));
    size_t count = n != 0 ? s.count / n : 0;
    if (out != NULL)
        return ditto_all_to_all_start(self, s.data, d.data, count, s.dtype, options_of(label, group, &given),
                                      out);
    const ditto_all_to_all_parts parts = { .src_counts = uneven ? src_counts->base_addr : NULL,
                                           .dst_counts = uneven ? dst_counts->base_addr : NULL };
    return ditto_all_to_all(self, s.data, d.data, count, uneven ? &parts : NULL, s.dtype,
                            options_of(label, group, &given));
}

/* Finds a replica's own part, and on the root the array of all parts. */
static ditto_status find_parts(size_t n, uint32_t id, const char *procedure, const CFI_cdesc_t *own,
                               const CFI_cdesc_t *whole, const CFI_cdesc_t *counts, int root,
                               struct elements *o, struct elements *w)
{
    enum element_use use = counts != NULL ? COMPUTED : MOVED;
    *w = (struct elements){ .data = NULL };
    DITTO_TRY(find_for(use, procedure, own, "the part", o));
    if (id == (uint32_t)root) {
        DITTO_TRY(find_pair(use, procedure, own, whole, o, w));
        if (counts == NULL && w->count != o->count * n)
            return wrong(procedure, "the array of all parts", "has not as many elements as all parts");
        DITTO_TRY(check_counts(n, procedure, "the array of all parts", counts, w->count));
    }
    if (counts != NULL &&
        (counts->dim[0].extent != (CFI_index_t)n || ((const size_t *)counts->base_addr)[id] != o->count))
        return wrong(procedure, "counts",
                     "has another size than there are replicas, or not that of the part");
    return DITTO_OK;
}

ditto_status ditto_f_gather_to_root(ditto_replica *self, const CFI_cdesc_t *src, const CFI_cdesc_t *dst,
                                    const CFI_cdesc_t *counts, int root, const CFI_cdesc_t *label,
                                    const ditto_group *group)
{
    struct elements s, d;
    struct given_options given;
    DITTO_TRY(find_parts(members(self, group), member(self, group), "gather_to_root", src, dst, counts, root,
                         &s, &d));
    return ditto_gather_to_root(self, s.data, d.data, s.count, counts != NULL ? counts->base_addr : NULL,
                                NULL, s.dtype, (uint32_t)root, options_of(label, group, &given));
}

ditto_status ditto_f_scatter_from_root(ditto_replica *self, const CFI_cdesc_t *src, const CFI_cdesc_t *dst,
                                       const CFI_cdesc_t *counts, int root, const CFI_cdesc_t *label,
                                       const ditto_group *group)
{
    struct elements s, d;
    struct given_options given;
    DITTO_TRY(find_parts(members(self, group), member(self, group), "scatter_from_root", dst, src, counts,
                         root, &d, &s));
    return ditto_scatter_from_root(self, s.data, d.data, d.count, counts != NULL ? counts->base_addr : NULL,
                                   NULL, d.dtype, (uint32_t)root, options_of(label, group, &given));
}

ditto_status ditto_f_scan(ditto_replica *self, const CFI_cdesc_t *src, const CFI_cdesc_t *dst, int op,
                          const CFI_cdesc_t *label, const ditto_group *group, int exclusive)
{
    struct elements s, d;
    struct given_options given;
    DITTO_TRY(find_both(COMPUTED, exclusive ? "scan_exclusive" : "scan", src, dst, 1, 1, &s, &d));
    return (exclusive ? ditto_scan_exclusive : ditto_scan)(self, s.data, d.data, s.count, s.dtype,
                                                           (ditto_op)op, options_of(label, group, &given));
}

ditto_status ditto_f_reduce(ditto_replica *self, const CFI_cdesc_t *x, int root, int op,
                            const CFI_cdesc_t *label, const ditto_group *group)
{
    struct elements e;
    struct given_options given;
    DITTO_TRY(find("reduce", x, "the array", &e));
    return ditto_reduce_to_root(self, e.data, e.data, e.count, e.dtype, (ditto_op)op, (uint32_t)root,
                                options_of(label, group, &given));
}

ditto_status ditto_f_broadcast(ditto_replica *self, const CFI_cdesc_t *x, int root, const CFI_cdesc_t *label,
                               const ditto_group *group)
{
    struct elements e;
    struct given_options given;
    DITTO_TRY(find_for(MOVED, "broadcast", x, "the array", &e));
    return ditto_broadcast_from_root(self, e.data, e.count, e.dtype, (uint32_t)root,
                                     options_of(label, group, &given));
}

ditto_status ditto_f_all_reduce_through(ditto_replica *self, const CFI_cdesc_t *x, int op,
                                        ditto_through_fn function, void *user, const CFI_cdesc_t *label,
                                        const ditto_group *group)
{
    struct elements e;
    struct given_options given;
    DITTO_TRY(find("all_reduce_through", x, "the array", &e));
    return ditto_all_reduce_through(self, e.data, e.data, e.count, e.dtype, (ditto_op)op, function, user,
                                    options_of(label, group, &given));
}

static ditto_status find_scalar(const char *procedure, const CFI_cdesc_t *sum, struct elements *out)
{
    DITTO_TRY(find(procedure, sum, "the sum", out));
    return out->count == 1 ? DITTO_OK : wrong(procedure, "the sum", "is not a scalar");
}

ditto_status ditto_f_block_sum(ditto_replica *self, const CFI_cdesc_t *x, const CFI_cdesc_t *sum,
                               const CFI_cdesc_t *label, const ditto_group *group)
{
    struct elements e, s;
    struct given_options given;
    DITTO_TRY(find_scalar("block_sum", sum, &s));
    DITTO_TRY(find("block_sum", x, "the array", &e));
    if (s.dtype != e.dtype)
        return wrong("block_sum", "the sum", "is of another type than the array");
    return ditto_block_sum(self, e.data, s.data, e.count, e.dtype, options_of(label, group, &given));
}

/* *dtype is set before the function is called, which reads it. */
ditto_status ditto_f_block_sum_with(ditto_replica *self, ditto_elements_fn function, void *user, int *dtype,
                                    size_t count, const CFI_cdesc_t *sum, const CFI_cdesc_t *label,
                                    const ditto_group *group)
{
    struct elements s;
    struct given_options given;
    DITTO_TRY(find_scalar("block_sum_with", sum, &s));
    *dtype = s.dtype;
    return ditto_block_sum_with(self, function, user, s.data, count, s.dtype,
                                options_of(label, group, &given));
}

ditto_status ditto_f_block_dot(ditto_replica *self, const CFI_cdesc_t *x, const CFI_cdesc_t *y,
                               const CFI_cdesc_t *sum, const CFI_cdesc_t *label, const ditto_group *group)
{
    struct elements a, b, s;
    struct given_options given;
    DITTO_TRY(find_scalar("block_dot", sum, &s));
    DITTO_TRY(find_both(COMPUTED, "block_dot", x, y, 1, 1, &a, &b));
    if (s.dtype != a.dtype)
        return wrong("block_dot", "the sum", "is of another type than the factors");
    return ditto_block_dot(self, a.data, b.data, s.data, a.count, a.dtype, options_of(label, group, &given));
}

/* The partner and the tag have been set. */
ditto_status ditto_f_part(const CFI_cdesc_t *src, const CFI_cdesc_t *dst, ditto_exchange_part *part)
{
    struct elements s, d;
    DITTO_TRY(find_pair(MOVED, "part", src, dst, &s, &d));
    part->src = s.data;
    part->src_count = s.count;
    part->dst = d.data;
    part->dst_count = d.count;
    part->dtype = s.dtype;
    return DITTO_OK;
}

/* -- strategies and variables -- */

ditto_status ditto_f_create(const ditto_strategy_options *options, int kind, ditto_strategy **out)
{
    int major = 0, minor = 0;
    char text[200];
    if (sscanf(ditto_version(), "%d.%d", &major, &minor) == 2 && major == DITTO_VERSION_MAJOR &&
        minor == DITTO_VERSION_MINOR)
        return ditto_strategy_create((ditto_strategy_kind)kind, options, out);
    snprintf(text, sizeof text,
             "the module was compiled with ditto %d.%d, but the program runs with libditto %s",
             DITTO_VERSION_MAJOR, DITTO_VERSION_MINOR, ditto_version());
    return ditto_fail(NULL, 0, "%s", text);
}

ditto_status ditto_f_mesh(ditto_strategy *strategy, const char *const *names, const uint32_t *extents,
                          uint32_t num_axes, ditto_grouping **out)
{
    ditto_mesh_axis *axes = malloc((num_axes + 1) * sizeof *axes);
    if (axes == NULL)
        return wrong("mesh", "the axes", "are too many: there is no memory for them");
    for (uint32_t a = 0; a < num_axes; a++)
        axes[a] = (ditto_mesh_axis){ names[a], extents[a] };
    ditto_status status = ditto_strategy_mesh(strategy, axes, num_axes, out);
    free(axes);
    return status;
}

ditto_status ditto_f_variable_create(ditto_strategy *strategy, const CFI_cdesc_t *initial, const char *name,
                                     const int *synchronization, const int *aggregation, const int *shards,
                                     ditto_variable **out)
{
    ditto_tensor t;
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    if (shards != NULL && *shards < 1)
        return wrong("create_variable", "the number of shards", "is below 1");
    DITTO_TRY(view("create_variable", initial, "the initial value", &t));
    options.name = name[0] != '\0' ? name : NULL;
    if (synchronization != NULL)
        options.synchronization = (ditto_synchronization)*synchronization;
    if (aggregation != NULL)
        options.aggregation = (ditto_aggregation)*aggregation;
    if (shards != NULL)
        options.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED,
                                                   .num_shards = (size_t)*shards };
    return ditto_variable_create(strategy, &t, &options, out);
}

/* Fails unless an array has the elements of a variable. */
static ditto_status fits(const char *procedure, const ditto_variable *variable, const CFI_cdesc_t *x,
                         struct elements *e)
{
    ditto_tensor spec;
    size_t count = 1;
    DITTO_TRY(find(procedure, x, "the array", e));
    DITTO_TRY(ditto_variable_spec(variable, &spec));
    for (uint32_t i = 0; i < spec.rank; i++)
        count *= spec.shape[i];
    if (count != e->count || spec.dtype != e->dtype)
        return wrong(procedure, "the array", "has another type or size than the variable");
    return DITTO_OK;
}

/* op: 0 reads into the array, other numbers are those of ditto_assign_op. Outside of runs self is NULL. */
ditto_status ditto_f_write(ditto_variable *variable, const CFI_cdesc_t *x, int op, ditto_replica *const *self)
{
    static const char *const names[] = { "read", "assign", "assign_add", "assign_sub" };
    struct elements e;
    const void *values;
    DITTO_TRY(fits(names[op], variable, x, &e));
    size_t bytes = x->elem_len * e.count;
    if (self == NULL)
        return op == 0 ? ditto_variable_read(variable, e.data, bytes)
                       : ditto_variable_assign(variable, (ditto_assign_op)op, e.data, bytes);
    if (op != 0)
        return ditto_assign(*self, variable, (ditto_assign_op)op, e.data);
    DITTO_TRY(ditto_read(*self, variable, &values));
    if (bytes != 0)
        memcpy(e.data, values, bytes);
    return DITTO_OK;
}

/* -- rows -- */

/* Rows of a program need not lie together. */
static int64_t number_at(const CFI_cdesc_t *rows, size_t i)
{
    return *(const int64_t *)((const char *)rows->base_addr + (CFI_index_t)i * rows->dim[0].sm);
}

/* Finds the rows of a variable that an array has elements for. Fortran counts rows from 1, C from 0. The
 * caller frees out->indices. */
static ditto_status find_rows(const char *procedure, const ditto_variable *variable, const CFI_cdesc_t *rows,
                              const CFI_cdesc_t *x, ditto_slices *out)
{
    struct elements e;
    ditto_tensor spec;
    char reason[120];
    size_t count = (size_t)rows->dim[0].extent;
    *out = (ditto_slices){ .rows = count, .row_count = 1 };
    DITTO_TRY(find(procedure, x, "the array", &e));
    DITTO_TRY(ditto_variable_spec(variable, &spec));
    if (spec.rank == 0)
        return wrong(procedure, "the variable", "is a scalar, which has no rows");
    out->values = e.data;
    out->dtype = e.dtype;
    for (uint32_t i = 1; i < spec.rank; i++)
        out->row_count *= spec.shape[i];
    if (spec.dtype != e.dtype || e.count != count * out->row_count)
        return wrong(procedure, "the array", "has another type or size than these rows of the variable");
    for (size_t i = 0; i < count; i++) {
        int64_t row = number_at(rows, i);
        if (row >= 1 && (uint64_t)row <= spec.shape[0])
            continue;
        snprintf(reason, sizeof reason, "%lld is not there: the variable has the rows 1 to %zu",
                 (long long)row, spec.shape[0]);
        return wrong(procedure, "row", reason);
    }
    out->indices = malloc((count + 1) * sizeof *out->indices);
    if (out->indices == NULL)
        return wrong(procedure, "the rows", "are too many: there is no memory for their numbers");
    for (size_t i = 0; i < count; i++)
        out->indices[i] = number_at(rows, i) - 1;
    return DITTO_OK;
}

/* Outside of runs self is NULL. */
ditto_status ditto_f_lookup(ditto_variable *variable, const CFI_cdesc_t *rows, const CFI_cdesc_t *x,
                            ditto_replica *const *self)
{
    ditto_slices s;
    DITTO_TRY(find_rows("lookup", variable, rows, x, &s));
    size_t bytes = s.rows * s.row_count * x->elem_len;
    ditto_status status = self == NULL ? ditto_variable_lookup(variable, s.indices, s.rows, s.values, bytes)
                                       : ditto_lookup(*self, variable, s.indices, s.rows, s.values);
    free(s.indices);
    return status;
}

/* Outside of runs self is NULL. */
ditto_status ditto_f_scatter(ditto_variable *variable, int op, const CFI_cdesc_t *rows, const CFI_cdesc_t *x,
                             ditto_replica *const *self)
{
    ditto_slices s;
    DITTO_TRY(find_rows("scatter", variable, rows, x, &s));
    ditto_status status = self == NULL ? ditto_variable_scatter(variable, (ditto_scatter_op)op, &s)
                                       : ditto_scatter(*self, variable, (ditto_scatter_op)op, &s);
    free(s.indices);
    return status;
}
