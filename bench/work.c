/* bench/work.c - the measured work, see work.h. */
#include "work.h"
#include "perf_control.h"

#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The members are name, like, input, output, collective, reduces, one_buffer and sizes. */
const struct bench_facts bench_facts[BENCH_KINDS] = {
    [BENCH_BARRIER] = { .name = "barrier" },
    [BENCH_RUN] = { .name = "run", .like = BENCH_RUN },
    [BENCH_ALL_REDUCE] = { "all-reduce", BENCH_ALL_REDUCE, EXTENT_WHOLE, EXTENT_WHOLE, true, true, false,
                           "8..128M" },
    [BENCH_ALL_GATHER] = { "all-gather", BENCH_ALL_GATHER, EXTENT_OWN_PART, EXTENT_WHOLE, true, false, false,
                           "8..8M" },
    [BENCH_BROADCAST] = { "broadcast", BENCH_BROADCAST, EXTENT_WHOLE_AT_ROOT, EXTENT_WHOLE, true, false, true,
                          "8..8M" },
    [BENCH_REDUCE_SCATTER] = { "reduce-scatter", BENCH_REDUCE_SCATTER, EXTENT_WHOLE, EXTENT_OWN_PART, true,
                               true, false, "8..8M" },
    [BENCH_REDUCE] = { "reduce", BENCH_REDUCE, EXTENT_WHOLE, EXTENT_WHOLE_AT_ROOT, true, true, false,
                       "8..8M" },
    [BENCH_GATHER] = { "gather", BENCH_GATHER, EXTENT_OWN_PART, EXTENT_WHOLE_AT_ROOT, true, false, false,
                       "8..8M" },
    [BENCH_SCATTER] = { "scatter", BENCH_SCATTER, EXTENT_WHOLE_AT_ROOT, EXTENT_OWN_PART, true, false, false,
                        "8..8M" },
    [BENCH_ALL_TO_ALL] = { "all-to-all", BENCH_ALL_TO_ALL, EXTENT_WHOLE, EXTENT_WHOLE, true, false, false,
                           "8..8M" },
    [BENCH_SCAN] = { "scan", BENCH_SCAN, EXTENT_WHOLE, EXTENT_WHOLE, true, true, false, "8..8M" },
    [BENCH_SCAN_EXCLUSIVE] = { "scan-exclusive", BENCH_SCAN_EXCLUSIVE, EXTENT_WHOLE, EXTENT_WHOLE_BUT_FIRST,
                               true, true, false, "8..8M" },
    [BENCH_LIST] = { "list", BENCH_ALL_REDUCE, EXTENT_WHOLE, EXTENT_WHOLE, true, true, false, "400K" },
    [BENCH_ASYNC] = { "async", BENCH_ALL_REDUCE, EXTENT_WHOLE, EXTENT_WHOLE, true, true, false, "8..8M" },
    [BENCH_SKEW] = { "skew", BENCH_ALL_REDUCE, EXTENT_WHOLE, EXTENT_WHOLE, true, true, false, "32K" },
    [BENCH_WAIT] = { "wait", BENCH_ALL_REDUCE, EXTENT_WHOLE, EXTENT_WHOLE, false, false, false, NULL },
    [BENCH_PARALLEL_FOR] = { .name = "parallel-for", .like = BENCH_PARALLEL_FOR, .sizes = "0,256M" },
    [BENCH_CG] = { .name = "cg", .like = BENCH_CG, .sizes = "192K,2M,64M", .one_buffer = true },
    [BENCH_TRAIN] = { .name = "train", .like = BENCH_TRAIN, .sizes = "64K,512K,4M", .one_buffer = true },
    [BENCH_CREATE] = { .name = "create", .like = BENCH_CREATE },
    [BENCH_REST] = { .name = "rest", .like = BENCH_REST },
    [BENCH_RUN_VALUES] = { .name = "run-values", .like = BENCH_RUN_VALUES },
    [BENCH_REDUCE_VALUES] = { .name = "reduce-values", .like = BENCH_REDUCE_VALUES },
    [BENCH_MERGE_CALL] = { .name = "merge-call", .like = BENCH_MERGE_CALL },
    [BENCH_EXCHANGE] = { .name = "exchange", .like = BENCH_EXCHANGE },
    [BENCH_DOT] = { .name = "dot", .like = BENCH_DOT },
    [BENCH_TRACE] = { .name = "trace", .like = BENCH_TRACE },
    [BENCH_ASSIGN] = { .name = "assign", .like = BENCH_ASSIGN },
    [BENCH_APPLY] = { .name = "apply", .like = BENCH_APPLY },
    [BENCH_CHECKPOINT] = { .name = "checkpoint", .like = BENCH_CHECKPOINT },
    [BENCH_QUEUE] = { .name = "queue", .like = BENCH_QUEUE },
    [BENCH_FUNCTIONS] = { .name = "functions", .like = BENCH_FUNCTIONS },
    [BENCH_INPUT] = { .name = "input", .like = BENCH_INPUT },
    [BENCH_GENERATE] = { .name = "generate", .like = BENCH_GENERATE },
};

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double now_seconds(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

size_t work_element_bytes(ditto_dtype dtype)
{
    switch (dtype) {
#define ELEMENT_BYTES(name, value, bytes, text) \
    case name:                                  \
        return bytes;
        DITTO_DTYPE_LIST(ELEMENT_BYTES)
#undef ELEMENT_BYTES
    }
    return 0;
}

/* -- the bytes that replicas contribute and receive -- */

struct span work_part(const struct work *work, uint32_t id)
{
    size_t each = work->bytes / work->replicas;
    return (struct span){ id * each, (id + 1) * each };
}

static struct span extent_of(const struct work *work, enum extent extent, uint32_t id)
{
    struct span whole = { 0, work->bytes }, nothing = { 0, 0 };
    switch (extent) {
    case EXTENT_WHOLE:
        return whole;
    case EXTENT_OWN_PART:
        return work_part(work, id);
    case EXTENT_WHOLE_AT_ROOT:
        return id == work->root ? whole : nothing;
    case EXTENT_WHOLE_BUT_FIRST:
        return id > 0 ? whole : nothing;
    default:
        return nothing;
    }
}

struct span work_input(const struct work *work, uint32_t id)
{
    return extent_of(work, bench_facts[work->kind].input, id);
}

struct span work_output(const struct work *work, uint32_t id)
{
    return extent_of(work, bench_facts[work->kind].output, id);
}

uint32_t work_inputs(const struct work *work, uint32_t id)
{
    return work_scans(work->kind) ? id + (work->kind == BENCH_SCAN) : work->replicas;
}

struct span work_tensor(const struct work *work, uint32_t index)
{
    size_t each = work->bytes / WORK_TENSORS / 64 * 64;
    return (struct span){ index * each, index + 1 == WORK_TENSORS ? work->bytes : (index + 1) * each };
}

/* -- a batch -- */

/* Returns 32 bits that are valid numbers of each dtype. The bits of a small f32 are also valid numbers of
 * shorter and longer floating dtypes. A bool must be 0 or 1. */
static uint32_t pattern(const struct work *work, uint64_t rep)
{
    float value = (float)(rep & 7);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return work->dtype == DITTO_BOOL ? (uint32_t)(rep & 1) * 0x01010101u : bits;
}

static void rewrite(char *bytes, struct span s, uint32_t word)
{
    uint32_t *words = (uint32_t *)(void *)bytes;
    for (size_t i = s.first / 4; i < s.end / 4; i++)
        words[i] = word;
}

static uint32_t look(const char *bytes, struct span s)
{
    const uint32_t *words = (const uint32_t *)(const void *)bytes;
    uint32_t sum = 0;
    for (size_t i = s.first / 4; i < s.end / 4; i += 16)
        sum += words[i];
    return sum;
}

static void compute(uint32_t ns)
{
    double end = now_seconds() + ns * 1e-9;
    while (now_seconds() < end)
        ;
}

/* Uses CPU time. If other programs use the PU too, this takes longer. */
static void use_cpu(uint32_t ns)
{
    double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + ns * 1e-9;
    while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < end)
        ;
}

