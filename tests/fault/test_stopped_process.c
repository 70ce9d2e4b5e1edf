/* tests/fault/test_stopped_process.c - the time in which a process is stopped (SIGSTOP, a debugger, a batch
 * system that suspends it) counts for no limit (src/base/waiting/deadline.h). Each wait is in a child
 * process, which is stopped for longer than its limit. What it waits for comes soon after it goes on. */
#include "support/hosts.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 3000, STOPPED_MS = 5500 };

static _Atomic bool *goes_on; /* shared with the child processes */
static int ready[2];          /* a pipe, for the number of a child that waits */
static unsigned char number;  /* of this child */

/* Returns only after the process was stopped, and those that wait have looked at the clock. */
static void come_late(void)
{
    if (write(ready[1], &number, 1) == 1)
        while (!*goes_on)
            sleep_ms(1);
    sleep_ms(300);
}

/* -- what is limited -- */

static ditto_status meet_late(ditto_replica *self, void *unused)
{
    (void)unused;
    if (ditto_replica_id(self) == 1)
        come_late();
    return ditto_barrier(self, NULL);
}

static ditto_status start_late(ditto_replica *self, void *unused)
{
    float one = 1, sum;
    ditto_pending pending;
    (void)unused;
    if (ditto_replica_id(self) == 1)
        come_late();
    DITTO_TRY(ditto_all_reduce_start(self, &one, &sum, 1, DITTO_F32, DITTO_SUM, NULL, &pending));
    return ditto_wait(self, &pending, 0);
}

static ditto_iterator *iterator;
static ditto_status take(ditto_replica *self, void *unused)
{
    ditto_batch batch;
    (void)unused;
    return ditto_next(self, iterator, &batch);
}

static ditto_status copy_late(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                              void *unused)
{
    (void)random, (void)unused;
    if (*(int64_t *)in->data == 0)
        come_late();
    memcpy(out->data, in->data, sizeof(int64_t));
    return DITTO_OK;
}

static ditto_status on_two(ditto_replica_fn function, const ditto_strategy_options *options)
{
    ditto_strategy *strategy = make_strategy(2, options);
    ditto_status status = ditto_strategy_run(strategy, function, NULL);
    return status == DITTO_OK ? ditto_strategy_destroy(strategy) : status;
}

static ditto_status barrier(void)
{
    return on_two(meet_late, &OPTIONS(strategy, .timeout_ms = LIMIT_MS));
}

static ditto_status active(void)
{
    return on_two(meet_late, &OPTIONS(strategy, .timeout_ms = LIMIT_MS, .wait = DITTO_WAIT_ACTIVE));
}

static ditto_status run(void)
{
    return on_two(meet_late, &OPTIONS(strategy, .run_timeout_ms = LIMIT_MS));
}

static ditto_status run_of_a_caller_that_waits(void)
{
    return on_two(meet_late, &OPTIONS(strategy, .run_timeout_ms = LIMIT_MS, .caller = DITTO_CALLER_WAITS));
}

static ditto_status started(void)
{
    return on_two(start_late, &OPTIONS(strategy, .timeout_ms = LIMIT_MS));
}

static ditto_status next(void)
{
    ditto_strategy *strategy = make_strategy(2, &OPTIONS(strategy, .timeout_ms = LIMIT_MS));
    ditto_dataset *range, *slow, *batches;
    DITTO_TRY(ditto_dataset_from_range(0, 2, 1, &range));
    DITTO_TRY(ditto_dataset_map(range, copy_late, NULL, NULL, &slow));
    DITTO_TRY(ditto_dataset_batch(slow, 2, 0, &batches));
    DITTO_TRY(ditto_strategy_iterate(strategy, batches, NULL, &iterator));
    DITTO_TRY(ditto_strategy_run(strategy, take, NULL));
    return ditto_iterator_destroy(iterator);
}

static void *put_late(void *queue)
{
    come_late();
    return ditto_queue_put(queue, 0, queue, 0, DITTO_FOREVER) == DITTO_OK ? queue : NULL;
}

