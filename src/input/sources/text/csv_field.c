/* src/input/sources/text/csv_field.c - finds and parses fields of CSV rows. */
#include "input/sources/text/csv_field.h"
#include "base/text/text.h"
#include "base/types/convert.h"
#include "base/types/types.h"

#include <math.h>
#include <string.h>

/* -- cutting -- */

/* Finds the end of a field in quotes. `at` points to the byte after the opening quote. */
static const char *cut_quoted(const char *at, const char *end, char delimiter, struct dti_csv_field *field,
                              const char **fault)
{
    *field = (struct dti_csv_field){ .text = at };
    for (;;) {
        const char *quote = memchr(at, '"', (size_t)(end - at));
        if (quote == NULL) {
            *fault = "its quote is not closed";
            return NULL;
        }
        at = quote + 1;
        if (at < end && *at == '"') {
            field->doubled = true;
            at++;
            continue;
        }
        field->length = (size_t)(quote - field->text);
        if (at == end || *at == delimiter)
            return at;
        *fault = "there is text after a closing quote";
        return NULL;
    }
}

const char *dti_csv_cut(const char *at, const char *end, char delimiter, bool quotes,
                        struct dti_csv_field *field, const char **fault)
{
    if (quotes && at < end && *at == '"')
        return cut_quoted(at + 1, end, delimiter, field, fault);
    const char *stop = at < end ? memchr(at, delimiter, (size_t)(end - at)) : NULL;
    stop = stop != NULL ? stop : end;
    *field = (struct dti_csv_field){ .text = at, .length = (size_t)(stop - at) };
    if (quotes && memchr(at, '"', field->length) != NULL) {
        *fault = "there is a quote in the middle of a field that does not begin with one";
        return NULL;
    }
    return stop;
}

/* -- text -- */

bool dti_csv_copy(const struct dti_csv_field *field, char *to, size_t capacity, size_t *length)
{
    const char *at = field->text, *end = at + field->length;
    size_t used = 0;
    while (at < end) { /* copies up to and including a quote, and skips the quote that doubles it */
        const char *quote = field->doubled ? memchr(at, '"', (size_t)(end - at)) : NULL;
        size_t piece = (size_t)((quote != NULL ? quote + 1 : end) - at);
        if (piece > capacity - used)
            return false;
        memcpy(to + used, at, piece);
        used += piece;
        at += piece + (quote != NULL);
    }
    memset(to + used, 0, capacity - used);
    *length = used;
    return true;
}

/* Returns the length in bytes of the character at `text`, or 0 if it is not valid UTF-8. */
static size_t character_bytes(const unsigned char *text, size_t length)
{
    unsigned char first = text[0], low = 0x80, high = 0xbf;
    size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (bytes == 1)
        return 1;
    /* 0x80 to 0xbf cannot begin a character. 0xc0 and 0xc1 begin overlong encodings. */
    if (first < 0xc2 || first > 0xf4 || bytes > length)
        return 0;
    if (first == 0xe0)
        low = 0xa0; /* smaller bytes make overlong encodings */
    else if (first == 0xed)
        high = 0x9f; /* larger bytes make surrogates */
    else if (first == 0xf0)
        low = 0x90; /* smaller bytes make overlong encodings */
    else if (first == 0xf4)
        high = 0x8f; /* larger bytes make characters above U+10FFFF */
    if (text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < bytes; i++)
        if (text[i] < 0x80 || text[i] > 0xbf)
            return 0;
    return bytes;
}

bool dti_utf8_valid(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    while (length > 0) {
        uint64_t eight = 0;
        size_t bytes = 8;
        if (length >= sizeof eight)
            memcpy(&eight, at, sizeof eight);
        if (length < sizeof eight || (eight & 0x8080808080808080u) != 0)
            bytes = character_bytes(at, length);
        if (bytes == 0)
            return false;
        at += bytes;
        length -= bytes;
    }
    return true;
}

/* -- numbers -- */

static const char *scan_digits(const char *at, const char *end, uint64_t *number)
{
    unsigned digit;
    for (; at < end && (digit = (unsigned)(unsigned char)*at - '0') <= 9; at++)
        *number = *number * 10 + digit;
    return at;
}

const char *dti_csv_scan_rest(const char *at, const char *end, struct dti_csv_number *n)
{
    const char *start = at;
    if (*at == '.') {
        const char *first = ++at;
        at = scan_digits(at, end, &n->mantissa);
        n->exponent = -(int64_t)(at - first);
        n->digits += (size_t)(at - first);
        n->whole = false;
    }
    if (n->digits == 0) /* there is only a point */
        return start;
    if (at < end && (*at == 'e' || *at == 'E')) {
        const char *first = at + 1;
        bool negative = first < end && *first == '-';
        uint64_t exponent = 0;
        first += first < end && (*first == '-' || *first == '+');
        const char *behind = scan_digits(first, end, &exponent);
        if (behind == first) /* an e without digits does not belong to the number */
            return at;
        /* An exponent of more than 9 digits is not computed. If `digits` is above DTI_CSV_DIGITS, the C
         * library parses the number. */
        if (behind - first > 9)
            n->digits = DTI_CSV_DIGITS + 1;
        n->exponent += negative ? -(int64_t)(exponent % 1000000000) : (int64_t)(exponent % 1000000000);
        n->whole = false;
        at = behind;
    }
    return at;
}

