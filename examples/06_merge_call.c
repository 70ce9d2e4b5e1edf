/* Lesson 6: merge_call. In the middle of a run all replicas pause, and one function reads the values of all
 * of them. In this lesson it finds the replica whose value is farthest from the mean, which no collective
 * does.
 *
 *     build/examples/06_merge_call [REPLICAS] */
#include "lesson.h"

#include <math.h>
#include <stdio.h>

enum { STEPS = 3 };

struct survey {
    uint32_t farthest[STEPS]; /* the replica whose value was farthest from the mean */
    int step;
};

/* The function of another run, inside the one that pauses. All replicas take part in it. */
static ditto_status cheer(ditto_replica *self, void *unused)
{
    (void)unused;
    return ditto_barrier(self, NULL);
}

/* The merge function. It is called once, in cross-replica context. Each replica receives its result. */
static ditto_status find_farthest(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                  void *user, ditto_value **result)
{
    struct survey *s = user;
    uint32_t replicas = ditto_strategy_num_replicas(strategy);
    double mean, largest_distance = -1;
    (void)count;
    DITTO_TRY(ditto_strategy_reduce_f64(strategy, DITTO_MEAN, arguments[0], &mean));
    for (uint32_t r = 0; r < replicas; r++) {
        ditto_tensor estimate;
        DITTO_TRY(ditto_value_component(arguments[0], r, &estimate));
        double distance = fabs(*(double *)estimate.data - mean);
        if (distance > largest_distance) {
            largest_distance = distance;
            s->farthest[s->step] = r;
        }
    }
    s->step++;
    DITTO_TRY(ditto_strategy_run(strategy, cheer, NULL));
    return ditto_strategy_reduce(strategy, DITTO_MEAN, arguments[0], NULL, 0, result);
}

/* In each step, each replica estimates pi with new random points, and then moves its estimate half the way to
 * the mean of all. */
static ditto_status estimate(ditto_replica *self, void *argument)
{
    double point[2], own_estimate = 0;
    ditto_random random;
    DITTO_TRY(ditto_random_of(self, 2026, &random));
    for (int step = 0; step < STEPS; step++) {
        int inside = 0;
        for (int i = 0; i < 10000; i++) {
            ditto_random_f64(&random, point, 2);
            inside += point[0] * point[0] + point[1] * point[1] < 1;
        }
        own_estimate = inside * 4e-4;
        ditto_tensor mine = { .data = &own_estimate, .dtype = DITTO_F64 }, mean;
        const ditto_value *merged;
        DITTO_TRY(ditto_merge_call(self, find_farthest, argument, &mine, 1, &merged));
        DITTO_TRY(ditto_local(self, merged, &mean));
        own_estimate = (own_estimate + *(double *)mean.data) / 2;
    }
    return ditto_return_f64(self, NULL, own_estimate);
}

int main(int argc, char **argv)
{
    ditto_strategy *strategy = strategy_of_words(argc, argv);
    struct survey s = { .step = 0 };
    ditto_value *estimates;
    double mean;
    check(ditto_strategy_run_values(strategy, estimate, &s, NULL, NULL, &estimates));
    check(ditto_strategy_reduce_f64(strategy, DITTO_MEAN, estimates, &mean));
    for (int i = 0; i < STEPS; i++)
        printf("step %d: replica %u was farthest from the mean\n", i, s.farthest[i]);
    printf("pi is about %.4f\n", mean);
    check(ditto_value_destroy(estimates));
    check(ditto_strategy_destroy(strategy));
    return fabs(mean - 3.14159) < 0.1 ? 0 : 1;
}
