/* src/input/distribute/saved_state.c - saves an iterator's position as bytes and restores it.
 *
 * Sequencers are ahead of replicas, so the queues contain rows that are chosen and not taken. The position is
 * that of the replicas. The state therefore includes the rows of steps that not all replicas have taken. When
 * an iterator continues, these rows come first, and then the cursor continues from its own position.
 *
 * The state consists of these parts:
 *     - magic, fingerprint of the datasets, numbers of pipelines, of rows of a global batch, and of replicas,
 *       pass, how pipelines share the dataset
 *     - for each pipeline: its next step, and whether this is the next step of all its replicas; if not, the
 *       next step of each replica; then the number of rows, the rows, and the position of the cursor
 *     - a hash of all bytes before it */
#include "base/numbers/checksum.h"
#include "base/types/types.h"
#include "input/distribute/iterator.h"
#include "input/input.h"
#include "replicas/team/context.h"

#include <stdlib.h>
#include <string.h>

static const char magic[8] = "DITTOIT2";

/* Computes one number from the fingerprints of all datasets. */
static ditto_status fingerprint_all(const struct ditto_iterator *it, uint64_t *out)
{
    *out = 0;
    for (uint32_t w = 0; w < it->plan.pipelines; w++) {
        uint64_t of_pipeline;
        DTI_TRY(dti_dataset_fingerprint(it->pipeline[w].dataset, &of_pipeline));
        *out = *out * 31 + of_pipeline;
    }
    return DITTO_OK;
}

/* -- writing -- */

/* Returns the step that the pipeline's replica j takes next. */
static uint64_t step_of(const struct ditto_iterator *it, const struct dti_pipeline *p, uint32_t j)
{
    return p->sequencer.begins[j] + it->consumer[p->first_replica + j].ring.next;
}

/* Writes the next step of each replica, and stores the first of them. Over several hosts, a state holds for
 * the replicas of all hosts, so they must be at the same step. */
static ditto_status write_steps(const struct ditto_iterator *it, const struct dti_pipeline *p,
                                struct dti_bytes *to, uint64_t *first)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t j = 0; j < it->plan.served_each; j++) {
        uint64_t step = step_of(it, p, j);
        least = step < least ? step : least;
        most = step > most ? step : most;
    }
    if (least != most && it->num_replicas != it->all_replicas)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "replicas have taken %llu to %llu batches: over several hosts a state needs equally many",
            (unsigned long long)least, (unsigned long long)most);
    dti_bytes_put_u64(to, least);
    dti_bytes_put_u64(to, least == most);
    for (uint32_t j = 0; least != most && j < it->plan.served_each; j++)
        dti_bytes_put_u64(to, step_of(it, p, j));
    *first = least;
    return DITTO_OK;
}

/* The caller holds the sequencer's lock. */
static ditto_status write_pipeline(const struct ditto_iterator *it, struct dti_pipeline *p,
                                   struct dti_bytes *to)
{
    struct dti_sequencer *s = &p->sequencer;
    const ditto_dataset *d = p->dataset;
    if (s->end_status < 0 || s->source_status < 0) {
        dti_error_set(s->end_status < 0 ? &s->error : &s->source_error);
        return dti_own(dti_error_get()->status);
    }
    uint64_t first, rows = s->short_rows + s->before_count - s->before_given;
    DTI_TRY(write_steps(it, p, to, &first));
    for (uint64_t t = first; t < s->cut; t++)
        rows += s->step[t % (s->o.slots + 1)].count;
    dti_bytes_put_u64(to, rows);
    for (uint64_t t = first; t < s->cut; t++) {
        const struct dti_input_step *step = &s->step[t % (s->o.slots + 1)];
        for (uint64_t i = 0; i < step->count; i++)
            DTI_TRY(dti_row_save(d, dti_rows_from(step->rows, i).word, to));
    }
    /* Replicas of this pipeline may have taken steps from `cut` on with empty batches, because other
     * pipelines had more steps. These rows were not delivered, so they are saved. */
    for (size_t i = 0; i < s->short_rows; i++)
        DTI_TRY(dti_row_save(d, dti_rows_from(s->step[s->cut % (s->o.slots + 1)].rows, i).word, to));
    for (size_t i = s->before_given; i < s->before_count; i++)
        DTI_TRY(dti_row_save(d, dti_rows_from(s->before, i).word, to));
    return dti_cursor_save(s->cursor, to);
}

