"""ditto in Python: replicas, collectives, variables, input and checkpoints on NumPy arrays.

A program::

    import numpy, ditto

    with ditto.Strategy(4) as strategy:
        def mean(self):
            x = numpy.array([self.id + 1.0])
            return self.all_reduce(x, "mean")[0]
        print(strategy.run(mean))            # [2.5, 2.5, 2.5, 2.5]

Functions of a run are Python functions. Replicas take turns in them, because one thread at a time executes
Python (the GIL). They run side by side in ditto, in NumPy and in other code that lets other threads run
meanwhile. So this package is for tests, notebooks and reading results, and not for speed.

An exception that leaves a function of a run ends the run on all replicas, and comes out of `run`. Errors of
ditto are `ditto.Error`. What each operation means is said in docs/semantics.md and in the C headers.

Arrays are never copied. They must be contiguous, in the byte order of the machine, and writable where a
result is stored. Otherwise the call raises ValueError."""
from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args

import numpy

from . import _c
from ._c import Error, lib

if TYPE_CHECKING:
    from _typeshed import StrOrBytesPath
    from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = ["Aggregation", "Checkpoint", "Concurrency", "Coordinator", "Dataset", "Error", "Group",
           "Grouping", "Iterator", "Kind", "Op", "Optimizer", "Pending", "Remote", "Replica", "Rule",
           "ScatterOp", "SharedDataset", "Strategy", "Synchronization", "Variable", "__version__", "load",
           "version"]

#: The version of the package.
__version__ = "0.1.0"

#: The version of the library. Its first two numbers are those of the package.
version: str = lib.ditto_version().decode()

if version.split(".")[:2] != __version__.split(".")[:2]:
    raise ImportError(f"this package is of ditto {__version__}, but {lib._name} is {version}: install both "
                      "of one version")

#: How the values of replicas are combined.
Op = Literal["sum", "mean", "min", "max", "prod", "and", "or", "xor"]
#: The kind of a strategy.
Kind = Literal["mirrored", "central_storage", "one_device", "parameter_server"]
#: What `Replica.scatter` does with rows of a variable.
ScatterOp = Literal["add", "sub", "mul", "div", "min", "max", "update"]
#: When the copies of a variable are made equal.
Synchronization = Literal["write", "read"]
#: What the values that replicas assign become together.
Aggregation = Literal["none", "sum", "mean", "first"]
#: Whether workers lock a parameter.
Concurrency = Literal["locked", "hogwild", "free_reads"]
#: How an optimizer updates a variable from a gradient.
Rule = Literal["assign", "add", "sub", "sgd", "adam"]

_T = TypeVar("_T")
_Array = TypeVar("_Array", bound="NDArray[Any]")
_Self = TypeVar("_Self", bound="_Object")


def _numbered(names: Any, first: int = 1) -> dict[str, int]:
    return dict(zip(get_args(names), itertools.count(first)))


_OPS = _numbered(Op)
_DTYPES = {"float16": 1, "float32": 3, "float64": 4, "complex64": 5, "complex128": 6, "int8": 7, "int16": 8,
           "int32": 9, "int64": 10, "uint8": 11, "uint16": 12, "uint32": 13, "uint64": 14, "bool": 15}
_NAMES = {number: name for name, number in _DTYPES.items()}
_NAMES[2] = "uint16"  # NumPy has no bf16, so its bits are given
_KINDS = {**_numbered(Kind), "parameter_server": 5}
_SCATTERS = _numbered(ScatterOp)
_SYNCHRONIZATIONS = _numbered(Synchronization)
_RULES = _numbered(Rule)
_AGGREGATIONS = _numbered(Aggregation, 0x40)
_CONCURRENCIES = _numbered(Concurrency)


def _pull_options(lock: bool | None) -> _c.PullOptions:
    return _c.PullOptions(lock=0 if lock is None else 1 if lock else 2)


def _one_of(table: Mapping[str, int], value: str, what: str) -> int:
    if value not in table:
        raise ValueError(f"{what} {value!r} is not known: there are {', '.join(table)}")
    return table[value]


def _uint32s(numbers: Sequence[int], what: str) -> ctypes.Array[ctypes.c_uint32]:
    given = (ctypes.c_uint32 * len(numbers))(*(int(number) for number in numbers))
    if list(given) != list(numbers):
        raise ValueError(f"{what} are {list(numbers)}, and must be integers from 0 to {2**32 - 1}")
    return given


def _check_array(array: NDArray[Any], what: str,
                 writable: bool) -> tuple[ctypes.c_void_p, ctypes.c_size_t, int]:
    """Returns the address, the number of elements and the dtype of an array that C may use."""
    if not isinstance(array, numpy.ndarray):
        raise ValueError(f"{what} must be a numpy.ndarray, and is a {type(array).__name__}: "
                         "use numpy.array(...)")
    if array.dtype.name not in _DTYPES:
        raise ValueError(f"{what} has the dtype {array.dtype}, which ditto does not have: "
                         f"use {', '.join(_DTYPES)}")
    if not array.dtype.isnative:
        raise ValueError(f"{what} is in the other byte order: "
                         "use array.astype(array.dtype.newbyteorder('='))")
    if not array.flags.c_contiguous:
        raise ValueError(f"{what} is not contiguous: use numpy.ascontiguousarray(array)")
    if writable and not array.flags.writeable:
        raise ValueError(f"{what} is read-only, and gets a result")
    return (ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.size), _DTYPES[array.dtype.name])


def _tensor_of(array: NDArray[Any], what: str) -> _c.Tensor:
    address, _, dtype = _check_array(array, what, False)
    if array.ndim > _c.MAX_RANK:
        raise ValueError(f"{what} has {array.ndim} dimensions: at most {_c.MAX_RANK} are possible")
    return _c.Tensor(data=address, dtype=dtype, rank=array.ndim, shape=tuple(array.shape))


def _indices_of(indices: ArrayLike) -> NDArray[numpy.int64]:
    """Returns a contiguous array of int64."""
    array = numpy.asarray(indices)
    if array.size != 0 and not numpy.issubdtype(array.dtype, numpy.integer):
        raise ValueError(f"the indices have the dtype {array.dtype}, and must be integers")
    return numpy.ascontiguousarray(array, numpy.int64)


def _array_at(tensor: _c.Tensor, owner: object) -> NDArray[Any]:
    """Returns a read-only array of a tensor's elements, without a copy. It keeps `owner` alive."""
    dtype = numpy.dtype(_NAMES[tensor.dtype])
    shape = tuple(tensor.shape[:tensor.rank])
    count = int(numpy.prod(shape, dtype=numpy.int64))
    if count == 0 or not tensor.data:
        return numpy.empty(shape, dtype)
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(tensor.data)
    memory.owner = owner  # type: ignore[attr-defined]
    array: NDArray[Any] = numpy.frombuffer(memoryview(memory), dtype).reshape(shape)
    array.flags.writeable = False
    return array


def _is_gone_after(status: int) -> bool:
    """Returns True if a destroy with this status has destroyed the object."""
    return status >= 0 or _c.STATUS.get(status) == "POISONED"


class _Object:
    """Owns an object of ditto, and destroys it once."""
    _destroy: ClassVar[str]

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle: ctypes.c_void_p | None = handle

    def _get(self) -> ctypes.c_void_p:
        if self._handle is None:
            raise ValueError(f"this {type(self).__name__} has been destroyed")
        return self._handle

    def destroy(self) -> None:
        """Destroys the object. It may be called again."""
        if self._handle is not None:
            _c.check(self._end())

    def _end(self) -> int:
        """Destroys the object, and returns the status."""
        status: int = getattr(lib, self._destroy)(self._handle)
        if _is_gone_after(status):
            self._handle = None
        return status

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self.destroy()
        except Error:
            if kind is None:  # otherwise the exception that is on its way says more
                raise

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None and lib is not None:
            self._end()


def _make(function: Any, *arguments: Any) -> ctypes.c_void_p:
    out = ctypes.c_void_p()
    _c.check(function(*arguments, ctypes.byref(out)))
    return out


def _text_of(e: BaseException) -> bytes:
    try:
        text = f"{type(e).__name__}: {e}"
    except Exception:  # pylint: disable=broad-except # its __str__ is the program's
        text = type(e).__name__
    return text.encode(errors="backslashreplace").replace(b"\0", b"")


class _Callback:
    """A function of the program that a collective calls on one replica. All replicas give the same function
    of C, which they compare, and each its own callback."""
    called: ClassVar[dict[int, _Callback]] = {}
    lock = threading.Lock()

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        self.error: BaseException | None = None

    def __enter__(self) -> _Callback:
        with self.lock:
            self.called[id(self)] = self
        return self

    def __exit__(self, *_: object) -> None:
        with self.lock:
            del self.called[id(self)]

    def check(self, status: int) -> int:
        """Raises what the function has raised, or the error of the collective."""
        if status < 0 and self.error is not None:
            raise self.error
        return _c.check(status)

    @classmethod
    def call(cls, key: int, *arguments: object) -> int:
        """Calls the function. Its exception waits until the collective has returned."""
        self = cls.called[key]
        try:
            self.function(*arguments)
            return _c.OK
        except BaseException as e:  # pylint: disable=broad-except # it goes on in check
            self.error = e
            return int(lib.ditto_fail(None, 0, b"%s", _text_of(e)))


