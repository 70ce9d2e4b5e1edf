/* tests/input/distribute/test_distribute.c - tests the claims of distribute.h and of docs/semantics.md,
 * "Datasets". Names of tests contain the numbers of the rules. */
#include "input/written_rows.h"
#include "input/distribute/step_model.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

/* -- the batches of every replica -- */

enum { MOST_STEPS = 4000, MOST_TAKEN = 10000 };
struct taken {
    uint64_t steps, rows;
    uint64_t size[MOST_STEPS];
    int64_t row[MOST_TAKEN];
};
struct distribution {
    struct report report;
    ditto_iterator *iterator;
    uint64_t stop_after; /* steps, or 0 for the end */
    struct taken *taken; /* [n] */
    ditto_status end;
};

static ditto_status consume(ditto_replica *self, void *argument)
{
    struct distribution *d = argument;
    struct taken *t = &d->taken[ditto_replica_id(self)];
    ditto_batch b;
    ditto_status status = DITTO_OK;
    while ((d->stop_after == 0 || t->steps < d->stop_after) &&
           (status = ditto_next(self, d->iterator, &b)) == DITTO_OK) {
        EXPECT(&d->report, t->steps < MOST_STEPS && t->rows + b.rows <= MOST_TAKEN);
        EXPECT(&d->report, b.component[0].shape[0] == b.rows && (uintptr_t)b.component[0].data % 64 == 0);
        memcpy(t->row + t->rows, b.component[0].data, b.rows * sizeof(int64_t));
        t->size[t->steps++] = b.rows;
        t->rows += b.rows;
        if ((t->steps + ditto_replica_id(self)) % 5 == 0)
            sched_yield();
    }
    if (status == DITTO_OK)
        return DITTO_OK;
    EXPECT(&d->report, ditto_next(self, d->iterator, &b) == status); /* every time */
    if (ditto_replica_id(self) == 0)
        d->end = status;
    return status < 0 ? status : DITTO_OK;
}

static void begin(struct distribution *d, uint32_t n, ditto_iterator *iterator)
{
    *d = (struct distribution){ .iterator = iterator };
    d->taken = calloc(n, sizeof *d->taken);
    assert_non_null(d->taken);
}

static void end(struct distribution *d)
{
    free(d->taken);
    assert_ok(ditto_iterator_destroy(d->iterator));
}

static void distribute(struct distribution *d, ditto_strategy *s, ditto_dataset *dataset,
                       const ditto_input_options *options)
{
    ditto_iterator *it;
    assert_ok(ditto_strategy_iterate(s, dataset, options, &it));
    begin(d, ditto_strategy_num_replicas(s), it);
    run_all(s, consume, d, &d->report);
}

/* -- the counting grid -- */

struct point {
    uint64_t global, length;
    uint32_t pipelines, replicas; /* N */
    bool even;
    unsigned upstream;
    ditto_shard_policy shard;
};

/* Checks the batches of every replica, step after step, against the rules. list[w] has the rows of
 * pipeline w. */
static void check_steps(struct steps *s, const struct distribution *d, const int64_t *const *list)
{
    uint64_t at[MOST_REPLICAS] = { 0 }, steps = 0;
    uint32_t each = s->replicas / s->pipelines;
    begin_steps(s);
    for (; next_step(s); steps++)
        for (uint32_t r = 0; r < s->replicas; r++) {
            const struct taken *t = &d->taken[r];
            const int64_t *expected = list[s->shared ? 0 : r / each] + s->first[r];
            bool same = t->steps > steps && t->size[steps] == s->count[r] &&
                        memcmp(t->row + at[r], expected, s->count[r] * sizeof(int64_t)) == 0;
            if (!same)
                print_error("G = %llu, N = %u, W = %u, length %llu, shared %d, last step %d: replica %u of "
                            "%llu steps, "
                            "step %llu: %llu rows, expected %llu\n",
                            (unsigned long long)s->global, s->replicas, s->pipelines,
                            (unsigned long long)s->length[0], s->shared, (int)s->last, r,
                            (unsigned long long)t->steps, (unsigned long long)steps,
                            (unsigned long long)(t->steps > steps ? t->size[steps] : 0),
                            (unsigned long long)s->count[r]);
            assert_true(same);
            at[r] += s->count[r];
        }
    for (uint32_t r = 0; r < s->replicas; r++)
        assert_int_equal(d->taken[r].steps, steps); /* rule 9.4: all end together */
}

static ditto_dataset *upstream(unsigned kind, uint64_t length)
{
    ditto_dataset *d = range(0, (int64_t)length);
    if (kind == 1 || kind == 3)
        d = then(d, shuffle_by, 10);
    if (kind == 2 || kind == 3)
        d = then(d, keep_residues, 3);
    if (kind == 3)
        d = then(d, ditto_dataset_repeat, 2);
    return d;
}

static void try_point(ditto_strategy *s, const struct point *p, uint64_t number)
{
    static struct rows all;
    struct distribution d;
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    ditto_dataset *dataset = upstream(p->upstream, p->length);
    options.global_batch = p->global;
    options.num_pipelines = p->pipelines;
    options.shard = p->shard;
    options.partial = p->even ? DITTO_PARTIAL_EVEN : DITTO_PARTIAL_FILL;
    options.num_producers = (uint32_t)(1 + number % 3);
    options.buffer = number % 4 == 3 ? DITTO_NO_PREFETCH : (uint32_t)(1 + number % 4);
    assert_ok(list_rows(dataset, 0, &all));
    distribute(&d, s, dataset, &options);
    const int64_t *list[MOST_REPLICAS];
    struct steps steps = { .global = p->global,
                           .replicas = p->replicas,
                           .pipelines = p->pipelines,
                           .shared = p->pipelines == 1 || p->shard == DITTO_SHARD_DATA,
                           .last = p->even ? LAST_EVEN : LAST_FILLED };
    for (uint32_t w = 0; w < p->pipelines; w++) {
        steps.length[w] = all.count;
        list[w] = all.row;
    }
    check_steps(&steps, &d, list);
    for (uint32_t w = 0; w < (steps.shared ? 1 : p->pipelines); w++)
        assert_int_equal(steps.given[w], all.count); /* every row is delivered exactly once */
    end(&d);
    assert_ok(ditto_dataset_destroy(dataset));
}

static void rule_9_10_every_row_is_delivered_exactly_once(void **state)
{
    static const uint64_t globals[] = { 1, 2, 5, 8, 33, 64 }, lengths[] = { 1, 7, 8, 64, 200 };
    static const uint32_t replicas[] = { 1, 2, 3, 4, 8 };
    size_t points = 0, every = (size_t)(test_trials(5) < 5 ? 5 : 1);
    (void)state;
    for (size_t k = 0; k < 5; k++) {
        struct point p = { .replicas = replicas[k] };
        ditto_strategy *s = make_strategy(p.replicas, NULL);
        for (size_t i = 0; i < 6 * 5 * 4 * 2 * 2; i++)
            for (p.pipelines = 1; p.pipelines <= p.replicas; p.pipelines++) {
                p.global = globals[i % 6];
                p.length = lengths[i / 6 % 5];
                p.upstream = (unsigned)(i / 30 % 4);
                p.even = i / 120 % 2;
                p.shard = i / 240 % 2 ? DITTO_SHARD_OFF : DITTO_SHARD_DATA;
                if (p.replicas % p.pipelines != 0 || (i + p.pipelines) % every != 0 ||
                    (p.pipelines == 1 && i >= 240))
                    continue;
                try_point(s, &p, i);
                points++;
            }
        assert_ok(ditto_strategy_destroy(s));
    }
    print_message("  %zu combinations of G, W, R, length, what is upstream, FILL and EVEN, DATA and OFF\n",
                  points);
    assert_true(points > (every == 1 ? 3000 : 500));
}

