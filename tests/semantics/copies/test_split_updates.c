/* tests/semantics/copies/test_split_updates.c - docs/semantics.md, rules 8.0, 8.6 and 8.7: what optimizers,
 * assignments, additions and lookups do with a variable whose copies are split, and which of them make its
 * components equal again. */
#include "semantics/copies/split_variables.h"
#include "support/as_hosts.h"

#include "replicas/team/team_state.h"

/* -- operations on copies after a split -- */

enum { STEPS = 2 };

struct training {
    struct report report;
    ditto_optimizer *optimizer;
    ditto_variable *v;

    /* If not 0, the only replica uses the sum of the gradients of this many replicas. */
    uint32_t sum_of;
};

static double gradient_of(uint32_t replica, int i)
{
    return (double)((int)(replica * 3) % 7 + i % 5) - 4;
}

static ditto_status train(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    double values[COUNT] = { 0 };
    uint32_t id = ditto_replica_id(self);
    ditto_tensor gradient = spec_of(t->v);
    gradient.data = values;
    for (int i = 0; i < COUNT; i++)
        for (uint32_t r = id; r < (t->sum_of != 0 ? t->sum_of : id + 1); r++)
            values[i] += gradient_of(r, i); /* sums of small whole numbers are exact in any order */
    for (int step = 0; step < STEPS; step++)
        DITTO_TRY(ditto_apply(self, t->optimizer, &gradient, NULL));
    return DITTO_OK;
}

/* A rule in which the slot sums all gradients, and the new value depends on the old one. */
static void halve_and_add(const ditto_rule_range *range, void *user)
{
    for (size_t i = 0; i < range->count; i++) {
        double *x = range->value, *sum = range->slot[0];
        sum[i] += ((const double *)range->gradient)[i];
        x[i] = x[i] / 2 + sum[i];
    }
}

static const double half[] = { 0.5 }, tenth[] = { 0.1 };

static const struct {
    ditto_optimizer_options options;
    const char *slot;
} rules[] = {
    { { .rule = DITTO_RULE_ADD }, NULL },
    { { .rule = DITTO_RULE_SGD, .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.1 }, "momentum" },
    { { .rule = DITTO_RULE_ADAM, .learning_rate = 0.1, .weight_decay = 0.1 }, "v" },
    { { .rule = DITTO_RULE_FUNCTION, .learning_rate = 0.1, .function = halve_and_add, .num_slots = 1 },
      "slot0" },
    { { .rule = DITTO_RULE_ADAM, .learning_rate = 0.1, .clip_norm = 3 }, "m" },
    { { .rule = DITTO_RULE_SGD, .learning_rate = 0.2, .rate_factors = half, .weight_decays = tenth }, NULL },
    { { .rule = DITTO_RULE_ADAM, .learning_rate = 0.2, .rate_factors = half, .clip_norm = 3 }, "v" },
};

/* Trains a variable of a strategy of one replica, whose elements begin as `start`. Returns its value, and its
 * slot if the rule has one. */
static void train_alone(size_t rule, uint32_t n, double start, double *value, double *slot)
{
    ditto_optimizer_options o = rules[rule].options;
    ditto_strategy *s = make_strategy(1, NULL);
    struct training t = { .v = make(s, start, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT), .sum_of = n };
    ditto_variable *slot_variable;
    o.struct_size = sizeof o;
    assert_ok(ditto_optimizer_create(&t.v, 1, &o, &t.optimizer));
    run_all(s, train, &t, &t.report);
    assert_ok(ditto_variable_read(t.v, value, COUNT * sizeof *value));
    if (rules[rule].slot != NULL) {
        assert_ok(ditto_optimizer_slot(t.optimizer, 0, rules[rule].slot, &slot_variable));
        assert_ok(ditto_variable_read(slot_variable, slot, COUNT * sizeof *slot));
    }
    assert_ok(ditto_optimizer_destroy(t.optimizer));
    assert_ok(ditto_variable_destroy(t.v));
    assert_ok(ditto_strategy_destroy(s));
}

/* If in_groups is true, reductions use the algorithm of groups, with groups of two replicas. */
static ditto_strategy *make_in_groups(uint32_t n, bool in_groups)
{
    ditto_tuning tuning = { .struct_size = sizeof tuning,
                            .hierarchical_bytes = in_groups ? 1 : SIZE_MAX,
                            .near_replicas = 2 };
    return make_strategy(n, &OPTIONS(strategy, .tuning = &tuning));
}

