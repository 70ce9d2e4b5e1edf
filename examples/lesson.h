/* examples/lesson.h - functions that the lessons share: creating a strategy with the number of replicas that
 * the command line gives, ending the program after an error, and reading a clock. */
#ifndef LESSON_H
#define LESSON_H

#include <ditto.h>

/* Ends the program with a message if the status is an error. */
void check(ditto_status status);

/* Creates a strategy of argv[1] replicas on all hosts, or of one replica per core if there is no argument. */
ditto_strategy *make_strategy(int argc, char **argv);

double seconds(void); /* the time of a monotonic clock */

#endif
