/* tests/model/order.pml - what the replicas of two pipelines take when rows can't be read
 * (src/input/distribute/order.h): one replica each, two steps, and any set of batches that fail. Each pipeline's
 * producer reads its batches one after the other, into a queue of one or two slots (TWO_SLOTS). A replica takes what is next to it, or the error of another
 * pipeline. THREE: three pipelines, one step, and the replica of the last pipeline alone.
 * A replica that has found nothing waits until a producer has changed something. That it is woken is wait.pml's
 * to show.
 * Claim: all end; each replica gets its batches in front of the first that fails in the order of all batches, and then
 * the error of that one; without one, the end.
 * Mutants: EARLY_NEXT (a batch is handed over before its error is shown), ERROR_FIRST (a replica looks for errors
 * before it looks how far the pipelines are), OWN_ALONE (it does not wait for other pipelines), SAFE_TOO_FAR (what it has seen
 * holds for more places than it has looked at); THREE+ANY_ERROR (it takes an error to which not all have come). */
#ifdef TWO_SLOTS
#define SLOTS 2
#else
#define SLOTS 1
#endif
#ifdef THREE
#define PIPELINES 3
#define STEPS 1
#else
#define PIPELINES 2
#define STEPS 2
#endif
#define POSITION(w, t) (PIPELINES * (t) + (w))
#define POSITIONS (PIPELINES * STEPS)
#define ENDED 20
#define NONE 40

bool fails[POSITIONS];
byte first = NONE;      /* the first position that fails */
byte next[PIPELINES];   /* the first position of a pipeline that was not handed over, or ENDED */
byte failed[PIPELINES] = NONE; /* the point of a pipeline's error */
byte filled[PIPELINES]; /* steps whose slot is filled, the step of the end included */
byte taken[PIPELINES];  /* steps whose slot was given back */
bool notified[PIPELINES];   /* a producer has changed something since the replica began to look */
bool over[PIPELINES];   /* the replica takes nothing more */
bool ready;

proctype producer(byte w) {
    byte t = 0, i = 0;
    ready;
    do
    :: t > STEPS || next[w] == ENDED -> break
    :: else ->
        if
        :: t < taken[w] + SLOTS /* there is room */
        :: t >= taken[w] + SLOTS && over[w] -> break
        fi;
#ifdef EARLY_NEXT
        if
        :: t < STEPS && fails[POSITION(w, t)] -> next[w] = ENDED
        :: else
        fi;
#endif
        if
        :: t < STEPS && fails[POSITION(w, t)] -> failed[w] = 2 * POSITION(w, t) + 1
        :: else
        fi;
        next[w] = (t == STEPS || failed[w] != NONE -> ENDED : POSITION(w, t + 1)); /* N0 */
        atomic {
            t++;
            filled[w] = t;
            for (i : 0 .. PIPELINES - 1) {
                notified[i] = true
            }
            i = 0
        }
    od
}

#define LEAST(a, b) (a < b -> a : b)

/* One after the other, of all pipelines: the least of a word. */
#define LOOK(word, lesser) \
    lesser = NONE; \
    i = 0; \
    do \
    :: atomic { i < PIPELINES -> lesser = LEAST(word[i], lesser); i++ } \
    :: atomic { i == PIPELINES -> i = 0; break } \
    od

proctype replica(byte w) {
    byte t = 0, position, behind, reached, error, safe = 0, i;
    bool has;
    ready;
    do
    :: atomic {
            notified[w] = false;
            has = filled[w] > t;
            position = (t == STEPS -> POSITIONS : POSITION(w, t))
        }
        if
        :: position < safe && t < STEPS
        :: else ->
#ifdef ERROR_FIRST
            LOOK(failed, error);
            LOOK(next, reached);
#else
            LOOK(next, reached); /* N1 */
            LOOK(failed, error);
#endif
            atomic {
                behind = (error == NONE -> NONE : (error + 1) / 2);
#ifdef SAFE_TOO_FAR
                safe = LEAST(reached + 2, behind);
#else
                safe = LEAST(reached, behind);
#endif
#ifdef OWN_ALONE
                reached = ENDED;
#endif
#ifdef ANY_ERROR
                reached = (behind <= position -> ENDED : reached);
#endif
                if
                :: reached < LEAST(position, behind) -> has = false /* not yet */
                :: reached >= LEAST(position, behind) && error != NONE && (behind <= position || (t == STEPS && has)) ->
                    assert(error == 2 * first + 1); /* the first, and behind all batches in front of it */
                    break
                :: else
                fi
            }
        fi;
        atomic {
            if
            :: !has
            :: has && t == STEPS -> assert(first == NONE); break
            :: has && t < STEPS ->
                assert(position <= first);
                if
                :: fails[position] -> break /* its own error, behind the rows in front of it */
                :: else
                fi;
                t++;
                taken[w] = t;
                notified[w] = true /* it looks for the next one */
            fi;
            position = 0;
            behind = 0;
            reached = 0;
            error = 0
        }
        notified[w]
    od;
    over[w] = true
}

init {
    byte i;
    atomic {
        for (i : 0 .. POSITIONS - 1) {
            if
            :: fails[i] = true; first = (first == NONE -> i : first)
            :: skip
            fi
        }
        for (i : 0 .. PIPELINES - 1) {
            next[i] = POSITION(i, 0);
            run producer(i);
#ifdef THREE
            over[i] = i != 2;
#endif
            if
            :: !over[i] -> run replica(i)
            :: else
            fi
        }
        ready = true
    }
}
