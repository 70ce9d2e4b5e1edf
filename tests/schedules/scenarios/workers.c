/* tests/schedules/scenarios/workers.c - parameters, and coordinators with their workers. */
#include "scenarios.h"

#include <ditto/coordinator.h>
#include <ditto/optimizer.h>
#include <ditto/parameter.h>
#include <ditto/rows.h>
#include <ditto/source.h>
#include <ditto/transform.h>

#include <sched.h>
#include <stdatomic.h>

static ditto_variable *variable;
static ditto_coordinator *coordinator;

static void coordinate(const ditto_coordinator_options *options, ditto_replica_fn function)
{
    EXPECT(ditto_coordinator_create(strategy, options, &coordinator) == DITTO_OK);
    EXPECT(ditto_function_register("function", function, NULL) == DITTO_OK);
}
static void schedule(int times)
{
    for (int k = 0; k < times; k++)
        EXPECT(ditto_coordinator_schedule(coordinator, "function", NULL, NULL, NULL) == DITTO_OK);
}
static void end_workers(void)
{
    EXPECT(ditto_coordinator_destroy(coordinator) == DITTO_OK);
    EXPECT(ditto_strategy_destroy(strategy) == DITTO_OK);
}

/* -- parameters: workers add to shards, and read each shard between two updates -- */

static ditto_concurrency concurrency;
enum { ROWS = 4, COLUMNS = 40 };
static ditto_status add_and_pull(ditto_replica *self, void *unused)
{
    int32_t ones[ROWS][COLUMNS], found[ROWS][COLUMNS];
    (void)unused;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        (&ones[0][0])[i] = 1;
    EXPECT(ditto_assign(self, variable, DITTO_ASSIGN_ADD, ones) == DITTO_OK);
    EXPECT(ditto_pull(self, variable, NULL, found) == DITTO_OK);
    for (int row = 0; row < ROWS; row++) {
        EXPECT(found[row][0] >= 1);
        for (int i = 1; i < COLUMNS && concurrency != DITTO_CONCURRENCY_HOGWILD; i++)
            EXPECT(found[row][i] == found[row / 2 * 2][0]);
    }
    if (concurrency ==
        DITTO_CONCURRENCY_FREE_READS) { /* each shard has at least the updates that are counted */
        uint64_t versions[2];
        ditto_pull_options o = DITTO_PULL_OPTIONS_INIT;
        o.versions = versions;
        o.lock = DITTO_SWITCH_OFF;
        EXPECT(ditto_pull(self, variable, &o, found) == DITTO_OK);
        for (int i = 0; i < ROWS * COLUMNS; i++)
            EXPECT((&found[0][0])[i] >= (int32_t)versions[i / (ROWS * COLUMNS / 2)]);
    }
    return DITTO_OK;
}
static void two_workers(ditto_concurrency how)
{
    ditto_strategy_options o = options_of(2, FOUR_PUS);
    ditto_variable_options v = DITTO_VARIABLE_OPTIONS_INIT;
    const ditto_tensor zeros = { .dtype = DITTO_I32, .rank = 2, .shape = { ROWS, COLUMNS } };
    concurrency = how;
    v.concurrency = how;
    v.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 2 };
    EXPECT(ditto_strategy_create(DITTO_PARAMETER_SERVER, &o, &strategy) == DITTO_OK);
    EXPECT(ditto_variable_create(strategy, &zeros, &v, &variable) == DITTO_OK);
    coordinate(NULL, add_and_pull);
}
static void two_locking_workers(void)
{
    two_workers(DITTO_CONCURRENCY_LOCKED);
}
static void two_hogwild_workers(void)
{
    two_workers(DITTO_CONCURRENCY_HOGWILD);
}
static void two_workers_with_free_reads(void)
{
    two_workers(DITTO_CONCURRENCY_FREE_READS);
}
static void parameters(void)
{
    int32_t found[ROWS][COLUMNS];
    schedule(3);
    EXPECT(ditto_coordinator_join(coordinator) == DITTO_OK);
    EXPECT(ditto_variable_read(variable, found, sizeof found) == DITTO_OK);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        EXPECT((&found[0][0])[i] == 3 ||
               (concurrency == DITTO_CONCURRENCY_HOGWILD && (&found[0][0])[i] >= 1));
    for (size_t shard = 0; shard < 2; shard++) {
        ditto_shard_info info = DITTO_SHARD_INFO_INIT;
        EXPECT(ditto_variable_shard(variable, shard, &info) == DITTO_OK && info.version == 3);
    }
    end_workers();
}

