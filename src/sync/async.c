/* src/sync/async.c - posts, pieces, consuming in order. Argued in async.h. */
#include "sync/async.h"
#include "sync/choose.h"
#include "sync/failure.h"
#include "sync/flow.h"
#include "sync/inside.h"

#include <string.h>

#define RING DITTO_MAX_PENDING
#define PIECE_BYTES \
    ((size_t)64 << 10)  /* of all destinations: long against a claim, short against a replica's patience */
#define MOST_PIECES 64u /* of a share */

static struct dti_attendee *attendee_of(const struct dti_replica *self)
{
    return &self->team->sync->attendee[self->id];
}

ditto_status dti_async_make(struct dti_replica *self, struct dti_sync *sync)
{
    struct dti_async *own;
    void *payload;
    DTI_TRY(dti_allocate(self, sizeof *own, &own));
    /* not touched before it is used: most strategies start few operations, and there may be a thousand replicas */
    DTI_TRY(dti_replica_alloc(self, RING * (size_t)DTI_SMALL_BYTES, DTI_LINE_PAIR, &payload));
    sync->attendee[self->id].payloads = payload;
    sync->attendee[self->id].async = own;
    return DITTO_OK;
}

void dti_async_renew(struct dti_attendee *attendee)
{
    struct dti_async *own = attendee->async;
    attendee->posted = attendee->consumed = 0;
    own->known_consumed = own->ready = own->opened = 0;
    atomic_store_explicit(&own->consumed, 0, memory_order_relaxed); /* the next run's go word publishes all this */
    for (uint32_t i = 0; i < RING; i++) {
        own->open[i].number = 0;
        atomic_store_explicit(&own->post[i].word, 0, memory_order_relaxed);
    }
}

/* -- an operation -- */

static bool is_posted(const struct dti_sync *sync, uint32_t replica, uint64_t number)
{
    return atomic_load_explicit(&dti_posting_of(sync, replica, number)->word, memory_order_acquire) >> 32 ==
           (uint32_t)number; /* P1 */
}

static bool is_small(const struct dti_sync *sync, const struct dti_size *size)
{
    return size->own <= DTI_SMALL_BYTES && size->read <= sync->tuning.given.small_bytes;
}

static struct dti_flow flow_of(struct dti_replica *self, uint64_t number)
{
    struct dti_sync *sync = self->team->sync;
    const struct dti_posting *own = dti_posting_of(sync, self->id, number);
    struct dti_flow flow = { .self = self,
                             .sync = sync,
                             .me = &sync->attendee[self->id],
                             .desk = &sync->attendee[self->id].desk,
                             .call = &own->call,
                             .posted = number,
                             .from_slots = own->small,
                             .payload_bytes = own->bytes };
    flow.reduction = dti_flow_reduction(sync, flow.call);
    return flow;
}

/* A small all-reduce of two plain values, straight away; false: it is something else. */
static bool combine_pair(struct dti_replica *self, uint64_t number)
{
    struct dti_sync *sync = self->team->sync;
    const struct dti_call *call = &dti_posting_of(sync, self->id, number)->call;
    const struct dti_kernel *kernel = &(*sync->kernels)[call->dtype][call->op];
    if (self->team->n != 2 || call->pattern != DTI_ALL_REDUCE || kernel->widen != NULL || kernel->divide != NULL)
        return false;
    size_t bytes = call->count * call->element_bytes;
    kernel->combine(call->dst, dti_posting_payload(sync, 0, number, bytes), dti_posting_payload(sync, 1, number, bytes),
                    call->count);
    return true;
}

static uint32_t pieces_of(const struct dti_flow *flow)
{
    struct dti_size size = dti_size_of(flow->call, flow->sync->team->n);
    size_t pieces = size.all / flow->sync->team->n / PIECE_BYTES;
    return pieces < 1 ? 1 : pieces > MOST_PIECES ? MOST_PIECES : (uint32_t)pieces;
}

/* Claims pieces of one share and works on them until there are none left. Inside. */
static void work_on_share(struct dti_flow *flow, uint32_t share, uint32_t pieces)
{
    struct dti_posting *post = dti_posting_of(flow->sync, share, flow->posted);
    uint64_t none_left = (uint64_t)flow->posted << 32 | pieces;
    /* relaxed: the claim decides who works, what is worked on was published by the post's word */
    uint64_t claim = atomic_load_explicit(&post->claim, memory_order_relaxed);
    while (claim >> 32 == (uint32_t)flow->posted && claim != none_left) {
        if (!atomic_compare_exchange_weak_explicit(&post->claim, &claim, claim + 1, memory_order_relaxed,
                                                   memory_order_relaxed))
            continue;
        size_t all = dti_flow_all_grains(flow), first, end, from, to;
        dti_tree_part(all, flow->sync->team->n, share, 1, &first, &end);
        dti_tree_part(end - first, pieces, (uint32_t)claim, 1, &from, &to);
        dti_flow_range(flow, first + from, first + to, 0, flow->sync->team->n);
        atomic_fetch_add_explicit(&post->done, 1, memory_order_release); /* W0 */
        claim = atomic_load_explicit(&post->claim, memory_order_relaxed);
    }
}

