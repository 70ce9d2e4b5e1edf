/* src/input/distribute/iterator.h - the internal state of an iterator: pipelines, their producers, and the
 * consumers. */
#ifndef DTI_ITERATOR_H
#define DTI_ITERATOR_H

#include <ditto/distribute.h>

#include "base/waiting/wait.h"
#include "input/distribute/order.h"
#include "input/distribute/pipelines.h"
#include "input/distribute/progress_of_hosts.h"
#include "input/distribute/sequencer.h"
#include "replicas/machine/mask.h"
#include "replicas/team/dependent.h"
#include "replicas/team/team.h"

struct dti_producer {
    struct ditto_iterator *iterator;
    struct dti_pipeline *pipeline;
    struct dti_producer_group *group;
    pthread_t thread;
    uint32_t index;  /* in the iterator, and in its wait queue */
    uint32_t number; /* in the team, for traces */
    struct dti_reader reader;
    uint32_t long_waits; /* the number of long waits in a row */
    struct dti_mask affinity;
    bool has_affinity;

    /* Statistics. Only the producer writes them. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t waiting_ns, filling_ns;
};

/* A sequencer, its producers, and the replicas of this host that get its batches, from first_replica on. A
 * pipeline that serves replicas of several hosts exists on each of them. */
struct dti_pipeline {
    ditto_dataset *dataset; /* the pipeline holds a reference */
    uint32_t first_replica;
    struct dti_sequencer sequencer;
    struct dti_order order;
    alignas(DTI_CACHE_LINE_PAIR) struct dti_producer_group *group; /* [groups] */
    uint32_t groups;
};

struct dti_consumer {
    alignas(DTI_CACHE_LINE_PAIR) struct dti_ring ring;
    void *memory; /* of the ring */
    struct dti_pipeline *pipeline;
    struct dti_producer_group *group;

    /* The status that every further call returns. DITTO_OK if more batches may come. */
    ditto_status end_status;

    /* If end_status is an error, the pipeline that has the error. */
    struct dti_pipeline *failed_pipeline;

    /* The replica has waited for its next batch, perhaps in a call that timed out. */
    bool waited;

    /* The trace has the next batch already, because a call that found it has failed. */
    bool traced;

    /* A position. All pipelines have handed over the batches below it, and no error comes before one of
     * these. */
    uint64_t safe;

    /* A position. The replica waits until all pipelines have handed over the batches below it. */
    uint64_t limit;

    /* Statistics. Only the replica writes them, or the thread that posts its jobs
     * (dti_iterator_take_peeked). */
    _Atomic uint64_t wait_ns, taken, rows, bytes, ready;
};

struct ditto_iterator {
    struct dti_dependent dependent; /* first */
    struct dti_team *team;          /* see dti_iterator_team */
    uint32_t num_replicas;          /* of this host */
    uint32_t all_replicas;          /* of all hosts */
    uint64_t number;                /* equal on all hosts, and of no other iterator. 0 on one host */
    struct dti_input_plan plan;
    struct dti_pipeline_summary *summary; /* [plan.pipelines] */
    struct dti_pipeline *pipeline;        /* [plan.local_pipelines] */
    struct dti_pipelines_progress progress;

    /* Producers wait here, each with its index. A producer waits for a replica, whose id it gives, or for the
     * progress of other pipelines (DTI_AWAITS_PROGRESS). */
    struct dti_wait_queue wait_queue;
    _Atomic uint32_t closing;

    /* enum dti_use: how the batches are taken. */
    _Atomic uint32_t use;
    uint32_t producers, started;   /* numbers of producers, and of those that have a thread */
    struct dti_producer *producer; /* [producers] */
    struct dti_consumer *consumer; /* [dti_team_num_replicas(team)] */
    struct dti_ring **ring;        /* [dti_team_num_replicas(team)], the rings of the consumers */
    size_t offset[DITTO_MAX_COMPONENTS], payload_bytes;
    uint64_t begin_ns;
};
#define DTI_AWAITS_PROGRESS(iterator) ((iterator)->num_replicas)

/* Returns the number of a pipeline among those of all hosts. */
static inline uint32_t dti_pipeline_number(const struct dti_pipeline *pipeline)
{
    return pipeline->sequencer.o.cut.pipeline;
}

/* Returns one of the datasets. Rows of all datasets have the same components. */
static inline const ditto_dataset *dti_iterator_dataset(const ditto_iterator *iterator)
{
    return iterator->pipeline[0].dataset;
}

/* -- producers.c -- */

/* Makes the producer groups and the producers, without threads. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_producers_prepare(struct ditto_iterator *iterator);

/* Starts the threads. Returns DITTO_ERR_SYSTEM. */
ditto_status dti_producers_start(struct ditto_iterator *iterator);
void dti_producers_stop(struct ditto_iterator *iterator);

/* Called in a child process after fork. The threads do not exist there, so they are removed from the counts
 * of load. */
void dti_producers_forget(struct ditto_iterator *iterator);
void dti_producers_free(struct ditto_iterator *iterator);

/* -- saved_state.c -- */

/* dti_state_open checks the hash and the head of plan.state, and sets plan.state_replicas and plan.pass,
 * which is the pass that continues. dti_state_read then reads the position of one pipeline. It is called for
 * each pipeline of this host, in their order. */
ditto_status dti_state_open(struct ditto_iterator *iterator, struct dti_bytes_reader *from);
ditto_status dti_state_read(struct ditto_iterator *iterator, struct dti_pipeline *pipeline,
                            struct dti_bytes_reader *from);

#endif
