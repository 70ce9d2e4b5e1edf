/* src/hosts/pairs.c - asks pairs of hosts, and makes changes for them. See pairs.h. */
#include "hosts/pairs.h"
#include "base/errors/sent_error.h"
#include "base/errors/status.h"
#include "base/waiting/futex.h"

#include <stdlib.h>
#include <string.h>

/* The numbers of the last changes that were done for an asker. A thread waits for the changes of one call
 * before it makes the next one, so fewer than these can be asked for again. */
#define REMEMBERED 4096
struct dti_done_changes {
    uint64_t count;
    uint64_t id[REMEMBERED];
};

struct dti_held_change {
    struct dti_held_change *next;
    uint32_t from;
    struct dti_mail mail;
};

/* -- asking -- */

/* Sends a question to the first host of its pair that is not lost. The caller has the lock. */
static ditto_status send_to_pair(struct dti_questions *questions, struct dti_asked_host *question)
{
    bool first_is_lost = dti_post_has_lost(questions->post, question->host),
         other_is_lost = question->other == DTI_NO_HOST ||
                         dti_post_has_lost(questions->post, question->other);
    if (first_is_lost && other_is_lost)
        return dti_questions_fail_lost(questions, question->host);
    uint32_t to = first_is_lost ? question->other : question->host;
    if (questions->has_left[to])
        return dti_questions_fail_left(questions, to);
    struct dti_mail mail = { .kind = !question->changes ? DTI_MAIL_QUESTION
                                     : first_is_lost    ? DTI_MAIL_ALONE
                                                        : DTI_MAIL_CHANGE,
                             .about = first_is_lost   ? question->host
                                      : other_is_lost ? DTI_NO_HOST
                                                      : question->other,
                             .id = question->id,
                             .data = malloc(question->request_bytes),
                             .bytes = question->request_bytes };
    if (mail.data == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a request of %zu bytes", mail.bytes);
    memcpy(mail.data, question->request, mail.bytes);
    return dti_post_send(questions->post, to, &mail);
}

static ditto_status begin(struct dti_questions *questions, struct dti_asked_host *question)
{
    if (questions->post == NULL)
        return dti_questions_fail_closed();
    question->id = questions->asked++;
    DTI_TRY(send_to_pair(questions, question));
    question->next = questions->pending;
    questions->pending = question;
    return DITTO_OK;
}

ditto_status dti_question_ask_pair(struct dti_questions *questions, uint32_t first, uint32_t second,
                                   bool changes, struct dti_bytes *request, struct dti_asked_host *question)
{
    struct dti_deadline deadline = { .timeout_ms = questions->timeout_ms };
    ditto_status status = dti_bytes_status(request);
    *question = (struct dti_asked_host){ .host = first,
                                         .other = second,
                                         .changes = changes,
                                         .request = request->data,
                                         .request_bytes = request->length,
                                         .limit_ns = dti_deadline_at(&deadline) };
    if (status == DITTO_OK) {
        pthread_mutex_lock(&questions->lock);
        status = begin(questions, question);
        pthread_mutex_unlock(&questions->lock);
    }
    if (status != DITTO_OK) {
        free(question->request);
        question->request = NULL;
    }
    *request = (struct dti_bytes){ 0 };
    return status;
}

void dti_pairs_ask_again(struct dti_questions *questions, uint32_t host)
{
    for (struct dti_asked_host **at = &questions->pending, *question; (question = *at) != NULL;) {
        bool is_of_pair = question->other != DTI_NO_HOST &&
                          (question->host == host || question->other == host);
        /* What the first host was only asked to read, it answers alone. */
        if (!is_of_pair || (!question->changes && question->other == host && question->host != host) ||
            (questions->post != NULL && send_to_pair(questions, question) == DITTO_OK)) {
            at = &question->next;
            continue;
        }
        *at = question->next;
        dti_question_finish(question, QUESTION_LOST);
    }
}

/* -- answering, on the thread of the postman -- */

bool dti_pair_is_mail(uint32_t kind)
{
    return kind == DTI_MAIL_CHANGE || kind == DTI_MAIL_COPY || kind == DTI_MAIL_ALONE;
}

/* Returns what was done for an asker, or NULL if there is no memory. */
static struct dti_done_changes *done_for(struct dti_questions *questions, uint32_t asker)
{
    if (questions->done == NULL)
        questions->done = calloc(questions->cluster->wire.num_hosts, sizeof(struct dti_done_changes *));
    if (questions->done != NULL && questions->done[asker] == NULL)
        questions->done[asker] = calloc(1, sizeof *questions->done[asker]);
    return questions->done != NULL ? questions->done[asker] : NULL;
}

static bool is_done(const struct dti_done_changes *done, uint64_t id)
{
    uint64_t known = done->count < REMEMBERED ? done->count : REMEMBERED;
    for (uint64_t i = 0; i < known; i++)
        if (done->id[i] == id)
            return true;
    return false;
}

/* Does a change for an asker, and remembers it. With `may_be_done`, only if it has not been done. */
static ditto_status change(struct dti_questions *questions, uint32_t asker, const struct dti_mail *mail,
                           bool may_be_done, struct dti_bytes *bytes)
{
    struct dti_done_changes *done = done_for(questions, asker);
    if (done == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the changes of host %u", asker);
    if (may_be_done && is_done(done, mail->id)) {
        dti_bytes_put_status(bytes, DITTO_OK);
        return DITTO_OK;
    }
    DTI_TRY(dti_question_execute(questions, mail, bytes));
    done->id[done->count++ % REMEMBERED] = mail->id;
    return DITTO_OK;
}

static bool has_lost(struct dti_questions *questions, uint32_t host)
{
    pthread_mutex_lock(&questions->lock);
    bool is_lost = questions->post == NULL || dti_post_has_lost(questions->post, host);
    pthread_mutex_unlock(&questions->lock);
    return is_lost;
}

static void change_first(struct dti_questions *questions, uint32_t from, const struct dti_mail *mail)
{
    struct dti_bytes bytes = { 0 };
    bool is_alone = mail->about == DTI_NO_HOST;
    ditto_status status = change(questions, from, mail, is_alone, &bytes);
    if (status != DITTO_OK || is_alone || has_lost(questions, mail->about)) {
        dti_question_reply(questions, from, mail->id, status, &bytes);
        free(mail->data);
        return;
    }
    dti_bytes_free(&bytes);
    /* If the second host is lost before it answers, the asker asks again. */
    const struct dti_mail copy = {
        .kind = DTI_MAIL_COPY, .about = from, .id = mail->id, .data = mail->data, .bytes = mail->bytes
    };
    status = dti_questions_send(questions, mail->about, &copy);
    if (status != DITTO_OK)
        dti_question_reply(questions, from, mail->id, status, &bytes);
}

static void change_second(struct dti_questions *questions, uint32_t asker, const struct dti_mail *mail,
                          bool may_be_done)
{
    struct dti_bytes bytes = { 0 };
    ditto_status status = change(questions, asker, mail, may_be_done, &bytes);
    dti_question_reply(questions, asker, mail->id, status, &bytes);
    free(mail->data);
}

/* Keeps a change until the first host of its pair is lost here, too. */
static void hold(struct dti_questions *questions, uint32_t from, const struct dti_mail *mail)
{
    struct dti_held_change *held = malloc(sizeof *held);
    if (held == NULL) {
        struct dti_bytes bytes = { 0 };
        dti_question_reply(questions, from, mail->id,
                           DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a change that must wait"), &bytes);
        free(mail->data);
        return;
    }
    *held = (struct dti_held_change){ NULL, from, *mail };
    struct dti_held_change **at = &questions->held;
    while (*at != NULL)
        at = &(*at)->next;
    *at = held;
}

void dti_pair_deliver(struct dti_questions *questions, uint32_t from, const struct dti_mail *mail)
{
    if (mail->kind == DTI_MAIL_CHANGE)
        change_first(questions, from, mail);
    else if (mail->kind == DTI_MAIL_COPY)
        change_second(questions, mail->about, mail, false);
    else if (mail->about < questions->cluster->wire.num_hosts && questions->told_loss[mail->about])
        change_second(questions, from, mail, true);
    else
        hold(questions, from, mail);
}

void dti_pairs_lose(struct dti_questions *questions, uint32_t host)
{
    questions->told_loss[host] = true;
    for (struct dti_held_change **at = &questions->held, *held; (held = *at) != NULL;) {
        if (held->mail.about != host) {
            at = &held->next;
            continue;
        }
        *at = held->next;
        change_second(questions, held->from, &held->mail, true);
        free(held);
    }
}

void dti_pairs_free(struct dti_questions *questions)
{
    for (struct dti_held_change *held = questions->held, *next; held != NULL; held = next) {
        next = held->next;
        free(held->mail.data);
        free(held);
    }
    for (uint32_t h = 0; questions->done != NULL && h < questions->cluster->wire.num_hosts; h++)
        free(questions->done[h]);
    free(questions->done);
    questions->done = NULL;
    questions->held = NULL;
}
