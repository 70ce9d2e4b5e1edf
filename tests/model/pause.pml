/* tests/model/pause.pml - runs inside runs (src/replicas/jobs/jobs.h, pause.c).
 *
 * In a run all replicas meet. Replica 0 then works alone and posts runs of its own, while the others serve.
 * It ends the pause, and all continue. A second pause follows, and the run ends. A replica may fail in the
 * first inner run and stop it. The stop is renewed when all replicas are back.
 *
 * Claims   All processes end. Each replica does each posted job once, in order, and reads it whole. No
 *          replica takes the stop or the done number of an inner run for that of the outer run.
 * Mutants  NO_MEETING   Replica 0 posts before the others have come.
 *          NO_JOIN      Replica 0 does not wait for the end of an inner run.
 *          EARLY_RENEW  The stop is renewed before all replicas are back.
 *          SAME_RUN     The number of the outer run is not restored, so peers look as if they had returned.
 *          STALE_SEEN   The thread of replica 0, when it waits for runs itself, takes the end of the pause
 *                       for a job. */
#define N 3
#define OUTER 1
#define END 0

byte go;      /* the last number that was posted */
byte job;     /* a number, or END */
byte current; /* the innermost run */
byte seen[N], done[N], jobs[N], met;
bool stopped, failed_once, over;

inline post(what) {
    job = what;
    go++ /* G0 */
}

/* One posted job on a replica. In the first inner run a replica may fail. */
inline work(me, number) {
    assert(jobs[me] + 2 == job); /* jobs are done in order, each once */
    jobs[me]++;
    if
    :: job == 2 && !failed_once -> failed_once = true; stopped = true
    :: true
    fi;
    done[me] = number /* D0 */
}

inline inner_run(what) {
    assert(!stopped); /* a run begins without a stop */
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
        met == (N - 1) * (pause + 1); /* all have come, and serve now */
#endif
        assert(done[1] != current && done[2] != current); /* no replica looks as if it had returned */
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
        assert(!stopped); /* the stop of an inner run has ended when the pause ends */
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
