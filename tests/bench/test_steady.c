/* tests/bench/test_steady.c - in the steady state, operations neither sleep nor touch new memory.
 *
 * Two replicas with PUs of their own call each operation in batches. In the best of ten batches no replica
 * may switch voluntarily (it would have slept) or have a page fault (it would have used new memory). A
 * busy machine disturbs single batches. If it disturbs all ten, they are repeated. Involuntary switches
 * come from other programs, so they are printed and not asserted. The test runs alone. */
#include "counters.h"
#include "support/support.h"

#include <ditto.h>

#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { REPLICAS = 2, BATCHES = 10, WARM_UPS = 300, CALLS = 100, TRIES = 20, COUNT = 4096, ROWS = 16 };

/* The order of the events that are counted. Faults are the last, because reading the others may have some. */
#define EVENTS "voluntary-switches,involuntary-switches,page-faults"
enum { VOLUNTARY, INVOLUNTARY, FAULTS };

struct buffers {
    float src[COUNT], dst[REPLICAS * COUNT];
    int64_t index[ROWS], indices[REPLICAS * ROWS];
};

struct steady;

/* An operation is called on each replica, or between runs if it is `outside`. */
struct operation {
    const char *name;
    ditto_status (*call)(ditto_replica *self, struct steady *s, struct buffers *b);
    bool outside;
};

struct steady {
    ditto_strategy *strategy;
    ditto_optimizer *optimizer;
    ditto_queue *queue;
    struct buffers buffers[REPLICAS];
    const struct operation *operation;
    struct counts counts[BATCHES][REPLICAS];
    int batch; /* of an operation outside of runs */
};

/* -- the operations -- */

static ditto_status barrier(ditto_replica *self, struct steady *s, struct buffers *b)
{
    return ditto_barrier(self, NULL);
}

static ditto_status small_all_reduce(ditto_replica *self, struct steady *s, struct buffers *b)
{
    return ditto_all_reduce(self, b->src, b->dst, 2, DITTO_F32, DITTO_SUM, NULL);
}

static ditto_status all_reduce(ditto_replica *self, struct steady *s, struct buffers *b)
{
    return ditto_all_reduce(self, b->src, b->dst, COUNT, DITTO_F32, DITTO_SUM, NULL);
}

static ditto_status all_reduce_list(ditto_replica *self, struct steady *s, struct buffers *b)
{
    ditto_list_item item[2] = {
        { .src = b->src, .dst = b->dst, .count = 1024, .dtype = DITTO_F32 },
        { .src = b->src + 1024, .dst = b->dst + 1024, .count = COUNT - 1024, .dtype = DITTO_F32 }
    };
    return ditto_all_reduce_list(self, item, 2, DITTO_SUM, NULL);
}

static ditto_status add(void *out, const void *left, const void *right, size_t count, void *user)
{
    const float *a = left, *b = right;
    for (size_t i = 0; i < count; i++)
        ((float *)out)[i] = a[i] + b[i];
    return DITTO_OK;
}

static ditto_status all_reduce_with(ditto_replica *self, struct steady *s, struct buffers *b)
{
    return ditto_all_reduce_with(self, b->src, b->dst, COUNT, sizeof(float), add, NULL, NULL);
}

static ditto_status started_all_reduce(ditto_replica *self, struct steady *s, struct buffers *b)
{
    ditto_pending pending;
    DITTO_TRY(ditto_all_reduce_start(self, b->src, b->dst, COUNT, DITTO_F32, DITTO_SUM, NULL, &pending));
    return ditto_wait(self, &pending, NULL);
}

static ditto_status started_all_gather(ditto_replica *self, struct steady *s, struct buffers *b)
{
    ditto_pending pending;
    DITTO_TRY(ditto_all_gather_start(self, b->src, b->dst, COUNT, DITTO_F32, NULL, &pending));
    return ditto_wait(self, &pending, NULL);
}

