/* src/cluster/header_private.h - what the files that exchange headers share. See header.h. */
#ifndef DTI_HEADER_PRIVATE_H
#define DTI_HEADER_PRIVATE_H

#include "cluster/header.h"

#define DTI_CALL_NAME_BYTES 48
#define DTI_LAST_CALL_BYTES 200

struct dti_header {
    uint32_t epoch;
    uint8_t kind;
    uint8_t block;          /* the header stands for 2^block hosts, which have made the same call */
    uint16_t payload_lines; /* DTI_HEADER_LINE bytes each, behind this header */
    uint64_t number;
    uint64_t digest;
    uint64_t call_number;
    char call_name[DTI_CALL_NAME_BYTES];
};

/* A header and its payload are whole lines, so that the payload of every header in a message is aligned for
 * every dtype. */
#define DTI_HEADER_LINE 16
_Static_assert(sizeof(struct dti_header) % DTI_HEADER_LINE == 0, "a payload must be aligned for every dtype");

/* Follows a last header: why the host has ended the epoch. */
struct dti_last_words {
    /* The host that failed by itself, which may be another one, whose error this host has taken over. */
    uint32_t origin;

    /* If calls differ: two hosts whose calls differ. Otherwise DTI_NO_HOST. */
    uint32_t one, other;

    int32_t status, replica, system_errno, user_code;
    char message[512];
    char call[DTI_LAST_CALL_BYTES]; /* of this host, if calls differ */
    uint64_t runs;                  /* that have ended in this epoch without an agreement */
    uint64_t completed;             /* the number of its last exchange that was EQUAL */
    uint64_t finished;              /* the number of the last exchange of which it has all headers */
    struct dti_sent sent[]; /* [hosts] the data messages that it has sent to each host in this epoch */
};

/* In steps, what a host says that has waited long, and a host that has heard this: the hosts that are in the
 * exchange, as far as it knows. */
struct dti_question {
    struct dti_header header;
    uint64_t present[DTI_MAX_HOSTS / 64];
};

/* What this host knows of another one. */
struct dti_peer {
    /* Of this host's headers, by their number, of its last one, which may follow before those are sent, and
     * of its question who is late. */
    struct dti_transfer send[2], send_last, send_question;

    struct dti_transfer receive;
    bool is_receiving; /* `receive` has begun, and its message was not taken */
    unsigned char *in[2];
    uint32_t next;               /* the message that is received, or has arrived, is in in[next] */
    size_t capacity;             /* of each of the two */
    uint64_t heard;              /* the number of its last message with a header, in this epoch */
    bool has_ended;              /* that header is its last one of this epoch */
    struct dti_last_words *last; /* if has_ended */

    /* Its headers, by their number. That of the present exchange is NULL until it is known. */
    const struct dti_header *known[2];

    /* In steps, its message of this exchange if it was taken, but not added yet. */
    const unsigned char *step;
    size_t step_bytes;
};

struct dti_headers {
    uint64_t number;    /* of the last exchange */
    uint64_t runs;      /* that have ended in this epoch without an agreement */
    uint64_t completed; /* of the last exchange that was EQUAL */
    uint64_t finished;  /* of the last exchange of which this host has all headers */

    /* Set when an exchange was not EQUAL, or a call has failed over hosts. Until the end of the epoch nothing
     * can be agreed on any more, and every exchange fails with `error`. Its status is DITTO_OK if none was
     * given. */
    bool is_broken;
    ditto_error error;

    /* Headers go in steps (header_steps.c), not to each host directly. */
    bool goes_in_steps;

    /* The buffer of this host's message, by the number of the exchange. The message begins at out_at. In
     * steps, the headers of `have` hosts are in it, in the order of their places (header_steps.c). */
    unsigned char *out[2];
    size_t out_at, out_bytes;
    size_t most_sent; /* the bytes of the longest message that was sent in this exchange */
    uint32_t have;

    /* Of the present exchange. The digest is that of the intent and the number of runs. `combine` is NULL if
     * hosts do not combine what they pass on. */
    uint64_t digest;
    dti_header_combine_fn *combine;
    void *context;

    struct dti_peer *peer; /* [hosts]. That of this host only has `known` */

    /* What this host will say in its last header, beside its error. */
    uint32_t origin, one, other;
    char call[DTI_LAST_CALL_BYTES];
    unsigned char *out_last; /* the last header, whose buffer is not that of another one on its way */

    /* In steps: the epoch ends, and messages of all hosts are received. Otherwise only those of the hosts
     * that send steps to this one. */
    bool hears_all;

    /* The hosts that are known to be in exchange `number`, from questions, and the last question as it was
     * sent. `asks` is the number of the last exchange in which this host has waited long. */
    struct dti_question heard_question, sent_question;
    uint64_t asks;

    unsigned char *memory;
};

static inline size_t dti_last_bytes(const ditto_cluster *cluster)
{
    return sizeof(struct dti_last_words) + cluster->wire.num_hosts * sizeof(struct dti_sent);
}

static inline size_t dti_header_bytes(const struct dti_header *header)
{
    return sizeof *header + (size_t)header->payload_lines * DTI_HEADER_LINE;
}

/* Returns true if a message of the host has arrived that was not taken. */
static inline bool dti_header_has_arrived(const struct dti_peer *peer)
{
    return peer->is_receiving && !peer->receive.is_unfinished;
}

/* Returns the header at the beginning of the message that has arrived. */
static inline const struct dti_header *dti_header_arrived(const struct dti_peer *peer)
{
    return (const struct dti_header *)(const void *)peer->in[peer->next];
}

/* Returns true if a last header has arrived that was not taken, or if the receive has failed. */
static inline bool dti_header_is_last(const struct dti_peer *peer)
{
    return dti_header_has_arrived(peer) &&
           (peer->receive.status != DITTO_OK || dti_header_arrived(peer)->kind == DTI_HEADER_LAST);
}

/* -- header.c -- */

/* Begins to receive the next message of each host that this one listens to, unless it has begun. */
ditto_status dti_header_receive_all(ditto_cluster *cluster);

/* Takes the message that has arrived from a host, and begins to receive the next one. After a last header,
 * this is the first one of the next epoch. */
ditto_status dti_header_take(ditto_cluster *cluster, uint32_t host);

/* -- header_steps.c -- */

/* Returns the host at a place, from 1 to H - 1, as seen from this one. The hosts that send steps are in the
 * order of the steps. */
uint32_t dti_header_host_at(const ditto_cluster *cluster, uint32_t place);
/* Returns the host that sees this one at a place. */
uint32_t dti_header_host_before(const ditto_cluster *cluster, uint32_t place);

/* Returns the number of headers in the message that a host sends to this one in every exchange, or 0 if it
 * sends none. */
uint32_t dti_header_step_from(const ditto_cluster *cluster, uint32_t host);

/* Sends a question to the hosts to which this one sends steps, which always listen to it. */
ditto_status dti_header_send_question(ditto_cluster *cluster);

/* Sends the headers that the next step moves, if there is one. */
ditto_status dti_header_step_send(ditto_cluster *cluster);

/* Returns true if the message of the host was taken, and is that of the next step. */
bool dti_header_step_is_next(const ditto_cluster *cluster, uint32_t host);

/* Adds the headers of that message, and sends those of the next step. Fails with SYSTEM if the message is
 * damaged. */
ditto_status dti_header_step_add(ditto_cluster *cluster, uint32_t host);

/* -- last_words.c -- */

/* Begins the first epoch, or the next one. */
void dti_header_begin_epoch(ditto_cluster *cluster);

#endif
