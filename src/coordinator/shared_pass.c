/* src/coordinator/shared_pass.c - passes whose batches any number of threads take; see shared_pass.h. */
#include "coordinator/shared_pass.h"
#include "base/errors/status.h"
#include "base/numbers/checksum.h"
#include "base/types/types.h"
#include "replicas/team/context.h"
#include "replicas/team/team.h"

#include <string.h>

#define MAGIC_BYTES 8
static const char magic[MAGIC_BYTES + 1] = "DITTOSH1";

/* -- batches -- */

static struct dti_rows rows_of(const struct dti_shared_batch *batch)
{
    return (struct dti_rows){ (uint64_t *)(uintptr_t)batch->words, batch->pass->dataset->row_words };
}

static struct dti_shared_batch *allocate_batch(struct dti_shared_pass *pass, uint64_t most_rows)
{
    size_t bytes;
    struct dti_shared_batch *batch = NULL;
    if (dti_multiply(most_rows, pass->dataset->row_words * sizeof(uint64_t), &bytes) &&
        bytes <= SIZE_MAX - sizeof *batch)
        batch = malloc(sizeof *batch + bytes);
    if (batch == NULL) {
        (void)DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the rows of a batch of %llu",
                       (unsigned long long)most_rows);
        return NULL;
    }
    batch->next = NULL;
    batch->pass = pass;
    batch->rows = 0;
    atomic_init(&batch->references, 1);
    return batch;
}

void dti_shared_batch_keep(struct dti_shared_batch *batch)
{
    /* relaxed: the caller has a reference. */
    atomic_fetch_add_explicit(&batch->references, 1, memory_order_relaxed);
}

void dti_shared_batch_drop(struct dti_shared_batch *batch)
{
    /* acq_rel: pairs with itself, so that all reads of the rows happen before they are freed. */
    if (batch == NULL || atomic_fetch_sub_explicit(&batch->references, 1, memory_order_acq_rel) != 1)
        return;
    dti_rows_drop(batch->pass->dataset, rows_of(batch), batch->rows);
    free(batch);
}

void dti_shared_batch_give_back(struct dti_shared_batch *batch)
{
    struct dti_shared_pass *pass = batch->pass;
    pthread_mutex_lock(&pass->lock);
    batch->next = pass->returned;
    pass->returned = batch;
    pthread_mutex_unlock(&pass->lock);
}

/* -- the end -- */

/* An error replaces the end of the input. */
void dti_shared_pass_end(struct dti_shared_pass *pass, ditto_status status)
{
    pthread_mutex_lock(&pass->lock);
    if (pass->end_status >= 0) {
        pass->end_status = status;
        if (status < 0)
            pass->error = *dti_error_get();
    }
    pthread_mutex_unlock(&pass->lock);
}

/* Takes a batch that was given back, or returns how the pass has ended. If neither is so, *out is NULL. */
static ditto_status take_returned(struct dti_shared_pass *pass, struct dti_shared_batch **out)
{
    ditto_error error;
    *out = NULL;
    pthread_mutex_lock(&pass->lock);
    ditto_status status = pass->end_status;
    if (status < 0)
        error = pass->error;
    else if (pass->returned != NULL) {
        *out = pass->returned;
        pass->returned = (*out)->next;
        status = DITTO_OK;
    }
    pthread_mutex_unlock(&pass->lock);
    if (status >= 0)
        return status;
    error.function = dti_this_thread()->function;
    error.replica = dti_this_thread()->replica;
    dti_error_set(&error);
    return dti_own(status);
}

/* -- taking -- */

/* Chooses the rows of a new batch. The caller holds `choosing`. */
static ditto_status choose(struct dti_team *team, struct dti_shared_pass *pass, struct dti_shared_batch **out)
{
    struct dti_frame frame;
    ditto_error kept = *dti_error_get();
    uint64_t want = pass->cut.global;
    size_t got = 0;
    struct dti_shared_batch *batch = allocate_batch(pass, want);
    if (batch == NULL)
        return DITTO_ERR_NO_MEMORY;
    struct dti_fenv saved = dti_frame_enter_input(&frame, team);
    ditto_status status = dti_cursor_next(pass->cursor, rows_of(batch), want, &got);
    dti_frame_leave(&frame, saved);
    batch->rows = got;
    batch->number = pass->next_number;
    if (status != DITTO_OK)
        dti_shared_pass_end(pass, status);
    if (dti_cut_exists(&pass->cut, want, got, status < 0, false)) {
        dti_error_set(&kept); /* an error that the cursor has found is returned by later calls */
        pass->next_number++;
        *out = batch;
        return DITTO_OK;
    }
    dti_shared_batch_drop(batch);
    return status;
}

