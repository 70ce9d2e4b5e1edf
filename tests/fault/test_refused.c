/* tests/fault/test_refused.c - sandboxes: system calls that the kernel refuses with various error numbers, a
 * process without /proc and /sys, and the error records of refusals. Each case runs in a child process with a
 * time limit, because a filter cannot be removed and because an incorrect library hangs. */
#include "support/support.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL(name)        \
    {                     \
        SYS_##name, #name \
    }
struct call {
    uint32_t number;
    const char *name;
};

struct refusal {
    struct call call;
    int error_number;
};

static const int error_numbers[] = { EPERM, ENOSYS, EINVAL, ENOMEM };
enum { ERROR_NUMBERS = sizeof error_numbers / sizeof error_numbers[0] };

/* Runs `body` in a child process. An exit status of 77 means that the kernel has no seccomp. */
static void expect_success(int (*body)(void *), void *argument)
{
    int code = in_child(body, argument, 90);
    if (code == 77)
        skip();
    assert_int_equal(code, 0);
}

/* -- sched_getaffinity, which hwloc repeats until it succeeds -- */

static int affinity_refused(void *argument)
{
    const struct refusal *refusal = argument;
    ditto_strategy *strategy = NULL;
    ditto_topology *topology = NULL;
    ditto_topology_options other = DITTO_TOPOLOGY_OPTIONS_INIT;
    ditto_limits limits = DITTO_LIMITS_INIT;
    if (!refuse_system_calls_with(&refusal->call.number, 1, refusal->error_number))
        return 77;
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, NULL, &strategy) == DITTO_ERR_SYSTEM);
    REQUIRE(ditto_last_error()->system_errno == refusal->error_number);
    REQUIRE(strstr(ditto_last_error()->message, "sched_getaffinity") != NULL);
    REQUIRE(ditto_topology_create(NULL, &topology) == DITTO_ERR_SYSTEM && topology == NULL);
    other.synthetic = "pack:2 core:4 pu:2"; /* a synthetic machine needs no system call */
    REQUIRE(ditto_topology_create(&other, &topology) == DITTO_OK);
    REQUIRE(ditto_topology_destroy(topology) == DITTO_OK);
    REQUIRE(ditto_topology_create(NULL, &topology) == DITTO_ERR_SYSTEM);
    ditto_error before = *ditto_last_error();
    REQUIRE(ditto_limits_read(&limits) == DITTO_OK && limits.affinity[0] == '\0');
    /* A call that succeeds does not change the record. */
    REQUIRE(memcmp(&before, ditto_last_error(), sizeof before) == 0);
    return 0;
}

static void a_refused_sched_getaffinity_is_an_error_that_names_it(void **state)
{
    for (int i = 0; i < ERROR_NUMBERS; i++) {
        struct refusal refusal = { CALL(sched_getaffinity), error_numbers[i] };
        expect_success(affinity_refused, &refusal);
    }
}

/* -- sched_setaffinity -- */

static ditto_status sum(ditto_replica *self, void *unused)
{
    float *memory;
    size_t count = 100000;
    DITTO_TRY(ditto_alloc(self, count * sizeof *memory, 0, (void **)&memory));
    for (size_t i = 0; i < count; i++)
        memory[i] = 1;
    DITTO_TRY(ditto_all_reduce(self, memory, memory, count, DITTO_F32, DITTO_SUM, NULL));
    if (memory[count - 1] != (float)ditto_num_replicas(self))
        return ditto_fail(self, 1, "wrong sum");
    return ditto_free(self, memory);
}

static int binding_refused(void *argument)
{
    const struct refusal *refusal = argument;
    ditto_strategy *strategy = NULL;
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = 3);
    if (!refuse_system_calls_with(&refusal->call.number, 1, refusal->error_number))
        return 77;
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy) == DITTO_ERR_SYSTEM);
    REQUIRE(ditto_last_error()->system_errno == refusal->error_number);
    REQUIRE(strstr(ditto_last_error()->message, "DITTO_PIN_NONE") != NULL);
    REQUIRE(refusal->error_number == EINVAL ||
            strstr(ditto_last_error()->message, "sched_setaffinity") != NULL);
    options.pin = DITTO_PIN_NONE; /* which the message proposes */
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy) == DITTO_OK);
    REQUIRE(ditto_strategy_run(strategy, sum, NULL) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    return 0;
}

static void a_refused_sched_setaffinity_is_an_error_that_proposes_unpinned_replicas(void **state)
{
    for (int i = 0; i < ERROR_NUMBERS; i++) {
        struct refusal refusal = { CALL(sched_setaffinity), error_numbers[i] };
        expect_success(binding_refused, &refusal);
    }
}

