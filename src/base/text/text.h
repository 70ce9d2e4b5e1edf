/* src/base/text/text.h - text that grows inside a buffer of fixed size, and numbers without locale. */
#ifndef DTI_TEXT_H
#define DTI_TEXT_H

#include "base/platform.h"
#include <ditto/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ditto/api.h>
#include <stdarg.h>

/* A report under construction. `length` counts what was wanted, also past the end, so that a caller can
 * size a buffer. A text that does not fit ends with "..." (text.h), because it may become a part of a
 * message. */
struct dti_text {
    char *buffer; /* always terminated when size > 0 */
    size_t size, length;
};
DTI_COMPANION void dti_text_add(struct dti_text *text, const char *format, ...) DITTO_PRINTF(2, 3);

/* Adds the numbers below n that are in the set, as in "1, 4-63". Of a set with many ranges it adds the first
 * ones, and how many more numbers there are. */
void dti_text_add_set(struct dti_text *text, const bool *set, uint32_t n);

/* Reads a whole small file (procfs, cgroupfs); false when it can't be read. The text is terminated, cut at size - 1. */
bool dti_read_file(const char *path, char *buffer, size_t size);

/* Number at text[0..length): [+-] digits [. digits] [e [+-] digits], whatever the program's locale. False: anything else, or
 * out of range; infinity, NaN and hexadecimal are no numbers here. */
bool dti_parse_f64(const char *text, size_t length, double *value);
bool dti_parse_i64(const char *text, size_t length, int64_t *value); /* false also when it does not fit */

/* Messages that must fit into a buffer, and show where they were cut. */

/* vsnprintf for messages. If the whole text does not fit, the longest of the strings among the arguments are
 * cut, and the rest of the message stays. A string that was cut ends with "...", and no
 * UTF-8 character is split. Line breaks and other control characters become spaces: a message is one line. */
void dti_format(char *out, size_t size, const char *format, va_list arguments) DITTO_PRINTF(3, 0);

/* Turns the last characters of a text that was cut to size - 1 bytes into "...". */
void dti_mark_cut(char *text, size_t size);

#endif
