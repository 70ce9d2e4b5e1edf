/* tests/language_model/test_language_model.c - the transformer of the examples against a plain serial loop in
 * double precision: its logits, and its gradients as finite differences. The model has five key/value heads
 * and 53 feed-forward rows, so two, three and four ranks have unequal slices.
 *
 * With a model file and the logits that the Python reference has for a text (a line for each position: the
 * token and its logits), those are compared instead. */
#include "support/support.h"

#include "language_model/learn.h"
#include "language_model/tokenizer.h"

#include <math.h>

static const struct model_shape shape = { .dim = 40,
                                          .hidden = 53,
                                          .layers = 2,
                                          .heads = 10,
                                          .kv_heads = 5,
                                          .vocabulary = 261,
                                          .positions = 9,
                                          .own_classifier = true };
enum {
    SEQUENCES = 2,
    POSITIONS = 9,
    ROWS = SEQUENCES * POSITIONS,
    WORDS = 261,
    DIM = 40,
    HIDDEN = 53,
    HEADS = 10,
    SHARED = 2,
    HEAD = DIM / HEADS,
    KV = DIM / SHARED
};

/* -- the serial loop -- */

struct serial {
    double *array[PARAMETERS];
    double key[2][POSITIONS][KV], value[2][POSITIONS][KV]; /* of each layer */
};

static double times(const double *row, const double *x, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += row[i] * x[i];
    return sum;
}

static void norm(double *out, const double *x, const double *weight)
{
    double scale = 1 / sqrt(times(x, x, DIM) / DIM + 1e-5);
    for (int i = 0; i < DIM; i++)
        out[i] = x[i] * scale * weight[i];
}

static void angles(double *x, int heads, int position)
{
    for (int h = 0; h < heads; h++)
        for (int i = 0; i < HEAD; i += 2) {
            double angle = position / pow(10000, (double)i / HEAD), *pair = &x[h * HEAD + i], a = pair[0];
            pair[0] = a * cos(angle) - pair[1] * sin(angle);
            pair[1] = a * sin(angle) + pair[1] * cos(angle);
        }
}

static void serial_attention(struct serial *s, int layer, int position, const double *query, double *out)
{
    for (int h = 0; h < HEADS; h++) {
        double weight[POSITIONS], sum = 0;
        int at = h / SHARED * HEAD;
        for (int p = 0; p <= position; p++)
            sum += weight[p] = exp(times(&query[h * HEAD], &s->key[layer][p][at], HEAD) / sqrt(HEAD));
        for (int i = 0; i < HEAD; i++) {
            out[h * HEAD + i] = 0;
            for (int p = 0; p <= position; p++)
                out[h * HEAD + i] += weight[p] / sum * s->value[layer][p][at + i];
        }
    }
}

/* Computes the logits of the next position of a sequence. */
static void serial_step(struct serial *s, int position, int32_t token, double *logits)
{
    double x[DIM], a[DIM], query[DIM], out[DIM], inside[HIDDEN];
    memcpy(x, s->array[EMBEDDING] + (size_t)token * DIM, sizeof x);
    for (int l = 0; l < 2; l++) {
        norm(a, x, s->array[ATTENTION_NORM] + (size_t)l * DIM);
        for (int o = 0; o < DIM; o++)
            query[o] = times(s->array[QUERY] + ((size_t)l * DIM + (size_t)o) * DIM, a, DIM);
        for (int o = 0; o < KV; o++) {
            s->key[l][position][o] = times(s->array[KEY] + ((size_t)l * KV + (size_t)o) * DIM, a, DIM);
            s->value[l][position][o] = times(s->array[VALUE] + ((size_t)l * KV + (size_t)o) * DIM, a, DIM);
        }
        angles(query, HEADS, position);
        angles(s->key[l][position], HEADS / SHARED, position);
        serial_attention(s, l, position, query, out);
        for (int o = 0; o < DIM; o++)
            x[o] += times(s->array[OUTPUT] + ((size_t)l * DIM + (size_t)o) * DIM, out, DIM);
        norm(a, x, s->array[FEED_NORM] + (size_t)l * DIM);
        for (int o = 0; o < HIDDEN; o++) {
            double z = times(s->array[GATE] + ((size_t)l * HIDDEN + (size_t)o) * DIM, a, DIM);
            inside[o] = z / (1 + exp(-z)) *
                        times(s->array[UP] + ((size_t)l * HIDDEN + (size_t)o) * DIM, a, DIM);
        }
        for (int o = 0; o < DIM; o++)
            x[o] += times(s->array[DOWN] + ((size_t)l * DIM + (size_t)o) * HIDDEN, inside, HIDDEN);
    }
    norm(a, x, s->array[FINAL_NORM]);
    for (int o = 0; o < WORDS; o++)
        logits[o] = times(s->array[CLASSIFIER] + (size_t)o * DIM, a, DIM);
}

