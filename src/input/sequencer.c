/* src/input/sequencer.c - cutting steps and giving out tickets. */
#include "input/sequencer.h"
#include "input/rebatch.h"

#include <stdlib.h>
#include <string.h>

ditto_status dti_sequencer_init(struct dti_sequencer *s, const ditto_dataset *dataset, uint32_t replicas,
                                uint64_t global, bool even, const struct dti_pass *pass)
{
    size_t bytes;
    pthread_mutex_init(&s->lock, NULL);
    s->dataset = dataset;
    s->replicas = replicas;
    s->global = global;
    s->even = even;
    s->rows = dti_multiply(global, sizeof *s->rows, &bytes) ? malloc(bytes) : NULL;
    s->ticket = calloc(replicas, sizeof *s->ticket);
    s->ended = calloc(replicas, sizeof *s->ended);
    if (s->rows == NULL || s->ticket == NULL || s->ended == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to cut steps of %llu rows", (unsigned long long)global);
    return dataset->kind->open(dataset, pass, &s->cursor);
}

void dti_sequencer_free(struct dti_sequencer *s)
{
    if (s->cursor != NULL)
        s->dataset->kind->close(s->cursor);
    if (s->dataset != NULL)
        pthread_mutex_destroy(&s->lock);
    free(s->rows);
    free(s->ticket);
    free(s->ended);
}

/* Of several ends the first in the order of rows holds: an error before the end of input, and before a later error. */
static void end_with(struct dti_sequencer *s, ditto_status status, uint64_t step, uint32_t replica)
{
    if (s->end != DITTO_OK && (step > s->end_step || (step == s->end_step && replica >= s->end_replica)))
        return;
    s->end = status;
    s->end_step = step;
    s->end_replica = replica;
    if (status < 0)
        s->error = *dti_error_get();
}

/* Reads the rows of the next step. */
static void cut_step(struct dti_sequencer *s)
{
    ditto_status status = DITTO_OK;
    s->row_count = s->given_rows = 0;
    while (s->row_count < s->global && status == DITTO_OK) {
        status = s->dataset->kind->next(s->cursor, &s->rows[s->row_count]);
        s->row_count += status == DITTO_OK;
    }
    if (status < 0 || s->row_count == 0 || (s->dataset->drop_remainder && s->row_count < s->global))
        end_with(s, status, s->step, 0);
}

static bool take_end(struct dti_sequencer *s, struct dti_ticket *ticket)
{
    for (uint32_t r = 0; r < s->replicas; r++)
        if (!s->ended[r]) {
            s->ended[r] = true;
            *ticket = (struct dti_ticket){ r, s->ticket[r]++, s->step, 0, s->end };
            return true;
        }
    return false;
}

static void take_rows(struct dti_sequencer *s, struct dti_ticket *ticket, struct dti_row *rows)
{
    uint32_t r = s->next_replica;
    uint64_t count = dti_rebatch_share(s->row_count, s->global, s->replicas, r, s->even);
    *ticket = (struct dti_ticket){ r, s->ticket[r]++, s->step, count, DITTO_OK };
    memcpy(rows, s->rows + s->given_rows, count * sizeof *rows);
    s->given_rows += count;
    s->next_replica = r + 1 < s->replicas ? r + 1 : 0;
    s->step += s->next_replica == 0;
}

bool dti_sequencer_take(struct dti_sequencer *s, struct dti_ticket *ticket, struct dti_row *rows)
{
    bool taken = true;
    pthread_mutex_lock(&s->lock);
    if (s->end == DITTO_OK && s->next_replica == 0)
        cut_step(s);
    if (s->end != DITTO_OK)
        taken = take_end(s, ticket);
    else
        take_rows(s, ticket, rows);
    pthread_mutex_unlock(&s->lock);
    return taken;
}

ditto_status dti_sequencer_fail(struct dti_sequencer *s, const struct dti_ticket *ticket)
{
    pthread_mutex_lock(&s->lock);
    end_with(s, dti_error_get()->status, ticket->step, ticket->replica);
    s->ended[ticket->replica] = true;
    ditto_status status = s->end;
    pthread_mutex_unlock(&s->lock);
    return status;
}

void dti_sequencer_error(struct dti_sequencer *s, ditto_error *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->error;
    pthread_mutex_unlock(&s->lock);
}