/* -- rows of parameters, changed by workers and by a thread that is none -- */

static ditto_status change_rows(ditto_replica *self, void *unused)
{
    int64_t indices[] = { 3, 1, 3 };
    int32_t ones[3][COLUMNS], found[3][COLUMNS];
    const ditto_slices slices = { indices, ones, 3, COLUMNS, DITTO_I32 };
    (void)unused;
    for (int i = 0; i < 3 * COLUMNS; i++)
        (&ones[0][0])[i] = 1;
    EXPECT(ditto_scatter(self, variable, DITTO_SCATTER_ADD, &slices) == DITTO_OK);
    EXPECT(ditto_pull_rows(self, variable, indices, 3, NULL, found) == DITTO_OK);
    EXPECT(found[0][0] >= (concurrency == DITTO_CONCURRENCY_HOGWILD ? 1 : 2) && found[1][COLUMNS - 1] >= 1);
    return DITTO_OK;
}
static void two_workers_on_rows(ditto_concurrency how)
{
    two_workers(how);
    EXPECT(ditto_function_register("rows", change_rows, NULL) == DITTO_OK);
}
static void two_locking_workers_on_rows(void)
{
    two_workers_on_rows(DITTO_CONCURRENCY_LOCKED);
}
static void two_hogwild_workers_on_rows(void)
{
    two_workers_on_rows(DITTO_CONCURRENCY_HOGWILD);
}
static void rows_of_parameters(void)
{
    const int64_t indices[] = { 3 };
    int32_t ones[COLUMNS], found[ROWS][COLUMNS];
    const ditto_slices slices = { (int64_t[]){ 3 }, ones, 1, COLUMNS, DITTO_I32 };
    for (int i = 0; i < COLUMNS; i++)
        ones[i] = 1;
    for (int k = 0; k < 2; k++)
        EXPECT(ditto_coordinator_schedule(coordinator, "rows", NULL, NULL, NULL) == DITTO_OK);
    EXPECT(ditto_variable_scatter(variable, DITTO_SCATTER_ADD, &slices) == DITTO_OK);
    EXPECT(ditto_variable_lookup(variable, indices, 1, found[0], sizeof found[0]) == DITTO_OK);
    EXPECT(found[0][0] >= 1);
    EXPECT(ditto_coordinator_join(coordinator) == DITTO_OK);
    EXPECT(ditto_variable_read(variable, found, sizeof found) == DITTO_OK);
    for (int i = 0; i < COLUMNS; i++) {
        EXPECT(found[0][i] == 0 && found[2][i] == 0);
        EXPECT(concurrency == DITTO_CONCURRENCY_HOGWILD ? found[3][i] >= 1 && found[1][i] >= 1
                                                        : found[3][i] == 5 && found[1][i] == 2);
    }
    end_workers();
}

/* -- an optimizer of parameters: no step is lost -- */

static ditto_optimizer *optimizer;
static ditto_status step_once(ditto_replica *self, void *unused)
{
    float ones[ROWS * COLUMNS];
    ditto_tensor gradient = { .data = ones, .dtype = DITTO_F32, .rank = 2, .shape = { ROWS, COLUMNS } };
    (void)unused;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ones[i] = 1;
    EXPECT(ditto_apply(self, optimizer, &gradient, NULL) == DITTO_OK);
    return DITTO_OK;
}
static void two_stepping_workers(void)
{
    ditto_strategy_options o = options_of(2, FOUR_PUS);
    ditto_variable_options v = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_optimizer_options rule = DITTO_OPTIMIZER_OPTIONS_INIT;
    const ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 2, .shape = { ROWS, COLUMNS } };
    v.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 2 };
    EXPECT(ditto_strategy_create(DITTO_PARAMETER_SERVER, &o, &strategy) == DITTO_OK);
    EXPECT(ditto_variable_create(strategy, &zeros, &v, &variable) == DITTO_OK);
    rule.rule = DITTO_RULE_SUB;
    rule.op = DITTO_SUM;
    EXPECT(ditto_optimizer_create(&variable, 1, &rule, &optimizer) == DITTO_OK);
    coordinate(NULL, step_once);
}
static void parameter_steps(void)
{
    float found[ROWS * COLUMNS];
    schedule(4);
    EXPECT(ditto_coordinator_join(coordinator) == DITTO_OK);
    EXPECT(ditto_variable_read(variable, found, sizeof found) == DITTO_OK);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        EXPECT(found[i] == -4);
    end_workers();
}

