/* bench/wait.c - the cost of waiting for a late replica, beside other programs.
 *
 * In each repetition each replica uses 300 us of CPU time, one replica in turn uses some more, and then there
 * is an all-reduce of 8 bytes. A row has a lateness and a load, which is the number of busy threads of other
 * processes on each PU. It shows the microseconds of a repetition, and the CPU microseconds of all replicas,
 * for ditto and its peers with each of their ways to wait.
 *
 * A contender first learns for 1 s, and is then measured for 2 s. This is done five times, interleaved,
 * and the figures are medians. */
#include "harness.h"
#include "samples.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS = 5, MOST_LOAD = 16 };
#define LEARN_SECONDS   1.0
#define MEASURE_SECONDS 2.0

/* -- load -- */

static struct {
    pid_t process[CPU_SETSIZE * MOST_LOAD];
    uint32_t count, per_pu;
} load;

static void add_load(size_t pu)
{
    pid_t child = fork();
    if (child < 0)
        exit(1);
    if (child == 0) {
        cpu_set_t one;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        CPU_ZERO(&one);
        CPU_SET(pu, &one);
        if (sched_setaffinity(0, sizeof one, &one) != 0)
            _exit(1);
        for (volatile uint64_t i = 0;; i++)
            ;
    }
    load.process[load.count++] = child;
}

/* Starts busy processes on each PU of this process. */
static void start_load(uint32_t per_pu)
{
    cpu_set_t all;
    load.per_pu = per_pu;
    CPU_ZERO(&all);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        exit(1);
    for (size_t pu = 0; pu < CPU_SETSIZE; pu++)
        for (uint32_t i = 0; CPU_ISSET(pu, &all) && i < per_pu; i++)
            add_load(pu);
}

static void stop_load(void)
{
    while (load.count > 0) {
        kill(load.process[--load.count], SIGKILL);
        waitpid(load.process[load.count], NULL, 0);
    }
}

/* -- measuring -- */

/* The microseconds of a repetition in each run. */
struct waits {
    double time[RUNS], cpu[RUNS];
    bool out;
};

/* Runs batches until they have taken `seconds` together. Returns the sum of their times. *reps gets the
 * number of repetitions. */
static struct timing run_for(struct contender *c, struct waits *w, struct work work, double seconds,
                             uint64_t *reps)
{
    struct timing all = { 0, 0, 0 };
    *reps = 0;
    /* A batch takes about a fifth of a second, or more if threads spin on PUs that others use. */
    work.reps = 200000000u / (WAIT_WORK_NS + work.skew_ns) / (1 + load.per_pu) + 1;
    while (all.seconds < seconds && !w->out) {
        struct timing batch = c->batch(c->state, &work, false);
        w->out = batch.seconds < 0;
        all.seconds += batch.seconds;
        all.cpu_seconds += batch.cpu_seconds;
        *reps += work.reps;
    }
    return all;
}

static void measure_run(struct contender *c, struct waits *w, struct work work, int run)
{
    uint64_t reps;
    if (!w->out && !c->prepare(c->state, &work)) {
        fprintf(stderr, "ditto-bench: %s cannot do this work, and has no row\n", c->name);
        w->out = true;
    }
    if (w->out)
        return;
    (void)run_for(c, w, work, LEARN_SECONDS, &reps);
    struct timing all = run_for(c, w, work, MEASURE_SECONDS, &reps);
    w->time[run] = all.seconds * 1e6 / (double)reps;
    w->cpu[run] = all.cpu_seconds * 1e6 / (double)reps;
    c->finish(c->state, &work);
}

/* -- rows -- */

static double least(const struct contender *c, const struct waits *w, uint32_t count, const char *family,
                    bool cpu)
{
    double found = 0;
    for (uint32_t i = 0; i < count; i++) {
        double figure = cpu ? w[i].cpu[RUNS / 2] : w[i].time[RUNS / 2];
        bool wanted = c[i].family != NULL && (family == NULL || strcmp(c[i].family, family) == 0);
        if (wanted && !w[i].out && (found == 0 || figure < found))
            found = figure;
    }
    return found;
}

