/* src/hosts/questions.c - sends questions and answers, and ends questions that get none. See questions.h. */
#include "hosts/pairs.h"
#include "base/errors/sent_error.h"
#include "base/errors/status.h"
#include "base/waiting/futex.h"

#include <stdlib.h>

ditto_status dti_questions_make(ditto_cluster *cluster, uint32_t timeout_ms, struct dti_questions **out)
{
    struct dti_questions *questions = calloc(1, sizeof *questions);
    bool *has_left = calloc(cluster->wire.num_hosts, sizeof *has_left);
    bool *sends_no_more = calloc(cluster->wire.num_hosts, sizeof *sends_no_more);
    if (questions == NULL || has_left == NULL || sends_no_more == NULL) {
        free(questions);
        free(has_left);
        free(sends_no_more);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for questions between %u hosts",
                        cluster->wire.num_hosts);
    }
    questions->cluster = cluster;
    questions->timeout_ms = timeout_ms;
    questions->has_left = has_left;
    questions->sends_no_more = sends_no_more;
    questions->held_end = &questions->held;
    pthread_mutex_init(&questions->changing_pair, NULL);
    pthread_mutex_init(&questions->lock, NULL);
    *out = questions;
    return DITTO_OK;
}

void dti_questions_free(struct dti_questions *questions)
{
    if (questions == NULL)
        return;
    dti_pairs_free(questions);
    pthread_mutex_destroy(&questions->changing_pair);
    pthread_mutex_destroy(&questions->lock);
    free(questions->has_left);
    free(questions->sends_no_more);
    free(questions);
}

/* -- sending -- */

ditto_status dti_questions_fail_closed(void)
{
    return DTI_FAIL(DITTO_ERR_CONTEXT, "other hosts answer only while there is a coordinator: from "
                                       "ditto_coordinator_create until ditto_coordinator_destroy on host 0");
}

ditto_status dti_questions_fail_left(const struct dti_questions *questions, uint32_t host)
{
    return DTI_FAIL(DITTO_ERR_CONTEXT, "host %u (%s) has ended ditto_serve, and answers no more", host,
                    ditto_cluster_host_name(questions->cluster, host));
}

ditto_status dti_questions_fail_resigned(void)
{
    return DTI_FAIL(
        DITTO_ERR_LOST,
        "this host has lost its connection with another one, or had no memory for a message. It is "
        "lost for the others: start it again");
}

ditto_status dti_questions_fail_lost(const struct dti_questions *questions, uint32_t host)
{
    if (dti_post_has_lost(questions->post, questions->cluster->wire.host))
        return dti_questions_fail_resigned();
    return DTI_FAIL(DITTO_ERR_LOST, "host %u (%s) is gone", host,
                    ditto_cluster_host_name(questions->cluster, host));
}

bool dti_questions_are_open(struct dti_questions *questions)
{
    pthread_mutex_lock(&questions->lock);
    bool is_open = questions->is_open;
    pthread_mutex_unlock(&questions->lock);
    return is_open;
}

bool dti_questions_have_lost(struct dti_questions *questions, uint32_t host)
{
    pthread_mutex_lock(&questions->lock);
    bool is_lost = !questions->is_open || dti_post_has_lost(questions->post, host);
    pthread_mutex_unlock(&questions->lock);
    return is_lost;
}

bool dti_questions_have_resigned(struct dti_questions *questions)
{
    pthread_mutex_lock(&questions->lock);
    bool have = questions->is_open && dti_post_has_lost(questions->post, questions->cluster->wire.host);
    pthread_mutex_unlock(&questions->lock);
    return have;
}

ditto_status dti_questions_send(struct dti_questions *questions, uint32_t to, const struct dti_mail *mail)
{
    /* The lock is held, so that the post is not closed meanwhile. */
    pthread_mutex_lock(&questions->lock);
    bool is_open = questions->is_open;
    ditto_status status = is_open ? dti_post_send(questions->post, to, mail) : DITTO_OK;
    pthread_mutex_unlock(&questions->lock);
    if (is_open)
        return status;
    free(mail->data);
    return dti_questions_fail_closed();
}

