/* bench/functions.c - the cost of functions and updates of a parameter server strategy.
 *
 * empty:    ns of one empty function, from the first schedule to the end of join, with one worker and with as
 *           many as there are PUs. The peer is a pool of threads with a bounded queue under a mutex, as one
 *           writes it by hand.
 * compute:  the same with functions that compute for 20 us.
 * uneven:   ns of one function that sleeps for 5 ms on worker 0 and for 1 ms on three others. The peer is
 *           the time that results if each of them executes functions without a pause. In step, every function
 *           would take as long as the slowest one.
 * start:    ns from the call of schedule until the function begins, on a worker that spins, and on one that
 *           sleeps.
 * rows:     ns of one row (16 f32) in pushes of 64 rows with skewed indices into 65536 rows, for all workers
 *           together. One peer is a table under 1024 locks, of which each row has one. The other one is an
 *           owner: a thread that applies the pushes of all others, which it gets through a ring for each.
 * hogwild:  the same pushes into a table with DITTO_CONCURRENCY_HOGWILD. The peer is a table of relaxed
 *           atomic floats without locks, as one writes it by hand.
 * word2vec: ns of one pair of words. Workers change rows of two tables in place (ditto_component). The peer
 *           is the same loop in threads, of which each executes as many pairs. The bound is 1.05 of its time.
 * dense:    us of one ditto_apply of plain SGD on 256 KiB of f32 in 4 shards, for all workers together.
 *
 * With --peers there are also pools of threads of oneTBB and Taskflow, for empty, compute and uneven, and
 * MPI_Accumulate for rows: each process adds its rows to a table that is spread over all of them, and waits
 * for the end of each push (peers/pools.cc, peers/mpi.c). MPI takes part if there is more than one worker. A
 * peer whose program was not built is named as missing.
 *
 * Each figure is the median of the rounds, in which ditto and its peers take turns. */
#include "alone.h"
#include "function_work.h"
#include "harness.h"
#include "samples.h"
#include "word_pairs.h"

#include <ditto.h>

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROUNDS = 21,
    FUNCTIONS = 50000,
    COMPUTE = 2000,
    UNEVEN = 400,
    UNEVEN_WORKERS = 4,
    STARTS = 2000,
    SLEEPS = 40,
    PUSHES = 2000,
    PROCESS_PUSHES = 200,
    SHARDS = 8,
    LOCKS = 1024,
    DENSE = 65536,
    STEPS = 200,
    MOST_WORKERS = 64,
    RING = 64
};

static uint64_t now_ns(void)
{
    return (uint64_t)(now_seconds() * 1e9);
}

/* Small random numbers, the same for all. */
static void fill_words(float *words)
{
    uint64_t state = 1;
    for (size_t i = 0; i < (size_t)WORDS * WORD_WIDTH; i++)
        words[i] = ((float)draw_word(&state) / WORDS - 0.5f) / WORD_WIDTH;
}

static void *zeros(size_t count, size_t bytes)
{
    void *start = calloc(count, bytes);
    if (start == NULL) {
        perror("ditto-bench: calloc");
        exit(1);
    }
    return start;
}

static cpu_set_t allowed; /* at the start */

/* Binds the calling thread to one of the CPUs. */
static void bind_to(uint32_t index)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    uint32_t seen = 0, usable = (uint32_t)CPU_COUNT(&allowed);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ == index % usable)
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* -- ditto -- */

struct ditto {
    ditto_strategy *strategy;
    ditto_coordinator *coordinator;
    ditto_variable *table, *hogwild, *dense, *words, *others;
    ditto_optimizer *optimizer;
    float *gradient;
};
static struct ditto side;
static _Atomic uint64_t started_at;

static ditto_status nothing(ditto_replica *self, void *user)
{
    (void)self, (void)user;
    return DITTO_OK;
}

static ditto_status compute_on_worker(ditto_replica *self, void *user)
{
    (void)self, (void)user;
    compute_function();
    return DITTO_OK;
}

static ditto_status sleep_unevenly(ditto_replica *self, void *user)
{
    (void)user;
    sleep_function(ditto_worker(self));
    return DITTO_OK;
}

static ditto_status note_start(ditto_replica *self, void *user)
{
    (void)self, (void)user;
    atomic_store_explicit(&started_at, now_ns(), memory_order_release);
    return DITTO_OK;
}

