/* tests/base/errors/test_error_function.c - the claims of src/base/errors/status.h: an error names the public
 * function that the user called, even if it happened on another thread. */
#include "support/support.h"

#include <dirent.h>

static ditto_status nothing(ditto_replica *self, void *user)
{
    return DITTO_OK;
}

/* Objects of the tests. Functions of ON_REPLICAS get some of them on a replica, where these functions must
 * fail. */
static ditto_strategy *strategy;
static ditto_variable *variable;
static ditto_optimizer *optimizer;
static ditto_dataset *dataset;
static ditto_iterator *iterator;
static ditto_value *value;
static ditto_grouping *grouping;

/* -- every public function that can fail, called so that it fails at once -- */

#define ON_REPLICAS(X)                      \
    X(ditto_strategy_destroy, (strategy))   \
    X(ditto_variable_destroy, (variable))   \
    X(ditto_optimizer_destroy, (optimizer)) \
    X(ditto_iterator_destroy, (iterator))   \
    X(ditto_value_destroy, (value))         \
    X(ditto_grouping_destroy, (grouping))   \
    X(ditto_set_default, (NULL))

#define EVERYWHERE(X)                                                                          \
    X(ditto_barrier, (NULL, NULL))                                                             \
    X(ditto_all_reduce, (NULL, NULL, NULL, 0, DITTO_F64, DITTO_SUM, NULL))                     \
    X(ditto_all_reduce_list, (NULL, NULL, 0, DITTO_SUM, NULL))                                 \
    X(ditto_all_reduce_with, (NULL, NULL, NULL, 0, 0, NULL, NULL, NULL))                       \
    X(ditto_all_reduce_through, (NULL, NULL, NULL, 0, DITTO_F64, DITTO_SUM, NULL, NULL, NULL)) \
    X(ditto_reduce_to_root, (NULL, NULL, NULL, 0, DITTO_F64, DITTO_SUM, 0, NULL))              \
    X(ditto_broadcast_from_root, (NULL, NULL, 0, DITTO_F64, 0, NULL))                          \
    X(ditto_reduce_scatter, (NULL, NULL, NULL, 0, NULL, DITTO_F64, DITTO_SUM, NULL))           \
    X(ditto_all_gather, (NULL, NULL, NULL, 0, NULL, DITTO_F64, NULL))                          \
    X(ditto_gather_to_root, (NULL, NULL, NULL, 0, NULL, NULL, DITTO_F64, 0, NULL))             \
    X(ditto_scatter_from_root, (NULL, NULL, NULL, 0, NULL, NULL, DITTO_F64, 0, NULL))          \
    X(ditto_all_to_all, (NULL, NULL, NULL, 0, NULL, DITTO_F64, NULL))                          \
    X(ditto_scan, (NULL, NULL, NULL, 0, DITTO_F64, DITTO_SUM, NULL))                           \
    X(ditto_scan_exclusive, (NULL, NULL, NULL, 0, DITTO_F64, DITTO_SUM, NULL))                 \
    X(ditto_scan_with, (NULL, NULL, NULL, 0, 0, NULL, NULL, 0, NULL))                          \
    X(ditto_block_sum, (NULL, NULL, NULL, 0, 0, NULL))                                         \
    X(ditto_block_sum_with, (NULL, NULL, NULL, NULL, 0, DITTO_F64, NULL))                      \
    X(ditto_block_dot, (NULL, NULL, NULL, NULL, 0, DITTO_F64, NULL))                           \
    X(ditto_dataset_spec, (NULL, NULL))                                                        \
    X(ditto_dataset_reduce, (NULL, NULL, NULL, 0))                                             \
    X(ditto_parallel_for, (NULL, NULL, NULL, 0, 0, 0, 0))                                      \
    X(ditto_parallel_reduce, (NULL, NULL, NULL, 0, 0, 0, DITTO_F32, DITTO_SUM, 0, NULL))       \
    X(ditto_on_logical_device, (NULL, 0, NULL, NULL))                                          \
    X(ditto_join, (NULL))                                                                      \
    X(ditto_split, (NULL, NULL, NULL, 0, NULL))                                                \
    X(ditto_replicate, (NULL, NULL, NULL))                                                     \
    X(ditto_assign_to_logical_device, (NULL, NULL, 0, NULL))                                   \
    X(ditto_strategy_iterate, (NULL, NULL, NULL, NULL))                                        \
    X(ditto_input_per_replica_batch, (NULL, 0, NULL))                                          \
    X(ditto_strategy_iterate_from_function, (NULL, NULL, NULL, NULL, NULL))                    \
    X(ditto_iterator_spec, (NULL, NULL))                                                       \
    X(ditto_next, (NULL, NULL, NULL))                                                          \
    X(ditto_iterator_next, (NULL, NULL))                                                       \
    X(ditto_iterator_save, (NULL, NULL, NULL))                                                 \
    X(ditto_iterator_stats, (NULL, 0, NULL))                                                   \
    X(ditto_limits_read, (NULL))                                                               \
    X(ditto_average_loss, (NULL, NULL, NULL, 0, NULL))                                         \
    X(ditto_get_context, (NULL))                                                               \
    X(ditto_merge_call, (NULL, NULL, NULL, NULL, 0, NULL))                                     \
    X(ditto_variable_update, (NULL, NULL, NULL, NULL, 0, NULL, NULL))                          \
    X(ditto_update, (NULL, NULL, NULL, NULL, NULL, 0, NULL))                                   \
    X(ditto_optimizer_create, (NULL, 0, NULL, NULL))                                           \
    X(ditto_optimizer_slot, (NULL, 0, NULL, NULL))                                             \
    X(ditto_optimizer_info, (NULL, NULL))                                                      \
    X(ditto_apply, (NULL, NULL, NULL, NULL))                                                   \
    X(ditto_apply_start, (NULL, NULL, 0, 0, NULL, NULL))                                       \
    X(ditto_apply_finish, (NULL, NULL, NULL))                                                  \
    X(ditto_all_reduce_start, (NULL, NULL, NULL, 0, DITTO_F64, DITTO_SUM, NULL, NULL))         \
    X(ditto_reduce_scatter_start, (NULL, NULL, NULL, 0, DITTO_F64, DITTO_SUM, NULL, NULL))     \
    X(ditto_all_gather_start, (NULL, NULL, NULL, 0, DITTO_F64, NULL, NULL))                    \
    X(ditto_all_to_all_start, (NULL, NULL, NULL, 0, DITTO_F64, NULL, NULL))                    \
    X(ditto_wait, (NULL, NULL, NULL))                                                          \
    X(ditto_test, (NULL, NULL))                                                                \
    X(ditto_abandon, (NULL, 0))                                                                \
    X(ditto_placement_create, (NULL, NULL, NULL))                                              \
    X(ditto_placement_get, (NULL, 0, 0, NULL))                                                 \
    X(ditto_placement_write, (NULL, NULL, 0, NULL))                                            \
    X(ditto_placement_read, (NULL, NULL, 0, NULL))                                             \
    X(ditto_queue_create, (NULL, NULL))                                                        \
    X(ditto_queue_put, (NULL, 0, NULL, 0, 0))                                                  \
    X(ditto_queue_claim, (NULL, 0, 0, 0, NULL, NULL))                                          \
    X(ditto_queue_publish, (NULL, 0, 0, NULL, 0))                                              \
    X(ditto_queue_fail, (NULL, 0, 0, 0, NULL))                                                 \
    X(ditto_queue_get, (NULL, 0, NULL))                                                        \
    X(ditto_queue_close, (NULL))                                                               \
    X(ditto_queue_stats, (NULL, NULL))                                                         \
    X(ditto_random_of, (NULL, 0, NULL))                                                        \
    X(ditto_strategy_reduce, (NULL, DITTO_SUM, NULL, NULL, 0, NULL))                           \
    X(ditto_strategy_reduce_f64, (NULL, DITTO_SUM, NULL, NULL))                                \
    X(ditto_strategy_merge_slices, (NULL, NULL, NULL))                                         \
    X(ditto_strategy_reduce_to, (NULL, DITTO_SUM, NULL, NULL, 0, NULL))                        \
    X(ditto_strategy_broadcast_to, (NULL, NULL, (ditto_destination){ .of = NULL }, NULL))      \
    X(ditto_strategy_gather, (NULL, NULL, 0, NULL))                                            \
    X(ditto_all_gather_tensor, (NULL, NULL, 0, NULL))                                          \
    X(ditto_all_to_all_tensor, (NULL, NULL, 0, 0, NULL))                                       \
    X(ditto_alloc, (NULL, 0, 0, NULL))                                                         \
    X(ditto_free, (NULL, NULL))                                                                \
    X(ditto_fail, (NULL, 0, "wrong"))                                                          \
    X(ditto_scatter, (NULL, NULL, 0, NULL))                                                    \
    X(ditto_lookup, (NULL, NULL, NULL, 0, NULL))                                               \
    X(ditto_variable_scatter, (NULL, 0, NULL))                                                 \
    X(ditto_variable_lookup, (NULL, NULL, 0, NULL, 0))                                         \
    X(ditto_strategy_run_values, (NULL, NULL, NULL, NULL, NULL, NULL))                         \
    X(ditto_strategy_run_steps, (NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL))                 \
    X(ditto_argument, (NULL, NULL, NULL))                                                      \
    X(ditto_return, (NULL, NULL, NULL))                                                        \
    X(ditto_return_f64, (NULL, NULL, 0))                                                       \
    X(ditto_return_variable, (NULL, NULL, NULL))                                               \
    X(ditto_return_slices, (NULL, NULL, NULL, 0))                                              \
    X(ditto_cluster_create, (NULL, NULL, NULL))                                                \
    X(ditto_cluster_info, (NULL, NULL))                                                        \
    X(ditto_function_register, (NULL, NULL, NULL))                                             \
    X(ditto_function_unregister, (NULL))                                                       \
    X(ditto_coordinator_create, (NULL, NULL, NULL))                                            \
    X(ditto_coordinator_schedule, (NULL, NULL, NULL, NULL, NULL))                              \
    X(ditto_coordinator_join, (NULL))                                                          \
    X(ditto_coordinator_done, (NULL, NULL))                                                    \
    X(ditto_coordinator_interrupt, (NULL))                                                     \
    X(ditto_strategy_interrupt, (NULL))                                                        \
    X(ditto_coordinator_worker_info, (NULL, 0, NULL))                                          \
    X(ditto_coordinator_values_from_function, (NULL, NULL, NULL, NULL))                        \
    X(ditto_coordinator_datasets_from_function, (NULL, NULL, NULL, NULL, NULL))                \
    X(ditto_remote_fetch, (NULL, NULL))                                                        \
    X(ditto_remote_test, (NULL, NULL))                                                         \
    X(ditto_remote_cancel, (NULL))                                                             \
    X(ditto_worker_value, (NULL, NULL, NULL))                                                  \
    X(ditto_coordinator_stats, (NULL, NULL))                                                   \
    X(ditto_optimizer_staleness, (NULL, NULL))                                                 \
    X(ditto_worker_iterator, (NULL, NULL, NULL))                                               \
    X(ditto_coordinator_shared_dataset, (NULL, NULL, NULL, NULL))                              \
    X(ditto_shared_dataset_next, (NULL, NULL, NULL))                                           \
    X(ditto_shared_dataset_save, (NULL, NULL, NULL))                                           \
    X(ditto_pull, (NULL, NULL, NULL, NULL))                                                    \
    X(ditto_pull_rows, (NULL, NULL, NULL, 0, NULL, NULL))                                      \
    X(ditto_optimizer_steps, (NULL, NULL, NULL))                                               \
    X(ditto_exchange, (NULL, NULL, 0, NULL))                                                   \
    X(ditto_group_of, (NULL, NULL, NULL))                                                      \
    X(ditto_strategy_split, (NULL, NULL, NULL, 0, NULL))                                       \
    X(ditto_strategy_mesh, (NULL, NULL, 0, NULL))                                              \
    X(ditto_all_reduce_slices, (NULL, NULL, NULL, DITTO_SUM, NULL))                            \
    X(ditto_dataset_from_range, (0, 0, 0, NULL))                                               \
    X(ditto_dataset_from_arrays, (NULL, 0, NULL))                                              \
    X(ditto_dataset_from_generator, (NULL, NULL, 0, NULL))                                     \
    X(ditto_dataset_from_text, (NULL, NULL, NULL))                                             \
    X(ditto_dataset_from_csv, (NULL, NULL, 0, NULL, NULL))                                     \
    X(ditto_dataset_from_tfrecord, (NULL, NULL, NULL))                                         \
    X(ditto_dataset_from_fixed, (NULL, NULL, 0, NULL, NULL))                                   \
    X(ditto_dataset_from_npy, (NULL, 0, NULL))                                                 \
    X(ditto_strategy_create, (0, NULL, NULL))                                                  \
    X(ditto_strategy_run, (NULL, NULL, NULL))                                                  \
    X(ditto_strategy_scope_enter, (NULL))                                                      \
    X(ditto_strategy_scope_leave, (NULL))                                                      \
    X(ditto_strategy_replica_info, (NULL, 0, 0, NULL))                                         \
    X(ditto_strategy_describe, (NULL, NULL, 0, NULL))                                          \
    X(ditto_topology_create, (NULL, NULL))                                                     \
    X(ditto_topology_count, (NULL, NULL))                                                      \
    X(ditto_topology_pu, (NULL, 0, NULL))                                                      \
    X(ditto_topology_node, (NULL, 0, NULL))                                                    \
    X(ditto_strategy_trace_start, (NULL, NULL))                                                \
    X(ditto_strategy_trace_stop, (NULL))                                                       \
    X(ditto_strategy_operation_stats, (NULL, 0, NULL))                                         \
    X(ditto_strategy_trace_describe, (NULL, NULL, 0, NULL))                                    \
    X(ditto_strategy_trace_write, (NULL, NULL))                                                \
    X(ditto_dataset_map, (NULL, NULL, NULL, NULL, NULL))                                       \
    X(ditto_dataset_filter, (NULL, NULL, NULL, NULL))                                          \
    X(ditto_dataset_shuffle, (NULL, NULL, NULL))                                               \
    X(ditto_dataset_repeat, (NULL, 0, NULL))                                                   \
    X(ditto_dataset_take, (NULL, 0, NULL))                                                     \
    X(ditto_dataset_skip, (NULL, 0, NULL))                                                     \
    X(ditto_dataset_shard, (NULL, 0, 0, NULL))                                                 \
    X(ditto_dataset_zip, (NULL, 0, NULL))                                                      \
    X(ditto_dataset_concatenate, (NULL, 0, NULL))                                              \
    X(ditto_dataset_interleave, (NULL, 0, 0, 0, NULL))                                         \
    X(ditto_dataset_batch, (NULL, 0, 0, NULL))                                                 \
    X(ditto_dataset_unbatch, (NULL, NULL))                                                     \
    X(ditto_dataset_prefetch, (NULL, 0, NULL))                                                 \
    X(ditto_strategy_value, (NULL, NULL, NULL))                                                \
    X(ditto_strategy_value_from_function, (NULL, NULL, NULL, NULL))                            \
    X(ditto_strategy_value_from_tensors, (NULL, NULL, 0, NULL))                                \
    X(ditto_strategy_value_from_slices, (NULL, NULL, 0, NULL))                                 \
    X(ditto_variable_value, (NULL, NULL))                                                      \
    X(ditto_variable_assign_value, (NULL, DITTO_ASSIGN, NULL))                                 \
    X(ditto_strategy_nest, (NULL, NULL, NULL, 0, NULL))                                        \
    X(ditto_strategy_regroup, (NULL, NULL, 0, NULL))                                           \
    X(ditto_value_info, (NULL, NULL))                                                          \
    X(ditto_value_tensor, (NULL, NULL))                                                        \
    X(ditto_value_f64, (NULL, NULL))                                                           \
    X(ditto_value_component, (NULL, 0, NULL))                                                  \
    X(ditto_value_slices, (NULL, 0, NULL, NULL))                                               \
    X(ditto_value_member, (NULL, NULL, NULL))                                                  \
    X(ditto_value_select, (NULL, 0, NULL))                                                     \
    X(ditto_strategy_local_results, (NULL, NULL, NULL, NULL))                                  \
    X(ditto_local, (NULL, NULL, NULL))                                                         \
    X(ditto_variable_create, (NULL, NULL, NULL, NULL))                                         \
    X(ditto_variable_spec, (NULL, NULL))                                                       \
    X(ditto_variable_info, (NULL, NULL))                                                       \
    X(ditto_variable_shard, (NULL, 0, NULL))                                                   \
    X(ditto_variable_describe, (NULL, NULL, 0, NULL))                                          \
    X(ditto_strategy_info, (NULL, NULL))                                                       \
    X(ditto_strategy_variables, (NULL, NULL, 0, NULL))                                         \
    X(ditto_strategy_held_values, (NULL, NULL, 0, NULL, NULL))                                 \
    X(ditto_variable_read, (NULL, NULL, 0))                                                    \
    X(ditto_variable_assign, (NULL, DITTO_ASSIGN, NULL, 0))                                    \
    X(ditto_create_variable, (NULL, NULL, NULL, NULL))                                         \
    X(ditto_read, (NULL, NULL, NULL))                                                          \
    X(ditto_local_slice, (NULL, NULL, NULL, NULL))                                             \
    X(ditto_component, (NULL, NULL, NULL))                                                     \
    X(ditto_assign, (NULL, NULL, DITTO_ASSIGN, NULL))

