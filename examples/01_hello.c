/* Lesson 1: replicas. All replicas run the same function at the same time. Each replica is a thread that is
 * pinned to its own core.
 *
 *     build/examples/01_hello [REPLICAS] */
#include "lesson.h"

#include <stdio.h>

/* This function runs in replica context. `self` is the calling replica, which all calls in replica context
 * take. */
static ditto_status say_hello(ditto_replica *self, void *unused)
{
    (void)unused;
    for (uint32_t turn = 0; turn < ditto_num_replicas(self); turn++) {
        if (turn == ditto_replica_id(self))
            printf("hello from replica %u of %u\n", ditto_replica_id(self), ditto_num_replicas(self));
        /* No replica continues before all have reached the barrier. So the replicas print in turn. */
        DITTO_TRY(ditto_barrier(self, NULL));
    }
    return DITTO_OK;
}

/* If the function of one replica fails, the run ends on all replicas, and ditto_strategy_run returns the
 * error. No replica waits forever. */
static ditto_status fail_once(ditto_replica *self, void *unused)
{
    (void)unused;
    if (ditto_replica_id(self) == ditto_num_replicas(self) - 1)
        return ditto_fail(self, 42, "replica %u has had enough", ditto_replica_id(self));
    return ditto_barrier(self, NULL);
}

int main(int argc, char **argv)
{
    /* main is in cross-replica context. It is ordinary code that can use all replicas. */
    ditto_strategy *strategy = strategy_of_words(argc, argv);
    char where[8192];
    check(ditto_strategy_describe(strategy, where, sizeof where, NULL));
    printf("%s", where);

    check(ditto_strategy_run(strategy, say_hello, NULL));

    ditto_status status = ditto_strategy_run(strategy, fail_once, NULL);
    const ditto_error *error = ditto_last_error();
    printf("an error on purpose: %s from replica %d: %s (code %d)\n", ditto_status_name(status),
           error->replica, error->message, error->user_code);

    check(ditto_strategy_run(strategy, say_hello, NULL)); /* the next run works as usual */
    check(ditto_strategy_destroy(strategy));
    return 0;
}
