# renames.sed - ports a C or C++ program from ditto's names before 0.1's freeze to the names after it.
#
#     sed -i -f tools/renames.sed app.c app.h
#
# Run it once on a file. Four new names are old names of something else (ditto_strategy_kind,
# ditto_memory_policy, ditto_dataset_spec, ditto_queue_stats). A second run would rename them again, and part 7
# would move parameters again. It needs GNU sed (\< and \>). All names are whole words. docs/renames.md lists
# the changes that sed cannot make. The compiler reports each of these places.

# -- 1. Names that make room for another one. Their order matters. ------------------------------------------------

# The function first, because its name becomes that of the enum.
s/\<ditto_strategy_kind\>/ditto_strategy_kind_of/g
s/\<ditto_kind\>/ditto_strategy_kind/g
# The host's policy first, because its name becomes that of a replica's.
s/\<ditto_memory_policy\>/ditto_numa_policy/g
s/\<ditto_memory\>/ditto_memory_policy/g
# The struct first, because its name becomes that of the function.
s/\<ditto_dataset_spec\>/ditto_element_spec/g
s/\<ditto_dataset_get_spec\>/ditto_dataset_spec/g
s/\<ditto_queue_stats\>/ditto_queue_counters/g
s/\<ditto_queue_get_stats\>/ditto_queue_stats/g

# -- 2. Functions -------------------------------------------------------------------------------------------------

s/\<ditto_value_element_spec\>/ditto_value_spec/g
s/\<ditto_iterator_element_spec\>/ditto_iterator_spec/g
s/\<ditto_strategy_operation_times\>/ditto_strategy_operation_stats/g
s/\<ditto_strategy_statistics\>/ditto_strategy_trace_describe/g
s/\<ditto_placement_build\>/ditto_placement_create/g
s/\<ditto_placement_replicas\>/ditto_placement_num_replicas/g
s/\<ditto_placement_devices\>/ditto_placement_num_devices/g
s/\<ditto_topology_default_replicas\>/ditto_topology_default_num_replicas/g
s/\<ditto_value_members\>/ditto_value_num_members/g
s/\<ditto_return_room\>/ditto_return_buffer/g

# -- 3. Types -----------------------------------------------------------------------------------------------------

s/\<ditto_policy\>/ditto_placement_policy/g
s/\<ditto_per\>/ditto_span/g
s/\<ditto_trainable\>/ditto_switch/g
s/\<ditto_helpers\>/ditto_switch/g
s/\<ditto_shard\>/ditto_shard_policy/g
s/\<ditto_replication\>/ditto_replication_mode/g
s/\<ditto_partial\>/ditto_partial_policy/g
s/\<ditto_input_stats\>/ditto_iterator_counters/g
s/\<ditto_operation_times\>/ditto_operation_counters/g
s/\<ditto_place\>/ditto_placed_device/g
s/\<ditto_places\>/ditto_destination/g

# -- 4. Enumerators -----------------------------------------------------------------------------------------------

# What a replica spans; batches for a pipeline or a replica; kinds of values: no two families begin alike any more.
s/\<DITTO_PER_SHAPE\>/DITTO_SPAN_DEFAULT/g
s/\<DITTO_PER_PU\>/DITTO_SPAN_PU/g
s/\<DITTO_PER_CORE\>/DITTO_SPAN_CORE/g
s/\<DITTO_PER_LLC\>/DITTO_SPAN_LLC/g
s/\<DITTO_PER_NUMA_NODE\>/DITTO_SPAN_NUMA_NODE/g
s/\<DITTO_PER_PACKAGE\>/DITTO_SPAN_PACKAGE/g
s/\<DITTO_PER_MACHINE\>/DITTO_SPAN_MACHINE/g
s/\<DITTO_PER_PIPELINE\>/DITTO_REPLICATION_PER_PIPELINE/g
s/\<DITTO_PER_REPLICA_INPUT\>/DITTO_REPLICATION_PER_REPLICA/g
s/\<DITTO_PLAIN\>/DITTO_VALUE_PLAIN/g
s/\<DITTO_PER_REPLICA\>/DITTO_VALUE_PER_REPLICA/g
s/\<DITTO_MIRRORED_VALUE\>/DITTO_VALUE_MIRRORED/g
s/\<DITTO_VARIABLE\>/DITTO_VALUE_VARIABLE/g
s/\<DITTO_SLICES\>/DITTO_VALUE_SLICES/g
s/\<DITTO_NEST\>/DITTO_VALUE_NEST/g

s/\<DITTO_SPREAD\>/DITTO_PLACEMENT_SPREAD/g
s/\<DITTO_COMPACT\>/DITTO_PLACEMENT_COMPACT/g
s/\<DITTO_STATIC\>/DITTO_SCHEDULE_STATIC/g
s/\<DITTO_DYNAMIC\>/DITTO_SCHEDULE_DYNAMIC/g
s/\<DITTO_ON\>/DITTO_SWITCH_ON/g
s/\<DITTO_OFF\>/DITTO_SWITCH_OFF/g
s/\<DITTO_TRAINABLE_\(DEFAULT\|ON\|OFF\)\>/DITTO_SWITCH_\1/g
s/\<DITTO_HELPERS_\(DEFAULT\|ON\|OFF\)\>/DITTO_SWITCH_\1/g
s/\<DITTO_FLOATING_CONTRACT\>/DITTO_FLOATING_STANDARD/g
s/\<DITTO_FLOATING_HOST\>/DITTO_FLOATING_CALLER/g
s/\<DITTO_POLICY_\(UNKNOWN\|DEFAULT\|PREFERRED\|BIND\|INTERLEAVE\|LOCAL\|OTHER\)\>/DITTO_NUMA_POLICY_\1/g

