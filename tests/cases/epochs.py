"""Two ways to train for several epochs that look right. A new iterator for each epoch gives the same order in
each, and a second pass over one iterator gives no rows, without an error."""
import numpy
import ditto


def rows(self):
    return [x.tolist() for x, in self.batches(iterator)]


with ditto.Strategy(1) as strategy:
    data = ditto.Dataset.from_arrays(numpy.arange(8.)).shuffle(seed=1)
    orders = []
    for _ in range(2):
        with strategy.iterate(data, global_batch=8) as iterator:
            orders.append(strategy.run(rows)[0])
            again = strategy.run(rows)[0]
    print("epoch 0:", orders[0], "epoch 1:", orders[1], "second pass of one iterator:", again)
    raise SystemExit(int(orders[0] == orders[1] or not again))
