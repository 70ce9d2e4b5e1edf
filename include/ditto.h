/* include/ditto.h - replicas, variables, collectives and input for CPU-only programs on one multi-socket host.
 *
 * ditto brings the model of TensorFlow's tf.distribute.Strategy to plain C. A *strategy* owns *replicas*: threads that
 * are each pinned to a core, allocate from their own NUMA node, and run the same function on different data. Inside
 * that function, in *replica context*, a replica has a handle `self` and meets the others in *collectives*. Outside, in
 * *cross-replica context*, ordinary code sees all replicas at once. *Variables* exist once per replica (or per NUMA
 * node) and stay consistent: mirrored ones when they are written, sync-on-read ones when they are read. *Datasets* are
 * cut into per-replica batches, which producers put into each replica's queue ahead of time.
 *
 *     static ditto_status mean_square(ditto_replica *self, void *unused)
 *     {
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
 *         ditto_strategy_destroy(strategy);
 *     }
 *
 * Names tell the context: ditto_<object>_<verb>(object, ...) is a cross-replica call, ditto_<verb>(self, ...) a replica
 * call. Every call returns a ditto_status; ditto_last_error() explains the last one that was an error. Nobody hangs: a
 * replica that fails, diverges or does not come ends the run with an error that names it. Every replica gets the same
 * bits, in every run, wherever it is placed.
 *
 * The headers, in reading order: */
#ifndef DITTO_H
#define DITTO_H

#include <ditto/api.h>        /* how the headers are written; the version */
#include <ditto/status.h>     /* what calls return, and the last error */
#include <ditto/dtype.h>      /* types of elements */
#include <ditto/tensor.h>     /* views of arrays */
#include <ditto/topology.h>   /* the machine */
#include <ditto/limits.h>     /* what the process may do with it */
#include <ditto/placement.h>  /* which PUs each replica gets */
#include <ditto/strategy.h>   /* create, scope, run, describe, destroy */
#include <ditto/replica.h>    /* id, memory, failing */
#include <ditto/device.h>     /* replicas of several PUs: loops and functions on their devices */
#include <ditto/collective.h> /* barrier, all-reduce, reduce, broadcast, reduce-scatter, all-gather */
#include <ditto/pending.h>    /* the same, started now and waited for later */
#include <ditto/slices.h>     /* all-reduce of sparse rows */
#include <ditto/tuning.h>     /* how collectives are chosen; what everyone is waiting in */
#include <ditto/variable.h>   /* mirrored and sync-on-read variables */
#include <ditto/rows.h>       /* single rows of a variable */
#include <ditto/optimizer.h>  /* many variables updated from gradients */
#include <ditto/context.h>    /* which strategy and context a thread is in */
#include <ditto/value.h>      /* distributed values: one tensor per replica */
#include <ditto/run.h>        /* functions with arguments and results */
#include <ditto/reduce.h>     /* values reduced and gathered, and sent to places */
#include <ditto/merge.h>      /* merge_call and update */
#include <ditto/loss.h>       /* losses that add up to a mean */
#include <ditto/random.h>     /* random numbers of seeds and places */
#include <ditto/trace.h>      /* where the time goes */
#include <ditto/dataset.h>    /* lists of rows */
#include <ditto/source.h>     /* where they come from */
#include <ditto/transform.h>  /* datasets made from datasets */
#include <ditto/queue.h>      /* a bounded queue by itself */
#include <ditto/distribute.h> /* per-replica batches */

#endif
