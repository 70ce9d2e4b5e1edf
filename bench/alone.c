/* bench/alone.c - counts and lines of CSV of rows without contenders, see alone.h. */
#include "alone.h"
#include "counters.h"
#include "perf_control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What all threads of one name counted. */
struct alone_thread {
    char name[32];
    struct counts sum;
};

static struct alone_thread *find(struct alone_counts *c, const char *name)
{
    for (uint32_t i = 0; i < c->threads; i++)
        if (strcmp(c->thread[i].name, name) == 0)
            return &c->thread[i];
    struct alone_thread *more = realloc(c->thread, (c->threads + 1) * sizeof *more);
    if (more == NULL)
        exit(1);
    c->thread = more;
    memset(&more[c->threads], 0, sizeof *more);
    snprintf(more[c->threads].name, sizeof more->name, "%s", name);
    return &more[c->threads++];
}

void alone_start(const struct alone_counts *counts)
{
    if (counts == NULL)
        return;
    counters_start_all();
    perf_control_enable();
}

void alone_stop(struct alone_counts *counts, uint64_t operations)
{
    const struct counts *more;
    const char *name;
    if (counts == NULL)
        return;
    perf_control_disable();
    counters_stop_all();
    for (size_t i = 0; counters_events > 0 && (more = counters_thread(i, &name)) != NULL; i++)
        counts_add(&find(counts, name)->sum, more);
    counts->operations += operations;
}

/* Threads that did nothing in the batches are left out. Without a clock all threads are shown. */
static bool did_nothing(const struct alone_thread *t)
{
    for (uint32_t e = 0; e < counters_events; e++)
        if (strcmp(counters_event[e].name, "task-clock") == 0)
            return counts_scaled(&t->sum, e) == 0;
    return false;
}

void alone_forget(struct alone_counts *counts)
{
    free(counts->thread);
    *counts = (struct alone_counts){ .thread = NULL };
}

static double per_operation(const struct alone_counts *c, uint32_t thread, uint32_t event)
{
    double sum = counts_scaled(&c->thread[thread].sum, event);
    return sum == UNCOUNTED ? UNCOUNTED : sum / (double)c->operations;
}

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* Appends a column for each event. It has NAME=RATE of each thread, with semicolons between them. */
static void csv_counts(struct alone_counts *counts)
{
    for (uint32_t e = 0; e < counters_events; e++) {
        const char *apart = "";
        printf(",");
        for (uint32_t i = 0; i < counts->threads; i++)
            if (!did_nothing(&counts->thread[i])) {
                printf("%s%s=", apart, counts->thread[i].name);
                counters_print(per_operation(counts, i, e));
                apart = ";";
            }
    }
    alone_forget(counts);
}

void alone_csv(const struct alone_row *row)
{
    printf("%s,%s,%u,", row->bench, row->algorithm, row->replicas);
    printf("%s,%s,%s,", or_empty(row->dtype), or_empty(row->op), row->dtype != NULL ? "0" : "");
    printf("%llu,%llu,%.0f,%.0f,%.0f,%.3f,%.0f,0,", (unsigned long long)row->bytes,
           (unsigned long long)row->reps, row->min_ns, row->median_ns, row->p95_ns,
           (double)row->bytes / row->median_ns, row->bound_ns);
    printf("%.3f,%s,1,,,,", row->peer_ratio, or_empty(row->peer));
    csv_counts(row->counts);
    printf("\n");
}

void alone_table(struct alone_counts *counts)
{
    for (uint32_t i = 0; i < counts->threads; i++) {
        struct rates each;
        for (uint32_t e = 0; e < counters_events; e++)
            each.of[e] = per_operation(counts, i, e);
        if (!did_nothing(&counts->thread[i]))
            counters_print_line(counts->thread[i].name, &each);
    }
    alone_forget(counts);
}
