/* src/sync/meeting/meeting.c - arrival at a meeting, the wait, and the errors of a meeting. See meeting.h. */
#include "sync/meeting/meeting.h"
#include "base/waiting/stop.h"
#include "replicas/team/recorder.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"
#include "sync/meeting/access.h"
#include "sync/meeting/circle.h"
#include "sync/meeting/failure.h"
#include "sync/meeting/pending_ring.h"

#include <sched.h>
#include <string.h>

/* -- texts for messages -- */

static void describe_call(char *description, const struct dti_sync *sync, uint32_t replica, uint32_t seq)
{
    struct dti_text text = { description, DTI_CALL_TEXT_BYTES, 0 };
    const struct dti_replica_state *reported = &sync->whole->state[sync->replica[replica].place];
    dti_call_describe(dti_call_of(sync, replica, seq),
                      atomic_load_explicit(&reported->number, memory_order_relaxed), &text);
    dti_text_add(&text, "%s", sync->group_text);
}

static uint64_t word_of(const struct dti_sync *sync, uint32_t replica, uint32_t seq, uint32_t round)
{
    /* M1 */
    return atomic_load_explicit(&dti_mailbox_of(sync, replica, seq, round)->word, memory_order_acquire);
}

bool dti_has_not_arrived(const struct dti_sync *sync, uint32_t replica, uint64_t seq)
{
    return dti_number_is_before(word_of(sync, replica, (uint32_t)seq, 0) >> 32, seq);
}
static bool will_not_arrive(const struct dti_sync *sync, uint32_t replica, uint64_t seq)
{
    return dti_has_not_arrived(sync, replica, seq) && dti_replica_returned(&sync->replica[replica]);
}

/* -- the errors of a meeting -- */

static ditto_status fail_left(struct dti_replica *self, uint32_t seq)
{
    const struct dti_sync *sync = self->sync;
    char mine[DTI_CALL_TEXT_BYTES], missing[DTI_MISSING_TEXT_BYTES] = "";
    struct dti_text text = { missing, sizeof missing, 0 };
    describe_call(mine, sync, self->index, seq);
    while (dti_describe_missing(sync, will_not_arrive, seq, &text) == 0) {
        /* In a meeting by counter, a replica has been counted as returned and is about to store its done
         * number. */
        if (dti_stopped(self->stop))
            return dti_team_stop_status(self->team);
        sched_yield();
    }
    return dti_fail_left(self, mine, missing);
}

static ditto_status fail_late(struct dti_replica *self, uint32_t seq, const struct dti_deadline *deadline)
{
    const struct dti_sync *sync = self->sync;
    char mine[DTI_CALL_TEXT_BYTES], missing[DTI_MISSING_TEXT_BYTES] = "";
    struct dti_text text = { missing, sizeof missing, 0 };
    describe_call(mine, sync, self->index, seq);
    if (dti_describe_missing(sync, dti_has_not_arrived, seq, &text) == 0)
        dti_text_add(&text, "a replica that has arrived since");
    return dti_fail_late(self, deadline, mine, missing);
}

static ditto_status fail_different(struct dti_replica *self, uint32_t a, uint32_t b, uint32_t seq)
{
    const struct dti_sync *sync = self->sync;
    const struct dti_call *one = dti_call_of(sync, a, seq), *other = dti_call_of(sync, b, seq);
    char description[DTI_CALL_TEXT_BYTES], others[DTI_CALL_TEXT_BYTES], where[DTI_CALL_TEXT_BYTES] = "";
    struct dti_text text = { where, sizeof where, 0 };
    /* While this replica has access, the labels and lists of both calls can be read, because neither replica
     * leaves. */
    if (!dti_access_begin(self))
        return dti_team_stop_status(self->team);
    describe_call(description, sync, a, seq);
    describe_call(others, sync, b, seq);
    if (dti_call_same(one, other))
        dti_text_add(&text, " (after a different number of started operations)");
    else
        dti_call_difference(one, other, self->num_replicas, &text);
    dti_access_end(self);
    DTI_FAIL(DITTO_ERR_DIVERGED,
             "replica %u calls %s, but replica %u calls %s%s: every %s must make the same calls",
             dti_replica_peer(self, a)->id, description, dti_replica_peer(self, b)->id, others, where,
             dti_participant(sync));
    dti_replica_stop(self);
    return dti_team_stop_status(self->team);
}

