"""The C library, its structs, and its errors. The package has no compiled part.

The structs have the layout of the C headers; tests/python compares sizes and offsets."""
from __future__ import annotations

import ctypes
import os
import pathlib
from typing import Any

MAX_RANK = 8
MAX_COMPONENTS = 16
HISTOGRAM_LENGTH = 32
NO_COLOR = 2**32 - 1


class Error(Exception):
    """An error of ditto. `str(error)` is its message. `status` is the name of the status without
    `DITTO_ERR_`, for example "DIVERGED". `replica` is the number of the replica that failed, or -1, and
    `function` is the name of the function of C that failed."""
    __module__ = "ditto"

    def __init__(self, record: Record) -> None:
        super().__init__(record.message.decode(errors="replace"))
        self.status: str = STATUS.get(record.status, str(record.status))
        self.replica: int = record.replica
        self.function: str = (record.function or b"").decode()


STATUS = {
    -1: "INVALID", -2: "RANGE", -3: "SHAPE", -4: "CONTEXT", -5: "DIVERGED", -6: "PEER_STOPPED",
    -7: "TIMED_OUT", -8: "POISONED", -9: "BUSY", -10: "CLOSED", -11: "FORKED", -12: "UNSUPPORTED",
    -13: "NOT_FOUND", -14: "IO", -15: "CORRUPT", -16: "NO_MEMORY", -17: "SYSTEM", -18: "USER", -19: "LOST",
    -20: "CANCELLED",
}
OK, END_OF_INPUT, PENDING, ERR_USER, ERR_CANCELLED = 0, 1, 2, -18, -20


class Record(ctypes.Structure):
    """ditto_error"""
    _fields_ = [("status", ctypes.c_int), ("replica", ctypes.c_int32), ("system_errno", ctypes.c_int32),
                ("user_code", ctypes.c_int32), ("function", ctypes.c_char_p),
                ("message", ctypes.c_char * 512)]


class Tensor(ctypes.Structure):
    """ditto_tensor"""
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_uint32),
                ("shape", ctypes.c_size_t * MAX_RANK), ("device", ctypes.c_uint32)]


class Options(ctypes.Structure):
    """A struct that begins with its size. All else is 0, which means the default."""

    def __init__(self, **members: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(self))
        names = [field[0] for field in self._fields_]
        for name, value in members.items():
            if name not in names or name == "struct_size":
                raise TypeError(f"there is no option {name!r}: there are {', '.join(names[1:])}")
            setattr(self, name, value)
            if isinstance(value, int) and getattr(self, name) != value:
                raise ValueError(f"{name} = {value} does not fit")


class StrategyOptions(Options):
    """ditto_strategy_options"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("num_replicas", ctypes.c_uint32), ("span", ctypes.c_int),
                ("placement_options", ctypes.c_void_p), ("placement", ctypes.c_void_p),
                ("caller", ctypes.c_int), ("pin", ctypes.c_int), ("helpers", ctypes.c_int),
                ("stack_bytes", ctypes.c_size_t), ("thread_start", ctypes.c_void_p),
                ("thread_stop", ctypes.c_void_p), ("thread_user", ctypes.c_void_p),
                ("memory", ctypes.c_int), ("parameter_node", ctypes.c_uint32),
                ("has_parameter_node", ctypes.c_int), ("timeout_ms", ctypes.c_uint32),
                ("run_timeout_ms", ctypes.c_uint32), ("spin_us", ctypes.c_uint32),
                ("has_spin_us", ctypes.c_int), ("implementation", ctypes.c_int),
                ("bytes_per_pack", ctypes.c_size_t), ("kernels", ctypes.c_int), ("tuning", ctypes.c_void_p),
                ("floating", ctypes.c_int), ("wait", ctypes.c_int), ("order_blocks", ctypes.c_uint32),
                ("part", ctypes.c_int), ("cluster", ctypes.c_void_p), ("run_agreement", ctypes.c_int),
                ("replicas_per_worker", ctypes.c_uint32), ("parameter_nodes", ctypes.c_void_p),
                ("num_parameter_nodes", ctypes.c_uint32), ("fastest_kinds", ctypes.c_uint32),
                ("pus_per_replica", ctypes.c_uint32)]


class ReduceOptions(Options):
    """ditto_reduce_options"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("flags", ctypes.c_uint32),
                ("timeout_ms", ctypes.c_uint32), ("bytes_per_pack", ctypes.c_size_t),
                ("implementation", ctypes.c_int), ("label", ctypes.c_char_p), ("group", ctypes.c_void_p)]


