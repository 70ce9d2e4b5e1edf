/* src/replicas/team/recorder.h - what a replica does with its time, recorded while its strategy is traced; and of each batch that it takes,
 * when a producer filled it.
 *
 * A replica's tracer is its own: it alone writes it, in its functions; whoever reads it has the team's turn, and no run
 * is going on. While nothing is traced a hook costs one look at a pointer. */
#ifndef DTI_RECORDER_H
#define DTI_RECORDER_H

#include "replicas/team/team.h"

enum dti_trace_kind {
    DTI_TRACE_RUN,
    DTI_TRACE_COLLECTIVE,
    DTI_TRACE_INPUT,
    DTI_TRACE_PAUSE,
    DTI_TRACE_FILLING
};

struct dti_event {
    const char *name; /* constant text */
    enum dti_trace_kind kind;
    uint32_t producer; /* of FILLING: the team's number of it */
    uint64_t begin_ns, end_ns, waited_ns, bytes;
};

/* All events of a name. */
struct dti_total {
    const char *name;
    enum dti_trace_kind kind;
    uint64_t count, bytes, ns, waited_ns, own_ns; /* own: without what was recorded inside it */
};

#define DTI_TRACE_NAMES 64
#define DTI_TRACE_DEPTH 32

struct dti_tracer {
    struct {
        struct dti_event event;
        uint64_t inside_ns;
    } open[DTI_TRACE_DEPTH];
    uint32_t depth;
    struct dti_total total[DTI_TRACE_NAMES]; /* in the order of their first end */
    uint32_t totals;
    struct dti_event *event; /* [room] those that have ended; later ones are not kept */
    size_t events, capacity, dropped;
    uint64_t begin_ns; /* of recording */
};

/* -- Cross context, the team's turn taken, no run going on -- */
/* Begins anew, with room for `events` of each replica. NO_MEMORY: as before. */
ditto_status dti_trace_start(struct dti_team *team, size_t events);
void dti_trace_stop(struct dti_team *team);   /* what was recorded stays */
void dti_trace_forget(struct dti_team *team); /* also when the team goes */

/* -- The replica's own thread -- */
void dti_tracer_begin(struct dti_tracer *tracer, enum dti_trace_kind kind, const char *name);
void dti_tracer_end(struct dti_tracer *tracer, uint64_t bytes);
void dti_tracer_waited(struct dti_tracer *tracer, uint64_t since_ns);
/* A producer's work, told by the batch that it made; not kept where that began before recording did. */
void dti_tracer_filled(struct dti_tracer *tracer, uint32_t producer, uint64_t begin_ns, uint64_t end_ns,
                       uint64_t bytes);

static inline void dti_trace_begin(struct dti_replica *r, enum dti_trace_kind kind, const char *name)
{
    if (__builtin_expect(r->tracer != NULL, 0))
        dti_tracer_begin(r->tracer, kind, name);
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
/* Around a wait: what the first gives goes to the second. */
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