static ditto_status fail_shared(struct dti_replica *self, uint32_t other, uint32_t seq)
{
    char description[DTI_CALL_TEXT_BYTES];
    describe_call(description, self->sync, self->index, seq);
    DTI_FAIL(DITTO_ERR_INVALID,
             "replicas %u and %u give the same destination (%p) to %s: each needs its own buffer", self->id,
             dti_replica_peer(self, other)->id, dti_call_of(self->sync, other, seq)->dst, description);
    dti_replica_stop(self);
    return DITTO_ERR_INVALID;
}

ditto_status dti_meeting_compare(struct dti_replica *self, uint32_t seq)
{
    const struct dti_sync *sync = self->sync;
    const struct dti_call *mine = dti_call_of(sync, self->index, seq);
    bool own_results = mine->count != 0 && mine->dst != NULL &&
                       (mine->pattern == DTI_PATTERN_ALL_REDUCE || mine->pattern == DTI_PATTERN_BROADCAST ||
                        mine->pattern == DTI_PATTERN_SCATTER || mine->pattern == DTI_PATTERN_ALL_TO_ALL ||
                        dti_call_scans(mine));
    for (uint32_t i = 0; i < self->num_replicas; i++) {
        const struct dti_call *theirs = dti_call_of(sync, i, seq);
        if (!dti_call_same(dti_call_of(sync, 0, seq), theirs))
            return dti_leave_collective(self, fail_different(self, 0, i, seq));
        if (own_results && i != self->index && theirs->dst == mine->dst)
            return dti_leave_collective(self, fail_shared(self, i, seq));
    }
    return DITTO_OK;
}

/* -- in rounds -- */

struct round_wait {
    struct dti_replica *self;
    uint32_t peer, seq, round;

    /* The word that the peer's first mailbox must hold if it holds a word of this meeting. */
    uint64_t first_word;
};

static bool is_other_call(const struct round_wait *w, uint64_t first)
{
    return first >> 32 == w->seq && first != w->first_word;
}

static bool round_ready(void *argument)
{
    const struct round_wait *w = argument;
    if (word_of(w->self->sync, w->peer, w->seq, w->round) >> 32 == w->seq || dti_stopped(w->self->stop) ||
        dti_replica_returned(dti_replica_peer(w->self, w->peer)))
        return true;
    dti_pending_help(w->self);
    /* A replica that meets by counter writes only its first mailbox. */
    return w->round != 0 && is_other_call(w, word_of(w->self->sync, w->peer, w->seq, 0));
}

/* The wait has ended without the word that was awaited. The peer's word is `theirs`. */
static ditto_status fail_awaited(const struct round_wait *w, uint64_t theirs)
{
    struct dti_replica *self = w->self;
    if (theirs >> 32 == w->seq || is_other_call(w, word_of(self->sync, w->peer, w->seq, 0)))
        return fail_different(self, self->index < w->peer ? self->index : w->peer,
                              self->index < w->peer ? w->peer : self->index, w->seq);
    return dti_stopped(self->stop) ? dti_team_stop_status(self->team) : fail_left(self, w->seq);
}