class MeshAxis(ctypes.Structure):
    """ditto_mesh_axis"""
    _fields_ = [("name", ctypes.c_char_p), ("extent", ctypes.c_uint32)]


class Group(ctypes.Structure):
    """ditto_group"""
    _fields_ = [("index", ctypes.c_uint32), ("rank", ctypes.c_uint32), ("size", ctypes.c_uint32),
                ("replicas", ctypes.POINTER(ctypes.c_uint32)), ("grouping", ctypes.c_uint64),
                ("slot", ctypes.c_uint32), ("run", ctypes.c_uint32)]


PARTITION_BY_REPLICA = 4


class Partitioner(ctypes.Structure):
    """ditto_partitioner"""
    _fields_ = [("kind", ctypes.c_int), ("num_shards", ctypes.c_size_t), ("bytes", ctypes.c_size_t)]


class VariableOptions(Options):
    """ditto_variable_options"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p),
                ("synchronization", ctypes.c_int), ("aggregation", ctypes.c_int), ("copies", ctypes.c_int),
                ("trainable", ctypes.c_int), ("initialize", ctypes.c_void_p),
                ("initialize_user", ctypes.c_void_p), ("colocate_with", ctypes.c_void_p),
                ("partitioner", Partitioner), ("concurrency", ctypes.c_int),
                ("slice_axis", ctypes.c_uint32), ("slice_along", ctypes.c_void_p)]


class PullOptions(Options):
    """ditto_pull_options"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("versions", ctypes.c_void_p), ("lock", ctypes.c_int)]


class CoordinatorOptions(Options):
    """ditto_coordinator_options"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("queue_capacity", ctypes.c_uint32),
                ("max_attempts", ctypes.c_uint32)]


class ScheduleOptions(Options):
    """ditto_schedule_options"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("no_wait", ctypes.c_int),
                ("argument", ctypes.POINTER(Tensor))]


class CoordinatorCounters(Options):
    """ditto_coordinator_counters"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("elapsed_ns", ctypes.c_uint64),
                ("scheduled", ctypes.c_uint64), ("ended", ctypes.c_uint64), ("functions", ctypes.c_uint64),
                ("busy_ns", ctypes.c_uint64), ("idle_ns", ctypes.c_uint64), ("depth", ctypes.c_uint64),
                ("largest_depth", ctypes.c_uint64), ("depth_histogram", ctypes.c_uint64 * HISTOGRAM_LENGTH),
                ("num_workers", ctypes.c_uint32), ("num_retired", ctypes.c_uint32),
                ("cancelled", ctypes.c_uint64), ("positive", ctypes.c_uint64)]


class OptimizerProperties(Options):
    """ditto_optimizer_properties"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("num_variables", ctypes.c_uint32),
                ("iterations", ctypes.c_void_p)]


class StalenessCounters(Options):
    """ditto_staleness_counters"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("calls", ctypes.c_uint64), ("dropped", ctypes.c_uint64),
                ("sum", ctypes.c_uint64), ("largest", ctypes.c_uint64),
                ("histogram", ctypes.c_uint64 * HISTOGRAM_LENGTH)]


class Slices(ctypes.Structure):
    """ditto_slices"""
    _fields_ = [("indices", ctypes.c_void_p), ("values", ctypes.c_void_p), ("rows", ctypes.c_size_t),
                ("row_count", ctypes.c_size_t), ("dtype", ctypes.c_int)]


class ShuffleOptions(Options):
    """ditto_shuffle_options"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("seed", ctypes.c_uint64),
                ("buffer_rows", ctypes.c_uint64), ("reshuffle", ctypes.c_int)]