/* -- a small queue, several threads that schedule, and threads that wait -- */

static _Atomic uint32_t executed;
static ditto_status count_up(ditto_replica *self, void *unused)
{
    (void)self, (void)unused;
    atomic_fetch_add_explicit(&executed, 1, memory_order_relaxed);
    return DITTO_OK;
}
static void make_workers_of(uint32_t replicas, uint32_t run_timeout_ms)
{
    ditto_strategy_options o = options_of(2 * replicas, FOUR_PUS);
    o.replicas_per_worker = replicas;
    o.run_timeout_ms = run_timeout_ms;
    EXPECT(ditto_strategy_create(DITTO_PARAMETER_SERVER, &o, &strategy) == DITTO_OK);
}
static void make_workers(uint32_t run_timeout_ms)
{
    make_workers_of(1, run_timeout_ms);
}
static void two_counting_workers(void)
{
    ditto_coordinator_options o = DITTO_COORDINATOR_OPTIONS_INIT;
    o.queue_capacity = 2;
    make_workers(0);
    coordinate(&o, count_up);
}
static void *schedule_and_join(void *unused)
{
    (void)unused;
    schedule(4);
    EXPECT(ditto_coordinator_join(coordinator) == DITTO_OK);
    return NULL;
}
static void full_queue(void)
{
    pthread_t other = thread_of(schedule_and_join, NULL);
    schedule_and_join(NULL);
    join(other);
    EXPECT(executed == 8);
    end_workers();
}

static void *look_at_workers(void *unused)
{
    ditto_coordinator_counters all = DITTO_COORDINATOR_COUNTERS_INIT;
    ditto_worker_info one = DITTO_WORKER_INFO_INIT;
    int done;
    (void)unused;
    EXPECT(ditto_coordinator_stats(coordinator, &all) == DITTO_OK && all.ended <= 4);
    EXPECT(ditto_coordinator_worker_info(coordinator, 0, &one) == DITTO_OK && one.functions <= 4);
    EXPECT(ditto_coordinator_done(coordinator, &done) == DITTO_OK);
    EXPECT(strstr(ditto_strategy_diagnose(strategy), "worker") != NULL);
    return NULL;
}
static void watched_workers(void)
{
    pthread_t other = thread_of(look_at_workers, NULL);
    schedule_and_join(NULL);
    join(other);
    end_workers();
}

static void *interrupt_workers(void *unused)
{
    (void)unused;
    EXPECT(ditto_coordinator_interrupt(coordinator) == DITTO_OK);
    return NULL;
}
static void interrupted_join(void)
{
    pthread_t other = thread_of(interrupt_workers, NULL);
    ditto_status status = DITTO_OK;
    uint32_t scheduled = 0;
    while (scheduled < 4 && status == DITTO_OK) {
        status = ditto_coordinator_schedule(coordinator, "function", NULL, NULL, NULL);
        scheduled += status == DITTO_OK;
    }
    if (status == DITTO_OK)
        status = ditto_coordinator_join(coordinator);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_CANCELLED);
    W->outcomes |= status == DITTO_OK ? 1 : 2;
    join(other);
    EXPECT(ditto_coordinator_join(coordinator) == DITTO_OK);
    EXPECT(executed == scheduled);
    end_workers();
}

/* -- results: fetched, cancelled, and thrown away -- */

