/* src/hosts/pairs.c - asks pairs of hosts, and makes changes for them. See pairs.h. */
#include "hosts/pairs.h"
#include "base/errors/sent_error.h"
#include "base/errors/status.h"
#include "base/waiting/futex.h"
#include "hosts/life_line.h"

#include <stdlib.h>
#include <string.h>

/* The changes of one asker that may wait for an answer at a time. */
#define MOST_CHANGES 16384u

/* The numbers of the last changes that were made for an asker, for each kind of mail that has brought them.
 * The answers to one kind come in the order of the mail, so if a change has no answer yet, those that are
 * remembered after it have none either, and there are at most MOST_CHANGES of them. */
enum { KINDS = 3 };
struct dti_done_changes {
    uint64_t *id[KINDS]; /* [MOST_CHANGES], or NULL before the first one */
    uint64_t count[KINDS];
};

struct dti_held_change {
    struct dti_held_change *next;
    uint32_t from;
    struct dti_mail mail;
};

/* -- asking -- */

/* Sends a question to its pair. Reads go to the second host while both live: it has nothing that the first
 * one does not have, so no later read finds less. The caller has the lock. */
static ditto_status send_to_pair(struct dti_questions *questions, struct dti_asked_host *question)
{
    bool first_is_lost = dti_post_has_lost(questions->post, question->host),
         second_is_lost = dti_post_has_lost(questions->post, question->other);
    if (first_is_lost && second_is_lost)
        return dti_questions_fail_lost(questions, question->host);
    bool to_second = first_is_lost || (!question->changes && !second_is_lost);
    question->sent_to = to_second ? question->other : question->host;
    if (questions->has_left[question->sent_to])
        return dti_questions_fail_left(questions, question->sent_to);
    if (question->changes && !first_is_lost && !second_is_lost && questions->has_left[question->other])
        return dti_questions_fail_left(questions, question->other); /* it would not answer */
    struct dti_mail mail = { .kind = !question->changes                ? DTI_MAIL_QUESTION
                                     : first_is_lost || second_is_lost ? DTI_MAIL_ALONE
                                                                       : DTI_MAIL_CHANGE,
                             .about = first_is_lost ? question->host : question->other,
                             .id = question->id,
                             .data = malloc(question->request_bytes),
                             .bytes = question->request_bytes };
    if (mail.data == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a request of %zu bytes", mail.bytes);
    memcpy(mail.data, question->request, mail.bytes);
    return dti_post_send(questions->post, question->sent_to, &mail);
}

static ditto_status begin(struct dti_questions *questions, struct dti_asked_host *question)
{
    if (questions->post == NULL)
        return dti_questions_fail_closed();
    if (question->changes && questions->changing >= MOST_CHANGES)
        return DTI_FAIL(
            DITTO_ERR_BUSY,
            "%u changes of mirrored parameters of this host are on their way: that is the most. Use fewer "
            "shards or variables",
            questions->changing);
    question->id = questions->asked++;
    DTI_TRY(send_to_pair(questions, question));
    questions->changing += question->changes;
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
        if (!is_of_pair || (questions->post != NULL && send_to_pair(questions, question) == DITTO_OK)) {
            at = &question->next;
            continue;
        }
        *at = question->next;
        questions->changing -= question->changes;
        dti_question_finish(question, QUESTION_LOST);
    }
}

/* -- answering, on the thread of the postman -- */

bool dti_pair_is_mail(uint32_t kind)
{
    return kind == DTI_MAIL_CHANGE || kind == DTI_MAIL_COPY || kind == DTI_MAIL_ALONE;
}

/* Returns what was done for an asker, with room for a change of this kind, or NULL if there is no memory. */
static struct dti_done_changes *done_for(struct dti_questions *questions, uint32_t asker, uint32_t kind)
{
    if (questions->done == NULL)
        questions->done = calloc(questions->cluster->wire.num_hosts, sizeof(struct dti_done_changes *));
    if (questions->done != NULL && questions->done[asker] == NULL)
        questions->done[asker] = calloc(1, sizeof *questions->done[asker]);
    struct dti_done_changes *done = questions->done != NULL ? questions->done[asker] : NULL;
    if (done != NULL && done->id[kind] == NULL)
        done->id[kind] = calloc(MOST_CHANGES, sizeof *done->id[kind]);
    return done != NULL && done->id[kind] != NULL ? done : NULL;
}

