/* src/input/sequencer.h - the one place where order is made: chooses rows, cuts steps, gives out tickets.
 *
 * Shuffle, repeat and batch run here, in one logical thread (under a lock: it is short, and producers do the long work
 * outside). A ticket is given out only after its batch has been cut, so neither the number of producers nor their speed
 * can change which rows a replica gets, or when. */
#ifndef DTI_SEQUENCER_H
#define DTI_SEQUENCER_H

#include "input/input.h"

struct dti_sequencer {
    pthread_mutex_t lock;         /* guards all below, but what is constant */
    const ditto_dataset *dataset; /* constant, with the next three */
    uint32_t replicas;
    uint64_t global;
    bool even;
    struct dti_cursor *cursor;
    struct dti_row *rows; /* [global] of the step being given out */
    uint64_t row_count, step, given_rows;
    uint32_t next_replica;
    uint64_t *ticket;  /* [replicas] the next one of each queue */
    bool *ended;       /* [replicas] its last ticket, with the end or the error, was given out */
    uint64_t end_step; /* where the error is: the first in the order of rows is the one that is told */
    uint32_t end_replica;
    ditto_status end; /* OK while rows may come; then END_OF_INPUT or an error, the first one */
    ditto_error error;
};

/* One ticket: the batch of `rows` rows that `replica` gets in `step`, or the end of its queue (status not OK). */
struct dti_ticket {
    uint32_t replica;
    uint64_t number, step, rows;
    ditto_status status;
};

ditto_status dti_sequencer_init(struct dti_sequencer *s, const ditto_dataset *dataset, uint32_t replicas,
                                uint64_t global, bool even, const struct dti_pass *pass);
void dti_sequencer_free(struct dti_sequencer *s); /* zeroed is allowed */

/* -- Any producer -- */
/* The next ticket in order; its rows are copied to rows[0 .. ticket->rows). False: all queues have their end. */
bool dti_sequencer_take(struct dti_sequencer *s, struct dti_ticket *ticket, struct dti_row *rows);
/* Reading failed for a ticket, with the calling thread's error record: the queue ends there, the others at their next
 * ticket. Returns the status that the queue shall end with. */
ditto_status dti_sequencer_fail(struct dti_sequencer *s, const struct dti_ticket *ticket);
/* -- A consumer that has seen an end -- */
void dti_sequencer_error(struct dti_sequencer *s, ditto_error *out);

#endif