/* Works and meets. The replicas take turns to be late. */
static void work_and_meet(const struct work *work, struct worker *workers, uint32_t id,
                          const struct contender_ops *ops, void *context)
{
    for (uint64_t rep = 0; rep < work->reps; rep++) {
        use_cpu(WAIT_WORK_NS + (rep % work->replicas == id ? work->skew_ns : 0));
        ops->collective(context, id, work, workers);
    }
}

static void repeat(const struct work *work, struct worker *workers, uint32_t id,
                   const struct contender_ops *ops, void *context, bool baseline)
{
    struct worker *w = &workers[id];
    struct work now = *work;
    for (uint64_t rep = 0; rep < work->reps; rep++) {
        now.root = work->turns ? (uint32_t)(rep % work->replicas) : work->root;
        if (work->skew_ns > 0 && rep % work->replicas == id)
            compute(work->skew_ns);
        rewrite(w->src, work_input(&now, id), pattern(work, rep));
        if (!baseline)
            ops->collective(context, id, &now, workers);
        else if (work->kind != BENCH_SKEW)
            ops->barrier(context, id);
        w->seen += look(w->dst, work_output(&now, id));
    }
}

/* -- the check: all elements of replica i's input are i + 1 -- */

/* Returns the 32-bit word `index` of a buffer in which each element is `value`. */
static uint32_t word_of(ditto_dtype dtype, uint32_t value, size_t index)
{
    float as_f32 = (float)value;
    double as_f64 = value;
    uint32_t bits, halves[2];
    memcpy(&bits, &as_f32, sizeof bits);
    memcpy(halves, &as_f64, sizeof as_f64);
    switch (dtype) {
    case DITTO_F64:
        return halves[index & 1];
    case DITTO_BF16:
        return bits >> 16 | (bits & 0xffff0000u);
    case DITTO_I32:
        return value;
    default:
        return bits;
    }
}

