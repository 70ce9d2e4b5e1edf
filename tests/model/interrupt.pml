/* tests/model/interrupt.pml - another thread ends a run of the user, and nothing else
 * (src/replicas/team/stopping.h).
 *
 * The poster executes a run of the user, a job of the library, and a run of the user. Two threads may
 * interrupt at any time. The store of `interruptible` may wait in the store buffer of the poster, until the
 * memory or a heavy fence of another thread drains it.
 *
 * Claims   The job of the library is never stopped, and neither is a run before its poster allows it. A
 *          stop is seen by the poster of the run that it ends. All processes end.
 * Mutants  NO_HEAVY    There is no fence between I0 and I1.
 *          NOT_COUNTED A thread that interrupts does not count itself.
 *          NO_J1       The poster does not wait for threads that interrupt.
 *          LOOK_FIRST  The poster looks whether the run was stopped before it waits. */
byte interruptible, buffer, interrupts;
bool buffered, stopped, ended;

inline store(which) {
    atomic { !buffered -> buffer = which; buffered = true }
}

inline drain() {
    atomic {
        if
        :: buffered -> interruptible = buffer; buffered = false
        :: else
        fi
    }
}

inline look() {
    if
    :: stopped -> stopped = false /* the run fails, and the stop is cleared */
    :: else
    fi
}

inline user_run(which) {
    assert(!stopped);
    store(which);
    store(0); /* J0: when all replicas have returned, which may be at once */
#ifdef LOOK_FIRST
    look();
#endif
#ifndef NO_J1
    interrupts == 0; /* J1, K1 */
#endif
#ifndef LOOK_FIRST
    look()
#endif
}

proctype poster() {
    user_run(1);
    assert(!stopped);
    assert(!stopped); /* at the begin of the library's job, and at its end */
    user_run(2);
    assert(!stopped);
    ended = true
}

proctype memory() {
    do
    :: drain()
    :: ended -> break
    od
}

proctype other() {
#ifndef NOT_COUNTED
    interrupts++; /* I0 */
#endif
#ifndef NO_HEAVY
    drain(); /* the heavy fence */
#endif
    if
    :: interruptible != 0 -> stopped = true /* I1 */
    :: interruptible == 0
    fi;
#ifndef NOT_COUNTED
    interrupts-- /* K0 */
#endif
}

init {
    atomic { run poster(); run memory(); run other(); run other() }
}
