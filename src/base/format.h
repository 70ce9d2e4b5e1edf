/* src/base/format.h - messages that must fit into a buffer, and show where they were cut. */
#ifndef DTI_FORMAT_H
#define DTI_FORMAT_H

#include <ditto/api.h>

#include <stdarg.h>
#include <stddef.h>

/* vsnprintf for messages. If the whole text does not fit, the longest of the strings among the arguments are
 * cut, and the rest of the message stays. A string that was cut ends with "...", and no
 * UTF-8 character is split. Line breaks and other control characters become spaces: a message is one line. */
void dti_format(char *out, size_t size, const char *format, va_list arguments) DITTO_PRINTF(3, 0);

/* Turns the last characters of a text that was cut to size - 1 bytes into "...". */
void dti_mark_cut(char *text, size_t size);

#endif
