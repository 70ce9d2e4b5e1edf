/* src/strategy/trace_report.c - adds up the times that replicas have recorded, and writes tables of them and
 * a file of events. */
#include "replicas/team/recorder.h"
#include "strategy/strategy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -- adding up -- */

/* Returns what a tracer has recorded about the operation that another one has in `named`. */
static const struct dti_total *find(const struct dti_tracer *t, const struct dti_total *named)
{
    for (uint32_t i = 0; i < t->totals; i++)
        if (t->total[i].name == named->name && t->total[i].kind == named->kind &&
            dti_text_same(t->total[i].label, named->label))
            return &t->total[i];
    return NULL;
}

/* The numbers of replicas are those of the placement. Of a strategy with workers, they are in the teams of
 * the workers. */
static uint32_t replicas_of(const ditto_strategy *strategy)
{
    const struct dti_workers *w = strategy->workers;
    return w != NULL ? w->count * w->replicas : dti_team_num_replicas(dti_team_of(strategy));
}

static const struct dti_tracer *tracer_of(const ditto_strategy *strategy, uint32_t replica)
{
    const struct dti_workers *w = strategy->workers;
    if (w == NULL)
        return dti_team_replica(dti_team_of(strategy), replica)->traced;
    return dti_team_replica(dti_team_of(w->strategy[replica / w->replicas]), replica % w->replicas)->traced;
}

/* Returns the operation with an index, or NULL if there are fewer. The operations of replica 0 come first,
 * then those of replica 1 that replica 0 does not have, and so on. */
static const struct dti_total *operation_at(const ditto_strategy *strategy, uint32_t index)
{
    for (uint32_t r = 0; r < replicas_of(strategy); r++) {
        const struct dti_tracer *t = tracer_of(strategy, r);
        for (uint32_t i = 0; i < t->totals; i++) {
            uint32_t before = 0;
            while (before < r && find(tracer_of(strategy, before), &t->total[i]) == NULL)
                before++;
            if (before == r && index-- == 0)
                return &t->total[i];
        }
    }
    return NULL;
}

/* Returns true if the replica of `a` counts as slower than that of `than`. In runs and pauses this is the
 * replica that works longer itself, and in loops on devices the one that takes longer. In collectives it
 * is the replica that waits less, because the one that arrives last waits least. */
static bool is_slower(const struct dti_total *a, const struct dti_total *than)
{
    if (a->kind == DTI_TRACE_LOOP)
        return a->ns > than->ns;
    bool by_own_time = a->kind == DTI_TRACE_RUN || a->kind == DTI_TRACE_PAUSE;
    return by_own_time ? a->own_ns > than->own_ns : a->waited_ns < than->waited_ns;
}

static void add_up(const ditto_strategy *strategy, const struct dti_total *named,
                   ditto_operation_counters *out)
{
    const struct dti_total *slowest = NULL;
    *out = (ditto_operation_counters){ .name = named->name, .label = named->label };
    for (uint32_t r = 0; r < replicas_of(strategy); r++) {
        const struct dti_total *total = find(tracer_of(strategy, r), named);
        if (total == NULL)
            continue;
        out->calls = total->count > out->calls ? total->count : out->calls;
        out->bytes += total->bytes;
        out->time_ns += total->ns / replicas_of(strategy);
        out->wait_ns += total->waited_ns / replicas_of(strategy);
        out->own_ns += total->own_ns / replicas_of(strategy);
        if (slowest == NULL || is_slower(total, slowest)) {
            slowest = total;
            out->slowest = r;
        }
    }
}

static ditto_status fail_empty(void)
{
    return DTI_FAIL(DITTO_ERR_NOT_FOUND, "nothing was recorded: ditto_strategy_trace_start begins recording");
}

ditto_status dti_trace_times(const ditto_strategy *strategy, uint32_t index, ditto_operation_counters *out)
{
    if (tracer_of(strategy, 0) == NULL)
        return fail_empty();
    const struct dti_total *named = operation_at(strategy, index);
    if (named == NULL)
        return DTI_FAIL(DITTO_ERR_NOT_FOUND, "operation %u does not exist: fewer were recorded", index);
    add_up(strategy, named, out);
    return DITTO_OK;
}

/* -- the table -- */

struct shares {
    uint64_t computing, for_devices, in_collectives, waiting, input, pausing;
};

