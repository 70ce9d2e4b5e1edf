/* src/base/text/text.h - text in buffers of fixed size, small files, and numbers that do not depend on the
 * locale. */
#ifndef DTI_TEXT_H
#define DTI_TEXT_H

#include <ditto/api.h>

#include "base/platform.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A text under construction. If the text does not fit, the buffer ends with "...", because the text may
 * become a part of a message. */
struct dti_text {
    /* Always terminated when size > 0. */
    char *buffer;
    size_t size;

    /* The length of the whole text, also if that is more than fits. A caller can use it to choose a buffer
     * size. */
    size_t length;
};
void dti_text_add(struct dti_text *text, const char *format, ...) DITTO_PRINTF(2, 3);

/* Adds a name and a label that may be NULL: 'ditto_all_reduce', or 'ditto_all_reduce "loss"'. */
void dti_text_add_name(struct dti_text *text, const char *name, const char *label);

/* Compares two texts. NULL equals only NULL. */
static inline bool dti_text_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Adds the numbers that are in the set, as in "1, 4-63". set[i] stands for number first + i. If the set has
 * many ranges, it adds the first ones and the number of members that are left out. */
void dti_text_add_set(struct dti_text *text, const bool *set, uint32_t n, uint32_t first);

/* Reads a whole small file, such as a file of procfs or cgroupfs. Returns false if the file cannot be read.
 * The text is terminated, and is cut at size - 1 bytes. errno does not change. */
bool dti_read_file(const char *path, char *buffer, size_t size);

/* Returns a malloced absolute name, which ends with `name`. An object that opens a file later keeps it,
 * because a relative name would then be that of another file after a chdir. A descriptor of the folder would
 * also find files in a folder that was renamed, but programs that become daemons close all descriptors. If
 * the working folder was removed, or the name would be too long for the kernel, it is a copy of `name`.
 * Returns NULL if there is no memory. */
DTI_COMPANION char *dti_absolute_name(const char *name);

/* Parses the number at text[0 .. length), in the form [+-] digits [. digits] [e [+-] digits], whatever locale
 * the program has set. The digits before or after the point may be missing. Returns false for other forms,
 * which include infinity, NaN and hexadecimal numbers, for a number that is out of range, and for a text of
 * 400 characters or more. */
bool dti_parse_f64(const char *text, size_t length, double *value);

/* Parses [+-] digits. Returns false for other forms, for a number that does not fit, and for a text of 400
 * characters or more. */
bool dti_parse_i64(const char *text, size_t length, int64_t *value);

/* vsnprintf for messages. If the whole text does not fit, the longest strings that the format has as a plain
 * %s are cut, and the rest of the message stays. If this is not enough, the end of the text is cut. A string
 * or a text that was cut ends with "...", and no UTF-8 character is split. Line breaks and other control
 * characters become spaces, because a message is one line. */
void dti_format(char *out, size_t size, const char *format, va_list arguments) DITTO_PRINTF(3, 0);

/* Replaces the last characters of a text that was cut to size - 1 bytes by "...". */
void dti_mark_cut(char *text, size_t size);

#endif