static ditto_status return_number(ditto_replica *self, void *unused)
{
    ditto_tensor argument;
    (void)unused;
    atomic_fetch_add_explicit(&executed, 1, memory_order_relaxed);
    EXPECT(ditto_argument(self, NULL, &argument) == DITTO_OK);
    return ditto_return_f64(self, "number", *(const double *)argument.data);
}
static void two_returning_workers(void)
{
    make_workers(0);
    coordinate(NULL, return_number);
}
/* Returns true if the function was executed. */
static bool fetch(ditto_remote *remote)
{
    ditto_value *value;
    const ditto_value *member;
    double number = 0;
    ditto_status status = ditto_remote_fetch(remote, &value);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_CANCELLED);
    if (status == DITTO_OK) {
        EXPECT(ditto_value_member(value, "number", &member) == DITTO_OK);
        EXPECT(ditto_value_f64(member, &number) == DITTO_OK && number == 7);
        EXPECT(ditto_value_destroy(value) == DITTO_OK);
    }
    return status == DITTO_OK;
}
static void *fetch_in_thread(void *remote)
{
    return fetch(remote) ? remote : NULL;
}
/* The argument is copied. */
static void schedule_with_seven(ditto_remote **remote)
{
    ditto_schedule_options o = DITTO_SCHEDULE_OPTIONS_INIT;
    double seven = 7;
    const ditto_tensor argument = { .data = &seven, .dtype = DITTO_F64 };
    o.argument = &argument;
    EXPECT(ditto_coordinator_schedule(coordinator, "function", NULL, &o, remote) == DITTO_OK);
    seven = 8;
}
static void results(void)
{
    ditto_remote *remote[3];
    void *fetched;
    for (int k = 0; k < 3; k++)
        schedule_with_seven(&remote[k]);
    pthread_t other = thread_of(fetch_in_thread, remote[0]);
    bool cancelled = ditto_remote_cancel(remote[0]) == DITTO_OK;
    EXPECT(fetch(remote[0]) != cancelled);
    EXPECT(ditto_remote_destroy(remote[1]) == DITTO_OK); /* it is executed nevertheless */
    EXPECT(fetch(remote[2]));
    EXPECT(pthread_join(other, &fetched) == 0 && (fetched == NULL) == cancelled);
    EXPECT(ditto_coordinator_join(coordinator) == DITTO_OK);
    EXPECT(executed == (cancelled ? 2 : 3));
    EXPECT(ditto_remote_destroy(remote[0]) == DITTO_OK && ditto_remote_destroy(remote[2]) == DITTO_OK);
    end_workers();
    W->outcomes |= cancelled ? 1 : 2;
}

/* A result is waited for while the coordinator ends: the function has been executed, or cancelled. */
static void fetched_beside_the_end(void)
{
    ditto_remote *remote;
    void *fetched;
    schedule_with_seven(&remote);
    pthread_t other = thread_of(fetch_in_thread, remote);
    ditto_status status;
    while ((status = ditto_coordinator_destroy(coordinator)) == DITTO_ERR_BUSY)
        sched_yield();
    EXPECT(status == DITTO_OK);
    EXPECT(pthread_join(other, &fetched) == 0 && (fetched != NULL) == (executed == 1));
    W->outcomes |= fetched != NULL ? 1 : 2;
    EXPECT(ditto_remote_destroy(remote) == DITTO_OK);
    end_strategy();
}

/* A function that fails: those in the queue are cancelled, and what is scheduled later is executed. */
static ditto_status fail_first(ditto_replica *self, void *unused)
{
    (void)unused;
    return atomic_fetch_add_explicit(&executed, 1, memory_order_relaxed) == 0
               ? ditto_fail(self, 9, "it fails")
               : DITTO_OK;
}
static void two_failing_workers(void)
{
    make_workers(0);
    coordinate(NULL, fail_first);
}
static void failing_function(void)
{
    ditto_status status = DITTO_OK;
    for (int k = 0; k < 4 && status == DITTO_OK; k++)
        status = ditto_coordinator_schedule(coordinator, "function", NULL, NULL, NULL);
    if (status == DITTO_OK)
        status = ditto_coordinator_join(coordinator);
    EXPECT(status == DITTO_ERR_USER && strstr(ditto_last_error()->message, "it fails") != NULL);
    uint32_t before = executed;
    schedule(2);
    EXPECT(ditto_coordinator_join(coordinator) == DITTO_OK);
    EXPECT(before >= 1 && executed == before + 2);
    end_workers();
}

