/* src/sync/algorithms/neighbours.c - replicas give data to each other. See neighbours.h.
 *
 * Every replica puts a head into its mailbox. If all that it gives fits too, its parts and their elements
 * follow. If this is so for all replicas, each takes what it receives out of the mailboxes of its partners,
 * and one meeting is enough. Otherwise the replicas read the buffers of their partners, and meet again. All
 * replicas read all heads, so all decide alike. */
#include "sync/algorithms/neighbours.h"
#include "base/errors/status.h"
#include "base/types/types.h"
#include "replicas/team/stopping.h"
#include "replicas/team/team.h"
#include "sync/algorithms/collective.h"
#include "sync/algorithms/flow.h"
#include "sync/algorithms/other_hosts.h"
#include "sync/meeting/access.h"
#include "sync/meeting/meeting.h"

#include <stdio.h>
#include <string.h>

/* The beginning of a payload. */
struct head {
    uint64_t parts; /* whose entries follow, if they fit */
    uint64_t fits;
};

/* A part in a payload. The elements of all parts follow the entries, each at a multiple of 8 bytes. */
struct entry {
    uint64_t count;
    uint32_t replica, tag, dtype, offset; /* offset of the elements in the payload */
};

#define MOST_ENTRIES ((DTI_PAYLOAD_BYTES - sizeof(struct head)) / sizeof(struct entry))

_Static_assert(sizeof(struct head) % 8 == 0 && sizeof(struct entry) % 8 == 0 && DTI_PAYLOAD_BYTES % 8 == 0,
               "elements begin at multiples of 8");

static size_t src_bytes(const ditto_exchange_part *part)
{
    return part->src_count * ditto_dtype_bytes(part->dtype);
}

static size_t dst_bytes(const ditto_exchange_part *part)
{
    return part->dst_count * ditto_dtype_bytes(part->dtype);
}

/* Returns the bytes that the elements of a part take in a payload, a multiple of 8. */
static size_t packed_bytes(const ditto_exchange_part *part)
{
    return (src_bytes(part) + 7) / 8 * 8;
}

/* Returns true if all parts fit a payload. */
static bool fits(const struct dti_exchange_list *list)
{
    size_t left = DTI_PAYLOAD_BYTES - sizeof(struct head);
    if (list->parts > MOST_ENTRIES)
        return false;
    left -= list->parts * sizeof(struct entry);
    for (size_t i = 0; i < list->parts; i++) {
        if (src_bytes(&list->part[i]) > left)
            return false;
        left -= packed_bytes(&list->part[i]); /* `left` is a multiple of 8 too */
    }
    return true;
}

/* Writes a payload. Returns its length. */
static size_t pack(const struct dti_exchange_list *list, unsigned char *out)
{
    struct head head = { .parts = list->parts, .fits = fits(list) };
    struct entry *entry = (struct entry *)(void *)(out + sizeof head);
    size_t used = sizeof head;
    memcpy(out, &head, sizeof head);
    if (head.fits == 0)
        return used;
    used += list->parts * sizeof *entry;
    for (size_t i = 0; i < list->parts; i++) {
        const ditto_exchange_part *part = &list->part[i];
        entry[i] = (struct entry){ part->src_count, part->replica, part->tag, (uint32_t)part->dtype,
                                   (uint32_t)used };
        if (part->src_count != 0)
            memcpy(out + used, part->src, src_bytes(part));
        used += packed_bytes(part);
    }
    return used;
}

static const unsigned char *payload_of(const struct dti_replica *self, uint32_t replica, uint32_t seq)
{
    const struct dti_sync *sync = self->sync;
    return replica == self->index ? sync->state[replica].own_payload
                                  : dti_mailbox_of(sync, replica, seq, 0)->payload;
}

static const struct head *head_of(const struct dti_replica *self, uint32_t replica, uint32_t seq)
{
    return (const struct head *)(const void *)payload_of(self, replica, seq);
}

/* Stops the run, because the partner's part is not what `part` of this replica's list expects. `found` is
 * NULL if there is none. */
static ditto_status fail_part(struct dti_replica *self, const struct dti_exchange_list *list,
                              const ditto_exchange_part *part, const struct entry *found)
{
    char theirs[100] = "has no such part", tag[24] = "";
    uint32_t partner = dti_id_of_rank(self, part->replica);
    if (found != NULL)
        snprintf(theirs, sizeof theirs, "gives %zu x %s", (size_t)found->count,
                 ditto_dtype_name((ditto_dtype)found->dtype));
    if (list->name == NULL)
        snprintf(tag, sizeof tag, " (tag %u)", part->tag);
    DTI_FAIL(DITTO_ERR_DIVERGED, "replica %u expects %zu x %s of replica %u in %s%s, but replica %u %s: %s",
             self->id, part->dst_count, ditto_dtype_name(part->dtype), partner,
             list->name != NULL ? list->name : "ditto_exchange", tag, partner, theirs,
             list->name != NULL ? "the src_counts of one replica are the dst_counts of the others"
                                : "a part of one replica belongs to a part of the other, with the same tag, "
                                  "count and dtype");
    dti_replica_stop(self);
    return DITTO_ERR_DIVERGED;
}

