/* tests/sync/pending/test_pending.c - what include/ditto/pending.h promises. Pending operations have the
 * values of the blocking calls, in whatever order they are waited for, and a replica that computes does not
 * delay the others. Misused handles and replicas that leave give errors. */
#include "support/support.h"

#include <sched.h>
#include <stdatomic.h>

/* -- Values -- */

struct mix {
    struct report report;
    uint64_t seed; /* equal on all replicas, so that they start the same operations */
    int steps;
};

enum { SLOTS = 20, MOST = 20000 };

/* One pending operation. Its values are small integers, whose sums are exact in f32 in any order. */
struct open_one {
    ditto_pending handle;
    float *src, *dst;
    size_t count;

    /* The number of operations that were started before it. */
    int started;

    /* 0 is all-reduce, 1 is reduce-scatter, 2 is all-gather. */
    int kind;

    float base;
};

static ditto_status start_one(ditto_replica *self, struct open_one *o, uint64_t *seed)
{
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    static const size_t counts[] = { 0, 1, 3, 14, 200, 1000, MOST };
    o->count = counts[test_random(seed) % 7] / (n > 8 ? 8 : 1);
    o->kind = (int)(test_random(seed) % 3);
    o->base = (float)(test_random(seed) % 1000);
    size_t in = o->kind == 1 ? o->count * n : o->count, out = o->kind == 2 ? o->count * n : o->count;
    o->src = malloc(in * sizeof(float) + 1);
    o->dst = malloc(out * sizeof(float) + 1);
    for (size_t i = 0; i < in; i++)
        o->src[i] = o->base + (float)id + (float)(i % 100);
    if (o->kind == 0)
        return ditto_all_reduce_start(self, o->src, o->dst, o->count, DITTO_F32, DITTO_SUM, NULL, &o->handle);
    if (o->kind == 1)
        return ditto_reduce_scatter_start(self, o->src, o->dst, o->count, DITTO_F32, DITTO_SUM, NULL,
                                          &o->handle);
    return ditto_all_gather_start(self, o->src, o->dst, o->count, DITTO_F32, NULL, &o->handle);
}

static bool is_right(ditto_replica *self, const struct open_one *o)
{
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    float sum = (float)n * o->base + (float)(n * (n - 1) / 2);
    for (size_t i = 0; i < (o->kind == 2 ? o->count * n : o->count); i++) {
        size_t at = o->kind == 1 ? id * o->count + i : i;
        float expected = o->kind == 2 ? o->base + (float)(i / o->count) + (float)(i % o->count % 100)
                                      : sum + (float)n * (float)(at % 100);
        if (o->dst[i] != expected)
            return false;
    }
    return true;
}

static ditto_status finish_one(ditto_replica *self, struct mix *m, struct open_one *o, uint64_t *own)
{
    ditto_status status = DITTO_PENDING;
    /* Each replica decides by itself whether it polls or waits. */
    if (test_random(own) % 2 == 0)
        while ((status = ditto_test(self, &o->handle)) == DITTO_PENDING)
            ;
    else
        status = ditto_wait(self, &o->handle, NULL);
    DITTO_TRY(status);
    EXPECT(&m->report, o->handle.number == 0);
    EXPECT(&m->report, is_right(self, o));
    free(o->src);
    free(o->dst);
    o->src = NULL;
    return DITTO_OK;
}

