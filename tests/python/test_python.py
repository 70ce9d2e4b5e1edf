"""tests/python/test_python.py - the Python package: what it returns, what it refuses, and its C structs.

usage: test_python.py INCLUDE COMPILER...
The library is found through DITTO_LIBRARY_PATH."""
import gc
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest

import numpy

import ditto
from ditto import _c

COUNTS = (1, 2, 3, 8)


class Structs(unittest.TestCase):
    def test_layouts_are_those_of_c(self):
        """Asks the compiler for the place of every member. A struct's text begins with its name in C."""
        structs = [s for s in vars(_c).values() if isinstance(s, type) and hasattr(s, "_fields_")
                   and s.__doc__.startswith("ditto_")]
        self.assertGreater(len(structs), 10)
        lines = []
        for s in structs:
            name = s.__doc__.split(",")[0].split()[0]
            lines += [f'printf("%zu\\n", offsetof({name}, {member}));' for member, _ in s._fields_]
        code = ("#include <ditto.h>\n#include <ditto/checkpoint.h>\n#include <stddef.h>\n#include <stdio.h>\n"
                "int main(void) {" + "\n".join(lines) + "return 0; }")
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "offsets.c"
            source.write_text(code)
            subprocess.run([*COMPILER, f"-I{INCLUDE}", str(source), "-o", f"{folder}/offsets"], check=True)
            found = subprocess.run([f"{folder}/offsets"], check=True, capture_output=True, text=True).stdout
        own = [getattr(s, member).offset for s in structs for member, _ in s._fields_]
        self.assertEqual([int(line) for line in found.split()], own)

    def test_statuses_and_constants_are_those_of_c(self):
        header = (pathlib.Path(INCLUDE) / "ditto" / "status.h").read_text()
        for number, name in _c.STATUS.items():
            self.assertIn(f"X(DITTO_ERR_{name}, {number},", header)
        self.assertEqual(len(_c.STATUS), header.count("X(DITTO_ERR_"))


class Library(unittest.TestCase):
    def test_versions_are_equal(self):
        self.assertEqual(ditto.__version__, ditto.version)

    def test_a_package_of_another_version_is_refused(self):
        init = pathlib.Path(ditto.__file__)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(init.parent, pathlib.Path(folder) / "ditto")
            copy = pathlib.Path(folder) / "ditto" / init.name
            copy.write_text(init.read_text().replace('__version__ = "0.', '__version__ = "7.'))
            done = subprocess.run([sys.executable, "-c", "import ditto"], capture_output=True, text=True,
                                  cwd=folder, env={**os.environ, "PYTHONPATH": folder})
        self.assertRegex(done.stderr, r"of ditto 7.*, but .*/libditto\.so\.0 is " + ditto.version)

    def test_a_library_that_is_not_there(self):
        with self.assertRaises(ImportError) as caught:
            _c.load("ditto-nonesuch")
        message = str(caught.exception)
        self.assertIn("could not load its library: libditto-nonesuch.so.0: ", message)
        for folder in (*os.environ["DITTO_LIBRARY_PATH"].split(":"), "/usr/local/lib"):
            self.assertIn(folder, message)
        self.assertIn("install ditto, or set DITTO_LIBRARY_PATH", message)


