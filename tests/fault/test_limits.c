/* tests/fault/test_limits.c - limits of the operating system: refused threads, bindings, address space and
 * mbind, children of fork, and what remains after many strategies have been created and destroyed. It also
 * has a late inner run and wrong options of strategies. */
#include "base/errors/status.h"
#include "fault/late.h"
#include "replicas/memory/arena.h"
#include "replicas/team/turn.h"
#include "support/support.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static ditto_status sum_a_block(ditto_replica *self, void *argument)
{
    size_t count = *(size_t *)argument;
    void *memory;
    DITTO_TRY(ditto_alloc(self, count * sizeof(float), 0, &memory));
    for (size_t i = 0; i < count; i++)
        ((float *)memory)[i] = 1.0f;
    DITTO_TRY(ditto_all_reduce(self, memory, memory, count, DITTO_F32, DITTO_SUM, NULL));
    if (((float *)memory)[count - 1] != (float)ditto_num_replicas(self))
        return ditto_fail(self, 1, "wrong sum");
    return ditto_free(self, memory);
}

/* -- Threads are refused -- */

static int threads_refused(void *unused)
{
    ditto_strategy *strategy = NULL;
    struct rlimit few = { 6, 6 };
    /* RLIMIT_NPROC does not apply to root. */
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 77;
    REQUIRE(setrlimit(RLIMIT_NPROC, &few) == 0);
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 64), &strategy) ==
            DITTO_ERR_SYSTEM);
    REQUIRE(ditto_last_error()->system_errno == EAGAIN);
    REQUIRE(strstr(ditto_last_error()->message, "RLIMIT_NPROC") != NULL);
    REQUIRE(strategy == NULL && has_threads(1));
    return 0;
}

static void refused_threads_are_an_error_and_no_thread_remains(void **state)
{
    if (SANITIZED)
        skip();
    int code = in_child(threads_refused, NULL, 180);
    if (code == 77)
        skip();
    assert_int_equal(code, 0);
}

/* -- Threads that cannot be bound -- */

/* The name of the thread whose binding is refused, or "". */
static char unbindable[16];

/* Replaces the function of the C library, because the linker finds this definition first. */
int sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *mask)
{
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (unbindable[0] != '\0' && strcmp(unbindable, name) == 0) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_sched_setaffinity, pid, bytes, mask);
}

static int helper_not_bound(void *unused)
{
    ditto_topology *topology;
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    ditto_placement *placement;
    uint32_t pus[16], sizes[1] = { 16 };
    REQUIRE(ditto_topology_create(NULL, &topology) == DITTO_OK &&
            ditto_topology_count(topology, &counts) == DITTO_OK);
    for (uint32_t i = 0; i < 16; i++) {
        ditto_pu pu;
        REQUIRE(ditto_topology_pu(topology, i % counts.pus, &pu) == DITTO_OK);
        pus[i] = pu.number;
    }
    ditto_placement_options options = OPTIONS(placement, .pus = pus, .num_pus = 16, .set_sizes = sizes,
                                              .num_replicas = 1, .flags = DITTO_PLACEMENT_SHARE);
    REQUIRE(ditto_placement_create(topology, &options, &placement) == DITTO_OK);
    strcpy(unbindable, "ditto-r0.1");
    /* The refusal may be noticed at any time while later helpers are started, so it is tried often. */
    long threads = 1;
    for (int i = 0; i < 100; i++) {
        ditto_strategy *strategy = NULL;
        REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .placement = placement),
                                      &strategy) == DITTO_ERR_SYSTEM);
        REQUIRE(ditto_last_error()->system_errno == EINVAL && strategy == NULL);
        /* In a child process the thread sanitizer starts threads of its own when the first thread begins. */
        if (i == 0)
            threads = SANITIZED ? count_threads() : 1;
        REQUIRE(count_threads() <= threads);
    }
    return 0;
}

static void helpers_that_cannot_be_bound_are_an_error_and_no_thread_remains(void **state)
{
    assert_int_equal(in_child(helper_not_bound, NULL, 240), 0);
}

