/* bench/report.c - prints tables and CSV, see report.h. */
#include "report.h"
#include "judge.h"

#include <bench-commit.h>
#include <ditto/api.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#if defined(__clang__)
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* -- the machine -- */

/* Finds the first line of a file with the given beginning, and returns the rest of the line. Returns
 * "unknown" if there is none. */
static const char *line_of(const char *path, const char *beginning, char *line, int size)
{
    FILE *file = fopen(path, "r");
    size_t length = strlen(beginning);
    const char *found = "unknown";
    while (file != NULL && fgets(line, size, file) != NULL)
        if (strncmp(line, beginning, length) == 0) {
            line[strcspn(line, "\n")] = '\0';
            found = line + length + strspn(line + length, " \t:");
            break;
        }
    if (file != NULL)
        fclose(file);
    return found;
}

static int count_nodes(void)
{
    int count = 0;
    DIR *directory = opendir("/sys/devices/system/node");
    for (struct dirent *e; directory != NULL && (e = readdir(directory)) != NULL;)
        count += strncmp(e->d_name, "node", 4) == 0 && e->d_name[4] >= '0' && e->d_name[4] <= '9';
    if (directory != NULL)
        closedir(directory);
    return count > 0 ? count : 1;
}

void report_machine(void)
{
    struct utsname kernel;
    char cpu[256], smt[64], governor[64], date[32];
    time_t now = time(NULL);
    uname(&kernel);
    strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
    printf("# ditto %s, commit %s, %s, %s\n", ditto_version(), BENCH_COMMIT, COMPILER, date);
    printf("# %s, %ld PUs, NUMA nodes: %d, SMT: %s, governor: %s, Linux %s\n",
           line_of("/proc/cpuinfo", "model name", cpu, sizeof cpu), sysconf(_SC_NPROCESSORS_ONLN),
           count_nodes(), line_of("/sys/devices/system/cpu/smt/control", "", smt, sizeof smt),
           line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "", governor, sizeof governor),
           kernel.release);
    printf("# fresh data: each replica rewrites its input, runs the collective, reads its result; "
           "a barrier is taken off\n");
}

static double ns_of(const struct result *r, int which)
{
    return which < 0 ? 0 : r[which].median_ns;
}

/* -- counters -- */

/* Appends a column for each event. It has the rates of all replicas, with semicolons between them. */
static void csv_rates(const struct rates *rates, uint32_t replicas)
{
    for (uint32_t e = 0; e < counters_events; e++)
        for (uint32_t r = 0; r < replicas; r++) {
            printf("%s", r == 0 ? "," : ";");
            counters_print(rates[r].of[e]);
        }
}

/* Prints a line for each replica of a contender. */
static void table_rates(const char *name, const struct rates *rates, uint32_t replicas)
{
    char thread[64];
    for (uint32_t r = 0; r < replicas && counters_events > 0; r++) {
        snprintf(thread, sizeof thread, "%s, replica %u", name, r);
        counters_print_line(thread, &rates[r]);
    }
}

/* Appends the column of the times of the batches, with semicolons between them. */
static void csv_samples(const struct result *r)
{
    printf(",");
    for (uint32_t i = 0; i < r->batches; i++)
        printf("%s%.0f", i == 0 ? "" : ";", r->sample_ns[i]);
}

/* -- CSV: the first fourteen columns are fixed, and new ones are appended -- */

static void csv_row(const struct request *q, const struct work *work, const struct contender *c,
                    const struct measured *row, const struct result *r, double bound_ns, const char *form,
                    double openmp_ns)
{
    const struct bench_facts *facts = &bench_facts[q->kind];
    bool loop = q->kind == BENCH_PARALLEL_FOR, skew = q->kind == BENCH_SKEW;
    printf("%s", facts->name);
    if (q->groups > 0)
        printf(" in %s%u groups", q->alone ? "1 of " : "", q->groups);
    printf(",%s,%u,", c->name, loop ? 1 : q->replicas);
    printf("%s,%s,%s,", facts->collective ? ditto_dtype_name(q->dtype) : "",
           facts->reduces ? ditto_op_name(q->op) : "", facts->collective ? (q->in_place ? "1" : "0") : "");
    printf("%zu,%llu,%.0f,%.0f,%.0f,%.3f,%.0f,%d,", work->bytes, (unsigned long long)r->reps, r->min_ns,
           r->median_ns, r->p95_ns, (double)work->bytes / r->median_ns, bound_ns, r->noisy);
    printf("%.3f,%s,%u,", openmp_ns / r->median_ns, form, loop ? q->replicas : 1);
    if (skew)
        printf("%u,%.3f,%.3f,", work->skew_ns / 1000, r->cpu_share, r->cpu_ratio);
    else
        printf(",,,");
    printf("%s,", q->turns ? "1" : "");
    if (!row->is_disturbed)
        printf("%.1f", row->hand_over_ns);
    printf(",%u,%u,", row->batches, row->disturbed);
    if (work_is_program(q->kind))
        printf("%.3f", r->operation_share);
    printf(",");
    if (q->samples)
        csv_samples(r);
    csv_rates(r->rates, work->replicas);
    printf("\n");
}

/* -- a table -- */

static const char *const peers[] = { "libgomp", "libomp",    "openmpi", "mpich",
                                     "gloo",    "deepspeed", "vllm",    "gloo-shm" };
static const char *const families[] = { "OpenMP", "MPI", "gloo", "shm" };
enum { PEERS = sizeof peers / sizeof peers[0], FAMILIES = sizeof families / sizeof families[0] };

