/* tests/model/shares.pml - started operations over several hosts (src/sync/hosts/started.h, shares.h).
 *
 * Two replicas of a host start two operations, and a caller that only waits carries them out. Each operation
 * has one step of two shares. A replica that waits takes shares, or gives up, or fails at any time in the
 * variant FAIL. One replica, or none, never gives up the second operation. The other hosts answer in the
 * first operation, and in the second one they answer or do not. A replica that leaves waits until nobody is
 * accessing buffers, and then its own buffers are freed. The fence of that wait is modelled in access.pml.
 *
 * Claims   Every share is done once, while the buffers of both replicas exist. A replica consumes an
 *          operation when all its shares are done. The driver is late in an operation only if a replica has
 *          given it up, and it ends then. All threads end.
 * Mutants  NO_SWAP         A share is taken by a load and a store.
 *          EARLY_POST      The number of shares is written before the step.
 *          NO_DONE_WAIT    An operation is carried out when all shares are taken.
 *          ANY_NUMBER      The driver ends its wait if a replica has given up any operation.
 *          NO_LATE_LOOK    The driver does not look whether a replica has given up.
 *          PLAIN_STORE     A replica that is late overwrites that another one has given up a later operation.
 *          FAIL+NO_CALLER_WAIT  A replica leaves while the caller is accessing buffers.
 *          FAIL+NO_I1      The caller does not look at the stop when it begins to access buffers.
 *
 * That replicas look at the stop when they take shares is not needed: the caller has access as long as a
 * share is left. */
#define N 2
#define CALLER N
#define OPS 2
#define SHARES 2
#define ALL_BITS ((1 << SHARES) - 1)

byte started[N];         /* the word of each replica */
byte number, open;       /* the two parts of one word */
byte posted, counted;    /* the operation of the step, and its shares that are done */
byte carried, given_up;
byte taken[OPS + 1], worked[OPS + 1]; /* a bit for each share */
byte gave_up[OPS + 1];
byte fails = N, patient = N;
bool answers, stopped, accessing[N + 1], freed[N];

inline take_shares() {
    do
    :: atomic { open == 0 -> break }
    :: else ->
        atomic { seen = open; seen_number = number };
        if
        :: seen == 0
#ifdef NO_SWAP
        :: seen != 0 -> open = seen - 1;
#else
        :: atomic { seen != 0 && open == seen && number == seen_number -> open = seen - 1 }; /* S1 */
#endif
            atomic {
                assert(!(taken[posted] & (1 << (seen - 1))));
                taken[posted] = taken[posted] | (1 << (seen - 1));
                operation = posted
            };
            atomic {
                assert(!freed[0] && !freed[1]);
                worked[operation] = worked[operation] | (1 << (seen - 1))
            };
            counted++ /* S2 */
#ifndef NO_SWAP
        :: atomic { seen != 0 && !(open == seen && number == seen_number) -> skip }
#endif
        fi
    od;
    atomic { seen = 0; seen_number = 0; operation = 0 }
}

proctype caller() {
    byte seen, seen_number, operation, k = 1;
    do
    :: stopped || k > OPS -> break
    :: !stopped && k <= OPS && started[0] >= k && started[1] >= k ->
        accessing[CALLER] = true;
#ifndef NO_I1
        if :: stopped -> break :: else fi;
#endif
        if
        :: k < OPS || answers
        :: stopped -> break
#ifndef NO_LATE_LOOK
#ifdef ANY_NUMBER
        :: given_up != 0 -> /* L1 */
#else
        :: given_up == k -> /* L1 */
#endif
            atomic { assert(gave_up[k]); stopped = true; break }
#endif
        fi;
#ifdef EARLY_POST
        atomic { number++; open = SHARES };
        posted = k;
        counted = 0;
#else
        atomic { posted = k; counted = 0 };
        atomic { number++; open = SHARES }; /* S0 */
#endif
        take_shares();
#ifndef NO_DONE_WAIT
        counted == SHARES; /* S3 */
#endif
        carried = k; /* C0 */
        accessing[CALLER] = false;
        k++
    od;
    accessing[CALLER] = false
}

proctype replica(byte me) {
    byte seen, seen_number, operation, consumed, asked;
    do
    :: consumed == OPS -> goto end
    :: stopped -> break
    :: fails == me -> atomic { fails = N; stopped = true; break }
    :: started[me] < OPS -> started[me] = started[me] + 1
    :: consumed < started[me] && carried > consumed -> /* C1 */
        consumed++;
        assert(worked[consumed] == ALL_BITS)
    :: consumed < started[me] && open != 0 ->
        accessing[me] = true;
        if :: stopped -> break :: else fi;
        take_shares();
        accessing[me] = false
    :: consumed < started[me] && started[0] > consumed && started[1] > consumed && asked <= consumed &&
       carried <= consumed && (me != patient || consumed == 0) ->
        atomic { asked = consumed + 1; gave_up[asked] = 1 };
#ifdef PLAIN_STORE
        given_up = asked
#else
        atomic { if :: given_up < asked -> given_up = asked /* L0 */ :: else fi }
#endif
    od;
    accessing[me] = false;
    !accessing[0]; !accessing[1];
#ifndef NO_CALLER_WAIT
    !accessing[CALLER];
#endif
    freed[me] = true;
end:
    skip
}

init {
    atomic {
        if :: answers = true :: skip fi;
        if :: patient = 0 :: skip fi;
#ifdef FAIL
        select(fails : 0 .. N - 1);
#endif
        run caller(); run replica(0); run replica(1)
    }
}