class InputOptions(Options):
    """ditto_input_options"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("global_batch", ctypes.c_uint64),
                ("buffer", ctypes.c_uint32), ("num_producers", ctypes.c_uint32), ("partial", ctypes.c_int),
                ("pass", ctypes.c_uint64), ("num_pipelines", ctypes.c_uint32), ("shard", ctypes.c_int),
                ("replication", ctypes.c_int), ("flags", ctypes.c_uint32), ("max_bytes", ctypes.c_uint64),
                ("state", ctypes.c_void_p), ("state_bytes", ctypes.c_size_t)]


class VariableProperties(Options):
    """ditto_variable_properties"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("strategy", ctypes.c_void_p),
                ("trainable", ctypes.c_int), ("synchronization", ctypes.c_int),
                ("aggregation", ctypes.c_int), ("num_shards", ctypes.c_size_t),
                ("generation", ctypes.c_uint64)]


class CheckpointOptions(Options):
    """ditto_checkpoint_options, without the program's own attributes and data"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("variables", ctypes.c_void_p),
                ("num_variables", ctypes.c_size_t), ("step", ctypes.c_int64)]


class CheckpointProperties(Options):
    """ditto_checkpoint_properties"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("step", ctypes.c_int64), ("version", ctypes.c_char_p),
                ("num_entries", ctypes.c_size_t), ("attributes", ctypes.c_void_p),
                ("num_attributes", ctypes.c_size_t)]


class CheckpointEntry(ctypes.Structure):
    """ditto_checkpoint_entry"""
    _fields_ = [("name", ctypes.c_char_p), ("spec", Tensor), ("synchronization", ctypes.c_int),
                ("aggregation", ctypes.c_int), ("trainable", ctypes.c_int), ("is_data", ctypes.c_int)]


class Batch(ctypes.Structure):
    """ditto_batch"""
    _fields_ = [("rows", ctypes.c_uint64), ("step", ctypes.c_uint64), ("num_components", ctypes.c_uint32),
                ("component", Tensor * MAX_COMPONENTS)]


class Pending(ctypes.Structure):
    """ditto_pending"""
    _fields_ = [("number", ctypes.c_uint64), ("replica", ctypes.c_void_p), ("run", ctypes.c_uint32)]


class ExchangePart(ctypes.Structure):
    """ditto_exchange_part"""
    _fields_ = [("replica", ctypes.c_uint32), ("tag", ctypes.c_uint32), ("src", ctypes.c_void_p),
                ("dst", ctypes.c_void_p), ("src_count", ctypes.c_size_t), ("dst_count", ctypes.c_size_t),
                ("dtype", ctypes.c_int)]


class AllToAllParts(ctypes.Structure):
    """ditto_all_to_all_parts"""
    _fields_ = [("src_counts", ctypes.c_void_p), ("src_offsets", ctypes.c_void_p),
                ("dst_counts", ctypes.c_void_p), ("dst_offsets", ctypes.c_void_p)]


class CsvComponent(ctypes.Structure):
    """ditto_csv_component"""
    _fields_ = [("first_column", ctypes.c_uint32), ("num_columns", ctypes.c_uint32), ("dtype", ctypes.c_int),
                ("text_bytes", ctypes.c_uint32), ("missing", ctypes.c_int),
                ("missing_value", ctypes.c_double)]