static ditto_status lock_choosing(struct dti_shared_pass *pass, uint32_t timeout_ms)
{
    if (dti_lock_take(&pass->choosing, timeout_ms))
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_TIMED_OUT,
        "a worker, perhaps a retired one, has chosen the rows of a batch for more than timeout_ms = "
        "%u ms, and others must wait: look at the generators and functions of the dataset",
        timeout_ms);
}

ditto_status dti_shared_pass_take(struct dti_team *team, struct dti_shared_pass *pass,
                                  dti_shared_batch_taken *taken, void *taker)
{
    struct dti_shared_batch *batch;
    DTI_TRY(lock_choosing(pass, dti_team_options(team)->timeout_ms));
    ditto_status status = take_returned(pass, &batch);
    if (status == DITTO_OK && batch == NULL)
        status = choose(team, pass, &batch);
    if (status >= 0)
        taken(taker, status, batch);
    dti_lock_release(&pass->choosing);
    return status;
}

static void describe(const struct dti_shared_batch *batch, uint64_t rows, char *memory, ditto_batch *out)
{
    const struct dti_shared_pass *pass = batch->pass;
    *out = (ditto_batch){ .rows = rows, .step = batch->number, .num_components = pass->dataset->components };
    for (uint32_t k = 0; k < out->num_components; k++) {
        const struct dti_row_component_spec *spec = &pass->dataset->component[k];
        ditto_tensor *t = &out->component[k];
        *t = (ditto_tensor){ .data = memory + pass->offset[k], .dtype = spec->dtype, .rank = spec->rank + 1 };
        t->shape[0] = rows;
        memcpy(&t->shape[1], spec->shape, spec->rank * sizeof spec->shape[0]);
    }
}

ditto_status dti_shared_batch_fill(struct dti_team *team, const struct dti_shared_batch *batch,
                                   uint32_t replica, struct dti_reader *reader, char *memory,
                                   ditto_batch *out)
{
    struct dti_shared_pass *pass = batch->pass;
    struct dti_frame frame;
    void *destination[DITTO_MAX_COMPONENTS];
    uint64_t first = dti_cut_before(&pass->cut, 0, batch->rows, replica);
    uint64_t rows = dti_cut_before(&pass->cut, 0, batch->rows, replica + 1) - first;
    for (uint32_t k = 0; k < pass->dataset->components; k++)
        destination[k] = memory + pass->offset[k];
    reader->closing = &pass->closing;
    ditto_status status = DITTO_OK;
    if (rows > 0) {
        struct dti_fenv saved = dti_frame_enter_input(&frame, team);
        status = dti_dataset_fill(pass->dataset, reader, dti_rows_from(rows_of(batch), first), rows,
                                  destination);
        dti_frame_leave(&frame, saved);
    }
    if (status != DITTO_OK)
        return status;
    describe(batch, rows, memory, out);
    return DITTO_OK;
}

/* -- saving -- */

/* Writes the batches that were given back, in the order in which they would be taken. The caller holds both
 * locks. */
static ditto_status write_returned(const struct dti_shared_pass *pass, struct dti_bytes *to)
{
    uint64_t count = 0;
    if (pass->end_status < 0) {
        dti_error_set(&pass->error);
        return dti_own(pass->end_status);
    }
    for (const struct dti_shared_batch *batch = pass->returned; batch != NULL; batch = batch->next)
        count++;
    dti_bytes_put_u64(to, count);
    for (const struct dti_shared_batch *batch = pass->returned; batch != NULL; batch = batch->next) {
        dti_bytes_put_u64(to, batch->number);
        DTI_TRY(dti_rows_save(pass->dataset, rows_of(batch), batch->rows, to));
    }
    return DITTO_OK;
}

/* The caller holds `choosing`. */
static ditto_status write_position(struct dti_shared_pass *pass, struct dti_bytes *to)
{
    pthread_mutex_lock(&pass->lock);
    ditto_status status = write_returned(pass, to);
    pthread_mutex_unlock(&pass->lock);
    return status == DITTO_OK ? dti_cursor_save(pass->cursor, to) : status;
}

static ditto_status write_locked(struct dti_team *team, struct dti_shared_pass *pass, struct dti_bytes *to)
{
    struct dti_frame frame;
    uint64_t fingerprint;
    DTI_TRY(dti_dataset_fingerprint(pass->dataset, &fingerprint));
    dti_bytes_put(to, magic, MAGIC_BYTES);
    dti_bytes_put(to, &fingerprint, sizeof fingerprint);
    dti_bytes_put_u64(to, pass->cut.global);
    dti_bytes_put_u64(to, pass->number);
    dti_bytes_put_u64(to, pass->next_number);
    /* In this context a generator's save function cannot call back into the pass. */
    struct dti_fenv saved = dti_frame_enter_input(&frame, team);
    ditto_status status = write_position(pass, to);
    dti_frame_leave(&frame, saved);
    if (status == DITTO_OK)
        status = dti_bytes_status(to);
    if (status != DITTO_OK)
        return status;
    uint64_t hash = dti_hash_bytes(DTI_HASH_SEED, to->data, to->length);
    dti_bytes_put(to, &hash, sizeof hash);
    return dti_bytes_status(to);
}