static bool all_pieces_done(const struct dti_flow *flow, uint32_t pieces)
{
    for (uint32_t i = 0; i < flow->sync->team->n; i++)
        if (atomic_load_explicit(&dti_posting_of(flow->sync, i, flow->posted)->done, memory_order_acquire) != /* W1 */
            ((uint64_t)flow->posted << 32 | pieces))
            return false;
    return true;
}

/* A ready operation as far as it goes; true: this replica's result is there. */
static bool work_on(struct dti_replica *self, uint64_t number)
{
    uint32_t n = self->team->n;
    if (dti_posting_of(self->team->sync, self->id, number)->small && combine_pair(self, number))
        return true;
    struct dti_flow flow = flow_of(self, number);
    if (flow.from_slots) {
        dti_flow_range(&flow, 0, dti_flow_all_grains(&flow), self->id, self->id + 1);
        return true;
    }
    uint32_t pieces = pieces_of(&flow);
    flow.streams = dti_size_of(flow.call, n).all >= self->team->sync->tuning.given.stream_bytes;
    if (!dti_go_inside(self))
        return false;
    for (uint32_t step = 0; step < n; step++)
        work_on_share(&flow, (self->id + step) % n, pieces);
    dti_go_outside(self);
    bool done = all_pieces_done(&flow, pieces);
    dti_waitroom_signal(&self->team->room, self->id); /* who waits for the last piece */
    return done;
}

/* What a replica posted is what this one posted. Of a small operation the digests in the words, which have been read anyway, are
 * enough; before anyone touches another one's buffer they are not. */
static bool is_same(const struct dti_replica *self, uint32_t replica, uint64_t number)
{
    const struct dti_posting *mine = dti_posting_of(self->team->sync, self->id, number);
    const struct dti_posting *theirs = dti_posting_of(self->team->sync, replica, number);
    return atomic_load_explicit(&mine->word, memory_order_relaxed) ==
               atomic_load_explicit(&theirs->word, memory_order_relaxed) &&
           (mine->small || dti_call_same(&mine->call, &theirs->call));
}

/* All replicas have posted the same. Looks at every post once. */
static bool is_ready(struct dti_replica *self, uint64_t number)
{
    struct dti_async *own = attendee_of(self)->async;
    if (own->ready >= number)
        return true;
    for (uint32_t i = 0; i < self->team->n; i++)
        if (!is_posted(self->team->sync, i, number) || !is_same(self, i, number))
            return false;
    own->ready = number;
    return true;
}

void dti_async_advance(struct dti_replica *self)
{
    struct dti_attendee *me = attendee_of(self);
    if (dti_stopped(&self->team->stop))
        return;
    struct dti_fenv saved = dti_fenv_enter();
    while (me->consumed != me->posted && is_ready(self, me->consumed + 1) && work_on(self, me->consumed + 1)) {
        me->consumed++;
        atomic_store_explicit(&me->async->consumed, me->consumed, memory_order_release); /* U0 */
        dti_waitroom_signal(&self->team->room, self->id);
    }
    dti_fenv_leave(saved);
}

/* -- what can go wrong -- */

static void describe(const struct dti_sync *sync, uint32_t replica, uint64_t number, char *words)
{
    struct dti_text text = { words, DTI_CALL_WORDS, 0 };
    dti_call_describe(&dti_posting_of(sync, replica, number)->call, number, &text);
}

/* Of all replicas, whoever stands in the way of `number`: one that posted something else (*different), or none. */
static uint32_t find_missing(const struct dti_replica *self, uint64_t number, bool *different)
{
    const struct dti_sync *sync = self->team->sync;
    *different = false;
    for (uint32_t i = 0; i < self->team->n; i++) {
        if (!is_posted(sync, i, number))
            return i;
        *different = !is_same(self, i, number);
        if (*different)
            return i;
    }
    return self->team->n;
}

/* It waits for us in a meeting that comes before what we wait for: it has started less. */
static bool is_ahead_in_meeting(const struct dti_replica *self, uint32_t replica)
{
    const struct dti_sync *sync = self->team->sync;
    uint32_t next = sync->attendee[self->id].seq + 1;
    return atomic_load_explicit(&dti_slot_of(sync, replica, next, 0)->word, memory_order_acquire) >> 32 == next;
}