static bool can_check(const struct work *work)
{
    ditto_dtype t = work->dtype;
    bool known = t == DITTO_F32 || t == DITTO_F64 || t == DITTO_I32 ||
                 (t == DITTO_BF16 && work->replicas < 16);
    return !bench_facts[work->kind].reduces || (known && work->op == DITTO_SUM);
}

static uint32_t expected(const struct work *work, uint32_t id, size_t at)
{
    const struct bench_facts *facts = &bench_facts[work->kind];
    uint32_t n = work_inputs(work, id);
    if (facts->reduces)
        return n * (n + 1) / 2;
    bool of_all = facts->input == EXTENT_OWN_PART || work->kind == BENCH_ALL_TO_ALL;
    return of_all ? (uint32_t)(at / (work->bytes / n)) + 1 : work->root + 1;
}

/* Runs one repetition without measuring it, and checks the result if can_check says so. */
static void check(const struct work *work, struct worker *workers, uint32_t id,
                  const struct contender_ops *ops, void *context)
{
    struct worker *w = &workers[id];
    struct span input = work_input(work, id), output = work_output(work, id);
    bool checked = can_check(work);
    for (size_t i = input.first; i < input.end; i += 4) {
        uint32_t word = checked ? word_of(work->dtype, id + 1, i / 4) : pattern(work, id);
        memcpy(w->src + i, &word, sizeof word);
    }
    ops->collective(context, id, work, workers);
    for (size_t i = output.first; i < output.end && checked; i += 4) {
        uint32_t found, wanted = word_of(work->dtype, expected(work, id, i), i / 4);
        memcpy(&found, w->dst + i, sizeof found);
        if (found != wanted) {
            fprintf(stderr, "bench: %s of %zu bytes: replica %u has %#x at byte %zu, not %#x\n",
                    bench_facts[work->kind].name, work->bytes, id, found, i, wanted);
            exit(1);
        }
    }
}

