/* tests/hosts/test_host_input_faults.c - checks the errors of input over several hosts whose pipelines read
 * different rows. */
#include "cluster/life_line.h"
#include "support/hosts.h"

#include <stdatomic.h>
#include <unistd.h>

enum { TRIALS = 3 };

/* What the function that makes datasets does on each host. */
struct making {
    struct test_host *host;
    int64_t rows[3]; /* of the pipelines, by hosts */
    uint32_t other;  /* this host makes another dataset */
    uint32_t fails;  /* this host fails */
    bool waits;      /* host 1 waits on its second row until it is cut */
    _Atomic int *may_go;
};

static ditto_status wait_on_row_1(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                                  void *user)
{
    const struct making *m = user;
    int64_t row = *(const int64_t *)in[0].data;
    for (int i = 0; row == 1 && i < 30000 && atomic_load(m->may_go) == 0; i++)
        usleep(1000);
    *(int64_t *)out[0].data = row;
    return DITTO_OK;
}

static ditto_status make_rows(const ditto_input_context *context, void *user, ditto_dataset **out)
{
    struct making *m = user;
    ditto_dataset *rows, *mapped = NULL;
    int64_t length = m->rows[m->host->host];
    if (m->fails == m->host->host)
        return DITTO_ERR_USER;
    DITTO_TRY(ditto_dataset_from_range(0, length + (m->other == m->host->host), 1, &rows));
    if (m->waits && m->host->host == 1)
        DITTO_TRY(ditto_dataset_map(rows, wait_on_row_1, m, NULL, &mapped));
    DITTO_TRY(ditto_dataset_batch(mapped != NULL ? mapped : rows, 1, 0, out));
    if (mapped != NULL)
        DITTO_TRY(ditto_dataset_destroy(mapped));
    return ditto_dataset_destroy(rows);
}

static ditto_status iterate(ditto_strategy *strategy, struct making *m, uint32_t pipelines, uint32_t flags,
                            ditto_iterator **out)
{
    return ditto_strategy_iterate_from_function(
        strategy, make_rows, m, &OPTIONS(input, .num_pipelines = pipelines, .flags = flags), out);
}

struct taking {
    ditto_iterator *iterator;
    uint32_t leaves; /* the replicas of this host take one batch only */
    struct test_host *host;
    _Atomic int may_go;
    _Atomic uint64_t steps;
};

static ditto_status take_all(ditto_replica *self, void *argument)
{
    struct taking *t = argument;
    ditto_batch b;
    ditto_status status;
    while ((status = ditto_next(self, t->iterator, &b)) == DITTO_OK) {
        atomic_fetch_add(&t->steps, 1);
        if (t->leaves == t->host->host)
            return DITTO_OK;
    }
    return status == DITTO_END_OF_INPUT ? DITTO_OK : status;
}

/* All hosts take the same number of steps. */
static ditto_status works(struct test_host *host, ditto_strategy *strategy, uint32_t flags, uint64_t steps)
{
    struct making m = { .host = host, .rows = { 2, 6, 4 }, .other = UINT32_MAX, .fails = UINT32_MAX };
    struct taking t = { .host = host, .leaves = UINT32_MAX };
    DITTO_TRY(iterate(strategy, &m, 3, flags, &t.iterator));
    DITTO_TRY(ditto_strategy_run(strategy, take_all, &t));
    CHECK(host, atomic_load(&t.steps) == 2 * steps);
    return ditto_iterator_destroy(t.iterator);
}

/* -- without a life line -- */

static ditto_status needs_a_life_line(struct test_host *host)
{
    struct making m = { .host = host, .rows = { 2, 2, 2 }, .other = UINT32_MAX, .fails = UINT32_MAX };
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    struct taking t = { .host = host, .leaves = UINT32_MAX };
    ditto_strategy *strategy;
    ditto_dataset *rows;
    DITTO_TRY(make_host_strategy(host, 2, NULL, &strategy));
    for (int i = 0; i < TRIALS; i++) {
        DITTO_TRY(expect(host, iterate(strategy, &m, 3, 0, &t.iterator), DITTO_ERR_UNSUPPORTED, "life line"));
        /* One pipeline, and several ones that share rows, need none. */
        DITTO_TRY(iterate(strategy, &m, 1, 0, &t.iterator));
        DITTO_TRY(ditto_iterator_destroy(t.iterator));
        DITTO_TRY(ditto_dataset_from_range(0, 30, 1, &rows));
        options.global_batch = 6;
        options.num_pipelines = 3;
        options.shard = DITTO_SHARD_DATA;
        DITTO_TRY(ditto_strategy_iterate(strategy, rows, &options, &t.iterator));
        atomic_store(&t.steps, 0);
        DITTO_TRY(ditto_strategy_run(strategy, take_all, &t));
        CHECK(host, atomic_load(&t.steps) == 2 * 5);
        DITTO_TRY(ditto_iterator_destroy(t.iterator));
        DITTO_TRY(ditto_dataset_destroy(rows));
    }
    return ditto_strategy_destroy(strategy);
}