/* Finds the line of a replica in the description of a strategy, and returns true if it has the text. */
static bool line_says(ditto_strategy *strategy, uint32_t replica, const char *text)
{
    char table[4096], begin[16];
    snprintf(begin, sizeof begin, "\n%7u  ", replica);
    if (ditto_strategy_describe(strategy, table, sizeof table, NULL) != DITTO_OK)
        return false;
    char *line = strstr(table, begin);
    if (line == NULL)
        return false;
    line[1 + strcspn(line + 1, "\n")] = '\0';
    return strstr(line, text) != NULL;
}

/* The kernel refuses PUs that are not in the cpuset with EINVAL, too. */
static int caller_not_bound(void *unused)
{
    ditto_strategy *strategy, *other = NULL;
    cpu_set_t allowed;
    size_t elements = 100;
    REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 2), &strategy) ==
            DITTO_OK);
    REQUIRE(!line_says(strategy, 0, "moved"));
    pthread_getname_np(pthread_self(), unbindable, sizeof unbindable);
    for (int i = 0; i < 2; i++) {
        REQUIRE(ditto_strategy_run(strategy, sum_a_block, &elements) == DITTO_OK);
        REQUIRE(ditto_strategy_scope_enter(strategy) == DITTO_OK);
        REQUIRE(ditto_strategy_run(strategy, sum_a_block, &elements) == DITTO_OK);
        REQUIRE(ditto_strategy_scope_leave(strategy) == DITTO_OK);
    }
    if (CPU_COUNT(&allowed) > 1)
        REQUIRE(line_says(strategy, 0, "1 thread moved from its PU") && !line_says(strategy, 1, "moved"));
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, NULL, &other) == DITTO_ERR_SYSTEM && other == NULL);
    unbindable[0] = '\0';
    REQUIRE(!line_says(strategy, 0, "moved"));
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    return 0;
}

static void runs_go_on_when_the_callers_pu_is_taken(void **state)
{
    assert_int_equal(in_child(caller_not_bound, NULL, 60), 0);
}

static ditto_status do_range(size_t begin, size_t end, uint32_t device, void *unused)
{
    return DITTO_OK;
}

static ditto_status loop_on_helpers(ditto_replica *self, void *unused)
{
    return ditto_parallel_for(self, do_range, NULL, 0, 2, 1, DITTO_SCHEDULE_STATIC);
}

/* The kernel moves threads in the same way when their PU is taken from the cpuset. */
static void a_description_says_where_moved_threads_are(void **state)
{
    ditto_replica_info before = DITTO_REPLICA_INFO_INIT, after = DITTO_REPLICA_INFO_INIT;
    cpu_set_t allowed, other;
    size_t pu = 0;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    ditto_strategy *strategy = make_wide_strategy(2, 2, &OPTIONS(strategy, .wait = DITTO_WAIT_PASSIVE));
    for (uint32_t device = 0; device < 2 && CPU_COUNT(&allowed) > 1; device++) {
        assert_ok(ditto_strategy_replica_info(strategy, 1, device, &before));
        assert_int_equal(before.cpu, before.planned.pu.number);
        while (!CPU_ISSET(pu, &allowed) || pu == (size_t)before.cpu)
            pu = (pu + 1) % CPU_SETSIZE;
        CPU_ZERO(&other);
        CPU_SET(pu, &other);
        assert_int_equal(sched_setaffinity(before.thread_id, sizeof other, &other), 0);
        /* A sleeping thread is on its old PU until it is woken. */
        for (int i = 0; i < 100000 && after.cpu != (int32_t)pu; i++) {
            assert_ok(ditto_strategy_run(strategy, loop_on_helpers, NULL));
            assert_ok(ditto_strategy_replica_info(strategy, 1, device, &after));
        }
        assert_int_equal(after.cpu, pu);
        assert_true(line_says(strategy, 1,
                              device == 0 ? "1 thread moved from its PU" : "2 threads moved from their PUs"));
        assert_false(line_says(strategy, 0, "moved"));
    }
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- Address space is refused -- */

static int address_space_refused(void *unused)
{
    ditto_strategy *strategy;
    size_t huge = (size_t)1 << 28;
    /* Enough for a strategy of two replicas and their stacks, but not for a block of 1 GiB. */
    struct rlimit limit = { mapped_bytes() + ((size_t)200 << 20), RLIM_INFINITY };
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = 2);
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy) == DITTO_OK);
    REQUIRE(ditto_strategy_run(strategy, sum_a_block, &huge) == DITTO_ERR_NO_MEMORY);
    REQUIRE(strstr(ditto_last_error()->message, "RLIMIT_AS") != NULL);
    size_t small = 1000;
    REQUIRE(ditto_strategy_run(strategy, sum_a_block, &small) == DITTO_OK); /* the strategy still works */
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    options.num_replicas = 500; /* their stacks and arenas exceed the limit */
    ditto_status status = ditto_strategy_create(DITTO_MIRRORED, &options, &strategy);
    REQUIRE(status == DITTO_ERR_NO_MEMORY || status == DITTO_ERR_SYSTEM);
    REQUIRE(has_threads(1));
    return 0;
}

