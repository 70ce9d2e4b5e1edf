/* src/hosts/pairs.c - asks pairs of hosts, and makes changes for them. See pairs.h. */
#include "hosts/pairs.h"
#include "base/errors/sent_error.h"
#include "base/errors/status.h"
#include "base/waiting/futex.h"

#include <stdlib.h>
#include <string.h>

/* The changes of one asker that may wait for an answer at a time. */
#define MOST_CHANGES 16384u

/* The numbers of the last changes that were made for an asker, for each kind of mail that has brought them.
 * The answers to one kind come in the order of the mail, so if a change has no answer yet, those that are
 * remembered after it have none either, and their time limits are later. So there are at most MOST_CHANGES of
 * them. */
enum { KINDS = 3 };
struct dti_done_changes {
    uint64_t *id[KINDS]; /* [MOST_CHANGES], or NULL before the first one */
    uint64_t count[KINDS];
};

/* After limit_ns, its asker has given it up. */
struct dti_held_change {
    struct dti_held_change *next;
    uint32_t from;
    uint64_t limit_ns;
    struct dti_mail mail;
};

/* -- asking -- */

static ditto_status fail_memory(size_t bytes)
{
    return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a request of %zu bytes", bytes);
}

static void *copy_of_request(const struct dti_asked_host *question)
{
    void *copy = malloc(question->request_bytes);
    return copy != NULL ? memcpy(copy, question->request, question->request_bytes) : NULL;
}

/* Says what the host that gets a question does with it. */
static uint32_t kind_of(const struct dti_asked_host *question, bool one_is_lost)
{
    if (!question->changes)
        return DTI_MAIL_QUESTION;
    return one_is_lost ? DTI_MAIL_ALONE : DTI_MAIL_CHANGE;
}

/* Sends a copy of the request, which it takes over, to the pair. Reads go to the second host while both live:
 * it has nothing that the first one does not have, so no later read finds less. The caller has the lock. */
static ditto_status send_to_pair(struct dti_questions *questions, struct dti_asked_host *question, void *copy)
{
    bool first_is_lost = dti_post_has_lost(questions->post, question->first);
    bool second_is_lost = dti_post_has_lost(questions->post, question->second);
    bool to_second = first_is_lost || (!question->changes && !second_is_lost);
    struct dti_mail mail = { .kind = kind_of(question, first_is_lost || second_is_lost),
                             .about = first_is_lost ? question->first : question->second,
                             .id = question->id,
                             .data = copy,
                             .bytes = question->request_bytes };
    ditto_status status = DITTO_OK;
    question->sent_to = to_second ? question->second : question->first;
    if (first_is_lost && second_is_lost)
        status = dti_questions_fail_lost(questions, question->first);
    else if (questions->has_left[question->sent_to])
        status = dti_questions_fail_left(questions, question->sent_to);
    else if (mail.kind == DTI_MAIL_CHANGE && questions->has_left[question->second])
        status = dti_questions_fail_left(questions, question->second); /* it would not answer */
    else if (copy == NULL)
        status = fail_memory(mail.bytes);
    if (status == DITTO_OK)
        return dti_post_send(questions->post, question->sent_to, &mail);
    free(copy);
    return status;
}

static ditto_status begin(struct dti_questions *questions, struct dti_asked_host *question, void *copy)
{
    ditto_status status = DITTO_OK;
    if (!questions->is_open)
        status = dti_questions_fail_closed();
    else if (question->changes && questions->changing >= MOST_CHANGES)
        status = DTI_FAIL(
            DITTO_ERR_BUSY,
            "%u changes of mirrored parameters of this host are on their way: that is the most. Use fewer "
            "shards or variables",
            questions->changing);
    if (status != DITTO_OK) {
        free(copy);
        return status;
    }
    question->id = questions->asked++;
    DTI_TRY(send_to_pair(questions, question, copy));
    if (question->changes)
        questions->changing++;
    question->next = questions->pending;
    questions->pending = question;
    return DITTO_OK;
}

ditto_status dti_question_ask_pair(struct dti_questions *questions, uint32_t first, uint32_t second,
                                   bool changes, struct dti_bytes *request, struct dti_asked_host *question)
{
    struct dti_deadline deadline = { .timeout_ms = questions->timeout_ms };
    ditto_status status = dti_question_check(request, first);
    *question = (struct dti_asked_host){ .first = first,
                                         .second = second,
                                         .changes = changes,
                                         .request = request->data,
                                         .request_bytes = request->length,
                                         .limit_ns = dti_deadline_at(&deadline) };
    *request = (struct dti_bytes){ 0 };
    if (status == DITTO_OK) {
        void *copy = copy_of_request(question); /* outside of the lock, as it may be long */
        pthread_mutex_lock(&questions->lock);
        status = begin(questions, question, copy);
        pthread_mutex_unlock(&questions->lock);
    }
    if (status != DITTO_OK) {
        free(question->request);
        question->request = NULL;
    }
    return status;
}