static void train_split(size_t rule, uint32_t n, ditto_copies copies, bool split_first, bool in_groups)
{
    ditto_optimizer_options o = rules[rule].options;
    ditto_strategy *s = make_in_groups(n, in_groups);
    struct training t = { .v = make(s, 0, DITTO_AGGREGATE_NONE, copies) };
    ditto_variable *slot_variable;
    double value[COUNT], slot[COUNT], found[COUNT];
    o.struct_size = sizeof o;
    if (split_first)
        split(s, t.v);
    assert_ok(ditto_optimizer_create(&t.v, 1, &o, &t.optimizer));
    if (!split_first)
        split(s, t.v);
    run_all(s, train, &t, &t.report);
    for (uint32_t r = first_local(s); r < end_local(s); r++) {
        train_alone(rule, n, r + 1.0, value, slot);
        assert_memory_equal(component(t.v, r), value, sizeof value);
    }
    if (rules[rule].slot != NULL) { /* the slot is updated once for all components */
        assert_ok(ditto_optimizer_slot(t.optimizer, 0, rules[rule].slot, &slot_variable));
        assert_ok(ditto_variable_read(slot_variable, found, sizeof found));
        assert_memory_equal(found, slot, sizeof slot);
    }
    assert_ok(ditto_optimizer_destroy(t.optimizer));
    assert_ok(ditto_variable_destroy(t.v));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_8_0_an_optimizer_updates_every_copy_from_its_own_value(void **state)
{
    for (size_t rule = 0; rule < sizeof rules / sizeof rules[0]; rule++)
        for (int way = 0; way < 8; way++)
            train_split(rule, way & 4 ? 5 : 2, way & 1 ? DITTO_COPIES_PER_REPLICA : DITTO_COPIES_DEFAULT,
                        way & 2, way & 4);
}

/* The variable is split after its optimizer is created, and then gets one value by an assignment. The
 * optimizer must notice both. */
static void train_equal_again(size_t rule, uint32_t n, bool in_groups)
{
    double values[COUNT], slot[COUNT];
    struct training t;
    ditto_optimizer_options o = rules[rule].options;
    o.struct_size = sizeof o;
    train_alone(rule, n, 7, values, slot);
    ditto_strategy *s = make_in_groups(n, in_groups);
    t = (struct training){ .v = make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT) };
    assert_ok(ditto_optimizer_create(&t.v, 1, &o, &t.optimizer));
    split(s, t.v);
    double sevens[COUNT];
    for (int i = 0; i < COUNT; i++)
        sevens[i] = 7;
    assert_ok(ditto_variable_assign(t.v, DITTO_ASSIGN, sevens, sizeof sevens));
    run_all(s, train, &t, &t.report);
    for (uint32_t r = first_local(s); r < end_local(s); r++)
        assert_memory_equal(component(t.v, r), values, sizeof values);
    assert_ok(ditto_optimizer_destroy(t.optimizer));
    assert_ok(ditto_variable_destroy(t.v));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_8_0_after_an_assignment_an_optimizer_updates_all_components_alike(void **state)
{
    for (size_t rule = 0; rule < sizeof rules / sizeof rules[0]; rule++)
        for (int in_groups = 0; in_groups < 2; in_groups++)
            train_equal_again(rule, in_groups ? 5 : 2, in_groups);
}

/* -- writes whose value is a component of the variable -- */

struct from_own {
    struct report report;
    ditto_variable *v;
};

static ditto_status write_own_component(ditto_replica *self, void *argument)
{
    struct from_own *f = argument;
    const void *own_component;
    DITTO_TRY(ditto_read(self, f->v, &own_component));
    DITTO_TRY(ditto_assign(self, f->v, DITTO_ASSIGN_ADD, own_component));
    DITTO_TRY(ditto_assign(self, f->v, DITTO_ASSIGN, own_component));
    DITTO_TRY(ditto_assign(self, f->v, DITTO_ASSIGN_ADD, own_component));
    return DITTO_OK;
}

static void write_own(uint32_t n, size_t count, ditto_aggregation how, bool in_groups, ditto_copies copies)
{
    ditto_tuning tuning = { .struct_size = sizeof tuning,
                            .hierarchical_bytes = in_groups ? 1 : SIZE_MAX,
                            .near_replicas = (n + 1) / 2 };
    ditto_strategy *s = make_strategy(n, &OPTIONS(strategy, .tuning = &tuning));
    /* The second half of each host's replicas gets memory on the next node. */
    for (uint32_t i = (num_local(s) + 1) / 2; i < num_local(s); i++)
        dti_team_of(s)->replica[i].pu.memory_node++;
    double *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = (double)(i % 100) + 1;
    ditto_tensor t = { .data = values, .dtype = DITTO_F64, .rank = 1, .shape = { count } };
    struct from_own f = { .v = NULL };
    assert_ok(ditto_variable_create(s, &t, &OPTIONS(variable, .aggregation = how, .copies = copies), &f.v));
    run_all(s, write_own_component, &f, &f.report);
    double factor = how == DITTO_AGGREGATE_SUM ? (1.0 + n) * n * (1.0 + n) : 4;
    assert_ok(ditto_variable_read(f.v, values, count * sizeof *values));
    for (size_t i = 0; i < count; i++)
        assert_true(values[i] == factor * ((double)(i % 100) + 1));
    for (uint32_t r = first_local(s); r < end_local(s); r++)
        assert_memory_equal(component(f.v, r), values, count * sizeof *values);
    free(values);
    assert_ok(ditto_variable_destroy(f.v));
    assert_ok(ditto_strategy_destroy(s));
}

static void a_replicas_own_component_may_be_the_value_of_a_write(void **state)
{
    for (int how = DITTO_AGGREGATE_SUM; how <= DITTO_AGGREGATE_ONLY_FIRST_REPLICA; how++)
        for (int way = 0; way < 8; way++)
            for (uint32_t n = 2; n <= 8 && n <= most_replicas(); n *= 2)
                write_own(n, way & 1 ? 100000 : 50, (ditto_aggregation)how, way & 2,
                          way & 4 ? DITTO_COPIES_PER_REPLICA : DITTO_COPIES_DEFAULT);
}

struct adding {
    struct report report;
    ditto_variable *v;
    ditto_slices slices;
};

static ditto_status add_ids(ditto_replica *self, void *argument)
{
    struct adding *a = argument;
    double values[COUNT];
    const void *own_component;
    for (int i = 0; i < COUNT; i++)
        values[i] = ditto_replica_id(self) + 1.0;
    DITTO_TRY(ditto_assign(self, a->v, DITTO_ASSIGN_ADD, values));
    DITTO_TRY(ditto_scatter(self, a->v, DITTO_SCATTER_ADD, &a->slices));
    DITTO_TRY(ditto_read(self, a->v, &own_component));
    return ditto_assign(self, a->v, DITTO_ASSIGN_SUB,
                        own_component); /* the value is the replica's own component */
}

/* Components that differ keep their differences, because the aggregated value is added to each. */
static void rule_8_7_an_add_in_a_run_changes_each_component_that_differs(void **state)
{
    static int64_t row = COUNT - 1;
    uint32_t n = 4 * test_hosts();
    double more = 250 * n; /* divided by n it is exact */
    for (int how = DITTO_AGGREGATE_SUM; how <= DITTO_AGGREGATE_ONLY_FIRST_REPLICA; how++) {
        ditto_strategy *s = make_on_two_nodes(n);
        struct adding a = { .v = make(s, 0, (ditto_aggregation)how, DITTO_COPIES_PER_REPLICA),
                            .slices = { &row, &more, 1, 1, DITTO_F64 } };
        split(s, a.v); /* the components are 1, 2, 3, 4, ... */
        run_all(s, add_ids, &a, &a.report);
        double sum = n * (n + 1) / 2, mean = (n + 1) / 2.0;
        double added = how == DITTO_AGGREGATE_SUM ? sum : how == DITTO_AGGREGATE_MEAN ? mean : 1;
        double rows = how == DITTO_AGGREGATE_SUM ? n * more : more;
        for (uint32_t r = first_local(s); r < end_local(s); r++)
            for (int i = 0; i < COUNT; i++) {
                double own = r + 1 + added, taken = 0, first = 1 + added;
                double extra = i == row ? rows : 0;
                if (how == DITTO_AGGREGATE_SUM)
                    taken = sum + n * (added + extra);
                else if (how == DITTO_AGGREGATE_MEAN)
                    taken = mean + added + extra;
                else
                    taken = first + extra;
                assert_true(component(a.v, r)[i] == own + extra - taken);
            }
        assert_ok(ditto_variable_destroy(a.v));
        assert_ok(ditto_strategy_destroy(s));
    }
}

static void rule_8_6_a_write_from_components_that_differ_splits(void **state)
{
    ditto_strategy *s = make_on_two_nodes(4 * test_hosts());
    ditto_variable *from = make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
    ditto_variable *to = make(s, 10, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
    ditto_variable *shared = make(s, 10, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT);
    ditto_value *value;
    assert_ok(ditto_variable_value(from, &value));
    assert_ok(
        ditto_variable_assign_value(to, DITTO_ASSIGN, value)); /* the components of `from` are still equal */
    assert_int_equal(count_copies(s, to), 2);
    split(s, from);
    assert_ok(ditto_variable_assign_value(to, DITTO_ASSIGN_ADD, value));
    assert_ok(ditto_variable_assign_value(to, DITTO_ASSIGN_ADD, value));
    expect_components(s, to, 2, 2);
    /* This variable is never split, so all its components get the first component of `from`. */
    assert_ok(ditto_variable_assign_value(shared, DITTO_ASSIGN, value));
    assert_int_equal(count_copies(s, shared), 2);
    expect_components(s, shared, 1, 0);
    ditto_variable *all[] = { from, to, shared };
    assert_ok(ditto_value_destroy(value));
    for (int i = 0; i < 3; i++)
        assert_ok(ditto_variable_destroy(all[i]));
    assert_ok(ditto_strategy_destroy(s));
}

static ditto_status look_up_own(ditto_replica *self, void *argument)
{
    struct adding *a = argument;
    int64_t rows[2] = { 7, COUNT - 1 };
    double found[2], id = ditto_replica_id(self);
    DITTO_TRY(ditto_lookup(self, a->v, rows, 2, found));
    EXPECT(&a->report, found[0] == id + 1 && found[1] == id + 1001);
    return DITTO_OK;
}

static void lookups_gathers_and_indexed_updates_see_the_components_of_a_split_variable(void **state)
{
    static int64_t row = COUNT - 1;
    static double more = 1000;
    uint32_t n = 4 * test_hosts();
    ditto_strategy *s = make_on_two_nodes(n);
    struct adding a = { .v = make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT),
                        .slices = { &row, &more, 1, 1, DITTO_F64 } };
    ditto_value *value, *all, *part[4];
    ditto_tensor t;
    uint32_t count;
    split(s, a.v);
    assert_ok(ditto_variable_scatter(a.v, DITTO_SCATTER_ADD, &a.slices)); /* adds once to every copy */
    run_all(s, look_up_own, &a, &a.report);
    assert_ok(ditto_variable_value(a.v, &value));
    assert_ok(ditto_strategy_gather(s, value, 0, &all));
    assert_ok(ditto_value_component(all, first_local(s), &t));
    assert_int_equal(t.shape[0], n * COUNT);
    for (uint32_t r = 0; r < n; r++)
        assert_true(((double *)t.data)[r * COUNT] == r + 1 &&
                    ((double *)t.data)[r * COUNT + row] == r + 1001);
    assert_ok(ditto_strategy_local_results(s, value, part, &count));
    assert_int_equal(count, 4);
    for (uint32_t r = 0; r < 4; r++) {
        assert_ok(ditto_value_tensor(part[r], &t));
        assert_ptr_equal(t.data, component(a.v, first_local(s) + r));
        assert_ok(ditto_value_destroy(part[r]));
    }
    assert_ok(ditto_value_destroy(all));
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_variable_destroy(a.v));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- components of a variable as values -- */

struct adding_component {
    uint32_t of;           /* the replica whose component is the argument */
    _Atomic bool is_added; /* its copy has been changed */
};

/* Adds the argument to the copy. The copy of replica `of` is changed before the others read the argument. */
static ditto_status add_component(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                                  void *user, ditto_tensor *result)
{
    struct adding_component *a = user;
    bool first = context_here().update_replica == a->of;
    for (int ms = 0; !first && !a->is_added && ms < 60000; ms++)
        sleep_ms(1);
    ditto_status status = add_argument(copy, arguments, count, NULL, result);
    if (first)
        a->is_added = true;
    return status;
}

/* Each host has n replicas, and its argument is the component of its replica `of`. These components must have
 * the same bytes on all hosts. */
static void update_with_component(uint32_t n, ditto_copies copies, uint32_t of)
{
    ditto_strategy *s = make_strategy(n * test_hosts(), NULL);
    ditto_variable *v = make(s, 0, DITTO_AGGREGATE_NONE, copies);
    struct adding_component a = { .of = first_local(s) + of };
    ditto_value *value, *part[8];
    uint32_t count;
    split_from(s, v, 1);
    assert_ok(ditto_variable_value(v, &value));
    assert_ok(ditto_strategy_local_results(s, value, part, &count));
    assert_ok(
        ditto_variable_update(v, add_component, &a, (const ditto_value *[]){ part[of] }, 1, NULL, NULL));
    expect_components(s, v, of + 2.0 - first_local(s), 1);
    for (uint32_t r = 0; r < n; r++)
        assert_ok(ditto_value_destroy(part[r]));
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_7_3_a_component_of_the_updated_variable_is_an_argument_as_it_was_before(void **state)
{
    for (int copies = DITTO_COPIES_DEFAULT; copies <= DITTO_COPIES_PER_REPLICA; copies++)
        for (uint32_t n = 1; n <= 3; n++)
            for (uint32_t of = 0; of < n; of++)
                update_with_component(n, (ditto_copies)copies, of);
}

struct seeing {
    struct report report;
    ditto_variable *v;
    ditto_value *part[8]; /* of each replica of this host */
    bool updates;         /* each replica adds its number on its host, from 1, to its component first */
};

/* Fails if the values of the components are not 1, 2, 3, ... */
static ditto_status see_components(ditto_replica *self, void *argument)
{
    struct seeing *s = argument;
    double mine = ditto_replica_id(self) - first_local(ditto_get_strategy()) + 1.0;
    ditto_tensor t = { .data = &mine, .dtype = DITTO_F64 };
    if (s->updates)
        DITTO_TRY(ditto_update(self, s->v, add_argument, NULL, &t, 1, NULL));
    for (uint32_t r = 0; r < num_local(ditto_get_strategy()); r++) {
        DITTO_TRY(ditto_local(self, s->part[r], &t));
        EXPECT(&s->report, ((const double *)t.data)[0] == r + 1);
    }
    return DITTO_OK;
}

/* Checks what calls outside of runs read from the value of the component of replica r, whose elements are
 * `expected`. */
static void expect_component(ditto_strategy *s, const ditto_value *part, ditto_variable *v, uint32_t r,
                             double expected)
{
    ditto_variable *to = make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
    ditto_value *mean;
    ditto_tensor t;
    assert_ok(ditto_value_tensor(part, &t));
    assert_ptr_equal(t.data, component(v, r));
    /* One value has the same tensor for all replicas. */
    assert_ok(ditto_value_component(part, first_local(s), &t));
    assert_ptr_equal(t.data, component(v, r));
    assert_ok(ditto_strategy_reduce(s, DITTO_MEAN, part, NULL, 0, &mean));
    assert_ok(ditto_value_tensor(mean, &t));
    assert_true(((const double *)t.data)[0] == expected);
    assert_ok(ditto_variable_assign_value(to, DITTO_ASSIGN, part));
    expect_components(s, to, expected, 0);
    assert_ok(update_with(to, part));
    expect_components(s, to, 2 * expected, 0);
    assert_ok(ditto_value_destroy(mean));
    assert_ok(ditto_variable_destroy(to));
}

static void rule_8_0_the_value_of_a_component_is_that_of_its_replica_after_a_split(void **state)
{
    /* The components are 1, 2, 3 and 4 on each host, because the hosts must give the same bytes where the
     * value of a component is an argument. */
    for (int in_run = 0; in_run < 2; in_run++) {
        ditto_strategy *s = make_on_two_nodes(4 * test_hosts());
        struct seeing seeing = { .v = make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT),
                                 .updates = in_run };
        ditto_value *value;
        uint32_t count;
        assert_ok(ditto_variable_value(seeing.v, &value));
        assert_ok(ditto_strategy_local_results(s, value, seeing.part, &count));
        assert_int_equal(count_copies(s, seeing.v), 2);
        if (!in_run)
            split_from(s, seeing.v, 1);
        run_all(s, see_components, &seeing, &seeing.report);
        for (uint32_t r = 0; r < 4; r++) {
            expect_component(s, seeing.part[r], seeing.v, first_local(s) + r, r + 1);
            assert_ok(ditto_value_destroy(seeing.part[r]));
        }
        assert_ok(ditto_value_destroy(value));
        assert_ok(ditto_variable_destroy(seeing.v));
        assert_ok(ditto_strategy_destroy(s));
    }
}

/* -- assignments make components equal -- */

struct assigning {
    struct report report;
    ditto_variable *v;
};

static ditto_status assign_7(ditto_replica *self, void *argument)
{
    struct assigning *a = argument;
    double values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = 7;
    return ditto_assign(self, a->v, DITTO_ASSIGN, values);
}

static ditto_status differ_once_more(ditto_replica *self, void *argument)
{
    struct assigning *a = argument;
    double mine = ditto_replica_id(self);
    DITTO_TRY(assign_7(self, argument));
    return ditto_update(self, a->v, add_argument, NULL, &(ditto_tensor){ .data = &mine, .dtype = DITTO_F64 },
                        1, NULL);
}

static const char *const ways_to_assign[] = { "in cross-replica context", "a plain value", "a variable",
                                              "in a run" };

/* Assigns 7 to all components. */
static void assign(ditto_strategy *s, ditto_variable *v, size_t way)
{
    struct assigning a = { .v = v };
    double values[COUNT];
    ditto_tensor t = { .data = values, .dtype = DITTO_F64, .rank = 1, .shape = { COUNT } };
    ditto_variable *like = make(s, 7, DITTO_AGGREGATE_NONE, DITTO_COPIES_PER_REPLICA);
    ditto_value *value;
    for (int i = 0; i < COUNT; i++)
        values[i] = 7;
    if (way == 1)
        assert_ok(ditto_strategy_value(s, &t, &value));
    else
        assert_ok(ditto_variable_value(like, &value));
    if (way == 0)
        assert_ok(ditto_variable_assign(v, DITTO_ASSIGN, values, sizeof values));
    else if (way == 3)
        run_all(s, assign_7, &a, &a.report);
    else
        assert_ok(ditto_variable_assign_value(v, DITTO_ASSIGN, value));
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_variable_destroy(like));
}