/* Returns the number of repetitions before a batch that are not measured. Other contenders have emptied the
 * caches, and a large last-level cache takes some rounds to accept new lines. With only one round, the second
 * contender on the same buffers seemed twice as fast at 32 MiB. One round is enough for a baseline, because
 * it follows the batch of the same contender. */
static uint64_t warmups(const struct work *work, bool baseline)
{
    const uint64_t most = 16, volume = (uint64_t)2 << 30;
    uint64_t rounds = volume / ((uint64_t)work->bytes * work->replicas * (work->in_place ? 1 : 2));
    return baseline || rounds < 1 ? 1 : rounds < most ? rounds : most;
}

/* Begins to count on each thread of the batch, and in an outer perf. */
static void start_counters(const struct work *work, uint32_t id, const struct contender_ops *ops,
                           void *context)
{
    ops->barrier(context, id); /* all threads exist */
    if (id == 0 || work->in_processes)
        counters_find_threads();
    if (id == 0)
        perf_control_enable();
    ops->barrier(context, id);
    counters_start_own();
}

static __attribute__((noinline)) void batch(const struct work *work, struct worker *workers, uint32_t id,
                                            const struct contender_ops *ops, void *context, bool baseline)
{
    struct worker *w = &workers[id];
    if (bench_facts[work->kind].collective)
        for (uint64_t i = warmups(work, baseline); i > 0; i--)
            check(work, workers, id, ops, context);
    if (counters_events > 0 || perf_control_is_shown())
        start_counters(work, id, ops, context);
    ops->barrier(context, id);
    double begin = now_seconds(), cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    struct program_times program = { 0, 0 };
    if (work->kind == BENCH_CG)
        program = cg_run(work, workers, id, ops, context);
    else if (work->kind == BENCH_TRAIN)
        program = train_run(work, workers, id, ops, context);
    else if (work->kind == BENCH_WAIT)
        work_and_meet(work, workers, id, ops, context);
    else if (bench_facts[work->kind].collective)
        repeat(work, workers, id, ops, context, baseline);
    else
        for (uint64_t rep = 0; rep < work->reps; rep++)
            ops->barrier(context, id);
    w->timing.cpu_seconds = seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
    w->timing.seconds = now_seconds() - begin - program.restarts;
    w->timing.operation_seconds = program.operations;
    counters_stop_own(&w->counts);
    if (id == 0)
        perf_control_disable();
    ops->barrier(context, id);
}

/* A barrier of 55 ns takes up to 12 ns more or less, depending on the distance of the stack from flags and
 * mailboxes modulo a page. Each build has other distances. So each batch has its stack at another place in a
 * page, and the median is that of many places. With steps of 25, few batches spread over the page, too. */
void work_batch(const struct work *work, struct worker *workers, uint32_t id, const struct contender_ops *ops,
                void *context, bool baseline)
{
    static _Thread_local uint32_t batches;
    char *unused = alloca(64 * (batches++ * 25 % 64) + 1);
    __asm__ volatile("" : : "r"(unused) : "memory");
    batch(work, workers, id, ops, context, baseline);
}

struct timing work_timing(const struct worker *workers, uint32_t replicas)
{
    struct timing all = { 0, 0, 0 };
    for (uint32_t i = 0; i < replicas; i++) {
        all.seconds = workers[i].timing.seconds > all.seconds ? workers[i].timing.seconds : all.seconds;
        all.cpu_seconds += workers[i].timing.cpu_seconds;
        all.operation_seconds += workers[i].timing.operation_seconds / replicas;
    }
    return all;
}

/* -- a loop -- */

void work_loop(struct worker *workers, size_t first, size_t end)
{
    float *restrict a = (float *)(void *)workers[0].src;
    for (size_t i = first; i < end; i++)
        a[i] = a[i] * 0.5f + 1.0f;
}

void work_loop_part(const struct work *work, struct worker *workers, uint32_t id)
{
    /* Parts consist of whole cache lines, like those of ditto with a grain of 16. */
    size_t lines = work->bytes / 64;
    work_loop(workers, lines * id / work->replicas * 16, lines * (id + 1) / work->replicas * 16);
}
