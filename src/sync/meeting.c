/* src/sync/meeting.c - arriving, waiting, and what can go wrong meanwhile. The argument is in meeting.h. */
#include "sync/meeting.h"

#include <ditto/collective.h>

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* -- words for messages -- */

static void describe_call(char *text, size_t size, const struct dti_line *line, uint32_t seq)
{
    struct dti_text out = { text, size, 0 };
    const struct dti_call *call = &line->call;
    dti_text_add(&out, "%s #%u", call->name, seq);
    if (call->dtype != 0)
        dti_text_add(&out, " (%zu x %s, %s)", call->count, ditto_dtype_name((ditto_dtype)call->dtype),
                     call->op != 0 ? ditto_op_name((ditto_op)call->op) : "no op");
    if (call->object != NULL)
        dti_text_add(&out, " on \"%s\"", call->object);
}

static uint64_t word_of(const struct dti_sync *sync, uint32_t replica, uint32_t seq)
{
    return atomic_load_explicit(&dti_line_of(sync, replica, seq)->word, memory_order_acquire); /* M1 */
}

static bool arrived_flat(const struct dti_sync *sync, uint32_t replica, uint32_t seq)
{
    return word_of(sync, replica, seq) >> 32 == seq;
}

/* The replicas that have not come to `seq` (of those, if asked, only the ones that will not come any more), each with what
 * it did last. Their words may change meanwhile: a diagnosis. */
static void describe_missing(char *text, size_t size, const struct dti_sync *sync, uint32_t seq, bool returned_only)
{
    struct dti_text out = { text, size, 0 };
    text[0] = '\0';
    for (uint32_t i = 0; i < sync->team->n; i++) {
        const struct dti_attendee *a = &sync->attendee[i];
        bool returned = dti_replica_returned(&sync->team->replica[i]);
        if (arrived_flat(sync, i, seq) || (returned_only && !returned))
            continue;
        const char *last = atomic_load_explicit(&a->last_name, memory_order_relaxed);
        uint32_t last_seq = atomic_load_explicit(&a->last_seq, memory_order_relaxed);
        dti_text_add(&out, "%sreplica %u (", out.length != 0 ? ", " : "", i);
        if (returned)
            dti_text_add(&out, "returned from its function; ");
        if (last != NULL)
            dti_text_add(&out, "last in %s #%u)", last, last_seq);
        else
            dti_text_add(&out, "in no collective yet)");
    }
}

/* -- the ways a meeting fails; each stops the run -- */

static ditto_status fail_left(struct dti_replica *self, uint32_t seq)
{
    const struct dti_sync *sync = self->team->sync;
    char mine[160], missing[256];
    describe_call(mine, sizeof mine, dti_line_of(sync, self->id, seq), seq);
    describe_missing(missing, sizeof missing, sync, seq, true);
    while (missing[0] == '\0') { /* crowded: it has counted itself as returned, and is about to say that it is done */
        if (dti_stopped(&self->team->stop))
            return dti_team_stop_status(self->team);
        sched_yield();
        describe_missing(missing, sizeof missing, sync, seq, true);
    }
    DTI_FAIL(DITTO_ERR_DIVERGED, "replica %u waits in %s, but %s: every replica must make the same calls", self->id,
             mine, missing);
    dti_team_stop(self->team);
    return dti_team_stop_status(self->team);
}

static ditto_status fail_late(struct dti_replica *self, uint32_t seq, const struct dti_deadline *deadline)
{
    const struct dti_sync *sync = self->team->sync;
    char mine[160], missing[256];
    describe_call(mine, sizeof mine, dti_line_of(sync, self->id, seq), seq);
    describe_missing(missing, sizeof missing, sync, seq, false);
    DTI_FAIL(DITTO_ERR_TIMED_OUT, "replica %u waited %u ms in %s for %s", self->id, deadline->timeout_ms, mine,
             missing);
    ditto_error own = *dti_error_get();
    dti_team_stop(self->team);
    dti_error_set(&own); /* its own timeout, even if a peer's came first */
    return DITTO_ERR_TIMED_OUT;
}