# Zero of an option is always ..._DEFAULT.
s/\<DITTO_IMPLEMENTATION_AUTO\>/DITTO_IMPLEMENTATION_DEFAULT/g
s/\<DITTO_SYNCHRONIZATION_AUTO\>/DITTO_SYNCHRONIZATION_DEFAULT/g
s/\<DITTO_PARTITION_NONE\>/DITTO_PARTITION_DEFAULT/g
s/\<DITTO_COMPRESSION_NONE\>/DITTO_COMPRESSION_DEFAULT/g

# -- 5. Constants -------------------------------------------------------------------------------------------------

s/\<DITTO_BLOCK\>/DITTO_BLOCK_ELEMENTS/g
s/\<DITTO_MAX_SLOTS\>/DITTO_MAX_OPTIMIZER_SLOTS/g
s/\<DITTO_MAX_RESULT_NAME\>/DITTO_MAX_RESULT_NAME_BYTES/g
s/\<DITTO_ATTRIBUTE_BYTES\>/DITTO_MAX_ATTRIBUTE_BYTES/g
s/\<DITTO_CHECKPOINT_GROUPS\>/DITTO_MAX_CHECKPOINT_GROUPS/g
s/\<DITTO_CHECKPOINT_NAME_BYTES\>/DITTO_MAX_CHECKPOINT_NAME_BYTES/g

# -- 6. Members, in the forms in which they can be told from a program's own ---------------------------------------

# `options.replicas = ...;` at the start of a line, as the lessons have it.
s/^\([[:space:]]*\)options\.replicas = /\1options.num_replicas = /
s/^\([[:space:]]*\)options\.per = /\1options.span = /
# Replicas share PUs where there are too few, so the flag beside a number of replicas is not needed.
/^[[:space:]]*[a-z_]*options\.placement_flags = DITTO_PLACEMENT_SHARE;$/d
# { .names = ..., .count = 1 } of ditto_files, and { .first_column = 0, .count = 1 } of ditto_csv_component.
s/\(\.names = [^;]*\), \.count = /\1, .num_names = /g
s/\(\.first_column = [^,]*\), \.count = /\1, .num_columns = /g

# -- 7. Order of parameters, where a call stands on one line and no parameter but the last has parentheses or commas ----

# (strategy, iterator, steps, function, user, ...) -> (strategy, function, user, iterator, steps, ...)
s/\<ditto_strategy_run_steps(\([^,()]*\), \([^,()]*\), \([^,()]*\), \([^,()]*\), \([^,()]*\), /ditto_strategy_run_steps(\1, \4, \5, \2, \3, /g
# (self, begin, end, grain, schedule, function, user) -> (self, function, user, begin, end, grain, schedule)
s/\<ditto_parallel_for(\([^,()]*\), \([^,()]*\), \([^,()]*\), \([^,()]*\), \([^,()]*\), \([^,()]*\), \([^,()]*\))/ditto_parallel_for(\1, \6, \7, \2, \3, \4, \5)/g
# (self, values, count, dtype, sum, options) -> (self, src, dst, count, dtype, options)
s/\<ditto_block_sum(\([^,()]*\), \([^,()]*\), \([^,()]*\), \([^,()]*\), \([^,()]*\), /ditto_block_sum(\1, \2, \5, \3, \4, /g
# (queue, &item, timeout_ms) -> (queue, timeout_ms, &item)
s/\<ditto_queue_get(\([^,()]*\), \([^,()]*\), \([^,()]*\))/ditto_queue_get(\1, \3, \2)/g

# -- 8. Calls whose status was ignored, now that every status must be looked at -----------------------------------------

# A statement on a line of its own. `(void)!` says that the status is ignored on purpose. Better: look at it.
s/^\([[:space:]]*\)\(ditto_\(strategy\|variable\|optimizer\|value\|queue\|iterator\|checkpointer\|dataset\|topology\|placement\)_destroy([^;=]*);\)/\1(void)!\2/
s/^\([[:space:]]*\)\(ditto_\(checkpoint_close\|queue_close\|strategy_scope_leave\|free\)([^;=]*);\)/\1(void)!\2/

# -- 9. Structs that the library fills, which have a size now. A declaration on a line of its own. --------------------------

s/^\([[:space:]]*ditto_limits [a-z_]*\);/\1 = DITTO_LIMITS_INIT;/
s/^\([[:space:]]*ditto_choice [a-z_]*\);/\1 = DITTO_CHOICE_INIT;/
s/^\([[:space:]]*ditto_topology_counts [a-z_]*\);/\1 = DITTO_TOPOLOGY_COUNTS_INIT;/
s/^\([[:space:]]*ditto_replica_info [a-z_]*\);/\1 = DITTO_REPLICA_INFO_INIT;/
s/^\([[:space:]]*ditto_device_info [a-z_]*\);/\1 = DITTO_DEVICE_INFO_INIT;/
s/^\([[:space:]]*ditto_queue_counters [a-z_]*\);/\1 = DITTO_QUEUE_COUNTERS_INIT;/
s/^\([[:space:]]*ditto_iterator_counters [a-z_]*\);/\1 = DITTO_ITERATOR_COUNTERS_INIT;/
s/^\([[:space:]]*ditto_operation_counters [a-z_]*\);/\1 = DITTO_OPERATION_COUNTERS_INIT;/