/* Pushes into the table that *user points to. */
static ditto_status push_rows(ditto_replica *self, void *user)
{
    ditto_variable **table = user;
    uint64_t state = ditto_worker(self) + 1;
    int64_t rows[PUSH];
    float values[PUSH * WIDTH];
    ditto_slices slices = {
        .indices = rows, .values = values, .rows = PUSH, .row_count = WIDTH, .dtype = DITTO_F32
    };
    for (int i = 0; i < PUSH * WIDTH; i++)
        values[i] = 1;
    for (int i = 0; i < PUSHES; i++) {
        draw_rows(&state, rows);
        DITTO_TRY(ditto_scatter(self, *table, DITTO_SCATTER_ADD, &slices));
    }
    return DITTO_OK;
}

/* The random state of each worker, on a cache line pair of its own. */
static struct {
    alignas(128) uint64_t value;
} word_state[MOST_WORKERS];

static ditto_status train_words(ditto_replica *self, void *user)
{
    void *words, *others;
    (void)user;
    DITTO_TRY(ditto_component(self, side.words, &words));
    DITTO_TRY(ditto_component(self, side.others, &others));
    train_word_pairs(words, others, &word_state[ditto_worker(self)].value);
    return DITTO_OK;
}

static ditto_status push_dense(ditto_replica *self, void *user)
{
    ditto_tensor gradient = { .data = side.gradient, .dtype = DITTO_F32, .rank = 1, .shape = { DENSE } };
    (void)user;
    for (int i = 0; i < STEPS; i++)
        DITTO_TRY(ditto_apply(self, side.optimizer, &gradient, NULL));
    return DITTO_OK;
}

static void open_ditto(uint32_t workers)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_variable_options cut = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_optimizer_options rule = DITTO_OPTIMIZER_OPTIONS_INIT;
    ditto_tensor table = { .dtype = DITTO_F32, .rank = 2, .shape = { TABLE_ROWS, WIDTH } },
                 dense = { .dtype = DITTO_F32, .rank = 1, .shape = { DENSE } },
                 words = { .dtype = DITTO_F32, .rank = 2, .shape = { WORDS, WORD_WIDTH } };
    options.num_replicas = workers;
    rule.rule = DITTO_RULE_SGD;
    cut.name = "table";
    cut.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = SHARDS };
    must(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &side.strategy));
    must(ditto_variable_create(side.strategy, &table, &cut, &side.table));
    cut.name = "hogwild";
    cut.concurrency = DITTO_CONCURRENCY_HOGWILD;
    must(ditto_variable_create(side.strategy, &table, &cut, &side.hogwild));
    cut.name = "words";
    must(ditto_variable_create(side.strategy, &words, &cut, &side.words));
    cut.name = "others";
    must(ditto_variable_create(side.strategy, &words, &cut, &side.others));
    float *initial = zeros(WORDS * WORD_WIDTH, sizeof *initial);
    fill_words(initial);
    must(ditto_variable_assign(side.words, DITTO_ASSIGN, initial, sizeof(float[WORDS * WORD_WIDTH])));
    free(initial);
    cut.concurrency = DITTO_CONCURRENCY_LOCKED;
    cut.name = "dense";
    cut.partitioner.num_shards = 4;
    must(ditto_variable_create(side.strategy, &dense, &cut, &side.dense));
    must(ditto_optimizer_create(&side.dense, 1, &rule, &side.optimizer));
    must(ditto_coordinator_create(side.strategy, NULL, &side.coordinator));
    must(ditto_function_register("nothing", nothing, NULL));
    must(ditto_function_register("compute", compute_on_worker, NULL));
    must(ditto_function_register("sleep_unevenly", sleep_unevenly, NULL));
    must(ditto_function_register("note_start", note_start, NULL));
    must(ditto_function_register("push_rows", push_rows, &side.table));
    must(ditto_function_register("push_hogwild", push_rows, &side.hogwild));
    must(ditto_function_register("train_words", train_words, NULL));
    must(ditto_function_register("push_dense", push_dense, NULL));
    side.gradient = zeros(DENSE, sizeof *side.gradient);
}

