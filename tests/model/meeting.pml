/* tests/model/meeting.pml - the flat meeting of src/sync/meeting.h: three replicas, four meetings, two lines each.
 * A line's payload is written before its word (release); a reader sees the word first (acquire): so in this model the two
 * are separate steps in that order. Claim: after a meeting each reads every peer's payload of that meeting, and all end.
 * Mutants: ONE_PARITY (one line per replica), NO_WAIT (goes on without its last peer). */
#define N 3
#define MEETINGS 4
#ifdef ONE_PARITY
#define LINE(r, e) ((r) * 2)
#else
#define LINE(r, e) ((r) * 2 + (e) % 2)
#endif
byte word[6], payload[6];

proctype replica(byte me) {
    byte e = 1, peer;
    do
    :: e > MEETINGS -> break
    :: else ->
        payload[LINE(me, e)] = e;
        word[LINE(me, e)] = e; /* M0 */
        peer = 0;
        do
        :: peer == N -> break
        :: else ->
#ifdef NO_WAIT
            if :: peer < N - 1 -> word[LINE(peer, e)] == e :: else fi;
#else
            word[LINE(peer, e)] == e; /* M1 */
#endif
            peer++
        od;
        peer = 0;
        do
        :: peer == N -> break
        :: else -> assert(payload[LINE(peer, e)] == e); peer++
        od;
        e++
    od
}

init { atomic { run replica(0); run replica(1); run replica(2) } }
