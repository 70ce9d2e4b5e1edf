/* src/input/distribute/saved_state.c - saves an iterator's position as bytes and restores it.
 *
 * Sequencers are ahead of replicas, so the queues contain rows that are chosen and not taken. The position is
 * that of the replicas. The state therefore includes the rows of steps that not all replicas have taken. When
 * an iterator continues, these rows come first, and then the cursor continues from its own position.
 *
 * The state consists of these parts:
 *     - magic, fingerprint of the datasets, numbers of pipelines, of rows of a global batch, and of replicas,
 *       pass, how pipelines share the dataset
 *     - in version 3, for each pipeline the number of its bytes
 *     - for each pipeline: its next step, and whether this is the next step of all its replicas; if not, the
 *       next step of each replica; then the number of rows, the rows, and the position of the cursor
 *     - a hash of all bytes before it
 * States of one pipeline are of version 2. Those of several pipelines are of version 3, and were of version 2
 * in earlier builds.
 *
 * Over several hosts, each host gives its pipelines to all, so that all have the same state. Of a pipeline
 * that several hosts have, the first one's is taken. A host continues only the pipelines that it has. */
#include "base/numbers/checksum.h"
#include "base/types/types.h"
#include "input/distribute/iterator.h"
#include "input/input.h"
#include "replicas/team/context.h"
#include "sync/hosts/cross.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC_BYTES 8
static const char magic_2[MAGIC_BYTES + 1] = "DITTOIT2", magic_3[MAGIC_BYTES + 1] = "DITTOIT3";

/* Loops over steps must end, and products of steps and replicas must not exceed 64 bits, whatever a state
 * says. No run reaches this step: with a step each microsecond it would take nine years. */
#define MOST_STEP ((uint64_t)1 << 48)

/* How many steps a replica may be ahead of another one of its pipeline. Queues have at most 65537 batches,
 * and only replicas whose pipeline has ended, while others go on, can be further apart. Such a position is
 * not saved. */
#define MOST_AHEAD ((uint64_t)1 << 20)

/* Computes one number from the fingerprints of all datasets. */
static uint64_t fingerprint_all(const struct ditto_iterator *it)
{
    uint64_t all = 0;
    for (uint32_t w = 0; w < it->plan.pipelines; w++)
        all = all * 31 + it->summary[w].fingerprint;
    return all;
}

/* -- writing -- */

/* Returns the step that the pipeline's replica j takes next. */
static uint64_t step_of(const struct ditto_iterator *it, const struct dti_pipeline *p, uint32_t j)
{
    return p->sequencer.begins[j] + it->consumer[p->first_replica + j].ring.next;
}

static ditto_status fail_other_steps(uint64_t least, uint64_t most)
{
    return DTI_FAIL(
        DITTO_ERR_UNSUPPORTED,
        "replicas of one pipeline have taken %llu to %llu batches: if they are on several hosts, a "
        "state needs equally many",
        (unsigned long long)least, (unsigned long long)most);
}

/* Returns true if all replicas of the pipeline are on this host. */
static bool is_whole(const struct ditto_iterator *it, const struct dti_pipeline *p)
{
    return p->sequencer.o.served == it->plan.replicas_each;
}

/* Writes the next step of each replica, and stores the first of them. If other replicas of the pipeline are
 * on other hosts, all must be at the same step. */
static ditto_status write_steps(const struct ditto_iterator *it, const struct dti_pipeline *p,
                                struct dti_bytes *to, uint64_t *first)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t j = 0; j < p->sequencer.o.served; j++) {
        uint64_t step = step_of(it, p, j);
        least = step < least ? step : least;
        most = step > most ? step : most;
    }
    if (least != most && !is_whole(it, p))
        return fail_other_steps(least, most);
    if (most - least > MOST_AHEAD)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "replicas of one pipeline have taken %llu to %llu batches: a state needs numbers that "
            "differ by at most %llu",
            (unsigned long long)least, (unsigned long long)most, (unsigned long long)MOST_AHEAD);
    dti_bytes_put_u64(to, least);
    dti_bytes_put_u64(to, least == most);
    for (uint32_t j = 0; least != most && j < p->sequencer.o.served; j++)
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

