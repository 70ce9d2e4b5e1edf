/* bench/peers/mpi.c - the same work in MPI. Each replica is a rank with its own memory. The file is compiled
 * with Open MPI and with MPICH. Rank 0 reads the orders and broadcasts them. Of the rows of `functions` it
 * has that of pushes, in which each rank adds rows to a table that is spread over all of them. */
#include "../function_work.h"
#include "protocol.h"

#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static struct worker clocks[WORK_MOST_REPLICAS], *workers;
static struct work work;
static struct counts gathered[WORK_MOST_REPLICAS]; /* of all ranks, in rank 0 */
static int rank, ranks;

/* The ranks that work together: all, or those of a group. */
static MPI_Comm members = MPI_COMM_WORLD;

/* Returns MPI_DATATYPE_NULL if reductions of the dtype are not measured in MPI. Copies use MPI_BYTE. */
static MPI_Datatype type_of(ditto_dtype dtype)
{
    switch (dtype) {
    case DITTO_F32:
        return MPI_FLOAT;
    case DITTO_F64:
        return MPI_DOUBLE;
    case DITTO_I32:
        return MPI_INT32_T;
    default:
        return MPI_DATATYPE_NULL;
    }
}

static MPI_Op op_of(ditto_op op)
{
    switch (op) {
    case DITTO_SUM:
        return MPI_SUM;
    case DITTO_MIN:
        return MPI_MIN;
    case DITTO_MAX:
        return MPI_MAX;
    case DITTO_PROD:
        return MPI_PROD;
    default:
        return MPI_OP_NULL;
    }
}

static void barrier(void *context, uint32_t id)
{
    (void)context, (void)id;
    MPI_Barrier(members);
}

static void all_reduce(const struct work *w, const struct worker *mine, struct span s)
{
    size_t element = work_element_bytes(w->dtype);
    MPI_Allreduce(w->in_place ? MPI_IN_PLACE : mine->src + s.first, mine->dst + s.first,
                  (int)((s.end - s.first) / element), type_of(w->dtype), op_of(w->op), members);
}

