/* tests/model/renew.pml - the stop of an inner run is cleared while the outermost run's time ends (src/base/waiting/stop.h): replica 0 posts
 * two inner runs and clears the stop after each; replica 1 may fail in them; the poster of the outermost run, which
 * waits for replica 0, may find its time over at any moment.
 * Claim: everybody ends; an error that is read has been written; when the time is over, the run is stopped until it ends, and an
 * inner run's own stop never outlives it otherwise.
 * Mutants: PLAIN_RENEW (looks whether the time is over, and then clears the stop with a store), WAIT_STOPPED (the call that comes second
 * waits for the stop, which may have been cleared), EARLY_READ (it reads the error before it is written). */
#define GOING 0
#define CLAIMED 1
#define STOPPED 2
#define OUTER 3 /* the outermost run; inner runs are 1 and 2 */

byte state, record; /* the run that the error ended; 0: it is not written */
bool expired, ended;
byte go, done;

inline write_error(which) {
    record = which;
    state = STOPPED /* X0 */
}

inline stop_now(which) {
    do
    :: atomic { state == GOING -> state = CLAIMED; record = 0 }; write_error(which); break
    :: state == STOPPED -> assert(record != 0); break /* X1 */
#ifdef EARLY_READ
    :: state == CLAIMED -> assert(record != 0); break
#endif
    od
}

inline expire() {
    do
    :: atomic { state == GOING -> state = CLAIMED; record = 0; expired = true }; write_error(OUTER); break
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
    :: state == STOPPED && !expired && record == which -> state = GOING
#else
    :: state == STOPPED && !expired && record == which ->
        atomic { /* a compare-and-swap of both */
            if
            :: state == STOPPED && !expired -> state = GOING
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
        assert(state == GOING || expired);
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