static void many_replicas_get_the_same_rows(void **state)
{
    static const uint32_t replicas[] = { 64 };
    (void)state;
    ditto_strategy *s = make_strategy(replicas[0], NULL);
    for (uint32_t pipelines = 1; pipelines <= 64; pipelines *= 8)
        for (uint64_t global = 10; global <= 100; global += 90)
            try_point(s,
                      &(struct point){ .global = global,
                                       .length = 500,
                                       .pipelines = pipelines,
                                       .replicas = 64,
                                       .shard = DITTO_SHARD_DATA },
                      global);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- the rules, from the dataset to the replica -- */

/* A dataset whose rows are 0 ... length - 1. If pipelines read different files, the rows of file w are
 * 10000 w + i. */
struct source {
    ditto_dataset *dataset;
    char *name[MOST_REPLICAS];
    uint32_t files;
    int64_t row[MOST_REPLICAS][400];
};

static void make_source(struct source *from, const struct steps *s, bool by_file)
{
    *from = (struct source){ .files = by_file ? s->pipelines : 0 };
    for (uint32_t w = 0; w < s->pipelines; w++)
        for (uint64_t i = 0; i < s->length[w]; i++)
            from->row[w][i] = (int64_t)(by_file ? 10000 * w + i : i);
    for (uint32_t w = 0; w < from->files; w++)
        from->name[w] = temporary_bytes((const char *)from->row[w], s->length[w] * sizeof(int64_t));
    if (by_file)
        assert_ok(ditto_dataset_from_fixed(&(ditto_files){ (const char *const *)from->name, from->files, 0 },
                                           &(ditto_tensor){ .dtype = DITTO_I64 }, 1, NULL, &from->dataset));
    else
        from->dataset = range(0, (int64_t)s->length[0]);
    if (s->last == LAST_DROPPED)
        from->dataset = then(from->dataset, whole_batches_of, s->global);
}

static void free_source(struct source *from)
{
    assert_ok(ditto_dataset_destroy(from->dataset));
    for (uint32_t w = 0; w < from->files; w++)
        forget_file(from->name[w]);
}

/* The batch dimension must be known exactly if N divides G and every batch is full. */
static void check_spec(const struct steps *s, const ditto_iterator *it, bool by_file)
{
    ditto_element_spec spec;
    bool whole = s->last == LAST_STATIC || (s->last == LAST_DROPPED && !by_file);
    assert_ok(ditto_iterator_spec(it, &spec));
    assert_int_equal(spec.component[0].shape[0],
                     whole && s->global % s->replicas == 0 ? s->global / s->replicas : DITTO_ANY_SIZE);
}

static void try_steps(ditto_strategy *strategy, struct steps *s, ditto_shard_policy shard, uint64_t number)
{
    static struct source from;
    const int64_t *list[MOST_REPLICAS];
    struct distribution d;
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    make_source(&from, s, shard == DITTO_SHARD_FILE);
    options.global_batch = s->last == LAST_DROPPED ? 0 : s->global;
    options.num_pipelines = s->pipelines;
    options.shard = number % 2 && shard != DITTO_SHARD_OFF ? DITTO_SHARD_AUTO : shard;
    options.partial = s->last == LAST_EVEN ? DITTO_PARTIAL_EVEN : DITTO_PARTIAL_DEFAULT;
    options.flags = s->last == LAST_STATIC ? DITTO_INPUT_STATIC : 0;
    options.num_producers = (uint32_t)(1 + number % 3);
    options.buffer = number % 4 == 3 ? DITTO_NO_PREFETCH : (uint32_t)(1 + number % 4);
    distribute(&d, strategy, from.dataset, &options);
    for (uint32_t w = 0; w < s->pipelines; w++)
        list[w] = from.row[w];
    check_spec(s, d.iterator, shard == DITTO_SHARD_FILE);
    check_steps(s, &d, list);
    end(&d);
    free_source(&from);
}

/* Draws G, W, length, rule for the last step, and sharing at random. With FILE the lengths differ, and
 * rows are not counted across files. */
static void draw_steps(uint64_t *random, uint32_t replicas, struct steps *s, ditto_shard_policy *shard)
{
    uint64_t length = 1 + test_random(random) % 300;
    *s = (struct steps){ .replicas = replicas, .last = (enum last_step)(test_random(random) % LAST_STEPS) };
    s->global = 1 + test_random(random) % (test_random(random) % 2 ? 100 : replicas + 1);
    do
        s->pipelines = 1 + (uint32_t)(test_random(random) % replicas);
    while (replicas % s->pipelines != 0);
    *shard = (ditto_shard_policy)(DITTO_SHARD_FILE + test_random(random) % (s->last == LAST_DROPPED ? 2 : 3));
    if (s->last == LAST_DROPPED && *shard == DITTO_SHARD_FILE)
        *shard = DITTO_SHARD_OFF;
    s->shared = *shard == DITTO_SHARD_DATA || s->pipelines == 1;
    for (uint32_t w = 0; w < s->pipelines; w++)
        s->length[w] = *shard != DITTO_SHARD_FILE || w == 0 ? length : test_random(random) % (length + 1);
    if (*shard == DITTO_SHARD_FILE && s->pipelines == 1)
        s->length[0] = length;
}

static void rules_9_1_to_9_6_hold_from_the_dataset_to_the_replica(void **state)
{
    uint64_t random = test_seed(20270406);
    (void)state;
    for (uint32_t replicas = 1; replicas <= 8; replicas++) {
        ditto_strategy *strategy = make_strategy(replicas, NULL);
        for (int trial = 0; trial < test_trials(75); trial++) {
            struct steps s;
            ditto_shard_policy shard;
            draw_steps(&random, replicas, &s, &shard);
            try_steps(strategy, &s, shard, (uint64_t)trial);
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* drop_remainder drops rows at the end of the whole input. It never drops a step because one pipeline has
 * too few rows for it. */
static void rule_9_4_dropping_the_remainder_loses_no_whole_batch_of_several_pipelines(void **state)
{
    ditto_strategy *strategy = make_strategy(8, NULL);
    (void)state;
    for (uint32_t pipelines = 1; pipelines <= 8; pipelines *= 2)
        for (int shard = DITTO_SHARD_DATA; shard <= DITTO_SHARD_OFF; shard++)
            /* 2 is less than the number of replicas, and 51 and 100 are not divisible by it. */
            for (uint64_t global = 2; global <= 100; global += 49)
                for (uint64_t more = 0; more < 2; more++) {
                    struct steps s = {
                        .global = global, .replicas = 8, .pipelines = pipelines, .last = LAST_DROPPED
                    };
                    s.shared = pipelines == 1 || shard == DITTO_SHARD_DATA;
                    for (uint32_t w = 0; w < pipelines; w++)
                        s.length[w] = global * (1 + more) + more;
                    try_steps(strategy, &s, (ditto_shard_policy)shard, 0);
                }
    assert_ok(ditto_strategy_destroy(strategy));
}

/* With static shapes a step is full even if a pipeline gets no rows in it. */
static void rule_9_4_static_shapes_drop_no_full_step_of_fewer_rows_than_replicas(void **state)
{
    ditto_strategy *strategy = make_strategy(4, NULL);
    (void)state;
    for (uint32_t pipelines = 2; pipelines <= 4; pipelines *= 2)
        for (int shard = DITTO_SHARD_FILE; shard <= DITTO_SHARD_OFF; shard++)
            for (uint64_t length = 1; length < 14; length++)
                for (uint64_t global = 1; global < 4; global++) {
                    struct steps s = {
                        .global = global, .replicas = 4, .pipelines = pipelines, .last = LAST_STATIC
                    };
                    s.shared = shard == DITTO_SHARD_DATA;
                    for (uint32_t w = 0; w < pipelines; w++)
                        s.length[w] = shard == DITTO_SHARD_FILE ? length / (1 + w) : length;
                    try_steps(strategy, &s, (ditto_shard_policy)shard, length);
                }
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_9_6_rows_of_each_replica_do_not_depend_on_the_number_of_pipelines(void **state)
{
    ditto_strategy *strategy = make_strategy(6, NULL);
    ditto_dataset *d = then(then(then(range(0, 300), shuffle_by, 40), keep_residues, 7), ditto_dataset_repeat,
                            2);
    (void)state;
    for (uint64_t global = 1; global < 40; global += 6)
        for (int partial = DITTO_PARTIAL_FILL; partial <= DITTO_PARTIAL_EVEN; partial++) {
            struct distribution one, several;
            ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
            options.global_batch = global;
            options.partial = (ditto_partial_policy)partial;
            distribute(&one, strategy, d, &options);
            for (options.num_pipelines = 2; options.num_pipelines <= 6;
                 options.num_pipelines += options.num_pipelines == 3 ? 3 : 1) {
                distribute(&several, strategy, d, &options);
                for (uint32_t r = 0; r < 6; r++)
                    assert_memory_equal(&several.taken[r], &one.taken[r], sizeof one.taken[r]);
                end(&several);
            }
            end(&one);
        }
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- files -- */

static void rule_9_6_files_are_dealt_out_to_pipelines(void **state)
{
    char *name[5];
    ditto_strategy *s = make_strategy(4, NULL);
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    ditto_text_options text = DITTO_TEXT_OPTIONS_INIT;
    ditto_dataset *d;
    struct distribution got;
    (void)state;
    text.max_bytes = 8; /* the test reads a row's bytes as one number */
    for (int i = 0; i < 5; i++) {
        char lines[64];
        snprintf(lines, sizeof lines, "%c0000000\n%c1111111\n", 'a' + i, 'a' + i);
        name[i] = temporary_file(lines);
    }
    options.global_batch = 4;
    options.num_pipelines = 2;
    for (int how = 0; how < 2; how++) {
        options.shard = how == 0 ? DITTO_SHARD_AUTO : DITTO_SHARD_FILE;
        assert_ok(ditto_dataset_from_text(&(ditto_files){ (const char *const *)name, 5, 0 }, &text, &d));
        distribute(&got, s, d, &options);
        uint64_t rows = 0;
        for (uint32_t r = 0; r < 4; r++) {
            for (uint64_t i = 0; i < got.taken[r].rows; i++)
                assert_int_equal((((const char *)&got.taken[r].row[i])[0] - 'a') % 2, r / 2);
            rows += got.taken[r].rows;
            /* The 6 rows of pipeline 0 make steps of 2, 2 and 2. Pipeline 1 ends earlier and has no rows
             * then. */
            assert_int_equal(got.taken[r].steps, 3);
        }
        assert_int_equal(rows, 10);
        end(&got);
        assert_ok(ditto_dataset_destroy(d));
    }
    assert_ok(ditto_dataset_from_text(&(ditto_files){ (const char *const *)name, 1, 0 }, &text, &d));
    options.shard = DITTO_SHARD_FILE; /* pipeline 1 has no file, because there is only one */
    distribute(&got, s, d, &options);
    assert_int_equal(got.taken[0].rows + got.taken[1].rows, 2);
    assert_int_equal(got.taken[2].rows + got.taken[3].rows, 0);
    end(&got);
    /* There are fewer files than pipelines, so AUTO shares rows. They are those of one pipeline. */
    options.shard = DITTO_SHARD_AUTO;
    distribute(&got, s, d, &options);
    assert_int_equal(got.taken[0].rows, 1);
    assert_int_equal(got.taken[1].rows, 1);
    end(&got);
    assert_ok(ditto_dataset_destroy(d));
    ditto_iterator *it;
    d = range(0, 9);
    options.shard = DITTO_SHARD_FILE;
    assert_status(ditto_strategy_iterate(s, d, &options, &it), DITTO_ERR_NOT_FOUND);
    assert_message("read from no file");
    assert_ok(ditto_dataset_destroy(d));
    for (int i = 0; i < 5; i++) {
        remove(name[i]);
        free(name[i]);
    }
    assert_ok(ditto_strategy_destroy(s));
}

/* If a dataset counts rows across files, AUTO shares rows. The rows are then the same for any number of
 * pipelines. */
static void rule_9_6_datasets_that_count_across_files_are_not_shared_by_files(void **state)
{
    char *name[2] = { temporary_file("a0000000\nb0000000\nc0000000\n"),
                      temporary_file("d0000000\ne0000000\nf0000000\n") };
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_text_options text = DITTO_TEXT_OPTIONS_INIT;
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    ditto_dataset *files, *bytes, *numbers = range(0, 4), *made[5];
    static const uint64_t rows[] = { 4, 4, 4, 3, 6 };
    ditto_iterator *it;
    (void)state;
    text.max_bytes = 8;
    options.global_batch = 2;
    options.num_pipelines = 2;
    assert_ok(ditto_dataset_from_text(&(ditto_files){ (const char *const *)name, 2, 0 }, &text, &files));
    assert_ok(ditto_dataset_take(files, 4, &made[0]));
    assert_ok(ditto_dataset_skip(files, 2, &made[1]));
    assert_ok(ditto_dataset_zip((ditto_dataset *[]){ files, numbers }, 2, &made[2]));
    assert_ok(ditto_dataset_shard(files, 2, 0, &made[3]));
    bytes = then(files, whole_batches_of, 2);
    made[4] = bytes;
    for (int i = 0; i < 5; i++) {
        struct distribution got;
        options.shard = DITTO_SHARD_FILE;
        assert_status(ditto_strategy_iterate(s, made[i], &options, &it), DITTO_ERR_INVALID);
        assert_message("across files");
        options.shard = DITTO_SHARD_AUTO;
        distribute(&got, s, made[i], &options);
        assert_int_equal(got.taken[0].rows + got.taken[1].rows, rows[i]);
        end(&got);
        assert_ok(ditto_dataset_destroy(made[i]));
    }
    assert_ok(ditto_dataset_destroy(numbers));
    assert_ok(ditto_strategy_destroy(s));
    for (int i = 0; i < 2; i++) {
        remove(name[i]);
        free(name[i]);
    }
}

static ditto_status components_agree(ditto_replica *self, void *argument)
{
    struct distribution *d = argument;
    ditto_batch b;
    ditto_status status;
    while ((status = ditto_next(self, d->iterator, &b)) == DITTO_OK) {
        const int64_t *first = b.component[0].data, *second = b.component[1].data;
        EXPECT(&d->report, b.num_components == 2 && b.component[1].shape[0] == b.rows);
        for (uint64_t i = 0; i < b.rows; i++)
            EXPECT(&d->report, second[i] == first[i] + 1000);
        d->taken[ditto_replica_id(self)].rows += b.rows;
    }
    return status == DITTO_END_OF_INPUT ? DITTO_OK : status;
}

static void rule_9_5_components_are_cut_at_the_same_rows(void **state)
{
    ditto_strategy *s = make_strategy(3, NULL);
    ditto_dataset *input[2] = { range(0, 100), range(1000, 1100) }, *zipped, *d;
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    struct distribution got;
    (void)state;
    assert_ok(ditto_dataset_zip(input, 2, &zipped));
    d = then(zipped, shuffle_by, 30);
    assert_status(ditto_strategy_iterate(s, d, &options, &got.iterator), DITTO_ERR_INVALID);
    assert_message("batch it first");
    for (uint64_t g = 1; g < 20; g++) {
        options.global_batch = g;
        options.partial = g % 2 ? DITTO_PARTIAL_EVEN : DITTO_PARTIAL_FILL;
        assert_ok(ditto_strategy_iterate(s, d, &options, &got.iterator));
        begin(&got, 3, got.iterator);
        run_all(s, components_agree, &got, &got.report);
        assert_int_equal(got.taken[0].rows + got.taken[1].rows + got.taken[2].rows, 100);
        end(&got);
    }
    assert_ok(ditto_dataset_destroy(d));
    for (int i = 0; i < 2; i++)
        assert_ok(ditto_dataset_destroy(input[i]));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- from a function -- */

struct making {
    uint32_t calls, pipelines;
    uint64_t rows, batch;
    bool differ, fail, none;
};
static ditto_status make_dataset(const ditto_input_context *context, void *user, ditto_dataset **out)
{
    struct making *m = user;
    ditto_dataset *rows;
    if (context->pipeline != m->calls++ || context->num_pipelines != m->pipelines ||
        (m->fail && context->pipeline == 1))
        return DITTO_ERR_USER;
    if (m->none)
        return DITTO_OK;
    uint64_t batch = m->batch;
    if (batch == 0)
        DITTO_TRY(ditto_input_per_replica_batch(context, 12, &batch));
    int64_t first = 1000 * (int64_t)context->pipeline;
    DITTO_TRY(ditto_dataset_from_range(first, first + (int64_t)m->rows, 1, &rows));
    if (m->differ && context->pipeline == 1) {
        ditto_dataset *two;
        DITTO_TRY(ditto_dataset_zip((ditto_dataset *[]){ rows, rows }, 2, &two));
        DITTO_TRY(ditto_dataset_destroy(rows));
        rows = two;
    }
    ditto_status status = ditto_dataset_batch(rows, batch, 0, out);
    DITTO_TRY(ditto_dataset_destroy(rows));
    return status;
}

static void rule_9_7_replicas_of_a_pipeline_take_its_batches_in_turn(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    struct distribution d;
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    (void)state;
    for (uint32_t pipelines = 1; pipelines <= 4; pipelines *= 2) {
        struct making m = { .pipelines = pipelines, .rows = 22 };
        uint32_t each = 4 / pipelines;
        options.num_pipelines = pipelines < 4 ? pipelines : 0;
        options.replication = pipelines < 4 ? DITTO_REPLICATION_PER_PIPELINE : DITTO_REPLICATION_PER_REPLICA;
        ditto_iterator *it;
        assert_ok(ditto_strategy_iterate_from_function(s, make_dataset, &m, &options, &it));
        assert_int_equal(m.calls, pipelines);
        begin(&d, 4, it);
        run_all(s, consume, &d, &d.report);
        for (uint32_t r = 0; r < 4; r++) {
            /* 22 rows in batches of 3 are 7 whole batches and one of 1 row. The replicas take them in
             * turn. */
            uint64_t at = 0;
            assert_int_equal(d.taken[r].steps, (8 + each - 1) / each);
            for (uint64_t step = 0; step < d.taken[r].steps; step++) {
                uint64_t number = step * each + r % each, first = number * 3,
                         size = first >= 22       ? 0
                                : first + 3 <= 22 ? 3
                                                  : 22 - first;
                assert_int_equal(d.taken[r].size[step], size);
                for (uint64_t i = 0; i < size; i++)
                    assert_int_equal(d.taken[r].row[at++], 1000 * (r / each) + first + i);
            }
        }
        end(&d);
    }
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_9_7_datasets_that_a_function_must_not_make(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    ditto_iterator *it;
    struct making m = { .pipelines = 2, .rows = 9, .batch = 2, .differ = true };
    uint64_t batch;
    (void)state;
    options.num_pipelines = 2;
    assert_status(ditto_strategy_iterate_from_function(s, make_dataset, &m, &options, &it),
                  DITTO_ERR_INVALID);
    assert_message("pipeline 1");
    m = (struct making){ .pipelines = 2, .rows = 9, .batch = 2, .fail = true };
    assert_status(ditto_strategy_iterate_from_function(s, make_dataset, &m, &options, &it), DITTO_ERR_USER);
    m = (struct making){ .pipelines = 2, .none = true };
    assert_status(ditto_strategy_iterate_from_function(s, make_dataset, &m, &options, &it),
                  DITTO_ERR_INVALID);
    assert_message("without one");
    assert_status(ditto_strategy_iterate_from_function(s, NULL, &m, &options, &it), DITTO_ERR_INVALID);
    ditto_input_context context = { 2, 0, 4 };
    assert_status(ditto_input_per_replica_batch(&context, 13, &batch), DITTO_ERR_INVALID);
    assert_status(ditto_input_per_replica_batch(&context, 0, &batch), DITTO_ERR_INVALID);
    assert_ok(ditto_input_per_replica_batch(&context, 12, &batch));
    assert_int_equal(batch, 3);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- options -- */

static void rule_9_8_contradictions_are_named(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    ditto_dataset *d = then(range(0, 9), batch_of, 4);
    struct making m = { .pipelines = 1, .rows = 9, .batch = 2 };
    ditto_iterator *it;
    (void)state;
#define REFUSED(call_is_function, status, text, ...)                                           \
    do {                                                                                       \
        ditto_input_options o = { .struct_size = sizeof o, __VA_ARGS__ };                      \
        assert_status((call_is_function)                                                       \
                          ? ditto_strategy_iterate_from_function(s, make_dataset, &m, &o, &it) \
                          : ditto_strategy_iterate(s, d, &o, &it),                             \
                      status);                                                                 \
        assert_message(text);                                                                  \
    } while (0)
    REFUSED(false, DITTO_ERR_INVALID, "3 pipelines for 4 replicas", .num_pipelines = 3);
    REFUSED(false, DITTO_ERR_INVALID, "8 pipelines for 4 replicas", .num_pipelines = 8);
    REFUSED(false, DITTO_ERR_INVALID, "PER_REPLICA_INPUT", .replication = DITTO_REPLICATION_PER_REPLICA);
    REFUSED(false, DITTO_ERR_INVALID, "batched by 4 rows", .global_batch = 5);
    REFUSED(false, DITTO_ERR_RANGE, "shard is 9", .shard = (ditto_shard_policy)9);
    REFUSED(false, DITTO_ERR_RANGE, "replication is 7", .replication = (ditto_replication_mode)7);
    REFUSED(false, DITTO_ERR_RANGE, "buffer is 70000", .buffer = 70000);
    REFUSED(false, DITTO_ERR_RANGE, "producers is 2000", .num_producers = 2000);
    REFUSED(false, DITTO_ERR_RANGE, "max_bytes is 100", .max_bytes = 100);
    REFUSED(false, DITTO_ERR_INVALID, "flags", .flags = 64);
    REFUSED(false, DITTO_ERR_INVALID, "both or none", .state = &m);
    REFUSED(false, DITTO_ERR_CORRUPT, "no state of an iterator", .state = &m, .state_bytes = sizeof m);
    REFUSED(true, DITTO_ERR_INVALID, "global_batch is set", .global_batch = 5);
    REFUSED(true, DITTO_ERR_INVALID, "partial is set", .partial = DITTO_PARTIAL_EVEN);
    REFUSED(true, DITTO_ERR_INVALID, "shard is set", .shard = DITTO_SHARD_DATA);
    REFUSED(true, DITTO_ERR_INVALID, "pipelines is 2", .replication = DITTO_REPLICATION_PER_REPLICA,
            .num_pipelines = 2);
#undef REFUSED
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_9_8_buffers_change_neither_rows_nor_order(void **state)
{
    static struct rows all;
    ditto_strategy *s = make_strategy(3, NULL);
    ditto_dataset *d = then(then(then(range(0, 300), shuffle_by, 20), add_noise, 3), batch_of, 7),
                  *ahead = then(d, ditto_dataset_prefetch, 6);
    static const uint32_t buffers[] = { DITTO_NO_PREFETCH, 0, 1, 5, 100 };
    (void)state;
    assert_ok(list_rows(ahead, 0, &all));
    for (int host = 0; host < 2; host++)
        for (size_t i = 0; i < 5; i++)
            for (uint32_t producers = 0; producers < 4; producers++) {
                struct distribution got;
                ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
                ditto_iterator_counters stats = DITTO_ITERATOR_COUNTERS_INIT;
                options.buffer = buffers[i];
                options.num_producers = producers;
                options.flags = host ? DITTO_INPUT_HOST_MEMORY : 0;
                distribute(&got, s, ahead, &options);
                check_steps(
                    &(struct steps){
                        .global = 7, .replicas = 3, .pipelines = 1, .shared = true, .length = { 300 } },
                    &got, (const int64_t *const[]){ all.row });
                assert_ok(ditto_iterator_stats(got.iterator, DITTO_ALL_REPLICAS, &stats));
                assert_int_equal(stats.num_slots, buffers[i] == DITTO_NO_PREFETCH ? 1
                                                  : buffers[i] == 0               ? 7
                                                                                  : buffers[i] + 1);
                assert_int_equal(stats.rows, 300);
                assert_int_equal(stats.steps, 43);
                assert_int_equal(stats.bytes, 300 * sizeof(int64_t));
                assert_int_equal(stats.num_ready + stats.num_waited, 43 * 3);
                end(&got);
            }
    assert_ok(ditto_dataset_destroy(ahead));
    assert_ok(ditto_strategy_destroy(s));
}

static void memory_of_the_queues_stays_below_its_limit(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *d = then(range(0, 10000), batch_of, 200);
    ditto_iterator_counters stats = DITTO_ITERATOR_COUNTERS_INIT;
    (void)state;
    for (uint64_t cap = 4000; cap < 40000; cap += 1000) {
        struct distribution got;
        ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
        options.buffer = 20;
        options.max_bytes = cap;
        distribute(&got, s, d, &options);
        assert_ok(ditto_iterator_stats(got.iterator, DITTO_ALL_REPLICAS, &stats));
        assert_true(stats.queue_bytes <= cap && stats.num_slots <= 21 && stats.num_slots >= 1);
        assert_int_equal(got.taken[0].rows + got.taken[1].rows, 10000);
        end(&got);
    }
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- static shapes, infinite datasets -- */

static void rule_9_4_partial_steps_are_dropped_where_shapes_are_static(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    ditto_dataset *d = range(0, 30),
                  *forever = then(then(range(0, 30), ditto_dataset_repeat, DITTO_REPEAT_FOREVER),
                                  ditto_dataset_take, 31);
    struct distribution got;
    ditto_element_spec spec;
    (void)state;
    for (uint32_t pipelines = 1; pipelines <= 4; pipelines *= 2) {
        ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
        options.global_batch = 8;
        options.num_pipelines = pipelines;
        distribute(&got, s, d, &options);
        assert_int_equal(got.taken[0].steps, 4);
        assert_ok(ditto_iterator_spec(got.iterator, &spec));
        assert_true(spec.num_components == 1 && spec.component[0].rank == 1 &&
                    spec.component[0].dtype == DITTO_I64 && spec.component[0].shape[0] == DITTO_ANY_SIZE);
        end(&got);
        options.flags = DITTO_INPUT_STATIC;
        distribute(&got, s, d, &options);
        for (uint32_t r = 0; r < 4; r++) {
            assert_int_equal(got.taken[r].steps, 3);
            assert_int_equal(got.taken[r].rows, 6);
        }
        assert_ok(ditto_iterator_spec(got.iterator, &spec));
        assert_int_equal(spec.component[0].shape[0], 2);
        end(&got);
    }
    assert_ok(ditto_dataset_destroy(d));
    /* No step of an infinite dataset is smaller. */
    d = then(forever, ditto_dataset_repeat, DITTO_REPEAT_FOREVER);
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    ditto_iterator *it;
    options.global_batch = 8;
    assert_ok(ditto_strategy_iterate(s, d, &options, &it));
    begin(&got, 4, it);
    got.stop_after = 100;
    run_all(s, consume, &got, &got.report);
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(got.taken[3].size[i], 2);
    end(&got);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- the spec of batches -- */

static void assert_batch_rows(ditto_iterator *it, size_t rows)
{
    ditto_element_spec spec;
    assert_ok(ditto_iterator_spec(it, &spec));
    assert_int_equal(spec.component[0].shape[0], rows);
}

/* Tries 8 and 10 rows for 4 replicas, with all options that decide whether there are only whole steps. */
static void the_batch_dimension_is_known_if_all_batches_have_it(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    char *name[2] = { temporary_bytes((const char[96]){ 0 }, 96), temporary_bytes((const char[8]){ 0 }, 8) };
    ditto_dataset *rows[2] = { range(0, 30) };
    (void)state;
    assert_ok(ditto_dataset_from_fixed(&(ditto_files){ (const char *const *)name, 2, 0 },
                                       &(ditto_tensor){ .dtype = DITTO_I64 }, 1, NULL, &rows[1]));
    for (int files = 0; files < 2; files++)
        for (uint64_t global = 8; global <= 10; global += 2)
            for (uint32_t pipelines = 1; pipelines <= 4; pipelines *= 2)
                for (int shard = files && pipelines <= 2 ? DITTO_SHARD_FILE : DITTO_SHARD_DATA;
                     shard <= DITTO_SHARD_OFF; shard++)
                    /* 0 is no option, 1 static shapes, 2 DROP_REMAINDER, 3 an infinite dataset. */
                    for (int how = 0; how < 4; how++) {
                        /* The pipelines end in different steps. */
                        bool apart = shard == DITTO_SHARD_FILE && pipelines > 1;
                        bool known = global == 8 && (how == 1 || (how >= 2 && !apart));
                        ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
                        ditto_dataset *repeated, *d;
                        struct distribution got;
                        if (how == 2 && apart)
                            continue; /* refused, because rows are counted across files */
                        assert_ok(ditto_dataset_repeat(rows[files], how == 3 ? DITTO_REPEAT_FOREVER : 1,
                                                       &repeated));
                        d = then(repeated, how == 2 ? whole_batches_of : batch_of, global);
                        options.num_pipelines = pipelines;
                        options.shard = (ditto_shard_policy)shard;
                        options.flags = how == 1 ? DITTO_INPUT_STATIC : 0;
                        assert_ok(ditto_strategy_iterate(s, d, &options, &got.iterator));
                        assert_batch_rows(got.iterator, known ? 2 : DITTO_ANY_SIZE);
                        begin(&got, 4, got.iterator);
                        got.stop_after = 40;
                        run_all(s, consume, &got, &got.report);
                        for (uint32_t r = 0; known && r < 4; r++)
                            for (uint64_t i = 0; i < got.taken[r].steps; i++)
                                assert_int_equal(got.taken[r].size[i], 2);
                        end(&got);
                        assert_ok(ditto_dataset_destroy(d));
                    }
    for (int i = 0; i < 2; i++) {
        assert_ok(ditto_dataset_destroy(rows[i]));
        forget_file(name[i]);
    }
    assert_ok(ditto_strategy_destroy(s));
}

static ditto_status make_whole_batches(const ditto_input_context *context, void *user, ditto_dataset **out)
{
    *out = then(range(0, 22 + (int64_t)(*(uint64_t *)user * context->pipeline)), whole_batches_of, 3);
    return DITTO_OK;
}

/* Each pipeline has at least 7 whole batches. The replicas of one pipeline end together, but several
 * pipelines end in different steps. */
static void the_batch_dimension_of_datasets_from_a_function(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    (void)state;
    for (uint32_t pipelines = 1; pipelines <= 4; pipelines *= 2)
        for (uint32_t flags = 0; flags <= DITTO_INPUT_STATIC; flags += DITTO_INPUT_STATIC) {
            uint64_t more = 9;
            ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
            struct distribution got;
            options.num_pipelines = pipelines;
            options.flags = flags;
            assert_ok(
                ditto_strategy_iterate_from_function(s, make_whole_batches, &more, &options, &got.iterator));
            assert_batch_rows(got.iterator, pipelines == 1 || flags ? 3 : DITTO_ANY_SIZE);
            begin(&got, 4, got.iterator);
            run_all(s, consume, &got, &got.report);
            uint64_t rows = 0;
            for (uint32_t r = 0; r < 4; r++)
                rows += got.taken[r].rows;
            if (pipelines == 1)
                assert_int_equal(rows, 12); /* the second step has only 3 batches for 4 replicas */
            else if (!flags)                /* the pipelines have 7, 10, 13 and 16 whole batches */
                assert_int_equal(rows, pipelines == 2 ? 3 * (7 + 10) : 3 * (7 + 10 + 13 + 16));
            end(&got);
        }
    assert_ok(ditto_strategy_destroy(s));
}

static void the_spec_of_batches_is_known_after_the_strategy_is_destroyed(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *d = then(range(0, 9), whole_batches_of, 4);
    ditto_iterator *it;
    (void)state;
    assert_ok(ditto_strategy_iterate(s, d, NULL, &it));
    assert_ok(ditto_strategy_destroy(s));
    assert_batch_rows(it, 2);
    assert_ok(ditto_iterator_destroy(it));
    assert_ok(ditto_dataset_destroy(d));
}

static void rule_9_4_a_pipeline_that_ends_early_gives_empty_batches(void **state)
{
    ditto_strategy *s = make_strategy(3, NULL);
    (void)state;
    /* Steps have fewer rows than replicas, and in every step two pipelines get no rows. */
    for (int64_t length = 1; length < 20; length++)
        try_point(s,
                  &(struct point){ .global = 1,
                                   .length = (uint64_t)length,
                                   .pipelines = 3,
                                   .replicas = 3,
                                   .shard = DITTO_SHARD_DATA },
                  (uint64_t)length);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- values -- */

static void rule_9_9_across_replicas_batches_come_as_values(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 3; n++) {
        ditto_strategy *s = make_strategy(n, NULL);
        ditto_dataset *one = range(0, 10), *two, *d;
        ditto_value *value, *kept = NULL;
        ditto_iterator *it;
        ditto_tensor t;
        int has_value = 1;
        assert_ok(ditto_dataset_zip((ditto_dataset *[]){ one, one }, 2, &two));
        d = then(two, batch_of, 4);
        assert_ok(ditto_strategy_iterate(s, d, NULL, &it));
        for (int64_t step = 0, row = 0; step < 3; step++) {
            assert_ok(ditto_iterator_next_as_optional(it, &value, &has_value));
            assert_int_equal(has_value, 1);
            assert_int_equal(ditto_value_kind_of(value), DITTO_VALUE_NEST);
            const ditto_value *member;
            assert_ok(ditto_value_member(value, "1", &member));
            for (uint32_t r = 0; r < n; r++) {
                assert_ok(ditto_value_component(member, r, &t));
                for (size_t i = 0; i < t.shape[0]; i++)
                    assert_int_equal(((int64_t *)t.data)[i], row++);
            }
            if (step == 0)
                kept = value; /* it stays valid */
            else
                assert_ok(ditto_value_destroy(value));
        }
        assert_ok(ditto_iterator_next_as_optional(it, &value, &has_value));
        assert_true(has_value == 0 && value == NULL);
        assert_status(ditto_iterator_next(it, &value), DITTO_END_OF_INPUT);
        const ditto_value *member;
        assert_ok(ditto_value_member(kept, "0", &member));
        assert_ok(ditto_value_component(member, 0, &t));
        assert_int_equal(((int64_t *)t.data)[0], 0);
        assert_ok(ditto_value_destroy(kept));
        struct distribution got;
        begin(&got, n, it);
        assert_status(ditto_strategy_run(s, consume, &got), DITTO_ERR_CONTEXT);
        assert_message("mixing contexts");
        end(&got);
        assert_ok(ditto_strategy_iterate(
            s, one, &(ditto_input_options){ .struct_size = sizeof(ditto_input_options), .global_batch = 4 },
            &it));
        begin(&got, n, it);
        run_all(s, consume, &got, &got.report);
        assert_status(ditto_iterator_next(it, &value), DITTO_ERR_CONTEXT);
        end(&got);
        assert_ok(ditto_dataset_destroy(one));
        assert_ok(ditto_dataset_destroy(d));
        assert_ok(ditto_strategy_destroy(s));
    }
}

static ditto_status take_optional(ditto_replica *self, void *argument)
{
    struct distribution *d = argument;
    ditto_batch b;
    int has_value;
    for (int i = 0; i < 5; i++) {
        EXPECT(&d->report, ditto_next_as_optional(self, d->iterator, &b, &has_value) == DITTO_OK);
        EXPECT(&d->report, has_value == (i < 3));
    }
    return DITTO_OK;
}

static void rule_9_9_the_end_may_be_asked_for(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *d = then(range(0, 10), batch_of, 4);
    struct distribution got;
    ditto_iterator *it;
    (void)state;
    assert_ok(ditto_strategy_iterate(s, d, NULL, &it));
    begin(&got, 2, it);
    run_all(s, take_optional, &got, &got.report);
    end(&got);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- failures -- */

static ditto_status consume_to_error(ditto_replica *self, void *argument)
{
    struct distribution *d = argument;
    struct taken *t = &d->taken[ditto_replica_id(self)];
    ditto_batch b;
    ditto_status status;
    while ((status = ditto_next(self, d->iterator, &b)) == DITTO_OK) {
        memcpy(t->row + t->rows, b.component[0].data, b.rows * sizeof(int64_t));
        t->size[t->steps++] = b.rows;
        t->rows += b.rows;
    }
    EXPECT(&d->report, status == DITTO_ERR_CORRUPT && strstr(ditto_last_error()->message, "on row") != NULL);
    return DITTO_OK;
}

/* The map fails when batches are filled, or below a filter, which runs in the sequencer. Both are tried
 * with and without dropped remainders. */
static void no_row_before_a_failure_is_lost(void **state)
{
    ditto_strategy *s = make_strategy(3, NULL);
    (void)state;
    for (int64_t bad = 0; bad < 100; bad += 9)
        for (uint32_t producers = 1; producers <= 3; producers++)
            for (int how = 0; how < 4; how++) {
                bool filtered = how % 2, whole = how / 2;
                ditto_dataset *source = range(0, 200), *mapped, *d;
                ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
                struct distribution got;
                bool seen[200] = { false };
                assert_ok(ditto_dataset_map(source, fail_on_row, (void *)(uintptr_t)bad, NULL, &mapped));
                assert_ok(ditto_dataset_destroy(source));
                d = filtered ? then(mapped, keep_residues, 1000) : mapped;
                d = then(d, whole ? whole_batches_of : batch_of, 10);
                options.num_producers = producers;
                assert_ok(ditto_strategy_iterate(s, d, &options, &got.iterator));
                begin(&got, 3, got.iterator);
                run_all(s, consume_to_error, &got, &got.report);
                for (uint32_t r = 0; r < 3; r++)
                    for (uint64_t i = 0; i < got.taken[r].rows; i++)
                        seen[got.taken[r].row[i]] = true;
                for (int64_t row = filtered; row < bad; row++) /* the filter drops row 0 */
                    assert_true(seen[row]);
                assert_false(seen[bad]);
                end(&got);
                assert_ok(ditto_dataset_destroy(d));
            }
    assert_ok(ditto_strategy_destroy(s));
}

/* Rows 8 and 10 of a step fail, in the batches of different replicas. Row 8 fails later in time. */
static ditto_status fail_twice(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                               void *later)
{
    int64_t row = *(const int64_t *)in[0].data;
    (void)random;
    *(int64_t *)out[0].data = row;
    if (row == 10)
        atomic_store((_Atomic int *)later, 1);
    for (int ms = 0; row == 8 && atomic_load((_Atomic int *)later) == 0 && ms < 10000; ms++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    if (row == 8)
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    return row == 8 || row == 10 ? DITTO_ERR_CORRUPT : DITTO_OK;
}

static ditto_status consume_to_first_error(ditto_replica *self, void *argument)
{
    struct distribution *d = argument;
    ditto_batch b;
    ditto_status status;
    while ((status = ditto_next(self, d->iterator, &b)) == DITTO_OK)
        ;
    EXPECT(&d->report, status == DITTO_ERR_CORRUPT);
    if (ditto_replica_id(self) == 0)
        EXPECT(&d->report, strstr(ditto_last_error()->message, "row 8") != NULL);
    return DITTO_OK;
}

static void rule_9_10_the_first_error_in_the_order_of_rows_counts(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    (void)state;
    options.global_batch = 4;
    options.num_producers = 2;
    for (int i = 0; i < 20; i++) {
        _Atomic int later = 0;
        ditto_dataset *source = range(0, 40), *d;
        struct distribution got;
        assert_ok(ditto_dataset_map(source, fail_twice, (void *)&later, NULL, &d));
        assert_ok(ditto_strategy_iterate(s, d, &options, &got.iterator));
        begin(&got, 2, got.iterator);
        run_all(s, consume_to_first_error, &got, &got.report);
        end(&got);
        assert_ok(ditto_dataset_destroy(d));
        assert_ok(ditto_dataset_destroy(source));
    }
    assert_ok(ditto_strategy_destroy(s));
}

/* Row `bad` fails when batches are filled, or when rows are chosen. */
static void rule_9_10_with_static_shapes_no_batch_is_short_in_front_of_an_error(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    (void)state;
    for (int64_t bad = 0; bad < 40; bad++)
        for (int filtered = 0; filtered < 2; filtered++) {
            ditto_dataset *source = range(0, 80), *d;
            ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
            struct distribution got;
            options.global_batch = 10;
            options.flags = DITTO_INPUT_STATIC;
            assert_ok(ditto_dataset_map(source, fail_on_row, (void *)(uintptr_t)bad, NULL, &d));
            d = filtered ? then(d, keep_residues, 1000) : d; /* keeps all rows except row 0 */
            assert_ok(ditto_strategy_iterate(s, d, &options, &got.iterator));
            begin(&got, 2, got.iterator);
            run_all(s, consume_to_error, &got, &got.report);
            for (uint32_t r = 0; r < 2; r++)
                for (uint64_t i = 0; i < got.taken[r].steps; i++)
                    assert_int_equal(got.taken[r].size[i], 5);
            end(&got);
            assert_ok(ditto_dataset_destroy(d));
            assert_ok(ditto_dataset_destroy(source));
        }
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_9_9_across_replicas_no_row_before_a_failure_is_lost(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    (void)state;
    for (int64_t bad = 16; bad < 24; bad++) {
        ditto_dataset *source = range(0, 40), *d;
        ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
        ditto_iterator *it;
        ditto_value *value;
        ditto_status status;
        int64_t rows = 0;
        assert_ok(ditto_dataset_map(source, fail_on_row, (void *)(uintptr_t)bad, NULL, &d));
        options.global_batch = 8;
        assert_ok(ditto_strategy_iterate(s, d, &options, &it));
        while ((status = ditto_iterator_next(it, &value)) == DITTO_OK) {
            for (uint32_t r = 0; r < 2; r++) {
                ditto_tensor t;
                assert_ok(ditto_value_component(value, r, &t));
                rows += (int64_t)t.shape[0];
            }
            assert_ok(ditto_value_destroy(value));
        }
        assert_int_equal(status, DITTO_ERR_CORRUPT);
        assert_true(rows >= bad);
        assert_status(ditto_iterator_next(it, &value), DITTO_ERR_CORRUPT); /* every time */
        assert_message("on row");
        assert_ok(ditto_iterator_destroy(it));
        assert_ok(ditto_dataset_destroy(d));
        assert_ok(ditto_dataset_destroy(source));
    }
    assert_ok(ditto_strategy_destroy(s));
}

static ditto_status slow_map(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                             void *user)
{
    (void)random;
    (void)user;
    *(int64_t *)out[0].data = *(const int64_t *)in[0].data;
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return DITTO_OK;
}

static void a_slow_producer_is_waited_for_and_counted(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *source = range(0, 40), *d;
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    ditto_iterator_counters all = DITTO_ITERATOR_COUNTERS_INIT, one = DITTO_ITERATOR_COUNTERS_INIT;
    struct distribution got;
    size_t length;
    char text[4000];
    (void)state;
    assert_ok(ditto_dataset_map(source, slow_map, NULL, NULL, &d));
    options.global_batch = 4;
    distribute(&got, s, d, &options);
    assert_ok(ditto_iterator_stats(got.iterator, DITTO_ALL_REPLICAS, &all));
    assert_ok(ditto_iterator_stats(got.iterator, 1, &one));
    assert_true(all.num_waited > 0 && all.consumer_wait_ns > 1000000 && all.filling_ns >= 40 * 1000000ull);
    assert_true(one.rows == 20 && all.rows == 40 && one.num_replicas == 1 &&
                one.consumer_wait_ns <= all.consumer_wait_ns);
    assert_status(ditto_iterator_stats(got.iterator, 2, &one), DITTO_ERR_RANGE);
    assert_ok(ditto_strategy_describe(s, text, sizeof text, &length));
    assert_non_null(strstr(text, "iterator 0: step 10"));
    end(&got);
    assert_ok(ditto_dataset_destroy(source));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

struct background {
    ditto_strategy *strategy;
    struct distribution *distribution;
    ditto_status status;
};
static void *run_in_background(void *argument)
{
    struct background *b = argument;
    b->status = ditto_strategy_run(b->strategy, consume, b->distribution);
    return NULL;
}

static void destroying_waits_for_a_run_on_another_thread(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *source = range(0, 200), *d;
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    struct distribution got;
    pthread_t thread;
    ditto_iterator *it;
    (void)state;
    assert_ok(ditto_dataset_map(source, slow_map, NULL, NULL, &d));
    options.global_batch = 4;
    assert_ok(ditto_strategy_iterate(s, d, &options, &it));
    begin(&got, 2, it);
    struct background b = { s, &got, DITTO_ERR_USER };
    assert_int_equal(pthread_create(&thread, NULL, run_in_background, &b), 0);
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    assert_ok(ditto_iterator_destroy(it));
    pthread_join(thread, NULL);
    assert_int_equal(b.status, DITTO_OK);
    /* The run may not have begun before the iterator was destroyed. */
    assert_true(got.taken[0].rows + got.taken[1].rows == 200 || got.taken[0].steps == 0);
    free(got.taken);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_destroy(source));
    assert_ok(ditto_strategy_destroy(s));
}

/* A replica of one pipeline leaves. Replicas of another pipeline that wait for it get the error. */
static void rule_9_9_a_replica_that_leaves_is_named_across_pipelines(void **state)
{
    ditto_dataset *d = then(range(0, 1000), ditto_dataset_repeat, DITTO_REPEAT_FOREVER);
    (void)state;
    for (uint32_t flags = 0; flags <= DITTO_INPUT_STATIC; flags += DITTO_INPUT_STATIC)
        for (uint32_t leaver = 0; leaver < 4; leaver++) {
            ditto_strategy *s = make_strategy(4, NULL);
            ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
            struct leaving l = { .leaver = leaver };
            options.global_batch = 8;
            options.num_pipelines = 2;
            options.num_producers = 2;
            options.flags = flags;
            assert_ok(ditto_strategy_iterate(s, d, &options, &l.iterator));
            assert_status(ditto_strategy_run(s, one_leaves, &l), DITTO_ERR_DIVERGED);
            char text[64];
            snprintf(text, sizeof text, "replica %u has returned", leaver);
            assert_message(text);
            assert_ok(ditto_iterator_destroy(l.iterator));
            assert_ok(ditto_strategy_destroy(s));
        }
    assert_ok(ditto_dataset_destroy(d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_9_10_every_row_is_delivered_exactly_once),
        cmocka_unit_test(many_replicas_get_the_same_rows),
        cmocka_unit_test(rules_9_1_to_9_6_hold_from_the_dataset_to_the_replica),
        cmocka_unit_test(rule_9_4_dropping_the_remainder_loses_no_whole_batch_of_several_pipelines),
        cmocka_unit_test(rule_9_4_static_shapes_drop_no_full_step_of_fewer_rows_than_replicas),
        cmocka_unit_test(rule_9_6_rows_of_each_replica_do_not_depend_on_the_number_of_pipelines),
        cmocka_unit_test(rule_9_4_a_pipeline_that_ends_early_gives_empty_batches),
        cmocka_unit_test(the_batch_dimension_is_known_if_all_batches_have_it),
        cmocka_unit_test(the_batch_dimension_of_datasets_from_a_function),
        cmocka_unit_test(the_spec_of_batches_is_known_after_the_strategy_is_destroyed),
        cmocka_unit_test(rule_9_5_components_are_cut_at_the_same_rows),
        cmocka_unit_test(rule_9_6_files_are_dealt_out_to_pipelines),
        cmocka_unit_test(rule_9_6_datasets_that_count_across_files_are_not_shared_by_files),
        cmocka_unit_test(rule_9_9_across_replicas_no_row_before_a_failure_is_lost),
        cmocka_unit_test(rule_9_7_replicas_of_a_pipeline_take_its_batches_in_turn),
        cmocka_unit_test(rule_9_7_datasets_that_a_function_must_not_make),
        cmocka_unit_test(rule_9_8_contradictions_are_named),
        cmocka_unit_test(rule_9_8_buffers_change_neither_rows_nor_order),
        cmocka_unit_test(memory_of_the_queues_stays_below_its_limit),
        cmocka_unit_test(rule_9_4_partial_steps_are_dropped_where_shapes_are_static),
        cmocka_unit_test(rule_9_9_across_replicas_batches_come_as_values),
        cmocka_unit_test(rule_9_9_the_end_may_be_asked_for),
        cmocka_unit_test(no_row_before_a_failure_is_lost),
        cmocka_unit_test(rule_9_10_the_first_error_in_the_order_of_rows_counts),
        cmocka_unit_test(rule_9_10_with_static_shapes_no_batch_is_short_in_front_of_an_error),
        cmocka_unit_test(a_slow_producer_is_waited_for_and_counted),
        cmocka_unit_test(destroying_waits_for_a_run_on_another_thread),
        cmocka_unit_test(rule_9_9_a_replica_that_leaves_is_named_across_pipelines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
