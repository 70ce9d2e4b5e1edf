/* tests/embed/openmp.c - checks that an OpenMP region inside a replica runs on the replica's PUs. With
 * helpers off, the threads of the region inherit the leader's mask. The test is built with libgomp and with
 * libomp. It needs two PUs, and exits with 77 if there is only one.
 *
 * Each case runs in its own process, because OpenMP keeps the threads that it has created for a leader, with
 * the mask that they had. libomp runs with KMP_AFFINITY=disabled. Otherwise it would move every thread, and
 * also ditto's leaders, to the mask of the first region (docs/numa.md). */
#include <ditto.h>

#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 16

struct look {
    cpu_set_t mask[2][MOST]; /* for each replica, of each OpenMP thread */
    int cpu[2][MOST], threads[2];
    double sum[2];
};

static void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, ditto_last_error()->message);
    exit(1);
}

static ditto_status region(ditto_replica *self, void *argument)
{
    struct look *l = argument;
    uint32_t id = ditto_replica_id(self);
    double sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
    {
        int me = omp_get_thread_num();
#pragma omp single
        l->threads[id] = omp_get_num_threads();
        sched_getaffinity(0, sizeof l->mask[id][me], &l->mask[id][me]);
        l->cpu[id][me] = sched_getcpu();
#pragma omp for
        for (int i = 0; i < 1000; i++)
            sum += i;
    }
    l->sum[id] = sum;
    return DITTO_OK;
}

/* Checks that the mask of every thread of every replica is the set of the replica's PUs, and that the thread
 * runs on one of them. Returns the number of errors. */
static int check(const ditto_placement *placement, const struct look *l)
{
    int wrong = 0;
    for (uint32_t r = 0; r < ditto_placement_num_replicas(placement); r++) {
        cpu_set_t expected;
        CPU_ZERO(&expected);
        for (uint32_t d = 0; d < ditto_placement_num_devices(placement, r); d++) {
            ditto_placed_device place;
            if (ditto_placement_get(placement, r, d, &place) != DITTO_OK)
                die("placement");
            CPU_SET(place.pu.number, &expected);
        }
        for (int t = 0; t < l->threads[r]; t++) {
            int ok = CPU_EQUAL(&expected, &l->mask[r][t]) && CPU_ISSET((size_t)l->cpu[r][t], &expected);
            printf("  replica %u, OpenMP thread %d: on CPU %d of %d allowed%s\n", r, t, l->cpu[r][t],
                   CPU_COUNT(&l->mask[r][t]), ok ? "" : "  <- not the replica's PUs");
            wrong += !ok;
        }
        wrong += l->threads[r] != 2 || l->sum[r] != 499500;
    }
    return wrong;
}

static int try(ditto_strategy_options options)
{
    ditto_strategy *strategy;
    static struct look l;
    int wrong = 0;
    options.helpers = DITTO_SWITCH_OFF;
    if (ditto_strategy_create(DITTO_MIRRORED, &options, &strategy) != DITTO_OK)
        die("create");
    ditto_strategy_properties properties = DITTO_STRATEGY_PROPERTIES_INIT;
    if (ditto_strategy_info(strategy, &properties) != DITTO_OK)
        die("info");
    for (int run = 0; run < 2; run++) { /* the second run uses the OpenMP threads of the first again */
        memset(&l, 0, sizeof l);
        if (ditto_strategy_run(strategy, region, &l) != DITTO_OK)
            die("run");
        wrong += check(properties.placement, &l);
    }
    if (ditto_strategy_destroy(strategy) != DITTO_OK)
        die("destroy");
    return wrong;
}

static int try_apart(const char *name, ditto_strategy_options options)
{
    int status = 1;
    printf("%s\n", name);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        exit(try(options) != 0);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

int main(void)
{
    ditto_strategy_options one_pu = DITTO_STRATEGY_OPTIONS_INIT, machine = DITTO_STRATEGY_OPTIONS_INIT;
    cpu_set_t own;
    int wrong = 0;
    sched_getaffinity(0, sizeof own, &own);
    if (CPU_COUNT(&own) < 2) {
        printf("skipped: one PU\n");
        return 77;
    }
    one_pu.num_replicas = 2;
    wrong += try_apart("two replicas of one PU", one_pu);
    machine.span = DITTO_SPAN_MACHINE;
    wrong += try_apart("one replica of all PUs", machine);
    machine.caller = DITTO_CALLER_WAITS;
    wrong += try_apart("one replica of all PUs, on a thread of its own", machine);
    return wrong != 0;
}