/* Writes the pipelines of this host one behind the other, and the bytes of each to bytes[0], bytes[1], ... Of
 * a pipeline whose first replica is on another host, only the steps are written. */
static ditto_status write_own(struct ditto_iterator *it, struct dti_bytes *to, uint64_t *bytes)
{
    uint32_t timeout_ms = dti_team_options(it->team)->timeout_ms;
    for (uint32_t i = 0; i < it->plan.local_pipelines; i++) {
        struct dti_pipeline *p = &it->pipeline[i];
        struct dti_frame frame;
        size_t before = to->length;
        uint64_t first;
        if (!dti_lock_take(&p->sequencer.lock, timeout_ms))
            return DTI_FAIL(DITTO_ERR_TIMED_OUT,
                            "a producer has chosen rows for more than timeout_ms = %u ms, and the position "
                            "is not known meanwhile: look at the generators and functions of the dataset",
                            timeout_ms);
        /* In this context a generator's save function cannot call back into the iterator. */
        struct dti_fenv saved = dti_frame_enter_input(&frame, it->team);
        ditto_status status = p->sequencer.o.first_served != 0 ? write_steps(it, p, to, &first)
                                                               : write_pipeline(it, p, to);
        dti_frame_leave(&frame, saved);
        dti_lock_release(&p->sequencer.lock);
        DTI_TRY(status);
        bytes[i] = to->length - before;
    }
    return dti_bytes_status(to);
}

/* Returns the step at which a written pipeline begins. */
static uint64_t first_step(const char *data, size_t bytes)
{
    return dti_bytes_get_u64(&(struct dti_bytes_reader){ data, data + bytes, false });
}

/* -- the pipelines of all hosts. Each host gives the number of its first pipeline, how many it has, the bytes
 * of each, and then the pipelines. -- */

struct given_pipelines {
    uint64_t first, count;
    const char *lengths, *data;
};

/* Takes over the pipelines of one host that no host before it has given. A pipeline that several hosts have
 * must be at the same step on all of them. */
static ditto_status take_given(const struct given_pipelines *given, uint32_t *known, uint64_t *last_step,
                               struct dti_bytes *to, uint64_t *bytes)
{
    const char *data = given->data;
    for (uint64_t i = 0; i < given->count; i++) {
        uint64_t length, step, w = given->first + i;
        memcpy(&length, given->lengths + i * sizeof length, sizeof length);
        step = first_step(data, length);
        if (w < *known && step != *last_step)
            return step < *last_step ? fail_other_steps(step, *last_step)
                                     : fail_other_steps(*last_step, step);
        if (w >= *known) {
            dti_bytes_put(to, data, length);
            bytes[w] = length;
            *known = (uint32_t)w + 1;
            *last_step = step;
        }
        data += length;
    }
    return DITTO_OK;
}

static ditto_status give(struct ditto_iterator *it, const struct dti_bytes *own, const uint64_t *own_bytes,
                         const struct dti_gathered **out)
{
    struct dti_cross_request request = { "ditto_iterator_save", NULL, it->number };
    struct dti_bytes given = { 0 };
    const uint64_t head[] = { it->plan.first_pipeline, it->plan.local_pipelines };
    dti_bytes_put(&given, head, sizeof head);
    dti_bytes_put(&given, own_bytes, it->plan.local_pipelines * sizeof *own_bytes);
    dti_bytes_put(&given, own->data, own->length);
    ditto_status status = dti_bytes_status(&given);
    if (status == DITTO_OK)
        status = dti_cross_gather(it->team, &request, given.data, given.length, out);
    dti_bytes_free(&given);
    return status;
}

