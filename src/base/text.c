/* src/base/text.c - reports, small files, numbers. */
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void dti_text_add(struct dti_text *text, const char *format, ...)
{
    va_list arguments;
    size_t room = text->length < text->size ? text->size - text->length : 0;
    va_start(arguments, format);
    int wanted = vsnprintf(room != 0 ? text->buffer + text->length : NULL, room, format, arguments);
    va_end(arguments);
    text->length += wanted > 0 ? (size_t)wanted : 0;
}

bool dti_read_file(const char *path, char *buffer, size_t size)
{
    int kept_errno = errno;
    size_t used = 0;
    ssize_t got = -1;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        while (used < size - 1 && (got = read(file, buffer + used, size - 1 - used)) > 0)
            used += (size_t)got;
        close(file);
    }
    buffer[used] = '\0';
    errno = kept_errno;
    return file >= 0 && got >= 0;
}

/* Up to 15 digits are exact in a double, and most data is short integers: the library's parser is for the rest. */
static bool parse_short_integer(const char *text, size_t length, int64_t *value)
{
    size_t i = length > 0 && text[0] == '-' ? 1 : 0;
    int64_t sum = 0;
    if (length - i == 0 || length - i > 15)
        return false;
    for (; i < length; i++) {
        unsigned digit = (unsigned)(text[i] - '0');
        if (digit > 9)
            return false;
        sum = sum * 10 + (int64_t)digit;
    }
    *value = text[0] == '-' ? -sum : sum;
    return true;
}

static locale_t c_locale;
static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* kept for the life of the process: strtod_l needs one */
}

bool dti_parse_f64(const char *text, size_t length, double *value)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char copy[64], *end;
    int64_t integer;
    if (parse_short_integer(text, length, &integer) && (integer != 0 || text[0] != '-')) { /* "-0" is a float's */
        *value = (double)integer;
        return true;
    }
    if (length == 0 || length >= sizeof copy || text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r'))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    pthread_once(&once, make_c_locale);
    int kept_errno = errno;
    *value = strtod_l(copy, &end, c_locale);
    errno = kept_errno;
    return end == copy + length;
}

bool dti_parse_i64(const char *text, size_t length, int64_t *value)
{
    char copy[32], *end;
    if (parse_short_integer(text, length, value))
        return true;
    if (length == 0 || length >= sizeof copy || !(text[0] == '-' || (text[0] >= '0' && text[0] <= '9')))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    int kept_errno = errno;
    errno = 0;
    long long wide = strtoll(copy, &end, 10); /* digits only: no locale in it */
    bool fits = errno == 0;
    errno = kept_errno;
    *value = wide;
    return fits && end == copy + length;
}
