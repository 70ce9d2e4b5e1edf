/* examples/words.c - reads the words of a folder of pages, see words.h. */
#include "words.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A word of the text, and where in the text it stands. */
struct occurrence {
    const char *letters; /* followed by a 0 */
    size_t place;
};

/* All pages, one after the other. */
struct letters {
    char *letter;
    size_t count;
};

static int append_page(const char *path, struct letters *all)
{
    FILE *file = fopen(path, "r");
    size_t got = 0;
    if (file == NULL) {
        fprintf(stderr, "train_words: %s: asked to read the page, but %s\n", path, strerror(errno));
        return -1;
    }
    do {
        char *larger = realloc(all->letter, all->count + 65536);
        if (larger == NULL) {
            fprintf(stderr, "train_words: %s: there is no memory for the page\n", path);
            fclose(file);
            return -1;
        }
        all->letter = larger;
        got = fread(all->letter + all->count, 1, 65535, file);
        all->count += got;
    } while (got > 0);
    int failed = ferror(file);
    fclose(file);
    if (failed) {
        fprintf(stderr, "train_words: %s: asked to read the page, but it cannot be read\n", path);
        return -1;
    }
    all->letter[all->count++] = '\n'; /* a word ends with its page */
    return 0;
}

/* Pages are read in the order of their names, so that each run has the same text. */
static int read_pages(const char *folder, struct letters *all, size_t *pages)
{
    char pattern[4096];
    glob_t found;
    if (snprintf(pattern, sizeof pattern, "%s/*.md", folder) >= (int)sizeof pattern ||
        glob(pattern, 0, NULL, &found) != 0) {
        fprintf(
            stderr,
            "train_words: no page was found for %s/*.md; name a folder of pages with --text, or start the "
            "program in the folder of the sources\n",
            folder);
        return -1;
    }
    *pages = found.gl_pathc;
    int failed = 0;
    for (size_t i = 0; i < found.gl_pathc && !failed; i++)
        failed = append_page(found.gl_pathv[i], all);
    globfree(&found);
    return failed;
}

/* Cuts the letters into words in place, and returns the number of words. */
static size_t cut_words(struct letters *all, struct occurrence *words)
{
    size_t count = 0;
    int in_word = 0;
    for (size_t i = 0; i < all->count; i++) {
        int is_letter = isalpha((unsigned char)all->letter[i]);
        all->letter[i] = is_letter ? (char)tolower((unsigned char)all->letter[i]) : '\0';
        if (is_letter && !in_word) {
            words[count] = (struct occurrence){ &all->letter[i], count };
            count++;
        }
        in_word = is_letter;
    }
    return count;
}

static int compare(const void *left, const void *right)
{
    const struct occurrence *a = left, *b = right;
    int order = strcmp(a->letters, b->letters);
    return order != 0 ? order : (a->place > b->place) - (a->place < b->place);
}

/* Numbers the words, and leaves out those that occur once. */
static void number_words(struct occurrence *words, size_t count, struct text *text)
{
    size_t end;
    qsort(words, count, sizeof *words, compare);
    for (size_t first = 0; first < count; first = end) {
        for (end = first + 1; end < count && strcmp(words[first].letters, words[end].letters) == 0;)
            end++;
        int64_t number = end - first > 1 ? (int64_t)text->vocabulary++ : -1;
        for (size_t i = first; i < end; i++)
            text->word[words[i].place] = number;
    }
    for (size_t i = 0; i < count; i++)
        if (text->word[i] >= 0)
            text->word[text->length++] = text->word[i];
}

int text_read(const char *folder, struct text *text)
{
    struct letters all = { 0 };
    *text = (struct text){ 0 };
    int failed = read_pages(folder, &all, &text->pages);
    struct occurrence *words = NULL;
    if (!failed) {
        words = malloc((all.count / 2 + 1) * sizeof *words); /* at least one other letter follows a word */
        text->word = malloc((all.count / 2 + 1) * sizeof *text->word);
        failed = words == NULL || text->word == NULL ? -1 : 0;
        if (failed)
            fprintf(stderr, "train_words: there is no memory for the words of %s\n", folder);
    }
    if (!failed)
        number_words(words, cut_words(&all, words), text);
    free(words);
    free(all.letter);
    if (failed)
        text_free(text);
    return failed;
}

void text_free(struct text *text)
{
    free(text->word);
    text->word = NULL;
}
