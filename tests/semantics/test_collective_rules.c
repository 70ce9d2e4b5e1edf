/* tests/semantics/test_collective_rules.c - docs/semantics.md, "Collectives": rules 6.1 to 6.3, 6.5, 6.8
 * and 6.9. tests/sync/ compares the bits of results. */
#include "support/as_hosts.h"
#include "support/support.h"

#include <stdatomic.h>

struct trial {
    struct report report;
    ditto_variable *mirrored, *local;

    /* The replica whose call is another one. UINT32_MAX if all are alike. */
    uint32_t odd;

    /* Set when the barrier has ended for the replica of this host that came to it. */
    _Atomic bool over;
};

#define MUST(call) EXPECT(&t->report, (call) == DITTO_OK)

static ditto_status reduce_array_and_list(ditto_replica *self, void *argument)
{
    struct trial *t = argument;
    uint32_t n = ditto_num_replicas(self), id = ditto_replica_id(self);
    double a[3] = { id, 1, 2 }, b[3];
    float c[2] = { 1, (float)id }, d[2];
    int32_t integer = 3;
    MUST(ditto_all_reduce(self, a, b, 3, DITTO_F64, DITTO_SUM, NULL)); /* out of place */
    EXPECT(&t->report, b[0] == n * (n - 1) / 2.0 && b[2] == 2.0 * n && a[0] == id);
    ditto_list_item list[] = { { a, a, 3, DITTO_F64, NULL }, { c, d, 2, DITTO_F32, NULL } };
    /* The items have different dtypes. One is in place and one out of place. */
    MUST(ditto_all_reduce_list(self, list, 2, DITTO_MEAN, NULL));
    EXPECT(&t->report, a[1] == 1 && a[0] == (n - 1) / 2.0 && d[0] == 1);
    EXPECT(&t->report, ditto_all_reduce(self, &integer, &integer, 1, DITTO_I32, DITTO_MEAN, NULL) ==
                           DITTO_ERR_UNSUPPORTED);
    EXPECT(&t->report, ditto_all_reduce(self, a, a + 1, 2, DITTO_F64, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    return DITTO_OK;
}

static ditto_status list_differently(ditto_replica *self, void *argument)
{
    struct trial *t = argument;
    float a[4] = { 0 }, b[4];
    ditto_list_item list[] = { { a, b, 2, DITTO_F32, NULL },
                               { a + 2, b + 2, ditto_replica_id(self) == t->odd ? 1 : 2, DITTO_F32, NULL } };
    return ditto_all_reduce_list(self, list, 2, DITTO_SUM, NULL);
}

static void rule_6_1_all_replicas_get_the_same_result_and_a_list_is_one_operation(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct trial t = { .odd = 1 };
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        run_all(strategy, reduce_array_and_list, &t, &t.report);
        if (replica_counts[k] > 1)
            assert_status(ditto_strategy_run(strategy, list_differently, &t), DITTO_ERR_DIVERGED);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void rule_6_1_an_error_names_the_item_of_a_list_that_differs(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct trial t = { .odd = 1 };
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        run_all(strategy, reduce_array_and_list, &t, &t.report);
        if (replica_counts[k] > 1) {
            assert_status(ditto_strategy_run(strategy, list_differently, &t), DITTO_ERR_DIVERGED);
            assert_message("item 1: ");
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static ditto_status reduce_variables(ditto_replica *self, void *argument)
{
    struct trial *t = argument;
    uint32_t n = ditto_num_replicas(self);
    double id = ditto_replica_id(self), sum;
    const void *own;
    MUST(ditto_assign(self, t->local, DITTO_ASSIGN, &id));
    MUST(ditto_read(self, t->local, &own));
    MUST(ditto_all_reduce(self, own, &sum, 1, DITTO_F64, DITTO_SUM, NULL)); /* the replica's component */
    EXPECT(&t->report, sum == n * (n - 1) / 2.0);
    MUST(ditto_read(self, t->mirrored, &own));
    MUST(ditto_all_reduce(self, own, &sum, 1, DITTO_F64, DITTO_SUM, NULL)); /* the common value */
    EXPECT(&t->report, sum == 7.0 * n);
    return DITTO_OK;
}

static void rule_6_2_variables_give_their_own_component_or_their_value(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct trial t = { .odd = UINT32_MAX };
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        double seven = 7;
        ditto_tensor initial = { .data = &seven, .dtype = DITTO_F64 };
        assert_ok(ditto_variable_create(strategy, &initial, NULL, &t.mirrored));
        assert_ok(ditto_variable_create(strategy, &initial,
                                        &OPTIONS(variable, .synchronization = DITTO_ON_READ), &t.local));
        run_all(strategy, reduce_variables, &t, &t.report);
        assert_ok(ditto_variable_destroy(t.mirrored));
        assert_ok(ditto_variable_destroy(t.local));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static ditto_status reduce_with_options(ditto_replica *self, void *argument)
{
    struct trial *t = argument;
    static const size_t sizes[] = { 32, 8, 200, 1 }; /* of f32: 128, 32, 800 and 4 bytes */
    float a[256], plain[256], packed[256];
    ditto_list_item list[4];
    size_t at = 0;
    for (size_t i = 0; i < 256; i++)
        a[i] = 1.0f / (float)(i + 1 + ditto_replica_id(self));
    for (int i = 0; i < 4; at += sizes[i++])
        list[i] = (ditto_list_item){ a + at, plain + at, sizes[i], DITTO_F32, NULL };
    MUST(ditto_all_reduce_list(self, list, 4, DITTO_SUM, NULL));
    for (int which = 0; which <= DITTO_IMPLEMENTATION_HIERARCHICAL; which++) { /* the result never changes */
        ditto_reduce_options options = OPTIONS(reduce, .bytes_per_pack = 200, .timeout_ms = 60000,
                                               .implementation = (ditto_implementation)which);
        memset(packed, 0, sizeof packed);
        at = 0;
        for (int i = 0; i < 4; at += sizes[i++])
            list[i].dst = packed + at;
        MUST(ditto_all_reduce_list(self, list, 4, DITTO_SUM, &options));
        EXPECT(&t->report, memcmp(plain, packed, at * sizeof *plain) == 0);
    }
    EXPECT(&t->report, ditto_barrier(self, &OPTIONS(reduce, .implementation = (ditto_implementation)9)) ==
                           DITTO_ERR_RANGE);
    return DITTO_OK;
}

/* On each host two replicas, of which the second comes too late. */
static ditto_status come_or_not(ditto_replica *self, void *argument)
{
    struct trial *t = argument;
    ditto_reduce_options options = DITTO_REDUCE_OPTIONS_INIT;
    options.timeout_ms = 50; /* replaces the timeout of the strategy */
    if (ditto_replica_id(self) % 2 == 0) {
        ditto_status status = ditto_barrier(self, &options);
        t->over = true;
        return status;
    }
    /* Returns only after that barrier. If this replica returned earlier, the barrier would fail with
     * DITTO_ERR_DIVERGED and not at its time limit. */
    for (int i = 0; !t->over && i < 120000; i++)
        sleep_ms(1);
    return DITTO_OK;
}

static void rule_6_3_options_never_change_the_values(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct trial t = { .odd = UINT32_MAX };
        run_once(replica_counts[k], NULL, reduce_with_options, &t, &t.report);
    }
}

static void rule_6_3_the_timeout_of_a_call_replaces_that_of_the_strategy(void **state)
{
    struct trial late = { .odd = UINT32_MAX };
    char expected[64];
    ditto_strategy *strategy = make_strategy(2 * test_hosts(), NULL);
    assert_status(ditto_strategy_run(strategy, come_or_not, &late), DITTO_ERR_TIMED_OUT);
    /* The error is that of the replica that came to the barrier, on one of the hosts. */
    int32_t waited = ditto_last_error()->replica;
    assert_int_equal(waited % 2, 0);
    snprintf(expected, sizeof expected, "waited 50 ms in ditto_barrier #1 for replica %d", waited + 1);
    assert_message(expected);
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status start_and_wait_late(ditto_replica *self, void *argument)
{
    struct trial *t = argument;
    uint32_t n = ditto_num_replicas(self);
    double one = 1, id = ditto_replica_id(self), a, b;
    ditto_pending first, second;
    MUST(ditto_all_reduce_start(self, &one, &a, 1, DITTO_F64, DITTO_SUM, NULL, &first));
    MUST(ditto_all_reduce_start(self, &id, &b, 1, DITTO_F64, DITTO_MAX, NULL, &second));
    MUST(ditto_wait(self, &second, NULL)); /* out of order */
    MUST(ditto_wait(self, &first, NULL));
    EXPECT(&t->report, a == n && b == n - 1.0);
    return DITTO_OK;
}

static ditto_status leave_open(ditto_replica *self, void *unused)
{
    static _Thread_local double a, b;
    ditto_pending pending;
    return ditto_all_reduce_start(self, &a, &b, 1, DITTO_F64, DITTO_SUM, NULL, &pending);
}

static void rule_6_5_started_operations_are_waited_for_in_any_order(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct trial t = { .odd = UINT32_MAX };
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        run_all(strategy, start_and_wait_late, &t, &t.report);
        assert_status(ditto_strategy_run(strategy, leave_open, NULL), DITTO_ERR_INVALID);
        assert_message("the oldest is ditto_all_reduce_start #");
        run_all(strategy, start_and_wait_late, &t, &t.report);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* The adjoint of an all-gather G with uneven counts is the reduce-scatter R with the same counts: <y, G x> =
 * <R y, x>. */
static ditto_status check_adjoint(ditto_replica *self, void *argument)
{
    struct trial *t = argument;
    uint32_t n = ditto_num_replicas(self), id = ditto_replica_id(self);
    size_t counts[64], total = 0;
    int64_t x[64], y[64 * 65 / 2], gathered[64 * 65 / 2], back[64], left = 0, right = 0;
    for (uint32_t i = 0; i < n; i++)
        total += counts[i] = i % 3 + 1;
    for (size_t i = 0; i < counts[id]; i++)
        x[i] = (int64_t)(id + i) % 7 - 3;
    for (size_t i = 0; i < total; i++)
        y[i] = (int64_t)(i * (id + 2)) % 11 - 5;
    MUST(ditto_all_gather(self, x, gathered, 0, counts, DITTO_I64, NULL));
    MUST(ditto_reduce_scatter(self, y, back, 0, counts, DITTO_I64, DITTO_SUM, NULL));
    for (size_t i = 0; i < total; i++)
        left += y[i] * gathered[i];
    for (size_t i = 0; i < counts[id]; i++)
        right += back[i] * x[i];
    MUST(ditto_all_reduce(self, &left, &left, 1, DITTO_I64, DITTO_SUM, NULL));
    MUST(ditto_all_reduce(self, &right, &right, 1, DITTO_I64, DITTO_SUM, NULL));
    EXPECT(&t->report, left == right);
    return DITTO_OK;
}

static void rule_6_5_the_adjoint_of_all_gather_is_reduce_scatter(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct trial t = { .odd = UINT32_MAX };
        run_once(replica_counts[k], NULL, check_adjoint, &t, &t.report);
    }
}

/* -- parts that are moved. Part j of replica i has i % 3 + j % 2 + 1 elements, or two. -- */

enum { MOST_PART = 4 };

static size_t moved_count(uint32_t from, uint32_t to)
{
    return from % 3 + to % 2 + 1;
}

static int64_t moved_element(uint32_t from, uint32_t to, size_t i)
{
    return (int64_t)(from * 10000 + to * 10 + i);
}

static ditto_status transpose_parts(ditto_replica *self, void *argument)
{
    struct trial *t = argument;
    uint32_t n = ditto_num_replicas(self), id = ditto_replica_id(self);
    int64_t src[64 * MOST_PART], dst[64 * MOST_PART];
    size_t gives[64], takes[64], before[64], at = 0;
    for (uint32_t k = 0; k < n; k++) {
        gives[k] = moved_count(id, k);
        takes[k] = moved_count(k, id);
        before[k] = (n - 1 - k) * MOST_PART; /* in the opposite order, with room between the parts */
        for (size_t i = 0; i < gives[k]; i++)
            src[at++] = moved_element(id, k, i);
    }
    memset(dst, 0, sizeof dst);
    gives[n - 1] += id == t->odd;
    ditto_status status = ditto_all_to_all(
        self, src, dst, 0,
        &(ditto_all_to_all_parts){ .src_counts = gives, .dst_counts = takes, .dst_offsets = before },
        DITTO_I64, NULL);
    if (t->odd != UINT32_MAX)
        return status;
    for (uint32_t k = 0; k < n; k++)
        for (size_t i = 0; i < MOST_PART; i++)
            EXPECT(&t->report,
                   dst[before[k] + i] == (i < takes[k] ? moved_element(k, id, i) : 0)); /* the rest is kept */
    for (size_t i = 0; i < 2 * (size_t)n; i++)
        src[i] = moved_element(id, (uint32_t)i / 2, i % 2);
    MUST(ditto_all_to_all(self, src, id % 2 == 0 ? src : dst, 2, NULL, DITTO_I64, NULL)); /* some in place */
    for (size_t i = 0; i < 2 * (size_t)n; i++)
        EXPECT(&t->report, (id % 2 == 0 ? src : dst)[i] == moved_element((uint32_t)i / 2, id, i % 2));
    return status;
}

static ditto_status gather_and_scatter(ditto_replica *self, void *argument)
{
    struct trial *t = argument;
    uint32_t n = ditto_num_replicas(self), id = ditto_replica_id(self), root = n - 1;
    int64_t all[64 * MOST_PART] = { 0 }, own[MOST_PART];
    size_t counts[64], offsets[64];
    for (uint32_t k = 0; k < n; k++) {
        counts[k] = moved_count(k, 0);
        offsets[k] = (n - 1 - k) * MOST_PART;
    }
    for (size_t i = 0; i < counts[id]; i++)
        own[i] = moved_element(id, root, i);
    counts[0] += id == t->odd;
    ditto_status status = ditto_gather_to_root(self, own, all, 0, counts, id == root ? offsets : NULL,
                                               DITTO_I64, root, NULL);
    if (t->odd != UINT32_MAX)
        return status;
    for (uint32_t k = 0; k < n && id == root; k++)
        for (size_t i = 0; i < MOST_PART; i++)
            EXPECT(&t->report, all[offsets[k] + i] == (i < counts[k] ? moved_element(k, root, i) : 0));
    memset(own, 0, sizeof own);
    MUST(ditto_scatter_from_root(self, all, own, 0, counts, id == root ? offsets : NULL, DITTO_I64, root,
                                 NULL));
    for (size_t i = 0; i < counts[id]; i++)
        EXPECT(&t->report, own[i] == moved_element(id, root, i));
    for (size_t i = 0; i < n && id == 0; i++)
        all[i] = moved_element(0, (uint32_t)i, 7);
    /* In place on the root, whose part stays where it is. */
    MUST(ditto_scatter_from_root(self, all, id == 0 ? all : own, 1, NULL, NULL, DITTO_I64, 0, NULL));
    EXPECT(&t->report, (id == 0 ? all : own)[0] == moved_element(0, id, 7));
    MUST(ditto_gather_to_root(self, id == 0 ? all : own, all, 1, NULL, NULL, DITTO_I64, 0, NULL));
    for (size_t i = 0; i < n && id == 0; i++)
        EXPECT(&t->report, all[i] == moved_element(0, (uint32_t)i, 7));
    return DITTO_OK;
}

static void rule_6_9_parts_come_to_their_places_and_counts_must_fit(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct trial t = { .odd = UINT32_MAX }, wrong = { .odd = 0 };
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        run_all(strategy, transpose_parts, &t, &t.report);
        run_all(strategy, gather_and_scatter, &t, &t.report);
        if (replica_counts[k] > 1) {
            assert_status(ditto_strategy_run(strategy, transpose_parts, &wrong), DITTO_ERR_DIVERGED);
            assert_message("ditto_all_to_all");
            assert_status(ditto_strategy_run(strategy, gather_and_scatter, &wrong), DITTO_ERR_DIVERGED);
            assert_message("ditto_gather_to_root");
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* Reduces a loss and an accuracy, which agree in all but their meaning. The odd replica reduces them in the
 * other order. The texts of the labels are overwritten before the results are there. */
struct ordered {
    uint32_t odd;
    enum { CALLS, ITEMS, STARTED, FORMS } form;
    bool labelled;
    double loss; /* the result on the first replica of this host */
};

static ditto_status reduce_in_order(ditto_replica *self, void *argument)
{
    struct ordered *o = argument;
    double value[2] = { 0.5, 90 };
    char text[2][16] = { "loss", "accuracy" };
    size_t first = ditto_replica_id(self) == o->odd;
    ditto_reduce_options options[2];
    ditto_pending pending[2] = { { 0 } };
    ditto_status status = DITTO_OK;
    for (size_t i = 0; i < 2; i++)
        options[i] = OPTIONS(reduce, .label = o->labelled ? text[i == 0 ? first : !first] : NULL);
    ditto_list_item item[] = {
        { &value[first], &value[first], 1, DITTO_F64, .label = options[0].label },
        { &value[!first], &value[!first], 1, DITTO_F64, .label = options[1].label },
    };
    if (o->form == ITEMS)
        status = ditto_all_reduce_list(self, item, 2, DITTO_MEAN, NULL);
    for (int i = 0; i < 2 && o->form == CALLS && status == DITTO_OK; i++)
        status = ditto_all_reduce(self, item[i].src, item[i].dst, 1, DITTO_F64, DITTO_MEAN, &options[i]);
    for (int i = 0; i < 2 && o->form == STARTED && status == DITTO_OK; i++)
        status = ditto_all_reduce_start(self, item[i].src, item[i].dst, 1, DITTO_F64, DITTO_MEAN, &options[i],
                                        &pending[i]);
    memset(text, '?', sizeof text - 1);
    for (int i = 0; i < 2 && status == DITTO_OK && pending[i].number != 0; i++)
        status = ditto_wait(self, &pending[i], NULL);
    if (ditto_replica_is_first_of_host(self))
        o->loss = value[0];
    return ditto_abandon(self, status);
}

static void rule_6_8_labels_tell_calls_apart_that_agree_otherwise(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *strategy = make_strategy(n, NULL);
        for (int i = 0; i < 4 * FORMS && n > 1; i++) {
            struct ordered o = { .form = i % FORMS, .labelled = i / FORMS % 2 != 0 };
            bool swapped = i / FORMS / 2 != 0;
            o.odd = swapped ? n - 1 : UINT32_MAX;
            ditto_status status = ditto_strategy_run(strategy, reduce_in_order, &o);
            assert_int_equal(status, swapped && o.labelled ? DITTO_ERR_DIVERGED : DITTO_OK);
            if (!swapped)
                assert_true(o.loss == 0.5);
            else if (o.labelled && !(is_spread(strategy) && o.form == ITEMS))
                assert_message("\"accuracy\"");
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- groups -- */

struct grouped {
    struct report report;
    ditto_grouping *grouping;
};

/* Started operations, collectives of the group and of all replicas, in turn. */
static ditto_status work_in_group(ditto_replica *self, void *argument)
{
    struct grouped *g = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    ditto_group group;
    EXPECT(&g->report, ditto_group_of(self, g->grouping, &group) == DITTO_OK);
    ditto_reduce_options in_group = OPTIONS(reduce, .group = &group);
    int64_t of_group = 0, of_all, started, before;
    for (uint32_t i = 0; i < group.size; i++)
        of_group += group.replicas[i];
    for (int i = 0; i < 20; i++) {
        int64_t mine = id, sum = 0;
        ditto_pending pending;
        EXPECT(&g->report, ditto_all_reduce_start(self, &mine, &started, 1, DITTO_I64, DITTO_SUM,
                                                  i % 2 == 0 ? &in_group : NULL, &pending) == DITTO_OK);
        EXPECT(&g->report,
               ditto_all_reduce(self, &mine, &sum, 1, DITTO_I64, DITTO_SUM, &in_group) == DITTO_OK);
        EXPECT(&g->report, sum == of_group);
        EXPECT(&g->report, ditto_all_reduce(self, &mine, &of_all, 1, DITTO_I64, DITTO_SUM, NULL) == DITTO_OK);
        EXPECT(&g->report, of_all == (int64_t)n * (n - 1) / 2);
        before = 0;
        EXPECT(&g->report,
               ditto_scan_exclusive(self, &mine, &before, 1, DITTO_I64, DITTO_SUM, &in_group) == DITTO_OK);
        EXPECT(&g->report, group.rank == 0 || before >= group.replicas[0]);
        EXPECT(&g->report, ditto_wait(self, &pending, NULL) == DITTO_OK);
        EXPECT(&g->report, started == (i % 2 == 0 ? of_group : of_all));
    }
    return DITTO_OK;
}

/* A group is on one host: the same groups are made on all hosts, and each host has its own. */
static void rule_6_12_a_group_is_on_one_host(void **state)
{
    ditto_strategy *strategy = make_strategy(6, NULL);
    uint32_t colors[6], each = num_local(strategy);
    struct grouped g = { .grouping = NULL };
    for (uint32_t i = 0; i < 6; i++)
        colors[i] = i / each;
    assert_ok(ditto_strategy_split(strategy, colors, NULL, 6, &g.grouping));
    run_all(strategy, work_in_group, &g, &g.report);
    ditto_grouping *whole;
    memset(colors, 0, sizeof colors);
    ditto_status status = ditto_strategy_split(strategy, colors, NULL, 6, &whole);
    assert_int_equal(status, is_spread(strategy) ? DITTO_ERR_UNSUPPORTED : DITTO_OK);
    if (status != DITTO_OK)
        assert_message("has replicas on several hosts");
    else
        assert_ok(ditto_grouping_destroy(whole));
    assert_ok(ditto_grouping_destroy(g.grouping));
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_6_1_all_replicas_get_the_same_result_and_a_list_is_one_operation),
        one_host_test(rule_6_1_an_error_names_the_item_of_a_list_that_differs,
                      "hosts do not tell each other the items of a list, only that they differ"),
        cmocka_unit_test(rule_6_2_variables_give_their_own_component_or_their_value),
        cmocka_unit_test(rule_6_3_options_never_change_the_values),
        cmocka_unit_test(rule_6_3_the_timeout_of_a_call_replaces_that_of_the_strategy),
        cmocka_unit_test(rule_6_5_started_operations_are_waited_for_in_any_order),
        cmocka_unit_test(rule_6_5_the_adjoint_of_all_gather_is_reduce_scatter),
        cmocka_unit_test(rule_6_9_parts_come_to_their_places_and_counts_must_fit),
        cmocka_unit_test(rule_6_8_labels_tell_calls_apart_that_agree_otherwise),
        cmocka_unit_test(rule_6_12_a_group_is_on_one_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
