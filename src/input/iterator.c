/* src/input/iterator.c - producers between the sequencer and the queues, and the consumer's side. */
#include "input/input.h"
#include "input/queue.h"
#include "input/rebatch.h"
#include "input/sequencer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_BUFFER    2u
#define DEFAULT_PRODUCERS 1u
#define NOT_BLOCKED       UINT32_MAX

struct producer {
    struct ditto_iterator *iterator;
    pthread_t thread;
    uint32_t index;
    struct dti_row *rows;                               /* [most_rows] of the batch in hand */
    alignas(DTI_LINE_PAIR) _Atomic uint32_t blocked_on; /* the replica whose full queue it waits for, or NOT_BLOCKED */
    _Atomic uint64_t blocked_ticket;                    /* with which ticket; published by blocked_on */
};

struct consumer {
    alignas(DTI_LINE_PAIR) struct dti_queue queue;
    void *memory;     /* of the queue, in the replica's arena */
    uint64_t wait_ns; /* its own */
};

struct ditto_iterator {
    struct dti_dependent dependent; /* first */
    struct dti_team *team;          /* NULL: the strategy is destroyed */
    ditto_dataset *dataset;         /* referenced */
    struct dti_sequencer sequencer;
    struct dti_waitroom room; /* seats: producers; they await replicas' ids */
    _Atomic uint32_t closing;
    uint32_t slots, producers, started;
    struct producer *producer; /* [producers] */
    struct consumer *consumer; /* [replicas] */
    struct dti_mask affinity;  /* of the producers: the host's own, not replica 0's PU */
    bool has_affinity;
    size_t offset[DITTO_MAX_COMPONENTS], payload_bytes;
    uint64_t global_rows, most_rows; /* of a step; of one batch */
};

/* -- producers -- */

struct slot_wait {
    struct ditto_iterator *iterator;
    const struct dti_queue *queue;
    uint64_t ticket;
};
static bool slot_ready(void *argument)
{
    const struct slot_wait *w = argument;
    return dti_queue_is_free(w->queue, w->ticket) ||
           atomic_load_explicit(&w->iterator->closing, memory_order_acquire) != 0;
}

/* False: the iterator is being destroyed. */
static bool wait_for_slot(struct producer *p, const struct dti_ticket *ticket)
{
    struct dti_patience asleep = { 0 }; /* a batch takes longer than a wake-up */
    struct ditto_iterator *it = p->iterator;
    struct slot_wait w = { it, &it->consumer[ticket->replica].queue, ticket->number };
    if (slot_ready(&w))
        return dti_queue_is_free(w.queue, ticket->number);
    atomic_store_explicit(&p->blocked_ticket, ticket->number, memory_order_relaxed);
    atomic_store_explicit(&p->blocked_on, ticket->replica, memory_order_release); /* pairs with starved() */
    dti_waitroom_signal(&it->team->room, DTI_AWAITS_INPUT(it->team)); /* consumers look whether that replica has left */
    dti_wait(&it->room, p->index, ticket->replica, &asleep, &(struct dti_deadline){ .timeout_ms = DITTO_FOREVER },
             slot_ready, &w);
    atomic_store_explicit(&p->blocked_on, NOT_BLOCKED, memory_order_release); /* pairs with starved() */
    return dti_queue_is_free(w.queue, ticket->number);
}

static void produce(struct producer *p, const struct dti_ticket *ticket)
{
    struct ditto_iterator *it = p->iterator;
    struct dti_queue *queue = &it->consumer[ticket->replica].queue;
    struct dti_slot *slot = dti_queue_slot(queue, ticket->number);
    void *destination[DITTO_MAX_COMPONENTS];
    slot->rows = ticket->rows;
    slot->step = ticket->step;
    slot->status = ticket->status;
    for (uint32_t k = 0; k < it->dataset->components; k++)
        destination[k] = slot->payload + it->offset[k];
    if (ticket->rows > 0) {
        const ditto_dataset *source = it->dataset->source;
        if (source->kind->fill(source, p->rows, ticket->rows, destination) != DITTO_OK)
            slot->status = dti_sequencer_fail(&it->sequencer, ticket);
    }
    dti_queue_publish(queue, ticket->number);
    DTI_PROBE1(queue_put, ticket->number);
    dti_waitroom_signal(&it->team->room, DTI_AWAITS_INPUT(it->team));
}