/* If mantissa and power of ten are both exact, one operation rounds only once (W. D. Clinger, "How to read
 * floating point numbers accurately", PLDI 1990). Returns false for other numbers, which the C library
 * parses. */
static bool exact_real(const struct dti_csv_number *n, double *value)
{
    static const double power[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    if (n->digits > DTI_CSV_DIGITS || n->mantissa > (uint64_t)1 << 53 || n->exponent < -22 ||
        n->exponent > 22)
        return false;
    double exact = (double)n->mantissa;
    exact = n->exponent < 0 ? exact / power[-n->exponent] : exact * power[n->exponent];
    *value = n->negative ? -exact : exact;
    return true;
}

static bool store_real(const struct dti_csv_number *n, const char *text, size_t length, ditto_dtype dtype,
                       void *to)
{
    double value;
    if (!exact_real(n, &value) && !dti_parse_f64(text, length, &value))
        return false;
    if (dtype == DITTO_F64) {
        *(double *)to = value;
        return true;
    }
    *(float *)to = (float)value;
    return !isinf(*(float *)to); /* 1e39 is a number that f32 cannot hold */
}

/* Parses an integer of more than DTI_CSV_DIGITS digits. Returns false if it overflows 64 bits. */
static bool long_integer(const char *text, size_t length, uint64_t *magnitude)
{
    size_t i = text[0] == '-' || text[0] == '+' ? 1 : 0;
    for (*magnitude = 0; i < length; i++)
        if (__builtin_mul_overflow(*magnitude, (uint64_t)10, magnitude) ||
            __builtin_add_overflow(*magnitude, (uint64_t)(text[i] - '0'), magnitude))
            return false;
    return true;
}

DTI_KNOWS_DTYPES(15); /* the number of an integer dtype gives its size here */

/* Computes the magnitude of a number with a point or an exponent. Programs that keep all numbers as floating
 * point write whole ones as 31.0 and 1e+05. Returns false if it is not whole or overflows 64 bits. */
static bool whole_magnitude(const struct dti_csv_number *n, uint64_t *magnitude)
{
    int64_t exponent = n->mantissa != 0 ? n->exponent : 0;
    *magnitude = n->mantissa;
    for (; exponent < 0 && *magnitude % 10 == 0; exponent++)
        *magnitude /= 10;
    for (; exponent > 0; exponent--)
        if (__builtin_mul_overflow(*magnitude, (uint64_t)10, magnitude))
            return false;
    return exponent == 0 && n->digits <= DTI_CSV_DIGITS;
}

static bool store_integer(const struct dti_csv_number *n, const char *text, size_t length, ditto_dtype dtype,
                          void *to)
{
    bool is_signed = dti_dtype_class_of(dtype) == DTI_CLASS_SIGNED;
    size_t bytes = (size_t)1 << ((unsigned)(dtype - (is_signed ? DITTO_I8 : DITTO_U8)) & 3);
    uint64_t most = UINT64_MAX >> (64 - 8 * bytes + is_signed), magnitude = n->mantissa;
    if (n->whole ? n->digits > DTI_CSV_DIGITS && !long_integer(text, length, &magnitude)
                 : !whole_magnitude(n, &magnitude))
        return false;
    if (magnitude > (!n->negative ? most : is_signed ? most + 1 : 0))
        return false;
    dti_integer_store(to, bytes, n->negative ? -magnitude : magnitude);
    return true;
}

bool dti_csv_store(const struct dti_csv_number *number, const char *text, size_t length, ditto_dtype dtype,
                   void *to)
{
    return dtype == DITTO_F32 || dtype == DITTO_F64 ? store_real(number, text, length, dtype, to)
                                                    : store_integer(number, text, length, dtype, to);
}

/* Returns the index of the text in the list, or `count` if it is none of them. */
static size_t index_of(const char *const *list, size_t count, const char *text, size_t length)
{
    size_t i = 0;
    while (i < count && (strlen(list[i]) != length || memcmp(text, list[i], length) != 0))
        i++;
    return i;
}

bool dti_csv_is_missing(const struct dti_csv_field *field)
{
    static const char *const missing[] = { "", "nan", "NaN", "NA" };
    return index_of(missing, 4, field->text, field->length) < 4;
}

bool dti_csv_store_bool(const char *text, size_t length, uint8_t *to)
{
    static const char *const bools[] = { "0", "1", "false", "true", "False", "True", "FALSE", "TRUE" };
    size_t found = index_of(bools, 8, text, length);
    *to = found % 2;
    return found < 8;
}
