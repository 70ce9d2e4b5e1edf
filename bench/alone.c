/* bench/alone.c - counts and lines of CSV of rows without contenders, see alone.h. */
#include "alone.h"
#include "counters.h"
#include "perf_control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What all threads of one name counted in each batch. */
struct alone_thread {
    char name[32];
    struct counts *batch; /* [batches] */
    uint32_t batches;
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

/* Returns what the threads counted in a batch. */
static struct counts *batch_of(struct alone_thread *t, uint32_t batch)
{
    if (batch >= t->batches) {
        t->batch = realloc(t->batch, (batch + 1) * sizeof *t->batch);
        if (t->batch == NULL)
            exit(1);
        memset(t->batch + t->batches, 0, (batch + 1 - t->batches) * sizeof *t->batch);
        t->batches = batch + 1;
    }
    return &t->batch[batch];
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
        counts_add(batch_of(find(counts, name), counts->batches), more);
    counts->operations = realloc(counts->operations, (counts->batches + 1) * sizeof *counts->operations);
    if (counts->operations == NULL)
        exit(1);
    counts->operations[counts->batches++] = operations;
}

void alone_forget(struct alone_counts *counts)
{
    for (uint32_t i = 0; i < counts->threads; i++)
        free(counts->thread[i].batch);
    free(counts->thread);
    free(counts->operations);
    *counts = (struct alone_counts){ .thread = NULL };
}

/* The counts of a thread in the batches of a mode, and the operations in them. */
struct picked {
    struct counts sum;
    uint64_t operations;
};

static struct picked pick(const struct alone_counts *c, uint32_t thread, const struct rounds *rounds,
                          uint32_t column, uint32_t mode)
{
    struct picked picked = { .operations = 0 };
    for (uint32_t i = 0; i < c->batches; i++) {
        if (rounds != NULL && !rounds_has(rounds, i, column, mode))
            continue;
        if (i < c->thread[thread].batches)
            counts_add(&picked.sum, &c->thread[thread].batch[i]);
        picked.operations += c->operations[i];
    }
    return picked;
}

/* Threads that did nothing in the batches are left out. Without a clock all threads are shown. */
static bool did_nothing(const struct picked *p)
{
    for (uint32_t e = 0; e < counters_events; e++)
        if (strcmp(counters_event[e].name, "task-clock") == 0)
            return counts_scaled(&p->sum, e) == 0;
    return false;
}

static double per_operation(const struct picked *p, uint32_t event)
{
    double sum = counts_scaled(&p->sum, event);
    return sum == UNCOUNTED ? UNCOUNTED : sum / (double)p->operations;
}

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* Appends a column for each event. It has NAME=RATE of each thread, with semicolons between them. */
static void csv_counts(const struct alone_row *row)
{
    for (uint32_t e = 0; e < counters_events; e++) {
        const char *apart = "";
        printf(",");
        for (uint32_t i = 0; row->counts != NULL && i < row->counts->threads; i++) {
            struct picked picked = pick(row->counts, i, row->rounds, row->column, row->mode);
            if (did_nothing(&picked))
                continue;
            printf("%s%s=", apart, row->counts->thread[i].name);
            counters_print(per_operation(&picked, e));
            apart = ";";
        }
    }
}

void alone_csv(const struct alone_row *row)
{
    double less = row->less_ns;
    struct figures f = { row->only_ns, row->only_ns, row->only_ns, 1 };
    if (row->rounds != NULL)
        f = rounds_figures(row->rounds, row->column, row->mode);
    printf("%s,%s,%u,", row->bench, row->algorithm, row->replicas);
    printf("%s,%s,%s,", or_empty(row->dtype), or_empty(row->op), row->dtype != NULL ? "0" : "");
    printf("%llu,%llu,%.0f,%.0f,%.0f,%.3f,%.0f,0,", (unsigned long long)row->bytes,
           (unsigned long long)row->reps, f.min - less, f.median - less, f.p95 - less,
           (double)row->bytes / (f.median - less), row->bound_ns);
    printf("%.3f,%s,1,,,,,", row->peer_ratio, or_empty(row->peer));
    if (row->rounds != NULL) {
        if (!row->rounds->disturbed)
            printf("%.1f", row->rounds->modes.mode[row->mode].median_ns);
        printf(",%u,%u,,", rounds_fewest(row->rounds, row->mode), rounds_disturbed(row->rounds, row->column));
    } else {
        printf(",1,0,,");
    }
    csv_counts(row);
    printf("\n");
}

void alone_end_row(const struct rounds *rounds, uint32_t column, uint32_t mode,
                   const struct alone_counts *counts)
{
    if (rounds != NULL) {
        if (rounds->disturbed)
            printf(" all batches were disturbed");
        else
            printf(" hand-over %.0f ns%s", rounds->modes.mode[mode].median_ns,
                   rounds_too_few(rounds, mode) ? ", too few batches" : "");
        if (rounds_disturbed(rounds, column) > 0)
            printf(", disturbed: %u", rounds_disturbed(rounds, column));
    }
    printf("\n");
    for (uint32_t i = 0; i < counts->threads; i++) {
        struct picked picked = pick(counts, i, rounds, column, mode);
        struct rates each;
        for (uint32_t e = 0; e < counters_events; e++)
            each.of[e] = per_operation(&picked, e);
        if (!did_nothing(&picked))
            counters_print_line(counts->thread[i].name, &each);
    }
}
