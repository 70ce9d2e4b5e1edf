/* tests/fortran/c_structs.c - sizes and offsets of C structs, for comparison with the Fortran module. */
#include <ditto.h>

#include <stddef.h>

void c_sizes_of(size_t *bytes);
void c_offsets(size_t *offsets);

void c_sizes_of(size_t *bytes)
{
    bytes[0] = sizeof(ditto_strategy_options);
    bytes[1] = sizeof(ditto_exchange_part);
    bytes[2] = sizeof(ditto_pending);
    bytes[3] = sizeof(ditto_tensor);
    bytes[4] = sizeof(ditto_group);
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
                             AT(fastest_kinds),
                             AT(pus_per_replica),
                             offsetof(ditto_exchange_part, tag),
                             offsetof(ditto_exchange_part, src),
                             offsetof(ditto_exchange_part, dst),
                             offsetof(ditto_exchange_part, src_count),
                             offsetof(ditto_exchange_part, dst_count),
                             offsetof(ditto_exchange_part, dtype),
                             offsetof(ditto_pending, replica),
                             offsetof(ditto_pending, run),
                             offsetof(ditto_group, rank),
                             offsetof(ditto_group, size),
                             offsetof(ditto_group, replicas),
                             offsetof(ditto_group, grouping),
                             offsetof(ditto_group, slot),
                             offsetof(ditto_group, run) };
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
        offsets[i] = found[i];
}