ditto_status dti_shared_pass_save(struct dti_team *team, struct dti_shared_pass *pass, uint32_t timeout_ms,
                                  struct dti_bytes *to)
{
    DTI_TRY(lock_choosing(pass, timeout_ms));
    ditto_status status = write_locked(team, pass, to);
    dti_lock_release(&pass->choosing);
    return status;
}

/* -- restoring -- */

static ditto_status read_batch(struct dti_shared_pass *pass, struct dti_bytes_reader *from,
                               struct dti_shared_batch **out)
{
    uint64_t number = dti_bytes_get_u64(from);
    size_t count = dti_rows_load_count(from, pass->cut.global), loaded = 0;
    DTI_TRY(dti_bytes_reader_status(from));
    struct dti_shared_batch *batch = allocate_batch(pass, count);
    if (batch == NULL)
        return DITTO_ERR_NO_MEMORY;
    batch->number = number;
    ditto_status status = dti_rows_load(pass->dataset, rows_of(batch), count, &loaded, from);
    batch->rows = loaded;
    if (status == DITTO_OK)
        *out = batch;
    else
        dti_shared_batch_drop(batch);
    return status;
}

/* -- opening -- */

static ditto_status check_options(const ditto_dataset *dataset, const ditto_input_options *o)
{
    DTI_TRY(dti_flags_check(o->flags, DITTO_INPUT_STATIC | DITTO_INPUT_HOST_MEMORY, "flags"));
    if ((uint32_t)o->partial > DITTO_PARTIAL_EVEN)
        return DTI_FAIL(DITTO_ERR_RANGE, "partial is %u: at most %u", (uint32_t)o->partial,
                        (uint32_t)DITTO_PARTIAL_EVEN);
    if ((o->buffer != 0 && o->buffer != DITTO_NO_PREFETCH) || o->num_producers != 0 ||
        o->num_pipelines != 0 || (uint32_t)o->shard != 0 || (uint32_t)o->replication != 0 ||
        o->max_bytes != 0 || (o->flags & DITTO_INPUT_HOST_MEMORY) != 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "workers read the batches of a shared dataset themselves, into their own memory: "
                        "leave buffer, num_producers, num_pipelines, shard, replication and max_bytes 0, and "
                        "DITTO_INPUT_HOST_MEMORY unset");
    if ((o->state == NULL) != (o->state_bytes == 0))
        return DTI_FAIL(DITTO_ERR_INVALID, "state_bytes is %zu, but state is %p: set both or none",
                        o->state_bytes, o->state);
    if (dataset->batch_rows == 0 && o->global_batch == 0)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "the dataset has no batches: batch it first (ditto_dataset_batch), or set global_batch");
    if (dataset->batch_rows != 0 && o->global_batch != 0 && dataset->batch_rows != o->global_batch)
        return DTI_FAIL(DITTO_ERR_INVALID, "the dataset is batched by %llu rows, but global_batch is %llu",
                        (unsigned long long)dataset->batch_rows, (unsigned long long)o->global_batch);
    return DITTO_OK;
}