static void *producer_main(void *argument)
{
    struct producer *p = argument;
    struct ditto_iterator *it = p->iterator;
    struct dti_ticket ticket;
    char name[16];
    snprintf(name, sizeof name, "ditto-in%u", p->index);
    dti_thread_settle(name);
    if (it->has_affinity)
        dti_affinity_restore(&it->affinity);
    while (dti_sequencer_take(&it->sequencer, &ticket, p->rows) && wait_for_slot(p, &ticket))
        produce(p, &ticket);
    return NULL;
}

static void stop_producers(struct ditto_iterator *it)
{
    atomic_store_explicit(&it->closing, 1, memory_order_release); /* pairs with slot_ready */
    dti_waitroom_signal(&it->room, DTI_EVERYONE);
    for (uint32_t i = 0; i < it->started; i++) {
        pthread_join(it->producer[i].thread, NULL);
        dti_load_remove(DTI_NO_PU);
    }
    it->started = 0;
}

/* In a child after fork: they are not there any more, but still counted. */
static void forget_producers(struct ditto_iterator *it)
{
    for (; it->started > 0; it->started--)
        dti_load_remove(DTI_NO_PU);
}

/* -- consumers -- */

/* No row can come to anyone: every producer waits for a queue whose replica has returned from its function. */
static bool starved(const struct ditto_iterator *it, uint32_t *left)
{
    for (uint32_t i = 0; i < it->producers; i++) {
        uint32_t blocked = atomic_load_explicit(&it->producer[i].blocked_on, memory_order_acquire);
        if (blocked == NOT_BLOCKED || !dti_replica_returned(&it->team->replica[blocked]))
            return false;
        /* A slot that has been emptied meanwhile: the producer is only not awake yet. */
        uint64_t ticket = atomic_load_explicit(&it->producer[i].blocked_ticket, memory_order_relaxed);
        if (dti_queue_is_free(&it->consumer[blocked].queue, ticket))
            return false;
        *left = blocked;
    }
    return true;
}

struct batch_wait {
    struct ditto_iterator *iterator;
    struct dti_queue *queue;
};
static bool batch_ready(void *argument)
{
    const struct batch_wait *w = argument;
    uint32_t left;
    return dti_queue_peek(w->queue) != NULL || dti_stopped(&w->iterator->team->stop) || starved(w->iterator, &left);
}

static ditto_status fail_starved(struct dti_replica *self, uint32_t left)
{
    DTI_FAIL(DITTO_ERR_DIVERGED,
             "replica %u waits in ditto_next, but replica %u has returned from its function and does not "
             "empty its queue, so no row can come: every replica must take the same number of batches",
             self->id, left);
    dti_team_stop(self->team);
    return dti_team_stop_status(self->team);
}

static ditto_status wait_for_batch(struct dti_replica *self, struct ditto_iterator *it)
{
    struct batch_wait w = { it, &it->consumer[self->id].queue };
    struct dti_deadline deadline = dti_replica_deadline(self, self->team->options.timeout_ms);
    uint64_t begin = dti_now_ns();
    uint32_t left = 0;
    bool ready = dti_wait(&self->team->room, self->id, DTI_EVERYONE, &self->patience, &deadline, batch_ready, &w);
    it->consumer[self->id].wait_ns += dti_now_ns() - begin;
    dti_trace_waited(self, begin);
    if (!ready) {
        DTI_FAIL(DITTO_ERR_TIMED_OUT,
                 "replica %u waited %u ms in ditto_next for batch %llu: the producers are too slow, or "
                 "another replica does not take its batches",
                 self->id, deadline.timeout_ms, (unsigned long long)w.queue->next);
        dti_team_stop(self->team);
        return DITTO_ERR_TIMED_OUT;
    }
    if (dti_queue_peek(w.queue) != NULL)
        return DITTO_OK;
    if (dti_stopped(&self->team->stop))
        return dti_team_stop_status(self->team);
    return starved(it, &left) ? fail_starved(self, left) : DITTO_OK;
}

static void describe_batch(const struct ditto_iterator *it, const struct dti_slot *slot, ditto_batch *out)
{
    out->rows = slot->rows;
    out->step = slot->step;
    out->components = it->dataset->components;
    for (uint32_t k = 0; k < out->components; k++) {
        const struct dti_component_spec *spec = &it->dataset->component[k];
        ditto_tensor *t = &out->component[k];
        *t = (ditto_tensor){ .data = slot->payload + it->offset[k], .dtype = spec->dtype, .rank = spec->rank + 1 };
        t->shape[0] = slot->rows;
        memcpy(&t->shape[1], spec->shape, spec->rank * sizeof spec->shape[0]);
    }
}

