/* src/coordinator/per_worker.c - values and iterators of which each worker has its own. Each worker makes
 * them on its own thread, before its next function. If it cannot make one, the functions that ask for it get
 * the error, and the worker tries again before the function after them. */
#include "base/errors/status.h"
#include "base/errors/user_call.h"
#include "coordinator/coordinator.h"
#include "input/input.h"
#include "replicas/helpers/remote_memory.h"
#include "replicas/team/replica.h"
#include "values/values.h"

#include <stdlib.h>
#include <string.h>

/* What one worker has. */
struct own {
    ditto_tensor value;       /* data is NULL until the worker has made it */
    void *initial;            /* what its elements begin with */
    ditto_iterator *iterator; /* NULL until the worker has made it */

    /* Why the worker could not make it, when it last tried. */
    ditto_status status;
    ditto_error error;
};

struct ditto_per_worker {
    struct ditto_per_worker *next; /* an older one. Guarded by the lock of the coordinator */
    uint32_t makers;               /* workers that make their own now. Guarded by the same lock */
    struct ditto_coordinator *coordinator;
    ditto_dataset_fn make_dataset; /* NULL for values */
    void *user;
    ditto_input_options options;
    struct own *own; /* [workers] */
};

static void release(struct ditto_per_worker *p, uint32_t workers)
{
    for (uint32_t i = 0; p->own != NULL && i < workers; i++)
        free(p->own[i].initial);
    free(p->own);
    free(p);
}

static ditto_status allocate(struct ditto_coordinator *c, struct ditto_per_worker **out)
{
    struct ditto_per_worker *p = calloc(1, sizeof *p);
    if (p != NULL)
        p->own = calloc(c->workers->count, sizeof *p->own);
    if (p == NULL || p->own == NULL) {
        free(p);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the values of %u workers", c->workers->count);
    }
    p->coordinator = c;
    *out = p;
    return DITTO_OK;
}

/* Adds a complete object to the list, where the workers find it. */
static void add(struct ditto_coordinator *c, struct ditto_per_worker *p)
{
    pthread_mutex_lock(&c->lock);
    p->next = c->per_worker;
    c->per_worker = p;
    /* relaxed: the lock guards the list, and the queue orders this before functions that are scheduled
     * later. */
    atomic_fetch_add_explicit(&c->per_worker_serial, 1, memory_order_relaxed);
    pthread_mutex_unlock(&c->lock);
}

/* -- values -- */

static DTI_GUARDED ditto_status call(ditto_value_fn function, void *user, uint32_t worker, uint32_t workers,
                                     ditto_tensor *tensor)
{
    uint32_t serial = dti_this_thread()->errors;
    DTI_GUARD("the function of a per-worker value");
    ditto_status status = function(worker, workers, user, tensor);
    DTI_GUARD_END();
    DTI_TRY(
        dti_function_status(status, serial, "the function of a per-worker value, for worker %u,", worker));
    if (DTI_IS_BELOW_FRAME(tensor->data))
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "the value of worker %u is a local array of the function: give memory that stays valid "
            "until the next call",
            worker);
    return DITTO_OK;
}

static ditto_status make_initial(struct ditto_per_worker *p, uint32_t worker, ditto_value_fn function,
                                 void *user)
{
    ditto_tensor tensor = { 0 };
    size_t bytes;
    DTI_TRY(call(function, user, worker, p->coordinator->count, &tensor));
    DTI_TRY_OF(dti_tensor_check(&tensor, &bytes), "the value of worker %u", worker);
    DTI_TRY_OF(dti_buffer_check(tensor.data, bytes, tensor.dtype, "data"), "the value of worker %u", worker);
    struct own *own = &p->own[worker];
    own->initial = malloc(bytes + 1);
    if (own->initial == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the value of worker %u, %zu bytes", worker,
                        bytes);
    if (bytes != 0)
        memcpy(own->initial, tensor.data, bytes);
    own->value = tensor;
    own->value.data = NULL;
    own->value.device = 0;
    return DITTO_OK;
}