/* -- what the replicas compute -- */

struct setting {
    ditto_strategy *strategy;
    struct weights weights;
    struct serial serial;
    struct row row[ROWS];
    int32_t target[ROWS];
    bool one_by_one; /* a position in a call, otherwise all rows in one */
    float logits[ROWS][WORDS];
    float *gradient[PARAMETERS]; /* whole */
    ditto_optimizer *optimizer;
    double loss;
};

static void begin(struct setting *t, uint32_t data, uint32_t tensor)
{
    const struct weight_source source = { .seed = 7, .deviation = 0.3f };
    *t = (struct setting){ .strategy = make_strategy(data * tensor, NULL) };
    t->weights = weights_create(t->strategy, &shape, data, tensor, &source);
    for (int p = 0; p < PARAMETERS; p++) {
        size_t count = parameter_count(&shape, (enum parameter)p);
        float *whole = calloc(count, sizeof *whole);
        assert_ok(ditto_variable_read(t->weights.array[p], whole, count * sizeof *whole));
        t->serial.array[p] = calloc(count, sizeof(double));
        for (size_t i = 0; i < count; i++)
            t->serial.array[p][i] = whole[i];
        t->gradient[p] = whole;
    }
    for (uint32_t r = 0; r < ROWS; r++) {
        t->row[r] = (struct row){ r / POSITIONS, r % POSITIONS, (int32_t)(r * 37 + 1) % WORDS };
        t->target[r] = (int32_t)(r * 91 + 5) % WORDS;
    }
}

static void end(struct setting *t)
{
    weights_destroy(&t->weights);
    assert_ok(ditto_strategy_destroy(t->strategy));
    for (int p = 0; p < PARAMETERS; p++) {
        free(t->serial.array[p]);
        free(t->gradient[p]);
    }
}

/* Each rank stores the logits of its words. */
static void store_logits(struct setting *t, struct transformer *m, uint32_t row, uint32_t which)
{
    float own[WORDS];
    transformer_logits(m, &which, 1, own);
    if (m->data.rank == 0)
        memcpy(&t->logits[row][m->first_word], own, m->words * sizeof *own);
}

static ditto_status compute_logits(ditto_replica *self, void *argument)
{
    struct setting *t = argument;
    struct transformer m;
    DITTO_TRY(transformer_begin(&m, self, &t->weights, SEQUENCES, POSITIONS, ROWS, false));
    if (!t->one_by_one)
        DITTO_TRY(transformer_forward(&m, t->row, ROWS));
    for (uint32_t r = 0; r < ROWS; r++) {
        if (t->one_by_one)
            DITTO_TRY(transformer_forward(&m, &t->row[r], 1));
        store_logits(t, &m, r, t->one_by_one ? 0 : r);
    }
    return transformer_end(&m);
}