/* Reads a state up to the position of the cursor. */
static ditto_status read_state(struct dti_shared_pass *pass, const ditto_input_options *o,
                               struct dti_bytes_reader *from)
{
    /* The magic comes first, and the hash last. */
    uint64_t hash;
    const char *data = o->state;
    size_t bytes = o->state_bytes;
    if (bytes < MAGIC_BYTES + 2 * sizeof hash || memcmp(data, magic, MAGIC_BYTES) != 0)
        return DTI_FAIL(DITTO_ERR_CORRUPT, "the %zu bytes of state are not a state of a shared dataset",
                        bytes);
    memcpy(&hash, data + bytes - sizeof hash, sizeof hash);
    *from = (struct dti_bytes_reader){ data + MAGIC_BYTES, data + bytes - sizeof hash,
                                       dti_hash_bytes(DTI_HASH_SEED, data, bytes - sizeof hash) != hash };
    DTI_TRY(dti_bytes_reader_status(from));
    /* The dataset, the batches and the pass must be those of the state. */
    uint64_t fingerprint, saved_fingerprint;
    DTI_TRY(dti_dataset_fingerprint(pass->dataset, &fingerprint));
    dti_bytes_get(from, &saved_fingerprint, sizeof saved_fingerprint);
    uint64_t global = dti_bytes_get_u64(from), number = dti_bytes_get_u64(from);
    pass->next_number = dti_bytes_get_u64(from);
    DTI_TRY(dti_bytes_reader_status(from));
    if (saved_fingerprint != fingerprint)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the state belongs to another dataset, or to one made with other arguments");
    if (global != pass->cut.global)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the state was saved with batches of %llu rows, but now they have %llu",
                        (unsigned long long)global, (unsigned long long)pass->cut.global);
    if (o->pass != 0 && o->pass != number)
        return DTI_FAIL(DITTO_ERR_INVALID, "pass is %llu, but the state continues pass %llu",
                        (unsigned long long)o->pass, (unsigned long long)number);
    pass->number = number;
    /* The batches that were given back take at least one byte each. */
    struct dti_shared_batch **end = &pass->returned;
    uint64_t count = dti_bytes_get_at_most(from, (uint64_t)(from->end - from->at));
    for (uint64_t i = 0; i < count; i++) {
        DTI_TRY(read_batch(pass, from, end));
        end = &(*end)->next;
    }
    return dti_bytes_reader_status(from);
}

/* Opens the cursor, at the position of the state if there is one. */
static ditto_status open_cursor(struct dti_shared_pass *pass, const ditto_input_options *o)
{
    struct dti_bytes_reader from;
    if (o->state != NULL)
        DTI_TRY(read_state(pass, o, &from));
    struct dti_pass described = { .number = pass->number, .closing = &pass->closing };
    DTI_TRY(dti_cursor_open(pass->dataset, &described, &pass->cursor));
    if (o->state == NULL)
        return DITTO_OK;
    DTI_TRY(dti_cursor_restore(pass->cursor, &from));
    from.failed |= from.at != from.end;
    return dti_bytes_reader_status(&from);
}

ditto_status dti_shared_pass_open(struct dti_team *team, ditto_dataset *dataset, uint32_t replicas,
                                  const ditto_input_options *o, struct dti_shared_pass **out)
{
    struct dti_frame frame;
    DTI_TRY(check_options(dataset, o));
    struct dti_shared_pass *pass = calloc(1, sizeof *pass);
    if (pass == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a shared dataset");
    pass->cut = (struct dti_cut){
        .global = dataset->batch_rows != 0 ? dataset->batch_rows : o->global_batch,
        .pipelines = 1,
        .replicas = replicas,
        .arrangement = DTI_CUT_SHARED,
        .shorts = (o->flags & DITTO_INPUT_STATIC) != 0           ? DTI_SHORT_NEVER
                  : dataset->drop_remainder || dataset->infinite ? DTI_SHORT_DROPPED
                                                                 : DTI_SHORT_DELIVERED,
        .even = o->partial == DITTO_PARTIAL_EVEN,
    };
    pass->number = o->pass;
    pass->dataset = dataset;
    dti_dataset_retain(dataset);
    pthread_mutex_init(&pass->lock, NULL);
    ditto_status status = DITTO_OK;
    if (!dti_dataset_layout(dataset, dti_cut_most_of_batch(&pass->cut), pass->offset, &pass->payload_bytes))
        status = DTI_FAIL(DITTO_ERR_RANGE, "a batch of %llu rows has more bytes than size_t can count",
                          (unsigned long long)pass->cut.global);
    if (status == DITTO_OK) {
        struct dti_fenv saved = dti_frame_enter_input(&frame, team);
        status = open_cursor(pass, o);
        dti_frame_leave(&frame, saved);
    }
    if (status == DITTO_OK)
        *out = pass;
    else {
        ditto_error kept = *dti_error_get();
        dti_shared_pass_close(team, pass);
        dti_error_set(&kept);
    }
    return status;
}

void dti_shared_pass_interrupt(struct dti_shared_pass *pass)
{
    atomic_store_explicit(&pass->closing, 1, memory_order_release); /* pairs with dti_closing_check */
}

void dti_shared_pass_close(struct dti_team *team, struct dti_shared_pass *pass)
{
    struct dti_frame frame;
    struct dti_fenv saved = dti_frame_enter_input(&frame, team);
    for (struct dti_shared_batch *batch = pass->returned, *next; batch != NULL; batch = next) {
        next = batch->next;
        dti_shared_batch_drop(batch);
    }
    dti_cursor_close(pass->cursor);
    dti_frame_leave(&frame, saved);
    dti_dataset_release(pass->dataset);
    pthread_mutex_destroy(&pass->lock);
    free(pass);
}
