/* tests/schedules/scenarios/litmus.c - small programs whose outcomes C11 allows or forbids. They check the
 * engine: what is forbidden never comes, and what is allowed comes, if the engine is to find it.
 *
 * An outcome has a bit for each load, in the order of the rows: 1 if it has found the new value. Sources:
 * Batty and others, POPL 2011; Maranget, Sarkar, Sewell, "A Tutorial Introduction to the ARM and POWER
 * Relaxed Memory Models", 2012, for the names. */
#include "scenarios.h"

#include "base/waiting/futex.h"

#include <stdatomic.h>

enum kind { END, WRITE, READ, ADD, FENCED, LIGHT, HEAVY };
enum { X, Y };
struct operation {
    enum kind kind;
    int variable;
    memory_order order;
};
#define RELAXED memory_order_relaxed
#define ACQUIRE memory_order_acquire
#define RELEASE memory_order_release
#define SEQ_CST memory_order_seq_cst

enum { MOST_THREADS = 4, MOST_OPERATIONS = 4 };
struct litmus {
    const char *name;
    struct operation thread[MOST_THREADS][MOST_OPERATIONS];
    uint32_t forbidden;
};

static const struct litmus rows[] = {
    { "store_buffering",
      { { { WRITE, X, RELAXED }, { READ, Y, RELAXED } }, { { WRITE, Y, RELAXED }, { READ, X, RELAXED } } },
      0 },
    { "store_buffering_seq_cst",
      { { { WRITE, X, SEQ_CST }, { READ, Y, SEQ_CST } }, { { WRITE, Y, SEQ_CST }, { READ, X, SEQ_CST } } },
      1 << 0 },
    { "store_buffering_fences",
      { { { WRITE, X, RELAXED }, { FENCED, 0, SEQ_CST }, { READ, Y, RELAXED } },
        { { WRITE, Y, RELAXED }, { FENCED, 0, SEQ_CST }, { READ, X, RELAXED } } },
      1 << 0 },
    { "store_buffering_asymmetric",
      { { { WRITE, X, RELAXED }, { LIGHT, 0, 0 }, { READ, Y, RELAXED } },
        { { WRITE, Y, RELAXED }, { HEAVY, 0, 0 }, { READ, X, RELAXED } } },
      1 << 0 },
    { "store_buffering_light_fences",
      { { { WRITE, X, RELAXED }, { LIGHT, 0, 0 }, { READ, Y, RELAXED } },
        { { WRITE, Y, RELAXED }, { LIGHT, 0, 0 }, { READ, X, RELAXED } } },
      0 },
    { "message_passing",
      { { { WRITE, X, RELAXED }, { WRITE, Y, RELAXED } }, { { READ, Y, RELAXED }, { READ, X, RELAXED } } },
      0 },
    { "message_passing_release",
      { { { WRITE, X, RELAXED }, { WRITE, Y, RELEASE } }, { { READ, Y, ACQUIRE }, { READ, X, RELAXED } } },
      1 << 1 },
    { "message_passing_fences",
      { { { WRITE, X, RELAXED }, { FENCED, 0, RELEASE }, { WRITE, Y, RELAXED } },
        { { READ, Y, RELAXED }, { FENCED, 0, ACQUIRE }, { READ, X, RELAXED } } },
      1 << 1 },
    /* The addition continues the release sequence, so a load that finds its result acquires from the store.
     */
    { "release_sequence",
      { { { WRITE, X, RELAXED }, { WRITE, Y, RELEASE } },
        { { ADD, Y, RELAXED } },
        { { READ, Y, ACQUIRE }, { READ, X, RELAXED } } },
      1 << 1 },
    { "coherence", { { { WRITE, X, RELAXED } }, { { READ, X, RELAXED }, { READ, X, RELAXED } } }, 1 << 1 },
    { "two_readers",
      { { { WRITE, X, RELEASE } },
        { { WRITE, Y, RELEASE } },
        { { READ, X, ACQUIRE }, { READ, Y, ACQUIRE } },
        { { READ, Y, ACQUIRE }, { READ, X, ACQUIRE } } },
      0 },
    { "two_readers_seq_cst",
      { { { WRITE, X, SEQ_CST } },
        { { WRITE, Y, SEQ_CST } },
        { { READ, X, SEQ_CST }, { READ, Y, SEQ_CST } },
        { { READ, Y, SEQ_CST }, { READ, X, SEQ_CST } } },
      1 << 5 },
    { "no_load_buffering",
      { { { READ, X, RELAXED }, { WRITE, Y, RELAXED } }, { { READ, Y, RELAXED }, { WRITE, X, RELAXED } } },
      1 << 3 },
};

static _Atomic uint32_t variable[2];
static const struct litmus *row;
static _Atomic uint32_t outcome; /* accesses to it are no part of the program: each bit has one writer */

static void *execute(void *argument)
{
    uint32_t thread = (uint32_t)(uintptr_t)argument, bit = 0;
    for (uint32_t t = 0; t < thread; t++)
        for (int i = 0; i < MOST_OPERATIONS; i++)
            bit += row->thread[t][i].kind == READ;
    for (const struct operation *o = row->thread[thread]; o->kind != END; o++) {
        _Atomic uint32_t *v = &variable[o->variable];
        if (o->kind == WRITE)
            atomic_store_explicit(v, 1, o->order);
        else if (o->kind == ADD)
            atomic_fetch_add_explicit(v, 2, o->order);
        else if (o->kind == READ) {
            bool is_new = (atomic_load_explicit(v, o->order) & 1) != 0;
            atomic_fetch_or_explicit(&outcome, (uint32_t)is_new << bit++, memory_order_relaxed);
        } else if (o->kind == LIGHT)
            dti_fence_light();
        else if (o->kind == HEAVY)
            dti_fence_heavy();
        else
            atomic_thread_fence(o->order);
    }
    return NULL;
}

static void play(void)
{
    pthread_t threads[MOST_THREADS];
    uint32_t count = 0;
    for (row = rows; strcmp(row->name, W->scenario->name) != 0; row++)
        continue;
    for (; count < MOST_THREADS && row->thread[count][0].kind != END; count++)
        threads[count] = thread_of(execute, (void *)(uintptr_t)count);
    while (count-- > 0)
        join(threads[count]);
    if ((row->forbidden >> outcome & 1) != 0)
        fail("the outcome %#x is forbidden", outcome);
    W->outcomes |= (uint32_t)1 << outcome;
}

const struct scenario litmus_scenarios[] = {
    { .name = "store_buffering", .body = play, .outcomes = 0xf },
    { .name = "store_buffering_seq_cst", .body = play, .outcomes = 0xe },
    { .name = "store_buffering_fences", .body = play, .outcomes = 0xe },
    { .name = "store_buffering_asymmetric", .setup = dti_fence_init, .body = play, .outcomes = 0xe },
    { .name = "store_buffering_light_fences", .setup = dti_fence_init, .body = play, .outcomes = 0xf },
    { .name = "message_passing", .body = play, .outcomes = 0xf },
    { .name = "message_passing_release", .body = play, .outcomes = 0xd },
    { .name = "message_passing_fences", .body = play, .outcomes = 0xd },
    { .name = "release_sequence", .body = play, .outcomes = 0xd },
    { .name = "coherence", .body = play, .outcomes = 0xd },
    { .name = "two_readers", .body = play, .outcomes = 0xffff },
    { .name = "two_readers_seq_cst", .body = play, .outcomes = 0xffff & ~(1 << 5) },
    { .name = "no_load_buffering", .body = play, .outcomes = 0x7 },
    { 0 },
};
