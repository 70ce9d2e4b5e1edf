/* tests/schedules/engine.h - the engine that runs ditto under a scheduler of its own, as
 * docs/adr/0060-every-schedule.md describes it.
 *
 * All threads of the program under test are fibers of one thread of the system. Each access to an atomic, and
 * each call of a seam (seams.c), is a step. At a step the scheduler may go on with another fiber, and a load
 * may find a value that C11 allows, though it is not the newest. Every choice comes from one random number
 * generator, so a seed is a schedule.
 *
 * A schedule changes only `struct world`, at a fixed address, and the memory of the program. Both are saved
 * and restored by copying (world.c). */
#ifndef SCHEDULES_ENGINE_H
#define SCHEDULES_ENGINE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

enum {
    MOST_FIBERS = 12,
    STACK_BYTES = 512 << 10,
    GUARD_BYTES = 64 << 10, /* of a stack; no frame is larger */
    MOST_KEYS = 16,
    MOST_ARENAS = 32,
    MOST_TLS_BYTES = 16 << 10,
    TRACE_STEPS = 4096,
    MOST_SWITCHES = 1 << 16,
    PAGE = 4096,
};

/* The memory of the program under test: first its heap, then the stacks of the fibers. */
#define HEAP_BYTES   ((size_t)96 << 20)
#define MEMORY_BYTES (HEAP_BYTES + (size_t)MOST_FIBERS * STACK_BYTES)
#define MEMORY       ((char *)0x100000000000)

/* For each fiber, how many of its steps are known. Fiber f knows that a step of fiber g has happened before
 * if the number of that step is at most of[g]. Source: Fidge 1988, Mattern 1989. */
struct clocks {
    uint32_t of[MOST_FIBERS];
};

enum fiber_state { UNUSED, RUNNABLE, BLOCKED, FINISHED };

struct fiber {
    enum fiber_state state;
    bool begun, detached;
    void *(*body)(void *);
    void *argument, *result;
    jmp_buf context;
    char *stack_used; /* the lowest address of the stack in use while it does not run */

    /* While it is BLOCKED it waits for this: a futex word, or the end of a fiber. */
    const void *waits_on;
    uint64_t until_ns;     /* UINT64_MAX: without a limit */
    uint64_t frozen_until; /* the step before which it does not run */
    int32_t priority;

    /* The steps that happen before its next one. `view` also has those that seq_cst fences let it see, which
     * orders values but not plain accesses. `loaded` is what an acquire fence would add, and `fenced` what a
     * release fence has left. */
    struct clocks before, view, loaded, loaded_view, fenced, fenced_view;
    bool has_fence;
    uint64_t seq_cst_fence_at; /* the step of the last one in the schedule */

    /* How many loads in a row have found an old value, by address. */
    uint8_t stale[64];

    void *key_value[MOST_KEYS];
    int kept_errno;
    uint32_t kept_mxcsr; /* modes and flags of floating point, which setjmp does not keep */
};

/* One access in the shadow of 8 bytes. */
struct record {
    uint32_t step;  /* of its fiber */
    uint32_t place; /* in the code */
    uint8_t fiber, bytes /* a bit for each */, is_write, is_atomic;
};

/* The shadow of 8 bytes of memory (order.c). */
struct cell {
    struct record record[4];
    uint32_t history; /* 0: none */
};

/* A store to an atomic. */
struct store {
    uint64_t value; /* all 8 bytes after it */
    uint64_t at;    /* the step of the schedule */
    uint32_t step;  /* of its fiber */
    uint8_t fiber, bytes;
    bool is_seq_cst, releases;
    struct clocks released, released_view;
    uint32_t read_at[MOST_FIBERS]; /* the step of the first load that has found it; 0: none */
};

enum { HISTORY_STORES = 8, MOST_HISTORIES = 4096, MOST_CELLS = 1 << 20 };
struct history {
    uint32_t stores;
    struct store store[HISTORY_STORES]; /* the oldest first */
};

enum step_kind { LOAD, STORE, EXCHANGE, FENCE, CALL };
struct traced {
    uint64_t step;
    uint32_t place;
    uint8_t fiber, kind, bytes, order;
    bool was_stale;
    const char *name; /* of a call */
    const volatile void *address;
    uint64_t value;
};

/* How a schedule is chosen. */
struct policy {
    uint64_t seed;
    uint32_t switch_one_in; /* at so many steps on average another fiber goes on; 0: priorities (PCT) */
    uint32_t stale_one_in;  /* so many loads find an old value; 0: none */
    uint32_t spurious_one_in;
    uint32_t refuse;  /* the number of the allocation, or new thread, that is refused; 0: none */
    uint32_t changes; /* of priorities */
    uint64_t change_at[8];
    uint64_t freeze_at, freeze_for; /* in steps */
    uint32_t jump_one_in;           /* at so many steps on average time jumps; 0: never */
    uint64_t jump_ns;
};

/* The state of one schedule, which is restored before the next one. */
struct schedule {
    struct fiber fiber[MOST_FIBERS];
    struct clocks seq_cst; /* what the seq_cst fences of all fibers have seen */
    uint32_t current;
    uint64_t steps, now_ns, jumped_ns, random;
    uint64_t digest; /* of all steps */
    uint32_t histories, cells, switches, requests;
    int32_t lowest_priority;
    uint32_t keys;
    bool is_free;            /* the scheduler chooses; otherwise (during setup) a fiber runs until it waits */
    size_t heap_end, blocks; /* blocks: allocated and not freed */
    uint32_t arenas;
    struct block_head *arena[MOST_ARENAS]; /* the last block of each; 0 is malloc's */
};