static ditto_status meet_in_rounds(struct dti_replica *self, const struct dti_arrival *arrival, uint64_t word,
                                   struct dti_deadline *deadline)
{
    struct dti_sync *sync = self->sync;
    struct dti_replica_state *me = &sync->state[self->index];
    const struct dti_rounds_view *route = &me->route[arrival->call->implementation];
    uint32_t seq = (uint32_t)(word >> 32);
    for (uint32_t round = 0; round < route->rounds; round++) {
        const struct dti_round_view *view = &route->view[round];
        /* M0 */
        atomic_store_explicit(&dti_mailbox_of(sync, self->index, seq, round)->word, word,
                              memory_order_release);
        dti_wait_queue_signal(self->wait_queue, self->place);
        /* Waits for the representatives of the sibling blocks. Starts after the replica's own block, so that
         * the watching replicas spread over the cache lines. */
        for (uint32_t k = 1; k < view->count; k++) {
            uint32_t block = view->own + k < view->count ? view->own + k : view->own + k - view->count;
            uint32_t peer = dti_round_representative(view, block);
            struct round_wait w = { self, peer, seq, round, word };
            if (!dti_await(self, dti_replica_peer(self, peer)->place, deadline, round_ready, &w,
                           dti_has_not_arrived, seq))
                return fail_late(self, seq, deadline);
            /* The word is read again, because the peer may have come, finished the meeting and returned
             * between two checks. */
            uint64_t theirs = word_of(sync, peer, seq, round);
            if (theirs != word)
                return fail_awaited(&w, theirs);
            if (dti_is_far(sync, self->index, peer))
                me->workspace.counters.hops_far++;
            else
                me->workspace.counters.hops_near++;
        }
        if (arrival->join != NULL)
            arrival->join(self, seq, round, arrival);
    }
    /* Prefetches the first mailbox of the next meeting. Peers have had its cache lines since the meeting
     * before this one. */
    struct dti_mailbox *next = dti_mailbox_of(sync, self->index, seq + 1, 0);
    dti_fetch_to_write(next, DTI_CACHE_LINE);
    if (arrival->next_bytes > DTI_INLINE_PAYLOAD_BYTES)
        dti_fetch_to_write(next->payload, arrival->next_bytes);
    return DITTO_OK;
}

/* -- by counter: one counter, one release -- */

struct counter_wait {
    struct dti_replica *self;
    uint64_t seq;
};
static bool released(const struct dti_sync *sync, uint64_t seq)
{
    return atomic_load_explicit(&sync->release, memory_order_acquire) == seq; /* C3 */
}
/* A replica has returned from the run. Returns true if the meeting needs it. Replicas that are not in the
 * group do not matter. */
static bool will_be_incomplete(const struct dti_sync *sync, uint64_t seq)
{
    uint32_t i = 0;
    while (sync != sync->whole && i < sync->num_replicas && !will_not_arrive(sync, i, (uint32_t)seq))
        i++;
    return i < sync->num_replicas;
}
static bool counter_ready(void *argument)
{
    const struct counter_wait *w = argument;
    const struct dti_team *team = w->self->team;
    dti_pending_help(w->self);
    /* dti_team_any_returned is an acquire. A replica that has returned after this meeting has seen its
     * release. This replica then sees the release too, in meet_by_counter. */
    return released(w->self->sync, w->seq) || dti_stopped(w->self->stop) ||
           (dti_team_any_returned(team) && will_be_incomplete(w->self->sync, w->seq));
}

static ditto_status release_by_counter(struct dti_replica *self, const struct dti_arrival *arrival,
                                       uint64_t number)
{
    struct dti_sync *sync = self->sync;
    uint32_t seq = (uint32_t)number;
    for (uint32_t i = 1; i < self->num_replicas; i++)
        if (word_of(sync, i, seq, 0) != word_of(sync, 0, seq, 0))
            return fail_different(self, 0, i, seq);
    if (arrival->join != NULL)
        arrival->join(self, seq, 0, arrival);
    /* relaxed: no replica touches arrived again before C3, and C3 comes after this store (I3) */
    atomic_store_explicit(&sync->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&sync->release, number, memory_order_release); /* C2 */
    dti_wait_queue_signal(self->wait_queue, DTI_AWAITS_MEETING(sync->whole->num_replicas));
    return DITTO_OK;
}

static ditto_status meet_by_counter(struct dti_replica *self, const struct dti_arrival *arrival,
                                    uint64_t word, struct dti_deadline *deadline)
{
    struct dti_team *team = self->team;
    struct dti_sync *sync = self->sync;
    uint32_t seq = (uint32_t)(word >> 32);
    uint64_t number = sync->state[self->index].seq;
    struct counter_wait w = { self, number };
    /* release: for replicas that wait elsewhere and for messages, which read the word and then the call. The
     * meeting itself is ordered by C0. */
    atomic_store_explicit(&dti_mailbox_of(sync, self->index, seq, 0)->word, word, memory_order_release);
    /* A replica that waits for this one in a started operation or in a meeting in rounds sees that the calls
     * have diverged. */
    dti_wait_queue_signal(self->wait_queue, self->place);
    sync->state[self->index].workspace.counters.hops_near++;
    /* acq_rel: release is C0, acquire is C1 */
    if (atomic_fetch_add_explicit(&sync->arrived, 1, memory_order_acq_rel) == self->num_replicas - 1)
        return release_by_counter(self, arrival, number);
    if (!dti_await(self, DTI_AWAITS_MEETING(sync->whole->num_replicas), deadline, counter_ready, &w,
                   dti_has_not_arrived, seq))
        return fail_late(self, seq, deadline);
    if (released(sync, number))
        return DITTO_OK;
    return dti_stopped(self->stop) ? dti_team_stop_status(team) : fail_left(self, seq);
}

