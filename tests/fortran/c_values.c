/* tests/fortran/c_values.c - what the C headers say, for comparison with the Fortran module. */
#include <ditto.h>

#include <stddef.h>

void c_values(int *values);
void c_sizes_of(size_t *bytes);
void c_offsets(size_t *offsets);

/* In the order of `fortran_values` in test_fortran.f90. */
void c_values(int *values)
{
    const int found[] = { DITTO_OK,
                          DITTO_END_OF_INPUT,
                          DITTO_PENDING,
                          DITTO_ERR_INVALID,
                          DITTO_ERR_RANGE,
                          DITTO_ERR_SHAPE,
                          DITTO_ERR_CONTEXT,
                          DITTO_ERR_DIVERGED,
                          DITTO_ERR_PEER_STOPPED,
                          DITTO_ERR_TIMED_OUT,
                          DITTO_ERR_POISONED,
                          DITTO_ERR_BUSY,
                          DITTO_ERR_CLOSED,
                          DITTO_ERR_FORKED,
                          DITTO_ERR_UNSUPPORTED,
                          DITTO_ERR_NOT_FOUND,
                          DITTO_ERR_IO,
                          DITTO_ERR_CORRUPT,
                          DITTO_ERR_NO_MEMORY,
                          DITTO_ERR_SYSTEM,
                          DITTO_ERR_USER,
                          DITTO_ERR_LOST,
                          DITTO_ERR_CANCELLED,
                          DITTO_SUM,
                          DITTO_MEAN,
                          DITTO_MIN,
                          DITTO_MAX,
                          DITTO_PROD,
                          DITTO_AND,
                          DITTO_OR,
                          DITTO_XOR,
                          DITTO_ON_WRITE,
                          DITTO_ON_READ,
                          DITTO_AGGREGATE_NONE,
                          DITTO_AGGREGATE_SUM,
                          DITTO_AGGREGATE_MEAN,
                          DITTO_AGGREGATE_ONLY_FIRST_REPLICA,
                          DITTO_CALLER_IS_REPLICA_0,
                          DITTO_CALLER_WAITS };
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
        values[i] = found[i];
}

void c_sizes_of(size_t *bytes)
{
    bytes[0] = sizeof(ditto_strategy_options);
    bytes[1] = sizeof(ditto_exchange_part);
    bytes[2] = sizeof(ditto_pending);
    bytes[3] = sizeof(ditto_tensor);
}

/* In the order of `fortran_offsets` in test_fortran.f90. */
void c_offsets(size_t *offsets)
{
#define AT(member) offsetof(ditto_strategy_options, member)
    const size_t found[] = { AT(num_replicas),
                             AT(span),
                             AT(placement_options),
                             AT(placement),
                             AT(caller),
                             AT(pin),
                             AT(helpers),
                             AT(stack_bytes),
                             AT(thread_start),
                             AT(thread_stop),
                             AT(thread_user),
                             AT(memory),
                             AT(parameter_node),
                             AT(has_parameter_node),
                             AT(timeout_ms),
                             AT(run_timeout_ms),
                             AT(spin_us),
                             AT(has_spin_us),
                             AT(implementation),
                             AT(bytes_per_pack),
                             AT(kernels),
                             AT(tuning),
                             AT(floating),
                             AT(wait),
                             AT(order_blocks),
                             AT(part),
                             AT(cluster),
                             AT(run_agreement),
                             AT(replicas_per_worker),
                             AT(parameter_nodes),
                             AT(num_parameter_nodes),
                             offsetof(ditto_exchange_part, tag),
                             offsetof(ditto_exchange_part, src),
                             offsetof(ditto_exchange_part, dst),
                             offsetof(ditto_exchange_part, src_count),
                             offsetof(ditto_exchange_part, dst_count),
                             offsetof(ditto_exchange_part, dtype),
                             offsetof(ditto_pending, replica),
                             offsetof(ditto_pending, run) };
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
        offsets[i] = found[i];
}
