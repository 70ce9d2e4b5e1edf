/* src/input/distribute/rows_of_hosts.c - compares the rows that hosts have chosen. See rows_of_hosts.h. */
#include "input/distribute/rows_of_hosts.h"
#include "base/numbers/checksum.h"
#include "base/text/text.h"
#include "input/distribute/iterator.h"
#include "input/input.h"
#include "replicas/team/team.h"
#include "sync/hosts/cross.h"

#include <stdlib.h>
#include <string.h>

/* -- digests -- */

/* The replica that has taken the fewest steps has taken step t, and not step t + 1. So step t + slots + 1 may
 * be cut already, and no later one. */
static uint64_t *digest_after(const struct dti_sequencer *s, uint64_t step)
{
    return &s->digest.after[step % (s->o.slots + 2)];
}

ditto_status dti_digest_of_rows_init(struct dti_sequencer *s)
{
    if (!s->o.is_compared)
        return DITTO_OK;
    s->digest.after = calloc((size_t)s->o.slots + 2, sizeof *s->digest.after);
    return s->digest.after != NULL
               ? DITTO_OK
               : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the digests of %u steps", s->o.slots + 2);
}

void dti_digest_of_rows_free(struct dti_sequencer *s)
{
    free(s->digest.after);
    dti_bytes_free(&s->digest.row);
}

void dti_digest_of_rows_add(struct dti_sequencer *s, const struct dti_input_step *step)
{
    struct dti_digest_of_rows *d = &s->digest;
    if (d->after == NULL)
        return;
    d->last = dti_hash_word(d->last, step->count);
    for (size_t i = 0; i < step->count && !d->row.failed; i++) {
        d->row.length = 0;
        if (dti_row_save(s->o.dataset, dti_rows_from(step->rows, i).word, &d->row) != DITTO_OK)
            d->row.failed = true;
        d->last = dti_hash_words(d->last, d->row.data, d->row.length);
    }
    *digest_after(s, s->cut) = d->last;
}

/* -- what a host tells -- */

static bool is_shared_order(const struct dti_sequencer *s)
{
    return s->o.cut.arrangement == DTI_CUT_SHARED;
}

/* Returns the number of steps that all replicas of the pipeline on this host have taken. Sets *all_ended if
 * the input of all of them has ended. */
static uint64_t steps_of(const struct ditto_iterator *it, const struct dti_pipeline *p, bool *all_ended)
{
    const struct dti_sequencer *s = &p->sequencer;
    uint64_t least = UINT64_MAX;
    *all_ended = true;
    for (uint32_t j = 0; j < s->o.served; j++) {
        const struct dti_consumer *c = &it->consumer[p->first_replica + j];
        uint64_t steps = s->begins[j] + c->ring.next;
        least = steps < least ? steps : least;
        *all_ended &= c->end_status == DITTO_END_OF_INPUT;
    }
    return least;
}

/* Sets *out to what is told of a pipeline. Returns false if nothing is new. */
static bool tell(const struct ditto_iterator *it, struct dti_pipeline *p, struct dti_chosen_rows *out)
{
    struct dti_sequencer *s = &p->sequencer;
    bool all_ended, is_new;
    uint64_t steps = steps_of(it, p, &all_ended);
    pthread_mutex_lock(&s->lock);
    steps = steps < s->cut ? steps : s->cut; /* other pipelines may have steps without rows of this one */
    bool has_ended = all_ended && s->end_status == DITTO_END_OF_INPUT && steps == s->cut;
    is_new = steps > s->first && !s->digest.row.failed && 2 * steps + has_ended != s->digest.told;
    if (is_new) {
        s->digest.told = 2 * steps + has_ended;
        *out = (struct dti_chosen_rows){ .iterator = it->number,
                                         .first = s->first,
                                         .steps = steps,
                                         .digest = *digest_after(s, steps - 1),
                                         .pipeline = is_shared_order(s) ? 0 : s->o.cut.pipeline,
                                         .has_ended = has_ended };
    }
    pthread_mutex_unlock(&s->lock);
    return is_new;
}

uint32_t dti_input_chosen_rows(const struct dti_team *team, struct dti_chosen_rows *out, uint32_t most)
{
    uint32_t count = 0;
    for (const ditto_iterator *it = NULL; (it = dti_iterator_after(team, it)) != NULL;) {
        for (uint32_t i = 0; i < it->plan.local_pipelines && count < most; i++) {
            struct dti_pipeline *p = &it->pipeline[i];
            if (p->sequencer.digest.after != NULL && tell(it, p, &out[count]))
                count++;
            if (is_shared_order(&p->sequencer))
                break; /* the others have the same rows */
        }
    }
    return count;
}

/* -- comparing -- */

static const struct dti_chosen_rows *find(const struct dti_chosen_rows *rows, uint32_t count,
                                          const struct dti_chosen_rows *like)
{
    for (uint32_t i = 0; i < count; i++)
        if (rows[i].iterator == like->iterator && rows[i].pipeline == like->pipeline)
            return &rows[i];
    return NULL;
}

static bool differ(const struct dti_chosen_rows *a, const struct dti_chosen_rows *b)
{
    if (a->steps == b->steps)
        return a->first == b->first && a->digest != b->digest;
    return (a->steps < b->steps && a->has_ended) || (b->steps < a->steps && b->has_ended);
}

const struct dti_chosen_rows *dti_chosen_rows_differ(const struct dti_chosen_rows *a, uint32_t a_count,
                                                     const struct dti_chosen_rows *b, uint32_t b_count)
{
    for (uint32_t i = 0; i < a_count; i++) {
        const struct dti_chosen_rows *other = find(b, b_count, &a[i]);
        if (other != NULL && differ(&a[i], other))
            return &a[i];
    }
    return NULL;
}

/* Writes the kinds of a dataset, from its last transformation to its source. */
static void describe(const ditto_dataset *dataset, struct dti_text *text)
{
    for (; dataset->inputs > 0; dataset = dataset->input[0])
        dti_text_add(text, "%s of ", dataset->kind->name);
    dti_text_add(text, "%s", dataset->kind->name);
}

void dti_input_describe_chosen_rows(const struct dti_team *team, const struct dti_chosen_rows *rows,
                                    struct dti_text *text)
{
    for (const ditto_iterator *it = NULL; (it = dti_iterator_after(team, it)) != NULL;) {
        if (it->number == rows->iterator) {
            dti_text_add(text, "the dataset (");
            describe(dti_iterator_dataset(it), text);
            dti_text_add(text, ", pass %llu)", (unsigned long long)it->plan.pass);
            return;
        }
    }
    dti_text_add(text, "a dataset whose iterator this host has destroyed");
}
