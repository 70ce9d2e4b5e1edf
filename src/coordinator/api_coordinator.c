/* src/coordinator/api_coordinator.c - the functions of include/ditto/coordinator.h, which check their
 * arguments and context. */
#include "base/errors/status.h"
#include "base/types/types.h"
#include "base/waiting/fork.h"
#include "coordinator/coordinator.h"
#include "coordinator/remote.h"
#include "input/input.h"
#include "replicas/team/turn.h"
#include "values/values.h"

/* -- functions with names -- */

ditto_status ditto_function_register(const char *name, ditto_replica_fn function, void *user)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(name, "name"));
    if (function == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "function is NULL: give the function that workers execute as \"%.100s\"", name);
    return dti_function_register(name, function, user);
}

ditto_status ditto_function_unregister(const char *name)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(name, "name"));
    return dti_function_unregister(name);
}

/* -- coordinators -- */

ditto_status ditto_coordinator_create(ditto_strategy *strategy, const ditto_coordinator_options *options,
                                      ditto_coordinator **out)
{
    ditto_coordinator_options known;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_coordinator_options"));
    if (strategy->workers == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "a strategy of kind \"%s\" has no workers: create one of kind DITTO_PARAMETER_SERVER",
                        strategy->kind->name);
    if (known.queue_capacity > DITTO_MAX_SCHEDULED)
        return DTI_FAIL(DITTO_ERR_RANGE, "queue_capacity = %u: at most %u", known.queue_capacity,
                        DITTO_MAX_SCHEDULED);
    DTI_TRY(dti_context_check_cross(dti_team_of(strategy)));
    DTI_TRY(dti_team_check_usable(dti_team_of(strategy)));
    return dti_coordinator_create(strategy, &known, out);
}

ditto_status ditto_coordinator_destroy(ditto_coordinator *coordinator)
{
    DTI_ENTER();
    return coordinator != NULL ? dti_coordinator_destroy(coordinator) : DITTO_OK;
}

/* Enters the gate of the coordinator for a call that may wait. *held is the gate to leave. */
static ditto_status enter(ditto_coordinator *c, struct dti_gate **held)
{
    DTI_TRY(dti_not_null(c, "coordinator"));
    if (dti_process_differs(c->process))
        return dti_fail_forked();
    /* Before the gate, so that a call in a function does not wait for a destroy that waits for this
     * function. */
    DTI_TRY(dti_context_check_cross(c->strategy->base.team));
    *held = &c->gate;
    if (!dti_gate_enter(&c->gate))
        return DTI_FAIL(DITTO_ERR_CONTEXT, "the coordinator has been destroyed");
    return DITTO_OK;
}

#define ENTER_COORDINATOR(c)      \
    DTI_LEAVES_GATE(held_, NULL); \
    DTI_TRY(enter((c), &held_))

ditto_status ditto_coordinator_schedule(ditto_coordinator *coordinator, const char *name,
                                        const ditto_value *arguments, const ditto_schedule_options *options,
                                        ditto_remote **out)
{
    ditto_schedule_options known;
    DTI_ENTER_QUICKLY();
    ENTER_COORDINATOR(coordinator);
    DTI_TRY(dti_not_null(name, "name"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_schedule_options"));
    if (arguments != NULL)
        DTI_TRY(dti_value_check_own(arguments, coordinator->strategy, "arguments"));
    if (known.argument != NULL) {
        size_t bytes;
        if (arguments != NULL)
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "arguments and options->argument are both given: add the tensor to arguments");
        DTI_TRY_OF(dti_tensor_check(known.argument, &bytes), "options->argument");
        DTI_TRY_OF(dti_buffer_check(known.argument->data, bytes, known.argument->dtype, "data"),
                   "options->argument");
    }
    return dti_schedule(coordinator, name, arguments, &known, out);
}

ditto_status ditto_coordinator_join(ditto_coordinator *coordinator)
{
    DTI_ENTER();
    ENTER_COORDINATOR(coordinator);
    return dti_join(coordinator);
}

ditto_status ditto_coordinator_done(ditto_coordinator *coordinator, int *done)
{
    bool is_done = false;
    DTI_ENTER();
    ENTER_COORDINATOR(coordinator);
    DTI_TRY(dti_not_null(done, "done"));
    DTI_TRY(dti_done(coordinator, &is_done));
    *done = is_done;
    return DITTO_OK;
}

ditto_status ditto_coordinator_interrupt(ditto_coordinator *coordinator)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(coordinator, "coordinator"));
    if (dti_process_differs(coordinator->process))
        return dti_fail_forked();
    /* relaxed: it guards no other data, and the signal has a fence */
    atomic_fetch_add_explicit(&coordinator->interrupts, 1, memory_order_relaxed);
    dti_signal_callers(coordinator);
    return DITTO_OK;
}

/* -- results -- */

/* Waits for a result that is not final. It is final when the coordinator has been destroyed, except that of a
 * coordinator of the parent process. */