static void logits_are_those_of_a_serial_loop(void **state)
{
    (void)state;
    for (uint32_t tensor = 1; tensor <= 5; tensor++) {
        static struct setting t;
        static float all_at_once[ROWS][WORDS];
        begin(&t, 1, tensor);
        assert_ok(ditto_strategy_run(t.strategy, compute_logits, &t));
        memcpy(all_at_once, t.logits, sizeof t.logits);
        t.one_by_one = true;
        assert_ok(ditto_strategy_run(t.strategy, compute_logits, &t));
        assert_memory_equal(all_at_once, t.logits, sizeof t.logits); /* the rows of a call do not matter */
        for (int r = 0; r < ROWS; r++) {
            double wanted[WORDS];
            serial_step(&t.serial, (int)t.row[r].position, t.row[r].token, wanted);
            for (int w = 0; w < WORDS; w++)
                if (!(fabs(t.logits[r][w] - wanted[w]) < 2e-5)) /* the logits are up to about 5 */
                    fail_msg("%u ranks, row %d, word %d: %.9g instead of %.9g", tensor, r, w,
                             (double)t.logits[r][w], wanted[w]);
        }
        end(&t);
    }
}

/* The sequences are divided along "data". Gradients are added up over all replicas, into the whole. */
static ditto_status compute_gradients(ditto_replica *self, void *argument)
{
    struct setting *t = argument;
    struct transformer m;
    struct gradients g;
    ditto_group data;
    double loss = 0;
    DITTO_TRY(ditto_group_of(self, t->weights.data, &data));
    uint32_t sequences = SEQUENCES / data.size, rows = sequences * POSITIONS;
    struct row row[ROWS];
    for (uint32_t r = 0; r < rows; r++) {
        row[r] = t->row[data.rank * rows + r];
        row[r].sequence -= data.rank * sequences;
    }
    DITTO_TRY(transformer_begin(&m, self, &t->weights, sequences, POSITIONS, rows, true));
    DITTO_TRY(gradients_begin(&g, &m));
    DITTO_TRY(learn(&m, &g, row, t->target + data.rank * rows, rows, 1, &loss));
    if (m.tensor.rank != 0)
        loss = 0;
    DITTO_TRY(ditto_all_reduce(self, &loss, &loss, 1, DITTO_F64, DITTO_SUM, NULL));
    if (ditto_replica_id(self) == 0)
        t->loss = loss;
    /* With the rule ASSIGN the variables become the gradients. */
    DITTO_TRY(ditto_apply(self, t->optimizer, g.tensor, NULL));
    DITTO_TRY(gradients_end(&g, &m));
    return transformer_end(&m);
}

static double serial_loss(struct serial *s, const struct setting *t)
{
    double loss = 0, logits[WORDS];
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        serial_step(s, (int)t->row[r].position, t->row[r].token, logits);
        for (int w = 0; w < WORDS; w++)
            sum += exp(logits[w]);
        loss += log(sum) - logits[t->target[r]];
    }
    return loss;
}

/* Compares some elements of each gradient with central differences of the serial loop. */
static void compare_gradients(struct setting *t, uint32_t data, uint32_t tensor)
{
    const double step = 1e-4;
    for (int p = 0; p < PARAMETERS; p++) {
        size_t count = parameter_count(&shape, (enum parameter)p);
        for (size_t k = 0; k < 16; k++) {
            /* Of the embedding, a row that occurs. */
            size_t i = p == EMBEDDING ? (size_t)t->row[k].token * DIM + k : (k * 7919 + 11) % count;
            double *element = &t->serial.array[p][i], kept = *element;
            *element = kept + step;
            double above = serial_loss(&t->serial, t);
            *element = kept - step;
            double slope = (above - serial_loss(&t->serial, t)) / (2 * step), found = t->gradient[p][i];
            *element = kept;
            if (!(fabs(found - slope) < 2e-4 * (1 + fabs(slope))))
                fail_msg("%u x %u, element %zu of %s: %.9g instead of %.9g", data, tensor, i,
                         parameter_shape(&shape, (enum parameter)p).name, found, slope);
        }
    }
}

static void gradients_are_differences_of_the_loss(void **state)
{
    (void)state;
    for (uint32_t data = 1; data <= SEQUENCES; data++)
        for (uint32_t tensor = 1; tensor <= 4; tensor++) {
            static struct setting t;
            begin(&t, data, tensor);
            assert_ok(ditto_optimizer_create(t.weights.array, PARAMETERS,
                                             &OPTIONS(optimizer, .rule = DITTO_RULE_ASSIGN), &t.optimizer));
            assert_ok(ditto_strategy_run(t.strategy, compute_gradients, &t));
            for (int p = 0; p < PARAMETERS; p++)
                assert_ok(ditto_variable_read(t.weights.array[p], t.gradient[p],
                                              parameter_count(&shape, (enum parameter)p) * sizeof(float)));
            double loss = serial_loss(&t.serial, &t);
            assert_true(fabs(t.loss - loss) < 1e-5 * loss);
            compare_gradients(&t, data, tensor);
            assert_ok(ditto_optimizer_destroy(t.optimizer));
            end(&t);
        }
}

