/* src/base/text/format.c - formats messages. A message is one line. Text that does not fit is cut, and the
 * cut is marked. */
#include "base/text/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MARK "..."

/* The strings are not cut once more if the last limit was below this. So none is cut below 14 bytes. */
#define STOP_BELOW 16

/* Returns the largest length, at most `length`, at which no UTF-8 character of `text` is split. */
static size_t whole_characters(const char *text, size_t length)
{
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    return length;
}

void dti_mark_cut(char *text, size_t size)
{
    size_t mark = strlen(MARK), length = strlen(text);
    if (size <= mark + 1)
        return;
    size_t keep = length < size - 1 - mark ? length : size - 1 - mark;
    memcpy(text + whole_characters(text, keep), MARK, mark + 1);
}

/* One conversion of a format, such as "%-5.3llu". */
struct conversion {
    const char *text;
    size_t length;
    bool star;    /* the width or the precision is an argument */
    char size[3]; /* "", "h", "l", "ll", "z" and so on */

    /* 'd', 's' and so on, or 0 if this file does not support the conversion. */
    char kind;
};

static struct conversion read_conversion(const char *at)
{
    struct conversion c = { .text = at };
    const char *start = at++;
    at += strspn(at, "-+ #0");
    while (*at != '\0' && strchr("0123456789.*", *at) != NULL) {
        c.star |= *at == '*';
        at++;
    }
    for (size_t i = 0; i < 2 && *at != '\0' && strchr("hlzjtL", *at) != NULL; i++)
        c.size[i] = *at++;
    c.kind = *at != '\0' && strchr("diuxXoceEfFgGaAps%", *at) != NULL && !c.star ? *at : '\0';
    c.length = (size_t)(at + 1 - start);
    return c;
}

/* The text that has been written so far. `length` also counts text that did not fit. */
struct output {
    char *buffer;
    size_t size, length;
};

static void put(struct output *o, const char *text, size_t length)
{
    if (o->length + length < o->size)
        memcpy(o->buffer + o->length, text, length);
    o->length += length;
}

/* Writes an argument with snprintf, using the conversion as it is in the format. At most 399 bytes are
 * written. */
#define PUT_ARGUMENT(o, spec, number)                              \
    do {                                                           \
        char text_[400];                                           \
        int length_ = snprintf(text_, sizeof text_, spec, number); \
        if (length_ > 0)                                           \
            put(o, text_, strnlen(text_, sizeof text_ - 1));       \
    } while (0)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static bool put_conversion(struct output *o, const struct conversion *c, size_t most, va_list *arguments)
{
    char spec[32];
    bool is_long = strcmp(c->size, "l") == 0;
    if (c->kind == '\0' || c->length >= sizeof spec || c->size[0] == 'L' || c->size[0] == 'h')
        return false;
    memcpy(spec, c->text, c->length);
    spec[c->length] = '\0';
    if (c->kind == '%')
        put(o, "%", 1);
    else if (c->kind == 's' && c->length == 2) {
        const char *text = va_arg(*arguments, const char *);
        bool fits = strlen(text) <= most;
        put(o, text, fits ? strlen(text) : whole_characters(text, most - strlen(MARK)));
        put(o, MARK, fits ? 0 : strlen(MARK));
    } else if (c->kind == 's')
        PUT_ARGUMENT(o, spec, va_arg(*arguments, const char *));
    else if (c->kind == 'p')
        PUT_ARGUMENT(o, spec, va_arg(*arguments, void *));
    else if (strchr("eEfFgGaA", c->kind) != NULL)
        PUT_ARGUMENT(o, spec, va_arg(*arguments, double));
    else if (c->kind == 'c' || c->size[0] == '\0')
        PUT_ARGUMENT(o, spec, va_arg(*arguments, int)); /* also for unsigned, which has the same bits */
    else if (is_long)
        PUT_ARGUMENT(o, spec, va_arg(*arguments, long));
    else if (c->size[0] == 'l')
        PUT_ARGUMENT(o, spec, va_arg(*arguments, long long));
    else
        PUT_ARGUMENT(o, spec, va_arg(*arguments, size_t)); /* z, j and t have one size, see below */
    return true;
}
#pragma GCC diagnostic pop
_Static_assert(sizeof(size_t) == sizeof(intmax_t) && sizeof(size_t) == sizeof(ptrdiff_t),
               "see put_conversion");

/* Formats with the string of each plain %s cut to `most` bytes. Returns the length of the whole text, or
 * SIZE_MAX if this file does not support a conversion of the format. */
static size_t format_cut(char *buffer, size_t size, size_t most, const char *format, va_list given)
{
    struct output o = { buffer, size, 0 };
    bool known = true;
    va_list arguments;
    va_copy(arguments, given);
    while (known && *format != '\0') {
        size_t plain = strcspn(format, "%");
        put(&o, format, plain);
        format += plain;
        if (*format == '\0')
            break;
        struct conversion c = read_conversion(format);
        known = put_conversion(&o, &c, most, &arguments);
        format += c.length;
    }
    va_end(arguments);
    if (known && o.length < size)
        buffer[o.length] = '\0';
    return known ? o.length : SIZE_MAX;
}

void dti_format(char *out, size_t size, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int wanted = vsnprintf(out, size, format, arguments);
    if (wanted >= 0 && (size_t)wanted >= size) {
        size_t most = size, length = size;
        while (most >= STOP_BELOW && length != SIZE_MAX && length >= size) {
            most = most * 7 / 8;
            length = format_cut(out, size, most, format, again);
        }
        /* Shorter strings were not enough, or format_cut does not know a conversion (SIZE_MAX): the end is
         * cut. */
        if (length >= size) {
            vsnprintf(out, size, format, again);
            dti_mark_cut(out, size);
        }
    }
    va_end(again);
    for (; *out != '\0'; out++) /* the message is one line */
        if ((unsigned char)*out < ' ' || *out == 0x7f)
            *out = ' ';
}

void dti_text_add(struct dti_text *text, const char *format, ...)
{
    va_list arguments;
    size_t capacity = text->length < text->size ? text->size - text->length : 0;
    va_start(arguments, format);
    int wanted = vsnprintf(capacity != 0 ? text->buffer + text->length : NULL, capacity, format, arguments);
    va_end(arguments);
    text->length += wanted > 0 ? (size_t)wanted : 0;
    if (text->length >= text->size && capacity != 0)
        dti_mark_cut(text->buffer, text->size);
}
