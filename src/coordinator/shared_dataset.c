/* src/coordinator/shared_dataset.c - datasets whose batches all workers take from one pass.
 *
 * A worker has a list of the batches that its present function has taken. The replica that asks first takes
 * a batch from the pass, and each replica reads its own part of it. The k-th call of each replica in a
 * function gets its part of the same batch.
 *
 * If functions may be late, the list keeps all batches until the function has ended. When a worker is
 * retired, its batches are given back before its function is, so that the next execution takes them.
 *
 * Locks, the outer ones first:
 *     coordinator->lock   the list of shared datasets
 *     part->taking        a replica of the worker takes a batch from the pass, which may take long
 *     part->lock          the list of batches, for a few instructions. A thread that retires the worker has
 *                         changed its state before it takes this lock, so a replica that holds it either
 *                         sees the state, or adds a batch that the other thread finds.
 * Between part->taking and part->lock there is `choosing` of the pass (shared_pass.h). It is held until the
 * batch is in the list, or is given back because the worker was retired. A thread that retires a worker
 * never waits for `taking` or `choosing`. */
#include "base/errors/status.h"
#include "coordinator/coordinator.h"
#include "coordinator/shared_pass.h"
#include "input/input.h"
#include "replicas/helpers/remote_memory.h"
#include "replicas/team/recorder.h"
#include "replicas/team/replica.h"

#include <stdlib.h>

/* A batch that a function has taken, or the end of the input. */
struct taken {
    struct taken *older;
    uint64_t index;                 /* in the function, from 0 */
    struct dti_shared_batch *batch; /* a reference; NULL if there is none */
    ditto_status status;            /* if there is no batch. An error is not kept */
    uint32_t used;                  /* the number of replicas that have it already */
};

/* What a replica has. Only its thread uses it, and the worker's thread between functions. */
struct own_part {
    uint64_t taken; /* batches in the present function */
    void *memory;   /* of its part of a batch, or NULL */
    struct dti_reader reader;
};

/* What a worker has. */
struct worker_part {
    alignas(DTI_CACHE_LINE_PAIR) pthread_mutex_t taking;
    pthread_mutex_t lock;
    struct taken *newest;
    struct own_part *own; /* [replicas of the worker] */
};

struct ditto_shared_dataset {
    struct ditto_shared_dataset *next;
    struct ditto_coordinator *coordinator; /* a reference */

    /* The coordinator was destroyed. Only the handle is left, or everything if is_lost, because a late
     * function may still use it. */
    _Atomic bool is_detached;
    bool is_lost;
    struct dti_shared_pass *pass;
    struct worker_part *part; /* [workers] */
};

/* -- creating and destroying -- */

static struct dti_team *team_of(const struct ditto_coordinator *c)
{
    return c->strategy->base.team;
}

/* Frees all but the handle. */
static void release(struct ditto_shared_dataset *s)
{
    const struct ditto_coordinator *c = s->coordinator;
    for (uint32_t i = 0; s->part != NULL && i < c->workers->count; i++) {
        struct worker_part *part = &s->part[i];
        for (uint32_t r = 0; part->own != NULL && r < c->workers->replicas; r++) {
            dti_replica_free_remote(dti_team_replica(c->worker[i].strategy->base.team, r),
                                    part->own[r].memory);
            dti_reader_free(&part->own[r].reader);
        }
        free(part->own);
        pthread_mutex_destroy(&part->taking);
        pthread_mutex_destroy(&part->lock);
    }
    free(s->part);
    if (s->pass != NULL)
        dti_shared_pass_close(team_of(c), s->pass);
}

static void free_handle(struct ditto_shared_dataset *s)
{
    dti_coordinator_drop(s->coordinator);
    free(s);
}

static bool allocate_parts(struct ditto_shared_dataset *s)
{
    uint32_t workers = s->coordinator->workers->count, replicas = s->coordinator->workers->replicas;
    bool is_complete = true;
    s->part = aligned_alloc(DTI_CACHE_LINE_PAIR, workers * sizeof *s->part);
    for (uint32_t i = 0; s->part != NULL && i < workers; i++) {
        s->part[i] = (struct worker_part){ .own = calloc(replicas, sizeof *s->part[i].own) };
        pthread_mutex_init(&s->part[i].taking, NULL);
        pthread_mutex_init(&s->part[i].lock, NULL);
        is_complete = is_complete && s->part[i].own != NULL;
    }
    return s->part != NULL && is_complete;
}

