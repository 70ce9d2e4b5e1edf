/* examples/language_model/generate.c - continues texts with a language model that is divided over sockets.
 *
 *     build/examples/language_model/generate MODEL TOKENIZER "Once upon a time" --tensor 2
 *
 * The replicas form a mesh: along "tensor" each has a slice of every matrix (weights.h), and along "data"
 * they continue other texts. docs/inference.md says how to choose the mesh. Read the program from main
 * upwards. */
#include "command_line.h"
#include "lesson.h"
#include "tokenizer.h"
#include "transformer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 16 /* of a call: a long text is read in pieces */ };

struct options {
    uint32_t data, tensor;
    uint32_t positions; /* the most of a text */
    double temperature;
    uint64_t seed;
    bool bf16, describe;
    const char *trace;
};

/* A text: first as it was given, and in the end as it was continued. */
struct text {
    int32_t *token; /* [positions + 1] */
    uint32_t length;
};

struct serving {
    struct options options;
    struct weights weights;
    struct tokenizer tokenizer;
    struct text *text;
    uint32_t texts;
    double waited; /* replica 0's seconds in collectives */
};

/* A text on the way. Each replica of a tensor group has all tokens, in memory of its own. */
struct sequence {
    int32_t *token;
    uint32_t number, length, done; /* done: the positions that have been computed */
    bool ended;
};

/* -- replica context -- */

/* Writes what a token stands for to the terminal, as soon as it is known. */
static void show(const struct serving *s, int32_t before, int32_t token)
{
    char byte;
    if (token == TOKEN_BEGIN || token == TOKEN_END)
        return;
    struct token piece = tokenizer_decode(&s->tokenizer, before, token, &byte);
    fwrite(piece.string, 1, piece.length, stdout);
    fflush(stdout);
}

/* Chooses one of the rank's tokens. With a temperature, the token with the largest sum of its logit, divided
 * by the temperature, and a random number is a sample of the softmax, if the random numbers have Gumbel's
 * distribution (Maddison, Tarlow, Minka, NIPS 2014). So no rank needs the logits of another one. The random
 * numbers belong to the text, the position and the word. */
static struct candidate choose(const struct serving *s, const struct transformer *t, const struct sequence *q,
                               const float *logit)
{
    struct candidate best = { -INFINITY, (int32_t)t->first_word };
    ditto_random random = ditto_random_make(s->options.seed, q->number);
    random.word = 2 * ((uint64_t)q->done * s->weights.shape.vocabulary + t->first_word);
    for (uint32_t w = 0; w < t->words; w++) {
        float value = logit[w];
        if (s->options.temperature > 0) {
            double uniform;
            ditto_random_f64(&random, &uniform, 1);
            value = (float)(value / s->options.temperature - log(-log(uniform + 0x1p-54)));
        }
        if (value > best.value)
            best = (struct candidate){ value, (int32_t)(t->first_word + w) };
    }
    return best;
}

/* Appends the next token of some sequences, whose last row is which[k]. */
static ditto_status append(const struct serving *s, struct transformer *t, struct sequence *const *sequence,
                           const uint32_t *which, uint32_t count, float *logits, struct candidate *candidates)
{
    struct candidate best[MOST_ROWS];
    transformer_logits(t, which, count, logits);
    for (uint32_t k = 0; k < count; k++)
        candidates[(size_t)t->tensor.rank * count + k] = choose(s, t, sequence[k],
                                                                logits + (size_t)k * t->words);
    DITTO_TRY(transformer_best(t, candidates, count, best));
    for (uint32_t k = 0; k < count; k++) {
        struct sequence *q = sequence[k];
        int32_t token = best[k].token;
        if (!(best[k].value > -INFINITY))
            return ditto_fail(t->self, 1,
                              "no logit of position %u is a number: the weights are too large for the model",
                              q->done - 1);
        q->token[q->length++] = token;
        if (t->tensor.rank == 0 && s->texts == 1)
            show(s, q->token[q->length - 2], token);
        q->ended = token == TOKEN_BEGIN || token == TOKEN_END;
    }
    return DITTO_OK;
}

/* Chooses rows of the sequences in turn. Stores in ready[] and which[] the sequences that have been read to
 * their end, and the last rows of these. */
static uint32_t choose_rows(const struct transformer *t, struct sequence *sequence, uint32_t angles,
                            struct row *row, struct sequence **ready, uint32_t *which, uint32_t *count)
{
    uint32_t rows = 0;
    *count = 0;
    for (uint32_t i = 0; i < t->sequences && rows < MOST_ROWS; i++) {
        uint32_t k = (angles + i) % t->sequences;
        struct sequence *q = &sequence[k];
        if (q->ended || q->done == t->positions)
            continue;
        for (; q->done < q->length && rows < MOST_ROWS; q->done++)
            row[rows++] = (struct row){ k, q->done, q->token[q->done] };
        if (q->done == q->length) {
            ready[*count] = q;
            which[(*count)++] = rows - 1;
        }
    }
    return rows;
}