/* Adds the question to those that wait for an answer, and sends it. The caller has the lock. */
static ditto_status begin(struct dti_questions *questions, struct dti_asked_host *question,
                          struct dti_bytes *request)
{
    if (!questions->is_open)
        return dti_questions_fail_closed();
    if (dti_post_has_lost(questions->post, question->first))
        return dti_questions_fail_lost(questions, question->first);
    if (questions->has_left[question->first])
        return dti_questions_fail_left(questions, question->first);
    question->id = questions->asked++;
    const struct dti_mail mail = {
        .kind = DTI_MAIL_QUESTION, .id = question->id, .data = request->data, .bytes = request->length
    };
    request->data = NULL; /* the post takes it over */
    DTI_TRY(dti_post_send(questions->post, question->first, &mail));
    question->next = questions->pending;
    questions->pending = question;
    return DITTO_OK;
}

ditto_status dti_question_check(const struct dti_bytes *request, uint32_t host)
{
    DTI_TRY(dti_bytes_status(request));
    if (request->length <= DITTO_WIRE_MOST_BYTES)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_RANGE,
                    "a request of %zu bytes to host %u: a message has at most %zu. Give variables fewer "
                    "elements, or the call fewer rows",
                    request->length, host, DITTO_WIRE_MOST_BYTES);
}

ditto_status dti_question_ask(struct dti_questions *questions, uint32_t host, struct dti_bytes *request,
                              struct dti_asked_host *question)
{
    struct dti_deadline deadline = { .timeout_ms = questions->timeout_ms };
    *question = (struct dti_asked_host){
        .first = host, .sent_to = host, .second = DTI_NO_HOST, .limit_ns = dti_deadline_at(&deadline)
    };
    ditto_status status = dti_question_check(request, host);
    if (status == DITTO_OK) {
        pthread_mutex_lock(&questions->lock);
        status = begin(questions, question, request);
        pthread_mutex_unlock(&questions->lock);
    }
    dti_bytes_free(request);
    return status;
}

/* -- waiting -- */

/* Takes a question out of the list. The caller has the lock. */
void dti_question_take_out(struct dti_questions *questions, const struct dti_asked_host *question)
{
    struct dti_asked_host **at = &questions->pending;
    while (*at != question)
        at = &(*at)->next;
    *at = question->next;
    if (question->changes)
        questions->changing--;
}

/* Ends a question, which is not in the list any more. The caller has the lock. */
void dti_question_finish(struct dti_asked_host *question, uint32_t state)
{
    /* release: pairs with the acquire in await, so that the caller sees the answer. */
    atomic_store_explicit(&question->state, state, memory_order_release);
    dti_futex_wake(&question->state);
}

/* Waits until the question ends, or takes it out of the list after the time limit. Returns false then. */
static bool await(struct dti_questions *questions, struct dti_asked_host *question)
{
    /* acquire: pairs with the release in finish. */
    while (atomic_load_explicit(&question->state, memory_order_acquire) == QUESTION_AWAITED &&
           dti_now_ns() < question->limit_ns)
        dti_futex_sleep(&question->state, QUESTION_AWAITED, question->limit_ns);
    /* The thread that ends the question has the lock until it has no more to do with it. */
    pthread_mutex_lock(&questions->lock);
    bool has_ended = atomic_load_explicit(&question->state, memory_order_relaxed) != QUESTION_AWAITED;
    if (!has_ended)
        dti_question_take_out(questions, question);
    pthread_mutex_unlock(&questions->lock);
    return has_ended;
}

static const char *name_of(const struct dti_questions *questions, uint32_t host)
{
    return ditto_cluster_host_name(questions->cluster, host);
}

