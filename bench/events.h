/* bench/events.h - the events that `--counters` can count, by name. */
#ifndef EVENTS_H
#define EVENTS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOST_EVENTS = 32 };

struct event {
    char name[80];

    /* What perf_event_open gets. Events of the same group number are counted together. If attr.size is 0, the
     * kernel has no such event, and only `read` is used. */
    struct perf_event_attr attr;
    uint32_t group;

    /* Reads the event's present count of a thread of this process from the kernel's statistics, which needs
     * no permission. It is used if perf_event_open cannot count the event. NULL if there are no such
     * statistics. */
    double (*read)(pid_t thread);
};

/* Writes the events of a list of names with commas between them to out[MOST_EVENTS]. An empty list means
 * the default list. Returns their number, or 0 after writing to `why` which name is unknown, or why the
 * list is too long. */
uint32_t events_of_list(const char *list, struct event *out, char *why, size_t size);

/* True if the processor counts the event. */
bool event_is_hardware(const struct event *e);

const char *events_default(void);

#ifdef __cplusplus
}
#endif
#endif