static ditto_status started_reduce_scatter(ditto_replica *self, struct steady *s, struct buffers *b)
{
    ditto_pending pending;
    DITTO_TRY(ditto_reduce_scatter_start(self, b->src, b->dst, COUNT / REPLICAS, DITTO_F32, DITTO_SUM, NULL,
                                         &pending));
    return ditto_wait(self, &pending, NULL);
}

static ditto_status all_gather_tensor(ditto_replica *self, struct steady *s, struct buffers *b)
{
    ditto_tensor src = { .data = b->src, .dtype = DITTO_F32, .rank = 1, .shape = { COUNT } }, dst;
    DITTO_TRY(ditto_all_gather_tensor(self, &src, 0, &dst)); /* allocates the result */
    return ditto_free(self, dst.data);
}

static ditto_status all_gather(ditto_replica *self, struct steady *s, struct buffers *b)
{
    return ditto_all_gather(self, b->src, b->dst, COUNT, NULL, DITTO_F32, NULL);
}

static ditto_status all_gather_uneven(ditto_replica *self, struct steady *s, struct buffers *b)
{
    const size_t counts[REPLICAS] = { 1000, 3000 };
    return ditto_all_gather(self, b->src, b->dst, 0, counts, DITTO_F32, NULL);
}

static ditto_status reduce_scatter(ditto_replica *self, struct steady *s, struct buffers *b)
{
    return ditto_reduce_scatter(self, b->src, b->dst, COUNT / REPLICAS, NULL, DITTO_F32, DITTO_SUM, NULL);
}

static ditto_status reduce_scatter_uneven(ditto_replica *self, struct steady *s, struct buffers *b)
{
    const size_t counts[REPLICAS] = { 1000, COUNT - 1000 };
    return ditto_reduce_scatter(self, b->src, b->dst, 0, counts, DITTO_F32, DITTO_SUM, NULL);
}

static ditto_status reduce_to_root(ditto_replica *self, struct steady *s, struct buffers *b)
{
    return ditto_reduce_to_root(self, b->src, b->dst, COUNT, DITTO_F32, DITTO_SUM, 0, NULL);
}

static ditto_status broadcast(ditto_replica *self, struct steady *s, struct buffers *b)
{
    return ditto_broadcast_from_root(self, b->dst, COUNT, DITTO_F32, 0, NULL);
}

static ditto_status block_sum(ditto_replica *self, struct steady *s, struct buffers *b)
{
    return ditto_block_sum(self, b->src, b->dst, COUNT, DITTO_F32, NULL);
}

/* Each replica gives to the other, too much for one meeting. */
static ditto_status exchange(ditto_replica *self, struct steady *s, struct buffers *b)
{
    ditto_exchange_part part = { .replica = 1 - ditto_replica_id(self),
                                 .src = b->src,
                                 .dst = b->dst,
                                 .src_count = COUNT,
                                 .dst_count = COUNT,
                                 .dtype = DITTO_F32 };
    return ditto_exchange(self, &part, 1, NULL);
}

static ditto_status all_reduce_slices(ditto_replica *self, struct steady *s, struct buffers *b)
{
    ditto_slices src = {
        .indices = b->index, .values = b->src, .rows = ROWS, .row_count = 8, .dtype = DITTO_F32
    };
    ditto_slices dst = {
        .indices = b->indices, .values = b->dst, .rows = REPLICAS * ROWS, .row_count = 8, .dtype = DITTO_F32
    };
    return ditto_all_reduce_slices(self, &src, &dst, DITTO_SUM, NULL);
}

static ditto_status all_reduce_slices_into(ditto_replica *self, struct steady *s, struct buffers *b)
{
    ditto_slices src = {
        .indices = b->index, .values = b->src, .rows = ROWS, .row_count = 8, .dtype = DITTO_F32
    };
    return add_slices_to_dense(self, &src, b->dst, COUNT / 8, DITTO_SUM, NULL);
}

