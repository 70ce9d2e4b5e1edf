/* src/input/sources/text/csv_field.h - what a field of a CSV row is, and the number or text that stands in it. Pure. */
#ifndef DTI_CSV_FIELD_H
#define DTI_CSV_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <ditto/dtype.h>

/* A field as it lies in its row: of one in quotes, what is between them. */
struct dti_csv_field {
    const char *text;
    size_t length;
    bool doubled; /* there are doubled quotes in it, each of which stands for one */
};

/* Cuts the field that begins at `at`: returns where it ends, at a delimiter or at `end`. NULL: that is no field, *fault tells why. */
const char *dti_csv_cut(const char *at, const char *end, char delimiter, bool quotes,
                        struct dti_csv_field *field, const char **fault);

/* Copies the field's text without the quotes around it, and zeros behind it; false: it has more than `room` bytes. */
bool dti_csv_copy(const struct dti_csv_field *field, char *to, size_t capacity, size_t *length);
/* RFC 3629: no surrogates, nothing above U+10FFFF, nothing longer than needed. */
bool dti_utf8_valid(const char *text, size_t length);

/* A decimal number: mantissa * 10^exponent, where `digits` is not above DTI_CSV_DIGITS: else they are too many to tell. */
#define DTI_CSV_DIGITS 19
struct dti_csv_number {
    uint64_t mantissa;
    int64_t exponent;
    size_t digits;        /* that the mantissa was written with; 0: there is no number */
    bool negative, whole; /* neither point nor exponent was written */
};

/* The part of a number from '.' or 'e' on; returns where it ends, `at` itself when nothing belongs to the number. */
const char *dti_csv_scan_rest(const char *at, const char *end, struct dti_csv_number *number);

/* Goes over the number that begins at `at`: [+-] digits [. digits] [e [+-] digits], where digits may lack on one side of the point.
 * Returns where it ends. Inline: most of the time that reading a file takes is spent here. */
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

/* An unsigned integer of 1 to 7 digits at `at`, where 8 bytes can be read: how many digits; 0: something else stands there. All digits
 * are taken at once, as how many there are can't be predicted: neighbours are added up to pairs, fours, and eight. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define DTI_CSV_SHORT_BYTES 8
static inline unsigned dti_csv_short(const char *at, uint32_t *value)
{
    uint64_t eight, others;
    memcpy(&eight, at, sizeof eight);
    eight ^= 0x3030303030303030u; /* digits are 0 to 9 now, and all else is more */
    others = ((eight + 0x7676767676767676u) | eight) &
             0x8080808080808080u; /* a carry spoils only bytes behind the first of them */
    unsigned bits = others != 0 ? (unsigned)__builtin_ctzll(others) & 0x38u : 0;
    if (bits == 0)
        return 0;
    eight <<= 64 - bits; /* the first byte is the lowest: zeros come in front of the number */
    eight = (eight * 10 + (eight >> 8)) & 0x00ff00ff00ff00ffu;
    eight = (eight * 100 + (eight >> 16)) & 0x0000ffff0000ffffu;
    *value = (uint32_t)(eight * 10000 + (eight >> 32));
    return bits / 8;
}
#else
#define DTI_CSV_SHORT_BYTES PTRDIFF_MAX /* so much is never left of a row */
static inline unsigned dti_csv_short(const char *at, uint32_t *value)
{
    (void)at;
    *value = 0;
    return 0;
}
#endif

/* text[0..length) is what dti_csv_scan has gone over: writes it as an element of this dtype, rounded to nearest. False: the dtype can't
 * hold it, or it has digits behind the point that an integer can't have. */
bool dti_csv_store(const struct dti_csv_number *number, const char *text, size_t length, ditto_dtype dtype,
                   void *to);
/* 0, 1, true or false. */
bool dti_csv_store_bool(const char *text, size_t length, uint8_t *to);

#endif
