/* src/input/distribute/sequencer.h - chooses the rows of a pipeline, cuts them into steps, and gives out
 * tickets for batches.
 *
 * Everything that decides which rows a replica gets, and in which order, runs here, under one lock for each
 * pipeline. Values of rows are read and parsed outside of the lock, except those that a cursor needs in order
 * to choose rows (filters), or can read only once (generators, compressed files). A ticket is given out only
 * when it is known which rows it has, and only when its slot in the replica's ring is free. Neither the
 * number of producers nor their speed can therefore change the result. A step is kept at least until every
 * replica has released its batch, so a position can be saved at any time.
 *
 * The steps of a pipeline are in a ring that has one entry more than a replica's queue has slots. Before step
 * t is cut, every replica has released its batch of step t - (slots + 1), so no thread uses the rows of that
 * step any longer. Rows are written under the lock before the ticket is given out, and they do not change
 * until the replica has released the slot. Producers therefore read them without the lock.
 *
 * Several pipelines end together. A step exists if any of them has rows for it, or with `all_or_none` if all
 * of them can fill it. Each pipeline publishes its progress, which all pipelines read. Over several hosts,
 * a host has the pipelines that serve its replicas, and hears of the progress of the others.
 *
 * Pipelines that share one order of rows (DTI_CUT_SHARED) each choose all rows of every step, and keep them
 * until the step has been taken, although they deliver only the rows of their own replicas. Each pipeline
 * therefore knows by itself which steps exist and how many rows they have. A saved position holds whole
 * steps. If all replicas have taken equally many, any number of replicas can continue from it. */
#ifndef DTI_SEQUENCER_H
#define DTI_SEQUENCER_H

#include "base/waiting/lock.h"
#include "input/dataset.h"
#include "input/distribute/rebatch.h"
#include "input/distribute/ring.h"
#include "input/distribute/rows_of_hosts.h"

/* All batches of an iterator are in one order: by steps, and within a step by replicas. The batch of replica
 * r of N in step t has the position t * N + r. An error of the input has a point in this order. A batch at
 * position p has two points. 2p is in front of the batch, if it is the first one for which the pipeline
 * cannot choose rows. 2p + 1 is inside the batch, if it has a row that cannot be read. DTI_NO_POINT means
 * that there is no error. */
#define DTI_NO_POINT UINT64_MAX

/* The progress that a pipeline publishes for the others. */
struct dti_pipeline_progress {
    /* The step that it cuts next. It has cut all steps of the pass before it. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t steps;

    /* The pipeline will cut no more steps. It is written after `steps` and error_point. */
    _Atomic bool ended;

    /* The point of its first error that is known so far, or DTI_NO_POINT. It never increases. */
    _Atomic uint64_t error_point;

    /* The number of steps that other hosts were told last, and whether they were told of the end
     * (progress_of_hosts.h). */
    _Atomic uint64_t told;
    _Atomic bool told_end;
};

struct dti_progress_of_hosts;

struct dti_pipelines_progress {
    /* The pipelines that decide which steps exist: all, or those of this host if they know it alone. */
    uint32_t first, count;

    /* Tells other hosts, and asks them. NULL if no pipeline of another host decides. */
    struct dti_progress_of_hosts *hosts;

    /* If true, a step exists only if all pipelines have cut it. If false, one pipeline is enough. */
    bool all_or_none;

    /* If true, an error of one pipeline ends the others at its point. If false, they continue with their own
     * rows, and then get the error instead of the end. */
    bool end_at_error;

    struct dti_pipeline_progress *pipeline_progress; /* [pipelines of all hosts] */
};

#define DTI_NOT_BLOCKED         UINT32_MAX
#define DTI_BLOCKED_BY_PROGRESS (UINT32_MAX - 1)

/* The replicas of a pipeline on one or more NUMA nodes. The same producers make their batches, in the order
 * of steps. */
struct dti_producer_group {
    uint32_t *replica; /* [replicas], the pipeline's own numbers, ascending */
    uint32_t replicas;

    /* The step of the next ticket, and its replica's index in `replica`. Protected by the sequencer's
     * lock. */
    uint64_t step;
    uint32_t next;

    /* Why the next ticket cannot be given out: the pipeline's replica whose ring is full, or a constant
     * above. It is written under the lock, and consumers read it. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t blocked_on;

    /* The ticket whose slot must become free in that ring. With DTI_BLOCKED_BY_PROGRESS it is the step that
     * the others must reach. The store of blocked_on publishes it. */
    _Atomic uint64_t blocked_ticket;
};

struct dti_input_step {
    /* The number of rows. With DTI_CUT_SHARED these are the rows of all pipelines together. */
    uint64_t count;
    struct dti_rows rows;
};

