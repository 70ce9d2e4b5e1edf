/* bench/main.c - the program ditto-bench: which rows, measured against whom, printed how.
 *
 *     ditto-bench NAME [--replicas N] [--bytes LIST] [--dtype f32] [--op SUM] [--in-place] [--csv]
 * NAME: barrier, run, all-reduce, create, rest. LIST: 8,4K,1M or 8..128M in steps of 4.
 * With --csv the columns of the first thirteen are fixed; new ones go to the end. */
#include "harness.h"

#include <ditto/api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

struct request {
    enum bench_kind kind;
    const char *name;
    uint32_t replicas;
    size_t bytes[32];
    uint32_t sizes;
    bool in_place, csv;
};

static void usage(void)
{
    fprintf(stderr, "usage: ditto-bench barrier|run|all-reduce|parallel-for|create|rest [--replicas N] [--devices N] "
                    "[--bytes 8,4K,1M or 8..128M] "
                    "[--dtype f32] "
                    "[--op SUM] [--in-place] [--csv]\n");
    exit(2);
}

static size_t parse_size(const char **text)
{
    char *end;
    size_t size = strtoull(*text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (end == *text)
        usage();
    *text = end + (shift != 0);
    return size << shift;
}

static void parse_sizes(struct request *r, const char *text)
{
    r->sizes = 0;
    while (*text != '\0' && r->sizes < 32) {
        size_t size = parse_size(&text);
        r->bytes[r->sizes++] = size;
        if (strncmp(text, "..", 2) == 0) {
            text += 2;
            size_t last = parse_size(&text);
            while (r->sizes < 32 && size != 0 && (size *= 4) <= last)
                r->bytes[r->sizes++] = size;
            if (r->bytes[r->sizes - 1] < last && r->sizes < 32) /* the end of the range is always measured */
                r->bytes[r->sizes++] = last;
        }
        text += *text == ',';
    }
    for (uint32_t i = 0; i < r->sizes; i++)
        if ((r->bytes[i] < 4 && r->kind != BENCH_PARALLEL_FOR) || r->bytes[i] % 4 != 0 || r->bytes[i] > (size_t)1 << 32)
            usage();
}

static struct request parse(int count, char **word)
{
    struct request r = { .replicas = 2 };
    static const char *const names[] = { "barrier", "run", "all-reduce", "parallel-for", "create", "rest" };
    if (count < 2)
        usage();
    for (int i = 0; i < 6; i++)
        if (strcmp(word[1], names[i]) == 0) {
            r.name = names[i];
            r.kind = (enum bench_kind)i;
        }
    if (r.name == NULL)
        usage();
    if (r.kind == BENCH_ALL_REDUCE)
        parse_sizes(&r, "8..128M");
    else if (r.kind == BENCH_PARALLEL_FOR)
        parse_sizes(&r, "0,256M");
    else
        r.sizes = 1;
    for (int i = 2; i < count; i++) {
        const char *value = i + 1 < count ? word[i + 1] : "";
        if (strcmp(word[i], "--in-place") == 0)
            r.in_place = true;
        else if (strcmp(word[i], "--csv") == 0)
            r.csv = true;
        else if (strcmp(word[i], "--replicas") == 0 && atoi(value) >= 1 && atoi(value) <= 1024)
            r.replicas = (uint32_t)atoi(value), i++;
        else if (strcmp(word[i], "--devices") == 0 && r.kind == BENCH_PARALLEL_FOR && atoi(value) >= 1 &&
                 atoi(value) <= 1024)
            r.replicas = (uint32_t)atoi(value), i++;
        else if (strcmp(word[i], "--bytes") == 0 && (r.kind == BENCH_ALL_REDUCE || r.kind == BENCH_PARALLEL_FOR))
            parse_sizes(&r, value), i++;
        else if ((strcmp(word[i], "--dtype") == 0 && strcmp(value, "f32") == 0) ||
                 (strcmp(word[i], "--op") == 0 && strcmp(value, "SUM") == 0))
            i++;
        else
            usage();
    }
    return r;
}

static void print_machine(void)
{
    struct utsname kernel;
    char line[256], cpu[128] = "unknown";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "model name : %127[^\n]", cpu) == 1)
            break;
    if (file != NULL)
        fclose(file);
    uname(&kernel);
    printf("# ditto %s, %s, Linux %s, %s, %ld PUs\n", ditto_version(), __VERSION__, kernel.release, cpu,
           sysconf(_SC_NPROCESSORS_ONLN));
    printf("# fresh data: each replica rewrites its input, runs the collective, reads its result; a barrier is taken "
           "off\n");
}