ditto_status dti_shared_dataset_create(struct ditto_coordinator *c, ditto_dataset *dataset,
                                       const ditto_input_options *options, struct ditto_shared_dataset **out)
{
    struct ditto_shared_dataset *s = calloc(1, sizeof *s);
    if (s == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a shared dataset");
    s->coordinator = c;
    dti_coordinator_keep(c);
    ditto_status status = allocate_parts(s)
                              ? DITTO_OK
                              : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to share a dataset among %u workers",
                                         c->workers->count);
    if (status == DITTO_OK)
        status = dti_shared_pass_open(team_of(c), dataset, c->workers->replicas, options, &s->pass);
    if (status != DITTO_OK) {
        release(s);
        free_handle(s);
        return status;
    }
    pthread_mutex_lock(&c->lock);
    s->next = c->shared;
    c->shared = s;
    pthread_mutex_unlock(&c->lock);
    *out = s;
    return DITTO_OK;
}

ditto_status dti_shared_dataset_destroy(struct ditto_shared_dataset *s)
{
    struct ditto_coordinator *c = s->coordinator;
    if (dti_coordinator_is_in_use(c))
        return DTI_FAIL(DITTO_ERR_BUSY,
                        "functions are in the queue or being executed, and may use the shared dataset: "
                        "destroy it after ditto_coordinator_join");
    pthread_mutex_lock(&c->lock);
    struct ditto_shared_dataset **at = &c->shared;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    pthread_mutex_unlock(&c->lock);
    release(s);
    free_handle(s);
    return DITTO_OK;
}

bool dti_shared_dataset_is_detached(const struct ditto_shared_dataset *s)
{
    /* acquire: pairs with the release in dti_shared_datasets_detach. */
    return atomic_load_explicit(&s->is_detached, memory_order_acquire);
}

void dti_shared_dataset_free_detached(struct ditto_shared_dataset *s)
{
    if (!s->is_lost)
        free_handle(s);
}

void dti_shared_datasets_detach(struct ditto_coordinator *c, bool lost)
{
    for (struct ditto_shared_dataset *s = c->shared, *next; s != NULL; s = next) {
        next = s->next;
        s->is_lost = lost;
        if (lost)
            dti_shared_pass_interrupt(s->pass);
        else
            release(s);
        atomic_store_explicit(&s->is_detached, true, memory_order_release);
    }
}

struct ditto_coordinator *dti_shared_dataset_coordinator(const struct ditto_shared_dataset *s)
{
    return s->coordinator;
}

ditto_status dti_shared_dataset_save(struct ditto_shared_dataset *s, struct dti_bytes *to)
{
    return dti_shared_pass_save(team_of(s->coordinator), s->pass, s->coordinator->timeout_ms, to);
}

/* -- the list of a worker. The caller holds part->lock. -- */

static struct taken *find(const struct worker_part *part, uint64_t index)
{
    struct taken *t = part->newest;
    while (t != NULL && t->index > index)
        t = t->older;
    return t != NULL && t->index == index ? t : NULL;
}

/* Removes all. Other workers will take the batches, the oldest first. */
static void give_all_back(struct worker_part *part)
{
    for (struct taken *t = part->newest, *older; t != NULL; t = older) {
        older = t->older;
        if (t->batch != NULL)
            dti_shared_batch_give_back(t->batch);
        free(t);
    }
    part->newest = NULL;
}

/* Frees entries that are in no list of a worker. The caller has no lock, because values of rows are freed. */
static void drop_all(struct taken *list)
{
    for (struct taken *older; list != NULL; list = older) {
        older = list->older;
        dti_shared_batch_drop(list->batch);
        free(list);
    }
}

/* -- taking a batch, on a thread of a replica -- */