static void bf16_is_rounded_to_nearest_even(void **state)
{
    static const struct {
        float x;
        uint16_t rounded;
    } rows[] = {
        { 1, 0x3f80 },           { -1, 0xbf80 },
        { 0x1.01p0f, 0x3f80 },   /* half way, and down to the even one */
        { 0x1.03p0f, 0x3f82 },   /* half way, and up to the even one */
        { 0x1.0101p0f, 0x3f81 }, /* just above half way */
        { 0x1.fffp0f, 0x4000 },  /* up to the next power of two */
        { -0x1.03p0f, 0xbf82 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(round_to_bf16(rows[i].x), rows[i].rounded);
}

/* -- the logits of the Python reference -- */

struct file_text {
    struct weights weights;
    struct row row[64];
    uint32_t rows;
    double *wanted; /* [64][vocabulary] */
    struct report report;
};

static ditto_status compare_with_file(ditto_replica *self, void *argument)
{
    struct file_text *t = argument;
    struct transformer m;
    void *own;
    DITTO_TRY(transformer_begin(&m, self, &t->weights, 1, t->rows, t->rows, false));
    DITTO_TRY(transformer_forward(&m, t->row, t->rows));
    DITTO_TRY(ditto_alloc(self, m.words * sizeof(float), 64, &own));
    for (uint32_t r = 0; r < t->rows; r++) {
        transformer_logits(&m, &r, 1, own);
        for (uint32_t w = 0; w < m.words; w++) {
            double wanted = t->wanted[(size_t)r * t->weights.shape.vocabulary + m.first_word + w],
                   found = ((float *)own)[w];
            EXPECT(&t->report, fabs(found - wanted) < 1e-5 * (1 + fabs(wanted)));
        }
    }
    DITTO_TRY(ditto_free(self, own));
    return transformer_end(&m);
}

static void compare_files(const char *model_path, const char *logits_path)
{
    static struct file_text t;
    struct model_file model = model_open(model_path);
    FILE *file = fopen(logits_path, "r");
    assert_non_null(file);
    t.wanted = calloc((size_t)64 * model.shape.vocabulary, sizeof *t.wanted);
    for (int32_t token; t.rows < 64 && fscanf(file, "%d", &token) == 1; t.rows++) {
        t.row[t.rows] = (struct row){ 0, t.rows, token };
        for (uint32_t w = 0; w < model.shape.vocabulary; w++)
            assert_int_equal(fscanf(file, "%lf", &t.wanted[(size_t)t.rows * model.shape.vocabulary + w]), 1);
    }
    fclose(file);
    assert_true(t.rows > 1);
    for (uint32_t tensor = 1; tensor <= 4; tensor++) {
        ditto_strategy *strategy = make_strategy(tensor, NULL);
        t.weights = weights_create(strategy, &model.shape, 1, tensor,
                                   &(struct weight_source){ .file = &model });
        run_all(strategy, compare_with_file, &t, &t.report);
        weights_destroy(&t.weights);
        assert_ok(ditto_strategy_destroy(strategy));
    }
    free(t.wanted);
}

static void logits_are_those_of_the_reference(void **state)
{
    char **word = *state;
    compare_files(word[1], word[2]);
}

int main(int count, char **word)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_a_serial_loop),
        cmocka_unit_test(gradients_are_differences_of_the_loss),
        cmocka_unit_test(bf16_is_rounded_to_nearest_even),
    };
    const struct CMUnitTest files[] = { cmocka_unit_test_prestate(logits_are_those_of_the_reference, word) };
    if (count == 3)
        return cmocka_run_group_tests(files, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
