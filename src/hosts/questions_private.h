/* src/hosts/questions_private.h - what the files that ask and answer questions share. */
#ifndef DTI_QUESTIONS_PRIVATE_H
#define DTI_QUESTIONS_PRIVATE_H

#include "hosts/questions.h"

enum { QUESTION_AWAITED, QUESTION_ANSWERED, QUESTION_LOST };

struct dti_done_changes; /* pairs.h */
struct dti_held_change;

struct dti_questions {
    ditto_cluster *cluster;
    uint32_t timeout_ms;
    struct dti_questions_user user;

    /* Of pairs. Only the postman uses them. */
    bool *sends_no_more;            /* [hosts] it is lost, or has taken leave */
    struct dti_done_changes **done; /* [hosts], or NULL before the first change */
    struct dti_held_change *held, **held_end;

    /* The postman holds it while it makes a change of a pair, so that the questions are not closed between
     * the two hosts. Taken before `lock`. */
    pthread_mutex_t changing_pair;

    pthread_mutex_t lock;  /* of the members from here on */
    struct dti_post *post; /* NULL while there is no postman */
    bool is_open;
    uint64_t asked;    /* how many */
    uint32_t changing; /* how many changes of pairs wait for an answer */
    struct dti_asked_host *pending;
    bool *has_left; /* [hosts] */
};

/* -- questions.c -- */
ditto_status dti_questions_fail_closed(void);
ditto_status dti_questions_fail_left(const struct dti_questions *questions, uint32_t host);
/* The caller has the lock, and the questions are open. */
ditto_status dti_questions_fail_lost(const struct dti_questions *questions, uint32_t host);

/* Returns RANGE if a request is too long, or the error with which it was written. */
ditto_status dti_question_check(const struct dti_bytes *request, uint32_t host);

/* The caller has the lock. */
void dti_question_take_out(struct dti_questions *questions, const struct dti_asked_host *question);
void dti_question_finish(struct dti_asked_host *question, uint32_t state);

/* Does what is asked, on the thread of the postman, and replies. */
ditto_status dti_question_execute(struct dti_questions *questions, const struct dti_mail *request,
                                  struct dti_bytes *bytes);
void dti_question_reply(struct dti_questions *questions, uint32_t to, uint64_t id, ditto_status status,
                        struct dti_bytes *bytes);

#endif