/* -- both -- */

/* Writes only what has changed. In a loop of equal calls the cache lines of the announcement stay clean, and
 * stay with the peers. Returns the digest. */
static uint32_t announce(struct dti_call *announced, const struct dti_call *call)
{
    if (call->known_number != 0) {
        if (announced->known_number != call->known_number)
            *announced = *call;
        return call->digest;
    }
    if (!dti_call_identical(announced, call)) {
        uint32_t digest = dti_call_same(announced, call) ? announced->digest : dti_call_digest(call);
        *announced = *call;
        announced->digest = digest;
    }
    return announced->digest;
}

/* Words are refreshed every REFRESH_EVERY meetings. A word is old if its number is more than OLD below the
 * number of the present meeting. */
#define REFRESH_EVERY 256u
#define OLD           65536u

/* I4. `word` belongs to this replica. Peers wait for the word of the present meeting, so no peer waits for an
 * old word. */
static void refresh_word(_Atomic uint64_t *word, uint32_t number)
{
    /* relaxed, both: only this replica writes the word, and no later meeting has the number that is
     * written. */
    uint32_t held = (uint32_t)(atomic_load_explicit(word, memory_order_relaxed) >> 32);
    if (number - held > OLD)
        atomic_store_explicit(word, (uint64_t)(number - OLD) << 32, memory_order_relaxed);
}

static void refresh_words(struct dti_replica *self, uint32_t number)
{
    const struct dti_sync *sync = self->sync;
    for (uint32_t s = 0; s < 2 * sync->most_rounds; s++)
        refresh_word(&sync->state[self->index].mailbox[s].word, number);
    dti_exchange_buffers_refresh(self, number, refresh_word);
}

ditto_status dti_meet(struct dti_replica *self, const struct dti_arrival *arrival,
                      struct dti_deadline *deadline, uint32_t *seq)
{
    struct dti_team *team = self->team;
    struct dti_replica_state *me = &self->sync->state[self->index];
    /* The stop word is checked before anything is written, so that the mailboxes of an unfinished meeting
     * stay unchanged. */
    if (dti_stopped(self->stop))
        return dti_leave_collective(self, dti_team_stop_status(team));
    /* A function has forked, and this is the child process. The replica has no peers in it. */
    if (dti_replica_is_forked(self))
        return dti_fail_forked();
    uint32_t number = (uint32_t)++me->seq;
    if (number % REFRESH_EVERY == 0)
        refresh_words(self, number);
    if (!arrival->goes_on)
        dti_number_call(dti_reported_state(self), arrival->call);
    uint32_t digest = announce(&me->announcement[number & 1].call, arrival->call);
    /* The number of operations that were started before must agree too. */
    uint64_t word = (uint64_t)number << 32 | (digest ^ (uint32_t)me->started * 0x9e3779b1u);
    if (arrival->payload_bytes != 0)
        memcpy(dti_mailbox_payload(dti_mailbox_of(self->sync, self->index, number, 0), arrival->call,
                                   arrival->payload_bytes),
               arrival->payload, arrival->payload_bytes);
    *seq = number;
    uint64_t since = dti_trace_wait(self);
    ditto_status status = dti_meets_by_counter(self->sync, arrival->call)
                              ? meet_by_counter(self, arrival, word, deadline)
                              : meet_in_rounds(self, arrival, word, deadline);
    dti_trace_waited(self, since);
    return status == DITTO_OK ? status : dti_leave_collective(self, status);
}
