/* examples/launch.c - a program on one host, see launch.h. */
#include "launch.h"

#include <stdio.h>
#include <stdlib.h>

void join_hosts(int *argc, char ***argv)
{
    (void)argc, (void)argv;
}

ditto_cluster *hosts(void)
{
    return NULL;
}

bool is_first_host(void)
{
    return true;
}

int leave_hosts(int code)
{
    return code;
}

void leave_after_error(ditto_status status)
{
    const ditto_error *error = ditto_last_error();
    fprintf(stderr, "%s: %s: %s\n", error->function, ditto_status_name(status), error->message);
    exit(1);
}
