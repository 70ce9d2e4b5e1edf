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
    s->digest.after = calloc((size_t)s->o.slots + 2, sizeof *s->digest.after);
    if (s->digest.after == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the digests of %u steps", s->o.slots + 2);
    pthread_mutex_init(&s->digest.lock, NULL);
    return DITTO_OK;
}

void dti_digest_of_rows_free(struct dti_sequencer *s)
{
    if (s->digest.after == NULL)
        return;
    free(s->digest.after);
    dti_bytes_free(&s->digest.row);
    pthread_mutex_destroy(&s->digest.lock);
}

void dti_digest_of_rows_begin(struct dti_sequencer *s)
{
    s->digest.cut = s->first;
}

void dti_digest_of_rows_add(struct dti_sequencer *s, const struct dti_input_step *step)
{
    struct dti_digest_of_rows *d = &s->digest;
    bool saved = true;
    d->last = dti_hash_word(d->last, step->count);
    for (size_t i = 0; i < step->count && saved; i++) {
        d->row.length = 0;
        saved = dti_row_save(s->o.dataset, dti_rows_from(step->rows, i).word, &d->row) == DITTO_OK &&
                d->row.refused == 0;
        d->last = dti_hash_words(d->last, d->row.data, d->row.length);
    }
    pthread_mutex_lock(&d->lock);
    *digest_after(s, s->cut) = d->last;
    d->cut = s->cut + 1;
    d->has_failed |= !saved || s->source_status < 0; /* the step may be short because of an error */
    pthread_mutex_unlock(&d->lock);
}

void dti_digest_of_rows_end(struct dti_sequencer *s)
{
    struct dti_digest_of_rows *d = &s->digest;
    pthread_mutex_lock(&d->lock);
    d->has_ended = s->end_status == DITTO_END_OF_INPUT;
    d->has_failed |= s->end_status < 0;
    pthread_mutex_unlock(&d->lock);
}

/* -- what a host tells -- */

/* Sets *out to what is told of a pipeline. Returns false if there is nothing to tell. */
static bool tell(const struct ditto_iterator *it, struct dti_pipeline *p, struct dti_chosen_rows *out)
{
    const struct dti_sequencer *s = &p->sequencer;
    struct dti_digest_of_rows *d = &p->sequencer.digest;
    bool all_ended = true; /* says that the input of all replicas of the pipeline on this host has ended */
    if (d->after == NULL)
        return false;
    uint64_t steps = UINT64_MAX; /* the number that all of these replicas have taken */
    for (uint32_t j = 0; j < s->o.served; j++) {
        const struct dti_consumer *c = &it->consumer[p->first_replica + j];
        uint64_t taken = s->begins[j] + c->ring.next;
        steps = taken < steps ? taken : steps;
        all_ended &= c->end_status == DITTO_END_OF_INPUT;
    }
    pthread_mutex_lock(&d->lock);
    steps = steps < d->cut ? steps : d->cut; /* other pipelines may have steps without rows of this one */
    bool has_ended = all_ended && d->has_ended && steps == d->cut;
    /* Input without rows ends before its first step. */
    bool tells = (steps > s->first || has_ended) && !d->has_failed && 2 * steps + has_ended != d->reported;
    if (tells)
        *out = (struct dti_chosen_rows){ .iterator = it->number,
                                         .first = s->first,
                                         .steps = steps,
                                         .digest = steps > s->first ? *digest_after(s, steps - 1) : 0,
                                         .pipeline = s->o.cut.arrangement == DTI_CUT_SHARED
                                                         ? 0
                                                         : s->o.cut.pipeline,
                                         .has_ended = has_ended };
    pthread_mutex_unlock(&d->lock);
    return tells;
}

/* Tells of the pipelines of an iterator. Returns the new count. */
static uint32_t tell_all(const ditto_iterator *it, struct dti_chosen_rows *out, uint32_t count, uint32_t most)
{
    for (uint32_t i = 0; i < it->plan.local_pipelines && count < most; i++)
        count += tell(it, &it->pipeline[i], &out[count]);
    return count;
}

uint32_t dti_input_chosen_rows(const struct dti_team *team, uint64_t *last, struct dti_chosen_rows *out,
                               uint32_t most)
{
    uint32_t count = 0;
    uint64_t first = *last;
    /* Iterators are listed from the newest on, and their numbers ascend with time. */
    for (const ditto_iterator *it = NULL; (it = dti_iterator_after(team, it)) != NULL;)
        if (it->number <= first)
            count = tell_all(it, out, count, most);
    for (const ditto_iterator *it = NULL; (it = dti_iterator_after(team, it)) != NULL;)
        if (it->number > first)
            count = tell_all(it, out, count, most);
    *last = count == most ? out[most - 1].iterator : 0;
    return count;
}

void dti_input_rows_reported(const struct dti_team *team, uint64_t iterator)
{
    for (const ditto_iterator *it = NULL; (it = dti_iterator_after(team, it)) != NULL;)
        for (uint32_t i = 0; i < it->plan.local_pipelines && it->number == iterator; i++) {
            struct dti_chosen_rows now;
            if (tell(it, &it->pipeline[i], &now))
                it->pipeline[i].sequencer.digest.reported = 2 * now.steps + now.has_ended;
        }
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

bool dti_chosen_rows_differ(const struct dti_chosen_rows *a, uint32_t a_count,
                            const struct dti_chosen_rows *b, uint32_t b_count, struct dti_different_rows *out)
{
    for (uint32_t i = 0; i < a_count; i++) {
        const struct dti_chosen_rows *other = find(b, b_count, &a[i]);
        if (other == NULL || !differ(&a[i], other))
            continue;
        uint64_t least = a[i].steps < other->steps ? a[i].steps : other->steps;
        *out = (struct dti_different_rows){ a[i].iterator, least + (a[i].steps != other->steps) };
        return true;
    }
    return false;
}

void dti_input_describe_dataset(const struct dti_team *team, uint64_t iterator, struct dti_text *text)
{
    for (const ditto_iterator *it = NULL; (it = dti_iterator_after(team, it)) != NULL;) {
        if (it->number == iterator) {
            /* The text names the kinds of the dataset, from its last transformation to its source. */
            const ditto_dataset *dataset = dti_iterator_dataset(it);
            dti_text_add(text, "the dataset (");
            for (; dataset->inputs > 0; dataset = dataset->input[0])
                dti_text_add(text, "%s of ", dataset->kind->name);
            dti_text_add(text, "%s", dataset->kind->name);
            dti_text_add(text, ", pass %llu)", (unsigned long long)it->plan.pass);
            return;
        }
    }
    dti_text_add(text, "a dataset whose iterator this host has destroyed");
}