static ditto_status queue(void)
{
    pthread_t thread;
    ditto_queue *queue;
    ditto_queue_item item;
    DITTO_TRY(ditto_queue_create(NULL, &queue));
    pthread_create(&thread, NULL, put_late, queue);
    DITTO_TRY(ditto_queue_get(queue, LIMIT_MS, &item));
    return pthread_join(thread, NULL) == 0 ? DITTO_OK : DITTO_ERR_USER;
}

static ditto_status be_late(ditto_replica *self, void *unused)
{
    (void)self, (void)unused;
    come_late();
    return DITTO_OK;
}

static ditto_status with_worker(const ditto_strategy_options *options)
{
    ditto_strategy *strategy;
    ditto_coordinator *coordinator;
    DITTO_TRY(ditto_function_register("late", be_late, NULL));
    DITTO_TRY(ditto_strategy_create(DITTO_PARAMETER_SERVER, options, &strategy));
    DITTO_TRY(ditto_coordinator_create(strategy, NULL, &coordinator));
    DITTO_TRY(ditto_coordinator_schedule(coordinator, "late", NULL, NULL, NULL));
    DITTO_TRY(ditto_coordinator_join(coordinator));
    return ditto_coordinator_destroy(coordinator);
}

static ditto_status function_of_a_worker(void)
{
    return with_worker(&OPTIONS(strategy, .num_replicas = 1, .run_timeout_ms = LIMIT_MS));
}

static ditto_status join(void)
{
    return with_worker(&OPTIONS(strategy, .num_replicas = 1, .timeout_ms = LIMIT_MS));
}

/* Replica 1 is the one of host 1. */
static ditto_status on_host(struct test_host *host)
{
    ditto_strategy *strategy;
    DITTO_TRY(make_host_strategy(host, 1, &OPTIONS(strategy, .timeout_ms = LIMIT_MS), &strategy));
    DITTO_TRY(ditto_strategy_run(strategy, meet_late, NULL));
    return ditto_strategy_destroy(strategy);
}

static ditto_status hosts(void)
{
    on_hosts(2, 0, on_host, NULL); /* exits with an error if a host fails */
    return DITTO_OK;
}

static ditto_status (*const limited[])(void) = { barrier, active, run,   run_of_a_caller_that_waits,
                                                 started, next,   queue, function_of_a_worker,
                                                 join,    hosts };
enum { LIMITED = sizeof limited / sizeof limited[0] };

/* -- stopping -- */

static pid_t begin(unsigned char i)
{
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (child != 0)
        return child;
    alarm(120);
    number = i;
    ditto_status status = limited[i]();
    if (status != DITTO_OK)
        fprintf(stderr, "%s: %s\n", ditto_status_name(status), ditto_last_error()->message);
    _exit(status == DITTO_OK ? 0 : 1);
}

static void time_in_which_the_process_is_stopped_counts_for_no_limit(void **state)
{
    pid_t child[LIMITED];
    (void)state;
    goes_on = mmap(NULL, sizeof *goes_on, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(goes_on, MAP_FAILED);
    assert_int_equal(pipe(ready), 0);
    for (unsigned char i = 0; i < LIMITED; i++)
        child[i] = begin(i);
    for (int stopped = 0; stopped < LIMITED; stopped++) {
        unsigned char i;
        assert_int_equal(read(ready[0], &i, 1), 1);
        sleep_ms(50); /* usually, the other thread waits by then */
        kill(child[i], SIGSTOP);
    }
    sleep_ms(STOPPED_MS);
    *goes_on = true;
    for (int i = 0; i < LIMITED; i++)
        kill(child[i], SIGCONT);
    int passed = 0, status;
    for (int i = 0; i < LIMITED; i++) {
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        passed += status != 0; /* the child has printed its error */
    }
    assert_int_equal(passed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_in_which_the_process_is_stopped_counts_for_no_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
