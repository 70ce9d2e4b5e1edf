/* bench/queue.c - the cost of the queue by itself, without a strategy.
 *
 * hand-off: ns from one spinning thread to another, which is half a round trip of a pointer through two
 *           queues. It is compared with passing a cache line, which is the same round trip through two words.
 *           Each word is stored by one thread and watched by the other. Bound: at most 1.5 times that.
 * one word: ns of the same round trip through one word that both threads store. A queue cannot be as fast:
 *           here the reader gets the line in the exclusive state and answers in it, while the consumer of a
 *           queue has nothing to write there.
 * stream:   ns per item from one producer to one consumer, with 1024 slots. It is compared with ck_ring
 *           (mpsc). Bound: at most the same.
 * crowd:    ns per item from four producers to one consumer on two cores, with 1024 slots. It is compared
 *           with GAsyncQueue of GLib. Bound: at most half of that.
 * asleep:   ns until a sleeping consumer has an item, or a sleeping producer has a free slot.
 *
 * Each figure is the median of 51 repetitions, which are interleaved with those of the peer. In hand-off,
 * stream and crowd, each repetition has different items, and they are checked. */
#include "alone.h"
#include "harness.h"
#include "samples.h"

#include <ditto/queue.h>

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef WITH_CK
#include <ck_ring.h>
#endif
#ifdef WITH_GLIB
#include <glib.h>
#endif

enum {
    ROUNDS = 51,
    TRIPS = 20000,
    STREAM = 200000,
    CROWD = 400000,
    SLEEPS = 50,
    SLOTS = 1024,
    PRODUCERS = 4
};

static void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "ditto-bench: queue: %s: %s\n", what, ditto_last_error()->message);
    exit(1);
}

/* -- two CPUs, and threads on them -- */

static size_t cpus[2];

/* Finds the first two CPUs that the process may use. Returns false if there is only one. */
static bool find_cpus(void)
{
    cpu_set_t allowed;
    int found = 0;
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            cpus[found++] = cpu;
    return found == 2;
}

