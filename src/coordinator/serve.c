/* src/coordinator/serve.c - a host other than 0, whose workers execute what host 0 sends. See hosts.h. */
#include "base/errors/status.h"
#include "base/errors/user_call.h"
#include "base/waiting/futex.h"
#include "coordinator/encoded.h"
#include "coordinator/hosts.h"
#include "coordinator/remote.h"
#include "sync/hosts/hosts.h"
#include "values/values.h"

#include <stdlib.h>
#include <time.h>

/* What a host that serves waits for. */
enum { SERVING, END_CAME, HOST_0_LOST };

struct serving {
    struct ditto_coordinator *coordinator;
    _Atomic uint32_t state;
};

/* -- results -- */

static ditto_status try_to_send(struct ditto_coordinator *c, uint32_t worker, ditto_status status,
                                const struct dti_copied *result)
{
    struct dti_bytes bytes = { 0 };
    dti_encode_result(&bytes, status, result);
    if (bytes.failed) {
        dti_bytes_free(&bytes);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to send a result to host 0");
    }
    return dti_questions_send(
        c->strategy->workers->questions, 0,
        &(struct dti_mail){
            .kind = DTI_MAIL_RESULT, .id = worker, .data = bytes.data, .bytes = bytes.length });
}

/* If a result cannot be sent, host 0 gets the error instead. It waits for one or the other, so this is tried
 * until there is memory for a short message. */
static void send_result(struct ditto_coordinator *c, uint32_t worker, ditto_status status,
                        const struct dti_copied *result)
{
    const struct timespec millisecond = { 0, 1000000 };
    ditto_status sent = try_to_send(c, worker, status, result);
    while (sent == DITTO_ERR_NO_MEMORY || sent == DITTO_ERR_RANGE) {
        sent = try_to_send(c, worker, sent, NULL);
        if (sent != DITTO_OK)
            nanosleep(&millisecond, NULL);
    }
}

/* The function has ended, or was cancelled because this host ends. The caller has a reference of its own. */
static void send_ended(struct ditto_remote *remote)
{
    ditto_status status = remote->status;
    if (atomic_load_explicit(&remote->state, memory_order_relaxed) == DTI_REMOTE_CANCELLED)
        status = DTI_FAIL(DITTO_ERR_CANCELLED, "cancelled, because its host ends");
    else if (status < 0)
        dti_error_set(&remote->error);
    send_result(remote->coordinator, remote->worker, status, remote->result);
    dti_remote_drop(remote); /* the handle */
}

/* -- functions, on the thread of the postman -- */

static ditto_status push(struct ditto_coordinator *c, uint32_t worker, const struct dti_mail *mail)
{
    char name[DITTO_MAX_FUNCTION_NAME_BYTES + 1];
    struct dti_scheduled item = { .attempts = 0 };
    bool wanted;
    uint64_t ticket;
    if (mail->data == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the arguments of a function, %zu bytes",
                        mail->bytes);
    DTI_TRY(dti_decode_function(mail->data, mail->bytes, name, &wanted, &item.arguments));
    item.function = dti_function_find(name);
    ditto_status status = item.function != NULL ? dti_remote_make(c->strategy, c, &item.remote)
                                                : dti_fail_no_function(name);
    if (status != DITTO_OK) {
        dti_copied_drop(item.arguments);
        return status;
    }
    item.remote->worker = worker;
    item.remote->is_wanted = wanted;
    item.remote->ended = send_ended;
    if (dti_function_queue_push(&c->queue, &item, &ticket)) {
        dti_wake_worker(c);
        return DITTO_OK;
    }
    item.remote->ended = NULL;
    dti_remote_drop(item.remote); /* the handle */
    dti_scheduled_drop(&item);
    return DTI_FAIL(DITTO_ERR_BUSY, "the queue of the host is full: host 0 has sent more than it may");
}

static void end_serving(struct serving *s, uint32_t state)
{
    uint32_t serving = SERVING;
    /* release: pairs with the acquire in await_end. */
    atomic_compare_exchange_strong_explicit(&s->state, &serving, state, memory_order_release,
                                            memory_order_relaxed);
    dti_futex_wake(&s->state);
}

static void deliver(void *context, uint32_t from, const struct dti_mail *mail)
{
    struct serving *s = context;
    ditto_status status;
    if (mail->kind == DTI_MAIL_END && from == 0)
        end_serving(s, END_CAME);
    if (mail->kind == DTI_MAIL_FUNCTION && from == 0 &&
        (status = push(s->coordinator, (uint32_t)mail->id, mail)) != DITTO_OK)
        send_result(s->coordinator, (uint32_t)mail->id, status, NULL);
    free(mail->data);
}

static void lose(void *context, uint32_t host)
{
    if (host == 0)
        end_serving(context, HOST_0_LOST);
}

/* -- preparing -- */

static DTI_GUARDED ditto_status call_prepare(struct ditto_coordinator *c, ditto_serve_fn prepare, void *user)
{
    uint32_t serial = dti_error_serial;
    DTI_GUARD("the function of ditto_serve");
    ditto_status status = prepare(c, user);
    DTI_GUARD_END();
    return dti_function_status(status, serial, "the function of ditto_serve");
}

/* -- serving -- */

static uint32_t await_end(struct serving *s)
{
    uint32_t state;
    /* acquire: pairs with the release in end_serving. */
    while ((state = atomic_load_explicit(&s->state, memory_order_acquire)) == SERVING)
        dti_futex_sleep(&s->state, SERVING, DTI_NEVER);
    return state;
}

/* Opens the questions, and returns when host 0 has ended or is lost. */
static ditto_status serve(struct serving *s)
{
    struct ditto_coordinator *c = s->coordinator;
    DTI_TRY(dti_other_hosts_open(c, deliver, lose, s));
    if (await_end(s) == END_CAME)
        return DITTO_OK;
    if (dti_questions_have_resigned(c->questions))
        return dti_questions_fail_resigned();
    return DTI_FAIL(DITTO_ERR_LOST, "host 0 (%s), which has the coordinator, is gone",
                    ditto_cluster_host_name(c->strategy->hosts->cluster, 0));
}

/* Destroys the coordinator of this host, whose questions are closed when all functions have ended. */
static ditto_status end(struct serving *s, ditto_status status)
{
    ditto_error kept = *dti_error_get();
    struct ditto_coordinator *c = s->coordinator;
    ditto_status destroyed = dti_coordinator_destroy(c);
    if (status == DITTO_OK)
        return destroyed;
    dti_error_set(&kept);
    return status;
}

ditto_status dti_serve(ditto_strategy *strategy, ditto_serve_fn prepare, void *user)
{
    ditto_coordinator_options options = DITTO_COORDINATOR_OPTIONS_INIT;
    struct serving s = { .coordinator = NULL };
    options.max_attempts = 1;
    options.queue_capacity = 2 * strategy->workers->count;
    ditto_status status = dti_coordinator_create(strategy, &options, true, &s.coordinator);
    if (status == DITTO_ERR_BUSY)
        return status; /* another ditto_serve has the mail of this host, so the others cannot be asked */
    if (status == DITTO_OK && prepare != NULL)
        status = call_prepare(s.coordinator, prepare, user);
    status = dti_other_hosts_agree(strategy, status);
    if (status == DITTO_OK && s.coordinator != NULL) /* which it has then */
        status = serve(&s);
    return s.coordinator != NULL ? end(&s, status) : status;
}
