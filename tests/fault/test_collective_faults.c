/* tests/fault/test_collective_faults.c - collectives with a replica that returns, fails, makes another
 * call or is late. Every replica has the documented error and can free its buffers at once, and the next run
 * works. */
#include "support/support.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

/* -- Every operation, with the same operands. A pending operation is started and waited for at once. -- */

struct operands {
    float *src, *dst; /* [n * count], allocated by the replica */
    size_t count;
    size_t *counts;
    int64_t *indices;
    const ditto_reduce_options *options;
};
typedef ditto_status operation(ditto_replica *self, const struct operands *o);

/* The group in which the thread calls operations. NULL: all replicas. */
static _Thread_local const ditto_group *group;

static uint32_t rank_of(ditto_replica *self)
{
    return group != NULL ? group->rank : ditto_replica_id(self);
}
static uint32_t size_of(ditto_replica *self)
{
    return group != NULL ? group->size : ditto_num_replicas(self);
}

static ditto_status keep_left(void *out, const void *left, const void *right, size_t count, void *user)
{
    memmove(out, left, count * sizeof(float));
    return DITTO_OK;
}

static ditto_status scan(ditto_replica *self, const struct operands *o)
{
    return ditto_scan(self, o->src, o->dst, o->count, DITTO_F32, DITTO_SUM, o->options);
}
static ditto_status scan_exclusive(ditto_replica *self, const struct operands *o)
{
    return ditto_scan_exclusive(self, o->src, o->dst, o->count, DITTO_F32, DITTO_SUM, o->options);
}
static ditto_status scan_with(ditto_replica *self, const struct operands *o)
{
    return ditto_scan_with(self, o->src, o->dst, o->count, sizeof(float), keep_left, NULL, 0, o->options);
}
static ditto_status barrier(ditto_replica *self, const struct operands *o)
{
    return ditto_barrier(self, o->options);
}
static ditto_status all_reduce(ditto_replica *self, const struct operands *o)
{
    return ditto_all_reduce(self, o->src, o->dst, o->count, DITTO_F32, DITTO_SUM, o->options);
}
static ditto_status list(ditto_replica *self, const struct operands *o)
{
    const ditto_list_item item[] = { { o->src, o->dst, o->count, DITTO_F32, NULL },
                                     { o->src + o->count, o->src + o->count, o->count, DITTO_F32, NULL } };
    return ditto_all_reduce_list(self, item, 2, DITTO_SUM, o->options);
}
static ditto_status with(ditto_replica *self, const struct operands *o)
{
    return ditto_all_reduce_with(self, o->src, o->dst, o->count, sizeof(float), keep_left, NULL, o->options);
}
static ditto_status reduce(ditto_replica *self, const struct operands *o)
{
    return ditto_reduce_to_root(self, o->src, o->dst, o->count, DITTO_F32, DITTO_SUM, 1, o->options);
}
static ditto_status broadcast(ditto_replica *self, const struct operands *o)
{
    return ditto_broadcast_from_root(self, o->src, o->count, DITTO_F32, 1, o->options);
}
static ditto_status reduce_scatter(ditto_replica *self, const struct operands *o)
{
    return ditto_reduce_scatter(self, o->src, o->dst, o->count, NULL, DITTO_F32, DITTO_SUM, o->options);
}
static ditto_status reduce_scatter_uneven(ditto_replica *self, const struct operands *o)
{
    return ditto_reduce_scatter(self, o->src, o->dst, 0, o->counts, DITTO_F32, DITTO_SUM, o->options);
}
static ditto_status all_gather(ditto_replica *self, const struct operands *o)
{
    return ditto_all_gather(self, o->src, o->dst, o->count, NULL, DITTO_F32, o->options);
}
static ditto_status all_gather_uneven(ditto_replica *self, const struct operands *o)
{
    return ditto_all_gather(self, o->src, o->dst, 0, o->counts, DITTO_F32, o->options);
}
static ditto_status gather(ditto_replica *self, const struct operands *o)
{
    return ditto_gather_to_root(self, o->src, o->dst, o->count, NULL, NULL, DITTO_F32, 1, o->options);
}
static ditto_status gather_uneven(ditto_replica *self, const struct operands *o)
{
    return ditto_gather_to_root(self, o->src, o->dst, 0, o->counts, NULL, DITTO_F32, 1, o->options);
}
static ditto_status scatter(ditto_replica *self, const struct operands *o)
{
    return ditto_scatter_from_root(self, o->src, o->dst, o->count, NULL, NULL, DITTO_F32, 1, o->options);
}
static ditto_status scatter_uneven(ditto_replica *self, const struct operands *o)
{
    return ditto_scatter_from_root(self, o->src, o->dst, 0, o->counts, NULL, DITTO_F32, 1, o->options);
}
static ditto_status all_to_all(ditto_replica *self, const struct operands *o)
{
    return ditto_all_to_all(self, o->src, o->dst, o->count, NULL, DITTO_F32, o->options);
}
static ditto_status all_to_all_in_place(ditto_replica *self, const struct operands *o)
{
    return ditto_all_to_all(self, o->src, o->src, o->count, NULL, DITTO_F32, o->options);
}
/* Replica i gives to replica j as many elements as j to i. */
static ditto_status all_to_all_uneven(ditto_replica *self, const struct operands *o)
{
    uint32_t id = rank_of(self), n = size_of(self);
    size_t counts[DITTO_MAX_REPLICAS];
    ditto_all_to_all_parts parts = { .src_counts = counts, .dst_counts = counts };
    for (uint32_t i = 0; i < n; i++)
        counts[i] = o->counts[(id + i) % n];
    return ditto_all_to_all(self, o->src, o->dst, 0, &parts, DITTO_F32, o->options);
}
static ditto_status slices(ditto_replica *self, const struct operands *o)
{
    size_t n = size_of(self);
    int64_t *all = malloc(n * o->count * sizeof *all + 1);
    ditto_slices in = { o->indices, o->src, o->count, 1, DITTO_F32 },
                 out = { all, o->dst, n * o->count, 0, (ditto_dtype)0 };
    ditto_status status = ditto_all_reduce_slices(self, &in, &out, DITTO_SUM, o->options);
    free(all);
    return status;
}
static ditto_status slices_into(ditto_replica *self, const struct operands *o)
{
    ditto_slices in = { o->indices, o->src, o->count, 1, DITTO_F32 };
    return add_slices_to_dense(self, &in, o->dst, o->count, DITTO_SUM, o->options);
}
/* Each replica gives to the next one and receives from the one before. The tag is the giver. */
static ditto_status exchange(ditto_replica *self, const struct operands *o)
{
    uint32_t id = rank_of(self), n = size_of(self), before = (id + n - 1) % n;
    ditto_exchange_part part[] = { { (id + 1) % n, id, o->src, NULL, o->count, 0, DITTO_F32 },
                                   { before, before, NULL, o->dst, 0, o->count, DITTO_F32 } };
    return ditto_exchange(self, part, 2, o->options);
}
static ditto_status block_dot(ditto_replica *self, const struct operands *o)
{
    return ditto_block_dot(self, o->src, o->src, o->dst, o->count, DITTO_F32, o->options);
}