static void close_ditto(void)
{
    must(ditto_coordinator_destroy(side.coordinator));
    must(ditto_optimizer_destroy(side.optimizer));
    must(ditto_variable_destroy(side.table));
    must(ditto_variable_destroy(side.hogwild));
    must(ditto_variable_destroy(side.words));
    must(ditto_variable_destroy(side.others));
    must(ditto_variable_destroy(side.dense));
    must(ditto_strategy_destroy(side.strategy));
    free(side.gradient);
}

static void schedule(const char *name)
{
    must(ditto_coordinator_schedule(side.coordinator, name, NULL, NULL, NULL));
}

static double time_functions(const char *name, int count)
{
    double begin = now_seconds();
    for (int i = 0; i < count; i++)
        schedule(name);
    must(ditto_coordinator_join(side.coordinator));
    return (now_seconds() - begin) * 1e9 / count;
}

/* Each of the following returns ns of one operation. */
static double ditto_empty(uint32_t workers)
{
    (void)workers;
    return time_functions("nothing", FUNCTIONS);
}

static double ditto_compute(uint32_t workers)
{
    (void)workers;
    return time_functions("compute", COMPUTE);
}

static double ditto_uneven(uint32_t workers)
{
    (void)workers;
    return time_functions("sleep_unevenly", UNEVEN);
}

/* How long a sleep of so many ns takes here. */
static double time_sleep(long ns)
{
    double begin = now_seconds();
    for (int i = 0; i < 20; i++)
        nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
    return (now_seconds() - begin) * 1e9 / 20;
}

static double each_alone(uint32_t workers)
{
    return 1 / (1 / time_sleep(SLOW_NS) + (workers - 1) / time_sleep(FAST_NS));
}

/* The mean time until a function begins, `pause_us` after the last one has ended. */
static double ditto_start(long pause_us, int starts)
{
    double sum = 0;
    for (int i = 0; i < starts; i++) {
        atomic_store(&started_at, 0);
        if (pause_us < 1000)
            for (uint64_t end = now_ns() + (uint64_t)pause_us * 1000; now_ns() < end;)
                ;
        else
            nanosleep(&(struct timespec){ .tv_nsec = pause_us * 1000 }, NULL);
        uint64_t begin = now_ns(), started;
        schedule("note_start");
        while ((started = atomic_load_explicit(&started_at, memory_order_acquire)) == 0)
            ;
        sum += (double)(started - begin);
        must(ditto_coordinator_join(side.coordinator));
    }
    return sum / starts;
}

static double ditto_start_spinning(uint32_t workers)
{
    (void)workers;
    return ditto_start(5, STARTS);
}

static double ditto_start_asleep(uint32_t workers)
{
    (void)workers;
    return ditto_start(20000, SLEEPS);
}

/* Returns ns of one operation, of which each function has as many. */
static double run_functions(const char *name, uint32_t functions, uint64_t operations)
{
    return time_functions(name, (int)functions) / (double)operations;
}

static double ditto_rows(uint32_t workers)
{
    return run_functions("push_rows", workers, (uint64_t)PUSHES * PUSH);
}

static double ditto_hogwild(uint32_t workers)
{
    return run_functions("push_hogwild", workers, (uint64_t)PUSHES * PUSH);
}

/* In each round, the workers draw the same words as the threads of the peer. */
static double ditto_words(uint32_t workers)
{
    for (uint32_t w = 0; w < workers; w++)
        word_state[w].value = w + 1;
    return run_functions("train_words", workers * WORD_FUNCTIONS, PAIRS);
}

static double ditto_dense(uint32_t workers)
{
    return run_functions("push_dense", workers, STEPS);
}

/* -- a pool of threads with a queue under a mutex -- */

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work, space, idle;
    void (*function[1024])(void);
    uint32_t head, count, busy, workers;
    bool is_ending;
    pthread_t thread[MOST_WORKERS];
};
static struct pool pool = { .lock = PTHREAD_MUTEX_INITIALIZER,
                            .work = PTHREAD_COND_INITIALIZER,
                            .space = PTHREAD_COND_INITIALIZER,
                            .idle = PTHREAD_COND_INITIALIZER };

