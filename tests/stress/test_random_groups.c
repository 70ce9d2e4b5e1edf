/* tests/stress/test_random_groups.c - random programs of collectives over random groupings, compared with a
 * serial model, and the same programs with one wrong call in them, which must always be a named error.
 *
 * A program is a list of steps that all replicas draw from one seed. Each step is a call of one group: of a
 * row, a column, a group of one of two random splits, or of all replicas. A replica executes the steps of its
 * groups in the order of the list, so correct programs never wait in a circle. DITTO_TEST_LONG makes about a
 * million calls, and DITTO_TEST_SEED sets the seed. */
#include "support/support.h"

#include <sched.h>
#include <stdatomic.h>

enum { MOST_REPLICAS = 9, STEPS = 120, GROUPINGS = 4, TEAM = GROUPINGS, MOST_OPEN = 5, MOST_COUNT = 2100 };

/* What a step calls. The last one is started, and waited for before a later step. */
enum kind {
    BARRIER,
    SUM,
    ROOT_SUM,
    BROADCAST,
    ALL_GATHER,
    REDUCE_SCATTER,
    RING,
    ALL_TO_ALL,
    GATHER,
    SCATTER,
    SCAN,
    STARTED,
    KINDS
};

struct step {
    int grouping; /* TEAM: all replicas */
    uint32_t group;
    enum kind kind;
    size_t count;
    uint64_t number; /* drawn; the root and the values follow from it */
};

/* How one replica makes a step wrong. */
enum fault { NO_FAULT, SKIPS, REPEATS, OTHER_KIND, OTHER_COUNT, IN_TEAM, RETURNS, FAULTS };

struct program {
    struct report report;
    uint64_t seed;
    uint32_t n;
    ditto_grouping *grouping[GROUPINGS];

    /* Of the groupings: the group of each replica, and its members by rank. */
    uint32_t group_of[GROUPINGS][MOST_REPLICAS];
    uint32_t size[GROUPINGS + 1][MOST_REPLICAS], member[GROUPINGS + 1][MOST_REPLICAS][MOST_REPLICAS];
    uint32_t groups[GROUPINGS];
    struct step step[STEPS];
    enum fault fault;
    int wrong_step;
    uint32_t wrong_replica;
    _Atomic uint64_t calls;
};

/* -- making a program -- */

/* Puts the replica into a group, at the end of its ranks. */
static void add_member(struct program *p, int grouping, uint32_t group, uint32_t replica)
{
    p->group_of[grouping][replica] = group;
    p->member[grouping][group][p->size[grouping][group]++] = replica;
    p->groups[grouping] = group + 1 > p->groups[grouping] ? group + 1 : p->groups[grouping];
}

static void make_groupings(struct program *p, ditto_strategy *strategy, uint64_t *random)
{
    uint32_t height = p->n % 3 == 0 ? 3 : p->n % 2 == 0 ? 2 : 1, width = p->n / height;
    ditto_mesh_axis axes[] = { { "columns", height }, { "rows", width } };
    assert_int_equal(ditto_strategy_mesh(strategy, axes, 2, p->grouping), DITTO_OK);
    for (uint32_t i = 0; i < p->n; i++) {
        add_member(p, 0, i % width, i);
        add_member(p, 1, i / width, i);
    }
    for (int g = 2; g < GROUPINGS; g++) {
        uint32_t colors[MOST_REPLICAS], keys[MOST_REPLICAS];
        for (uint32_t i = 0; i < p->n; i++) {
            colors[i] = (uint32_t)(test_random(random) % 3);
            keys[i] = (uint32_t)(test_random(random) % 1000);
        }
        colors[0] = 0;
        assert_int_equal(ditto_strategy_split(strategy, colors, keys, p->n, &p->grouping[g]), DITTO_OK);
        uint32_t group = 0;
        for (uint32_t color = 0; color < 3; color++) {
            uint32_t before = p->groups[g];
            /* In the order of the keys, the smallest first. */
            for (uint32_t key = 0; key < 1000; key++)
                for (uint32_t i = 0; i < p->n; i++)
                    if (colors[i] == color && keys[i] == key)
                        add_member(p, g, group, i);
            group += p->groups[g] != before;
        }
    }
    for (uint32_t i = 0; i < p->n; i++)
        p->member[TEAM][0][i] = i;
    p->size[TEAM][0] = p->n;
}

