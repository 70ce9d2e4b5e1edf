"""Batches that a program keeps in a list are views of memory that later batches overwrite. No error says
so."""
import numpy
import ditto

with ditto.Strategy(1) as strategy:
    data = ditto.Dataset.from_arrays(numpy.arange(20.))
    with strategy.iterate(data, global_batch=4) as iterator:
        kept = strategy.run(lambda self: [x for x, in self.batches(iterator)])[0]
        found = [x.tolist() for x in kept]
    print("first batch:", found[0])
    raise SystemExit(int(found[0] != [0, 1, 2, 3]))
