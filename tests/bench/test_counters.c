/* tests/bench/test_counters.c - the events that ditto-bench counts: their names, their groups and scaled
 * counts (with system calls of the test's own), and what the kernel really counts. */
#include "counters.h"
#include "support/support.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static char why[512];

/* -- names -- */

static void all_default_events_are_known(void **state)
{
    struct event event[MOST_EVENTS];
    uint32_t count = events_of_list("", event, why, sizeof why);
    assert_int_equal(count, 13);
    assert_string_equal(event[0].name, "cycles");
    assert_true(event_is_hardware(&event[0]));
    assert_string_equal(event[12].name, "page-faults");
    assert_false(event_is_hardware(&event[12]));
}

static void an_unknown_event_is_named(void **state)
{
    struct event event[MOST_EVENTS];
    assert_int_equal(events_of_list("cycles,no-such-event", event, why, sizeof why), 0);
    assert_non_null(strstr(why, "\"no-such-event\" is no event"));
}

static void a_list_has_a_limit(void **state)
{
    struct event event[MOST_EVENTS];
    char list[(MOST_EVENTS + 1) * 7 + 1] = "";
    for (int i = 0; i <= MOST_EVENTS; i++)
        strcat(list, "cycles,");
    assert_int_equal(events_of_list(list, event, why, sizeof why), 0);
    assert_non_null(strstr(why, "more than 32 events"));
    list[MOST_EVENTS * 7] = '\0';
    assert_int_equal(events_of_list(list, event, why, sizeof why), MOST_EVENTS);
}

static void a_number_is_a_raw_event(void **state)
{
    struct event event[MOST_EVENTS];
    assert_int_equal(events_of_list("r04d2", event, why, sizeof why), 1);
    assert_int_equal(event[0].attr.type, PERF_TYPE_RAW);
    assert_int_equal(event[0].attr.config, 0x04d2);
    assert_int_equal(events_of_list("rzz", event, why, sizeof why), 0);
}

static void hardware_events_are_in_groups_of_four(void **state)
{
    struct event event[MOST_EVENTS];
    const char *list = "task-clock,cycles,instructions,branch-misses,page-faults,L1d-misses,L2-misses";
    const uint32_t group[] = { 0, 1, 1, 1, 0, 1, 2 };
    assert_int_equal(events_of_list(list, event, why, sizeof why), 7);
    for (int i = 0; i < 7; i++)
        assert_int_equal(event[i].group, group[i]);
}

/* Encodes events of processors that need not be this one. The numbers are those of the vendors' manuals. */
static void libpfm_knows_the_events_of_processors(void **state)
{
#ifdef WITH_PFM
    static const struct {
        const char *name;
        uint64_t config;
    } events[] = {
        { "spr::MEM_LOAD_L3_HIT_RETIRED:XSNP_FWD", 0x04d2 },
        { "spr::INST_RETIRED:ANY_P", 0x00c0 },
        { "amd64_fam19h_zen4::ANY_DATA_CACHE_FILLS_FROM_SYSTEM:LOCAL_CCX", 0x0244 },
        { "amd64_fam19h_zen4::RETIRED_INSTRUCTIONS", 0x00c0 },
    };
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        struct event event[MOST_EVENTS];
        assert_int_equal(events_of_list(events[i].name, event, why, sizeof why), 1);
        assert_int_equal(event[0].attr.config & 0xffff, events[i].config);
        assert_true(event_is_hardware(&event[0]));
    }
#else
    skip(); /* libpfm4 was not found when this was built */
#endif
}

/* -- counts, with system calls of this test -- */

/* The group that each file belongs to, and how often each file was read. File 100 + i is that of the i-th
 * open. */
static int leader_of[64], reads[64], num_open, num_closed;
static int kernel_is_refused, hardware_error;
static bool is_on[64];

static int fake_open(struct perf_event_attr *attr, pid_t thread, int group_fd)
{
    if (hardware_error != 0 && attr->type != PERF_TYPE_SOFTWARE)
        return hardware_error;
    if (kernel_is_refused && !attr->exclude_kernel)
        return -EACCES;
    int file = num_open++;
    leader_of[file] = group_fd < 0 ? file : group_fd - 100;
    reads[file] = 0;
    return 100 + file;
}

/* Member k of the group that file f leads counts 1000 * f + 10 * (k + 1) between the first and the second
 * reading. The first group counts in half of the time, and the second never. */
static long fake_read(int fd, void *to, size_t size)
{
    uint64_t out[3 + MOST_EVENTS] = { 0 };
    int leader = fd - 100;
    bool again = reads[leader]++ > 0;
    out[1] = again ? 1100 : 100;
    out[2] = again ? (leader == 0 ? 550u : leader == 4 ? 50u : 1050u) : 50;
    for (int file = 0; file < num_open; file++)
        if (leader_of[file] == leader) {
            out[3 + out[0]] = 7 + (again && leader != 4
                                       ? 1000u * (unsigned)leader + 10u * ((unsigned)out[0] + 1)
                                       : 0);
            out[0]++;
        }
    memcpy(to, out, size < sizeof out ? size : sizeof out);
    return (long)((3 + out[0]) * sizeof out[0]);
}

static void fake_control(int fd, bool on)
{
    is_on[fd - 100] = on;
}

static void fake_close(int fd)
{
    num_closed++;
}

