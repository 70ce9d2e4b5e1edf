/* src/input/input.h - the door of input. */
#ifndef DTI_INPUT_H
#define DTI_INPUT_H

#include <ditto/distribute.h>

#include "input/bytes.h"
#include "replicas/replicas.h"

struct dti_input_plan;

/* -- Cross context -- */
/* `dataset`: [pipelines], the iterator takes references of its own. */
ditto_status dti_iterator_create(struct dti_team *team, ditto_dataset **dataset,
                                 const struct dti_input_plan *plan, ditto_iterator **out);
ditto_status dti_iterator_destroy(ditto_iterator *iterator); /* BUSY: a call on it has not returned */
/* After dti_cross_enter, no run going on. */
ditto_status dti_iterator_save(ditto_iterator *iterator, struct dti_bytes *to);

/* -- Any thread -- */
enum dti_use { DTI_USE_NONE, DTI_USE_REPLICAS, DTI_USE_CROSS };
/* CONTEXT: its batches are taken in the other way. */
ditto_status dti_iterator_claim(ditto_iterator *iterator, enum dti_use use);
struct dti_team *dti_iterator_team(const ditto_iterator *iterator); /* NULL: the strategy is destroyed */
/* First in a public function that takes an iterator in cross-replica context. CONTEXT: its strategy was destroyed. Else neither is
 * destroyed before the function returns. */
#define DTI_HOLD_ITERATOR(iterator)        \
    DTI_LEAVES_GATE(held_iterator_, NULL); \
    DTI_TRY(dti_iterator_hold((iterator), &held_iterator_))
ditto_status dti_iterator_hold(const ditto_iterator *iterator, struct dti_gate **held);
/* The same for a look at what stays when the strategy is destroyed, until the iterator is. */
void dti_iterator_hold_alone(const ditto_iterator *iterator, struct dti_gate **held);
void dti_iterator_spec(const ditto_iterator *iterator, uint32_t *components, ditto_tensor *out);
uint64_t dti_iterator_full_rows(const ditto_iterator *iterator, uint32_t replica,
                                uint64_t step); /* if it lacks none */
void dti_iterator_stats(const ditto_iterator *iterator, uint32_t replica, ditto_input_stats *out);
/* The iterators of a team, one after the other: NULL begins and ends. Under the team's turn. */
const ditto_iterator *dti_iterator_after(const struct dti_team *team, const ditto_iterator *before);

/* -- The replica's own thread -- */
ditto_status dti_iterator_next(struct dti_replica *self, ditto_iterator *iterator, ditto_batch *out);
/* Any thread outside of all runs and scopes, of an iterator of the default strategy, whose only replica such a thread is. Several
 * threads take batches in turn. */
ditto_status dti_iterator_next_outside(ditto_iterator *iterator, ditto_batch *out);
bool dti_iterator_has_ended(const ditto_iterator *iterator,
                            uint32_t replica); /* the end, or an error that comes again and again */
void dti_iterator_describe_empty(const ditto_iterator *iterator, ditto_batch *out); /* a batch of no rows */
uint64_t dti_iterator_wait_ns(const ditto_iterator *iterator, uint32_t replica);

#endif