ditto_status dti_per_worker_values(struct ditto_coordinator *c, ditto_value_fn function, void *user,
                                   struct ditto_per_worker **out)
{
    struct ditto_per_worker *p;
    ditto_status status = DITTO_OK;
    DTI_TRY(allocate(c, &p));
    for (uint32_t i = 0; i < c->workers->count && status == DITTO_OK; i++)
        status = make_initial(p, i, function, user);
    if (status != DITTO_OK) {
        release(p, c->workers->count);
        return status;
    }
    add(c, p);
    *out = p;
    return DITTO_OK;
}

/* Allocates the value on the worker's node. */
static ditto_status make_value(struct dti_function_worker *w, struct own *own)
{
    size_t bytes = ditto_tensor_bytes(&own->value);
    DTI_TRY_OF(dti_replica_alloc(dti_team_replica(w->strategy->base.team, 0), bytes + 1, DTI_CACHE_LINE_PAIR,
                                 &own->value.data),
               "the value of worker %u", w->index);
    memcpy(own->value.data, own->initial, bytes);
    return DITTO_OK;
}

/* -- iterators -- */

ditto_status dti_per_worker_datasets(struct ditto_coordinator *c, ditto_dataset_fn function, void *user,
                                     const ditto_input_options *options, struct ditto_per_worker **out)
{
    struct ditto_per_worker *p;
    if (options->num_pipelines != 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "options->num_pipelines is %u, but each worker has one pipeline: leave it 0",
                        options->num_pipelines);
    if (options->state != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "options->state is set, but each worker has a position of its own: begin new passes");
    DTI_TRY(allocate(c, &p));
    p->make_dataset = function;
    p->user = user;
    p->options = *options;
    add(c, p);
    *out = p;
    return DITTO_OK;
}

struct making {
    const struct ditto_per_worker *per_worker;
    const struct dti_function_worker *worker;
};

/* Calls the program's function with the context of the worker among all. */
static ditto_status make_dataset(const ditto_input_context *one, void *user, ditto_dataset **out)
{
    const struct making *m = user;
    const struct ditto_coordinator *c = m->worker->coordinator;
    ditto_input_context context = { .num_pipelines = c->count,
                                    .pipeline = m->worker->index,
                                    .num_replicas = c->count * c->workers->replicas };
    (void)one;
    return m->per_worker->make_dataset(&context, m->per_worker->user, out);
}

