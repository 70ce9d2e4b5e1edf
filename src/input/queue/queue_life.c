/* src/input/queue/queue_life.c - creates a queue, places its memory, and drops the items that are left when
 * it is destroyed. */
#include "base/errors/user_call.h"
#include "input/queue/queue.h"
#include "replicas/machine/numa_node.h"

#include <errno.h>
#include <numaif.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEFAULT_SLOTS 64u
#define NODE_BITS     1024u

/* Computes the size of the mapping. Slots and payload are in one mapping, so that one memory policy holds for
 * both. */
static ditto_status lay_out(ditto_queue *q)
{
    uint64_t slots = q->mask + 1, payload, stride;
    size_t total;
    if (__builtin_add_overflow(q->payload_bytes, DTI_CACHE_LINE_PAIR - 1, &stride))
        goto too_much;
    stride = stride / DTI_CACHE_LINE_PAIR * DTI_CACHE_LINE_PAIR;
    if (__builtin_mul_overflow(stride, slots, &payload) ||
        __builtin_add_overflow(payload, slots * sizeof(struct dti_queue_slot) + DTI_CACHE_LINE_PAIR, &total))
        goto too_much;
    q->payload_stride = stride;
    q->mapped_bytes = total;
    return DITTO_OK;
too_much:
    return DTI_FAIL(DITTO_ERR_RANGE, "%llu slots of %llu bytes are more than size_t can count",
                    (unsigned long long)slots, (unsigned long long)q->payload_bytes);
}

static ditto_status map(ditto_queue *q, const ditto_queue_options *o)
{
    int kept_errno = errno;
    void *memory = mmap(NULL, q->mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int refused = memory == MAP_FAILED ? errno : 0;
    if (memory == MAP_FAILED) {
        errno = kept_errno;
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, refused, "no memory for a queue of %zu bytes",
                              q->mapped_bytes);
    }
    if (o->has_node != 0) {
        /* The node is preferred, not required, because a full node should make a queue slow and not end the
         * program. If the kernel refuses, the first touch by this thread decides the node. */
        unsigned long mask[NODE_BITS / 64] = { 0 };
        mask[o->node / 64] = 1ul << o->node % 64;
        (void)mbind(memory, q->mapped_bytes, MPOL_PREFERRED, mask, NODE_BITS, 0);
        errno = kept_errno;
    }
    memset(memory, 0, q->mapped_bytes); /* page faults happen now and not during the first calls */
    q->slot = memory;
    /* slots_end is the end of the slots, in pairs of cache lines. */
    uint64_t slots = q->mask + 1,
             slots_end = (slots * sizeof(struct dti_queue_slot) + DTI_CACHE_LINE_PAIR - 1) /
                         DTI_CACHE_LINE_PAIR;
    q->payload = q->payload_bytes != 0 ? (char *)memory + slots_end * DTI_CACHE_LINE_PAIR : NULL;
    return DITTO_OK;
}

/* If there are more threads than CPUs, a thread that spins keeps the thread that it waits for from running.
 * The CPUs of the whole machine count, because the calling thread is often bound to one CPU, which says
 * nothing about the other threads. */
static struct dti_wait_policy wait_policy_of(const ditto_queue_options *o, uint32_t producers)
{
    bool oversubscribed = sysconf(_SC_NPROCESSORS_ONLN) < (long)producers + 1;
    bool given = o->has_spin_us != 0 || o->spin_us != 0;
    if (!given && oversubscribed)
        return (struct dti_wait_policy){ .yield_ns = DTI_YIELD_NS };
    return (struct dti_wait_policy){ .spin_ns = (uint64_t)(given ? o->spin_us : DTI_DEFAULT_SPIN_US) *
                                                1000u };
}

static void release(ditto_queue *q)
{
    if (q->slot != NULL)
        munmap(q->slot, q->mapped_bytes);
    dti_wait_queue_free(&q->producers_waiting);
    dti_wait_queue_free(&q->consumer_waiting);
    free(q->producer_state);
    free(q);
}