static bool is_done(const struct dti_questions *questions, uint32_t asker, uint64_t id)
{
    const struct dti_done_changes *done = questions->done != NULL ? questions->done[asker] : NULL;
    for (int kind = 0; done != NULL && kind < KINDS; kind++)
        for (uint64_t i = 0; i < done->count[kind] && i < MOST_CHANGES; i++)
            if (done->id[kind][i] == id)
                return true;
    return false;
}

/* Makes a change for an asker, and remembers it. */
static ditto_status change(struct dti_questions *questions, uint32_t asker, const struct dti_mail *mail,
                           struct dti_bytes *bytes)
{
    uint32_t kind = DTI_MAIL_CHANGE - mail->kind; /* the kinds have descending numbers */
    struct dti_done_changes *done = done_for(questions, asker, kind);
    if (done == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the changes of host %u", asker);
    DTI_TRY(dti_question_execute(questions, mail, bytes));
    done->id[kind][done->count[kind]++ % MOST_CHANGES] = mail->id;
    return DITTO_OK;
}

/* This host has not made a change that the other one of its pair has made. It must not be asked any more, so
 * for the others it is lost. Who waits for the answer asks the other one. */
static void give_up(struct dti_questions *questions)
{
    if (questions->cluster->life_line != NULL)
        dti_life_line_cut(questions->cluster);
}

/* The first host of a pair. */
static void change_first(struct dti_questions *questions, uint32_t from, const struct dti_mail *mail)
{
    struct dti_bytes bytes = { 0 };
    ditto_status status = change(questions, from, mail, &bytes);
    if (status != DITTO_OK) {
        dti_question_reply(questions, from, mail->id, status, &bytes);
        free(mail->data);
        return;
    }
    dti_bytes_free(&bytes);
    /* If the second host is lost before it answers, the asker asks again. */
    const struct dti_mail copy = {
        .kind = DTI_MAIL_COPY, .about = from, .id = mail->id, .data = mail->data, .bytes = mail->bytes
    };
    if (dti_questions_send(questions, mail->about, &copy) != DITTO_OK && dti_questions_are_open(questions))
        give_up(questions);
}

/* The second host of a pair. */
static void change_second(struct dti_questions *questions, const struct dti_mail *mail)
{
    struct dti_bytes bytes = { 0 };
    ditto_status status = change(questions, mail->about, mail, &bytes);
    /* Of a variable that was destroyed here, there is nothing that could differ. */
    if (status != DITTO_OK && status != DITTO_ERR_NOT_FOUND) {
        give_up(questions);
        dti_bytes_free(&bytes);
    } else {
        dti_question_reply(questions, mail->about, mail->id, status, &bytes);
    }
    free(mail->data);
}

/* A host whose pair has lost the other one. */
static void change_alone(struct dti_questions *questions, uint32_t from, const struct dti_mail *mail)
{
    struct dti_bytes bytes = { 0 };
    ditto_status status = DITTO_OK;
    if (is_done(questions, from, mail->id))
        dti_bytes_put_status(&bytes, DITTO_OK);
    else
        status = change(questions, from, mail, &bytes);
    dti_question_reply(questions, from, mail->id, status, &bytes);
    free(mail->data);
}

/* Keeps a change until the other host of the pair is lost here, too. */
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
    if (mail->about >= questions->cluster->wire.num_hosts ||
        (mail->kind != DTI_MAIL_COPY && !dti_questions_are_open(questions)))
        free(mail->data); /* nobody waits for the answer, and the other host does not make it either */
    else if (mail->kind == DTI_MAIL_CHANGE)
        change_first(questions, from, mail);
    else if (mail->kind == DTI_MAIL_COPY)
        change_second(questions, mail);
    else if (questions->told_loss[mail->about] || is_done(questions, from, mail->id))
        change_alone(questions, from, mail);
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
        change_alone(questions, held->from, &held->mail);
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
    for (uint32_t h = 0; questions->done != NULL && h < questions->cluster->wire.num_hosts; h++) {
        for (int kind = 0; questions->done[h] != NULL && kind < KINDS; kind++)
            free(questions->done[h]->id[kind]);
        free(questions->done[h]);
    }
    free(questions->done);
    questions->done = NULL;
    questions->held = NULL;
}
