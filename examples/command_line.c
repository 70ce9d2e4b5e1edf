/* examples/command_line.c - reads the words of a command line, see command_line.h. */
#include "command_line.h"

#include <ditto.h>

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_WIDTH = 80, LONGEST_NAME = 63 };

/* The words that all programs take. */
static const struct command_row common_rows[] = {
    { "--help", NULL, "print this text" },
    { "--version", NULL, "print the version of ditto" },
    { 0 },
};

static const char *program_name(const struct command_line *line)
{
    const char *slash = strrchr(line->words[0], '/');
    return slash != NULL ? slash + 1 : line->words[0];
}

struct command_line command_line_of(const char *usage, const char *about, const struct command_row *rows,
                                    int argc, char **argv)
{
    struct command_line line = { .usage = usage, .about = about, .rows = rows, .count = argc, .words = argv };
    return line;
}

/* -- the text of --help -- */

/* Prints a text from a column on, and the lines that do not fit into the first one from column `indent` on.
 * No word is longer than a line. */
static void print_wrapped(int column, int indent, const char *text)
{
    for (;; column = printf("%*s", indent, "")) {
        int length = (int)strlen(text);
        if (length > PAGE_WIDTH - column)
            for (length = PAGE_WIDTH - column; length > 0 && text[length] != ' '; length--)
                ;
        printf("%.*s\n", length, text);
        text += length;
        if (*text == '\0')
            return;
        text++; /* the space where the line ends */
    }
}

/* Writes what is typed for a row, and returns its length, which is 0 for a heading. */
static int typed(const struct command_row *row, char text[PAGE_WIDTH])
{
    return snprintf(text, PAGE_WIDTH, "%s%s%s", row->name != NULL ? row->name : "",
                    row->name != NULL && row->value != NULL ? " " : "", row->value != NULL ? row->value : "");
}

static void print_rows(const struct command_row *row, int width)
{
    char text[PAGE_WIDTH];
    for (; row->help != NULL; row++)
        if (typed(row, text) == 0)
            printf("\n%s:\n", row->help);
        else
            print_wrapped(printf("  %-*s  ", width, text), width + 4, row->help);
}

static void print_help(const struct command_line *line)
{
    char text[PAGE_WIDTH];
    int width = (int)strlen("--version");
    for (const struct command_row *row = line->rows; row->help != NULL; row++)
        width = typed(row, text) > width ? typed(row, text) : width;
    printf("usage: %s %s\n", program_name(line), line->usage);
    print_wrapped(0, 0, line->about);
    printf("\n");
    print_rows(line->rows, width);
    printf("\n");
    print_rows(common_rows, width);
}

/* -- words that are wrong -- */

void command_refuse(const struct command_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_name(line));
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "; see %s --help\n", program_name(line));
    va_end(arguments);
    exit(2);
}

void command_refuse_value(const struct command_line *line, const char *allowed)
{
    const struct command_row *row = &line->rows[line->row];
    const char *name = row->name != NULL ? row->name : row->value;
    command_refuse(line, "%.*s is %s, but must be %s", (int)strcspn(name, "."), name, line->value, allowed);
}

/* Returns how many letters have to be inserted, removed or replaced to turn the word, up to "=", into the
 * name. */
static size_t distance(const char *word, const char *name)
{
    /* The distance of the letters so far from the first i letters of the name. */
    size_t to[LONGEST_NAME + 1], length = strlen(name);
    for (size_t i = 0; i <= length; i++)
        to[i] = i;
    for (; *word != '\0' && *word != '='; word++) {
        size_t before = to[0]++;
        for (size_t i = 1; i <= length; i++) {
            size_t replaced = before + (*word != name[i - 1]);
            size_t changed = 1 + (to[i] < to[i - 1] ? to[i] : to[i - 1]);
            before = to[i];
            to[i] = replaced < changed ? replaced : changed;
        }
    }
    return to[length];
}

/* Names the nearest word that the program takes, if less than half of the letters differ. */
static _Noreturn void refuse_word(const struct command_line *line, const char *word)
{
    const struct command_row *const tables[] = { line->rows, common_rows };
    const char *nearest = NULL;
    size_t least = (strcspn(word, "=") + 1) / 2;
    for (int i = 0; i < 2; i++)
        for (const struct command_row *row = tables[i]; row->help != NULL; row++)
            if (row->name != NULL && distance(word, row->name) < least) {
                least = distance(word, row->name);
                nearest = row->name;
            }
    if (nearest != NULL)
        command_refuse(line, "%s is unknown; the nearest is %s", word, nearest);
    command_refuse(line, line->others > 0 ? "%s is one word too many" : "%s is unknown", word);
}

/* -- words that are right -- */

/* Reads the value of an option. `value` is what follows "=", or NULL. */
static int take_option(struct command_line *line, int row, const char *value)
{
    const char *name = line->rows[row].name, *wanted = line->rows[row].value;
    const char *next = line->last + 1 < line->count ? line->words[line->last + 1] : NULL;
    if (wanted == NULL && value != NULL)
        command_refuse(line, "%s has no value, but %s was given", name, value);
    if (wanted != NULL && value == NULL && next != NULL && strncmp(next, "--", 2) != 0)
        value = line->words[++line->last];
    if (wanted != NULL && wanted[0] != '[' && (value == NULL || *value == '\0'))
        command_refuse(line, "%s needs a value: %s %s", name, name, wanted);
    line->value = value;
    return line->row = row;
}

int command_next(struct command_line *line)
{
    int others = 0;
    if (line->last + 1 >= line->count)
        return -1;
    char *word = line->words[++line->last];
    size_t length = strcspn(word, "=");
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        print_help(line);
        exit(0);
    }
    if (strcmp(word, "--version") == 0) {
        printf("%s (ditto) %s\n", program_name(line), ditto_version());
        exit(0);
    }
    for (int i = 0; line->rows[i].help != NULL; i++) {
        const char *name = line->rows[i].name;
        if (name != NULL && strncmp(word, name, length) == 0 && name[length] == '\0')
            return take_option(line, i, word[length] == '=' ? word + length + 1 : NULL);
    }
    /* A negative number is no option, and is refused by its range. */
    if (word[0] == '-' && word[1] != '\0' && !isdigit((unsigned char)word[1]))
        refuse_word(line, word);
    for (int i = 0; line->rows[i].help != NULL; i++) {
        const struct command_row *row = &line->rows[i];
        if (row->name == NULL && row->value != NULL &&
            (others++ == line->others || strstr(row->value, "...") != NULL)) {
            line->others++;
            line->value = word;
            return line->row = i;
        }
    }
    refuse_word(line, word);
}

/* -- values -- */

uint64_t command_number(const struct command_line *line, uint64_t least, uint64_t most)
{
    char *end, allowed[80];
    errno = 0;
    unsigned long long number = strtoull(line->value, &end, 10);
    snprintf(allowed, sizeof allowed, "a whole number from %llu to %llu", (unsigned long long)least,
             (unsigned long long)most);
    if (!isdigit((unsigned char)line->value[0]) || *end != '\0' || errno != 0 || number < least ||
        number > most)
        command_refuse_value(line, allowed);
    return number;
}

int command_choice(const struct command_line *line, const char *const *choices)
{
    char allowed[200] = "one of ";
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(line->value, choices[i]) == 0)
            return i;
        size_t length = strlen(allowed);
        snprintf(allowed + length, sizeof allowed - length, "%s%s", i > 0 ? ", " : "", choices[i]);
    }
    command_refuse_value(line, allowed);
}