static ditto_status start_and_wait_in_any_order(ditto_replica *self, void *argument)
{
    struct mix *m = argument;
    struct open_one open[SLOTS] = { 0 };
    uint64_t shared = m->seed, own = m->seed + 77 * ditto_replica_id(self);
    int started = 0;
    for (int step = 0; step < m->steps; step++) {
        struct open_one *o = &open[test_random(&shared) % SLOTS];
        /* From the oldest open operation on, a replica may start at most DITTO_MAX_PENDING operations. */
        for (int i = 0; i < SLOTS; i++)
            if (open[i].src != NULL && started - open[i].started >= DITTO_MAX_PENDING - 1)
                DITTO_TRY(finish_one(self, m, &open[i], &own));
        if (o->src != NULL) {
            DITTO_TRY(finish_one(self, m, o, &own));
        } else {
            DITTO_TRY(start_one(self, o, &shared));
            o->started = started++;
        }
        /* Blocking calls come in between. */
        if (test_random(&shared) % 7 == 0) {
            float x = 1;
            DITTO_TRY(ditto_all_reduce(self, &x, &x, 1, DITTO_F32, DITTO_SUM, NULL));
            EXPECT(&m->report, x == (float)ditto_num_replicas(self));
        }
    }
    for (int i = 0; i < SLOTS; i++)
        if (open[i].src != NULL)
            DITTO_TRY(finish_one(self, m, &open[i], &own));
    return DITTO_OK;
}