static void refused_address_space_is_an_error_and_no_thread_remains(void **state)
{
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(address_space_refused, NULL, 180), 0);
}

/* -- Memory for the state of inner runs is refused -- */

enum { ATTEMPTS = 20, LAST_REPLICA = 2 };

/* The number of allocations after which the next one is refused on this thread, or -1. */
static _Thread_local int allowed = -1;
static _Thread_local bool was_refused;

/* The linker replaces this function of the library (meson.build). */
ditto_status __real_dti_replica_alloc(struct dti_replica *r, size_t bytes, size_t alignment, void **out);
ditto_status __wrap_dti_replica_alloc(struct dti_replica *r, size_t bytes, size_t alignment, void **out);
ditto_status __wrap_dti_replica_alloc(struct dti_replica *r, size_t bytes, size_t alignment, void **out)
{
    if (allowed >= 0 && allowed-- == 0) {
        was_refused = true;
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "the test refuses %zu bytes", bytes);
    }
    return __real_dti_replica_alloc(r, bytes, alignment, out);
}

static ditto_status no_elements(void *out, size_t first, size_t count, void *user)
{
    return DITTO_OK;
}

/* A sum whose first allocation is refused. The factors stay as they are, and are the caller's. */
static ditto_status sum_without_memory(ditto_replica *self, void *user)
{
    enum { COUNT = 2000 };
    const bool *with = user;
    double *x = malloc(COUNT * sizeof *x), sum;
    for (int i = 0; i < COUNT; i++)
        x[i] = 1;
    allowed = 0;
    ditto_status status = *with ? ditto_block_sum_with(self, no_elements, NULL, &sum, COUNT, DITTO_F64, NULL)
                                : ditto_block_dot(self, x, x, &sum, COUNT, DITTO_F64, NULL);
    allowed = -1;
    bool is_kept = x[0] == 1 && x[COUNT - 1] == 1;
    free(x);
    return is_kept ? status : ditto_fail(self, 1, "a factor was changed");
}

static void sums_without_memory_are_an_error(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    for (int i = 0; i < 2; i++) {
        bool with = i == 1;
        was_refused = false;
        assert_status(ditto_strategy_run(strategy, sum_without_memory, &with), DITTO_ERR_NO_MEMORY);
        assert_message("the test refuses");
        assert_true(was_refused);
    }
    assert_ok(ditto_strategy_destroy(strategy));
}

struct refused_state {
    ditto_strategy *strategy;
    struct report report;
    int allowed; /* how many allocations of the last replica succeed */
    _Atomic bool was_refused;
};

static ditto_status do_nothing(ditto_replica *self, void *unused)
{
    return DITTO_OK;
}

