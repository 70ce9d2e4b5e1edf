/* tests/strategy/test_trace.c - traces, statistics and counts of calls. */
#include "support/support.h"

#include "replicas/team/recorder.h"
#include "replicas/team/team.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How long the last replica computes after all others have begun to wait for it. */
enum { DELAY_MS = 100, DELAY_NS = DELAY_MS * 1000000 };

struct traced {
    struct report report;
    int rounds;

    /* The thread of each replica that has passed the barrier before the delay, and otherwise 0. */
    _Atomic int thread_id[DITTO_MAX_REPLICAS];
};

static ditto_status merge_nothing(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                  void *user, ditto_value **result)
{
    return DITTO_OK;
}

/* Makes the last replica compute for DELAY_MS after all others have begun to wait for it. */
static ditto_status delay_last(ditto_replica *self, struct traced *t)
{
    uint32_t last = ditto_num_replicas(self) - 1, id = ditto_replica_id(self);
    t->thread_id[id] = 0;
    EXPECT(&t->report, ditto_barrier(self, NULL) == DITTO_OK);
    t->thread_id[id] = (int)syscall(SYS_gettid);
    for (uint32_t i = 0; id == last && i < last; i++)
        EXPECT(&t->report, await_sleep(&t->thread_id[i]));
    if (id == last)
        sleep_ms(DELAY_MS);
    return DITTO_OK;
}

/* The function of the runs. Each replica calls ditto_barrier once more than ditto_all_reduce. */
static ditto_status work(ditto_replica *self, void *argument)
{
    struct traced *t = argument;
    float x[1000] = { 0 };
    ditto_pending pending;
    DITTO_TRY(delay_last(self, t));
    for (int i = 0; i < t->rounds; i++) {
        EXPECT(&t->report, ditto_all_reduce(self, x, x, 1000, DITTO_F32, DITTO_SUM, NULL) == DITTO_OK);
        EXPECT(&t->report, ditto_barrier(self, NULL) == DITTO_OK);
    }
    EXPECT(&t->report,
           ditto_all_reduce_start(self, x, x, 10, DITTO_F32, DITTO_SUM, NULL, &pending) == DITTO_OK);
    EXPECT(&t->report, ditto_wait(self, &pending, NULL) == DITTO_OK);
    EXPECT(&t->report, ditto_merge_call(self, merge_nothing, NULL, NULL, 0, NULL) == DITTO_OK);
    return DITTO_OK;
}

static ditto_operation_counters times_of(ditto_strategy *strategy, const char *name)
{
    ditto_operation_counters t = DITTO_OPERATION_COUNTERS_INIT;
    for (uint32_t i = 0;; i++) {
        assert_ok(ditto_strategy_operation_stats(strategy, i, &t));
        if (strcmp(t.name, name) == 0)
            return t;
    }
}

/* Returns what one replica has recorded about an operation. */
static const struct dti_total *total_of(ditto_strategy *strategy, uint32_t replica, const char *name)
{
    const struct dti_tracer *t = dti_team_replica(dti_team_of(strategy), replica)->traced;
    uint32_t i = 0;
    while (i < t->totals && strcmp(t->total[i].name, name) != 0)
        i++;
    assert_true(i < t->totals);
    return &t->total[i];
}

/* Checks the times of two runs of `work`. The other replicas may be late too, so the slowest replica is not
 * always the last one. It is found in the records of all replicas. *num_last counts how often it was the
 * last one. */
static void check_times(ditto_strategy *strategy, uint32_t n, uint32_t *num_last)
{
    ditto_operation_counters reduce = times_of(strategy, "ditto_all_reduce"), run = times_of(strategy, "run");
    uint32_t least_waiting = 0, most_computing = 0;
    for (uint32_t r = 0; r < n; r++) {
        uint64_t waited_ns = total_of(strategy, r, "ditto_all_reduce")->waited_ns;
        uint64_t own_ns = total_of(strategy, r, "run")->own_ns;
        if (r == n - 1)
            assert_true(own_ns >= 2 * DELAY_NS);
        else
            assert_true(waited_ns >= 2 * DELAY_NS);
        if (waited_ns < total_of(strategy, least_waiting, "ditto_all_reduce")->waited_ns)
            least_waiting = r;
        if (own_ns > total_of(strategy, most_computing, "run")->own_ns)
            most_computing = r;
    }
    assert_int_equal(reduce.slowest, least_waiting);
    *num_last += least_waiting == n - 1 && most_computing == n - 1;
    assert_true(reduce.time_ns > 0 && reduce.wait_ns <= reduce.time_ns && reduce.own_ns <= reduce.time_ns);
    assert_true(reduce.wait_ns >= (uint64_t)2 * DELAY_NS / n * (n - 1));
    assert_int_equal(run.slowest, most_computing);
    assert_true(run.time_ns >= 2 * DELAY_NS / n && run.own_ns < run.time_ns);
}

