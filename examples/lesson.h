/* examples/lesson.h - functions that the lessons share: creating a strategy with the number of replicas that
 * the command line gives, ending the program after an error, and reading a clock. */
#ifndef LESSON_H
#define LESSON_H

#include <ditto.h>

#include <stdio.h>

/* Ends the program with a message if the status is an error. */
void check(ditto_status status);

/* Reads the command line [REPLICAS]. Returns 0 if the word is missing. */
uint32_t replicas_of(int argc, char **argv);

/* Creates a strategy of a number of replicas on all hosts, or of one replica per core if the number is 0. */
ditto_strategy *strategy_of(uint32_t replicas);

/* Creates a strategy of as many replicas as the command line says. */
ditto_strategy *strategy_of_words(int argc, char **argv);

double seconds(void); /* the time of a monotonic clock */

/* Ends the recording of a strategy. Prints its times as a table, and writes its events to a file for
 * ui.perfetto.dev. */
void report_trace(ditto_strategy *strategy, const char *path, FILE *table);

#endif
