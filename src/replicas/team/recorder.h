/* src/replicas/team/recorder.h - records how a traced replica spends its time, and when its batches were
 * made.
 *
 * During a run a replica's tracer is written only by the replica itself. A thread that reads it has the
 * team's turn, and no run is going on. While nothing is traced, each hook costs one load of a pointer. */
#ifndef DTI_RECORDER_H
#define DTI_RECORDER_H

#include <ditto/collective.h>

#include "replicas/team/replica.h"

enum dti_trace_kind {
    DTI_TRACE_RUN,
    DTI_TRACE_COLLECTIVE,
    DTI_TRACE_INPUT,
    DTI_TRACE_PAUSE,
    DTI_TRACE_LOOP, /* on the replica's devices, or a join */
};

/* The sums over all events of one name, label and kind. */
struct dti_total {
    const char *name;  /* a constant string */
    const char *label; /* label_text, or NULL */
    enum dti_trace_kind kind;
    uint64_t count;
    uint64_t bytes;
    uint64_t ns;
    uint64_t waited_ns;
    uint64_t own_ns; /* without the events that were recorded inside */
    char label_text[DITTO_MAX_LABEL_BYTES + 1];
};

struct dti_event {
    const struct dti_total *total; /* in which it is counted, or NULL for the work of a producer */
    uint32_t producer;             /* the number of the producer in the team */
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t waited_ns;
    uint64_t bytes;
};
_Static_assert(sizeof(struct dti_event) == 48, "include/ditto/trace.h says how large an event is");

/* When there are as many labels, events with a new one count as events without, so that names have room. */
#define DTI_TRACE_NAMES  128
#define DTI_TRACE_LABELS 64
#define DTI_TRACE_DEPTH  32

struct dti_tracer {
    struct {
        const char *name, *label; /* the label is the caller's, whose call ends with the event */
        enum dti_trace_kind kind;
        uint64_t begin_ns;
        uint64_t waited_ns;
        uint64_t inside_ns;
    } open[DTI_TRACE_DEPTH];
    uint32_t depth;

    /* In the order in which the first event of each name and label ended. */
    struct dti_total total[DTI_TRACE_NAMES];
    uint32_t totals;
    uint32_t labels; /* totals that have one */

    /* [capacity] The first `events` entries are the events that have ended. Later events are only counted in
     * `dropped`. */
    struct dti_event *event;
    size_t events;
    size_t capacity;
    size_t dropped;
    uint64_t begin_ns; /* the time at which recording began */
};

/* -- Cross context. The caller has the team's turn, and no run is going on -- */
/* Starts a new recording, with a capacity of `events` events for each replica. After NO_MEMORY nothing has
 * changed. */
ditto_status dti_trace_start(struct dti_team *team, size_t events);
/* Stops recording. The recorded events stay. */
void dti_trace_stop(struct dti_team *team);
/* Frees everything that was recorded. Also called when the team is destroyed. */
void dti_trace_forget(struct dti_team *team);

/* -- The replica's own thread -- */
void dti_tracer_begin(struct dti_tracer *tracer, enum dti_trace_kind kind, const char *name,
                      const char *label);
void dti_tracer_end(struct dti_tracer *tracer, uint64_t bytes);
void dti_tracer_waited(struct dti_tracer *tracer, uint64_t since_ns);
/* Records the work of a producer, from the data that the batch carries. Work that began before recording
 * began is not kept. */
void dti_tracer_filled(struct dti_tracer *tracer, uint32_t producer, uint64_t begin_ns, uint64_t end_ns,
                       uint64_t bytes);

/* The label may be NULL. It stays valid until the event has ended. */
static inline void dti_trace_begin(struct dti_replica *r, enum dti_trace_kind kind, const char *name,
                                   const char *label)
{
    if (__builtin_expect(r->tracer != NULL, 0))
        dti_tracer_begin(r->tracer, kind, name, label);
}
static inline void dti_trace_end(struct dti_replica *r, uint64_t bytes)
{
    if (__builtin_expect(r->tracer != NULL, 0))
        dti_tracer_end(r->tracer, bytes);
}
static inline void dti_trace_filled(struct dti_replica *r, uint32_t producer, uint64_t begin_ns,
                                    uint64_t end_ns, uint64_t bytes)
{
    if (__builtin_expect(r->tracer != NULL, 0))
        dti_tracer_filled(r->tracer, producer, begin_ns, end_ns, bytes);
}
/* These two stand around a wait. The result of the first is passed to the second. */
static inline uint64_t dti_trace_wait(const struct dti_replica *r)
{
    return __builtin_expect(r->tracer != NULL, 0) ? dti_now_ns() : 0;
}
static inline void dti_trace_waited(struct dti_replica *r, uint64_t since_ns)
{
    if (__builtin_expect(r->tracer != NULL, 0))
        dti_tracer_waited(r->tracer, since_ns);
}

#endif
