/* bench/counters.c - opens, switches and reads the events of threads, see counters.h. */
#include "counters.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

struct event counters_event[MOST_EVENTS];
uint32_t counters_events;
const char *counters_list;

/* -- the system calls -- */

static int open_event(struct perf_event_attr *attr, pid_t thread, int group_fd)
{
    long fd = syscall(SYS_perf_event_open, attr, thread, -1, group_fd, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}

static long read_event(int fd, void *to, size_t size)
{
    return read(fd, to, size);
}

static void control_group(int fd, bool on)
{
    ioctl(fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
}

static void close_event(int fd)
{
    close(fd);
}

static const struct counter_calls system_calls = { open_event, read_event, control_group, close_event };
static struct counter_calls calls = { open_event, read_event, control_group, close_event };

void counters_use(const struct counter_calls *other)
{
    calls = other != NULL ? *other : system_calls;
}

pid_t counters_this_thread(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* -- the events of a thread -- */

/* What the kernel returns for a group (PERF_FORMAT_GROUP). */
struct group_counts {
    uint64_t members, enabled_ns, running_ns, value[MOST_EVENTS];
};

struct counted_thread {
    pid_t id;
    bool alive;
    char name[32];

    /* The file of each event, or -1. The first event of a group leads it. */
    int fd[MOST_EVENTS];

    /* At the last start: of each leader, and of the kernel's statistics. */
    struct group_counts before[MOST_EVENTS];
    double read_before[MOST_EVENTS];
    struct counts counts;
};

static struct counted_thread **threads;
static size_t num_threads;

/* Why an event could not be opened, as a negative errno. 0 if it could. */
static int refusal[MOST_EVENTS];

/* Set when the kernel has refused to count what happens in the kernel. */
static bool excludes_kernel;

static int leader_of(const struct counted_thread *t, uint32_t event)
{
    for (uint32_t i = 0; i < event; i++)
        if (counters_event[i].group == counters_event[event].group && t->fd[i] >= 0)
            return (int)i;
    return -1;
}

static int try_to_open(const struct event *e, pid_t thread, int group_fd)
{
    struct perf_event_attr attr = e->attr;
    attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    attr.disabled = group_fd < 0; /* the group's leader switches all of them */
    attr.exclude_hv = 1;
    attr.exclude_kernel |= excludes_kernel;
    return calls.open(&attr, thread, group_fd);
}

/* Returns true if the event must come from the kernel's statistics, because it happens inside the kernel and
 * would be 0 without it. */
static bool is_in_kernel(const struct event *e)
{
    return e->attr.type == PERF_TYPE_SOFTWARE && e->attr.config != PERF_COUNT_SW_TASK_CLOCK &&
           e->attr.config != PERF_COUNT_SW_PAGE_FAULTS;
}

static int open_one(struct counted_thread *t, uint32_t i)
{
    const struct event *e = &counters_event[i];
    int leader = leader_of(t, i), group_fd = leader < 0 ? -1 : t->fd[leader];
    if (e->attr.size == 0)
        return -ENOENT;
    int fd = try_to_open(e, t->id, group_fd);
    if ((fd == -EACCES || fd == -EPERM) && !excludes_kernel) {
        excludes_kernel = true;
        fd = try_to_open(e, t->id, group_fd);
    }
    if (fd >= 0 && excludes_kernel && is_in_kernel(e)) {
        calls.close(fd);
        return -EACCES;
    }
    return fd;
}

static void open_events(struct counted_thread *t)
{
    for (uint32_t i = 0; i < counters_events; i++) {
        int fd = open_one(t, i);
        t->fd[i] = fd < 0 ? -1 : fd;
        if (fd != -ESRCH) /* the thread has ended */
            refusal[i] = fd < 0 ? fd : 0;
    }
}

static void forget(struct counted_thread *t)
{
    for (uint32_t i = counters_events; i-- > 0;)
        if (t->fd[i] >= 0)
            calls.close(t->fd[i]);
    free(t);
}

/* -- the threads of the process: only counters_find_threads changes the list -- */

static struct counted_thread *find(pid_t id)
{
    for (size_t i = 0; i < num_threads; i++)
        if (threads[i]->id == id)
            return threads[i];
    return NULL;
}

/* The main thread has the name of the program. So has a thread that was not given a name. */
static void read_name(struct counted_thread *t)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)t->id);
    FILE *f = fopen(path, "r");
    if (f == NULL || fgets(t->name, sizeof t->name, f) == NULL)
        t->name[0] = '\0';
    t->name[strcspn(t->name, "\n")] = '\0';
    if (f != NULL)
        fclose(f);
    if (t->id != getpid() && strcmp(t->name, program_invocation_short_name) == 0)
        snprintf(t->name, sizeof t->name, "other threads");
}

