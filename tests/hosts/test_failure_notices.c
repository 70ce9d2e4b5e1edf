/* tests/hosts/test_failure_notices.c - a failure of one host stops the runs of all others over the life line
 * (src/sync/hosts/failure_notices.h), and the next run works. */
#include "base/waiting/stop.h"
#include "replicas/team/context.h"
#include "replicas/team/replica.h"
#include "support/hosts.h"

#include <unistd.h>

/* -- replicas that compute -- */

/* Waits until this replica's run is stopped, at most for 30 seconds. Returns true if it is. */
static bool is_stopped_soon(ditto_replica *self)
{
    struct dti_replica *r;
    for (int i = 0; i < 30000 && dti_self(self, &r) == DITTO_OK; i++, usleep(1000))
        if (dti_stopped(r->stop))
            return true;
    return false;
}

/* Replica 4, of host 2, fails. All other replicas compute, and no thread drives the wire. */
static ditto_status computes_while_host_2_fails(ditto_replica *self, void *argument)
{
    struct test_host *host = argument;
    DITTO_TRY(ditto_barrier(self, NULL));
    if (ditto_replica_id(self) == 4)
        return ditto_fail(self, 3, "replica 4 has failed");
    EXPECT(host->report, is_stopped_soon(self));
    if (host->host != 2) {
        ditto_status status = ditto_barrier(self, NULL);
        EXPECT(host->report, status == DITTO_ERR_PEER_STOPPED);
        EXPECT(host->report, strstr(ditto_last_error()->message,
                                    "host 2 (node2, replicas 4-5) has failed with DITTO_ERR_USER") != NULL);
    }
    return DITTO_OK;
}

/* Host 2 fails at once. The others have not begun the run, or have just begun it. Their functions may be
 * executed or not, but they do not wait in vain. */
static ditto_status fails_on_host_2(ditto_replica *self, void *argument)
{
    const struct test_host *host = argument;
    if (host->host == 2)
        return ditto_fail(self, 4, "host 2 has failed");
    return is_stopped_soon(self) ? DITTO_OK : ditto_fail(self, 5, "the notice has not come");
}

/* The functions return DITTO_OK on the hosts 0 and 1, whose runs fail nevertheless. */
static ditto_status hears_of_failures(struct test_host *host)
{
    ditto_strategy *strategy;
    uint64_t random = 7u + host->host;
    DITTO_TRY(make_host_strategy(host, 2, NULL, &strategy));
    for (int i = 0; i < test_trials(50); i++) {
        DITTO_TRY(expect(host, ditto_strategy_run(strategy, computes_while_host_2_fails, host),
                         DITTO_ERR_USER, "replica 4 has failed"));
        DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
        if (host->host != 2)
            usleep((useconds_t)(test_random(&random) % 300));
        DITTO_TRY(expect(host, ditto_strategy_run(strategy, fails_on_host_2, host), DITTO_ERR_USER,
                         "host 2 has failed"));
        DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
    }
    return ditto_strategy_destroy(strategy);
}

static void replicas_that_compute_learn_of_failures_of_other_hosts(void **state)
{
    on_hosts_with_life_line(3, hears_of_failures, NULL);
}

struct code {
    struct test_host *host;
    double code;
};

static ditto_status codes_are_equal(ditto_replica *self, void *argument)
{
    const struct code *c = argument;
    double least = 0, most = 0;
    DITTO_TRY(ditto_all_reduce(self, &c->code, &least, 1, DITTO_F64, DITTO_MIN, NULL));
    DITTO_TRY(ditto_all_reduce(self, &c->code, &most, 1, DITTO_F64, DITTO_MAX, NULL));
    EXPECT(c->host->report, least == most);
    return DITTO_OK;
}

/* Each host fails by itself, at about the same time. One error is that of all, and the next run works. */
static ditto_status fails_on_each_host(ditto_replica *self, void *argument)
{
    return ditto_fail(self, 1 + (int)ditto_replica_id(self), "this host has failed");
}

static ditto_status all_fail(struct test_host *host)
{
    ditto_strategy *strategy;
    DITTO_TRY(make_host_strategy(host, 1, NULL, &strategy));
    for (int i = 0; i < test_trials(200); i++) {
        DITTO_TRY(expect(host, ditto_strategy_run(strategy, fails_on_each_host, host), DITTO_ERR_USER,
                         "this host has failed"));
        double code = ditto_last_error()->user_code;
        DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
        DITTO_TRY(ditto_strategy_run(strategy, codes_are_equal, &(struct code){ host, code }));
    }
    return ditto_strategy_destroy(strategy);
}

static void if_all_hosts_fail_they_return_one_error(void **state)
{
    on_hosts_with_life_line(3, all_fail, NULL);
}

/* -- runs inside merge functions -- */