static ditto_status next_batch(struct dti_replica *self, ditto_iterator *it, ditto_batch *out)
{
    struct dti_queue *queue = &it->consumer[self->id].queue;
    struct dti_slot *slot;
    if (dti_queue_release(queue))
        dti_waitroom_signal(&it->room, self->id);
    if (dti_team_forked(self->team))
        return dti_fail_forked();
    while ((slot = dti_queue_peek(queue)) == NULL)
        DTI_TRY(wait_for_batch(self, it));
    if (slot->status == DITTO_END_OF_INPUT) /* stays: the next call finds it again */
        return DITTO_END_OF_INPUT;
    if (slot->status != DITTO_OK) {
        ditto_error error;
        dti_sequencer_error(&it->sequencer, &error);
        error.replica = (int32_t)self->id;
        error.function = dti_public_function;
        dti_error_set(&error);
        return slot->status;
    }
    describe_batch(it, slot, out);
    dti_queue_take(queue);
    return DITTO_OK;
}

static uint64_t batch_bytes(const ditto_batch *batch)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < batch->components; k++)
        bytes += ditto_tensor_bytes(&batch->component[k]);
    return bytes;
}

ditto_status dti_iterator_next(struct dti_replica *self, ditto_iterator *it, ditto_batch *out)
{
    DTI_PROBE1(queue_get_begin, self->id);
    dti_trace_begin(self, DTI_TRACE_INPUT, "ditto_next");
    ditto_status status = next_batch(self, it, out);
    if (__builtin_expect(self->tracer != NULL, 0))
        dti_trace_end(self, status == DITTO_OK ? batch_bytes(out) : 0);
    DTI_PROBE1(queue_get_end, self->id);
    return status;
}

uint64_t dti_iterator_full_rows(const ditto_iterator *iterator, uint32_t replica)
{
    return dti_rebatch_full(iterator->global_rows, iterator->team->n, replica);
}

struct dti_team *dti_iterator_team(const ditto_iterator *iterator)
{
    return iterator->team;
}

uint64_t dti_iterator_wait_ns(const ditto_iterator *iterator, uint32_t replica)
{
    return iterator->consumer[replica].wait_ns;
}

/* -- create and destroy -- */

/* Where each component lies in a slot's payload; RANGE when that is more than size_t counts. */
static ditto_status lay_out(struct ditto_iterator *it)
{
    size_t total = 0, bytes;
    for (uint32_t k = 0; k < it->dataset->components; k++) {
        it->offset[k] = total;
        if (!dti_multiply(it->most_rows, it->dataset->component[k].bytes, &bytes) ||
            __builtin_add_overflow(bytes, DTI_LINE_PAIR - 1, &bytes) ||
            __builtin_add_overflow(total, bytes / DTI_LINE_PAIR * DTI_LINE_PAIR, &total))
            return DTI_FAIL(DITTO_ERR_RANGE, "a batch of %llu rows has more bytes than size_t can count",
                            (unsigned long long)it->most_rows);
    }
    it->payload_bytes = total;
    return dti_queue_bytes(it->slots, total, &bytes)
               ? DITTO_OK
               : DTI_FAIL(DITTO_ERR_RANGE, "%u batches have more bytes than size_t can count", it->slots);
}

/* On each replica's own thread: its queue, slots and payload, in its arena. */
static ditto_status place_queue(struct dti_replica *r, void *argument)
{
    struct ditto_iterator *it = argument;
    struct consumer *c = &it->consumer[r->id];
    size_t bytes = 0;
    dti_queue_bytes(it->slots, it->payload_bytes, &bytes); /* lay_out has checked it */
    DTI_TRY(dti_replica_alloc(r, bytes, DTI_LINE_PAIR, &c->memory));
    dti_queue_init(&c->queue, it->slots, it->payload_bytes, c->memory);
    return DITTO_OK;
}

static ditto_status start_producers(struct ditto_iterator *it)
{
    for (uint32_t i = 0; i < it->producers; i++) {
        struct producer *p = &it->producer[i];
        p->iterator = it;
        p->index = i;
        atomic_init(&p->blocked_on, NOT_BLOCKED);
        p->rows = malloc(it->most_rows * sizeof *p->rows); /* cut_step has as much: no overflow */
        if (p->rows == NULL)
            return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a producer's batch of %llu rows",
                            (unsigned long long)it->most_rows);
    }
    for (; it->started < it->producers; it->started++) {
        int failed = dti_thread_start(&it->producer[it->started].thread, 0, producer_main, &it->producer[it->started]);
        if (failed != 0)
            return DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, failed, "the thread of producer %u of %u was refused", it->started,
                                  it->producers);
        dti_load_add(DTI_NO_PU);
    }
    return DITTO_OK;
}

