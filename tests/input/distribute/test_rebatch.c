/* tests/input/distribute/test_rebatch.c - compares the arithmetic of steps
 * (src/input/distribute/rebatch.h) with the rules of docs/semantics.md, for every G, N and W in a range
 * and many lengths, without threads. */
#include "input/distribute/step_model.h"
#include "support/support.h"

#include "input/distribute/rebatch.h"

enum { MOST_ROWS = 300, MOST_GLOBAL = 100, MOST_SERVED = 8 };

/* The steps of an iterator's pipelines, computed with the library's functions. */
struct cutting {
    struct dti_cut cut[MOST_SERVED];
    uint64_t length[MOST_SERVED]; /* rows of each pipeline's input */
    uint64_t at[MOST_SERVED];     /* rows before its next step */
    bool ended[MOST_SERVED];
    uint64_t step, first[MOST_SERVED], count[MOST_SERVED]; /* as in struct steps */
};

static void begin_cutting(struct cutting *c, const struct steps *s)
{
    /* True if all pipelines end in the same step with DROP_REMAINDER. */
    bool together = s->shared || s->global % s->replicas == 0;
    *c = (struct cutting){ .step = UINT64_MAX };
    for (uint32_t w = 0; w < s->pipelines; w++) {
        c->length[w] = s->length[s->shared ? 0 : w];
        if (s->last == LAST_DROPPED && !s->shared) /* batch drops the rows at the end of each input */
            c->length[w] -= c->length[w] % s->global;
        c->cut[w] = (struct dti_cut){
            .global = s->global,
            .pipelines = s->pipelines,
            .pipeline = w,
            .replicas = s->replicas / s->pipelines,
            .arrangement = s->shared ? DTI_CUT_SHARED : DTI_CUT_OWN,
            .shorts = s->last == LAST_STATIC                ? DTI_SHORT_NEVER
                      : s->last == LAST_DROPPED && together ? DTI_SHORT_DROPPED
                                                            : DTI_SHORT_DELIVERED,
            .even = s->last == LAST_EVEN,
        };
    }
}

/* Cuts the current step of a pipeline as its sequencer does. Returns the number of rows of the step. */
static uint64_t cut_one(struct cutting *c, uint32_t w)
{
    const struct dti_cut *cut = &c->cut[w];
    uint64_t left = c->length[w] - c->at[w], want = dti_cut_step(cut, c->step),
             got = left < want ? left : want;
    c->ended[w] = c->ended[w] || !dti_cut_exists(cut, want, got, false, left > 0);
    return c->ended[w] ? 0 : got;
}

static bool next_cut(struct cutting *c)
{
    uint32_t pipelines = c->cut[0].pipelines, per_pipeline = c->cut[0].replicas, with = 0, none = 0;
    bool all_or_none = c->cut[0].shorts == DTI_SHORT_NEVER;
    uint64_t got[MOST_SERVED];
    c->step++;
    for (uint32_t w = 0; w < pipelines; w++) {
        got[w] = cut_one(c, w);
        with += !c->ended[w];
    }
    for (uint32_t w = 0; w < pipelines; w++) {
        enum dti_step_existence outcome = dti_cut_existence(all_or_none, pipelines, with, pipelines - with,
                                                            !c->ended[w]);
        uint64_t rows = outcome == DTI_STEP_EXISTS_WITH_ROWS ? got[w] : 0;
        uint64_t before = dti_cut_before(&c->cut[w], c->step, rows, 0);
        assert_true(outcome != DTI_STEP_EXISTENCE_UNKNOWN);
        none += outcome == DTI_STEP_EXISTS_NOT;
        for (uint32_t j = 0; j < per_pipeline; j++) {
            uint64_t behind = dti_cut_before(&c->cut[w], c->step, rows, j + 1);
            c->first[w * per_pipeline + j] = c->at[w] + before;
            c->count[w * per_pipeline + j] = behind - before;
            before = behind;
        }
        c->at[w] += rows;
    }
    assert_true(none == 0 || none == pipelines); /* rule 9.4: all end together */
    return none == 0;
}