/* Writes the pipelines of all hosts. Every host calls it. */
static ditto_status write_all(struct ditto_iterator *it, struct dti_bytes *to, uint64_t *bytes)
{
    struct dti_bytes own = { 0 };
    const struct dti_gathered *gathered;
    uint32_t known = 0;
    uint64_t last_step = 0;
    ditto_status status = write_own(it, &own, bytes);
    if (status == DITTO_OK)
        status = give(it, &own, bytes, &gathered);
    dti_bytes_free(&own);
    for (uint32_t h = 0; status == DITTO_OK && h < dti_cross_hosts(it->team); h++) {
        struct given_pipelines given;
        memcpy(&given.first, gathered[h].data, sizeof given.first);
        memcpy(&given.count, gathered[h].data + sizeof given.first, sizeof given.count);
        given.lengths = (const char *)gathered[h].data + 2 * sizeof given.first;
        given.data = given.lengths + given.count * sizeof(uint64_t);
        status = take_given(&given, &known, &last_step, to, bytes);
    }
    return status == DITTO_OK ? dti_bytes_status(to) : status;
}

ditto_status dti_iterator_save(ditto_iterator *it, struct dti_bytes *to)
{
    struct dti_bytes pipelines = { 0 };
    uint64_t *bytes = calloc(it->plan.pipelines, sizeof *bytes);
    ditto_status status = DITTO_ERR_NO_MEMORY;
    if (bytes == NULL)
        return DTI_FAIL(status, "no memory for the state of %u pipelines", it->plan.pipelines);
    status = dti_cross_has_hosts(it->team) ? write_all(it, &pipelines, bytes)
                                           : write_own(it, &pipelines, bytes);
    if (status == DITTO_OK) {
        uint64_t fingerprint = fingerprint_all(it);
        bool has_lengths = it->plan.pipelines > 1;
        dti_bytes_put(to, has_lengths ? magic_3 : magic_2, MAGIC_BYTES);
        dti_bytes_put(to, &fingerprint, sizeof fingerprint);
        dti_bytes_put_u64(to, it->plan.pipelines);
        dti_bytes_put_u64(to, it->plan.global);
        dti_bytes_put_u64(to, it->all_replicas);
        dti_bytes_put_u64(to, it->plan.pass);
        dti_bytes_put_u64(to, (uint64_t)it->plan.sharing);
        for (uint32_t w = 0; has_lengths && w < it->plan.pipelines; w++)
            dti_bytes_put_u64(to, bytes[w]);
        dti_bytes_put(to, pipelines.data, pipelines.length);
        uint64_t hash = dti_hash_bytes(DTI_HASH_SEED, to->data, to->length);
        dti_bytes_put(to, &hash, sizeof hash);
        status = dti_bytes_status(to);
    }
    dti_bytes_free(&pipelines);
    free(bytes);
    return status;
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

static ditto_status refuse_steps(const struct ditto_iterator *it)
{
    return DTI_FAIL(DITTO_ERR_INVALID,
                    "the state was saved when pipelines were at different steps: it can be continued with %u "
                    "replicas, not with %u",
                    it->plan.state_replicas, it->all_replicas);
}

/* Reads the numbers of bytes, and leaves the pipelines of this host to read. */
static ditto_status find_own(const struct ditto_iterator *it, struct dti_bytes_reader *from)
{
    struct dti_bytes_reader lengths = *from;
    uint32_t first = it->plan.first_pipeline, behind = first + it->plan.local_pipelines;
    uint64_t all_bytes = 0, step = 0;
    for (uint32_t w = 0; w < it->plan.pipelines; w++)
        all_bytes += dti_bytes_get_at_most(from, (uint64_t)(from->end - from->at));
    from->failed |= all_bytes != (uint64_t)(from->end - from->at);
    DTI_TRY(dti_bytes_reader_status(from));
    const char *data = from->at;
    for (uint32_t w = 0; w < it->plan.pipelines; w++) {
        uint64_t bytes = dti_bytes_get_u64(&lengths), begins = first_step(data, bytes);
        if (w > 0 && begins != step && it->plan.state_replicas != it->all_replicas)
            return refuse_steps(it);
        step = begins;
        from->at = w == first ? data : from->at;
        data += bytes;
        from->end = w + 1 == behind ? data : from->end;
    }
    return DITTO_OK;
}

/* Checks the hash and the magic, and finds the bytes between them. */
static ditto_status check_bytes(const struct ditto_iterator *it, struct dti_bytes_reader *from,
                                bool *has_lengths)
{
    size_t bytes = it->plan.state_bytes;
    uint64_t hash;
    const char *data = it->plan.state;
    bool is_state = bytes >= MAGIC_BYTES + 2 * sizeof hash;
    *has_lengths = is_state && memcmp(data, magic_3, MAGIC_BYTES) == 0;
    if (!is_state || (!*has_lengths && memcmp(data, magic_2, MAGIC_BYTES) != 0))
        return DTI_FAIL(DITTO_ERR_CORRUPT, "the %zu bytes of state are not a state of an iterator", bytes);
    memcpy(&hash, data + bytes - sizeof hash, sizeof hash);
    *from = (struct dti_bytes_reader){ data + MAGIC_BYTES, data + bytes - sizeof hash,
                                       dti_hash_bytes(DTI_HASH_SEED, data, bytes - sizeof hash) != hash };
    return dti_bytes_reader_status(from);
}

ditto_status dti_state_open(struct ditto_iterator *it, struct dti_bytes_reader *from)
{
    uint64_t saved_fingerprint;
    bool has_lengths;
    DTI_TRY(check_bytes(it, from, &has_lengths));
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
    if (saved_fingerprint != fingerprint_all(it))
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the state belongs to another dataset, or to one made with other arguments");
    if (global != it->plan.global)
        return refuse("rows in a global batch", global, it->plan.global);
    if (it->plan.pass != 0 && it->plan.pass != pass)
        return DTI_FAIL(DITTO_ERR_INVALID, "pass is %llu, but the state continues pass %llu",
                        (unsigned long long)it->plan.pass, (unsigned long long)pass);
    it->plan.pass = pass;
    if (has_lengths)
        return find_own(it, from);
    if (it->plan.local_pipelines != it->plan.pipelines)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "the state is of several pipelines, and an earlier version of ditto has saved it: it can "
            "be continued on one host only");
    return DITTO_OK;
}