#define DEFINE(name, arguments)           \
    static ditto_status fail_##name(void) \
    {                                     \
        return name arguments;            \
    }
EVERYWHERE(DEFINE)
ON_REPLICAS(DEFINE)

static const struct {
    const char *name;
    ditto_status (*call)(void);
} calls[] = {
#define ROW(name, arguments) { #name, fail_##name },
    EVERYWHERE(ROW) ON_REPLICAS(ROW)
#undef ROW
};
#define COUNT(name, arguments) +1
enum { EVERYWHERE_LENGTH = 0 EVERYWHERE(COUNT), CALLS_LENGTH = sizeof calls / sizeof calls[0] };

/* Replaces this thread's last error by one of a function other than `name`. */
static void forget(const char *name)
{
    bool barrier = strcmp(name, "ditto_barrier") == 0;
    (void)!(barrier ? ditto_limits_read(NULL) : ditto_barrier(NULL, NULL));
}

static const char *wrong_name(size_t i)
{
    forget(calls[i].name);
    ditto_status status = calls[i].call();
    if (status >= 0)
        return "did not fail";
    return strcmp(ditto_last_error()->function, calls[i].name) == 0 ? NULL : ditto_last_error()->function;
}

static void an_error_names_the_function_that_was_called(void **state)
{
    for (size_t i = 0; i < EVERYWHERE_LENGTH; i++) {
        const char *wrong = wrong_name(i);
        if (wrong != NULL)
            fail_msg("%s: %s", calls[i].name, wrong);
    }
}

