/* tests/model/gate.pml - calls that are in, and destroying (src/base/waiting/gate.h): two threads call on a strategy
 * and, by way of a value, on a variable of it. One thread destroys the strategy, which shuts both gates, lets
 * the variable go and closes them. Another destroys the variable, which closes its gate from inside. The value
 * is looked at also when the variable has been destroyed, and dropped. A thread of the variable's own (a
 * producer of an iterator) makes a call on it as well, and the thread that lets the variable go waits for the
 * end of that thread. The strategy may be poisoned: then the variable stays when it is destroyed, and the
 * strategy stays too, with all that it has, if a replica is late.
 * Claim: everybody ends; nothing is freed while a call is in, or twice; a call is refused only when what it is
 * on has been freed or will be, or stays with its strategy for good; the struct of the variable, in which its
 * gate is, is there as long as the value is, and goes in the end where the variable was destroyed.
 * Mutants: LOOK_FIRST (a call looks at the state before it is counted), REFUSE_SHUT (a call that finds the
 * gate shut takes it for closed), SHUT_ANYWAY (a gate is shut while a call is in), LEAVE_SHUT (the first
 * gate stays shut when the second can't be), NOT_KEPT (destroying the variable frees its struct, whatever
 * refers to it), CLOSE_FIRST (the variable's gate is closed before the variable is let go), WAITING_PRODUCER
 * (the variable's own thread waits at a gate that is shut), SHUT_CLOSED (a gate that the variable's own destroy
 * has closed keeps the strategy from being destroyed). */
#define OPEN 0
#define SHUT 1
#define CLOSED 2
#define STRATEGY 0
#define VARIABLE 1

byte state[2], calls[2], in[2];
bool freed[2];
byte references = 2; /* to the variable's struct: its creator's, and the value's */
bool struct_gone;

/* Who frees the variable (src/replicas/team/team.h): an untouched one, and one that has gone, its own destroy. */
#define BY_DESTROY 0
#define BY_TEAM 1
#define BY_NOBODY 2
byte freed_by;

bool turn;                 /* taken */
bool listed = true;        /* the strategy has the variable in its list */
bool let_go;               /* the variable has no strategy any more */
bool poisoned, late, left; /* left: the strategy was destroyed, and stays with all that it has */
bool thread_ended;         /* the variable's own */
bool destroyed, released;  /* the variable, by its user; its first reference */

/* ok: the call is in. */
inline enter(g, ok) {
    ok = false;
#ifdef LOOK_FIRST
    state[g] == OPEN || state[g] == CLOSED; ok = (state[g] == OPEN);
    calls[g]++;
#else
    calls[g]++; /* O1 */
    do
    :: state[g] == OPEN -> ok = true; break
    :: state[g] == CLOSED -> break
#ifdef REFUSE_SHUT
    :: state[g] == SHUT -> break
#endif
    od;
#endif
    if
    :: ok -> in[g]++
    :: else -> calls[g]--
    fi
}

/* The same without waiting for the decision. */
inline try(g, ok) {
    calls[g]++; /* O1 */
    ok = (state[g] == OPEN);
    if
    :: ok -> in[g]++
    :: else -> calls[g]--
    fi
}

inline leave(g) {
    in[g]--;
    calls[g]-- /* N0 */
}

proctype caller() {
    bool ok;
    enter(STRATEGY, ok);
    if
    :: ok -> assert(!freed[STRATEGY]); leave(STRATEGY)
    :: else -> assert(state[STRATEGY] == CLOSED)
    fi
}

inline drop() {
    atomic {
        references--;
        if
        :: references == 0 -> struct_gone = true
        :: else
        fi
    }
}

inline release() {
    assert(!released && !struct_gone);
    released = true;
#ifdef NOT_KEPT
    struct_gone = true
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
    :: else
    fi;
    thread_ended = true
}

/* A call on the variable, by way of the value, by the thread that drops it afterwards. */
proctype value() {
    bool ok;
    assert(!struct_gone);
    enter(VARIABLE, ok);
    assert(!struct_gone);
    if
    :: ok -> assert(!freed[VARIABLE] && !freed[STRATEGY] && !let_go); leave(VARIABLE)
    :: else -> assert(state[VARIABLE] == CLOSED)
    fi;
    assert(!struct_gone);
    drop()
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

/* The variable's gate is shut, or its own destroy has closed it. */
inline end_variable() {
#ifdef CLOSE_FIRST
    state[VARIABLE] = CLOSED;
#endif
    thread_ended; /* which the variable's callback waits for */
    assert(!struct_gone);
    if
    :: left ->
        if
        :: freed_by == BY_DESTROY -> freed_by = BY_NOBODY
        :: else
        fi
    :: else ->
        listed = false;
        freed[VARIABLE] = true;
        let_go = true;
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
                assert(freed_by != BY_TEAM); /* it is in nobody's way */
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

/* The variable's own destroy: it is a call on the variable first, and one that changes the strategy's list. */
proctype closer() {
    bool ok, changes;
    enter(VARIABLE, ok);
    if
    :: ok ->
        assert(!freed[STRATEGY] && !let_go);
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
        :: else
        fi
    :: else ->
        assert(state[VARIABLE] == CLOSED);
        destroyed = true;
        if
        :: freed_by == BY_DESTROY -> release()
        :: else -> assert(left)
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
        run caller(); run value(); run producer(); run destroyer(); run closer()
    }
    _nr_pr == 1;
    assert(!left || !released); /* a late replica may use it */
    assert(!destroyed || released || left || state[STRATEGY] != CLOSED);
    assert(!released || struct_gone)
}