static void heading_of_table(const struct request *q)
{
    printf("%-14s %3s %9s %-4s %11s %11s %-14s %8s", "bench", "N", "bytes", "", "ditto ns", "bound ns",
           "form", "of bound");
    for (int i = 0; i < (q->peers ? PEERS : 1); i++)
        printf(" %11s", peers[i]);
    for (int i = 0; i < (q->peers ? FAMILIES : 1); i++)
        printf("  /%-6s", families[i]);
    printf("\n");
}

static void ns_cell(double ns)
{
    if (ns > 0)
        printf(" %11.0f", ns);
    else
        printf(" %11s", "");
}

static void ratio_cell(double ns, double of)
{
    if (ns > 0 && of > 0)
        printf("  %-7.3g", ns / of);
    else
        printf("  %-7s", "");
}

static double ns_of_name(const struct contender *c, const struct result *r, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (!c[i].is_bound && strcmp(c[i].name, name) == 0)
            return r[i].median_ns;
    return 0;
}

/* Prints what only some kinds of work have, and the mode. */
static void remarks(const struct request *q, const struct work *work, const struct contender *c,
                    const struct measured *row, uint32_t count)
{
    const struct result *r = row->result;
    double plain_ns = ns_of_name(c, r, count, "ditto-plain"),
           alone_ns = ns_of_name(c, r, count, "ditto-strategy");
    if (q->dtype != DITTO_F32 || q->op != DITTO_SUM)
        printf(" %s %s", ditto_dtype_name(q->dtype),
               bench_facts[q->kind].reduces ? ditto_op_name(q->op) : "");
    if (plain_ns > 0 && r[0].median_ns > 0)
        printf(" %.2f of the plain call", r[0].median_ns / plain_ns);
    if (q->groups > 0 && alone_ns > 0 && r[0].median_ns > 0)
        printf(" %s%u groups: %.2f of a strategy of %u", q->alone ? "1 of " : "", q->groups,
               r[0].median_ns / alone_ns, work->replicas);
    if (q->kind == BENCH_SKEW)
        printf(" late by %u us, CPU seconds of those of the work:", work->skew_ns / 1000);
    if (work_is_program(q->kind))
        printf(" share of collectives:");
    for (uint32_t i = 0; i < count && work_is_program(q->kind); i++)
        if (r[i].median_ns > 0)
            printf(" %s %.2f", c[i].name, r[i].operation_share);
    for (uint32_t i = 0; i < count && q->kind == BENCH_SKEW; i++)
        if (!c[i].is_bound && r[i].median_ns > 0)
            printf(" %s %.2f", c[i].name, r[i].cpu_ratio);
    if (row->is_disturbed)
        printf(" all batches were disturbed");
    else
        printf(" hand-over %.0f ns%s", row->hand_over_ns, row->too_few ? ", too few batches" : "");
    printf("%s", r[0].noisy ? ", noisy" : "");
    if (row->disturbed > 0)
        printf(", disturbed: %u", row->disturbed);
    printf("\n");
}

static void table_row(const struct request *q, const struct work *work, const struct contender *c,
                      const struct measured *row, uint32_t count, int bound)
{
    const struct result *r = row->result;
    double ns = r[0].median_ns, bound_ns = ns_of(r, bound);
    printf("%-14s %3u %9zu %-4s", bench_facts[q->kind].name, q->replicas, work->bytes,
           bench_facts[q->kind].collective ? (q->turns      ? "turn"
                                              : q->in_place ? "in"
                                                            : "out")
                                           : "");
    ns_cell(ns);
    ns_cell(bound_ns);
    printf(" %-14s", bound >= 0 ? c[bound].name : "");
    if (ns > 0 && bound >= 0)
        printf(" %8.2f", bound_ns / ns);
    else
        printf(" %8s", "");
    for (int i = 0; i < (q->peers ? PEERS : 1); i++)
        ns_cell(ns_of_name(c, r, count, peers[i]));
    for (int i = 0; i < (q->peers ? FAMILIES : 1); i++)
        ratio_cell(ns, ns_of(r, judge_best(c, r, count, families[i])));
    remarks(q, work, c, row, count);
    for (uint32_t i = 0; i < count; i++)
        if (r[i].median_ns > 0 && (!c[i].is_bound || (int)i == bound))
            table_rates(c[i].name, r[i].rates, work->replicas);
}

/* -- both -- */

void report_heading(const struct request *q)
{
    if (q->csv) {
        printf("bench,algorithm,replicas,dtype,op,in_place,bytes,reps,ns_min,ns_median,ns_p95,gbps,bound_ns,"
               "noisy,peer_ratio,bound_form,devices,skew_us,cpu_share,cpu_ratio,turns,hand_over_ns,"
               "batches,disturbed,operation_share,load%s",
               q->samples ? ",samples" : "");
        for (uint32_t e = 0; e < counters_events; e++)
            printf(",%s", counters_event[e].name);
        printf("\n");
        return;
    }
    report_machine();
    heading_of_table(q);
}

static void print_row(const struct request *q, const struct work *work, const struct contender *c,
                      const struct measured *row, uint32_t count)
{
    const struct result *r = row->result;
    int bound = judge_best(c, r, count, NULL);
    double openmp_ns = ns_of(r, judge_best(c, r, count, "OpenMP"));
    if (!q->csv) {
        table_row(q, work, c, row, count, bound);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        if ((!c[i].is_bound || q->forms) && r[i].median_ns > 0)
            csv_row(q, work, &c[i], row, &r[i], ns_of(r, bound), bound >= 0 ? c[bound].name : "", openmp_ns);
}

void report_rows(const struct request *q, const struct work *work, const struct contender *c,
                 const struct measured *row, uint32_t modes, uint32_t count)
{
    for (uint32_t m = 0; m < modes; m++)
        print_row(q, work, c, &row[m], count);
    fflush(stdout);
}
