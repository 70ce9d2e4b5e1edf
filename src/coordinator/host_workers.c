/* src/coordinator/host_workers.c - workers of other hosts, on host 0. See hosts.h. */
#include "base/errors/status.h"
#include "base/waiting/futex.h"
#include "coordinator/encoded.h"
#include "coordinator/hosts.h"
#include "hosts/life_line.h"
#include "replicas/machine/affinity.h"
#include "replicas/machine/thread.h"
#include "sync/hosts/hosts.h"
#include "vars/parameters/over_hosts.h"

#include <stdlib.h>
#include <string.h>

/* What the deputy's futex word says. */
enum { REPLY_NONE, REPLY_AWAITED, REPLY_HERE, REPLY_LOST };

/* How often a thread that waits for another host looks whether it is lost. */
#define LOOK_NS UINT64_C(100000000)

/* -- which workers -- */

static uint32_t workers_of_host(const ditto_strategy *strategy, uint32_t host)
{
    const uint32_t *start = strategy->hosts->cluster->ranges->start;
    return (start[host + 1] - start[host]) / strategy->workers->replicas;
}

uint32_t dti_first_worker(const ditto_strategy *strategy)
{
    uint32_t own = dti_hosts_own(strategy->hosts);
    return strategy->hosts->cluster->ranges->start[own] / strategy->workers->replicas;
}

uint32_t dti_num_workers(const ditto_strategy *strategy)
{
    uint32_t count = 0;
    if (strategy->hosts == NULL)
        return strategy->workers->count;
    for (uint32_t h = 0; h < dti_hosts_count(strategy->hosts); h++)
        count += workers_of_host(strategy, h);
    return count;
}

void dti_other_hosts_assign(struct ditto_coordinator *c)
{
    uint32_t i = c->workers->count;
    for (uint32_t h = 1; h < dti_hosts_count(c->strategy->hosts); h++)
        for (uint32_t end = i + workers_of_host(c->strategy, h); i < end; i++)
            c->worker[i].host = h;
}

/* -- mail, on the thread of the postman -- */

/* Gives a deputy what it waits for. Returns false if it does not wait any more. */
static bool wake_deputy(struct dti_function_worker *w, uint32_t word)
{
    uint32_t awaited = REPLY_AWAITED;
    /* release: pairs with the acquire in await_reply. */
    if (!atomic_compare_exchange_strong_explicit(&w->reply, &awaited, word, memory_order_release,
                                                 memory_order_relaxed))
        return false;
    dti_futex_wake(&w->reply);
    return true;
}

static bool is_awaited(const struct dti_function_worker *w)
{
    /* acquire: pairs with the release of the deputy, which has read the reply before. */
    return atomic_load_explicit(&w->reply, memory_order_acquire) == REPLY_AWAITED;
}

static void deliver(void *context, uint32_t from, const struct dti_mail *mail)
{
    struct ditto_coordinator *c = context;
    struct dti_function_worker *w = mail->id < c->count ? &c->worker[mail->id] : NULL;
    bool is_reply = mail->kind == DTI_MAIL_RESULT || mail->kind == DTI_MAIL_BEGUN;
    if (!is_reply || w == NULL || w->host != from || !is_awaited(w)) {
        free(mail->data); /* no host of this version sends it */
        return;
    }
    w->reply_data = mail->data;
    w->reply_bytes = mail->bytes;
    if (!wake_deputy(w, REPLY_HERE))
        free(mail->data);
}

static void lose(void *context, uint32_t host)
{
    struct ditto_coordinator *c = context;
    for (uint32_t i = c->workers->count; i < c->count; i++)
        if (c->worker[i].host == host)
            (void)wake_deputy(&c->worker[i], REPLY_LOST);
}

/* -- deputies -- */

static bool is_lost(const struct dti_function_worker *w)
{
    return dti_questions_have_lost(w->coordinator->strategy->workers->questions, w->host);
}

/* The worker may be retired meanwhile, because its function is late. Then nobody waits for the result. */
static bool is_retired(const struct dti_function_worker *w)
{
    return (atomic_load_explicit(&w->state, memory_order_relaxed) & 3) == DTI_WORKER_RETIRED;
}

static bool await_reply(struct dti_function_worker *w)
{
    uint32_t word;
    /* acquire: pairs with the release in wake_deputy. */
    while ((word = atomic_load_explicit(&w->reply, memory_order_acquire)) == REPLY_AWAITED) {
        /* A host that was lost before this function was sent is not told again. */
        bool ends = is_retired(w) || is_lost(w);
        /* relaxed: the data of a reply that came after all is used when the loop finds it. */
        if (ends && atomic_compare_exchange_strong_explicit(&w->reply, &word, REPLY_NONE,
                                                            memory_order_relaxed, memory_order_relaxed))
            return false;
        dti_futex_sleep(&w->reply, REPLY_AWAITED, dti_now_ns() + LOOK_NS);
    }
    return word == REPLY_HERE;
}

