/* src/hosts/mail.h - messages between hosts that do not work in step.
 *
 * While a post is open, any thread may send mail to any host, at any time. A thread of the post, the postman,
 * drives the wire. It delivers what arrives, one mail after the other for each host, in the order in which
 * that host has sent it. The wire must allow any thread (no DITTO_WIRE_ONE_THREAD), and no call over all
 * hosts (header.h) is made meanwhile.
 *
 * Mail to this host itself is delivered by its own postman, in order, too.
 *
 * If a host is lost, the others go on. Mail to it is dropped, and `lose` is called once. Mail that it has
 * sent before may or may not be delivered before this, and none after it. A host is lost for all or for none:
 * if the connection between two hosts ends, and neither of them does, the one with the higher number resigns.
 * So does a host whose wire has no memory for a message. Without a life line each host goes by its own
 * connections, and so it does with one if the other host does not see for 12 s that the connection has ended.
 *
 * Each mail is a frame, and its bytes as a second message if there are any. All are on one channel, so they
 * arrive in order.
 *
 * Invariants  I1  For each host that is not lost and has not taken leave there is one receive at any time: of
 *                 a frame, or of the bytes that the last frame has announced.
 *             I2  After its leave a host sends nothing. The post is closed when it has sent its leave to all
 *                 hosts, and has that of each host that is not lost. So no message of the post is left on
 *                 the wire.
 *             I3  The wire uses no memory of a post that is freed. The receive from a lost host is withdrawn.
 *                 If the wire is in the middle of a message of this host, the post stays until that has
 *                 ended, and what it brings is not delivered.
 * Edges       none between hosts, which share nothing but messages
 * Model       tests/model/mail.pml */
#ifndef DTI_MAIL_H
#define DTI_MAIL_H

#include "hosts/cluster.h"

struct dti_post;

struct dti_mail {
    uint32_t kind;  /* not DTI_MAIL_LEAVE */
    uint32_t about; /* this and `id`: what the kind makes of them, as a host or a number */
    uint64_t id;
    void *data;   /* of malloc, or NULL. NULL with bytes means that there was no memory to receive them */
    size_t bytes; /* at most DITTO_WIRE_MOST_BYTES */
};

#define DTI_MAIL_LEAVE UINT32_MAX

/* What is called on the thread of the postman. These functions must not wait for other hosts. */
struct dti_mail_handler {
    /* Takes over mail->data. */
    void (*deliver)(void *context, uint32_t from, const struct dti_mail *mail);
    void (*lose)(void *context, uint32_t host);
    void (*leave)(void *context, uint32_t host); /* it sends nothing more, and reads nothing more */
    void *context;

    /* The postman never sleeps, because it has a PU of its own. */
    bool polls;
};

/* Returns UNSUPPORTED if only one thread may use the wire. */
ditto_status dti_post_check(const ditto_cluster *cluster);

/* Opens a post. All hosts do so, after dti_post_check. The postman inherits the PUs of the calling thread.
 * *out is set before the first mail is delivered.
 * Returns NO_MEMORY or SYSTEM, and *out is NULL then. */
ditto_status dti_post_open(ditto_cluster *cluster, const struct dti_mail_handler *handler,
                           struct dti_post **out);

/* Sends mail, and takes over its data, also if it fails. Returns RANGE if it is too long, and NO_MEMORY. Any
 * thread. Never waits. */
ditto_status dti_post_send(struct dti_post *post, uint32_t to, const struct dti_mail *mail);

/* Returns true if the host is lost. Any thread. */
bool dti_post_has_lost(const struct dti_post *post, uint32_t host);

/* Ends the part of this host, which cannot do what the others rely on. It loses all hosts, itself included,
 * and cuts the life line, so that all of them lose it. Only for functions of the handler. */
void dti_post_resign(struct dti_post *post);

/* Takes leave of all hosts, waits until they have taken leave, and frees the post. Returns TIMED_OUT, naming
 * the hosts that have not, after the limit. Then the cluster is poisoned. */
ditto_status dti_post_close(struct dti_post *post, uint32_t timeout_ms);

#endif
