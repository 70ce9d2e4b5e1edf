/* src/values/buffer_pool.c - see buffer_pool.h. */
#include "values/buffer_pool.h"

#define LOOKS 16 /* at components that may be large enough */

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

/* Of the first few, the smallest that has room, out of its list; NULL: none. */
static struct dti_value_buffer *find(struct dti_locker *locker, size_t bytes)
{
    struct dti_value_buffer **at = &locker->large, **best = NULL;
    if (is_small(bytes))
        return take_out(&locker->small);
    for (int look = 0; *at != NULL && look < LOOKS; look++, at = &(*at)->next)
        if ((*at)->room >= bytes && (best == NULL || (*at)->room < (*best)->room))
            best = at;
    return best != NULL ? take_out(best) : NULL;
}

static void collect_returned(struct dti_locker *locker)
{
    struct dti_value_buffer *list =
        atomic_exchange_explicit(&locker->returned, NULL, memory_order_acquire); /* of dti_value_buffer_give */
    while (list != NULL) {
        struct dti_value_buffer *next = list->next, **own = list->room == 0 ? &locker->small : &locker->large;
        list->next = *own;
        *own = list;
        list = next;
    }
}

static ditto_status make(struct dti_locker *locker, struct dti_value_buffer **out)
{
    void *memory;
    DTI_TRY(dti_replica_alloc(locker->replica, sizeof **out, DTI_CACHE_LINE, &memory));
    locker->allocations++;
    *out = memory;
    **out = (struct dti_value_buffer){ .locker = locker };
    return DITTO_OK;
}

static ditto_status grow(struct dti_value_buffer *c, size_t bytes)
{
    struct dti_replica *r = c->locker->replica;
    dti_arena_free(r->arena, c->memory);
    c->memory = NULL;
    c->room = 0;
    DTI_TRY(dti_replica_alloc(r, bytes, DTI_CACHE_LINE, &c->memory));
    c->locker->allocations++;
    c->room = bytes;
    return DITTO_OK;
}

ditto_status dti_value_buffer_take(struct dti_locker *locker, size_t bytes, struct dti_value_buffer **out, void **data)
{
    struct dti_value_buffer *c = find(locker, bytes);
    if (c == NULL) {
        collect_returned(locker);
        c = find(locker, bytes);
    }
    if (c == NULL &&
        !is_small(bytes)) /* one that is kept and too small grows, rather than that there are more and more */
        c = take_out(&locker->large);
    if (c == NULL)
        DTI_TRY(make(locker, &c));
    if (!is_small(bytes) && c->room < bytes) {
        ditto_status status = grow(c, bytes);
        if (status != DITTO_OK) {
            dti_value_buffer_give(c);
            return status;
        }
    }
    *out = c;
    *data = is_small(bytes) ? c->small : c->memory;
    return DITTO_OK;
}

void dti_value_buffer_give(struct dti_value_buffer *component)
{
    if (component == NULL)
        return;
    _Atomic(struct dti_value_buffer *) *stack = &component->locker->returned;
    struct dti_value_buffer *top = atomic_load_explicit(stack, memory_order_relaxed); /* not looked into */
    do
        component->next = top;
    while (!atomic_compare_exchange_weak_explicit(stack, &top, component,
                                                  memory_order_release, /* to collect_returned */
                                                  memory_order_relaxed));
}

ditto_status dti_results_begin(struct dti_locker *locker, uint32_t level)
{
    void *memory;
    if (locker->results[level] == NULL) {
        DTI_TRY(dti_replica_alloc(locker->replica, sizeof **locker->results, DTI_CACHE_LINE, &memory));
        locker->results[level] = memory;
        locker->results[level]->locker = locker;
    }
    locker->results[level]->count = 0;
    return DITTO_OK;
}

void dti_results_drop(struct dti_results *results)
{
    for (uint32_t i = 0; results != NULL && i < results->count; i++)
        dti_value_buffer_give(results->result[i].component);
    if (results != NULL)
        results->count = 0;
}
