/* tests/model/pause.pml - runs inside runs (src/replicas/team/team.h, pause.c): in a run all replicas meet; replica 0 works alone and posts
 * runs of its own while the others serve; it ends the pause, and all go on; a second pause may follow, and the run ends. The first
 * inner run may be stopped by a replica that fails; the stop is renewed when all are back.
 * Claim: everybody ends; each replica does each posted job once, in order, and reads it whole; nobody takes an inner run's stop, or its
 * done number, for the outer run's.
 * Mutants: NO_MEETING (replica 0 posts before the others have come), NO_JOIN (an inner run is not waited for), EARLY_RENEW (the stop is
 * renewed before all are back), SAME_RUN (the outer run's number is not restored, so that peers look returned), STALE_SEEN (replica 0's
 * thread, when it waits for runs itself, takes the end of the pause for a job). */
#define N 3
#define OUTER 1
#define END 0

byte go, job, current;   /* the number posted last; what it is: END or a job's number; the innermost run */
byte seen[N], done[N], jobs[N], met;
bool stopped, failed_once, over;

inline post(what) {
    job = what;
    go++ /* G0 */
}

/* One posted job on a replica; in the first inner run a replica may fail. */
inline work(me, number) {
    assert(jobs[me] + 2 == job); /* in order, each once */
    jobs[me]++;
    if
    :: job == 2 && !failed_once -> failed_once = true; stopped = true
    :: true
    fi;
    done[me] = number /* D0 */
}

inline inner_run(what) {
    assert(!stopped); /* a run starts afresh */
    current = go + 1;
    post(what);
    seen[0] = go;
    work(0, go);
#ifdef EARLY_RENEW
    stopped = false;
#endif
#ifndef NO_JOIN
    done[1] == go; done[2] == go; /* D1 */
#endif
#ifndef EARLY_RENEW
    stopped = false;
#endif
#ifndef SAME_RUN
    current = OUTER
#endif
}

proctype zero() {
    byte pause = 0;
    do
    :: pause == 2 -> break
    :: else ->
#ifndef NO_MEETING
        met == (N - 1) * (pause + 1); /* all have come, and go on to serve */
#endif
        assert(done[1] != current && done[2] != current); /* nobody looks as if it had returned */
        if
        :: pause == 0 -> inner_run(2); inner_run(3)
        :: else -> inner_run(4)
        fi;
        assert(done[1] != current && done[2] != current);
        post(END);
#ifndef STALE_SEEN
        seen[0] = go;
#endif
        pause++
    od;
    assert(seen[0] == go);
    over = true
}

proctype other(byte me) {
    byte pause = 0;
    do
    :: pause == 2 -> break
    :: else ->
        met++;
        do
        :: go != seen[me] -> /* G1 */
            seen[me] = go;
            if
            :: job == END -> break
            :: else -> work(me, seen[me])
            fi
        od;
        assert(!stopped); /* what stopped an inner run is over when the pause is */
        pause++
    od;
    assert(jobs[me] == 3)
}

init {
    atomic {
        go = OUTER; current = OUTER; job = 1;
        seen[0] = OUTER; seen[1] = OUTER; seen[2] = OUTER;
        run zero(); run other(1); run other(2)
    }
}