static ditto_status start(struct ditto_iterator *it)
{
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(it->team, &frame, DTI_CALLER_PINNED));
    const struct dti_mask *host = dti_context_saved_mask();
    it->has_affinity = host != NULL;
    if (host != NULL)
        it->affinity = *host;
    ditto_status status = dti_team_run(it->team, place_queue, it, DITTO_FOREVER);
    dti_team_renew(it->team); /* placing uses no collective: nothing else has to be renewed */
    if (status == DITTO_OK)
        status = start_producers(it);
    if (status == DITTO_OK)
        dti_dependent_add(it->team, &it->dependent);
    dti_cross_leave(it->team, &frame);
    return status;
}

/* Everything but the queues' memory, which belongs to arenas. */
static void release(struct ditto_iterator *it)
{
    dti_sequencer_free(&it->sequencer);
    for (uint32_t i = 0; it->producer != NULL && i < it->producers; i++)
        free(it->producer[i].rows);
    dti_waitroom_free(&it->room);
    free(it->producer);
    free(it->consumer);
    dti_dataset_release(it->dataset);
    free(it);
}

static void free_queues(struct ditto_iterator *it)
{
    for (uint32_t i = 0; i < it->team->n; i++)
        dti_arena_free_remote(it->team->replica[i].arena, it->consumer[i].memory);
}

static void orphan(struct dti_dependent *dependent, bool threads_live)
{
    struct ditto_iterator *it = (struct ditto_iterator *)dependent;
    if (threads_live)
        stop_producers(it);
    else
        forget_producers(it);
    it->team = NULL;
}

static struct ditto_iterator *allocate(struct dti_team *team, ditto_dataset *dataset, uint32_t producers)
{
    struct ditto_iterator *it = aligned_alloc(DTI_LINE_PAIR, sizeof *it);
    if (it == NULL)
        return NULL;
    memset(it, 0, sizeof *it);
    atomic_fetch_add_explicit(&dataset->references, 1, memory_order_relaxed); /* the caller has one: dataset.c */
    it->dataset = dataset;
    it->dependent.orphan = orphan;
    it->team = team;
    it->producers = producers;
    atomic_init(&it->closing, 0);
    it->producer = aligned_alloc(DTI_LINE_PAIR, producers * sizeof *it->producer);
    it->consumer = aligned_alloc(DTI_LINE_PAIR, team->n * sizeof *it->consumer);
    if (it->producer != NULL)
        memset(it->producer, 0, producers * sizeof *it->producer);
    if (it->consumer != NULL)
        memset(it->consumer, 0, team->n * sizeof *it->consumer);
    if (it->producer == NULL || it->consumer == NULL || !dti_waitroom_init(&it->room, producers)) {
        release(it);
        return NULL;
    }
    return it;
}

ditto_status dti_iterator_create(struct dti_team *team, ditto_dataset *dataset, const ditto_input_options *o,
                                 ditto_iterator **out)
{
    uint64_t global = o->global_batch != 0 ? o->global_batch : dataset->batch_rows;
    struct ditto_iterator *it = allocate(team, dataset, o->producers != 0 ? o->producers : DEFAULT_PRODUCERS);
    if (it == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for an iterator");
    it->slots = (o->buffer != 0 ? o->buffer : DEFAULT_BUFFER) + 1; /* and the one in use */
    it->global_rows = global;
    it->most_rows = dti_rebatch_full(global, team->n, 0);
    ditto_status status = lay_out(it);
    if (status == DITTO_OK)
        status = dti_sequencer_init(&it->sequencer, dataset, team->n, global, o->partial == DITTO_PARTIAL_EVEN,
                                    &(struct dti_pass){ o->pass, &it->closing });
    if (status == DITTO_OK)
        status = start(it);
    if (status != DITTO_OK) {
        ditto_error kept = *dti_error_get();
        stop_producers(it);
        free_queues(it);
        release(it);
        dti_error_set(&kept);
        return status;
    }
    *out = it;
    return DITTO_OK;
}

void dti_iterator_destroy(ditto_iterator *it)
{
    struct dti_team *team = it->team;
    if (team != NULL) {
        bool forked = dti_team_forked(team); /* then there are no threads, and the lock may be held by one of them */
        if (forked)
            forget_producers(it);
        else
            stop_producers(it);
        bool taken = !forked && dti_team_take_turn(team);
        dti_dependent_remove(team, &it->dependent);
        dti_team_give_turn(team, taken);
        if (!team->poisoned) /* a stuck replica may still read its batch */
            free_queues(it);
    }
    release(it);
}