/* -- System calls that the library, hwloc or the C library makes, refused one at a time -- */

static ditto_status take_batches(ditto_replica *self, void *iterator)
{
    ditto_batch batch;
    for (int i = 0; i < 3; i++)
        DITTO_TRY(ditto_next(self, iterator, &batch));
    return DITTO_OK;
}

/* Returns true for success, and for an error that has a record with a message. */
static bool answered(ditto_status status)
{
    return status == DITTO_OK ||
           (status < 0 && ditto_last_error()->status == status && ditto_last_error()->message[0] != '\0');
}

static int one_call_refused(void *argument)
{
    const struct refusal *refusal = argument;
    ditto_strategy *strategy = NULL;
    ditto_dataset *range = NULL;
    ditto_iterator *iterator = NULL;
    if (!refuse_system_calls_with(&refusal->call.number, 1, refusal->error_number))
        return 77;
    ditto_status status = ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 3),
                                                &strategy);
    REQUIRE(answered(status));
    if (status != DITTO_OK)
        return 0;
    REQUIRE(answered(ditto_strategy_run(strategy, sum, NULL)));
    REQUIRE(answered(ditto_dataset_from_range(0, 1000, 1, &range)));
    if (range != NULL &&
        answered(ditto_strategy_iterate(strategy, range, &OPTIONS(input, .global_batch = 6), &iterator)) &&
        iterator != NULL) {
        REQUIRE(answered(ditto_strategy_run(strategy, take_batches, iterator)));
        REQUIRE(ditto_iterator_destroy(iterator) == DITTO_OK);
    }
    REQUIRE(ditto_dataset_destroy(range) == DITTO_OK);
    REQUIRE(answered(ditto_strategy_destroy(strategy)));
    return 0;
}

/* Calls of creation, runs and input. futex, exit and rseq are not among them, because the threads of the C
 * library do not work without them. Nor is brk. The kernel never returns an error from it, only the old
 * end of the heap, so the C library takes an error number for an address, and the next malloc crashes. */
static void every_refused_call_leads_to_success_or_an_error(void **state)
{
    static const struct call calls[] = {
        CALL(sched_getaffinity),
        CALL(sched_setaffinity),
        CALL(mbind),
        CALL(get_mempolicy),
        CALL(set_mempolicy),
        CALL(move_pages),
        CALL(membarrier),
        CALL(getcpu),
        CALL(madvise),
        CALL(mprotect),
        CALL(mmap),
        CALL(munmap),
        CALL(clone),
        CALL(clone3),
        CALL(prctl),
        CALL(sched_yield),
        CALL(nanosleep),
        CALL(openat),
        CALL(clock_nanosleep),
        CALL(newfstatat),
        CALL(readlinkat),
        CALL(getdents64),
        CALL(faccessat),
        CALL(prlimit64),
        CALL(sysinfo),
        CALL(uname),
        CALL(mremap),
        CALL(read),
        CALL(lseek),
        CALL(fcntl),
        CALL(rt_sigprocmask),
        CALL(getrandom),
        CALL(gettid),
        CALL(set_robust_list),
    };
    if (SANITIZED)
        skip(); /* sanitizers make these calls themselves */
    for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++)
        for (int i = 0; i < ERROR_NUMBERS; i++) {
            struct refusal refusal = { calls[k], error_numbers[i] };
            int code = in_child(one_call_refused, &refusal, 90);
            if (code == 77)
                skip();
            if (code != 0)
                fail_msg("%s refused with %d: exit %d", calls[k].name, error_numbers[i], code);
        }
}

/* -- A process without /proc and /sys -- */

static int empty_root(void *folder)
{
    ditto_strategy *strategy = NULL;
    ditto_limits limits = DITTO_LIMITS_INIT;
    if (chroot(folder) != 0 || chdir("/") != 0)
        return 77;
    REQUIRE(ditto_limits_read(&limits) == DITTO_OK);
    REQUIRE(limits.numa_balancing == -1 && limits.huge_pages == DITTO_HUGE_PAGES_UNKNOWN);
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 3), &strategy) ==
            DITTO_OK);
    REQUIRE(ditto_strategy_run(strategy, sum, NULL) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    return 0;
}

static void a_process_without_proc_and_sys_has_replicas(void **state)
{
    char folder[SCRATCH_NAME];
    scratch_name(folder, "empty");
    if (SANITIZED)
        skip();
    assert_non_null(mkdtemp(folder));
    int code = in_child(empty_root, folder, 90);
    rmdir(folder);
    if (code == 77)
        skip(); /* only root may call chroot */
    assert_int_equal(code, 0);
}