static void add_share(struct shares *s, enum dti_trace_kind kind, const ditto_operation_counters *t)
{
    switch (kind) {
    case DTI_TRACE_RUN:
    case DTI_TRACE_LOOP:
        s->computing += t->own_ns > t->wait_ns ? t->own_ns - t->wait_ns : 0;
        s->for_devices += t->wait_ns;
        break;
    case DTI_TRACE_COLLECTIVE:
        s->in_collectives += t->own_ns > t->wait_ns ? t->own_ns - t->wait_ns : 0;
        s->waiting += t->wait_ns;
        break;
    case DTI_TRACE_INPUT:
        s->input += t->time_ns;
        break;
    case DTI_TRACE_PAUSE:
        s->pausing += t->own_ns;
        break;
    }
}

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

static void write_shares(const struct shares *s, struct dti_text *text)
{
    uint64_t all = s->computing + s->for_devices + s->in_collectives + s->waiting + s->input + s->pausing;
    const struct {
        const char *name;
        uint64_t ns;
    } lines[] = { { "computing", s->computing },           { "waiting for devices", s->for_devices },
                  { "in collectives", s->in_collectives }, { "waiting in collectives", s->waiting },
                  { "in ditto_next", s->input },           { "in merge functions", s->pausing } };
    dti_text_add(text, "%-30s %10s  %6s\n", "of a replica's time in runs", "ms", "share");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        dti_text_add(text, "%-30s %10.3f  %5.1f%%\n", lines[i].name, ms(lines[i].ns),
                     all != 0 ? 100 * (double)lines[i].ns / (double)all : 0);
}

ditto_status dti_trace_statistics(const ditto_strategy *strategy, struct dti_text *text)
{
    struct shares shares = { 0 };
    const struct dti_total *named;
    if (tracer_of(strategy, 0) == NULL)
        return fail_empty();
    dti_text_add(text, "%-30s %10s %14s %10s %10s %10s  %s\n", "operation", "calls", "bytes", "ms", "own ms",
                 "waited ms", "slowest replica");
    for (uint32_t i = 0; (named = operation_at(strategy, i)) != NULL; i++) {
        ditto_operation_counters t;
        char operation[160];
        struct dti_text name = { operation, sizeof operation, 0 };
        add_up(strategy, named, &t);
        add_share(&shares, named->kind, &t);
        dti_text_add_name(&name, t.name, t.label);
        dti_text_add(text, "%-30s %10llu %14llu %10.3f %10.3f %10.3f  %u\n", operation,
                     (unsigned long long)t.calls, (unsigned long long)t.bytes, ms(t.time_ns), ms(t.own_ns),
                     ms(t.wait_ns), t.slowest);
    }
    write_shares(&shares, text);
    return DITTO_OK;
}

/* -- one event -- */

/* Writes nanoseconds as microseconds with three decimals. The decimal point does not depend on the locale. */
static void write_us(FILE *file, const char *field, uint64_t ns)
{
    fprintf(file, "\"%s\":%llu.%03u", field, (unsigned long long)(ns / 1000), (unsigned)(ns % 1000));
}

static void write_track(FILE *file, uint32_t track, const char *what, uint32_t number)
{
    fprintf(file,
            ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":\"%s %u\"}}",
            (int)getpid(), track, what, number);
}

/* Writes a label in quotation marks, as a part of a string of JSON. */
static void write_label(FILE *file, const char *label)
{
    fputs(" \\\"", file);
    for (; *label != '\0'; label++)
        if (*label == '"' || *label == '\\')
            fprintf(file, "\\%c", *label);
        else if ((unsigned char)*label < ' ')
            fprintf(file, "\\u%04x", (unsigned)*label);
        else
            fputc(*label, file);
    fputs("\\\"", file);
}

static void write_event(FILE *file, uint32_t track, const struct dti_event *e, uint64_t origin)
{
    static const char *const kinds[] = { "run", "collective", "input", "pause", "loop" };
    fprintf(file, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"name\":\"%s", (int)getpid(), track,
            e->total != NULL ? e->total->name : "fill");
    if (e->total != NULL && e->total->label != NULL)
        write_label(file, e->total->label);
    fprintf(file, "\",\"cat\":\"%s\",", e->total != NULL ? kinds[e->total->kind] : "filling");
    write_us(file, "ts", e->begin_ns - origin);
    fputc(',', file);
    write_us(file, "dur", e->end_ns - e->begin_ns);
    fprintf(file, ",\"args\":{\"bytes\":%llu,", (unsigned long long)e->bytes);
    write_us(file, "waited_us", e->waited_ns);
    fputs("}}", file);
}

/* -- a file of events --
 *
 * Each team has a track for each of its replicas, and then one for each of its producers. */