static void operations_are_counted_and_timed(void **state)
{
    uint32_t num_last = 0;
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *strategy = make_strategy(n, NULL);
        struct traced traced = { .rounds = 5 };
        ditto_operation_counters t = DITTO_OPERATION_COUNTERS_INIT;
        char text[8192];
        size_t length;
        assert_status(ditto_strategy_operation_stats(strategy, 0, &t), DITTO_ERR_NOT_FOUND);
        assert_status(ditto_strategy_trace_describe(strategy, text, sizeof text, &length),
                      DITTO_ERR_NOT_FOUND);
        run_all(strategy, work, &traced, &traced.report); /* not recorded */
        assert_ok(ditto_strategy_trace_start(strategy, NULL));
        run_all(strategy, work, &traced, &traced.report);
        run_all(strategy, work, &traced, &traced.report);
        assert_ok(ditto_strategy_trace_stop(strategy));
        run_all(strategy, work, &traced, &traced.report); /* not recorded either */
        t = times_of(strategy, "ditto_all_reduce");
        assert_int_equal(t.calls, 10);
        assert_int_equal(t.bytes, 10 * 4000 * n);
        assert_int_equal(times_of(strategy, "run").calls, 2);
        assert_int_equal(times_of(strategy, "pause").calls, 2);
        assert_int_equal(times_of(strategy, "ditto_barrier").calls, 12);
        assert_int_equal(times_of(strategy, "ditto_all_reduce_start").calls, 2);
        assert_int_equal(times_of(strategy, "ditto_wait").calls, 2);
        assert_int_equal(times_of(strategy, "ditto_merge_call").calls, 2);
        check_times(strategy, n, n > 1 ? &num_last : &(uint32_t){ 0 });
        assert_ok(ditto_strategy_trace_describe(strategy, text, sizeof text, &length));
        assert_true(length < sizeof text && strstr(text, "ditto_all_reduce") != NULL &&
                    strstr(text, "computing") != NULL);
        assert_ok(ditto_strategy_trace_start(strategy, NULL)); /* forgets the old trace */
        assert_status(ditto_strategy_operation_stats(strategy, 0, &t), DITTO_ERR_NOT_FOUND);
        assert_ok(ditto_strategy_destroy(strategy));
    }
    /* Unless the machine delays others for as long, the delayed replica is the slowest one. */
    assert_true(num_last > 0);
}

static ditto_status do_nothing(ditto_replica *self, void *unused)
{
    return DITTO_OK;
}

/* Runs do_nothing first. When that run has ended, all replicas are in the pause, and DELAY_MS follow. */
static ditto_status merge_slowly(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                 void *user, ditto_value **result)
{
    DITTO_TRY(ditto_strategy_run(strategy, do_nothing, NULL));
    sleep_ms(DELAY_MS);
    return DITTO_OK;
}

static ditto_status call_merge_slowly(ditto_replica *self, void *unused)
{
    return ditto_merge_call(self, merge_slowly, NULL, NULL, 0, NULL);
}

