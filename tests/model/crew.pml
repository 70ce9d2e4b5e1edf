/* tests/model/crew.pml - the helpers of a replica (src/replicas/helpers/crew.h).
 *
 * Twice, a leader gives functions to two helpers, runs a loop on both, gives one more function and joins. A
 * ring holds one function. Another process may stop the run at any time.
 *
 * Claims   All processes end. Each function runs at most once, and exactly once unless the run is stopped.
 *          The functions of a helper run before the loop that follows them (I2). No task is written while its
 *          function is in the ring (I1). When the leader continues, no helper is in a loop or a function.
 * Mutants  LATE_GO       The helper reads go after its ring.
 *          NO_TASK_WAIT  The leader does not wait until the ring has space.
 *          EARLY_DONE    done is stored before the loop runs. */
#define H 2
#define NONE 1
#define EXIT 0

byte go = NONE, done[H], submitted[H], finished[H];
byte task[H];   /* the number of the function in the ring, or 0 */
byte before[H]; /* functions that were given before the present loop */
bool inside[H], stopped;
byte runs[H];

inline give(h) {
#ifndef NO_TASK_WAIT
    finished[h] == submitted[h]; /* F1: the ring holds one function */
#endif
    assert(task[h] == 0);
    task[h] = submitted[h] + 1;
    submitted[h]++ /* P0 */
}

inline drain(h) {
    do
    :: finished[h] == submitted[h] -> break /* P1 */
    :: else ->
        assert(task[h] == finished[h] + 1);
        if
        :: stopped -> skip /* the function is skipped */
        :: !stopped -> inside[h] = true; runs[h]++; inside[h] = false
        fi;
        task[h] = 0;
        finished[h]++ /* F0 */
    od
}

proctype helper(byte me) {
    byte last = NONE, seen;
    do
    ::  (go != last || submitted[me] != finished[me]);
#ifdef LATE_GO
        drain(me);
        seen = go;
#else
        seen = go; /* L1, before the ring is read */
        drain(me);
#endif
        if
        :: seen == EXIT -> break
        :: seen != EXIT && seen != last ->
            last = seen;
#ifdef EARLY_DONE
            done[me] = seen;
#endif
            assert(finished[me] >= before[me]); /* I2 */
            inside[me] = true;
            inside[me] = false;
            done[me] = seen /* E0 */
        :: else
        fi
    od
}

inline join() {
    finished[0] == submitted[0]; finished[1] == submitted[1];
    assert(!inside[0] && !inside[1])
}

proctype leader() {
    byte round = 0;
    do
    :: round == 2 -> break
    :: else ->
        give(0); give(0); give(1);
        before[0] = submitted[0]; before[1] = submitted[1];
        go = NONE + 1 + round; /* L0 */
        done[0] == go; done[1] == go; /* E1 */
        assert(!inside[0] && !inside[1]);
        give(1);
        join();
        assert(stopped || (runs[0] == 2 * (round + 1) && runs[1] == 2 * (round + 1)));
        round++
    od;
    assert(runs[0] <= 4 && runs[1] <= 4);
    go = EXIT
}

proctype stopper() { stopped = true }

init {
    atomic {
        done[0] = NONE; done[1] = NONE;
        run leader(); run helper(0); run helper(1);
        if :: run stopper() :: skip fi
    }
}