ditto_status dti_iterator_save(ditto_iterator *it, struct dti_bytes *to)
{
    uint64_t fingerprint;
    DTI_TRY(fingerprint_all(it, &fingerprint));
    dti_bytes_put(to, magic, sizeof magic);
    dti_bytes_put(to, &fingerprint, sizeof fingerprint);
    dti_bytes_put_u64(to, it->plan.pipelines);
    dti_bytes_put_u64(to, it->plan.global);
    dti_bytes_put_u64(to, it->all_replicas);
    dti_bytes_put_u64(to, it->plan.pass);
    dti_bytes_put_u64(to, (uint64_t)it->plan.sharing);
    for (uint32_t w = 0; w < it->plan.pipelines; w++) {
        struct dti_pipeline *p = &it->pipeline[w];
        struct dti_frame frame;
        pthread_mutex_lock(&p->sequencer.lock);
        /* In this context a generator's save function cannot call back into the iterator. */
        struct dti_fenv saved = dti_frame_enter_input(&frame, it->team);
        ditto_status status = write_pipeline(it, p, to);
        dti_frame_leave(&frame, saved);
        pthread_mutex_unlock(&p->sequencer.lock);
        DTI_TRY(status);
    }
    uint64_t hash = dti_hash_bytes(DTI_HASH_SEED, to->data, to->length);
    dti_bytes_put(to, &hash, sizeof hash);
    return dti_bytes_status(to);
}

/* -- reading -- */

static ditto_status refuse(const char *what, uint64_t saved, uint64_t now)
{
    return DTI_FAIL(DITTO_ERR_INVALID, "the state was saved with %llu %s, but now there are %llu",
                    (unsigned long long)saved, what, (unsigned long long)now);
}

/* Versions of the library without DTI_SHARING_ROWS wrote DTI_SHARING_NONE for DITTO_SHARD_DATA. In them each
 * pipeline read every W-th row. Such a state does not match the rows that the pipelines deliver now. */
static ditto_status refuse_sharing(enum dti_sharing saved, enum dti_sharing now)
{
    static const char *const names[] = {
        [DTI_SHARING_NONE] = "each read all rows of a dataset",
        [DTI_SHARING_FILES] = "divide the files",
        [DTI_SHARING_ROWS] = "divide the rows of each global batch",
    };
    bool old = saved == DTI_SHARING_NONE && now == DTI_SHARING_ROWS;
    return DTI_FAIL(DITTO_ERR_INVALID, "the state was saved when pipelines %s%s, but now they %s",
                    names[saved],
                    old ? " (or divided them row by row, as DITTO_SHARD_DATA did in an earlier version)" : "",
                    names[now]);
}