/* Reads the sequences, and appends tokens until all have ended. */
static ditto_status continue_all(const struct serving *s, struct transformer *t, struct sequence *sequence,
                                 float *logits, struct candidate *candidates)
{
    struct row row[MOST_ROWS];
    struct sequence *ready[MOST_ROWS];
    uint32_t which[MOST_ROWS], count, rows;
    for (uint32_t angles = 0; (rows = choose_rows(t, sequence, angles, row, ready, which, &count)) > 0;
         angles++) {
        DITTO_TRY(transformer_forward(t, row, rows));
        if (count > 0)
            DITTO_TRY(append(s, t, ready, which, count, logits, candidates));
    }
    return DITTO_OK;
}

/* Continues the texts of this replica's tensor group: every D-th one, for D groups. The first rank of the
 * group stores them. `memory` has room for what serve needs. */
static ditto_status continue_own(struct serving *s, struct transformer *t, char *memory)
{
    struct sequence *sequence = (void *)memory;
    struct candidate *candidates = (void *)(sequence + t->sequences);
    float *logits = (void *)(candidates + (size_t)t->tensor.size * MOST_ROWS);
    int32_t *token = (void *)(logits + (size_t)t->words * MOST_ROWS);
    for (uint32_t k = 0; k < t->sequences; k++, token += t->positions + 1) {
        uint32_t number = t->data.rank + k * t->data.size;
        const struct text *text = &s->text[number];
        sequence[k] = (struct sequence){ token, number, text->length, 0, false };
        memcpy(token, text->token, text->length * sizeof *token);
    }
    DITTO_TRY(continue_all(s, t, sequence, logits, candidates));
    for (uint32_t k = 0; k < t->sequences && t->tensor.rank == 0; k++) {
        struct text *text = &s->text[sequence[k].number];
        text->length = sequence[k].length;
        memcpy(text->token, sequence[k].token, text->length * sizeof *text->token);
    }
    if (ditto_replica_id(t->self) == 0)
        s->waited = t->waited;
    return DITTO_OK;
}

static ditto_status serve(ditto_replica *self, void *argument)
{
    struct serving *s = argument;
    struct transformer t;
    ditto_group data;
    void *memory;
    DITTO_TRY(ditto_group_of(self, s->weights.data, &data));
    uint32_t own = (s->texts + data.size - 1 - data.rank) / data.size, rows = own > 0 ? MOST_ROWS : 0;
    DITTO_TRY(transformer_begin(&t, self, &s->weights, own, s->options.positions, rows, false));
    size_t bytes = own * sizeof(struct sequence) +
                   MOST_ROWS * (t.tensor.size * sizeof(struct candidate) + t.words * sizeof(float)) +
                   own * (s->options.positions + (size_t)1) * sizeof(int32_t);
    DITTO_TRY(ditto_alloc(self, bytes, 128, &memory));
    DITTO_TRY(continue_own(s, &t, memory));
    DITTO_TRY(ditto_free(self, memory));
    return transformer_end(&t);
}

/* -- cross-replica context -- */

/* Encodes a text. Ends the program with a message if it has more tokens than positions. */
static struct text read_text(const struct serving *s, const char *given)
{
    size_t length = strlen(given), room = length + 2, most = s->options.positions;
    struct text text = { malloc((room > most ? room : most + 1) * sizeof *text.token), 0 };
    if (text.token == NULL)
        refuse_file("generate", "no memory for a text of %zu bytes", length);
    if (length > most * s->tokenizer.longest && length > most) /* encoding it would take long */
        refuse_file("generate", "a text has %zu bytes, more than %zu positions can have", length, most);
    size_t tokens = tokenizer_encode(&s->tokenizer, given, length, text.token);
    if (tokens > most)
        refuse_file("generate", "a text has %zu tokens, but there are %zu positions (%u in the model)",
                    tokens, most, s->weights.shape.positions);
    text.length = (uint32_t)tokens;
    return text;
}

/* Says where the replicas run, and on which nodes the weights are. */
static void describe(ditto_strategy *strategy, const struct weights *w)
{
    static char words[1 << 16];
    check(ditto_strategy_describe(strategy, words, sizeof words, NULL));
    fprintf(stderr, "%s", words);
    for (int p = 0; p < PARAMETERS; p++) {
        check(ditto_variable_describe(w->array[p], words, sizeof words, NULL));
        fprintf(stderr, "%s\n", words);
    }
}

static void print_text(const struct serving *s, const struct text *text)
{
    for (uint32_t i = 1; i < text->length; i++)
        show(s, text->token[i - 1], text->token[i]);
}

/* Runs the replicas, and reports to the terminal how fast they were. */
static void run(ditto_strategy *strategy, struct serving *s)
{
    uint64_t given = 0, all = 0;
    for (uint32_t i = 0; i < s->texts; i++)
        given += s->text[i].length;
    double begin = seconds();
    check(ditto_strategy_run(strategy, serve, s));
    double took = seconds() - begin;
    for (uint32_t i = 0; i < s->texts; i++) {
        if (s->texts > 1)
            print_text(s, &s->text[i]);
        printf("\n%s", i + 1 < s->texts ? "\n" : ""); /* an empty line stands between texts */
        all += s->text[i].length;
        free(s->text[i].token);
    }
    fprintf(stderr,
            "%" PRIu64 " tokens given and %" PRIu64
            " chosen, %.1f of both a second, %.1f %% of the time in collectives\n",
            given, all - given, (double)all / took, 100 * s->waited / took);
}

