/* src/sync/meeting/circle.c - finds replicas that wait for each other in a circle. See circle.h. */
#include "sync/meeting/circle.h"
#include "base/waiting/stop.h"
#include "replicas/team/team.h"
#include "sync/meeting/failure.h"
#include "sync/meeting/meeting.h"
#include "sync/meeting/pending_ring.h"

/* A wait that takes longer is published. It is long compared with what a replica computes between calls that
 * follow each other closely, and short for a user who waits for an error. */
#define LONG_WAIT_NS 10000000u

/* What a replica was found waiting for. */
struct found {
    uint64_t version;
    const struct dti_sync *sync;
    dti_is_missing *is_missing;
    uint64_t number;
    uint32_t before; /* the replica that waits for this one */
};

/* A search from `self` along the waits of replicas, nearest first. Replicas are given by their places. */
struct search {
    const struct dti_sync *whole;
    uint32_t self;
    uint32_t queued;
    uint32_t queue[DITTO_MAX_REPLICAS];
    struct found of[DITTO_MAX_REPLICAS]; /* version 0: not found */
};

/* Reads what a replica waits for. Returns false if it does not wait, or not for long. */
static bool read_standstill(const struct dti_sync *whole, uint32_t place, struct found *out)
{
    const struct dti_standstill *s = &whole->state[place].standstill;
    out->version = atomic_load_explicit(&s->version, memory_order_acquire); /* E1 */
    /* acquire, all three: their partners are the stores in dti_await_with_groups. */
    out->sync = atomic_load_explicit(&s->sync, memory_order_acquire);
    out->is_missing = atomic_load_explicit(&s->is_missing, memory_order_acquire);
    out->number = atomic_load_explicit(&s->number, memory_order_acquire);
    /* relaxed: the loads above are acquire, so this one comes after them. */
    return out->version % 2 == 1 && out->version == atomic_load_explicit(&s->version, memory_order_relaxed);
}

/* Goes from a waiting replica to all that it waits for. Returns true if `self` is one of them. */
static bool look_behind(struct search *s, uint32_t waiting)
{
    const struct found *from = &s->of[waiting];
    for (uint32_t i = 0; i < from->sync->num_replicas; i++) {
        uint32_t place = from->sync->replica[i].place;
        struct found found;
        if (place == s->self) {
            if (place != waiting && from->is_missing(from->sync, i, from->number))
                return true;
        } else if (s->of[place].version == 0 && read_standstill(s->whole, place, &found) &&
                   /* after the standstill was read (I1) */
                   from->is_missing(from->sync, i, from->number)) {
            found.before = waiting;
            s->of[place] = found;
            s->queue[s->queued++] = place;
        }
    }
    return false;
}

/* Returns the last replica of a circle that begins with `self`, or `self` if there is no circle. */
static uint32_t find_circle(struct search *s)
{
    bool found = false;
    uint32_t last = s->self;
    s->queue[s->queued++] = s->self;
    for (uint32_t k = 0; k < s->queued && !found; k++) {
        last = s->queue[k];
        found = look_behind(s, last);
    }
    return found ? last : s->self;
}

/* Writes for example 'in ditto_barrier #3 in group 1 of "rows"'. */
static void describe_wait(const struct search *s, uint32_t place, struct dti_text *text)
{
    const struct found *f = &s->of[place];
    uint32_t index = 0;
    if (f->is_missing == dti_has_not_arrived) {
        dti_describe_place(s->whole, place, text);
    } else { /* for an operation, which is in the ring as long as the replica waits for it */
        while (f->sync->replica[index].place != place)
            index++;
        const struct dti_call *call = &dti_pending_operation_of(f->sync, index, f->number)->call;
        dti_text_add(text, "for the start of ");
        dti_text_add_name(text, call->name, call->label);
        dti_text_add(text, " #%llu", (unsigned long long)(f->number - f->sync->state[index].started_before));
    }
    dti_text_add(text, "%s", f->sync->group_text);
}