static ditto_status fail_lost(const struct dti_function_worker *w)
{
    if (dti_questions_have_resigned(w->coordinator->strategy->workers->questions))
        return dti_questions_fail_resigned();
    return DTI_FAIL(DITTO_ERR_LOST, "host %u (%s) of worker %u is gone", w->host,
                    ditto_cluster_host_name(w->coordinator->strategy->hosts->cluster, w->host), w->index);
}

ditto_status dti_run_on_host(struct dti_function_worker *w, const struct dti_scheduled *item, bool *has_lost,
                             struct dti_copied **result)
{
    const ditto_cluster *cluster = w->coordinator->strategy->hosts->cluster;
    struct dti_bytes bytes = { 0 };
    dti_encode_function(&bytes, item->function->name, item->remote != NULL, item->arguments);
    if (bytes.failed) {
        dti_bytes_free(&bytes);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to send the arguments of \"%s\" to host %u (%s)",
                        item->function->name, w->host, ditto_cluster_host_name(cluster, w->host));
    }
    atomic_store_explicit(&w->reply, REPLY_AWAITED, memory_order_release); /* pairs with is_awaited */
    ditto_status status = dti_questions_send(
        w->coordinator->strategy->workers->questions, w->host,
        &(struct dti_mail){
            .kind = DTI_MAIL_FUNCTION, .id = w->index, .data = bytes.data, .bytes = bytes.length });
    if (status == DITTO_OK && !await_reply(w)) {
        *has_lost = true;
        status = fail_lost(w);
    } else if (status == DITTO_OK && w->reply_data == NULL) {
        status = DTI_FAIL(DITTO_ERR_NO_MEMORY,
                          "no memory for the result that host %u (%s) has sent, %zu bytes", w->host,
                          ditto_cluster_host_name(cluster, w->host), w->reply_bytes);
    } else if (status == DITTO_OK) {
        status = dti_decode_result(w->reply_data, w->reply_bytes, w->host,
                                   ditto_cluster_host_name(cluster, w->host), result);
        free(w->reply_data);
    }
    atomic_store_explicit(&w->reply, REPLY_NONE, memory_order_release);
    return status;
}

/* -- beginning and ending -- */

/* What all hosts agree on, for messages. */
#define SERVING "ditto_coordinator_create on host 0 and ditto_serve on the others"

/* Binds the calling thread to the PU that is set aside. `before` is for dti_affinity_restore. */
static ditto_status bind_to_server_pu(const struct dti_workers *w, struct dti_mask *before)
{
    struct dti_mask own;
    dti_mask_clear(&own);
    dti_mask_add(&own, w->server_pu);
    DTI_TRY(dti_affinity_get(before));
    if (dti_pin_try_to(&own))
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_SYSTEM,
                    "no thread can be bound to server_pu %u any more: the cpuset of the process has changed, "
                    "or the PU is offline. Give another one, or none",
                    w->server_pu);
}

static ditto_status check_server_pu(const struct dti_workers *w)
{
    struct dti_mask before;
    if (!w->has_server_pu)
        return DITTO_OK;
    DTI_TRY(bind_to_server_pu(w, &before));
    dti_affinity_restore(&before);
    return DITTO_OK;
}

ditto_status dti_other_hosts_agree(const ditto_strategy *strategy, ditto_status status)
{
    struct dti_hosts *hosts = strategy->hosts;
    struct dti_parameters_digest own = { 0 };
    if (status == DITTO_OK)
        status = dti_post_check(hosts->cluster);
    if (status == DITTO_OK)
        status = check_server_pu(strategy->workers);
    if (status == DITTO_OK)
        status = dti_parameters_digest(strategy->base.team, &own);
    DTI_TRY(dti_hosts_agree_with(hosts, SERVING, status, &own, sizeof own));
    struct dti_parameters_digest digests[DTI_MAX_HOSTS]; /* so that all hosts come to the same result */
    for (uint32_t h = 0; h < dti_hosts_count(hosts); h++) {
        size_t bytes;
        memcpy(&digests[h], dti_hosts_note(hosts, h, &bytes), sizeof digests[h]);
    }
    return dti_parameters_compare(strategy->base.team, hosts->cluster, digests);
}

/* Says to host 0 that the workers of this host can be sent functions. */
static ditto_status say_begun(struct ditto_coordinator *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        DTI_TRY(dti_questions_send(c->questions, 0,
                                   &(struct dti_mail){ .kind = DTI_MAIL_BEGUN, .id = c->first + i }));
    return DITTO_OK;
}

