/* tests/fault/test_cancellation.c - a thread that pthread_cancel ends is not ended inside a call of ditto, so
 * it leaves no lock held and no file open. Each kind of call is made in a child process of its own. */
#include "support/local_wire.h"
#include "support/support.h"

#include <ditto/checkpoint.h>
#include <ditto/coordinator.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* -- Kinds of calls. Together they call each public function that contains a cancellation point outside a
 * run, or calls the program's functions. Each frees what it makes. -- */

static ditto_status use_topologies(void)
{
    ditto_topology *topology;
    ditto_placement *placement, *read;
    ditto_limits limits = DITTO_LIMITS_INIT;
    char text[8192];
    size_t length;
    DITTO_TRY(ditto_limits_read(&limits));
    DITTO_TRY(ditto_topology_create(NULL, &topology));
    DITTO_TRY(ditto_placement_create(topology, NULL, &placement));
    DITTO_TRY(ditto_placement_write(placement, text, sizeof text, &length));
    DITTO_TRY(ditto_placement_read(topology, text, length, &read));
    DITTO_TRY(ditto_placement_destroy(read));
    DITTO_TRY(ditto_placement_destroy(placement));
    return ditto_topology_destroy(topology);
}

static ditto_status use_default_strategy(void)
{
    return ditto_get_strategy() != NULL && ditto_get_replica_context() != NULL ? DITTO_OK : DITTO_ERR_SYSTEM;
}

static ditto_status make_two(ditto_strategy **out)
{
    return ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 2), out);
}

/* The program's functions may contain cancellation points. */
static ditto_status rest_and_meet(ditto_replica *self, void *unused)
{
    sleep_ms(1);
    return ditto_barrier(self, NULL);
}

static double number = 1;

static ditto_status one_number(uint32_t replica, uint32_t num_replicas, void *data, ditto_tensor *part)
{
    *part = (ditto_tensor){ .data = data, .dtype = DITTO_F64, .rank = 1, .shape = { 1 } };
    return DITTO_OK;
}

static ditto_status update_slowly(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                                  void *unused, ditto_tensor *result)
{
    sleep_ms(1);
    return DITTO_OK;
}

static ditto_status use_strategies(void)
{
    ditto_strategy *strategy;
    ditto_variable *variable;
    ditto_value *value, *sum, *all;
    ditto_tensor zero = { .data = &(double){ 0 }, .dtype = DITTO_F64 };
    char text[16384];
    double found;
    DITTO_TRY(make_two(&strategy));
    DITTO_TRY(ditto_strategy_describe(strategy, text, sizeof text, NULL));
    DITTO_TRY(ditto_strategy_trace_start(strategy, NULL));
    DITTO_TRY(ditto_strategy_scope_enter(strategy));
    DITTO_TRY(ditto_strategy_run(strategy, rest_and_meet, NULL));
    DITTO_TRY(ditto_strategy_value_from_function(strategy, one_number, &number, &value));
    DITTO_TRY(ditto_strategy_reduce(strategy, DITTO_SUM, value, NULL, 0, &sum));
    DITTO_TRY(ditto_strategy_gather(strategy, value, 0, &all));
    DITTO_TRY(ditto_value_destroy(all));
    DITTO_TRY(ditto_value_destroy(sum));
    DITTO_TRY(ditto_value_destroy(value));
    DITTO_TRY(ditto_variable_create(strategy, &zero, NULL, &variable));
    DITTO_TRY(ditto_variable_update(variable, update_slowly, NULL, NULL, 0, NULL, NULL));
    DITTO_TRY(ditto_variable_read(variable, &found, sizeof found));
    DITTO_TRY(ditto_variable_destroy(variable));
    DITTO_TRY(ditto_strategy_scope_leave(strategy));
    DITTO_TRY(ditto_strategy_trace_stop(strategy));
    DITTO_TRY(ditto_strategy_trace_write(strategy, "trace.json"));
    return ditto_strategy_destroy(strategy);
}

static ditto_status read_slowly(const ditto_tensor *row, void *unused)
{
    sleep_ms(1);
    return DITTO_OK;
}

/* Batches of one line. */
static ditto_status make_text(const ditto_input_context *context, void *unused, ditto_dataset **out)
{
    const ditto_files files = { (const char *[]){ "*.csv" }, 1, DITTO_FILES_GLOB };
    ditto_dataset *lines;
    DITTO_TRY(ditto_dataset_from_text(&files, NULL, &lines));
    DITTO_TRY(ditto_dataset_batch(lines, 1, 0, out));
    return ditto_dataset_destroy(lines);
}

