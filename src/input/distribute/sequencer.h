/* src/input/distribute/sequencer.h - the one place where order is made: chooses rows, cuts steps, gives out
 * tickets.
 *
 * Everything that decides which rows a replica gets, and when, runs here, in one logical thread per pipeline
 * (under a lock; the long work is done outside). A ticket is given out only after its step has been cut, and
 * only when its place in the replica's ring is free, so neither the number of producers nor their speed can
 * change anything; and a step stays known until every replica has taken it, so a position can be saved at any
 * time.
 *
 * Steps of a pipeline are kept in a ring of one more than a replica's queue has slots: before step t is cut,
 * every replica has taken step t - (slots + 1), so its rows are nobody's any more. Rows are written under the
 * lock before the ticket is given out, and not touched until the replica has released the slot: producers
 * read them without the lock.
 *
 * Several pipelines end together: a step exists if any of them has rows for it. What each has cut stands on a
 * board that all read.
 *
 * Pipelines that share one order of rows (DTI_CUT_SHARED) each choose all rows of every step and keep them
 * until the step has been taken, though they deliver only those of their own replicas. So each knows by
 * itself which steps there are and how many rows they have, and a saved position holds whole steps, which any
 * number of replicas can go on with. */
#ifndef DTI_SEQUENCER_H
#define DTI_SEQUENCER_H

#include "input/dataset.h"
#include "input/distribute/rebatch.h"
#include "input/queue/ring.h"

#include <pthread.h>

/* All batches of an iterator are in one order, that of steps and, within a step, of replicas: the batch that
 * replica r of N gets in step t has the place t * N + r. An error of the input is at a point of this order:
 * 2 * place is in front of a batch, the first one for which the pipeline can't choose rows, and 2 * place + 1
 * is in the batch, which has a row that can't be read. */
#define DTI_NO_POINT UINT64_MAX

/* What a pipeline tells the others. */
struct dti_pipeline_progress {
    /* The number of steps with rows that it has cut so far. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t steps;

    /* Whether it will cut no more. Written behind `steps` and `failed`. */
    _Atomic bool ended;

    /* The point of its first error that is known so far, or DTI_NO_POINT. It only ever goes down. */
    _Atomic uint64_t failed;
};

struct dti_pipelines_progress {
    uint32_t pipelines;

    /* A step exists if all pipelines have cut it. Otherwise it exists if any has. */
    bool all_or_none;

    /* An error of one pipeline ends the others at its point. Otherwise they go on with rows of their own. */
    bool end_at_error;

    struct dti_pipeline_progress *pipeline_progress; /* [pipelines] */
};

#define DTI_NOT_BLOCKED         UINT32_MAX
#define DTI_BLOCKED_BY_PROGRESS (UINT32_MAX - 1)

/* Replicas of one NUMA node, whose batches the same producers make, in the order of steps. */
struct dti_producer_group {
    uint32_t *replica; /* [replicas], the pipeline's own numbers, ascending */
    uint32_t replicas;
    /* Under the sequencer's lock. */
    uint64_t step; /* of the ticket that comes next */
    uint32_t next; /* index of its replica */
    /* Why that ticket can't be given out; written under the lock, read by consumers. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t
        blocked_on;                  /* the pipeline's replica whose ring is full, or as above */
    _Atomic uint64_t blocked_ticket; /* that must be reached there; published by blocked_on */
};

struct dti_input_step {
    uint64_t count; /* rows; with DTI_CUT_SHARED of all pipelines together */
    struct dti_rows rows;
};

struct dti_sequencer_options {
    const ditto_dataset *dataset; /* stays the caller's */
    struct dti_pass pass;
    struct dti_cut cut;
    uint32_t slots;         /* of each ring */
    struct dti_ring **ring; /* [replicas] */
    struct dti_pipelines_progress *progress;
};

struct dti_sequencer {
    pthread_mutex_t lock;           /* guards all below, but for what is constant */
    struct dti_sequencer_options o; /* constant */
    struct dti_cursor *cursor;
    struct dti_input_step *step; /* [slots + 1], step t at t mod (slots + 1) */
    uint64_t first;              /* step that this iterator began with */
    uint64_t cut;                /* steps up to here have been cut */
    uint64_t kept;               /* from here on they are still known */
    size_t
        short_of; /* rows in the place of step `cut` that were too few to be one: nobody gets them, but a saved position has them */
    struct dti_rows
        before; /* [before_count] rows that come before those of the cursor: chosen, but not taken, when the position was saved;
                               or looked at, to know whether there are more */
    size_t before_count, before_given;
    uint64_t *begins;        /* [replicas] step of its first ticket */
    bool *ended;             /* [replicas] its last ticket was given out */
    _Atomic uint64_t *given; /* [replicas] tickets given out: read by consumers */
    ditto_status source;     /* what the cursor came to, with its error; OK: it may have more */
    ditto_error source_error;
    ditto_status
        end; /* OK while tickets may have rows; then END_OF_INPUT or the first error in the order of rows */
    uint64_t end_point; /* where; it holds for all places behind */
    ditto_error error;
    _Atomic uint64_t choosing_ns; /* spent in cutting steps; written under the lock, read for reports */
};

/* One ticket: the batch of `count` rows that `replica` gets in `step`, or the end of its queue (status not OK). */
struct dti_ticket {
    uint32_t replica; /* the pipeline's own number */
    uint64_t number, step, count;
    struct dti_rows rows;
    ditto_status status;
    bool by_others; /* its pipeline has not cut the step: it is a batch of no rows, or the end */
};

/* Zeroed before. Errors of opening the dataset; NO_MEMORY. */
ditto_status dti_sequencer_init(struct dti_sequencer *s, const struct dti_sequencer_options *options);
void dti_sequencer_free(struct dti_sequencer *s); /* zeroed is allowed */

/* -- Any producer -- */
enum dti_ticket_result {
    DTI_TICKET_TAKEN,
    DTI_TICKET_BLOCKED,  /* ticket->number must be reached in ticket->replica's ring */
    DTI_TICKET_UNKNOWN,  /* the other pipelines have to come to step ticket->step */
    DTI_TICKET_FINISHED, /* all queues of the crew have their end */
};
enum dti_ticket_result dti_sequencer_take(struct dti_sequencer *s, struct dti_producer_group *crew,
                                          struct dti_ticket *ticket);
/* Does a step exist? True when that is known. */
bool dti_progress_is_known(const struct dti_pipelines_progress *progress, uint32_t pipeline, uint64_t step);
/* Reading failed for a ticket, with the calling thread's error record: the queue ends there, the others behind it. Returns the status
 * that the queue shall end with. The board shows the error when it returns. */
ditto_status dti_sequencer_fail(struct dti_sequencer *s, const struct dti_ticket *ticket);
/* The place of a step of one of the pipeline's own replicas. */
uint64_t dti_sequencer_position(const struct dti_sequencer *s, uint64_t step, uint32_t replica);
/* -- A consumer -- */
void dti_sequencer_error(struct dti_sequencer *s, ditto_error *out); /* that has seen an end */

#endif