static void a_pause_lasts_until_its_merge_function_returns(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        assert_ok(ditto_strategy_trace_start(strategy, NULL));
        assert_ok(ditto_strategy_run(strategy, call_merge_slowly, NULL));
        assert_ok(ditto_strategy_trace_stop(strategy));
        for (uint32_t r = 0; r < replica_counts[k]; r++)
            assert_true(total_of(strategy, r, "pause")->own_ns >= DELAY_NS);
        assert_true(times_of(strategy, "pause").own_ns >= DELAY_NS / replica_counts[k] * replica_counts[k]);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- devices -- */

struct late_device {
    struct report report;
    _Atomic int leader; /* the leader's thread, when its own part is done */
};

/* Device 1 computes for DELAY_MS after the leader has begun to wait for it. */
static ditto_status wait_for_leader(uint32_t device, void *argument)
{
    struct late_device *l = argument;
    if (device == 0)
        return DITTO_OK;
    while (atomic_load(&l->leader) == 0)
        sched_yield();
    EXPECT(&l->report, await_sleep(&l->leader));
    sleep_ms(DELAY_MS);
    return DITTO_OK;
}

static ditto_status run_part(size_t begin, size_t end, uint32_t device, void *argument)
{
    if (device == 0)
        atomic_store(&((struct late_device *)argument)->leader, (int)syscall(SYS_gettid));
    return wait_for_leader(device, argument);
}

static ditto_status wait_for_devices(ditto_replica *self, void *argument)
{
    struct late_device *l = argument;
    EXPECT(&l->report, ditto_parallel_for(self, run_part, l, 0, 2, 1, DITTO_SCHEDULE_STATIC) == DITTO_OK);
    EXPECT(&l->report, ditto_on_logical_device(self, 1, wait_for_leader, l) == DITTO_OK);
    EXPECT(&l->report, ditto_join(self) == DITTO_OK);
    EXPECT(&l->report, ditto_join(self) == DITTO_OK); /* there is nothing to wait for */
    return DITTO_OK;
}

static void waiting_for_devices_is_not_computing(void **state)
{
    static struct late_device late;
    char text[4000];
    ditto_strategy *s = make_wide_strategy(1, 2, NULL);
    assert_ok(ditto_strategy_trace_start(s, NULL));
    run_all(s, wait_for_devices, &late, &late.report);
    assert_ok(ditto_strategy_trace_stop(s));
    ditto_operation_counters loop = times_of(s, "ditto_parallel_for"), join = times_of(s, "join"),
                             run = times_of(s, "run");
    assert_int_equal(loop.calls, 1);
    assert_int_equal(join.calls, 1);
    assert_true(loop.wait_ns >= DELAY_NS && loop.wait_ns <= loop.time_ns);
    assert_true(join.wait_ns >= DELAY_NS && join.wait_ns <= join.time_ns);
    assert_true(run.own_ns + loop.time_ns + join.time_ns <= run.time_ns);
    assert_ok(ditto_strategy_trace_describe(s, text, sizeof text, NULL));
    assert_non_null(strstr(text, "waiting for devices"));
    assert_ok(ditto_strategy_destroy(s));
}

/* Returns the whole trace as it is written to a file. */
static void read_trace(ditto_strategy *strategy, char *text, size_t size)
{
    char path[SCRATCH_NAME];
    scratch_name(path, "trace");
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_ok(ditto_strategy_trace_write(strategy, path));
    FILE *written = fopen(path, "r");
    assert_non_null(written);
    text[fread(text, 1, size - 1, written)] = '\0';
    fclose(written);
    unlink(path);
}

/* The text of each label is overwritten as soon as its call has returned. */
static ditto_status use_labels(ditto_replica *self, void *argument)
{
    float x = 1, y;
    char label[16];
    ditto_pending pending;
    ditto_reduce_options options = OPTIONS(reduce, .label = label);
    for (int i = 0; i < 80; i++) {
        snprintf(label, sizeof label, i < 40 ? "loss" : "\"%d\\\n", i);
        EXPECT(argument, ditto_all_reduce(self, &x, &y, 1, DITTO_F32, DITTO_SUM, &options) == DITTO_OK);
        memset(label, '?', sizeof label - 1);
    }
    snprintf(label, sizeof label, "later");
    DITTO_TRY(ditto_all_reduce_start(self, &x, &y, 1, DITTO_F32, DITTO_SUM, &options, &pending));
    memset(label, '?', sizeof label - 1);
    DITTO_TRY(ditto_wait(self, &pending, NULL));
    for (int i = 0; i < 30; i++) { /* more labels than are told apart */
        snprintf(label, sizeof label, "many %d", i);
        EXPECT(argument, ditto_barrier(self, &options) == DITTO_OK);
    }
    return DITTO_OK;
}

static void calls_with_labels_are_counted_apart(void **state)
{
    static char text[1 << 17];
    struct report report = { 0 };
    uint64_t calls[3] = { 0 }; /* of the barriers with a label, of those without, and of the rest */
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_operation_counters t = DITTO_OPERATION_COUNTERS_INIT;
    assert_ok(ditto_strategy_trace_start(strategy, NULL));
    run_all(strategy, use_labels, &report, &report);
    assert_ok(ditto_strategy_trace_stop(strategy));
    for (uint32_t i = 0; ditto_strategy_operation_stats(strategy, i, &t) == DITTO_OK; i++)
        if (strcmp(t.name, "ditto_barrier") == 0)
            calls[t.label == NULL] += t.calls;
        else if (strcmp(t.name, "ditto_all_reduce") == 0)
            calls[2] += t.label != NULL && strcmp(t.label, "loss") == 0 && t.calls == 40;
        else if (strcmp(t.name, "run") != 0)
            calls[2] += t.label != NULL && strcmp(t.label, "later") == 0;
    /* There is room for 64 labels: 41 of the all-reduces, one of the start, one of the wait, and 21 more. */
    assert_true(calls[0] == 21 && calls[1] == 9 && calls[2] == 3);
    assert_ok(ditto_strategy_trace_describe(strategy, text, sizeof text, NULL));
    assert_non_null(strstr(text, "\nditto_all_reduce \"loss\" "));
    read_trace(strategy, text, sizeof text);
    assert_non_null(strstr(text, "\"name\":\"ditto_all_reduce \\\"loss\\\"\",\"cat\":\"collective\""));
    assert_non_null(strstr(text, "\"name\":\"ditto_all_reduce \\\"\\\"41\\\\\\u000a\\\"\","));
    assert_non_null(strstr(text, "\"name\":\"ditto_wait \\\"later\\\"\""));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void events_are_kept_up_to_the_capacity(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    struct traced traced = { .rounds = 10 };
    char text[65536];
    assert_status(ditto_strategy_trace_write(strategy, "/nowhere/trace.json"), DITTO_ERR_NOT_FOUND);
    ditto_trace_options options = OPTIONS(trace, .num_events = 7);
    assert_ok(ditto_strategy_trace_start(strategy, &options));
    run_all(strategy, work, &traced, &traced.report);
    assert_ok(ditto_strategy_trace_stop(strategy));
    read_trace(strategy, text, sizeof text);
    int events = 0;
    for (char *at = text; (at = strstr(at, "\"ph\":\"X\"")) != NULL; at++)
        events++;
    assert_int_equal(events, 3 * 7);
    /* Each replica has 26 events: a barrier, two in each of 10 rounds, start, wait, merge_call, pause and
     * run. */
    assert_non_null(strstr(text, "\"events not kept\":\"57\""));
    assert_int_equal(times_of(strategy, "ditto_all_reduce").calls, 10); /* all calls are counted */
    assert_status(ditto_strategy_trace_write(strategy, "/nowhere/trace.json"), DITTO_ERR_IO);
    assert_message("No such file");
    options.num_events = SIZE_MAX / 2;
    assert_status(ditto_strategy_trace_start(strategy, &options), DITTO_ERR_RANGE);
    assert_int_equal(times_of(strategy, "ditto_all_reduce").calls, 10); /* nothing has changed */
    assert_ok(ditto_strategy_destroy(strategy));
}

static void a_trace_that_does_not_fit_leaves_an_empty_file(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    struct traced traced = { .rounds = 10 };
    char path[SCRATCH_NAME];
    struct rlimit before;
    struct stat written;
    int file = mkstemp(scratch_name(path, "trace"));
    assert_true(file >= 0);
    close(file);
    assert_ok(ditto_strategy_trace_start(strategy, NULL));
    run_all(strategy, work, &traced, &traced.report);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 4096, before.rlim_max }), 0);
    ditto_status status = ditto_strategy_trace_write(strategy, path);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_status(status, DITTO_ERR_IO);
    assert_message("could not be written completely, so it is left empty: File too large");
    assert_int_equal(stat(path, &written), 0);
    assert_int_equal(written.st_size, 0);
    assert_status(ditto_strategy_trace_write(strategy, "/dev/full"), DITTO_ERR_IO);
    assert_message("could not be written completely: No space left");
    unlink(path);
    assert_ok(ditto_strategy_destroy(strategy));
}

