/* tests/model/queue.pml - the ring of src/input/queue/ring.h: two producers that take tickets in order, one consumer, two slots,
 * five tickets. Claim: the consumer gets the batches in ticket order, each whole, and all end.
 * Mutants: NO_FREE_LOOK (a producer does not wait for its slot), EARLY_PUBLISH (turn before the batch is written). */
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