def _call_merge(_strategy: object, _arguments: object, _num_arguments: int, user: int,
                _result: object) -> int:
    return _Callback.call(user)


def _call_through(buffer: int, count: int, dtype: int, user: int) -> int:
    tensor = _c.Tensor(data=buffer, dtype=dtype, rank=1, shape=(count,))
    array = _array_at(tensor, None)
    if count != 0:
        array.flags.writeable = True
    return _Callback.call(user, array)


_merge = _c.MERGE_FUNCTION(_call_merge)
_through = _c.THROUGH_FUNCTION(_call_through)


class _CtrlC:
    """Surrounds a call in which the main thread may wait in C. Python handles a signal there when the call
    has returned, and until then only writes a byte, which a thread of this class reads. It ends the call with
    `interrupt` if the main thread waits in ditto. If the main thread is in other code, that code gets the
    KeyboardInterrupt. A program with its own handler of SIGINT is left alone."""
    lock = threading.Lock()
    interrupt: ClassVar[Callable[[], object] | None] = None
    # The two ends of a pipe, and the process that has made it.
    pipe: ClassVar[tuple[int, int, int]] = (-1, -1, -1)

    def __init__(self, interrupt: Callable[[], object]) -> None:
        self.wanted, self.fd = interrupt, -1

    def __enter__(self) -> None:
        if (threading.current_thread() is not threading.main_thread() or _CtrlC.interrupt is not None
                or signal.getsignal(signal.SIGINT) is not signal.default_int_handler):
            return
        if self.pipe[2] != os.getpid():
            ends = os.pipe()
            os.set_blocking(ends[1], False)
            _CtrlC.pipe = (*ends, os.getpid())
            threading.Thread(target=self.listen, args=ends[:1], daemon=True).start()
        before = signal.set_wakeup_fd(self.pipe[1], warn_on_full_buffer=False)
        if before not in (-1, self.pipe[1]):  # it belongs to another part of the program
            signal.set_wakeup_fd(before)
            return
        self.fd, _CtrlC.interrupt = self.pipe[1], self.wanted

    def __exit__(self, *_: object) -> None:
        if self.fd != -1:
            with self.lock:
                _CtrlC.interrupt = None
            signal.set_wakeup_fd(-1)

    @classmethod
    def listen(cls, fd: int) -> None:
        """The thread that reads which signals have come."""
        while True:
            if signal.SIGINT not in os.read(fd, 4096):
                continue
            waiting = cls.interrupt  # a method that was bound for one call
            time.sleep(0.01)  # in which the main thread can handle the signal itself
            with cls.lock:
                frame = sys._current_frames().get(threading.main_thread().ident or 0)
                if (waiting is not None and cls.interrupt is waiting and frame
                        and frame.f_globals.get("__name__") == __name__):
                    with contextlib.suppress(Error, ValueError):  # the strategy may have been destroyed
                        waiting()


# What a replica whose function was not called has returned.
_NOTHING = object()


class _Run:
    """A call of Strategy.run: the function, what it returned, and the first exception."""

    def __init__(self, function: Callable[[Replica], object], n: int,
                 interrupt: Callable[[], object] = lambda: None) -> None:
        self.function, self.interrupt = function, interrupt
        self.results: list[Any] = [_NOTHING] * n
        self.first: BaseException | None = None
        self.left: list[Pending] = []
        self.lock = threading.Lock()
        self.inside = 0  # replicas that are in the function
        self.has_ended = False

    def on_replica(self, handle: int, _: object) -> int:
        """The function that C calls on each replica."""
        replica = None
        with self.lock:
            self.inside += 1
        try:
            replica = Replica(handle)
            self.results[replica.id] = self.function(replica)
            # Arrays of operations that were not waited for must stay until the library has noticed it.
            self.left += replica._pending.values()
            return _c.OK
        except BaseException as e:  # pylint: disable=broad-except # it goes on in run
            return self.keep(handle, e)
        finally:
            if replica is not None:
                replica._handle.value = None
            with self.lock:
                self.inside -= 1

    def keep(self, handle: int, e: BaseException) -> int:
        """Keeps an exception, and returns the status with which the replica fails. After it, no replica uses
        the arrays of operations that this one has started."""
        replica, record = ctypes.c_void_p(handle), lib.ditto_last_error().contents
        if isinstance(e, Error) and record.message.decode(errors="replace") == str(e):
            return int(lib.ditto_abandon(replica, record.status))  # that of the call that has just failed
        with self.lock:
            self.first = self.first or e
        if isinstance(e, KeyboardInterrupt):
            self.interrupt()  # does not wait for replicas that compute
        return int(lib.ditto_abandon(replica, lib.ditto_fail(replica, 0, b"%s", _text_of(e))))


# Calls of Strategy.run that have not ended, and those some of whose replicas have not returned in time. A
# callback must exist until C has returned from it.
_runs: dict[_Run, object] = {}
_runs_lock = threading.Lock()
# True when the program ends.
_is_ending = False


def _forget_after_fork() -> None:
    """The runs of the parent do not end here, and its pipe is not for the signals of this process."""
    global _runs_lock  # pylint: disable=global-statement
    _runs.clear()
    _runs_lock, _CtrlC.lock = threading.Lock(), threading.Lock()  # other threads may have had them
    if _CtrlC.interrupt is not None:
        _CtrlC.interrupt = None
        signal.set_wakeup_fd(-1)


os.register_at_fork(after_in_child=_forget_after_fork)


def _stay_if_ending() -> None:
    """When Python ends, it ends each daemon thread that executes Python, also inside of calls of ditto. A
    thread that stays here executes none."""
    if _is_ending and threading.current_thread().daemon:
        threading.Event().wait()


@atexit.register
def _end_runs() -> None:
    """Ends the runs of daemon threads."""
    global _is_ending  # pylint: disable=global-statement
    with _runs_lock:
        _is_ending = True
        runs = [run for run in _runs if not run.has_ended]
    for run in runs:
        with contextlib.suppress(Error, ValueError):
            run.interrupt()
    limit = time.monotonic() + 1  # a thread may be stuck in its own function
    while not all(run.has_ended for run in runs) and time.monotonic() < limit:
        time.sleep(0.01)


