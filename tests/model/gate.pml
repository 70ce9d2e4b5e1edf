/* tests/model/gate.pml - calls that use an object, and destroying it (src/base/waiting/gate.h).
 *
 * Three threads make calls. One calls on a strategy, one on a variable of it through a value, and one on the
 * variable itself. The last call begins before the variable's destroy begins, or not at all. One thread
 * destroys the strategy. It shuts both gates, detaches the variable from the strategy, and closes the gates.
 * Another thread destroys the variable, which closes its gate from inside. The value may be used after the
 * variable was destroyed, and is then dropped. A thread of the variable's own (such as a producer of an
 * iterator) makes a call on the variable too. The thread that detaches or destroys the variable waits for the
 * end of that thread. The strategy may be poisoned. Then the variable is not freed when it is destroyed, and
 * if a replica is late the strategy is not freed either.
 *
 * Claims   All processes end. Nothing is freed while a call is in, and nothing is freed twice. A call is
 *          refused only if its object has been freed or will be, or stays with its strategy for ever. The
 *          struct of the variable, which contains its gate, exists as long as the value, and until a refused
 *          call leaves the gate. It is freed in the end if the variable was destroyed.
 * Mutants  LOOK_FIRST        A call looks at the state before it is counted.
 *          REFUSE_SHUT       A call that finds the gate shut treats it as closed.
 *          SHUT_ANYWAY       A gate is shut while a call is in.
 *          LEAVE_SHUT        The first gate stays shut if the second one cannot be shut.
 *          NOT_KEPT          Destroying the variable frees its struct, even if there are references to it.
 *          CLOSE_FIRST       The variable's gate is closed before the variable is detached.
 *          WAITING_PRODUCER  The variable's own thread waits at a gate that is shut.
 *          SHUT_CLOSED       If the variable's own destroy has closed its gate, the strategy cannot be
 *                            destroyed.
 *          FREE_ANYWAY       After the strategy's end, the variable is freed while a refused call is in.
 *          LEAVE_FIRST       A refused call leaves the gate before it reads the variable's name. */
#define OPEN 0
#define SHUT 1
#define CLOSED 2
#define STRATEGY 0
#define VARIABLE 1

byte state[2], calls[2], in[2];
bool freed[2];
byte references = 2; /* to the variable's struct, from its creator and from the value */
bool struct_freed;

/* What frees the variable (src/replicas/team/dependent.h). A new variable is freed by its own destroy, and so
 * is one that was detached from its strategy. */
#define BY_DESTROY 0
#define BY_TEAM 1
#define BY_NOBODY 2
byte freed_by;

bool turn;                 /* true if a thread has it */
bool listed = true;        /* the strategy has the variable in its list */
bool detached;             /* the variable has been detached from its strategy */
bool poisoned, late;
bool left;                 /* the strategy was destroyed, but stays with all its objects */
bool thread_ended;         /* the variable's own thread */
bool closing;              /* the variable's own destroy has begun */
bool destroyed;            /* the user has destroyed the variable */
bool released;             /* the creator's reference was dropped */

/* Waits while the gate is shut. The call has been counted. */
inline await(g, ok) {
    do
    :: state[g] == OPEN -> ok = true; break
    :: state[g] == CLOSED -> break
#ifdef REFUSE_SHUT
    :: state[g] == SHUT -> break
#endif
    od
}

/* Sets ok if the call is in. Otherwise it is refused. In both cases it is counted until it leaves. */
inline enter(g, ok) {
    ok = false;
#ifdef LOOK_FIRST
    state[g] == OPEN || state[g] == CLOSED; ok = (state[g] == OPEN);
    calls[g]++;
#else
    calls[g]++; /* O1 */
    await(g, ok);
#endif
    if
    :: ok -> in[g]++
    :: else
    fi
}

/* As enter, but does not wait if the gate is shut. */
inline try(g, ok) {
    calls[g]++; /* O1 */
    ok = (state[g] == OPEN);
    if
    :: ok -> in[g]++
    :: else
    fi
}

inline leave_refused(g) {
    calls[g]-- /* N0 */
}

inline leave(g) {
    in[g]--;
    leave_refused(g)
}

proctype caller() {
    bool ok;
    enter(STRATEGY, ok);
    if
    :: ok -> assert(!freed[STRATEGY]); leave(STRATEGY)
    :: else -> assert(state[STRATEGY] == CLOSED); leave_refused(STRATEGY)
    fi
}

inline drop() {
    atomic {
        references--;
        if
        :: references == 0 -> struct_freed = true
        :: else
        fi
    }
}

inline release() {
    assert(!released && !struct_freed);
    released = true;
#ifdef NOT_KEPT
    struct_freed = true
#else
    drop()
#endif
}

proctype producer() {
    bool ok;
#ifdef WAITING_PRODUCER
    enter(VARIABLE, ok);
#else
    try(VARIABLE, ok);
#endif
    if
    :: ok -> assert(!freed[VARIABLE] && !freed[STRATEGY]); leave(VARIABLE)
    :: else -> assert(!struct_freed); leave_refused(VARIABLE)
    fi;
    thread_ended = true
}

