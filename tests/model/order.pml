/* tests/model/order.pml - what replicas of several pipelines receive if rows cannot be read
 * (src/input/distribute/order.h).
 *
 * There are two pipelines with one replica each and two steps, and any set of batches may fail. The producer
 * of a pipeline reads its batches one after the other into a queue of one slot, or of two slots (TWO_SLOTS).
 * A replica takes its next batch, or the error of any pipeline. In the variant THREE there are three
 * pipelines, one step, and only the replica of the last pipeline. A replica that has found nothing waits
 * until a producer has changed something. wait.pml shows that it is woken.
 *
 * Claims   All processes end. Each replica receives its batches before the first one that fails, in the order
 *          of all batches, and then the error of that batch. If no batch fails, it receives the end.
 * Mutants  EARLY_NEXT       A batch is handed over before its error is visible.
 *          ERROR_FIRST      A replica looks for errors before it looks how far the pipelines are.
 *          OWN_ALONE        A replica does not wait for other pipelines.
 *          SAFE_TOO_FAR     A replica applies what it has seen to more positions than it has looked at.
 *          THREE+ANY_ERROR  A replica takes an error that not all pipelines have reached. */
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

/* The first position of a pipeline that was not handed over, or ENDED. */
byte next[PIPELINES];

byte failed[PIPELINES] = NONE; /* 2 * position + 1 of a pipeline's error, or NONE */

/* The number of steps whose slot was filled, including the step of the end, and the number of steps whose
 * slot was given back. */
byte filled[PIPELINES];
byte taken[PIPELINES];

/* A producer, or the replica itself, has changed something since the replica began to look. */
bool notified[PIPELINES];

bool over[PIPELINES]; /* the replica takes nothing more */
bool ready;

proctype producer(byte w) {
    byte t = 0, i = 0;
    ready;
    do
    :: t > STEPS || next[w] == ENDED -> break
    :: else ->
        if
        :: t < taken[w] + SLOTS /* a slot is free */
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

/* Reads a word of all pipelines, one after the other, and keeps the least. */
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
                :: reached >= LEAST(position, behind) && error != NONE &&
                   (behind <= position || (t == STEPS && has)) ->
                    assert(error == 2 * first + 1); /* the first error, after all earlier batches */
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
                :: fails[position] -> break /* its own error, after the rows before it */
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