static void print(const struct request *q, const struct contender *c, struct waits *w, uint32_t count,
                  uint32_t late_us, uint32_t per_pu)
{
    for (uint32_t i = 0; i < count; i++) {
        sort_samples(w[i].time, RUNS);
        sort_samples(w[i].cpu, RUNS);
    }
    double time_default = least(c, w, count, "default", false), time_any = least(c, w, count, NULL, false);
    double cpu_default = least(c, w, count, "default", true), cpu_any = least(c, w, count, NULL, true);
    for (uint32_t i = 0; i < count; i++) {
        double time = w[i].time[RUNS / 2], cpu = w[i].cpu[RUNS / 2];
        if (w[i].out)
            continue;
        if (q->csv)
            printf("wait,%s,%u,,,,0,%d,%.0f,%.0f,%.0f,,,%d,%.3f,,1,%u,%.3f,%.3f,,,%d,0,,%u\n", c[i].name,
                   q->replicas, RUNS, w[i].time[0] * 1e3, time * 1e3, w[i].time[RUNS - 1] * 1e3,
                   w[i].time[RUNS * 3 / 4] - w[i].time[RUNS / 4] > 0.15 * time, time_default / time, late_us,
                   cpu / time, cpu / (WAIT_WORK_NS * 1e-3 * q->replicas + late_us), RUNS, per_pu);
        else
            printf(
                "wait %-16s %3u load %u late %4u us: %8.1f us (%.2f of the best default, %.2f of the best), "
                "CPU %8.1f us (%.2f, %.2f)\n",
                c[i].name, q->replicas, per_pu, late_us, time, time / time_default, time / time_any, cpu,
                cpu / cpu_default, cpu / cpu_any);
    }
    fflush(stdout);
}

static void measure_row(const struct request *q, struct contender *c, uint32_t count, uint32_t late_us)
{
    static struct waits waits[MOST_CONTENDERS];
    struct work work = { .kind = BENCH_WAIT,
                         .replicas = q->replicas,
                         .bytes = 8,
                         .dtype = DITTO_F32,
                         .op = DITTO_SUM,
                         .skew_ns = late_us * 1000 };
    memset(waits, 0, sizeof waits);
    start_load(q->load);
    for (int run = 0; run < RUNS; run++)
        for (uint32_t i = 0; i < count; i++)
            measure_run(&c[i], &waits[i], work, run);
    stop_load();
    print(q, c, waits, count, late_us, q->load);
}

/* With autogroups, the kernel first divides each PU between sessions, and then between the threads of each.
 * MPICH puts each rank into a session of its own, which then gets more of a PU than a thread of ditto. */
static void warn_of_autogroups(void)
{
    int enabled = 0;
    FILE *file = fopen("/proc/sys/kernel/sched_autogroup_enabled", "re");
    if (file != NULL && fscanf(file, "%d", &enabled) == 1 && enabled != 0)
        fprintf(stderr,
                "ditto-bench: the kernel gives each session a share of its own, so programs that start "
                "sessions (MPICH) get more of a loaded PU than others. For figures that can be "
                "compared: sysctl kernel.sched_autogroup_enabled=0\n");
    if (file != NULL)
        fclose(file);
}

void bench_wait(const struct request *q, const char *folder)
{
    unsetenv("DITTO_WAIT");
    unsetenv("DITTO_SPIN_US");
    if (q->load > 0 && q->peers)
        warn_of_autogroups();
    static struct contender contenders[MOST_CONTENDERS];
    uint32_t count = waiting_dittos_open(contenders);
    count += waiting_peers_open(&contenders[count], folder, q->peers, q->replicas);
    for (uint32_t i = 0; i < q->skews; i++)
        measure_row(q, contenders, count, q->skew_us[i]);
    for (uint32_t i = 0; i < count; i++)
        contenders[i].close(contenders[i].state);
}