static bool is_retired(const struct dti_function_worker *w)
{
    /* acquire: see the top of this file for the order. */
    return (atomic_load_explicit(&w->state, memory_order_acquire) & 3) == DTI_WORKER_RETIRED;
}

static ditto_status fail_retired(const struct dti_function_worker *w)
{
    return DTI_FAIL(
        DITTO_ERR_TIMED_OUT,
        "worker %u is retired, because its function takes longer than run_timeout_ms: its batches "
        "are given to the function that is executed again",
        w->index);
}

/* Looks for the batch number `index` of the present function. Sets *out to it, with a reference, or to NULL
 * if the function has not taken it yet. Returns TIMED_OUT if the worker is retired. */
static ditto_status look(const struct dti_function_worker *w, struct worker_part *part, uint64_t index,
                         struct dti_shared_batch **out, bool *is_found)
{
    ditto_status status = DITTO_OK;
    *out = NULL;
    pthread_mutex_lock(&part->lock);
    bool retired = is_retired(w);
    const struct taken *t = retired ? NULL : find(part, index);
    *is_found = t != NULL;
    if (t != NULL && t->batch != NULL) {
        *out = t->batch;
        dti_shared_batch_keep(t->batch);
    } else if (t != NULL)
        status = t->status;
    pthread_mutex_unlock(&part->lock);
    return retired ? fail_retired(w) : status;
}

/* Where a batch goes that is being taken. */
struct taker {
    const struct dti_function_worker *w;
    struct worker_part *part;
    struct taken *entry;
};

/* Adds the batch to the list of the worker, or gives it back if the worker is retired. */
static void add_taken(void *argument, ditto_status status, struct dti_shared_batch *batch)
{
    const struct taker *taker = argument;
    struct worker_part *part = taker->part;
    taker->entry->status = status;
    taker->entry->batch = batch;
    pthread_mutex_lock(&part->lock);
    taker->entry->older = part->newest;
    part->newest = taker->entry;
    if (is_retired(taker->w))
        give_all_back(part); /* the thread that has retired the worker may have been here before */
    pthread_mutex_unlock(&part->lock);
}