static void operations_may_be_waited_for_in_any_order(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct mix m = { .seed = test_seed(99), .steps = test_trials(replica_counts[k] > 8 ? 200 : 1500) };
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        for (int run = 0; run < 2; run++) {
            run_all(strategy, start_and_wait_in_any_order, &m, &m.report);
            m.seed++;
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- A replica that computes does not delay the others -- */

struct busy {
    struct report report;
    _Atomic int finished; /* replicas whose operation is done */
};

/* Replica 0 starts the operation, and makes no further call until all others have their results. The others
 * therefore do its part. */
static ditto_status one_computes_meanwhile(ditto_replica *self, void *argument)
{
    struct busy *b = argument;
    size_t count = 300000;
    int n = (int)ditto_num_replicas(self);
    ditto_pending handle;
    float *data = malloc(count * sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = 2;
    DITTO_TRY(ditto_all_reduce_start(self, data, data, count, DITTO_F32, DITTO_SUM, NULL, &handle));
    if (ditto_replica_id(self) == 0)
        for (int waited = 0; atomic_load(&b->finished) < n - 1; waited++) {
            EXPECT(&b->report, waited < 60000);
            sleep_ms(1);
        }
    DITTO_TRY(ditto_wait(self, &handle, NULL));
    atomic_fetch_add(&b->finished, 1);
    for (size_t i = 0; i < count; i++)
        EXPECT(&b->report, data[i] == 2.0f * (float)n);
    free(data);
    return DITTO_OK;
}

static void replicas_that_wait_do_the_parts_of_replicas_that_compute(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct busy b = { 0 };
        run_once(replica_counts[k], NULL, one_computes_meanwhile, &b, &b.report);
    }
}

/* -- Misuse -- */

static ditto_pending left_over;

static ditto_status misuse(ditto_replica *self, void *argument)
{
    struct report *r = argument;
    uint32_t id = ditto_replica_id(self);
    float x = 1, y;
    ditto_pending handle, copy, empty = { 0 }, many[DITTO_MAX_PENDING];
    EXPECT(r, ditto_wait(self, &empty, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_wait(self, NULL, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce_start(self, &x, &y, 1, DITTO_F32, DITTO_SUM, NULL, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce_start(self, &x, &y, 1, DITTO_F32, DITTO_XOR, NULL, &handle) ==
                  DITTO_ERR_UNSUPPORTED);
    DITTO_TRY(ditto_all_reduce_start(self, &x, &y, 1, DITTO_F32, DITTO_SUM, NULL, &handle));
    copy = handle;
    copy.replica = (const char *)copy.replica + 1;
    EXPECT(r, ditto_wait(self, &copy, NULL) == DITTO_ERR_CONTEXT);
    EXPECT(r, strstr(ditto_last_error()->message, "another replica's") != NULL);
    copy = handle;
    copy.run--;
    EXPECT(r, ditto_wait(self, &copy, NULL) == DITTO_ERR_CONTEXT);
    copy = handle;
    DITTO_TRY(ditto_wait(self, &handle, NULL));
    EXPECT(r, ditto_wait(self, &handle, NULL) == DITTO_ERR_INVALID);
    /* This is a copy of a handle that has been waited for. */
    EXPECT(r, ditto_test(self, &copy) == DITTO_ERR_INVALID);
    for (int i = 0; i < DITTO_MAX_PENDING; i++)
        DITTO_TRY(ditto_all_reduce_start(self, &x, &y, 0, DITTO_F32, DITTO_SUM, NULL, &many[i]));
    EXPECT(r,
           ditto_all_reduce_start(self, &x, &y, 1, DITTO_F32, DITTO_SUM, NULL, &handle) == DITTO_ERR_RANGE);
    for (int i = DITTO_MAX_PENDING - 1; i >= 0; i--)
        DITTO_TRY(ditto_wait(self, &many[i], NULL));
    /* In the second run, left_over is a handle of the first one. */
    if (id == 0) {
        if (left_over.number != 0)
            EXPECT(r, ditto_wait(self, &left_over, NULL) == DITTO_ERR_CONTEXT);
        left_over = copy;
    }
    return ditto_barrier(self, NULL);
}

static void misused_handles_are_refused(void **state)
{
    struct report report = { 0 };
    ditto_strategy *strategy = make_strategy(3, NULL);
    left_over.number = 0;
    run_all(strategy, misuse, &report, &report);
    run_all(strategy, misuse, &report, &report);
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- Replicas that leave -- */

enum fault { LEAVES_OPEN, RETURNS_EARLY, FAILS, STARTS_OTHER, MEETS_INSTEAD, STARTS_LESS, NEVER_STARTS };
struct going {
    struct report report;
    enum fault fault;
    size_t count;

    /* The number of replicas other than the last one that have started the operation. */
    _Atomic int started;

    /* The number of replicas that got DITTO_ERR_TIMED_OUT or DITTO_ERR_PEER_STOPPED. */
    _Atomic int given_up;

    /* Buffers of operations that a function has left open. The test frees them after the run. */
    void *left[64];
};

/* The last replica behaves differently. Each replica frees its buffer as soon as it has waited, unless it
 * leaves the operation open. */
static ditto_status go_away(ditto_replica *self, void *argument)
{
    struct going *g = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    bool culprit = id == n - 1;
    ditto_pending handle;
    float *data = calloc(g->count + 1, sizeof *data);
    ditto_status status = DITTO_OK;
    bool starts = !culprit || g->fault == LEAVES_OPEN || g->fault == STARTS_OTHER || g->fault == FAILS;
    ditto_reduce_options options = OPTIONS(reduce, .timeout_ms = g->fault == NEVER_STARTS ? 100 : 60000);
    if (starts)
        status = ditto_all_reduce_start(self, data, data, g->count, DITTO_F32,
                                        culprit && g->fault == STARTS_OTHER ? DITTO_MAX : DITTO_SUM, NULL,
                                        &handle);
    /* With the short time limit, only the last replica may be missing. */
    atomic_fetch_add(&g->started, !culprit);
    for (int ms = 0; g->fault == NEVER_STARTS && atomic_load(&g->started) < (int)n - 1 && ms < 60000; ms++)
        sleep_ms(1);
    if (status == DITTO_OK && culprit && g->fault == FAILS)
        status = ditto_fail(self, 7, "the disk is full");
    if (status == DITTO_OK && culprit && g->fault == MEETS_INSTEAD)
        status = ditto_barrier(self, NULL);
    if (status == DITTO_OK && g->fault == STARTS_LESS)
        status = ditto_barrier(self, NULL);
    if (status == DITTO_OK && culprit && g->fault == NEVER_STARTS)
        for (int ms = 0; atomic_load(&g->given_up) < (int)n - 1 && ms < 60000; ms++)
            sleep_ms(1);
    if (status == DITTO_OK && starts && !(culprit && g->fault == LEAVES_OPEN))
        status = ditto_wait(self, &handle, &options);
    atomic_fetch_add(&g->given_up, status == DITTO_ERR_TIMED_OUT || status == DITTO_ERR_PEER_STOPPED);
    if (culprit && (g->fault == LEAVES_OPEN || g->fault == FAILS)) {
        g->left[id] = data;
        return status;
    }
    /* After ditto_wait no replica uses the buffer, whatever the status is. */
    memset(data, 0xff, g->count * sizeof *data);
    free(data);
    return status;
}

/* `words` follow the number of the last replica in the message. If they are NULL, the error is the one that
 * this replica returns. */
static void expect_fault(uint32_t n, enum fault fault, size_t count, ditto_status expected, const char *words)
{
    struct going g = { .fault = fault, .count = count };
    struct mix m = { .seed = 5, .steps = 50 };
    char named[200];
    ditto_strategy *strategy = make_strategy(n, NULL);
    assert_status(ditto_strategy_run(strategy, go_away, &g), expected);
    snprintf(named, sizeof named, "replica %u%s", n - 1, words != NULL ? words : "");
    assert_message(words != NULL ? named : "the disk is full");
    if (words == NULL)
        assert_int_equal(ditto_last_error()->replica, n - 1);
    for (uint32_t r = 0; r < n; r++)
        free(g.left[r]);
    if (n == 3 && count > 100)
        print_message("  %s\n", ditto_last_error()->message);
    run_all(strategy, start_and_wait_in_any_order, &m, &m.report); /* the next run works */
    assert_ok(ditto_strategy_destroy(strategy));
}

static void replicas_that_leave_give_errors_that_name_them(void **state)
{
    static const uint32_t replicas[] = { 2, 3, 8 };
    static const size_t counts[] = { 1, 100000 };
    for (int k = 0; k < 3; k++)
        for (int c = 0; c < 2; c++) {
            char maximum[60];
            snprintf(maximum, sizeof maximum, " started ditto_all_reduce_start #1 (%zu x f32, MAX)",
                     counts[c]);
            expect_fault(replicas[k], RETURNS_EARLY, counts[c], DITTO_ERR_DIVERGED,
                         " (returned from its function");
            expect_fault(replicas[k], STARTS_OTHER, counts[c], DITTO_ERR_DIVERGED, maximum);
            expect_fault(replicas[k], MEETS_INSTEAD, counts[c], DITTO_ERR_DIVERGED,
                         " (in ditto_barrier #1), which has not started it");
            expect_fault(replicas[k], STARTS_LESS, counts[c], DITTO_ERR_DIVERGED,
                         " calls ditto_barrier #1 (after a different number of started operations)");
            expect_fault(replicas[k], NEVER_STARTS, counts[c], DITTO_ERR_TIMED_OUT,
                         " (in no collective yet)");
            expect_fault(replicas[k], FAILS, counts[c], DITTO_ERR_USER, NULL);
            expect_fault(replicas[k], LEAVES_OPEN, counts[c], DITTO_ERR_INVALID,
                         "'s function returned with 1 pending operation,");
        }
}

/* -- Abandoned operations -- */

/* The buffer is a local array. ditto_abandon returns only when no replica uses it any more. */
static ditto_status fail_with_local_buffers(ditto_replica *self, void *argument)
{
    enum { COUNT = 60000 };
    struct report *r = argument;
    float data[COUNT];
    ditto_pending handle, small;
    uint32_t last = ditto_num_replicas(self) - 1;
    for (int i = 0; i < COUNT; i++)
        data[i] = 1;
    DITTO_TRY(ditto_all_reduce_start(self, data, data, COUNT, DITTO_F32, DITTO_SUM, NULL, &handle));
    ditto_status status = ditto_all_reduce_start(self, data, NULL, 1, DITTO_F32, DITTO_SUM, NULL, &small);
    EXPECT(r, status == DITTO_ERR_INVALID);
    if (ditto_replica_id(self) == last) {
        status = ditto_abandon(self, ditto_fail(self, 3, "enough"));
        memset(data, 0xff, sizeof data);
        EXPECT(r, status == DITTO_ERR_USER && ditto_abandon(self, DITTO_OK) == DITTO_OK); /* none is open */
        EXPECT(r, ditto_wait(self, &handle, NULL) < 0);
        return status;
    }
    return ditto_abandon(self, ditto_wait(self, &handle, NULL));
}

static ditto_status abandon_for_no_reason(ditto_replica *self, void *argument)
{
    float x = 1;
    ditto_pending handle;
    DITTO_TRY(ditto_all_reduce_start(self, &x, &x, 1, DITTO_F32, DITTO_SUM, NULL, &handle));
    return ditto_abandon(self, DITTO_OK);
}

static void operations_can_be_abandoned(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct report report = { 0 };
        struct mix m = { .seed = 5, .steps = 50 };
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        for (int i = 0; i < test_trials(10); i++) {
            assert_status(ditto_strategy_run(strategy, fail_with_local_buffers, &report), DITTO_ERR_USER);
            assert_string_equal(report.first_failure, "");
            assert_message("enough");
        }
        assert_status(ditto_strategy_run(strategy, abandon_for_no_reason, NULL), DITTO_ERR_INVALID);
        assert_message("status is not an error, but this replica has 1 pending operation,");
        run_all(strategy, start_and_wait_in_any_order, &m, &m.report);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- A start that waits for replicas that are behind -- */

struct ring_test {
    /* True if replica 2 is late. False if it returns. */
    bool late;

    /* Replica 1 (or, if not `late`, replica 2) has waited for its two operations. */
    _Atomic bool waited;

    /* Replica 0 has made its last start. */
    _Atomic bool over;
};

static void await_flag(_Atomic bool *flag)
{
    for (int i = 0; i < 60000 && !atomic_load(flag); i++)
        sleep_ms(1);
}

/* All replicas start two operations. Replica 0 then starts so many more that they need the ring entries of
 * these two. If `late`, replica 2 has not waited for them. Otherwise replica 1 has not waited for them, and
 * replica 2 has returned. */
static ditto_status start_many(ditto_replica *self, void *argument)
{
    struct ring_test *t = argument;
    ditto_pending pending[DITTO_MAX_PENDING + 2];
    float x[DITTO_MAX_PENDING + 2] = { 0 };
    uint32_t id = ditto_replica_id(self);
    ditto_status status = DITTO_OK;
    ditto_reduce_options o = OPTIONS(reduce, .timeout_ms = t->late ? 200 : 60000);
    for (int i = 0; i < 2; i++)
        DITTO_TRY(ditto_all_reduce_start(self, &x[i], &x[i], 1, DITTO_F32, DITTO_SUM, NULL, &pending[i]));
    if (id == (t->late ? 2 : 1))
        await_flag(&t->over);
    for (int i = 0; i < 2; i++)
        if ((status = ditto_wait(self, &pending[i], NULL)) != DITTO_OK)
            return ditto_abandon(self, status);
    if (id == 0 && t->late)
        await_flag(&t->waited);
    for (int i = 2; i < DITTO_MAX_PENDING + 2 && id == 0 && status == DITTO_OK; i++)
        status = ditto_all_reduce_start(self, &x[i], &x[i], 1, DITTO_F32, DITTO_SUM, &o, &pending[i]);
    atomic_store(id == 0 ? &t->over : &t->waited, true);
    /* Replica 1 must not return, because a replica that has returned starts no further operation. */
    if (id == 1 && t->late)
        await_flag(&t->over);
    return ditto_abandon(self, status);
}

static void a_start_without_ring_space_names_the_replicas_that_are_behind(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    for (int late = 0; late < 2; late++) {
        struct ring_test t = { .late = late == 1 };
        assert_status(ditto_strategy_run(strategy, start_many, &t),
                      late ? DITTO_ERR_TIMED_OUT : DITTO_ERR_DIVERGED);
        assert_message("replica 2 (");
        assert_null(strstr(ditto_last_error()->message, "replica 1 ("));
        print_message("  %s\n", ditto_last_error()->message);
    }
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- A barrier in two phases -- */

struct split {
    struct report report;
    int written[DITTO_MAX_REPLICAS]; /* plain: the barrier orders it */
    _Atomic bool others_are_through;
};

/* Replica 0 arrives, and computes until all others are through. */
static ditto_status arrive_and_work(ditto_replica *self, void *argument)
{
    struct split *s = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    ditto_pending pending;
    for (int round = 1; round <= 20; round++) {
        s->written[id] = round;
        DITTO_TRY(ditto_all_reduce_start(self, NULL, NULL, 0, DITTO_F32, DITTO_SUM, NULL, &pending));
        while (id == 0 && n > 1 && round == 20 && !atomic_load(&s->others_are_through))
            sched_yield();
        if (round % 2 == 0) {
            DITTO_TRY(ditto_wait(self, &pending, NULL));
        } else {
            ditto_status status;
            while ((status = ditto_test(self, &pending)) == DITTO_PENDING)
                sched_yield();
            DITTO_TRY(status);
        }
        for (uint32_t i = 0; i < n; i++)
            EXPECT(&s->report, s->written[i] >= round);
        if (id == n - 1 && round == 20)
            atomic_store(&s->others_are_through, true);
        DITTO_TRY(ditto_barrier(self, NULL));
    }
    return DITTO_OK;
}

static void a_barrier_in_two_phases_delays_nobody(void **state)
{
    for (size_t i = 0; i < replica_counts_length; i++) {
        static struct split s;
        memset(&s, 0, sizeof s);
        run_once(replica_counts[i], NULL, arrive_and_work, &s, &s.report);
    }
}

/* -- A source that all replicas share -- */

struct shared_source {
    struct report report;
    struct open_one operation;
    _Atomic bool written;
};

/* Replica 0 waits for the operation and then writes the source, which a replica may do when its own wait has
 * returned. The others wait afterwards. */
static ditto_status write_shared_source(ditto_replica *self, void *argument)
{
    struct shared_source *s = argument;
    struct open_one *o = &s->operation;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    size_t in = o->kind == 1 ? o->count * n : o->count, out = o->kind == 2 ? o->count * n : o->count;
    float *dst = malloc(out * sizeof(float));
    ditto_pending pending;
    if (o->kind == 0)
        DITTO_TRY(ditto_all_reduce_start(self, o->src, dst, o->count, DITTO_F32, DITTO_SUM, NULL, &pending));
    else if (o->kind == 1)
        DITTO_TRY(
            ditto_reduce_scatter_start(self, o->src, dst, o->count, DITTO_F32, DITTO_SUM, NULL, &pending));
    else
        DITTO_TRY(ditto_all_gather_start(self, o->src, dst, o->count, DITTO_F32, NULL, &pending));
    if (id != 0)
        await_flag(&s->written);
    DITTO_TRY(ditto_wait(self, &pending, NULL));
    for (size_t i = 0; i < in && id == 0; i++)
        o->src[i] = 100;
    if (id == 0)
        atomic_store(&s->written, true);
    for (size_t i = 0; i < out; i++)
        EXPECT(&s->report, dst[i] == (o->kind == 2 ? 1.0f : (float)n));
    free(dst);
    return DITTO_OK;
}

static void a_replica_that_has_waited_may_write_a_shared_source(void **state)
{
    static const size_t counts[] = { 1, 14, 200, 1024 };
    for (uint32_t n = 2; n <= 8; n *= 4)
        for (size_t i = 0; i < 3 * sizeof counts / sizeof counts[0]; i++) {
            struct shared_source s = { .operation = { .kind = (int)(i % 3), .count = counts[i / 3] } };
            size_t in = s.operation.count * n;
            s.operation.src = malloc(in * sizeof(float));
            for (size_t k = 0; k < in; k++)
                s.operation.src[k] = 1;
            run_once(n, NULL, write_shared_source, &s, &s.report);
            free(s.operation.src);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_may_be_waited_for_in_any_order),
        cmocka_unit_test(replicas_that_wait_do_the_parts_of_replicas_that_compute),
        cmocka_unit_test(misused_handles_are_refused),
        cmocka_unit_test(replicas_that_leave_give_errors_that_name_them),
        cmocka_unit_test(operations_can_be_abandoned),
        cmocka_unit_test(a_barrier_in_two_phases_delays_nobody),
        cmocka_unit_test(a_start_without_ring_space_names_the_replicas_that_are_behind),
        cmocka_unit_test(a_replica_that_has_waited_may_write_a_shared_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