static ditto_status use_files(void)
{
    const char *npy = "two.npy";
    const ditto_files csv = { (const char *[]){ "two.csv" }, 1, 0 };
    const ditto_files bytes = { (const char *[]){ "two.npy" }, 1, 0 };
    const ditto_files records = { (const char *[]){ "one.tfrecord" }, 1, 0 };
    ditto_dataset *dataset[5];
    ditto_csv_component column = { .first_column = 0, .num_columns = 1, .dtype = DITTO_F32 };
    ditto_tensor byte = { .dtype = DITTO_U8, .rank = 1, .shape = { 16 } };
    DITTO_TRY(make_text(NULL, NULL, &dataset[0]));
    DITTO_TRY(ditto_dataset_from_csv(&csv, &column, 1, NULL, &dataset[1]));
    DITTO_TRY(ditto_dataset_from_npy(&npy, 1, &dataset[2]));
    DITTO_TRY(ditto_dataset_from_fixed(&bytes, &byte, 1, NULL, &dataset[3]));
    DITTO_TRY(ditto_dataset_from_tfrecord(&records, NULL, &dataset[4]));
    for (int i = 0; i < 5; i++) {
        DITTO_TRY(ditto_dataset_reduce(dataset[i], read_slowly, NULL, 0));
        DITTO_TRY(ditto_dataset_destroy(dataset[i]));
    }
    return DITTO_OK;
}

static ditto_status use_iterators(void)
{
    ditto_strategy *strategy;
    ditto_dataset *lines;
    ditto_iterator *iterator;
    ditto_value *batch;
    void *state;
    size_t length;
    DITTO_TRY(make_two(&strategy));
    DITTO_TRY(ditto_strategy_iterate_from_function(strategy, make_text, NULL, NULL, &iterator));
    DITTO_TRY(ditto_iterator_next(iterator, &batch));
    DITTO_TRY(ditto_value_destroy(batch));
    DITTO_TRY(ditto_iterator_save(iterator, &state, &length));
    ditto_state_free(state);
    DITTO_TRY(ditto_iterator_destroy(iterator));
    DITTO_TRY(make_text(NULL, NULL, &lines));
    DITTO_TRY(ditto_strategy_iterate(strategy, lines, NULL, &iterator));
    DITTO_TRY(ditto_dataset_destroy(lines));
    DITTO_TRY(ditto_iterator_destroy(iterator));
    return ditto_strategy_destroy(strategy);
}

static ditto_status use_checkpoints(void)
{
    ditto_strategy *strategy;
    ditto_variable *variable;
    ditto_checkpointer *checkpointer;
    ditto_checkpoint *file;
    ditto_restore_status restored;
    ditto_tensor zero = { .data = &(double){ 0 }, .dtype = DITTO_F64 };
    char path[256];
    double found;
    DITTO_TRY(make_two(&strategy));
    DITTO_TRY(ditto_variable_create(strategy, &zero, &OPTIONS(variable, .name = "x"), &variable));
    DITTO_TRY(ditto_checkpoint_save(strategy, "x.h5", NULL));
    DITTO_TRY(ditto_checkpoint_restore(strategy, "x.h5", NULL, &restored));
    DITTO_TRY(ditto_checkpointer_create(strategy, ".", &OPTIONS(checkpointer, .keep = 1), &checkpointer));
    DITTO_TRY(ditto_checkpointer_save(checkpointer, &OPTIONS(checkpoint, .step = 1)));
    DITTO_TRY(ditto_checkpointer_wait(checkpointer));
    DITTO_TRY(ditto_checkpointer_destroy(checkpointer));
    DITTO_TRY(ditto_checkpoint_latest(strategy, ".", NULL, path, sizeof path, NULL, NULL));
    DITTO_TRY(ditto_checkpoint_open(strategy, path, &file));
    DITTO_TRY(ditto_checkpoint_read(file, "x", &found, sizeof found));
    DITTO_TRY(ditto_checkpoint_close(file));
    DITTO_TRY(ditto_variable_destroy(variable));
    return ditto_strategy_destroy(strategy);
}