static ditto_status call_all(ditto_replica *self, void *argument)
{
    for (size_t i = 0; i < CALLS_LENGTH; i++) {
        const char *wrong = wrong_name(i);
        if (wrong != NULL)
            report_failure(argument, __FILE__, __LINE__, "%s on replica %u: %s", calls[i].name,
                           ditto_replica_id(self), wrong);
    }
    return DITTO_OK;
}

static void an_error_on_a_replica_names_the_function_that_was_called(void **state)
{
    struct report report = { 0 };
    ditto_tensor scalar = { .dtype = DITTO_F64 };
    strategy = make_strategy(3, NULL);
    assert_ok(ditto_variable_create(strategy, &scalar, NULL, &variable));
    assert_ok(ditto_optimizer_create(
        &variable, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_SGD, .learning_rate = 0.1), &optimizer));
    ditto_dataset *numbers;
    assert_ok(ditto_dataset_from_range(0, 12, 1, &numbers));
    assert_ok(ditto_dataset_batch(numbers, 6, 0, &dataset));
    assert_ok(ditto_dataset_destroy(numbers));
    assert_ok(ditto_strategy_iterate(strategy, dataset, NULL, &iterator));
    assert_ok(ditto_strategy_value(strategy, &(ditto_tensor){ .data = &(double){ 1 }, .dtype = DITTO_F64 },
                                   &value));
    assert_ok(ditto_strategy_split(strategy, (const uint32_t[]){ 0, 0, 0 }, NULL, 3, &grouping));
    run_all(strategy, call_all, &report, &report);
    assert_ok(ditto_grouping_destroy(grouping));
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_iterator_destroy(iterator));
    assert_ok(ditto_dataset_destroy(dataset));
    assert_ok(ditto_optimizer_destroy(optimizer));
    assert_ok(ditto_variable_destroy(variable));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- failures on other threads, and inside other calls -- */