static ditto_status fail_different(struct dti_replica *self, uint32_t a, uint32_t b, uint32_t seq)
{
    const struct dti_sync *sync = self->team->sync;
    char one[160], other[160];
    describe_call(one, sizeof one, dti_line_of(sync, a, seq), seq);
    describe_call(other, sizeof other, dti_line_of(sync, b, seq), seq);
    DTI_FAIL(DITTO_ERR_DIVERGED, "replica %u calls %s, but replica %u calls %s: every replica must make the same calls",
             a, one, b, other);
    dti_team_stop(self->team);
    return dti_team_stop_status(self->team);
}

static bool same_call(const struct dti_call *a, const struct dti_call *b)
{
    return a->name == b->name && a->object == b->object && a->count == b->count && a->dtype == b->dtype &&
           a->op == b->op;
}

ditto_status dti_meeting_compare(struct dti_replica *self, uint32_t seq)
{
    const struct dti_sync *sync = self->team->sync;
    for (uint32_t i = 1; i < self->team->n; i++)
        if (!same_call(&dti_line_of(sync, 0, seq)->call, &dti_line_of(sync, i, seq)->call))
            return fail_different(self, 0, i, seq);
    return DITTO_OK;
}

/* -- flat: everyone watches everyone -- */

struct flat_wait {
    const struct dti_sync *sync;
    uint32_t peer, seq;
};
static bool flat_ready(void *argument)
{
    const struct flat_wait *w = argument;
    const struct dti_team *team = w->sync->team;
    return arrived_flat(w->sync, w->peer, w->seq) || dti_stopped(&team->stop) ||
           dti_replica_returned(&team->replica[w->peer]);
}

static ditto_status meet_flat(struct dti_replica *self, uint64_t word, struct dti_deadline *deadline)
{
    struct dti_team *team = self->team;
    struct dti_sync *sync = team->sync;
    uint32_t seq = (uint32_t)(word >> 32);
    atomic_store_explicit(&sync->attendee[self->id].line[seq & 1].word, word, memory_order_release); /* M0 */
    dti_waitroom_signal(&team->room, self->id);
    for (uint32_t step = 1; step < team->n; step++) {
        uint32_t peer = self->id + step < team->n ? self->id + step : self->id + step - team->n;
        struct flat_wait w = { sync, peer, seq };
        if (!dti_wait(&team->room, self->id, peer, &self->patience, deadline, flat_ready, &w))
            return fail_late(self, seq, deadline);
        /* Looked at again: the peer may have come, finished the meeting and returned between two looks. */
        uint64_t theirs = word_of(sync, peer, seq);
        if (theirs == word)
            continue;
        if (theirs >> 32 == seq)
            return fail_different(self, self->id < peer ? self->id : peer, self->id < peer ? peer : self->id, seq);
        return dti_stopped(&team->stop) ? dti_team_stop_status(team) : fail_left(self, seq);
    }
    return DITTO_OK;
}

/* -- crowded: one counter, one release -- */

struct crowded_wait {
    const struct dti_sync *sync;
    uint32_t seq;
};
static bool released(const struct dti_sync *sync, uint32_t seq)
{
    return atomic_load_explicit(&sync->release, memory_order_acquire) == seq; /* C3 */
}
static bool crowded_ready(void *argument)
{
    const struct crowded_wait *w = argument;
    const struct dti_team *team = w->sync->team;
    /* acquire: whoever has returned after this meeting has seen its release, and then so do we in meet_crowded */
    return released(w->sync, w->seq) || dti_stopped(&team->stop) ||
           atomic_load_explicit(&team->returned, memory_order_acquire) != 0;
}

