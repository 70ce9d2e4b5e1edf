/* tests/model/renew.pml - the stop of an inner run is cleared while the time of the outermost run ends
 * (src/base/waiting/stop.h).
 *
 * Replica 0 posts two inner runs and clears the stop after each. Replica 1 may fail in them. The poster of
 * the outermost run, which waits for replica 0, may find at any moment that its time is over.
 *
 * Claims   All processes end. An error that is read has been written. When the time is over, the run stays
 *          stopped until it ends. Otherwise the stop of an inner run never outlives that run.
 * Mutants  PLAIN_RENEW   Replica 0 looks whether the time is over, and then clears the stop with a store.
 *          WAIT_STOPPED  The call that comes second waits for the stop, which may have been cleared.
 *          EARLY_READ    The call that comes second reads the error before it is written. */
#define RUNNING 0
#define CLAIMED 1
#define STOPPED 2
#define OUTER 3 /* the outermost run. The inner runs are 1 and 2 */

byte state;
byte record; /* the run that the error ended, or 0 if it is not written */
bool expired, ended;
byte go, done;

inline write_error(which) {
    record = which;
    state = STOPPED /* X0 */
}

inline stop_now(which) {
    do
    :: atomic { state == RUNNING -> state = CLAIMED; record = 0 }; write_error(which); break
    :: state == STOPPED -> assert(record != 0); break /* X1 */
#ifdef EARLY_READ
    :: state == CLAIMED -> assert(record != 0); break
#endif
    od
}

inline expire() {
    do
    :: atomic { state == RUNNING -> state = CLAIMED; record = 0; expired = true }; write_error(OUTER); break
    :: atomic { state == STOPPED -> expired = true }; assert(record != 0); break
#ifdef WAIT_STOPPED
    :: state == CLAIMED -> state == STOPPED; expired = true; break
#endif
    od
}

inline renew(which) {
    state != CLAIMED;
    if
#ifdef PLAIN_RENEW
    :: state == STOPPED && !expired && record == which -> state = RUNNING
#else
    :: state == STOPPED && !expired && record == which ->
        atomic { /* a compare-and-swap of both conditions */
            if
            :: state == STOPPED && !expired -> state = RUNNING
            :: else
            fi
        }
#endif
    :: else
    fi
}

proctype zero() {
    byte inner = 1;
    do
    :: inner == 3 -> break
    :: else ->
        go = inner;
        done == inner;
        renew(inner);
        assert(state == RUNNING || expired);
        inner++
    od;
    ended = true
}

proctype one() {
    byte inner = 1;
    do
    :: inner == 3 -> break
    :: else ->
        go == inner;
        if
        :: stop_now(inner)
        :: true
        fi;
        done = inner;
        inner++
    od
}

proctype poster() {
    bool late = false;
    if
    :: ended
    :: late = true; expire()
    fi;
    ended;
    assert(!late || (state == STOPPED && expired))
}

init { atomic { run zero(); run one(); run poster() } }