static ditto_status calls_and_fails(ditto_replica *self, void *user)
{
    DITTO_TRY(ditto_barrier(self, NULL));
    return ditto_replica_id(self) == 2 ? DITTO_ERR_IO : DITTO_OK;
}
static ditto_status run_fails(ditto_strategy *s)
{
    return ditto_strategy_run(s, calls_and_fails, NULL);
}
static ditto_status run_values_fails(ditto_strategy *s)
{
    return ditto_strategy_run_values(s, calls_and_fails, NULL, NULL, NULL, NULL);
}

static ditto_status collective_on_one(ditto_replica *self, void *user)
{
    return ditto_replica_id(self) == 2 ? ditto_all_reduce(self, NULL, NULL, 1, DITTO_F64, DITTO_SUM, NULL)
                                       : DITTO_OK;
}
static ditto_status all_reduce_fails(ditto_strategy *s)
{
    return ditto_strategy_run(s, collective_on_one, NULL);
}

static ditto_status without_the_last(ditto_replica *self, void *user)
{
    double x = 1;
    ditto_tensor out, in = { .data = &x, .dtype = DITTO_F64, .rank = 1, .shape = { 1 } };
    return ditto_replica_id(self) < 2 ? ditto_all_gather_tensor(self, &in, 0, &out) : DITTO_OK;
}
static ditto_status gather_fails(ditto_strategy *s)
{
    return ditto_strategy_run(s, without_the_last, NULL);
}

