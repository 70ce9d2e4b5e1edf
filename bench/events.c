/* bench/events.c - finds events by name, see events.h.
 *
 * A name is one of the table below, an event of libpfm4 (if ditto-bench is built with it), or rHEX, the
 * number of an event of this processor, as `perf stat` takes it. */
#include "events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef WITH_PFM
#include <perfmon/pfmlib_perf_event.h>
#endif

/* A processor has at least four counters that can count any event. A group that has more members may never be
 * counted. */
enum { GROUP_SIZE = 4 };

/* -- the kernel's statistics of a thread -- */

/* Reads the CPU time of a thread. The kernel's numbers of such clocks are the inverted id and a kind (6 is
 * CPUCLOCK_SCHED of one thread). */
static double cpu_ns(pid_t thread)
{
    struct timespec t;
    if (clock_gettime((clockid_t)(~(unsigned)thread << 3 | 6), &t) != 0)
        return -1;
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Reads the first number after `name` in a file of the thread. Returns -1 if there is none. */
static double number_in(pid_t thread, const char *file, const char *name)
{
    char path[64], line[256];
    double number = -1;
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)thread, file);
    FILE *f = fopen(path, "r");
    while (f != NULL && number < 0 && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            number = strtod(line + strlen(name), NULL);
    if (f != NULL)
        fclose(f);
    return number;
}

static double voluntary(pid_t thread)
{
    return number_in(thread, "status", "voluntary_ctxt_switches:");
}

static double involuntary(pid_t thread)
{
    return number_in(thread, "status", "nonvoluntary_ctxt_switches:");
}

static double switches(pid_t thread)
{
    return voluntary(thread) + involuntary(thread);
}

/* Fields 10 and 12 of the file are the faults without and with reading from a disk. The second field, the
 * name of the thread, may contain spaces, and ends with the last parenthesis. */