static ditto_status zeros(void *out, size_t first, size_t count, void *user)
{
    memset(out, 0, count * sizeof(float));
    return DITTO_OK;
}
static ditto_status block_sum_with(ditto_replica *self, const struct operands *o)
{
    return ditto_block_sum_with(self, zeros, NULL, o->dst, o->count, DITTO_F32, o->options);
}
static ditto_status unchanged(void *buffer, size_t count, ditto_dtype dtype, void *user)
{
    return DITTO_OK;
}
static ditto_status through(ditto_replica *self, const struct operands *o)
{
    return ditto_all_reduce_through(self, o->src, o->dst, o->count, DITTO_F32, DITTO_SUM, unchanged, NULL,
                                    o->options);
}

static ditto_status block_sum(ditto_replica *self, const struct operands *o)
{
    return ditto_block_sum(self, o->src, o->dst, o->count, DITTO_F32, o->options);
}
/* This call has no options, so its time limit is that of the strategy. */
static ditto_status all_gather_tensor(ditto_replica *self, const struct operands *o)
{
    ditto_tensor in = { .data = o->src, .dtype = DITTO_F32, .rank = 1, .shape = { o->count } }, out;
    DITTO_TRY(ditto_all_gather_tensor(self, &in, 0, &out));
    return ditto_free(self, out.data);
}
static ditto_status all_to_all_tensor(ditto_replica *self, const struct operands *o)
{
    uint32_t n = size_of(self);
    ditto_tensor in = { .data = o->src, .dtype = DITTO_F32, .rank = 2, .shape = { o->count, n } }, out;
    DITTO_TRY(ditto_all_to_all_tensor(self, &in, 1, 0, &out));
    return ditto_free(self, out.data);
}
static ditto_status finish(ditto_replica *self, ditto_status started, ditto_pending *pending,
                           const struct operands *o)
{
    return ditto_abandon(self, started == DITTO_OK ? ditto_wait(self, pending, o->options) : started);
}
static ditto_status all_reduce_start(ditto_replica *self, const struct operands *o)
{
    ditto_pending pending;
    ditto_status status = ditto_all_reduce_start(self, o->src, o->dst, o->count, DITTO_F32, DITTO_SUM,
                                                 o->options, &pending);
    return finish(self, status, &pending, o);
}
static ditto_status reduce_scatter_start(ditto_replica *self, const struct operands *o)
{
    ditto_pending pending;
    ditto_status status = ditto_reduce_scatter_start(self, o->src, o->dst, o->count, DITTO_F32, DITTO_SUM,
                                                     o->options, &pending);
    return finish(self, status, &pending, o);
}
static ditto_status all_gather_start(ditto_replica *self, const struct operands *o)
{
    ditto_pending pending;
    ditto_status status = ditto_all_gather_start(self, o->src, o->dst, o->count, DITTO_F32, o->options,
                                                 &pending);
    return finish(self, status, &pending, o);
}
static ditto_status all_to_all_start(ditto_replica *self, const struct operands *o)
{
    ditto_pending pending;
    ditto_status status = ditto_all_to_all_start(self, o->src, o->dst, o->count, DITTO_F32, o->options,
                                                 &pending);
    return finish(self, status, &pending, o);
}