static void add(pid_t id)
{
    struct counted_thread **more = realloc(threads, (num_threads + 1) * sizeof *threads);
    struct counted_thread *t = calloc(1, sizeof *t);
    if (more == NULL || t == NULL) {
        fprintf(stderr, "ditto-bench: no memory for counters\n");
        exit(1);
    }
    threads = more;
    threads[num_threads++] = t;
    t->id = id;
    t->alive = true;
    read_name(t);
    open_events(t);
}

/* Adds the threads that are new, and forgets those that have ended. */
static void list_threads(void)
{
    size_t kept = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) /* there are too many open files */
        return;
    for (size_t i = 0; i < num_threads; i++)
        threads[i]->alive = false;
    for (struct dirent *d; (d = readdir(tasks)) != NULL;) {
        pid_t id = (pid_t)strtol(d->d_name, NULL, 10);
        struct counted_thread *known = id != 0 ? find(id) : NULL;
        if (known != NULL)
            known->alive = true;
        else if (id != 0)
            add(id);
    }
    closedir(tasks);
    for (size_t i = 0; i < num_threads; i++)
        if (threads[i]->alive)
            threads[kept++] = threads[i];
        else
            forget(threads[i]);
    num_threads = kept;
}

/* Each event of each thread is an open file. */
static void allow_many_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* -- counting -- */

static bool leads(const struct counted_thread *t, uint32_t i)
{
    return t->fd[i] >= 0 && leader_of(t, i) < 0;
}

static struct group_counts read_group(const struct counted_thread *t, uint32_t leader)
{
    struct group_counts counts;
    memset(&counts, 0, sizeof counts);
    if (calls.read(t->fd[leader], &counts, sizeof counts) <= 0)
        memset(&counts, 0, sizeof counts);
    return counts;
}

/* Starting is two steps for each thread. Statistics of the kernel are read from files, which takes
 * microseconds and causes events, so they are read before any event is counted. */
static void read_before(struct counted_thread *t)
{
    for (uint32_t i = 0; i < counters_events; i++)
        if (t->fd[i] < 0 && counters_event[i].read != NULL)
            t->read_before[i] = counters_event[i].read(t->id);
    for (uint32_t i = 0; i < counters_events; i++)
        if (leads(t, i))
            t->before[i] = read_group(t, i);
}

static void switch_groups(const struct counted_thread *t, bool on)
{
    for (uint32_t i = 0; i < counters_events; i++)
        if (leads(t, i))
            calls.control(t->fd[i], on);
}

/* Computes the counts of the group that `leader` leads. Its members are in the order of their events. */
static void count_group(struct counted_thread *t, uint32_t leader)
{
    const struct group_counts *before = &t->before[leader];
    struct group_counts after = read_group(t, leader);
    uint64_t member = 0;
    for (uint32_t i = leader; i < counters_events && member < after.members; i++) {
        if (t->fd[i] < 0 || counters_event[i].group != counters_event[leader].group)
            continue;
        t->counts.of[i] = (struct count){ (double)(after.value[member] - before->value[member]),
                                          (double)(after.enabled_ns - before->enabled_ns),
                                          (double)(after.running_ns - before->running_ns) };
        member++;
    }
}

static void set_uncounted(struct counts *counts)
{
    for (uint32_t i = 0; i < counters_events; i++)
        counts->of[i] = (struct count){ 0, 1, 0 };
}

static void read_after(struct counted_thread *t)
{
    set_uncounted(&t->counts);
    for (uint32_t i = 0; i < counters_events; i++) {
        if (leads(t, i))
            count_group(t, i);
        else if (t->fd[i] < 0 && counters_event[i].read != NULL) {
            double after = counters_event[i].read(t->id);
            if (after >= 0 && t->read_before[i] >= 0)
                t->counts.of[i] = (struct count){ after - t->read_before[i], 1, 1 };
        }
    }
}

void counts_add(struct counts *sum, const struct counts *more)
{
    for (uint32_t i = 0; i < counters_events; i++) {
        sum->of[i].value += more->of[i].value;
        sum->of[i].enabled_ns += more->of[i].enabled_ns;
        sum->of[i].running_ns += more->of[i].running_ns;
    }
}

double counts_scaled(const struct counts *counts, uint32_t event)
{
    const struct count *c = &counts->of[event];
    if (c->running_ns > 0)
        return c->value * c->enabled_ns / c->running_ns;
    return c->enabled_ns > 0 ? UNCOUNTED : 0; /* a thread that did not run has counted nothing */
}