static ditto_status merge_nothing(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                  void *user, ditto_value **result)
{
    return DITTO_OK;
}

static ditto_status merge_call(ditto_replica *self, struct steady *s, struct buffers *b)
{
    return ditto_merge_call(self, merge_nothing, NULL, NULL, 0, NULL);
}

static ditto_status apply(ditto_replica *self, struct steady *s, struct buffers *b)
{
    ditto_tensor gradient = { .data = b->src, .dtype = DITTO_F32, .rank = 1, .shape = { COUNT } };
    return ditto_apply(self, s->optimizer, &gradient, NULL);
}

/* Replica 1 puts an item, and replica 0 takes it. */
static ditto_status queue(ditto_replica *self, struct steady *s, struct buffers *b)
{
    ditto_queue_item item;
    if (ditto_replica_id(self) == 1)
        return ditto_queue_put(s->queue, 0, b, 0, DITTO_FOREVER);
    return ditto_queue_get(s->queue, DITTO_FOREVER, &item);
}

static ditto_status do_nothing(ditto_replica *self, void *unused)
{
    return DITTO_OK;
}

static ditto_status run(ditto_replica *self, struct steady *s, struct buffers *b)
{
    return ditto_strategy_run(s->strategy, do_nothing, NULL);
}

static const struct operation operations[] = {
    { "barrier", barrier, false },
    { "all_reduce of 8 bytes", small_all_reduce, false },
    { "all_reduce", all_reduce, false },
    { "all_reduce_list", all_reduce_list, false },
    { "all_reduce_with", all_reduce_with, false },
    { "all_reduce_start and wait", started_all_reduce, false },
    { "all_gather_start and wait", started_all_gather, false },
    { "reduce_scatter_start and wait", started_reduce_scatter, false },
    { "all_gather", all_gather, false },
    { "all_gather_tensor", all_gather_tensor, false },
    { "all_gather_uneven", all_gather_uneven, false },
    { "reduce_scatter", reduce_scatter, false },
    { "reduce_scatter_uneven", reduce_scatter_uneven, false },
    { "reduce_to_root", reduce_to_root, false },
    { "broadcast_from_root", broadcast, false },
    { "block_sum", block_sum, false },
    { "exchange", exchange, false },
    { "all_reduce_slices", all_reduce_slices, false },
    { "all_reduce_slices_into", all_reduce_slices_into, false },
    { "merge_call", merge_call, false },
    { "apply", apply, false },
    { "queue", queue, false },
    { "run", run, true },
};

/* -- counting -- */

static ditto_status count_inside(ditto_replica *self, void *argument)
{
    struct steady *s = argument;
    uint32_t id = ditto_replica_id(self);
    for (int i = 0; i < WARM_UPS; i++)
        DITTO_TRY(s->operation->call(self, s, &s->buffers[id]));
    for (int batch = 0; batch < BATCHES; batch++) {
        DITTO_TRY(ditto_barrier(self, NULL));
        counters_start_own();
        for (int i = 0; i < CALLS; i++)
            DITTO_TRY(s->operation->call(self, s, &s->buffers[id]));
        counters_stop_own(&s->counts[batch][id]);
    }
    return DITTO_OK;
}

static ditto_status start_inside(ditto_replica *self, void *unused)
{
    counters_start_own();
    return DITTO_OK;
}

static ditto_status stop_inside(ditto_replica *self, void *argument)
{
    struct steady *s = argument;
    counters_stop_own(&s->counts[s->batch][ditto_replica_id(self)]);
    return DITTO_OK;
}

static void count_outside(struct steady *s)
{
    for (int i = 0; i < WARM_UPS; i++)
        assert_ok(s->operation->call(NULL, s, NULL));
    for (s->batch = 0; s->batch < BATCHES; s->batch++) {
        assert_ok(ditto_strategy_run(s->strategy, start_inside, NULL));
        for (int i = 0; i < CALLS; i++)
            assert_ok(s->operation->call(NULL, s, NULL));
        assert_ok(ditto_strategy_run(s->strategy, stop_inside, s));
    }
}