/* Writes "replicas 0, 1 wait for each other in a circle: replica 0 waits for replica 1 in ...". The ids are
 * first, because the text has room for a few waits only. */
static void describe_circle(const struct search *s, uint32_t last, struct dti_text *text)
{
    uint32_t circle[DITTO_MAX_REPLICAS], length = 0;
    for (uint32_t place = last; place != s->self; place = s->of[place].before)
        circle[length++] = place;
    dti_text_add(text, "replicas %u", s->whole->replica[s->self].id);
    for (uint32_t k = length; k > 0; k--)
        dti_text_add(text, ", %u", s->whole->replica[circle[k - 1]].id);
    dti_text_add(text, " wait for each other in a circle (use groups in the same order on all replicas)");
    for (uint32_t k = 0, place = s->self; k <= length; k++) {
        uint32_t next = k < length ? circle[length - 1 - k] : s->self;
        dti_text_add(text, "%s replica %u waits for replica %u ", k == 0 ? ":" : ",",
                     s->whole->replica[place].id, s->whole->replica[next].id);
        describe_wait(s, place, text);
        place = next;
    }
}

/* Stops the run if this replica, which has published its wait, is in a circle. */
static void stop_if_in_circle(const struct dti_replica *self)
{
    struct search search = { .whole = self->sync->whole, .self = self->place };
    char circle[480] = "";
    struct dti_text text = { circle, sizeof circle, 0 };
    read_standstill(search.whole, search.self, &search.of[search.self]);
    uint32_t last = find_circle(&search);
    if (last == search.self || dti_stopped(self->stop))
        return;
    describe_circle(&search, last, &text);
    DTI_FAIL(DITTO_ERR_DIVERGED, "%s", circle);
    dti_replica_stop(self);
}

/* A replica of an oversubscribed team does not spin, because another one may need its PU. But if the members
 * of its group have PUs of their own, they come soon, unless replicas of other groups run there. So it polls
 * this often before it yields. An all-reduce of 8 B in a group of two, after the replicas outside of it had
 * returned, took 1.3 to 1.4 times as long as in a strategy of two, and takes 1.15 to 1.3 times as long. */
enum { POLLS = 8 };

bool dti_await_with_groups(struct dti_replica *self, uint32_t awaits, struct dti_deadline *deadline,
                           dti_condition *condition, void *argument, dti_is_missing *is_missing,
                           uint64_t number)
{
    struct dti_standstill *mine = &dti_reported_state(self)->standstill;
    bool polls = self->sync->whole->oversubscribed && !self->sync->oversubscribed;
    for (uint32_t poll = 0; polls && poll < POLLS; poll++) {
        dti_pause();
        if (condition(argument))
            return true;
    }
    uint64_t end_ns = dti_deadline_at(deadline), soon_ns = dti_lived_ns() + LONG_WAIT_NS;
    struct dti_deadline soon = { deadline->timeout_ms, soon_ns < end_ns ? soon_ns : end_ns };
    if (dti_wait(self->wait_queue, self->place, awaits, &self->wait_policy, &soon, condition, argument))
        return true;
    /* Nobody else writes it. */
    uint64_t version = atomic_load_explicit(&mine->version, memory_order_relaxed) + 1;
    /* release, all three: the version was made even before (below). A reader that has read the old odd
     * version and reads one of these (acquire) then finds another version, and drops what it has read. */
    atomic_store_explicit(&mine->sync, self->sync, memory_order_release);
    atomic_store_explicit(&mine->is_missing, is_missing, memory_order_release);
    atomic_store_explicit(&mine->number, number, memory_order_release);
    atomic_store_explicit(&mine->version, version, memory_order_release); /* E0 */
    atomic_thread_fence(memory_order_seq_cst);                            /* F0 -> F1 */
    stop_if_in_circle(self);
    bool holds = dti_wait(self->wait_queue, self->place, awaits, &self->wait_policy, deadline, condition,
                          argument);
    /* relaxed: the next standstill, or the arrival of this replica, is a release after it. */
    atomic_store_explicit(&mine->version, version + 1, memory_order_relaxed);
    return holds;
}