static ditto_status wait_for(const ditto_remote *remote)
{
    ditto_coordinator *c = remote->coordinator;
    if (dti_remote_is_final(remote))
        return DITTO_OK;
    if (dti_process_differs(c->process))
        return dti_fail_forked();
    DTI_LEAVES_GATE(held, &c->gate);
    return !dti_gate_enter(&c->gate) || dti_remote_is_final(remote) ? DITTO_OK
                                                                    : dti_wait_for_remote(c, remote);
}

ditto_status ditto_remote_fetch(ditto_remote *remote, ditto_value **out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(remote, "remote"));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_HOLD_VALUE(remote->anchor, held);
    DTI_TRY(dti_context_check_cross(dti_team_of(remote->anchor->strategy)));
    DTI_TRY(wait_for(remote));
    if (!dti_remote_is_final(remote))
        return DTI_FAIL(DITTO_ERR_TIMED_OUT, "the function has not ended, and its coordinator was destroyed");
    if (atomic_load_explicit(&remote->state, memory_order_acquire) == DTI_REMOTE_CANCELLED)
        return DTI_FAIL(
            DITTO_ERR_CANCELLED,
            "the function was cancelled before it began: schedule it again if it is still needed");
    if (remote->status < 0) {
        dti_error_set(&remote->error);
        return dti_own(remote->status);
    }
    *out = NULL;
    if (remote->result != NULL)
        DTI_TRY(dti_copied_value(remote->anchor->strategy, remote->result, false, out));
    return remote->status;
}

ditto_status ditto_remote_test(ditto_remote *remote, int *done)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(remote, "remote"));
    DTI_TRY(dti_not_null(done, "done"));
    ditto_coordinator *c = remote->coordinator;
    /* A program that only polls learns of a late worker here. The gate is entered only if there is one, so
     * that ditto_coordinator_destroy seldom finds this call. If it is not open, destroy looks itself. */
    if (!dti_remote_is_final(remote) && !dti_process_differs(c->process) && dti_is_any_late(c)) {
        if (dti_gate_try(&c->gate))
            dti_retire_late(c);
        dti_gate_leave(&c->gate);
    }
    *done = dti_remote_is_final(remote);
    return DITTO_OK;
}

ditto_status ditto_remote_cancel(ditto_remote *remote)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(remote, "remote"));
    if (dti_process_differs(remote->coordinator->process))
        return dti_fail_forked();
    if (dti_remote_cancel(remote) ||
        atomic_load_explicit(&remote->state, memory_order_acquire) == DTI_REMOTE_CANCELLED)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_BUSY,
                    "a worker has begun the function already: it can't be cancelled any more");
}

ditto_status ditto_remote_destroy(ditto_remote *remote)
{
    dti_remote_drop(remote);
    return DITTO_OK;
}

/* -- workers -- */

ditto_status ditto_coordinator_worker_info(const ditto_coordinator *c, uint32_t worker,
                                           ditto_worker_info *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(c, "coordinator"));
    DTI_TRY(dti_result_check(out, "ditto_worker_info"));
    if (worker >= c->count)
        return DTI_FAIL(DITTO_ERR_RANGE, "worker %u does not exist: the coordinator has %u", worker,
                        c->count);
    ditto_worker_info found;
    dti_worker_observe(&c->worker[worker], &found);
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

