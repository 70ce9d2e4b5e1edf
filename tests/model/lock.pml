/* tests/model/lock.pml - a lock whose waiters sleep and may give up (src/base/waiting/lock.h).
 *
 * Three threads take the lock twice each. The waits of one of them have a limit.
 *
 * Claims   One thread has the lock at a time. Every thread without a limit gets it: none sleeps for ever.
 * Mutants  HELD_AFTER_SLEEP  A thread that has slept takes the lock as if nobody else slept.
 *          ONE_STORE         A waiter that finds the lock held sleeps without having stored AWAITED.
 *          WAKE_FIRST        The holder wakes a sleeper before it stores FREE.
 *          ANY_TAKES         A waiter takes the lock in two steps. */
#define FREE 0
#define HELD 1
#define AWAITED 2
#define THREADS 3

byte word;
bool asleep[THREADS];
byte inside;

inline wake_one() {
    atomic {
        if
        :: asleep[0] -> asleep[0] = false
        :: asleep[1] -> asleep[1] = false
        :: asleep[2] -> asleep[2] = false
        :: else
        fi
    }
}

proctype thread(byte me; bool has_limit) {
    byte round, found;
    do
    :: round == 2 -> break
    :: else ->
        round++;
        atomic { /* K1 */
            found = word;
            if
            :: found == FREE -> word = HELD
            :: else
            fi
        }
        do
        :: found == FREE -> break
        :: else ->
#ifdef ANY_TAKES
            found = word;
            word = AWAITED;
#else
            atomic { /* K1 */
                found = word;
#ifdef HELD_AFTER_SLEEP
                if
                :: found == FREE -> word = HELD
                :: else -> word = AWAITED
                fi
#else
#ifdef ONE_STORE
                if
                :: found == FREE -> word = AWAITED
                :: else
                fi
#else
                word = AWAITED
#endif
#endif
            }
#endif
            if
            :: found == FREE -> break
            :: found != FREE && has_limit -> goto given_up
            :: found != FREE ->
                atomic { /* the system call compares and sleeps */
#ifdef ONE_STORE
                    asleep[me] = (word != FREE)
#else
                    asleep[me] = (word == AWAITED)
#endif
                }
                if
                :: !asleep[me]
                :: has_limit -> asleep[me] = false
                fi
            fi
        od;
        inside++;
        assert(inside == 1);
        inside--;
#ifdef WAKE_FIRST
        if
        :: word == AWAITED -> wake_one()
        :: else
        fi;
        word = FREE;
#else
        atomic { found = word; word = FREE } /* K0 */
        if
        :: found == AWAITED -> wake_one()
        :: else
        fi;
#endif
given_up:
        skip
    od
}

init {
    atomic { run thread(0, true); run thread(1, false); run thread(2, false) }
}