struct scenario;
struct world {
    struct schedule now, saved;
    struct policy policy;
    jmp_buf host;
    char tls[MOST_FIBERS][MOST_TLS_BYTES], saved_tls[MOST_FIBERS][MOST_TLS_BYTES];
    char *tls_block;
    size_t tls_bytes, tls_image_bytes;
    const void *tls_image;
    char *globals;
    size_t globals_bytes;
    uintptr_t code;
    void (*key_end[MOST_KEYS])(void *);
    uint64_t typical_steps, typical_requests; /* of schedule 0 */
    uint64_t most_steps;
    const struct scenario *scenario;
    uint32_t outcomes; /* a bit for each that has come, over all schedules */
    char failure[1024];
    uint8_t drop[MOST_SWITCHES / 8]; /* a bit for each switch that is left out, when a trace is shortened */
    struct traced trace[TRACE_STEPS];
    uint64_t allocated[HEAP_BYTES / 16 / 64]; /* a bit for each 16 bytes of the heap */
    uint64_t saved_allocated[HEAP_BYTES / 16 / 64];
    uint8_t dirty[MEMORY_BYTES / PAGE];
    struct history history[MOST_HISTORIES];
    struct cell cell[MOST_CELLS];
    uint32_t shadow[MEMORY_BYTES / 8 + (4 << 20) / 8]; /* the number of each cell: memory, then globals */
    uint32_t touched_granule[MOST_CELLS];              /* of each cell */
};
#define W ((struct world *)0x200000000000)

static inline struct fiber *me(void)
{
    return &W->now.fiber[W->now.current];
}

/* -- world.c -- */
void world_begin(void);
void world_save(void);
void world_restore(void);
static inline bool is_in_memory(const volatile void *at)
{
    return (uintptr_t)at - (uintptr_t)MEMORY < MEMORY_BYTES;
}
/* Marks the pages of memory that the program is about to change. */
void world_touch(const volatile void *at, size_t bytes);

/* -- scheduler.c -- */
uint64_t random_below(uint64_t limit);
void policy_choose(uint64_t seed, bool may_refuse);
/* Runs a function as a fiber until it has returned, or the schedule has failed. */
bool schedule_run(void *(*body)(void *), void *argument);
void schedule_park(void);
uint32_t fiber_create(void *(*body)(void *), void *argument);
/* A step of the fiber that runs. */
void step(enum step_kind kind, const volatile void *address, uint64_t value, uint32_t bytes, int order,
          const char *name, void *place);
/* Says what the step has found or stored. */
void step_found(uint64_t value);
/* Lowers the priority of the fiber, and lets others run. */
void step_back(void *place);
/* Blocks the fiber. Returns false if the time has passed. */
bool fiber_block(const void *waits_on, uint64_t until_ns);
void fiber_wake(const void *waits_on, uint32_t most);
noreturn void fiber_end(void *result);
noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void clocks_add(struct clocks *to, const struct clocks *more);

/* -- order.c: the memory model -- */
void plain_access(const volatile void *address, size_t bytes, bool is_write, void *place);
uint64_t atomic_load_step(const volatile void *address, uint32_t bytes, int order, void *place);
void atomic_store_step(volatile void *address, uint64_t value, uint32_t bytes, int order, void *place);
/* Replaces a value by change(value, operand), and returns the old one. */
uint64_t atomic_change_step(volatile void *address, uint64_t operand, uint32_t bytes, int order, void *place,
                            uint64_t (*change)(uint64_t value, uint64_t operand));
bool atomic_compare_step(volatile void *address, uint64_t *expected, uint64_t desired, uint32_t bytes,
                         int order, int failure_order, bool is_weak, void *place);
void fence_step(int order, void *place);
void fence_everyone(void *place);
void count_step(uint32_t fiber);
void memory_is_new(const void *at, size_t bytes);
/* A use that does not happen before is a race. */
void memory_is_freed(const void *at, size_t bytes, void *place);

/* -- heap.c -- */
/* Counts a request for memory or a thread. Returns true if it is refused. */
bool is_refused(void);
void *heap_allocate(size_t bytes, size_t alignment);
void *heap_allocate_in(uint32_t arena, size_t bytes, size_t alignment);
void heap_free_arena(uint32_t arena);
void heap_free(void *block, void *place);
size_t heap_block_bytes(const void *block);

/* -- report.c -- */
/* Prints the last steps of each fiber. */
void report_steps(void);

/* -- what scenarios use -- */
/* A row of a list, which ends with a row without a name. */
struct scenario {
    const char *name;
    void (*setup)(void); /* makes what all schedules begin with; may be NULL */
    void (*body)(void);  /* one schedule */
    bool may_refuse;     /* an allocation or a thread may be refused */
    bool no_membarrier;  /* the kernel refuses it */
    uint32_t longest_ms; /* all threads may sleep for so long; if it is longer, a wake-up was lost */
    uint32_t outcomes;   /* a bit for each outcome that must come in some schedule (W->outcomes) */
    const char *fault;   /* how the failure begins that some schedule must have; NULL: none may fail */
};
#define EXPECT(condition)                                      \
    do {                                                       \
        if (!(condition))                                      \
            fail("%s:%d: %s", __FILE__, __LINE__, #condition); \
    } while (0)

#endif
