/* tests/input/distribute/test_ring.c - tests the ring of src/input/distribute/ring.h alone, with several
 * producers and tickets from a counter. */
#include "support/support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "input/distribute/ring.h"

enum { TICKETS = 100000, SLOTS = 4 };

struct shared_ring {
    struct dti_ring ring;
    _Atomic uint64_t next_ticket;
};

static void *put_tickets(void *argument)
{
    struct shared_ring *shared = argument;
    uint64_t ticket;
    while ((ticket = atomic_fetch_add(&shared->next_ticket, 1)) < TICKETS) {
        while (!dti_ring_is_free(&shared->ring, ticket))
            sched_yield();
        struct dti_batch_slot *slot = dti_ring_slot(&shared->ring, ticket);
        slot->rows = ticket;
        memset(slot->payload, (int)ticket, 64);
        dti_ring_publish(&shared->ring, ticket);
    }
    return NULL;
}

static void the_ring_keeps_the_order_of_tickets(void **state)
{
    static struct shared_ring shared;
    pthread_t producers[4];
    size_t bytes;
    assert_true(dti_ring_bytes(SLOTS, 64, &bytes));
    assert_false(dti_ring_bytes(1000, SIZE_MAX / 100, &(size_t){ 0 }));
    void *memory = aligned_alloc(128, (bytes + 127) / 128 * 128);
    dti_ring_init(&shared.ring, SLOTS, 64, memory);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&producers[i], NULL, put_tickets, &shared), 0);
    for (uint64_t expected = 0; expected < TICKETS; expected++) {
        struct dti_batch_slot *slot;
        while ((slot = dti_ring_peek(&shared.ring)) == NULL)
            sched_yield();
        assert_int_equal(slot->rows, expected);
        assert_int_equal((unsigned char)slot->payload[63], expected & 0xff);
        dti_ring_take(&shared.ring);
        assert_true(dti_ring_release(&shared.ring));
        assert_false(dti_ring_release(&shared.ring));
    }
    for (int i = 0; i < 4; i++)
        pthread_join(producers[i], NULL);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ring_keeps_the_order_of_tickets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
