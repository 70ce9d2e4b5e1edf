/* include/ditto.h - replicas, variables, collectives and input for CPU programs on one multi-socket host.
 *
 * ditto brings the model of TensorFlow's tf.distribute.Strategy to plain C. A *strategy* owns *replicas*. A
 * replica is a thread that is pinned to a PU (a hardware thread) and allocates memory from its own NUMA node.
 * All replicas run the same function on different data. Inside that function, in *replica context*, a replica
 * has a handle `self` and takes part in *collectives* with the others. In *cross-replica context* (in a
 * strategy's scope, or in a merge function), ordinary code sees all replicas at once. *Variables* exist once
 * per replica, per NUMA node or per strategy. The copies of a mirrored variable are made consistent when it
 * is written, and those of a sync-on-read variable when it is read. *Datasets* are divided into per-replica
 * batches, which producer threads put into the queue of each replica ahead of time.
 *
 *     #include <ditto.h>
 *     #include <stdio.h>
 *
 *     static ditto_status mean_square(ditto_replica *self, void *unused)
 *     {
 *         (void)unused;
 *         double x = ditto_replica_id(self) + 1.0, y = x * x;
 *         DITTO_TRY(ditto_all_reduce(self, &y, &y, 1, DITTO_F64, DITTO_MEAN, NULL));
 *         if (ditto_replica_id(self) == 0)
 *             printf("mean square over %u replicas: %g\n", ditto_num_replicas(self), y);
 *         return DITTO_OK;
 *     }
 *
 *     int main(void)
 *     {
 *         ditto_strategy *strategy;
 *         if (ditto_strategy_create(DITTO_MIRRORED, NULL, &strategy) != DITTO_OK ||
 *             ditto_strategy_run(strategy, mean_square, NULL) != DITTO_OK)
 *             return fprintf(stderr, "%s\n", ditto_last_error()->message), 1;
 *         return ditto_strategy_destroy(strategy) == DITTO_OK ? 0 : 1;
 *     }
 *
 * The name of a function shows where it is called. ditto_<verb>(self, ...) is called in replica context, and
 * so are ditto_replica_id(self) and ditto_random_of(self, ...). If an object belongs to a strategy, or is
 * one, ditto_<object>_<verb>(object, ...) is called outside of runs, with or without a scope, or in a merge
 * function. The functions of context.h are about the calling thread.
 *
 * Most calls that can fail return a ditto_status. ditto_last_error() explains the last error. With the
 * default options, no replica waits for ever in a collective. If another replica fails, makes another call or
 * does not arrive, the run ends with an error that names it. For a given number of replicas, the results of
 * collectives have the same bits on every replica and in every run, wherever the replicas are placed.
 *
 * The comment of a function has a paragraph about its cost. Functions without one read or write a few words,
 * and call neither the system nor an allocator.
 *
 * The headers are listed in reading order. ditto/checkpoint.h is not among them, because it belongs to a
 * library of its own, libditto-hdf5. */
#ifndef DITTO_H
#define DITTO_H

#include <ditto/api.h>         /* export macros, option structs, the version */
#include <ditto/status.h>      /* what calls return, and the last error */
#include <ditto/dtype.h>       /* types of elements */
#include <ditto/tensor.h>      /* views of arrays */
#include <ditto/topology.h>    /* the machine */
#include <ditto/limits.h>      /* what the process may use of the machine */
#include <ditto/placement.h>   /* which PUs each replica gets */
#include <ditto/strategy.h>    /* create, scope, run, describe, destroy */
#include <ditto/replica.h>     /* id, memory, failing */
#include <ditto/device.h>      /* loops and functions on the PUs of a replica */
#include <ditto/collective.h>  /* barrier, all-reduce, broadcast, all-gather, ... */
#include <ditto/scan.h>        /* prefix sums over replicas */
#include <ditto/pending.h>     /* collectives that are waited for later */
#include <ditto/slices.h>      /* all-reduce of sparse rows */
#include <ditto/exchange.h>    /* replicas give data to each other: borders of a grid */
#include <ditto/group.h>       /* groups of replicas: rows and columns of a grid */
#include <ditto/tuning.h>      /* which algorithms collectives use */
#include <ditto/variable.h>    /* mirrored and sync-on-read variables */
#include <ditto/rows.h>        /* single rows of a variable */
#include <ditto/parameter.h>   /* variables that workers of a parameter server read and write */
#include <ditto/optimizer.h>   /* many variables updated from gradients */
#include <ditto/context.h>     /* which strategy and context a thread is in */
#include <ditto/value.h>       /* distributed values: one tensor per replica */
#include <ditto/run.h>         /* functions with arguments and results */
#include <ditto/reduce.h>      /* values reduced, gathered and copied */
#include <ditto/merge.h>       /* merge_call and update */
#include <ditto/loss.h>        /* losses that add up to a mean */
#include <ditto/random.h>      /* random numbers from seeds and positions */
#include <ditto/trace.h>       /* where time is spent */
#include <ditto/dataset.h>     /* lists of rows */
#include <ditto/source.h>      /* datasets from memory, functions and files */
#include <ditto/transform.h>   /* datasets made from datasets */
#include <ditto/queue.h>       /* a bounded queue for other uses */
#include <ditto/distribute.h>  /* per-replica batches */
#include <ditto/coordinator.h> /* functions for workers that do not wait for each other */
#include <ditto/cluster.h>     /* several hosts */

#endif
