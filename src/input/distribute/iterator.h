/* src/input/distribute/iterator.h - an iterator from inside: pipelines, their producers, and the consumers. */
#ifndef DTI_ITERATOR_H
#define DTI_ITERATOR_H

#include "input/distribute/order.h"
#include "input/distribute/sequencer.h"
#include "input/input.h"

struct dti_producer {
    struct ditto_iterator *iterator;
    struct dti_pipeline *pipeline;
    struct dti_producer_group *crew;
    pthread_t thread;
    uint32_t index;  /* among all of the iterator: its seat */
    uint32_t number; /* among all of the team: for traces */
    struct dti_reader reader;
    uint32_t long_waits; /* waits in a row that were long */
    struct dti_mask affinity;
    bool has_affinity;
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t waiting_ns, filling_ns; /* written by itself */
};

/* One order of rows, and the replicas that share it: first_replica .. first_replica + R - 1. */
struct dti_pipeline {
    ditto_dataset *dataset; /* referenced */
    uint32_t first_replica;
    struct dti_sequencer sequencer;
    struct dti_order order;
    alignas(DTI_CACHE_LINE_PAIR) struct dti_producer_group *crew; /* [crews] */
    uint32_t crews;
};

struct dti_consumer {
    alignas(DTI_CACHE_LINE_PAIR) struct dti_ring ring;
    void *memory; /* of the ring */
    struct dti_pipeline *pipeline;
    struct dti_producer_group *crew;
    ditto_status last; /* behind the batch that was taken last; OK: more may come */
    /* The pipeline whose error `last` is, if it is one. */
    struct dti_pipeline *failed;

    /* All pipelines have handed over the batches of the places below it, and there is no error among them. */
    uint64_t safe;

    /* The replica waits until all pipelines have handed over the batches of the places below it. */
    uint64_t limit;

    /* Its own to write. */
    _Atomic uint64_t wait_ns, taken, rows, bytes, ready;
};

/* How several pipelines share one dataset. The numbers stand in saved states. */
enum dti_sharing {
    DTI_SHARING_NONE = 0,  /* every pipeline reads all of its dataset; also where there is one pipeline */
    DTI_SHARING_FILES = 1, /* every pipeline reads files of its own */
    DTI_SHARING_ROWS = 2,  /* all choose the same rows, and each delivers those of its replicas */
};

/* What an iterator is made for: the caller's options, with nothing left open. */
struct dti_input_plan {
    uint64_t global, pass, max_bytes;
    uint32_t pipelines, replicas_each, slots, producers; /* of each pipeline */
    enum dti_sharing sharing;
    bool even, each, is_static, host_memory;
    const void *state;
    size_t state_bytes;
    uint32_t state_replicas; /* that it was saved with */
};

struct ditto_iterator {
    struct dti_dependent dependent; /* first */
    struct dti_team *team;          /* NULL: the strategy is destroyed */
    struct dti_input_plan plan;
    struct dti_pipeline *pipeline; /* [plan.pipelines] */
    struct dti_pipelines_progress progress;
    struct dti_wait_queue wait_queue; /* seats: producers; they await replicas' ids, or DTI_AWAITS_PROGRESS */
    _Atomic uint32_t closing;
    _Atomic uint32_t use; /* enum dti_use: how its batches are taken */
    uint32_t producers, started;
    struct dti_producer *producer; /* [producers] */
    struct dti_consumer *consumer; /* [team->n] */
    struct dti_ring **ring;        /* [team->n], the consumers' */
    size_t offset[DITTO_MAX_COMPONENTS], payload_bytes;
    uint64_t begin_ns;
};
#define DTI_AWAITS_PROGRESS(iterator) ((iterator)->team->n)

static inline const ditto_dataset *dti_iterator_dataset(
    const ditto_iterator *iterator) /* whose rows are as all */
{
    return iterator->pipeline[0].dataset;
}

/* -- producers.c -- */
ditto_status dti_producers_prepare(
    struct ditto_iterator *iterator); /* crews and producers; no thread yet. NO_MEMORY */
ditto_status dti_producers_start(struct ditto_iterator *iterator); /* SYSTEM */
void dti_producers_stop(struct ditto_iterator *iterator);
void dti_producers_forget(
    struct ditto_iterator *iterator); /* in a child after fork: they are not there, but still counted */
void dti_producers_free(struct ditto_iterator *iterator);
uint32_t dti_producers_default(const struct dti_team *team, uint32_t pipelines);

/* -- saved_state.c -- */
/* Checks the head of plan.state: which pass goes on is known then; and, of each sequencer in turn, reads where it goes on. */
ditto_status dti_state_open(struct ditto_iterator *iterator, struct dti_bytes_reader *from);
ditto_status dti_state_read(struct ditto_iterator *iterator, struct dti_pipeline *pipeline,
                            struct dti_bytes_reader *from);

/* From a caller's options to what an iterator is made for. */

/* One dataset for all pipelines: makes the plan, and a dataset [plan->pipelines] for each, whose references are the caller's. */
ditto_status dti_input_plan_distribute(const struct dti_team *team, ditto_dataset *dataset,
                                       const ditto_input_options *options, struct dti_input_plan *plan,
                                       ditto_dataset ***datasets);
/* The same, of datasets that a function makes. */
ditto_status dti_input_plan_from_function(const struct dti_team *team, ditto_dataset_fn function, void *user,
                                          const ditto_input_options *options, struct dti_input_plan *plan,
                                          ditto_dataset ***datasets);

#endif
