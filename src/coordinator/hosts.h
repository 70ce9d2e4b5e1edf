/* src/coordinator/hosts.h - workers on several hosts.
 *
 * Host 0 has the coordinator. For each worker of another host it has a thread, the *deputy* of this worker,
 * which takes functions from the queue as a worker does, sends each to the host, and waits for its result. So
 * a worker of another host is one like any other for the queue: it is late, retired and cancelled in the same
 * way. If its host is lost, the deputy retires its worker itself, and its function is executed by another
 * one.
 *
 * Each other host serves (ditto_serve): it has a coordinator of its own, which is told by mail what to
 * execute (hosts/mail.h), and sends the results back. It begins a function at once, because host 0 sends at
 * most as many functions at a time as the host has workers.
 *
 * Hosts agree that they begin in an exchange of headers (hosts/header.h), which fails on the hosts that are
 * still in it if another one is lost. So host 0 waits until each other host says that it has begun. After
 * that, the loss of one leaves the others working.
 *
 *     kind       from   id                    data
 *     BEGUN      others number of the worker  none: the host has begun. Once for each of its workers
 *     FUNCTION   0      number of the worker  the function (encoded.h)
 *     RESULT     others the same              the result
 *     END        0      0                     none: no more functions will come */
#ifndef DTI_COORDINATOR_HOSTS_H
#define DTI_COORDINATOR_HOSTS_H

#include "coordinator/coordinator.h"
#include "hosts/questions.h"

enum dti_coordinator_mail { DTI_MAIL_BEGUN = 1, DTI_MAIL_FUNCTION, DTI_MAIL_RESULT, DTI_MAIL_END };

/* -- host_workers.c: on host 0 -- */

/* Returns the number of workers of all hosts. */
uint32_t dti_num_workers(const ditto_strategy *strategy);

/* Returns the number of the first worker of this host. */
uint32_t dti_first_worker(const ditto_strategy *strategy);

/* Sets which hosts the workers from c->workers->count on belong to. */
void dti_other_hosts_assign(struct ditto_coordinator *c);

/* Agrees with dti_serve on the other hosts about `status`, which is that of this host, opens the questions,
 * and waits until all other hosts have begun. Returns LOST or TIMED_OUT if one of them does not begin. */
ditto_status dti_other_hosts_begin(struct ditto_coordinator *c, ditto_status status);

/* Agrees with all hosts that they begin. `status` is that of this host. Returns INVALID if hosts have
 * different variables or optimizers. */
ditto_status dti_other_hosts_agree(const ditto_strategy *strategy, ditto_status status);

/* Opens the questions. `deliver` and `lose` get mail that is for the coordinator, with the context. A host
 * that serves says that it has begun. */
ditto_status dti_other_hosts_open(struct ditto_coordinator *c,
                                  void (*deliver)(void *context, uint32_t from, const struct dti_mail *mail),
                                  void (*lose)(void *context, uint32_t host), void *context);

/* Closes the questions when all functions have ended. Host 0 first tells the others that no more come. */
ditto_status dti_other_hosts_end(struct ditto_coordinator *c);

/* The thread of a deputy. */
void *dti_deputy_main(void *worker);

/* Executes a function on the worker's host. Returns LOST if the host is lost, with *has_lost set. */
ditto_status dti_run_on_host(struct dti_function_worker *w, const struct dti_scheduled *item, bool *has_lost,
                             struct dti_copied **result);

/* -- serve.c: on the other hosts -- */
ditto_status dti_serve(ditto_strategy *strategy, ditto_serve_fn prepare, void *user);

#endif
