/* tests/cases/rule_never_returns.c - a rule that is a function of the program never returns, and has the lock
 * of a shard. Calls that need the lock then wait for ever, although timeout_ms is 1 s.
 *     rule_never_returns read | save     ditto_variable_read, or ditto_checkpoint_save */
#include "cases.h"

#include <ditto/checkpoint.h>
#include <string.h>
#include <unistd.h>

static ditto_optimizer *optimizer;
static _Atomic int calls;

static void hang(const ditto_rule_range *range, void *unused)
{
    (void)range, (void)unused;
    while (calls++ == 0)
        for (;;)
            sleep_ms(100);
}

static ditto_status apply(ditto_replica *self, void *unused)
{
    double gradient = 1;
    (void)unused;
    return ditto_apply(self, optimizer, &(ditto_tensor){ .data = &gradient, .dtype = DITTO_F64 }, NULL);
}

int main(int argc, char **argv)
{
    ditto_strategy *strategy = with_workers(3, 300, 1000);
    ditto_optimizer_options options = DITTO_OPTIMIZER_OPTIONS_INIT;
    ditto_coordinator *coordinator;
    ditto_variable *variable;
    double value;
    char path[32];
    options.rule = DITTO_RULE_FUNCTION;
    options.function = hang;
    MUST(ditto_variable_create(strategy, &(ditto_tensor){ .dtype = DITTO_F64 }, NULL, &variable));
    MUST(ditto_optimizer_create(&variable, 1, &options, &optimizer));
    MUST(ditto_function_register("apply", apply, NULL));
    MUST(ditto_coordinator_create(strategy, NULL, &coordinator));
    MUST(ditto_coordinator_schedule(coordinator, "apply", NULL, NULL, NULL));
    ditto_status status;
    told("join", ditto_coordinator_join(coordinator));
    alarm(8); /* ends the program if the next call does not return */
    if (argc > 1 && strcmp(argv[1], "save") == 0) {
        snprintf(path, sizeof path, "/tmp/ditto-case-%d", getpid());
        status = told("save", ditto_checkpoint_save(strategy, path, NULL));
        unlink(path);
    } else
        status = told("read", ditto_variable_read(variable, &value, sizeof value));
    told("destroy", ditto_coordinator_destroy(coordinator));
    return status == DITTO_ERR_TIMED_OUT ? RIGHT : WRONG;
}
