/* src/values/buffer_pool.c - takes buffers from the pool of a replica and gives them back, see
 * buffer_pool.h. */
#include "values/buffer_pool.h"
#include "replicas/memory/arena.h"

#define CHECKS 16 /* the most buffers that are compared in search of a large one */

static bool is_small(size_t bytes)
{
    return bytes <= sizeof((struct dti_value_buffer *)0)->small;
}

static struct dti_value_buffer *take_out(struct dti_value_buffer **at)
{
    struct dti_value_buffer *found = *at;
    if (found != NULL)
        *at = found->next;
    return found;
}

/* Takes a small buffer if that is enough. Otherwise takes the smallest buffer that is large enough among the
 * first CHECKS of the list of large ones. Returns NULL if there is none. */
static struct dti_value_buffer *find(struct dti_buffer_pool *pool, size_t bytes)
{
    struct dti_value_buffer **at = &pool->large, **best = NULL;
    if (is_small(bytes))
        return take_out(&pool->small);
    for (int check = 0; *at != NULL && check < CHECKS; check++, at = &(*at)->next)
        if ((*at)->capacity >= bytes && (best == NULL || (*at)->capacity < (*best)->capacity))
            best = at;
    return best != NULL ? take_out(best) : NULL;
}

ditto_status dti_value_buffer_take(struct dti_buffer_pool *pool, size_t bytes, struct dti_value_buffer **out,
                                   void **data)
{
    struct dti_value_buffer *c = find(pool, bytes);
    if (c == NULL) {
        /* acquire: the partner is the release in dti_value_buffer_give. */
        struct dti_value_buffer *list = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
        while (list != NULL) {
            struct dti_value_buffer *next = list->next,
                                    **head = list->capacity == 0 ? &pool->small : &pool->large;
            list->next = *head;
            *head = list;
            list = next;
        }
        c = find(pool, bytes);
    }
    /* A large buffer that is too small gets larger memory. Otherwise the number of buffers would grow. */
    if (c == NULL && !is_small(bytes))
        c = take_out(&pool->large);
    if (c == NULL) {
        void *memory;
        DTI_TRY(dti_replica_alloc(pool->replica, sizeof *c, DTI_CACHE_LINE, &memory));
        pool->allocations++;
        c = memory;
        *c = (struct dti_value_buffer){ .pool = pool };
    }
    if (!is_small(bytes) && c->capacity < bytes) {
        dti_arena_free(pool->replica->arena, c->memory);
        c->memory = NULL;
        c->capacity = 0;
        ditto_status status = dti_replica_alloc(pool->replica, bytes, DTI_CACHE_LINE, &c->memory);
        if (status != DITTO_OK) {
            dti_value_buffer_give(c);
            return status;
        }
        pool->allocations++;
        c->capacity = bytes;
    }
    *out = c;
    *data = is_small(bytes) ? c->small : c->memory;
    return DITTO_OK;
}

void dti_value_buffer_give(struct dti_value_buffer *component)
{
    if (component == NULL)
        return;
    _Atomic(struct dti_value_buffer *) *stack = &component->pool->returned;
    /* relaxed: the buffer at `top` is not read. */
    struct dti_value_buffer *top = atomic_load_explicit(stack, memory_order_relaxed);
    /* release: the partner is the acquire in dti_value_buffer_take. */
    do
        component->next = top;
    while (!atomic_compare_exchange_weak_explicit(stack, &top, component, memory_order_release,
                                                  memory_order_relaxed));
}

ditto_status dti_results_begin(struct dti_buffer_pool *pool, uint32_t level)
{
    void *memory;
    if (pool->results[level] == NULL) {
        DTI_TRY(dti_replica_alloc(pool->replica, sizeof **pool->results, DTI_CACHE_LINE, &memory));
        pool->results[level] = memory;
        pool->results[level]->pool = pool;
    }
    pool->results[level]->count = 0;
    return DITTO_OK;
}

void dti_results_drop(struct dti_results *results)
{
    for (uint32_t i = 0; results != NULL && i < results->count; i++)
        dti_value_buffer_give(results->result[i].component);
    if (results != NULL)
        results->count = 0;
}