static const struct {
    operation *call;
    const char *name;
    bool is_pending;
} operations[] = {
    { barrier, "ditto_barrier", false },
    { all_reduce, "ditto_all_reduce", false },
    { list, "ditto_all_reduce_list", false },
    { with, "ditto_all_reduce_with", false },
    { reduce, "ditto_reduce_to_root", false },
    { broadcast, "ditto_broadcast_from_root", false },
    { reduce_scatter, "ditto_reduce_scatter", false },
    { reduce_scatter_uneven, "ditto_reduce_scatter", false },
    { all_gather, "ditto_all_gather", false },
    { all_gather_uneven, "ditto_all_gather", false },
    { gather, "ditto_gather_to_root", false },
    { gather_uneven, "ditto_gather_to_root", false },
    { scatter, "ditto_scatter_from_root", false },
    { scatter_uneven, "ditto_scatter_from_root", false },
    { all_to_all, "ditto_all_to_all", false },
    { all_to_all_in_place, "ditto_all_to_all", false },
    { all_to_all_uneven, "ditto_all_to_all", false },
    { slices, "ditto_all_reduce_slices", false },
    { slices_into, "ditto_all_reduce_slices", false },
    { exchange, "ditto_exchange", false },
    { block_sum, "ditto_block_sum", false },
    { block_sum_with, "ditto_block_sum_with", false },
    { block_dot, "ditto_block_dot", false },
    { through, "ditto_all_reduce_through", false },
    { scan, "ditto_scan", false },
    { scan_exclusive, "ditto_scan_exclusive", false },
    { scan_with, "ditto_scan_with", false },
    { all_gather_tensor, "ditto_all_gather_tensor", false },
    { all_to_all_tensor, "ditto_all_to_all_tensor", false },
    { all_reduce_start, "ditto_all_reduce_start", true },
    { reduce_scatter_start, "ditto_reduce_scatter_start", true },
    { all_gather_start, "ditto_all_gather_start", true },
    { all_to_all_start, "ditto_all_to_all_start", true },
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static bool has_no_options(int which)
{
    return operations[which].call == all_gather_tensor || operations[which].call == all_to_all_tensor;
}

static bool make_operands(ditto_replica *self, size_t count, const ditto_reduce_options *options,
                          struct operands *o)
{
    size_t n = size_of(self);
    *o = (struct operands){ .count = count, .options = options };
    o->src = calloc(n * count + 2 * count + 1, sizeof *o->src);
    o->dst = calloc(n * count + 1, sizeof *o->dst);
    o->counts = malloc(n * sizeof *o->counts);
    o->indices = calloc(count + 1, sizeof *o->indices);
    for (size_t i = 0; i < n; i++)
        o->counts[i] = i % 2 == 0 ? count : count / 2;
    return o->src != NULL && o->dst != NULL && o->indices != NULL;
}

/* Overwrites the source before it is freed. A replica that still read it would have a wrong result. */
static void free_operands(ditto_replica *self, struct operands *o)
{
    memset(o->src, 0xff, size_of(self) * o->count * sizeof *o->src);
    free(o->src);
    free(o->dst);
    free(o->counts);
    free(o->indices);
}

/* -- Faults -- */

enum fault { RETURNS, FAILS, CALLS_OTHER, HAS_OTHER_LABEL, COMES_LATE, FAULTS };

/* The time limits in milliseconds with COMES_LATE, and with the other faults. */
enum { SHORT_MS = 60, LONG_MS = 60000 };

static const struct {
    ditto_status run;    /* of ditto_strategy_run */
    ditto_status others; /* of the operation on the other replicas */
    const char *words;   /* in the message of the run */
} expected[FAULTS] = {
    [RETURNS] = { DITTO_ERR_DIVERGED, DITTO_ERR_DIVERGED, "returned from its function" },
    [FAILS] = { DITTO_ERR_USER, DITTO_ERR_PEER_STOPPED, "the disk is full" },
    [CALLS_OTHER] = { DITTO_ERR_DIVERGED, DITTO_ERR_DIVERGED, "(3 x i64, MIN)" },
    [HAS_OTHER_LABEL] = { DITTO_ERR_DIVERGED, DITTO_ERR_DIVERGED, " \"accuracy\" #" },
    [COMES_LATE] = { DITTO_ERR_TIMED_OUT, DITTO_ERR_TIMED_OUT, "waited 60 ms in " },
};

struct task {
    struct report report;
    operation *call;
    enum fault fault;
    size_t count;
    ditto_implementation implementation;
    ditto_grouping *grouping; /* may be NULL */

    /* The number of replicas that had the expected error. */
    _Atomic int num_failed;
};

static ditto_status misbehave(ditto_replica *self, struct task *t)
{
    int64_t three[3] = { 0 };
    switch (t->fault) {
    case FAILS:
        return ditto_fail(self, 5, "the disk is full");
    case CALLS_OTHER:
        return ditto_all_reduce(self, three, three, 3, DITTO_I64, DITTO_MIN,
                                &OPTIONS(reduce, .group = group));
    case COMES_LATE:
        /* It waits until the others have timed out, which takes longer on a busy machine. */
        for (int ms = 0; atomic_load(&t->num_failed) < (int)size_of(self) - 1 && ms < 60000; ms++)
            sleep_ms(1);
        return ditto_barrier(self, &OPTIONS(reduce, .group = group));
    default:
        return DITTO_OK;
    }
}

static ditto_status take_part_in_group(ditto_replica *self, struct task *t)
{
    bool culprit = rank_of(self) == size_of(self) - 1;
    struct operands o;
    ditto_status status = DITTO_OK;
    char label[] = "    loss";
    ditto_reduce_options options = OPTIONS(reduce, .implementation = t->implementation, .group = group);
    if (t->fault == HAS_OTHER_LABEL)
        options.label = label;
    else
        options.timeout_ms = t->fault == COMES_LATE ? SHORT_MS : LONG_MS;
    EXPECT(&t->report, make_operands(self, t->count, &options, &o));
    /* A late replica takes part in no call before the fault, because on a busy machine the short time limit
     * could pass in that call. */
    int rounds = !culprit ? INT_MAX : t->fault == COMES_LATE ? 0 : 3;
    for (int i = 0; status == DITTO_OK && i < rounds; i++)
        status = t->call(self, &o);
    if (culprit && t->fault == HAS_OTHER_LABEL) { /* at the same address */
        memcpy(label, "accuracy", sizeof label);
        status = t->call(self, &o);
    } else if (culprit && status == DITTO_OK) {
        free_operands(self, &o);
        return misbehave(self, t);
    }
    /* With COMES_LATE, the time limit of another replica may stop this one. */
    bool right = status == expected[t->fault].others ||
                 (t->fault == COMES_LATE && status == DITTO_ERR_PEER_STOPPED);
    bool next_fails = t->call(self, &o) < 0;
    free_operands(self, &o);
    EXPECT(&t->report, right && next_fails);
    atomic_fetch_add(&t->num_failed, 1);
    return status;
}

static ditto_status take_part(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    ditto_group of_replica;
    if (t->grouping == NULL)
        return take_part_in_group(self, t);
    EXPECT(&t->report, ditto_group_of(self, t->grouping, &of_replica) == DITTO_OK);
    if (of_replica.size == 0)
        return DITTO_OK;
    group = &of_replica;
    ditto_status status = take_part_in_group(self, t);
    group = NULL;
    return status;
}

static ditto_status sum_ones(ditto_replica *self, void *argument)
{
    float data[3000];
    for (int i = 0; i < 3000; i++)
        data[i] = 1;
    DITTO_TRY(ditto_all_reduce(self, data, data, 3000, DITTO_F32, DITTO_SUM,
                               &OPTIONS(reduce, .timeout_ms = LONG_MS)));
    EXPECT(argument, data[0] == (float)ditto_num_replicas(self) && data[2999] == data[0]);
    return DITTO_OK;
}

static void try_operation(ditto_strategy *strategy, ditto_grouping *grouping, int which, enum fault fault,
                          size_t count, ditto_implementation implementation, bool print)
{
    struct task t = { .call = operations[which].call,
                      .fault = fault,
                      .count = count,
                      .implementation = implementation,
                      .grouping = grouping };
    int members = (int)ditto_strategy_num_replicas(strategy) - (grouping != NULL);
    struct report next = { 0 };
    /* A replica that waits for a pending operation sees only that another one meets elsewhere. */
    const char *wanted = fault == CALLS_OTHER && operations[which].is_pending
                             ? "(in ditto_all_reduce #4), which has not started it"
                             : expected[fault].words;
    ditto_status status = ditto_strategy_run(strategy, take_part, &t);
    char words[512];
    snprintf(words, sizeof words, "%s", ditto_last_error()->message);
    if (t.report.first_failure[0] != '\0')
        fail_msg("%s, fault %d: %s", operations[which].name, fault, t.report.first_failure);
    if (status != expected[fault].run || strstr(words, wanted) == NULL)
        fail_msg("%s, fault %d: %s: %s", operations[which].name, fault, ditto_status_name(status), words);
    if (fault != FAILS && strstr(words, operations[which].name) == NULL)
        fail_msg("%s is not named: %s", operations[which].name, words);
    assert_int_equal(t.num_failed, members - (fault != HAS_OTHER_LABEL));
    if (print)
        print_message("  %s\n", words);
    run_all(strategy, sum_ones, &next, &next);
}

/* In a group, replica 0 is no member and returns at once, and the ranks are in the order of falling ids. */
static void try_all_operations(uint32_t replicas, enum fault fault, bool in_group)
{
    uint32_t colors[9] = { DITTO_NO_COLOR }, keys[9];
    ditto_grouping *grouping = NULL;
    static const size_t counts[] = { 2, 6000 };
    ditto_tuning tuning = { .struct_size = sizeof tuning,
                            .near_replicas = replicas == 2 ? 1 : 2,
                            .block_bytes = 4096 };
    ditto_strategy_options options = OPTIONS(strategy, .tuning = &tuning);
    options.timeout_ms = fault == COMES_LATE ? SHORT_MS : LONG_MS; /* for calls without options */
    ditto_strategy *strategy = make_strategy(replicas + in_group, &options);
    for (uint32_t i = 0; i <= replicas; i++)
        keys[i] = replicas - i;
    if (in_group)
        assert_ok(ditto_strategy_split(strategy, colors, keys, replicas + 1, &grouping));
    for (int which = 0; which < OPERATIONS; which++)
        for (int c = 0; c < 2; c++)
            for (int i = DITTO_IMPLEMENTATION_DEFAULT; i <= DITTO_IMPLEMENTATION_HIERARCHICAL; i++)
                if ((fault != COMES_LATE || i != DITTO_IMPLEMENTATION_FLAT) &&
                    ((fault != HAS_OTHER_LABEL && !in_group) || !has_no_options(which)))
                    try_operation(strategy, grouping, which, fault, counts[c], (ditto_implementation)i,
                                  replicas == 3 && c == 1 && i == 0 && which % 4 == 0);
    assert_ok(ditto_grouping_destroy(grouping)); /* NULL if there is none */
    assert_ok(ditto_strategy_destroy(strategy));
}

static void every_operation_ends_in_the_documented_error(void **state)
{
    static const uint32_t replicas[] = { 2, 3, 8 };
    for (int k = 0; k < 3; k++)
        for (int fault = 0; fault < FAULTS; fault++)
            /* COMES_LATE takes long, so fewer cases are tried. */
            if (fault != COMES_LATE || replicas[k] == 3)
                try_all_operations(replicas[k], (enum fault)fault, false);
}

static void every_operation_of_a_group_ends_in_the_documented_error(void **state)
{
    for (int fault = 0; fault < FAULTS; fault++)
        try_all_operations(3, (enum fault)fault, true);
}

/* -- The same function with different arguments -- */

enum difference {
    COUNT,
    OP,
    DTYPE,
    ROOT,
    COUNTS,
    NO_COUNTS,
    ITEM,
    PACK,
    FUNCTION,
    IMPLEMENTATION,
    FLAGS,
    LABEL,
    NO_LABEL,
    ITEM_LABEL,
    DIFFERENCES
};

/* Words of the message about each difference. */
static const char *const difference_words[DIFFERENCES] = {
    "(7 x f32, SUM)",
    "(5 x f32, MAX)",
    "(5 x i32, SUM)",
    "root 1",
    "counts[1]: ",
    "counts is NULL on one",
    "item 1: 5 x f32, but 6",
    "bytes_per_pack differs",
    "their functions differ",
    "HIERARCHICAL",
    "flags or numbers",
    "calls ditto_all_reduce \"loss\" #1 (5 x f32, SUM), but replica ",
    "calls ditto_all_reduce \"\" #1 (5 x f32, SUM), but replica ",
    "item 1: 5 x f32 \"loss\", but 5 x f32): every",
};

static ditto_status keep_right(void *out, const void *left, const void *right, size_t count, void *user)
{
    memmove(out, right, count * sizeof(float));
    return DITTO_OK;
}

static ditto_status call_differently(ditto_replica *self, void *argument)
{
    enum difference d = *(enum difference *)argument;
    bool other = ditto_replica_id(self) == ditto_num_replicas(self) - 1;
    ditto_reduce_options o = DITTO_REDUCE_OPTIONS_INIT;
    float a[64] = { 0 }, b[64];
    size_t counts[8] = { 2, other ? 3 : 2, 2, 2, 2, 2, 2, 2 }, alike[8] = { 2, 2, 2, 2, 2, 2, 2, 2 };
    int64_t indices[2] = { 0, 1 }, more[32];
    ditto_list_item item[2] = { { a, b, 5, DITTO_F32, NULL },
                                { a + 8, b + 8, other && d == ITEM ? 6 : 5, DITTO_F32,
                                  !other && d == ITEM_LABEL ? "loss" : NULL } };
    ditto_slices in = { indices, a, 2, 1, DITTO_F32 }, out = { more, b, 32, 0, (ditto_dtype)0 };
    if (other && d == IMPLEMENTATION)
        o.implementation = DITTO_IMPLEMENTATION_HIERARCHICAL;
    if (other && d == PACK)
        o.bytes_per_pack = 8;
    if (other && d == FLAGS)
        o.flags = DITTO_SLICES_MERGE;
    if (d == LABEL || d == NO_LABEL)
        o.label = d == LABEL ? other ? "accuracy" : "loss" : other ? NULL : "";
    switch (d) {
    case ROOT:
        return ditto_broadcast_from_root(self, a, 5, DITTO_F32, other ? 1 : 0, NULL);
    case COUNTS:
        return ditto_all_gather(self, a, b, 0, counts, DITTO_F32, NULL);
    case NO_COUNTS:
        return ditto_all_gather(self, a, b, 2, other ? NULL : alike, DITTO_F32, NULL);
    case ITEM:
    case ITEM_LABEL:
    case PACK:
        return ditto_all_reduce_list(self, item, 2, DITTO_SUM, &o);
    case FUNCTION:
        return ditto_all_reduce_with(self, a, b, 5, sizeof *a, other ? keep_right : keep_left, NULL, NULL);
    case FLAGS:
        return ditto_all_reduce_slices(self, &in, &out, DITTO_SUM, &o);
    default:
        return ditto_all_reduce(self, a, b, other && d == COUNT ? 7 : 5,
                                other && d == DTYPE ? DITTO_I32 : DITTO_F32,
                                other && d == OP ? DITTO_MAX : DITTO_SUM, &o);
    }
}

static void calls_with_different_arguments_are_detected(void **state)
{
    static const uint32_t replicas[] = { 2, 3, 8 };
    for (int k = 0; k < 3; k++) {
        ditto_strategy *strategy = make_strategy(replicas[k], NULL);
        for (int d = 0; d < DIFFERENCES; d++) {
            enum difference difference = (enum difference)d;
            struct report next = { 0 };
            assert_status(ditto_strategy_run(strategy, call_differently, &difference), DITTO_ERR_DIVERGED);
            assert_message(difference_words[d]);
            if (k == 1)
                print_message("  %s\n", ditto_last_error()->message);
            run_all(strategy, sum_ones, &next, &next);
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- Many replicas are missing -- */

struct away {
    ditto_strategy *strategy;

    /* Not 0 when a replica has left the barrier. */
    _Atomic uint32_t has_left;
};

/* Waits until replicas 0, 1, 3 and 17 are in the barrier, or one of them has left it. */
static void await_the_four(struct away *a)
{
    static const char *const in_barrier[] = { "replica 0: in ditto_barrier", "replica 1: in ditto_barrier",
                                              "replica 3: in ditto_barrier", "replica 17: in ditto_barrier" };
    for (size_t found = 0; found < 4 && atomic_load(&a->has_left) == 0; sleep_ms(1)) {
        const char *words = ditto_strategy_diagnose(a->strategy);
        for (found = 0; found < 4 && strstr(words, in_barrier[found]) != NULL; found++)
            ;
    }
}

/* Replicas 0 to 3 and 17 make the call, replica 2 after the other four and with the shortest time limit. The
 * other replicas make no call, and return when one of the five has left the barrier. */
static ditto_status most_stay_away(ditto_replica *self, void *argument)
{
    struct away *a = argument;
    uint32_t id = ditto_replica_id(self);
    if (id >= 4 && id != 17) {
        for (int i = 0; i < 120000 && atomic_load(&a->has_left) == 0; i++)
            sleep_ms(1);
        return DITTO_OK;
    }
    if (id == 2)
        await_the_four(a);
    ditto_status status = ditto_barrier(self, &OPTIONS(reduce, .timeout_ms = id == 2 ? 3000 : 120000));
    atomic_store(&a->has_left, 1);
    return status;
}

static void all_missing_replicas_are_named(void **state)
{
    ditto_strategy *strategy = make_strategy(64, NULL);
    struct away away = { .strategy = strategy };
    assert_status(ditto_strategy_run(strategy, most_stay_away, &away), DITTO_ERR_TIMED_OUT);
    assert_message("replicas 4-16, 18-63, the first of them replica 4 (in no collective yet), replica 5");
    print_message("  %s\n", ditto_last_error()->message);
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- Two replicas with one destination -- */

struct sharing {
    struct report report;
    float *buffer; /* [50000] */
    bool broadcasts;

    /* The number of replicas whose call returned DITTO_ERR_INVALID. */
    _Atomic uint32_t invalid;
};

/* A replica that still waits for a word of the meeting when another one detects the error is stopped. */
static ditto_status share_a_buffer(ditto_replica *self, void *argument)
{
    struct sharing *s = argument;
    ditto_status status = s->broadcasts
                              ? ditto_broadcast_from_root(self, s->buffer, 50000, DITTO_F32, 0, NULL)
                              : ditto_all_reduce(self, s->buffer, s->buffer, 50000, DITTO_F32, DITTO_MAX,
                                                 NULL);
    EXPECT(&s->report, status == DITTO_ERR_INVALID || status == DITTO_ERR_PEER_STOPPED);
    EXPECT(&s->report, strstr(ditto_last_error()->message, "give the same destination") != NULL);
    atomic_fetch_add(&s->invalid, status == DITTO_ERR_INVALID);
    return status;
}

static void a_destination_that_two_replicas_share_is_refused(void **state)
{
    static const uint32_t replicas[] = { 2, 3, 8, 64 };
    float *buffer = calloc(50000, sizeof *buffer);
    for (int k = 0; k < 4; k++) {
        ditto_strategy *strategy = make_strategy(replicas[k], NULL);
        for (int broadcasts = 0; broadcasts < 2; broadcasts++) {
            struct sharing s = { .buffer = buffer, .broadcasts = broadcasts != 0 };
            struct report next = { 0 };
            assert_status(ditto_strategy_run(strategy, share_a_buffer, &s), DITTO_ERR_INVALID);
            assert_message("give the same destination");
            assert_string_equal(s.report.first_failure, "");
            /* Two replicas meet in one round, so both detect it. */
            assert_in_range(s.invalid, replicas[k] == 2 ? 2 : 1, replicas[k]);
            run_all(strategy, sum_ones, &next, &next);
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
    free(buffer);
}

/* -- A list of many packs, of which each waits for less than the time limit -- */

enum { WAIT_MS = 3000, DELAY_MS = 1600, SLOW_ITEMS = 3 };

/* Memory that cannot be read. A thread that reads a page of it sleeps first. */
static char *slow_pages;
static size_t page_bytes;

static void sleep_and_allow(int number, siginfo_t *info, void *context)
{
    size_t offset = (size_t)((uintptr_t)info->si_addr - (uintptr_t)slow_pages);
    if (offset >= SLOW_ITEMS * page_bytes)
        abort();
    sleep_ms(DELAY_MS);
    mprotect(slow_pages + offset / page_bytes * page_bytes, page_bytes, PROT_READ | PROT_WRITE);
}

/* Replica 1 arrives late at the meeting of each pack. */
static ditto_status sum_slow_packs(ditto_replica *self, void *unused)
{
    int sources[SLOW_ITEMS] = { 0 }, sums[SLOW_ITEMS];
    ditto_list_item items[SLOW_ITEMS];
    for (size_t i = 0; i < SLOW_ITEMS; i++) {
        void *slow = slow_pages + i * page_bytes;
        items[i] = (ditto_list_item){ ditto_replica_id(self) == 1 ? slow : &sources[i], &sums[i], 1,
                                      DITTO_I32, NULL };
    }
    return ditto_all_reduce_list(self, items, SLOW_ITEMS, DITTO_SUM,
                                 &OPTIONS(reduce, .timeout_ms = WAIT_MS, .bytes_per_pack = 1));
}

static void each_pack_of_a_list_has_its_own_time_limit(void **state)
{
    struct sigaction on_fault = { .sa_sigaction = sleep_and_allow, .sa_flags = SA_SIGINFO }, before;
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_status status = DITTO_ERR_TIMED_OUT;
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    slow_pages = mmap(NULL, SLOW_ITEMS * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(slow_pages != MAP_FAILED);
    assert_int_equal(sigaction(SIGSEGV, &on_fault, &before), 0);
    /* On a busy machine a single meeting may take longer than the limit, so the test tries again. */
    for (int tries = 0; status == DITTO_ERR_TIMED_OUT && tries < 5; tries++) {
        assert_int_equal(mprotect(slow_pages, SLOW_ITEMS * page_bytes, PROT_NONE), 0);
        status = ditto_strategy_run(strategy, sum_slow_packs, NULL);
    }
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    assert_status(status, DITTO_OK);
    munmap(slow_pages, SLOW_ITEMS * page_bytes);
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- ditto_strategy_diagnose, for debuggers -- */

static ditto_status look_around(ditto_replica *self, void *argument)
{
    void **both = argument;
    ditto_reduce_options labelled = OPTIONS(reduce, .label = "train");
    DITTO_TRY(ditto_barrier(self, &labelled));
    DITTO_TRY(ditto_barrier(self, NULL));
    if (ditto_replica_id(self) != 1)
        return ditto_barrier(self, &labelled);
    const char *words = ditto_strategy_diagnose(both[0]);
    for (int i = 0; i < 120000 && strstr(words, "replica 0: in ditto_barrier \"train\" #3") == NULL; i++) {
        sleep_ms(1);
        words = ditto_strategy_diagnose(both[0]);
    }
    EXPECT(both[1], strstr(words, "replica 0: in ditto_barrier \"train\" #3") != NULL);
    EXPECT(both[1], strstr(words, "replica 1: last in ditto_barrier #2") != NULL);
    printf("%s", words);
    return ditto_barrier(self, &labelled);
}

static void diagnose_says_in_which_call_each_replica_waits(void **state)
{
    struct report report = { 0 };
    ditto_strategy *strategy = make_strategy(3, NULL);
    void *both[] = { strategy, &report };
    run_all(strategy, look_around, both, &report);
    assert_string_equal(ditto_strategy_diagnose(NULL), "no strategy");
    assert_ok(ditto_strategy_destroy(strategy));
}

/* Runs inside runs, each with collectives whose labels consist of one letter. */
struct nested {
    ditto_strategy *strategy;
    _Atomic bool over;
    _Atomic int mixed; /* labels with two letters */
};

static ditto_status meet_labelled(ditto_replica *self, const char *label)
{
    DITTO_TRY(ditto_barrier(self, &OPTIONS(reduce, .label = label)));
    return ditto_barrier(self, NULL);
}

static ditto_status meet_inside(ditto_replica *self, void *unused)
{
    DITTO_TRY(meet_labelled(self, "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii"));
    return meet_labelled(self, "jjjj");
}

static ditto_status run_inside(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                               void *user, ditto_value **result)
{
    return ditto_strategy_run(strategy, meet_inside, NULL);
}

static ditto_status meet_around(ditto_replica *self, void *unused)
{
    for (int i = 0; i < 20; i++) {
        DITTO_TRY(meet_labelled(self, "oooooooooooooooooooooooooooooooooooooooooooooooooooooooooo"));
        DITTO_TRY(ditto_merge_call(self, run_inside, NULL, NULL, 0, NULL));
        DITTO_TRY(meet_labelled(self, "pppppppppp"));
    }
    return DITTO_OK;
}

static void *diagnose_until_over(void *argument)
{
    struct nested *n = argument;
    while (!n->over)
        for (const char *at = ditto_strategy_diagnose(n->strategy); (at = strchr(at, '"')) != NULL;) {
            size_t length = strcspn(at + 1, "\"");
            n->mixed += strspn(at + 1, (char[2]){ at[1], '\0' }) != length;
            at += length + 2;
        }
    return NULL;
}

static void diagnose_may_be_called_while_runs_are_nested(void **state)
{
    pthread_t thread;
    struct nested n = { .strategy = make_strategy(3, NULL) };
    assert_int_equal(pthread_create(&thread, NULL, diagnose_until_over, &n), 0);
    for (int i = 0; i < test_trials(60); i++)
        assert_ok(ditto_strategy_run(n.strategy, meet_around, NULL));
    n.over = true;
    pthread_join(thread, NULL);
    assert_int_equal(n.mixed, 0);
    assert_ok(ditto_strategy_destroy(n.strategy));
}

/* -- Numbers of operations -- */

static ditto_status three_barriers(ditto_replica *self, void *unused)
{
    double x = 1, y;
    ditto_pending pending;
    for (int i = 0; i < 3; i++)
        DITTO_TRY(ditto_barrier(self, NULL));
    for (int i = 0; i < 2; i++) {
        DITTO_TRY(ditto_all_reduce_start(self, &x, &y, 1, DITTO_F64, DITTO_SUM, NULL, &pending));
        DITTO_TRY(ditto_wait(self, &pending, NULL));
    }
    return DITTO_OK;
}

static ditto_status one_waits(ditto_replica *self, void *unused)
{
    return ditto_replica_id(self) == 0 ? ditto_barrier(self, NULL) : DITTO_OK;
}

static ditto_status leaves_one_open(ditto_replica *self, void *unused)
{
    /* Static, because they are used after the functions have returned. */
    static double x[2], y[2];
    ditto_pending pending;
    uint32_t id = ditto_replica_id(self);
    return ditto_all_reduce_start(self, &x[id], &y[id], 1, DITTO_F64, DITTO_SUM, NULL, &pending);
}

static void operations_are_numbered_within_their_run(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    assert_ok(ditto_strategy_run(strategy, three_barriers, NULL));
    assert_status(ditto_strategy_run(strategy, one_waits, NULL), DITTO_ERR_DIVERGED);
    assert_message("replica 0 waits in ditto_barrier #1 for replica 1 (returned from its function; in no "
                   "collective yet)");
    assert_ok(ditto_strategy_run(strategy, three_barriers, NULL));
    assert_status(ditto_strategy_run(strategy, leaves_one_open, NULL), DITTO_ERR_INVALID);
    assert_message("1 pending operation, the oldest is ditto_all_reduce_start #1:");
    assert_ok(ditto_strategy_run(strategy, three_barriers, NULL));
    assert_ok(ditto_strategy_run(strategy, three_barriers, NULL));
    assert_non_null(strstr(ditto_strategy_diagnose(strategy), "last in ditto_all_reduce_start #5\n"));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- Labels in messages. Each text is overwritten after its call. -- */

static ditto_status meet_and_leave(ditto_replica *self, void *unused)
{
    char label[DITTO_MAX_LABEL_BYTES + 2] = "load";
    ditto_reduce_options options = OPTIONS(reduce, .label = label);
    ditto_status status = DITTO_OK;
    for (int i = 0; i < 3 && status == DITTO_OK; i++) {
        memcpy(label, "load", 5);
        status = ditto_barrier(self, &options);
        memset(label, 'x', sizeof label - 1);
        label[4] = '\0';
    }
    if (status != DITTO_OK || ditto_replica_id(self) != 0)
        return status;
    return ditto_barrier(self, &OPTIONS(reduce, .label = "evaluate"));
}

static ditto_status leave_labelled_open(ditto_replica *self, void *argument)
{
    static double x[8], y[8];
    char label[] = "loss";
    ditto_pending pending;
    uint32_t id = ditto_replica_id(self);
    ditto_status status = DITTO_OK;
    for (int i = 0; i <= DITTO_MAX_PENDING && status == DITTO_OK; i++)
        status = ditto_all_reduce_start(self, &x[id], &y[id], 0, DITTO_F64, DITTO_SUM,
                                        i == 0 ? &OPTIONS(reduce, .label = label) : NULL, &pending);
    memset(label, 'x', sizeof label - 1);
    return argument == NULL ? ditto_abandon(self, DITTO_OK) : status;
}

static ditto_status give_long_labels(ditto_replica *self, void *argument)
{
    double x = 1;
    char label[DITTO_MAX_LABEL_BYTES + 2];
    memset(label, 'y', sizeof label);
    label[DITTO_MAX_LABEL_BYTES + 1] = '\0';
    ditto_list_item item = { &x, &x, 1, DITTO_F64, label };
    ditto_status status = ditto_barrier(self, &OPTIONS(reduce, .label = label));
    EXPECT(argument, status == DITTO_ERR_RANGE);
    EXPECT(argument, strstr(ditto_last_error()->message, "has 64 bytes: the most is 63") != NULL);
    EXPECT(argument, ditto_all_reduce_list(self, &item, 1, DITTO_SUM, NULL) == DITTO_ERR_RANGE);
    EXPECT(argument, strstr(ditto_last_error()->message, "item 0 of 1: the label ") != NULL);
    label[DITTO_MAX_LABEL_BYTES] = '\0';
    DITTO_TRY(ditto_all_reduce_list(self, &item, 1, DITTO_SUM, &OPTIONS(reduce, .label = label)));
    EXPECT(argument, x == ditto_num_replicas(self));
    return ditto_barrier(self, &OPTIONS(reduce, .label = label));
}

static void labels_stand_in_messages(void **state)
{
    struct report report = { 0 };
    ditto_strategy *strategy = make_strategy(2, NULL);
    assert_status(ditto_strategy_run(strategy, meet_and_leave, NULL), DITTO_ERR_DIVERGED);
    assert_message("replica 0 waits in ditto_barrier \"evaluate\" #4 for replica 1 (returned from its "
                   "function; last in ditto_barrier \"load\" #3)");
    assert_status(ditto_strategy_run(strategy, leave_labelled_open, &report), DITTO_ERR_RANGE);
    assert_message("32 operations have been started since ditto_all_reduce_start \"loss\" #1, which");
    assert_status(ditto_strategy_run(strategy, leave_labelled_open, NULL), DITTO_ERR_INVALID);
    assert_message("the oldest is ditto_all_reduce_start \"loss\" #1:");
    run_all(strategy, give_long_labels, &report, &report);
    assert_non_null(strstr(ditto_strategy_diagnose(strategy), "yyy\" #2\n"));
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_ends_in_the_documented_error),
        cmocka_unit_test(every_operation_of_a_group_ends_in_the_documented_error),
        cmocka_unit_test(calls_with_different_arguments_are_detected),
        cmocka_unit_test(all_missing_replicas_are_named),
        cmocka_unit_test(a_destination_that_two_replicas_share_is_refused),
        cmocka_unit_test(each_pack_of_a_list_has_its_own_time_limit),
        cmocka_unit_test(diagnose_says_in_which_call_each_replica_waits),
        cmocka_unit_test(diagnose_may_be_called_while_runs_are_nested),
        cmocka_unit_test(operations_are_numbered_within_their_run),
        cmocka_unit_test(labels_stand_in_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
