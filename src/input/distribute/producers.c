/* src/input/distribute/producers.c - the threads that read and compute batches and write them to the
 * replicas' queues.
 *
 * The replicas of a pipeline are grouped by NUMA node. If there are enough producers, each serves the
 * replicas of one node. Producers run on PUs that no thread of the library is bound to, if there are any. PUs
 * of the replicas' node are preferred, because the queues are there, unless they are in host memory. */
#include "input/distribute/iterator.h"
#include "replicas/machine/affinity.h"
#include "replicas/machine/numa_node.h"
#include "replicas/machine/thread.h"
#include "replicas/team/replica.h"
#include "replicas/team/team.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- placement -- */

/* Sets `free_pus` to the allowed PUs of a node that no thread of the library is bound to, and returns their
 * number. DITTO_NO_NODE means all nodes. */
static uint32_t find_free_pus(const struct dti_mask *allowed, uint32_t node, struct dti_mask *free_pus)
{
    uint32_t count = 0;
    dti_mask_clear(free_pus);
    for (uint32_t pu = 0; pu < DTI_MAX_PUS; pu++)
        if (dti_mask_has(allowed, pu) && dti_load_on(pu) == 0 &&
            (node == DITTO_NO_NODE || dti_node_of_pu(pu) == (int32_t)node)) {
            dti_mask_add(free_pus, pu);
            count++;
        }
    return count;
}

/* Gets the affinity that the calling thread has outside of scopes and runs, because it may be bound to
 * replica 0's PU at present. Returns false if the affinity cannot be read. */
static bool host_mask(struct dti_mask *mask)
{
    const struct dti_mask *saved = dti_context_saved_mask();
    if (saved == NULL)
        return dti_affinity_try_get(mask);
    *mask = *saved;
    return true;
}

uint32_t dti_producers_default(const struct dti_team *team, uint32_t pipelines)
{
    struct dti_mask allowed, free_pus;
    uint32_t most = dti_team_num_replicas(team) / pipelines; /* not more than replicas */
    uint32_t count = host_mask(&allowed) ? find_free_pus(&allowed, DITTO_NO_NODE, &free_pus) / pipelines : 1;
    return count < 1 ? 1 : count < most ? count : most;
}

/* -- groups -- */

/* Divides the pipeline's replicas into at most `most` groups. The replicas of one node are in the same
 * group. */
static ditto_status make_groups(struct ditto_iterator *it, struct dti_pipeline *p, uint32_t most)
{
    uint32_t n = p->sequencer.o.served, nodes = 0;
    uint32_t *node = malloc(n * sizeof *node), *list = malloc(n * sizeof *list);
    size_t bytes = (most < n ? most : n) * sizeof *p->group;
    struct dti_producer_group *group = aligned_alloc(DTI_CACHE_LINE_PAIR, bytes);
    if (node == NULL || list == NULL || group == NULL) {
        free(node);
        free(list);
        free(group);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for producers of %u replicas", n);
    }
    p->group = memset(group, 0, bytes);
    p->group[0].replica = list; /* each group points to its own part of the list */
    /* Numbers the nodes in the order of their first replica, and sets node[j] to the number of replica j's
     * node. */
    for (uint32_t j = 0; j < n; j++) {
        uint32_t numa_node = dti_team_replica(it->team, p->first_replica + j)->pu.numa_node, before = 0;
        while (before < j && dti_team_replica(it->team, p->first_replica + before)->pu.numa_node != numa_node)
            before++;
        node[j] = before < j ? node[before] : nodes++;
    }
    p->groups = nodes < most ? nodes : most;
    for (uint32_t c = 0, used = 0; c < p->groups; c++) {
        p->group[c].replica = list + used;
        p->group[c].step = p->sequencer.first;
        atomic_init(&p->group[c].blocked_on, DTI_NOT_BLOCKED);
        for (uint32_t j = 0; j < n; j++)
            if (node[j] % p->groups == c) {
                list[used++] = j;
                p->group[c].replicas++;
                it->consumer[p->first_replica + j].group = &p->group[c];
            }
    }
    free(node);
    return DITTO_OK;
}