static double faults(pid_t thread)
{
    char path[64], line[1024];
    double minor = -1, major = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *f = fopen(path, "r");
    if (f != NULL && fgets(line, sizeof line, f) != NULL && strrchr(line, ')') != NULL &&
        sscanf(strrchr(line, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %lf %*u %lf", &minor, &major) != 2)
        minor = -1;
    if (f != NULL)
        fclose(f);
    return minor < 0 ? -1 : minor + major;
}

/* -- names -- */

#define CACHE_MISS(cache) \
    (PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

/* The numbers of raw events have the event in bits 0 to 7 and its mask in bits 8 to 15. They are those of
 * Intel and of AMD. Other processors do not have these events. */
struct known {
    const char *name;
    uint32_t type;
    uint64_t number, number_on_amd;
    double (*read)(pid_t thread);
};
static const struct known known[] = {
    { "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, NULL },
    { "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0, NULL },
    { "branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 0, NULL },
    { "L1d-misses", PERF_TYPE_HW_CACHE, CACHE_MISS(L1D), 0, NULL },
    /* Intel: L2_RQSTS.MISS. AMD: L2_CACHE_REQ_STAT, data requests that miss. */
    { "L2-misses", PERF_TYPE_RAW, 0x3f24, 0x0864, NULL },
    { "LLC-misses", PERF_TYPE_HW_CACHE, CACHE_MISS(LL), 0, NULL },
    { "node-misses", PERF_TYPE_HW_CACHE, CACHE_MISS(NODE), 0, NULL },
    /* Lines that came from another core's cache. Intel: MEM_LOAD_L3_HIT_RETIRED.XSNP_HITM (since Sapphire
     * Rapids XSNP_FWD). AMD has no such event. LS_ANY_FILLS_FROM_SYS counts fills from the caches of the own
     * core complex, which include its L3, and of others. */
    { "other-cache", PERF_TYPE_RAW, 0x04d2, 0x1644, NULL },
    { "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 0, cpu_ns },
    { "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 0, switches },
    { "cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, 0, NULL },
    { "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, faults },
    { "voluntary-switches", PERF_TYPE_MAX, 0, 0, voluntary },
    { "involuntary-switches", PERF_TYPE_MAX, 0, 0, involuntary },
};

bool event_is_hardware(const struct event *e)
{
    return e->attr.size != 0 && e->attr.type != PERF_TYPE_SOFTWARE;
}

const char *events_default(void)
{
    return "cycles,instructions,branch-misses,L1d-misses,L2-misses,LLC-misses,node-misses,other-cache,"
           "task-clock,voluntary-switches,involuntary-switches,cpu-migrations,page-faults";
}

/* Returns the number of a raw event of this processor. Sets *number only if it has one. */
static bool find_raw(const struct known *k, uint64_t *number)
{
#if defined(__x86_64__)
    bool amd = __builtin_cpu_is("amd") != 0;
    if (!amd && !__builtin_cpu_is("intel"))
        return false;
    *number = amd ? k->number_on_amd : k->number;
    return true;
#else
    (void)k, (void)number;
    return false;
#endif
}

static bool is_known(struct event *e)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct known *k = &known[i];
        if (strcmp(k->name, e->name) != 0)
            continue;
        e->read = k->read;
        uint64_t number = k->number;
        if (k->type == PERF_TYPE_MAX || (k->type == PERF_TYPE_RAW && !find_raw(k, &number)))
            return true;
        e->attr.size = sizeof e->attr;
        e->attr.type = k->type;
        e->attr.config = number;
        return true;
    }
    return false;
}

static bool is_raw(struct event *e)
{
    char *end;
    if (e->name[0] != 'r' || e->name[1] == '\0')
        return false;
    e->attr.config = strtoull(e->name + 1, &end, 16);
    e->attr.type = PERF_TYPE_RAW;
    e->attr.size = sizeof e->attr;
    return *end == '\0';
}

#ifdef WITH_PFM
static bool is_of_libpfm(struct event *e)
{
    pfm_perf_encode_arg_t arg = { .attr = &e->attr, .size = sizeof arg };
    if (pfm_initialize() != PFM_SUCCESS ||
        pfm_get_os_event_encoding(e->name, PFM_PLM3 | PFM_PLM0, PFM_OS_PERF_EVENT, &arg) != PFM_SUCCESS)
        return false;
    e->attr.size = sizeof e->attr;
    return true;
}
#define KNOWS "libpfm4 does not know it for this processor (showevtinfo lists its names)"
#else
static bool is_of_libpfm(struct event *e)
{
    (void)e;
    return false;
}
#define KNOWS "this build has no libpfm4 (Debian: libpfm4-dev), which knows the names of processors' events"
#endif

/* -- lists -- */

/* Copies the next name of the list. Returns false at its end. Two commas in a row enclose an empty name. */
static bool next_name(const char **list, char *name, size_t size)
{
    if (**list == '\0')
        return false;
    size_t length = strcspn(*list, ",");
    snprintf(name, size, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return true;
}

/* Puts the events into groups. Software events can all be in one group, because they need no counters. */
static void make_groups(struct event *event, uint32_t count)
{
    uint32_t hardware = 0;
    for (uint32_t i = 0; i < count; i++)
        event[i].group = event_is_hardware(&event[i]) ? 1 + hardware++ / GROUP_SIZE : 0;
}

uint32_t events_of_list(const char *list, struct event *out, char *why, size_t size)
{
    uint32_t count = 0;
    struct event next = { .read = NULL };
    if (*list == '\0')
        list = events_default();
    while (next_name(&list, next.name, sizeof next.name)) {
        if (count == MOST_EVENTS) {
            snprintf(why, size, "more than %d events", MOST_EVENTS);
            return 0;
        }
        out[count] = next;
        if (!is_known(&out[count]) && !is_raw(&out[count])) {
            memset(&out[count].attr, 0, sizeof out[count].attr);
            if (!is_of_libpfm(&out[count])) {
                snprintf(why, size, "\"%s\" is no event; %s", next.name, KNOWS);
                return 0;
            }
        }
        count++;
    }
    make_groups(out, count);
    return count;
}
