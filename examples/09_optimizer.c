/* Lesson 9: an optimizer and a checkpoint. Each replica has the gradient of its part of a sum of squares.
 * ditto_apply adds the gradients up and updates the variable, in one pass over memory. After some steps a
 * checkpoint is saved, and a strategy of 3 replicas (or 2, if the first one has 3) continues from it. The
 * value, the momentum and the number of steps are restored by name.
 *
 *     build/examples/09_optimizer [REPLICAS] */
#include "lesson.h"

#include <ditto/checkpoint.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define COUNT 1000
#define STEPS 60

/* The solution is x[i] = target(i). */
static double target(size_t i)
{
    return (double)(i % 10) - 4.5;
}

struct model {
    ditto_strategy *strategy;
    ditto_variable *x;
    ditto_optimizer *optimizer;
};

static struct model create(ditto_strategy *strategy)
{
    ditto_tensor zeros = { .dtype = DITTO_F64, .rank = 1, .shape = { COUNT } };
    ditto_variable_options named = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_optimizer_options sgd = DITTO_OPTIMIZER_OPTIONS_INIT;
    struct model m = { .strategy = strategy };
    named.name = "x";
    sgd.name = "sgd";
    sgd.rule = DITTO_RULE_SGD;
    sgd.learning_rate = 0.05;
    sgd.momentum = 0.8;
    check(ditto_variable_create(strategy, &zeros, &named, &m.x));
    check(ditto_optimizer_create(&m.x, 1, &sgd, &m.optimizer));
    return m;
}

/* Minimizes the sum of (x[i] - target(i))^2. Each of n replicas computes the gradient of every n-th
 * element. */
static ditto_status descend(ditto_replica *self, void *argument)
{
    struct model *m = argument;
    double gradient[COUNT];
    ditto_tensor part = { .data = gradient, .dtype = DITTO_F64, .rank = 1, .shape = { COUNT } };
    for (int step = 0; step < STEPS; step++) {
        const void *x;
        DITTO_TRY(ditto_read(self, m->x, &x));
        for (size_t i = 0; i < COUNT; i++)
            gradient[i] = i % ditto_num_replicas(self) == ditto_replica_id(self)
                              ? 2 * (((const double *)x)[i] - target(i))
                              : 0;
        DITTO_TRY(ditto_apply(self, m->optimizer, &part, NULL));
    }
    return DITTO_OK;
}

/* Returns the largest distance of an element from the solution, or a NaN if an element is one. */
static double error_of(const struct model *m)
{
    double x[COUNT], largest = 0;
    check(ditto_variable_read(m->x, x, sizeof x));
    for (size_t i = 0; i < COUNT; i++) {
        double error = fabs(x[i] - target(i));
        if (isnan(error))
            return error;
        largest = fmax(largest, error);
    }
    return largest;
}

static long long steps_of(const struct model *m)
{
    ditto_optimizer_properties has = DITTO_OPTIMIZER_PROPERTIES_INIT;
    int64_t steps;
    check(ditto_optimizer_info(m->optimizer, &has));
    check(ditto_variable_read(has.iterations, &steps, sizeof steps));
    return (long long)steps;
}

static void destroy(const struct model *m)
{
    check(ditto_optimizer_destroy(m->optimizer));
    check(ditto_variable_destroy(m->x));
    check(ditto_strategy_destroy(m->strategy));
}

int main(int argc, char **argv)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/ditto-lesson-%ld.h5", (long)getpid());
    struct model first = create(strategy_of_words(argc, argv));
    check(ditto_strategy_run(first.strategy, descend, &first));
    printf("%u replicas, %lld steps: off by at most %.2e\n", ditto_strategy_num_replicas(first.strategy),
           steps_of(&first), error_of(&first));
    check(ditto_checkpoint_save(first.strategy, path, NULL)); /* saves x, sgd/momentum/x, sgd/iterations */
    uint32_t other = ditto_strategy_num_replicas(first.strategy) == 3 ? 2 : 3;
    destroy(&first);

    struct model second = create(strategy_of(other));
    check(ditto_checkpoint_restore(second.strategy, path, NULL, NULL));
    printf("restored on %u: off by at most %.2e\n", ditto_strategy_num_replicas(second.strategy),
           error_of(&second));
    check(ditto_strategy_run(second.strategy, descend, &second));
    printf("%lld steps: off by at most %.2e\n", steps_of(&second), error_of(&second));
    bool good = steps_of(&second) == 2 * STEPS && error_of(&second) < 1e-5;
    destroy(&second);
    unlink(path);
    return good ? 0 : 1;
}
