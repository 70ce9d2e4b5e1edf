/* bench/main.c - the program ditto-bench, which measures one kind of work and prints a row for each size. See
 * request.c for its command line. */
#include "hand_over.h"
#include "judge.h"
#include "perf_control.h"
#include "report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Writes the path of the folder of this program. The peers are in the same folder. */
static void own_folder(char *folder, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", folder, size - 1);
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        *slash = '\0';
}

/* Opens all contenders. ditto is the first in the list. The processes of peers are started before it,
 * because opening ditto binds this thread to one PU. */
static uint32_t open_all(const struct request *q, struct contender *contenders)
{
    static struct contender peers[MOST_CONTENDERS];
    char folder[4096];
    own_folder(folder, sizeof folder);
    uint32_t peer_count = peers_open(peers, folder, q->peers, q->replicas), bounds, count;
    bounds = bound_open(&peers[peer_count], q->kind, request_members(q));
    count = ditto_contender_open(contenders, q);
    memcpy(&contenders[count], peers, (peer_count + bounds) * sizeof *peers);
    return count + peer_count + bounds;
}

static void close_all(struct contender *contenders, uint32_t count)
{
    for (uint32_t i = count; i-- > 0;) /* closes ditto's second contender before its first */
        if (contenders[i].close != NULL)
            contenders[i].close(contenders[i].state);
    bound_close();
}

enum { MOST_TRIES = 3 };

/* Measures a work and prints its rows. If a contender was faster than the bound, the work is measured again,
 * because only a bound that the same contender beats three times in a row is wrong. Then a form is missing.
 * Returns false in that case. */
static bool measure_work(const struct request *q, struct contender *contenders, uint32_t count,
                         const struct work *work)
{
    struct measured row[MODES_MOST];
    uint64_t faster = UINT64_MAX;
    for (int try = 0; try < MOST_TRIES && faster != 0; try++) {
        uint32_t modes = measure(contenders, count, *work, row);
        report_rows(q, work, contenders, row, modes, count);
        faster &= judge_faster_than_bound(work, contenders, row, modes, count);
    }
    for (uint32_t i = 0; i < count; i++)
        if (faster >> i & 1)
            fprintf(stderr,
                    "ditto-bench: %s of %zu bytes: %s took less than 0.97 of the time of the fastest "
                    "hand-written form, three times in a row, so this form is no bound: add a faster one to "
                    "bench/bound_forms.c\n",
                    bench_facts[work->kind].name, work->bytes, contenders[i].name);
    return faster == 0;
}

static bool measure_all(const struct request *q)
{
    static struct contender contenders[MOST_CONTENDERS];
    uint32_t count = open_all(q, contenders);
    bool sound = true;
    report_heading(q);
    for (uint32_t i = 0; i < q->sizes; i++)
        for (uint32_t k = 0; k < q->skews; k++) {
            struct work work = { .kind = q->kind,
                                 .replicas = request_members(q),
                                 .groups = q->groups,
                                 .alone = q->alone,
                                 .bytes = q->bytes[i],
                                 .dtype = q->dtype,
                                 .op = q->op,
                                 .in_place = q->in_place,
                                 .turns = q->turns,
                                 .skew_ns = q->skew_us[k] * 1000 };
            sound &= measure_work(q, contenders, count, &work);
        }
    close_all(contenders, count);
    hand_over_close();
    return sound;
}

/* The functions of the kinds that have no peers. */
static bench_alone *const without_peers[BENCH_KINDS] = {
    [BENCH_CREATE] = bench_create,
    [BENCH_REST] = bench_rest,
    [BENCH_RUN_VALUES] = bench_run_values,
    [BENCH_REDUCE_VALUES] = bench_reduce_values,
    [BENCH_MERGE_CALL] = bench_merge_call,
    [BENCH_EXCHANGE] = bench_exchange,
    [BENCH_DOT] = bench_dot,
    [BENCH_TRACE] = bench_trace,
    [BENCH_ASSIGN] = bench_assign,
    [BENCH_APPLY] = bench_apply,
    [BENCH_QUEUE] = bench_queue,
    [BENCH_FUNCTIONS] = bench_functions,
    [BENCH_INPUT] = bench_input,
    [BENCH_GENERATE] = bench_generate,
#ifdef WITH_CHECKPOINTS
    [BENCH_CHECKPOINT] = bench_checkpoint,
#endif
};

int main(int count, char **word)
{
    struct request q = request_parse(count, word);
    if (q.machine) {
        report_machine();
        return 0;
    }
    if (q.kind == BENCH_WAIT) {
        char folder[4096];
        own_folder(folder, sizeof folder);
        report_heading(&q);
        bench_wait(&q, folder);
        return 0;
    }
    hand_over_open();
    if (without_peers[q.kind] != NULL) {
        if (q.csv)
            report_heading(&q);
        perf_control_show(true);
        static char folder[4096];
        own_folder(folder, sizeof folder);
        function_peers_in(folder, q.peers);
        without_peers[q.kind](q.replicas, q.csv);
        counters_say_missing(stderr);
        return 0;
    }
#ifndef WITH_CHECKPOINTS
    if (q.kind == BENCH_CHECKPOINT) {
        fprintf(stderr,
                "ditto-bench: this build has no libditto-hdf5 (install xxHash, and set it up again)\n");
        return 2;
    }
#endif
    bool sound = measure_all(&q);
    counters_say_missing(stderr);
    return sound ? 0 : 1;
}