ditto_status dti_producers_prepare(struct ditto_iterator *it)
{
    for (uint32_t w = 0; w < it->plan.local_pipelines; w++) {
        struct dti_pipeline *pipeline = &it->pipeline[w];
        struct dti_mask allowed;
        DTI_TRY(make_groups(it, pipeline, it->plan.producers));
        for (uint32_t i = 0; i < it->plan.producers; i++) {
            struct dti_producer *p = &it->producer[w * it->plan.producers + i];
            p->iterator = it;
            p->pipeline = pipeline;
            p->group = &pipeline->group[i % pipeline->groups];
            p->index = w * it->plan.producers + i;
            p->number = dti_team_number_producer(it->team);
            p->reader.closing = &it->closing;
            uint32_t node = dti_team_replica(it->team, pipeline->first_replica + p->group->replica[0])
                                ->pu.numa_node;
            p->has_affinity = host_mask(&allowed);
            if (p->has_affinity && find_free_pus(&allowed, node, &p->affinity) == 0 &&
                find_free_pus(&allowed, DITTO_NO_NODE, &p->affinity) == 0)
                p->affinity = allowed; /* no PU is free */
        }
    }
    return DITTO_OK;
}

void dti_producers_free(struct ditto_iterator *it)
{
    for (uint32_t i = 0; it->producer != NULL && i < it->producers; i++)
        dti_reader_free(&it->producer[i].reader);
    for (uint32_t w = 0; it->pipeline != NULL && w < it->plan.local_pipelines; w++) {
        if (it->pipeline[w].group != NULL)
            free(it->pipeline[w].group[0].replica);
        free(it->pipeline[w].group);
    }
    free(it->producer);
}

/* -- waiting -- */

/* How long a producer yields before it sleeps. If batches are small, replicas take one sooner than the
 * producer could wake up. */
#define YIELD_NS 50000u

struct ticket_wait {
    struct dti_producer *producer;
    const struct dti_ticket *ticket;
    enum dti_ticket_result why;
};
static bool may_go_on(void *argument)
{
    const struct ticket_wait *w = argument;
    const struct ditto_iterator *it = w->producer->iterator;
    if (atomic_load_explicit(&it->closing, memory_order_acquire) != 0) /* pairs with dti_producers_stop */
        return true;
    if (w->why == DTI_TICKET_UNKNOWN)
        return dti_progress_is_known(&it->progress, dti_pipeline_number(w->producer->pipeline),
                                     w->ticket->step);
    return dti_ring_reached(it->ring[w->producer->pipeline->first_replica + w->ticket->replica],
                            w->ticket->number);
}

static void add_time(_Atomic uint64_t *total, uint64_t since)
{
    /* relaxed: only this thread writes it, other threads read it for statistics */
    atomic_store_explicit(total, atomic_load_explicit(total, memory_order_relaxed) + dti_now_ns() - since,
                          memory_order_relaxed);
}

static void wait_for_ticket(struct dti_producer *p, const struct dti_ticket *ticket,
                            enum dti_ticket_result why)
{
    /* After a long wait the producer sleeps at once. Once in DTI_SPIN_EVERY long waits it yields first, to
     * find out whether waits have become short. */
    struct dti_wait_policy wait_policy = { .yield_ns = p->long_waits % DTI_SPIN_EVERY == 0 ? YIELD_NS : 0 };
    struct ditto_iterator *it = p->iterator;
    struct ticket_wait w = { p, ticket, why };
    uint32_t awaited = why == DTI_TICKET_UNKNOWN ? DTI_AWAITS_PROGRESS(it)
                                                 : p->pipeline->first_replica + ticket->replica;
    uint64_t begin = dti_now_ns();
    /* Wakes consumers, which then check whether the replica whose ring is full has returned. */
    dti_wait_queue_signal(dti_team_wait_queue(it->team), DTI_AWAITS_INPUT(it->num_replicas));
    /* Wakes producers of other pipelines, because this pipeline may have cut a step or ended. */
    if (why == DTI_TICKET_UNKNOWN) {
        dti_wait_queue_signal(&it->wait_queue, DTI_AWAITS_PROGRESS(it));
        if (it->progress.hosts != NULL)
            dti_progress_ask(it->progress.hosts, ticket->step);
    }
    dti_wait(&it->wait_queue, p->index, awaited, &wait_policy,
             &(struct dti_deadline){ .timeout_ms = DITTO_FOREVER }, may_go_on, &w);
    p->long_waits = dti_now_ns() - begin > 2 * YIELD_NS ? p->long_waits + 1 : 0;
    add_time(&p->waiting_ns, begin);
}

/* -- producing -- */

/* Reads the rows one by one into the slot, up to the first one that cannot be read. Returns the number of
 * rows before it. The error is then the thread's record. */
