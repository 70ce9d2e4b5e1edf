/* src/hosts/questions.h - questions to other hosts: a thread asks a host for something, and waits for its
 * answer.
 *
 * Questions are sent as mail (mail.h), while the hosts do not work in step. The host that is asked answers on
 * the thread of its postman. So what it does for other hosts must be short, and must not wait for other
 * hosts.
 *
 * A question ends with its answer, or with an error: if the host is lost (or both hosts of a pair are), if it
 * has closed its questions, if this host closes its own, or after the time limit. In each of these cases it
 * is not known whether the host has done what it was asked for.
 *
 * Sending beside this is only possible through dti_questions_send, because the post ends with them. */
#ifndef DTI_QUESTIONS_H
#define DTI_QUESTIONS_H

#include "base/text/bytes.h"
#include "hosts/mail.h"

#define DTI_MAIL_QUESTION (UINT32_MAX - 1)
#define DTI_MAIL_ANSWER   (UINT32_MAX - 2)
#define DTI_MAIL_CHANGE   (UINT32_MAX - 3) /* this and the next ones: pairs.h */
#define DTI_MAIL_COPY     (UINT32_MAX - 4)
#define DTI_MAIL_ALONE    (UINT32_MAX - 5)

/* The questions between the hosts of a cluster. */
struct dti_questions;

/* What is called on the thread of the postman. */
struct dti_questions_user {
    /* Mail that is no question, as in struct dti_mail_handler. */
    void (*deliver)(void *context, uint32_t from, const struct dti_mail *mail);
    void (*lose)(void *context, uint32_t host); /* also when it has taken leave */
    void *context;

    /* Does what a host asks for, and adds its results to the answer. `request` is aligned for every type. */
    ditto_status (*answer)(void *context, const void *request, size_t bytes, struct dti_bytes *answer);
    void *answer_context;

    bool polls; /* as in struct dti_mail_handler */
};

/* A question that has been sent. It stays where it is until dti_question_await. */
struct dti_asked_host {
    struct dti_asked_host *next;
    uint64_t id;
    uint64_t limit_ns; /* when it ends without an answer */
    uint32_t first;    /* the host that is asked, or the first one of the pair */
    uint32_t sent_to;  /* the host that was asked, or that has answered */

    /* Of a question to a pair: the second host, the request, to ask again, and whether it changes something.
     */
    uint32_t second; /* otherwise DTI_NO_HOST */
    bool changes;
    void *request;
    size_t request_bytes;

    _Atomic uint32_t state;
    ditto_status failure; /* why it could not be asked again */
    void *data;           /* of the answer */
    size_t bytes;
};

/* Returns NO_MEMORY. A question that is not answered ends timeout_ms after it was sent, so several of them
 * that were sent together end together. */
ditto_status dti_questions_make(ditto_cluster *cluster, uint32_t timeout_ms, struct dti_questions **out);
/* `questions`, which are closed, may be NULL. */
void dti_questions_free(struct dti_questions *questions);

/* Opens the questions on this host, as dti_post_open does. */
ditto_status dti_questions_open(struct dti_questions *questions, const struct dti_questions_user *user);
/* Closes them, as dti_post_close does. Questions that have no answer yet end with CONTEXT. */
ditto_status dti_questions_close(struct dti_questions *questions, uint32_t timeout_ms);
bool dti_questions_are_open(struct dti_questions *questions);

/* All functions from here on may be called by any thread, at any time. */

/* Returns true if the host is lost, or the questions are closed. */
bool dti_questions_have_lost(struct dti_questions *questions, uint32_t host);

/* Returns true if this host has resigned (mail.h), and the error then. */
bool dti_questions_have_resigned(struct dti_questions *questions);
ditto_status dti_questions_fail_resigned(void);

/* Sends mail. Takes over its data, also if it fails. Returns NO_MEMORY, or CONTEXT if the questions are
 * closed. */
ditto_status dti_questions_send(struct dti_questions *questions, uint32_t to, const struct dti_mail *mail);

/* Sends a request, and empties it. After an error there is no question to be awaited. Returns NO_MEMORY,
 * RANGE if the request is too long for the wire, LOST, or CONTEXT if either host has closed its questions. */
ditto_status dti_question_ask(struct dti_questions *questions, uint32_t host, struct dti_bytes *request,
                              struct dti_asked_host *question);

/* Asks a pair of hosts which have the same things. The first one does what is asked. If `changes` is true,
 * the other one then does the same, in the same order, and answers. If one of the two is lost, the other one
 * is asked again, and does it once. Returns the same errors, LOST if both are gone. See pairs.h. */
ditto_status dti_question_ask_pair(struct dti_questions *questions, uint32_t first, uint32_t second,
                                   bool changes, struct dti_bytes *request, struct dti_asked_host *question);

/* Waits for the end of a question. *answer reads what the host has answered, and *data is to be freed, also
 * after an error. Returns an error of the host, LOST, CONTEXT, or TIMED_OUT. */
ditto_status dti_question_await(struct dti_questions *questions, struct dti_asked_host *question,
                                struct dti_bytes_reader *answer, void **data);

#endif