/* Returns DITTO_OK when its run is stopped. */
static ditto_status computes_until_stopped(ditto_replica *self, void *argument)
{
    struct test_host *host = argument;
    EXPECT(host->report, is_stopped_soon(self));
    return DITTO_OK;
}

/* Host 2 fails. The others handle the failure of the run inside, and cannot go on nevertheless. */
static ditto_status handles_the_failure(ditto_strategy *strategy, ditto_value *const *arguments,
                                        uint32_t num_arguments, void *user, ditto_value **result)
{
    struct test_host *host = user;
    if (host->host == 2)
        return ditto_fail(NULL, 6, "the function of host 2 has failed");
    for (int i = 0; i < 3; i++) {
        ditto_status status = ditto_strategy_run(strategy, computes_until_stopped, host);
        EXPECT(host->report, status == DITTO_ERR_USER);
        EXPECT(host->report, strstr(ditto_last_error()->message, "host 2 (node2, replicas 4-5) has failed"));
    }
    return DITTO_OK;
}

static ditto_status merges(ditto_replica *self, void *argument)
{
    struct test_host *host = argument;
    DITTO_TRY(ditto_merge_call(self, handles_the_failure, host, NULL, 0, NULL));
    EXPECT(host->report, is_stopped_soon(self));
    return DITTO_OK;
}

static ditto_status hears_of_failures_inside(struct test_host *host)
{
    ditto_strategy *strategy;
    DITTO_TRY(make_host_strategy(host, 2, NULL, &strategy));
    for (int i = 0; i < test_trials(50); i++) {
        DITTO_TRY(expect(host, ditto_strategy_run(strategy, merges, host), DITTO_ERR_USER,
                         "the function of host 2 has failed"));
        DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
    }
    return ditto_strategy_destroy(strategy);
}

static void a_merge_function_cannot_undo_the_stop(void **state)
{
    on_hosts_with_life_line(3, hears_of_failures_inside, NULL);
}

/* -- the first run -- */

/* A host may hear of a failure in the first run before it has returned from the creation of the strategy. */
static ditto_status fails_at_once(struct test_host *host)
{
    for (int i = 0; i < test_trials(50); i++) {
        ditto_strategy *strategy;
        DITTO_TRY(make_host_strategy(host, 2, NULL, &strategy));
        DITTO_TRY(expect(host, ditto_strategy_run(strategy, fails_on_host_2, host), DITTO_ERR_USER,
                         "host 2 has failed"));
        DITTO_TRY(ditto_strategy_destroy(strategy));
    }
    return DITTO_OK;
}

static void the_first_run_hears_of_failures(void **state)
{
    on_hosts_with_life_line(3, fails_at_once, NULL);
}

/* -- batches across replicas -- */

struct delay {
    uint32_t host;
    uint64_t random;
};

/* The rows of host 0 are later than timeout_ms, and those of host 1 come at about that time. */
static ditto_status delay_rows(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                               void *user)
{
    struct delay *d = user;
    *(int64_t *)out[0].data = *(const int64_t *)in[0].data;
    usleep(d->host == 0 ? 150000 : d->host == 1 ? 98000 + (useconds_t)(test_random(&d->random) % 4000) : 0);
    return DITTO_OK;
}

static ditto_status takes_late_batches(struct test_host *host)
{
    struct delay delay = { host->host, 1 };
    ditto_strategy *strategy;
    ditto_dataset *rows, *mapped;
    ditto_iterator *it;
    ditto_value *value;
    DITTO_TRY(make_host_strategy(host, 2, &OPTIONS(strategy, .timeout_ms = 400), &strategy));
    DITTO_TRY(ditto_dataset_from_range(0, 60, 1, &rows));
    DITTO_TRY(ditto_dataset_map(rows, delay_rows, &delay, NULL, &mapped));
    for (int i = 0; i < test_trials(8); i++) {
        DITTO_TRY(ditto_strategy_iterate(
            strategy, mapped,
            &OPTIONS(input, .global_batch = 12, .num_pipelines = 3, .shard = DITTO_SHARD_DATA), &it));
        DITTO_TRY(expect(host, ditto_iterator_next(it, &value), DITTO_ERR_TIMED_OUT, ""));
        /* Nothing is left of the failure. */
        DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
        DITTO_TRY(ditto_iterator_destroy(it));
    }
    DITTO_TRY(ditto_dataset_destroy(mapped));
    DITTO_TRY(ditto_dataset_destroy(rows));
    return ditto_strategy_destroy(strategy);
}

static void a_run_after_late_batches_works(void **state)
{
    on_hosts_with_life_line(3, takes_late_batches, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_that_compute_learn_of_failures_of_other_hosts),
        cmocka_unit_test(if_all_hosts_fail_they_return_one_error),
        cmocka_unit_test(a_merge_function_cannot_undo_the_stop),
        cmocka_unit_test(the_first_run_hears_of_failures),
        cmocka_unit_test(a_run_after_late_batches_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
