/* src/input/sources/text/csv_field.h - finds the fields of a CSV row, and parses the number or text in a
 * field. Pure. */
#ifndef DTI_CSV_FIELD_H
#define DTI_CSV_FIELD_H

#include <ditto/dtype.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A field as it lies in its row. If the field is in quotes, this is the text between them. */
struct dti_csv_field {
    const char *text;
    size_t length;
    bool doubled; /* it has doubled quotes; each pair means one quote */
};

/* Finds the field that begins at `at`. Returns its end, which is a delimiter or `end`. Returns NULL if the
 * text is not a valid field, and sets *fault to the reason. */
const char *dti_csv_cut(const char *at, const char *end, char delimiter, bool quotes,
                        struct dti_csv_field *field, const char **fault);

/* Copies the field's text, with one quote for each doubled quote, and fills the rest of `to` with zeros. Sets
 * *length to the length of the text. Returns false if the text has more than `capacity` bytes. */
bool dti_csv_copy(const struct dti_csv_field *field, char *to, size_t capacity, size_t *length);

/* Checks for valid UTF-8 as in RFC 3629: no surrogates, nothing above U+10FFFF, no overlong encodings. */
bool dti_utf8_valid(const char *text, size_t length);

/* A decimal number mantissa * 10^exponent. If `digits` is above DTI_CSV_DIGITS, mantissa and exponent are not
 * valid, because they may have overflowed. */
#define DTI_CSV_DIGITS 19
struct dti_csv_number {
    uint64_t mantissa;
    int64_t exponent;
    size_t digits; /* of the mantissa, 0 if there is no number */
    bool negative;
    bool whole; /* neither a point nor an exponent was written */
};

/* Scans the part of a number that begins with '.', 'e' or 'E'. Returns its end, or `at` if nothing of it
 * belongs to the number. */
const char *dti_csv_scan_rest(const char *at, const char *end, struct dti_csv_number *number);

/* Scans the number that begins at `at`: [+-] digits [. digits] [e [+-] digits]. The digits on one side of the
 * point may be missing. Returns its end. It is inline because most of the time of reading a file is spent
 * here. */
static inline const char *dti_csv_scan(const char *at, const char *end, struct dti_csv_number *number)
{
    uint64_t mantissa = 0;
    unsigned digit;
    number->negative = at < end && *at == '-';
    number->exponent = 0;
    number->whole = true;
    at += at < end && (*at == '-' || *at == '+');
    const char *first = at;
    for (; at < end && (digit = (unsigned)(unsigned char)*at - '0') <= 9; at++)
        mantissa = mantissa * 10 + digit;
    number->digits = (size_t)(at - first);
    number->mantissa = mantissa;
    if (at < end && (*at == '.' || *at == 'e' || *at == 'E'))
        return dti_csv_scan_rest(at, end, number);
    return at;
}

/* Parses an unsigned integer of 1 to 7 digits at `at`, where 8 bytes can be read. Returns the number of
 * digits, or 0 if there is something else. It takes all digits at once, because a branch on their number
 * cannot be predicted: it combines neighbours to pairs, then to fours, then to eight. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define DTI_CSV_SHORT_BYTES 8
static inline unsigned dti_csv_short(const char *at, uint32_t *value)
{
    uint64_t eight, others;
    memcpy(&eight, at, sizeof eight);
    eight ^= 0x3030303030303030u; /* digits are now 0 to 9, all other bytes are larger */
    /* Marks the bytes that are not digits. A carry changes only bytes after the first of them. */
    others = ((eight + 0x7676767676767676u) | eight) & 0x8080808080808080u;
    unsigned bits = others != 0 ? (unsigned)__builtin_ctzll(others) & 0x38u : 0;
    if (bits == 0)
        return 0;
    /* The first byte is the lowest one, so the shift puts zeros in front of the number. */
    eight <<= 64 - bits;
    eight = (eight * 10 + (eight >> 8)) & 0x00ff00ff00ff00ffu;
    eight = (eight * 100 + (eight >> 16)) & 0x0000ffff0000ffffu;
    *value = (uint32_t)(eight * 10000 + (eight >> 32));
    return bits / 8;
}
#else
#define DTI_CSV_SHORT_BYTES PTRDIFF_MAX /* no row has as many bytes left */
static inline unsigned dti_csv_short(const char *at, uint32_t *value)
{
    (void)at;
    *value = 0;
    return 0;
}
#endif

/* Writes the number as an element of this dtype. A real number is rounded to the nearest f64, and for f32 the
 * f64 is rounded again. text[0..length) is the text that dti_csv_scan has scanned. Returns false if the dtype
 * cannot hold the number, or its text is too long for dti_parse_f64, or if it has more than DTI_CSV_DIGITS
 * digits and a point or an exponent, and the dtype is an integer. */
bool dti_csv_store(const struct dti_csv_number *number, const char *text, size_t length, ditto_dtype dtype,
                   void *to);

/* Returns true if the field has no value: it is empty, or nan or NA, as pandas and R write that. */
bool dti_csv_is_missing(const struct dti_csv_field *field);

/* Parses 0, 1, true or false, also True, TRUE, False and FALSE. Returns false for any other text. */
bool dti_csv_store_bool(const char *text, size_t length, uint8_t *to);

#endif