class Strategy(_Object):
    """Replicas that work together on this host. `kind` is "mirrored", "central_storage", "one_device", or
    "parameter_server", whose replicas are the workers of a Coordinator. If `num_replicas` is 0, the library
    chooses the number. `options` are members of `ditto_strategy_options`, for example `timeout_ms`."""
    _destroy = "ditto_strategy_destroy"
    _is_ending = False

    def __init__(self, num_replicas: int = 0, kind: Kind = "mirrored", **options: int) -> None:
        given = _c.StrategyOptions(num_replicas=num_replicas, **options)
        self._replicas_per_worker: int = given.replicas_per_worker or 1
        super().__init__(_make(lib.ditto_strategy_create, _one_of(_KINDS, kind, "the kind"),
                               ctypes.byref(given)))

    def _end(self) -> int:
        self._is_ending = True  # a grouping that another thread drops meanwhile is left
        try:
            return super()._end()
        finally:
            self._is_ending = False

    @property
    def num_replicas(self) -> int:
        """The number of replicas."""
        return int(lib.ditto_strategy_num_replicas(self._get()))

    def run(self, function: Callable[[Replica], _T]) -> list[_T]:
        """Calls `function(replica)` on each replica, and returns the list of what they returned."""
        run = _Run(function, self.num_replicas, self.interrupt)
        handle, callback = self._get(), _c.REPLICA_FUNCTION(run.on_replica)
        with _runs_lock:
            if not _is_ending:
                _runs[run] = callback
        _stay_if_ending()
        status = _c.ERR_CANCELLED
        try:
            with _CtrlC(self.interrupt):
                status = lib.ditto_strategy_run(handle, callback, None)
        finally:
            run.has_ended = True
            was_given_up = (_c.STATUS.get(status) in ("TIMED_OUT", "CANCELLED")
                            and b"poisoned" in lib.ditto_last_error().contents.message)
            if run.inside == 0 and not was_given_up:  # otherwise a replica may still be in the function
                _runs.pop(run, None)
        _stay_if_ending()
        if run.first is not None and (status == _c.ERR_USER or isinstance(run.first, KeyboardInterrupt)):
            raise run.first
        _c.check(status)
        if any(result is _NOTHING for result in run.results):
            raise KeyboardInterrupt  # it came before the function was called, and C cannot tell it
        return run.results

    def interrupt(self) -> None:
        """Ends the present run, from another thread. It raises `ditto.Error` with the status "CANCELLED". The
        strategy is poisoned if a replica does not return within half a second."""
        _c.check(lib.ditto_strategy_interrupt(self._get()))

    def variable(self, value: NDArray[Any], name: str | None = None,
                 synchronization: Synchronization = "write", aggregation: Aggregation = "none",
                 concurrency: Concurrency | None = None, slice_axis: int | None = None,
                 slice_along: Grouping | None = None) -> Variable:
        """Creates a variable with this value. `synchronization` is "write" (mirrored) or "read".
        `aggregation` is "none", "sum", "mean" or "first". `concurrency`, which only parameters have, is
        "locked", "free_reads" or "hogwild". With `slice_axis`, that dimension is sliced over the ranks of
        the groups of `slice_along`, or over all replicas."""
        if slice_along is not None and slice_axis is None:
            raise ValueError("slice_along is given without slice_axis, the dimension to slice")
        if slice_axis is not None and slice_axis < 0:
            slice_axis += value.ndim
        options = _c.VariableOptions(
            name=name.encode() if name else None,
            synchronization=_one_of(_SYNCHRONIZATIONS, synchronization, "the synchronization"),
            aggregation=_one_of(_AGGREGATIONS, aggregation, "the aggregation"),
            concurrency=_one_of(_CONCURRENCIES, concurrency, "the concurrency") if concurrency else 0,
            partitioner=_c.Partitioner(kind=_c.PARTITION_BY_REPLICA if slice_axis is not None else 0),
            slice_axis=slice_axis or 0, slice_along=slice_along._get() if slice_along is not None else None)
        tensor = _tensor_of(value, "the value")
        return Variable(_make(lib.ditto_variable_create, self._get(), ctypes.byref(tensor),
                              ctypes.byref(options)), value, self, slice_axis is not None)

    def optimizer(self, variables: Sequence[Variable], rule: Rule = "sgd", **options: Any) -> Optimizer:
        """Creates an optimizer of variables. `rule` is "sgd", "adam", "assign", "add" or "sub". `options` are
        members of `ditto_optimizer_options`, for example `learning_rate`, `momentum` or `clip_norm`. `op` is
        one of the names that `all_reduce` has, and `rate_factors` and `weight_decays` are lists with a number
        for each variable."""
        lists: dict[str, ctypes.Array[ctypes.c_double]] = {}
        for name, value in options.items():
            if name in ("function", "user", "num_slots"):
                raise TypeError(f"{name} is not for Python: use the rules that there are")
            if name == "op":
                options[name] = _one_of(_OPS, value, "the op")
            elif name == "name":
                options[name] = value.encode()
            elif name in ("rate_factors", "weight_decays"):
                if len(value) != len(variables):
                    raise ValueError(f"{name} has {len(value)} numbers, and there are {len(variables)} "
                                     "variables")
                lists[name] = (ctypes.c_double * len(value))(*value)  # C copies them
        options.update((name, ctypes.cast(value, ctypes.c_void_p)) for name, value in lists.items())
        optional = ("learning_rate", "beta1", "beta2", "epsilon", "max_staleness")
        options.update(("has_" + name, 1) for name in optional if name in options)
        given = _c.OptimizerOptions(rule=_one_of(_RULES, rule, "the rule"), **options)
        handles = (ctypes.c_void_p * len(variables))(*(v._get() for v in variables))
        return Optimizer(_make(lib.ditto_optimizer_create, handles, ctypes.c_uint32(len(variables)),
                               ctypes.byref(given)), list(variables))

    def iterate(self, dataset: Dataset, global_batch: int, epoch: int = 0, drop_remainder: bool = False,
                **options: int) -> Iterator:
        """Returns an iterator of the dataset's batches, each of which has `global_batch` rows for all
        replicas together. In the last step there may be fewer, and none for some replicas, unless
        `drop_remainder` is true: then there is no such step. Each epoch has an iterator of its own, with its
        number as `epoch`: a dataset that is shuffled has another order in each. `options` are members of
        `ditto_input_options`, for example `buffer`."""
        dataset, given = _input_of(dataset, global_batch, epoch, drop_remainder, options)
        return Iterator(_make(lib.ditto_strategy_iterate, self._get(), dataset._get(), ctypes.byref(given)),
                        dataset, self)

    def save(self, path: StrOrBytesPath, step: int = 0) -> None:
        """Saves all variables to a checkpoint, which is a file in HDF5 format."""
        options = _c.CheckpointOptions(step=step)
        _c.check(_hdf5().ditto_checkpoint_save(self._get(), os.fsencode(path), ctypes.byref(options)))

    def restore(self, path: StrOrBytesPath) -> None:
        """Restores all variables from a checkpoint."""
        _c.check(_hdf5().ditto_checkpoint_restore(self._get(), os.fsencode(path), None, None))

    def split(self, colors: Sequence[int | None], keys: Sequence[int] | None = None) -> Grouping:
        """Divides the replicas into groups, one for each color. Replica i has `colors[i]`, and is in no group
        if that is None. Ranks in a group follow the keys, and among equal keys the ids."""
        given = _uint32s([_c.NO_COLOR if color is None else color for color in colors], "the colors")
        if keys is not None and len(keys) != len(colors):
            raise ValueError(f"{len(keys)} keys are not as many as the {len(colors)} colors")
        return Grouping(_make(lib.ditto_strategy_split, self._get(), given,
                              None if keys is None else _uint32s(keys, "the keys"),
                              ctypes.c_uint32(len(colors))), self)

    def mesh(self, axes: Mapping[str, int]) -> dict[str, Grouping]:
        """Arranges the replicas in a mesh, such as `{"data": 2, "tensor": 4}`, and returns a grouping for
        each axis. Its groups are the replicas that differ in their place along this axis alone. Ids count
        row by row: the last axis runs fastest."""
        extents = _uint32s(list(axes.values()), "the extents")
        given = (_c.MeshAxis * len(axes))(*(_c.MeshAxis(name.encode(), extent)
                                            for name, extent in zip(axes, extents)))
        made = (ctypes.c_void_p * len(axes))()
        _c.check(lib.ditto_strategy_mesh(self._get(), given, ctypes.c_uint32(len(axes)), made))
        return {name: Grouping(ctypes.c_void_p(handle), self) for name, handle in zip(axes, made)}

    def describe(self) -> str:
        """Returns a text about the replicas and where they are."""
        return _c.text_of(lib.ditto_strategy_describe, self._get())

    def trace(self) -> None:
        """Begins to record what replicas do. After `trace_stop`, the recording is given by `trace_table` and
        `trace_write`."""
        _c.check(lib.ditto_strategy_trace_start(self._get(), None))

    def trace_stop(self) -> None:
        """Ends the recording."""
        _c.check(lib.ditto_strategy_trace_stop(self._get()))

    def trace_table(self) -> str:
        """Returns the table of operations, with their times, as a text."""
        return _c.text_of(lib.ditto_strategy_trace_describe, self._get())

    def trace_write(self, path: StrOrBytesPath) -> None:
        """Writes the recording to a file for a trace viewer."""
        _c.check(lib.ditto_strategy_trace_write(self._get(), os.fsencode(path)))