/* The operation can never come to an end; with its error. DITTO_OK: it can. */
static ditto_status check_hope(struct dti_replica *self, uint64_t number)
{
    const struct dti_sync *sync = self->team->sync;
    bool different;
    uint32_t other = find_missing(self, number, &different);
    char mine[DTI_CALL_WORDS], theirs[DTI_CALL_WORDS + 100];
    struct dti_text text = { theirs, sizeof theirs, 0 };
    if (other == self->team->n)
        return DITTO_OK;
    bool returned = dti_replica_returned(&self->team->replica[other]), ahead = is_ahead_in_meeting(self, other);
    /* looked at again: it may have posted, and gone on, between the looks */
    if (!different && ((!returned && !ahead) || is_posted(sync, other, number)))
        return DITTO_OK;
    describe(sync, self->id, number, mine);
    if (different) {
        describe(sync, other, number, theirs);
        DTI_FAIL(DITTO_ERR_DIVERGED,
                 "replica %u started %s, but replica %u started %s: every replica must make the same "
                 "calls",
                 self->id, mine, other, theirs);
        dti_team_stop(self->team);
        return dti_team_stop_status(self->team);
    }
    dti_describe_replica(sync, other, &text);
    dti_text_add(&text, " has not started it");
    return dti_fail_left(self, mine, theirs);
}

static bool has_not_posted(const struct dti_sync *sync, uint32_t replica, uint64_t number)
{
    return !is_posted(sync, replica, number);
}

static ditto_status fail_late(struct dti_replica *self, uint64_t number, const struct dti_deadline *deadline)
{
    const struct dti_sync *sync = self->team->sync;
    char mine[DTI_CALL_WORDS], missing[DTI_MISSING_WORDS] = "";
    struct dti_text text = { missing, sizeof missing, 0 };
    describe(sync, self->id, number, mine);
    if (dti_describe_missing(sync, has_not_posted, number, &text) == 0)
        dti_text_add(&text, "its last pieces");
    return dti_fail_late(self, deadline, mine, missing);
}

/* -- waiting -- */

struct consumed_wait {
    struct dti_replica *self;
    uint64_t number;
    ditto_status hopeless;
};
static bool consumed_ready(void *argument)
{
    struct consumed_wait *w = argument;
    const struct dti_attendee *me = attendee_of(w->self);
    dti_async_advance(w->self);
    if (me->consumed >= w->number || dti_stopped(&w->self->team->stop))
        return true;
    w->hopeless = check_hope(w->self, me->consumed + 1);
    return w->hopeless != DITTO_OK;
}

ditto_status dti_async_wait(struct dti_replica *self, uint64_t number, struct dti_deadline *deadline)
{
    struct dti_team *team = self->team;
    struct dti_attendee *me = attendee_of(self);
    struct consumed_wait w = { self, number, DITTO_OK };
    if (dti_team_forked(team))
        return dti_fail_forked();
    bool ended = deadline != NULL
                     ? dti_wait(&team->room, self->id, DTI_EVERYONE, &self->patience, deadline, consumed_ready, &w)
                     : consumed_ready(&w);
    if (me->consumed >= number) {
        me->async->open[number % RING].number = 0;
        me->async->opened--;
        return DITTO_OK;
    }
    if (w.hopeless != DITTO_OK)
        return dti_leave(self, w.hopeless);
    if (dti_stopped(&team->stop))
        return dti_leave(self, dti_team_stop_status(team));
    return ended || deadline == NULL ? DITTO_PENDING : dti_leave(self, fail_late(self, me->consumed + 1, deadline));
}

uint32_t dti_async_open(const struct dti_replica *self, const char **name, uint64_t *number)
{
    const struct dti_async *own = attendee_of(self)->async;
    bool found = false;
    for (uint32_t i = 0; own->opened != 0 && i < RING; i++)
        if (own->open[i].number != 0 && (!found || own->open[i].number < *number)) {
            *number = own->open[i].number;
            *name = own->open[i].name;
            found = true;
        }
    return own->opened;
}

ditto_status dti_async_abandon(struct dti_replica *self, ditto_status status)
{
    struct dti_async *own = attendee_of(self)->async;
    dti_team_stop(self->team);
    status = dti_leave(self, status);
    for (uint32_t i = 0; i < RING; i++)
        own->open[i].number = 0;
    own->opened = 0;
    return status;
}

/* -- starting -- */