struct taking {
    struct report report;
    ditto_iterator *iterator;
    int steps;
};
static ditto_status take_steps(ditto_replica *self, void *argument)
{
    struct taking *t = argument;
    ditto_batch batch;
    for (int step = 0; step < t->steps; step++)
        EXPECT(&t->report, ditto_next(self, t->iterator, &batch) == DITTO_OK && batch.rows == 2);
    return DITTO_OK;
}

static ditto_iterator *iterate(ditto_strategy *strategy, ditto_dataset *d, uint32_t producers)
{
    ditto_iterator *iterator;
    assert_ok(ditto_strategy_iterate(
        strategy, d, &OPTIONS(input, .global_batch = 4, .num_producers = producers), &iterator));
    return iterator;
}

/* Returns the number of filled batches in a trace, and the set of their producers. Checks that each track of
 * such batches has exactly one name, which contains the number of its producer. */
static int count_fillings(const char *text, uint64_t *producers)
{
    int fillings = 0;
    uint64_t tracks = 0;
    *producers = 0;
    for (const char *at = text; (at = strstr(at, ",\"name\":\"fill\"")) != NULL; at++, fillings++) {
        const char *tid = at;
        while (strncmp(tid, "\"tid\":", 6) != 0)
            tid--;
        int track = atoi(tid + 6);
        assert_in_range(track, 2, 63); /* tracks 0 and 1 belong to the replicas */
        tracks |= (uint64_t)1 << track;
        assert_true(atof(strstr(at, "\"ts\":") + 5) < 1e9); /* microseconds since the first event */
    }
    for (int track = 2; track < 64; track++) {
        char name[80];
        int names = 0;
        snprintf(name, sizeof name, "\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"producer ",
                 track);
        for (const char *at = text; (at = strstr(at, name)) != NULL; at++, names++)
            *producers |= (uint64_t)1 << (unsigned)atoi(at + strlen(name));
        assert_int_equal(names, (tracks >> track & 1) != 0);
    }
    return fillings;
}

