/* bench/bound.h - the team of threads of the bounds, its barriers, and the forms. */
#ifndef BOUND_H
#define BOUND_H

#include "harness.h"
#include "loops.h"

#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>

/* All threads read it during measurements, so it is not on a cache line that is written then. */
struct bound_team {
    alignas(128) uint32_t size;
    bool oversubscribed; /* more threads than PUs */
};
extern struct bound_team bound_team;

/* The number of barriers, and of forms with one meeting, that a thread has begun. It is not atomic, because
 * only the thread itself uses it. */
struct bound_episode {
    alignas(128) uint32_t count;
};
extern struct bound_episode bound_episode[WORK_MOST_REPLICAS];

/* bound_barrier.c */
void flags_barrier(void *context, uint32_t id);
void eager_barrier(void *context, uint32_t id);
void eager_ahead_barrier(void *context, uint32_t id);
void exchange_barrier(void *context, uint32_t id);
void demote_barrier(void *context, uint32_t id);
void one_line_barrier(void *context, uint32_t id);
void rounds_barrier(void *context, uint32_t id);
void flags_yield_barrier(void *context, uint32_t id);
void yield_barrier(void *context, uint32_t id);

/* An implementation of some kinds of work. Its functions get it as their context. */
struct form {
    const char *name;
    struct contender_ops ops;
    unsigned kinds; /* one bit for each kind; see bench_facts.like */
    enum variant variant;
    size_t least_bytes, most_bytes; /* 0 means no limit */
    uint32_t least_team, most_team; /* 0 means no limit */
    bool for_shared_pus;            /* for more threads than PUs */
    bool for_own_pus;               /* for at most as many threads as PUs */
    bool out_of_place;              /* not for work in place */
};
/* bound_forms.c. The slots of large messages are opened before a form that has some is used. The first
 * call opens them for all of these forms. */
void bound_slots_open(const struct form *form, uint32_t replicas);
void bound_slots_close(void);
extern const struct form bound_forms[];
extern const uint32_t bound_form_count;
bool form_does(const struct form *form, const struct work *work);

#endif
