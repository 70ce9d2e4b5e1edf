"""The training loop of docs/python.md with 1001 rows in place of 1000. The last step has one row, replica 1
gets none, and the mean of none makes all weights nan."""
import numpy
import ditto

with ditto.Strategy(2) as strategy:
    weights = strategy.variable(numpy.zeros(8), "weights", aggregation="mean")
    data = ditto.Dataset.from_arrays(numpy.ones((1001, 8)))
    with strategy.iterate(data, global_batch=100) as iterator:
        def train(self):
            for x, in self.batches(iterator):
                self.assign_add(weights, x.mean(axis=0))
        strategy.run(train)
    print("weights:", weights.read()[:2])
    raise SystemExit(int(numpy.isnan(weights.read()).any()))