static void use_fake_calls(int refuses_kernel, int error)
{
    static const struct counter_calls fake = { fake_open, fake_read, fake_control, fake_close };
    num_open = num_closed = 0;
    kernel_is_refused = refuses_kernel;
    hardware_error = error;
    counters_use(&fake);
}

/* What counters_say_missing writes. */
static const char *missing(void)
{
    static char text[1024];
    memset(text, 0, sizeof text);
    FILE *to = fmemopen(text, sizeof text - 1, "w");
    assert_non_null(to);
    counters_say_missing(to);
    fclose(to);
    return text;
}

static struct counts count_once(void)
{
    struct counts counts;
    counters_find_threads();
    counters_start_own();
    assert_true(num_open == 0 || is_on[0]);
    counters_stop_own(&counts);
    assert_true(num_open == 0 || !is_on[0]);
    return counts;
}

static void counts_are_scaled_by_the_time_in_which_they_were_counted(void **state)
{
    use_fake_calls(0, 0);
    assert_true(counters_choose("cycles,instructions,branch-misses,L1d-misses,L2-misses,page-faults", why,
                                sizeof why));
    struct counts counts = count_once();
    assert_int_equal(num_open, 6);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(counts_scaled(&counts, i) == 2 * 10.0 * (i + 1)); /* counted in half of the time */
    assert_true(counts_scaled(&counts, 4) == UNCOUNTED); /* in a group that never got a counter */
    assert_true(counts_scaled(&counts, 5) == 5010);      /* in a group of its own, all the time */
    assert_string_equal(missing(), "");
    /* Over several batches the times are added up before counts are scaled. */
    struct counts both = counts;
    both.of[4] = (struct count){ 30, 500, 100 };
    counts_add(&counts, &both);
    assert_true(counts_scaled(&counts, 0) == 2 * 20.0);
    assert_true(counts_scaled(&counts, 4) == 30.0 * 1500 / 100); /* 1000 ns of the fake file, and 500 */
    assert_true(counters_choose("cycles", why, sizeof why));
    assert_int_equal(num_closed, 6);
}

static void without_permission_the_kernels_events_come_from_its_statistics(void **state)
{
    use_fake_calls(1, 0);
    assert_true(counters_choose("cycles,context-switches,cpu-migrations", why, sizeof why));
    struct counts counts = count_once();
    assert_true(counts_scaled(&counts, 0) >= 0);
    double switches = counts_scaled(&counts, 1);
    assert_true(switches >= 0 && switches < 1000); /* and not the 1010 of the fake file */
    assert_true(counts_scaled(&counts, 2) == UNCOUNTED);
    assert_non_null(strstr(missing(), "cpu-migrations not counted: they are not allowed"));
    assert_non_null(strstr(missing(), "perf_event_paranoid"));
    assert_null(strstr(missing(), "virtual PMU"));
}

static void without_a_pmu_software_events_are_counted(void **state)
{
    use_fake_calls(0, -ENOENT);
    assert_true(counters_choose("cycles,task-clock", why, sizeof why));
    struct counts counts = count_once();
    assert_true(counts_scaled(&counts, 0) == UNCOUNTED);
    assert_true(counts_scaled(&counts, 1) == 2 * 10.0);
    assert_non_null(strstr(missing(), "cycles not counted: this machine has no performance counters"));
}

static int refused_open(struct perf_event_attr *attr, pid_t thread, int group_fd)
{
    return -ENOSYS;
}

static void without_perf_events_the_statistics_of_the_kernel_are_left(void **state)
{
    static const struct counter_calls refused = { refused_open, fake_read, fake_control, fake_close };
    use_fake_calls(0, 0);
    counters_use(&refused);
    assert_true(
        counters_choose("task-clock,context-switches,page-faults,voluntary-switches", why, sizeof why));
    struct counts counts = count_once();
    assert_int_equal(num_open, 0);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(counts_scaled(&counts, i) >= 0);
    assert_string_equal(missing(), "");
}

/* -- what the kernel counts -- */

/* A library that a sanitizer loads may switch or fault more often, but not less often. */
static void a_switch_and_a_fault_are_counted_on_their_thread(void **state)
{
    counters_use(NULL);
    assert_true(counters_choose("voluntary-switches,page-faults,task-clock", why, sizeof why));
    struct counts counts;
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    counters_find_threads();
    counters_start_own();
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    *(volatile char *)page = 1;
    counters_stop_own(&counts);
    assert_true(counts_scaled(&counts, 0) >= 1);
    assert_true(counts_scaled(&counts, 1) >= 1);
    assert_true(counts_scaled(&counts, 2) > 0);
    munmap(page, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_default_events_are_known),
        cmocka_unit_test(an_unknown_event_is_named),
        cmocka_unit_test(a_list_has_a_limit),
        cmocka_unit_test(a_number_is_a_raw_event),
        cmocka_unit_test(hardware_events_are_in_groups_of_four),
        cmocka_unit_test(libpfm_knows_the_events_of_processors),
        cmocka_unit_test(counts_are_scaled_by_the_time_in_which_they_were_counted),
        cmocka_unit_test(without_permission_the_kernels_events_come_from_its_statistics),
        cmocka_unit_test(without_a_pmu_software_events_are_counted),
        cmocka_unit_test(without_perf_events_the_statistics_of_the_kernel_are_left),
        cmocka_unit_test(a_switch_and_a_fault_are_counted_on_their_thread),
    };
    setenv("LIBPFM_ENCODE_INACTIVE", "1", 1); /* libpfm4 reads it once */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