static bool fits_together(const ditto_exchange_part *part, const struct entry *found)
{
    return found != NULL && found->count == part->dst_count && found->dtype == (uint32_t)part->dtype;
}

/* Copies what the partner gives. */
static ditto_status take(struct dti_replica *self, const struct dti_exchange_list *list,
                         const ditto_exchange_part *part, const struct entry *found, const void *elements)
{
    if (!fits_together(part, found) || (elements == NULL && part->dst_count != 0))
        return fail_part(self, list, part, found);
    if (part->dst_count != 0 && part->dst != elements)
        memcpy(part->dst, elements, dst_bytes(part));
    return DITTO_OK;
}

/* -- from mailboxes -- */

static ditto_status take_from_mailboxes(struct dti_replica *self, const struct dti_exchange_list *list,
                                        uint32_t seq)
{
    for (size_t i = 0; i < list->parts; i++) {
        const ditto_exchange_part *part = &list->part[i];
        const unsigned char *payload = payload_of(self, part->replica, seq);
        const struct entry *entry = (const struct entry *)(const void *)(payload + sizeof(struct head));
        uint64_t k = 0, parts = head_of(self, part->replica, seq)->parts;
        /* The limits hold unless the payload is that of another call with the same digest. */
        parts = parts < MOST_ENTRIES ? parts : MOST_ENTRIES;
        while (k < parts && (entry[k].replica != self->rank || entry[k].tag != part->tag))
            k++;
        bool found = k < parts && entry[k].offset <= DTI_PAYLOAD_BYTES &&
                     dst_bytes(part) <= DTI_PAYLOAD_BYTES - entry[k].offset;
        DTI_TRY(
            take(self, list, part, k < parts ? &entry[k] : NULL, found ? payload + entry[k].offset : NULL));
    }
    return DITTO_OK;
}

/* -- from the buffers of partners -- */

void dti_swap_parts(void *to, const void *from, void *other_to, const void *other_from, size_t bytes)
{
    char tile[4096];
    for (size_t at = 0, length; at < bytes; at += length) {
        length = bytes - at < sizeof tile ? bytes - at : sizeof tile;
        memcpy(tile, (const char *)other_from + at, length);
        memcpy((char *)to + at, (const char *)from + at, length);
        memcpy((char *)other_to + at, tile, length);
    }
}

static bool is_in_place(const ditto_exchange_part *part)
{
    return part->src == part->dst && part->src_count != 0 && part->dst_count != 0;
}

/* Exchanges this replica's half of two parts that fit together, of which one is in place. */
static void swap_half(const struct dti_replica *self, const ditto_exchange_part *part,
                      const ditto_exchange_part *theirs)
{
    size_t element = ditto_dtype_bytes(part->dtype), half = part->dst_count / 2;
    bool is_lower = self->rank < part->replica;
    size_t at = is_lower ? 0 : half * element, count = is_lower ? half : part->dst_count - half;
    dti_swap_parts((char *)part->dst + at, (const char *)theirs->src + at, (char *)theirs->dst + at,
                   (const char *)part->src + at, count * element);
}

ditto_status dti_exchange_take(struct dti_replica *self, const struct dti_exchange_list *list,
                               const ditto_exchange_part *part, const struct dti_exchange_list *theirs)
{
    size_t k = 0;
    while (k < theirs->parts && (theirs->part[k].replica != self->rank || theirs->part[k].tag != part->tag))
        k++;
    if (k == theirs->parts)
        return take(self, list, part, NULL, NULL);
    const ditto_exchange_part *other = &theirs->part[k];
    struct entry found = { .count = other->src_count, .dtype = (uint32_t)other->dtype };
    if (part->replica == self->rank || !(is_in_place(part) || is_in_place(other)) ||
        !fits_together(part, &found))
        return take(self, list, part, &found, other->src);
    /* If this is not so, the other replica finds it, and fails. */
    if (other->dst_count == part->src_count && other->dst_count == part->dst_count)
        swap_half(self, part, other);
    return DITTO_OK;
}

static ditto_status take_from_buffers(struct dti_replica *self, const struct dti_exchange_list *list,
                                      uint32_t seq)
{
    for (size_t i = 0; i < list->parts; i++)
        DTI_TRY(dti_exchange_take(self, list, &list->part[i],
                                  dti_call_of(self->sync, list->part[i].replica, seq)->more));
    return DITTO_OK;
}

/* -- a call as an exchange -- */

/* The parts of a source or a destination. */
struct side {
    const char *name;
    const char *data;
    bool is_cut; /* true if it has a part for each replica */
    const size_t *counts, *offsets;
    size_t next; /* the first element after the parts so far */
};