/* Takes the next batch of the pass for the worker, which becomes number `index` of its function. */
static ditto_status take_for_worker(const struct dti_function_worker *w, struct ditto_shared_dataset *s,
                                    struct worker_part *part, uint64_t index)
{
    struct taken *t = calloc(1, sizeof *t);
    if (t == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a batch");
    t->index = index;
    struct taker taker = { w, part, t };
    ditto_status status = dti_shared_pass_take(w->strategy->base.team, s->pass, add_taken, &taker);
    if (status < 0) {
        free(t);
        return status;
    }
    /* cppcheck-suppress memleak; add_taken has added it to the list of the worker */
    return DITTO_OK;
}

/* Finds the batch number `index` of the present function, or takes it. */
static ditto_status find_or_take(const struct dti_function_worker *w, struct ditto_shared_dataset *s,
                                 struct worker_part *part, uint64_t index, struct dti_shared_batch **out)
{
    bool is_found;
    ditto_status status = look(w, part, index, out, &is_found);
    if (status != DITTO_OK || is_found)
        return status;
    pthread_mutex_lock(&part->taking);
    status = look(w, part, index, out, &is_found); /* another replica may have taken it meanwhile */
    if (status == DITTO_OK && !is_found)
        status = take_for_worker(w, s, part, index);
    pthread_mutex_unlock(&part->taking);
    return status == DITTO_OK && !is_found ? look(w, part, index, out, &is_found) : status;
}

static ditto_status next_batch(struct dti_replica *r, struct dti_function_worker *w,
                               struct ditto_shared_dataset *s, ditto_batch *out)
{
    struct worker_part *part = &s->part[w->index];
    struct own_part *own = &part->own[r->index];
    struct dti_shared_batch *batch = NULL;
    if (own->memory == NULL)
        DTI_TRY(dti_replica_alloc(r, s->pass->payload_bytes + 1, DTI_CACHE_LINE_PAIR, &own->memory));
    /* relaxed: the end of the run orders it before the worker's thread. */
    atomic_store_explicit(&w->has_taken, true, memory_order_relaxed);
    uint64_t since_ns = dti_trace_wait(r);
    ditto_status status = find_or_take(w, s, part, own->taken, &batch);
    dti_trace_waited(r, since_ns);
    if (status < 0)
        return status;
    if (status == DITTO_OK)
        status = dti_shared_batch_fill(r->team, batch, r->index, &own->reader, own->memory, out);
    /* The batches of a retired worker are read again, and there may be memory for other workers. */
    if (status < 0 && status != DITTO_ERR_NO_MEMORY && !is_retired(w))
        dti_shared_pass_end(s->pass, status);
    dti_shared_batch_drop(batch);
    /* Counts that a replica has its part. When all have, the entry is kept only if its batch may have to be
     * given back. */
    struct taken *unused = NULL;
    pthread_mutex_lock(&part->lock);
    struct taken *t = find(part, own->taken++);
    bool is_last = t != NULL && ++t->used == w->coordinator->workers->replicas;
    if (is_last && (w->coordinator->limit_ns == DTI_NEVER || t->batch == NULL)) {
        struct taken **at = &part->newest;
        while (*at != t)
            at = &(*at)->older;
        *at = t->older;
        t->older = NULL;
        unused = t;
    }
    pthread_mutex_unlock(&part->lock);
    drop_all(unused);
    return status;
}

ditto_status dti_shared_dataset_next(struct dti_replica *r, struct dti_function_worker *w,
                                     struct ditto_shared_dataset *s, ditto_batch *out)
{
    dti_trace_begin(r, DTI_TRACE_INPUT, "ditto_shared_dataset_next", NULL);
    ditto_status status = next_batch(r, w, s, out);
    dti_trace_end(r, status == DITTO_OK ? out->rows * s->pass->dataset->row_bytes : 0);
    return status;
}

/* -- the end of a function -- */

/* Moves the batches to the list. Returns true if the replicas of the worker have called next equally
 * often. */
static bool end_in(const struct ditto_coordinator *c, struct worker_part *part, struct taken **list)
{
    bool is_equal = true;
    for (uint32_t r = 1; r < c->workers->replicas; r++)
        is_equal = is_equal && part->own[r].taken == part->own[0].taken;
    for (uint32_t r = 0; r < c->workers->replicas; r++)
        part->own[r].taken = 0;
    pthread_mutex_lock(&part->lock);
    /* The entries move to the list. */
    for (struct taken *t; (t = part->newest) != NULL; *list = t) {
        part->newest = t->older;
        t->older = *list;
    }
    pthread_mutex_unlock(&part->lock);
    return is_equal;
}

ditto_status dti_shared_datasets_end_function(struct dti_function_worker *w, ditto_status status)
{
    struct ditto_coordinator *c = w->coordinator;
    struct taken *unused = NULL;
    bool is_equal = true;
    if (!atomic_load_explicit(&w->has_taken, memory_order_relaxed))
        return status;
    atomic_store_explicit(&w->has_taken, false, memory_order_relaxed);
    pthread_mutex_lock(&c->lock);
    for (struct ditto_shared_dataset *s = c->shared; s != NULL; s = s->next)
        is_equal = end_in(c, &s->part[w->index], &unused) && is_equal;
    pthread_mutex_unlock(&c->lock);
    drop_all(unused);
    if (is_equal || status < 0)
        return status;
    return DTI_FAIL(
        DITTO_ERR_DIVERGED,
        "the replicas of worker %u have taken different numbers of batches of a shared dataset in "
        "one function: all must call ditto_shared_dataset_next equally often",
        w->index);
}

void dti_shared_datasets_give_back(struct dti_function_worker *w)
{
    struct ditto_coordinator *c = w->coordinator;
    pthread_mutex_lock(&c->lock);
    for (struct ditto_shared_dataset *s = c->shared; s != NULL; s = s->next) {
        pthread_mutex_lock(&s->part[w->index].lock);
        give_all_back(&s->part[w->index]);
        pthread_mutex_unlock(&s->part[w->index].lock);
    }
    pthread_mutex_unlock(&c->lock);
}