struct dti_sequencer_options {
    const ditto_dataset *dataset; /* owned by the caller */
    struct dti_pass pass;
    struct dti_cut cut;
    uint32_t slots;         /* of each ring */
    struct dti_ring **ring; /* [served] */
    struct dti_pipelines_progress *progress;

    /* Of the replicas of the pipeline, those of this host: `served` from `first_served` on. The pipeline
     * chooses the rows of all its replicas, and gives out tickets for these. Arrays below have an entry for
     * each. */
    uint32_t first_served, served;

    /* Another host chooses the same rows, and both are compared (rows_of_hosts.h). */
    bool is_compared;
};

struct dti_sequencer {
    /* Protects the members below that are not constant. A producer has it while functions of the program
     * choose rows, which may take long. */
    struct dti_lock lock;

    struct dti_sequencer_options o; /* constant */
    struct dti_cursor *cursor;
    struct dti_input_step *step; /* [slots + 1], step t at t mod (slots + 1) */
    uint64_t first;              /* the first step, which a restore sets */
    uint64_t cut;                /* the next step to cut */
    uint64_t kept;               /* the first step whose rows are still kept */

    /* The number of rows in the entry of step `cut`, if they were too few for a step. No replica gets them,
     * but a saved position includes them. */
    size_t short_rows;

    /* [before_count] rows that come before those of the cursor. They were in the saved position, or were read
     * ahead to find out whether there are more rows. The first before_given of them have been put into
     * steps. */
    struct dti_rows before;
    size_t before_count, before_given;
    uint64_t *begins; /* [served] the step of the first ticket */
    bool *ended;      /* [served] true if the last ticket was given out */

    /* [served] The number of tickets that were given out. Consumers read it. */
    _Atomic uint64_t *given;

    /* The last status of the cursor, and its error. The status is DITTO_OK if it may have more rows. */
    ditto_status source_status;
    ditto_error source_error;

    /* DITTO_OK while further steps may be cut. Then DITTO_END_OF_INPUT, or the first error in the order of
     * rows, also if a row of a step that was cut before cannot be read. */
    ditto_status end_status;

    /* The point of end_status. It holds for all positions from there on. */
    uint64_t end_point;
    ditto_error error;

    struct dti_digest_of_rows digest;

    /* The time spent in cutting steps. It is written under the lock, and statistics read it. */
    _Atomic uint64_t choosing_ns;
};

/* A ticket for the batch of `count` rows that `replica` gets in `step`. If `status` is not DITTO_OK, it is
 * for the end of the replica's queue. */
struct dti_ticket {
    uint32_t replica; /* the pipeline's own number */
    uint64_t number, step, count;
    struct dti_rows rows;
    ditto_status status;

    /* True unless the step is known to exist and the pipeline has cut it. The ticket is then for a batch of
     * no rows, for the end, or for an error. */
    bool by_others;
};

/* *s must be all zero. Returns DITTO_ERR_NO_MEMORY and the errors of opening the dataset. */
ditto_status dti_sequencer_init(struct dti_sequencer *s, const struct dti_sequencer_options *options);
void dti_sequencer_free(struct dti_sequencer *s); /* a struct of zeros is allowed */

/* -- Any producer -- */
enum dti_ticket_result {
    DTI_TICKET_TAKEN,

    /* The slot of ticket->number in the ring of ticket->replica must become free first. */
    DTI_TICKET_BLOCKED,

    /* The other pipelines must reach step ticket->step first. */
    DTI_TICKET_UNKNOWN,

    /* The last ticket of each replica of the producer group has been given out. */
    DTI_TICKET_FINISHED,
};
/* Gives out the next ticket of the producer group. Unless the result is DTI_TICKET_TAKEN, only the members of
 * *ticket that the result mentions are valid. */
enum dti_ticket_result dti_sequencer_take(struct dti_sequencer *s, struct dti_producer_group *group,
                                          struct dti_ticket *ticket);

/* Returns true if it is known whether the step exists. */
bool dti_progress_is_known(const struct dti_pipelines_progress *progress, uint32_t pipeline, uint64_t step);

/* Called when reading the rows of a ticket has failed. The error is the calling thread's record. The queue of
 * the ticket's replica ends with this ticket, and no replica of the pipeline gets a later batch. If this is
 * the pipeline's first error in the order of rows, it has been published in the progress when the function
 * returns. Returns the status for the end of the queue. */
ditto_status dti_sequencer_fail(struct dti_sequencer *s, const struct dti_ticket *ticket);

/* Returns the position of the batch that the pipeline's own replica `replica` gets in `step`. */
uint64_t dti_sequencer_position(const struct dti_sequencer *s, uint64_t step, uint32_t replica);

/* -- A consumer that has found an error -- */

/* Copies the error with which the pipeline has ended. */
void dti_sequencer_error(struct dti_sequencer *s, ditto_error *out);

#endif
