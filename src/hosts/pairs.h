/* src/hosts/pairs.h - questions to pairs of hosts, of which each has what the other one has.
 *
 * Of a pair, the first host does all changes, on the thread of its postman, one after the other. It sends
 * each to the second host (COPY), which does the same and answers the asker. Mail arrives in order, so both
 * do the same changes in the same order, and a change that was answered has been done by both.
 *
 * If a host of the pair is lost, each asker that has no answer yet asks the other one again, with the number
 * of the question (ALONE). If that host has made the change already, it only answers. It does not know at
 * once whether the first one is lost, and what is still on its way from it. So it holds the change until it
 * has been told of the loss: no mail of a lost host is delivered after that. Reads go to the second host
 * while both live.
 *
 *     kind      to           about         what it does
 *     CHANGE    first host   second host   makes the change, and sends it to the second host
 *     COPY      second host  asker         makes the change, and answers
 *     ALONE     either       the lost one  waits for the loss, makes the change if it has not been made, and
 *                                          answers
 *
 * A host that cannot make a change which the other one has made, or cannot send it on, resigns (mail.h): for
 * all others it is lost then.
 *
 * Invariants  I1  A change that was answered without an error has been done by each host of the pair that is
 *                 not lost.
 *             I2  No host does a change twice.
 * Edges       none between hosts, which share nothing but messages
 * Model       tests/model/pairs.pml */
#ifndef DTI_PAIRS_H
#define DTI_PAIRS_H

#include "hosts/questions_private.h"

bool dti_pair_is_mail(uint32_t kind);
/* Takes over mail->data. */
void dti_pair_deliver(struct dti_questions *questions, uint32_t from, const struct dti_mail *mail);

/* When a host is lost: asks the other one of each pair again. The caller has the lock. */
void dti_pairs_ask_again(struct dti_questions *questions, uint32_t host);
/* Nothing more comes from a host: does what was held until then. */
void dti_pairs_lose(struct dti_questions *questions, uint32_t host);
void dti_pairs_free(struct dti_questions *questions);

#endif