static void collective(void *context, uint32_t id, const struct work *w, struct worker *all)
{
    const struct worker *mine = &all[id];
    struct span own = work_part(w, id);
    size_t element = work_element_bytes(w->dtype);
    int count = (int)(w->bytes / element), part = (int)((own.end - own.first) / element);
    MPI_Datatype type = type_of(w->dtype);
    MPI_Op op = op_of(w->op);
    MPI_Request request;
    (void)context;
    switch (w->kind) {
    case BENCH_LIST:
        for (uint32_t i = 0; i < WORK_TENSORS; i++)
            all_reduce(w, mine, work_tensor(w, i));
        break;
    case BENCH_ASYNC:
        MPI_Iallreduce(w->in_place ? MPI_IN_PLACE : mine->src, mine->dst, count, type, op, members, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case BENCH_ALL_GATHER:
        MPI_Allgather(w->in_place ? MPI_IN_PLACE : mine->src + own.first, (int)(own.end - own.first),
                      MPI_BYTE, mine->dst, (int)(own.end - own.first), MPI_BYTE, members);
        break;
    case BENCH_BROADCAST:
        MPI_Bcast(mine->dst, (int)w->bytes, MPI_BYTE, (int)w->root, members);
        break;
    case BENCH_REDUCE_SCATTER:
        MPI_Reduce_scatter_block(mine->src, mine->dst + own.first, part, type, op, members);
        break;
    case BENCH_REDUCE:
        MPI_Reduce(w->in_place && id == w->root ? MPI_IN_PLACE : mine->src, mine->dst, count, type, op,
                   (int)w->root, members);
        break;
    case BENCH_GATHER:
        MPI_Gather(w->in_place && id == w->root ? MPI_IN_PLACE : mine->src + own.first,
                   (int)(own.end - own.first), MPI_BYTE, mine->dst, (int)(own.end - own.first), MPI_BYTE,
                   (int)w->root, members);
        break;
    case BENCH_SCATTER:
        MPI_Scatter(mine->src, (int)(own.end - own.first), MPI_BYTE,
                    w->in_place && id == w->root ? MPI_IN_PLACE : mine->dst + own.first,
                    (int)(own.end - own.first), MPI_BYTE, (int)w->root, members);
        break;
    case BENCH_ALL_TO_ALL:
        MPI_Alltoall(mine->src, (int)(own.end - own.first), MPI_BYTE, mine->dst, (int)(own.end - own.first),
                     MPI_BYTE, members);
        break;
    case BENCH_SCAN:
        MPI_Scan(w->in_place ? MPI_IN_PLACE : mine->src, mine->dst, count, type, op, members);
        break;
    case BENCH_SCAN_EXCLUSIVE:
        MPI_Exscan(w->in_place ? MPI_IN_PLACE : mine->src, mine->dst, count, type, op, members);
        break;
    default:
        all_reduce(w, mine, (struct span){ 0, w->bytes });
    }
}

static void exchange(uint32_t id, const double *own, size_t length, double *halo, size_t count)
{
    int before = id > 0 ? (int)id - 1 : MPI_PROC_NULL,
        next = (int)id + 1 < ranks ? (int)id + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(own, (int)count, MPI_DOUBLE, before, 0, halo + count, (int)count, MPI_DOUBLE, next, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(own + length - count, (int)count, MPI_DOUBLE, next, 1, halo, (int)count, MPI_DOUBLE, before,
                 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static const struct contender_ops ops = { barrier, collective };

/* Returns true if the work has buffers. */
static bool has_buffers(enum bench_kind kind)
{
    return bench_facts[kind].collective || work_is_program(kind) || kind == BENCH_WAIT;
}

/* Chooses the ranks that work together. */
static void form_groups(uint32_t groups)
{
    if (members != MPI_COMM_WORLD)
        MPI_Comm_free(&members);
    members = MPI_COMM_WORLD;
    work.replicas = (uint32_t)ranks;
    if (groups == 0)
        return;
    work.replicas /= groups;
    MPI_Comm_split(MPI_COMM_WORLD, (int)part_group((uint32_t)rank, (uint32_t)ranks, groups), rank, &members);
}

/* Returns the number of this process among those that work together. */
static uint32_t member(void)
{
    int number;
    MPI_Comm_rank(members, &number);
    return (uint32_t)number;
}

static bool prepare(const struct work *wanted)
{
    const struct bench_facts *facts = &bench_facts[wanted->kind];
    work = *wanted;
    form_groups(wanted->groups);
    work.in_processes = true;
    if (wanted->kind != BENCH_BARRIER && !has_buffers(wanted->kind))
        return false;
    if (facts->reduces && (type_of(work.dtype) == MPI_DATATYPE_NULL || op_of(work.op) == MPI_OP_NULL))
        return false;
    /* In place, MPI writes each part to the beginning of the buffer. */
    if (wanted->kind == BENCH_REDUCE_SCATTER && wanted->in_place)
        return false;
    workers = work_allocate_one(&work, member());
    work_touch(&work, workers, member());
    return true;
}

/* Executes a batch. Rank 0 gets the time of all ranks, and `gathered` gets their counts. */
static struct timing batch(bool baseline)
{
    struct worker *used = has_buffers(work.kind) ? workers : clocks;
    struct timing all = { 0, 0, 0 }, mine;
    uint32_t id = member();
    struct counts *counts = &used[id].counts;
    work_batch(&work, used, id, &ops, NULL, baseline);
    mine = used[id].timing;
    MPI_Reduce(&mine.seconds, &all.seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine.cpu_seconds, &all.cpu_seconds, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine.operation_seconds, &all.operation_seconds, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    all.operation_seconds /= ranks;
    MPI_Gather(counts, (int)sizeof *counts, MPI_BYTE, gathered, (int)sizeof *counts, MPI_BYTE, 0,
               MPI_COMM_WORLD);
    return all;
}

/* -- pushes of rows: passive target, so that the rank that has a row does not take part -- */

/* Row r is in rank r % ranks, so each has frequent ones. The table is kept for later batches. */
static MPI_Win window = MPI_WIN_NULL;

static void open_table(void)
{
    MPI_Info hints;
    float *part = NULL;
    size_t elements = (size_t)(TABLE_ROWS / ranks + 1) * WIDTH;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "accumulate_ordering", "none");
    MPI_Info_set(hints, "accumulate_ops", "same_op");
    MPI_Win_allocate((MPI_Aint)(elements * sizeof(float)), sizeof(float), hints, MPI_COMM_WORLD, &part,
                     &window);
    MPI_Info_free(&hints);
    MPI_Win_lock_all(0, window);
    memset(part, 0, elements * sizeof(float));
    MPI_Win_sync(window);
}

static void close_table(void)
{
    if (window == MPI_WIN_NULL)
        return;
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

/* Each rank makes as many pushes. A push has ended when all its rows have been added. Returns the time of the
 * slowest rank. */
static struct timing push_rows(uint64_t pushes)
{
    uint64_t state = (uint64_t)rank + 1;
    int64_t rows[PUSH];
    float values[WIDTH];
    if (window == MPI_WIN_NULL)
        open_table();
    for (int i = 0; i < WIDTH; i++)
        values[i] = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now_seconds(), mine, slowest = 0;
    for (uint64_t i = 0; i < pushes; i++) {
        draw_rows(&state, rows);
        for (int k = 0; k < PUSH; k++)
            MPI_Accumulate(values, WIDTH, MPI_FLOAT, (int)(rows[k] % ranks),
                           (MPI_Aint)(rows[k] / ranks * WIDTH), WIDTH, MPI_FLOAT, MPI_SUM, window);
        MPI_Win_flush_all(window);
    }
    mine = now_seconds() - begin;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return (struct timing){ slowest, 0, 0 };
}

static void hello(void)
{
    int own_pid = (int)getpid(), *processes = calloc((size_t)ranks, sizeof *processes);
    if (processes == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Gather(&own_pid, 1, MPI_INT, processes, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("hello");
        for (int i = 0; i < ranks; i++)
            printf(" %d", processes[i]);
        printf("\n");
        fflush(stdout);
    }
    free(processes);
}

/* Carries out an order. Returns false at the end. */
static bool execute(const struct order *order)
{
    bool done;
    struct timing timing;
    switch (order->what) {
    case ORDER_PREPARE:
        done = prepare(&order->work);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            answer_yes(done);
        return true;
    case ORDER_BATCH:
        work.kind = order->work.kind;
        work.reps = order->work.reps;
        work.skew_ns = order->work.skew_ns;
        timing = batch(order->baseline != 0);
        if (rank == 0)
            answer(timing, gathered, sizeof gathered[0], work.replicas);
        return true;
    case ORDER_FINISH:
        work_free(&work, workers);
        if (rank == 0)
            answer_yes(true);
        return true;
    case ORDER_FUNCTIONS:
        timing = order->row == FUNCTIONS_PUSH ? push_rows(order->work.reps) : TIMING_NONE;
        if (rank == 0)
            answer(timing, NULL, 0, 0);
        return true;
    default:
        return false;
    }
}

int main(int count, char **word)
{
    struct order order;
    /* Ends this process even if it is stopped when its parent dies. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    choose_counters();
    MPI_Init(&count, &word);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count > 2 && strcmp(word[2], "bind") == 0)
        pin_to_part((uint32_t)rank, (uint32_t)ranks);
    hello();
    cg_exchange = exchange;
    do {
        if (rank == 0)
            order = read_order(stdin);
        MPI_Bcast(&order, (int)sizeof order, MPI_BYTE, 0, MPI_COMM_WORLD);
    } while (execute(&order));
    close_table();
    MPI_Finalize();
    return 0;
}
