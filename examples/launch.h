/* examples/launch.h - how a program joins the hosts on which it was started.
 *
 * launch.c is for one host. launch_mpi.c is for several over MPI, and is linked instead of it. The program is
 * the same. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <ditto.h>

#include <stdbool.h>

/* Called first in main. Ends the program with a message if the hosts cannot be joined. */
void join_hosts(int *argc, char ***argv);

/* Returns the cluster for ditto_strategy_options, or NULL if there is one host. */
ditto_cluster *hosts(void);

/* Returns true on the host that prints what all hosts know. */
bool is_first_host(void);

/* Called last in main, when all strategies have been destroyed. Returns the exit code of the program. */
int leave_hosts(int code);

/* Prints the error of the thread, and ends the program on all hosts. */
void leave_after_error(ditto_status status);

#endif
