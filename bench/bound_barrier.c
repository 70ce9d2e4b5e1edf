/* bench/bound_barrier.c - the barriers of the bounds. All forms that may be the fastest belong here. */
#include "bound.h"

enum { MOST = WORK_MOST_REPLICAS, ROUNDS = 10, LINE_TEAM = 16 };

struct line {
    alignas(128) _Atomic uint32_t word;
};
static struct line arrival[MOST][2], signals[MOST][ROUNDS][2];
static struct line counter, sense;
static struct {
    alignas(128) _Atomic uint32_t word[LINE_TEAM];
} together[2];

struct bound_team bound_team;
struct bound_episode bound_episode[MOST];

enum watching { PAUSING = 1, YIELDING = 2, EXCHANGING = 4, DEMOTING = 8, AHEAD = 16 };

static inline void look_again(enum watching how)
{
    if (how & YIELDING)
        sched_yield();
    else if (how & PAUSING)
        PAUSE();
}

/* Each replica watches the lines of all others. There are two lines per replica, used in turn. Between two
 * loads the thread pauses, yields, or does nothing. The flag is stored, or exchanged, which empties the store
 * buffer first, or moved out of the caches of this core after the store. The line of the next barrier, which
 * others have read in the one before this, may be prefetched for writing. */
static inline void watch_all(uint32_t id, enum watching how)
{
    uint32_t e = ++bound_episode[id].count, team = bound_team.size;
    _Atomic uint32_t *mine = &arrival[id][e & 1].word;
    if (how & EXCHANGING)
        atomic_exchange(mine, e);
    else
        atomic_store_explicit(mine, e, memory_order_release);
    if (how & DEMOTING)
        demote((const void *)mine, sizeof *mine);
    for (uint32_t i = 1; i < team; i++) {
        uint32_t peer = id + i < team ? id + i : id + i - team;
        while (atomic_load_explicit(&arrival[peer][e & 1].word, memory_order_acquire) != e)
            look_again(how);
    }
    if (how & AHEAD)
        fetch_to_write((const void *)&arrival[id][(e + 1) & 1].word);
}

#define WATCHING(name, how)                  \
    void name(void *context, uint32_t id)    \
    {                                        \
        (void)context;                       \
        watch_all(id, (enum watching)(how)); \
    }
WATCHING(flags_barrier, PAUSING)
WATCHING(eager_barrier, 0)
WATCHING(eager_ahead_barrier, AHEAD)
WATCHING(exchange_barrier, EXCHANGING)
WATCHING(demote_barrier, DEMOTING)
WATCHING(flags_yield_barrier, YIELDING)

/* All flags of a parity are on one line. There is only one line to watch, but each store has to fetch it. */
void one_line_barrier(void *context, uint32_t id)
{
    uint32_t e = ++bound_episode[id].count, team = bound_team.size;
    (void)context;
    atomic_store_explicit(&together[e & 1].word[id], e, memory_order_release);
    for (uint32_t i = 0; i < team; i++)
        while (atomic_load_explicit(&together[e & 1].word[i], memory_order_acquire) != e)
            ;
}

/* The dissemination barrier: in round k thread i signals thread i + 2^k. */
void rounds_barrier(void *context, uint32_t id)
{
    uint32_t e = ++bound_episode[id].count, team = bound_team.size, round = 0;
    (void)context;
    for (uint32_t step = 1; step < team; step *= 2, round++) {
        uint32_t peer = id + step < team ? id + step : id + step - team;
        atomic_store_explicit(&signals[peer][round][e & 1].word, e, memory_order_release);
        while (atomic_load_explicit(&signals[id][round][e & 1].word, memory_order_acquire) != e)
            PAUSE();
    }
}

/* A barrier with one counter and one sense word. Waiting threads yield. */
void yield_barrier(void *context, uint32_t id)
{
    uint32_t e = ++bound_episode[id].count;
    (void)context;
    if (atomic_fetch_add_explicit(&counter.word, 1, memory_order_acq_rel) == bound_team.size - 1) {
        atomic_store_explicit(&counter.word, 0, memory_order_relaxed);
        atomic_store_explicit(&sense.word, e, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&sense.word, memory_order_acquire) != e)
        sched_yield();
}