static void rule_8_0_an_assignment_makes_components_equal_again(void **state)
{
    for (size_t way = 0; way < sizeof ways_to_assign / sizeof ways_to_assign[0]; way++) {
        print_message("%s\n", ways_to_assign[way]);
        ditto_strategy *s = make_on_two_nodes(4 * test_hosts());
        ditto_variable *from = make(s, 0, DITTO_AGGREGATE_MEAN, DITTO_COPIES_PER_REPLICA);
        ditto_variable *sums = make(s, 100, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT);
        ditto_variable *shared = make(s, 100, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
        struct assigning a = { .v = from };
        ditto_value *value;
        assert_ok(ditto_variable_value(from, &value));
        split(s, from);
        assert_status(update_with(sums, value), DITTO_ERR_INVALID);
        assign(s, from, way);
        expect_components(s, from, 7, 0);
        assert_ok(update_with(sums, value)); /* the components of the argument are equal again */
        assert_int_equal(calls, 2);
        assert_ok(update_with(shared, value));
        assert_ok(ditto_variable_assign_value(shared, DITTO_ASSIGN, value));
        assert_int_equal(count_copies(s, shared), 2); /* nothing was split */
        run_all(s, differ_once_more, &a, &a.report);
        expect_components(s, from, 7, 1);
        assert_status(update_with(sums, value), DITTO_ERR_INVALID);
        assert_ok(ditto_value_destroy(value));
        ditto_variable *all[] = { from, sums, shared };
        for (int i = 0; i < 3; i++)
            assert_ok(ditto_variable_destroy(all[i]));
        assert_ok(ditto_strategy_destroy(s));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_8_0_an_optimizer_updates_every_copy_from_its_own_value),
        cmocka_unit_test(rule_8_0_after_an_assignment_an_optimizer_updates_all_components_alike),
        cmocka_unit_test(a_replicas_own_component_may_be_the_value_of_a_write),
        cmocka_unit_test(rule_8_7_an_add_in_a_run_changes_each_component_that_differs),
        cmocka_unit_test(rule_8_6_a_write_from_components_that_differ_splits),
        cmocka_unit_test(lookups_gathers_and_indexed_updates_see_the_components_of_a_split_variable),
        cmocka_unit_test(rule_7_3_a_component_of_the_updated_variable_is_an_argument_as_it_was_before),
        cmocka_unit_test(rule_8_0_the_value_of_a_component_is_that_of_its_replica_after_a_split),
        cmocka_unit_test(rule_8_0_an_assignment_makes_components_equal_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
