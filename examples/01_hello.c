/* Lesson 1: replicas. The same function runs on all of them at once, each a thread that is pinned to a core of its own.
 *
 *     build/examples/01_hello [REPLICAS] */
#include "lesson.h"

#include <stdio.h>

/* Replica context: `self` says which replica this is. Every other call that a replica can make takes it too. */
static ditto_status say_hello(ditto_replica *self, void *unused)
{
    (void)unused;
    for (uint32_t turn = 0; turn < ditto_num_replicas(self); turn++) {
        if (turn == ditto_replica_id(self))
            printf("hello from replica %u of %u\n", ditto_replica_id(self), ditto_num_replicas(self));
        DITTO_TRY(ditto_barrier(self, NULL)); /* nobody goes on before all have come: so they speak in turn */
    }
    return DITTO_OK;
}

/* A function that fails ends the run for all, and run returns its message: nobody waits for ever. */
static ditto_status fail_once(ditto_replica *self, void *unused)
{
    (void)unused;
    if (ditto_replica_id(self) == ditto_num_replicas(self) - 1)
        return ditto_fail(self, 42, "replica %u has had enough", ditto_replica_id(self));
    return ditto_barrier(self, NULL);
}

int main(int argc, char **argv)
{
    /* Cross-replica context: ordinary code, which sees all replicas at once. */
    ditto_strategy *strategy = make_strategy(argc, argv);
    char where[8192];
    check(ditto_strategy_describe(strategy, where, sizeof where, NULL));
    printf("%s", where);

    check(ditto_strategy_run(strategy, say_hello, NULL));

    ditto_status status = ditto_strategy_run(strategy, fail_once, NULL);
    const ditto_error *error = ditto_last_error();
    printf("%s from replica %d: %s (code %d)\n", ditto_status_name(status), error->replica, error->message,
           error->user_code);

    check(ditto_strategy_run(strategy, say_hello, NULL)); /* and the next run works */
    check(ditto_strategy_destroy(strategy));
    return 0;
}