/* -- a worker whose function takes too long is retired, and another one executes the function -- */

static ditto_status be_late_once(ditto_replica *self, void *unused)
{
    ditto_tensor argument;
    (void)unused;
    late_enter();
    if (atomic_fetch_add_explicit(&executed, 1, memory_order_relaxed) == 0)
        late_wait();
    ditto_status status = ditto_argument(self, NULL, &argument);
    if (status == DITTO_OK)
        status = ditto_return_f64(self, "number", *(const double *)argument.data);
    late_leave();
    return status;
}
static void two_workers_with_a_limit(void)
{
    make_workers(5);
    coordinate(NULL, be_late_once);
}
static ditto_worker_info info_of(uint32_t worker)
{
    ditto_worker_info info = DITTO_WORKER_INFO_INIT;
    EXPECT(ditto_coordinator_worker_info(coordinator, worker, &info) == DITTO_OK);
    return info;
}
static bool are_retired(void)
{
    return info_of(0).is_retired && info_of(1).is_retired;
}
static void end_late_workers(pthread_t lets_go)
{
    ditto_status status = ditto_coordinator_destroy(coordinator);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_POISONED);
    end_perhaps_poisoned();
    await_late(lets_go);
}
static void late_function(void)
{
    ditto_remote *remote;
    pthread_t lets_go = let_go_within(10);
    schedule_with_seven(&remote);
    ditto_status status = ditto_coordinator_join(coordinator);
    /* Time may pass so quickly that both are late. */
    EXPECT(status == DITTO_OK || are_retired());
    EXPECT(status != DITTO_OK || fetch(remote));
    EXPECT(ditto_remote_destroy(remote) == DITTO_OK);
    end_late_workers(lets_go);
}

/* One replica of a worker is late, and the other one waits for it. */
static ditto_status be_late_or_meet(ditto_replica *self, void *unused)
{
    (void)unused;
    late_enter();
    if (atomic_fetch_add_explicit(&executed, 1, memory_order_relaxed) == 0)
        late_wait();
    ditto_status status = ditto_barrier(self, NULL);
    late_leave();
    return status;
}
static void two_pairs_with_a_limit(void)
{
    make_workers_of(2, 5);
    coordinate(NULL, be_late_or_meet);
}
static void late_pair(void)
{
    pthread_t lets_go = let_go_within(10);
    schedule(1);
    ditto_status status = ditto_coordinator_join(coordinator);
    EXPECT(status == DITTO_OK || are_retired());
    end_late_workers(lets_go);
}

/* -- a dataset that workers share, and values of each worker -- */

enum { ALL_ROWS = 9, BATCH = 2 };
static ditto_shared_dataset *shared;
static ditto_per_worker *per_worker;
static _Atomic uint32_t seen[ALL_ROWS];

static ditto_status take_batch(ditto_replica *self, void *unused)
{
    ditto_batch batch;
    ditto_tensor own;
    (void)unused;
    EXPECT(ditto_worker_value(self, per_worker, &own) == DITTO_OK);
    if (ditto_replica_id(self) == 0)
        ++*(int64_t *)own.data;
    ditto_status status = ditto_shared_dataset_next(self, shared, &batch);
    for (uint64_t i = 0; status == DITTO_OK && i < batch.rows; i++) {
        int64_t x = ((const int64_t *)batch.component[0].data)[i];
        EXPECT(x >= 0 && x < ALL_ROWS);
        atomic_fetch_add_explicit(&seen[x], 1, memory_order_relaxed);
    }
    return status;
}
static ditto_status zero(uint32_t worker, uint32_t workers, void *user, ditto_tensor *component)
{
    static int64_t nothing;
    (void)worker, (void)workers, (void)user;
    *component = (ditto_tensor){ .data = &nothing, .dtype = DITTO_I64 };
    return DITTO_OK;
}
static void share(ditto_replica_fn function)
{
    ditto_input_options o = DITTO_INPUT_OPTIONS_INIT;
    ditto_dataset *numbers;
    coordinate(NULL, function);
    o.global_batch = BATCH;
    EXPECT(ditto_dataset_from_range(0, ALL_ROWS, 1, &numbers) == DITTO_OK);
    EXPECT(ditto_coordinator_shared_dataset(coordinator, numbers, &o, &shared) == DITTO_OK);
    EXPECT(ditto_dataset_destroy(numbers) == DITTO_OK);
    EXPECT(ditto_coordinator_values_from_function(coordinator, zero, NULL, &per_worker) == DITTO_OK);
}
static void two_workers_that_share(void)
{
    make_workers(0);
    share(take_batch);
}
static void two_pairs_that_share(void)
{
    make_workers_of(2, 0);
    share(take_batch);
}
static void shared_dataset(void)
{
    schedule(6); /* of which one finds the end */
    EXPECT(ditto_coordinator_join(coordinator) == DITTO_END_OF_INPUT);
    for (int i = 0; i < ALL_ROWS; i++)
        EXPECT(seen[i] == 1);
    EXPECT(ditto_per_worker_destroy(per_worker) == DITTO_OK);
    EXPECT(ditto_shared_dataset_destroy(shared) == DITTO_OK);
    end_workers();
}

