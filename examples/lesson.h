/* examples/lesson.h - functions that the lessons share: creating a strategy with the number of replicas that
 * the command line gives, ending the program after an error, and reading a clock. */
#ifndef LESSON_H
#define LESSON_H

#include <ditto.h>

/* Ends the program with a message if the status is an error. */
void check(ditto_status status);

/* Reads the command line [REPLICAS]. Returns 0 if the word is missing. */
uint32_t replicas_of(int argc, char **argv);

/* Creates a strategy of a number of replicas on all hosts, or of one replica per core if the number is 0. */
ditto_strategy *strategy_of(uint32_t replicas);

/* Creates a strategy of as many replicas as the command line says. */
ditto_strategy *make_strategy(int argc, char **argv);

double seconds(void); /* the time of a monotonic clock */

#endif