/* Everyone has consumed `number`, so that its place can be used again. */
struct room_wait {
    struct dti_replica *self;
    uint64_t number;
    uint32_t hopeless; /* it will not start what this one would; n: nobody */
};
static uint64_t least_consumed(const struct dti_replica *self)
{
    const struct dti_sync *sync = self->team->sync;
    uint64_t least = sync->attendee[self->id].posted;
    for (uint32_t i = 0; i < self->team->n; i++) {
        uint64_t consumed = atomic_load_explicit(&sync->attendee[i].async->consumed, memory_order_acquire); /* U1 */
        least = consumed < least ? consumed : least;
    }
    return least;
}
static bool place_is_free(struct dti_replica *self, uint64_t number)
{
    struct dti_async *own = attendee_of(self)->async;
    if (own->known_consumed >= number)
        return true;
    own->known_consumed = least_consumed(self); /* so that the others' lines are looked at rarely, not at each start */
    return own->known_consumed >= number;
}
static bool room_ready(void *argument)
{
    struct room_wait *w = argument;
    const struct dti_team *team = w->self->team;
    if (place_is_free(w->self, w->number) || dti_stopped(&team->stop))
        return true;
    dti_async_help(w->self);
    uint64_t next = attendee_of(w->self)->posted + 1;
    for (uint32_t i = 0; i < team->n; i++) /* posted is looked at last: it may post, and go on, between the looks */
        if ((dti_replica_returned(&team->replica[i]) || is_ahead_in_meeting(w->self, i)) &&
            !is_posted(team->sync, i, next)) {
            w->hopeless = i;
            return true;
        }
    return false;
}

static bool has_not_consumed(const struct dti_sync *sync, uint32_t replica, uint64_t number)
{
    return atomic_load_explicit(&sync->attendee[replica].async->consumed, memory_order_relaxed) < number;
}

/* Those who have not started the oldest operation that is not done, or else have not come to it. */
static void describe_slow(const struct dti_replica *self, struct dti_text *text)
{
    const struct dti_sync *sync = self->team->sync;
    uint64_t next = least_consumed(self) + 1;
    if (dti_describe_missing(sync, has_not_posted, next, text) == 0 &&
        dti_describe_missing(sync, has_not_consumed, next, text) == 0)
        dti_text_add(text, "a replica that has come meanwhile");
}

/* Until the place of `number`, which is one ring's length back, is free. */
static ditto_status await_room(struct dti_replica *self, uint64_t number, struct dti_deadline *deadline)
{
    struct dti_team *team = self->team;
    struct room_wait w = { self, number, team->n };
    bool ended = dti_wait(&team->room, self->id, DTI_EVERYONE, &self->patience, deadline, room_ready, &w);
    if (place_is_free(self, number))
        return DITTO_OK;
    if (dti_stopped(&team->stop))
        return dti_leave(self, dti_team_stop_status(team));
    char words[DTI_CALL_WORDS], who[DTI_MISSING_WORDS] = "";
    struct dti_text mine = { words, sizeof words, 0 }, text = { who, sizeof who, 0 };
    dti_text_add(&mine, "a start, for room: %d operations have been started since #%llu", RING,
                 (unsigned long long)number);
    if (!ended)
        describe_slow(self, &text);
    else
        dti_describe_replica(team->sync, w.hopeless, &text);
    return dti_leave(self, ended ? dti_fail_left(self, words, who) : dti_fail_late(self, deadline, words, who));
}

ditto_status dti_async_start(struct dti_replica *self, const struct dti_call *call, struct dti_deadline *deadline,
                             uint64_t *out)
{
    struct dti_team *team = self->team;
    struct dti_sync *sync = team->sync;
    struct dti_attendee *me = attendee_of(self);
    uint64_t number = me->posted + 1, before = number - RING;
    struct dti_posting *post = dti_posting_of(sync, self->id, number);
    struct dti_size size = dti_size_of(call, team->n);
    if (dti_stopped(&team->stop))
        return dti_leave(self, dti_team_stop_status(team));
    if (me->async->open[number % RING].number != 0)
        return DTI_FAIL(DITTO_ERR_RANGE,
                        "%s: %d operations have been started since %s #%llu, which is still open: wait for it first",
                        call->name, RING, me->async->open[number % RING].name, (unsigned long long)before);
    if (number > RING)
        DTI_TRY(await_room(self, before, deadline));
    dti_number_call(me, call->name);
    bool small = is_small(sync, &size);
    if (!dti_call_identical(&post->call, call) || post->small != small) { /* else the line stays with the peers */
        post->call = *call;
        post->bytes = size.own;
        post->small = small;
        post->digest = dti_call_digest(call);
    }
    if (small && size.own != 0)
        memcpy(dti_posting_payload(sync, self->id, number, size.own), call->src, size.own);
    if (!small) { /* relaxed: published by the word */
        atomic_store_explicit(&post->claim, (uint64_t)number << 32, memory_order_relaxed);
        atomic_store_explicit(&post->done, (uint64_t)number << 32, memory_order_relaxed);
    }
    atomic_store_explicit(&post->word, (uint64_t)number << 32 | post->digest, memory_order_release); /* P0 */
    dti_waitroom_signal(&team->room, self->id);
    me->posted = number;
    me->async->open[number % RING].number = number;
    me->async->open[number % RING].name = call->name;
    me->async->opened++;
    dti_finish_call(me);
    *out = number;
    return DITTO_OK;
}
