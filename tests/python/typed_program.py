"""tests/python/typed_program.py - a program with type hints, which mypy checks together with the package.

mypy runs with --strict, which also refuses an `ignore` that ignores nothing. So each mistake with such a
comment is one that mypy finds."""
from __future__ import annotations

from typing import Any

import numpy
from numpy.typing import NDArray

import ditto


def total(self: ditto.Replica, op: ditto.Op) -> float:
    x: NDArray[numpy.float64] = self.all_reduce(numpy.array([self.id + 1.0]), op)
    self.all_reduce(x, "average")  # type: ignore[arg-type]
    self.all_reduce([1.0])  # type: ignore[type-var]
    return float(x[0])


def train(self: ditto.Replica, weights: ditto.Variable, iterator: ditto.Iterator) -> int:
    for (rows,) in self.batches(iterator):
        self.assign_add(weights, rows.mean(axis=0))
    self.assign_add(weights, 1.0)  # type: ignore[arg-type]
    return self.id


def pull(self: ditto.Replica, weights: ditto.Variable) -> NDArray[Any]:
    return self.pull(weights)


def sum_of_pair(self: ditto.Replica, pairs: ditto.Grouping) -> NDArray[Any]:
    self.group(pairs).barrier()  # type: ignore[union-attr]
    group = self.group(pairs)
    if group is None:
        return numpy.zeros(3)
    group.merge_call(print)  # type: ignore[attr-defined]
    return group.all_reduce(numpy.ones(3))


def main() -> None:
    with ditto.Strategy(2, timeout_ms=1000) as strategy:
        means: list[float] = strategy.run(lambda self: total(self, "mean"))
        ids: list[int] = strategy.run(lambda self: self.id)
        names: list[str] = strategy.run(lambda self: self.id)  # type: ignore[arg-type, return-value]
        strategy.run(total)  # type: ignore[arg-type]
        strategy.rum(total)  # type: ignore[attr-defined]
        weights = strategy.variable(numpy.zeros(8), "weights", aggregation="mean")
        data = ditto.Dataset.from_arrays(numpy.ones((100, 8))).shuffle(seed=1)
        with strategy.iterate(data, global_batch=10, epoch=1, drop_remainder=True) as iterator:
            ids = strategy.run(lambda self: train(self, weights, iterator))
        with strategy.optimizer([weights], "adam", learning_rate=0.01) as optimizer:
            done: list[bool] = strategy.run(lambda self: self.apply(optimizer, [numpy.ones(8)]))
        strategy.save("weights.h5", step=1)
        axes: dict[str, ditto.Grouping] = strategy.mesh({"data": 2, "tensor": 1})
        with strategy.split([0, None], keys=[1, 0]) as pairs:
            strategy.run(lambda self: sum_of_pair(self, pairs))
        strategy.split(["red", "blue"])  # type: ignore[list-item]
        print(means, names, ids, done, axes, weights.read(), ditto.load("weights.h5")["weights"].shape)
    with ditto.Strategy(2, "mirored"):  # type: ignore[arg-type]
        pass
    with ditto.Strategy(2, "parameter_server") as workers, ditto.Coordinator(workers) as coordinator:
        parameters = workers.variable(numpy.zeros(8))
        remote: ditto.Remote = coordinator.schedule(pull, parameters)
        coordinator.join()
        print(remote.fetch(), ditto.__version__)
