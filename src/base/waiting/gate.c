/* src/base/waiting/gate.c - the part of gates that is not inline. The argument is in gate.h. */
#include "base/waiting/gate.h"
#include "base/waiting/fork.h"

#include <sched.h>
#include <stdlib.h>

bool dti_gate_enter_slowly(struct dti_gate *gate)
{
    for (;;) {
        uint32_t state = atomic_load_explicit(&gate->word, memory_order_acquire) % DTI_GATE_CALL;
        if (state == DTI_GATE_OPEN) /* O1 is the acquire above. This call has been counted. */
            return true;
        if (state == DTI_GATE_CLOSED)
            return false;
        /* In a child process no thread will open the gate. The call continues, and finds that its strategy
         * belongs to another process. relaxed: the word is written before the gate is shut, and all threads
         * of a process write the same value. */
        if (dti_process_differs(atomic_load_explicit(&gate->process, memory_order_relaxed)))
            return true;
        /* The gate is shut, which does not last long (I2). */
        sched_yield();
    }
}

bool dti_gate_try(struct dti_gate *gate)
{
    uint32_t before = atomic_fetch_add_explicit(&gate->word, DTI_GATE_CALL, memory_order_acquire); /* O1 */
    return before % DTI_GATE_CALL == DTI_GATE_OPEN;
}

static bool change(struct dti_gate *gate, uint32_t from, uint32_t to)
{
    /* acquire: N1. release: a thread that sees the gate shut also sees the process that shut it, which was
     * stored before (the load in dti_gate_enter_slowly). */
    return atomic_compare_exchange_strong_explicit(&gate->word, &from, to, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

bool dti_gate_shut(struct dti_gate *gate)
{
    /* relaxed: the change below publishes it. */
    atomic_store_explicit(&gate->process, dti_process_number(), memory_order_relaxed);
    return change(gate, DTI_GATE_OPEN, DTI_GATE_SHUT);
}

void dti_gate_open(struct dti_gate *gate)
{
    /* release: O0. It subtracts, because calls may have been counted since the gate was shut. */
    atomic_fetch_sub_explicit(&gate->word, DTI_GATE_SHUT, memory_order_release);
}

void dti_gate_close(struct dti_gate *gate)
{
    /* release: O0 */
    atomic_fetch_add_explicit(&gate->word, DTI_GATE_CLOSED - DTI_GATE_SHUT, memory_order_release);
}

bool dti_gate_close_alone(struct dti_gate *gate)
{
    return change(gate, DTI_GATE_CALL | DTI_GATE_OPEN, DTI_GATE_CLOSED);
}

void dti_gate_close_in_child(struct dti_gate *gate)
{
    /* relaxed: the process has one thread. */
    atomic_store_explicit(&gate->process, dti_process_number(), memory_order_relaxed);
    atomic_store_explicit(&gate->word, DTI_GATE_CLOSED, memory_order_relaxed);
}

bool dti_gate_is_empty(const struct dti_gate *gate)
{
    /* relaxed: this thread has seen the gate closed (O1), by a thread that had shut it and had stored the
     * process before. */
    return dti_process_differs(atomic_load_explicit(&gate->process, memory_order_relaxed)) ||
           atomic_load_explicit(&gate->word, memory_order_acquire) / DTI_GATE_CALL == 0; /* N1 */
}

/* -- several gates -- */

bool dti_gates_reserve(struct dti_gates *gates)
{
    if (gates->count < DTI_FEW_GATES + gates->capacity)
        return true;
    size_t capacity = 2 * gates->capacity + DTI_FEW_GATES;
    struct dti_gate **more = realloc(gates->more, capacity * sizeof(struct dti_gate *));
    if (more == NULL)
        return false;
    gates->more = more;
    gates->capacity = capacity;
    return true;
}

void dti_gates_leave(struct dti_gates *gates)
{
    for (size_t i = 0; i < gates->count; i++)
        dti_gate_leave(i < DTI_FEW_GATES ? gates->few[i] : gates->more[i - DTI_FEW_GATES]);
    free(gates->more);
}