/* Handles the errors of inner runs. */
static ditto_status try_inner_runs(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                   void *user, ditto_value **result)
{
    struct refused_state *c = user;
    ditto_status status = ditto_strategy_run(strategy, do_nothing, NULL);
    EXPECT(&c->report, status == DITTO_OK || status == DITTO_ERR_NO_MEMORY);
    return DITTO_OK;
}

static ditto_status merge_with_refusals(ditto_replica *self, void *argument)
{
    struct refused_state *c = argument;
    bool is_last = ditto_replica_id(self) == LAST_REPLICA;
    for (int i = 0; i < ATTEMPTS; i++) {
        allowed = is_last ? c->allowed : -1;
        was_refused = false;
        ditto_status status = ditto_merge_call(self, try_inner_runs, c, NULL, 0, NULL);
        allowed = -1;
        if (is_last)
            atomic_store(&c->was_refused, was_refused);
        DITTO_TRY(status);
    }
    return DITTO_OK;
}

static uint64_t arena_bytes(const ditto_strategy *strategy)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i <= LAST_REPLICA; i++)
        bytes += dti_arena_inspect(dti_team_replica(dti_team_of(strategy), i)->arena).mapped_bytes;
    return bytes;
}

static void attempts_to_make_the_state_of_inner_runs_leak_nothing(void **state)
{
    /* With several groups of near replicas the state has more parts. */
    ditto_tuning tuning = { .struct_size = sizeof tuning, .near_replicas = 2 };
    struct refused_state c = { .strategy = make_wide_strategy(LAST_REPLICA + 1, 2,
                                                              &OPTIONS(strategy, .tuning = &tuning)) };
    uint64_t before = 0;
    do {
        run_all(c.strategy, merge_with_refusals, &c, &c.report);
        if (c.allowed++ == 0)
            before = arena_bytes(c.strategy);
    } while (atomic_load(&c.was_refused));
    print_message(
        "  each of %d allocations was refused %d times: the arenas have %llu KiB, and had %llu KiB\n",
        c.allowed - 1, ATTEMPTS, (unsigned long long)arena_bytes(c.strategy) >> 10,
        (unsigned long long)before >> 10);
    assert_true(c.allowed > 5);
    assert_true(arena_bytes(c.strategy) <= before + before / 2);
    assert_ok(ditto_strategy_destroy(c.strategy));
}

/* -- mbind is refused, as in default containers -- */

static int mbind_refused(void *unused)
{
    static const uint32_t container[] = { SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy, SYS_move_pages,
                                          SYS_membarrier };
    ditto_strategy *strategy;
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    size_t count = 100000;
    if (!refuse_system_calls(container, sizeof container / sizeof container[0]))
        return 77;
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 3), &strategy) ==
            DITTO_OK);
    REQUIRE(ditto_strategy_run(strategy, sum_a_block, &count) == DITTO_OK);
    REQUIRE(ditto_strategy_replica_info(strategy, 1, 0, &info) == DITTO_OK);
    REQUIRE(info.binding == DITTO_BINDING_FIRST_TOUCH);
    REQUIRE(info.memory_node == -1); /* unknown, because move_pages is refused, too */
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    return 0;
}

static void refused_mbind_becomes_first_touch_and_is_reported(void **state)
{
    int code = in_child(mbind_refused, NULL, 60);
    if (code == 77)
        skip();
    assert_int_equal(code, 0);
}

/* -- Children of fork -- */

static ditto_strategy *before_fork;
static ditto_variable *variable_before_fork;
static ditto_iterator *iterator_before_fork;

static int use_after_fork(void *unused)
{
    ditto_strategy *own;
    size_t count = 10000;
    double value;
    REQUIRE(ditto_strategy_run(before_fork, sum_a_block, &count) == DITTO_ERR_FORKED);
    REQUIRE(ditto_strategy_scope_enter(before_fork) == DITTO_ERR_FORKED);
    REQUIRE(ditto_variable_read(variable_before_fork, &value, sizeof value) == DITTO_ERR_FORKED);
    REQUIRE(ditto_iterator_destroy(iterator_before_fork) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(before_fork) == DITTO_OK); /* joins no threads */
    REQUIRE(ditto_variable_destroy(variable_before_fork) == DITTO_OK);
    if (SANITIZED)
        return 0; /* sanitizers allow no threads in such a child */
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, NULL, &own) == DITTO_OK);
    REQUIRE(ditto_strategy_run(own, sum_a_block, &count) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(own) == DITTO_OK);
    return 0;
}