static ditto_status lead_crowded(struct dti_replica *self, void (*combine)(struct dti_sync *, uint32_t), uint32_t seq)
{
    struct dti_team *team = self->team;
    struct dti_sync *sync = team->sync;
    for (uint32_t i = 1; i < team->n; i++)
        if (word_of(sync, i, seq) != word_of(sync, 0, seq))
            return fail_different(self, 0, i, seq);
    if (combine != NULL)
        combine(sync, seq);
    /* relaxed: nobody touches arrived again before C3, and C3 comes after this store (I3) */
    atomic_store_explicit(&sync->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&sync->release, seq, memory_order_release); /* C2 */
    dti_waitroom_signal(&team->room, DTI_AWAITS_MEETING(team));
    return DITTO_OK;
}

static ditto_status meet_crowded(struct dti_replica *self, void (*combine)(struct dti_sync *, uint32_t), uint64_t word,
                                 struct dti_deadline *deadline)
{
    struct dti_team *team = self->team;
    struct dti_sync *sync = team->sync;
    uint32_t seq = (uint32_t)(word >> 32);
    struct crowded_wait w = { sync, seq };
    /* release: for describe_missing, which looks at lines here too; the order of the meeting comes from C0 */
    atomic_store_explicit(&sync->attendee[self->id].line[seq & 1].word, word, memory_order_release);
    /* acq_rel: release is C0, acquire is C1 */
    if (atomic_fetch_add_explicit(&sync->arrived, 1, memory_order_acq_rel) == team->n - 1)
        return lead_crowded(self, combine, seq);
    if (!dti_wait(&team->room, self->id, DTI_AWAITS_MEETING(team), &self->patience, deadline, crowded_ready, &w))
        return fail_late(self, seq, deadline);
    if (released(sync, seq))
        return DITTO_OK;
    return dti_stopped(&team->stop) ? dti_team_stop_status(team) : fail_left(self, seq);
}

/* -- both -- */

/* 32 bits of all that must be equal. Multiplication by odd constants, folded: every field reaches every bit. */
static uint32_t digest(const struct dti_call *c)
{
    uint64_t d = (uint64_t)(uintptr_t)c->name * 0x9e3779b97f4a7c15u;
    d ^= ((uint64_t)(uintptr_t)c->object + c->count) * 0xc2b2ae3d27d4eb4fu;
    d = (d ^ d >> 29 ^ (uint64_t)c->dtype << 8 ^ c->op) * 0x165667b19e3779f9u;
    return (uint32_t)(d >> 32);
}

/* Writes only what has changed: in a loop of equal calls the line stays clean, and with the peers. Gives the digest. */
static uint32_t announce(struct dti_line *line, const struct dti_call *call)
{
    if (line->call.name == NULL || !same_call(&line->call, call)) {
        line->call = *call;
        line->digest = digest(call);
    } else if (line->call.src != call->src || line->call.dst != call->dst) {
        line->call = *call;
    }
    return line->digest;
}

ditto_status dti_meet(struct dti_replica *self, const struct dti_call *call, const void *payload, size_t payload_bytes,
                      void (*combine)(struct dti_sync *sync, uint32_t seq), struct dti_deadline *deadline,
                      uint32_t *seq)
{
    struct dti_team *team = self->team;
    struct dti_attendee *me = &team->sync->attendee[self->id];
    if (dti_stopped(&team->stop)) /* before anything is written: lines of an unfinished meeting stay as they are */
        return dti_team_stop_status(team);
    if (dti_team_forked(team)) /* a function that forked: its peers are not in the child */
        return dti_fail_forked();
    uint32_t number = me->seq + 1;
    struct dti_line *line = &me->line[number & 1];
    me->seq = number;
    atomic_store_explicit(&me->last_seq, number, memory_order_relaxed); /* read for diagnosis alone */
    atomic_store_explicit(&me->last_name, call->name, memory_order_relaxed);
    uint64_t word = (uint64_t)number << 32 | announce(line, call);
    if (payload_bytes != 0)
        memcpy(payload_bytes <= DTI_INLINE_BYTES ? line->brief : line->payload, payload, payload_bytes);
    *seq = number;
    return team->crowded ? meet_crowded(self, combine, word, deadline) : meet_flat(self, word, deadline);
}