/* The fastest of the bound's forms; -1: none does this work. */
static int best_bound(const struct contender *c, const struct result *r, uint32_t count)
{
    int best = -1;
    for (uint32_t i = 0; i < count; i++)
        if (c[i].is_bound && r[i].median_ns > 0 && (best < 0 || r[i].median_ns < r[best].median_ns))
            best = (int)i;
    return best;
}

/* A row for each contender that is no bound. False: ditto is faster than every bound, so the bound is wrong. */
static bool print_rows(const struct request *q, size_t bytes, const struct contender *c, const struct result *r,
                       uint32_t count)
{
    int bound = best_bound(c, r, count);
    double bound_ns = bound >= 0 ? r[bound].median_ns : 0, ditto_ns = r[0].median_ns, peer_ns = 0;
    bool reduce = q->kind == BENCH_ALL_REDUCE, loop = q->kind == BENCH_PARALLEL_FOR;
    for (uint32_t i = 1; i < count; i++)
        if (!c[i].is_bound && r[i].median_ns > 0)
            peer_ns = r[i].median_ns;
    for (uint32_t i = 0; i < count; i++) {
        if (c[i].is_bound || r[i].median_ns < 0)
            continue;
        if (q->csv)
            printf("%s,%s,%u,%s,%s,%s,%zu,%llu,%.0f,%.0f,%.0f,%.3f,%.0f,%d,%.3f,%s,%u\n", q->name, c[i].name,
                   loop ? 1 : q->replicas, reduce ? "f32" : "", reduce ? "SUM" : "",
                   reduce ? (q->in_place ? "1" : "0") : "", bytes, (unsigned long long)r[i].reps, r[i].min_ns,
                   r[i].median_ns, r[i].p95_ns, reduce || loop ? (double)bytes / r[i].median_ns : 0.0, bound_ns,
                   r[i].noisy, peer_ns / r[i].median_ns, bound >= 0 ? c[bound].name : "", loop ? q->replicas : 1);
    }
    if (!q->csv)
        printf("%-10s %3u %9zu %-4s %11.0f %11.0f %-12s %9.2f %11.0f %9.2f %s\n", q->name, q->replicas, bytes,
               reduce ? (q->in_place ? "in" : "out") : "", ditto_ns, bound_ns, bound >= 0 ? c[bound].name : "",
               bound_ns / ditto_ns, peer_ns, ditto_ns / peer_ns, r[0].noisy ? "noisy" : "");
    fflush(stdout);
    return bound < 0 || ditto_ns >= 0.97 * bound_ns || r[0].noisy;
}

int main(int count, char **word)
{
    struct request q = parse(count, word);
    struct contender contenders[MOST_CONTENDERS];
    struct result result[MOST_CONTENDERS];
    char program[4096];
    if (q.csv)
        printf("bench,algorithm,replicas,dtype,op,in_place,bytes,reps,ns_min,ns_median,ns_p95,gbps,bound_ns,noisy,"
               "peer_ratio,bound_form,devices\n");
    if (q.kind == BENCH_CREATE || q.kind == BENCH_REST) {
        (q.kind == BENCH_CREATE ? bench_create : bench_rest)(q.replicas, q.csv);
        return 0;
    }
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 32);
    uint32_t used = 1, peer = 0;
    bool sound = true;
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    strcpy(slash != NULL ? slash + 1 : program, "peer-openmp");
    if (peer_open(&contenders[1], "openmp", program, q.replicas))
        peer = used++;
    used += bound_open(&contenders[used], q.replicas);
    ditto_contender_open(&contenders[0], q.kind, q.replicas);
    if (!q.csv) {
        print_machine();
        printf("%-10s %3s %9s %-4s %11s %11s %-12s %9s %11s %9s\n", "bench", "N", "bytes", "", "ditto ns", "bound ns",
               "form", "of bound", "openmp ns", "of openmp");
    }
    for (uint32_t i = 0; i < q.sizes; i++) {
        struct work work = { .kind = q.kind, .replicas = q.replicas, .bytes = q.bytes[i], .in_place = q.in_place };
        measure(contenders, used, work, result);
        sound &= print_rows(&q, q.bytes[i], contenders, result, used);
    }
    ditto_contender_close(&contenders[0]);
    bound_close();
    if (peer != 0)
        peer_close(&contenders[peer]);
    if (!sound)
        fprintf(stderr, "ditto-bench: ditto is below 0.97 of a bound: bench/bound.c lacks a form\n");
    return sound ? 0 : 1;
}
