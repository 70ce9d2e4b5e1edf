/* src/base/waiting/gate.h - counts the calls that use an object, so that it is not destroyed while one of them does.
 *
 * A call enters the object's gate before it looks at the object, and leaves the gate when it is done. The
 * gate can be closed when no call is in, and a call that finds it closed is refused. A gate refuses later
 * calls only if it outlives the object. Several gates are closed together in two steps: first each is shut,
 * and then all are closed for good, or all are opened again. Calls that come while a gate is shut wait until
 * that is decided.
 *
 * Invariants  I1  the number of calls is not 0 while a call is in. A gate is shut only by a change from 0, or
 *                 from the one call that closes it.
 *             I2  a shut gate is closed or opened by the thread that shut it. Before that thread closes the gate it
 *                 lets the object go, and for this it may wait for threads of the object's own (producers of an
 *                 iterator). Those do not wait at gates: they use dti_gate_try. A call that finds the gate
 *                 closed therefore sees an object that has been let go, or one that stays for good.
 * Edges       N0 -> N1  a call that leaves -> the thread that shuts the gate, which sees what the call did
 *             O0 -> O1  the thread that opens or closes the gate -> a call that comes later, which sees what
 *                       the thread did while the gate was shut
 * Model       tests/model/gate.pml */
#ifndef DTI_GATE_H
#define DTI_GATE_H

#include "base/platform.h"

struct dti_gate {
    /* The number of calls that are in, times DTI_GATE_CALL, plus one of the states. Zero is an open gate
     * without calls. */
    _Atomic uint32_t word;
    /* The process that last shut the gate (base/fork.h). A call in a child of that process does not wait. */
    _Atomic uint32_t process;
};
enum { DTI_GATE_OPEN = 0, DTI_GATE_SHUT = 1, DTI_GATE_CLOSED = 2, DTI_GATE_CALL = 4 };

/* -- Any thread -- */
/* The rest of dti_gate_enter, for a gate that is not open. */
DTI_COMPANION bool dti_gate_enter_slowly(struct dti_gate *gate);
/* Returns false if the gate is closed. Then there is nothing to leave. */
static inline bool dti_gate_enter(struct dti_gate *gate)
{
    uint32_t before = atomic_fetch_add_explicit(&gate->word, DTI_GATE_CALL, memory_order_acquire); /* O1 */
    return __builtin_expect(before % DTI_GATE_CALL == DTI_GATE_OPEN, 1) || dti_gate_enter_slowly(gate);
}
/* The same without waiting: returns false also if the gate is shut. */
bool dti_gate_try(struct dti_gate *gate);
static inline void dti_gate_leave(struct dti_gate *gate)
{
    atomic_fetch_sub_explicit(&gate->word, DTI_GATE_CALL, memory_order_release); /* N0 */
}

/* -- The thread that wants to destroy the object -- */
/* Returns false if a call is in, or if the gate is shut or closed already. */
DTI_COMPANION bool dti_gate_shut(struct dti_gate *gate);
/* Both take a gate that this thread has shut. */
void dti_gate_open(struct dti_gate *gate);
DTI_COMPANION void dti_gate_close(struct dti_gate *gate);
/* Closes a gate that this thread has entered. Returns false, and changes nothing, if another call is in
 * too. */
bool dti_gate_close_alone(struct dti_gate *gate);

/* How many calls are in it. Others may enter it and leave it at any time. */
static inline uint32_t dti_gate_calls(const struct dti_gate *gate)
{
    return atomic_load_explicit(&gate->word, memory_order_relaxed) /
           DTI_GATE_CALL; /* relaxed: a number alone */
}

/* Whether it is closed. A thread with the turn of a strategy may rely on the answer for the strategy's
 * dependents, because those are closed with the turn alone. */
static inline bool dti_gate_is_closed(const struct dti_gate *gate)
{
    return atomic_load_explicit(&gate->word, memory_order_relaxed) % DTI_GATE_CALL == DTI_GATE_CLOSED;
}

/* Declares `name`, and leaves the gate, which has been entered, at the end of the block. NULL: there is none
 * to leave. */
#define DTI_LEAVES_GATE(name, gate) \
    __attribute__((cleanup(dti_gate_release), unused)) struct dti_gate *name = (gate)
static inline void dti_gate_release(struct dti_gate **gate)
{
    if (*gate != NULL)
        dti_gate_leave(*gate);
}

/* The gates that one call has entered, when their number is not known beforehand. */
enum { DTI_FEW_GATES = 4 };
struct dti_gates {
    struct dti_gate **more; /* [room], of those behind the first few; NULL: there was always room */
    size_t count, capacity;
    struct dti_gate *few[DTI_FEW_GATES];
};
/* Declares `name`, without gates, and leaves those that were added at the end of the block. */
#define DTI_LEAVES_GATES(name) \
    __attribute__((cleanup(dti_gates_release))) struct dti_gates name = { .capacity = 0 }
bool dti_gates_reserve(struct dti_gates *gates); /* room for one more; false: no memory */
/* A gate that was entered, or NULL, which adds nothing. There is room for it. */
static inline void dti_gates_add(struct dti_gates *gates, struct dti_gate *gate)
{
    if (gate == NULL)
        return;
    size_t at = gates->count++;
    if (at < DTI_FEW_GATES)
        gates->few[at] = gate;
    else
        gates->more[at - DTI_FEW_GATES] = gate;
}
DTI_COMPANION void dti_gates_leave(struct dti_gates *gates);
static inline void dti_gates_release(struct dti_gates *gates)
{
    if (gates->count != 0 || gates->more != NULL)
        dti_gates_leave(gates);
}

#endif
