/* examples/command_line.h - reads the words of a command line. The programs of this folder share it, so that
 * all of them have --help and --version, and say what is wrong with a word.
 *
 * A program has a table of the words that it takes, and reads one word after the other:
 *
 *     enum { STEPS, QUIET, ROWS };
 *     static const struct command_row rows[] = {
 *         [STEPS] = { "--steps", "N", "the number of steps: 1 to 100" },
 *         [QUIET] = { "--quiet", NULL, "print no progress" },
 *         [ROWS] = { NULL, "FILE", "the file of the rows" },
 *         { 0 },
 *     };
 *     struct command_line line = command_line_of("[FILE] [OPTION ...]", "Trains.", rows, argc, argv);
 *     for (int row; (row = command_next(&line)) >= 0;)
 *         if (row == STEPS)
 *             steps = command_number(&line, 1, 100);
 *         else ... */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A row of the table. A row that has only a help is a heading. */
struct command_row {
    /* An option such as "--steps", or a word that is typed as it stands. NULL stands for any other word. */
    const char *name;

    /* What --help calls the value of the option, or the other word. NULL for an option without a value. The
     * value of an option may be missing if this begins with "[". Any number of other words may be typed if
     * this ends with "...". */
    const char *value;
    const char *help;
};

struct command_line {
    const char *usage, *about;
    const struct command_row *rows;
    int count;
    char **words;
    const char *value; /* of the option that command_next has read, or the other word, or NULL */
    int row;           /* the index of its row */
    int last;          /* the index of the last word that was read */
    int others;        /* how many words without a name were read */
};

/* Makes what the functions below take. The table ends with a row of zeros. `usage` names the words in short,
 * and `about` says what the program does. */
struct command_line command_line_of(const char *usage, const char *about, const struct command_row *rows,
                                    int argc, char **argv);

/* Reads the next word, and its value, which may also be typed as --option=value. Returns the index of its
 * row, or -1 after the last word. Ends the program after --help and --version, and if the word is wrong. */
int command_next(struct command_line *line);

/* Returns the value as a number. Ends the program if it is none, or out of range. */
uint64_t command_number(const struct command_line *line, uint64_t least, uint64_t most);

/* Returns the index of the value among some words, after which there is a NULL. Ends the program if it is
 * none of them. */
int command_choice(const struct command_line *line, const char *const *choices);

/* End the program with status 2 and a message. `allowed` says what the value may be. */
void command_refuse_value(const struct command_line *line, const char *allowed) __attribute__((noreturn));
void command_refuse(const struct command_line *line, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
