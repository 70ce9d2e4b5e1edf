/* src/sync/hosts/failure_notices.h - stops the run of this host when another host has failed or is lost.
 *
 * The headers tell every host of a failure (hosts/header.h), but only the driver reads them, and only in a
 * collective or when the run ends. Replicas may wait for each other or for input meanwhile, or compute.
 * So a host whose run is stopped by an error of its own says so at once over the life line. On the other
 * hosts, the thread of the life line stops the run and all runs inside it, and every replica sees it in its
 * next call of ditto, or where it waits. A merge function cannot undo this. Which error all hosts return is
 * still agreed on with the last headers: a host that was stopped by a notice has no error of its own, and
 * names the host that sent the notice as the origin.
 *
 * A notice carries the number of the sender's epoch. A failure ends the epoch, so a notice concerns one run
 * at most: the run that is active, or else the next one of that epoch, which then does not begin. A notice
 * that comes after the end of its epoch is dropped. Notices only save time. A host without a life line, or
 * one that misses a notice, learns of the failure from the headers.
 *
 * Invariants  I1  `is_running`, `has_failed`, `failed_epoch`, `failed_host` and `is_told` are read and
 *                 written with `lock` held.
 *             I2  The thread of the life line stops a run with `lock` held. So after dti_hosts_run_ended no
 *                 notice stops anything before the next run, and the caller clears the stop after that.
 *             I3  A host sends a notice only about an error of its own. After a notice has stopped its runs,
 *                 no later error of them counts, because the stop stays until the outermost run has ended.
 *                 So the host that a notice names failed before, and origins form no circle.
 * Edges       none but those of the lock, and of the stop word (base/waiting/stop.h)
 * Model       tests/model/failure_notices.pml */
#ifndef DTI_FAILURE_NOTICES_H
#define DTI_FAILURE_NOTICES_H

#include <ditto/status.h>

#include "cluster/life_line.h"

#include <pthread.h>

struct dti_hosts;

struct dti_failure_notices {
    struct dti_listener listener; /* first */
    struct dti_hosts *hosts;
    pthread_mutex_t lock;

    /* Replicas execute a function, and a failure of it ends the epoch. */
    bool is_running;

    /* Host `failed_host` has failed in epoch `failed_epoch`. */
    bool has_failed;
    uint32_t failed_epoch;
    uint32_t failed_host;

    /* The other hosts know of the error that ends, or will end, the present run. */
    bool is_told;
};

/* -- The thread that may drive the wire -- */

/* Begin and end to listen. There is no run. */
void dti_failure_notices_begin(struct dti_hosts *hosts);
void dti_failure_notices_end(struct dti_hosts *hosts);

/* Called before the replicas execute a function. Fails with LOST if a host is lost, and with PEER_STOPPED if
 * another host has failed in this epoch. Then the function must not be executed. `hosts` may be NULL, here
 * and in dti_hosts_run_ended, if there is one host. */
ditto_status dti_hosts_run_begins(struct dti_hosts *hosts);

/* Called when the replicas have returned from it with a status, before its stop is cleared. Returns the
 * status, or PEER_STOPPED if another host has failed meanwhile. */
ditto_status dti_hosts_run_ended(struct dti_hosts *hosts, ditto_status status);

/* Called before the driver stops the run with an error that all hosts have from the headers. */
void dti_hosts_error_is_known(struct dti_hosts *hosts);

#endif
