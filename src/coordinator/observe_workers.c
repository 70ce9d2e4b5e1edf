/* src/coordinator/observe_workers.c - what the workers and the queue of a coordinator have done. */
#include "base/observe.h"
#include "base/text/text.h"
#include "coordinator/coordinator.h"

#include <string.h>

/* All loads are relaxed, because the numbers are only reported, and may change meanwhile. */
static uint64_t number(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void dti_depth_seen(struct ditto_coordinator *c, uint64_t ticket)
{
    uint64_t popped = dti_function_queue_popped(&c->queue), largest = number(&c->largest_depth);
    uint64_t depth = ticket + 1 > popped ? ticket + 1 - popped : 0; /* a worker may have it already */
    atomic_fetch_add_explicit(&c->depth_histogram[dti_histogram_range(depth)], 1, memory_order_relaxed);
    while (depth > largest &&
           !atomic_compare_exchange_weak_explicit(&c->largest_depth, &largest, depth, memory_order_relaxed,
                                                  memory_order_relaxed))
        ; /* another thread that schedules has changed it */
}

/* The time since a moment, or 0 if another thread has stored a later one meanwhile. */
static uint64_t since(const _Atomic uint64_t *moment, uint64_t now)
{
    uint64_t began = number(moment);
    return now > began ? now - began : 0;
}

/* Returns how long the worker had no function. When a function begins, the worker reads the clock, and only
 * then stores that it is no longer idle (see `idle` in coordinator.h). A report between the two is too long,
 * and the next one would be shorter. So the longest time that was reported is kept, and no report is below
 * it. */
static uint64_t idle_time(const struct dti_function_worker *w)
{
    /* acquire: pairs with the release in worker.c, so that the clock is read after the worker has read it. */
    uint64_t idle = atomic_load_explicit(&w->idle, memory_order_acquire);
    uint64_t time = (idle & 1) != 0 ? ((idle >> 1) + dti_now_ns()) & (UINT64_MAX >> 1) : idle >> 1;
    /* The worker is const for the caller, but it keeps the longest time that was reported. */
    _Atomic uint64_t *longest = (_Atomic uint64_t *)(uintptr_t)&w->reported_idle;
    uint64_t reported = number(longest);
    while (time > reported && !atomic_compare_exchange_weak_explicit(
                                  longest, &reported, time, memory_order_relaxed, memory_order_relaxed))
        ; /* another thread has reported a time meanwhile */
    return time > reported ? time : reported;
}

void dti_worker_observe(const struct dti_function_worker *w, ditto_worker_info *out)
{
    uint64_t state = number(&w->state) & 3;
    bool has_left = atomic_load_explicit(&w->has_left, memory_order_relaxed);
    uint32_t replicas = w->coordinator->workers->replicas;
    *out = (ditto_worker_info){
        .first_replica = w->index * replicas,
        .num_replicas = replicas,
        .is_retired = state == DTI_WORKER_RETIRED,
        .is_busy = dti_has_function(state) || (state == DTI_WORKER_RETIRED && !has_left),
        .functions = number(&w->functions),
        .busy_ns = number(&w->busy_ns),
        .iterators = number(&w->iterators),
        .idle_ns = idle_time(w),
    };
}

/* Returns the number of functions in the queue, with those that retired workers have given back. */
static uint64_t depth_of(const struct ditto_coordinator *c)
{
    uint64_t popped = dti_function_queue_popped(&c->queue), pushed = dti_function_queue_pushed(&c->queue);
    return (pushed > popped ? pushed - popped : 0) +
           atomic_load_explicit(&c->num_returned, memory_order_relaxed);
}

void dti_coordinator_observe(const struct ditto_coordinator *c, ditto_coordinator_counters *out)
{
    uint64_t ended = dti_finished(c); /* before the pushes, so that it is not larger */
    *out = (ditto_coordinator_counters){
        .elapsed_ns = dti_now_ns() - c->began_ns,
        .scheduled = dti_function_queue_pushed(&c->queue),
        .ended = ended,
        .depth = depth_of(c),
        .largest_depth = number(&c->largest_depth),
        .num_workers = c->count,
        .num_retired = atomic_load_explicit(&c->retired, memory_order_relaxed),
        .cancelled = number(&c->cancelled),
        .positive = number(&c->positive),
    };
    if (out->depth > out->largest_depth)
        out->largest_depth = out->depth;
    for (uint32_t i = 0; i < DITTO_HISTOGRAM_LENGTH; i++)
        out->depth_histogram[i] = number(&c->depth_histogram[i]);
    for (uint32_t i = 0; i < c->count; i++) {
        ditto_worker_info info;
        dti_worker_observe(&c->worker[i], &info);
        out->functions += info.functions;
        out->busy_ns += info.busy_ns;
        out->idle_ns += info.idle_ns;
    }
}

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

bool dti_worker_executes(const struct dti_function_worker *w, char name[DITTO_MAX_FUNCTION_NAME_BYTES + 1])
{
    uint64_t state = atomic_load_explicit(&w->state, memory_order_acquire); /* pairs with begin in worker.c */
    for (uint32_t i = 0; i < sizeof w->name / sizeof w->name[0]; i++) {
        uint64_t word = atomic_load_explicit(&w->name[i], memory_order_acquire); /* pairs with set_name */
        memcpy(name + i * sizeof word, &word, sizeof word);
    }
    name[DITTO_MAX_FUNCTION_NAME_BYTES] = '\0';
    return (state & 3) != DTI_WORKER_FREE && number(&w->state) == state &&
           !atomic_load_explicit(&w->has_left, memory_order_relaxed);
}

static void diagnose_worker(const struct dti_function_worker *w, struct dti_text *text)
{
    ditto_worker_info info;
    char name[DITTO_MAX_FUNCTION_NAME_BYTES + 1];
    bool executes = dti_worker_executes(w, name);
    dti_worker_observe(w, &info);
    dti_text_add(text, "worker %u: ", w->index);
    if (info.is_busy && executes)
        dti_text_add(text, "%s \"%s\" for %.1f ms, ",
                     (atomic_load_explicit(&w->state, memory_order_relaxed) & 3) == DTI_WORKER_MAKING
                         ? "makes what it lacks for"
                         : "executes",
                     name, ms(since(&w->began_at_ns, dti_lived_ns())));
    dti_text_add(text, "%s%llu functions, busy %.1f ms, idle %.1f ms\n",
                 info.is_retired ? "retired, "
                 : info.is_busy  ? ""
                                 : "idle, ",
                 (unsigned long long)info.functions, ms(info.busy_ns), ms(info.idle_ns));
}

void dti_coordinator_diagnose(const struct ditto_coordinator *c, struct dti_text *text)
{
    ditto_coordinator_counters all;
    dti_coordinator_observe(c, &all);
    dti_text_add(
        text, "queue: %llu functions, most %llu; %llu scheduled, %llu ended, %llu of them cancelled\n",
        (unsigned long long)all.depth, (unsigned long long)all.largest_depth,
        (unsigned long long)all.scheduled, (unsigned long long)all.ended, (unsigned long long)all.cancelled);
    for (uint32_t i = 0; i < c->count; i++)
        diagnose_worker(&c->worker[i], text);
}