static ditto_status read_steps(struct ditto_iterator *it, struct dti_pipeline *p,
                               struct dti_bytes_reader *from)
{
    struct dti_sequencer *s = &p->sequencer;
    s->first = s->cut = s->kept = dti_bytes_get_at_most(from, MOST_STEP);
    dti_digest_of_rows_begin(s);
    bool same_step = dti_bytes_get_at_most(from, 1) != 0;
    DTI_TRY(dti_bytes_reader_status(from));
    if (!same_step && it->plan.state_replicas == it->all_replicas && !is_whole(it, p))
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "the state was saved when replicas had taken different numbers of batches: it can only be "
            "continued where all replicas of a pipeline are on one host");
    if (!same_step && it->plan.state_replicas != it->all_replicas)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the state was saved when replicas had taken different numbers of batches: it can be "
                        "continued with %u replicas, not with %u",
                        it->plan.state_replicas, it->all_replicas);
    for (uint32_t j = 0; j < s->o.served; j++)
        s->begins[j] = same_step ? s->first : dti_bytes_get_u64(from);
    uint64_t least = UINT64_MAX;
    for (uint32_t j = 0; j < s->o.served; j++) {
        least = s->begins[j] < least ? s->begins[j] : least;
        from->failed |= s->begins[j] - s->first > MOST_AHEAD; /* also if it is less than s->first */
    }
    from->failed |= least != s->first;
    DTI_TRY(dti_bytes_reader_status(from));
    /* A state of version 2. Otherwise find_own has checked it. */
    if (p != it->pipeline && it->plan.state_replicas != it->all_replicas &&
        s->first != it->pipeline[0].sequencer.first)
        return refuse_steps(it);
    return DITTO_OK;
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