/* Opens the questions, whose postman gets the PU that is set aside for it. */
static ditto_status open_questions(struct ditto_coordinator *c, const struct dti_questions_user *user)
{
    const struct dti_workers *w = c->strategy->workers;
    struct dti_mask before;
    if (!w->has_server_pu)
        return dti_questions_open(w->questions, user);
    DTI_TRY(bind_to_server_pu(w, &before));
    ditto_status status = dti_questions_open(w->questions, user);
    dti_affinity_restore(&before);
    if (status == DITTO_OK)
        dti_load_add(w->server_pu);
    return status;
}

ditto_status dti_other_hosts_open(struct ditto_coordinator *c,
                                  void (*deliver_mail)(void *context, uint32_t from,
                                                       const struct dti_mail *mail),
                                  void (*lose_host)(void *context, uint32_t host), void *context)
{
    const struct dti_questions_user user = { .deliver = deliver_mail,
                                             .lose = lose_host,
                                             .context = context,
                                             .answer = dti_parameters_answer,
                                             .answer_context = c->strategy->base.team,
                                             .polls = c->strategy->workers->has_server_pu };
    ditto_status status = open_questions(c, &user);
    if (status == DITTO_OK) {
        c->questions = c->strategy->workers->questions;
        status = c->serves ? say_begun(c) : DITTO_OK;
    }
    /* The others have begun, and wait for this host. For them it is lost. */
    if (status != DITTO_OK)
        dti_life_line_resign(c->strategy->hosts->cluster);
    return status;
}

/* Returns a worker whose host is lost, or NULL. */
static const struct dti_function_worker *find_lost(const struct ditto_coordinator *c)
{
    uint32_t i = c->workers->count;
    while (i < c->count && !is_lost(&c->worker[i]))
        i++;
    return i < c->count ? &c->worker[i] : NULL;
}

/* Waits until the host of a worker has begun. If another host is lost, this one may not begin. */
static ditto_status await_begun(const struct ditto_coordinator *c, struct dti_function_worker *w,
                                uint64_t limit_ns)
{
    uint32_t word;
    /* acquire: pairs with the release in wake_deputy. */
    while ((word = atomic_load_explicit(&w->reply, memory_order_acquire)) == REPLY_AWAITED) {
        const struct dti_function_worker *lost = find_lost(c);
        uint64_t now_ns = dti_now_ns();
        if (lost != NULL)
            return fail_lost(lost);
        if (now_ns >= limit_ns)
            return DTI_FAIL(DITTO_ERR_TIMED_OUT, "host %u (%s) has not begun to serve for %u ms (timeout_ms)",
                            w->host, ditto_cluster_host_name(c->strategy->hosts->cluster, w->host),
                            c->timeout_ms);
        dti_futex_sleep(&w->reply, REPLY_AWAITED, now_ns + LOOK_NS);
    }
    atomic_store_explicit(&w->reply, REPLY_NONE, memory_order_release); /* pairs with is_awaited */
    return word == REPLY_HERE ? DITTO_OK : fail_lost(w);
}

static ditto_status await_all_begun(struct ditto_coordinator *c)
{
    struct dti_deadline deadline = { .timeout_ms = c->timeout_ms };
    uint64_t limit_ns = dti_deadline_at(&deadline);
    for (uint32_t i = c->workers->count; i < c->count; i++)
        DTI_TRY(await_begun(c, &c->worker[i], limit_ns));
    return DITTO_OK;
}

ditto_status dti_other_hosts_begin(struct ditto_coordinator *c, ditto_status status)
{
    DTI_TRY(dti_other_hosts_agree(c->strategy, status));
    for (uint32_t i = c->workers->count; i < c->count; i++)
        atomic_store_explicit(&c->worker[i].reply, REPLY_AWAITED, memory_order_relaxed); /* no postman yet */
    DTI_TRY(dti_other_hosts_open(c, deliver, lose, c));
    status = await_all_begun(c);
    if (status == DITTO_OK)
        return DITTO_OK;
    ditto_error kept = *dti_error_get();
    dti_life_line_resign(c->strategy->hosts->cluster); /* the others, of which some may serve, return LOST */
    (void)dti_other_hosts_end(c);
    dti_error_set(&kept);
    return status;
}

ditto_status dti_other_hosts_end(struct ditto_coordinator *c)
{
    const struct dti_mail end = { .kind = DTI_MAIL_END };
    ditto_status status = DITTO_OK;
    for (uint32_t h = 1; !c->serves && h < dti_hosts_count(c->strategy->hosts); h++)
        if (dti_questions_send(c->questions, h, &end) != DITTO_OK)
            status = DITTO_ERR_NO_MEMORY;
    ditto_status closed = dti_questions_close(c->questions, c->timeout_ms);
    if (c->workers->has_server_pu)
        dti_load_remove(c->workers->server_pu);
    c->questions = NULL;
    return status != DITTO_OK ? status : closed;
}