/* What the command line gives. */
struct command {
    const char *model, *tokenizer, **prompt;
};

static struct command parse(int count, char **word, struct serving *s)
{
    enum { WORDS, DATA, TENSOR, STEPS, TEMPERATURE, SEED, BF16, DESCRIBE, TRACE };
    static const struct command_row rows[] = {
        [WORDS] = { NULL, "MODEL TOKENIZER [TEXT]...", "the files of llama2.c, and the texts to continue" },
        [DATA] = { "--data", "D", "the replicas that continue other texts: 1 to 1024 (default: 1)" },
        [TENSOR] = { "--tensor", "T", "the replicas that share a model: 1 to 1024 (default: 1)" },
        [STEPS] = { "--steps", "N",
                    "how many positions of a text are computed, at most: 1 to 2147483647 (default: all of "
                    "the model)" },
        [TEMPERATURE] = { "--temperature", "P",
                          "in hundredths, 0 to 100000: 0 takes the likeliest token (default: 0)" },
        [SEED] = { "--seed", "S", "begins other random numbers: 0 to 18446744073709551615 (default: 1)" },
        [BF16] = { "--bf16", NULL, "round the matrices to bf16, which halves the memory that is read" },
        [DESCRIBE] = { "--describe", NULL, "say where replicas and weights are" },
        [TRACE] = { "--trace", "FILE", "write events to the file, for ui.perfetto.dev" },
        { 0 },
    };
    struct command_line line = command_line_of("MODEL TOKENIZER [TEXT]... [OPTION ...]",
                                               "Continues texts with a language model.", rows, count, word);
    struct command c = { .prompt = calloc((size_t)count + 1, sizeof *c.prompt) };
    s->options = (struct options){ .data = 1, .tensor = 1, .positions = UINT32_MAX, .seed = 1 };
    for (int row; (row = command_next(&line)) >= 0;)
        switch (row) {
        case WORDS:
            *(c.model == NULL       ? &c.model
              : c.tokenizer == NULL ? &c.tokenizer
                                    : &c.prompt[s->texts++]) = line.value;
            break;
        case DATA:
            s->options.data = (uint32_t)command_number(&line, 1, DITTO_MAX_REPLICAS);
            break;
        case TENSOR:
            s->options.tensor = (uint32_t)command_number(&line, 1, DITTO_MAX_REPLICAS);
            break;
        case STEPS:
            s->options.positions = (uint32_t)command_number(&line, 1, INT32_MAX);
            break;
        case TEMPERATURE:
            s->options.temperature = (double)command_number(&line, 0, 100000) / 100;
            break;
        case SEED:
            s->options.seed = command_number(&line, 0, UINT64_MAX);
            break;
        case BF16:
            s->options.bf16 = true;
            break;
        case DESCRIBE:
            s->options.describe = true;
            break;
        case TRACE:
            s->options.trace = line.value;
            break;
        }
    if (c.tokenizer == NULL)
        command_refuse(&line, "a model and its tokenizer are needed");
    if (s->texts == 0)
        c.prompt[s->texts++] = "";
    return c;
}

int main(int count, char **word)
{
    static struct serving s;
    struct command c = parse(count, word, &s);
    struct model_file model = model_open(c.model);
    if (s.options.positions > model.shape.positions)
        s.options.positions = model.shape.positions;
    s.tokenizer = tokenizer_open(c.tokenizer, model.shape.vocabulary);
    s.weights.shape = model.shape;
    weights_check_division(&model.shape, s.options.tensor);
    s.text = calloc(s.texts, sizeof *s.text);
    for (uint32_t i = 0; i < s.texts; i++)
        s.text[i] = read_text(&s, c.prompt[i]);
    ditto_strategy *strategy = strategy_of(s.options.data * s.options.tensor);
    s.weights = weights_create(strategy, &model.shape, s.options.data, s.options.tensor,
                               &(struct weight_source){ .file = &model, .bf16 = s.options.bf16 });
    if (s.options.describe)
        describe(strategy, &s.weights);
    if (s.options.trace != NULL)
        check(ditto_strategy_trace_start(strategy, NULL));
    if (s.texts == 1)
        print_text(&s, &s.text[0]);
    run(strategy, &s);
    if (s.options.trace != NULL)
        report_trace(strategy, s.options.trace, stderr);
    weights_destroy(&s.weights);
    check(ditto_strategy_destroy(strategy));
    tokenizer_close(&s.tokenizer);
    free(s.text);
    free(c.prompt);
    if (fflush(stdout) != 0 || ferror(stdout))
        refuse_file("generate", "the text cannot be written");
    return 0;
}