void counters_find_threads(void)
{
    if (counters_events > 0)
        list_threads();
}

static struct counted_thread *own(void)
{
    return counters_events > 0 ? find(counters_this_thread()) : NULL;
}

void counters_start_own(void)
{
    struct counted_thread *t = own();
    if (t != NULL) {
        read_before(t);
        switch_groups(t, true);
    }
}

void counters_stop_own(struct counts *out)
{
    struct counted_thread *t = own();
    set_uncounted(out);
    if (t != NULL) {
        switch_groups(t, false);
        read_after(t);
        *out = t->counts;
    }
}

void counters_start_all(void)
{
    counters_find_threads();
    for (size_t i = 0; counters_events > 0 && i < num_threads; i++)
        read_before(threads[i]);
    for (size_t i = 0; counters_events > 0 && i < num_threads; i++)
        switch_groups(threads[i], true);
}

void counters_stop_all(void)
{
    for (size_t i = 0; counters_events > 0 && i < num_threads; i++)
        switch_groups(threads[i], false);
    for (size_t i = 0; counters_events > 0 && i < num_threads; i++)
        read_after(threads[i]);
}

void counters_read(pid_t thread, struct counts *out)
{
    const struct counted_thread *t = find(thread);
    set_uncounted(out);
    if (t != NULL)
        *out = t->counts;
}

const struct counts *counters_thread(size_t index, const char **name)
{
    if (index >= num_threads)
        return NULL;
    *name = threads[index]->name;
    return &threads[index]->counts;
}

/* -- printing -- */

void counters_print(double rate)
{
    if (rate > UNCOUNTED)
        printf("%.4g", rate + 0.0); /* adding turns -0 into 0 */
}

void counters_print_line(const char *thread, const struct rates *rates)
{
    const char *apart = "";
    printf("    %s: ", thread);
    for (uint32_t e = 0; e < counters_events; e++)
        if (rates->of[e] > UNCOUNTED) {
            printf("%s%s ", apart, counters_event[e].name);
            counters_print(rates->of[e]);
            apart = ", ";
        }
    printf("\n");
}

/* -- choosing, and what is missing -- */

bool counters_choose(const char *list, char *why, size_t size)
{
    while (num_threads > 0)
        forget(threads[--num_threads]);
    excludes_kernel = false;
    counters_list = NULL;
    counters_events = events_of_list(list, counters_event, why, size);
    if (counters_events > 0) {
        counters_list = list;
        allow_many_files();
    }
    return counters_events > 0;
}

/* True if the processor counts at least one of the events. */
static bool has_hardware(void)
{
    for (uint32_t i = 0; i < counters_events; i++)
        if (event_is_hardware(&counters_event[i]) && refusal[i] == 0)
            return true;
    return false;
}

/* What the error of perf_event_open means, and what helps. */
static const char *meaning_of(int error)
{
    switch (error) {
    case -ENOENT:
    case -ENODEV:
    case -EOPNOTSUPP:
        return has_hardware() ? "this processor, or its driver, has no such events"
                              : "this machine has no performance counters for them, as in most virtual "
                                "machines: measure on a machine of its own, or ask for a virtual PMU";
    case -EACCES:
    case -EPERM:
        return "they are not allowed: set /proc/sys/kernel/perf_event_paranoid to 1, or give the program "
               "CAP_PERFMON (a container also needs a seccomp profile that allows perf_event_open)";
    case -ENOSYS:
        return "the kernel, or the seccomp profile of the container, has no perf_event_open";
    case -EMFILE:
        return "there are too many open files: raise the limit (ulimit -n)";
    default:
        return "the kernel refuses them";
    }
}

/* Events that statistics of the kernel replace are not missing. */
static bool is_missing(uint32_t event, int error)
{
    return refusal[event] == error && counters_event[event].read == NULL;
}

void counters_say_missing(FILE *to)
{
    for (uint32_t first = 0; first < counters_events; first++) {
        int error = refusal[first];
        bool said = error == 0 || !is_missing(first, error);
        for (uint32_t i = 0; i < first; i++)
            said |= is_missing(i, error);
        if (said)
            continue;
        const char *apart = "ditto-bench: ";
        for (uint32_t i = first; i < counters_events; i++)
            if (is_missing(i, error)) {
                fprintf(to, "%s%s", apart, counters_event[i].name);
                apart = ", ";
            }
        fprintf(to, " not counted: %s\n", meaning_of(error));
    }
}