/* A worker is late with its batch: another function takes it, so each row is used by a function in time. */
static _Atomic uint32_t used[ALL_ROWS];
static struct {
    _Atomic uint32_t worker;
    uint64_t count;
    int64_t rows[BATCH];
} late; /* the first function that has a batch */

static ditto_status use_batch(ditto_replica *self)
{
    ditto_batch batch;
    int64_t rows[BATCH];
    ditto_status status = ditto_shared_dataset_next(self, shared, &batch);
    if (status != DITTO_OK)
        return status;
    memcpy(rows, batch.component[0].data, batch.rows * sizeof rows[0]);
    if (atomic_fetch_add_explicit(&executed, 1, memory_order_relaxed) == 0) {
        late.worker = ditto_worker(self);
        late.count = batch.rows;
        memcpy(late.rows, rows, sizeof rows);
        late_wait();
        return DITTO_OK;
    }
    for (uint64_t i = 0; i < batch.rows; i++)
        atomic_fetch_add_explicit(&used[rows[i]], 1, memory_order_relaxed);
    return DITTO_OK;
}
static ditto_status take_and_be_late(ditto_replica *self, void *unused)
{
    (void)unused;
    late_enter();
    ditto_status status = use_batch(self);
    late_leave();
    return status;
}
static void two_sharing_workers_with_a_limit(void)
{
    make_workers(5);
    share(take_and_be_late);
}
static void late_sharer(void)
{
    pthread_t lets_go = let_go_within(10);
    ditto_status status = DITTO_OK;
    for (int k = 0; k < 7 && status == DITTO_OK; k++)
        status = ditto_coordinator_schedule(coordinator, "function", NULL, NULL, NULL);
    if (status == DITTO_OK)
        status = ditto_coordinator_join(coordinator);
    EXPECT(status == DITTO_END_OF_INPUT || are_retired());
    if (status == DITTO_END_OF_INPUT && info_of(late.worker).functions > 0) /* its first one ended in time */
        for (uint64_t i = 0; i < late.count; i++)
            used[late.rows[i]]++;
    for (int i = 0; i < ALL_ROWS && status == DITTO_END_OF_INPUT; i++)
        EXPECT(used[i] >= 1);
    status = ditto_coordinator_destroy(coordinator);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_POISONED);
    EXPECT(ditto_shared_dataset_destroy(shared) == DITTO_OK); /* after its coordinator */
    end_perhaps_poisoned();
    await_late(lets_go);
}