static void *pool_main(void *index)
{
    bind_to((uint32_t)(uintptr_t)index);
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.count == 0 && !pool.is_ending)
            pthread_cond_wait(&pool.work, &pool.lock);
        if (pool.count == 0)
            break;
        void (*function)(void) = pool.function[pool.head];
        pool.head = (pool.head + 1) % 1024;
        pool.count--;
        pool.busy++;
        pthread_cond_signal(&pool.space);
        pthread_mutex_unlock(&pool.lock);
        function();
        pthread_mutex_lock(&pool.lock);
        if (--pool.busy == 0 && pool.count == 0)
            pthread_cond_signal(&pool.idle);
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

static void empty(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

static double time_pool(uint32_t workers, void (*function)(void), int count)
{
    pool.is_ending = false;
    for (uint32_t i = 0; i < workers; i++)
        pthread_create(&pool.thread[i], NULL, pool_main, (void *)(uintptr_t)i);
    double begin = now_seconds();
    for (int i = 0; i < count; i++) {
        pthread_mutex_lock(&pool.lock);
        while (pool.count == 1024)
            pthread_cond_wait(&pool.space, &pool.lock);
        pool.function[(pool.head + pool.count++) % 1024] = function;
        pthread_cond_signal(&pool.work);
        pthread_mutex_unlock(&pool.lock);
    }
    pthread_mutex_lock(&pool.lock);
    while (pool.count != 0 || pool.busy != 0)
        pthread_cond_wait(&pool.idle, &pool.lock);
    double ns = (now_seconds() - begin) * 1e9 / count;
    pool.is_ending = true;
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    for (uint32_t i = 0; i < workers; i++)
        pthread_join(pool.thread[i], NULL);
    return ns;
}

static double pool_empty(uint32_t workers)
{
    return time_pool(workers, empty, FUNCTIONS);
}

static double pool_compute(uint32_t workers)
{
    return time_pool(workers, compute_function, COMPUTE);
}

/* -- a table under many locks -- */

static float *plain_table;
static pthread_mutex_t row_lock[LOCKS];
static pthread_barrier_t line;

static void add_row(int64_t row, const float *values)
{
    for (int i = 0; i < WIDTH; i++)
        plain_table[row * WIDTH + i] += values[i];
}

static void *push_under_locks(void *index)
{
    uint64_t state = (uintptr_t)index + 1;
    int64_t rows[PUSH];
    float values[WIDTH];
    bind_to((uint32_t)(uintptr_t)index);
    for (int i = 0; i < WIDTH; i++)
        values[i] = 1;
    pthread_barrier_wait(&line);
    for (int i = 0; i < PUSHES; i++) {
        draw_rows(&state, rows);
        for (int k = 0; k < PUSH; k++) {
            pthread_mutex_lock(&row_lock[rows[k] % LOCKS]);
            add_row(rows[k], values);
            pthread_mutex_unlock(&row_lock[rows[k] % LOCKS]);
        }
    }
    return NULL;
}

/* Runs the body on as many threads, and returns ns of one of its operations. */
static double time_threads(uint32_t workers, void *(*body)(void *index), uint64_t operations)
{
    pthread_t thread[MOST_WORKERS];
    pthread_barrier_init(&line, NULL, workers + 1);
    for (uint32_t i = 0; i < workers; i++)
        pthread_create(&thread[i], NULL, body, (void *)(uintptr_t)i);
    pthread_barrier_wait(&line);
    double begin = now_seconds();
    for (uint32_t i = 0; i < workers; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&line);
    return (now_seconds() - begin) * 1e9 / (double)operations / workers;
}

static double locked_rows(uint32_t workers)
{
    return time_threads(workers, push_under_locks, (uint64_t)PUSHES * PUSH);
}

/* -- a table without locks -- */

static _Atomic float *free_table;

static void *push_without_locks(void *index)
{
    uint64_t state = (uintptr_t)index + 1;
    int64_t rows[PUSH];
    bind_to((uint32_t)(uintptr_t)index);
    pthread_barrier_wait(&line);
    for (int i = 0; i < PUSHES; i++) {
        draw_rows(&state, rows);
        for (int k = 0; k < PUSH; k++)
            for (int e = 0; e < WIDTH; e++) {
                _Atomic float *element = &free_table[rows[k] * WIDTH + e];
                /* relaxed: an addition of another thread in between is lost, which is the point */
                float sum = atomic_load_explicit(element, memory_order_relaxed) + 1;
                atomic_store_explicit(element, sum, memory_order_relaxed);
            }
    }
    return NULL;
}

static double free_rows(uint32_t workers)
{
    return time_threads(workers, push_without_locks, (uint64_t)PUSHES * PUSH);
}

/* -- word2vec, as its threads are -- */

static float *plain_words, *plain_others;

static void *train_in_thread(void *index)
{
    uint64_t state = (uintptr_t)index + 1;
    bind_to((uint32_t)(uintptr_t)index);
    pthread_barrier_wait(&line);
    for (int i = 0; i < WORD_FUNCTIONS; i++)
        train_word_pairs(plain_words, plain_others, &state);
    return NULL;
}

static double plain_word_pairs(uint32_t workers)
{
    return time_threads(workers, train_in_thread, WORD_FUNCTIONS * PAIRS);
}

/* -- an owner that applies the pushes of all -- */

struct push {
    int64_t rows[PUSH];
    float values[PUSH * WIDTH];
};
struct ring {
    alignas(128) _Atomic uint32_t filled;
    alignas(128) _Atomic uint32_t emptied;
    struct push *push; /* [RING] */
};
static struct ring ring[MOST_WORKERS];
static uint32_t pushers;

static void *own(void *unused)
{
    uint64_t left = (uint64_t)pushers * PUSHES;
    bind_to(0);
    while (left > 0)
        for (uint32_t w = 0; w < pushers; w++) {
            uint32_t at = atomic_load_explicit(&ring[w].emptied, memory_order_relaxed);
            if (at == atomic_load_explicit(&ring[w].filled, memory_order_acquire))
                continue;
            const struct push *push = &ring[w].push[at % RING];
            for (int k = 0; k < PUSH; k++)
                add_row(push->rows[k], push->values + (size_t)k * WIDTH);
            atomic_store_explicit(&ring[w].emptied, at + 1, memory_order_release);
            left--;
        }
    return unused;
}

static void *push_to_owner(void *index)
{
    struct ring *own_ring = &ring[(uintptr_t)index];
    uint64_t state = (uintptr_t)index + 1;
    bind_to((uint32_t)(uintptr_t)index + 1);
    pthread_barrier_wait(&line);
    for (uint32_t i = 0; i < PUSHES; i++) {
        while (i - atomic_load_explicit(&own_ring->emptied, memory_order_acquire) == RING)
            sched_yield();
        struct push *push = &own_ring->push[i % RING];
        draw_rows(&state, push->rows);
        for (int k = 0; k < PUSH * WIDTH; k++)
            push->values[k] = 1;
        atomic_store_explicit(&own_ring->filled, i + 1, memory_order_release);
    }
    while (atomic_load_explicit(&own_ring->emptied, memory_order_acquire) != PUSHES)
        sched_yield();
    return NULL;
}

static double owned_rows(uint32_t workers)
{
    pthread_t owner;
    pushers = workers;
    for (uint32_t w = 0; w < workers; w++) {
        atomic_store(&ring[w].filled, 0);
        atomic_store(&ring[w].emptied, 0);
        if (ring[w].push == NULL)
            ring[w].push = zeros(RING, sizeof(struct push));
    }
    pthread_create(&owner, NULL, own, NULL);
    double ns = time_threads(workers, push_to_owner, (uint64_t)PUSHES * PUSH);
    pthread_join(owner, NULL);
    return ns;
}

/* -- peers in processes of their own -- */

static struct contender peers[MOST_CONTENDERS];
static uint32_t peers_count;

static void open_peers(uint32_t workers)
{
    peers_count = function_peers_open(peers, BENCH_FUNCTIONS, workers);
}

static void close_peers(void)
{
    for (uint32_t i = 0; i < peers_count; i++)
        peers[i].close(peers[i].state);
    peers_count = 0;
}

/* Returns NULL if the peer was not started. */
static const struct contender *find_peer(const char *name)
{
    for (uint32_t i = 0; i < peers_count; i++)
        if (strcmp(peers[i].name, name) == 0)
            return &peers[i];
    return NULL;
}

/* -- rows -- */

typedef double measured(uint32_t workers);

/* A row has a column for ditto, for peers of this process, and for those in processes of their own. */
enum { OWN_PEERS = 2, PROCESSES = 2, COLUMNS = 1 + OWN_PEERS + PROCESSES };

static const struct row {
    const char *name;
    measured *of[1 + OWN_PEERS];
    const char *peer[COLUMNS - 1];
    uint64_t operations; /* of a batch; of `rows` and `dense` those of each worker */
    double bound;        /* of ditto's time in that of its first peer, or 0 */
    bool one_worker;     /* only with one worker */
    bool of_each;

    /* What peers in processes of their own do, how many times, and how many operations of the row each time
     * is. */
    enum function_row row;
    uint64_t process_times, process_operations;
    bool processes_only_together; /* They take part only if there is more than one worker. */
} rows[] = {
    { .name = "empty",
      .of = { ditto_empty, pool_empty },
      .peer = { "mutex pool", NULL, "tbb", "taskflow" },
      .operations = FUNCTIONS,
      .row = FUNCTIONS_EMPTY,
      .process_times = FUNCTIONS,
      .process_operations = 1 },
    { .name = "compute 20 us",
      .of = { ditto_compute, pool_compute },
      .peer = { "mutex pool", NULL, "tbb", "taskflow" },
      .operations = COMPUTE,
      .row = FUNCTIONS_COMPUTE,
      .process_times = COMPUTE,
      .process_operations = 1 },
    { .name = "start spinning", .of = { ditto_start_spinning }, .operations = STARTS, .one_worker = true },
    { .name = "start asleep", .of = { ditto_start_asleep }, .operations = SLEEPS, .one_worker = true },
    { .name = "rows",
      .of = { ditto_rows, locked_rows, owned_rows },
      .peer = { "1024 locks", "owner", "openmpi", "mpich" },
      .operations = (uint64_t)PUSHES * PUSH,
      .of_each = true,
      .row = FUNCTIONS_PUSH,
      .process_times = PROCESS_PUSHES,
      .process_operations = PUSH,
      .processes_only_together = true },
    { .name = "rows hogwild",
      .of = { ditto_hogwild, free_rows },
      .peer = { "no locks" },
      .operations = (uint64_t)PUSHES * PUSH,
      .of_each = true },
    { .name = "word2vec",
      .of = { ditto_words, plain_word_pairs },
      .peer = { "pthreads" },
      .operations = WORD_FUNCTIONS * PAIRS,
      .bound = 1.05,
      .of_each = true },
    { .name = "dense 256 KiB", .of = { ditto_dense }, .operations = STEPS, .of_each = true },
};

static const struct row uneven = { .name = "uneven",
                                   .of = { ditto_uneven, each_alone },
                                   .peer = { "each alone", NULL, "tbb", "taskflow" },
                                   .operations = UNEVEN,
                                   .row = FUNCTIONS_UNEVEN,
                                   .process_times = UNEVEN,
                                   .process_operations = 1 };

/* What ditto's threads counted in the batches of a row. */
static struct alone_counts counts;

static bool is_process(uint32_t column)
{
    return column > OWN_PEERS;
}

/* Returns true if the row has a peer in this column that is asked for. */
static bool has_peer(const struct row *row, uint32_t column, uint32_t workers)
{
    if (row->peer[column - 1] == NULL)
        return false;
    return !is_process(column) || (peers_count > 0 && !(row->processes_only_together && workers == 1));
}

static void print_peers(const struct row *row, uint32_t workers, const struct rounds *rounds, uint32_t mode)
{
    double ditto_ns = rounds_figures(rounds, 0, mode).median;
    for (uint32_t k = 1; k < COLUMNS; k++) {
        if (!has_peer(row, k, workers))
            continue;
        double ns = rounds_figures(rounds, k, mode).median;
        if (ns > 0)
            printf(" %s %.1f ns: %.2f of it;", row->peer[k - 1], ns, ditto_ns / ns);
        else /* The program was not built, or it has failed, which was said. */
            printf(" %s is missing;", row->peer[k - 1]);
    }
    if (row->bound > 0)
        printf(" the bound is %.2f of %s;", row->bound, row->peer[0]);
}

static void print_csv(const struct row *row, uint32_t workers, const struct rounds *rounds, uint32_t mode)
{
    char name[48];
    snprintf(name, sizeof name, "functions %s", row->name);
    for (uint32_t k = 0; k < COLUMNS; k++)
        if (k == 0 || (is_process(k) && rounds_figures(rounds, k, mode).median > 0))
            alone_csv(&(struct alone_row){ .bench = name,
                                           .algorithm = k == 0 ? "ditto" : row->peer[k - 1],
                                           .replicas = workers,
                                           .reps = 1,
                                           .rounds = rounds,
                                           .column = k,
                                           .mode = mode,
                                           .counts = k == 0 ? &counts : NULL });
}

static void print(const struct row *row, uint32_t workers, const struct rounds *rounds, bool csv)
{
    for (uint32_t mode = 0; mode < rounds->modes.count; mode++) {
        struct figures f = rounds_figures(rounds, 0, mode);
        if (csv) {
            print_csv(row, workers, rounds, mode);
            continue;
        }
        printf("functions  %-16s %2u workers %9.1f ns (min %.1f, p95 %.1f);", row->name, workers, f.median,
               f.min, f.p95);
        print_peers(row, workers, rounds, mode);
        alone_end_row(rounds, 0, mode, &counts);
    }
}

/* Measures a peer in processes of its own. */
static void measure_process(const struct row *row, uint32_t column, uint32_t workers, struct rounds *rounds)
{
    const struct contender *peer = find_peer(row->peer[column - 1]);
    double all = (double)(row->process_times * row->process_operations) * (row->of_each ? workers : 1);
    double seconds = peer != NULL ? function_peer_seconds(peer, (int)row->row, row->process_times) : -1;
    if (seconds > 0)
        rounds_put(rounds, column, seconds * 1e9 / all);
    else
        rounds_drop(rounds, column);
}

static void measure_round(const struct row *row, uint32_t workers, struct rounds *rounds)
{
    for (uint32_t k = 0; k <= OWN_PEERS && row->of[k] != NULL; k++) {
        alone_start(k == 0 ? &counts : NULL);
        double ns = row->of[k](workers);
        alone_stop(k == 0 ? &counts : NULL, row->operations * (row->of_each ? workers : 1));
        rounds_put(rounds, k, ns);
    }
    for (uint32_t k = OWN_PEERS + 1; k < COLUMNS; k++)
        if (has_peer(row, k, workers))
            measure_process(row, k, workers, rounds);
}

static void measure_one(const struct row *row, uint32_t workers, bool csv)
{
    struct rounds rounds;
    rounds_begin(&rounds, COLUMNS, ROUNDS);
    while (rounds_next(&rounds))
        measure_round(row, workers, &rounds);
    print(row, workers, &rounds, csv);
    rounds_end(&rounds);
    alone_forget(&counts);
    fflush(stdout);
}

/* Measures all rows with as many workers. Worker 0 has the first PU, and with one worker the caller has the
 * second one. */
static void measure_all(uint32_t workers, bool csv)
{
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    open_peers(workers);
    open_ditto(workers);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        if (workers > 1 && rows[k].one_worker)
            continue;
        if (workers == 1)
            bind_to(1);
        measure_one(&rows[k], workers, csv);
        sched_setaffinity(0, sizeof before, &before);
    }
    close_ditto();
    close_peers();
}

void bench_functions(uint32_t replicas, bool csv)
{
    (void)replicas;
    plain_table = zeros((size_t)TABLE_ROWS * WIDTH, sizeof *plain_table);
    free_table = zeros((size_t)TABLE_ROWS * WIDTH, sizeof *free_table);
    plain_words = zeros((size_t)WORDS * WORD_WIDTH, sizeof *plain_words);
    plain_others = zeros((size_t)WORDS * WORD_WIDTH, sizeof *plain_others);
    fill_words(plain_words);
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_init(&row_lock[i], NULL);
    sched_getaffinity(0, sizeof allowed, &allowed);
    uint32_t pus = (uint32_t)CPU_COUNT(&allowed);
    measure_all(1, csv);
    if (pus > 1)
        measure_all(pus < MOST_WORKERS ? pus : MOST_WORKERS, csv);
    open_peers(UNEVEN_WORKERS);
    open_ditto(UNEVEN_WORKERS);
    measure_one(&uneven, UNEVEN_WORKERS, csv);
    close_ditto();
    close_peers();
    for (uint32_t w = 0; w < MOST_WORKERS; w++)
        free(ring[w].push);
    free(plain_table);
    free(free_table);
    free(plain_words);
    free(plain_others);
}
