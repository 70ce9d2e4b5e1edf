/* tests/model/queue.pml - the ring (src/input/distribute/ring.h).
 *
 * Two producers take tickets in order. There are one consumer, two slots (in the variant ONE_SLOT one slot)
 * and five tickets.
 *
 * Claims   The consumer receives the batches in the order of tickets, each whole. All processes end.
 * Mutants  NO_FREE_LOOK   A producer does not wait until its slot is free.
 *          EARLY_PUBLISH  turn is written before the batch. */
#ifdef ONE_SLOT
#define SLOTS 1
#else
#define SLOTS 2
#endif
#define TICKETS 5
byte turn[SLOTS], batch[SLOTS], next_ticket;
bool ready;

active [2] proctype producer() {
    byte ticket;
    ready;
    do
    :: atomic { ticket = next_ticket; if :: ticket < TICKETS -> next_ticket++ :: else fi }
        if
        :: ticket >= TICKETS -> break
        :: else
        fi;
#ifndef NO_FREE_LOOK
        turn[ticket % SLOTS] == 2 * ticket; /* F1 */
#endif
#ifdef EARLY_PUBLISH
        turn[ticket % SLOTS] = 2 * ticket + 1;
        batch[ticket % SLOTS] = 100 + ticket
#else
        batch[ticket % SLOTS] = 100 + ticket;
        turn[ticket % SLOTS] = 2 * ticket + 1 /* P0 */
#endif
    od
}

active proctype consumer() {
    byte ticket = 0;
    turn[0] = 0;
    turn[1 % SLOTS] = 2 * (SLOTS - 1);
    ready = true;
    do
    :: ticket == TICKETS -> break
    :: else ->
        turn[ticket % SLOTS] == 2 * ticket + 1; /* P1 */
        assert(batch[ticket % SLOTS] == 100 + ticket);
        turn[ticket % SLOTS] = 2 * (ticket + SLOTS); /* F0 */
        ticket++
    od
}
