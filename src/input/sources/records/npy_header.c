/* src/input/sources/records/npy_header.c - parses the header of a .npy file, a Python dictionary literal with
 * three known keys. */
#include "input/sources/records/npy_header.h"
#include "base/errors/status.h"
#include "base/types/convert.h"
#include "base/types/types.h"

#include <string.h>

static const char magic[6] = { '\x93', 'N', 'U', 'M', 'P', 'Y' };

static ditto_status refuse(ditto_status status, struct dti_text *why, const char *what, size_t offset)
{
    dti_text_add(why, "%s at offset %zu", what, offset);
    return status;
}

ditto_status dti_npy_measure(const char *bytes, size_t length, size_t *start, size_t *end,
                             struct dti_text *why)
{
    const unsigned char *b = (const unsigned char *)bytes;
    size_t text_bytes;
    if (length < 8 || memcmp(bytes, magic, sizeof magic) != 0)
        return refuse(DITTO_ERR_CORRUPT, why, "not a .npy file: it has no \"\\x93NUMPY\" and version", 0);
    if (b[6] < 1 || b[6] > 3 || b[7] != 0) {
        dti_text_add(why, "version %u.%u of the format at offset 6: only 1.0, 2.0 and 3.0 are supported",
                     b[6], b[7]);
        return DITTO_ERR_UNSUPPORTED;
    }
    *start = b[6] == 1 ? 10 : 12;
    if (length < *start)
        return refuse(DITTO_ERR_CORRUPT, why, "the file ends in the length of its header,", length);
    text_bytes = (size_t)b[8] | (size_t)b[9] << 8;
    if (b[6] > 1)
        text_bytes |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (text_bytes > DTI_NPY_HEADER_BYTES) {
        dti_text_add(why, "a header of %zu bytes at offset %zu: at most %d", text_bytes, *start,
                     DTI_NPY_HEADER_BYTES);
        return DITTO_ERR_CORRUPT;
    }
    *end = *start + text_bytes;
    return DITTO_OK;
}

/* -- the text -- */

struct parser {
    const char *text, *at, *end;
    struct dti_npy_header *out;
    struct dti_text *why;
    bool has_descr, has_order, has_shape;
};

static ditto_status wrong(struct parser *p, const char *what)
{
    dti_text_add(p->why, "%s at byte %zu of the header", what, (size_t)(p->at - p->text));
    return DITTO_ERR_CORRUPT;
}