static void draw_steps(struct program *p, uint64_t *random)
{
    static const size_t counts[] = { 0, 1, 7, 300, MOST_COUNT };
    for (int i = 0; i < STEPS; i++) {
        int grouping = (int)(test_random(random) % (GROUPINGS + 1));
        p->step[i] = (struct step){
            .grouping = grouping,
            .group = grouping == TEAM ? 0 : (uint32_t)(test_random(random) % p->groups[grouping]),
            .kind = (enum kind)(test_random(random) % KINDS),
            .count = counts[test_random(random) % (sizeof counts / sizeof counts[0])],
            .number = test_random(random),
        };
    }
}

/* -- the serial model -- */

static int64_t value_of(const struct step *s, uint32_t replica, size_t i)
{
    return (int64_t)(s->number % 1000003 * (replica + 1) + i * 7 % 1013);
}

/* Of the first `ranks` members. */
static int64_t sum_of(const struct program *p, const struct step *s, uint32_t ranks, size_t i)
{
    int64_t sum = 0;
    for (uint32_t rank = 0; rank < ranks; rank++)
        sum += value_of(s, p->member[s->grouping][s->group][rank], i);
    return sum;
}

/* Returns the element that the replica must have received, or nothing to compare. */
static bool expected_at(const struct program *p, const struct step *s, uint32_t rank, size_t i, int64_t *out)
{
    const uint32_t *member = p->member[s->grouping][s->group];
    uint32_t size = p->size[s->grouping][s->group], root = (uint32_t)(s->number % size);
    switch (s->kind) {
    case SUM:
    case STARTED:
        *out = sum_of(p, s, size, i);
        return true;
    case ROOT_SUM:
        *out = sum_of(p, s, size, i);
        return rank == root;
    case BROADCAST:
        *out = value_of(s, member[root], i);
        return true;
    case ALL_GATHER:
        *out = value_of(s, member[i / s->count], i % s->count);
        return true;
    case GATHER:
        *out = value_of(s, member[i / s->count], i % s->count);
        return rank == root;
    case SCATTER:
        *out = value_of(s, member[root], rank * s->count + i);
        return true;
    case ALL_TO_ALL:
        *out = value_of(s, member[i / s->count], rank * s->count + i % s->count);
        return true;
    case SCAN:
        *out = sum_of(p, s, rank + 1, i);
        return true;
    case REDUCE_SCATTER:
        *out = sum_of(p, s, size, rank * s->count + i);
        return true;
    case RING:
        *out = value_of(s, member[(rank + size - 1) % size], i);
        return true;
    default:
        return false;
    }
}

/* -- executing it -- */

struct open_step {
    const struct step *step; /* NULL: free */
    ditto_pending pending;
    int64_t *dst;
};

/* A replica's own state. */
struct seat {
    ditto_replica *self;
    struct program *p;
    uint32_t id;
    bool checks;
    ditto_group group[GROUPINGS];
    struct open_step open[MOST_OPEN];
};

static uint32_t rank_of(const struct seat *seat, const struct step *s)
{
    return s->grouping == TEAM ? seat->id : seat->group[s->grouping].rank;
}

static uint32_t size_of(const struct seat *seat, const struct step *s)
{
    return seat->p->size[s->grouping][s->group];
}

static ditto_status compare(const struct seat *seat, const struct step *s, const int64_t *dst)
{
    bool has_parts = s->kind == ALL_GATHER || s->kind == GATHER || s->kind == ALL_TO_ALL;
    size_t length = has_parts ? s->count * size_of(seat, s) : s->count;
    for (size_t i = 0; seat->checks && i < length; i++) {
        int64_t expected;
        if (expected_at(seat->p, s, rank_of(seat, s), i, &expected))
            EXPECT(&seat->p->report, dst[i] == expected);
    }
    return DITTO_OK;
}

static ditto_status finish(struct seat *seat, struct open_step *o)
{
    ditto_status status = DITTO_OK;
    if (o->step == NULL)
        return status;
    status = ditto_wait(seat->self, &o->pending, NULL);
    if (status == DITTO_OK)
        status = compare(seat, o->step, o->dst);
    if (status == DITTO_OK) {
        free(o->dst);
        o->step = NULL;
    }
    return status;
}