static void pipelines_with_different_rows_need_a_life_line(void **state)
{
    on_hosts(3, 50, needs_a_life_line, NULL);
}

/* -- datasets -- */

static ditto_status makes_other_datasets(struct test_host *host)
{
    ditto_strategy *strategy;
    ditto_iterator *it;
    DITTO_TRY(make_host_strategy(host, 2, NULL, &strategy));
    for (int i = 0; i < TRIALS; i++) {
        struct making m = { .host = host, .rows = { 9, 9, 9 }, .other = 2, .fails = UINT32_MAX };
        /* Of two pipelines with three replicas, host 1 has both. */
        DITTO_TRY(expect(host, iterate(strategy, &m, 2, 0, &it), DITTO_ERR_DIVERGED, "pipeline 1"));
        m.other = UINT32_MAX;
        m.fails = 1;
        DITTO_TRY(expect(host, iterate(strategy, &m, 3, 0, &it), DITTO_ERR_USER, ""));
        DITTO_TRY(works(host, strategy, 0, 3));
    }
    return ditto_strategy_destroy(strategy);
}

static void a_function_that_makes_other_datasets_or_fails_on_one_host_is_an_error_on_all(void **state)
{
    on_hosts_with_life_line(3, makes_other_datasets, NULL);
}

/* -- steps -- */

/* The pipelines of two replicas each have 1, 3 and 2 steps. */
static ditto_status ends_together(struct test_host *host)
{
    ditto_strategy *strategy;
    ditto_iterator *it;
    DITTO_TRY(make_host_strategy(host, 2, NULL, &strategy));
    for (int i = 0; i < test_trials(100); i++) {
        struct making m = { .host = host, .rows = { 1, 9, 9 }, .other = UINT32_MAX, .fails = UINT32_MAX };
        DITTO_TRY(works(host, strategy, 0, 3));
        DITTO_TRY(works(host, strategy, DITTO_INPUT_STATIC, 1));
        /* An iterator may be destroyed while its producers wait for other hosts. */
        DITTO_TRY(iterate(strategy, &m, 3, i % 2 == 0 ? 0 : DITTO_INPUT_STATIC, &it));
        DITTO_TRY(ditto_iterator_destroy(it));
    }
    return ditto_strategy_destroy(strategy);
}

static void pipelines_of_different_hosts_end_together(void **state)
{
    on_hosts_with_life_line(3, ends_together, NULL);
}

/* The replicas of host 1 leave after one batch, so the others hear of no more steps of its pipeline. */
static ditto_status leaves_early(struct test_host *host)
{
    ditto_strategy *strategy;
    DITTO_TRY(make_host_strategy(host, 2, &OPTIONS(strategy, .timeout_ms = 500), &strategy));
    struct making m = { .host = host, .rows = { 90, 90, 90 }, .other = UINT32_MAX, .fails = UINT32_MAX };
    struct taking t = { .host = host, .leaves = 1 };
    DITTO_TRY(iterate(strategy, &m, 3, DITTO_INPUT_STATIC, &t.iterator));
    ditto_status status = ditto_strategy_run(strategy, take_all, &t);
    CHECK(host, status == DITTO_ERR_TIMED_OUT || status == DITTO_ERR_DIVERGED);
    DITTO_TRY(ditto_iterator_destroy(t.iterator));
    DITTO_TRY(works(host, strategy, 0, 3));
    return ditto_strategy_destroy(strategy);
}

static void a_host_that_takes_fewer_batches_is_an_error_on_all(void **state)
{
    on_hosts_with_life_line(3, leaves_early, NULL);
}

/* -- a host that is lost -- */

static ditto_status take_or_die(ditto_replica *self, void *argument)
{
    struct taking *t = argument;
    if (t->host->host == 1 && ditto_replica_is_first_of_host(self)) {
        usleep(50000); /* the others wait for the steps of this host */
        local_network_lose(t->host->network, 1);
        dti_life_line_cut(t->host->cluster);
        atomic_store(&t->may_go, 1);
        return ditto_fail(self, 1, "the process of this host has ended");
    }
    return take_all(self, t);
}