ditto_status ditto_coordinator_stats(const ditto_coordinator *coordinator, ditto_coordinator_counters *out)
{
    ditto_coordinator_counters found;
    DTI_ENTER();
    DTI_TRY(dti_not_null(coordinator, "coordinator"));
    DTI_TRY(dti_result_check(out, "ditto_coordinator_counters"));
    dti_coordinator_observe(coordinator, &found);
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

ditto_status ditto_coordinator_values_from_function(ditto_coordinator *coordinator, ditto_value_fn function,
                                                    void *user, ditto_per_worker **out)
{
    DTI_ENTER();
    ENTER_COORDINATOR(coordinator);
    if (function == NULL)
        return dti_fail_null("function");
    DTI_TRY(dti_not_null(out, "out"));
    return dti_per_worker_values(coordinator, function, user, out);
}

ditto_status ditto_coordinator_datasets_from_function(ditto_coordinator *coordinator,
                                                      ditto_dataset_fn function, void *user,
                                                      const ditto_input_options *options,
                                                      ditto_per_worker **out)
{
    ditto_input_options known;
    DTI_ENTER();
    ENTER_COORDINATOR(coordinator);
    if (function == NULL)
        return dti_fail_null("function");
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_input_options"));
    return dti_per_worker_datasets(coordinator, function, user, &known, out);
}

ditto_status ditto_per_worker_destroy(ditto_per_worker *per_worker)
{
    DTI_ENTER();
    /* In a child process after fork the memory stays, as that of the coordinator does. */
    if (per_worker == NULL || dti_process_differs(dti_per_worker_coordinator(per_worker)->process))
        return DITTO_OK;
    ENTER_COORDINATOR(dti_per_worker_coordinator(per_worker));
    return dti_per_worker_destroy(per_worker);
}

/* -- shared datasets -- */

ditto_status ditto_coordinator_shared_dataset(ditto_coordinator *coordinator, ditto_dataset *dataset,
                                              const ditto_input_options *options, ditto_shared_dataset **out)
{
    ditto_input_options known;
    DTI_ENTER();
    ENTER_COORDINATOR(coordinator);
    DTI_TRY(dti_not_null(dataset, "dataset"));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_input_options"));
    return dti_shared_dataset_create(coordinator, dataset, &known, out);
}

ditto_status ditto_shared_dataset_save(ditto_shared_dataset *shared, void **state, size_t *bytes)
{
    struct dti_bytes written = { 0 };
    DTI_ENTER();
    DTI_TRY(dti_not_null(shared, "shared"));
    if (dti_shared_dataset_is_detached(shared))
        return DTI_FAIL(DITTO_ERR_CONTEXT, "the coordinator of the shared dataset has been destroyed");
    ENTER_COORDINATOR(dti_shared_dataset_coordinator(shared));
    DTI_TRY(dti_not_null((const void *)state, "state"));
    DTI_TRY(dti_not_null(bytes, "bytes"));
    ditto_status status = dti_shared_dataset_save(shared, &written);
    if (status != DITTO_OK) {
        dti_bytes_free(&written);
        return status;
    }
    *state = written.data;
    *bytes = written.length;
    return DITTO_OK;
}

ditto_status ditto_shared_dataset_destroy(ditto_shared_dataset *shared)
{
    DTI_ENTER();
    if (shared == NULL)
        return DITTO_OK;
    /* In a child process after fork the memory stays, as that of the coordinator does. */
    if (dti_process_differs(dti_shared_dataset_coordinator(shared)->process))
        return DITTO_OK;
    if (!dti_shared_dataset_is_detached(shared)) {
        ENTER_COORDINATOR(dti_shared_dataset_coordinator(shared));
        return dti_shared_dataset_destroy(shared);
    }
    dti_shared_dataset_free_detached(shared);
    return DITTO_OK;
}

/* -- in functions -- */

/* Finds the worker of the coordinator, whose function the calling replica executes. `what` belongs to the
 * coordinator. */
static ditto_status find_worker(const struct dti_replica *r, const struct ditto_coordinator *c,
                                const char *what, struct dti_function_worker **out)
{
    *out = dti_team_strategy(r->team)->worker;
    if (*out == NULL || (*out)->coordinator != c)
        return DTI_FAIL(DITTO_ERR_CONTEXT,
                        "this function is not executed by a worker of the coordinator that %s belongs to",
                        what);
    return DITTO_OK;
}

static ditto_status find_own(ditto_replica *self, const struct ditto_per_worker *p,
                             struct dti_function_worker **out)
{
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_TRY(dti_not_null(p, "per_worker"));
    return find_worker(r, dti_per_worker_coordinator(p), "per_worker", out);
}

ditto_status ditto_shared_dataset_next(ditto_replica *self, ditto_shared_dataset *shared, ditto_batch *out)
{
    struct dti_replica *r;
    struct dti_function_worker *w;
    DTI_ENTER();
    DTI_TRY(dti_self(self, &r));
    DTI_TRY(dti_not_null(shared, "shared"));
    DTI_TRY(find_worker(r, dti_shared_dataset_coordinator(shared), "the shared dataset", &w));
    DTI_TRY(dti_not_null(out, "out"));
    if (dti_replica_is_forked(r))
        return dti_fail_forked();
    return dti_shared_dataset_next(r, w, shared, out);
}

ditto_status ditto_worker_value(ditto_replica *self, ditto_per_worker *per_worker, ditto_tensor *out)
{
    struct dti_function_worker *w;
    DTI_ENTER_QUICKLY();
    DTI_TRY(find_own(self, per_worker, &w));
    DTI_TRY(dti_not_null(out, "out"));
    const ditto_tensor *value = dti_per_worker_value_of(per_worker, w);
    if (value == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "per_worker has iterators: call ditto_worker_iterator");
    if (value->data == NULL)
        return dti_per_worker_fail(per_worker, w);
    *out = *value;
    return DITTO_OK;
}

ditto_status ditto_worker_iterator(ditto_replica *self, ditto_per_worker *per_worker, ditto_iterator **out)
{
    struct dti_function_worker *w;
    DTI_ENTER_QUICKLY();
    DTI_TRY(find_own(self, per_worker, &w));
    DTI_TRY(dti_not_null(out, "out"));
    if (dti_per_worker_value_of(per_worker, w) != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "per_worker has values: call ditto_worker_value");
    if (dti_per_worker_iterator_of(per_worker, w) == NULL)
        return dti_per_worker_fail(per_worker, w);
    *out = dti_per_worker_iterator_of(per_worker, w);
    return DITTO_OK;
}

uint32_t ditto_worker(const ditto_replica *self)
{
    const struct dti_replica *r = dti_self_in("ditto_worker", self);
    const struct dti_function_worker *w = r != NULL ? dti_team_strategy(r->team)->worker : NULL;
    return w != NULL ? w->index : UINT32_MAX;
}