/* Starts a step whose buffers are then those of *o. The source is the destination. */
static ditto_status start(struct seat *seat, const struct step *s, const ditto_reduce_options *options,
                          struct open_step *o)
{
    int64_t *buffer = malloc((s->count + 1) * sizeof *buffer);
    for (size_t i = 0; i < s->count; i++)
        buffer[i] = value_of(s, seat->id, i);
    ditto_status status = ditto_all_reduce_start(seat->self, buffer, buffer, s->count, DITTO_I64, DITTO_SUM,
                                                 options, &o->pending);
    if (status != DITTO_OK) {
        free(buffer);
        return status;
    }
    *o = (struct open_step){ s, o->pending, buffer };
    return DITTO_OK;
}

static ditto_status call(const struct seat *seat, const struct step *s, uint32_t rank, uint32_t size,
                         const ditto_reduce_options *options, const int64_t *src, int64_t *dst)
{
    uint32_t root = (uint32_t)(s->number % size), before = (rank + size - 1) % size;
    ditto_exchange_part ring[] = { { (rank + 1) % size, rank, src, NULL, s->count, 0, DITTO_I64 },
                                   { before, before, NULL, dst, 0, s->count, DITTO_I64 } };
    switch (s->kind) {
    case SUM:
        return ditto_all_reduce(seat->self, src, dst, s->count, DITTO_I64, DITTO_SUM, options);
    case ROOT_SUM:
        return ditto_reduce_to_root(seat->self, src, dst, s->count, DITTO_I64, DITTO_SUM, root, options);
    case BROADCAST:
        memcpy(dst, src, s->count * sizeof *dst);
        return ditto_broadcast_from_root(seat->self, dst, s->count, DITTO_I64, root, options);
    case ALL_GATHER:
        return ditto_all_gather(seat->self, src, dst, s->count, NULL, DITTO_I64, options);
    case REDUCE_SCATTER:
        return ditto_reduce_scatter(seat->self, src, dst, s->count, NULL, DITTO_I64, DITTO_SUM, options);
    case ALL_TO_ALL:
        return ditto_all_to_all(seat->self, src, dst, s->count, NULL, DITTO_I64, options);
    case GATHER:
        return ditto_gather_to_root(seat->self, src, dst, s->count, NULL, NULL, DITTO_I64, root, options);
    case SCATTER:
        return ditto_scatter_from_root(seat->self, src, dst, s->count, NULL, NULL, DITTO_I64, root, options);
    case SCAN:
        return ditto_scan(seat->self, src, dst, s->count, DITTO_I64, DITTO_SUM, options);
    case RING:
        if (size == 1)
            ring[0] = (ditto_exchange_part){ 0, 0, src, dst, s->count, s->count, DITTO_I64 };
        return ditto_exchange(seat->self, ring, size == 1 ? 1 : 2, options);
    default:
        return ditto_barrier(seat->self, options);
    }
}

static ditto_status execute(struct seat *seat, const struct step *s, uint64_t *random)
{
    ditto_reduce_options options = DITTO_REDUCE_OPTIONS_INIT;
    uint32_t size = size_of(seat, s), rank = rank_of(seat, s);
    if (s->grouping != TEAM)
        options.group = &seat->group[s->grouping];
    seat->p->calls++;
    if (s->kind == STARTED) {
        struct open_step *o = &seat->open[test_random(random) % MOST_OPEN];
        DITTO_TRY(finish(seat, o));
        return start(seat, s, &options, o);
    }
    int64_t *src = malloc((size * s->count + 1) * sizeof *src),
            *dst = malloc((size * s->count + 1) * sizeof *dst);
    for (size_t i = 0; i < size * s->count; i++)
        src[i] = value_of(s, seat->id, i);
    ditto_status status = call(seat, s, rank, size, &options, src, dst);
    if (status == DITTO_OK)
        status = compare(seat, s, dst);
    free(src);
    free(dst);
    return status;
}

/* Executes the step that the program makes wrong. */
static ditto_status misbehave(struct seat *seat, const struct step *s, uint64_t *random)
{
    struct step other = *s;
    switch (seat->p->fault) {
    case SKIPS:
        return DITTO_OK;
    case REPEATS:
        DITTO_TRY(execute(seat, s, random));
        break;
    case OTHER_KIND:
        other.kind = s->kind == SUM ? BARRIER : SUM;
        break;
    case OTHER_COUNT:
        other.kind = s->kind == BARRIER ? SUM : s->kind;
        other.count = s->count + 1;
        break;
    default: /* IN_TEAM */
        other.grouping = TEAM;
        other.group = 0;
        break;
    }
    return execute(seat, &other, random);
}