static void a_strategy_cannot_be_used_in_a_child_process(void **state)
{
    size_t count = 10000;
    ditto_tensor scalar = { .dtype = DITTO_F64 };
    float row[4] = { 0 };
    ditto_tensor rows = { .data = row, .dtype = DITTO_F32, .rank = 1, .shape = { 4 } };
    ditto_dataset *dataset, *forever;
    before_fork = make_strategy(3, NULL);
    assert_ok(ditto_variable_create(before_fork, &scalar, NULL, &variable_before_fork));
    assert_ok(ditto_dataset_from_arrays(&rows, 1, &dataset));
    assert_ok(ditto_dataset_repeat(dataset, DITTO_REPEAT_FOREVER, &forever));
    assert_ok(ditto_strategy_iterate(before_fork, forever, &OPTIONS(input, .global_batch = 2),
                                     &iterator_before_fork));
    assert_int_equal(in_child(use_after_fork, NULL, 60), 0);
    assert_ok(ditto_strategy_run(before_fork, sum_a_block, &count)); /* it still works in the parent */
    assert_ok(ditto_iterator_destroy(iterator_before_fork));
    assert_ok(ditto_variable_destroy(variable_before_fork));
    assert_ok(ditto_dataset_destroy(forever));
    assert_ok(ditto_dataset_destroy(dataset));
    assert_ok(ditto_strategy_destroy(before_fork));
}

static int fork_in_scope(void *unused)
{
    ditto_strategy *own;
    size_t count = 10000;
    REQUIRE(ditto_strategy_destroy(before_fork) == DITTO_OK);
    if (SANITIZED)
        return 0;
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, NULL, &own) == DITTO_OK);
    REQUIRE(ditto_strategy_scope_leave(own) == DITTO_ERR_CONTEXT); /* the scope is of another strategy */
    REQUIRE(ditto_strategy_scope_enter(own) == DITTO_OK);
    REQUIRE(ditto_strategy_run(own, sum_a_block, &count) == DITTO_OK);
    REQUIRE(ditto_strategy_scope_leave(own) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(own) == DITTO_OK);
    return 0;
}

static void a_scope_of_the_parent_does_not_disturb_the_child(void **state)
{
    before_fork = make_strategy(2, NULL);
    assert_ok(ditto_strategy_scope_enter(before_fork));
    assert_int_equal(in_child(fork_in_scope, NULL, 60), 0);
    assert_ok(ditto_strategy_scope_leave(before_fork));
    assert_ok(ditto_strategy_destroy(before_fork));
}

/* Replica 0 forks. The child has only the thread of this replica. */
static ditto_status fork_inside(ditto_replica *self, void *argument)
{
    int *exit_code = argument;
    if (ditto_replica_id(self) != 0)
        return ditto_barrier(self, NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        ditto_status first = ditto_barrier(self, NULL);
        _exit(first == DITTO_ERR_FORKED && ditto_barrier(self, NULL) < 0 ? 0 : 1);
    }
    waitpid(child, exit_code, 0);
    return ditto_barrier(self, NULL);
}

static void collectives_in_a_child_of_a_function_return_forked(void **state)
{
    ditto_strategy *s = make_strategy(3, NULL);
    int exit_code = -1;
    assert_ok(ditto_strategy_run(s, fork_inside, &exit_code));
    assert_int_equal(exit_code, 0);
    assert_ok(ditto_strategy_destroy(s));
}

