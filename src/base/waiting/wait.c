/* src/base/waiting/wait.c - the sleeping half of waiting. The protocol is argued in wait.h. */
#include "base/waiting/wait.h"

#include <sched.h>
#include <stdlib.h>

enum { AWAKE = 0, SLEEPING = 1 };

bool dti_waitroom_init(struct dti_waitroom *room, uint32_t seats)
{
    dti_fence_init();
    room->seat = aligned_alloc(DTI_CACHE_LINE_PAIR, seats * sizeof *room->seat);
    if (room->seat == NULL)
        return false;
    for (uint32_t i = 0; i < seats; i++) {
        atomic_init(&room->seat[i].state, AWAKE);
        atomic_init(&room->seat[i].awaits, DTI_EVERYONE);
    }
    atomic_init(&room->parked, 0);
    room->seats = seats;
    return true;
}

void dti_waitroom_free(struct dti_waitroom *room)
{
    free(room->seat);
    room->seat = NULL;
}

void dti_waitroom_wake(struct dti_waitroom *room, uint32_t from)
{
    for (uint32_t i = 0; i < room->seats; i++) {
        struct dti_seat *seat = &room->seat[i];
        /* acquire: pairs with the sleeper's release of SLEEPING, so that awaits is the one it sleeps with */
        if (atomic_load_explicit(&seat->state, memory_order_acquire) != SLEEPING)
            continue;
        uint32_t awaits = atomic_load_explicit(&seat->awaits, memory_order_relaxed);
        if (awaits != from && awaits != DTI_EVERYONE && from != DTI_EVERYONE)
            continue;
        /* W2. relaxed: the condition carries its own order; exchange, so that one signal makes one system call */
        if (atomic_exchange_explicit(&seat->state, AWAKE, memory_order_relaxed) == SLEEPING)
            dti_futex_wake(&seat->state);
    }
}

bool dti_waitroom_sleep(struct dti_waitroom *room, uint32_t seat_index, uint32_t awaits, struct dti_deadline *deadline,
                        dti_condition *condition, void *argument)
{
    uint64_t deadline_ns = dti_deadline_at(deadline);
    struct dti_seat *seat = &room->seat[seat_index];
    bool holds = false;
    /* relaxed: only this thread writes it, and a waker reads it after it has seen SLEEPING */
    atomic_store_explicit(&seat->awaits, awaits, memory_order_relaxed);
    atomic_fetch_add_explicit(&room->parked, 1, memory_order_relaxed); /* ordered by the heavy fence below */
    for (;;) {
        atomic_store_explicit(&seat->state, SLEEPING, memory_order_release); /* S0; release: see dti_waitroom_wake */
        dti_fence_heavy();           /* pairs with dti_fence_light of a signaller */
        holds = condition(argument); /* S1 */
        if (holds || dti_now_ns() >= deadline_ns)
            break;
        dti_futex_sleep(&seat->state, SLEEPING, deadline_ns);
        holds = condition(argument);
        if (holds)
            break;
    }
    atomic_store_explicit(&seat->state, AWAKE, memory_order_relaxed);
    atomic_fetch_sub_explicit(&room->parked, 1, memory_order_relaxed);
    return holds;
}

/* Looks until `end_ns` or the deadline; the clock costs as much as a dozen looks. */
static bool spin(uint64_t end_ns, struct dti_deadline *deadline, dti_condition *condition, void *argument)
{
    uint64_t now;
    do {
        for (uint32_t look = 0; look < 64; look++) {
            dti_pause();
            if (condition(argument))
                return true;
        }
        now = dti_now_ns();
    } while (now < end_ns && now < dti_deadline_at(deadline));
    return false;
}

static bool yield(uint64_t end_ns, dti_condition *condition, void *argument)
{
    do {
        sched_yield();
        if (condition(argument))
            return true;
    } while (dti_now_ns() < end_ns);
    return false;
}

bool dti_wait_long(struct dti_waitroom *room, uint32_t seat, uint32_t awaits, struct dti_patience *patience,
                   struct dti_deadline *deadline, dti_condition *condition, void *argument)
{
    uint64_t begin = dti_now_ns(), budget = patience->spin_ns;
    bool in_full = patience->naps % DTI_NAPS == 0;
    if (!in_full && budget > DTI_SPIN_LEAST_NS)
        budget = DTI_SPIN_LEAST_NS;
    if (budget != 0 && spin(begin + budget, deadline, condition, argument)) {
        patience->naps = in_full ? 0 : patience->naps;
        return true;
    }
    if (patience->yield_ns != 0 && yield(dti_now_ns() + patience->yield_ns, condition, argument))
        return true;
    bool holds = dti_waitroom_sleep(room, seat, awaits, deadline, condition, argument);
    patience->naps = dti_now_ns() - begin > patience->spin_ns ? patience->naps + 1 : 0;
    return holds;
}