class _Collectives:
    """The collectives of a replica, or of its place in a group."""

    def __init__(self, handle: ctypes.c_void_p, pending: dict[int, Pending],
                 group: _c.Group | None = None) -> None:
        # Its value is None when the function has returned. A replica and its groups have one together.
        self._handle = handle
        # Operations that were started and not waited for. They keep their arrays.
        self._pending = pending
        self._group = group

    def _get(self) -> ctypes.c_void_p:
        if self._handle.value is None:
            raise ValueError("this replica's function has returned")
        return self._handle

    def _collective(self, label: str | None, timeout_ms: int = 0) -> Any:
        """The options of a collective, which are None if all are the defaults."""
        if label is None and timeout_ms == 0 and self._group is None:
            return None
        text = None if label is None else label.encode()
        group = None if self._group is None else ctypes.addressof(self._group)
        return ctypes.byref(_c.ReduceOptions(timeout_ms=timeout_ms, label=text, group=group))

    @property
    def id(self) -> int:
        """The number of the replica, from 0."""
        return int(lib.ditto_replica_id(self._get()))

    @property
    def num_replicas(self) -> int:
        """The number of replicas."""
        return int(lib.ditto_num_replicas(self._get()))

    # Collectives have labels, which are compared between replicas (docs/semantics.md, rule 6.8).

    def barrier(self, timeout_ms: int = 0, *, label: str | None = None) -> None:
        """Waits for all replicas. If `timeout_ms` is 0, the time limit is that of the strategy."""
        _c.check(lib.ditto_barrier(self._get(), self._collective(label, timeout_ms)))

    def all_reduce(self, src: _Array, op: Op = "sum", out: _Array | None = None, *,
                   label: str | None = None) -> _Array:
        """Combines the arrays of all replicas, in place or into `out`, and returns the array that has the
        result. `op` is "sum", "mean", "min", "max", "prod", "and", "or" or "xor". Every replica gives the
        same `label`, such as "loss"."""
        _, d, count, dtype, s = self._two(src, out, 1, 1)
        _c.check(lib.ditto_all_reduce(self._get(), s, d, count, dtype, _one_of(_OPS, op, "the op"),
                                      self._collective(label)))
        return src if out is None else out

    def reduce(self, array: _Array, root: int = 0, op: Op = "sum", *, label: str | None = None) -> _Array:
        """Combines the arrays of all replicas in that of the replica `root`, and returns the array."""
        address, count, dtype = _check_array(array, "the array", True)
        _c.check(lib.ditto_reduce_to_root(self._get(), address, address, count, dtype,
                                          _one_of(_OPS, op, "the op"), ctypes.c_uint32(root),
                                          self._collective(label)))
        return array

    def broadcast(self, array: _Array, root: int = 0, *, label: str | None = None) -> _Array:
        """Copies the array of the replica `root` to all replicas, and returns the array."""
        address, count, dtype = _check_array(array, "the array", True)
        _c.check(lib.ditto_broadcast_from_root(self._get(), address, count, dtype, ctypes.c_uint32(root),
                                               self._collective(label)))
        return array

    def all_gather(self, src: NDArray[Any], out: _Array, *, label: str | None = None) -> _Array:
        """Puts the arrays of all replicas behind each other in `out`, and returns it."""
        count, d, _, dtype, s = self._two(src, out, self.num_replicas, 1)
        _c.check(lib.ditto_all_gather(self._get(), s, d, count, None, dtype, self._collective(label)))
        return out

    def reduce_scatter(self, src: NDArray[Any], out: _Array, op: Op = "sum", *,
                       label: str | None = None) -> _Array:
        """Combines the arrays of all replicas, and gives each replica its part in `out`, which it returns."""
        _, d, count, dtype, s = self._two(src, out, 1, self.num_replicas)
        _c.check(lib.ditto_reduce_scatter(self._get(), s, d, count, None, dtype, _one_of(_OPS, op, "the op"),
                                          self._collective(label)))
        return out

    def all_to_all(self, src: _Array, out: _Array | None = None, src_counts: Sequence[int] | None = None,
                   dst_counts: Sequence[int] | None = None, *, label: str | None = None) -> _Array:
        """Gives part k of `src` to replica k, and puts the parts from all replicas behind each other in
        `out`, or in `src`. Parts have equal sizes, or those of the counts, of which both are given. Returns
        the array that has the result."""
        uneven = src_counts is not None and dst_counts is not None
        if (src_counts is None) != (dst_counts is None):
            raise ValueError("only one of src_counts and dst_counts is given: give both, or none")
        count, d, out_count, dtype, s = self._two(src, out, not uneven, not uneven)
        if not uneven and count.value % self.num_replicas != 0:
            raise ValueError(f"the source has {src.size} elements, which are no equal parts for "
                             f"{self.num_replicas} replicas")
        parts = None
        if src_counts is not None and dst_counts is not None:
            gives, takes = self._counts(src_counts, count), self._counts(dst_counts, out_count)
            parts = ctypes.byref(_c.AllToAllParts(src_counts=ctypes.addressof(gives),
                                                  dst_counts=ctypes.addressof(takes)))
        _c.check(lib.ditto_all_to_all(self._get(), s, d, ctypes.c_size_t(count.value // self.num_replicas),
                                      parts, dtype, self._collective(label)))
        return src if out is None else out

    def gather_to_root(self, src: NDArray[Any], out: NDArray[Any] | None, root: int = 0,
                       counts: Sequence[int] | None = None, *, label: str | None = None) -> None:
        """Puts the arrays of all replicas behind each other in `out` of the replica `root`. On other replicas
        `out` may be None. If the arrays have different sizes, every replica gives all of them as `counts`."""
        s, d, count, given, dtype = self._with_root(src, out, root, counts, True)
        _c.check(lib.ditto_gather_to_root(self._get(), s, d, count, given, None, dtype, ctypes.c_uint32(root),
                                          self._collective(label)))

    def scatter_from_root(self, src: NDArray[Any] | None, out: _Array, root: int = 0,
                          counts: Sequence[int] | None = None, *, label: str | None = None) -> _Array:
        """Gives part k of the array `src` of the replica `root` to replica k in `out`, and returns it. On
        other replicas `src` may be None. If parts have different sizes, every replica gives all of them as
        `counts`."""
        d, s, count, given, dtype = self._with_root(out, src, root, counts, False)
        _c.check(lib.ditto_scatter_from_root(self._get(), s, d, count, given, None, dtype,
                                             ctypes.c_uint32(root), self._collective(label)))
        return out

    def _with_root(self, own: NDArray[Any], whole: NDArray[Any] | None, root: int,
                   counts: Sequence[int] | None, gathers: bool) -> tuple[
            ctypes.c_void_p, ctypes.c_void_p | None, ctypes.c_size_t,
            ctypes.Array[ctypes.c_size_t] | None, int]:
        """Checks this replica's own part, and on the root the array of all parts."""
        address, count, dtype = _check_array(own, "the array", not gathers)
        given = None if counts is None else self._counts(counts, None)
        if counts is not None and counts[self.id] != count.value:
            raise ValueError(f"counts[{self.id}] is {counts[self.id]}, and the array has {own.size} elements")
        if self.id != root:
            return address, None, count, given, dtype
        if whole is None:
            raise ValueError("this is the root, which needs an array of all parts")
        all_parts, whole_count, whole_dtype = _check_array(whole, "the array of all parts", gathers)
        if whole_dtype != dtype:
            raise ValueError(f"the array of all parts has the dtype {whole.dtype}, and the part {own.dtype}")
        if whole_count.value != (count.value * self.num_replicas if counts is None else sum(counts)):
            raise ValueError(f"the array of all parts has {whole.size} elements, which are not those of the "
                             "parts together")
        return address, all_parts, count, given, dtype

    def _counts(self, counts: Sequence[int], whole: ctypes.c_size_t | None) -> ctypes.Array[ctypes.c_size_t]:
        """Checks the sizes of parts, which together are `whole` elements."""
        if len(counts) != self.num_replicas or min(counts) < 0:
            raise ValueError(f"{list(counts)} are no sizes of {self.num_replicas} parts")
        if whole is not None and sum(counts) != whole.value:
            raise ValueError(f"the counts add up to {sum(counts)}, and the array has {whole.value} elements")
        return (ctypes.c_size_t * len(counts))(*counts)

    def scan(self, src: _Array, op: Op = "sum", out: _Array | None = None, *, exclusive: bool = False,
             label: str | None = None) -> _Array:
        """Combines the arrays of all replicas up to this one, in place or into `out`, and returns the array
        that has the result. If `exclusive` is true, the own array is left out. On replica 0, before which
        there are none, the array of the result then stays as it is. There is no "mean"."""
        _, d, count, dtype, s = self._two(src, out, 1, 1)
        scan = lib.ditto_scan_exclusive if exclusive else lib.ditto_scan
        _c.check(scan(self._get(), s, d, count, dtype, _one_of(_OPS, op, "the op"), self._collective(label)))
        return src if out is None else out

    def all_reduce_through(self, array: _Array, function: Callable[[NDArray[Any]], object],
                           op: Op = "sum", *, label: str | None = None) -> _Array:
        """Combines the arrays of all replicas. Replica 0 calls `function(combined)` with the combined
        elements, which it may change. All replicas receive what it leaves there."""
        address, count, dtype = _check_array(array, "the array", True)
        with _Callback(function) as callback:
            callback.check(lib.ditto_all_reduce_through(
                self._get(), address, address, count, dtype, _one_of(_OPS, op, "the op"), _through,
                ctypes.c_void_p(id(callback)), self._collective(label)))
        return array

    def block_sum(self, array: NDArray[Any], *, label: str | None = None) -> Any:
        """Returns the sum over the elements of all replicas. Its bits do not depend on the number of
        replicas."""
        address, count, dtype = _check_array(array, "the array", False)
        total = numpy.zeros((), array.dtype)
        _c.check(lib.ditto_block_sum(self._get(), address, ctypes.c_void_p(total.ctypes.data), count, dtype,
                                     self._collective(label)))
        return total[()]

    def block_dot(self, x: NDArray[Any], y: NDArray[Any], *, label: str | None = None) -> Any:
        """Returns the dot product over the elements of all replicas. Its bits do not depend on the number of
        replicas."""
        left, count, dtype = _check_array(x, "x", False)
        right, other_count, other_dtype = _check_array(y, "y", False)
        if count.value != other_count.value or dtype != other_dtype:
            raise ValueError(f"x has {x.size} elements of {x.dtype}, and y {y.size} of {y.dtype}")
        total = numpy.zeros((), x.dtype)
        _c.check(lib.ditto_block_dot(self._get(), left, right, ctypes.c_void_p(total.ctypes.data), count,
                                     dtype, self._collective(label)))
        return total[()]

    def exchange(self, parts: Sequence[tuple[int, int, NDArray[Any], NDArray[Any]]], *,
                 label: str | None = None) -> None:
        """Gives arrays to other replicas, and takes theirs. A part is `(partner, tag, src, dst)`. The partner
        gives a part with the same tag, whose `src` has as many elements as this `dst`."""
        given = (_c.ExchangePart * len(parts))()
        for part, (partner, tag, src, dst) in zip(given, parts):
            s, src_count, dtype = _check_array(src, "the source of a part", False)
            d, dst_count, dst_dtype = _check_array(dst, "the destination of a part", True)
            if dtype != dst_dtype:
                raise ValueError(f"the destination of a part is of {dst.dtype}, and the source of "
                                 f"{src.dtype}")
            part.replica, part.tag, part.dtype = partner, tag, dtype
            part.src, part.src_count, part.dst, part.dst_count = s, src_count, d, dst_count
        _c.check(lib.ditto_exchange(self._get(), given, ctypes.c_size_t(len(parts)), self._collective(label)))

    def all_reduce_start(self, src: NDArray[Any], out: NDArray[Any], op: Op = "sum", *,
                         label: str | None = None) -> Pending:
        """Starts an all-reduce, and returns a `Pending`. The arrays may be used again after its `wait`."""
        _, d, count, dtype, s = self._two(src, out, 1, 1)
        pending = Pending(self, src, out)
        _c.check(lib.ditto_all_reduce_start(self._get(), s, d, count, dtype, _one_of(_OPS, op, "the op"),
                                            self._collective(label), ctypes.byref(pending._pending)))
        self._pending[id(pending)] = pending
        return pending

    def all_to_all_start(self, src: NDArray[Any], out: NDArray[Any], *, label: str | None = None) -> Pending:
        """Starts an all-to-all of equal parts, and returns a `Pending`. The arrays may be used again after
        its `wait`."""
        count, d, _, dtype, s = self._two(src, out, 1, 1)
        if count.value % self.num_replicas != 0:
            raise ValueError(f"the source has {src.size} elements, which are no equal parts for "
                             f"{self.num_replicas} replicas")
        pending = Pending(self, src, out)
        _c.check(lib.ditto_all_to_all_start(self._get(), s, d,
                                            ctypes.c_size_t(count.value // self.num_replicas), dtype,
                                            self._collective(label), ctypes.byref(pending._pending)))
        self._pending[id(pending)] = pending
        return pending

    def _two(self, src: NDArray[Any], out: NDArray[Any] | None, more: int, less: int) -> tuple[
            ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, int, ctypes.c_void_p]:
        """Checks two arrays of one dtype, of which out has `more` elements for `less` of src."""
        s, count, dtype = _check_array(src, "the source", out is None)
        if out is None:
            return count, s, count, dtype, s
        d, out_count, out_dtype = _check_array(out, "out", True)
        if out_dtype != dtype:
            raise ValueError(f"out has the dtype {out.dtype}, and the source {src.dtype}")
        if count.value * more != out_count.value * less:
            raise ValueError(f"out has {out.size} elements, which do not belong to {src.size} of the source")
        return count, d, out_count, dtype, s


class Replica(_Collectives):
    """A replica, which a function of a run has as its argument. It may not be used after the function has
    returned."""

    def __init__(self, handle: int) -> None:
        super().__init__(ctypes.c_void_p(handle), {})

    def group(self, grouping: Grouping) -> Group | None:
        """Returns this replica's group, for the rest of the run, or None if it is in no group."""
        place = _c.Group()
        _c.check(lib.ditto_group_of(self._get(), grouping._get(), ctypes.byref(place)))
        return Group(self, place) if place.size != 0 else None

    def all_gather_tensor(self, array: NDArray[Any], axis: int = 0) -> NDArray[Any]:
        """Concatenates the arrays of all replicas along an axis. Their shapes may differ along it alone."""
        return self._tensor(lib.ditto_all_gather_tensor, array, axis)

    def all_to_all_tensor(self, array: NDArray[Any], split_axis: int, concat_axis: int) -> NDArray[Any]:
        """Splits the array of each replica into equal parts along one axis, gives part k to replica k, and
        concatenates the parts from all replicas along another axis. So a matrix whose rows are divided among
        the replicas becomes one whose columns are, with 1 and 0."""
        return self._tensor(lib.ditto_all_to_all_tensor, array, split_axis, concat_axis)

    def _tensor(self, function: Any, array: NDArray[Any], *axes: int) -> NDArray[Any]:
        """Returns a copy of the tensor that a collective makes in the replica's memory."""
        given, made = _tensor_of(array, "the array"), _c.Tensor()
        # C has an error for an axis that there is not, which all replicas get.
        numbers = [ctypes.c_uint32(axis % array.ndim if -array.ndim <= axis < array.ndim else _c.MAX_RANK)
                   for axis in axes]
        _c.check(function(self._get(), ctypes.byref(given), *numbers, ctypes.byref(made)))
        try:
            return _array_at(made, None).copy()
        finally:
            _c.check(lib.ditto_free(self._get(), ctypes.c_void_p(made.data)))

    def merge_call(self, function: Callable[[], object]) -> None:
        """Pauses all replicas, and calls `function()` once. In it, variables are read and assigned as outside
        of a run."""
        with _Callback(function) as callback:
            callback.check(lib.ditto_merge_call(self._get(), _merge, ctypes.c_void_p(id(callback)), None, 0,
                                                None))

    def apply(self, optimizer: Optimizer, gradients: Sequence[NDArray[Any]],
              learning_rate: float | None = None, read_steps: int | None = None) -> bool:
        """Makes one step, with this replica's gradients of all variables of the optimizer. Returns False if
        the optimizer has `max_staleness` and the gradients were dropped. `read_steps` is then
        `steps_of(optimizer)` from before the parameters were pulled."""
        if len(gradients) != optimizer._info().num_variables:
            raise ValueError(f"{len(gradients)} gradients are not as many as the optimizer's variables")
        tensors = (_c.Tensor * len(gradients))(*(_tensor_of(array, "a gradient") for array in gradients))
        options = _c.ApplyOptions()
        if learning_rate is not None:
            options.learning_rate, options.has_learning_rate = learning_rate, 1
        dropped = ctypes.c_int()
        if read_steps is not None:
            options.read_steps, options.has_read_steps = read_steps, 1
            options.dropped = ctypes.cast(ctypes.byref(dropped), ctypes.c_void_p)
        _c.check(lib.ditto_apply(self._get(), optimizer._get(), tensors, ctypes.byref(options)))
        return not dropped.value

    def steps_of(self, optimizer: Optimizer) -> int:
        """Returns the number of steps of an optimizer so far."""
        steps = ctypes.c_int64()
        _c.check(lib.ditto_optimizer_steps(self._get(), optimizer._get(), ctypes.byref(steps)))
        return steps.value

    def read(self, variable: Variable) -> NDArray[Any]:
        """Returns this replica's value of a variable, as a read-only array. It changes with the variable, and
        must not be used after the variable or the strategy was destroyed. Of parameters, those with the
        concurrency "hogwild" or "free_reads" can be read in this way. Their array is used in the scheduled
        function alone, and other workers change it meanwhile."""
        return self._in_place(lib.ditto_read, variable)

    def component(self, variable: Variable) -> NDArray[Any]:
        """Returns this replica's own value of a variable that is synchronized on read, or, in a scheduled
        function, a parameter with the concurrency "hogwild", as an array that is changed in place. It is used
        in this function alone. Other workers change a parameter meanwhile."""
        array = self._in_place(lib.ditto_component, variable)
        array.flags.writeable = True
        return array

    def slice(self, variable: Variable) -> tuple[NDArray[Any], int]:
        """Returns this replica's slice of a variable that is sliced, as a read-only array like that of
        `read`, and the first index of the slice in the sliced dimension."""
        own, first = _c.Tensor(), ctypes.c_size_t()
        _c.check(lib.ditto_local_slice(self._get(), variable._get(), ctypes.byref(own), ctypes.byref(first)))
        return _array_at(own, variable), first.value

    def _in_place(self, call: Callable[..., int], variable: Variable) -> NDArray[Any]:
        data = ctypes.c_void_p()
        _c.check(call(self._get(), variable._get(), ctypes.byref(data)))
        tensor = variable._spec()
        tensor.data = data
        return _array_at(tensor, variable)

    def assign(self, variable: Variable, value: NDArray[Any]) -> None:
        """Assigns a value, or that of the slice of a variable that is sliced. The aggregation of the variable
        says what the values of replicas become together."""
        self._write(variable, 1, value)

    def assign_add(self, variable: Variable, value: NDArray[Any]) -> None:
        """Adds a value, as `assign` assigns one."""
        self._write(variable, 2, value)

    def assign_sub(self, variable: Variable, value: NDArray[Any]) -> None:
        """Subtracts a value, as `assign` assigns one."""
        self._write(variable, 3, value)

    def _write(self, variable: Variable, how: int, value: NDArray[Any]) -> None:
        shape = self.slice(variable)[0].shape if variable._is_sliced else None
        _c.check(lib.ditto_assign(self._get(), variable._get(), how, variable._fits(value, shape)))

    @property
    def worker(self) -> int | None:
        """The number of the worker, in a function that a coordinator has scheduled, and otherwise None."""
        number: int = lib.ditto_worker(self._get())
        return None if number == 2**32 - 1 else number

    def pull(self, variable: Variable, lock: bool | None = None) -> NDArray[Any]:
        """Returns a copy of a parameter, in a scheduled function. With `lock=False` the elements are copied
        without a lock, if the variable has the concurrency "free_reads" or "hogwild"."""
        array = numpy.empty(variable._shape, variable._dtype)
        address, _, _ = _check_array(array, "the value", True)
        _c.check(lib.ditto_pull(self._get(), variable._get(), ctypes.byref(_pull_options(lock)), address))
        return array

    def lookup(self, variable: Variable, indices: ArrayLike, lock: bool | None = None) -> NDArray[Any]:
        """Returns a copy of rows of a variable. The indices may be integers of any dtype, and are copied.
        `lock` is that of `pull`, and for parameters alone."""
        numbers = _indices_of(indices)
        rows = numpy.empty(numbers.shape + variable._shape[1:], variable._dtype)
        given = (self._get(), variable._get(), ctypes.c_void_p(numbers.ctypes.data),
                 ctypes.c_size_t(numbers.size))
        if lock is None:
            _c.check(lib.ditto_lookup(*given, ctypes.c_void_p(rows.ctypes.data)))
        else:
            _c.check(lib.ditto_pull_rows(*given, ctypes.byref(_pull_options(lock)),
                                         ctypes.c_void_p(rows.ctypes.data)))
        return rows

    def scatter(self, variable: Variable, op: ScatterOp, indices: ArrayLike, rows: NDArray[Any]) -> None:
        """Changes rows of a variable. `op` is "add", "sub", "mul", "div", "min", "max" or "update"."""
        numbers = _indices_of(indices)
        address, _, dtype = _check_array(rows, "the rows", False)
        if rows.shape != numbers.shape + variable._shape[1:]:
            raise ValueError(f"the rows have the shape {rows.shape}, and {numbers.size} rows of the variable "
                             f"have {numbers.shape + variable._shape[1:]}")
        slices = _c.Slices(indices=numbers.ctypes.data, values=address, rows=numbers.size,
                           row_count=int(numpy.prod(variable._shape[1:], dtype=numpy.int64)), dtype=dtype)
        _c.check(lib.ditto_scatter(self._get(), variable._get(), _one_of(_SCATTERS, op, "the op"),
                                   ctypes.byref(slices)))

    def batches(self, iterator: Iterator | SharedDataset) -> Generator[tuple[NDArray[Any], ...], None, None]:
        """Yields this replica's batches of an `Iterator` or a `SharedDataset`, as tuples of arrays, which are
        copies. The batches of an `Iterator` can be taken once."""
        batch, ended = _c.Batch(), iterator._ended
        if ended is not None and self.id in ended:
            raise ValueError("this iterator has given all its batches: make one for each epoch, with "
                             "strategy.iterate(dataset, global_batch, epoch=number)")
        take = getattr(lib, iterator._take)
        while _c.check(take(self._get(), iterator._get(), ctypes.byref(batch))) == _c.OK:
            yield tuple(_array_at(batch.component[k], None).copy() for k in range(batch.num_components))
        if ended is not None:
            ended.add(self.id)


class Group(_Collectives):
    """The group of a replica, made by `Replica.group`. It has the collectives of the replica, but here all
    replicas are those of the group, and their numbers are ranks in it."""

    def __init__(self, replica: Replica, place: _c.Group) -> None:
        super().__init__(replica._handle, replica._pending, place)
        self._rank: int = place.rank
        #: The number of the group in its grouping, from 0.
        self.index: int = place.index
        #: The ids of the members by rank.
        self.replicas: list[int] = place.replicas[:place.size]

    @property
    def id(self) -> int:
        """The rank of the replica in the group, from 0."""
        return self._rank

    @property
    def num_replicas(self) -> int:
        """The number of members."""
        return len(self.replicas)


class Grouping(_Object):
    """A division of the replicas into groups, made by `Strategy.split` or `Strategy.mesh`."""
    _destroy = "ditto_grouping_destroy"

    def __init__(self, handle: ctypes.c_void_p, strategy: Strategy) -> None:
        super().__init__(handle)
        self._strategy = strategy

    def _end(self) -> int:
        if not self._strategy._is_ending:
            return super()._end()
        self._handle = None
        return _c.OK


class Pending:
    """An operation that was started, for example by `Replica.all_reduce_start`."""

    def __init__(self, replica: _Collectives, *arrays: NDArray[Any]) -> None:
        self._replica = replica
        self._arrays = arrays  # they must exist until the operation is complete
        self._pending = _c.Pending()

    def wait(self) -> None:
        """Waits until the operation is complete."""
        _c.check(lib.ditto_wait(self._replica._get(), ctypes.byref(self._pending), None))
        self._replica._pending.pop(id(self), None)

    def test(self) -> bool:
        """Returns True if the operation is complete. `wait` is then not needed."""
        complete = _c.check(lib.ditto_test(self._replica._get(), ctypes.byref(self._pending))) == _c.OK
        if complete:
            self._replica._pending.pop(id(self), None)
        return complete


class Variable(_Object):
    """A variable, made by `Strategy.variable`. Replicas use it through methods of `Replica`, and its own
    methods are for outside of a run."""
    _destroy = "ditto_variable_destroy"

    def __init__(self, handle: ctypes.c_void_p, value: NDArray[Any], strategy: Strategy,
                 is_sliced: bool) -> None:
        super().__init__(handle)
        self._strategy = strategy  # it has the memory
        self._shape: tuple[int, ...] = value.shape
        self._dtype: numpy.dtype[Any] = value.dtype
        self._is_sliced = is_sliced

    def _spec(self) -> _c.Tensor:
        tensor = _c.Tensor()
        _c.check(lib.ditto_variable_spec(self._get(), ctypes.byref(tensor)))
        return tensor

    def _fits(self, value: NDArray[Any], slice_shape: tuple[int, ...] | None = None) -> ctypes.c_void_p:
        address, _, _ = _check_array(value, "the value", False)
        shape = self._shape if slice_shape is None else slice_shape
        if value.shape != shape or value.dtype != self._dtype:
            raise ValueError(f"the value is {value.dtype} of shape {value.shape}, and the "
                             f"{'variable' if slice_shape is None else 'slice'} is {self._dtype} of shape "
                             f"{shape}")
        return address

    @property
    def name(self) -> str:
        """The name of the variable."""
        found = _c.VariableProperties()
        _c.check(lib.ditto_variable_info(self._get(), ctypes.byref(found)))
        return str(found.name.decode())

    def read(self) -> NDArray[Any]:
        """Returns a copy of the value, outside of a run. If the variable is synchronized on read, it is the
        aggregate."""
        array = numpy.empty(self._shape, self._dtype)
        address, _, _ = _check_array(array, "the value", True)
        _c.check(lib.ditto_variable_read(self._get(), address, ctypes.c_size_t(array.nbytes)))
        return array

    def assign(self, value: NDArray[Any]) -> None:
        """Assigns a value, outside of a run."""
        size = ctypes.c_size_t(value.nbytes)
        _c.check(lib.ditto_variable_assign(self._get(), 1, self._fits(value), size))


class Optimizer(_Object):
    """Updates variables from gradients. It is made by `Strategy.optimizer`, and must be destroyed before its
    variables. `Replica.apply` makes a step."""
    _destroy = "ditto_optimizer_destroy"

    def __init__(self, handle: ctypes.c_void_p, variables: list[Variable]) -> None:
        super().__init__(handle)
        self._variables = variables

    @property
    def iterations(self) -> int:
        """The number of steps so far, outside of a run."""
        counter, steps = ctypes.c_void_p(self._info().iterations), ctypes.c_int64()
        _c.check(lib.ditto_variable_read(counter, ctypes.byref(steps), ctypes.c_size_t(8)))
        return steps.value

    def _info(self) -> _c.OptimizerProperties:
        found = _c.OptimizerProperties()
        _c.check(lib.ditto_optimizer_info(self._get(), ctypes.byref(found)))
        return found

    def staleness(self) -> dict[str, Any]:
        """Returns how old the gradients of steps on parameters were, as a dict with the members of
        `ditto_staleness_counters`."""
        found = _c.StalenessCounters()
        _c.check(lib.ditto_optimizer_staleness(self._get(), ctypes.byref(found)))
        return _c.dict_of(found)


# -- workers that do not wait for each other --

_NAME = b"a function of Python"


def _call_scheduled(handle: int, _: object) -> int:
    """The function that C schedules. Its argument is the number of the call."""
    number = _c.Tensor()
    status: int = lib.ditto_argument(ctypes.c_void_p(handle), None, ctypes.byref(number))
    if status < 0:
        return status
    call = _Call.all.get(ctypes.c_int64.from_address(number.data).value)
    if call is None:
        return _c.OK  # a worker that is retired has ended it after all
    status = call.on_replica(handle, None)
    if status == _c.OK:
        call.count_end()
    return status


_scheduled = _c.REPLICA_FUNCTION(_call_scheduled)


class _Batch:
    """What a coordinator and its functions share. Workers have no reference to the coordinator itself, so
    that it is never destroyed on one of their threads by them."""

    def __init__(self) -> None:
        self.calls: dict[int, _Call] = {}  # functions whose end is not known, by number
        self.handle: ctypes.c_void_p | None = None  # of the coordinator, under _CtrlC.lock
        self.first: BaseException | None = None  # the first exception

    def interrupt(self) -> None:
        """Ends the calls that wait for functions. Called under _CtrlC.lock."""
        if self.handle is not None:
            lib.ditto_coordinator_interrupt(self.handle)

    def forget(self, numbers: Iterable[int]) -> None:
        """Forgets functions that have ended, or will never be executed."""
        for number in numbers:
            self.calls.pop(number, None)
            _Call.all.pop(number, None)


class _Call(_Run):
    """A function that was scheduled."""
    all: ClassVar[dict[int, _Call]] = {}  # by number, of all coordinators
    _numbers = itertools.count()

    def __init__(self, strategy: Strategy, batch: _Batch, function: Callable[..., object],
                 arguments: tuple[Any, ...]) -> None:
        super().__init__(lambda replica: function(replica, *arguments), strategy._replicas_per_worker)
        self.number, self.batch, self._ended = next(self._numbers), batch, 0
        batch.calls[self.number] = self.all[self.number] = self

    def count_end(self) -> None:
        """Forgets the function when all replicas of the worker have ended it."""
        with self.lock:
            self._ended += 1
        if self._ended >= len(self.results):
            self.batch.forget([self.number])

    def keep(self, handle: int, e: BaseException) -> int:
        status = super().keep(handle, e)
        if status == _c.ERR_USER:
            self.batch.first = self.batch.first or self.first
        return status


class Coordinator(_Object):
    """The queue of a strategy of the kind "parameter_server", and its workers, which take functions from it
    and do not wait for each other. `options` are `queue_capacity` and `max_attempts`
    (`ditto_coordinator_options`)."""
    _destroy = "ditto_coordinator_destroy"
    _all: ClassVar[weakref.WeakSet[Coordinator]] = weakref.WeakSet()
    # Handles that could not be destroyed where the last reference ended.
    _left: ClassVar[list[ctypes.c_void_p]] = []

    def __init__(self, strategy: Strategy, **options: int) -> None:
        given = _c.CoordinatorOptions(**options)
        self._destroy_left()
        _c.check(lib.ditto_function_register(_NAME, _scheduled, None))
        self._strategy, self._batch = strategy, _Batch()
        super().__init__(_make(lib.ditto_coordinator_create, strategy._get(), ctypes.byref(given)))
        self._batch.handle = self._handle
        self._all.add(self)

    @property
    def num_workers(self) -> int:
        """The number of workers."""
        return int(self.stats()["num_workers"])

    def schedule(self, function: Callable[..., object], *arguments: Any) -> Remote:
        """Puts `function(replica, *arguments)` into the queue, and returns a `Remote`. The arguments are not
        copied. If an earlier function has raised an exception, this one is not scheduled, and the exception
        comes out of the call."""
        queue, handle = self._get(), ctypes.c_void_p()
        call = _Call(self._strategy, self._batch, function, arguments)
        number = numpy.array(call.number, numpy.int64)
        options = _c.ScheduleOptions(argument=ctypes.pointer(_tensor_of(number, "the number")))
        try:
            with _CtrlC(self._batch.interrupt):
                status = lib.ditto_coordinator_schedule(queue, _NAME, None, ctypes.byref(options),
                                                        ctypes.byref(handle))
            self._check(status)
        except BaseException:
            self._batch.forget([call.number])
            raise
        return Remote(handle, call)

    def join(self) -> None:
        """Waits until the queue is empty and all functions have ended. If one has raised an exception, it
        comes out of the call, once."""
        numbers = list(self._batch.calls)
        handle = self._get()
        with _CtrlC(self._batch.interrupt):
            status = lib.ditto_coordinator_join(handle)
        if status in (_c.OK, _c.ERR_USER):  # after other errors functions may still be in the queue
            self._batch.forget(numbers)
        self._check(status)

    def done(self) -> bool:
        """Returns True if the queue is empty and all functions have ended."""
        done = ctypes.c_int()
        self._check(lib.ditto_coordinator_done(self._get(), ctypes.byref(done)))
        return bool(done.value)

    def stats(self) -> dict[str, Any]:
        """Returns what the queue and the workers have done, as a dict with the members of
        `ditto_coordinator_counters`."""
        found = _c.CoordinatorCounters()
        _c.check(lib.ditto_coordinator_stats(self._get(), ctypes.byref(found)))
        return _c.dict_of(found)

    def share(self, dataset: Dataset, batch: int, state: bytes | None = None, epoch: int = 0,
              drop_remainder: bool = False, **options: int) -> SharedDataset:
        """Begins a pass over a dataset of which all workers take batches of `batch` rows, and returns a
        `SharedDataset`. `state` is what `SharedDataset.save` has returned. `epoch` and `drop_remainder` are
        those of `Strategy.iterate`. `options` are those of `ditto_coordinator_shared_dataset`, for example
        `flags`."""
        dataset, given = _input_of(dataset, batch, epoch, drop_remainder, options)
        if state is not None:
            given.state, given.state_bytes = ctypes.cast(ctypes.c_char_p(state), ctypes.c_void_p), len(state)
        made = _make(lib.ditto_coordinator_shared_dataset, self._get(), dataset._get(), ctypes.byref(given))
        return SharedDataset(made, dataset, self)

    def destroy(self) -> None:
        """Cancels the functions in the queue, and waits for those that are executed."""
        with _CtrlC.lock:
            self._batch.handle = None
        try:
            super().destroy()
        finally:
            if self._handle is None:
                self._batch.forget(list(self._batch.calls))
            with _CtrlC.lock:
                self._batch.handle = self._handle

    def interrupt(self) -> None:
        """Ends the calls of other threads that wait for functions: `join`, `fetch`, and `schedule` with a
        full queue. They raise `ditto.Error` with the status "CANCELLED"."""
        _c.check(lib.ditto_coordinator_interrupt(self._get()))

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is None or lib is None:
            return
        self._batch.handle = None
        if _is_gone_after(lib.ditto_coordinator_destroy(handle)):
            self._batch.forget(list(self._batch.calls))
        else:
            self._left.append(handle)  # for example if this is a worker's thread

    @classmethod
    def _destroy_left(cls) -> None:
        """Destroys what could not be destroyed before. What still cannot be stays for the next time."""
        left, cls._left[:] = list(cls._left), []
        cls._left += [handle for handle in left if not _is_gone_after(lib.ditto_coordinator_destroy(handle))]

    def _check(self, status: int) -> None:
        """Raises the exception of a function that has failed, once."""
        first = self._batch.first
        if status < 0:
            self._batch.first = None
        if status == _c.ERR_USER and first is not None:
            raise first
        _c.check(status)


class SharedDataset(_Object):
    """A dataset from which all workers take batches, with `replica.batches(shared)` in a scheduled function.
    It is made by `Coordinator.share`."""
    _destroy = "ditto_shared_dataset_destroy"
    _take = "ditto_shared_dataset_next"
    _ended: set[int] | None = None  # rows may come back from workers that are retired
    # Handles that could not be destroyed where the last reference ended, and their datasets.
    _left: ClassVar[list[tuple[ctypes.c_void_p, Dataset]]] = []

    def __init__(self, handle: ctypes.c_void_p, dataset: Dataset, coordinator: Coordinator) -> None:
        super().__init__(handle)
        self._dataset, self._strategy = dataset, coordinator._strategy
        self._destroy_left()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is None or lib is None:
            return
        if not _is_gone_after(lib.ditto_shared_dataset_destroy(handle)):
            self._left.append((handle, self._dataset))  # for example if functions may still use it

    @classmethod
    def _destroy_left(cls) -> None:
        """Destroys what could not be destroyed before. What still cannot be stays for the next time."""
        left, cls._left[:] = list(cls._left), []
        cls._left += [one for one in left if not _is_gone_after(lib.ditto_shared_dataset_destroy(one[0]))]

    def save(self) -> bytes:
        """Returns the position as bytes, for `Coordinator.share`."""
        state, length = ctypes.c_void_p(), ctypes.c_size_t()
        _c.check(lib.ditto_shared_dataset_save(self._get(), ctypes.byref(state), ctypes.byref(length)))
        try:
            return ctypes.string_at(state, length.value)
        finally:
            lib.ditto_state_free(state)


class Remote(_Object):
    """A function that was scheduled by `Coordinator.schedule`."""
    _destroy = "ditto_remote_destroy"

    def __init__(self, handle: ctypes.c_void_p, call: _Call) -> None:
        super().__init__(handle)
        self._call = call

    def fetch(self) -> Any:
        """Waits until the function has ended, and returns what it returned, or raises its exception. If a
        worker has several replicas, it returns the list of what they returned."""
        out = ctypes.c_void_p()
        handle = self._get()
        with _CtrlC(self._call.batch.interrupt):
            status = lib.ditto_remote_fetch(handle, ctypes.byref(out))
        if self.done():
            self._call.batch.forget([self._call.number])
        if status == _c.ERR_USER and self._call.first is not None:
            raise self._call.first
        _c.check(status)
        results = self._call.results
        return results[0] if len(results) == 1 else results

    def done(self) -> bool:
        """Returns True if `fetch` would not wait."""
        done = ctypes.c_int()
        _c.check(lib.ditto_remote_test(self._get(), ctypes.byref(done)))
        return bool(done.value)

    def cancel(self) -> bool:
        """Cancels the function. Returns False if a worker has begun it."""
        status = lib.ditto_remote_cancel(self._get())
        if _c.STATUS.get(status) == "BUSY":
            return False
        _c.check(status)
        self._call.batch.forget([self._call.number])
        return True


@atexit.register
def _end_workers() -> None:
    """Workers that call Python while the interpreter ends would end the process."""
    for coordinator in list(Coordinator._all):
        with contextlib.suppress(Error):
            coordinator.destroy()
    Coordinator._destroy_left()
    SharedDataset._destroy_left()


def _input_of(dataset: Dataset, batch: int, epoch: int, drop_remainder: bool,
              options: dict[str, int]) -> tuple[Dataset, _c.InputOptions]:
    if drop_remainder:
        dataset = Dataset(_make(lib.ditto_dataset_batch, dataset._get(), ctypes.c_uint64(batch), 1), dataset)
        batch = 0  # that of the dataset
    if epoch:
        options["pass"] = epoch
    return dataset, _c.InputOptions(global_batch=batch, **options)


def _list_names(paths: StrOrBytesPath | Iterable[StrOrBytesPath]) -> ctypes.Array[ctypes.c_char_p]:
    if isinstance(paths, (str, bytes, os.PathLike)):
        paths = [paths]
    names = [os.fsencode(path) for path in paths]
    return (ctypes.c_char_p * len(names))(*names)


class Dataset(_Object):
    """Rows, and what is to be done with them. `Strategy.iterate` and `Coordinator.share` read it."""
    _destroy = "ditto_dataset_destroy"

    def __init__(self, handle: ctypes.c_void_p, *inputs: object) -> None:
        super().__init__(handle)
        self._inputs = inputs  # arrays and datasets that must exist as long as this one

    @classmethod
    def from_arrays(cls, *arrays: NDArray[Any]) -> Dataset:
        """Makes a dataset whose row i has element i of each array. The arrays are not copied, and must not
        change."""
        tensors = (_c.Tensor * len(arrays))(*(_tensor_of(array, "an array") for array in arrays))
        return cls(_make(lib.ditto_dataset_from_arrays, tensors, ctypes.c_uint32(len(arrays))), arrays)

    @classmethod
    def range(cls, start: int, stop: int, step: int = 1) -> Dataset:
        """Makes a dataset of the numbers that `range(start, stop, step)` has, as int64."""
        return cls(_make(lib.ditto_dataset_from_range, ctypes.c_int64(start), ctypes.c_int64(stop),
                         ctypes.c_int64(step)))

    @classmethod
    def from_npy(cls, *paths: StrOrBytesPath) -> Dataset:
        """Makes a dataset from .npy files, one for each component of a row."""
        names = _list_names(paths)
        return cls(_make(lib.ditto_dataset_from_npy, names, ctypes.c_uint32(len(names))))

    @classmethod
    def from_csv(cls, paths: StrOrBytesPath | Iterable[StrOrBytesPath],
                 components: Sequence[tuple[int, int, DTypeLike]], **options: int | str | bytes) -> Dataset:
        """Makes a dataset from the rows of CSV files. A component is `(first column, number of columns,
        dtype)`. `options` are members of `ditto_csv_options`, for example `skip_lines`."""
        names = _list_names(paths)
        files = _c.Files(names=names, num_names=len(names))
        given = (_c.CsvComponent * len(components))()
        for component, (first, count, dtype) in zip(given, components):
            component.first_column, component.num_columns = first, count
            component.dtype = _one_of(_DTYPES, numpy.dtype(dtype).name, "the dtype")
        csv = _c.CsvOptions(**{name: value.encode() if isinstance(value, str) else value
                               for name, value in options.items()})
        return cls(_make(lib.ditto_dataset_from_csv, ctypes.byref(files), given,
                         ctypes.c_uint32(len(components)), ctypes.byref(csv)))

    def shuffle(self, seed: int = 0, buffer_rows: int = 0) -> Dataset:
        """Returns a dataset with the same rows in another order, which the seed decides. Each row is drawn
        from a buffer of `buffer_rows` rows, and from all rows if this is 0."""
        options = _c.ShuffleOptions(seed=seed, buffer_rows=buffer_rows)
        return Dataset(_make(lib.ditto_dataset_shuffle, self._get(), ctypes.byref(options)), self)

    def repeat(self, count: int) -> Dataset:
        """Returns a dataset with all rows `count` times."""
        return Dataset(_make(lib.ditto_dataset_repeat, self._get(), ctypes.c_uint64(count)), self)

    def take(self, count: int) -> Dataset:
        """Returns a dataset with the first `count` rows."""
        return Dataset(_make(lib.ditto_dataset_take, self._get(), ctypes.c_uint64(count)), self)

    def skip(self, count: int) -> Dataset:
        """Returns a dataset without the first `count` rows."""
        return Dataset(_make(lib.ditto_dataset_skip, self._get(), ctypes.c_uint64(count)), self)


class Iterator(_Object):
    """Batches of a dataset for the replicas of a strategy. It is made by `Strategy.iterate`, and
    `Replica.batches` takes the batches."""
    _destroy = "ditto_iterator_destroy"
    _take = "ditto_next"

    def __init__(self, handle: ctypes.c_void_p, dataset: Dataset, strategy: Strategy) -> None:
        super().__init__(handle)
        self._dataset, self._strategy = dataset, strategy
        self._ended: set[int] | None = set()  # the replicas that have taken all their batches


# -- checkpoints --

_checkpoints: list[ctypes.CDLL] = []


def _hdf5() -> ctypes.CDLL:
    if not _checkpoints:
        library = _c.load("ditto-hdf5")
        _checkpoints.append(library)
    return _checkpoints[0]


class Checkpoint(dict[str, "NDArray[Any]"]):
    """The arrays of a checkpoint by their names."""

    #: The step that was saved.
    step: int = 0


def load(path: StrOrBytesPath) -> Checkpoint:
    """Reads a checkpoint. No strategy is needed."""
    library = _hdf5()
    handle = _make(library.ditto_checkpoint_open, None, os.fsencode(path))
    try:
        found, info = Checkpoint(), _c.CheckpointProperties()
        _c.check(library.ditto_checkpoint_info(handle, ctypes.byref(info)))
        found.step = info.step
        for k in range(info.num_entries):
            entry = _c.CheckpointEntry()
            _c.check(library.ditto_checkpoint_get(handle, ctypes.c_size_t(k), ctypes.byref(entry)))
            array = numpy.empty(tuple(entry.spec.shape[:entry.spec.rank]), _NAMES[entry.spec.dtype])
            _c.check(library.ditto_checkpoint_read(handle, entry.name, ctypes.c_void_p(array.ctypes.data),
                                                   ctypes.c_size_t(array.nbytes)))
            found[entry.name.decode()] = array
        return found
    finally:
        library.ditto_checkpoint_close(handle)
