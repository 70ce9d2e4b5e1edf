/* tests/hosts/test_many_replicas.c - a cluster has more replicas than one host may have. */
#include "support/hosts.h"

enum { HOSTS = 3, EACH = 350, ALL = HOSTS * EACH, COUNT = 5, ROWS = 4 };

_Static_assert(ALL > DITTO_MAX_REPLICAS, "no host could have so many");

/* The sum of all ids. */
#define SUM_OF_IDS ((double)ALL * (ALL - 1) / 2)

struct use {
    struct test_host *host;
    ditto_variable *sums, *means, *table;
};

static ditto_status variable(ditto_strategy *strategy, const char *name,
                             ditto_synchronization synchronization, ditto_aggregation aggregation,
                             size_t count, ditto_variable **out)
{
    ditto_tensor initial = { .dtype = DITTO_F64, .rank = 1, .shape = { count } };
    ditto_variable_options options = OPTIONS(variable, .name = name, .synchronization = synchronization,
                                             .aggregation = aggregation);
    return ditto_variable_create(strategy, &initial, &options, out);
}

static ditto_status each_replica(ditto_replica *self, void *argument)
{
    struct use *u = argument;
    struct report *report = u->host->report;
    double id = ditto_replica_id(self), values[COUNT], sums[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = id + i;
    DITTO_TRY(ditto_all_reduce(self, values, sums, COUNT, DITTO_F64, DITTO_SUM, NULL));
    for (int i = 0; i < COUNT; i++)
        EXPECT(report, sums[i] == SUM_OF_IDS + (double)i * ALL);
    DITTO_TRY(ditto_assign(self, u->sums, DITTO_ASSIGN_ADD, values));
    DITTO_TRY(ditto_assign(self, u->means, DITTO_ASSIGN, values));
    int64_t index = (int64_t)ditto_replica_id(self) % ROWS, own = 0;
    double one = 1, found;
    ditto_slices slices = { &index, &one, 1, 1, DITTO_F64 };
    DITTO_TRY(ditto_scatter(self, u->table, DITTO_SCATTER_ADD, &slices));
    DITTO_TRY(ditto_lookup(self, u->table, &own, 1, &found));
    EXPECT(report, found == (ALL + ROWS - 1) / ROWS);
    int64_t indices[ROWS];
    double merged[ROWS];
    ditto_slices all = { indices, merged, ROWS, 1, DITTO_F64 };
    DITTO_TRY(ditto_all_reduce_slices(self, &slices, &all, DITTO_SUM,
                                      &OPTIONS(reduce, .flags = DITTO_SLICES_MERGE)));
    EXPECT(report, all.rows == ROWS && merged[0] == (ALL + ROWS - 1) / ROWS);
    return DITTO_OK;
}

static ditto_status give_id(uint32_t replica, uint32_t num_replicas, void *user, ditto_tensor *component)
{
    int64_t *ids = user;
    ids[replica % EACH] = replica;
    *component = (ditto_tensor){
        .data = &ids[replica % EACH], .dtype = DITTO_I64, .rank = 1, .shape = { 1 }
    };
    return DITTO_OK;
}

/* Reduces and gathers a per-replica value. */
static ditto_status use_values(struct test_host *host, ditto_strategy *strategy)
{
    int64_t ids[EACH];
    int32_t axis = 0;
    ditto_value *value, *result;
    ditto_tensor t;
    DITTO_TRY(ditto_strategy_value_from_function(strategy, give_id, ids, &value));
    DITTO_TRY(ditto_strategy_reduce(strategy, DITTO_SUM, value, NULL, 0, &result));
    DITTO_TRY(ditto_value_tensor(result, &t));
    CHECK(host, *(const int64_t *)t.data == (int64_t)SUM_OF_IDS);
    DITTO_TRY(ditto_value_destroy(result));
    DITTO_TRY(ditto_strategy_reduce(strategy, DITTO_MEAN, value, NULL, 0, &result));
    DITTO_TRY(ditto_value_tensor(result, &t));
    CHECK(host, *(const double *)t.data == SUM_OF_IDS / ALL);
    DITTO_TRY(ditto_value_destroy(result));
    DITTO_TRY(ditto_strategy_reduce(strategy, DITTO_SUM, value, &axis, 1, &result));
    DITTO_TRY(ditto_value_tensor(result, &t));
    CHECK(host, *(const int64_t *)t.data == (int64_t)SUM_OF_IDS);
    DITTO_TRY(ditto_value_destroy(result));
    DITTO_TRY(ditto_strategy_gather(strategy, value, 0, &result));
    DITTO_TRY(ditto_value_tensor(result, &t));
    CHECK(host, t.shape[0] == ALL);
    for (int64_t i = 0; i < ALL; i++)
        CHECK(host, ((const int64_t *)t.data)[i] == i);
    DITTO_TRY(ditto_value_destroy(result));
    return ditto_value_destroy(value);
}

static ditto_status uses_all(struct test_host *host)
{
    struct use u = { .host = host };
    ditto_strategy *strategy;
    double found[COUNT];
    DITTO_TRY(make_host_strategy(host, EACH, NULL, &strategy));
    CHECK(host, ditto_strategy_num_replicas(strategy) == ALL);
    DITTO_TRY(variable(strategy, "sums", DITTO_ON_READ, DITTO_AGGREGATE_SUM, COUNT, &u.sums));
    DITTO_TRY(variable(strategy, "means", DITTO_ON_READ, DITTO_AGGREGATE_MEAN, COUNT, &u.means));
    DITTO_TRY(variable(strategy, "table", DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, ROWS, &u.table));
    DITTO_TRY(ditto_strategy_run(strategy, each_replica, &u));
    DITTO_TRY(ditto_variable_read(u.sums, found, sizeof found));
    CHECK(host, found[0] == SUM_OF_IDS && found[1] == SUM_OF_IDS + ALL);
    DITTO_TRY(ditto_variable_read(u.means, found, sizeof found));
    CHECK(host, found[0] == SUM_OF_IDS / ALL);
    DITTO_TRY(use_values(host, strategy));
    DITTO_TRY(ditto_variable_destroy(u.sums));
    DITTO_TRY(ditto_variable_destroy(u.means));
    DITTO_TRY(ditto_variable_destroy(u.table));
    return ditto_strategy_destroy(strategy);
}

static void more_replicas_than_one_host_may_have(void **state)
{
    on_hosts(HOSTS, 0, uses_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_replicas_than_one_host_may_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
