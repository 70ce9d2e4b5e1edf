/* tests/model/meeting.pml - meetings in one round and meetings by counter (src/sync/meeting/meeting.h).
 *
 * Three replicas have four meetings. Each meeting is in one round or by counter, in any order. A replica has
 * two mailboxes. The payload of a mailbox is written before its word (release), and a reader reads the word
 * first (acquire), so in this model the two are separate steps in that order. After a meeting each replica
 * reads the first mailboxes of all, until it comes to the next meeting.
 *
 * Claims   After a meeting each replica reads every peer's payload of that meeting. In a meeting by counter
 *          the last replica to arrive combines payloads of that meeting only, and all replicas take that
 *          result. All replicas end.
 * Mutants  ONE_PARITY     A replica has one mailbox.
 *          NO_WAIT        A replica continues without waiting for its last peer.
 *          LATE_READ      Mailboxes are read after the replica has come to the next meeting.
 *          EARLY_RELEASE  arrived is set to 0 after the release (I3).
 *          EARLY_COUNT    An arrival is counted before its mailbox is written. */
#define N 3
#define MEETINGS 4
#ifdef ONE_PARITY
#define MAILBOX(r, e) ((r) * 2)
#else
#define MAILBOX(r, e) ((r) * 2 + (e) % 2)
#endif
byte word[6], payload[6], arrived, release, result;
bool by_counter[MEETINGS + 1];

inline read_mailboxes(seq) {
    peer = 0;
    do
    :: peer == N -> break
    :: else -> assert(payload[MAILBOX(peer, seq)] == seq); peer++
    od
}

inline meet_in_a_round() {
    payload[MAILBOX(me, e)] = e;
    word[MAILBOX(me, e)] = e; /* M0 */
#ifdef LATE_READ
    read_mailboxes(e - 1);
#endif
    peer = 0;
    do
    :: peer == N -> break
    :: else ->
#ifdef NO_WAIT
        if :: peer < N - 1 -> word[MAILBOX(peer, e)] == e :: else fi;
#else
        word[MAILBOX(peer, e)] == e; /* M1 */
#endif
        peer++
    od
}

inline meet_by_counter() {
#ifdef EARLY_COUNT
    atomic { arrived++; last = arrived == N };
    payload[MAILBOX(me, e)] = e;
#else
    payload[MAILBOX(me, e)] = e;
    word[MAILBOX(me, e)] = e;
    atomic { arrived++; last = arrived == N }; /* C0, C1 */
#endif
    if
    :: last ->
        read_mailboxes(e);
        result = e;
#ifdef EARLY_RELEASE
        release = e;
        arrived = 0
#else
        arrived = 0;
        release = e /* C2 */
#endif
    :: else -> release == e /* C3 */
    fi;
    assert(result == e)
}

proctype replica(byte me) {
    byte e = 1, peer;
    bool last;
    do
    :: e > MEETINGS -> break
    :: else ->
        if
        :: by_counter[e] -> meet_by_counter()
        :: else -> meet_in_a_round()
        fi;
#ifndef LATE_READ
        read_mailboxes(e);
#endif
        e++
    od
}

init {
    byte e = 1;
    atomic {
        do
        :: e > MEETINGS -> break
        :: else -> if :: by_counter[e] = true :: skip fi; e++
        od;
        run replica(0); run replica(1); run replica(2)
    }
}