static ditto_status fails_itself(ditto_replica *self, void *user)
{
    return ditto_replica_id(self) == 1 ? ditto_fail(self, 7, "no luck") : DITTO_OK;
}
static ditto_status fail_fails(ditto_strategy *s)
{
    return ditto_strategy_run(s, fails_itself, NULL);
}

static ditto_status fill_one(const ditto_tensor *tensor, size_t first_row, void *user)
{
    ditto_limits limits = DITTO_LIMITS_INIT;
    DITTO_TRY(ditto_limits_read(&limits));
    return DITTO_ERR_IO;
}
static ditto_status create_fails(ditto_strategy *s)
{
    ditto_tensor spec = { .dtype = DITTO_F64 };
    return ditto_variable_create(s, &spec, &OPTIONS(variable, .initialize = fill_one), &variable);
}
static ditto_status create_too_large_fails(ditto_strategy *s)
{
    ditto_tensor spec = { .dtype = DITTO_F64, .rank = 1, .shape = { (size_t)1 << 58 } };
    return ditto_variable_create(s, &spec, NULL, &variable); /* no replica has the memory */
}
static ditto_status create_here(ditto_replica *self, void *user)
{
    ditto_tensor spec = { .dtype = DITTO_F64, .rank = 1, .shape = { (size_t)1 << 58 } };
    ditto_variable *made;
    return ditto_create_variable(self, &spec, NULL, &made);
}
static ditto_status create_in_run_fails(ditto_strategy *s)
{
    return ditto_strategy_run(s, create_here, NULL);
}