static void skip_spaces(struct parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

/* Skips spaces. If the character `c` comes next, skips it and the spaces after it, and returns true. */
static bool take(struct parser *p, char c)
{
    skip_spaces(p);
    bool found = p->at < p->end && *p->at == c;
    p->at += found;
    skip_spaces(p);
    return found;
}

static bool take_word(struct parser *p, const char *word)
{
    size_t length = strlen(word);
    bool found = (size_t)(p->end - p->at) >= length && memcmp(p->at, word, length) == 0;
    p->at += found ? length : 0;
    return found;
}

/* Parses a string without escapes, in single or double quotes. */
static ditto_status parse_string(struct parser *p, const char **string, size_t *length)
{
    char quote = p->at < p->end ? *p->at : '\0';
    if (quote != '\'' && quote != '"')
        return wrong(p, "no string");
    const char *start = ++p->at;
    while (p->at < p->end && *p->at != quote && *p->at != '\\' && *p->at != '\n')
        p->at++;
    if (p->at == p->end || *p->at != quote)
        return wrong(p, "a string that does not end");
    *string = start;
    *length = (size_t)(p->at++ - start);
    return DITTO_OK;
}

/* Refuses an element type. The message contains at most 64 characters of it. */
static ditto_status no_such_descr(struct parser *p, const char *descr, size_t length, const char *advice)
{
    dti_text_add(p->why, "elements of type %.*s: ditto has no such dtype%s", (int)(length < 64 ? length : 64),
                 descr, advice);
    return DITTO_ERR_UNSUPPORTED;
}

/* Returns the length of a list, tuple or dictionary, up to the bracket that closes it or the end of the
 * text. */
static size_t nested_length(const char *at, const char *end)
{
    const char *start = at;
    int depth = 0;
    do {
        depth += *at == '[' || *at == '(' || *at == '{';
        depth -= *at == ']' || *at == ')' || *at == '}';
    } while (++at < end && depth > 0);
    return (size_t)(at - start);
}

DTI_KNOWS_DTYPES(15);

/* Parses byte order, kind and bytes, for example "<f4". NumPy has no bfloat16: arrays of the package
 * ml_dtypes are written as two bytes of no type (V2). */
static ditto_status parse_descr(struct parser *p)
{
    static const struct {
        char kind, bytes;
        ditto_dtype dtype;
    } known[] = {
        { 'f', 2, DITTO_F16 },  { 'f', 4, DITTO_F32 },  { 'f', 8, DITTO_F64 }, { 'c', 8, DITTO_C64 },
        { 'i', 1, DITTO_I8 },   { 'i', 2, DITTO_I16 },  { 'i', 4, DITTO_I32 }, { 'i', 8, DITTO_I64 },
        { 'u', 1, DITTO_U8 },   { 'u', 2, DITTO_U16 },  { 'u', 4, DITTO_U32 }, { 'u', 8, DITTO_U64 },
        { 'b', 1, DITTO_BOOL }, { 'V', 2, DITTO_BF16 },
    };
    const char *s;
    size_t length;
    if (p->at < p->end &&
        (*p->at == '[' || *p->at == '(' || *p->at == '{')) /* records with fields, arrays as elements */
        return no_such_descr(p, p->at, nested_length(p->at, p->end),
                             ": save each field as an array of its own");
    DTI_TRY(parse_string(p, &s, &length));
    if (length == 8 && memcmp(s, "bfloat16", 8) == 0) {
        s = "<V2";
        length = 3;
    }
    bool complex128 = length == 4 && memcmp(s + 1, "c16", 3) == 0;
    ditto_dtype dtype = complex128 ? DITTO_C128 : (ditto_dtype)0;
    for (size_t i = 0; length == 3 && i < sizeof known / sizeof known[0]; i++)
        if (s[1] == known[i].kind && s[2] == '0' + known[i].bytes)
            dtype = known[i].dtype;
    bool single = ditto_dtype_bytes(dtype) == 1;
    bool any_order = single || dtype == DITTO_BF16; /* of a V2, numpy writes no order, or the machine's */
    bool known_order = length > 0 &&
                       (s[0] == '<' || s[0] == '>' || s[0] == '=' || (s[0] == '|' && any_order));
    if (dtype == 0 || !known_order)
        return no_such_descr(p, s, length, "");
    p->out->spec.dtype = dtype;
    p->out->swap = !single && s[0] != '=' && dti_elements_differ(s[0] == '>');
    return DITTO_OK;
}

/* Parses digits, with an optional L after them, which Python 2 wrote. A shape of NumPy's integers may be
 * written as in np.int64(2). */
static ditto_status parse_length(struct parser *p, size_t *length)
{
    bool named = take_word(p, "np.int64(") || take_word(p, "np.int32(");
    const char *start = p->at;
    *length = 0;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
        if (!dti_multiply(*length, 10, length) ||
            __builtin_add_overflow(*length, (size_t)(*p->at - '0'), length))
            return wrong(p, "a length that is too large");
    if (p->at == start || (*start == '0' && p->at - start > 1))
        return wrong(p, "no length");
    if (named)
        return take_word(p, ")") ? DITTO_OK : wrong(p, "no end of a length");
    p->at += p->at < p->end && *p->at == 'L';
    return DITTO_OK;
}

static ditto_status parse_shape(struct parser *p)
{
    ditto_tensor *spec = &p->out->spec;
    bool comma = true;
    uint32_t rank = 0;
    if (!take(p, '('))
        return wrong(p, "no shape");
    while (!take(p, ')')) {
        size_t length;
        if (!comma)
            return wrong(p, "no comma");
        DTI_TRY(parse_length(p, &length));
        if (rank < DITTO_MAX_RANK)
            spec->shape[rank] = length;
        rank++;
        comma = take(p, ',');
    }
    if (rank == 1 && !comma) /* (3) is a number */
        return wrong(p, "no tuple");
    spec->rank = rank < DITTO_MAX_RANK ? rank : DITTO_MAX_RANK;
    if (rank <= DITTO_MAX_RANK)
        return DITTO_OK;
    dti_text_add(p->why, "an array of rank %u: at most %d", rank, DITTO_MAX_RANK);
    return DITTO_ERR_UNSUPPORTED;
}

static ditto_status parse_order(struct parser *p)
{
    p->out->fortran = take_word(p, "True");
    return p->out->fortran || take_word(p, "False") ? DITTO_OK : wrong(p, "neither True nor False");
}

/* Parses the value of a key. Each key may occur once. */
static ditto_status parse_value(struct parser *p, const char *key, size_t length)
{
    static const struct {
        const char *name;
        ditto_status (*parse)(struct parser *p);
    } known[] = { { "descr", parse_descr }, { "fortran_order", parse_order }, { "shape", parse_shape } };
    bool *seen[] = { &p->has_descr, &p->has_order, &p->has_shape };
    for (size_t i = 0; i < 3; i++)
        if (length == strlen(known[i].name) && memcmp(key, known[i].name, length) == 0 && !*seen[i]) {
            *seen[i] = true;
            return known[i].parse(p);
        }
    return wrong(p, "a key that is not descr, fortran_order or shape, once each,");
}

/* Checks that the bytes of the array can be counted, also if a dimension is 0. */
static ditto_status check_size(struct parser *p)
{
    ditto_tensor *spec = &p->out->spec;
    size_t bytes = ditto_dtype_bytes(spec->dtype);
    for (uint32_t i = 0; i < spec->rank; i++)
        if (!dti_multiply(bytes, spec->shape[i] != 0 ? spec->shape[i] : 1, &bytes) || bytes > PTRDIFF_MAX)
            return wrong(p, "a shape of more bytes than an object can have");
    return DITTO_OK;
}

ditto_status dti_npy_parse(const char *text, size_t length, struct dti_npy_header *out, struct dti_text *why)
{
    struct parser p = { .text = text, .at = text, .end = text + length, .out = out, .why = why };
    bool comma = true;
    *out = (struct dti_npy_header){ 0 };
    if (!take(&p, '{'))
        return wrong(&p, "no dictionary");
    while (!take(&p, '}')) {
        const char *key;
        size_t key_bytes;
        if (!comma)
            return wrong(&p, "no comma");
        DTI_TRY(parse_string(&p, &key, &key_bytes));
        if (!take(&p, ':'))
            return wrong(&p, "no colon");
        DTI_TRY(parse_value(&p, key, key_bytes));
        comma = take(&p, ',');
    }
    if (p.at != p.end)
        return wrong(&p, "text after the dictionary");
    if (!p.has_descr || !p.has_order || !p.has_shape)
        return wrong(&p, "one of descr, fortran_order and shape is missing");
    return check_size(&p);
}