/* The leader forks in its part of a loop. The child has none of the helpers that the loop waits for. */
static ditto_status fork_in_the_leaders_share(size_t begin, size_t end, uint32_t device, void *child)
{
    if (device == 0)
        *(pid_t *)child = fork();
    return DITTO_OK;
}

static ditto_status loop_over_a_fork(ditto_replica *self, void *argument)
{
    pid_t child = -1;
    ditto_status status = ditto_parallel_for(self, fork_in_the_leaders_share, &child, 0, 64, 1,
                                             DITTO_SCHEDULE_STATIC);
    if (child == 0)
        _exit(status == DITTO_ERR_FORKED && ditto_join(self) == DITTO_ERR_FORKED ? 0 : 1);
    *(int *)argument = -1;
    if (child < 0)
        return ditto_fail(self, 1, "fork failed");
    pid_t ended = 0;
    for (int i = 0; i < 6000 && (ended = waitpid(child, argument, WNOHANG)) == 0; i++)
        sleep_ms(10);
    if (ended == 0)
        kill(child, SIGKILL);
    return status;
}

static void a_loop_whose_function_forks_ends_in_the_child(void **state)
{
    int exit_code;
    for (uint32_t devices = 1; devices <= 3; devices++) {
        ditto_strategy *s = make_wide_strategy(1, devices, NULL);
        assert_ok(ditto_strategy_run(s, loop_over_a_fork, &exit_code));
        assert_int_equal(exit_code, 0);
        assert_ok(ditto_strategy_destroy(s));
    }
}

/* The function of a map forks. In the child it destroys the strategy whose iterator called it. */
static ditto_status destroy_in_a_maps_child(const ditto_tensor *in, const ditto_tensor *out,
                                            ditto_random *random, void *user)
{
    static _Atomic int forked;
    if (atomic_exchange(&forked, 1) != 0)
        return DITTO_OK;
    pid_t child = fork();
    if (child == 0) {
        double number;
        alarm(60);
        ditto_status read = ditto_variable_read(variable_before_fork, &number, sizeof number);
        _exit(read == DITTO_ERR_FORKED && ditto_strategy_destroy(before_fork) == DITTO_OK ? 0 : 1);
    }
    waitpid(child, user, 0);
    return DITTO_OK;
}

static void a_child_of_a_dataset_function_may_destroy_the_strategy(void **state)
{
    float row[4] = { 0 };
    int exit_code = -1;
    bool got = false;
    ditto_tensor scalar = { .dtype = DITTO_F64 };
    ditto_tensor rows = { .data = row, .dtype = DITTO_F32, .rank = 1, .shape = { 4 } };
    ditto_dataset *dataset, *mapped;
    ditto_value *value = NULL;
    before_fork = make_strategy(2, NULL);
    assert_ok(ditto_variable_create(before_fork, &scalar, NULL, &variable_before_fork));
    assert_ok(ditto_dataset_from_arrays(&rows, 1, &dataset));
    assert_ok(ditto_dataset_map(dataset, destroy_in_a_maps_child, &exit_code, NULL, &mapped));
    assert_ok(ditto_strategy_iterate(before_fork, mapped, &OPTIONS(input, .global_batch = 2),
                                     &iterator_before_fork));
    got = ditto_iterator_next(iterator_before_fork, &value) == DITTO_OK;
    assert_true(got);
    assert_ok(ditto_value_destroy(value));
    assert_int_equal(exit_code, 0);
    assert_ok(ditto_iterator_destroy(iterator_before_fork));
    assert_ok(ditto_variable_destroy(variable_before_fork));
    assert_ok(ditto_dataset_destroy(mapped));
    assert_ok(ditto_dataset_destroy(dataset));
    assert_ok(ditto_strategy_destroy(before_fork));
}

/* -- A replica returns after its inner run was given up, and before the outer run ends -- */

static _Atomic int inner_has_begun, inner_was_given_up;