ditto_status dti_state_open(struct ditto_iterator *it, struct dti_bytes_reader *from)
{
    uint64_t hash, saved_fingerprint, fingerprint;
    char found[sizeof magic];
    size_t bytes = it->plan.state_bytes;
    if (bytes < sizeof magic + 2 * sizeof hash || memcmp(it->plan.state, magic, sizeof magic) != 0)
        return DTI_FAIL(DITTO_ERR_CORRUPT, "the %zu bytes of state are not a state of an iterator", bytes);
    const char *data = it->plan.state;
    memcpy(&hash, data + bytes - sizeof hash, sizeof hash);
    *from = (struct dti_bytes_reader){ data, data + bytes - sizeof hash,
                                       dti_hash_bytes(DTI_HASH_SEED, data, bytes - sizeof hash) != hash };
    DTI_TRY(dti_bytes_reader_status(from));
    DTI_TRY(fingerprint_all(it, &fingerprint));
    dti_bytes_get(from, found, sizeof found);
    dti_bytes_get(from, &saved_fingerprint, sizeof saved_fingerprint);
    uint64_t pipelines = dti_bytes_get_u64(from), global = dti_bytes_get_u64(from);
    it->plan.state_replicas = (uint32_t)dti_bytes_get_at_most(from, UINT32_MAX);
    uint64_t pass = dti_bytes_get_u64(from);
    enum dti_sharing sharing = (enum dti_sharing)dti_bytes_get_at_most(from, DTI_SHARING_ROWS);
    DTI_TRY(dti_bytes_reader_status(from));
    if (pipelines != it->plan.pipelines)
        return refuse("pipelines", pipelines, it->plan.pipelines);
    if (sharing != it->plan.sharing)
        return refuse_sharing(sharing, it->plan.sharing);
    if (saved_fingerprint != fingerprint)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the state belongs to another dataset, or to one made with other arguments");
    if (global != it->plan.global)
        return refuse("rows in a global batch", global, it->plan.global);
    if (it->plan.pass != 0 && it->plan.pass != pass)
        return DTI_FAIL(DITTO_ERR_INVALID, "pass is %llu, but the state continues pass %llu",
                        (unsigned long long)it->plan.pass, (unsigned long long)pass);
    it->plan.pass = pass;
    return DITTO_OK;
}

static ditto_status read_steps(struct ditto_iterator *it, struct dti_pipeline *p,
                               struct dti_bytes_reader *from)
{
    struct dti_sequencer *s = &p->sequencer;
    s->first = s->cut = s->kept = dti_bytes_get_u64(from);
    bool same_step = dti_bytes_get_at_most(from, 1) != 0;
    if (!same_step && (it->plan.state_replicas != it->all_replicas || it->num_replicas != it->all_replicas))
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the state was saved when replicas had taken different numbers of batches: it can be "
                        "continued with %u replicas, not with %u",
                        it->plan.state_replicas, it->all_replicas);
    for (uint32_t j = 0; j < it->plan.served_each; j++)
        s->begins[j] = same_step ? s->first : dti_bytes_get_u64(from);
    for (uint32_t j = 0; j < it->plan.served_each; j++)
        from->failed |= s->begins[j] < s->first || s->begins[j] - s->first > (uint64_t)UINT32_MAX;
    if (p != it->pipeline && it->plan.state_replicas != it->all_replicas &&
        s->first != it->pipeline[0].sequencer.first)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the state was saved when pipelines were at different steps: it can be continued "
                        "with %u replicas, not with %u",
                        it->plan.state_replicas, it->all_replicas);
    return dti_bytes_reader_status(from);
}

ditto_status dti_state_read(struct ditto_iterator *it, struct dti_pipeline *p, struct dti_bytes_reader *from)
{
    struct dti_sequencer *s = &p->sequencer;
    size_t bytes;
    DTI_TRY(read_steps(it, p, from));
    atomic_init(&it->progress.pipeline_progress[s->o.cut.pipeline].steps, s->first);
    /* Each row takes at least one byte. */
    uint64_t rows = dti_bytes_get_at_most(from, (uint64_t)(from->end - from->at));
    if (!dti_multiply(rows + 1, s->before.stride * sizeof(uint64_t), &bytes))
        from->failed = true;
    DTI_TRY(dti_bytes_reader_status(from));
    uint64_t *words = malloc(bytes);
    if (words == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %llu rows of a state", (unsigned long long)rows);
    free(s->before.word);
    s->before.word = words;
    for (; s->before_count < rows; s->before_count++)
        DTI_TRY(dti_row_load(p->dataset, dti_rows_from(s->before, s->before_count).word, from));
    return dti_cursor_restore(s->cursor, from);
}
