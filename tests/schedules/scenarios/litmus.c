/* tests/schedules/scenarios/litmus.c - small programs whose outcomes C11 allows or forbids. They check the
 * engine: what is forbidden never comes, and what is allowed comes, if the engine is to find it.
 *
 * An outcome has a bit for each load, in the order of the rows: 1 if it has found the new value. A variable
 * has two halves. All operations are of the first one, but for those that say otherwise. Sources:
 * Batty and others, POPL 2011; Maranget, Sarkar, Sewell, "A Tutorial Introduction to the ARM and POWER
 * Relaxed Memory Models", 2012, for the names. */
#include "scenarios.h"

#include "base/waiting/futex.h"

#include <stdatomic.h>

enum kind {
    END,
    WRITE,
    WRITE_SECOND, /* the second half */
    PLAIN_SECOND, /* the same, not atomic */
    READ,
    READ_BOTH,        /* two bits, one for each half */
    READ_SUM,         /* two bits: the write, and the addition */
    FAILING_EXCHANGE, /* a compare-and-swap that expects another value: a load */
    ADD,
    FENCED,
    LIGHT,
    HEAVY
};
enum { X, Y, Z, VARIABLES };
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
        { { READ_SUM, Y, ACQUIRE }, { READ, X, RELAXED } } },
      1 << 1 | 1 << 3 },
    /* Thread 2 sees by way of thread 1 what thread 0 has done. */
    { "release_to_a_third",
      { { { WRITE, X, RELAXED }, { WRITE, Y, RELEASE } },
        { { READ, Y, ACQUIRE }, { WRITE, Z, RELEASE } },
        { { READ, Z, ACQUIRE }, { READ, X, RELAXED } } },
      1 << 3 },
    { "read_to_a_third",
      { { { WRITE, X, RELAXED } },
        { { READ, X, RELAXED }, { WRITE, Y, RELEASE } },
        { { READ, Y, ACQUIRE }, { READ, X, RELAXED } } },
      1 << 3 },
    { "failing_exchange",
      { { { WRITE, X, RELAXED }, { WRITE, Y, RELEASE } },
        { { FAILING_EXCHANGE, Y, ACQUIRE }, { READ, X, RELAXED } } },
      1 << 1 },
    { "failing_exchange_relaxed",
      { { { WRITE, X, RELAXED }, { WRITE, Y, RELEASE } },
        { { FAILING_EXCHANGE, Y, RELAXED }, { READ, X, RELAXED } } },
      0 },
    { "fence_and_seq_cst",
      { { { WRITE, X, RELAXED }, { FENCED, 0, SEQ_CST }, { READ, Y, RELAXED } },
        { { WRITE, Y, SEQ_CST }, { READ, X, SEQ_CST } } },
      1 << 0 },
    { "two_widths",
      { { { WRITE_SECOND, X, RELAXED }, { WRITE, X, RELEASE } }, { { READ_BOTH, X, ACQUIRE } } },
      1 << 1 },
    { "message_passing_two_widths",
      { { { WRITE, X, RELAXED }, { WRITE, Y, RELEASE } },
        { { READ_BOTH, Y, ACQUIRE }, { READ, X, RELAXED } } },
      1 << 1 },
    { "plain_neighbour",
      { { { WRITE, X, RELAXED }, { PLAIN_SECOND, X, 0 }, { WRITE, Y, RELEASE } },
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
    { "two_readers_fences",
      { { { WRITE, X, RELAXED } },
        { { WRITE, Y, RELAXED } },
        { { READ, X, RELAXED }, { FENCED, 0, SEQ_CST }, { READ, Y, RELAXED } },
        { { READ, Y, RELAXED }, { FENCED, 0, SEQ_CST }, { READ, X, RELAXED } } },
      1 << 5 },
    /* A seq_cst store shows itself to those that have a fence later, but not what was stored before it. */
    { "seq_cst_store",
      { { { WRITE, X, RELAXED }, { WRITE, Y, SEQ_CST } },
        { { FENCED, 0, SEQ_CST }, { READ, Y, RELAXED }, { READ, X, RELAXED } } },
      0 },
    /* C11 allows it. The engine does not. */
    { "no_load_buffering",
      { { { READ, X, RELAXED }, { WRITE, Y, RELAXED } }, { { READ, Y, RELAXED }, { WRITE, X, RELAXED } } },
      1 << 3 },
};

static struct {
    alignas(8) _Atomic uint32_t first;
    _Atomic uint32_t second;
} variable[VARIABLES];
static const struct litmus *row;
static _Atomic uint32_t outcome; /* accesses to it are no part of the program: each bit has one writer */

static uint32_t bits_of(enum kind kind)
{
    return kind == READ_BOTH || kind == READ_SUM ? 2 : kind == READ || kind == FAILING_EXCHANGE ? 1 : 0;
}

/* Returns a bit for each load of the operation. */
static uint32_t perform(const struct operation *o)
{
    _Atomic uint32_t *v = &variable[o->variable].first, *second = &variable[o->variable].second;
    uint32_t found = 7; /* no variable has it */
    switch (o->kind) {
    case WRITE:
    case WRITE_SECOND:
        atomic_store_explicit(o->kind == WRITE ? v : second, 1, o->order);
        return 0;
    case PLAIN_SECOND:
        *(volatile uint32_t *)second = 1;
        return 0;
    case ADD:
        atomic_fetch_add_explicit(v, 2, o->order);
        return 0;
    case READ_SUM:
        return atomic_load_explicit(v, o->order);
    case READ:
        return atomic_load_explicit(v, o->order) & 1;
    case READ_BOTH: {
        uint64_t both = atomic_load_explicit((_Atomic uint64_t *)(void *)v, o->order);
        return (uint32_t)((both & 1) | (both >> 32 & 1) << 1);
    }
    case FAILING_EXCHANGE:
        (void)atomic_compare_exchange_strong_explicit(v, &found, 7, o->order, o->order);
        return found & 1;
    case LIGHT:
        dti_fence_light();
        return 0;
    case HEAVY:
        dti_fence_heavy();
        return 0;
    default:
        atomic_thread_fence(o->order);
        return 0;
    }
}

static void *execute(void *argument)
{
    uint32_t thread = (uint32_t)(uintptr_t)argument, bit = 0;
    for (uint32_t t = 0; t < thread; t++)
        for (int i = 0; i < MOST_OPERATIONS; i++)
            bit += bits_of(row->thread[t][i].kind);
    for (const struct operation *o = row->thread[thread]; o->kind != END; o++) {
        uint32_t found = perform(o);
        if (bits_of(o->kind) > 0)
            atomic_fetch_or_explicit(&outcome, found << bit, memory_order_relaxed);
        bit += bits_of(o->kind);
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
    { .name = "release_sequence", .body = play, .outcomes = 0xf5 },
    { .name = "release_to_a_third", .body = play, .outcomes = 0xf7 },
    { .name = "read_to_a_third", .body = play, .outcomes = 0xf7 },
    { .name = "failing_exchange", .body = play, .outcomes = 0xd },
    { .name = "failing_exchange_relaxed", .body = play, .outcomes = 0xf },
    { .name = "fence_and_seq_cst", .body = play, .outcomes = 0xe },
    { .name = "two_widths", .body = play, .outcomes = 0xd },
    { .name = "message_passing_two_widths", .body = play, .outcomes = 0x31 },
    { .name = "plain_neighbour", .body = play, .outcomes = 0xd },
    { .name = "coherence", .body = play, .outcomes = 0xd },
    { .name = "two_readers", .body = play, .outcomes = 0xffff },
    { .name = "two_readers_seq_cst", .body = play, .outcomes = 0xffff & ~(1 << 5) },
    { .name = "two_readers_fences", .body = play, .outcomes = 0xffff & ~(1 << 5) },
    { .name = "seq_cst_store", .body = play, .outcomes = 0xf },
    { .name = "no_load_buffering", .body = play, .outcomes = 0x7 },
    { 0 },
};