static ditto_status late_in_inner(ditto_replica *self, void *unused)
{
    if (ditto_replica_id(self) == 1)
        atomic_store(&inner_has_begun, 1);
    while (ditto_replica_id(self) == 1 && !atomic_load(&inner_was_given_up))
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status run_inner(ditto_strategy *s, ditto_value *const *arguments, uint32_t count, void *user,
                              ditto_value **result)
{
    ditto_status status = ditto_strategy_run(s, late_in_inner, NULL);
    atomic_store(&inner_was_given_up, 1);
    return status;
}

/* Replica 0 returns last, so that the outer run ends after replica 1 has returned. */
static ditto_status merge_an_inner_run(ditto_replica *self, void *strategy)
{
    ditto_status status = ditto_merge_call(self, run_inner, NULL, NULL, 0, NULL);
    for (int i = 0; ditto_replica_id(self) == 0 && !dti_team_has_left(dti_team_of(strategy), 1) && i < 120000;
         i++)
        sleep_ms(1);
    return status;
}

static void the_message_of_a_late_run_names_no_replica_that_has_returned(void **state)
{
    ditto_strategy *s;
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = 2);
    for (options.run_timeout_ms = 50;; options.run_timeout_ms *= 2) {
        assert_true(options.run_timeout_ms <= LONGEST_LIMIT_MS);
        atomic_store(&inner_has_begun, 0);
        atomic_store(&inner_was_given_up, 0);
        assert_ok(ditto_strategy_create(DITTO_MIRRORED, &options, &s));
        assert_status(ditto_strategy_run(s, merge_an_inner_run, s), DITTO_ERR_TIMED_OUT);
        if (atomic_load(&inner_has_begun))
            break;
        /* On a busy machine the limit passed before the inner run. */
        assert_ok(ditto_strategy_destroy(s));
    }
    assert_message("the last replica returned only after its limit had passed");
    assert_ok(ditto_strategy_destroy(s)); /* not DITTO_ERR_POISONED, because all replicas have returned */
}

/* -- Many strategies, one after the other -- */

/* -- The default strategy cannot be entered -- */

/* The number of calls that this thread may enter before one is refused, or -1. */
static _Thread_local int may_enter = -1;

/* The linker replaces this function of the library (meson.build). */
ditto_status __real_dti_cross_enter(struct dti_team *team, struct dti_frame *frame,
                                    enum dti_caller_binding binding);
ditto_status __wrap_dti_cross_enter(struct dti_team *team, struct dti_frame *frame,
                                    enum dti_caller_binding binding);
ditto_status __wrap_dti_cross_enter(struct dti_team *team, struct dti_frame *frame,
                                    enum dti_caller_binding binding)
{
    if (may_enter >= 0 && may_enter-- == 0)
        return DTI_FAIL(DITTO_ERR_CONTEXT, "the test keeps the thread out");
    return __real_dti_cross_enter(team, frame, binding);
}

static void a_default_strategy_that_cannot_be_entered_leaks_nothing(void **state)
{
    assert_non_null(ditto_get_strategy());
    struct mallinfo2 before = mallinfo2();
    for (int i = 0; i < 100; i++) {
        may_enter = 1; /* the call that makes the thread's team, and not the next one */
        assert_null(ditto_get_replica_context());
        assert_message("the test keeps the thread out");
    }
    assert_int_equal(may_enter, -1);
    if (!SANITIZED)
        assert_true(mallinfo2().uordblks < before.uordblks + 4096);
    assert_non_null(ditto_get_replica_context());
}

static void strategies_are_created_and_destroyed_without_growth(void **state)
{
    int rounds = SANITIZED ? 100 : 1000;
    long threads = count_threads(), mappings = 0, resident = 0;
    size_t count = 5000;
    for (int i = 0; i < rounds; i++) {
        ditto_strategy *strategy = make_strategy(8, NULL);
        if (i % 10 == 0)
            assert_ok(ditto_strategy_run(strategy, sum_a_block, &count));
        assert_ok(ditto_strategy_destroy(strategy));
        /* By now jemalloc and the C library have the memory that they keep. */
        if (i == rounds / 10) {
            mappings = count_mappings();
            resident = resident_kib();
        }
    }
    print_message("  before: %ld threads, %ld mappings, %ld KiB; after %d strategies: %ld, %ld, %ld KiB\n",
                  threads, mappings, resident, rounds - rounds / 10, count_threads(), count_mappings(),
                  resident_kib());
    assert_true(has_threads(threads));
    if (!SANITIZED) {
        assert_true(count_mappings() <= mappings + 2);
        assert_true(resident_kib() <= resident + 512);
    }
}

