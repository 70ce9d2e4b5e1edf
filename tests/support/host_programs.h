/* tests/support/host_programs.h - plays a program on several hosts and on one, and compares what both have
 * noted. */
#ifndef SUPPORT_HOST_PROGRAMS_H
#define SUPPORT_HOST_PROGRAMS_H

#include "support/hosts.h"

#define MOST_PROGRAM_REPLICAS 12

/* A program notes what its replicas and its cross calls find. What a replica notes, and what the first host
 * notes, has one writer. */
struct program {
    ditto_status (*function)(ditto_strategy *strategy, struct program *program);
    unsigned char *noted[MOST_PROGRAM_REPLICAS + 1]; /* the last one is that of cross calls */
    size_t used[MOST_PROGRAM_REPLICAS + 1];
    const uint32_t *replicas; /* of each host */
    ditto_caller caller;
    const char *folder; /* an empty one, for files */
};

void note(struct program *program, uint32_t replica, const void *bytes, size_t count);
/* Notes what a cross call has found, on the first host. */
void note_cross(ditto_strategy *strategy, struct program *program, const void *bytes, size_t count);

/* Plays the program on hosts with these replicas, between which messages take up to delay_us, and on one host
 * with all replicas. Fails the test if they note something else. */
void play_program(ditto_status (*function)(ditto_strategy *strategy, struct program *program), uint32_t hosts,
                  const uint32_t *replicas, uint32_t delay_us, ditto_caller caller);
/* The same on two hosts of one replica, on three of different sizes, and with callers that wait. */
void play_everywhere(ditto_status (*function)(ditto_strategy *strategy, struct program *program));

/* Creates a variable of one dimension. */
ditto_status program_variable(ditto_strategy *strategy, const char *name,
                              ditto_synchronization synchronization, ditto_aggregation aggregation,
                              ditto_dtype dtype, size_t count, const void *data, ditto_variable **out);

#endif
