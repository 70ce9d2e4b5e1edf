/* src/input/distribute/sequencer.c - cuts steps and gives out tickets. */
#include "input/distribute/sequencer.h"
#include "base/errors/status.h"
#include "base/types/types.h"
#include "base/waiting/futex.h"
#include "input/distribute/progress_of_hosts.h"

#include <stdlib.h>
#include <string.h>

/* -- making -- */

ditto_status dti_sequencer_init(struct dti_sequencer *s, const struct dti_sequencer_options *options)
{
    uint32_t n = options->served;
    s->o = *options;
    s->begins = calloc(n, sizeof *s->begins);
    s->ended = calloc(n, sizeof *s->ended);
    s->given = calloc(n, sizeof *s->given);
    s->before.stride = options->dataset->row_words;
    s->before.word = calloc(s->before.stride, sizeof(uint64_t));
    if (s->begins == NULL || s->ended == NULL || s->given == NULL || s->before.word == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to distribute rows to %u replicas", n);
    uint64_t most_rows = dti_cut_most_of_step(&s->o.cut), *words = NULL;
    size_t stride = s->before.stride, capacity = (size_t)s->o.slots + 1, step_bytes, all_bytes;
    if (dti_multiply(most_rows, stride * sizeof *words, &step_bytes) &&
        dti_multiply(step_bytes, capacity, &all_bytes)) {
        s->step = calloc(capacity, sizeof *s->step);
        words = s->step != NULL ? malloc(all_bytes) : NULL;
    }
    if (words == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for steps of %llu rows",
                        (unsigned long long)most_rows);
    for (size_t i = 0; i < capacity; i++)
        s->step[i].rows = (struct dti_rows){ words + i * (step_bytes / sizeof *words), stride };
    if (s->o.is_compared)
        DTI_TRY(dti_digest_of_rows_init(s));
    return dti_cursor_open(options->dataset, &s->o.pass, &s->cursor);
}

static struct dti_input_step *step_at(struct dti_sequencer *s, uint64_t step)
{
    return &s->step[step % (s->o.slots + 1)];
}

void dti_sequencer_free(struct dti_sequencer *s)
{
    if (s->o.dataset == NULL)
        return;
    for (; s->kept < s->cut; s->kept++)
        dti_rows_drop(s->o.dataset, step_at(s, s->kept)->rows, step_at(s, s->kept)->count);
    if (s->short_rows > 0)
        dti_rows_drop(s->o.dataset, step_at(s, s->cut)->rows, s->short_rows);
    dti_rows_drop(s->o.dataset, dti_rows_from(s->before, s->before_given), s->before_count - s->before_given);
    dti_cursor_close(s->cursor);
    if (s->step != NULL)
        free(s->step[0].rows.word);
    free(s->step);
    free(s->before.word);
    free(s->begins);
    free(s->ended);
    free((void *)s->given);
    dti_digest_of_rows_free(s);
}

/* -- cutting -- */

uint64_t dti_sequencer_position(const struct dti_sequencer *s, uint64_t step, uint32_t replica)
{
    const struct dti_cut *cut = &s->o.cut;
    return (step * cut->pipelines + cut->pipeline) * cut->replicas + s->o.first_served + replica;
}

static void end_with(struct dti_sequencer *s, ditto_status status, uint64_t point, const ditto_error *error)
{
    s->end_status = status;
    s->end_point = point;
    if (status < 0)
        s->error = *error;
    if (s->o.is_compared)
        dti_digest_of_rows_end(s);
}

/* Asks the cursor for rows. After an end or an error it keeps the status and does not ask again. */
static size_t ask(struct dti_sequencer *s, struct dti_rows rows, size_t want)
{
    size_t got = 0;
    if (s->source_status != DITTO_OK)
        return 0;
    s->source_status = dti_cursor_next(s->cursor, rows, want, &got);
    if (s->source_status < 0)
        s->source_error = *dti_error_get();
    return got;
}

static void publish(struct dti_sequencer *s)
{
    struct dti_pipeline_progress *own = &s->o.progress->pipeline_progress[s->o.cut.pipeline];
    if (s->end_status < 0) /* release: pairs with first_error in order.c */
        atomic_store_explicit(&own->error_point, s->end_point, memory_order_release);
    /* release: both pair with existence_of */
    atomic_store_explicit(&own->steps, s->cut, memory_order_release);
    if (s->end_status != DITTO_OK)
        atomic_store_explicit(&own->ended, true, memory_order_release);
    /* Of the hosts that have the pipeline, the one with its first replica tells the others. */
    if (s->o.progress->hosts != NULL && s->o.first_served == 0)
        dti_progress_tell(s->o.progress->hosts, s->o.cut.pipeline);
}

/* Cuts step s->cut if it exists because of this pipeline. Otherwise sets the end. */
static void cut_step(struct dti_sequencer *s)
{
    struct dti_input_step *step = step_at(s, s->cut);
    uint64_t want = dti_cut_step(&s->o.cut, s->cut), begin = dti_now_ns();
    if (s->cut - s->kept == (uint64_t)s->o.slots + 1) {
        dti_rows_drop(s->o.dataset, step->rows, step->count); /* all replicas have released it */
        s->kept++;
    }
    /* The rows in `before` come first, and then those of the cursor. */
    for (step->count = 0; step->count < want && s->before_given < s->before_count; step->count++)
        memcpy(dti_rows_from(step->rows, step->count).word, dti_rows_from(s->before, s->before_given++).word,
               s->before.stride * sizeof(uint64_t));
    if (step->count < want)
        step->count += ask(s, dti_rows_from(step->rows, step->count), want - step->count);
    /* If this pipeline gets no rows in the step, which happens only if G < N, it makes the step exist only if
     * there are more rows. */
    bool asks = want == 0 && s->o.cut.shorts != DTI_SHORT_NEVER;
    if (asks && s->before_given == s->before_count) {
        s->before_given = 0;
        s->before_count = ask(s, s->before, 1);
    }
    bool more = asks && s->before_given < s->before_count;
    if (dti_cut_exists(&s->o.cut, want, step->count, s->source_status < 0, more)) {
        if (s->o.is_compared)
            dti_digest_of_rows_add(s, step);
        s->cut++;
    } else {
        s->short_rows = step->count;
        step->count = 0;
        end_with(s, s->source_status, 2 * (dti_sequencer_position(s, s->cut, 0) - s->o.first_served),
                 &s->source_error);
    }
    atomic_fetch_add_explicit(&s->choosing_ns, dti_now_ns() - begin, memory_order_relaxed); /* statistics */
    publish(s);
}

/* -- tickets -- */

/* Returns whether a step exists, as far as the published progress tells. */
static enum dti_step_existence existence_of(const struct dti_pipelines_progress *progress, uint32_t pipeline,
                                            uint64_t step)
{
    uint32_t with = 0, without = 0;
    bool own = false;
    for (uint32_t w = progress->first; w < progress->first + progress->count; w++) {
        const struct dti_pipeline_progress *n = &progress->pipeline_progress[w];
        /* acquire: both loads pair with publish, or with take_over in progress_of_hosts.c. `ended` is loaded
         * before `steps`. */
        bool ended = atomic_load_explicit(&n->ended, memory_order_acquire);
        bool has = atomic_load_explicit(&n->steps, memory_order_acquire) > step;
        with += has;
        without += !has && ended;
        own |= has && w == pipeline;
    }
    return dti_cut_existence(progress->all_or_none, progress->count, with, without, own);
}

bool dti_progress_is_known(const struct dti_pipelines_progress *progress, uint32_t pipeline, uint64_t step)
{
    return existence_of(progress, pipeline, step) != DTI_STEP_EXISTENCE_UNKNOWN;
}

static void go_to_next_replica(struct dti_producer_group *group)
{
    if (++group->next == group->replicas) {
        group->next = 0;
        group->step++;
    }
}

/* Sets the ticket that the group gives out next. Returns false if there are no more. */
static bool find_next(const struct dti_sequencer *s, struct dti_producer_group *group,
                      struct dti_ticket *ticket)
{
    for (uint32_t ended = 0; ended < group->replicas; go_to_next_replica(group)) {
        uint32_t r = group->replica[group->next];
        /* After a restore some replicas may begin later than others. */
        if (!s->ended[r] && group->step >= s->begins[r]) {
            *ticket = (struct dti_ticket){ .replica = r,
                                           .step = group->step,
                                           .number = group->step - s->begins[r] };
            return true;
        }
        ended = s->ended[r] ? ended + 1 : 0;
    }
    return false;
}

/* Returns true if all replicas have released the step whose entry in s->step the next step gets. If not, sets
 * *late to a replica that has not, and *number to the ticket that must become free in its ring. */
static bool is_entry_free(const struct dti_sequencer *s, uint32_t *late, uint64_t *number)
{
    if (s->cut - s->kept < (uint64_t)s->o.slots + 1)
        return true;
    for (uint32_t r = 0; r < s->o.served; r++) {
        if (s->kept < s->begins[r])
            continue;
        *late = r;
        *number = s->kept - s->begins[r] + s->o.slots;
        if (!dti_ring_reached(s->o.ring[r], *number))
            return false;
    }
    return true;
}

/* Records why the group's next ticket cannot be given out. */
static enum dti_ticket_result block(struct dti_producer_group *group, struct dti_ticket *ticket, uint32_t on,
                                    uint64_t number)
{
    if (on != DTI_BLOCKED_BY_PROGRESS)
        ticket->replica = on;
    ticket->number = number;
    atomic_store_explicit(&group->blocked_ticket, number, memory_order_relaxed);
    /* release: pairs with stuck() and is_cut_off() in consumer.c */
    atomic_store_explicit(&group->blocked_on, on, memory_order_release);
    return on == DTI_BLOCKED_BY_PROGRESS ? DTI_TICKET_UNKNOWN : DTI_TICKET_BLOCKED;
}

static enum dti_ticket_result take(struct dti_sequencer *s, struct dti_producer_group *group,
                                   struct dti_ticket *ticket)
{
    uint32_t late;
    uint64_t number;
    if (!find_next(s, group, ticket))
        return DTI_TICKET_FINISHED;
    uint32_t r = ticket->replica;
    if (!dti_ring_is_free(s->o.ring[r], ticket->number))
        return block(group, ticket, r, ticket->number);
    while (s->end_status == DITTO_OK && ticket->step >= s->cut) {
        if (!is_entry_free(s, &late, &number))
            return block(group, ticket, late, number);
        cut_step(s);
    }
    enum dti_step_existence existence = existence_of(s->o.progress, s->o.cut.pipeline, ticket->step);
    ticket->by_others = existence != DTI_STEP_EXISTS_WITH_ROWS;
    if (s->end_status < 0 && 2 * dti_sequencer_position(s, ticket->step, r) >= s->end_point)
        ticket->status = s->end_status;
    else if (existence == DTI_STEP_EXISTENCE_UNKNOWN)
        return block(group, ticket, DTI_BLOCKED_BY_PROGRESS, ticket->step);
    else if (existence == DTI_STEP_EXISTS_NOT)
        ticket->status = DITTO_END_OF_INPUT;
    else if (existence == DTI_STEP_EXISTS_WITH_ROWS) {
        const struct dti_input_step *step = step_at(s, ticket->step);
        uint32_t j = s->o.first_served + r;
        uint64_t before = dti_cut_before(&s->o.cut, ticket->step, step->count, j);
        ticket->count = dti_cut_before(&s->o.cut, ticket->step, step->count, j + 1) - before;
        ticket->rows = dti_rows_from(step->rows, before);
    }
    s->ended[r] = ticket->status != DITTO_OK;
    /* release: both pair with starved() in consumer.c and the functions that it calls */
    atomic_store_explicit(&s->given[r], ticket->number + 1, memory_order_release);
    go_to_next_replica(group);
    atomic_store_explicit(&group->blocked_on, DTI_NOT_BLOCKED, memory_order_release);
    return DTI_TICKET_TAKEN;
}

enum dti_ticket_result dti_sequencer_take(struct dti_sequencer *s, struct dti_producer_group *group,
                                          struct dti_ticket *ticket)
{
    (void)dti_lock_take(&s->lock, DITTO_FOREVER);
    enum dti_ticket_result taken = take(s, group, ticket);
    dti_lock_release(&s->lock);
    return taken;
}

ditto_status dti_sequencer_fail(struct dti_sequencer *s, const struct dti_ticket *ticket)
{
    uint64_t point = 2 * dti_sequencer_position(s, ticket->step, ticket->replica) + 1;
    (void)dti_lock_take(&s->lock, DITTO_FOREVER);
    /* Of several ends and errors, the first one in the order of rows counts. */
    if (s->end_status == DITTO_OK || point < s->end_point)
        end_with(s, dti_error_get()->status, point, dti_error_get());
    s->ended[ticket->replica] = true;
    ditto_status status = s->end_status < 0 ? s->end_status : dti_error_get()->status;
    publish(s);
    dti_lock_release(&s->lock);
    return status;
}

void dti_sequencer_error(struct dti_sequencer *s, ditto_error *out)
{
    (void)dti_lock_take(&s->lock, DITTO_FOREVER);
    *out = s->error;
    dti_lock_release(&s->lock);
}
