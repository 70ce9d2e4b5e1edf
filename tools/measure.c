/* tools/measure.c - measures between two PUs, see measure.h. There is a replica on each PU. The replicas pass
 * a cache line to and fro, and then one of them reads a block of memory on the node of the other. For a PU
 * and itself there is one replica, which only reads. */
#include "measure.h"

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define ROUNDS  20000u /* in each direction and batch */
#define BATCHES 5
/* This is larger than most last-level caches. With a larger cache, the speed of the cache is measured. */
#define BLOCK_BYTES ((size_t)64 << 20)

struct pair {
    _Atomic uint32_t *line;
    uint64_t *block;
    double hand_over_ns, seconds;
    uint64_t sum; /* keeps the compiler from removing the reads */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Replica 0 makes the word odd, and replica 1 makes it even. Each waits for the store of the other. */
static void pass_to_and_fro(struct pair *p, uint32_t id)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        while (atomic_load_explicit(p->line, memory_order_acquire) != 2 * i + id)
            ;
        atomic_store_explicit(p->line, 2 * i + id + 1, memory_order_release);
    }
}

static ditto_status hand_over(ditto_replica *self, void *argument)
{
    struct pair *p = argument;
    uint32_t id = ditto_replica_id(self);
    for (int batch = 0; batch < BATCHES; batch++) {
        DITTO_TRY(ditto_barrier(self, NULL));
        if (id == 0)
            atomic_store_explicit(p->line, 0, memory_order_relaxed);
        DITTO_TRY(ditto_barrier(self, NULL));
        double begin = now();
        pass_to_and_fro(p, id);
        double ns = (now() - begin) * 1e9 / (2.0 * ROUNDS);
        if (id == 0 && (p->hand_over_ns == 0 || ns < p->hand_over_ns))
            p->hand_over_ns = ns;
    }
    return DITTO_OK;
}

/* The owner writes the block, so that its pages exist. Replica 0 reads it. */
static ditto_status read_block(ditto_replica *self, void *argument)
{
    struct pair *p = argument;
    uint32_t id = ditto_replica_id(self), owner = ditto_num_replicas(self) - 1;
    size_t words = BLOCK_BYTES / sizeof *p->block;
    if (id == owner)
        for (size_t i = 0; i < words; i++)
            p->block[i] = i;
    DITTO_TRY(ditto_barrier(self, NULL));
    for (int batch = 0; batch < BATCHES && id == 0; batch++) {
        uint64_t sum = 0;
        double begin = now();
        for (size_t i = 0; i < words; i++)
            sum += p->block[i];
        double seconds = now() - begin;
        p->sum += sum;
        if (p->seconds == 0 || seconds < p->seconds)
            p->seconds = seconds;
    }
    return DITTO_OK;
}

static ditto_status allocate(ditto_replica *self, void *argument)
{
    struct pair *p = argument;
    if (ditto_replica_id(self) == ditto_num_replicas(self) - 1) {
        DITTO_TRY(ditto_alloc(self, 128, 128, (void **)&p->line));
        DITTO_TRY(ditto_alloc(self, BLOCK_BYTES, 4096, (void **)&p->block));
    }
    return DITTO_OK;
}

static void measure_pair(struct measured *m)
{
    struct pair p = { 0 };
    uint32_t pus[2] = { m->from, m->to };
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_placement_options placing = DITTO_PLACEMENT_OPTIONS_INIT;
    ditto_strategy *strategy;
    placing.pus = pus;
    placing.num_pus = m->from == m->to ? 1 : 2;
    options.placement_options = &placing;
    check(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    check(ditto_strategy_run(strategy, allocate, &p));
    if (m->from != m->to)
        check(ditto_strategy_run(strategy, hand_over, &p));
    check(ditto_strategy_run(strategy, read_block, &p));
    check(ditto_strategy_destroy(strategy));
    m->hand_over_ns = p.hand_over_ns;
    m->gigabytes_per_second = (double)BLOCK_BYTES / p.seconds * 1e-9;
}

/* Returns the nearest level that two PUs share, as an index into names. */
static uint32_t shared_level(const ditto_pu *a, const ditto_pu *b)
{
    if (a->number == b->number)
        return 0;
    if (a->package == b->package && a->core == b->core)
        return 1;
    if (a->package != b->package)
        return 5;
    return a->numa_node != b->numa_node ? 4 : a->llc != b->llc ? 3 : 2;
}

uint32_t measure(const struct survey *s, struct measured out[MOST_PAIRS])
{
    static const char *const names[MOST_PAIRS] = { "itself",    "SMT sibling",  "same LLC",
                                                   "same node", "same package", "other package" };
    bool found[MOST_PAIRS] = { false };
    uint32_t pairs = 0;
    ditto_pu first, pu;
    check(ditto_topology_pu(s->topology, 0, &first));
    for (uint32_t i = 0; i < s->counts.pus; i++) {
        check(ditto_topology_pu(s->topology, i, &pu));
        uint32_t level = shared_level(&first, &pu);
        if (found[level])
            continue;
        found[level] = true;
        out[pairs] = (struct measured){ .name = names[level], .from = first.number, .to = pu.number };
        measure_pair(&out[pairs++]);
    }
    return pairs;
}