/* Binds the calling thread to one of the two CPUs, or, if `which` is 2, to both. */
static void stay_on(int which)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (which != 1)
        CPU_SET(cpus[0], &set);
    if (which != 0)
        CPU_SET(cpus[1], &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* One repetition. The caller begins when all other threads are ready. The struct is on the caller's stack,
 * and has its own cache lines. Without that, its line could also hold the frames of the caller's calls,
 * and move between the CPUs because other threads read it. Depending on the position of the stack, a hand-off
 * then took 180 to 200 ns instead of 130. */
struct rep {
    alignas(128) void *queue[2]; /* queues of ditto or of a peer, or words */
    uint64_t items;              /* of each producer */

    /* The number of the first item, which is different in each repetition. In the rows `asleep` it is the sum
     * of the delays in ns. */
    uint64_t first;
    _Atomic uint32_t num_ready, go, over;
};
struct helper {
    struct rep *rep;
    uint32_t id;
};

static void start_line(struct rep *rep)
{
    atomic_fetch_add(&rep->num_ready, 1);
    while (atomic_load_explicit(&rep->go, memory_order_acquire) == 0)
        sched_yield();
}

/* Points to `counts` while ditto is measured. A peer is not counted. */
static struct alone_counts counts, *counting;

/* The end of each helper. It stays until its counts have been read, because an ended thread has no
 * statistics. */
static void *finish_line(struct rep *rep)
{
    while (counting != NULL && atomic_load_explicit(&rep->over, memory_order_acquire) == 0)
        sched_yield();
    return NULL;
}

/* Called by the main thread after `operations` operations. */
static void end_rep(struct rep *rep, uint64_t operations)
{
    alone_stop(counting, operations);
    atomic_store_explicit(&rep->over, 1, memory_order_release);
}

static void begin_rep(struct rep *rep, struct helper *helper, pthread_t *thread, uint32_t others,
                      void *(*body)(void *helper))
{
    for (uint32_t i = 0; i < others; i++) {
        helper[i] = (struct helper){ rep, i };
        check(pthread_create(&thread[i], NULL, body, &helper[i]) == 0, "no thread");
    }
    while (atomic_load_explicit(&rep->num_ready, memory_order_acquire) != others)
        sched_yield();
    alone_start(counting);
    atomic_store_explicit(&rep->go, 1, memory_order_release);
}

static ditto_queue *create(uint32_t slots, uint32_t producers, uint32_t spin_us)
{
    ditto_queue_options options = DITTO_QUEUE_OPTIONS_INIT;
    ditto_queue *queue = NULL;
    options.num_slots = slots;
    options.num_producers = producers;
    options.spin_us = spin_us;
    check(ditto_queue_create(&options, &queue) == DITTO_OK, "create");
    return queue;
}

static void *item_of(uint64_t number)
{
    return (void *)(uintptr_t)(number + 1); /* is never NULL */
}

static void put(ditto_queue *queue, uint32_t producer, uint64_t number)
{
    check(ditto_queue_put(queue, producer, item_of(number), 0, DITTO_FOREVER) == DITTO_OK, "put");
}

static uint64_t get(ditto_queue *queue)
{
    ditto_queue_item got;
    check(ditto_queue_get(queue, DITTO_FOREVER, &got) == DITTO_OK, "get");
    return (uint64_t)(uintptr_t)got.item - 1;
}

/* -- hand-off -- */

static void *answer(void *argument)
{
    struct helper *h = argument;
    stay_on(1);
    start_line(h->rep);
    for (uint64_t i = 0; i < h->rep->items; i++)
        put(h->rep->queue[1], 0, get(h->rep->queue[0]));
    return finish_line(h->rep);
}

static double hand_off(uint64_t first)
{
    struct rep rep = { .queue = { create(0, 1, 0), create(0, 1, 0) }, .items = TRIPS };
    struct helper helper;
    pthread_t thread;
    begin_rep(&rep, &helper, &thread, 1, answer);
    double begin = now_seconds();
    for (uint64_t i = 0; i < TRIPS; i++) {
        put(rep.queue[0], 0, first + i);
        check(get(rep.queue[1]) == first + i, "another item");
    }
    double seconds = now_seconds() - begin;
    end_rep(&rep, 2 * TRIPS);
    pthread_join(thread, NULL);
    check(ditto_queue_destroy(rep.queue[0]) == DITTO_OK, "ditto_queue_destroy");
    check(ditto_queue_destroy(rep.queue[1]) == DITTO_OK, "ditto_queue_destroy");
    return seconds / TRIPS / 2;
}

struct words {
    alignas(128) _Atomic uint64_t there;
    alignas(128) _Atomic uint64_t back;
};

static void *echo(void *argument)
{
    struct helper *h = argument;
    struct words *w = h->rep->queue[0];
    _Atomic uint64_t *back = h->rep->queue[1];
    uint64_t step = back == &w->there ? 2 : 1;
    stay_on(1);
    start_line(h->rep);
    for (uint64_t i = 0; i < h->rep->items; i++) {
        while (atomic_load_explicit(&w->there, memory_order_acquire) != step * i + 1)
            ;
        atomic_store_explicit(back, step * i + step, memory_order_release);
    }
    return finish_line(h->rep);
}

static double line_by(bool one_word)
{
    static struct words words;
    struct helper helper;
    pthread_t thread;
    uint64_t step = one_word ? 2 : 1;
    _Atomic uint64_t *back = one_word ? &words.there : &words.back;
    struct rep rep = { .queue = { &words, back }, .items = TRIPS };
    atomic_store(&words.there, 0);
    atomic_store(&words.back, 0);
    begin_rep(&rep, &helper, &thread, 1, echo);
    double begin = now_seconds();
    for (uint64_t i = 0; i < TRIPS; i++) {
        atomic_store_explicit(&words.there, step * i + 1, memory_order_release);
        while (atomic_load_explicit(back, memory_order_acquire) != step * i + step)
            ;
    }
    double seconds = now_seconds() - begin;
    end_rep(&rep, 2 * TRIPS);
    pthread_join(thread, NULL);
    return seconds / TRIPS / 2;
}

static double line_hand_over(uint64_t first)
{
    (void)first;
    return line_by(false);
}

static double one_word(uint64_t first)
{
    (void)first;
    return line_by(true);
}

/* -- streams -- */

static void *produce(void *argument)
{
    struct helper *h = argument;
    struct rep *r = h->rep;
    if (r->items == STREAM)
        stay_on(1);
    start_line(r);
    for (uint64_t i = 0; i < r->items; i++)
        put(r->queue[0], h->id, r->first + h->id * r->items + i);
    return finish_line(r);
}

/* Takes all items of `producers` threads with `take`, and checks the sum of their numbers. Returns the
 * seconds per item. */
static double consume(struct rep *rep, uint32_t producers, void *(*body)(void *),
                      uint64_t (*take)(void *queue))
{
    struct helper helper[PRODUCERS];
    pthread_t thread[PRODUCERS];
    uint64_t all = rep->items * producers, sum = 0;
    begin_rep(rep, helper, thread, producers, body);
    double begin = now_seconds();
    for (uint64_t i = 0; i < all; i++)
        sum += take(rep->queue[0]);
    double seconds = now_seconds() - begin;
    end_rep(rep, all);
    for (uint32_t i = 0; i < producers; i++)
        pthread_join(thread[i], NULL);
    check(sum == rep->first * all + all * (all - 1) / 2, "other items");
    return seconds / (double)all;
}

static uint64_t take(void *queue)
{
    return get(queue);
}

static double stream(uint64_t first)
{
    struct rep rep = { .queue = { create(SLOTS, 1, 0) }, .items = STREAM, .first = first };
    double seconds = consume(&rep, 1, produce, take);
    check(ditto_queue_destroy(rep.queue[0]) == DITTO_OK, "ditto_queue_destroy");
    return seconds;
}

static double crowd(uint64_t first)
{
    stay_on(2);
    struct rep rep = { .queue = { create(SLOTS, PRODUCERS, 0) }, .items = CROWD / PRODUCERS, .first = first };
    double seconds = consume(&rep, PRODUCERS, produce, take);
    check(ditto_queue_destroy(rep.queue[0]) == DITTO_OK, "ditto_queue_destroy");
    stay_on(0);
    return seconds;
}

#ifdef WITH_CK
struct ck {
    ck_ring_t ring;
    ck_ring_buffer_t buffer[SLOTS];
};

static void *ck_produce(void *argument)
{
    struct helper *h = argument;
    struct ck *ck = h->rep->queue[0];
    stay_on(1);
    start_line(h->rep);
    for (uint64_t i = 0; i < h->rep->items; i++)
        while (!ck_ring_enqueue_mpsc(&ck->ring, ck->buffer, item_of(h->rep->first + i)))
            ck_pr_stall();
    return NULL;
}

static uint64_t ck_take(void *queue)
{
    struct ck *ck = queue;
    void *item;
    while (!ck_ring_dequeue_mpsc(&ck->ring, ck->buffer, &item))
        ck_pr_stall();
    return (uint64_t)(uintptr_t)item - 1;
}

static double ck_stream(uint64_t first)
{
    struct ck *ck = aligned_alloc(128, (sizeof *ck + 127) / 128 * 128);
    struct rep rep = { .queue = { ck }, .items = STREAM, .first = first };
    check(ck != NULL, "no memory");
    ck_ring_init(&ck->ring, SLOTS);
    double seconds = consume(&rep, 1, ck_produce, ck_take);
    free(ck);
    return seconds;
}
#else
#define ck_stream NULL
#endif

#ifdef WITH_GLIB
static void *glib_produce(void *argument)
{
    struct helper *h = argument;
    start_line(h->rep);
    for (uint64_t i = 0; i < h->rep->items; i++)
        g_async_queue_push(h->rep->queue[0], item_of(h->rep->first + h->id * h->rep->items + i));
    return NULL;
}

static uint64_t glib_take(void *queue)
{
    return (uint64_t)(uintptr_t)g_async_queue_pop(queue) - 1;
}

static double glib_crowd(uint64_t first)
{
    stay_on(2);
    struct rep rep = { .queue = { g_async_queue_new() }, .items = CROWD / PRODUCERS, .first = first };
    double seconds = consume(&rep, PRODUCERS, glib_produce, glib_take);
    g_async_queue_unref(rep.queue[0]);
    stay_on(0);
    return seconds;
}
#else
#define glib_crowd NULL
#endif

/* -- asleep -- */

static uint64_t now_ns(void)
{
    return (uint64_t)(now_seconds() * 1e9);
}

static void rest(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 300000 }, NULL); /* longer than waiting threads spin */
}