static ditto_status loses_host_1(struct test_host *host)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    struct making m = {
        .host = host, .rows = { 1, 9, 1 }, .other = UINT32_MAX, .fails = UINT32_MAX, .waits = true
    };
    struct taking t = { .host = host, .leaves = UINT32_MAX };
    ditto_strategy *strategy;
    options.timeout_ms = 2000; /* the test takes this long, because host 1 waits for it */
    m.may_go = &t.may_go;
    DITTO_TRY(make_host_strategy(host, 2, &options, &strategy));
    DITTO_TRY(iterate(strategy, &m, 3, 0, &t.iterator));
    ditto_status status = ditto_strategy_run(strategy, take_or_die, &t);
    if (host->host != 1)
        DITTO_TRY(expect(host, status, DITTO_ERR_LOST, "host 1 (node1, replicas 2-3) is gone"));
    CHECK(host, ditto_iterator_destroy(t.iterator) == DITTO_OK);
    CHECK(host, ditto_strategy_destroy(strategy) == DITTO_OK);
    return DITTO_OK;
}

static void replicas_that_wait_for_the_steps_of_a_lost_host_get_its_loss(void **state)
{
    on_hosts_with_life_line(3, loses_host_1, NULL);
}

/* -- a host that fails -- */

/* Host 1 fails while the others wait for its steps. They learn of it long before their timeout. */
static ditto_status take_or_fail(ditto_replica *self, void *argument)
{
    struct taking *t = argument;
    if (t->host->host == 1 && ditto_replica_is_first_of_host(self)) {
        usleep(20000); /* the others wait for the steps of this host */
        return ditto_fail(self, 1, "host 1 takes no batches");
    }
    return take_all(self, t);
}

static ditto_status fails_on_host_1(struct test_host *host)
{
    struct making m = {
        .host = host, .rows = { 1, 9, 1 }, .other = UINT32_MAX, .fails = UINT32_MAX, .waits = true
    };
    struct taking t = { .host = host, .leaves = UINT32_MAX };
    ditto_strategy *strategy;
    m.may_go = &t.may_go;
    DITTO_TRY(make_host_strategy(host, 2, NULL, &strategy));
    DITTO_TRY(iterate(strategy, &m, 3, 0, &t.iterator));
    DITTO_TRY(expect(host, ditto_strategy_run(strategy, take_or_fail, &t), DITTO_ERR_USER,
                     "host 1 takes no batches"));
    atomic_store(&t.may_go, 1); /* the producers may end */
    DITTO_TRY(ditto_iterator_destroy(t.iterator));
    DITTO_TRY(works(host, strategy, 0, 3));
    return ditto_strategy_destroy(strategy);
}

static void replicas_that_wait_for_the_steps_of_a_failed_host_get_its_error(void **state)
{
    on_hosts_with_life_line(3, fails_on_host_1, NULL);
}

/* -- across replicas -- */

static ditto_status fail_on_row_7(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                                  void *user)
{
    int64_t row = *(const int64_t *)in[0].data;
    *(int64_t *)out[0].data = row;
    return row == 7 ? DITTO_ERR_CORRUPT : DITTO_OK;
}

/* Of each step of 6 rows, host 0 reads the first two. Row 7 is one of them, in the second step. */
static ditto_status fails_to_read(struct test_host *host)
{
    ditto_strategy *strategy;
    ditto_dataset *rows, *mapped, *repeated;
    ditto_iterator *it;
    ditto_value *value;
    DITTO_TRY(make_host_strategy(host, 2, NULL, &strategy));
    DITTO_TRY(ditto_dataset_from_range(0, 60, 1, &rows));
    DITTO_TRY(ditto_dataset_map(rows, fail_on_row_7, NULL, NULL, &mapped));
    DITTO_TRY(ditto_dataset_repeat(mapped, DITTO_REPEAT_FOREVER, &repeated));
    ditto_input_options options = OPTIONS(input, .global_batch = 6, .shard = DITTO_SHARD_DATA);
    for (options.num_pipelines = 1; options.num_pipelines <= 3; options.num_pipelines += 2) {
        int steps = 0;
        DITTO_TRY(ditto_strategy_iterate(strategy, repeated, &options, &it));
        ditto_status status;
        for (; (status = ditto_iterator_next(it, &value)) == DITTO_OK && steps < 10; steps++)
            DITTO_TRY(ditto_value_destroy(value));
        CHECK(host, steps >= 1 && steps < 10);
        DITTO_TRY(expect(host, status, DITTO_ERR_CORRUPT, "row 7"));
        DITTO_TRY(ditto_iterator_destroy(it));
    }
    DITTO_TRY(ditto_dataset_destroy(repeated));
    DITTO_TRY(ditto_dataset_destroy(mapped));
    DITTO_TRY(ditto_dataset_destroy(rows));
    return ditto_strategy_destroy(strategy);
}