/* The numbers of the producers that occur in the events of a team. */
struct producer_range {
    uint32_t first, count;
};

static uint64_t first_event_ns(const ditto_strategy *strategy)
{
    uint64_t begin = UINT64_MAX;
    for (uint32_t r = 0; r < replicas_of(strategy); r++) {
        const struct dti_tracer *t = tracer_of(strategy, r);
        for (size_t i = 0; i < t->events; i++)
            begin = t->event[i].begin_ns < begin ? t->event[i].begin_ns : begin;
    }
    return begin;
}

static struct producer_range producers_of(const struct dti_team *team)
{
    uint32_t first = UINT32_MAX, end = 0;
    for (uint32_t r = 0; r < dti_team_num_replicas(team); r++) {
        const struct dti_tracer *t = dti_team_replica(team, r)->traced;
        for (size_t i = 0; i < t->events; i++) {
            const struct dti_event *e = &t->event[i];
            if (e->total == NULL) {
                first = e->producer < first ? e->producer : first;
                end = e->producer >= end ? e->producer + 1 : end;
            }
        }
    }
    return (struct producer_range){ first, end > first ? end - first : 0 };
}

/* How the events of a team are written. */
struct writing {
    FILE *file;
    uint64_t begin_ns; /* the time of the first event of all teams */
    uint64_t dropped;  /* events that were not kept */
    uint32_t tracks;   /* that other teams have used */
    uint32_t replicas; /* of other teams, which come first in the placement */
    struct producer_range producers;
    bool *is_named; /* [producers.count] whose tracks have names. If it is NULL, tracks get no names */
};

/* Writes an event on the track of its producer. The track gets its name with its first event. */
static void write_filling(struct writing *w, uint32_t replicas, const struct dti_event *e)
{
    uint32_t index = e->producer - w->producers.first, track = w->tracks + replicas + index;
    if (w->is_named != NULL && !w->is_named[index]) {
        write_track(w->file, track, "producer", e->producer);
        w->is_named[index] = true;
    }
    write_event(w->file, track, e, w->begin_ns);
}

static void write_team(struct writing *w, const struct dti_team *team)
{
    uint32_t n = dti_team_num_replicas(team);
    w->producers = producers_of(team);
    w->is_named = calloc((size_t)w->producers.count + 1, sizeof *w->is_named);
    for (uint32_t r = 0; r < n; r++) {
        const struct dti_tracer *t = dti_team_replica(team, r)->traced;
        write_track(w->file, w->tracks + r, "replica", w->replicas + r);
        for (size_t i = 0; i < t->events; i++)
            if (t->event[i].total == NULL)
                write_filling(w, n, &t->event[i]);
            else
                write_event(w->file, w->tracks + r, &t->event[i], w->begin_ns);
        w->dropped += t->dropped;
    }
    free(w->is_named);
    w->tracks += n + w->producers.count;
    w->replicas += n;
}

static void write_events(const ditto_strategy *strategy, FILE *file)
{
    struct writing w = { .file = file, .begin_ns = first_event_ns(strategy) };
    fprintf(
        file,
        "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\","
        "\"args\":{\"name\":\"ditto\"}}",
        (int)getpid());
    if (strategy->workers == NULL)
        write_team(&w, dti_team_of(strategy));
    for (uint32_t i = 0; strategy->workers != NULL && i < strategy->workers->count; i++)
        write_team(&w, dti_team_of(strategy->workers->strategy[i]));
    fprintf(file, "\n],\"otherData\":{\"events not kept\":\"%llu\"}}\n", (unsigned long long)w.dropped);
}

ditto_status dti_trace_write(const ditto_strategy *strategy, const char *path)
{
    if (tracer_of(strategy, 0) == NULL)
        return fail_empty();
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "\"%s\" can't be written", path);
    write_events(strategy, file);
    errno = 0;
    bool failed = fflush(file) != 0 || ferror(file) != 0;
    int error_number = errno;
    if (fclose(file) != 0 && !failed) {
        failed = true;
        error_number = errno;
    }
    if (!failed)
        return DITTO_OK;
    /* A part of the events is no JSON. The file is emptied, because a path that is a link or a device must
     * not be removed. */
    bool is_empty = truncate(path, 0) == 0;
    /* stdio does not keep the errno of a write that failed before fflush. Then EIO is reported. */
    return DTI_FAIL_ERRNO(DITTO_ERR_IO, error_number != 0 ? error_number : EIO,
                          "\"%s\" could not be written completely%s", path,
                          is_empty ? ", so it is left empty" : "");
}