/* A call on the variable through the value. The thread drops the value afterwards. */
proctype value() {
    bool ok;
    assert(!struct_freed);
    enter(VARIABLE, ok);
    assert(!struct_freed);
    if
    :: ok -> assert(!freed[VARIABLE] && !freed[STRATEGY] && !detached); leave(VARIABLE)
    :: else -> assert(state[VARIABLE] == CLOSED); leave_refused(VARIABLE)
    fi;
    assert(!struct_freed);
    drop()
}

/* A call on the variable itself. The thread has no reference to the struct. */
proctype reader() {
    bool ok, begins;
    atomic {
        begins = !closing;
        if
        :: begins -> calls[VARIABLE]++ /* O1 */
        :: else
        fi
    }
    if
    :: begins ->
        await(VARIABLE, ok);
        assert(!struct_freed);
        if
        :: ok -> in[VARIABLE]++; assert(!freed[VARIABLE] && !freed[STRATEGY] && !detached); leave(VARIABLE)
        :: else ->
            assert(state[VARIABLE] == CLOSED);
#ifdef LEAVE_FIRST
            leave_refused(VARIABLE);
            assert(!struct_freed)
#else
            assert(!struct_freed); /* reads the name, for its message */
            leave_refused(VARIABLE)
#endif
        fi
    :: else
    fi
}

inline shut(g, ok) {
    atomic {
#ifdef SHUT_ANYWAY
        ok = (state[g] == OPEN);
#else
        ok = (state[g] == OPEN && calls[g] == 0); /* N1 */
#endif
        if
        :: ok -> state[g] = SHUT
        :: else
        fi
    }
}

/* Called when the variable's gate is shut, or its own destroy has closed it. */
inline end_variable() {
#ifdef CLOSE_FIRST
    state[VARIABLE] = CLOSED;
#endif
    thread_ended; /* the variable's callback waits for this */
    assert(!struct_freed);
    if
    :: left ->
        if
        :: freed_by == BY_DESTROY -> freed_by = BY_NOBODY
        :: else
        fi
    :: else ->
        listed = false;
        freed[VARIABLE] = true;
        detached = true;
        mine = (freed_by == BY_TEAM)
    fi;
    state[VARIABLE] = CLOSED; /* O0 */
    if
    :: mine -> release()
    :: else
    fi
}

inline end_strategy() {
    left = poisoned && late;
    if
    :: listed -> end_variable()
    :: else
    fi;
    state[STRATEGY] = CLOSED;
    assert(in[STRATEGY] == 0 && in[VARIABLE] == 0);
    if
    :: left -> turn = false
    :: else -> freed[STRATEGY] = true
    fi
}

proctype destroyer() {
    bool ok, mine;
    atomic { ok = !turn; turn = true }
    if
    :: ok ->
        shut(STRATEGY, ok);
        if
        :: ok ->
            if
#ifdef SHUT_CLOSED
            :: listed -> shut(VARIABLE, ok)
#else
            :: listed && state[VARIABLE] != CLOSED -> shut(VARIABLE, ok)
#endif
            :: else
            fi;
            if
            :: ok -> end_strategy()
            :: else ->
                assert(freed_by != BY_TEAM); /* such a variable does not prevent the destroy */
#ifndef LEAVE_SHUT
                state[STRATEGY] = OPEN; /* O0 */
#endif
                turn = false
            fi
        :: else -> turn = false
        fi
    :: else
    fi
}

/* The variable's own destroy. It is first a call on the variable, and then one that changes the strategy's
 * list. */
proctype closer() {
    bool ok, changes;
    closing = true;
    enter(VARIABLE, ok);
    if
    :: ok ->
        assert(!freed[STRATEGY] && !detached);
        enter(STRATEGY, changes);
        atomic { !turn -> turn = true };
        atomic {
            ok = (state[VARIABLE] == OPEN && calls[VARIABLE] == 1);
            if
            :: ok -> state[VARIABLE] = CLOSED; calls[VARIABLE]-- ; in[VARIABLE]--
            :: else
            fi
        }
        if
        :: ok ->
            thread_ended;
            assert(in[VARIABLE] == 0);
            destroyed = true;
            if
            :: poisoned -> freed_by = BY_TEAM
            :: else -> listed = false; freed[VARIABLE] = true
            fi
        :: else -> leave(VARIABLE)
        fi;
        assert(!freed[STRATEGY]);
        turn = false;
        if
        :: ok && !poisoned -> release()
        :: else
        fi;
        if
        :: changes -> leave(STRATEGY)
        :: else -> leave_refused(STRATEGY)
        fi
    :: else ->
        assert(state[VARIABLE] == CLOSED);
        leave_refused(VARIABLE);
        if
#ifdef FREE_ANYWAY
        :: freed_by == BY_DESTROY -> destroyed = true; release()
#else
        :: freed_by == BY_DESTROY && calls[VARIABLE] == 0 -> destroyed = true; release() /* N1 */
        :: freed_by == BY_DESTROY && calls[VARIABLE] != 0 /* the user destroys it again later */
#endif
        :: freed_by != BY_DESTROY -> assert(left); destroyed = true
        fi
    fi
}

init {
    atomic {
        if
        :: poisoned = true; late = true
        :: poisoned = true
        :: skip
        fi;
        run caller(); run value(); run reader(); run producer(); run destroyer(); run closer()
    }
    _nr_pr == 1;
    assert(!left || !released); /* a late replica may still use it */
    assert(!destroyed || released || left || state[STRATEGY] != CLOSED);
    assert(!released || struct_freed)
}