class CsvOptions(Options):
    """ditto_csv_options"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("num_columns", ctypes.c_uint32),
                ("skip_lines", ctypes.c_uint32), ("delimiter", ctypes.c_char), ("no_quotes", ctypes.c_int)]


class Files(ctypes.Structure):
    """ditto_files"""
    _fields_ = [("names", ctypes.POINTER(ctypes.c_char_p)), ("num_names", ctypes.c_uint32),
                ("flags", ctypes.c_uint32)]


class OptimizerOptions(Options):
    """ditto_optimizer_options"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("rule", ctypes.c_int),
                ("op", ctypes.c_int), ("learning_rate", ctypes.c_double),
                ("has_learning_rate", ctypes.c_int), ("momentum", ctypes.c_double),
                ("nesterov", ctypes.c_int), ("beta1", ctypes.c_double), ("has_beta1", ctypes.c_int),
                ("beta2", ctypes.c_double), ("has_beta2", ctypes.c_int), ("epsilon", ctypes.c_double),
                ("has_epsilon", ctypes.c_int), ("weight_decay", ctypes.c_double),
                ("clip_norm", ctypes.c_double), ("function", ctypes.c_void_p), ("user", ctypes.c_void_p),
                ("num_slots", ctypes.c_uint32), ("rate_factors", ctypes.c_void_p),
                ("weight_decays", ctypes.c_void_p), ("accumulate", ctypes.c_uint32),
                ("max_staleness", ctypes.c_int64), ("has_max_staleness", ctypes.c_int)]


class ApplyOptions(Options):
    """ditto_apply_options"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("learning_rate", ctypes.c_double),
                ("has_learning_rate", ctypes.c_int), ("norm", ctypes.POINTER(ctypes.c_double)),
                ("read_steps", ctypes.c_int64), ("has_read_steps", ctypes.c_int),
                ("dropped", ctypes.c_void_p)]


REPLICA_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
MERGE_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32,
                                  ctypes.c_void_p, ctypes.c_void_p)
THROUGH_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                                    ctypes.c_void_p)


def load(name: str = "ditto") -> ctypes.CDLL:
    """Loads libditto or libditto-hdf5: from DITTO_LIBRARY_PATH, from the prefix where this package is
    installed, from /usr/local, or from where the system looks for libraries. ctypes lets other threads of
    Python run while a function of it is called, so a replica that waits in a collective stops no other."""
    file = f"lib{name}.so.0"
    folders = [pathlib.Path(part) for part in os.environ.get("DITTO_LIBRARY_PATH", "").split(":") if part]
    # The package is in PREFIX/share/ditto/python/ditto, or in PREFIX/lib/python3.N/site-packages/ditto.
    for prefix in (*list(pathlib.Path(__file__).resolve().parents)[4:5], pathlib.Path("/usr/local")):
        folders += [prefix / "lib", prefix / "lib64", *(prefix / "lib").glob("*-linux-gnu")]
    found = [str(folder / file) for folder in folders if (folder / file).exists()]
    try:
        return ctypes.CDLL(found[0] if found else file)
    except OSError as e:
        hint = ""
        if "static TLS" in str(e):
            hint = ": see docs/dlopen.md"
        elif not found:
            hint = (f". It is not in {', '.join(map(str, folders))} either: install ditto, or set "
                    "DITTO_LIBRARY_PATH to its folder, which `pkg-config --variable=libdir ditto` prints")
        raise ImportError(f"ditto could not load its library: {e}{hint}") from None


lib = load()
lib.ditto_last_error.restype = ctypes.POINTER(Record)
lib.ditto_version.restype = ctypes.c_char_p
for function in ("ditto_num_replicas", "ditto_replica_id", "ditto_strategy_num_replicas",
                 "ditto_worker"):
    getattr(lib, function).restype = ctypes.c_uint32
    getattr(lib, function).argtypes = [ctypes.c_void_p]


def check(status: int) -> int:
    """Returns a status that is no error, and raises Error for one that is."""
    if status < 0:
        raise Error(lib.ditto_last_error().contents)
    return status


def dict_of(counters: Options) -> dict[str, Any]:
    """Returns the members of a struct that the library has filled. Arrays become lists."""
    found = {field[0]: getattr(counters, field[0]) for field in counters._fields_[1:]}
    return {name: value if isinstance(value, int) else list(value) for name, value in found.items()}


def text_of(function: Any, *arguments: Any) -> str:
    """Returns what a C function writes with (buffer, capacity, length)."""
    length = ctypes.c_size_t()
    check(function(*arguments, None, 0, ctypes.byref(length)))
    buffer = ctypes.create_string_buffer(length.value + 1)
    check(function(*arguments, buffer, ctypes.c_size_t(len(buffer)), ctypes.byref(length)))
    return buffer.value.decode(errors="replace")