/* A batch is recorded when a replica takes it, unless a producer began to fill it before the trace began.
 * Iterators from which no replica takes a batch during the trace have no tracks. */
static void batches_are_shown_on_their_producers_tracks(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    static char text[65536];
    ditto_dataset *d;
    uint64_t producers;
    assert_ok(ditto_dataset_from_range(0, 1000, 1, &d));
    struct taking first = { .iterator = iterate(strategy, d, 2), .steps = 10 };
    run_all(strategy, take_steps, &first, &first.report);
    ditto_iterator_counters stats = DITTO_ITERATOR_COUNTERS_INIT;
    /* Waits until both queues are full, with two batches each. Then the producers fill no batch until a
     * replica takes one. */
    for (int ms = 0; stats.depth < 4 && ms < 60000; ms++, sleep_ms(1))
        assert_ok(ditto_iterator_stats(first.iterator, DITTO_ALL_REPLICAS, &stats));
    assert_int_equal(stats.depth, 4);
    assert_ok(ditto_strategy_trace_start(strategy, NULL));
    run_all(strategy, take_steps, &first, &first.report);
    for (int i = 0; i < 20; i++)
        assert_ok(ditto_iterator_destroy(iterate(strategy, d, 2)));
    struct taking second = { .iterator = iterate(strategy, d, 1), .steps = 10 };
    run_all(strategy, take_steps, &second, &second.report);
    assert_ok(ditto_iterator_destroy(first.iterator));
    read_trace(strategy, text, sizeof text);
    assert_int_equal(count_fillings(text, &producers), 2 * 8 + 2 * 10);
    /* One producer of the first iterator may have filled all its batches. The 20 iterators in between used 40
     * numbers of producers. */
    const uint64_t of_first = 3, of_second = UINT64_C(1) << 42;
    assert_int_equal(producers & of_second, of_second);
    assert_int_not_equal(producers & of_first, 0);
    assert_int_equal(producers & ~(of_first | of_second), 0);
    assert_ok(ditto_iterator_destroy(second.iterator));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status start_inside(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                 void *user, ditto_value **result)
{
    *(ditto_status *)user = ditto_strategy_trace_start(strategy, NULL);
    return DITTO_OK;
}
static ditto_status merge_start(ditto_replica *self, void *status)
{
    return ditto_merge_call(self, start_inside, status, NULL, 0, NULL);
}

static void tracing_does_not_begin_inside_a_run(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_status status = DITTO_OK;
    assert_ok(ditto_strategy_run(strategy, merge_start, &status));
    assert_int_equal(status, DITTO_ERR_CONTEXT);
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_counted_and_timed),
        cmocka_unit_test(a_pause_lasts_until_its_merge_function_returns),
        cmocka_unit_test(waiting_for_devices_is_not_computing),
        cmocka_unit_test(calls_with_labels_are_counted_apart),
        cmocka_unit_test(events_are_kept_up_to_the_capacity),
        cmocka_unit_test(a_trace_that_does_not_fit_leaves_an_empty_file),
        cmocka_unit_test(batches_are_shown_on_their_producers_tracks),
        cmocka_unit_test(tracing_does_not_begin_inside_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
