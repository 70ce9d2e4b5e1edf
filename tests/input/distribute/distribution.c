/* tests/input/distribute/distribution.c - see distribution.h. */
#include "input/distribute/distribution.h"

#include <sched.h>

ditto_status consume(ditto_replica *self, void *argument)
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
    EXPECT(&d->report, ditto_next(self, d->iterator, &b) == status); /* the same status again */
    return status < 0 ? status : DITTO_OK;
}

void begin(struct distribution *d, ditto_strategy *strategy, ditto_iterator *iterator)
{
    *d = (struct distribution){ .iterator = iterator,
                                .first = first_local(strategy),
                                .end = end_local(strategy) };
    d->taken = calloc(ditto_strategy_num_replicas(strategy), sizeof *d->taken);
    assert_non_null(d->taken);
}

static ditto_status add_rows(ditto_replica *self, void *argument)
{
    struct distribution *d = argument;
    uint64_t rows = d->taken[ditto_replica_id(self)].rows;
    DITTO_TRY(ditto_all_reduce(self, &rows, &rows, 1, DITTO_U64, DITTO_SUM, NULL));
    if (ditto_replica_is_first_of_host(self))
        d->all_rows = rows;
    return DITTO_OK;
}

uint64_t rows_of_all(struct distribution *d, ditto_strategy *strategy)
{
    assert_ok(ditto_strategy_run(strategy, add_rows, d));
    return d->all_rows;
}

void end(struct distribution *d)
{
    free(d->taken);
    assert_ok(ditto_iterator_destroy(d->iterator));
}

void distribute(struct distribution *d, ditto_strategy *s, ditto_dataset *dataset,
                const ditto_input_options *options)
{
    ditto_iterator *it;
    assert_ok(ditto_strategy_iterate(s, dataset, options, &it));
    begin(d, s, it);
    run_all(s, consume, d, &d->report);
}

void check_steps(struct steps *s, const struct distribution *d, const int64_t *const *list)
{
    uint64_t at[MOST_REPLICAS] = { 0 }, steps = 0;
    uint32_t per_pipeline = s->replicas / s->pipelines;
    begin_steps(s);
    for (; next_step(s); steps++)
        for (uint32_t r = d->first; r < d->end; r++) {
            const struct taken *t = &d->taken[r];
            const int64_t *expected = list[s->shared ? 0 : r / per_pipeline] + s->first[r];
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
    for (uint32_t r = d->first; r < d->end; r++)
        assert_int_equal(d->taken[r].steps, steps); /* rule 9.4: all end together */
}

ditto_status make_dataset(const ditto_input_context *context, void *user, ditto_dataset **out)
{
    struct making *m = user;
    ditto_dataset *rows;
    if (context->pipeline != m->first + m->calls++ || context->num_pipelines != m->pipelines ||
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