/* Each worker makes an iterator of its own before it executes a function. */
static ditto_status make_range(const ditto_input_context *context, void *unused, ditto_dataset **out)
{
    ditto_dataset *numbers;
    (void)context, (void)unused;
    EXPECT(ditto_dataset_from_range(0, ALL_ROWS, 1, &numbers) == DITTO_OK);
    EXPECT(ditto_dataset_batch(numbers, BATCH, 0, out) == DITTO_OK);
    return ditto_dataset_destroy(numbers);
}
static ditto_status take_own_batch(ditto_replica *self, void *unused)
{
    ditto_iterator *own;
    ditto_batch batch;
    (void)unused;
    EXPECT(ditto_worker_iterator(self, per_worker, &own) == DITTO_OK);
    EXPECT(ditto_next(self, own, &batch) == DITTO_OK);
    EXPECT(((const int64_t *)batch.component[0].data)[0] == (int64_t)(batch.step * BATCH));
    return DITTO_OK;
}
static void two_workers_with_datasets(void)
{
    ditto_input_options o = DITTO_INPUT_OPTIONS_INIT;
    make_workers(0);
    coordinate(NULL, take_own_batch);
    o.buffer = DITTO_NO_PREFETCH;
    EXPECT(ditto_coordinator_datasets_from_function(coordinator, make_range, NULL, &o, &per_worker) ==
           DITTO_OK);
}
static void datasets_of_workers(void)
{
    schedule(3);
    EXPECT(ditto_coordinator_join(coordinator) == DITTO_OK);
    end_workers(); /* with the iterators */
}

/* -- a coordinator is destroyed while functions are executed -- */

static void workers_destroyed_while_busy(void)
{
    schedule(4);
    end_workers(); /* functions that have not begun are cancelled */
    EXPECT(executed <= 4);
    W->outcomes |= executed == 4 ? 1 : 2;
}

const struct scenario worker_scenarios[] = {
    { .name = "locked_parameters", .setup = two_locking_workers, .body = parameters, .longest_ms = 1 },
    { .name = "hogwild_parameters", .setup = two_hogwild_workers, .body = parameters, .longest_ms = 1 },
    { .name = "freely_read_parameters",
      .setup = two_workers_with_free_reads,
      .body = parameters,
      .longest_ms = 1 },
    { .name = "rows_of_locked_parameters",
      .setup = two_locking_workers_on_rows,
      .body = rows_of_parameters,
      .longest_ms = 1 },
    { .name = "rows_of_hogwild_parameters",
      .setup = two_hogwild_workers_on_rows,
      .body = rows_of_parameters,
      .longest_ms = 1 },
    { .name = "parameter_steps", .setup = two_stepping_workers, .body = parameter_steps, .longest_ms = 1 },
    { .name = "full_queue", .setup = two_counting_workers, .body = full_queue, .longest_ms = 1 },
    { .name = "watched_workers", .setup = two_counting_workers, .body = watched_workers, .longest_ms = 1 },
    { .name = "interrupted_join",
      .setup = two_counting_workers,
      .body = interrupted_join,
      .longest_ms = 1,
      .outcomes = 3 },
    { .name = "results", .setup = two_returning_workers, .body = results, .longest_ms = 1, .outcomes = 3 },
    { .name = "fetched_beside_the_end",
      .setup = two_returning_workers,
      .body = fetched_beside_the_end,
      .longest_ms = 1,
      .outcomes = 3 },
    { .name = "failing_function", .setup = two_failing_workers, .body = failing_function, .longest_ms = 1 },
    { .name = "late_function",
      .setup = two_workers_with_a_limit,
      .body = late_function,
      .longest_ms = 20,
      .outcomes = 3 },
    { .name = "shared_dataset", .setup = two_workers_that_share, .body = shared_dataset, .longest_ms = 1 },
    { .name = "dataset_shared_by_pairs",
      .setup = two_pairs_that_share,
      .body = shared_dataset,
      .longest_ms = 1 },
    { .name = "late_pair",
      .setup = two_pairs_with_a_limit,
      .body = late_pair,
      .longest_ms = 20,
      .outcomes = 3 },
    { .name = "late_sharer",
      .setup = two_sharing_workers_with_a_limit,
      .body = late_sharer,
      .longest_ms = 20,
      .outcomes = 3 },
    { .name = "datasets_of_workers",
      .setup = two_workers_with_datasets,
      .body = datasets_of_workers,
      .longest_ms = 1 },
    { .name = "workers_destroyed_while_busy",
      .setup = two_counting_workers,
      .body = workers_destroyed_while_busy,
      .longest_ms = 1,
      .outcomes = 3 },
    { 0 },
};