static void fail_at(const struct steps *s, uint32_t r, const struct cutting *c)
{
    print_error("G = %llu, N = %u, W = %u, length %llu, shared %d, last step %d: replica %u in step %llu has "
                "%llu rows from %llu on, expected %llu from %llu on\n",
                (unsigned long long)s->global, s->replicas, s->pipelines, (unsigned long long)s->length[0],
                s->shared, (int)s->last, r, (unsigned long long)s->step, (unsigned long long)c->count[r],
                (unsigned long long)c->first[r], (unsigned long long)s->count[r],
                (unsigned long long)s->first[r]);
    fail();
}

/* Compares all steps. Returns the number of batches. */
static uint64_t compare(struct steps *s)
{
    struct cutting c;
    uint64_t batches = 0;
    begin_cutting(&c, s);
    begin_steps(s);
    for (;;) {
        bool expected = next_step(s), found = next_cut(&c);
        if (expected != found)
            fail_at(s, 0, &c);
        if (!expected)
            break;
        for (uint32_t r = 0; r < s->replicas; r++)
            if (c.count[r] != s->count[r] || (c.count[r] > 0 && c.first[r] != s->first[r]))
                fail_at(s, r, &c);
        batches += s->replicas;
    }
    if (s->last == LAST_FILLED || s->last == LAST_EVEN) /* rule 9.10: every row was delivered */
        for (uint32_t w = 0; w < (s->shared ? 1 : s->pipelines); w++)
            assert_int_equal(s->given[w], s->length[w]);
    return batches;
}

/* Sets the number of rows of each pipeline's input. All inputs have `length` rows (DATA, OFF), or
 * unequal parts of it (FILE). */
static void set_lengths(struct steps *s, uint64_t length, bool unequal)
{
    uint64_t sum = (uint64_t)s->pipelines * (s->pipelines + 1) / 2, left = length;
    for (uint32_t w = 0; w < s->pipelines; w++) {
        s->length[w] = !unequal ? length : w + 1 == s->pipelines ? left : length * w / sum;
        left -= unequal ? s->length[w] : 0;
    }
}

/* Tries every 11th length, and with DITTO_TEST_LONG every length. If all pipelines read all rows, there are
 * many more batches, and four times fewer lengths are tried. */
static void compare_all(bool shared, bool unequal)
{
    uint64_t every = (getenv("DITTO_TEST_LONG") == NULL ? 11u : 1u) * (shared || unequal ? 1u : 4u),
             batches = 0, cases = 0;
    for (uint64_t global = 1; global <= MOST_GLOBAL; global++)
        for (uint64_t length = global % every; length <= MOST_ROWS; length += every)
            for (uint32_t replicas = 1; replicas <= MOST_SERVED; replicas++)
                for (uint32_t pipelines = 1; pipelines <= replicas; pipelines++)
                    /* FILE is refused with DROP_REMAINDER. */
                    for (int last = 0; last < (unequal ? LAST_DROPPED : LAST_STEPS); last++) {
                        struct steps s = { .global = global,
                                           .replicas = replicas,
                                           .pipelines = pipelines,
                                           .shared = shared,
                                           .last = (enum last_step)last };
                        if (replicas % pipelines != 0 || (!shared && pipelines == 1))
                            continue;
                        set_lengths(&s, length, unequal);
                        batches += compare(&s);
                        cases++;
                    }
    print_message("  %llu cases, %llu batches\n", (unsigned long long)cases, (unsigned long long)batches);
}

static void rules_9_1_to_9_4_and_9_6_hold_for_pipelines_that_share_rows(void **state)
{
    compare_all(true, false);
}

static void rules_9_1_to_9_4_and_9_6_hold_for_pipelines_that_read_all_rows(void **state)
{
    compare_all(false, false);
}

static void rules_9_1_to_9_4_and_9_6_hold_for_pipelines_that_read_other_files(void **state)
{
    compare_all(false, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_9_1_to_9_4_and_9_6_hold_for_pipelines_that_share_rows),
        cmocka_unit_test(rules_9_1_to_9_4_and_9_6_hold_for_pipelines_that_read_all_rows),
        cmocka_unit_test(rules_9_1_to_9_4_and_9_6_hold_for_pipelines_that_read_other_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