static uint64_t fill_up_to_error(struct dti_producer *p, const struct dti_ticket *ticket,
                                 void *const *destination)
{
    const ditto_dataset *dataset = p->pipeline->dataset;
    for (uint64_t i = 0; i < ticket->count; i++) {
        void *to[DITTO_MAX_COMPONENTS];
        for (uint32_t k = 0; k < dataset->components; k++)
            to[k] = (char *)destination[k] + i * dataset->component[k].bytes;
        if (dti_dataset_fill(dataset, &p->reader, dti_rows_from(ticket->rows, i), 1, to) != DITTO_OK)
            return i;
    }
    /* This time all rows were read. A user's function may fail only sometimes. */
    return ticket->count;
}

static void produce(struct dti_producer *p, const struct dti_ticket *ticket)
{
    struct ditto_iterator *it = p->iterator;
    struct dti_batch_slot *slot = dti_ring_slot(it->ring[p->pipeline->first_replica + ticket->replica],
                                                ticket->number);
    void *destination[DITTO_MAX_COMPONENTS];
    uint64_t begin = dti_now_ns();
    slot->rows = ticket->count;
    slot->step = ticket->step;
    slot->status = ticket->status;
    slot->by_others = ticket->by_others;
    slot->producer = p->number;
    slot->begin_ns = begin;
    for (uint32_t k = 0; k < p->pipeline->dataset->components; k++)
        destination[k] = slot->payload + it->offset[k];
    if (ticket->count > 0 && dti_dataset_fill(p->pipeline->dataset, &p->reader, ticket->rows, ticket->count,
                                              destination) != DITTO_OK) {
        slot->rows = fill_up_to_error(p, ticket, destination);
        if (slot->rows < ticket->count) {
            slot->status = dti_sequencer_fail(&p->pipeline->sequencer, ticket);
            slot->rows = it->plan.is_static ? 0 : slot->rows; /* a static plan has no short batches */
        }
    }
    slot->end_ns = dti_now_ns();
    bool handed_over = dti_order_finish(p->pipeline, ticket);
    DTI_PROBE1(queue_put, ticket->number);
    if (handed_over)
        dti_wait_queue_signal(dti_team_wait_queue(it->team), DTI_AWAITS_INPUT(it->num_replicas));
    if (it->plan.pipelines > 1) /* a step may have been cut, or the end found, for this ticket */
        dti_wait_queue_signal(&it->wait_queue, DTI_AWAITS_PROGRESS(it));
    add_time(&p->filling_ns, begin);
}

static void *producer_main(void *argument)
{
    struct dti_producer *p = argument;
    struct ditto_iterator *it = p->iterator;
    struct dti_ticket ticket;
    struct dti_frame frame;
    enum dti_ticket_result taken;
    char name[16];
    snprintf(name, sizeof name, "ditto-in%u", p->index);
    dti_thread_begin(name);
    if (p->has_affinity)
        dti_affinity_restore(&p->affinity);
    struct dti_fenv saved = dti_frame_enter_input(&frame, it->team);
    /* acquire: pairs with dti_producers_stop */
    while (atomic_load_explicit(&it->closing, memory_order_acquire) == 0 &&
           (taken = dti_sequencer_take(&p->pipeline->sequencer, p->group, &ticket)) != DTI_TICKET_FINISHED) {
        if (taken == DTI_TICKET_TAKEN)
            produce(p, &ticket);
        else
            wait_for_ticket(p, &ticket, taken);
        /* Sets the floating-point environment again, because a function of a dataset may have changed it. */
        (void)dti_fenv_enter();
    }
    dti_frame_leave(&frame, saved);
    return NULL;
}

/* -- life -- */

ditto_status dti_producers_start(struct ditto_iterator *it)
{
    for (; it->started < it->producers; it->started++) {
        int start_errno = dti_thread_start(&it->producer[it->started].thread, 0, producer_main,
                                           &it->producer[it->started]);
        if (start_errno != 0)
            return DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, start_errno,
                                  "the system refused the thread of producer %u of %u", it->started,
                                  it->producers);
        dti_load_add(DTI_NO_PU);
    }
    return DITTO_OK;
}

void dti_producers_stop(struct ditto_iterator *it)
{
    atomic_store_explicit(&it->closing, 1, memory_order_release); /* pairs with may_go_on, producer_main */
    dti_wait_queue_signal(&it->wait_queue, DTI_EVERYONE);
    for (uint32_t i = 0; i < it->started; i++) {
        pthread_join(it->producer[i].thread, NULL);
        dti_load_remove(DTI_NO_PU);
    }
    it->started = 0;
}

void dti_producers_forget(struct ditto_iterator *it)
{
    for (; it->started > 0; it->started--)
        dti_load_remove(DTI_NO_PU);
}
