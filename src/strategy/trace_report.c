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

static const struct dti_total *find(const struct dti_tracer *t, const char *name, enum dti_trace_kind kind)
{
    for (uint32_t i = 0; i < t->totals; i++)
        if (t->total[i].name == name && t->total[i].kind == kind)
            return &t->total[i];
    return NULL;
}

/* Returns the operation with an index, or NULL if there are fewer. The operations of replica 0 come first,
 * then those of replica 1 that replica 0 does not have, and so on. */
static const struct dti_total *operation_at(const struct dti_team *team, uint32_t index)
{
    for (uint32_t r = 0; r < dti_team_num_replicas(team); r++) {
        const struct dti_tracer *t = dti_team_replica(team, r)->traced;
        for (uint32_t i = 0; i < t->totals; i++) {
            uint32_t before = 0;
            while (before < r &&
                   find(dti_team_replica(team, before)->traced, t->total[i].name, t->total[i].kind) == NULL)
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

static void add_up(const struct dti_team *team, const struct dti_total *named, ditto_operation_counters *out)
{
    const struct dti_total *slowest = NULL;
    *out = (ditto_operation_counters){ .name = named->name };
    for (uint32_t r = 0; r < dti_team_num_replicas(team); r++) {
        const struct dti_total *total = find(dti_team_replica(team, r)->traced, named->name, named->kind);
        if (total == NULL)
            continue;
        out->calls = total->count > out->calls ? total->count : out->calls;
        out->bytes += total->bytes;
        out->time_ns += total->ns / dti_team_num_replicas(team);
        out->wait_ns += total->waited_ns / dti_team_num_replicas(team);
        out->own_ns += total->own_ns / dti_team_num_replicas(team);
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

ditto_status dti_trace_times(const struct dti_team *team, uint32_t index, ditto_operation_counters *out)
{
    if (dti_team_replica(team, 0)->traced == NULL)
        return fail_empty();
    const struct dti_total *named = operation_at(team, index);
    if (named == NULL)
        return DTI_FAIL(DITTO_ERR_NOT_FOUND, "operation %u does not exist: fewer were recorded", index);
    add_up(team, named, out);
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
    case DTI_TRACE_FILLING: /* this is the time of producers, of which no sums are kept */
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

ditto_status dti_trace_statistics(const struct dti_team *team, struct dti_text *text)
{
    struct shares shares = { 0 };
    const struct dti_total *named;
    if (dti_team_replica(team, 0)->traced == NULL)
        return fail_empty();
    dti_text_add(text, "%-30s %10s %14s %10s %10s %10s  %s\n", "operation", "calls", "bytes", "ms", "own ms",
                 "waited ms", "slowest replica");
    for (uint32_t i = 0; (named = operation_at(team, i)) != NULL; i++) {
        ditto_operation_counters t;
        add_up(team, named, &t);
        add_share(&shares, named->kind, &t);
        dti_text_add(text, "%-30s %10llu %14llu %10.3f %10.3f %10.3f  %u\n", t.name,
                     (unsigned long long)t.calls, (unsigned long long)t.bytes, ms(t.time_ns), ms(t.own_ns),
                     ms(t.wait_ns), t.slowest);
    }
    write_shares(&shares, text);
    return DITTO_OK;
}

/* -- events -- */

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

static void write_event(FILE *file, uint32_t track, const struct dti_event *e, uint64_t origin)
{
    static const char *const kinds[] = { "run", "collective", "input", "pause", "loop", "filling" };
    fprintf(file, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"name\":\"%s\",\"cat\":\"%s\",", (int)getpid(),
            track, e->name, kinds[e->kind]);
    write_us(file, "ts", e->begin_ns - origin);
    fputc(',', file);
    write_us(file, "dur", e->end_ns - e->begin_ns);
    fprintf(file, ",\"args\":{\"bytes\":%llu,", (unsigned long long)e->bytes);
    write_us(file, "waited_us", e->waited_ns);
    fputs("}}", file);
}

/* The time of the first event, and the range of the numbers of producers that occur in events. */
struct range_of_events {
    uint64_t begin_ns;
    uint32_t first_producer, producers;
};

static struct range_of_events range_of(const struct dti_team *team)
{
    uint32_t first = UINT32_MAX, end = 0;
    uint64_t begin = UINT64_MAX;
    for (uint32_t r = 0; r < dti_team_num_replicas(team); r++) {
        const struct dti_tracer *t = dti_team_replica(team, r)->traced;
        for (size_t i = 0; i < t->events; i++) {
            const struct dti_event *e = &t->event[i];
            begin = e->begin_ns < begin ? e->begin_ns : begin;
            if (e->kind == DTI_TRACE_FILLING) {
                first = e->producer < first ? e->producer : first;
                end = e->producer >= end ? e->producer + 1 : end;
            }
        }
    }
    return (struct range_of_events){ begin, first, end > first ? end - first : 0 };
}

/* Writes an event on the track of its producer. The track gets its name with its first event. If `named` is
 * NULL, tracks get no names. */
static void write_filling(FILE *file, uint32_t replicas, const struct dti_event *e,
                          const struct range_of_events *range, bool *named)
{
    uint32_t index = e->producer - range->first_producer, track = replicas + index;
    if (named != NULL && !named[index]) {
        write_track(file, track, "producer", e->producer);
        named[index] = true;
    }
    write_event(file, track, e, range->begin_ns);
}

static void write_events(const struct dti_team *team, FILE *file)
{
    struct range_of_events range = range_of(team);
    bool *named = calloc((size_t)range.producers + 1, sizeof *named);
    uint64_t dropped = 0;
    fprintf(
        file,
        "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\","
        "\"args\":{\"name\":\"ditto\"}}",
        (int)getpid());
    for (uint32_t r = 0; r < dti_team_num_replicas(team); r++) {
        const struct dti_tracer *t = dti_team_replica(team, r)->traced;
        write_track(file, r, "replica", r);
        for (size_t i = 0; i < t->events; i++)
            if (t->event[i].kind == DTI_TRACE_FILLING)
                write_filling(file, dti_team_num_replicas(team), &t->event[i], &range, named);
            else
                write_event(file, r, &t->event[i], range.begin_ns);
        dropped += t->dropped;
    }
    free(named);
    fprintf(file, "\n],\"otherData\":{\"events not kept\":\"%llu\"}}\n", (unsigned long long)dropped);
}

ditto_status dti_trace_write(const struct dti_team *team, const char *path)
{
    if (dti_team_replica(team, 0)->traced == NULL)
        return fail_empty();
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, errno, "\"%s\" can't be written", path);
    write_events(team, file);
    errno = 0;
    bool failed = fflush(file) != 0 || ferror(file) != 0;
    int error_number = errno;
    if (fclose(file) != 0 && !failed) {
        failed = true;
        error_number = errno;
    }
    /* stdio does not keep the errno of a write that failed before fflush. Then EIO is reported. */
    if (failed)
        return DTI_FAIL_ERRNO(DITTO_ERR_IO, error_number != 0 ? error_number : EIO,
                              "\"%s\" could not be written completely", path);
    return DITTO_OK;
}