static void a_row_that_one_host_cannot_read_ends_the_values_of_all(void **state)
{
    on_hosts(3, 50, fails_to_read, NULL);
}

/* Two iterators over equal datasets. Host 2 takes the other one, or gives NULL. */
static ditto_status saves_another(struct test_host *host)
{
    ditto_strategy *strategy;
    ditto_dataset *rows;
    ditto_iterator *its[2];
    ditto_value *value;
    void *state;
    size_t bytes;
    DITTO_TRY(make_host_strategy(host, 2, NULL, &strategy));
    DITTO_TRY(ditto_dataset_from_range(0, 60, 1, &rows));
    ditto_input_options options = OPTIONS(input, .global_batch = 6);
    for (int i = 0; i < 2; i++)
        DITTO_TRY(ditto_strategy_iterate(strategy, rows, &options, &its[i]));
    for (int i = 0; i < TRIALS; i++) {
        ditto_iterator *it = its[host->host == 2];
        DITTO_TRY(expect(host, ditto_iterator_save(it, &state, &bytes), DITTO_ERR_DIVERGED, "iterator_save"));
        DITTO_TRY(expect(host, ditto_iterator_next(it, &value), DITTO_ERR_DIVERGED, "iterator_next"));
        DITTO_TRY(expect(host, ditto_iterator_save(its[0], host->host == 2 ? NULL : &state, &bytes),
                         DITTO_ERR_INVALID, "state"));
        DITTO_TRY(expect(host, ditto_strategy_iterate(strategy, host->host == 2 ? NULL : rows, &options, &it),
                         DITTO_ERR_INVALID, "dataset"));
        DITTO_TRY(ditto_iterator_save(its[0], &state, &bytes));
        ditto_state_free(state);
    }
    for (int i = 0; i < 2; i++)
        DITTO_TRY(ditto_iterator_destroy(its[i]));
    DITTO_TRY(ditto_dataset_destroy(rows));
    return ditto_strategy_destroy(strategy);
}

static void hosts_that_name_other_iterators_or_none_get_an_error(void **state)
{
    on_hosts(3, 50, saves_another, NULL);
}

/* Host 1 dies while host 0 waits for its steps in ditto_iterator_next. */
static ditto_status loses_host_1_outside(struct test_host *host)
{
    struct making m = {
        .host = host, .rows = { 1, 9, 1 }, .other = UINT32_MAX, .fails = UINT32_MAX, .waits = true
    };
    _Atomic int may_go = 0;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    ditto_iterator *it;
    ditto_value *value;
    m.may_go = &may_go;
    options.timeout_ms = 2000; /* the test takes this long, because host 1 waits for it */
    DITTO_TRY(make_host_strategy(host, 1, &options, &strategy));
    DITTO_TRY(iterate(strategy, &m, 3, 0, &it));
    DITTO_TRY(ditto_iterator_next(it, &value));
    DITTO_TRY(ditto_value_destroy(value));
    if (host->host == 1) {
        usleep(50000); /* the others wait for the second step of this host */
        local_network_lose(host->network, 1);
        dti_life_line_cut(host->cluster);
        atomic_store(&may_go, 1);
    } else
        DITTO_TRY(expect(host, ditto_iterator_next(it, &value), DITTO_ERR_LOST, "is gone"));
    CHECK(host, ditto_iterator_destroy(it) == DITTO_OK);
    /* Host 1 has the call of the others, because it has not really ended. */
    CHECK(host, ditto_strategy_destroy(strategy) == DITTO_OK || host->host == 1);
    return DITTO_OK;
}

static void the_loss_of_a_host_ends_a_call_across_replicas(void **state)
{
    on_hosts_with_life_line(3, loses_host_1_outside, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipelines_with_different_rows_need_a_life_line),
        cmocka_unit_test(a_function_that_makes_other_datasets_or_fails_on_one_host_is_an_error_on_all),
        cmocka_unit_test(pipelines_of_different_hosts_end_together),
        cmocka_unit_test(a_host_that_takes_fewer_batches_is_an_error_on_all),
        cmocka_unit_test(replicas_that_wait_for_the_steps_of_a_lost_host_get_its_loss),
        cmocka_unit_test(replicas_that_wait_for_the_steps_of_a_failed_host_get_its_error),
        cmocka_unit_test(a_row_that_one_host_cannot_read_ends_the_values_of_all),
        cmocka_unit_test(hosts_that_name_other_iterators_or_none_get_an_error),
        cmocka_unit_test(the_loss_of_a_host_ends_a_call_across_replicas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