static ditto_status fail_unanswered(struct dti_questions *questions, const struct dti_asked_host *question)
{
    uint32_t host = question->sent_to;
    if (question->failure == DITTO_ERR_NO_MEMORY)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY,
                        "no memory to ask host %u (%s), after the loss of the other host", host,
                        name_of(questions, host));
    pthread_mutex_lock(&questions->lock); /* while the post is read */
    bool is_open = questions->is_open, is_lost = is_open && dti_post_has_lost(questions->post, host);
    ditto_status status = is_lost   ? dti_questions_fail_lost(questions, host)
                          : is_open ? dti_questions_fail_left(questions, host)
                                    : dti_questions_fail_closed();
    pthread_mutex_unlock(&questions->lock);
    return status;
}

static ditto_status fail_late(const struct dti_questions *questions, const struct dti_asked_host *question)
{
    uint32_t host = question->sent_to, second = question->second;
    if (question->changes && host == question->first && second != DTI_NO_HOST)
        return DTI_FAIL(DITTO_ERR_TIMED_OUT,
                        "host %u (%s), or host %u (%s), which has its shards too, has not answered for %u ms "
                        "(timeout_ms)",
                        host, name_of(questions, host), second, name_of(questions, second),
                        questions->timeout_ms);
    return DTI_FAIL(DITTO_ERR_TIMED_OUT, "host %u (%s) has not answered for %u ms (timeout_ms)", host,
                    name_of(questions, host), questions->timeout_ms);
}

ditto_status dti_question_await(struct dti_questions *questions, struct dti_asked_host *question,
                                struct dti_bytes_reader *answer, void **data)
{
    *data = NULL;
    bool has_ended = await(questions, question);
    free(question->request);
    question->request = NULL;
    if (!has_ended)
        return fail_late(questions, question);
    if (atomic_load_explicit(&question->state, memory_order_relaxed) == QUESTION_LOST)
        return fail_unanswered(questions, question);
    if (question->data == NULL && question->bytes != 0)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the answer of host %u (%s), %zu bytes",
                        question->sent_to, name_of(questions, question->sent_to), question->bytes);
    *data = question->data;
    *answer = (struct dti_bytes_reader){ .at = question->data,
                                         .end = (const char *)question->data + question->bytes };
    return dti_bytes_get_status(answer, question->sent_to, name_of(questions, question->sent_to));
}

/* Ends all questions that a host would answer, or all questions if host is DTI_NO_HOST. If it is lost, those
 * to a pair go on. The caller has the lock. */
static void end_unanswered(struct dti_questions *questions, uint32_t host, bool is_lost)
{
    for (struct dti_asked_host **at = &questions->pending, *question; (question = *at) != NULL;) {
        bool is_awaited = host == DTI_NO_HOST || question->first == host || question->second == host;
        if (!is_awaited || (is_lost && question->second != DTI_NO_HOST)) {
            at = &question->next;
            continue;
        }
        if (host != DTI_NO_HOST)
            question->sent_to = host; /* for the message */
        dti_question_take_out(questions, question);
        dti_question_finish(question, QUESTION_LOST);
    }
}

/* -- the thread of the postman -- */

ditto_status dti_question_execute(struct dti_questions *questions, const struct dti_mail *request,
                                  struct dti_bytes *bytes)
{
    dti_bytes_put_status(bytes, DITTO_OK);
    DTI_TRY(dti_bytes_status(bytes)); /* before anything is changed */
    if (request->data == NULL && request->bytes != 0)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a request of %zu bytes", request->bytes);
    DTI_TRY(questions->user.answer(questions->user.answer_context, request->data, request->bytes, bytes));
    DTI_TRY(dti_bytes_status(bytes));
    if (bytes->length <= DITTO_WIRE_MOST_BYTES)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_RANGE,
                    "an answer of %zu bytes: a message has at most %zu. Give variables fewer elements, or "
                    "the call fewer rows",
                    bytes->length, DITTO_WIRE_MOST_BYTES);
}

/* Without memory for the answer of an error, the question ends after its time limit. After this host has
 * closed its questions, nobody waits for the answer. */
