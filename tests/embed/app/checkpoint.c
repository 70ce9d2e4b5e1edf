/* Saves a variable and restores it. */
#include <ditto.h>
#include <ditto/checkpoint.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    ditto_strategy *strategy;
    ditto_variable *variable;
    const char *path = argc > 1 ? argv[1] : "checkpoint.h5";
    double value = 2.5;
    ditto_tensor initial = { .data = &value, .dtype = DITTO_F64 };
    if (ditto_strategy_create(DITTO_MIRRORED, NULL, &strategy) != DITTO_OK ||
        ditto_variable_create(strategy, &initial, NULL, &variable) != DITTO_OK ||
        ditto_checkpoint_save(strategy, path, NULL) != DITTO_OK ||
        ditto_checkpoint_restore(strategy, path, NULL, NULL) != DITTO_OK ||
        ditto_variable_read(variable, &value, sizeof value) != DITTO_OK)
        return fprintf(stderr, "%s\n", ditto_last_error()->message), 1;
    printf("saved and restored: %g\n", value);
    if (ditto_variable_destroy(variable) != DITTO_OK)
        return 1;
    return ditto_strategy_destroy(strategy) == DITTO_OK ? 0 : 1;
}
