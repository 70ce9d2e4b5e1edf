/* tests/cases/error_of_another_thread.c - two threads schedule their own functions and join. A function of
 * the first thread fails. The functions of both are cancelled, and the error is returned to one of them, which
 * may be the second. The other join returns DITTO_OK, although its functions were not executed. */
#include "cases.h"

#include <pthread.h>

enum { FUNCTIONS = 100 };

struct user {
    const char *name;
    ditto_status scheduled, joined;
    _Atomic int executed;
};

static ditto_coordinator *coordinator;
static struct user users[] = { { .name = "first" }, { .name = "second" } };

static ditto_status execute(ditto_replica *self, void *pointer)
{
    struct user *user = pointer;
    sleep_ms(1);
    if (user->executed++ == 20 && user == users)
        return ditto_fail(self, 1, "the 20th function of the first thread fails");
    return DITTO_OK;
}

static void *schedule(void *pointer)
{
    struct user *user = pointer;
    for (int i = 0; i < FUNCTIONS && user->scheduled == DITTO_OK; i++)
        user->scheduled = ditto_coordinator_schedule(coordinator, user->name, NULL, NULL, NULL);
    user->joined = ditto_coordinator_join(coordinator);
    return NULL;
}

int main(void)
{
    ditto_strategy *strategy = with_workers(2, 0, 10000);
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        MUST(ditto_function_register(users[i].name, execute, &users[i]));
    MUST(ditto_coordinator_create(strategy, NULL, &coordinator));
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, schedule, &users[i]) != 0)
            return NOT_TRIED;
    int right = 1;
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        printf("%s thread: schedule %s, join %s, %d of %d functions were executed\n", users[i].name,
               ditto_status_name(users[i].scheduled), ditto_status_name(users[i].joined), users[i].executed,
               FUNCTIONS);
    }
    for (int i = 0; i < 2; i++)
        right &= (users[i].executed == FUNCTIONS) == (users[i].scheduled >= 0 && users[i].joined >= 0);
    MUST(ditto_coordinator_destroy(coordinator));
    MUST(ditto_strategy_destroy(strategy));
    return right ? RIGHT : WRONG;
}
