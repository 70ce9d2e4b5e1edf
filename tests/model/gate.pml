/* tests/model/gate.pml - calls that are in, and destroying (src/base/gate.h): two threads call on a strategy
 * and on a variable of it; one thread destroys the strategy, which shuts both gates; another destroys the
 * variable, which closes its gate from inside. A value refers to the variable: it is looked at, also when
 * the variable has been destroyed, and dropped.
 * Claim: everybody ends; nothing is freed while a call is in; a call is refused only when what it is on has
 * been freed or will be; the struct of the variable, in which its gate is, is there as long as the value is.
 * Mutants: LOOK_FIRST (a call looks at the state before it is counted), REFUSE_SHUT (a call that finds the
 * gate shut takes it for closed), SHUT_ANYWAY (a gate is shut while a call is in), LEAVE_SHUT (the first
 * gate stays shut when the second can't be), NOT_KEPT (destroying the variable frees its struct, whatever
 * refers to it). */
#define OPEN 0
#define SHUT 1
#define CLOSED 2
#define STRATEGY 0
#define VARIABLE 1

byte state[2], calls[2], in[2];
bool freed[2];
byte references = 2; /* to the variable's struct: its creator's, and the value's */
bool struct_gone;

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

inline leave(g) {
    in[g]--;
    calls[g]-- /* N0 */
}

proctype caller(byte g) {
    bool ok;
    enter(g, ok);
    if
    :: ok -> assert(!freed[g]); assert(!freed[STRATEGY]); leave(g)
    :: else -> assert(state[g] == CLOSED)
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

/* A call on the value, by the thread that drops it afterwards. */
proctype value() {
    bool ok;
    assert(!struct_gone);
    enter(VARIABLE, ok);
    assert(!struct_gone);
    if
    :: ok -> assert(!freed[VARIABLE]); assert(!freed[STRATEGY]); leave(VARIABLE)
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

proctype destroyer() {
    bool ok;
    shut(STRATEGY, ok);
    if
    :: ok ->
        shut(VARIABLE, ok);
        if
        :: ok ->
            state[VARIABLE] = CLOSED; state[STRATEGY] = CLOSED;
            assert(in[STRATEGY] == 0 && in[VARIABLE] == 0);
            freed[STRATEGY] = true
        :: else ->
#ifndef LEAVE_SHUT
            state[STRATEGY] = OPEN /* O0 */
#endif
            skip
        fi
    :: else
    fi
}

/* The variable's own destroy: it is a call on the variable first. */
proctype closer() {
    bool ok;
    enter(VARIABLE, ok);
    if
    :: ok ->
        assert(!freed[STRATEGY]);
        atomic {
            ok = (state[VARIABLE] == OPEN && calls[VARIABLE] == 1);
            if
            :: ok -> state[VARIABLE] = CLOSED; calls[VARIABLE]-- ; in[VARIABLE]--
            :: else
            fi
        }
        if
        :: ok ->
            assert(in[VARIABLE] == 0);
            freed[VARIABLE] = true;
#ifdef NOT_KEPT
            struct_gone = true
#else
            drop()
#endif
        :: else -> leave(VARIABLE)
        fi
    :: else -> assert(state[VARIABLE] == CLOSED)
    fi
}

init { atomic { run caller(STRATEGY); run caller(VARIABLE); run destroyer(); run closer(); run value() } }
