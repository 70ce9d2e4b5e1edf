/* src/input/input.h - the internal header of input: the functions that other modules may call. */
#ifndef DTI_INPUT_H
#define DTI_INPUT_H

#include <ditto/distribute.h>

#include "base/errors/status.h"
#include "base/types/bytes.h"
#include "base/waiting/gate.h"
#include "replicas/team/replica.h"

struct dti_input_plan;
struct dti_text;
struct dti_pipeline_summary;

/* -- Cross context -- */

/* Makes an iterator from dataset[plan->local_pipelines]. The iterator takes its own references to the
 * datasets, and frees the summaries, also if it fails. */
ditto_status dti_iterator_create(struct dti_team *team, ditto_dataset **dataset,
                                 const struct dti_input_plan *plan, struct dti_pipeline_summary *summary,
                                 ditto_iterator **out);

/* Returns DITTO_ERR_BUSY if a call that uses the iterator has not returned. */
ditto_status dti_iterator_destroy(ditto_iterator *iterator);

/* Called after dti_cross_enter, when no run is active. */
ditto_status dti_iterator_save(ditto_iterator *iterator, struct dti_bytes *to);

/* Takes the batch that dti_iterator_next has found for the replica, unless the replica's input has ended.
 * Called after dti_cross_enter, when no run is active. */
void dti_iterator_take_peeked(ditto_iterator *iterator, uint32_t replica);

/* Called when the input of all replicas has ended. Returns how, and makes an error the thread's record. Of
 * several errors it is the first one in the order of all batches. Called after dti_cross_enter, when no run
 * is active. */
ditto_status dti_iterator_end(ditto_iterator *iterator);

/* Returns true if the input of a replica of this host has failed, and all pipelines end at such an error.
 * Called after dti_cross_enter, when no run is active. */
bool dti_iterator_has_failed_in_order(const ditto_iterator *iterator);

/* What a host tells the others about the rows that it has chosen (distribute/rows_of_hosts.h). */
struct dti_chosen_rows {
    uint64_t iterator; /* dti_iterator_number */
    uint64_t first;    /* the first step, which a restore sets */
    uint64_t steps;    /* all replicas of this host have taken the steps before this one */
    uint64_t digest;   /* of the rows of these steps */
    uint32_t pipeline;
    uint32_t has_ended; /* no step follows */
};

/* Two hosts have chosen different rows. */
struct dti_different_rows {
    uint64_t iterator;
    uint64_t steps; /* the rows of these first steps are not all equal */
};

/* Stores in `out` what this host tells, at most `most`. Returns the number. *last is 0 before the first call.
 * If there is no room for all, it becomes the iterator that was stored last, with which the next call begins.
 * Called at the end of a run over several hosts. */
uint32_t dti_input_chosen_rows(const struct dti_team *team, uint64_t *last, struct dti_chosen_rows *out,
                               uint32_t most);

/* Returns true if two hosts contradict each other, and sets *out to the first difference. */
bool dti_chosen_rows_differ(const struct dti_chosen_rows *a, uint32_t a_count,
                            const struct dti_chosen_rows *b, uint32_t b_count,
                            struct dti_different_rows *out);

/* Notes that a difference in the rows of an iterator was reported. Nothing is told of it before its replicas
 * have taken more steps. */
void dti_input_rows_reported(const struct dti_team *team, uint64_t iterator);

/* Writes which dataset an iterator has. */
void dti_input_describe_dataset(const struct dti_team *team, uint64_t iterator, struct dti_text *text);

/* -- Any thread -- */
enum dti_use { DTI_USE_NONE, DTI_USE_REPLICAS, DTI_USE_CROSS };

/* Records how batches of the iterator are taken: by replicas, or in cross-replica context. Returns
 * DITTO_ERR_CONTEXT if they are already taken in the other way. */
ditto_status dti_iterator_claim(ditto_iterator *iterator, enum dti_use use);

/* Returns a number that is equal on all hosts, and that no other iterator has. 0 on one host. */
uint64_t dti_iterator_number(const ditto_iterator *iterator);

/* Returns NULL if the strategy was destroyed, unless it was poisoned. */
struct dti_team *dti_iterator_team(const ditto_iterator *iterator);

/* Follows DTI_ENTER in a public function that takes an iterator. Neither the iterator nor its strategy can be
 * destroyed before the function returns. Returns DITTO_ERR_CONTEXT if the strategy was destroyed before. */
#define DTI_HOLD_ITERATOR(iterator)        \
    DTI_LEAVES_GATE(held_iterator_, NULL); \
    DTI_TRY(dti_iterator_hold((iterator), &held_iterator_))
ditto_status dti_iterator_hold(const ditto_iterator *iterator, struct dti_gate **held);

/* The same for functions that only read data that is kept after the strategy is destroyed, until the iterator
 * is destroyed. Does not fail. */
void dti_iterator_hold_alone(const ditto_iterator *iterator, struct dti_gate **held);
void dti_iterator_spec(const ditto_iterator *iterator, ditto_element_spec *out);

/* Returns the number of rows that the replica gets in the step if the step has all its rows. */
uint64_t dti_iterator_full_rows(const ditto_iterator *iterator, uint32_t replica, uint64_t step);
void dti_iterator_stats(const ditto_iterator *iterator, uint32_t replica, ditto_iterator_counters *out);

/* Returns the iterator of the team that follows `before`, or the first if `before` is NULL. Returns NULL
 * after the last. The caller holds the team's turn. */
const ditto_iterator *dti_iterator_after(const struct dti_team *team, const ditto_iterator *before);

/* -- The replica's own thread -- */

/* Waits for the replica's next batch. Unless it `takes` the batch, the batch stays the next one until
 * dti_iterator_take_peeked is called. */
ditto_status dti_iterator_next(struct dti_replica *self, ditto_iterator *iterator, ditto_batch *out,
                               bool takes);

/* Takes a batch from an iterator of the default strategy. Any thread outside of all runs and scopes may call
 * it, because each such thread is replica 0 of the default strategy. Several threads take turns. */
ditto_status dti_iterator_next_outside(ditto_iterator *iterator, ditto_batch *out);

/* Returns true if nothing follows the batch that the replica has taken last: each later call returns the end,
 * or the same error. */
bool dti_iterator_has_ended(const ditto_iterator *iterator, uint32_t replica);

/* Sets *out to a batch of no rows. */
void dti_iterator_describe_empty(const ditto_iterator *iterator, ditto_batch *out);

#endif