/* Finds part `i` of a side. Elements of an empty part have no address. */
static ditto_status find_part(const struct dti_replica *self, const struct dti_call *call, struct side *side,
                              uint32_t i, const void **data, size_t *count)
{
    size_t first = side->is_cut && side->offsets != NULL ? side->offsets[i] : side->next, end, bytes;
    *count = side->counts == NULL ? call->count : side->counts[side->is_cut ? i : self->rank];
    if (__builtin_add_overflow(first, *count, &end) || !dti_multiply(end, call->element_bytes, &bytes))
        return DTI_FAIL(
            DITTO_ERR_RANGE,
            "part %u of %s, %zu elements from element %zu on, ends beyond what a size_t can count", i,
            side->name, *count, first);
    DTI_TRY(dti_buffer_check(side->data, *count * call->element_bytes, (ditto_dtype)call->dtype, side->name));
    side->next = side->is_cut ? end : 0;
    *data = *count != 0 ? side->data + first * call->element_bytes : NULL;
    return DITTO_OK;
}

ditto_status dti_exchange_list_parts(const struct dti_replica *self, const struct dti_call *call,
                                     const ditto_all_to_all_parts *sizes, ditto_exchange_part *out,
                                     size_t *parts)
{
    const ditto_all_to_all_parts equal = { NULL, NULL, NULL, NULL };
    sizes = sizes != NULL ? sizes : &equal;
    const struct dti_flow_shape *shape = dti_flow_shape(call);
    struct side from = { "src", call->src, shape->cuts_src, sizes->src_counts, sizes->src_offsets, 0 },
                to = { "dst", call->dst, shape->cuts_dst, sizes->dst_counts, sizes->dst_offsets, 0 };
    bool from_root = shape->from == DTI_END_ROOT, to_root = shape->to == DTI_END_ROOT,
         is_root = self->rank == call->root;
    *parts = 0;
    for (uint32_t i = 0; i < self->all_replicas; i++) {
        bool gives = from_root ? is_root : !to_root || i == call->root,
             takes = to_root ? is_root : !from_root || i == call->root;
        ditto_exchange_part part = { .replica = i, .dtype = (ditto_dtype)call->dtype };
        const void *dst = NULL;
        if (gives)
            DTI_TRY(find_part(self, call, &from, i, &part.src, &part.src_count));
        if (takes)
            DTI_TRY(find_part(self, call, &to, i, &dst, &part.dst_count));
        part.dst = (void *)(uintptr_t)dst;
        if (gives || takes)
            out[(*parts)++] = part;
    }
    return DITTO_OK;
}

/* -- both -- */

static ditto_status exchange(struct dti_replica *self, const struct dti_call *call,
                             const struct dti_exchange_list *list, struct dti_deadline *deadline)
{
    unsigned char *own = self->sync->state[self->index].own_payload;
    struct dti_arrival arrival = { .call = call, .payload = own, .payload_bytes = pack(list, own) };
    uint32_t seq, second_seq;
    /* A shorter payload of a call with a dtype would be put elsewhere (dti_mailbox_payload). */
    if (arrival.payload_bytes <= DTI_INLINE_PAYLOAD_BYTES && call->dtype != 0)
        arrival.payload_bytes = DTI_INLINE_PAYLOAD_BYTES + 1;
    arrival.next_bytes = arrival.payload_bytes;
    DTI_TRY(dti_meet(self, &arrival, deadline, &seq));
    bool all_fit = true;
    for (uint32_t i = 0; i < self->num_replicas; i++)
        all_fit &= head_of(self, i, seq)->fits != 0;
    if (all_fit) {
        ditto_status status = take_from_mailboxes(self, list, seq);
        return status == DITTO_OK ? status : dti_leave_collective(self, status);
    }
    DTI_TRY(dti_meeting_compare(self, seq));
    if (!dti_access_begin(self))
        return dti_leave_collective(self, dti_team_stop_status(self->team));
    ditto_status status = take_from_buffers(self, list, seq);
    dti_access_end(self);
    if (status != DITTO_OK)
        return dti_leave_collective(self, status);
    /* As in dti_collective_with_access, the second meeting has its own deadline. */
    *deadline = dti_replica_deadline(self, deadline->timeout_ms);
    arrival = (struct dti_arrival){ .call = call, .next_bytes = arrival.next_bytes, .goes_on = true };
    return dti_meet(self, &arrival, deadline, &second_seq);
}

ditto_status dti_exchange_parts(struct dti_replica *self, struct dti_call *call,
                                const struct dti_exchange_list *list, struct dti_deadline *deadline)
{
    call->more = list;
    dti_call_begins(self, call);
    ditto_status status = self->sync->hosts == NULL ? exchange(self, call, list, deadline)
                                                    : dti_exchange_on_hosts(self, call, list, deadline);
    dti_call_ends(self, call);
    return status;
}