static ditto_queue *allocate(const ditto_queue_options *o)
{
    ditto_queue *q = aligned_alloc(DTI_CACHE_LINE_PAIR, sizeof *q);
    if (q == NULL)
        return NULL;
    memset(q, 0, sizeof *q);
    q->producers = o->num_producers != 0 ? o->num_producers : 1;
    uint64_t slots = 1; /* a power of two */
    while (slots < (o->num_slots != 0 ? o->num_slots : DEFAULT_SLOTS))
        slots *= 2;
    q->mask = slots - 1;
    q->max_bytes = o->max_bytes;
    q->payload_bytes = o->payload_bytes;
    q->drop = o->drop;
    q->drop_argument = o->drop_user;
    q->wait_policy = wait_policy_of(o, q->producers);
    enum dti_sleeps sleeps = q->wait_policy.spin_ns == 0 ? DTI_SLEEPS_OFTEN : DTI_SLEEPS_RARE;
    q->producer_state = aligned_alloc(DTI_CACHE_LINE_PAIR, q->producers * sizeof *q->producer_state);
    if (q->producer_state == NULL || !dti_wait_queue_init(&q->producers_waiting, q->producers, sleeps) ||
        !dti_wait_queue_init(&q->consumer_waiting, 1, sleeps)) {
        release(q);
        return NULL;
    }
    memset(q->producer_state, 0, q->producers * sizeof *q->producer_state);
    for (uint32_t i = 0; i < q->producers; i++)
        q->producer_state[i].wait_policy = q->wait_policy;
    return q;
}

ditto_status dti_queue_create(const ditto_queue_options *o, ditto_queue **out)
{
    if (o->has_node != 0 && (o->node >= NODE_BITS || !dti_node_has_memory(o->node)))
        return DTI_FAIL(DITTO_ERR_RANGE, "NUMA node %u has no memory that this process may use", o->node);
    ditto_queue *q = allocate(o);
    if (q == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a queue with %u producers", o->num_producers);
    ditto_status status = lay_out(q);
    if (status == DITTO_OK)
        status = map(q, o);
    if (status != DITTO_OK) {
        release(q);
        return status;
    }
    *out = q;
    return DITTO_OK;
}

/* Drops the items that were put and never taken. No other thread uses the queue. */
static DTI_GUARDED void drop_all(ditto_queue *q)
{
    uint64_t tail = atomic_load_explicit(&q->tail, memory_order_acquire);
    DTI_GUARD("the drop function of a queue");
    for (uint64_t t = q->next; t != tail; t++) {
        struct dti_queue_slot *e = dti_queue_slot_of(q, t);
        if (atomic_load_explicit(&e->filled, memory_order_acquire) == t + 1 && e->kind == DTI_QUEUE_SLOT_ITEM)
            q->drop(e->item, q->drop_argument);
    }
    DTI_GUARD_END();
}

ditto_status dti_queue_destroy(ditto_queue *q)
{
    /* relaxed: the counts only serve to detect a misuse */
    if (atomic_load_explicit(&q->producers_waiting.parked, memory_order_relaxed) != 0 ||
        atomic_load_explicit(&q->consumer_waiting.parked, memory_order_relaxed) != 0)
        return DTI_FAIL(DITTO_ERR_BUSY,
                        "a thread waits in the queue: close it, and join its producers and its consumer");
    if (q->drop != NULL && q->payload == NULL)
        drop_all(q);
    release(q);
    return DITTO_OK;
}

/* relaxed: each counter is a number that one thread writes */
static uint64_t read_count(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void dti_queue_stats(const ditto_queue *q, ditto_queue_counters *out)
{
    uint64_t head = read_count(&q->head), tail = read_count(&q->tail);
    *out = (ditto_queue_counters){ .gets = read_count(&q->gets),
                                   .got_bytes = read_count(&q->got_bytes),
                                   .depth = tail > head ? tail - head : 0,
                                   .get_waits = read_count(&q->waits),
                                   .get_wait_ns = read_count(&q->wait_ns) };
    for (uint32_t i = 0; i < q->producers; i++) {
        const struct dti_queue_producer *m = &q->producer_state[i];
        out->puts += read_count(&m->puts);
        out->put_bytes += read_count(&m->bytes);
        out->put_waits += read_count(&m->waits);
        out->put_wait_ns += read_count(&m->wait_ns);
    }
}