static ditto_status take_batch(ditto_replica *self, void *shared)
{
    ditto_batch batch;
    sleep_ms(1);
    return ditto_shared_dataset_next(self, *(ditto_shared_dataset **)shared, &batch) < 0 ? DITTO_ERR_USER
                                                                                         : DITTO_OK;
}

static ditto_status use_coordinators(void)
{
    ditto_strategy *strategy;
    ditto_coordinator *coordinator;
    ditto_per_worker *values, *datasets;
    ditto_dataset *text;
    ditto_shared_dataset *shared;
    ditto_remote *remote;
    ditto_value *result;
    void *state;
    size_t length;
    DITTO_TRY(
        ditto_strategy_create(DITTO_PARAMETER_SERVER, &OPTIONS(strategy, .num_replicas = 2), &strategy));
    DITTO_TRY(ditto_coordinator_create(strategy, NULL, &coordinator));
    DITTO_TRY(make_text(NULL, NULL, &text));
    DITTO_TRY(ditto_coordinator_shared_dataset(coordinator, text, NULL, &shared));
    DITTO_TRY(ditto_coordinator_values_from_function(coordinator, one_number, &number, &values));
    DITTO_TRY(ditto_coordinator_datasets_from_function(coordinator, make_text, NULL, NULL, &datasets));
    DITTO_TRY(ditto_function_register("take", take_batch, &shared));
    DITTO_TRY(ditto_coordinator_schedule(coordinator, "take", NULL, NULL, &remote));
    DITTO_TRY(ditto_remote_fetch(remote, &result));
    DITTO_TRY(ditto_value_destroy(result));
    DITTO_TRY(ditto_remote_destroy(remote));
    DITTO_TRY(ditto_coordinator_schedule(coordinator, "take", NULL, NULL, NULL));
    DITTO_TRY(ditto_coordinator_join(coordinator));
    DITTO_TRY(ditto_function_unregister("take"));
    DITTO_TRY(ditto_shared_dataset_save(shared, &state, &length));
    ditto_state_free(state);
    DITTO_TRY(ditto_coordinator_destroy(coordinator));
    DITTO_TRY(ditto_shared_dataset_destroy(shared));
    DITTO_TRY(ditto_dataset_destroy(text));
    return ditto_strategy_destroy(strategy);
}

/* Joins a thread that works beside that of the test. The join is not a cancellation point here. A thread that
 * is only detached may still be in the allocator when the process forks. */
static void await_end(pthread_t thread)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_join(thread, NULL);
    pthread_setcancelstate(state, &state);
}

/* A producer, for which the consumer waits. Both sleep, and read how busy their PU is. */
struct producer {
    ditto_queue *queue;
    ditto_status status;
};

static void *put_late(void *argument)
{
    struct producer *p = argument;
    for (int i = 0; i < 3 && p->status == DITTO_OK; i++) {
        sleep_ms(1);
        p->status = ditto_queue_put(p->queue, 0, NULL, 1, DITTO_FOREVER);
    }
    return NULL;
}

static ditto_status use_queues(void)
{
    struct producer p = { 0 };
    ditto_queue_item item;
    pthread_t thread;
    DITTO_TRY(ditto_queue_create(&OPTIONS(queue, .num_slots = 1, .num_producers = 1), &p.queue));
    if (pthread_create(&thread, NULL, put_late, &p) != 0)
        return DITTO_ERR_SYSTEM;
    for (int i = 0; i < 3; i++)
        DITTO_TRY(ditto_queue_get(p.queue, DITTO_FOREVER, &item));
    await_end(thread);
    DITTO_TRY(p.status);
    DITTO_TRY(ditto_queue_close(p.queue));
    return ditto_queue_destroy(p.queue);
}

/* One of two hosts, which are threads. */
struct host {
    struct local_network *network;
    uint32_t number;
    ditto_status status;
};

static ditto_status use_cluster(struct host *host)
{
    ditto_wire wire;
    ditto_cluster *cluster;
    ditto_strategy *strategy;
    ditto_value *value, *sum;
    local_network_wire(host->network, host->number, &wire);
    DITTO_TRY(ditto_cluster_create(&wire, &OPTIONS(cluster, .life_line = DITTO_SWITCH_ON), &cluster));
    DITTO_TRY(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 1, .cluster = cluster),
                                    &strategy));
    DITTO_TRY(ditto_strategy_run(strategy, rest_and_meet, NULL));
    DITTO_TRY(ditto_strategy_value_from_function(strategy, one_number, &number, &value));
    DITTO_TRY(ditto_strategy_reduce(strategy, DITTO_SUM, value, NULL, 0, &sum));
    DITTO_TRY(ditto_value_destroy(sum));
    DITTO_TRY(ditto_value_destroy(value));
    DITTO_TRY(ditto_strategy_destroy(strategy));
    return ditto_cluster_destroy(cluster);
}

