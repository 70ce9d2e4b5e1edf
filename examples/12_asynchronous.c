/* Lesson 12: workers that do not wait for each other. Each replica is a worker. They learn the weights of
 * words from the sums of random documents. Common words occur in most documents and rare ones seldom, so each
 * step touches a few rows of the table. Worker 0 is slow, and the others execute the functions that it does
 * not get to.
 *
 *     build/examples/12_asynchronous [REPLICAS] */
#include "lesson.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS = 500, SHARDS = 4, LENGTH = 8, DOCUMENTS = 64, STEPS = 1500 };

struct model {
    ditto_variable *weights;      /* [WORDS, 1], in shards */
    ditto_per_worker *generators; /* the state of each worker's random numbers */
};

/* What the workers are to find out. */
static double truth(int64_t word)
{
    return sin((double)word);
}

/* A random word. Word w is drawn about w + 1 times less often than word 0. */
static int64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    double uniform = (double)(*state >> 11) / 9007199254740992.0;
    return (int64_t)(pow(WORDS, uniform) - 1);
}

/* The share of its error by which a document is corrected in one step. If all of 64 workers compare with the
 * same weights before any of them pushes, the corrections add up to 1.9 times the error. From 2 on, errors
 * grow. */
#define RATE 0.03

/* One step: looks the words of some documents up, compares the sums with the true ones, and pushes a
 * correction for each word, which is the mean of those from its documents. Returns the mean square of the
 * errors. */
static ditto_status step(ditto_replica *self, void *user)
{
    const struct model *model = user;
    int64_t words[DOCUMENTS * LENGTH];
    double weights[DOCUMENTS * LENGTH], corrections[DOCUMENTS * LENGTH], squares = 0;
    int occurrences[WORDS] = { 0 };
    ditto_tensor generator;
    DITTO_TRY(ditto_worker_value(self, model->generators, &generator));
    for (int i = 0; i < DOCUMENTS * LENGTH; i++)
        occurrences[words[i] = draw(generator.data)]++;
    DITTO_TRY(ditto_lookup(self, model->weights, words, DOCUMENTS * LENGTH, weights));
    for (int d = 0; d < DOCUMENTS; d++) {
        double error = 0;
        for (int i = d * LENGTH; i < (d + 1) * LENGTH; i++)
            error += weights[i] - truth(words[i]);
        for (int i = d * LENGTH; i < (d + 1) * LENGTH; i++)
            corrections[i] = RATE / LENGTH * error / occurrences[words[i]];
        squares += error * error;
    }
    ditto_slices slices = { .indices = words,
                            .values = corrections,
                            .rows = DOCUMENTS * LENGTH,
                            .row_count = 1,
                            .dtype = DITTO_F64 };
    if (ditto_worker(self) == 0)
        usleep(2000);
    DITTO_TRY(ditto_scatter(self, model->weights, DITTO_SCATTER_SUB, &slices));
    return ditto_return_f64(self, NULL, squares / DOCUMENTS);
}

/* Each worker begins with other random numbers. */
static ditto_status seed(uint32_t worker, uint32_t workers, void *user, ditto_tensor *component)
{
    uint64_t *state = user;
    (void)workers;
    *state = worker + 1;
    *component = (ditto_tensor){ .data = state, .dtype = DITTO_U64 };
    return DITTO_OK;
}

/* Schedules a step, waits for it, and returns its error. */
static double error_of_a_step(ditto_coordinator *coordinator)
{
    ditto_remote *remote;
    ditto_value *value;
    double error;
    check(ditto_coordinator_schedule(coordinator, "step", NULL, NULL, &remote));
    check(ditto_remote_fetch(remote, &value));
    check(ditto_value_f64(value, &error));
    check(ditto_value_destroy(value));
    check(ditto_remote_destroy(remote));
    return error;
}

int main(int argc, char **argv)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_variable_options cut = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_tensor zeros = { .dtype = DITTO_F64, .rank = 2, .shape = { WORDS, 1 } };
    ditto_strategy *strategy;
    ditto_coordinator *coordinator;
    struct model model;
    uint64_t state;
    options.num_replicas = replicas_of(argc, argv);
    cut.name = "weights";
    cut.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = SHARDS };
    check(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy));
    check(ditto_variable_create(strategy, &zeros, &cut, &model.weights));
    check(ditto_function_register("step", step, &model));
    check(ditto_coordinator_create(strategy, NULL, &coordinator));
    check(ditto_coordinator_values_from_function(coordinator, seed, &state, &model.generators));

    double before = error_of_a_step(coordinator);
    for (int i = 0; i < STEPS; i++)
        check(ditto_coordinator_schedule(coordinator, "step", NULL, NULL, NULL));
    check(ditto_coordinator_join(coordinator));
    double after = error_of_a_step(coordinator);

    ditto_coordinator_counters done = DITTO_COORDINATOR_COUNTERS_INIT;
    ditto_shard_info first = DITTO_SHARD_INFO_INIT;
    uint64_t functions = 0;
    check(ditto_coordinator_stats(coordinator, &done));
    check(ditto_variable_shard(model.weights, 0, &first));
    for (uint32_t w = 0; w < done.num_workers; w++) {
        ditto_worker_info info = DITTO_WORKER_INFO_INIT;
        check(ditto_coordinator_worker_info(coordinator, w, &info));
        printf("worker %u executed %llu functions\n", w, (unsigned long long)info.functions);
        functions += info.functions;
    }
    printf("mean square error: %.3f, after %d steps %.6f; shard 0 was updated %llu times\n", before, STEPS,
           after, (unsigned long long)first.version);
    check(ditto_coordinator_destroy(coordinator));
    check(ditto_variable_destroy(model.weights));
    check(ditto_strategy_destroy(strategy));
    check(ditto_function_unregister("step"));
    return after < before / 10 && functions == STEPS + 2 ? 0 : 1;
}