/* Returns true if a question that waits for its answer must be asked again when the host is lost. A read is
 * answered by the host that it was sent to. */
static bool needs_other(const struct dti_asked_host *question, uint32_t lost)
{
    if (question->second == DTI_NO_HOST)
        return false;
    return question->changes ? question->first == lost || question->second == lost
                             : question->sent_to == lost;
}

void dti_pairs_ask_again(struct dti_questions *questions, uint32_t host)
{
    for (struct dti_asked_host **at = &questions->pending, *question; (question = *at) != NULL;) {
        if (!needs_other(question, host)) {
            at = &question->next;
            continue;
        }
        question->failure = send_to_pair(questions, question, copy_of_request(question));
        if (question->failure == DITTO_OK) {
            at = &question->next;
            continue;
        }
        dti_question_take_out(questions, question);
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

/* This host has not made a change that the other one has made, or the other way round. If one of them
 * resigns, askers that wait for an answer ask the other one. */
static void resign(struct dti_questions *questions)
{
    dti_post_resign(questions->post); /* which exists, because this is its postman */
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
    if (dti_questions_send(questions, mail->about, &copy) != DITTO_OK)
        resign(questions);
}

/* The second host of a pair. It also makes changes when its questions are closed, because the first one has
 * made them. */
static void change_second(struct dti_questions *questions, const struct dti_mail *mail)
{
    struct dti_bytes bytes = { 0 };
    ditto_status status = change(questions, mail->about, mail, &bytes);
    if (status != DITTO_OK)
        resign(questions);
    dti_question_reply(questions, mail->about, mail->id, status, &bytes);
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

static void free_held(struct dti_held_change *held)
{
    free(held->mail.data);
    free(held);
}

/* Takes the first change of those that are held from *at on. */
static struct dti_held_change *take_held(struct dti_questions *questions, struct dti_held_change **at)
{
    struct dti_held_change *held = *at;
    *at = held->next;
    if (held->next == NULL)
        questions->held_end = at;
    return held;
}

/* Keeps a change until nothing more comes from the other host of the pair. */
static void hold(struct dti_questions *questions, uint32_t from, const struct dti_mail *mail)
{
    struct dti_deadline deadline = { .timeout_ms = questions->timeout_ms };
    while (questions->held != NULL && questions->held->limit_ns < dti_now_ns())
        free_held(take_held(questions, &questions->held));
    struct dti_held_change *held = malloc(sizeof *held);
    if (held == NULL) {
        struct dti_bytes bytes = { 0 };
        dti_question_reply(questions, from, mail->id,
                           DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a change that must wait"), &bytes);
        free(mail->data);
        return;
    }
    *held = (struct dti_held_change){ NULL, from, dti_deadline_at(&deadline), *mail };
    *questions->held_end = held;
    questions->held_end = &held->next;
}

static void change_pair(struct dti_questions *questions, uint32_t from, const struct dti_mail *mail)
{
    if (mail->about >= questions->cluster->wire.num_hosts ||
        (mail->kind != DTI_MAIL_COPY && !dti_questions_are_open(questions)))
        free(mail->data); /* nobody waits for the answer, and the other host does not make it either */
    else if (mail->kind == DTI_MAIL_CHANGE)
        change_first(questions, from, mail);
    else if (mail->kind == DTI_MAIL_COPY)
        change_second(questions, mail);
    else if (questions->sends_no_more[mail->about] || is_done(questions, from, mail->id))
        change_alone(questions, from, mail);
    else
        hold(questions, from, mail);
}

void dti_pair_deliver(struct dti_questions *questions, uint32_t from, const struct dti_mail *mail)
{
    pthread_mutex_lock(&questions->changing_pair);
    change_pair(questions, from, mail);
    pthread_mutex_unlock(&questions->changing_pair);
}

void dti_pairs_lose(struct dti_questions *questions, uint32_t host)
{
    pthread_mutex_lock(&questions->changing_pair);
    questions->sends_no_more[host] = true;
    for (struct dti_held_change **at = &questions->held; *at != NULL;) {
        if ((*at)->mail.about != host) {
            at = &(*at)->next;
            continue;
        }
        struct dti_held_change *held = take_held(questions, at);
        if (held->limit_ns > dti_now_ns() && dti_questions_are_open(questions)) {
            change_alone(questions, held->from, &held->mail);
            held->mail.data = NULL;
        }
        free_held(held);
    }
    pthread_mutex_unlock(&questions->changing_pair);
}

void dti_pairs_free(struct dti_questions *questions)
{
    while (questions->held != NULL)
        free_held(take_held(questions, &questions->held));
    for (uint32_t h = 0; questions->done != NULL && h < questions->cluster->wire.num_hosts; h++) {
        for (int kind = 0; questions->done[h] != NULL && kind < KINDS; kind++)
            free(questions->done[h]->id[kind]);
        free(questions->done[h]);
    }
    free(questions->done);
    questions->done = NULL;
}