static void *play_host(void *argument)
{
    struct host *host = argument;
    host->status = use_cluster(host);
    return NULL;
}

static ditto_status use_clusters(void)
{
    struct local_network *network = local_network_make(2, 100, 17);
    struct host host = { network, 0, DITTO_OK }, other = { network, 1, DITTO_OK };
    pthread_t thread;
    if (pthread_create(&thread, NULL, play_host, &other) != 0)
        return DITTO_ERR_SYSTEM;
    ditto_status status = use_cluster(&host);
    await_end(thread);
    local_network_free(network);
    return status != DITTO_OK ? status : other.status;
}

static const struct kind {
    const char *name;
    ditto_status (*use)(void);
} kinds[] = {
    { "topologies", use_topologies },     { "the default strategy", use_default_strategy },
    { "strategies", use_strategies },     { "files", use_files },
    { "iterators", use_iterators },       { "checkpoints", use_checkpoints },
    { "coordinators", use_coordinators }, { "queues", use_queues },
    { "clusters", use_clusters },
};

/* -- Cancelling them -- */

struct victim {
    const struct kind *kind;

    /* True if the thread cancels itself before the first call. */
    bool at_once;

    _Atomic int has_begun;

    /* False while the thread is in the calls. */
    _Atomic int is_outside;
    ditto_status status;
    char message[sizeof ditto_last_error()->message];
};

static void *use_until_cancelled(void *argument)
{
    struct victim *v = argument;
    v->status = DITTO_OK;
    if (v->at_once)
        pthread_cancel(pthread_self());
    while (v->status == DITTO_OK) {
        atomic_store(&v->is_outside, 0);
        atomic_store(&v->has_begun, 1);
        v->status = v->kind->use();
        memcpy(v->message, ditto_last_error()->message, sizeof v->message);
        atomic_store(&v->is_outside, 1);
        pthread_testcancel();
    }
    return NULL;
}

/* Cancels a thread after up to a few milliseconds, and expects that it ends outside its calls. */
static int cancel_one(const struct kind *kind, bool at_once, uint64_t *random)
{
    struct victim v = { .kind = kind, .at_once = at_once };
    pthread_t thread;
    void *result;
    REQUIRE(pthread_create(&thread, NULL, use_until_cancelled, &v) == 0);
    while (!at_once && !atomic_load(&v.has_begun))
        sleep_ms(1);
    if (!at_once) {
        usleep((useconds_t)(test_random(random) % 8000));
        pthread_cancel(thread);
    }
    REQUIRE(pthread_join(thread, &result) == 0);
    if (v.status == DITTO_OK && result == PTHREAD_CANCELED && atomic_load(&v.is_outside))
        return 0;
    fprintf(stderr, "%s: status %d, %s, in a call: %d, %s\n", kind->name, (int)v.status,
            result == PTHREAD_CANCELED ? "cancelled" : "not cancelled", !atomic_load(&v.is_outside),
            v.message);
    return 1;
}

static int cancel_many(void *argument)
{
    const struct kind *kind = argument;
    uint64_t random = 41;
    int status;
    for (int i = 0; i < test_trials(60); i++)
        if (cancel_one(kind, i == 0, &random) != 0)
            return 1;
    REQUIRE(kind->use() == DITTO_OK);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    return 0;
}

static void put_bytes(const char *name, const char *bytes, size_t length)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static void a_cancelled_thread_ends_outside_calls(void **state)
{
    assert_int_equal(chdir(own_folder), 0);
    put_file(".", "/two.csv", "1\n2\n");
    put_bytes("two.npy",
              "\x93NUMPY\x01\0\x46\0{'descr': '|u1', 'fortran_order': False, 'shape': (2, 8)}"
              "            \n0123456789012345",
              96);
    put_bytes("one.tfrecord", "\0\0\0\0\0\0\0\0\x29\x03\x98\x07\xd8\xea\x82\xa2", 16); /* an empty record */
    int failed = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        failed += in_child(cancel_many, (void *)(uintptr_t)&kinds[k], 100) != 0;
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_cancelled_thread_ends_outside_calls) };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