static ditto_status value_of(uint32_t replica, uint32_t num_replicas, void *user, ditto_tensor *component)
{
    return replica == 2 ? DITTO_ERR_IO : DITTO_OK;
}
static ditto_status value_fails(ditto_strategy *s)
{
    return ditto_strategy_value_from_function(s, value_of, NULL, &value);
}

static ditto_status copy_fails(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                               void *user, ditto_tensor *result)
{
    return DITTO_ERR_IO;
}
static ditto_status update_fails(ditto_strategy *s)
{
    ditto_tensor spec = { .dtype = DITTO_F64 };
    assert_ok(ditto_variable_create(s, &spec, NULL, &variable));
    ditto_status status = ditto_variable_update(variable, copy_fails, NULL, NULL, 0, NULL, NULL);
    assert_ok(ditto_variable_destroy(variable)); /* succeeds, so it keeps the last error */
    return status;
}

static ditto_status merge(ditto_strategy *s, ditto_value *const *arguments, uint32_t count, void *user,
                          ditto_value **result)
{
    return ditto_strategy_run(s, nothing, NULL) == DITTO_OK ? DITTO_ERR_IO : DITTO_ERR_USER;
}
static ditto_status merges(ditto_replica *self, void *user)
{
    return ditto_merge_call(self, merge, NULL, NULL, 0, NULL);
}
static ditto_status merge_fails(ditto_strategy *s)
{
    return ditto_strategy_run_values(s, merges, NULL, NULL, NULL, NULL);
}

static ditto_status merge_runs(ditto_strategy *s, ditto_value *const *arguments, uint32_t count, void *user,
                               ditto_value **result)
{
    return ditto_strategy_run(s, calls_and_fails, NULL);
}
static ditto_status merges_and_runs(ditto_replica *self, void *user)
{
    return ditto_merge_call(self, merge_runs, NULL, NULL, 0, NULL);
}
static ditto_status run_in_merge_fails(ditto_strategy *s)
{
    return ditto_strategy_run_values(s, merges_and_runs, NULL, NULL, NULL, NULL);
}

static ditto_status combine(void *out, const void *left, const void *right, size_t count, void *user)
{
    return DITTO_ERR_IO;
}
static ditto_status combines(ditto_replica *self, void *user)
{
    double x = 1;
    return ditto_all_reduce_with(self, &x, &x, 1, sizeof x, combine, NULL, NULL);
}
static ditto_status combine_fails(ditto_strategy *s)
{
    return ditto_strategy_run(s, combines, NULL);
}

static ditto_status change(void *buffer, size_t count, ditto_dtype dtype, void *user)
{
    return DITTO_ERR_IO;
}
static ditto_status reduces_through(ditto_replica *self, void *user)
{
    double x = 1;
    return ditto_all_reduce_through(self, &x, &x, 1, DITTO_F64, DITTO_SUM, change, NULL, NULL);
}
static ditto_status through_fails(ditto_strategy *s)
{
    return ditto_strategy_run(s, reduces_through, NULL);
}

static ditto_status compute(void *out, size_t first, size_t count, void *user)
{
    return DITTO_ERR_IO;
}
static ditto_status computes(ditto_replica *self, void *user)
{
    double x;
    return ditto_block_sum_with(self, compute, NULL, &x, 1, DITTO_F64, NULL);
}
static ditto_status elements_fail(ditto_strategy *s)
{
    return ditto_strategy_run(s, computes, NULL);
}

static ditto_status on_device(uint32_t device, void *user)
{
    return DITTO_ERR_IO;
}
static ditto_status gives_to_device(ditto_replica *self, void *user)
{
    DITTO_TRY(ditto_on_logical_device(self, 0, on_device, NULL));
    return ditto_join(self);
}
static ditto_status device_fails(ditto_strategy *s)
{
    return ditto_strategy_run(s, gives_to_device, NULL);
}