/* Returns true if a batch had no voluntary switch and no fault on any replica. */
static bool is_steady(const struct steady *s)
{
    for (int batch = 0; batch < BATCHES; batch++) {
        bool steady = true;
        for (int r = 0; r < REPLICAS; r++)
            steady &= counts_scaled(&s->counts[batch][r], VOLUNTARY) == 0 &&
                      counts_scaled(&s->counts[batch][r], FAULTS) == 0;
        if (steady)
            return true;
    }
    return false;
}

static void print_batches(const struct steady *s)
{
    for (int r = 0; r < REPLICAS; r++) {
        double involuntary = 0;
        printf("%s, replica %d: voluntary switches and faults", s->operation->name, r);
        for (int batch = 0; batch < BATCHES; batch++) {
            const struct counts *c = &s->counts[batch][r];
            printf(" %.0f+%.0f", counts_scaled(c, VOLUNTARY), counts_scaled(c, FAULTS));
            involuntary += counts_scaled(c, INVOLUNTARY);
        }
        printf("; involuntary switches in all: %.0f\n", involuntary);
    }
}

/* Counts ten batches of the operation. Returns true if one of them was steady. */
static bool count(struct steady *s)
{
    if (s->operation->outside)
        count_outside(s);
    else
        assert_ok(ditto_strategy_run(s->strategy, count_inside, s));
    print_batches(s);
    return is_steady(s);
}

/* -- the test -- */

/* Causes a switch and a fault. Returns true if both are counted. */
static bool can_count(void)
{
    char why[256];
    struct counts counts;
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    assert_true(counters_choose(EVENTS, why, sizeof why));
    counters_find_threads();
    counters_start_own();
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    *(volatile char *)page = 1;
    counters_stop_own(&counts);
    munmap(page, 4096);
    return counts_scaled(&counts, VOLUNTARY) >= 1 && counts_scaled(&counts, FAULTS) >= 1;
}

static void open_steady(struct steady *s)
{
    ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { COUNT } };
    ditto_variable *variable;
    s->strategy = make_strategy(REPLICAS, NULL);
    assert_ok(ditto_variable_create(s->strategy, &zeros,
                                    &OPTIONS(variable, .aggregation = DITTO_AGGREGATE_SUM), &variable));
    assert_ok(ditto_optimizer_create(
        &variable, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_SGD, .momentum = 0.9, .learning_rate = 0.01),
        &s->optimizer));
    assert_ok(ditto_queue_create(&OPTIONS(queue, .num_slots = 1, .num_producers = 1), &s->queue));
    for (int r = 0; r < REPLICAS; r++)
        for (int i = 0; i < ROWS; i++)
            s->buffers[r].index[i] = i;
}

static void no_replica_sleeps_or_touches_new_memory(void **state)
{
    static struct steady s;
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    if (CPU_COUNT(&allowed) < REPLICAS) {
        printf("skipped: two replicas need two PUs\n");
        skip();
    }
    if (!can_count()) {
        printf("skipped: a switch and a fault were not counted here\n");
        skip();
    }
    open_steady(&s);
    assert_ok(ditto_strategy_scope_enter(s.strategy));
    counters_find_threads();
    int unsteady = 0;
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        s.operation = &operations[i];
        bool steady = false;
        for (int tries = 0; !steady && tries < TRIES; tries++)
            steady = count(&s);
        unsteady += !steady;
    }
    assert_ok(ditto_strategy_scope_leave(s.strategy));
    assert_int_equal(unsteady, 0);
    assert_ok(ditto_queue_destroy(s.queue));
    assert_ok(ditto_strategy_destroy(s.strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_replica_sleeps_or_touches_new_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