/* -- The error records of refused memory -- */

static ditto_status allocate(ditto_replica *self, void *bytes)
{
    void *memory;
    return ditto_alloc(self, *(size_t *)bytes, 0, &memory);
}

static int memory_refused(void *argument)
{
    const struct refusal *refusal = argument;
    size_t bytes = (size_t)1 << 30;
    ditto_strategy *strategy;
    ditto_queue *queue;
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 1), &strategy) ==
            DITTO_OK);
    if (!refuse_system_calls_with(&refusal->call.number, 1, refusal->error_number))
        return 77;
    REQUIRE(ditto_strategy_run(strategy, allocate, &bytes) == DITTO_ERR_NO_MEMORY);
    REQUIRE(ditto_last_error()->system_errno == refusal->error_number);
    REQUIRE(strstr(ditto_last_error()->message, strerror(refusal->error_number)) != NULL);
    REQUIRE(ditto_queue_create(&OPTIONS(queue, .payload_bytes = 1 << 20), &queue) == DITTO_ERR_NO_MEMORY);
    REQUIRE(ditto_last_error()->system_errno == refusal->error_number);
    return 0;
}

static void a_refused_mapping_keeps_its_error_number(void **state)
{
    static const int numbers[] = { EPERM, ENOMEM, EAGAIN };
    if (SANITIZED)
        skip();
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct refusal refusal = { CALL(mmap), numbers[i] };
        expect_success(memory_refused, &refusal);
    }
}

/* Memory of the new strategy is refused. */
static int malloc_refused(void *unused)
{
    static const uint32_t call = SYS_mmap;
    ditto_strategy *strategy;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    options.num_replicas = 1; /* a refused thread would give another error */
    if (!refuse_system_calls_with(&call, 1, ENOMEM))
        return 77;
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy) == DITTO_ERR_NO_MEMORY);
    REQUIRE(ditto_last_error()->system_errno == ENOMEM);
    return 0;
}

static ditto_status ignore_row(const ditto_tensor *row, void *unused)
{
    return DITTO_OK;
}

/* The record has an errno also if the library itself made no system call that failed: malloc refuses more
 * bytes than an address space has. */
static void an_error_of_no_memory_always_has_an_error_number(void **state)
{
    ditto_dataset *range, *batches;
    if (SANITIZED)
        skip();
    expect_success(malloc_refused, NULL);
    assert_ok(ditto_dataset_from_range(0, 10, 1, &range));
    assert_ok(ditto_dataset_batch(range, (uint64_t)1 << 56, 1, &batches));
    assert_status(ditto_dataset_reduce(batches, ignore_row, NULL, 0), DITTO_ERR_NO_MEMORY);
    assert_int_equal(ditto_last_error()->system_errno, ENOMEM);
    /* The message of an error that is recorded with an errno ends with the text of the errno. */
    assert_null(strstr(ditto_last_error()->message, strerror(ENOMEM)));
    assert_ok(ditto_dataset_destroy(batches));
    assert_ok(ditto_dataset_destroy(range));
}

/* A thread is refused with EINVAL, and stack_bytes is not set. The error must not be DITTO_ERR_RANGE, which
 * would say that stack_bytes is not possible, and its message must not advise another stack. */
static int threads_refused(void *unused)
{
    static const uint32_t calls[] = { SYS_clone, SYS_clone3 };
    ditto_strategy *strategy;
    if (!refuse_system_calls_with(calls, 2, EINVAL))
        return 77;
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 3), &strategy) ==
            DITTO_ERR_SYSTEM);
    REQUIRE(ditto_last_error()->system_errno == EINVAL);
    REQUIRE(strstr(ditto_last_error()->message, "could not be started") != NULL);
    REQUIRE(strstr(ditto_last_error()->message, "stack") == NULL);
    return 0;
}

static void a_refused_thread_with_the_usual_stack_is_not_blamed_on_the_stack(void **state)
{
    if (SANITIZED)
        skip();
    expect_success(threads_refused, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_sched_getaffinity_is_an_error_that_names_it),
        cmocka_unit_test(a_refused_sched_setaffinity_is_an_error_that_proposes_unpinned_replicas),
        cmocka_unit_test(every_refused_call_leads_to_success_or_an_error),
        cmocka_unit_test(a_process_without_proc_and_sys_has_replicas),
        cmocka_unit_test(a_refused_mapping_keeps_its_error_number),
        cmocka_unit_test(an_error_of_no_memory_always_has_an_error_number),
        cmocka_unit_test(a_refused_thread_with_the_usual_stack_is_not_blamed_on_the_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