/* Runs on the thread of a producer, and returns the error of a ditto function that it calls. */
static ditto_status map(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random, void *user)
{
    ditto_status status = ditto_limits_read(NULL);
    return status != DITTO_OK ? status : DITTO_ERR_IO;
}
static ditto_iterator *iterate_over_failing_rows(ditto_strategy *s)
{
    ditto_iterator *made;
    ditto_map_options o = DITTO_MAP_OPTIONS_INIT;
    ditto_dataset *numbers, *mapped;
    assert_ok(ditto_dataset_from_range(0, 12, 1, &numbers));
    assert_ok(ditto_dataset_map(numbers, map, NULL, &o, &mapped));
    assert_ok(ditto_dataset_batch(mapped, 6, 0, &dataset));
    assert_ok(ditto_dataset_destroy(numbers));
    assert_ok(ditto_dataset_destroy(mapped));
    assert_ok(ditto_strategy_iterate(s, dataset, NULL, &made));
    return made;
}
static ditto_status end_iterating(ditto_iterator *it, ditto_status status)
{
    assert_ok(ditto_iterator_destroy(it));
    DITTO_TRY(ditto_dataset_destroy(dataset));
    return status;
}
static ditto_status iterator_next_fails(ditto_strategy *s)
{
    ditto_iterator *it = iterate_over_failing_rows(s);
    return end_iterating(it, ditto_iterator_next(it, &value));
}
static ditto_status iterator_save_fails(ditto_strategy *s)
{
    ditto_iterator *it = iterate_over_failing_rows(s);
    void *state;
    size_t bytes;
    ditto_status status = ditto_iterator_next(it, &value);
    if (status < 0)
        status = ditto_iterator_save(it, &state, &bytes);
    return end_iterating(it, status);
}
static ditto_status step(ditto_replica *self, const ditto_batch *batch, void *user)
{
    return DITTO_OK;
}
static ditto_status run_steps_fails(ditto_strategy *s)
{
    ditto_iterator *it = iterate_over_failing_rows(s);
    return end_iterating(it, ditto_strategy_run_steps(s, step, NULL, it, 2, NULL, NULL, NULL));
}
static ditto_status takes(ditto_replica *self, void *it)
{
    ditto_batch batch;
    return ditto_next(self, it, &batch);
}
static ditto_status next_fails(ditto_strategy *s)
{
    ditto_iterator *it = iterate_over_failing_rows(s);
    return end_iterating(it, ditto_strategy_run(s, takes, it));
}

static ditto_status fold(const ditto_tensor *row, void *sum)
{
    ditto_limits limits = DITTO_LIMITS_INIT;
    DITTO_TRY(ditto_limits_read(&limits));
    return DITTO_ERR_IO;
}
static ditto_status reduce_fails(ditto_strategy *s)
{
    assert_ok(ditto_dataset_from_range(0, 12, 1, &dataset));
    ditto_status status = ditto_dataset_reduce(dataset, fold, NULL, 0);
    DITTO_TRY(ditto_dataset_destroy(dataset));
    return status;
}

static ditto_status replica_info_fails(ditto_strategy *s)
{
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    return ditto_strategy_replica_info(s, 3, 0, &info);
}

static const struct {
    const char *function;
    ditto_status (*fails)(ditto_strategy *s);

    /* The replica that the error names, or -2 if any is right. */
    int32_t replica;
} deep[] = {
    { "ditto_strategy_run", run_fails, 2 },
    { "ditto_strategy_run_values", run_values_fails, 2 },
    { "ditto_all_reduce", all_reduce_fails, 2 },
    { "ditto_all_gather_tensor", gather_fails, -2 },
    { "ditto_fail", fail_fails, 1 },
    { "ditto_variable_create", create_fails, -2 },
    { "ditto_variable_create", create_too_large_fails, -2 },
    { "ditto_create_variable", create_in_run_fails, -2 },
    { "ditto_strategy_value_from_function", value_fails, -2 },
    { "ditto_variable_update", update_fails, -2 },
    { "ditto_merge_call", merge_fails, 0 },
    { "ditto_strategy_run", run_in_merge_fails, 2 },
    { "ditto_all_reduce_with", combine_fails, -2 },
    { "ditto_all_reduce_through", through_fails, 0 },
    { "ditto_block_sum_with", elements_fail, -2 },
    { "ditto_on_logical_device", device_fails, -2 },
    { "ditto_iterator_next", iterator_next_fails, -2 },
    { "ditto_iterator_save", iterator_save_fails, -2 },
    { "ditto_strategy_run_steps", run_steps_fails, -2 },
    { "ditto_next", next_fails, -2 },
    { "ditto_dataset_reduce", reduce_fails, -2 },
    { "ditto_strategy_replica_info", replica_info_fails, -2 },
};

