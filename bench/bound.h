/* bench/bound.h - what the files of the bounds share: the team, its meetings, and the forms. */
#ifndef BOUND_H
#define BOUND_H

#include "harness.h"
#include "loops.h"

#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define PAUSE() _mm_pause()
#else
#define PAUSE() __asm__ volatile("" ::: "memory")
#endif

/* On a line that nobody writes while it is measured. */
struct bound_team {
    alignas(128) uint32_t size;
    bool crowded; /* more threads than PUs */
};
extern struct bound_team bound_team;

/* Meetings that a thread has been to: plain, each thread its own line. */
struct bound_episode {
    alignas(128) uint32_t count;
};
extern struct bound_episode bound_episode[WORK_MOST_REPLICAS];

/* bound_barrier.c */
void flags_barrier(void *context, uint32_t id);
void eager_barrier(void *context, uint32_t id);
void exchange_barrier(void *context, uint32_t id);
void demote_barrier(void *context, uint32_t id);
void one_line_barrier(void *context, uint32_t id);
void rounds_barrier(void *context, uint32_t id);
void flags_yield_barrier(void *context, uint32_t id);
void yield_barrier(void *context, uint32_t id);

/* One way to do a work. The context of its functions is the form itself. */
struct form {
    const char *name;
    struct contender_ops ops;
    unsigned kinds; /* bits of `like` */
    enum way way;
    size_t least_bytes, most_bytes; /* 0: no limit */
    uint32_t least_team, most_team; /* 0: no limit */
    bool for_crowds, for_the_rest, out_of_place;
};
/* bound_forms.c */
extern const struct form bound_forms[];
extern const uint32_t bound_form_count;

#endif