/* Takes `items` items, each of which is the time when it was put. Adds the delays to `first`. */
static void *late_consumer(void *argument)
{
    struct rep *r = ((struct helper *)argument)->rep;
    stay_on(1);
    start_line(r);
    for (uint64_t i = 0; i < r->items; i++) {
        uint64_t then = get(r->queue[0]);
        r->first += now_ns() - then;
    }
    return finish_line(r);
}

static double wake_consumer(uint64_t first)
{
    (void)first;
    struct rep rep = { .queue = { create(0, 1, 1) }, .items = SLEEPS };
    struct helper helper;
    pthread_t thread;
    begin_rep(&rep, &helper, &thread, 1, late_consumer);
    for (int i = 0; i < SLEEPS; i++) {
        rest();
        put(rep.queue[0], 0, now_ns());
    }
    end_rep(&rep, SLEEPS);
    pthread_join(thread, NULL);
    check(ditto_queue_destroy(rep.queue[0]) == DITTO_OK, "ditto_queue_destroy");
    return (double)rep.first * 1e-9 / SLEEPS;
}

/* Puts items into a queue whose only slot is full. Each put waits for a get, whose time the consumer has
 * stored in queue[1]. Adds the delays to `first`. */
static void *late_producer(void *argument)
{
    struct rep *r = ((struct helper *)argument)->rep;
    _Atomic uint64_t *then = r->queue[1];
    stay_on(1);
    put(r->queue[0], 0, 0);
    start_line(r);
    for (uint64_t i = 0; i < r->items; i++) {
        put(r->queue[0], 0, i);
        r->first += now_ns() - atomic_load(then);
    }
    return finish_line(r);
}

