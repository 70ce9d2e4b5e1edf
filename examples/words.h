/* examples/words.h - the words of a folder of pages, as numbers. */
#ifndef WORDS_H
#define WORDS_H

#include <stddef.h>
#include <stdint.h>

struct text {
    int64_t *word; /* [length] The text: for each word its number. */
    size_t length;
    size_t vocabulary; /* Words have the numbers 0 to vocabulary - 1, in alphabetical order. */
    size_t pages;
};

/* Reads all pages (*.md) of a folder. A word is a sequence of letters, in lower case. Words that occur only
 * once are left out. Returns 0, or -1 and prints what was wrong. */
int text_read(const char *folder, struct text *text);
void text_free(struct text *text);

#endif
