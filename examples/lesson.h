/* examples/lesson.h - what the lessons share: a strategy of as many replicas as the command line says, and giving up
 * with a message. */
#ifndef LESSON_H
#define LESSON_H

#include <ditto.h>

/* A call that must not fail: there is nothing to do but to tell why. */
void check(ditto_status status);

/* A strategy of argv[1] replicas; without it, of one replica per core. */
ditto_strategy *make_strategy(int argc, char **argv);

double seconds(void); /* of a clock that only goes on */

#endif
