/* bench/peers/shared_memory.c - does all-reduces of f32 and bf16 as DeepSpeed, vLLM and gloo do them in
 * shared memory (shared_forms.h). Each replica is a process. The variable SHARED_MEMORY_FORM names the form.
 * Rank 0 reads the orders, and the others find them in the segment. */
#include "protocol.h"
#include "../loops.h"
#include "shared_forms.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct segment {
    /* The number of the order that the others have to carry out. */
    alignas(128) _Atomic uint32_t number;
    struct order order;
    struct worker result[WORK_MOST_REPLICAS]; /* of the last batch; only times and counts are used */
    struct shared_rank rank[];
} * segment;

static const struct shared_form *form;
static struct worker clocks[WORK_MOST_REPLICAS], *workers;
static struct work work;
static uint32_t rank, ranks;

static void barrier(void *context, uint32_t id)
{
    (void)context;
    shared_barrier(segment->rank, ranks, id);
}

static void collective(void *context, uint32_t id, const struct work *now, struct worker *all)
{
    (void)context;
    shared_all_reduce(form, segment->rank, now, id, all[id].src, all[id].dst);
}

static const struct contender_ops ops = { barrier, collective };

static bool does(const struct work *wanted)
{
    return wanted->kind == BENCH_ALL_REDUCE && wanted->op == DITTO_SUM &&
           (wanted->dtype == DITTO_F32 || wanted->dtype == DITTO_BF16);
}

static void prepare(const struct work *wanted)
{
    work = *wanted;
    work.replicas = ranks;
    work.in_processes = true;
    workers = work_allocate_one(&work, rank);
    work_touch(&work, workers, rank);
}

static void batch(const struct order *order)
{
    struct worker *used = order->work.kind == BENCH_BARRIER ? clocks : workers;
    work.kind = order->work.kind;
    work.reps = order->work.reps;
    work_batch(&work, used, rank, &ops, NULL, order->baseline != 0);
    segment->result[rank] = used[rank];
}

static void execute(const struct order *order)
{
    if (order->what == ORDER_PREPARE && does(&order->work))
        prepare(&order->work);
    else if (order->what == ORDER_BATCH)
        batch(order);
    else if (order->what == ORDER_FINISH)
        work_free(&work, workers);
}

static void answer_order(const struct order *order)
{
    if (order->what == ORDER_BATCH)
        answer(work_timing(segment->result, ranks), &segment->result->counts, sizeof segment->result[0],
               ranks);
    else
        answer_yes(order->what == ORDER_FINISH || (order->what == ORDER_PREPARE && does(&order->work)));
}

/* Carries out orders until the end. */
static void serve(void)
{
    for (uint32_t number = 1;; number++) {
        if (rank == 0) {
            segment->order = read_order(stdin);
            if (segment->order.what == ORDER_END)
                signal(SIGCHLD, SIG_DFL);
            /* release: the order is written. The partner is the acquire below. */
            atomic_store_explicit(&segment->number, number, memory_order_release);
        }
        while (atomic_load_explicit(&segment->number, memory_order_acquire) != number)
            PAUSE();
        struct order order = segment->order;
        if (order.what == ORDER_END)
            return;
        execute(&order);
        barrier(NULL, rank); /* all have read the order and have their results */
        if (rank == 0)
            answer_order(&order);
    }
}

/* Ends rank 0 when another rank has ended. That one has said why, for example because a result was wrong. */
static void stop(int number)
{
    (void)number;
    _exit(1);
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Makes the segment, and a process for each rank but 0, which is the caller. Greets with the numbers of all
 * processes. */
static void start_ranks(void)
{
    pid_t parent = getpid();
    struct sigaction action = { .sa_handler = stop, .sa_flags = SA_NOCLDSTOP };
    segment = mmap(NULL, sizeof *segment + ranks * sizeof segment->rank[0], PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (segment == MAP_FAILED)
        fail("peer-shared-memory: mmap");
    sigaction(SIGCHLD, &action, NULL);
    printf("hello %d", (int)parent);
    for (uint32_t r = 1; r < ranks && rank == 0; r++) {
        fflush(stdout); /* or the child would print it, too */
        pid_t child = fork();
        if (child < 0)
            fail("peer-shared-memory: fork");
        if (child == 0)
            rank = r;
        else
            printf(" %d", (int)child);
    }
    if (rank == 0) {
        printf("\n");
        fflush(stdout);
        return;
    }
    /* Ends this process even if it is stopped when rank 0 dies. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
}

int main(int count, char **word)
{
    const char *name = getenv("SHARED_MEMORY_FORM");
    ranks = count > 1 ? (uint32_t)atoi(word[1]) : 2;
    form = shared_form_of(name != NULL ? name : "deepspeed");
    if (form == NULL || ranks < 1 || ranks > WORK_MOST_REPLICAS) {
        fprintf(stderr,
                "peer-shared-memory: asked for form %s of %s ranks; give 1 to %d ranks, and name deepspeed, "
                "vllm or gloo-shm in SHARED_MEMORY_FORM\n",
                name != NULL ? name : "deepspeed", count > 1 ? word[1] : "2", WORK_MOST_REPLICAS);
        return 2;
    }
    choose_counters();
    start_ranks();
    pin_to_part(rank, ranks);
    serve();
    while (rank == 0 && wait(NULL) > 0)
        ;
    return 0;
}