static ditto_status make_iterator(struct dti_function_worker *w, const struct ditto_per_worker *p,
                                  struct own *own)
{
    struct making making = { p, w };
    DTI_TRY_OF(DTI_OWN(ditto_strategy_iterate_from_function(w->strategy, make_dataset, &making, &p->options,
                                                            &own->iterator)),
               "the dataset of worker %u", w->index);
    /* relaxed: only this worker writes it. */
    atomic_store_explicit(&w->iterators, atomic_load_explicit(&w->iterators, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    return DITTO_OK;
}

/* -- for the workers -- */

bool dti_per_worker_lacks(const struct dti_function_worker *w)
{
    /* relaxed, both: see add, and dti_per_worker_fail. */
    return atomic_load_explicit(&w->coordinator->per_worker_serial, memory_order_relaxed) !=
           atomic_load_explicit(&w->per_worker_serial, memory_order_relaxed);
}

static bool has_own(const struct ditto_per_worker *p, const struct own *own)
{
    return p->make_dataset == NULL ? own->value.data != NULL : own->iterator != NULL;
}

/* Returns the first object after `before` that the worker lacks, or NULL. It is not destroyed until the next
 * call, so making takes place without the lock. */
static struct ditto_per_worker *next_lacking(struct dti_function_worker *w, struct ditto_per_worker *before)
{
    struct ditto_coordinator *c = w->coordinator;
    pthread_mutex_lock(&c->lock);
    struct ditto_per_worker *p = before != NULL ? before->next : c->per_worker;
    while (p != NULL && has_own(p, &p->own[w->index]))
        p = p->next;
    if (p != NULL)
        p->makers++;
    if (before != NULL)
        before->makers--;
    pthread_mutex_unlock(&c->lock);
    return p;
}

void dti_per_worker_make(struct dti_function_worker *w)
{
    uint64_t serial = atomic_load_explicit(&w->coordinator->per_worker_serial, memory_order_relaxed);
    for (struct ditto_per_worker *p = next_lacking(w, NULL); p != NULL; p = next_lacking(w, p)) {
        struct own *own = &p->own[w->index];
        own->status = p->make_dataset == NULL ? make_value(w, own) : make_iterator(w, p, own);
        if (own->status != DITTO_OK)
            own->error = *dti_error_get();
    }
    atomic_store_explicit(&w->per_worker_serial, serial, memory_order_relaxed);
}

/* -- destroying -- */

/* Frees the object, which is in no list. Returns an error if another thread is in a call on an iterator. The
 * object then keeps what is left. */
static ditto_status destroy(struct ditto_per_worker *p)
{
    struct ditto_coordinator *c = p->coordinator;
    for (uint32_t i = 0; i < c->workers->count; i++) {
        struct own *own = &p->own[i];
        DTI_TRY(DTI_OWN(ditto_iterator_destroy(own->iterator)));
        own->iterator = NULL;
        if (p->make_dataset == NULL)
            dti_replica_free_remote(dti_team_replica(c->worker[i].strategy->base.team, 0), own->value.data);
    }
    release(p, c->workers->count);
    return DITTO_OK;
}

/* A worker that makes its own has a function, or is late. `makers` covers a function that another thread
 * schedules during this call. */
ditto_status dti_per_worker_destroy(struct ditto_per_worker *p)
{
    struct ditto_coordinator *c = p->coordinator;
    pthread_mutex_lock(&c->lock);
    bool is_free = !dti_coordinator_is_in_use(c) && p->makers == 0;
    struct ditto_per_worker **at = &c->per_worker;
    while (is_free && *at != p)
        at = &(*at)->next;
    if (is_free)
        *at = p->next;
    pthread_mutex_unlock(&c->lock);
    if (!is_free)
        return DTI_FAIL(DITTO_ERR_BUSY,
                        "functions are in the queue or being executed, and may use the per-worker object: "
                        "destroy it after ditto_coordinator_join");
    ditto_status status = destroy(p);
    if (status != DITTO_OK)
        add(c, p);
    return status;
}

void dti_per_worker_free(struct ditto_coordinator *c, bool lost)
{
    ditto_error kept = *dti_error_get();
    for (struct ditto_per_worker *p = c->per_worker, *next; p != NULL && !lost; p = next) {
        next = p->next;
        (void)destroy(p);
    }
    dti_error_set(&kept);
}

/* -- for the functions -- */

ditto_status dti_per_worker_fail(const struct ditto_per_worker *p, struct dti_function_worker *w)
{
    const struct own *own = &p->own[w->index];
    if (own->status == DITTO_OK)
        return DTI_FAIL(DITTO_ERR_CONTEXT, "per_worker was created after this function had begun: schedule "
                                           "functions that use it later");
    ditto_error error = own->error;
    error.function = dti_this_thread()->function;
    error.replica = dti_this_thread()->replica;
    dti_error_set(&error);
    /* The worker will look for what it lacks. relaxed: the end of the run orders it before that. */
    atomic_store_explicit(&w->per_worker_serial, 0, memory_order_relaxed);
    return own->status;
}

const ditto_tensor *dti_per_worker_value_of(const struct ditto_per_worker *p,
                                            const struct dti_function_worker *w)
{
    return p->make_dataset == NULL ? &p->own[w->index].value : NULL;
}

ditto_iterator *dti_per_worker_iterator_of(const struct ditto_per_worker *p,
                                           const struct dti_function_worker *w)
{
    return p->own[w->index].iterator;
}

struct ditto_coordinator *dti_per_worker_coordinator(const struct ditto_per_worker *p)
{
    return p->coordinator;
}
