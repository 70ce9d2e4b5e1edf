/* tests/model/functions.pml - the functions that workers take from a coordinator's queue
 * (src/coordinator/function_queue.h, and the invariants of src/coordinator/coordinator.h).
 *
 * A caller pushes three functions into a ring of two slots, and two workers pop and execute them. A worker
 * that finds nothing says that it is idle, looks again, and sleeps. A push wakes one idle worker. The second
 * function fails. Before its function, a worker may make what it lacks. One worker may be retired while it
 * does this or executes the function, which goes back and is executed by the other one. The caller waits
 * until the counts of finished functions reach the number of pushes.
 *
 * Claims   Every function is executed, and finished exactly once. The caller sees the error. Everyone ends.
 * Mutants  LATE_IDLE      A worker looks at the queue before it says that it is idle.
 *          NO_SWAP        A pop reads the ticket and takes it in two steps.
 *          NO_FREE_LOOK   A push does not look whether its slot is free.
 *          EARLY_FINISH   A function is counted as finished before its error is recorded.
 *          PUSHES_FIRST   The caller reads the number of pushes before the counts. It pushes in two threads.
 *          PLAIN_RETIRE   A worker that was retired finishes its function too.
 *          PLAIN_BEGIN    A worker that was retired while it made what it lacked executes its function. */
#define FUNCTIONS 3
#define SLOTS 2
#define WORKERS 2
#define NONE FUNCTIONS
#define FREE 0
#define RUNNING 1
#define RETIRED 2
#define MAKING 3

byte sequence[SLOTS], item[SLOTS], tail, head;
byte finished[WORKERS], state[WORKERS], current[WORKERS];
byte executed[FUNCTIONS], ended[FUNCTIONS];
byte returned = NONE, pushed;
bool idle[WORKERS], awake[WORKERS], failed, ending, ready, has_retired;

#define HAS_ONE (sequence[head % SLOTS] > head)

/* Wakes one idle worker. */
inline wake_one() {
    if
    :: atomic { idle[0] -> idle[0] = false; awake[0] = true }
    :: atomic { !idle[0] && idle[1] -> idle[1] = false; awake[1] = true }
    :: !idle[0] && !idle[1]
    fi
}

inline push(f) {
    atomic { ticket = tail; tail++; pushed++ }
#ifndef NO_FREE_LOOK
    sequence[ticket % SLOTS] == ticket; /* E1 */
#endif
    item[ticket % SLOTS] = f;
    sequence[ticket % SLOTS] = ticket + 1; /* F0 */
    wake_one()
}

#ifdef PUSHES_FIRST
#define OWN_PUSHES (FUNCTIONS - 1)
active proctype second_caller() {
    byte ticket;
    ready;
    push(FUNCTIONS - 1)
}
#else
#define OWN_PUSHES FUNCTIONS
#endif

active proctype caller() {
    byte ticket, f = 0, sum, seen;
    sequence[0] = 0;
    sequence[1] = 1;
    ready = true;
    do
    :: f == OWN_PUSHES -> break
    :: else -> push(f); f++
    od;
    do
    :: atomic { /* at most one worker is retired */
            !has_retired && (state[0] == RUNNING || state[0] == MAKING) ->
            has_retired = true; state[0] = RETIRED };
        returned = current[0];
        wake_one()
    :: true ->
#ifdef PUSHES_FIRST
        seen = pushed;
        sum = finished[0];
        sum = sum + finished[1];
#else
        sum = finished[0];
        sum = sum + finished[1];
        seen = pushed;
#endif
        if
        :: sum == seen -> break
        :: else
        fi
    od;
#ifdef PUSHES_FIRST
    assert(sum == pushed);
#else
    assert(failed);
    f = 0;
    do
    :: f == FUNCTIONS -> break
    :: else -> assert(executed[f] >= 1 && ended[f] == 1); f++
    od;
#endif
    ending = true;
    awake[0] = true;
    awake[1] = true
}

active [WORKERS] proctype worker() {
    byte me = _pid % WORKERS, ticket, f = NONE;
    ready;
    do
    :: ending -> break
    :: else ->
        f = NONE;
        if
        :: atomic { returned != NONE -> f = returned; returned = NONE }
        :: returned == NONE && HAS_ONE ->
#ifdef NO_SWAP
            ticket = head; /* F1 */
            f = item[ticket % SLOTS];
            head = ticket + 1;
            sequence[ticket % SLOTS] = ticket + SLOTS
#else
            atomic { /* F1 */
                if
                :: HAS_ONE -> ticket = head; head++
                :: else -> ticket = 255
                fi
            }
            if
            :: ticket != 255 ->
                f = item[ticket % SLOTS];
                sequence[ticket % SLOTS] = ticket + SLOTS /* E0 */
            :: else
            fi
#endif
        :: returned == NONE && !HAS_ONE ->
            awake[me] = false;
#ifdef LATE_IDLE
            if
            :: returned == NONE && !HAS_ONE && !ending -> idle[me] = true; awake[me] || ending
            :: else
            fi;
#else
            idle[me] = true;
            if
            :: returned == NONE && !HAS_ONE && !ending -> awake[me] || ending
            :: else
            fi;
#endif
            idle[me] = false
        fi;
        if
        :: f != NONE ->
            current[me] = f;
            if
            :: state[me] = RUNNING
            :: state[me] = MAKING;
#ifdef PLAIN_BEGIN
                state[me] = RUNNING
#else
                if
                :: atomic { state[me] == MAKING -> state[me] = RUNNING }
                :: state[me] == RETIRED -> break
                fi
#endif
            fi;
            executed[f]++;
#ifdef EARLY_FINISH
            ended[f]++;
            finished[me]++;
            failed = failed || f == 1;
            state[me] = FREE
#else
            if
#ifdef PLAIN_RETIRE
            :: true ->
#else
            :: atomic { state[me] == RUNNING -> state[me] = FREE }
#endif
                failed = failed || f == 1;
                ended[f]++;
                finished[me]++
#ifndef PLAIN_RETIRE
            :: state[me] == RETIRED -> break
#endif
            fi
#endif
        :: else
        fi
    od
}
