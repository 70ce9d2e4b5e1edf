/* tests/input/distribute/test_rows_of_pipelines.c - checks which rows each replica gets if one or more
 * pipelines make its batches: rules 9.1 to 9.7 and 9.10 of docs/semantics.md. */
#include "input/distribute/distribution.h"

/* -- a grid of options -- */

struct point {
    uint64_t global, length;
    uint32_t pipelines, replicas; /* W, N */
    bool even;
    unsigned upstream;
    ditto_shard_policy shard;
};

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
    ditto_dataset *dataset = upstream(p->upstream, p->length);
    ditto_input_options options = OPTIONS(
        input, .global_batch = p->global, .num_pipelines = p->pipelines, .shard = p->shard,
        .partial = p->even ? DITTO_PARTIAL_EVEN : DITTO_PARTIAL_FILL,
        .num_producers = (uint32_t)(1 + number % 3),
        .buffer = number % 4 == 3 ? DITTO_NO_PREFETCH : (uint32_t)(1 + number % 4));
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
    size_t points = 0, every = 20 / (size_t)test_trials(10);
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
    print_message("  %zu combinations of G, W, N, length, what is upstream, FILL and EVEN, DATA and OFF\n",
                  points);
    assert_true(points > 3000 / every);
}

static void many_replicas_get_the_rows_of_the_rules(void **state)
{
    uint32_t n = most_replicas() < 8 ? 8 : most_replicas();
    ditto_strategy *s = make_strategy(n, NULL);
    for (uint32_t pipelines = 1; pipelines <= n; pipelines *= 8)
        for (uint64_t global = 10; global <= 100; global += 90)
            try_point(s,
                      &(struct point){ .global = global,
                                       .length = 500,
                                       .pipelines = pipelines,
                                       .replicas = n,
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

/* A full step must have G rows. The batch dimension must be known exactly if N divides G and every batch is
 * full. */
static void check_spec(const struct steps *s, const ditto_iterator *it, bool by_file)
{
    ditto_element_spec spec;
    bool whole = s->last == LAST_STATIC || (s->last == LAST_DROPPED && !by_file);
    assert_ok(ditto_iterator_spec(it, &spec));
    assert_int_equal(spec.batch, s->global);
    assert_int_equal(spec.component[0].shape[0],
                     whole && s->global % s->replicas == 0 ? s->global / s->replicas : DITTO_ANY_SIZE);
}

static void try_steps(ditto_strategy *strategy, struct steps *s, ditto_shard_policy shard, uint64_t number)
{
    static struct source from;
    const int64_t *list[MOST_REPLICAS];
    struct distribution d;
    make_source(&from, s, shard == DITTO_SHARD_FILE);
    ditto_input_options options = OPTIONS(
        input, .global_batch = s->last == LAST_DROPPED ? 0 : s->global, .num_pipelines = s->pipelines,
        .shard = number % 2 && shard != DITTO_SHARD_OFF ? DITTO_SHARD_AUTO : shard,
        .partial = s->last == LAST_EVEN ? DITTO_PARTIAL_EVEN : DITTO_PARTIAL_DEFAULT,
        .flags = s->last == LAST_STATIC ? DITTO_INPUT_STATIC : 0, .num_producers = (uint32_t)(1 + number % 3),
        .buffer = number % 4 == 3 ? DITTO_NO_PREFETCH : (uint32_t)(1 + number % 4));
    distribute(&d, strategy, from.dataset, &options);
    for (uint32_t w = 0; w < s->pipelines; w++)
        list[w] = from.row[w];
    check_spec(s, d.iterator, shard == DITTO_SHARD_FILE);
    check_steps(s, &d, list);
    end(&d);
    free_source(&from);
}

/* Draws G, W, lengths, the rule for the last step, and the way of sharing at random. With FILE the lengths
 * differ. FILE is refused with DROP_REMAINDER, and replaced by OFF. */
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
}

static void rules_9_1_to_9_4_and_9_6_hold_from_the_dataset_to_the_replica(void **state)
{
    uint64_t random = test_seed(20270406);
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

/* DROP_REMAINDER drops rows at the end of all input. It never drops a step because one pipeline has too few
 * rows for it. */
static void rule_9_4_dropping_the_remainder_loses_no_whole_batch_of_several_pipelines(void **state)
{
    ditto_strategy *strategy = make_strategy(8, NULL);
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
    for (uint64_t global = 1; global < 40; global += 6)
        for (int partial = DITTO_PARTIAL_FILL; partial <= DITTO_PARTIAL_EVEN; partial++) {
            struct distribution one, several;
            ditto_input_options options = OPTIONS(input, .global_batch = global,
                                                  .partial = (ditto_partial_policy)partial);
            distribute(&one, strategy, d, &options);
            for (options.num_pipelines = 2; options.num_pipelines <= 6;
                 options.num_pipelines += options.num_pipelines == 3 ? 3 : 1) {
                distribute(&several, strategy, d, &options);
                for (uint32_t r = one.first; r < one.end; r++)
                    assert_memory_equal(&several.taken[r], &one.taken[r], sizeof one.taken[r]);
                end(&several);
            }
            end(&one);
        }
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- files -- */

static void rule_9_6_pipelines_take_files_in_turn(void **state)
{
    char *name[5];
    ditto_strategy *s = make_strategy(4, NULL);
    ditto_text_options text = DITTO_TEXT_OPTIONS_INIT;
    ditto_dataset *d;
    struct distribution got;
    text.max_bytes = 8; /* the test reads a row's bytes as one number */
    for (int i = 0; i < 5; i++) {
        char lines[64];
        snprintf(lines, sizeof lines, "%c0000000\n%c1111111\n", 'a' + i, 'a' + i);
        name[i] = temporary_file(lines);
    }
    ditto_input_options options = OPTIONS(input, .global_batch = 4, .num_pipelines = 2);
    for (int how = 0; how < 2; how++) {
        options.shard = how == 0 ? DITTO_SHARD_AUTO : DITTO_SHARD_FILE;
        assert_ok(ditto_dataset_from_text(&(ditto_files){ (const char *const *)name, 5, 0 }, &text, &d));
        distribute(&got, s, d, &options);
        for (uint32_t r = got.first; r < got.end; r++) {
            for (uint64_t i = 0; i < got.taken[r].rows; i++)
                assert_int_equal((((const char *)&got.taken[r].row[i])[0] - 'a') % 2, r / 2);
            /* The 6 rows of pipeline 0 make steps of 2, 2 and 2. Pipeline 1 has only 4 rows, and none in the
             * third step. */
            assert_int_equal(got.taken[r].steps, 3);
            assert_int_equal(got.taken[r].rows, r < 2 ? 3 : 2);
        }
        end(&got);
        assert_ok(ditto_dataset_destroy(d));
    }
    for (int i = 0; i < 5; i++)
        forget_file(name[i]);
    assert_ok(ditto_strategy_destroy(s));
}

/* Two pipelines serve four replicas. The four rows of the only file are one global batch. With FILE,
 * pipeline 1 has no file. AUTO shares the rows, so that each replica gets the row that it would get from one
 * pipeline. */
static void rule_9_6_auto_shares_rows_if_there_are_fewer_files_than_pipelines(void **state)
{
    static const uint64_t of_file[] = { 2, 2, 0, 0 };
    int64_t numbers[] = { 0, 1, 2, 3 };
    char *name = temporary_bytes((const char *)numbers, sizeof numbers);
    ditto_strategy *s = make_strategy(4, NULL);
    struct distribution got;
    ditto_dataset *d;
    ditto_input_options options = OPTIONS(input, .global_batch = 4, .num_pipelines = 2);
    assert_ok(ditto_dataset_from_fixed(&(ditto_files){ (const char *const *)&name, 1, 0 },
                                       &(ditto_tensor){ .dtype = DITTO_I64 }, 1, NULL, &d));
    options.shard = DITTO_SHARD_FILE;
    distribute(&got, s, d, &options);
    for (uint32_t r = got.first; r < got.end; r++)
        assert_int_equal(got.taken[r].rows, of_file[r]);
    end(&got);
    options.shard = DITTO_SHARD_AUTO;
    distribute(&got, s, d, &options);
    for (uint32_t r = got.first; r < got.end; r++) {
        assert_int_equal(got.taken[r].rows, 1);
        assert_int_equal(got.taken[r].row[0], r);
    }
    end(&got);
    assert_ok(ditto_dataset_destroy(d));
    forget_file(name);
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_9_6_a_dataset_without_files_is_not_shared_by_files(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    ditto_dataset *d = range(0, 9);
    ditto_iterator *it;
    assert_status(
        ditto_strategy_iterate(
            s, d, &OPTIONS(input, .global_batch = 4, .num_pipelines = 2, .shard = DITTO_SHARD_FILE), &it),
        DITTO_ERR_NOT_FOUND);
    assert_message("read from no file");
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

/* If a dataset counts rows across files, FILE would deliver other numbers of rows. It is refused, and AUTO
 * shares rows. */
static void rule_9_6_datasets_that_count_across_files_are_not_shared_by_files(void **state)
{
    char *name[2] = { temporary_file("a0000000\nb0000000\nc0000000\n"),
                      temporary_file("d0000000\ne0000000\nf0000000\n") };
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *files, *numbers = range(0, 4), *made[5];
    static const uint64_t rows[] = { 4, 4, 4, 3, 6 };
    ditto_iterator *it;
    ditto_input_options options = OPTIONS(input, .global_batch = 2, .num_pipelines = 2);
    assert_ok(ditto_dataset_from_text(&(ditto_files){ (const char *const *)name, 2, 0 },
                                      &OPTIONS(text, .max_bytes = 8), &files));
    assert_ok(ditto_dataset_take(files, 4, &made[0]));
    assert_ok(ditto_dataset_skip(files, 2, &made[1]));
    assert_ok(ditto_dataset_zip((ditto_dataset *[]){ files, numbers }, 2, &made[2]));
    assert_ok(ditto_dataset_shard(files, 2, 0, &made[3]));
    made[4] = then(files, whole_batches_of, 2);
    for (int i = 0; i < 5; i++) {
        struct distribution got;
        options.shard = DITTO_SHARD_FILE;
        assert_status(ditto_strategy_iterate(s, made[i], &options, &it), DITTO_ERR_INVALID);
        assert_message("across files");
        options.shard = DITTO_SHARD_AUTO;
        distribute(&got, s, made[i], &options);
        for (uint32_t r = got.first; r < got.end; r++)
            assert_int_equal(got.taken[r].rows, rows[i] / 2 + (r < rows[i] % 2));
        end(&got);
        assert_ok(ditto_dataset_destroy(made[i]));
    }
    assert_ok(ditto_dataset_destroy(numbers));
    assert_ok(ditto_strategy_destroy(s));
    for (int i = 0; i < 2; i++)
        forget_file(name[i]);
}

static ditto_status components_agree(ditto_replica *self, void *argument)
{
    struct distribution *d = argument;
    ditto_batch b;
    ditto_status status;
    uint64_t rows = 0;
    while ((status = ditto_next(self, d->iterator, &b)) == DITTO_OK) {
        const int64_t *first = b.component[0].data, *second = b.component[1].data;
        EXPECT(&d->report, b.num_components == 2 && b.component[1].shape[0] == b.rows);
        for (uint64_t i = 0; i < b.rows; i++)
            EXPECT(&d->report, second[i] == first[i] + 1000);
        rows += b.rows;
    }
    if (status != DITTO_END_OF_INPUT)
        return status;
    DITTO_TRY(ditto_all_reduce(self, &rows, &rows, 1, DITTO_U64, DITTO_SUM, NULL));
    EXPECT(&d->report, rows == 100);
    return DITTO_OK;
}

static void rule_9_5_components_are_cut_at_the_same_rows(void **state)
{
    ditto_strategy *s = make_strategy(3, NULL);
    ditto_dataset *input[2] = { range(0, 100), range(1000, 1100) }, *zipped, *d;
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    struct distribution got;
    assert_ok(ditto_dataset_zip(input, 2, &zipped));
    d = then(zipped, shuffle_by, 30);
    assert_status(ditto_strategy_iterate(s, d, &options, &got.iterator), DITTO_ERR_INVALID);
    assert_message("batch it first");
    for (uint64_t g = 1; g < 20; g++) {
        options.global_batch = g;
        options.partial = g % 2 ? DITTO_PARTIAL_EVEN : DITTO_PARTIAL_FILL;
        assert_ok(ditto_strategy_iterate(s, d, &options, &got.iterator));
        begin(&got, s, got.iterator);
        run_all(s, components_agree, &got, &got.report);
        end(&got);
    }
    assert_ok(ditto_dataset_destroy(d));
    for (int i = 0; i < 2; i++)
        assert_ok(ditto_dataset_destroy(input[i]));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- from a function -- */

static void rule_9_7_replicas_of_a_pipeline_take_its_batches_in_turn(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    struct distribution d;
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    for (uint32_t pipelines = 1; pipelines <= 4; pipelines *= 2) {
        uint32_t per_pipeline = 4 / pipelines, first_here = first_local(s) / per_pipeline;
        struct making m = { .pipelines = pipelines, .rows = 22, .first = first_here };
        options.num_pipelines = pipelines < 4 ? pipelines : 0;
        options.replication = pipelines < 4 ? DITTO_REPLICATION_PER_PIPELINE : DITTO_REPLICATION_PER_REPLICA;
        ditto_iterator *it;
        assert_ok(ditto_strategy_iterate_from_function(s, make_dataset, &m, &options, &it));
        assert_int_equal(m.calls, (end_local(s) - 1) / per_pipeline + 1 - first_here);
        begin(&d, s, it);
        run_all(s, consume, &d, &d.report);
        for (uint32_t r = d.first; r < d.end; r++) {
            /* 22 rows in batches of 3 are 7 whole batches and one of 1 row. */
            uint64_t at = 0;
            assert_int_equal(d.taken[r].steps, (8 + per_pipeline - 1) / per_pipeline);
            for (uint64_t step = 0; step < d.taken[r].steps; step++) {
                uint64_t number = step * per_pipeline + r % per_pipeline, first = number * 3,
                         size = first >= 22       ? 0
                                : first + 3 <= 22 ? 3
                                                  : 22 - first;
                assert_int_equal(d.taken[r].size[step], size);
                for (uint64_t i = 0; i < size; i++)
                    assert_int_equal(d.taken[r].row[at++], 1000 * (r / per_pipeline) + first + i);
            }
        }
        end(&d);
    }
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_9_7_wrong_datasets_of_a_function_are_refused(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    ditto_iterator *it;
    struct making m = { .pipelines = 2, .rows = 9, .batch = 2, .differ = true };
    uint32_t first = first_local(s) / 2;
    uint64_t batch;
    ditto_input_options options = OPTIONS(input, .num_pipelines = 2);
    m.first = first;
    assert_status(ditto_strategy_iterate_from_function(s, make_dataset, &m, &options, &it),
                  DITTO_ERR_INVALID);
    assert_message("pipeline 1");
    m = (struct making){ .first = first, .pipelines = 2, .rows = 9, .batch = 2, .fail = true };
    assert_status(ditto_strategy_iterate_from_function(s, make_dataset, &m, &options, &it), DITTO_ERR_USER);
    m = (struct making){ .first = first, .pipelines = 2, .none = true };
    assert_status(ditto_strategy_iterate_from_function(s, make_dataset, &m, &options, &it),
                  DITTO_ERR_INVALID);
    assert_message("returned DITTO_OK but no dataset");
    assert_status(ditto_strategy_iterate_from_function(s, NULL, &m, &options, &it), DITTO_ERR_INVALID);
    ditto_input_context context = { 2, 0, 4 };
    assert_status(ditto_input_per_replica_batch(&context, 13, &batch), DITTO_ERR_INVALID);
    assert_status(ditto_input_per_replica_batch(&context, 0, &batch), DITTO_ERR_INVALID);
    assert_ok(ditto_input_per_replica_batch(&context, 12, &batch));
    assert_int_equal(batch, 3);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- steps with fewer rows than replicas -- */

static void rule_9_4_pipelines_without_rows_give_empty_batches(void **state)
{
    ditto_strategy *s = make_strategy(3, NULL);
    /* In every step replica 0 gets the only row, and pipelines 1 and 2 get none. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_9_10_every_row_is_delivered_exactly_once),
        cmocka_unit_test(many_replicas_get_the_rows_of_the_rules),
        cmocka_unit_test(rules_9_1_to_9_4_and_9_6_hold_from_the_dataset_to_the_replica),
        cmocka_unit_test(rule_9_4_dropping_the_remainder_loses_no_whole_batch_of_several_pipelines),
        cmocka_unit_test(rule_9_4_static_shapes_drop_no_full_step_of_fewer_rows_than_replicas),
        cmocka_unit_test(rule_9_6_rows_of_each_replica_do_not_depend_on_the_number_of_pipelines),
        cmocka_unit_test(rule_9_4_pipelines_without_rows_give_empty_batches),
        cmocka_unit_test(rule_9_5_components_are_cut_at_the_same_rows),
        cmocka_unit_test(rule_9_6_pipelines_take_files_in_turn),
        cmocka_unit_test(rule_9_6_auto_shares_rows_if_there_are_fewer_files_than_pipelines),
        cmocka_unit_test(rule_9_6_a_dataset_without_files_is_not_shared_by_files),
        cmocka_unit_test(rule_9_6_datasets_that_count_across_files_are_not_shared_by_files),
        cmocka_unit_test(rule_9_7_replicas_of_a_pipeline_take_its_batches_in_turn),
        cmocka_unit_test(rule_9_7_wrong_datasets_of_a_function_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