static ditto_status execute_all(ditto_replica *self, void *argument)
{
    struct program *p = argument;
    struct seat seat = { .self = self, .p = p, .id = ditto_replica_id(self), .checks = p->fault == NO_FAULT };
    uint64_t random = p->seed + seat.id;
    ditto_status status = DITTO_OK;
    for (int g = 0; g < GROUPINGS; g++)
        EXPECT(&p->report, ditto_group_of(self, p->grouping[g], &seat.group[g]) == DITTO_OK);
    for (int i = 0; i < STEPS && status == DITTO_OK; i++) {
        const struct step *s = &p->step[i];
        bool is_wrong = p->fault != NO_FAULT && i == p->wrong_step && seat.id == p->wrong_replica;
        if (s->grouping != TEAM && p->group_of[s->grouping][seat.id] != s->group)
            continue;
        if (is_wrong && p->fault == RETURNS)
            break;
        if (test_random(&random) % 16 == 0)
            sched_yield();
        if (test_random(&random) % 2000 == 0) /* longer than until waits are published */
            sleep_ms(15 + (int)(test_random(&random) % 15));
        status = is_wrong ? misbehave(&seat, s, &random) : execute(&seat, s, &random);
    }
    for (int i = 0; i < MOST_OPEN && status == DITTO_OK; i++)
        status = finish(&seat, &seat.open[i]);
    /* Others may use the buffers of started operations until this returns. */
    status = ditto_abandon(self, status);
    for (int i = 0; i < MOST_OPEN; i++)
        if (seat.open[i].step != NULL)
            free(seat.open[i].dst);
    return status;
}

/* Chooses a step of a group of at least two members, and a replica of it that makes it wrong. */
static void choose_fault(struct program *p, uint64_t *random)
{
    const struct step *s;
    p->fault = (enum fault)(1 + test_random(random) % (FAULTS - 1));
    do {
        p->wrong_step = (int)(test_random(random) % STEPS);
        s = &p->step[p->wrong_step];
    } while (p->size[s->grouping][s->group] < 2 || (p->fault == IN_TEAM && s->grouping == TEAM));
    p->wrong_replica = p->member[s->grouping][s->group][test_random(random) % p->size[s->grouping][s->group]];
}

static void run_right(struct program *p, ditto_strategy *strategy)
{
    p->fault = NO_FAULT;
    if (ditto_strategy_run(strategy, execute_all, p) != DITTO_OK || p->report.first_failure[0] != '\0')
        fail_msg("seed %llu, %u replicas: %s %s", (unsigned long long)p->seed, p->n, p->report.first_failure,
                 ditto_last_error()->message);
}

static void run_wrong(struct program *p, ditto_strategy *strategy, uint64_t *random)
{
    choose_fault(p, random);
    ditto_status status = ditto_strategy_run(strategy, execute_all, p);
    /* A replica that waits for an operation of another length may find that out before its partners. */
    if (status != DITTO_ERR_DIVERGED || strstr(ditto_last_error()->message, "replica") == NULL)
        fail_msg("seed %llu, %u replicas, fault %d of replica %u in step %d (kind %d of grouping %d): %s: %s",
                 (unsigned long long)p->seed, p->n, p->fault, p->wrong_replica, p->wrong_step,
                 p->step[p->wrong_step].kind, p->step[p->wrong_step].grouping, ditto_status_name(status),
                 ditto_last_error()->message);
}

static void random_programs(void **state)
{
    uint64_t random = test_seed(20261128), calls = 0;
    for (int trial = 0; trial < test_trials(75); trial++)
        for (uint32_t n = 2; n <= MOST_REPLICAS; n++) {
            struct program *p = calloc(1, sizeof *p);
            ditto_strategy *strategy = make_strategy(n, &OPTIONS(strategy, .run_timeout_ms = 120000));
            p->n = n;
            make_groupings(p, strategy, &random);
            for (int k = 0; k < 3; k++) {
                p->seed = random;
                draw_steps(p, &random);
                run_right(p, strategy);
                run_wrong(p, strategy, &random);
            }
            calls += p->calls;
            for (int g = 0; g < GROUPINGS; g++)
                assert_int_equal(ditto_grouping_destroy(p->grouping[g]), DITTO_OK);
            assert_int_equal(ditto_strategy_destroy(strategy), DITTO_OK);
            free(p);
        }
    print_message("%llu calls\n", (unsigned long long)calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(random_programs) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