def collectives(self):
    """What a replica, or its group, gives and gets."""
    n, me = self.num_replicas, self.id
    x = numpy.full((3, 4), me + 1.0)
    out = numpy.empty_like(x)
    assert self.all_reduce(x, out=out) is out and out[2, 3] == n * (n + 1) / 2
    assert self.all_reduce(x, "mean") is x and x[0, 0] == (n + 1) / 2
    assert self.broadcast(numpy.array([me]), n - 1)[0] == n - 1
    every = numpy.empty(2 * n, numpy.int32)
    self.all_gather(numpy.array([me, me], numpy.int32), every)
    assert list(every) == [k // 2 for k in range(2 * n)]
    part = numpy.empty(2, numpy.int32)
    self.reduce_scatter(every, part)
    assert list(part) == [me * n] * 2
    z = self.reduce(numpy.array([1 + 2j]), root=0)
    assert me != 0 or z[0] == n * (1 + 2j)
    ones, before = numpy.ones(3), numpy.full(3, -1.0)
    assert self.scan(ones, out=before, exclusive=True) is before and before[2] == (me or -1)
    assert self.scan(ones) is ones and ones[1] == me + 1
    flag = self.all_reduce(numpy.array([me == 0]), "or")
    assert flag[0]
    self.barrier()
    return me


def moved_parts(self):
    """Replica k gets k + 1 elements of each other one."""
    n, me = self.num_replicas, self.id
    src = numpy.arange(2 * n) + 1000 * me
    out = numpy.empty_like(src)
    assert self.all_to_all(src, out) is out
    assert list(out) == [1000 * (k // 2) + 2 * me + k % 2 for k in range(2 * n)]
    pending = self.all_to_all_start(out, out)
    pending.wait()
    assert (out == src).all()
    if isinstance(self, ditto.Replica):
        table = src.reshape(2, n)
        columns = self.all_to_all_tensor(table, 1, 0)
        assert columns.shape == (2 * n, 1) and columns[2 * n - 1, 0] == 1000 * (n - 1) + n + me
        assert (self.all_to_all_tensor(columns, -2, -1) == table).all()
        rows = self.all_gather_tensor(table[:1], -2)
        assert rows.shape == (n, n) and rows[n - 1, n - 1] == 1000 * (n - 1) + n - 1
        for wrong in (1, -2):
            with unittest.TestCase().assertRaises(ditto.Error):
                self.all_gather_tensor(src, wrong)
    counts = [k + 1 for k in range(n)]
    more, received = numpy.full(sum(counts), me), numpy.empty(n * (me + 1), int)
    self.all_to_all(more, received, counts, [me + 1] * n)
    assert list(received) == [k // (me + 1) for k in range(n * (me + 1))]
    own, every = numpy.full(me + 1, me), numpy.empty(sum(counts), int) if me == n - 1 else None
    self.gather_to_root(own, every, n - 1, counts)
    assert every is None or (every == numpy.repeat(numpy.arange(n), counts)).all()
    own[:] = -1
    assert self.scatter_from_root(every, own, n - 1, counts) is own and (own == me).all()
    pair, every = numpy.array([me, 7.5]), numpy.empty(2 * n) if me == 0 else None
    self.gather_to_root(pair, every)
    assert every is None or every[2 * n - 2] == n - 1
    pair[:] = 0
    assert self.scatter_from_root(every, pair)[0] == me and pair[1] == 7.5
    for wrong in (lambda: self.all_to_all(src, out, counts),
                  lambda: self.all_to_all(src[:1], out[:1]),
                  lambda: self.all_to_all(src, out, [1] * n, [1] * n),
                  lambda: self.gather_to_root(pair, None, me),
                  lambda: self.gather_to_root(pair, numpy.empty(2 * n + 1), me),
                  lambda: self.scatter_from_root(None, pair, me, [9] * n),
                  lambda: self.all_to_all(src, out, [2] * (n + 1), [2] * n)):
        if n > 1:
            with unittest.TestCase().assertRaises(ValueError):
                wrong()


class Collectives(unittest.TestCase):
    def test_collectives(self):
        for n in COUNTS:
            with ditto.Strategy(n) as strategy:
                self.assertEqual(strategy.run(collectives), list(range(n)))
                strategy.run(moved_parts)

    def test_sums_that_do_not_depend_on_the_number(self):
        values = numpy.random.default_rng(7).random(24 * 500).reshape(24, 500)
        found = set()
        for n in (1, 2, 3, 8):
            def work(self):
                own = numpy.ascontiguousarray(numpy.array_split(values, self.num_replicas)[self.id])
                return self.block_sum(own), self.block_dot(own, own)
            with ditto.Strategy(n) as strategy:
                found.update(strategy.run(work))
        self.assertEqual(len(found), 1)
        self.assertAlmostEqual(found.pop()[0], values.sum(), places=6)

    def test_functions_in_collectives(self):
        def double(combined):
            combined *= 2

        def work(self):
            return list(self.all_reduce_through(numpy.ones(3), double))

        for n in COUNTS:
            with ditto.Strategy(n) as strategy:
                self.assertEqual(strategy.run(work), [[2.0 * n] * 3] * n)

                def fails(_):
                    raise Unusual("not through")
                with self.assertRaisesRegex(Unusual, "not through"):
                    strategy.run(lambda self: self.all_reduce_through(numpy.ones(3), fails))
                self.assertEqual(strategy.run(work), [[2.0 * n] * 3] * n)

    def test_exchange(self):
        def work(self):
            partner, got = self.id ^ 1, numpy.full(2, -1.0)
            self.exchange([(partner, 7, numpy.full(2, float(self.id)), got)]
                          if partner < self.num_replicas else [])
            return list(got)

        for n in COUNTS:
            with ditto.Strategy(n) as strategy:
                self.assertEqual(strategy.run(work),
                                 [[me ^ 1] * 2 if me ^ 1 < n else [-1] * 2 for me in range(n)])
                with self.assertRaisesRegex(ValueError, "of float32, and the source of float64"):
                    strategy.run(lambda self: self.exchange(
                        [(self.id, 0, numpy.ones(2), numpy.ones(2, numpy.float32))]))

    def test_merge_calls(self):
        for n in COUNTS:
            with ditto.Strategy(n) as strategy:
                v = strategy.variable(numpy.zeros(2), aggregation="sum")
                calls = []

                def merge(v=v, calls=calls):
                    calls.append(v.read()[0])
                    v.assign(numpy.full(2, 5.0))

                def work(self, v=v, merge=merge):
                    self.assign_add(v, numpy.ones(2))
                    self.merge_call(merge)
                    return float(self.read(v)[0])

                self.assertEqual(strategy.run(work), [5.0] * n)
                self.assertEqual(calls, [n])

                def fails():
                    raise Unusual("in a merge function")
                with self.assertRaisesRegex(Unusual, "in a merge function"):
                    strategy.run(lambda self, fails=fails: self.merge_call(fails))
                self.assertEqual(strategy.run(lambda self: self.id), list(range(n)))

    def test_started_operations(self):
        def work(self):
            x, out = numpy.ones(100000), numpy.empty(100000)
            pending = [self.all_reduce_start(x, out), self.all_reduce_start(numpy.ones(3), numpy.empty(3))]
            while not pending[1].test():
                pass
            pending[0].wait()
            return out[-1] == self.num_replicas

        for n in COUNTS:
            with ditto.Strategy(n) as strategy:
                self.assertEqual(strategy.run(work), [True] * n)

    def test_labels(self):
        """Each collective with the same label on all replicas, and with another one on the last."""
        def pair(self, label):
            pending = self.all_reduce_start(numpy.ones(2), numpy.empty(2), label=label)
            pending.wait()

        def through(self, label):
            self.all_reduce_through(numpy.ones(2), lambda x: None, label=label)

        calls = [pair, through]
        calls.append(lambda self, label: self.barrier(label=label))
        calls.append(lambda self, label: self.all_reduce(numpy.ones(2), label=label))
        calls.append(lambda self, label: self.reduce(numpy.ones(2), label=label))
        calls.append(lambda self, label: self.broadcast(numpy.ones(2), label=label))
        calls.append(lambda self, label: self.all_gather(numpy.ones(2), numpy.empty(4), label=label))
        calls.append(lambda self, label: self.reduce_scatter(numpy.ones(4), numpy.empty(2), label=label))
        calls.append(lambda self, label: self.all_to_all(numpy.ones(2), label=label))
        calls.append(lambda self, label: self.gather_to_root(numpy.ones(1), numpy.ones(2), label=label))
        calls.append(lambda self, label: self.scatter_from_root(numpy.ones(2), numpy.ones(1), label=label))
        calls.append(lambda self, label: self.all_to_all_start(numpy.ones(2), numpy.empty(2),
                                                               label=label).wait())
        calls.append(lambda self, label: self.scan(numpy.ones(2), label=label))
        calls.append(lambda self, label: self.scan(numpy.ones(2), exclusive=True, label=label))
        calls.append(lambda self, label: self.block_sum(numpy.ones(2), label=label))
        calls.append(lambda self, label: self.block_dot(numpy.ones(2), numpy.ones(2), label=label))
        calls.append(lambda self, label: self.exchange([], label=label))
        with ditto.Strategy(2) as strategy:
            for call in calls:
                strategy.run(lambda self, call=call: call(self, "loss"))
                with self.assertRaisesRegex(ditto.Error, '"größe" #1'):
                    strategy.run(lambda self, call=call: call(self, "größe" if self.id == 1 else "loss"))
            with self.assertRaisesRegex(ditto.Error, "has 64 bytes: the most is 63"):
                strategy.run(lambda self: self.barrier(label="x" * 64))

    def test_waiting_replicas_do_not_hold_the_gil(self):
        """One replica comes late, because it executes Python for a while."""
        def work(self):
            if self.id == 1:
                total = sum(range(2000000))
            self.barrier(timeout_ms=60000)
            return total if self.id == 1 else 0

        with ditto.Strategy(2) as strategy:
            self.assertEqual(strategy.run(work)[1], sum(range(2000000)))


class Unusual(Exception):
    pass


class Groups(unittest.TestCase):
    def test_collectives_along_the_axes_of_a_mesh(self):
        def double(combined):
            combined *= 2

        def work(self):
            for name, axis in axes.items():
                group = self.group(axis)
                n, rank = group.num_replicas, group.id
                assert n == {"data": 2, "tensor": 3}[name]
                assert rank == (self.id // 3 if name == "data" else self.id % 3)
                assert group.index == (self.id % 3 if name == "data" else self.id // 3)
                assert group.replicas[rank] == self.id
                assert collectives(group) == rank
                moved_parts(group)
                assert group.all_reduce_through(numpy.ones(3), double)[2] == 2 * n
                assert group.block_dot(numpy.ones(3), numpy.ones(3)) == group.block_sum(numpy.ones(3 * n)) / n
                got = numpy.empty(1)
                group.exchange([(n - 1 - rank, 5, numpy.array([float(rank)]), got)])
                assert got[0] == n - 1 - rank
                started = numpy.empty(2)
                pending = group.all_reduce_start(numpy.ones(2), started, label=name)
                pending.wait()
                assert started[1] == n
            return [self.group(axis) for axis in axes.values()]

        with ditto.Strategy(6) as strategy:
            axes = strategy.mesh({"data": 2, "tensor": 3})
            groups = strategy.run(work)
            self.assertEqual([group.replicas for group in groups[4]], [[1, 4], [3, 4, 5]])
            with self.assertRaisesRegex(ValueError, "has returned"):
                groups[0][0].barrier()
            with self.assertRaisesRegex(ditto.Error, 'in group [012] of "data"'):
                strategy.run(lambda self: self.group(axes["data"]).barrier(label=str(self.id)))
            with self.assertRaisesRegex(ditto.Error, "1 pending operation"):
                strategy.run(lambda self: self.group(axes["data"]).all_reduce_start(
                    numpy.ones(9), numpy.empty(9)) and None)
            with self.assertRaisesRegex(AttributeError, "merge_call"):
                strategy.run(lambda self: self.group(axes["data"]).merge_call(lambda: None))

    def test_colors_and_keys(self):
        with ditto.Strategy(4) as strategy:
            with strategy.split([7, None, 3, 7], [1, 0, 0, 0]) as grouping:
                def work(self):
                    group = self.group(grouping)
                    if group is not None:
                        group.barrier()
                    return group and (group.index, group.id, group.replicas)

                self.assertEqual(strategy.run(work), [(1, 1, [3, 0]), None, (0, 0, [2]), (1, 0, [3, 0])])
                with self.assertRaisesRegex(ditto.Error, "do it after run has returned"):
                    strategy.run(lambda self: grouping.destroy())
            with self.assertRaisesRegex(ValueError, "Grouping has been destroyed"):
                strategy.run(work)
            with strategy.split(numpy.arange(4) % 2) as grouping:
                self.assertEqual(strategy.run(work)[3], (1, 1, [1, 3]))
                with ditto.Strategy(4) as other, self.assertRaisesRegex(ditto.Error, "another strategy's"):
                    other.run(work)

    def test_divisions_that_are_refused(self):
        with ditto.Strategy(4) as strategy:
            for call, error, text in (
                    (lambda: strategy.split([0] * 3), ditto.Error, "count = 3, but the strategy has 4"),
                    (lambda: strategy.split([None] * 4), ditto.Error, "color"),
                    (lambda: strategy.split([0, 0, 0, -1]), ValueError, "from 0 to 4294967295"),
                    (lambda: strategy.split([0, 0, 0, 1.5]), ValueError, "must be integers"),
                    (lambda: strategy.split([0] * 4, [0] * 3), ValueError, "3 keys are not as many as the 4"),
                    (lambda: strategy.mesh({}), ditto.Error, "a mesh has an axis"),
                    (lambda: strategy.mesh({"x": 2 ** 32 + 4}), ValueError, "the extents are"),
                    (lambda: strategy.mesh({"x": 2, "y": 3}), ditto.Error, "multiply to 6")):
                with self.assertRaisesRegex(error, text):
                    call()
            self.assertNotIn("grouping", strategy.describe())

    def test_the_example_of_the_page(self):
        page = pathlib.Path(INCLUDE).parent / "docs" / "python.md"
        code = re.search(r"    with ditto.Strategy\(8\).*?\n(?=\n\S)", page.read_text(), re.S).group()
        done = program(textwrap.dedent(code))
        self.assertEqual((done.stdout.split(), done.stderr),
                         (["[3.", *["3."] * 3, *["4."] * 4, *["5."] * 4, *["6."] * 3, "6.]"], ""))

    def test_the_end_of_groupings(self):
        strategy = ditto.Strategy(2)
        rows = strategy.mesh({"rows": 2})
        self.assertIn("rows", strategy.describe())
        del rows
        self.assertNotIn("rows", strategy.describe())
        grouping = strategy.split([0, 1])
        strategy.destroy()  # which has destroyed the grouping
        grouping.destroy()
        for _ in range(10):  # in any order, in a circle of references
            circle = [ditto.Strategy(2)]
            circle += [circle[0].split([0, 0]), circle]
            del circle
            gc.collect()


class Errors(unittest.TestCase):
    def test_exceptions_come_out_of_run(self):
        for n in COUNTS:
            with ditto.Strategy(n) as strategy:
                for who in (0, n - 1):
                    def work(self, who=who):
                        if self.id == who:
                            raise Unusual("as it should")
                        self.barrier()
                    with self.assertRaisesRegex(Unusual, "as it should"):
                        strategy.run(work)
                    self.assertEqual(strategy.run(lambda self: self.id), list(range(n)))

    def test_exceptions_without_a_text(self):
        class Silent(Exception):
            def __str__(self):
                raise Unusual("no text")

        with ditto.Strategy(2) as strategy:
            for e in (Silent(), FileNotFoundError("\udcff.txt"), KeyboardInterrupt("a \0 b")):
                def work(self, e=e):
                    if self.id == 1:
                        raise e
                    self.barrier()
                with self.assertRaises(type(e)):
                    strategy.run(work)

    def test_errors_of_ditto(self):
        def diverge(self):
            if self.id == 0:
                self.barrier()
            else:
                self.all_reduce(numpy.ones(3))

        def wrong_op(self):
            self.all_reduce(numpy.ones(3), "xor")

        def handled(self):
            try:
                self.all_reduce(numpy.ones(3), "xor")
            except ditto.Error as e:
                raise Unusual(e.status) from e

        with ditto.Strategy(2) as strategy:
            with self.assertRaises(ditto.Error) as caught:
                strategy.run(diverge)
            self.assertEqual(caught.exception.status, "DIVERGED")
            with self.assertRaises(ditto.Error) as caught:
                strategy.run(wrong_op)
            self.assertEqual((caught.exception.status, caught.exception.function),
                             ("UNSUPPORTED", "ditto_all_reduce"))
            with self.assertRaisesRegex(Unusual, "UNSUPPORTED"):
                strategy.run(handled)
        with self.assertRaisesRegex(ditto.Error, "1000000"):
            ditto.Strategy(1000000)
        with self.assertRaisesRegex(TypeError, "no option 'colour'"):
            ditto.Strategy(2, colour=3)

    def test_arrays_that_cannot_be_used(self):
        read_only = numpy.ones(4)
        read_only.flags.writeable = False
        cases = [
            (lambda self: self.all_reduce(numpy.ones((4, 4))[:, 1]), "the source is not contiguous"),
            (lambda self: self.all_reduce(read_only), "the source is read-only"),
            (lambda self: self.all_reduce(numpy.ones(4, ">f8")), "other byte order"),
            (lambda self: self.all_reduce(numpy.array(["a"])), "which ditto does not have"),
            (lambda self: self.all_reduce([1.0, 2.0]), "must be a numpy.ndarray"),
            (lambda self: self.all_reduce(numpy.ones(4), out=numpy.ones(5)), "do not belong"),
            (lambda self: self.all_reduce(numpy.ones(4), out=numpy.ones(4, "f4")), "has the dtype float32"),
            (lambda self: self.all_reduce(numpy.ones(4), "median"), "'median' is not known"),
        ]
        with ditto.Strategy(2) as strategy:
            for function, text in cases:
                with self.assertRaisesRegex(ValueError, text):
                    strategy.run(function)
            self.assertEqual(strategy.run(lambda self: self.all_reduce(numpy.ones(0)).size), [0, 0])

    def test_objects_after_their_end(self):
        strategy = ditto.Strategy(2)
        variable = strategy.variable(numpy.ones(3))
        replicas = strategy.run(lambda self: self)
        with self.assertRaisesRegex(ValueError, "has returned"):
            replicas[0].barrier()
        strategy.destroy()
        strategy.destroy()
        with self.assertRaisesRegex(ValueError, "has been destroyed"):
            strategy.run(lambda self: 0)
        with self.assertRaisesRegex(ditto.Error, "destroyed"):
            variable.read()
        variable.destroy()

    def test_operations_whose_handle_was_dropped(self):
        def drops(self):
            for _ in range(5):
                self.all_reduce_start(numpy.ones(100000), numpy.empty(100000))
                gc.collect()

        with ditto.Strategy(2) as strategy:
            for _ in range(10):
                with self.assertRaisesRegex(ditto.Error, "5 pending operations"):
                    strategy.run(drops)

    def test_views_keep_their_strategy(self):
        strategy = ditto.Strategy(2)
        variable = strategy.variable(numpy.full(100000, 3.0))
        view = strategy.run(lambda self: self.read(variable))[0]
        del strategy, variable
        gc.collect()
        self.assertEqual(view[-1], 3.0)

    def test_numbers_that_do_not_fit(self):
        with self.assertRaisesRegex(ValueError, "timeout_ms = 4294967296 does not fit"):
            ditto.Strategy(2, timeout_ms=2 ** 32)

    def test_replicas_have_the_pus_that_are_asked_for(self):
        pus = len(os.sched_getaffinity(0))
        with ditto.Strategy(1, pus_per_replica=pus) as strategy:
            text = strategy.describe().splitlines()
            heading = next(i for i, line in enumerate(text) if line.startswith("replica "))
            names, places = (re.split(" {2,}", line.strip()) for line in text[heading:heading + 2])
            self.assertEqual(int(places[names.index("devices")]), pus)
        with self.assertRaisesRegex(ditto.Error, f"pus_per_replica = {pus + 1}, but there are {pus} PUs"):
            ditto.Strategy(1, pus_per_replica=pus + 1)

    def test_operations_that_are_left_behind(self):
        def leaves(self):
            pending = self.all_reduce_start(numpy.ones(100000), numpy.empty(100000))
            if self.id == 1:
                raise Unusual("left")
            pending.wait()

        with ditto.Strategy(2) as strategy:
            for _ in range(10):
                with self.assertRaisesRegex(Unusual, "left"):
                    strategy.run(leaves)
                gc.collect()


def program(code):
    """Executes a program that presses Ctrl-C when it has called `press`."""
    begin = ("import os, signal, threading, time, numpy, ditto\n"
             "def press():\n"
             "    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n")
    return subprocess.run([sys.executable, "-c", begin + code], capture_output=True, text=True, timeout=120,
                          check=False)


class Interrupts(unittest.TestCase):
    def test_ctrl_c_ends_a_run(self):
        """Replica 1 is stuck for ever, while the main thread waits for it, or executes code of its own."""
        for caller, own in ((0, "pass"), (2, "pass"), (0, "while True: time.sleep(0.001)")):
            done = program(f"""
def work(self):
    if self.id == 1:
        press()
        threading.Event().wait()
    {own}
    self.barrier()
with ditto.Strategy(2, timeout_ms=600000, caller={caller}) as strategy:
    strategy.run(work)
""")
            self.assertEqual((done.returncode, done.stderr.splitlines()[-1]),
                             (-signal.SIGINT, "KeyboardInterrupt"), done.stderr)

    def test_ctrl_c_leaves_a_strategy_whose_replicas_return(self):
        done = program("""
def work(self):
    if self.id == 0:
        press()
    while True:
        self.all_reduce(numpy.ones(1))
with ditto.Strategy(2) as strategy:
    try:
        strategy.run(work)
    except KeyboardInterrupt:
        print(strategy.run(lambda self: self.all_reduce(numpy.ones(1))[0]))
""")
        self.assertEqual((done.returncode, done.stdout), (0, "[2.0, 2.0]\n"), done.stderr)

    def test_functions_and_programs_that_handle_ctrl_c(self):
        done = program("""
def work(self):
    press()
    try:
        while True: time.sleep(0.001)
    except KeyboardInterrupt:
        return "handled"
def waits(self):
    if self.id == 1:
        press()
        came.wait()
        time.sleep(0.2)
    self.barrier()
with ditto.Strategy(1) as strategy:
    print(strategy.run(work))
came = threading.Event()
signal.signal(signal.SIGINT, lambda *_: came.set())
with ditto.Strategy(2, caller=2) as strategy:
    threading.Timer(0.6, came.set).start()
    print(strategy.run(waits))
""")
        self.assertEqual((done.returncode, done.stdout), (0, "['handled']\n[None, None]\n"), done.stderr)

    def test_ctrl_c_ends_waiting_for_workers(self):
        done = program("""
gate = threading.Event()
with ditto.Strategy(1, kind="parameter_server", timeout_ms=600000) as strategy, \\
        ditto.Coordinator(strategy, queue_capacity=2) as coordinator:
    remote = coordinator.schedule(lambda self: gate.wait())
    def fill():
        while True: coordinator.schedule(lambda self: None)
    for call in (coordinator.join, remote.fetch, fill):
        press()
        try:
            call()
        except KeyboardInterrupt:
            print(call.__name__)
    gate.set()
    coordinator.join()
    print(remote.fetch())
""")
        self.assertEqual((done.returncode, done.stdout), (0, "join\nfetch\nfill\nTrue\n"), done.stderr)

    def test_other_threads_interrupt(self):
        def work(self):
            if self.id == 0:
                timer.start()
            while True:
                self.barrier()

        with ditto.Strategy(2) as strategy:
            strategy.interrupt()  # there is no run
            for _ in range(3):
                timer = threading.Timer(0.1, strategy.interrupt)
                with self.assertRaises(ditto.Error) as caught:
                    strategy.run(work)
                timer.join()
                self.assertEqual(caught.exception.status, "CANCELLED")
                self.assertEqual(strategy.run(lambda self: self.id), [0, 1])

    def test_signals_of_a_child_are_not_those_of_its_parent(self):
        done = program("""
forked, children = threading.Event(), []
def work(self):
    if self.id == 0:
        child = os.fork()
        if child == 0:
            try:
                time.sleep(0.3)
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(60)
            except KeyboardInterrupt:
                os._exit(7)
        children.append(child)
        forked.set()
    else:
        forked.wait()
        status = os.waitpid(children[0], 0)[1]
        time.sleep(0.2)
        print(os.WEXITSTATUS(status))
    self.barrier()
with ditto.Strategy(2) as strategy:
    strategy.run(work)
""")
        self.assertEqual((done.returncode, done.stdout), (0, "7\n"), done.stderr)

    def test_the_end_of_a_program(self):
        """A daemon thread is in a run when the program ends."""
        for work in ("while True: self.barrier()", "threading.Event().wait()",
                     "while True: time.sleep(0.0005)", "pass"):
            for caller in (0, 2):
                done = program(f"""
begun = threading.Event()
strategy = ditto.Strategy(3, caller={caller})
def work(self):
    begun.set()
    {work}
def main():
    while True: strategy.run(work)
threading.Thread(target=main, daemon=True).start()
begun.wait()
""")
                self.assertEqual((done.returncode, done.stderr), (0, ""), work)


class Objects(unittest.TestCase):
    def test_variables(self):
        with ditto.Strategy(3) as strategy:
            mirrored = strategy.variable(numpy.zeros((2, 3), "f4"), "w", aggregation="sum")
            on_read = strategy.variable(numpy.zeros(2), "loss", synchronization="read", aggregation="mean")

            def work(self):
                self.assign_add(mirrored, numpy.ones((2, 3), "f4"))
                self.assign(on_read, numpy.full(2, float(self.id)))
                view = self.read(mirrored)
                try:
                    view[0, 0] = 7
                except ValueError:
                    return float(view[1, 2])
                return None

            self.assertEqual(strategy.run(work), [3.0] * 3)
            self.assertEqual(mirrored.read()[1, 2], 3)
            self.assertEqual(on_read.read()[0], 1)
            mirrored.assign(numpy.full((2, 3), 5, "f4"))
            self.assertEqual((mirrored.name, mirrored.read()[0, 0]), ("w", 5))
            with self.assertRaisesRegex(ValueError, "of shape"):
                mirrored.assign(numpy.zeros(3, "f4"))
            with self.assertRaisesRegex(ValueError, "float64"):
                strategy.run(lambda self: self.assign(mirrored, numpy.zeros((2, 3))))
            self.assertIn("3 replicas", strategy.describe())

    def test_slices(self):
        whole = numpy.arange(35.0).reshape(5, 7)
        with ditto.Strategy(4) as strategy:
            axes = strategy.mesh({"data": 2, "tensor": 2})
            weights = strategy.variable(whole, "w", aggregation="sum", slice_axis=-1,
                                        slice_along=axes["tensor"])
            rows = strategy.variable(whole[:4].copy(), "r", slice_axis=0)
            adam = strategy.optimizer([weights], "sgd", learning_rate=1.0)

            def work(self):
                own, first = self.slice(weights)
                rank = self.group(axes["tensor"]).id
                assert first == 4 * rank and (own == whole[:, first:first + 4 - rank]).all()
                assert not own.flags.writeable
                self.assign_add(weights, numpy.ones_like(own))  # by both replicas that have the slice
                self.apply(adam, [numpy.ones_like(own)])
                assert (self.slice(weights)[0] == whole[:, first:first + 4 - rank]).all()
                row, first = self.slice(rows)
                assert first == self.id and (row == whole[first]).all()
                for wrong in (lambda: self.assign(weights, whole), lambda: self.assign(rows, row[0])):
                    with self_test.assertRaisesRegex(ValueError, "the slice is float64 of shape"):
                        wrong()
                with self_test.assertRaisesRegex(ditto.Error, "ditto_local_slice"):
                    self.read(weights)

            self_test = self
            strategy.run(work)
            self.assertTrue((weights.read() == whole).all())
            weights.assign(2 * whole)
            self.assertEqual(strategy.run(lambda self: float(self.slice(weights)[0][4, 0])),
                             [56.0, 64.0, 56.0, 64.0])
            for wrong in ({"slice_axis": 2}, {"slice_axis": 0, "slice_along": axes["data"],
                                              "synchronization": "read"}):
                with self.assertRaises(ditto.Error):
                    strategy.variable(whole, **wrong)
            with self.assertRaisesRegex(ValueError, "slice_axis"):
                strategy.variable(whole, slice_along=axes["data"])

    def test_input(self):
        rows = numpy.arange(40, dtype=numpy.float32).reshape(20, 2)
        labels = numpy.arange(20, dtype=numpy.int64)
        for n in (1, 2, 4):
            with ditto.Strategy(n) as strategy:
                data = ditto.Dataset.from_arrays(rows, labels).shuffle(seed=3).repeat(2)
                with strategy.iterate(data, 8) as iterator:
                    def work(self):
                        seen = []
                        for x, y in self.batches(iterator):
                            assert (x[:, 0] == 2 * y).all()
                            seen += [int(label) for label in y]
                        return seen
                    found = sorted(sum(strategy.run(work), []))
                self.assertEqual(found, sorted(list(range(20)) * 2))

    def test_batches_are_copies(self):
        data = ditto.Dataset.from_arrays(numpy.arange(20.))
        with ditto.Strategy(2) as strategy:
            with strategy.iterate(data, global_batch=4) as iterator:
                kept = strategy.run(lambda self: [x for x, in self.batches(iterator)])
        self.assertEqual([x.tolist() for x in kept[1]], [[k, k + 1] for k in range(2, 20, 4)])

    def test_epochs(self):
        data = ditto.Dataset.from_arrays(numpy.arange(8.)).shuffle(seed=1)
        with ditto.Strategy(2) as strategy:
            def rows(self):
                return [x.tolist() for x, in self.batches(iterator)]
            found = []
            for epoch in (0, 1, 1):
                with strategy.iterate(data, global_batch=8, epoch=epoch) as iterator:
                    found.append(strategy.run(rows))
                    with self.assertRaisesRegex(ValueError, "one for each epoch"):
                        strategy.run(rows)
            self.assertNotEqual(found[0], found[1])
            self.assertEqual(found[1], found[2])

    def test_steps_that_are_not_full(self):
        def rows(self):
            return [len(x) for x, in self.batches(iterator)]

        data = ditto.Dataset.from_arrays(numpy.ones((1001, 8)))
        with ditto.Strategy(2) as strategy:
            for drops, last in ((False, [[1], [0]]), (True, [[], []])):
                with strategy.iterate(data, global_batch=100, drop_remainder=drops) as iterator:
                    self.assertEqual(strategy.run(rows), [[50] * 10 + rest for rest in last])

    def test_the_loop_of_the_page(self):
        page = pathlib.Path(INCLUDE).parent / "docs" / "python.md"
        code = re.search(r"    rows, labels = .*?\n(?=\n\w)", page.read_text(), re.S).group()
        for count in (1000, 1001, 40):
            text = textwrap.dedent(code).replace("1000", str(count))
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([sys.executable, "-c", "import numpy, ditto\n" + text], check=False,
                                      capture_output=True, text=True, cwd=folder)
            if "libditto-hdf5" in done.stderr:
                self.skipTest(done.stderr)
            self.assertEqual((done.returncode, "nan" in done.stdout), (0, False), done)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder) / "rows.csv"
            table.write_text("a;b;c\n1;2;3\n4;5;6\n7;8;9\n")
            array = pathlib.Path(folder) / "rows.npy"
            numpy.save(array, numpy.arange(6.0).reshape(3, 2))
            rows = ditto.Dataset.from_csv(table, [(0, 2, "float32"), (2, 1, numpy.int64)], skip_lines=1,
                                          delimiter=";")
            with ditto.Strategy(1) as strategy:
                for data, expected in ((rows, [[1, 2], [4, 5], [7, 8]]),
                                       (ditto.Dataset.from_npy(array), [[0, 1], [2, 3], [4, 5]])):
                    with strategy.iterate(data, global_batch=3) as iterator:
                        def work(self, iterator=iterator):
                            return [batch[0].tolist() for batch in self.batches(iterator)]
                        self.assertEqual(strategy.run(work), [[expected]])
            with self.assertRaisesRegex(ditto.Error, "nowhere"):
                ditto.Dataset.from_npy("nowhere.npy")
            with self.assertRaisesRegex(ValueError, "the dtype"):
                ditto.Dataset.from_csv(table, [(0, 2, "datetime64[s]")])

    def test_optimizers(self):
        for n in COUNTS:
            with ditto.Strategy(n) as strategy:
                w = strategy.variable(numpy.ones((2, 3)))
                b = strategy.variable(numpy.ones(2))
                with strategy.optimizer([w, b], learning_rate=0.5) as optimizer:
                    strategy.run(lambda self: self.apply(optimizer, [numpy.ones((2, 3)), numpy.ones(2)]))
                    strategy.run(lambda self: self.apply(optimizer, [numpy.ones((2, 3)), numpy.ones(2)],
                                                         learning_rate=0))
                    self.assertTrue((w.read() == 1 - 0.5 * n).all())
                    self.assertEqual(optimizer.iterations, 2)
                    with self.assertRaisesRegex(ValueError, "1 gradients"):
                        strategy.run(lambda self: self.apply(optimizer, [numpy.ones((2, 3))]))
                    with self.assertRaisesRegex(ditto.Error, "its gradient is f64 .6."):
                        strategy.run(lambda self: self.apply(optimizer, [numpy.ones(6), numpy.ones(2)]))
                    with self.assertRaisesRegex(ditto.Error, "optimizer"):
                        w.destroy()
                with strategy.optimizer([w, b], op="mean", name="other", learning_rate=1.0,
                                        rate_factors=[0, 2]) as optimizer:
                    before = w.read(), b.read()
                    strategy.run(lambda self: self.apply(optimizer, [numpy.ones((2, 3)), numpy.ones(2)]))
                    self.assertTrue((w.read() == before[0]).all() and (b.read() == before[1] - 2).all())
                with self.assertRaisesRegex(ValueError, "1 numbers"):
                    strategy.optimizer([w, b], rate_factors=[1])
                with self.assertRaisesRegex(TypeError, "not for Python"):
                    strategy.optimizer([w, b], function=print)
                with self.assertRaisesRegex(ValueError, "the rule"):
                    strategy.optimizer([w], rule="newton")
                with self.assertRaisesRegex(ditto.Error, "twice"):
                    strategy.optimizer([w, w])

    def test_checkpoints(self):
        with tempfile.TemporaryDirectory() as folder, ditto.Strategy(2) as strategy:
            path = pathlib.Path(folder) / "a.h5"
            value = numpy.arange(6, dtype=numpy.float64).reshape(2, 3)
            variable = strategy.variable(value, "weights")
            try:
                strategy.save(path, step=7)
            except ImportError as e:
                self.skipTest(str(e))
            variable.assign(numpy.zeros((2, 3)))
            strategy.restore(path)
            self.assertTrue((variable.read() == value).all())
            found = ditto.load(path)
            self.assertEqual((found.step, list(found)), (7, ["weights"]))
            self.assertTrue((found["weights"] == value).all())
            with self.assertRaisesRegex(ditto.Error, "missing.h5"):
                ditto.load(pathlib.Path(folder) / "missing.h5")

    def test_traces(self):
        with tempfile.TemporaryDirectory() as folder, ditto.Strategy(2) as strategy:
            strategy.trace()
            strategy.run(lambda self: self.barrier())
            strategy.trace_stop()
            self.assertIn("ditto_barrier", strategy.trace_table())
            strategy.trace_write(pathlib.Path(folder) / "trace.json")
            self.assertGreater(os.path.getsize(pathlib.Path(folder) / "trace.json"), 100)

    def test_threads_with_strategies_of_their_own(self):
        found = []

        def thread():
            with ditto.Strategy(2) as strategy:
                for _ in range(20):
                    found.extend(strategy.run(lambda self: self.all_reduce(numpy.ones(1))[0]))

        threads = [threading.Thread(target=thread) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(found, [2.0] * 120)


class Workers(unittest.TestCase):
    def test_results_and_parameters(self):
        for n in COUNTS:
            with ditto.Strategy(n, kind="parameter_server") as strategy:
                weights = strategy.variable(numpy.arange(12.0).reshape(6, 2))

                def step(self, number):
                    assert self.worker < n and self.pull(weights).shape == (6, 2)
                    self.assign_add(weights, numpy.ones((6, 2)))
                    self.scatter(weights, "sub", [1, 3], numpy.ones((2, 2)))
                    return number * 2, list(self.lookup(weights, [1])[0])

                with ditto.Coordinator(strategy, queue_capacity=4) as coordinator:
                    self.assertEqual(coordinator.num_workers, n)
                    remotes = [coordinator.schedule(step, k) for k in range(50)]
                    coordinator.join()
                    self.assertTrue(coordinator.done())
                    found = [remote.fetch() for remote in remotes]
                    self.assertEqual([result[0] for result in found], [2 * k for k in range(50)])
                    self.assertTrue(all(remote.done() and not remote.cancel() for remote in remotes))
                    self.assertEqual((coordinator._batch.calls, ditto._Call.all), ({}, {}))
                value = weights.read()
                self.assertEqual((value[0, 0], value[1, 0], value[5, 1]), (50, 2, 61))
                with self.assertRaisesRegex(ditto.Error, "worker"):
                    strategy.run(lambda self: None)

    def test_reports(self):
        for n in COUNTS:
            with ditto.Strategy(n, kind="parameter_server") as strategy, \
                    ditto.Coordinator(strategy) as coordinator:
                weights = strategy.variable(numpy.zeros(3))
                optimizer = strategy.optimizer([weights], rule="sgd", max_staleness=1000)

                def step(self):
                    self.apply(optimizer, [numpy.ones(3)], read_steps=self.steps_of(optimizer))

                strategy.trace()
                for _ in range(20):
                    coordinator.schedule(step)
                coordinator.join()
                strategy.trace_stop()
                self.assertRegex(strategy.trace_table(), "run +[0-9]+")
                stats, ages = coordinator.stats(), optimizer.staleness()
                self.assertEqual((stats["scheduled"], stats["functions"], stats["depth"]), (20, 20, 0))
                self.assertEqual((sum(stats["depth_histogram"]), stats["num_workers"]), (2, n))
                self.assertEqual((ages["calls"], ages["dropped"], sum(ages["histogram"])), (20, 0, 20))
                optimizer.destroy()

    def test_shared_datasets(self):
        for n in COUNTS:
            with ditto.Strategy(n, kind="parameter_server") as strategy, \
                    ditto.Coordinator(strategy) as coordinator:
                dataset = ditto.Dataset.range(0, 100)
                shared = coordinator.share(dataset, 10)

                def take(self, shared):
                    batch = next(self.batches(shared), None)
                    return None if batch is None else batch[0].copy()

                def rows(calls, shared):
                    remotes = [coordinator.schedule(take, shared) for _ in range(calls)]
                    coordinator.join()
                    found = [remote.fetch() for remote in remotes]
                    return sorted(row for batch in found if batch is not None for row in batch)

                self.assertEqual(rows(4, shared), list(range(40)))
                state = shared.save()
                self.assertEqual(rows(9, shared), list(range(40, 100)))
                shared.destroy()
                with coordinator.share(dataset, 10, state) as again:
                    self.assertEqual(rows(9, again), list(range(40, 100)))
                with self.assertRaisesRegex(ditto.Error, "batches of 10 rows"):
                    coordinator.share(dataset, 5, state)
                left = coordinator.share(dataset, 10)
            with self.assertRaisesRegex(ditto.Error, "coordinator"):
                left.save()
            left.destroy()

    def test_concurrency(self):
        with ditto.Strategy(2, kind="parameter_server") as strategy, \
                ditto.Coordinator(strategy) as coordinator:
            table = strategy.variable(numpy.zeros((4, 2)), concurrency="hogwild")
            ones = numpy.ones((1, 2))
            for _ in range(10):  # each worker has a row of its own
                coordinator.schedule(lambda self: self.scatter(table, "add", [self.worker], ones))
            coordinator.join()
            self.assertEqual(table.read().sum(), 20)
            free = strategy.variable(numpy.ones((4, 2)), concurrency="free_reads")
            read = coordinator.schedule(lambda self: (self.pull(free, lock=False).sum(),
                                                      self.lookup(free, [1, 3], lock=False).sum(),
                                                      self.lookup(free, [2], lock=True).sum()))
            self.assertEqual(read.fetch(), (8, 4, 2))

            def in_place(replica: ditto.Replica) -> bool:
                rows, read = replica.component(table), replica.read(table)
                rows[replica.worker] += 0.5
                return not read.flags.writeable and bool((read == rows).all())
            for _ in range(10):
                self.assertTrue(coordinator.schedule(in_place).fetch())
            self.assertEqual(table.read().sum(), 20 + 10)
            with self.assertRaisesRegex(ditto.Error, "HOGWILD"):
                strategy.optimizer([table], "adam")
            locked = strategy.variable(numpy.ones((4, 2)))
            coordinator.schedule(lambda self: self.pull(locked, lock=False))
            with self.assertRaisesRegex(ditto.Error, "FREE_READS"):
                coordinator.join()
            with self.assertRaisesRegex(ValueError, "concurrency"):
                strategy.variable(numpy.zeros(2), concurrency="wild")

    def test_workers_of_several_replicas(self):
        with ditto.Strategy(6, kind="parameter_server", replicas_per_worker=3) as strategy, \
                ditto.Coordinator(strategy) as coordinator:
            total = coordinator.schedule(lambda self: (self.id, self.all_reduce(numpy.ones(1))[0]))
            self.assertEqual(total.fetch(), [(0, 3), (1, 3), (2, 3)])

    def test_exceptions(self):
        for n in COUNTS:
            with ditto.Strategy(n, kind="parameter_server") as strategy, \
                    ditto.Coordinator(strategy) as coordinator:
                weights = strategy.variable(numpy.zeros(3))

                def fails(_):
                    raise Unusual("not scheduled again")
                remote = coordinator.schedule(fails)
                with self.assertRaisesRegex(Unusual, "not scheduled again"):
                    coordinator.join()
                with self.assertRaisesRegex(Unusual, "not scheduled again"):
                    remote.fetch()
                coordinator.schedule(lambda self: self.scatter(weights, "add", [7], numpy.zeros(1)))
                with self.assertRaisesRegex(ditto.Error, "7"):
                    coordinator.join()
                remote = coordinator.schedule(lambda self: self.scatter(weights, "add", [0], numpy.zeros(2)))
                with self.assertRaisesRegex(ValueError, "shape"):
                    remote.fetch()
                with self.assertRaisesRegex(ValueError, "shape"):
                    coordinator.join()
                self.assertEqual(coordinator.schedule(lambda self: self.worker).fetch() < n, True)
                coordinator.join()
                self.assertEqual(ditto._Call.all, {})
        with ditto.Strategy(1) as strategy:
            with self.assertRaisesRegex(ditto.Error, "PARAMETER_SERVER"):
                ditto.Coordinator(strategy)
            self.assertEqual(strategy.run(lambda self: self.worker), [None])
        with self.assertRaisesRegex(ValueError, "mirrored"):
            ditto.Strategy(1, kind="mirror")

    def test_functions_after_a_timeout_are_not_lost(self):
        with ditto.Strategy(1, kind="parameter_server", timeout_ms=200) as strategy, \
                ditto.Coordinator(strategy) as coordinator:
            gate = threading.Event()
            coordinator.schedule(lambda self: gate.wait())
            remotes = [coordinator.schedule(lambda self, k=k: k) for k in range(4)]
            with self.assertRaises(ditto.Error) as caught:
                coordinator.join()
            self.assertEqual(caught.exception.status, "TIMED_OUT")
            gate.set()
            coordinator.join()
            self.assertEqual([remote.fetch() for remote in remotes], [0, 1, 2, 3])
            with self.assertRaisesRegex(ValueError, "integers"):
                coordinator.schedule(lambda self: self.lookup(None, [1.5])).fetch()

    def test_exceptions_of_one_batch_are_not_those_of_the_next(self):
        def first(self):
            self.scatter(None, "add", [1.5], numpy.ones(1))

        def second(_):
            raise Unusual("of the second batch")
        with ditto.Strategy(1, kind="parameter_server") as strategy, \
                ditto.Coordinator(strategy) as coordinator:
            coordinator.schedule(first)
            with self.assertRaisesRegex(ValueError, "integers"):
                coordinator.join()
            coordinator.schedule(second)
            with self.assertRaisesRegex(Unusual, "of the second batch"):
                coordinator.join()
            self.assertEqual(ditto._Call.all, {})

    def test_a_late_worker(self):
        """A coordinator that is gone although destroy raises an error is not destroyed again."""
        gate = threading.Event()
        strategy = ditto.Strategy(1, kind="parameter_server", run_timeout_ms=100)
        coordinator = ditto.Coordinator(strategy)
        coordinator.schedule(lambda self: gate.wait())
        with self.assertRaises(ditto.Error) as caught:
            coordinator.join()
        self.assertEqual(caught.exception.status, "POISONED")
        with self.assertRaises(ditto.Error) as caught:
            coordinator.destroy()
        self.assertEqual(caught.exception.status, "POISONED")
        coordinator.destroy()
        gate.set()
        with self.assertRaisesRegex(ditto.Error, "cannot|destroy|poison"):
            strategy.destroy()
        self.assertEqual(ditto._Call.all, {})

    def test_the_end_of_a_program_with_a_late_worker(self):
        done = program("""
strategy = ditto.Strategy(1, kind="parameter_server", run_timeout_ms=100)
coordinator = ditto.Coordinator(strategy)
def late(self):
    while True: time.sleep(0.0005)
coordinator.schedule(late)
try:
    coordinator.join()
except ditto.Error as e:
    print(e.status)
""")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "POISONED\n", ""))

    def test_the_last_reference_ends_on_a_worker(self):
        with ditto.Strategy(1, kind="parameter_server") as strategy:
            held, gate = [ditto.Coordinator(strategy)], threading.Event()

            def drop(_):
                gate.wait()
                held.clear()
            remote = held[0].schedule(drop)
            gate.set()
            remote.fetch()
            with ditto.Coordinator(strategy) as coordinator:
                self.assertEqual(coordinator.schedule(lambda self: 5).fetch(), 5)
            self.assertEqual(ditto.Coordinator._left, [])

    def test_what_is_cancelled(self):
        begun, gate = threading.Event(), threading.Event()

        def wait(self):
            begun.set()
            return gate.wait()

        with ditto.Strategy(1, kind="parameter_server") as strategy:
            coordinator = ditto.Coordinator(strategy)
            first = coordinator.schedule(wait)
            self.assertTrue(begun.wait(60))  # otherwise destroy would cancel it
            second, third = (coordinator.schedule(lambda self: 1) for _ in range(2))
            self.assertTrue(second.cancel())
            threading.Timer(0.1, gate.set).start()
            coordinator.destroy()
            self.assertTrue(first.fetch())
            for remote in (second, third):
                with self.assertRaisesRegex(ditto.Error, "cancel"):
                    remote.fetch()
            with self.assertRaisesRegex(ValueError, "destroyed"):
                coordinator.schedule(lambda self: 1)
            self.assertEqual(ditto._Call.all, {})

    def test_optimizers(self):
        for n in COUNTS:
            with ditto.Strategy(n, kind="parameter_server") as strategy:
                weights = strategy.variable(numpy.zeros(4))
                with strategy.optimizer([weights], "add", accumulate=2) as optimizer, \
                        ditto.Coordinator(strategy) as coordinator:
                    for _ in range(6):
                        coordinator.schedule(lambda self: self.apply(optimizer, [numpy.ones(4)]))
                    coordinator.join()
                    self.assertEqual(coordinator.schedule(lambda self: self.steps_of(optimizer)).fetch(), 3)
                self.assertEqual(list(weights.read()), [6] * 4)
                with strategy.optimizer([weights], "add", max_staleness=0) as optimizer, \
                        ditto.Coordinator(strategy) as coordinator:
                    def push(self):
                        return self.apply(optimizer, [numpy.ones(4)], read_steps=0)
                    self.assertEqual([coordinator.schedule(push).fetch() for _ in range(3)],
                                     [True, False, False])

    def test_the_end_of_a_program(self):
        """Functions that are still in the queue when the program ends."""
        code = ("import ditto, time\n"
                "strategy = ditto.Strategy(3, kind='parameter_server')\n"
                "coordinator = ditto.Coordinator(strategy)\n"
                "for _ in range(100): coordinator.schedule(lambda self: time.sleep(0.01))\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


INCLUDE, COMPILER = sys.argv[1], sys.argv[2:]
unittest.main(argv=sys.argv[:1])