static void fail_deeply(ditto_caller caller)
{
    char wrong[4000] = "";
    ditto_strategy *s = make_strategy(3, &OPTIONS(strategy, .caller = caller));
    for (size_t i = 0; i < sizeof deep / sizeof deep[0]; i++) {
        forget("");
        ditto_status status = deep[i].fails(s);
        const ditto_error *error = ditto_last_error();
        if (status >= 0 || strcmp(error->function, deep[i].function) != 0 ||
            (deep[i].replica != -2 && deep[i].replica != error->replica))
            snprintf(wrong + strlen(wrong), sizeof wrong - strlen(wrong),
                     "%s, not %s (entry %zu, %s, replica %d); ", error->function, deep[i].function, i,
                     ditto_status_name(status), (int)error->replica);
    }
    assert_string_equal(wrong, "");
    assert_ok(ditto_strategy_destroy(s));
}
static void failures_on_replicas_and_other_threads_name_the_function(void **state)
{
    fail_deeply(DITTO_CALLER_DEFAULT);
}
static void failures_name_the_function_if_the_caller_waits(void **state)
{
    fail_deeply(DITTO_CALLER_WAITS);
}

/* -- the lists above are complete -- */

/* These cannot be made to fail here. The queue's fails only while a thread sleeps in the queue, which
 * tests/input/queue/test_queue_end.c tests, and those of a coordinator and its shared datasets only while
 * functions are executed or after a late one (tests/coordinator/). The others return DITTO_OK for NULL and
 * for every handle. */
static const char *const never_fails[] = { "ditto_cluster_destroy",     "ditto_queue_destroy",
                                           "ditto_topology_destroy",    "ditto_placement_destroy",
                                           "ditto_dataset_destroy",     "ditto_remote_destroy",
                                           "ditto_coordinator_destroy", "ditto_shared_dataset_destroy",
                                           "ditto_per_worker_destroy" };

static bool is_name(const char *name, const char *at, size_t length)
{
    return strlen(name) == length && strncmp(name, at, length) == 0;
}

static void add_function(const char *at, char *missing, size_t size)
{
    size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789");
    for (size_t i = 0; i < CALLS_LENGTH; i++)
        if (is_name(calls[i].name, at, length))
            return;
    for (size_t i = 0; i < sizeof never_fails / sizeof never_fails[0]; i++)
        if (is_name(never_fails[i], at, length))
            return;
    snprintf(missing + strlen(missing), size - strlen(missing), " %.*s", (int)length, at);
}

static void list_untried(const char *path, char *missing, size_t size)
{
    char *text = calloc(1, 1 << 18);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 18) - 1, file) > 0);
    fclose(file);
    for (char *at = text; (at = strstr(at, "\nDITTO_API ")) != NULL;) {
        at += strlen("\nDITTO_API ");
        bool must_be_used = strncmp(at, "DITTO_NODISCARD ", 16) == 0;
        if (must_be_used)
            at += 16;
        if (strncmp(at, "ditto_status", 12) == 0 && strchr(" \n", at[12]) != NULL)
            assert_true(must_be_used);
        if (strncmp(at, "ditto_status", 12) == 0 && strchr(" \n", at[12]) != NULL)
            add_function(at + 13, missing, size);
    }
    free(text);
}

static void destroying_nothing_succeeds(void **state)
{
    assert_ok(ditto_topology_destroy(NULL));
    assert_ok(ditto_placement_destroy(NULL));
    assert_ok(ditto_dataset_destroy(NULL));
    assert_ok(ditto_remote_destroy(NULL));
    assert_ok(ditto_coordinator_destroy(NULL));
    assert_ok(ditto_shared_dataset_destroy(NULL));
    assert_ok(ditto_per_worker_destroy(NULL));
}

static void every_function_that_returns_a_status_is_tried_here(void **state)
{
    char missing[4000] = "";
    struct dirent *entry;
    DIR *folder = opendir("include/ditto");
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        char path[300];
        snprintf(path, sizeof path, "include/ditto/%s", entry->d_name);
        /* Checkpoints and MPI belong to other libraries, which tests/semantics/test_checkpoint.c and
         * tests/mpi/ test. */
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "checkpoint.h") != 0 &&
            strcmp(entry->d_name, "mpi.h") != 0)
            list_untried(path, missing, sizeof missing);
    }
    closedir(folder);
    assert_string_equal(missing, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_names_the_function_that_was_called),
        cmocka_unit_test(an_error_on_a_replica_names_the_function_that_was_called),
        cmocka_unit_test(failures_on_replicas_and_other_threads_name_the_function),
        cmocka_unit_test(failures_name_the_function_if_the_caller_waits),
        cmocka_unit_test(destroying_nothing_succeeds),
        cmocka_unit_test(every_function_that_returns_a_status_is_tried_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
