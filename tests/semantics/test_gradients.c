/* tests/semantics/test_gradients.c - the gradients of examples/network.c in the first step. They have the
 * same bits as in a serial program that adds the parts of the replicas in the order of the tree. */
#include "support/as_hosts.h"
#include "support/support.h"

#include "network.h"
#include "sync/reference.h"

enum { BATCH = 50 };

struct step {
    struct report report;
    struct network network;
    ditto_iterator *iterator;
    struct network gradient[8];  /* of each replica, after the all-reduce */
    float pixel[BATCH * INPUTS]; /* the rows of all replicas in the step */
    int32_t label[BATCH];
    uint64_t rows[8]; /* how many of them each replica has */
};

/* Gathers the rows of all replicas. The first replica of each host stores them. */
static ditto_status keep_rows(ditto_replica *self, struct step *s, const ditto_batch *batch)
{
    uint64_t rows[8];
    ditto_tensor pixel, label;
    DITTO_TRY(ditto_all_gather(self, &batch->rows, rows, 1, NULL, DITTO_U64, NULL));
    DITTO_TRY(ditto_all_gather_tensor(self, &batch->component[0], 0, &pixel));
    DITTO_TRY(ditto_all_gather_tensor(self, &batch->component[1], 0, &label));
    EXPECT(&s->report, ditto_tensor_bytes(&pixel) == sizeof s->pixel);
    EXPECT(&s->report, ditto_tensor_bytes(&label) == sizeof s->label);
    if (ditto_replica_is_first_of_host(self)) {
        memcpy(s->rows, rows, ditto_num_replicas(self) * sizeof *rows);
        memcpy(s->pixel, pixel.data, sizeof s->pixel);
        memcpy(s->label, label.data, sizeof s->label);
    }
    DITTO_TRY(ditto_free(self, pixel.data));
    return ditto_free(self, label.data);
}

static ditto_status first_step(ditto_replica *self, void *argument)
{
    struct step *s = argument;
    uint32_t id = ditto_replica_id(self);
    ditto_batch batch;
    int64_t hits = 0;
    DITTO_TRY(ditto_next(self, s->iterator, &batch));
    DITTO_TRY(keep_rows(self, s, &batch));
    network_learn(&s->network, batch.component[0].data, batch.component[1].data, batch.rows, 1.0f / BATCH,
                  &s->gradient[id], &hits);
    return ditto_all_reduce(self, &s->gradient[id], &s->gradient[id], PARAMETERS, DITTO_F32, DITTO_SUM, NULL);
}

static void compare_with_serial(uint32_t n)
{
    static const ditto_csv_component columns[] = {
        { .first_column = 0, .num_columns = INPUTS, .dtype = DITTO_F32 },
        { .first_column = INPUTS, .num_columns = 1, .dtype = DITTO_I32 }
    };
    static struct step s;
    static struct network part[8];
    ditto_strategy *strategy = make_strategy(n, NULL);
    uint32_t first = first_local(strategy), end = end_local(strategy);
    ditto_dataset *data;
    size_t unlike_fold = 0, row = 0;
    memset(&s, 0, sizeof s);
    memset(part, 0, sizeof part);
    network_initialize(&s.network, 1);
    const char *path = "examples/data/digits.csv";
    assert_ok(
        ditto_dataset_from_csv(&(ditto_files){ .names = &path, .num_names = 1 }, columns, 2, NULL, &data));
    assert_ok(ditto_strategy_iterate(strategy, data, &OPTIONS(input, .global_batch = BATCH), &s.iterator));
    run_all(strategy, first_step, &s, &s.report);
    assert_ok(ditto_iterator_destroy(s.iterator));
    assert_ok(ditto_dataset_destroy(data));
    assert_ok(ditto_strategy_destroy(strategy));

    for (uint32_t r = 0; r < n; r++) { /* the serial program, which does not use ditto */
        int64_t hits = 0;
        network_learn(&s.network, s.pixel + row * INPUTS, s.label + row, s.rows[r], 1.0f / BATCH, &part[r],
                      &hits);
        row += s.rows[r];
    }
    for (size_t i = 0; i < PARAMETERS; i++) {
        float parts[8], expected, fold = ((float *)&part[0])[i];
        for (uint32_t r = 0; r < n; r++)
            parts[r] = ((float *)&part[r])[i];
        for (uint32_t r = 1; r < n; r++)
            fold += parts[r];
        expected = reference_f32(parts, 0, n, DITTO_SUM);
        unlike_fold += memcmp(&expected, &fold, sizeof fold) != 0;
        for (uint32_t r = first; r < end; r++)
            if (memcmp(&((float *)&s.gradient[r])[i], &expected, sizeof expected) != 0)
                fail_msg("%u replicas: parameter %zu on replica %u is %a, the serial tree gives %a", n, i, r,
                         (double)((float *)&s.gradient[r])[i], (double)expected);
    }
    print_message("  %u replicas: %d parameters equal; %zu of them would differ in a left fold\n", n,
                  (int)PARAMETERS, unlike_fold);
}

static void gradients_equal_a_serial_reference_bit_by_bit(void **state)
{
    compare_with_serial(2);
    compare_with_serial(3);
    compare_with_serial(8);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(gradients_equal_a_serial_reference_bit_by_bit) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
