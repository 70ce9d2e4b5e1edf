/* bench/counters.h - counts events of the threads of this process while a batch is measured.
 *
 * The kernel counts (perf_event_open), for each thread apart. Hardware events are in groups. If the
 * processor has too few counters for all groups, they take turns, and a count is scaled by the share of
 * the time in which it was counted. */
#ifndef COUNTERS_H
#define COUNTERS_H

#include "events.h"

#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What one thread counted of one event in some batches. If running_ns is 0, but enabled_ns is not, the event
 * was not counted. Statistics of the kernel have 1 for both. */
struct count {
    double value, enabled_ns, running_ns;
};

struct counts {
    struct count of[MOST_EVENTS];
};

/* Events of one operation. A rate is UNCOUNTED if the event could not be counted. The difference of two
 * counts can be negative. */
#define UNCOUNTED (-1e300)
struct rates {
    double of[MOST_EVENTS];
};

void counts_add(struct counts *sum, const struct counts *more);

/* Returns the scaled count, or UNCOUNTED. */
double counts_scaled(const struct counts *counts, uint32_t event);

/* The name of the environment variable that tells the processes of peers what to count. */
#define COUNTERS_VARIABLE "DITTO_BENCH_COUNTERS"

/* The list that was chosen, or NULL. */
extern const char *counters_list;

/* Chooses the events, instead of those that were chosen before. `list` stays valid. Returns false after
 * writing to `why` what is wrong with the list. */
bool counters_choose(const char *list, char *why, size_t size);

/* The chosen events, and their number, which is 0 if nothing is counted. */
extern struct event counters_event[MOST_EVENTS];
extern uint32_t counters_events;

/* Opens the events of the threads that the process has now. It is called before the functions below, while no
 * thread counts. */
void counters_find_threads(void);

/* Stand around a batch, on each of its threads. If nothing is counted, they do nothing. */
void counters_start_own(void);
void counters_stop_own(struct counts *out);

/* Stand around a batch on the thread that begins it, for all threads of the process. */
void counters_start_all(void);
void counters_stop_all(void);

/* Writes what a thread counted between the last start and stop. */
void counters_read(pid_t thread, struct counts *out);

/* Returns what thread `index` of those that counters_find_threads found has counted, or NULL if there are
 * fewer. Sets *name to its name. */
const struct counts *counters_thread(size_t index, const char **name);

/* Prints a rate with four digits, or nothing if it is UNCOUNTED. */
void counters_print(double rate);

/* Prints a line of a table with all rates of a thread. */
void counters_print_line(const char *thread, const struct rates *rates);

/* Writes a line to `to` for each reason why events are not counted, with what to do. It is called after the
 * first batch. */
void counters_say_missing(FILE *to);

pid_t counters_this_thread(void);

/* The system calls, which a test replaces. NULL stands for the real ones. `open` returns a file
 * descriptor, or a negative errno. `control` switches all events of the group of `fd` on or off. */
struct counter_calls {
    int (*open)(struct perf_event_attr *attr, pid_t thread, int group_fd);
    long (*read)(int fd, void *to, size_t size);
    void (*control)(int fd, bool on);
    void (*close)(int fd);
};
void counters_use(const struct counter_calls *calls);

#ifdef __cplusplus
}
#endif
#endif
