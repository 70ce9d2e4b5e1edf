/* src/base/text/text.c - sets of numbers as text, small files and parsed numbers; see text.h. */
#include "base/text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_NUMBER_BYTES 400 /* of the text of a number, with its terminator */
#define MOST_RANGES       8   /* of a set of numbers in a message */

void dti_text_add_name(struct dti_text *text, const char *name, const char *label)
{
    dti_text_add(text, "%s", name);
    if (label != NULL)
        dti_text_add(text, " \"%s\"", label);
}

void dti_text_add_set(struct dti_text *text, const bool *set, uint32_t n, uint32_t first)
{
    uint32_t ranges = 0, more = 0;
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && set[end] == set[i]; end++)
            ;
        if (!set[i])
            continue;
        if (end - i == 2) /* "0, 1" reads better than "0-1" */
            end--;
        if (ranges == MOST_RANGES) {
            more += end - i;
            continue;
        }
        dti_text_add(text, end - i == 1 ? "%s%u" : "%s%u-%u", ranges++ != 0 ? ", " : "", first + i,
                     first + end - 1);
    }
    if (more != 0)
        dti_text_add(text, " and %u more", more);
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

char *dti_absolute_name(const char *name)
{
    char *folder = name[0] != '/' ? getcwd(NULL, 0) : NULL;
    size_t before = folder != NULL ? strlen(folder) + 1 : 0, bytes = strlen(name) + 1;
    before = before + bytes <= PATH_MAX ? before : 0;
    char *path = malloc(before + bytes);
    if (path != NULL && before > 0) {
        memcpy(path, folder, before - 1);
        path[before - 1] = '/';
    }
    if (path != NULL)
        memcpy(path + before, name, bytes);
    free(folder);
    return path;
}

/* Most numbers in data are short integers, and integers of up to 15 digits are exact in a double. Only the
 * other numbers need strtod_l and strtoll. */
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
    /* It is kept until the process ends, because strtod_l needs it. */
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Skips digits. Returns false if there is none. */
static bool skip_digits(const char **at, const char *end)
{
    const char *start = *at;
    while (*at < end && **at >= '0' && **at <= '9')
        ++*at;
    return *at > start;
}

/* Returns true for [+-] digits [. digits] [e [+-] digits]. The digits before or after the point may be
 * missing, but not both. Spaces, hexadecimal numbers and names of infinity are not allowed. */
static bool is_decimal(const char *at, const char *end)
{
    at += at < end && (*at == '+' || *at == '-');
    bool whole = skip_digits(&at, end), fraction = false;
    if (at < end && *at == '.') {
        at++;
        fraction = skip_digits(&at, end);
    }
    if (!whole && !fraction)
        return false;
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        if (!skip_digits(&at, end))
            return false;
    }
    return at == end;
}

bool dti_parse_f64(const char *text, size_t length, double *value)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char copy[MOST_NUMBER_BYTES];
    int64_t integer;
    /* "-0" is left to strtod_l, because only a floating-point zero has a sign. */
    if (parse_short_integer(text, length, &integer) && (integer != 0 || text[0] != '-')) {
        *value = (double)integer;
        return true;
    }
    if (length >= sizeof copy || !is_decimal(text, text + length))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    pthread_once(&once, make_c_locale);
    int kept_errno = errno;
    *value = strtod_l(copy, NULL, c_locale);
    errno = kept_errno;
    return !isinf(*value);
}

bool dti_parse_i64(const char *text, size_t length, int64_t *value)
{
    char copy[MOST_NUMBER_BYTES];
    const char *at = text, *end = text + length;
    if (parse_short_integer(text, length, value))
        return true;
    at += length > 0 && (*at == '+' || *at == '-');
    if (length >= sizeof copy || !skip_digits(&at, end) || at != end)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    int kept_errno = errno;
    errno = 0;
    /* The text has only digits and a sign, so the locale does not matter. */
    long long wide = strtoll(copy, NULL, 10);
    bool fits = errno == 0;
    errno = kept_errno;
    *value = wide;
    return fits;
}
