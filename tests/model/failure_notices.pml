/* tests/model/failure_notices.pml - a host whose run fails tells the others over the life line
 * (src/sync/hosts/failure_notices.h).
 *
 * Three hosts make two runs. In each run some hosts fail. The functions of the others return, or compute
 * until their run is stopped. Each host has an ear, the thread of its life line. The end of a run is that of
 * the headers: each host says whether it has failed, and whose error it has, and when all have failed the
 * next epoch begins.
 *
 * Claims   A function that computes is stopped if another host fails. A notice stops the run that it is
 *          about, and no other. A run that was stopped does not end well. At least one host names itself as
 *          the origin of the error, and none that has not failed itself.
 * Mutants  NO_EPOCH      A notice is taken over whatever its epoch is.
 *          NO_FUTURE     A notice of the next epoch is dropped.
 *          NO_AGE        A notice is taken over although a newer one has come.
 *          NO_LOCK       The ear looks whether there is a run, and stops it later.
 *          NO_LATE_LOOK  A run ends well although it was stopped when its function had returned.
 *          OWN_ORIGIN    A host that was stopped by a notice names itself.
 *          NO_BEGIN_LOOK A run begins although a host has failed in its epoch. */
#define N    3
#define RUNS 2
#define NONE 9

typedef Host {
    byte epoch, at;
    bool is_running, is_told, by_notice, stopped;
    bool has_failed;
    byte failed_epoch, failed_host
}
Host host[N];
/* From host a to the ear of host b: epoch, and the run, for a claim. Notices of different hosts may overtake
 * each other. */
chan ear_of[N * N] = [2] of { byte, byte };

/* Which hosts fail in a run, decided before it. */
byte failing[RUNS];
#define fails(h, r) ((failing[r] >> (h)) & 1)

/* The headers: how many hosts have ended the run, and what they said. */
byte ended[RUNS];
bool bad[RUNS];
byte origin[RUNS * N];

proctype ear(byte me) {
    byte e, from, r;
    bool takes;
end:
    do
    :: atomic {
        if
        :: ear_of[0 * N + me] ? e, r -> from = 0
        :: ear_of[1 * N + me] ? e, r -> from = 1
        :: ear_of[2 * N + me] ? e, r -> from = 2
        fi;
            takes = !host[me].has_failed || e > host[me].failed_epoch;
#ifdef NO_AGE
            takes = true;
#endif
#ifndef NO_EPOCH
            takes = takes && e >= host[me].epoch;
#endif
#ifdef NO_FUTURE
            takes = takes && e == host[me].epoch;
#endif
            if
            :: takes ->
                host[me].has_failed = true;
                host[me].failed_epoch = e;
                host[me].failed_host = from
            :: else
            fi;
            takes = takes && host[me].is_running
#ifdef NO_LOCK
        }
        atomic {
#endif
            if
            :: takes && !host[me].stopped ->
                assert(host[me].at == r);
                host[me].stopped = true;
                host[me].by_notice = true
            :: else
            fi;
            takes = false; e = 0; from = 0; r = 0
        }
    od
}

proctype replicas(byte me) {
    byte r, h, first, whose;
    bool failed, is_bad, tells;
    for (r : 0 .. RUNS - 1) {
        /* dti_hosts_run_begins */
        atomic {
            failed = host[me].has_failed && host[me].failed_epoch == host[me].epoch;
#ifdef NO_BEGIN_LOOK
            failed = false;
#endif
            host[me].at = r;
            host[me].is_running = !failed;
            host[me].is_told = false;
            host[me].by_notice = false;
            whose = (failed -> host[me].failed_host : me)
        }
        is_bad = failed;
        if
        :: failed
        :: else ->
            if
            :: fails(me, r) ->
                /* dti_stop_now, and the report */
                atomic { tells = !host[me].stopped; host[me].stopped = true }
                atomic { tells = tells && host[me].is_running && !host[me].is_told;
                         host[me].is_told = host[me].is_told || tells }
                if
                :: tells ->
                    for (h : 0 .. N - 1) {
                        if
                        :: h != me -> ear_of[me * N + h] ! host[me].epoch, r
                        :: else
                        fi
                    };
                    h = 0
                :: else
                fi
            :: !fails(me, r) && failing[r] != 0 -> host[me].stopped
            :: !fails(me, r) -> skip
            fi;
            is_bad = host[me].stopped;
            /* dti_hosts_run_ended */
            atomic {
                failed = host[me].has_failed && host[me].failed_epoch == host[me].epoch;
                host[me].is_running = false;
                host[me].is_told = false;
#ifndef OWN_ORIGIN
                if
                :: failed && (host[me].by_notice || !is_bad) -> whose = host[me].failed_host
                :: else
                fi;
#endif
#ifndef NO_LATE_LOOK
                is_bad = is_bad || failed
#endif
            }
        fi;
        assert(is_bad || !host[me].stopped);
        /* the headers */
        atomic {
            assert(!is_bad || whose != me || fails(me, r));
            origin[r * N + me] = (is_bad -> whose : NONE);
            bad[r] = bad[r] || is_bad;
            ended[r]++
        }
        ended[r] == N;
        atomic {
            first = 0;
            do
            :: first < N && origin[r * N + first] != first -> first++
            :: else -> break
            od;
            assert(!bad[r] || first < N);
            if
            :: bad[r] -> host[me].epoch++; host[me].stopped = false
            :: else
            fi;
            first = 0; whose = 0; h = 0; failed = false; is_bad = false; tells = false
        }
    }
}

init {
    byte i;
    atomic {
        if
        :: failing[0] = 2; failing[1] = 0 /* host 1 */
        :: failing[0] = 2; failing[1] = 2
        :: failing[0] = 2; failing[1] = 1
        :: failing[0] = 5; failing[1] = 0 /* the hosts 0 and 2 */
        fi;
        for (i : 0 .. N - 1) {
            run ear(i);
            run replicas(i)
        }
    }
}
