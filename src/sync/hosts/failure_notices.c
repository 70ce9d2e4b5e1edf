/* src/sync/hosts/failure_notices.c - tells other hosts of failures at once. See failure_notices.h. */
#include "sync/hosts/failure_notices.h"
#include "base/errors/status.h"
#include "base/text/text.h"
#include "replicas/team/stopping.h"
#include "replicas/team/team.h"
#include "sync/hosts/hosts.h"

/* The words of a notice. */
enum { EPOCH, STATUS };

static ditto_status fail_other(const struct dti_hosts *hosts, uint32_t host, ditto_status status)
{
    char name[DTI_HOST_NAME_BYTES + 64];
    struct dti_text text = { name, sizeof name, 0 };
    dti_describe_host(hosts->cluster, host, &text);
    return DTI_FAIL(status, "%s has failed with %s", name, ditto_status_name(status));
}

/* -- the thread of the life line -- */

/* A host is lost. The error is in the record of this thread. */
static void hear_loss(void *argument)
{
    struct dti_hosts *hosts = argument;
    pthread_mutex_lock(&hosts->failures.lock);
    if (hosts->failures.is_running)
        dti_team_stop_all(hosts->team);
    pthread_mutex_unlock(&hosts->failures.lock);
}

static void hear_failure(struct dti_listener *listener, const struct dti_notice *notice)
{
    struct dti_failure_notices *f = (struct dti_failure_notices *)listener;
    uint32_t epoch = (uint32_t)notice->word[EPOCH];
    pthread_mutex_lock(&f->lock);
    /* The sender may be one epoch ahead. Then no run is active here, because the sender has
     * the last header of this host. Older notices may come after that one, over another host. */
    bool is_old = (int32_t)(epoch - dti_cluster_epoch(f->hosts->cluster)) < 0;
    bool is_news = !f->has_failed || (int32_t)(epoch - f->failed_epoch) > 0;
    if (!is_old && is_news) {
        f->has_failed = true;
        f->failed_epoch = epoch;
        f->failed_host = notice->from;
        if (f->is_running) {
            int32_t status = (int32_t)notice->word[STATUS];
            (void)fail_other(f->hosts, notice->from,
                             dti_status_is_error(status) ? (ditto_status)status : DITTO_ERR_SYSTEM);
            dti_team_stop_all(f->hosts->team);
        }
    }
    pthread_mutex_unlock(&f->lock);
}

/* -- any thread: an error has ended the outermost run -- */

static void tell(void *argument, const ditto_error *error)
{
    struct dti_hosts *hosts = argument;
    struct dti_failure_notices *f = &hosts->failures;
    struct dti_notice notice = { .subject = DTI_SUBJECT_FAILURE,
                                 .word = { [STATUS] = (uint64_t)(int64_t)error->status } };
    pthread_mutex_lock(&f->lock);
    bool tells = f->is_running && !f->is_told;
    f->is_told |= tells;
    notice.word[EPOCH] = dti_cluster_epoch(hosts->cluster);
    pthread_mutex_unlock(&f->lock);
    if (tells)
        dti_life_line_tell(hosts->cluster, &notice);
}

/* -- the thread that may drive the wire -- */

void dti_failure_notices_begin(struct dti_hosts *hosts)
{
    struct dti_failure_notices *f = &hosts->failures;
    f->hosts = hosts;
    if (hosts->cluster->life_line == NULL)
        return;
    f->listener = (struct dti_listener){ .subject = DTI_SUBJECT_FAILURE, .hear = hear_failure };
    dti_team_set_stop_report(hosts->team, tell, hosts);
    dti_life_line_watch(hosts->cluster, hear_loss, hosts);
    dti_life_line_listen(hosts->cluster, &f->listener);
}

void dti_failure_notices_end(struct dti_hosts *hosts)
{
    struct dti_failure_notices *f = &hosts->failures;
    if (f->listener.hear == NULL || dti_cluster_is_forked(hosts->cluster))
        return;
    dti_life_line_ignore(hosts->cluster, &f->listener);
    dti_life_line_watch(hosts->cluster, NULL, NULL);
    f->listener.hear = NULL;
}

/* Returns true if another host has failed in this epoch. The lock is held. */
static bool has_failed(const struct dti_failure_notices *f)
{
    return f->has_failed && f->failed_epoch == dti_cluster_epoch(f->hosts->cluster);
}

ditto_status dti_hosts_run_begins(struct dti_hosts *hosts)
{
    if (hosts == NULL)
        return DITTO_OK;
    struct dti_failure_notices *f = &hosts->failures;
    /* In a child process there is no thread of the life line, which may have held the lock at the fork. */
    if (dti_cluster_is_forked(hosts->cluster))
        return dti_cluster_check_thread(hosts->cluster);
    pthread_mutex_lock(&f->lock);
    bool failed = has_failed(f), lost = dti_life_line_has_lost(hosts->cluster);
    uint32_t failed_host = f->failed_host;
    f->is_running = !failed && !lost;
    f->is_told = false;
    pthread_mutex_unlock(&f->lock);
    if (lost)
        return dti_life_line_fail(hosts->cluster);
    if (!failed)
        return DITTO_OK;
    dti_headers_take_over(hosts->cluster, failed_host);
    return fail_other(hosts, failed_host, DITTO_ERR_PEER_STOPPED);
}

ditto_status dti_hosts_run_ended(struct dti_hosts *hosts, ditto_status status)
{
    if (hosts == NULL || dti_cluster_is_forked(hosts->cluster))
        return status;
    struct dti_failure_notices *f = &hosts->failures;
    pthread_mutex_lock(&f->lock);
    /* The notice may have come when all replicas had returned already. */
    bool failed = has_failed(f), is_own = status < 0 && dti_team_stop_is_own(hosts->team);
    uint32_t failed_host = f->failed_host;
    f->is_running = f->is_told = false;
    pthread_mutex_unlock(&f->lock);
    if (!failed || is_own)
        return status;
    dti_headers_take_over(hosts->cluster, failed_host);
    return status < 0 ? status : fail_other(hosts, failed_host, DITTO_ERR_PEER_STOPPED);
}

void dti_hosts_error_is_known(struct dti_hosts *hosts)
{
    pthread_mutex_lock(&hosts->failures.lock);
    hosts->failures.is_told = true;
    pthread_mutex_unlock(&hosts->failures.lock);
}
