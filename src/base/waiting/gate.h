/* src/base/waiting/gate.h - counts the calls that use an object, so that it is not destroyed meanwhile.
 *
 * A call enters the gate of an object before it looks at the object, and leaves the gate when it is done. A
 * gate can be closed when no call is in it. A call that finds the gate closed is refused. Until it leaves the
 * gate, it may read what its message needs, such as the name of the object. A gate that must refuse such
 * calls has to outlive its object, and may be freed when all of them have left. Several gates are closed
 * together in two steps. First each gate is shut. Then all of them are closed for good, or all are opened
 * again. A call that comes while a gate is shut waits until this is decided.
 *
 * Invariants  I1  The number of calls is not 0 while a call is in. A gate is shut only by a change from 0
 *                 calls. A gate can also be closed by the only call that is in it. A call that is refused
 *                 counts until it leaves.
 *             I2  The thread that shut a gate closes or opens it. Before it closes the gate, it releases what
 *                 the object holds, and for this it may wait for the object's own threads (producers of an
 *                 iterator). Those threads use dti_gate_try, so they do not wait at gates. A call that finds
 *                 the gate closed therefore sees an object that is released, or one that stays until the
 *                 process ends.
 * Edges       N0 -> N1  From a call that leaves to the thread that shuts the gate, or that frees a closed
 *                       one. That thread sees what the call did.
 *             O0 -> O1  From the thread that opens or closes the gate to a later call. That call sees what
 *                       the thread did while the gate was shut.
 * Model       tests/model/gate.pml */
#ifndef DTI_GATE_H
#define DTI_GATE_H

#include "base/platform.h"

struct dti_gate {
    /* The number of calls that are in, times DTI_GATE_CALL, plus one of the states. Zero is an open gate
     * without calls. */
    _Atomic uint32_t word;

    /* The process that last shut the gate (base/waiting/fork.h). A call in a child of that process does not
     * wait. */
    _Atomic uint32_t process;
};
enum { DTI_GATE_OPEN = 0, DTI_GATE_SHUT = 1, DTI_GATE_CLOSED = 2, DTI_GATE_CALL = 4 };

/* -- Any thread -- */

/* The rest of dti_gate_enter, for a gate that is not open. */
DTI_COMPANION bool dti_gate_enter_slowly(struct dti_gate *gate);

/* Enters the gate, and waits while it is shut. Returns false if the gate is closed. The caller leaves the
 * gate in both cases. */
static inline bool dti_gate_enter(struct dti_gate *gate)
{
    uint32_t before = atomic_fetch_add_explicit(&gate->word, DTI_GATE_CALL, memory_order_acquire); /* O1 */
    return __builtin_expect(before % DTI_GATE_CALL == DTI_GATE_OPEN, 1) || dti_gate_enter_slowly(gate);
}

/* The same without waiting. It returns false also if the gate is shut. */
bool dti_gate_try(struct dti_gate *gate);

static inline void dti_gate_leave(struct dti_gate *gate)
{
    atomic_fetch_sub_explicit(&gate->word, DTI_GATE_CALL, memory_order_release); /* N0 */
}

/* -- The thread that wants to destroy the object -- */

/* Returns false if a call is in, or if the gate is already shut or closed. */
DTI_COMPANION bool dti_gate_shut(struct dti_gate *gate);

/* Opens a gate that this thread has shut. */
void dti_gate_open(struct dti_gate *gate);

/* Closes a gate that this thread has shut. */
DTI_COMPANION void dti_gate_close(struct dti_gate *gate);

/* Closes a gate that this thread has entered. Returns false, and changes nothing, if another call is in
 * too. */
bool dti_gate_close_alone(struct dti_gate *gate);

/* Closes a gate of the parent process, in a child process with one thread. The gate may count calls of
 * threads that do not exist there. */
void dti_gate_close_in_child(struct dti_gate *gate);

/* Returns true if all calls have left a closed gate. In a child of the process that closed the gate the
 * answer is always true, because calls of the parent cannot be told from calls of the child there. */
bool dti_gate_is_empty(const struct dti_gate *gate);

/* Returns the number of calls that are in the gate. It may change at any time. */
static inline uint32_t dti_gate_calls(const struct dti_gate *gate)
{
    /* relaxed: the number guards no other data. */
    return atomic_load_explicit(&gate->word, memory_order_relaxed) / DTI_GATE_CALL;
}

/* Returns true if the gate is closed. A thread that has the turn of a strategy may rely on the answer for the
 * dependents of the strategy, because only a thread that has the turn closes their gates. */
static inline bool dti_gate_is_closed(const struct dti_gate *gate)
{
    return atomic_load_explicit(&gate->word, memory_order_relaxed) % DTI_GATE_CALL == DTI_GATE_CLOSED;
}

/* Leaves `gate`, which the caller has entered, at the end of the block. `name` is the variable that it
 * declares for this. NULL means that there is no gate to leave. */
#define DTI_LEAVES_GATE(name, gate) \
    __attribute__((cleanup(dti_gate_release), unused)) struct dti_gate *name = (gate)
static inline void dti_gate_release(struct dti_gate **gate)
{
    if (*gate != NULL)
        dti_gate_leave(*gate);
}

/* The gates that one call has entered, for calls that do not know the number of gates beforehand. */
enum { DTI_FEW_GATES = 4 };
struct dti_gates {
    /* [capacity] The gates after the first DTI_FEW_GATES. NULL if there never were more. */
    struct dti_gate **more;
    size_t count, capacity;
    struct dti_gate *few[DTI_FEW_GATES];
};

/* Declares `name` as an empty set of gates. At the end of the block it leaves all gates that were added. */
#define DTI_LEAVES_GATES(name) \
    __attribute__((cleanup(dti_gates_release))) struct dti_gates name = { .capacity = 0 }

/* Reserves capacity for one more gate. Returns false if there is no memory. */
bool dti_gates_reserve(struct dti_gates *gates);

/* Adds a gate that was entered. Its capacity must have been reserved (dti_gates_reserve). NULL adds
 * nothing. */
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