void dti_question_reply(struct dti_questions *questions, uint32_t to, uint64_t id, ditto_status status,
                        struct dti_bytes *bytes)
{
    if (status != DITTO_OK) {
        dti_bytes_free(bytes);
        dti_bytes_put_status(bytes, status);
    }
    (void)dti_questions_send(
        questions, to,
        &(struct dti_mail){ .kind = DTI_MAIL_ANSWER, .id = id, .data = bytes->data, .bytes = bytes->length });
}

static void answer(struct dti_questions *questions, uint32_t from, const struct dti_mail *request)
{
    struct dti_bytes bytes = { 0 };
    ditto_status status = dti_question_execute(questions, request, &bytes);
    dti_question_reply(questions, from, request->id, status, &bytes);
}

/* Gives an answer to the question that waits for it, if there still is one. */
static void take_answer(struct dti_questions *questions, uint32_t from, const struct dti_mail *mail)
{
    pthread_mutex_lock(&questions->lock);
    struct dti_asked_host *question = questions->pending;
    while (question != NULL &&
           (question->id != mail->id || (question->first != from && question->second != from)))
        question = question->next;
    if (question != NULL) {
        dti_question_take_out(questions, question);
        question->sent_to = from;
        question->data = mail->data;
        question->bytes = mail->bytes;
        dti_question_finish(question, QUESTION_ANSWERED);
    }
    pthread_mutex_unlock(&questions->lock);
    if (question == NULL)
        free(mail->data);
}

static void deliver(void *context, uint32_t from, const struct dti_mail *mail)
{
    struct dti_questions *questions = context;
    if (mail->kind == DTI_MAIL_ANSWER) {
        take_answer(questions, from, mail);
    } else if (mail->kind == DTI_MAIL_QUESTION) {
        answer(questions, from, mail);
        free(mail->data);
    } else if (dti_pair_is_mail(mail->kind)) {
        dti_pair_deliver(questions, from, mail);
    } else {
        questions->user.deliver(questions->user.context, from, mail);
    }
}

static void lose(void *context, uint32_t host)
{
    struct dti_questions *questions = context;
    pthread_mutex_lock(&questions->lock);
    end_unanswered(questions, host, true);
    dti_pairs_ask_again(questions, host);
    pthread_mutex_unlock(&questions->lock);
    dti_pairs_lose(questions, host);
    questions->user.lose(questions->user.context, host);
}

static void leave(void *context, uint32_t host)
{
    struct dti_questions *questions = context;
    pthread_mutex_lock(&questions->lock);
    questions->has_left[host] = true;
    end_unanswered(questions, host, false);
    pthread_mutex_unlock(&questions->lock);
    dti_pairs_lose(questions, host); /* nothing comes from it any more, either */
    questions->user.lose(questions->user.context, host);
}

/* -- opening and closing -- */

ditto_status dti_questions_open(struct dti_questions *questions, const struct dti_questions_user *user)
{
    const struct dti_mail_handler handler = {
        .deliver = deliver, .lose = lose, .leave = leave, .context = questions, .polls = user->polls
    };
    struct dti_post *post;
    pthread_mutex_lock(&questions->lock); /* until the post is known, the postman must not answer */
    questions->user = *user;
    for (uint32_t h = 0; h < questions->cluster->wire.num_hosts; h++)
        questions->has_left[h] = questions->sends_no_more[h] = false;
    ditto_status status = dti_post_open(questions->cluster, &handler, &post);
    questions->post = status == DITTO_OK ? post : NULL;
    questions->is_open = status == DITTO_OK;
    pthread_mutex_unlock(&questions->lock);
    return status;
}

ditto_status dti_questions_close(struct dti_questions *questions, uint32_t timeout_ms)
{
    pthread_mutex_lock(&questions->changing_pair);
    pthread_mutex_lock(&questions->lock);
    questions->is_open = false; /* what is sent from now on is refused */
    end_unanswered(questions, DTI_NO_HOST, false);
    pthread_mutex_unlock(&questions->lock);
    pthread_mutex_unlock(&questions->changing_pair);
    ditto_status status = dti_post_close(questions->post, timeout_ms);
    questions->post = NULL;
    dti_pairs_free(questions);
    return status;
}
