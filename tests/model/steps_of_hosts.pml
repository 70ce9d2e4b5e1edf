/* tests/model/steps_of_hosts.pml - a host asks another one which steps its pipeline has
 * (src/input/distribute/progress_of_hosts.h).
 *
 * The host that asks has a producer, which asks for one step after the other, and an ear, which hears the
 * messages of the other host. That one has a pipeline of two steps, which is at most one step ahead of what
 * the other host knows, because their replicas meet in each step, and an ear too. Messages that come before a
 * host has its iterator are lost. A third host may ask the pipeline for its last step.
 *
 * Claims   The host that asks hears of each step, and of the end.
 * Mutants  NO_SECOND_QUESTION  A question that was lost is not asked again.
 *          NO_SECOND_ANSWER    What was told before the other host had its iterator is not told again.
 *          ONLY_LAST           A pipeline is told only when it has reached the last step that was asked for.
 *          LOOK_FIRST          A producer looks at the question before it stores its progress.
 *          HEAR_FIRST          The ear looks at the progress before it stores the question. */
#define BEGINS 1
#define ASKS   2
#define TELLS  3
#define STEPS  2
#define LONGEST 12

chan to_pipeline = [LONGEST] of { byte, byte };
chan to_asker = [LONGEST] of { byte, byte, bool };

/* of the pipeline */
byte steps, told, wanted;
bool ended, pipeline_listens;

/* of the host that asks */
byte asked, heard;
bool heard_end, asker_listens;

inline tell() {
    e = ended;
    atomic { n = steps; told = n };
    assert(nfull(to_asker));
    to_asker ! TELLS, n, e
}

/* What the producer of the pipeline does after its progress, and the ear after the question. */
inline tell_if_wanted(question) {
    if
#ifdef ONLY_LAST
    :: ended || (told < question && steps >= question) -> tell()
#else
    :: ended || (told < question && told < steps) -> tell()
#endif
    :: else
    fi
}

proctype pipeline() {
    byte s = 0, n, w;
    bool e;
    pipeline_listens = true;
    to_asker ! BEGINS, 0, false;
    do
    :: ended -> break
    :: else ->
        s < heard + 1; /* the replicas have met in the step before */
#ifdef LOOK_FIRST
        w = wanted;
#endif
        if
        :: s < STEPS -> s++; steps = s
        :: else -> ended = true
        fi;
#ifndef LOOK_FIRST
        w = wanted; /* K1 */
#endif
        tell_if_wanted(w)
    od
}

proctype pipeline_ear() {
    byte kind, number, n;
    bool e;
end:
    do
    :: to_pipeline ? kind, number ->
        if
        :: !pipeline_listens
        :: pipeline_listens && kind == BEGINS ->
#ifndef NO_SECOND_ANSWER
            if
            :: told > 0 || ended -> tell()
            :: else
            fi
#else
            skip
#endif
        :: pipeline_listens && kind == ASKS ->
#ifdef HEAR_FIRST
            bool tells = ended || (told < number && told < steps);
            wanted = (wanted < number -> number : wanted);
            if
            :: tells -> tell()
            :: else
            fi
#else
            if
            :: atomic { wanted < number -> wanted = number }; /* K0 */ tell_if_wanted(number)
            :: wanted >= number
            fi
#endif
        fi
    od
}

/* Another host may ask for the last step. */
proctype third() {
    byte n;
    bool e;
    if
    :: pipeline_listens ->
        if
        :: wanted < STEPS -> wanted = STEPS
        :: else
        fi;
        tell_if_wanted(STEPS)
    :: true
    fi
}

proctype asker() {
    byte s = 1;
    asker_listens = true;
    to_pipeline ! BEGINS, 0;
    do
    :: s > STEPS + 1 -> break
    :: else ->
        if
        :: heard >= s || heard_end
        :: else ->
            asked = s;
            assert(nfull(to_pipeline));
            to_pipeline ! ASKS, s;
            heard >= s || heard_end
        fi;
        s++
    od;
    assert(heard == STEPS)
}

proctype asker_ear() {
    byte kind, number, n;
    bool is_end;
end:
    do
    :: to_asker ? kind, number, is_end ->
        if
        :: !asker_listens
        :: asker_listens && kind == BEGINS ->
#ifndef NO_SECOND_QUESTION
            if
            :: asked > 0 -> n = asked; assert(nfull(to_pipeline)); to_pipeline ! ASKS, n
            :: else
            fi
#else
            skip
#endif
        :: asker_listens && kind == TELLS ->
            heard = (number > heard -> number : heard);
            if
            :: is_end -> heard_end = true
            :: else
            fi
        fi
    od
}

init {
    atomic { run pipeline(); run pipeline_ear(); run third(); run asker(); run asker_ear() }
}
