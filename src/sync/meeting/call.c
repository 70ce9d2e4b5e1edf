/* src/sync/meeting/call.c - compares and describes calls. All functions are pure. */
#include "sync/meeting/call.h"
#include "base/numbers/checksum.h"

#include <string.h>

bool dti_call_same(const struct dti_call *a, const struct dti_call *b)
{
    return a->name == b->name && a->object == b->object && a->count == b->count &&
           a->element_bytes == b->element_bytes && a->root == b->root && a->whole == b->whole &&
           a->pattern == b->pattern && a->dtype == b->dtype && a->op == b->op &&
           a->implementation == b->implementation && a->hash == b->hash;
}

bool dti_call_identical(const struct dti_call *a, const struct dti_call *b)
{
    return dti_call_same(a, b) && a->src == b->src && a->dst == b->dst && a->list == b->list &&
           a->before == b->before && a->counts == b->counts && a->more == b->more &&
           a->is_internal == b->is_internal && a->label == b->label;
}

uint32_t dti_call_digest(const struct dti_call *c)
{
    uint64_t d = dti_hash_word(c->hash, (uint64_t)(uintptr_t)c->name);
    d = dti_hash_word(d, (uint64_t)(uintptr_t)c->object + c->count);
    d = dti_hash_word(d, (uint64_t)c->element_bytes << 32 | c->root);
    d = dti_hash_word(d, (uint64_t)c->pattern << 24 | (uint64_t)c->dtype << 16 | (uint64_t)c->op << 8 |
                             c->implementation);
    return (uint32_t)(d >> 32);
}

DTI_KNOWS_PATTERNS(15);

static void describe_size(const struct dti_call *c, struct dti_text *text)
{
    if (dti_call_has_items(c))
        dti_text_add(text, " (%zu tensors%s%s", c->whole, c->op != 0 ? ", " : "",
                     c->op != 0 ? ditto_op_name((ditto_op)c->op) : "");
    else if (c->dtype == 0)
        dti_text_add(text, " (%zu x %zu bytes, with a function of the caller%s", c->count, c->element_bytes,
                     c->pattern == DTI_PATTERN_SCAN_EXCLUSIVE ? ", exclusive" : "");
    else if (c->pattern == DTI_PATTERN_BLOCKS) /* the counts may differ between replicas */
        dti_text_add(text, " (of %s", ditto_dtype_name((ditto_dtype)c->dtype));
    else if (c->pattern == DTI_PATTERN_ALL_TO_ALL && c->whole != 0) /* and so may these */
        dti_text_add(text, " (%zu parts of %s", c->whole, ditto_dtype_name((ditto_dtype)c->dtype));
    else
        dti_text_add(text, " (%s%zu x %s",
                     c->pattern == DTI_PATTERN_SLICES ? "rows of "
                     : c->counts != NULL              ? "at most "
                                                      : "",
                     c->count, ditto_dtype_name((ditto_dtype)c->dtype));
    if (c->dtype != 0 && c->op != 0 && c->pattern != DTI_PATTERN_BLOCKS)
        dti_text_add(text, ", %s", ditto_op_name((ditto_op)c->op));
    if (c->root != DTI_NO_ROOT)
        dti_text_add(text, ", root %u", c->root);
    dti_text_add(text, ")");
}

void dti_call_describe(const struct dti_call *c, uint64_t number, struct dti_text *text)
{
    dti_text_add_name(text, c->name, c->label);
    dti_text_add(text, " #%llu", (unsigned long long)number);
    if (c->pattern == DTI_PATTERN_NOTHING && c->count != 0)
        dti_text_add(text, " (%zu argument%s)", c->count, c->count == 1 ? "" : "s");
    else if (c->pattern != DTI_PATTERN_NOTHING && !c->is_internal)
        describe_size(c, text);
    if (c->implementation != DITTO_IMPLEMENTATION_DEFAULT)
        dti_text_add(text, ", %s", c->implementation == DITTO_IMPLEMENTATION_FLAT ? "FLAT" : "HIERARCHICAL");
    if (c->object != NULL)
        dti_text_add(text, " on \"%s\"", c->object);
}

static void describe_item(const ditto_list_item *item, struct dti_text *text)
{
    dti_text_add(text, "%zu x ", item->count);
    dti_text_add_name(text, ditto_dtype_name(item->dtype), item->label);
}

/* Writes where two lists differ. Returns false if they do not. */
static bool describe_items(const struct dti_call *a, const struct dti_call *b, struct dti_text *text)
{
    const ditto_list_item *one = a->list - a->before, *other = b->list - b->before;
    for (size_t i = 0; i < a->whole && i < b->whole; i++)
        if (one[i].count != other[i].count || one[i].dtype != other[i].dtype ||
            !dti_text_same(one[i].label, other[i].label)) {
            dti_text_add(text, " (item %zu: ", i);
            describe_item(&one[i], text);
            dti_text_add(text, ", but ");
            describe_item(&other[i], text);
            dti_text_add(text, ")");
            return true;
        }
    return false;
}

static bool describe_counts(const struct dti_call *a, const struct dti_call *b, uint32_t n,
                            struct dti_text *text)
{
    if ((a->counts == NULL) != (b->counts == NULL)) {
        dti_text_add(text, " (counts is NULL on one of them)");
        return true;
    }
    for (uint32_t i = 0; a->counts != NULL && i < n; i++)
        if (a->counts[i] != b->counts[i]) {
            dti_text_add(text, " (counts[%u]: %zu, but %zu)", i, a->counts[i], b->counts[i]);
            return true;
        }
    return false;
}

void dti_call_difference(const struct dti_call *a, const struct dti_call *b, uint32_t n,
                         struct dti_text *text)
{
    if (a->name != b->name || !dti_text_same(a->label, b->label) || a->pattern != b->pattern ||
        a->whole != b->whole || (a->pattern == DTI_PATTERN_NOTHING && a->count != b->count))
        return; /* the descriptions of the calls show the difference */
    if (a->object != b->object) {
        if (a->object != NULL && b->object != NULL && strcmp(a->object, b->object) == 0)
            dti_text_add(text, " (two variables of that name)");
        return;
    }
    if (dti_call_has_items(a) && dti_call_has_items(b) && describe_items(a, b, text))
        return;
    if (!describe_counts(a, b, n, text) && a->hash != b->hash)
        dti_text_add(text, a->pattern == DTI_PATTERN_LIST     ? " (their bytes_per_pack differs)"
                           : a->pattern == DTI_PATTERN_TARGET ? " (their learning rates or variables differ)"
                           : a->pattern == DTI_PATTERN_SLICES ? " (their flags or numbers of rows differ)"
                                                              : " (their functions differ)");
}