static void wrong_options_are_refused(void **state)
{
    ditto_strategy *strategy = NULL;
    uint32_t nowhere[] = { 100000 };
    assert_status(ditto_strategy_create(DITTO_MIRRORED, NULL, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_strategy_create((ditto_strategy_kind)9, NULL, &strategy), DITTO_ERR_RANGE);
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = 1025);
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy), DITTO_ERR_RANGE);
    options.num_replicas = 0;
    options.caller = (ditto_caller)7;
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy), DITTO_ERR_RANGE);
    options.caller = DITTO_CALLER_DEFAULT;
    ditto_placement_options placing = OPTIONS(placement, .pus = nowhere, .num_pus = 1);
    options.placement_options = &placing;
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy), DITTO_ERR_RANGE);
    placing.struct_size = 0;
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy), DITTO_ERR_INVALID);
    assert_message("ditto_placement_options.struct_size is 0");
    options.num_replicas = 1;
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy), DITTO_ERR_INVALID);
    assert_message("num_replicas and placement_options are both set");
    placing.struct_size = sizeof placing;
    options.num_replicas = 0;
    options.fastest_kinds = 1;
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy), DITTO_ERR_INVALID);
    assert_message("fastest_kinds and placement_options.pus are both set");
    options.fastest_kinds = 0;
    options.placement_options = NULL;
    options.num_replicas = 2;
    options.stack_bytes = 1;
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy), DITTO_ERR_RANGE);
    assert_message("stack_bytes = 1 is less than");
    options.stack_bytes = 0;
    options.struct_size = 1;
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy), DITTO_ERR_INVALID);
    setenv("DITTO_TIMEOUT_MS", "soon", 1);
    assert_status(ditto_strategy_create(DITTO_MIRRORED, NULL, &strategy), DITTO_ERR_INVALID);
    assert_message("DITTO_TIMEOUT_MS");
    unsetenv("DITTO_TIMEOUT_MS");
    assert_null(strategy);
    assert_status(ditto_strategy_run(NULL, sum_a_block, NULL), DITTO_ERR_INVALID);
    assert_ok(ditto_strategy_destroy(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_threads_are_an_error_and_no_thread_remains),
        cmocka_unit_test(helpers_that_cannot_be_bound_are_an_error_and_no_thread_remains),
        cmocka_unit_test(runs_go_on_when_the_callers_pu_is_taken),
        cmocka_unit_test(a_description_says_where_moved_threads_are),
        cmocka_unit_test(refused_address_space_is_an_error_and_no_thread_remains),
        cmocka_unit_test(sums_without_memory_are_an_error),
        cmocka_unit_test(attempts_to_make_the_state_of_inner_runs_leak_nothing),
        cmocka_unit_test(refused_mbind_becomes_first_touch_and_is_reported),
        cmocka_unit_test(a_strategy_cannot_be_used_in_a_child_process),
        cmocka_unit_test(a_scope_of_the_parent_does_not_disturb_the_child),
        cmocka_unit_test(collectives_in_a_child_of_a_function_return_forked),
        cmocka_unit_test(a_loop_whose_function_forks_ends_in_the_child),
        cmocka_unit_test(a_child_of_a_dataset_function_may_destroy_the_strategy),
        cmocka_unit_test(the_message_of_a_late_run_names_no_replica_that_has_returned),
        cmocka_unit_test(a_default_strategy_that_cannot_be_entered_leaks_nothing),
        cmocka_unit_test(strategies_are_created_and_destroyed_without_growth),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