static double wake_producer(uint64_t first)
{
    (void)first;
    _Atomic uint64_t then = 0;
    struct rep rep = { .queue = { create(1, 1, 1), &then }, .items = SLEEPS };
    struct helper helper;
    pthread_t thread;
    begin_rep(&rep, &helper, &thread, 1, late_producer);
    for (int i = 0; i < SLEEPS; i++) {
        rest();
        atomic_store(&then, now_ns());
        (void)get(rep.queue[0]);
    }
    end_rep(&rep, SLEEPS);
    pthread_join(thread, NULL);
    check(ditto_queue_destroy(rep.queue[0]) == DITTO_OK, "ditto_queue_destroy");
    return (double)rep.first * 1e-9 / SLEEPS;
}

/* -- rows -- */

/* Returns the seconds of one operation. `first` is the number of the first item. */
typedef double measured(uint64_t first);

struct row {
    const char *name, *peer;
    measured *of_ditto;
    measured *of_peer; /* NULL if the peer was not found when this was built */
    double limit;      /* as a multiple of the peer, or 0 */
};
static const struct row rows[] = {
    { "hand-off", "line", hand_off, line_hand_over, 1.5 },
    { "one word", NULL, one_word, NULL, 0 },
    { "stream", "ck_ring", stream, ck_stream, 1.0 },
    { "crowd", "GAsyncQueue", crowd, glib_crowd, 0.5 },
    { "consumer asleep", NULL, wake_consumer, NULL, 0 },
    { "producer asleep", NULL, wake_producer, NULL, 0 },
};

enum side { DITTO, PEER, SIDES };

/* Prints a row for each mode. */
static void print(const struct row *row, const struct rounds *rounds, bool csv)
{
    for (uint32_t mode = 0; mode < rounds->modes.count; mode++) {
        struct figures f = rounds_figures(rounds, DITTO, mode);
        double peer_ns = rounds_figures(rounds, PEER, mode).median;
        if (csv) {
            char name[32];
            snprintf(name, sizeof name, "queue %s", row->name);
            alone_csv(&(struct alone_row){ .bench = name,
                                           .algorithm = "ditto",
                                           .replicas = 2,
                                           .reps = 1,
                                           .rounds = rounds,
                                           .column = DITTO,
                                           .mode = mode,
                                           .bound_ns = peer_ns * row->limit,
                                           .peer_ratio = peer_ns / f.median,
                                           .peer = row->peer,
                                           .counts = &counts });
            continue;
        }
        printf("queue      %-15s %8.1f ns (min %.1f, p95 %.1f);", row->name, f.median, f.min, f.p95);
        if (row->peer != NULL && row->of_peer == NULL)
            printf(" %s: not found when this was built;", row->peer);
        else if (row->peer != NULL)
            printf(" %s %.1f ns: %.2f of it, at most %.2f;", row->peer, peer_ns, f.median / peer_ns,
                   row->limit);
        alone_end_row(rounds, DITTO, mode, &counts);
    }
}

/* Measures one row. */
static void measure_row(const struct row *row, struct rounds *rounds)
{
    rounds_begin(rounds, SIDES, ROUNDS);
    while (rounds_next(rounds)) {
        uint64_t first = (uint64_t)(rounds->count + 1) << 40;
        counting = &counts;
        double of_ditto = row->of_ditto(first);
        counting = NULL;
        rounds_put(rounds, DITTO, of_ditto * 1e9);
        if (row->of_peer != NULL)
            rounds_put(rounds, PEER, row->of_peer(first) * 1e9);
    }
}

void bench_queue(uint32_t replicas, bool csv)
{
    cpu_set_t before;
    (void)replicas;
    sched_getaffinity(0, sizeof before, &before);
    if (!find_cpus()) {
        fprintf(stderr, "ditto-bench: queue: two CPUs are needed\n");
        return;
    }
    stay_on(0);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        struct rounds rounds;
        measure_row(&rows[k], &rounds);
        print(&rows[k], &rounds, csv);
        rounds_end(&rounds);
        alone_forget(&counts);
        fflush(stdout);
    }
    sched_setaffinity(0, sizeof before, &before);
}
